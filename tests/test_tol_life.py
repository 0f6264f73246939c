"""LexElim-Tol in use: places, missing and bad values, the certificate, and what it refuses."""

import json
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits.environments.noise import stream
from lexbandits.policies.tolerance.buffer import ResultBuffer
from lexbandits.policies.tolerance.finite.finite_evidence import still_proven
from lexbandits.policies.tolerance.passes import begin, evaluate
from lexbandits.policies.tolerance.preregistered import evidence_for, shown_not_worse
from lexbandits.policies.tolerance.state import (
    BEATS,
    BY_PROOF,
    FIRST,
    NEXT,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    POSITION,
    RESULTS,
    RIVAL,
    STUCK,
)
from lexbandits.policies.tolerance.stopping import _holds, _verdict, prove
from lexbandits.policies.tolerance.validation import EARLY, FEWEST, one_value_returns
from lexbandits.simulation import trajectory
from lexbandits.simulation.promise import Tolerances
from support.examples import up_to


def make(K=3, m=2, **changes):
    return lb.LexElimTol(K, m, **{"delta": 0.1, "tolerance": 0.1, "noise_sd": 0.2, **changes})


def measured(policy, means, rng, sd=0.2, most=20_000):
    while not policy.finished and policy.rounds < most:
        arm = policy.ask()
        policy.tell(arm, means[arm] + sd * rng.standard_normal(policy.n_objectives))
    return policy


# --- places


def test_places_are_asked_pass_by_pass_and_ahead():
    policy = make()
    assert policy.ask_places(4) == [(0, 0), (1, 0), (2, 0), (0, 1)]
    assert policy.ask_place([(0, 0), (1, 0), (2, 0)]) == (0, 1)
    policy.tell(1, [1.0, 2.0], item=0)
    assert policy.lacking == ((0, 0), (2, 0))
    assert policy.wanted == (0, 1, 2)
    policy.tell(0, [1.0, 2.0], item=1)
    assert policy.ask_places(4) == [(0, 0), (2, 0), (1, 1), (2, 1)]
    assert policy.ask([0]) == 2
    assert policy.ask([0, 2]) == 1
    policy.tell(0, [1.0, 1.0])
    policy.tell(2, [None, None])
    assert policy.folded == 1
    assert policy.counts.tolist() == [[1, 1], [1, 1], [0, 0]]
    assert policy.lacking == ((1, 1), (2, 1))
    assert (policy.rounds, policy.pulls.tolist()) == (4, [2, 1, 1])


def test_a_place_is_filled_once():
    policy = make()
    policy.tell(0, [1.0, 1.0], item=0)
    policy.tell(0, [1.0, 1.0], item=2)
    for item in (0, 2):
        with pytest.raises(ValueError, match=f"arm 0 in pass {item} is already filled"):
            policy.tell(0, [1.0, 1.0], item=item)
    before = policy.__copy__()
    with pytest.raises(ValueError, match="already filled"):
        policy.tell_many([1, 1], [[1.0, 1.0]] * 2, [5, 5])
    with pytest.raises(ValueError, match="from 0 on"):
        policy.tell_many([1], [[1.0, 1.0]], [-1])
    with pytest.raises(TypeError, match="items"):
        policy.tell_many([1], [[1.0, 1.0]], [0, 1])
    with pytest.raises(ValueError, match="item must be in 0"):
        policy.tell(1, [1.0, 1.0], item=2**63)
    assert policy == before


def test_what_comes_late_is_counted_and_nothing_else():
    policy = make(noise="gaussian", noise_sd=None)
    policy.tell_many([0, 1, 2], np.eye(3, 2))
    means = policy.means
    policy.tell(0, [9.0, 9.0], item=0)
    assert policy.rounds == 4
    assert policy.means.tolist() == means.tolist()


def test_ahead_of_every_pass_it_asks_what_it_would_ask():
    """With nothing else known, places asked far ahead are those it then wants."""
    rng = np.random.default_rng(0)
    policy, places = make(4, 1, noise_sd=5.0), set()
    for _ in range(15):
        batch = policy.ask_places(8, places)
        assert not places & set(batch)
        places |= set(batch)
    for arm, number in sorted(places, key=lambda _: rng.random()):
        policy.tell(arm, [rng.standard_normal()], item=number)
    assert policy.folded == 30


