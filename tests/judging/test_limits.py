"""Theorem L by enumeration: the false claims that an arm needs cost at most its share, in every world.

A world is a table of integer means around the lines of its objectives. For every x that may not be certified
W(x), fixed by the means alone, is the set of false claims that the proof names, each at its level. The levels
add up to at most alpha, and with every other claim made, false ones included, x is not certified.
"""

import itertools
from typing import NamedTuple

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

ALPHA = 0.05


class Asked(NamedTuple):
    """An objective: of a limit the line and the slack, else the tie and from there to the margin."""

    is_limit: bool
    is_noisy: bool
    low: int
    width: int


class World:
    """Claims about means, with the truth at hand; `made` says which are made, at their levels."""

    def __init__(self, asked, means, made=None):
        self.asked, self.means = asked, means
        self.is_limit, self.noisy = [o.is_limit for o in asked], [o.is_noisy for o in asked]
        self.n_arms, self.n_objectives = len(means), len(asked)
        self.told = (
            means,
            [0 if o.is_limit else o.low for o in asked],
            [o.width for o in asked],
            [o.low + o.width if o.is_limit else None for o in asked],
        )
        self.says = made or (lambda fact, i, a, b, alpha: self.is_true(fact, i, a, b))

    def is_true(self, fact, i, a, b):
        _, _, low, width = self.asked[i]
        mean, tie, margin = self.means[a][i], *((0, width) if self.is_limit[i] else (low, low + width))
        if b is not None:
            ahead = mean - self.means[b][i]
            return ahead > tie if fact == "beats" else ahead >= -margin
        inner = low + width
        return {
            "meets the target": mean >= low,
            "below the inner line": mean < inner,
            "violates the limit": mean < low,
        }[fact]

    def but(self, forbidden):
        """Everything is claimed but what is forbidden, or certain and false."""

        def made(fact, i, a, b, alpha):
            possible = self.is_true(fact, i, a, b) or self.noisy[i]
            return possible and ((fact, i, a, b), alpha) not in forbidden

        return World(self.asked, self.means, made)

    def lead(self, fact, i, a, b):
        return float(a - (b or 0))

    def side(self, i, delta, alone=False):
        return delta

    def below(self, x):
        """The limits that x misses."""
        return [i for i, o in enumerate(self.asked) if o.is_limit and self.means[x][i] < o.low]

    def refusing(self, ways):
        """Of each way a false claim, at its level: without them none is made."""
        found = set()
        for way, level in ways:
            false = [claim for claim in way if not self.is_true(*claim)]
            assert false, "a way that is true"
            if all(self.noisy[claim[1]] for claim in false):
                found.add((false[0], level))
        return found


def cost(forbidden):
    return sum(level for _, level in forbidden) / ALPHA


def check_acceptable(world, x):
    """Who is certified is acceptable, and meets what it is said to meet; False: there is nothing to check."""
    found = naive.fails(*world.told, x)
    if found is not None:
        i, y = found
        W = world.refusing((way, share * ALPHA) for way, share in scheme.shares(world, x, y, i))
        assert cost(W) <= 1 + 1e-9, (world.means, x, W)
        assert not proof_of(world.but(W), x, ALPHA).is_complete, (world.means, x, W)
        return True
    if not (missed := world.below(x)):
        return False
    limits = sum(world.is_limit)
    levels = [(missed[0], 0.75 * ALPHA), *((i, 0.25 * ALPHA / limits) for i in missed)]
    W = {(("meets the target", i, x, None), level) for i, level in levels if world.noisy[i]}
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
    facts = World(
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
        facts = (
            ("meets the target", "below the inner line", "violates the limit") if world.is_limit[i] else ()
        )
        yield from ((fact, i, a, None) for fact in facts)
        yield from ((fact, i, a, b) for fact in ("beats", "not worse") for b in range(world.n_arms) if b != a)


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


def drawn(rng):
    """K ≤ 4 arms on up to three objectives; exact ones too."""
    asked = []
    for _ in range(rng.integers(1, 4)):
        is_limit, is_noisy = bool(rng.random() < 0.6), bool(rng.random() < 0.8)
        width = rng.choice((1, 2, 3) if is_noisy else (0, 0, 2) if is_limit else (0, 1))
        asked.append(Asked(is_limit, is_noisy, 4 if is_limit else int(rng.integers(0, 3)), int(width)))
    means = rng.integers(1, 9, (rng.integers(1, 5), len(asked))).tolist()
    return World(asked, means)


def test_worlds_drawn_at_random():
    rng = np.random.default_rng(0)
    bad, worse = sum(check(drawn(rng), rng) for _ in range(1500))
    assert min(bad, worse) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("order", [(True, False), (False, True), (True, True)])
def test_every_world_of_three_arms_two_objectives_and_five_values(order):
    rng, limit, then = np.random.default_rng(1), Asked(True, True, 4, 2), Asked(False, True, 1, 1)
    asked = [limit if is_limit else then for is_limit in order]
    arms = [*itertools.product(*(range(3, 8) if is_limit else range(5) for is_limit in order))]
    found = sum(check(World(asked, means), rng) for means in itertools.product(arms, repeat=3))
    assert found.min() > 5000


@pytest.mark.slow
def test_many_worlds_drawn_at_random():
    rng = np.random.default_rng(2)
    assert min(sum(check(drawn(rng), rng) for _ in range(40_000))) > 20_000


# --- errors that it must find


RIGHT = scheme.shares


def with_thirds_on_limits(claims, x, y, i):
    found = RIGHT(claims, x, y, i)
    if i > 0 and claims.is_limit[0]:
        found += [(scheme.beating(claims, 0, z, y), 0.0) for z in range(claims.n_arms) if z not in (x, y)]
    return found


PLANTED = {
    "below the inner line alone": ("beating", lambda _, i, a, b: (("below the inner line", i, b, None),)),
    "better alone": ("beating", lambda _, i, a, b: (("beats", i, a, b),)),
    "a third arm on a limit": ("shares", with_thirds_on_limits),
    "the rest not taken from alpha": (
        "shares",
        lambda claims, x, y, i: [
            (way, share * (4 if claims.is_limit[i] and place and claims.noisy[i] else 1))
            for place, (way, share) in enumerate(RIGHT(claims, x, y, i))
        ],
    ),
    "the halves dropped": (
        "shares",
        lambda claims, x, y, i: [(way, share * 2) for way, share in RIGHT(claims, x, y, i)],
    ),
    "all of alpha to meet a limit": (
        "shares",
        lambda claims, x, y, i: [
            (way, 1.0 if way[0][0] == "meets the target" else share) for way, share in RIGHT(claims, x, y, i)
        ],
    ),
}


@pytest.mark.parametrize("error", PLANTED)
def test_an_error_in_the_scheme_is_found(error, monkeypatch):
    name, planted = PLANTED[error]
    rng = np.random.default_rng(3)
    worlds = [drawn(rng) for _ in range(300)]
    monkeypatch.setattr(scheme, name, planted)
    with pytest.raises(AssertionError):
        [check(world, rng) for world in worlds]
