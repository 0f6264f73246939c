"""What a policy is told about an instance: the one bridge from the truth to settings."""

import inspect
from typing import Any, TypeVar

import numpy as np

from lexbandits.environments.instance import Distribution, Instance
from lexbandits.policies.policy import Policy

P = TypeVar("P", bound=Policy)

ANY_COIN = 0.5  # σ of a reward in [0, 1], whatever its mean
NO_GAP = 1.0  # where all arms tie, no resolution is too coarse


def with_oracle_settings(cls: type[P], instance: Instance, **settings: Any) -> P:
    """Make a policy for an instance; every setting that it takes and was not given is told truthfully.

    Args:
        cls: its class.
        instance: the truth.
        settings: those that it is given instead.
    """
    takes = inspect.signature(cls).parameters
    told = oracle_settings(instance)
    if settings.get("noise") is not None:  # a kind of noise instead of its scale
        del told["noise_sd"]
    known = {name: value for name, value in told.items() if name in takes}
    shape = {"n_arms": instance.n_arms, "n_objectives": instance.n_objectives}
    return cls(**{**shape, **known, **settings})


def oracle_settings(instance: Instance) -> dict[str, Any]:
    """Settings by name. With this tolerance and resolution only the lex-optimal arm is acceptable."""
    return {
        "tradeoff": instance.tradeoff,
        "optimal_set_sizes": list(instance.optimal_set_sizes),
        "target_size": instance.optimal_set_sizes[0],
        "noise_sd": _scale(instance),
        "tolerance": instance.tie_tolerance,
        "resolution": _least_differences(instance),
    }


def _scale(instance: Instance) -> float | list[float]:
    """σ as a policy's promise needs it: as given, where the noise is Gaussian or a sampler's.

    On an objective whose coins never vary every σ > 0 is true: it is told that of all coins.
    """
    if instance.noise in (Distribution.BERNOULLI, Distribution.BETA):
        sds = instance.sub_gaussian_sds
        return np.where(sds > 0, sds, ANY_COIN).tolist()  # type: ignore[no-any-return]
    return instance.settings["noise_sd"]  # type: ignore[no-any-return]


def _least_differences(instance: Instance) -> list[float]:
    """Per objective the least gap that counts as one."""
    counted = (column[column > instance.tie_tolerance] for column in abs(instance.gaps).T)
    return [float(column.min()) if column.size else NO_GAP for column in counted]
