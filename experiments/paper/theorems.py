"""Theorems 1 to 4, Corollary 1 and the lemmas about pulls: printed, repaired, and what the runs did."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from experiments import drawing
from experiments.drawing import Axes, Figure, mark
from experiments.paper import experiment
from experiments.paper.experiment import (
    ALGORITHMS,
    ARMS,
    GUARANTEED,
    WIDTHS,
    Entry,
    named_instance,
    named_paper_instance,
)
from experiments.paper.tables import Row, Tables, averaged, count, mean, rows_of
from experiments.paper.verdict import FAILS, HOLDS, Claim, Verdict, at_most_delta, claim
from lexbandits import theory
from lexbandits.simulation import Results
from lexbandits.theory.paper_bounds import VERSIONS

NAME = "theorems"
TITLE = "The theorems against the runs"
CAPTION = (
    "Both bounds and what was measured, for the width settings that carry a guarantee. Runs can "
    "refute a bound, never prove it. The edge instances have two objectives and are built to be "
    "hard for the printed formulas. In “waiting” ten arms that only the second objective tells "
    "apart wait for the first to be settled; in “survivors” ten arms outlive the one that the "
    "first objective eliminates; in “gain” the rival is better on the second objective, and a "
    "bound that is not positive is in the table only."
)
SHOWN = {"theorems": "Bounds as printed, as repaired, and measured"}

Floats = NDArray[np.float64]

PULLS = "pulls of an arm"
EDGES = (
    # ten arms that only the second objective tells apart wait for the first to be settled
    named_instance("waiting", [(100, 100), (75, 100)] + 10 * [(100, 0)]),
    # ten arms survive the one that the first objective eliminates, and are pulled as often
    named_instance("survivors", [(100, 100), (75, 100)] + 10 * [(100, 80)]),
    # the rival gains on the second objective: its gap there is negative
    named_instance("gain", [(100, 0), (50, 100)]),
)


def entries() -> list[tuple[Row, Entry]]:
    """Runs with widths that have a guarantee, on which no theorem may fail."""
    cases = (*map(named_paper_instance, ARMS), *EDGES)
    return [
        ({"instance": w.name, "width": width, "algorithm": a}, Entry(w, a, WIDTHS[width].noise_sd))
        for w, width, a in product(cases, GUARANTEED, experiment.PAPERS)
    ]


class Bound(NamedTuple):
    """What a theorem caps and the caps; the last axis is objectives, or arms for pulls."""

    source: str
    quantity: str
    measured: Floats  # (replications, …, m or K)
    caps: list[Floats]  # printed and proved, (…, m or K)


def tables(results: Results, _: Mapping[str, Row]) -> dict[str, list[Row]]:
    """A row per theorem, cell and objective; of the arms the one that comes nearest to its bound."""
    rows: list[Row] = []
    for labels, entry in entries():
        for bound in _bounds(results, entry):
            found = [
                _compared(bound, i, labels)
                for i in range(bound.measured.shape[-1])
                if not np.isnan(bound.measured[..., i]).all()
            ]
            if bound.quantity == PULLS:
                found = [max(found, key=excess)]
            rows += found
    return {"theorems": rows}


def _bounds(results: Results, entry: Entry) -> Iterator[Bound]:
    inner = entry.algorithm == "LexElim-In"
    half = "lexelim_in" if inner else "lexelim_out"

    def caps(function: str, *at: int) -> list[Floats]:
        return [
            getattr(theory, function)(
                entry.case.instance, entry.delta, *at, noise_sd=entry.noise_sd, constants=version
            )
            for version in VERSIONS
        ]

    runs = results.runs[entry.name]
    stop = int(runs.rounds.max())
    checkpoints = np.unique(np.concatenate([np.geomspace(1, stop, 200).astype(int), runs.rounds]))
    regret = results.regret(entry.name, checkpoints)
    samples = results.identification_rounds(entry.name, "objective" if inner else "prefix")
    pulls = runs.pulls.astype(float)
    pulls[runs.active] = np.nan
    yield Bound("Theorem 3" if inner else "Theorem 1", "regret", regret, caps(f"{half}_regret"))
    yield Bound("Theorem 4" if inner else "Theorem 2", "samples", samples, caps(f"{half}_samples"))
    yield Bound("Lemma 7" if inner else "Lemma 5", PULLS, pulls, caps(f"{half}_pulls"))
    if inner:
        at_each = [caps("lexelim_in_anytime_regret", int(t)) for t in checkpoints]
        anytime = [np.array([both[version] for both in at_each]) for version in range(2)]
        yield Bound("Corollary 1", "regret", regret, anytime)


def _compared(bound: Bound, i: int, labels: Row) -> Row:
    """Objective or arm i of a bound, as a row."""
    column = bound.measured[..., i]
    caps = [np.broadcast_to(cap[..., i], column.shape) for cap in bound.caps]
    worst, limits = _worst(column, caps)
    of_arm = bound.quantity == PULLS
    return {
        "source": bound.source,
        **labels,
        "quantity": bound.quantity,
        "objective": math.nan if of_arm else i + 1,
        "arm": i + 1 if of_arm else math.nan,
        "printed": limits[0],
        "proved": limits[1],
        **averaged("measured", worst),
        "largest": float(np.nanmax(worst)),
        "above_printed": _runs_above(column, caps[0]),
        "above_proved": _runs_above(column, caps[1]),
        "replications": int(column.shape[0]),
    }


def _worst(column: Floats, caps: Sequence[Floats]) -> tuple[Floats, list[float]]:
    """Per replication the value that matters, and the two bounds that it is held against.

    For a curve (replications, checkpoints): where its mean comes nearest to the printed bound.
    """
    if column.ndim == 1:
        return column, [float(cap[0]) for cap in caps]
    middle, cap = column.mean(axis=0), caps[0][0]
    nearest = int(np.argmax(middle / cap if cap.min() > 0 else middle - cap))
    return column[:, nearest], [float(cap[0, nearest]) for cap in caps]


def _runs_above(column: Floats, cap: Floats) -> int:
    """How many replications exceed their bound at some time; rounding errors do not count."""
    above = column > cap + 1e-9 * np.maximum(1.0, np.abs(cap))
    return int(above.sum() if above.ndim == 1 else above.any(axis=1).sum())


def draw(tables: Tables) -> Figure:
    """Printed bound, repaired bound and measured values, a line per theorem and objective."""
    table = tables["theorems"]
    lines: list[tuple[str, int] | None] = []
    for source in ("Theorem 1", "Theorem 2", "Lemma 5", "Theorem 3", "Theorem 4", "Corollary 1", "Lemma 7"):
        lines += [None, *((source, i) for i in ((0,) if source.startswith("Lemma") else (1, 2, 3)))]
    names = [_line_name(*line) if line else None for line in lines]
    columns = {f"K = {n_arms}": [named_paper_instance(n_arms).name] for n_arms in ARMS}
    columns["edge instances, the worst"] = [edge.name for edge in EDGES]
    figure = drawing.new_figure(drawing.WIDE, 7.6)
    edges = {"left": 0.115, "right": 0.995, "top": 0.945, "bottom": 0.085}
    panels = drawing.axes_grid(figure, 2, len(columns), hspace=0.2, wspace=0.07, **edges)
    for row, width in zip(panels, GUARANTEED, strict=True):
        for axes, (title, instances) in zip(row, columns.items(), strict=True):
            within = table[(table["width"] == width) & table["instance"].isin(instances)]
            for y, line in enumerate(lines):
                if line:
                    _marks(axes, _worst_row(within, *line), y)
                elif y:
                    axes.axhline(y, color="#d0d0d0", lw=0.5)
            drawing.list_down(axes, names, with_names=axes is row[0])
            axes.set(xscale="log", ylim=(len(lines) - 0.4, 0.4))
            axes.margins(x=0.09)
            axes.set_title(title, loc="left", fontsize=7)
        top = row[0].get_position().y1 + 0.028
        figure.text(0.012, top, WIDTHS[width].title, fontweight="bold", fontsize=8)
    for axes in panels[-1]:
        axes.set_xlabel("pulls, or regret")
    looks = {
        "measured (mean; whisker to the largest run)": mark(mew=0.9),
        "printed bound": mark("|", mew=0.9, markersize=7),
        "repaired bound": mark("D", mew=0.9, mfc="white", markersize=4),
        "a run exceeds the printed bound": mark(colour="#C00000"),
    }
    drawing.legend(figure, looks, ncols=4, handletextpad=0.2)
    return figure


def _worst_row(table: pd.DataFrame, source: str, objective: int) -> Row | None:
    """The row that comes nearest to its printed bound, or exceeds it most."""
    where = {"source": source} | ({"objective": objective} if objective else {})
    rows = [item for item in rows_of(table, **where) if item["printed"] > 0 and item["largest"] > 0]
    return max(rows, key=excess, default=None)


def _line_name(source: str, objective: int) -> str:
    letter = {"Theorem 2": "T", "Theorem 4": "T̃"}.get(source, "R")
    return f"{source}  {letter}{' ¹²³'[objective]}" if objective else f"{source}  n(a)"


def _marks(axes: Axes, item: Row | None, y: float) -> None:
    if item is None:
        return
    exceeded = item["largest"] > item["printed"] * (1 + 1e-9)
    colour = "#C00000" if exceeded else ALGORITHMS[item["algorithm"]].colour
    axes.plot([item["measured"], item["largest"]], [y, y], color=colour, lw=0.8)
    axes.plot(item["measured"], y, "o", color=colour, markersize=4)
    axes.plot(item["printed"], y, "|", color="#333333", mew=1.3, markersize=8)
    axes.plot(item["proved"], y, "D", color="#555555", mfc="white", mew=0.9, markersize=3.5)


@claim("lemma-2", "Appendix, Lemma 2")
def lemma_2(_: Tables) -> Verdict:
    """For ab > e, x > a·log(ab) implies x > a·log(bx)."""
    a, b = 1.0, 10.0
    printed, proved = (theory.log_crossing(a, b, constants=version) for version in VERSIONS)
    x = (printed + proved) / 2
    right = a * math.log(b * x)
    numbers = (
        f"a = {a:g}, b = {b:g}: printed threshold {printed:.3f}, true one {proved:.3f}; "
        f"at x = {x:.3f} between them a·log(bx) = {right:.3f}"
    )
    return Verdict(HOLDS if x > right else "holds only with the true threshold", numbers)


STATEMENTS = {
    "Lemma 5": "LexElim-Out pulls no arm more often than the printed bound.",
    "Theorem 1": "The regret of LexElim-Out stays within the printed bound.",
    "Theorem 2": "LexElim-Out settles every objective within the printed number of samples.",
    "Lemma 7": "LexElim-In pulls no arm more often than the printed bound.",
    "Theorem 3": "The regret of LexElim-In stays within the printed bound.",
    "Theorem 4": "LexElim-In settles every objective within the printed number of samples.",
    "Corollary 1": "The regret of LexElim-In stays within the anytime bound (constant of its proof).",
}


def within_the_bound(source: str, statement: str) -> Claim:
    """No more runs above the printed bound than δ allows, on any instance; else the same for `proved`."""

    def judge(tables: Tables) -> Verdict:
        rows = rows_of(tables["theorems"], source=source)
        printed, proved = (
            all(at_most_delta(row[f"above_{version}"], row["replications"]) for row in rows)
            for version in VERSIONS
        )
        papers = [row for row in rows if row["instance"].startswith("K=") and row["width"] == "printed"]
        paper, worst = max(papers, key=excess), max(rows, key=excess)
        numbers = [f"the paper's experiment: {_against(paper)}"]
        if worst != paper:
            numbers.append(f"worst of all: {_against(worst)}")
        outcome = HOLDS if printed else "holds only with the repaired bound" if proved else FAILS
        return Verdict(outcome, "\n".join(numbers))

    where = f"Appendix, {source}" if source.startswith("Lemma") else source
    return Claim(source.lower().replace(" ", "-"), where, statement, judge)


def excess(row: Row) -> float:
    """How far the largest measured value is above the printed bound, as a ratio where that makes sense."""
    if row["printed"] > 0:
        return float(row["largest"] / row["printed"])
    return math.inf if row["largest"] > row["printed"] + 1e-9 else 0.0


def _against(row: Row) -> str:
    of_arm = math.isnan(row["objective"])
    what = f"arm {row['arm']:.0f}" if of_arm else f"objective {row['objective']:.0f}"
    return (
        f"instance {row['instance']}, {WIDTHS[row['width']].label}, {what}: "
        f"{mean(row, 'measured')} measured, {count(row['printed'])} printed, "
        f"{count(row['proved'])} repaired; of {row['replications']} runs {row['above_printed']} above the "
        f"printed and {row['above_proved']} above the repaired bound"
    )


CLAIMS = [lemma_2, *(within_the_bound(*each) for each in STATEMENTS.items())]
