"""The paper's experiments as data: instances, width settings, cells, and tables of what was measured.

Figures 1, 2 and 3 are `acceleration`, `regret` and `samples`; `bounds` and `sensitivity` go beyond. In
the tables arms and objectives count from 1, as in the paper. `claims.py` judges the tables, `figures.py`
and `report.py` show them.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

import lexbandits
from lexbandits import theory
from lexbandits.simulation.results import Results
from lexbandits.simulation.sweep import Cell, sweep
from lexbandits.theory.lower_bound import characteristic_time, sample_lower_bound
from lexbandits.world.examples import paper_instance
from lexbandits.world.instance import Instance

if TYPE_CHECKING:
    import pandas as pd


Row = dict[str, Any]
Tables = Mapping[str, "pd.DataFrame"]

SECTIONS = ("acceleration", "regret", "samples", "bounds", "sensitivity")
SEED = 0
REPLICATIONS, QUICK_REPLICATIONS = 100, 5

DELTA = 0.01
TRADEOFF = 2.0  # the least λ of the paper's instance; the text names none
ALPHA = 3.0  # the middle one of the three in public code
ALPHAS = (1.5, 3.0, 6.0)
ARMS = (10, 20, 30)
ROUNDS = 10_000  # of the regret experiment
EGE_SCALE = 3900.0  # what public code divides every batch of EGE by
TRUE_SD = math.sqrt(0.1)

BENT = 0.8  # a curve bends when the second half of the rounds adds at most this much of the first

STOPPING_HORIZON = 20_000_000
EGE_HORIZON = 10**12  # drawn as sums: no pull is made one by one
# Told too little noise, UCB-α can settle on a wrong order and then never tell tied arms apart.
UCB_HORIZONS = {1.0: 5_000_000, TRUE_SD: 1_000_000, 0.1: 300_000}


class Width(NamedTuple):
    """What the algorithms are told about the noise, whose true standard deviation is √0.1."""

    label: str
    noise_sd: float
    algorithms: tuple[str, ...]


PAPERS = ("LexElim-Out", "LexElim-In")
SOUND = ("LexElim-Phase", "LexElim-Tol", "LexElim-Pool")
SINGLE = ("UCB-α", "EGE", "EGE/3900")  # these look at the first objective only

WIDTHS = {
    "printed": Width("as printed (σ = 1)", 1.0, PAPERS),
    "matched": Width("matched to the noise (σ = √0.1)", TRUE_SD, PAPERS),
    "tenth": Width("times 0.1, as in sibling papers", 0.1, PAPERS),
    "sound": Width("sound and tight (σ = √0.1)", TRUE_SD, SOUND),
}
PAPER_WIDTHS = ("printed", "matched", "tenth")

TRADEOFFS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
DELTAS = (0.1, 0.03, 0.01, 0.001, 0.0001)
SCALES = (0.02, 0.05, 0.1, 0.2, TRUE_SD, 0.5, 1.0)


@cache
def instance(key: str) -> Instance:
    """The paper's instance ("K=10"), the two of Figure 1, or one on which a printed theorem fails."""
    if key.startswith("K="):
        return paper_instance(int(key[2:]))
    rows = [[Fraction(x, 100) for x in arm] for arm in MEANS[key]]
    return Instance(rows, noise_sd=TRUE_SD)


FIGURE_1 = ("Figure 1a", "Figure 1b")
STAR, NEAR, FAR, RED = 0, 1, 2, 5  # arms of Figure 1, counted from 0

# Hundredths. The paper prints no coordinates for Figure 1: these do what its text says. Gaps to the star:
# near (.10, .25), far (.03, .60), plain (.35, .05), (.50, .30), (.25, .10); in (b) the last is the red
# arm (.20, −.20), which makes λ = 1.
MEANS: dict[str, list[tuple[int, int]]] = {
    "Figure 1a": [(90, 80), (80, 55), (87, 20), (55, 75), (40, 50), (65, 70)],
    "Figure 1b": [(90, 80), (80, 55), (87, 20), (55, 75), (40, 50), (70, 100)],
    # ten arms that only the second objective tells apart wait for the first to be settled
    "waiting": [(100, 100), (75, 100)] + 10 * [(100, 0)],
    # ten arms survive the one that the first objective eliminates, and are pulled as often
    "survivors": [(100, 100), (75, 100)] + 10 * [(100, 80)],
    # the rival gains on the second objective: its gap there is negative
    "gain": [(100, 0), (50, 100)],
}


