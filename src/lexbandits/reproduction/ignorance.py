"""What it costs not to know λ, the noise or its correlation."""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lexbandits.policies.lexelim_pool import LexElimPool
from lexbandits.policies.lexelim_tol import LexElimTol
from lexbandits.policies.policy import Policy
from lexbandits.simulation.sweep import Cell, sweep
from lexbandits.world.examples import paper_instance
from lexbandits.world.instance import Instance

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure
from lexbandits.reproduction.headline import _frame, _measured

IGNORANCE_DELTA = 0.1
IGNORANCE_REPLICATIONS = 1000
TRADEOFFS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
CORRELATIONS = (-0.9, -0.5, 0.0, 0.5, 0.9)
NOISE_FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2)
RESOLUTION = 0.1  # of the smallest tolerances; larger ones are their own


class Question(NamedTuple):
    """One setting of what a policy is told, or of what is true, in `ignorance`."""

    topic: str
    told: str
    value: float
    policy: Policy
    instance: Instance


def questions(delta: float = IGNORANCE_DELTA) -> Iterable[Question]:
    """LexElim-Pool with a wrong λ, dependence or noise scale, and LexElim-Tol across tolerances; K = 10."""
    paper = paper_instance(10)
    sd, tradeoff, shape = paper.noise_sd, paper.tradeoff, (10, 3)
    for value in TRADEOFFS:
        policy = LexElimPool(*shape, delta=delta, tradeoff=value, noise_sd=sd)
        yield Question("tradeoff", "λ", value, policy, paper)
    for value in CORRELATIONS:
        # Three objectives cannot all share a correlation below −0.5: there the first two alone do.
        matrix = np.eye(3) if value < 0 else np.where(np.eye(3) == 1, 1.0, value)
        matrix[0, 1] = matrix[1, 0] = value
        instance = Instance(**{**paper.settings, "correlation": matrix})
        for told, correlated in (
            ("independent", False), ("any dependence", True), ("the correlation", matrix.tolist()),
        ):  # fmt: skip
            pool = LexElimPool(*shape, delta=delta, tradeoff=tradeoff, noise_sd=sd, correlated=correlated)
            yield Question("correlation", told, value, pool, instance)
    for value in NOISE_FACTORS:
        policy = LexElimPool(*shape, delta=delta, tradeoff=tradeoff, noise_sd=value * float(sd))
        yield Question("noise", "σ over the true one", value, policy, paper)
    for value in TOLERANCES:
        resolution = max(value, RESOLUTION)
        tol = LexElimTol(*shape, delta=delta, tolerance=value, resolution=resolution, noise_sd=sd)
        yield Question("tolerance", f"resolution {resolution:g}", value, tol, paper)


def ignorance(
    *,
    delta: float = IGNORANCE_DELTA,
    replications: int = IGNORANCE_REPLICATIONS,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
    progress: bool = False,
    horizon: int = 200_000,
) -> "pd.DataFrame":
    """What it costs not to know, on the paper's K = 10: pulls and errors, one row per setting.

    Columns: topic ("tradeoff", "correlation", "noise", "tolerance"), told, value, pulls (mean),
    standard_error, stopped, wrong (stopped with another arm than the lex-optimal one), broken (the share
    of runs that broke the policy's promise: LexElim-Tol promises an answer within its tolerances, not
    the lex-optimal arm), replications, delta.
    """
    asked = list(questions(delta))
    cells = [Cell(f"{q.topic}, {q.told}, {q.value:g}", q.policy, q.instance, horizon) for q in asked]
    runs = sweep(cells, replications=replications, seed=seed, n_jobs=n_jobs, out=out, progress=progress)
    measured = _measured(runs.frame(), [cell.name for cell in cells])
    rows = []
    for q, row in zip(asked, measured, strict=True):
        rows.append({"topic": q.topic, "told": q.told, "value": q.value, **row, "delta": delta})
    return _frame(rows)


def ignorance_figure(table: "pd.DataFrame") -> "Figure":
    """Pulls above, broken promises below (dashed: delta), one column per topic of `ignorance`."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    titles = {
        "tradeoff": "λ told (true: 2)",
        "correlation": "true correlation",
        "noise": "σ told / true σ",
        "tolerance": "LexElim-Tol: tolerance",
    }
    figure = Figure(figsize=(12, 5.2), layout="constrained")
    axes = figure.subplots(2, len(titles), sharex="col", squeeze=False)
    colours = ("#009E73", "#D55E00", "#0072B2")
    for column, (topic, title) in enumerate(titles.items()):
        upper, lower = axes[0, column], axes[1, column]
        rows = table[table["topic"] == topic]
        labels = list(dict.fromkeys(rows["told"])) if topic == "correlation" else [title]
        for label, colour in zip(labels, colours, strict=False):
            some = rows[rows["told"] == label] if topic == "correlation" else rows
            some = some.sort_values("value")
            upper.errorbar(
                some["value"],
                some["pulls"],
                2 * some["standard_error"],
                fmt="o-",
                ms=4,
                color=colour,
                label=label,
            )
            lower.plot(some["value"], some["broken"], "o-", ms=4, color=colour)
            if topic == "tolerance":
                missed = some["wrong"] / some["replications"]
                lower.plot(some["value"], missed, "o:", ms=4, color="#777777")
                lower.text(
                    0.2, 0.93, "not the\nlex-optimal arm", color="#777777", fontsize=8, ha="right", va="top"
                )
        if topic != "correlation":  # there pulls differ by less than a factor of three
            upper.set_yscale("log")
            upper.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 3.0, 5.0)))
        upper.yaxis.set_major_formatter(FuncFormatter(lambda pulls, _: f"{pulls:,.0f}"))
        upper.yaxis.set_minor_formatter(NullFormatter())
        lower.axhline(float(rows["delta"].iloc[0]), color="#777777", ls="--", lw=1)
        lower.set_ylim(bottom=0)
        lower.set_xlabel(title)
        if topic == "correlation":
            upper.legend(frameon=False, fontsize=8, title="told")
        for part in (upper, lower):
            part.spines[["top", "right"]].set_visible(False)
    axes[0, 0].set_ylabel("pulls to stop (± 2 s.e.)")
    axes[1, 0].set_ylabel("promise broken")
    return figure
