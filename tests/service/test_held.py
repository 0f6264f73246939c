"""An ask that must wait for others is held by the service: no thread, no queue, and not for ever."""

import re
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

import lexbandits as lb
from support.asked import refused
from support.patience import until
from support.services import Service, fast

X = lb.Objective("x", margin=0.2, noise="bernoulli")
TRIALS = "/api/studies/easy/trials"


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    running = Service(fast(tmp_path_factory.mktemp("held")))
    yield running
    assert "Traceback" not in running.stop()[1]


def held_back(service):
    """A study behind the service in which nothing is handed out before a trial comes back: both."""
    service.clear()
    study = lb.create_study("easy", service.link, arms=["a", "b"], objectives=[X], seed=0)
    lost = study.ask(lease="1h", worker="gpu-3")
    trials = study.ask_many(8, wait=0)
    for _ in range(100):
        results = [(trial, {"x": int(trial.arm == "a")}) for trial in trials]
        trials = study.tell_ask(results, 8, wait=0)[1]
        if not trials:
            return study, lost
    raise AssertionError("nothing holds it back")


def waiting(service):
    """How many requests wait."""
    with service.client() as client:
        return int(re.search(r"^lexbandits_waiting_requests (\d+)$", client.get("/metrics").text, re.M)[1])


@pytest.fixture
def threads():
    with ThreadPoolExecutor(40) as pool:
        yield pool


def test_one_request_waits_and_is_woken(service, threads):
    study, lost = held_back(service)
    with service.client() as client:
        asked = threads.submit(client.post, TRIALS, json={"wait": 30})
        until(lambda: waiting(service) == 1)
        assert study.status.state == "measuring", "others are answered meanwhile"
        study.release(lost)
        (trial,) = asked.result(600).json()["trials"]
    assert (trial["arm"], trial["item"]) == (lost.arm, lost.item)
    until(lambda: waiting(service) == 0)


def test_what_others_write_into_the_storage_wakes_it_too(service, threads):
    _, lost = held_back(service)
    remote = lb.open_study("easy", service.link)
    asked = threads.submit(remote.tell_ask, [], 2, wait="10m")
    until(lambda: waiting(service) == 1)
    lb.open_study("easy", service.storage).tell(lost.id, {"x": 1})
    assert asked.result(600) == ([], []), "it has ended"
    assert remote.status.state == "finished"


def test_results_are_safe_before_it_waits(service):
    study, lost = held_back(service)
    study.release(lost)
    again = study.ask(worker="gpu-3", lease="1h")
    body = {"results": [{"trial": again.id, "values": {"x": 1}}], "ask": 1, "wait": 0.01}
    with service.client() as client:
        answer = client.post("/api/studies/easy/results", json=body).json()
    assert answer["outcomes"] == ["counted"]
    assert (answer["state"], answer["trials"]) == ("finished", [])


def test_many_wait_and_others_go_on(service, threads):
    """More requests than the service has threads."""
    study, lost = held_back(service)
    remotes = [lb.open_study("easy", service.link) for _ in range(40)]
    asked = [threads.submit(remote.ask, wait="10m") for remote in remotes]
    until(lambda: waiting(service) == 40)
    assert study.answer.arm == "a"
    study.note("still here")
    study.release(lost)
    until(lambda: any(each.done() for each in asked))
    (got,) = (each.result() for each in asked if each.done())
    assert got.item == lost.item
    assert waiting(service) == 39
    study.tell(got, {"x": 1})
    for each in asked:
        if each.exception(600) is not None:
            assert isinstance(each.exception(), lb.StudyFinished)
    assert sum(each.exception() is None for each in asked) == 1


def test_who_has_gone_is_given_nothing(service):
    study, lost = held_back(service)
    body = b'{"wait": 30}'
    head = f"POST {TRIALS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {service.token}\r\n"
    head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.sendall(head.encode() + body)
        until(lambda: waiting(service) == 1)
    assert study.ask_many(1, wait=2) == [], "who comes later has waited in vain"
    assert waiting(service) == 0, "and the one who left is not held for 30 s"
    number = study.status.handed_out
    study.release(lost)
    trial = study.ask()
    assert (trial.item, trial.number) == (lost.item, number), "nobody was given a trial in between"


def test_in_vain(service):
    _, lost = held_back(service)
    with service.client() as client:
        answer = client.post(TRIALS, json={"wait": "20ms"})
        words = refused(answer, 409, "results wait for the trial of gpu-3")
        assert (words["kind"], words["until"]) == ("StudyWaiting", lost.until.isoformat())
        for wrong in (-1, 31, "31s", "1h", "soon", True):
            assert client.post(TRIALS, json={"wait": wrong}).status_code == 422


def test_a_service_that_stops_answers_who_waits(tmp_path, threads):
    """And at once: it would be killed if it waited for them."""
    service = Service(fast(tmp_path))
    held_back(service)
    with service.client() as client:
        asked = [threads.submit(client.post, TRIALS, json={"wait": 30}) for _ in range(3)]
        until(lambda: waiting(service) == 3)
        _, log = service.stop()
        for each in asked:
            refused(each.result(600), 409, "results wait for the trial of gpu-3")
    assert "Traceback" not in log
    assert service.process.returncode in (0, -15)
