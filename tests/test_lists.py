"""A policy about a list of items. Numbers of tests are those of the proofs: docs/proofs.md, section 8."""

import copy
import hashlib
import itertools
import math
import os
import pickle
import subprocess
import sys
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits._jit import entry
from lexbandits.evidence.betting import BOUNDARY_PRIOR
from lexbandits.evidence.finite_population import (
    add,
    expected,
    finite_log_evidence,
    finite_radius,
    lower_end,
    product,
    stakes,
)
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.gaussian import gaussian_log_evidence, gaussian_radius
from lexbandits.evidence.sub_gaussian import one_sided_level
from lexbandits.policies.tolerance.finite.finite_asking import play
from lexbandits.policies.tolerance.finite.finite_state import ENOUGH
from lexbandits.policies.tolerance.state import (
    BEATS_LEVEL,
    FLOOR,
    LEVEL,
    NOT_WORSE_LEVEL,
    REACH,
    TARGET,
    TARGET_LEVEL,
    TOLERANCE,
    pair_of,
)
from support import TESTS
from support import finite_oracle as oracle
from support.examples import up_to

KINDS = ["bernoulli", ("bounded", -12.0, 0.0)]


def policy_for(table, **given):
    """A policy about the list of a table (N, K, m) of values in [0, 1]."""
    n, n_arms, m = table.shape
    rules = {"delta": 0.05, "tolerance": 0.05, "resolution": 0.05, "noise": "bernoulli", **given}
    return lb.LexElimTol(n_arms, m, n_items=n, **rules)


def measured(policy, table):
    """Measure until the end; how many results it took."""
    return entry(play, bulk=True)(
        policy.state, policy.population, np.ascontiguousarray(table), table[:, :, 0].size
    )


def places_of(table):
    return [(arm, t) for t in range(table.shape[0]) for arm in range(table.shape[1])]


def facts(policy):
    """All that was seen: (claim, objective, a, b)."""
    lcb, limits = policy.state.lcb, policy.state.limits
    beats = lcb > limits[:, TOLERANCE, None, None]
    holds = lcb >= -limits[:, REACH, None, None]
    return {(c, *where) for c, found in (("b", beats), ("n", holds)) for where in np.argwhere(found).tolist()
            if where[1] != where[2]}  # fmt: skip


# --- 1 and 2: what wealth is


def test_wealth_is_a_martingale_at_the_mean_and_falls_above_it():
    for values in ([0, 1], [0, 0, 1, 1, 1], [0.2, 0.9, 0.9, 0.1, 0.5, 1.0]):
        mean, orders = sum(map(Fraction, values)) / len(values), list(itertools.permutations(values))
        for x, bound in ((mean, 1.0), (mean + (1 - mean) / 5, None), (mean + (1 - mean) / 2, None)):
            found = np.mean([oracle.wealths(order, len(values), x) for order in orders], axis=0)
            assert (found <= 1 + 1e-12).all()
            assert bound is None or np.abs(found - 1).max() < 1e-12


@settings(max_examples=up_to(60), deadline=None)
@given(st.data())
def test_wealth_falls_in_the_boundary_and_rises_in_every_value(data):
    values = data.draw(st.lists(st.floats(0, 1), min_size=1, max_size=12))
    n_items = len(values) + data.draw(st.integers(0, 10))
    x = data.draw(st.floats(0.01, 0.98))
    before = oracle.wealths(values, n_items, x)
    impossible = sum(values) > n_items * x
    higher = oracle.wealths(values, n_items, min(1.0, x + 0.01))
    assert impossible or all(h <= b * (1 + 1e-9) + 1e-300 for h, b in zip(higher, before, strict=True))
    which = data.draw(st.integers(0, len(values) - 1))
    more = [1.0 if t == which else value for t, value in enumerate(values)]
    assert sum(more) > n_items * x or oracle.wealths(more, n_items, x)[-1] >= before[-1] * (1 - 1e-9)


def test_stakes_are_those_of_the_page():
    for n in (1, 2, 10, 200, 5000, 13_050, 100_000):
        etas, weights, risks = stakes(n)
        assert np.allclose(np.stack([etas, weights, risks], axis=1), oracle.stakes(n), rtol=1e-12)
    assert stakes(5000)[0].size == 12 < stakes(100_000)[0].size


# --- the policy is what the oracle says, and a function of the set of places


def draw_table(rng, n, n_arms):
    """0/1 values and values in [−12, 0], correlated between arms."""
    luck = rng.random((n, 1))
    first = (0.7 * luck + 0.3 * rng.random((n, n_arms)) < rng.uniform(0.3, 0.9, n_arms)).astype(float)
    second = -12 * (0.5 * luck + 0.5 * rng.random((n, n_arms))) * rng.uniform(0.3, 1, n_arms)
    return np.stack([first, second], axis=2)


def told(rng, table, share=0.8, missing=0.1):
    """Some places in random order, with what is told there: None for a hole, or for one value."""
    found = []
    for arm, t in rng.permutation(places_of(table)).tolist():
        if rng.random() < share or t < 0.7 * share * len(table):
            values = [None if rng.random() < missing else float(v) for v in table[t, arm]]
            found.append((arm, t, [None, None] if rng.random() < missing else values))
    return found


def prefixes(results, n_arms):
    """Arm -> what it has folded, by position."""
    kept = {(arm, t): values for arm, t, values in results}
    found = []
    for arm in range(n_arms):
        until = next(t for t in itertools.count() if (arm, t) not in kept)
        found.append([kept[arm, t] for t in range(until)])
    return found


def test_what_is_seen_is_what_the_oracle_sees():
    assert sum(map(compare_with_oracle, range(4))) > 10


