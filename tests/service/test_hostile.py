"""What strangers, careless programs and other people's pages send."""

import json
import select
import socket

import pytest

from support.asked import MODELS, QUESTION, ask, make, refused
from support.patience import until
from support.services import Patient

STRANGE = [
    "<img src=x onerror=alert(1)>",
    "a/b",
    "100%",
    "a?b#c",
    "日本 ünï",
    "%2F..%2F",
    "'; DROP TABLE x",
    "a b",
]
JSON = {"content-type": "application/json"}


@pytest.mark.parametrize(
    "host",
    [
        "evil.example.org",
        "127.0.0.1.evil.org",
        "localhost.evil.org:80",
        "",
        "10.0.0.1",
        "[::1].evil.com",
        "localhost:1@evil",
        "localhost, evil.org",
        "::1",
    ],
)
def test_a_foreign_host(client, host):
    refused(client.get("/api/studies", headers={"Host": host}), 421)
    refused(client.get("/", headers={"Host": host}), 421)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:9", "[::1]:80"])
def test_names_of_this_machine(client, host):
    assert client.get("/healthz", headers={"Host": host}).status_code == 200


def test_a_foreign_page_gets_nowhere(service):
    with service.client(token="", Origin="https://evil.example.org") as page:
        refused(
            page.post("/api/studies", content=json.dumps(QUESTION), headers={"content-type": "text/plain"}),
            401,
        )
        preflight = page.options("/api/studies", headers={"Access-Control-Request-Method": "POST"})
        assert preflight.status_code == 405
        for answer in (preflight, page.get("/healthz")):
            assert not any(name.startswith("access-control") for name in answer.headers)
            assert "set-cookie" not in answer.headers


