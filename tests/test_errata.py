"""docs/errata.md as claims: what is proved holds on every run of the good event, what is printed fails.

The good event of Lemma 1 is an input space: Hypothesis places every estimate anywhere inside its
interval, edges included, so that nothing about what is proved is true only with high probability.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lexbandits import Instance, LexElimIn, LexElimOut, paper_instance, simulate, theory
from support.examples import up_to

EDGE = 1 - 1e-9  # a hair inside, so that round-off cannot leave the interval

# --- what is proved holds


@st.composite
def instances(draw, max_arms=5, max_objectives=4):
    """Arms on a coarse grid, so that ties are common, and no two alike."""
    n_objectives = draw(st.integers(1, max_objectives))
    row = st.tuples(*[st.integers(0, 3)] * n_objectives)
    rows = draw(st.lists(row, min_size=2, max_size=max_arms, unique=True))
    return Instance([[x / 4 for x in row] for row in rows])


@st.composite
def shifts(draw, instance):
    """(arm, pulls) -> where in its interval each estimate of the arm lies, from −1 to 1."""
    stubborn, n_objectives = flattery(instance), instance.n_objectives
    kind = draw(st.sampled_from(["stubborn", "still", "flipping", "jumping", "anywhere"]))
    if kind == "stubborn":
        return lambda arm, pulls: stubborn[arm]
    if kind in ("still", "flipping"):
        place = st.sampled_from([-EDGE, EDGE]) | st.floats(-EDGE, EDGE)
        flat = draw(st.lists(place, min_size=stubborn.size, max_size=stubborn.size))
        table = np.reshape(flat, stubborn.shape)
        return lambda arm, pulls: table[arm] * (-1 if kind == "flipping" and pulls % 2 else 1)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if kind == "jumping":
        return lambda arm, pulls: EDGE * rng.choice([-1.0, 1.0], n_objectives)
    return lambda arm, pulls: rng.uniform(-EDGE, EDGE, n_objectives)


def flattery(instance):
    """(K, m) shifts that hide every loss as long as they can: high where an arm is worse, low elsewhere."""
    return np.where(instance.gaps > 0, EDGE, -EDGE)


def good_event_rounds(policy, instance, delta, noise_sd, shift):
    """Drive a policy to its end with the estimates where `shift` puts them; yield the arm of each round."""
    shape = instance.means.shape
    while not policy.finished:
        arm = policy.ask()
        pulls = int(policy.pulls[arm])
        widths = np.asarray(noise_sd) * math.sqrt(
            4 / (pulls + 1) * math.log(6 * np.prod(shape) * (pulls + 1) / delta)
        )
        estimate = instance.means[arm] + widths * shift(arm, pulls + 1)
        before = policy.means[arm] * pulls if pulls else 0.0
        policy.tell(arm, estimate * (pulls + 1) - before)
        yield arm


def scales_for(instance, hardest_gap, difficulty, shape):
    """Width scales that make runs last: `difficulty` times the hardest gap, times a shape per objective."""
    return np.array(shape[: instance.n_objectives]) * difficulty * hardest_gap


difficulties = st.floats(0.01, 0.4)
noise_shapes = st.sampled_from([(1.0, 1.0, 1.0, 1.0), (1.0, 0.5, 2.0, 1.0), (0.25, 1.0, 0.5, 1.0)])
deltas = st.sampled_from([0.01, 0.3, 0.9])


@settings(max_examples=up_to(150))
@given(st.data(), instances(), difficulties, noise_shapes, deltas, st.sampled_from([0.0, 0.5]))
def test_lexelim_in_keeps_to_its_proved_bounds_on_the_good_event(
    data, instance, difficulty, shape, delta, extra
):
    """Lemmas 4, 6 and 7, Theorems 3 and 4, Corollary 1, as proved."""
    K, m = instance.means.shape
    best, gaps = instance.lex_optimal_arm, instance.gaps
    tradeoff = instance.tradeoff + extra
    hardest = np.delete(theory.effective_gaps(instance, tradeoff=tradeoff, noise_sd=shape[:m]), best).min()
    noise_sd = scales_for(instance, hardest, difficulty, shape)
    asked = {"tradeoff": tradeoff, "noise_sd": noise_sd}
    proved = {**asked, "constants": "proved"}
    policy = LexElimIn(K, m, delta=delta, **asked)
    shift = data.draw(shifts(instance))
    most_regret = theory.lexelim_in_regret(instance, delta, **proved)
    identified, regret, fewest = np.full(m, -1), np.zeros(m), 0
    for t, arm in enumerate(good_event_rounds(policy, instance, delta, noise_sd, shift), start=1):
        active = list(policy.candidates)
        assert best in active
        if fewest:
            limits = theory.active_gap_limits(fewest, K, m, delta, **asked)
            assert np.all(gaps[active] <= limits * (1 + 1e-9))
        fewest = policy.pulls[active].min()
        assert policy.pulls[active].max() <= fewest + 1
        regret += gaps[arm]
        assert np.all(regret <= most_regret + 1e-9)
        assert np.all(regret <= theory.lexelim_in_anytime_regret(instance, delta, t, **proved) + 1e-9)
        identified[(identified < 0) & np.all(gaps[active] <= 0, axis=0)] = t
    assert policy.candidates == (best,)
    assert np.all(policy.pulls <= theory.lexelim_in_pulls(instance, delta, **proved))
    to_identify = np.where(np.any(gaps > 0, axis=0), identified, 0)
    assert np.all(to_identify <= theory.lexelim_in_samples(instance, delta, **proved))
    assert policy.rounds == to_identify.max()


@settings(max_examples=up_to(150))
@given(st.data(), instances(), difficulties, noise_shapes, deltas)
def test_lexelim_out_keeps_to_its_proved_bounds_on_the_good_event(data, instance, difficulty, shape, delta):
    """Lemmas 4 and 5, Theorems 1 and 2, as proved."""
    K, m = instance.means.shape
    best, gaps, sizes = instance.lex_optimal_arm, instance.gaps, instance.optimal_set_sizes
    hardest = min(gaps[a, i] / shape[i] for i in range(m) for a in instance.suboptimal_set(i))
    noise_sd = scales_for(instance, hardest, difficulty, shape)
    proved = {"noise_sd": noise_sd, "constants": "proved"}
    policy = LexElimOut(K, m, delta=delta, optimal_set_sizes=sizes, noise_sd=noise_sd)
    shift = data.draw(shifts(instance))
    most_regret = theory.lexelim_out_regret(instance, delta, **proved)
    identified, regret = np.full(m, -1), np.zeros(m)
    for t, arm in enumerate(good_event_rounds(policy, instance, delta, noise_sd, shift), start=1):
        active = list(policy.candidates)
        assert best in active
        assert np.ptp(policy.pulls[active]) <= 1
        regret += gaps[arm]
        assert np.all(regret <= most_regret + 1e-9)
        settled = [set(active) <= set(instance.optimal_set(i)) for i in range(m)]
        identified[(identified < 0) & settled] = t
    assert policy.candidates == (best,)
    assert np.all(policy.pulls <= theory.lexelim_out_pulls(instance, delta, **proved))
    to_identify = np.where(np.array(sizes) < K, identified, 0)
    assert np.all(to_identify <= theory.lexelim_out_samples(instance, delta, **proved))
    assert policy.rounds == to_identify[-1]


def worst_run(policy, instance, delta, noise_sd):
    """The pulls of a run in which every loss is hidden as long as it can be."""
    hidden = flattery(instance)
    for _ in good_event_rounds(policy, instance, delta, noise_sd, lambda arm, pulls: hidden[arm]):
        pass
    return policy.pulls


def hardest_to_drop(level, n_arms, n_objectives, delta):
    """A gap that `worst_run` cannot see until every active arm has `level` + 1 pulls, for σ = Λ = 1."""
    width = [theory.confidence_width(n, n_arms, n_objectives, delta) for n in (level, level + 1)]
    return 2 * width[0] + 2 * width[1] - 1e-6


@pytest.mark.parametrize("level", [1, 2, 7, 30])
def test_the_proved_pulls_of_lexelim_in_are_attained(level):
    instance = Instance([[0.0], [hardest_to_drop(level, 2, 1, 0.1)]])
    pulls = worst_run(LexElimIn(2, 1, delta=0.1, tradeoff=0), instance, 0.1, 1.0)
    assert pulls[0] == level + 2 == theory.lexelim_in_pulls(instance, 0.1, constants="proved")[0]


@pytest.mark.parametrize("level", [1, 2, 7, 30])
@pytest.mark.parametrize("n_objectives", [1, 2, 3])
def test_the_proved_pulls_of_lexelim_out_are_attained_in_each_of_three_phases(level, n_objectives):
    """One arm in each S(i), the last phase's first: it leaves at once when its phase begins, after a wait."""
    K = n_objectives + 1
    gap = hardest_to_drop(level, K, n_objectives, 0.1)
    loses_on = {0: n_objectives - 1, **{arm: K - 1 - arm for arm in range(2, K)}}  # arm 1 is lex-optimal
    means = np.zeros((K, n_objectives))
    for arm, i in loses_on.items():
        means[arm, i] = -gap if i == 0 else -1e6
    instance = Instance(means)
    policy = LexElimOut(K, n_objectives, delta=0.1, optimal_set_sizes=instance.optimal_set_sizes)
    pulls = worst_run(policy, instance, 0.1, 1.0)
    proved = theory.lexelim_out_pulls(instance, 0.1, constants="proved")
    assert pulls[0] == proved[0] == level + max(2, n_objectives)


