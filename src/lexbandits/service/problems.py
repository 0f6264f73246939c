"""What is refused and why, as application/problem+json."""

import asyncio
import logging
import math
import re
from collections import OrderedDict
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from lexbandits.service.auth import UnknownTokenError, WeakTokenError
from lexbandits.service.logs import say
from lexbandits.service.replies import PROBLEM_MEDIA, Problem, Reply
from lexbandits.study import errors
from lexbandits.study.errors import StudyError, StudyWaiting

FREE_TRIES, LONGEST_DELAY = 20, 2.0  # unknown tokens of an address that are answered at once; seconds
FORGOTTEN, MOST_ADDRESSES = 60.0, 1000  # seconds after which an address begins anew; those remembered
LONGEST_DETAIL = 1000  # characters of an explanation, which may quote what was sent

STATUS: dict[int, tuple[type[StudyError], ...]] = {  # the first that fits
    404: (errors.UnknownStudyError, errors.UnknownTrialError, errors.UnknownArmError),
    409: (errors.ConflictError, errors.StudyExistsError, errors.SpecMismatchError,
          errors.StudyFinished, errors.StudyPaused, errors.StudyWaiting),
    401: (UnknownTokenError,),
    403: (WeakTokenError,),
    503: (errors.StorageError,),
    422: (errors.StudyError,),
}  # fmt: skip


def problem(status: int, detail: str, **more: Any) -> Reply:
    """The answer; `kind` is the name of the error in Python."""
    short = detail if len(detail) <= LONGEST_DETAIL else f"{detail[:LONGEST_DETAIL]}…"
    content = Problem("about:blank", HTTPStatus(status).phrase, status, short, **more)
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    return Reply(content, status, headers, PROBLEM_MEDIA)


def problem_of(request: Request, error: Exception) -> Reply:
    """What went wrong, in one form for all."""
    if isinstance(error, StudyError):
        return _of_study(request, error)
    if isinstance(error, RequestValidationError):
        return _of_words(error)
    if isinstance(error, HTTPException):
        return _of_http(request, error)
    say(logging.ERROR, "defect", f"{type(error).__name__}: {error}", _study_of(request), error)
    return problem(500, "an error of the service; its log says more")


def _study_of(request: Request) -> str | None:
    """The study that a request is about."""
    name = request.path_params.get("study")
    return None if name is None else unquote(name)


def _of_study(request: Request, error: StudyError) -> Reply:
    """What the study layer refuses, in its words."""
    status = next(status for status, kinds in STATUS.items() if isinstance(error, kinds))
    if status == 503:
        say(logging.ERROR, "storage", str(error), _study_of(request))
    public = (kind for kind in type(error).__mro__ if getattr(errors, kind.__name__, None) is kind)
    kind = next(public).__name__
    if not isinstance(error, StudyWaiting) or error.until is None:
        return problem(status, str(error), kind=kind)
    answer = problem(status, str(error), kind=kind, until=error.until.isoformat())
    seconds = (error.until - datetime.now(UTC)).total_seconds()
    answer.headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    return answer


def _of_words(error: RequestValidationError) -> Reply:
    found = [{"where": _where(each), "message": _message(each)} for each in error.errors()[:20]]
    first = found[0]
    return problem(422, f"{'.'.join(first['where'])}: {first['message']}", errors=found)


def _where(error: Any) -> list[str]:
    """The parts of what was sent; pydantic names a function that checks one as if it were another."""
    return [part[:200] for part in map(str, error["loc"]) if not part.startswith("function-")]


def is_no_json(error: Any) -> bool:
    """Whether an error of pydantic says that a body cannot be parsed."""
    return bool(error["type"] == "json_invalid" or isinstance(error.get("input"), bytes))


def _message(error: Any) -> str:
    """pydantic's words; of JSON that is none, where it goes wrong."""
    more = error.get("ctx", {}).get("error", "") if is_no_json(error) else ""
    return f"{error['msg']}{': ' if more else ''}{more}"[:200]


def _of_http(request: Request, error: HTTPException) -> Reply:
    answer = problem(error.status_code, str(error.detail))
    answer.headers.update(error.headers or {})
    if error.status_code == 405 and isinstance(request.app, FastAPI):
        answer.headers["Allow"] = ", ".join(_allowed(request.app, request.scope["path"]))
    return answer


def _allowed(app: FastAPI, path: str) -> list[str]:
    """The methods of a path; the router knows only those of the first function there."""
    for template, methods in app.openapi()["paths"].items():
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", template), path):
            return [method.upper() for method in methods]
    return ["GET"]


class Refused:
    """Unknown tokens by the address that sent them: each is logged, and many in a row are answered slowly."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[int, float]] = OrderedDict()

    def delay(self, address: str, now: float) -> float:
        """Count one more; how many seconds its answer waits."""
        times, last = self._known.pop(address, (0, now))
        times = times + 1 if now - last < FORGOTTEN else 1
        self._known[address] = times, now
        while len(self._known) > MOST_ADDRESSES:
            self._known.popitem(last=False)
        return 0.0 if times <= FREE_TRIES else min(LONGEST_DELAY, 0.1 * 2.0 ** min(times - FREE_TRIES, 10))


async def refusal_of(request: Request, error: Exception) -> Reply:
    """What went wrong; who sends unknown tokens is logged, and waits for the answer."""
    if isinstance(error, UnknownTokenError) and request.headers.get("authorization"):
        address = request.client.host if request.client else "nowhere"
        say(logging.WARNING, "token", f"an unknown token came from {address}", address=address)
        now = asyncio.get_running_loop().time()
        await asyncio.sleep(request.app.state.refused.delay(address, now))
    return problem_of(request, error)


def install(app: Starlette) -> None:
    """Every error of the service in one form."""
    app.state.refused = Refused()
    for kind in (StudyError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, refusal_of)
