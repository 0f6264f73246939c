"""J1, J2 and all facts at once: against the transcription, against the truth without chance, and on edges."""

import itertools

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.judging.claims import SHOWN, Claims
from lexbandits.judging.scheme import OPEN, is_better, level_of, plug_in, proof_of, prove, survey, tiers_of
from lexbandits.judging.table import Table
from lexbandits.policies.tol.judgement import begin
from lexbandits.policies.tol.state import RESULTS
from support import judge_oracle as naive

FACTS = ("beats", "not worse", "meets the target", "misses the target")


class Placed:
    """Claims by their p-values, (m, K, K) each; of single arms on the diagonal."""

    def __init__(self, p, noisy, targets):
        self.p, self.noisy, self.targets = p, noisy, targets
        self.n_objectives, self.n_arms = p["beats"].shape[:2]

    def says(self, fact, i, a, b, alpha):
        return bool(self.p[fact][i, a, a if b is None else b] <= (alpha if self.noisy[i] else 0.5))

    def lead(self, fact, i, a, b):
        return -float(np.log(self.p[fact][i, a, a if b is None else b] + 1e-9)) - 0.5

    side = Claims.side


def drawn(rng):
    K, m = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    p = {fact: 10.0 ** -rng.uniform(0, 4, (m, K, K)) for fact in FACTS}
    easy = rng.random((m, K, K)) < 0.75  # or hardly anything would be proven
    p["not worse"] = np.where(easy, 1e-5, p["not worse"])
    p["meets the target"] = np.where(easy, 1e-5, p["meets the target"])
    noisy = [bool(rng.random() < 0.8) for _ in range(m)]
    targets = [float(i) if rng.random() < 0.25 else None for i in range(m)]
    return Placed(p, noisy, targets), rng


def test_arms_are_proven_as_transcribed():
    rng, proven = np.random.default_rng(0), 0
    for _ in range(2000):
        claims, _ = drawn(rng)
        K, m, targets = claims.n_arms, claims.n_objectives, [t is not None for t in claims.targets]
        given_up = frozenset(i for i in range(m) if targets[i] and rng.random() < 0.3)
        found = [
            x for x in range(K) if all(step.verdict != OPEN for step in prove(claims, x, 0.05, given_up))
        ]
        expected = naive.certified(claims.p, K, m, 0.05, claims.noisy, targets, given_up)
        assert found == expected
        proven += len(found)
    assert proven > 200


def test_levels():
    plain, limited = Placed(dict.fromkeys(FACTS, np.ones((2, 4, 4))), [True] * 2, [None] * 2), None
    limited = Placed(plain.p, [True] * 2, [0.0, 0.0])
    assert level_of(plain, 0.06) == pytest.approx(0.02)
    assert level_of(plain, 0.06, baseline=True) == pytest.approx(0.015)
    assert level_of(plain, 0.06, named=True) == pytest.approx(0.06)
    assert level_of(limited, 0.08) == pytest.approx(0.005)
    assert level_of(limited, 0.08, named=True) == pytest.approx(0.02)
    two = Placed(dict.fromkeys(FACTS, np.ones((1, 2, 2))), [True], [None])
    assert level_of(two, 0.05, baseline=True) == level_of(two, 0.05) == 0.05
    assert plain.side(0, 0.06) == pytest.approx((1 - SHOWN) * 0.06 / 24)
    assert limited.side(0, 0.06) == pytest.approx((1 - SHOWN) * 0.06 / 48)
    assert limited.side(0, 0.06, alone=True) == pytest.approx(0.06 / 16)


@pytest.mark.parametrize("K", range(2, 8))
def test_levels_of_so_many_arms(K):
    """A switch away from a baseline is one more test than an answer, unless there is one rival alone."""
    p = dict.fromkeys(FACTS, np.ones((3, K, K)))
    plain, limited = (Placed(p, [True] * 3, targets) for targets in ([None] * 3, [None, 0.0, 0.0]))
    assert level_of(plain, 0.06) == pytest.approx(0.06 / (K - 1))
    assert level_of(plain, 0.06, baseline=True) == pytest.approx(0.06 / K if K > 2 else 0.06)
    assert level_of(plain, 0.06, named=True) == 0.06
    for baseline in (False, True):
        assert level_of(limited, 0.06, baseline=baseline) == pytest.approx(0.06 / 4 / K)
    assert level_of(limited, 0.06, named=True) == pytest.approx(0.06 / 4)


