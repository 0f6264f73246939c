"""Services for tests, and the database of the tests of studies."""

import importlib.util
import sys
from pathlib import Path

import pytest

STUDY = Path(__file__).parents[1] / "study"
sys.path[:0] = [str(STUDY), str(Path(__file__).parent)]
_spec = importlib.util.spec_from_file_location("study_fixtures", STUDY / "conftest.py")
_fixtures = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_fixtures)
server, postgres, standby = _fixtures.server, _fixtures.postgres, _fixtures.standby

from services import Service, fast  # noqa: E402


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """One service for many tests."""
    service = Service(fast(tmp_path_factory.mktemp("service")))
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

    def start(storage=None, *options):
        started.append(Service(storage or fast(tmp_path), *options))
        return started[-1]

    yield start
    for service in started:
        if service.process.poll() is None:
            service.kill()
        service.process.stdout.close()
        service.process.stderr.close()
