"""What the library is for, as two tables: pulls beside the lower bound, and what it costs not to know."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lexbandits.instance import Instance, paper_instance
from lexbandits.lower_bound import characteristic_time, sample_lower_bound
from lexbandits.policies.base import Elimination, Policy
from lexbandits.policies.lexelim_cone import LexElimCone
from lexbandits.policies.lexelim_in import LexElimIn
from lexbandits.policies.lexelim_out import LexElimOut
from lexbandits.policies.lexelim_phase import LexElimPhase
from lexbandits.policies.lexelim_pool import LexElimPool
from lexbandits.policies.lexelim_tol import LexElimTol
from lexbandits.sweep import Cell, sweep

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ARMS = (10, 20, 30)
DELTA = 0.01
HORIZON = 5_000_000
REPLICATIONS = 200

IGNORANCE_DELTA = 0.1
IGNORANCE_REPLICATIONS = 1000
TRADEOFFS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 8.0)
CORRELATIONS = (-0.9, -0.5, 0.0, 0.5, 0.9)
NOISE_FACTORS = (0.5, 0.7, 1.0, 1.4, 2.0)
TOLERANCES = (0.01, 0.02, 0.05, 0.1, 0.2)
RESOLUTION = 0.1  # of the smallest tolerances; larger ones are their own


class Contender(NamedTuple):
    """A policy and what it must be told."""

    name: str
    knows: str
    policy: Policy


def contenders(instance: Instance, delta: float) -> list[Contender]:
    """The elimination policies, each told what it needs about `instance` and its true noise."""
    shape = (instance.n_arms, instance.n_objectives)
    told: dict[str, Any] = {"delta": delta, "noise_sd": instance.noise_sd}
    sizes, tradeoff = list(instance.optimal_set_sizes), instance.tradeoff
    differences = np.abs(instance.gaps)
    # No tolerance, and a resolution at which the answer can only be the lex-optimal arm.
    resolution = [float(column[column > 0].min()) for column in differences.T]
    return [
        Contender("LexElim-Out", "set sizes", LexElimOut(*shape, **told, optimal_set_sizes=sizes)),
        Contender("LexElim-Phase", "set sizes", LexElimPhase(*shape, **told, optimal_set_sizes=sizes)),
        Contender("LexElim-In", "λ", LexElimIn(*shape, **told, tradeoff=tradeoff)),
        Contender("LexElim-Cone", "λ", LexElimCone(*shape, **told, tradeoff=tradeoff)),
        Contender("LexElim-Pool", "λ", LexElimPool(*shape, **told, tradeoff=tradeoff)),
        Contender(
            "LexElim-Tol", "least gaps", LexElimTol(*shape, **told, tolerance=0.0, resolution=resolution)
        ),
    ]


def headline(
    *,
    arms: Sequence[int] = ARMS,
    only: Sequence[str] | None = None,
    delta: float = DELTA,
    replications: int = REPLICATIONS,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
    progress: bool = False,
) -> "pd.DataFrame":
    """Pulls to stop and errors on the paper's instances, one row per number of arms and algorithm.

    Columns: n_arms, algorithm, knows, pulls (mean), standard_error, stopped, wrong, replications,
    lower_bound (T*·kl(δ, 1 − δ), for algorithms that know λ) and ratio, the pulls over it.
    """
    entries = [(n, c) for n in arms for c in contenders(paper_instance(n), delta)]
    if only:
        known = dict.fromkeys(c.name for _, c in entries)
        if unknown := [name for name in only if name not in known]:
            raise ValueError(f"unknown algorithm {unknown[0]!r}; known: {', '.join(known)}")
        entries = [(n, c) for n, c in entries if c.name in only]
    cells = [Cell(f"K={n}, {c.name}", c.policy, paper_instance(n), HORIZON) for n, c in entries]
    runs = sweep(cells, replications=replications, seed=seed, n_jobs=n_jobs, out=out, progress=progress)
    bounds = {n: sample_lower_bound(characteristic_time(paper_instance(n)).low, delta) for n in arms}
    measured = _measured(runs.frame(), [cell.name for cell in cells])
    rows = [
        {"n_arms": n, "algorithm": c.name, "knows": c.knows, **row, "lower_bound": bounds[n],
         "ratio": row["pulls"] / bounds[n]}
        for (n, c), row in zip(entries, measured, strict=True)
    ]  # fmt: skip
    return _frame(rows)


def headline_markdown(table: "pd.DataFrame") -> str:
    """The headline as a Markdown table: mean pulls ± standard error, wrong answers in brackets."""
    algorithms = list(dict.fromkeys(table["algorithm"]))
    lines = [
        "| K | lower bound | " + " | ".join(algorithms) + " |",
        "| ---: | ---: |" + " ---: |" * len(algorithms),
    ]
    for n_arms, group in table.groupby("n_arms", sort=True):
        rows = group.set_index("algorithm").to_dict("index")
        texts = [_pulls_text(rows[name]) for name in algorithms]
        bound = next(iter(rows.values()))["lower_bound"]
        lines.append(f"| {n_arms} | {bound:,.0f} | " + " | ".join(texts) + " |")
    return "\n".join(lines)


def _pulls_text(row: dict[Any, Any]) -> str:
    unstopped = row["replications"] - row["stopped"]
    late = f", {unstopped} unfinished" if unstopped else ""
    text = f"{row['pulls']:,.0f} ± {row['standard_error']:,.0f}"
    return f"{text} ({row['wrong']}/{row['replications']} wrong{late})"


class Question(NamedTuple):
    """One setting of what a policy is told, or of what is true, in `ignorance`."""

    topic: str
    told: str
    value: float
    policy: Policy
    instance: Instance


def questions(delta: float = IGNORANCE_DELTA) -> Iterable[Question]:
    """LexElim-Cone with a wrong λ, dependence or noise scale, and LexElim-Tol across tolerances; K = 10."""
    paper = paper_instance(10)
    sd, tradeoff, shape = paper.noise_sd, paper.tradeoff, (10, 3)
    for value in TRADEOFFS:
        policy = LexElimCone(*shape, delta=delta, tradeoff=value, noise_sd=sd)
        yield Question("tradeoff", "λ", value, policy, paper)
    for value in CORRELATIONS:
        # Three objectives cannot all share a correlation below −0.5: there the first two alone do.
        matrix = np.eye(3) if value < 0 else np.where(np.eye(3) == 1, 1.0, value)
        matrix[0, 1] = matrix[1, 0] = value
        instance = Instance(**{**paper.settings, "correlation": matrix})
        for told, correlated in (
            ("independent", False), ("any dependence", True), ("the correlation", matrix.tolist()),
        ):  # fmt: skip
            cone = LexElimCone(*shape, delta=delta, tradeoff=tradeoff, noise_sd=sd, correlated=correlated)
            yield Question("correlation", told, value, cone, instance)
    for value in NOISE_FACTORS:
        policy = LexElimCone(*shape, delta=delta, tradeoff=tradeoff, noise_sd=value * float(sd))
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
    standard_error, stopped, wrong (stopped with another arm than the lex-optimal one), replications,
    broken (the share of runs that broke the policy's promise: LexElim-Tol promises an answer within
    its tolerances, not the lex-optimal arm), delta.
    """
    asked = list(questions(delta))
    cells = [Cell(f"{q.topic}, {q.told}, {q.value:g}", q.policy, q.instance, horizon) for q in asked]
    runs = sweep(cells, replications=replications, seed=seed, n_jobs=n_jobs, out=out, progress=progress)
    measured = _measured(runs.frame(), [cell.name for cell in cells])
    rows = []
    for q, cell, row in zip(asked, cells, measured, strict=True):
        broken = row["wrong"]
        if isinstance(q.policy, LexElimTol):
            answers = runs.frame().query("cell == @cell.name and stopped")
            pairs = zip(answers["replication"], answers["recommendation"], strict=True)
            broken = sum(out_of_tolerance(q, int(a), runs.eliminations(cell.name, int(r))) for r, a in pairs)
        share = broken / row["replications"]
        rows.append(
            {"topic": q.topic, "told": q.told, "value": q.value, **row, "broken": share, "delta": delta}
        )
    return _frame(rows)


