"""IMED, indexed minimum empirical divergence (Honda and Takemura 2015)."""

import math

from numpy.typing import ArrayLike

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.kinds import NoiseKind
from lexbandits.policies.base import Rules, fewest_pulls, never, observe_only, untried
from lexbandits.policies.index import OneDivergence, divergence
from lexbandits.policies.policy import Policy, checked


@kernel
def choose(state: OneDivergence, pending: Counts) -> int:
    """argmin of n·d(mean, best mean) + log n, pulls in flight included; each arm once first."""
    pulls, means, objective = state.arms.pulls, state.arms.means, state.objective
    behind = fewest_pulls(state.arms, pending)
    if pulls[behind] + pending[behind] == 0:
        return behind
    best = -math.inf
    for arm in range(pulls.size):
        if pulls[arm] > 0:
            best = max(best, means[arm, objective])
    chosen, least = behind, math.inf
    for arm in range(pulls.size):
        if pulls[arm] > 0:  # an arm whose only pulls are in flight waits for them
            n = pulls[arm] + pending[arm]
            cost = n * divergence(state.is_bernoulli, state.noise_sd, means[arm, objective], best)
            index = cost + math.log(n)
            if index < least:
                chosen = arm
                least = index
    return chosen


class IMED(Policy):
    """Play the smallest n·d(mean, best mean) + log n on one objective, after a pull of each arm.

    No bound is inverted and nothing is tuned. For Bernoulli and for Gaussian rewards its regret on
    `objective` reaches the bound of Lai and Robbins (1985), Σ Δ·log T/d(μ, μ*), as T grows. Nothing is
    promised on the other objectives: `LexIMED` is its lexicographic form. It never finishes and eliminates
    nobody, and its recommendation, the largest average on `objective`, lowest index first, has no
    certificate.

    Args:
        n_arms, n_objectives: K and m.
        objective: the one that counts.
        divergence: "gaussian", or "bernoulli" for rewards in [0, 1].
        noise_sd: σ of Gaussian rewards; "bernoulli" ignores it.

    >>> policy = IMED(2, 1, noise_sd=0.5)
    >>> policy.tell_many([0, 1], [[0.2], [0.7]])
    >>> policy.ask()
    1
    """

    rules = Rules(choose, observe_only, never)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        objective: int = 0,
        divergence: str = "gaussian",
        noise_sd: ArrayLike = 1.0,
    ) -> None:
        sd = float(each_objective(noise_sd, n_objectives)[objective])
        arms = untried(n_arms, n_objectives)
        self.state = OneDivergence(arms, objective, sd, divergence == NoiseKind.BERNOULLI, 0.0)
