"""What the service answers of its own: each is what its endpoint gives and what the description shows."""

import json
from dataclasses import dataclass
from typing import Any, Literal

from fastapi.responses import JSONResponse

from lexbandits.study.states import StudyState
from lexbandits.study.trial import AssignReason

PROBLEM_MEDIA = "application/problem+json"


class Reply(JSONResponse):
    """JSON in ASCII, which every reader can take: half a pair of surrogates, as file names may have."""

    def render(self, content: Any) -> bytes:
        """As JSON."""
        return json.dumps(content, allow_nan=False, separators=(",", ":"), default=_table).encode()


def _table(answer: Any) -> dict[str, Any]:
    """The fields of an answer; what is None unless it is said is left out then."""
    words = vars(answer).items()
    return {name: value for name, value in words if value is not None or not hasattr(type(answer), name)}


@dataclass
class Problem:
    """RFC 9457; `kind` is the error's name in Python."""

    type: str
    title: str
    status: int
    detail: str
    kind: str | None = None
    errors: list[dict[str, Any]] | None = None
    until: str | None = None  # of StudyWaiting


@dataclass
class TrialOut:
    """A trial to be measured before `until`."""

    number: int
    id: str
    arm: str
    item: Any
    until: str
    repeat: int | None = None


@dataclass
class AssignmentOut:
    """The arm to show to a visitor; the trial has no id if it is not told. `best`: the best arm so far."""

    number: int | None
    id: str | None
    arm: str
    item: Any
    until: str | None
    reason: AssignReason
    best: str
    repeat: int | None = None


@dataclass
class Forgotten:
    """How many visitors were deleted."""

    visitors: int


@dataclass(kw_only=True)
class Trials:
    """Trials handed out; none when the study has ended or waits, and then why and until when."""

    trials: list[TrialOut]
    state: StudyState
    reason: str | None = None
    waiting_until: str | None = None


@dataclass
class Outcome:
    """What became of a result."""

    outcome: str


@dataclass(kw_only=True)
class Outcomes(Trials):
    """What became of many results, in their order, and new trials if asked for."""

    outcomes: list[str]


@dataclass
class Places:
    """How many places of a list are asked again."""

    places: int


@dataclass
class Changed:
    """A change was recorded; the study has `seq` events now."""

    name: str
    seq: int


@dataclass
class Health:
    """The service and its storage answer."""

    status: Literal["ok"]
    version: str


REFUSALS = {
    401: "no token, or one that is not known",
    403: "the token's role is too low",
    404: "no such study, trial, arm or objective",
    408: "the body came too slowly",
    409: "it contradicts what is on record, or the study is paused or over",
    413: "the body is too large",
    421: "a Host that the service does not answer to",
    422: "not what this endpoint takes",
    503: "the storage is busy or away, or code is being compiled; try again after `Retry-After` seconds",
}

Described = dict[int | str, dict[str, Any]]


def describe(status: int, answer: Any, *refusals: int, **more: Any) -> Described:
    """An endpoint under /api: its answer, and its refusals beside those that any of them may give."""
    return {status: {"model": answer, **more}, **refuse(*refusals)}


def refuse(*codes: int) -> Described:
    """The refusals of an endpoint under /api."""
    return describe_refusals(401, 403, 408, 413, 421, 422, 503, *codes)


def describe_refusals(*codes: int) -> Described:
    """Refusals, for the description of an endpoint."""
    content = {PROBLEM_MEDIA: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {code: {"description": REFUSALS[code], "content": content} for code in sorted(set(codes))}
