"""The answer of LexElim-Tol may be certain before everything is settled: a candidate and its proof.

The candidate x is proven acceptable once every other arm y is done: going through the objectives in
order it has been seen that x is not worse than y by more than tolerance + resolution, until x beats
y. An arm that is out on the first objective is done at once. docs/proofs.md, section 4.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Vector
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
    kinds, singles, pairs = state.kinds, state.singles, state.pairs
    best = -1
    most = -math.inf
    for a in range(kept.size):
        if kept[a]:
            least = math.inf
            for b in range(kept.size):
                if kept[b] and b != a:
                    n, difference = paired(kinds, singles, pairs, i, a, b)
                    if n > 0.0:
                        least = min(least, difference)
            if best < 0 or least > most:
                best = a
                most = least
    return best


@kernel
def keep_likely(state: State, kept: NDArray[np.bool_], i: int) -> None:
    """Keep who would survive objective i if today's means were the truth; all if that is nobody."""
    kinds, singles, pairs, limits = state.kinds, state.singles, state.pairs, state.limits
    before = copied(kept)
    must = state.must[i]
    ends = TARGET if must else TOLERANCE, FLOOR if must else REACH
    middle = 0.5 * (limits[i, ends[0]] + limits[i, ends[1]])
    left = 0
    for arm in range(kept.size):
        if before[arm] and must:
            kept[arm] = singles[arm, i, 0] == 0.0 or state.arms.means[arm, i] >= middle
        elif before[arm]:
            for other in range(kept.size):
                if before[other] and other != arm:
                    n, lead = paired(kinds, singles, pairs, i, other, arm)
                    if n > 0.0 and lead > middle:
                        kept[arm] = False
                        break
        left += kept[arm]
    if left == 0:
        for arm in range(kept.size):
            kept[arm] = before[arm]


@apart
def plug_in(state: State) -> int:
    """The answer if today's means were the truth."""
    kept = copied(state.arms.active)
    for position in range(state.clock[POSITION], state.order.size):
        keep_likely(state, kept, state.order[position])
    return best_by_differences(state, kept, state.order[-1])


@apart
def look_for(state: State, x: int) -> None:
    """Look at what the proof of x may need: its targets, and its pairs until it beats the other arm."""
    lows, limits, bounds, order, must = state.lows, state.limits, state.bounds, state.order, state.must
    kinds, singles, pairs, who, gone = state.kinds, state.singles, state.pairs, state.who, state.gone
    for y in range(gone.shape[0]):
        if not who[OFFERED, y] or gone[y, 0] == 0:
            continue
        for position in range(order.size):
            i = order[position]
            if must[i]:
                if not meets(bounds, limits, i, y) and not misses(bounds, limits, i, y):
                    look_at_arm(bounds, limits, kinds, singles, i, y)
                if misses(bounds, limits, i, y):
                    break
            elif y != x:
                if not beats(lows, limits, i, x, y) and not close(lows, limits, i, x, y):
                    look(lows, limits, kinds, singles, pairs, i, min(x, y), max(x, y))
                if beats(lows, limits, i, x, y):
                    break


@apart
def prove(state: State, x: int) -> bool:
    """Whether x is proven; note in `who` whom its proof still lacks, and x itself."""
    lows, limits, bounds, order, must = state.lows, state.limits, state.bounds, state.order, state.must
    who, gone = state.who, state.gone
    proven = True
    for y in range(who.shape[1]):
        lacks = False
        position = order.size if not who[OFFERED, y] or (y != x and gone[y, 0] == 0) else 0
        while position < order.size:
            i = order[position]
            if must[i]:
                lacks = y == x and not meets(bounds, limits, i, x)
                done = y != x and misses(bounds, limits, i, y)
            else:
                lacks = y != x and not not_worse(lows, limits, i, x, y)
                done = y != x and beats(lows, limits, i, x, y)
            position = order.size if lacks or done else position + 1
        who[BY_PROOF, y] = lacks or y == x
        proven = proven and not lacks
    return proven


class Seen(NamedTuple):
    """What was seen of the answer against one rival on one objective.

    `verdict`: the answer "beats" the rival, they are "close", it is "not worse", the rival is "beaten by 3",
    "misses the target", "meets the target", or the question is "open".
    """

    rival: int
    objective: int
    difference: float  # answer − rival, the mean over common results; nan without any
    low: float  # the true difference lies between these
    high: float
    results: int  # common results
    verdict: str


def certificate(state: State, x: int, differences: Vector) -> tuple[Seen, ...]:
    """Per rival of x, objective by objective until it is done."""
    seen = []
    for y in np.flatnonzero(state.who[OFFERED]).tolist():
        for i in state.order.tolist() if y != x else ():
            said = _verdict(state, x, y, i)
            results, mean = paired(state.kinds, state.singles, state.pairs, i, x, y)
            low, high = differences[x, y, i].tolist()
            seen.append(Seen(y, i, mean if results else math.nan, low, high, int(results), said))
            if said.startswith(("beats", "beaten", "misses")):
                break
    return tuple(seen)


def _verdict(state: State, x: int, y: int, i: int) -> str:
    lows, limits, bounds = state.lows, state.limits, state.bounds
    position, rival = state.gone[y].tolist()
    if state.must[i]:
        if misses(bounds, limits, i, y):
            return "misses the target"
        return "meets the target" if meets(bounds, limits, i, y) else "open"
    if beats(lows, limits, i, x, y):
        return "beats"
    # after the first objective it is the survivors' end, not the proof, to which other arms matter
    everything_settled = state.clock[POSITION] == state.order.size
    if position >= 0 and state.order[position] == i and (position == 0 or everything_settled):
        return f"beaten by {rival}"
    if close(lows, limits, i, x, y):
        return "close"
    return "not worse" if not_worse(lows, limits, i, x, y) else "open"