@pytest.mark.parametrize("seed", range(30))
def test_what_to_ask_does_not_depend_on_what_was_asked_before(seed):
    """A policy remembers where it has looked for empty places; one that was never asked has not."""
    rng = np.random.default_rng(seed)
    means = rng.normal(0, 0.3, (4, 2))
    policy, flying, told = make(4, 2, noise_sd=0.3, delta=0.2), [], []
    while not policy.finished and len(told) < 400:
        places = policy.ask_places(int(rng.integers(1, 9)), flying)
        flying += [place for place in places if rng.random() < 0.9]  # the others are given back
        keep = rng.random(len(flying)) < rng.choice([0.02, 0.5, 0.98])
        back = [place for place, kept in zip(flying, keep, strict=True) if not kept]
        flying = [place for place, kept in zip(flying, keep, strict=True) if kept]
        results = [(arm, means[arm] + 0.3 * rng.standard_normal(2), number) for arm, number in back]
        told += results
        for arm, values, number in results:
            policy.tell(arm, values, item=number)
        never_asked = make(4, 2, noise_sd=0.3, delta=0.2)
        if told:
            never_asked.tell_many(*zip(*told, strict=True))
        assert policy == never_asked
        assert policy.ask_places(12, flying) == never_asked.ask_places(12, flying)
    assert len(told) > 40


def test_behind_a_lost_trial_nothing_is_looked_at_twice(monkeypatch):
    policy, lost, looks = make(4, 1), (1, 0), 0
    places = [place for place in policy.ask_places(20_000) if place != lost]
    policy.tell_many([arm for arm, _ in places], np.zeros((len(places), 1)), [number for _, number in places])
    contains = ResultBuffer.__contains__

    def counted(self, place):
        nonlocal looks
        looks += 1
        return contains(self, place)

    monkeypatch.setattr(ResultBuffer, "__contains__", counted)
    assert policy.ask_place([lost]) == (0, 5_000)
    looks = 0
    for number in range(5_000, 5_010):
        for arm in range(4):
            assert policy.ask_place([lost]) == (arm, number)
            policy.tell(arm, [0.0], item=number)
    assert looks < 1_000, "an ask or a tell looks at a few places"
    policy.tell(1, [0.0], item=0)
    assert policy.finished


def test_after_the_end_results_are_only_counted():
    policy = measured(make(), np.array([[0.0, 0.0], [3.0, 0.0], [3.0, 3.0]]), np.random.default_rng(0))
    assert policy.recommendation == 2
    before, rounds = policy.certificate, policy.rounds
    policy.tell(0, [99.0, 99.0])
    policy.tell(1, [99.0, 99.0], item=policy.folded + 7)
    policy.tell_many([0, 0], [[99.0, 99.0]] * 2)
    assert policy.certificate == before
    assert policy.rounds == rounds + 4
    assert policy.ask() == 2
    assert policy.ask_place() == (2, policy.folded)


def test_arms_are_added_and_withdrawn():
    rng = np.random.default_rng(1)
    means = np.array([[0.0], [2.0], [2.05], [9.0]])
    policy = measured(make(2, 1, max_arms=4), means, rng)
    assert policy.recommendation == 1
    assert policy.pulls.shape == (4,)
    more = measured(policy.amended(offered=[0, 1, 3]), means, rng)
    assert more.recommendation == 3
    assert {e.arm for e in more.eliminations} == {0, 1}
    again = more.amended(offered=[0, 1])
    assert again.finished
    assert again.recommendation == 1
    with pytest.raises(ValueError, match="offered"):
        policy.amended(offered=[4])
    with pytest.raises(ValueError, match="from_pass"):
        policy.amended(tolerance=0.2, from_pass=policy.folded - 1)


@pytest.mark.parametrize("noise", ["gaussian", "bernoulli"])
@pytest.mark.parametrize("at_least", [None, [0.4]])
def test_delta_is_shared_with_the_arms_that_may_be_added(noise, at_least):
    """Two arms of at most five are told apart as slowly as any two of five."""
    rules = {"delta": 0.1, "tolerance": 0.1, "noise": noise, "at_least": at_least, "stop_when": "all"}
    two, five = lb.LexElimTol(2, 1, max_arms=5, **rules), lb.LexElimTol(5, 1, offered=[0, 1], **rules)
    alone = lb.LexElimTol(2, 1, **rules)
    values = (np.random.default_rng(3).random((90, 1)) < 0.5).astype(float)
    if noise == "gaussian":
        values = np.random.default_rng(3).standard_normal((90, 1))
    for policy in (two, five, alone):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            policy.tell_many([0, 1] * 45, values)
    widths = [np.diff(policy.differences[0, 1, 0])[0] for policy in (two, five, alone)]
    assert widths[0] == widths[1] > widths[2]
    assert np.array_equal(two.state.bounds[0, :2], five.state.bounds[0, :2])
    assert two.finished == five.finished


