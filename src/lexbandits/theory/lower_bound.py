"""The characteristic time T*: a δ-correct algorithm needs at least T*·kl(δ, 1 − δ) pulls in expectation.

1/T* = max_w min_{b ≠ a_*} min_ν Σ_a w_a·Σ_i (μ^i(a) − ν^i(a))²/(2σ_i²), over weights w on the arms and
alternatives ν in which b is lex-optimal with trade-off λ: ν(b) − ν(a) ∈ C_λ for every arm a, where
C_λ = {d: d¹ ≥ 0 and d^i ≥ −λ·max_{j<i} d^j for i ≥ 2}. Not in the paper; derived in docs/lower-bound.md.
"""

import math
from typing import NamedTuple

import numpy as np

from lexbandits.jit import kernel
from lexbandits.theory.cones import (
    NEAREST,
    Floats,
    Ints,
    Problem,
    _cost,
    _costs,
    _leave,
    _leave_nearest,
    _solve,
    _square,
    _tables,
)
from lexbandits.world.instance import Instance

MAX_OBJECTIVES = 6  # C_λ is a union of (m − 1)! cones, each tabulated with its 2^m faces
MAX_ROUNDS = 200
MAX_NODES = 1_000_000  # of branch and bound, over the whole computation


class CharacteristicTime(NamedTuple):
    """low ≤ T* ≤ high, and weights on the arms that reach `high`.

    `low` is always proved, `high` when `certified`; both up to rounding errors. Pulls in proportion
    to `weights` make the least evidence against any alternative grow by at least 1/high a pull.
    """

    low: float
    high: float
    weights: Floats  # (K,)
    certified: bool


def characteristic_time(
    instance: Instance, tradeoff: float | None = None, *, relative_gap: float = 0.01
) -> CharacteristicTime:
    """T* of `instance` among all instances with trade-off at most `tradeoff` (None: its own least λ).

    For independent Gaussian noise. The interval closes to high ≤ (1 + relative_gap)·low; where a
    limit on the work stops it before, the interval returned is wider, or `certified` is False.
    Infinite when another arm ties with the lex-optimal one on every objective (any weights reach
    that), 0 when there is one arm. Raises ValueError when the instance's own λ exceeds `tradeoff`:
    the promise is then broken and the bound says nothing.

    >>> low, high, weights, certified = characteristic_time(Instance([[1.0], [0.5]]))
    >>> low <= 32 <= high, weights.round(2).tolist(), certified
    (True, [0.5, 0.5], True)
    """
    tradeoff = _checked_tradeoff(instance, tradeoff)
    if not _is_real(relative_gap):
        raise TypeError(f"relative_gap must be a number, got {relative_gap!r}")
    if not 0 < relative_gap < 1:
        raise ValueError(f"relative_gap must be in (0, 1), got {relative_gap!r}")

    uniform = np.full(instance.n_arms, 1 / instance.n_arms)
    if instance.n_arms == 1:
        return CharacteristicTime(0.0, 0.0, uniform, True)
    if np.sum(~instance.gaps.any(axis=1)) > 1:
        return CharacteristicTime(math.inf, math.inf, uniform, True)

    whitened = -instance.gaps / instance.noise_sds  # a_* at the origin
    unit = np.abs(whitened).max()
    # Sorted, so that the same arms in another order give the same weights in that order.
    order = np.lexsort(whitened.T)
    normals, conditions = _tables(tradeoff, instance.noise_sds)
    problem = Problem(whitened[order] / unit, normals, conditions)
    best = int(np.flatnonzero(order == instance.lex_optimal_arm)[0])
    least_rate, most_rate, sorted_weights, certified = _maximin(problem, best, float(relative_gap))

    weights = np.empty(instance.n_arms)
    weights[order] = sorted_weights
    scale = float(unit) ** 2
    return CharacteristicTime(_inverse(most_rate * scale), _inverse(least_rate * scale), weights, certified)


def sample_lower_bound(characteristic_time: float, delta: float) -> float:
    """The least E[τ] of an algorithm that errs with probability at most `delta`: T*·kl(δ, 1 − δ).

    Give it `low`: the larger end of the interval is no lower bound. From δ = 1/2 on a guess is good
    enough, and the bound is 0.

    >>> round(sample_lower_bound(129.0, 0.01))
    581
    """
    for name, value in (("characteristic_time", characteristic_time), ("delta", delta)):
        if not _is_real(value):
            raise TypeError(f"{name} must be a number, got {value!r}")
    if not characteristic_time >= 0:
        raise ValueError(f"characteristic_time must be at least 0, got {characteristic_time!r}")
    if not 0 < delta < 1:
        raise ValueError(f"delta must be in (0, 1), got {delta!r}")
    if delta >= 0.5:
        return 0.0
    return float(characteristic_time) * (1 - 2 * delta) * (math.log1p(-delta) - math.log(delta))