@pytest.mark.parametrize(("K", "m"), [(2, 5), (3, 4), (4, 3), (5, 4), (6, 2), (7, 5)])
def test_each_claim_that_will_do_has_its_share(K, m):
    """All else is certain, one question is open but for one claim: it is made up to its share, not beyond."""
    rng, alpha, said, asked = np.random.default_rng(10 * K + m), 0.05, 0, 0
    for _ in range(12):
        targets = [0.0 if rng.random() < 0.2 else None for _ in range(m)]
        noisy = [bool(rng.random() < 0.8) for _ in range(m)]
        limits = [target is not None for target in targets]
        given_up = frozenset(i for i in range(m) if limits[i] and rng.random() < 0.5)
        x, y = rng.permutation(K)[:2]
        ordinary = [i for i in range(m) if not limits[i] or i in given_up]
        if not ordinary:
            continue
        i = int(rng.choice(ordinary))
        ways = [("not worse", i, x, y)]
        ways += [("misses the target", j, y, y) if limits[j] else ("beats", j, x, y) for j in range(i)]
        ways += [("beats", 0, z, y) for z in range(K) if z not in (x, y) and i > 0]
        shares = {1 / (part * of) for part in (1, 2, 4) for of in {*range(1, m), max(1, K - 2)}}
        for fact, j, a, b in ways:
            for share, side in itertools.product(shares, (0.999, 1.001)):
                p = {f: np.ones((m, K, K)) for f in FACTS}
                p["meets the target"][:] = 0.0
                p["not worse"][:] = 0.0
                p["misses the target"][sorted(given_up)] = 0.0
                p["not worse"][i, x, y] = 1.0
                p[fact][j, a, b] = share * side * alpha
                claims = Placed(p, noisy, targets)
                found = all(step.verdict != OPEN for step in prove(claims, x, alpha, given_up))
                assert found == naive.is_proven(p, K, m, alpha, noisy, limits, given_up, x)
                said, asked = said + found, asked + 1
    assert asked / 100 < said < asked


@pytest.mark.parametrize("noisy", [*itertools.product([True, False], repeat=3)])
def test_what_makes_an_arm_better_costs_alpha_in_all(noisy):
    """Whichever is the first objective on which it is worse: "not worse" there, and "beats" on any before."""
    alpha, m, before = 0.06, max(1, sum(noisy)), 0

    def switches(**said):
        p = {fact: np.zeros((3, 2, 2)) for fact in FACTS} | {"beats": np.ones((3, 2, 2))}
        for fact, (i, value) in said.items():
            p[fact.replace("_", " ")][i] = value
        return bool(is_better(Placed(p, list(noisy), [None] * 3), 1, 0, alpha, frozenset()))

    for i in range(3):
        if noisy[i]:
            held = alpha * (1 - before / m)
            assert switches(beats=(2, 0.0), not_worse=(i, held * 0.999))
            assert not switches(beats=(2, 0.0), not_worse=(i, held * 1.001))
            assert switches(beats=(i, alpha / m * 0.999))
            assert not switches(beats=(i, alpha / m * 1.001))
            before += 1


def test_who_beats_another_at_once_is_seen_to_be_no_worse():
    """The two need not follow from each other, and one level pays for both."""
    p = {"beats": np.ones((1, 2, 2)), "not worse": np.ones((1, 2, 2))}
    p["beats"][0, 0, 1] = 0.0
    assert survey(Placed(p, [True], [None]), 0.05, range(2)) == ({}, 0)
    p["not worse"][0, 0, 1] = 0.0
    assert survey(Placed(p, [True], [None]), 0.05, range(2)) == ({1: (0, 0)}, 1)


def test_facts_that_contradict_each_other_put_nobody_out():
    p = {"beats": np.zeros((1, 2, 2)), "not worse": np.zeros((1, 2, 2))}
    assert survey(Placed(p, [True], [None]), 0.05, range(2)) == ({}, 0)


def test_who_misses_a_target_at_once_does_at_the_level_of_one_arm():
    p = {fact: np.zeros((1, 2, 2)) for fact in FACTS} | {"misses the target": np.ones((1, 2, 2))}
    claims = Placed(p, [True], [0.0])
    for beyond, gone in ((0.999, {1: (0, -1)}), (1.001, {})):
        p["misses the target"][0, 1, 1] = beyond * claims.side(0, 0.05, alone=True)
        assert survey(claims, 0.05, range(2))[0] == gone
    for beyond, settled in ((0.999, 1), (1.001, 0)):
        p["meets the target"][0, 1, 1] = beyond * claims.side(0, 0.05, alone=True)
        assert survey(claims, 0.05, range(2))[1] == settled


def test_a_target_that_nobody_meets_says_nothing_of_who_is_better():
    p = {fact: np.ones((1, 2, 2)) for fact in FACTS} | {"beats": np.zeros((1, 2, 2))}
    p["not worse"][:] = 0.0
    claims = Placed(p, [True], [0.0])
    assert not is_better(claims, 1, 0, 0.05, frozenset())
    assert is_better(claims, 1, 0, 0.05, frozenset({0}))


# --- the truth, without chance


def world(rng, with_targets):
    K, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    means = rng.integers(0, 9, (K, m)) / 8
    tol = rng.choice([0.0, 0.125, 0.5], m)
    res = rng.choice([0.125, 0.25, 1.0], m)
    targets = [
        float(rng.integers(0, 9)) / 8 if with_targets and rng.random() < 0.5 else None for _ in range(m)
    ]
    return means, tol, res, targets


