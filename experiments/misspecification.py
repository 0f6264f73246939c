"""What it costs not to know λ, the noise or its correlation, and what tolerances cost."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.drawing import WIDE, Axes, Figure, house_style, new_figure
from experiments.headline import REPLICATIONS, measured
from lexbandits import Instance, LexElimPool, LexElimTol, Policy, paper_instance, sweep
from lexbandits.simulation import Cell
from lexbandits.simulation.oracle_settings import with_oracle_settings

DELTA = 0.1
HORIZON = 200_000
TRADEOFFS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
CORRELATIONS = (-0.9, -0.5, 0.0, 0.5, 0.9)
NOISE_FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2)
RESOLUTION = 0.1  # of the smallest tolerances; larger ones are their own

TOPICS = {
    "tradeoff": "λ told (true: 2)",
    "correlation": "true correlation",
    "noise": "σ told / true σ",
    "tolerance": "LexElim-Tol: tolerance",
}
COLOURS = ("#009E73", "#D55E00", "#0072B2")


class Question(NamedTuple):
    """One setting of what a policy is told, or of what is true."""

    topic: str
    told: str
    value: float
    policy: Policy
    instance: Instance

    @property
    def name(self) -> str:
        """Of its cell."""
        return f"{self.topic}, {self.told}, {self.value:g}"


def questions() -> Iterator[Question]:
    """LexElim-Pool with a wrong λ, dependence or noise scale, and LexElim-Tol across tolerances; K = 10."""
    paper = paper_instance(10)

    def pool(**told: Any) -> Policy:
        return with_oracle_settings(LexElimPool, paper, delta=DELTA, **told)

    for value in TRADEOFFS:
        yield Question("tradeoff", "λ", value, pool(tradeoff=value), paper)
    for value in CORRELATIONS:
        # Three objectives cannot all share a correlation below −0.5: there the first two alone do.
        matrix = np.eye(3) if value < 0 else np.where(np.eye(3) == 1, 1.0, value)
        matrix[0, 1] = matrix[1, 0] = value
        instance = Instance(**{**paper.settings, "correlation": matrix})
        yield Question("correlation", "independent", value, pool(), instance)
        yield Question("correlation", "any dependence", value, pool(correlated=True), instance)
        yield Question("correlation", "the correlation", value, pool(correlated=matrix.tolist()), instance)
    for value in NOISE_FACTORS:
        policy = pool(noise_sd=value * float(paper.noise_sd))
        yield Question("noise", "σ over the true one", value, policy, paper)
    for value in TOLERANCES:
        resolution = max(value, RESOLUTION)
        tol = with_oracle_settings(LexElimTol, paper, delta=DELTA, tolerance=value, resolution=resolution)
        yield Question("tolerance", f"resolution {resolution:g}", value, tol, paper)


def misspecification(*, replications: int = REPLICATIONS, horizon: int = HORIZON, **how: Any) -> pd.DataFrame:
    """What it costs not to know, on the paper's K = 10: pulls and errors, one row per question.

    Columns: topic, told, value, those of `headline.measured`, delta. LexElim-Tol promises an answer
    within its tolerances, not the lex-optimal arm. `how` goes to `sweep`.
    """
    asked = list(questions())
    cells = [Cell(q.name, q.policy, q.instance, horizon) for q in asked]
    results = sweep(cells, replications=replications, **how)
    rows = [
        {"topic": q.topic, "told": q.told, "value": q.value, **measured(results, q.name), "delta": DELTA}
        for q in asked
    ]
    return pd.DataFrame(rows)


def misspecification_markdown(table: pd.DataFrame) -> str:
    """A line per topic and what was told; bold where the promise was broken in more than δ of the runs."""
    lines = ["| told | values | pulls | promise broken |", "| --- | --- | ---: | ---: |"]
    for topic, told, rows in _groups(table):
        values = ", ".join(f"{value:g}" for value in rows["value"])
        pulls = ", ".join(f"{value:,.0f}" for value in rows["pulls"])
        shares = (f"**{share:.1%}**" if share > DELTA else f"{share:.1%}" for share in rows["broken"])
        what = f"{TOPICS[topic]}; told {told}" if topic == "correlation" else TOPICS[topic]
        lines.append(f"| {what} | {values} | {pulls} | {', '.join(shares)} |")
    return "\n".join(lines)


def _groups(table: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """The lines of the table and the figure: by topic, and for a correlation by what was told."""
    about = table["told"].where(table["topic"] == "correlation", "")
    for (topic, told), rows in table.groupby(["topic", about], sort=False):
        yield str(topic), str(told), rows


def misspecification_figure(table: pd.DataFrame) -> Figure:
    """Pulls above, broken promises below (dashed: delta), one column per topic."""
    with house_style():
        figure = new_figure(WIDE, 3.4, layout="constrained")
        axes = figure.subplots(2, len(TOPICS), sharex="col", squeeze=False)
        for column, topic in enumerate(TOPICS):
            lines = [(told, rows) for about, told, rows in _groups(table) if about == topic]
            _column(axes[0, column], axes[1, column], topic, lines)
        axes[0, 0].set_ylabel("pulls to stop (± 2 s.e.)")
        axes[1, 0].set_ylabel("promise broken")
    return figure


def _column(upper: Axes, lower: Axes, topic: str, lines: list[tuple[str, pd.DataFrame]]) -> None:
    from matplotlib.ticker import LogLocator, NullFormatter

    for (told, rows), colour in zip(lines, COLOURS, strict=False):
        x, errors = rows["value"], 2 * rows["standard_error"]
        upper.errorbar(x, rows["pulls"], errors, fmt="o-", ms=3, color=colour, label=told)
        lower.plot(x, rows["broken"], "o-", ms=3, color=colour)
        if topic == "tolerance":
            grey: Any = {"color": "#777777"}
            lower.plot(x, rows["wrong"] / rows["replications"], "o:", ms=3, **grey)
            lower.text(0.2, 0.75, "not the\nlex-optimal arm", **grey, fontsize=6, ha="right", va="top")
        lower.axhline(DELTA, color="#777777", ls="--", lw=0.8)
    if topic == "correlation":
        upper.set_ylim(bottom=0)  # pulls differ by less than a factor of three: no need for a logarithm
        upper.legend(frameon=False, title="told", loc="lower right")
    else:
        upper.set_yscale("log")
        upper.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
    upper.yaxis.set_major_formatter("{x:,.0f}")
    upper.yaxis.set_minor_formatter(NullFormatter())
    lower.set_ylim(bottom=0)
    lower.set_xlabel(TOPICS[topic])
