"""Which claims a verdict needs: J1 (an arm is acceptable), J2 (it is worth a switch), and all facts at once.

A claim enters by its level alone, so that it may come from anything that has `says` and `lead` of `Claims`.
docs/proofs.md, section 7.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.judging.claims import BEATS, HOLDS, MEETS, MISSES, Claims

OPEN, BEATEN = "open", "beaten"


class Step(NamedTuple):
    """One claim of a certificate, about the answer (or `by`) and a rival; −1: there is none."""

    rival: int
    objective: int
    verdict: str
    by: int
    level: float


Claim = tuple[str, int, int, int | None]  # fact, objective, arms


def level_of(claims: Claims, delta: float, *, baseline: bool = False, named: bool = False) -> float:
    """The level at which one arm is proven."""
    targets = sum(target is not None for target in claims.targets)
    if named:
        return float(delta / 2**targets)
    if targets:
        return float(delta / (2**targets * claims.n_arms))
    switch = baseline and claims.n_arms > 2
    return delta / max(1, claims.n_arms - (not switch))


# --- one arm is acceptable: Theorem J1


def prove(claims: Claims, x: int, alpha: float, given_up: frozenset[int]) -> Iterator[Step]:
    """What must be claimed for x, each as a step, OPEN if it is not; nobody meets the targets `given_up`."""
    limits = [i for i, target in enumerate(claims.targets) if target is not None and i not in given_up]
    for i in sorted(given_up):
        for y in range(claims.n_arms):
            yield _misses(claims, y, i, alpha)
    for i in limits:
        met = claims.says(MEETS, i, x, None, alpha)
        yield Step(x, i, MEETS if met else OPEN, -1, alpha)
    for y in range(claims.n_arms):
        for i in range(claims.n_objectives):
            if y != x and i not in limits:
                yield _refute(claims, x, y, i, alpha, limits)


def _refute(claims: Claims, x: int, y: int, i: int, alpha: float, limits: list[int]) -> Step:
    """One claim against "x is not acceptable because of y on i"."""
    found = shares(claims, x, y, i, limits)
    for (fact, j, a, b), share in sorted(found, key=lambda pair: -claims.lead(*pair[0])):
        if claims.says(fact, j, a, b, share * alpha):
            third = fact == BEATS and a != x
            return Step(y, j, BEATEN if third else fact, a if third else -1, share * alpha)
    return Step(y, i, OPEN, -1, found[0][1] * alpha)


def shares(claims: Claims, x: int, y: int, i: int, limits: list[int]) -> list[tuple[Claim, float]]:
    """The claims of which one will do, and each one's part of alpha; what is certain takes none."""
    own: list[Claim] = [(HOLDS, i, x, y)]
    earlier: list[Claim] = [(MISSES, j, y, None) if j in limits else (BEATS, j, x, y) for j in range(i)]
    others = [z for z in range(claims.n_arms) if z not in (x, y)]
    thirds: list[Claim] = [(BEATS, 0, z, y) for z in others if i > 0 and claims.targets[0] is None]
    noisy = [[claim for claim in group if claims.noisy[claim[1]]] for group in (own, earlier, thirds)]
    weights = [2.0 * bool(noisy[0]), float(bool(noisy[1])), float(bool(noisy[2]))]
    if weights[0] and weights[1] + weights[2] == 1:
        weights = [1.0, weights[1], weights[2]]
    total = sum(weights) or 1.0
    parts = zip((own, earlier, thirds), noisy, weights, strict=True)
    return [(claim, weight / total / max(1, len(some))) for group, some, weight in parts for claim in group]


def missing_shares(claims: Claims, y: int, i: int) -> list[tuple[Claim, float]]:
    """The claims of which one says that y misses target i, or never got there; each one's part of alpha."""
    thirds = [z for z in range(claims.n_arms) if z != y and claims.targets[0] is None]
    own = 0.5 if thirds else 1.0
    return [((MISSES, i, y, None), own), *(((BEATS, 0, z, y), own / len(thirds)) for z in thirds)]


def _misses(claims: Claims, y: int, i: int, alpha: float) -> Step:
    """That y misses a target, or never got there as it is beaten on the first objective."""
    found = missing_shares(claims, y, i)
    for (fact, j, a, b), share in found:
        if claims.says(fact, j, a, b, share * alpha):
            return Step(
                y, j, MISSES if fact == MISSES else BEATEN, -1 if fact == MISSES else a, share * alpha
            )
    return Step(y, i, OPEN, -1, found[0][1] * alpha)


class Proof(NamedTuple):
    """That an arm is acceptable: what was claimed, and the targets that nobody meets."""

    steps: tuple[Step, ...]
    given_up: frozenset[int]
    is_complete: bool


