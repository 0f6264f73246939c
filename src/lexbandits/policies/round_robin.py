"""RoundRobin: every arm in turn for ever, the yardstick of what learning is worth."""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.policies.base import Rules, choose_fewest, never, observe_only
from lexbandits.policies.index import IndexPolicy, OneObjective


@kernel
def quiet_band(state: OneObjective, pulls: int, band: Vector) -> None:
    """Nobody is ever eliminated."""
    for i in range(band.size):
        band[i] = math.inf


class RoundRobin(IndexPolicy):
    """Uniform sampling: the arm with the fewest pulls, lowest index first.

    It assumes nothing about rewards or ties, never finishes and eliminates nobody; its regret on
    objective i is t times the average gap.

    Args:
        n_arms, n_objectives: K and m.
        objective: of which it recommends the largest average, lowest index first.
        noise_sd: accepted as everywhere; it changes nothing.

    >>> RoundRobin(3, 1).ask_many(4)
    [0, 1, 2, 0]
    """

    rules = Rules(choose_fewest, observe_only, never, quiet_band)
    round_robin = True
