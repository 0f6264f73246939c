"""The rule of LexElim-Tol on a list of items: each arm goes through one drawn order at its own pace.

A place is (arm, position). An arm is folded up to its first place that is not filled yet, and two arms are
compared on the positions that both have folded, so all that was seen is a function of the set of filled
places. Who survives and what proves the answer is as everywhere. docs/proofs.md, section 8.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.boundary import BOUNDARY_PRIOR
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.interval import kind_at, stored_difference, stored_value, told_difference, told_mean
from lexbandits.evidence.kinds import BOUNDED, EXACT, FINITE_VARIANCE, GAUSSIAN, Kind
from lexbandits.evidence.moments import push_squares
from lexbandits.evidence.sub_gaussian import one_sided_level
from lexbandits.evidence.without_replacement import (
    GUARD,
    NOTHING,
    add,
    bet,
    expected,
    list_log_evidence,
    list_radius,
)
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.facts import beats, close, look, look_at_arm, meets, misses, not_worse
from lexbandits.policies.tol.folding import ends_of, push_value
from lexbandits.policies.tol.judgement import FIRST_PROOF, RULE_EVERY, conclude
from lexbandits.policies.tol.proof import plug_in, prove
from lexbandits.policies.tol.state import (
    BEATS,
    BY_PROOF,
    BY_RULE,
    CANDIDATE,
    CONTRADICTION,
    FIRST,
    FLOOR,
    HIGH,
    LEVEL,
    LOW,
    NEXT,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    OFFERED,
    OVER,
    POSITION,
    REACH,
    RESULTS,
    TARGET,
    TARGET_LEVEL,
    THIRD_LEVEL,
    TOLERANCE,
    State,
    pair_of,
)
from lexbandits.policies.tol.survivors import survey

LOG_2 = math.log(2.0)
EMPTY, FILLED, GIVEN_UP = 0, 1, 2  # what a place may be
PASSED, OUT = 2, 3  # claims about one arm and a target, after NOT_WORSE and BEATS in Listed.goals
# Columns of Listed.marks: the least number above the tolerance, the largest below −reach, target and floor;
# the wealth from which evidence is noted, of pairs and of targets, and the log that is enough for all.
ABOVE, BELOW, UNDER, FLAT, NOTED, TARGET_NOTED, ENOUGH = range(7)
# Columns of Listed.later: moments from where bets begin, the sum before, and what is missing there.
COUNT, MEAN, SQUARES, EARLIER, LOST = range(5)


class Listed(NamedTuple):
    """What a policy keeps of a list of N items: K arms, m objectives, P pairs, E stakes."""

    table: Vector  # (K, N, m) values by position, nan where there is none
    status: NDArray[np.int8]  # (K, N) of the places
    until: Counts  # (K,) positions folded
    since: Counts  # (K,) where bets on an arm begin
    etas: Vector  # (E,) stakes,
    weights: Vector  # (E,) what is staked on each,
    risks: Vector  # (E,) and what it may lose at once
    goals: Vector  # (m, 4, 2) N·x of each claim, as a sum of two
    marks: Vector  # (m, 7) see above
    wealth: Vector  # (P, m, E, 4) of a − b not worse, beating, and of b − a
    sums: Vector  # (P, m, 2, 2) of what is stored of a − b and of b − a at their least
    later: Vector  # (P + K, m, 5) see above, of pairs and arms whose values are not bounded
    arm_wealth: Vector  # (K, m, E, 2) against a target: passed, out
    arm_sums: Vector  # (K, m, 2, 2)
    arm_shown: Vector  # (2, m, K) the largest log evidence seen that an arm has passed, or is out
    overturned: NDArray[np.bool_]  # (m, K, K) where arithmetic has refuted what was seen of a and b


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
def conclude_pair(
    sums: Vector,
    goals: Vector,
    marks: Vector,
    overturned: NDArray[np.bool_],
    lows: Vector,
    limits: Vector,
    shown: Vector,
    kind: Kind,
    i: int,
    row: int,
    a: int,
    b: int,
    n_items: float,
    full: bool,
) -> bool:
    """What is now known of a against b on a bounded objective; whether that is news.

    Arithmetic overrides evidence: what no value unseen can make true any more is withdrawn.
    """
    way = 0 if a < b else 1
    total, rest = sums[row, i, way, 0], sums[row, i, way, 1]
    back, back_rest = sums[row, i, 1 - way, 0], sums[row, i, 1 - way, 1]
    slack = GUARD * n_items
    holds_beats = holds_not_worse = False
    for claim in range(2):
        goal, goal_rest = goals[i, claim, 0], goals[i, claim, 1]
        over = (total - goal) + (rest - goal_rest)
        most = over if full else ((n_items - goal) - back) - (goal_rest + back_rest)
        certain = over > slack if claim == BEATS else over >= -slack
        possible = most > slack if claim == BEATS else most >= -slack
        if not possible and shown[claim, i, a, b] > -math.inf:
            shown[claim, i, a, b] = -math.inf
            overturned[i, a, b] = True
        holds = certain or shown[claim, i, a, b] >= limits[i, LEVEL] + LOG_2
        if claim == BEATS:
            holds_beats = holds
        else:
            holds_not_worse = holds
    low = -math.inf
    if full:
        low = told_difference(kind, (total + rest) / n_items)
        low = max(low, marks[i, ABOVE]) if holds_beats else min(low, limits[i, TOLERANCE])
        low = max(low, -limits[i, REACH]) if holds_not_worse else min(low, marks[i, BELOW])
    elif holds_beats:
        low = marks[i, ABOVE]
    elif holds_not_worse:
        low = -limits[i, REACH]
    news = lows[i, a, b] != low
    lows[i, a, b] = low
    return bool(news)


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
def push_bounded(
    table: Vector,
    since: Counts,
    etas: Vector,
    risks: Vector,
    goals: Vector,
    marks: Vector,
    wealth: Vector,
    sums: Vector,
    overturned: NDArray[np.bool_],
    pairs: Vector,
    lows: Vector,
    limits: Vector,
    shown: Vector,
    kind: Kind,
    i: int,
    row: int,
    p: int,
    q: int,
    t: int,
) -> bool:
    """Count position t of the pair p < q on a bounded objective; whether that is news."""
    n_items = float(table.shape[1])
    lead, back = in_two(kind, table[p, t, i], table[q, t, i])
    s0, r0, s1, r1 = sums[row, i, 0, 0], sums[row, i, 0, 1], sums[row, i, 1, 0], sums[row, i, 1, 1]
    news = False
    if t >= max(since[p], since[q]):
        left = n_items - t
        log_enough = marks[i, ENOUGH]
        x0, y0, x1, y1 = goals[i, 0, 0], goals[i, 0, 1], goals[i, 1, 0], goals[i, 1, 1]
        m0, m1 = expected(x0, y0, s0, r0, left), expected(x1, y1, s0, r0, left)
        m2, m3 = expected(x0, y0, s1, r1, left), expected(x1, y1, s1, r1, left)
        # evidence that is enough for everything stays as it is
        g0 = 0.0 if shown[NOT_WORSE, i, p, q] >= log_enough else lead - m0
        g1 = 0.0 if shown[BEATS, i, p, q] >= log_enough else lead - m1
        g2 = 0.0 if shown[NOT_WORSE, i, q, p] >= log_enough else back - m2
        g3 = 0.0 if shown[BEATS, i, q, p] >= log_enough else back - m3
        w0, w1, w2, w3 = bet_on_pair(
            wealth, row, i, etas, risks, n_items / left, (m0, m1, m2, m3), (g0, g1, g2, g3)
        )
        if max(max(w0, w1), max(w2, w3)) >= marks[i, NOTED]:
            news |= note(marks, limits, shown, NOT_WORSE, i, p, q, w0)
            news |= note(marks, limits, shown, BEATS, i, p, q, w1)
            news |= note(marks, limits, shown, NOT_WORSE, i, q, p, w2)
            news |= note(marks, limits, shown, BEATS, i, q, p, w3)
    sums[row, i, 0, 0], sums[row, i, 0, 1] = add(s0, r0, lead)
    sums[row, i, 1, 0], sums[row, i, 1, 1] = add(s1, r1, back)
    full = pairs[row, i, 0] == n_items
    for way in range(2):
        a, b = (p, q) if way == 0 else (q, p)
        news |= conclude_pair(
            sums, goals, marks, overturned, lows, limits, shown, kind, i, row, a, b, n_items, full
        )
    return news


@kernel
def push_later(later: Vector, row: int, i: int, t: int, since: int, value: float) -> None:
    """Count a value, nan if it is missing, among those before or after bets begin."""
    if math.isnan(value):
        if t < since:
            later[row, i, LOST] += 1.0
    elif t < since:
        later[row, i, EARLIER] += value
    else:
        n, mean, squares = later[row, i, COUNT], later[row, i, MEAN], later[row, i, SQUARES]
        n, mean, squares = push_squares(n, mean, squares, value)
        later[row, i, COUNT], later[row, i, MEAN], later[row, i, SQUARES] = n, mean, squares


@kernel
def later_interval(
    listed: Listed, kind: Kind, row: int, i: int, since: int, level: float
) -> tuple[float, float, bool]:
    """Where the mean of a list lies whose values are not bounded, and whether all of them are known."""
    n_items = float(listed.status.shape[1])
    left = n_items - since
    n, mean, lost = listed.later[row, i, COUNT], listed.later[row, i, MEAN], listed.later[row, i, LOST]
    radius = math.inf
    if lost == 0.0 and (kind.code != FINITE_VARIANCE or n >= LARGE_SAMPLE or n == left):
        radius = list_radius(n, left, listed.later[row, i, SQUARES], level)
    earlier = listed.later[row, i, EARLIER]
    full = lost == 0.0 and n == left
    return (earlier + left * (mean - radius)) / n_items, (earlier + left * (mean + radius)) / n_items, full


@kernel
def later_evidence(
    listed: Listed, kind: Kind, row: int, i: int, since: int, sign: float, boundary: float
) -> float:
    """The log evidence that the mean of sign · values that are not bounded exceeds a boundary."""
    n_items = float(listed.status.shape[1])
    left = n_items - since
    n, squares, lost = listed.later[row, i, COUNT], listed.later[row, i, SQUARES], listed.later[row, i, LOST]
    if (
        lost > 0.0
        or n < 2.0
        or n >= left
        or not squares > 0.0
        or (kind.code == FINITE_VARIANCE and n < LARGE_SAMPLE)
    ):
        return -math.inf
    lead = (
        sign * listed.later[row, i, MEAN] - (n_items * boundary - sign * listed.later[row, i, EARLIER]) / left
    )
    if lead <= 0.0:
        return -math.inf
    evidence = list_log_evidence(n, left, lead, squares, 0.0, BOUNDARY_PRIOR)
    return evidence + math.log(2.0 - math.exp(-evidence)) if evidence > 0.0 else -math.inf


@apart
def push_unbounded(
    state: State, listed: Listed, kind: Kind, i: int, row: int, p: int, q: int, t: int
) -> bool:
    """Count position t of the pair p < q where values are not bounded; whether that is news."""
    lows, limits, shown = state.lows, state.limits, state.shown
    since = max(listed.since[p], listed.since[q])
    push_later(listed.later, row, i, t, since, listed.table[p, t, i] - listed.table[q, t, i])
    low, high, full = later_interval(listed, kind, row, i, since, limits[i, LEVEL])
    tolerance, reach = limits[i, TOLERANCE], limits[i, REACH]
    # how far a mean may be off by rounding and be equal to a limit as written
    slack = 1e-12 * (abs(state.arms.means[p, i]) + abs(state.arms.means[q, i]) + reach) if full else 0.0
    news = False
    for way in range(2):
        a, b, end = (p, q, low) if way == 0 else (q, p, -high)
        before_beats, before_not_worse = beats(lows, limits, i, a, b), not_worse(lows, limits, i, a, b)
        if full:
            end = max(end, listed.marks[i, ABOVE]) if end > tolerance + slack else min(end, tolerance)
            end = max(end, -reach) if end >= -reach - slack else end
            false_not_worse = shown[NOT_WORSE, i, a, b] > -math.inf and end < -reach
            false_beats = shown[BEATS, i, a, b] > -math.inf and end <= tolerance
            wrong_beats = before_beats and end <= tolerance
            wrong_not_worse = before_not_worse and end < -reach
            if false_not_worse or false_beats or wrong_beats or wrong_not_worse:
                listed.overturned[i, a, b] = True
            if false_not_worse:
                shown[NOT_WORSE, i, a, b] = -math.inf
            if false_beats:
                shown[BEATS, i, a, b] = -math.inf
            lows[i, a, b] = end
        else:
            lows[i, a, b] = max(lows[i, a, b], end)
            for claim in (NOT_WORSE, BEATS):
                enough, third = limits[i, NOT_WORSE_LEVEL + claim], limits[i, THIRD_LEVEL]
                before = shown[claim, i, a, b]
                if not before < max(enough, third) < math.inf:
                    continue
                boundary = tolerance if claim == BEATS else -reach
                now = later_evidence(listed, kind, row, i, since, 1.0 if way == 0 else -1.0, boundary)
                if now > before and now >= min(enough, third):
                    shown[claim, i, a, b] = now
                    news |= before < enough <= now or before < third <= now
        news |= beats(lows, limits, i, a, b) != before_beats
        news |= not_worse(lows, limits, i, a, b) != before_not_worse
    return bool(news)


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
    for i in range(kinds.shape[0]):
        kind = kind_at(kinds, i)
        for b in range(n_arms):
            if b == arm or not who[OFFERED, b] or until[b] <= t or kind.code == EXACT:
                continue
            p, q = min(arm, b), max(arm, b)
            row = pair_of(p, q, n_arms)
            value, other = table[p, t, i], table[q, t, i]
            if not (math.isnan(value) or math.isnan(other)):
                push_difference(pairs, row, i, stored_difference(kind, value, other))
            if kind.code >= BOUNDED:
                news |= push_bounded(
                    table,
                    since,
                    etas,
                    risks,
                    goals,
                    marks,
                    wealth,
                    sums,
                    overturned,
                    pairs,
                    lows,
                    limits,
                    shown,
                    kind,
                    i,
                    row,
                    p,
                    q,
                    t,
                )
            else:
                news |= push_unbounded(state, listed, kind, i, row, p, q, t)
    return bool(news)


@apart
def conclude_arm(state: State, listed: Listed, kind: Kind, i: int, arm: int) -> None:
    """Which bounds of an arm against a target follow from what was counted of it."""
    bounds, limits, marks, shown = state.bounds, state.limits, listed.marks[i], listed.arm_shown
    n_items = float(listed.status.shape[1])
    slack = GUARD * n_items
    full = state.singles[arm, i, 0] == n_items
    passed = out = False
    for way in range(2):
        total, rest = listed.arm_sums[arm, i, way, 0], listed.arm_sums[arm, i, way, 1]
        back, back_rest = listed.arm_sums[arm, i, 1 - way, 0], listed.arm_sums[arm, i, 1 - way, 1]
        goal, goal_rest = listed.goals[i, PASSED + way, 0], listed.goals[i, PASSED + way, 1]
        over = (total - goal) + (rest - goal_rest)
        most = over if full else ((n_items - goal) - back) - (goal_rest + back_rest)
        if shown[way, i, arm] > -math.inf and not (most >= -slack if way == 0 else most > slack):
            shown[way, i, arm] = -math.inf
            listed.overturned[i, arm, arm] = True
        holds = shown[way, i, arm] >= limits[i, TARGET_LEVEL]
        if way == 0:
            passed = holds or over >= -slack
        else:
            out = holds or over > slack
    low, high = -math.inf, math.inf
    if full:
        mean = told_mean(kind, (listed.arm_sums[arm, i, 0, 0] + listed.arm_sums[arm, i, 0, 1]) / n_items)
        low = max(mean, limits[i, FLOOR]) if passed else min(mean, marks[FLAT])
        high = min(mean, marks[UNDER]) if out else max(mean, limits[i, TARGET])
    else:
        low = limits[i, FLOOR] if passed else low
        high = marks[UNDER] if out else high
    bounds[i, arm, LOW], bounds[i, arm, HIGH] = low, high


@apart
def push_arm(state: State, listed: Listed, kind: Kind, i: int, arm: int, t: int) -> bool:
    """Count position t of an arm on an objective with a target; whether that is news."""
    bounds, limits, marks, shown = state.bounds, state.limits, listed.marks[i], listed.arm_shown
    met, missed = meets(bounds, limits, i, arm), misses(bounds, limits, i, arm)
    value, sums = listed.table[arm, t, i], listed.arm_sums
    if kind.code == EXACT:
        look_at_arm(bounds, limits, state.kinds, state.singles, state.completed, i, arm)
    elif kind.code >= BOUNDED:
        least, largest = ends_of(kind, value)
        left = float(listed.status.shape[1] - t)
        for way in range(2):
            stored = stored_value(kind, least) if way == 0 else 1.0 - stored_value(kind, largest)
            if t >= listed.since[arm] and shown[way, i, arm] < limits[i, TARGET_LEVEL]:
                goal, goal_rest = listed.goals[i, PASSED + way, 0], listed.goals[i, PASSED + way, 1]
                m = expected(goal, goal_rest, sums[arm, i, way, 0], sums[arm, i, way, 1], left)
                growth = listed.status.shape[1] / left
                wealth = listed.arm_wealth[arm, i]
                worth = bet(wealth, listed.etas, listed.risks, growth, way, m, stored)
                if worth >= marks[TARGET_NOTED]:
                    shown[way, i, arm] = max(shown[way, i, arm], math.log(worth) - GUARD)
            sums[arm, i, way, 0], sums[arm, i, way, 1] = add(
                sums[arm, i, way, 0], sums[arm, i, way, 1], stored
            )
        conclude_arm(state, listed, kind, i, arm)
    else:
        row = listed.later.shape[0] - listed.until.size + arm
        push_later(listed.later, row, i, t, listed.since[arm], value)
        level = one_sided_level(limits[i, TARGET_LEVEL])
        low, high, full = later_interval(listed, kind, row, i, listed.since[arm], level)
        target, floor = limits[i, TARGET], limits[i, FLOOR]
        if full:
            slack = 1e-12 * (abs(low) + abs(target))
            listed.overturned[i, arm, arm] |= (missed and low >= target) or (met and low < floor - slack)
            high = min(low, marks[UNDER]) if low < target - slack else max(low, target)
            low = max(low, floor) if low >= floor - slack else low
            bounds[i, arm, LOW], bounds[i, arm, HIGH] = low, high
        else:
            bounds[i, arm, LOW] = max(bounds[i, arm, LOW], low)
            bounds[i, arm, HIGH] = min(bounds[i, arm, HIGH], high)
    return meets(bounds, limits, i, arm) != met or misses(bounds, limits, i, arm) != missed


@apart
def fold_next(state: State, listed: Listed, arm: int) -> bool:
    """Count the arm's next place, which is filled; whether that is news."""
    arms, offered, singles, limits = state.arms, state.who[OFFERED], state.singles, state.limits
    t, news = listed.until[arm], False
    listed.until[arm] = t + 1
    state.clock[RESULTS] += 1
    for i in range(state.order.size):
        kind, value = kind_at(state.kinds, i), listed.table[arm, t, i]
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
                        look(
                            kind,
                            state.lows,
                            limits,
                            state.kinds,
                            singles,
                            state.pairs,
                            state.completed,
                            i,
                            p,
                            q,
                        )
        if not math.isnan(limits[i, TARGET]):
            news |= push_arm(state, listed, kind, i, arm, t)
    if offered[arm]:
        news |= push_pairs(state, listed, arm, t)
    return bool(news)


