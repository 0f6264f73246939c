"""Differences that are symmetric about their mean, given the past: no normality, no bound, any variances.

Two evidences of one scale, the spread of the differences before. `bet_on_sign` serves a boundary that was
pre-registered; weighted sums serve every boundary at once, by de la Peña's inequality (1999, *Annals of
Probability* 27), E exp(ηD − η²D²/2) ≤ 1. docs/proofs.md, "Symmetric differences", has more references.
"""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.betting import BETS, BOUNDARY_PRIOR, STAKES, keep_logarithms
from lexbandits.evidence.mixture import log_mixture, mixture_ceiling
from lexbandits.evidence.moments import ROUNDING

FIRST_BET = 4.0  # differences that set a scale before anything is staked
CAUTION = 4.0  # a variance of n values is taken as larger by this over n: too small a scale ruins
LEAST_SPREAD = 0.02  # squared resolutions added to M2: values that are all equal have a scale, too
HIGHEST_STAKE = 1.5  # in standard deviations
MOST_RISK = 0.99  # of the wealth, in one bet
# Where a row of pairs keeps its sums, after n, mean and M2: the weights and the mean that they give, their
# squares and the mean that those give, and the sum of squares about it.
WEIGHTS, CENTRE, SQUARES, SQUARE_CENTRE, SPREAD = 3, 4, 5, 6, 7
DEPTH = 8
HALVINGS = 30


@kernel
def variance_so_far(n: float, m2: float, resolution: float) -> float:
    """The variance by which the next difference is scaled; 0 while there are too few."""
    if n < FIRST_BET:
        return 0.0
    return (m2 + LEAST_SPREAD * resolution * resolution) / (n - 1.0) * (1.0 + CAUTION / n)


@kernel
def odd_share(x: float) -> float:
    """MOST_RISK times tanh x, by the one exponential that both tiers have in common."""
    fall = math.exp(-2.0 * abs(x))
    size = MOST_RISK * (1.0 - fall) / (1.0 + fall)
    return size if x > 0.0 else 0.0 - size


@kernel
def beyond(difference: float, boundary: float, size: float) -> float:
    """How far a difference of two numbers as large as `size` exceeds a boundary; 0 if only by rounding."""
    gap = difference - boundary
    return 0.0 if abs(gap) <= ROUNDING * (size + abs(boundary)) else gap


@kernel
def bet_on_sign(
    wealth: Vector,
    row: int,
    i: int,
    claim: int,
    up: float,
    down: float,
    variance: float,
    resolution: float,
    n: float,
) -> None:
    """Bet on a − b, and on b − a, exceeding a boundary, which they do by `up` and by `down`.

    wealth is that of `betting.bet`; the variance is a function of earlier passes.
    """
    if variance <= 0.0:
        return
    # The best stake for a truth one resolution beyond the boundary is resolution/variance; the grid around it
    # covers truths that are farther off, and the cap keeps one outlier from taking the wealth.
    unit, most = resolution / variance, HIGHEST_STAKE / math.sqrt(variance)
    for g in range(STAKES.size):
        stake = min(STAKES[g] * unit, most)
        wealth[0, row, i, 0, claim, g] *= 1.0 + odd_share(stake * up)
        wealth[0, row, i, 1, claim, g] *= 1.0 + odd_share(stake * down)
    if int(n) % BETS == 0:
        keep_logarithms(wealth, row, i, claim)


@kernel
def push_scaled(pairs: Vector, row: int, i: int, difference: float, variance: float) -> None:
    """Add a difference to the weighted sums of a pair."""
    if variance <= 0.0:
        return
    weight, square = 1.0 / math.sqrt(variance), 1.0 / variance
    total = pairs[row, i, WEIGHTS] + weight
    pairs[row, i, WEIGHTS] = total
    pairs[row, i, CENTRE] += (difference - pairs[row, i, CENTRE]) * weight / total
    total = pairs[row, i, SQUARES] + square
    off = difference - pairs[row, i, SQUARE_CENTRE]
    pairs[row, i, SPREAD] += square * off * off * (pairs[row, i, SQUARES] / total)
    pairs[row, i, SQUARES] = total
    pairs[row, i, SQUARE_CENTRE] += off * square / total


