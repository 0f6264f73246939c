"""What the paper says, claim by claim, and verdicts computed from the tables of `paper.py`."""

import math
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from lexbandits.reproduction.paper import ARMS, DELTA
from lexbandits.reproduction.paper import PAPERS as OURS
from lexbandits.reproduction.wording import count, percent, pm

if TYPE_CHECKING:
    import pandas as pd


Tables = Mapping[str, "pd.DataFrame"]
Row = dict[str, Any]

HOLDS, FAILS = "holds", "does not hold"
ERRORS = 2.0  # two means differ when they are this many standard errors apart
SURPRISE = 0.01  # an error count less likely than this under δ speaks against the guarantee

WIDTH_NAMES = {"printed": "σ = 1 as printed", "matched": "σ = √0.1", "tenth": "widths × 0.1 (no guarantee)"}
SOUND_WIDTHS = ("printed", "matched")


class Verdict(NamedTuple):
    """`holds`, `holds only with …` or `does not hold`, and the numbers it was computed from."""

    outcome: str
    numbers: str


class Claim(NamedTuple):
    """A statement of the paper in our words; `judge` reads the tables of its section."""

    name: str
    section: str
    source: str
    statement: str
    judge: Callable[[Tables], Verdict]


def verdicts(tables: Tables, sections: Iterable[str], command: str) -> "pd.DataFrame":
    """One row per claim of the sections; `command` gets the claim appended as --claim."""
    import pandas as pd

    rows = []
    for claim in CLAIMS:
        if claim.section in sections:
            outcome, numbers = claim.judge(tables)
            rows.append(
                {
                    "claim": claim.name,
                    "section": claim.section,
                    "source": claim.source,
                    "statement": claim.statement,
                    "verdict": outcome,
                    "numbers": numbers,
                    "command": f"{command} --claim {claim.name}",
                }
            )
    return pd.DataFrame(rows)


def named(name: str) -> Claim:
    """The claim of that name; a ValueError that says the nearest one if there is none."""
    known = {claim.name: claim for claim in CLAIMS}
    if name not in known:
        near = get_close_matches(name, known, n=1, cutoff=0.0)
        raise ValueError(f"unknown claim {name!r}; did you mean {near[0]!r}? known: {', '.join(known)}")
    return known[name]


def only_with(cases: Mapping[str, bool]) -> str:
    """The outcome of a claim that was looked at in several cases."""
    held = [case for case, holds in cases.items() if holds]
    if len(held) == len(cases):
        return HOLDS
    return f"holds only with {' or '.join(held)}" if held else FAILS


# Figure 1


def both_yellow_arms(tables: Tables) -> Verdict:
    """λ = 0: the second objective eliminates both, long before the first would."""
    return _yellow_arms(tables, "Figure 1a", {"near": True, "far": True})


def only_far_yellow_arm(tables: Tables) -> Verdict:
    """λ = 1: the second objective eliminates the far arm, and no longer the near one."""
    return _yellow_arms(tables, "Figure 1b", {"near": False, "far": True})


def _yellow_arms(tables: Tables, case: str, expected: Mapping[str, bool]) -> Verdict:
    arms = {"near": 2, "far": 3}
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        holds, parts = True, []
        for kind, arm in arms.items():
            where = {"case": case, "width": width, "arm": arm}
            inner = one(tables["acceleration"], **where, algorithm="LexElim-In")
            outer = one(tables["acceleration"], **where, algorithm="LexElim-Out")
            by_second = inner["by_objective_2"] > 0.5
            sooner = below((inner["round"], inner["round_se"]), (outer["round"], outer["round_se"]))
            holds &= (by_second and sooner) == expected[kind]
            parts.append(
                f"{kind} at round {pm(inner['round'], inner['round_se'])} "
                f"({percent(inner['by_objective_2'])} by objective 2; LexElim-Out "
                f"{pm(outer['round'], outer['round_se'])})"
            )
        cases[name] = holds
        told.append(f"{name}: {', '.join(parts)}")
    return Verdict(only_with(cases), "\n".join(told))


