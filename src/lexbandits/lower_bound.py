"""The characteristic time T*: no algorithm that is right with probability 1 − δ needs fewer than T*·kl(δ, 1 − δ) pulls."""

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

NEAREST = -1  # an arm held to C_λ itself rather than to one of its cones or its hull


class Problem(NamedTuple):
    means: Floats  # (K, m)
    faces: Floats
    conditions: Floats  # (cones, 2^m, m, m)
    normals: Floats  # (cones, 2^m, m, m)


@kernel
def _active_faces(problem: Problem, cone: int, point: Floats) -> int:
    m = point.size
    best = 0
    best_least = -math.inf
    for subset in range(problem.conditions.shape[1]):
        least = math.inf
        for i in range(m):
            value = 0.0
            for k in range(m):
                value += problem.conditions[cone, subset, i, k] * point[k]
            least = min(least, value)
            if least <= best_least:
                break
        if least > best_least:
            best, best_least = subset, least
            if least >= 0.0:
                break
    return best


@kernel
def _residual(problem: Problem, cone: int, point: Floats, residual: Floats) -> int:
    """residual = point - proj; returns index of the face subset"""
    m = point.size
    subset = _active_faces(problem, cone, point)
    for i in range(m):
        value = 0.0
        for k in range(m):
            value += problem.normals[cone, subset, i, k] * point[k]
        residual[i] = value
    return subset


@kernel
def _square(v: Floats) -> float:
    total = 0.0
    for i in range(v.size):
        total += v[i] * v[i]
    return total


@kernel
def _nearest(problem: Problem, point: Floats, residual: Floats) -> tuple[int, int]:
    """The cone of C_λ nearest to point"""
    best_cone = 0
    best_subset = _residual(problem, 0, point, residual)
    n_selectors = problem.normals.shape[0] - 1
    if n_selectors > 1:
        least = _square(residual)
        other = np.empty(point.size)
        for cone in range(1, n_selectors):
            if least == 0.0:
                break
            subset = _residual(problem, cone, point, other)
            square = _square(other)
            if square < least:
                least, best_cone, best_subset = square, cone, subset
                residual[:] = other
    return best_cone, best_subset


@kernel
def _model(
    problem: Problem,
    weights: Floats,
    challenger: int,
    held: Ints,
    x: Floats,
    gradient: Floats,
    hessian: Floats,
) -> float:
    m = x.size
    point = np.empty(m)
    residual = np.empty(m)
    value = 0.0
    for i in range(m):
        d = x[i] - problem.means[challenger, i]
        value += weights[challenger] * d * d
        gradient[i] = 2.0 * weights[challenger] * d
        for k in range(m):
            hessian[i, k] = 0.0
        hessian[i, i] = 2.0 * weights[challenger]
    for arm in range(weights.size):
        if arm == challenger:
            continue
        for i in range(m):
            point[i] = x[i] - problem.means[arm, i]
        if held[arm] == NEAREST:
            cone, subset = _nearest(problem, point, residual)
        else:
            cone = held[arm]
            subset = _residual(problem, cone, point, residual)
        if subset == 0:
            continue
        value += weights[arm] * _square(residual)
        for i in range(m):
            gradient[i] += 2.0 * weights[arm] * residual[i]
            for k in range(m):
                hessian[i, k] += 2.0 * weights[arm] * problem.normals[cone, subset, i, k]
    return value


@kernel
def _newton_step(hessian: Floats, gradient: Floats, step: Floats) -> None:
    """Solve hessian·step = −gradient by Cholesky, in place"""
    m = gradient.size
    for i in range(m):
        for k in range(i + 1):
            value = hessian[i, k]
            for j in range(k):
                value -= hessian[i, j] * hessian[k, j]
            if i == k:
                hessian[i, i] = math.sqrt(max(value, 1e-300))
            else:
                hessian[i, k] = value / hessian[k, k]
    for i in range(m):
        value = -gradient[i]
        for k in range(i):
            value -= hessian[i, k] * step[k]
        step[i] = value / hessian[i, i]
    for i in range(m - 1, -1, -1):
        value = step[i]
        for k in range(i + 1, m):
            value -= hessian[k, i] * step[k]
        step[i] = value / hessian[i, i]