def test_every_answer_has_its_headers(client):
    for path in ("/", "/healthz", "/api/studies", "/api/none", "/none", "/openapi.json"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'; ")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert "cache-control" in headers or path == "/"
        assert "server" not in headers


@pytest.mark.parametrize("name", STRANGE)
def test_strange_names_come_back_as_they_are(client, name):
    made = make(client, name=name, arms=[name, "other"], max_arms=3)
    where = made.headers["location"]
    summary = client.get(where).json()
    assert summary["name"] == name
    assert summary["arms"][0]["name"] == name
    quoted = where.removeprefix("/api/studies/")
    assert client.post(f"{where}/arms/{quoted}/withdrawal", json={"reason": name}).status_code == 200
    assert client.get(where).json()["arms"][0]["withdrawn"] == name
    assert client.post(f"{where}/workers/{quoted}/heartbeat").status_code == 204
    assert [s["name"] for s in client.get("/api/studies").json()["studies"]] == [name]
    assert client.delete(where).status_code == 204


@pytest.mark.parametrize(
    "name", ["", "a\nb", "\x00", "\u202eabc", "x" * 201, "\ud800", "a\u200bb", ".", ".."]
)
def test_names_that_are_none(client, name):
    for changes in ({"name": name}, {"arms": [name]}, {"arms": [{"name": name}]}):
        content = json.dumps({**QUESTION, **changes})
        refused(client.post("/api/studies", content=content, headers=JSON), 422)


@pytest.mark.parametrize("key", ["arm", "item", "repeat"])
def test_keys_of_arms_that_run_fills_in(client, key):
    arms = ["a", {"name": "b", key: "c"}]
    refused(client.post("/api/studies", json={**QUESTION, "arms": arms}), 422, "cannot be a key of an arm")
    make(client, max_arms=5)
    more = {"name": "d", key: "c"}
    refused(client.post(f"{MODELS}/arms", json=more), 422, "cannot be a key of an arm")


def test_an_error_names_what_was_sent_and_no_function(client):
    answer = client.post("/api/studies", json={**QUESTION, "arms": [{"name": "a", "b\u202e": 1}, "c"]})
    refused(answer, 422, "body.arms.0")
    assert "function" not in answer.text
    assert "constrained" not in answer.text


@pytest.mark.parametrize("text", ["\ud800", "x" * 2001, "", 7, None, ["a"]])
def test_reasons_that_are_none(client, text):
    make(client)
    content = json.dumps({"reason": text})
    refused(client.post(f"{MODELS}/arms/cot/withdrawal", content=content, headers=JSON), 422)


def test_control_characters_in_a_reason_are_kept_as_text(client):
    make(client)
    reason = "line\nnext\x00<b>\u202e"
    client.post(f"{MODELS}/arms/cot/withdrawal", json={"reason": reason})
    assert client.get(MODELS).json()["arms"][2]["withdrawn"] == reason
    for path in ("fragments", "report"):  # where it is shown it turns nothing around
        shown = client.get(f"{MODELS}/{path}").text
        assert "\\u202e" in shown
        assert "\u202e" not in shown


@pytest.mark.parametrize(
    "path",
    [
        "/../../etc/passwd",
        "/..%2f..%2fetc%2fpasswd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/static/../app.py",
        "//etc/passwd",
        "/api/studies/..%2f..%2fhealthz",
        "/api/studies/%00",
        "/api/studies/%ff%fe",
        "/api/studies/a%2",
    ],
)
def test_path_tricks(service, path):
    status, content = raw(
        service, f"GET {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {service.token}\r\n"
    )
    assert status in (404, 405)
    assert "root:" not in content


def test_bodies_that_are_too_much(client, service):
    make(client)
    (trial,) = ask(client)
    path = f"{MODELS}/trials/{trial['id']}/result"
    refused(client.put(path, content=b'{"failed": "' + b"x" * (5 << 20) + b'"}', headers=JSON), 413)
    refused(client.put(path, content=(b" " * (1 << 20) for _ in range(6)), headers=JSON), 413)  # in chunks
    for deep in (b"[" * 21 + b"]" * 21, b'{"a":' * 500 + b"1" + b"}" * 500, b"[" * 2_000_000):
        refused(client.put(path, content=deep, headers=JSON), 422, "JSON")
    refused(client.put(path, content=b'{"failed": "a", "failed": "b"}', headers=JSON), 422, "twice")
    refused(client.put(path, content=b'{"failed": "\xff"}', headers=JSON), 422)
    refused(client.put(path, content=b'{"values": {"correct": ' + b"1" * 5000 + b"}}", headers=JSON), 422)
    refused(client.put(path, content=b'{"failed": "a"}', headers={"content-type": "text/plain"}), 422)
    refused(client.put(path, json={"failed": "a", "partial": 1}), 422, "partial")
    with pytest.raises(ConnectionError):  # a head without end
        raw(service, f"GET / HTTP/1.1\r\nHost: localhost\r\nX: {'x' * 5_000_000}\r\n")
    assert client.get(MODELS).json()["results"] == 0


def test_numbers_in_an_address_are_bounded(client):
    make(client)
    for query in (
        "limit=0",
        "limit=1001",
        "since=-1",
        "limit=x",
        "since=1e9",
        f"since={10**30}",
        "state=lost",
    ):
        refused(client.get(f"{MODELS}/trials?{query}"), 422)
    refused(client.post(f"{MODELS}/trials", json={"n": 1001}), 422)
    refused(client.post(f"{MODELS}/trials", json={"n": True}), 422)
    refused(client.post(f"{MODELS}/trials", json={"lease": "400d"}), 422)
    refused(client.post(f"{MODELS}/trials", json={}, headers={"Idempotency-Key": "k" * 201}), 422)


def test_a_token_in_an_address_is_none(service):
    with service.client(token="") as client:
        refused(client.get(f"/api/studies?token={service.token}"), 401)


def test_slow_clients_do_not_hold_up_others(serve):
    """Fifty that send a head and never its body, fifty that send nothing: all still wait at the end."""
    service = serve(kind=Patient)
    head = (
        f"PUT {MODELS}/trials/0-0/result HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: Bearer {service.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    )
    slow = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(100)]
    try:
        for connection in slow[:50]:
            connection.sendall(head.encode())
        with service.client() as client:
            make(client)
            until(lambda: service.unread() == 0, service)
            for _ in range(20):
                assert client.get(MODELS).status_code == 200
        assert len(slow) - len(select.select(slow, [], [], 0)[0]) == 100, "none was sent away meanwhile"
    finally:
        for connection in slow:
            connection.close()


def raw(service, head, patience=240):
    """The status and all of the answer to something that no client would send."""
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        connection.settimeout(patience)
        connection.sendall(f"{head}Connection: close\r\n\r\n".encode())
        content = b""
        while chunk := connection.recv(1 << 16):
            content += chunk
    return int(content.split(b" ")[1]), content.decode(errors="replace")
