"""The characteristic time of the tolerance problem: what any algorithm needs to find an acceptable arm.

1/T* = max over arms x of max_w min_ν Σ_a w_a·Σ_i (μ^i(a) − ν^i(a))²/(2σ_i(a)²), over weights w on the arms
and alternatives ν in which x is not acceptable (unacceptable.py). With several correct answers the best of
them counts: Degenne and Koolen (2019). Derived in docs/lower-bound.md.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Vector
from lexbandits._validation import each_objective, per_objective, positive, probability
from lexbandits.environments.instance import Instance
from lexbandits.theory.arguments import checked_instance
from lexbandits.theory.lower_bound import bound_by_cuts, inverse
from lexbandits.theory.unacceptable import ToleranceProblem, is_acceptable, least_cost

MAX_ROUNDS = 200
MAX_NODES = 100_000  # of branch and bound, for one answer
DEAR = 1e4  # an alternative that costs so many times the cheapest only spoils the linear program
ROUNDING = 1e-9  # relative: both ends are moved outwards by as much, for the errors of the arithmetic


class ToleranceTime(NamedTuple):
    """low ≤ T* ≤ high, both proved, the answer that is soonest proven, and weights that reach `high`.

    Attributes:
        low, high: the interval of T*.
        answer: the arm that is soonest proven.
        weights: (K,) the share of pulls of each arm.
        answers: acceptable arm -> a lower bound on the time to prove it, infinite for an arm that is
            only just acceptable.

    >>> tolerance_time(Instance([[1.0], [0.5]]), 0.1).answer
    0
    """

    low: float
    high: float
    answer: int
    weights: Vector  # (K,)
    answers: dict[int, float]

    def least_pulls(self, delta: float) -> float:
        """The least E[τ] of an algorithm whose answer is not acceptable with probability at most `delta`.

        T*·kl(δ, 1 − δ) if one arm is acceptable. If several are, the algorithm may leave to chance which
        of them it gives: the bound is then lower, though as δ → 0 nothing is gained by that.
        """
        delta = probability("delta", delta)
        if delta >= 0.5 or self.low == 0:
            return 0.0
        if self.low == math.inf:
            return math.inf
        low, high = 0.0, self.low * _relative_entropy(1 - delta, delta)
        for _ in range(60):
            middle = (low + high) / 2
            if sum(_most_probable(middle / time, delta) for time in self.answers.values()) < 1 - delta:
                low = middle  # so few pulls cannot tell enough from what they must not be taken for
            else:
                high = middle
        return low


def tolerance_time(
    instance: Instance,
    tolerance: float | ArrayLike,
    resolution: float | ArrayLike | None = None,
    *,
    arm_noise_sds: ArrayLike | None = None,
    relative_gap: float = 0.01,
) -> ToleranceTime:
    """T* of what `LexElimTol` promises, with its tolerances and resolutions.

    For independent Gaussian noise of known standard deviations; other noise is taken as Gaussian with its
    variances. With more than three objectives, or where a limit on the work stops it, the interval may be
    wider than asked. Infinite when no arm is acceptable by more than a boundary, 0 when there is one arm.

    Args:
        instance: what is true.
        tolerance: what does not matter, one or per objective.
        resolution: how finely it is resolved; None: the tolerances.
        arm_noise_sds: (K, m) standard deviations instead of the instance's.
        relative_gap: the interval closes to high ≤ (1 + relative_gap)·low.

    >>> time = tolerance_time(Instance([[1.0], [0.5]]), 0.1, 0.2)
    >>> time.low <= 8 / (0.5 + 0.3) ** 2 <= time.high, time.answer, time.weights.round(2).tolist()
    (True, 0, [0.5, 0.5])
    """
    problem = _posed(instance, tolerance, resolution, arm_noise_sds)
    relative_gap = probability("relative_gap", relative_gap)
    uniform = np.full(instance.n_arms, 1 / instance.n_arms)
    if instance.n_arms == 1:
        return ToleranceTime(0.0, 0.0, 0, uniform, {0: 0.0})
    acceptable = [arm for arm in range(instance.n_arms) if is_acceptable(problem, arm)]
    times = {arm: _time_of(problem, arm, relative_gap) for arm in acceptable}
    lower = {arm: low for arm, (low, _, _) in times.items()}
    answer = min(times, key=lambda arm: times[arm][1])
    _, high, weights = times[answer]
    return ToleranceTime(min(lower.values()), high, answer, weights, lower)


class ToleranceRegret(NamedTuple):
    """low ≤ v ≤ high, both proved: v·log T pulls of unacceptable arms are needed at least.

    Attributes:
        low, high: the interval of v, per nat of log T.
        answer: the acceptable arm to play for the least v.
        pulls: (K,) that reach `high`, infinite for acceptable arms.

    >>> tolerance_regret(Instance([[1.0], [0.5]]), 0.1).answer
    0
    """

    low: float
    high: float
    answer: int
    pulls: Vector  # (K,)


def tolerance_regret(
    instance: Instance,
    tolerance: float | ArrayLike,
    resolution: float | ArrayLike | None = None,
    *,
    arm_noise_sds: ArrayLike | None = None,
    relative_gap: float = 0.01,
) -> ToleranceRegret:
    """Return how many pulls of unacceptable arms a policy needs at least, per nat of log T.

    For policies that pull unacceptable arms o(T^α) times, for every α > 0, whatever the means are
    (docs/proofs.md, Theorem R6). Noise is as for `tolerance_time`. Infinite when no arm is acceptable by
    more than a boundary, 0 when all arms are acceptable.

    Args:
        instance: what is true.
        tolerance: what does not matter, one or per objective.
        resolution: how finely it is resolved; None: the tolerances.
        arm_noise_sds: (K, m) standard deviations instead of the instance's.
        relative_gap: the interval closes to high ≤ (1 + relative_gap)·low.

    >>> regret = tolerance_regret(Instance([[1.0], [0.5]]), 0.1, 0.2)
    >>> regret.low <= 2 / (0.5 + 0.3) ** 2 <= regret.high
    True
    """
    problem = _posed(instance, tolerance, resolution, arm_noise_sds)
    relative_gap = probability("relative_gap", relative_gap)
    acceptable = np.array([is_acceptable(problem, arm) for arm in range(instance.n_arms)])
    if acceptable.all():
        return ToleranceRegret(0.0, 0.0, 0, np.full(instance.n_arms, math.inf))
    times = {x: _time_of(problem, x, relative_gap, acceptable) for x in np.flatnonzero(acceptable).tolist()}
    answer = min(times, key=lambda arm: times[arm][1])
    _, high, weights = times[answer]
    pulls = np.where(acceptable, math.inf, weights * high)
    return ToleranceRegret(min(low for low, _, _ in times.values()), high, answer, pulls)


def _posed(
    instance: Instance,
    tolerance: float | ArrayLike,
    resolution: float | ArrayLike | None,
    arm_noise_sds: ArrayLike | None,
) -> ToleranceProblem:
    m = checked_instance(instance).n_objectives
    slack = each_objective(per_objective("tolerance", tolerance, m, zero=True), m)
    fine = slack
    if resolution is not None:
        fine = each_objective(per_objective("resolution", resolution, m, zero=True), m)
    if instance.correlation is not None and np.any(instance.correlation != np.eye(m)):
        raise ValueError(
            "the bound is for independent objectives, got a correlation; leave it out to bound the "
            "instance with independent ones"
        )
    sds = _checked_sds(instance, arm_noise_sds)
    return ToleranceProblem(-instance.gaps, sds, slack, slack + fine)


def _checked_sds(instance: Instance, given: Any) -> Vector:
    shape = instance.means.shape
    if given is None:
        if callable(instance.noise):
            raise ValueError(
                "the noise is a sampler, whose variances nobody knows: give arm_noise_sds, a row per arm "
                "with a standard deviation per objective"
            )
        sds = instance.arm_noise_sds
    else:
        try:
            sds = np.array(given, np.float64)
        except (TypeError, ValueError):
            raise TypeError(f"arm_noise_sds must be a table of numbers, got {given!r}") from None
        if sds.shape != shape:
            raise ValueError(f"arm_noise_sds must have a row per arm, {shape}, got shape {sds.shape}")
    for arm, i in np.argwhere(~(sds > 0) | ~np.isfinite(sds)):
        if given is not None:
            positive(f"arm_noise_sds[{arm}][{i}]", sds[arm, i])
        raise ValueError(
            f"arm {arm} has no noise on objective {i}, where its mean is {instance.means[arm, i]:g}; "
            "give arm_noise_sds with a small number there"
        )
    return sds


def _time_of(
    problem: ToleranceProblem, answer: int, relative_gap: float, held: NDArray[np.bool_] | None = None
) -> tuple[float, float, Vector]:
    """An interval for the time of one answer, and the weights of its upper end, by cutting planes.

    As for the characteristic time: every alternative found is a cut, and the weights tried next lie
    midway between those the cuts like best and the best so far. Arms that are held do not move and are
    not counted.
    """
    moving = np.full(len(problem.means), True) if held is None else ~held
    weights = np.where(moving, 1 / moving.sum(), math.inf)
    best_weights, best_rate, found_rate, upper = weights, 0.0, 0.0, math.inf
    cuts = np.empty((0, moving.sum()))
    nodes = MAX_NODES
    for _ in range(MAX_ROUNDS):
        rate, costs, used = least_cost(problem, weights, answer, nodes)
        nodes -= used
        if rate > best_rate:
            best_weights, best_rate = weights, rate
        if not costs.size:  # out of nodes, or there is no alternative
            break
        found_rate = max(found_rate, float((costs[:, moving] @ weights[moving]).min()))
        cuts = np.concatenate([cuts, costs[:, moving]])
        prices = cuts @ best_weights[moving]
        cheapest = float(prices.min())
        if cheapest == 0:
            return math.inf, math.inf, weights
        upper, liked = bound_by_cuts(cuts[prices <= DEAR * cheapest], upper, cheapest, best_weights[moving])
        weights = best_weights.copy()
        weights[moving] = (best_weights[moving] + liked) / 2
        # The second: what is left is not for want of cuts.
        if best_rate * (1 + relative_gap) >= upper or found_rate * (1 + relative_gap / 4) >= upper:
            break
    return inverse(upper) * (1 - ROUNDING), inverse(best_rate) * (1 + ROUNDING), best_weights


def _relative_entropy(p: float, q: float) -> float:
    """kl(p, q) of two coins."""
    heads = p * math.log(p / q) if p > 0 else 0.0
    return heads + ((1 - p) * math.log((1 - p) / (1 - q)) if p < 1 else 0.0)


def _most_probable(entropy: float, delta: float) -> float:
    """The largest p with kl(p, δ) ≤ entropy."""
    if entropy >= -math.log(delta):
        return 1.0
    low, high = delta, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _relative_entropy(middle, delta) <= entropy else (low, middle)
    return high