def beyond_the_lower_bound(tables: Tables) -> Verdict:
    """Pulls of LexElim-In against the lower bound of its first objective alone; needs sound widths."""
    table = tables["acceleration_stopping"]
    cases: dict[str, bool] = {}
    told = []
    for case, label in (("Figure 1a", "Figure 1a, λ = 0"), ("Figure 1b", "Figure 1b, λ = 1")):
        for width in SOUND_WIDTHS:
            row = one(table, case=case, width=width, algorithm="LexElim-In")
            bound = row["lower_bound_objective_1"]
            beats = below((row["pulls"], row["pulls_se"]), (bound, 0.0))
            cases[f"{label}, {WIDTH_NAMES[width]}"] = beats
            told.append(
                f"{label}, {WIDTH_NAMES[width]}: {pm(row['pulls'], row['pulls_se'])} pulls against "
                f"{count(bound)} ({errors(row)})"
            )
        pool = one(table, case=case, width="sound", algorithm="LexElim-Pool")
        told.append(
            f"{label}, LexElim-Pool: {pm(pool['pulls'], pool['pulls_se'])} ({errors(pool)}); the bound that "
            f"knows both objectives and λ is {count(pool['lower_bound'])}"
        )
    return Verdict(only_with(cases), "\n".join(told))


# Figure 2


def sublinear_regret(tables: Tables) -> Verdict:
    """The curves bend on every objective: see `bends`."""
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        holds, parts = True, []
        for algorithm in OURS:
            rows = many(tables["regret_end"], width=width, algorithm=algorithm)
            holds &= all(bends(row) for row in rows)
            gone = f"{rows[0]['arms_eliminated']:.1f} arms eliminated"
            parts.append(f"{algorithm} {regrets(rows)}, {halves(rows)}, {gone}, {errors(rows[0])}")
        cases[name] = holds
        told.append(f"{name}: {'; '.join(parts)}")
    plain = regrets(many(tables["regret_end"], algorithm="round-robin"))
    return Verdict(only_with(cases), "\n".join([*told, f"round-robin: {plain}"]))


def ucb_learns_the_first_objective_only(tables: Tables) -> Verdict:
    """UCB-α: sublinear on objective 1, linear on 2 and 3."""
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        rows = many(tables["regret_end"], width=width, algorithm="UCB-α")
        first, *later = rows
        cases[name] = bends(first) and not any(bends(row) for row in later)
        told.append(f"{name}: {regrets(rows)}, {halves(rows)}")
    return Verdict(only_with(cases), "\n".join(told))


def less_regret_than(baseline: str) -> Callable[[Tables], Verdict]:
    """Both algorithms of the paper end below the baseline on every objective."""

    def judge(tables: Tables) -> Verdict:
        cases: dict[str, bool] = {}
        told = []
        everywhere = True
        for width, name in WIDTH_NAMES.items():
            theirs = many(tables["regret_end"], width=width, algorithm=baseline)
            parts = [f"{baseline} {regrets(theirs)}"]
            less = [True] * len(theirs)
            for algorithm in OURS:
                ours = many(tables["regret_end"], width=width, algorithm=algorithm)
                for i, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
                    less[i] &= below(
                        (mine["regret"], mine["regret_se"]), (other["regret"], other["regret_se"])
                    )
                parts.append(f"{algorithm} {regrets(ours)}")
            won = [str(i + 1) for i, is_less in enumerate(less) if is_less]
            some = f" on objective{'s' if len(won) > 1 else ''} {' and '.join(won)}"
            cases[name if all(less) or not won else name + some] = bool(won)
            everywhere &= all(less)
            told.append(f"{name}: {'; '.join(parts)}")
        return Verdict(HOLDS if everywhere else only_with({**cases, "": False}), "\n".join(told))

    return judge


def figure_2_axes(tables: Tables) -> Verdict:
    """The published panels end at 800, 800 and 4,000; a curve outside them is not the published one."""
    ends = (800.0, 800.0, 4000.0)
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        highest = []
        for i in range(3):
            rows = many(tables["regret_end"], width=width, objective=i + 1)
            highest.append(
                max((row["regret"], row["algorithm"]) for row in rows if row["algorithm"] != "round-robin")
            )
        cases[name] = all(value <= end * 1.001 for (value, _), end in zip(highest, ends, strict=True))
        told.append(
            f"{name}: largest {', '.join(f'{count(value)} ({algorithm})' for value, algorithm in highest)}"
        )
    return Verdict(only_with(cases), "\n".join(told))


# Figure 3


