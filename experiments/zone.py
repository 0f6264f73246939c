"""The picture of docs/planning.md: what lies between tolerance and tolerance + resolution costs most.

`make pictures`, or `python -m experiments zone docs/zone.svg`.
"""

from pathlib import Path

import numpy as np

from experiments.drawing import WIDE, house_style, new_figure
from lexbandits.forecasting.forecast import forecast
from lexbandits.policies.tol.lexelim_tol import LexElimTol

TOLERANCE = RESOLUTION = 1.0
LEADS = np.linspace(0.0, 3.2, 33)
IN, BAND, SUNK = "#1d5fc4", "#cfe1fa", "#e9e9e6"


def measured(runs: int = 200) -> dict[str, list[float]]:
    """For leads of arm 1 on the first objective, arm 0 far ahead on the second: results needed, who wins."""
    policy = LexElimTol(2, 2, delta=0.05, tolerance=TOLERANCE, resolution=RESOLUTION)
    rows: dict[str, list[float]] = {"low": [], "median": [], "high": [], "wins": []}
    for lead in LEADS.tolist():
        found = forecast(policy, [[0.0, 9.0], [lead, 0.0]], sd=2.0, runs=runs)
        for name, number in zip(("low", "median", "high"), found.results, strict=True):
            rows[name].append(number)
        rows["wins"].append(found.winners["1"])
    return rows


def draw(path: Path, runs: int = 200) -> Path:
    """Draw it as SVG."""
    rows = measured(runs)
    with house_style():
        figure = new_figure(WIDE, 2.5)
        left, right = figure.subplots(1, 2)
        for axes in (left, right):
            axes.axvspan(0, TOLERANCE, color=BAND, lw=0)
            axes.axvspan(TOLERANCE, TOLERANCE + RESOLUTION, color=SUNK, lw=0)
            axes.set_xlim(0, LEADS[-1])
            axes.set_xlabel("lead on the first objective, in tolerances (resolution = tolerance)")
            for x, word in ((0.5, "does not\nmatter"), (1.5, "either may\nhappen"), (2.6, "matters")):
                axes.text(
                    x, 0.97, word, transform=axes.get_xaxis_transform(), ha="center", va="top", fontsize=6.5
                )
        left.fill_between(LEADS, rows["low"], rows["high"], color=IN, alpha=0.2, lw=0)
        left.plot(LEADS, rows["median"], color=IN)
        left.set_ylim(0, 1.35 * max(rows["high"]))
        left.set_title("Results needed: median, and 8 of 10 futures", loc="left")
        right.plot(LEADS, 100 * np.array(rows["wins"]), color=IN)
        right.set_ylim(0, 140)
        right.set_yticks([0, 50, 100])
        right.set_title("How often the leader wins, in %", loc="left")
        figure.tight_layout(w_pad=2)
        figure.savefig(path, metadata={"Date": None})
    return path
