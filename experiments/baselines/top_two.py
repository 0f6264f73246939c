"""Top-Two with an empirical-best leader and a transportation-cost challenger, on lexicographic alternatives.

EB-TCI of Jourdan, Degenne, Baudry, de Heide and Kaufmann (2022), with F_b in the place of the cost of a pair.
With several objectives the alternatives move third arms too, so that nothing is proved about its proportions.
"""

import numpy as np
from numpy.typing import ArrayLike

from experiments.baselines.likelihood import LikelihoodState, finished, first_state, observe
from lexbandits._arrays import Counts
from lexbandits.policies.base import Rules, fewest_pulls
from lexbandits.policies.chance import Randomised, policy_key, uniform
from lexbandits.policies.policy import checked

LEADER_SHARE = 0.5  # β


def choose(state: LikelihoodState, pending: Counts) -> int:
    """The leader with probability β, else argmin of F_b + log n_b among the others."""
    pulls = state.arms.pulls + pending
    behind = fewest_pulls(state.arms, pending)
    if pulls[behind] == 0 or not state.evidence.any():
        return behind
    leader = int(np.argmin(state.evidence))
    if uniform(state.key, int(pulls.sum()), 0) < LEADER_SHARE:
        return leader
    index = state.evidence + np.log(pulls)
    index[leader] = np.inf
    return int(np.argmin(index))


class TopTwo(Randomised):
    """Pull the leader half of the time, else the arm that is hardest to tell from lex-optimal.

    For a unique lex-optimal arm and independent Gaussian noise: it ends with that arm with probability at
    least 1 − delta, by the same stopping rule as `TrackAndStop`.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        tradeoff: λ, at least the instance's least.
        noise_sd: σ, one or per objective.
        seed: of its draws, with a simulated run's seed and replication, and the round.

    >>> import lexbandits as lb
    >>> instance = lb.Instance([[0.5, 0.9], [0.5, 0.1], [0.1, 0.9]], noise_sd=0.3)
    >>> run = lb.simulate(TopTwo(3, 2, delta=0.1, tradeoff=1, noise_sd=0.3), instance, horizon=5000, seed=0)
    >>> run.recommendation, run.finished
    (0, True)
    """

    rules = Rules(choose, observe, finished)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        tradeoff: float,
        noise_sd: ArrayLike = 1.0,
        seed: int = 0,
    ) -> None:
        self.state = first_state(n_arms, n_objectives, delta, tradeoff, noise_sd, policy_key(seed))

    def best_guess(self) -> int:
        """The arm with the least evidence against it at the last look."""
        return int(np.argmin(self.state.evidence))
