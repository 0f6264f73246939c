"""Radii of intervals: the paper's (Eq. 4), and those that hold at all times at once, by normal mixtures.

The latter are confidence sequences by two-sided normal mixtures:
Robbins (1970, *Annals of Mathematical Statistics* 41); Howard, Ramdas, McAuliffe and Sekhon (2021, *Annals of
Statistics* 49) for sub-Gaussian noise, and on where ρ makes the mixture tightest.
"""

import math

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective

PRIOR = 30.0  # ρ, where the mixtures are tightest, in observations


@kernel
def confidence_width(pulls: int, n_arms: int, n_objectives: int, delta: float) -> float:
    """Eq. (4): the width c(a) of an arm's confidence interval after `pulls` pulls; σ = 1."""
    if pulls == 0:
        return math.inf
    return math.sqrt(4.0 / pulls * math.log(6.0 * n_arms * n_objectives * pulls / delta))


@kernel
def spread_of_mean(count: float, prior: float) -> float:
    """1/n' = (n + ρ)/n²: what n observations contribute to a squared radius; inf when there are none."""
    if count == 0:
        return math.inf
    return (count + prior) / count / count


@kernel
def cost_of_time(count: float, prior: float) -> float:
    """½·log(1 + n/ρ): what watching n observations at all times adds to the log level."""
    return 0.5 * math.log1p(count / prior)


@kernel
def mixture_radius(count: float, noise_sd: float, log_level: float, prior: float) -> float:
    """Half the width of a normal-mixture interval for one mean, valid at all counts at once.

    It misses with probability at most exp(−log_level); inf when nothing was observed.
    """
    return noise_sd * math.sqrt(2.0 * (log_level + cost_of_time(count, prior)) * spread_of_mean(count, prior))


def time_uniform_intervals(means: Vector, counts: Counts, settings: dict[str, float]) -> Vector:
    """(K, m, 2) normal-mixture intervals, valid together at all times; counts (K,) or (K, m)."""
    n_arms, n_objectives = means.shape
    level = float(np.log(n_arms * n_objectives / settings["delta"]))
    scales = each_objective(settings["noise_sd"], n_objectives)
    counts = np.broadcast_to(counts if counts.ndim == 2 else counts[:, None], means.shape)
    radii = np.array(
        [
            [mixture_radius(int(counts[a, i]), scales[i], level, PRIOR) for i in range(n_objectives)]
            for a in range(n_arms)
        ]
    )
    centres = np.where(counts > 0, means, 0.0)
    return np.stack([centres - radii, centres + radii], axis=-1)
