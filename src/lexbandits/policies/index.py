"""What the policies that look at one objective share: their settings, and the pulls made."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts
from lexbandits.checks import per_objective, spread, whole
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms


class OneObjective(NamedTuple):
    """The state of an index policy: the arms, and the objective with its noise.

    Shared, as compiled functions tell named tuples apart by name and fields: two of a kind are slow.
    """

    arms: Arms
    objective: int
    noise_sd: float


@kernel
def all_pulls(pulls: Counts, pending: Counts) -> int:
    """Pulls made of all arms, those in flight included."""
    t = 0
    for arm in range(pulls.size):
        t += pulls[arm] + pending[arm]
    return t


def one_objective(
    n_arms: int, n_objectives: int, objective: int, noise_sd: float | ArrayLike
) -> dict[str, Any]:
    """The settings `objective` and `noise_sd`, checked, the shape they refer to first."""
    whole("n_arms", n_arms, least=1)
    n_objectives = whole("n_objectives", n_objectives, least=1)
    return {
        "objective": whole("objective", objective, least=0, most=n_objectives - 1),
        "noise_sd": per_objective("noise_sd", noise_sd, n_objectives),
    }


def own_noise_sd(settings: dict[str, Any]) -> float:
    """σ of the objective that the policy looks at."""
    return float(spread(settings["noise_sd"], settings["n_objectives"])[settings["objective"]])


def answered(first: int) -> Counts:
    """(1,) where a policy that stops at a set keeps what it recommends, −1 before."""
    return np.full(1, first, np.int64)
