"""The characteristic time against its definition, evaluated naively, and against what is known of it."""

import math
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, minimize, nnls

import lexbandits as lb
from lexbandits import Instance, characteristic_time, paper_instance, random_instance, sample_lower_bound
from lexbandits.theory import lower_bound
from lexbandits.theory.alternatives import Problem, cost, costs_of_moves, descend, least_possible, refute
from lexbandits.theory.cones import cones_of, leave, leave_nearest


def selector_cones(m, lam):
    """Every {A d >= 0} in the union C_λ."""
    for selector in product(*(range(i) for i in range(1, m))):
        A = np.eye(m)
        for i, j in enumerate(selector, start=1):
            A[i, j] += lam
        yield A


def distance_to_polyhedron(G, y):
    """From y to {z: G z >= 0}: by Moreau's theorem the length of y's projection on the polar cone."""
    return np.linalg.norm(G.T @ nnls(G.T, -y, maxiter=10_000)[0])


def naive_cost(means, sds, lam, w, b):
    """The cheapest alternative in which b is λ-lex-optimal: one quadratic program in all K·m means for
    every way of choosing a cone for every arm."""
    K, m = means.shape
    others = [a for a in range(K) if a != b]
    scale = np.sqrt(w[:, None]) / sds  # z = scale·ν
    least = math.inf
    for choice in product(list(selector_cones(m, lam)), repeat=K - 1):
        rows = []
        for a, A in zip(others, choice, strict=True):
            for face in A:
                row = np.zeros((K, m))
                row[b] = face / scale[b]
                row[a] = -face / scale[a]
                rows.append(row.ravel() / np.linalg.norm(row))
        least = min(least, distance_to_polyhedron(np.array(rows), (means * scale).ravel()) ** 2 / 2)
    return least


def naive_rate(instance, lam, w):
    star = instance.lex_optimal_arm
    rivals = [b for b in range(instance.n_arms) if b != star]
    return min(naive_cost(instance.means, instance.noise_sds, lam, w, b) for b in rivals)


def classical_time(means, sd):
    """Garivier & Kaufmann (2016), Theorem 5, for Gaussian rewards: F(y) = 1 by bisection."""
    means = np.sort(means)[::-1]
    information = (means[0] - means[1:]) ** 2 / (2 * sd**2)

    def ratios(y):
        return y / (information - y)

    y = brentq(
        lambda y: (ratios(y) ** 2).sum() - 1, 0, information.min() * (1 - 1e-12), xtol=1e-300, rtol=1e-14
    )
    return (1 + ratios(y).sum()) / y


def contains(result, value, slack=1e-7):
    return result.low * (1 - slack) <= value <= result.high * (1 + slack)


@pytest.mark.parametrize(
    ("K", "low", "high"), [(10, 129.00, 129.82), (20, 450.97, 454.20), (30, 996.35, 1001.53)]
)
def test_the_papers_instance_has_the_time_found_before_by_another_program(K, low, high):
    result = characteristic_time(paper_instance(K), 2.0)
    assert result.certified
    assert result.low <= high
    assert result.high >= low
    assert result.high <= 1.01 * result.low
    assert result.weights.sum() == pytest.approx(1)
    assert (result.weights > 0).all()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("K", "m", "lam", "seed"),
    [
        (2, 2, 1.0, 0),
        (3, 2, 0.5, 1),
        (4, 2, 2.0, 2),
        (3, 3, 0.0, 3),
        (4, 3, 2.0, 4),
        (5, 3, 0.7, 5),
        (3, 4, 1.5, 6),
    ],
)
def test_the_interval_holds_for_the_definition_evaluated_naively(K, m, lam, seed):
    rng = np.random.default_rng(seed)
    sds = rng.uniform(0.3, 3, m)
    instance = random_instance(K, m, seed=seed, max_tradeoff=lam, noise_sd=sds)
    result = characteristic_time(instance, lam)
    assert result.certified
    assert result.high <= 1.01 * result.low
    assert naive_rate(instance, lam, result.weights) >= (1 - 1e-7) / result.high
    for _ in range(8):  # nearby weights and far ones: none does better than `low` allows
        w = 0.7 * result.weights + 0.3 * rng.dirichlet(np.ones(K))
        assert naive_rate(instance, lam, w) <= (1 + 1e-7) / result.low


