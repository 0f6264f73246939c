"""Pulls and wrong answers at K = 10 as λ, δ, the width scale and α vary; not in the paper."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lexbandits.drawing import WIDE, label_ends, new_figure
from lexbandits.reproduction.experiment import (
    ALGORITHMS,
    GUARANTEED,
    PAPER_WIDTHS,
    PAPERS,
    SOUND,
    TRADEOFF,
    TRUE_SD,
    WIDTHS,
    Entry,
    averaged,
    paper_world,
    ucb_entry,
)
from lexbandits.reproduction.section import Section
from lexbandits.reproduction.tables import Mean, Row, Tables, errors, mean, one, rows_of
from lexbandits.reproduction.verdict import (
    FAILS,
    HOLDS,
    Judged,
    Verdict,
    at_most_delta,
    by_width,
    claim,
    only_with,
)
from lexbandits.simulation.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

TRADEOFFS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
DELTAS = (0.1, 0.03, 0.01, 0.001, 0.0001)
SCALES = (0.02, 0.05, 0.1, 0.2, TRUE_SD, 0.5, 1.0)
ALPHAS = (1.5, 3.0, 6.0)

TITLES = {
    "tradeoff": "λ told to In and Pool",
    "delta": "δ",
    "scale": "σ told (the noise has √0.1)",
    "alpha": "α of UCB-α",
}
TICKS: dict[str, Any] = {
    "tradeoff": {"ticks": [0, 1, 2, 3, 4]},
    "delta": {"ticks": [0.1, 0.01, 0.001, 0.0001]},
    "scale": {"ticks": [0.02, 0.1, TRUE_SD, 1], "labels": ["0.02", "0.1", "√0.1", "1"]},
    "alpha": {"ticks": ALPHAS},
}


def entries() -> list[tuple[Row, Entry]]:
    """Each parameter alone, the others as in the paper's experiment."""
    found: list[tuple[Row, Entry]] = []

    def vary(parameter: str, width: str, cells: Mapping[float, Entry]) -> None:
        for value, entry in cells.items():
            labels = {"parameter": parameter, "value": value, "width": width, "algorithm": entry.algorithm}
            found.append(({**labels, "noise_sd": entry.noise_sd}, entry))

    paper = paper_world(10)
    for width, told in WIDTHS.items():
        for algorithm in told.algorithms:
            base = Entry(paper, algorithm, told.noise_sd)
            if "tradeoff" in base.settings:
                vary("tradeoff", width, {x: base._replace(tradeoff=x) for x in TRADEOFFS})
            vary("delta", width, {x: base._replace(delta=x) for x in DELTAS})
    for algorithm in (*PAPERS, *SOUND):
        vary("scale", "any", {x: Entry(paper, algorithm, x) for x in SCALES})
    for width in PAPER_WIDTHS:
        base = ucb_entry(paper, WIDTHS[width].noise_sd)
        vary("alpha", width, {x: base._replace(alpha=x) for x in ALPHAS})
    return found


def tables(results: Results, answers: Mapping[str, Row]) -> dict[str, list[Row]]:
    """A row per value and cell: pulls until the first objective is settled, and to stop."""
    rows: list[Row] = []
    for labels, entry in entries():
        samples = averaged("samples_1", results.identification_rounds(entry.name)[:, 0])
        rows.append({**labels, **samples, **answers[entry.name]})
    return {"sensitivity": rows}


def draw(tables: Tables) -> "Figure":
    """Pulls above, runs without a right answer below, a column per parameter."""
    table = tables["sensitivity"]
    figure = new_figure(WIDE, 4.9)
    grid = figure.add_gridspec(
        2, 4, left=0.062, right=0.95, top=0.975, bottom=0.085, hspace=0.12, wspace=0.68
    )
    labels: list[tuple[Axes, float, list[tuple[float, str, str]]]] = []
    for column, (parameter, title) in enumerate(TITLES.items()):
        upper, lower = (figure.add_subplot(grid[row, column]) for row in range(2))
        varied = table[table["parameter"] == parameter]
        ends = [
            _curve(upper, lower, group.sort_values("value", ascending=parameter != "delta"))
            for _, group in varied.groupby(["width", "algorithm"], sort=False)
        ]
        for axes in (upper, lower):
            if parameter in ("delta", "scale"):
                axes.set_xscale("log")
            if parameter == "delta":
                axes.invert_xaxis()
            axes.set_xticks(**TICKS[parameter])
        upper.set_yscale("log")
        upper.tick_params(labelbottom=False)
        lower.set(xlabel=title, ylim=(-4, 104))
        lower.axhline(1, color="#333333", lw=0.7, ls=(0, (3, 2)))
        if column == 0:
            upper.set_ylabel("pulls to stop")
            lower.set_ylabel("no right answer, %")
        labels.append((upper, varied["value"].min() if parameter == "delta" else varied["value"].max(), ends))
    for axes, x_end, ends in labels:
        label_ends(axes, x_end, ends)
    return figure


