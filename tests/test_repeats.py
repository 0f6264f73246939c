"""The leader of a pass is asked several times: LexElim-Tol with `leader_repeats` is its specification."""

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits import _jit
from lexbandits.evidence.betting import log_wealth, stored_boundary
from lexbandits.evidence.kinds import spread_kinds
from lexbandits.policies.tolerance.state import BEATS, NOT_WORSE
from support.examples import up_to
from support.tol_places import (
    APART,
    agree,
    agree_on_the_certificate,
    check_driven,
    drawn_changes,
    drive,
    expected,
    oracle_rules,
    worlds,
)

MANY = 40 if _jit.INTERPRETED else up_to(100)
REPEATED = [
    ["sub_gaussian", 0.3],
    APART,
    "bernoulli",
    ["bounded", -1.0, 3.0],
    ["bounded", -1.0, 3.0, "worst"],
    "exact",
]


def repeated(world, times, delta=0.3):
    shape, chosen, value_at = world
    chosen |= {"stop_when": "answer", "delta": delta, "leader_repeats": times}
    return shape, chosen, value_at


@pytest.mark.interpreted
@given(
    worlds(REPEATED, [None, None, 0.4], (2, 4)),
    st.integers(2, 3),
    st.sampled_from([0.02, 0.8]),
    st.integers(60, 300),
)
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification(world, times, delta, most):
    agree_on_the_certificate(*check_driven(repeated(world, times, delta), most))


@pytest.mark.interpreted
@given(worlds(REPEATED, [None, None, 0.4], (2, 3)), st.integers(2, 3), st.integers(60, 160), st.data())
@settings(max_examples=min(MANY, 40), deadline=None)
def test_the_state_is_a_function_of_the_set_of_filled_places(world, times, most, data):
    """Twins are told in any order, far ahead of their pass, and where their arm does not lead."""
    shape, chosen, value_at = repeated(world, times, 0.02)
    inorder = lb.LexElimTol(*shape, **chosen)
    places = list(drive(inorder, value_at, most))
    ahead = inorder.ask_places(data.draw(st.integers(0, 12)))
    stray = [(arm, times * (inorder.passes_folded + 2) + 1) for arm in range(shape[0])]
    for arm, number in dict.fromkeys([*ahead, *stray]):
        inorder.tell(arm, value_at(arm, number), item=number)
        places.append((arm, number))
    agree(inorder, expected(shape, chosen, {place: value_at(*place) for place in places}))
    random = data.draw(st.randoms(use_true_random=False))
    for spread in (5.0, 1e9):
        places.sort(key=lambda place: place[1] + random.uniform(0.0, spread))
        shuffled, cut = inorder.fresh(), random.randrange(len(places) + 1)
        for arm, number in places[:cut]:
            shuffled.tell(arm, value_at(arm, number), item=number)
        late = places[cut:]
        shuffled.tell_many([a for a, _ in late], [value_at(*place) for place in late], [k for _, k in late])
        assert shuffled == inorder
        assert shuffled.ask_places(9) == inorder.ask_places(9)


@pytest.mark.interpreted
@given(
    worlds(REPEATED, [None], (2, 3)), worlds(REPEATED), st.integers(40, 120), st.integers(0, 60), st.data()
)
@settings(max_examples=min(MANY, 40), deadline=None)
def test_passes_begun_keep_who_is_asked_how_often_when_the_rules_change(world, other, most, more, data):
    shape, chosen, value_at = repeated(world, 2, 0.02)
    policy = lb.LexElimTol(*shape, **chosen)
    filled = drive(policy, value_at, most)
    run = expected(shape, chosen, filled)
    for _ in range(2):
        for place in policy.ask_places(data.draw(st.integers(0, 8))):
            if data.draw(st.booleans()):
                filled[place] = value_at(*place)
                policy.tell(place[0], filled[place], item=place[1])
        run.filled = dict(filled)
        run.go_on()
        changes = drawn_changes(data, *shape, other[1], chosen)
        start = max((number for _, number in filled), default=-1) // 2 + 1 + data.draw(st.integers(0, 2))
        policy, chosen = policy.amended(**changes, from_pass=2 * start), {**chosen, **changes}
        run.amend(oracle_rules(shape, chosen), start, dict(filled))
        agree(policy, run)
        filled |= drive(policy, value_at, more)
        run.filled = dict(filled)
        run.go_on()
        agree(policy, run)


def test_the_tapes_above_have_leaders_of_every_kind():
    led = set()

    @given(worlds(REPEATED, [None, None, 0.4], (2, 4)), st.integers(2, 3), st.sampled_from([0.02, 0.8]))
    @settings(max_examples=60, deadline=None, database=None, derandomize=True)
    def collect(world, times, delta):
        shape, chosen, value_at = repeated(world, times, delta)
        filled = drive(lb.LexElimTol(*shape, **chosen), value_at, 160)
        if any(number % times for _, number in filled):
            led.update(map(str, chosen["noise"]))

    collect()
    assert led == set(map(str, REPEATED))


