"""The baselines: are they the published algorithms, and do they behave as their theory says?"""

import json
import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.stats import binom

import lexbandits as lb
from lexbandits._jit import INTERPRETED
from lexbandits.environments.noise import stream
from lexbandits.policies import chance
from lexbandits.policies.exponential_gap import State as EGEState
from lexbandits.policies.order import resettle
from lexbandits.policies.pf_lex import chain, kept
from lexbandits.policies.ucb_alpha import parted
from lexbandits.simulation.trajectory import play
from support import oracle
from support.bandit_problems import drive, noisy, outputs, problems, replay
from support.examples import up_to

long = pytest.mark.skipif(INTERPRETED, reason="millions of rounds")


def check(policy, draw, horizon, expected, left=None, out=()):
    """Oracle = ask/tell = replay = simulate: arms, candidates and eliminations."""
    told = policy.fresh()
    assert drive(told, draw, horizon)[0] == expected
    replayed = replay(policy, expected, draw)
    assert replayed == told
    rounds = iter(range(horizon))
    instance = lb.Instance(
        np.zeros((policy.n_arms, policy.n_objectives)), noise=lambda rng, arm: draw(next(rounds), arm)
    )
    run = lb.simulate(policy, instance, horizon=horizon, seed=5, replication=2)
    if "seed" not in policy.settings:  # the draws of a run are its own
        assert run.arms.tolist() == expected
        assert run.eliminations == told.eliminations
    for candidates in (told.candidates, replayed.candidates):
        assert set(candidates) == (set(range(policy.n_arms)) if left is None else left)
    assert [tuple(e) for e in told.eliminations] == list(out)


sigmas = st.sampled_from([0.25, 0.5, 1.0])
deltas = st.sampled_from([0.01, 0.3, 0.9])


@given(problems(), deltas, sigmas, st.sampled_from([300.0, 3000.0, 1e5, 1e7]), st.data())
@settings(max_examples=up_to(150))
def test_exponential_gap_elimination_is_the_published_one(problem, delta, sigma, scale, data):
    K, m, horizon, draw = problem
    objective, target = data.draw(st.integers(0, m - 1)), data.draw(st.integers(1, K))
    horizon *= 4
    policy = lb.ExponentialGapElimination(
        K, m, delta=delta, objective=objective, noise_sd=sigma, target_size=target, scale=scale
    )
    expected = oracle.exponential_gap(draw, K, m, delta, horizon, objective, sigma, target, scale)
    check(policy, draw, horizon, *expected)


@given(problems(), deltas, sigmas, st.sampled_from([1.0, 1.5, 3.0]), st.booleans(), st.data())
@settings(max_examples=up_to(150))
def test_ucb_alpha_is_the_published_one(problem, delta, sigma, alpha, rigorous, data):
    K, m, horizon, draw = problem
    objective, k = data.draw(st.integers(0, m - 1)), data.draw(st.integers(1, K))
    policy = lb.UCBAlpha(
        K,
        m,
        delta=delta,
        alpha=alpha,
        objective=objective,
        noise_sd=sigma,
        target_size=k,
        rigorous=rigorous,
    )
    expected = oracle.ucb_alpha(draw, K, m, delta, alpha, horizon, objective, sigma, k, rigorous)
    check(policy, draw, horizon, *expected)


@given(problems(objectives=4), deltas, st.sampled_from([0.1, 1.0, 4.0]), st.data())
@settings(max_examples=up_to(150))
def test_pf_lex_is_the_published_one(problem, delta, epsilon, data):
    K, m, horizon, draw = problem
    sigma = data.draw(st.lists(st.sampled_from([0.125, 0.5, 1.0]), min_size=m, max_size=m))
    variant, seed = data.draw(st.sampled_from(["official", "xue"])), data.draw(st.integers(0, 9))
    policy = lb.PFLex(K, m, delta=delta, epsilon=epsilon, noise_sd=sigma, variant=variant, seed=seed)
    key = chance.policy_key(seed)

    def uniform(t):
        return chance.uniform(key, t, 0)

    check(policy, draw, horizon, oracle.pf_lex(draw, K, m, delta, epsilon, horizon, uniform, sigma, variant))


