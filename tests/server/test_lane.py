"""The short way and the framework's: whatever is sent, the answer is the same."""

import fcntl
import json
import os
import socket
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from asked import MODELS, ask, make
from worlds import create

from lexbandits.server.lane import SMALL, asked
from lexbandits.server.start import _bound
from lexbandits.server.tokens import Tokens, opened
from patience import until, waits_at_gate

SHORT, LONG = "application/json", "application/json; charset=utf-8"
TRIALS, RESULTS = f"{MODELS}/trials", f"{MODELS}/results"


def scope(method, path, body=b"{}", **headers):
    plain = {"host": "localhost", "content-type": SHORT, "content-length": str(len(body)), **headers}
    given = [(name.replace("_", "-").encode(), value.encode()) for name, value in plain.items()]
    return {"type": "http", "method": method, "path": path, "headers": given}


def test_what_goes_the_short_way():
    assert asked(scope("POST", TRIALS, idempotency_key="k"))[:3] == ("ask", "models", "")
    assert asked(scope("POST", "/api/studies/a%2Fb%20c/results"))[:3] == ("tell_many", "a/b c", "")
    assert asked(scope("PUT", f"{TRIALS}/0-12ab/result"))[:3] == ("tell", "models", "0-12ab")


@pytest.mark.parametrize(
    "odd",
    [
        scope("GET", TRIALS),
        scope("PUT", TRIALS),
        scope("POST", f"{TRIALS}/0-12ab/result"),
        scope("POST", f"{TRIALS}/0-12ab/expiry"),
        scope("POST", f"{TRIALS}/"),
        scope("POST", TRIALS, **{"content-type": LONG}),
        scope("POST", TRIALS, **{"content-length": str(SMALL + 1)}),
        scope("POST", TRIALS, **{"content-length": ""}),
        scope("POST", TRIALS, idempotency_key="two words"),
        scope("POST", TRIALS, idempotency_key=201 * "k"),
        scope("POST", f"/api/studies/{'x' * 201}/trials"),
        scope("PUT", f"{TRIALS}/{'1' * 41}/result"),
        {**scope("POST", TRIALS), "headers": [*scope("POST", TRIALS)["headers"], (b"host", b"evil")]},
    ],
    ids=str,
)
def test_what_is_odd_does_not(odd):
    assert asked(odd) is None


def bodies(trial):
    """Requests that are right and wrong in every way, none of which a second time changes anything."""
    where, good = f"{TRIALS}/{trial}/result", {"values": {"correct": 1, "latency": 3}}
    yield "POST", TRIALS, {"n": 2, "worker": "ann"}, {"Idempotency-Key": "the-same"}
    yield "POST", TRIALS, {"n": 0}, {}
    yield "POST", TRIALS, {"n": 1, "lease": "400d"}, {}
    yield "POST", TRIALS, {"n": 1, "worker": ""}, {}
    yield "POST", TRIALS, [1], {}
    yield "POST", "/api/studies/none/trials", {}, {}
    yield "PUT", where, good, {}
    yield "PUT", where, good, {}
    yield "PUT", where, {"values": {"correct": 0}}, {}
    yield "PUT", where, {"values": {"correct": 2}}, {}
    yield "PUT", where, {"values": {"other": 1}}, {}
    yield "PUT", where, {"values": {"correct": float("nan")}}, {}
    yield "PUT", where, {"values": {"correct": "1"}}, {}
    yield "PUT", where, {"failed": "late", **good}, {}
    yield "PUT", where, {"failed": "after its result"}, {}
    yield "PUT", where, {}, {}
    yield "PUT", f"{TRIALS}/0-00000000/result", good, {}
    yield "PUT", f"{TRIALS}/%00/result", good, {}
    yield "POST", RESULTS, {"results": [{"trial": trial, **good}]}, {}
    yield "POST", RESULTS, {"results": [{"trial": trial, **good}], "ask": 1}, {"Idempotency-Key": "another"}
    yield "POST", RESULTS, {"results": [{"trial": "none", **good}]}, {}
    yield "POST", RESULTS, {"results": [], "more": 1}, {}


def test_both_ways_give_the_same_answers(service, client):
    make(client)
    first, _ = ask(client, 2)
    secrets = {role: Tokens(opened(service.storage)).create(role, role) for role in ("write", "read")}
    seen = set()
    for token in (service.token, secrets["write"], secrets["read"], "lb_wrong", ""):
        with service.client(token=token) as somebody:
            for method, path, body, headers in bodies(first["id"]):
                content = json.dumps(body)
                by_way = [
                    somebody.request(method, path, content=content, headers={**headers, "Content-Type": way})
                    for way in (SHORT, LONG)
                ]
                short, long = ((each.status_code, each.text) for each in by_way)
                if short != (200, '{"outcome":"counted"}'):  # said once
                    assert short == long, (method, path, body)
                heads = [{k: v for k, v in each.headers.items() if k != "date"} for each in by_way]
                assert heads[0].keys() == heads[1].keys()
                seen.add(short[0])
    assert seen == {200, 201, 401, 403, 404, 409, 422}
    for name in secrets:
        Tokens(opened(service.storage)).revoke(name)


def test_paused_and_finished_both_ways(client):
    make(client, budget=1)
    client.post(f"{MODELS}/state", json={"state": "paused", "reason": "lunch"})
    for state, status in (("paused", 409), ("measuring", 201)):
        client.post(f"{MODELS}/state", json={"state": state, "reason": "lunch"})
        for way in (SHORT, LONG):
            content = b'{"n": 1}'
            answer = client.post(TRIALS, content=content, headers={"Content-Type": way})
            assert answer.status_code == status
    assert answer.json()["state"] == "budget spent"
    assert "budget spent" in answer.json()["reason"]


def test_what_waits_for_a_lock_is_committed_together(serve, tmp_path):
    """The storage is held by somebody else while sixteen workers tell."""
    service = serve()
    study = create(service.link)
    trials = study.ask_many(17, worker="w")
    path = f"{tmp_path}/service.db"
    gate = os.open(f"{path}.lock", os.O_RDWR)

    def tell(trial):
        return study.tell(trial, {"correct": 1, "latency": 5})

    with ThreadPoolExecutor(17) as pool, sqlite3.connect(path) as looking:
        fcntl.flock(gate, fcntl.LOCK_EX)
        told = [pool.submit(tell, trial) for trial in trials]
        until(lambda: waits_at_gate(path))
        threading.Event().wait(0.5)
        until(lambda: service.unread() == 0)
        assert not any(each.done() for each in told)
        fcntl.flock(gate, fcntl.LOCK_UN)
        assert {each.result() for each in told} <= {"counted", "waiting"}
        times = looking.execute("SELECT at, count(*) FROM lexbandits_events WHERE kind = 'told' GROUP BY at")
        groups = sorted(count for _, count in times)
    os.close(gate)
    assert sum(groups) == 17
    assert len(groups) <= 3, "who came first holds one commit up; all others share the next"
    assert study.verify()


def test_no_packet_of_an_answer_waits_for_another():
    with _bound("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
