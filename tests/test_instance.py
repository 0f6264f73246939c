"""The paper's Preliminaries, on instances small enough to check by hand and on random ones."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import hyp1f1

import lexbandits as lb
from lexbandits.environments.noise import DRAWS, reward_model, stream


@pytest.mark.parametrize("K", [10, 20, 30, 40, 70, 100, 250])
def test_the_papers_instance_has_exact_ties_for_every_multiple_of_ten(K):
    instance = lb.paper_instance(K)
    assert instance.lex_optimal_arm == 6 * K // 10 - 1
    assert instance.optimal_set_sizes == (3, 2, 1)
    assert instance.optimal_set(0) == tuple(p * K // 10 - 1 for p in (3, 6, 9))
    assert instance.optimal_set(1) == tuple(p * K // 10 - 1 for p in (6, 9))
    assert instance.tradeoff == 2.0
    assert instance.noise_sd == pytest.approx(np.sqrt(0.1))
    a = np.arange(1, K + 1) / K
    expected = np.stack(
        [
            1 - np.abs(a[:, None] - [0.3, 0.6, 0.9]).min(axis=1),
            1 - 2 * np.abs(a[:, None] - [0.5, 0.8]).min(axis=1),
            1 - 2 * np.abs(a - 0.5),
        ],
        axis=1,
    )
    np.testing.assert_allclose(instance.means, expected, atol=1e-12)


@pytest.mark.parametrize("K", [0, -10, 5, 15])
def test_the_papers_instance_needs_a_multiple_of_ten(K):
    with pytest.raises(ValueError, match="multiple of 10"):
        lb.paper_instance(K)


def naive_structure(means):
    """Definitions 1 and 2 and Eq. (2), word for word, on lists of Fractions."""
    K, m = len(means), len(means[0])

    def dominates(x, y):
        return any(all(x[j] == y[j] for j in range(i)) and x[i] > y[i] for i in range(m))

    star = next(a for a in range(K) if not any(dominates(means[b], means[a]) for b in range(K)))
    prefix = [[a for a in range(K) if means[a][: i + 1] == means[star][: i + 1]] for i in range(m)]
    single = [[a for a in range(K) if means[a][i] >= means[star][i]] for i in range(m)]
    lam = Fraction(0)
    for a in range(K):
        for i in range(1, m):
            gain = means[a][i] - means[star][i]
            loss = max(means[star][j] - means[a][j] for j in range(i))
            if gain > 0:
                lam = max(lam, gain / loss)
    return star, prefix, single, lam


tables = st.integers(1, 3).flatmap(
    lambda m: st.lists(
        st.lists(st.fractions(-2, 2, max_denominator=3), min_size=m, max_size=m), min_size=1, max_size=6
    )
)


@given(tables)
def test_structure_is_that_of_the_definitions(means):
    instance = lb.Instance(means)
    star, prefix, single, lam = naive_structure(means)
    assert instance.lex_optimal_arm == star
    assert [list(instance.optimal_set(i)) for i in range(instance.n_objectives)] == prefix
    assert [list(instance.objective_optimal_set(i)) for i in range(instance.n_objectives)] == single
    assert instance.optimal_set_sizes == tuple(map(len, prefix))
    assert instance.tradeoff == float(lam)
    expected = [[float(means[star][i] - row[i]) for i in range(len(row))] for row in means]
    assert instance.gaps.tolist() == expected
    for i in range(instance.n_objectives):
        reached = prefix[i - 1] if i else range(instance.n_arms)
        assert list(instance.suboptimal_set(i)) == [a for a in reached if means[star][i] > means[a][i]]
    assert lb.Instance(**instance.settings) == instance


@given(
    st.integers(1, 12),
    st.integers(1, 4),
    st.integers(0, 10**6),
    st.booleans(),
    st.sampled_from([None, 0, 0.3, 2]),
)
def test_random_instances_have_a_unique_optimum_and_keep_their_promises(K, m, seed, ties, cap):
    instance = lb.random_instance(K, m, seed=seed, ties=ties, max_tradeoff=cap)
    assert instance.means.shape == (K, m)
    assert instance.optimal_set_sizes[-1] == 1
    if cap is not None:
        assert instance.tradeoff <= cap
    if not ties:
        assert all(len(set(column)) == K for column in instance.means.T.tolist())
    assert instance == lb.random_instance(K, m, seed=seed, ties=ties, max_tradeoff=cap)


def test_random_instances_do_tie_when_asked():
    tied = [max(lb.random_instance(12, 3, seed=s).optimal_set_sizes) > 1 for s in range(50)]
    assert sum(tied) > 10


def test_a_tolerance_decides_what_counts_as_equal():
    means = [[0.90, 0.2], [0.88, 0.7], [0.5, 0.9]]
    assert lb.Instance(means).lex_optimal_arm == 0
    near = lb.Instance(means, tie_tolerance=0.05)
    assert near.lex_optimal_arm == 1
    assert near.optimal_set_sizes == (2, 1)
    assert near.gaps[0, 0] == pytest.approx(-0.02)
    assert lb.Instance([[1.0, 0.0], [0.97, 0.5], [0.94, 0.9]], tie_tolerance=0.04).tradeoff == pytest.approx(
        0.4 / 0.03
    )
    assert (
        lb.Instance(
            [[1.0, 0.0, 0.0], [0.98, 0.05, 1.0], [0.99, 0.1, 0.5]], tie_tolerance=0.06
        ).lex_optimal_arm
        == 1
    )


def test_an_arm_that_gains_for_nothing_makes_the_tradeoff_infinite():
    """Within the tolerance arm 0 ties with arm 1 on objective 1, yet Eq. (2) has no λ for its gain there."""
    means = [[1.0, 0.52, 0.0], [1.0, 0.5, 1.0], [0.0, 0.9, 0.0]]
    assert np.isfinite(lb.Instance(means).tradeoff)
    near = lb.Instance(means, tie_tolerance=0.05)
    assert near.lex_optimal_arm == 1
    assert near.tradeoff == float("inf")


@pytest.mark.parametrize(
    ("means", "error"),
    [
        ([[float("nan"), 1]], ValueError),
        ([[float("inf"), 1]], ValueError),
        ([[10**400, 1]], ValueError),
        ([[1, 2], [3]], ValueError),
        ([], ValueError),
        ([[]], ValueError),
        ([["a", "b"]], ValueError),
        ([[None, 1]], TypeError),
        (3, TypeError),
        ("12", TypeError),
        (["12", "34"], TypeError),
        ([b"12", b"34"], TypeError),
        ({0: [1, 2], 1: [3, 4]}, TypeError),
        ([{0: 1, 1: 2}], TypeError),
        ([{1, 2}, {3, 4}], TypeError),
        (np.ma.masked_equal([[1.0, 2.0], [3.0, 4.0]], 4.0), TypeError),
    ],
)
def test_bad_means_are_refused(means, error):
    with pytest.raises(error, match="means"):
        lb.Instance(means)


def test_the_columns_of_a_data_frame_are_objectives():
    rows = [[0.9, 0.2], [0.9, 0.7], [0.5, 0.9]]
    for names in ([0, 1], ["10", "20"], ["quality", "cost"]):
        assert lb.Instance(pd.DataFrame(rows, columns=names, index=[7, 8, 9])) == lb.Instance(rows)


@pytest.mark.parametrize(
    "setting",
    [
        {"noise_sd": 0},
        {"noise_sd": -1},
        {"noise_sd": [1, 1, 1]},
        {"noise_sd": float("nan")},
        {"noise": "cauchy"},
        {"correlation": [[1, 2], [2, 1]]},
        {"correlation": [[1, 0.5, 0], [0.5, 1, 0], [0, 0, 1]]},
        {"correlation": [[1, 0.5], [0.4, 1]]},
        {"noise": "bernoulli", "correlation": [[1, 0], [0, 1]]},
        {"tie_tolerance": -0.1},
        {"noise": "beta", "noise_sd": 0.9},
    ],
)
def test_bad_noise_is_refused(setting):
    with pytest.raises(ValueError, match=r"noise|correlation|tie_tolerance"):
        lb.Instance([[0.5, 0.5], [0.4, 0.2]], **setting)
    with pytest.raises(ValueError, match="bernoulli"):
        lb.Instance([[1.5]], noise="bernoulli")


@pytest.mark.parametrize(
    "setting", [{"noise_sd": "x"}, {"noise_sd": None}, {"correlation": "a"}, {"tie_tolerance": "a"}]
)
def test_settings_of_the_wrong_type_are_refused(setting):
    with pytest.raises(TypeError, match=next(iter(setting))):
        lb.Instance([[0.5, 0.5], [0.4, 0.2]], **setting)


@pytest.mark.parametrize("seed", [None, "a", 1.5])
def test_a_random_instance_needs_a_seed(seed):
    with pytest.raises(TypeError, match="seed"):
        lb.random_instance(3, 2, seed=seed)


def test_an_instance_cannot_be_changed_by_accident():
    instance = lb.paper_instance(10)
    with pytest.raises(ValueError, match="read-only"):
        instance.means[0, 0] = 5
    with pytest.raises(ValueError, match="read-only"):
        instance.gaps[0, 0] = 5


def test_noise_knows_its_standard_deviation():
    means = [[0.5, 0.1], [0.2, 0.03], [1.0, 0.0]]
    bernoulli = lb.Instance(means, noise="bernoulli")
    np.testing.assert_allclose(bernoulli.arm_noise_sds, np.sqrt([[0.25, 0.09], [0.16, 0.0291], [0, 0]]))
    np.testing.assert_allclose(bernoulli.noise_sds, [0.5, 0.3])
    beta = lb.Instance([[0.5, 0.1], [0.2, 0.3]], noise="beta", noise_sd=[0.2, 0.1])
    assert beta.noise_sds.tolist() == [0.2, 0.1]
    assert lb.Instance(means, noise_sd=[1, 2]).sub_gaussian_sds.tolist() == [1, 2]
    assert lb.Instance([[1.0], [0.0]], noise="bernoulli").sub_gaussian_sds.tolist() == [0.0]


@pytest.mark.parametrize("mean", [0.001, 0.03, 0.3, 0.4999999, 0.5, 0.9])
def test_the_sub_gaussian_scale_bounds_every_moment(mean):
    """log E exp(t(X − μ)) ≤ σ²t²/2 for all t; for Bernoulli no smaller σ would do."""
    t = np.concatenate((-np.geomspace(1e-3, 200, 400), np.geomspace(1e-3, 200, 400)))
    (sigma,) = lb.Instance([[mean]], noise="bernoulli").sub_gaussian_sds
    moments = np.logaddexp(np.log1p(-mean), t + np.log(mean)) - t * mean
    assert np.all(moments <= (sigma * t) ** 2 / 2 * (1 + 1e-9) + 1e-12)
    assert np.any(moments[np.abs(t) > 0.1] > (0.999 * sigma * t[np.abs(t) > 0.1]) ** 2 / 2)
    sd = 0.3 * np.sqrt(mean * (1 - mean))
    instance = lb.Instance([[mean]], noise="beta", noise_sd=sd)
    (sigma,) = instance.sub_gaussian_sds
    a, b = reward_model(instance).shapes[0, 0]
    moments = np.log(hyp1f1(a, a + b, t)) - t * mean
    assert np.all(moments <= (sigma * t) ** 2 / 2 * (1 + 1e-9) + 1e-9)


@pytest.mark.parametrize("noise", ["gaussian", "bernoulli", "beta", "correlated"])
def test_rewards_have_the_means_and_spread_they_should(noise):
    means, sd = [[0.3, 0.6], [0.5, 0.2]], [0.2, 0.1]
    if noise == "correlated":
        instance = lb.Instance(means, noise_sd=sd, correlation=[[1, -0.6], [-0.6, 1]])
    else:
        instance = lb.Instance(means, noise_sd=sd, noise=noise)
    rewards = np.empty((40_000, 2))
    rng, how = stream(3, 0), reward_model(instance)
    draw = DRAWS[how.kind]
    for row in rewards:
        draw(how, rng, 1, row)
    spread = np.sqrt(instance.means[1] * (1 - instance.means[1])) if noise == "bernoulli" else np.array(sd)
    # five standard errors
    assert np.all(np.abs(rewards.mean(axis=0) - instance.means[1]) < 5 * spread / 200)
    np.testing.assert_allclose(rewards.std(axis=0), spread, rtol=0.03)
    expected = -0.6 if noise == "correlated" else 0.0
    assert abs(np.corrcoef(rewards.T)[0, 1] - expected) < 5 / 200
