"""Folding places of a list: values become moments, sums and bets of their arm and of its pairs."""

import math

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.interval import kind_at, stored_difference, stored_value
from lexbandits.evidence.kinds import BOUNDED, EXACT, GAUSSIAN, Kind
from lexbandits.evidence.moments import push_squares
from lexbandits.evidence.sub_gaussian import one_sided_level
from lexbandits.evidence.without_replacement import GUARD, NOTHING, add, bet, expected
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.claims import is_in, is_under
from lexbandits.policies.tol.facts import look, look_at_arm, violates
from lexbandits.policies.tol.folding import ends_of, push_value
from lexbandits.policies.tol.list_judging import conclude_arm, conclude_pair, judge, look_again
from lexbandits.policies.tol.list_moments import later_evidence, later_interval, push_later, push_unbounded
from lexbandits.policies.tol.listed import (
    EMPTY,
    ENOUGH,
    FILLED,
    GIVEN_UP,
    NOTED,
    PASSED,
    TARGET_ENOUGH,
    TARGET_NOTED,
    Listed,
)
from lexbandits.policies.tol.state import (
    BEATS,
    BEATS_LEVEL,
    FIRST,
    FLOOR,
    HIGH,
    LOW,
    MEETS,
    MEETS_LEVEL,
    MISSES,
    NEXT,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    OFFERED,
    OVER,
    RESULTS,
    TARGET,
    TARGET_LEVEL,
    THIRD_LEVEL,
    State,
    pair_of,
    row_of_arm,
)


@kernel
def in_two(kind: Kind, value: float, other: float) -> tuple[float, float]:
    """What is stored of value − other and of other − value, each at the least that it may be."""
    low, high = ends_of(kind, value)
    other_low, other_high = ends_of(kind, other)
    return stored_difference(kind, low, other_high), stored_difference(kind, other_low, high)


@kernel
def bet_on_pair(
    wealth: Vector,
    row: int,
    i: int,
    etas: Vector,
    risks: Vector,
    growth: float,
    means: tuple[float, float, float, float],
    gains: tuple[float, float, float, float],
) -> tuple[float, float, float, float]:
    """One bet in each of the four tests of a pair; what all stakes of each are worth then.

    Side by side, as that is what makes it fast; a gain of 0 leaves a test as it is.
    """
    cap0 = 1.0 / means[0] if means[0] > 0.0 else math.inf
    cap1 = 1.0 / means[1] if means[1] > 0.0 else math.inf
    cap2 = 1.0 / means[2] if means[2] > 0.0 else math.inf
    cap3 = 1.0 / means[3] if means[3] > 0.0 else math.inf
    g0, g1, g2, g3 = gains
    t0 = t1 = t2 = t3 = 0.0
    for k in range(etas.size):
        stake, risk = etas[k] * growth, risks[k]
        w0 = wealth[row, i, k, 0] * (1.0 + min(stake, risk * cap0) * g0)
        w1 = wealth[row, i, k, 1] * (1.0 + min(stake, risk * cap1) * g1)
        w2 = wealth[row, i, k, 2] * (1.0 + min(stake, risk * cap2) * g2)
        w3 = wealth[row, i, k, 3] * (1.0 + min(stake, risk * cap3) * g3)
        w0 = w0 if w0 >= NOTHING else 0.0
        w1 = w1 if w1 >= NOTHING else 0.0
        w2 = w2 if w2 >= NOTHING else 0.0
        w3 = w3 if w3 >= NOTHING else 0.0
        wealth[row, i, k, 0], wealth[row, i, k, 1] = w0, w1
        wealth[row, i, k, 2], wealth[row, i, k, 3] = w2, w3
        t0 += w0
        t1 += w1
        t2 += w2
        t3 += w3
    return t0, t1, t2, t3


@kernel
def note(
    marks: Vector, limits: Vector, shown: Vector, claim: int, i: int, a: int, b: int, worth: float
) -> bool:
    """Take note of what the stakes on a claim are worth; whether it now holds under the declared rules."""
    if not worth >= marks[i, NOTED]:
        return False
    before = shown[claim, i, a, b]
    now = max(before, math.log(worth) - GUARD)
    shown[claim, i, a, b] = now
    enough = limits[i, NOT_WORSE_LEVEL + claim]
    third = limits[i, THIRD_LEVEL]
    return bool(before < enough <= now or before < third <= now)


