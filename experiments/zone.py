"""The figure of docs/planning.md: margin and tie, limit and slack, and what lies between them costs most.

`make figures`, or `python -m experiments zone docs/zone.svg`.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import lexbandits as lb
from experiments.drawing import WIDE, house_style, new_figure

IN, BAND, SUNK = "#1d5fc4", "#cfe1fa", "#e9e9e6"
SECOND = lb.Objective("second", margin=2, noise="gaussian")  # *new* is far better on it
LINE = 10.0  # the best mean on the first objective, or the limit


class Row(NamedTuple):
    """What is asked of the first objective, and where *new* lies on it, from the line."""

    first: lb.Objective
    label: str
    sign: int
    edges: tuple[float, float, float, float]  # what is drawn: three zones
    words: tuple[str, str, str]
    lines: tuple[str, str]  # at the second and the third of the edges; what is certified is the solid one
    solid: int


ROWS = (
    Row(
        lb.Objective("first", margin=2, noise="gaussian"),
        "how far the new arm is below the best on the first objective",
        -1,
        (0.0, 1.0, 2.0, 3.2),
        ("never\nexcluded", "either may\nhappen", "never\ncertified"),
        ("tie", "margin"),
        1,
    ),
    Row(
        lb.Objective("first", at_least=LINE, slack=2, noise="gaussian"),
        "the new arm on the first objective, from the limit",
        1,
        (-1.6, 0.0, 2.0, 3.6),
        ("never\ncertified", "either may\nhappen", "never\nexcluded"),
        ("limit", "limit + slack"),
        0,
    ),
)


def measured(row: Row, places: Any, runs: int) -> dict[str, list[float]]:
    """For places of *new*: how many results are needed, and how often it wins."""
    question = {"arms": ["old", "new"], "objectives": [row.first, SECOND]}
    old = {"first": LINE if row.first.limit is None else LINE + 6, "second": 0.0}
    rows: dict[str, list[float]] = {"low": [], "median": [], "high": [], "wins": []}
    for place in places.tolist():
        new = {"first": LINE + row.sign * place, "second": 9.0}
        found = lb.forecast(question, {"old": old, "new": new}, sd=2.0, runs=runs)
        for name, number in zip(("low", "median", "high"), found.results, strict=True):
            rows[name].append(number)
        rows["wins"].append(found.winners["new"])
    return rows


def _ground(axes: Any, row: Row) -> None:
    """Draw the three zones and the two lines between them."""
    for start, end, word in zip(row.edges, row.edges[1:], row.words, strict=False):
        color = {"never\nexcluded": BAND, "either may\nhappen": SUNK}.get(word)
        if color:
            axes.axvspan(start, end, color=color, lw=0)
        place = {"transform": axes.get_xaxis_transform(), "ha": "center", "va": "top"}
        axes.text((start + end) / 2, 0.97, word, fontsize=6.5, **place)
    for k, (at, word) in enumerate(zip(row.edges[1:3], row.lines, strict=True)):
        axes.axvline(at, color="#33373d", lw=0.9, ls="-" if k == row.solid else (0, (3, 2)))
        axes.text(
            at, 1.01, word, transform=axes.get_xaxis_transform(), ha="center", va="bottom", fontsize=6.5
        )
    axes.set_xlim(row.edges[0], row.edges[-1])
    axes.set_xlabel(row.label)


def draw(path: Path, runs: int = 200) -> Path:
    """Draw it as SVG."""
    with house_style():
        figure = new_figure(WIDE, 5.0)
        for row, (left, right) in zip(ROWS, figure.subplots(2, 2), strict=True):
            places = np.linspace(row.edges[0], row.edges[-1], 33)
            found = measured(row, places, runs)
            for axes in (left, right):
                _ground(axes, row)
            left.fill_between(places, found["low"], found["high"], color=IN, alpha=0.2, lw=0)
            left.plot(places, found["median"], color=IN)
            left.set_ylim(0, 1.35 * max(found["high"]))
            left.set_title("Results needed: median, and 8 of 10 futures", loc="left", pad=14)
            right.plot(places, 100 * np.array(found["wins"]), color=IN)
            right.set_ylim(0, 140)
            right.set_yticks([0, 50, 100])
            right.set_title("How often the new arm wins, in %", loc="left", pad=14)
        figure.tight_layout(w_pad=2, h_pad=2)
        figure.savefig(path, metadata={"Date": None})
    return path
