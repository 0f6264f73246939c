"""Folding places of a list: values become moments, sums and bets of their arm and of its pairs."""

import math

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.evidence.finite_population import GUARD, NOTHING, add, bet, expected
from lexbandits.evidence.interval import kind_at, stored_difference, stored_value
from lexbandits.evidence.kinds import BOUNDED, EXACT, GAUSSIAN, Kind
from lexbandits.evidence.moments import push_squares
from lexbandits.evidence.sub_gaussian import one_sided_level
from lexbandits.policies.tolerance.anytime import look, look_at_arm, violates
from lexbandits.policies.tolerance.finite.finite_evidence import (
    conclude_arm,
    conclude_pair,
    evaluate,
    look_again,
)
from lexbandits.policies.tolerance.finite.finite_moments import (
    later_evidence,
    later_interval,
    push_later,
    push_unbounded,
)
from lexbandits.policies.tolerance.finite.finite_state import (
    EMPTY,
    ENOUGH,
    FILLED,
    GIVEN_UP,
    NOTED,
    PASSED,
    TARGET_ENOUGH,
    TARGET_NOTED,
    FinitePopulation,
)
from lexbandits.policies.tolerance.folding import ends_of, push_value
from lexbandits.policies.tolerance.preregistered import shown_to_meet, shown_to_miss
from lexbandits.policies.tolerance.state import (
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
    marks: Vector, limits: Vector, log_evidence: Vector, claim: int, i: int, a: int, b: int, worth: float
) -> bool:
    """Take note of what the stakes on a claim are worth; whether a pre-registered test now shows it."""
    if not worth >= marks[i, NOTED]:
        return False
    before = log_evidence[claim, i, a, b]
    now = max(before, math.log(worth) - GUARD)
    log_evidence[claim, i, a, b] = now
    return bool(before < limits[i, NOT_WORSE_LEVEL + claim] <= now)


@kernel
def push_difference(pairs: Vector, row: int, i: int, difference: float) -> None:
    """Count a stored difference among those that were measured."""
    n, mean, squares = pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2]
    n, mean, squares = push_squares(n, mean, squares, difference)
    total = pairs[row, i, 3] + difference
    # a mean by its sum: equal arms are equal to the bit
    pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2], pairs[row, i, 3] = n, total / n, squares, total


@kernel(inline="never")
def push_pairs(state: State, population: FinitePopulation, arm: int, t: int) -> bool:
    """Count position t of an arm and all that have it too, where there is noise; whether that is news."""
    table, since, etas = population.table, population.since, population.etas
    risks, goals = population.risks, population.goals
    marks, wealth = population.marks, population.wealth
    sums, overturned = population.sums, population.overturned
    pairs, lcb, limits = state.pairs, state.lcb, state.limits
    log_evidence, kinds = state.log_evidence, state.kinds
    masks, until, n_arms, news = state.masks, population.until, population.until.size, False
    n_items, left = float(table.shape[1]), float(table.shape[1] - t)
    for i in range(kinds.shape[0]):
        kind, enough = kind_at(kinds, i), marks[i, ENOUGH]
        x0, y0, x1, y1 = goals[i, 0, 0], goals[i, 0, 1], goals[i, 1, 0], goals[i, 1, 1]
        for b in range(n_arms):
            if b == arm or not masks[OFFERED, b] or until[b] <= t or kind.code == EXACT:
                continue
            p, q = min(arm, b), max(arm, b)
            row = pair_of(p, q, n_arms)
            value, other = table[p, t, i], table[q, t, i]
            if not (math.isnan(value) or math.isnan(other)):
                push_difference(pairs, row, i, stored_difference(kind, value, other))
            if kind.code < BOUNDED:
                news |= push_unbounded(state, population, kind, i, row, p, q, t)
                continue
            lead, back = in_two(kind, value, other)
            s0, r0, s1, r1 = sums[row, i, 0, 0], sums[row, i, 0, 1], sums[row, i, 1, 0], sums[row, i, 1, 1]
            if t >= max(since[p], since[q]):
                m0, m1 = expected(x0, y0, s0, r0, left), expected(x1, y1, s0, r0, left)
                m2, m3 = expected(x0, y0, s1, r1, left), expected(x1, y1, s1, r1, left)
                # evidence that is enough for everything stays as it is
                g0 = 0.0 if log_evidence[NOT_WORSE, i, p, q] >= enough else lead - m0
                g1 = 0.0 if log_evidence[BEATS, i, p, q] >= enough else lead - m1
                g2 = 0.0 if log_evidence[NOT_WORSE, i, q, p] >= enough else back - m2
                g3 = 0.0 if log_evidence[BEATS, i, q, p] >= enough else back - m3
                means, gains = (m0, m1, m2, m3), (g0, g1, g2, g3)
                w0, w1, w2, w3 = bet_on_pair(wealth, row, i, etas, risks, n_items / left, means, gains)
                if max(max(w0, w1), max(w2, w3)) >= marks[i, NOTED]:
                    news |= note(marks, limits, log_evidence, NOT_WORSE, i, p, q, w0)
                    news |= note(marks, limits, log_evidence, BEATS, i, p, q, w1)
                    news |= note(marks, limits, log_evidence, NOT_WORSE, i, q, p, w2)
                    news |= note(marks, limits, log_evidence, BEATS, i, q, p, w3)
            sums[row, i, 0, 0], sums[row, i, 0, 1] = add(s0, r0, lead)
            sums[row, i, 1, 0], sums[row, i, 1, 1] = add(s1, r1, back)
            full = pairs[row, i, 0] == n_items
            news |= conclude_pair(
                sums, goals, marks, overturned, lcb, limits, log_evidence, kind, i, row, p, q, n_items, full
            )
    return bool(news)


