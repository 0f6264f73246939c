"""`lexbandits run STUDY.toml -- command`: any program measures; real processes, really killed."""

import json
import os
import re
import signal
import sys
import time
import tracemalloc

import pytest

import lexbandits as lb
from lexbandits.study.measure.programs import LAST_LINE, Program, ProgramFailed, Stopped, values_of
from support import command
from support.consoles import HOLD, start_run
from support.patience import alive, number_in, until
from support.services import Clocked

TOML = """
[study]
name = "models"
storage = "study.db"
[[objectives]]
name = "correct"
margin = 0.4
noise = "bernoulli"
[[objectives]]
name = "latency"
direction = "minimize"
margin = 4
noise = ["bounded", 0, 100]
[[arms]]
name = "small one"
chance = 0.2
[[arms]]
name = "large"
chance = 1
"""

# leaves a line of what it measured, then prints it
MEASURE = """
import random, sys, time
arm, item, chance = sys.argv[1:4]
luck = random.Random(f"{arm}/{item}")
values = f"correct={int(luck.random() < float(chance))} latency={luck.random()}"
time.sleep(0.01)
with open("measured.txt", "a") as file:
    file.write(f"{arm}|{item}|{values}\\n")
print("chatter")
print(values)
"""


@pytest.fixture
def folder(folder):
    (folder / "study.toml").write_text(TOML)
    (folder / "measure.py").write_text(MEASURE)
    return folder


def ran(*arguments, code=0):
    return command.run("run", "study.toml", *HOLD, *arguments, code=code)


def shell(script):
    return ["--", "sh", "-c", script]


PYTHON = ["--", sys.executable, "measure.py", "{arm}", "{item}", "{chance}"]
GOOD = "echo correct=$([ '{arm}' = large ] && echo 1 || echo 0) latency=1"


def study():
    return lb.open_study("models", "study.db")


# --- the arm in use


def test_a_baseline_is_said_on_the_command_line_or_in_the_file(folder):
    switched = ran("--baseline", "small one", *shell(GOOD)).stdout
    assert "decision: switch\nanswer: large (" in switched
    assert study().spec["baseline"] == "small one"
    assert ran("--baseline", "huge", *shell(GOOD), code=2).stderr.count("baseline must be one of the arms")
    (folder / "study.toml").write_text(TOML.replace("study.db", 'kept.db"\nbaseline = "large'))
    kept = json.loads(ran("--json", *shell(GOOD), code=1).stdout)
    assert kept["answer"]["decision"] == "keep"


def test_an_answer_that_is_not_shown_to_be_better_than_the_current_arm_is_no_gate(folder):
    (folder / "study.toml").write_text(TOML.replace("[study]", '[study]\nbudget = 4\nbaseline = "small one"'))
    assert "decision: keep_for_now\n" in ran(*shell(GOOD), code=1).stdout


# --- what the program says


@pytest.mark.parametrize(
    ("output", "values"),
    [
        (b'chatter\n{"correct": 1, "latency": null}\n\n', {"correct": 1, "latency": None}),
        (b"correct=1 latency=2.5", {"correct": 1.0, "latency": 2.5}),
        (b"correct=1, latency=none\r\n", {"correct": 1.0, "latency": None}),
        (b"'two words'=1e3", {"two words": 1000.0}),
        (b"\xff\ncorrect=0", {"correct": 0.0}),
    ],
)
def test_the_last_line_has_the_values(output, values):
    assert values_of(output) == values


@pytest.mark.parametrize(
    "output", [b"", b"\n", b"done", b"correct=high", b"[1]", b'{"correct": 1', b"correct='1"]
)
def test_a_last_line_that_says_nothing_is_a_failure(output):
    with pytest.raises(ProgramFailed):
        values_of(output)