def test_delta_is_shared_by_anytime_evidence_and_tests_by_position():
    """Four arms, a delta of 0.05; what is exact takes no position."""
    policy = make(4, 3, delta=0.05, noise_sd=None, noise=["gaussian", "exact", "gaussian"], order=[2, 1, 0])
    level, _, not_worse, beats = policy.state.limits[:, 4:8].T
    assert level == pytest.approx(math.log(3 * 6 / (0.05 * 0.05)))
    assert not_worse[[2, 0]] == pytest.approx(np.log(np.array([3, 6]) / (0.95 * 0.05)))
    assert beats[[2, 0]] == pytest.approx(np.log(np.array([6, 12]) / (0.95 * 0.05)))
    for rules in ({"preregistered": False}, {"stop_when": "all"}):
        plain = make(4, 3, delta=0.05, **rules)
        assert plain.state.limits[0, 4] == pytest.approx(math.log(3 * 6 / 0.05))
        assert plain.state.log_evidence.size == 0


def test_a_simulation_may_be_cut_in_the_middle_of_a_pass(monkeypatch):
    policy = make(5, 2, stop_when="answer")
    world = lb.Instance([[0.5, 0.1 * arm] for arm in range(5)], noise_sd=0.2)
    whole = lb.simulate(policy, world, horizon=400, seed=3)
    monkeypatch.setattr(trajectory, "CHUNK", 7)
    cut = lb.simulate(policy, world, horizon=400, seed=3)
    assert cut.arms.tolist() == whole.arms.tolist()
    assert cut[1:] == whole[1:]


def test_an_answer_that_meets_all_targets_does_not_wait_for_who_is_at_the_first():
    """The second one is looked at for the answer while the first is open for its rival."""
    policy = make(2, 2, at_least=[0.5, 0.5], stop_when="answer")
    measured(policy, np.array([[0.9, 0.9], [0.45, 0.9]]), np.random.default_rng(1), most=2_000)
    assert policy.finished
    assert policy.recommendation == 0
    assert policy.state.clock[POSITION] == 0


@pytest.mark.parametrize(("preregistered", "facts"), [(False, 1.0), (True, 0.05)])
def test_an_objective_with_a_target_shares_its_delta_between_arms_and_pairs(preregistered, facts):
    """Half of its third is for either side of four arms, half for their six pairs."""
    policy = make(4, 3, delta=0.05, at_least=[None, None, 0.5], preregistered=preregistered)
    level, for_arms = policy.state.limits[:, 4:6].T
    assert level == pytest.approx(np.log(3 * 6 * np.array([1, 1, 2]) / (facts * 0.05)))
    assert for_arms[2] == pytest.approx(math.log(3 * 4 * 2 / (facts * 0.05)))


def test_with_a_limit_every_arm_has_a_share():
    noise = ["gaussian", "exact", "gaussian"]
    policy = make(4, 3, delta=0.05, noise_sd=None, noise=noise, order=[2, 1, 0], at_least=[0.5, None, None])
    not_worse, beats, meets = policy.state.limits[:, 6:9].T
    assert not_worse[[2, 0]].tolist() == [pytest.approx(math.log(4 / (0.95 * 0.05))), math.inf]
    assert beats[[2, 0]] == pytest.approx(np.log(np.array([8, 16]) / (0.95 * 0.05)))
    assert meets[[2, 0]] == pytest.approx(math.log(4 / (0.95 * 0.05)))


def test_a_limit_and_its_resolution_stay():
    policy = make(2, 2, at_least=[0.5, None], tolerance=0.1, resolution=[0.1, 0.1])
    with pytest.raises(ValueError, match="objective 0: a target and its resolution stay"):
        policy.amended(resolution=[0.2, 0.1])
    assert policy.amended(tolerance=[0.3, 0.2], resolution=[0.1, 0.2]).settings["tolerance"] == [0.3, 0.2]


def test_evidence_of_different_sequences_is_never_added():
    """Evidences of two pairs share no filtration: what they are worth together is no evidence."""
    policy = make(4, noise_sd=None)
    state = policy.state
    state.log_evidence[NOT_WORSE, :, 1, 0] = state.limits[:, NOT_WORSE_LEVEL] - 0.1
    assert not any(shown_not_worse(state.lcb, state.limits, state.log_evidence, i, 1, 0) for i in range(2))


def test_of_a_pair_the_largest_evidence_of_its_own_is_kept():
    policy = make(5, 1, noise_sd=0.1)
    rng = np.random.default_rng(3)
    for item in range(8):
        for arm, mean in enumerate([0.0, 0.3, 1.0, 1.1, 1.2]):
            policy.tell(arm, [mean + 0.1 * rng.standard_normal()], item=item)
    state = policy.state
    state.log_evidence[:], state.arms.active[:] = -math.inf, True
    for claim, x in ((NOT_WORSE, 1), (BEATS, 4)):
        prove(state, x, np.empty((2, 5), np.bool_), True)
        own = np.array([evidence_for(state, claim, 0, x, y) if y != x else 0.0 for y in range(5)])
        seen = state.log_evidence[claim, 0, x] > -math.inf
        assert np.array_equal(state.log_evidence[claim, 0, x][seen], own[seen])
        assert seen[:2].sum() >= 1


