"""The answer of the service is lost on its way: the client asks again, and it was done once."""

from types import SimpleNamespace

import pytest

import lexbandits as lb
from lexbandits.study.storage import http as remote
from support.asked import MODELS, ask, make, refused
from support.patience import until
from support.proxy import Proxy
from support.questions import create, kinds

CUTS = ("before", "after", "answered", "silent")
REQUEST = b" HTTP/1.1\r\n"
GOOD = {"correct": 1, "latency": 10}


@pytest.fixture
def wire(service, monkeypatch):
    monkeypatch.setattr(remote, "SILENCE", 0.5)
    proxy = Proxy(service.port)
    yield proxy
    proxy.close()


CHANGES = {
    "note": lambda study, _: study.note("hello"),
    "amend": lambda study, _: study.amend("correct", margin=0.4),
    "withdraw": lambda study, _: study.withdraw("cot", "so"),
    "add_arm": lambda study, _: study.add_arm({"name": "new", "tokens": 3}),
    "reorder": lambda study, _: study.reorder(["latency", "correct"]),
    "budget": lambda study, _: study.set_budget(9),
    "pause": lambda study, _: study.pause("lunch"),
    "end": lambda study, _: study.end("enough"),
    "correct": lambda study, told: study.correct(told, {"correct": 0}, "typo"),
    "ask": lambda study, _: study.ask().number,
    "ask_many": lambda study, _: len(study.ask_many(2)),
    "release": lambda study, _: study.release(study.trials()["id"].iloc[1]),
}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_call_is_done_once(service, wire, change, how):
    here, plain = (create(where, max_arms=4) for where in (service.link, "memory"))
    told = []
    for study in (here, plain):
        first, _ = study.ask_many(2)
        study.tell(first, GOOD)
        told.append(first)
    study = lb.open_study("models", wire.of(service.link))
    wire.arm(REQUEST, how)
    assert change(study, told[0]) == change(plain, told[1])
    assert wire.cuts == 1
    assert kinds(here) == kinds(plain)
    assert here.verify().problems == ()


@pytest.mark.parametrize("how", CUTS)
def test_a_study_is_made_once(service, wire, how):
    wire.arm(REQUEST, how)
    assert kinds(create(wire.of(service.link))) == ["created"]
    assert wire.cuts == 1
    with pytest.raises(lb.StudyExistsError):
        create(service.link)


def test_an_undone_change_is_not_done_again_by_a_late_repeat(client):
    """A proxy that sends a request twice, minutes apart."""
    make(client)
    resumed = {"json": {"state": "measuring"}, "headers": {"Idempotency-Key": "first"}}
    assert client.post(f"{MODELS}/state", **resumed).status_code == 200
    assert client.post(f"{MODELS}/state", json={"state": "paused", "reason": "so"}).status_code == 200
    assert client.post(f"{MODELS}/state", **resumed).status_code == 200
    assert client.get(MODELS).json()["state"] == "paused"


def test_the_same_key_with_another_call_is_another(client):
    make(client)
    key = {"Idempotency-Key": "always"}
    for text in ("a", "b", "a"):
        assert client.post(f"{MODELS}/notes", json={"text": text}, headers=key).status_code == 201
    client.post(f"{MODELS}/arms/cot/withdrawal", json={"reason": "a"}, headers=key)
    assert len(ask(client)) == 1
    asked = client.post(f"{MODELS}/trials", json={}, headers=key).json()["trials"]
    assert client.post(f"{MODELS}/trials", json={}, headers=key).json()["trials"] == asked
    seen = [event["kind"] for event in client.get(f"{MODELS}/events").json()["events"]]
    assert seen == ["created", "note", "note", "arm_withdrawn", "asked", "asked"]
    refused(client.post(f"{MODELS}/notes", json={"text": "c"}, headers={"Idempotency-Key": "k" * 201}), 422)


def test_keys_outlive_the_service(serve):
    service = serve()
    create(service.link)
    key = {"Idempotency-Key": "one"}
    with service.client() as client:
        assert client.post(f"{MODELS}/state", json={"state": "finished"}, headers=key).status_code == 200
    service.stop()
    service.start()
    with service.client() as client:
        assert client.post(f"{MODELS}/state", json={"state": "finished"}, headers=key).status_code == 200
        refused(client.post(f"{MODELS}/state", json={"state": "finished"}), 409)


def test_a_repeated_ask_of_a_study_that_is_paused_since(client):
    make(client)
    key = {"Idempotency-Key": "mine"}
    for way in ("application/json", "application/json; charset=utf-8"):  # past the framework, and by it
        headers = {**key, "Content-Type": way}
        asked = client.post(f"{MODELS}/trials", content=b"{}", headers=headers)
        client.post(f"{MODELS}/state", json={"state": "paused", "reason": "lunch"})
        again = client.post(f"{MODELS}/trials", content=b"{}", headers=headers)
        assert (again.status_code, again.json()["trials"]) == (201, asked.json()["trials"])
        assert again.json()["state"] == "paused"
        refused(client.post(f"{MODELS}/trials", json={}), 409, "lunch")
        client.post(f"{MODELS}/state", json={"state": "measuring"})


def test_who_is_not_answered_asks_again_before_it_gives_up():
    assert remote.SILENCE * 2 < remote.PATIENCE


def test_who_is_never_answered_gives_up(service, monkeypatch):
    """After two seconds of pauses, each twice as long: by a clock that nothing else moves, six tries."""
    there, wire = create(service.link), Proxy(service.port)
    study = lb.open_study("models", wire.of(service.link))
    study.close()
    moved = SimpleNamespace(seconds=0.0, monotonic=lambda: moved.seconds)
    moved.sleep = lambda seconds: setattr(moved, "seconds", moved.seconds + seconds)
    monkeypatch.setattr(remote, "time", moved)
    monkeypatch.setattr(remote, "SILENCE", 0.2)
    monkeypatch.setattr(remote, "PATIENCE", 2.0)
    wire.arm(REQUEST, "silent", always=True)
    with pytest.raises(lb.StorageError, match="does not answer: ReadTimeout"):
        study.note("hello")
    until(lambda: wire.cuts == 6)
    until(lambda: [event.kind for event in there.events()] == ["created", "note"])
    wire.close()
