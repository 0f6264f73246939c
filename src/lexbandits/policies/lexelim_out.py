"""LexElim-Out: Algorithm 1 of the paper, which settles one objective after the other.

lines   here
1–2     `State`, made by `LexElimOut`
3–4, 14 `skip_settled` and `all_settled`; the output is `recommendation`
5       `choose_fewest`: the widest arm has the fewest pulls (Lemma 3)
6–7     `observe`, by `keep_close`, when the reward of round t is told and before it is folded in
8       the caller pulls
9–11    `observe`, by `add_reward`; c(a_t) is computed where it is used
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.radius import confidence_width
from lexbandits.policies.base import Arms, Rules, add_reward, choose_fewest, ranked, untried
from lexbandits.policies.filters import all_settled, keep_close, skip_settled, widest
from lexbandits.policies.policy import Policy, checked


class State(NamedTuple):
    """Lines 1-2: the arms, and the objective of the outer loop."""

    arms: Arms
    layer: Counts  # (1,) the objective being settled; m when all are
    sizes: Counts  # (m,) |O_*(i)|
    factors: Vector  # (m,) 2σ_i, what line 7 multiplies c(a_t) by
    delta: float


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Lines 6-11. Elimination uses the estimates from before this reward, as the paper does."""
    if state.arms.active[arm] and not all_settled(state):
        layer = state.layer[0]
        keep_close(state.arms, layer, state.factors[layer] * widest(state.arms, state.delta))  # lines 6-7
        skip_settled(state)  # lines 3-4
    add_reward(state.arms, arm, reward)  # lines 9-10


@kernel
def quiet_band(state: State, pulls: int, band: Vector) -> None:
    """The spread of means within which line 7 keeps every arm: finite on the current objective only."""
    layer = state.layer[0]
    for i in range(band.size):
        band[i] = np.inf
    band[layer] = state.factors[layer] * confidence_width(
        pulls, state.arms.pulls.size, band.size, state.delta
    )


class LexElimOut(Policy):
    """Algorithm 1: settle the objectives one by one, given how many arms tie up to each of them.

    It ends with the lex-optimal arm with probability at least 1 − delta (Lemma 1), and meanwhile its
    regret is bounded (Theorem 1, with the corrections of `lexbandits.theory`). Told sizes that are too
    small it goes on eliminating among arms that tie, and never ends if they tie exactly: give runs a
    horizon. Unfinished, it recommends the arm that would be left if each remaining objective kept its
    |O_*(i)| best estimates.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        optimal_set_sizes: |O_*(i)| of the instance, per objective, the last one 1.
        noise_sd: sub-Gaussian scale, one or per objective; 1 gives the paper's widths as printed.

    >>> policy = LexElimOut(3, 2, delta=0.1, optimal_set_sizes=[2, 1])
    >>> policy.tell_many([0, 1, 2], [[1, 0], [1, 1], [0, 1]])
    >>> policy.recommendation, policy.rounds
    (1, 3)
    """

    rules = Rules(choose_fewest, observe, all_settled, quiet_band)
    round_robin = True

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        optimal_set_sizes: ArrayLike,
        noise_sd: ArrayLike = 1.0,
    ) -> None:
        self.state = State(
            untried(n_arms, n_objectives),
            layer=np.zeros(1, np.int64),
            sizes=np.array(optimal_set_sizes),
            factors=2.0 * each_objective(noise_sd, n_objectives),
            delta=delta,
        )
        skip_settled(self.state)  # line 4 before the first round

    def best_guess(self) -> int:
        """The arm left if each remaining objective kept its |O_*(i)| best estimates."""
        left = list(self.candidates)
        for i in range(int(self.state.layer[0]), self.n_objectives):
            left = ranked(self.state.arms, left, i)[: self.state.sizes[i]]
        return left[0]