@given(problems(), sigmas, st.data())
@settings(max_examples=50)
def test_the_classical_ones_are_the_published_ones(problem, sigma, data):
    K, m, horizon, draw = problem
    i = data.draw(st.integers(0, m - 1))
    settings = {"objective": i, "noise_sd": [sigma if j == i else 9.0 for j in range(m)]}
    check(lb.UCB1(K, m, **settings), draw, horizon, oracle.ucb1(draw, K, horizon, i, sigma))
    check(lb.MOSSAnytime(K, m, **settings), draw, horizon, oracle.moss_anytime(draw, K, horizon, i, sigma))
    check(lb.RoundRobin(K, m, **settings), draw, horizon, [t % K for t in range(horizon)])
    key = chance.policy_key(4)

    def normal(t, a):
        return chance.normal(key, t, a)

    expected = oracle.thompson(draw, K, horizon, normal, i, sigma)
    check(lb.ThompsonSampling(K, m, seed=4, **settings), draw, horizon, expected)


@given(problems(), sigmas, st.sampled_from([0.0, 3.0]), st.data())
@settings(max_examples=50)
def test_kl_ucb_and_imed_are_the_published_ones(problem, sigma, c, data):
    K, m, horizon, draw = problem
    i = data.draw(st.integers(0, m - 1))

    def unit(t, a):
        return [1 / (1 + math.exp(-x)) for x in draw(t, a)]

    gaussian = {"objective": i, "noise_sd": [sigma if j == i else 9.0 for j in range(m)]}
    policy = lb.KLUCB(K, m, exploration=c, **gaussian)
    check(policy, draw, horizon, oracle.kl_ucb(draw, K, horizon, i, sigma, c))
    check(lb.IMED(K, m, **gaussian), draw, horizon, oracle.imed(draw, K, horizon, i, sigma))
    bernoulli = {"objective": i, "divergence": "bernoulli"}
    policy = lb.KLUCB(K, m, exploration=c, **bernoulli)
    check(policy, unit, horizon, oracle.kl_ucb(unit, K, horizon, i, None, c))
    check(lb.IMED(K, m, **bernoulli), unit, horizon, oracle.imed(unit, K, horizon, i))


@given(problems(), deltas, st.sampled_from([0.01, 0.3]), st.sampled_from([0.0, 0.5, 2.0]), st.data())
@settings(max_examples=up_to(60))
def test_mtlo_is_the_published_one(problem, delta, scale, tradeoff, data):
    K, m, horizon, draw = problem
    T, seed = data.draw(st.sampled_from([4, 100, 10_000])), data.draw(st.integers(0, 9))
    given = {"tradeoff": tradeoff, "delta": delta, "horizon": T, "scale": scale, "bound": 0.7}
    policy = lb.MTLO(K, m, noise_sd=[0.25] * (m - 1) + [0.5], seed=seed, **given)
    key = chance.policy_key(seed)
    expected = oracle.mtlo(
        draw, K, m, delta, tradeoff, horizon, T, lambda t: chance.uniform(key, t, 0), 0.5, 0.7, scale
    )
    check(policy, draw, horizon, expected)


# --- simulated runs, compiled and interpreted

POLICIES = {
    "EGE": ("ExponentialGapElimination", {"delta": 0.1, "target_size": 2, "scale": 2000.0, "noise_sd": 0.3}),
    "UCB": ("UCBAlpha", {"delta": 0.1, "alpha": 2.0, "target_size": 2, "noise_sd": 0.3}),
    "PF": ("PFLex", {"delta": 0.1, "epsilon": 0.7, "noise_sd": [0.2, 0.3, 0.1], "seed": 1}),
    "PF, xue": ("PFLex", {"delta": 0.1, "epsilon": 0.5, "noise_sd": 0.2, "variant": "xue"}),
    "UCB1": ("UCB1", {"objective": 1, "noise_sd": 0.3}),
    "MOSS": ("MOSSAnytime", {"objective": 1, "noise_sd": 0.3}),
    "Thompson": ("ThompsonSampling", {"noise_sd": 0.3, "seed": 2}),
    "round robin": ("RoundRobin", {}),
}
MEANS = [[0.5, 0.2, 0.1], [1.0, 0.4, 0.8], [0.2, 0.9, 0.3], [1.0, 0.9, 0.0], [0.8, 1.0, 1.0]]
RUN = """
import json, sys
import lexbandits as lb
policies, means = json.loads(sys.argv[1])
instance = lb.Instance(means, noise_sd=0.3)
for label, (name, settings) in policies.items():
    policy = lb.policies.BY_NAME[name](5, 3, **settings)
    run = lb.simulate(policy, instance, horizon=1500, seed=8, replication=1)
    print(json.dumps([label, run.arms.tolist(), run.candidates, run.recommendation, run.eliminations]))
"""


