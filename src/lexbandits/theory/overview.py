"""Everything the theory says about one instance, as two tables: per objective and per arm."""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lexbandits import theory
from lexbandits.theory.lower_bound import CharacteristicTime, characteristic_time, sample_lower_bound
from lexbandits.world.instance import Instance

if TYPE_CHECKING:
    import pandas as pd


class Bounds(NamedTuple):
    """What any algorithm needs, and what the paper's algorithms are promised to need."""

    delta: float
    tradeoff: float
    time: CharacteristicTime
    lower: float  # pulls that any δ-correct algorithm needs on average
    objectives: "pd.DataFrame"  # a row per objective: samples and regret, printed and proved
    arms: "pd.DataFrame"  # a row per arm: gaps, margins, pulls before it leaves, share of the pulls


def bounds(
    instance: Instance, delta: float, *, tradeoff: float | None = None, relative_gap: float = 0.01
) -> Bounds:
    """The bounds for widths that match the instance's noise; `tradeoff` None is its own least λ.

    `share` is the fraction of pulls that an algorithm which meets the lower bound gives to the arm, and
    `pulls` that fraction of the bound: the arms that deserve the pulls.
    """
    import pandas as pd

    known = instance.tradeoff if tradeoff is None else tradeoff
    scale = instance.noise_sd
    table = theory.bounds_table(instance, delta, tradeoff=known, noise_sd=scale)
    time = characteristic_time(instance, known, relative_gap=relative_gap)
    lower = sample_lower_bound(time.low, delta)

    bound = [name for name in table.columns if name.split("_")[0] in ("out", "in")]
    shares = [name for name in bound if "pulls" not in name]
    objectives = table.groupby("objective")[shares].sum().reset_index()
    objectives.insert(1, "tied", list(instance.optimal_set_sizes))

    first = table.drop_duplicates("arm").set_index("arm")
    arms = pd.DataFrame({"arm": np.arange(instance.n_arms)})
    for i in range(instance.n_objectives):
        arms[f"gap {i}"] = instance.gaps[:, i]
    for name in ("effective_gap", "cone_margin", *(name for name in bound if "pulls" in name)):
        arms[name] = first[name].to_numpy()
    arms["share"] = time.weights
    arms["pulls"] = time.weights * lower
    return Bounds(delta, float(known), time, lower, objectives, arms)