@kernel
def _descend(
    problem: Problem, weights: Floats, challenger: int, held: Ints, x: Floats
) -> tuple[float, float]:
    """Newton; x in place; returns value, value − ‖g‖²/(4w_b)"""
    m = x.size
    gradient = np.empty(m)
    hessian = np.empty((m, m))
    step = np.empty(m)
    trial = np.empty(m)
    new_gradient = np.empty(m)
    value = _model(problem, weights, challenger, held, x, gradient, hessian)
    for _ in range(60):
        slack = _square(gradient) / (4.0 * weights[challenger])
        if slack <= 1e-9 * value:
            break
        _newton_step(hessian, gradient, step)
        slope = 0.0
        for i in range(m):
            slope += gradient[i] * step[i]
        length = 1.0
        moved = False
        for _ in range(40):
            for i in range(m):
                trial[i] = x[i] + length * step[i]
            new_value = _model(problem, weights, challenger, held, trial, new_gradient, hessian)
            if new_value <= value + 1e-4 * length * slope:
                moved = True
                break
            length *= 0.5
        if not moved:
            break
        value = new_value
        for i in range(m):
            x[i] = trial[i]
            gradient[i] = new_gradient[i]
    return value, value - _square(gradient) / (4.0 * weights[challenger])


@kernel
def _costs(problem: Problem, challenger: int, x: Floats, costs: Floats) -> None:
    m = x.size
    point = np.empty(m)
    residual = np.empty(m)
    for arm in range(costs.size):
        for i in range(m):
            point[i] = x[i] - problem.means[arm, i]
        if arm == challenger:
            costs[arm] = 0.5 * _square(point)
        else:
            _nearest(problem, point, residual)
            costs[arm] = 0.5 * _square(residual)


@kernel
def _respond(
    problem: Problem,
    weights: Floats,
    best: int,
    starts: Floats,
    values: Floats,
    bounds: Floats,
    costs: Floats,
) -> None:
    """Best local response of each challenger; starts (K, m) warm points in place"""
    K, m = problem.means.shape
    nearest = np.full(K, NEAREST)
    hull = np.full(K, problem.normals.shape[0] - 1)
    x = np.empty(m)
    for b in range(K):
        if b == best:
            values[b] = math.inf
            bounds[b] = math.inf
            continue
        x[:] = starts[b]
        _, bounds[b] = _descend(problem, weights, b, hull, x)
        values[b], _ = _descend(problem, weights, b, nearest, x)
        other = starts[b].copy()
        v, _ = _descend(problem, weights, b, nearest, other)
        if v < values[b]:
            values[b] = v
            x[:] = other
        starts[b] = x
        _costs(problem, b, x, costs[b])


@kernel
def _refute(
    problem: Problem, weights: Floats, challenger: int, threshold: float, max_nodes: int, x: Floats
) -> tuple[float, float, int]:
    """B&B. Returns least bound, value found (inf unless < threshold), nodes"""
    K, m = problem.means.shape
    hull = problem.normals.shape[0] - 1
    stack = np.empty((K * hull + 1, K), dtype=np.int64)
    points = np.empty((K * hull + 1, m))
    order = np.empty(hull)
    nearest = np.full(K, NEAREST)
    point = np.empty(m)
    residual = np.empty(m)
    here = np.empty(m)
    stack[0] = hull
    points[0] = x
    size = 1
    least = math.inf
    nodes = 0
    held = np.empty(K, dtype=np.int64)
    while size > 0:
        if nodes == max_nodes:
            return -math.inf, math.inf, nodes
        size -= 1
        nodes += 1
        held[:] = stack[size]
        here[:] = points[size]
        _, bound = _descend(problem, weights, challenger, held, here)
        if bound >= threshold:
            least = min(least, bound)
            continue
        worst = -1
        worst_gap = 0.0
        true_value = 0.0
        for arm in range(K):
            for i in range(m):
                point[i] = here[i] - problem.means[arm, i]
            if arm == challenger:
                true_value += weights[arm] * _square(point)
                continue
            _nearest(problem, point, residual)
            square = _square(residual)
            true_value += weights[arm] * square
            if held[arm] == hull:
                _residual(problem, hull, point, residual)
                gap = weights[arm] * (square - _square(residual))
                if gap > worst_gap:
                    worst, worst_gap = arm, gap
        if true_value < threshold:
            x[:] = here
            true_value, _ = _descend(problem, weights, challenger, nearest, x)
            return -math.inf, true_value, nodes
        if worst < 0:
            least = min(least, bound)
            continue
        for i in range(m):
            point[i] = here[i] - problem.means[worst, i]
        for cone in range(hull):
            _residual(problem, cone, point, residual)
            order[cone] = _square(residual)
        for _ in range(hull):
            far = 0
            for cone in range(1, hull):
                if order[cone] > order[far]:
                    far = cone
            order[far] = -1.0
            stack[size] = held
            stack[size, worst] = far
            points[size] = here
            size += 1
    return least, math.inf, nodes