@pytest.mark.parametrize("label", POLICIES)
def test_a_simulated_run_is_the_ask_and_tell_run_on_the_same_noise(label):
    name, given = POLICIES[label]
    instance = lb.Instance(MEANS, noise_sd=0.3)
    policy = lb.policies.BY_NAME[name](5, 3, **given)
    run = lb.simulate(policy, instance, horizon=1500, seed=8, replication=1)
    policy.start_run(8, 1)
    played, _, out = drive(policy, noisy(instance, 8, 1500, replication=1), 1500)
    assert played == run.arms.tolist()
    assert out == list(map(tuple, run.eliminations))


@long
def test_compiled_and_interpreted_runs_are_the_same():
    compiled, interpreted = outputs(RUN, json.dumps([POLICIES, MEANS]))
    assert compiled == interpreted != ""


def test_randomised_policies_draw_from_their_seed_the_run_and_the_round():
    instance = lb.Instance(np.zeros((6, 2)), noise_sd=0.5)
    for make in (
        lambda seed: lb.PFLex(6, 2, delta=0.1, epsilon=0.01, seed=seed),
        lambda seed: lb.ThompsonSampling(6, 2, seed=seed),
    ):
        runs = [
            lb.simulate(make(policy), instance, horizon=60, seed=seed, replication=replication).arms.tolist()
            for policy, seed, replication in [(0, 0, 0), (0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]
        ]
        assert runs[0] == runs[1]
        assert len({tuple(run) for run in runs}) == 4
        policy = make(0)
        policy.tell_many(range(6), np.zeros((6, 2)))
        assert len({policy.ask([3] * n) for n in range(30)}) > 2  # pulls handed out together differ


# --- random draws


def test_philox_has_its_authors_known_answers():
    """From the `kat_vectors` of Random123; the second word pair of the counter is the lane."""
    vectors = [
        ((0, 0), (0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (
            (0xA4093822, 0x299F31D0),
            (0x85A308D3_243F6A88, 0x03707344_13198A2E),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ]
    for key, (low, high), words in vectors:
        mask = 2**32 - 1
        counter = (low & mask, low >> 32, high & mask, high >> 32)
        assert " ".join(f"{word:08x}" for word in oracle.philox(key, counter)) == words
        if low < 2**63:
            assert chance.philox(np.array(key), low, high) == oracle.philox(key, counter)


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**62), st.integers(0, 10**6))
@settings(max_examples=up_to(200))
def test_philox_is_philox(key_0, key_1, round, lane):
    counter = (round % 2**32, round >> 32, lane, 0)
    words = chance.philox(np.array([key_0, key_1]), round, lane)
    assert words == oracle.philox((key_0, key_1), counter)
    assert (
        chance.uniform(np.array([key_0, key_1]), round, lane) == ((words[0] << 21) + (words[1] >> 11)) / 2**53
    )


def test_normal_draws_are_normal():
    key = chance.policy_key(1)
    draws = np.sort([chance.normal(key, t, lane) for t in range(1000) for lane in range(4)])
    cdf = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in draws])
    ranks = np.arange(draws.size) / draws.size
    distance = max(np.max(cdf - ranks), np.max(ranks + 1 / draws.size - cdf))
    assert distance < 3.3 / math.sqrt(draws.size)  # Kolmogorov: 2·exp(−2·3.3²) is below one in a billion


# --- PF-LEX's chains

intervals = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 4)), min_size=1, max_size=12)


@given(intervals, intervals, st.data())
@settings(max_examples=up_to(400))
def test_chains_are_the_transitive_closure(first, second, data):
    """On the second objective links may run through arms that the first one has ruled out."""
    n = min(len(first), len(second))
    lower = np.array([[a[0], b[0]] for a, b in zip(first, second, strict=False)], dtype=float)
    upper = lower + np.array([[a[1], b[1]] for a, b in zip(first, second, strict=False)])
    orders = np.tile(np.arange(n), (2, 1))
    for i in range(2):
        for arm in data.draw(st.permutations(range(n))):  # each resettled among some not yet in order
            resettle(orders[i], upper, i, arm)
        for _ in range(n):
            for arm in range(n):
                resettle(orders[i], upper, i, arm)
        assert orders[i].tolist() == sorted(range(n), key=lambda a: (-upper[a, i], a))
    floors = np.empty(2)
    A = range(n)
    for i in range(2):
        chain(upper, lower, orders, floors, i)
        A = oracle.chained(upper.tolist(), lower.tolist(), i, A)
        assert [a for a in range(n) if kept(upper, floors, a, i + 1)] == A


# --- Exponential-Gap Elimination


