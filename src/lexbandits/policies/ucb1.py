"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) for sub-Gaussian rewards."""

import math

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits.policies.base import Rules, never, observe_only
from lexbandits.policies.index import IndexPolicy, OneObjective, largest_index


@kernel(inline="always")
def index(state: OneObjective, arm: int, mean: float, n: int, t: int, log_t: float, best: float) -> float:
    """mean + σ·sqrt(8 ln t/n); no root where the best surely is ahead by more."""
    lead = best - mean
    if lead < 0.0 or lead * lead * n <= 8.0 * log_t * state.noise_sd * state.noise_sd * (1.0 + 1e-12):
        return mean + state.noise_sd * math.sqrt(8.0 * log_t / n)
    return -math.inf


@kernel
def choose(state: OneObjective, pending: Counts) -> int:
    """argmax of the index, t the pulls made of all arms, those in flight included."""
    return largest_index(state, pending, 1, index)


class UCB1(IndexPolicy):
    """Play the largest mean + σ·sqrt(8 ln t/n) on one objective, after one pull of each arm.

    For independent rewards: expected regret on that objective at most
    Σ (32σ² ln T/Δ + (1 + π²/3)Δ) over the arms with gap Δ > 0; several best arms do no harm. With σ = 1/2
    this is UCB1 as published, for rewards in [0, 1]. Nothing is promised on the other objectives. It
    minimises regret: it never finishes and eliminates nobody, and its recommendation, the largest
    average on `objective`, lowest index first, has no certificate.

    Args:
        n_arms, n_objectives: K and m.
        objective: the one that counts.
        noise_sd: σ, its sub-Gaussian scale.

    >>> policy = UCB1(2, 1, noise_sd=0.5)
    >>> policy.tell_many([0, 1], [[0.2], [0.7]])
    >>> policy.ask()
    1
    """

    rules = Rules(choose, observe_only, never)
