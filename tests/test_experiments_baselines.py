"""Track-and-Stop and Top-Two: is their certificate true, and do they pull what the lower bound says?"""

import math

import numpy as np
import pytest
from scipy.stats import binom

import lexbandits as lb
from experiments.baselines import TopTwo, TrackAndStop
from experiments.baselines.likelihood import KAPPA, mixture_weights, pair_costs, refuted
from lexbandits.policies.base import add_reward
from lexbandits.theory.alternatives import Problem
from support.kernels import projected

POLICIES = [TrackAndStop, TopTwo]
TIED = lb.Instance([[0.5, 0.9], [0.5, 0.5], [0.1, 0.9], [0.3, 0.2]], noise_sd=[0.3, 0.2])


def ended(policy, instance, runs, horizon=20_000):
    return [lb.simulate(policy, instance, horizon=horizon, seed=3, replication=r) for r in range(runs)]


@pytest.mark.parametrize("policy", POLICIES)
def test_it_ends_with_the_lex_optimal_arm_and_replays(policy):
    made = policy(4, 2, delta=0.1, tradeoff=1, noise_sd=[0.3, 0.2])
    run = ended(made, TIED, 1)[0]
    assert run.finished
    assert run.recommendation == TIED.lex_optimal_arm
    rng = np.random.default_rng(1)
    told = made.fresh()
    while not told.finished:
        arm = told.ask()
        told.tell(arm, TIED.means[arm] + [0.3, 0.2] * rng.standard_normal(2))
    again = made.fresh()
    for _ in range(3):
        again.ask()
    assert again == made.fresh()
    assert {e.rival for e in told.eliminations} == {told.recommendation}
    assert len(told.eliminations) == 3


@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_cost_of_a_pair_is_that_of_the_exact_projection(m):
    rng = np.random.default_rng(m)
    sds = rng.uniform(0.2, 1, m)
    policy = TopTwo(5, m, delta=0.05, tradeoff=1.5, noise_sd=sds)
    for _ in range(60):
        add_reward(policy.state.arms, int(rng.integers(5)), rng.normal(0, 1, m))
    arms = policy.state.arms
    problem = Problem(arms.means / sds, policy.state.cones)
    costs = np.empty((5, 5))
    pair_costs(problem, mixture_weights(arms.pulls), costs)
    is_refuted = np.zeros(5, bool)
    for b in range(5):
        for a in range(5):
            w = [n * n / (n + KAPPA) for n in (arms.pulls[a], arms.pulls[b])]
            square, _ = projected(arms.means[b] - arms.means[a], 1 / sds**2, 1.5)
            cost = square / 2 * w[0] * w[1] / (w[0] + w[1])
            assert costs[b, a] == pytest.approx(cost, rel=1e-9, abs=1e-12)
            dimensions = sum(m / 2 * math.log(1 + n / KAPPA) for n in (arms.pulls[a], arms.pulls[b]))
            is_refuted[b] |= cost >= math.log(2 * 4 / 0.05) + dimensions
    assert refuted(policy.state, problem).tolist() == is_refuted.tolist()


def test_track_and_stop_pulls_what_the_lower_bound_says():
    """With hardly any noise the estimates are the truth, and the pulls are the weights of T*."""
    instance = lb.Instance([[0.6, 0.5], [0.4, 0.9], [0.5, 0.1]], noise_sd=1e-3)
    best = lb.characteristic_time(instance, 3.0, relative_gap=0.001)
    policy = TrackAndStop(3, 2, delta=1e-9, tradeoff=3.0, noise_sd=1.0)
    run = lb.simulate(policy, instance, horizon=4000, seed=0)
    shares = np.bincount(run.arms[1000:], minlength=3) / (run.rounds - 1000)
    np.testing.assert_allclose(shares, best.weights, atol=0.03)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "tradeoff"), [(TrackAndStop, 1.0), (TopTwo, 3.0)])
def test_errors_are_rarer_than_delta(policy, tradeoff):
    """A gap so small that the answer is often found by chance alone: exact binomial tail at 0.001."""
    instance = lb.Instance([[0.5, 0.5], [0.5, 0.42], [0.45, 0.5 + 0.05 * tradeoff]], noise_sd=0.2)
    runs = ended(policy(3, 2, delta=0.2, tradeoff=tradeoff, noise_sd=0.2), instance, 150)
    wrong = sum(run.finished and run.recommendation != instance.lex_optimal_arm for run in runs)
    assert wrong <= binom.isf(0.001, len(runs), 0.2), wrong
    assert sum(run.finished for run in runs) > 100
