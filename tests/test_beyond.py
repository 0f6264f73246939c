"""LexElim-Cone, -Phase and -Tol: their specification, the proofs' parts, and life's disorder."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize
from scipy.stats import norm

import lexbandits as lb
import oracle
from lexbandits.evidence.mixture import log_mixture, log_tail, mixture_ceiling
from lexbandits.evidence.radius import cost_of_time, mixture_radius, spread_of_mean, two_sample_radius
from lexbandits.policies.lexelim_cone import form_coalition, margin, weigh_coalition
from lexbandits.policies.lexelim_pool import LexElimPool
from lexbandits.policies.passes import next_judged
from lexbandits.world.noise import stream

coarse = st.integers(-4, 4).map(float)
fine = st.floats(-4, 4, width=32)
tradeoffs = st.sampled_from([0.0, 0.5, 1.0, 2.0])


@st.composite
def tapes(draw, most_objectives=4):
    """K, m, a horizon and rewards for any round and arm: a level per arm, ties included, and noise."""
    K, m = draw(st.integers(1, 5)), draw(st.integers(1, most_objectives))
    level = draw(st.lists(st.lists(st.integers(0, 2), min_size=m, max_size=m), min_size=K, max_size=K))
    scale = draw(st.sampled_from([0.0, 1.0, 4.0]))
    noise = draw(st.lists(st.lists(coarse | fine, min_size=m, max_size=m), min_size=1, max_size=40))

    def reward(t, a):
        row = noise[(t * 7 + a * 3) % len(noise)]
        return [scale * level[a][i] + row[i] for i in range(m)]

    return K, m, draw(st.integers(0, 150)), reward


def drive(policy, draw, horizon):
    played = []
    while not policy.finished and len(played) < horizon:
        arm = policy.ask()
        policy.tell(arm, [None if math.isnan(x) else x for x in draw(len(played), arm)])
        played.append(arm)
    return played, set(policy.candidates), sorted(tuple(e) for e in policy.eliminations)


def scales(data, m):
    return data.draw(st.none() | st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=m, max_size=m))


def noisy(instance, seed, horizon):
    """The rewards that `simulate` draws."""
    noise = stream(seed, 0).standard_normal((horizon, instance.n_objectives))
    return lambda t, a: (instance.means[a] + instance.noise_sds * noise[t]).tolist()


def same_run(policy, draw, horizon, expected):
    played, left, out = expected
    assert drive(policy, draw, horizon) == (played, left, sorted(out))
    replayed = policy.fresh()
    replayed.tell_many(played, [draw(t, a) for t, a in enumerate(played)])
    assert replayed == policy


# --- is this the specified algorithm?


@pytest.mark.interpreted
@given(tapes(), tradeoffs, st.booleans(), st.data())
@settings(max_examples=100)
def test_cone_is_its_specification(tape, tradeoff, dependent, data):
    K, m, horizon, draw = tape
    sigma = scales(data, m)
    policy = lb.LexElimCone(K, m, delta=0.4, tradeoff=tradeoff, noise_sd=sigma or 1.0, correlated=dependent)
    *expected, wealth = oracle.lexelim_cone(draw, K, m, 0.4, tradeoff, horizon, sigma, dependent)
    same_run(policy, draw, horizon, expected)
    assert policy.evidence == pytest.approx(list(wealth.values()), rel=1e-9, abs=1e-9)
    if not policy.finished:
        assert policy.recommendation in policy.candidates


@pytest.mark.interpreted
@given(tapes(), tradeoffs, st.data())
@settings(max_examples=100)
def test_pool_is_its_specification(tape, tradeoff, data):
    K, m, horizon, draw = tape
    sigma = scales(data, m)
    policy = LexElimPool(K, m, delta=0.4, tradeoff=tradeoff, noise_sd=sigma or 1.0)
    same_run(policy, draw, horizon, oracle.lexelim_pool(draw, K, m, 0.4, tradeoff, horizon, sigma))


@pytest.mark.interpreted
@given(tapes(), st.data())
@settings(max_examples=100)
def test_phase_is_its_specification(tape, data):
    K, m, horizon, draw = tape
    sigma = scales(data, m)
    sizes = sorted(data.draw(st.lists(st.integers(1, K), min_size=m - 1, max_size=m - 1)), reverse=True)
    policy = lb.LexElimPhase(K, m, delta=0.4, optimal_set_sizes=[*sizes, 1], noise_sd=sigma or 1.0)
    same_run(policy, draw, horizon, oracle.lexelim_phase(draw, K, m, 0.4, [*sizes, 1], horizon, sigma))


@pytest.mark.interpreted
@given(tapes(), st.data())
@settings(max_examples=100)
def test_tol_is_its_specification(tape, data):
    K, m, horizon, draw = tape
    tol = data.draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 4.0]), min_size=m, max_size=m))
    res = data.draw(st.lists(st.sampled_from([0.5, 2.0, 16.0, 64.0]), min_size=m, max_size=m))
    lost = data.draw(st.sets(st.integers(0, 12)))

    def patchy(t, a):
        return [math.nan if (5 * t + a + 3 * i) % 13 in lost else x for i, x in enumerate(draw(t, a))]

    policy = lb.LexElimTol(K, m, delta=0.4, tolerance=tol, resolution=res, noise_sd=0.25)
    expected = oracle.lexelim_tol(patchy, K, m, 0.4, tol, res, horizon, [0.25] * m)
    assert drive(policy, patchy, horizon) == (expected[0], expected[1], sorted(expected[2]))


INSTANCES = [lb.random_instance(k, m, seed=s, max_tradeoff=2.0, noise_sd=0.3) for k, m, s in
             itertools.product((2, 5, 9), (1, 2, 3, 4), range(3))]  # fmt: skip


@pytest.mark.parametrize("number", range(len(INSTANCES)))
def test_simulated_runs_are_the_specification_s(number):
    instance, horizon = INSTANCES[number], 1200
    K, m = instance.n_arms, instance.n_objectives
    draw, sigma = noisy(instance, number, horizon), [0.3] * m
    sizes, tol = list(instance.optimal_set_sizes), [0.1] * m
    settings = {"delta": 0.3, "noise_sd": 0.3}
    lam = instance.tradeoff
    for policy, expected in [
        (lb.LexElimCone(K, m, tradeoff=lam, **settings),
         oracle.lexelim_cone(draw, K, m, 0.3, lam, horizon, sigma)),
        (LexElimPool(K, m, tradeoff=lam, **settings),
         oracle.lexelim_pool(draw, K, m, 0.3, lam, horizon, sigma)),
        (lb.LexElimPhase(K, m, optimal_set_sizes=sizes, **settings),
         oracle.lexelim_phase(draw, K, m, 0.3, sizes, horizon, sigma)),
        (lb.LexElimTol(K, m, tolerance=tol, **settings),
         oracle.lexelim_tol(draw, K, m, 0.3, tol, tol, horizon, sigma)),
    ]:  # fmt: skip
        run = lb.simulate(policy, instance, horizon=horizon, seed=number)
        assert run.arms.tolist() == expected[0], policy.name
        assert set(run.candidates) == expected[1]
        assert sorted(map(tuple, run.eliminations)) == sorted(expected[2])


def test_the_runs_above_use_every_kind_of_bet():
    """Coalitions on both faces, witnesses, and a change of witness that banks."""
    kinds, banked = set(), False
    for seed, instance in enumerate(INSTANCES):
        policy = lb.LexElimCone(*instance.means.shape, delta=1e-3, tradeoff=instance.tradeoff, noise_sd=0.3)
        drive(policy, noisy(instance, seed, 1200), 1200)
        kinds |= set(policy.state.stakes[:, 0].tolist())
        banked |= bool(policy.state.ledger[:, 3].any())
    assert kinds == {0, 1, 2, 3}
    assert banked


def test_judged_sweeps_grow_by_a_hundredth():
    grid = list(itertools.islice(oracle.judged_sweeps(), 600))
    assert grid[:3] == [5, 6, 7]
    assert all(next_judged(n) == after for n, after in itertools.pairwise(grid))


# --- the bets are made beforehand


def test_a_block_pays_by_the_weights_that_stood_before_it():
    instance = lb.paper_instance(10)
    policy = lb.LexElimCone(10, 3, delta=1e-6, tradeoff=2.0, noise_sd=instance.noise_sd)
    draw, t = noisy(instance, 3, 3000), 0
    for _ in range(5 * 10):
        policy.tell(policy.ask(), draw(t, policy.ask()))
        t += 1
    for _ in range(30):
        assert len(policy.candidates) == 10
        stakes, weights = policy.state.stakes.copy(), policy.state.weights.copy()
        before, rewards = policy.state.ledger.copy(), np.empty((10, 3))
        for arm in range(10):
            assert policy.ask() == arm
            rewards[arm] = draw(t, arm)
            policy.tell(arm, rewards[arm])
            t += 1
        after = policy.state.ledger
        face = [rewards[:, 0], rewards[:, 1] + 2 * rewards[:, 0]]
        for arm in range(10):
            i = stakes[arm, 0]
            if i < 2:
                scale = instance.noise_sd * math.sqrt(5) ** i
                paid = (weights[arm] @ face[i] - face[i][arm]) / scale
                assert after[arm, 0] - before[arm, 0] == pytest.approx(paid, abs=1e-9)
                assert after[arm, 1] - before[arm, 1] == pytest.approx(1 + weights[arm] @ weights[arm])
                assert weights[arm].sum() == pytest.approx(1)
                assert weights[arm, arm] == 0
            else:
                assert after[arm, 0] == before[arm, 0]


# --- the closed form of the coalition


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=6), st.data())
@settings(max_examples=60)
def test_the_coalition_is_the_best_there_is(lead, data):
    """Against arm 0: no weights do better, by constrained optimisation from several starts."""
    K = len(lead)
    totals = np.array([[0.0, 0.0], *[[x, 0.0] for x in lead[1:]]])
    lists = np.tile(np.argsort(-totals[:, 0], kind="stable"), (4, 1))
    work = np.zeros((4, K))
    work[0] = totals[:, 0]
    value, size = form_coalition(totals, lists, work, 0, 0, 1.0, 1, 0.0, 1e-12)
    weights = np.zeros((K, K))
    weigh_coalition(lists, work, weights, 0, 0, size)
    w, q = weights[0, 1:], totals[1:, 0]
    assert np.all(w >= 0)
    assert w.sum() == pytest.approx(1)
    assert value == pytest.approx(w @ q / math.sqrt(1 + w @ w), abs=1e-9)
    if q.max() <= 0:
        return  # nobody is ahead: the best arm alone, which costs least
    for start in [np.full(K - 1, 1 / (K - 1)), np.eye(K - 1)[int(q.argmax())]]:
        found = minimize(
            lambda x: -(x @ q) / math.sqrt(1 + x @ x),
            start,
            bounds=[(0, 1)] * (K - 1),
            constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        )
        assert -found.fun <= value + 1e-6


def test_a_face_weighs_the_earlier_objective_by_the_tradeoff():
    totals = np.array([[1.0, 2.0, 5.0], [0.0, 4.0, 1.0]])
    assert margin(totals, 0, 1, 2, 0, 2.0, 5, 3.0) == pytest.approx((4 + 3 * 1) / 2 / 5)
    assert margin(totals, 0, 1, 2, 1, 2.0, 5, 3.0) == pytest.approx((4 - 3 * 2) / 2 / 5)


# --- the mixture


@pytest.mark.parametrize("precision", [45.0, 60.0])
@pytest.mark.parametrize("variance", [1.0, 30.0, 2000.0])
@pytest.mark.parametrize("z", [-8.0, -1.0, 0.0, 0.5, 4.0, 12.0])
def test_the_mixture_is_the_integral_it_stands_for(z, variance, precision):
    gain = z * math.sqrt(variance + precision)
    peak = max(0.0, gain / (variance + precision))
    height = peak * gain - peak**2 * (variance + precision) / 2

    def wealth(bet):
        prior = 2 * math.sqrt(precision) * norm.pdf(bet * math.sqrt(precision))
        return prior * math.exp(bet * gain - bet**2 * variance / 2 - height)

    width = 1 / math.sqrt(variance + precision)
    area, _ = quad(wealth, max(0.0, peak - 12 * width), peak + 12 * width, epsabs=0, epsrel=1e-11)
    assert log_mixture(gain, variance, precision) == pytest.approx(math.log(area) + height, abs=1e-8)


@given(st.floats(-6, 8), st.floats(0.1, 500), st.floats(0.1, 60), st.floats(-1, 0))
@settings(max_examples=60)
def test_no_unfavourable_bet_makes_the_wealth_grow(z, variance, step, drift):
    """E exp L(G + X, V + v) ≤ exp L(G, V) for X Gaussian of variance v and mean ≤ 0; equal at mean 0."""
    gain = z * math.sqrt(variance + 45.0)
    now = log_mixture(gain, variance, 45.0)

    def paid(x, mean):
        return math.exp(log_mixture(gain + x, variance + step, 45.0) - now) * norm.pdf(
            x, mean, math.sqrt(step)
        )

    # the tilted law of X has mean up to gain·step/(V + R); integrate around both
    reach = 12 * math.sqrt(step * (variance + step + 45.0) / (variance + 45.0))
    shift = gain * step / (variance + 45.0)
    limits = (min(0.0, shift) - reach, max(0.0, shift) + reach)
    fair, _ = quad(paid, *limits, args=(0.0,), epsrel=1e-9, limit=400)
    unfair, _ = quad(paid, *limits, args=(drift,), epsrel=1e-9, limit=400)
    assert fair == pytest.approx(1, rel=1e-6)
    assert unfair <= 1 + 1e-6


@given(st.floats(-1e7, 1e7), st.floats(0, 1e12))
def test_evidence_neither_overflows_nor_underflows(z, variance):
    gain = z * math.sqrt(variance + 45.0)
    value = log_mixture(gain, variance, 45.0)
    assert math.isfinite(value)
    assert value <= mixture_ceiling(gain, variance, 45.0) or variance == 0


def test_the_tail_is_one_function_on_both_sides_of_its_switch():
    for z in (-30.0, -29.5, -31.0, -200.0, -1e8):
        exact = -math.log(-z) - 0.5 * math.log(2 * math.pi) + math.log1p(-1 / z**2 + 3 / z**4 - 15 / z**6)
        assert log_tail(z) == pytest.approx(exact, rel=1e-9)
    assert log_tail(0.0) == math.log(0.5)
    assert log_tail(1e8) == pytest.approx(5e15)


# --- the two-sample radius


@given(st.integers(1, 10**9), st.integers(1, 10**9), st.floats(0.1, 3), st.floats(0.5, 20))
def test_the_radius_is_the_extent_of_the_level_set(n_a, n_b, sigma, level):
    """The largest e_a − e_b with log of both arms' mixtures together below the level."""
    beta = level + cost_of_time(n_a, 30.0) + cost_of_time(n_b, 30.0)
    spreads = spread_of_mean(n_a, 30.0), spread_of_mean(n_b, 30.0)
    radius = two_sample_radius(sigma, level, *spreads, cost_of_time(n_a, 30.0), cost_of_time(n_b, 30.0))

    def log_wealth(error, n):
        return -0.5 * math.log1p(n / 30) + (n * error / sigma) ** 2 / (2 * (n + 30))

    # on the ellipse e_a²/s_a + e_b²/s_b = 2σ²β, at angle θ
    angle = np.linspace(0, 2 * math.pi, 20001)
    size = sigma * math.sqrt(2 * beta)
    e_a, e_b = size * math.sqrt(spreads[0]) * np.cos(angle), size * math.sqrt(spreads[1]) * np.sin(angle)
    assert log_wealth(e_a[1234], n_a) + log_wealth(e_b[1234], n_b) == pytest.approx(level, rel=1e-6, abs=1e-6)
    assert np.max(e_a - e_b) == pytest.approx(radius, rel=1e-6)


