"""MOSS-anytime (Degenne and Perchet 2016) for sub-Gaussian rewards."""

import math

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import kernel
from lexbandits.policies.base import Rules, record, untried
from lexbandits.policies.index import OneObjective, all_pulls, one_objective, own_noise_sd
from lexbandits.policies.policy import Policy


@kernel
def choose(state: OneObjective, pending: Counts) -> int:
    """argmax of mean + 2σ·sqrt((2.35/2)·ln₊(t/(K n))/n), t all pulls made, those in flight included."""
    pulls, means, objective = state.arms.pulls, state.arms.means, state.objective
    chosen, behind, fewest = -1, 0, pulls[0] + pending[0]
    t = all_pulls(pulls, pending)
    highest = 0.0
    for arm in range(pulls.size):
        n = pulls[arm] + pending[arm]
        if n < fewest:
            behind = arm
            fewest = n
        if pulls[arm] > 0:  # an arm whose only pulls are in flight waits for them
            index = means[arm, objective]
            if t > pulls.size * n:
                log = math.log(t / (pulls.size * n))
                index += 2.0 * state.noise_sd * math.sqrt(2.35 / 2.0 * log / n)
            if chosen < 0 or index > highest:
                chosen = arm
                highest = index
    return behind if chosen < 0 or fewest < 1 else chosen  # first pulls first


@kernel
def observe(state: OneObjective, arm: int, reward: Vector) -> None:
    """Count and add up."""
    record(state.arms, arm, reward)


@kernel
def finished(state: OneObjective) -> bool:
    """Never."""
    return False


class MOSSAnytime(Policy):
    """Play the largest mean + 2σ·sqrt((2.35/2)·ln₊(t/(K n))/n) on one objective, after a pull of each arm.

    For independent rewards whose `objective` is σ-sub-Gaussian, σ = `noise_sd`: the expected regret
    on that objective is of order σ·sqrt(KT), the best possible in the worst case, at every T without
    knowing it; several best arms do no harm. With σ = 1/2 this is the published index for rewards in
    [0, 1], α = 1.35. Nothing is promised on the other objectives. It minimises regret: it never
    finishes and eliminates nobody, and its recommendation, the largest average on `objective`,
    lowest index first, has no certificate.
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
