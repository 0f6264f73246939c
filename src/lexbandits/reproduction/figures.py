"""The paper's figures, drawn from the tables of its experiments; each function takes tables alone.

One colour, marker and line style per algorithm throughout (Okabe and Ito's palette, tellable apart in
grey); means with bars or bands of two standard errors.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lexbandits.drawing import WIDE, decades, few_ticks, label_ends, log_limits, new_figure, offsets

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


Tables = Mapping[str, "pd.DataFrame"]


class Look(NamedTuple):
    """How an algorithm is drawn."""

    short: str
    colour: str
    line: Any
    marker: str


LOOKS = {
    "LexElim-Out": Look("Out", "#0072B2", "-", "s"),
    "LexElim-In": Look("In", "#D55E00", (0, (4, 1.5)), "o"),
    "LexElim-Phase": Look("Phase", "#CC79A7", (0, (6, 1.2, 1.2, 1.2)), "D"),
    "LexElim-Tol": Look("Tol", "#56B4E9", (0, (1.2, 1.2)), "v"),
    "LexElim-Pool": Look("Pool", "#009E73", "-", "^"),
    "UCB-α": Look("UCB-α", "#000000", (0, (5, 1, 1, 1, 1, 1)), "X"),
    "PF-LEX": Look("PF-LEX", "#B8860B", (0, (2.5, 1)), "P"),
    "EGE": Look("EGE", "#777777", "-", "*"),
    "EGE/3900": Look("EGE/3900", "#777777", "-", "h"),
    "round-robin": Look("round-robin", "#999999", (0, (1, 2)), "."),
}
WIDTHS = {
    "printed": "as printed, σ = 1",
    "matched": "matched, σ = √0.1",
    "tenth": "sibling papers', × 0.1",
    "sound": "sound and tight, σ = √0.1",
}
SHORT_WIDTHS = {"printed": "σ=1", "matched": "√0.1", "tenth": "×0.1"}
WIDTH_LINES: dict[str, Any] = {
    "printed": "-",
    "matched": (0, (4, 1.5)),
    "tenth": (0, (1.2, 1.2)),
    "sound": "-",
    "any": "-",
}


def acceleration(tables: Tables) -> "Figure":
    """Figure 1: arms in the plane, and when and on which objective each is eliminated."""
    from matplotlib.lines import Line2D

    table, stopping = tables["acceleration"], tables["acceleration_stopping"]
    figure = new_figure(WIDE, 4.5)
    planes = figure.add_gridspec(2, 1, left=0.062, right=0.275, top=0.86, bottom=0.165, hspace=0.5)
    grid = figure.add_gridspec(2, 4, left=0.35, right=0.985, top=0.86, bottom=0.165, hspace=0.5, wspace=0.16)
    cases = {"Figure 1a": "(a) no conflict, λ = 0", "Figure 1b": "(b) conflict, λ = 1"}
    limits = {width: log_limits(table[table["width"] == width]["round"]) for width in WIDTHS}
    for row, (case, title) in enumerate(cases.items()):
        arms = rows_of(table, case=case, width="matched", algorithm="LexElim-In")
        plane = figure.add_subplot(planes[row, 0])
        _plane(plane, arms)
        plane.set_title(title, loc="left", fontweight="bold", pad=9)
        for column, (width, label) in enumerate(WIDTHS.items()):
            axes = figure.add_subplot(grid[row, column])
            algorithms = list(dict.fromkeys(table[table["width"] == width]["algorithm"]))
            for offset, algorithm in zip(offsets(len(algorithms), 0.22), algorithms, strict=True):
                for item in rows_of(table, case=case, width=width, algorithm=algorithm):
                    if item["eliminated"]:
                        _elimination(axes, item, item["arm"] + offset)
            axes.set(xscale="log", xlim=limits[width], ylim=(len(arms) + 0.6, 1.4))
            axes.set_yticks(
                range(2, len(arms) + 1), [_arm_name(arm) for arm in arms[1:]] if column == 0 else []
            )
            axes.set_xticks(decades(*limits[width]))
            axes.tick_params(axis="y", length=0)
            answers = rows_of(stopping, case=case, width=width)
            wrong = ", ".join(str(answer["wrong"]) for answer in answers)
            axes.set_title(f"wrong: {wrong} of {answers[0]['replications']}", loc="left", fontsize=6, pad=3)
            if row == 0:
                above: Any = {"xycoords": "axes fraction", "fontsize": 7, "fontweight": "bold"}
                axes.annotate(label.replace(", ", ",\n"), (0, 1.14), **above)
            else:
                axes.set_xlabel("round of elimination")
    handles = [
        Line2D([], [], ls="", marker=LOOKS[name].marker, color=LOOKS[name].colour, label=name)
        for name in dict.fromkeys(table["algorithm"])
    ]
    grey: Any = {"ls": "", "marker": "o", "color": "#555555"}
    handles += [
        Line2D([], [], **grey, label="filled: by objective 2"),
        Line2D([], [], **grey, mfc="white", label="open: by objective 1"),
    ]
    figure.legend(
        handles=handles, loc="lower center", ncols=7, frameon=False, handletextpad=0.2, columnspacing=1.2
    )
    return figure


def _arm_name(arm: Mapping[str, Any]) -> str:
    if arm["arm"] in (2, 3):
        return f"{'near' if arm['arm'] == 2 else 'far'} {arm['arm']}"
    return f"red {arm['arm']}" if arm["gap_2"] < 0 else f"{arm['arm']}"


def _plane(axes: "Axes", arms: Sequence[Mapping[str, Any]]) -> None:
    """Arms by their two means; yellow where LexElim-In with matched widths needs objective 2."""
    for arm in arms:
        x, y = arm["mean_1"], arm["mean_2"]
        if arm["gap_1"] == 0 and arm["gap_2"] == 0:
            axes.plot(x, y, "*", color="#C00000", markersize=11, clip_on=False)
            label = "lex-optimal 1"
        else:
            yellow = arm["by_objective_2"] > 0.5
            face = "#F0E442" if yellow else "#D98880" if arm["gap_2"] < 0 else "white"
            axes.plot(x, y, "o", mfc=face, mec="#333333", mew=0.7, markersize=7, clip_on=False)
            label = _arm_name(arm)
        axes.annotate(label, (x, y), (0, 6.5), textcoords="offset points", ha="center", fontsize=6)
    axes.set(xlim=(0.33, 1.02), ylim=(0.1, 1.08), xlabel="mean, objective 1", ylabel="mean, objective 2")
    axes.set_yticks([0.2, 0.4, 0.6, 0.8, 1.0])
    axes.yaxis.labelpad = 1


def _elimination(axes: "Axes", item: Mapping[str, Any], y: float) -> None:
    look = LOOKS[item["algorithm"]]
    by_second = item["by_objective_2"] > 0.5
    axes.errorbar(
        item["round"],
        y,
        xerr=2 * item["round_se"],
        fmt=look.marker,
        color=look.colour,
        mfc=look.colour if by_second else "white",
        mew=0.9,
        elinewidth=0.8,
    )


def regret(tables: Tables) -> "Figure":
    """Figure 2: regret of each objective over time, a row per width setting."""
    table = tables["regret"]
    horizon = int(table["t"].max())
    figure = new_figure(WIDE, 8.2)
    grid = figure.add_gridspec(
        4, 3, left=0.068, right=0.985, top=0.935, bottom=0.052, hspace=0.46, wspace=0.24
    )
    labels: list[tuple[Axes, list[tuple[float, str, str]]]] = []
    for row, (width, title) in enumerate(WIDTHS.items()):
        drawn = [(item, width) for item in dict.fromkeys(table[table["width"] == width]["algorithm"])]
        if width == "sound":  # beside the paper's own with the same knowledge of the noise
            drawn = [("LexElim-Out", "matched"), ("LexElim-In", "matched"), *drawn]
        for column in range(3):
            axes = figure.add_subplot(grid[row, column])
            ends = []
            for algorithm, source in drawn:
                look = LOOKS[algorithm]
                curve = table[
                    (table["width"] == source)
                    & (table["algorithm"] == algorithm)
                    & (table["objective"] == column + 1)
                ]
                t, mean, error = (curve[key].to_numpy() for key in ("t", "regret", "regret_se"))
                thick = 2.2 if algorithm == "LexElim-Out" else 1.3  # visible under a curve that coincides
                axes.plot(t, mean, color=look.colour, ls=look.line, lw=thick)
                axes.fill_between(t, mean - 2 * error, mean + 2 * error, color=look.colour, alpha=0.18, lw=0)
                ends.append((float(mean[-1]), look.short, look.colour))
            axes.set_xlim(0, 1.42 * horizon)
            axes.set_xticks(np.linspace(0, horizon, 3), [f"{x:,.0f}" for x in np.linspace(0, horizon, 3)])
            axes.spines["bottom"].set_bounds(0, horizon)
            axes.margins(y=0.06)
            axes.yaxis.set_major_locator(few_ticks())
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
            axes.set_title(f"objective {column + 1}", fontsize=7)
            if column == 0:
                axes.set_ylabel("regret")
                axes.annotate(
                    title, (0, 1.2), xycoords="axes fraction", fontweight="bold", fontsize=8, va="bottom"
                )
            if row == 3:
                axes.set_xlabel("round t")
            labels.append((axes, ends))
    for axes, ends in labels:
        label_ends(axes, horizon, ends)
    return figure


def samples(tables: Tables) -> "Figure":
    """Figure 3: pulls until each objective is settled, with the wrong answers beside."""
    from matplotlib.lines import Line2D

    table, bounds = tables["samples"], tables["lower_bound"]
    n_arms = list(dict.fromkeys(table["n_arms"]))
    lines: list[tuple[str, str] | None] = []
    for width in WIDTHS:
        algorithms = list(dict.fromkeys(table[table["width"] == width]["algorithm"]))
        lines += [None, *((width, algorithm) for algorithm in algorithms)]
    figure = new_figure(WIDE, 5.9)
    grid = figure.add_gridspec(1, len(n_arms), left=0.125, right=0.995, top=0.945, bottom=0.115, wspace=0.06)
    span = bounds["lower_bound"].min() / 2, table["samples"].max() * 60
    for column, arms in enumerate(n_arms):
        axes = figure.add_subplot(grid[0, column])
        bound = float(bounds[bounds["n_arms"] == arms]["lower_bound"].iloc[0])
        axes.axvline(bound, color="#333333", lw=0.9, ls=(0, (3, 2)))
        groups = iter(WIDTHS.values())
        for y, line in enumerate(lines):
            if line is None:
                axes.axhspan(y - 0.5, y + 0.5, color="#f1f1f1", lw=0)
                axes.annotate(
                    next(groups),
                    (0.02, y),
                    xycoords=("axes fraction", "data"),
                    fontweight="bold",
                    va="center",
                    bbox={"facecolor": "#f1f1f1", "edgecolor": "none", "pad": 1},
                )
                continue
            width, algorithm = line
            look = LOOKS[algorithm]
            rows = rows_of(table, width=width, n_arms=arms, algorithm=algorithm)
            known = [item for item in rows if item["reached"]]
            axes.plot(
                [item["samples"] for item in known], [y] * len(known), color=look.colour, lw=0.8, alpha=0.5
            )
            for item in known:
                axes.errorbar(
                    item["samples"],
                    y,
                    xerr=[[min(2 * item["samples_se"], 0.9 * item["samples"])], [2 * item["samples_se"]]],
                    fmt=look.marker,
                    color=look.colour,
                    mfc=_filled(look.colour, item["objective"], len(rows)),
                    markersize=_size(item["objective"], len(rows)),
                    mew=0.8,
                    elinewidth=0.8,
                )
            last = rows[-1]
            note = f"{last['wrong']}/{last['replications']}"
            bad = last["error_low"] > 0.01
            axes.annotate(
                note + (f" +{last['unstopped']} ∞" if last["unstopped"] else ""),
                (0.985, y),
                xycoords=("axes fraction", "data"),
                ha="right",
                va="center",
                fontsize=6,
                color="#C00000" if bad else "#333333",
                fontweight="bold" if bad else "normal",
            )
        axes.set(xscale="log", xlim=span, ylim=(len(lines) - 0.4, -0.6), xlabel="pulls")
        axes.grid(visible=False, axis="y")
        axes.set_xticks([10.0**k for k in range(int(np.ceil(np.log10(span[0]))), 9)])
        axes.set_title(f"K = {arms}", fontweight="bold", loc="left")
        axes.set_title("wrong", fontsize=6, loc="right")
        axes.set_yticks(
            [y for y, line in enumerate(lines) if line],
            [line[1] for line in lines if line] if column == 0 else [],
        )
        axes.tick_params(axis="y", length=0)
    grey: Any = {"ls": "", "marker": "o", "color": "#555555", "mew": 0.8}
    handles = [
        Line2D(
            [],
            [],
            **grey,
            mfc=_filled("#555555", i, 3),
            markersize=_size(i, 3),
            label=label,
        )
        for i, label in enumerate(
            ("objective 1 settled", "objectives 1 and 2", "all three: stopped"), start=1
        )
    ]
    handles.append(
        Line2D(
            [],
            [],
            color="#333333",
            lw=0.9,
            ls=(0, (3, 2)),
            label="least possible for δ = 0.01, λ = 2, σ² = 0.1",
        )
    )
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)
    return figure


def _filled(colour: str, objective: int, count: int) -> Any:
    """White, half and full for the first, second and last objective; full where there is one only."""
    from matplotlib.colors import to_rgb

    weight = 1.0 if count == 1 else (objective - 1) / (count - 1)
    return tuple(1 - weight * (1 - channel) for channel in to_rgb(colour))


def _size(objective: int, count: int) -> float:
    """Smaller for later objectives, so that markers in one place are rings around a dot."""
    return 4.5 if count == 1 else 7.5 - 2.2 * (objective - 1)


def bounds(tables: Tables) -> "Figure":
    """The theorems: printed bound, repaired bound and measured values."""
    from matplotlib.lines import Line2D

    table = tables["bounds"]
    paper = [key for key in dict.fromkeys(table["instance"]) if key.startswith("K=")]
    lines: list[tuple[str, int] | None] = []
    for source, objectives in (
        ("Theorem 1", 3), ("Theorem 2", 3), ("Lemma 5", 0),
        ("Theorem 3", 3), ("Theorem 4", 3), ("Corollary 1", 3), ("Lemma 7", 0),
    ):  # fmt: skip
        lines += [None, *((source, i + 1) for i in range(objectives))] if objectives else [None, (source, 0)]
    figure = new_figure(WIDE, 7.6)
    columns = [*((key, f"{key.replace('=', ' = ')}") for key in paper), ("edge", "edge instances, the worst")]
    grid = figure.add_gridspec(2, len(columns), left=0.115, right=0.995, top=0.945, bottom=0.085)
    grid.update(hspace=0.2, wspace=0.07)
    for row, width in enumerate(("printed", "matched")):
        for column, (key, title) in enumerate(columns):
            axes = figure.add_subplot(grid[row, column])
            within = table[table["width"] == width]
            within = (
                within[~within["instance"].isin(paper)]
                if key == "edge"
                else within[within["instance"] == key]
            )
            for y, line in enumerate(lines):
                if line:
                    _bound(axes, _worst_row(within, *line), y)
                elif y:
                    axes.axhline(y, color="#d0d0d0", lw=0.5)
            axes.set(xscale="log", ylim=(len(lines) - 0.4, 0.4))
            axes.margins(x=0.09)
            axes.grid(visible=False, axis="y")
            axes.tick_params(axis="y", length=0)
            axes.set_yticks(
                [y for y, line in enumerate(lines) if line],
                [_bound_name(*line) for line in lines if line] if column == 0 else [],
            )
            axes.set_title(title, loc="left", fontsize=7)
            if column == 0:
                top = axes.get_position().y1 + 0.028
                figure.text(0.012, top, WIDTHS[width], fontweight="bold", fontsize=8)
            if row == 1:
                axes.set_xlabel("pulls, or regret")
    grey: Any = {"ls": "", "color": "#555555", "mew": 0.9}
    figure.legend(
        handles=[
            Line2D([], [], **grey, marker="o", label="measured (mean; whisker to the largest run)"),
            Line2D([], [], **grey, marker="|", markersize=7, label="printed bound"),
            Line2D([], [], **grey, marker="D", mfc="white", markersize=4, label="repaired bound"),
            Line2D([], [], ls="", marker="o", color="#C00000", label="a run exceeds the printed bound"),
        ],
        loc="lower center",
        ncols=4,
        frameon=False,
        handletextpad=0.2,
    )
    return figure


def _worst_row(table: "pd.DataFrame", source: str, objective: int) -> Mapping[str, Any] | None:
    """The row that comes nearest to its printed bound, or exceeds it most."""
    rows = (
        rows_of(table, source=source)
        if objective == 0
        else rows_of(table, source=source, objective=objective)
    )
    rows = [item for item in rows if item["printed"] > 0 and item["largest"] > 0]
    return max(rows, key=lambda item: item["largest"] / item["printed"], default=None)


def _bound_name(source: str, objective: int) -> str:
    letter = {"Theorem 2": "T", "Theorem 4": "T̃"}.get(source, "R")
    superscript = {0: "", 1: "¹", 2: "²", 3: "³"}[objective]
    return f"{source}  {letter}{superscript}" if objective else f"{source}  n(a)"


def _bound(axes: "Axes", item: Mapping[str, Any] | None, y: float) -> None:
    if item is None:
        return
    exceeded = item["largest"] > item["printed"] * (1 + 1e-9)
    colour = "#C00000" if exceeded else LOOKS[item["algorithm"]].colour
    axes.plot([item["measured"], item["largest"]], [y, y], color=colour, lw=0.8)
    axes.plot(item["measured"], y, "o", color=colour, markersize=4)
    axes.plot(item["printed"], y, "|", color="#333333", mew=1.3, markersize=8)
    axes.plot(item["proved"], y, "D", color="#555555", mfc="white", mew=0.9, markersize=3.5)


def sensitivity(tables: Tables) -> "Figure":
    """Pulls and wrong answers as λ, δ, the width scale and α vary, at K = 10."""
    table = tables["sensitivity"]
    figure = new_figure(WIDE, 4.9)
    grid = figure.add_gridspec(
        2, 4, left=0.062, right=0.95, top=0.975, bottom=0.085, hspace=0.12, wspace=0.68
    )
    panels = {
        "tradeoff": "λ told to In and Pool",
        "delta": "δ",
        "scale": "σ told (the noise has √0.1)",
        "alpha": "α of UCB-α",
    }
    labels: list[tuple[Axes, float, list[tuple[float, str, str]]]] = []
    for column, (parameter, title) in enumerate(panels.items()):
        upper, lower = (figure.add_subplot(grid[row, column]) for row in range(2))
        varied = table[table["parameter"] == parameter]
        ends: list[tuple[float, str, str]] = []
        for (width, algorithm), group in varied.groupby(["width", "algorithm"], sort=False):
            width, look = str(width), LOOKS[str(algorithm)]
            curve = group.sort_values("value", ascending=parameter != "delta")
            x, mean, error = (curve[key].to_numpy() for key in ("value", "pulls", "pulls_se"))
            line = look.line if width == "any" else WIDTH_LINES[width]
            style: Any = {"color": look.colour, "ls": line, "marker": look.marker, "markersize": 3, "lw": 1}
            upper.plot(x, mean, **style)
            upper.fill_between(
                x,
                np.maximum(mean - 2 * error, mean / 20),
                mean + 2 * error,
                color=look.colour,
                alpha=0.18,
                lw=0,
            )
            partial = curve["unstopped"] > 0  # means of the runs that stopped only
            upper.plot(x[partial], mean[partial], **style | {"ls": "", "mfc": "white"})
            failed = curve["failed"]
            bars = [failed - curve["failed_low"], curve["failed_high"] - failed]
            lower.errorbar(x, failed, yerr=bars, elinewidth=0.5, **style)
            name = f"{look.short} {SHORT_WIDTHS[width]}" if width in SHORT_WIDTHS else look.short
            if parameter == "alpha":
                name = SHORT_WIDTHS[width]
            ends.append((float(mean[-1]), name, look.colour))
        for axes in (upper, lower):
            if parameter in ("delta", "scale"):
                axes.set_xscale("log")
            if parameter == "delta":
                axes.invert_xaxis()
        values = sorted(set(varied["value"]))
        for axes in (upper, lower):
            if parameter == "alpha":
                axes.set_xticks(values)
            elif parameter == "tradeoff":
                axes.set_xticks([0, 1, 2, 3, 4])
            elif parameter == "delta":
                axes.set_xticks([0.1, 0.01, 0.001, 0.0001])
            elif parameter == "scale":
                axes.set_xticks([0.02, 0.1, np.sqrt(0.1), 1], ["0.02", "0.1", "√0.1", "1"])
        upper.set_yscale("log")
        upper.tick_params(labelbottom=False)
        lower.set(xlabel=title, ylim=(-4, 104))
        lower.axhline(1, color="#333333", lw=0.7, ls=(0, (3, 2)))
        if column == 0:
            upper.set_ylabel("pulls to stop")
            lower.set_ylabel("no right answer, %")
        labels.append((upper, min(values) if parameter == "delta" else max(values), ends))
    for axes, x_end, ends in labels:
        label_ends(axes, x_end, ends)
    return figure


FIGURES: dict[str, tuple[Callable[[Tables], "Figure"], str, str]] = {
    "acceleration": (
        acceleration,
        "Figure 1. Cross-objective acceleration",
        "Left: the arms; yellow ones are eliminated by the second objective (LexElim-In, matched "
        "widths). Right: the mean round in which each algorithm eliminates each arm, filled where "
        "mostly the second objective did it, and wrong answers in the order of the legend. The paper "
        "prints no coordinates: these arms were chosen to do what its text says.",
    ),
    "regret": (
        regret,
        "Figure 2. Regret at K = 10",
        "Mean regret of each objective with a band of two standard errors. After stopping, the "
        "recommended arm is played on. The last row repeats the paper's two algorithms with matched "
        "widths.",
    ),
    "samples": (
        samples,
        "Figure 3. Pulls to identify",
        "Mean pulls until every candidate ties with the lex-optimal arm on the first, the first two, "
        "all three objectives (light to dark), with bars of two standard errors, and wrong answers "
        "out of all runs (red where the 95 % interval lies above δ = 0.01; ∞: runs that had no answer"
        " at the horizon). UCB-α and EGE look at the first objective only: the others are not "
        "applicable.",
    ),
    "bounds": (
        bounds,
        "The theorems against the runs",
        "Both bounds and what was measured, for the width settings that carry a guarantee. Runs can "
        "refute a bound, never prove it. The edge instances have two objectives and are built to be "
        "hard for the printed formulas. In “waiting” ten arms that only the second objective tells "
        "apart wait for the first to be settled; in “survivors” ten arms outlive the one that the "
        "first objective eliminates; in “gain” the rival is better on the second objective, and a "
        "bound that is not positive is in the table only.",
    ),
    "sensitivity": (
        sensitivity,
        "Sensitivity at K = 10",
        "Above, mean pulls of the runs that stopped (band: two standard errors; white markers: some "
        "runs did not). Below, runs with a wrong answer or none (bars: exact 95 % intervals; dashed: "
        "1 %). Solid, dashed and dotted lines: widths as printed, matched, and times 0.1; for the "
        "width scale and the sound and tight policies the line of the algorithm.",
    ),
}


def rows_of(table: "pd.DataFrame", **where: Any) -> list[dict[str, Any]]:
    """The rows with these values, in order."""
    chosen = table
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return [{str(key): value for key, value in row.items()} for row in chosen.to_dict("records")]