def more_arms_more_samples(tables: Tables) -> Verdict:
    """Every algorithm of the paper needs more pulls at K = 30 than at 10, and never fewer on the way."""
    table = tables["samples"]
    cases: dict[str, bool] = {}
    told = []
    for width, name in {**WIDTH_NAMES, "sound": "for comparison"}.items():
        holds, parts = True, []
        for algorithm in dict.fromkeys(row["algorithm"] for row in many(table, width=width)):
            rows = many(table, width=width, algorithm=algorithm, objective=1)
            first, *_, last = means = [(row["pulls"], row["pulls_se"]) for row in rows]
            falls = any(below(later, earlier) for earlier, later in pairwise(means))
            if algorithm != "EGE/3900":  # ours, not the paper's
                holds &= below(first, last) and not falls
            parts.append(f"{algorithm} {', '.join(pm(*mean) for mean in means)}")
        if width in WIDTH_NAMES:
            cases[name] = holds
        told.append(f"{name}: {'; '.join(parts)}")
    return Verdict(only_with(cases), "\n".join(told))


def fewer_samples_than_baselines(tables: Tables) -> Verdict:
    """LexElim-In's pulls to settle objective 1 against those of EGE and UCB-α, which do only that."""
    table = tables["samples"]
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        holds, parts, advantages = True, [], []
        for n_arms in ARMS:
            where = {"width": width, "n_arms": n_arms, "objective": 1}
            inner = one(table, **where, algorithm="LexElim-In")
            mine = (inner["samples"], inner["samples_se"])
            theirs = [one(table, **where, algorithm=baseline) for baseline in ("UCB-α", "EGE")]
            holds &= all(below(mine, (row["samples"], row["samples_se"])) for row in theirs)
            advantages.append(theirs[0]["samples"] / mine[0])
            parts.append(
                f"K = {n_arms}: LexElim-In {pm(*mine)} ({errors(inner)}), "
                + ", ".join(
                    f"{row['algorithm']} {pm(row['samples'], row['samples_se'])} ({errors(row)})"
                    for row in theirs
                )
            )
        holds &= advantages == sorted(advantages)
        cases[name] = holds
        ratios = ", ".join(f"{ratio:.2f}" for ratio in advantages)
        told.append(f"{name}: {'; '.join(parts)}; UCB-α over LexElim-In: {ratios}")
    return Verdict(only_with(cases), "\n".join(told))


def inner_beats_outer(tables: Tables) -> Verdict:
    """Pulls to stop, LexElim-In (λ = 2) against LexElim-Out; judged where the widths carry a guarantee."""
    table = tables["samples"]
    wins: dict[int, list[bool]] = {n_arms: [] for n_arms in ARMS}
    told = []
    for width, name in WIDTH_NAMES.items():
        parts = []
        for n_arms, won in wins.items():
            where = {"width": width, "n_arms": n_arms, "objective": 1}
            inner, outer = (one(table, **where, algorithm=f"LexElim-{kind}") for kind in ("In", "Out"))
            if width in SOUND_WIDTHS:
                won.append(below((inner["pulls"], inner["pulls_se"]), (outer["pulls"], outer["pulls_se"])))
            parts.append(
                f"K = {n_arms}: In {pm(inner['pulls'], inner['pulls_se'])} ({errors(inner)}), "
                f"Out {pm(outer['pulls'], outer['pulls_se'])} ({errors(outer)})"
            )
        told.append(f"{name}: {'; '.join(parts)}")
    cases = {f"K = {n_arms}": all(won) for n_arms, won in wins.items()}
    return Verdict(only_with(cases), "\n".join(told))


def error_at_most_delta(tables: Tables) -> Verdict:
    """Wrong answers of both algorithms over all K, against an exact binomial tail at δ."""
    table = tables["samples"]
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        holds, parts = True, []
        for algorithm in OURS:
            rows = many(table, width=width, algorithm=algorithm, objective=1)
            wrong, runs = sum(row["wrong"] for row in rows), sum(row["replications"] for row in rows)
            holds &= tail(wrong, runs, DELTA) >= SURPRISE
            parts.append(f"{algorithm} {wrong}/{runs} wrong")
        cases[name] = holds
        told.append(f"{name}: {', '.join(parts)}")
    sound = []
    for algorithm in dict.fromkeys(row["algorithm"] for row in many(table, width="sound")):
        rows = many(table, width="sound", algorithm=algorithm, objective=1)
        sound.append(f"{algorithm} {sum(r['wrong'] for r in rows)}/{sum(r['replications'] for r in rows)}")
    return Verdict(only_with(cases), "\n".join([*told, f"for comparison, σ = √0.1: {', '.join(sound)}"]))


