"""Sub-Gaussian noise of known scale: normal mixtures (Robbins 1970). docs/proofs.md, "Sub-Gaussian noise"."""

import math

from lexbandits._jit import kernel
from lexbandits.evidence.radius import PRIOR, mixture_radius


@kernel
def sub_gaussian_radius(n: float, scale: float, level: float) -> float:
    """Half the width of an interval that misses with probability ≤ exp(−level), at all n at once."""
    return mixture_radius(n, scale, level, PRIOR)


@kernel
def one_sided_level(level: float) -> float:
    """log((1 + exp(level))/2): the two-sided level whose one end misses with probability ≤ exp(−level).

    For the symmetric mixtures, sub-Gaussian and Gaussian; it saves nearly log 2 over `level`.
    """
    return level + math.log1p(math.exp(-level)) - math.log(2.0)
