"""LexIMED: the index form of LexDMED. The arm with the least E_p + log n_p is next.

After IMED (Honda and Takemura 2015), with the distance to C_λ in place of the Kullback-Leibler distance to a
mean.
"""

import math

from numpy.typing import ArrayLike

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.policies.base import Rules, never, untried
from lexbandits.policies.plausibility import (
    Contest,
    PlausiblePolicy,
    choose_planned,
    first_contest,
    observe_many,
    observe_one,
    plan,
    planned,
    weigh_arms,
)
from lexbandits.policies.policy import checked


@kernel
def plan_least(state: Contest) -> None:
    """Ask for the arm with the least E_p + log n_p, lowest index first; for a block if it is the leader."""
    weigh_arms(state)
    chosen, least = -1, math.inf
    for arm in range(state.evidence.size):
        index = state.evidence[arm] + math.log(state.arms.pulls[arm])
        if chosen < 0 or index < least:
            chosen, least = arm, index
    plan(state, chosen)


@kernel
def observe(state: Contest, arm: int, reward: Vector) -> None:
    """Fold in one reward; when the block is complete, plan the next one."""
    observe_one(state, arm, reward, plan_least)


@kernel
def observe_sum(state: Contest, arm: int, count: int, sums: Vector) -> None:
    """Fold in `count` rewards at once."""
    observe_many(state, arm, count, sums, plan_least)


class LexIMED(PlausiblePolicy):
    """Minimise regret on every objective in order of priority by an index, given λ of Eq. (2).

    Evidence and leader are those of `LexDMED`; the arm with the least E_p + log n_p is pulled next. It has
    the least mean regret of all policies here and a heavier tail than `LexDMED` (docs/regret.md). Nothing is
    proven about it, and there is a reason for doubt: arms that tie on objective 1 lie on the boundary of C_λ,
    where the margin that the proof for one objective uses (Honda and Takemura 2015) is missing. Prefer
    `LexDMED` unless the mean is all that counts.

    Args:
        n_arms, n_objectives: K and m.
        tradeoff: λ, at least the instance's least.
        noise_sd: sub-Gaussian scale, one or per objective; None estimates it from the variance within arms.
        tradeoff_slack: evidence is computed for tradeoff_slack·λ, so that no arm makes Eq. (2) tight.
        first: pulls of every arm before the first decision.

    >>> policy = LexIMED(2, 2, tradeoff=1, noise_sd=0.1, first=1)
    >>> policy.tell_many([0, 1], [[0.5, 0.1], [0.5, 0.9]])
    >>> policy.ask(), policy.recommendation
    (1, 1)
    """

    rules = Rules(choose_planned, observe, never, batch=planned, observe_sum=observe_sum)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        tradeoff: float,
        noise_sd: ArrayLike | None = None,
        tradeoff_slack: float = 1.1,
        first: int = 5,
    ) -> None:
        self.state = first_contest(
            untried(n_arms, n_objectives),
            tradeoff=tradeoff_slack * tradeoff,
            noise_sd=noise_sd,
            first=first,
        )
