"""Facts, which hold under any rules: "a beats b by more than the tolerance", "a and b are close", targets.

They are computed from the best ends of intervals seen so far and from the rules in force, so new rules make
new facts of the same data. docs/proofs.md, section 4. Kernels that are called for every pair take the arrays
they need, not the whole state: numba counts references to every array of it, at every call.
"""

from lexbandits.arrays import Vector
from lexbandits.evidence.exact import exact_difference, exact_value
from lexbandits.evidence.interval import (
    arm_bounds,
    kind_at,
    lower_evidence,
    pair_interval,
    told_difference,
    worth_looking,
)
from lexbandits.evidence.kinds import BOUNDED, EXACT, Kind
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.state import (
    FLOOR,
    HIGH,
    LEVEL,
    LOW,
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
def beats(lows: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """It has been seen that a is better than b by more than the tolerance."""
    return bool(lows[i, a, b] > limits[i, TOLERANCE])


@kernel
def not_worse(lows: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """It has been seen that a is worse than b by at most tolerance + resolution."""
    return bool(lows[i, a, b] >= -limits[i, REACH])


@kernel
def close(lows: Vector, limits: Vector, i: int, a: int, b: int) -> bool:
    """Neither is worse than the other by more than tolerance + resolution."""
    return bool(lows[i, a, b] >= -limits[i, REACH] and lows[i, b, a] >= -limits[i, REACH])


@kernel
def misses(bounds: Vector, limits: Vector, i: int, arm: int) -> bool:
    """It has been seen that the arm is below the target."""
    return bool(bounds[i, arm, HIGH] < limits[i, TARGET])


@kernel
def meets(bounds: Vector, limits: Vector, i: int, arm: int) -> bool:
    """It has been seen that the arm is above the target or at most the resolution below it."""
    return bool(bounds[i, arm, HIGH] >= limits[i, TARGET] and bounds[i, arm, LOW] >= limits[i, FLOOR])


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
def look_at_worst(
    lows: Vector, limits: Vector, kinds: Vector, completed: Vector, i: int, a: int, b: int
) -> None:
    """Take note of the interval of the pair a < b, whatever its missing values were."""
    kind, row = kind_at(kinds, i), pair_of(a, b, lows.shape[1])
    n, mean, m2, m3, m4 = completed_moments(completed, row, i, LOW)
    _, top_mean, top_m2, top_m3, top_m4 = completed_moments(completed, row, i, HIGH)
    level, tolerance, reach = limits[i, LEVEL], limits[i, TOLERANCE], limits[i, REACH]
    low, high = lows[i, a, b], -lows[i, b, a]
    if n >= 2.0 and (
        worth_looking(kind, n, mean, m2, level, tolerance, reach, low, high)
        or worth_looking(kind, n, top_mean, top_m2, level, tolerance, reach, low, high)
    ):
        below, _ = pair_interval(kind, n, mean, m2, m3, m4, level)
        _, above = pair_interval(kind, n, top_mean, top_m2, top_m3, top_m4, level)
        lows[i, a, b] = max(low, below)
        lows[i, b, a] = max(-high, -above)


@kernel
def look(
    kind: Kind,
    lows: Vector,
    limits: Vector,
    kinds: Vector,
    singles: Vector,
    pairs: Vector,
    completed: Vector,
    i: int,
    a: int,
    b: int,
) -> None:
    """Take note of the interval of the pair a < b, if it can show more than what was seen."""
    if kind.code == EXACT:
        known, difference = paired(limits, kinds, singles, pairs, i, a, b)
        if known > 0.0:
            lows[i, a, b] = difference
            lows[i, b, a] = -difference
        return
    if kind.worst > 0.0:
        look_at_worst(lows, limits, kinds, completed, i, a, b)
        return
    n, mean, m2, m3, m4 = moments(pairs, pair_of(a, b, lows.shape[1]), i)
    if n < 2.0:
        return
    low, high = lows[i, a, b], -lows[i, b, a]
    if worth_looking(kind, n, mean, m2, limits[i, LEVEL], limits[i, TOLERANCE], limits[i, REACH], low, high):
        below, above = pair_interval(kind, n, mean, m2, m3, m4, limits[i, LEVEL])
        lows[i, a, b] = max(low, below)
        lows[i, b, a] = max(-high, -above)


@kernel
def against_target(limits: Vector, kinds: Vector, i: int, mean: float) -> float:
    """An arm's mean as it is compared with a target."""
    if kinds[i, 0] == EXACT:
        return exact_value(mean, limits[i, TARGET], limits[i, FLOOR])
    return mean


@kernel
def look_at_arm(
    bounds: Vector, limits: Vector, kinds: Vector, singles: Vector, completed: Vector, i: int, arm: int
) -> None:
    """Take note of an arm's bounds on an objective with a target."""
    kind = kind_at(kinds, i)
    level = limits[i, TARGET_LEVEL]
    if kind.worst > 0.0:
        row = row_of_arm(arm, singles.shape[0])
        n, mean, m2, m3, m4 = completed_moments(completed, row, i, LOW)
        _, top_mean, top_m2, top_m3, top_m4 = completed_moments(completed, row, i, HIGH)
        if n >= 2.0:
            below, _ = arm_bounds(kind, n, mean, m2, m3, m4, level)
            _, above = arm_bounds(kind, n, top_mean, top_m2, top_m3, top_m4, level)
            bounds[i, arm, LOW] = max(bounds[i, arm, LOW], below)
            bounds[i, arm, HIGH] = min(bounds[i, arm, HIGH], above)
        return
    n, mean, m2, m3, m4 = moments(singles, arm, i)
    if kind.code == EXACT:
        if n > 0.0:
            bounds[i, arm, LOW] = bounds[i, arm, HIGH] = against_target(limits, kinds, i, mean)
    elif n >= 2.0:
        below, above = arm_bounds(kind, n, mean, m2, m3, m4, level)
        bounds[i, arm, LOW] = max(bounds[i, arm, LOW], below)
        bounds[i, arm, HIGH] = min(bounds[i, arm, HIGH], above)


@apart
def fact_evidence(state: State, i: int, a: int, b: int) -> float:
    """The log evidence, for LEVEL, that a is not worse than b by more than tolerance + resolution."""
    kind = kind_at(state.kinds, i)
    known, _ = paired(state.limits, state.kinds, state.singles, state.pairs, i, a, b)
    if kind.code == EXACT or known < 2.0:
        return 0.0
    row = pair_of(min(a, b), max(a, b), state.singles.shape[0])
    n, mean, m2, m3, m4 = moments(state.pairs, row, i)
    if kind.worst > 0.0:
        n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW if a < b else HIGH)
    if a > b:
        mean, m3 = (1.0 - mean if kind.code >= BOUNDED else -mean), -m3
    return lower_evidence(kind, n, mean, m2, m3, m4, -state.limits[i, REACH])
