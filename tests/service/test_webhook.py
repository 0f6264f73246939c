"""What finishes, pauses or warns reaches the receiver: signed, again if need be, after a kill too."""

import base64
import hmac
import json
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import httpx2
import pytest

import lexbandits as lb
from lexbandits.service.auth import open_lasting
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.webhook import Receiver as Receiving
from lexbandits.service.webhook import Webhook
from support.asked import MODELS, ask, make
from support.patience import until
from support.questions import create
from support.receivers import SECRET, Receiver
from support.services import Service, fast

HARD = {
    "objectives": [{"name": "correct", "margin": 0.001, "tie": 0, "noise": ["bounded", 0, 1]}]
}  # goes on for long
EASY = {"objectives": [{"name": "right", "margin": 0.4, "noise": "exact"}], "arms": ["a", "b"]}


def with_webhook(**changes):
    """What a service runs that has other constants."""
    words = {"SECONDS_TO_ANSWER": 3600.0, "LOOK_EVERY": 1.0, "PAUSE": 0.1, "LONGEST_PAUSE": 0.5, **changes}
    changed = "".join(f"webhook.{name} = {value}\n" for name, value in words.items())
    return (
        "-c",
        f"from lexbandits.service import webhook\n{changed}from lexbandits.cli.main import app\napp()",
    )


class Quick(Service):
    """Tries again soon, and waits for an answer as long as it takes."""

    program = with_webhook()


class Hasty(Quick):
    """Waits for an answer for a second."""

    program = with_webhook(SECONDS_TO_ANSWER=1.0)


class Woken(Quick):
    """Does not look by itself."""

    program = with_webhook(LOOK_EVERY=3600.0)


class Hopeless(Quick):
    """Gives up after a second."""

    program = with_webhook(SECONDS_OF_TRIES=1.0)


@pytest.fixture
def receive():
    """Start receivers that end with the test."""
    started = []

    def start(*arguments, **words):
        started.append(Receiver(*arguments, **words))
        return started[-1]

    yield start
    for receiver in started:
        receiver.close()


@pytest.fixture
def notify(monkeypatch, serve):
    """Start services with a webhook."""
    monkeypatch.setenv("LEXBANDITS_WEBHOOK_SECRET", SECRET)
    return lambda url, storage=None, *options, kind=Quick: serve(
        storage, "--webhook", url, *options, kind=kind
    )


def finish(client, name="easy"):
    """A study that ends with two results."""
    make(client, **EASY, name=name)
    study = f"/api/studies/{name}"
    results = [{"trial": t["id"], "values": {"right": float(t["arm"] == "b")}} for t in ask(client, 2, study)]
    assert client.post(f"{study}/results", json={"results": results}).status_code == 200
    return study


def noted(storage):
    """Whether everything that was to be told is noted as told."""
    opened = open_lasting(storage)
    try:
        return not opened.undelivered()
    finally:
        opened.close()


def restarted(service, receiver, name):
    """A service that has looked at everything since it was started again: it has told something new."""
    if service.process.poll() is None:
        service.stop()
    service.start()
    with service.client() as client:
        finish(client, name)
    until(lambda: name in [told["study"] for told in receiver.taken], service)


def pause(client, why="tea"):
    assert client.post(f"{MODELS}/state", json={"state": "paused", "reason": why}).status_code == 200


def tell(client):
    (trial,) = ask(client)
    answer = client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": {"correct": 0.5}})
    assert answer.json() == {"outcome": "counted"}


def resume(client):
    assert client.post(f"{MODELS}/state", json={"state": "resumed"}).status_code == 200


