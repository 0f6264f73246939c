"""`lexbandits study …`: what scripts rely on, in processes of their own where that matters."""

import json
import math
import os
import re
import resource
import subprocess
import sys
import tomllib

import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.cli.terminal import print_table
from lexbandits.report.study_report import toml
from lexbandits.study.storage import sqlite as sqlite_module
from lexbandits.study.storage.file_lock import FileLock
from support.command import invoked, process, run, said
from support.journals import storage_of
from support.questions import create, go_on, measure

ARMS = ("small", "large", "cot")
TOML = """
[study]
name = "models"
max_arms = 4
[[objectives]]
name = "correct"
margin = 0.2
noise = "bernoulli"
[[objectives]]
name = "latency"
direction = "minimize"
unit = "ms"
margin = 4
noise = ["bounded", 0, 100]
[[arms]]
name = "small"
[[arms]]
name = "large"
[[arms]]
name = "cot"
"""


@pytest.fixture
def folder(folder):
    (folder / "models.toml").write_text(TOML)
    return folder


@pytest.fixture
def made(folder):
    run("study", "create", "models.toml")
    return folder


# --- the forms that scripts rely on


def test_create_ask_tell_status_in_processes_of_their_own(folder):
    done = process("study", "create", "models.toml")
    assert (done.returncode, done.stderr) == (0, "")
    assert (folder / "lexbandits.db").exists(), "the default storage is a file in this folder"
    done = process("study", "ask", "models", "--json")
    trial = json.loads(done.stdout)
    assert (done.returncode, done.stderr) == (0, "")
    assert list(trial) == ["number", "id", "arm", "item", "until"]
    assert (trial["number"], trial["arm"], trial["item"]) == (0, "small", 0)
    done = process("study", "tell", "models", trial["id"], "correct=1", "latency=5.5")
    assert (done.returncode, done.stdout, done.stderr) == (0, "recorded\n", "")
    done = process("study", "status", "models", "--json")
    status = json.loads(done.stdout)
    assert (status["state"], status["objective"], status["results"]) == ("measuring", "correct", 1)
    assert status["answer"]["certified"] is False
    assert list(lb.open_study("models", "lexbandits.db").trials()["latency"]) == [5.5]


PROBE = """
import sys
from lexbandits.cli.main import app
app(sys.argv[1:], standalone_mode=False)
heavy = ("numba", "pandas", "rich", "lexbandits.policies")
print([name for name in heavy if name in sys.modules], file=sys.stderr)
"""


def loaded(*arguments):
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *arguments], capture_output=True, text=True, timeout=240, check=True
    )
    return done.stdout, done.stderr.strip()


def test_tell_loads_no_policy_and_ask_no_compiler(made):
    out, modules = loaded("study", "ask", "models", "--json")
    assert modules == "['lexbandits.policies']"
    trial = json.loads(out)["id"]
    assert loaded("study", "tell", "models", trial, "correct=1", "latency=1") == ("recorded\n", "[]")


@pytest.mark.parametrize(("word", "most"), [("tell", 1.0), ("ask", 1.5)])
def test_a_new_process_is_soon_done(word, most, made):
    """In processor time, the best of three: how long others keep the machine is not ours to promise."""
    trial = said("study", "ask", "models")["id"]
    rest = [trial, "correct=1", "latency=5"] if word == "tell" else ["--json"]
    times = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        assert process("study", word, "models", *rest).returncode == 0
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < most


def test_create_takes_the_current_arm(folder):
    run("study", "create", "models.toml", "--baseline", "small")
    assert said("study", "status", "models")["answer"]["decision"] == "keep_for_now"
    run("study", "create", "models.toml", "--baseline", "tiny", "--storage", "other.db", code=2)
    assert not (folder / "other.db").exists()


def test_create_takes_shares_of_the_visitors(folder):
    words = ("--traffic", "0.5", "--warmup", "2d", "--shares", "small=0.2", "--shares", "cot=0:0.5")
    run("study", "create", "models.toml", *words)
    spec = lb.open_study("models", "lexbandits.db").spec
    assert (spec["traffic"], spec["warmup"]) == (0.5, "2d")
    assert spec["shares"] == {"small": [0.2, 1.0], "cot": [0.0, 0.5]}
    (folder / "again.toml").write_text(toml(spec))
    run("study", "create", "again.toml", "--storage", "again.db")
    assert lb.open_study("models", "again.db").spec == spec
    for wrong in ("small", "small=", "small=0.1:0.2:0.3", "small=half"):
        done = run("study", "create", "models.toml", "--storage", "other.db", "--shares", wrong, code=2)
        assert "--shares takes ARM=FLOOR or ARM=FLOOR:CEILING" in done.stderr


