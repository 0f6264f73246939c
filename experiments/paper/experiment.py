"""What the paper's experiments are made of: instances, widths, algorithms, and their cells.

In tables and figures arms and objectives count from 1, as in the paper.
"""

import inspect
import math
from collections.abc import Mapping
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import lexbandits as lb
from experiments.paper.tables import Row, averaged
from lexbandits import Instance, Policy, paper_instance
from lexbandits.simulation import Cell, Results
from lexbandits.simulation.oracle_settings import with_oracle_settings
from lexbandits.simulation.results import clopper_pearson

DELTA = 0.01
TRADEOFF = 2.0  # the least λ of the paper's instance; the text names none
ALPHA = 3.0  # the middle one of the three in public code
ARMS = (10, 20, 30)
TRUE_SD = math.sqrt(0.1)

STOPPING_HORIZON = 20_000_000
EGE_HORIZON = 10**12  # drawn as sums: no pull is made one by one
# Told too little noise, UCB-α can settle on a wrong order and then never tell tied arms apart.
UCB_HORIZONS = {1.0: 5_000_000, TRUE_SD: 1_000_000, 0.1: 300_000}

PAPERS = ("LexElim-Out", "LexElim-In")
SOUND = ("LexElim-Phase", "LexElim-Tol", "LexElim-Pool")
SINGLE = ("UCB-α", "EGE", "EGE/3900")  # these look at the first objective only


class Width(NamedTuple):
    """What the algorithms are told about the noise, whose true standard deviation is √0.1."""

    noise_sd: float
    algorithms: tuple[str, ...]
    title: str  # in figures and tables
    label: str  # in verdicts
    short: str  # beside a curve, after the algorithm
    line: Any = "-"


WIDTHS = {
    "printed": Width(1.0, PAPERS, "as printed, σ = 1", "σ = 1 as printed", "σ=1"),
    "matched": Width(TRUE_SD, PAPERS, "matched, σ = √0.1", "σ = √0.1", "√0.1", (0, (4, 1.5))),
    "tenth": Width(
        0.1, PAPERS, "sibling papers', × 0.1", "widths × 0.1 (no guarantee)", "×0.1", (0, (1.2, 1.2))
    ),
    "sound": Width(TRUE_SD, SOUND, "sound and tight, σ = √0.1", "for comparison", ""),
}
PAPER_WIDTHS = ("printed", "matched", "tenth")
GUARANTEED = ("printed", "matched")  # of the paper's widths


class Algorithm(NamedTuple):
    """A policy with the settings that are the same in every experiment, and how it is drawn.

    One colour, marker and line throughout (Okabe and Ito's palette, tellable apart in grey).
    """

    policy: type[Policy]
    settings: Mapping[str, Any]
    short: str
    colour: str
    line: Any
    marker: str


ALGORITHMS = {
    "LexElim-Out": Algorithm(lb.LexElimOut, {}, "Out", "#0072B2", "-", "s"),
    "LexElim-In": Algorithm(lb.LexElimIn, {}, "In", "#D55E00", (0, (4, 1.5)), "o"),
    "LexElim-Phase": Algorithm(lb.LexElimPhase, {}, "Phase", "#CC79A7", (0, (6, 1.2, 1.2, 1.2)), "D"),
    # it settles every objective here: these experiments ask when each of them is
    "LexElim-Tol": Algorithm(
        lb.LexElimTol, {"tolerance": 0.0, "stop_when": "all"}, "Tol", "#56B4E9", (0, (1.2, 1.2)), "v"
    ),
    "LexElim-Pool": Algorithm(lb.LexElimPool, {}, "Pool", "#009E73", "-", "^"),
    "UCB-α": Algorithm(lb.UCBAlpha, {}, "UCB-α", "#000000", (0, (5, 1, 1, 1, 1, 1)), "X"),
    "PF-LEX": Algorithm(lb.PFLex, {}, "PF-LEX", "#B8860B", (0, (2.5, 1)), "P"),
    "EGE": Algorithm(lb.ExponentialGapElimination, {}, "EGE", "#777777", "-", "*"),
    # public code divides every batch of EGE by 3900
    "EGE/3900": Algorithm(lb.ExponentialGapElimination, {"scale": 3900.0}, "EGE/3900", "#777777", "-", "h"),
    "round-robin": Algorithm(lb.RoundRobin, {}, "round-robin", "#999999", (0, (1, 2)), "."),
}


