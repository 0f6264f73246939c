"""Services for tests."""

import shutil
import subprocess

import pytest

from support.services import FromNothing, Service, fast


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """One service for many tests."""
    service = FromNothing(fast(tmp_path_factory.mktemp("service")))
    yield service
    _, errors = service.stop()
    assert "Traceback" not in errors
    assert "lb_" not in errors


@pytest.fixture
def service(request):
    """An empty service on SQLite; on PostgreSQL where parametrize("service", …, indirect) says so."""
    if getattr(request, "param", "sqlite") == "postgres":
        return request.getfixturevalue("serve")(request.getfixturevalue("postgres"))
    running = request.getfixturevalue("running")
    running.clear()
    return running


@pytest.fixture
def client(service):
    with service.client() as client:
        yield client


@pytest.fixture
def serve(tmp_path):
    """Start services that end with the test."""
    started = []

    def start(storage=None, *options, kind=Service):
        started.append(kind(storage or fast(tmp_path), *options))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.kill()
        service.process.stdout.close()
        service.process.stderr.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """An authority of one's own (its file), and a certificate for this machine with its key."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1")
    new, signed = ["-newkey", "rsa:2048", "-nodes", "-subj"], ["-extfile", "names", "-out", "host.pem"]
    for command in (
        ["req", "-x509", *new, "/CN=our own", "-keyout", "ca.key", "-out", "ca.pem"],
        ["req", *new, "/CN=receiver", "-keyout", "host.key", "-out", "host.csr"],
        ["x509", "-req", "-in", "host.csr", "-CA", "ca.pem", "-CAkey", "ca.key", *signed],
    ):
        subprocess.run(["openssl", *command], cwd=folder, check=True, capture_output=True)
    return folder / "ca.pem", (folder / "host.pem", folder / "host.key")
