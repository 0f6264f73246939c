"""Gaussian noise of unknown variance: the scale-invariant mixture.

Lai (1976, *Annals of Statistics* 4) has it with a flat prior; the normal prior on the effect size is in Wang
and Ramdas (2023, arXiv:2310.03722). The proof is in docs/proofs.md, "Gaussian noise of unknown variance".
For one sequence only: a product of two such evidences is no supermartingale when what is measured next
depends on the data, so two arms are compared by their differences.
"""

import math

from lexbandits._jit import kernel
from lexbandits.evidence.radius import PRIOR, cost_of_time


@kernel
def gaussian_radius(n: float, squares: float, level: float, worth: float = 0.0) -> float:
    """Half the width of an interval that misses with probability ≤ exp(−level), at all n at once.

    `squares` is M2. Infinite until (n−1)/2·log(1 + n/ρ) > level, and while all values are equal. n values
    of a list are `worth` more than n of a population.
    """
    if n < 2.0 or not squares > 0.0:
        return math.inf
    worth = max(n, worth)
    exponent = 2.0 / n * (level + cost_of_time(worth, PRIOR))
    if exponent > 100.0:  # far from finite, and expm1 might overflow
        return math.inf
    growth = math.expm1(exponent)
    left = (worth - PRIOR * growth) / (worth + PRIOR)
    if left <= 0.0:
        return math.inf
    return math.sqrt(squares / worth * growth / left)


@kernel
def gaussian_log_evidence(
    n: float, mean: float, squares: float, x: float, prior: float = PRIOR, worth: float = 0.0
) -> float:
    """log E_n(x), the evidence against the mean x; E_1 = 1, and `squares` = M2 > 0 from n = 2 on."""
    if n < 2.0:
        return 0.0
    worth = max(n, worth)
    u = worth * (mean - x) * (mean - x) / squares
    gain = math.log1p(u) - math.log1p(u * prior / (worth + prior))
    return 0.5 * n * gain - cost_of_time(worth, prior)
