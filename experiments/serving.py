"""What serving visitors costs them: results on arms that are worse than the margin, asked once and led twice.

Conversions lost among 24,000 visitors of four pages, beside Thompson sampling with Beta posteriors. And how
many results it takes to show that an answer is better than a baseline.
"""

from typing import NamedTuple

import numpy as np

import lexbandits as lb
from lexbandits._arrays import Vector
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.simulation.promise import Tolerances
from lexbandits.simulation.results import mean_and_error

DELTA, CONCENTRATION = 0.05, 12.0


class Site(NamedTuple):
    """Means of a 0/1 objective and of a share, drawn from a Beta law; ties are half of the margins."""

    means: tuple[tuple[float, float], ...]
    ties: tuple[float, float]


SCENARIOS = {
    "models, 4": Site(((0.71, 0.96), (0.84, 0.91), (0.85, 0.79), (0.86, 0.74)), (0.03, 0.02)),
    "pages, 5": Site(((0.10, 0.90), (0.16, 0.85), (0.155, 0.80), (0.09, 0.93), (0.07, 0.95)), (0.02, 0.02)),
    "two variants": Site(((0.30, 0.8), (0.38, 0.7)), (0.02, 0.02)),
}
PAGES, VISITORS, TIE = (0.030, 0.033, 0.039, 0.022), 24_000, 0.005


# Rates of arms, the baseline first, and the tie, half of the margin.
CONTROLLED = {
    "pages: 3.0, 3.3, 3.9, 2.2 %": ((0.030, 0.033, 0.039, 0.022), 0.005),
    "clear: 10, 12, 18, 8 %": ((0.10, 0.12, 0.18, 0.08), 0.02),
    "two: 30, 38 %": ((0.30, 0.38), 0.02),
    "the baseline is best: 38, 30, 33 %": ((0.38, 0.30, 0.33), 0.02),
}


def unacceptable(scenario: Site) -> Vector:
    """(K,) which arms must not be the answer."""
    settings = {"tolerance": scenario.ties, "resolution": scenario.ties, "at_least": None}
    promise = Tolerances(settings, lb.Instance([list(row) for row in scenario.means], noise_sd=1.0))
    return np.array([not promise.accepts(arm) for arm in range(len(scenario.means))])


def visits(scenario: Site, repeats: int, seed: int, run: int) -> tuple[int, int, bool]:
    """Results until the answer, those on unacceptable arms, and whether the answer is one of these."""
    rng, bad = np.random.default_rng([seed, run]), unacceptable(scenario)
    policy = LexElimTol(
        len(bad), 2, delta=DELTA, tolerance=scenario.ties, noise="bernoulli", leader_repeats=repeats
    )
    while not policy.finished:
        arm = policy.ask()
        rate, share = scenario.means[arm]
        second = rng.beta(share * CONCENTRATION, (1 - share) * CONCENTRATION)
        policy.tell(arm, [float(rng.random() < rate), second])
    return int(policy.rounds), int(policy.pulls[bad].sum()), bool(bad[policy.recommendation])


def lost(repeats: int, seed: int, run: int) -> float:
    """Conversions that visitors of the pages are expected to lose; all who come after the end see the answer.

    `repeats` 0: Thompson sampling from Beta(1, 1).
    """
    rng, gaps = np.random.default_rng([seed, run]), max(PAGES) - np.array(PAGES)
    pulls, wins = np.zeros(len(PAGES)), np.zeros(len(PAGES))
    policy = LexElimTol(
        len(PAGES), 1, delta=DELTA, tolerance=TIE, noise="bernoulli", leader_repeats=max(1, repeats)
    )
    for _ in range(VISITORS):
        if repeats and policy.finished:
            break
        arm = policy.ask() if repeats else int(np.argmax(rng.beta(1 + wins, 1 + pulls - wins)))
        value = float(rng.random() < PAGES[arm])
        if repeats:
            policy.tell(arm, [value])
        pulls[arm] += 1
        wins[arm] += value
    rest = VISITORS - pulls.sum()
    return float(pulls @ gaps + (rest * gaps[policy.recommendation] if repeats else 0.0))


def results_with(rates: tuple[float, ...], tie: float, baseline: int | None, seed: int, run: int) -> float:
    """Results until the answer, with a margin of 0.01 or 0.04 in each scenario."""
    margin = 0.01 if max(rates) < 0.05 else 0.04
    policy = LexElimTol(
        len(rates),
        1,
        delta=DELTA,
        tolerance=tie,
        resolution=margin - tie,
        noise="bernoulli",
        baseline=baseline,
    )
    instance = lb.Instance([[rate] for rate in rates], noise="bernoulli")
    return float(len(lb.simulate(policy, instance, horizon=10**6, seed=1000 * seed + run).arms))


def by_gaps(rates: tuple[float, ...], tie: float) -> float:
    """How many times the results of two arms a baseline takes by the squares of what is to be shown.

    Without one the best arm is shown to be not worse than the second best by the margin; with one, better
    than the baseline by the tie, unless the baseline is the answer.
    """
    second, best = sorted(rates)[-2:]
    if best == rates[0]:
        return 1.0
    return ((best - second + 2 * tie) / min(best - rates[0] - tie, best - second + 2 * tie)) ** 2


def cell(values: list[float]) -> str:
    """A mean with its standard error."""
    return "{:,.0f} ± {:,.0f}".format(*mean_and_error(np.array(values, np.float64)))


def markdown(runs: int, seed: int) -> str:
    """Both tables."""
    lines = ["| scenario, arms | results | on worse arms | `serve=True`: results | on worse arms | wrong |"]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, scenario in SCENARIOS.items():
        found = [[visits(scenario, repeats, seed, run) for run in range(runs)] for repeats in (1, 2)]
        cells = [cell([end[k] for end in ends]) for ends in found for k in (0, 1)]
        wrong = ", ".join(str(sum(end[2] for end in ends)) for ends in found)
        lines.append(f"| {name} | {' | '.join(cells)} | {wrong} |")
    ways = {"Thompson sampling": 0, "a study": 1, "`serve=True`": 2}
    lines += ["", f"| {' | '.join(ways)} |", "| ---: | ---: | ---: |"]
    cells = [cell([lost(repeats, seed, run) for run in range(runs)]) for repeats in ways.values()]
    lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "| scenario | no baseline | baseline | baseline, `tie=0` | by the gaps |"]
    lines.append("| --- | ---: | ---: | ---: | ---: |")
    for name, (rates, tie) in CONTROLLED.items():
        asked = [(tie, None), (tie, 0), (0.0, 0)]
        cells = [cell([results_with(rates, *how, seed, run) for run in range(runs)]) for how in asked]
        lines.append(f"| {name} | {' | '.join(cells)} | {by_gaps(rates, tie):.1f} |")
    return "\n".join(lines)
