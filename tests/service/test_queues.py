"""Many requests, few commits; none that is answered before it is safe; one way for good ones and bad ones."""

import asyncio
import fcntl
import json
import os
import select
import socket
import sqlite3
from contextlib import ExitStack, closing

import pytest
from starlette.requests import Request

import lexbandits as lb
from lexbandits.service import write_queue
from lexbandits.service.auth import Tokens, WeakTokenError, open_lasting
from lexbandits.service.problems import problem_of
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.start import bind
from lexbandits.service.write_queue import Job, Queues, commit
from lexbandits.study.core import ask_tell, changes
from lexbandits.study.core.journal import Journal
from lexbandits.study.storage.contract import LostConnectionError
from lexbandits.study.storage.sqlite import SqliteStorage
from lexbandits.study.study import Study
from support.asked import MODELS, ask, make, refused
from support.patience import until, waits_at_gate
from support.questions import create

TRIALS, RESULTS = f"{MODELS}/trials", f"{MODELS}/results"


class Counted(SqliteStorage):
    """Counts transactions."""

    transactions = 0

    def transact(self, study, work):
        self.transactions += 1
        return super().transact(study, work)


@pytest.fixture
def journal(tmp_path):
    with closing(Counted(f"sqlite:///{tmp_path}/study.db?synchronous=OFF")) as storage:
        create(storage)
        yield Journal(storage, storage.find("models"))


def hand_out(n=1, key=None):
    return lambda unit: ask_tell.hand_out(unit, n, 60.0, None, key)


def tell(*results):
    return lambda unit: ask_tell.take_all(unit, results)


def commit_all(journal, *works):
    """What becomes of pieces of work that go into the same commit."""
    jobs = []
    for work in works:
        jobs.append(Job(None, "write", lambda work=work: work))
        jobs[-1].prepare("write")
    journal.storage.transactions = 0
    commit(journal, jobs)
    return [job.result if job.error is None else job.error for job in jobs]


def study_of(journal):
    return Study(journal)


def test_what_waits_is_committed_together(journal):
    (trials,) = commit_all(journal, hand_out(20))
    told = commit_all(journal, *(tell((trial, {"correct": 1})) for trial in trials))
    assert told == [["counted"]] * 20
    assert journal.storage.transactions == 1
    assert study_of(journal).verify()


def test_a_refusal_is_for_one_alone(journal):
    ((a, b, c),) = commit_all(journal, hand_out(3))
    told = commit_all(
        journal,
        tell((a, {"correct": 1})),
        tell((b, {"correct": 7})),
        tell((a, {"correct": 0})),
        tell((c, {"correct": 0})),
    )
    assert (told[0], told[3]) == (["counted"], ["waiting"])  # behind b, which is still open
    assert isinstance(told[1], lb.ValueOutOfRange)
    assert isinstance(told[2], lb.ConflictError)
    assert journal.storage.transactions == 1
    assert study_of(journal).trials()["state"].tolist() == ["told", "open", "told"]


def test_work_that_fails_halfway_spoils_no_other(journal):
    ((a, b, c),) = commit_all(journal, hand_out(3))
    commit_all(journal, tell((b, {"correct": 1})))
    halfway = tell((c, {"correct": 1}), (b, {"correct": 0}))  # the second contradicts, the first is recorded
    told = commit_all(journal, tell((a, {"correct": 1})), halfway, hand_out())
    assert told[0] == ["counted"]
    assert isinstance(told[1], lb.ConflictError)
    assert told[2][0].number == 3
    study = study_of(journal)
    assert study.trials()["state"].tolist() == ["told", "told", "open", "open"]
    assert study.verify()


def test_metrics_and_webhook_hear_of_what_was_committed_one_by_one(tmp_path):
    registry = StudyRegistry(tmp_path / "s.db")
    study = create(registry.storage)
    a, b, c = study.ask_many(3)
    study.tell(b, {"correct": 1})
    works = [
        tell((a, {"correct": 1})),
        tell((c, {"correct": 1}), (b, {"correct": 0})),  # contradicts after it has changed something
        lambda unit: changes.pause(unit, "lunch"),
    ]
    heard = []

    class Listener:
        def recorded(self, kinds):
            heard.append(("metrics", list(kinds)))

        def committed(self, row, kinds):
            heard.append((row.name, list(kinds)))

    work = Queues(registry, Tokens(registry.reads, "lb_me"), Listener())
    work.metrics = work.webhook
    jobs = [Job("Bearer lb_me", "write", lambda work=work: work) for work in works]
    before = len(list(study.events()))
    work._do_all("models", jobs)
    assert [type(job.error).__name__ for job in jobs] == ["NoneType", "ConflictError", "NoneType"]
    kinds = [event.kind for event in study.events()][before:]
    assert kinds == ["told", "paused"]
    assert heard == [("metrics", kinds), ("models", kinds)]


