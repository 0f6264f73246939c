"""What scripts rely on: every call, its words and its errors, on every storage."""

import json
import math
import re
import threading
import time
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.study.measure.progress import Outlook
from support.journals import replay_of
from support.questions import create, go_on, kinds, measure, question

GOOD = {"correct": 1, "latency": 10}


def test_names_directions_and_an_answer(storage):
    study = create(storage)
    go_on(study)
    answer = study.answer
    assert (answer.arm, answer.certified, answer.delta, answer.flags) == ("large", True, 0.05, ())
    assert study.status.state == "finished"
    assert study.status.objective is None
    assert {row["rival"] for row in answer.certificate} == {"small", "cot"}
    cot = next(r for r in answer.certificate if r["rival"] == "cot" and r["objective"] == "latency")
    assert cot["low"] < cot["difference"] < cot["high"] < 0, "latency as measured: large is lower"
    with pytest.raises(lb.StudyFinished, match="large"):
        study.ask()
    assert study.ask_many(3) == []
    assert kinds(study)[0] == "created"
    assert kinds(study)[-1] == "finished"
    assert study.verify().ok


def test_a_trial(storage):
    study = create(storage, lease="10m")
    before = datetime.now(UTC)
    trial = study.ask(worker="w1")
    assert trial.number == 0
    assert trial.arm == "small"
    assert trial.item == 0
    assert trial.id.startswith("0-")
    assert timedelta(minutes=9) < trial.until - before < timedelta(minutes=11)
    assert set(trial.as_json()) == {"number", "id", "arm", "item", "until"}
    json.dumps(trial.as_json())
    short = study.ask(lease="2s")
    assert short.until < trial.until


def test_outcomes(storage):
    study = create(storage)
    first, second = study.ask_many(2)
    assert study.tell(second, GOOD) == "waiting"
    assert study.status.waiting == 1
    assert study.status.waiting_for == (first.id,)
    assert study.tell(first.id, GOOD) == "counted"
    assert study.tell(first, GOOD) == "repeated"
    assert study.tell(first, {"correct": True, "latency": np.float32(10)}) == "repeated"
    with pytest.raises(lb.ConflictError, match="before"):
        study.tell(first, {"correct": 0, "latency": 10})
    assert study.status.waiting == 0
    third = study.ask()
    study.end("enough")
    assert study.tell(third, GOOD) == "after the end"
    assert study.status.results == 3


def test_record_needs_no_policy(address):
    """For short-lived processes; who comes next folds it, and notes the end."""
    study = create(address)
    trials = study.ask_many(3 * 400)
    light = lb.open_study("models", address)
    assert light.record(trials[0], measure(trials[0].arm, 0)) == "recorded"
    assert light.record(trials[0].id, measure(trials[0].arm, 0)) == "repeated"
    assert replay_of(light)._policy is None
    with pytest.raises(lb.ConflictError):
        light.record(trials[0], {"correct": 0.5})
    for trial in trials[1:]:
        light.record(trial, measure(trial.arm, trial.item))
    assert "finished" not in kinds(light)
    assert study.status.state == "finished"
    assert kinds(light)[-1] == "finished"
    assert study.answer.arm == "large"


def test_missing_values(storage):
    study = create(storage)
    a, b, c, d = study.ask_many(4)
    study.tell(a, {"correct": None, "latency": 5})
    study.tell(b, {"latency": math.nan, "correct": 1})
    study.tell(c, {"correct": pd.NA})
    study.tell(d, {})
    frame = study.trials().set_index("number")
    assert math.isnan(frame.correct[0])
    assert frame.latency[0] == 5
    assert list(frame.state) == ["told", "told", "failed", "failed"]
    assert study.status.failed == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"correct": math.inf}, "finite"),
        ({"correct": 10**400}, "finite"),
        ({"correct": "1"}, "number"),
        ({"correct": [1]}, "number"),
        ({"wrong": 1}, "wrong"),
        ({"correct": 1.5}, r"\[0, 1\]"),
        ({"latency": -1}, r"\[0, 100\], got -1"),
        ([1, 2], "table"),
    ],
)
def test_refused_values_leave_the_trial_open(values, words):
    study = create()
    trial = study.ask()
    with pytest.raises(lb.ValueOutOfRange, match=words):
        study.tell(trial, values)
    assert study.status.open == 1
    assert kinds(study) == ["created", "asked"]
    assert study.tell(trial, GOOD) == "counted"


