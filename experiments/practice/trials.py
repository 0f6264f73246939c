"""Measurements as people make them: one kind of noise per objective, and luck that arms share on an item."""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from lexbandits._arrays import Vector
from lexbandits.environments.instance import Instance


class Measure(NamedTuple):
    """One objective: a true mean per arm, larger is better, and how results vary around it.

    A result is the arm's answer to a *luck* whose law is the same for all arms:
    "bernoulli"  1 where luck, uniform on [0, 1], is below the mean
    "gaussian"   mean + spread · luck, luck standard normal; `spread` has one standard deviation per arm
    "gamma"      mean · luck, luck gamma with mean 1 and shape `spread`; what is minimised has a mean below 0
    "uniform"    mean · luck, luck uniform on [1 − spread, 1 + spread]
    "beta"       a draw with the mean and the standard deviation `spread`: it has no luck to share
    """

    kind: str
    means: Sequence[float | Fraction]
    spread: float | Sequence[float] = 0.0

    @property
    def truth(self) -> Vector:
        """(K,) the means as floats."""
        return np.array([float(mean) for mean in self.means])

    @property
    def sds(self) -> Vector:
        """(K,) the standard deviation of each arm's results."""
        means, spread = self.truth, np.asarray(self.spread, np.float64)
        if self.kind == "bernoulli":
            return np.asarray(np.sqrt(means * (1 - means)))
        if self.kind == "gamma":
            return np.asarray(np.abs(means) / np.sqrt(spread))
        if self.kind == "uniform":
            return np.asarray(np.abs(means) * spread / math.sqrt(3))
        return np.broadcast_to(spread, means.shape)

    def luck(self, rng: np.random.Generator, shape: tuple[int, int]) -> Vector:
        """Draws of the luck."""
        if self.kind == "bernoulli":
            return rng.random(shape)
        if self.kind == "gaussian":
            return rng.standard_normal(shape)
        spread = float(np.asarray(self.spread))
        if self.kind == "gamma":
            return np.asarray(rng.standard_gamma(spread, shape) / spread)
        return rng.uniform(1 - spread, 1 + spread, shape)

    def results(self, luck: Vector) -> Vector:
        """(…, K) what each arm makes of its luck."""
        if self.kind == "bernoulli":
            return np.asarray(luck < self.truth, np.float64)
        if self.kind == "gaussian":
            return np.asarray(self.truth + np.asarray(self.spread) * luck)
        return self.truth * luck

    def drawn(self, rng: np.random.Generator, count: int, shared: float) -> Vector:
        """(count, K) results of `count` items; each takes its item's luck with probability `shared`."""
        shape = (count, len(self.means))
        if self.kind == "beta":
            strength = self.truth * (1 - self.truth) / np.asarray(self.spread) ** 2 - 1
            return rng.beta(self.truth * strength, (1 - self.truth) * strength, shape)
        luck = self.luck(rng, shape)
        if shared > 0:
            luck = np.where(rng.random(shape) < shared, self.luck(rng, (count, 1)), luck)
        return self.results(luck)


class Trials:
    """Passes of results: every arm once on one item.

    With `shared` above 0 each result takes the luck of its item with that probability, else one of its own:
    arms measured on the same item then rise and fall together, and the law of a single arm is the same.
    As the noise of an `Instance` (a sampler) it gives results that share nothing.
    """

    def __init__(self, measures: Sequence[Measure], shared: float = 0.0) -> None:
        self.measures, self.shared = tuple(measures), shared
        if not 0 <= shared <= 1:
            raise ValueError(f"shared must be a probability, got {shared!r}")
        for measure in self.measures:
            if measure.kind not in ("bernoulli", "gaussian", "gamma", "uniform", "beta"):
                raise ValueError(
                    f"a measure is bernoulli, gaussian, gamma, uniform or beta, got {measure.kind!r}"
                )
            if len(measure.means) != len(self.measures[0].means):
                raise ValueError("measures must have one mean for each arm, got different numbers of them")
            if shared and measure.kind == "beta":
                raise ValueError("beta results have no luck to share, got shared > 0")

    def passes(self, rng: np.random.Generator, count: int) -> Vector:
        """(count, K, m) results of all arms on `count` items."""
        return np.stack([measure.drawn(rng, count, self.shared) for measure in self.measures], axis=2)

    def __call__(self, rng: np.random.Generator, arm: int) -> Vector:
        """One result of one arm, on an item of its own."""
        return np.array([self._alone(measure, arm).drawn(rng, 1, 0.0)[0, 0] for measure in self.measures])

    @staticmethod
    def _alone(measure: Measure, arm: int) -> Measure:
        spread = measure.spread if np.ndim(measure.spread) == 0 else [np.asarray(measure.spread)[arm]]
        return measure._replace(means=[measure.means[arm]], spread=spread)

    @property
    def sds(self) -> Vector:
        """(K, m) standard deviations."""
        return np.stack([measure.sds for measure in self.measures], axis=1)

    @property
    def settings(self) -> dict[str, Any]:
        """What makes them again, for JSON."""
        measures = [[m.kind, list(map(str, m.means)), np.asarray(m.spread).tolist()] for m in self.measures]
        return {"measures": measures, "shared": self.shared}

    def instance(self) -> Instance:
        """The truth, with this as its noise."""
        return Instance(list(zip(*(measure.means for measure in self.measures), strict=True)), noise=self)
