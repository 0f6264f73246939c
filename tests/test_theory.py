"""The bounds of `lexbandits.theory`: every formula evaluated another way, and bad input named."""

import inspect
import math
from itertools import count, pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import binom

from lexbandits import Instance, paper_instance, random_instance, theory
from lexbandits.policies.lexelim_in import width_factors

BOUNDS = [
    theory.lexelim_out_pulls,
    theory.lexelim_in_pulls,
    theory.lexelim_out_regret,
    theory.lexelim_in_regret,
    theory.lexelim_out_samples,
    theory.lexelim_in_samples,
]
VERSIONS = ["printed", "proved"]

random_instances = st.builds(
    random_instance,
    st.integers(2, 5),
    st.integers(1, 4),
    seed=st.integers(0, 10**6),
    ties=st.booleans(),
    max_tradeoff=st.just(3),
)
noise_shapes = st.sampled_from([(1.0, 1.0, 1.0, 1.0), (1.0, 0.5, 2.0, 1.0), (0.25, 1.0, 0.5, 1.0)])


# --- formulas, evaluated another way


def scales(noise_sd, m):
    return [noise_sd] * m if np.ndim(noise_sd) == 0 else list(noise_sd)


def quarter_limits(lam, sigma):
    """The induction of Lemma 6 with one width per objective, from the thresholds t_i of the algorithm."""
    thresholds, quarters = [], []
    for i, s in enumerate(sigma):
        thresholds.append(2 * s + lam * max((thresholds[j] + 2 * sigma[j] for j in range(i)), default=0))
        quarters.append((thresholds[i] + 2 * s) / 4)
    return quarters


def last_level(gap, quarter, K, m, delta):
    """The largest n with Δ ≤ 4Λ·c(n), by doubling and bisection on integers; 0 if there is none."""

    def hidden(n):
        return gap <= 4 * quarter * math.sqrt(4 / n * math.log(6 * K * m * n / delta))

    if not hidden(1):
        return 0
    high = next(2**k for k in count(1) if not hidden(2**k))
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if hidden(middle) else (low, middle)
    return low


def slow_bounds(instance, delta, lam, noise_sd, version):
    """All six bounds, sum by sum as the paper writes them (printed) or as docs/errata.md does (proved)."""
    K, m = instance.means.shape
    gap, sigma = instance.gaps.tolist(), scales(noise_sd, instance.n_objectives)
    quarters = quarter_limits(lam, sigma)
    printed = version == "printed"

    def gamma(a, j):
        return 64 * math.log(392 * K * m * sigma[j] ** 2 / (gap[a][j] ** 2 * delta))

    def phase(a):
        return next((j for j in range(m) if gap[a][j] != 0), None)

    S = [[a for a in range(K) if phase(a) == j] for j in range(m)]
    out_pulls, in_pulls = [math.inf] * K, [math.inf] * K
    for a in range(K):
        i = phase(a)
        if i is None:
            continue
        if printed:
            out_pulls[a] = gamma(a, i) * sigma[i] ** 2 / gap[a][i] ** 2
            in_pulls[a] = min(
                quarters[j] ** 2 * gamma(a, j) / gap[a][j] ** 2 for j in range(m) if gap[a][j] > 0
            )
        else:
            waits = [
                last_level(gap[c][j], sigma[j], K, m, delta) + 2 + sum(1 for k in range(j + 1, i) if S[k])
                for j in range(i)
                for c in S[j]
            ]
            out_pulls[a] = max([last_level(gap[a][i], sigma[i], K, m, delta) + 2, *waits])
            in_pulls[a] = 2 + min(
                last_level(gap[a][j], quarters[j], K, m, delta) for j in range(m) if gap[a][j] > 0
            )
    results = {"lexelim_out_pulls": out_pulls, "lexelim_in_pulls": in_pulls}
    for name, pulls, leaving in (
        ("out", out_pulls, [[a for j in range(i + 1) for a in S[j]] for i in range(m)]),
        ("in", in_pulls, [[a for a in range(K) if gap[a][i] > 0] for i in range(m)]),
    ):
        regrets, samples = [], []
        for i in range(m):
            charged = [a for a in leaving[i] if printed or gap[a][i] > 0]
            regrets.append(sum(gap[a][i] * pulls[a] for a in charged))
            last = max((pulls[a] for a in leaving[i]), default=0)
            counted = [pulls[a] for a in leaving[i]] if printed else [min(n, last) for n in pulls]
            samples.append(sum(counted))
        results |= {f"lexelim_{name}_regret": regrets, f"lexelim_{name}_samples": samples}
    return results