class Entry(NamedTuple):
    """A cell in the paper's words; equal entries are one cell, whatever section asks for it."""

    instance: str
    algorithm: str
    noise_sd: float
    horizon: int = STOPPING_HORIZON
    delta: float = DELTA
    tradeoff: float | None = None  # None: the instance's least λ
    alpha: float = ALPHA

    @property
    def name(self) -> str:
        """Unique, and the same in every run: results on disk are found by it."""
        parts = [self.instance, self.algorithm, f"σ={self.noise_sd:.4g}", f"δ={self.delta:g}"]
        if self.algorithm in ("LexElim-In", "LexElim-Pool"):
            parts.append(f"λ={self.known_tradeoff:g}")
        if self.algorithm == "UCB-α":
            parts.append(f"α={self.alpha:g}")
        return ", ".join([*parts, f"T={self.horizon:g}"])

    @property
    def known_tradeoff(self) -> float:
        """λ as the algorithm is told."""
        return instance(self.instance).tradeoff if self.tradeoff is None else self.tradeoff

    def policy(self) -> lexbandits.Policy:
        """A fresh policy."""
        told = instance(self.instance)
        shape = (told.n_arms, told.n_objectives)
        common: Any = {"delta": self.delta, "noise_sd": self.noise_sd}
        if self.algorithm == "LexElim-Out":
            return lexbandits.LexElimOut(*shape, **common, optimal_set_sizes=told.optimal_set_sizes)
        if self.algorithm == "LexElim-In":
            return lexbandits.LexElimIn(*shape, **common, tradeoff=self.known_tradeoff)
        if self.algorithm == "LexElim-Phase":
            return lexbandits.LexElimPhase(*shape, **common, optimal_set_sizes=told.optimal_set_sizes)
        if self.algorithm == "LexElim-Pool":
            return lexbandits.LexElimPool(*shape, **common, tradeoff=self.known_tradeoff)
        if self.algorithm == "LexElim-Tol":
            return lexbandits.LexElimTol(*shape, **common, tolerance=0.0, resolution=least_differences(told))
        if self.algorithm == "UCB-α":
            size = told.optimal_set_sizes[0]
            return lexbandits.UCBAlpha(*shape, **common, alpha=self.alpha, target_size=size)
        if self.algorithm == "PF-LEX":
            epsilon = (told.n_arms * self.horizon) ** (-1 / 3)
            return lexbandits.PFLex(*shape, **common, epsilon=epsilon)
        if self.algorithm == "round-robin":
            return lexbandits.RoundRobin(*shape)
        if self.algorithm in ("EGE", "EGE/3900"):
            scale = 1.0 if self.algorithm == "EGE" else EGE_SCALE
            size = told.optimal_set_sizes[0]
            return lexbandits.ExponentialGapElimination(*shape, **common, target_size=size, scale=scale)
        raise ValueError(f"no algorithm {self.algorithm!r} in the paper's experiments")

    def cell(self) -> Cell:
        """What `sweep` takes."""
        return Cell(self.name, self.policy(), instance(self.instance), self.horizon)


def least_differences(told: Instance) -> list[float]:
    """Per objective the least gap that is not zero: the resolution given to LexElim-Tol."""
    sizes = np.abs(told.gaps)
    return [float(column[column > 0].min()) for column in sizes.T]


def acceleration_entries() -> dict[tuple[str, str], list[Entry]]:
    """Figure 1, by case and width."""
    return {
        (case, width): [Entry(case, algorithm, told.noise_sd) for algorithm in told.algorithms]
        for case, (width, told) in product(FIGURE_1, WIDTHS.items())
    }


