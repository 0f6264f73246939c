"""How a request comes in: who may send it, how it is read, and where what writes waits for its turn."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial
from typing import Annotated, Any, get_type_hints
from weakref import WeakValueDictionary

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from pydantic import TypeAdapter, ValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict

from lexbandits.service.bodies import KEY_HEADER, Body, Key, StudyName
from lexbandits.service.job_queue import LONGEST_WAIT
from lexbandits.service.problems import refusal_of
from lexbandits.service.replies import Changed, Outcome, Reply
from lexbandits.service.security import StrictRequest, name_in_path, strict_json, whole_body
from lexbandits.service.write_queue import Job, Queues, Work
from lexbandits.study.core.journal import UnitOfWork
from lexbandits.study.errors import StudyError, study_errors
from lexbandits.study.storage.contract import Request as Repeatable

LARGEST_UNKNOWN_BODY = 64 << 10  # bytes that are read before it is known who sends them

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


def name_study(study: StudyName) -> str:
    """What the description says of an endpoint in turn."""
    return study


def name_study_and_key(study: StudyName, key: Key = None) -> str:
    """The same, of one that is done once for every Idempotency-Key."""
    return study


InUnit = Annotated[UnitOfWork, Depends(name_study)]  # the endpoint knows what it was asked before
OnceInUnit = Annotated[
    UnitOfWork, Depends(name_study_and_key)
]  # the same call with the same key is done once


class Reader:
    """What an endpoint takes from an address, headers and a body, checked in one go."""

    def __init__(self, endpoint: Callable[..., Any]) -> None:
        self._endpoint = endpoint
        hints = get_type_hints(endpoint, include_extras=True)
        hints.pop("return", None)
        unit = hints.pop("unit", None)
        self._in_turn, self._once = unit is not None, unit == OnceInUnit
        given: dict[str, dict[str, Any]] = {"path": {"study": StudyName}, "header": {}}
        if self._once:
            hints["key"] = Key
        self._has_body = "body" in hints
        body = {"body": hints.pop("body")} if self._has_body else {}
        for name, kind in hints.items():
            given["header" if kind == Key else "path"][name] = kind
        parts = {part: TypedDict(part, kinds, total=False) for part, kinds in given.items()}  # type: ignore[operator]
        self._whole: TypeAdapter[dict[str, Any]] = TypeAdapter(TypedDict("sent", {**parts, **body}))  # type: ignore[operator]

    def read(self, path: dict[str, str], headers: dict[str, str], body: bytes) -> Work | str:
        """What to do in turn; of an endpoint that needs none, what it says at once."""
        keys = {KEY_HEADER: headers[KEY_HEADER.lower()]} if KEY_HEADER.lower() in headers else {}
        sent: dict[str, Any] = {"path": path, "header": keys}
        if self._has_body and body:
            sent["body"] = _content(headers.get("content-type", ""), body)
        try:
            said = self._whole.validate_python(sent, from_attributes=True)
        except ValidationError as error:
            raise RequestValidationError(error.errors(include_url=False)) from error
        fields = {**said["path"], **said["header"], **({"body": said["body"]} if self._has_body else {})}
        if not self._in_turn:
            alive: str = self._endpoint(**fields)
            return alive
        del fields["study"]
        if self._once:
            return partial(do_once, self._endpoint, fields.pop("key", None), fields)
        return lambda unit: self._endpoint(unit, **fields)


def _content(content_type: str, body: bytes) -> Any:
    kind, _, subkind = content_type.partition(";")[0].strip().lower().partition("/")
    if kind != "application" or not (subkind == "json" or subkind.endswith("+json")):
        return body  # which no model takes
    try:
        return strict_json(body)
    except json.JSONDecodeError as error:
        found = {"type": "json_invalid", "loc": ("body", error.pos), "msg": "JSON decode error"}
        raise RequestValidationError([{**found, "ctx": {"error": error.msg}}]) from error


def do_once(
    endpoint: Callable[..., str | None], key: str | None, fields: dict[str, Any], unit: UnitOfWork
) -> Outcome | Changed:
    """What came of a call; of one with this key that was done before, the same again."""
    digest = None if key is None else digest_of(key, endpoint.__name__, fields)
    known = None if digest is None else unit.request(digest)
    if known is not None:
        outcome = known.outcome
    else:
        with study_errors(TypeError):
            outcome = endpoint(unit, **fields)
        if digest is not None:
            unit.new_requests.append(Repeatable(digest, outcome=outcome))
    return Changed(unit.projection.spec.name, unit.projection.seq) if outcome is None else Outcome(outcome)


def digest_of(key: str, *said: Any) -> str:
    """What stands for a call with an Idempotency-Key; the same key with another call is another."""
    return hashlib.sha256(json.dumps([key, *said], default=Body.given).encode()).hexdigest()


class Lines:
    """One line per study, of those who look at it. Who waits holds no thread: no study takes them all."""

    def __init__(self) -> None:
        self.waiting = 0  # in all of them
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def turn(self, study: str) -> AsyncIterator[None]:
        """Wait for it; refused if it does not come."""
        lock = self._locks.setdefault(study, asyncio.Lock())
        self.waiting += 1
        try:
            await asyncio.wait_for(lock.acquire(), LONGEST_WAIT)
        except TimeoutError:
            text = f"study {study!r} was being computed for {LONGEST_WAIT:g} s: try again later"
            raise HTTPException(503, text, {"Retry-After": f"{LONGEST_WAIT:.0f}"}) from None
        finally:
            self.waiting -= 1
        try:
            yield
        finally:
            lock.release()


def looking(role: str, *, in_line: bool = False) -> type[APIRoute]:
    """Routes of the framework for at least this role: known before anything that was sent is read.

    `in_line`: of those that name a study, one at a time.
    """

    class Looking(APIRoute):
        def get_route_handler(self) -> Handler:
            handler = super().get_route_handler()

            async def handle(request: Request) -> Response:
                header = request.headers.get("authorization")
                request.state.role = await run_in_threadpool(request.app.state.tokens.check, header, role)
                strict = StrictRequest(request.scope, request.receive)
                await strict.body()
                if not in_line or "study" not in request.path_params:
                    return await handler(strict)
                async with request.app.state.lines.turn(name_in_path(request.path_params["study"])):
                    return await handler(strict)

            return handle

    return Looking


class WriteRoute(APIRoute):
    """A route whose requests wait in the queue of their study."""

    role: str

    def __init__(self, path: str, endpoint: Callable[..., Any], **how: Any) -> None:
        self._read, self._status = Reader(endpoint).read, how["status_code"] or 200
        super().__init__(path, endpoint, **{**how, "response_model": None})

    def get_route_handler(self) -> Handler:
        """The way of a request, good or bad."""
        return self.answer

    async def answer(self, request: Request) -> Response:
        """What comes of a request when its turn has come."""
        queues: Queues = request.app.state.queues
        headers = dict(reversed(request.headers.items()))  # the first counts
        authorization, length = headers.get("authorization"), headers.get("content-length", "")
        if "transfer-encoding" in headers or int(length or 0) > LARGEST_UNKNOWN_BODY:
            await run_in_threadpool(queues.tokens.check, authorization, self.role)
        body = await whole_body(request.receive, length)
        path = request.path_params
        job = Job(authorization, self.role, partial(self._read, path, headers, body))
        answer = await queues.do(name_in_path(path["study"]), job, partial(_gone, request.receive))
        if isinstance(answer, StudyError):  # why there is nothing, which is on record
            raise answer
        return Response(status_code=204) if self._status == 204 else Reply(answer, self._status)


async def _gone(receive: Receive) -> None:
    """Return when who has sent a request has closed the connection."""
    while (await receive())["type"] != "http.disconnect":
        pass


class MeasuringRoute(WriteRoute):
    """For who may measure."""

    role = "write"


class DecidingRoute(WriteRoute):
    """For who may decide."""

    role = "admin"


class Shortcut:
    """Finds routes in turn before the framework does, which takes longer for it than they take."""

    def __init__(self, app: FastAPI, routers: Iterable[APIRouter]) -> None:
        self.app = app
        self._routes = [
            (route.path_regex, route.methods or (), route)
            for router in routers
            for route in router.routes
            if isinstance(route, WriteRoute)
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        if scope["type"] == "http":
            for pattern, methods, route in self._routes:
                found = pattern.match(scope["path"])
                if found is not None and scope["method"] in methods:
                    there = {**scope, "app": self.app, "path_params": found.groupdict()}
                    await _take(route, Request(there, receive), send)
                    return
        await self.app(scope, receive, send)


async def _take(route: WriteRoute, request: Request, send: Send) -> None:
    try:
        answer = await route.answer(request)
    except Exception as error:
        answer = await refusal_of(request, error)
    await answer(request.scope, request.receive, send)
