"""The interval of an arm or of a pair of arms on one objective, whatever the kind of its noise.

Moments are kept of *stored* values: those of a bounded kind are brought to [0, 1], an arm's v as
(v − lo)/(hi − lo), a pair's difference D as (D + R)/(2R) with R = hi − lo; all others are kept as
they are. What comes out is in the units of the values told.
"""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.bounded import (
    bounded_ceiling,
    bounded_interval,
    bounded_log_evidence,
    bounded_lower,
)
from lexbandits.evidence.finite_variance import LARGE_SAMPLE, finite_variance_radius
from lexbandits.evidence.gaussian import gaussian_log_evidence, gaussian_radius
from lexbandits.evidence.kinds import BOUNDED, FINITE_VARIANCE, GAUSSIAN, SUB_GAUSSIAN, SYMMETRIC, Kind
from lexbandits.evidence.radius import PRIOR, cost_of_time, spread_of_mean
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius

SHADE = 1.0 - 1e-12  # of a bound, for rounding
SLACK = 0.5  # of evidence at a boundary: four moments say a little less now and then farther from the mean


@kernel
def kind_at(rows: Vector, objective: int) -> Kind:
    """The kind of an objective from `kinds.kind_rows`."""
    code, low, high = int(rows[objective, 0]), rows[objective, 1], rows[objective, 2]
    sd, pair_sd, worst, steady = rows[objective, 3:7]
    return Kind(code, low, high, sd, pair_sd, worst, steady)


@kernel
def stored_value(kind: Kind, value: float) -> float:
    """What is kept of an arm's value."""
    if kind.code >= BOUNDED:
        return (value - kind.low) / (kind.high - kind.low)
    return value


@kernel
def stored_difference(kind: Kind, value: float, other: float) -> float:
    """What is kept of value − other, two arms' values in one pass."""
    if kind.code >= BOUNDED:
        width = kind.high - kind.low
        return ((value - other) + width) / (2.0 * width)
    return value - other


@kernel
def told_mean(kind: Kind, stored: float) -> float:
    """The mean of an arm's values in their own units."""
    if kind.code >= BOUNDED:
        return kind.low + stored * (kind.high - kind.low)
    return stored


@kernel
def told_difference(kind: Kind, stored: float) -> float:
    """The mean difference of a pair in the units of the values."""
    if kind.code >= BOUNDED:
        return (2.0 * stored - 1.0) * (kind.high - kind.low)
    return stored


@kernel
def moment_radius(code: int, n: float, m2: float, scale: float, level: float) -> float:
    """Half the width of the interval of a kind that is not bounded, by n, the mean and M2.

    Symmetric differences say nothing about one arm, and `symmetric_interval` speaks of pairs.
    """
    if code == SYMMETRIC:
        return math.inf
    if code == SUB_GAUSSIAN:
        return sub_gaussian_radius(n, scale, level)
    if code == GAUSSIAN:
        return gaussian_radius(n, m2, level)
    if code == FINITE_VARIANCE:
        return finite_variance_radius(n, m2, level)
    return math.inf if n < 1.0 else 0.0  # EXACT


@kernel
def stored_interval(
    code: int, scale: float, n: float, mean: float, m2: float, m3: float, m4: float, level: float
) -> tuple[float, float]:
    """Both ends in stored units."""
    if code >= BOUNDED:
        return bounded_interval(n, mean, m2, m3, m4, level)
    radius = moment_radius(code, n, m2, scale, level)
    return mean - radius, mean + radius


@kernel
def arm_interval(
    kind: Kind, n: float, mean: float, m2: float, m3: float, m4: float, level: float
) -> tuple[float, float]:
    """The mean of one arm: an interval that misses with probability ≤ exp(−level), at all n at once."""
    low, high = stored_interval(kind.code, kind.sd, n, mean, m2, m3, m4, level)
    return told_mean(kind, low), told_mean(kind, high)


@kernel
def pair_interval(
    kind: Kind, n: float, mean: float, m2: float, m3: float, m4: float, level: float
) -> tuple[float, float]:
    """The difference of two arms' means: an interval that misses with probability ≤ exp(−level)."""
    low, high = stored_interval(kind.code, kind.pair_sd, n, mean, m2, m3, m4, level)
    return told_difference(kind, low), told_difference(kind, high)


