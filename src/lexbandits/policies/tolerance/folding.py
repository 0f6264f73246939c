"""Folding: a pass that is complete becomes moments of arms and pairs, and bets on differences."""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.betting import bet, caution_of, stored_boundary, unit_stake
from lexbandits.evidence.interval import kind_at, stored_difference, stored_value
from lexbandits.evidence.kinds import (
    BOUNDED,
    EXACT,
    FINITE_VARIANCE,
    GAUSSIAN,
    IN_PART,
    SUB_GAUSSIAN,
    SYMMETRIC,
    Kind,
)
from lexbandits.evidence.moments import push, push_squares, push_weighted, unless_rounded
from lexbandits.evidence.symmetric import bet_on_sign, beyond, push_scaled, variance_so_far
from lexbandits.policies.tolerance.preregistered import HALF, arm_boundary
from lexbandits.policies.tolerance.relative import fold_shares, is_share
from lexbandits.policies.tolerance.state import (
    ASKED,
    BEATS,
    FIRST,
    HIGH,
    LEADER,
    LOW,
    MEETS,
    NOT_WORSE,
    REACH,
    RESULTS,
    TOLERANCE,
    State,
    completed_moments,
    pair_of,
    row_of_arm,
)


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
def ends_of_repeats(kind: Kind, repeats: Vector, i: int) -> tuple[float, float]:
    """The least and the largest that the mean of the leader's values may be."""
    least, largest, times = 0.0, 0.0, repeats.shape[0]
    for repeat in range(times):
        low, high = ends_of(kind, repeats[repeat, i])
        least += low / times
        largest += high / times
    return max(least, kind.low), min(largest, kind.high)


@kernel
def weight_of_repeats(kind: Kind, repeats: Vector, i: int) -> float:
    """How many differences of single values one of the leader's mean is worth: by the variance of its noise.

    Where the values of a pass may share their noise, the mean of several is as noisy as one.
    """
    if kind.code != SUB_GAUSSIAN or kind.pair_sd > 1.5 * kind.sd:
        return 1.0
    present = 0.0
    for repeat in range(repeats.shape[0]):
        present += not math.isnan(repeats[repeat, i])
    return 2.0 * present / (1.0 + present)


@kernel
def push_ends(completed: Vector, row: int, i: int, least: float, largest: float) -> None:
    """Add a stored value, whatever it may be, to both sequences of a row."""
    for side in range(2):
        n, mean, m2, m3, m4 = completed_moments(completed, row, i, side)
        n, mean, m2, m3, m4 = push(n, mean, m2, m3, m4, least if side == LOW else largest)
        completed[row, i, side, 0], completed[row, i, side, 1], completed[row, i, side, 2] = n, mean, m2
        completed[row, i, side, 3], completed[row, i, side, 4] = m3, m4


@kernel
def bet_on_arm(
    wealth: Vector,
    limits: Vector,
    kind: Kind,
    i: int,
    row: int,
    n: float,
    spread: tuple[float, float],
    value: tuple[float, float],
) -> None:
    """Bet on an arm's stored value exceeding the floor of a limit, and on its staying below the target.

    `spread`: M2 of what was bet on before, `value`: the least and the largest that it may be now.
    """
    for claim in range(2):
        b, z = arm_boundary(kind, limits, i, claim), value[0] if claim == MEETS else 1.0 - value[1]
        unit = unit_stake(kind, n, spread[claim], HALF * limits[i, REACH] / (kind.high - kind.low))
        # nothing is bet on the other direction
        bet(wealth, row, i, claim, b, unit, z, unit, b, n, caution_of(kind)[2])


@kernel(inline="never")
def complete_values(state: State, i: int) -> None:
    """Count a pass on an objective whose missing values count as the worst they could have been."""
    kind, values, completed = kind_at(state.kinds, i), state.values, state.completed
    wealth, masks, n_arms, leader = state.wealth, state.masks, values.shape[0], state.clock[LEADER]
    tolerance, reach = state.limits[i, TOLERANCE], state.limits[i, REACH]
    aim, held = 0.5 * (reach - tolerance) / (kind.high - kind.low), stored_boundary(kind, -reach)
    beaten, most_risk = stored_boundary(kind, tolerance), caution_of(kind)[2]
    for a in range(n_arms):
        if not masks[ASKED, a] or (kind.worst == IN_PART and math.isnan(values[a, i])):
            continue
        low, high = ends_of(kind, values[a, i])
        if a == leader:
            low, high = ends_of_repeats(kind, state.repeats, i)
        row, ends = row_of_arm(a, n_arms), (stored_value(kind, low), stored_value(kind, high))
        if row < wealth.shape[1] and state.is_limit[i]:
            n, _, m2, _, _ = completed_moments(completed, row, i, LOW)
            _, _, back_m2, _, _ = completed_moments(completed, row, i, HIGH)
            bet_on_arm(wealth, state.limits, kind, i, row, n, (m2, back_m2), ends)
        push_ends(completed, row, i, ends[0], ends[1])
        for b in range(a + 1, n_arms):
            if not masks[ASKED, b] or (kind.worst == IN_PART and math.isnan(values[b, i])):
                continue
            other_low, other_high = ends_of(kind, values[b, i])
            if b == leader:
                other_low, other_high = ends_of_repeats(kind, state.repeats, i)
            least = stored_difference(kind, low, other_high)
            largest = stored_difference(kind, high, other_low)
            row = pair_of(a, b, n_arms)
            if wealth.size > 0:  # each direction bets on the least that its differences may be
                _, _, back_m2, _, _ = completed_moments(completed, row, i, HIGH)
                n, _, m2, _, _ = completed_moments(completed, row, i, LOW)
                unit, back_unit = unit_stake(kind, n, m2, aim), unit_stake(kind, n, back_m2, aim)
                back = 1.0 - largest
                bet(wealth, row, i, NOT_WORSE, held, unit, least, back_unit, back, n, most_risk)
                bet(wealth, row, i, BEATS, beaten, unit, least, back_unit, back, n, most_risk)
            push_ends(completed, row, i, least, largest)


