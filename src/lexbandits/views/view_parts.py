"""What people are shown of a study, or of a judged table: codes and fields, in their names and units."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lexbandits._code import Code
from lexbandits._printable import plain
from lexbandits.outcomes import ArmOutcome, ClaimVerdict, Decision, ObjectiveStage
from lexbandits.study.number_format import amount, estimand, limit_of
from lexbandits.study.objective import Objective

if TYPE_CHECKING:
    from lexbandits.views.reasons import Reason

LABELS = {  # of what became of an arm: the same wherever it is shown
    ArmOutcome.WINNER: "winner",
    ArmOutcome.TIED: "tied",
    ArmOutcome.EXCLUDED: "excluded",
    ArmOutcome.OUTSIDE_LIMIT: "outside the limit",
    ArmOutcome.UNDECIDED: "undecided",
    ArmOutcome.WITHDRAWN: "withdrawn",
    ArmOutcome.FAILED: "could not be measured",
}
MEANINGS = {
    ArmOutcome.WINNER: "the certified answer",
    ArmOutcome.TIED: "shown to be as good a choice as the winner",
    ArmOutcome.EXCLUDED: "shown to be worse than another arm",
    ArmOutcome.OUTSIDE_LIMIT: "shown to violate a limit",
    ArmOutcome.UNDECIDED: "none of these is shown",
}


class Basis(Code):
    """What a certified bound comes from, where the interval that holds at all times does not say as much."""

    ALWAYS = "always"
    ANSWER = "answer"  # tests that prove the answer, and nothing else
    SHARE = "share"  # a test of a percentage; the interval is of the difference
    ONE_SIDED = "one_sided"  # a bound to one side; the interval has two


BASES = {
    Basis.ALWAYS: "certified",
    Basis.ANSWER: "proven for the answer:",
    Basis.SHARE: "proven as a percentage:",
    Basis.ONE_SIDED: "proven one-sided:",
}
BASIS_NOTES = {
    Basis.ANSWER: (
        "“For the answer” is proven as a step of its certificate. That takes less evidence than a line that "
        "holds at all times, which may reach past it."
    ),
    Basis.SHARE: "“As a percentage” is proven about shares of the mean, and lines are about differences.",
    Basis.ONE_SIDED: "“One-sided” is proven to one side, which takes less evidence than a line.",
}


def basis_of(
    low: float | None, high: float | None, always: tuple[float | None, float | None], otherwise: Basis
) -> Basis:
    """Return whether an interval that holds at all times says that the truth is in [low, high]."""
    above = low is None or (always[0] is not None and always[0] >= low)
    below = high is None or (always[1] is not None and always[1] <= high)
    return Basis.ALWAYS if above and below else otherwise


def compared_on(common: str) -> str:
    """How arms are compared, and what a table of means cannot show."""
    return (
        f"Arms are compared by their differences on {common}. So an arm can be excluded although its "
        "interval here still touches the band."
    )


def legend_of(objectives: "tuple[ObjectiveRow, ...]") -> tuple[tuple[str, str], ...]:
    """Return the outcomes that a question can have, each with its meaning."""
    limited = any(each.limit is not None for each in objectives)
    kept = [outcome for outcome in MEANINGS if limited or outcome != ArmOutcome.OUTSIDE_LIMIT]
    return tuple((LABELS[outcome], MEANINGS[outcome]) for outcome in kept)


@dataclass(frozen=True)
class Cell:
    """An arm on an objective: its mean with an ordinary 95 % interval, as numbers and as they are `shown`.

    The interval is a picture, not the guarantee. `always_low` and `always_high` hold at all times at the
    study's confidence. `meets`: whether the arm is shown to meet a limit; None while neither is shown.
    `basis`: by what. `counts`: whether it still matters for the arm. `why`: what decides on it here.
    """

    results: int
    mean: float | None
    low: float | None
    high: float | None
    shown: str
    range: str
    counts: bool
    why: str
    always_low: float | None = None
    always_high: float | None = None
    meets: bool | None = None
    basis: Basis = Basis.ALWAYS

    @property
    def in_short(self) -> str:
        """The mean and where it lies."""
        return f"{self.shown} ({self.range})" if self.range else self.shown

    @property
    def in_full(self) -> str:
        """In one line."""
        return f"{self.in_short}; {self.why}" if self.why else self.in_short


@dataclass(frozen=True)
class Arm:
    """One arm. `leads`: it is the answer or the best guess; `rank` is its place in lists of arms."""

    name: str
    fields: dict[str, Any]
    leads: bool
    label: str
    decision: Decision
    rank: int
    results: int
    counted: int  # those that its means rest on
    open: int
    failed: int
    expired: int
    late: int
    objectives: dict[str, Cell]
    withdrawn: str | None  # why


@dataclass(frozen=True)
class ObjectiveRow:
    """One objective, in the order of priority.

    `entered`: the arms that it counts for. `rule` and `matters`: what kind it is, and its margin or limit.
    """

    name: str
    direction: str
    unit: str
    margin: float
    tie: float
    limit: float | None
    slack: float
    noise: str | list[Any]
    bounds: list[float] | None
    stage: ObjectiveStage
    message: str
    rule: str
    matters: str
    entered: tuple[str, ...]


def question(objective: Objective) -> str:
    """What an objective asks for, but for its unit and its margin."""
    asked = f"{'higher' if objective.sign > 0 else 'lower'} is better"
    asked = asked if objective.limit is None else limit_of(objective)
    return f"{of}, {asked}" if (of := estimand(objective)) else asked


def matters(objective: Objective) -> str:
    """Its margin and tie, or the slack at its limit."""
    if objective.limit is not None:
        return (
            f"slack {amount(objective, objective.slack_in_unit)}" if objective.slack_in_unit else "no slack"
        )
    margin, tie = objective.margin_in_unit, objective.tie_in_unit
    if not margin:
        return "every difference matters"
    return f"margin {amount(objective, margin)}{f', tie {amount(objective, tie)}' if tie else ''}"


def objective_row(
    objective: Objective,
    margin: float,
    tie: float,
    stage: ObjectiveStage,
    message: str,
    entered: tuple[str, ...],
) -> ObjectiveRow:
    """Return a row; `margin` and `tie` are in the objective's unit, also where they are shares."""
    bounds, unit = [plain(end) for end in objective.bounds], objective.unit_of_mean
    return ObjectiveRow(
        name=objective.name,
        direction=objective.direction,
        unit=unit,
        margin=margin,
        tie=tie,
        limit=objective.limit,
        slack=objective.slack_in_unit,
        noise=objective.noise if isinstance(objective.noise, str) else list(objective.noise),
        bounds=None if None in bounds else bounds,
        stage=stage,
        message=message,
        rule=f"{unit}, {question(objective)}" if unit and objective.limit is None else question(objective),
        matters=matters(objective),
        entered=entered,
    )


@dataclass(frozen=True)
class Against:
    """An arm against the reference of a comparison: how much better it is, and what that comes to.

    `low` and `high` are the ends of an ordinary 95 % interval, a picture; `proven_low` and `proven_high` are
    what the difference is certified to lie above and below, by `basis`.
    """

    arm: str
    results: int
    mean: float | None
    low: float | None
    high: float | None
    shown: str
    verdict: ClaimVerdict
    by: str | None  # who put it out, if not the reference
    proven_low: float | None = None
    proven_high: float | None = None
    always_low: float | None = None
    always_high: float | None = None
    basis: Basis = Basis.ALWAYS


@dataclass(frozen=True)
class Comparison:
    """The arms that reached an objective, against one of them; `decided`: whether it tells some apart."""

    objective: str
    reference: str
    decided: bool
    rows: tuple[Against, ...]


@dataclass(frozen=True)
class ArmExplanation:
    """What became of one arm, and why; `leads`: it is the answer, or the best guess."""

    arm: str
    leads: bool
    decision: Decision
    reasons: tuple["Reason", ...]
    sentence: str

    @property
    def rest(self) -> str:
        """The sentence after the arm's name."""
        return self.sentence[len(self.arm) :]

    def __str__(self) -> str:
        return self.sentence
