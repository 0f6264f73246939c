"""What may be sent, with a bound on everything. The study layer checks what the words mean."""

from typing import Annotated, Any, Literal

from fastapi import Header, Path, Query
from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from lexbandits.outcomes import Scope
from lexbandits.service.security import name_in_path
from lexbandits.study.core.assignment import LONGEST_KEY
from lexbandits.study.spec import WAIT, patience, seconds
from lexbandits.study.states import StateChange, TrialState

KEY_HEADER = "Idempotency-Key"
HUGE = 1e50  # a fourth power of it is still a number
LONGEST_LEASE = 366 * 86400.0
LONGEST_WAIT = 30.0  # seconds: proxies cut what is silent for longer
MOST_COMPARISONS, MOST_VALUES = 200_000, 20_000_000  # of one study: ordered pairs × objectives; of a list
MOST_ARMS, MOST_OBJECTIVES, MOST_ITEMS, MOST_RESULTS = 200, 20, 100_000, 1000
MOST_FLAGS = 100  # studies of one request
PRINTABLE = r"^[^\x00-\x1f\x7f-\xa0\xad]+$"


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("must be printable")
    return text


def _not_dots(text: str) -> str:
    if text in (".", ".."):
        raise ValueError("would be lost in an address")
    return text


def _encodable(text: str) -> str:
    text.encode()  # a lone surrogate is no text
    return text


def _not_too_long(lease: float | str) -> float | str:
    if seconds("lease", lease) > LONGEST_LEASE:
        raise ValueError(f"must be at most {LONGEST_LEASE / 86400:g}d")
    return lease


def _not_forever(wait: float | str) -> float | str:
    if patience(wait) > LONGEST_WAIT:
        raise ValueError(f"must be at most {LONGEST_WAIT:g}s: ask again after that")
    return wait


_described = {"pattern": PRINTABLE}
Worker = Annotated[
    str, Field(min_length=1, max_length=200, json_schema_extra=_described), AfterValidator(_printable)
]
Name = Annotated[Worker, AfterValidator(_not_dots)]
Text = Annotated[str, Field(max_length=2000), AfterValidator(_encodable)]
Reason = Annotated[str, Field(min_length=1, max_length=2000), AfterValidator(_encodable)]
FlagKey = Annotated[str, Field(min_length=1, max_length=200), AfterValidator(_encodable)]
VisitorKey = Annotated[str, Field(min_length=1, max_length=LONGEST_KEY), AfterValidator(_encodable)]
Number = Annotated[float, Field(ge=-HUGE, le=HUGE)]
Share = Annotated[float, Field(ge=0, le=1)]
Amount = (
    Annotated[float, Field(ge=0, le=HUGE)] | Annotated[str, Field(max_length=40, pattern=r"^\d+(\.\d+)?%$")]
)
Lease = Annotated[
    Annotated[float, Field(gt=0, le=LONGEST_LEASE)]
    | Annotated[str, Field(max_length=20, pattern=r"^\d{1,9}(\.\d{1,9})?(ms|s|m|h|d)$")],
    AfterValidator(_not_too_long),
]
Wait = Annotated[
    Annotated[float, Field(ge=0, le=LONGEST_WAIT)]
    | Annotated[str, Field(max_length=20, pattern=r"^\d{1,9}(\.\d{1,9})?(ms|s)$")],
    AfterValidator(_not_forever),
]
Value = bool | Number | None
Values = Annotated[dict[Name, Value], Field(max_length=MOST_OBJECTIVES)]
Item = Annotated[str, Field(max_length=1000), AfterValidator(_encodable)] | Annotated[
    int, Field(ge=-(2**53), le=2**53)
] | Number  # fmt: skip
Many = Annotated[int, Field(ge=1, le=MOST_RESULTS)]