@given(
    st.integers(1, 7),
    st.integers(1, 4),
    st.integers(0, 10**6),
    st.booleans(),
    st.floats(1e-6, 0.999),
    st.floats(0.001, 3) | st.tuples(*[st.floats(0.001, 3)] * 4),
    st.floats(0, 2),
)
@example(1, 1, 0, True, 0.1, 1.0, 0.0)
def test_every_bound_equals_its_slow_evaluation(K, m, seed, ties, delta, noise_sd, extra):
    instance = random_instance(K, m, seed=seed, ties=ties, max_tradeoff=3)
    noise_sd = noise_sd if np.ndim(noise_sd) == 0 else noise_sd[:m]
    lam = instance.tradeoff + extra
    for version in VERSIONS:
        slow = slow_bounds(instance, delta, lam, noise_sd, version)
        for bound in BOUNDS:
            fast = bound(instance, delta, tradeoff=lam, noise_sd=noise_sd, constants=version)
            np.testing.assert_allclose(
                fast, slow[bound.__name__], rtol=1e-9, err_msg=f"{bound.__name__} {version}"
            )


def test_the_printed_bounds_are_the_papers_numbers():
    """By hand: K = 2, m = 1, Δ = 0.5, δ = 0.1 give 256·log(31360) pulls."""
    instance = Instance([[0.5], [1.0]])
    pulls = 256 * math.log(392 * 2 / (0.25 * 0.1))
    for bound in (theory.lexelim_out_samples, theory.lexelim_in_samples):
        assert bound(instance, 0.1) == pytest.approx([pulls])
    assert theory.lexelim_in_regret(instance, 0.1) == pytest.approx([pulls / 2])
    anytime = theory.lexelim_in_anytime_regret(instance, 0.1, 50)
    assert anytime == pytest.approx([16 * math.sqrt(100 * math.log(6000))])


@given(random_instances, st.sampled_from(VERSIONS), st.integers(1, 60))
def test_scaling_rewards_and_widths_scales_regret_and_leaves_pulls_alone(instance, version, t):
    instance, larger = Instance(instance.means), Instance(instance.means * 8)  # exactly 8 times, as floats
    for bound in BOUNDS:
        unit = 8 if "regret" in bound.__name__ else 1
        before = bound(instance, 0.1, noise_sd=0.25, constants=version)
        np.testing.assert_array_equal(bound(larger, 0.1, noise_sd=2.0, constants=version), unit * before)
    before, after = (
        theory.lexelim_in_anytime_regret(x, 0.1, t, noise_sd=s, constants=version)
        for x, s in ((instance, 0.25), (larger, 2.0))
    )
    np.testing.assert_allclose(after, 8 * before)


@given(random_instances, st.integers(2, 400), st.floats(0, 2), noise_shapes)
def test_corollary_1_as_proved_is_the_opening_plus_the_printed_proof(instance, t, extra, shape):
    K, m = instance.means.shape
    lam, noise_sd = instance.tradeoff + extra, shape[:m]
    quarters = quarter_limits(lam, noise_sd)
    order = [*range(K), 0][:t]
    later = max(0, t - K - 1)
    expected = [
        sum(instance.gaps[a, i] for a in order)
        + 4 * quarters[i] * 2 * math.sqrt(4 * K * later * math.log(6 * K * m * max(1, t - K) / 0.2))
        for i in range(m)
    ]
    fast = theory.lexelim_in_anytime_regret(
        instance, 0.2, t, tradeoff=lam, noise_sd=noise_sd, constants="proved"
    )
    np.testing.assert_allclose(fast, expected, atol=1e-12)


@given(st.floats(0, 5), st.lists(st.floats(0.01, 5), min_size=1, max_size=5))
def test_the_sums_are_a_quarter_of_the_gaps_that_the_filter_of_lexelim_in_lets_through(lam, sigma):
    sums = theory.tradeoff_sums(lam, len(sigma), noise_sd=sigma)
    np.testing.assert_allclose(4 * sums - 2 * np.array(sigma), width_factors(lam, np.array(sigma)))
    plain = [sum(lam**j for j in range(i + 1)) for i in range(len(sigma))]
    np.testing.assert_allclose(theory.tradeoff_sums(lam, len(sigma)), plain)


