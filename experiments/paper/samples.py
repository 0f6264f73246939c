"""Figure 3: pulls until each objective is settled, at K = 10, 20 and 30."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from experiments import drawing
from experiments.drawing import Axes, Figure, mark
from experiments.paper import experiment, verdict
from experiments.paper.experiment import ALGORITHMS, ARMS, PAPERS, WIDTHS, Entry, named_paper_instance
from experiments.paper.tables import Row, Tables, averaged, count, errors, grow, less, mean, rows_of
from experiments.paper.verdict import LABELLED, Finding, Verdict, by_case, by_width, claim, together
from lexbandits import characteristic_time, sample_lower_bound, theory
from lexbandits.simulation import Results

NAME = "samples"
TITLE = "Figure 3. Pulls to identify"
CAPTION = (
    "Mean pulls until every candidate ties with the lex-optimal arm on the first, the first two, "
    "all three objectives (light to dark), with bars of two standard errors, and wrong answers "
    "out of all runs (red where the 95 % interval lies above δ = 0.01; ∞: runs that had no answer"
    " at the horizon). UCB-α and EGE look at the first objective only: the others are not "
    "applicable."
)
SHOWN = {
    "samples": "Pulls to identify",
    "lower_bound": "Least possible pulls, for any algorithm that knows λ = 2",
    "instance": "The paper's instances",
}

AXIS = 14_000  # pulls at which all published panels end
BY_ARMS = {f"K = {n_arms}": n_arms for n_arms in ARMS}
DASHED: Any = {"color": "#333333", "lw": 0.9, "ls": (0, (3, 2))}


def entries() -> list[tuple[Row, Entry]]:
    """The paper's algorithms and baselines under its widths, and the sound policies."""
    found: list[tuple[Row, Entry]] = []
    for (width, told), n_arms in product(WIDTHS.items(), ARMS):
        case, sd = named_paper_instance(n_arms), told.noise_sd
        wanted = [Entry(case, algorithm, sd) for algorithm in told.algorithms]
        if width in experiment.PAPER_WIDTHS:
            ege_sd = 0.5 if width == "printed" else sd  # published for rewards in [0, 1], that is σ = 1/2
            wanted += [
                experiment.ucb_entry(case, sd),
                *(Entry(case, ege, ege_sd, experiment.EGE_HORIZON) for ege in ("EGE", "EGE/3900")),
            ]
        for entry in wanted:
            labels = {"width": width, "n_arms": n_arms, "algorithm": entry.algorithm}
            found.append(({**labels, "noise_sd": entry.noise_sd}, entry))
    return found


def tables(results: Results, answers: Mapping[str, Row]) -> dict[str, list[Row]]:
    """T^i where it was reached; on an algorithm's last objective its pulls to stop, right or wrong."""
    rows: list[Row] = []
    for labels, entry in entries():
        prefix = results.identification_rounds(entry.name, "prefix")
        alone = results.identification_rounds(entry.name, "objective")
        last = 0 if entry.algorithm in experiment.SINGLE else prefix.shape[1] - 1
        answer = answers[entry.name]
        for i in range(last + 1):
            samples = averaged("samples", prefix[:, i])
            if i == last:  # wrong answers cost pulls too
                samples = {"samples": answer["pulls"], "samples_se": answer["pulls_se"]}
            tilde = averaged("samples_tilde", alone[:, i])
            reached = {"reached": int(np.sum(~np.isnan(prefix[:, i])))}
            rows.append({**labels, "objective": i + 1, **samples, **tilde, **reached, **answer})
    return {"samples": rows, "instance": _arms(), "lower_bound": _lower_bounds()}


def _arms() -> list[Row]:
    """The paper's instances, arm by arm."""
    rows: list[Row] = []
    for n_arms in ARMS:
        known = named_paper_instance(n_arms).instance
        for arm, effective_gap in enumerate(theory.effective_gaps(known).tolist()):
            row: Row = {"n_arms": n_arms, "arm": arm + 1, "effective_gap": effective_gap}
            row |= {f"mean_{i + 1}": float(known.means[arm, i]) for i in range(3)}
            row |= {f"gap_{i + 1}": float(known.gaps[arm, i]) for i in range(3)}
            rows.append(row | {"lex_optimal": arm == known.lex_optimal_arm, "tradeoff": known.tradeoff})
    return rows


