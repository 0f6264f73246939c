"""Any noise with a finite variance, approximately: Gaussian once there are many values.

No promise: an answer that rests on it is a large-sample one, never certified. docs/proofs.md
says where it fails.
"""

import math

from lexbandits._jit import kernel
from lexbandits.evidence.gaussian import gaussian_radius

LARGE_SAMPLE = 300.0


@kernel
def finite_variance_radius(n: float, squares: float, level: float) -> float:
    """The Gaussian radius, infinite while n < 300."""
    if n < LARGE_SAMPLE:
        return math.inf
    return gaussian_radius(n, squares, level)


@kernel
def one_value_dominates(n: float, squares: float, fourths: float) -> bool:
    """Whether one value may carry a quarter of M2, so that the variance is not yet known.

    From M2 and M4 alone: the shares s of M2 sum to 1, so max s ≥ ¼ means M4 = M2²·Σs² ≥ M2²/16. It
    never overlooks such a value; where it speaks without one, some value carries a sixteenth.
    """
    return n >= LARGE_SAMPLE and squares > 0.0 and fourths >= squares * squares / 16.0