def test_the_interval_holds_the_maximum_over_weights_found_by_a_simplex_search():
    instance = random_instance(3, 3, seed=8, max_tradeoff=1.0)
    result = characteristic_time(instance, 1.0)

    def negative(logits):
        w = np.exp(logits - logits.max())
        return -naive_rate(instance, 1.0, w / w.sum())

    found = minimize(negative, np.zeros(3), method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-9})
    assert contains(result, -1 / found.fun, slack=1e-4)


def test_the_cones_are_the_definition_of_the_trade_off():
    """General-purpose optimisation under Eq. (2) as it is written, the maximum inside the constraint."""
    rng = np.random.default_rng(0)
    lam, K, m = 1.0, 3, 3
    instance = random_instance(K, m, seed=11, ties=False, max_tradeoff=lam)
    result = characteristic_time(instance, lam)
    mu, w, star = instance.means, result.weights, instance.lex_optimal_arm
    least = math.inf
    for b in {0, 1, 2} - {star}:

        def slack(flat, b=b):
            d = flat.reshape(K, m)[b] - np.delete(flat.reshape(K, m), b, axis=0)
            return np.concatenate([d[:, 0]] + [d[:, i] + lam * d[:, :i].max(axis=1) for i in (1, 2)])

        for _ in range(25):
            found = minimize(
                lambda flat: 100 * (w[:, None] * (flat.reshape(K, m) - mu) ** 2 / 2).sum(),
                (mu + rng.normal(scale=0.5, size=mu.shape)).ravel(),
                constraints={"type": "ineq", "fun": slack},
                method="SLSQP",
                options={"ftol": 1e-12, "maxiter": 300},
            )
            if found.success and slack(found.x).min() > -1e-9:
                least = min(least, found.fun / 100)
    assert 1 / least == pytest.approx(1 / naive_rate(instance, lam, w), rel=1e-4)
    assert least >= (1 - 1e-6) / result.high


@pytest.mark.interpreted
@given(st.integers(1, 4), st.floats(0, 20), st.integers(0, 10**6))
def test_projections_are_those_of_a_general_solver(m, lam, seed):
    rng = np.random.default_rng(seed)
    sds = np.exp(rng.normal(size=m))
    cones = cones_of(lam, sds)
    residual, y = np.empty(m), rng.normal(size=m)
    distances = []
    selectors = list(selector_cones(m, lam)) if lam > 0 else [np.eye(m)]
    for cone, A in enumerate(selectors):
        leave(cones, cone, y, residual)
        distances.append(np.linalg.norm(residual))
        whitened = A * sds / np.linalg.norm(A * sds, axis=1, keepdims=True)
        assert distances[-1] == pytest.approx(distance_to_polyhedron(whitened, y), rel=1e-6, abs=1e-8)
    leave_nearest(cones, y, residual)
    assert np.linalg.norm(residual) == pytest.approx(min(distances), abs=1e-12)

    # The hull: the nearest point of the convex cone spanned by the edges of all the cones.
    edges = np.concatenate([(np.linalg.inv(A) / sds[:, None]).T for A in selectors])
    edges /= np.linalg.norm(edges, axis=1, keepdims=True)
    leave(cones, len(selectors), y, residual)
    assert np.linalg.norm(residual) == pytest.approx(nnls(edges.T, y, maxiter=10_000)[1], rel=1e-6, abs=1e-7)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(20))