# --- what is printed fails


def test_lemma_2_as_printed_is_false():
    a, b, x = 1.0, 10.0, 2.4
    assert x > theory.log_crossing(a, b) == a * math.log(a * b)
    assert not x > a * math.log(b * x)


@given(st.floats(1e-3, 1e3), st.floats(1.01, 60))
def test_lemma_2_as_printed_fails_for_every_pair_and_its_correction_is_sharp(a, log_product):
    b = math.exp(log_product) / a
    printed, root = (theory.log_crossing(a, b, constants=version) for version in ("printed", "proved"))
    assert printed < root
    between = (printed + root) / 2
    assert between <= a * math.log(b * between)
    for beyond in (root * (1 + 1e-6), root * 1.5, root * 100, 2 * a * math.log(a * b)):
        assert beyond > a * math.log(b * beyond)


def test_below_e_the_inequality_of_lemma_2_holds_everywhere():
    assert theory.log_crossing(1.0, math.e, constants="proved") == 1  # the two roots meet
    assert theory.log_crossing(1.0, 2.7, constants="proved") == 0
    assert all(x > math.log(2.7 * x) for x in np.linspace(0.01, 10, 1000))


def test_392_absorbs_the_last_pull_only_for_gaps_up_to_1_149_widths():
    edge = math.sqrt(64 * math.log(392 / 384))
    assert 1.148 < edge < 1.149
    for gap, absorbed in ((edge - 1e-6, True), (edge + 1e-6, False)):
        a, b = 64 / gap**2, 6 / 0.1
        printed = theory.lexelim_out_pulls(Instance([[0.0], [gap]]), 0.1)[0]
        assert (theory.log_crossing(a, 2 * b) + 1 <= printed) == absorbed