def _cones(tradeoff: float, sds: Floats) -> tuple[Floats, Floats, Floats]:
    m = sds.size
    matrices = []
    for selector in product(*(range(i) for i in range(1, m))):
        faces = np.eye(m)
        for i, j in enumerate(selector, start=1):
            faces[i, j] = tradeoff
        matrices.append(faces)
    if tradeoff == 0:
        matrices = matrices[:1]
    hull = np.eye(m)
    for i in range(1, m):
        hull[i, :i] = tradeoff * hull[:i, :i].sum(axis=0)
    matrices.append(hull)
    faces = np.array(matrices) * sds
    faces /= np.linalg.norm(faces, axis=2, keepdims=True)
    conditions = np.zeros((len(faces), 2**m, m, m))
    normals = np.zeros_like(conditions)
    for cone in range(len(faces)):
        A = faces[cone]
        for subset in range(2**m):
            active = [i for i in range(m) if subset >> i & 1]
            idle = [i for i in range(m) if not subset >> i & 1]
            q, r = np.linalg.qr(A[active].T)
            normals[cone, subset] = q @ q.T
            conditions[cone, subset, active] = -np.linalg.solve(r, q.T)
            conditions[cone, subset, idle] = A[idle] @ (np.eye(m) - q @ q.T)
    return faces, conditions, normals


def run(instance, lam, gap=0.01, max_nodes=100000, verbose=True):
    import time

    t0 = time.perf_counter()
    sds = instance.noise_sds
    means = instance.means / sds
    K, m = means.shape
    problem = Problem(means, *_cones(lam, sds))
    star = instance.lex_optimal_arm
    w = np.full(K, 1 / K)
    starts = means.copy()
    starts[:] = means[star]
    values = np.empty(K)
    bounds = np.empty(K)
    cuts = np.empty((0, K))
    best_w, best_v, upper = None, -1, np.inf
    nodes_total = 0
    for it in range(300):
        costs = np.empty((K, K))
        _respond(problem, w, star, starts, values, bounds, costs)
        v = values.min() / 2
        rb = bounds.min() / 2
        cuts = np.vstack([cuts, np.delete(costs, star, 0)])
        if v > best_v:
            best_v, best_w = v, w
        scale = np.maximum(1e-300, best_v)
        tl = time.perf_counter()
        lp = linprog(
            np.r_[np.zeros(K), -1],
            A_ub=np.c_[-cuts / scale, np.ones(len(cuts))],
            b_ub=np.zeros(len(cuts)),
            A_eq=np.r_[np.ones(K), 0][None],
            b_eq=[1],
            bounds=[(0, None)] * K + [(None, None)],
            method="highs",
        )
        p = np.maximum(-lp.ineqlin.marginals, 0)
        p /= p.sum()
        upper = min(upper, (p @ cuts).max())
        tl = time.perf_counter() - tl
        if verbose:
            print(
                it,
                len(cuts),
                f"T* in [{1 / upper:.3f}, {1 / best_v:.3f}] v {1 / v:.3f} rootbound {1 / rb:.3f} lp {tl:.3f}s  t={time.perf_counter() - t0:.2f}",
            )
        if best_v * (1 + gap / 2) >= upper:
            theta = 2 * upper / (1 + gap)
            least = np.inf
            total = 0
            maxn = 0
            ok = True
            for b in range(K):
                if b == star:
                    continue
                x = starts[b].copy()
                bd, val, nodes = _refute(problem, best_w, b, theta, max_nodes, x)
                total += nodes
                maxn = max(maxn, nodes)
                if bd == -np.inf:
                    c = np.empty(K)
                    _costs(problem, b, x, c)
                    ok = False
                    print("violated or out of nodes", b, val / 2, nodes)
                    cuts = np.vstack([cuts, c])
                least = min(least, bd)
            print("certify", total, maxn, 2 / least, f"t={time.perf_counter() - t0:.2f}")
            break
        w = 0.5 * (best_w + np.maximum(lp.x[:K], 0))
        w /= w.sum()
    return 1 / upper, 2 / least, best_w