class NamedInstance(NamedTuple):
    """An instance and its name in tables."""

    name: str
    instance: Instance


@cache
def named_paper_instance(n_arms: int) -> NamedInstance:
    """The instance of the paper's experiments."""
    return NamedInstance(f"K={n_arms}", paper_instance(n_arms))


def named_instance(name: str, hundredths: list[tuple[int, int]]) -> NamedInstance:
    """Arms with these means, and the paper's noise."""
    means = [[Fraction(value, 100) for value in arm] for arm in hundredths]
    return NamedInstance(name, Instance(means, noise_sd=TRUE_SD))


class Entry(NamedTuple):
    """A cell in the paper's words; entries of one name are one cell, whatever section asks for it."""

    case: NamedInstance
    algorithm: str
    noise_sd: float
    horizon: int = STOPPING_HORIZON
    delta: float = DELTA
    tradeoff: float | None = None  # None: the instance's least λ
    alpha: float = ALPHA

    @property
    def name(self) -> str:
        """Unique, and the same in every run: results on disk are found by it."""
        parts = [self.case.name, self.algorithm, f"σ={self.noise_sd:.4g}", f"δ={self.delta:g}"]
        if "tradeoff" in self.settings:
            parts.append(f"λ={self.settings['tradeoff']:g}")
        if "alpha" in self.settings:
            parts.append(f"α={self.alpha:g}")
        return ", ".join([*parts, f"T={self.horizon:g}"])

    @property
    def settings(self) -> Row:
        """What the policy is told, apart from what `with_oracle_settings` tells it about the instance."""
        made, known = ALGORITHMS[self.algorithm], self.case.instance
        choices = {
            "delta": self.delta,
            "noise_sd": self.noise_sd,
            "tradeoff": known.tradeoff if self.tradeoff is None else self.tradeoff,
            "alpha": self.alpha,
            "epsilon": (known.n_arms * self.horizon) ** (-1 / 3),
        }
        takes = inspect.signature(made.policy).parameters
        return {**made.settings, **{name: value for name, value in choices.items() if name in takes}}

    def cell(self) -> Cell:
        """What `sweep` takes."""
        known = self.case.instance
        policy = with_oracle_settings(ALGORITHMS[self.algorithm].policy, known, **self.settings)
        return Cell(self.name, policy, known, self.horizon)


def ucb_entry(case: NamedInstance, noise_sd: float) -> Entry:
    """UCB-α until it stops, with a horizon of many times what it needs when it does."""
    return Entry(case, "UCB-α", noise_sd, UCB_HORIZONS[noise_sd])


def answers(results: Results) -> dict[str, Row]:
    """Per cell: pulls to stop and how the answers came out. Pulls at the horizon are never averaged in."""
    found: dict[str, Row] = {}
    for rate in results.error_rates().to_dict("records"):
        runs = results.runs[rate["cell"]]
        rounds = runs.rounds[runs.stopped].astype(float)
        failed = rate["wrong"] + rate["unstopped"]  # a wrong answer or none
        low, high = clopper_pearson(failed, rate["replications"])
        found[rate["cell"]] = {
            **averaged("pulls", rounds),
            "pulls_median": float(np.median(rounds)) if rounds.size else math.nan,
            **{key: rate[key] for key in ("replications", "unstopped", "wrong")},
            "error_low": rate["low"],
            "error_high": rate["high"],
            "failed": 100 * failed / rate["replications"],
            "failed_low": 100 * low,
            "failed_high": 100 * high,
        }
    return found
