"""What LexElim-Tol has seen: differences of arms in common passes, and the facts that follow from them.

A fact is about a pair of arms on an objective ("a beats b by more than the tolerance", "a and b are
close") or about an arm and a target. Facts are computed from the best ends of intervals seen so far
and from the rules in force, so new rules make new facts of the same data. docs/proofs.md, section 4.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.interval import (
    arm_bounds,
    arm_interval,
    kind_at,
    pair_interval,
    stored_difference,
    stored_value,
    told_difference,
    worth_looking,
)
from lexbandits.evidence.kinds import BOUNDED, EXACT, FINITE_VARIANCE, Kind
from lexbandits.evidence.moments import push, push_squares
from lexbandits.jit import apart, kernel
from lexbandits.policies.base import Arms, eliminate

# The fields of State.clock: the current PASS, the arm whose TURN it is (−1: nobody's), places that the
# pass still LACKS, the HIGHEST pass told (−1: none), the pass of the NEXT judgement, RESULTS folded, the
# POSITION in the order of the objective being settled, whether it is OVER, by a CONTRADICTION or not,
# the CANDIDATE for the answer (−1: none yet), and two settings: PROVE (settle="answer"), STOP.
PASS, TURN, LACKS, HIGHEST, NEXT, RESULTS, POSITION, OVER, CONTRADICTION, CANDIDATE, PROVE, STOP = range(12)
# Rows of State.who: the arms in question, the members of the pass, who has its place there filled, and
# whom the rule and the proof of the candidate would ask.
OFFERED, ASKED, FILLED, BY_RULE, BY_PROOF = range(5)
# Columns of State.limits.
TOLERANCE, REACH, TARGET, FLOOR, LEVEL, TARGET_LEVEL = range(6)
LOW, HIGH = 0, 1


class State(NamedTuple):
    """K arms, m objectives, P = K(K−1)/2 pairs; a row of moments is n, mean, M2 (, M3, M4)."""

    arms: Arms
    clock: Counts  # (12,) see above
    who: NDArray[np.bool_]  # (5, K) see above
    values: Vector  # (K, m) told in the current pass
    singles: Vector  # (K, m, 3 or 5) moments of the arms' values
    pairs: Vector  # (P, m, 3 or 5) moments of the differences a − b, a < b
    lows: Vector  # (m, K, K) the largest lower end of θ_a − θ_b seen; the least upper end is −lows[i, b, a]
    bounds: Vector  # (m, K, 2) the largest lower and the least upper bound of arms tested against a target
    gone: Counts  # (K, 2) position in the order at which the arm is out, −1 if it is not; its rival
    must: NDArray[np.bool_]  # (m,) whether the objective has a target that somebody may meet
    reached: NDArray[np.bool_]  # (m, K) the arms that reached a target that none of them meets
    order: Counts  # (m,) objectives by priority
    limits: Vector  # (m, 6) tolerance, tolerance + resolution, target, target − resolution, log levels
    kinds: Vector  # (m, 5) of the noise


@kernel
def pair_of(a: int, b: int, n_arms: int) -> int:
    """The row of the pair a < b."""
    return a * (2 * n_arms - a - 1) // 2 + b - a - 1


@kernel
def moments(table: Vector, row: int, i: int) -> tuple[float, float, float, float, float]:
    """n, mean, M2, M3, M4; the last two are 0 where nobody needs them."""
    if table.shape[2] == 3:
        return table[row, i, 0], table[row, i, 1], table[row, i, 2], 0.0, 0.0
    return table[row, i, 0], table[row, i, 1], table[row, i, 2], table[row, i, 3], table[row, i, 4]


@kernel
def push_value(table: Vector, row: int, i: int, kind: Kind, value: float) -> None:
    """Add a stored value to a row of moments: five where an interval or a warning needs them."""
    n, mean, m2 = table[row, i, 0], table[row, i, 1], table[row, i, 2]
    if kind.code >= BOUNDED or (kind.code == FINITE_VARIANCE and table.shape[2] == 5):
        n, mean, m2, m3, m4 = push(n, mean, m2, table[row, i, 3], table[row, i, 4], value)
        table[row, i, 3] = m3
        table[row, i, 4] = m4
    else:
        n, mean, m2 = push_squares(n, mean, m2, value)
    table[row, i, 0] = n
    table[row, i, 1] = mean
    table[row, i, 2] = m2


@apart
def fold_values(state: State) -> None:
    """Count the current pass: every member's values and every pair's differences, on all objectives."""
    arms, values = state.arms, state.values
    n_arms, m = values.shape
    members = np.empty(n_arms, np.int64)
    size = 0
    for arm in range(n_arms):
        if state.who[ASKED, arm]:
            members[size] = arm
            size += 1
    state.clock[RESULTS] += size
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for x in range(size):
            a = members[x]
            if math.isnan(values[a, i]):
                continue
            push_value(state.singles, a, i, kind, stored_value(kind, values[a, i]))
            arms.sums[a, i] += values[a, i]
            arms.means[a, i] = arms.sums[a, i] / state.singles[a, i, 0]
            for y in range(x + 1, size):
                b = members[y]
                if not math.isnan(values[b, i]):
                    difference = stored_difference(kind, values[a, i], values[b, i])
                    push_value(state.pairs, pair_of(a, b, n_arms), i, kind, difference)


# --- facts. Kernels that are called for every pair take the arrays they need, not the whole state:
# numba counts references to every array of it, at every call


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
def paired(kinds: Vector, singles: Vector, pairs: Vector, i: int, a: int, b: int) -> tuple[float, float]:
    """Common results and the mean of a − b over them; an exact objective has one once both are known."""
    kind = kind_at(kinds, i)
    if kind.code == EXACT:
        known = min(1.0, singles[a, i, 0], singles[b, i, 0])
        return known, singles[a, i, 1] - singles[b, i, 1]
    row = pair_of(min(a, b), max(a, b), singles.shape[0])
    difference = told_difference(kind, pairs[row, i, 1])
    return pairs[row, i, 0], difference if a < b else -difference


@kernel
def look(
    lows: Vector, limits: Vector, kinds: Vector, singles: Vector, pairs: Vector, i: int, a: int, b: int
) -> None:
    """Take note of the interval of the pair a < b, if it can show more than what was seen."""
    kind = kind_at(kinds, i)
    if kind.code == EXACT:
        known, difference = paired(kinds, singles, pairs, i, a, b)
        if known > 0.0:
            lows[i, a, b] = difference
            lows[i, b, a] = -difference
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
def look_at_arm(bounds: Vector, limits: Vector, kinds: Vector, singles: Vector, i: int, arm: int) -> None:
    """Take note of an arm's bounds on an objective with a target."""
    kind = kind_at(kinds, i)
    n, mean, m2, m3, m4 = moments(singles, arm, i)
    if n >= (1.0 if kind.code == EXACT else 2.0):
        below, above = arm_bounds(kind, n, mean, m2, m3, m4, limits[i, TARGET_LEVEL])
        bounds[i, arm, LOW] = max(bounds[i, arm, LOW], below)
        bounds[i, arm, HIGH] = min(bounds[i, arm, HIGH], above)