def test_an_unobserved_arm_has_an_infinite_radius():
    assert spread_of_mean(0, 30.0) == math.inf
    assert mixture_radius(0, 1.0, 3.0, 30.0) == math.inf


# --- dominance over LexElim-In


@given(
    st.integers(2, 6),
    st.integers(1, 5),
    st.integers(0, 10**6),
    st.sampled_from([0.0, 0.5, 1.0, 3.0]),
    st.booleans(),
)
@settings(max_examples=300)
def test_the_cone_s_margin_is_at_least_the_paper_s_effective_gap(K, m, seed, extra, ties):
    """D(b) ≥ Δ̃(b) = max_i Δ^i/Λ^i for every arm of every instance, with the any-dependence scale."""
    instance = lb.random_instance(K, m, seed=seed, ties=ties, max_tradeoff=None if ties else 2.0)
    assume(math.isfinite(instance.tradeoff))
    lam = instance.tradeoff + extra
    sums = np.cumsum([lam**i for i in range(m)])
    for gap in instance.gaps:
        faces = [min(gap[i] + lam * gap[j] for j in range(i)) / (1 + lam) for i in range(1, m)]
        assert max(gap[0], *faces, -math.inf) >= np.max(gap / sums) - 1e-9


# --- life: late, lost, in any order, and stubborn ties


