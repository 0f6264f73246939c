"""The faces of the cone of arms that λ allows, on which LexElim-Pool bets: how noisy each of them is."""

import math
from typing import Any

import numpy as np

from lexbandits.arrays import Vector


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
