"""KL-UCB (Garivier and Cappé 2011), for Bernoulli and for Gaussian rewards."""

import math

from numpy.typing import ArrayLike

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.kinds import NoiseKind
from lexbandits.policies.base import Rules, never, observe_only, untried
from lexbandits.policies.index import OneDivergence, bernoulli_divergence, largest_index
from lexbandits.policies.policy import Policy, checked

HALVINGS = 60  # of an interval within [0, 1]: down to neighbouring floats


@kernel
def largest_plausible(mean: float, level: float) -> float:
    """The largest q with kl(mean, q) ≤ level, by bisection."""
    low, high = min(max(mean, 0.0), 1.0), 1.0
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        if bernoulli_divergence(mean, middle) <= level:
            low = middle
        else:
            high = middle
    return low


@kernel(inline="always")
def index(state: OneDivergence, arm: int, mean: float, n: int, t: int, log_t: float, best: float) -> float:
    """max{q: n·d(mean, q) ≤ log t + c·log log t}."""
    level = log_t + state.exploration * math.log(max(log_t, 1.0))
    if not state.is_bernoulli:
        return mean + state.noise_sd * math.sqrt(2.0 * level / n)
    # an arm that cannot reach the best index so far needs no bisection
    if mean < best and n * bernoulli_divergence(mean, best) > level:
        return -math.inf
    return largest_plausible(mean, level / n)


@kernel
def choose(state: OneDivergence, pending: Counts) -> int:
    """argmax of the index, t the pulls made of all arms, those in flight included."""
    return largest_index(state, pending, 1, index)


class KLUCB(Policy):
    """Play the largest q with n·d(mean, q) ≤ log t + c·log log t on one objective, after a pull of each arm.

    For rewards in [0, 1] with `divergence="bernoulli"` and c ≥ 3, and for Gaussian rewards with
    `divergence="gaussian"`, its regret on `objective` is at most Σ Δ·log T/d(μ, μ*) to leading order: the
    bound of Lai and Robbins (1985) for Bernoulli and for Gaussian rewards. Garivier and Cappé recommend c = 0
    in practice. Nothing is promised on the other objectives. It never finishes and eliminates nobody, and its
    recommendation, the largest average on `objective`, lowest index first, has no certificate.

    Args:
        n_arms, n_objectives: K and m.
        objective: the one that counts.
        divergence: "gaussian", or "bernoulli" for rewards in [0, 1].
        noise_sd: σ of Gaussian rewards; "bernoulli" ignores it.
        exploration: c.

    >>> policy = KLUCB(2, 1, divergence="bernoulli")
    >>> policy.tell_many([0, 1], [[0.0], [1.0]])
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
        exploration: float = 0.0,
    ) -> None:
        sd = float(each_objective(noise_sd, n_objectives)[objective])
        arms = untried(n_arms, n_objectives)
        self.state = OneDivergence(arms, objective, sd, divergence == NoiseKind.BERNOULLI, exploration)