def proven(policy, x):
    """Whether the policy's state proves x, and whom else that needs."""
    found = prove(policy.state, x, np.empty((2, policy.n_arms), np.bool_), True)
    return found, set(np.flatnonzero(policy.state.masks[BY_PROOF]).tolist()) - {x}


def test_a_third_arm_keeps_a_rival_out_by_anytime_evidence_alone():
    """Which arm it will be nobody knows beforehand, so no test is registered for it."""
    policy = make(3, noise_sd=None)
    state = policy.state
    state.log_evidence[NOT_WORSE, :, 0, 2] = state.log_evidence[BEATS, 0, 2, 1] = math.inf
    assert proven(policy, 0) == (False, {1})
    state.arms.active[1], state.arms.left[1] = False, (7, 0, 2)
    assert proven(policy, 0) == (True, set())


def test_between_evaluations_one_test_is_looked_at_and_may_end_it():
    """The first that the proof lacked: it ends in that pass, not in the one that is due."""
    rng, early = np.random.default_rng(2), 0
    for _ in range(8):
        policy, values = make(2, 1, noise_sd=None, tolerance=0.05), rng.normal(0.0, 1.0, (6_000, 2))
        for number, row in enumerate(values):
            due = policy.state.clock[NEXT]
            rival, stuck = policy.state.clock[[RIVAL, STUCK]].tolist()
            policy.tell_many([0, 1], row[:, None], [number] * 2)
            if policy.finished:
                early += number + 1 < due
                assert (rival, stuck) == (1 - policy.recommendation, 0)
                break
    assert early >= 3


def test_who_is_out_on_a_later_objective_is_not_out_for_every_answer():
    """By whom it is beaten there may be out itself, once the answer beats that on the first objective."""
    policy = make(3, preregistered=False)
    state = policy.state
    state.lcb[0] = 0.0
    state.lcb[1, 2, 1], state.clock[RESULTS] = 1.0, 7
    begin(state)
    assert [(left.arm, left.objective) for left in policy.eliminations] == [(1, 1)]
    state.lcb[0, 0, 2], state.lcb[1, 0, 1] = 1.0, -math.inf
    assert proven(policy, 0) == (False, {1})
    state.lcb[1, 0, 1] = 0.0
    assert proven(policy, 0) == (True, set())


@pytest.mark.parametrize("preregistered", [True, False])
def test_who_is_ahead_by_exactly_the_tolerance_does_not_win_by_that(preregistered):
    """Else a tie would prove who seems better on the next objective."""
    policy = make(2, noise=["exact", "gaussian"], noise_sd=None, tolerance=0.03, preregistered=preregistered,
                  resolution=[0.0, 0.03])  # fmt: skip
    for number, luck in enumerate(np.random.default_rng(1).standard_normal(20)):
        policy.tell_many([0, 1], [[0.86, 0.1 + luck], [0.83, -luck]], [number] * 2)
    assert policy.recommendation == 0
    assert not policy.finished


# --- what it says


def test_an_arm_that_is_not_asked_lacks_no_value():
    """Only what was asked and did not come counts at its worst."""
    policy = make(3, 1, noise=["bernoulli", "worst"], noise_sd=None, offered=[0, 1])
    for number in range(4):
        policy.tell_many([0, 1], [[1.0], [None]], [number] * 2)
    counts = policy.state.completed[:, 0, :, 0]  # of pairs (0, 1), (0, 2), (1, 2), then of arms
    assert counts.T.tolist() == [[4, 0, 0, 4, 4, 0]] * 2


def test_an_arm_keeps_the_round_in_which_it_left_and_is_out_by_who_beats_it_now():
    policy = make(stop_when="all")
    state = policy.state
    state.lcb[:] = 0.0
    state.lcb[1, 2, 0] = 1.0
    state.clock[RESULTS] = 7
    begin(state)
    assert policy.eliminations == ((0, 7, 1, 2),)
    state.clock[RESULTS] = 9
    state.lcb[0, 1, 0] = 1.0  # arm 0 no longer gets as far as arm 2
    begin(state)
    assert policy.eliminations == ((0, 7, 0, 1),)


def test_the_certificate_names_what_was_seen_of_every_rival():
    means = np.array([[0.0, 0.0], [3.0, 0.0], [3.02, 3.0], [3.0, 3.02]])
    policy = measured(make(4), means, np.random.default_rng(2))
    assert policy.certified
    said = {(s.rival, s.objective): s for s in policy.certificate}
    answer = policy.recommendation
    assert answer in (2, 3)
    assert said[0, 0].verdict == "better"
    assert (0, 1) not in said
    assert said[1, 0].verdict in ("tied", "not_worse")
    assert said[1, 1].verdict == "better"
    for (rival, i), seen in said.items():
        truth = means[answer, i] - means[rival, i]
        assert seen.low <= truth <= seen.high
        assert seen.low <= seen.difference <= seen.high
        assert seen.results == policy.paired[answer, rival, i] > 0


