"""Which claims a verdict needs: an arm is acceptable (J1, L), it is worth a switch (J2), all facts at once.

A claim enters by its level alone, so that it may come from anything that has `says`, `lead` and `doubts` of
`Claims`.
docs/proofs.md, section 7.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from lexbandits._arrays import Vector
from lexbandits.judging.claims import BEATS, BELOW, HOLDS, MEETS, UNSURE, VIOLATES, Claims
from lexbandits.outcomes import ClaimVerdict
from lexbandits.study.measure.progress import watched

OPEN, BEATEN = ClaimVerdict.OPEN, ClaimVerdict.BEATEN
OF_MEETS = 0.75  # of a level, for "it meets the limit" where "not worse" would do as well; that has the rest


class Step(NamedTuple):
    """One claim of a certificate, about the answer (or `by`) and a rival; −1: there is none."""

    rival: int
    objective: int
    verdict: str
    by: int
    level: float


Claim = tuple[str, int, int, int | None]  # fact, objective, arms
Refutation = tuple[tuple[Claim, ...], float]  # claims that are all needed, and the level of each
Need = tuple[int, int, Iterable[Refutation]]  # a rival, an objective, and the ways of which one will do


class Shares(NamedTuple):
    """The parts of alpha that the ways to refute one objective have; what is exact takes none."""

    meets: float  # the limit, where the objective is one
    own: float  # not worse there
    earlier: float  # better on an earlier objective: each
    third: float  # another arm is better on the first: each


def level_of(claims: Claims, delta: float, *, baseline: bool = False, candidate: bool = False) -> float:
    """The level at which one arm is proven."""
    if candidate:
        return delta
    if any(claims.is_limit):
        return delta / claims.n_arms
    switch = baseline and claims.n_arms > 2
    return delta / max(1, claims.n_arms - (not switch))


# --- one arm is acceptable: Theorems J1 and L


def beating(claims: Claims, i: int, a: int, b: int) -> tuple[Claim, ...]:
    """What must be claimed, all of it, for "a beats b" on i."""
    better: Claim = (BEATS, i, a, b)
    return ((BELOW, i, b, None), better) if claims.is_limit[i] else (better,)


def direct(claims: Claims, x: int, y: int, i: int, shares: Shares, alpha: float) -> list[Refutation]:
    """The ways that are about x itself; to meet a limit goes first, as it says the most."""
    own: Refutation = (((HOLDS, i, x, y),), shares.own * alpha)
    earlier = [(beating(claims, j, x, y), shares.earlier * alpha) for j in range(i)]
    limit: list[Refutation] = [(((MEETS, i, x, None),), shares.meets * alpha)] if claims.is_limit[i] else []
    return [*limit, own, *earlier]


def by_others(claims: Claims, x: int, y: int, i: int, shares: Shares, alpha: float) -> Iterator[Refutation]:
    """The ways in which a third arm is better than y."""
    for z in range(claims.n_arms) if others_count(claims, i) else ():
        if z not in (x, y):
            yield beating(claims, 0, z, y), shares.third * alpha


def others_count(claims: Claims, i: int) -> bool:
    """Whether that a third arm is better on the first objective refutes anything on i."""
    return i > 0 and not claims.is_limit[0] and claims.n_arms > 2


def shares_of(claims: Claims, i: int) -> Shares:
    """The parts of alpha on an objective, whoever is compared."""
    earlier = sum(claims.noisy[:i])
    thirds = claims.n_arms - 2 if others_count(claims, i) and claims.noisy[0] else 0
    weights = [2.0 * claims.noisy[i], float(earlier > 0), float(thirds > 0)]
    if weights[0] and weights[1] + weights[2] == 1:
        weights[0] = 1.0
    total = sum(weights) or 1.0
    if claims.is_limit[i] and claims.noisy[i]:
        total /= 1 - OF_MEETS
    own, before, third = (w / total / max(1, n) for w, n in zip(weights, (1, earlier, thirds), strict=True))
    return Shares(OF_MEETS, own, before, third)


class Thirds:
    """Who is better than an arm on the first objective, the likeliest first: found once for all it helps."""

    def __init__(self, claims: Claims) -> None:
        self._claims = claims
        self._left: dict[tuple[int, float], list[tuple[float, int]]] = {}
        self._found: dict[tuple[int, float], list[tuple[float, int]]] = {}

    def first(self, y: int, level: float, besides: int, above: float = -math.inf) -> int | None:
        """The likeliest that beats y at a level, other than `besides`, if it is likelier than `above`."""
        claims, key = self._claims, (y, level)
        if key not in self._left:
            arms = (z for z in range(claims.n_arms) if z != y)
            ways = [(min(claims.lead(*claim) for claim in beating(claims, 0, z, y)), -z) for z in arms]
            self._left[key], self._found[key] = sorted(ways), []
        left, found = self._left[key], self._found[key]
        for lead, z in found:
            if z != besides:
                return z if lead > above else None
        while left and left[-1][0] > above:
            lead, z = left[-1][0], -left[-1][1]
            left.pop()
            if all(claims.says(*claim, alpha=level) for claim in beating(claims, 0, z, y)):
                found.append((lead, z))
                if z != besides:
                    return z
        return None


def of_limits(claims: Claims, x: int, alpha: float, *, closest: bool) -> Iterator[Need]:
    """That x meets every limit; or, if it may be the `closest`, of the others that nobody is clearly within.

    Who does not get as far as a limit does not count there.
    """
    for i in _limits(claims):
        meets: tuple[Claim, ...] = ((MEETS, i, x, None),)
        if not closest:
            yield x, i, [(meets, OF_MEETS * alpha)]
            continue
        for y in range(claims.n_arms):
            ways: list[Refutation] = [
                (meets, _beside_another(claims, alpha)),
                (((BELOW, i, y, None),), alpha),
            ]
            if y == x:
                yield y, i, ways
                continue
            ways += [(beating(claims, j, x, y), alpha) for j in range(i)]
            yield y, i, chain(ways, by_others(claims, x, y, i, Shares(0.0, 0.0, 0.0, 1.0), alpha))


def _limits(claims: Claims) -> list[int]:
    return [i for i in range(claims.n_objectives) if claims.is_limit[i]]


def _beside_another(claims: Claims, alpha: float) -> float:
    """The level of "x meets a limit" beside one that it may miss: it may miss several."""
    return (1 - OF_MEETS) * alpha / len(_limits(claims))


def prove(claims: Claims, x: int, alpha: float, thirds: Thirds, *, closest: bool = False) -> Iterator[Step]:
    """What must be claimed for x, each as a step, OPEN if it is not."""
    asked = _beside_another(claims, alpha) if closest else OF_MEETS * alpha
    for y, i, ways in of_limits(claims, x, alpha, closest=closest):
        yield from _steps(claims, x, y, i, ways, asked)
    shares = [shares_of(claims, i) for i in range(claims.n_objectives)]
    for y in range(claims.n_arms):
        for i in range(claims.n_objectives) if y != x else ():
            ways = _likeliest(claims, x, y, i, shares[i], alpha, thirds)
            yield from _steps(claims, x, y, i, ways, shares[i].own * alpha)


def _likeliest(
    claims: Claims, x: int, y: int, i: int, shares: Shares, alpha: float, thirds: Thirds
) -> Iterator[Refutation]:
    """The ways to refute y on i, the likeliest first; of third arms only one that is better."""
    first = int(claims.is_limit[i])  # to meet a limit says more than to be as close as another
    ways = direct(claims, x, y, i, shares, alpha)
    yield from ways[:first]
    level, others = shares.third * alpha, others_count(claims, i)
    likely = [(min(claims.lead(*claim) for claim in way[0]), way) for way in ways[first:]]
    for lead, way in sorted(likely, key=lambda pair: -pair[0]):
        if others and (z := thirds.first(y, level, x, lead)) is not None:
            yield beating(claims, 0, z, y), level
        yield way
    if others and (z := thirds.first(y, level, x)) is not None:
        yield beating(claims, 0, z, y), level


def _steps(
    claims: Claims, x: int, y: int, i: int, ways: Iterable[Refutation], asked: float
) -> tuple[Step, ...]:
    """The claims of the first way that is made, or what is open."""
    for way, level in ways:
        if all(claims.says(*claim, alpha=level) for claim in way):
            return tuple(
                Step(a if b is None else b, j, BEATEN, a, level)
                if fact == BEATS and a != x
                else Step(a if b is None else b, j, fact, -1, level)
                for fact, j, a, b in way
            )
    return (Step(y, i, OPEN, -1, asked),)


class Proof(NamedTuple):
    """That an arm is acceptable: what was claimed, and the limits that it is not said to meet."""

    steps: tuple[Step, ...]
    closest: frozenset[int]
    is_complete: bool


def proof_of(
    claims: Claims,
    x: int,
    alpha: float,
    likely: frozenset[int] = frozenset(),
    *,
    in_full: bool = False,
    thirds: Thirds | None = None,
) -> Proof:
    """A proof of x, up to what is open, or beyond it `in_full`; that it meets all limits goes first.

    If it is open either way, it is so as the closest where that nobody meets some limit is `likely`.
    """
    found: list[Proof] = []
    thirds = thirds or Thirds(claims)
    for closest in (False, True) if any(claims.is_limit) else (False,):
        steps = []
        for step in prove(claims, x, alpha, thirds, closest=closest):
            steps.append(step)
            if step.verdict == OPEN and not in_full:
                break
        is_complete = all(step.verdict != OPEN for step in steps)
        found.append(Proof(tuple(steps), unmet(claims, x, alpha) if closest else frozenset(), is_complete))
        if is_complete:
            return found[-1]
    return found[-1 if likely else 0]


def unmet(claims: Claims, x: int, alpha: float) -> frozenset[int]:
    """The limits that x is not said to meet."""
    missed: list[int] = []
    for level in (OF_MEETS * alpha, _beside_another(claims, alpha)) if any(claims.is_limit) else ():
        missed = [i for i in _limits(claims) if not claims.says(MEETS, i, x, None, level)]
        if not missed:
            break
    return frozenset(missed)


# --- it is worth a switch: Theorem J2


def is_better(claims: Claims, w: int, c: int, alpha: float) -> tuple[Step, ...]:
    """That w is better than c: not worse on objectives up to one on which it beats it. Nothing: not shown."""
    steps: tuple[Step, ...] = ()
    for i, (holds, beats) in enumerate(switch_levels(claims, w, c, alpha)):
        held, won = (_steps(claims, w, c, i, ways, alpha) for ways in (holds, [beats]))
        if held[0].verdict == OPEN:
            return ()
        steps += held
        if won[0].verdict != OPEN:
            return steps + won
    return ()


def switch_levels(claims: Claims, w: int, c: int, alpha: float) -> list[tuple[list[Refutation], Refutation]]:
    """Per objective the ways to say that w is not worse than c, and that it is better, with their levels."""
    noisy, place, found = max(1, sum(claims.noisy)), 0, []
    for k in range(claims.n_objectives):
        level = alpha * (1 - place / noisy)
        holds: list[Refutation] = [(((HOLDS, k, w, c),), level)]
        if claims.is_limit[k]:
            meets: Refutation = (((MEETS, k, w, None),), OF_MEETS * level)
            holds = [meets, (holds[0][0], (1 - OF_MEETS) * level)]
        found.append((holds, (beating(claims, k, w, c), alpha / noisy)))
        place += claims.noisy[k]
    return found


# --- all facts at once: Theorem 8


def survey(claims: Claims, delta: float, among: Sequence[int]) -> tuple[dict[int, tuple[int, int]], int]:
    """Who is out: on which objective, by whom; and the first objective that is not settled."""
    left = list(among)
    gone: dict[int, tuple[int, int]] = {}
    for i, is_limit in enumerate(claims.is_limit):
        side, alone = claims.side(i, delta), claims.side(i, delta, alone=True)
        beaten = {}
        for b in watched("ranking", left):
            by = next((a for a in _ahead(claims, i, b, left) if beats(claims, i, a, b, delta)), None)
            if by is not None:
                beaten[b] = i, by
        if len(beaten) == len(left):  # they contradict each other
            return gone, i
        gone |= beaten
        left = [a for a in left if a not in beaten]
        short = [a for a in left if not (is_limit and claims.says(MEETS, i, a, None, alone))]
        if is_limit and short and not all(claims.says(BELOW, i, a, None, alone) for a in left):
            return gone, i
        least = min(
            ((claims.lead(HOLDS, i, a, b), a, b) for a in short for b in left if a != b), default=None
        )
        if least is not None and not claims.says(HOLDS, i, *least[1:], side):  # mostly it is this one
            return gone, i
        if not all(claims.says(HOLDS, i, a, b, side) for a in short for b in left if a != b):
            return gone, i
    return gone, claims.n_objectives


def _ahead(claims: Claims, i: int, b: int, left: list[int]) -> list[int]:
    """Who may beat b, the likeliest first: it is named."""
    ahead = [(claims.lead(BEATS, i, a, b), a) for a in left if a != b]
    return [a for lead, a in sorted(ahead, reverse=True) if lead > 0]


def beats(claims: Claims, i: int, a: int, b: int, delta: float) -> bool:
    """Say whether a is shown to be better than b where all facts hold together.

    With "not worse" beside it, both together cost one level: at most one of the two can be false. A claim
    with a flag that would take a certificate away is not made.
    """
    if claims.is_limit[i] and not claims.says(BELOW, i, b, None, claims.side(i, delta, alone=True)):
        return False
    side = claims.side(i, delta)
    if not (claims.says(BEATS, i, a, b, side) and claims.says(HOLDS, i, a, b, side)):
        return False
    return UNSURE.isdisjoint(claims.doubts(BEATS, i, a, b, side))


def violates(claims: Claims, i: int, a: int, delta: float) -> bool:
    """Whether a is below the limit as written; with "below the inner line" beside it, as in `beats`."""
    alone = claims.side(i, delta, alone=True)
    if not all(claims.says(fact, i, a, None, alone) for fact in (VIOLATES, BELOW)):
        return False
    return UNSURE.isdisjoint(claims.doubts(VIOLATES, i, a, None, alone))


def tiers_of(claims: Claims, delta: float) -> list[list[int]]:
    """The arms that are not out; the same among those that are; and so on."""
    among, tiers = list(range(claims.n_arms)), []
    while among:
        gone, _ = survey(claims, delta, among)
        tiers.append([a for a in among if a not in gone])
        among = sorted(gone)
    return tiers


# --- by the means


def plug_in(
    claims: Claims, leads: Vector, near: Vector, first: int = 0
) -> tuple[int, list[int], frozenset[int]]:
    """The answer if what is seen were the truth, whom else it would be, the limits that nobody would meet.

    `leads` (m, K, K) says by how much a is ahead of b, `near` (m, K) of its limit; ties go to `first`.
    """
    kept, missed = np.ones(claims.n_arms, np.bool_), set()
    for i, is_limit in enumerate(claims.is_limit):
        if is_limit:
            if (kept & (near[i] >= 0)).any():
                kept &= near[i] >= 0
                continue
            missed.add(i)
        stay = kept & ~((leads[i] > 0) & kept[:, None]).any(axis=0)
        kept = stay if stay.any() else kept
    arms = sorted(np.flatnonzero(kept).tolist(), key=lambda a: a != first)
    return max(arms, key=lambda a: rank(leads, a, arms)), sorted(arms), frozenset(missed)


def rank(leads: Vector, a: int, arms: Sequence[int]) -> float:
    """How far a is ahead of the others on the last objective, at least."""
    return min((float(leads[-1, a, b]) for b in arms if b != a), default=0.0)
