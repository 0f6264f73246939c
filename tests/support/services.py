"""A real service: a process of its own, on SQLite or PostgreSQL."""

import os
import socket
import ssl
from contextlib import contextmanager
from pathlib import Path

import httpx2

import lexbandits as lb
from support import TESTS
from support.clock import FILE
from support.nursery import started, started_anew

NOBODY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # no certificates are read: http has none


class Service:
    """`lexbandits serve` on a free port."""

    program = ("-m", "lexbandits")
    started = staticmethod(started)

    def __init__(self, storage, *options):
        self.storage, self.options = storage, options
        self.start()

    def start(self, port=0):
        argv = [*self.program, "serve", "--port", str(port), *self.options]
        self.process = self.started(argv, {**os.environ, "LEXBANDITS_STORAGE": str(self.storage)})
        self.link = self.process.stdout.readline().strip()
        if not self.link:
            raise AssertionError(self.process.communicate()[1])
        self.address, _, fragment = self.link.partition("/#token=")
        self.address = self.address.rstrip("/")
        self.token = fragment

    @property
    def port(self):
        return int(self.address.rpartition(":")[2])

    def unread(self):
        """How many bytes it has been sent and has not read yet; not whether they have been sent."""
        rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
        own = [row for row in rows if row[1].endswith(f":{self.port:04X}") and row[3] == "01"]
        return sum(int(row[4].partition(":")[2], 16) for row in own)

    def client(self, token=None, **headers):
        token = self.token if token is None else token
        if token:
            headers["Authorization"] = f"Bearer {token}"
        return httpx2.Client(base_url=self.address, headers=headers, timeout=240, verify=NOBODY)

    def stop(self):
        """As systemd would; what it wrote on stderr."""
        self.process.terminate()
        return self.process.communicate(timeout=600)

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def clear(self):
        for name in lb.list_studies(self.link):
            lb.delete_study(name, self.link)


class FromNothing(Service):
    """Started as people do."""

    started = staticmethod(started_anew)


class Clocked(Service):
    """Its clock is moved by the fixture `clock`."""

    program = (
        "-c",
        f"import sys; sys.path.append({str(TESTS)!r})\n"
        "from pathlib import Path\n"
        "from support.clock import follow\n"
        f"follow(Path({str(FILE)!r}))\n"
        "from lexbandits.cli.main import app\n"
        "app()",
    )


class Patient(Service):
    """Waits an hour where others wait half a minute."""

    program = (
        "-c",
        "from lexbandits.service import security, start\n"
        "start.SECONDS_FOR_A_HEAD = security.SECONDS_FOR_A_BODY = 3600.0\n"
        "from lexbandits.cli.main import app\n"
        "app()",
    )


class Forgiving(Service):
    """Answers unknown tokens at once, however many there are."""

    program = (
        "-c",
        "from lexbandits.service import problems\n"
        "problems.FREE_TRIES = 10**9\n"
        "from lexbandits.cli.main import app\n"
        "app()",
    )


@contextmanager
def kept_port():
    """A port that nobody else gets, for a service that is started there again and again."""
    with socket.socket() as held:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def fast(folder):
    """Safe against kill -9, not against a power cut: much faster."""
    return f"sqlite:///{folder}/service.db?synchronous=OFF"
