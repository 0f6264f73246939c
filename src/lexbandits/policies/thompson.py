"""Thompson sampling with Gaussian posteriors."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, Rules, never, observe_only, untried
from lexbandits.policies.chance import Randomised, normal, policy_key
from lexbandits.policies.index import largest_index
from lexbandits.policies.policy import checked


class State(NamedTuple):
    """The arms, the objective with its noise, and the key of the draws."""

    arms: Arms
    objective: int
    noise_sd: float
    key: Counts  # (2,)


@kernel(inline="always")
def index(state: State, arm: int, mean: float, n: int, t: int, log_t: float, best: float) -> float:
    """A draw of round t from N(mean, σ²/n), n without the pulls in flight."""
    return mean + state.noise_sd / math.sqrt(state.arms.pulls[arm]) * normal(state.key, t, arm)


@kernel
def choose(state: State, pending: Counts) -> int:
    """argmax of the draws; t counts pulls in flight, so that those handed out together differ."""
    return largest_index(state, pending, 1, index)


class ThompsonSampling(Randomised):
    """Draw each arm's mean on one objective from N(mean, σ²/n), play the largest, after a pull of each arm.

    The posterior under a flat prior and Gaussian rewards. For such rewards its regret on `objective`
    reaches the Lai–Robbins bound Σ 2σ² ln T/Δ as T grows (Korda, Kaufmann and Munos 2013; Honda and
    Takemura 2014); several best arms do no harm. Nothing is promised on the other objectives. It never
    finishes and eliminates nobody, and its recommendation, the largest average on `objective`, lowest
    index first, has no certificate.

    Args:
        n_arms, n_objectives: K and m.
        objective: the one that counts.
        noise_sd: σ, the standard deviation of its noise.
        seed: of its draws, with a simulated run's seed and replication, the round and the arm.

    >>> policy = ThompsonSampling(2, 1, noise_sd=0.1)
    >>> policy.tell_many([0, 1], [[0.0], [9.0]])
    >>> policy.ask()
    1
    """

    rules = Rules(choose, observe_only, never)

    @checked
    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: ArrayLike = 1.0, seed: int = 0
    ) -> None:
        sd = each_objective(noise_sd, n_objectives)[objective]
        self.state = State(untried(n_arms, n_objectives), objective, float(sd), policy_key(seed))
