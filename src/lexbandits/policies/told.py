"""What may be told to a policy that knows the kind of its noise: numbers, None, and no surprises."""

import math
import warnings
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.kinds import GAUSSIAN, WATCHED, Kind, check_rewards, repetition_warning

LARGEST = 1e100  # of a value: its square, and sums of them, stay finite


def told_numbers(given: ArrayLike, shape: tuple[int, ...]) -> Vector:
    """Rewards as floats, nan where a value was not measured (None or nan)."""
    try:
        raw = np.array(given)
    except ValueError:
        raise ValueError(
            f"rewards must have shape {shape}, one column per objective, got {given!r}"
        ) from None
    if raw.size == 0 and shape[0] == 0:
        return np.empty(shape)
    if raw.shape != shape:
        raise ValueError(f"rewards must have shape {shape}, one column per objective, got {given!r}")
    if raw.dtype.kind in "fiub":
        return np.ascontiguousarray(raw, dtype=np.float64)
    if raw.dtype.kind != "O" or any(isinstance(value, (str, bytes)) for value in raw.flat):
        raise TypeError(f"rewards must be numbers, got {given!r}")
    try:
        return np.ascontiguousarray(raw.astype(np.float64))
    except OverflowError:
        raise ValueError(f"rewards must be finite, got {given!r}") from None
    except (TypeError, ValueError):
        raise TypeError(f"rewards must be numbers, got {given!r}") from None


def told_arms(given: ArrayLike, n_arms: int) -> Counts:
    """A list of arms."""
    try:
        arms = np.array(given)
    except ValueError:
        raise TypeError(f"arms must be a list of integers, got {given!r}") from None
    if arms.ndim != 1 or (arms.size and arms.dtype.kind not in "iu"):
        raise TypeError(f"arms must be a list of integers, got {given!r}")
    outside = (arms < 0) | (arms >= n_arms)
    if outside.any():
        raise ValueError(f"arms are integers in 0..{n_arms - 1}, got {int(arms[outside][0])}")
    return np.ascontiguousarray(arms, dtype=np.int64)


class Scrutiny:
    """Refuses values that the noise rules out; warns, once per objective, of those it makes unlikely."""

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = kinds
        self._early: dict[int, list[list[float]]] = {}  # the first values told of each arm
        self.suspect: set[int] = set()  # objectives of which a warning was given
        self.aloud = True  # False for who warns in words of his own

    def check(self, arm: int, values: Vector) -> None:
        """One result; the common case is quick."""
        for kind, value in zip(self.kinds, values.tolist(), strict=True):
            if not (kind.low <= value <= kind.high and abs(value) <= LARGEST) and not math.isnan(value):
                self.check_many([arm], values[None, :])

    def check_many(self, arms: Sequence[int], values: Vector) -> None:
        """Results, a row each."""
        check_rewards(self.kinds, arms, values)
        large = np.abs(values) > LARGEST
        if large.any():
            given = values[int(np.argwhere(large)[0, 0])].tolist()
            raise ValueError(f"rewards must be at most {LARGEST:g} in size, got {given}")

    def watch(self, arm: int, values: Vector) -> None:
        """Take note of the first values of an arm: Gaussian ones never repeat."""
        early = self._early.setdefault(arm, [])
        if len(early) == WATCHED:
            return
        row = values.tolist()
        for i, kind in enumerate(self.kinds):
            unsuspected = kind.code == GAUSSIAN and i not in self.suspect
            if unsuspected and any(old[i] == row[i] for old in early):
                self.suspect.add(i)
                if not self.aloud:
                    continue
                warnings.warn(repetition_warning(arm, i, row[i]), UserWarning, stacklevel=4)
        early.append(row)

    def watch_many(self, arms: Counts, values: Vector) -> None:
        """The same of results in order."""
        for arm in np.unique(arms).tolist():
            for row in np.flatnonzero(arms == arm)[:WATCHED].tolist():
                self.watch(arm, values[row])
