"""A real service: a process of its own, on SQLite or PostgreSQL."""

import importlib.util
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

import lexbandits as lb

STUDY = Path(__file__).parents[1] / "study"
sys.path[:0] = [str(STUDY), str(Path(__file__).parent)]
_spec = importlib.util.spec_from_file_location("study_fixtures", STUDY / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
server, postgres = _fixtures.server, _fixtures.postgres


class Service:
    """`lexbandits serve` on a free port."""

    def __init__(self, storage, *options, wait=True):
        self.storage, self.options = storage, options
        self.start()

    def start(self, port=0):
        self.process = subprocess.Popen(
            [sys.executable, "-m", "lexbandits", "serve", "--port", str(port), *self.options],
            env={**os.environ, "LEXBANDITS_STORAGE": str(self.storage)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            raise AssertionError(self.process.stderr.read())
        self.address, _, fragment = self.link.partition("/#token=")
        self.address = self.address.rstrip("/")
        self.token = fragment

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def client(self, token=None, **headers):
        token = self.token if token is None else token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return httpx2.Client(base_url=self.address, headers=headers, timeout=60)

    def stop(self):
        """As systemd would; what it wrote on stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=30)

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def clear(self):
        for name in lb.list_studies(self.link):
            lb.delete_study(name, self.link)


def fast(folder):
    """Safe against kill -9, not against a power cut: much faster."""
    return f"sqlite:///{folder}/service.db?synchronous=OFF"


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """One service for many tests."""
    service = Service(fast(tmp_path_factory.mktemp("service")))
    yield service
    _, errors = service.stop()
    assert "Traceback" not in errors
    assert "lb_" not in errors


@pytest.fixture
def service(running):
    """An empty service."""
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

    def start(storage=None, *options):
        started.append(Service(storage or fast(tmp_path), *options))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.kill()
        service.process.stdout.close()
        service.process.stderr.close()


def until(condition, seconds=20):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)
