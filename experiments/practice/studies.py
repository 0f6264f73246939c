"""Studies as practitioners have them: what is measured, what does not matter, what is known of the noise."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from experiments.practice.common_practice import Aim
from experiments.practice.trials import Measure, Trials
from lexbandits.environments.examples import paper_instance
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.theory.tolerance import ToleranceTime, tolerance_time


class Study(NamedTuple):
    """The truth, and what LexElimTol is told; larger is better, so seconds and cents are negative."""

    name: str
    title: str
    trials: Trials
    tolerance: Sequence[float]
    resolution: Sequence[float]
    noise: Sequence[Any]  # the right kind of each objective
    bounds: Sequence[float]  # standard deviations that a careful person would promise instead
    at_least: Sequence[float | None] | None = None
    delta: float = 0.05

    def policy(self, stop_when: str, *, bounded_sd: bool = False) -> LexElimTol:
        """LexElimTol told the kinds of noise or, with `bounded_sd`, bounds on their standard deviations."""
        independent = () if self.trials.shared else ("independent",)
        known = [("sub_gaussian", sd, *independent) for sd in self.bounds]
        return LexElimTol(
            *self.trials.sds.shape,
            delta=self.delta,
            tolerance=self.tolerance,
            resolution=self.resolution,
            noise=known if bounded_sd else self.noise,
            at_least=self.at_least,
            stop_when=stop_when,
        )

    def limit(self) -> ToleranceTime | None:
        """The time any algorithm needs that knows the variances; none for targets and for shared luck."""
        if self.at_least is not None or self.trials.shared:
            return None
        told = self.trials.instance(), self.tolerance, self.resolution
        return tolerance_time(*told, arm_noise_sds=self.trials.sds)

    @property
    def aim(self) -> Aim:
        """The same for common practice, with the true noise of what is hardest to tell apart, for planning.

        That is the two arms with the largest variances or, beside a target, the arm nearest to it.
        """
        targets = self.at_least or [None] * len(self.tolerance)
        variances = self.trials.sds**2
        noise = np.sort(variances, axis=0)[-2:].sum(axis=0)
        for i, target in enumerate(targets):
            if target is not None:
                noise[i] = variances[np.argmin(np.abs(self.trials.measures[i].truth - target)), i]
        slack, fine = np.array(self.tolerance), np.array(self.resolution)
        return Aim(len(variances), self.delta, slack, fine, targets, noise)


MODELS = (
    Measure("bernoulli", (0.71, 0.84, 0.85, 0.86)),
    Measure("gamma", (-0.4, -0.9, -2.1, -2.6), 25.0),
    Measure("uniform", (-0.1, -0.4, -1.9, -2.4), 0.2),
)
SECONDS = ("bounded", -10.0, 0.0)  # with a timeout of ten seconds, which no result here comes near
SHARED = 0.7  # of the answers take the luck of their item


def studies() -> tuple[Study, ...]:
    """All of them, by what a reader meets first."""
    models = _told_apart_by_tolerance(
        "models",
        "language models",
        MODELS,
        (0.03, 0.2, 0.1),
        noise=("bernoulli", SECONDS, ("bounded", -3.0, 0.0)),
        bounds=(0.5, 0.6, 0.4),
    )
    items = models._replace(
        name="items", title="language models,\ncommon items", trials=Trials(MODELS, shared=SHARED)
    )
    judge = _told_apart_by_tolerance(
        "judge",
        "judge scores",
        (
            Measure("beta", (0.64, 0.74, 0.75, 0.76, 0.735), 0.16),
            Measure("gamma", (-1.1, -1.3, -2.0, -2.8, -2.4), 16.0),
        ),
        (0.02, 0.2),
        noise=(("bounded", 0.0, 1.0), SECONDS),
        bounds=(0.5, 5.0),
    )
    conversion = _told_apart_by_tolerance(
        "conversion",
        "conversion at 3 %",
        (
            Measure("bernoulli", (0.020, 0.030, 0.026, 0.006)),
            Measure("gamma", (-0.9, -1.4, -2.1, -0.7), 16.0),
        ),
        (0.01, 0.2),
        noise=("bernoulli", SECONDS),
        bounds=(0.5, 5.0),
    )
    throughput = _told_apart_by_tolerance(
        "throughput",
        "throughput",
        (
            Measure("gaussian", (55.0, 61.0, 61.5, 62.0, 61.5, 58.0), (1.0, 2.0, 4.0, 6.0, 8.0, 10.0)),
            Measure("gaussian", (-3.0, -2.0, -3.5, -5.0, -3.4, -1.8), (0.3,) * 6),
        ),
        (1.0, 0.5),
        noise=("gaussian", "gaussian"),
        bounds=(10.0, 0.5),
    )
    guardrail = _told_apart_by_tolerance(
        "guardrail",
        "failures at most 1.5 %",
        (
            Measure("bernoulli", (0.998, 0.990, 0.995, 0.960, 0.987)),
            Measure("beta", (0.62, 0.80, 0.72, 0.83, 0.70), 0.16),
            Measure("gamma", (-0.8, -1.2, -1.9, -1.0, -1.5), 16.0),
        ),
        (0.005, 0.03, 0.2),
        noise=("bernoulli", ("bounded", 0.0, 1.0), SECONDS),
        bounds=(0.5, 0.5, 5.0),
        at_least=(0.99, None, None),
    )
    return models, items, judge, conversion, throughput, guardrail, paper(10)


def _told_apart_by_tolerance(
    name: str, title: str, measures: Sequence[Measure], tolerance: Sequence[float], **known: Any
) -> Study:
    """Where a difference above twice the tolerance is to be seen."""
    return Study(name, title, Trials(measures), tolerance, tolerance, **known)


def paper(n_arms: int) -> Study:
    """The paper's instance: no tolerance, and a resolution just below the least gaps."""
    instance = paper_instance(n_arms)
    sd = math.sqrt(0.1)
    columns = zip(*instance.settings["means"], strict=True)
    measures = [Measure("gaussian", [Fraction(x) for x in column], (sd,) * n_arms) for column in columns]
    gaps = np.abs(instance.gaps)
    return Study(
        f"paper{n_arms}",
        f"the paper, K = {n_arms}",
        Trials(measures),
        tolerance=(0.0,) * 3,
        resolution=[0.999 * float(column[column > 0].min()) for column in gaps.T],
        noise=("gaussian",) * 3,
        bounds=(sd,) * 3,
        delta=0.01,
    )
