"""The house style of figures: one look for everything that is drawn."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:
    Axes = Figure = Any  # matplotlib is slow to import, and only drawing needs it

SETTINGS: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 7,
    "axes.titlesize": 7.5,
    "axes.labelsize": 7,
    "xtick.labelsize": 6.5,
    "ytick.labelsize": 6.5,
    "legend.fontsize": 6.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "xtick.major.size": 2.5,
    "ytick.major.size": 2.5,
    "xtick.minor.size": 0,
    "ytick.minor.size": 0,
    "lines.linewidth": 1.2,
    "lines.markersize": 4.5,
    "pdf.fonttype": 42,
    "svg.hashsalt": "lexbandits",
    "savefig.facecolor": "white",
}
WIDE = 7.2  # inches: two columns of a journal
SMALL = 6.5  # points: labels beside curves


@contextmanager
def house_style() -> Iterator[None]:
    """The settings above, and no screen needed."""
    import matplotlib

    with matplotlib.rc_context(SETTINGS):
        yield


def new_figure(width: float, height: float, **options: Any) -> Figure:
    """A figure that belongs to no window."""
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), **options)


def save(figure: Figure, path: Path, **options: Any) -> None:
    """Write a figure in the format of its ending; the same figure gives the same bytes on any day."""
    undated = {".svg": "Date", ".pdf": "CreationDate", ".png": "Software"}
    with house_style():
        figure.savefig(path, metadata={undated[path.suffix]: None}, **options)


def label_ends(axes: Axes, x_end: float, ends: Iterable[tuple[float, str, str]]) -> None:
    """Names beside the ends of curves, pushed apart where they would overlap, tied by thin lines."""
    ordered = sorted(ends)
    if not ordered:
        return
    height = axes.get_window_extent().height * 72 / axes.figure.dpi
    to_axes = axes.transData + axes.transAxes.inverted()
    anchors = [to_axes.transform((x_end, y)) for y, _, _ in ordered]
    places = pushed_apart([float(y) for _, y in anchors], 1.12 * SMALL / height)
    line: Any = {"arrowstyle": "-", "lw": 0.4, "shrinkA": 1, "shrinkB": 0, "relpos": (0, 0.5)}
    for place, (x, y), (_, name, colour) in zip(places, anchors, ordered, strict=True):
        axes.annotate(
            name,
            (x, y),
            (x + 0.06, place),
            "axes fraction",
            va="center",
            fontsize=SMALL,
            color=colour,
            annotation_clip=False,
            arrowprops=line | {"color": colour},
        )


def pushed_apart(values: Sequence[float], gap: float) -> list[float]:
    """Ascending values in 0 … 1, moved as little as needed for neighbours to be `gap` apart."""
    places: list[float] = []
    for value in values:
        places.append(max(value, places[-1] + gap) if places else value)
    # clusters drift up when pushed apart: centre them, and keep everything inside
    shift = float(np.mean([place - value for place, value in zip(places, values, strict=True)]))
    places = [place - shift for place in places]
    ceiling = 1.0
    for i in reversed(range(len(places))):
        places[i] = min(places[i], ceiling)
        ceiling = places[i] - gap
    floor = 0.0
    for i in range(len(places)):
        places[i] = max(places[i], floor)
        floor = places[i] + gap
    return places


def axes_grid(figure: Figure, rows: int, columns: int, **edges: float) -> list[list[Axes]]:
    """New axes, row by row, between these edges of the figure."""
    grid = figure.add_gridspec(rows, columns, **edges)
    return [[figure.add_subplot(grid[row, column]) for column in range(columns)] for row in range(rows)]


def list_down(axes: Axes, names: Sequence[str | None], *, with_names: bool) -> None:
    """The y axis as a list from top to bottom, with or without the names; None: a line that has none."""
    axes.grid(visible=False, axis="y")
    axes.tick_params(axis="y", length=0)
    places = [y for y, name in enumerate(names) if name]
    axes.set_yticks(places, [name for name in names if name] if with_names else [])


def heading(axes: Axes, text: str, place: tuple[float, float], **look: Any) -> None:
    """Bold words over some axes; `place` in fractions of them."""
    axes.annotate(text, place, xycoords="axes fraction", fontweight="bold", **look)


def mark(marker: str = "o", colour: str = "#555555", **look: Any) -> dict[str, Any]:
    """How a marker without a line looks."""
    return {"ls": "", "marker": marker, "color": colour, **look}


def legend(
    figure: Figure, styles: Mapping[str, Mapping[str, Any]], *, loc: Any = "lower center", **options: Any
) -> None:
    """What each look means, along the lower edge if nothing else is said."""
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **look) for name, look in styles.items()]
    figure.legend(handles=handles, loc=loc, frameon=False, **options)


def log_limits(values: Iterable[float]) -> tuple[float, float]:
    """Limits around positive values on a logarithmic axis, with room for markers."""
    known = [value for value in values if value == value and value > 0]
    room = (max(known) / min(known)) ** 0.12 * 1.2
    return min(known) / room, max(known) * room


def decades(low: float, high: float) -> list[float]:
    """Powers of ten between two limits; every other one where there are many."""
    powers = list(range(int(np.ceil(np.log10(low))), int(np.floor(np.log10(high))) + 1))
    return [10.0**power for power in powers[:: 1 + (len(powers) > 3)]]
