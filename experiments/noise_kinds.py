"""How many results a kind of noise takes: arms of which the quickest is wanted, in six scenarios.

All kinds meet the same draws. "cap" is bounded noise at cap="auto": three values of each arm set the cap and
count among the results.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import lexbandits as lb
from lexbandits._arrays import Vector
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.simulation.results import mean_and_error

MARGIN, BURN_IN = 0.8, 3
LONG = 60_000  # passes
Draw = Callable[[np.random.Generator, tuple[int, int]], Vector]
SCENARIOS: dict[str, tuple[tuple[float, ...], Draw]] = {
    "normal": ((5.0, 5.1, 6.0), lambda rng, size: rng.standard_normal(size)),
    "normal, deviation 3": ((15.0, 15.1, 16.0), lambda rng, size: 3.0 * rng.standard_normal(size)),
    "skewed, one shape": ((5.0, 5.1, 6.0), lambda rng, size: rng.exponential(size=size) - 1.0),
    "heavy tails (t, 3)": ((5.0, 5.1, 6.0), lambda rng, size: rng.standard_t(3, size) / np.sqrt(3)),
    "one of three 8 times slower": ((1.0, 1.1, 8.0), lambda rng, size: rng.gamma(25, 1 / 25, size) - 1.0),
    "one of two 8 times slower": ((1.0, 8.0), lambda rng, size: rng.gamma(25, 1 / 25, size) - 1.0),
}
KINDS = ("gaussian", "symmetric", "cap")


def draws(scenario: str, rng: np.random.Generator, n: int) -> Vector:
    """(n, arms) seconds; of arms that are slower by a factor all of it is."""
    means, noise = SCENARIOS[scenario]
    values = noise(rng, (n, len(means)))
    scale = np.array(means) if scenario.endswith("slower") else 1.0
    return np.maximum(np.array(means) + scale * values, 0.0)


def results(scenario: str, kind: str, seed: int, run: int) -> tuple[int, int]:
    """Results until the answer is certified, and the answer."""
    rng = np.random.default_rng([seed, run, len(scenario)])
    burnt, values = draws(scenario, rng, BURN_IN), draws(scenario, rng, LONG)
    noise: Any = kind
    cap = np.inf
    if kind == "cap":
        asked = lb.Objective("seconds", "minimize", margin=MARGIN, cap="auto")
        runs = {str(arm): column.tolist() for arm, column in enumerate(burnt.T)}
        asked = asked.capped_by(runs)
        cap = asked.bounds[1]
        noise = ("bounded", -cap, 0.0, "steady")
    arms = values.shape[1]
    policy = LexElimTol(arms, 1, delta=0.05, tolerance=MARGIN / 2, noise=noise).quiet()
    taken = np.zeros(arms, np.int64)
    while not policy.finished:
        arm = policy.ask()
        policy.tell(arm, [-min(values[taken[arm], arm], cap)])
        taken[arm] += 1
    return int(taken.sum()) + (burnt.size if kind == "cap" else 0), policy.recommendation


def markdown(runs: int, seed: int) -> str:
    """Mean results ± standard error of every kind, wrong answers, and symmetric over gaussian."""
    lines = ['| scenario | gaussian | symmetric | cap="auto" | symmetric / gaussian | wrong |']
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for scenario in SCENARIOS:
        found = {kind: [results(scenario, kind, seed, run) for run in range(runs)] for kind in KINDS}
        counts = {kind: np.array([float(count) for count, _ in ends]) for kind, ends in found.items()}
        cells = ["{:,.0f} ± {:,.0f}".format(*mean_and_error(counts[kind])) for kind in KINDS]
        ratio = float(counts["symmetric"].mean() / counts["gaussian"].mean())
        rest = counts["symmetric"] - ratio * counts["gaussian"]
        off = float(np.std(rest, ddof=1) / counts["gaussian"].mean() / np.sqrt(runs))
        wrong = ", ".join(
            str(sum(answer == len(SCENARIOS[scenario][0]) - 1 for _, answer in ends))
            for ends in found.values()
        )
        lines.append(f"| {scenario} | {' | '.join(cells)} | {ratio:.2f} ± {off:.2f} | {wrong} |")
    return "\n".join(lines)
