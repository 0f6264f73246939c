"""LexElim-In: Algorithm 2 of the paper, which filters on every objective in every round.

lines   here
1–2     `State`, made by `LexElimIn`
3, 15   `finished`; the output is `recommendation`
4       `choose_fewest`: the widest arm has the fewest pulls (Lemma 3)
5–9     `observe`, by `keep_close`, when the reward of round t is told and before it is folded in
10      the caller pulls
11–13   `observe`, by `add_reward`; c(a_t) is computed where it is used
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.radius import confidence_width
from lexbandits.policies.base import Arms, Rules, add_reward, choose_fewest, untried
from lexbandits.policies.filters import keep_close, more_active_than, widest
from lexbandits.policies.policy import Policy, checked


class State(NamedTuple):
    """Lines 1-2: the arms, and what Eq. (5) multiplies c(a_t) by."""

    arms: Arms
    factors: Vector  # (m,) σ·(2 + 4λ + … + 4λ^(i−1)), or its form for one σ per objective
    delta: float


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Lines 5-13. Elimination uses the estimates from before this reward, as the paper does."""
    if state.arms.active[arm] and not finished(state):
        width = widest(state.arms, state.delta)  # c(a_t)
        for i in range(state.factors.size):  # line 6
            keep_close(state.arms, i, state.factors[i] * width)  # lines 7-8
    add_reward(state.arms, arm, reward)  # lines 11-12


@kernel
def finished(state: State) -> bool:
    """Line 3."""
    return not more_active_than(state.arms, 1)


@kernel
def quiet_band(state: State, pulls: int, band: Vector) -> None:
    """The spread of means on each objective within which lines 6-9 keep every arm."""
    width = confidence_width(pulls, state.arms.pulls.size, band.size, state.delta)
    for i in range(band.size):
        band[i] = state.factors[i] * width


class LexElimIn(Policy):
    """Algorithm 2: eliminate on all objectives at once, given the trade-off λ of Eq. (2).

    For a unique lex-optimal arm: it ends with that arm with probability at least 1 − delta (Lemmas 1
    and 6), and meanwhile its regret is bounded (Theorem 3, Corollary 1). When another arm ties with it on
    every objective it never ends: give runs a horizon. Unfinished, it recommends the arm that would be
    left if the estimates stood still and the widths went on shrinking.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        tradeoff: λ, at least the instance's least.
        noise_sd: sub-Gaussian scale, one or per objective; 1 gives the paper's widths as printed.

    >>> policy = LexElimIn(3, 2, delta=0.1, tradeoff=2)
    >>> policy.tell(policy.ask(), [0.3, 0.9])
    >>> policy.ask(), policy.candidates, policy.finished
    (1, (0, 1, 2), False)
    """

    rules = Rules(choose_fewest, observe, finished, quiet_band)
    round_robin = True

    @checked
    def __init__(
        self, n_arms: int, n_objectives: int, *, delta: float, tradeoff: float, noise_sd: ArrayLike = 1.0
    ) -> None:
        factors = width_factors(tradeoff, each_objective(noise_sd, n_objectives))
        self.state = State(untried(n_arms, n_objectives), factors, delta)

    def best_guess(self) -> int:
        """The arm left if the estimates stood still and the widths went on shrinking."""
        arms, factors = self.state.arms, self.state.factors
        left = [arm for arm in self.candidates if arms.pulls[arm] > 0] or list(self.candidates)
        while len(left) > 1:
            means = arms.means[left]
            best = means.max(axis=0)
            worst = ((best - means) / factors).max(axis=1)
            leads = (means == best).any(axis=1)
            # the first to cross its threshold goes; of equals the last, so that the lowest index stays;
            # deficits stay what they are until one goes that leads on some objective
            going = np.lexsort((np.arange(len(left)), worst))[:0:-1]
            first_leader = int(np.argmax(leads[going])) if leads[going].any() else going.size - 1
            left = np.delete(left, going[: first_leader + 1]).tolist()
        return left[0]


def width_factors(tradeoff: float, noise_sd: Vector) -> Vector:
    """(m,) what line 8 multiplies c(a_t) by: t_i = 2σ_i + λ·max_{j<i}(t_j + 2σ_j), t_1 = 2σ_1.

    For equal σ this is the paper's σ·(2 + 4λ + … + 4λ^(i−1)), by the induction of Lemma 6.

    >>> width_factors(2.0, each_objective(1.0, 3)).tolist()
    [2.0, 10.0, 26.0]
    """
    factors = 2.0 * noise_sd
    for i in range(1, factors.size):
        factors[i] += tradeoff * max(factors[j] + 2.0 * noise_sd[j] for j in range(i))
    return factors