def policies(K, m):
    return {
        "cone": lb.LexElimCone(K, m, delta=0.2, tradeoff=1.0, noise_sd=0.3),
        "pool": LexElimPool(K, m, delta=0.2, tradeoff=1.0, noise_sd=0.3),
        "phase": lb.LexElimPhase(
            K, m, delta=0.2, optimal_set_sizes=[min(K, 2)] * (m - 1) + [1], noise_sd=0.3
        ),
        "tol": lb.LexElimTol(K, m, delta=0.2, tolerance=0.5, noise_sd=0.3),
    }


@pytest.mark.parametrize("kind", ["cone", "pool", "phase"])
@given(st.randoms(use_true_random=False), st.integers(0, 40))
@settings(max_examples=40)
def test_rewards_are_paired_by_arm_and_sweep_whatever_their_order(kind, random, seed):
    instance = lb.random_instance(4, 3, seed=seed, max_tradeoff=1.0, noise_sd=0.3)
    policy = policies(4, 3)[kind]
    draw = noisy(instance, seed, 400)
    played, *_ = drive(policy, draw, 400)
    tapes = {arm: [draw(t, a) for t, a in enumerate(played) if a == arm] for arm in range(4)}
    shuffled = played[:]
    random.shuffle(shuffled)
    if seed % 2:  # or one arm wholly ahead of the others
        shuffled.sort(key=lambda arm: (arm + seed) % 4)
    late, cursor = policy.fresh(), dict.fromkeys(range(4), 0)
    for arm in shuffled:
        late.tell(arm, tapes[arm][cursor[arm]])
        cursor[arm] += 1
    assert late.eliminations == policy.eliminations
    assert late.candidates == policy.candidates
    assert late.evidence.tolist() == policy.evidence.tolist()
    assert late.finished == policy.finished
    assert late.recommendation == policy.recommendation


