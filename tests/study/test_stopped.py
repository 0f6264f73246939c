"""What becomes of trials when a run is stopped, broken or contradicted; and what is read back in."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.study.measure import programs
from lexbandits.study.measure import run as measuring
from lexbandits.study.measure.programs import Program, ProgramFailed, Stopped
from lexbandits.study.measure.run import Run
from lexbandits.study.trial import Trial
from support.command import run
from support.consoles import heeding, start_run
from support.patience import alive, number_in, until
from support.questions import create, measure

TOML = """
[study]
name = "models"
storage = "study.db"
[[objectives]]
name = "correct"
margin = 0.4
noise = "bernoulli"
[[arms]]
name = "small"
[[arms]]
name = "large"
"""


@pytest.fixture
def folder(folder):
    (folder / "study.toml").write_text(TOML)
    return folder


def program(script, **options):
    return Program(["sh", "-c", script], lambda: {"a": {"name": "a"}}, **options)


# --- programs that leave children behind


@pytest.mark.parametrize("child", ["sleep 60", "setsid sleep 60"])
def test_a_child_that_holds_the_output_is_no_way_around_the_timeout(child, monkeypatch):
    monkeypatch.setattr(programs, "GRACE", 0.2)
    with pytest.raises(ProgramFailed, match=r"no result within 0\.5 s"):
        program(f"{child} & echo x=1", timeout=0.5)("a", 0)


@pytest.mark.parametrize(("child", "state"), [("sleep 600", "told"), ("setsid sleep 600", "failed")])
def test_a_child_that_holds_the_output_does_not_outlast_a_signal(child, state, folder):
    with start_run(
        "--json", "--", "sh", "-c", f"{child} & echo $! > child; echo $$ > pid; echo correct=1"
    ) as runner:
        sleeper = number_in(folder / "child", runner)
        until(lambda: Path(f"/proc/{sleeper}/comm").read_text() == "sleep\n")  # in its own session
        pid = number_in(folder / "pid", runner)
        until(lambda: not alive(pid))
        runner.send_signal(signal.SIGTERM)
        out, _ = runner.communicate(timeout=240)
    if alive(sleeper):
        os.kill(sleeper, signal.SIGKILL)
    assert runner.returncode == 143
    assert json.loads(out)["name"] == "models", "one document, stopped or not"
    assert lb.open_study("models", "study.db").trials().state[0] == state


# --- what is handed to measure


def named(arm, model="llama", item=None):
    return arm, model, item


@pytest.mark.parametrize(
    ("measure", "given"),
    [
        (lambda arm: (arm,), ("a",)),
        (lambda arm, model="llama": (arm, model), ("a", "llama")),
        (lambda arm, on: (arm, on), ("a", 7)),
        (lambda arm, item=0: (arm, item), ("a", 7)),
        (lambda item: (item,), ("a",)),
        (lambda *both: both, ("a", 7)),
        (lambda arm, model="llama", *rest: (arm, model, *rest), ("a", "llama")),
        (named, ("a", "llama", 7)),
        (partial(named, model="qwen"), ("a", "qwen", 7)),
        (partial(named, item=3), ("a", "llama", 3)),
    ],
)
def test_only_who_asks_for_the_item_is_given_it(measure, given):
    run = Run(create(), measure, 1, "threads", None, False)
    with ThreadPoolExecutor(1) as pool:
        assert run._submit(pool, Trial(0, "0-0", "a", 7, None)).result() == given


# --- a run that cannot go on


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_a_run_of_python_as_it_ends_the_command(number, tmp_path):
    code = """
import os, sys, time
import lexbandits as lb
x = lb.Objective("x", margin=0.5, noise="bernoulli")
study = lb.create_study("x", sys.argv[1], arms=["a", "b"], objectives=[x], seed=0)
def measure(arm, item):
    open("begun", "a").write(arm)
    while item and not os.path.exists("go"):
        time.sleep(0.02)
    return {"x": 1}