class Body(BaseModel):
    """A table without other keys; numbers are numbers, text is text."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    def given(self) -> dict[str, Any]:
        """What was said, without what was not."""
        return self.model_dump(exclude_unset=True)


Noise = (
    Literal["auto", "gaussian", "symmetric", "bernoulli", "exact", "finite_variance"]
    | Annotated[
        list[Literal["bounded", "sub_gaussian", "dependent", "independent"] | Number],
        Field(min_length=2, max_length=3),
    ]
)
_some: Any = {"type": "number", "exclusiveMinimum": 0}


class ObjectiveBody(Body):
    """One measure, in order of priority."""

    # what the study layer asks for, so that who reads only the description can make a study
    model_config = ConfigDict(
        json_schema_extra={
            "anyOf": [
                {"required": ["margin"], "properties": {"margin": _some}},
                {"required": ["at_least"]},
                {"required": ["at_most"]},
                {"required": ["noise"], "properties": {"noise": {"const": "exact"}}},
            ],
        }
    )

    name: Name
    direction: Literal["maximize", "minimize", "max", "min", "higher", "lower"] = "maximize"
    margin: Amount | None = None
    tie: Amount | None = None
    unit: Annotated[str, Field(max_length=50), AfterValidator(_encodable)] = ""
    noise: Noise = "auto"
    at_least: Number | None = None
    at_most: Number | None = None
    slack: Number | None = None
    reference: Number | Name | None = None
    if_failed: Number | None = None
    if_expired: Number | None = None
    if_missing: Literal["worst"] | None = None
    cap: Number | Literal["auto"] | None = None
    floor: Number | None = None
    above: Number | None = None


class ArmBody(Body):
    """An arm with further keys, which `lexbandits run` hands to its command."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    __pydantic_extra__: dict[Name, bool | Annotated[int, Field(ge=-(2**53), le=2**53)] | Number | Text]
    name: Name


class ItemBody(Body):
    """What to measure on, with further keys, such as a prompt."""

    model_config = ConfigDict(extra="allow", strict=True, allow_inf_nan=False)
    id: Item


EXAMPLE: Any = {
    "name": "prompts",
    "arms": ["small", "large"],
    "objectives": [
        {"name": "correct", "margin": 0.04, "noise": "bernoulli"},
        {
            "name": "latency",
            "direction": "minimize",
            "unit": "ms",
            "margin": 160,
            "noise": ["bounded", 0, 10000],
        },
    ],
}


class StudyBody(Body):
    """A question: the same words as in TOML."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    name: Name
    arms: Annotated[
        list[Name | ArmBody],
        Field(min_length=1, max_length=MOST_ARMS, json_schema_extra={"uniqueItems": True}),
    ]
    objectives: Annotated[list[ObjectiveBody], Field(min_length=1, max_length=MOST_OBJECTIVES)]
    delta: Annotated[float, Field(gt=0, lt=1)] = 0.05
    max_arms: Annotated[int, Field(ge=1, le=MOST_ARMS)] | None = None
    items: Annotated[list[Item | ItemBody], Field(min_length=1, max_length=MOST_ITEMS)] | None = None
    scope: Annotated[Scope, Field(strict=False)] | None = None
    repeats: Annotated[int, Field(ge=1, le=1000)] = 1
    source: Annotated[dict[Text, Text], Field(max_length=2)] | None = None
    seed: Annotated[int, Field(ge=0, le=2**53)] | None = None
    if_infeasible: Literal["continue", "stop"] = "continue"
    preregistered: bool = True
    serve: bool = False
    traffic: Annotated[float, Field(gt=0, le=1)] = 1.0
    warmup: Lease | Literal[0] = 0
    shares: (
        Annotated[
            dict[Name, Share | Annotated[list[Share], Field(min_length=2, max_length=2)]],
            Field(min_length=1, max_length=MOST_ARMS),
        ]
        | None
    ) = None
    baseline: Name | None = None
    budget: Annotated[int, Field(ge=1, le=10**9)] | None = None
    lease: Lease = "10m"
    max_failures: Annotated[int, Field(ge=1, le=10**6)] = 5
    burn_in: (
        Annotated[
            dict[Name, dict[Name, Annotated[list[Number], Field(max_length=1000)]]], Field(max_length=50)
        ]
        | None
    ) = None
    objects: bool = False  # whether the programs that measure have an object for each arm


class AskBody(Body):
    """n trials for a worker, each for the length of the lease.

    `wait`: how long to wait for them while results of others must come first, 0 for not at all.
    """

    n: Many = 1
    worker: Worker | None = None
    lease: Lease | None = None
    wait: Wait = WAIT


class AssignBody(Body):
    """A visitor, by any text that stands for a user or a session."""

    key: VisitorKey
    worker: Worker | None = None
    lease: Lease | None = None


class ContextBody(Body):
    """OpenFeature's evaluation context; what else it says is not looked at."""

    model_config = ConfigDict(extra="ignore", strict=True)
    targetingKey: VisitorKey  # noqa: N815 (the protocol's word)