@pytest.mark.parametrize("kind", ["cone", "pool", "phase", "tol"])
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
            assert arm in policy.candidates
            flying.append(arm)
        arm = flying.pop(int(rng.integers(len(flying))))
        if rng.random() < 0.9:
            policy.tell(arm, instance.means[arm] + 0.3 * rng.standard_normal(3))
    assert policy.finished
    late = policy.eliminations
    policy.tell(0, [9.0, 9.0, 9.0])
    assert policy.eliminations == late


@pytest.mark.parametrize("kind", ["cone", "pool", "phase"])
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


@pytest.mark.parametrize("kind", ["cone", "pool", "phase", "tol"])
def test_exact_ties_everywhere_never_hang(kind):
    instance = lb.Instance(np.zeros((4, 3)), noise_sd=0.3)
    policy = policies(4, 3)[kind]
    run = lb.simulate(policy, instance, horizon=3000, seed=0)
    assert run.rounds <= 3000
    assert run.recommendation in run.candidates
    constant = policy.fresh()
    constant.tell_many(np.arange(400) % 4, np.zeros((400, 3)))
    assert constant.recommendation == 0
    assert constant.finished == (kind == "tol" and constant.state.clock[2] == 3)


@pytest.mark.parametrize("kind", ["cone", "pool", "phase", "tol"])
def test_a_single_arm_needs_no_trial(kind):
    policy = policies(1, 3)[kind]
    assert policy.finished
    assert policy.ask() == policy.recommendation == 0
    policy.tell(0, [1.0, 2.0, 3.0])
    assert policy.rounds == 1
    assert kind == "tol" or policy.evidence.tolist() == [0.0]


