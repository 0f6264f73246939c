"""What is known of arms on a list by what was counted, and who survives, answers and is proven by that.

Arithmetic overrides evidence: what no value unseen can make true any more is withdrawn.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.finite_population import GUARD
from lexbandits.evidence.interval import kind_at, told_difference, told_mean
from lexbandits.evidence.kinds import BOUNDED, EXACT, Kind
from lexbandits.policies.tolerance.finite.finite_state import (
    ABOVE,
    BELOW,
    FLAT,
    LOG_2,
    PASSED,
    UNDER,
    FinitePopulation,
)
from lexbandits.policies.tolerance.passes import FIRST_PROOF, conclude
from lexbandits.policies.tolerance.state import (
    BEATS,
    CONTRADICTION,
    FLOOR,
    HIGH,
    LEVEL,
    LOW,
    MEETS,
    MISSES,
    NEXT,
    OFFERED,
    OVER,
    REACH,
    RESULTS,
    TARGET,
    TARGET_LEVEL,
    TOLERANCE,
    State,
    pair_of,
)
from lexbandits.policies.tolerance.stopping import plug_in, prove
from lexbandits.policies.tolerance.survivors import survey

Sum = tuple[float, float]  # and what rounding took from it


@kernel
def reaches(total: Sum, back: Sum, goal: Sum, n_items: float, full: bool, strict: bool) -> tuple[bool, bool]:
    """Whether a sum exceeds its goal whatever comes, and whether it still may; not `strict`: or equals it.

    It is of numbers in [0, 1], and `back` is the sum of what they lack to 1.
    """
    over = (total[0] - goal[0]) + (total[1] - goal[1])
    most = over if full else ((n_items - goal[0]) - back[0]) - (goal[1] + back[1])
    slack = GUARD * n_items
    return (over > slack, most > slack) if strict else (over >= -slack, most >= -slack)


@kernel
def conclude_pair(
    sums: Vector,
    goals: Vector,
    marks: Vector,
    overturned: NDArray[np.bool_],
    lcb: Vector,
    limits: Vector,
    log_evidence: Vector,
    kind: Kind,
    i: int,
    row: int,
    p: int,
    q: int,
    n_items: float,
    full: bool,
) -> bool:
    """What is now known of p against q and of q against p on a bounded objective; whether that is news."""
    news = False
    for way in range(2):
        a, b = (p, q) if way == 0 else (q, p)
        own = sums[row, i, way, 0], sums[row, i, way, 1]
        back = sums[row, i, 1 - way, 0], sums[row, i, 1 - way, 1]
        beaten = held = False
        for claim in range(2):
            goal = goals[i, claim, 0], goals[i, claim, 1]
            exact, possible = reaches(own, back, goal, n_items, full, claim == BEATS)
            if not possible and log_evidence[claim, i, a, b] > -math.inf:
                log_evidence[claim, i, a, b] = -math.inf
                overturned[i, a, b] = True
            holds = exact or log_evidence[claim, i, a, b] >= limits[i, LEVEL] + LOG_2
            beaten, held = (holds, held) if claim == BEATS else (beaten, holds)
        low = -math.inf
        if full:
            low = told_difference(kind, (own[0] + own[1]) / n_items)
            low = max(low, marks[i, ABOVE]) if beaten else min(low, limits[i, TOLERANCE])
            low = max(low, -limits[i, REACH]) if held else min(low, marks[i, BELOW])
        elif beaten:
            low = marks[i, ABOVE]
        elif held:
            low = -limits[i, REACH]
        news |= lcb[i, a, b] != low
        lcb[i, a, b] = low
    return bool(news)


@kernel(inline="never")
def look_again(state: State, population: FinitePopulation, kind: Kind, i: int, p: int, q: int) -> None:
    """What is known of p < q on a bounded objective, by what was counted."""
    n_items, sums = population.table.shape[1], population.sums
    goals, marks = population.goals, population.marks
    overturned, lcb, limits, log_evidence = population.overturned, state.lcb, state.limits, state.log_evidence
    row = pair_of(p, q, population.until.size)
    full = state.pairs[row, i, 0] == n_items
    conclude_pair(
        sums, goals, marks, overturned, lcb, limits, log_evidence, kind, i, row, p, q, float(n_items), full
    )


@kernel(inline="never")
def conclude_arm(state: State, population: FinitePopulation, kind: Kind, i: int, arm: int) -> None:
    """Which bounds of an arm at a limit follow from what was counted of it.

    Once all its values are known the floor decides: who is at least there is not below the target either.
    """
    bounds, limits = state.bounds, state.limits
    marks, log_evidence = population.marks[i], state.arm_log_evidence
    n_items, sums = float(population.status.shape[1]), population.arm_sums[arm, i]
    full = state.singles[arm, i, 0] == n_items
    passed = out = below = False
    for claim in range(3):
        way = min(claim, 1)
        own, back = (sums[way, 0], sums[way, 1]), (sums[1 - way, 0], sums[1 - way, 1])
        goal = population.goals[i, PASSED + claim, 0], population.goals[i, PASSED + claim, 1]
        exact, possible = reaches(own, back, goal, n_items, full, way == 1)
        if not possible and log_evidence[claim, i, arm] > -math.inf:
            log_evidence[claim, i, arm] = -math.inf
            population.overturned[i, arm, arm] = True
        holds = exact or log_evidence[claim, i, arm] >= limits[i, TARGET_LEVEL]
        if claim == MEETS:
            passed = holds
        elif claim == MISSES:
            out = holds
        else:
            below = holds
    low, high = -math.inf, math.inf
    if full:
        mean = told_mean(kind, (sums[0, 0] + sums[0, 1]) / n_items)
        low = max(mean, limits[i, FLOOR]) if passed else min(mean, marks[FLAT])
        high = max(mean, limits[i, TARGET]) if passed else low
        if passed:
            log_evidence[MISSES, i, arm] = -math.inf
    else:
        low = limits[i, FLOOR] if passed else low
        high = marks[FLAT] if below else marks[UNDER] if out else high
    bounds[i, arm, LOW], bounds[i, arm, HIGH] = low, high


@kernel(inline="never")
def evaluate(state: State, population: FinitePopulation) -> None:
    """Who survives, who answers, and what the rule and the proof of the answer would know next."""
    clock, offered = state.clock, 0
    for arm in range(population.until.size):
        offered += state.masks[OFFERED, arm]
    survey(state)
    proving = state.options.proves and clock[RESULTS] >= FIRST_PROOF * offered
    scratch = np.empty((2, population.until.size), np.bool_)
    candidate = plug_in(state, scratch) if proving and clock[OVER] == 0 else -1
    conclude(state, candidate, scratch, False)
    clock[NEXT] = clock[RESULTS] + max(offered, clock[RESULTS] // 100)


@kernel(inline="never")
def keep_exact(state: State, population: FinitePopulation, only: NDArray[np.bool_]) -> None:
    """Forget what was seen by evidence on these objectives; what arithmetic says stays."""
    n_arms, n_items = population.status.shape
    for i in range(only.size):
        kind = kind_at(state.kinds, i)
        if not only[i] or kind.code == EXACT:
            continue
        state.log_evidence[:, i] = -math.inf
        for a in range(n_arms):
            for b in range(a + 1, n_arms):
                if kind.code >= BOUNDED:
                    if state.masks[OFFERED, a] and state.masks[OFFERED, b]:
                        look_again(state, population, kind, i, a, b)
                elif state.pairs[pair_of(a, b, n_arms), i, 0] != n_items:
                    state.lcb[i, a, b] = state.lcb[i, b, a] = -math.inf
            if math.isnan(state.limits[i, TARGET]):
                continue
            state.arm_log_evidence[:, i, a] = -math.inf
            if kind.code >= BOUNDED:
                conclude_arm(state, population, kind, i, a)
            elif state.singles[a, i, 0] < n_items:
                state.bounds[i, a, LOW], state.bounds[i, a, HIGH] = -math.inf, math.inf


@kernel(inline="never")
def still_proven(state: State, x: int) -> bool:
    """Whether what is left proves x, or leaves it when all is settled."""
    state.clock[OVER] = state.clock[CONTRADICTION] = 0
    survey(state)
    proven = state.clock[CONTRADICTION] == 0 and state.arms.active[x]
    if state.clock[OVER] == 0:
        scratch = np.empty((2, state.masks.shape[1]), np.bool_)
        proven = state.options.proves and prove(state, x, scratch, False)
    return bool(proven)
