"""Evidence at pre-registered boundaries is what its page says; nobody gains where the truth is below."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexbandits.evidence.betting import (
    SHARES,
    STAKES,
    STEADY_SHARES,
    bet,
    caution_of,
    first_wealth,
    gaussian_bets,
    log_wealth,
    may_reach,
    moment_bets,
    stored_boundary,
    sub_gaussian_bets,
    unit_stake,
)
from lexbandits.evidence.kinds import spread_kinds
from lexbandits.evidence.moments import push_squares
from support.examples import up_to

UNIT, COIN = spread_kinds([["bounded", 0.0, 1.0, "steady"], "bernoulli"], 2)
KNOWN = {UNIT: (2, 0.02, 0.97), COIN: (4, 0.5, 0.9)}  # values and M2 before the first; the most a bet loses


def gamble(values, b, resolution, kind=UNIT):
    """Log wealth after stored differences: in the direction of the pair, and against it."""
    wealth = np.stack([np.tile(first_wealth([kind]), (1, 1, 2, 2, 1)), np.zeros((1, 1, 2, 2, 6))])
    n = mean = m2 = 0.0
    for z in values:
        unit = unit_stake(kind, n, m2, resolution / 2.0)
        bet(wealth, 0, 0, 1, b, unit, z, unit, 1.0 - z, n, caution_of(kind)[2])
        n, mean, m2 = push_squares(n, mean, m2, z)
    return log_wealth(wealth, 0, 0, 0, 1, b), log_wealth(wealth, 0, 0, 1, 1, b)


def plainly(values, b, resolution, kind=UNIT):
    """The same by sums of logarithms."""
    logs, (known, squares, risk) = np.log(STEADY_SHARES if kind is UNIT else SHARES), KNOWN[kind]
    for t, z in enumerate(values):
        spread = (np.var(values[:t]) * t if t else 0.0) + squares
        stakes = np.minimum(STAKES * (resolution / 2.0) / (spread / (t + known)), risk / b)
        logs = logs + np.log1p(stakes * (z - b))
    return np.logaddexp.reduce(logs)


@pytest.mark.parametrize("kind", [UNIT, COIN])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_wealth_beyond_all_bounds_is_kept_as_a_logarithm(kind, value):
    """Two thousand bets in one direction leave 1e±140 far behind."""
    values = np.full(2000, value)
    up, down = gamble(values, 0.45, 0.1, kind)
    assert up == pytest.approx(plainly(values, 0.45, 0.1, kind), rel=1e-9)
    assert down == pytest.approx(plainly(1.0 - values, 0.45, 0.1, kind), rel=1e-9)
    assert abs(up) > 5


@pytest.mark.parametrize("kind", [UNIT, COIN])
@pytest.mark.parametrize("b", [0.1, 0.45, 0.6, 0.95])
def test_at_the_boundary_wealth_is_1_on_average_and_below_it_less(b, kind):
    """Over all sequences of ten coins, whatever the stakes make of the past."""
    for p in (b, 0.8 * b):
        mean = sum(
            p ** sum(coins)
            * (1 - p) ** (10 - sum(coins))
            * math.exp(gamble(map(float, coins), b, 0.2, kind)[0])
            for coins in itertools.product([0, 1], repeat=10)
        )
        assert mean == pytest.approx(1.0) if p == b else mean < 1.0


def test_boundaries_at_the_ends_need_no_bets():
    assert gamble([0.5, 0.2], 0.0, 0.1)[0] == math.inf
    assert gamble([0.5, 0.2], 1.0, 0.1)[0] == -math.inf
    assert stored_boundary(UNIT, -1.0) == 0.0
    assert stored_boundary(UNIT, 0.1) == pytest.approx(0.55)


@given(
    st.sampled_from(["gaussian", ["sub_gaussian", 0.7], "finite_variance"]),
    st.integers(0, 3000),
    st.floats(-2, 2),
    st.floats(0, 500),
    st.floats(0.01, 2),
)
@settings(max_examples=up_to(300), deadline=None)
def test_what_is_not_weighed_could_not_be_enough(noise, n, lead, squares, resolution):
    kind = spread_kinds(noise, 1)[0]
    evidence = moment_bets(kind, n, lead, squares, resolution)
    assert may_reach(kind, n, lead, squares, evidence) or evidence <= 1e-9
    if lead > 0:
        assert moment_bets(kind, n, 0.9 * lead, squares, resolution) <= evidence + 1e-9, "it falls in c"
    if noise == "finite_variance" and n < 300:
        assert evidence == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("sign", [0.0, -0.3])
def test_evidence_from_moments_passes_a_level_as_rarely_as_it_says(sign):
    """Two thousand sequences of 200 with a mean at the boundary or below it, looked at after every value."""
    draws = sign + np.random.default_rng(4).standard_normal((2000, 200))
    n = np.arange(1, 201)
    means = draws.cumsum(axis=1) / n
    squares = (draws**2).cumsum(axis=1) - n * means**2
    for level in (1.0, 3.0):
        passed = dict.fromkeys(["gaussian", "sub_gaussian"], 0)
        for mean, m2 in zip(means.tolist(), squares.tolist(), strict=True):
            rows = list(zip(n.tolist(), mean, m2, strict=True))
            passed["gaussian"] += any(gaussian_bets(k, x, s) >= level for k, x, s in rows)
            passed["sub_gaussian"] += any(sub_gaussian_bets(k, x, 1.0, 0.5) >= level for k, x, _ in rows)
        for count in passed.values():
            share = 2000 * math.exp(-level)
            assert count <= share + 4 * math.sqrt(share)
