"""Who may do what: every endpoint, every kind of token."""

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lexbandits as lb
from lexbandits.service.auth import Tokens, open_lasting
from support.asked import QUESTION, make, refused
from support.command import invoked, process
from support.patience import until
from support.proxy import Proxy
from support.services import Forgiving, fast

RANK = {"read": 1, "write": 2, "admin": 3}
DECIDING = {
    "create", "delete", "add_arm", "withdraw", "restore", "set_state", "amend", "reorder", "set_budget",
    "add_blind_arm", "retry", "import_results", "forget",
}  # fmt: skip
OPEN_TO_ALL = {"healthz"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    """A service with stored tokens, one per role, and one that was revoked."""
    storage = fast(tmp_path_factory.mktemp("roles"))
    tokens = Tokens(open_lasting(storage))
    secrets = {role: tokens.create(role, role) for role in RANK}
    secrets["revoked"] = tokens.create("gone", "admin")
    tokens.revoke("gone")
    service = Forgiving(storage)
    yield service, secrets
    service.stop()


def operations(service):
    with service.client(token="") as client:
        paths = client.get("/openapi.json").json()["paths"]
    return [
        (method.upper(), path, operation["operationId"])
        for path, methods in paths.items()
        for method, operation in methods.items()
    ]


def needed(method, name):
    return "read" if method == "GET" else "admin" if name in DECIDING else "write"


def test_every_endpoint_and_every_token(guarded):
    service, secrets = guarded
    assert not service.token  # there are stored ones
    found = operations(service)
    assert {name for _, _, name in found} >= DECIDING | OPEN_TO_ALL
    assert len(found) >= 24
    for token in ("", "lb_wrong", secrets["revoked"], *(secrets[role] for role in RANK)):
        role = next((role for role in RANK if secrets[role] == token), None)
        with service.client(token=token) as client:
            for method, path, name in found:
                where = path.format(
                    study="no study", trial="0-0", worker="w", arm="a", objective="o", name="race"
                ).replace(" ", "%20")
                body = None if method in ("GET", "DELETE") else {}
                answer = client.request(method, where, json=body)
                if name in OPEN_TO_ALL:
                    assert answer.status_code == 200
                elif role is None:
                    refused(answer, 401, "token")
                    assert answer.headers["www-authenticate"] == "Bearer"
                elif RANK[role] < RANK[needed(method, name)]:
                    refused(answer, 403, needed(method, name), role)
                else:
                    assert answer.status_code in (200, 201, 400, 404, 422), (method, path, answer.text)


def test_who_may_not_is_told_so_before_their_body_is_read(guarded):
    service, secrets = guarded
    for token, status in (("", 401), (secrets["write"], 403)):
        with service.client(token=token) as client:
            refused(client.post("/api/studies", content=b"{" * 1000), status)


def test_a_token_is_revoked_from_the_next_request_on(guarded):
    service, _ = guarded
    tokens = Tokens(open_lasting(service.storage))
    with service.client(token=tokens.create("leaked", "read")) as client:
        assert client.get("/api/studies").status_code == 200
        until(lambda: next(row for row in tokens.storage.tokens() if row.name == "leaked").last_used)
        tokens.revoke("leaked")
        refused(client.get("/api/studies"), 401)


@pytest.mark.parametrize("where", ["sqlite", "postgres"])
def test_many_make_a_token_of_one_name_at_once(request, tmp_path, where):
    storage = f"{tmp_path}/s.db" if where == "sqlite" else request.getfixturevalue("postgres")
    makers = [Tokens(open_lasting(storage)) for _ in range(6)]
    start = threading.Barrier(len(makers))

    def make_one(tokens):
        start.wait()
        try:
            return tokens.create("ann", "write")
        except lb.ConflictError as error:
            return error

    with ThreadPoolExecutor(len(makers)) as pool:
        made = list(pool.map(make_one, makers))
    assert len([secret for secret in made if isinstance(secret, str)]) == 1
    assert len(makers[0].valid()) == 1


def test_all_tokens_of_a_name_are_revoked(tmp_path):
    tokens = Tokens(open_lasting(f"{tmp_path}/s.db"))
    secret = tokens.create("ann", "write")
    tokens.storage.add_token("ann", "admin", "0" * 64)  # as an earlier version may have made
    tokens.revoke("ann")
    assert tokens.valid() == []
    assert tokens.roles_of([f"Bearer {secret}"]) == [None]
    with pytest.raises(lb.StudyError, match="revoked before"):
        tokens.revoke("ann")


@pytest.mark.parametrize("how", ["before", "after", "answered"])
def test_a_token_is_made_once_though_the_answer_is_lost(server, postgres, how):
    wire = Proxy(server.socket)
    tokens = Tokens(open_lasting(wire.of(postgres)))
    wire.arm(b"COMMIT", how)
    secret = tokens.create("ann", "write")
    assert wire.cuts == 1
    assert tokens.check(f"Bearer {secret}", "write") == "write"
    wire.close()


def test_only_the_hash_is_stored(guarded):
    service, secrets = guarded
    path = Path(service.storage.removeprefix("sqlite:///").partition("?")[0])
    content = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert content.count(b"leaked") + content.count(b"admin") > 0
    for secret in secrets.values():
        assert secret.startswith("lb_")
        assert secret.encode() not in content
        assert secret[3:].encode() not in content


def test_a_worker_in_python_needs_the_address_and_a_token(guarded, monkeypatch):
    service, secrets = guarded
    with service.client(token=secrets["admin"]) as admin:
        make(admin)
    monkeypatch.setenv("LEXBANDITS_TOKEN", secrets["write"])
    study = lb.open_study("models", service.address)
    assert study.tell(study.ask(worker="ann"), {"correct": 1, "latency": 3}) == "counted"
    with pytest.raises(lb.AuthError, match="role admin"):
        study.pause("me?")
    monkeypatch.setenv("LEXBANDITS_TOKEN", "lb_wrong")
    with pytest.raises(lb.AuthError, match="LEXBANDITS_TOKEN") as error:
        lb.open_study("models", service.address)
    assert "lb_wrong" not in str(error.value)


def test_beyond_loopback_only_with_tokens(tmp_path, serve):
    storage = f"{tmp_path}/service.db"
    alone = process("serve", "--host", "0.0.0.0", "--port", "0", storage=storage)
    assert alone.returncode == 2
    assert "lexbandits token create" in alone.stderr
    made = invoked("token", "create", "ann", "--role", "admin", storage=storage)
    secret = made.stdout.strip()
    assert made.exit_code == 0
    listed = invoked("token", "list", storage=storage).stdout
    assert "ann" in listed
    assert secret not in listed
    service = serve(storage, "--host", "0.0.0.0", "--allow-host", "studies.example.org")
    service.address = service.address.replace("0.0.0.0", "127.0.0.1")
    assert not service.token
    with service.client(token=secret) as client:
        assert client.get("/api/studies").json()["role"] == "admin"
        assert client.get("/api/studies", headers={"Host": "studies.example.org"}).status_code == 200
        refused(client.get("/api/studies", headers={"Host": "evil.example.org"}), 421)
    revoked = invoked("token", "revoke", "ann", "--json", storage=storage)
    assert json.loads(revoked.stdout) == {"name": "ann", "revoked": True}
    assert invoked("token", "revoke", "ann", storage=storage).exit_code == 2


def test_the_password_of_a_database_is_nowhere(own_server, serve):
    server, address = own_server, own_server.database("service_password")
    service = serve(address)
    with service.client() as client:
        client.post("/api/studies", json=QUESTION)
        server.stop()
        problem = refused(client.post("/api/studies/models/trials", json={}), 503)
        server.start()
        assert "sesame" not in str(problem)
        assert client.post("/api/studies/models/trials", json={}).status_code == 201
    out, errors = service.stop()
    assert "sesame" not in out + errors
    assert service.token not in errors
    assert "sesame" not in " ".join(service.process.args)


def test_a_password_in_a_command_is_refused():
    for words in (["serve"], ["token", "list"]):
        done = process(*words, "--storage", "postgresql://ann:sesame@127.0.0.1:1/db", storage="")
        assert done.returncode == 2
        assert "LEXBANDITS_STORAGE" in done.stderr
        assert "sesame" not in done.stdout + done.stderr
