"""What `lexbandits simulate` leaves behind: a table, CSV files and a figure of regret."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._files import beside
from lexbandits._validation import probability
from lexbandits.curves import BOUND, Curve, Figure, Panel
from lexbandits.simulation.results import Results, mean_and_error

Row = dict[str, Any]


def table(results: Results) -> list[Row]:
    """One row per cell: pulls with their standard error, runs that stopped, wrong answers among them."""
    rows = []
    for rate in results._error_rates():
        mean, error = mean_and_error(results.runs[rate["cell"]].rounds)
        rows.append(
            {
                "cell": rate["cell"],
                "replications": rate["replications"],
                "pulls": float(mean),
                "standard error": float(error),
                "stopped": rate["replications"] - rate["unstopped"],
                "wrong": rate["wrong"],
                "error rate low": rate["low"],
                "error rate high": rate["high"],
                "noise": results.streams[rate["cell"]],
            }
        )
    return rows


def regret_figure(
    results: Results, *, quantile: float | None = None, bounds: Mapping[str, Sequence[float]] | None = None
) -> Figure:
    """Mean general regret with two standard errors, a panel per objective and a line per cell.

    Args:
        results: of a sweep.
        quantile: draw this quantile of the runs too, as a thin line.
        bounds: constants c per objective by name, drawn as c·log t.
    """
    m = max(cell.instance.n_objectives for cell in results.cells.values())
    if quantile is not None:
        quantile = probability("quantile", quantile)
    curves: list[list[Curve]] = [[] for _ in range(m)]
    for look, (name, cell) in enumerate(results.cells.items()):
        if cell.horizon == 0:
            continue
        rounds = np.unique(np.rint(np.geomspace(1, cell.horizon, 200)))
        regret = results.regret(name, rounds.astype(np.int64))
        means, errors = mean_and_error(regret)
        for i, (mean, error) in enumerate(zip(means.T, errors.T, strict=True)):
            curves[i].append(Curve(name, rounds, mean, look, (mean - 2 * error, mean + 2 * error)))
            if quantile is not None:
                tail = np.quantile(regret[:, :, i], quantile, axis=0)
                curves[i].append(Curve("", rounds, tail, look, thin=True))
    horizons = [cell.horizon for cell in results.cells.values() if cell.horizon > 0]
    for name, constants in (bounds or {}).items():
        times = np.geomspace(1, max(horizons), 200)
        for constant, panel in zip(constants, curves, strict=True):
            panel.append(Curve(name, times, constant * np.log(times), BOUND))
    far_apart = bool(horizons) and max(horizons) > 10 * min(horizons)
    scale = (
        "symlog" if far_apart else "linear"
    )  # else the longest cell hides the others; regret can be negative
    panels = [
        Panel(shown, f"objective {i}", "round", "" if i else "general regret", "log", scale)
        for i, shown in enumerate(curves)
    ]
    return Figure(tuple(panels), "General regret against the round, a panel for each objective")


def regret_rows(results: Results, checkpoints: ArrayLike | None = None) -> list[Row]:
    """One row per cell, round and objective: mean regret, its standard error, 95 % quantile and largest."""
    rows = []
    for name, cell in results.cells.items():
        rounds = np.atleast_1d(cell.horizon if checkpoints is None else checkpoints)
        curves = results.regret(name, rounds)
        mean, error = mean_and_error(curves)
        for c, i in np.ndindex(mean.shape):
            values = curves[:, c, i]
            rows.append(
                {
                    "cell": name,
                    "round": int(rounds[c]),
                    "objective": i,
                    "mean": float(mean[c, i]),
                    "standard error": float(error[c, i]),
                    "95 % quantile": float(np.quantile(values, 0.95)),
                    "largest": float(values.max()),
                    "replications": values.size,
                }
            )
    return rows


def regret_lines(rows: list[Row]) -> list[list[str]]:
    """The rows for people: a line per cell and round, objectives side by side, errors rounded up."""
    lines = [["policy", "rounds", "regret", "± s.e.", "95 % quantile", "largest on the first", "runs"]]
    for (name, rounds), group in groupby(rows, itemgetter("cell", "round")):
        part = list(group)
        errors = np.array([row["standard error"] for row in part])
        digits = 1 if np.nanmin(errors, initial=np.inf) < 1 else 0
        beside = [
            " / ".join(f"{value + 0.0:,.{places}f}" for value in values)
            for values, places in (
                ([row["mean"] for row in part], digits),
                (np.ceil(np.round(errors * 10**digits, 9)) / 10**digits, digits),
                ([row["95 % quantile"] for row in part], 0),
            )
        ]
        largest, runs = part[0]["largest"], part[0]["replications"]
        lines.append([str(name), f"{rounds:,}", *beside, f"{largest:,.0f}", f"{runs:,}"])
    return lines


def as_markdown(lines: list[list[str]]) -> str:
    """Lines of cells, the first of them the head, as a Markdown table."""
    cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    head, *body = [f"| {' | '.join(line)} |" for line in cells]
    ruler = f"| --- |{' ---: |' * (len(lines[0]) - 1)}"
    return "\n".join([head, ruler, *body]) + "\n"


def as_latex(lines: list[list[str]]) -> str:
    """The same as a LaTeX tabular, which needs the package booktabs."""
    head, *body = [" & ".join(map(_tex, line)) + r" \\" for line in lines]
    columns = "l" + "r" * (len(lines[0]) - 1)
    rows = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body]
    return "\n".join([*rows, r"\bottomrule", r"\end{tabular}"]) + "\n"


TEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
TEX |= {character: f"\\{character}" for character in "&%$#_{}"}
TEX |= {"±": r"$\pm$", "−": "$-$", "δ": r"$\delta$", "λ": r"$\lambda$", "σ": r"$\sigma$", "α": r"$\alpha$"}
TEX |= {"½": r"$\frac12$", "×": r"$\times$", "ε": r"$\varepsilon$", "·": r"$\cdot$", "≤": r"$\le$"}


def _tex(text: str) -> str:
    return "".join(TEX.get(character, character) for character in text)


def write(results: Results, folder: Path) -> None:
    """runs.csv (a row per replication), summary.csv, and regret as a figure and as tables in .md and .tex."""
    folder.mkdir(parents=True, exist_ok=True)
    runs, cells = results._columns(), table(results)
    _write_csv(
        folder / "runs.csv", list(runs), zip(*(np.asarray(c).tolist() for c in runs.values()), strict=True)
    )
    _write_csv(folder / "summary.csv", list(cells[0]), (row.values() for row in cells))
    lines = regret_lines(regret_rows(results))
    for name, text in (("regret.md", as_markdown(lines)), ("regret.tex", as_latex(lines))):
        with beside(folder / name) as new:
            new.write_text(text, "utf-8")
    regret_figure(results).save(folder / "regret.svg")


def _write_csv(path: Path, heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> None:
    with beside(path) as new, new.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(heads)
        lines.writerows(["" if cell != cell else cell for cell in row] for row in rows)  # nan