study.run(measure, workers=2, progress=False)
"""
    command = heeding([sys.executable, "-c", code, "study.db"])
    begun = tmp_path / "begun"
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as runner:
        until(lambda: begun.exists() and len(begun.read_text()) >= 3, runner)
        runner.send_signal(number)
        study = lb.open_study("x", tmp_path / "study.db")
        until(lambda: study.status.interrupted, runner)
        (tmp_path / "go").touch()
        runner.communicate(timeout=240)
    assert study.status.open == 0
    assert study.status.interrupted == len(study.trials().query("state == 'failed'")) >= 1
    assert runner.returncode in (128 + number, -number)


def test_a_signal_that_does_not_wake_the_main_thread_is_seen_while_it_is_measured(monkeypatch):
    """The kernel gives it to any thread, or just before the main thread begins to wait."""
    monkeypatch.setattr(measuring, "LOOK_AGAIN", 0.1)
    study, waits, wait = create(), threading.Event(), measuring.wait

    def noted(*given):
        waits.set()
        return wait(*given)

    monkeypatch.setattr(measuring, "wait", noted)

    def measure(arm):
        waits.wait(600)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        until(lambda: study.status.interrupted)

    with pytest.raises(SystemExit, match="143"):
        study.run(measure, progress=False)
    assert study.status.interrupted == 1


def test_a_program_begun_while_everything_is_stopped_is_asked_to_end_like_the_others(monkeypatch):
    """A signal may come between its start and the note that it runs; else only kill -9 would reach it."""
    running = program("sleep 60")
    begin = subprocess.Popen

    def begin_and_stop(*given, **words):
        process = begin(*given, **words)
        running.stop()
        return process

    monkeypatch.setattr(programs, "GRACE", 600.0)
    monkeypatch.setattr(subprocess, "Popen", begin_and_stop)
    with pytest.raises(Stopped):
        running("a", 0)


class Signalled(ThreadPoolExecutor):
    """A signal comes when the measurement runs and nobody has noted yet that it does."""

    def submit(self, *given, **words):
        super().submit(*given, **words).result()
        raise KeyboardInterrupt


def test_what_was_begun_in_the_moment_of_a_signal_is_not_measured_again():
    study = create()
    with Signalled(1) as pool, pytest.raises(KeyboardInterrupt):
        study.run(measure, executor=pool, progress=False)
    assert study.trials().state.to_list() == ["failed"]
    assert study.status.interrupted == 1


def test_what_was_noted_in_the_moment_of_a_signal_is_told_and_what_was_not_begun_is_given_back():
    study = create()
    run = Run(study, measure, 1, "threads", None, False)
    trial, _ = study.ask_many(2, worker=run.name)
    done = Future()
    done.set_result(measure(trial.arm, trial.item))
    run._busy, run._beginning, run._asking = {done: trial}, trial, True
    run._give_up()
    assert study.trials().state.to_list() == ["told", "released"]


def crash_on_large(arm):
    if arm == "large":
        os._exit(1)
    time.sleep(0.2)
    return measure(arm)


def test_a_broken_pool_leaves_no_orphans_and_fails_nobody_else():
    study = create()
    with pytest.raises(BrokenExecutor):
        study.run(crash_on_large, workers=3, executor="processes", progress=False)
    status = study.status
    assert (status.failed, status.open) == (status.interrupted, 0), "which of them broke it nobody knows"


def test_who_breaks_a_pool_alone_has_failed():
    study = create()
    with pytest.raises(BrokenExecutor):
        study.run(crash_on_large, workers=1, executor="processes", progress=False)
    assert study.trials().query("arm == 'large'").state.tolist() == ["failed"]
    assert study.status.open == 0


def test_an_interrupt_right_after_an_ask_leaves_no_orphan(monkeypatch):
    study = create()
    tell_ask, stopping = study.tell_ask, []

    def interrupted(results, *how, **words):
        given = tell_ask(results, *how, **words)
        if len(study.trials()) > 8:
            stopping.append(len(results))
            raise KeyboardInterrupt
        return given

    monkeypatch.setattr(study, "tell_ask", interrupted)
    with pytest.raises(KeyboardInterrupt):
        study.run(measure, workers=2, progress=False)
    assert stopping
    assert study.status.open == 0


def test_what_cannot_be_submitted_is_released():
    study = create()
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    with pytest.raises(RuntimeError, match="shutdown"):
        study.run(measure, executor=pool, progress=False)
    assert study.trials().state.tolist() == ["released"]


def test_a_refused_value_stays_open_when_its_run_leaves_no_orphans():
    study = create()
    with pytest.raises(lb.ValueOutOfRange):
        study.run(lambda arm: {"correct": 3}, progress=False)
    assert study.trials().state.tolist() == ["open"]


class FailsMeanwhile(Executor):
    """The first task is interrupted; when somebody sees that, the second has failed."""

    def __init__(self):
        self.first, self.second = Interrupted(), Future()
        self.first.other = self.second
        self.given = iter([self.first, self.second])

    def submit(self, *_):
        future = next(self.given)
        future.set_running_or_notify_cancel()
        if future is self.first:
            future.set_exception(KeyboardInterrupt())
        return future


class Interrupted(Future):
    def exception(self, timeout=None):
        if not self.other.done():
            self.other.set_exception(RuntimeError("out of memory"))
        return super().exception(timeout)


def test_what_failed_while_a_run_was_being_stopped_has_failed():
    """Released it would be asked again: whoever fails only on bad values could choose by them."""
    study = create()
    with pytest.raises(KeyboardInterrupt):
        study.run(measure, workers=2, executor=FailsMeanwhile(), progress=False)
    assert study.trials().state.tolist() == ["failed", "failed"]
    assert study.status.interrupted == 1


def test_an_exit_code_from_before_the_signal_is_a_failure(tmp_path, monkeypatch):
    """It says more than a pipe holds: when it has, somebody reads, and its start is noted."""
    chatter, begin, begun = "head -c 1000000 /dev/zero", subprocess.Popen, []
    failing = program(f"{chatter}; sleep 600 & echo $$ > {tmp_path}/pid; exit 3")

    def begin_and_note(*given, **words):
        begun.append(begin(*given, **words))
        return begun[-1]

    monkeypatch.setattr(subprocess, "Popen", begin_and_note)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(failing, "a", 0)
        pid = number_in(tmp_path / "pid", future)
        until(lambda: not alive(pid), future)
        with begun[0]._waitpid_lock:  # as while the other thread asks how it ended
            failing.stop()
        failing.stop()
        with pytest.raises(ProgramFailed, match="exit code 3"):
            future.result(240)


def test_an_exit_code_from_before_the_signal_is_a_failure_while_others_hold_the_output(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "GRACE", 0.2)
    failing = program(f"setsid sleep 600 & echo $! > {tmp_path}/child; echo $$ > {tmp_path}/pid; exit 3")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(failing, "a", 0)
        child, pid = number_in(tmp_path / "child"), number_in(tmp_path / "pid")
        until(lambda: not alive(pid) and Path(f"/proc/{child}/comm").read_text() == "sleep\n")
        failing.stop()
        try:
            with pytest.raises(ProgramFailed, match="exit code 3"):
                future.result(500)
        finally:
            os.kill(child, signal.SIGKILL)


def test_a_program_that_fails_in_the_moment_of_a_signal_has_failed(monkeypatch):
    """It is there, nobody has noted yet that it runs, and it ends by itself before anybody asks it to."""
    failing = program("exit 3")
    begin = subprocess.Popen

    def begin_and_stop(*given, **words):
        process = begin(*given, **words)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        failing.stop()
        return process

    monkeypatch.setattr(subprocess, "Popen", begin_and_stop)
    with pytest.raises(ProgramFailed, match="exit code 3"):
        failing("a", 0)


@pytest.mark.parametrize(("ends", "state"), [("exit 3", "failed"), ("echo correct=1 latency=9", "told")])
def test_a_program_that_ended_by_itself_is_not_interrupted_with_the_others(ends, state, tmp_path):
    """Its thread may say so a moment after another's has said that it was broken off."""
    study = create(arms=["quick", "slow"])
    script = f"if [ {{arm}} = slow ]; then touch {tmp_path}/begun; sleep 600; fi; {ends}"
    running = Program(["sh", "-c", script], lambda: study.arms)
    broken_off = threading.Event()

    def measured(arm, item):
        try:
            return running(arm, item)
        except Stopped:
            broken_off.set()
            raise
        finally:
            if arm == "quick":
                until((tmp_path / "begun").exists)
                running.stop()
                broken_off.wait(240)
                time.sleep(0.3)  # in which nobody may decide what became of it

    with pytest.raises(Stopped):
        study.run(measured, workers=2, progress=False)
    trials = study.trials().set_index("arm").state
    assert (trials["quick"], trials["slow"]) == (state, "failed")
    assert study.status.interrupted == 1


