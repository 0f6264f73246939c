"""Is this the paper's algorithm? Oracle = ask/tell = simulate = replay, arm by arm."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from support import oracle
from support.bandit_problems import drive, noise_sds, noisy, outputs, problems, replay, tradeoffs
from support.examples import up_to

# λ and σ are dyadic, so that both ways of summing a threshold are exact; widths must see the levels
PAPER_PROBLEMS = problems(scales=(0.0, 2.0, 16.0), rounds=120)
DYADIC = (0.25, 0.5, 2.0)


@pytest.mark.interpreted
@given(PAPER_PROBLEMS, tradeoffs, st.data())
@settings(max_examples=up_to(300), deadline=None)
def test_lexelim_in_is_algorithm_2(problem, tradeoff, data):
    K, m, horizon, draw = problem
    sigma = noise_sds(data, m, DYADIC)
    policy = lb.LexElimIn(K, m, delta=0.5, tradeoff=tradeoff, noise_sd=sigma or 1.0)
    expected = oracle.lexelim_in(draw, K, m, 0.5, tradeoff, horizon, sigma)
    assert drive(policy, draw, horizon) == expected
    assert replay(policy, expected[0], draw) == policy


@pytest.mark.interpreted
@given(PAPER_PROBLEMS, st.data())
@settings(max_examples=up_to(300), deadline=None)
def test_lexelim_out_is_algorithm_1(problem, data):
    K, m, horizon, draw = problem
    sizes = data.draw(st.lists(st.integers(1, K), min_size=m - 1, max_size=m - 1))
    sizes = [*sorted(sizes, reverse=True), 1]
    sigma = noise_sds(data, m, DYADIC)
    policy = lb.LexElimOut(K, m, delta=0.5, optimal_set_sizes=sizes, noise_sd=sigma or 1.0)
    expected = oracle.lexelim_out(draw, K, m, 0.5, sizes, horizon, sigma)
    assert drive(policy, draw, horizon) == expected
    assert policy.finished == (len(expected[1]) == 1)


@pytest.mark.parametrize("seed", range(12))
def test_simulated_runs_are_the_oracles_runs(seed):
    """Same noise, whole runs to the end, a lex-optimal arm that all objectives are needed to find."""
    instance = lb.random_instance(3 + seed % 4, 1 + seed % 3, seed=seed, max_tradeoff=2, noise_sd=0.03)
    K, m = instance.means.shape
    horizon = 8000
    draw = noisy(instance, seed, horizon, replication=1)
    tradeoff = np.ceil(instance.tradeoff * 4) / 4
    runs = [
        (
            lb.LexElimIn(K, m, delta=0.1, tradeoff=tradeoff, noise_sd=0.03125),
            oracle.lexelim_in(draw, K, m, 0.1, tradeoff, horizon, [0.03125] * m),
        ),
        (
            lb.LexElimOut(K, m, delta=0.1, optimal_set_sizes=instance.optimal_set_sizes, noise_sd=0.03125),
            oracle.lexelim_out(draw, K, m, 0.1, instance.optimal_set_sizes, horizon, [0.03125] * m),
        ),
    ]
    for policy, (played, left, out) in runs:
        trajectory = lb.simulate(policy, instance, horizon=horizon, seed=seed, replication=1)
        assert trajectory.arms.tolist() == played
        assert set(trajectory.candidates) == left
        assert [tuple(e) for e in trajectory.eliminations] == out


RUN = """
import hashlib, sys
import numpy as np
import lexbandits as lb
instance = lb.paper_instance(10)
policies = [
    lb.LexElimIn(10, 3, delta=0.05, tradeoff=2.0, noise_sd=0.02),
    lb.LexElimOut(10, 3, delta=0.05, optimal_set_sizes=instance.optimal_set_sizes, noise_sd=0.02),
]
for policy in policies:
    run = lb.simulate(policy, instance, horizon=4000, seed=5)
    print(policy.name, run.rounds, run.eliminations, hashlib.sha256(run.arms.tobytes()).hexdigest())
for noise in ("bernoulli", "beta"):
    other = lb.Instance([[0.5, 0.5], [0.4, 0.6], [0.9, 0.1]], noise=noise, noise_sd=0.2)
    run = lb.simulate(lb.LexElimIn(3, 2, delta=0.1, tradeoff=4, noise_sd=0.1), other, horizon=500, seed=5)
    print(noise, run.rounds, run.eliminations, hashlib.sha256(run.arms.tobytes()).hexdigest())