def next_batch(policy):
    """The first arm of the stage that lacks pulls, and how many."""
    counts = np.zeros(policy.n_arms, np.int64)
    policy.rules.batch(policy.state, counts)
    arm = int(np.flatnonzero(counts)[0])
    return arm, int(counts[arm])


def by_batches(policy, instance, seed):
    """Run to the end on sums of Gaussian rewards drawn at once, as a simulator may."""
    rng, batches = np.random.default_rng(seed), 0
    while not policy.finished:
        arm, count = next_batch(policy)
        noise = rng.standard_normal(instance.n_objectives)
        policy.rules.observe_sum(
            policy.state,
            arm,
            count,
            count * instance.means[arm] + math.sqrt(count) * instance.noise_sds * noise,
        )
        batches += 1
    return batches


@given(problems(), st.sampled_from([3000.0, 1e4]), st.integers(0, 10**6))
@settings(max_examples=up_to(60))
def test_the_same_sums_make_the_same_decisions_whole_or_pull_by_pull(problem, scale, seed):
    """Rewards are quarters, so that sums are exact; a stage is told in any order."""
    K, m, _, draw = problem
    order = random.Random(seed)
    whole = lb.ExponentialGapElimination(K, m, delta=0.5, objective=m - 1, scale=scale)
    pulled = whole.fresh()
    told = 0
    while not whole.finished and told + whole.state.lacking[0] < 800:
        pulls, lacking = [], int(whole.state.lacking[0])
        while len(pulls) < lacking:
            arm, count = next_batch(whole)
            count = order.randint(1, count)  # a batch may come in pieces
            rewards = [np.round(np.multiply(draw(told + k, arm), 4)) / 4 for k in range(count)]
            whole.rules.observe_sum(whole.state, arm, count, np.sum(rewards, axis=0))
            pulls += [(arm, reward) for reward in rewards]
            told += count
        order.shuffle(pulls)
        for arm, reward in pulls:
            pulled.tell(arm, reward)
        assert pulled == whole


def test_a_reward_that_no_stage_needs_is_only_recorded():
    policy = lb.ExponentialGapElimination(4, 1, delta=0.5, scale=1e7)
    state: EGEState = policy.state
    assert state.quota[0] == 1
    policy.tell(0, [1.0])
    before = state.sums.copy(), state.fresh.copy(), int(state.lacking[0])
    policy.tell(0, [100.0])  # a second one: the stage needs one pull of each arm
    assert (state.sums == before[0]).all()
    assert (state.fresh == before[1]).all()
    assert state.lacking[0] == before[2] == 3
    assert policy.pulls[0] == 2
    assert policy.means[0, 0] == 50.5
    assert [policy.ask(), policy.ask([1]), policy.ask([1, 2]), policy.ask([1, 2, 3])] == [1, 2, 3, 0]
    policy.tell_many([3, 2, 1], [[0.5], [0.0], [0.25]])  # in any order
    assert state.halving[0]
    assert state.estimates.tolist() == [1.0, 0.25, 0.0, 0.5]
    policy.tell_many([1, 0, 3, 2], [[0.0], [1.0], [1.0], [0.0]])
    assert state.contenders.tolist() == [True, False, False, True]  # the better half
    policy.tell_many([1, 3, 0], [[9.0], [0.0], [0.0]])  # arm 1 is in the running, but no contender
    assert state.leader[0] == 0  # of equals the first
    assert [tuple(e) for e in policy.eliminations] == [(1, 12, 0, 0), (2, 12, 0, 0), (3, 12, 0, 0)]
    assert policy.finished


def test_an_arm_exactly_epsilon_below_stays():
    policy = lb.ExponentialGapElimination(3, 1, delta=0.5, scale=1e7)
    policy.tell_many([0, 1, 2], [[1.0], [0.875], [0.8125]])  # ε_1 = 1/8
    policy.tell_many([0, 1, 2, 0, 1], [[1.0], [0.5], [0.0], [1.0], [0.0]])
    assert policy.state.leader[0] == 0
    assert policy.candidates == (0, 1)


def test_stages_ask_for_the_published_numbers_of_pulls():
    """As published: K = 30, round 1, ε = 1/8."""
    policy = lb.ExponentialGapElimination(30, 1, delta=0.05)
    assert policy.state.quota[0] == math.ceil(2 / (1 / 8) ** 2 * math.log(2 / (0.05 / 50)))
    for arm in range(30):
        policy.rules.observe_sum(policy.state, arm, int(policy.state.quota[0]), np.zeros(1))
    assert policy.state.quota[0] == math.ceil(4 / (1 / 64) ** 2 * math.log(3 / (0.05 / 100)))
    wide = lb.ExponentialGapElimination(30, 1, delta=0.05, noise_sd=1.0, scale=3900)
    assert wide.state.quota[0] == math.ceil(4 * 2 / (1 / 8) ** 2 * math.log(2 / (0.05 / 50)) / 3900)


