"""How often a gate ships what it should, and names a regression: docs/gate.md."""

from collections import Counter
from typing import Any

import numpy as np

import lexbandits as lb
from lexbandits.simulation.results import clopper_pearson

CASES = 6000
DISCORDANT = (0.05, 0.10)  # shares of the cases on which two arms differ: drawn anew for every table
RIGHT = 0.85  # of the baseline
CHANGES = {  # how much worse on accuracy, how much cheaper
    "equal, 30 % cheaper": (0.0, 0.3),
    "1 point worse, 30 % cheaper": (0.01, 0.3),
    "1.9 points worse, 30 % cheaper": (0.019, 0.3),
    "2.1 points worse, 30 % cheaper": (0.021, 0.3),
    "3 points worse, 30 % cheaper": (0.03, 0.3),
    "3 points better, 30 % dearer": (-0.03, -0.3),
}
OBJECTIVES = [
    lb.Objective("accuracy", margin=0.02, noise="bernoulli"),
    lb.Objective("cost", "minimize", margin=0.1, noise=("bounded", 0, 5)),
]


def table(change: str, number: int, seed: int, cases: int = CASES) -> dict[str, Any]:
    """Draw the paired results of a baseline and a candidate."""
    worse, cheaper = CHANGES[change]
    rng = np.random.default_rng([seed, number, list(CHANGES).index(change)])
    discordant = rng.uniform(*DISCORDANT)
    old, luck = rng.random(cases) < RIGHT, rng.random(cases)
    lost, won = (discordant + worse) / 2 / RIGHT, (discordant - worse) / 2 / (1 - RIGHT)
    new = np.where(old, luck >= lost, luck < won)
    cost = [rng.gamma(9, mean / 9, cases) for mean in (1.0, 1.0 - cheaper)]
    return {
        "arm": np.repeat(["old", "new"], cases),
        "item": np.tile(np.arange(cases), 2),
        "accuracy": np.r_[old, new].astype(int),
        "cost": np.minimum(np.concatenate(cost), 5.0),
    }


def outcomes(change: str, tables: int, seed: int, cases: int = CASES) -> dict[str, int]:
    """Count the outcomes of a gate."""
    found: Counter[str] = Counter()
    for number in range(tables):
        drawn = table(change, number, seed, cases)
        gate = lb.judge(drawn, OBJECTIVES, baseline="old", candidate="new").gate
        assert gate is not None
        found[gate.outcome] += 1
    return {outcome: found[outcome] for outcome in lb.GateOutcome}


def gate_markdown(tables: int, seed: int, cases: int = CASES) -> str:
    """Return a row per change: the share of each outcome, with its exact 95 % interval."""
    lines = ["| change | ships | not shown | regression |", "| --- | --- | --- | --- |"]
    for change in CHANGES:
        counts = outcomes(change, tables, seed, cases).values()
        ends = ([100 * end for end in clopper_pearson(count, tables)] for count in counts)
        cells = (
            f"{100 * count / tables:.3g} % ({low:.1f} – {high:.1f})"
            for count, (low, high) in zip(counts, ends, strict=True)
        )
        lines.append(f"| {change} | {' | '.join(cells)} |")
    return "\n".join(lines)