@kernel
def fold_arm(state: State, listed: Listed, arm: int) -> bool:
    """Count all places of an arm up to the first that is empty; whether that is news."""
    news = False
    while listed.until[arm] < listed.status.shape[1] and listed.status[arm, listed.until[arm]] != EMPTY:
        news |= fold_next(state, listed, arm)
    return bool(news)


@apart
def look_again(state: State, listed: Listed, kind: Kind, i: int, row: int, a: int, b: int) -> None:
    """What is known of a against b on a bounded objective, by what was counted."""
    n_items, sums, goals, marks = listed.table.shape[1], listed.sums, listed.goals, listed.marks
    lows, limits, shown, full = state.lows, state.limits, state.shown, state.pairs[row, i, 0] == n_items
    conclude_pair(
        sums, goals, marks, listed.overturned, lows, limits, shown, kind, i, row, a, b, float(n_items), full
    )


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
                look_again(state, listed, kind, i, row, p, q)
                look_again(state, listed, kind, i, row, q, p)
        elif kind.code != EXACT:
            listed.later[row, i] = 0.0


@apart
def forget_arm(state: State, listed: Listed, arm: int) -> None:
    """An arm and its pairs before its first position."""
    state.clock[RESULTS] -= listed.until[arm]
    listed.until[arm] = 0
    row = listed.later.shape[0] - listed.until.size + arm
    for i in range(state.order.size):
        kind = kind_at(state.kinds, i)
        state.arms.sums[arm, i] = state.arms.means[arm, i] = 0.0
        state.singles[arm, i] = 0.0
        state.bounds[i, arm, LOW], state.bounds[i, arm, HIGH] = -math.inf, math.inf
        listed.overturned[i, arm, arm] = False
        if math.isnan(state.limits[i, TARGET]):
            continue
        listed.arm_shown[0, i, arm] = listed.arm_shown[1, i, arm] = -math.inf
        if kind.code >= BOUNDED:
            for k in range(listed.weights.size):
                listed.arm_wealth[arm, i, k] = listed.weights[k]
            listed.arm_sums[arm, i] = 0.0
            conclude_arm(state, listed, kind, i, arm)
        elif kind.code != EXACT:
            listed.later[row, i] = 0.0
    for b in range(listed.until.size):
        if b != arm:
            forget_pair(state, listed, min(arm, b), max(arm, b))