def test_tell_many_is_all_or_nothing(storage):
    study = create(storage)
    a, b = study.ask_many(2)
    with pytest.raises(lb.ValueOutOfRange):
        study.tell_many([(a, GOOD), (b, {"correct": 7})])
    assert study.status.results == 0
    study.tell(b, GOOD)
    with pytest.raises(lb.ConflictError):
        study.tell_many([(a, GOOD), (b, {"correct": 0})])
    assert study.status.results == 1
    assert study.tell_many([(a, GOOD), (b, GOOD)]) == ["counted", "repeated"]


def test_tell_ask(storage):
    study = create(storage)
    trial = study.ask()
    outcomes, trials = study.tell_ask([(trial, GOOD)], 3)
    assert outcomes == ["counted"]
    assert [t.number for t in trials] == [1, 2, 3]
    outcomes, trials = study.tell_ask([(t, GOOD) for t in trials])
    assert len(outcomes) == 3
    assert len(trials) == 1


def test_a_request_gives_the_same_trials_again(storage):
    study = create(storage)
    trials = study.ask_many(3, request="k1")
    assert study.ask_many(3, request="k1") == trials
    assert study.ask(request="k1") == trials[0]
    assert study.ask(request="k2").number == 3
    study.end("x")
    assert study.ask_many(3, request="k1") == trials


def test_a_repeated_request_says_what_heartbeats_have_added(storage):
    study = create(storage)
    trial = study.ask(lease="10m", worker="w", request="r")
    time.sleep(0.01)
    study.heartbeat("w")
    again = study.ask(request="r")
    assert again._replace(until=None) == trial._replace(until=None)
    assert again.until > trial.until


def test_failed_and_released(storage):
    study = create(storage)
    failed, released = study.ask_many(2)
    study.fail(failed, "timeout")
    assert study.fail(failed, "timeout") == "repeated"
    with pytest.raises(lb.ConflictError, match="failed"):
        study.tell(failed, GOOD)
    study.release(released)
    with pytest.raises(lb.StudyError, match="released"):
        study.tell(released, GOOD)
    again = study.ask()
    assert (again.arm, again.item) == (released.arm, released.item)
    assert again.number == 2
    assert again.id != released.id
    assert study.status.handed_out == 2, "a released trial does not count"


def test_failures_in_a_row_withdraw_an_arm(storage):
    study = create(storage, max_failures=3)
    while "arm_withdrawn" not in kinds(study):
        trial = study.ask()
        if trial.arm == "cot":
            study.fail(trial, "crashed")
        else:
            study.tell(trial, measure(trial.arm, trial.item))
    event = next(e for e in study.events() if e.kind == "arm_withdrawn")
    assert event.arm == "cot"
    assert (event.payload["failures"], event.payload["last"]) == (3, "crashed")
    go_on(study)
    answer = study.answer
    assert answer.arm == "large"
    assert study.status.failed == 3
    assert answer.certified
    assert "arm_excluded" in answer.flags
    given_up = {"arm": "cot", "failures": 3, "last": "crashed"}
    assert answer.details["arm_excluded"] == {"arms": [given_up], "left": 2}
    said = (
        "cot could not be measured (3 failures in a row, the last: crashed): the answer speaks of the other"
    )
    assert said in answer.reason


def test_failures_that_have_a_value_and_interruptions_give_no_arm_up(storage):
    objectives = [
        lb.Objective("up", margin=0.2, noise="bernoulli", if_failed=0),
        lb.Objective("size", "minimize", noise="exact", margin=1),
    ]
    study = lb.create_study("x", storage, arms=["a", "b"], objectives=objectives, max_failures=2, seed=0)
    study.tell(study.ask(), {"up": 1, "size": 1})
    study.tell(study.ask(), {"up": 1, "size": 1})
    for trial in study.ask_many(12):
        study.fail(trial, "a miss")
    assert study.status.candidates == ("a", "b")
    other = create(storage, name="y", max_failures=2)
    other.tell(other.ask(), GOOD)
    for trial in other.ask_many(12):
        other.fail(trial, "stopped", interrupted=True)
    assert other.status.candidates == ("small", "large", "cot")
    assert (other.status.failed, other.status.interrupted) == (12, 12)
    for each in (study, other):
        assert lb.open_study(each.name, storage).status == each.status