def test_an_exit_code_because_of_the_signal_is_none(tmp_path):
    stopped = program(f"trap 'exit 3' TERM; echo $$ > {tmp_path}/pid; while true; do sleep 0.1; done")
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(stopped, "a", 0)
        number_in(tmp_path / "pid", future)
        stopped.stop()
        stopped.stop()
        with pytest.raises(Stopped):
            future.result(240)


# --- somebody else's hand


@pytest.mark.parametrize("fails", [False, True])
def test_a_trial_that_somebody_releases_does_not_end_the_run(fails):
    study, released = create(), []

    def measured(arm, item):
        if item == 3 and arm == "small" and not released:
            mine = study.trials().query("state == 'open' and arm == 'small' and item == 3")
            released.extend(mine.id)
            study.release(released[0])
            if fails:
                raise RuntimeError("it is gone")
        return measure(arm, item)

    assert study.run(measured, workers=2, progress=False).certified
    trials = study.trials()
    assert trials.state.value_counts()["released"] == 1
    assert len(trials.query("arm == 'small' and item == 3 and state == 'told'")) == 1
    assert study.status.open == 0


def test_a_contradiction_still_ends_the_run():
    study = create(
        objectives=[lb.Objective("cost", margin=0.2, noise="gaussian"), lb.Objective("size", noise="exact")]
    )
    values = iter(range(100))
    with pytest.raises(lb.ConflictError, match="exact"):
        study.run(lambda arm: {"size": next(values), "cost": 1}, progress=False)


