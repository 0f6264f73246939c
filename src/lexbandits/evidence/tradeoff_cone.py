"""The cone C_λ: how noisy its faces are, and how far a difference of two arms lies from it.

C_λ = {y: y¹ ≥ 0 and y^i ≥ −λ·max_{j<i} y^j} holds the differences by which one arm may beat another. It is
the union over *record sets* R (1 ∈ R ⊂ {1, …, m−1}) of the convex pieces

    0 ≤ y^r ≤ y^s for records r < s,   y^i ≥ −λ·y^r for i ∉ R, r the last record before i:

the running maxima of y are a record set, and y^r ≤ max_{j<i} y^j for every other. A piece is an isotonic
problem: a record with its followers costs Σ w_r(u − x_r)² + Σ w_i(−λu − x_i)₊², convex in the level u.
Adjacent violators are pooled, levels below 0 are raised to 0. There are 2^(m−2) pieces. Noise must be
independent across objectives.
"""

import math
from typing import Any

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._jit import kernel

# Sets of objectives are bit masks, and a pool's level is kept at its first objective: nothing is allocated.


@kernel
def best_level(x: Vector, weights: Vector, tradeoff: float, records: int, start: int, stop: int) -> float:
    """Return the level u that costs the objectives start .. stop − 1 least.

    Newton's method from the left: the derivative is increasing, concave and piecewise linear, so followers
    only ever leave those that -λu violates, and u is exact when nobody leaves.
    """
    total, weight = 0.0, 0.0
    for i in range(start, stop):
        if records >> i & 1:
            total += weights[i] * x[i]
            weight += weights[i]
    level = total / weight
    violated = -1
    for _ in range(stop - start):
        up, down, count = total, weight, 0
        for i in range(start, stop):
            if not records >> i & 1 and x[i] < -tradeoff * level:
                up -= tradeoff * weights[i] * x[i]
                down += tradeoff * tradeoff * weights[i]
                count += 1
        if count == violated or count == 0:
            break
        violated = count
        level = max(level, up / down)
    return level


@kernel
def fill_levels(x: Vector, weights: Vector, tradeoff: float, records: int, levels: Vector) -> int:
    """Fill `levels` at the first objective of every pool of a piece; return the set of these objectives."""
    m = x.size
    pools, start = 0, 0
    while start < m:
        stop = start + 1
        while stop < m and not records >> stop & 1:
            stop += 1
        first = start
        level = best_level(x, weights, tradeoff, records, first, stop)
        # pool adjacent violators: a level below the one before it is shared with that pool, and so on back
        while first > 0:
            before = first - 1
            while not pools >> before & 1:
                before -= 1
            if levels[before] <= level:
                break
            pools ^= 1 << before
            first = before
            level = best_level(x, weights, tradeoff, records, first, stop)
        pools |= 1 << first
        levels[first] = level
        start = stop
    return pools


@kernel
def nearest_piece(x: Vector, weights: Vector, tradeoff: float, levels: Vector) -> tuple[float, int]:
    """Return the squared distance of x to C_λ and the record set of the nearest piece."""
    m = x.size
    least, nearest = math.inf, 1
    # The first objective is always a record. Whether the last one is makes no difference: no later one asks.
    for others in range(1 << max(0, m - 2)):
        records = 1 | others << 1
        pools = fill_levels(x, weights, tradeoff, records, levels)
        square, level = 0.0, 0.0
        for i in range(m):
            if pools >> i & 1:
                level = max(levels[i], 0.0)
            gap = level - x[i] if records >> i & 1 else max(-tradeoff * level - x[i], 0.0)
            square += weights[i] * gap * gap
        if square < least:
            least, nearest = square, records
    return least, nearest


@kernel
def squared_distance(x: Vector, weights: Vector, tradeoff: float, levels: Vector) -> float:
    """Return the least Σ weights[i]·(x[i] − y[i])² over y in C_λ.

    Args:
        x: (m,) a difference of two arms.
        weights: (m,) positive; 1/σ² for a distance in units of the noise.
        tradeoff: λ ≥ 0.
        levels: (m,) room to work in.
    """
    return nearest_piece(x, weights, tradeoff, levels)[0]


# --- faces, on which LexElim-Pool bets


def face_scales(tradeoff: float, noise_sd: Vector, correlated: Any) -> Vector:
    """(m, m) s_ij, the sub-Gaussian scale of r^i + λr^j for j < i; s_1 = σ_1 at (0, 0).

    >>> [round(float(face_scales(2.0, np.ones(2), how)[1, 0] ** 2), 9) for how in (False, True)]
    [5.0, 9.0]
    """
    if not np.all((noise_sd >= 1e-100) & (noise_sd <= 1e100)) or tradeoff * noise_sd.max() > 1e100:
        raise ValueError(
            "noise_sd must be between 1e-100 and 1e100, and tradeoff times it at most 1e100, "
            f"got tradeoff {tradeoff} and noise_sd {noise_sd.tolist()}"
        )
    scales = np.zeros((noise_sd.size, noise_sd.size))
    scales[0, 0] = noise_sd[0]
    for i in range(1, noise_sd.size):
        for j in range(i):
            high, low = float(noise_sd[i]), tradeoff * float(noise_sd[j])
            if correlated is True:
                scales[i, j] = high + low
            else:
                cross = correlated[i][j] if correlated else 0.0
                # noise_sd are upper bounds: where noises cancel, less of one of them would cancel less
                scales[i, j] = max(
                    high, low, math.sqrt(max(0.0, high * high + low * low + 2.0 * cross * high * low))
                )
    return scales