def test_when_nothing_can_be_measured_the_study_pauses(storage):
    study = create(storage, arms=["a", "b"], max_failures=2)
    with pytest.raises(lb.StudyPaused, match="no other was ever measured"):  # noqa: PT012
        for _ in range(10):
            study.fail(study.ask(), "crashed")
    study.resume()
    assert study.ask().arm in ("a", "b")


def test_if_failed_counts(storage):
    objective = lb.Objective("up", margin=0.2, noise="bernoulli", if_failed=0)
    study = lb.create_study(
        "x", storage, arms=["good", "bad"], objectives=[objective], max_failures=10**6, seed=0
    )
    with pytest.raises(lb.StudyFinished):  # noqa: PT012
        while True:
            trial = study.ask()
            study.tell(trial, {"up": 1}) if trial.arm == "good" else study.fail(trial, "down")
    assert study.answer.arm == "good"
    assert study.answer.certified


def test_correction_before_and_after_its_pass_is_folded(storage):
    study = create(storage)
    a, b, c = study.ask_many(3)
    study.tell(a, {"correct": 0, "latency": 10})
    study.correct(a, {"correct": 1, "latency": 10}, "typo")
    assert study.trials().correct[0] == 1
    study.tell(b, GOOD)
    study.tell(c, GOOD)
    assert study.policy.means[0, 0] == 1.0
    study.correct(a, {"correct": 0, "latency": 10}, "too late")
    assert study.trials().correct[0] == 1
    assert kinds(study)[-1] == "note"
    assert study.verify().ok
    with pytest.raises(lb.ConflictError):
        study.correct(study.ask(), GOOD, "not told yet")


def test_pause_budget_and_end(storage):
    study = create(storage, budget=4)
    study.pause("why not")
    with pytest.raises(lb.StudyPaused, match="why not"):
        study.ask()
    assert study.status.state == "paused"
    study.resume()
    trials = study.ask_many(10)
    assert len(trials) == 4
    assert study.status.state == "budget_spent"
    with pytest.raises(lb.StudyFinished, match="budget spent"):
        study.ask()
    answer = study.answer
    assert not answer.certified
    assert len(answer.candidates) == 3
    assert "'correct' is not settled" in answer.reason
    study.release(trials[0])
    assert study.status.state == "measuring"
    study.set_budget(5)
    assert len(study.ask_many(10)) == 2
    study.end("enough")
    assert study.status.state == "finished"
    assert not study.answer.certified
    assert "enough" in study.answer.reason
    study.reopen("not enough")
    assert study.status.state == "budget_spent"


@pytest.mark.parametrize(
    "storage", ["memory", "sqlite", "postgres"], indirect=True
)  # a service notes an end itself
def test_an_answer_that_was_due_is_not_ended_by_hand(storage):
    study = create(storage)
    for trial in study.ask_many(600):
        study.record(trial, measure(trial.arm, trial.item))
    study.end("enough")
    assert study.answer.certified
    assert kinds(study)[-1] == "finished"
    with pytest.raises(lb.StudyFinished, match="ended before"):
        study.end("enough")


def test_an_answer_that_waits_for_a_lost_trial_is_not_ended_by_hand(clock, storage):
    study = create(storage)
    study.ask(lease="1h")
    for trial in study.ask_many(599, lease="1d"):
        study.record(trial, measure(trial.arm, trial.item))
    clock.move(3601)
    study.end("enough")
    assert study.answer.certified
    assert kinds(study)[-2:] == ["expired", "finished"]


def test_items_each_once(storage):
    items = [f"file {i}" for i in range(6)]
    words = {"arms": ["small", "large"], "scope": "population"}
    study = create(storage, items=items, seed=0, **words)
    trials = study.ask_many(100)
    assert len(trials) == 12
    for arm in ("small", "large"):
        assert sorted(t.item for t in trials if t.arm == arm) == items
    order = [t.item for t in trials if t.arm == "small"]
    assert order != items
    assert study.status.state == "items_spent"
    with pytest.raises(lb.StudyFinished, match="items spent"):
        study.ask()
    same = create(name="again", items=items[::-1], seed=0, **words)
    assert [t.item for t in same.ask_many(100) if t.arm == "small"] == order, "drawn from the seed"
    other = create(name="other", items=items, seed=1, **words)
    assert [t.item for t in other.ask_many(100) if t.arm == "small"] != order


