"""LexElim-Tol is its specification, whatever the noise, the order of telling and the rules."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits import _jit
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

pytestmark = pytest.mark.filterwarnings("ignore:.*gave .* more than once")
MANY = 40 if _jit.INTERPRETED else up_to(100)  # that both tiers agree has tests of its own: test_jit.py


@pytest.mark.interpreted
@given(worlds(), st.integers(0, 160))
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification(world, most):
    check_driven(world, most)


QUICK = ["gaussian", APART, "symmetric"]


@pytest.mark.interpreted
@given(worlds(QUICK, [None, 0.9, 5.0], (3, 5)), st.integers(60, 200))
@settings(max_examples=min(MANY, 60), deadline=None)
def test_it_is_its_specification_where_arms_rest_and_targets_are_given_up(world, most):
    shape, chosen, value_at = world
    m = shape[1]
    chosen |= {"stop_when": "all", "if_infeasible": "continue", "delta": 0.95}
    chosen |= {"tolerance": [0.5] * m, "resolution": [0.5] * m}
    policy = lb.LexElimTol(*shape, **chosen)
    agree(policy, expected(shape, chosen, drive(policy, value_at, most)))


@pytest.mark.interpreted
@given(worlds(QUICK, [None, None, 0.4], (2, 4)), st.integers(60, 200))
@settings(max_examples=min(MANY, 60), deadline=None)
def test_it_is_its_specification_where_the_answer_is_proven(world, most):
    shape, chosen, value_at = world
    chosen |= {"stop_when": "answer", "delta": 0.95, "offered": None}
    policy = lb.LexElimTol(*shape, **chosen)
    run = expected(shape, chosen, drive(policy, value_at, most))
    agree(policy, run)
    agree_on_the_certificate(policy, run)


DECLARED = ["gaussian", APART, "bernoulli", ["bounded", -1.0, 3.0], ["bounded", -1.0, 3.0, "worst"], "exact"]


@pytest.mark.interpreted
@given(worlds(DECLARED, [None, None, 0.4, 0.9], (1, 5)), st.integers(50, 160))
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification_where_the_answer_is_proven_under_the_declared_rules(world, most):
    shape, chosen, value_at = world
    chosen |= {"stop_when": "answer", "delta": 0.8, "preregistered": True, "offered": None}
    policy = lb.LexElimTol(*shape, **chosen)
    run = expected(shape, chosen, drive(policy, value_at, most))
    agree(policy, run)
    agree_on_the_certificate(policy, run)


@pytest.mark.interpreted
@given(worlds(), st.integers(1, 12), st.randoms(use_true_random=False), st.integers(0, 40))
@settings(max_examples=min(MANY, 100), deadline=None)
def test_the_state_is_a_function_of_the_set_of_filled_places(world, passes, random, extra):
    """Any permutation of tells that name their place gives the equal policy, asked for or not."""
    shape, chosen, value_at = world
    places = [(arm, number) for number in range(passes) for arm in range(shape[0])]
    places += [(random.randrange(shape[0]), passes + random.randrange(9)) for _ in range(extra)]
    places = sorted(set(places) - set(random.sample(places, min(len(places), random.choice([0, 0, 1, 3])))))
    inorder = lb.LexElimTol(*shape, **chosen)
    for arm, number in places:
        inorder.tell(arm, value_at(arm, number), item=number)
    agree(inorder, expected(shape, chosen, {place: value_at(*place) for place in places}))
    for spread in (2.0, 5.0, 1e9):  # a little out of order, much, in any order
        places.sort(key=lambda place: place[1] + random.uniform(0.0, spread))
        shuffled, cut = inorder.fresh(), random.randrange(len(places) + 1)
        for arm, number in places[:cut]:
            shuffled.tell(arm, value_at(arm, number), item=number)
        late = places[cut:]
        shuffled.tell_many([a for a, _ in late], [value_at(*place) for place in late], [k for _, k in late])
        assert shuffled == inorder
        assert shuffled.ask_places(5) == inorder.ask_places(5)


def test_policies_that_wait_for_different_places_differ():
    one, two = (lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1) for _ in range(2))
    one.tell(0, [1.0], item=3)
    two.tell(0, [1.0], item=4)
    two.state.clock[3] = 3  # the highest pass told
    assert one != two


def ends_reached(world_of, examples):
    """How many of the runs end in which way."""
    seen = dict.fromkeys(["proof", "settled", "stopped", "infeasible", "later", "rest", "ordered"], 0)

    @given(world_of)
    @settings(max_examples=examples, deadline=None, database=None, derandomize=True)
    def collect(world):
        shape, chosen, value_at = world
        policy, rested = lb.LexElimTol(*shape, **chosen), False
        while policy.rounds < 160 and not policy.finished:
            arm, number = policy.ask_place()
            policy.tell(arm, value_at(arm, number), item=number)
            rested |= 0 < len(policy.wanted) < len(policy.candidates)
        ended = policy.finished and not policy.contradiction
        proven = ended and policy.objective < shape[1] and not policy.infeasible
        seen["settled"] += ended and policy.objective == shape[1] and shape[0] > 1
        seen["stopped"] += ended and policy.objective < shape[1] and bool(policy.infeasible)
        seen["proof"] += proven
        seen["infeasible"] += bool(policy.infeasible) and chosen["if_infeasible"] == "continue"
        seen["later"] += any(e.objective != policy.state.order[0] for e in policy.eliminations)
        seen["rest"] += chosen["stop_when"] == "all" and rested
        seen["ordered"] += proven and chosen["order"] not in (None, sorted(chosen["order"] or []))

    collect()
    return seen


@pytest.mark.slow
def test_the_tapes_above_reach_every_end():
    """Proofs, all settled, targets nobody meets, eliminations on later objectives, rest, other orders."""
    seen = ends_reached(worlds(), 300)
    assert all(seen[end] >= 5 for end in ("proof", "settled", "stopped", "infeasible", "later")), seen
    half = {"stop_when": "all", "tolerance": [0.5] * 3, "resolution": [0.5] * 3, "delta": 0.95}
    resting = worlds(QUICK, [None, 0.9, 5.0], (3, 5)).map(
        lambda w: (
            w[0],
            w[1] | {k: v[: w[0][1]] if isinstance(v, list) else v for k, v in half.items()},
            w[2],
        )
    )
    assert ends_reached(resting, 60)["rest"] >= 5
    proven = worlds(QUICK, [None, None, 0.4], (2, 4)).map(
        lambda w: (w[0], w[1] | {"stop_when": "answer", "delta": 0.95, "offered": None}, w[2])
    )
    assert ends_reached(proven, 150)["ordered"] >= 2


@pytest.mark.interpreted
@given(worlds(), worlds(), st.integers(0, 80), st.integers(0, 40), st.integers(1, 3), st.data())
@settings(max_examples=MANY, deadline=None)
def test_amended_it_is_the_rule_in_force_and_begun_passes_keep_their_members(
    world, other, most, more, times, data
):
    """Tolerances, resolutions, order and arms change after looking, also in the middle of a pass."""
    (K, m), chosen, value_at = world
    policy = lb.LexElimTol(K, m, **chosen)
    filled = drive(policy, value_at, most)
    run = expected((K, m), chosen, filled)
    for _ in range(times):
        for place in policy.ask_places(data.draw(st.integers(0, 3 * K))):
            if data.draw(st.booleans()):  # what was asked and is on its way counts when it comes
                filled[place] = value_at(*place)
                policy.tell(place[0], filled[place], item=place[1])
        run.filled = dict(filled)
        run.go_on()
        changes = drawn_changes(data, K, m, other[1], chosen)
        highest = max((number for _, number in filled), default=-1)
        start = highest + 1 + data.draw(st.integers(0, 2))
        before = pickle.dumps(policy)
        amended = policy.amended(**changes, from_pass=start)
        assert pickle.dumps(policy) == before
        assert amended.settings == {**policy.settings, **changes}
        assert amended.fresh() == lb.LexElimTol(K, m, **{**chosen, **changes})
        chosen = {**chosen, **changes}
        run.amend(oracle_rules((K, m), chosen), start, dict(filled))
        agree(amended, run)
        assert amended.rounds == policy.rounds == len(filled)
        policy = amended
        filled |= drive(policy, value_at, more)
        run.filled = dict(filled)
        run.go_on()
        agree(policy, run)
        assert pickle.loads(pickle.dumps(policy)) == policy


@pytest.mark.interpreted
@given(worlds(), worlds(), st.integers(0, 40), st.randoms(use_true_random=False), st.data())
@settings(max_examples=min(MANY, 60), deadline=None)
def test_after_a_change_the_order_of_telling_does_not_matter_either(world, other, most, random, data):
    (K, m), chosen, value_at = world
    policy = lb.LexElimTol(K, m, **chosen)
    drive(policy, value_at, most)
    asked = policy.ask_places(3 * K)
    start = max([policy.folded, *(number for _, number in asked)]) + 1
    changed = policy.amended(**drawn_changes(data, K, m, other[1], chosen), from_pass=start)
    places = {*asked, *((arm, number) for number in range(start, start + 4) for arm in range(K))}
    inorder = sorted(places, key=lambda place: (place[1], place[0]))
    one, two, three = (pickle.loads(pickle.dumps(changed)) for _ in range(3))
    for arm, number in inorder:
        one.tell(arm, value_at(arm, number), item=number)
    shuffled = random.sample(inorder, len(inorder))
    for arm, number in shuffled:
        two.tell(arm, value_at(arm, number), item=number)
    three.tell_many([a for a, _ in shuffled], [value_at(*p) for p in shuffled], [k for _, k in shuffled])
    assert one == two == three
    assert one.ask_places(5) == two.ask_places(5) == three.ask_places(5)


def test_the_members_of_a_begun_pass_do_not_depend_on_a_change():
    """Who has seen the first value of a pass cannot drop it: the others of the pass are still asked."""
    policy = lb.LexElimTol(3, 1, delta=0.1, tolerance=0.1, noise_sd=0.1)
    policy.tell(0, [9.0])
    for change in ({"tolerance": 0.1}, {"offered": [0, 2]}, {"tolerance": 50.0}):
        changed = policy.amended(**change)
        if not changed.finished:
            assert changed.ask_place() == (1, 0)
        back = changed.amended(offered=[0, 1, 2], tolerance=0.1)
        back.tell(1, [1.0])
        back.tell(2, [2.0])
        assert back.counts[:, 0].tolist() == [1, 1, 1]
        assert (back.folded, back.ask_place()) == (1, (0, 1))
