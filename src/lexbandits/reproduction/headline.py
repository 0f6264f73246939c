"""What the library is for, as two tables: pulls beside the lower bound, and what it costs not to know."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lexbandits.policies.lexelim_in import LexElimIn
from lexbandits.policies.lexelim_out import LexElimOut
from lexbandits.policies.lexelim_phase import LexElimPhase
from lexbandits.policies.lexelim_pool import LexElimPool
from lexbandits.policies.lexelim_tol import LexElimTol
from lexbandits.policies.policy import Policy
from lexbandits.simulation.sweep import Cell, sweep
from lexbandits.theory.lower_bound import characteristic_time, sample_lower_bound
from lexbandits.world.examples import paper_instance
from lexbandits.world.instance import Instance

if TYPE_CHECKING:
    import pandas as pd


ARMS = (10, 20, 30)
DELTA = 0.01
HORIZON = 5_000_000
REPLICATIONS = 200


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
                "wrong": int((runs["stopped"] & ~runs["lex_optimal"]).sum()),
                "broken": float((runs["stopped"] & ~runs["correct"]).mean()),
                "replications": int(rounds.size),
            }
        )
    return rows


def _frame(rows: list[dict[str, Any]]) -> "pd.DataFrame":
    import pandas as pd

    return pd.DataFrame(rows)
