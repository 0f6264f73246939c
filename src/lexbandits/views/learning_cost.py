"""What learning cost: results by arm, and an estimate of how many were on arms worse than may be given up."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Vector
from lexbandits.policies.tolerance.acceptable import acceptable_arms
from lexbandits.policies.tolerance.state import OFFERED, REACH, SIGN, TARGET, TOLERANCE, State
from lexbandits.study.core.trial_columns import IMPORTED
from lexbandits.study.number_format import about, count, listed, many
from lexbandits.views.estimates import Estimates
from lexbandits.views.trial_counts import tally_of

FEWEST = 10  # results of each arm, before its means are worth an estimate
RUNS, BATCHES, DRAWS = 20, 100, 50  # of Thompson sampling; arms of a batch are drawn from one posterior
FIRST = 2.0  # results of each arm before that


@dataclass(frozen=True)
class LearningCost:
    """The results that a study measured, without what it imported.

    Attributes:
        results: arm -> its results.
        equal: how many it takes to measure every arm as often as the one measured most.
        worse: arm -> its results, of those that by the means are worse by more than may be given up.
        split: how many of as many results would have been on such arms, split evenly; None where too few
            are measured for an estimate, or no arm is worse.
        thompson: the same of Thompson sampling, simulated by the means and deviations measured.
        sentence: the same in words.
    """

    results: dict[str, int]
    equal: int
    worse: dict[str, int]
    split: float | None
    thompson: float | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def learning_cost(estimates: Estimates) -> LearningCost | None:
    """Return what learning cost; None before there are results of two arms."""
    imported = tally_of(estimates.replay).by_arm[:, IMPORTED].tolist()
    own = {
        arm: n - imported[k]
        for k, (arm, n) in enumerate(zip(estimates.arms, estimates.measured, strict=True))
    }
    results = dict(sorted(((arm, n) for arm, n in own.items() if n), key=lambda row: -row[1]))
    if len(results) < 2:
        return None
    total, most = sum(results.values()), max(results.values())
    equal = most * len(results)
    shares = listed([f"{arm} {count(n)}" for arm, n in results.items()])
    text = f"{many(total, 'result')} in all: {shares}."
    if equal > total:
        text += f" To measure every arm as often as {next(iter(results))} would have taken {count(equal)}."
    worse, split, thompson = {}, None, None
    state, means = estimates.policy.state, estimates.policy.means
    offered = state.masks[OFFERED]
    if estimates.counts[offered].min() >= FEWEST:
        bad = offered & ~acceptable_arms(state, means)
        worse = {arm: own.get(arm, 0) for k, arm in enumerate(estimates.arms) if bad[k]}
    if worse:
        split = total * float(bad.sum() / offered.sum())
        thompson = _by_thompson(state, means, estimates.deviations, bad, total)
        text += (
            f" By the means, {many(sum(worse.values()), 'result')} came of arms worse than may be given up "
            f"({listed(list(worse))}). Of as many results, an even split would have put about "
            f"{about(split)} there, and Thompson sampling, which certifies nothing, about {about(thompson)}. "
            "These are estimates."
        )
    return LearningCost(results, equal, worse, split, thompson, text)


def _by_thompson(state: State, means: Vector, sds: Vector, bad: NDArray[np.bool_], total: int) -> float:
    """How many of `total` results Thompson sampling would have on bad arms: the mean of simulated runs.

    `sds` (m,) are of one value. Every batch draws means of all arms from their normal posteriors, and takes
    who would answer by these.
    """
    offered = np.flatnonzero(state.masks[OFFERED])
    rng, means = np.random.default_rng(0), means[offered]
    pulls = np.full((RUNS, offered.size), FIRST)
    sums = FIRST * means + np.sqrt(FIRST) * sds * rng.standard_normal((RUNS, *means.shape))
    for batch in np.diff(np.linspace(0, max(total - FIRST * offered.size, 0), BATCHES + 1).astype(int)):
        n = pulls[:, None, :, None]
        drawn = sums[:, None] / n + sds / np.sqrt(n) * rng.standard_normal((RUNS, DRAWS, *means.shape))
        chosen = _answers(state, offered, drawn)
        shares = (chosen[:, :, None] == np.arange(offered.size)).mean(axis=1)
        new = rng.multinomial(batch, shares).astype(float)
        noise = np.sqrt(new)[:, :, None] * sds * rng.standard_normal(sums.shape)
        sums += new[:, :, None] * means + noise
        pulls += new
    return float(pulls[:, bad[offered]].sum(axis=1).mean())


def _answers(state: State, offered: NDArray[np.intp], means: Vector) -> NDArray[np.intp]:
    """(…) who would answer by these (…, K, m) means: objective by objective those not clearly behind stay."""
    kept = np.ones(means.shape[:-1], np.bool_)
    for i in state.order.tolist():
        limits, values = state.limits[i], np.where(kept, means[..., i], -np.inf)
        best, middle = values.max(axis=-1, keepdims=True), 0.5 * (limits[TOLERANCE] + limits[REACH])
        if state.is_limit[i]:
            best = np.minimum(best, limits[TARGET])
        elif limits[SIGN] != 0.0:
            middle *= np.abs(best)
        kept &= values >= best - middle
    return np.asarray(np.where(kept, means[..., state.order[-1]], -np.inf).argmax(axis=-1))
