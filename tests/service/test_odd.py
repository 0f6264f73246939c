"""Odd names, odd tokens, studies that cannot be read, a gate that is held, more than a message takes."""

import http.server
import os
import shutil
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import pytest

import lexbandits as lb
from lexbandits.service import analysis
from lexbandits.service.auth import Tokens, open_lasting
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.summary import summary_of
from lexbandits.study.storage.file_lock import FileLock
from support.asked import MODELS
from support.questions import create, measure
from support.services import fast

BROKEN = "caf\udce9.txt"  # a file's name that is no UTF-8, as Python gives it


def file_of(service):
    return Path(service.storage.removeprefix("sqlite:///").partition("?")[0])


def test_names_that_utf_8_cannot_say(service):
    study = create(service.storage, items=[BROKEN, "b", "c", "d"], seed=1)
    with service.client() as client:
        for _ in range(4):
            assert client.post(f"{MODELS}/trials", json={"n": 3}).status_code == 201
        for path in ("", "/spec", "/trials", "/events"):
            assert client.get(f"{MODELS}{path}").status_code == 200, path
    handed = [event for event in study.events() if event.kind == "asked"]
    assert len(handed) == 12, "once each"
    there = lb.open_study("models", service.link)
    assert BROKEN in there.spec["items"]
    study.fail(study.trials().id[0], f"no file {BROKEN}")
    there.fail(study.trials().id[1], f"no file {BROKEN}")
    with service.client() as client:
        assert client.get(MODELS).status_code == 200


def test_a_token_with_the_end_of_its_line(service, monkeypatch):
    create(service.link)
    monkeypatch.setenv("LEXBANDITS_TOKEN", f"{service.token}\n")
    assert lb.list_studies(service.address) == ["models"]
    monkeypatch.setenv("LEXBANDITS_TOKEN", "lb_se\ncret")
    with pytest.raises(lb.AuthError) as caught:
        lb.list_studies(service.address)
    assert "cret" not in str(caught.value)


def test_a_study_that_cannot_be_read_leaves_the_others(serve, tmp_path):
    service = serve(fast(tmp_path))
    create(service.storage, name="aaa")
    create(service.storage, name="bbb")
    with closing(sqlite3.connect(file_of(service))) as file, file:
        file.execute(
            "INSERT INTO lexbandits_events (study, seq, kind, payload, at) "
            "SELECT id, 2, 'teleported', '{}', 1e9 FROM lexbandits_studies WHERE name = 'aaa'"
        )
    with service.client() as client:
        answer = client.get("/api/studies")
        assert answer.status_code == 200
        states = {study["name"]: study["state"] for study in answer.json()["studies"]}
        assert states == {"aaa": "unreadable", "bbb": "measuring"}
        assert client.get("/api/studies/aaa").status_code == 503
    assert lb.list_studies(service.link) == ["aaa", "bbb"]


def test_opened_to_be_read_only(service):
    create(service.link)
    study = lb.open_study("models", service.link, read_only=True)
    assert study.status.results == 0
    for change in (study.ask, lambda: study.note("no"), lambda: study.pause("no")):
        with pytest.raises(lb.StorageError, match="read only"):
            change()
    assert study.seq == 1


def test_any_words_make_a_request_key(service):
    study = create(service.link)
    for key in ("my key", "schlüssel", 200 * "k"):
        assert study.ask(request=key) == study.ask(request=key)


def test_a_repeated_ask_says_how_the_study_stands_now(service):
    study = create(service.link)
    with service.client() as client:
        first = client.post(f"{MODELS}/trials", json={}, headers={"Idempotency-Key": "k"}).json()
        study.end("enough")
        again = client.post(f"{MODELS}/trials", json={}, headers={"Idempotency-Key": "k"}).json()
    assert first["trials"] == again["trials"]
    assert (first["state"], again["state"]) == ("measuring", "finished")


def test_something_else_answers_there():
    class Stranger(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"<html>welcome</html>")

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Stranger) as stranger:
        threading.Thread(target=stranger.serve_forever, daemon=True).start()
        with pytest.raises(lb.StorageError, match="no lexbandits service"):
            lb.list_studies(f"http://127.0.0.1:{stranger.server_port}")
        stranger.shutdown()


@pytest.mark.parametrize("error", [lb.StorageBusyError("busy"), lb.UnknownStudyError("deleted")], ids=str)
def test_a_storage_in_trouble_is_no_conflict(error):
    class OpenStudy:
        def __init__(self):
            self.analyses = {}

        def analyst(self):
            return create()

    def fails(_):
        raise error

    with pytest.raises(type(error)):
        analysis._made(OpenStudy(), fails)


def payloads(study):
    return [event.payload for event in study.events()]


def test_a_restored_backup_that_has_grown_again_is_seen(tmp_path):
    """To the same seq, by other events."""
    path, backup = tmp_path / "s.db", tmp_path / "backup.db"
    study = create(path)
    study.close()
    shutil.copy(path, backup)
    registry = StudyRegistry(path)
    seen = []
    for text in ("first", "second"):
        study.note(text)
        study.close()
        tag, summary = summary_of(registry.find("models"))
        explained = analysis._made(registry.find("models"), payloads)
        seen.append((tag, [event.payload.get("text") for event in summary["events"]], explained[1]))
        registry.close()
        registry.notes.close()
        if text == "first":
            os.replace(backup, path)
    assert [texts for _, texts, _ in seen] == [["first", None], ["second", None]]
    assert [last for *_, last in seen] == [{"text": "first"}, {"text": "second"}]
    assert seen[0][0] != seen[1][0]


def test_nobody_waits_for_the_note_that_a_token_was_used(serve, tmp_path):
    storage = fast(tmp_path)
    secret = Tokens(open_lasting(storage)).create("ann", "read")
    service = serve(storage)
    gate = FileLock(file_of(service), 5)
    gate.take()
    try:
        with service.client(token=secret) as client:
            for path in ("/api/studies", "/healthz", "/api/studies"):
                assert client.get(path).status_code == 200
            assert [row.last_used for row in open_lasting(storage).tokens() if row.name == "ann"] == [None], (
                "which has not been written yet"
            )
    finally:
        gate.close()


@pytest.mark.slow
def test_more_at_once_than_one_message_takes(clock, postgres):
    """Nine thousand places that ran out are declared missing by one ask."""
    study = create(postgres, max_failures=10**6)
    for _ in range(9):
        study.ask_many(1000, lease="1h")
    clock.move(3601)
    assert study.ask().number == 9000
    assert study.status.expired == 9000
    many = study.ask_many(9000)
    study.tell_many([(trial, measure(trial.arm, trial.item)) for trial in many])
    assert study.verify().problems == ()
