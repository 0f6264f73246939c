"""Are errors rarer than delta? Random instances on the edge of the cone and of the tolerance.

Seeds are fixed; were they not, each test would fail once in a billion times at an error rate of delta.
"""

import numpy as np
import pytest
from scipy.stats import binom

import lexbandits as lb

pytestmark = pytest.mark.slow

DELTA = 0.2
INSTANCES = 20
RUNS = 200  # of each instance


def at_most_delta(wrong, runs):
    assert wrong <= binom.isf(1e-9, runs, DELTA), f"{wrong} of {runs}"


def on_the_edge(rng, K, m, lam):
    """Arm 0 is lex-optimal, every rival gains as much as λ allows, or ties, on every later objective."""
    loss = np.zeros((K, m))
    loss[1:, 0] = rng.choice([0.0, 0.0, 0.02, 0.2], K - 1)
    for i in range(1, m):
        least = -lam * np.maximum(loss[:, :i].max(axis=1), 0.0)
        loss[1:, i] = np.where(
            rng.random(K - 1) < 0.8, least[1:], least[1:] + rng.choice([0.0, 0.1, 1.0], K - 1)
        )
    return -loss


def eliminated(policy, instance, arm, horizon, runs, seed):
    """In how many runs `arm` is ever eliminated."""
    return sum(
        arm not in lb.simulate(policy, instance, horizon=horizon, seed=seed, replication=r).candidates
        for r in range(runs)
    )


@pytest.mark.parametrize("m", [1, 2, 3, 4])
def test_the_lex_optimal_arm_stays_on_the_edge_of_its_cone(m):
    rng, wrong = np.random.default_rng(m), []
    for number in range(INSTANCES):
        K, lam = int(rng.integers(2, 8)), float(rng.choice([0.0, 0.5, 1.0, 3.0]))
        instance = lb.Instance(on_the_edge(rng, K, m, lam))
        policy = lb.LexElimPool(K, m, delta=DELTA, tradeoff=lam)
        wrong.append(eliminated(policy, instance, 0, 4000, RUNS, number))
        at_most_delta(wrong[-1], RUNS)
    at_most_delta(sum(wrong), INSTANCES * RUNS)


@pytest.mark.parametrize("correlation", [-0.9, 0.9])
def test_it_stays_whatever_the_dependence_it_was_told_of(correlation):
    rng = np.random.default_rng(7)
    matrix = np.where(np.eye(2) == 1, 1.0, correlation)
    for number in range(INSTANCES // 2):
        K, lam = int(rng.integers(2, 6)), float(rng.choice([0.5, 1.0, 3.0]))
        instance = lb.Instance(on_the_edge(rng, K, 2, lam), correlation=matrix)
        for correlated in (True, matrix):
            policy = lb.LexElimPool(K, 2, delta=DELTA, tradeoff=lam, correlated=correlated)
            at_most_delta(eliminated(policy, instance, 0, 3000, RUNS, number), RUNS)


def test_a_correlation_told_allows_for_less_noise_than_told():
    """A near-tie on the edge; less noise on one objective cancels less of the other's."""
    matrix = np.array([[1.0, -0.9], [-0.9, 1.0]])
    means = np.array([[0.0, 0.0], [-1e-6, 1e-6]])
    policy = lb.LexElimPool(2, 2, delta=0.05, tradeoff=1.0, noise_sd=1.0, correlated=matrix)
    truth = lb.Instance(means, noise_sd=[1.0, 0.5], correlation=matrix)
    wrong = eliminated(policy, truth, 0, 4000, 1000, 3)
    assert wrong <= binom.isf(1e-9, 1000, 0.05)


def test_pool_needs_to_be_told_of_dependence():
    """The same instances with correlated=False break the promise: the tests above can fail."""
    rng = np.random.default_rng(7)
    matrix = np.where(np.eye(2) == 1, 1.0, 0.9)
    means = np.zeros((8, 2))
    policy = lb.LexElimPool(8, 2, delta=DELTA, tradeoff=1.0)
    wrong = eliminated(policy, lb.Instance(means, correlation=matrix), 0, 20_000, RUNS, int(rng.integers(9)))
    assert wrong > binom.isf(1e-3, RUNS, DELTA)


def test_pool_needs_a_tradeoff_that_is_large_enough():
    means = np.array([[0.0, 0.0], [-0.1, 0.3], [-0.1, 0.3]])
    policy = lb.LexElimPool(3, 2, delta=DELTA, tradeoff=1.0)
    assert eliminated(policy, lb.Instance(means), 0, 20_000, RUNS, 1) > RUNS // 2


def early_leaver(run, K, sizes):
    """Whether an arm of some O_*(i) = 0..size−1 left while an arm outside was still in the running."""
    rounds = {e.round for e in run.eliminations}
    gone = [{e.arm for e in run.eliminations if e.round <= now} for now in rounds]
    return any(min(out) < size and not set(range(size, K)) <= out for out in gone for size in sizes)


@pytest.mark.parametrize("m", [1, 2, 3])
def test_phase_drops_no_tied_arm_before_its_phase(m):
    """Arms of O_*(i) leave in phases after i only; ties on everything that a phase protects."""
    rng = np.random.default_rng(m)
    for number in range(INSTANCES):
        K = int(rng.integers(3, 8))
        sizes = [*sorted(rng.integers(1, K + 1, size=m - 1).tolist(), reverse=True), 1]
        means = np.zeros((K, m))
        for i, size in enumerate(sizes):
            means[size:, i] -= rng.choice([0.2, 0.5, 2.0])
            means[sizes[i] :, i + 1 :] += rng.choice([0.0, 1.0])
        instance = lb.Instance(means)
        assert list(instance.optimal_set_sizes) == sizes
        policy = lb.LexElimPhase(K, m, delta=DELTA, optimal_set_sizes=sizes)
        wrong = 0
        for r in range(RUNS):
            run = lb.simulate(policy, instance, horizon=20_000, seed=number, replication=r)
            wrong += early_leaver(run, K, sizes) or (run.finished and run.recommendation != 0)
        at_most_delta(wrong, RUNS)


@pytest.mark.parametrize("n_arms", [10, 20, 30])
def test_on_the_paper_s_instance_errors_are_rare_and_pulls_few(n_arms):
    """Far below LexElim-In, near the figures this library advertises."""
    instance = lb.paper_instance(n_arms)
    policy = lb.LexElimPool(n_arms, 3, delta=0.01, tradeoff=2.0, noise_sd=instance.noise_sd)
    runs = [lb.simulate(policy, instance, horizon=10**6, seed=0, replication=r) for r in range(1000)]
    assert sum(run.recommendation != instance.lex_optimal_arm for run in runs) <= binom.isf(1e-9, 1000, 0.01)
    pulls = np.array([run.rounds for run in runs])
    advertised = {10: 1365, 20: 3984, 30: 8766}[n_arms]
    assert abs(pulls.mean() - advertised) < 0.05 * advertised