def median_elimination_errors(scale, runs):
    """How often the first Median Elimination ends with an arm more than ε_1/2 below the best."""
    means = np.full((8, 1), 0.5 - 1.0001 / 16)  # ε_1/2 = 1/16
    means[5] = 0.5
    instance, wrong = lb.Instance(means, noise_sd=0.5), 0
    for seed in range(runs):
        policy = lb.ExponentialGapElimination(8, 1, delta=0.99, scale=scale)
        rng = np.random.default_rng(seed)
        while policy.state.leader[0] < 0:
            arm, count = next_batch(policy)
            total = count * instance.means[arm] + math.sqrt(count) * 0.5 * rng.standard_normal(1)
            policy.rules.observe_sum(policy.state, arm, count, total)
        wrong += policy.state.leader[0] != 5
    return wrong


@long
def test_median_elimination_keeps_its_promise_and_scale_voids_it():
    """(ε, δ) = (1/16, 0.99/50), Gaussian noise of variance 1/4, all other arms just beyond ε."""
    runs = 500
    allowed = binom.isf(1e-9, runs, 0.99 / 50)
    assert median_elimination_errors(1.0, runs) <= allowed
    assert median_elimination_errors(2000.0, runs) > allowed


@long
def test_as_published_a_hundred_runs_on_thirty_arms_take_seconds():
    instance = lb.paper_instance(30)
    by_batches(lb.ExponentialGapElimination(30, 3, delta=0.01, target_size=3), instance, 0)
    started, pulls, wrong = time.process_time(), [], 0
    for seed in range(100):
        policy = lb.ExponentialGapElimination(30, 3, delta=0.01, target_size=3)
        by_batches(policy, instance, seed)
        pulls.append(policy.rounds)
        wrong += policy.candidates != instance.optimal_set(0)
        assert policy.rounds == policy.pulls.sum()
    assert time.process_time() - started < 20
    assert np.mean(pulls) > 1e8
    assert wrong <= binom.isf(1e-9, 100, 0.01)


def test_ties_stop_at_the_size_of_the_tied_set_and_never_below_it():
    instance = lb.Instance([[1.0], [0.0], [1.0], [0.5]], noise_sd=0.05)
    for make in (
        lambda k: lb.ExponentialGapElimination(4, 1, delta=0.1, target_size=k, noise_sd=0.05, scale=100),
        lambda k: lb.UCBAlpha(4, 1, delta=0.1, alpha=2, target_size=k, noise_sd=0.05),
    ):
        run = lb.simulate(make(2), instance, horizon=2000, seed=1)
        assert run.finished
        assert run.candidates == (0, 2)
        assert {e.arm for e in run.eliminations} == {1, 3}
        assert {e.rival for e in run.eliminations} <= {0, 2}
        assert all(e.round <= run.rounds for e in run.eliminations)
        endless = lb.simulate(make(1), instance, horizon=2000, seed=1)
        assert not endless.finished
        assert endless.rounds == 2000
        assert make(4).finished
        assert make(4).candidates == (0, 1, 2, 3)


def test_the_answer_of_a_stopped_set_stands_whatever_comes_late():
    for policy in (
        lb.ExponentialGapElimination(3, 1, delta=0.1, target_size=2, noise_sd=0.05, scale=1000),
        lb.UCBAlpha(3, 1, delta=0.1, alpha=2, target_size=2, noise_sd=0.05),
    ):
        drive(policy, lambda t, a: [[1.0, 0.0, 1.1][a]], 1000)
        assert policy.finished
        assert (policy.candidates, policy.recommendation) == ((0, 2), 2)
        policy.tell_many([0] * 50 + [1] * 50, [[9.0]] * 100)
        assert (policy.candidates, policy.recommendation, policy.ask()) == ((0, 2), 2, 2)
        assert policy.means[0, 0] > policy.means[2, 0]


# --- UCB_α against its two-arm fluid limit


def fluid(alpha, sigma, gap, delta):
    """(n_1, n_2) where the indices are equal and the intervals part, each count with its own log."""

    def log_term(n):
        return math.log(3 * math.log(n) ** 2 / delta)

    def solve(slope):
        """n with sqrt(2σ²L(n)/n) = slope."""
        return brentq(lambda n: 2 * sigma**2 * log_term(n) / n - slope**2, 2, 1e15)

    # ε_2 + ε_1 = Δ and α(ε_2 − ε_1) = Δ
    return solve(gap / 2 * (1 - 1 / alpha)), solve(gap / 2 * (1 + 1 / alpha))


