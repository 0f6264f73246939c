"""`lexbandits serve`: bind, say where, and run until told to stop."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lexbandits.server import logs
from lexbandits.server.app import make_app
from lexbandits.server.guard import LOOPBACK
from lexbandits.server.rooms import Rooms
from lexbandits.server.tokens import Tokens, new_secret
from lexbandits.server.webhook import Receiver, Webhook
from lexbandits.study.errors import StudyError

LARGEST_HEAD = 32 << 10  # bytes before a request's body
SECONDS_FOR_A_HEAD = 30.0  # to arrive
SECONDS_TO_STOP = 10  # for what is under way when the service stops


class Protocol(H11Protocol):
    """Closes a connection whose next request does not come: the first, or one that has begun to come."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: "object") -> None:
        """Begin to wait."""
        super().connection_made(transport)  # type: ignore[arg-type]
        self._watch()

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """The next request may have begun to come already."""
        super().on_response_complete()
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to wait for."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """A head has its time from its first byte on, however slowly the others follow."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        at_rest = self.timeout_keep_alive_task is not None  # uvicorn waits, and longer
        if at_work or at_rest:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(SECONDS_FOR_A_HEAD, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None


class Server(uvicorn.Server):
    """Answers those who wait for results of others before it waits for what is under way."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to end."""
        self.config.app.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def serve(
    storage: str | Path,
    host: str = "127.0.0.1",
    port: int = 8787,
    allow_hosts: Sequence[str] = (),
    say: Callable[[str], None] = print,
    receiver: Receiver | None = None,
    page: str | None = None,
    log_format: str = "text",
) -> None:
    """Serve the studies of a storage until SIGTERM or Ctrl-C. `say` is given the address, first of all.

    `receiver` is told what finishes, pauses or is strained, with links to the `page`, as people know it.
    """
    local = host in LOOPBACK
    rooms = Rooms(storage)
    kept = Tokens(rooms.storage)
    start = None
    if not kept.valid():
        if not local:
            rooms.close()
            raise StudyError(
                f"listening on {host} lets others in, and there are no tokens yet: "
                "make one with lexbandits token create, or listen on 127.0.0.1"
            )
        start = new_secret()
    names = [*allow_hosts, *([] if local else [host, socket.gethostname(), socket.getfqdn()])]
    bound = bind(host, port)
    shown = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/"
    webhook = None if receiver is None else Webhook(rooms, receiver, page or shown)
    app = make_app(rooms, Tokens(rooms.reads, start, rooms.notes), names, not local, webhook)
    config = uvicorn.Config(
        app,
        http=Protocol,
        ws="none",
        access_log=False,
        log_config=None,
        log_level="warning",
        server_header=False,
        proxy_headers=False,
        h11_max_incomplete_event_size=LARGEST_HEAD,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=SECONDS_TO_STOP,
    )
    logs.set_up(log_format)
    say(f"{shown}#token={start}" if start else shown)
    threading.Thread(target=_warm_up, daemon=True).start()
    Server(config).run(sockets=[bound])


def bind(host: str, port: int) -> socket.socket:
    """Listen, or say why not."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        bound = socket.create_server((host, port), family=family, backlog=2048)
        # head and body of an answer are two packets: the second would wait 40 ms for news of the first
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound
    except OSError as error:
        raise StudyError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None


def _warm_up() -> None:
    """Compiled code that is on disk is loaded before the first request needs it, then what a page needs."""
    from lexbandits.jit import take_kept
    from lexbandits.study.study import create_study

    take_kept()
    try:
        words = {"name": "b", "margin": 0.2, "noise": "bernoulli"}
        study = create_study("first", "memory", arms=["a", "b"], objectives=[words])
        study.tell(study.ask(), {"b": 1})
        study._results()
        import scipy.stats  # noqa: F401
    except Exception as error:
        logs.say(logging.ERROR, "warming_up", f"warming up: {error}", error=error)