@kernel(inline="never")
def push_arm(state: State, population: FinitePopulation, kind: Kind, i: int, arm: int, t: int) -> bool:
    """Count position t of an arm on a limit; whether that is news."""
    bounds, limits = state.bounds, state.limits
    marks, log_evidence = population.marks[i], state.arm_log_evidence
    met = shown_to_meet(bounds, limits, log_evidence, i, arm)
    missed = shown_to_miss(bounds, limits, log_evidence, i, arm)
    violated, value, sums = violates(bounds, limits, i, arm), population.table[arm, t, i], population.arm_sums
    if kind.code == EXACT:
        look_at_arm(bounds, limits, state.kinds, state.singles, state.completed, i, arm)
    elif kind.code >= BOUNDED:
        least, largest = ends_of(kind, value)
        stored = stored_value(kind, least), 1.0 - stored_value(kind, largest)
        left = float(population.status.shape[1] - t)
        for claim in range(3):
            way = min(claim, 1)
            if t >= population.since[arm] and log_evidence[claim, i, arm] < marks[TARGET_ENOUGH]:
                goal = population.goals[i, PASSED + claim, 0]
                goal_rest = population.goals[i, PASSED + claim, 1]
                m = expected(goal, goal_rest, sums[arm, i, way, 0], sums[arm, i, way, 1], left)
                growth = population.status.shape[1] / left
                wealth = population.arm_wealth[arm, i]
                worth = bet(wealth, population.etas, population.risks, growth, claim, m, stored[way])
                if worth >= marks[TARGET_NOTED]:
                    log_evidence[claim, i, arm] = max(log_evidence[claim, i, arm], math.log(worth) - GUARD)
        for way in range(2):
            sums[arm, i, way, 0], sums[arm, i, way, 1] = add(
                sums[arm, i, way, 0], sums[arm, i, way, 1], stored[way]
            )
        conclude_arm(state, population, kind, i, arm)
    else:
        push_arm_later(state, population, kind, i, arm, t)
    same = (
        shown_to_meet(bounds, limits, log_evidence, i, arm) == met
        and shown_to_miss(bounds, limits, log_evidence, i, arm) == missed
    )
    return not same or violates(bounds, limits, i, arm) != violated


@kernel(inline="never")
def push_arm_later(state: State, population: FinitePopulation, kind: Kind, i: int, arm: int, t: int) -> None:
    """The same of values that are not bounded. Once all are known the floor decides."""
    bounds, limits = state.bounds, state.limits
    log_evidence, since = state.arm_log_evidence, population.since[arm]
    row, target, floor = row_of_arm(arm, population.until.size), limits[i, TARGET], limits[i, FLOOR]
    push_later(population.later, row, i, t, since, population.table[arm, t, i])
    level = one_sided_level(limits[i, TARGET_LEVEL])
    low, high, full = later_interval(population, kind, row, i, since, level)
    if full:
        slack = 1e-12 * (abs(low) + abs(target))
        seen = (
            shown_to_miss(bounds, limits, log_evidence, i, arm),
            shown_to_meet(bounds, limits, log_evidence, i, arm),
        )
        population.overturned[i, arm, arm] |= (seen[0] and low >= target) or (seen[1] and low < floor - slack)
        passed = low >= floor - slack
        high = max(low, target) if passed else low
        low = max(low, floor) if passed else low
        bounds[i, arm, LOW], bounds[i, arm, HIGH] = low, high
        log_evidence[MISSES if passed else MEETS, i, arm] = -math.inf
        return
    bounds[i, arm, LOW] = max(bounds[i, arm, LOW], low)
    bounds[i, arm, HIGH] = min(bounds[i, arm, HIGH], high)
    for claim in range(2):
        enough = limits[i, MEETS_LEVEL if claim == MEETS else BEATS_LEVEL]
        if log_evidence[claim, i, arm] < enough < math.inf:
            sign, line = (1.0, floor) if claim == MEETS else (-1.0, -target)
            found = later_evidence(population, kind, row, i, since, sign, line)
            log_evidence[claim, i, arm] = max(log_evidence[claim, i, arm], found)


