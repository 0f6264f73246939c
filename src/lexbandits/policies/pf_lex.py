"""PF-LEX (Hüyük and Tekin 2021): lexicographic regret without prior knowledge of the near-ties."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, Rules, add_reward, never, ranked, untried
from lexbandits.policies.chance import Randomised, policy_key, uniform
from lexbandits.policies.order import resettle
from lexbandits.policies.policy import checked


class State(NamedTuple):
    """The arms, their confidence intervals, and the arms sorted by the intervals' upper ends."""

    arms: Arms
    upper: Vector  # (K, m)
    lower: Vector  # (K, m)
    widths: Vector  # (K,) C(a) of the noisiest objective; inf before the first pull
    orders: Counts  # (max(1, m − 1), K) arms by upper end on each chained objective, largest first
    scales: Vector  # (m,) σ_i
    delta: float
    most: float  # arms with wider intervals are to be explored
    everywhere: bool  # whether all arms are, or only those chained to the best
    key: Counts  # (2,) of the draws


@kernel
def width(pulls: int, n_arms: int, n_objectives: int, delta: float) -> float:
    """C for σ = 1: sqrt((1+n)/n² · (1 + 2·ln(K·m·sqrt(1+n)/δ)))."""
    log = math.log(n_arms * n_objectives * math.sqrt(1.0 + pulls) / delta)
    return math.sqrt((1.0 + pulls) / (float(pulls) * pulls) * (1.0 + 2.0 * log))


@kernel
def kept(upper: Vector, floors: Vector, arm: int, objectives: int) -> bool:
    """Whether `arm` is chained to the best on the first `objectives` objectives."""
    above = True
    for i in range(objectives):
        above = above and upper[arm, i] >= floors[i]
    return above


@kernel
def chain(upper: Vector, lower: Vector, orders: Counts, floors: Vector, objective: int) -> None:
    """Set floors[objective] to the lowest point of the chain that holds the best arm kept so far.

    Intervals that meet, transitively, form chains that lie apart from each other. So a kept arm is
    chained to the best of them when its upper end reaches this point. Going down the upper ends, a
    chain is over when the next one lies below all lower ends seen. Links may be arms not kept.
    """
    floor = math.inf
    inside = False
    for rank in range(orders.shape[1]):
        arm = orders[objective, rank]
        if inside and upper[arm, objective] < floor:
            break
        floor = min(floor, lower[arm, objective])
        inside = inside or kept(upper, floors, arm, objective)
    floors[objective] = floor


@kernel
def choose(state: State, pending: Counts) -> int:
    """Explore uniformly at random while intervals are wide, else exploit.

    Intervals are those of the rewards told; the draw is that of round told + pending, so pulls
    handed out together differ.
    """
    # arrays are taken out of the tuple once: compiled code counts a reference each time
    upper, lower, orders, widths = state.upper, state.lower, state.orders, state.widths
    last = upper.shape[1] - 1
    floors = np.empty(orders.shape[0])
    chain(upper, lower, orders, floors, 0)
    chained = 0 if state.everywhere else 1
    wide = 0
    for arm in range(widths.size):
        if widths[arm] > state.most and kept(upper, floors, arm, chained):
            wide += 1
    chosen = -1
    if wide > 0:
        skip = int(uniform(state.key, state.arms.told[0] + np.sum(pending), 0) * wide)
        for arm in range(widths.size):
            if widths[arm] > state.most and kept(upper, floors, arm, chained):
                if skip == 0:
                    chosen = arm
                skip -= 1
    else:
        for i in range(1, last):
            chain(upper, lower, orders, floors, i)
        for arm in range(widths.size):
            if kept(upper, floors, arm, floors.size) and (
                chosen < 0 or upper[arm, last] > upper[chosen, last]
            ):
                chosen = arm
    return chosen


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Update the intervals of `arm`; those of the others do not depend on the round."""
    add_reward(state.arms, arm, reward)
    means, upper, lower, orders = state.arms.means, state.upper, state.lower, state.orders
    n_arms, n_objectives = means.shape
    unit = width(state.arms.pulls[arm], n_arms, n_objectives, state.delta)
    widest = 0.0
    for i in range(n_objectives):
        c = state.scales[i] * unit
        upper[arm, i] = means[arm, i] + c
        lower[arm, i] = means[arm, i] - c
        widest = max(widest, c)
    state.widths[arm] = widest
    for i in range(orders.shape[0]):
        resettle(orders[i], upper, i, arm)


class PFLex(Randomised):
    """Explore the arms that may be best while their intervals are wide, else filter by chained intervals.

    Two arms are chained on an objective when their confidence intervals meet, directly or through
    others. Among the arms chained to the most promising one on objective 0, any whose interval has a
    half-width above ε/2 is explored, uniformly at random; when there is none, each objective keeps the
    arms chained to its most promising survivor, and the largest upper end on the last one is played.

    For independent rewards, ties welcome: with probability at least 1 − delta and ε = T^(−1/3) its
    priority-based regret on every objective is Õ(T^(2/3)), which charges a round only at the first
    objective where the arm is not optimal. Nothing is promised for general regret. It never finishes and
    eliminates nobody. It recommends, without certificate, the largest average on the last objective
    among the arms that pass the filters, lowest index first.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability that the bound on regret fails.
        epsilon: ε; a larger one explores less and takes larger differences for ties.
        noise_sd: sub-Gaussian scale, one or per objective; the noisiest one's half-width counts.
        variant: "official", or "xue": explore every arm with a half-width above ε, chained or not.
        seed: of its choices, with a simulated run's seed and replication, and the round.

    >>> policy = PFLex(3, 2, delta=0.1, epsilon=0.1)
    >>> policy.ask() in (0, 1, 2), policy.finished
    (True, False)
    """

    rules = Rules(choose, observe, never)

    @checked
    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        epsilon: float,
        noise_sd: ArrayLike = 1.0,
        variant: str = "official",
        seed: int = 0,
    ) -> None:
        shape = (n_arms, n_objectives)
        self.state = State(
            untried(*shape),
            upper=np.full(shape, math.inf),
            lower=np.full(shape, -math.inf),
            widths=np.full(n_arms, math.inf),
            orders=np.tile(np.arange(n_arms), (max(1, n_objectives - 1), 1)),
            scales=each_objective(noise_sd, n_objectives),
            delta=delta,
            most=epsilon / (1.0 if variant == "xue" else 2.0),
            everywhere=variant == "xue",
            key=policy_key(seed),
        )

    def best_guess(self) -> int:
        """Among the arms that pass the filters the largest average on the last objective."""
        state = self.state
        floors = np.empty(state.orders.shape[0])
        for i in range(floors.size):
            chain(state.upper, state.lower, state.orders, floors, i)
        left = [arm for arm in range(self.n_arms) if kept(state.upper, floors, arm, floors.size)]
        return ranked(state.arms, left, self.n_objectives - 1)[0]
