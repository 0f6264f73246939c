"""What the policies that look at one objective share: their state, and the arm with the largest index."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lexbandits.arrays import Counts
from lexbandits.checks import each_objective
from lexbandits.jit import kernel, written_in
from lexbandits.policies.base import Arms, untried


class OneObjective(NamedTuple):
    """The state of an index policy: the arms, and the objective with its noise.

    Shared, as compiled functions tell named tuples apart by name and fields: two of a kind are slow.
    """

    arms: Arms
    objective: int
    noise_sd: float


def looking_at_one(settings: dict[str, Any]) -> OneObjective:
    """No arm pulled yet."""
    arms = untried(settings["n_arms"], settings["n_objectives"])
    return OneObjective(arms, settings["objective"], own_noise_sd(settings))


@kernel
def all_pulls(pulls: Counts, pending: Counts) -> int:
    """Pulls made of all arms, those in flight included."""
    t = 0
    for arm in range(pulls.size):
        t += pulls[arm] + pending[arm]
    return t


@written_in
def largest_index(state: Any, pending: Counts, first: int, index: Callable[..., float]) -> int:
    """After `first` pulls of each arm argmax of index(state, arm, mean, n, t), the first of equals.

    n are the arm's pulls and t those of all arms, both with those in flight. `index` is `written_in`.
    """
    # arrays are taken out of the tuple once: compiled code counts a reference each time
    pulls, means, objective = state.arms.pulls, state.arms.means, state.objective
    t = all_pulls(pulls, pending)
    chosen, behind, fewest, highest = -1, 0, pulls[0] + pending[0], 0.0
    for arm in range(pulls.size):
        n = pulls[arm] + pending[arm]
        if n < fewest:
            behind = arm
            fewest = n
        if pulls[arm] > 0:  # an arm whose only pulls are in flight waits for them
            value = index(state, arm, means[arm, objective], n, t)
            if chosen < 0 or value > highest:
                chosen = arm
                highest = value
    return behind if chosen < 0 or fewest < first else chosen


def own_noise_sd(settings: dict[str, Any]) -> float:
    """σ of the objective that the policy looks at."""
    return float(each_objective(settings["noise_sd"], settings["n_objectives"])[settings["objective"]])


def answered(first: int) -> Counts:
    """(1,) where a policy that stops at a set keeps what it recommends, −1 before."""
    return np.full(1, first, np.int64)