def test_asks_with_the_same_key_in_one_commit(journal):
    first, again, other = commit_all(journal, hand_out(key="key"), hand_out(key="key"), hand_out())
    assert first == again != other
    assert study_of(journal).status.open == 2


def test_nobody_is_answered_when_the_commit_fails(journal, monkeypatch):
    (trials,) = commit_all(journal, hand_out(3))

    def full(*_):
        raise lb.StorageError("disk full")

    monkeypatch.setattr(type(journal.storage), "_send", full)
    told = commit_all(journal, *(tell((trial, {"correct": 1})) for trial in trials))
    assert [str(error) for error in told] == ["disk full"] * 3
    monkeypatch.undo()
    assert study_of(journal).status.results == 0
    assert commit_all(journal, *(tell((trial, {"correct": 1})) for trial in trials)) == [["counted"]] * 3


def test_a_commit_has_its_bound_and_nobody_is_left_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(write_queue, "MOST_JOBS_IN_A_COMMIT", 10)
    registry = StudyRegistry(tmp_path / "s.db")
    study = create(registry.storage)
    sizes, commit_batch = [], commit
    monkeypatch.setattr(
        write_queue, "commit", lambda journal, jobs: (sizes.append(len(jobs)), commit_batch(journal, jobs))
    )
    secret = "Bearer lb_me"
    work = Queues(registry, Tokens(registry.reads, "lb_me"))

    def note(unit):
        changes.note(unit, "so")

    async def all_of_them():
        jobs = [Job(secret, "write", lambda: note) for _ in range(35)]
        return await asyncio.gather(*(work.do("models", job, asyncio.Event().wait) for job in jobs))

    assert asyncio.run(all_of_them()) == [None] * 35
    assert sum(sizes) == 35
    assert max(sizes) <= 10
    assert study.seq == 36
    registry.close()


def test_what_waits_for_a_lock_is_committed_together(serve, tmp_path):
    """The storage is held by somebody else while sixteen workers tell."""
    service = serve()
    study = create(service.link)
    trials = study.ask_many(17, worker="w")
    path = f"{tmp_path}/service.db"
    gate = os.open(f"{path}.lock", os.O_RDWR)

    body = json.dumps({"values": {"correct": 1, "latency": 5}})
    head = f"Host: localhost\r\nAuthorization: Bearer {service.token}\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"
    with ExitStack() as open_ones, closing(sqlite3.connect(path)) as looking, service.client() as client:
        fcntl.flock(gate, fcntl.LOCK_EX)
        told = []
        for trial in trials:
            told.append(open_ones.enter_context(socket.create_connection(("127.0.0.1", service.port))))
            told[-1].sendall(f"PUT {MODELS}/trials/{trial.id}/result HTTP/1.1\r\n{head}".encode())
        until(lambda: waits_at_gate(path) and service.unread() == 0, service)
        assert client.get("/healthz").status_code == 200, "what was read before is in its queue now"
        assert select.select(told, [], [], 0)[0] == []
        fcntl.flock(gate, fcntl.LOCK_UN)
        for each in told:
            assert each.recv(1 << 16).startswith(b"HTTP/1.1 200")
        times = looking.execute("SELECT at, count(*) FROM lexbandits_events WHERE kind = 'told' GROUP BY at")
        groups = sorted(count for _, count in times)
    os.close(gate)
    assert sum(groups) == 17
    assert len(groups) <= 3, "who came first holds one commit up; all others share the next"
    assert study.verify()


# --- one way


def requests(trial):
    """Requests that are right and wrong in every way, and the status of each."""
    where, good = f"{TRIALS}/{trial}/result", {"values": {"correct": 1, "latency": 3}}
    yield 201, "POST", TRIALS, {"n": 2, "worker": "ann"}, {"Idempotency-Key": "the-same"}
    yield 422, "POST", TRIALS, {}, {"Idempotency-Key": "two words"}
    yield 422, "POST", TRIALS, {}, {"Idempotency-Key": 201 * "k"}
    yield 422, "POST", TRIALS, {"n": 0}, {}
    yield 422, "POST", TRIALS, {"n": 1, "lease": "400d"}, {}
    yield 422, "POST", TRIALS, {"n": 1, "worker": ""}, {}
    yield 422, "POST", TRIALS, [1], {}
    yield 422, "POST", TRIALS, None, {}
    yield 422, "POST", TRIALS, {}, {"Content-Type": "text/plain"}
    yield 422, "POST", f"/api/studies/{'x' * 201}/trials", {}, {}
    yield 404, "POST", "/api/studies/none/trials", {}, {}
    yield 405, "PUT", TRIALS, {}, {}
    yield 200, "PUT", where, good, {"Content-Type": "application/json; charset=utf-8"}
    yield 200, "PUT", where, good, {"Content-Type": "application/merge-patch+json"}
    yield 409, "PUT", where, {"values": {"correct": 0}}, {}
    yield 422, "PUT", where, {"values": {"correct": 2}}, {}
    yield 422, "PUT", where, {"values": {"other": 1}}, {}
    yield 422, "PUT", where, {"values": {"correct": float("nan")}}, {}
    yield 422, "PUT", where, {"values": {"correct": "1"}}, {}
    yield 422, "PUT", where, {"failed": "late", **good}, {}
    yield 409, "PUT", where, {"failed": "after its result"}, {}
    yield 422, "PUT", where, {}, {}
    yield 404, "PUT", f"{TRIALS}/0-00000000/result", good, {}
    yield 404, "PUT", f"{TRIALS}/%00/result", good, {}
    yield 422, "PUT", f"{TRIALS}/{'1' * 41}/result", good, {}
    yield 405, "POST", where, good, {}
    yield 200, "POST", RESULTS, {"results": [{"trial": trial, **good}]}, {}
    yield 200, "POST", RESULTS, {"results": [{"trial": trial, **good}], "ask": 1}, {"Idempotency-Key": "k"}
    yield 404, "POST", RESULTS, {"results": [{"trial": "none", **good}]}, {}
    yield 422, "POST", RESULTS, {"results": [], "partial": 1}, {}
    yield 204, "POST", f"{MODELS}/workers/a%2Fb/heartbeat", None, {}


