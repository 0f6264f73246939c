"""LexElim-Tol with tolerances that are shares of a mean is its specification, and keeps its promise."""

import itertools
import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

import lexbandits as lb
from lexbandits import _jit
from lexbandits.evidence.betting import LEAST, MOST, STAKES
from lexbandits.evidence.interval import kind_at
from lexbandits.policies.tolerance.preregistered import evidence_for
from lexbandits.policies.tolerance.relative import BETS, LOGS, bet_on_share, contrast_evidence
from lexbandits.policies.tolerance.state import BEATS, NOT_WORSE
from support.examples import up_to
from support.tol_oracle import WITH_ENDS
from support.tol_places import (
    APART,
    agree,
    agree_on_the_certificate,
    check_driven,
    drive,
    expected,
    oracle_rules,
    plain,
)

pytestmark = pytest.mark.filterwarnings("ignore:.*gave .* more than once")
MANY = 40 if _jit.INTERPRETED else up_to(100)

KINDS = ["gaussian", ["sub_gaussian", 0.3], APART, ["bounded", 0.0, 3.0], ["bounded", 0.0, 3.0, "worst"],
         "bernoulli", ["bernoulli", "worst"], "exact", "finite_variance"]  # fmt: skip


def turned(kind, sign):
    """The kind of negated values."""
    if sign > 0 or plain(kind)[0] not in WITH_ENDS:
        return kind
    _, low, high, *worst = plain(kind)
    return ["bounded", -high, -low, *worst]


@st.composite
def worlds(draw, kinds=KINDS, arms=(2, 4)):
    """Settings of a policy of which some objectives have shares, and the values of any place."""
    K, m = draw(st.integers(*arms)), draw(st.integers(1, 2))
    said = draw(st.lists(st.sampled_from(kinds), min_size=m, max_size=m))
    offered = draw(st.none() | st.sets(st.integers(0, K - 1), min_size=1).map(sorted))
    of = st.sampled_from(["best", "best", *(offered or range(K))])
    reference = [draw(st.tuples(of, st.sampled_from([1, -1])))]
    reference += [draw(st.none() | st.tuples(of, st.just(-1))) for _ in range(m - 1)]
    reference = draw(st.permutations(reference))
    signs = [1 if given is None else given[1] for given in reference]
    noise = [turned(kind, sign) for kind, sign in zip(said, signs, strict=True)]
    chosen = {
        "delta": draw(st.sampled_from([0.05, 0.5, 0.95])),
        "tolerance": draw(st.lists(st.sampled_from([0.0, 0.1, 0.125, 0.4]), min_size=m, max_size=m)),
        "resolution": draw(st.lists(st.sampled_from([0.1, 0.125, 0.5]), min_size=m, max_size=m)),
        "noise": noise,
        "at_least": None,
        "if_infeasible": "continue",
        "stop_when": draw(st.sampled_from(["answer", "answer", "all"])),
        "preregistered": draw(st.sampled_from([True, True, False])),
        "order": draw(st.none() | st.permutations(range(m))),
        "offered": offered,
        "baseline": draw(st.none() | st.integers(0, K - 1)),
        "reference": reference,
    }
    level = draw(st.lists(st.lists(st.integers(0, 4), min_size=m, max_size=m), min_size=K, max_size=K))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    smooth = rng.standard_normal((7 * K, m)) * draw(st.sampled_from([0.05, 0.2]))
    lost = draw(st.sets(st.integers(0, 12), max_size=3))

    def value_at(arm, number):
        values = []
        for i, kind in enumerate(said):
            shift = float(smooth[(5 * number + 3 * arm) % len(smooth), i])
            value = abs(0.25 + 0.25 * level[arm][i] + shift)
            if kind == "exact":
                value = sum([0.1] * level[arm][i])
            elif "bernoulli" in kind:
                value = float(0.25 + 0.15 * level[arm][i] + shift > 0.5)
            value = signs[i] * min(3.0, value) + 0.0
            values.append(None if (7 * number + 5 * arm + 3 * i) % 13 in lost else value)
        return values

    return (K, m), chosen, value_at


