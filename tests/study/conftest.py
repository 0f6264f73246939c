"""Storages to test on: memory, SQLite and a real PostgreSQL server, private to the run."""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from lexbandits.study.storage.contract import open_storage
from lexbandits.study.storage.memory import MemoryStorage

sys.path.insert(0, str(Path(__file__).parent))


class Server:
    """A PostgreSQL server in a folder of its own, run by somebody without rights."""

    def __init__(self, folder: Path, binaries: Path, options: str = "-c fsync=off") -> None:
        self.folder, self.binaries = folder, binaries
        self.options = options  # without fsync it is safe against kill -9 all the same
        self.ready = ""
        self.user = "postgres" if os.getuid() == 0 else ""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        if self.user:
            shutil.chown(folder, self.user)
        self._fill(f"{folder}/data")
        self.start()

    def _fill(self, data: str) -> None:
        self._run("initdb", "-D", data, "-U", "lex", "-A", "trust", "-E", "UTF8", "--no-sync")

    def _run(self, command: str, *arguments: str) -> None:
        change = ["runuser", "-u", self.user, "--"] if self.user else []
        done = subprocess.run(
            [*change, str(self.binaries / command), *arguments],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={self.folder}"
        options += f" {self.options}"
        self._run(
            "pg_ctl", "-D", f"{self.folder}/data", "-w", "-o", options, "-l", f"{self.folder}/log", "start"
        )

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.folder}/data", "-w", "-m", mode, "stop")

    def database(self, name: str) -> str:
        with psycopg.connect(f"{self.address}/postgres", autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return f"{self.address}/{name}"

    @property
    def address(self) -> str:
        return f"postgresql://lex:open%20sesame@127.0.0.1:{self.port}"


class Standby(Server):
    """A copy of another server that goes on copying what is written there."""

    def __init__(self, folder: Path, primary: Server) -> None:
        self.primary = primary
        super().__init__(folder, primary.binaries)

    def _fill(self, data: str) -> None:
        source = ["-h", "127.0.0.1", "-p", f"{self.primary.port}", "-U", "lex"]
        self._run("pg_basebackup", *source, "-D", data, "-R", "-X", "stream", "-c", "fast", "--no-sync")


def server_binaries() -> Path | None:
    """The folder of PostgreSQL's programs, if it is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    path = shutil.which("initdb")
    return found[0].parent if found else Path(os.path.realpath(path)).parent if path else None


@pytest.fixture(scope="session")
def server():
    binaries = server_binaries()
    if binaries is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no PostgreSQL here: install Debian's postgresql")
        pytest.skip("no PostgreSQL here: install Debian's postgresql to test studies on it")
    with tempfile.TemporaryDirectory() as folder:  # not below pytest's, which nobody else may enter
        running = Server(Path(folder), binaries)
        yield running
        running.stop("immediate")


@pytest.fixture
def postgres(server):
    """The address of a database without tables."""
    if not server.ready:
        server.ready = server.database("tests")
    with psycopg.connect(server.ready) as connection:
        connection.execute("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
    return server.ready


@pytest.fixture
def standby(server, postgres):
    """The address of a copy of that database, which can only be read."""
    open_storage(postgres).close()  # with its tables
    with tempfile.TemporaryDirectory() as folder:
        running = Standby(Path(folder), server)
        yield f"{running.address}/{postgres.rpartition('/')[2]}"
        running.stop("immediate")


@pytest.fixture(params=["sqlite", "postgres"])
def address(request, tmp_path):
    """The address of an empty database."""
    return _sqlite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder to work in: who does needs no --storage."""
    monkeypatch.delenv("LEXBANDITS_STORAGE", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def disk(tmp_path):
    """A small disk of its own."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"cannot mount a disk here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def _sqlite(folder: Path) -> str:
    """Safe against kill -9, not against a power cut: much faster."""
    return f"sqlite:///{folder}/study.db?synchronous=OFF"


@pytest.fixture(scope="session")
def running(tmp_path_factory):
    """A service for studies that are tested over http as they are here."""
    sys.path.append(str(Path(__file__).parents[1] / "server"))
    from services import Service, fast

    service = Service(fast(tmp_path_factory.mktemp("service")))
    yield service
    assert "Traceback" not in service.stop()[1]


@pytest.fixture(params=["memory", "sqlite", "postgres", "http"])
def storage(request, tmp_path):
    """An empty storage."""
    if request.param == "http":
        service = request.getfixturevalue("running")
        service.clear()
        yield open_storage(service.link)
        return
    if request.param == "memory":
        yield MemoryStorage()
        return
    place = _sqlite(tmp_path) if request.param == "sqlite" else request.getfixturevalue("postgres")
    opened = open_storage(place)
    yield opened
    opened.close()
