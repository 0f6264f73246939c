"""RoundRobin: every arm in turn for ever, the yardstick of what learning is worth."""

import math
from typing import NamedTuple

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import checked_settings
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Rules, fewest_pulls, never, observe_only, untried
from lexbandits.policies.policy import Policy


class State(NamedTuple):
    """The arms."""

    arms: Arms


@kernel
def choose(state: State, pending: Counts) -> int:
    """The arm with the fewest pulls."""
    return fewest_pulls(state.arms, pending)


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

    rules = Rules(choose, observe_only, never, quiet_band)
    round_robin = True

    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: float | ArrayLike = 1.0
    ) -> None:
        super().__init__(**checked_settings(n_arms, n_objectives, objective=objective, noise_sd=noise_sd))
        self.state = State(untried(n_arms, n_objectives))