def test_branch_and_bound_finds_what_is_below_a_threshold_and_proves_what_is_not(seed):
    rng = np.random.default_rng(seed)
    K, m, lam = (4, 3, float(rng.uniform(0.2, 3))) if seed % 4 else (3, 4, float(rng.uniform(0.2, 3)))
    means, w = rng.normal(size=(K, m)), rng.dirichlet(np.ones(K))
    problem = Problem(means, cones_of(lam, np.ones(m)))
    for b in range(K):
        truth = naive_cost(means, np.ones(m), lam, w, b)
        if truth < 1e-12:
            continue
        start = means[b] + rng.normal(size=m)
        proved, value, _ = refute(problem, w, b, 0.9999 * truth, 10_000, start.copy())
        assert 0.9999 * truth <= proved <= truth * (1 + 1e-7)
        assert value == math.inf
        proved, value, _ = refute(problem, w, b, 1.0001 * truth, 10_000, start)
        assert proved == -math.inf
        assert truth * (1 - 1e-7) <= value < 1.0001 * truth
        costs = np.empty(K)
        costs_of_moves(problem, b, start, costs)
        assert costs @ w == pytest.approx(value)


@pytest.mark.interpreted
@pytest.mark.parametrize("seed", range(5))
def test_a_relaxation_is_bounded_from_wherever_the_descent_stands(seed):
    rng = np.random.default_rng(seed)
    means, w = rng.normal(size=(5, 3)), rng.dirichlet(np.ones(5))
    problem = Problem(means, cones_of(1.0, np.ones(3)))
    hull, x = np.full(5, len(problem.cones.normals) - 1), rng.normal(size=3)
    gradient, hessian = np.empty(3), np.empty((3, 3))
    value = cost(problem, w, 2, hull, x, gradient, hessian)
    least, bound = descend(problem, w, 2, hull, x.copy())
    assert least_possible(value, gradient, w[2]) <= least * (1 + 1e-9) < value
    assert least * (1 - 1e-9) <= bound <= least
    for k in range(3):  # the gradient is that of the value
        step = 1e-6 * np.eye(3)[k]
        sides = [cost(problem, w, 2, hull, x + s, np.empty(3), hessian) for s in (step, -step)]
        assert gradient[k] == pytest.approx((sides[0] - sides[1]) / 2e-6, rel=1e-4, abs=1e-6)


@pytest.mark.interpreted
@settings(max_examples=40)
@given(st.integers(2, 9), st.integers(0, 10**6), st.floats(0.1, 5))
def test_one_objective_has_the_classical_time(K, seed, sd):
    means = np.random.default_rng(seed).choice(1000, size=K, replace=False) / 1000
    result = characteristic_time(Instance(means[:, None], noise_sd=sd))
    assert contains(result, classical_time(means, sd))


def test_two_arms_have_a_time_in_closed_form():
    assert contains(characteristic_time(Instance([[1.0], [0.5]], noise_sd=2.0)), 8 * 2.0**2 / 0.5**2)
    # One tie: d² + λd¹ >= 0 must be reached from (0, −1/2), at distance 1/2/sqrt(1 + λ²).
    tied = Instance([[1.0, 1.0], [1.0, 0.5]])
    assert contains(characteristic_time(tied, 3.0), 8 * (1 + 3.0**2) / 0.5**2)


@pytest.mark.parametrize("m", [2, 3, 4])
def test_a_large_trade_off_leaves_the_first_objective_alone(m):
    instance = random_instance(6, m, seed=m + 10, ties=False, max_tradeoff=2.0)
    alone = classical_time(instance.means[:, 0], 1.0)
    assert characteristic_time(instance, 2.0).high < alone
    result = characteristic_time(instance, 1e8)
    assert result.certified
    assert contains(result, alone)


def test_a_large_trade_off_makes_the_time_of_a_tie_grow_without_bound():
    lower = [characteristic_time(paper_instance(10), lam).low for lam in (1e2, 1e4, 1e6, 1e9)]
    assert lower == sorted(lower)
    assert lower[-1] > 1e18


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_a_larger_trade_off_never_makes_it_easier(seed):
    instance = random_instance(5, 3, seed=seed, max_tradeoff=1.0)
    times = [characteristic_time(instance, lam, relative_gap=0.001) for lam in (1.0, 1.1, 2.0, 10.0)]
    assert all(before.low <= after.high for before, after in pairwise(times))


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.sampled_from([(6, 3), (5, 4), (12, 2)]))
def test_permuting_the_arms_permutes_the_weights(seed, shape):
    instance = random_instance(*shape, seed=seed, max_tradeoff=1.0)
    order = np.random.default_rng(seed).permutation(shape[0])
    before = characteristic_time(instance, 1.0)
    after = characteristic_time(Instance(instance.means[order]), 1.0)
    assert before.low == pytest.approx(after.low, rel=1e-12)
    assert before.high == pytest.approx(after.high, rel=1e-12)
    np.testing.assert_allclose(after.weights, before.weights[order], rtol=1e-9)