@pytest.fixture(params=["sqlite", "postgres"])
def storage(request, tmp_path):
    return fast(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")


SQLITE_FIRST = [
    "sqlite",
    pytest.param("postgres", marks=pytest.mark.slow),
]  # where it matters little


def test_a_finish_and_a_pause_are_told_once_each(receive, notify, storage):
    receiver = receive()
    service = notify(receiver.url, storage, "--url", "https://studies.example.org", kind=Woken)
    with service.client() as client:
        finish(client, "easy one")
        until(lambda: receiver.taken)
        make(client, **HARD)
        pause(client)
        until(lambda: len(receiver.taken) == 2)
        resume(client)
        pause(client, 'a <b> & "c"')
        until(lambda: len(receiver.taken) == 3)
        seq = client.get("/api/studies/easy one").json()["seq"]
    finished, paused, again = receiver.taken
    assert finished.pop("id").startswith("msg_")
    assert finished.pop("time").endswith("+00:00")
    assert finished == {
        "kind": "finished",
        "study": "easy one",
        "seq": seq,
        "page": "https://studies.example.org/#/study/easy%20one",
        "fields": {
            "code": "finished",
            "arm": "b",
            "certified": True,
            "candidates": ["b"],
            "flags": [],
            "results": 2,
            "why": "certified at 95 % confidence",
        },
        "sentence": "easy one: b is certified as the answer",
    }
    assert (paused["kind"], paused["fields"]) == ("paused", {"code": "paused", "why": "tea"})
    assert paused["sentence"] == "models: paused: “tea”"
    assert again["sentence"] == 'models: paused: “a ‹b› & "c"”'
    assert paused["id"] != again["id"]
    until(lambda: noted(storage), service)
    restarted(service, receiver, "another")
    assert len(receiver.tries) == 4


@pytest.mark.parametrize("storage", SQLITE_FIRST, indirect=True)
def test_warnings_and_spent_budgets_are_told_though_no_event_says_it(receive, notify, storage):
    receiver = receive()
    with notify(receiver.url, storage).client() as client:
        make(client, objectives=[{"name": "score", "margin": 0.2, "noise": "gaussian"}], budget=6)
        results = [{"trial": trial["id"], "values": {"score": 1.5}} for trial in ask(client, 6)]
        client.post(f"{MODELS}/results", json={"results": results}).raise_for_status()
        until(lambda: len(receiver.taken) == 2)
        until(lambda: noted(storage))
        client.post(f"{MODELS}/notes", json={"text": "so that it is looked at again"}).raise_for_status()
        until(lambda: noted(storage))
    warned, spent = sorted(receiver.taken, key=lambda told: told["kind"])
    assert warned["kind"] == "assumption_warning"
    assert warned["fields"] == {"code": "noise", "objective": "score", "p": 0.0, "finding": "repeats"}
    assert warned["sentence"].startswith("models: score is Gaussian")
    assert spent["kind"] == "paused"
    assert spent["fields"] == {"code": "budget_spent", "arm": "small", "certified": False, "most": 6}
    assert "The budget of 6 trials is spent." in spent["sentence"]
    assert len(receiver.tries) == 2


def test_an_arm_that_breaks_a_limit_is_told_once(receive, notify):
    receiver = receive()
    errors = {"name": "errors", "direction": "minimize", "at_most": 0.2, "slack": 0.1, "noise": "bernoulli"}
    with notify(receiver.url).client() as client:
        make(client, objectives=[errors, HARD["objectives"][0]], arms=["good", "broken", "other"])
        while "broken" in client.get(MODELS).json()["candidates"]:
            results = [
                {"trial": t["id"], "values": {"errors": float(t["arm"] == "broken"), "correct": 0.5}}
                for t in ask(client, 6)
            ]
            client.post(f"{MODELS}/results", json={"results": results}).raise_for_status()
        until(lambda: [told for told in receiver.taken if not told["fields"]["assigned"]])
        pause(client)
        until(lambda: receiver.taken[-1]["kind"] == "paused")
    *broken, _ = receiver.taken
    assert len(broken) <= 2, "shown to break it, and given to nobody"
    fields = {"code": "violates_limit", "arm": "broken", "objective": "errors"}
    for told in broken:
        assert told["kind"] == "guardrail"
        assert told["fields"] == {**fields, "assigned": told is not broken[-1]}
        assert "broken is shown to break the limit on errors" in told["sentence"]
    assert broken[-1]["sentence"].endswith("and is given to nobody any more")


def test_two_notices_of_limits_never_share_a_name(tmp_path):
    """An arm "late x" beyond "errors", and an arm "x" beyond "errors late"."""
    beyond = {(0, "late x"), (1, "x")}
    estimates = SimpleNamespace(
        arms=["late x", "x"],
        objectives=[SimpleNamespace(name=name, limit=0.2) for name in ("errors", "errors late")],
        eliminations={},
        violates=lambda arm, column: (column, estimates.arms[arm]) in beyond,
        policy=SimpleNamespace(stopped=()),
        replay=SimpleNamespace(projection=SimpleNamespace(offered=[0, 1], seq=9, at=0.0)),
    )
    registry = StudyRegistry(fast(tmp_path))
    row = registry.storage.find(create(registry.storage).name)
    webhook = Webhook(registry, Receiving("https://example.org/", SECRET), "")
    notices = list(webhook._of_limits(row, SimpleNamespace(estimates=estimates)))
    assert [(each.body["fields"]["objective"], each.body["fields"]["arm"]) for each in notices] == [
        ("errors", "late x"),
        ("errors late", "x"),
    ]
    assert len({each.what for each in notices}) == len({each.body["id"] for each in notices}) == 2
    registry.close()
    registry.notes.close()


def test_a_receiver_that_fails_is_tried_again_and_can_drop_repeats(receive, notify):
    receiver = receive(lambda nth: [500, 404, 302, 204][min(nth, 4) - 1])
    service = notify(receiver.url)
    with service.client() as client:
        finish(client)
        until(lambda: receiver.taken)
    _, errors = service.stop()
    assert len(receiver.tries) == 4  # and a redirection was not followed
    assert len({headers["webhook-id"] for headers, _ in receiver.tries}) == 1
    assert receiver.tries[0][0]["webhook-id"] == receiver.taken[0]["id"]
    assert len({body for _, body in receiver.tries}) == 1
    said = [line.partition("study 'easy': ")[2] for line in errors.splitlines()]
    assert said == [
        *(f"the webhook is tried again: the receiver answers {status}" for status in (500, 404, 302)),
        "the webhook works again",
    ]


def test_who_is_down_is_told_when_it_is_back(receive, notify):
    receiver = receive(is_up=False)
    service = notify(receiver.url)
    with service.client() as client:
        finish(client)
        finish(client, "other")
        lines = [service.process.stderr.readline() for _ in range(2)]
        receiver.start()
        until(lambda: len(receiver.taken) == 2, service)
    _, errors = service.stop()
    assert ["cannot be reached" in line for line in lines] == [True, True]
    assert {"'easy'" in line for line in lines} == {True, False}
    assert "cannot be reached" not in errors, "a line for each study, not for each try"


@pytest.mark.parametrize(
    "silence", [None, b"HTTP/1.1 204 No Content\r\nx: y\r\n\r\n"], ids=["hangs", "drips"]
)
def test_a_receiver_that_hangs_is_tried_again(receive, notify, silence):
    receiver = receive(lambda nth: silence if nth < 3 else 204)
    with notify(receiver.url, kind=Hasty).client() as client:
        make(client, **HARD)
        pause(client)
        until(lambda: receiver.taken)
    assert len(receiver.tries) >= 3
    assert len({headers["webhook-id"] for headers, _ in receiver.tries}) == 1
    assert {told["kind"] for told in receiver.taken} == {"paused"}


def test_a_receiver_that_hangs_delays_nobody(receive, notify):
    receiver = receive(lambda nth: None if nth == 1 else 204)
    with notify(receiver.url).client() as client:
        make(client, **HARD)
        pause(client)
        until(lambda: receiver.tries)
        resume(client)
        for _ in range(5):
            tell(client)
        assert len(receiver.tries) == 1, "all were answered while it hung"
        receiver.release.set()
        until(lambda: receiver.taken)


def test_what_is_given_up_is_said_and_not_tried_again(receive, notify, tmp_path):
    receiver = receive(lambda nth: 500 if b"tea" in receiver.tries[-1][1] else 204)
    service = notify(receiver.url, kind=Hopeless)
    with service.client() as client:
        make(client, **HARD)
        pause(client)
        resume(client)
        pause(client, "milk")
        until(lambda: receiver.taken, service)
        assert receiver.taken[0]["fields"]["why"] == "milk"  # in the journal's order
        until(lambda: noted(fast(tmp_path)), service)
    tries = len(receiver.tries)
    assert tries >= 3
    restarted(service, receiver, "another")
    assert "given up" not in service.stop()[1]
    assert len(receiver.tries) == tries + 1


def test_a_service_killed_before_it_could_deliver_does_so_when_it_is_started_again(receive, notify, storage):
    receiver = receive(lambda nth: None if nth == 1 else 204)
    service = notify(receiver.url, storage)
    with service.client() as client:
        finish(client)  # committed and acknowledged
        until(lambda: receiver.tries)  # under way, and never answered
        finish(client, "other")  # waits
    service.process.send_signal(signal.SIGKILL)
    service.process.communicate()
    service.start()
    until(lambda: len(receiver.taken) == 2, service)
    assert {told["study"] for told in receiver.taken} == {"easy", "other"}
    assert receiver.tries[0][0]["webhook-id"] in {told["id"] for told in receiver.taken}
    until(lambda: noted(storage), service)
    restarted(service, receiver, "another")
    assert len(receiver.tries) == 4


def test_only_what_happens_from_the_first_start_on_is_told_whoever_does_it(receive, notify, tmp_path):
    objectives = [lb.Objective("right", margin=0.2, noise="bernoulli")]
    for name in ("old", "old and new"):
        lb.create_study(name, fast(tmp_path), arms=["a", "b"], objectives=objectives, seed=0).pause("before")
    receiver = receive()
    service = notify(receiver.url)
    here = lb.open_study("old and new", fast(tmp_path))  # past the service
    here.resume()
    here.pause("now")
    until(lambda: receiver.taken)
    service.kill()
    here.resume()
    here.pause("while nobody served")
    service.start()
    until(lambda: receiver.taken[-1]["fields"]["why"] == "while nobody served")
    told = {told["id"]: told for told in receiver.taken}  # killed before it was noted, the first comes again
    assert [each["fields"]["why"] for each in told.values()] == ["now", "while nobody served"]
    assert {each["study"] for each in told.values()} == {"old and new"}


@pytest.mark.parametrize("storage", SQLITE_FIRST, indirect=True)
def test_two_services_on_one_storage_tell_everything_under_one_id(receive, notify, storage):
    """Who committed tells it; the other finds it noted, or was as quick and repeats it under the same id."""
    receiver = receive()
    services = [notify(receiver.url, storage) for _ in range(2)]
    names = [f"easy {number}" for number in range(6)]
    with services[0].client() as first, services[1].client() as second:
        make(first, **HARD)
        for number, name in enumerate(names):
            finish((first, second)[number % 2], name)
            pause((second, first)[number % 2], why=name)
            resume(first)
        lb.open_study("models", storage).pause("by a third process")

    def told():
        ids = {each["id"]: (each["kind"], each["study"], each["seq"]) for each in list(receiver.taken)}
        return len(ids) == len(set(ids.values())) == 13

    until(told)
    until(lambda: noted(storage))
    kinds = {(each["kind"], each["study"]) for each in list(receiver.taken)}
    assert kinds == {("paused", "models"), *(("finished", name) for name in names)}
    for service in services:
        service.stop()  # with what it was about to repeat
    before = [headers["webhook-id"] for headers, _ in receiver.tries]
    for number, service in enumerate(services):
        restarted(service, receiver, f"another {number}")
    again = [headers["webhook-id"] for headers, _ in receiver.tries]
    assert [identity for identity in again if identity in before] == before, "all was noted"


def test_a_receiver_over_tls_is_told_if_its_certificate_is_trusted(
    receive, notify, tmp_path, monkeypatch, certificate
):
    authority, own = certificate
    receiver = receive(certificate=own)
    service = notify(receiver.url)
    with service.client() as client:
        finish(client)
    assert "the receiver's certificate is not trusted" in service.process.stderr.readline()
    service.stop()
    assert receiver.tries == []
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    notify(receiver.url)
    until(lambda: receiver.taken)
    assert [each["kind"] for each in receiver.taken] == ["finished"]


def test_the_secret_is_nowhere(receive, notify, tmp_path):
    receiver = receive(lambda nth: 500 if nth == 1 else 204)
    service = notify(f"{receiver.url}/way-in", None, "--log-format", "json")
    with service.client() as client:
        study = finish(client)
        until(lambda: receiver.taken)
        paths = [study, f"{study}/events", f"{study}/export?format=jsonl", "/metrics", "/openapi.json"]
        answers = [client.get(path).text for path in paths]
    out, errors = service.stop()
    kept = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    for hidden in (SECRET, "way-in"):
        assert hidden not in "".join([*answers, out, errors])
        assert hidden.encode() not in kept
    assert '"webhook_fails"' in errors


REFUSED = [
    ("http://127.0.0.1:9/", "", "a webhook is signed"),
    ("http://127.0.0.1:9/", "short", "at least 16 bytes"),
    ("http://127.0.0.1:9/", "whsec_not base64", "in base64"),
    ("http://127.0.0.1:99999/", SECRET, "https://example.org/hook"),
    ("ftp://127.0.0.1/", SECRET, "https://example.org/hook"),
    ("https://me:password@example.org/", SECRET, "without a password"),
]
ALL_IN_ONE = """
import json, sys
from lexbandits.cli.main import app
for words in json.loads(sys.argv[1]):
    try:
        app(words)
    except SystemExit as end:
        print(f"ends with {end.code}", file=sys.stderr, flush=True)
"""


def test_a_webhook_that_cannot_work_is_refused_at_the_start(tmp_path):
    """In one process one after the other: a service that is started does not end."""
    started = []
    for number, (url, secret, _) in enumerate(REFUSED):
        (tmp_path / f"secret {number}").write_text(f"{secret}\n")
        options = ["--webhook", url, "--webhook-secret-file", f"{tmp_path}/secret {number}"]
        started.append(["serve", "--storage", fast(tmp_path), *options])
    command = [sys.executable, "-c", ALL_IN_ONE, json.dumps(started)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    said = done.stderr.split("ends with 2\n")
    assert done.returncode == 0
    assert said.pop() == ""
    for (_, secret, words), errors in zip(REFUSED, said, strict=True):
        assert words in errors
        assert not secret or secret not in errors
    assert not (tmp_path / "service.db").exists()


def listens(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


def signed(key, at, body):
    digest = hmac.digest(key, f"msg_1.{at}.".encode() + body, "sha256")
    signature = f"v1,{base64.b64encode(digest).decode()}"
    return {"webhook-id": "msg_1", "webhook-timestamp": str(at), "webhook-signature": signature}


def test_the_receiver_of_the_docs_takes_what_is_genuine_once(receive, notify, tmp_path, monkeypatch):
    page = (Path(__file__).parents[2] / "docs/service.md").read_text("utf-8")
    free = receive(is_up=False)  # it keeps the port for the other
    (code,) = re.findall(r"```python\n(# receiver.py\n.*?)```", page, re.DOTALL)
    (tmp_path / "receiver.py").write_text(code.replace("9000", str(free.port)))
    secret = f"whsec_{base64.b64encode(b'0123456789abcdef01234567').decode()}"
    monkeypatch.setenv("LEXBANDITS_WEBHOOK_SECRET", secret)
    with subprocess.Popen(
        [sys.executable, tmp_path / "receiver.py"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            until(lambda: listens(free.port), process)
            with notify(free.url).client() as client:
                finish(client)
                assert process.stdout.readline() == "easy: b is certified as the answer\n"
            body, now = b'{"sentence": "genuine"}', int(time.time())
            right, other = b"0123456789abcdef01234567", b"0123456789abcdef01234568"
            sent = [(right, now), (right, now), (other, now), (right, now - 600), (right, now + 600)]
            headers = [*(signed(key, at, body) for key, at in sent), {}]
            answers = [httpx2.post(free.url, content=body, headers=each) for each in headers]
            assert [answer.status_code for answer in answers] == [204, 204, 401, 401, 401, 401]
        finally:
            process.kill()
        assert process.stdout.read() == "genuine\n"  # once