@pytest.mark.parametrize("filler", ["x", "a=1 ", "'", "'a=1' ", '{"a":', "\\ "])
def test_a_last_line_of_any_size_is_read_or_refused_at_once(filler):
    line = filler.encode() * (LAST_LINE // len(filler) + 1)
    started = time.process_time()
    for size, said in ((LAST_LINE, "neither a JSON object nor"), (LAST_LINE + 1, "longer than 65,536 bytes")):
        with pytest.raises(ProgramFailed, match=said) as refused:
            values_of(b"chatter\n" + line[: size - 1] + b"?\n\n")
        assert len(str(refused.value)) < 1000
    assert time.process_time() - started < 2.0
    longest = b"x=1 " + b"y" * (LAST_LINE - 6) + b"=2"
    assert values_of(longest)["x"] == 1.0


def program(script, arms=None, **options):
    return Program(["sh", "-c", script], lambda: arms or {"a": {"name": "a", "level": 3}}, **options)


def test_placeholders_are_filled_in_and_braces_doubled_are_braces():
    assert program("echo x={level} {item} | awk '{{print $1}}'")("a", 7) == {"x": 3.0}
    name = "it's; touch oops"
    spoken = Program(["printf", "%s\nx=%s", "{arm}", "{item}"], lambda: {name: {"name": name}})
    assert spoken(name, 7) == {"x": 7.0}, "no shell reads the names"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["echo", "{size}"], r"arm 'a' has no \{size\}; there are \{arm\}, \{item\}, \{level\}"),
        (["no-such-program"], "no program 'no-such-program'"),
        ([], "say the command"),
    ],
)
def test_a_command_that_cannot_be_is_refused_before_anything_is_measured(command, said):
    with pytest.raises(lb.StudyError, match=said):
        Program(command, lambda: {"a": {"name": "a", "level": 3}})


def test_a_program_that_takes_too_long_is_ended_with_its_children(tmp_path):
    slow = program(f"sleep 600 & echo $! > {tmp_path}/pid; wait", timeout=2)
    with pytest.raises(ProgramFailed, match=r"no result within 2 s"):
        slow("a", 0)
    until(lambda: not alive(number_in(tmp_path / "pid")))


def test_what_a_program_prints_takes_a_bounded_memory_and_time():
    """Lines, complaints and a last line of hundreds of megabytes: only the ends are kept."""
    lines = program("yes | head -c 200000000 | tee /dev/stderr; echo x=1")
    tracemalloc.start()
    try:
        assert lines("a", 0) == {"x": 1.0}
        with pytest.raises(ProgramFailed, match="exit code 3: oh no"):
            program("yes | head -c 100000000 >&2; echo oh no >&2; exit 3")("a", 0)
        with pytest.raises(ProgramFailed, match=r"longer than 65,536 bytes"):
            program("head -c 50000000 /dev/zero | tr '\\0' a")("a", 0)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 8_000_000


def test_a_program_that_prints_without_end_runs_into_its_timeout():
    with pytest.raises(ProgramFailed, match=r"no result within 0\.5 s"):
        program("exec yes", timeout=0.5)("a", 0)


def test_a_program_may_close_its_outputs_long_before_it_ends():
    assert program("echo x=1; exec >&- 2>&-; sleep 1.5")("a", 0) == {"x": 1.0}
    with pytest.raises(ProgramFailed, match=r"no result within 0\.5 s"):
        program("exec >&- 2>&-; sleep 60", timeout=0.5)("a", 0)


def test_a_stopped_program_measures_nothing_more():
    stopped = program("echo x=1")
    stopped.stop()
    with pytest.raises(Stopped):
        stopped("a", 0)


# --- a whole run


def test_a_run_ends_with_the_answer_and_its_reasons(folder):
    done = ran("--workers", 2, *PYTHON)
    assert "models: finished after" in done.stdout
    assert "answer: large (certified" in done.stdout
    assert re.search(r"\n  small one +excluded on correct: worse by 0[.]\d+ over \d+ common", done.stdout)
    measured = [line.split("|") for line in (folder / "measured.txt").read_text().splitlines()]
    trials = study().trials()
    told = trials[trials.state == "told"]
    assert {(arm, int(item)) for arm, item, _ in measured} == set(zip(told.arm, told.item, strict=True))
    again = command.invoked("run", "study.toml", "--json", *PYTHON)
    assert again.exit_code == 0
    assert json.loads(again.stdout)["answer"]["arm"] == "large"
    assert len((folder / "measured.txt").read_text().splitlines()) == len(measured), (
        "nothing was left to measure"
    )