def as_good_as_single_objective(tables: Tables) -> Verdict:
    """LexElim-Out settles objective 1 with no more pulls than EGE, as published."""
    table = tables["samples"]
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        holds, parts = True, []
        for n_arms in ARMS:
            where = {"width": width, "n_arms": n_arms, "objective": 1}
            outer, ege, ucb = (one(table, **where, algorithm=a) for a in ("LexElim-Out", "EGE", "UCB-α"))
            holds &= below((outer["samples"], outer["samples_se"]), (ege["samples"], ege["samples_se"]))
            parts.append(
                f"K = {n_arms}: LexElim-Out {pm(outer['samples'], outer['samples_se'])}, "
                f"EGE {pm(ege['samples'], ege['samples_se'])}, UCB-α {pm(ucb['samples'], ucb['samples_se'])}"
            )
        cases[name] = holds
        told.append(f"{name}: {'; '.join(parts)}")
    return Verdict(only_with(cases), "\n".join(told))


def figure_3_axes(tables: Tables) -> Verdict:
    """All published panels end at 14,000 pulls."""
    table = tables["samples"]
    cases: dict[str, bool] = {}
    told = []
    for width, name in WIDTH_NAMES.items():
        rows = [row for row in many(table, width=width) if row["algorithm"] in (*OURS, "UCB-α", "EGE")]
        inside = sum(row["samples"] <= 14_000 for row in rows)
        cases[name] = inside == len(rows)
        largest = {
            algorithm: max(row["samples"] for row in rows if row["algorithm"] == algorithm)
            for algorithm in (*OURS, "UCB-α", "EGE")
        }
        told.append(
            f"{name}: {inside} of {len(rows)} points inside; largest "
            + ", ".join(f"{algorithm} {count(value)}" for algorithm, value in largest.items())
        )
    return Verdict(only_with(cases), "\n".join(told))


def gaps_twice_as_large(tables: Tables) -> Verdict:
    """Arms that the first objective rules out, and whether their later gaps are twice as large."""
    cases: dict[str, bool] = {}
    told = []
    for n_arms in ARMS:
        arms = [row for row in many(tables["instance"], n_arms=n_arms) if row["gap_1"] > 0]
        double = [sum(row[f"gap_{i}"] >= 2 * row["gap_1"] - 1e-12 for row in arms) for i in (2, 3)]
        better = [sum(row[f"gap_{i}"] < 0 for row in arms) for i in (2, 3)]
        helped = sum(row["effective_gap"] > row["gap_1"] * (1 + 1e-12) for row in arms)
        cases[f"K = {n_arms}"] = min(double) == len(arms)
        told.append(
            f"K = {n_arms}, of {len(arms)} arms with Δ¹ > 0: "
            f"Δ² ≥ 2Δ¹ for {double[0]}, Δ³ ≥ 2Δ¹ for {double[1]}; "
            f"better than a_* on objective 2: {better[0]}, on 3: {better[1]}; "
            f"a later objective helps LexElim-In (Δ̃ > Δ¹ at λ = {arms[0]['tradeoff']:g}) for {helped}"
        )
    return Verdict(only_with(cases), "\n".join(told))


def effective_gaps_larger(tables: Tables) -> Verdict:
    """Δ̃ against Δ¹, arm by arm, and what the bounds add up."""
    cases: dict[str, bool] = {}
    told = []
    for n_arms in ARMS:
        arms = [row for row in many(tables["instance"], n_arms=n_arms) if row["gap_1"] > 0]
        cases[f"K = {n_arms}"] = all(row["effective_gap"] >= row["gap_1"] * (1 - 1e-12) for row in arms)
        ours, single = (sum(row[gap] ** -2 for row in arms) for gap in ("effective_gap", "gap_1"))
        told.append(f"K = {n_arms}: Σ 1/Δ̃² = {count(ours)}, Σ 1/(Δ¹)² = {count(single)}")
    return Verdict(only_with(cases), "\n".join(told))


# Bounds


