"""Exponential-Gap Elimination (Karnin, Koren and Somekh 2013), with Median Elimination inside."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, Rules, add_rewards, eliminate, fewest_among, untried
from lexbandits.policies.filters import more_active_than
from lexbandits.policies.policy import Policy, checked


class State(NamedTuple):
    """The arms (active: S_r) and the stage: a number of fresh pulls of each contender, then a decision.

    A round r has one stage that estimates the arms of S_r and then, for Median Elimination, one per
    halving. Rewards count for the stage in which they are told, in any order.
    """

    arms: Arms
    round: Counts  # (1,) r, from 1
    halving: NDArray[np.bool_]  # (1,) whether Median Elimination is at work
    contenders: NDArray[np.bool_]  # (K,) the arms of this stage
    quota: Counts  # (1,) fresh pulls each contender is to have
    lacking: Counts  # (1,) pulls missing before this stage is over
    fresh: Counts  # (K,) pulls told in this stage, at most the quota
    sums: Vector  # (K,) their sums on the objective
    estimates: Vector  # (K,) p(a), from the first stage of the round
    accuracy: Vector  # (2,) ε and δ of the halving
    leader: Counts  # (1,) i_r, the last answer of Median Elimination; −1 before
    objective: int
    delta: float
    factor: float  # what every published count is multiplied by: 4σ²/scale
    target: int


@kernel
def gap(state: State) -> float:
    """ε_r = 2^(−r)/4."""
    return 0.25 * math.pow(0.5, state.round[0])


@kernel
def risk(state: State) -> float:
    """δ_r = δ/(50 r³)."""
    r = float(state.round[0])
    return state.delta / (50.0 * (r * r * r))


@kernel
def open_stage(state: State, count: float) -> None:
    """Ask for ceil(count·4σ²/scale) fresh pulls of every contender."""
    # 2^48 is more than any horizon, and K times as much is still an exact integer.
    quota = math.ceil(max(1.0, min(state.factor * count, 2.0**48)))
    state.quota[0] = quota
    state.lacking[0] = quota * np.sum(state.contenders)
    state.fresh[:] = 0
    state.sums[:] = 0.0


@kernel
def open_round(state: State) -> None:
    """Estimate every arm of S_r from t_r = 2/ε_r²·ln(2/δ_r) pulls."""
    epsilon = gap(state)
    state.halving[0] = False
    state.contenders[:] = state.arms.active
    open_stage(state, 2.0 / (epsilon * epsilon) * math.log(2.0 / risk(state)))


@kernel
def open_halving(state: State) -> None:
    """Median Elimination's next halving, from 4/ε²·ln(3/δ) pulls of each arm it still has."""
    e, d = state.accuracy[0], state.accuracy[1]
    open_stage(state, 4.0 / (e * e) * math.log(3.0 / d))


@kernel
def close_stage(state: State) -> None:
    """Decide what the stage was for, and open the next one."""
    if not state.halving[0]:
        state.estimates[:] = state.sums / state.quota[0]
        state.halving[0] = True
        state.accuracy[0] = gap(state) / 2.0 / 4.0  # MedianElimination(S_r, ε_r/2, δ_r)
        state.accuracy[1] = risk(state) / 2.0
        open_halving(state)
        return
    # A stable sort, so that of equal averages the lower index stays, interpreted and compiled alike.
    averages = np.where(state.contenders, state.sums / state.quota[0], -math.inf)
    better = (np.sum(state.contenders) + 1) // 2
    state.contenders[np.argsort(-averages, kind="mergesort")[better:]] = False  # of equals the later ones
    if np.sum(state.contenders) > 1:
        state.accuracy[0] *= 0.75
        state.accuracy[1] /= 2.0
        open_halving(state)
        return
    leader = int(np.argmax(state.contenders))
    state.leader[0] = leader
    bar = state.estimates[leader] - gap(state)
    for arm in range(state.contenders.size):
        if state.arms.active[arm] and state.estimates[arm] < bar:
            eliminate(state.arms, arm, state.arms.told[0], state.objective, leader)
    if not finished(state):
        state.round[0] += 1
        open_round(state)


