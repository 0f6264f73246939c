"""What was overtaken: by the end, by other rules, by a correction, by Ctrl-C. It is recorded, and no more."""

import math
from fractions import Fraction

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.study.core import replay
from lexbandits.study.core.projection import Projection
from support.journals import replay_of, storage_of

CLICK = lb.Objective("x", margin=0.2, noise="bernoulli")


def study_of(*objectives, arms=("a", "b"), **settings):
    return lb.create_study("e", arms=arms, objectives=objectives or [CLICK], **{"seed": 0, **settings})


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
    study = study_of(
        lb.Objective(
            "size",
            "minimize",
            noise="exact",
        ),
        max_failures=2,
    )
    trials = study.ask_many(6)
    study.record(trials[0], {"size": 1})
    study.record(trials[1], {"size": 2})  # which ends it, as the next who folds will find
    for trial in of_arm(trials[2:], "a"):
        study.record(trial, {})
    assert study.assign("ann").arm == "a"
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
    study.assign("ann")
    assert study.status.candidates == ("b",)
    reasons = [event.payload["reason"] for event in study.events() if event.kind == "arm_withdrawn"]
    assert reasons == ["failed 2 times in a row, the last: nothing was measured"]


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


# --- questions that would break a study later


@pytest.mark.parametrize("key", ["if_failed", "if_expired"])
def test_an_exact_objective_has_no_agreed_value(key):
    size = {"name": "size", "noise": "exact", key: 3}
    with pytest.raises(lb.StudyError, match=f"'size' is exact.*leave {key} out"):
        study_of(CLICK, size)


@pytest.mark.parametrize("key", ["if_failed", "if_expired"])
@pytest.mark.parametrize("noise", ["gaussian", "finite_variance", ("sub_gaussian", 2.0)])
def test_noise_without_bounds_has_no_agreed_value(key, noise):
    wait = {"name": "wait", "margin": 2, "noise": noise, key: -50}
    assert lb.Objective(**wait).agrees_badly
    with pytest.raises(lb.StudyError, match=rf"'wait': {key} is one value.*bounded.*bernoulli.*leave {key}"):
        study_of(CLICK, wait)
    bounded = lb.Objective(**{**wait, "noise": ("bounded", -50, 0)})
    assert not bounded.agrees_badly
    assert not lb.Objective("wait", margin=2, noise=noise).agrees_badly
    study_of(CLICK, bounded)


@pytest.mark.parametrize("number", [np.float32(0.25), np.float64(0.25), Fraction(1, 4)])
def test_numbers_of_other_kinds_are_recorded_as_numbers(number, tmp_path):
    objective = lb.Objective("x", margin=number, noise="bernoulli")
    study = lb.create_study("e", tmp_path / "study.db", arms=["a", "b"], objectives=[objective], seed=0)
    study.amend("x", margin=2 * number)
    again = lb.open_study("e", tmp_path / "study.db")
    assert replay_of(again).projection.spec.objectives[0].margin == 0.5


def test_a_whole_numpy_margin_is_recorded_as_a_number(tmp_path):
    objective = lb.Objective("x", margin=np.int64(4), noise="gaussian")
    study = lb.create_study("e", tmp_path / "study.db", arms=["a", "b"], objectives=[objective], seed=0)
    study.amend("x", tie=np.int64(3))
    assert [event.payload["tie"] for event in study.events() if event.kind == "amended"] == [3]


def test_an_agreed_value_that_is_missing_is_none():
    objective = lb.Objective("x", margin=0.2, if_failed=math.nan, if_expired=np.nan, noise="gaussian")
    assert objective == lb.Objective("x", margin=0.2, noise="gaussian")
    assert "if_failed" not in objective.as_json()


def test_a_margin_of_zero_is_refused_by_name():
    study = study_of()
    with pytest.raises(lb.StudyError, match="objective 'x': the margin must be positive"):
        study.amend("x", margin=0, tie=0)
    asked = lb.Objective("y", margin=0.1, tie=0.1, noise="gaussian")  # a list takes it, a population does not
    with pytest.raises(lb.StudyError, match="objective 'y': the tie must be below the margin"):
        lb.create_study("zero", arms=["a", "b"], objectives=[asked], seed=0)
    assert (
        lb.create_study("zero", arms=["a", "b"], objectives=[asked], items=["p", "q"], seed=0).ask().arm
        == "a"
    )
    assert study.ask().arm == "a"


# --- corrections of what is exact


def test_a_correction_does_not_forget_what_another_trial_told():
    study = study_of(CLICK, lb.Objective("size", noise="exact"))
    first, second, third = of_arm(study.ask_many(6), "a")
    study.tell_many([(trial, {"x": 1, "size": 5}) for trial in (first, second)])
    study.correct(second, {"x": 0}, "typo")
    with pytest.raises(lb.ConflictError, match="'a' has 5, got 7"):
        study.tell(third, {"x": 0, "size": 7})
    study.tell(third, {"x": 0, "size": 5})
    assert study.verify().problems == ()