@pytest.mark.interpreted
@given(worlds(), st.integers(0, 160))
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification(world, most):
    check_driven(world, most)


@pytest.mark.interpreted
@given(worlds(), st.integers(50, 160))
@settings(max_examples=MANY, deadline=None)
def test_it_is_its_specification_where_the_answer_is_proven_under_the_declared_rules(world, most):
    shape, chosen, value_at = world
    chosen |= {"stop_when": "answer", "delta": 0.8, "preregistered": True}
    policy = lb.LexElimTol(*shape, **chosen)
    run = expected(shape, chosen, drive(policy, value_at, most))
    agree(policy, run)
    agree_on_the_certificate(policy, run)


@pytest.mark.interpreted
@given(worlds(), worlds(), st.integers(0, 80), st.integers(0, 40), st.data())
@settings(max_examples=min(MANY, 100), deadline=None)
def test_amended_it_is_the_rule_in_force(world, other, most, more, data):
    """Order, arms and what is no share change after looking; shares and the arms they are of stay."""
    (K, m), chosen, value_at = world
    policy = lb.LexElimTol(K, m, **chosen)
    filled = drive(policy, value_at, most)
    run = expected((K, m), chosen, filled)
    needed = {given[0] for given in chosen["reference"] if given and given[0] != "best"}
    for _ in range(2):
        arms = data.draw(st.sets(st.integers(0, K - 1), min_size=1))
        twice = [1.0 if given else 2.0 for given in chosen["reference"]]
        changes = {
            "order": data.draw(st.permutations(range(m))),
            "offered": sorted(arms | needed),
            "tolerance": [t * by for t, by in zip(chosen["tolerance"], twice, strict=True)],
        }
        changes = {name: changes[name] for name in data.draw(st.sets(st.sampled_from(sorted(changes))))}
        start = max((number for _, number in filled), default=-1) + 1
        policy, chosen = policy.amended(**changes, from_pass=start), {**chosen, **changes}
        run.amend(oracle_rules((K, m), chosen), start, dict(filled))
        agree(policy, run)
        filled |= drive(policy, value_at, more)
        run.filled = dict(filled)
        run.go_on()
        agree(policy, run)


@pytest.mark.parametrize("change", [{"tolerance": [0.2, 0.1]}, {"resolution": [0.1, 0.1]}])
def test_shares_stay_as_they_were_declared(change):
    """Contrasts are kept of these alone: what was seen of them would be called a fact about others."""
    policy = lb.LexElimTol(2, 2, delta=0.05, tolerance=0.1, resolution=0.2, reference=["best", None])
    with pytest.raises(ValueError, match="objective 0: shares of a mean stay"):
        policy.amended(**change)
    assert policy.amended(tolerance=[0.1, 0.3], order=[1, 0]).settings["tolerance"] == [0.1, 0.3]


@pytest.mark.slow
def test_the_tapes_above_reach_every_end():
    seen = dict.fromkeys(["beats", "not worse", "declared", "facts", "of an arm", "rests"], 0)

    @given(worlds(arms=(2, 4)))
    @settings(max_examples=up_to(450), deadline=None, database=None, derandomize=True)
    def collect(world):
        shape, chosen, value_at = world
        policy, rests = lb.LexElimTol(*shape, **chosen), False
        while policy.rounds < 160 and not policy.finished:
            arm, number = policy.ask_place()
            policy.tell(arm, value_at(arm, number), item=number)
            rests |= 0 < len(policy.wanted) < len(policy.candidates)
        shares = [i for i, given in enumerate(chosen["reference"]) if given]
        noisy = [i for i in shares if chosen["noise"][i] != "exact"]
        seen["beats"] += bool((policy.state.lcb[noisy] == np.inf).any())
        seen["not worse"] += bool((np.abs(policy.state.lcb[noisy]) < 1).any())
        proven = policy.finished and not policy.contradiction and len(policy.certificate) > 0 and bool(noisy)
        seen["declared"] += proven and policy.state.log_evidence.size > 0
        seen["facts"] += proven and policy.state.log_evidence.size == 0
        seen["of an arm"] += proven and any(chosen["reference"][i][0] != "best" for i in noisy)
        seen["rests"] += rests

    collect()
    assert min(seen.values()) >= 5, list(seen.items())


