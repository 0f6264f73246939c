"""J1, J2 and all facts at once: against the transcription, against the truth without chance, and on edges."""

import itertools

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.judging.claims import SHOWN, Claims
from lexbandits.judging.scheme import (
    OPEN,
    is_better,
    level_of,
    plug_in,
    proof_of,
    survey,
    tiers_of,
    unmet,
    violates,
)
from lexbandits.judging.table import Statistic, Table
from lexbandits.judging.verdict import proven_lead
from lexbandits.policies.tolerance.passes import begin
from lexbandits.policies.tolerance.state import RESULTS
from support import judge_oracle as naive
from support.claimed import FACTS, Placed, drawn_claims


def found_of(claims, x, alpha):
    proof = proof_of(claims, x, alpha)
    assert proof.is_complete == all(step.verdict != OPEN for step in proof.steps)
    return ("closest" if unmet(claims, x, alpha) else "met") if proof.is_complete else ""


def test_arms_are_proven_as_transcribed():
    rng, proven = np.random.default_rng(0), []
    for _ in range(3000):
        claims = drawn_claims(rng)
        K, m = claims.n_arms, claims.n_objectives
        for x in range(K):
            found = found_of(claims, x, 0.05)
            assert found == naive.is_proven(claims.p, K, m, 0.05, claims.noisy, claims.is_limit, x)
            proven.append(found if any(claims.is_limit) else found and "plain")
            assert proof_of(claims, x, 0.05).closest == (unmet(claims, x, 0.05) if found else frozenset())
    assert min(proven.count(way) for way in ("plain", "met", "closest")) > 100


def test_levels():
    plain, limited = Placed(dict.fromkeys(FACTS, np.ones((2, 4, 4))), [True] * 2, [False] * 2), None
    limited = Placed(plain.p, [True] * 2, [True, True])
    assert level_of(plain, 0.06) == pytest.approx(0.02)
    assert level_of(plain, 0.06, baseline=True) == pytest.approx(0.015)
    assert level_of(plain, 0.06, candidate=True) == pytest.approx(0.06)
    assert level_of(limited, 0.08) == pytest.approx(0.02)
    assert level_of(limited, 0.08, candidate=True) == pytest.approx(0.08)
    two = Placed(dict.fromkeys(FACTS, np.ones((1, 2, 2))), [True], [False])
    assert level_of(two, 0.05, baseline=True) == level_of(two, 0.05) == 0.05
    assert plain.side(0, 0.06) == pytest.approx((1 - SHOWN) * 0.06 / 24)
    assert limited.side(0, 0.06) == pytest.approx((1 - SHOWN) * 0.06 / 48)
    assert limited.side(0, 0.06, alone=True) == pytest.approx(0.06 / 16)


@pytest.mark.parametrize("K", range(2, 8))
def test_levels_of_so_many_arms(K):
    """A switch away from a baseline is one more test than an answer, unless there is one rival alone."""
    p = dict.fromkeys(FACTS, np.ones((3, K, K)))
    plain, limited = (Placed(p, [True] * 3, targets) for targets in ([False] * 3, [False, True, True]))
    assert level_of(plain, 0.06) == pytest.approx(0.06 / (K - 1))
    assert level_of(plain, 0.06, baseline=True) == pytest.approx(0.06 / K if K > 2 else 0.06)
    assert level_of(plain, 0.06, candidate=True) == 0.06
    for baseline in (False, True):
        assert level_of(limited, 0.06, baseline=baseline) == pytest.approx(0.06 / K)
    assert level_of(limited, 0.06, candidate=True) == 0.06


@pytest.mark.parametrize(("K", "m"), [(2, 5), (3, 4), (4, 3), (5, 4), (6, 2), (7, 5)])
def test_each_claim_that_will_do_has_its_share(K, m):
    """All else is certain, one question is open but for one way: it is made up to its share, not beyond."""
    rng, alpha, said, asked = np.random.default_rng(10 * K + m), 0.05, 0, 0
    for _ in range(12):
        limits, noisy = ([bool(rng.random() < chance) for _ in range(m)] for chance in (0.3, 0.8))
        x, y = rng.permutation(K)[:2]
        i = int(rng.integers(m))
        ways = [[("not_worse", i, x, y)], *([[("meets_limit", i, x, x)]] if limits[i] else [])]
        for j, a in [*((j, x) for j in range(i)), *((0, z) for z in range(K) if z not in (x, y) and i > 0)]:
            ways.append([("better", j, a, y), *([("not_clearly_within", j, y, y)] if limits[j] else [])])
        shares = {
            1 / (part * of) for part in (1, 2, 4, 16 / 3, 4 / 3, 8, 16) for of in {*range(1, m), K - 2 or 1}
        }
        for way in ways:
            for share, side in itertools.product(shares, (0.999, 1.001)):
                p = {f: np.ones((m, K, K)) for f in FACTS}
                p["meets_limit"][:] = p["not_worse"][:] = 0.0
                p["meets_limit"][i, x, x] = p["not_worse"][i, x, y] = 1.0
                p["not_clearly_within"][i] = 0.0
                for fact, j, a, b in way:
                    p[fact][j, a, b] = share * side * alpha
                claims = Placed(p, noisy, limits)
                found = found_of(claims, x, alpha)
                assert found == naive.is_proven(p, K, m, alpha, noisy, limits, x)
                said, asked = said + bool(found), asked + 1
    assert asked / 100 < said < asked


