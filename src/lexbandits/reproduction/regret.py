"""Figure 2: the regret of each objective over time, at K = 10."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lexbandits.drawing import WIDE, few_ticks, label_ends, new_figure
from lexbandits.reproduction.experiment import (
    ALGORITHMS,
    PAPER_WIDTHS,
    PAPERS,
    WIDTHS,
    Entry,
    averaged,
    paper_world,
)
from lexbandits.reproduction.section import Section
from lexbandits.reproduction.tables import Mean, Row, Tables, count, errors, mean, rows_of
from lexbandits.reproduction.verdict import HOLDS, Claim, Judged, Verdict, by_width, claim, only_with
from lexbandits.simulation.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROUNDS = 10_000
BENT = 0.8  # a curve bends when the second half of the rounds adds at most this much of the first
AXES = (800.0, 800.0, 4000.0)  # where the published panels end


def entries() -> list[tuple[Row, Entry]]:
    """The paper's algorithms and baselines under its widths, and the sound policies."""
    found: list[tuple[Row, Entry]] = []
    for width, told in WIDTHS.items():
        algorithms = [*told.algorithms, *(("UCB-α", "PF-LEX") if width in PAPER_WIDTHS else ())]
        if width == "printed":
            algorithms.append("round-robin")
        for algorithm in algorithms:
            entry = Entry(paper_world(10), algorithm, told.noise_sd, ROUNDS)
            found.append(({"width": width, "algorithm": algorithm}, entry))
    return found


