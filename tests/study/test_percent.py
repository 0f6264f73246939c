"""Tolerances in percent of the best mean, or of an arm's, in a live study."""

import random
import sys

import pytest

import lexbandits as lb
from lexbandits.study.storage.memory import MemoryStorage
from support.command import invoked

pytestmark = pytest.mark.interpreted
ARMS = {"quick": (0.9, 300.0), "slow": (0.9, 420.0), "wrong": (0.3, 100.0), "bad": (0.3, 90.0)}
CORRECT = lb.Objective("correct", margin="30%", noise="bernoulli")
NOISES = ["gaussian", ("sub_gaussian", 40.0), ("bounded", 0, 1000), "exact"]


def latency(noise="gaussian", **words):
    return lb.Objective("latency", "minimize", margin="16%", unit="ms", noise=noise, **words)


def create(*objectives, **words):
    words = {
        "arms": ["quick", "slow", "wrong"],
        "objectives": [*objectives] or [CORRECT, latency()],
        "seed": 1,
        **words,
    }
    return lb.create_study("s", MemoryStorage(), **{"seed": 0, **words})


def measure(arm, item, noise="gaussian"):
    luck, (correct, time) = random.Random(f"{arm}/{item}"), ARMS[arm]
    spread = 0.0 if noise == "exact" else luck.gauss(0, 20)
    return {"correct": luck.random() < correct, "latency": time + spread}


def played(*objectives, noise="gaussian", **words):
    study = create(*objectives, **words)
    study.run(lambda arm, item: measure(arm, item, noise), progress=False)
    assert study.verify().ok
    return study


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.parametrize("words", [{}, {"reference": "slow"}])
@pytest.mark.parametrize("preregistered", [True, False])
def test_it_ends_with_what_the_percentages_say(noise, words, preregistered):
    study = played(CORRECT, latency(noise, **words), noise=noise, preregistered=preregistered)
    assert (study.answer.arm, study.answer.certified) == ("quick", True)
    # 420 is within 45 % of 300, and 300 within it of 420
    tie = {} if noise == "exact" else {"tie": "45%"}
    wide = lb.Objective("latency", "minimize", margin="65%", **tie, noise=noise, **words)
    two = {"arms": ["quick", "slow"], "baseline": "slow"}
    tied = played(CORRECT, wide, noise=noise, preregistered=preregistered, **two).answer
    assert (tied.arm, tied.decision) == ("slow", "keep")
    apart = played(CORRECT, latency(noise, **words), noise=noise, preregistered=preregistered, **two).answer
    assert (apart.arm, apart.decision) == ("quick", "switch")


def test_an_arm_of_whose_mean_they_are_is_measured_in_every_pass_and_stays():
    study = played(
        CORRECT, latency(reference="wrong"), preregistered=False, arms=["quick", "slow", "wrong", "bad"]
    )
    told = study.trials().groupby("item").arm.apply(set)
    assert all("wrong" in arms for arms in told)
    assert not {"wrong", "bad"} & set(study.status.candidates)
    assert not all("bad" in arms for arms in told)
    with pytest.raises(
        lb.ConflictError, match="'wrong' cannot be withdrawn: percentages of 'latency' are of"
    ):
        study.withdraw("wrong", "it is bad")
    fails = create(CORRECT, latency(reference="wrong"), max_failures=2)
    for trial in fails.ask_many(8):
        if trial.arm == "wrong":
            fails.fail(trial, "down")
        else:
            fails.tell(trial, measure(trial.arm, trial.item))
    assert fails.status.state == "paused"
    assert (
        "'wrong' failed 2 times in a row; percentages of 'latency' are of its mean"
        in fails.explain().sentence
    )


def test_what_cannot_be_said_of_percentages():
    study = create()
    with pytest.raises(lb.StudyError, match=r"percentages of a mean cannot be changed"):
        study.amend("latency", margin="10%")
    plain = create(lb.Objective("latency", "minimize", margin=40, noise="gaussian"))
    with pytest.raises(lb.StudyError, match=r"nor can a number become one"):
        plain.amend("latency", margin="10%")
    trial = study.ask()
    with pytest.raises(lb.ValueOutOfRange, match=r"must be in \[0, "):
        study.tell(trial, {"correct": 1, "latency": -3.0})
    with pytest.raises(lb.StudyError, match='say reference=, the number they are of, or scope="population"'):
        create(items=["q1", "q2"])
    with pytest.raises(
        lb.StudyError, match="one of the arms 'quick', 'slow', 'wrong' or a number, got 'old'"
    ):
        create(latency(reference="old"))


def test_other_rules_may_change():
    study = create(CORRECT, latency(), max_arms=4)
    for trial in study.ask_many(60):
        study.tell(trial, measure(trial.arm, trial.item))
    study.reorder(["latency", "correct"])
    study.withdraw("wrong", "not asked for")
    ARMS["new"] = ARMS["quick"]
    study.add_arm("new")
    study.run(measure, progress=False)
    del ARMS["new"]
    assert (study.answer.arm in ("quick", "new"), study.answer.certified, study.proof) == (
        True,
        True,
        "closed",
    )
    assert study.verify().ok


def test_the_words_say_of_what_they_are(tmp_path):
    study = played(CORRECT, latency(reference="slow"))
    said = str(study.explain())
    assert "quick is at most 30 % below the best on correct (margin 30 % of the best)." in said
    for name in ("report.md", "report.html"):
        text = study.report(tmp_path / name).read_text().replace("\\", "").replace("\xa0", " ")
        assert "margin 30 % of the best" in text
        assert "8 % of slow" in text
    prior = {arm: dict(zip(("correct", "latency"), ARMS[arm], strict=True)) for arm in study.arms}
    coming = create().forecast(prior, sd={"latency": 20.0}, runs=20)
    assert 20 < coming.results.median < 400
    assert coming.winners["quick"] > 0.9
    assert {row.objective for row in coming.relax} == {None}  # percentages stay, and delta is free


def test_a_file_and_the_commands_take_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "study.toml").write_text("""
        [study]
        name = "models"
        [[objectives]]
        name = "latency"
        direction = "minimize"
        margin = "20%"
        reference = "b"
        [[arms]]
        name = "a"
        mean = 10
        [[arms]]
        name = "b"
        mean = 20
    """)
    code = "import random; print('latency=%f' % ({mean} + random.Random('{arm}{item}').random()))"
    done = invoked("run", "study.toml", "--", sys.executable, "-c", code)
    assert done.exit_code == 0, done.output
    assert "answer: a (certified" in done.output
    spec = lb.open_study("models", "lexbandits.db").spec["objectives"][0]
    assert (spec["margin"], spec["reference"]) == ("20%", "b")
    amended = invoked("study", "amend", "models", "latency", "--margin", "5%", "--yes")
    assert amended.exit_code == 2
    assert "cannot be changed" in amended.output