def regret_entries() -> dict[str, list[Entry]]:
    """Figure 2, by width."""
    entries = {}
    for width, told in WIDTHS.items():
        algorithms = [*told.algorithms, *(("UCB-α", "PF-LEX") if width in PAPER_WIDTHS else ())]
        entries[width] = [Entry("K=10", algorithm, told.noise_sd, ROUNDS) for algorithm in algorithms]
    entries["printed"].append(Entry("K=10", "round-robin", 1.0, ROUNDS))
    return entries


def samples_entries() -> dict[tuple[str, int], list[Entry]]:
    """Figure 3, by width and number of arms."""
    entries = {}
    for (width, told), n_arms in product(WIDTHS.items(), ARMS):
        key = f"K={n_arms}"
        entries[width, n_arms] = [Entry(key, algorithm, told.noise_sd) for algorithm in told.algorithms]
        if width in PAPER_WIDTHS:
            # EGE is published for rewards in [0, 1], that is σ = 1/2
            ege_sd = 0.5 if width == "printed" else told.noise_sd
            entries[width, n_arms] += [
                ucb_entry(key, told.noise_sd),
                Entry(key, "EGE", ege_sd, EGE_HORIZON),
                Entry(key, "EGE/3900", ege_sd, EGE_HORIZON),
            ]
    return entries


def ucb_entry(key: str, noise_sd: float) -> Entry:
    """UCB-α until it stops, with a horizon of many times what it needs when it does."""
    return Entry(key, "UCB-α", noise_sd, UCB_HORIZONS[noise_sd])


def bounds_entries() -> list[tuple[str, Entry]]:
    """Runs with widths that have a guarantee, on which no theorem may fail."""
    keys = [*(f"K={n_arms}" for n_arms in ARMS), "waiting", "survivors", "gain"]
    return [
        (width, Entry(key, algorithm, WIDTHS[width].noise_sd))
        for key, width, algorithm in product(keys, ("printed", "matched"), PAPERS)
    ]


def sensitivity_entries() -> list[tuple[str, float, str, Entry]]:
    """(what varies, its value, width, cell), all at K = 10."""
    told = [(width, algorithm) for width in WIDTHS for algorithm in WIDTHS[width].algorithms]
    entries: list[tuple[str, float, str, Entry]] = []
    for width, algorithm in told:
        base = Entry("K=10", algorithm, WIDTHS[width].noise_sd)
        if algorithm in ("LexElim-In", "LexElim-Pool"):
            entries += [("tradeoff", x, width, base._replace(tradeoff=x)) for x in TRADEOFFS]
        entries += [("delta", x, width, base._replace(delta=x)) for x in DELTAS]
    for algorithm in (*PAPERS, *SOUND):
        entries += [("scale", x, "any", Entry("K=10", algorithm, x)) for x in SCALES]
    for width in PAPER_WIDTHS:
        base = ucb_entry("K=10", WIDTHS[width].noise_sd)
        entries += [("alpha", x, width, base._replace(alpha=x)) for x in ALPHAS]
    return entries


def cells(sections: Iterable[str] = SECTIONS) -> list[Cell]:
    """The cells of some sections, each once; long ones first, so that no worker waits at the end."""
    wanted: list[Entry] = []
    for section in checked_sections(sections):
        if section == "acceleration":
            wanted += [entry for group in acceleration_entries().values() for entry in group]
        elif section == "regret":
            wanted += [entry for group in regret_entries().values() for entry in group]
        elif section == "samples":
            wanted += [entry for group in samples_entries().values() for entry in group]
        elif section == "bounds":
            wanted += [entry for _, entry in bounds_entries()]
        else:
            wanted += [entry for *_, entry in sensitivity_entries()]
    by_name = {entry.name: entry for entry in wanted}
    ordered = sorted(by_name.values(), key=lambda e: -e.noise_sd * instance(e.instance).n_arms)
    return [entry.cell() for entry in ordered]


def checked_sections(sections: Iterable[str]) -> list[str]:
    """The sections in the paper's order, each once."""
    given = list(sections)
    for section in given:
        if section not in SECTIONS:
            raise ValueError(f"section must be one of {', '.join(SECTIONS)}, got {section!r}")
    return [section for section in SECTIONS if section in given]


