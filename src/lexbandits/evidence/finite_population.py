"""Evidence about the mean of a list of N values that are seen in a random order, each once.

Against "the list's mean is x" the next value is expected at m = (N·x − sum so far)/(values left), and stakes
grow as the list is used up. At the end the mean is known. Waudby-Smith and Ramdas (2020, *NeurIPS* 33) on
sampling without replacement, and (2024, *JRSS B* 86) by betting. docs/proofs.md, section 8.
"""

import math

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.gaussian import gaussian_log_evidence, gaussian_radius

BOLDEST, RATIO = 3.0, 1.7  # stakes, of values in [0, 1], and how they fall down to 1/√N
LIKING = 0.75  # weights are in proportion to this power of the stakes
BOLD_RISK, RISK = 0.95, 0.7  # of the wealth, in one bet: of the boldest stake, and of the others
GUARD = 1e-9  # of the range: rounding never decides a tie
NOTHING = 1e-290  # wealth below it is none
MOST_LEVEL = 690.0  # products stay finite; above it arithmetic alone decides
PARTS, ROUNDS = 8, 6  # in which the end of an interval is looked for,
FINE = 0.02  # to this share of its distance from the mean
MANY, NEAR = 1000, 3.0  # from so many values on only by stakes within this factor of what would be best


def stakes(n_items: int) -> tuple[Vector, Vector, Vector]:
    """The stakes for a list, the boldest first, their weights, and what each may risk in one bet."""
    least = 1.0 / math.sqrt(n_items)
    number = max(1, math.ceil(math.log(BOLDEST / least) / math.log(RATIO)) + 1)
    etas = BOLDEST / RATIO ** np.arange(number, dtype=np.float64)
    weights = etas**LIKING
    risks = np.full(number, RISK)
    risks[0] = BOLD_RISK
    return etas, weights / weights.sum(), risks


def product(n: int, x: float) -> tuple[float, float]:
    """n·x without rounding, as a sum of two numbers."""
    from fractions import Fraction

    if not math.isfinite(x):
        return x, 0.0
    whole = Fraction(x) * n
    high = float(whole)
    return high, float(whole - Fraction(high))


@kernel
def add(total: float, rest: float, value: float) -> tuple[float, float]:
    """A sum and what rounding took from it (Neumaier 1974), with one more value."""
    new = total + value
    if abs(total) >= abs(value):
        rest += (total - new) + value
    else:
        rest += (value - new) + total
    return new, rest


@kernel
def expected(goal: float, goal_rest: float, total: float, rest: float, left: float) -> float:
    """What the next value is expected at if the list's sum is the goal; never below 0."""
    return max(0.0, ((goal - total) + (goal_rest - rest)) / left)


@kernel
def bet(
    wealth: Vector, etas: Vector, risks: Vector, growth: float, first: int, m: float, value: float
) -> float:
    """Bet in column `first` of (stakes, tests) that a value exceeds m; what all stakes are worth then."""
    worth = 0.0
    cap = math.inf if m <= 0.0 else 1.0 / m
    gain = value - m
    for k in range(etas.size):
        now = wealth[k, first] * (1.0 + min(etas[k] * growth, risks[k] * cap) * gain)
        if now < NOTHING:
            now = 0.0
        wealth[k, first] = now
        worth += now
    return worth


@kernel
def list_size(n: float, n_items: float) -> float:
    """How many values of a population n of a list are worth."""
    return n * (n_items / (n_items - n))


@kernel(inline="never")
def lower_end(
    values: Vector, n_items: int, since: int, etas: Vector, weights: Vector, risks: Vector, level: float
) -> float:
    """The largest x found that values in [0, 1], the first of a list, refute as its mean from below.

    It misses with probability ≤ exp(−level), at all lengths at once. Nine parts at a time, as wealth falls in
    x, first where a normal list would have the end; and what some of the stakes refute all of them do.
    """
    n = values.size
    total = rest = squares = 0.0
    for t in range(n):
        total, rest = add(total, rest, values[t])
        squares += values[t] * values[t]
    low = (total + rest) / n_items
    if n == n_items or n <= since or level > MOST_LEVEL:
        return low
    high = (total + rest + (n_items - n)) / n_items
    mean = (total + rest) / n
    spread = max(squares / n - mean * mean, 1.0 / n)
    gap = math.sqrt(2.0 * (level + 1.0) * spread / list_size(float(n), float(n_items)))
    # Every stake alone is a supermartingale with its weight, so leaving some out is safe: it only shows less.
    if n >= MANY:
        first, last = 0, etas.size
        while last - first > 1 and etas[first + 1] > NEAR * gap / spread:
            first += 1
        while last - first > 1 and etas[last - 2] < gap / spread / NEAR:
            last -= 1
        etas, weights, risks = etas[first:last], weights[first:last], risks[first:last]
    start, end = max(low, mean - 2.0 * gap), min(high, mean - 0.5 * gap)
    enough = math.exp(level)
    xs, gains, caps, worth = np.empty(PARTS), np.empty(PARTS), np.empty(PARTS), np.empty(PARTS)
    wealth = np.empty((etas.size, PARTS))
    seen = np.empty(PARTS, np.bool_)
    for number in range(ROUNDS):
        if number > 0 or start >= end:
            start, end = low, high
        for j in range(PARTS):
            xs[j] = start + (end - start) * (j + 1) / (PARTS + 1)
            seen[j] = False
            for k in range(etas.size):
                wealth[k, j] = weights[k]
        total = rest = 0.0
        for t in range(n):
            left = float(n_items - t)
            if t >= since:
                for j in range(PARTS):
                    m = max(0.0, ((n_items * xs[j] - total) - rest) / left)
                    caps[j] = 1.0 / m if m > 0.0 else math.inf
                    gains[j] = 0.0 if seen[j] else values[t] - m
                    worth[j] = 0.0
                for k in range(etas.size):
                    stake, risk = etas[k] * (n_items / left), risks[k]
                    for j in range(PARTS):
                        wealth[k, j] *= 1.0 + min(stake, risk * caps[j]) * gains[j]
                        worth[j] += wealth[k, j]
                for j in range(PARTS):
                    seen[j] |= worth[j] >= enough * (1.0 + GUARD)
            total, rest = add(total, rest, values[t])
        known = 0
        while known < PARTS and seen[known]:
            known += 1
        if known < PARTS:
            high = xs[known]
        if known > 0:
            low = xs[known - 1]
        if high - low <= FINE * gap:
            break
    return low


@kernel
def finite_radius(n: float, n_items: float, squares: float, level: float) -> float:
    """Half the width of an interval for the mean of a list of normal values, n of them known."""
    if n >= n_items:
        return 0.0
    return gaussian_radius(n, squares, level, list_size(n, n_items))


@kernel
def finite_log_evidence(
    n: float, n_items: float, mean: float, squares: float, x: float, prior: float
) -> float:
    """log E(x) against the list's mean x, of normal values; n < n_items."""
    return gaussian_log_evidence(n, mean, squares, x, prior, list_size(n, n_items))
