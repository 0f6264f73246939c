"""Gaussian noise of unknown variance: the scale-invariant mixture.

The proof is in docs/proofs.md, "Gaussian noise of unknown variance". For one
sequence only: a product of two such evidences is no supermartingale when what is measured next
depends on the data, so two arms are compared by their differences.
"""

import math

from lexbandits.evidence.radius import PRIOR, cost_of_time
from lexbandits.jit import kernel


@kernel
def gaussian_radius(n: float, squares: float, level: float) -> float:
    """Half the width of an interval that misses with probability ≤ exp(−level), at all n at once.

    `squares` is M2. Infinite until (n−1)/2·log(1 + n/ρ) > level, and while all values are equal.
    """
    if n < 2.0 or not squares > 0.0:
        return math.inf
    exponent = 2.0 / n * (level + cost_of_time(n, PRIOR))
    if exponent > 100.0:  # far from finite, and expm1 might overflow
        return math.inf
    growth = math.expm1(exponent)
    left = (n - PRIOR * growth) / (n + PRIOR)
    if left <= 0.0:
        return math.inf
    return math.sqrt(squares / n * growth / left)


@kernel
def gaussian_log_evidence(n: float, mean: float, squares: float, x: float, prior: float = PRIOR) -> float:
    """log E_n(x), the evidence against the mean x; E_1 = 1, and `squares` = M2 > 0 from n = 2 on."""
    if n < 2.0:
        return 0.0
    u = n * (mean - x) * (mean - x) / squares
    gain = math.log1p(u) - math.log1p(u * prior / (n + prior))
    return 0.5 * n * gain - cost_of_time(n, prior)
