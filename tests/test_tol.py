"""LexElim-Tol is its specification, whatever the noise, the order of telling and the rules."""

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits import jit
from lexbandits.evidence.interval import pair_interval, stored_difference
from lexbandits.evidence.kinds import spread_kinds
from lexbandits.policies.tol.claims import arm_evidence, evidence_for
from support import tol_oracle
from support.examples import up_to
from support.kernels import arm_bounds

MANY = 40 if jit.INTERPRETED else up_to(100)  # that both tiers agree has tests of its own: test_jit.py
APART = ["sub_gaussian", 0.3, "independent"]
KINDS = [
    "gaussian",
    ["sub_gaussian", 0.3],
    APART,
    ["bounded", -1.0, 3.0],
    ["bounded", -1.0, 3.0, "worst"],
    "bernoulli",
    ["bernoulli", "worst"],
    "exact",
    "finite_variance",
]


@pytest.fixture(autouse=True)
def quiet():
    """Tapes with ties are no Gaussian noise, and the policy says so."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*gave .* more than once.*")
        yield


def bounded_ends(kind, values, level, pair):
    """The library's interval: tested elsewhere."""
    own = spread_kinds(["bounded", *kind[1:]], 1)[0]
    if pair:
        return pair_interval(
            own, *tol_oracle.moments([stored_difference(own, d, 0.0) for d in values]), level
        )
    scaled = [(v - own.low) / (own.high - own.low) for v in values]
    return arm_bounds(own, *tol_oracle.moments(scaled), level)


def plain(kind):
    if kind == ["bernoulli", "worst"]:
        return ("bounded", 0.0, 1.0, "worst")
    if kind == "bernoulli":
        return ("bounded", 0.0, 1.0)
    return (kind,) if isinstance(kind, str) else tuple(kind)


@st.composite
def worlds(draw, kinds=KINDS, targets=(None, 0.3, 0.4, 0.9, 5.0), arms=(1, 5)):
    """Settings of a policy, and a tape: the values of any place, ties and missing ones included."""
    K, m = draw(st.integers(*arms)), draw(st.integers(1, 3))
    noise = draw(st.lists(st.sampled_from(kinds), min_size=m, max_size=m))
    target = st.lists(st.sampled_from(targets), min_size=m, max_size=m)
    at_least = draw(st.none() | target)
    chosen = {
        "delta": draw(st.sampled_from([0.05, 0.5, 0.95])),
        "tolerance": draw(st.lists(st.sampled_from([0.0, 0.1, 0.125, 0.5]), min_size=m, max_size=m)),
        "resolution": draw(st.lists(st.sampled_from([0.1, 0.125, 0.5, 1.5]), min_size=m, max_size=m)),
        "noise": noise,
        "at_least": at_least,
        "if_infeasible": draw(st.sampled_from(["go on", "stop"])),
        "settle": draw(st.sampled_from(["answer", "all"])),
        "rules": draw(st.sampled_from(["declared", "declared", "open"])),
        "order": draw(st.none() | st.permutations(range(m))),
        "offered": draw(st.none() | st.sets(st.integers(0, K - 1), min_size=1).map(sorted)),
        "baseline": draw(st.none() | st.integers(0, K - 1)),
    }
    level = draw(st.lists(st.lists(st.integers(0, 4), min_size=m, max_size=m), min_size=K, max_size=K))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    smooth = rng.standard_normal((7 * K, m)) * draw(st.sampled_from([0.05, 0.2, 0.5]))
    coarse = draw(st.booleans())
    lost = draw(st.sets(st.integers(0, 12), max_size=4))

    def tape(arm, number):
        values = []
        for i, kind in enumerate(noise):
            shift = float(smooth[(5 * number + 3 * arm) % len(smooth), i])
            value = 0.25 * level[arm][i] + (round(4 * shift) / 4 if coarse else shift)
            if kind == "exact":
                value = sum([0.1] * level[arm][i])  # 0.30000000000000004
            elif "bernoulli" in kind:
                value = float(0.25 + 0.15 * level[arm][i] + shift > 0.5)
            elif plain(kind)[0] == "bounded":
                value = min(3.0, max(-1.0, value))
            values.append(None if (7 * number + 5 * arm + 3 * i) % 13 in lost else value)
        return values

    return (K, m), chosen, tape


