"""Figure 1: who eliminates which arm, on which objective and when, with and without a conflict."""

import math
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product

import numpy as np
import pandas as pd

from experiments import drawing
from experiments.drawing import Axes, Figure, mark
from experiments.paper.experiment import ALGORITHMS, DELTA, GUARANTEED, WIDTHS, Entry, named_instance
from experiments.paper.tables import Row, Tables, averaged, count, errors, less, mean, one, rows_of
from experiments.paper.verdict import (
    Finding,
    Verdict,
    by_width,
    claim,
    claims_among,
    only_with,
    together,
)
from lexbandits import Instance, characteristic_time, sample_lower_bound
from lexbandits.simulation import Results

NAME = "acceleration"
TITLE = "Figure 1. Cross-objective acceleration"
CAPTION = (
    "Left: the arms; yellow ones are eliminated by the second objective (LexElim-In, matched "
    "widths). Right: the mean round in which each algorithm eliminates each arm, filled where "
    "mostly the second objective did it, and wrong answers in the order of the legend. The paper "
    "prints no coordinates: these arms were chosen to do what its text says."
)
SHOWN = {
    "acceleration": "Who eliminates which arm, and when",
    "acceleration_stopping": "Pulls and regret up to the answer, and lower bounds",
}

# The paper prints no coordinates: these do what its text says. Gaps to the star, which is arm 1: near
# (.10, .25), far (.03, .60), plain (.35, .05), (.50, .30), (.25, .10); in (b) the last is the red arm
# (.20, −.20), which makes λ = 1.
OTHERS = [(90, 80), (80, 55), (87, 20), (55, 75), (40, 50)]
INSTANCES = (
    named_instance("Figure 1a", [*OTHERS, (65, 70)]),
    named_instance("Figure 1b", [*OTHERS, (70, 100)]),
    named_instance("far alone", [OTHERS[0], OTHERS[2]]),  # nothing but what the second objective is good for
)
NEAR, FAR = 2, 3  # arms, counted from 1
CASES = {
    "Figure 1a": "Figure 1a, λ = 0",
    "Figure 1b": "Figure 1b, λ = 1",
    "far alone": "the star and the far arm alone, λ = 0",
}


def entries() -> list[tuple[Row, Entry]]:
    """Both cases of the figure, and the far arm alone, under every width."""
    return [
        ({"case": case.name, "width": width, "algorithm": algorithm}, Entry(case, algorithm, told.noise_sd))
        for case, (width, told) in product(INSTANCES, WIDTHS.items())
        for algorithm in told.algorithms
    ]


def tables(results: Results, answers: Mapping[str, Row]) -> dict[str, list[Row]]:
    """Eliminations arm by arm; pulls and regret up to the answer beside the lower bounds."""
    arms: list[Row] = []
    stopping: list[Row] = []
    for labels, entry in entries():
        known, left = entry.case.instance, results.runs[entry.name].left
        for arm in range(known.n_arms):
            gone = left[:, arm, 0] > 0
            arms.append(
                {
                    **labels,
                    "arm": arm + 1,
                    "mean_1": known.means[arm, 0],
                    "mean_2": known.means[arm, 1],
                    "gap_1": known.gaps[arm, 0],
                    "gap_2": known.gaps[arm, 1],
                    **averaged("round", left[gone, arm, 0].astype(float)),
                    "by_objective_2": float(np.mean(left[gone, arm, 1] == 1)) if gone.any() else math.nan,
                    "eliminated": int(gone.sum()),
                    "replications": answers[entry.name]["replications"],
                }
            )
        regret = averaged("regret_1", results.runs[entry.name].pulls @ known.gaps[:, 0])
        bounds = {"tradeoff": known.tradeoff, **lower_bounds(known)}
        stopping.append({**labels, **bounds, **regret, **answers[entry.name]})
    return {"acceleration": arms, "acceleration_stopping": stopping}


