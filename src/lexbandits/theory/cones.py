"""The cones of C_λ: projections on them and distances from them."""

import math
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
NEAREST = -1  # holds an arm to C_λ itself, whichever of its cones is nearest


class Problem(NamedTuple):
    """Whitened means, and the simplicial cones whose union is C_λ, followed by its convex hull.

    A cone's faces are numbered as the objectives; a set of faces is a bit mask.
    """

    means: Floats  # (K, m)
    normals: Floats  # (cones + 1, 2^m, m, m) the projector on the span of the normals of a set of faces
    conditions: Floats  # (cones + 1, 2^m, m, m) @ y ≥ 0 exactly where y projects on that set of faces


def _tables(tradeoff: float, noise_sds: Floats) -> tuple[Floats, Floats]:
    """`normals` and `conditions` of every cone, in exact arithmetic, then rounded: a large λ
    makes faces nearly parallel."""
    n = noise_sds.size
    exact_tradeoff = Fraction(tradeoff)
    selectors = list(product(*(range(i) for i in range(1, n)))) if tradeoff > 0 else [(0,) * (n - 1)]
    matrices = []
    for selector in selectors:
        faces = [[Fraction(i == k) for k in range(n)] for i in range(n)]
        for i, j in enumerate(selector, start=1):
            faces[i][j] = exact_tradeoff  # d^i + λ·d^j(i) ≥ 0
        matrices.append(faces)
    hull: list[list[Fraction]] = []
    for i in range(n):  # c_i = d^i + λ·Σ_{j<i} c_j ≥ 0
        hull.append([Fraction(i == k) + exact_tradeoff * sum(row[k] for row in hull) for k in range(n)])
    matrices.append(hull)

    normals = np.zeros((len(matrices), 2**n, n, n))
    conditions = np.zeros((len(matrices), 2**n, n, n))
    sds = [Fraction(float(sd)) for sd in noise_sds]
    for cone, faces in enumerate(matrices):
        whitened = [[x * sd for x, sd in zip(row, sds, strict=True)] for row in faces]
        projectors = [[[Fraction(0)] * n for _ in range(n)]]
        for subset in range(1, 2**n):
            last = subset.bit_length() - 1
            before = projectors[subset ^ (1 << last)]
            apart = _apart(whitened[last], before)
            square = sum(x * x for x in apart)
            projectors.append(
                [[before[i][k] + apart[i] * apart[k] / square for k in range(n)] for i in range(n)]
            )
        for subset in range(2**n):
            normals[cone, subset] = [[float(x) for x in row] for row in projectors[subset]]
            for i in range(n):
                # Its direction once the other faces of the set are taken out gives the multiplier of
                # a face in the set, which must not be negative, and the slack of one outside it.
                apart = _apart(whitened[i], projectors[subset & ~(1 << i)])
                largest = max(abs(x) for x in apart)
                direction = np.array([float(x / largest) for x in apart])
                sign = -1 if subset >> i & 1 else 1
                conditions[cone, subset, i] = sign * direction / np.linalg.norm(direction)
    return normals, conditions


def _apart(vector: list[Fraction], projector: list[list[Fraction]]) -> list[Fraction]:
    """The part of `vector` orthogonal to the range of `projector`."""
    return [
        x - sum(p * y for p, y in zip(row, vector, strict=True))
        for x, row in zip(vector, projector, strict=True)
    ]


@kernel
def _cost(
    problem: Problem, weights: Floats, b: int, held: Ints, x: Floats, gradient: Floats, hessian: Floats
) -> float:
    """½w_b‖x − μ(b)‖² + ½Σ_a w_a·dist²(x − μ(a), the cone of a), its gradient and generalised Hessian."""
    n = x.size
    y, residual = np.empty(n), np.empty(n)
    value = 0.0
    for i in range(n):
        gradient[i] = weights[b] * (x[i] - problem.means[b, i])
        value += 0.5 * gradient[i] * (x[i] - problem.means[b, i])
        for k in range(n):
            hessian[i, k] = weights[b] if i == k else 0.0
    for arm in range(weights.size):
        if arm == b:
            continue
        for i in range(n):
            y[i] = x[i] - problem.means[arm, i]
        cone = held[arm]
        if cone == NEAREST:
            cone, faces = _leave_nearest(problem, y, residual)
        else:
            faces = _leave(problem, cone, y, residual)
        if faces == 0:
            continue
        value += 0.5 * weights[arm] * _square(residual)
        for i in range(n):
            gradient[i] += weights[arm] * residual[i]
            for k in range(n):
                hessian[i, k] += weights[arm] * problem.normals[cone, faces, i, k]
    return value


@kernel
def _costs(problem: Problem, b: int, x: Floats, costs: Floats) -> None:
    """What each arm's move costs per unit of weight, in the cheapest alternative where b is best at x."""
    n = x.size
    y, residual = np.empty(n), np.empty(n)
    for arm in range(costs.size):
        for i in range(n):
            y[i] = x[i] - problem.means[arm, i]
        if arm == b:
            costs[arm] = 0.5 * _square(y)
        else:
            _leave_nearest(problem, y, residual)
            costs[arm] = 0.5 * _square(residual)


@kernel
def _leave(problem: Problem, cone: int, y: Floats, residual: Floats) -> int:
    """`residual` = y − its projection on the cone; returns the set of faces the projection lies on.

    Of every set the conditions are the KKT conditions, and one set meets them; where rounding lets
    none, the one that comes closest.
    """
    n = y.size
    faces = 0
    closest = -math.inf
    for subset in range(2**n):
        least = math.inf
        for i in range(n):
            value = 0.0
            for k in range(n):
                value += problem.conditions[cone, subset, i, k] * y[k]
            least = min(least, value)
            if least <= closest:
                break
        if least > closest:
            faces, closest = subset, least
            if least >= 0.0:
                break
    for i in range(n):
        value = 0.0
        for k in range(n):
            value += problem.normals[cone, faces, i, k] * y[k]
        residual[i] = value
    return faces


@kernel
def _leave_nearest(problem: Problem, y: Floats, residual: Floats) -> tuple[int, int]:
    """The same for C_λ: the nearest of its cones (the first of equals), and the faces."""
    nearest = 0
    faces = _leave(problem, 0, y, residual)
    n_cones = len(problem.normals) - 1
    if n_cones > 1 and faces != 0:
        least = _square(residual)
        other = np.empty(y.size)
        for cone in range(1, n_cones):
            other_faces = _leave(problem, cone, y, other)
            square = _square(other)
            if square < least:
                nearest, faces, least = cone, other_faces, square
                residual[:] = other
    return nearest, faces


@kernel
def _solve(matrix: Floats, vector: Floats, solution: Floats) -> None:
    """matrix·solution = vector by Cholesky's method, which overwrites the lower triangle of `matrix`."""
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
def _square(vector: Floats) -> float:
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * vector[i]
    return total