@given(random_instances, st.floats(0, 2), noise_shapes)
def test_the_cone_margin_is_at_least_the_effective_gap(instance, extra, shape):
    lam, m = instance.tradeoff + extra, instance.n_objectives
    asked = {"tradeoff": lam, "noise_sd": shape[:m]}
    margins, effective = theory.cone_margins(instance, **asked), theory.effective_gaps(instance, **asked)
    quarters = quarter_limits(lam, shape[:m])
    for b, gap in enumerate(instance.gaps):
        faces = [
            min((gap[i] + lam * gap[j]) / (shape[i] + lam * shape[j]) for j in range(i)) for i in range(1, m)
        ]
        assert margins[b] == pytest.approx(max([gap[0] / shape[0], *faces]))
        assert effective[b] == pytest.approx(max(0.0, *(gap[i] / quarters[i] for i in range(m)), 0.0))
    assert np.all(margins >= effective - 1e-12)
    rivals = np.arange(instance.n_arms) != instance.lex_optimal_arm
    assert np.all(effective[rivals] > 0)
    assert effective[~rivals] == margins[~rivals] == 0


def test_the_pulls_of_lexelim_in_depend_on_the_effective_gap_alone():
    instance = random_instance(6, 3, seed=4, max_tradeoff=1.5)
    effective = theory.effective_gaps(instance)
    rivals = np.arange(6) != instance.lex_optimal_arm
    root = [theory.log_crossing(64 / gap**2, 6 * 18 / 0.1, constants="proved") for gap in effective[rivals]]
    proved = theory.lexelim_in_pulls(instance, 0.1, constants="proved")
    assert proved[rivals].tolist() == [math.floor(x) + 2 for x in root]
    assert proved[instance.lex_optimal_arm] == math.inf


# --- Lemmas 1 and 3


@given(st.integers(1, 100), st.integers(1, 10), st.floats(1e-9, 1 - 1e-9))
def test_lemma_1s_width_exceeds_the_self_normalised_one_and_lemma_3_it_decreases(K, m, delta):
    widths = [theory.confidence_width(n, K, m, delta) for n in range(1, 40)]
    for n, width in enumerate(widths, start=1):
        assert width == pytest.approx(math.sqrt(4 / n * math.log(6 * K * m * n / delta)))
        assert width >= math.sqrt((1 + n) / n**2 * (1 + 2 * math.log(K * m * math.sqrt(1 + n) / delta)))
    assert all(later < earlier for earlier, later in pairwise(widths))
    assert theory.confidence_width(0, K, m, delta) == math.inf


def test_lemma_1_means_leave_their_intervals_with_probability_at_most_delta():
    """Seeds are fixed; were they not, this would fail once in a billion times at probability δ."""
    runs, horizon, K, m, delta = 3000, 1000, 1, 1, 0.2
    widths = np.array([theory.confidence_width(n, K, m, delta, noise_sd=0.5) for n in range(1, horizon + 1)])
    noise = 0.5 * np.random.default_rng(20260101).standard_normal((runs, horizon))
    means = np.cumsum(noise, axis=1) / np.arange(1, horizon + 1)

    def escapes(scale):
        return np.any(np.abs(means) > scale * widths, axis=1).sum()

    assert escapes(1.0) <= binom.isf(1e-9, runs, delta)
    assert escapes(0.4) > binom.isf(1e-9, runs, delta)  # the draws can tell: narrower widths would not do


# --- structure and input


def test_every_bound_is_asked_alike_and_is_found_under_its_name():
    (signature,) = {inspect.signature(bound) for bound in BOUNDS}
    assert list(signature.parameters) == ["instance", "delta", "tradeoff", "noise_sd", "constants"]
    assert all(bound is getattr(theory, bound.__name__) and bound.__doc__ for bound in BOUNDS)