def an_arm_that_waits():
    """S(1) has one arm, hard to tell; S(2) has eight, obvious once their phase begins."""
    return Instance([[0.9, 0.0], [1.0, 1.0], *[[1.0, 0.0]] * 8], noise_sd=0.1)


def test_theorems_1_and_2_fail_as_printed_because_arms_wait():
    """Not on a hostile run: on every ordinary one."""
    instance = an_arm_that_waits()
    asked = {"noise_sd": 0.1}
    policy = LexElimOut(10, 2, delta=0.1, optimal_set_sizes=instance.optimal_set_sizes, **asked)
    for seed in range(5):
        run = simulate(policy, instance, horizon=10**6, seed=seed)
        pulls = np.bincount(run.arms, minlength=10)
        assert run.recommendation == 1
        assert np.all(pulls[2:] > 20 * theory.lexelim_out_pulls(instance, 0.1, **asked)[2:])
        assert run.rounds > 2 * theory.lexelim_out_samples(instance, 0.1, **asked)[1]
        assert run.rounds <= theory.lexelim_out_samples(instance, 0.1, constants="proved", **asked)[1]
        regret = pulls @ instance.gaps
        assert regret[1] > 1.5 * theory.lexelim_out_regret(instance, 0.1, **asked)[1]
        assert np.all(regret <= theory.lexelim_out_regret(instance, 0.1, constants="proved", **asked))


