"""Regret: what a pull of each arm is charged, and curves rebuilt from eliminations."""

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import one_of
from lexbandits.jit import kernel
from lexbandits.world.instance import Instance


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
    pulls = np.zeros(n_arms, np.int64)
    rounds = 0
    for c in range(checkpoints.size):
        while rounds < checkpoints[c]:
            until = checkpoints[c]
            available = 0
            fewest = -1
            for arm in range(n_arms):
                if left[arm] == 0 or left[arm] > rounds:
                    available += 1
                    if left[arm] != 0 and left[arm] < until:
                        until = left[arm]
                    if fewest < 0 or pulls[arm] < fewest:
                        fewest = pulls[arm]
            span = until - rounds
            for arm in range(n_arms):  # finish the sweep that is under way
                if span > 0 and (left[arm] == 0 or left[arm] > rounds) and pulls[arm] == fewest:
                    pulls[arm] += 1
                    span -= 1
            more, rest = span // available, span % available
            for arm in range(n_arms):
                if left[arm] == 0 or left[arm] > rounds:
                    pulls[arm] += more
                    if rest > 0:
                        pulls[arm] += 1
                        rest -= 1
            rounds = until
        for i in range(m):
            total = 0.0
            for arm in range(n_arms):
                total += pulls[arm] * rates[arm, i]
            curve[c, i] = total