def compare_with_oracle(seed):
    """Compare a random history with the oracle; how often evidence was enough to be noted."""
    rng = np.random.default_rng(seed)
    table = draw_table(rng, 30, 3)[:, [0, 1, 2, 0]]  # equal arms: it does not end early
    rules = {"tolerance": [0.05, 0.6], "resolution": [0.03, 0.1], "noise": KINDS, "stop_when": "all"}
    policy = policy_for(table, delta=0.9, since=[0, 0, 0, 7] if seed % 2 else None, **rules)
    results = told(rng, table, share=0.97, missing=0.01 * (seed % 3))
    results = [
        result for result in results if result[:2] != (seed % 4, 28 + seed // 2)
    ]  # all but one go to their end
    for arm, t, values in results:
        policy.tell(arm, values, item=t)
    had = prefixes(results, 4)
    if policy.finished:
        return 0
    assert policy.until == tuple(map(len, had))
    state, population, noted = policy.state, policy.population, 0
    exact = policy._without_chance(lambda kind: True).lcb
    for i, (low, high) in enumerate(((0, 1), (-12, 0))):
        enough, (tolerance, reach) = state.limits[i, LEVEL] + math.log(2), state.limits[i, [TOLERANCE, REACH]]
        for a, b in itertools.permutations(range(4), 2):
            n = min(len(had[a]), len(had[b]))
            mine, its = ([values[i] for values in had[arm][:n]] for arm in (a, b))
            begin = max(population.since[a], population.since[b])
            said = oracle.pair(mine, its, 30, low, high, tolerance, reach, enough, begin)
            assert (state.lcb[i, a, b] > tolerance) == said["beats"][0]
            assert (state.lcb[i, a, b] >= -reach) == said["not worse"][0]
            assert (exact[i, a, b] > tolerance) == said["beats"][1]
            assert (exact[i, a, b] >= -reach) == said["not worse"][1]
            for c, word in enumerate(("not worse", "beats")):
                seen = state.log_evidence[c, i, a, b]
                noted += seen > -math.inf
                if seen >= population.marks[i, ENOUGH]:  # enough is enough
                    assert said[word][2] >= seen - 1e-8
                    continue
                assert seen == -math.inf or seen == pytest.approx(said[word][2], abs=1e-8)
                worth = population.wealth[pair_of(min(a, b), max(a, b), 4), i, :, 2 * (a > b) + c].sum()
                assert worth == pytest.approx(said[word][3], rel=1e-9)
    return noted


def test_what_is_seen_of_targets_is_what_the_oracle_sees():
    seen = sum((compare_targets_with_oracle(seed) for seed in range(6)), Counter())
    assert len(seen) == 6, "by evidence and by arithmetic some pass, some miss and some are open"


def compare_targets_with_oracle(seed):
    """After each result, with holes; how often what was seen."""
    rng, seen, since = np.random.default_rng(seed), Counter(), 7 * (seed % 2)
    table, ends = draw_table(rng, 30, 2), [[0.0, 1.0], [-12.0, 0.0]]
    rules = {"tolerance": 0.0, "resolution": [0.1, 1.0], "noise": KINDS, "stop_when": "all", "delta": 0.9}
    policy = policy_for(table, at_least=[0.7, -4.0], since=[0, since], **rules)
    had = [[[] for _ in ends] for _ in range(2)]  # arm, objective: (least, largest) as stored
    for arm, t in places_of(table):
        values = [None if rng.random() < 0.05 else float(value) for value in table[t, arm]]
        policy.tell(arm, values, item=t)
        exact = policy._without_chance(lambda kind: True).bounds
        for i, (low, high) in enumerate(ends):
            both = (low, high) if values[i] is None else (values[i], values[i])
            had[arm][i].append([(Fraction(end) - Fraction(low)) / Fraction(high - low) for end in both])
            least, lacks = [z for z, _ in had[arm][i]], [1 - z for _, z in had[arm][i]]
            level, target, floor = policy.state.limits[i, [TARGET_LEVEL, TARGET, FLOOR]].tolist()
            at, above = ((Fraction(end) - Fraction(low)) / Fraction(high - low) for end in (floor, target))
            passed = oracle.claim(least, lacks, 30, at, False, level, since * arm)
            missed = oracle.claim(lacks, least, 30, 1 - above, True, level, since * arm)
            for bounds, which in ((policy.state.bounds[i, arm], 0), (exact[i, arm], 1)):
                found = bool(bounds[0] >= floor), bool(bounds[1] < target)
                assert found == (passed[which], missed[which])
                seen.update([(which, *found)])
        if policy.finished:
            break
    return seen


def test_facts_have_a_twentieth_of_delta_and_two_sides_and_claims_what_is_left():
    policy = policy_for(np.zeros((60, 2, 1)), delta=0.9, tolerance=0.03, resolution=0.03)
    limits, seen = policy.state.limits[0], []
    assert limits[[NOT_WORSE_LEVEL, BEATS_LEVEL]] == pytest.approx(
        np.log([1 / (0.95 * 0.9), 2 / (0.95 * 0.9)])
    )
    for n in range(1, 10):  # before there is a candidate
        policy.tell(0, [1.0], item=n - 1)
        policy.tell(1, [0.0], item=n - 1)
        said = oracle.pair([1] * n, [0] * n, 60, 0, 1, 0.03, 0.06, math.log(2 * 1 * 1 / (0.05 * 0.9)))
        for word, c, bound in (("beats", 1, 0.03), ("not worse", 0, -0.06)):
            assert (policy.state.lcb[0, 0, 1] >= np.nextafter(bound, bound + c)) == said[word][0]
            assert (
                policy.state.log_evidence[c, 0, 0, 1] >= min(said[word][2], limits[LEVEL]) - 1e-8
                or said[word][2] < 0.96
            )
        seen.append(facts(policy))
    assert seen[0] == set()
    assert ("b", 0, 0, 1) in seen[-1]
    assert len({len(found) for found in seen}) == 3


@pytest.mark.parametrize("seed", range(4))
def test_state_is_a_function_of_the_set_of_places(seed):
    rng = np.random.default_rng(100 + seed)
    table = draw_table(rng, 40, 3)[:, [0, 1, 2, 0, 1, 2]]  # equal arms: it does not end early
    rules = {"tolerance": [0.02, 0.2], "resolution": 0.0, "noise": KINDS, "delta": 0.5, "stop_when": "all"}
    results = told(rng, table, share=0.98, missing=0.03)
    lost = [(arm, t) for arm, t, values in results if values == [None, None]]
    first, again = policy_for(table, **rules), policy_for(table, **rules)
    for arm, t, values in results:
        first.tell(arm, values, item=t)
    seen = facts(first)
    for arm, t in lost[::2]:
        first.tell(arm, table[t, arm], item=t)
    filled = {(arm, t): values for arm, t, values in results}
    filled |= {(arm, t): table[t, arm].tolist() for arm, t in lost[::2]}
    order = rng.permutation(len(filled)).tolist()
    mixed = [list(filled.items())[k] for k in order]
    again.tell_many([a for (a, _), _ in mixed], [v for _, v in mixed], items=[t for (_, t), _ in mixed])
    assert not first.finished
    assert seen
    assert first == again
    assert seen - facts(first) <= {f for f in seen if first.population.overturned[tuple(f[1:])]}
    assert pickle.loads(pickle.dumps(first)) == first == copy.copy(first)
    assert lb.LexElimTol(**first.settings) == first.fresh()
    with pytest.raises(ValueError, match="already filled"):
        first.tell(*next((arm, values, t) for (arm, t), values in filled.items() if values != [None, None]))


@pytest.mark.parametrize("at_least", [None, [0.5, -6.0]])
@pytest.mark.parametrize("noise", [KINDS, "gaussian"])
def test_a_corrected_value_is_as_if_it_had_been_told(noise, at_least):
    rng = np.random.default_rng(3)
    table = draw_table(rng, 40, 3)
    rules = {"tolerance": [0.02, 0.2], "resolution": [0.02, 0.2], "noise": noise, "delta": 1e-6}
    wrong, plain = (policy_for(table, **rules, at_least=at_least).quiet() for _ in range(2))
    for arm, t in places_of(table[:20]):
        plain.tell(arm, table[t, arm], item=t)
        wrong.tell(arm, [1 - table[t, arm, 0], -1.0] if (arm, t) == (1, 7) else table[t, arm], item=t)
    assert wrong != plain
    wrong.correct(1, 7, table[7, 1])
    assert wrong == plain
    kept = zip(wrong.population, plain.population, strict=True)
    assert all(np.array_equal(mine, its, equal_nan=True) for mine, its in kept)


def test_a_corrected_value_may_take_the_end_back():
    over = policy_for(np.zeros((3, 2, 1)), tolerance=0.0, resolution=0.0)
    over.tell_many([0, 1, 0, 1], [[1.0], [0.0], [1.0], [0.0]])
    assert over.finished
    over.correct(0, 0, [0.0])
    assert not over.finished
    passed = policy_for(np.zeros((60, 1, 1)), at_least=0.5, resolution=0.0, delta=0.4)
    passed.tell_many([0] * 12, [[1.0]] * 12)
    assert passed.finished
    for item in range(0, 12, 2):
        passed.correct(0, item, [0.0])
    assert not passed.finished


# --- 4 and 5: it ends, and what it says is so


@settings(max_examples=up_to(60), deadline=None)
@given(st.data())
def test_it_always_ends_with_an_answer_that_measuring_everything_allows(data):
    n, n_arms = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 4))
    tenths = st.lists(st.integers(0, 10), min_size=2 * n * n_arms, max_size=2 * n * n_arms)
    kind = data.draw(st.sampled_from(["bits", "tenths", "constant"]))
    drawn = np.array(data.draw(tenths)).reshape(n, n_arms, 2)
    table = (
        drawn / 10
        if kind == "tenths"
        else (drawn > 5) * 1.0
        if kind == "bits"
        else drawn[:1] / 10 + 0 * drawn
    )
    tolerance = data.draw(st.sampled_from([0.0, 0.05, 0.1, 0.3, 1.0]))
    resolution = data.draw(st.sampled_from([0.0, 0.1, 0.7]))
    policy = policy_for(table, delta=1e-9, tolerance=tolerance, resolution=resolution)
    results = measured(policy, table)
    assert policy.finished
    assert policy.certified
    assert policy.exact
    assert results <= n * n_arms
    exact = [[Fraction(int(v), 10) for v in table.sum(axis=0)[a] * 10 + 0.5] for a in range(n_arms)]
    means = [[value / n for value in row] for row in exact]
    reach = 2 * [tolerance + resolution]
    assert policy.recommendation in oracle.acceptable(means, 2 * [tolerance], reach)