def test_differences_and_intervals_hold_the_truth_and_are_antisymmetric():
    means = np.array([[0.0, 0.5], [0.3, 0.2], [0.1, 0.1]])
    policy = measured(
        make(noise="gaussian", noise_sd=None, resolution=0.05), means, np.random.default_rng(3), most=300
    )
    low, high = np.moveaxis(policy.differences, -1, 0)
    truth = means[:, None] - means[None, :]
    assert np.all((low <= truth) & (truth <= high))
    assert np.array_equal(low, -high.transpose(1, 0, 2))
    low, high = np.moveaxis(policy.intervals, -1, 0)
    assert np.all((low < means) & (means < high))
    assert np.isfinite(policy.differences).all()


def test_an_answer_on_finite_variance_is_never_certified():
    rng = np.random.default_rng(4)
    policy = measured(make(2, 1, noise="finite_variance", noise_sd=None), np.array([[0.0], [9.0]]), rng)
    assert policy.finished
    assert policy.folded >= 300
    assert policy.asymptotic
    assert not policy.certified


def test_a_value_that_carries_the_variance_is_named():
    policy = make(2, 1, noise="finite_variance", noise_sd=None)
    values = np.random.default_rng(0).standard_normal((700, 1))
    values[0] = 1000.0
    policy.tell_many([0, 1] * 350, values)
    assert policy.assumption_warnings == ((0, 0),)
    calm = np.random.default_rng(0).standard_normal((2000, 1)) * 0.2 + np.tile([[0.0], [9.0]], (1000, 1))
    calm[0] = 60.0
    with pytest.warns(UserWarning, match="variance of arm 0 on objective 0"):
        policy.fresh().tell_many([0, 1] * 1000, calm)


def test_exact_objectives_take_one_pass():
    policy = make(3, 2, noise="exact", noise_sd=None, tolerance=0.0)
    policy.tell_many([0, 1, 2], [[1.0, 5.0], [2.0, 3.0], [2.0, 4.0]])
    assert policy.finished
    assert policy.recommendation == 2
    assert [(e.arm, e.objective, e.rival) for e in policy.eliminations] == [(0, 0, 1), (1, 1, 2)]


def test_exact_values_measured_in_different_passes_are_compared():
    policy = make(2, 1, noise="exact", noise_sd=None, tolerance=0.0)
    policy.tell_many([0, 1], [[1.0], [None]])
    policy.tell_many([0, 1], [[None], [2.0]])
    assert policy.finished
    assert policy.recommendation == 1


def bought(rng, share, count):
    """What visitors pay: mostly nothing, on average 1."""
    return np.where(rng.random(count) < share, rng.lognormal(0.0, 0.5, count) / share / math.exp(0.125), 0.0)


def test_zeros_of_those_who_bought_nothing_are_never_certified_as_gaussian():
    """Half the runs are wrong at δ = .05: the mean of rare large payments is no Gaussian mean."""
    rng, wrong = np.random.default_rng(3), 0
    for _ in range(40):
        policy = lb.LexElimTol(2, 1, delta=0.05, tolerance=0.0, resolution=0.5, stop_when="all").quiet()
        while not policy.finished:
            values = np.stack([bought(rng, share, 20) for share in (0.02, 0.3)], axis=1)
            policy.tell_many([0, 1] * 20, values.reshape(-1, 1))
        wrong += policy.eliminations != ()
        assert policy.repeated == (0,)
        assert not policy.certified
    assert wrong >= 10


@pytest.mark.parametrize("count", [20, 100, 1000])
def test_rounded_gaussian_values_may_repeat(count):
    """Whole milliseconds, with a standard deviation of 10: rarely more than chance would have it."""
    rng = np.random.default_rng(count)
    alarms = sum(one_value_returns(rng.normal(300, 10, count).round()) for _ in range(500))
    assert alarms <= 3
    assert not one_value_returns(rng.normal(size=count))
    mixed = np.where(np.arange(count) % 3 == 0, 0.0, rng.normal(size=count))
    assert one_value_returns(mixed) == (count >= FEWEST)