@apart
def judge(state: State, listed: Listed) -> None:
    """Who survives, who answers, and what the rule and the proof of the answer would know next."""
    clock, offered = state.clock, 0
    for arm in range(listed.until.size):
        offered += state.who[OFFERED, arm]
    survey(state)
    proving = state.manner.proves and clock[RESULTS] >= FIRST_PROOF * offered
    drafts = np.empty((2, listed.until.size), np.bool_)
    candidate = plug_in(state, drafts) if proving and clock[OVER] == 0 else -1
    conclude(state, candidate, drafts)
    clock[NEXT] = clock[RESULTS] + max(offered, clock[RESULTS] // 100)


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
        fold_arm(state, listed, arm)
        judge(state, listed)
    elif fold_arm(state, listed, arm) or clock[RESULTS] >= clock[NEXT]:
        judge(state, listed)


@kernel
def take_all(state: State, listed: Listed, arms: Counts, positions: Counts, rewards: Vector) -> None:
    """Fill places in the order in which they were told, which may say where it ends."""
    for t in range(arms.size):
        take(state, listed, arms[t], positions[t], rewards[t])


@kernel
def fold_some(state: State, listed: Listed, arm: int, most: int) -> int:
    """Count up to `most` places of an arm, not judging yet; how many there were."""
    number = 0
    while (
        number < most
        and listed.until[arm] < listed.status.shape[1]
        and listed.status[arm, listed.until[arm]] != EMPTY
    ):
        fold_next(state, listed, arm)
        number += 1
    return number


@apart
def keep_certain(state: State, listed: Listed, only: NDArray[np.bool_]) -> None:
    """Forget what was seen by evidence on these objectives; what arithmetic says stays."""
    n_arms = listed.until.size
    for i in range(only.size):
        kind = kind_at(state.kinds, i)
        if not only[i] or kind.code == EXACT:
            continue
        for a in range(n_arms):
            for b in range(n_arms):
                if a == b:
                    continue
                row, full = pair_of(min(a, b), max(a, b), n_arms), False
                for claim in (NOT_WORSE, BEATS):
                    state.shown[claim, i, a, b] = -math.inf
                full = state.pairs[row, i, 0] == listed.status.shape[1]
                if kind.code < EXACT:
                    state.lows[i, a, b] = state.lows[i, a, b] if full else -math.inf
                elif state.who[OFFERED, a] and state.who[OFFERED, b]:
                    look_again(state, listed, kind, i, row, a, b)
            if math.isnan(state.limits[i, TARGET]):
                continue
            listed.arm_shown[0, i, a] = listed.arm_shown[1, i, a] = -math.inf
            if kind.code >= BOUNDED:
                conclude_arm(state, listed, kind, i, a)
            elif state.singles[a, i, 0] < listed.status.shape[1]:
                state.bounds[i, a, LOW], state.bounds[i, a, HIGH] = -math.inf, math.inf


@apart
def still_proven(state: State, x: int) -> bool:
    """Whether what is left proves x, or leaves it when all is settled."""
    state.clock[OVER] = state.clock[CONTRADICTION] = 0
    survey(state)
    proven = state.clock[CONTRADICTION] == 0 and state.arms.active[x]
    if state.clock[OVER] == 0:
        proven = state.manner.proves and prove(state, x, np.empty((2, state.who.shape[1]), np.bool_))
    return bool(proven)


@apart
def stored_leads(listed: Listed, kind: Kind, i: int, a: int, b: int, n: int) -> Vector:
    """(n,) what is stored of a − b at the least that it may be; of a alone if a = b."""
    found = np.empty(n)
    for t in range(n):
        if a == b:
            found[t] = stored_value(kind, ends_of(kind, listed.table[a, t, i])[0])
        else:
            found[t] = in_two(kind, listed.table[a, t, i], listed.table[b, t, i])[0]
    return found


@apart
def stored_backs(listed: Listed, kind: Kind, i: int, a: int, n: int) -> Vector:
    """(n,) one minus what is stored of an arm's values at the most that they may be."""
    found = np.empty(n)
    for t in range(n):
        found[t] = 1.0 - stored_value(kind, ends_of(kind, listed.table[a, t, i])[1])
    return found


# --- asking


@kernel
def is_open(state: State, ahead: Counts, row: int, arm: int) -> bool:
    """Whether the rule or the proof wants to know more of an arm, of all that are as far or further."""
    who, clock, must = state.who, state.clock, state.must
    if not who[row, arm]:
        return False
    x = clock[CANDIDATE]
    if row == BY_PROOF:
        if arm != x:
            return bool(ahead[arm] <= ahead[x])
        alone = True
        for y in range(ahead.size):
            if y != x and who[row, y]:
                alone = False
                if ahead[x] <= ahead[y]:
                    return True
        for i in range(must.size):
            if must[i] and not meets(state.bounds, state.limits, i, x):
                return True
        return alone
    i = state.order[clock[POSITION]]
    if must[i]:
        return True
    if state.kinds[i, 0] == EXACT:
        return bool(state.singles[arm, i, 0] == 0.0)
    for b in range(ahead.size):
        if (
            b != arm
            and who[row, b]
            and ahead[arm] <= ahead[b]
            and not close(state.lows, state.limits, i, arm, b)
        ):
            return True
    return False


@kernel
def next_arm(state: State, listed: Listed, ahead: Counts, rank: int) -> int:
    """Of the arms that somebody wants the one that is furthest behind; −1 if nobody is left."""
    n_items = listed.status.shape[1]
    proves = state.clock[CANDIDATE] >= 0 and rank % RULE_EVERY != 0
    for turn in range(2):
        row = BY_PROOF if proves == (turn == 0) else BY_RULE
        if row == BY_PROOF and state.clock[CANDIDATE] < 0:
            continue
        chosen = -1
        for arm in range(ahead.size):
            nearer = ahead[arm] < n_items and (chosen < 0 or ahead[arm] < ahead[chosen])
            if nearer and is_open(state, ahead, row, arm):
                chosen = arm
        if chosen >= 0:
            return chosen
    return -1


@kernel
def next_free(listed: Listed, arm: int, position: int, positions: Counts, first: int, last: int) -> int:
    """The arm's first place from `position` on that is empty and not in positions[first:last], ascending."""
    n_items = listed.status.shape[1]
    while position < n_items:
        while first < last and positions[first] < position:
            first += 1
        taken = first < last and positions[first] == position
        if not taken and listed.status[arm, position] == EMPTY:
            return position
        position += 1
    return int(n_items)


@apart
def ask(state: State, listed: Listed, starts: Counts, positions: Counts, places: Counts) -> int:
    """Fill places (n, 2) with what to measure next, each in flight for those after it; how many there are.

    positions[starts[arm]:starts[arm + 1]], ascending, are in flight.
    """
    n_arms = listed.until.size
    ahead = np.empty(n_arms, np.int64)
    rank = offered = 0
    for arm in range(n_arms):
        ahead[arm] = next_free(listed, arm, listed.until[arm], positions, starts[arm], starts[arm + 1])
        if state.who[OFFERED, arm]:
            rank += ahead[arm]
            offered += 1
    for number in range(places.shape[0]):
        arm = next_arm(state, listed, ahead, rank // offered)
        if arm < 0:
            return number
        places[number, 0], places[number, 1] = arm, ahead[arm]
        ahead[arm] = next_free(listed, arm, ahead[arm] + 1, positions, starts[arm], starts[arm + 1])
        rank += 1
    return int(places.shape[0])


@apart
def play(state: State, listed: Listed, truth: Vector, most: int) -> int:
    """Measure (N, K, m), one place after the other, until the end or for `most` results; how many it took."""
    nobody, nothing = np.zeros(listed.until.size + 1, np.int64), np.empty(0, np.int64)
    place = np.empty((1, 2), np.int64)
    results = 0
    while state.clock[OVER] == 0 and results < most and ask(state, listed, nobody, nothing, place) == 1:
        arm, position = place[0, 0], place[0, 1]
        take(state, listed, arm, position, truth[position, arm])
        results += 1
    return results