@pytest.mark.parametrize("hundredths", range(1, 31))
def test_a_tie_at_exactly_the_tolerance_is_a_tie(hundredths):
    first, second = 23 + hundredths, 23
    table = np.zeros((100, 2, 1))
    table[:first, 0], table[-second:, 1] = 1.0, 1.0
    policy = policy_for(table, tolerance=hundredths / 100, resolution=0.0, stop_when="all", delta=1e-300)
    measured(policy, table)
    assert policy.candidates == (0, 1)
    assert policy.exact
    assert not policy.overturned
    assert policy.differences[0, 1, 0] == pytest.approx([hundredths / 100] * 2)
    beaten = policy_for(
        table, tolerance=(hundredths - 1) / 100, resolution=0.0, stop_when="all", delta=1e-300
    )
    measured(beaten, table)
    assert beaten.candidates == (0,)


@pytest.mark.parametrize("hundredths", range(1, 31, 6))
def test_a_tie_of_normal_values_is_one_too(hundredths):
    table = np.zeros((100, 2, 1))
    table[: 23 + hundredths, 0] = table[-23:, 1] = 1.0
    policy = policy_for(
        table, noise="gaussian", tolerance=hundredths / 100, resolution=0.0, stop_when="all", delta=1e-300
    )
    measured(policy, table)
    assert (policy.candidates, policy.exact) == ((0, 1), True)