def test_common_items_and_json(folder):
    (folder / "study.toml").write_text(TOML.replace("[study]", '[study]\nitems = ["a b", "c"]'))
    done = ran("--json", *shell('echo {item} >> items; echo \'{{"correct": 1, "latency": 1}}\''))
    found = json.loads(done.stdout)
    assert (found["state"], found["answer"]["exact"]) == ("finished", True), "all of the list is there"
    assert sorted((folder / "items").read_text().split("\n")) == ["", "a b", "a b", "c", "c"]


def test_an_arm_that_always_fails_leaves_and_the_reason_is_on_record(folder):
    failing = "[ '{arm}' = large ] || { echo out of memory >&2; exit 3; }; echo correct=1 latency=1"
    done = ran(*shell(failing.replace("{ e", "{{ e").replace("; }", "; }}")))
    assert "answer: large" in done.stdout
    reasons = [event.payload["reason"] for event in study().events() if event.kind == "failed"]
    assert set(reasons) == {"ProgramFailed: exit code 3: out of memory"}
    assert len(reasons) == 5


def test_a_program_that_always_fails_pauses_the_study(folder):
    done = ran(*shell("exit 1"), code=4)
    assert "failed 5 times in a row" in done.stderr


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_a_run_without_a_certificate_says_what_failed_last(how, folder):
    (folder / "study.toml").write_text(TOML.replace("[study]", "[study]\nbudget = 6\nmax_failures = 100"))
    done = ran(*how, *shell("echo no GPU >&2; exit 3"), code=1)
    assert done.stderr.endswith("failed trials: 6, the last: exit code 3: no GPU\n")
    assert "budget spent" in done.stdout


def test_a_best_guess_is_no_certificate(folder):
    (folder / "study.toml").write_text(TOML.replace("[study]", "[study]\nbudget = 6"))
    done = ran(*shell(GOOD), code=1)
    assert "best guess" in done.stdout
    assert "failed" not in done.stderr


def test_a_timeout_is_a_failure(folder):
    (folder / "study.toml").write_text(TOML.replace("[study]", "[study]\nmax_failures = 1"))
    ran("--timeout", "4s", *shell(f"[ '{{arm}}{{item}}' != 'small one1' ] || sleep 60; {GOOD}"))
    assert study().status.failed == 1


def test_a_value_that_cannot_be_stops_the_run_and_its_trial_stays_open(folder):
    done = ran(*shell("echo correct=2 latency=1"), code=2)
    assert "objective 'correct': a value must be in [0, 1]" in done.stderr
    assert "speed" in ran(*shell("echo speed=2"), code=2).stderr
    assert list(study().trials().state) == ["open", "open"]


def test_what_is_wrong_is_said_before_anything_is_asked(folder):
    assert "{size}" in ran("--", "echo", "{size}", code=2).stderr
    assert "no program" in ran("--", "no-such-program", code=2).stderr
    assert "timeout" in ran("--timeout", "soon", "--", "true", code=2).stderr
    ran(code=2)
    assert len(study().trials()) == 0


# --- killed


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_breaks_off_what_is_being_measured(number, folder):
    with start_run("--workers", 2, *shell("echo $$ >> pids; sleep 600; echo correct=1 latency=1")) as runner:
        until(lambda: (folder / "pids").exists() and len((folder / "pids").read_text().split()) == 2, runner)
        runner.send_signal(number)
        _, said = runner.communicate(timeout=240)
    assert runner.returncode == 128 + number
    assert "2 measurements were under way and count as failed; 0 not begun were given back" in said
    assert "goes on" in said
    assert "Traceback" not in said
    assert list(study().trials().state) == ["failed", "failed"]
    assert study().status.interrupted == 2
    assert not any(alive(int(pid)) for pid in (folder / "pids").read_text().split())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP])
def test_a_signal_that_was_ignored_at_the_start_stays_ignored(number, folder):
    """As a shell does to jobs in the background, and nohup."""
    going = f"echo $$ >> pids; while [ ! -e go ]; do sleep 0.1; done; {GOOD}"
    with start_run(*shell(going), ignored=[number]) as runner:
        until(lambda: (folder / "pids").exists() and (folder / "pids").read_text(), runner)
        runner.send_signal(number)
        (folder / "go").touch()
        out, said = runner.communicate(timeout=240)
    assert runner.returncode == 0, said
    assert "answer: large (certified" in out


