"""Thompson sampling with Gaussian posteriors."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import whole
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Rules, record, untried
from lexbandits.policies.chance import normal, policy_key
from lexbandits.policies.index import all_pulls, one_objective, own_noise_sd
from lexbandits.policies.policy import Policy


class State(NamedTuple):
    """The arms, the objective with its noise, and the key of the draws."""

    arms: Arms
    objective: int
    noise_sd: float
    key: Counts  # (2,)


@kernel
def choose(state: State, pending: Counts) -> int:
    """argmax of a draw from N(mean, σ²/n) for each arm; σ²/n is the variance.

    The draws are those of round told + pending, so pulls handed out together differ.
    """
    pulls, means, objective, key = state.arms.pulls, state.arms.means, state.objective, state.key
    chosen, behind, fewest = -1, 0, pulls[0] + pending[0]
    t = all_pulls(pulls, pending)
    highest = 0.0
    for arm in range(pulls.size):
        n = pulls[arm] + pending[arm]
        if n < fewest:
            behind = arm
            fewest = n
        if pulls[arm] > 0:  # an arm whose only pulls are in flight waits for them
            spread = state.noise_sd / math.sqrt(pulls[arm])
            sample = means[arm, objective] + spread * normal(key, t, arm)
            if chosen < 0 or sample > highest:
                chosen = arm
                highest = sample
    return behind if chosen < 0 or fewest < 1 else chosen  # first pulls first


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Count and add up."""
    record(state.arms, arm, reward)


@kernel
def finished(state: State) -> bool:
    """Never."""
    return False


class ThompsonSampling(Policy):
    """Draw each arm's mean on one objective from N(mean, σ²/n), play the largest, after a pull of each arm.

    The posterior under a flat prior and Gaussian rewards of standard deviation σ = `noise_sd`. For
    such rewards its regret on `objective` reaches the Lai–Robbins bound Σ 2σ² ln T/Δ as T grows
    (Korda, Kaufmann and Munos 2013; Honda and Takemura 2014); several best arms do no harm. Nothing
    is promised on the other objectives. It never finishes and eliminates nobody, and its
    recommendation, the largest average on `objective`, lowest index first, has no certificate.
    Its draws are a function of `seed`, a simulated run's seed and replication, the round and the arm.
    """

    rules = Rules(choose, observe, finished)

    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        objective: int = 0,
        noise_sd: float | ArrayLike = 1.0,
        seed: int = 0,
    ) -> None:
        super().__init__(
            n_arms,
            n_objectives,
            **one_objective(n_arms, n_objectives, objective, noise_sd),
            seed=whole("seed", seed, least=0),
        )
        self.state = State(
            untried(self.n_arms, self.n_objectives),
            self._settings["objective"],
            own_noise_sd(self._settings),
            policy_key(self._settings["seed"]),
        )

    def start_run(self, seed: int, replication: int) -> None:
        """Tie the draws to a simulated run."""
        self.state.key[:] = policy_key(self._settings["seed"], (seed, replication))