def told(noise, values, of="best"):
    """A policy that was told one value of each arm."""
    policy = lb.LexElimTol(len(values), 1, delta=1e-6, tolerance=TOLERANCE, noise=noise, preregistered=False,
                           resolution=REACH - TOLERANCE, reference=[of]).quiet()  # fmt: skip
    policy.tell_many(range(len(values)), [[value] for value in values], [0] * len(values))
    return policy


@pytest.mark.parametrize("hundredths", [1, 4, 7, 8, 9, 14])
def test_a_tie_at_exactly_the_percentage_is_a_tie(hundredths):
    """As written: 0.9 · 0.07 is not 0.063 in binary."""
    best = hundredths / 100
    beaten, held = (told("exact", [best, round(best * (1 - part), 4)]) for part in (TOLERANCE, REACH))
    assert evidence_for(beaten.state, BEATS, 0, 0, 1) == -math.inf
    assert evidence_for(held.state, NOT_WORSE, 0, 1, 0) == math.inf


def test_nothing_is_known_of_shares_of_an_arm_that_has_no_value():
    """Or they were shares of 0."""
    policy = told("exact", [1.02, 1.0, math.nan], of=2)
    for claim, a, b in itertools.product((NOT_WORSE, BEATS), (0, 1), (0, 1)):
        assert a == b or evidence_for(policy.state, claim, 0, a, b) == -math.inf
    policy.tell_many([0, 1, 2], [[1.02], [1.0], [1.0]], [1, 1, 1])
    assert evidence_for(policy.state, BEATS, 0, 0, 1) == -math.inf
    assert evidence_for(policy.state, NOT_WORSE, 0, 0, 1) == math.inf


@pytest.mark.parametrize("of", ["best", 2])
def test_what_no_values_could_refute_needs_none(of):
    policy = lb.LexElimTol(3, 1, delta=0.1, tolerance=TOLERANCE, resolution=REACH - TOLERANCE, reference=[of],
                           noise=("bounded", 9.0, 10.0))  # fmt: skip
    assert evidence_for(policy.state, NOT_WORSE, 0, 0, 1) == math.inf
    assert evidence_for(policy.state, BEATS, 0, 0, 1) < 1.0


@pytest.mark.parametrize(
    ("noise", "of"),
    [("gaussian", "best"), ("gaussian", 2), (("sub_gaussian", 1.0), "best"), (("sub_gaussian", 1.0), 2)],
)
def test_who_is_seen_to_beat_is_seen_to_be_no_worse(noise, of):
    """Two sequences, of which the first may have more: one level pays for both, so the lesser counts."""
    policy = lb.LexElimTol(3, 1, delta=1e-9, tolerance=TOLERANCE, resolution=REACH - TOLERANCE, noise=noise,
                           reference=[of], preregistered=False).quiet()  # fmt: skip
    luck, little = np.random.default_rng(0).normal(0, [[0.1], [0.001]], (2, 20))
    values, state = [10 + luck, 0.01 + little**2, 0.01 + little**2], policy.state
    if noise == "gaussian":  # hardly any luck is left in the first contrast
        values = [10 + luck, 1 + little, 5 + luck / TOLERANCE]
        values[1] += (1 - TOLERANCE) * luck if of == "best" else 0.0
    policy.tell_many(np.tile(range(3), 20), np.transpose(values).reshape(-1, 1), np.repeat(range(20), 3))
    beats, holds = (
        contrast_evidence(state.limits, state.kinds, state.singles, state.shares, claim, 0, 0, 1)
        for claim in (BEATS, NOT_WORSE)
    )
    assert evidence_for(state, BEATS, 0, 0, 1) == evidence_for(state, NOT_WORSE, 0, 0, 1) == holds < beats