def test_exact_objective(storage):
    size = lb.Objective("size", "minimize", unit="MB", noise="exact")
    study = lb.create_study("x", storage, arms=["a", "b"], objectives=[size], seed=0)
    a, b = study.ask_many(2)
    study.tell(a, {"size": 12})
    third = study.ask()
    with pytest.raises(lb.ConflictError, match="exact"):
        study.tell(third, {"size": 13})
    study.tell(b, {"size": 10})
    assert study.answer.arm == "b"
    assert study.answer.certified


def test_tables(storage):
    study = create(storage)
    a, b = study.ask_many(2, worker="w1")
    study.tell(a, {"correct": 1})
    frame = study.trials()
    columns = ["number", "id", "arm", "item", "state", "worker", "asked", "resolved", "correct", "latency"]
    assert list(frame.columns) == columns
    assert list(frame.state) == ["told", "open"]
    assert list(frame.worker) == ["w1", "w1"]
    assert list(frame.id) == [a.id, b.id]
    assert frame.resolved.isna().tolist() == [False, True]
    results = study.results()
    assert len(results) == 6
    assert set(results.arm) == {"small", "large", "cot"}
    assert [e.seq for e in study.events(since=2)] == [3, 4]


def test_policy_is_a_copy(storage):
    study = create(storage)
    study.tell(study.ask(), GOOD)
    policy = study.policy
    assert isinstance(policy, lb.LexElimTol)
    policy.tell(1, [1.0, -1.0], item=0)
    assert study.policy != policy
    assert study.policy.rounds == 1


# --- changes of the rules


def test_arms_come_and_go(storage):
    study = create(storage, arms=["small", "large"], max_arms=3)
    go_on(study)
    assert study.answer.arm == "large"
    study.add_arm("cot")
    assert study.status.state == "measuring"
    assert "cot" in study.status.candidates
    with pytest.raises(lb.StudyError, match="at most 3 arms"):
        study.add_arm("fourth")
    with pytest.raises(lb.ConflictError):
        study.add_arm("cot")
    go_on(study)
    assert study.answer.arm == "large"
    assert study.answer.certified
    study.withdraw("large", "too dear")
    event = list(study.events())[-1]
    if event.kind == "finished":
        event = list(study.events())[-2]
    assert event.payload["reason"] == "too dear"
    assert event.payload["returned"], "who comes back"
    go_on(study)
    assert study.answer.arm == "cot"
    assert study.answer.certified
    study.restore("large")
    go_on(study)
    assert study.answer.arm == "large"
    with pytest.raises(lb.UnknownArmError, match="nobody"):
        study.withdraw("nobody", "x")
    assert study.verify().ok


def test_results_in_flight_when_the_rules_change_count(storage):
    """A pass that was begun keeps its members, whoever has seen a value of it."""
    study = create(storage, max_arms=4)
    go_on(study, 6)
    trial, *_ = begun = study.ask_many(2)
    assert study.tell(trial, GOOD) == "counted"
    before = study.policy.counts.sum()
    study.amend("latency", margin=6)
    study.withdraw("cot", "a mistake")
    last = study.ask()
    assert (last.arm, last.item) == ("cot", trial.item), "the pass is measured to its end"
    assert study.ask().item > trial.item
    study.restore("cot")
    assert [study.tell(each, GOOD) for each in (begun[1], last)] == ["counted"] * 2
    assert study.policy.counts.sum() == before + 6
    assert study.status.late == 0
    assert "rules_changed" in study.answer.flags
    assert [change["kind"] for change in study.answer.details["rules_changed"]["changes"]] == [
        "amended", "arm_withdrawn", "arm_restored",
    ]  # fmt: skip
    assert study.verify().ok


def test_amend_and_reorder(storage):
    study = create(storage)
    study.amend("latency", margin=55, tie=50)
    assert study.objectives[1].tie == 50
    study.reorder(["latency", "correct"])
    assert [o.name for o in study.objectives] == ["latency", "correct"]
    with pytest.raises(lb.StudyError, match="each objective once"):
        study.reorder(["latency"])
    with pytest.raises(lb.StudyError, match="no objective"):
        study.amend("speed", margin=2)
    with pytest.raises(lb.StudyError, match="the tie must be below the margin"):
        study.amend("latency", margin=0)
    with pytest.raises(lb.StudyError, match="needs a margin"):
        study.amend("latency")
    go_on(study)
    assert study.answer.arm in ("large", "cot")
    assert study.verify().ok