def test_repetitions_are_those_of_folded_places_in_any_order():
    """What waits, and what comes for a pass in which the arm was not asked, is not looked at."""
    rng = np.random.default_rng(1)
    values = np.where(rng.random((60, 2)) < 0.5, 0.0, rng.normal(size=(60, 2)))
    places = [(arm, number) for number in range(60) for arm in range(2)]
    inorder = lb.LexElimTol(2, 1, delta=0.05, tolerance=0.01).quiet()
    for arm, number in places:
        inorder.tell(arm, [values[number, arm]], item=number)
    shuffled = inorder.fresh().quiet()
    for arm, number in rng.permutation(places).tolist():
        shuffled.tell(arm, [values[number, arm]], item=number)
        folded = shuffled.counts[:, 0].tolist()
        early = [values[: folded[arm], arm] for arm in range(2)]
        assert shuffled.repeated == ((0,) if any(map(one_value_returns, early)) else ())
    assert shuffled == inorder
    assert inorder.repeated == inorder.amended(tolerance=0.02).repeated == (0,)


def survivors_in_hundredths(values, tolerance, resolution, targets):
    """Who is left when everything is known, by whole numbers."""
    left = set(range(len(values)))
    for i, target in enumerate(targets):
        column = {arm: values[arm][i] for arm in left}
        if target is None:
            line = max(column.values()) - tolerance[i]
        else:  # between floor and target an arm may stay, and does if nobody asks for more
            line = min(max(column.values()), target - resolution[i])
        left = {arm for arm in left if column[arm] >= line}
    return left


@given(st.data())
@settings(max_examples=up_to(300), deadline=None)
def test_exact_decimals_are_compared_as_they_are_written(data):
    """Ties at exactly a tolerance or a target, however floats come out: as whole hundredths say."""
    K, m = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 2))

    def several(some):
        return data.draw(st.lists(some, min_size=m, max_size=m))

    base = data.draw(st.sampled_from([0, 83, -(10**6), 10**9]))
    values = [several(st.integers(base, base + 6)) for _ in range(K)]
    tolerance, resolution = several(st.integers(0, 4)), several(st.integers(0, 3))
    targets = several(st.none() | st.integers(base, base + 6))
    policy = lb.LexElimTol(
        K,
        m,
        delta=0.1,
        noise="exact",
        stop_when="all",
        tolerance=[t / 100 for t in tolerance],
        resolution=[r / 100 for r in resolution],
        at_least=[None if t is None else t / 100 for t in targets],
    )
    means = [[v / 100 for v in row] for row in values]
    for _ in range(1 + m):  # a target that nobody meets is judged as any other objective a pass later
        policy.tell_many(policy.wanted, [means[arm] for arm in policy.wanted])
    assert policy.finished
    left = survivors_in_hundredths(values, tolerance, resolution, targets)
    assert set(policy.candidates) == left
    best = max(values[arm][-1] for arm in left)
    assert policy.recommendation == min(arm for arm in left if values[arm][-1] == best)
    judge = Tolerances(policy.settings, lb.Instance(means))
    assert judge.accepts_course(policy.recommendation, {e.arm: e.objective for e in policy.eliminations})
    amended = policy.amended(tolerance=[(t + 1) / 100 for t in tolerance])
    for _ in range(1 + m):
        amended.tell_many(amended.wanted, [means[arm] for arm in amended.wanted])
    left = survivors_in_hundredths(values, [t + 1 for t in tolerance], resolution, targets)
    assert set(amended.candidates) == left


def test_a_sum_in_floating_point_meets_the_limit_it_is_written_as():
    policy = make(2, 1, noise="exact", noise_sd=None, tolerance=0.0, resolution=0.0, at_least=-0.3)
    policy.tell_many([0, 1], [[-(0.1 + 0.2)], [-0.31]])
    assert policy.certified
    assert policy.candidates == (0,)
    tied = make(2, 1, noise="exact", noise_sd=None, tolerance=0.03, resolution=0.0)
    tied.tell_many([0, 1], [[0.83], [0.86]])
    assert tied.candidates == (0, 1)
    assert tied.differences[1, 0, 0].tolist() == [0.03, 0.03]
    assert tied.certificate[0].verdict == "tied"
    assert tied.certificate[0].difference == 0.03


def test_one_huge_value_blurs_nobody_else():
    policy = make(3, 1, noise="exact", noise_sd=None, tolerance=0.0, resolution=0.0)
    policy.tell_many([0, 1, 2], [[-1e17], [1.0], [1.5]])
    assert policy.candidates == (2,)
    far = make(3, 1, noise="exact", noise_sd=None, tolerance=0.0, resolution=0.0)
    far.tell_many([0, 1, 2], [[1e17], [1e17 + 16], [1.0]])
    assert far.candidates == (0, 1)  # what floats of that size cannot tell apart
    near = make(2, 1, noise="exact", noise_sd=None, tolerance=1040.0, resolution=0.0)
    near.tell_many([0, 1], [[1e17], [1e17 + 1024]])
    assert near.amended(tolerance=1008.0).candidates == (0, 1)  # compared with the new limit, anew
    assert near.amended(tolerance=960.0).candidates == (1,)