def _curve(upper: "Axes", lower: "Axes", curve: pd.DataFrame) -> tuple[float, str, str]:
    """One algorithm under one width; gives where its pulls end, its name and colour."""
    parameter, width, algorithm = (curve[key].iloc[0] for key in ("parameter", "width", "algorithm"))
    look, told = ALGORITHMS[algorithm], WIDTHS.get(width)
    x, middle, error = (curve[key].to_numpy() for key in ("value", "pulls", "pulls_se"))
    style: Any = {
        "color": look.colour,
        "ls": told.line if told else look.line,
        "marker": look.marker,
        "markersize": 3,
        "lw": 1,
    }
    low, high = np.maximum(middle - 2 * error, middle / 20), middle + 2 * error
    upper.plot(x, middle, **style)
    upper.fill_between(x, low, high, color=look.colour, alpha=0.18, lw=0)
    partial = curve["unstopped"] > 0  # means of the runs that stopped only
    upper.plot(x[partial], middle[partial], **style | {"ls": "", "mfc": "white"})
    failed = curve["failed"]
    bars = [failed - curve["failed_low"], curve["failed_high"] - failed]
    lower.errorbar(x, failed, yerr=bars, elinewidth=0.5, **style)
    short = told.short if told else ""
    name = short if parameter == "alpha" else f"{look.short} {short}".strip()
    return float(middle[-1]), name, look.colour


@claim("tradeoff-needed", "Experimental Setup; Eq. (2)")
def tradeoff_needed(tables: Tables) -> Verdict:
    """LexElim-In identifies the lex-optimal arm of the experiment. (The text does not say with which λ; the
    guarantee needs λ ≥ 2.)
    """
    sound = dict.fromkeys(TRADEOFFS, True)
    told = []
    for width in PAPER_WIDTHS:
        parts = []
        for row in rows_of(tables["sensitivity"], parameter="tradeoff", width=width, algorithm="LexElim-In"):
            if width in GUARANTEED:
                sound[row["value"]] &= at_most_delta(row["wrong"], row["replications"])
            parts.append(f"λ = {row['value']:g}: {errors(row)}, {mean(row, 'pulls')} pulls")
        told.append(f"{WIDTHS[width].label}: {'; '.join(parts)}")
    enough = [value for value in TRADEOFFS if all(sound[other] for other in TRADEOFFS if other >= value)]
    outcome = f"holds only with λ ≥ {enough[0]:g} (of those tried)" if enough else FAILS
    return Verdict(HOLDS if all(sound.values()) else outcome, "\n".join(told))


@claim("fewer-samples-than-ucb", "BAI Results, Figure 3")
def fewer_samples_than_ucb(tables: Tables) -> Verdict:
    """At K = 10 LexElim-In settles the first objective with fewer samples than UCB-α. (The text names no α;
    judged with widths that carry a guarantee.)
    """
    table = tables["sensitivity"]
    cases: dict[str, bool] = {}
    told = []
    for row in rows_of(table, parameter="alpha"):
        where = {"parameter": "tradeoff", "value": TRADEOFF, "width": row["width"]}
        inner = one(table, **where, algorithm="LexElim-In")
        name = f"α = {row['value']:g}"
        if row["width"] in GUARANTEED:
            fewer = mean(inner, "samples_1").below(mean(row, "pulls"))
            cases[name] = cases.get(name, True) and fewer
        told.append(
            f"{WIDTHS[row['width']].label}, {name}: UCB-α {mean(row, 'pulls')} ({errors(row)}), "
            f"LexElim-In {mean(inner, 'samples_1')} ({errors(inner)})"
        )
    return Verdict(only_with(cases), "\n".join(told))


@claim("logarithmic-in-delta", "Theorems 2 and 4")
def logarithmic_in_delta(tables: Tables) -> Verdict:
    """The samples grow with the confidence no faster than log(1/δ). (Here: from δ = 0.01 to 0.0001 a tenth of
    δ costs no more pulls than from 0.1 to 0.01.)
    """

    def look(width: str) -> Judged:
        holds, parts = True, []
        for algorithm in PAPERS:
            where = {"parameter": "delta", "width": width, "algorithm": algorithm}
            least, middle, most = (
                mean(one(tables["sensitivity"], **where, value=delta), "pulls")
                for delta in (0.1, 0.01, 0.0001)
            )
            early, late = middle.minus(least), most.minus(middle).over(Mean(2.0, 0.0))
            holds &= not early.below(late)
            parts.append(f"{algorithm} {early} early, {late} late ({least} to {most} in all)")
        return holds, "; ".join(parts)

    return by_width(look)


SECTION = Section(
    name="sensitivity",
    title="Sensitivity at K = 10",
    caption="Above, mean pulls of the runs that stopped (band: two standard errors; white markers: some "
    "runs did not). Below, runs with a wrong answer or none (bars: exact 95 % intervals; dashed: "
    "1 %). Solid, dashed and dotted lines: widths as printed, matched, and times 0.1, and solid for the "
    "sound and tight policies; for the width scale the line of the algorithm.",
    entries=entries,
    tables=tables,
    shown={"sensitivity": "Sensitivity"},
    draw=draw,
    claims=(tradeoff_needed, fewer_samples_than_ucb, logarithmic_in_delta),
)