@pytest.mark.parametrize("stop_when", ["all", "answer"])
@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_arithmetic_overrides_what_was_seen(noise, stop_when):
    lead = np.r_[np.full(30, 0.2), np.full(30, -1.0)]  # an order that nobody would draw
    lead[:2] += 0.01
    table = np.zeros((60, 3, 2))  # arms 1 and 2 are equal, which takes all items to see
    table[:, 0, 0], table[:, 1:, 0] = np.maximum(lead, 0.0), np.maximum(-lead, 0.0)[:, None]
    rules = {
        "tolerance": [0.25, 0.0],
        "resolution": 0.0,
        "stop_when": stop_when,
        "noise": [noise, "bernoulli"],
    }
    policy = policy_for(table, **rules).quiet()
    for arm, t in places_of(table):
        policy.tell(arm, table[t, arm], item=t)
        assert (t, arm) != (29, 2) or ("n", 0, 0, 1) in facts(policy)
        assert (t, arm) != (57, 2) or noise != "bernoulli" or ("n", 0, 0, 1) not in facts(policy)
    assert ("n", 0, 0, 1) not in facts(policy)
    assert policy.state.log_evidence[0, 0, 0, 1] == -math.inf
    assert {(0, 1, 0), (0, 2, 0)} <= set(policy.overturned)
    assert (policy.candidates, policy.contradiction) == ((1, 2), False)


def test_arithmetic_overrides_a_target_that_was_passed():
    table = np.repeat(np.arange(60)[:, None, None] < 20, 2, axis=1) * 1.0
    rules = {"at_least": 0.5, "tolerance": 0.0, "resolution": 0.0, "stop_when": "all"}
    policy = policy_for(table, since=[0, 20], **rules)
    policy.tell_many([0] * 20 + [1] * 20, np.concatenate([table[:20, 0], table[:20, 1]]))
    assert policy.state.bounds[0, 0, 0] >= 0.5
    assert policy.state.bounds[0, 1, 0] == -math.inf, "bets on it begin later"
    policy.tell_many([0] * 40, table[20:, 0])
    assert policy.overturned == ((0, 0, 0),)
    assert policy.state.bounds[0, 0].max() < 0.5


def test_facts_that_need_no_data():
    table = np.zeros((5, 2, 1))
    policy = policy_for(table, tolerance=0.5, resolution=0.5)
    assert policy.finished
    assert policy.exact
    assert policy.at_most == 0
    assert policy_for(table, tolerance=1.0, resolution=0.0, stop_when="all").finished


def test_long_lists_are_summed_without_rounding():
    n, total, rest = 20_000, 0.0, 0.0
    for _ in range(n):
        total, rest = add(total, rest, 0.1)
    policy = policy_for(np.zeros((3000, 2, 1)), noise=("bounded", 0, 1), tolerance=0.0, delta=1e-300)
    for arm, value in enumerate((0.1, 0.2)):
        policy.tell_many([arm] * 2000, np.full((2000, 1), value))
    for sums, stored in zip(
        policy.population.sums[0, 0], ((0.1 - 0.2 + 1) / 2, (0.2 - 0.1 + 1) / 2), strict=True
    ):
        assert abs(sum(map(Fraction, sums.tolist())) - 2000 * Fraction(stored)) < 1e-12
    goal = product(n + 1, 0.1)
    assert abs(Fraction(total) + Fraction(rest) - n * Fraction(0.1)) < 1e-15
    assert expected(*goal, total, rest, 1.0) == pytest.approx(
        0.1, rel=1e-14
    )  # what is left of two large numbers


def wrong_answers(table, orders, delta, seed, ask_at_random=False, **rules):
    """How many of these orders of a table end in an answer that is not acceptable."""
    m, wrong, good = table.shape[2], 0, None
    for s in range(orders):
        rng = np.random.default_rng([seed, s])
        drawn = rng.permutation(table)
        policy = policy_for(drawn, delta=delta, **rules)
        if good is None:
            tolerance, reach = policy.state.limits[:, TOLERANCE], policy.state.limits[:, REACH]
            means = [[Fraction(round(v)) / len(table) for v in row] for row in table.sum(axis=0)]
            good = oracle.acceptable(means, tolerance[:m], reach[:m])
        if ask_at_random:
            while not policy.finished:
                arm = int(rng.integers(table.shape[1]))
                if (t := policy.until[arm]) < len(table):
                    policy.tell_checked(arm, drawn[t, arm], t)
        else:
            measured(policy, drawn)
        wrong += policy.recommendation not in good
    return wrong


