"""What was overtaken: by the end, by other rules, by a correction, by Ctrl-C. It is recorded, and no more."""

import pytest

import lexbandits as lb

CLICK = lb.Objective("x", tolerance=0.1, noise="bernoulli")


def study_of(*objectives, arms=("a", "b"), **settings):
    return lb.create_study("e", arms=arms, objectives=objectives or [CLICK], **settings)


def of_arm(trials, arm):
    return [trial for trial in trials if trial.arm == arm]


# --- failures that are no reason to give an arm up


def ended_by_hand():
    study = study_of(max_failures=2)
    trials = study.ask_many(6)
    study.tell_many([(trials[0], {"x": 1}), (trials[1], {"x": 0})])
    study.end("out of time")
    return study, of_arm(trials[2:], "a")


def test_a_failure_after_the_end_changes_nothing():
    study, open_trials = ended_by_hand()
    answer = study.answer
    assert [study.fail(trial, "crash") for trial in open_trials] == ["after the end"] * 2
    assert (study.answer, study.status.state) == (answer, "finished")
    study.reopen("more time")
    study.ask()
    assert study.status.candidates == ("a", "b")


def test_a_result_without_values_after_the_end_changes_nothing():
    study, open_trials = ended_by_hand()
    answer = study.answer
    assert study.tell_many([(trial, {}) for trial in open_trials]) == ["after the end"] * 2
    assert (study.answer, study.status.state) == (answer, "finished")


def test_an_answer_that_nobody_has_noticed_stays_too():
    study = study_of(lb.Objective("size", "minimize", noise="exact", tolerance=0), max_failures=2)
    trials = study.ask_many(6)
    study.record(trials[0], {"size": 1})
    study.record(trials[1], {"size": 2})  # which ends it, as the next who folds will find
    for trial in of_arm(trials[2:], "a"):
        study.record(trial, {})
    assert study.choose().arm == "a"
    assert study.answer.certified


@pytest.mark.parametrize("way", ["tell", "record", "tell_many"])
def test_an_arm_that_failed_too_often_leaves_however_it_was_told(way):
    study = study_of(max_failures=2)
    trials = study.ask_many(8)
    study.tell(trials[1], {"x": 0})
    told = list(zip(of_arm(trials, "a"), [{}, {}, {"x": 1}, {}], strict=True))
    if way == "tell_many":
        study.tell_many(told)
    for each in told if way != "tell_many" else ():
        getattr(study, way)(*each)
    study.choose()
    assert study.status.candidates == ("b",)
    reasons = [event.payload["reason"] for event in study.events() if event.kind == "arm_withdrawn"]
    assert reasons == ["could not be measured: failed 2 times in a row"]


def test_failures_under_other_rules_are_no_reason_to_give_up():
    study = study_of(max_failures=2)
    trials = study.ask_many(8)
    study.tell_many([(trials[0], {"x": 1}), (trials[1], {"x": 0})])
    study.withdraw("a", "a mistake")
    study.restore("a")
    for trial in of_arm(trials[2:], "a"):
        study.fail(trial, "late")
    study.tell(study.ask(), {})
    assert study.status.candidates == ("a", "b")