def _lower_bounds() -> list[Row]:
    rows: list[Row] = []
    for n_arms in ARMS:
        time = characteristic_time(named_paper_instance(n_arms).instance)
        bound = sample_lower_bound(time.low, experiment.DELTA)
        rows.append({"n_arms": n_arms, "lower_bound": bound, "certified": time.certified})
    return rows


def draw(tables: Tables) -> Figure:
    """A line per width and algorithm, a panel per number of arms, with the wrong answers beside."""
    table, bounds = tables["samples"], tables["lower_bound"]
    lines: list[tuple[str, str | None]] = []  # a heading before the algorithms of each width
    for width in WIDTHS:
        algorithms = dict.fromkeys(table[table["width"] == width]["algorithm"])
        lines += [(width, None), *((width, algorithm) for algorithm in algorithms)]
    figure = drawing.new_figure(drawing.WIDE, 5.9)
    edges = {"left": 0.125, "right": 0.995, "top": 0.945, "bottom": 0.115}
    [row] = drawing.axes_grid(figure, 1, len(ARMS), wspace=0.06, **edges)
    span = bounds["lower_bound"].min() / 2, table["samples"].max() * 60
    for axes, n_arms, bound in zip(row, ARMS, bounds["lower_bound"], strict=True):
        axes.axvline(bound, **DASHED)
        for y, (width, algorithm) in enumerate(lines):
            if algorithm:
                _samples(axes, y, rows_of(table, width=width, n_arms=n_arms, algorithm=algorithm))
            else:
                axes.axhspan(y - 0.5, y + 0.5, color="#f1f1f1", lw=0)
                box = {"facecolor": "#f1f1f1", "edgecolor": "none", "pad": 1}
                _beside(axes, WIDTHS[width].title, 0.02, y, fontweight="bold", bbox=box)
        drawing.list_down(axes, [algorithm for _, algorithm in lines], with_names=axes is row[0])
        axes.set(xscale="log", xlim=span, ylim=(len(lines) - 0.4, -0.6), xlabel="pulls")
        axes.set_xticks([10.0**k for k in range(int(np.ceil(np.log10(span[0]))), 9)])
        axes.set_title(f"K = {n_arms}", fontweight="bold", loc="left")
        axes.set_title("wrong", fontsize=6, loc="right")
    labels = ("objective 1 settled", "objectives 1 and 2", "all three: stopped")
    looks = {label: mark(**_marker("#555555", i, 3)) for i, label in enumerate(labels, start=1)}
    looks["least possible for δ = 0.01, λ = 2, σ² = 0.1"] = DASHED
    drawing.legend(figure, looks, ncols=4)
    return figure


def _beside(axes: Axes, text: str, x: float, y: float, **look: Any) -> None:
    """Words on line y; x in fractions of the axes."""
    axes.annotate(text, (x, y), xycoords=("axes fraction", "data"), va="center", **look)


def _samples(axes: Axes, y: float, rows: list[Row]) -> None:
    """The objectives of one algorithm, joined by a line; its wrong answers at the right."""
    look = ALGORITHMS[rows[0]["algorithm"]]
    known = [item for item in rows if item["reached"]]
    axes.plot([item["samples"] for item in known], [y] * len(known), color=look.colour, lw=0.8, alpha=0.5)
    for item in known:
        error = 2 * item["samples_se"]
        marker = mark(look.marker, look.colour, **_marker(look.colour, item["objective"], len(rows)))
        bars = [[min(error, 0.9 * item["samples"])], [error]]
        axes.errorbar(item["samples"], y, xerr=bars, elinewidth=0.8, **marker)
    last = rows[-1]
    wrong = f"{last['wrong']}/{last['replications']}"
    unstopped = f" +{last['unstopped']} ∞" if last["unstopped"] else ""
    bad = last["error_low"] > experiment.DELTA
    tone = {"color": "#C00000", "fontweight": "bold"} if bad else {"color": "#333333"}
    _beside(axes, wrong + unstopped, 0.985, y, ha="right", fontsize=6, **tone)