@pytest.mark.parametrize("limit", [False, True])
@pytest.mark.parametrize("noisy", [*itertools.product([True, False], repeat=3)])
def test_what_makes_an_arm_better_costs_alpha_in_all(noisy, limit):
    """Whichever is the first objective on which it is worse: "not worse" there, and "beats" on any before."""
    alpha, m, before = 0.06, max(1, sum(noisy)), 0

    def switches(**said):
        p = {fact: np.zeros((3, 2, 2)) for fact in FACTS} | {"better": np.ones((3, 2, 2))}
        for fact, (i, value) in said.items():
            p[fact][i] = value
        return bool(is_better(Placed(p, list(noisy), [limit] * 3), 1, 0, alpha))

    for i in range(3):
        if noisy[i]:
            held, no = alpha * (1 - before / m), {"not_worse": (i, 1.0), "meets_limit": (i, 1.0)}
            for word, share in (("not_worse", 0.25 if limit else 1.0), ("meets_limit", 0.75 * limit)):
                assert switches(better=(2, 0.0), **no | {word: (i, share * held * 0.999)}) == (share > 0)
                assert not switches(better=(2, 0.0), **no | {word: (i, share * held * 1.001)}) or not share
            for word in ("better", *(["not_clearly_within"] if limit else [])):
                both = {"better": (i, 0.0), word: (i, alpha / m * 0.999)}
                assert switches(**both)
                assert not switches(**both | {word: (i, alpha / m * 1.001)})
            before += 1


def test_who_beats_another_at_once_is_seen_to_be_no_worse():
    """The two need not follow from each other, and one level pays for both."""
    p = {"better": np.ones((1, 2, 2)), "not_worse": np.ones((1, 2, 2))}
    p["better"][0, 0, 1] = 0.0
    assert survey(Placed(p, [True], [False]), 0.05, range(2)) == ({}, 0)
    p["not_worse"][0, 0, 1] = 0.0
    assert survey(Placed(p, [True], [False]), 0.05, range(2)) == ({1: (0, 0)}, 1)


def test_facts_that_contradict_each_other_put_nobody_out():
    p = {"better": np.zeros((1, 2, 2)), "not_worse": np.zeros((1, 2, 2))}
    assert survey(Placed(p, [True], [False]), 0.05, range(2)) == ({}, 0)


def test_on_a_limit_who_is_behind_and_not_clearly_within_is_out():
    """Below it at the level of one arm; behind at that of a pair. One of the two is not enough."""
    p = {fact: np.ones((1, 2, 2)) for fact in FACTS} | {"not_worse": np.zeros((1, 2, 2))}
    claims = Placed(p, [True], [True])
    alone, side = claims.side(0, 0.05, alone=True), claims.side(0, 0.05)
    for below, behind in itertools.product((0.999, 1.001), repeat=2):
        p["not_clearly_within"][0, 1, 1], p["better"][0, 0, 1] = below * alone, behind * side
        assert survey(claims, 0.05, range(2))[0] == ({1: (0, 0)} if below < 1 > behind else {})
    p["not_clearly_within"][0, 1, 1] = 0.0
    for word in ("meets_limit", "not_clearly_within"):
        for beyond, settled in ((0.999, 1), (1.001, 0)):
            p["meets_limit"][0], p["not_clearly_within"][0, 0, 0] = 1.0, 1.0
            p["meets_limit"][0, 1, 1] = 0.0 if word == "meets_limit" else 1.0
            p[word][0, 0, 0] = beyond * alone
            assert survey(claims, 0.05, range(2))[1] == settled


def test_on_a_limit_who_meets_it_need_not_be_as_close_as_another():
    """All are below the inner line, and the first meets the limit: only the other one must be no worse."""
    p = {fact: np.ones((1, 2, 2)) for fact in FACTS} | {"not_clearly_within": np.zeros((1, 2, 2))}
    p["meets_limit"][0, 0, 0] = 0.0
    claims = Placed(p, [True], [True])
    assert survey(claims, 0.05, range(2))[1] == 0
    p["not_worse"][0, 1, 0] = 0.0
    assert survey(claims, 0.05, range(2))[1] == 1


