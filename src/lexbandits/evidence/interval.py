"""The interval of an arm or of a pair of arms on one objective, whatever the kind of its noise.

Moments are kept of *stored* values: those of a bounded kind are brought to [0, 1], an arm's v as
(v − lo)/(hi − lo), a pair's difference D as (D + R)/(2R) with R = hi − lo; all others are kept as
they are. What comes out is in the units of the values told.
"""

import math

from lexbandits.arrays import Vector
from lexbandits.evidence.bounded import bounded_interval, bounded_log_evidence, bounded_lower, bounded_upper
from lexbandits.evidence.finite_variance import LARGE_SAMPLE, finite_variance_radius
from lexbandits.evidence.gaussian import gaussian_log_evidence, gaussian_radius
from lexbandits.evidence.kinds import BOUNDED, EXACT, FINITE_VARIANCE, GAUSSIAN, SUB_GAUSSIAN, Kind
from lexbandits.evidence.radius import PRIOR, cost_of_time, spread_of_mean
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius
from lexbandits.jit import kernel


@kernel
def kind_at(rows: Vector, objective: int) -> Kind:
    """The kind of an objective from `kinds.kind_rows`."""
    row = rows[objective]
    return Kind(int(row[0]), row[1], row[2], row[3], row[4], row[5])


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
def symmetric_radius(code: int, n: float, m2: float, scale: float, level: float) -> float:
    """Half the width of the interval of a kind that is not bounded."""
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
    radius = symmetric_radius(code, n, m2, scale, level)
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
def arm_bounds(
    kind: Kind, n: float, mean: float, m2: float, m3: float, m4: float, level: float
) -> tuple[float, float]:
    """A lower and an upper bound of an arm's mean, each of which fails with probability ≤ exp(−level)."""
    if kind.code >= BOUNDED:
        low = bounded_lower(n, mean, m2, m3, m4, level)
        high = bounded_upper(n, mean, m2, m3, m4, level)
        return told_mean(kind, low), told_mean(kind, high)
    radius = symmetric_radius(kind.code, n, m2, kind.sd, one_sided_level(level))
    return mean - radius, mean + radius


@kernel
def worth_looking(
    kind: Kind,
    n: float,
    mean: float,
    m2: float,
    level: float,
    tolerance: float,
    reach: float,
    seen_low: float,
    seen_high: float,
) -> bool:
    """Whether a pair's interval can show more than [seen_low, seen_high], the best ends seen so far.

    More is: the difference is above `tolerance`, below −`tolerance`, at most `reach` (tolerance +
    resolution) or at least −`reach`. An interval is never narrower (of bounded values: hardly narrower)
    than what costs no logarithm here. Not looking is always valid.
    """
    if kind.code == EXACT:
        return True
    exponent = 2.0 * level / n  # less than what `gaussian_radius` has there
    if kind.code >= BOUNDED:
        least = 2.0 * (kind.high - kind.low) * math.sqrt(exponent * (m2 / n))
    elif kind.code == SUB_GAUSSIAN:
        least = kind.pair_sd * math.sqrt(exponent * (n + PRIOR) / n)
    else:
        growth = exponent + 0.5 * exponent * exponent
        left = n - PRIOR * growth
        if left <= 0.0:
            return False
        least = math.sqrt(m2 / n * growth * (n + PRIOR) / left)
    least *= 1.0 - 1e-12  # for rounding
    centre = told_difference(kind, mean)
    above, below = centre - least, centre + least
    return bool(
        (seen_low <= tolerance < above)
        or (seen_high >= -tolerance > below)
        or (seen_high > reach >= below)
        or (seen_low < -reach <= above)
    )
