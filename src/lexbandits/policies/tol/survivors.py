"""Who survives, objective by objective, by the facts seen so far."""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts
from lexbandits.jit import kernel, written_in
from lexbandits.policies.base import eliminate
from lexbandits.policies.tol.facts import beats, close, meets, misses
from lexbandits.policies.tol.state import (
    BY_RULE,
    CONTRADICTION,
    OFFERED,
    OVER,
    POSITION,
    RESULTS,
    TARGET,
    State,
)


@kernel
def copied(arms: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """A copy of a set of arms; much faster to compile than numpy's."""
    copy = np.empty(arms.size, np.bool_)
    for arm in range(arms.size):
        copy[arm] = arms[arm]
    return copy


@written_in
def drop_missing(state: State, alive: NDArray[np.bool_], why: Counts, i: int) -> None:
    """Drop whoever misses the target; nobody if all of them do, but then the target is given up."""
    bounds, limits = state.bounds, state.limits
    feasible = False
    for arm in range(alive.size):
        feasible |= alive[arm] and not misses(bounds, limits, i, arm)
    for arm in range(alive.size):
        if not feasible:
            state.reached[i, arm] = alive[arm]
        elif alive[arm] and misses(bounds, limits, i, arm):
            alive[arm] = False
            why[arm, 0], why[arm, 1] = i, -1
    state.must[i] = feasible


@written_in
def drop_beaten(state: State, alive: NDArray[np.bool_], why: Counts, i: int) -> bool:
    """Drop whoever is beaten by somebody who got as far; False if that is everybody."""
    lows, limits = state.lows, state.limits
    before = copied(alive)
    left = 0
    for b in range(alive.size):
        if not before[b]:
            continue
        left += 1
        for a in range(alive.size):
            if before[a] and a != b and beats(lows, limits, i, a, b):
                alive[b] = False
                why[b, 0], why[b, 1] = i, a
                left -= 1
                break
    return left > 0


@written_in
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


@written_in
def survey(state: State) -> None:
    """Recompute who survives; the current objective is the first that is not settled.

    Where nobody would be left, a contradiction ends it and the survivors stay as they were. Who is out keeps
    the round in which it left; on what and by whom it is out may change, as its first rival may leave too.
    """
    arms, clock, order, must, offered = state.arms, state.clock, state.order, state.must, state.who[OFFERED]
    alive = copied(offered)
    why = np.empty((alive.size, 2), np.int64)  # the objective on which an arm is out, and its rival or −1
    for i in range(order.size):
        must[i] = not math.isnan(state.limits[i, TARGET])
    for arm in range(alive.size):
        for i in range(order.size):
            state.reached[i, arm] = False
    position = 0
    settled = True
    while position < order.size and settled:
        i = order[position]
        tested = must[i]
        if tested:
            drop_missing(state, alive, why, i)
        if tested and not must[i] and state.manner.stops:
            clock[OVER] = 1
            break
        if not must[i] and not drop_beaten(state, alive, why, i):
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
        elif offered[arm] and not alive[arm]:
            round = clock[RESULTS] if arms.active[arm] else arms.left[arm, 0]
            eliminate(arms, arm, round, why[arm, 0], why[arm, 1])