@pytest.mark.parametrize("alpha", [1.5, 2.0, 3.0, 6.0])
def test_without_noise_ucb_alpha_is_its_fluid_limit(alpha):
    """And the closed forms, L the log at the count in question: regret and decision time of Degenne et al."""
    sigma, gap, delta = 0.5, 0.1, 1e-6
    instance = lb.Instance([[gap], [0.0]], noise_sd=1e-9)
    run = lb.simulate(
        lb.UCBAlpha(2, 1, delta=delta, alpha=alpha, noise_sd=sigma), instance, horizon=10**5, seed=0
    )
    n_1, n_2 = fluid(alpha, sigma, gap, delta)
    assert run.finished
    assert run.candidates == (0,)
    pulls = np.bincount(run.arms, minlength=2)
    assert pulls[0] == pytest.approx(n_1, rel=0.01, abs=3)
    assert pulls[1] == pytest.approx(n_2, rel=0.01, abs=3)
    L_1, L_2 = (math.log(3 * math.log(n) ** 2 / delta) for n in (n_1, n_2))
    regret = 8 * sigma**2 * L_2 * alpha**2 / ((alpha + 1) ** 2 * gap)
    decision = 8 * sigma**2 / gap**2 * alpha**2 * (L_1 / (alpha - 1) ** 2 + L_2 / (alpha + 1) ** 2)
    assert gap * n_2 == pytest.approx(regret, rel=1e-6)
    assert n_1 + n_2 == pytest.approx(decision, rel=1e-6)


@long
def test_with_noise_ucb_alpha_trades_regret_for_time_as_the_fluid_limit_says():
    """δ so small that the logarithm outweighs the noise: averages of 100 runs within a few percent."""
    sigma, gap, delta = 1.0, 0.5, 1e-60
    instance = lb.Instance([[gap], [0.0]], noise_sd=sigma)
    regrets, times = [], []
    for alpha in (1.5, 2.0, 4.0):
        policy = lb.UCBAlpha(2, 1, delta=delta, alpha=alpha, noise_sd=sigma)
        runs = [lb.simulate(policy, instance, horizon=10**6, seed=1, replication=r) for r in range(100)]
        assert all(run.candidates == (0,) for run in runs)
        n_1, n_2 = fluid(alpha, sigma, gap, delta)
        regrets.append(np.mean([run.regret(instance)[-1, 0] for run in runs]))
        times.append(np.mean([run.rounds for run in runs]))
        assert regrets[-1] == pytest.approx(gap * n_2, rel=0.05)
        assert times[-1] == pytest.approx(n_1 + n_2, rel=0.05)
    assert regrets == sorted(regrets)
    assert times == sorted(times, reverse=True)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=2, max_size=7), st.data())
@settings(max_examples=up_to(500))
def test_the_stopping_test_looks_at_every_interval(arms, data):
    """Widths differ: neither the worst mean inside nor the best outside need have the end that counts."""
    means, widths = (np.array(column, dtype=float) for column in zip(*arms, strict=True))
    k = data.draw(st.integers(1, len(arms) - 1))
    order = np.array(sorted(range(len(arms)), key=lambda a: (-means[a], a)))
    lower, upper = means - widths, means + widths
    expected = lower[order[:k]].min() > upper[order[k:]].max()
    assert parted(means[:, None].copy(), 0, widths, order, k) == expected


def test_rigorous_divides_delta_by_the_arms():
    one = lb.UCBAlpha(5, 1, delta=0.1, alpha=2, rigorous=True)
    two = lb.UCBAlpha(5, 1, delta=0.02, alpha=2)
    rewards = [[float(t % 3)] for t in range(10)]
    one.tell_many([*range(5)] * 2, rewards)
    two.tell_many([*range(5)] * 2, rewards)
    assert (one.state.widths == two.state.widths).all()


# --- the classical ones against Lai and Robbins


def growth(policy, gap, early, late, runs):
    """Mean regret made between two rounds; σ = 1."""
    instance = lb.Instance([[gap], [0.0]], noise_sd=1.0)
    total = 0.0
    for replication in range(runs):
        run = policy.fresh()
        run.start_run(0, replication)
        rng = stream(0, replication)
        play(run, instance, rng, np.empty(early, np.int64))
        before = run.pulls[1]
        play(run, instance, rng, np.empty(late - early, np.int64))
        total += gap * (run.pulls[1] - before) / runs
    return total