@cache
def lower_bounds(known: Instance) -> Row:
    """What a learner cannot beat on average at δ: in pulls, when it sees the first objective alone and when
    it sees all and knows λ; in regret on the first objective up to the answer, when it sees that alone.

    For the last: an arm that is Δ behind becomes the best when its mean rises by a little more than Δ, so
    it is pulled kl(δ, 1 − δ)·2σ²/Δ² times on average, whatever the others are; each pull costs Δ.
    """
    first = Instance(known.means[:, :1], noise_sd=known.noise_sd)
    gaps = known.gaps[known.gaps[:, 0] > 0, 0]
    regret_time = float(np.sum(2 * known.noise_sd**2 / gaps))
    return {
        "lower_bound_objective_1": sample_lower_bound(characteristic_time(first).low, DELTA),
        "lower_bound": sample_lower_bound(characteristic_time(known).low, DELTA),
        "regret_lower_bound": sample_lower_bound(regret_time, DELTA),
    }


def draw(tables: Tables) -> Figure:
    """Arms in the plane, and when and on which objective each is eliminated."""
    cases = {"Figure 1a": "(a) no conflict, λ = 0", "Figure 1b": "(b) conflict, λ = 1"}
    table, stopping = tables["acceleration"], tables["acceleration_stopping"]
    table = table[table["case"].isin(list(cases))]
    figure = drawing.new_figure(drawing.WIDE, 4.5)
    edges = {"top": 0.86, "bottom": 0.165, "hspace": 0.5}
    planes = drawing.axes_grid(figure, 2, 1, left=0.062, right=0.275, **edges)
    panels = drawing.axes_grid(figure, 2, 4, left=0.35, right=0.985, wspace=0.16, **edges)
    for (case, title), (plane,), row in zip(cases.items(), planes, panels, strict=True):
        arms = rows_of(table, case=case, width="matched", algorithm="LexElim-In")
        _plane(plane, arms)
        plane.set_title(title, loc="left", fontweight="bold", pad=9)
        for axes, width in zip(row, WIDTHS, strict=True):
            _eliminations(axes, table[table["width"] == width], case)
            axes.set_yticks(range(2, len(arms) + 1), list(map(_arm_name, arms[1:])) if axes is row[0] else [])
            results = rows_of(stopping, case=case, width=width)
            wrong = ", ".join(str(result["wrong"]) for result in results)
            axes.set_title(f"wrong: {wrong} of {results[0]['replications']}", loc="left", fontsize=6, pad=3)
    for above, below, told in zip(*panels, WIDTHS.values(), strict=True):
        drawing.heading(above, told.title.replace(", ", ",\n"), (0, 1.14), fontsize=7)
        below.set_xlabel("round of elimination")
    looks = {
        name: mark(ALGORITHMS[name].marker, ALGORITHMS[name].colour)
        for name in dict.fromkeys(table["algorithm"])
    }
    looks |= {"filled: by objective 2": mark(), "open: by objective 1": mark(mfc="white")}
    drawing.legend(figure, looks, ncols=7, handletextpad=0.2, columnspacing=1.2)
    return figure


def _arm_name(arm: Row) -> str:
    if arm["arm"] in (NEAR, FAR):
        return f"{'near' if arm['arm'] == NEAR else 'far'} {arm['arm']}"
    return f"red {arm['arm']}" if arm["gap_2"] < 0 else f"{arm['arm']}"


def _plane(axes: Axes, arms: Sequence[Row]) -> None:
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


