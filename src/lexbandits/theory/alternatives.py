"""The cheapest instance in which another arm b is lex-optimal, when moving arm a's means costs w_a.

With b at x, every other arm goes to the nearest point that b beats, so that what remains is to minimise
F_b(x) = ½·w_b‖x − μ(b)‖² + ½·Σ_{a≠b} w_a·dist²(x − μ(a), C_λ) over x in R^m: by descent from below and
above, and by branch and bound where it must be proved. docs/lower-bound.md derives it.
"""

import math
from typing import NamedTuple

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.theory.cones import Cones, leave, leave_nearest, squared_length

NEAREST = -1  # holds an arm to C_λ itself, whichever of its cones is nearest


class Problem(NamedTuple):
    """Means in units of the noise, and the cones by which they may differ."""

    means: Vector  # (K, m)
    cones: Cones


@kernel
def _subtract(problem: Problem, arm: int, x: Vector, y: Vector) -> None:
    for i in range(x.size):
        y[i] = x[i] - problem.means[arm, i]


@kernel
def cost(
    problem: Problem, weights: Vector, b: int, held: Counts, x: Vector, gradient: Vector, hessian: Vector
) -> float:
    """½w_b‖x − μ(b)‖² + ½Σ_a w_a·dist²(x − μ(a), the cone of a), its gradient and generalised Hessian."""
    n = x.size
    y, residual = np.empty(n), np.empty(n)
    _subtract(problem, b, x, y)
    value = 0.0
    for i in range(n):
        gradient[i] = weights[b] * y[i]
        value += 0.5 * gradient[i] * y[i]
        for k in range(n):
            hessian[i, k] = weights[b] if i == k else 0.0
    for arm in range(weights.size):
        if arm == b:
            continue
        _subtract(problem, arm, x, y)
        cone = held[arm]
        if cone == NEAREST:
            cone, faces = leave_nearest(problem.cones, y, residual)
        else:
            faces = leave(problem.cones, cone, y, residual)
        if faces == 0:
            continue
        value += 0.5 * weights[arm] * squared_length(residual)
        for i in range(n):
            gradient[i] += weights[arm] * residual[i]
            for k in range(n):
                hessian[i, k] += weights[arm] * problem.cones.normals[cone, faces, i, k]
    return value


@kernel
def costs_of_moves(problem: Problem, b: int, x: Vector, costs: Vector) -> None:
    """What each arm's move costs per unit of weight, in the cheapest alternative where b is best at x."""
    y, residual = np.empty(x.size), np.empty(x.size)
    for arm in range(costs.size):
        _subtract(problem, arm, x, y)
        if arm != b:
            leave_nearest(problem.cones, y, residual)
        costs[arm] = 0.5 * squared_length(y if arm == b else residual)


@kernel
def _solve(matrix: Vector, vector: Vector, solution: Vector) -> None:
    """matrix·solution = vector by Cholesky's method, which overwrites the lower triangle of `matrix`."""
    # At most 6 × 6, and solved millions of times: by hand nothing is allocated, and tiers add in one order.
    n = vector.size
    for i in range(n):
        for k in range(i + 1):
            value = matrix[i, k]
            for j in range(k):
                value -= matrix[i, j] * matrix[k, j]
            matrix[i, k] = math.sqrt(max(value, 1e-300)) if i == k else value / matrix[k, k]
    for i in range(n):
        value = vector[i]
        for k in range(i):
            value -= matrix[i, k] * solution[k]
        solution[i] = value / matrix[i, i]
    for i in range(n - 1, -1, -1):
        value = solution[i]
        for k in range(i + 1, n):
            value -= matrix[k, i] * solution[k]
        solution[i] = value / matrix[i, i]


@kernel
def least_possible(value: float, gradient: Vector, modulus: float) -> float:
    """What a function of this strong convexity cannot fall below, given its value and gradient somewhere."""
    return value - squared_length(gradient) / (2.0 * modulus)


@kernel
def descend(problem: Problem, weights: Vector, b: int, held: Counts, x: Vector) -> tuple[float, float]:
    """Newton's method from `x`, in place, on the cost of an alternative whose best arm b has means x.

    Arm a must differ from b by a vector of the cone `held[a]`. Returns the cost and, where the cones
    are convex, a lower bound on its minimum, wherever the steps end.
    """
    n = x.size
    gradient, hessian, step = np.empty(n), np.empty((n, n)), np.empty(n)
    trial, trial_gradient = np.empty(n), np.empty(n)
    value = cost(problem, weights, b, held, x, gradient, hessian)
    for _ in range(60):
        if squared_length(gradient) <= 2e-10 * weights[b] * value:
            break
        # The cost is quadratic while every arm stays on the same face: Newton's step is then the last one. It
        # is halved only where a face changes on the way.
        _solve(hessian, gradient, step)
        slope = 0.0
        for i in range(n):
            slope -= gradient[i] * step[i]
        length = 1.0
        trial_value = math.inf
        while length > 1e-9:
            for i in range(n):
                trial[i] = x[i] - length * step[i]
            trial_value = cost(problem, weights, b, held, trial, trial_gradient, hessian)
            if trial_value <= value + 1e-4 * length * slope:
                break
            length *= 0.5
        if length <= 1e-9:
            break
        value = trial_value
        x[:] = trial
        gradient[:] = trial_gradient
    return value, least_possible(value, gradient, weights[b])


