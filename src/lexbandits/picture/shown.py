"""What people are shown of a study, or of a judged table: codes and fields, in their names and units."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lexbandits.picture.reasons import Reason


@dataclass(frozen=True)
class Exit:
    """Where an arm's way ends: a code of exits.py; `after` how many results it left, if it did.

    `objective` decides, against `rival`, or by a limit. `bound` is what was proven there, in its unit: how
    much worse the arm is at least, or beyond which value it lies.
    """

    code: str
    objective: str | None = None
    rival: str | None = None
    bound: float | None = None
    after: int | None = None


@dataclass(frozen=True)
class Cell:
    """An arm on an objective: the mean and where it lies, as numbers and as they are `shown`.

    `counts`: whether it still matters for the arm. `why`: what decides on it here.
    """

    results: int
    mean: float | None
    low: float | None
    high: float | None
    shown: str
    range: str
    counts: bool
    why: str

    @property
    def in_short(self) -> str:
        """The mean and where it lies."""
        return f"{self.shown} ({self.range})" if self.range else self.shown

    @property
    def said(self) -> str:
        """In one line."""
        return f"{self.in_short}; {self.why}" if self.why else self.in_short


@dataclass(frozen=True)
class Arm:
    """One arm. `standing` is where it stands, in few words; `rank` its place in lists of arms."""

    name: str
    words: dict[str, Any]
    state: str  # answer, candidate, left or withdrawn
    standing: str
    exit: Exit
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
class Rung:
    """One objective, in the order of priority.

    state: "settled" for every arm that reached it; "enough", the answer is certain without that; "settling";
    "later"; "not needed"; and of a study that ended without a proof "not settled" and "not reached".
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
    state: str
    said: str
    rule: str
    matters: str
    entered: tuple[str, ...]


@dataclass(frozen=True)
class Against:
    """An arm against the reference of a comparison: how much better it is, and what that comes to."""

    arm: str
    results: int
    mean: float | None
    low: float | None
    high: float | None
    shown: str
    verdict: str  # "out", "behind", "ties", "not better" or "open"
    by: str | None  # who put it out, if not the reference


@dataclass(frozen=True)
class Comparison:
    """The arms that reached an objective, against one of them; `decided`: whether it tells some apart."""

    objective: str
    reference: str
    decided: bool
    rows: tuple[Against, ...]


@dataclass(frozen=True)
class Story:
    """One arm: where it stands, since when, and why.

    standing: "answer", "candidate", "left", "withdrawn" or "could not be measured". `fate` says more of a
    candidate: "behind" a proven answer, "misses limit", "by the means", "ties", "not told apart" or "open".
    """

    arm: str
    standing: str
    fate: str
    after: int | None  # results after which it left
    reasons: tuple["Reason", ...]
    sentence: str

    @property
    def rest(self) -> str:
        """The sentence after the arm's name."""
        return self.sentence[len(self.arm) :]

    def __str__(self) -> str:
        return self.sentence