@kernel
def push_difference(pairs: Vector, row: int, i: int, difference: float) -> None:
    """Count a stored difference among those that were measured."""
    n, mean, squares = pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2]
    n, mean, squares = push_squares(n, mean, squares, difference)
    total = pairs[row, i, 3] + difference
    # a mean by its sum: equal arms are equal to the bit
    pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2], pairs[row, i, 3] = n, total / n, squares, total


@apart
def push_pairs(state: State, listed: Listed, arm: int, t: int) -> bool:
    """Count position t of an arm and all that have it too, where there is noise; whether that is news."""
    table, since, etas, risks, goals = listed.table, listed.since, listed.etas, listed.risks, listed.goals
    marks, wealth, sums, overturned = listed.marks, listed.wealth, listed.sums, listed.overturned
    pairs, lows, limits, shown, kinds = state.pairs, state.lows, state.limits, state.shown, state.kinds
    who, until, n_arms, news = state.who, listed.until, listed.until.size, False
    n_items, left = float(table.shape[1]), float(table.shape[1] - t)
    for i in range(kinds.shape[0]):
        kind, enough = kind_at(kinds, i), marks[i, ENOUGH]
        x0, y0, x1, y1 = goals[i, 0, 0], goals[i, 0, 1], goals[i, 1, 0], goals[i, 1, 1]
        for b in range(n_arms):
            if b == arm or not who[OFFERED, b] or until[b] <= t or kind.code == EXACT:
                continue
            p, q = min(arm, b), max(arm, b)
            row = pair_of(p, q, n_arms)
            value, other = table[p, t, i], table[q, t, i]
            if not (math.isnan(value) or math.isnan(other)):
                push_difference(pairs, row, i, stored_difference(kind, value, other))
            if kind.code < BOUNDED:
                news |= push_unbounded(state, listed, kind, i, row, p, q, t)
                continue
            lead, back = in_two(kind, value, other)
            s0, r0, s1, r1 = sums[row, i, 0, 0], sums[row, i, 0, 1], sums[row, i, 1, 0], sums[row, i, 1, 1]
            if t >= max(since[p], since[q]):
                m0, m1 = expected(x0, y0, s0, r0, left), expected(x1, y1, s0, r0, left)
                m2, m3 = expected(x0, y0, s1, r1, left), expected(x1, y1, s1, r1, left)
                # evidence that is enough for everything stays as it is
                g0 = 0.0 if shown[NOT_WORSE, i, p, q] >= enough else lead - m0
                g1 = 0.0 if shown[BEATS, i, p, q] >= enough else lead - m1
                g2 = 0.0 if shown[NOT_WORSE, i, q, p] >= enough else back - m2
                g3 = 0.0 if shown[BEATS, i, q, p] >= enough else back - m3
                means, gains = (m0, m1, m2, m3), (g0, g1, g2, g3)
                w0, w1, w2, w3 = bet_on_pair(wealth, row, i, etas, risks, n_items / left, means, gains)
                if max(max(w0, w1), max(w2, w3)) >= marks[i, NOTED]:
                    news |= note(marks, limits, shown, NOT_WORSE, i, p, q, w0)
                    news |= note(marks, limits, shown, BEATS, i, p, q, w1)
                    news |= note(marks, limits, shown, NOT_WORSE, i, q, p, w2)
                    news |= note(marks, limits, shown, BEATS, i, q, p, w3)
            sums[row, i, 0, 0], sums[row, i, 0, 1] = add(s0, r0, lead)
            sums[row, i, 1, 0], sums[row, i, 1, 1] = add(s1, r1, back)
            full = pairs[row, i, 0] == n_items
            news |= conclude_pair(
                sums, goals, marks, overturned, lows, limits, shown, kind, i, row, p, q, n_items, full
            )
    return bool(news)


