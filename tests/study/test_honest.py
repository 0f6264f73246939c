"""What a stranger's scripts found: overdue releases, replaced files, passwords, handles that only read."""

import gc
import os
import pickle
import shutil
import sqlite3
import time
from contextlib import closing

import pytest

import lexbandits as lb
from support.journals import replay_of, storage_of
from support.questions import create, go_on, measure

BOUNDED = [lb.Objective("err", "minimize", margin=2, noise=("bounded", 0, 10))]


@pytest.mark.parametrize("results", [4, 60])  # few are told one by one, many at once
def test_what_came_late_does_not_count_for_whoever_opens_the_study_later(results, address):
    agreed = lb.Objective("score", margin=1, noise=("bounded", 0, 10), if_expired=1)
    study = create(address, objectives=[agreed])
    trials = study.ask_many(results, lease="1ms") + study.ask_many(results)
    time.sleep(0.01)
    for trial in trials:
        study.tell(trial, {"score": 9})
    assert study.status.late == results
    again = lb.open_study("models", address)
    for handle in (study, again):
        means = handle.policy.means[:, 0]
        assert (means < 9).all(), "what came late counts as agreed"
    assert again.policy == study.policy
    assert again.verify().ok


@pytest.mark.parametrize("noticed", [False, True])
def test_an_overdue_trial_cannot_be_released_to_be_asked_again(noticed):
    study = create()
    trial = study.ask(lease="1ms")
    time.sleep(0.01)
    if noticed:
        study.ask()
    study.release(trial)
    assert study.status.expired == 1
    assert (trial.arm, trial.item) not in [(again.arm, again.item) for again in study.ask_many(6)]
    assert study.tell(trial, measure(trial.arm)) == "late"


def test_the_failure_that_makes_an_arm_leave_was_in_time():
    study = create(objectives=BOUNDED, max_failures=2)
    outcomes = []
    while "small" not in [event.arm for event in study.events() if event.kind == "arm_withdrawn"]:
        trial = study.ask()
        outcomes.append(study.fail(trial) if trial.arm == "small" else study.tell(trial, {"err": 1}))
    assert "late" not in outcomes
    assert study.status.late == 0


def test_what_the_rules_overtook_counts():
    study = create(max_arms=4)
    first = study.ask_many(2)[0]
    study.add_arm("fourth")
    assert study.tell(first, measure(first.arm)) == "counted"
    status = study.status
    assert (status.results, status.late, status.open) == (1, 0, 1)


def test_a_handle_that_only_reads_changes_nothing(tmp_path):
    study = create(f"sqlite:///{tmp_path}/s.db?synchronous=OFF")
    trial = study.ask(worker="w")
    reader = lb.open_study("models", tmp_path / "s.db", read_only=True)
    for change in (reader.ask, reader.forget, lambda: reader.heartbeat("w"), lambda: reader.tell(trial, {})):
        with pytest.raises(lb.StorageError, match="read only"):
            change()
    shown = reader.assign("ann")
    assert (shown, shown.reason) == ((None, None, study.answer.arm, None, None), "leader")
    study.tell(trial, measure(trial.arm, trial.item))
    go_on(study)
    assert reader.assign("ann") == (None, None, study.answer.arm, None, None)


def test_looking_for_a_study_makes_no_file(tmp_path):
    path = tmp_path / "mistyped.db"
    assert lb.list_studies(path) == []
    for look in (lb.open_study, lb.delete_study):
        with pytest.raises(lb.UnknownStudyError, match=r"there is no .*mistyped\.db"):
            look("models", path)
    assert not list(tmp_path.iterdir())


def test_a_backup_put_in_the_place_of_an_open_file_is_noticed(tmp_path):
    path = tmp_path / "s.db"
    study = create(path)
    before = study.ask()
    copy = sqlite3.connect(tmp_path / "backup.db")
    with closing(sqlite3.connect(path)) as source:
        source.backup(copy)
    copy.close()
    lost = study.ask()
    os.replace(tmp_path / "backup.db", path)
    for rest in ("-wal", "-shm"):
        (tmp_path / f"s.db{rest}").unlink(missing_ok=True)
    assert study.tell(before, measure(before.arm)) == "counted"
    with pytest.raises(lb.UnknownTrialError):
        study.tell(lost, measure(lost.arm))
    assert lb.open_study("models", path).status.results == 1
    for file in tmp_path.glob("s.db*"):
        file.unlink()
    with pytest.raises(lb.StorageError, match="is gone"):
        study.ask()


