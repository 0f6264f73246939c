"""`cap=`, `floor=` and `above=` of a study: told as measured, counted as cut."""

import random

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.study.spec import Spec
from lexbandits.study.storage.memory import MemoryStorage
from support.journals import journal_of

CUT = {
    "revenue": {"cap": 20.0, "margin": 4.0, "unit": "€"},
    "latency": {"direction": "minimize", "above": 2.0, "margin": 0.2, "unit": "s", "if_failed": 60.0},
}
PLAIN = {
    "revenue": {"noise": ("bounded", 0, 20), "margin": 4.0},
    "latency": {"direction": "minimize", "noise": "bernoulli", "margin": 0.2, "if_failed": 1.0},
}


def created(words, **more):
    objectives = [lb.Objective(name, **keys) for name, keys in words.items()]
    return lb.create_study("s", MemoryStorage(), arms=["a", "b", "c"], objectives=objectives, seed=1, **more)


def values(arm, item):
    luck = random.Random(f"{arm}/{item}")
    return {
        "revenue": luck.lognormvariate({"a": 1, "b": 2.5, "c": 2.5}[arm], 1.5),
        "latency": luck.expovariate({"a": 2, "b": 0.3, "c": 1}[arm]),
    }


def tell_all(study, as_told, most=100_000):
    for _ in range(most):
        try:
            trial = study.ask()
        except lb.StudyFinished:
            break
        if trial.arm == "a" and random.Random(f"lost {trial.item}").random() < 0.1:
            study.fail(trial, "lost")
        else:
            study.tell(trial, as_told(values(trial.arm, trial.item)))


def rows(study):
    return [{**row, "unit": ""} for row in study._results()]


def by_hand(told):
    return {"revenue": min(told["revenue"], 20.0), "latency": int(told["latency"] > 2)}


@pytest.mark.parametrize("settings", [{}, {"items": list(range(600))}])
def test_a_cap_is_as_good_as_values_cut_by_hand(settings, tmp_path):
    cut, plain = created(CUT, **settings), created(PLAIN, **settings)
    tell_all(cut, dict)
    tell_all(plain, by_hand)
    assert cut.answer.certified
    assert cut.answer == plain.answer
    assert cut.answer.arm == "c"
    assert cut.verify().ok
    assert rows(cut) == rows(plain)
    assert cut.trials()["revenue"].max() > 20
    # what was exported is as it was measured, and is cut once when it is counted again
    again, same = created(CUT, **settings), created(PLAIN, **settings)
    again.import_results(cut.export(tmp_path / "cut.csv"), fair=True)
    same.import_results(plain.export(tmp_path / "plain.csv"), fair=True)
    assert again.status.results > 100
    assert (rows(again), again.answer) == (rows(same), same.answer)


def test_what_may_be_told():
    study = created(CUT | {"profit": {"floor": -5, "cap": 5, "margin": 2}})
    trial = study.ask()
    with pytest.raises(lb.ValueOutOfRange, match="revenue"):
        study.tell(trial, {"revenue": -1.0})
    study.tell(trial, {"revenue": 1e6, "latency": -3.0, "profit": -1e6})
    assert study.trials()["revenue"][0] == 1e6


def test_the_words_say_what_it_is_about(tmp_path):
    study = created(CUT)
    tell_all(study, dict, 60)
    said = study.report(tmp_path / "r.md").read_text()
    assert "the mean of values up to 20 €" in said
    assert "how often it is above 2 s" in said
    assert not any(row["unit"] for row in study._results() if row["objective"] == "latency")


def test_the_words_of_a_cap_are_the_same_question():
    spec = journal_of(created(CUT)).asked()
    assert Spec.from_json(spec.as_json()) == spec
    with pytest.raises(TypeError):
        created(CUT).amend("revenue", cap=30)


def test_at_the_limit_a_value_is_not_above_it():
    how_often = lb.Objective("latency", "minimize", above=2.0, margin=0.2)
    assert how_often.cut(np.array([1.9, 2.0, np.nextafter(2.0, 3.0), 7.0])).tolist() == [0, 0, 1, 1]
    assert np.isnan(how_often.cut(np.nan))