@apart
def push_arm(state: State, listed: Listed, kind: Kind, i: int, arm: int, t: int) -> bool:
    """Count position t of an arm on a limit; whether that is news."""
    bounds, limits, marks, shown = state.bounds, state.limits, listed.marks[i], state.arm_shown
    met, missed = is_in(bounds, limits, shown, i, arm), is_under(bounds, limits, shown, i, arm)
    violated, value, sums = violates(bounds, limits, i, arm), listed.table[arm, t, i], listed.arm_sums
    if kind.code == EXACT:
        look_at_arm(bounds, limits, state.kinds, state.singles, state.completed, i, arm)
    elif kind.code >= BOUNDED:
        least, largest = ends_of(kind, value)
        stored = stored_value(kind, least), 1.0 - stored_value(kind, largest)
        left = float(listed.status.shape[1] - t)
        for claim in range(3):
            way = min(claim, 1)
            if t >= listed.since[arm] and shown[claim, i, arm] < marks[TARGET_ENOUGH]:
                goal, goal_rest = listed.goals[i, PASSED + claim, 0], listed.goals[i, PASSED + claim, 1]
                m = expected(goal, goal_rest, sums[arm, i, way, 0], sums[arm, i, way, 1], left)
                growth = listed.status.shape[1] / left
                wealth = listed.arm_wealth[arm, i]
                worth = bet(wealth, listed.etas, listed.risks, growth, claim, m, stored[way])
                if worth >= marks[TARGET_NOTED]:
                    shown[claim, i, arm] = max(shown[claim, i, arm], math.log(worth) - GUARD)
        for way in range(2):
            sums[arm, i, way, 0], sums[arm, i, way, 1] = add(
                sums[arm, i, way, 0], sums[arm, i, way, 1], stored[way]
            )
        conclude_arm(state, listed, kind, i, arm)
    else:
        push_arm_later(state, listed, kind, i, arm, t)
    same = is_in(bounds, limits, shown, i, arm) == met and is_under(bounds, limits, shown, i, arm) == missed
    return not same or violates(bounds, limits, i, arm) != violated


@apart
def push_arm_later(state: State, listed: Listed, kind: Kind, i: int, arm: int, t: int) -> None:
    """The same of values that are not bounded. Once all are known the floor decides."""
    bounds, limits, shown, since = state.bounds, state.limits, state.arm_shown, listed.since[arm]
    row, target, floor = row_of_arm(arm, listed.until.size), limits[i, TARGET], limits[i, FLOOR]
    push_later(listed.later, row, i, t, since, listed.table[arm, t, i])
    level = one_sided_level(limits[i, TARGET_LEVEL])
    low, high, full = later_interval(listed, kind, row, i, since, level)
    if full:
        slack = 1e-12 * (abs(low) + abs(target))
        seen = is_under(bounds, limits, shown, i, arm), is_in(bounds, limits, shown, i, arm)
        listed.overturned[i, arm, arm] |= (seen[0] and low >= target) or (seen[1] and low < floor - slack)
        passed = low >= floor - slack
        high = max(low, target) if passed else low
        low = max(low, floor) if passed else low
        bounds[i, arm, LOW], bounds[i, arm, HIGH] = low, high
        shown[MISSES if passed else MEETS, i, arm] = -math.inf
        return
    bounds[i, arm, LOW] = max(bounds[i, arm, LOW], low)
    bounds[i, arm, HIGH] = min(bounds[i, arm, HIGH], high)
    for claim in range(2):
        enough = limits[i, MEETS_LEVEL if claim == MEETS else BEATS_LEVEL]
        if shown[claim, i, arm] < enough < math.inf:
            sign, line = (1.0, floor) if claim == MEETS else (-1.0, -target)
            found = later_evidence(listed, kind, row, i, since, sign, line)
            shown[claim, i, arm] = max(shown[claim, i, arm], found)


@apart
def fold_next(state: State, listed: Listed, arm: int) -> bool:
    """Count the arm's next place, which is filled; whether that is news."""
    arms, offered, singles, limits = state.arms, state.who[OFFERED], state.singles, state.limits
    lows, kinds, pairs, completed = state.lows, state.kinds, state.pairs, state.completed
    t, news = listed.until[arm], False
    listed.until[arm] = t + 1
    state.clock[RESULTS] += 1
    for i in range(state.order.size):
        kind, value = kind_at(kinds, i), listed.table[arm, t, i]
        if not math.isnan(value):
            push_value(singles, arm, i, kind, stored_value(kind, value))
            arms.sums[arm, i] += value
            known = singles[arm, i, 0]
            arms.means[arm, i] = value if kind.code == EXACT else arms.sums[arm, i] / known
            if kind.code == GAUSSIAN and known + FIRST <= singles.shape[2]:
                singles[arm, i, FIRST + int(known) - 1] = value
            if kind.code == EXACT and known == 1.0:
                news = True
                for b in range(offered.size):
                    if b != arm:
                        p, q = min(arm, b), max(arm, b)
                        look(kind, lows, limits, kinds, singles, pairs, completed, i, p, q)
        if not math.isnan(limits[i, TARGET]):
            news |= push_arm(state, listed, kind, i, arm, t)
    if offered[arm]:
        news |= push_pairs(state, listed, arm, t)
    return bool(news)