class EvaluationBody(Body):
    """One flag for a visitor."""

    model_config = ConfigDict(extra="ignore", strict=True)
    context: ContextBody


class BulkContextBody(ContextBody):
    """The same, with the names of the studies that are wanted."""

    studies: Annotated[list[FlagKey], Field(max_length=MOST_FLAGS)] | None = None


class BulkEvaluationBody(Body):
    """Several flags for a visitor."""

    model_config = ConfigDict(extra="ignore", strict=True)
    context: BulkContextBody


class ForgetBody(Body):
    """A visitor; null for all of them."""

    key: VisitorKey | None


Cell = Number | Annotated[str, Field(max_length=200), AfterValidator(_encodable)] | None
Column = Annotated[list[Cell], Field(max_length=MOST_ITEMS)]


class ResultBody(Body):
    """Values by objective, or why there are none."""

    values: Values | None = None
    failed: Text | None = None
    interrupted: bool = False  # with `failed`: it was begun and broken off
    partial: bool = False  # with `values`: those of other objectives follow


class TrialResult(Body):
    """Values of one trial."""

    trial: Annotated[str, Field(max_length=40)]
    values: Values


class ResultsBody(Body):
    """Many results at once, all or none of them; and n new trials."""

    results: Annotated[list[TrialResult], Field(max_length=MOST_RESULTS)]
    ask: Annotated[int, Field(ge=0, le=MOST_RESULTS)] = 0
    worker: Worker | None = None
    lease: Lease | None = None
    wait: Wait = WAIT


class CorrectionBody(Body):
    """Other values than those told, and why."""

    values: Values
    reason: Reason


class ReasonBody(Body):
    """Why."""

    reason: Reason


class StateBody(Body):
    """ "paused", "resumed", "finished" (ended by hand), "reopened", or "measuring" (either), and why."""

    state: Annotated[StateChange, Field(strict=False)]
    reason: Text = ""


class AmendBody(Body):
    """Another margin or tie of an objective."""

    margin: Amount | None = None
    tie: Amount | None = None


class OrderBody(Body):
    """The objectives in their new order of priority."""

    objectives: Annotated[list[Name], Field(min_length=1, max_length=MOST_OBJECTIVES)]


class BudgetBody(Body):
    """Trials to hand out in all; null for no limit."""

    budget: Annotated[int, Field(ge=1, le=10**9)] | None


class ImportBody(Body):
    """A table measured before, by columns: arms, items if there are any, and values of objectives."""

    columns: Annotated[dict[Name, Column], Field(min_length=1, max_length=MOST_OBJECTIVES + 3)]
    arm: Name = "arm"
    fair: bool
    again: bool = False


class NoteBody(Body):
    """A remark for the record."""

    text: Reason


# --- in addresses and headers

_Part = Annotated[str, BeforeValidator(name_in_path), Field(min_length=1, max_length=200)]
StudyName = Annotated[_Part, Path()]
ArmName = Annotated[_Part, Path()]
ObjectiveName = Annotated[_Part, Path()]
WorkerName = Annotated[Annotated[_Part, AfterValidator(_printable)], Path()]
TrialId = Annotated[Annotated[str, BeforeValidator(name_in_path), Field(min_length=1, max_length=40)], Path()]
Key = Annotated[str | None, Header(alias=KEY_HEADER, min_length=1, max_length=200, pattern=r"^[\x21-\x7e]+$")]
Known = Annotated[str | None, Header(alias="If-None-Match", max_length=1000)]
Since = Annotated[int, Query(ge=0, le=2**53)]
Limit = Annotated[int, Query(ge=1, le=1000)]
After = Annotated[str, Query(max_length=200)]
TrialStateQuery = Annotated[TrialState, Query()]
