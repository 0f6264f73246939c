"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) for sub-Gaussian rewards."""

import math

from numpy.typing import ArrayLike

from lexbandits.arrays import Counts
from lexbandits.checks import checked_settings
from lexbandits.jit import kernel, written_in
from lexbandits.policies.base import Rules, never, observe_only
from lexbandits.policies.index import OneObjective, largest_index, looking_at_one
from lexbandits.policies.policy import Policy


@written_in
def index(state: OneObjective, arm: int, mean: float, n: int, t: int) -> float:
    """mean + σ·sqrt(8 ln t/n)."""
    return mean + state.noise_sd * math.sqrt(8.0 * math.log(t) / n)


@kernel
def choose(state: OneObjective, pending: Counts) -> int:
    """argmax of the index."""
    return largest_index(state, pending, 1, index)


class UCB1(Policy):
    """Play the largest mean + σ·sqrt(8 ln t/n) on one objective, after one pull of each arm.

    For independent rewards whose `objective` is σ-sub-Gaussian, σ = `noise_sd`: expected regret on
    that objective at most Σ (32σ² ln T/Δ + (1 + π²/3)Δ) over the arms with gap Δ > 0; several best
    arms do no harm. With σ = 1/2 this is UCB1 as published, for rewards in [0, 1]. Nothing is
    promised on the other objectives. It minimises regret: it never finishes and eliminates nobody,
    and its recommendation, the largest average on `objective`, lowest index first, has no
    certificate.
    """

    rules = Rules(choose, observe_only, never)

    def __init__(
        self, n_arms: int, n_objectives: int, *, objective: int = 0, noise_sd: float | ArrayLike = 1.0
    ) -> None:
        settings = checked_settings(n_arms, n_objectives, objective=objective, noise_sd=noise_sd)
        super().__init__(**settings)
        self.state = looking_at_one(settings)
