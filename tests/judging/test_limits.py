"""Theorem L by enumeration: the false claims that an arm needs cost at most its share, in every world.

A world is a table of integer means around the lines of its objectives. For every x that may not be certified
W(x), fixed by the means alone, is the set of false claims that the proof names, each at its level. The levels
add up to at most alpha, and with every other claim made, false ones included, x is not certified.
"""

import itertools

import numpy as np
import pytest

from lexbandits.judging import scheme
from lexbandits.judging.scheme import (
    is_better,
    level_of,
    proof_of,
    survey,
    switch_levels,
    unmet,
    violates,
)
from support import judge_oracle as naive
from support.claimed import ALPHA, Asked, TrueMeans, cost, drawn_means


def check_acceptable(world, x):
    """Who is certified is acceptable, and meets what it is said to meet; False: there is nothing to check."""
    found = naive.fails(*world.told, x)
    if found is not None:
        i, y = found
        told = world, x, y, i, scheme.shares_of(world, i), ALPHA
        W = world.refusing(itertools.chain(scheme.direct(*told), scheme.by_others(*told)))
        assert cost(W) <= 1 + 1e-9, (world.means, x, W)
        assert not proof_of(world.but(W), x, ALPHA).is_complete, (world.means, x, W)
        return True
    if not (missed := world.below(x)):
        return False
    limits = sum(world.is_limit)
    levels = [(missed[0], 0.75 * ALPHA), *((i, 0.25 * ALPHA / limits) for i in missed)]
    W = {(("meets_limit", i, x, None), level) for i, level in levels if world.noisy[i]}
    assert cost(W) <= 1 + 1e-9
    assert unmet(world.but(W), x, ALPHA) >= set(missed)
    return True


def check_better(world, w, c):
    """Nobody is better who is not; False: nothing to check."""
    if naive.is_better(*world.told, w, c):
        return False
    W = set()
    for holds, beats in switch_levels(world, w, c, ALPHA):
        if not any(all(world.is_true(*claim) for claim in way) for way, _ in holds):
            W |= world.refusing(holds)
            break
        W |= world.refusing([beats])
    assert cost(W) <= 1 + 1e-9, (world.means, w, c, W)
    assert not is_better(world.but(W), w, c, ALPHA)
    return True


def check_facts(world, rng):
    """True facts exclude nobody who ties with the best, and what is settled is so."""
    means, tie, res, targets = world.told
    tops = [np.inf if target is None else target for target in targets]
    kept = {claim for claim in claims_of(world) if rng.random() < 0.9}
    facts = TrueMeans(
        world.asked,
        means,
        lambda fact, i, a, b, alpha: world.is_true(fact, i, a, b) and (fact, i, a, b) in kept,
    )
    gone, stage = survey(facts, ALPHA, range(world.n_arms))
    left = set(range(world.n_arms))
    for i in range(min(stage + 1, world.n_objectives)):
        values = {a: min(means[a][i], tops[i]) for a in left}
        best, out = max(values.values()), {a for a in left if gone.get(a, (-1,))[0] == i}
        assert all(values[a] < best - (0 if world.is_limit[i] else tie[i]) for a in out)
        left -= out
        assert i == stage or all(values[a] >= best - tie[i] - res[i] for a in left)
        if world.is_limit[i]:
            assert all(means[a][i] < world.asked[i].low for a in left if violates(facts, i, a, ALPHA))
    return len(gone)


def claims_of(world):
    for i, a in itertools.product(range(world.n_objectives), range(world.n_arms)):
        facts = ("meets_limit", "not_clearly_within", "violates_limit") if world.is_limit[i] else ()
        yield from ((fact, i, a, None) for fact in facts)
        yield from (
            (fact, i, a, b) for fact in ("better", "not_worse") for b in range(world.n_arms) if b != a
        )


def check(world, rng):
    """(arms that must not be certified, arms that are not better)."""
    arms = range(world.n_arms)
    assert level_of(world, ALPHA) == ALPHA / (
        world.n_arms if any(world.is_limit) else max(1, world.n_arms - 1)
    )
    bad = sum(check_acceptable(world, x) for x in arms)
    worse = sum(check_better(world, w, c) for w, c in itertools.permutations(arms, 2))
    check_facts(world, rng)
    assert any(proof_of(world, x, ALPHA).is_complete for x in arms), "true claims are enough"
    return np.array([bad, worse])


def test_worlds_drawn_at_random():
    rng = np.random.default_rng(0)
    bad, worse = sum(check(drawn_means(rng), rng) for _ in range(1500))
    assert min(bad, worse) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("order", [(True, False), (False, True), (True, True)])
def test_every_world_of_three_arms_two_objectives_and_five_values(order):
    rng, limit, then = np.random.default_rng(1), Asked(True, True, 4, 2), Asked(False, True, 1, 1)
    asked = [limit if is_limit else then for is_limit in order]
    arms = [*itertools.product(*(range(3, 8) if is_limit else range(5) for is_limit in order))]
    found = sum(check(TrueMeans(asked, means), rng) for means in itertools.product(arms, repeat=3))
    assert found.min() > 5000


@pytest.mark.slow
def test_many_worlds_drawn_at_random():
    rng = np.random.default_rng(2)
    assert min(sum(check(drawn_means(rng), rng) for _ in range(40_000))) > 20_000


# --- errors that it must find


RIGHT = scheme.shares_of


def times(factor, claims, i):
    """All ways but to meet a limit have a larger share."""
    found = RIGHT(claims, i)
    return scheme.Shares(found.meets, *(factor * share for share in found[1:]))


PLANTED = {
    "below the inner line alone": ("beating", lambda _, i, a, b: (("not_clearly_within", i, b, None),)),
    "better alone": ("beating", lambda _, i, a, b: (("better", i, a, b),)),
    "a third arm on a limit": ("others_count", lambda claims, i: i > 0 and claims.n_arms > 2),
    "the rest not taken from alpha": (
        "shares_of",
        lambda claims, i: times(4 if claims.is_limit[i] and claims.noisy[i] else 1, claims, i),
    ),
    "the halves dropped": ("shares_of", lambda claims, i: times(2, claims, i)),
    "all of alpha to meet a limit": ("shares_of", lambda claims, i: RIGHT(claims, i)._replace(meets=1.0)),
}


@pytest.mark.parametrize("error", PLANTED)
def test_an_error_in_the_scheme_is_found(error, monkeypatch):
    name, planted = PLANTED[error]
    rng = np.random.default_rng(3)
    worlds = [drawn_means(rng) for _ in range(300)]
    monkeypatch.setattr(scheme, name, planted)
    with pytest.raises(AssertionError):
        [check(world, rng) for world in worlds]
