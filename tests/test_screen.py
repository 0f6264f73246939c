"""Is the fast path the same program? The screen against the plain loop, state by state, to the bit."""

import textwrap
from functools import partial
from typing import NamedTuple

import numpy as np
import pytest

import lexbandits as lb
from lexbandits._arrays import Vector
from lexbandits.environments.noise import reward_model, stream, stream_words, words_of
from lexbandits.policies.policy import Policy
from lexbandits.simulation.queue import in_one_piece, queue_for, screened_runs
from lexbandits.simulation.replicate import replicate
from lexbandits.simulation.screen import scratch_for
from lexbandits.simulation.trajectory import play, prepared
from support.bandit_problems import outputs


class Overlapping(NamedTuple):
    both: Vector
    tail: Vector
    numbers: Vector
    truths: Vector


def bits(state):
    """Everything in a state, as bytes."""
    if isinstance(state, tuple):
        return b"".join(map(bits, state))
    return np.asarray(state).tobytes()


def by_pulls(policy, instance, horizon, seed):
    run = prepared(policy, instance, seed, 0)
    arms = np.empty(horizon, np.int64)
    return run, arms[: play(run, instance, stream(seed, 0), arms)]


def by_screen(policy, instance, horizon, seed, per_call=10**9):
    run, rng, scratch = prepared(policy, instance, seed, 0), stream(9, 9), scratch_for(*instance.means.shape)
    run.state, memory = in_one_piece(run.state)
    queue = queue_for(memory, words_of(rng), stream_words(seed, [0]))
    loop, drawn, row = screened_runs(policy.rules), reward_model(instance), 0
    while row == 0:
        row = loop(run.state, drawn, rng, scratch, queue, row, horizon, per_call)
    assert memory.tobytes() == queue.after.tobytes()
    return run, int(queue.rounds[0])


def assert_same(policy, instance, horizon, seed, per_call=10**9):
    slow, arms = by_pulls(policy, instance, horizon, seed)
    fast, rounds = by_screen(policy, instance, horizon, seed, per_call)
    assert rounds == arms.size
    assert fast.eliminations == slow.eliminations
    assert bits(fast.state) == bits(slow.state)
    return slow


def any_instance(rng, n_arms, m):
    """Coarse means, so that ties are common; noise from nearly none to drowning."""
    steps = rng.choice([1, 2, 4, 1000])
    means = rng.integers(0, steps, (n_arms, m), endpoint=True) / steps * rng.choice([0.1, 1.0, 10.0])
    noise_sd = rng.choice([0.01, 0.3, 1.0], size=m) if rng.random() < 0.5 else rng.choice([0.01, 0.3, 1.0])
    correlation = None
    if rng.random() < 0.25:
        correlation = np.full((m, m), rng.uniform(-0.5 / m, 0.9))
        np.fill_diagonal(correlation, 1.0)
    return lb.Instance(means, noise_sd=noise_sd, correlation=correlation)


def any_policy(rng, instance):
    K, m = instance.means.shape
    noise_sd = rng.choice([0.003, 0.05, 0.3, 1.0], size=m) if rng.random() < 0.5 else rng.choice([0.003, 0.1])
    delta = rng.choice([0.001, 0.1, 0.9])
    if rng.random() < 0.5:
        return lb.LexElimIn(K, m, delta=delta, tradeoff=rng.choice([0.0, 0.5, 2.0, 9.0]), noise_sd=noise_sd)
    sizes = (*instance.optimal_set_sizes[:-1], 1)
    return lb.LexElimOut(K, m, delta=delta, optimal_set_sizes=sizes, noise_sd=noise_sd)