@kernel
def choose(state: State, pending: Counts) -> int:
    """The contender with the fewest pulls in this stage, those in flight included; lowest index."""
    return fewest_among(state.fresh, pending, state.contenders)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """A pull of a contender that still lacks some counts for the stage; any other is only recorded."""
    observe_sum(state, arm, 1, reward)


@kernel
def observe_sum(state: State, arm: int, count: int, sums: Vector) -> None:
    """What `count` calls of `observe` with rewards that add up to `sums` do; at most what `batch` asks."""
    add_rewards(state.arms, arm, count, sums)
    if finished(state) or not state.contenders[arm] or state.fresh[arm] + count > state.quota[0]:
        return
    state.fresh[arm] += count
    state.sums[arm] += sums[state.objective]
    state.lacking[0] -= count
    if state.lacking[0] == 0:
        close_stage(state)


@kernel
def finished(state: State) -> bool:
    """At most the target is left."""
    return not more_active_than(state.arms, state.target)


@kernel
def batch(state: State, counts: Counts) -> None:
    """The fresh pulls that contenders lack: at the start of a stage the same number for each."""
    for arm in range(counts.size):
        counts[arm] = state.quota[0] - state.fresh[arm] if state.contenders[arm] else 0


class ExponentialGapElimination(Policy):
    """Estimate all arms left ever more precisely; drop those ε_r below the answer of Median Elimination.

    In round r, ε_r = 2^(−r)/4, every arm left gets fresh pulls for an estimate, Median Elimination
    (Even-Dar, Mannor and Mansour 2006) finds with fresh pulls an arm within ε_r/2 of the best, and
    arms whose estimate is ε_r below that arm's leave. For independent rewards and a unique best arm: it
    ends with that arm with probability at least 1 − delta, after O(Σ Δ^−2·log(δ^−1·log Δ^−1)) pulls,
    the constant in the thousands. Give runs a horizon. Nothing is promised on the other objectives.

    The rival of an elimination is Median Elimination's answer.
    Unfinished, it recommends the largest average over all pulls of the arms left, lowest index first;
    stopped at several, the one with the largest estimate in the last round.

    It looks only at sums of fresh pulls, so `Rules.batch` and `Rules.observe_sum` let a simulator
    draw them at once. Pulls in flight when a stage closes count for the next one or not at all.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        objective: the one that counts.
        noise_sd: its sub-Gaussian scale; 1/2 for values in [0, 1]. Counts are multiplied by 4σ².
        target_size: k, where the k best arms tie: it ends with that set, or fewer after an error.
        scale: divides every count; above 1 the promise is void, and published comparisons use thousands.

    >>> policy = ExponentialGapElimination(2, 1, delta=0.1, scale=1000)
    >>> policy.ask_many(3)
    [0, 1, 0]
    """

    rules = Rules(choose, observe, finished, batch=batch, observe_sum=observe_sum)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        objective: int = 0,
        noise_sd: ArrayLike = 0.5,
        target_size: int = 1,
        scale: float = 1.0,
    ) -> None:
        sd = float(each_objective(noise_sd, n_objectives)[objective])
        self.state = State(
            untried(n_arms, n_objectives),
            round=np.ones(1, np.int64),
            halving=np.zeros(1, np.bool_),
            contenders=np.ones(n_arms, np.bool_),
            quota=np.zeros(1, np.int64),
            lacking=np.zeros(1, np.int64),
            fresh=np.zeros(n_arms, np.int64),
            sums=np.zeros(n_arms),
            estimates=np.zeros(n_arms),
            accuracy=np.zeros(2),
            leader=np.full(1, -1, np.int64),
            objective=objective,
            delta=delta,
            factor=4.0 * sd * sd / scale,
            target=target_size,
        )
        open_round(self.state)

    def best_guess(self) -> int:
        """Of the arms left the largest average over all pulls; once finished the largest last estimate."""
        if not self.finished:
            return super().best_guess()
        return max(self.candidates, key=lambda arm: (self.state.estimates[arm], -arm))
