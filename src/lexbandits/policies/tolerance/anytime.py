"""Anytime evidence, valid under any rules: "a beats b by more than the tolerance", "a and b are close", …

It is computed from the best confidence bounds so far and from the rules in force, so new rules draw new
conclusions from the same data. docs/proofs.md, section 4. Kernels that are called for every pair take the
arrays they need, not the whole state: numba counts references to every array of it, at every call.
"""

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.exact import exact_difference, exact_value
from lexbandits.evidence.interval import (
    best_bound,
    best_lower_end,
    kind_at,
    least_distance,
    lower_evidence,
    may_show,
    told_difference,
)
from lexbandits.evidence.kinds import BOUNDED, EXACT, SYMMETRIC, Kind
from lexbandits.evidence.symmetric import (
    best_symmetric_end,
    scaled_sums,
    symmetric_log_evidence,
    turned_sums,
)
from lexbandits.policies.tolerance.relative import LOG_2, is_share, share_evidence
from lexbandits.policies.tolerance.state import (
    FLOOR,
    HIGH,
    LEVEL,
    LOW,
    NOT_WORSE,
    REACH,
    TARGET,
    TARGET_LEVEL,
    TOLERANCE,
    State,
    completed_moments,
    moments,
    pair_of,
    row_of_arm,
)


