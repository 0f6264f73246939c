"""What the policies that look at one objective share: their state, and the arm with the largest index."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts
from lexbandits.checks import checked_settings, each_objective
from lexbandits.jit import kernel, written_in
from lexbandits.policies.base import Arms, untried
from lexbandits.policies.policy import Policy


class OneObjective(NamedTuple):
    """The state of an index policy: the arms, and the objective with its noise.

    Shared, as compiled functions tell named tuples apart by name and fields: two of a kind are slow.
    """

    arms: Arms
    objective: int
    noise_sd: float


@kernel
def all_pulls(pulls: Counts, pending: Counts) -> int:
    """Pulls made of all arms, those in flight included."""
    t = 0
    for arm in range(pulls.size):
        t += pulls[arm] + pending[arm]
    return t


@written_in
def largest_index(
    state: Any, pending: Counts, first: int, clock: Callable[[int], float], index: Callable[..., float]
) -> int:
    """After `first` pulls of each arm argmax of index(state, arm, mean, n, clock(t), best), first of equals.

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
    now, chosen, best = clock(t), -1, -math.inf
    for arm in range(pulls.size):
        if pulls[arm] > 0:  # an arm whose only pulls are in flight waits for them
            value = index(state, arm, means[arm, objective], pulls[arm] + pending[arm], now, best)
            if value > best:
                chosen = arm
                best = value
    return behind if chosen < 0 else chosen


@kernel
def pulls_made(t: int) -> int:
    """The clock of an index that looks at t itself."""
    return t


def own_noise_sd(settings: dict[str, Any]) -> float:
    """σ of the objective that the policy looks at."""
    return float(each_objective(settings["noise_sd"], settings["n_objectives"])[settings["objective"]])


class IndexPolicy(Policy):
    """A policy whose settings are an objective and its noise, and whose state is `OneObjective`."""

    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: float | ArrayLike = 1.0
    ) -> None:
        settings = checked_settings(n_arms, n_objectives, objective=objective, noise_sd=noise_sd)
        super().__init__(**settings)
        arms = untried(self.n_arms, self.n_objectives)
        self.state = OneObjective(arms, settings["objective"], own_noise_sd(settings))


class StopsAtSet(Policy):
    """A policy that stops when `target_size` arms are left; state.answer (1,) is its answer, −1 before."""

    def best_guess(self) -> int:
        """The largest average on the objective; that of the moment it stopped once it has."""
        answer = int(self.state.answer[0])
        return answer if answer >= 0 else super().best_guess()


def unanswered(settings: dict[str, Any]) -> Counts:
    """(1,) −1, or the first arm if there is nothing to find out."""
    return np.full(1, 0 if settings["target_size"] == settings["n_arms"] else -1, np.int64)
