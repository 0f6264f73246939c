"""Words, durations and paths that nobody expects: refused before anything changes, or taken as they are."""

import pickle
import subprocess
from datetime import timedelta

import pytest

import lexbandits as lb
from support.command import process
from support.journals import storage_of
from support.questions import create, go_on, kinds

BROKEN = "caf\udce9"  # half a pair of surrogates, as names of files may have


@pytest.mark.parametrize(
    "storage", ["memory", "sqlite", "postgres"], indirect=True
)  # a service has a limit of its own
@pytest.mark.parametrize("lease", ["99999999999d", 1e300, timedelta.max, 8.7e10])
def test_a_lease_beyond_all_calendars(storage, lease):
    study = create(storage)
    with pytest.raises(lb.StudyError, match="lease must be at most 1000000d"):
        study.ask(lease=lease)
    with pytest.raises(lb.StudyError, match="lease must be at most 1000000d"):
        create(storage, name="other", lease=lease)
    assert kinds(study) == ["created"]
    assert study.ask(lease="1000000d").until.year > 4000


@pytest.mark.parametrize("word", [BROKEN, "a\x00b", "", "x" * 201, 5, b"w"])
def test_workers_and_requests_that_no_storage_can_keep(storage, word):
    study = create(storage)
    for call in (
        lambda: study.ask(worker=word),
        lambda: study.ask_many(2, request=word),
        lambda: study.tell_ask([], worker=word),
        lambda: study.heartbeat(word),
    ):
        with pytest.raises(lb.StudyError, match="must be 1 to 200 characters of text"):
            call()
    assert kinds(study) == ["created"]


def test_a_heartbeat_of_nobody():
    with pytest.raises(lb.StudyError, match="worker must be 1 to 200"):
        create().heartbeat(None)


@pytest.mark.parametrize("name", [BROKEN, "a\x00b", 5, None])
def test_a_name_that_no_study_has(address, name):
    create(address)
    for look in (lb.open_study, lb.delete_study):
        with pytest.raises(lb.UnknownStudyError, match="no study"):
            look(name, address)
    with pytest.raises((lb.StudyError, TypeError), match="name of a study"):
        create(address, name=name)
    assert lb.list_studies(address) == ["models"]


def test_items_that_are_no_utf_8_are_reported(tmp_path):
    study = create(items=[BROKEN, "b", "c"])
    study.tell_many([(trial, {"correct": 1, "latency": 5}) for trial in study.ask_many(6)])
    study.end("enough")
    for end in ("html", "md"):
        assert "caf\\" in study.report(tmp_path / f"report.{end}").read_text(encoding="utf-8")


# --- paths


@pytest.mark.parametrize("name", ["what?.db", "a%20b.db", "100%.db", "a b#c.db", "?synchronous=OFF"])
def test_a_path_is_a_path(tmp_path, name):
    path = tmp_path / name
    study = create(path)
    go_on(study, 1)
    assert path.exists()
    assert lb.list_studies(str(path)) == ["models"]
    assert lb.open_study("models", str(path)).status.results == 1
    assert pickle.loads(pickle.dumps(study)).status.results == 1


def test_an_address_quotes_what_a_path_has(tmp_path):
    address = f"sqlite:///{tmp_path}/a%20b%3F.db?synchronous=OFF"
    study = create(address)
    assert (tmp_path / "a b?.db").exists()
    assert lb.list_studies(address) == ["models"]
    assert study.storage == str(tmp_path / "a b?.db")
    assert storage_of(pickle.loads(pickle.dumps(study))).synchronous == "OFF"


@pytest.mark.parametrize("wrong", ["w?.db", "x.db?mode=ro", "x.db?synchronous", "x.db?synchronous=OFF&a=1"])
def test_a_query_that_is_none(tmp_path, wrong):
    with pytest.raises(lb.StorageError, match="synchronous"):
        create(f"sqlite:///{tmp_path}/{wrong}")
    assert not list(tmp_path.iterdir())


# --- what can only be looked at


@pytest.mark.parametrize("closed", [True, False])
def test_a_disk_that_is_read_only(disk, remount, tmp_path, closed):
    """With the latest results in the file, or in the log beside it."""
    path = disk / "s.db"
    study = create(path)
    told = go_on(study)
    if closed:
        study.close()
    else:
        subprocess.run(["cp", path, f"{path}-wal", tmp_path], check=True)
        study.close()
        subprocess.run(["cp", tmp_path / "s.db", tmp_path / "s.db-wal", disk], check=True)
    remount("ro")
    try:
        for words in (
            ("status", "models"),
            ("export", "models", tmp_path / "t.csv"),
            ("report", "models", tmp_path / "r.html"),
        ):
            done = process("study", *words, storage=path)
            if closed:
                assert done.returncode == 0, (words, done.stderr)
            else:
                assert "Copy s.db and s.db-wal to a folder that can be written" in done.stderr
        if closed:
            assert f"results: {told}" in process("study", "status", "models", storage=path).stdout
            looked = lb.open_study("models", path, read_only=True)
            assert looked.status.results == told
            with pytest.raises(lb.StorageError, match="can only be looked at"):
                lb.open_study("models", path).ask()
            remount("rw")
            study.note("others can write")
            assert kinds(looked)[-1] == "note"
    finally:
        remount("rw")
