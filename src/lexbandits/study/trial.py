"""A trial: one place to be measured, handed to one worker for a while."""

from collections.abc import Container, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple, Self

from lexbandits._code import Code
from lexbandits.study.errors import StudyError

TRIAL_COLUMNS = ("number", "id", "arm", "item", "state", "worker", "asked", "resolved")  # then the objectives


def in_time_column(names: Container[str]) -> str:
    """And, if some came late in part, which of their values did not, as JSON; no objective is called so."""
    column = "in_time"
    while column in names:
        column += "_"
    return column


class AssignReason(Code):
    """Why `assign` gave a visitor this arm.

    TRIAL: it is measured; tell the trial. The others are not told. STICKY: the visitor had this arm before.
    OUTSIDE: the visitor does not take part, and gets the baseline or the best arm so far.
    LEADER: the best arm so far, while nothing can be measured. WINNER: the answer. STALE: the best arm that
    this process knows of, as the storage does not answer.
    """

    TRIAL = "trial"
    STICKY = "sticky"
    OUTSIDE = "outside"
    LEADER = "leader"
    WINNER = "winner"
    STALE = "stale"


class _Handed(NamedTuple):
    number: int | None
    id: str | None
    arm: str
    item: Any
    until: datetime | None


class Trial(_Handed):
    """What to measure, and until when to tell it.

    One that `assign` gives when there is nothing to measure has neither number nor id and is never told.

    Attributes:
        number: of the study's trials, from 0.
        id: what to tell it by; it cannot be guessed.
        arm: what to measure.
        item: on what, where arms are measured on common items; else good as a seed.
        until: when its lease ends.
        repeat: which measurement of its item it is, from 1 on, where each is measured several times.
        reason: why `assign` gave this arm; None of a trial that was asked for.

    >>> import lexbandits as lb
    >>> study = lb.create_study("s", arms=["a", "b"], objectives=[lb.Objective("score", margin=2)])
    >>> trial = study.ask()
    >>> trial.number, trial.arm, trial.item
    (0, 'a', 0)
    """

    repeat: int | None = None
    reason: AssignReason | None = None
    _objects: Mapping[str, Any] | None = None  # of its arm alone

    @property
    def object(self) -> Any:
        """Return the object of the arm, if the study was given a dict of them in this process."""
        if self._objects is None:
            raise StudyError(
                f"no object of arm {self.arm!r} is in this process: give one for every arm, as in "
                "create_study(…, arms={name: object}) or open_study(name, storage, arms={name: object})"
            )
        return self._objects[self.arm]

    def with_object(self, objects: Mapping[str, Any]) -> Self:
        """Keep the object of its arm, if it is among `objects`."""
        if self.arm in objects:
            self._objects = {self.arm: objects[self.arm]}
        return self

    def as_json(self) -> dict[str, Any]:
        """With the time as ISO 8601 text."""
        fields = {**self._asdict(), "until": None if self.until is None else self.until.isoformat()}
        fields |= {"repeat": self.repeat} if self.repeat else {}
        return {**fields, "reason": self.reason.value} if self.reason else fields

    def as_repeat(self, repeat: int | None) -> Self:
        """The same as measurement number `repeat` of its item; None: it is measured once."""
        self.repeat = repeat
        return self

    def as_assigned(self, reason: AssignReason) -> Self:
        """Return the same with the reason why a visitor was given it."""
        self.reason = reason
        return self


def moment(at: float) -> datetime:
    """A time of the storage's clock, for people."""
    return datetime.fromtimestamp(at, UTC)