@kernel
def lower_evidence(
    kind: Kind, n: float, mean: float, m2: float, m3: float, m4: float, boundary: float
) -> float:
    """The level at which the lower end of a pair's interval comes to lie at the boundary; 0 if at none."""
    if kind.code >= BOUNDED:
        b = (boundary + kind.high - kind.low) / (2.0 * (kind.high - kind.low))
        if b <= 0.0:
            return math.inf
        return bounded_log_evidence(b, n, mean, m2, m3, m4) - math.log(2.0) if b < mean else 0.0
    lead = mean - boundary
    if lead <= 0.0 or (kind.code == FINITE_VARIANCE and n < LARGE_SAMPLE):
        return 0.0
    if kind.code == SUB_GAUSSIAN:
        spread = kind.pair_sd * kind.pair_sd * spread_of_mean(n, PRIOR)
        return 0.5 * lead * lead / spread - cost_of_time(n, PRIOR)
    return gaussian_log_evidence(n, lead, m2, 0.0) if m2 > 0.0 else 0.0


@kernel
def least_distance(kind: Kind, n: float, m2: float, level: float) -> tuple[float, float]:
    """(p, q) such that an end of a pair's interval lies d from the mean only if p·d² ≥ q.

    It takes no logarithm. Of bounded values an end is hardly ever nearer.
    """
    twice = 2.0 * level
    if kind.code >= BOUNDED:
        width = 2.0 * (kind.high - kind.low)
        return n * n, SHADE * width * width * twice * m2
    if kind.code == SUB_GAUSSIAN:
        return n * n, SHADE * kind.pair_sd * kind.pair_sd * twice * (n + PRIOR)
    growth = twice * (n + 0.5 * twice)  # n² times less than what `gaussian_radius` has there
    return n * (n * n * n - PRIOR * growth), SHADE * m2 * growth * (n + PRIOR)


@kernel
def may_show(
    kind: Kind, mean: float, p: float, q: float, tolerance: float, reach: float, seen: float
) -> bool:
    """Whether a lower end that obeys `least_distance` can show more than `seen`: see `best_lower_end`."""
    if kind.code >= BOUNDED and seen < -reach and reach >= kind.high - kind.low:
        return True  # no values can differ by more
    ahead = told_difference(kind, mean) - (-reach if seen < -reach else tolerance)
    return seen <= tolerance and p > 0.0 and p * ahead * abs(ahead) >= q


@kernel(inline="never")
def best_lower_end(
    kind: Kind,
    n: float,
    mean: float,
    m2: float,
    m3: float,
    m4: float,
    level: float,
    tolerance: float,
    reach: float,
    seen: float,
) -> float:
    """The lower end of a pair's interval if it shows more than `seen`, the best one so far; else `seen`.

    More is: the difference is at least −`reach` (tolerance + resolution), or above `tolerance`. The
    mirrored moments give the upper end.
    """
    boundary = -reach if seen < -reach else tolerance
    if kind.code >= BOUNDED:
        each, width = level + math.log(2.0), kind.high - kind.low
        b = (boundary + width) / (2.0 * width)
        if b > 0.0 and (
            bounded_ceiling(b, n, mean, m2, m3, m4) < each - SLACK
            or bounded_log_evidence(b, n, mean, m2, m3, m4) < each - SLACK
        ):
            return seen
        end = told_difference(kind, bounded_lower(n, mean, m2, m3, m4, each))
    else:
        end = mean - moment_radius(kind.code, n, m2, kind.pair_sd, level)
    return end if end > tolerance or seen < -reach <= end else seen


@kernel(inline="never")
def best_bound(
    kind: Kind,
    n: float,
    mean: float,
    m2: float,
    m3: float,
    m4: float,
    level: float,
    limit: float,
    side: int,
    seen: float,
) -> float:
    """The lower (side 0) or upper bound of an arm's mean if it shows that it is on that side of the limit.

    Else `seen`, the best one so far. Each bound fails with probability ≤ exp(−level).
    """
    if n < 2.0 or (seen >= limit if side == 0 else seen < limit):
        return seen
    if kind.code >= BOUNDED:
        b = (limit - kind.low) / (kind.high - kind.low)
        if side == 1:
            b, mean, m3 = 1.0 - b, 1.0 - mean, -m3
        if b > mean or (
            b > 0.0
            and (
                bounded_ceiling(b, n, mean, m2, m3, m4) < level - SLACK
                or bounded_log_evidence(b, n, mean, m2, m3, m4) < level - SLACK
            )
        ):
            return seen
        end = bounded_lower(n, mean, m2, m3, m4, level)
        end = told_mean(kind, end if side == 0 else 1.0 - end)
    else:
        radius = moment_radius(kind.code, n, m2, kind.sd, one_sided_level(level))
        end = mean - radius if side == 0 else mean + radius
    return end if (end >= limit if side == 0 else end < limit) else seen
