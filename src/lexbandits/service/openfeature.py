"""OFREP, OpenFeature's remote evaluation protocol: a study is a flag, its arms are the variants."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from lexbandits.service import bodies
from lexbandits.service.endpoints import registry_of, router, with_tag
from lexbandits.service.problems import is_no_json, problem_of
from lexbandits.service.replies import Reply, describe_refusals
from lexbandits.service.requests import Handler, InUnit, MeasuringRoute, looking
from lexbandits.service.security import name_in_path
from lexbandits.service.write_queue import Job, Queues
from lexbandits.study.core import assignment
from lexbandits.study.core.journal import UnitOfWork
from lexbandits.study.trial import AssignReason

REASONS = {  # OpenFeature's words
    AssignReason.TRIAL: "SPLIT",
    AssignReason.STICKY: "SPLIT",
    AssignReason.OUTSIDE: "DEFAULT",
    AssignReason.LEADER: "DEFAULT",
    AssignReason.WINNER: "STATIC",
}


@dataclass
class Evaluation:
    """What a visitor is shown. `value` is the arm's key `value`, or its name; `metadata.trial` is told."""

    key: str
    value: Any
    variant: str
    reason: str
    metadata: dict[str, str]


@dataclass
class EvaluationFailure:
    """Why there is no value: the application takes its default."""

    key: str
    errorCode: str  # noqa: N815 (the protocol's word)
    errorDetails: str  # noqa: N815


@dataclass
class Evaluations:
    """Every flag that was asked for."""

    flags: list[Evaluation | EvaluationFailure]


def failure_of(key: str, request: Request, error: Exception) -> tuple[EvaluationFailure, Reply]:
    """Return an error in the words of the protocol, and as it is answered elsewhere."""
    reply = problem_of(request, error)
    code = {404: "FLAG_NOT_FOUND", 422: "INVALID_CONTEXT"}.get(reply.status_code, "GENERAL")
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        where, kind = first["loc"], first["type"]
        if where[0] == "path":
            code = "FLAG_NOT_FOUND"
        elif is_no_json(first):
            code = "PARSE_ERROR"
        elif where[-1] == "targetingKey" or (kind == "missing" and where[-1] in ("body", "context")):
            code = "TARGETING_KEY_MISSING"
    return EvaluationFailure(key, code, json.loads(bytes(reply.body))["detail"]), reply


def refusal(key: str, request: Request, error: Exception) -> Reply:
    """Return what the protocol answers; who may not, and what is too large, is refused as elsewhere."""
    failure, reply = failure_of(key, request, error)
    if failure.errorCode == "GENERAL" and reply.status_code < 500:
        return reply
    status = {"FLAG_NOT_FOUND": 404, "GENERAL": reply.status_code}.get(failure.errorCode, 400)
    again = {"Retry-After": reply.headers["Retry-After"]} if "Retry-After" in reply.headers else None
    return Reply(failure, status, again)


class FlagRoute(MeasuringRoute):
    """One flag: waits in the queue of its study."""

    async def answer(self, request: Request) -> Response:
        """What comes of a request when its turn has come."""
        try:
            return await super().answer(request)
        except Exception as error:
            return refusal(name_in_path(request.path_params["study"]), request, error)


class FlagsRoute(looking("write")):  # type: ignore[misc]
    """Many flags at once."""

    def get_route_handler(self) -> Handler:
        """The way of a request, good or bad."""
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                answer: Response = await handler(request)
            except Exception as error:
                answer = refusal("", request, error)
            return answer

        return handle


one, many = (router(route, "/ofrep/v1/evaluate") for route in (FlagRoute, FlagsRoute))
REFUSED: Any = {
    400: {"model": EvaluationFailure, "description": "no targetingKey, or not what the protocol has"},
    **describe_refusals(401, 403, 408, 413, 421, 422, 503),
}
UNKNOWN: Any = {404: {"model": EvaluationFailure, "description": "no such study"}}


def evaluated(unit: UnitOfWork, key: str) -> Evaluation:
    """Return the flag of a study, for a visitor."""
    trial, projection = assignment.assign(unit, key), unit.projection
    arm = projection.arms[projection.arm_names.index(trial.arm)]
    assert trial.reason is not None
    told = {} if trial.id is None else {"trial": trial.id, "until": str(trial.as_json()["until"])}
    return Evaluation(
        key=projection.spec.name,
        value=arm.get("value", trial.arm),
        variant=trial.arm,
        reason=REASONS[trial.reason],
        metadata={"assigned": trial.reason.value, **told},
    )


@one.post("/flags/{study}", responses={200: {"model": Evaluation}, **UNKNOWN, **REFUSED})
def evaluate_flag(unit: InUnit, body: bodies.EvaluationBody) -> Evaluation:
    """OFREP: the arm to show to a visitor, the same one every time; `metadata.trial` is to be told."""
    return evaluated(unit, body.context.targetingKey)


@many.post(
    "/flags",
    responses={200: {"model": Evaluations}, 304: {"description": "as known"}, **REFUSED},
    response_model=None,
)
async def evaluate_flags(
    request: Request, body: bodies.BulkEvaluationBody, known: bodies.Known = None
) -> Response:
    """OFREP: the arms of the studies in `context.studies`, or of those that have served visitors."""
    named, key = body.context.studies, body.context.targetingKey
    studies = named if named is not None else await asyncio.to_thread(registry_of(request).reads.serving)
    wanted = list(dict.fromkeys(studies))[: bodies.MOST_FLAGS]
    flags = await asyncio.gather(*(_flag(request, study, key) for study in wanted))
    content = Evaluations(flags)
    digest = sha256(Reply(content).body).hexdigest()[:32]
    return with_tag(f'"{digest}"', known, content)


async def _flag(request: Request, study: str, key: str) -> Evaluation | EvaluationFailure:
    queues: Queues = request.app.state.queues
    work: Callable[[UnitOfWork], Evaluation] = partial(evaluated, key=key)
    job = Job(request.headers.get("authorization"), "write", lambda: work)
    try:
        flag: Evaluation = await queues.do(study, job)
    except Exception as error:
        return failure_of(study, request, error)[0]
    return flag