def test_a_closed_study_is_one_file_and_opens_again(tmp_path):
    study = create(tmp_path / "s.db")
    go_on(study, 7)
    study.close()
    shutil.copy(tmp_path / "s.db", tmp_path / "copy.db")
    assert lb.open_study("models", tmp_path / "copy.db").status.results == 7
    go_on(study, 1)
    assert study.status.results == 8


@pytest.mark.parametrize(
    "address",
    [
        "postgresql://u:hunter2@127.0.0.1:1/db",
        "postgresql://127.0.0.1:1/db?user=u&password=hunter2",
        "postgresql://u:hunter2@h:abc/db",
        "postgresql://u:2024/hunter2@127.0.0.1:1/db",
        "postgresql:/u:hunter2@h/db",
        "http://user:hunter2@127.0.0.1:1",
        "http://127.0.0.1:1/?token=hunter2",
        "http://127.0.0.1:1/#token=hunter2",
        "mysql://u:hunter2@h/db",
    ],
)
def test_no_error_shows_a_password(address, monkeypatch):
    monkeypatch.setattr("lexbandits.study.storage.http.PATIENCE", 0.1)
    with pytest.raises(lb.StorageError) as raised:
        lb.list_studies(address)
    error = raised.value
    while error is not None:
        assert "hunter2" not in str(error)
        error = error.__cause__


@pytest.mark.parametrize(
    "words",
    [{"delta": 0}, {"max_arms": 1}, {"budget": 0}, {"lease": "0s"}, {"lease": -1}, {"max_failures": 0}],
    ids=str,
)
def test_every_mistake_in_a_question_is_a_study_error(words):
    with pytest.raises(lb.StudyError) as raised:
        create(**words)
    assert next(iter(words)) in str(raised.value)


def test_mistakes_in_calls_are_study_errors():
    study = create()
    for call in (
        lambda: study.ask_many(-1),
        lambda: study.set_budget(0),
        lambda: study.ask(lease="0s"),
        lambda: lb.Objective("x", margin=float("nan"), noise="gaussian"),
    ):
        with pytest.raises(lb.StudyError):
            call()
    assert len(list(study.events())) == 1


def test_the_reason_of_the_only_arm_left_names_the_others():
    study = create(arms=["a", "b"], objectives=BOUNDED, max_failures=2)
    while study.status.state == "measuring":
        trial = study.ask()
        study.fail(trial) if trial.arm == "b" else study.tell(trial, {"err": 1})
    answer = study.answer
    assert answer.arm == "a"
    assert (
        "b could not be measured (2 failures in a row): the answer speaks of the one arm left"
        in answer.reason
    )


@pytest.mark.parametrize(
    ("policy", "words"), [("continue", "short of the closest"), ("stop", "stopped there")]
)
def test_the_reason_names_a_target_that_nobody_meets(policy, words):
    objective = lb.Objective("refusals", "minimize", at_most=0.2, slack=0.1, noise="bernoulli")
    study = create(objectives=[objective], if_infeasible=policy)
    study.run(lambda arm: {"refusals": 1}, progress=False)
    assert "no arm has refusals of at most 0.2" in study.answer.reason
    assert words in study.answer.reason
    assert study.status.reason == study.answer.reason


@pytest.mark.parametrize("policy", ["continue", "stop"])
def test_who_left_before_a_target_may_meet_it(policy):
    """The quick arm is out before anybody is asked how quick it is."""
    right = lb.Objective("right", margin=0.1, noise="exact")
    wait = lb.Objective("wait", "minimize", unit="ms", at_most=1000, noise="exact")
    study = create(arms=["quick", "good", "better"], objectives=[right, wait], if_infeasible=policy)
    truth = {"quick": (0.2, 50), "good": (0.8, 2000), "better": (0.85, 3000)}
    study.run(lambda arm: dict(zip(("right", "wait"), truth[arm], strict=True)), progress=False)
    assert "no arm that got that far has wait of at most 1,000 ms" in study.answer.reason
    explained = study.explain()
    assert "no arm that got that far has wait of at most 1,000 ms" in explained.sentence
    reasons = [reason.sentence for story in explained.arms for reason in story.reasons]
    assert any("no arm that got that far meets the limit of 1,000 ms" in reason for reason in reasons)
    assert not any("no arm meets" in reason for reason in reasons)