# --- what a run says when it stops


def unable(arm):
    raise RuntimeError("no GPU")


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_run_that_measured_nothing_says_why(executor):
    study = create()
    with pytest.raises(lb.StudyPaused, match=r"times in a row.*RuntimeError: no GPU.*resume"):
        study.run(unable, executor=executor, progress=False)
    with pytest.raises(lb.StudyPaused, match="times in a row"):
        study.run(unable, executor=executor, progress=False)


def test_the_command_says_why_it_measured_nothing(folder):
    done = run("run", "study.toml", "--", "sh", "-c", "echo no GPU >&2; exit 3", code=4)
    assert "exit code 3: no GPU" in done.stderr


def test_a_study_in_memory_is_not_made_for_a_process_that_ends(folder):
    assert (
        "ends with its process" in run("study", "create", "study.toml", "--storage", "memory", code=2).stderr
    )
    (folder / "study.toml").write_text(TOML.replace("study.db", "memory"))
    assert "created" not in run("study", "create", "study.toml", code=2).stdout


# --- results from files


NAMES = ["None", "0.10", "0.1", "NA", "1e3"]


@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_names_in_a_file_are_read_as_they_are_written(kind, folder):
    study = create("study.db", arms=NAMES, items=["007", "null"], scope="population")
    rows = [(name, item, index / 10) for index, name in enumerate(NAMES) for item in ("007", "null")]
    frame = pd.DataFrame(rows, columns=["variant", "item", "correct"])
    frame.loc[0, "correct"] = None
    if kind == "csv":
        frame.to_csv("rows.csv", index=False)
    else:
        frame.to_json("rows.jsonl", orient="records", lines=True)
    words = (
        "study",
        "import",
        "models",
        f"rows.{kind}",
        "--fair",
        "--arm",
        "variant",
        "--storage",
        "study.db",
    )
    assert "9 results" in run(*words).stdout
    read = study.trials().set_index(["arm", "item"]).correct
    for name, item, value in rows[1:]:
        assert read[name, item] == value
    assert pd.isna(read["None", "007"])


def test_items_that_are_numbers_stay_numbers(folder):
    study = create("study.db", items=[1, 2], scope="population")
    pd.DataFrame({"arm": ["small", "large"], "item": [1, 2], "correct": [1, 0]}).to_csv("rows.csv")
    run("study", "import", "models", "rows.csv", "--fair", "--storage", "study.db")
    assert study.status.results == 2
    assert set(study.trials().item) == {1, 2}


def test_rows_of_a_withdrawn_arm_are_refused():
    study = create()
    study.withdraw("cot", "too dear")
    frame = pd.DataFrame({"arm": ["small", "cot"], "correct": [1, 0]})
    with pytest.raises(
        lb.ConflictError, match="'cot' was withdrawn: restore it first, or leave its rows out"
    ):
        study.import_results(frame, fair=True)
    study.restore("cot")
    assert study.import_results(frame, fair=True) == 2


def test_trials_can_be_taken_over_after_a_release_and_a_failure(folder):
    study = create()
    study.release(study.ask())
    for _ in range(7):
        trial = study.ask()
        study.tell(trial, measure(trial.arm, trial.item))
    study.fail(study.ask(), "out of memory")
    study.ask()
    study.export("trials.csv")
    other = create(folder / "other.db")
    words = ("study", "import", "models", "trials.csv", "--fair", "--storage", "other.db")
    assert "7 results" in run(*words).stdout
    told = study.trials().query("state == 'told'").set_index(["arm", "item"]).latency
    taken = other.trials().set_index(["arm", "item"]).latency.dropna()
    assert taken.sort_index().equals(told.sort_index())


def test_a_column_state_that_is_not_ours_means_nothing():
    frame = pd.DataFrame({"arm": ["small", "large"], "correct": [1, 0], "state": ["Ohio", "Texas"]})
    assert create().import_results(frame, fair=True) == 2
