"""MOSS-anytime (Degenne and Perchet 2016) for sub-Gaussian rewards."""

import math

from lexbandits._arrays import Counts
from lexbandits._jit import kernel
from lexbandits.policies.base import Rules, never, observe_only
from lexbandits.policies.index import IndexPolicy, OneObjective, largest_index


@kernel(inline="always")
def index(state: OneObjective, arm: int, mean: float, n: int, t: int, log_t: float, best: float) -> float:
    """mean + 2σ·sqrt((2.35/2)·ln₊(t/(K n))/n)."""
    fair = state.arms.pulls.size * n
    return mean if t <= fair else mean + 2.0 * state.noise_sd * math.sqrt(2.35 / 2.0 * math.log(t / fair) / n)


@kernel
def choose(state: OneObjective, pending: Counts) -> int:
    """argmax of the index, t the pulls made of all arms, those in flight included."""
    return largest_index(state, pending, 1, index)


class MOSSAnytime(IndexPolicy):
    """Play the largest mean + 2σ·sqrt((2.35/2)·ln₊(t/(K n))/n) on one objective, after a pull of each arm.

    For independent rewards: the expected regret on that objective is of order σ·sqrt(KT), the best
    possible in the worst case, at every T without knowing it; several best arms do no harm. With σ = 1/2
    this is the published index for rewards in [0, 1], α = 1.35. Nothing is promised on the other
    objectives. It minimises regret: it never finishes and eliminates nobody, and its recommendation, the
    largest average on `objective`, lowest index first, has no certificate.

    Args:
        n_arms, n_objectives: K and m.
        objective: the one that counts.
        noise_sd: σ, its sub-Gaussian scale.

    >>> policy = MOSSAnytime(2, 1, noise_sd=0.5)
    >>> policy.tell_many([0, 1], [[0.2], [0.7]])
    >>> policy.recommendation, policy.finished
    (1, False)
    """

    rules = Rules(choose, observe_only, never)
