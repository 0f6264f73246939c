"""The table at the top of the README: pulls of the elimination policies beside the lower bound."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import pandas as pd

from experiments.paper.experiment import ALGORITHMS, ARMS, DELTA
from experiments.paper.tables import Row, rows_of
from lexbandits import characteristic_time, paper_instance, sample_lower_bound, sweep
from lexbandits.simulation import Cell, Results
from lexbandits.simulation.oracle_settings import with_oracle_settings
from lexbandits.simulation.results import mean_and_error

HORIZON = 5_000_000
REPLICATIONS = 1000
KNOWS = {
    "LexElim-Out": "set sizes",
    "LexElim-Phase": "set sizes",
    "LexElim-In": "λ",
    "LexElim-Pool": "λ",
    "LexElim-Tol": "least gaps",
}


def headline(
    *,
    arms: Sequence[int] = ARMS,
    only: Sequence[str] | None = None,
    replications: int = REPLICATIONS,
    **how: Any,
) -> pd.DataFrame:
    """Pulls to stop and errors on the paper's instances, one row per number of arms and algorithm.

    Every policy is told what it needs about the instance and its true noise; `how` goes to `sweep`. Columns:
    n_arms, algorithm, knows, those of `measured`, lower_bound (T*·kl(δ, 1 − δ), for algorithms that know λ)
    and ratio, the pulls over it.
    """
    if unknown := [name for name in only or () if name not in KNOWS]:
        raise ValueError(f"unknown algorithm {unknown[0]!r}; known: {', '.join(KNOWS)}")
    algorithms = [name for name in KNOWS if not only or name in only]
    cells = {}
    for n_arms, name in product(arms, algorithms):
        instance = paper_instance(n_arms)
        policy = with_oracle_settings(ALGORITHMS[name].policy, instance, delta=DELTA)
        cells[n_arms, name] = Cell(f"K={n_arms}, {name}", policy, instance, HORIZON)
    results = sweep(cells.values(), replications=replications, **how)
    bounds = {n: sample_lower_bound(characteristic_time(paper_instance(n)).low, DELTA) for n in arms}
    rows = []
    for (n_arms, name), cell in cells.items():
        row = measured(results, cell.name)
        told = {"n_arms": n_arms, "algorithm": name, "knows": KNOWS[name]}
        rows.append({**told, **row, "lower_bound": bounds[n_arms], "ratio": row["pulls"] / bounds[n_arms]})
    return pd.DataFrame(rows)


def measured(results: Results, cell: str) -> Row:
    """pulls (mean; at the horizon if it did not stop), standard_error, stopped, wrong, broken, replications.

    wrong counts answers other than the lex-optimal arm, broken is the share of runs whose answer broke the
    policy's own promise.
    """
    runs = results.frame().query("cell == @cell")
    pulls, error = mean_and_error(runs["rounds"].to_numpy(float))
    return {
        "pulls": pulls,
        "standard_error": error,
        "stopped": int(runs["stopped"].sum()),
        "wrong": int((runs["stopped"] & ~runs["lex_optimal"]).sum()),
        "broken": float((runs["stopped"] & ~runs["correct"]).mean()),
        "replications": len(runs),
    }


def headline_markdown(table: pd.DataFrame) -> str:
    """As the page shows it: mean pulls ± standard error, wrong answers in brackets."""
    algorithms = list(dict.fromkeys(table["algorithm"]))
    lines = [
        "| K | lower bound | " + " | ".join(algorithms) + " |",
        "| ---: | ---: |" + " ---: |" * len(algorithms),
    ]
    for n_arms, rows in table.groupby("n_arms", sort=False):
        bound, pulls = rows["lower_bound"].iloc[0], map(_pulls, rows_of(rows))
        lines.append(f"| {n_arms} | {bound:,.0f} | " + " | ".join(pulls) + " |")
    return "\n".join(lines)


def _pulls(row: Row) -> str:
    unstopped = row["replications"] - row["stopped"]
    late = f", {unstopped} unfinished" if unstopped else ""
    return f"{row['pulls']:,.0f} ± {row['standard_error']:,.0f} ({row['wrong']}{late})"