def proof_of(claims: Claims, x: int, alpha: float, likely: frozenset[int], *, in_full: bool = False) -> Proof:
    """A proof of x, up to what is open, or beyond it `in_full`. Targets are given up if that is `likely`."""
    for given_up in dict.fromkeys([frozenset[int](), likely]):
        steps = []
        for step in prove(claims, x, alpha, given_up):
            steps.append(step)
            if step.verdict == OPEN and not in_full:
                break
        is_complete = all(step.verdict != OPEN for step in steps)
        if is_complete:
            break
    return Proof(tuple(steps), given_up, is_complete)


# --- it is worth a switch: Theorem J2


def is_better(claims: Claims, w: int, c: int, alpha: float, given_up: frozenset[int]) -> tuple[Step, ...]:
    """That w is better than c: not worse on objectives up to one on which it beats it. Nothing: not shown."""
    steps: tuple[Step, ...] = ()
    for (holds, level), (beats, least) in switch_levels(claims, w, c, alpha, given_up):
        if not claims.says(*holds, alpha=level):
            return ()
        steps = (*steps, Step(w if holds[3] is None else c, holds[1], holds[0], -1, level))
        if claims.says(*beats, alpha=least):
            return (*steps, Step(c, beats[1], beats[0], -1, least))
    return ()


def switch_levels(
    claims: Claims, w: int, c: int, alpha: float, given_up: frozenset[int]
) -> list[tuple[tuple[Claim, float], tuple[Claim, float]]]:
    """Per objective the claims that w is not worse than c and that it is better, each with its level."""
    noisy, place, found = max(1, sum(claims.noisy)), 0, []
    for k in range(claims.n_objectives):
        is_limit = claims.targets[k] is not None and k not in given_up
        holds: Claim = (MEETS, k, w, None) if is_limit else (HOLDS, k, w, c)
        beats: Claim = (MISSES, k, c, None) if is_limit else (BEATS, k, w, c)
        found.append(((holds, alpha * (1 - place / noisy)), (beats, alpha / noisy)))
        place += claims.noisy[k]
    return found


# --- all facts at once: Theorem 8


def survey(claims: Claims, delta: float, among: Sequence[int]) -> tuple[dict[int, tuple[int, int]], int]:
    """Who is out: on which objective, by whom (−1: it misses the target); the first objective not settled."""
    left = list(among)
    gone: dict[int, tuple[int, int]] = {}
    for i, target in enumerate(claims.targets):
        side, alone = claims.side(i, delta), claims.side(i, delta, alone=True)
        if target is not None:
            stay = [a for a in left if not claims.says(MISSES, i, a, None, alone)]
            if stay:
                gone |= {a: (i, -1) for a in left if a not in stay}
                left = stay
                if not all(claims.says(MEETS, i, a, None, alone) for a in left):
                    return gone, i
                continue
        beaten = {b: (i, a) for b in left for a in _ahead(claims, i, b, left) if beats(claims, i, a, b, side)}
        if len(beaten) == len(left):  # they contradict each other
            return gone, i
        gone |= beaten
        left = [a for a in left if a not in beaten]
        pairs = sorted((claims.lead(HOLDS, i, a, b), a, b) for a in left for b in left if a != b)
        if not all(claims.says(HOLDS, i, a, b, side) for _, a, b in pairs):
            return gone, i
    return gone, claims.n_objectives


def _ahead(claims: Claims, i: int, b: int, left: list[int]) -> list[int]:
    """Who may beat b, the likeliest last: it is named."""
    ahead = [(claims.lead(BEATS, i, a, b), a) for a in left if a != b]
    return [a for lead, a in sorted(ahead) if lead > 0]


def beats(claims: Claims, i: int, a: int, b: int, side: float) -> bool:
    """With "not worse" beside it, both together cost one level: at most one of the two can be false."""
    return claims.says(BEATS, i, a, b, side) and claims.says(HOLDS, i, a, b, side)


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
    """The answer if what is seen were the truth, whom else it would be, the targets that nobody would meet.

    `leads` (m, K, K) says by how much a is ahead of b, `near` (m, K) of its target; ties go to `first`.
    """
    kept, given_up = np.ones(claims.n_arms, np.bool_), set()
    for i, target in enumerate(claims.targets):
        if target is not None:
            if (kept & (near[i] >= 0)).any():
                kept &= near[i] >= 0
                continue
            given_up.add(i)
        stay = kept & ~((leads[i] > 0) & kept[:, None]).any(axis=0)
        kept = stay if stay.any() else kept
    arms = sorted(np.flatnonzero(kept).tolist(), key=lambda a: a != first)
    return max(arms, key=lambda a: rank(leads, a, arms)), sorted(arms), frozenset(given_up)


def rank(leads: Vector, a: int, arms: Sequence[int]) -> float:
    """How far a is ahead of the others on the last objective, at least."""
    return min((float(leads[-1, a, b]) for b in arms if b != a), default=0.0)
