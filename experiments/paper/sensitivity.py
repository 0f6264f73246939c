"""Pulls and wrong answers at K = 10 as λ, δ, the width scale and α vary; not in the paper."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from experiments import drawing
from experiments.drawing import Axes, Figure
from experiments.paper import experiment, verdict
from experiments.paper.experiment import ALGORITHMS, GUARANTEED, PAPERS, WIDTHS, Entry, named_paper_instance
from experiments.paper.tables import Mean, Row, Tables, averaged, errors, mean, one, rows_of
from experiments.paper.verdict import Finding, Verdict, by_width, claim, together
from lexbandits.simulation import Results

NAME = "sensitivity"
TITLE = "Sensitivity at K = 10"
CAPTION = (
    "Above, mean pulls of the runs that stopped (band: two standard errors; white markers: some "
    "runs did not). Below, runs with a wrong answer or none (bars: exact 95 % intervals; dashed: "
    "1 %). Solid, dashed and dotted lines: widths as printed, matched, and times 0.1, and solid for the "
    "sound and tight policies; for the width scale the line of the algorithm."
)
SHOWN = {"sensitivity": "Sensitivity"}

TRADEOFFS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
DELTAS = (0.1, 0.03, 0.01, 0.001, 0.0001)
SCALES = (0.02, 0.05, 0.1, 0.2, experiment.TRUE_SD, 0.5, 1.0)
ALPHAS = (1.5, 3.0, 6.0)

PARAMETERS = {  # what an axis is called, and its ticks
    "tradeoff": ("λ told to In and Pool", (0, 1, 2, 3, 4)),
    "delta": ("δ", (0.1, 0.01, 0.001, 0.0001)),
    "scale": ("σ told (the noise has √0.1)", (0.02, 0.1, experiment.TRUE_SD, 1)),
    "alpha": ("α of UCB-α", ALPHAS),
}
TICK_NAMES = {"scale": ["0.02", "0.1", "√0.1", "1"]}


def entries() -> list[tuple[Row, Entry]]:
    """Each parameter alone, the others as in the paper's experiment."""
    found: list[tuple[Row, Entry]] = []

    def vary(parameter: str, width: str, cells: Mapping[float, Entry]) -> None:
        for value, entry in cells.items():
            labels = {"parameter": parameter, "value": value, "width": width, "algorithm": entry.algorithm}
            found.append(({**labels, "noise_sd": entry.noise_sd}, entry))

    paper = named_paper_instance(10)
    for width, told in WIDTHS.items():
        for algorithm in told.algorithms:
            base = Entry(paper, algorithm, told.noise_sd)
            if "tradeoff" in base.settings:
                vary("tradeoff", width, {x: base._replace(tradeoff=x) for x in TRADEOFFS})
            vary("delta", width, {x: base._replace(delta=x) for x in DELTAS})
    for algorithm in (*PAPERS, *experiment.SOUND):
        vary("scale", "any", {x: Entry(paper, algorithm, x) for x in SCALES})
    for width in experiment.PAPER_WIDTHS:
        base = experiment.ucb_entry(paper, WIDTHS[width].noise_sd)
        vary("alpha", width, {x: base._replace(alpha=x) for x in ALPHAS})
    return found


def tables(results: Results, answers: Mapping[str, Row]) -> dict[str, list[Row]]:
    """A row per value and cell: pulls until the first objective is settled, and to stop."""
    rows: list[Row] = []
    for labels, entry in entries():
        samples = averaged("samples_1", results.identification_rounds(entry.name)[:, 0])
        rows.append({**labels, **samples, **answers[entry.name]})
    return {"sensitivity": rows}