def test_a_lone_arm_is_still_tested_against_its_target():
    policy = make(1, 2, at_least=[None, 1.0])
    assert not policy.finished
    measured(policy, np.array([[0.0, 0.0]]), np.random.default_rng(0))
    assert policy.infeasible == ((1, (0,)),)
    assert policy.certified
    assert policy.recommendation == 0


def test_nobody_meets_the_target():
    means = np.array([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    going_on = measured(make(at_least=[5.0, None]), means, np.random.default_rng(0))
    assert going_on.infeasible == ((0, (0, 1, 2)),)
    assert going_on.recommendation == 2
    assert going_on.certified, "by the promise for any other objective"
    stopped = measured(make(at_least=[5.0, None], if_infeasible="stop"), means, np.random.default_rng(0))
    assert stopped.finished
    assert stopped.candidates == (0, 1, 2)
    assert not stopped.certified
    assert stopped.rounds < going_on.rounds


def test_data_that_refute_everybody_end_in_a_contradiction():
    """Impossible on the good event: each arm has been seen to beat the other."""
    conflicted = make(2, 1, tolerance=0.1, noise_sd=0.2)
    conflicted.state.lcb[0] = 0.2
    evaluate(conflicted.state, True)
    assert conflicted.contradiction
    assert conflicted.finished
    assert not conflicted.certified
    assert conflicted.certificate == ()
    assert conflicted.candidates == (0, 1)


def test_settings_are_json_and_make_an_equal_policy():
    noise = ["gaussian", ("bounded", 0, 1), ("sub_gaussian", 2, "dependent")]
    rules = {"at_least": [None, 0.5, None], "order": [2, 0, 1], "offered": [0, 2], "max_arms": 5}
    policy = make(3, 3, noise_sd=None, noise=noise, **rules)
    assert lb.LexElimTol(**json.loads(json.dumps(policy.settings))) == policy
    assert policy.candidates == (0, 2)


def test_a_simulated_run_is_what_asking_and_telling_gives():
    instance = lb.random_instance(5, 3, seed=2, noise_sd=0.3)
    policy = lb.LexElimTol(5, 3, delta=0.1, tolerance=0.1)
    simulated = lb.simulate(policy, instance, horizon=20_000, seed=1)
    noise = stream(1, 0)
    while not policy.finished:
        arm = policy.ask()
        policy.tell(arm, instance.means[arm] + 0.3 * noise.standard_normal(3))
    assert policy.rounds == simulated.rounds
    assert policy.recommendation == simulated.recommendation
    assert policy.eliminations == simulated.eliminations
    assert policy.certified


# --- what it refuses


@pytest.mark.parametrize(
    ("noise", "reward", "message"),
    [
        ("bernoulli", [0.5, 1.5], r"arm 1 on objective 1 must be in \[0, 1\].*1.5"),
        (["bounded", -1.0, 2.0], [0.0, -1.5], r"arm 1 on objective 1 .*\[-1.0, 2.0\].*-1.5"),
        ("gaussian", [math.inf, 0.0], "finite"),
        ("gaussian", ["high", 0.0], "numbers"),
        ("gaussian", [0.0], "shape|columns|2 numbers"),
    ],
)
def test_bad_values_are_refused_before_anything_changes(noise, reward, message):
    policy = make(noise=noise, noise_sd=None)
    with pytest.raises((TypeError, ValueError), match=message):
        policy.tell(1, reward)
    with pytest.raises((TypeError, ValueError), match=message):
        policy.tell_many([0, 1], [[0.5, 0.5], reward])
    assert policy == policy.fresh()


def test_a_second_different_exact_value_is_refused_wherever_the_first_is():
    for first in ({}, {"item": 4}):
        policy = make(2, 1, noise="exact", noise_sd=None)
        policy.tell(0, [1.0], **first)
        with pytest.raises(ValueError, match=r'arm 0 gave 2.0 on objective 0 after 1.0.* "exact"'):
            policy.tell(0, [2.0])
        policy.tell(0, [1.0])
    with pytest.raises(ValueError, match="exact"):
        make(2, 1, noise="exact", noise_sd=None).tell_many([0, 0], [[1.0], [2.0]])
    simulated = lb.LexElimTol(2, 2, delta=0.1, tolerance=0.1, noise=["gaussian", "exact"])
    with pytest.raises(ValueError, match="exact"):
        lb.simulate(simulated, lb.Instance([[0.0, 0.0], [1.0, 1.0]], noise_sd=0.1), horizon=100, seed=0)


def test_values_outside_the_bounds_end_a_simulation():
    policy = lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise="bernoulli")
    with pytest.raises(ValueError, match="bounds"):
        lb.simulate(policy, lb.Instance([[0.5], [0.5]], noise_sd=3.0), horizon=100, seed=0)


def test_repeated_values_under_gaussian_noise_are_suspicious_once():
    policy = make(2, 1, noise="gaussian", noise_sd=None)
    policy.tell_many([0, 1], [[1.0], [1.0]])
    with pytest.warns(UserWarning, match=r'arm 0 gave 1.0 more than once on objective 0.*"bernoulli"'):
        policy.tell(0, [1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.tell(1, [1.0])
    with pytest.warns(UserWarning, match="more than once"):
        make(2, 1, noise="gaussian", noise_sd=None).tell_many([0, 1, 0], [[1.0], [2.0], [1.0]])
    values = np.random.default_rng(0).standard_normal((30, 1))
    for told, noticed in ((29, True), (30, False)):  # among the first thirty values of an arm
        late = make(2, 1, noise="gaussian", noise_sd=None)
        late.tell_many([0] * told, values[:told])
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            late.tell(0, values[3])
        assert bool(seen) is noticed
    make(2, 1, noise="gaussian", noise_sd=None).tell_many([0, 1, 0, 1], [[None]] * 4)
    make(2, 1).tell_many([0, 1, 0, 1], [[1.0]] * 4)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"tolerance": 0.0}, "positive tolerance or a positive resolution"),
        ({"tolerance": [0.1, 0.0], "resolution": [0.0, 0.1]}, "objective 0"),
        ({"tolerance": -0.1}, "tolerance"),
        ({"tolerance": math.nan}, "tolerance"),
        ({"tolerance": "wide"}, "tolerance"),
        ({"tolerance": [0.1, 0.1, 0.1]}, "tolerance"),
        ({"noise_sd": 0.0}, "noise_sd"),
        ({"delta": 1.0}, "delta"),
        ({"delta": None}, "delta"),  # None is for what may be left out
        ({"tolerance": None}, "tolerance"),
        ({"stop_when": None}, "stop_when"),
        ({"resolution": [0.1]}, "resolution"),
        ({"noise": "bernoulli"}, "not both"),
        ({"noise": "normal", "noise_sd": None}, "unknown kind"),
        ({"at_least": [1.0]}, "at_least"),
        ({"at_least": [1.0, math.nan]}, "at_least"),
        ({"order": [0, 0]}, "order"),
        ({"offered": []}, "offered"),
        ({"offered": [0, 3]}, "offered"),
        ({"max_arms": 2}, "max_arms"),
        ({"stop_when": "soon"}, "stop_when"),
        ({"if_infeasible": "panic"}, "if_infeasible"),
    ],
)
def test_settings_that_make_no_sense(wrong, message):
    with pytest.raises((TypeError, ValueError), match=message):
        make(**wrong)


