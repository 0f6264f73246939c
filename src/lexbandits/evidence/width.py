"""The paper's confidence width, Eq. (4)."""

import math

from lexbandits.jit import kernel


@kernel
def confidence_width(pulls: int, n_arms: int, n_objectives: int, delta: float) -> float:
    """Eq. (4): the width c(a) of an arm's confidence interval after `pulls` pulls; σ = 1."""
    if pulls == 0:
        return math.inf
    return math.sqrt(4.0 / pulls * math.log(6.0 * n_arms * n_objectives * pulls / delta))
