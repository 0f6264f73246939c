"""The interval of each kind of noise against slow oracles: raw data, exact fractions, integrals."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import norm

from lexbandits._jit import fused
from lexbandits.evidence import bounded
from lexbandits.evidence.bounded import (
    bounded_ceiling,
    bounded_interval,
    bounded_log_evidence,
    bounded_lower,
    bounded_upper,
)
from lexbandits.evidence.finite_variance import finite_variance_radius, one_value_dominates
from lexbandits.evidence.gaussian import gaussian_log_evidence, gaussian_radius
from lexbandits.evidence.moments import push, push_squares
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius
from support.examples import up_to

RHO = 30.0
LEVELS = [0.5, 2.0, 4.6, 6.4, 9.5, 14.0, 30.0]


def moments(values):
    """n, mean, M2, M3, M4 of raw values, in two passes."""
    values = np.asarray(values, dtype=np.float64)
    mean = math.fsum(values) / values.size
    return (float(values.size), mean, *(math.fsum((values - mean) ** p) for p in (2, 3, 4)))


def pushed(values):
    state = (0.0, 0.0, 0.0, 0.0, 0.0)
    for value in values:
        state = push(*state, float(value))
    return state


# --- running moments


@pytest.mark.interpreted
@given(st.lists(st.floats(-4, 4, width=16), min_size=1, max_size=60))
@settings(max_examples=up_to(100))
def test_pushed_moments_are_those_of_exact_fractions(values):
    exact = [Fraction(v) for v in values]
    mean = sum(exact) / len(exact)
    state = pushed(values)
    assert state[0] == len(values)
    assert state[1] == pytest.approx(float(mean), abs=1e-14)
    for power, m in zip((2, 3, 4), state[2:], strict=True):
        assert m == pytest.approx(float(sum((v - mean) ** power for v in exact)), abs=1e-10, rel=1e-12)
    short = (0.0, 0.0, 0.0)
    for value in values:
        short = push_squares(*short, value)
    assert short == state[:3]


def test_equal_values_have_no_spread_at_all():
    assert pushed([0.1] * 1000) == (1000.0, 0.1, 0.0, 0.0, 0.0)


# --- sub-Gaussian noise of known scale


@pytest.mark.interpreted
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [1, 2, 30, 1000])
def test_the_sub_gaussian_end_is_where_a_normal_mixture_of_stakes_reaches_the_level(n, level):
    scale = 0.7
    total = n * sub_gaussian_radius(n, scale, level) / scale

    def wealth(eta):  # ∫ exp(ηS − η²n/2) dN(0, 1/ρ), centred at its mode so that it does not overflow
        return math.exp(eta * total - eta * eta * n / 2 - level) * norm.pdf(eta, scale=RHO**-0.5)

    mode, width = total / (n + RHO), (n + RHO) ** -0.5
    found = quad(wealth, mode - 12 * width, mode + 12 * width, epsabs=0, epsrel=1e-11)[0]
    assert found == pytest.approx(1.0, rel=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("level", LEVELS)
def test_a_one_sided_end_is_where_the_half_mixture_may_reach_its_level(level):
    """E⁺ = 2E − E⁻ ≥ 2E − 1 reaches exp(level) where E is exp of the two-sided level."""
    assert 2 * math.exp(one_sided_level(level)) - 1 == pytest.approx(math.exp(level), rel=1e-12)
    assert one_sided_level(level) < level


def test_levels_and_counts_at_the_edge():
    assert sub_gaussian_radius(0, 1.0, 3.0) == math.inf
    assert 0 < sub_gaussian_radius(1e7, 1.0, 3.0) < 0.002
    assert one_sided_level(0.0) == 0.0
    assert one_sided_level(5000.0) == pytest.approx(5000 - math.log(2))


# --- Gaussian noise of unknown variance


@pytest.mark.parametrize("x", [-0.4, 0.1, 2.0])
@pytest.mark.parametrize("values", [[0.3, 1.1], [0.3, 1.1, -0.2], [5.0, 5.1, 4.8, 5.3]])
def test_gaussian_evidence_is_the_mixture_over_effects_and_scales(values, x):
    """∫∫ Π φ(y/s − η) s^(−n−1) ds N(dη; 0, 1/ρ) over the same integral with η = 0."""
    y, n = np.array(values) - x, len(values)

    log_s = 0.5 * math.log(float(y @ y) / n) + np.linspace(-4, 24, 3000)
    eta = np.linspace(-2, 2, 400)
    z = y[:, None, None] * np.exp(-log_s)[None, :, None] - eta
    mixed = np.exp(-n * log_s[:, None] - 0.5 * (z * z).sum(axis=0)) @ norm.pdf(eta, scale=RHO**-0.5)
    plain = np.exp(-n * log_s - 0.5 * float(y @ y) * np.exp(-2 * log_s))
    expected = math.log(mixed.sum() * (eta[1] - eta[0]) / plain.sum())
    n, mean, squares, *_ = moments(values)
    assert gaussian_log_evidence(n, mean, squares, x) == pytest.approx(expected, abs=1e-9)


@pytest.mark.interpreted
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n", [20, 24, 30, 37, 100, 10**4, 10**7])
def test_the_gaussian_end_is_where_its_evidence_reaches_the_level(n, level):
    mean, squares = -3.0, 0.02 * n
    radius = gaussian_radius(n, squares, level)
    if radius == math.inf:
        assert gaussian_log_evidence(n, mean, squares, 1e9) < level
    else:
        assert gaussian_log_evidence(n, mean, squares, mean - radius) == pytest.approx(level, rel=1e-7)
        assert gaussian_log_evidence(n, mean, squares, mean + radius * 0.999) < level
        assert gaussian_radius(n, 9 * squares, level) == pytest.approx(3 * radius, rel=1e-14)


@pytest.mark.interpreted
def test_when_the_gaussian_interval_begins():
    first = [next(n for n in range(99) if gaussian_radius(n, 1.0, v) < math.inf) for v in (4.6, 6.4, 9.5, 14)]
    assert first == [20, 24, 30, 37]
    for n in (0, 1, 2, 10**6):
        assert gaussian_radius(n, 0.0, 3.0) == math.inf  # all values equal
    assert gaussian_radius(2, 1.0, 1e6) == math.inf  # and expm1 does not overflow
    assert gaussian_radius(2, 1.0, 0.03) < math.inf  # exact from two values on
    assert gaussian_log_evidence(1, 0.3, 0.0, 5.0) == 0.0


@pytest.mark.interpreted
def test_known_and_unknown_variance_agree_when_there_are_many_values():
    for n in (10**5, 10**7):
        assert gaussian_radius(n, 4.0 * n, 6.4) == pytest.approx(sub_gaussian_radius(n, 2.0, 6.4), rel=2e-4)


# --- any finite variance, approximately


@pytest.mark.interpreted
def test_finite_variance_waits_for_a_large_sample():
    assert finite_variance_radius(299, 5.0, 4.0) == math.inf
    assert finite_variance_radius(300, 5.0, 4.0) == gaussian_radius(300, 5.0, 4.0) < math.inf


@pytest.mark.interpreted
def test_a_value_that_carries_a_quarter_of_the_squares_is_noticed():
    rng = np.random.default_rng(3)
    for n in (300, 1000):
        values = rng.normal(size=n)
        assert not one_value_dominates(*itertools.compress(moments(values), (1, 0, 1, 0, 1)))
        for _ in range(200):  # an outlier that carries just a quarter
            values = rng.normal(size=n) * rng.choice([1.0, 3.0], n)
            at = values.mean() + math.sqrt(((values - values.mean()) ** 2).sum() / 3 * 1.01) * (1 + 2 / n)
            values = np.append(values, at)
            shares = (values - values.mean()) ** 2 / ((values - values.mean()) ** 2).sum()
            assert shares.max() >= 0.25
            assert one_value_dominates(*itertools.compress(moments(values), (1, 0, 1, 0, 1)))
    assert not one_value_dominates(300.0, 0.0, 0.0)
    assert not one_value_dominates(299.0, 1.0, 1.0)


# --- values in [0, 1]: betting


def log_mean_exp(weights, logs):
    top = logs.max()
    return top + math.log(float(weights @ np.exp(logs - top)))


def mixture():
    """All stakes that matter and weights that sum to 1 over every k ≤ 16, the rest by an integral."""
    k = np.arange(-(10**5), 17)
    place = math.log(0.01 / 0.3) + k * math.log(1.7)
    raw = 1 / (1 + place**2)
    weights = raw / (raw.sum() - 1 / (math.log(1.7) * place[0]))
    used = slice(-120, None)
    return np.exp(place[used]) * 0.3, weights[used]


STAKES, WEIGHTS = mixture()


def wealth(x, values):
    """log Σ w Π(1 + l(X − x)), l = min(λ, 0.9/x), value by value."""
    stakes = np.minimum(STAKES, 0.9 / x)
    return log_mean_exp(WEIGHTS, np.log1p(np.outer(stakes, np.asarray(values) - x)).sum(axis=1))


def mirrored(state):
    n, mean, m2, m3, m4 = state
    return n, 1 - mean, m2, -m3, m4


DATA = {
    "coin": lambda rng, n: (rng.random(n) < 0.5) * 1.0,
    "rare": lambda rng, n: (rng.random(n) < 0.02) * 1.0,
    "usual": lambda rng, n: (rng.random(n) < 0.97) * 1.0,
    "beta": lambda rng, n: rng.beta(10, 30, n),
    "edges": lambda rng, n: rng.beta(0.2, 0.3, n),
    "uniform": lambda rng, n: rng.random(n),
    "narrow": lambda rng, n: 0.4 + 1e-4 * rng.random(n),
    "pair": lambda rng, n: 0.5 + 0.5 * ((rng.random(n) < 0.9) * 1.0 - (rng.random(n) < 0.85)),
    "equal": lambda rng, n: np.full(n, 0.3),
    "low": lambda rng, n: np.zeros(n),
    "high": lambda rng, n: np.ones(n),
}


def test_the_stakes_and_their_weights_are_those_of_the_mixture():
    used = bounded.STAKES.size
    assert np.log(bounded.STAKES) == pytest.approx(np.log(STAKES[-used:]), abs=1e-12)
    assert np.exp(bounded.LOG_WEIGHTS) == pytest.approx(WEIGHTS[-used:], rel=1e-6)
    assert np.exp(bounded.LOG_TAILS) == pytest.approx(np.cumsum(WEIGHTS[-used:][::-1])[::-1], rel=1e-6)
    assert 0.9 < WEIGHTS.sum() < 1


@pytest.mark.interpreted
@pytest.mark.parametrize("y", [0.0, 1e-9, 0.01, 0.05, 0.0799999, 0.08, 0.3, 0.6, 0.9])
def test_the_remainder_covers_the_series_it_stands_for(y):
    exact = math.fsum(y**j / (j + 4) for j in range(2000))  # every term positive: no cancellation
    assert exact * (1 - 1e-11) <= bounded._remainder(y) <= exact * (1 + 1e-7)


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 100, 1000, 20000])
def test_the_bound_is_never_above_the_wealth_and_close_to_it_where_it_matters(name, n):
    rng = np.random.default_rng([n, *name.encode()])
    values = DATA[name](rng, n)
    for data, state in ((values, moments(values)), (1 - values, mirrored(moments(values)))):
        sd = math.sqrt(state[2] / n) + 1 / math.sqrt(n)
        xs = np.concatenate(
            [rng.random(8), [1e-9, 1e-3, 1.0], state[1] + sd / math.sqrt(n) * rng.normal(size=12)]
        )
        for x in xs[(xs > 0) & (xs <= 1)]:
            bound, exact = bounded_log_evidence(x, *state), wealth(x, data)
            assert bound <= exact + 1e-9 * max(1.0, abs(exact)), (x, bound, exact)
            if n >= 1000 and name != "rare" and 1 < exact < 15:
                assert bound >= 0.95 * exact - 0.2, (x, bound, exact)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n", [3, 100, 20000])
def test_the_bound_is_the_sum_over_stakes_of_four_power_sums(name, n):
    rng = np.random.default_rng([n, *name.encode()])
    values = DATA[name](rng, n)
    used = np.count_nonzero(min(0.01, n**-0.5) < STAKES * (1 - 1e-12)) + 1
    for x in (0.01, 0.2, 0.31, 0.5, 0.9, 1.0):
        stakes = np.minimum(STAKES[-used:], 0.9 / x)
        s1, s2, s3, s4 = (math.fsum((values - x) ** p) for p in (1, 2, 3, 4))
        y = stakes * x
        series = np.array([math.fsum(v**j / (j + 4) for j in range(400)) for v in y])
        logs = stakes * s1 - stakes**2 * s2 / 2 + stakes**3 * s3 / 3 - stakes**4 * series * s4
        expected = log_mean_exp(WEIGHTS[-used:], logs)
        assert bounded_log_evidence(x, *moments(values)) == pytest.approx(expected, abs=1e-5, rel=1e-7)


def test_what_is_not_computed_would_not_have_been_enough():
    rng, near = np.random.default_rng(5), []
    for _ in range(4000):
        n, rare = int(10 ** rng.uniform(0.5, 4.0)), rng.uniform(0.0, 0.1, 2)
        values = [
            rng.random(n) < rng.random(),
            rng.beta(*rng.uniform(0.2, 5.0, 2), n),
            0.5 + 0.5 * (1.0 * (rng.random(n) < rare[0]) - (rng.random(n) < rare[1])),
            (rng.random(n) < 0.05) * rng.random(n),
        ][rng.integers(4)].astype(float)
        state = moments(values)
        x = state[1] - rng.uniform(0.0, 7.0) * math.sqrt(state[2]) / n
        evidence = bounded_log_evidence(x, *state) if 0.0 < x < state[1] else 0.0
        if evidence > 3.0:  # no level is lower
            near.append(bounded_ceiling(x, *state) - evidence)
    assert len(near) > 500
    assert min(near) >= 0.0
    assert np.median(near) < 3.0


@pytest.mark.interpreted
@pytest.mark.parametrize("p", [0.03, 0.3, 0.5, 0.9])
def test_on_average_over_every_sequence_of_ten_coins_the_bound_proves_nothing(p):
    """Σ P(sequence)·exp(LB(p)) ≤ 1, in both directions: more would not be evidence."""
    up = down = 0.0
    for heads in range(11):
        chance = math.comb(10, heads) * p**heads * (1 - p) ** (10 - heads)
        state = moments([1.0] * heads + [0.0] * (10 - heads))
        up += chance * math.exp(bounded_log_evidence(p, *state))
        down += chance * math.exp(bounded_log_evidence(1 - p, *mirrored(state)))
    assert 0.3 < up <= 1
    assert 0.3 < down <= 1


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("n", [2, 10, 100, 1000, 20000])
def test_bounded_ends_are_proven_by_the_raw_data_and_are_the_nearest_that_are(name, n):
    rng = np.random.default_rng([n, *name.encode()])
    values = DATA[name](rng, n)
    state = moments(values)
    for level in LEVELS:
        low, high = bounded_interval(*state, level)
        assert 0 <= low <= state[1] <= high <= 1
        for end, data, own in ((low, values, state), (1 - high, 1 - values, mirrored(state))):
            if end > 0:
                assert wealth(end, data) >= level + math.log(2) - 1e-9
            nearer = end + 0.005 * (own[1] - end)
            if nearer > 0.002 * own[1]:
                assert bounded_log_evidence(nearer, *own) < level + math.log(2)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", DATA)
def test_bounded_ends_move_outwards_with_the_level_and_inwards_with_the_data(name):
    rng = np.random.default_rng(2)
    values = DATA[name](rng, 200)
    state = moments(values)
    both = [bounded_interval(*state, level) for level in LEVELS]
    assert all(b[0] <= a[0] and a[1] <= b[1] for a, b in itertools.pairwise(both))
    low, high = bounded_interval(*(v * 4 if i != 1 else v for i, v in enumerate(state)), 6.4)
    assert both[3][0] <= low
    assert high <= both[3][1]
    for level in LEVELS:
        lower, upper = bounded_lower(*state, level), bounded_upper(*state, level)
        assert (lower, upper) == bounded_interval(*state, level - math.log(2))
        other = bounded_interval(*mirrored(state), level - math.log(2))
        assert other == pytest.approx((1 - upper, 1 - lower), abs=1e-12)


@pytest.mark.interpreted
def test_bounded_edges():
    assert bounded_interval(0.0, 0.0, 0.0, 0.0, 0.0, 3.0) == (0.0, 1.0)
    assert bounded_interval(*moments([0.4]), 3.0) == (0.0, 1.0)
    assert bounded_interval(*moments([0.4, 0.6]), 3.0) == (0.0, 1.0)
    low, high = bounded_interval(*moments([1.0] * 1000), 3.0)
    assert (0.98 < low < 1, high) == (True, 1.0)
    low, high = bounded_interval(*moments([0.0] * 1000), 3.0)
    assert (low, 0 < high < 0.02) == (0.0, True)
    low, high = bounded_interval(*moments([0.5] * 1000), 3.0)
    assert 0.49 < low < 0.5 < high < 0.51
    # a mean that rounding carried over a bound
    assert bounded_interval(1e3, 1 + 2e-16, 0.0, 0.0, 0.0, 3.0)[1] == 1.0
    assert bounded_interval(1e3, -2e-16, 0.0, 0.0, 0.0, 3.0)[0] == 0.0


@pytest.mark.interpreted
@pytest.mark.parametrize("p", [0.5, 0.03, 1e-4])
@pytest.mark.parametrize("n", [10**4, 10**7])
def test_the_bound_at_ten_million_coins(n, p):
    heads = round(p * n)
    p = heads / n
    squares = n * p * (1 - p)
    state = (float(n), p, squares, squares * (1 - 2 * p), squares * (1 - 3 * p * (1 - p)))
    for away in (0.5, 2.0, 4.0, 6.0):
        x = p - min(away * math.sqrt(squares) / n, 0.99 * p)
        stakes = np.minimum(STAKES, 0.9 / x)
        logs = heads * np.log1p(stakes * (1 - x)) + (n - heads) * np.log1p(-stakes * x)
        exact = log_mean_exp(WEIGHTS, logs)
        bound = bounded_log_evidence(x, *state)
        assert bound <= exact + 1e-6
        if exact > 3 and squares > 1e4:
            assert bound >= exact - 0.1
    low, high = bounded_interval(*state, 6.4)
    radius = sub_gaussian_radius(n, math.sqrt(p * (1 - p)), 6.4)
    if squares > 1e3:
        assert (high - low) / 2 == pytest.approx(radius, rel=0.06)


@fused
def push_again(values, times):
    n, mean, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for _ in range(times):
        for value in values:
            n, mean, m2, m3, m4 = push(n, mean, m2, m3, m4, value)
    return n, mean, m2, m3, m4


def test_ten_million_pushes_lose_nothing():
    values = np.tile([0.0, 1.0, 0.25, 1.0], 25)
    one = moments(values)
    exact = (10**5 * one[0], one[1], *(10**5 * m for m in one[2:]))
    assert push_again(values, 10**5) == pytest.approx(exact, rel=1e-10)