@kernel
def scaled_sums(pairs: Vector, row: int, i: int) -> tuple[float, float, float, float, float]:
    """Weights, their mean, squared weights, their mean, and the sum of squares about it."""
    weights, centre, squares = pairs[row, i, WEIGHTS], pairs[row, i, CENTRE], pairs[row, i, SQUARES]
    return weights, centre, squares, pairs[row, i, SQUARE_CENTRE], pairs[row, i, SPREAD]


@kernel
def turned_sums(sums: tuple[float, float, float, float, float]) -> tuple[float, float, float, float, float]:
    """The sums of the negated differences."""
    return sums[0], 0.0 - sums[1], sums[2], 0.0 - sums[3], sums[4]


@kernel
def symmetric_log_evidence(sums: tuple[float, float, float, float, float], boundary: float) -> float:
    """Never above the log wealth of bets that the mean exceeds the boundary, which falls in the boundary.

    That wealth starts at 1 and is a supermartingale where the mean does not exceed it.
    """
    weights, centre, squares, square_centre, spread = sums
    off = square_centre - boundary
    variance = spread + squares * off * off
    return log_mixture(weights * (centre - boundary), variance, BOUNDARY_PRIOR)


@kernel
def symmetric_ceiling(sums: tuple[float, float, float, float, float], boundary: float) -> float:
    """A bound on the evidence that takes no logarithm."""
    weights, centre, squares, square_centre, spread = sums
    off = square_centre - boundary
    return mixture_ceiling(weights * (centre - boundary), spread + squares * off * off, BOUNDARY_PRIOR)


@kernel(inline="never")
def nearest_lower(sums: tuple[float, float, float, float, float], level: float, known: float) -> float:
    """A lower bound of the mean at that level, from `known`, which is one, up towards the centre."""
    low, high = known, sums[1]
    # Evidence falls in the boundary, so halving keeps `low` a point that has enough: valid wherever it stops.
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if symmetric_log_evidence(sums, middle) >= level:
            low = middle
        else:
            high = middle
    return low


@kernel(inline="never")
def symmetric_lower(sums: tuple[float, float, float, float, float], level: float) -> float:
    """A lower bound of the mean that fails with probability ≤ exp(−level), at all n at once.

    Any point with enough evidence is one. It looks farther out step by step; −∞ where nothing is found.
    """
    weights, centre, _, _, spread = sums
    if weights <= 0.0:
        return -math.inf
    distance = 0.5 * math.sqrt(level * (spread + BOUNDARY_PRIOR)) / weights
    for _ in range(HALVINGS):
        if symmetric_log_evidence(sums, centre - distance) >= level:
            return nearest_lower(sums, level, centre - distance)
        distance *= 1.3
    return -math.inf


@kernel(inline="never")
def best_symmetric_end(
    sums: tuple[float, float, float, float, float], level: float, tolerance: float, reach: float, seen: float
) -> float:
    """What `interval.best_lower_end` is for other kinds; the level is that of both ends."""
    boundary, each = -reach if seen < -reach else tolerance, level + math.log(2.0)
    if seen > tolerance or symmetric_ceiling(sums, boundary) < each:
        return seen
    if symmetric_log_evidence(sums, boundary) < each:
        return seen
    end = nearest_lower(sums, each, boundary)
    return end if end > tolerance or seen < -reach <= end else seen


@kernel(inline="never")
def symmetric_interval(sums: tuple[float, float, float, float, float], level: float) -> tuple[float, float]:
    """Both ends, which together miss with probability ≤ exp(−level), at all n at once."""
    each = level + math.log(2.0)
    return symmetric_lower(sums, each), -symmetric_lower(turned_sums(sums), each)