def edge(n, discordance, lead, n_arms, second=False):
    """Arm 0 is ahead of all others by `lead` items; with a second objective on which it is behind."""
    table = np.zeros((n, n_arms, 1))
    both = round(discordance * n)
    lost = (both - lead) // 2
    table[: both - lost, 0] = table[both - lost : both, 1:] = table[both : (n + both) // 2] = 1.0
    if second:
        table = np.concatenate([table, np.zeros_like(table)], axis=2)
        table[:, 1:, 1] = 1.0
    return table


EDGES = {
    "2 beyond reach": (edge(200, 0.4, 13, 2), {"tolerance": 0.03, "resolution": 0.03}),
    "4 beyond reach": (edge(200, 0.4, 13, 4), {"tolerance": 0.03, "resolution": 0.03}),
    "2 at tolerance": (edge(200, 0.1, 6, 2, second=True), {"tolerance": 0.03, "resolution": 0.0}),
}


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.2, 0.05])
@pytest.mark.parametrize("case", EDGES)
def test_errors_at_the_edges_are_rare(case, delta):
    from scipy.stats import binom

    table, rules = EDGES[case]
    for at_random in (False, True):
        orders = 300 if at_random else 1500
        wrong = wrong_answers(table, orders, delta, 11, at_random, **rules)
        assert binom.sf(wrong - 1, orders, delta) > 1e-3, wrong
        assert wrong > 0 or delta < 0.1  # the edge is one


def test_asking_at_random_and_in_flight_ends_well():
    table, rules = EDGES["2 beyond reach"]
    assert wrong_answers(table, 40, 0.05, 5, ask_at_random=True, **rules) <= 6
    policy = policy_for(table, **rules)
    flying, rng = [], np.random.default_rng(0)
    while not policy.finished:
        flying += policy.ask_places(16 - len(flying), flying)
        assert len(set(flying)) == len(flying)
        assert policy.ask_place(flying) not in flying
        arm, t = flying.pop(int(rng.integers(len(flying))))
        policy.tell(arm, table[t, arm], item=t)
    assert policy.certified


def test_many_asked_at_once_are_those_asked_one_by_one():
    table = draw_table(np.random.default_rng(1), 50, 4)
    policy = policy_for(table, tolerance=[0.02, 0.2], noise=KINDS)
    for arm, t in places_of(table[:12]):
        policy.tell(arm, table[t, arm], item=t)
    one_by_one = []
    for _ in range(30):
        one_by_one.append(policy.ask_place(one_by_one))
    assert policy.ask_places(30) == one_by_one


# --- 7: rules that change


@pytest.mark.parametrize("preregistered", [True, False])
def test_new_rules_are_judged_by_all_that_was_told(preregistered):
    table = draw_table(np.random.default_rng(8), 60, 3)
    policy = policy_for(table, tolerance=[0.02, 0.2], noise=KINDS, preregistered=preregistered, delta=1e-5)
    for arm, t in places_of(table[:30]):
        policy.tell(arm, table[t, arm], item=t)
    change = {"tolerance": [0.05, 0.4], "resolution": [0.1, 1.0], "order": [1, 0], "offered": [0, 2]}
    new = policy.amended(**change)
    fresh = lb.LexElimTol(**{**policy.settings, **change, "preregistered": False})
    fresh.tell_many(*zip(*[(a, table[t, a]) for a, t in places_of(table[:30])], strict=True),
                    items=[t for _, t in places_of(table[:30])])  # fmt: skip
    level = math.log(20) if preregistered else 0.0
    assert np.allclose(new.state.limits[:, LEVEL], fresh.state.limits[:, LEVEL] + level)
    assert np.isinf(new.state.limits[:, [NOT_WORSE_LEVEL, BEATS_LEVEL]]).all()
    assert not new.finished
    assert new.until == fresh.until
    assert np.array_equal(new.population.sums, fresh.population.sums)
    assert facts(new) <= facts(fresh) if preregistered else facts(new) == facts(fresh)
    assert np.array_equal(new.population.table, fresh.population.table, equal_nan=True)
    back = new.amended(tolerance=[0.02, 0.2], resolution=[0.02, 0.2], order=[0, 1], offered=[0, 1, 2])
    assert back.until == policy.until
    assert facts(back) <= facts(policy)
    before = lb.LexElimTol(**policy.settings).amended(tolerance=[0.1, 1.0])
    assert before == lb.LexElimTol(**before.settings)  # nobody had looked


# --- 8: holes


def test_no_completion_of_the_holes_contradicts_what_was_seen():
    for seed in range(15):
        rng = np.random.default_rng(seed)
        table = (rng.random((8, 2, 1)) < [[[0.9], [0.3]]]).astype(float)
        policy = policy_for(table, tolerance=0.1, resolution=0.2, delta=1e-12, stop_when="all")
        holes = [(int(a), int(t)) for a, t in rng.permutation(places_of(table))[:4]]
        for arm, t in places_of(table):
            policy.tell(arm, [None] if (arm, t) in holes else table[t, arm], item=t)
        assert policy.until == (8, 8) or policy.finished
        for values in itertools.product([0.0, 1.0], repeat=4):
            for (arm, t), value in zip(holes, values, strict=True):
                table[t, arm] = value
            lead = table[:, 0].mean() - table[:, 1].mean()
            for claim, _, a, b in facts(policy):
                signed = lead if a < b else -lead
                assert signed > 0.1 if claim == "b" else signed >= -0.3 - 1e-9
        if not policy.finished:
            assert policy.ask_place()[1] == 8
            assert policy.holes == tuple(sorted(holes))
            assert not policy.at_most


# --- 9: an arm made of what came first


