"""Folding: a pass that is complete becomes moments of arms and pairs, and bets on differences."""

import math

from lexbandits.arrays import Vector
from lexbandits.evidence.boundary import bet, stored_boundary, unit_stake
from lexbandits.evidence.interval import kind_at, stored_difference, stored_value
from lexbandits.evidence.kinds import BOUNDED, EXACT, FINITE_VARIANCE, GAUSSIAN, Kind
from lexbandits.evidence.moments import push, push_squares, unless_rounded
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.claims import HALF, arm_boundary
from lexbandits.policies.tol.percent import fold_shares, is_share
from lexbandits.policies.tol.state import (
    ASKED,
    BEATS,
    FIRST,
    HIGH,
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
        unit = HALF * limits[i, REACH] / (kind.high - kind.low) * (n + 4.0) / (spread[claim] + 0.5)
        bet(wealth, row, i, claim, b, unit, z, unit, b, n)  # nothing is bet on the other direction


@apart
def complete_values(state: State, i: int) -> None:
    """Count a pass on an objective whose missing values count as the worst they could have been."""
    kind, values, completed = kind_at(state.kinds, i), state.values, state.completed
    wealth, who, n_arms = state.wealth, state.who, values.shape[0]
    tolerance, reach = state.limits[i, TOLERANCE], state.limits[i, REACH]
    resolution, held, beaten = (
        reach - tolerance,
        stored_boundary(kind, -reach),
        stored_boundary(kind, tolerance),
    )
    for a in range(n_arms):
        if not who[ASKED, a]:
            continue
        low, high = ends_of(kind, values[a, i])
        row, ends = row_of_arm(a, n_arms), (stored_value(kind, low), stored_value(kind, high))
        if row < wealth.shape[1] and state.must[i]:
            n, _, m2, _, _ = completed_moments(completed, row, i, LOW)
            _, _, back_m2, _, _ = completed_moments(completed, row, i, HIGH)
            bet_on_arm(wealth, state.limits, kind, i, row, n, (m2, back_m2), ends)
        push_ends(completed, row, i, ends[0], ends[1])
        for b in range(a + 1, n_arms):
            if not who[ASKED, b]:
                continue
            other_low, other_high = ends_of(kind, values[b, i])
            least = stored_difference(kind, low, other_high)
            largest = stored_difference(kind, high, other_low)
            row = pair_of(a, b, n_arms)
            if wealth.size > 0:  # each direction bets on the least that its differences may be
                _, _, back_m2, _, _ = completed_moments(completed, row, i, HIGH)
                n, _, m2, _, _ = completed_moments(completed, row, i, LOW)
                unit, back_unit = (
                    unit_stake(kind, n, m2, resolution),
                    unit_stake(kind, n, back_m2, resolution),
                )
                bet(wealth, row, i, NOT_WORSE, held, unit, least, back_unit, 1.0 - largest, n)
                bet(wealth, row, i, BEATS, beaten, unit, least, back_unit, 1.0 - largest, n)
            push_ends(completed, row, i, least, largest)


@apart
def fold_values(state: State) -> None:
    """Count the current pass: every member's values and every pair's differences, on all objectives."""
    values, singles, pairs, limits, kinds = (
        state.values,
        state.singles,
        state.pairs,
        state.limits,
        state.kinds,
    )
    wealth, who, sums, means = state.wealth, state.who, state.arms.sums, state.arms.means
    must, (n_arms, m) = state.must, values.shape
    for arm in range(n_arms):
        state.clock[RESULTS] += who[ASKED, arm]
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
        resolution, held, beaten = reach - tolerance, 0.0, 0.0
        if bets:
            held, beaten = stored_boundary(kind, -reach), stored_boundary(kind, tolerance)
        for a in range(n_arms):
            value = values[a, i]
            if not who[ASKED, a] or math.isnan(value):
                continue
            stored = stored_value(kind, value)
            if bets and must[i]:
                n, m2, row = singles[a, i, 0], singles[a, i, 2], row_of_arm(a, n_arms)
                bet_on_arm(wealth, limits, kind, i, row, n, (m2, m2), (stored, stored))
            push_value(singles, a, i, kind, stored)
            sums[a, i] += value
            known = singles[a, i, 0]
            # a sum of equal values over their number need not be that value
            means[a, i] = value if kind.code == EXACT else sums[a, i] / known
            if kind.code == GAUSSIAN and known + FIRST <= singles.shape[2]:
                singles[a, i, FIRST + int(known) - 1] = value
            row = pair_of(a, a, n_arms)  # before that of a + 1
            for b in range(a + 1, n_arms):
                row += 1
                other = values[b, i]
                if not who[ASKED, b] or math.isnan(other):
                    continue
                n, mean, m2 = pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2]
                if by_squares:
                    difference = unless_rounded(value - other, mean, abs(value) + abs(other))
                    n, mean, m2 = push_squares(n, mean, m2, difference)
                    pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2] = n, mean, m2
                    continue
                difference = stored_difference(kind, value, other)
                if bets:
                    unit, back = unit_stake(kind, n, m2, resolution), 1.0 - difference
                    bet(wealth, row, i, NOT_WORSE, held, unit, difference, unit, back, n)
                    bet(wealth, row, i, BEATS, beaten, unit, difference, unit, back, n)
                push_value(pairs, row, i, kind, difference)