def bonus(name, sigma, t, n):
    if name == "UCB1":
        return sigma * math.sqrt(8 * math.log(t) / n)
    return 2 * sigma * math.sqrt(2.35 / 2 * max(0.0, math.log(t / (2 * n))) / n)


def balanced(name, sigma, gap, t):
    """The pulls of the worse arm at which both indices are equal after t pulls."""
    return brentq(lambda n: bonus(name, sigma, t, n) - bonus(name, sigma, t, t - n) - gap, 1, min(t / 2, 1e6))


@long
def test_thompson_sampling_grows_as_lai_and_robbins_say():
    """2σ²/Δ for each unit of ln t, as t grows; approached from below, −ln ln t being the next term."""
    early, late, gap = 1000, 50_000, 1.0
    made = growth(lb.ThompsonSampling(2, 1), gap, early, late, 100)
    assert 0.6 < made / math.log(late / early) / (2 / gap) < 1.1


@long
@pytest.mark.parametrize("name", ["KLUCB", "IMED"])
def test_divergences_pay_what_lai_and_robbins_ask_for(name):
    """2σ²/Δ for each unit of ln t: KL-UCB from above, IMED from below (Honda and Takemura 2015, Figure 1)."""
    early, late, gap = 1000, 100_000, 1.0
    made = growth(lb.policies.BY_NAME[name](2, 1), gap, early, late, 200)
    assert 0.7 < made / math.log(late / early) / (2 / gap) < 1.2


@long
@pytest.mark.parametrize("name", ["KLUCB", "IMED"])
def test_bernoulli_divergences_follow_burnetas_and_katehakis(name):
    """log t/kl(μ, μ*) pulls of the worse arm, approached from below."""
    means, horizon, runs = (0.9, 0.75), 20_000, 60
    instance = lb.Instance([[mean] for mean in means], noise="bernoulli")
    policy = lb.policies.BY_NAME[name](2, 1, divergence="bernoulli")
    runs = [lb.simulate(policy, instance, horizon=horizon, seed=1, replication=r) for r in range(runs)]
    pulls = [np.sum(run.arms == 1) for run in runs]
    bound = math.log(horizon) / oracle.kl(means[1], means[0])
    assert 0.4 < np.mean(pulls) / bound < 1.1


@long
@pytest.mark.parametrize(("name", "constant"), [("UCB1", 4.0), ("MOSSAnytime", 2.35)])
def test_indices_pay_lai_and_robbins_times_their_constant(name, constant):
    """In the limit, which the balance of the two indices reaches slowly; at hand, what that balance says."""
    gap, t = 1.0, 1e300
    assert balanced(name, 1.0, gap, t) == pytest.approx(constant * 2 / gap**2 * math.log(t), rel=0.02)
    early, late = 1000, 100_000
    expected = gap * (balanced(name, 1.0, gap, late) - balanced(name, 1.0, gap, early))
    assert growth(lb.policies.BY_NAME[name](2, 1), gap, early, late, 100) == pytest.approx(expected, rel=0.15)


@pytest.mark.parametrize("name", ["UCB1", "MOSSAnytime"])
def test_without_noise_the_two_indices_stay_balanced(name):
    gap, sigma, t = 0.5, 0.7, 20_000
    instance = lb.Instance([[gap], [0.0]], noise_sd=1e-9)
    run = lb.simulate(lb.policies.BY_NAME[name](2, 1, noise_sd=sigma), instance, horizon=t, seed=0)
    assert np.sum(run.arms == 1) == pytest.approx(balanced(name, sigma, gap, t), abs=2)


# --- pulls in flight


def test_an_index_counts_pulls_in_flight_as_made():
    def ucb_alpha(t, n):
        return 2 * 0.5 * math.sqrt(2 / n * math.log(3 * math.log(n) ** 2 / 0.1))

    for policy, extra in [
        (lb.UCB1(2, 1, noise_sd=0.5), lambda t, n: bonus("UCB1", 0.5, t, n)),
        (lb.MOSSAnytime(2, 1, noise_sd=0.5), lambda t, n: bonus("MOSSAnytime", 0.5, t, n)),
        (lb.UCBAlpha(2, 1, delta=0.1, alpha=2, noise_sd=0.5), ucb_alpha),
    ]:
        policy.tell_many([0, 0, 0, 1, 1, 1, 1, 1], [[0.8]] * 3 + [[0.5]] * 5)
        answers = []
        for mine in range(12):
            for other in range(4):
                t = 8 + mine + other
                index = [0.8 + extra(t, 3 + mine), 0.5 + extra(t, 5 + other)]
                answers.append(policy.ask([0] * mine + [1] * other))
                assert answers[-1] == index.index(max(index))
        assert set(answers) == {0, 1}