def test_an_arm_that_ties_with_the_best_on_everything_costs_no_regret_and_leaves_samples_finite():
    instance = Instance([[1.0, 1.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    stays = np.isinf(theory.lexelim_in_pulls(instance, 0.1, constants="proved"))
    assert stays.tolist() == [True, True, False, False]
    for version in VERSIONS:
        for bound in BOUNDS[2:]:
            assert np.all(np.isfinite(bound(instance, 0.1, constants=version)))


def test_an_objective_on_which_nobody_is_worse_takes_no_samples():
    instance = Instance([[1.0, 0.0], [1.0, 1.0]])
    for version in VERSIONS:
        for bound in (theory.lexelim_out_samples, theory.lexelim_in_samples):
            assert bound(instance, 0.1, constants=version)[0] == 0


@pytest.mark.parametrize("version", VERSIONS)
def test_one_arm_needs_nothing(version):
    instance = Instance([[0.3, 0.2]])
    for bound in BOUNDS[2:]:
        assert bound(instance, 0.1, constants=version).tolist() == [0.0, 0.0]
    assert theory.lexelim_in_anytime_regret(instance, 0.1, 99, constants="proved").tolist() == [0.0, 0.0]


def test_gaps_too_small_for_floats_give_infinite_bounds_not_nan():
    instance = Instance([[0.0], [1e-200]])
    for version in VERSIONS:
        assert theory.lexelim_in_samples(instance, 0.1, constants=version).tolist() == [math.inf]


def test_a_tolerance_that_matters_is_refused_by_proved_and_one_that_does_not_is_ignored():
    means = [[1.0, 0.0], [0.95, 1.0], [0.0, 0.5]]
    tolerant, loose = Instance(means, tie_tolerance=0.01), Instance(means, tie_tolerance=0.1)
    for bound in BOUNDS:
        exact = bound(Instance(means), 0.1, constants="proved")
        assert np.array_equal(bound(tolerant, 0.1, constants="proved"), exact)
        assert not np.any(np.isnan(bound(loose, 0.1)))
        with pytest.raises(ValueError, match="ties that are exact"):
            bound(loose, 0.1, constants="proved")


def test_without_a_finite_tradeoff_lexelim_in_has_no_bound_and_lexelim_out_has():
    instance = Instance(
        [[1.0, 1.0, 1.0], [1.0, 1.05, 0.0]], tie_tolerance=0.1
    )  # arm 1 gains and loses nothing
    assert instance.tradeoff == math.inf
    with pytest.raises(ValueError, match="give a finite tradeoff"):
        theory.lexelim_in_regret(instance, 0.1)
    assert np.all(np.isfinite(theory.lexelim_in_regret(instance, 0.1, tradeoff=2.0)))
    assert np.all(np.isfinite(theory.lexelim_out_regret(instance, 0.1)))


def test_a_tradeoff_below_the_instances_is_evaluated_as_printed_and_refused_as_proved():
    instance = paper_instance(10)
    assert np.all(np.isfinite(theory.lexelim_in_samples(instance, 0.1, tradeoff=0.5)))
    with pytest.raises(ValueError, match=r"at least 2\.0.*got 0\.5"):
        theory.lexelim_in_samples(instance, 0.1, tradeoff=0.5, constants="proved")
    below = theory.lexelim_out_samples(instance, 0.1, tradeoff=0.5, constants="proved")
    assert np.array_equal(below, theory.lexelim_out_samples(instance, 0.1, constants="proved"))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"delta": 0.0}, ValueError, "delta must be .*got 0"),
        ({"delta": 1.0}, ValueError, "delta must be .*got 1"),
        ({"delta": "0.1"}, TypeError, "delta must be a number"),
        ({"instance": [[1.0]]}, TypeError, "instance must be an Instance"),
        ({"tradeoff": -1.0}, ValueError, "tradeoff must be .*got -1"),
        ({"tradeoff": math.inf}, ValueError, "tradeoff must be finite"),
        ({"noise_sd": 0.0}, ValueError, "noise_sd must be positive"),
        ({"noise_sd": [1.0, 2.0]}, ValueError, "noise_sd must be .*got 2"),
        ({"constants": "true"}, ValueError, 'constants must be "printed" or "proved", got \'true\''),
    ],
)
def test_bad_input_is_named(change, error, message):
    asked = {"instance": paper_instance(10), "delta": 0.1, **change}
    for bound in BOUNDS:
        with pytest.raises(error, match=message):
            bound(**asked)


def test_bad_input_of_the_lemmas_is_named():
    instance = paper_instance(10)
    for function in (theory.effective_gaps, theory.cone_margins):
        with pytest.raises(TypeError, match="instance must be an Instance"):
            function([[1.0]])
    with pytest.raises(ValueError, match="t must be at least 1, got 0"):
        theory.lexelim_in_anytime_regret(instance, 0.1, 0)
    with pytest.raises(TypeError, match="t must be an integer"):
        theory.lexelim_in_anytime_regret(instance, 0.1, 1.5)
    with pytest.raises(ValueError, match="a must be positive"):
        theory.log_crossing(0.0, 1.0)
    with pytest.raises(ValueError, match="constants must be"):
        theory.log_crossing(1.0, 1.0, constants="sharp")
    with pytest.raises(ValueError, match="pulls must be at least 0"):
        theory.confidence_width(-1, 2, 2, 0.1)
    with pytest.raises(ValueError, match="tradeoff must be at least 0"):
        theory.tradeoff_sums(-0.1, 2)
