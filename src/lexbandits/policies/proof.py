"""The answer of LexElim-Tol may be certain before everything is settled: a candidate and its proof.

The candidate x is proven acceptable once every other arm y is done: going through the objectives in
order it has been seen that x is not worse than y by more than tolerance + resolution, until x beats
y. An arm that is out on the first objective is done at once. docs/proofs.md, section 4.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits.jit import kernel
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
    common_results,
    has_target,
    look,
    look_at_arm,
    mean_difference,
    meets,
    misses,
    not_worse,
)


@kernel
def must_meet(state: State, i: int) -> bool:
    """Whether the objective has a target that somebody may meet."""
    return has_target(state, i) and not state.reached[i].any()


@kernel
def best_by_differences(state: State, kept: NDArray[np.bool_], i: int) -> int:
    """Of `kept` the arm whose smallest mean difference to the others is largest, lowest index."""
    best = -1
    most = -math.inf
    for a in range(kept.size):
        if kept[a]:
            least = math.inf
            for b in range(kept.size):
                if kept[b] and b != a and common_results(state, a, b, i) > 0.0:
                    least = min(least, mean_difference(state, a, b, i))
            if best < 0 or least > most:
                best = a
                most = least
    return best


@kernel
def likely_fails(state: State, kept: NDArray[np.bool_], arm: int, i: int) -> bool:
    """Whether by the means of today the arm will be out on objective i: the middle of the resolution."""
    if must_meet(state, i):
        middle = 0.5 * (state.limits[i, TARGET] + state.limits[i, FLOOR])
        return bool(state.singles[arm, i, 0] > 0.0 and state.arms.means[arm, i] < middle)
    middle = 0.5 * (state.limits[i, TOLERANCE] + state.limits[i, REACH])
    for other in range(kept.size):
        if kept[other] and other != arm and mean_difference(state, other, arm, i) > middle:
            return True
    return False


@kernel
def plug_in(state: State) -> int:
    """The answer if today's means were the truth."""
    kept = state.arms.active.copy()
    for position in range(state.clock[POSITION], state.order.size):
        i = state.order[position]
        before = kept.copy()
        left = 0
        for arm in range(kept.size):
            if before[arm]:
                kept[arm] = not likely_fails(state, before, arm, i)
                left += kept[arm]
        if left == 0:
            kept = before
    return best_by_differences(state, kept, state.order[-1])


@kernel
def look_for(state: State, x: int) -> None:
    """Look at what the proof of x may need: its targets, and its pairs until it beats the other arm."""
    for y in range(state.gone.shape[0]):
        if not state.who[OFFERED, y] or state.gone[y, 0] == 0:
            continue
        for position in range(state.order.size):
            i = state.order[position]
            if must_meet(state, i):
                if not meets(state, y, i) and not misses(state, y, i):
                    look_at_arm(state, y, i)
                if misses(state, y, i):
                    break
            elif y != x:
                if not beats(state, x, y, i) and not close(state, x, y, i):
                    look(state, x, y, i)
                if beats(state, x, y, i):
                    break


@kernel
def is_done(state: State, x: int, y: int) -> bool:
    """Whether the proof of x needs nothing more about y; about x itself only its targets."""
    if y != x and state.gone[y, 0] == 0:
        return True
    for position in range(state.order.size):
        i = state.order[position]
        if must_meet(state, i):
            if y != x and misses(state, y, i):
                return True
            if y == x and not meets(state, x, i):
                return False
        elif y != x:
            if not not_worse(state, x, y, i):
                return False
            if beats(state, x, y, i):
                return True
    return True


@kernel
def prove(state: State, x: int) -> bool:
    """Whether x is proven; note in `who` whom its proof still lacks, and x itself."""
    proven = True
    for y in range(state.gone.shape[0]):
        lacks = state.who[OFFERED, y] and not is_done(state, x, y)
        state.who[BY_PROOF, y] = lacks or y == x
        proven = proven and not lacks
    return proven
