"""Whom a policy about a list asks next: of the arms that somebody wants the one that is furthest behind."""

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.kinds import EXACT
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.claims import is_in
from lexbandits.policies.tol.facts import close
from lexbandits.policies.tol.judgement import RULE_EVERY
from lexbandits.policies.tol.list_folding import take
from lexbandits.policies.tol.listed import EMPTY, Listed
from lexbandits.policies.tol.state import BY_PROOF, BY_RULE, CANDIDATE, OFFERED, OVER, POSITION, State


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
            if must[i] and not is_in(state.bounds, state.limits, state.arm_shown, i, x):
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