@pytest.mark.parametrize("part", range(4))
def test_the_screen_is_the_plain_loop(part):
    """3,000 random instances: ties, eliminations in the first passes, any λ, calls cut anywhere."""
    rng = np.random.default_rng(part)
    eliminations = finished = 0
    for seed in range(750):
        instance = any_instance(rng, int(rng.choice([1, 2, 3, 5, 9, 20])), int(rng.choice([1, 2, 3, 5])))
        horizon = int(rng.choice([0, 1, instance.n_arms, 10 * instance.n_arms + 1, 3000, 20_000]))
        run = assert_same(
            any_policy(rng, instance),
            instance,
            horizon,
            seed,
            int(rng.choice([horizon // 40 + 1, 1000, 10**9])),
        )
        eliminations += len(run.eliminations)
        finished += run.finished
    assert eliminations > 1000
    assert finished > 200


@pytest.mark.parametrize("seed", range(4))
def test_many_arms(seed):
    """K = 300: stretches shorter than a pass, and a buffer that ends inside one."""
    rng = np.random.default_rng(seed)
    instance = lb.Instance(rng.uniform(0, 1, (300, 3)), noise_sd=[0.3, 1.0, 0.1])
    out = lb.LexElimOut(300, 3, delta=0.1, optimal_set_sizes=(1, 1, 1), noise_sd=0.1)
    inside = lb.LexElimIn(300, 3, delta=0.1, tradeoff=0.5, noise_sd=[0.1, 0.1, 0.05])
    for policy in (out, inside):
        run = assert_same(policy, instance, 50_000, seed, per_call=[10**9, 12_345][seed % 2])
        assert len(run.eliminations) > 50


def test_a_pass_longer_than_the_buffer():
    instance = lb.random_instance(9000, 2, seed=0, ties=False)
    assert_same(lb.LexElimIn(9000, 2, delta=0.1, tradeoff=0.1, noise_sd=0.05), instance, 20_000, 3)


def test_a_desk_serves_run_after_run():
    instance = lb.paper_instance(10)
    policy = lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1), noise_sd=0.1)
    many = replicate(policy, instance, horizon=10**5, seed=5, first=0, count=20)
    for replication in range(20):
        run = lb.simulate(policy, instance, horizon=10**5, seed=5, replication=replication)
        assert run.rounds == many.rounds[replication]
        assert np.array_equal(np.bincount(run.arms, minlength=10), many.pulls[replication])


def test_a_policy_without_a_band_is_refused():
    with pytest.raises(ValueError, match="quiet_band"):
        screened_runs(lb.UCB1.rules)


def lonely_band(state, pulls: int, band: Vector) -> None:
    """A band so narrow that every pull is asked about, even of a single arm."""
    for i in range(band.size):
        band[i] = -1.0


class Nervous(lb.LexElimIn):
    rules = lb.LexElimIn.rules._replace(quiet_band=lb.policies.kernel(lonely_band))


class Plain(lb.LexElimIn):
    """Ordinary functions, not compiled."""

    rules = lb.policies.Rules(*(partial(f) for f in lb.LexElimIn.rules[:4]))  # no kernels


@pytest.mark.parametrize("policy_class", [Nervous, Plain])
def test_policies_from_outside(policy_class: type[Policy]):
    """A band may be too narrow, and functions need not be compiled: the run is the same."""
    instance = lb.Instance([[1, 0.5], [1, 1], [0, 2]], noise_sd=0.3)
    policy = policy_class(3, 2, delta=0.1, tradeoff=1.0, noise_sd=0.05)
    run = assert_same(policy, instance, 500, 1)
    ours = by_pulls(lb.LexElimIn(3, 2, delta=0.1, tradeoff=1.0, noise_sd=0.05), instance, 500, 1)[0]
    assert bits(run.state) == bits(ours.state)


@pytest.mark.interpreted
def test_small_and_interpreted():
    """What also runs with LEXBANDITS_JIT=0."""
    rng = np.random.default_rng(9)
    for seed in range(10):
        instance = any_instance(rng, int(rng.choice([2, 5])), int(rng.choice([1, 3])))
        assert_same(any_policy(rng, instance), instance, 400, seed, per_call=150)


def test_interpreted_mode_gives_the_same_numbers():
    script = textwrap.dedent(
        """
        import hashlib, lexbandits as lb
        instance = lb.paper_instance(10)
        inside = lb.LexElimIn(10, 3, delta=0.1, tradeoff=2, noise_sd=0.05)
        out = lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1), noise_sd=0.05)
        ege = lb.ExponentialGapElimination(10, 3, delta=0.1, noise_sd=0.3, target_size=3)
        cells = [
            lb.simulation.Cell("in", inside, instance, 800),
            lb.simulation.Cell("out", out, instance, 800),
            lb.simulation.Cell("ege", ege, instance, 10**8),
            lb.simulation.Cell("ucb", lb.UCB1(10, 3), instance, 300),
        ]
        results = lb.sweep(cells, replications=3, seed=1)
        digest = hashlib.blake2b()
        for runs in results.runs.values():
            for column in runs:
                digest.update(column.tobytes())
        print(digest.hexdigest(), results.regret("in", [10, 400])[0].tolist())
        """
    )
    compiled, interpreted = outputs(script)
    assert compiled == interpreted != ""


def test_a_state_in_one_piece_is_the_same_and_its_memory_is_all_of_it():
    both = np.arange(6.0)
    state = Overlapping(both, both[2:], np.asfortranarray(np.ones((2, 3), np.int32)), np.array([True, False]))
    copy, memory = in_one_piece(state)
    for old, new in zip(state, copy, strict=True):
        assert (old.dtype, old.strides) == (new.dtype, new.strides)
        assert np.array_equal(old, new)
    before = memory.copy()
    copy.both[3] = 7.0
    assert copy.tail[1] == 7.0, "what was shared is shared"
    assert both[3] == 3.0, "and the old arrays are left alone"
    copy.truths[:] = True
    memory[:] = before
    assert bits(copy) == bits(state)


def test_a_stream_goes_on_from_the_words_written():
    rng = stream(0, 0)
    words = words_of(rng)
    for replication, start in zip((4, 5), stream_words(7, (4, 5)), strict=True):
        words[:] = start
        assert rng.standard_normal(100).tolist() == stream(7, replication).standard_normal(100).tolist()
