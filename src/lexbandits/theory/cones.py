"""C_λ, the differences by which one arm may beat another: a union of cones, projections on them.

C_λ = {d: d¹ ≥ 0 and d^i ≥ −λ·max_{j<i} d^j for i ≥ 2}. docs/lower-bound.md derives what is used here.
"""

import math
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._jit import kernel

Matrix = list[list[Fraction]]


class Cones(NamedTuple):
    """The simplicial cones whose union is C_λ, followed by its convex hull, in units of the noise.

    A cone's faces are numbered as the objectives; a set of faces is a bit mask.
    """

    normals: Vector  # (cones + 1, 2^m, m, m) the projector on the span of the normals of a set of faces
    conditions: Vector  # (cones + 1, 2^m, m, m) @ y ≥ 0 exactly where y projects on that set of faces


def cones_of(tradeoff: float, noise_sds: Vector) -> Cones:
    """Tabulated in exact arithmetic, then rounded: a large λ makes faces nearly parallel."""
    n = noise_sds.size
    sds = [Fraction(float(sd)) for sd in noise_sds]
    matrices = _face_normals(Fraction(tradeoff), n)
    normals = np.zeros((len(matrices), 2**n, n, n))
    conditions = np.zeros((len(matrices), 2**n, n, n))
    for cone, faces in enumerate(matrices):
        whitened = [[x * sd for x, sd in zip(row, sds, strict=True)] for row in faces]
        projectors = _projectors(whitened)
        for subset in range(2**n):
            normals[cone, subset] = [[float(x) for x in row] for row in projectors[subset]]
            for i in range(n):
                # Its direction once the other faces of the set are taken out gives the multiplier of
                # a face in the set, which must not be negative, and the slack of one outside it.
                residual = _residual(whitened[i], projectors[subset & ~(1 << i)])
                largest = max(abs(x) for x in residual)
                direction = np.array([float(x / largest) for x in residual])
                sign = -1 if subset >> i & 1 else 1
                conditions[cone, subset, i] = sign * direction / np.linalg.norm(direction)
    return Cones(normals, conditions)


def _face_normals(tradeoff: Fraction, n: int) -> list[Matrix]:
    """A of every cone {A·d ≥ 0}: one for each selector i ↦ j(i) < i, and the hull's."""
    selectors = list(product(*(range(i) for i in range(1, n)))) if tradeoff > 0 else [(0,) * (n - 1)]
    matrices = []
    for selector in selectors:
        faces = [[Fraction(i == k) for k in range(n)] for i in range(n)]
        for i, j in enumerate(selector, start=1):
            faces[i][j] = tradeoff  # d^i + λ·d^j(i) ≥ 0
        matrices.append(faces)
    hull: Matrix = []
    for i in range(n):  # c_i = d^i + λ·Σ_{j<i} c_j ≥ 0
        hull.append([Fraction(i == k) + tradeoff * sum(row[k] for row in hull) for k in range(n)])
    return [*matrices, hull]


def _projectors(faces: Matrix) -> list[Matrix]:
    """The projector on the span of every set of faces, each from the set without its last face."""
    n = len(faces)
    projectors = [[[Fraction(0)] * n for _ in range(n)]]
    for subset in range(1, 2**n):
        last = subset.bit_length() - 1
        before = projectors[subset ^ (1 << last)]
        residual = _residual(faces[last], before)
        square = sum(x * x for x in residual)
        projectors.append(
            [[before[i][k] + residual[i] * residual[k] / square for k in range(n)] for i in range(n)]
        )
    return projectors


def _residual(vector: list[Fraction], projector: Matrix) -> list[Fraction]:
    """The part of `vector` orthogonal to the range of `projector`."""
    return [
        x - sum(p * y for p, y in zip(row, vector, strict=True))
        for x, row in zip(vector, projector, strict=True)
    ]


@kernel
def squared_length(vector: Vector) -> float:
    """‖vector‖²."""
    total = 0.0
    for i in range(vector.size):
        total += vector[i] * vector[i]
    return total


@kernel
def leave(cones: Cones, cone: int, y: Vector, residual: Vector) -> int:
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
                value += cones.conditions[cone, subset, i, k] * y[k]
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
            value += cones.normals[cone, faces, i, k] * y[k]
        residual[i] = value
    return faces


@kernel
def leave_nearest(cones: Cones, y: Vector, residual: Vector) -> tuple[int, int]:
    """The same for C_λ: the nearest of its cones (the first of equals), and the faces."""
    nearest = 0
    faces = leave(cones, 0, y, residual)
    n_cones = len(cones.normals) - 1
    if n_cones > 1 and faces != 0:
        least = squared_length(residual)
        other = np.empty(y.size)
        for cone in range(1, n_cones):
            other_faces = leave(cones, cone, y, other)
            square = squared_length(other)
            if square < least:
                nearest, faces, least = cone, other_faces, square
                residual[:] = other
    return nearest, faces