def oracle_rules(shape, named):
    return tol_oracle.Rules(
        *shape,
        named["delta"],
        named["tolerance"],
        named["resolution"],
        [plain(kind) for kind in named["noise"]],
        named["at_least"],
        named["order"],
        named["offered"],
        named["if_infeasible"] == "stop",
        named["settle"] == "answer",
        bounded_ends,
        named["rules"] == "declared",
        named.get("baseline"),
        named.get("reference"),
    )


def expected(shape, chosen, filled):
    return tol_oracle.Run(oracle_rules(shape, chosen), filled)


def agree(policy, run):
    now = run.now()
    assert policy.folded == now.passes
    assert policy.finished == run.over
    assert policy.contradiction == run.contradiction
    assert set(policy.candidates) == run.active
    assert policy.wanted == (() if run.over else tuple(now.members()))
    assert {e.arm: (e.round, e.objective, e.rival) for e in policy.eliminations} == run.left
    order = run.rules.order
    below = {i: tuple(run.all_below(i)) for i in order if run.is_limit(i)}
    assert dict(policy.infeasible) == {i: arms for i, arms in below.items() if arms}
    assert policy.flags == run.flags(policy.recommendation)
    assert policy.objective == (order[run.position] if run.position < run.rules.m else run.rules.m)
    assert policy.recommendation == (run.candidate if run.over else run.plug_in())
    for (i, a, b), seen in run.lows.items():
        assert policy.state.lows[i, a, b] == pytest.approx(max(seen), rel=1e-12, abs=1e-12)
    assert (policy.state.shown.size > 0) == run.account
    for (claim, i, a, *b), seen in run.claims.items():  # all of it, also what is too little to be kept
        if not b:
            kept = policy.state.arm_shown[["meets", "misses"].index(claim), i, a]
            assert kept <= max(seen) or kept == pytest.approx(max(seen), rel=1e-9, abs=1e-9)
            found = arm_evidence(policy.state, ["meets", "misses"].index(claim), i, a)
            specified = run.arm_evidence(claim, i, a)
            assert found == pytest.approx(specified, rel=1e-9, abs=1e-9)
            continue
        (b,) = b
        kept = policy.state.shown[["not worse", "beats"].index(claim), i, a, b]
        assert kept <= max(seen) or kept == pytest.approx(max(seen), rel=1e-9, abs=1e-9)
        found = evidence_for(policy.state, ["not worse", "beats"].index(claim), i, a, b)
        specified = run.evidence(claim, i, a, b)
        assert found == pytest.approx(specified, rel=1e-9, abs=1e-9) or (found == -np.inf and specified <= 0)


def agree_on_the_certificate(policy, run):
    rows = [] if policy.contradiction else policy.certificate
    for y in {row.rival for row in rows}:
        own = [row for row in rows if row.rival == y]
        said = run.said(policy.recommendation, y, {row.objective: row.high for row in own})
        assert [(row.objective, row.verdict, row.by) for row in own] == said


def drive(policy, tape, most):
    """Ask and tell, one after the other; the places filled."""
    filled = {}
    while len(filled) < most and not policy.finished:
        arm, number = policy.ask_place()
        assert arm == policy.ask()
        filled[arm, number] = tape(arm, number)
        policy.tell(arm, filled[arm, number])
    return filled


@pytest.mark.interpreted
@given(worlds(), st.integers(0, 160))
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification(world, most):
    shape, chosen, tape = world
    policy = lb.LexElimTol(*shape, **chosen)
    filled = drive(policy, tape, most)
    agree(policy, expected(shape, chosen, filled))
    again = policy.fresh()
    again.tell_many([a for a, _ in filled], list(filled.values()), [k for _, k in filled])
    assert again == policy
    assert pickle.loads(pickle.dumps(policy)) == policy


QUICK = ["gaussian", APART]


@pytest.mark.interpreted
@given(worlds(QUICK, [None, 0.9, 5.0], (3, 5)), st.integers(60, 200))
@settings(max_examples=min(MANY, 60), deadline=None)
def test_it_is_its_specification_where_arms_rest_and_targets_are_given_up(world, most):
    shape, chosen, tape = world
    m = shape[1]
    chosen |= {"settle": "all", "if_infeasible": "go on", "delta": 0.95}
    chosen |= {"tolerance": [0.5] * m, "resolution": [0.5] * m}
    policy = lb.LexElimTol(*shape, **chosen)
    agree(policy, expected(shape, chosen, drive(policy, tape, most)))


