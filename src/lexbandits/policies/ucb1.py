"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) for sub-Gaussian rewards."""

import math

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import kernel
from lexbandits.policies.base import Rules, record, untried
from lexbandits.policies.index import OneObjective, one_objective, own_noise_sd
from lexbandits.policies.policy import Policy


@kernel
def choose(state: OneObjective, pending: Counts) -> int:
    """argmax of mean + σ·sqrt(8 ln t/n), t the pulls made of all arms, those in flight included."""
    pulls, means, objective, noise_sd = state.arms.pulls, state.arms.means, state.objective, state.noise_sd
    behind, fewest, t = 0, pulls[0] + pending[0], 0
    for arm in range(pulls.size):
        n = pulls[arm] + pending[arm]
        t += n
        if n < fewest:
            behind = arm
            fewest = n
    if fewest < 1:  # first pulls first
        return behind
    log_t = math.log(t)
    chosen, highest = -1, -math.inf
    square = 8.0 * log_t * noise_sd * noise_sd * (1.0 + 1e-12)
    for arm in range(pulls.size):
        n = pulls[arm] + pending[arm]
        lead = highest - means[arm, objective]
        # a lead of more than σ·sqrt(8 ln t/n) needs no root; an arm whose only pulls are in flight waits
        if pulls[arm] > 0 and (lead < 0.0 or lead * lead * n <= square):
            index = means[arm, objective] + noise_sd * math.sqrt(8.0 * log_t / n)
            if index > highest:
                chosen = arm
                highest = index
    return behind if chosen < 0 else chosen


@kernel
def observe(state: OneObjective, arm: int, reward: Vector) -> None:
    """Count and add up."""
    record(state.arms, arm, reward)


@kernel
def finished(state: OneObjective) -> bool:
    """Never."""
    return False


class UCB1(Policy):
    """Play the largest mean + σ·sqrt(8 ln t/n) on one objective, after one pull of each arm.

    For independent rewards whose `objective` is σ-sub-Gaussian, σ = `noise_sd`: expected regret on
    that objective at most Σ (32σ² ln T/Δ + (1 + π²/3)Δ) over the arms with gap Δ > 0; several best
    arms do no harm. With σ = 1/2 this is UCB1 as published, for rewards in [0, 1]. Nothing is
    promised on the other objectives. It minimises regret: it never finishes and eliminates nobody,
    and its recommendation, the largest average on `objective`, lowest index first, has no
    certificate.
    """

    rules = Rules(choose, observe, finished)

    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: float | ArrayLike = 1.0
    ) -> None:
        super().__init__(n_arms, n_objectives, **one_objective(n_arms, n_objectives, objective, noise_sd))
        self.state = OneObjective(
            untried(self.n_arms, self.n_objectives),
            self._settings["objective"],
            own_noise_sd(self._settings),
        )