def test_what_becomes_of_every_request(service, client):
    make(client)
    first, _ = ask(client, 2)
    secrets = {role: Tokens(open_lasting(service.storage)).create(role, role) for role in ("write", "read")}
    for token, others in (
        (service.token, None),
        (secrets["write"], None),
        (secrets["read"], 403),
        ("lb_wrong", 401),
        ("", 401),
    ):
        with service.client(token=token) as somebody:
            for status, method, path, body, headers in requests(first["id"]):
                content = None if body is None else json.dumps(body)
                given = {"Content-Type": "application/json", **headers}
                answer = somebody.request(method, path, content=content, headers=given)
                wanted = others if others and status != 405 else status
                if wanted >= 400:
                    refused(answer, wanted)
                else:
                    assert answer.status_code == wanted, (path, body, answer.text)
    for name in secrets:
        Tokens(open_lasting(service.storage)).revoke(name)


def test_words_that_are_wrong_are_named_all_at_once(client):
    make(client)
    answer = client.post(TRIALS, json={"n": 0, "lease": "1y"}, headers={"Idempotency-Key": "a b"})
    problem = refused(answer, 422, "header.Idempotency-Key")
    assert [each["where"][:2] for each in problem["errors"][:2]] == [
        ["header", "Idempotency-Key"],
        ["body", "n"],
    ]
    answer = client.post(TRIALS, content=b'{"n": NaN}', headers={"Content-Type": "application/json"})
    refused(answer, 422, "NaN is not JSON")


def test_a_stranger_is_sent_away_before_a_long_body_is_read(service):
    head = f"POST {RESULTS} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.settimeout(240)
        connection.sendall(head.encode())
        assert connection.recv(12) == b"HTTP/1.1 401"


def test_paused_and_finished(client):
    make(client, budget=1)
    for state, status in (("paused", 409), ("measuring", 201), ("measuring", 201)):
        client.post(f"{MODELS}/state", json={"state": state, "reason": "lunch"})
        answer = client.post(TRIALS, json={"n": 1})
        assert answer.status_code == status
    assert answer.json()["state"] == "budget_spent"
    assert "budget spent" in answer.json()["reason"]


def test_a_change_is_made_once_for_a_key_whatever_it_is_called_with(client):
    make(client, max_arms=5)
    key = {"Idempotency-Key": "k"}
    for _ in range(2):
        assert client.post(f"{MODELS}/notes", json={"text": "a"}, headers=key).json()["seq"] == 2
    assert client.post(f"{MODELS}/notes", json={"text": "b"}, headers=key).json()["seq"] == 3
    assert client.post(f"{MODELS}/arms", json={"name": "new"}, headers=key).status_code == 201
    assert client.post(f"{MODELS}/arms", json={"name": "new"}, headers=key).json()["seq"] == 4
    refused(client.post(f"{MODELS}/arms", json={"name": "new"}, headers={"Idempotency-Key": "other"}), 409)


def test_workers_beyond_those_listed_are_counted(service, client):
    study = create(service.storage)
    for number in range(53):
        study.ask(worker=f"w{number}")
    summary = client.get(MODELS).json()
    assert (len(summary["workers"]), summary["more_workers"]) == (50, 3)


def test_an_error_is_called_by_the_name_that_clients_know():
    answer = problem_of(Request({"type": "http"}), LostConnectionError("gone"))
    assert (answer.status_code, json.loads(answer.body)["kind"]) == (503, "StorageError")
    assert json.loads(problem_of(Request({"type": "http"}), WeakTokenError("no")).body)["kind"] == "AuthError"


def test_no_packet_of_an_answer_waits_for_another():
    with bind("127.0.0.1", 0) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