@pytest.mark.interpreted
@given(worlds(QUICK, [None, None, 0.4], (2, 4)), st.integers(60, 200))
@settings(max_examples=min(MANY, 60), deadline=None)
def test_it_is_its_specification_where_the_answer_is_proven(world, most):
    shape, chosen, tape = world
    chosen |= {"settle": "answer", "delta": 0.95, "offered": None}
    policy = lb.LexElimTol(*shape, **chosen)
    run = expected(shape, chosen, drive(policy, tape, most))
    agree(policy, run)
    agree_on_the_certificate(policy, run)


DECLARED = ["gaussian", APART, "bernoulli", ["bounded", -1.0, 3.0], ["bounded", -1.0, 3.0, "worst"], "exact"]


@pytest.mark.interpreted
@given(worlds(DECLARED, [None, None, 0.4, 0.9], (1, 5)), st.integers(50, 160))
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification_where_the_answer_is_proven_under_the_declared_rules(world, most):
    shape, chosen, tape = world
    chosen |= {"settle": "answer", "delta": 0.8, "rules": "declared", "offered": None}
    policy = lb.LexElimTol(*shape, **chosen)
    run = expected(shape, chosen, drive(policy, tape, most))
    agree(policy, run)
    agree_on_the_certificate(policy, run)


@pytest.mark.interpreted
@given(worlds(), st.integers(1, 12), st.randoms(use_true_random=False), st.integers(0, 40))
@settings(max_examples=min(MANY, 100), deadline=None)
def test_the_state_is_a_function_of_the_set_of_filled_places(world, passes, random, extra):
    """Any permutation of tells that name their place gives the equal policy, asked for or not."""
    shape, chosen, tape = world
    places = [(arm, number) for number in range(passes) for arm in range(shape[0])]
    places += [(random.randrange(shape[0]), passes + random.randrange(9)) for _ in range(extra)]
    places = sorted(set(places) - set(random.sample(places, min(len(places), random.choice([0, 0, 1, 3])))))
    inorder = lb.LexElimTol(*shape, **chosen)
    for arm, number in places:
        inorder.tell(arm, tape(arm, number), item=number)
    agree(inorder, expected(shape, chosen, {place: tape(*place) for place in places}))
    for spread in (2.0, 5.0, 1e9):  # a little out of order, much, in any order
        places.sort(key=lambda place: place[1] + random.uniform(0.0, spread))
        shuffled, cut = inorder.fresh(), random.randrange(len(places) + 1)
        for arm, number in places[:cut]:
            shuffled.tell(arm, tape(arm, number), item=number)
        late = places[cut:]
        shuffled.tell_many([a for a, _ in late], [tape(*place) for place in late], [k for _, k in late])
        assert shuffled == inorder
        assert shuffled.ask_places(5) == inorder.ask_places(5)


def test_policies_that_wait_for_different_places_differ():
    one, two = (lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1) for _ in range(2))
    one.tell(0, [1.0], item=3)
    two.tell(0, [1.0], item=4)
    two.state.clock[3] = 3  # the highest pass told
    assert one != two


def ends_reached(world_of, examples):
    """How many of the tapes end in which way."""
    seen = dict.fromkeys(["proof", "settled", "stopped", "infeasible", "later", "rest", "ordered"], 0)

    @given(world_of)
    @settings(max_examples=examples, deadline=None, database=None, derandomize=True)
    def collect(world):
        shape, chosen, tape = world
        policy, rested = lb.LexElimTol(*shape, **chosen), False
        while policy.rounds < 160 and not policy.finished:
            arm, number = policy.ask_place()
            policy.tell(arm, tape(arm, number), item=number)
            rested |= 0 < len(policy.wanted) < len(policy.candidates)
        ended = policy.finished and not policy.contradiction
        proven = ended and policy.objective < shape[1] and not policy.infeasible
        seen["settled"] += ended and policy.objective == shape[1] and shape[0] > 1
        seen["stopped"] += ended and policy.objective < shape[1] and bool(policy.infeasible)
        seen["proof"] += proven
        seen["infeasible"] += bool(policy.infeasible) and chosen["if_infeasible"] == "go on"
        seen["later"] += any(e.objective != policy.state.order[0] for e in policy.eliminations)
        seen["rest"] += chosen["settle"] == "all" and rested
        seen["ordered"] += proven and chosen["order"] not in (None, sorted(chosen["order"] or []))

    collect()
    return seen