def test_an_arm_tuned_on_the_first_items_gets_its_bets_from_later_ones():
    false = {True: 0, False: 0}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        base = (rng.random(500) < 0.5).astype(float)
        tuned = base.copy()
        tuned[:100] = 1.0  # right on all that it was made of,
        worse = np.flatnonzero(base[100:])[: int((1 - base[:100]).sum())] + 100
        tuned[rng.permutation(worse)] = 0.0  # and no better on the whole list
        rest = 100 + rng.permutation(400)
        order = np.concatenate([np.arange(100), rest])
        table = np.stack([base, tuned], axis=1)[order][:, :, None]
        for blind in (True, False):
            policy = lb.LexElimTol(1, 1, n_items=500, max_arms=2, delta=0.05, tolerance=0.0, resolution=0.01,
                                   noise="bernoulli", preregistered=False, offered=[0])  # fmt: skip
            policy = policy.amended(offered=[0, 1], since={} if blind else {1: 100})
            assert lb.LexElimTol(**policy.settings).settings == policy.settings
            for t in range(400):
                for arm in (0, 1):
                    policy.tell_checked(arm, table[t, arm], t)
            false[blind] += ("b", 0, 1, 0) in facts(policy)
    assert false[True] == 60
    assert false[False] <= 6


# --- 11: values that are not bounded


def test_a_long_list_of_normal_values_is_a_population_to_the_bit():
    for n in (2.0, 17.0, 400.0):
        assert finite_radius(n, 1e30, 3.7, 6.0) == gaussian_radius(n, 3.7, 6.0)
        assert finite_log_evidence(n, 1e30, 0.3, 3.7, 0.1, 10.0) == gaussian_log_evidence(
            n, 0.3, 3.7, 0.1, 10.0
        )
    assert finite_radius(30.0, 30.0, 3.7, 6.0) == 0.0


@pytest.mark.parametrize(("n_items", "alpha"), [(30, 0.2), (200, 0.05)])
def test_normal_lists_are_covered(n_items, alpha):
    missed = 0
    for seed in range(400):
        values = np.random.default_rng(seed).normal(0, 1, n_items)
        n = np.arange(2, n_items)
        means = np.cumsum(values)[1:-1] / n
        squares = np.cumsum(values**2)[1:-1] - n * means**2
        radii = [
            finite_radius(float(k), float(n_items), s, math.log(1 / alpha))
            for k, s in zip(n, squares, strict=True)
        ]
        missed += bool((np.abs(means - values.mean()) > radii).any())
    assert 0 < missed <= alpha * 400 + 3 * math.sqrt(alpha * 400)


@pytest.mark.parametrize("noise", ["gaussian", "finite_variance"])
def test_normal_lists_end_exactly_and_late_values_do_not_count(noise):
    rng = np.random.default_rng(2)
    table = rng.normal([[0.0], [0.05]], 1.0, (400, 2, 1))
    policy = policy_for(table, noise=noise, tolerance=0.0, resolution=0.0, delta=1e-100)
    assert measured(policy, table) == 800
    assert policy.certified
    assert policy.exact
    assert not policy.asymptotic
    assert policy.recommendation == int(table.mean(axis=0).argmax())
    apart = np.add(table, [[0.0], [3.0]])
    early = policy_for(apart, noise=noise, tolerance=0.1, resolution=0.1)
    assert measured(early, apart) < 800
    assert early.certified == (noise == "gaussian")
    assert not early.exact
    late = policy_for(table, noise=noise, tolerance=0.0, resolution=0.0)
    late.tell(0, [None], item=0)
    late.tell(0, table[1, 0], item=1)
    late.tell(0, table[0, 0], item=0)
    assert late.counts[0, 0] == 1
    assert late.until[0] == 2


def test_a_normal_list_is_tested_against_its_target_at_the_level_of_one_side():
    values = np.random.default_rng(3).normal(1.0, 1.0, 60)
    values[-1] += 60 - values.sum()  # the mean is the target
    policy = policy_for(values[:, None, None], noise="gaussian", at_least=1.0, tolerance=0.0, resolution=0.5,
                        delta=0.8, stop_when="all")  # fmt: skip
    level, least, largest = one_sided_level(policy.state.limits[0, TARGET_LEVEL]), -math.inf, math.inf
    for n in range(1, 60):
        policy.tell(0, [values[n - 1]], item=n - 1)
        if not policy.finished and n > 1:
            mean = values[:n].mean()
            radius = finite_radius(float(n), 60.0, float(((values[:n] - mean) ** 2).sum()), level)
            least, largest = max(least, mean - radius), min(largest, mean + radius)
            assert policy.state.bounds[0, 0] == pytest.approx([least, largest])
    known = policy_for(values[:, None, None], noise="gaussian", at_least=1.0, tolerance=0.0, resolution=0.0,
                       delta=1e-100, stop_when="all")  # fmt: skip
    known.tell_many([0] * 60, values[:, None])
    assert known.infeasible == ()
    assert known.candidates == (0,)


@pytest.mark.parametrize("at_least", [None, 5.0])
def test_a_hole_among_normal_values_before_bets_begin_leaves_all_of_it_open(at_least):
    """What stood there belongs to the mean, and nobody knows it."""
    table = np.random.default_rng(4).normal([[9.0], [0.0]], 1.0, (100, 2, 1))
    for hole in (None, 2):
        policy = policy_for(table, noise="gaussian", at_least=at_least, since=[0, 5],
                            stop_when="all" if at_least else "answer")  # fmt: skip
        for t in range(100):
            policy.tell_many([0, 1], [table[t, 0], [None] if t == hole else table[t, 1]], [t, t])
        state = policy.state
        seen = (
            bool(facts(policy)),
            (state.log_evidence > -math.inf).any(),
            np.isfinite(state.bounds[0, 1]).any(),
        )
        assert policy.finished == any(seen) == (hole is None)


