"""Regret: what a pull of each arm is charged, and curves rebuilt from eliminations."""

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import one_of
from lexbandits.environments.instance import Instance
from lexbandits.simulation.sums import in_turn


def charges(instance: Instance, kind: str) -> Vector:
    """(K, m) what one pull of each arm adds to the regret."""
    if not isinstance(instance, Instance):
        raise TypeError(f"the instance must be an Instance, got {instance!r}")
    if one_of("kind", kind, ("general", "priority")) == "general":
        return np.array(instance.gaps)
    differs = np.abs(instance.gaps) > instance.tie_tolerance
    first = differs & (np.cumsum(differs, axis=1) == 1)
    return np.where(first, instance.gaps, 0.0)


@kernel
def rebuild(left: Counts, checkpoints: Counts, rates: Vector, curve: Vector) -> None:
    """Fill `curve` (C, m) with what round-robin play adds up to at ascending `checkpoints`.

    Arm a plays until round left[a], for ever where that is 0; each round is the available arm with
    the fewest pulls, the lowest index if several. O(K) per elimination and checkpoint.
    """
    n_arms, m = rates.shape
    pulls, here = np.zeros(n_arms, np.int64), np.zeros(n_arms, np.int64)
    rounds = 0
    for c in range(checkpoints.size):
        while rounds < checkpoints[c]:
            until = checkpoints[c]
            fewest = -1
            for arm in range(n_arms):
                here[arm] = left[arm] == 0 or left[arm] > rounds
                if here[arm]:
                    if left[arm] != 0 and left[arm] < until:
                        until = left[arm]
                    if fewest < 0 or pulls[arm] < fewest:
                        fewest = pulls[arm]
            span = until - rounds
            for arm in range(n_arms):  # finish the sweep that is under way
                if span > 0 and here[arm] and pulls[arm] == fewest:
                    pulls[arm] += 1
                    span -= 1
            if span > 0:
                in_turn(here, span, pulls)
            rounds = until
        for i in range(m):
            total = 0.0
            for arm in range(n_arms):
                total += pulls[arm] * rates[arm, i]
            curve[c, i] = total