def _checked_tradeoff(instance: Instance, tradeoff: float | None) -> float:
    """λ, once `instance` is known to be one the bound speaks about."""
    if not isinstance(instance, Instance):
        raise TypeError(f"instance must be an Instance, got {instance!r}")
    if instance.noise != "gaussian":
        raise ValueError(f"the bound is for gaussian noise, got noise={instance.noise!r}")
    if instance.correlation is not None and np.any(instance.correlation != np.eye(instance.n_objectives)):
        raise ValueError("the bound is for independent objectives, got a correlation")
    if instance.n_objectives > MAX_OBJECTIVES:
        raise ValueError(f"at most {MAX_OBJECTIVES} objectives, got {instance.n_objectives}")
    exact = instance
    if instance.tie_tolerance > 0:
        exact = Instance(**{**instance.settings, "tie_tolerance": 0.0})
        if exact.lex_optimal_arm != instance.lex_optimal_arm:
            raise ValueError(
                f"the bound is about exact ties: arm {exact.lex_optimal_arm} is lex-optimal by them, "
                f"arm {instance.lex_optimal_arm} within tie_tolerance={instance.tie_tolerance}"
            )
    if tradeoff is None:
        return exact.tradeoff
    if not _is_real(tradeoff):
        raise TypeError(f"tradeoff must be a number or None, got {tradeoff!r}")
    if not (math.isfinite(tradeoff) and tradeoff >= 0):
        raise ValueError(f"tradeoff must be finite and at least 0, got {tradeoff!r}")
    if exact.tradeoff > tradeoff:
        raise ValueError(
            f"the instance is outside the class: its least λ is {exact.tradeoff}, got tradeoff={tradeoff}"
        )
    return float(tradeoff)