def test_who_violates_a_limit_is_seen_not_clearly_within_too():
    """The two need not follow from each other, and one level pays for both."""
    p = {fact: np.ones((1, 1, 1)) for fact in FACTS} | {"violates_limit": np.zeros((1, 1, 1))}
    claims = Placed(p, [True], [True])
    assert not violates(claims, 0, 0, 0.05)
    p["not_clearly_within"][:] = 0.0
    assert violates(claims, 0, 0, 0.05)


# --- the truth, without chance


def world(rng, with_targets):
    K, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    means = rng.integers(0, 9, (K, m)) / 8
    tol = rng.choice([0.0, 0.125, 0.5], m)
    res = rng.choice([0.125, 0.25, 1.0], m)
    targets = [
        float(rng.integers(0, 9)) / 8 if with_targets and rng.random() < 0.5 else None for _ in range(m)
    ]
    return means, np.where([target is None for target in targets], tol, 0.0), res, targets


def truth(means, tol, res, targets):
    """(m, K, K) whether each claim is true."""
    difference = means.T[:, :, None] - means.T[:, None, :]
    level = np.array([0.0 if t is None else t for t in targets])[:, None, None]
    own = np.repeat(means.T[:, :, None], len(means), axis=2)
    return {
        "better": difference > tol[:, None, None],
        "not_worse": difference >= -(tol + res)[:, None, None],
        "meets_limit": own >= level - res[:, None, None],
        "not_clearly_within": own < level,
        "violates_limit": own < level - res[:, None, None],
    }


def true_claims(rng, *told):
    """Claims placed anywhere that is true."""
    p = {
        fact: np.where(true & (rng.random(true.shape) < 0.9), 0.0, 1.0) for fact, true in truth(*told).items()
    }
    return Placed(p, [bool(rng.random() < 0.8) for _ in told[1]], [t is not None for t in told[3]])


@pytest.mark.parametrize("with_limits", [False, True])
def test_true_claims_prove_acceptable_arms_only(with_limits):
    rng, proven = np.random.default_rng(1), 0
    for _ in range(1500):
        told = world(rng, with_limits)
        claims = true_claims(rng, *told)
        for x in range(len(told[0])):
            if proof_of(claims, x, 0.05).is_complete:
                assert naive.accepts(*told, x), (told, x)
                proven += 1
    assert proven > 500


@pytest.mark.parametrize("with_limits", [False, True])
def test_true_claims_switch_to_better_arms_only(with_limits):
    rng, switched = np.random.default_rng(2), 0
    for _ in range(1500):
        told = world(rng, with_limits)
        claims = true_claims(rng, *told)
        for w in range(1, len(told[0])):
            if is_better(claims, w, 0, 0.05):
                assert naive.is_better(*told, w, 0)
                switched += 1
    assert switched > 300


@pytest.mark.parametrize("with_limits", [False, True])
def test_what_all_facts_say_is_true(with_limits):
    """P1 of Theorem 8: who ties with the best that is left stays. A limit counts up to its inner line."""
    rng, out = np.random.default_rng(3), 0
    for _ in range(800):
        means, tol, res, targets = told = world(rng, with_limits)
        claims = true_claims(rng, *told)
        means = np.minimum(means, [np.inf if target is None else target for target in targets])
        gone, stage = survey(claims, 0.05, range(len(means)))
        left = set(range(len(means)))
        for i in range(stage + (stage < len(tol))):
            best = max(means[a, i] for a in left)
            leaving = {a for a in left if gone.get(a, (-1, 0))[0] == i}
            assert all(means[a, i] < best - tol[i] for a in leaving)
            left -= leaving
            if i < stage:
                assert all(means[a, i] >= best - tol[i] - res[i] for a in left)
            out += len(leaving)
        tiers = tiers_of(claims, 0.05)
        assert sorted(arm for tier in tiers for arm in tier) == list(range(len(means)))
        assert tiers[0] == sorted(set(range(len(means))) - set(gone))
    assert out > 300


