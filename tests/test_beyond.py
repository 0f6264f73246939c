"""Life with LexElim-Pool, -Phase and -Tol: late, lost, in any order of arms, stubborn ties, bad input."""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from support.bandit_problems import drive, noisy


def policies(K, m):
    return {
        "pool": lb.LexElimPool(K, m, delta=0.2, tradeoff=1.0, noise_sd=0.3),
        "phase": lb.LexElimPhase(
            K, m, delta=0.2, optimal_set_sizes=[min(K, 2)] * (m - 1) + [1], noise_sd=0.3
        ),
        "tol": lb.LexElimTol(K, m, delta=0.2, tolerance=0.5, noise_sd=0.3),
    }


@pytest.mark.parametrize("kind", ["pool", "phase"])
@given(st.randoms(use_true_random=False), st.integers(0, 40))
@settings(max_examples=40)
def test_rewards_are_paired_by_arm_and_pass_whatever_their_order(kind, random, seed):
    instance = lb.random_instance(4, 3, seed=seed, max_tradeoff=1.0, noise_sd=0.3)
    policy = policies(4, 3)[kind]
    draw = noisy(instance, seed, 400)
    played, *_ = drive(policy, draw, 400)
    kept = {arm: [draw(t, a) for t, a in enumerate(played) if a == arm] for arm in range(4)}
    shuffled = played[:]
    random.shuffle(shuffled)
    if seed % 2:  # or one arm wholly ahead of the others
        shuffled.sort(key=lambda arm: (arm + seed) % 4)
    late, cursor = policy.fresh(), dict.fromkeys(range(4), 0)
    for arm in shuffled:
        late.tell(arm, kept[arm][cursor[arm]])
        cursor[arm] += 1
    assert late.eliminations == policy.eliminations
    assert late.candidates == policy.candidates
    assert late.evidence.tolist() == policy.evidence.tolist()
    assert late.finished == policy.finished
    assert late.recommendation == policy.recommendation


@pytest.mark.parametrize("kind", ["pool", "phase", "tol"])
def test_with_pulls_in_flight_every_answer_is_the_same_in_the_end(kind):
    """A queue of eight pulls, answered out of order and sometimes lost."""
    instance = lb.random_instance(4, 3, seed=5, max_tradeoff=1.0, noise_sd=0.3)
    policy, rng = policies(4, 3)[kind], np.random.default_rng(1)
    flying = []
    for _ in range(4000):
        if policy.finished:
            break
        while len(flying) < 8:
            arm = policy.ask(flying)
            assert arm in policy.candidates or kind == "tol"  # whose answer's proof asks others too
            flying.append(arm)
        arm = flying.pop(int(rng.integers(len(flying))))
        if rng.random() < 0.9:
            policy.tell(arm, instance.means[arm] + 0.3 * rng.standard_normal(3))
    assert policy.finished
    late = policy.eliminations
    policy.tell(0, [9.0, 9.0, 9.0])
    assert policy.eliminations == late


@pytest.mark.parametrize("kind", ["pool", "phase"])
def test_an_arm_may_run_ahead_without_bound(kind):
    rng = np.random.default_rng(0)
    arms = [0] * 5000 + [1] * 4000 + [2] * 3000
    rewards = rng.standard_normal((len(arms), 2)) + np.array(arms)[:, None] * 0.01
    one, many = policies(3, 2)[kind], policies(3, 2)[kind]
    for arm, reward in zip(arms[:200] + arms[5000:5200], rewards[:400], strict=True):
        one.tell(arm, reward)
    many.tell_many(arms[:200] + arms[5000:5200], rewards[:400])
    assert one == many
    assert pickle.loads(pickle.dumps(one)) == many
    assert one.rounds == 400
    assert one.eliminations == ()
    many = many.fresh()
    many.tell_many(arms, rewards)
    inorder = many.fresh()
    turn = np.argsort(np.concatenate([np.arange(5000), np.arange(4000), np.arange(3000)]), kind="stable")
    inorder.tell_many(np.array(arms)[turn], rewards[turn])
    assert many.evidence.tolist() == inorder.evidence.tolist()
    assert many.eliminations == inorder.eliminations


@pytest.mark.parametrize("kind", ["pool", "phase", "tol"])
def test_exact_ties_everywhere_never_hang(kind):
    instance = lb.Instance(np.zeros((4, 3)), noise_sd=0.3)
    policy = policies(4, 3)[kind]
    run = lb.simulate(policy, instance, horizon=3000, seed=0)
    assert run.rounds <= 3000
    assert run.recommendation in run.candidates
    constant = policy.fresh()
    constant.tell_many(np.arange(400) % 4, np.zeros((400, 3)))
    assert constant.recommendation == 0
    assert not constant.finished or kind == "tol"


@pytest.mark.parametrize("kind", ["pool", "phase", "tol"])
def test_a_single_arm_needs_no_trial(kind):
    policy = policies(1, 3)[kind]
    assert policy.finished
    assert policy.ask() == policy.recommendation == 0
    policy.tell(0, [1.0, 2.0, 3.0])
    assert policy.rounds == 1
    assert kind == "tol" or policy.evidence.tolist() == [0.0]


def test_of_arms_all_rejected_at_once_the_least_suspect_stays():
    policy = lb.LexElimPool(2, 1, delta=0.5, tradeoff=0.0, noise_sd=1e-3)
    for _ in range(5):
        policy.tell_many([0, 1], [[1.0], [1.0]])
    # both bets now name the other arm; conjure wealth for both
    policy.state.gains[:] = [90.0, 80.0]
    policy.state.variances[:] = 10.0
    policy.tell_many([0, 1], [[0.0], [0.0]])
    assert policy.candidates == (1,)
    assert policy.finished


@pytest.mark.parametrize("kind", ["pool", "phase", "tol"])
def test_intervals_hold_the_means(kind):
    instance = lb.random_instance(4, 3, seed=5, max_tradeoff=1.0, noise_sd=0.3)
    policy = policies(4, 3)[kind]
    drive(policy, noisy(instance, 1, 200), 200)
    low, high = np.moveaxis(policy.intervals, -1, 0)
    assert np.all((low < instance.means) & (instance.means < high))


# --- bad input


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"tradeoff": -1.0}, ValueError),
        ({"tradeoff": math.inf}, ValueError),
        ({"correlated": "yes"}, TypeError),
        ({"correlated": 0.5}, TypeError),
        ({"correlated": [[1.0, 0.5]]}, ValueError),
        ({"correlated": [[1.0, 2.0], [2.0, 1.0]]}, ValueError),
        ({"correlated": [[1.0, 0.5], [0.4, 1.0]]}, ValueError),
        ({"correlated": [["1", "0"], ["0", "1"]]}, TypeError),
        ({"noise_sd": [1.0]}, ValueError),
    ],
)
def test_pool_rejects(wrong, error):
    with pytest.raises(error):
        lb.LexElimPool(3, 2, **{"delta": 0.1, "tradeoff": 1.0, **wrong})


@pytest.mark.parametrize("sizes", [[4, 1], [1, 2], [2, 2], [1], [2, 1, 1], [0, 1]])
def test_phase_rejects(sizes):
    with pytest.raises(ValueError, match="optimal_set_sizes"):
        lb.LexElimPhase(3, 2, delta=0.1, optimal_set_sizes=sizes)