correlated = lb.Instance([[0.5, 0.5], [0.4, 0.6]], correlation=[[1, -0.5], [-0.5, 1]], noise_sd=[0.1, 0.3])
run = lb.simulate(lb.LexElimIn(2, 2, delta=0.1, tradeoff=1, noise_sd=0.1), correlated, horizon=2000, seed=5)
print("correlated", run.rounds, run.eliminations)
"""


def test_compiled_and_interpreted_runs_are_the_same():
    compiled, interpreted = outputs(RUN)
    assert compiled == interpreted != ""


def test_the_width_is_that_of_the_widest_active_arm_even_for_a_late_reward():
    """Told many rewards of arm 1 and few of arm 0, the few decide how sure one can be."""
    policy = lb.LexElimIn(2, 1, delta=0.5, tradeoff=0.0)
    policy.tell_many([0] + [1] * 400, [[0.0]] + [[2.0]] * 400)
    assert policy.candidates == (0, 1)
    policy.tell_many([0] * 60, [[0.0]] * 60)
    assert policy.candidates == (1,)
    assert policy.eliminations[0].rival == 1


def test_arms_that_tie_everywhere_do_not_hang_a_run():
    instance = lb.Instance([[1.0, 0.5], [1.0, 0.5], [0.0, 1.0]], noise_sd=0.01)
    run = lb.simulate(
        lb.LexElimIn(3, 2, delta=0.1, tradeoff=1.0, noise_sd=0.01), instance, horizon=3000, seed=0
    )
    assert run.rounds == 3000
    assert not run.finished
    assert run.candidates == (0, 1)
    assert run.recommendation in (0, 1)


def test_wrong_set_sizes_do_not_hang_a_run():
    instance = lb.Instance([[1.0, 0.5], [1.0, 0.0], [1.0, 1.0]], noise_sd=0.01)
    policy = lb.LexElimOut(3, 2, delta=0.1, optimal_set_sizes=[1, 1], noise_sd=0.01)
    run = lb.simulate(policy, instance, horizon=3000, seed=0)
    assert run.rounds <= 3000
    assert run.finished == (len(run.candidates) == 1)


@pytest.mark.parametrize(
    ("call", "match"),
    [
        ({"horizon": -1, "seed": 0}, "horizon"),
        ({"horizon": 5, "seed": -1}, "seed"),
        ({"horizon": 5, "seed": 0, "replication": -2}, "replication"),
    ],
)
def test_bad_runs_are_refused(call, match):
    with pytest.raises(ValueError, match=match):
        lb.simulate(lb.LexElimIn(10, 3, delta=0.1, tradeoff=2), lb.paper_instance(10), **call)


def test_policy_and_instance_must_fit():
    with pytest.raises(ValueError, match="same shape"):
        lb.simulate(lb.LexElimIn(9, 3, delta=0.1, tradeoff=2), lb.paper_instance(10), horizon=5, seed=0)


def test_a_policy_about_a_list_is_not_simulated():
    policy = lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, n_items=50)
    with pytest.raises(ValueError, match="leave n_items out"):
        lb.simulate(policy, lb.Instance([[0.0], [1.0]]), horizon=5, seed=0)


def test_only_policies_and_instances_can_be_simulated():
    policy, instance = lb.LexElimIn(10, 3, delta=0.1, tradeoff=2), lb.paper_instance(10)
    for wrong in (("a", instance), (lb.LexElimIn, instance), (policy, [[1, 2, 3]])):
        with pytest.raises(TypeError, match="must be a"):
            lb.simulate(*wrong, horizon=5, seed=0)
    run = lb.simulate(policy, instance, horizon=30, seed=0)
    with pytest.raises(TypeError, match="Instance"):
        run.regret([[1]])
    with pytest.raises(ValueError, match="only 2 arms"):
        run.regret(lb.random_instance(2, 3, seed=0))
    assert np.diff(run.arms).min() == -9


def test_a_sampler_drives_the_plain_loop():
    def sample(rng, arm):
        return rng.integers(0, 2, size=2) + arm

    instance = lb.Instance([[0.5, 0.5], [1.5, 1.5]], noise=sample)
    run = lb.simulate(lb.LexElimIn(2, 2, delta=0.1, tradeoff=0, noise_sd=0.5), instance, horizon=500, seed=0)
    assert run.finished
    assert run.candidates == (1,)
    broken = lb.Instance([[0.5, 0.5], [1.5, 1.5]], noise=lambda rng, arm: [float("nan"), 0.0])
    with pytest.raises(ValueError, match="finite"):
        lb.simulate(lb.LexElimIn(2, 2, delta=0.1, tradeoff=0), broken, horizon=5, seed=0)


def test_priority_regret_charges_the_first_difference_only():
    instance = lb.Instance([[1, 1, 1], [1, 0.5, 2], [0.25, 3, 0]])
    run = lb.simulate(lb.LexElimIn(3, 3, delta=0.1, tradeoff=3), instance, horizon=6, seed=0)
    assert run.arms.tolist() == [0, 1, 2, 0, 1, 2]
    np.testing.assert_allclose(run.regret(instance)[-1], [1.5, -3.0, 0.0])
    np.testing.assert_allclose(run.regret(instance, kind="priority")[-1], [1.5, 1.0, 0.0])
    with pytest.raises(ValueError, match="kind"):
        run.regret(instance, kind="pareto")
