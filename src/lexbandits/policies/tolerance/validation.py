"""What may be told to a policy that knows the kind of its noise."""

import math
import warnings
from collections.abc import Sequence

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits.evidence.kinds import WATCHED, Kind, check_rewards, repetition_warning
from lexbandits.evidence.moments import ROUNDING

EARLY = 1000  # values of an arm in which one must not come too often
FEWEST = 15  # values of which that can be said
MAJORITY = 0.05  # p-value below which one difference makes up more than half of them
SHARE = 0.05  # of them; Gaussian values rounded to a tenth of their deviation have 0.04


def one_value_returns(values: Vector) -> bool:
    """Whether one value makes up clearly more than SHARE of them, by five standard deviations of its count.

    Zeros of those who bought nothing do; milliseconds rounded to integers, of a deviation of 10, do not.
    """
    n = values.size
    if n < FEWEST:
        return False
    most = int(np.unique(values, return_counts=True)[1].max())
    return most > SHARE * n + 5.0 * math.sqrt(SHARE * (1.0 - SHARE) * n)


def one_difference_prevails(differences: Vector, size: float) -> bool:
    """Whether one makes up clearly more than half of differences of numbers as large as `size`.

    If they are symmetric, it is their centre: another value has its mirror image. The centre would be known,
    and the rare others, which may move the mean by any amount, would prove nothing. Arms that have one value
    each, and not the same, are left alone.
    """
    from scipy.special import bdtrc  # slow to import

    n = differences.size
    if n == 0:
        return False
    ordered = np.sort(differences)
    groups = np.cumsum(np.diff(ordered, prepend=ordered[0]) > ROUNDING * size)
    if groups[-1] == 0 and abs(ordered[0]) > ROUNDING * size:
        return False
    return bool(bdtrc(int(np.bincount(groups).max()) - 1, n, 0.5) <= MAJORITY)


class RewardValidator:
    """Refuses values that the noise rules out; warns, once per objective, of those it makes unlikely."""

    def __init__(self, kinds: Sequence[Kind], signs: Sequence[int] = ()) -> None:
        self.kinds = kinds
        self._signs = tuple(signs) if any(signs) else ()  # of values whose means have shares
        self._early: dict[int, list[list[float]]] = {}  # the first values told of each arm
        self.suspect: dict[int, int] = {}  # objectives of which a warning was given -> the arm
        self.aloud = True  # False where the caller warns in its own words

    def check(self, arm: int, values: Vector) -> None:
        """One result; the common case is quick."""
        for kind, value in zip(self.kinds, values.tolist(), strict=True):
            if not (kind.low <= value <= kind.high or math.isnan(value)):
                self.check_many([arm], values[None, :])
        if self._signs:
            self.check_many([arm], values[None, :])

    def check_many(self, arms: Sequence[int], values: Vector) -> None:
        """Results, a row each."""
        check_rewards(self.kinds, arms, values)
        for i, sign in enumerate(self._signs):
            if sign and (sign * values[:, i] < 0).any():
                raise ValueError(f"objective {i}: shares of a mean need values that are not negative")

    def watch(self, arm: int, values: Vector) -> None:
        """Take note of the first values of an arm: Gaussian ones never repeat."""
        early = self._early.setdefault(arm, [])
        if len(early) == WATCHED:
            return
        row = values.tolist()
        for i, kind in enumerate(self.kinds):
            unsuspected = kind.traits.normal and i not in self.suspect
            if unsuspected and any(old[i] == row[i] for old in early):
                self.suspect[i] = arm
                if not self.aloud:
                    continue
                warnings.warn(repetition_warning(arm, i, row[i]), UserWarning, stacklevel=4)
        early.append(row)

    def watch_many(self, arms: Counts, values: Vector) -> None:
        """The same of results in order."""
        for arm in np.unique(arms).tolist():
            for row in np.flatnonzero(arms == arm)[:WATCHED].tolist():
                self.watch(arm, values[row])
