"""Are LexElim-Pool and -Phase their specification? Oracle = ask/tell = simulate = replay."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits.policies.pool_passes import next_evaluated
from support import oracle
from support.bandit_problems import drive, noise_sds, noisy, problems, replay, tradeoffs
from support.examples import up_to

PROBLEMS = problems(arms=(1, 5), objectives=4, levels=2, scales=(0.0, 1.0, 4.0))
SIGMAS = (0.5, 1.0, 2.0)


def same_run(policy, draw, horizon, expected):
    """Arms, candidates, eliminations and, where the policy bets, its wealths."""
    played, left, out, wealth = expected
    assert drive(policy, draw, horizon) == (played, left, sorted(out, key=lambda e: (e[1], e[0])))
    assert policy.evidence == pytest.approx(list(wealth.values()), rel=1e-9, abs=1e-9)
    assert replay(policy, played, draw) == policy
    assert policy.recommendation in policy.candidates


@st.composite
def dependences(draw, m):
    """False, True, or a correlation matrix."""
    kind = draw(st.sampled_from([False, True, "matrix"]))
    if kind != "matrix":
        return kind
    return correlation(m, draw(st.integers(0, 99)))


@pytest.mark.interpreted
@given(PROBLEMS, tradeoffs, st.data())
@settings(max_examples=up_to(150))
def test_pool_is_its_specification(problem, tradeoff, data):
    K, m, horizon, draw = problem
    sigma, how = noise_sds(data, m, SIGMAS), data.draw(dependences(m))
    policy = lb.LexElimPool(K, m, delta=0.4, tradeoff=tradeoff, noise_sd=sigma or 1.0, correlated=how)
    expected = oracle.lexelim_pool(draw, K, m, 0.4, tradeoff, horizon, sigma, how)
    same_run(policy, draw, horizon, expected)


@pytest.mark.interpreted
@given(PROBLEMS, st.data())
@settings(max_examples=up_to(100))
def test_phase_is_its_specification(problem, data):
    K, m, horizon, draw = problem
    sigma = noise_sds(data, m, SIGMAS)
    sizes = sorted(data.draw(st.lists(st.integers(1, K), min_size=m - 1, max_size=m - 1)), reverse=True)
    policy = lb.LexElimPhase(K, m, delta=0.4, optimal_set_sizes=[*sizes, 1], noise_sd=sigma or 1.0)
    same_run(policy, draw, horizon, oracle.lexelim_phase(draw, K, m, 0.4, [*sizes, 1], horizon, sigma))


INSTANCES = [lb.random_instance(k, m, seed=s, max_tradeoff=2.0, noise_sd=0.3) for k, m, s in
             itertools.product((2, 5, 9), (1, 2, 3, 4), range(3))]  # fmt: skip


def correlation(m, seed):
    """Some (m, m) correlation matrix."""
    root = np.random.default_rng(seed).standard_normal((m, m))
    root /= np.linalg.norm(root, axis=1, keepdims=True)
    below = np.tril(root @ root.T, -1)
    return (below + below.T + np.eye(m)).tolist()


@pytest.mark.parametrize("number", range(len(INSTANCES)))
def test_simulated_runs_are_the_specification_s(number):
    instance, horizon = INSTANCES[number], 1200
    K, m = instance.n_arms, instance.n_objectives
    draw, sigma = noisy(instance, number, horizon), [0.3, 0.2, 0.4, 0.6][:m]
    sizes, lam = list(instance.optimal_set_sizes), instance.tradeoff
    settings = {"delta": 1e-3, "noise_sd": sigma}
    bets = []
    for how in (False, True, correlation(m, number)):
        policy = lb.LexElimPool(K, m, tradeoff=lam, correlated=how, **settings)
        bets.append((policy, oracle.lexelim_pool(draw, K, m, 1e-3, lam, horizon, sigma, how)))
    policy = lb.LexElimPhase(K, m, optimal_set_sizes=sizes, **settings)
    bets.append((policy, oracle.lexelim_phase(draw, K, m, 1e-3, sizes, horizon, sigma)))
    for policy, expected in bets:
        same_run(policy, draw, horizon, expected)
        arms, left, out, _ = expected
        run = lb.simulate(policy, instance, horizon=horizon, seed=number)
        assert run.arms.tolist() == arms, policy.name
        assert set(run.candidates) == left
        assert sorted(map(tuple, run.eliminations)) == sorted(out)


def test_the_runs_above_use_every_kind_of_bet():
    """Witnesses on every objective, and selectors of one objective that are not equally ahead."""
    fronts, uneven = set(), False
    for seed, instance in enumerate(INSTANCES):
        policy = lb.LexElimPool(*instance.means.shape, delta=1e-3, tradeoff=instance.tradeoff, noise_sd=0.3)
        drive(policy, noisy(instance, seed, 1200), 1200)
        state = policy.state
        fronts |= set(state.fronts[state.weights > 0].tolist())
        uneven |= bool(np.any(np.ptp(state.selectors, axis=2) > 0)) if state.selectors.size else False
    assert fronts == {0, 1, 2, 3}
    assert uneven


def test_a_block_pays_by_the_weights_that_stood_before_it():
    """Also for a correlation told; blocks are single passes at first."""
    instance = lb.paper_instance(10)
    matrix = np.array([[1.0, 0.5, 0.2], [0.5, 1.0, -0.3], [0.2, -0.3, 1.0]])
    policy = lb.LexElimPool(10, 3, delta=1e-9, tradeoff=2.0, noise_sd=[0.3, 0.4, 0.5], correlated=matrix)
    rng = np.random.default_rng(3)
    seen = set()
    for turn in range(35):
        assert len(policy.candidates) == 10
        state = policy.state
        weights, fronts = state.weights.copy(), state.fronts.copy()
        gains, variances = state.gains.copy(), state.variances.copy()
        rewards = instance.means + 0.3 * rng.standard_normal((10, 3))
        for arm in range(10):
            assert policy.ask() == arm
            policy.tell(arm, rewards[arm])
        if turn < 5:  # the first block: nothing was at stake
            continue
        for arm in range(10):
            who = np.flatnonzero(weights[arm])
            seen |= set(fronts[arm, who].tolist())
            assert weights[arm].sum() == pytest.approx(1)
            assert weights[arm, arm] == 0
            grown = state.variances[arm] - variances[arm]
            assert grown == pytest.approx(1 + weights[arm] @ weights[arm])
            if np.all(fronts[arm, who] < 2):
                face = [rewards[:, 0], rewards[:, 1] + 2 * rewards[:, 0]]
                scale = [0.3, math.sqrt(0.4**2 + 0.6**2 + 2 * 0.5 * 0.4 * 0.6)]
                paid = sum(
                    weights[arm, a] * (face[i][a] - face[i][arm]) / scale[i]
                    for a, i in zip(who, fronts[arm, who], strict=True)
                )
                assert state.gains[arm] - gains[arm] == pytest.approx(paid, abs=1e-9)
    assert {0, 1} <= seen


def test_judged_passes_grow_by_a_hundredth():
    grid = list(itertools.islice(oracle.evaluated_passes(), 600))
    assert grid[:3] == [5, 6, 7]
    assert all(next_evaluated(n) == after for n, after in itertools.pairwise(grid))
