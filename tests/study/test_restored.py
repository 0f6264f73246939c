"""A backup is put in the place of a SQLite file that is open: nothing acknowledged is lost unsaid."""

import os
import subprocess
import textwrap
from pathlib import Path

import pytest

import lexbandits as lb
from lexbandits.study.storage import sqlite as sqlite_module
from support.command import LIMIT, python
from support.journals import storage_of
from support.questions import create, go_on, kinds

OBJECTIVES = [
    lb.Objective("correct", margin=0.0002, noise="bernoulli"),
    lb.Objective("latency", "minimize", margin=0.0002, noise=("bounded", 0, 100)),
]


def elsewhere(path, code):
    """What another process prints."""
    opened = "study = lb.open_study('models', sys.argv[1])\n"
    command = python(opened + textwrap.dedent(code), path)
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def shell(*words):
    """Not by Python in this process: to close a file gives away the locks that SQLite has on it."""
    subprocess.run([str(word) for word in words], check=True)


def backed_up(folder):
    """An open study that has gone on since its backup."""
    path, backup = folder / "s.db", folder / "backup.db"
    study = create(f"sqlite:///{path}?synchronous=OFF", objectives=OBJECTIVES)
    go_on(study, 20)
    elsewhere(path, f"import sqlite3\nsqlite3.connect(sys.argv[1]).backup(sqlite3.connect({str(backup)!r}))")
    go_on(study, 30)
    return study, path, backup


def write_into_file(study):
    """What happens by itself every few thousand commits."""
    storage_of(study)._connected().execute("PRAGMA wal_checkpoint(PASSIVE)")
    go_on(study, 2)


@pytest.mark.parametrize("written", [False, True])
def test_cp_without_the_log(tmp_path, written):
    study, path, backup = backed_up(tmp_path)
    if written:
        write_into_file(study)
    shell("cp", backup, path)
    shell("rm", f"{path}-wal", f"{path}-shm")
    told = elsewhere(path, "go_on(study, 10); print(study.status.results)")
    assert told == "30", "twenty of the backup, and ten"
    for use in (study.ask, lambda: study.status, lambda: study.note("x"), lambda: study.heartbeat("w")):
        with pytest.raises(lb.StorageError, match=r"overwritten.*Stop every worker.*with mv"):
            use()
    study.close()
    with pytest.raises(lb.StorageError, match="overwritten"):
        lb.open_study("models", path)
    assert elsewhere(path, "print(study.status.results, study.verify().problems)") == "30 ()"


def test_a_worker_that_ends_writes_nothing_over_what_others_told(tmp_path):
    """It does not even look again: its connection is closed by the end of Python."""
    study, path, backup = backed_up(tmp_path)
    study.close()
    tell = python("go_on(lb.open_study('models', sys.argv[1]), 10)")
    code = f"""
        import subprocess
        go_on(study, 2)
        subprocess.run(["cp", {str(backup)!r}, sys.argv[1]], check=True)
        os.remove(sys.argv[1] + "-wal"); os.remove(sys.argv[1] + "-shm")
        subprocess.run([*{tell!r}, sys.argv[1]], check=True)
    """
    elsewhere(path, code)
    assert elsewhere(path, "print(study.status.results, study.verify().problems)") == "30 ()"


def test_cp_beside_a_log_that_began_anew(tmp_path):
    """The pages of the backup and those of the log do not belong together."""
    study, path, backup = backed_up(tmp_path)
    write_into_file(study)
    shell("cp", backup, path)
    for _ in range(2):
        with pytest.raises(lb.StorageError, match=r"overwritten.*with mv"):
            study.ask()


def test_mv_beside_the_log_of_the_old_file(tmp_path):
    study, path, backup = backed_up(tmp_path)
    shell("mv", backup, path)
    with pytest.raises(lb.StorageError, match=r"remove s\.db-wal and s\.db-shm"):
        study.ask()
    shell("rm", f"{path}-wal", f"{path}-shm")
    assert study.status.results == 20
    assert study.verify().problems == ()


def test_mv_beside_the_log_that_another_worker_has_open(tmp_path):
    study, path, backup = backed_up(tmp_path)
    other = lb.open_study("models", path)
    study.close()
    shell("mv", backup, path)
    with pytest.raises(lb.StorageError, match=r"remove s\.db-wal and s\.db-shm"):
        study.ask()
    other.close()


def test_mv_as_the_manual_says(tmp_path):
    study, path, backup = backed_up(tmp_path)
    study.close()
    assert not Path(f"{path}-wal").exists()
    shell("mv", backup, path)
    go_on(study, 5)
    assert elsewhere(path, "print(study.status.results, study.verify().problems)") == "25 ()"


@pytest.mark.parametrize(
    "others",
    [
        "from support.journals import storage_of; "
        "storage_of(study)._connected().execute('PRAGMA wal_checkpoint(PASSIVE)')",
        "import sqlite3; sqlite3.connect(sys.argv[1]).execute('PRAGMA wal_checkpoint(TRUNCATE)')",
        "import sqlite3; sqlite3.connect(sys.argv[1]).execute('VACUUM')",
        "from lexbandits.study.storage import sqlite; sqlite.CHECKPOINT = 1; study.close(); go_on(study, 3)",
    ],
)
def test_what_others_write_by_sqlite_is_no_trouble(tmp_path, others):
    study, path, _ = backed_up(tmp_path)
    for _ in range(2):
        elsewhere(path, others)
        before = study.status.results
        go_on(study, 3)
        assert study.status.results == before + 3
    assert study.verify().problems == ()


def test_what_workers_write_is_not_checked_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_module, "CHECKPOINT", 1)
    study, path, _ = backed_up(tmp_path)
    seen = []
    storage_of(study)._connected().set_trace_callback(seen.append)
    elsewhere(
        path,
        "from lexbandits.study.storage import sqlite; sqlite.CHECKPOINT = 1; study.close(); go_on(study, 3)",
    )
    go_on(study, 3)
    assert len(seen) > 10
    assert not [statement for statement in seen if "integrity" in statement]
    assert kinds(study).count("told") == 56
    assert os.path.getsize(f"{path}.lock") > 0