def measure(
    sections: Iterable[str] = SECTIONS,
    *,
    replications: int = REPLICATIONS,
    n_jobs: int = 1,
    out: str | Path | None = None,
    progress: bool = False,
) -> dict[str, "pd.DataFrame"]:
    """Run the cells of some sections and tabulate them; with `out`, a killed run goes on where it was."""
    sections = checked_sections(sections)
    if replications < 2:
        raise ValueError(f"standard errors need at least 2 replications, got {replications}")
    results = sweep(
        cells(sections), replications=replications, seed=SEED, n_jobs=n_jobs, out=out, progress=progress
    )
    return tables(results, sections)


def tables(results: Results, sections: Iterable[str] = SECTIONS) -> dict[str, "pd.DataFrame"]:
    """Everything the figures plot and the verdicts use, tidy; standard errors end in `_se`."""
    found: dict[str, list[Row]] = {}
    answers = _answers(results)
    for section in checked_sections(sections):
        if section == "acceleration":
            found["acceleration"] = _acceleration(results, answers)
            found["acceleration_stopping"] = _acceleration_stopping(results, answers)
        elif section == "regret":
            found["regret"], found["regret_end"] = _regret(results, answers)
        elif section == "samples":
            found["samples"] = _samples(results, answers)
            found["instance"] = _instance_rows()
            found["lower_bound"] = _lower_bounds()
        elif section == "bounds":
            found["bounds"] = _bounds(results)
        else:
            found["sensitivity"] = _sensitivity(results, answers)
    import pandas as pd

    return {name: pd.DataFrame(rows) for name, rows in found.items()}


def settings(replications: int) -> "pd.DataFrame":
    """Every choice a reader needs to get the same numbers, those the paper leaves open included."""
    import platform
    from importlib.metadata import version

    import pandas as pd

    rows = [
        ("replications", f"{replications} of every cell (the paper: 10)"),
        ("seed", f"{SEED}; replication r draws from SFC64(SeedSequence({SEED}, spawn_key=(r,)))"),
        ("noise", "Gaussian, variance 0.1, objectives independent (the paper's)"),
        ("δ", f"{DELTA} everywhere (the paper names it for Figure 3 only)"),
        ("λ", f"{TRADEOFF:g}, the least λ of the paper's instance (not named in the paper)"),
        ("α of UCB-α", f"{ALPHA:g} (not named; {', '.join(f'{a:g}' for a in ALPHAS)} occur in public code)"),
        ("ε of PF-LEX", "(KT)^(−1/3), the rule of the same authors' other papers; the official variant"),
        ("EGE", "stops at |O_*(1)| arms; σ = 1/2 as published under 'as printed', else the width's σ"),
        ("EGE/3900", "the same with every batch divided by 3900, as public code does; no guarantee"),
        ("EGE's draws", "sums of batches drawn at once: the same law, another stream"),
        ("UCB-α stops", "when its |O_*(1)| best arms are apart from the rest"),
        ("LexElim-Tol", "tolerance 0, resolution the least non-zero gap of each objective"),
        ("horizon for regret", f"{ROUNDS:,} pulls"),
        (
            "horizon for stopping",
            f"{STOPPING_HORIZON:,} pulls; UCB-α {', '.join(f'{n:,}' for n in UCB_HORIZONS.values())} "
            f"for the three widths; EGE {EGE_HORIZON:.0e}. A run that reaches it gave no answer",
        ),
        ("after stopping", "the recommended arm is played on"),
        ("Figure 1", "arms chosen to do what the text says; the paper prints no coordinates"),
        ("lexbandits", lexbandits.__version__),
        ("Python", platform.python_version()),
        *((name, version(name)) for name in ("numpy", "numba", "scipy", "pandas", "matplotlib")),
    ]
    return pd.DataFrame(rows, columns=["setting", "value"])