@kernel(inline="never")
def fold_values(state: State) -> None:
    """Count the current pass: every member's values and every pair's differences, on all objectives."""
    values, singles, pairs = state.values, state.singles, state.pairs
    limits, kinds = state.limits, state.kinds
    wealth, masks, sums, means = state.wealth, state.masks, state.arms.sums, state.arms.means
    is_limit, (n_arms, m), leader, weight = state.is_limit, values.shape, state.clock[LEADER], 1.0
    for arm in range(n_arms):
        state.clock[RESULTS] += masks[ASKED, arm]
    if leader >= 0:
        state.clock[RESULTS] += state.repeats.shape[0] - 1
    for i in range(m):
        if kind_at(kinds, i).worst > 0.0:
            complete_values(state, i)
        if is_share(limits, i):
            fold_shares(state, i)
    for i in range(m):
        kind = kind_at(kinds, i)
        bets = kind.code >= BOUNDED and wealth.size > 0 and not kind.worst > 0.0
        by_squares = kind.code < BOUNDED and kind.code != FINITE_VARIANCE  # of most pairs, so they are quick
        tolerance, reach = limits[i, TOLERANCE], limits[i, REACH]
        resolution, aim, held, beaten, most_risk = reach - tolerance, 0.0, 0.0, 0.0, 0.0
        if leader >= 0:
            weight = weight_of_repeats(kind, state.repeats, i)
        if bets:
            held, beaten = stored_boundary(kind, -reach), stored_boundary(kind, tolerance)
            aim, most_risk = 0.5 * resolution / (kind.high - kind.low), caution_of(kind)[2]
        for a in range(n_arms):
            value = values[a, i]
            if not masks[ASKED, a] or math.isnan(value):
                continue
            stored = stored_value(kind, value)
            if bets and is_limit[i]:
                n, m2, row = singles[a, i, 0], singles[a, i, 2], row_of_arm(a, n_arms)
                bet_on_arm(wealth, limits, kind, i, row, n, (m2, m2), (stored, stored))
            push_value(singles, a, i, kind, stored)
            sums[a, i] += value
            known = singles[a, i, 0]
            # a sum of equal values over their number need not be that value
            means[a, i] = value if kind.code == EXACT else sums[a, i] / known
            if kind.code == GAUSSIAN and known + FIRST <= singles.shape[2]:
                singles[a, i, FIRST + int(known) - 1] = value
            # the rows of (a, a + 1), (a, a + 2), … follow each other: they are counted, not computed K² times
            row = pair_of(a, a, n_arms)  # before that of a + 1
            for b in range(a + 1, n_arms):
                row += 1
                other = values[b, i]
                if not masks[ASKED, b] or math.isnan(other):
                    continue
                n, mean, m2 = pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2]
                if by_squares:
                    difference = unless_rounded(value - other, mean, abs(value) + abs(other))
                    if kind.code == SYMMETRIC:
                        variance, size = variance_so_far(n, m2, resolution), abs(value) + abs(other)
                        for claim in range(NOT_WORSE, (BEATS if wealth.size > 0 else -1) + 1):
                            line = -reach if claim == NOT_WORSE else tolerance
                            up, down = beyond(difference, line, size), beyond(-difference, line, size)
                            bet_on_sign(wealth, row, i, claim, up, down, variance, resolution, n)
                        push_scaled(pairs, row, i, difference, variance)
                    if weight != 1.0 and (a == leader or b == leader):
                        n, mean, m2 = push_weighted(n, mean, m2, difference, weight)
                    else:
                        n, mean, m2 = push_squares(n, mean, m2, difference)
                    pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2] = n, mean, m2
                    continue
                difference = stored_difference(kind, value, other)
                if bets:
                    unit, back = unit_stake(kind, n, m2, aim), 1.0 - difference
                    bet(wealth, row, i, NOT_WORSE, held, unit, difference, unit, back, n, most_risk)
                    bet(wealth, row, i, BEATS, beaten, unit, difference, unit, back, n, most_risk)
                push_value(pairs, row, i, kind, difference)
