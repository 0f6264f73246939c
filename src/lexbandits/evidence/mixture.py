"""Evidence: test supermartingales by normal mixtures, in logs so that nothing overflows.

The one-sided normal mixture is Robbins's (1970, *Annals of Mathematical Statistics* 41); Howard, Ramdas,
McAuliffe and Sekhon (2021, *Annals of Statistics* 49) have it for sub-Gaussian noise. That such a process
passes e^l with probability at most e^−l is Ville's inequality (1939).
"""

import math

from lexbandits._jit import kernel


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