def _answers(results: Results) -> dict[str, Row]:
    """Per cell: pulls to stop and how the answers came out. Pulls at the horizon are never averaged in."""
    answers: dict[str, Row] = {}
    for rate in results.error_rates().to_dict("records"):
        runs = results.runs[rate["cell"]]
        pulls, pulls_se = mean_and_error(runs.rounds[runs.stopped].astype(float))
        answers[rate["cell"]] = {
            "pulls": pulls,
            "pulls_se": pulls_se,
            "pulls_median": float(np.median(runs.rounds[runs.stopped])) if runs.stopped.any() else math.nan,
            "replications": rate["replications"],
            "unstopped": rate["unstopped"],
            "wrong": rate["wrong"],
            "error_low": rate["low"],
            "error_high": rate["high"],
            **_no_right_answer(rate["wrong"] + rate["unstopped"], rate["replications"]),
        }
    return answers


def _no_right_answer(failed: int, runs: int) -> Row:
    """Runs with a wrong answer or none, in percent, with the exact 95 % interval."""
    from scipy.stats import beta

    low = float(beta.ppf(0.025, failed, runs - failed + 1)) if failed else 0.0
    high = float(beta.ppf(0.975, failed + 1, runs - failed)) if failed < runs else 1.0
    return {"failed": 100 * failed / runs, "failed_low": 100 * low, "failed_high": 100 * high}


def _acceleration(results: Results, answers: Mapping[str, Row]) -> list[Row]:
    rows: list[Row] = []
    for (case, width), entries in acceleration_entries().items():
        told = instance(case)
        for entry in entries:
            left = results.runs[entry.name].left
            for arm in range(told.n_arms):
                gone = left[:, arm, 0] > 0
                rounds, rounds_se = mean_and_error(left[gone, arm, 0].astype(float))
                second = float(np.mean(left[gone, arm, 1] == 1)) if gone.any() else math.nan
                rows.append(
                    {
                        "case": case,
                        "width": width,
                        "algorithm": entry.algorithm,
                        "arm": arm + 1,
                        "mean_1": told.means[arm, 0],
                        "mean_2": told.means[arm, 1],
                        "gap_1": told.gaps[arm, 0],
                        "gap_2": told.gaps[arm, 1],
                        "round": rounds,
                        "round_se": rounds_se,
                        "by_objective_2": second,
                        "eliminated": int(gone.sum()),
                        "replications": answers[entry.name]["replications"],
                    }
                )
    return rows


def _acceleration_stopping(results: Results, answers: Mapping[str, Row]) -> list[Row]:
    """Pulls to stop beside two lower bounds: of the first objective alone, and of both with λ."""
    rows: list[Row] = []
    for (case, width), entries in acceleration_entries().items():
        first, both = case_lower_bounds(case)
        for entry in entries:
            rows.append(
                {
                    "case": case,
                    "width": width,
                    "algorithm": entry.algorithm,
                    "tradeoff": instance(case).tradeoff,
                    "lower_bound_objective_1": first,
                    "lower_bound": both,
                    **answers[entry.name],
                }
            )
    return rows


@cache
def case_lower_bounds(case: str) -> tuple[float, float]:
    """The least expected pulls at δ for the first objective alone, and for all objectives with λ."""
    told = instance(case)
    first = Instance(told.means[:, :1], noise_sd=told.noise_sd)
    alone, together = (sample_lower_bound(characteristic_time(each).low, DELTA) for each in (first, told))
    return alone, together