def test_a_study_in_memory_says_why_it_cannot_be_sent_away():
    with pytest.raises(TypeError, match="cannot leave its process"):
        pickle.dumps(create())


def test_a_worker_that_tells_again_after_a_correction_repeats(address):
    study = create(address)
    others = study.ask_many(3)
    trial = others.pop()
    told = measure(trial.arm)
    study.tell(trial, told)
    assert study.correct(trial, {"correct": 0, "latency": 77}, "typo") == "corrected"
    for handle in (study, lb.open_study("models", storage_of(study))):
        assert handle.tell(trial, told) == "repeated"
        assert handle.tell(trial, {"correct": 0, "latency": 77}) == "repeated"
        with pytest.raises(lb.ConflictError):
            handle.tell(trial, {"correct": 0, "latency": 78})
    projection = replay_of(study).projection
    assert type(projection).from_bytes(projection.to_bytes()).first_told == projection.first_told != {}


def test_opening_leaves_the_collector_as_it_was(tmp_path):
    create(tmp_path / "s.db")
    for switch in (gc.disable, gc.enable):
        switch()
        before = gc.isenabled()
        lb.open_study("models", tmp_path / "s.db")
        assert gc.isenabled() == before
    with pytest.raises(lb.UnknownStudyError):
        lb.open_study("nobody", tmp_path / "s.db")
    assert gc.isenabled()


def test_whatever_is_wrong_is_an_error_of_the_study():
    study = create()
    wrong = (
        lambda: study.run(measure, workers=0, progress=False),
        lambda: study.events(-1),
        lambda: study.reorder(["correct", 3]),
    )
    for call in wrong:
        with pytest.raises(lb.StudyError):
            call()


@pytest.mark.parametrize(
    ("lose", "words"),
    [
        (lambda study, trial: study.release(trial), "24 of 88 trials were given back or broken off"),
        (
            lambda study, trial: study.fail(trial, interrupted=True),
            "24 of 64 trials were given back or broken off",
        ),
        (lambda study, trial: study.fail(trial), "24 of 64 results were lost"),
        (lambda study, trial: study.tell(trial, {"other": 1}), "err is missing in 24 of 64 results"),
    ],
)
def test_much_that_all_arms_lose_alike_warns(lose, words):
    objectives = [*BOUNDED, lb.Objective("other", margin=2, noise=("bounded", 0, 10))]
    study = create(arms=["a", "b"], objectives=objectives, max_failures=99)
    few = create(arms=["a", "b"], objectives=objectives, max_failures=99)
    for handle, lost in ((study, 24), (few, 8)):
        for number, trial in enumerate(handle.ask_many(64)):
            if number < lost:
                lose(handle, trial)
            else:
                handle.tell(trial, {"err": 1 + 8 * (trial.arm == "b"), "other": 1})
        for trial in handle.ask_many(lost):
            handle.tell(trial, {"err": 1 + 8 * (trial.arm == "b"), "other": 1})
    assert study.answer.certified
    assert "assumption_warning" in study.answer.flags
    assert words in study.answer.reason
    happened = [s.observed for s in study.explain().diagnostics if s.severity == "warning"]
    assert len(happened) == 1
    assert "these are many" in happened[0]
    assert "assumption_warning" not in few.answer.flags


@pytest.mark.parametrize(("agreed", "flagged"), [((), True), (("err",), True), (("err", "other"), False)])
def test_losses_warn_unless_something_was_agreed_for_every_objective(agreed, flagged):
    values = {name: {"if_failed": 1} if name in agreed else {} for name in ("err", "other")}
    noise = {"margin": 2, "noise": ("bounded", 0, 10)}
    study = create(
        arms=["a", "b"],
        objectives=[lb.Objective(n, **noise, **w) for n, w in values.items()],
        max_failures=99,
    )
    for number, trial in enumerate(study.ask_many(64)):
        if number < 24:
            study.fail(trial, "no")
        else:
            study.tell(trial, {"err": 5, "other": 5})
    assert any(diagnostic.severity == "warning" for diagnostic in study.explain().diagnostics) is flagged


# --- what is recorded of an end is what the replay finds


def test_an_answer_is_compared_with_what_was_known_at_its_end():
    study = create(max_arms=4)
    go_on(study)
    study.withdraw("small", "too old")
    study.amend("latency", margin=6)
    study.add_arm("fourth")
    go_on(study, 200)
    assert study.verify().problems == ()