def within_the_bound(source: str) -> Callable[[Tables], Verdict]:
    """No more runs above the printed bound than δ allows, on any instance; else the same for `proved`."""

    def judge(tables: Tables) -> Verdict:
        rows = many(tables["bounds"], source=source)
        kept = {
            version: all(
                tail(row[f"above_{version}"], row["replications"], DELTA) >= SURPRISE for row in rows
            )
            for version in ("printed", "proved")
        }
        paper = max(
            (row for row in rows if row["instance"].startswith("K=") and row["width"] == "printed"),
            key=excess,
        )
        worst = max(rows, key=excess)
        numbers = [f"the paper's experiment: {_against(paper)}"]
        if worst != paper:
            numbers.append(f"worst of all: {_against(worst)}")
        outcome = (
            HOLDS if kept["printed"] else "holds only with the repaired bound" if kept["proved"] else FAILS
        )
        return Verdict(outcome, "\n".join(numbers))

    return judge


def excess(row: Row) -> float:
    """How far the largest measured value is above the printed bound, as a ratio where that makes sense."""
    if row["printed"] > 0:
        return float(row["largest"] / row["printed"])
    return math.inf if row["largest"] > row["printed"] + 1e-9 else 0.0


def _against(row: Row) -> str:
    what = (
        f"arm {row['arm']:.0f}"
        if row["objective"] != row["objective"]
        else f"objective {row['objective']:.0f}"
    )
    return (
        f"instance {row['instance']}, {WIDTH_NAMES[row['width']]}, {what}: "
        f"{pm(row['measured'], row['measured_se'])} measured, {count(row['printed'])} printed, "
        f"{count(row['proved'])} repaired; of {row['replications']} runs {row['above_printed']} above the "
        f"printed and {row['above_proved']} above the repaired bound"
    )


def lemma_2(_: Tables) -> Verdict:
    """x > a·log(ab) should imply x > a·log(bx)."""
    from lexbandits.theory.paper_bounds import log_crossing

    a, b = 1.0, 10.0
    printed, proved = log_crossing(a, b), log_crossing(a, b, constants="proved")
    x = (printed + proved) / 2
    right = a * math.log(b * x)
    numbers = (
        f"a = {a:g}, b = {b:g}: printed threshold {printed:.3f}, true one {proved:.3f}; "
        f"at x = {x:.3f} between them a·log(bx) = {right:.3f}"
    )
    return Verdict(HOLDS if x > right else "holds only with the true threshold", numbers)


# Sensitivity


def tradeoff_needed(tables: Tables) -> Verdict:
    """Which λ make LexElim-In right on the paper's instance."""
    table = tables["sensitivity"]
    values = sorted({row["value"] for row in many(table, parameter="tradeoff")})
    sound: dict[float, bool] = dict.fromkeys(values, True)
    told = []
    for width, name in WIDTH_NAMES.items():
        parts = []
        for value in values:
            row = one(table, parameter="tradeoff", value=value, width=width, algorithm="LexElim-In")
            if width in SOUND_WIDTHS:
                sound[value] &= tail(row["wrong"], row["replications"], DELTA) >= SURPRISE
            parts.append(f"λ = {value:g}: {errors(row)}, {pm(row['pulls'], row['pulls_se'])} pulls")
        told.append(f"{name}: {'; '.join(parts)}")
    enough = [value for value in values if all(sound[other] for other in values if other >= value)]
    if len(enough) == len(values):
        return Verdict(HOLDS, "\n".join(told))
    outcome = f"holds only with λ ≥ {enough[0]:g} (of those tried)" if enough else FAILS
    return Verdict(outcome, "\n".join(told))


def logarithmic_in_delta(tables: Tables) -> Verdict:
    """From δ = 0.1 to 0.0001 the pulls grow by no more than the bounds' logarithm does."""
    table = tables["sensitivity"]
    cases: dict[str, bool] = {}
    told = []
    allowed = math.log(1 / 0.0001) / math.log(1 / 0.1)
    for width, name in WIDTH_NAMES.items():
        parts, holds = [], True
        for algorithm in OURS:
            rows = {
                value: one(table, parameter="delta", value=value, width=width, algorithm=algorithm)
                for value in (0.1, 0.0001)
            }
            grown = rows[0.0001]["pulls"] / rows[0.1]["pulls"]
            holds &= grown <= allowed
            parts.append(f"{algorithm} × {grown:.2f}")
        cases[name] = holds
        told.append(f"{name}: {', '.join(parts)}")
    return Verdict(only_with(cases), "\n".join([*told, f"log(1/δ) itself × {allowed:.2f}"]))


