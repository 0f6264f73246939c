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
    kind_at,
    pair_interval,
    stored_difference,
    stored_value,
    told_difference,
    told_mean,
    worth_looking,
)
from lexbandits.evidence.kinds import BOUNDED, EXACT, Kind
from lexbandits.evidence.moments import push, push_squares
from lexbandits.jit import kernel
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
    seen: Vector  # (P, m, 2) the largest lower and the least upper end of θ_a − θ_b seen
    bounds: Vector  # (K, m, 2) the same of arms tested against a target
    gone: Counts  # (K, 2) position in the order at which the arm is out, −1 if it is not; its rival
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
    """Add a stored value to a row of moments."""
    n, mean, m2 = table[row, i, 0], table[row, i, 1], table[row, i, 2]
    if kind.code >= BOUNDED:
        n, mean, m2, m3, m4 = push(n, mean, m2, table[row, i, 3], table[row, i, 4], value)
        table[row, i, 3] = m3
        table[row, i, 4] = m4
    else:
        n, mean, m2 = push_squares(n, mean, m2, value)
    table[row, i, 0] = n
    table[row, i, 1] = mean
    table[row, i, 2] = m2


@kernel
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


# --- what a pair shows


@kernel
def low_end(state: State, a: int, b: int, i: int) -> float:
    """The largest lower end of θ_a − θ_b seen."""
    n_arms = state.gone.shape[0]
    if a < b:
        return float(state.seen[pair_of(a, b, n_arms), i, LOW])
    return -float(state.seen[pair_of(b, a, n_arms), i, HIGH])


@kernel
def high_end(state: State, a: int, b: int, i: int) -> float:
    """The least upper end of θ_a − θ_b seen."""
    return -low_end(state, b, a, i)


@kernel
def beats(state: State, a: int, b: int, i: int) -> bool:
    """It has been seen that a is better than b by more than the tolerance."""
    return low_end(state, a, b, i) > state.limits[i, TOLERANCE]


@kernel
def not_worse(state: State, a: int, b: int, i: int) -> bool:
    """It has been seen that a is worse than b by at most tolerance + resolution."""
    return low_end(state, a, b, i) >= -state.limits[i, REACH]


@kernel
def close(state: State, a: int, b: int, i: int) -> bool:
    """Neither is worse than the other by more than tolerance + resolution."""
    return not_worse(state, a, b, i) and not_worse(state, b, a, i)


@kernel
def common_results(state: State, a: int, b: int, i: int) -> float:
    """In how many passes both were measured; for an exact objective whether both are known."""
    if state.kinds[i, 0] == EXACT:
        return min(1.0, state.singles[a, i, 0], state.singles[b, i, 0])
    pair = pair_of(min(a, b), max(a, b), state.gone.shape[0])
    return float(state.pairs[pair, i, 0])


@kernel
def mean_difference(state: State, a: int, b: int, i: int) -> float:
    """The mean of a − b over common passes; 0 where there is none."""
    if common_results(state, a, b, i) == 0.0:
        return 0.0
    if state.kinds[i, 0] == EXACT:
        return float(state.singles[a, i, 1] - state.singles[b, i, 1])
    pair = pair_of(min(a, b), max(a, b), state.gone.shape[0])
    difference = told_difference(kind_at(state.kinds, i), state.pairs[pair, i, 1])
    return difference if a < b else -difference


@kernel
def look(state: State, a: int, b: int, i: int) -> None:
    """Take note of the pair's interval, if it can show more than what was seen."""
    if a > b:
        a, b = b, a
    kind = kind_at(state.kinds, i)
    pair = pair_of(a, b, state.gone.shape[0])
    if kind.code == EXACT:
        if common_results(state, a, b, i) > 0.0:
            state.seen[pair, i, LOW] = state.seen[pair, i, HIGH] = mean_difference(state, a, b, i)
        return
    n, mean, m2, m3, m4 = moments(state.pairs, pair, i)
    if n < 2.0:
        return
    level, tolerance, reach = state.limits[i, LEVEL], state.limits[i, TOLERANCE], state.limits[i, REACH]
    low, high = state.seen[pair, i, LOW], state.seen[pair, i, HIGH]
    if worth_looking(kind, n, mean, m2, level, tolerance, reach, low, high):
        below, above = pair_interval(kind, n, mean, m2, m3, m4, level)
        state.seen[pair, i, LOW] = max(low, below)
        state.seen[pair, i, HIGH] = min(high, above)


