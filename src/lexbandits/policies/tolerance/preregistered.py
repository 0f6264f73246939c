"""Pre-registered tests: at one boundary each, so they take less evidence than anytime bounds."""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.betting import log_wealth, may_reach, moment_bets, stored_boundary
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import BOUNDED, EXACT, SYMMETRIC, Kind
from lexbandits.policies.tolerance.anytime import against_target, beats, meets, misses, not_worse, paired
from lexbandits.policies.tolerance.relative import is_share, share_evidence
from lexbandits.policies.tolerance.state import (
    BEATS,
    BEATS_LEVEL,
    FLOOR,
    MEETS,
    MEETS_LEVEL,
    MISSES,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    REACH,
    TARGET,
    TOLERANCE,
    State,
    pair_of,
    row_of_arm,
)

HALF = 0.5  # of the slack: an arm is at least so far from the floor, or from the target, and stakes suit that

ANY_BOUNDARY = 0.5  # inside what `log_wealth` takes, where differences have no ends


@kernel
def preregistered_evidence(
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
    if kind.code == SYMMETRIC:
        return log_wealth(wealth, row, i, direction, claim, ANY_BOUNDARY)
    if kind.code == EXACT:
        holds = n > 0.0 and (lead > boundary or (claim == NOT_WORSE and lead == boundary))
        return math.inf if holds else -math.inf
    if not may_reach(kind, n, lead - boundary, squares, enough):
        return -math.inf
    return moment_bets(kind, n, lead - boundary, squares, resolution)


@kernel(inline="never")
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
    return preregistered_evidence(kind, state.wealth, place, boundary, reach - tolerance, found, -math.inf)


@kernel
def held_now(
    limits: Vector, kinds: Vector, pairs: Vector, wealth: Vector, n_arms: int, i: int, x: int, y: int
) -> bool:
    """Whether what the proof of x lacked of y, that x is not worse on i, is seen now; not of shares."""
    kind, row, enough = kind_at(kinds, i), pair_of(min(x, y), max(x, y), n_arms), limits[i, NOT_WORSE_LEVEL]
    boundary, resolution = -limits[i, REACH], limits[i, REACH] - limits[i, TOLERANCE]
    n, mean, squares = pairs[row, i, 0], pairs[row, i, 1] if x < y else -pairs[row, i, 1], pairs[row, i, 2]
    place, lead = (row, i, int(x > y), NOT_WORSE), (n, mean, squares)
    return bool(preregistered_evidence(kind, wealth, place, boundary, resolution, lead, enough) >= enough)


@kernel
def arm_boundary(kind: Kind, limits: Vector, i: int, claim: int) -> float:
    """Where a claim about a bounded arm has its line: of stored values, or of what they lack to 1."""
    line = limits[i, FLOOR] if claim == MEETS else limits[i, TARGET]
    stored = (line - kind.low) / (kind.high - kind.low)
    return float(stored if claim == MEETS else 1.0 - stored)


@kernel(inline="never")
def arm_evidence(state: State, claim: int, i: int, arm: int) -> float:
    """The log evidence that an arm is at least at the floor (MEETS), or below the target (MISSES).

    As that of a difference: the other arm is a line that is known.
    """
    kind, limits = kind_at(state.kinds, i), state.limits
    singles, row = state.singles, row_of_arm(arm, state.singles.shape[0])
    if kind.code >= BOUNDED:
        b = arm_boundary(kind, limits, i, claim)
        if claim == MISSES and b == 0.0:
            return -math.inf  # the largest value is not below itself
        return log_wealth(state.wealth, row, i, 0, claim, b)
    n, mean, squares = singles[arm, i, 0], singles[arm, i, 1], singles[arm, i, 2]
    if kind.code == EXACT:
        mean = against_target(limits, state.kinds, i, mean)
    lead = mean - limits[i, FLOOR] if claim == MEETS else limits[i, TARGET] - mean
    if kind.code == EXACT:
        return math.inf if n > 0.0 and (lead > 0.0 or (claim == MEETS and lead == 0.0)) else -math.inf
    alone = Kind(kind.code, kind.low, kind.high, kind.sd, kind.sd, kind.worst, kind.steady)
    return moment_bets(alone, n, lead, squares, HALF * limits[i, REACH])


@kernel
def shown_to_meet(bounds: Vector, limits: Vector, arm_log_evidence: Vector, i: int, arm: int) -> bool:
    """Whether an arm is at least at the floor of a limit, by either kind of evidence."""
    preregistered = arm_log_evidence.size > 0 and arm_log_evidence[MEETS, i, arm] >= limits[i, MEETS_LEVEL]
    return preregistered or meets(bounds, limits, i, arm)


@kernel
def shown_to_miss(bounds: Vector, limits: Vector, arm_log_evidence: Vector, i: int, arm: int) -> bool:
    """Whether an arm is below the target of a limit, by either kind of evidence."""
    preregistered = arm_log_evidence.size > 0 and arm_log_evidence[MISSES, i, arm] >= limits[i, BEATS_LEVEL]
    return preregistered or misses(bounds, limits, i, arm)


@kernel(inline="never")
def weigh_arm(state: State, claim: int, i: int, arm: int) -> None:
    """Take note of the evidence for a claim about an arm and a limit, unless it is enough already."""
    enough = state.limits[i, MEETS_LEVEL if claim == MEETS else BEATS_LEVEL]
    if state.arm_log_evidence[claim, i, arm] < enough:
        found = arm_evidence(state, claim, i, arm)
        state.arm_log_evidence[claim, i, arm] = max(state.arm_log_evidence[claim, i, arm], found)


@kernel
def shown_to_beat(lcb: Vector, limits: Vector, log_evidence: Vector, i: int, a: int, b: int) -> bool:
    """Whether a is better than b by more than the tolerance, by either kind of evidence."""
    preregistered = log_evidence.size > 0 and log_evidence[BEATS, i, a, b] >= limits[i, BEATS_LEVEL]
    return preregistered or beats(lcb, limits, i, a, b)


@kernel
def shown_not_worse(lcb: Vector, limits: Vector, log_evidence: Vector, i: int, a: int, b: int) -> bool:
    """Whether a is not worse than b, by either kind of evidence."""
    preregistered = log_evidence.size > 0 and log_evidence[NOT_WORSE, i, a, b] >= limits[i, NOT_WORSE_LEVEL]
    return preregistered or not_worse(lcb, limits, i, a, b)
