"""A short way for what workers send all day long: past the framework, which costs more than the work.

Only requests that are as they should be go this way; what is odd in any respect goes through the framework
as if this file did not exist, and is explained there. Requests of one study that wait together are checked
together, by one look at the tokens, and committed together.
"""

import asyncio
import re
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, ValidationError
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexbandits.server import measuring
from lexbandits.server.bodies import AskBody, ResultBody, ResultsBody
from lexbandits.server.guard import name_in_path, strict_json, whole_body
from lexbandits.server.problems import Refused, of_study, problem
from lexbandits.server.replies import Reply
from lexbandits.server.rooms import Room, Rooms
from lexbandits.server.tokens import Tokens, may
from lexbandits.study.errors import StudyError
from lexbandits.study.study import Study

THREADS = 32  # studies at work at once
SMALL = 64 << 10  # bytes of a body that is read before it is known who sends it
PATH = re.compile(
    r"/api/studies/([^/]{1,600})/"
    r"(?:(trials|results)|trials/([^/]{1,120})/result|workers/([^/]{1,600})/heartbeat)"
)
KEY = re.compile(r"[\x21-\x7e]{1,200}")

B = TypeVar("B", bound=BaseModel)
Call = Callable[[Study], dict[str, Any]]


class Asked(NamedTuple):
    """A request for this way."""

    kind: str  # "ask", "tell", "tell_many" or "heartbeat"
    study: str
    trial: str  # or who is alive
    authorization: str | None
    key: str | None

    def call(self, body: bytes) -> Call:
        """What to do, by what was sent."""
        if self.kind == "ask":
            return partial(measuring.ask, body=_read(AskBody, body), key=self.key)
        if self.kind == "tell":
            return partial(measuring.tell, trial=self.trial, body=_read(ResultBody, body))
        return partial(measuring.tell_many, body=_read(ResultsBody, body), key=self.key)


def _read(model: type[B], body: bytes) -> B:
    return model.model_validate(strict_json(body))


def asked(scope: Scope) -> Asked | None:
    """What a request asks for, if it is one for this way."""
    if scope["type"] != "http" or scope["method"] not in ("POST", "PUT"):
        return None
    found = PATH.fullmatch(scope["path"])
    if found is None:
        return None
    headers: dict[bytes, bytes] = dict(scope["headers"])
    if len(headers) < len(scope["headers"]):
        return None  # one of them is given twice
    study, collection, trial, worker = found.groups()
    length = headers.get(b"content-length", b"" if worker is None else b"0")
    if not length.isdigit() or int(length) > SMALL or b"transfer-encoding" in headers:
        return None
    if worker is not None:
        return _heartbeat(scope, name_in_path(study), name_in_path(worker), headers)
    if headers.get(b"content-type") != b"application/json":
        return None
    kind = {"trials": "ask", "results": "tell_many", None: "tell"}[collection]
    study, trial = name_in_path(study), name_in_path(trial or "")
    authorization, key = (_text(headers.get(name)) for name in (b"authorization", b"idempotency-key"))
    fits = scope["method"] == ("PUT" if kind == "tell" else "POST") and len(study) <= 200 and len(trial) <= 40
    return Asked(kind, study, trial, authorization, key) if fits and (not key or KEY.fullmatch(key)) else None


def _heartbeat(scope: Scope, study: str, worker: str, headers: dict[bytes, bytes]) -> Asked | None:
    fits = scope["method"] == "POST" and len(study) <= 200 and len(worker) <= 200 and worker.isprintable()
    return Asked("heartbeat", study, worker, _text(headers.get(b"authorization")), None) if fits else None


def _text(header: bytes | None) -> str | None:
    return None if header is None else header.decode("latin-1")


class _Job:
    """A request on its way, and its answer; without one it goes through the framework."""

    def __init__(self, what: Asked, body: bytes, done: "asyncio.Future[None]") -> None:
        self.what, self.body, self.done = what, body, done
        self.answer: Response | None = None

    def settle(self, outcome: Callable[[], dict[str, Any]]) -> None:
        """Put what came of it into an answer."""
        try:
            words = outcome()
            if self.what.kind == "ask":
                measuring.not_in_vain(words)
        except StudyError as error:
            self.answer = of_study(error)
        except Exception:
            return  # the framework says what it says of such
        else:
            self.answer = Reply(words, 201 if self.what.kind == "ask" else 200)


class Lane:
    """Before the framework."""

    def __init__(self, app: ASGIApp, rooms: Rooms, tokens: Tokens) -> None:
        self.app, self.rooms, self.tokens = app, rooms, tokens
        self._lock = threading.Lock()
        self._waiting: dict[str, list[_Job]] = {}  # by study, of those that a thread is at work on
        self._limiter: anyio.CapacityLimiter | None = None  # made inside the loop
        self._threads: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        what = asked(scope)
        if what is None:
            await self.app(scope, receive, send)
            return
        try:
            body = await whole_body(receive, SMALL)
        except Refused as refused:
            await problem(refused.status, refused.detail)(scope, receive, send)
            return
        job = _Job(what, body, asyncio.get_running_loop().create_future())
        self._put(job)
        await job.done
        if job.answer is not None:
            await job.answer(scope, receive, send)
        else:
            await self.app(scope, _again(body, receive), send)

    def _put(self, job: _Job) -> None:
        """To the thread that works for its study, or to a new one."""
        study = job.what.study
        with self._lock:
            if study in self._waiting:
                self._waiting[study].append(job)
                return
            self._waiting[study] = [job]
        work = partial(self._work, study, asyncio.get_running_loop())
        thread = asyncio.create_task(anyio.to_thread.run_sync(work, limiter=self._limit()))
        self._threads.add(thread)
        thread.add_done_callback(self._threads.discard)

    def _limit(self) -> anyio.CapacityLimiter:
        """Threads of its own: who looks at studies, or thinks about them, never holds up who measures."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(THREADS)
        return self._limiter

    def _work(self, study: str, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._lock:
                batch = self._waiting.pop(study)
                if not batch:
                    return
                self._waiting[study] = []
            with suppress(Exception):  # who has no answer then meets it again on the long way, which logs it
                self._together(study, batch)
            loop.call_soon_threadsafe(_deliver, batch)

    def _together(self, study: str, batch: list[_Job]) -> None:
        """Who may, may: then all in one commit."""
        roles = self.tokens.roles_of([job.what.authorization for job in batch])
        room = self.rooms[study]
        welcome = [job for job, role in zip(batch, roles, strict=True) if role and may(role, "write")]
        alive = [job for job in welcome if job.what.kind == "heartbeat"]
        if alive:
            _extend(room, alive)
        calls: list[tuple[_Job, Call]] = []
        for job in welcome:
            if job.what.kind != "heartbeat":
                with suppress(ValidationError, ValueError):
                    calls.append((job, job.what.call(job.body)))
        works = room.change(*(call for _, call in calls)) if calls else []
        for (job, _), work in zip(calls, works, strict=True):
            job.settle(work.outcome)


def _extend(room: Room, alive: list[_Job]) -> None:
    """The leases of all who are alive, at once: however many they are, they hold one thread."""
    try:
        room.extend(*{job.what.trial for job in alive})
    except StudyError as error:
        answers: list[Response] = [of_study(error)] * len(alive)
    else:
        answers = [Response(status_code=204) for _ in alive]
    for job, answer in zip(alive, answers, strict=True):
        job.answer = answer


def _deliver(batch: list[_Job]) -> None:
    for job in batch:
        if not job.done.done():
            job.done.set_result(None)


def _again(body: bytes, receive: Receive) -> Receive:
    """A body that was read, to be read once more."""
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay
