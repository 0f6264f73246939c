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
from lexbandits.evidence.boundary import bet, log_wealth, may_reach, moment_bets, stored_boundary, unit_stake
from lexbandits.evidence.exact import exact_difference, exact_value
from lexbandits.evidence.interval import (
    arm_bounds,
    arm_interval,
    kind_at,
    lower_evidence,
    pair_interval,
    stored_difference,
    stored_value,
    told_difference,
    worth_looking,
)
from lexbandits.evidence.kinds import BOUNDED, EXACT, FINITE_VARIANCE, GAUSSIAN, Kind
from lexbandits.evidence.moments import push, push_squares
from lexbandits.jit import apart, kernel
from lexbandits.policies.base import Arms, eliminate

# The fields of State.clock: the current PASS, the arm whose TURN it is (−1: nobody's), places that the
# pass still LACKS, the HIGHEST pass told (−1: none), the pass of the NEXT judgement, RESULTS folded, the
# POSITION in the order of the objective being settled, whether it is OVER, by a CONTRADICTION or not,
# the CANDIDATE for the answer (−1: none yet), and three settings: PROVE (settle="answer"), STOP, and
# whether it asks AS_0_2 did.
PASS, TURN, LACKS, HIGHEST, NEXT, RESULTS, POSITION = range(7)
OVER, CONTRADICTION, CANDIDATE, PROVE, STOP, AS_0_2 = range(7, 13)
# Rows of State.who: the arms in question, the members of the pass, who has its place there filled, and
# whom the rule and the proof of the candidate would ask.
OFFERED, ASKED, FILLED, BY_RULE, BY_PROOF = range(5)
# Columns of State.limits; the last three are what a claim under the declared rules takes.
TOLERANCE, REACH, TARGET, FLOOR, LEVEL, TARGET_LEVEL, NOT_WORSE_LEVEL, BEATS_LEVEL, THIRD_LEVEL = range(9)
LOW, HIGH = 0, 1
FIRST = 5  # where the values begin in a row of State.singles
NOT_WORSE, BEATS = 0, 1  # claims under the declared rules: θ_a − θ_b > −reach, and > tolerance


class State(NamedTuple):
    """K arms, m objectives, P = K(K−1)/2 pairs; a row of moments is n, mean, M2 (, M3, M4)."""

    arms: Arms
    clock: Counts  # (13,) see above
    who: NDArray[np.bool_]  # (5, K) see above
    values: Vector  # (K, m) told in the current pass
    singles: Vector  # (K, m, 5 or more) moments of the arms' values, and the first where none must return
    pairs: Vector  # (P, m, 3 or 5) moments of the differences a − b, a < b
    lows: Vector  # (m, K, K) the largest lower end of θ_a − θ_b seen; the least upper end is −lows[i, b, a]
    bounds: Vector  # (m, K, 2) the largest lower and the least upper bound of arms tested against a target
    gone: Counts  # (K, 2) position in the order at which the arm is out, −1 if it is not; its rival
    must: NDArray[np.bool_]  # (m,) whether the objective has a target that somebody may meet
    reached: NDArray[np.bool_]  # (m, K) the arms that reached a target that none of them meets
    order: Counts  # (m,) objectives by priority
    limits: Vector  # (m, 9) tolerance, tolerance + resolution, target, target − resolution, log levels
    kinds: Vector  # (m, 6) of the noise
    completed: Vector  # (P + K, m, 2, 5) of pairs and arms with missing values at their least and largest
    # the account of the declared rules; both are empty where there is none, or it was closed
    shown: Vector  # (2, m, K, K) per claim the largest log evidence seen
    wealth: Vector  # (2, P, m, 2, 2, 6) bets of bounded kinds: see `boundary.bet`


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
    if kind.code >= BOUNDED or (kind.code == FINITE_VARIANCE and table.shape[2] >= 5):
        n, mean, m2, m3, m4 = push(n, mean, m2, table[row, i, 3], table[row, i, 4], value)
        table[row, i, 3] = m3
        table[row, i, 4] = m4
    else:
        n, mean, m2 = push_squares(n, mean, m2, value)
    table[row, i, 0] = n
    table[row, i, 1] = mean
    table[row, i, 2] = m2


@kernel
def ends_of(kind: Kind, value: float) -> tuple[float, float]:
    """The least and the largest that a value may be."""
    if math.isnan(value):
        return kind.low, kind.high
    return value, value


@kernel
def push_ends(completed: Vector, row: int, i: int, least: float, largest: float) -> None:
    """Add a stored value, whatever it may be, to both sequences of a row."""
    for side in range(2):
        n, mean, m2, m3, m4 = completed_moments(completed, row, i, side)
        n, mean, m2, m3, m4 = push(n, mean, m2, m3, m4, least if side == LOW else largest)
        completed[row, i, side, 0], completed[row, i, side, 1], completed[row, i, side, 2] = n, mean, m2
        completed[row, i, side, 3], completed[row, i, side, 4] = m3, m4


@kernel
def completed_moments(
    completed: Vector, row: int, i: int, side: int
) -> tuple[float, float, float, float, float]:
    """n, mean, M2, M3, M4 with missing values at their least (LOW) or largest (HIGH)."""
    found = completed[row, i, side]
    return found[0], found[1], found[2], found[3], found[4]


@kernel
def row_of_arm(arm: int, n_arms: int) -> int:
    """The row of an arm in State.completed."""
    return n_arms * (n_arms - 1) // 2 + arm


@kernel
def unit_of(earlier: Vector, limits: Vector, i: int, kind: Kind) -> float:
    """The stake that suits one resolution, by the moments of earlier differences."""
    return unit_stake(kind, earlier[0], earlier[2], limits[i, REACH] - limits[i, TOLERANCE])


@kernel
def bet_on(
    wealth: Vector,
    limits: Vector,
    row: int,
    i: int,
    kind: Kind,
    unit: float,
    lead: float,
    back_unit: float,
    back: float,
) -> None:
    """Bet on a pair's difference in the current pass, in both directions, by stakes of the past."""
    tolerance, reach = limits[i, TOLERANCE], limits[i, REACH]
    bet(wealth, row, i, NOT_WORSE, stored_boundary(kind, -reach), unit, lead, back_unit, back)
    bet(wealth, row, i, BEATS, stored_boundary(kind, tolerance), unit, lead, back_unit, back)


@apart
def complete_values(state: State, members: Counts, size: int, i: int) -> None:
    """Count a pass on an objective whose missing values count as the worst they could have been."""
    kind, n_arms, completed = kind_at(state.kinds, i), state.values.shape[0], state.completed
    for x in range(size):
        a = members[x]
        low, high = ends_of(kind, state.values[a, i])
        row = row_of_arm(a, n_arms)
        push_ends(completed, row, i, stored_value(kind, low), stored_value(kind, high))
        for y in range(x + 1, size):
            other_low, other_high = ends_of(kind, state.values[members[y], i])
            least = stored_difference(kind, low, other_high)
            largest = stored_difference(kind, high, other_low)
            row = pair_of(a, members[y], n_arms)
            if state.wealth.size > 0:  # each direction bets on the least that its differences may be
                low_unit = unit_of(completed[row, i, LOW], state.limits, i, kind)
                high_unit = unit_of(completed[row, i, HIGH], state.limits, i, kind)
                bet_on(state.wealth, state.limits, row, i, kind, low_unit, least, high_unit, 1.0 - largest)
            push_ends(completed, row, i, least, largest)


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
        if kind.worst > 0.0:
            complete_values(state, members, size, i)
        for x in range(size):
            a = members[x]
            if math.isnan(values[a, i]):
                continue
            push_value(state.singles, a, i, kind, stored_value(kind, values[a, i]))
            arms.sums[a, i] += values[a, i]
            known = state.singles[a, i, 0]
            # a sum of equal values over their number need not be that value
            arms.means[a, i] = values[a, i] if kind.code == EXACT else arms.sums[a, i] / known
            if kind.code == GAUSSIAN and known + FIRST <= state.singles.shape[2]:
                state.singles[a, i, FIRST + int(known) - 1] = values[a, i]
            for y in range(x + 1, size):
                b = members[y]
                if not math.isnan(values[b, i]):
                    row = pair_of(a, b, n_arms)
                    difference = stored_difference(kind, values[a, i], values[b, i])
                    if kind.code >= BOUNDED and state.wealth.size > 0 and not kind.worst > 0.0:
                        unit, back = unit_of(state.pairs[row, i], state.limits, i, kind), 1.0 - difference
                        bet_on(state.wealth, state.limits, row, i, kind, unit, difference, unit, back)
                    push_value(state.pairs, row, i, kind, difference)


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
    kind = kind_at(kinds, i)
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


# --- claims under the declared rules


@kernel
def claim_evidence(
    limits: Vector,
    kinds: Vector,
    singles: Vector,
    pairs: Vector,
    wealth: Vector,
    claim: int,
    i: int,
    a: int,
    b: int,
    enough: float,
) -> float:
    """The log evidence that θ_a − θ_b > −reach (NOT_WORSE) or > tolerance (BEATS), if it can be enough."""
    kind = kind_at(kinds, i)
    boundary = limits[i, TOLERANCE] if claim == BEATS else -limits[i, REACH]
    row = pair_of(min(a, b), max(a, b), singles.shape[0])
    if kind.code >= BOUNDED:
        return log_wealth(wealth, row, i, 0 if a < b else 1, claim, stored_boundary(kind, boundary))
    n, lead = paired(limits, kinds, singles, pairs, i, a, b)
    if kind.code == EXACT:
        holds = n > 0.0 and (lead > boundary or (claim == NOT_WORSE and lead == boundary))
        return math.inf if holds else -math.inf
    squares = pairs[row, i, 2]
    if not may_reach(kind, n, lead - boundary, squares, enough):
        return -math.inf
    return moment_bets(kind, n, lead - boundary, squares, limits[i, REACH] - limits[i, TOLERANCE])


@apart
def evidence_for(state: State, claim: int, i: int, a: int, b: int) -> float:
    """The log evidence for a claim about a and b by all that was folded, however little."""
    kinds, singles, pairs = state.kinds, state.singles, state.pairs
    return claim_evidence(state.limits, kinds, singles, pairs, state.wealth, claim, i, a, b, -math.inf)


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


@kernel
def single_interval(state: State, i: int, a: int, level: float) -> tuple[float, float]:
    """Where the mean of an arm lies, whatever its missing values were if that is to be so."""
    kind = kind_at(state.kinds, i)
    if kind.worst > 0.0:
        row = row_of_arm(a, state.values.shape[0])
        n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW)
        low, _ = arm_interval(kind, n, mean, m2, m3, m4, level)
        n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, HIGH)
        _, high = arm_interval(kind, n, mean, m2, m3, m4, level)
        return low, high
    n, mean, m2, m3, m4 = moments(state.singles, a, i)
    return arm_interval(kind, n, mean, m2, m3, m4, level)


@apart
def fill_target_bounds(state: State, shown: Vector) -> None:
    """(K, m, 2) where the means lie on objectives with a target, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            n, mean = state.singles[a, i, 0], state.singles[a, i, 1]
            shown[a, i, LOW], shown[a, i, HIGH] = -math.inf, math.inf
            if kind.worst > 0.0:
                n = state.completed[row_of_arm(a, n_arms), i, LOW, 0]
            if math.isnan(state.limits[i, TARGET]) or n < (1.0 if kind.code == EXACT else 2.0):
                continue
            if kind.code == EXACT:
                shown[a, i, LOW] = shown[a, i, HIGH] = against_target(state.limits, state.kinds, i, mean)
            else:
                ends = single_interval(state, i, a, state.limits[i, TARGET_LEVEL])
                shown[a, i, LOW], shown[a, i, HIGH] = ends


@apart
def fill_intervals(state: State, level: float, pair_levels: Vector, singles: Vector, pairs: Vector) -> None:
    """(K, m, 2) where the means lie, (K, K, m, 2) and their differences, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            singles[a, i, LOW], singles[a, i, HIGH] = single_interval(state, i, a, level)
            for b in range(a + 1, n_arms):
                low, high = state.lows[i, a, b], -state.lows[i, b, a]
                row = pair_of(a, b, n_arms)
                n, mean, m2, m3, m4 = moments(state.pairs, row, i)
                if kind.code == EXACT:
                    known, difference = paired(state.limits, state.kinds, state.singles, state.pairs, i, a, b)
                    if known > 0.0:
                        low = high = difference
                elif kind.worst > 0.0:
                    n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW)
                    below, _ = pair_interval(kind, n, mean, m2, m3, m4, pair_levels[i])
                    n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, HIGH)
                    _, above = pair_interval(kind, n, mean, m2, m3, m4, pair_levels[i])
                    if n >= 2.0:
                        low, high = max(low, below), min(high, above)
                elif n >= 2.0:
                    below, above = pair_interval(kind, n, mean, m2, m3, m4, pair_levels[i])
                    low, high = max(low, below), min(high, above)
                pairs[a, b, i, LOW], pairs[a, b, i, HIGH] = low, high
                pairs[b, a, i, LOW], pairs[b, a, i, HIGH] = -high, -low