# --- who survives


@kernel
def copied(arms: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A copy of a set of arms; much faster to compile than numpy's."""
    copy = np.empty(arms.size, np.bool_)
    for arm in range(arms.size):
        copy[arm] = arms[arm]
    return copy


@kernel
def drop_missing(state: State, alive: NDArray[np.bool_], position: int) -> None:
    """Drop whoever misses the target; nobody if all of them do, but then the target is given up."""
    bounds, limits, gone = state.bounds, state.limits, state.gone
    i = state.order[position]
    feasible = False
    for arm in range(alive.size):
        feasible |= alive[arm] and not misses(bounds, limits, i, arm)
    for arm in range(alive.size):
        if not feasible:
            state.reached[i, arm] = alive[arm]
        elif alive[arm] and misses(bounds, limits, i, arm):
            alive[arm] = False
            gone[arm, 0] = position
    state.must[i] = feasible


@kernel
def drop_beaten(state: State, alive: NDArray[np.bool_], position: int) -> bool:
    """Drop whoever is beaten by somebody who got as far; False if that is everybody."""
    lows, limits, gone = state.lows, state.limits, state.gone
    i = state.order[position]
    before = copied(alive)
    left = 0
    for b in range(alive.size):
        if not before[b]:
            continue
        left += 1
        for a in range(alive.size):
            if before[a] and a != b and beats(lows, limits, i, a, b):
                alive[b] = False
                gone[b, 0] = position
                gone[b, 1] = a
                left -= 1
                break
    return left > 0


@kernel
def find_open(state: State, alive: NDArray[np.bool_], i: int) -> bool:
    """Whether the objective is not settled; note in `who` for which survivors."""
    lows, limits, bounds, who = state.lows, state.limits, state.bounds, state.who
    must, some = state.must[i], False
    for arm in range(alive.size):
        is_open = alive[arm] and must and not meets(bounds, limits, i, arm)
        if alive[arm] and not must:
            for other in range(alive.size):
                if alive[other] and other != arm and not close(lows, limits, i, arm, other):
                    is_open = True
                    break
        who[BY_RULE, arm] = is_open
        some |= is_open
    return some


@apart
def survey(state: State) -> None:
    """Recompute who survives; the current objective is the first that is not settled.

    Where nobody would be left, a contradiction ends it and the survivors stay as they were.
    """
    arms, clock, order, gone, must = state.arms, state.clock, state.order, state.gone, state.must
    alive = copied(state.who[OFFERED])
    for i in range(order.size):
        must[i] = not math.isnan(state.limits[i, TARGET])
    for arm in range(alive.size):
        gone[arm, 0] = gone[arm, 1] = -1
        for i in range(order.size):
            state.reached[i, arm] = False
    position = 0
    settled = True
    while position < order.size and settled:
        i = order[position]
        tested = must[i]
        if tested:
            drop_missing(state, alive, position)
        if tested and not must[i] and clock[STOP] == 1:
            clock[OVER] = 1
            break
        if not must[i] and not drop_beaten(state, alive, position):
            clock[OVER] = clock[CONTRADICTION] = 1
            return
        settled = not find_open(state, alive, i)
        position += settled
    clock[POSITION] = position
    if position == order.size:
        clock[OVER] = 1
    for arm in range(alive.size):
        if alive[arm] and not arms.active[arm]:  # the arm that beat it is out itself
            arms.active[arm] = True
            arms.left[arm, 0] = arms.left[arm, 1] = arms.left[arm, 2] = 0
        elif arms.active[arm] and not alive[arm]:
            eliminate(arms, arm, clock[RESULTS], order[gone[arm, 0]], gone[arm, 1])


# --- for people who watch


@apart
def fill_intervals(state: State, level: float, singles: Vector, pairs: Vector) -> None:
    """(K, m, 2) where the means lie, (K, K, m, 2) and their differences, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            n, mean, m2, m3, m4 = moments(state.singles, a, i)
            singles[a, i, LOW], singles[a, i, HIGH] = arm_interval(kind, n, mean, m2, m3, m4, level)
            for b in range(a + 1, n_arms):
                low, high = state.lows[i, a, b], -state.lows[i, b, a]
                n, mean, m2, m3, m4 = moments(state.pairs, pair_of(a, b, n_arms), i)
                if kind.code == EXACT:
                    known, difference = paired(state.kinds, state.singles, state.pairs, i, a, b)
                    if known > 0.0:
                        low = high = difference
                elif n >= 2.0:
                    below, above = pair_interval(kind, n, mean, m2, m3, m4, state.limits[i, LEVEL])
                    low, high = max(low, below), min(high, above)
                pairs[a, b, i, LOW], pairs[a, b, i, HIGH] = low, high
                pairs[b, a, i, LOW], pairs[b, a, i, HIGH] = -high, -low
