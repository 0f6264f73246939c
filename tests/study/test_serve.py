"""`serve=True`: the arm that leads has two places in a pass, whoever asks and opens the study."""

import numpy as np
import pytest

import lexbandits as lb
from support.journals import replay_of

RATES = {"old": 0.42, "new": 0.5, "worst": 0.35, "later": 0.4}
BOUGHT = lb.Objective("bought", margin=0.1, noise="bernoulli")


def served(storage="memory", **words):
    words = {"arms": ["old", "new", "worst"], "objectives": [BOUGHT], "seed": 0, "serve": True, **words}
    return lb.create_study("shop", storage, **words)


def visit(study, rng, n=12):
    """Visitors come a few at a time and answer in any order; whether any came."""
    asked = study.ask_many(n, wait=0)
    for k in rng.permutation(len(asked)).tolist():
        study.tell(asked[k], {"bought": float(rng.random() < RATES[asked[k].arm])})
    return bool(asked)


def test_the_leader_has_two_places_of_a_pass_and_the_answer_is_replayed(storage):
    study, rng = served(storage), np.random.default_rng(1)
    while visit(study, rng):
        if study.status.results == 96:
            study = lb.open_study("shop", storage)
    trials = study.trials()
    second = trials[trials["item"] % 2 == 1]
    assert set(second["item"] // 2) <= set(range(20, 10**6)), "the first 20 passes ask each arm once"
    assert len(second) > 20
    assert second.duplicated("item").mean() < 0.1, "where the lead changed with results in flight"
    assert not trials.duplicated(["item", "arm"]).any()
    assert study.answer.certified
    assert study.answer.arm != "worst"
    assert study.verify().ok
    assert replay_of(study).policy.leader_repeats == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"objectives": [lb.Objective("s", margin=1)]}, '"symmetric" noise says nothing. Say noise="bern'),
        ({"objectives": [lb.Objective("s", margin=1, noise="gaussian")]}, '"gaussian" noise says nothing'),
        ({"objectives": [lb.Objective("s", margin="5%", noise=("bounded", 0, 9))]}, "no percentages"),
        ({"items": ["a", "b"]}, "visitors, who come once"),
        ({"serve": "yes"}, "serve must be"),
    ],
)
def test_what_cannot_be_served_is_refused_with_a_reason(words, message):
    with pytest.raises(lb.StudyError, match=message):
        served(**words)


def test_imported_rows_have_no_second_result_of_a_leader():
    study = served()
    with pytest.raises(lb.ConflictError, match="without serve=True"):
        study.import_results({"arm": ["old", "new"], "bought": [0, 1]}, fair=True)


def test_a_change_of_the_rules_begins_with_a_pass_that_nobody_was_asked_for():
    study, rng = served(max_arms=4), np.random.default_rng(2)
    for _ in range(9):
        visit(study, rng)
    asked = study.ask_many(5, wait=0)
    study.add_arm("later")
    for trial in asked:
        study.tell(trial, {"bought": 1})
    begins = next(event.payload["from_pass"] for event in study.events() if event.kind == "arm_added")
    assert begins % 2 == 0
    assert begins > max(trial.item for trial in asked)
    visit(study, rng, 40)
    first = study.trials().query("arm == 'later'")["item"].min()
    assert first == begins


def test_a_lost_result_of_the_leader_holds_nobody_back_for_ever(clock):
    study, rng = served(lease="1m"), np.random.default_rng(3)
    while not (twins := [t for t in study.ask_many(12, wait=0) if t.item % 2]):
        for trial in study.trials().query("state == 'open'")["id"].tolist():
            study.tell(trial, {"bought": float(rng.random() < 0.5)})
    assert twins
    clock.move(61)
    assert visit(study, rng)
    while visit(study, rng):
        pass
    assert study.status.state == "finished"
