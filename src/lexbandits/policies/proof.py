"""The answer of LexElim-Tol may be certain before everything is settled: a candidate and its proof.

The candidate x is proven acceptable once every other arm y is done: going through the objectives in
order it has been seen that x is not worse than y by more than tolerance + resolution, until x beats
y. An arm that is out on the first objective is done at once. docs/proofs.md, section 4.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits.jit import apart, kernel
from lexbandits.policies.facts import (
    BY_PROOF,
    FLOOR,
    OFFERED,
    POSITION,
    REACH,
    TARGET,
    TOLERANCE,
    State,
    beats,
    close,
    copied,
    look,
    look_at_arm,
    meets,
    misses,
    not_worse,
    paired,
)


@kernel
def best_by_differences(state: State, kept: NDArray[np.bool_], i: int) -> int:
    """Of `kept` the arm whose smallest mean difference to the others is largest, lowest index."""
    best = -1
    most = -math.inf
    for a in range(kept.size):
        if kept[a]:
            least = math.inf
            for b in range(kept.size):
                if kept[b] and b != a:
                    n, difference = paired(state, i, a, b)
                    if n > 0.0:
                        least = min(least, difference)
            if best < 0 or least > most:
                best = a
                most = least
    return best


@kernel
def likely_fails(state: State, kept: NDArray[np.bool_], i: int, arm: int) -> bool:
    """Whether by the means of today the arm will be out on objective i: the middle of the resolution."""
    limits = state.limits
    if state.must[i]:
        middle = 0.5 * (limits[i, TARGET] + limits[i, FLOOR])
        return bool(state.singles[arm, i, 0] > 0.0 and state.arms.means[arm, i] < middle)
    middle = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
    for other in range(kept.size):
        if kept[other] and other != arm:
            n, lead = paired(state, i, other, arm)
            if n > 0.0 and lead > middle:
                return True
    return False


@apart
def plug_in(state: State) -> int:
    """The answer if today's means were the truth."""
    order = state.order
    kept = copied(state.arms.active)
    for position in range(state.clock[POSITION], order.size):
        before = copied(kept)
        left = 0
        for arm in range(kept.size):
            if before[arm]:
                kept[arm] = not likely_fails(state, before, order[position], arm)
                left += kept[arm]
        if left == 0:
            kept = before
    return best_by_differences(state, kept, order[-1])


@apart
def look_for(state: State, x: int) -> None:
    """Look at what the proof of x may need: its targets, and its pairs until it beats the other arm."""
    lows, limits, bounds, order, must = state.lows, state.limits, state.bounds, state.order, state.must
    for y in range(state.gone.shape[0]):
        if not state.who[OFFERED, y] or state.gone[y, 0] == 0:
            continue
        for position in range(order.size):
            i = order[position]
            if must[i]:
                if not meets(bounds, limits, i, y) and not misses(bounds, limits, i, y):
                    look_at_arm(state, i, y)
                if misses(bounds, limits, i, y):
                    break
            elif y != x:
                if not beats(lows, limits, i, x, y) and not close(lows, limits, i, x, y):
                    look(state, i, min(x, y), max(x, y))
                if beats(lows, limits, i, x, y):
                    break


@kernel
def is_done(state: State, x: int, y: int) -> bool:
    """Whether the proof of x needs nothing more about y; about x itself only its targets."""
    lows, limits, bounds, order, must = state.lows, state.limits, state.bounds, state.order, state.must
    if y != x and state.gone[y, 0] == 0:
        return True
    for position in range(order.size):
        i = order[position]
        if must[i]:
            if y != x and misses(bounds, limits, i, y):
                return True
            if y == x and not meets(bounds, limits, i, x):
                return False
        elif y != x:
            if not not_worse(lows, limits, i, x, y):
                return False
            if beats(lows, limits, i, x, y):
                return True
    return True


@apart
def prove(state: State, x: int) -> bool:
    """Whether x is proven; note in `who` whom its proof still lacks, and x itself."""
    who = state.who
    proven = True
    for y in range(who.shape[1]):
        lacks = who[OFFERED, y] and not is_done(state, x, y)
        who[BY_PROOF, y] = lacks or y == x
        proven = proven and not lacks
    return proven
