"""A service in this process, on real sockets, whose clock a test moves."""

import asyncio
import socket
import threading
from contextlib import suppress

from lexbandits.service.app import make_app
from lexbandits.service.auth import Tokens
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.start import bind, server_of
from support.command import LIMIT
from support.patience import until
from support.services import Service


class _MovedLoop(asyncio.SelectorEventLoop):
    """An event loop whose clock stands still unless a test moves it."""

    now = 0.0

    def time(self):
        return self.now


class Moved:
    """The service in a thread of this process, with its own limits and a clock that only a test moves."""

    token = "lb_start"

    def __init__(self, storage):
        self.registry = StudyRegistry(storage)
        self.server = server_of(make_app(self.registry, Tokens(self.registry.reads, self.token)))
        self._bound = bind("127.0.0.1", 0)
        self._bound.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)  # what is not taken waits here
        self.port = self._bound.getsockname()[1]
        self._loop, self._connections = _MovedLoop(), []
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        self._loop.run_until_complete(self.server.serve([self._bound]))
        self._loop.close()

    def __enter__(self):
        self._thread.start()
        until(lambda: self.server.started)
        return self

    def __exit__(self, *_):
        for connection in self._connections:
            connection.close()
        self.server.should_exit = True
        with suppress(RuntimeError):  # the loop is closed
            while self._thread.is_alive():
                self._loop.call_soon_threadsafe(self._advance, 1)
                self._thread.join(0.02)
        self._thread.join()
        self._bound.close()

    def _advance(self, seconds):
        self._loop.now += seconds

    def do(self, work):
        """What `work` gives in the loop, once all that was due there before has been done."""

        async def turn():
            for _ in range(10):
                await asyncio.sleep(0)
            return work()

        return asyncio.run_coroutine_threadsafe(turn(), self._loop).result(LIMIT)

    def move(self, seconds):
        """Let so much time pass."""
        self.do(lambda: self._advance(seconds))
        self.do(lambda: None)

    def there(self):
        """How many connections are open, and how many requests are under way."""
        state = self.server.server_state
        return self.do(lambda: (len(state.connections), len(state.tasks)))

    def left(self, connection):
        """How many bytes for this connection nobody has taken yet."""
        mine = connection.getsockname()
        state = self.server.server_state
        return self.do(
            lambda: sum(c.transport.get_write_buffer_size() for c in state.connections if c.client == mine)
        )

    unread = Service.unread

    def connect(self, *first):
        """A connection on which something was sent."""
        connection = socket.socket()
        self._connections.append(connection)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", self.port))
        connection.settimeout(LIMIT)
        for part in first:
            connection.sendall(part.encode())
        return connection

    def head(self, method, path, *more, token=token):
        """The head of a request."""
        lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Authorization: Bearer {token}", *more]
        return "\r\n".join(lines) + "\r\n\r\n"