def test_equal_arms_have_equal_weights():
    result = characteristic_time(Instance([[1, 1, 1], [1, 0, 1], [1, 1, 0], [1, 0, 1], [1, 0, 1]]), 1.0)
    assert result.weights[[3, 4]] == pytest.approx(result.weights[1], rel=1e-9)


@settings(max_examples=12)
@given(st.integers(0, 10**6), st.floats(0.01, 100))
def test_noise_and_units_scale_it_by_their_square(seed, factor):
    instance = random_instance(5, 3, seed=seed, max_tradeoff=1.0)
    time = characteristic_time(instance, 1.0)
    noisy = characteristic_time(Instance(instance.means, noise_sd=factor), 1.0)
    large = characteristic_time(Instance(instance.means * factor), 1.0 + 1e-9)
    assert noisy.low == pytest.approx(time.low * factor**2, rel=1e-2)
    assert noisy.high == pytest.approx(time.high * factor**2, rel=1e-2)
    assert large.low * factor**2 == pytest.approx(time.low, rel=1e-2)


def test_without_a_trade_off_every_objective_has_its_own_unit():
    instance = random_instance(6, 3, seed=2, max_tradeoff=0.0)
    time = characteristic_time(instance, 0.0)
    units = np.array([1.0, 100.0, 0.01])
    other = characteristic_time(Instance(instance.means * units, noise_sd=units), 0.0)
    assert other.low == pytest.approx(time.low, rel=1e-2)
    assert other.high == pytest.approx(time.high, rel=1e-2)


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_an_objective_added_at_no_trade_off_never_makes_it_harder(seed):
    means = random_instance(6, 4, seed=seed, ties=False, max_tradeoff=0.0).means
    times = [characteristic_time(Instance(means[:, :m]), 0.0, relative_gap=0.001) for m in (1, 2, 3, 4)]
    assert all(fewer.high >= more.low for fewer, more in pairwise(times))


def test_the_interval_closes_as_far_as_asked():
    widths = [characteristic_time(paper_instance(10), relative_gap=gap) for gap in (0.5, 0.01, 1e-4, 1e-6)]
    for result, gap in zip(widths, (0.5, 0.01, 1e-4, 1e-6), strict=True):
        assert result.certified
        assert result.low <= widths[-1].high
        assert widths[-1].low <= result.high <= result.low * (1 + gap) * (1 + 1e-12)


@pytest.mark.parametrize(("K", "m", "lam"), [(100, 3, 0.5), (100, 4, 2.0), (30, 4, 0.5)])
def test_a_hundred_arms_and_four_objectives_are_certified(K, m, lam):
    result = characteristic_time(random_instance(K, m, seed=1, ties=False, max_tradeoff=lam), lam)
    assert result.certified
    assert result.high <= 1.01 * result.low


def test_what_is_not_proved_is_not_called_certified(monkeypatch):
    truth = characteristic_time(paper_instance(10))
    monkeypatch.setattr(lower_bound, "MAX_NODES", 12)
    result = characteristic_time(paper_instance(10))
    assert not result.certified
    assert result.low <= truth.high
    assert result.high >= truth.low