def _eliminations(axes: Axes, table: pd.DataFrame, case: str) -> None:
    """A line per arm: the round in which each algorithm of one width eliminates it."""
    algorithms = list(dict.fromkeys(table["algorithm"]))
    for i, algorithm in enumerate(algorithms):
        look, offset = ALGORITHMS[algorithm], 0.22 * (i - (len(algorithms) - 1) / 2)
        for item in rows_of(table, case=case, algorithm=algorithm):
            if item["eliminated"]:
                face = look.colour if item["by_objective_2"] > 0.5 else "white"
                marker = mark(look.marker, look.colour, mfc=face, mew=0.9)
                place, error = item["arm"] + offset, 2 * item["round_se"]
                axes.errorbar(item["round"], place, xerr=error, elinewidth=0.8, **marker)
    limits = drawing.log_limits(table["round"])
    axes.set(xscale="log", xlim=limits, ylim=(table["arm"].max() + 0.6, 1.4))
    axes.set_xticks(drawing.decades(*limits))
    axes.tick_params(axis="y", length=0)


@claim("both-yellow-arms", "Cross-objective Acceleration, Figure 1(a)")
@by_width
def both_yellow_arms(tables: Tables, width: str) -> Finding:
    """Without conflict (λ = 0) LexElim-In eliminates the two arms with small first and large second gaps
    through the second objective, and efficiently.
    """
    return _yellow_arms(tables, width, "Figure 1a", near=True)


@claim("far-yellow-arm", "Cross-objective Acceleration, Figure 1(b)")
@by_width
def only_far_yellow_arm(tables: Tables, width: str) -> Finding:
    """With a conflict (λ = 1) only the far one of the two is still eliminated quickly through the second
    objective.
    """
    return _yellow_arms(tables, width, "Figure 1b", near=False)


def _yellow_arms(tables: Tables, width: str, case: str, *, near: bool) -> Finding:
    """Whether the far arm, and the near one just if `near`, goes through objective 2 and sooner for it."""
    judged = []
    for kind, arm, expected in (("near", NEAR, near), ("far", FAR, True)):
        inner, outer = (
            one(tables["acceleration"], case=case, width=width, arm=arm, algorithm=f"LexElim-{which}")
            for which in ("In", "Out")
        )
        share = inner["by_objective_2"]
        quick = share > 0.5 and less("round", inner, outer)
        percent = "–" if math.isnan(share) else f"{100 * share:.0f} %"
        numbers = (
            f"{kind} at round {mean(inner, 'round')} ({percent} by objective 2; "
            f"LexElim-Out {mean(outer, 'round')})"
        )
        judged.append((quick == expected, numbers))
    return together(judged, ", ")


@claim("beyond-lower-bound", "Abstract, Table 1, Remark 4")
def beyond_the_lower_bound(tables: Tables) -> Verdict:
    """LexElim-In can need fewer samples than the lower bound of the single-objective problem. (That bound is
    for learners who see one objective and no λ: no contradiction.)
    """
    return _beyond(tables, "pulls", "lower_bound_objective_1")


@claim("beyond-regret-bound", "Contributions, Table 1, Remark 3")
def beyond_the_regret_bound(tables: Tables) -> Verdict:
    """LexElim-In can have less regret on the first objective than the lower bound of the single-objective
    problem. (Here: up to the answer, against learners that are right with probability 1 − δ.)
    """
    return _beyond(tables, "regret_1", "regret_lower_bound")


def _beyond(tables: Tables, measured: str, bound: str) -> Verdict:
    cases: dict[str, bool] = {}
    told = []
    for case, label in CASES.items():
        for width, algorithm in (*((width, "LexElim-In") for width in GUARANTEED), ("sound", "LexElim-Pool")):
            row = one(tables["acceleration_stopping"], case=case, width=width, algorithm=algorithm)
            where = f"{label}, {WIDTHS[width].label}"
            if width in GUARANTEED:
                cases[where] = mean(row, measured).below(row[bound])
            told.append(
                f"{where}: {algorithm} {mean(row, measured)} against {count(row[bound])} ({errors(row)})"
            )
        if measured == "pulls":
            told.append(f"{label}: the bound that knows both objectives and λ is {count(row['lower_bound'])}")
    return Verdict(only_with(cases), "\n".join(told))


CLAIMS = claims_among(globals())