def test_the_environment_names_the_storage(folder, monkeypatch):
    monkeypatch.setenv("LEXBANDITS_STORAGE", f"sqlite:///{folder}/other.db?synchronous=OFF")
    assert said("study", "create", "models.toml") == {"name": "models", "storage": f"{folder}/other.db"}
    assert said("study", "list") == ["models"]
    assert said("study", "list", "--storage", folder / "third.db") == []
    assert not (folder / "third.db").exists()
    assert not (folder / "lexbandits.db").exists()


def test_the_file_may_name_the_storage(folder):
    (folder / "models.toml").write_text(
        TOML.replace('name = "models"', 'name = "models"\nstorage = "mine.db"', 1)
    )
    run("study", "create", "models.toml")
    assert said("study", "list", "--storage", "mine.db") == ["models"]


# --- exit codes


def error(code, kind, *arguments):
    """An error is a line on stderr, a JSON document on stdout if asked for, and a code."""
    plain = run(*arguments, code=code)
    assert plain.stdout == ""
    assert plain.stderr.startswith("Error: ")
    assert plain.stderr.count("\n") == 1
    assert said(*arguments, code=code) == {"error": kind, "message": plain.stderr[7:-1]}
    return plain.stderr


def test_exit_codes(made):
    assert "no study 'modles'" in error(2, "UnknownStudyError", "study", "ask", "modles")
    assert "'models'" in error(4, "StudyExistsError", "study", "create", "models.toml")
    run("study", "create", "models.toml", "--load-if-exists")
    (made / "models.toml").write_text(TOML.replace("margin = 4", "margin = 6"))
    assert "6.0" in error(4, "SpecMismatchError", "study", "create", "models.toml", "--load-if-exists")
    trial = said("study", "ask", "models")["id"]
    error(2, "UnknownTrialError", "study", "tell", "models", "7-00000000", "correct=1")
    assert "[0, 1]" in error(2, "ValueOutOfRange", "study", "tell", "models", trial, "correct=2")
    error(2, "ValueOutOfRange", "study", "tell", "models", trial, "speed=2")
    error(2, "ValueOutOfRange", "study", "tell", "models", trial, "latency=inf")
    error(2, "StudyError", "study", "tell", "models", trial, "correct")
    error(2, "StudyError", "study", "tell", "models", trial, "correct=yes")
    error(2, "StudyError", "study", "tell", "models", trial, "correct=1", "correct=1")
    run("study", "tell", "models", trial, "correct=1", "latency=none")
    error(4, "ConflictError", "study", "tell", "models", trial, "correct=0", "latency=none")
    run("study", "pause", "models", "lunch")
    assert "lunch" in error(4, "StudyPaused", "study", "ask", "models")
    run("study", "resume", "models")
    run("study", "end", "models", "enough")
    error(3, "StudyFinished", "study", "ask", "models")
    error(3, "StudyFinished", "study", "end", "models", "enough")
    run("study", code=2)
    run("study", "tell", "models", code=2)


def test_a_busy_storage_is_exit_code_5(made, monkeypatch):
    monkeypatch.setattr(sqlite_module, "PATIENCE", 0.1)
    gate = FileLock(made / "lexbandits.db", 1)
    gate.take()
    error(5, "StorageBusyError", "study", "ask", "models")
    gate.close()


def test_a_file_with_a_mistake_is_named(folder):
    (folder / "models.toml").write_text(TOML.replace("margin = 0.2", 'margin = ["0.1"]'))
    assert "margin" in error(2, "StudyError", "study", "create", "models.toml")
    (folder / "models.toml").write_text("name =")
    assert "not TOML" in error(2, "StudyError", "study", "create", "models.toml")
    error(2, "FileNotFoundError", "study", "create", "other.toml")
    assert "memory" in error(2, "StorageError", "study", "list", "--storage", "memory")
    assert not (folder / "lexbandits.db").exists()


# --- telling


def test_values_may_be_missing_and_names_may_have_spaces(folder):
    lb.create_study(
        "a study",
        "lexbandits.db",
        arms=["a", "b"],
        objectives=[{"name": "x = y", "margin": 2}, {"name": "z", "margin": 2}],
        seed=0,
    )
    trial = said("study", "ask", "a study", "--lease", "2s", "--worker", "me", "--request", "r1")
    assert said("study", "ask", "a study", "--request", "r1")["id"] == trial["id"]
    outcome = said("study", "tell", "a study", trial["id"], "x = y=-1e3", "z=NaN")
    assert outcome == {"trial": trial["id"], "outcome": "recorded"}
    row = lb.open_study("a study", "lexbandits.db").trials().iloc[0]
    assert row["x = y"] == -1000
    assert pd.isna(row["z"])
    assert row["worker"] == "me"


