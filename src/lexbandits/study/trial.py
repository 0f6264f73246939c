"""A trial: one place to be measured, handed to one worker for a while."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

TRIAL_COLUMNS = ("number", "id", "arm", "item", "state", "worker", "asked", "resolved")  # then the objectives


class _Handed(NamedTuple):
    number: int | None
    id: str | None
    arm: str
    item: Any
    until: datetime | None


class Trial(_Handed):
    """Measure `arm` (on `item`, if the arms are measured on common items) and tell the values before `until`.

    `number` counts the trials of a study from 0; `id` is what to tell it by, and cannot be guessed.
    `repeat`, from 1 on, says which measurement of its item it is, where each is measured several times.
    One that `choose` gives when there is nothing to measure has neither and is never told.
    """

    repeat: int | None = None

    def as_json(self) -> dict[str, Any]:
        """With the time as ISO 8601 text."""
        words = {**self._asdict(), "until": None if self.until is None else self.until.isoformat()}
        return {**words, "repeat": self.repeat} if self.repeat else words

    @classmethod
    def of(cls, repeat: int | None, **fields: Any) -> "Trial":
        """One that may be a repeat."""
        trial = cls(**fields)
        if repeat:
            trial.repeat = repeat
        return trial


def moment(at: float) -> datetime:
    """A time of the storage's clock, for people."""
    return datetime.fromtimestamp(at, UTC)