def test_pairs_of_normal_values_are_judged_as_transcribed():
    """From where bets begin, whatever is missing later; arms 1 and 2 are equal, so that it does not end."""
    n_items, since, rng, seen = 60, 6, np.random.default_rng(7), Counter()
    table = np.zeros((n_items, 3, 2))
    table[:, :2, 0] = rng.normal([-0.5, 0.0], 1.0, (n_items, 2))
    table[:, 2, 0] = table[:, 1, 0]
    policy = policy_for(table, noise=["gaussian", "bernoulli"], tolerance=[0.1, 0.0], resolution=[0.3, 0.0],
                        since=[0, since, 0], delta=0.9)  # fmt: skip
    limits, ever, least = policy.state.limits[0], np.full((2, 2), -math.inf), np.full(2, -math.inf)
    known = []
    for t in range(n_items - 1):
        values = [[None, 0.0] if (arm, t) == (0, 20) else table[t, arm] for arm in range(3)]
        policy.tell_many([0, 1, 2], values, [t] * 3)
        known += [] if t == 20 else [table[t, 0, 0] - table[t, 1, 0]]
        earlier, later, left = sum(known[:since]), np.array(known[since:]), n_items - since
        if later.size < 2:
            continue
        n, squares = float(later.size), float(((later - later.mean()) ** 2).sum())
        radius = finite_radius(n, float(left), squares, limits[LEVEL])
        for way, (a, b, sign) in enumerate(((0, 1, 1.0), (1, 0, -1.0))):
            mean, gone = sign * later.mean(), sign * earlier
            least[way] = max(least[way], (gone + left * (mean - radius)) / n_items)
            assert policy.state.lcb[0, a, b] == pytest.approx(least[way])
            for claim, boundary in enumerate((-limits[REACH], limits[TOLERANCE])):
                lead = mean - (n_items * boundary - gone) / left
                found = finite_log_evidence(n, float(left), lead, squares, 0.0, BOUNDARY_PRIOR)
                if lead > 0 and found > 0:
                    ever[claim, way] = max(ever[claim, way], found + math.log(2 - math.exp(-found)))
                kept, enough = policy.state.log_evidence[claim, 0, a, b], limits[NOT_WORSE_LEVEL + claim]
                if kept < enough:
                    kept_now = ever[claim, way] if ever[claim, way] >= enough else -math.inf
                    assert kept == pytest.approx(kept_now)
                seen.update([(claim, way, kept > -math.inf)])
    assert not policy.finished
    assert len(seen) >= 6


def test_normal_values_from_before_bets_begin_belong_to_the_mean():
    """An arm that is far behind on five items and a little ahead on the others is behind."""
    table = np.random.default_rng(6).normal([[3.0], [0.0]], 1.0, (100, 2, 1))
    table[:5, 0] -= 100.0
    policy = policy_for(table, noise="gaussian", since=[0, 5])
    for t in range(99):
        policy.tell_many([0, 1], table[t], [t, t])
        assert (policy.state.log_evidence[:, 0, 0, 1] == -math.inf).all()
        assert policy.state.lcb[0, 0, 1] < 0.0
    assert policy.certified
    assert policy.recommendation == 1


def test_few_values_of_finite_variance_say_nothing_of_a_list():
    table = np.random.default_rng(5).normal([[9.0], [0.0]], 1.0, (400, 2, 1))
    policy = policy_for(table, noise="finite_variance", tolerance=0.1, resolution=0.1)
    for t in range(int(LARGE_SAMPLE)):
        assert not facts(policy)
        assert not (policy.state.log_evidence > -math.inf).any()
        policy.tell_many([0, 1], table[t], [t, t])
    assert policy.finished


def test_what_a_list_refuses():
    with pytest.raises(ValueError, match="population"):
        lb.LexElimTol(2, 1, delta=0.05, tolerance=0.1, noise=("sub_gaussian", 1.0), n_items=10)
    with pytest.raises(ValueError, match="GiB"):
        lb.LexElimTol(400, 3, delta=0.05, tolerance=0.1, noise="bernoulli", n_items=1_000_000)
    policy = lb.LexElimTol(2, 1, delta=0.05, tolerance=0.1, noise="bernoulli", n_items=10)
    for item in (-1, 10):
        with pytest.raises(ValueError, match=r"0\.\.9"):
            policy.tell(0, [1.0], item=item)
    with pytest.raises(ValueError, match="since is for"):
        lb.LexElimTol(2, 1, delta=0.05, tolerance=0.1, since=[0, 3])


# --- targets, exact objectives, intervals


def test_targets_and_exact_objectives_on_a_list():
    rng = np.random.default_rng(4)
    table = np.stack(
        [(rng.random((300, 3)) < [0.9, 0.7, 0.92]).astype(float), np.tile([3.0, 5.0, 2.0], (300, 1))], axis=2
    )
    noise = ["bernoulli", "exact"]
    policy = policy_for(table, noise=noise, at_least=[0.8, None], resolution=[0.05, 0.0], tolerance=0.0)
    results = measured(policy, table)
    assert policy.certified
    assert policy.recommendation == 0
    assert results < 900
    assert {"violates_limit", "not_clearly_within"} & {row.verdict for row in policy.certificate}
    assert policy.flags == {}
    bounds = policy.target_bounds[:, 0]
    assert (bounds[:, 0] <= table[:, :, 0].mean(axis=0)).all()
    assert (table[:, :, 0].mean(axis=0) <= bounds[:, 1]).all()
    nobody = policy_for(table, noise=noise, at_least=[0.99, None], resolution=[0.05, 0.0], tolerance=0.0)
    measured(nobody, table)
    assert nobody.infeasible == ((0, (0, 1, 2)),)
    assert nobody.flags == {0: "infeasible"}
    assert nobody.certified


