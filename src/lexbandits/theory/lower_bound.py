"""The characteristic time T*: a δ-correct algorithm needs at least T*·kl(δ, 1 − δ) pulls in expectation.

1/T* = max_w min_{b ≠ a_*} min_ν Σ_a w_a·Σ_i (μ^i(a) − ν^i(a))²/(2σ_i²), over weights w on the arms and
alternatives ν in which b is lex-optimal with trade-off λ: ν(b) − ν(a) ∈ C_λ (cones.py) for every arm a.
The inner minimum is in alternatives.py, the maximum here. Not in the paper; derived in docs/lower-bound.md
after Garivier and Kaufmann (2016) and Kaufmann, Cappé and Garivier (2016).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry
from lexbandits._validation import at_least, positive, probability
from lexbandits.environments.instance import Distribution, Instance
from lexbandits.theory.alternatives import NEAREST, Problem, costs_of_moves, descend, refute, respond
from lexbandits.theory.arguments import checked_instance, told_tradeoff, with_exact_ties
from lexbandits.theory.cones import cones_of

MAX_OBJECTIVES = 6  # C_λ is a union of (m − 1)! cones, each tabulated with its 2^m faces
MAX_ROUNDS = 200
MAX_NODES = 1_000_000  # of branch and bound, over the whole computation


class CharacteristicTime(NamedTuple):
    """low ≤ T* ≤ high, and weights on the arms that reach `high`.

    Pulls in proportion to `weights` make the least evidence against any alternative grow by at least
    1/high a pull.

    Attributes:
        low: always proved, up to rounding errors.
        high: proved when `certified`.
        weights: (K,) the share of pulls of each arm.
        certified: whether `high` is proved.

    >>> characteristic_time(Instance([[1.0], [0.5]])).certified
    True
    """

    low: float
    high: float
    weights: Vector  # (K,)
    certified: bool


def characteristic_time(
    instance: Instance,
    tradeoff: float | None = None,
    *,
    relative_gap: float = 0.01,
    prices: ArrayLike | None = None,
) -> CharacteristicTime:
    """T* of an instance among all instances with a trade-off at most as large.

    For independent Gaussian noise. Where a limit on the work stops it, the interval returned is wider, or
    `certified` is False. Infinite when another arm ties with the lex-optimal one on every objective (any
    weights reach that), 0 when there is one arm. Raises ValueError when the instance's own λ exceeds
    `tradeoff`: the promise is then broken and the bound says nothing.

    Args:
        instance: what is true.
        tradeoff: λ; None: the instance's own least.
        relative_gap: the interval closes to high ≤ (1 + relative_gap)·low.
        prices: (K,) what a pull of each arm costs. T* then bounds the cost instead of the number of pulls.

    >>> low, high, weights, certified = characteristic_time(Instance([[1.0], [0.5]]))
    >>> low <= 32 <= high, weights.round(2).tolist(), certified
    (True, [0.5, 0.5], True)
    """
    tradeoff = told_tradeoff(bounded_instance(instance), tradeoff, promised=True)
    relative_gap = probability("relative_gap", relative_gap)
    uniform = np.full(instance.n_arms, 1 / instance.n_arms)
    if instance.n_arms == 1:
        return CharacteristicTime(0.0, 0.0, uniform, True)
    if np.sum(~instance.gaps.any(axis=1)) > 1:
        return CharacteristicTime(math.inf, math.inf, uniform, True)

    whitened = -instance.gaps / instance.noise_sds  # a_* at the origin
    unit = np.abs(whitened).max()
    # Sorted, so that the same arms in another order give the same weights in that order.
    order = np.lexsort(whitened.T)
    problem = Problem(whitened[order] / unit, cones_of(tradeoff, instance.noise_sds))
    best = int(np.flatnonzero(order == instance.lex_optimal_arm)[0])
    costs = np.ones(instance.n_arms) if prices is None else _checked_prices(prices, instance.n_arms)
    least_rate, most_rate, shares, certified = _maximin(problem, best, relative_gap, costs[order])

    weights = np.empty(instance.n_arms)
    weights[order] = shares if prices is None else shares / costs[order] / (shares / costs[order]).sum()
    scale = float(unit) ** 2
    return CharacteristicTime(inverse(most_rate * scale), inverse(least_rate * scale), weights, certified)


def sample_lower_bound(characteristic_time: float, delta: float) -> float:
    """The least E[τ] of an algorithm that errs with probability at most `delta`: T*·kl(δ, 1 − δ).

    Args:
        characteristic_time: its `low`: the larger end of the interval is no lower bound.
        delta: from 1/2 on a guess is good enough, and the bound is 0.

    >>> round(sample_lower_bound(129.0, 0.01))
    581
    """
    if characteristic_time != math.inf:
        characteristic_time = at_least("characteristic_time", characteristic_time, 0.0)
    delta = probability("delta", delta)
    if delta >= 0.5:
        return 0.0
    return characteristic_time * (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


def bounded_instance(instance: Instance) -> Instance:
    """`instance` with exact ties, once it is known to be one the bound speaks about."""
    checked_instance(instance)
    if instance.noise != Distribution.GAUSSIAN:
        raise ValueError(
            f"the bound is for gaussian noise, got noise={instance.noise!r}; "
            "give Instance(means, noise_sd=…) to bound the Gaussian instance with these means"
        )
    if instance.correlation is not None and np.any(instance.correlation != np.eye(instance.n_objectives)):
        raise ValueError("the bound is for independent objectives, got a correlation")
    if instance.n_objectives > MAX_OBJECTIVES:
        raise ValueError(f"at most {MAX_OBJECTIVES} objectives, got {instance.n_objectives}")
    return with_exact_ties(instance)


def _checked_prices(prices: ArrayLike, n_arms: int) -> Vector:
    given = np.asarray(prices)
    if given.shape != (n_arms,):
        raise ValueError(f"prices must be one positive number per arm, {n_arms} of them, got {prices!r}")
    return np.array([positive(f"prices[{arm}]", price) for arm, price in enumerate(given.tolist())])


def inverse(rate: float) -> float:
    """The time that goes with a rate."""
    return 1 / rate if rate > 0 else math.inf


def _maximin(
    problem: Problem, best: int, relative_gap: float, prices: Vector
) -> tuple[float, float, Vector, bool]:
    """An interval for 1/T* by cutting planes, the weights of its lower end, and whether that is certified.

    Weights are shares of the cost: an arm has weight/price pulls. Every alternative found is a cut:
    1/T* is at most the largest weighted evidence against it. The weights tried next lie midway between
    those the cuts like best and the best so far, which keeps them positive; with no weight on b, b moves
    for free.
    """
    n_arms = len(problem.means)
    rivals = np.flatnonzero(np.arange(n_arms) != best)
    points = np.zeros_like(problem.means)  # of each b, where its best response had it last
    weights = np.full(n_arms, 1 / n_arms)
    cuts = np.empty((0, n_arms))
    best_weights, best_value, upper = weights, -math.inf, math.inf
    nodes = MAX_NODES
    for _ in range(MAX_ROUNDS):
        values, costs = np.empty(rivals.size), np.empty((rivals.size, n_arms))
        entry(respond, bulk=True)(problem, weights / prices, rivals, points, values, costs)
        cuts = np.concatenate([cuts, costs / prices])
        if values.min() > best_value:
            best_weights, best_value = weights, float(values.min())
        upper, liked = bound_by_cuts(cuts, upper, best_value)
        if best_value * (1 + relative_gap / 2) >= upper:
            threshold = upper / (1 + relative_gap)
            proved, found, nodes = prove(problem, best_weights / prices, rivals, points, threshold, nodes)
            if found.size == 0:
                break
            cuts = np.concatenate([cuts, found / prices])
            best_value = min(best_value, float((found / prices @ best_weights).min()))
            upper, liked = bound_by_cuts(cuts, upper, best_value)
        # Halfway: a vertex of the linear program starves some arms, which the next cut would feed again.
        weights = (best_weights + liked) / 2
    else:
        threshold = best_value * (1 - relative_gap / 2)
        proved, found, _ = prove(problem, best_weights / prices, rivals, points, threshold, nodes)
        best_value = min([best_value, *(found / prices @ best_weights).tolist()])
    certified = proved > -math.inf
    return proved if certified else best_value, upper, best_weights, certified


def bound_by_cuts(
    cuts: Vector, upper: float, scale: float, units: float | Vector = 1.0
) -> tuple[float, Vector]:
    """The least bound known on max_w min(cuts·w), and the w of its maximum over these cuts.

    The bound is the dual's, true for any multipliers, whatever the solver's tolerance. It solves for
    w/units, which should be of one size.
    """
    from scipy.optimize import linprog

    n_cuts, n_arms = cuts.shape
    scaled = np.minimum(cuts * units / max(scale, 1e-300), 1e12)  # the solver refuses larger coefficients
    solution = linprog(
        np.append(np.zeros(n_arms), -1.0),
        A_ub=np.column_stack([-scaled, np.ones(n_cuts)]),
        b_ub=np.zeros(n_cuts),
        A_eq=np.append(np.ones(n_arms) * units, 0.0)[np.newaxis],
        b_eq=[1.0],
        bounds=[(0, None)] * n_arms + [(None, None)],
        method="highs",
    )
    if solution.x is None:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    multipliers = -solution.ineqlin.marginals
    multipliers = np.where(multipliers > 1e-9, multipliers, 0.0)
    upper = min(upper, float((multipliers @ cuts).max() / multipliers.sum()))
    liked = np.maximum(solution.x[:n_arms], 0) * units
    return upper, liked / liked.sum()


def prove(
    problem: Problem, weights: Vector, rivals: Counts, points: Vector, threshold: float, nodes: int
) -> tuple[float, Vector, int]:
    """Whether every alternative costs at least `threshold` under `weights`.

    Returns the bound proved (−inf where there are cheaper ones or the nodes ran out), the costs (n, K) of
    cheaper alternatives found, and the nodes left.
    """
    proved = math.inf
    found = []
    for b in rivals:
        bound, value, used = entry(refute, bulk=True)(problem, weights, b, threshold, nodes, points[b])
        nodes -= used
        proved = min(proved, float(bound))
        if value < threshold:
            entry(descend, bulk=True)(problem, weights, b, np.full(weights.size, NEAREST), points[b])
            costs = np.empty(weights.size)
            costs_of_moves(problem, b, points[b], costs)
            found.append(costs)
    return proved, np.array(found).reshape(len(found), weights.size), nodes
