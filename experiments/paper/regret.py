"""Figure 2: the regret of each objective over time, at K = 10."""

from collections.abc import Mapping

import numpy as np
import pandas as pd

from experiments import drawing
from experiments.drawing import Axes, Figure
from experiments.paper import verdict
from experiments.paper.experiment import ALGORITHMS, PAPER_WIDTHS, PAPERS, WIDTHS, Entry, named_paper_instance
from experiments.paper.tables import Row, Tables, averaged, count, errors, less, mean, rows_of
from experiments.paper.verdict import Finding, Verdict, by_width, claim, together
from lexbandits.simulation import Results

NAME = "regret"
TITLE = "Figure 2. Regret at K = 10"
CAPTION = (
    "Mean regret of each objective with a band of two standard errors. After stopping, the "
    "recommended arm is played on. The last row repeats the paper's two algorithms with matched "
    "widths."
)
SHOWN = {"regret_end": "Regret after the last round"}

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
            entry = Entry(named_paper_instance(10), algorithm, told.noise_sd, ROUNDS)
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


def draw(tables: Tables) -> Figure:
    """A row per width setting, a column per objective."""
    from matplotlib.ticker import MaxNLocator

    table = tables["regret"]
    horizon = int(table["t"].max())
    ticks = np.linspace(0, horizon, 3)
    figure = drawing.new_figure(drawing.WIDE, 8.2)
    edges = {"left": 0.068, "right": 0.985, "top": 0.935, "bottom": 0.052}
    panels = drawing.axes_grid(figure, 4, 3, hspace=0.46, wspace=0.24, **edges)
    for row, (width, told) in zip(panels, WIDTHS.items(), strict=True):
        drawn = [(item, width) for item in dict.fromkeys(table[table["width"] == width]["algorithm"])]
        if width == "sound":  # beside the paper's own with the same knowledge of the noise
            drawn = [("LexElim-Out", "matched"), ("LexElim-In", "matched"), *drawn]
        for objective, axes in enumerate(row, start=1):
            ends = [
                _curve(axes, table, width=source, algorithm=algorithm, objective=objective)
                for algorithm, source in drawn
            ]
            axes.set_xlim(0, 1.42 * horizon)
            axes.set_xticks(ticks, [f"{x:,.0f}" for x in ticks])
            axes.spines["bottom"].set_bounds(0, horizon)
            axes.margins(y=0.06)
            axes.yaxis.set_major_locator(MaxNLocator(4))
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
            axes.set_title(f"objective {objective}", fontsize=7)
            drawing.label_ends(axes, horizon, ends)
        row[0].set_ylabel("regret")
        drawing.heading(row[0], told.title, (0, 1.2), fontsize=8, va="bottom")
    for axes in panels[-1]:
        axes.set_xlabel("round t")
    return figure


def _curve(
    axes: Axes, table: pd.DataFrame, *, width: str, algorithm: str, objective: int
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
    outcome, numbers = _both_bend(tables)
    plain = regrets(rows_of(tables["regret_end"], algorithm="round-robin"))
    return Verdict(outcome, f"{numbers}\nround-robin: {plain}")


@by_width
def _both_bend(tables: Tables, width: str) -> Finding:
    judged = []
    for algorithm in PAPERS:
        rows = rows_of(tables["regret_end"], width=width, algorithm=algorithm)
        gone = f"{rows[0]['arms_eliminated']:.1f} arms eliminated"
        numbers = f"{algorithm} {regrets(rows)}, {halves(rows)}, {gone}, {errors(rows[0])}"
        judged.append((all(map(bends, rows)), numbers))
    return together(judged)


@claim("ucb-first-objective", "RM Results, Figure 2")
@by_width
def ucb_learns_the_first_objective_only(tables: Tables, width: str) -> Finding:
    """UCB-α has low regret on the first objective and linear regret on the second and third."""
    first, *later = rows = rows_of(tables["regret_end"], width=width, algorithm="UCB-α")
    return bends(first) and not any(map(bends, later)), f"{regrets(rows)}, {halves(rows)}"


@claim("less-regret-pf-lex", "RM Results, Figure 2")
def less_regret_than_pf_lex(tables: Tables) -> Verdict:
    """PF-LEX converges more slowly: both algorithms have less regret on every objective."""
    return _less_regret(tables, "PF-LEX")


@claim("less-regret-ucb", "Contributions; Figure 2")
def less_regret_than_ucb(tables: Tables) -> Verdict:
    """Both algorithms outperform the baselines in cumulative regret: here UCB-α, on every objective."""
    return _less_regret(tables, "UCB-α")


def _less_regret(tables: Tables, baseline: str) -> Verdict:
    cases: dict[str, bool] = {}
    told = []
    everywhere = True
    for label, width in verdict.LABELLED.items():
        ends = {
            name: rows_of(tables["regret_end"], width=width, algorithm=name) for name in (baseline, *PAPERS)
        }
        less_on = [
            all(less("regret", row, theirs) for row in ours)
            for theirs, *ours in zip(*ends.values(), strict=True)
        ]
        won = [str(i) for i, is_less in enumerate(less_on, start=1) if is_less]
        some = f" on objective{'s' if len(won) > 1 else ''} {' and '.join(won)}"
        cases[label if all(less_on) or not won else label + some] = bool(won)
        everywhere &= all(less_on)
        told.append(f"{label}: {'; '.join(f'{policy} {regrets(rows)}' for policy, rows in ends.items())}")
    return Verdict(verdict.HOLDS if everywhere else verdict.only_with({**cases, "": False}), "\n".join(told))


@claim("figure-2-axes", "Figure 2 as published")
@by_width
def figure_2_axes(tables: Tables, width: str) -> Finding:
    """All curves fit the axes of the published figure, which end at 800, 800 and 4,000."""
    table = tables["regret_end"]
    learners = table[table["algorithm"] != "round-robin"]
    highest = [
        max((row["regret"], row["algorithm"]) for row in rows_of(learners, width=width, objective=objective))
        for objective in (1, 2, 3)
    ]
    inside = all(value <= end * 1.001 for (value, _), end in zip(highest, AXES, strict=True))
    return inside, f"largest {', '.join(f'{count(value)} ({policy})' for value, policy in highest)}"


def bends(row: Row) -> bool:
    """Whether the second half of the rounds adds at most 80 % of the first, errors considered."""
    return mean(row, "bend").below(0.0)


def halves(rows: list[Row]) -> str:
    """What the second half of the rounds adds, beside the first."""
    parts = (f"{count(row['second_half'])} after {count(row['first_half'])}" for row in rows)
    return f"second half of the rounds: {', '.join(parts)}"


def regrets(rows: list[Row]) -> str:
    """The regret on each objective, in brackets."""
    return f"({', '.join(str(mean(row, 'regret')) for row in rows)})"


CLAIMS = verdict.claims_among(globals())
