"""The picture of docs/lower-bound.md: the characteristic time against λ, and who deserves the pulls."""

from collections.abc import Mapping

import numpy as np

from lexbandits import Instance, characteristic_time
from lexbandits.drawing import WIDE, Figure, house_style, new_figure

LEAST = 0.1  # an instance with λ = 0 starts here: the axis is logarithmic


def lower_bound_figure(instances: Mapping[str, Instance]) -> Figure:
    """T* from each instance's own λ to a hundred times as much, and its weights beside equal ones."""
    with house_style():
        figure = new_figure(WIDE, 2.7, layout="constrained")
        times, weights = figure.subplots(1, 2)
        for name, instance in instances.items():
            tradeoffs = max(instance.tradeoff, LEAST) * np.geomspace(1, 100, 15)
            results = [characteristic_time(instance, float(tradeoff)) for tradeoff in tradeoffs]
            lows, highs = ([getattr(result, end) for result in results] for end in ("low", "high"))
            times.fill_between(tradeoffs, lows, highs, alpha=0.5)
            times.plot(tradeoffs, lows, linewidth=1, label=name)
            places = np.arange(1, instance.n_arms + 1) / instance.n_arms
            weights.plot(places, instance.n_arms * results[0].weights, marker=".", label=name)
        times.set(xscale="log", yscale="log", xlabel="promised trade-off λ", ylabel="characteristic time T*")
        weights.axhline(1, color="grey", linewidth=1)
        weights.set(yscale="log", xlabel="arm a/K", ylabel="optimal weight × K at the least λ")
        for axes in (times, weights):
            axes.legend(frameon=False)
    return figure