def test_too_many_arms_are_refused_with_the_memory_they_would_take():
    with pytest.raises(ValueError, match=r"5000 arms .* GiB"):
        make(5000, 3)
    make(300, 2)


# --- what a certificate says of itself, on states made by hand: chance leads to them too seldom


def test_who_left_on_a_later_objective_is_beaten_by_its_rival_only_once_the_survivors_end_it():
    """Until then it is the proof that counts, and to that other arms do not matter after the first."""
    state = make().state
    state.lcb[0], state.arms.active[1] = 0.0, False
    state.arms.left[1] = 7, 1, 2
    assert _verdict(state, 0, 1, 1, math.inf) == ("open", -1)
    state.clock[POSITION] = 2
    assert _verdict(state, 0, 1, 1, math.inf) == ("beaten", 2)
    state.clock[POSITION], state.arms.left[1, 1] = 0, 0
    assert _verdict(state, 0, 1, 0, math.inf) == ("beaten", 2), "on the first whoever beats it does"


def test_close_is_certain_only_if_both_sides_are():
    state = make().state
    state.lcb[0, 0, 1] = 0.0
    assert _holds(state, 0, 1, 0, "not_worse", -1)
    assert not _holds(state, 0, 1, 0, "tied", -1)
    state.lcb[0, 1, 0] = 0.0
    assert _holds(state, 0, 1, 0, "tied", -1)


def test_what_contradicts_itself_proves_nobody():
    state = make(n_items=20, noise="bernoulli", noise_sd=None).state
    state.lcb[0, [0, 1, 2], [1, 2, 0]] = 0.5  # in a circle
    assert not any(still_proven(state, arm) for arm in range(3))


@pytest.mark.parametrize("listed", [{}, {"n_items": 2 * EARLY}])
def test_as_many_first_values_are_kept_as_there_is_room_for(listed):
    policy = lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise="gaussian", **listed).quiet()
    values = np.arange(1.0, EARLY + 6)
    policy.tell_many([0, 1] * values.size, np.repeat(values, 2)[:, None], np.repeat(range(values.size), 2))
    kept = policy.state.singles[:, 0, FIRST:]
    assert kept.tolist() == [values[:EARLY].tolist()] * 2