def _marker(colour: str, objective: int, count: int) -> Any:
    """From white to full and from large to small, so that markers in one place are rings around a dot;
    full where there is one objective only."""
    from matplotlib.colors import to_rgb

    weight = 1.0 if count == 1 else (objective - 1) / (count - 1)
    face = tuple(1 - weight * (1 - channel) for channel in to_rgb(colour))
    return {"mfc": face, "markersize": 4.5 if count == 1 else 7.5 - 2.2 * (objective - 1), "mew": 0.8}


def settled(tables: Tables, width: str, n_arms: int, *algorithms: str) -> list[Row]:
    """The rows of the first objective."""
    rows = rows_of(tables["samples"], width=width, n_arms=n_arms, objective=1)
    by_name = {row["algorithm"]: row for row in rows}
    return [by_name[algorithm] for algorithm in algorithms]


@claim("more-arms-more-samples", "BAI Results, Figure 3")
@by_case(LABELLED, {"for comparison": "sound"})
def more_arms_more_samples(tables: Tables, width: str) -> Finding:
    """All algorithms need more samples as K grows."""
    first = tables["samples"].query("objective == 1 and width == @width")
    judged = []
    for algorithm, rows in first.groupby("algorithm", sort=False):
        means = [mean(row, "pulls") for row in rows_of(rows)]
        holds = algorithm == "EGE/3900" or grow(means)  # which is not the paper's
        judged.append((holds, f"{algorithm} {', '.join(map(str, means))}"))
    return together(judged)


by_baseline = by_case(
    {
        f"{label} against {baseline}": (width, baseline)
        for (label, width), baseline in product(LABELLED.items(), ("UCB-α", "EGE"))
    }
)


@claim("fewer-samples-than-baselines", "BAI Results, Figure 3")
@by_baseline
def fewer_samples_than_baselines(tables: Tables, case: tuple[str, str]) -> Finding:
    """LexElim-In outperforms EGE and UCB-α (here α = 3) at every K, and its advantage grows with K."""
    width, baseline = case
    pairs = [settled(tables, width, n_arms, "LexElim-In", baseline) for n_arms in ARMS]
    advantages = [mean(other, "samples").over(mean(inner, "samples")) for inner, other in pairs]
    fewer = all(less("samples", inner, other) for inner, other in pairs)
    ratios = ", ".join(map(str, advantages))
    return fewer and grow(advantages), f"{against(pairs)}; {baseline} over LexElim-In: {ratios}"


@claim("both-fewer-samples", "Contributions; Figure 3")
@by_baseline
def both_need_fewer_samples(tables: Tables, case: tuple[str, str]) -> Finding:
    """Both LexElim-Out and LexElim-In outperform the baselines in samples: here EGE and UCB-α (α = 3), at
    every K.
    """
    width, baseline = case
    trios = [settled(tables, width, n_arms, *PAPERS, baseline) for n_arms in ARMS]
    fewer = all(less("samples", row, other) for *ours, other in trios for row in ours)
    return fewer, against(trios)


def against(groups: Iterable[Sequence[Row]]) -> str:
    """What each algorithm needs to settle the first objective, by K."""
    return "; ".join(
        f"K = {rows[0]['n_arms']}: "
        + ", ".join(f"{row['algorithm']} {mean(row, 'samples')} ({errors(row)})" for row in rows)
        for rows in groups
    )


@claim("in-beats-out", "LexElim-In, after Algorithm 2")
def inner_beats_outer(tables: Tables) -> Verdict:
    """LexElim-In identifies the lex-optimal arm faster than LexElim-Out. (Judged with widths that carry a
    guarantee.)
    """
    wins = dict.fromkeys(BY_ARMS, True)
    told = []
    for label, width in LABELLED.items():
        parts = []
        for case, n_arms in BY_ARMS.items():
            outer, inner = settled(tables, width, n_arms, *PAPERS)
            if width in experiment.GUARANTEED:
                wins[case] &= less("pulls", inner, outer)
            parts.append(
                f"{case}: In {mean(inner, 'pulls')} ({errors(inner)}), "
                f"Out {mean(outer, 'pulls')} ({errors(outer)})"
            )
        told.append(f"{label}: {'; '.join(parts)}")
    return Verdict(verdict.only_with(wins), "\n".join(told))


