"""Does an interval hold at all times at once, on the distributions that are hardest for it?

Seeds are fixed; were they not, each test would fail once in a billion times at a miss rate of exp(−level).
"""

import math

import numpy as np
import pytest
from scipy.stats import binom

from lexbandits._jit import fused
from lexbandits.evidence.interval import (
    arm_interval,
    pair_interval,
    stored_difference,
    stored_value,
)
from lexbandits.evidence.kinds import checked_kinds, spread_kinds
from lexbandits.evidence.moments import push
from support.kernels import arm_bounds

ALPHA = 0.2
LENGTH = 3000
SIZES = [400, pytest.param(5_000, marks=pytest.mark.slow)]


@fused
def missed_arm(kind, values, mean, level):
    """In how many rows the running interval ever misses the mean, and the lower or upper bound alone."""
    both = below = above = 0
    for run in range(values.shape[0]):
        n, centre, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
        look = 2
        out, over, under = False, False, False
        for t in range(values.shape[1]):
            n, centre, m2, m3, m4 = push(n, centre, m2, m3, m4, stored_value(kind, values[run, t]))
            if t + 1 == look:
                look += max(1, look // 50)
                low, high = arm_interval(kind, n, centre, m2, m3, m4, level)
                out = out or not low <= mean <= high
                low, high = arm_bounds(kind, n, centre, m2, m3, m4, level)
                over, under = over or low > mean, under or high < mean
        both, below, above = both + out, below + over, above + under
    return both, below, above


@fused
def missed_pair(kind, values, others, difference, level):
    """In how many rows the running interval of the paired differences ever misses."""
    missed = 0
    for run in range(values.shape[0]):
        n, centre, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
        look, out = 2, False
        for t in range(values.shape[1]):
            stored = stored_difference(kind, values[run, t], others[run, t])
            n, centre, m2, m3, m4 = push(n, centre, m2, m3, m4, stored)
            if t + 1 == look:
                look += max(1, look // 50)
                low, high = pair_interval(kind, n, centre, m2, m3, m4, level)
                out = out or not low <= difference <= high
        missed += out
    return missed


def kind_of(noise):
    return spread_kinds(checked_kinds(noise, None, 1), 1)[0]


def coin(p):
    return lambda rng, size: (rng.random(size) < p) * 1.0


def two_points(p):
    """Mean 0 and variance 1: −sqrt(p/(1−p)) mostly, sqrt((1−p)/p) with probability p."""
    return lambda rng, size: np.where(rng.random(size) < p, math.sqrt((1 - p) / p), -math.sqrt(p / (1 - p)))


ARMS = [
    (("sub_gaussian", 0.5), lambda rng, size: 2 + 0.5 * rng.normal(size=size), 2.0),
    (("sub_gaussian", 1.0), two_points(0.5), 0.0),
    ("gaussian", lambda rng, size: -1 + 1e-6 * rng.normal(size=size), -1.0),
    ("gaussian", lambda rng, size: 1e6 * rng.normal(size=size), 0.0),
    ("finite_variance", two_points(0.5), 0.0),
    ("finite_variance", lambda rng, size: rng.exponential(size=size), 1.0),
    ("bernoulli", coin(0.5), 0.5),
    ("bernoulli", coin(0.02), 0.02),
    ("bernoulli", coin(0.97), 0.97),
    ("bernoulli", lambda rng, size: rng.beta(0.1, 0.9, size), 0.1),
    (("bounded", -10, 0), lambda rng, size: -10 * rng.beta(10, 30, size), -2.5),
    (("bounded", 3, 5), lambda rng, size: 3 + 2 * coin(0.004)(rng, size), 3.008),
]


def at_most(missed, runs):
    assert missed <= binom.isf(1e-9, runs, ALPHA), f"{missed} of {runs}"


@pytest.mark.parametrize("runs", SIZES)
@pytest.mark.parametrize("case", range(len(ARMS)))
def test_intervals_and_bounds_of_an_arm_hold_at_all_times(case, runs):
    noise, draw, mean = ARMS[case]
    values = draw(np.random.default_rng(case), (runs, LENGTH))
    both, below, above = missed_arm(kind_of(noise), values, mean, math.log(1 / ALPHA))
    at_most(both, runs)
    at_most(below, runs)
    at_most(above, runs)
    assert both > 0  # an interval that never misses is too wide


def shared_coin(p, q):
    """Two arms judged on the same items: the worse one wins only where the better one does."""

    def draw(rng, size):
        luck = rng.random(size)
        return (luck < p) * 1.0, (luck < q) * 1.0

    return draw


def normal_pair(sd, other_sd, correlation):
    def draw(rng, size):
        z = rng.normal(size=size)
        w = correlation * z + math.sqrt(1 - correlation**2) * rng.normal(size=size)
        return 1 + sd * z, other_sd * w

    return draw


def drifting_pair(rng, size):
    drift = np.linspace(0, 50, size[1])
    return drift + 1 + rng.normal(size=size), drift + 3 * rng.normal(size=size)


PAIRS = [
    (("sub_gaussian", 1.0, "independent"), normal_pair(1, 1, 0.0), 1.0),
    (("sub_gaussian", 1.0), normal_pair(1, 1, -1.0), 1.0),
    ("gaussian", normal_pair(1, 10, 0.0), 1.0),
    ("gaussian", normal_pair(1, 1.1, 0.99), 1.0),
    ("gaussian", drifting_pair, 1.0),
    ("bernoulli", shared_coin(0.9, 0.85), 0.05),
    ("bernoulli", shared_coin(0.03, 0.03), 0.0),
    ("bernoulli", lambda rng, size: (coin(0.03)(rng, size), coin(0.02)(rng, size)), 0.01),
    (("bounded", -1, 3), lambda rng, size: (3 - 4 * coin(0.01)(rng, size), np.full(size, 3.0)), -0.04),
]


@pytest.mark.parametrize("runs", SIZES)
@pytest.mark.parametrize("case", range(len(PAIRS)))
def test_the_interval_of_a_pair_holds_at_all_times(case, runs):
    noise, draw, difference = PAIRS[case]
    values, others = draw(np.random.default_rng(100 + case), (runs, LENGTH))
    at_most(missed_pair(kind_of(noise), values, others, difference, math.log(1 / ALPHA)), runs)


WRONG = [
    ("gaussian", coin(0.02), 0.02, 0.01),
    ("gaussian", lambda rng, size: 1.02 ** np.arange(size[1]) * rng.normal(size=size), 0.0, 0.2),
    (("sub_gaussian", 0.5), lambda rng, size: rng.normal(size=size), 0.0, 0.2),
    ("finite_variance", lambda rng, size: rng.lognormal(-4.5, 3, size), 1.0, 0.2),
]


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_the_wrong_kind_of_noise_breaks_the_promise(case):
    """What docs/proofs.md warns of, and proof that the tests above can fail."""
    noise, draw, mean, alpha = WRONG[case]
    values = draw(np.random.default_rng(200 + case), (1000, 1500))
    assert missed_arm(kind_of(noise), values, mean, math.log(1 / alpha))[0] > binom.isf(1e-9, 1000, alpha)


def test_independent_is_a_promise():
    values, others = normal_pair(1, 1, -1.0)(np.random.default_rng(300), (600, LENGTH))
    missed = missed_pair(
        kind_of(("sub_gaussian", 1.0, "independent")), values, others, 1.0, math.log(1 / ALPHA)
    )
    assert missed > binom.isf(1e-9, 600, ALPHA)