def test_wealth_may_be_more_or_less_than_a_product_can_hold():
    state = told(("bounded", 0.0, 1.0, "steady"), [0.5, 0.5]).state
    row, width, aim = np.concatenate([[0.0] * BETS, [1.0] * STAKES.size, [0.0] * STAKES.size]), 1.9, 0.1
    for value in [-1.0] * 150 + [0.9] * 1500:
        bet_on_share(row, kind_at(state.kinds, 0), (0.9, -1.0, 0.0), value, aim)
    stakes = np.minimum(STAKES * aim / width * 2.0 / 0.02, 0.97 * width)
    logs = 150 * np.log1p(-stakes / width) + 1500 * np.log1p(stakes * 0.9 / width)
    assert np.log(row[BETS:LOGS]) + row[LOGS:] == pytest.approx(logs, rel=1e-9)
    assert 150 * np.log1p(-stakes / width).min() < math.log(LEAST)
    assert logs.max() > math.log(MOST)


# --- the promise

TOLERANCE, REACH = 0.1, 0.3


def noisy(rng, means, n):
    """The luck of a pass is shared in part."""
    return means + rng.normal(0, 1, (n, 1)) + rng.normal(0, 2, (n, means.size))


def often_zero(rng, means, n):
    shape = n, means.size
    return np.where(rng.random(shape) < means / 0.75, 0.5 + rng.random(shape) / 2, 0.0)


DRAWN = {  # a mean, and (passes, arms) values of given means
    "gaussian": (8.0, noisy),
    ("sub_gaussian", 1.0): (2.0, lambda rng, means, n: means + rng.choice([-1.0, 1.0], (n, means.size))),
    ("bounded", 0.0, 1.0): (0.6, often_zero),
    "bernoulli": (0.8, lambda rng, means, n: (rng.random((n, means.size)) < means).astype(float)),
}


def at_the_edge(mean, sign, of, part):
    """Two means whose difference is this part of the better, of the worse arm's, or of a third one's."""
    if of == "best":
        return [mean, mean * (1 - sign * part)]
    if of == 1:  # worse = mean − sign·part·worse
        return [mean, mean / (1 + sign * part)]
    return [mean, mean - sign * part * 0.5 * mean, 0.5 * mean]


@pytest.mark.parametrize("claim", [NOT_WORSE, BEATS])
@pytest.mark.parametrize("of", ["best", 1, 2])
@pytest.mark.parametrize("noise", [("bounded", 0.0, 1.0), ("sub_gaussian", 0.5)])
def test_at_the_edge_wealth_is_1_on_average(noise, of, claim):
    """All that three passes can give: values are 0 or 1, independent, and the contrast's mean is 0."""
    means = at_the_edge(0.6, 1, of, TOLERANCE if claim == BEATS else REACH)
    a, b = (0, 1) if claim == BEATS else (1, 0)
    passes, arms = 3, np.arange(len(means))
    first = lb.LexElimTol(arms.size, 1, delta=1e-6, tolerance=TOLERANCE, noise=noise, preregistered=False,
                          resolution=REACH - TOLERANCE, reference=[of]).quiet()  # fmt: skip
    going, total = [(first, 1.0)], []
    for number in range(passes):
        new = []
        for policy, chance in going:
            for values in np.ndindex(*[2] * arms.size):
                then = pickle.loads(pickle.dumps(policy))
                for arm in arms.tolist():
                    then.tell(arm, [float(values[arm])], item=number)
                luck = math.prod(p if v else 1 - p for p, v in zip(means, values, strict=True))
                new.append((then, chance * luck))
        going = new
        kept = ((then.state, chance) for then, chance in going)
        wealth = ((s, math.exp(contrast_evidence(s.limits, s.kinds, s.singles, s.shares, claim, 0, a, b)), p)
                  for s, p in kept)  # fmt: skip
        total.append(sum(p * w for _, w, p in wealth))
    assert total[0] == pytest.approx(1.0, abs=1e-12), "nothing is staked before there is a mean"
    exact = noise[0] == "bounded"
    assert all(t == pytest.approx(1.0, abs=1e-12) if exact else t <= 1.0 + 1e-12 for t in total)
    assert exact or total[-1] < 1.0


