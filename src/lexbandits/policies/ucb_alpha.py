"""UCB_α (Degenne, Nedelec, Calauzènes and Perchet 2019): one index for regret and for identification."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, Rules, add_reward, eliminate, untried
from lexbandits.policies.filters import more_active_than
from lexbandits.policies.index import largest_index
from lexbandits.policies.order import resettle
from lexbandits.policies.policy import Policy, checked

# ceil(exp(sqrt(δ/3))) for every δ in (0, 1). Computed it would be 1 for a tiny δ, and ε(1) is no number.
FIRST_PULLS = 2


class State(NamedTuple):
    """The arms, their widths, and the arms sorted by their means."""

    arms: Arms
    widths: Vector  # (K,) ε(n), inf before the first pulls are in
    order: Counts  # (K,) arms by mean on the objective, best first; as it was when the policy stopped
    objective: int
    noise_sd: float
    delta: float
    alpha: float
    target: int


@kernel
def width(pulls: int, noise_sd: float, delta: float) -> float:
    """ε(n) = σ·sqrt(2/n · ln(3·ln²(n)/δ)), for n ≥ 2."""
    log_n = math.log(pulls)
    return noise_sd * math.sqrt(2.0 / pulls * math.log(3.0 * log_n * log_n / delta))


@kernel(inline="always")
def index(state: State, arm: int, mean: float, n: int, t: int, log_t: float, best: float) -> float:
    """mean + α·ε(n); with nothing in flight ε(n) is known."""
    known = n == state.arms.pulls[arm]
    return mean + state.alpha * (state.widths[arm] if known else width(n, state.noise_sd, state.delta))


@kernel
def choose(state: State, pending: Counts) -> int:
    """argmax of the index."""
    return largest_index(state, pending, FIRST_PULLS, index)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Stop when min over the top k of mean − ε(n) exceeds max over the rest of mean + ε(n)."""
    running = not finished(state)
    add_reward(state.arms, arm, reward)
    if running:
        pulls = state.arms.pulls[arm]
        if pulls >= FIRST_PULLS:
            state.widths[arm] = width(pulls, state.noise_sd, state.delta)
        resettle(state.order, state.arms.means, state.objective, arm)
        if parted(state.arms.means, state.objective, state.widths, state.order, state.target):
            for rank in range(state.target, state.order.size):
                eliminate(state.arms, state.order[rank], state.arms.told[0], state.objective, state.order[0])


@kernel
def parted(means: Vector, objective: int, widths: Vector, order: Counts, target: int) -> bool:
    """Whether the intervals of the top k all lie above those of the rest."""
    last, first = order[target - 1], order[target]  # if not these two, nobody: nearly always
    lowest = means[last, objective] - widths[last]
    highest = means[first, objective] + widths[first]
    if lowest > highest:
        for rank in range(order.size):
            arm = order[rank]
            if rank < target:
                lowest = min(lowest, means[arm, objective] - widths[arm])
            else:
                highest = max(highest, means[arm, objective] + widths[arm])
    return bool(lowest > highest)


@kernel
def finished(state: State) -> bool:
    """Only the target is left."""
    return not more_active_than(state.arms, state.target)


class UCBAlpha(Policy):
    """Play the largest mean + α·ε(n) on one objective; stop when intervals of half-width ε(n) part.

    ε(n) = σ·sqrt(2/n · ln(3·ln²(n)/δ)). For independent rewards and a best arm that is unique: it stops
    at that arm, with an error rate of order `delta`. Give runs a horizon.

    α trades regret for time: for two arms with gap Δ and L the logarithm, regret ≈ 8σ²L·α²/((α+1)²Δ) and
    stopping time ≈ (8σ²L/Δ²)·α²·((α−1)^−2 + (α+1)^−2), so near α = 1 the regret is least and the time
    infinite. Nothing is promised on the other objectives. It recommends the largest average on
    `objective`, lowest index first; that of the moment it stopped once it has.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        alpha: α ≥ 1 widens the sampling index only and leaves the error rate alone.
        objective: the one that counts.
        noise_sd: σ, its sub-Gaussian scale.
        target_size: k, where the k best arms tie: it stops at that set, else never.
        rigorous: divides δ by K, the number of arms, which the published intervals ignore.

    >>> from lexbandits import Instance, simulate
    >>> policy = UCBAlpha(2, 1, delta=0.05, alpha=2, noise_sd=0.1)
    >>> simulate(policy, Instance([[0.1], [0.9]], noise_sd=0.1), horizon=1000, seed=0).recommendation
    1
    """

    rules = Rules(choose, observe, finished)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        alpha: float,
        objective: int = 0,
        noise_sd: ArrayLike = 1.0,
        target_size: int = 1,
        rigorous: bool = False,
    ) -> None:
        self.state = State(
            untried(n_arms, n_objectives),
            widths=np.full(n_arms, math.inf),
            order=np.arange(n_arms),
            objective=objective,
            noise_sd=float(each_objective(noise_sd, n_objectives)[objective]),
            delta=delta / n_arms if rigorous else delta,
            alpha=alpha,
            target=target_size,
        )

    def best_guess(self) -> int:
        """The largest average on the objective; that of the moment it stopped once it has."""
        return int(self.state.order[0]) if self.finished else super().best_guess()