def test_arms_whose_first_rewards_are_in_flight_wait_for_them():
    for policy in (lb.UCB1(3, 1), lb.MOSSAnytime(3, 1), lb.UCBAlpha(3, 1, delta=0.1, alpha=2)):
        assert [policy.ask([]), policy.ask([0]), policy.ask([0, 1]), policy.ask([0, 1, 2])] == [0, 1, 2, 0]
        policy.tell(1, [-50.0])
        policy.tell(1, [-50.0])
        assert policy.ask([0, 0]) == 2
        assert policy.ask([0, 0, 2, 2]) == 1
    thompson = lb.ThompsonSampling(3, 1)
    thompson.tell(1, [0.0])
    assert [thompson.ask(), thompson.ask([0]), thompson.ask([0, 2]), thompson.ask([2])] == [0, 2, 1, 0]


# --- bad input


@pytest.mark.parametrize(
    ("name", "settings", "error", "match"),
    [
        ("UCBAlpha", {"delta": 0.1, "alpha": 0.99}, ValueError, "alpha must be at least 1"),
        ("UCBAlpha", {"delta": 0.1, "alpha": math.nan}, ValueError, "alpha"),
        ("UCBAlpha", {"delta": 0.1, "alpha": "2"}, TypeError, "alpha"),
        ("UCBAlpha", {"delta": 1.0, "alpha": 2}, ValueError, "delta"),
        (
            "UCBAlpha",
            {"delta": 0.1, "alpha": 2, "target_size": 0},
            ValueError,
            r"target_size must be in 1\.\.4",
        ),
        ("UCBAlpha", {"delta": 0.1, "alpha": 2, "target_size": 5}, ValueError, "target_size"),
        ("UCBAlpha", {"delta": 0.1, "alpha": 2, "target_size": 1.5}, TypeError, "target_size"),
        ("UCBAlpha", {"delta": 0.1, "alpha": 2, "objective": 2}, ValueError, r"objective must be in 0\.\.1"),
        ("UCBAlpha", {"delta": 0.1, "alpha": 2, "rigorous": 1}, TypeError, "rigorous"),
        ("ExponentialGapElimination", {"delta": 0.1, "scale": 0}, ValueError, "scale"),
        ("ExponentialGapElimination", {"delta": 0.1, "scale": math.inf}, ValueError, "scale"),
        ("ExponentialGapElimination", {"delta": 0.1, "target_size": 5}, ValueError, "target_size"),
        ("ExponentialGapElimination", {"delta": 0.1, "objective": -1}, ValueError, "objective"),
        ("ExponentialGapElimination", {"delta": 0.1, "objective": None}, TypeError, "objective"),
        ("PFLex", {"delta": 0.1, "epsilon": 0}, ValueError, "epsilon"),
        ("PFLex", {"delta": 0.1, "epsilon": -1}, ValueError, "epsilon"),
        ("PFLex", {"delta": 0.1, "epsilon": 0.1, "variant": "Xue"}, ValueError, "variant"),
        ("PFLex", {"delta": 0.1, "epsilon": 0.1, "variant": None}, TypeError, "variant"),
        ("PFLex", {"delta": 0.1, "epsilon": 0.1, "seed": -1}, ValueError, "seed"),
        ("PFLex", {"delta": 0.1, "epsilon": 0.1, "seed": 0.5}, TypeError, "seed"),
        ("ThompsonSampling", {"seed": -1}, ValueError, "seed"),
        ("ThompsonSampling", {"noise_sd": [1.0]}, ValueError, "noise_sd"),
        ("UCB1", {"objective": 2}, ValueError, "objective"),
        ("MOSSAnytime", {"noise_sd": 0}, ValueError, "noise_sd"),
        ("RoundRobin", {"objective": True}, TypeError, "objective"),
    ],
)
def test_bad_settings_are_refused(name, settings, error, match):
    with pytest.raises(error, match=match):
        lb.policies.BY_NAME[name](4, 2, **settings)


def test_seeds_may_be_large():
    policy = lb.ThompsonSampling(3, 1, seed=2**80)
    policy.start_run(2**70, 3)
    policy.tell_many([0, 1, 2], [[0.0]] * 3)
    assert policy.ask() in range(3)
    assert json.loads(json.dumps(policy.settings))["seed"] == 2**80