def out_of_tolerance(question: Question, answer: int, eliminations: Iterable[Elimination]) -> bool:
    """Whether a run of LexElim-Tol broke either promise on some objective."""
    means, settings = question.instance.means, question.policy.settings
    tolerance, resolution = settings["tolerance"], settings["resolution"]
    reached, left = set(range(len(means))), list(eliminations)
    for i in range(means.shape[1]):
        best = max(means[arm, i] for arm in reached)
        gone = {e.arm for e in left if e.objective == i}
        # gaps equal to a tolerance are on its right side, whatever their last digit
        dropped = any(best - means[arm, i] <= tolerance - 1e-12 for arm in gone)
        if dropped or best - means[answer, i] > tolerance + resolution + 1e-12:
            return True
        reached -= gone
    return False


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


def _measured(frame: "pd.DataFrame", names: Iterable[str]) -> list[dict[str, Any]]:
    """Means, standard errors and errors of each cell, in order."""
    cells = dict(list(frame.groupby("cell", sort=False)))
    rows = []
    for name in names:
        runs = cells[name]
        rounds = runs["rounds"].to_numpy(float)
        spread = float(rounds.std(ddof=1)) / math.sqrt(rounds.size) if rounds.size > 1 else math.nan
        rows.append(
            {
                "pulls": float(rounds.mean()),
                "standard_error": spread,
                "stopped": int(runs["stopped"].sum()),
                "wrong": int((runs["stopped"] & ~runs["correct"]).sum()),
                "replications": int(rounds.size),
            }
        )
    return rows


def _frame(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows)
