"""What a smaller margin costs: the README's models at its margins, at half and at a quarter of them.

In one scenario *medium*, *large* and *huge* are equally accurate. In the other *medium* is 0.02 below the
best, as in the README. Every margin meets the same draws.
"""

from functools import partial

import numpy as np

import lexbandits as lb
from experiments.practice.common_random_numbers import CommonRandomNumbers, play
from experiments.practice.trials import Measure, Trials
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.simulation.results import mean_and_error
from lexbandits.simulation.workers import on_threads

SHARES = {"as in the README": 1.0, "half": 0.5, "a quarter": 0.25}
ACCURACIES = {
    "no arm is ever between tie and margin": (0.71, 0.86, 0.86, 0.86),
    "*medium* is 0.02 below the best": (0.71, 0.84, 0.85, 0.86),
}
MOST = 20_000_000


def question(share: float) -> list[lb.Objective]:
    """The README's objectives, with this share of its margins."""
    return [
        lb.Objective("correct", margin=0.06 * share, noise="bernoulli"),
        lb.Objective("latency", "minimize", unit="s", margin=0.4 * share, noise=("bounded", 0, 10)),
        lb.Objective("cost", "minimize", unit="cents", margin=0.2 * share, noise=("bounded", 0, 3)),
    ]


def policy_of(objectives: list[lb.Objective], arms: int) -> LexElimTol:
    """The policy of a study with these objectives."""
    rules = [objective.tolerance_settings for objective in objectives]
    return LexElimTol(
        arms,
        len(rules),
        delta=0.05,
        tolerance=[rule.tolerance for rule in rules],
        resolution=[rule.resolution for rule in rules],
        noise=["bernoulli", ("bounded", -10.0, 0.0), ("bounded", -3.0, 0.0)],
    )


def scenario(accuracies: tuple[float, ...]) -> Trials:
    """What the README's `measure` draws."""
    latency = Measure("gamma", (-0.4, -0.9, -2.1, -2.6), 25.0)
    cost = Measure("uniform", (-0.1, -0.4, -1.9, -2.4), 0.2)
    return Trials((Measure("bernoulli", accuracies), latency, cost))


def _results(policy: LexElimTol, trials: Trials, seed: int, run: int, cancelled: object) -> tuple[int, int]:
    ended = play(policy, CommonRandomNumbers(trials, seed, run), MOST)
    if not ended.finished:
        raise RuntimeError(f"run {run} took more than {MOST:,} results")
    return ended.rounds, ended.recommendation


def margins_markdown(runs: int, seed: int, jobs: int) -> str:
    """Mean results ± standard error, and how often *medium* is the answer."""
    lines = ["| margins | " + " | ".join(ACCURACIES) + " |", "| --- |" + " ---: |" * len(ACCURACIES)]
    for name, share in SHARES.items():
        cells = []
        for accuracies in ACCURACIES.values():
            policy = policy_of(question(share), len(accuracies))
            work = partial(_results, policy, scenario(accuracies), seed)
            found = np.array(list(on_threads(work, range(runs), jobs)))
            mean, error = mean_and_error(found[:, 0])
            cells.append(f"{mean:,.0f} ± {error:,.0f} ({(found[:, 1] == 1).mean():.0%})")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)