def test_a_program_that_ignores_the_signal_is_ended_anyway(folder):
    with start_run(*shell("trap '' TERM; echo $$ > pid; while true; do sleep 0.1; done")) as runner:
        number_in(folder / "pid", runner)
        runner.terminate()
        runner.communicate(timeout=240)
    assert runner.returncode == 143
    assert list(study().trials().state) == ["failed"]


def test_killed_and_started_again_it_goes_on(clock, folder):
    """kill -9 twice in the middle: nothing told is lost, no place is measured twice, the record holds."""
    log = folder / "measured.txt"
    how = ["--workers", 2, *PYTHON]
    for stop_at in (8, 20):
        with start_run(*how, program=Clocked.program) as runner:
            until(lambda goal=stop_at: log.exists() and len(log.read_text().splitlines()) >= goal, runner)
            os.kill(runner.pid, signal.SIGKILL)
        clock.move(3601)
        if stop_at == 8:
            before = study().trials().query("state == 'told'")
            assert len(before) >= 1
    with start_run(*how, program=Clocked.program) as runner:
        out, said = runner.communicate(timeout=240)
    assert runner.returncode == 0, said
    assert "answer: large (certified" in out
    after = study()
    trials = after.trials()
    told = trials[trials.state == "told"]
    assert before[["id", "correct", "latency"]].equals(told.loc[before.index, ["id", "correct", "latency"]])
    assert not told.duplicated(["arm", "item"]).any()
    assert (trials.state == "expired").any(), "what was being measured when it was killed"
    assert not (trials.state == "open").any()
    assert after.verify().ok


# --- what a command itself takes

TAKES = "import time; x = bytearray(bytes([1])) * {size}; time.sleep({nap})"

NAPS = """
[study]
name = "naps"
storage = "{storage}"
objectives = [{{name = "seconds", direction = "minimize", margin = 0.4, noise = ["bounded", 0, 1000]}}]
arms = ["0.4", "0"]
"""


def taking(size, nap=0.0, *, measures=("seconds", "memory"), prints=False, more="", **how):
    line = ["sh", "-c", f"{sys.executable} -c '{TAKES.format(size=size, nap=nap)}'; {more or 'true'}"]
    return Program(line, lambda: {"a": {"name": "a"}}, measures=measures, prints=prints, **how)("a", 0)


def test_the_memory_of_a_command_is_that_of_its_children_and_not_ours():
    ballast = bytearray(b"1" * 400_000_000)  # Linux would count it as the command's
    took = taking(100_000_000, 0.3)
    assert 100 < took["memory"] < 150
    assert 0.3 < took["seconds"] < 250
    assert taking(1)["memory"] < 60
    assert len(ballast) > took["memory"]


def test_what_is_measured_joins_what_is_printed():
    assert taking(1, measures=["seconds"], prints=True, more="echo right=1").keys() == {"right", "seconds"}
    with pytest.raises(ProgramFailed, match="it prints 'seconds', which --measure measures"):
        taking(1, prints=True, more="echo seconds=1")
    with pytest.raises(ProgramFailed, match="exit code 3"):
        taking(1, more="exit 3")
    with pytest.raises(ProgramFailed, match=r"no result within 0\.2 s"):
        taking(1, 60, timeout=0.2)


def test_time_and_memory_decide_a_study_and_its_time_is_limited(tmp_path):
    file = tmp_path / "study.toml"
    file.write_text(NAPS.format(storage=tmp_path / "naps.db"))
    words = ["run", str(file), "--measure", "seconds", "--time-limit", "2s", "--", "sleep", "{arm}"]
    done = command.invoked(*words)
    assert done.exit_code == 1
    assert "the time is up" in done.stdout
    trials = lb.open_study("naps", tmp_path / "naps.db").trials()
    assert (trials["state"] == "told").all()
    assert 1 <= len(trials) <= 14
    slow = trials[trials["arm"] == "0.4"]["seconds"]
    assert ((slow > 0.4) & (slow < 250)).all()
    for name, said in (("speed", "knows seconds, memory"), ("memory", "no objective of this name")):
        done = command.invoked(*words[:3], name, "--", "true")
        assert done.exit_code == 2
        assert said in done.stderr
