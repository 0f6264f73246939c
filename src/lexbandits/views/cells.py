"""What counts of a study, as a table of passes and arms: means and differences with ordinary intervals."""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Vector
from lexbandits._cached import cached_property
from lexbandits.evidence import ordinary
from lexbandits.evidence.kinds import Missing, NoiseKind
from lexbandits.evidence.ordinary import Estimate, Interval
from lexbandits.study.core.replay import Replay


class Cells:
    """One state of a study; its ordinary 95 % intervals are a picture, not the guarantee."""

    def __init__(self, replay: Replay) -> None:
        self._objectives, self._until = replay.projection.spec.objectives, np.array(replay.policy.until)
        self._filled = replay.projection.filled(0, len(replay.projection.fills))
        self._is_list = replay.projection.spec.is_list
        self._items = float(replay.policy.settings["n_items"]) if self._is_list else math.inf

    @cached_property
    def _table(self) -> tuple[NDArray[np.bool_], Vector]:
        """(passes, K) what counts, and (passes, K, m) its values as measured; nan where there is none."""
        arms, passes, values = self._filled
        counts = passes < self._until[arms]
        shape = int(self._until.max(initial=0)), self._until.size
        filled, cells = np.zeros(shape, np.bool_), np.full((*shape, len(self._objectives)), math.nan)
        filled[passes[counts], arms[counts]] = True
        cells[passes[counts], arms[counts]] = values[counts]
        for column, objective in enumerate(self._objectives):
            cells[:, :, column] = objective.cut(cells[:, :, column])
        return filled, cells

    def arm(self, arm: int, column: int, mean: float) -> Estimate:
        """Return the mean of an arm, as measured, with its interval."""
        ends, n = self._ends(arm, column), int((~np.isnan(self._table[1][:, arm, column])).sum())
        found = _with(mean, self._hull([(values, None) for values in ends], column))
        return Estimate.of(mean, found, n, self._objectives[column].bounds)

    def difference(self, arm: int, other: int, column: int, mean: float) -> Estimate:
        """Return how much better an arm is than another in common passes, with its interval."""
        objective, common = self._objectives[column], self._table[1][:, [arm, other], column]
        first, second = (arm, other) if objective.sign > 0 else (other, arm)
        (low, high), (least, most) = self._ends(first, column), self._ends(second, column)
        found = _with(mean, self._hull([(low, most), (high, least)], column))
        width = objective.bounds[1] - objective.bounds[0]
        return Estimate.of(mean, found, int((~np.isnan(common).any(axis=1)).sum()), (-width, width))

    def deviation(self, column: int) -> float:
        """Return the standard deviation of one value, within arms."""
        values = self._table[1][:, :, column]
        there = ~np.isnan(values)
        known = there.sum(axis=0)
        means = np.where(there, values, 0.0).sum(axis=0) / np.maximum(known, 1)
        squares = np.where(there, values - means, 0.0) ** 2
        return float(np.sqrt(squares.sum() / max(known.sum() - (known > 0).sum(), 1)))

    def _ends(self, arm: int, column: int) -> tuple[Vector, Vector]:
        """Return the least and the most that an arm's values can be, by pass: missing ones may be any."""
        filled, cells = self._table
        values, objective = cells[:, arm, column], self._objectives[column]
        lost = np.isnan(values) & filled[:, arm]
        at_worst = objective.if_missing == Missing.WORST or (self._is_list and objective.is_bounded)
        if not at_worst or not lost.any():
            return values, values
        low, high = (np.where(lost, end, values) for end in objective.bounds)
        return low, high

    def _hull(self, extremes: list[tuple[Vector, Vector | None]], column: int) -> Interval | None:
        """Return what holds at both extremes, of an arm or of a difference."""
        if self._objectives[column].noise == NoiseKind.EXACT:
            return None
        found = [self._interval(values, others, column) for values, others in extremes]
        n = min(size for _, _, size in found)
        if n < self._items:
            return ordinary.hull(*(interval for interval, _, _ in found))
        low, high = (mean for _, mean, _ in found)  # nothing is left to chance, but what is missing
        return Interval(low, high) if low < high else None

    def _interval(
        self, values: Vector, others: Vector | None, column: int
    ) -> tuple[Interval | None, float, int]:
        """Return the interval of values, or of values − others, their mean and their number."""
        there = ~np.isnan(values if others is None else values + others)
        parts = [each[there] for each in (values, others) if each is not None]
        if not there.any():
            return None, math.nan, 0
        noise = self._objectives[column].noise
        is_binary = noise == NoiseKind.BERNOULLI and all(
            bool(np.isin(each, (0.0, 1.0)).all()) for each in parts
        )
        if len(parts) == 1:
            interval = ordinary.estimate_mean(parts[0], is_binary=is_binary, items=self._items)
            return interval, float(parts[0].mean()), parts[0].size
        interval = ordinary.estimate_difference(*parts, is_binary=is_binary, items=self._items)
        return interval, float(parts[0].mean() - parts[1].mean()), parts[0].size


def _with(mean: float, found: Interval | None) -> Interval | None:
    """Return an interval that reaches a mean: of common values it may lie beyond what missing ones allow."""
    return found and Interval(min(found.low, mean), max(found.high, mean))