def test_all_facts_leave_whom_lexelim_tol_would_leave():
    rng = np.random.default_rng(4)
    for _ in range(150):
        K, m = int(rng.integers(2, 5)), int(rng.integers(1, 4))
        tol, res = rng.choice([0.0, 0.125, 0.5], m), rng.choice([0.125, 0.25], m)
        policy = lb.LexElimTol(K, m, delta=0.1, tolerance=tol, resolution=res, stop_when="all")
        means = rng.integers(0, 9, (K, m)) / 8
        slack = rng.choice([0.0, 0.0, 0.125, 0.5], (m, K, K))
        lcb = means.T[:, :, None] - means.T[:, None, :] - slack
        policy.state.lcb[:] = lcb
        policy.state.clock[RESULTS] = 10
        begin(policy.state)
        p = {
            "better": np.where(lcb > tol[:, None, None], 0.0, 1.0),
            "not_worse": np.where(lcb >= -(tol + res)[:, None, None], 0.0, 1.0),
        }
        gone, stage = survey(Placed(p, [True] * m, [False] * m), 0.1, range(K))
        assert stage == policy.objective
        left_at = {left.arm: left.objective for left in policy.eliminations}
        assert {arm: where[0] for arm, where in gone.items()} == left_at


# --- by the means


def test_the_answer_by_the_means():
    claims = Placed(dict.fromkeys(FACTS, np.ones((2, 3, 3))), [True] * 2, [False] * 2)
    means = np.array([[0.9, 1.0], [0.9, 3.0], [0.1, 9.0]])
    leads = means.T[:, :, None] - means.T[:, None, :] - 0.2
    assert plug_in(claims, leads, np.zeros((2, 3)))[0] == 1
    claims.is_limit = [True, False]
    assert plug_in(claims, leads, means.T - 0.5)[::2] == (1, frozenset())
    assert plug_in(claims, leads, means.T - 2.0)[::2] == (1, frozenset({0}))
    tied = np.zeros((2, 3, 3))
    assert plug_in(claims, tied, means.T)[0] == 0
    assert plug_in(claims, tied, means.T, first=2)[0] == 2


# --- on edges, with chance


def gaussian_table(values, tolerance):
    objectives = tuple(
        lb.Objective(f"o{i}", margin=2 * tolerance, noise="gaussian") for i in range(values.shape[2])
    )
    names = tuple(f"arm {a}" for a in range(values.shape[1]))
    kinds = (Statistic.GAUSSIAN,) * len(objectives)
    return Table(names, objectives, values, values, values, kinds, (), True)


EDGES = {  # means in units of the tolerance; the first arm alone is acceptable
    "m=1, three at −reach": [[0], [-2.001]] + [[-2.001]] * 2,
    "m=2, ahead by tol, then −reach": [[0, 0], [1, -2.001]],
    "m=3, ahead by tol twice, then −reach": [[0, 0, 0]] + [[1, 1, -2.001]] * 3,
    "m=2, tie, then −reach": [[0, 0]] + [[0, -2.001]] * 4,
}


@pytest.mark.slow
@pytest.mark.parametrize("edge", EDGES)
def test_on_edges_at_most_delta_of_the_tables_certify_a_wrong_arm(edge):
    rng, delta, tables, wrong = np.random.default_rng(5), 0.05, 2000, 0
    means = 0.3 * np.array(EDGES[edge], dtype=float)
    bad = [
        x
        for x in range(len(means))
        if not naive.accepts(
            means, [0.3] * means.shape[1], [0.3] * means.shape[1], [None] * means.shape[1], x
        )
    ]
    assert bad
    for _ in range(tables):
        shared = rng.standard_normal((60, 1, means.shape[1]))
        values = means + np.sqrt(0.5) * (shared + rng.standard_normal((60, *means.shape)))
        claims = Claims(gaussian_table(values, 0.3))
        alpha = level_of(claims, delta)
        wrong += any(proof_of(claims, x, alpha).is_complete for x in bad)
    assert wrong <= tables * (delta + 4 * np.sqrt(delta * (1 - delta) / tables))
    assert wrong > 0.3 * tables * delta  # the budget is used


def test_what_is_shown_and_what_is_a_fact_cost_one_level_together(monkeypatch):
    """Below −reach a false bound and a false "not worse" are two tests: their levels add up to a side's."""
    seen: dict[bool, set[float]] = {True: set(), False: set()}
    exceeds = Claims.exceeds

    def noted(self, i, sample, b, alpha):
        seen[b < -0.3 - 1e-9].add(alpha)
        return exceeds(self, i, sample, b, alpha)

    n, rng = 60, np.random.default_rng(1)
    values = rng.random(2 * n) < np.repeat([0.4, 0.7], n)
    table = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "x": values.astype(float)}
    asked = lb.Objective("x", margin=0.3, tie=0.2, noise="bernoulli")
    verdict = lb.judge(table, [asked], delta=0.2)
    monkeypatch.setattr(Claims, "exceeds", noted)
    verdict._claims._made.clear()
    least, back = proven_lead(verdict, "x", "a", "b"), proven_lead(verdict, "x", "b", "a")
    assert -1 < least < -0.3  # not even "not worse" is claimed of a
    assert back >= -0.3  # but it is of b
    assert max(seen[True]) + max(seen[False]) <= 0.2 / 2 + 1e-12
