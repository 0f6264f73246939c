"""Everything the theory says about one instance: what any algorithm needs, what the paper's may need."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._arrays import Vector
from lexbandits.curves import Curve, Figure, Panel
from lexbandits.environments.instance import Instance
from lexbandits.theory import paper_bounds
from lexbandits.theory.lower_bound import CharacteristicTime, characteristic_time, sample_lower_bound
from lexbandits.theory.regret import RegretConstants, regret_constants
from lexbandits.theory.tolerance import ToleranceRegret, ToleranceTime, tolerance_regret, tolerance_time

Table = dict[str, Any]  # columns, of equal length

LEAST = 0.1  # where λ begins in the figure if the instance's own is 0: the axis is logarithmic


class Overview(NamedTuple):
    """The lower bounds and four tables, for widths that match the instance's noise."""

    delta: float
    tradeoff: float
    time: CharacteristicTime
    lower: float  # pulls that any δ-correct algorithm needs on average
    objectives: Table  # a row per objective: Theorems 1 to 4, printed and proved
    constants: RegretConstants
    regret: Table  # a row per objective: the regret lower bound
    arms: Table  # a row per arm: gaps, margins, share of the lower bound's pulls
    leaving: Table  # a row per arm: the most pulls before it leaves, printed and proved


def overview(
    instance: Instance, delta: float, *, tradeoff: float | None = None, horizon: float = 10_000
) -> Overview:
    """What `lexbandits bounds` shows; `tradeoff` None is the instance's own least λ.

    `share` is the fraction of pulls that an algorithm which meets the lower bound gives to the arm, and
    `pulls` that fraction of the bound: the arms that deserve the pulls. `regret_pulls` are those of the
    regret lower bound, per nat of log T.
    """
    known = instance.tradeoff if tradeoff is None else tradeoff
    scale = instance.noise_sd

    def bounds(*quantities: str) -> dict[str, Vector]:
        return {
            f"{algorithm}_{quantity}_{version}": getattr(paper_bounds, f"lexelim_{algorithm}_{quantity}")(
                instance, delta, tradeoff=known, noise_sd=scale, constants=version
            )
            for algorithm in ("out", "in")
            for quantity in quantities
            for version in paper_bounds.VERSIONS
        }

    time = characteristic_time(instance, known)
    lower = sample_lower_bound(time.low, delta)
    constants = regret_constants(instance, known)
    objectives = {"objective": range(instance.n_objectives), "tied": instance.optimal_set_sizes}
    arms = {
        "arm": np.arange(instance.n_arms),
        **{f"gap {i}": instance.gaps[:, i] for i in range(instance.n_objectives)},
        "effective_gap": paper_bounds.effective_gaps(instance, tradeoff=known, noise_sd=scale),
        "cone_margin": paper_bounds.cone_margins(instance, tradeoff=known, noise_sd=scale),
        "share": time.weights,
        "pulls": time.weights * lower,
        "regret_pulls": constants.pulls,
    }
    regret = {
        "objective": objectives["objective"],
        "low": constants.low,
        "high": constants.high,
        f"low·log {horizon:,.0f}": constants.over(horizon),
        f"low·kl({delta:g}, {1 - delta:g})": constants.until_certified(delta),
        "separable": constants.separable,
    }
    return Overview(
        delta,
        float(known),
        time,
        lower,
        {**objectives, **bounds("regret", "samples")},
        constants,
        regret,
        arms,
        {"arm": arms["arm"], **bounds("pulls")},
    )


def tolerance_overview(
    instance: Instance, delta: float, tolerance: float | ArrayLike, resolution: float | ArrayLike | None
) -> tuple[ToleranceTime, ToleranceRegret, Table]:
    """What `lexbandits bounds --tolerance` shows: T*, the pulls of unacceptable arms, and a row per arm.

    `time` is what it takes at least to prove the arm, not a number where it is not acceptable.
    """
    time = tolerance_time(instance, tolerance, resolution)
    regret = tolerance_regret(instance, tolerance, resolution)
    arms = {
        "arm": np.arange(instance.n_arms),
        **{f"mean {i}": instance.means[:, i] for i in range(instance.n_objectives)},
        "acceptable": [arm in time.answers for arm in range(instance.n_arms)],
        "time": [time.answers.get(arm, math.nan) for arm in range(instance.n_arms)],
        "share": time.weights,
        "pulls": time.weights * time.least_pulls(delta),
        "regret_pulls": regret.pulls,
    }
    return time, regret, arms


def lower_bound_figure(instances: Mapping[str, Instance]) -> Figure:
    """T* from each instance's own λ to a hundred times as much, and its weights beside equal ones."""
    times, weights = [], []
    for look, (name, instance) in enumerate(instances.items()):
        tradeoffs = max(instance.tradeoff, LEAST) * np.geomspace(1, 100, 15)
        found = [characteristic_time(instance, float(tradeoff)) for tradeoff in tradeoffs]
        low, high = (np.array([getattr(time, end) for time in found]) for end in ("low", "high"))
        times.append(Curve(name, tradeoffs, low, look, (low, high)))
        arms = np.arange(1, instance.n_arms + 1) / instance.n_arms
        weights.append(Curve(name, arms, instance.n_arms * found[0].weights, look, dots=True))
    left = Panel(times, "", "promised trade-off λ", "characteristic time T*", "log", "log")
    right = Panel(weights, "", "arm a/K", "optimal weight × K at the least λ", "linear", "log", level=1.0)
    return Figure(
        (left, right), "The characteristic time against λ, and which arms deserve the pulls", height=190
    )