def test_of_arms_all_convicted_at_once_the_least_suspect_stays():
    policy = lb.LexElimCone(2, 1, delta=0.5, tradeoff=0.0, noise_sd=1e-3)
    for _ in range(5):
        policy.tell_many([0, 1], [[1.0], [1.0]])
    # both bets now name the other arm; conjure wealth for both
    policy.state.ledger[:, 0] = [90.0, 80.0]
    policy.state.ledger[:, 1] = 10.0
    policy.tell_many([0, 1], [[0.0], [0.0]])
    assert policy.candidates == (1,)
    assert policy.finished


def test_a_value_not_measured_counts_for_nothing():
    policy = lb.LexElimTol(2, 2, delta=0.1, tolerance=0.1)
    policy.tell(0, [None, 2.0])
    policy.tell(0, [3.0, 4.0])
    policy.tell_many([1], [[None, None]])
    assert policy.pulls.tolist() == [2, 1]
    assert policy.state.counts.tolist() == [[1, 2], [0, 0]]
    assert policy.means[0].tolist() == [3.0, 3.0]
    assert np.isnan(policy.means[1]).all()
    assert np.isinf(policy.intervals[1]).all()


@pytest.mark.parametrize("kind", ["cone", "pool", "phase", "tol"])
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
        ({"tolerance": 0.0}, ValueError),
        ({"tolerance": [0.1, 0.0]}, ValueError),
        ({"tolerance": 0.0, "resolution": 0.0}, ValueError),
        ({"tolerance": [0.1, 0.0], "resolution": [0.0, 0.1]}, ValueError),
        ({"tolerance": -0.1, "resolution": 0.1}, ValueError),
        ({"tolerance": 0.1, "resolution": -0.1}, ValueError),
        ({"tolerance": [0.1, 0.1, 0.1]}, ValueError),
        ({"tolerance": 0.1, "resolution": [0.1]}, ValueError),
        ({"tolerance": math.nan}, ValueError),
        ({"tolerance": "wide"}, TypeError),
        ({"tolerance": 0.1, "noise_sd": 0.0}, ValueError),
        ({"tolerance": 0.1, "delta": 1.0}, ValueError),
    ],
)
def test_tol_rejects(wrong, error):
    with pytest.raises(error):
        lb.LexElimTol(3, 2, **{"delta": 0.1, **wrong})


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
        ({"correlated": [[1.0, -1.0], [-1.0, 1.0]]}, ValueError),  # tradeoff 1: no noise is left on a face
        ({"noise_sd": [1.0]}, ValueError),
    ],
)
def test_cone_rejects(wrong, error):
    with pytest.raises(error):
        lb.LexElimCone(3, 2, **{"delta": 0.1, "tradeoff": 1.0, **wrong})


@pytest.mark.parametrize("sizes", [[4, 1], [1, 2], [2, 2], [1], [2, 1, 1], [0, 1]])
def test_phase_rejects(sizes):
    with pytest.raises(ValueError, match="optimal_set_sizes"):
        lb.LexElimPhase(3, 2, delta=0.1, optimal_set_sizes=sizes)