@pytest.mark.parametrize("noise", ["bernoulli", "gaussian"])
def test_once_an_arm_is_known_a_limit_is_decided_as_written(noise):
    """At least 0.6 with a slack of 0.05: arms at 0.6, 0.9 and 0.55 of a list of 20.

    That the first is below 0.65 is certain with its last item, and then it is known to be at 0.6.
    """
    table = np.zeros((20, 3, 2))
    for arm, ones in enumerate((12, 18, 11)):
        table[np.random.default_rng(arm).permutation(19)[:ones], arm, 0] = 1.0
    table[:, :, 1] = [3.0, 1.0, 5.0]
    policy = policy_for(table, noise=[noise, "exact"], at_least=[0.65, None], resolution=[0.05, 0.0],
                        tolerance=0.0, delta=1e-9, stop_when="all")  # fmt: skip
    measured(policy.quiet(), table)
    assert {e.arm: e.objective for e in policy.eliminations} == {2: 0, 1: 1}
    assert (policy.recommendation, policy.flags, policy.exact) == (0, {}, True)


def test_intervals_hold_the_truth_and_close_at_the_end():
    table = draw_table(np.random.default_rng(6), 80, 3)
    policy = policy_for(table, tolerance=[0.0, 0.0], resolution=0.0, noise=KINDS, delta=0.2, stop_when="all")
    truth = table.mean(axis=0)
    while not policy.finished:
        arm, t = policy.ask_place()
        policy.tell(arm, table[t, arm], item=t)
        if t % 16 == 0 or policy.finished:
            low, high = policy.differences[..., 0], policy.differences[..., 1]
            lead = truth[:, None] - truth[None]
            off = ~np.eye(3, dtype=bool)
            assert (low[off] <= lead[off] + 1e-9).all()
            assert (lead[off] <= high[off] + 1e-9).all()
            assert (policy.intervals[..., 0] <= truth + 1e-9).all()
            assert (truth <= policy.intervals[..., 1] + 1e-9).all()
    low, high = policy.differences[..., 0], policy.differences[..., 1]
    known = np.array(policy.until).min() == 80
    assert not known or np.allclose(low[off], high[off])


@pytest.mark.parametrize("share", [0.5, 0.03])
def test_an_interval_ends_where_its_evidence_does(share):
    values = np.random.default_rng(5).random(1200) < share
    end = entry(lower_end)(values * 1.0, 3000, 0, *stakes(3000), 6.0)
    gap = values.mean() - end

    def seen(x):
        return max(oracle.wealths(values.tolist(), 3000, x)) >= math.exp(6.0)

    assert seen(end)
    assert not seen(end + 0.05 * gap)
    assert entry(lower_end)(values * 1.0, 3000, 0, *stakes(3000), 1e9) == values.sum() / 3000


def test_intervals_are_computed_now_and_then_and_nobody_can_tell():
    rng = np.random.default_rng(6)
    table = draw_table(rng, 200, 1)[:, [0, 0]]
    table[:, 1] = rng.permutation(table[:, 0])  # equal, which takes all items to see
    policy = policy_for(table, tolerance=0.0, resolution=0.0, noise=KINDS, delta=1e-9, stop_when="all")

    def tell(first, end):
        told = places_of(table)[2 * first : 2 * end]
        policy.tell_many([a for a, _ in told], [table[t, a] for a, t in told], items=[t for _, t in told])

    tell(0, 100)
    policy.tell(0, [None, None], item=100)
    policy.tell(1, table[100, 1], item=100)
    tell(101, 128)
    assert policy.differences[0, 1, 0, 0] > -1.0
    policy.tell(0, table[100, 0], item=100)  # what was computed with the hole is no more
    first, ends = policy.differences, policy._ends
    tell(128, 131)
    assert (policy.differences[0, 1] == first[0, 1]).all()
    assert policy._ends is ends
    twin = pickle.loads(pickle.dumps(policy))
    assert twin == policy
    assert not twin._ends
    assert twin.differences.tobytes() == policy.differences.tobytes()
    tell(131, 191)
    low, high = policy.differences[0, 1, 0]
    assert high - low <= 2 * 9 / 200 + 1e-9  # what is still to come can move it by no more
    tell(191, 200)
    lead = table.mean(axis=0)
    assert policy.differences[0, 1] == pytest.approx(0.0, abs=1e-9)
    assert policy.intervals == pytest.approx(np.stack([lead, lead], axis=2))


def digest(policy):
    """Of everything that was computed."""
    parts = [part for part in (*policy.population, *policy.state) if isinstance(part, np.ndarray)]
    return hashlib.blake2b(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).hexdigest()


def a_history():
    rng = np.random.default_rng(12)
    table = draw_table(rng, 60, 3)
    third = rng.normal(table[:, :, :1], 1.0)
    policy = policy_for(
        np.concatenate([table, third], axis=2), tolerance=[0.02, 0.3, 0.2], noise=[*KINDS, "gaussian"]
    )
    for arm, t, values in told(rng, table, missing=0.02):
        policy.tell(arm, [*values, None if values[0] is None else float(third[t, arm, 0])], item=t)
    return policy


def test_compiled_and_interpreted_agree_to_the_bit():
    code = "import test_lists as t; p = t.a_history(); print(t.digest(p), p.differences.tobytes().hex())"
    found = []
    for mode in "01":
        path = os.pathsep.join([str(TESTS), *sys.path])
        environment = {**os.environ, "LEXBANDITS_JIT": mode, "PYTHONPATH": path}
        run = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        found.append(run.stdout.split())
    assert found[0] == found[1]
    assert len(found[0][1]) == 2 * 8 * 3 * 3 * 3 * 2
