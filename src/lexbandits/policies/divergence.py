"""How hard it is to mistake one mean for another: d(p, q) of KL-UCB and IMED."""

import math
from typing import NamedTuple

from lexbandits.jit import kernel
from lexbandits.policies.base import Arms


class OneDivergence(NamedTuple):
    """The state of a policy that looks at one objective through a divergence."""

    arms: Arms
    objective: int
    noise_sd: float
    is_bernoulli: bool
    exploration: float  # c of log t + c·log log t


@kernel
def bernoulli_divergence(p: float, q: float) -> float:
    """kl(p, q) of two Bernoulli laws, p moved into [0, 1]; infinite where q excludes what p allows."""
    p = min(max(p, 0.0), 1.0)
    total = 0.0
    if p > 0.0:
        total += p * math.log(p / q) if q > 0.0 else math.inf
    if p < 1.0:
        total += (1.0 - p) * math.log((1.0 - p) / (1.0 - q)) if q < 1.0 else math.inf
    return max(total, 0.0)


@kernel
def apart(is_bernoulli: bool, noise_sd: float, p: float, q: float) -> float:
    """d(p, q): kl of Bernoulli laws, or (p − q)²/(2σ²) of Gaussian ones."""
    if is_bernoulli:
        return bernoulli_divergence(p, q)
    return (p - q) * (p - q) / (2.0 * noise_sd * noise_sd)