def truth(means, tol, res, targets):
    """(m, K, K) whether each claim is true."""
    difference = means.T[:, :, None] - means.T[:, None, :]
    level = np.array([0.0 if t is None else t for t in targets])[:, None, None]
    own = np.repeat(means.T[:, :, None], len(means), axis=2)
    return {
        "beats": difference > tol[:, None, None],
        "not worse": difference >= -(tol + res)[:, None, None],
        "meets the target": own >= level - res[:, None, None],
        "misses the target": own < level,
    }


def true_claims(rng, *told):
    """Claims placed anywhere that is true."""
    p = {
        fact: np.where(true & (rng.random(true.shape) < 0.9), 0.0, 1.0) for fact, true in truth(*told).items()
    }
    return Placed(p, [bool(rng.random() < 0.8) for _ in told[1]], told[3])


@pytest.mark.parametrize("with_targets", [False, True])
def test_true_claims_prove_acceptable_arms_only(with_targets):
    rng, proven = np.random.default_rng(1), 0
    for _ in range(1500):
        told = world(rng, with_targets)
        claims = true_claims(rng, *told)
        limits = [i for i, target in enumerate(told[3]) if target is not None]
        for x in range(len(told[0])):
            for likely in (frozenset(limits), frozenset(limits[:1])):
                if proof_of(claims, x, 0.05, likely).is_complete:
                    assert naive.accepts(*told, x), (told, x)
                    proven += 1
    assert proven > 500


def test_true_claims_switch_to_better_arms_only():
    rng, switched = np.random.default_rng(2), 0
    for _ in range(1500):
        means, tol, res, _ = told = world(rng, False)
        claims = true_claims(rng, *told)
        for w in range(1, len(means)):
            if is_better(claims, w, 0, 0.05, frozenset()):
                assert naive.is_better(means, tol, res, w, 0)
                switched += 1
    assert switched > 300


def test_what_all_facts_say_is_true():
    """P1 of Theorem 8: who is within the tolerance of the best that is left stays."""
    rng, out = np.random.default_rng(3), 0
    for _ in range(800):
        means, tol, res, _ = told = world(rng, False)
        claims = true_claims(rng, *told)
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
        policy = lb.LexElimTol(K, m, delta=0.1, tolerance=tol, resolution=res, settle="all")
        means = rng.integers(0, 9, (K, m)) / 8
        slack = rng.choice([0.0, 0.0, 0.125, 0.5], (m, K, K))
        lows = means.T[:, :, None] - means.T[:, None, :] - slack
        policy.state.lows[:] = lows
        policy.state.clock[RESULTS] = 10
        begin(policy.state)
        p = {
            "beats": np.where(lows > tol[:, None, None], 0.0, 1.0),
            "not worse": np.where(lows >= -(tol + res)[:, None, None], 0.0, 1.0),
        }
        gone, stage = survey(Placed(p, [True] * m, [None] * m), 0.1, range(K))
        assert stage == policy.objective
        left_at = {left.arm: left.objective for left in policy.eliminations}
        assert {arm: where[0] for arm, where in gone.items()} == left_at


# --- by the means


def test_the_answer_by_the_means():
    claims = Placed(dict.fromkeys(FACTS, np.ones((2, 3, 3))), [True] * 2, [None] * 2)
    means = np.array([[0.9, 1.0], [0.9, 3.0], [0.1, 9.0]])
    leads = means.T[:, :, None] - means.T[:, None, :] - 0.2
    assert plug_in(claims, leads, np.zeros((2, 3)))[0] == 1
    claims.targets = [0.5, None]
    assert plug_in(claims, leads, means.T - 0.5)[::2] == (1, frozenset())
    assert plug_in(claims, leads, means.T - 2.0)[::2] == (1, frozenset({0}))
    tied = np.zeros((2, 3, 3))
    assert plug_in(claims, tied, means.T)[0] == 0
    assert plug_in(claims, tied, means.T, first=2)[0] == 2


# --- on edges, with chance


def gaussian_table(values, tolerance):
    objectives = tuple(lb.Objective(f"o{i}", tolerance=tolerance) for i in range(values.shape[2]))
    names = tuple(f"arm {a}" for a in range(values.shape[1]))
    return Table(names, objectives, values, values, values, ("gaussian",) * len(objectives), (), True)


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
        wrong += any(proof_of(claims, x, alpha, frozenset()).is_complete for x in bad)
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
    shown = verdict.difference("x", "a", "b")
    assert -1 < shown["low"] < -0.3  # not even "not worse" is claimed of a
    assert shown["high"] <= 0.3  # but it is of b
    assert max(seen[True]) + max(seen[False]) <= 0.2 / 2 + 1e-12
