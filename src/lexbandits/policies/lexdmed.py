"""LexDMED: little regret on every objective, given λ. Passes over the plausible arms, without δ or horizon.

After DMED (Honda and Takemura 2010), with the distance to C_λ in place of the Kullback-Leibler distance to a
mean: an arm p is pulled while its evidence E_p is at most log t − (1 − caution)·log n_p. docs/proofs.md has
Theorem R8.
"""

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
    plan_pass,
    planned,
)
from lexbandits.policies.policy import checked


@kernel
def observe(state: Contest, arm: int, reward: Vector) -> None:
    """Fold in one reward; when the pass is complete, plan the next one."""
    observe_one(state, arm, reward, plan_pass)


@kernel
def observe_sum(state: Contest, arm: int, count: int, sums: Vector) -> None:
    """Fold in `count` rewards at once."""
    observe_many(state, arm, count, sums, plan_pass)


class LexDMED(PlausiblePolicy):
    """Minimise regret on every objective in order of priority, given the trade-off λ of Eq. (2).

    The evidence E_p against an arm is the largest, over all other arms b, of
    ½·n_p·n_b/(n_p + n_b)·dist²(difference of means, C_λ), in units of the noise. A pass pulls the leader,
    which has the least evidence against it, and every arm p with E_p ≤ log t − (1 − caution)·log n_p. A
    leader that is alone is pulled n/50 times before the next decision. The policy needs neither δ nor a
    horizon, never finishes and eliminates nobody. Its recommendation, the leader, has no certificate.

    What is proven (docs/proofs.md, Theorem R8): with known σ, caution 1, tradeoff_slack 1 and loglog > m + 3,
    arm a is pulled at most (1 + o(1))·log T/d(a) times on average. That is optimal for m ≤ 2 objectives, for
    λ = 0, and wherever d = d'. **The defaults are not covered.** They were chosen by simulation
    (docs/regret.md, which counts the few runs in a thousand that stay on a wrong arm for long). caution=1
    makes these rarer, and loglog=1 rarer still, for more regret on average. Slack does not remove them: an
    arm that ties on objective 1 lies on the boundary of C_λ for every λ.

    After Honda and Takemura (2010). Its state takes O(K²) memory. Distances assume that the noise of
    different objectives is independent.

    Args:
        n_arms, n_objectives: K and m.
        tradeoff: λ, at least the instance's least. Too large a λ costs regret on later objectives.
        noise_sd: sub-Gaussian scale, one or per objective; None estimates it from the variance within arms.
        caution: 1 pulls every arm with E_p ≤ log t; less is bolder with arms that have many pulls.
        tradeoff_slack: evidence is computed for tradeoff_slack·λ, so that no arm makes Eq. (2) tight.
        loglog: adds loglog·log log t to the threshold.
        first: pulls of every arm before the first decision.

    >>> from lexbandits import paper_instance, simulate
    >>> instance = paper_instance(10)
    >>> run = simulate(LexDMED(10, 3, tradeoff=2, noise_sd=0.32), instance, horizon=10_000, seed=0)
    >>> run.recommendation == instance.lex_optimal_arm, run.finished
    (True, False)
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
        caution: float = 0.5,
        tradeoff_slack: float = 1.1,
        loglog: float = 0.0,
        first: int = 5,
    ) -> None:
        self.state = first_contest(
            untried(n_arms, n_objectives),
            tradeoff=tradeoff_slack * tradeoff,
            noise_sd=noise_sd,
            first=first,
            caution=caution,
            loglog=loglog,
        )