def fewer_samples_than_ucb(tables: Tables) -> Verdict:
    """K = 10, objective 1: LexElim-In against UCB-α for each α, where the widths carry a guarantee."""
    table = tables["sensitivity"]
    cases: dict[str, bool] = {}
    told = []
    inner = {
        w: one(table, parameter="tradeoff", value=2.0, width=w, algorithm="LexElim-In") for w in WIDTH_NAMES
    }
    for row in many(table, parameter="alpha"):
        mine, name = inner[row["width"]], f"α = {row['value']:g}"
        fewer = below((mine["samples_1"], mine["samples_1_se"]), (row["pulls"], row["pulls_se"]))
        if row["width"] in SOUND_WIDTHS:
            cases[name] = cases.get(name, True) and fewer
        told.append(
            f"{WIDTH_NAMES[row['width']]}, {name}: "
            f"UCB-α {pm(row['pulls'], row['pulls_se'])} ({errors(row)}), "
            f"LexElim-In {pm(mine['samples_1'], mine['samples_1_se'])} ({errors(mine)})"
        )
    return Verdict(only_with(cases), "\n".join(told))


CLAIMS = (
    Claim(
        "both-yellow-arms",
        "acceleration",
        "Cross-objective Acceleration, Figure 1(a)",
        "Without conflict (λ = 0) LexElim-In eliminates the two arms with small first and large second gaps "
        "through the second objective, and efficiently.",
        both_yellow_arms,
    ),
    Claim(
        "far-yellow-arm",
        "acceleration",
        "Cross-objective Acceleration, Figure 1(b)",
        "With a conflict (λ = 1) only the far one of the two is still eliminated quickly through the second "
        "objective.",
        only_far_yellow_arm,
    ),
    Claim(
        "beyond-lower-bound",
        "acceleration",
        "Abstract, Table 1, Remarks 3 and 4",
        "LexElim-In can need fewer samples than the lower bound of the single-objective problem. (That bound "
        "is for learners who see one objective and no λ: no contradiction.)",
        beyond_the_lower_bound,
    ),
    Claim(
        "sublinear-regret",
        "regret",
        "RM Results, Figure 2",
        "LexElim-Out and LexElim-In have sublinear regret on all objectives at T = 10,000. (Here: the second "
        "half of the rounds adds at most 80 % of the first.)",
        sublinear_regret,
    ),
    Claim(
        "ucb-first-objective",
        "regret",
        "RM Results, Figure 2",
        "UCB-α has low regret on the first objective and linear regret on the second and third.",
        ucb_learns_the_first_objective_only,
    ),
    Claim(
        "less-regret-pf-lex",
        "regret",
        "RM Results, Figure 2",
        "PF-LEX converges more slowly: both algorithms have less regret on every objective.",
        less_regret_than("PF-LEX"),
    ),
    Claim(
        "less-regret-ucb",
        "regret",
        "Contributions; Figure 2",
        "Both algorithms outperform the baselines in cumulative regret: here UCB-α, on every objective.",
        less_regret_than("UCB-α"),
    ),
    Claim(
        "figure-2-axes",
        "regret",
        "Figure 2 as published",
        "All curves fit the axes of the published figure, which end at 800, 800 and 4,000.",
        figure_2_axes,
    ),
    Claim(
        "more-arms-more-samples",
        "samples",
        "BAI Results, Figure 3",
        "All algorithms need more samples as K grows.",
        more_arms_more_samples,
    ),
    Claim(
        "fewer-samples-than-baselines",
        "samples",
        "BAI Results, Figure 3",
        "LexElim-In outperforms EGE and UCB-α (here α = 3) at every K, and its advantage grows with K.",
        fewer_samples_than_baselines,
    ),
    Claim(
        "in-beats-out",
        "samples",
        "LexElim-In, after Algorithm 2",
        "LexElim-In identifies the lex-optimal arm faster than LexElim-Out. (Judged with widths that carry a "
        "guarantee.)",
        inner_beats_outer,
    ),
    Claim(
        "error-at-most-delta",
        "samples",
        "Theorems 1 to 4",
        "The answer is wrong with probability at most δ = 0.01.",
        error_at_most_delta,
    ),
    Claim(
        "as-good-as-ege",
        "samples",
        "Remark 2",
        "LexElim-Out settles the first objective as efficiently as the best single-objective algorithm, EGE.",
        as_good_as_single_objective,
    ),
    Claim(
        "figure-3-axes",
        "samples",
        "Figure 3 as published",
        "All sample counts fit the axes of the published figure, which end at 14,000.",
        figure_3_axes,
    ),
    Claim(
        "gaps-twice-as-large",
        "samples",
        "BAI Results",
        "In the experiment the gaps of the second and third objectives are twice those of the first, which "
        "is why LexElim-In is fast.",
        gaps_twice_as_large,
    ),
    Claim(
        "effective-gaps",
        "samples",
        "Table 1",
        "Δ̃(a) ≥ Δ¹(a) for every arm, so that LexElim-In's sample bound has the smaller sum.",
        effective_gaps_larger,
    ),
    Claim(
        "lemma-2",
        "bounds",
        "Appendix, Lemma 2",
        "For ab > e, x > a·log(ab) implies x > a·log(bx).",
        lemma_2,
    ),
    *(
        Claim(
            source.lower().replace(" ", "-"),
            "bounds",
            source if not source.startswith("Lemma") else f"Appendix, {source}",
            statement,
            within_the_bound(source),
        )
        for source, statement in (
            ("Lemma 5", "LexElim-Out pulls no arm more often than the printed bound."),
            ("Theorem 1", "The regret of LexElim-Out stays within the printed bound."),
            ("Theorem 2", "LexElim-Out settles every objective within the printed number of samples."),
            ("Lemma 7", "LexElim-In pulls no arm more often than the printed bound."),
            ("Theorem 3", "The regret of LexElim-In stays within the printed bound."),
            ("Theorem 4", "LexElim-In settles every objective within the printed number of samples."),
            (
                "Corollary 1",
                "The regret of LexElim-In stays within the anytime bound (constant of its proof).",
            ),
        )
    ),
    Claim(
        "tradeoff-needed",
        "sensitivity",
        "Experimental Setup; Eq. (2)",
        "LexElim-In identifies the lex-optimal arm of the experiment. (The text does not say with which λ; "
        "the guarantee needs λ ≥ 2.)",
        tradeoff_needed,
    ),
    Claim(
        "fewer-samples-than-ucb",
        "sensitivity",
        "BAI Results, Figure 3",
        "At K = 10 LexElim-In settles the first objective with fewer samples than UCB-α. (The text names no "
        "α; judged with widths that carry a guarantee.)",
        fewer_samples_than_ucb,
    ),
    Claim(
        "logarithmic-in-delta",
        "sensitivity",
        "Theorems 2 and 4",
        "The samples grow with the confidence no faster than log(1/δ).",
        logarithmic_in_delta,
    ),
)


