"""One PostgreSQL for the whole run, on a unix socket: whoever needs it first starts it, the end stops it."""

import fcntl
import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import psycopg
import pytest

from lexbandits.study.storage.contract import open_storage

OPTIONS = "-c fsync=off -c max_connections=300"  # without fsync it is safe against kill -9 all the same
FOLDER = pytest.StashKey[Path]()
_numbers = itertools.count()


class Server:
    """A PostgreSQL server in a folder of its own, run by somebody without rights."""

    def __init__(self, folder: Path, binaries: Path, options: str = OPTIONS) -> None:
        self.folder, self.binaries, self.options = folder, binaries, options
        self.user = "postgres" if os.getuid() == 0 else ""
        self.data, self.socket = folder / "data", folder / ".s.PGSQL.5432"
        self.ready = ""  # a database that exists already

    def make(self) -> "Server":
        """Fill the folder, and start."""
        if self.user:
            shutil.chown(self.folder, self.user)
        self._fill()
        self.start()
        return self

    def _fill(self) -> None:
        self._run("initdb", "-D", f"{self.data}", "-U", "lex", "-A", "trust", "-E", "UTF8", "--no-sync")

    def _run(self, command: str, *words: str) -> None:
        change = ["runuser", "-u", self.user, "--"] if self.user else []
        done = subprocess.run(
            [*change, str(self.binaries / command), *words],
            cwd="/",
            capture_output=True,
            text=True,
            timeout=240,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        options = f"-c listen_addresses= -c unix_socket_directories={self.folder} {self.options}"
        self._run(
            "pg_ctl",
            "-D",
            f"{self.data}",
            "-w",
            "-t",
            "200",
            "-o",
            options,
            "-l",
            f"{self.folder}/log",
            "start",
        )

    def stop(self, mode: str = "fast") -> None:
        self._run("pg_ctl", "-D", f"{self.data}", "-w", "-t", "200", "-m", mode, "stop")

    def database(self, name: str) -> str:
        """The address of a new database that nobody else has."""
        name = f"{name}_{os.getpid()}_{next(_numbers)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{name}"')
        return self.address(name)

    def address(self, database: str) -> str:
        return f"postgresql://lex:open%20sesame@/{database}?host={self.folder}"


class Standby(Server):
    """A copy of another server that goes on copying what is written there."""

    def __init__(self, folder: Path, primary: Server) -> None:
        super().__init__(folder, primary.binaries, primary.options)
        self.primary = primary

    def _fill(self) -> None:
        source = ["-h", f"{self.primary.folder}", "-U", "lex"]
        self._run(
            "pg_basebackup", *source, "-D", f"{self.data}", "-R", "-X", "stream", "-c", "fast", "--no-sync"
        )


def server_binaries() -> Path | None:
    """The folder of PostgreSQL's programs, if it is installed."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), reverse=True)
    path = shutil.which("initdb")
    return found[0].parent if found else Path(os.path.realpath(path)).parent if path else None


def pytest_configure(config):
    """Those processes that share the work of a run share a folder."""
    if hasattr(config, "workerinput"):
        config.stash[FOLDER] = Path(config.workerinput["database"])
    else:
        config.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="lex-"))  # a socket's path is short
        config.stash[FOLDER].chmod(0o755)  # not below pytest's, which nobody else may enter


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    node.workerinput["database"] = str(node.config.stash[FOLDER])


def pytest_unconfigure(config):
    if hasattr(config, "workerinput"):
        return
    folder = config.stash[FOLDER]
    if (folder / "server" / "data").exists():
        Server(folder / "server", server_binaries()).stop("immediate")
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="session")
def binaries():
    found = server_binaries()
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no PostgreSQL here: install Debian's postgresql")
        pytest.skip("no PostgreSQL here: install Debian's postgresql to test studies on it")
    return found


@pytest.fixture(scope="session")
def server(pytestconfig, binaries):
    """The server of this run; it is never stopped before the end."""
    folder = pytestconfig.stash[FOLDER]
    running = Server(folder / "server", binaries)
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not running.folder.exists():
            running.folder.mkdir()
            running.make()
    return running


@pytest.fixture
def own_server(binaries):
    """A server that only this test has, and may stop and start."""
    with tempfile.TemporaryDirectory(prefix="lex-") as folder:
        running = Server(Path(folder), binaries).make()
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
    with tempfile.TemporaryDirectory(prefix="lex-") as folder:
        running = Standby(Path(folder), server).make()
        yield postgres.replace(f"{server.folder}", folder)
        running.stop("immediate")