def _regret(results: Results, answers: Mapping[str, Row]) -> tuple[list[Row], list[Row]]:
    """Curves, and their ends. `bend` is the second half of the rounds less `BENT` of the first: below 0
    the curve bends, above it is as good as linear."""
    checkpoints = np.arange(0, ROUNDS + 1, 100)
    curves: list[Row] = []
    ends: list[Row] = []
    for width, entries in regret_entries().items():
        for entry in entries:
            regret = results.regret(entry.name, checkpoints)
            for i in range(regret.shape[2]):
                for c, t in enumerate(checkpoints.tolist()):
                    mean, error = mean_and_error(regret[:, c, i])
                    curves.append(_regret_key(width, entry, i) | {"t": t, "regret": mean, "regret_se": error})
                mean, error = mean_and_error(regret[:, -1, i])
                early = regret[:, len(checkpoints) // 2, i]
                late = regret[:, -1, i] - early
                bend, bend_se = mean_and_error(late - BENT * early)
                eliminated = (results.runs[entry.name].left[:, :, 0] > 0).sum(axis=1)
                ends.append(
                    _regret_key(width, entry, i)
                    | {
                        "regret": mean,
                        "regret_se": error,
                        "first_half": float(early.mean()),
                        "second_half": float(late.mean()),
                        "bend": bend,
                        "bend_se": bend_se,
                        "arms_eliminated": float(eliminated.mean()),
                    }
                    | {key: answers[entry.name][key] for key in ("replications", "unstopped", "wrong")}
                )
    return curves, ends


def _regret_key(width: str, entry: Entry, i: int) -> Row:
    return {"width": width, "algorithm": entry.algorithm, "objective": i + 1}


def _samples(results: Results, answers: Mapping[str, Row]) -> list[Row]:
    """T^i where it was reached; on an algorithm's last objective its pulls to stop, right or wrong."""
    rows: list[Row] = []
    for (width, n_arms), entries in samples_entries().items():
        for entry in entries:
            prefix = results.identification_rounds(entry.name, "prefix")
            alone = results.identification_rounds(entry.name, "objective")
            for i in range(1 if entry.algorithm in SINGLE else prefix.shape[1]):
                reached = prefix[~np.isnan(prefix[:, i]), i]
                samples, samples_se = mean_and_error(reached)
                if entry.algorithm in SINGLE or i == prefix.shape[1] - 1:  # wrong answers cost pulls too
                    samples, samples_se = (answers[entry.name][key] for key in ("pulls", "pulls_se"))
                tilde, tilde_se = mean_and_error(alone[~np.isnan(alone[:, i]), i])
                rows.append(
                    {
                        "width": width,
                        "n_arms": n_arms,
                        "algorithm": entry.algorithm,
                        "noise_sd": entry.noise_sd,
                        "objective": i + 1,
                        "samples": samples,
                        "samples_se": samples_se,
                        "samples_tilde": tilde,
                        "samples_tilde_se": tilde_se,
                        "reached": int(reached.size),
                        **answers[entry.name],
                    }
                )
    return rows


def _instance_rows() -> list[Row]:
    """The paper's instances, arm by arm."""
    rows: list[Row] = []
    for n_arms in ARMS:
        told = instance(f"K={n_arms}")
        effective = theory.effective_gaps(told)
        for arm in range(n_arms):
            row: Row = {"n_arms": n_arms, "arm": arm + 1, "effective_gap": float(effective[arm])}
            row |= {f"mean_{i + 1}": float(told.means[arm, i]) for i in range(3)}
            row |= {f"gap_{i + 1}": float(told.gaps[arm, i]) for i in range(3)}
            rows.append(row | {"lex_optimal": arm == told.lex_optimal_arm, "tradeoff": told.tradeoff})
    return rows


def _lower_bounds() -> list[Row]:
    rows: list[Row] = []
    for n_arms in ARMS:
        time = characteristic_time(instance(f"K={n_arms}"))
        bound = sample_lower_bound(time.low, DELTA)
        rows.append({"n_arms": n_arms, "lower_bound": bound, "certified": time.certified})
    return rows


def _bounds(results: Results) -> list[Row]:
    """Theorems, the corollary and the lemmas about pulls: printed, proved, and what the runs did."""
    rows: list[Row] = []
    for width, entry in bounds_entries():
        runs = results.runs[entry.name]
        inner = entry.algorithm == "LexElim-In"
        stop = int(runs.rounds.max())
        checkpoints = np.unique(np.concatenate([np.geomspace(1, stop, 200).astype(int), runs.rounds]))
        regret = results.regret(entry.name, checkpoints)
        samples = results.identification_rounds(entry.name, "objective" if inner else "prefix")
        pulls = runs.pulls.astype(float)
        pulls[runs.active] = np.nan
        measured: list[tuple[str, str, Any, Any]] = [
            ("Theorem 3" if inner else "Theorem 1", "regret", _both(f"{_half(inner)}_regret", entry), regret),
            (
                "Theorem 4" if inner else "Theorem 2",
                "samples",
                _both(f"{_half(inner)}_samples", entry),
                samples,
            ),
            (
                "Lemma 7" if inner else "Lemma 5",
                "pulls of an arm",
                _both(f"{_half(inner)}_pulls", entry),
                pulls,
            ),
        ]
        if inner:
            anytime = [
                np.array([_anytime(entry, int(t), constants) for t in checkpoints])
                for constants in ("printed", "proved")
            ]
            measured.append(("Corollary 1", "regret", anytime, regret))
        for source, quantity, (printed, proved), values in measured:
            found: list[Row] = []
            for i in range(values.shape[-1]):
                column = values[..., i]
                if np.isnan(column).all():
                    continue
                caps = [np.broadcast_to(cap[..., i], column.shape) for cap in (printed, proved)]
                worst, limits = _worst(column, caps)
                mean, error = mean_and_error(worst[~np.isnan(worst)])
                of_arm = quantity == "pulls of an arm"
                found.append(
                    {
                        "source": source,
                        "instance": entry.instance,
                        "width": width,
                        "algorithm": entry.algorithm,
                        "quantity": quantity,
                        "objective": math.nan if of_arm else i + 1,
                        "arm": i + 1 if of_arm else math.nan,
                        "printed": limits[0],
                        "proved": limits[1],
                        "measured": mean,
                        "measured_se": error,
                        "largest": float(np.nanmax(worst)),
                        "above_printed": _runs_above(column, caps[0]),
                        "above_proved": _runs_above(column, caps[1]),
                        "replications": int(column.shape[0]),
                    }
                )
            if quantity == "pulls of an arm":  # the arm that comes nearest to its bound, or exceeds it most
                found = [max(found, key=lambda row: row["largest"] / row["printed"])]
            rows += found
    return rows


def _half(inner: bool) -> str:
    return "lexelim_in" if inner else "lexelim_out"


def _both(function: str, entry: Entry) -> list[NDArray[np.float64]]:
    """A bound of `theory`, printed and proved."""
    bound: Callable[..., NDArray[np.float64]] = getattr(theory, function)
    told = instance(entry.instance)
    return [
        bound(told, entry.delta, noise_sd=entry.noise_sd, constants=constants)
        for constants in ("printed", "proved")
    ]


def _anytime(entry: Entry, t: int, constants: Literal["printed", "proved"]) -> NDArray[np.float64]:
    bound: NDArray[np.float64] = theory.lexelim_in_anytime_regret(
        instance(entry.instance), entry.delta, t, noise_sd=entry.noise_sd, constants=constants
    )
    return bound


def _worst(
    column: NDArray[np.float64], caps: Sequence[NDArray[np.float64]]
) -> tuple[NDArray[np.float64], list[float]]:
    """Per replication the value that matters, and the two bounds that it is held against.

    For a curve (replications, checkpoints): where its mean comes nearest to the printed bound.
    """
    if column.ndim == 1:
        return column, [float(cap[0]) for cap in caps]
    mean, cap = column.mean(axis=0), caps[0][0]
    nearest = int(np.argmax(mean / cap if cap.min() > 0 else mean - cap))
    return column[:, nearest], [float(cap[0, nearest]) for cap in caps]


def _runs_above(column: NDArray[np.float64], cap: NDArray[np.float64]) -> int:
    """How many replications exceed their bound at some time; rounding errors do not count."""
    above = column > cap + 1e-9 * np.maximum(1.0, np.abs(cap))
    return int(above.sum() if above.ndim == 1 else above.any(axis=1).sum())


def _sensitivity(results: Results, answers: Mapping[str, Row]) -> list[Row]:
    rows: list[Row] = []
    for parameter, value, width, entry in sensitivity_entries():
        settled = results.identification_rounds(entry.name)[:, 0]
        samples, samples_se = mean_and_error(settled[~np.isnan(settled)])
        rows.append(
            {
                "parameter": parameter,
                "value": value,
                "width": width,
                "algorithm": entry.algorithm,
                "noise_sd": entry.noise_sd,
                "samples_1": samples,
                "samples_1_se": samples_se,
                **answers[entry.name],
            }
        )
    return rows


def mean_and_error(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and standard error; nan where there is too little."""
    n = values.size
    mean = float(np.mean(values)) if n else math.nan
    return mean, float(np.std(values, ddof=1) / math.sqrt(n)) if n > 1 else math.nan