def test_a_value_that_no_other_trial_told_may_be_corrected():
    study = study_of(CLICK, lb.Objective("size", noise="exact"), lb.Objective("price", noise="exact"))
    first, second, third = of_arm(study.ask_many(6), "a")
    study.tell_many([(first, {"x": 1, "size": 5}), (second, {"x": 1, "price": 2})])
    assert study.correct(second, {"x": 1, "price": 3}, "typo") == "corrected"
    study.tell(third, {"size": 5, "price": 3})
    assert study.verify().problems == ()


# --- Ctrl-C


@pytest.mark.parametrize("few", [0, 20])  # told as one, one by one
@pytest.mark.parametrize("kind", ["told", "amended"])
def test_ctrl_c_while_the_policy_catches_up_leaves_a_study_of_use(kind, few, monkeypatch):
    monkeypatch.setattr(replay, "MOST_ONE_BY_ONE", few)
    study = study_of()
    other = lb.open_study("e", storage_of(study))
    assert other.status.results == 0
    trials = study.ask_many(6)
    study.tell_many([(trial, {"x": trial.number % 2}) for trial in trials[:5]])
    if kind == "amended":
        study.amend("x", margin=0.4)

    def interrupted(self, *arguments, **words):
        done(self, *arguments, **words)
        raise KeyboardInterrupt

    name = {"amended": "amended", "told": "tell_checked" if few else "tell_many"}[kind]
    with monkeypatch.context() as patched:
        done = getattr(lb.LexElimTol, name)
        patched.setattr(lb.LexElimTol, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = other.status
    assert other.status == study.status
    assert other.policy == study.policy
    other.tell(trials[5], {"x": 1})
    assert other.verify().problems == ()


def test_ctrl_c_while_a_journal_is_read_leaves_a_study_of_use(monkeypatch):
    study = study_of()
    other = lb.open_study("e", storage_of(study))
    assert other.status.results == 0
    trial = study.ask()

    def interrupted(self, *columns):
        add(self, *columns)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        add = Projection._add
        patched.setattr(Projection, "_add", interrupted)
        with pytest.raises(KeyboardInterrupt):
            _ = other.status
    other.tell(trial, {"x": 1})
    assert other.status == study.status


# --- what a result waits for


def folded(study):
    return replay_of(study).policy.folded


def test_a_trial_of_an_arm_that_was_withdrawn_is_waited_for():
    """Else withdrawing and restoring would throw away what the others of its pass had."""
    study = study_of(arms=["c", "a", "b"])
    of_c, *others = study.ask_many(3)
    study.withdraw("c", "so")
    a, b = study.ask_many(2)
    assert {a.arm, b.arm} == {"a", "b"}
    told = [(others[0], 1), (others[1], 1), (a, 1), (b, 0)]
    assert [study.tell(trial, {"x": x}) for trial, x in told] == ["waiting"] * 4
    assert study.status.waiting_for == (of_c.id,)
    assert study.tell(of_c, {"x": 1}) == "counted"
    assert (study.status.waiting, study.status.waiting_for) == (0, ())
    assert folded(study) == 2


def test_nothing_waits_for_a_trial_of_a_pass_that_was_folded_without_it():
    study = study_of(lb.Objective("size", "minimize", noise="exact"), CLICK, arms=["big", "a", "b"])
    trials = study.ask_many(9)
    sizes = {"big": 2, "a": 1, "b": 1}
    study.tell_many([(trial, {"size": sizes[trial.arm], "x": 1}) for trial in trials[:3]])
    assert study.status.candidates == ("a", "b")
    later = [trial for trial in trials[3:] if trial.arm != "big"]
    a, b, *last = [(trial, {"size": 1, "x": 1}) for trial in later]
    assert study.tell(*b) == "waiting"
    assert study.status.waiting_for == (a[0].id,)
    assert study.tell(*a) == "counted"
    assert [study.tell(*each) for each in last] == ["counted"] * 2
    assert folded(study) == 3
    assert (study.status.open, study.status.waiting, study.status.waiting_for) == (2, 0, ())


def test_results_wait_for_a_place_that_was_released_and_asked_again():
    study = study_of()
    trials = study.ask_many(4)
    study.release(trials[0])
    again = study.ask()
    assert (again.number, again.arm, again.item) == (4, "a", 0)
    assert [study.tell(trial, {"x": 1}) for trial in trials[1:]] == ["waiting"] * 3
    assert (study.status.waiting, study.status.waiting_for) == (3, (again.id,))
    assert folded(study) == 0
    assert study.tell(again, {"x": 1}) == "counted"
    assert (study.status.waiting, folded(study)) == (0, 2)
