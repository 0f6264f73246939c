"""Whom a policy about a list asks next: of the arms that somebody wants the one that is furthest behind."""

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.evidence.kinds import EXACT
from lexbandits.policies.tolerance.anytime import close
from lexbandits.policies.tolerance.finite.finite_folding import take
from lexbandits.policies.tolerance.finite.finite_state import EMPTY, FinitePopulation
from lexbandits.policies.tolerance.passes import RULE_EVERY
from lexbandits.policies.tolerance.preregistered import shown_to_meet
from lexbandits.policies.tolerance.state import BY_PROOF, BY_RULE, CANDIDATE, OFFERED, OVER, POSITION, State


@kernel
def is_open(state: State, ahead: Counts, row: int, arm: int) -> bool:
    """Whether the rule or the proof wants to know more of an arm, of all that are as far or further."""
    masks, clock, is_limit = state.masks, state.clock, state.is_limit
    if not masks[row, arm]:
        return False
    x = clock[CANDIDATE]
    if row == BY_PROOF:
        if arm != x:
            return bool(ahead[arm] <= ahead[x])
        alone = True
        for y in range(ahead.size):
            if y != x and masks[row, y]:
                alone = False
                if ahead[x] <= ahead[y]:
                    return True
        for i in range(is_limit.size):
            if is_limit[i] and not shown_to_meet(state.bounds, state.limits, state.arm_log_evidence, i, x):
                return True
        return alone
    i = state.order[clock[POSITION]]
    if is_limit[i]:
        return True
    if state.kinds[i, 0] == EXACT:
        return bool(state.singles[arm, i, 0] == 0.0)
    for b in range(ahead.size):
        if (
            b != arm
            and masks[row, b]
            and ahead[arm] <= ahead[b]
            and not close(state.lcb, state.limits, i, arm, b)
        ):
            return True
    return False


@kernel
def next_arm(state: State, population: FinitePopulation, ahead: Counts, rank: int) -> int:
    """Of the arms that somebody wants the one that is furthest behind; −1 if nobody is left."""
    n_items = population.status.shape[1]
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
def next_free(
    population: FinitePopulation, arm: int, position: int, positions: Counts, first: int, last: int
) -> int:
    """The arm's first place from `position` on that is empty and not in positions[first:last], ascending."""
    n_items = population.status.shape[1]
    while position < n_items:
        while first < last and positions[first] < position:
            first += 1
        taken = first < last and positions[first] == position
        if not taken and population.status[arm, position] == EMPTY:
            return position
        position += 1
    return int(n_items)


@kernel(inline="never")
def ask(state: State, population: FinitePopulation, starts: Counts, positions: Counts, places: Counts) -> int:
    """Fill places (n, 2) with what to measure next, each in flight for those after it; how many there are.

    positions[starts[arm]:starts[arm + 1]], ascending, are in flight.
    """
    n_arms = population.until.size
    ahead = np.empty(n_arms, np.int64)
    rank = offered = 0
    for arm in range(n_arms):
        ahead[arm] = next_free(
            population, arm, population.until[arm], positions, starts[arm], starts[arm + 1]
        )
        if state.masks[OFFERED, arm]:
            rank += ahead[arm]
            offered += 1
    for number in range(places.shape[0]):
        arm = next_arm(state, population, ahead, rank // offered)
        if arm < 0:
            return number
        places[number, 0], places[number, 1] = arm, ahead[arm]
        ahead[arm] = next_free(population, arm, ahead[arm] + 1, positions, starts[arm], starts[arm + 1])
        rank += 1
    return int(places.shape[0])


@kernel(inline="never")
def play(state: State, population: FinitePopulation, truth: Vector, most: int) -> int:
    """Measure (N, K, m), one place after the other, until the end or for `most` results; how many it took."""
    nobody, nothing = np.zeros(population.until.size + 1, np.int64), np.empty(0, np.int64)
    place = np.empty((1, 2), np.int64)
    results = 0
    while state.clock[OVER] == 0 and results < most and ask(state, population, nobody, nothing, place) == 1:
        arm, position = place[0, 0], place[0, 1]
        take(state, population, arm, position, truth[position, arm])
        results += 1
    return results
