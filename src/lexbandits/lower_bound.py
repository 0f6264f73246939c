"""The characteristic time T* of a lexicographic instance: no δ-correct algorithm needs fewer than T*·kl(δ, 1 − δ) pulls.

Whitened, rescaled means μ(a) (K, m); C_λ = {d: d¹ ≥ 0, d^i ≥ −λ·max_{j<i} d^j} holds the differences
μ(b) − μ(a) that let b be lex-optimal beside a. It is a union of simplicial cones, one per selector
i -> j(i) < i, and its convex hull is a simplicial cone too. docs/lower-bound.md derives all of it.
"""

import math
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from lexbandits.instance import Instance
from lexbandits.jit import kernel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NEAREST = -1  # an arm measured to C_λ itself, not to one of its cones or to its hull


class Cones(NamedTuple):
    """The simplicial cones {d: faces·d ≥ 0} of C_λ, then its convex hull; unit normals.

    Subsets of faces are bit masks: the faces on which a projection lies.
    """

    faces: Floats  # (cones, m, m)
    multipliers: Floats  # (cones, 2^m, m, m): y -> the multipliers of the faces in the subset
    normals: Floats  # (cones, 2^m, m, m): the projector on the span of their normals


@kernel
def _active_faces(cones: Cones, cone: int, point: Floats) -> int:
    """The faces of the cone on which the projection of `point` lies: the subset that meets the KKT conditions."""
    n = point.size
    best = -1
    best_violation = -math.inf
    for subset in range(2**n):
        violation = 0.0
        for i in range(n):
            if subset >> i & 1:
                quantity = 0.0
                for k in range(n):
                    quantity += cones.multipliers[cone, subset, i, k] * point[k]
            else:
                quantity = 0.0
                for k in range(n):
                    residual = point[k]
                    for l in range(n):
                        residual -= cones.normals[cone, subset, k, l] * point[l]
                    quantity += cones.faces[cone, i, k] * residual
            violation = min(violation, quantity)
            if violation <= best_violation:
                break
        if violation > best_violation:
            best_violation = violation
            best = subset
            if violation == 0.0:
                break
    return best