def test_an_interval_cut_short_still_holds(monkeypatch):
    truth = characteristic_time(paper_instance(10))
    monkeypatch.setattr(lower_bound, "MAX_ROUNDS", 3)
    result = characteristic_time(paper_instance(10))
    assert result.high > 1.01 * result.low
    assert result.certified
    assert result.low <= truth.low
    assert result.high >= truth.high


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-100])
def test_a_gap_however_small_leaves_it_finite(gap):
    result = characteristic_time(Instance([[1, 1, 0], [1, 1, -gap], [0, 1, 2]]), 2.0)
    assert result.certified
    # the two arms alone: the nearest face is d³ + λd¹ >= 0 or d³ + λd² >= 0, at distance gap/sqrt(5)
    assert contains(result, 40 / gap**2, slack=0.02)


@pytest.mark.interpreted
def test_a_tie_on_every_objective_makes_it_infinite():
    result = characteristic_time(Instance([[1, 2], [1, 2], [0, 1]]))
    assert (result.low, result.high, result.certified) == (math.inf, math.inf, True)
    assert result.weights.sum() == pytest.approx(1)


def test_one_arm_needs_no_pull():
    low, high, weights, certified = characteristic_time(Instance([[1, 2, 3]]))
    assert (low, high, weights.tolist(), certified) == (0, 0, [1.0], True)


def test_a_tie_within_a_tolerance_is_not_exact():
    harmless = Instance([[1.0, 1.0], [0.5, 0.0]], tie_tolerance=0.1)
    assert characteristic_time(harmless, 1.0).certified
    with pytest.raises(ValueError, match="ties that are exact"):
        characteristic_time(Instance([[1.0, 1.0], [1.05, 0.0]], tie_tolerance=0.1))


@pytest.mark.parametrize(
    ("instance", "arguments", "error", "message"),
    [
        (paper_instance(10), {"tradeoff": 1.5}, ValueError, r"at least 2\.0, .*least λ, got 1\.5"),
        (paper_instance(10), {"tradeoff": -1.0}, ValueError, "tradeoff must be at least 0, got -1"),
        (paper_instance(10), {"tradeoff": math.inf}, ValueError, "tradeoff must be finite"),
        (paper_instance(10), {"tradeoff": math.nan}, ValueError, "tradeoff must be finite"),
        (paper_instance(10), {"tradeoff": "2"}, TypeError, "tradeoff must be a number"),
        (
            paper_instance(10),
            {"relative_gap": 0.0},
            ValueError,
            "relative_gap must be strictly between 0 and 1, got 0",
        ),
        (paper_instance(10), {"relative_gap": 1.0}, ValueError, "relative_gap must be"),
        (paper_instance(10), {"relative_gap": math.nan}, ValueError, "relative_gap must be"),
        (paper_instance(10), {"relative_gap": "1%"}, TypeError, "relative_gap must be a number"),
        ([[1.0], [0.0]], {}, TypeError, "instance must be an Instance"),
        (
            Instance([[0.6], [0.5]], noise="bernoulli"),
            {},
            ValueError,
            "gaussian noise, got noise='bernoulli'; give Instance",
        ),
        (  # no variance at all, and no division by it
            Instance([[1, 1], [1, 0], [0, 1]], noise="bernoulli"),
            {},
            ValueError,
            "gaussian noise, got noise='bernoulli'; give Instance",
        ),
        (
            Instance([[1, 1], [0, 0]], correlation=[[1, 0.5], [0.5, 1]]),
            {},
            ValueError,
            "independent objectives",
        ),
        (Instance([[1] * 7, [0] * 7]), {}, ValueError, "at most 6 objectives, got 7"),
    ],
)
def test_bad_input_is_refused_with_the_value_given(instance, arguments, error, message):
    with pytest.raises(error, match=message):
        characteristic_time(instance, **arguments)


def test_the_bound_on_samples_is_the_relative_entropy_times_the_time():
    for delta in (0.001, 0.01, 0.1, 0.4):
        entropy = delta * math.log(delta / (1 - delta)) + (1 - delta) * math.log((1 - delta) / delta)
        assert sample_lower_bound(7.0, delta) == pytest.approx(7.0 * entropy)
    assert sample_lower_bound(math.inf, 0.1) == math.inf
    assert sample_lower_bound(math.inf, 0.5) == sample_lower_bound(7.0, 0.9) == 0