def tables(results: Results, answers: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Curves, and their ends. `bend` is the second half of the rounds less `BENT` of the first: below 0
    the curve bends, above it is as good as linear."""
    checkpoints = np.arange(0, ROUNDS + 1, 100)
    curves: list[Row] = []
    ends: list[Row] = []
    for labels, entry in entries():
        regret = results.regret(entry.name, checkpoints)
        eliminated = (results.runs[entry.name].left[:, :, 0] > 0).sum(axis=1)
        answer = {key: answers[entry.name][key] for key in ("replications", "unstopped", "wrong")}
        for i in range(regret.shape[2]):
            key = {**labels, "objective": i + 1}
            for c, t in enumerate(checkpoints.tolist()):
                curves.append({**key, "t": t, **averaged("regret", regret[:, c, i])})
            early = regret[:, len(checkpoints) // 2, i]
            late = regret[:, -1, i] - early
            ends.append(
                {
                    **key,
                    **averaged("regret", regret[:, -1, i]),
                    "first_half": float(early.mean()),
                    "second_half": float(late.mean()),
                    **averaged("bend", late - BENT * early),
                    "arms_eliminated": float(eliminated.mean()),
                    **answer,
                }
            )
    return {"regret": curves, "regret_end": ends}


def draw(tables: Tables) -> "Figure":
    """A row per width setting, a column per objective."""
    table = tables["regret"]
    horizon = int(table["t"].max())
    figure = new_figure(WIDE, 8.2)
    grid = figure.add_gridspec(
        4, 3, left=0.068, right=0.985, top=0.935, bottom=0.052, hspace=0.46, wspace=0.24
    )
    labels: list[tuple[Axes, list[tuple[float, str, str]]]] = []
    for row, (width, told) in enumerate(WIDTHS.items()):
        drawn = [(item, width) for item in dict.fromkeys(table[table["width"] == width]["algorithm"])]
        if width == "sound":  # beside the paper's own with the same knowledge of the noise
            drawn = [("LexElim-Out", "matched"), ("LexElim-In", "matched"), *drawn]
        for column in range(3):
            axes = figure.add_subplot(grid[row, column])
            ends = [
                _curve(axes, table, width=source, algorithm=algorithm, objective=column + 1)
                for algorithm, source in drawn
            ]
            ticks = np.linspace(0, horizon, 3)
            axes.set_xlim(0, 1.42 * horizon)
            axes.set_xticks(ticks, [f"{x:,.0f}" for x in ticks])
            axes.spines["bottom"].set_bounds(0, horizon)
            axes.margins(y=0.06)
            axes.yaxis.set_major_locator(few_ticks())
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
            axes.set_title(f"objective {column + 1}", fontsize=7)
            if column == 0:
                axes.set_ylabel("regret")
                axes.annotate(
                    told.title, (0, 1.2), xycoords="axes fraction", fontweight="bold", fontsize=8, va="bottom"
                )
            if row == 3:
                axes.set_xlabel("round t")
            labels.append((axes, ends))
    for axes, ends in labels:
        label_ends(axes, horizon, ends)
    return figure


def _curve(
    axes: "Axes", table: pd.DataFrame, *, width: str, algorithm: str, objective: int
) -> tuple[float, str, str]:
    """One mean with its band; gives where it ends, its name and colour."""
    look = ALGORITHMS[algorithm]
    curve = pd.DataFrame(rows_of(table, width=width, algorithm=algorithm, objective=objective))
    t, middle, error = (curve[key].to_numpy() for key in ("t", "regret", "regret_se"))
    thick = 2.2 if algorithm == "LexElim-Out" else 1.3  # visible under a curve that coincides
    axes.plot(t, middle, color=look.colour, ls=look.line, lw=thick)
    axes.fill_between(t, middle - 2 * error, middle + 2 * error, color=look.colour, alpha=0.18, lw=0)
    return float(middle[-1]), look.short, look.colour


@claim("sublinear-regret", "RM Results, Figure 2")
def sublinear_regret(tables: Tables) -> Verdict:
    """LexElim-Out and LexElim-In have sublinear regret on all objectives at T = 10,000. (Here: the second
    half of the rounds adds at most 80 % of the first.)
    """

    def look(width: str) -> Judged:
        holds, parts = True, []
        for algorithm in PAPERS:
            rows = rows_of(tables["regret_end"], width=width, algorithm=algorithm)
            holds &= all(bends(row) for row in rows)
            gone = f"{rows[0]['arms_eliminated']:.1f} arms eliminated"
            parts.append(f"{algorithm} {regrets(rows)}, {halves(rows)}, {gone}, {errors(rows[0])}")
        return holds, "; ".join(parts)

    plain = regrets(rows_of(tables["regret_end"], algorithm="round-robin"))
    return by_width(look, f"round-robin: {plain}")


@claim("ucb-first-objective", "RM Results, Figure 2")
def ucb_learns_the_first_objective_only(tables: Tables) -> Verdict:
    """UCB-α has low regret on the first objective and linear regret on the second and third."""

    def look(width: str) -> Judged:
        first, *later = rows = rows_of(tables["regret_end"], width=width, algorithm="UCB-α")
        return bends(first) and not any(map(bends, later)), f"{regrets(rows)}, {halves(rows)}"

    return by_width(look)


def less_regret(name: str, baseline: str, source: str, statement: str) -> Claim:
    """Both algorithms of the paper end below the baseline on every objective."""

    def judge(tables: Tables) -> Verdict:
        cases: dict[str, bool] = {}
        told = []
        everywhere = True
        for width in PAPER_WIDTHS:
            theirs, *ours = (
                rows_of(tables["regret_end"], width=width, algorithm=algorithm)
                for algorithm in (baseline, *PAPERS)
            )
            less = [
                all(mean(rows[i], "regret").below(mean(other, "regret")) for rows in ours)
                for i, other in enumerate(theirs)
            ]
            won = [str(i + 1) for i, is_less in enumerate(less) if is_less]
            label = WIDTHS[width].label
            some = f" on objective{'s' if len(won) > 1 else ''} {' and '.join(won)}"
            cases[label if all(less) or not won else label + some] = bool(won)
            everywhere &= all(less)
            ends = zip((baseline, *PAPERS), (theirs, *ours), strict=True)
            told.append(f"{label}: {'; '.join(f'{who} {regrets(rows)}' for who, rows in ends)}")
        return Verdict(HOLDS if everywhere else only_with({**cases, "": False}), "\n".join(told))

    return Claim(name, source, statement, judge)


less_regret_than_pf_lex = less_regret(
    "less-regret-pf-lex",
    "PF-LEX",
    "RM Results, Figure 2",
    "PF-LEX converges more slowly: both algorithms have less regret on every objective.",
)
less_regret_than_ucb = less_regret(
    "less-regret-ucb",
    "UCB-α",
    "Contributions; Figure 2",
    "Both algorithms outperform the baselines in cumulative regret: here UCB-α, on every objective.",
)


@claim("figure-2-axes", "Figure 2 as published")
def figure_2_axes(tables: Tables) -> Verdict:
    """All curves fit the axes of the published figure, which end at 800, 800 and 4,000."""

    def look(width: str) -> Judged:
        rows = rows_of(tables["regret_end"], width=width)
        highest = [
            max(
                (row["regret"], row["algorithm"])
                for row in rows
                if row["objective"] == i + 1 and row["algorithm"] != "round-robin"
            )
            for i in range(3)
        ]
        inside = all(value <= end * 1.001 for (value, _), end in zip(highest, AXES, strict=True))
        return inside, f"largest {', '.join(f'{count(value)} ({who})' for value, who in highest)}"

    return by_width(look)


def bends(row: Row) -> bool:
    """Whether the second half of the rounds adds at most 80 % of the first, errors considered."""
    return mean(row, "bend").below(Mean(0.0, 0.0))


def halves(rows: list[Row]) -> str:
    """What the second half of the rounds adds, beside the first."""
    parts = (f"{count(row['second_half'])} after {count(row['first_half'])}" for row in rows)
    return f"second half of the rounds: {', '.join(parts)}"


def regrets(rows: list[Row]) -> str:
    """The regret on each objective, in brackets."""
    return f"({', '.join(str(mean(row, 'regret')) for row in rows)})"


SECTION = Section(
    name="regret",
    title="Figure 2. Regret at K = 10",
    caption="Mean regret of each objective with a band of two standard errors. After stopping, the "
    "recommended arm is played on. The last row repeats the paper's two algorithms with matched "
    "widths.",
    entries=entries,
    tables=tables,
    shown={"regret_end": "Regret after the last round"},
    draw=draw,
    claims=(
        sublinear_regret,
        ucb_learns_the_first_objective_only,
        less_regret_than_pf_lex,
        less_regret_than_ucb,
        figure_2_axes,
    ),
)