def test_asked_once_it_is_the_policy_without_the_setting():
    settings = {"delta": 0.1, "tolerance": 0.1, "noise": "bernoulli"}
    once, plain = lb.LexElimTol(3, 1, leader_repeats=1, **settings), lb.LexElimTol(3, 1, **settings)
    assert once == plain
    assert "leader_repeats" not in once.settings


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"noise": "gaussian"}, '"gaussian" noise says nothing'),
        ({"noise": "symmetric"}, '"symmetric" noise says nothing'),
        ({"noise": "finite_variance"}, '"finite_variance" noise says nothing'),
        ({"noise": "bernoulli", "reference": "best"}, "shares of a mean"),
        ({"noise": "bernoulli", "n_items": 100}, "is for a population"),
        ({"noise": "bernoulli", "stop_when": "all"}, "has a leader"),
        ({"noise": "bernoulli", "leader_repeats": 0}, "leader_repeats"),
    ],
)
def test_what_is_not_proven_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        lb.LexElimTol(2, 1, **{"delta": 0.1, "tolerance": 0.1, "leader_repeats": 2, **words})


# --- exact expectations


def led_by(arm):
    """A policy after 20 passes, whose next ones `arm` leads."""
    policy = lb.LexElimTol(
        2, 2, delta=8e-5, tolerance=0.1, resolution=0.1, noise=["bernoulli", "exact"], leader_repeats=2
    )
    for number in range(20):
        first = float(number % 2 if arm == 1 else (number + 1) % 2)
        policy.tell(0, [float(arm == 0 or first > 0), 1.0], item=2 * number)
        policy.tell(1, [float(arm == 1 or first > 0), 0.0], item=2 * number)
    assert sorted(policy.ask_places(3)) == sorted([(0, 40), (1, 40), (arm, 41)])
    return policy


def worth(policy, claim, direction):
    """What bets on the difference of the two arms, in a direction, are worth."""
    boundary = stored_boundary(spread_kinds("bernoulli", 1)[0], 0.1 if claim == BEATS else -0.2)
    return np.exp(log_wealth(policy.state.wealth, 0, 0, direction, claim, boundary))


def expected_worth(policy, claim, direction, passes, truth, give_up):
    """The expectation after so many passes more, over all results; a twin is lost where `give_up` says so."""
    if passes == 0 or policy.finished:
        return worth(policy, claim, direction)
    total, number = 0.0, policy.folded
    leader = [arm for arm, place in policy.lacking if place % 2]
    for ones in range(2 ** (2 + len(leader))):
        values = [float(ones >> k & 1) for k in range(2 + len(leader))]
        arms = [0, 1, *leader]
        chance = np.prod([truth[a] if v else 1 - truth[a] for a, v in zip(arms, values, strict=True)])
        following = copy.copy(policy)
        for arm, value, item in zip(arms, values, [number, number, number + 1], strict=False):
            lost = item > number and give_up(arm, values[arm])
            following.tell(arm, [None if lost else value, None], item=item)
        total += chance * expected_worth(following, claim, direction, passes - 1, truth, give_up)
    return total


def check_no_gain(passes):
    """At the boundary of each claim nobody expects to gain, whoever leads and whichever twin is given up."""
    ways = [lambda a, v: False, lambda a, v: v == 0.0, lambda a, v: v == 1.0, lambda a, v: v == float(a)]
    for arm in (0, 1):
        policy = led_by(arm)
        for give_up in ways:
            for claim, direction, truth in [
                (NOT_WORSE, 0, (0.3, 0.5)),
                (NOT_WORSE, 1, (0.5, 0.3)),
                (BEATS, 0, (0.5, 0.4)),
                (BEATS, 1, (0.4, 0.5)),
            ]:
                before = worth(policy, claim, direction)
                after = expected_worth(policy, claim, direction, passes, truth, give_up) / before
                assert after <= 1 + 1e-9
                if give_up is ways[0]:
                    assert after == pytest.approx(1.0, abs=1e-9)


def test_nobody_gains_by_two_results_of_the_leader():
    check_no_gain(2)


@pytest.mark.slow
def test_nobody_gains_by_two_results_of_the_leader_in_six_passes():
    policy = led_by(0)
    before = worth(policy, NOT_WORSE, 0)
    for give_up in (lambda a, v: False, lambda a, v: v == 0.0):
        after = expected_worth(policy, NOT_WORSE, 0, 6, (0.3, 0.5), give_up) / before
        assert after <= 1 + 1e-9
