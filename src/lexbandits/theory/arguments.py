"""What a bound is told: an instance, its exact ties, the λ it is promised, the scale of the widths."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Vector
from lexbandits._validation import at_least, per_objective
from lexbandits.environments.instance import Instance


def checked_instance(instance: Any) -> Instance:
    """`instance`, if it is one."""
    if not isinstance(instance, Instance):
        raise TypeError(f"instance must be an Instance, got {instance!r}")
    return instance


def with_exact_ties(instance: Instance) -> Instance:
    """The same means without a tie tolerance, which no bound knows; refuses if another arm is best then."""
    if instance.tie_tolerance == 0:
        return instance
    exact = Instance(**{**instance.settings, "tie_tolerance": 0.0})
    if exact.lex_optimal_arm != instance.lex_optimal_arm:
        raise ValueError(
            f"the bound needs ties that are exact: by them arm {exact.lex_optimal_arm} is lex-optimal,"
            f" within tie_tolerance={instance.tie_tolerance} arm {instance.lex_optimal_arm}"
        )
    return exact


def told_tradeoff(instance: Instance, tradeoff: float | None, *, promised: bool = False) -> float:
    """λ as given, or the instance's own least; below that Eq. (2) fails, and `promised` refuses it."""
    own = checked_instance(instance).tradeoff
    if tradeoff is None and not math.isfinite(own):
        raise ValueError(
            "no λ satisfies Eq. (2) on this instance, where within the tie tolerance an arm gains on an"
            " objective without losing on an earlier one: give a finite tradeoff"
        )
    told = own if tradeoff is None else at_least("tradeoff", tradeoff, 0.0)
    if promised and told < own:
        raise ValueError(
            f"tradeoff must be at least {own}, the instance's own least λ, got {told}:"
            " below it Eq. (2) fails and there is nothing to bound"
        )
    return told


def noise_scales(noise_sd: float | ArrayLike, n_objectives: int) -> Vector:
    """(m,) σ of every objective, given once or per objective."""
    return np.broadcast_to(per_objective("noise_sd", noise_sd, n_objectives), (n_objectives,)).astype(float)
