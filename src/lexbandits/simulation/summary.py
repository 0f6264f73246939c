"""What `lexbandits simulate` leaves behind: a table, CSV files and a figure of regret."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lexbandits.drawing import house_style, new_figure
from lexbandits.simulation.estimates import mean_and_error
from lexbandits.simulation.results import Results

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


LINES = ("-", "--", ":", "-.")


def table(results: Results) -> "pd.DataFrame":
    """One row per cell: pulls with their standard error, runs that stopped, wrong answers among them."""
    frame = results.frame()
    rounds = frame.groupby("cell", sort=False)["rounds"]
    rates = results.error_rates().set_index("cell")
    out = rates[["replications"]].copy()
    out["pulls"] = rounds.mean()
    out["standard error"] = rounds.sem()
    out["stopped"] = out["replications"] - rates["unstopped"]
    out["wrong"] = rates["wrong"]
    out["error rate low"], out["error rate high"] = rates["low"], rates["high"]
    out["noise"] = results.streams
    return out.reset_index()


def regret_figure(results: Results) -> "Figure":
    """Mean general regret with two standard errors, a panel per objective and a line per cell."""
    m = max(cell.instance.n_objectives for cell in results.cells.values())
    with house_style():
        figure = new_figure(2.4 * m + 1.2, 2.6)
        figure.set_layout_engine("constrained")
        panels = figure.subplots(1, m, squeeze=False)[0]
        for place, (name, cell) in enumerate(results.cells.items()):
            if cell.horizon == 0:
                continue
            rounds = np.unique(np.rint(np.geomspace(1, cell.horizon, 200)).astype(np.int64))
            mean, error = mean_and_error(results.regret(name, rounds))
            for i, panel in enumerate(panels[: mean.shape[1]]):
                colour, line = f"C{place % 10}", LINES[place // 10 % len(LINES)]
                panel.plot(rounds, mean[:, i], line, color=colour, label=name)
                low, high = mean[:, i] - 2 * error[:, i], mean[:, i] + 2 * error[:, i]
                panel.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
        horizons = [cell.horizon for cell in results.cells.values() if cell.horizon > 0]
        apart = bool(horizons) and max(horizons) > 10 * min(horizons)
        for i, panel in enumerate(panels):
            panel.set(title=f"objective {i}", xlabel="round", xscale="log")
            if apart:  # else the longest cell hides the others; regret can be negative, so not a plain log
                panel.set_yscale("symlog", linthresh=10)
        panels[0].set_ylabel("general regret")
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def write(results: Results, folder: Path) -> None:
    """runs.csv (a row per replication), summary.csv and regret.svg."""
    folder.mkdir(parents=True, exist_ok=True)
    results.frame().to_csv(folder / "runs.csv", index=False)
    table(results).to_csv(folder / "summary.csv", index=False)
    with house_style():
        regret_figure(results).savefig(folder / "regret.svg", metadata={"Date": None})
