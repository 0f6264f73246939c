"""What is answered, as OpenAPI describes it. Not used to check answers: they are ours."""

from typing import Any, Literal

from pydantic import BaseModel


class Difference(BaseModel):
    """leader − rival over common results; the truth lies in [low, high] at the study's confidence.

    `by`: the arm by which a rival is "beaten". `parts`: the share of the evidence that the verdict takes.
    """

    rival: str
    objective: str
    difference: float | None
    low: float | None
    high: float | None
    results: int
    verdict: str
    by: str | None
    parts: float | None


class Measured(BaseModel):
    """Where a mean lies."""

    results: int
    mean: float | None
    low: float | None
    high: float | None


class ArmOut(BaseModel):
    """One arm. `left`: on which objective, after how many results, when, against whom; `withdrawn`: why."""

    name: str
    words: dict[str, Any]
    state: Literal["answer", "candidate", "left", "withdrawn"]
    results: int
    open: int
    failed: int
    expired: int
    late: int
    objectives: dict[str, Measured]
    left: dict[str, Any] | None
    withdrawn: str | None


class ObjectiveOut(BaseModel):
    """One objective, in order of priority."""

    name: str
    direction: Literal["maximize", "minimize"]
    unit: str
    tolerance: float
    resolution: float
    target: float | None
    noise: str | list[Any]
    bounds: list[float] | None
    state: Literal["settled", "enough", "settling", "later", "not needed"]


class AnswerOut(BaseModel):
    """The answer so far; `details` has the fields of each flag, `said` each flag in a sentence."""

    arm: str
    certified: bool
    delta: float
    candidates: list[str]
    reason: str
    flags: list[str]
    certificate: list[Difference]
    details: dict[str, dict[str, Any]]
    said: list[str]


class EventOut(BaseModel):
    """One line of the journal; `seconds` is its time since 1970, exactly."""

    seq: int
    kind: str
    trial: int | None
    arm: str | None
    payload: dict[str, Any]
    at: str
    seconds: float
    by: str | None


class WorkerOut(BaseModel):
    """Who measures: trials held, trials resolved, when it was last heard of, when its next lease ends."""

    name: str
    open: int
    resolved: int
    heard: str | None
    until: str | None


class Summary(BaseModel):
    """A study; its size depends on arms and objectives only. Times are the storage's clock."""

    name: str
    created: str
    changed: str
    ended: str | None  # when it did; nothing that comes later moves it
    seq: int
    state: str
    called: str  # the state as people call it
    reason: str
    objective: str | None
    settling: str | None  # the same
    candidates: list[str]
    results: int
    open: int
    waiting: int
    waiting_for: list[str]
    overdue: int
    late: int
    failed: int
    expired: int
    released: int
    interrupted: int
    void: int
    handed_out: int
    budget: int | None
    delta: float
    lease: str
    items: int | None
    max_arms: int
    answer: AnswerOut
    objectives: list[ObjectiveOut]
    arms: list[ArmOut]
    leader: str
    differences: list[Difference]
    events: list[EventOut]
    workers: list[WorkerOut]


class Fragments(BaseModel):
    """What the page shows, drawn; its size depends on arms and objectives only.

    `turns`: what happened without an event. `closing`: what a change of the rules would cost. `wanted`: what
    takes long and is not known of this state, to be asked for.
    """

    summary: Summary
    fragments: dict[str, str]
    turns: list[dict[str, str]]
    closing: str | None
    wanted: list[Literal["forecast", "course"]]


class Glance(BaseModel):
    """A study in the list."""

    name: str
    created: str
    changed: str
    seq: int
    state: str
    called: str
    settling: str | None
    results: int
    budget: int | None
    open: int
    overdue: int
    answer: str
    certified: bool
    flags: list[str]
    candidates: list[str]
    arms: int
    objectives: list[str]


class Glances(BaseModel):
    """Studies by name; `next` is the `after` of the next page."""

    studies: list[Glance]
    next: str | None
    role: str


class Events(BaseModel):
    """Events after `since`; `next` is the `since` of the next page, None at the end."""

    events: list[EventOut]
    next: int | None


class TrialRow(BaseModel):
    """A trial on record; its values in every state."""

    id: str
    number: int
    arm: str
    item: Any
    state: str
    worker: str | None
    asked: str
    resolved: str | None
    values: dict[str, float | None]
    until: str | None


class TrialRows(BaseModel):
    """Trials from number `since` on; `next` is the `since` of the next page, None at the end."""

    trials: list[TrialRow]
    next: int | None


class ResultRow(BaseModel):
    """One arm on one objective."""

    arm: str
    objective: str
    unit: str
    state: str
    results: int
    mean: float | None
    low: float | None
    high: float | None
    open: int
    failed: int


class Results(BaseModel):
    """One row per arm and objective."""

    results: list[ResultRow]


class Phase(BaseModel):
    """An objective was being settled from so many results of the study on, since `at`, to so many."""

    objective: str
    since: int
    until: int
    at: str | None


class Course(BaseModel):
    """What was being settled when."""

    phases: list[Phase]


class Verified(BaseModel):
    """What a replay of the journal from nothing found; `sha256` is that of all events."""

    ok: bool
    events: int
    trials: int
    problems: list[str]
    sha256: str