def test_a_result_recorded_without_a_policy_counts_like_any_other(folder):
    """The same study by commands and by Python: the same journal but for its times and nonces."""
    run("study", "create", "models.toml")
    lb.study_from_toml("models.toml", "other.db")
    other = lb.open_study("models", "other.db")
    for _ in range(30):
        trial = said("study", "ask", "models")
        values = measure(trial["arm"], trial["item"])
        run("study", "tell", "models", trial["id"], *(f"{name}={value!r}" for name, value in values.items()))
        twin = other.ask()
        assert (twin.arm, twin.item) == (trial["arm"], trial["item"])
        other.tell(twin, values)
    study = lb.open_study("models", "lexbandits.db")
    assert study.results().equals(other.results())
    storage_of(study).close()


def test_whoever_looks_next_records_the_end(made):
    study = lb.open_study("models", "lexbandits.db")
    only = lb.open_study("models", "lexbandits.db")
    while not study.policy.finished:
        trial = study.ask()
        assert only.record(trial, measure(trial.arm, trial.item)) == "recorded"
    assert [event.kind for event in only.events()][-1] == "finished"
    assert said("study", "status", "models")["state"] == "finished"
    shown = run("study", "status", "models").stdout
    assert re.search(r"\n  cot +excluded on latency: worse by [\d.,]+ \w+ over \d+ common", shown)
    assert "∞" not in shown
    rows = {(row["arm"], row["objective"]): row for row in said("study", "results", "models")}
    outcomes = []
    for arm, outcome, *cells in re.findall(
        r"│ (\w+) +│ (\w+) +│ \d+ +│ (.*?) +│ (.*?) +│", run("study", "results", "models").stdout
    ):
        outcomes.append(outcome)
        for name, cell in zip(("correct", "latency"), cells, strict=True):
            mean, *ends = map(
                float, re.fullmatch(r"([\d.]+)(?: \(([\d.]+)–([\d.]+)\))?", cell).groups(math.nan)
            )
            row = rows.pop((arm, name))
            assert mean == pytest.approx(row["mean"], abs=0.06)
            if not math.isnan(ends[0]):
                assert ends[0] <= row["mean"] <= ends[1]
    assert not rows
    assert outcomes[0] == "winner"
    assert "candidate" not in outcomes, "of a study that has ended"


def test_an_arm_that_cannot_be_measured_leaves(made):
    study = lb.open_study("models", "lexbandits.db")
    for _ in range(40):
        trial = study.ask()
        if trial.arm == "cot":
            assert said("study", "fail", "models", trial.id, "no memory")["outcome"] == "counted"
        else:
            study.tell(trial, measure(trial.arm, trial.item))
    assert "cot" not in said("study", "status", "models")["candidates"]


def test_fail_and_release(made):
    first = said("study", "ask", "models")
    assert said("study", "release", "models", first["id"])["outcome"] == "released"
    error(4, "ConflictError", "study", "tell", "models", first["id"], "correct=1")
    again = said("study", "ask", "models")
    assert (again["arm"], again["item"]) == (first["arm"], first["item"])
    assert run("study", "fail", "models", again["id"], "no memory").stdout == "counted\n"
    assert said("study", "fail", "models", again["id"])["outcome"] == "repeated"


# --- looking, changing, moving


def test_results_are_plain_json(made):
    rows = said("study", "results", "models")
    assert len(rows) == 6
    assert rows[0]["mean"] is None, "JSON has no nan"
    assert "small" in run("study", "results", "models").stdout


