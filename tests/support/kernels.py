"""What follows from the package's kernels and only tests ask for."""

import numpy as np

from lexbandits._jit import entry, kernel
from lexbandits.evidence.bounded import bounded_lower, bounded_upper
from lexbandits.evidence.interval import moment_radius, told_mean
from lexbandits.evidence.kinds import BOUNDED
from lexbandits.evidence.sub_gaussian import one_sided_level
from lexbandits.evidence.tradeoff_cone import fill_levels, nearest_piece


@kernel
def arm_bounds(kind, n, mean, m2, m3, m4, level):
    """A lower and an upper bound of an arm's mean, each of which fails with probability ≤ exp(−level)."""
    if kind.code >= BOUNDED:
        low = bounded_lower(n, mean, m2, m3, m4, level)
        high = bounded_upper(n, mean, m2, m3, m4, level)
        return told_mean(kind, low), told_mean(kind, high)
    radius = moment_radius(kind.code, n, m2, kind.sd, one_sided_level(level))
    return mean - radius, mean + radius


@kernel
def project(x, weights, tradeoff, levels, nearest):
    """Fill `nearest` with the point of C_λ next to x; return the squared distance."""
    square, records = nearest_piece(x, weights, tradeoff, levels)
    pools = fill_levels(x, weights, tradeoff, records, levels)
    level = 0.0
    for i in range(x.size):
        if pools >> i & 1:
            level = max(levels[i], 0.0)
        nearest[i] = level if records >> i & 1 else max(x[i], -tradeoff * level)
    return square


def projected(x, weights, tradeoff):
    """Return the squared distance of x to C_λ and the nearest point, for callers that are not kernels."""
    nearest = np.empty(x.size)
    square = entry(project)(x, weights, float(tradeoff), np.empty(x.size), nearest)
    return float(square), nearest
