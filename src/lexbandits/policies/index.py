"""What the policies that look at one objective share: their state, the largest index, and divergences."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

from numpy.typing import ArrayLike

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, untried
from lexbandits.policies.policy import Policy, checked


class OneObjective(NamedTuple):
    """The state of an index policy: the arms, and the objective with its noise.

    Shared, as compiled functions tell named tuples apart by name and fields: two of a kind are slow.
    """

    arms: Arms
    objective: int
    noise_sd: float


@kernel(inline="always")
def largest_index(state: Any, pending: Counts, first: int, index: Callable[..., float]) -> int:
    """After `first` pulls of each arm argmax of index(state, arm, mean, n, t, log t, best), first of equals.

    n are the pulls of the arm and t those of all arms, both with those in flight. `best` is the largest
    index so far: one that does not exceed it need not be exact. `index` is a `kernel(inline="always")`.
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


# --- how hard it is to mistake one mean for another: d(p, q) of KL-UCB and IMED


class OneDivergence(NamedTuple):
    """The state of a policy that looks at one objective through a divergence."""

    arms: Arms
    objective: int
    noise_sd: float
    is_bernoulli: bool
    exploration: float  # c of log t + c·log log t


@kernel
def bernoulli_divergence(p: float, q: float) -> float:
    """kl(p, q) of two Bernoulli laws, p moved into [0, 1]; infinite where q excludes what p allows."""
    p = min(max(p, 0.0), 1.0)
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return max(total, 0.0)


@kernel
def divergence(is_bernoulli: bool, noise_sd: float, p: float, q: float) -> float:
    """d(p, q): kl of Bernoulli laws, or (p − q)²/(2σ²) of Gaussian ones."""
    if is_bernoulli:
        return bernoulli_divergence(p, q)
    return (p - q) * (p - q) / (2.0 * noise_sd * noise_sd)