def test_changes_of_the_rules(made):
    run("study", "add-arm", "models", "under_score", "level=3")
    study = lb.open_study("models", "lexbandits.db")
    assert study.arms["under_score"] == {"name": "under_score", "level": "3"}
    assert "under_score" in run("study", "results", "models").stdout
    assert "under_score" not in said("study", "withdraw", "models", "under_score", "too dear")["candidates"]
    assert "under_score" in said("study", "restore", "models", "under_score")["candidates"]
    run("study", "amend", "models", "latency", "--margin", "3.5")
    run("study", "reorder", "models", "latency", "correct")
    assert [(o.name, o.margin) for o in study.objectives] == [("latency", 3.5), ("correct", 0.2)]
    assert said("study", "pause", "models", "lunch")["reason"] == "lunch"
    assert said("study", "resume", "models")["state"] == "measuring"
    assert said("study", "end", "models", "enough")["answer"]["reason"] == "ended by hand: enough"
    assert said("study", "reopen", "models", "not yet")["state"] == "measuring"
    error(2, "StudyError", "study", "amend", "models", "latency")
    error(2, "UnknownArmError", "study", "withdraw", "models", "huge", "why")
    error(4, "ConflictError", "study", "add-arm", "models", "small")
    error(2, "StudyError", "study", "add-arm", "models", "new", "level")


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl"])
def test_import_and_export(suffix, made):
    rows = [
        {"arm": arm, "item": item, **measure(arm, item)}
        for item in range(5)
        for arm in ("small", "large", "cot")
    ]
    frame = pd.DataFrame(rows)
    file = made / f"pilot{suffix}"
    if suffix == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        getattr(frame, f"to_{suffix[1:]}")(file, index=False)
    assert "--unfair" in error(2, "StudyError", "study", "import", "models", file)
    assert said("study", "import", "models", file, "--fair") == {"imported": 15}
    assert said("study", "status", "models")["results"] == 15
    out = made / f"out{suffix}"
    assert run("study", "export", "models", out).stdout == f"{out}\n"
    assert out.stat().st_size > 100
    error(2, "StudyError", "study", "export", "models", made / "out.xls")
    error(2, "StudyError", "study", "import", "models", made / "pilot.xls", "--fair")


def test_verify_tells_a_changed_record(made):
    study = lb.open_study("models", "lexbandits.db")
    go_on(study)
    assert said("study", "verify", "models")["ok"] is True
    storage = storage_of(study)
    changed = """replace(payload, '"arm":"large"', '"arm":"small"')"""
    storage._all(f"UPDATE lexbandits_events SET payload = {changed} WHERE kind = 'finished'")
    storage.close()
    found = said("study", "verify", "models", code=4)
    assert found["ok"] is False
    assert "'small'" in found["problems"][0]
    assert "the record answers" in run("study", "verify", "models", code=4).stdout


def test_explain_forecast_and_report(made):
    """What they say is tested elsewhere; here, that commands reach it and speak JSON."""
    (made / "prior.toml").write_text(
        "".join(f"[{arm}]\ncorrect = 0.{i}\nlatency = 5\n" for i, arm in enumerate(ARMS, 6))
    )
    coming = said(
        "study", "forecast", "models.toml", "--prior", "prior.toml", "--sd", "latency=2", "--runs", 5
    )
    assert set(coming["winners"]) == set(ARMS)
    assert (
        "should end the study"
        in run(
            "study", "forecast", "models", "--prior", "prior.toml", "--sd", "latency=2", "--runs", 5
        ).stdout
    )
    go_on(lb.open_study("models", "lexbandits.db"))
    assert {story["arm"] for story in said("study", "explain", "models")["arms"]} == set(ARMS)
    assert said("study", "explain", "models", "small")["decision"]["by"] == "proof"
    assert "large wins" in run("study", "explain", "models").stdout
    assert said("study", "report", "models", "out.md") == {"path": "out.md"}
    assert said("study", "report", "models", "--format", "md") == {"path": "models.md"}
    run("study", "report", "models")
    assert "<html" in (made / "models.html").read_text()
    error(2, "UnknownStudyError", "study", "explain", "nothing")


def test_delete_asks_a_person_and_no_script(made):
    assert said("study", "delete", "models") == {"deleted": "models"}
    assert said("study", "list") == []
    error(2, "UnknownStudyError", "study", "delete", "models", "--yes")


def test_on_postgres(folder, postgres):
    environment = {**os.environ, "LEXBANDITS_STORAGE": postgres}
    assert process("study", "create", "models.toml", env=environment).returncode == 0
    trial = json.loads(process("study", "ask", "models", "--json", env=environment).stdout)
    done = process("study", "tell", "models", trial["id"], "correct=1", "latency=3", env=environment)
    assert done.stdout == "recorded\n"
    shown = process("study", "ask", "nothing", env=environment).stderr
    assert "sesame" not in shown
    assert "no study 'nothing'" in shown