@kernel(inline="never")
def fold_next(state: State, population: FinitePopulation, arm: int) -> bool:
    """Count the arm's next place, which is filled; whether that is news."""
    arms, offered, singles, limits = state.arms, state.masks[OFFERED], state.singles, state.limits
    lcb, kinds, pairs, completed = state.lcb, state.kinds, state.pairs, state.completed
    t, news = population.until[arm], False
    population.until[arm] = t + 1
    state.clock[RESULTS] += 1
    for i in range(state.order.size):
        kind, value = kind_at(kinds, i), population.table[arm, t, i]
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
                        look(kind, lcb, limits, kinds, singles, pairs, completed, i, p, q)
        if not math.isnan(limits[i, TARGET]):
            news |= push_arm(state, population, kind, i, arm, t)
    if offered[arm]:
        news |= push_pairs(state, population, arm, t)
    return bool(news)


@kernel
def fold_some(state: State, population: FinitePopulation, arm: int, most: int) -> tuple[int, bool]:
    """Count up to `most` places of an arm, until one is empty; how many, and whether that is news."""
    number, news = 0, False
    while (
        number < most
        and population.until[arm] < population.status.shape[1]
        and population.status[arm, population.until[arm]] != EMPTY
    ):
        news |= fold_next(state, population, arm)
        number += 1
    return number, bool(news)


@kernel(inline="never")
def forget_pair(state: State, population: FinitePopulation, p: int, q: int) -> None:
    """The pair p < q before its first position: some conclusions need no data."""
    row = pair_of(p, q, population.until.size)
    for i in range(state.order.size):
        kind = kind_at(state.kinds, i)
        state.lcb[i, p, q] = state.lcb[i, q, p] = -math.inf
        population.overturned[i, p, q] = population.overturned[i, q, p] = False
        for claim in (NOT_WORSE, BEATS):
            state.log_evidence[claim, i, p, q] = state.log_evidence[claim, i, q, p] = -math.inf
        state.pairs[row, i] = 0.0
        if kind.code >= BOUNDED:
            for k in range(population.weights.size):
                population.wealth[row, i, k] = population.weights[k]
            population.sums[row, i] = 0.0
            if state.masks[OFFERED, p] and state.masks[OFFERED, q]:
                look_again(state, population, kind, i, p, q)
        elif kind.code != EXACT:
            population.later[row, i] = 0.0


@kernel(inline="never")
def forget_arm(state: State, population: FinitePopulation, arm: int) -> None:
    """An arm and its pairs before its first position."""
    state.clock[RESULTS] -= population.until[arm]
    population.until[arm] = 0
    for i in range(state.order.size):
        kind = kind_at(state.kinds, i)
        state.arms.sums[arm, i] = state.arms.means[arm, i] = 0.0
        state.singles[arm, i] = 0.0
        state.bounds[i, arm, LOW], state.bounds[i, arm, HIGH] = -math.inf, math.inf
        population.overturned[i, arm, arm] = False
        if math.isnan(state.limits[i, TARGET]):
            continue
        state.arm_log_evidence[:, i, arm] = -math.inf
        if kind.code >= BOUNDED:
            for k in range(population.weights.size):
                population.arm_wealth[arm, i, k] = population.weights[k]
            population.arm_sums[arm, i] = 0.0
            conclude_arm(state, population, kind, i, arm)
        elif kind.code != EXACT:
            population.later[row_of_arm(arm, population.until.size), i] = 0.0
    for b in range(population.until.size):
        if b != arm:
            forget_pair(state, population, min(arm, b), max(arm, b))


@kernel
def take(state: State, population: FinitePopulation, arm: int, position: int, reward: Vector) -> None:
    """Fill a place, or give it up if nothing was measured; after the end it is only kept."""
    clock, given_up = state.clock, True
    late = population.status[arm, position] != EMPTY
    for i in range(reward.size):
        given_up = given_up and math.isnan(reward[i])
        # what comes late may come because of its value, which bounded values alone do not mind
        lost = late and math.isnan(population.table[arm, position, i]) and state.kinds[i, 0] < EXACT
        population.table[arm, position, i] = math.nan if lost else reward[i]
    population.status[arm, position] = GIVEN_UP if given_up else FILLED
    if clock[OVER] == 1 or position > population.until[arm]:
        return
    if position < population.until[arm]:
        forget_arm(state, population, arm)
        fold_some(state, population, arm, population.status.shape[1])
        evaluate(state, population)
    elif fold_some(state, population, arm, population.status.shape[1])[1] or clock[RESULTS] >= clock[NEXT]:
        evaluate(state, population)


@kernel
def take_all(
    state: State, population: FinitePopulation, arms: Counts, positions: Counts, rewards: Vector
) -> None:
    """Fill places in the order in which they were told, which may say where it ends."""
    for t in range(arms.size):
        take(state, population, arms[t], positions[t], rewards[t])


@kernel(inline="never")
def stored_prefix(
    population: FinitePopulation, kind: Kind, i: int, a: int, b: int, n: int
) -> tuple[Vector, Vector]:
    """(n,) what is stored of a − b at the least that it may be, and of b − a; if a = b of a, and of 1 − a."""
    leads, backs = np.empty(n), np.empty(n)
    for t in range(n):
        if a == b:
            least, largest = ends_of(kind, population.table[a, t, i])
            leads[t], backs[t] = stored_value(kind, least), 1.0 - stored_value(kind, largest)
        else:
            leads[t], backs[t] = in_two(kind, population.table[a, t, i], population.table[b, t, i])
    return leads, backs
