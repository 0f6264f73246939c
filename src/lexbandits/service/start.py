"""`lexbandits serve`: bind, say where, and run until told to stop."""

import asyncio
import logging
import socket
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from lexbandits.service import logs
from lexbandits.service.app import make_app
from lexbandits.service.auth import Tokens, new_secret
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.security import LOOPBACK, SecurityMiddleware
from lexbandits.service.webhook import Receiver, Webhook
from lexbandits.study.errors import StudyError

LARGEST_HEAD = 32 << 10  # bytes before a request's body
SECONDS_FOR_A_HEAD = 30.0  # to arrive
SECONDS_FOR_A_PART, LEAST_PART = 30.0, 16 << 10  # of an answer that waits to be taken; bytes
SECONDS_TO_STOP = 10  # for what is under way when the service stops


class Protocol(H11Protocol):
    """Closes a connection whose next request does not come, or whose answer is not taken."""

    _waiting: asyncio.TimerHandle | None = None
    _sending: asyncio.TimerHandle | None = None

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

    def pause_writing(self) -> None:
        """More is to be sent than was taken."""
        super().pause_writing()
        left = self.transport.get_write_buffer_size()
        self._sending = self.loop.call_later(SECONDS_FOR_A_PART, self._check_taken, left)

    def resume_writing(self) -> None:
        """Enough was taken."""
        super().resume_writing()
        self._stop_sending()

    def timeout_keep_alive_handler(self) -> None:
        """It has rested for long."""
        super().timeout_keep_alive_handler()
        self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Nothing more to wait for."""
        self._stop_waiting()
        self._stop_sending()
        super().connection_lost(exc)

    def _watch(self) -> None:
        """A head has its time from its first byte on, however slowly the others follow."""
        at_work = self.cycle is not None and not self.cycle.response_complete
        has_begun = bool(self.conn.trailing_data[0])  # right behind the last one
        at_rest = self.timeout_keep_alive_task is not None and not has_begun  # uvicorn waits, and longer
        if at_work or at_rest:
            self._stop_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(SECONDS_FOR_A_HEAD, self._close)

    def _check_taken(self, before: int) -> None:
        """A slow line is taken for one as long as it takes something."""
        left = self.transport.get_write_buffer_size()
        if before - left < LEAST_PART:
            self.transport.abort()
        else:
            self._sending = self.loop.call_later(SECONDS_FOR_A_PART, self._check_taken, left)

    def _close(self) -> None:
        """Close it once all was taken, or soon."""
        self.transport.close()
        self.loop.call_later(SECONDS_FOR_A_PART, self.transport.abort)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None


class Server(uvicorn.Server):
    """Answers those who wait for results of others before it waits for what is under way."""

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to end."""
        self.config.app.stop()  # type: ignore[union-attr]
        await super().shutdown(sockets)


def server_of(app: SecurityMiddleware) -> Server:
    """The server, with its limits for what is sent and taken slowly."""
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
    return Server(config)


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

    `receiver` is told what finishes or pauses and which diagnostics warn. Its links lead to the `page`, as
    people know it.
    """
    local = host in LOOPBACK
    registry = StudyRegistry(storage)
    kept = Tokens(registry.storage)
    start = None
    if not kept.valid():
        if not local:
            registry.close()
            raise StudyError(
                f"listening on {host} lets others in, and there are no tokens yet: "
                "make one with lexbandits token create, or listen on 127.0.0.1"
            )
        start = new_secret()
    names = [*allow_hosts, *([] if local else [host, socket.gethostname(), socket.getfqdn()])]
    bound = bind(host, port)
    shown = f"http://{f'[{host}]' if ':' in host else host}:{bound.getsockname()[1]}/"
    webhook = None if receiver is None else Webhook(registry, receiver, page or shown)
    app = make_app(registry, Tokens(registry.reads, start, registry.notes), names, not local, webhook)
    logs.set_up(log_format)
    say(f"{shown}#token={start}" if start else shown)
    threading.Thread(target=_warm_up, daemon=True).start()
    server_of(app).run(sockets=[bound])


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
    from lexbandits._jit import take_kept
    from lexbandits.study.study import create_study

    take_kept()
    try:
        fields = {"name": "b", "margin": 0.2, "noise": "bernoulli"}
        study = create_study("first", "memory", arms=["a", "b"], objectives=[fields])
        study.tell(study.ask(), {"b": 1})
        study._results()
        import scipy.stats  # noqa: F401
    except Exception as error:
        logs.say(logging.ERROR, "warming_up", f"warming up: {error}", error=error)