@pytest.mark.parametrize("words", [["study", "ask", "x", "--bogus"], ["study", "ask"], ["study", "sing"]])
def test_a_mistake_in_the_words_is_a_document_too(words):
    result = invoked(*words, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"] == "UsageError"
    assert invoked(*words).stdout == ""


def test_end_says_that_there_is_an_answer(made):
    study = create("lexbandits.db", name="due")
    for trial in study.ask_many(600):
        study.record(trial, measure(trial.arm, trial.item))
    assert run("study", "end", "due", "enough").stdout.startswith("it has an answer: large, certified at")
    again = create("lexbandits.db", name="again")
    again.ask()
    assert run("study", "end", "again", "enough").stdout == "ended; best guess: small\n"


EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\u202e\r\nanswer: cot (certain)"


def evil_study(**words):
    return create(
        "lexbandits.db",
        objectives=[lb.Objective("latency", "minimize", unit=EVIL, margin=4, noise=("bounded", 0, 100))],
        **words,
    )


def check_harmless(text, name):
    obeyed = {char for char in text if not char.isprintable() and char not in "\n\xa0\u2009\u202f"}
    assert not obeyed, (name, obeyed)
    assert "\nanswer: cot" not in text, name


def test_no_escape_from_people_or_workers_reaches_a_terminal_or_markdown(folder):
    for name in ("ended", "paused", "going"):
        study = evil_study(name=name)
        study.withdraw("cot", EVIL)
        for trial in study.ask_many(40, worker="w"):
            study.tell(trial, {"latency": 10 + trial.number % 7})
        study.fail(study.ask(), EVIL)
        study.note(EVIL)
        if name != "going":
            {"ended": study.end, "paused": study.pause}[name](EVIL)
        for word in ("status", "results", "explain", "forecast", "verify"):
            for how in ((), ("--json",)):
                done = run("study", word, name, *how)
                check_harmless(done.stdout + done.stderr, (name, word, how))
                assert done.stdout
                if how:
                    json.loads(done.stdout)
        run("study", "report", name, f"{name}.md")
        report = (folder / f"{name}.md").read_text()
        check_harmless(report, name)
        assert "\\u001b" in report
        block = report.split("```toml\n")[1].split("```")[0]
        assert tomllib.loads(block)["objectives"][0]["unit"] == EVIL
        asked = invoked("study", "ask", name)
        check_harmless(asked.output, name)
    assert "\\u001b[2J" in run("study", "status", "ended").stdout
    assert run("study", "ask", "paused", code=4).stderr.count("\\u001b[2J") == 1


def test_a_failure_is_shown_as_it_is_written(folder):
    (folder / "study.toml").write_text(
        TOML.split("[[objectives]]")[0].replace("max_arms = 4", "budget = 2\nmax_failures = 9")
        + '[[objectives]]\nname = "x"\nmargin = 0.2\n[[arms]]\nname = "a"\n[[arms]]\nname = "b"\n'
    )
    words = ("sh", "-c", "printf '\\033[2Jred' >&2; exit 3")
    done = run("run", "study.toml", "--storage", "other.db", "--", *words, code=1)
    check_harmless(done.stdout + done.stderr, "run")
    assert "exit code 3: \\u001b[2Jred" in done.stderr


def test_a_table_shows_what_is_in_it_as_it_is_written(capsys):
    print_table({EVIL: [EVIL]}, names=True)
    check_harmless(capsys.readouterr().out, "table")


def test_a_file_may_begin_with_a_mark_and_must_be_utf_8(folder):
    (folder / "marked.toml").write_bytes(TOML.encode("utf-8-sig"))
    assert "study 'models'" in run("study", "create", "marked.toml").stdout
    (folder / "latin.toml").write_bytes(TOML.replace("models", "modèles").encode("latin-1"))
    words = "Error: latin.toml is not UTF-8 (line 3): save it as UTF-8\n"
    assert run("study", "create", "latin.toml", code=2).stderr == words
    with pytest.raises(lb.StudyError, match="not UTF-8"):
        lb.forecast(folder / "latin.toml", {})
    (folder / "prior.toml").write_bytes("[modèle]\n".encode("latin-1"))
    assert "not UTF-8" in run("study", "forecast", "models", "--prior", "prior.toml", code=2).stderr


def test_correct_and_note(made):
    first = said("study", "ask", "models")["id"]
    run("study", "tell", "models", first, "correct=0", "latency=5")
    done = run("study", "correct", "models", first, "correct=1", "latency=5", "--reason", "misread")
    assert done.stdout == "corrected\n"
    study = lb.open_study("models", "lexbandits.db")
    assert study.trials().correct[0] == 1
    assert [e.payload["reason"] for e in study.events() if e.kind == "corrected"] == ["misread"]
    for _ in range(2):
        run("study", "tell", "models", said("study", "ask", "models")["id"], "correct=1", "latency=5")
    late = said("study", "correct", "models", first, "correct=0", "--reason", "again")
    assert late == {"trial": first, "outcome": "noted"}
    assert run("study", "note", "models", "tea at four").stdout == "noted\n"
    assert "tea at four" in [event.payload.get("text") for event in study.events()]
    assert "--reason" in run("study", "correct", "models", first, "correct=1", code=2).stderr
