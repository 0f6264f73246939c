"""Claims under the rules as declared: at one boundary each, so they take less evidence than facts."""

import math

from lexbandits.arrays import Vector
from lexbandits.evidence.boundary import log_wealth, may_reach, moment_bets, stored_boundary
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import BOUNDED, EXACT, Kind
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.facts import beats, not_worse, paired
from lexbandits.policies.tol.percent import is_share, share_evidence
from lexbandits.policies.tol.state import (
    BEATS,
    BEATS_LEVEL,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    REACH,
    THIRD_LEVEL,
    TOLERANCE,
    State,
    pair_of,
)


@kernel
def claim_evidence(
    kind: Kind,
    wealth: Vector,
    place: tuple[int, int, int, int],
    boundary: float,
    resolution: float,
    moments: tuple[float, float, float],
    enough: float,
) -> float:
    """The log evidence that a difference exceeds the boundary, if it can be enough.

    Its place in `wealth` is (row, objective, direction, claim), its moments are n, mean and M2. Numbers, and
    one array: numba counts references to every array that is handed to a call.
    """
    (row, i, direction, claim), (n, lead, squares) = place, moments
    if kind.code >= BOUNDED:
        return log_wealth(wealth, row, i, direction, claim, stored_boundary(kind, boundary))
    if kind.code == EXACT:
        holds = n > 0.0 and (lead > boundary or (claim == NOT_WORSE and lead == boundary))
        return math.inf if holds else -math.inf
    if not may_reach(kind, n, lead - boundary, squares, enough):
        return -math.inf
    return moment_bets(kind, n, lead - boundary, squares, resolution)


@apart
def evidence_for(state: State, claim: int, i: int, a: int, b: int) -> float:
    """The log evidence that θ_a − θ_b > −reach (NOT_WORSE) or > tolerance (BEATS), however little it is."""
    limits, kinds, singles, pairs = state.limits, state.kinds, state.singles, state.pairs
    if is_share(limits, i):
        return share_evidence(limits, kinds, singles, state.shares, claim, i, a, b)
    kind, row, direction = kind_at(kinds, i), pair_of(min(a, b), max(a, b), singles.shape[0]), int(a > b)
    tolerance, reach = limits[i, TOLERANCE], limits[i, REACH]
    boundary = tolerance if claim == BEATS else -reach
    n, lead = paired(limits, kinds, singles, pairs, i, a, b)
    place, found = (row, i, direction, claim), (n, lead, pairs[row, i, 2])
    return claim_evidence(kind, state.wealth, place, boundary, reach - tolerance, found, -math.inf)


@kernel
def is_beaten(lows: Vector, limits: Vector, shown: Vector, i: int, a: int, b: int) -> bool:
    """Whether a beats b, as a fact or under the declared rules."""
    declared = shown.size > 0 and shown[BEATS, i, a, b] >= limits[i, BEATS_LEVEL]
    return declared or beats(lows, limits, i, a, b)


@kernel
def is_held(lows: Vector, limits: Vector, shown: Vector, i: int, a: int, b: int) -> bool:
    """Whether a is not worse than b, as a fact or under the declared rules."""
    declared = shown.size > 0 and shown[NOT_WORSE, i, a, b] >= limits[i, NOT_WORSE_LEVEL]
    return declared or not_worse(lows, limits, i, a, b)


@kernel
def beaten_by_third(limits: Vector, shown: Vector, first: int, b: int) -> int:
    """Who was seen to beat b on the first objective under the declared rules, whoever answers; −1: nobody."""
    enough = limits[first, THIRD_LEVEL]
    for a in range(shown.shape[2]):
        if a != b and shown[BEATS, first, a, b] >= enough:
            return a
    return -1