def edges():
    """Every kind, sign and reference is in a quarter of all; the rest is long."""
    everything = itertools.product(enumerate(DRAWN), (1, -1), enumerate(["best", 1, 2]))
    for (row, kind), sign, (column, of) in everything:
        marks = [] if (row + 2 * column + (sign > 0)) % 4 == 0 else [pytest.mark.slow]
        name = kind if isinstance(kind, str) else kind[0]
        yield pytest.param(kind, sign, of, id=f"{of}-{sign}-{name}", marks=marks)


@pytest.mark.parametrize(("kind", "sign", "of"), list(edges()))
def test_claims_at_the_edge_are_made_at_their_level(kind, sign, of):
    """ "The first beats the second" and "the second is not worse" where it is just not so, at any time."""
    mean, draw = DRAWN[kind]
    mean, runs, level = mean * (1.0 if sign > 0 else 0.5), 250, math.log(10.0)
    noise = kind if sign > 0 or kind == "gaussian" or "sub" in kind[0] else ("bounded", -1.0, 0.0)
    wrong = np.zeros(2, int)
    for seed in range(runs):
        rng, ever = np.random.default_rng([seed, 5]), np.full(2, -math.inf)
        for claim, part in ((NOT_WORSE, REACH), (BEATS, TOLERANCE)):
            means = np.array(at_the_edge(mean, sign, of, part))
            values = sign * np.maximum(draw(rng, means, 60), 0.0)
            policy = lb.LexElimTol(means.size, 1, delta=1e-6, tolerance=TOLERANCE, noise=noise,
                                   preregistered=False, resolution=REACH - TOLERANCE,
                                   reference=[(of, sign)]).quiet()  # fmt: skip
            a, b = (0, 1) if claim == BEATS else (1, 0)
            for number in range(0, 60, 4):
                items = np.repeat(np.arange(number, number + 4), means.size)
                arms = np.tile(np.arange(means.size), 4)
                policy.tell_many(arms, values[number : number + 4].reshape(-1, 1), items)
                ever[claim] = max(ever[claim], evidence_for(policy.state, claim, 0, a, b))
        wrong += ever >= level
    assert (wrong <= binom.isf(1e-4, runs, 0.1)).all(), wrong


@pytest.mark.parametrize("seed", range(3))
def test_contrasts_that_differ_by_rounding_alone_have_no_spread(seed):
    """One arm is 90 % of the other as written: the contrast at 10 % is 0 in every pass, but for rounding."""
    rng = np.random.default_rng(seed)
    policy = lb.LexElimTol(
        2, 1, delta=0.05, tolerance=0.1, resolution=0.1, noise="gaussian", reference=["best"]
    )
    for _ in range(60):
        best = round(float(rng.uniform(3, 90)), 1)
        for arm, value in enumerate((best, round(0.9 * best, 2))):
            policy.tell(arm, [value])
    row = policy.state.shares[BEATS, 0, 0, 1]
    assert row[0] > 10
    assert row[2] == 0.0
    other = policy.state.shares[NOT_WORSE, 0, 0, 1]
    assert other[2] > 0, "where the contrast is not at its limit the spread stays"
