"""What is refused and why, as application/problem+json."""

import logging
import math
import re
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from lexbandits.server.replies import Reply
from lexbandits.server.tokens import UnknownTokenError, WeakTokenError
from lexbandits.study.errors import (
    AuthError,
    ConflictError,
    SpecMismatchError,
    StorageBusyError,
    StorageError,
    StudyError,
    StudyExistsError,
    StudyFinished,
    StudyPaused,
    StudyWaiting,
    UnknownArmError,
    UnknownStudyError,
    UnknownTrialError,
)

MEDIA = "application/problem+json"
LONGEST = 1000  # characters of an explanation, which may quote what was sent
LOG = logging.getLogger("lexbandits.server")

STATUS: dict[type[StudyError], int] = {  # the first that fits
    UnknownStudyError: 404,
    UnknownTrialError: 404,
    UnknownArmError: 404,
    StudyExistsError: 409,
    SpecMismatchError: 409,
    StudyFinished: 409,
    StudyPaused: 409,
    StudyWaiting: 409,
    ConflictError: 409,
    UnknownTokenError: 401,
    WeakTokenError: 403,
    StorageBusyError: 503,
    StorageError: 503,
    StudyError: 422,
}


class Refused(Exception):  # noqa: N818
    """A request that is wrong in itself."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status, self.detail = status, detail


def problem(status: int, detail: str, kind: str = "", **more: Any) -> Reply:
    """The answer; `kind` is the name of the error in Python."""
    content = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    content["detail"] = detail if len(detail) <= LONGEST else f"{detail[:LONGEST]}…"
    if kind:
        content["kind"] = kind
    headers = {401: {"WWW-Authenticate": "Bearer"}, 503: {"Retry-After": "1"}}.get(status)
    return Reply({**content, **more}, status, headers, MEDIA)


def of_study(error: Exception) -> Reply:
    """What the study layer refuses, in its words."""
    status = next(status for kind, status in STATUS.items() if isinstance(error, kind))
    if status == 503:
        LOG.error("%s", error)
    kind = AuthError if isinstance(error, AuthError) else type(error)
    name = next(k.__name__ for k in kind.__mro__ if not k.__name__.startswith("Conn"))
    if not isinstance(error, StudyWaiting) or error.until is None:
        return problem(status, str(error), name)
    answer = problem(status, str(error), name, until=error.until.isoformat())
    seconds = (error.until - datetime.now(UTC)).total_seconds()
    answer.headers["Retry-After"] = str(max(1, math.ceil(seconds)))
    return answer


def _of_study(_: Request, error: Exception) -> Reply:
    return of_study(error)


def _of_body(_: Request, error: Exception) -> Reply:
    assert isinstance(error, RequestValidationError)
    found = [
        {"where": [str(part)[:200] for part in each["loc"]], "message": _message(each)}
        for each in error.errors()[:20]
    ]
    first = found[0]
    return problem(422, f"{'.'.join(first['where'])}: {first['message']}", errors=found)


def _message(error: Any) -> str:
    """pydantic's words; of JSON that is none, where it goes wrong."""
    more = error.get("ctx", {}).get("error", "") if error["type"] == "json_invalid" else ""
    return f"{error['msg']}{': ' if more else ''}{more}"[:200]


def _of_http(request: Request, error: Exception) -> Reply:
    assert isinstance(error, HTTPException)
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


def _of_refused(_: Request, error: Exception) -> Reply:
    assert isinstance(error, Refused)
    return problem(error.status, error.detail)


def _unforeseen(_: Request, error: Exception) -> Reply:
    return problem(500, "an error of the service; its log says more")


def install(app: Starlette) -> None:
    """Every error of the service in one form."""
    app.add_exception_handler(StudyError, _of_study)
    app.add_exception_handler(RequestValidationError, _of_body)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_exception_handler(Refused, _of_refused)
    app.add_exception_handler(Exception, _unforeseen)