@kernel
def beats(lcb: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """It has been seen that a is better than b by more than the tolerance."""
    return bool(lcb[i, a, b] > limits[i, TOLERANCE])


@kernel
def not_worse(lcb: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """It has been seen that a is worse than b by at most tolerance + resolution."""
    return bool(lcb[i, a, b] >= -limits[i, REACH])


@kernel
def close(lcb: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """Neither is worse than the other by more than tolerance + resolution."""
    return bool(lcb[i, a, b] >= -limits[i, REACH] and lcb[i, b, a] >= -limits[i, REACH])


@kernel
def misses(bounds: Vector, limits: Vector, i: int, arm: int) -> bool:
    """It has been seen that the arm is below the target."""
    return bool(bounds[i, arm, HIGH] < limits[i, TARGET])


@kernel
def meets(bounds: Vector, limits: Vector, i: int, arm: int) -> bool:
    """It has been seen that the arm is at least at the floor; it may be below the target all the same."""
    return bool(bounds[i, arm, LOW] >= limits[i, FLOOR])


@kernel
def violates(bounds: Vector, limits: Vector, i: int, arm: int) -> bool:
    """It has been seen that the arm is below the floor."""
    return bool(bounds[i, arm, HIGH] < limits[i, FLOOR])


@kernel
def is_apart(bounds: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """It has been seen that a limit's floor lies between two arms: a is at least there, b is below it."""
    return violates(bounds, limits, i, b) and meets(bounds, limits, i, a)


@kernel
def beats_at(state: State, i: int, a: int, b: int) -> bool:
    """It has been seen that a beats b on any objective: on a limit b must be below the target too."""
    bounds, limits = state.bounds, state.limits
    if not state.is_limit[i]:
        return beats(state.lcb, limits, i, a, b)
    better = misses(bounds, limits, i, b) and beats(state.lcb, limits, i, a, b)
    return better or is_apart(bounds, limits, i, a, b)


# --- looking


@kernel
def paired(
    limits: Vector, kinds: Vector, singles: Vector, pairs: Vector, i: int, a: int, b: int
) -> tuple[float, float]:
    """Common results and the mean of a − b over them; an exact objective has one once both are known."""
    kind = kind_at(kinds, i)
    if kind.code == EXACT:
        known = min(1.0, singles[a, i, 0], singles[b, i, 0])
        value, other = singles[a, i, 1], singles[b, i, 1]
        return known, exact_difference(value, other, limits[i, TOLERANCE], limits[i, REACH])
    row = pair_of(min(a, b), max(a, b), singles.shape[0])
    difference = told_difference(kind, pairs[row, i, 1])
    return pairs[row, i, 0], difference if a < b else -difference


@kernel
def shows_nothing(
    kind: Kind,
    n: float,
    mean: float,
    m2: float,
    level: float,
    tolerance: float,
    reach: float,
    low: float,
    back: float,
) -> bool:
    """Whether n differences show no more than the best ends seen, `low` of a − b and `back` of b − a.

    Numbers alone: numba counts references to every array that is handed to a call.
    """
    if kind.code == EXACT or kind.worst > 0.0 or kind.code == SYMMETRIC:
        return False
    p, q = least_distance(kind, n, m2, level)
    farthest = abs(told_difference(kind, mean)) + reach  # that a side is ahead of a boundary
    exact = kind.code >= BOUNDED and reach >= kind.high - kind.low  # no values differ by more
    if n < 2.0 or (p * farthest * farthest < q and not exact):
        return True
    turned = 1.0 - mean if kind.code >= BOUNDED else -mean
    return not (
        may_show(kind, mean, p, q, tolerance, reach, low)
        or may_show(kind, turned, p, q, tolerance, reach, back)
    )


@kernel(inline="never")
def look(
    kind: Kind,
    lcb: Vector,
    limits: Vector,
    kinds: Vector,
    singles: Vector,
    pairs: Vector,
    completed: Vector,
    i: int,
    a: int,
    b: int,
) -> bool:
    """Take note of the ends of the interval of the pair a < b that show more than was seen, if any do."""
    before, back_before = lcb[i, a, b], lcb[i, b, a]
    if kind.code == EXACT:
        known, difference = paired(limits, kinds, singles, pairs, i, a, b)
        if known > 0.0:
            lcb[i, a, b] = difference
            lcb[i, b, a] = -difference
        return bool(lcb[i, a, b] != before)
    level, tolerance, reach = limits[i, LEVEL], limits[i, TOLERANCE], limits[i, REACH]
    row = pair_of(a, b, lcb.shape[1])
    if kind.code == SYMMETRIC:
        sums = scaled_sums(pairs, row, i)
        lcb[i, a, b] = best_symmetric_end(sums, level, tolerance, reach, before)
        lcb[i, b, a] = best_symmetric_end(turned_sums(sums), level, tolerance, reach, back_before)
        return bool(lcb[i, a, b] != before or lcb[i, b, a] != back_before)
    n, mean, m2, m3, m4 = moments(pairs, row, i)
    if kind.worst > 0.0:  # whatever its missing values were
        n, mean, m2, m3, m4 = completed_moments(completed, row, i, LOW)
    if n < 2.0:
        return False
    p, q = least_distance(kind, n, m2, level)
    seen = lcb[i, a, b]
    if may_show(kind, mean, p, q, tolerance, reach, seen):
        lcb[i, a, b] = best_lower_end(kind, n, mean, m2, m3, m4, level, tolerance, reach, seen)
    if kind.worst > 0.0:
        n, mean, m2, m3, m4 = completed_moments(completed, row, i, HIGH)
        p, q = least_distance(kind, n, m2, level)
    seen, mean = lcb[i, b, a], 1.0 - mean if kind.code >= BOUNDED else -mean
    if may_show(kind, mean, p, q, tolerance, reach, seen):
        lcb[i, b, a] = best_lower_end(kind, n, mean, m2, -m3, m4, level, tolerance, reach, seen)
    return bool(lcb[i, a, b] != before or lcb[i, b, a] != back_before)


@kernel
def against_target(limits: Vector, kinds: Vector, i: int, mean: float) -> float:
    """An arm's mean as it is compared with a target."""
    if kinds[i, 0] == EXACT:
        return exact_value(mean, limits[i, TARGET], limits[i, FLOOR])
    return mean


@kernel(inline="never")
def look_at_arm(
    bounds: Vector, limits: Vector, kinds: Vector, singles: Vector, completed: Vector, i: int, arm: int
) -> bool:
    """Take note of bounds that show on which side of target and floor an arm is; whether they show more."""
    low, high = bounds[i, arm, LOW], bounds[i, arm, HIGH]
    kind, row = kind_at(kinds, i), row_of_arm(arm, singles.shape[0])
    for side in (LOW, HIGH):
        n, mean, m2, m3, m4 = moments(singles, arm, i)
        if kind.code == EXACT:
            if n > 0.0:
                bounds[i, arm, side] = against_target(limits, kinds, i, mean)
            continue
        if kind.worst > 0.0:
            n, mean, m2, m3, m4 = completed_moments(completed, row, i, side)
        limit, seen = limits[i, FLOOR if side == LOW else TARGET], bounds[i, arm, side]
        if side == HIGH and seen < limit:
            limit = limits[i, FLOOR]
        level = limits[i, TARGET_LEVEL]
        bounds[i, arm, side] = best_bound(kind, n, mean, m2, m3, m4, level, limit, side, seen)
    return bool(bounds[i, arm, LOW] != low or bounds[i, arm, HIGH] != high)


@kernel(inline="never")
def anytime_evidence(state: State, i: int, a: int, b: int) -> float:
    """The log evidence, for LEVEL, that a is not worse than b by more than tolerance + resolution."""
    if is_share(state.limits, i):
        limits, kinds, singles, shares = state.limits, state.kinds, state.singles, state.shares
        return max(0.0, share_evidence(limits, kinds, singles, shares, NOT_WORSE, i, a, b) - LOG_2)
    kind = kind_at(state.kinds, i)
    known, _ = paired(state.limits, state.kinds, state.singles, state.pairs, i, a, b)
    if kind.code == EXACT or known < 2.0:
        return 0.0
    row = pair_of(min(a, b), max(a, b), state.singles.shape[0])
    if kind.code == SYMMETRIC:
        sums = scaled_sums(state.pairs, row, i)
        found = symmetric_log_evidence(sums if a < b else turned_sums(sums), -state.limits[i, REACH])
        return max(0.0, found - LOG_2)
    n, mean, m2, m3, m4 = moments(state.pairs, row, i)
    if kind.worst > 0.0:
        n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW if a < b else HIGH)
    if a > b:
        mean, m3 = (1.0 - mean if kind.code >= BOUNDED else -mean), -m3
    return lower_evidence(kind, n, mean, m2, m3, m4, -state.limits[i, REACH])