def _is_real(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _inverse(rate: float) -> float:
    return 1 / rate if rate > 0 else math.inf


def _maximin(problem: Problem, best: int, relative_gap: float) -> tuple[float, float, Floats, bool]:
    """An interval for 1/T* by cutting planes, the weights of its lower end, and whether that is certified.

    Every alternative found is a cut: 1/T* is at most the largest weighted cost it can be given. The
    weights tried next lie midway between those the cuts like best and the best so far, which keeps
    them positive; with no weight on b, b moves for free.
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
        _respond(problem, weights, rivals, points, values, costs)
        cuts = np.concatenate([cuts, costs])
        if values.min() > best_value:
            best_weights, best_value = weights, float(values.min())
        upper, liked = _master(cuts, upper, best_value)
        if best_value * (1 + relative_gap / 2) >= upper:
            proved, found, nodes = _prove(
                problem, best_weights, rivals, points, upper / (1 + relative_gap), nodes
            )
            if found.size == 0:
                break
            cuts = np.concatenate([cuts, found])
            best_value = min(best_value, float((found @ best_weights).min()))
            upper, liked = _master(cuts, upper, best_value)
        weights = (best_weights + liked) / 2
    else:
        proved, found, nodes = _prove(
            problem, best_weights, rivals, points, best_value * (1 - relative_gap / 2), nodes
        )
        if found.size:
            best_value = min(best_value, float((found @ best_weights).min()))
            proved = -math.inf
    certified = proved > -math.inf
    return proved if certified else best_value, upper, best_weights, certified


def _master(cuts: Floats, upper: float, scale: float) -> tuple[float, Floats]:
    """The least bound known on max_w min(cuts·w), and the w of its maximum over these cuts.

    The bound is the dual's, true for any multipliers, whatever the solver's tolerance.
    """
    from scipy.optimize import linprog

    n_cuts, n_arms = cuts.shape
    scaled = np.minimum(cuts / max(scale, 1e-300), 1e12)  # the solver refuses larger coefficients
    solution = linprog(
        np.append(np.zeros(n_arms), -1.0),
        A_ub=np.column_stack([-scaled, np.ones(n_cuts)]),
        b_ub=np.zeros(n_cuts),
        A_eq=np.append(np.ones(n_arms), 0.0)[np.newaxis],
        b_eq=[1.0],
        bounds=[(0, None)] * n_arms + [(None, None)],
        method="highs",
    )
    if solution.x is None:
        raise RuntimeError(f"the linear program was not solved: {solution.message}")
    multipliers = -solution.ineqlin.marginals
    multipliers = np.where(multipliers > 1e-9, multipliers, 0.0)
    upper = min(upper, float((multipliers @ cuts).max() / multipliers.sum()))
    liked = np.maximum(solution.x[:n_arms], 0)
    return upper, liked / liked.sum()


def _prove(
    problem: Problem, weights: Floats, rivals: Ints, points: Floats, threshold: float, nodes: int
) -> tuple[float, Floats, int]:
    """Whether every alternative costs at least `threshold` under `weights`.

    Returns the bound proved (−inf where the nodes ran out), the costs (n, K) of cheaper alternatives
    found, and the nodes left.
    """
    proved = math.inf
    found = []
    for b in rivals:
        bound, value, used = _refute(problem, weights, b, threshold, nodes, points[b])
        nodes -= used
        proved = min(proved, float(bound))
        if value < threshold:
            costs = np.empty(weights.size)
            _costs(problem, b, points[b], costs)
            found.append(costs)
    return proved, np.array(found).reshape(len(found), weights.size), nodes


@kernel
def _respond(
    problem: Problem, weights: Floats, rivals: Ints, points: Floats, values: Floats, costs: Floats
) -> None:
    """For each rival b the cheapest alternative found: descent on F_b from where its last one was and
    from the minimum of its convex relaxation. `points`, `values` and `costs` are written."""
    n_arms = weights.size
    nearest = np.full(n_arms, NEAREST)
    hull = np.full(n_arms, len(problem.normals) - 1)
    for k in range(rivals.size):
        b = rivals[k]
        relaxed = points[b].copy()
        _descend(problem, weights, b, hull, relaxed)
        value, _ = _descend(problem, weights, b, nearest, relaxed)
        values[k], _ = _descend(problem, weights, b, nearest, points[b])
        if value < values[k]:
            values[k] = value
            points[b] = relaxed
        _costs(problem, b, points[b], costs[k])


@kernel
def _refute(
    problem: Problem, weights: Floats, b: int, threshold: float, max_nodes: int, x: Floats
) -> tuple[float, float, int]:
    """Branch and bound on the cone each arm is held to: does F_b stay at or above `threshold`?

    Returns a lower bound on F_b, at least `threshold` if so (−inf if not, or if `max_nodes` are not
    enough), the value of a point below `threshold`, which `x` then is (inf if none), and the nodes used.
    """
    n_arms, n = problem.means.shape
    hull = len(problem.normals) - 1
    stack = np.empty((n_arms * hull + 1, n_arms), dtype=np.int64)  # the cone of every arm
    starts = np.empty((n_arms * hull + 1, n))
    nearest = np.full(n_arms, NEAREST)
    here, y, residual = np.empty(n), np.empty(n), np.empty(n)
    squares = np.empty(hull)
    stack[0] = hull
    starts[0] = x
    size = 1
    least = math.inf
    for node in range(max_nodes):
        if size == 0:
            return least, math.inf, node
        size -= 1
        held = stack[size].copy()
        here[:] = starts[size]
        _, bound = _descend(problem, weights, b, held, here)
        if bound >= threshold:
            least = min(least, bound)
            continue

        value = 0.0
        widest = -1
        widest_gap = 0.0
        for arm in range(n_arms):
            for i in range(n):
                y[i] = here[i] - problem.means[arm, i]
            if arm == b:
                value += 0.5 * weights[arm] * _square(y)
                continue
            _leave_nearest(problem, y, residual)
            square = _square(residual)
            value += 0.5 * weights[arm] * square
            if held[arm] == hull:
                _leave(problem, hull, y, residual)
                gap = weights[arm] * (square - _square(residual))
                if gap > widest_gap:
                    widest, widest_gap = arm, gap
        if value < threshold:
            x[:] = here
            value, _ = _descend(problem, weights, b, nearest, x)
            return -math.inf, value, node + 1
        if widest < 0:  # bound < threshold <= value, and nothing but rounding between them
            least = min(least, bound)
            continue

        for i in range(n):
            y[i] = here[i] - problem.means[widest, i]
        for cone in range(hull):
            _leave(problem, cone, y, residual)
            squares[cone] = _square(residual)
        for _ in range(hull):  # the farthest first, so that the nearest is taken next
            farthest = 0
            for cone in range(1, hull):
                if squares[cone] > squares[farthest]:
                    farthest = cone
            squares[farthest] = -1.0
            stack[size] = held
            stack[size, widest] = farthest
            starts[size] = here
            size += 1
    return least if size == 0 else -math.inf, math.inf, max_nodes


@kernel
def _descend(problem: Problem, weights: Floats, b: int, held: Ints, x: Floats) -> tuple[float, float]:
    """Newton's method from `x`, in place, on the cost of an alternative whose best arm b has means x.

    Arm a must differ from b by a vector of the cone `held[a]`. Returns the cost and, where the cones
    are convex, a lower bound on its minimum, wherever the steps end.
    """
    n = x.size
    gradient, hessian, step = np.empty(n), np.empty((n, n)), np.empty(n)
    trial, trial_gradient = np.empty(n), np.empty(n)
    value = _cost(problem, weights, b, held, x, gradient, hessian)
    for _ in range(60):
        if _square(gradient) <= 2e-10 * weights[b] * value:
            break
        _solve(hessian, gradient, step)
        slope = 0.0
        for i in range(n):
            slope -= gradient[i] * step[i]
        length = 1.0
        trial_value = math.inf
        while length > 1e-9:
            for i in range(n):
                trial[i] = x[i] - length * step[i]
            trial_value = _cost(problem, weights, b, held, trial, trial_gradient, hessian)
            if trial_value <= value + 1e-4 * length * slope:
                break
            length *= 0.5
        if length <= 1e-9:
            break
        value = trial_value
        x[:] = trial
        gradient[:] = trial_gradient
    return value, _floor(value, gradient, weights[b])


@kernel
def _floor(value: float, gradient: Floats, modulus: float) -> float:
    """What a function of this strong convexity cannot fall below, given its value and gradient somewhere."""
    return value - _square(gradient) / (2.0 * modulus)
