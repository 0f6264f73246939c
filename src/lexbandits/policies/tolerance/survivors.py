"""Who survives, objective by objective, by the anytime evidence so far."""

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.policies.base import LEFT_AT, LEFT_ON, LEFT_TO
from lexbandits.policies.tolerance.anytime import beats, close, is_apart, meets, misses, not_worse, violates
from lexbandits.policies.tolerance.state import (
    BY_RULE,
    CONTRADICTION,
    OFFERED,
    OVER,
    POSITION,
    RESULTS,
    State,
)


@kernel
def drop_beaten(
    lcb: Vector,
    limits: Vector,
    bounds: Vector,
    is_limit: bool,
    alive: NDArray[np.bool_],
    why: Counts,
    i: int,
) -> bool:
    """Drop whoever is beaten by somebody who got as far; False if that is everybody.

    On a limit being better beats only who is below the target: what is above it does not count. Who is at the
    floor is better than who is below it.
    """
    before = np.empty(alive.size, np.bool_)
    for arm in range(alive.size):
        before[arm] = alive[arm]
    left = 0
    for b in range(alive.size):
        if not before[b]:
            continue
        left += 1
        if is_limit and not misses(bounds, limits, i, b):
            continue
        for a in range(alive.size):
            if not before[a] or a == b:
                continue
            if beats(lcb, limits, i, a, b) or (is_limit and is_apart(bounds, limits, i, a, b)):
                alive[b] = False
                why[b, 0], why[b, 1] = i, a
                left -= 1
                break
    return left > 0


@kernel
def all_violate(bounds: Vector, limits: Vector, alive: NDArray[np.bool_], i: int) -> bool:
    """Whether everybody left is seen to be below the floor of a limit."""
    some = False
    for arm in range(alive.size):
        some |= alive[arm] and not violates(bounds, limits, i, arm)
    return not some


@kernel
def breaks_limit(
    bounds: Vector, limits: Vector, order: Counts, is_limit: NDArray[np.bool_], arm: int
) -> bool:
    """Whether an arm is seen to be below the floor of a limit that comes before all other objectives.

    Then it answers only if no arm is at the floor of all of these, and is not asked while one may be.
    """
    position, broken = 0, False
    while position < order.size and is_limit[order[position]]:
        broken |= violates(bounds, limits, order[position], arm)
        position += 1
    return broken


@kernel
def needs_pairs(bounds: Vector, limits: Vector, alive: NDArray[np.bool_], i: int) -> bool:
    """Whether somebody left is seen to be below the target of a limit and not to be at its floor."""
    some = False
    for arm in range(alive.size):
        some |= alive[arm] and misses(bounds, limits, i, arm) and not meets(bounds, limits, i, arm)
    return bool(some)


@kernel
def find_open(
    lcb: Vector,
    limits: Vector,
    bounds: Vector,
    is_limit: bool,
    masks: NDArray[np.bool_],
    alive: NDArray[np.bool_],
    i: int,
) -> bool:
    """Whether the objective is not settled; note in `masks` for which survivors.

    A limit is settled if all are at its floor; or all are below its target, and each is at its floor or not
    worse than any other by more than the resolution.
    """
    some = False
    for arm in range(alive.size):
        is_open = False
        if alive[arm] and is_limit:
            met, missed = meets(bounds, limits, i, arm), misses(bounds, limits, i, arm)
            is_open = not met and not missed
            for other in range(alive.size):
                if not alive[other] or other == arm or is_open:
                    continue
                if not met:
                    out = misses(bounds, limits, i, other)
                    is_open = not (out and not_worse(lcb, limits, i, arm, other))
                elif misses(bounds, limits, i, other) and not meets(bounds, limits, i, other):
                    is_open = not (missed and not_worse(lcb, limits, i, other, arm))
        elif alive[arm]:
            for other in range(alive.size):
                if alive[other] and other != arm and not close(lcb, limits, i, arm, other):
                    is_open = True
                    break
        masks[BY_RULE, arm] = is_open
        some |= is_open
    return some


@kernel(inline="never")
def survey(state: State) -> None:
    """Recompute who survives; the current objective is the first that is not settled.

    Where nobody would be left, a contradiction ends it and the survivors stay as they were. Who is out keeps
    the round in which it left; on what and by whom it is out may change, as its first rival may leave too.
    """
    clock, order, is_limit, masks, stops = (
        state.clock,
        state.order,
        state.is_limit,
        state.masks,
        state.options.stops,
    )
    lcb, limits, bounds, reached = state.lcb, state.limits, state.bounds, state.reached
    active, left = state.arms.active, state.arms.left
    alive, kept = np.empty(active.size, np.bool_), np.empty(active.size, np.bool_)
    for arm in range(alive.size):
        alive[arm] = masks[OFFERED, arm]
    why = np.full((alive.size, 2), -1)  # the objective on which an arm is out, and its rival or −1
    for arm in range(alive.size):
        for i in range(order.size):
            reached[i, arm] = False
    position = 0
    settled = True
    while position < order.size and settled:
        i = order[position]
        if not drop_beaten(lcb, limits, bounds, is_limit[i], alive, why, i):
            clock[OVER] = clock[CONTRADICTION] = 1
            return
        if is_limit[i] and all_violate(bounds, limits, alive, i):
            for arm in range(alive.size):
                reached[i, arm] = alive[arm] or (masks[OFFERED, arm] and why[arm, 0] == i)
            if stops:
                clock[OVER] = 1
                break
        for arm in range(alive.size):
            kept[arm] = alive[arm] and not breaks_limit(bounds, limits, order, is_limit, arm)
        settled = not find_open(lcb, limits, bounds, is_limit[i], masks, kept, i)
        if settled:  # among those who may meet the limits before all else: then all are asked
            settled = not find_open(lcb, limits, bounds, is_limit[i], masks, alive, i)
        position += settled
    clock[POSITION] = position
    if position == order.size:
        clock[OVER] = 1
    for arm in range(alive.size):
        if alive[arm] and not active[arm]:  # the arm that beat it is out itself
            active[arm] = True
            left[arm, LEFT_AT] = left[arm, LEFT_ON] = left[arm, LEFT_TO] = 0
        elif masks[OFFERED, arm] and not alive[arm]:
            left[arm, LEFT_AT] = clock[RESULTS] if active[arm] else left[arm, LEFT_AT]
            left[arm, LEFT_ON], left[arm, LEFT_TO] = why[arm, 0], why[arm, 1]
            active[arm] = False
