"""Figure 3: pulls until each objective is settled, at K = 10, 20 and 30."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise, product
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits import theory
from lexbandits.drawing import WIDE, new_figure
from lexbandits.reproduction.experiment import (
    ALGORITHMS,
    ARMS,
    DELTA,
    EGE_HORIZON,
    GUARANTEED,
    PAPER_WIDTHS,
    PAPERS,
    SINGLE,
    WIDTHS,
    Entry,
    averaged,
    paper_world,
    ucb_entry,
)
from lexbandits.reproduction.section import Section
from lexbandits.reproduction.tables import Mean, Row, Tables, count, errors, mean, one, rows_of
from lexbandits.reproduction.verdict import (
    Judged,
    Verdict,
    at_most_delta,
    by_case,
    by_width,
    claim,
    only_with,
)
from lexbandits.simulation.results import Results
from lexbandits.theory.lower_bound import characteristic_time, sample_lower_bound

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

AXIS = 14_000  # pulls at which all published panels end
DASHED: Any = {"color": "#333333", "lw": 0.9, "ls": (0, (3, 2))}


def entries() -> list[tuple[Row, Entry]]:
    """The paper's algorithms and baselines under its widths, and the sound policies."""
    found: list[tuple[Row, Entry]] = []
    for (width, told), n_arms in product(WIDTHS.items(), ARMS):
        world, sd = paper_world(n_arms), told.noise_sd
        wanted = [Entry(world, algorithm, sd) for algorithm in told.algorithms]
        if width in PAPER_WIDTHS:
            ege_sd = 0.5 if width == "printed" else sd  # published for rewards in [0, 1], that is σ = 1/2
            wanted += [
                ucb_entry(world, sd),
                *(Entry(world, ege, ege_sd, EGE_HORIZON) for ege in ("EGE", "EGE/3900")),
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
        last = 0 if entry.algorithm in SINGLE else prefix.shape[1] - 1
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
        known = paper_world(n_arms).instance
        effective = theory.effective_gaps(known)
        for arm in range(n_arms):
            row: Row = {"n_arms": n_arms, "arm": arm + 1, "effective_gap": float(effective[arm])}
            row |= {f"mean_{i + 1}": float(known.means[arm, i]) for i in range(3)}
            row |= {f"gap_{i + 1}": float(known.gaps[arm, i]) for i in range(3)}
            rows.append(row | {"lex_optimal": arm == known.lex_optimal_arm, "tradeoff": known.tradeoff})
    return rows


def _lower_bounds() -> list[Row]:
    rows: list[Row] = []
    for n_arms in ARMS:
        time = characteristic_time(paper_world(n_arms).instance)
        bound = sample_lower_bound(time.low, DELTA)
        rows.append({"n_arms": n_arms, "lower_bound": bound, "certified": time.certified})
    return rows


def draw(tables: Tables) -> "Figure":
    """A line per width and algorithm, a panel per number of arms, with the wrong answers beside."""
    table, bounds = tables["samples"], tables["lower_bound"]
    n_arms = list(dict.fromkeys(table["n_arms"]))
    lines: list[tuple[str, str] | None] = []
    for width in WIDTHS:
        algorithms = dict.fromkeys(table[table["width"] == width]["algorithm"])
        lines += [None, *((width, algorithm) for algorithm in algorithms)]
    figure = new_figure(WIDE, 5.9)
    grid = figure.add_gridspec(1, len(n_arms), left=0.125, right=0.995, top=0.945, bottom=0.115, wspace=0.06)
    span = bounds["lower_bound"].min() / 2, table["samples"].max() * 60
    for column, arms in enumerate(n_arms):
        axes = figure.add_subplot(grid[0, column])
        axes.axvline(one(bounds, n_arms=arms)["lower_bound"], **DASHED)
        titles = iter(told.title for told in WIDTHS.values())
        for y, line in enumerate(lines):
            if line is None:
                _band(axes, y, next(titles))
            else:
                _samples(axes, y, rows_of(table, width=line[0], n_arms=arms, algorithm=line[1]))
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
    _legend(figure)
    return figure


def _band(axes: "Axes", y: float, title: str) -> None:
    """The heading of a width's lines."""
    axes.axhspan(y - 0.5, y + 0.5, color="#f1f1f1", lw=0)
    axes.annotate(
        title,
        (0.02, y),
        xycoords=("axes fraction", "data"),
        fontweight="bold",
        va="center",
        bbox={"facecolor": "#f1f1f1", "edgecolor": "none", "pad": 1},
    )


def _samples(axes: "Axes", y: float, rows: list[Row]) -> None:
    """The objectives of one algorithm, joined by a line; its wrong answers at the right."""
    look = ALGORITHMS[rows[0]["algorithm"]]
    known = [item for item in rows if item["reached"]]
    axes.plot([item["samples"] for item in known], [y] * len(known), color=look.colour, lw=0.8, alpha=0.5)
    for item in known:
        axes.errorbar(
            item["samples"],
            y,
            xerr=[[min(2 * item["samples_se"], 0.9 * item["samples"])], [2 * item["samples_se"]]],
            fmt=look.marker,
            color=look.colour,
            **_marker(look.colour, item["objective"], len(rows)),
            elinewidth=0.8,
        )
    last = rows[-1]
    bad = last["error_low"] > DELTA
    axes.annotate(
        f"{last['wrong']}/{last['replications']}" + (f" +{last['unstopped']} ∞" if last["unstopped"] else ""),
        (0.985, y),
        xycoords=("axes fraction", "data"),
        ha="right",
        va="center",
        fontsize=6,
        color="#C00000" if bad else "#333333",
        fontweight="bold" if bad else "normal",
    )


def _marker(colour: str, objective: int, count: int) -> Any:
    """From white to full and from large to small, so that markers in one place are rings around a dot;
    full where there is one objective only."""
    from matplotlib.colors import to_rgb

    weight = 1.0 if count == 1 else (objective - 1) / (count - 1)
    face = tuple(1 - weight * (1 - channel) for channel in to_rgb(colour))
    return {"mfc": face, "markersize": 4.5 if count == 1 else 7.5 - 2.2 * (objective - 1), "mew": 0.8}


def _legend(figure: "Figure") -> None:
    from matplotlib.lines import Line2D

    grey: Any = {"ls": "", "marker": "o", "color": "#555555"}
    labels = ("objective 1 settled", "objectives 1 and 2", "all three: stopped")
    handles = [
        Line2D([], [], **grey, **_marker("#555555", i, 3), label=label)
        for i, label in enumerate(labels, start=1)
    ]
    handles.append(Line2D([], [], **DASHED, label="least possible for δ = 0.01, λ = 2, σ² = 0.1"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False)


def settled(tables: Tables, width: str, n_arms: int, *algorithms: str) -> list[Row]:
    """The rows of the first objective."""
    where = {"width": width, "n_arms": n_arms, "objective": 1}
    return [one(tables["samples"], **where, algorithm=algorithm) for algorithm in algorithms]


@claim("more-arms-more-samples", "BAI Results, Figure 3")
def more_arms_more_samples(tables: Tables) -> Verdict:
    """All algorithms need more samples as K grows."""
    table = tables["samples"]

    def look(width: str) -> Judged:
        holds, parts = True, []
        for algorithm in dict.fromkeys(table[table["width"] == width]["algorithm"]):
            rows = rows_of(table, width=width, algorithm=algorithm, objective=1)
            means = [mean(row, "pulls") for row in rows]
            holds &= algorithm == "EGE/3900" or grows(means)  # which is not the paper's
            parts.append(f"{algorithm} {', '.join(map(str, means))}")
        return holds, "; ".join(parts)

    return by_width(look, f"for comparison: {look('sound')[1]}")


@claim("fewer-samples-than-baselines", "BAI Results, Figure 3")
def fewer_samples_than_baselines(tables: Tables) -> Verdict:
    """LexElim-In outperforms EGE and UCB-α (here α = 3) at every K, and its advantage grows with K."""

    def look(width: str, baseline: str) -> Judged:
        pairs = [settled(tables, width, n_arms, "LexElim-In", baseline) for n_arms in ARMS]
        advantages = [mean(other, "samples").over(mean(inner, "samples")) for inner, other in pairs]
        fewer = all(mean(inner, "samples").below(mean(other, "samples")) for inner, other in pairs)
        ratios = ", ".join(map(str, advantages))
        return fewer and grows(advantages), f"{against(pairs)}; {baseline} over LexElim-In: {ratios}"

    return by_baseline(look)


@claim("both-fewer-samples", "Contributions; Figure 3")
def both_need_fewer_samples(tables: Tables) -> Verdict:
    """Both LexElim-Out and LexElim-In outperform the baselines in samples: here EGE and UCB-α (α = 3), at
    every K.
    """

    def look(width: str, baseline: str) -> Judged:
        trios = [settled(tables, width, n_arms, *PAPERS, baseline) for n_arms in ARMS]
        fewer = all(
            mean(row, "samples").below(mean(other, "samples")) for *ours, other in trios for row in ours
        )
        return fewer, against(trios)

    return by_baseline(look)


def by_baseline(look: Callable[[str, str], Judged]) -> Verdict:
    """The verdict over the paper's widths and both baselines; it holds where it does against both."""
    cases = {
        f"{WIDTHS[width].label} against {baseline}": look(width, baseline)
        for width, baseline in product(PAPER_WIDTHS, ("UCB-α", "EGE"))
    }
    return by_case(cases)


def grows(means: Sequence[Mean]) -> bool:
    """Whether the last is above the first, and none below the one before it."""
    return means[0].below(means[-1]) and not any(later.below(former) for former, later in pairwise(means))


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
    wins = {f"K = {n_arms}": True for n_arms in ARMS}
    told = []
    for width in PAPER_WIDTHS:
        parts = []
        for n_arms, case in zip(ARMS, wins, strict=True):
            outer, inner = settled(tables, width, n_arms, *PAPERS)
            if width in GUARANTEED:
                wins[case] &= mean(inner, "pulls").below(mean(outer, "pulls"))
            parts.append(
                f"{case}: In {mean(inner, 'pulls')} ({errors(inner)}), "
                f"Out {mean(outer, 'pulls')} ({errors(outer)})"
            )
        told.append(f"{WIDTHS[width].label}: {'; '.join(parts)}")
    return Verdict(only_with(wins), "\n".join(told))


@claim("error-at-most-delta", "Theorems 1 to 4")
def error_at_most_delta(tables: Tables) -> Verdict:
    """The answer is wrong with probability at most δ = 0.01."""

    def look(width: str) -> Judged:
        holds, parts = True, []
        for algorithm in WIDTHS[width].algorithms:
            rows = rows_of(tables["samples"], width=width, algorithm=algorithm, objective=1)
            wrong, runs = (sum(row[key] for row in rows) for key in ("wrong", "replications"))
            holds &= at_most_delta(wrong, runs)
            parts.append(f"{algorithm} {wrong}/{runs} wrong")
        return holds, ", ".join(parts)

    return by_width(look, f"for comparison, σ = √0.1: {look('sound')[1]}")


@claim("as-good-as-ege", "Remark 2")
def as_good_as_single_objective(tables: Tables) -> Verdict:
    """LexElim-Out settles the first objective as efficiently as the best single-objective algorithm, EGE."""

    def look(width: str) -> Judged:
        trios = [settled(tables, width, n_arms, "LexElim-Out", "EGE", "UCB-α") for n_arms in ARMS]
        holds = all(mean(outer, "samples").below(mean(ege, "samples")) for outer, ege, _ in trios)
        return holds, against(trios)

    return by_width(look)


@claim("figure-3-axes", "Figure 3 as published")
def figure_3_axes(tables: Tables) -> Verdict:
    """All sample counts fit the axes of the published figure, which end at 14,000."""

    def look(width: str) -> Judged:
        largest: dict[str, float] = {}
        inside = points = 0
        for algorithm in (*PAPERS, "UCB-α", "EGE"):
            samples = [row["samples"] for row in rows_of(tables["samples"], width=width, algorithm=algorithm)]
            largest[algorithm] = max(samples)
            points += len(samples)
            inside += sum(value <= AXIS for value in samples)
        most = ", ".join(f"{algorithm} {count(value)}" for algorithm, value in largest.items())
        return inside == points, f"{inside} of {points} points inside; largest {most}"

    return by_width(look)


def ruled_out(tables: Tables, n_arms: int) -> list[Row]:
    """The arms that the first objective rules out."""
    return [row for row in rows_of(tables["instance"], n_arms=n_arms) if row["gap_1"] > 0]


@claim("gaps-twice-as-large", "BAI Results")
def gaps_twice_as_large(tables: Tables) -> Verdict:
    """In the experiment the gaps of the second and third objectives are twice those of the first, which is
    why LexElim-In is fast.
    """

    def look(n_arms: int) -> Judged:
        arms = ruled_out(tables, n_arms)
        double = [sum(row[f"gap_{i}"] >= 2 * row["gap_1"] - 1e-12 for row in arms) for i in (2, 3)]
        better = [sum(row[f"gap_{i}"] < 0 for row in arms) for i in (2, 3)]
        helped = sum(row["effective_gap"] > row["gap_1"] * (1 + 1e-12) for row in arms)
        return min(double) == len(arms), (
            f"of {len(arms)} arms with Δ¹ > 0, Δ² ≥ 2Δ¹ for {double[0]}, Δ³ ≥ 2Δ¹ for {double[1]}; "
            f"better than a_* on objective 2: {better[0]}, on 3: {better[1]}; "
            f"a later objective helps LexElim-In (Δ̃ > Δ¹ at λ = {arms[0]['tradeoff']:g}) for {helped}"
        )

    return by_case({f"K = {n_arms}": look(n_arms) for n_arms in ARMS})


@claim("effective-gaps", "Table 1")
def effective_gaps_larger(tables: Tables) -> Verdict:
    """Δ̃(a) ≥ Δ¹(a) for every arm, so that LexElim-In's sample bound has the smaller sum."""

    def look(n_arms: int) -> Judged:
        arms = ruled_out(tables, n_arms)
        ours, single = (sum(row[gap] ** -2 for row in arms) for gap in ("effective_gap", "gap_1"))
        larger = all(row["effective_gap"] >= row["gap_1"] * (1 - 1e-12) for row in arms)
        return larger, f"Σ 1/Δ̃² = {count(ours)}, Σ 1/(Δ¹)² = {count(single)}"

    return by_case({f"K = {n_arms}": look(n_arms) for n_arms in ARMS})


SECTION = Section(
    name="samples",
    title="Figure 3. Pulls to identify",
    caption="Mean pulls until every candidate ties with the lex-optimal arm on the first, the first two, "
    "all three objectives (light to dark), with bars of two standard errors, and wrong answers "
    "out of all runs (red where the 95 % interval lies above δ = 0.01; ∞: runs that had no answer"
    " at the horizon). UCB-α and EGE look at the first objective only: the others are not "
    "applicable.",
    entries=entries,
    tables=tables,
    shown={
        "samples": "Pulls to identify",
        "lower_bound": "Least possible pulls, for any algorithm that knows λ = 2",
        "instance": "The paper's instances",
    },
    draw=draw,
    claims=(
        more_arms_more_samples,
        fewer_samples_than_baselines,
        both_need_fewer_samples,
        inner_beats_outer,
        error_at_most_delta,
        as_good_as_single_objective,
        figure_3_axes,
        gaps_twice_as_large,
        effective_gaps_larger,
    ),
)
