"""RoundRobin: every arm in turn for ever, the yardstick of what learning is worth."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Rules, fewest_pulls, record, untried
from lexbandits.policies.index import one_objective
from lexbandits.policies.policy import Policy


class State(NamedTuple):
    """The arms."""

    arms: Arms


@kernel
def choose(state: State, pending: Counts) -> int:
    """The arm with the fewest pulls."""
    return fewest_pulls(state.arms, pending)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Count and add up."""
    record(state.arms, arm, reward)


@kernel
def finished(state: State) -> bool:
    """Never."""
    return False


@kernel
def quiet_band(state: State, pulls: int, band: Vector) -> None:
    """Nobody is ever eliminated."""
    for i in range(band.size):
        band[i] = math.inf


class RoundRobin(Policy):
    """Uniform sampling: the arm with the fewest pulls, lowest index first.

    It assumes nothing about rewards or ties, never finishes and eliminates nobody; its regret on
    objective i is t times the average gap. It recommends the arm with the largest average on
    `objective`, lowest index first. `noise_sd` is accepted as everywhere and changes nothing.
    """

    rules = Rules(choose, observe, finished, quiet_band)
    round_robin = True

    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: float | ArrayLike = 1.0
    ) -> None:
        super().__init__(n_arms, n_objectives, **one_objective(n_arms, n_objectives, objective, noise_sd))
        self.state = State(untried(self.n_arms, self.n_objectives))
