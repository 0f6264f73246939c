"""MTLO, multiple trade-offs under lexicographic ordering (Xue, Lin, Zhang and Zhang 2025), on finite arms.

The paper's arms are vectors; here arm a is the a-th basis vector of R^K, as in its experiments. Then the
ridge estimate of a mean is sum/(n + 1) and the confidence term is w(a) = γ_t/sqrt(n + 1).

lines of Algorithm 3   here
2–3                    `_estimates`
5, 12–13               the loop in `choose`, W = 2^−s
6–8                    its end, W = 1/sqrt(T): a random arm of those that are left
9–10                   an arm whose confidence term is wider than 2^−s is played
LOAF (Algorithm 2)     `_filter`
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, Rules, never, observe_only, untried
from lexbandits.policies.chance import Randomised, policy_key, uniform
from lexbandits.policies.policy import checked


class State(NamedTuple):
    """The arms, what Algorithm 3 requires, and the key of its draws."""

    arms: Arms
    tradeoff: float  # λ
    horizon: int  # T
    delta: float
    noise_sd: float  # R
    bound: float  # U
    scale: float
    key: Counts  # (2,)


@kernel
def _estimates(state: State, pending: Counts, estimates: Vector, widths: Vector) -> int:
    """Lines 2-3: Eqs. (6) and (7) for basis vectors; returns t − 1, pulls in flight included."""
    pulls, sums = state.arms.pulls, state.arms.sums
    K, m = sums.shape
    t = 1
    for arm in range(K):
        t += pulls[arm] + pending[arm]
    spread = state.noise_sd * math.sqrt(K * math.log(2.0 * m * t / state.delta)) + state.bound  # γ_t
    for arm in range(K):
        widths[arm] = state.scale * spread / math.sqrt(pulls[arm] + pending[arm] + 1.0)
        for i in range(m):
            estimates[arm, i] = sums[arm, i] / (pulls[arm] + 1.0)
    return t - 1


@kernel
def _filter(
    estimates: Vector, widths: Vector, kept: NDArray[np.bool_], tradeoff: float, width: float
) -> None:
    """LOAF: on each objective keep the arms whose upper bound is near the largest one."""
    factor, power = 2.0, 1.0
    for i in range(estimates.shape[1]):
        if i > 0:
            power *= tradeoff
            factor += 4.0 * power  # 2 + 4λ + … + 4λ^(i−1), i counted from 1
        best = -math.inf
        for arm in range(kept.size):
            if kept[arm]:
                best = max(best, estimates[arm, i] + widths[arm])
        for arm in range(kept.size):
            if kept[arm] and estimates[arm, i] + widths[arm] < best - factor * width:
                kept[arm] = False


@kernel
def choose(state: State, pending: Counts) -> int:
    """Lines 2-14 of Algorithm 3."""
    K, m = state.arms.sums.shape
    estimates, widths, kept = np.empty((K, m)), np.empty(K), np.ones(K, np.bool_)
    round = _estimates(state, pending, estimates, widths)
    narrowest, stage = 1.0 / math.sqrt(state.horizon), 0.5
    while True:
        widest = -1
        for arm in range(K):
            if kept[arm] and (widest < 0 or widths[arm] > widths[widest]):
                widest = arm
        if widths[widest] <= narrowest:  # lines 6-8
            _filter(estimates, widths, kept, state.tradeoff, narrowest)
            left = 0
            for arm in range(K):
                left += kept[arm]
            pick = int(uniform(state.key, round, 0) * left)
            for arm in range(K):
                if kept[arm]:
                    if pick == 0:
                        return arm
                    pick -= 1
        if widths[widest] > stage:  # lines 9-10: the widest of those that are wider
            return widest
        _filter(estimates, widths, kept, state.tradeoff, stage)  # line 12
        stage *= 0.5


class MTLO(Randomised):
    """Explore the arms that are still too uncertain, stage by stage, and filter the others.

    For R-sub-Gaussian rewards whose means have norm at most U on every objective: with probability at least
    1 − delta the regret on objective i over T rounds is at most
    4(1 + λ + … + λ^(i−1))·(sqrt(T) + 10·γ_T·log T·sqrt(KT)), γ_T = R·sqrt(K·log(2mT/δ)) + U (its Theorem 2
    with d = K). It needs the horizon, never finishes and eliminates nobody. Where several arms are wider than
    a stage, the widest is played, the first of equals; the paper leaves that open.

    Args:
        n_arms, n_objectives: K and m.
        tradeoff: λ, at least the instance's least.
        horizon: T, how many rounds are to be played.
        delta: the probability that the bound fails.
        noise_sd: R, the largest of them if several.
        bound: U, of the norm of an objective's K means.
        scale: of the confidence terms; the paper's experiments take 0.1, which its bound does not cover.
        seed: of its draws, with a simulated run's seed and replication, and the round.

    >>> policy = MTLO(2, 1, tradeoff=0, horizon=100, delta=0.1)
    >>> policy.ask_many(4)
    [0, 1, 0, 1]
    """

    rules = Rules(choose, observe_only, never)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        tradeoff: float,
        horizon: int,
        delta: float = 0.01,
        noise_sd: ArrayLike = 1.0,
        bound: float = 1.0,
        scale: float = 1.0,
        seed: int = 0,
    ) -> None:
        sd = float(each_objective(noise_sd, n_objectives).max())
        arms = untried(n_arms, n_objectives)
        self.state = State(arms, tradeoff, horizon, delta, sd, bound, scale, policy_key(seed))