@kernel
def fold_some(state: State, listed: Listed, arm: int, most: int) -> tuple[int, bool]:
    """Count up to `most` places of an arm, until one is empty; how many, and whether that is news."""
    number, news = 0, False
    while (
        number < most
        and listed.until[arm] < listed.status.shape[1]
        and listed.status[arm, listed.until[arm]] != EMPTY
    ):
        news |= fold_next(state, listed, arm)
        number += 1
    return number, bool(news)


@apart
def forget_pair(state: State, listed: Listed, p: int, q: int) -> None:
    """The pair p < q before its first position: some facts need no data."""
    row = pair_of(p, q, listed.until.size)
    for i in range(state.order.size):
        kind = kind_at(state.kinds, i)
        state.lows[i, p, q] = state.lows[i, q, p] = -math.inf
        listed.overturned[i, p, q] = listed.overturned[i, q, p] = False
        for claim in (NOT_WORSE, BEATS):
            state.shown[claim, i, p, q] = state.shown[claim, i, q, p] = -math.inf
        state.pairs[row, i] = 0.0
        if kind.code >= BOUNDED:
            for k in range(listed.weights.size):
                listed.wealth[row, i, k] = listed.weights[k]
            listed.sums[row, i] = 0.0
            if state.who[OFFERED, p] and state.who[OFFERED, q]:
                look_again(state, listed, kind, i, p, q)
        elif kind.code != EXACT:
            listed.later[row, i] = 0.0


@apart
def forget_arm(state: State, listed: Listed, arm: int) -> None:
    """An arm and its pairs before its first position."""
    state.clock[RESULTS] -= listed.until[arm]
    listed.until[arm] = 0
    for i in range(state.order.size):
        kind = kind_at(state.kinds, i)
        state.arms.sums[arm, i] = state.arms.means[arm, i] = 0.0
        state.singles[arm, i] = 0.0
        state.bounds[i, arm, LOW], state.bounds[i, arm, HIGH] = -math.inf, math.inf
        listed.overturned[i, arm, arm] = False
        if math.isnan(state.limits[i, TARGET]):
            continue
        state.arm_shown[:, i, arm] = -math.inf
        if kind.code >= BOUNDED:
            for k in range(listed.weights.size):
                listed.arm_wealth[arm, i, k] = listed.weights[k]
            listed.arm_sums[arm, i] = 0.0
            conclude_arm(state, listed, kind, i, arm)
        elif kind.code != EXACT:
            listed.later[row_of_arm(arm, listed.until.size), i] = 0.0
    for b in range(listed.until.size):
        if b != arm:
            forget_pair(state, listed, min(arm, b), max(arm, b))


@kernel
def take(state: State, listed: Listed, arm: int, position: int, reward: Vector) -> None:
    """Fill a place, or give it up if nothing was measured; after the end it is only kept."""
    clock, given_up = state.clock, True
    late = listed.status[arm, position] != EMPTY
    for i in range(reward.size):
        given_up = given_up and math.isnan(reward[i])
        # what comes late may come because of its value, which bounded values alone do not mind
        lost = late and math.isnan(listed.table[arm, position, i]) and state.kinds[i, 0] < EXACT
        listed.table[arm, position, i] = math.nan if lost else reward[i]
    listed.status[arm, position] = GIVEN_UP if given_up else FILLED
    if clock[OVER] == 1 or position > listed.until[arm]:
        return
    if position < listed.until[arm]:
        forget_arm(state, listed, arm)
        fold_some(state, listed, arm, listed.status.shape[1])
        judge(state, listed)
    elif fold_some(state, listed, arm, listed.status.shape[1])[1] or clock[RESULTS] >= clock[NEXT]:
        judge(state, listed)


@kernel
def take_all(state: State, listed: Listed, arms: Counts, positions: Counts, rewards: Vector) -> None:
    """Fill places in the order in which they were told, which may say where it ends."""
    for t in range(arms.size):
        take(state, listed, arms[t], positions[t], rewards[t])


@apart
def stored_prefix(listed: Listed, kind: Kind, i: int, a: int, b: int, n: int) -> tuple[Vector, Vector]:
    """(n,) what is stored of a − b at the least that it may be, and of b − a; if a = b of a, and of 1 − a."""
    leads, backs = np.empty(n), np.empty(n)
    for t in range(n):
        if a == b:
            least, largest = ends_of(kind, listed.table[a, t, i])
            leads[t], backs[t] = stored_value(kind, least), 1.0 - stored_value(kind, largest)
        else:
            leads[t], backs[t] = in_two(kind, listed.table[a, t, i], listed.table[b, t, i])
    return leads, backs