def test_notes(storage):
    study = create(storage)
    study.note("the kettle is on")
    assert list(study.events())[-1].payload["text"] == "the kettle is on"


# --- guardrails


def test_a_guardrail_comes_first(storage):
    rail = lb.Objective("refusals", "minimize", at_most=0.4, slack=0.1, noise="bernoulli")
    best = lb.Objective("score", margin=0.2, noise=("bounded", 0, 1))
    study = lb.create_study("x", storage, arms=["rude", "kind"], objectives=[rail, best], seed=0)
    with pytest.raises(lb.StudyFinished):  # noqa: PT012
        while True:
            trial = study.ask()
            refused = int(trial.item % 10 < (9 if trial.arm == "rude" else 1))
            study.tell(trial, {"refusals": refused, "score": 0.9 if trial.arm == "rude" else 0.4})
    assert study.answer.arm == "kind"
    assert study.answer.certified


@pytest.mark.parametrize("choice", ["continue", "stop"])
def test_nobody_meets_a_guardrail(choice):
    rail = lb.Objective("up", at_least=0.85, slack=0.02, noise="bernoulli")
    study = lb.create_study("x", arms=["a", "b"], objectives=[rail], if_infeasible=choice, seed=0)
    with pytest.raises(lb.StudyFinished):  # noqa: PT012
        while True:
            trial = study.ask()
            study.tell(trial, {"up": int(trial.item % 10 < (4 if trial.arm == "a" else 1))})
    answer = study.answer
    assert "infeasible" in answer.flags
    assert answer.certified == (choice == "continue"), "it is the best by the rule for any other objective"
    assert "no arm has up of at least 0.85" in answer.reason
    if choice == "continue":
        assert answer.arm == "a"


# --- studies by name


def test_create_open_list_delete(address):
    study = create(address)
    with pytest.raises(lb.StudyExistsError, match="models"):
        create(address)
    assert create(address, load_if_exists=True).name == "models"
    with pytest.raises(lb.SpecMismatchError, match=r"delta is 0\.05 there and 0\.1 here"):
        create(address, load_if_exists=True, delta=0.1)
    with pytest.raises(lb.SpecMismatchError, match="'minimize'"):  # noqa: PT012
        objectives = [question()["objectives"][0], lb.Objective("latency", margin=4, noise="gaussian")]
        create(address, load_if_exists=True, objectives=objectives)
    create(address, name="other study")
    assert lb.list_studies(address) == ["models", "other study"]
    go_on(study, 10)
    again = lb.open_study("models", address)
    assert again.policy == study.policy
    assert again.status.results == 10
    lb.delete_study("models", address)
    assert lb.list_studies(address) == ["other study"]
    with pytest.raises(lb.UnknownStudyError):
        study.ask()
    with pytest.raises(lb.UnknownStudyError, match="other study"):
        lb.open_study("models", address)
    with pytest.raises(lb.UnknownStudyError):
        lb.delete_study("models", address)
    create(address)
    with pytest.raises(lb.UnknownStudyError):
        study.ask()


def test_read_only(address):
    create(address)
    reader = lb.open_study("models", address, read_only=True)
    assert reader.status.state == "measuring"
    with pytest.raises(lb.StorageError, match="read only"):
        reader.ask()


def test_in_memory_is_private():
    create()
    create()
    with pytest.raises(lb.UnknownStudyError):
        lb.open_study("models", "memory")


def test_unknown_trials(storage):
    study = create(storage)
    trial = study.ask()
    for wrong in ("0-00000000", "1-abcdef01", "x", "", "0", "٣-abcdef01"):
        with pytest.raises(lb.UnknownTrialError):
            study.tell(wrong, GOOD)
    with pytest.raises(TypeError):
        study.tell(0, GOOD)
    assert study.tell(trial.id, GOOD) == "counted"