# Reading tables


def many(table: "pd.DataFrame", **where: Any) -> list[Row]:
    """The rows with these values, in order."""
    chosen = table
    for column, value in where.items():
        chosen = chosen[chosen[column] == value]
    return [{str(key): value for key, value in row.items()} for row in chosen.to_dict("records")]


def one(table: "pd.DataFrame", **where: Any) -> Row:
    """The only row with these values."""
    rows = many(table, **where)
    if len(rows) != 1:
        raise LookupError(f"expected one row with {where}, found {len(rows)}")
    return rows[0]


def below(left: tuple[float, float], right: tuple[float, float]) -> bool:
    """Whether one mean is below another by more than `ERRORS` standard errors of the difference."""
    return left[0] + ERRORS * math.hypot(known(left[1]), known(right[1])) < right[0]


def known(error: float) -> float:
    """A standard error; that of a single value counts as none."""
    return 0.0 if math.isnan(error) else error


def tail(wrong: int, runs: int, rate: float) -> float:
    """P(Binomial(runs, rate) ≥ wrong)."""
    from scipy.stats import binom

    return float(binom.sf(wrong - 1, runs, rate))


def bends(row: Row) -> bool:
    """Whether the second half of the rounds adds at most 80 % of the first, errors considered."""
    return bool(row["bend"] + ERRORS * known(row["bend_se"]) < 0)


def halves(rows: list[Row]) -> str:
    """What the second half of the rounds adds, beside the first."""
    parts = (f"{count(row['second_half'])} after {count(row['first_half'])}" for row in rows)
    return f"second half of the rounds: {', '.join(parts)}"


def errors(row: Row) -> str:
    """Wrong answers of all runs, and how many gave none."""
    text = f"{row['wrong']}/{row['replications']} wrong"
    return text if row["unstopped"] == 0 else f"{text}, {row['unstopped']} without an answer"


def regrets(rows: list[Row]) -> str:
    """The regret on each objective, in brackets."""
    return f"({', '.join(pm(row['regret'], row['regret_se']) for row in rows)})"