@pytest.mark.parametrize(
    ("time", "delta", "error"),
    [
        (-1.0, 0.1, ValueError),
        (math.nan, 0.1, ValueError),
        (1.0, 0.0, ValueError),
        (1.0, 1.0, ValueError),
        (1.0, math.nan, ValueError),
        ("1", 0.1, TypeError),
        (1.0, None, TypeError),
    ],
)
def test_the_bound_on_samples_refuses_bad_input(time, delta, error):
    with pytest.raises(error, match="must be"):
        sample_lower_bound(time, delta)


def test_no_algorithm_that_is_right_beats_it():
    """LexElim-In errs with probability at most δ for this λ; its mean number of pulls stays above."""
    instance, delta = random_instance(4, 2, seed=3, max_tradeoff=1.0, noise_sd=0.1), 0.1
    bound = sample_lower_bound(characteristic_time(instance, 1.0).low, delta)
    policy = lb.LexElimIn(4, 2, delta=delta, tradeoff=1.0, noise_sd=0.1)
    runs = [lb.simulate(policy, instance, horizon=10**6, seed=0, replication=r) for r in range(20)]
    assert all(run.finished for run in runs)
    assert np.mean([run.rounds for run in runs]) >= bound


@pytest.mark.parametrize(("first", "second"), [(1.0, 1.0), (4.0, 1.0), (0.01, 2.0)])
def test_two_arms_have_a_least_cost_in_closed_form(first, second):
    # n_1·n_2/(n_1 + n_2)·Δ²/(2σ²) = 1 costs least where n_1/n_2 = sqrt(second/first)
    result = characteristic_time(Instance([[1.0], [0.5]]), prices=[first, second])
    assert contains(result, (math.sqrt(first) + math.sqrt(second)) ** 2 * 2 / 0.5**2)
    share = math.sqrt(second) / (math.sqrt(first) + math.sqrt(second))
    assert result.weights == pytest.approx([share, 1 - share], abs=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_prices_are_those_of_the_pulls(seed):
    rng = np.random.default_rng(seed)
    instance = random_instance(4, 3, seed=seed, max_tradeoff=2.0)
    prices = np.exp(rng.normal(size=4))
    result = characteristic_time(instance, 2.0, prices=prices)
    assert result.certified
    assert result.high <= 1.01 * result.low
    pulls = result.high * result.weights / (prices @ result.weights)
    assert naive_rate(instance, 2.0, pulls) >= 1 - 1e-7
    for _ in range(6):
        other = pulls * np.exp(rng.normal(scale=0.3, size=4))
        assert prices @ other / naive_rate(instance, 2.0, other) >= result.low * (1 - 1e-7)
    scaled = characteristic_time(instance, 2.0, prices=3 * prices)
    assert scaled.low == pytest.approx(3 * result.low, rel=0.01)
    plain, ones = characteristic_time(instance, 2.0), characteristic_time(instance, 2.0, prices=np.ones(4))
    assert plain[:2] == ones[:2]


def test_who_pays_for_regret_alone_comes_to_its_constant():
    """A price of regret, and hardly any for the best arm, which may then be pulled as often as one likes."""
    instance = random_instance(4, 3, seed=5, ties=False, max_tradeoff=1.0)
    least = lb.regret_constants(instance, 1.0)
    prices = instance.gaps[:, 0] + 1e-7 * (instance.gaps[:, 0] == 0)
    result = characteristic_time(instance, 1.0, prices=prices)
    assert least.low[0] <= result.high
    assert result.low <= 1.02 * least.high[0]


@pytest.mark.parametrize("prices", [[1.0, 2.0, 3.0], 1.0, [[1.0, 2.0]]])
def test_prices_are_one_per_arm(prices):
    with pytest.raises(ValueError, match="prices must be one positive number per arm, 2 of them"):
        characteristic_time(Instance([[1.0], [0.5]]), prices=prices)
    with pytest.raises(ValueError, match=r"prices\[1\] must be positive"):
        characteristic_time(Instance([[1.0], [0.5]]), prices=[1.0, 0.0])