@kernel
def respond(
    problem: Problem, weights: Vector, rivals: Counts, points: Vector, values: Vector, costs: Vector
) -> None:
    """For each rival b the cheapest alternative found: descent on F_b from where its last one was and
    from the minimum of its convex relaxation. `points`, `values` and `costs` are written."""
    n_arms = weights.size
    nearest = np.full(n_arms, NEAREST)
    hull = np.full(n_arms, len(problem.cones.normals) - 1)
    for k in range(rivals.size):
        b = rivals[k]
        # F_b is not convex, but its relaxation is, with every arm held to the hull of C_λ. From the minimum
        # of that descent often ends in a cheaper valley than from the last point.
        relaxed = points[b].copy()
        descend(problem, weights, b, hull, relaxed)
        value, _ = descend(problem, weights, b, nearest, relaxed)
        values[k], _ = descend(problem, weights, b, nearest, points[b])
        if value < values[k]:
            values[k] = value
            points[b] = relaxed
        costs_of_moves(problem, b, points[b], costs[k])


@kernel
def _relaxed_most(problem: Problem, weights: Vector, b: int, held: Counts, x: Vector) -> tuple[float, int]:
    """F_b(x), and the arm held to the hull that loses most by it there; −1 if none loses anything."""
    hull = len(problem.cones.normals) - 1
    y, residual, costs = np.empty(x.size), np.empty(x.size), np.empty(weights.size)
    costs_of_moves(problem, b, x, costs)
    value = 0.0
    widest = -1
    widest_gap = 0.0
    for arm in range(weights.size):
        value += weights[arm] * costs[arm]
        if arm != b and held[arm] == hull:
            _subtract(problem, arm, x, y)
            leave(problem.cones, hull, y, residual)
            gap = weights[arm] * (costs[arm] - 0.5 * squared_length(residual))
            if gap > widest_gap:
                widest, widest_gap = arm, gap
    return value, widest


@kernel
def _farthest_first(problem: Problem, arm: int, x: Vector, order: Counts) -> None:
    """`order` = the cones of C_λ by their distance from x − μ(arm), the farthest first."""
    y, residual, squares = np.empty(x.size), np.empty(x.size), np.empty(order.size)
    _subtract(problem, arm, x, y)
    for cone in range(order.size):
        leave(problem.cones, cone, y, residual)
        squares[cone] = squared_length(residual)
    for place in range(order.size):
        farthest = 0
        for cone in range(1, order.size):
            if squares[cone] > squares[farthest]:
                farthest = cone
        squares[farthest] = -1.0
        order[place] = farthest


@kernel
def refute(
    problem: Problem, weights: Vector, b: int, threshold: float, max_nodes: int, x: Vector
) -> tuple[float, float, int]:
    """Branch and bound on the cone each arm is held to: does F_b stay at or above `threshold`?

    Returns a lower bound on F_b, at least `threshold` if so (−inf if not, or if `max_nodes` are not
    enough), the value of a point below `threshold`, which `x` then is (inf if none), and the nodes used.
    """
    n_arms, n = problem.means.shape
    hull = len(problem.cones.normals) - 1
    stack = np.empty((n_arms * hull + 1, n_arms), dtype=np.int64)  # the cone of every arm
    starts = np.empty((n_arms * hull + 1, n))
    order = np.empty(hull, dtype=np.int64)
    here = np.empty(n)
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
        _, bound = descend(problem, weights, b, held, here)
        if bound >= threshold:
            least = min(least, bound)
            continue
        value, widest = _relaxed_most(problem, weights, b, held, here)
        if value < threshold:
            x[:] = here
            return -math.inf, value, node + 1
        if widest < 0:  # bound < threshold <= value, and nothing but rounding between them
            least = min(least, bound)
            continue
        _farthest_first(problem, widest, here, order)
        for k in range(hull):  # so that the nearest is taken next
            stack[size] = held
            stack[size, widest] = order[k]
            starts[size] = here
            size += 1
    return least if size == 0 else -math.inf, math.inf, max_nodes