@pytest.mark.slow
def test_the_tapes_above_reach_every_end():
    """Proofs, all settled, targets nobody meets, eliminations on later objectives, rest, other orders."""
    seen = ends_reached(worlds(), 300)
    assert all(seen[end] >= 5 for end in ("proof", "settled", "stopped", "infeasible", "later")), seen
    half = {"settle": "all", "tolerance": [0.5] * 3, "resolution": [0.5] * 3, "delta": 0.95}
    resting = worlds(QUICK, [None, 0.9, 5.0], (3, 5)).map(
        lambda w: (
            w[0],
            w[1] | {k: v[: w[0][1]] if isinstance(v, list) else v for k, v in half.items()},
            w[2],
        )
    )
    assert ends_reached(resting, 60)["rest"] >= 5
    proven = worlds(QUICK, [None, None, 0.4], (2, 4)).map(
        lambda w: (w[0], w[1] | {"settle": "answer", "delta": 0.95, "offered": None}, w[2])
    )
    assert ends_reached(proven, 150)["ordered"] >= 2


def drawn_changes(data, K, m, new, old):
    """Changes of the rules; a target and its resolution stay."""
    fine = (new["resolution"] * m)[:m]
    for i, target in enumerate(old["at_least"] or ()):
        fine[i] = fine[i] if target is None else old["resolution"][i]
    changes = {
        "tolerance": (new["tolerance"] * m)[:m],
        "resolution": fine,
        "order": data.draw(st.permutations(range(m))),
        "offered": data.draw(st.sets(st.integers(0, K - 1), min_size=1).map(sorted)),
    }
    return {name: changes[name] for name in data.draw(st.sets(st.sampled_from(sorted(changes))))}


@pytest.mark.interpreted
@given(worlds(), worlds(), st.integers(0, 80), st.integers(0, 40), st.integers(1, 3), st.data())
@settings(max_examples=MANY, deadline=None)
def test_amended_it_is_the_rule_in_force_and_begun_passes_keep_their_members(
    world, other, most, more, times, data
):
    """Tolerances, resolutions, order and arms change after looking, also in the middle of a pass."""
    (K, m), chosen, tape = world
    policy = lb.LexElimTol(K, m, **chosen)
    filled = drive(policy, tape, most)
    run = expected((K, m), chosen, filled)
    for _ in range(times):
        for place in policy.ask_places(data.draw(st.integers(0, 3 * K))):
            if data.draw(st.booleans()):  # what was asked and is on its way counts when it comes
                filled[place] = tape(*place)
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
        filled |= drive(policy, tape, more)
        run.filled = dict(filled)
        run.go_on()
        agree(policy, run)
        assert pickle.loads(pickle.dumps(policy)) == policy


@pytest.mark.interpreted
@given(worlds(), worlds(), st.integers(0, 40), st.randoms(use_true_random=False), st.data())
@settings(max_examples=min(MANY, 60), deadline=None)
def test_after_a_change_the_order_of_telling_does_not_matter_either(world, other, most, random, data):
    (K, m), chosen, tape = world
    policy = lb.LexElimTol(K, m, **chosen)
    drive(policy, tape, most)
    asked = policy.ask_places(3 * K)
    start = max([policy.folded, *(number for _, number in asked)]) + 1
    changed = policy.amended(**drawn_changes(data, K, m, other[1], chosen), from_pass=start)
    places = {*asked, *((arm, number) for number in range(start, start + 4) for arm in range(K))}
    inorder = sorted(places, key=lambda place: (place[1], place[0]))
    one, two, three = (pickle.loads(pickle.dumps(changed)) for _ in range(3))
    for arm, number in inorder:
        one.tell(arm, tape(arm, number), item=number)
    shuffled = random.sample(inorder, len(inorder))
    for arm, number in shuffled:
        two.tell(arm, tape(arm, number), item=number)
    three.tell_many([a for a, _ in shuffled], [tape(*p) for p in shuffled], [k for _, k in shuffled])
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
