"""Confidence widths and evidence: the kernels that policies share."""

import math

from lexbandits.jit import kernel


@kernel
def confidence_width(pulls: int, n_arms: int, n_objectives: int, delta: float) -> float:
    """Eq. (4): the width c(a) of an arm's confidence interval after `pulls` pulls; σ = 1."""
    if pulls == 0:
        return math.inf
    return math.sqrt(4.0 / pulls * math.log(6.0 * n_arms * n_objectives * pulls / delta))


# --- evidence: test supermartingales and radii of normal mixtures, in logs so that nothing overflows


@kernel
def log_tail(z: float) -> float:
    """z²/2 + log Φ(z), rising in z; accurate from −∞ (where Φ underflows) to +∞ (where it is 1)."""
    if z >= -30.0:
        return 0.5 * z * z + math.log(0.5 * math.erfc(-z / math.sqrt(2.0)))
    square = z * z
    series = -1.0 / square + 3.0 / (square * square) - 15.0 / (square * square * square)
    return -math.log(-z) - 0.5 * math.log(2.0 * math.pi) + math.log1p(series)


@kernel
def log_mixture(gain: float, variance: float, precision: float) -> float:
    """L(G, V) = log ∫ exp(ηG − η²V/2) over η half-normal with variance 1/`precision`; L(0, 0) = 0.

    A gambler's log wealth: exp L(G_n, V_n) is a supermartingale from 1 whenever the increments of G
    have non-positive means and are sub-Gaussian with the variances that V adds up.
    """
    if variance == 0.0:
        return 0.0
    total = variance + precision
    z = gain / math.sqrt(total)
    return math.log(2.0) + 0.5 * math.log(precision / total) + log_tail(z)


@kernel
def mixture_ceiling(gain: float, variance: float, precision: float) -> float:
    """A bound on `log_mixture` that takes no logarithm: Φ ≤ 1 for G > 0, and L ≤ 0 otherwise."""
    if gain <= 0.0:
        return 0.0
    return 0.7 + 0.5 * gain * gain / (variance + precision)


@kernel
def log_add(x: float, y: float) -> float:
    """log(exp x + exp y) without overflow; −inf is log 0."""
    if x < y:
        x, y = y, x
    if y == -math.inf:
        return x
    return x + math.log1p(math.exp(y - x))


@kernel
def spread_of_mean(count: int, prior: float) -> float:
    """1/n' = (n + ρ)/n²: what n observations contribute to a squared radius; inf when there are none."""
    if count == 0:
        return math.inf
    return (count + prior) / count / count


@kernel
def cost_of_time(count: int, prior: float) -> float:
    """½·log(1 + n/ρ): what watching n observations at all times adds to the log level."""
    return 0.5 * math.log1p(count / prior)


@kernel
def two_sample_radius(
    noise_sd: float, log_level: float, spread: float, other_spread: float, cost: float, other_cost: float
) -> float:
    """W = σ·sqrt(2β(1/n'_a + 1/n'_b)), β = log_level + both costs: valid at all pairs of counts at once.

    The extent of the level set of the product of two normal mixtures: with probability at least
    1 − exp(−log_level) the difference of two means is never off by W in either direction.
    Symmetric to the bit.
    """
    return noise_sd * math.sqrt(2.0 * (log_level + (cost + other_cost)) * (spread + other_spread))


@kernel
def mixture_radius(count: int, noise_sd: float, log_level: float, prior: float) -> float:
    """Half the width of a normal-mixture interval for one mean, valid at all counts at once.

    It misses with probability at most exp(−log_level); inf when nothing was observed.
    """
    return noise_sd * math.sqrt(2.0 * (log_level + cost_of_time(count, prior)) * spread_of_mean(count, prior))