def test_toml(tmp_path):
    path = tmp_path / "codecs.toml"
    path.write_text(
        f"""
[study]
name = "codecs"
storage = "{tmp_path}/s.db"
delta = 0.1
lease = "2m"

[[objectives]]
name = "ratio"
margin = "10%"
reference = 3.0
noise = ["bounded", 0, 10]

[[objectives]]
name = "seconds"
direction = "minimize"
margin = 0.2

[[arms]]
name = "gzip 9"
command = "gzip -9"

[[arms]]
name = "zstd"
command = "zstd -19"
level = 19
"""
    )
    study = lb.study_from_toml(path)
    assert study.name == "codecs"
    assert study.arms["zstd"]["level"] == 19
    assert study.spec["lease"] == "2m"
    assert study.objectives[0].noise == ("bounded", 0.0, 10.0)
    assert study.objectives[0].margin_in_unit == pytest.approx(0.3)
    assert lb.study_from_toml(path).seq == study.seq
    assert lb.list_studies(tmp_path / "s.db") == ["codecs"]
    path.write_text("[study]\nname = 3")
    with pytest.raises(lb.StudyError):
        lb.study_from_toml(path)


# --- import and export


def history(arms=("small", "large", "cot"), items=range(30)):
    rows = [{"arm": arm, "item": f"q{item}", **measure(arm, item)} for item in items for arm in arms]
    return pd.DataFrame(rows)


def test_import_shares_passes_by_item(storage):
    study = create(storage, seed=0)
    frame = history().sample(frac=1, random_state=0)
    assert study.import_results(frame, fair=True) == 90
    assert study.policy.folded == 30
    assert study.status.results == 90
    assert list(study.policy.counts[:, 0]) == [30, 30, 30]
    other = create(name="sorted", seed=0)
    other.import_results(frame.sort_values("latency"), fair=True)
    assert other.policy == study.policy, "the frame's order does not matter"
    go_on(study)
    assert study.answer.arm == "large"
    assert study.answer.certified
    assert study.verify().ok


def test_import_by_row_with_holes(storage):
    study = create(storage)
    frame = history().drop(columns="item").drop(index=[1, 5])
    study.import_results(frame, fair=True)
    assert study.policy.folded == 30
    assert list(study.policy.counts[:, 0]) == [30, 29, 29]
    assert study.ask().item == 30


def test_unfair_import_voids_the_certificate():
    study = create()
    study.import_results(history(items=range(400)), fair=False)
    answer = study.answer
    assert study.status.state == "finished"
    assert not answer.certified
    assert "biased_import" in answer.flags


def test_import_refuses():
    study = create()
    with pytest.raises(TypeError, match="fair"):
        study.import_results(history())
    with pytest.raises(lb.UnknownArmError):
        study.import_results(history(arms=("nobody",)), fair=True)
    with pytest.raises(lb.StudyError, match="column"):
        study.import_results(history(), arm="variant", fair=True)
    with pytest.raises(lb.ValueOutOfRange):
        study.import_results(history().assign(latency=1e6), fair=True)
    with pytest.raises(lb.StudyError, match="two rows"):
        study.import_results(pd.concat([history(), history()]), fair=True)
    assert kinds(study) == ["created"]
    study.ask()
    with pytest.raises(lb.ConflictError, match="before the first ask"):
        study.import_results(history(), fair=True)


def test_import_of_listed_items_leaves_the_rest_to_be_measured():
    study = create(items=[f"q{i}" for i in range(40)], scope="population")
    study.import_results(history(items=range(10)), fair=True)
    rest = [trial.item for trial in study.ask_many(1000) if trial.arm == "small"]
    assert sorted(rest) == sorted(f"q{i}" for i in range(10, 40))