def draw(tables: Tables) -> Figure:
    """Pulls above, runs without a right answer below, a column per parameter."""
    table = tables["sensitivity"]
    figure = drawing.new_figure(drawing.WIDE, 4.9)
    edges = {"left": 0.062, "right": 0.95, "top": 0.975, "bottom": 0.085}
    above, below = drawing.axes_grid(figure, 2, 4, hspace=0.12, wspace=0.68, **edges)
    for upper, lower, (parameter, (title, ticks)) in zip(above, below, PARAMETERS.items(), strict=True):
        varied = table[table["parameter"] == parameter]
        falling = parameter == "delta"
        ends = [
            _curve(upper, lower, group.sort_values("value", ascending=not falling))
            for _, group in varied.groupby(["width", "algorithm"], sort=False)
        ]
        for axes in (upper, lower):
            if parameter in ("delta", "scale"):
                axes.set_xscale("log")
            if falling:
                axes.invert_xaxis()
            axes.set_xticks(ticks, TICK_NAMES.get(parameter))
        upper.set_yscale("log")
        upper.tick_params(labelbottom=False)
        lower.set(xlabel=title, ylim=(-4, 104))
        lower.axhline(1, color="#333333", lw=0.7, ls=(0, (3, 2)))
        drawing.label_ends(upper, varied["value"].min() if falling else varied["value"].max(), ends)
    above[0].set_ylabel("pulls to stop")
    below[0].set_ylabel("no right answer, %")
    return figure


def _curve(upper: Axes, lower: Axes, curve: pd.DataFrame) -> tuple[float, str, str]:
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
    for label, width in verdict.LABELLED.items():
        parts = []
        for row in rows_of(tables["sensitivity"], parameter="tradeoff", width=width, algorithm="LexElim-In"):
            if width in GUARANTEED:
                sound[row["value"]] &= verdict.at_most_delta(row["wrong"], row["replications"])
            parts.append(f"λ = {row['value']:g}: {errors(row)}, {mean(row, 'pulls')} pulls")
        told.append(f"{label}: {'; '.join(parts)}")
    enough = [value for value in TRADEOFFS if all(sound[other] for other in TRADEOFFS if other >= value)]
    outcome = f"holds only with λ ≥ {enough[0]:g} (of those tried)" if enough else verdict.FAILS
    return Verdict(verdict.HOLDS if all(sound.values()) else outcome, "\n".join(told))


@claim("fewer-samples-than-ucb", "BAI Results, Figure 3")
def fewer_samples_than_ucb(tables: Tables) -> Verdict:
    """At K = 10 LexElim-In settles the first objective with fewer samples than UCB-α. (The text names no α;
    judged with widths that carry a guarantee.)
    """
    table = tables["sensitivity"]
    cases: dict[str, bool] = {}
    told = []
    for row in rows_of(table, parameter="alpha"):
        where = {"parameter": "tradeoff", "value": experiment.TRADEOFF, "width": row["width"]}
        inner = one(table, **where, algorithm="LexElim-In")
        name = f"α = {row['value']:g}"
        if row["width"] in GUARANTEED:
            fewer = mean(inner, "samples_1").below(mean(row, "pulls"))
            cases[name] = cases.get(name, True) and fewer
        told.append(
            f"{WIDTHS[row['width']].label}, {name}: UCB-α {mean(row, 'pulls')} ({errors(row)}), "
            f"LexElim-In {mean(inner, 'samples_1')} ({errors(inner)})"
        )
    return Verdict(verdict.only_with(cases), "\n".join(told))


@claim("logarithmic-in-delta", "Theorems 2 and 4")
@by_width
def logarithmic_in_delta(tables: Tables, width: str) -> Finding:
    """The samples grow with the confidence no faster than log(1/δ). (Here: from δ = 0.01 to 0.0001 a tenth of
    δ costs no more pulls than from 0.1 to 0.01.)
    """
    judged = []
    for algorithm in PAPERS:
        where = {"parameter": "delta", "width": width, "algorithm": algorithm}
        least, middle, most = (
            mean(one(tables["sensitivity"], **where, value=delta), "pulls") for delta in (0.1, 0.01, 0.0001)
        )
        early, late = middle.minus(least), most.minus(middle).over(Mean(2.0, 0.0))
        numbers = f"{algorithm} {early} early, {late} late ({least} to {most} in all)"
        judged.append((not early.below(late), numbers))
    return together(judged)


CLAIMS = verdict.claims_among(globals())
