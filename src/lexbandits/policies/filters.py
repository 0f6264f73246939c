"""What the algorithms of the paper and LexElim-Phase share: widths, filters, objectives to settle."""

import math
from typing import Any

from lexbandits._jit import kernel
from lexbandits.evidence.radius import confidence_width
from lexbandits.policies.base import NEVER, Arms, eliminate


@kernel
def widest(arms: Arms, delta: float) -> float:
    """c(a_t): the confidence width of the active arm with the fewest pulls.

    Not the width of the arm being told: a late reward may be for an arm that is no longer the
    widest, and Lemmas 5 and 6 need the largest active width.
    """
    fewest = NEVER
    for arm in range(arms.pulls.size):
        fewest = min(fewest, arms.pulls[arm] if arms.active[arm] else NEVER)
    return confidence_width(fewest, arms.pulls.size, arms.means.shape[1], delta)


@kernel
def keep_close(arms: Arms, objective: int, tolerance: float) -> None:
    """Eliminate the arms that trail the best active mean on `objective` by more than `tolerance`."""
    best = -1
    highest = -math.inf
    lowest = math.inf
    for arm in range(arms.pulls.size):
        if arms.active[arm]:
            mean = arms.means[arm, objective]
            if mean > highest:
                best = arm
                highest = mean
            if mean < lowest:
                lowest = mean
    if highest - lowest <= tolerance:  # nobody trails: the usual round needs no second look
        return
    for arm in range(arms.pulls.size):
        if arms.active[arm] and not highest - arms.means[arm, objective] <= tolerance:
            eliminate(arms, arm, arms.told[0] + 1, objective, best)


@kernel
def more_active_than(arms: Arms, count: int) -> bool:
    """Whether more than `count` arms are in the running; looks no further than it must."""
    seen = 0
    for arm in range(arms.active.size):
        if arms.active[arm]:
            seen += 1
            if seen > count:
                return True
    return False


@kernel
def all_settled(state: Any) -> bool:
    """The `finished` of a policy that settles one objective after the other."""
    return bool(state.layer[0] == state.sizes.size)


@kernel
def skip_settled(state: Any) -> None:
    """Leave every objective that has no arm left to drop."""
    while not all_settled(state) and not more_active_than(state.arms, state.sizes[state.layer[0]]):
        state.layer[0] += 1
