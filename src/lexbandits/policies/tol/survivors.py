"""Who survives, objective by objective, by the facts seen so far."""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import apart, kernel
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
def drop_missing(
    bounds: Vector,
    limits: Vector,
    must: NDArray[np.bool_],
    reached: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    why: Counts,
    i: int,
) -> None:
    """Drop whoever misses the target; nobody if all of them do, but then the target is given up."""
    feasible = False
    for arm in range(alive.size):
        feasible |= alive[arm] and not misses(bounds, limits, i, arm)
    for arm in range(alive.size):
        if not feasible:
            reached[i, arm] = alive[arm]
        elif alive[arm] and misses(bounds, limits, i, arm):
            alive[arm] = False
            why[arm, 0], why[arm, 1] = i, -1
    must[i] = feasible


@kernel
def drop_beaten(lows: Vector, limits: Vector, alive: NDArray[np.bool_], why: Counts, i: int) -> bool:
    """Drop whoever is beaten by somebody who got as far; False if that is everybody."""
    before = np.empty(alive.size, np.bool_)
    for arm in range(alive.size):
        before[arm] = alive[arm]
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


@kernel
def find_open(
    lows: Vector,
    limits: Vector,
    bounds: Vector,
    must: bool,
    who: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    i: int,
) -> bool:
    """Whether the objective is not settled; note in `who` for which survivors."""
    some = False
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

    Where nobody would be left, a contradiction ends it and the survivors stay as they were. Who is out keeps
    the round in which it left; on what and by whom it is out may change, as its first rival may leave too.
    """
    clock, order, must, who, stops = state.clock, state.order, state.must, state.who, state.manner.stops
    lows, limits, bounds, reached = state.lows, state.limits, state.bounds, state.reached
    active, left = state.arms.active, state.arms.left
    alive = np.empty(active.size, np.bool_)
    for arm in range(alive.size):
        alive[arm] = who[OFFERED, arm]
    why = np.empty((alive.size, 2), np.int64)  # the objective on which an arm is out, and its rival or −1
    for i in range(order.size):
        must[i] = not math.isnan(limits[i, TARGET])
    for arm in range(alive.size):
        for i in range(order.size):
            reached[i, arm] = False
    position = 0
    settled = True
    while position < order.size and settled:
        i = order[position]
        tested = must[i]
        if tested:
            drop_missing(bounds, limits, must, reached, alive, why, i)
        if tested and not must[i] and stops:
            clock[OVER] = 1
            break
        if not must[i] and not drop_beaten(lows, limits, alive, why, i):
            clock[OVER] = clock[CONTRADICTION] = 1
            return
        settled = not find_open(lows, limits, bounds, must[i], who, alive, i)
        position += settled
    clock[POSITION] = position
    if position == order.size:
        clock[OVER] = 1
    for arm in range(alive.size):
        if alive[arm] and not active[arm]:  # the arm that beat it is out itself
            active[arm] = True
            left[arm, 0] = left[arm, 1] = left[arm, 2] = 0
        elif who[OFFERED, arm] and not alive[arm]:
            left[arm, 0] = clock[RESULTS] if active[arm] else left[arm, 0]
            left[arm, 1], left[arm, 2] = why[arm, 0], why[arm, 1]
            active[arm] = False
