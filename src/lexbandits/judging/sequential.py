"""A table that is looked at as it grows: claims that hold at all looks together.

Each rests on numbers in which the order of the items plays no part, so that at every look it is one and the
same process of the items as they came, whatever they are called. docs/proofs.md, section 7.
"""

import math
from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from scipy import special

from lexbandits._arrays import Vector
from lexbandits.evidence.betting import gaussian_bets
from lexbandits.evidence.bounded import LOG_WEIGHTS, MOST_RISK, STAKES, bounded_log_evidence, bounded_lower
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.fixed_sample import spread
from lexbandits.evidence.gaussian import gaussian_radius
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius
from lexbandits.evidence.symmetric import MOST_RISK as SIGN_RISK
from lexbandits.judging.claims import Claims, Sample
from lexbandits.judging.table import Statistic
from lexbandits.outcomes import Flag

MANY = 10_000  # values, of which four moments are enough
# Stakes on signs, in those that suit a resolution as large as the standard deviation, and their weights.
SIGN_STAKES = 2.0 ** np.arange(-18, 6)
SIGN_WEIGHTS = 1.0 / (1.0 + (np.arange(-18, 6) / 6.0) ** 2)
SIGN_WEIGHTS /= SIGN_WEIGHTS.sum()


class AnytimeClaims(Claims):
    """Claims of which, however often the table is judged, one is ever false with probability ≤ alpha."""

    def exceeds(self, i: int, sample: Sample, b: float, alpha: float) -> bool:
        """Whether "the mean is more than b" is claimed at alpha."""
        kind, level = self.table.kinds[i], math.log(1 / alpha)
        if not self.table.is_paired and len(sample.weights) > 1:
            return self._least_of_arms(i, sample, alpha) > b
        if kind is Statistic.SYMMETRIC:
            resolution = self.table.objectives[i].tolerance_settings.resolution
            return symmetric_log_wealth(sample.values - b, resolution) >= level
        if kind is Statistic.SUB_GAUSSIAN:
            return self._least_mean(i, sample.values, 0.0, 0.0, self._scale(i, sample), level) > b
        n, mean = float(sample.n), sample.mean
        if kind.is_normal:
            if kind is Statistic.FINITE_VARIANCE and n < LARGE_SAMPLE:
                return False
            return gaussian_bets(n, mean - b, sample.sd**2 * (n - 1)) >= level
        if b <= sample.low:  # a mean of the least means that all values are
            return b < sample.low or bool(sample.values[-1] > b)
        if b >= sample.high or mean <= b:
            return False
        width = sample.high - sample.low
        return _log_wealth((sample.values - sample.low) / width, (b - sample.low) / width) >= level

    def doubts(self, fact: str, i: int, a: int, b: int | None, alpha: float) -> Iterator[Flag]:
        """Flags of a claim that was made. Skewness is asked about where this look draws its line."""
        sample = self.sample(fact, i, a, b)
        parts = 1 if self.table.is_paired else len(sample.weights)
        level = _at_one_look(sample.n, alpha / parts) if self.table.kinds[i] is Statistic.GAUSSIAN else alpha
        return super().doubts(fact, i, a, b, level)

    def _scale(self, i: int, sample: Sample) -> float:
        return self.table.objectives[i].scale * sum(abs(weight) for _, weight in sample.weights)

    def _least_of_arms(self, i: int, sample: Sample, alpha: float) -> float:
        """A lower bound of a contrast by those of its arms: rows paired anew would be another test."""
        table, (least, most) = self.table, self._ends[i]
        level, total = math.log(len(sample.weights) / alpha), 0.0
        for x, weight in sample.weights:
            column = (table.low if weight > 0 else table.high)[:, x, i]
            values = weight * column[column == column]
            low, high = sorted((weight * least, weight * most))
            is_scaled = table.kinds[i] is Statistic.SUB_GAUSSIAN
            scale = abs(weight) * table.objectives[i].scale if is_scaled else 0.0
            total += self._least_mean(i, values, low, high, scale, level)
        return total

    def _least_mean(
        self, i: int, values: Vector, low: float, high: float, scale: float, level: float
    ) -> float:
        """A lower bound of a mean, at all looks."""
        kind, n, mean = self.table.kinds[i], float(values.size), float(values.mean())
        if kind is Statistic.SUB_GAUSSIAN:
            return mean - sub_gaussian_radius(n, scale, one_sided_level(level))
        if kind is Statistic.FINITE_VARIANCE and n < LARGE_SAMPLE:
            return -math.inf
        if kind.is_normal:
            squares = spread(values, float(np.abs(values).max())) ** 2 * (n - 1)
            return mean - gaussian_radius(n, squares, one_sided_level(level))
        return low + (high - low) * bounded_lower(*_moments((values - low) / (high - low)), level)


@lru_cache(maxsize=1024)
def _at_one_look(n: int, alpha: float) -> float:
    """The level at which Student's test of n values claims what `gaussian_bets` claims of them at alpha.

    If no look's chance of that is off by more than a share, as its flag says, nor is that of all looks.
    """
    level, near, far = math.log(1 / alpha), 0.0, 1e6  # in standard errors
    for _ in range(60):
        t = (near + far) / 2
        enough = gaussian_bets(float(n), t / math.sqrt(n), n - 1.0) >= level
        near, far = (near, t) if enough else (t, far)
    return float(special.stdtr(n - 1, -far)) if far < 1e6 else alpha


def _log_wealth(values: Vector, x: float) -> float:
    """What betting that the mean of values in [0, 1] exceeds x is worth; of very many a bound on it."""
    if values.size > MANY:
        return bounded_log_evidence(x, *_moments(values))
    different, times = np.unique(values, return_counts=True)
    gains = np.log1p(np.outer(np.minimum(STAKES, MOST_RISK / x), different - x)) @ times
    return float(special.logsumexp(LOG_WEIGHTS + gains))


def symmetric_log_wealth(gaps: Vector, resolution: float) -> float:
    """What fixed stakes on positive signs of symmetric gaps are worth, in whatever order they came."""
    gains = np.log1p(SIGN_RISK * np.tanh(np.outer(SIGN_STAKES / resolution, gaps))).sum(axis=1)
    return float(special.logsumexp(gains, b=SIGN_WEIGHTS))


def _moments(values: Vector) -> tuple[float, float, float, float, float]:
    """n, mean, M2, M3, M4."""
    mean = float(values.mean())
    m2, m3, m4 = (float(((values - mean) ** p).sum()) for p in (2, 3, 4))
    return float(values.size), mean, m2, m3, m4
