"""What is answered, as OpenAPI describes it: what the study and its view say of themselves, and more."""

from dataclasses import dataclass
from typing import Any, Literal

from lexbandits.study.core.queries import Answer, Status
from lexbandits.study.states import StudyState, TrialState
from lexbandits.views.view_parts import Arm, ObjectiveRow


@dataclass(frozen=True, kw_only=True)
class Difference:
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
    exact: bool  # by arithmetic, on a list


@dataclass(frozen=True, kw_only=True)
class EventOut:
    """One line of the journal; `seconds` is its time since 1970, exactly."""

    seq: int
    kind: str
    trial: int | None
    arm: str | None
    payload: dict[str, Any]
    at: str
    seconds: float
    by: str | None


@dataclass(frozen=True, kw_only=True)
class WorkerOut:
    """Who measures: trials held, trials resolved, when it was last heard of, when its next lease ends."""

    name: str
    open: int
    resolved: int
    heard: str | None
    until: str | None


@dataclass(frozen=True, kw_only=True)
class AnswerOut(Answer):
    """The answer so far; `messages` has each flag in a sentence."""

    messages: list[str]


@dataclass(frozen=True, kw_only=True)
class ArmOut(Arm):
    """An arm; `left`: on which objective, after how many results, when, against whom."""

    left: dict[str, Any] | None


@dataclass(frozen=True, kw_only=True)
class Summary(Status):
    """A study; its size depends on arms and objectives only. Times are the storage's clock."""

    created: str
    changed: str
    ended: str | None  # when it did; nothing that comes later moves it
    seq: int
    badge: str  # the state as people call it
    headline: str
    open_question: str
    settling: str | None  # the objective
    delta: float
    lease: str
    items: int | None
    max_arms: int
    answer: AnswerOut
    objectives: list[ObjectiveRow]
    arms: list[ArmOut]
    leader: str
    differences: list[Difference]
    events: list[EventOut]
    workers: list[WorkerOut]
    more_workers: int  # than these, which were heard of last


@dataclass(frozen=True, kw_only=True)
class Fragments:
    """What the page shows, drawn; its size depends on arms and objectives only.

    `closing`: what a change of the rules would cost. `wanted`: what takes long and is not known of this
    state, to be asked for.
    """

    summary: Summary
    fragments: dict[str, str]
    closing: str | None
    wanted: list[Literal["forecast", "course"]]


@dataclass(frozen=True)
class Drawn:
    """Another view of the page, drawn; with the summary if it is about one study."""

    title: str
    fragments: dict[str, str]
    summary: Summary | None = None


@dataclass(frozen=True, kw_only=True)
class ListedStudy:
    """A study in the list."""

    name: str
    created: str
    changed: str
    seq: int
    state: StudyState
    badge: str
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
    stages: list[str]  # where each stands, as `state` of the objectives of a summary


@dataclass(frozen=True, kw_only=True)
class StudyList:
    """Studies by name; `next` is the `after` of the next page."""

    studies: list[ListedStudy]
    next: str | None
    role: str


@dataclass(frozen=True, kw_only=True)
class Events:
    """Events after `since`; `next` is the `since` of the next page, None at the end."""

    events: list[EventOut]
    next: int | None


@dataclass(frozen=True, kw_only=True)
class TrialRow:
    """A trial on record; its values in every state."""

    id: str
    number: int
    arm: str
    item: Any
    state: TrialState
    worker: str | None
    asked: str
    resolved: str | None
    values: dict[str, float | None]
    until: str | None


@dataclass(frozen=True, kw_only=True)
class TrialRows:
    """Trials from number `since` on; `next` is the `since` of the next page, None at the end."""

    trials: list[TrialRow]
    next: int | None


@dataclass(frozen=True, kw_only=True)
class ResultRow:
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


@dataclass(frozen=True, kw_only=True)
class Results:
    """One row per arm and objective."""

    results: list[ResultRow]


@dataclass(frozen=True, kw_only=True)
class Phase:
    """An objective was being settled from so many results of the study on, since `at`, to so many."""

    objective: str
    since: int
    until: int
    at: str | None


@dataclass(frozen=True, kw_only=True)
class Course:
    """What was being settled when."""

    phases: list[Phase]


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What a replay of the journal from nothing found; `sha256` is the digest of all events."""

    ok: bool
    events: int
    trials: int
    problems: list[str]
    sha256: str
