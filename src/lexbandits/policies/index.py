"""What the policies that look at one objective share: their state, and the arm with the largest index."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts
from lexbandits.checks import each_objective
from lexbandits.jit import written_in
from lexbandits.policies.base import Arms, untried
from lexbandits.policies.policy import Policy, checked


class OneObjective(NamedTuple):
    """The state of an index policy: the arms, and the objective with its noise.

    Shared, as compiled functions tell named tuples apart by name and fields: two of a kind are slow.
    """

    arms: Arms
    objective: int
    noise_sd: float


@written_in
def largest_index(state: Any, pending: Counts, first: int, index: Callable[..., float]) -> int:
    """After `first` pulls of each arm argmax of index(state, arm, mean, n, t, log t, best), first of equals.

    n are the pulls of the arm and t those of all arms, both with those in flight. `best` is the largest
    index so far: one that does not exceed it need not be exact. `index` is `written_in`.
    """
    # arrays are taken out of the tuple once: compiled code counts a reference each time
    pulls, means, objective = state.arms.pulls, state.arms.means, state.objective
    behind, fewest, t = 0, pulls[0] + pending[0], 0
    for arm in range(pulls.size):
        n = pulls[arm] + pending[arm]
        t += n
        if n < fewest:
            behind = arm
            fewest = n
    if fewest < first:
        return behind
    log_t, chosen, best = math.log(t), -1, -math.inf
    for arm in range(pulls.size):
        if pulls[arm] > 0:  # an arm whose only pulls are in flight waits for them
            value = index(state, arm, means[arm, objective], pulls[arm] + pending[arm], t, log_t, best)
            if value > best:
                chosen = arm
                best = value
    return behind if chosen < 0 else chosen


class IndexPolicy(Policy):
    """A policy whose settings are an objective and its noise, and whose state is `OneObjective`."""

    @checked
    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: ArrayLike = 1.0
    ) -> None:
        sd = each_objective(noise_sd, n_objectives)[objective]
        self.state = OneObjective(untried(n_arms, n_objectives), objective, float(sd))