def test_lemma_5_fails_as_printed_on_the_papers_own_instance():
    instance = paper_instance(10)
    policy = LexElimOut(
        10, 3, delta=0.01, optimal_set_sizes=instance.optimal_set_sizes, noise_sd=instance.noise_sd
    )
    arms = simulate(policy, instance, horizon=10**6, seed=0).arms
    assert np.sum(arms == 8) > 10 * theory.lexelim_out_pulls(instance, 0.01, noise_sd=instance.noise_sd)[8]


def test_theorem_1_as_printed_bounds_a_regret_of_zero_by_a_negative_number():
    instance = Instance([[1.0, 0.0], [0.5, 1.0]])
    printed = theory.lexelim_out_regret(instance, 0.1)
    assert printed[1] < 0 == theory.lexelim_out_regret(instance, 0.1, constants="proved")[1]
    assert instance.gaps[LexElimOut(2, 2, delta=0.1, optimal_set_sizes=(1, 1)).ask()][1] == 0


def test_lemma_7_and_theorem_3_fail_as_printed_without_the_square_of_the_sum_in_the_logarithm():
    """Not on a hostile run: λ = 20 makes the missing log Λ² worth more than all the slack."""
    instance = Instance([[1.0, 0.0], [1.0, 0.05], [0.955, 0.95]], noise_sd=0.005)
    assert instance.tradeoff == pytest.approx(20)
    asked = {"noise_sd": 0.005}
    for seed in range(5):
        policy = LexElimIn(3, 2, delta=0.1, tradeoff=instance.tradeoff, **asked)
        run = simulate(policy, instance, horizon=10**6, seed=seed)
        pulls = np.bincount(run.arms, minlength=3)
        assert run.candidates == (1,)
        assert pulls[0] > 1.5 * theory.lexelim_in_pulls(instance, 0.1, **asked)[0]
        last = np.flatnonzero(run.arms == 0)[-1] + 1  # R^2(t) is largest here: arm 2 has long gone
        regret = instance.gaps[run.arms[:last], 1].sum()
        assert regret > 1.4 * theory.lexelim_in_regret(instance, 0.1, **asked)[1]
        assert regret <= theory.lexelim_in_regret(instance, 0.1, constants="proved", **asked)[1]


def test_theorem_4_fails_as_printed_because_survivors_are_pulled_too():
    """Not on a hostile run: to drop one arm all ten are pulled, and the theorem counts the one."""
    near_ties = [[1.0, 1.0 - k / 1000] for k in range(9)]
    instance = Instance([[0.9, 0.0], *near_ties], noise_sd=0.1)
    asked = {"tradeoff": 9.0, "noise_sd": 0.1}  # a λ at which objective 2 does not help
    for seed in range(5):
        run = simulate(LexElimIn(10, 2, delta=0.1, **asked), instance, horizon=20_000, seed=seed)
        left = next(e for e in run.eliminations if e.arm == 0)
        assert left.round > 1.5 * theory.lexelim_in_samples(instance, 0.1, **asked)[0]
        assert left.round <= theory.lexelim_in_samples(instance, 0.1, constants="proved", **asked)[0]


def test_corollary_1_fails_as_printed_in_the_first_rounds_and_needs_one_round_more_than_arms():
    """Arm 0 is pulled again in round K + 1 although that round eliminates it."""
    instance = Instance([[0.0], [1.0], [1.0]], noise_sd=0.001)
    policy = LexElimIn(3, 1, delta=0.1, tradeoff=0.0, noise_sd=0.001)
    regret = 0.0
    for t, arm in enumerate(simulate(policy, instance, horizon=6, seed=0).arms, start=1):
        regret += instance.gaps[arm, 0]
        assert regret > theory.lexelim_in_anytime_regret(instance, 0.1, t, noise_sd=0.001)[0]
        proved = theory.lexelim_in_anytime_regret(instance, 0.1, t, noise_sd=0.001, constants="proved")[0]
        assert regret <= proved
        if t <= 4:
            assert regret == proved
    assert regret == 2.0
    first_pulls = instance.gaps.sum()
    assert regret > first_pulls + theory.lexelim_in_anytime_regret(instance, 0.1, 6, noise_sd=0.001)[0]