# --- what an arm shows against a target


@kernel
def has_target(state: State, i: int) -> bool:
    """Whether the objective is one to be met, not one to be maximised."""
    return not math.isnan(state.limits[i, TARGET])


@kernel
def misses(state: State, arm: int, i: int) -> bool:
    """It has been seen that the arm is below the target."""
    return bool(state.bounds[arm, i, HIGH] < state.limits[i, TARGET])


@kernel
def meets(state: State, arm: int, i: int) -> bool:
    """It has been seen that the arm is above the target or less than the resolution below it."""
    return bool(not misses(state, arm, i) and state.bounds[arm, i, LOW] >= state.limits[i, FLOOR])


@kernel
def look_at_arm(state: State, arm: int, i: int) -> None:
    """Take note of an arm's bounds on an objective with a target."""
    n, mean, m2, m3, m4 = moments(state.singles, arm, i)
    kind = kind_at(state.kinds, i)
    if n < (1.0 if kind.code == EXACT else 2.0):
        return
    below, above = arm_bounds(kind, n, mean, m2, m3, m4, state.limits[i, TARGET_LEVEL])
    state.bounds[arm, i, LOW] = max(state.bounds[arm, i, LOW], below)
    state.bounds[arm, i, HIGH] = min(state.bounds[arm, i, HIGH], above)


# --- who survives


@kernel
def drop_missing(state: State, alive: NDArray[np.bool_], position: int) -> bool:
    """Drop whoever misses the target; nobody, and False, if all of them do."""
    i = state.order[position]
    feasible = False
    for arm in range(alive.size):
        feasible |= alive[arm] and not misses(state, arm, i)
    for arm in range(alive.size):
        if not feasible:
            state.reached[i, arm] = alive[arm]
        elif alive[arm] and misses(state, arm, i):
            alive[arm] = False
            state.gone[arm, 0] = position
    return feasible


@kernel
def drop_beaten(state: State, alive: NDArray[np.bool_], position: int) -> bool:
    """Drop whoever is beaten by somebody who got as far; False if that is everybody."""
    i = state.order[position]
    before = alive.copy()
    left = 0
    for b in range(alive.size):
        if not before[b]:
            continue
        left += 1
        for a in range(alive.size):
            if before[a] and a != b and beats(state, a, b, i):
                alive[b] = False
                state.gone[b, 0] = position
                state.gone[b, 1] = a
                left -= 1
                break
    return left > 0


@kernel
def is_open(state: State, alive: NDArray[np.bool_], arm: int, i: int) -> bool:
    """Whether the objective is not settled as far as this survivor is concerned."""
    if has_target(state, i) and not state.reached[i, arm]:
        return not meets(state, arm, i)
    for other in range(alive.size):
        if alive[other] and other != arm and not close(state, arm, other, i):
            return True
    return False


@kernel
def survey(state: State) -> None:
    """Recompute who survives; the current objective is the first that is not settled.

    Where nobody would be left, a contradiction ends it and the survivors stay as they were.
    """
    arms, clock = state.arms, state.clock
    m = state.order.size
    alive = state.who[OFFERED].copy()
    state.gone[:] = -1
    state.reached[:] = False
    position = 0
    settled = True
    while position < m and settled:
        i = state.order[position]
        if not (has_target(state, i) and drop_missing(state, alive, position)):
            if has_target(state, i) and clock[STOP] == 1:
                clock[OVER] = 1
                break
            if not drop_beaten(state, alive, position):
                clock[OVER] = clock[CONTRADICTION] = 1
                return
        for arm in range(alive.size):
            if alive[arm] and is_open(state, alive, arm, i):
                settled = False
                break
        if settled:
            position += 1
    clock[POSITION] = position
    if position == m:
        clock[OVER] = 1
    for arm in range(alive.size):
        if alive[arm] and not arms.active[arm]:  # the arm that beat it is out itself
            arms.active[arm] = True
            arms.left[arm] = 0
        elif arms.active[arm] and not alive[arm]:
            eliminate(arms, arm, clock[RESULTS], state.order[state.gone[arm, 0]], state.gone[arm, 1])