def test_export(tmp_path):
    study = create()
    go_on(study, 7)
    csv = study.export(tmp_path / "t.csv")
    frame = pd.read_csv(csv)
    assert list(frame.columns) == list(study.trials().columns)
    assert len(frame) == 7
    assert len(pd.read_parquet(study.export(tmp_path / "t.parquet"))) == 7
    lines = study.export(tmp_path / "t.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == kinds(study)
    with pytest.raises(lb.StudyError, match=r"\.csv, \.parquet or \.jsonl"):
        study.export(tmp_path / "t.xlsx")
    back = create(name="back")
    back.import_results(frame, fair=True)
    assert back.status.results == 7


# --- run


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_run(storage, executor):
    study = create(storage)
    answer = study.run(measure, workers=4, executor=executor, progress=False)
    assert (answer.arm, answer.certified) == ("large", True)
    assert study.status.open == 0


def test_run_on_an_executor_and_only_by_arm():
    study = create(budget=30)
    with ThreadPoolExecutor(2) as pool:
        study.run(lambda arm: measure(arm, 1), workers=2, executor=pool, progress=False)
    assert study.status.results == 30
    assert study.trials().groupby("arm").latency.nunique().max() == 1


def test_run_counts_what_is_raised_as_failed():
    def flaky(arm, item):
        if arm == "cot" and item % 2:
            raise RuntimeError("no")
        return measure(arm, item)

    study = create()
    assert study.run(flaky, workers=3, progress=False).arm == "large"
    assert study.status.failed > 0


def test_run_stops_at_a_value_that_cannot_be():
    study = create()
    with pytest.raises(lb.ValueOutOfRange):
        study.run(lambda arm: {"correct": 3}, workers=1, progress=False)
    assert study.status.open == 1


class InThrees(Executor):
    """Does three tasks once it has them."""

    def __init__(self):
        self.tasks = []

    def submit(self, function, /, *arguments):
        self.tasks.append((Future(), function, arguments))
        if len(self.tasks) == 3:
            for future, given, words in self.tasks:
                future.set_result(given(*words))
        return self.tasks[-1][0]


def test_a_refused_value_does_not_cost_what_others_have_measured():
    study = create()
    with pytest.raises(lb.ValueOutOfRange):
        study.run(
            lambda arm: {"correct": 3} if arm == "large" else measure(arm),
            workers=3,
            executor=InThrees(),
            progress=False,
        )
    assert (study.status.results, study.status.open) == (2, 1)
    assert study.trials().query("state == 'open'").arm.tolist() == ["large"]


def test_the_progress_bar_says_how_many_more(capfd):
    study = create(objectives=[lb.Objective("correct", margin=0.06, noise="bernoulli")], budget=400)
    outlook = Outlook(study, first=0)
    assert outlook.text() == "", "nothing is measured"
    study.run(lambda arm, item: {"correct": measure(arm, item)["correct"]}, workers=2)
    assert re.search(r"400 results · \d candidates · settling correct", capfd.readouterr().err)
    assert re.fullmatch(r" · about [\d,]+ more", Outlook(study, first=0).text())
    assert Outlook(study, first=1000).text() == "", "a forecast takes time, and is not made at once"


def test_run_gives_back_what_it_has_not_begun_and_nothing_else():
    """To measure again what was begun would be to choose by value."""
    study, gate, begun = create(), threading.Event(), set()

    def interrupted(arm, item):
        begun.add((arm, item))
        if item == 3:
            raise KeyboardInterrupt
        if item > 3:
            gate.wait(600)
        return measure(arm, item)

    with pytest.raises(KeyboardInterrupt):
        study.run(interrupted, workers=4, progress=False)
    gate.set()
    left = study.trials().query("state != 'told'")
    failed = {(row.arm, row.item) for row in left.itertuples() if (row.arm, row.item) in begun}
    assert set(left.state) <= {"failed", "released"}
    assert {(row.arm, row.item) for row in left.itertuples() if row.state == "failed"} == failed
    assert study.status.interrupted == len(failed) >= 1
    assert not failed & {(trial.arm, trial.item) for trial in study.ask_many(12)}


class OneAtATime(ThreadPoolExecutor):
    """Four trials are handed to it and one is begun."""

    def __init__(self):
        super().__init__(1)


def test_what_waits_for_a_thread_is_given_back():
    study = create()

    def interrupted(arm, item):
        raise KeyboardInterrupt

    with OneAtATime() as pool, pytest.raises(KeyboardInterrupt) as stopped:
        study.run(interrupted, workers=4, executor=pool, progress=False)
    status = study.status
    assert status.open == 0
    assert status.interrupted >= 1
    assert status.interrupted + status.released == 4
    assert any("given back" in note for note in stopped.value.__notes__)


def test_gaussian_values_that_repeat_are_named():
    study = lb.create_study(
        "x", arms=["a", "b"], objectives=[lb.Objective("cost", margin=2, noise="gaussian")], seed=0
    )
    with pytest.warns(UserWarning, match="'cost'.*bernoulli"):  # noqa: PT031
        for _ in range(4):
            study.tell(study.ask(), {"cost": 3.0})
    assert study.status.results == 4, "the result is safe"