@claim("error-at-most-delta", "Theorems 1 to 4")
@by_case(LABELLED, {"for comparison, σ = √0.1": "sound"})
def error_at_most_delta(tables: Tables, width: str) -> Finding:
    """The answer is wrong with probability at most δ = 0.01."""
    judged = []
    for algorithm in WIDTHS[width].algorithms:
        rows = rows_of(tables["samples"], width=width, algorithm=algorithm, objective=1)
        wrong, runs = (sum(row[key] for row in rows) for key in ("wrong", "replications"))
        judged.append((verdict.at_most_delta(wrong, runs), f"{algorithm} {wrong}/{runs} wrong"))
    return together(judged, ", ")


@claim("as-good-as-ege", "Remark 2")
@by_width
def as_good_as_single_objective(tables: Tables, width: str) -> Finding:
    """LexElim-Out settles the first objective as efficiently as the best single-objective algorithm, EGE."""
    trios = [settled(tables, width, n_arms, "LexElim-Out", "EGE", "UCB-α") for n_arms in ARMS]
    return all(less("samples", outer, ege) for outer, ege, _ in trios), against(trios)


@claim("figure-3-axes", "Figure 3 as published")
@by_width
def figure_3_axes(tables: Tables, width: str) -> Finding:
    """All sample counts fit the axes of the published figure, which end at 14,000."""
    samples = {
        algorithm: [row["samples"] for row in rows_of(tables["samples"], width=width, algorithm=algorithm)]
        for algorithm in (*PAPERS, "UCB-α", "EGE")
    }
    most = ", ".join(f"{algorithm} {count(max(values))}" for algorithm, values in samples.items())
    inside = [value <= AXIS for values in samples.values() for value in values]
    return all(inside), f"{sum(inside)} of {len(inside)} points inside; largest {most}"


def ruled_out(tables: Tables, n_arms: int) -> list[Row]:
    """The arms that the first objective rules out."""
    return [row for row in rows_of(tables["instance"], n_arms=n_arms) if row["gap_1"] > 0]


@claim("gaps-twice-as-large", "BAI Results")
@by_case(BY_ARMS)
def gaps_twice_as_large(tables: Tables, n_arms: int) -> Finding:
    """In the experiment the gaps of the second and third objectives are twice those of the first, which is
    why LexElim-In is fast.
    """
    arms = ruled_out(tables, n_arms)
    double = [sum(row[f"gap_{i}"] >= 2 * row["gap_1"] - 1e-12 for row in arms) for i in (2, 3)]
    better = [sum(row[f"gap_{i}"] < 0 for row in arms) for i in (2, 3)]
    helped = sum(row["effective_gap"] > row["gap_1"] * (1 + 1e-12) for row in arms)
    return min(double) == len(arms), (
        f"of {len(arms)} arms with Δ¹ > 0, Δ² ≥ 2Δ¹ for {double[0]}, Δ³ ≥ 2Δ¹ for {double[1]}; "
        f"better than a_* on objective 2: {better[0]}, on 3: {better[1]}; "
        f"a later objective helps LexElim-In (Δ̃ > Δ¹ at λ = {arms[0]['tradeoff']:g}) for {helped}"
    )


@claim("effective-gaps", "Table 1")
@by_case(BY_ARMS)
def effective_gaps_larger(tables: Tables, n_arms: int) -> Finding:
    """Δ̃(a) ≥ Δ¹(a) for every arm, so that LexElim-In's sample bound has the smaller sum."""
    arms = ruled_out(tables, n_arms)
    ours, single = (sum(row[gap] ** -2 for row in arms) for gap in ("effective_gap", "gap_1"))
    larger = all(row["effective_gap"] >= row["gap_1"] * (1 - 1e-12) for row in arms)
    return larger, f"Σ 1/Δ̃² = {count(ours)}, Σ 1/(Δ¹)² = {count(single)}"


CLAIMS = verdict.claims_among(globals())
