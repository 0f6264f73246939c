"""What a table proves of two arms on an objective, or of one and its limit: claims, each at a level."""

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lexbandits.arrays import Vector
from lexbandits.evidence import once
from lexbandits.judging.copies import copied_arms
from lexbandits.judging.table import Table
from lexbandits.policies.tol.told import one_value_returns
from lexbandits.study.measure.progress import watched
from lexbandits.study.objective import Objective

# What can be claimed of a and b, or of a alone: a is better by more than the tie; a is not worse by more than
# the margin; a meets its limit; it is below the limit's inner line; it is below the limit. The next two are
# not claimed, but seem so: they lie between the others. The last is what is shown.
BEATS, HOLDS, MEETS = "beats", "not worse", "meets the target"
BELOW, VIOLATES = "below the inner line", "violates the limit"
LEADS, NEARS, SEEN = "leads", "nears", "seen"
OFFSETS = np.array(
    [0.5, 1, 1.5, 2, 2.5, 3, 4.5, 7, 10, 15, 22, 33, 50]
)  # of shown bounds, in what lies between tie and margin
SHOWN = 0.05  # share of a side's level for bounds that are shown where not even "not worse" is claimed
MOST_CELLS = 1_000_000  # counts of two arms that are all looked at; beyond, rows are paired
MOST_KEPT = 50_000_000  # values of samples: 400 MB; they are made again when they are needed again
HOPELESS = 0.5  # of the normal quantile: no betting below it
UNSURE = {"large-sample", "skewed", "repeated values", "cluster size"}  # flags that take a certificate away


class Sample(NamedTuple):
    """A contrast of arms' values, or ± those of one."""

    values: Vector  # one per item; sorted if there are no clusters
    mean: float
    sd: float
    low: float  # what a value can be
    high: float
    weights: tuple[tuple[int, float], ...]  # of the arms
    sums: Vector | None = None  # per cluster,
    sizes: Vector | None = None
    raw: tuple[Vector, Vector] | None = None  # values of two arms whose quantiles are compared
    size: float = 0.0  # of the numbers in a cluster that were added up

    @property
    def n(self) -> int:
        """Independent units."""
        return len(self.values) if self.sums is None else len(self.sums)

    @property
    def se(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.n)


class Claims:
    """Arms and objectives by number. With `as_list` the items are all there is, and what is seen is so."""

    def __init__(self, table: Table, as_list: bool = False) -> None:
        self.table, self.as_list = table, as_list
        self.n_arms, self.n_objectives = len(table.arms), len(table.objectives)
        self.noisy = [kind != "exact" and not as_list for kind in table.kinds]
        self.is_limit = [o.limit is not None for o in table.objectives]
        self._lines = [self._lines_of(o) for o in table.objectives]
        self._ends = [self._ends_of(i) for i in range(self.n_objectives)]
        self._samples: dict[tuple[object, ...], Sample] = {}
        self._made: dict[tuple[object, ...], bool] = {}
        self._skewed: dict[tuple[object, ...], tuple[int, float]] = {}

    def says(self, fact: str, i: int, a: int, b: int | None, alpha: float) -> bool:
        """Whether it is claimed; of what is not noisy, whether it is so."""
        key = fact, i, a, b, alpha if self.noisy[i] else None
        if key not in self._made:
            limit, sample = self.limit(fact, i), self.sample(fact, i, a, b)
            if self.noisy[i]:
                arms = [arm for arm, _ in sample.weights]
                self._made[key] = not self.copied[i, arms].any() and self.exceeds(i, sample, limit, alpha)
            else:
                slack = self._slack(i, limit)
                is_strict = fact in (BEATS, BELOW, VIOLATES)
                self._made[key] = sample.mean > limit + slack if is_strict else sample.mean >= limit - slack
        return self._made[key]

    def lead(self, fact: str, i: int, a: int, b: int | None) -> float:
        """By how many standard errors it seems so."""
        sample = self.sample(fact, i, a, b)
        beyond = sample.mean - self.limit(fact, i)
        return beyond / sample.se if sample.se > 0 else math.copysign(math.inf, beyond) if beyond else 0.0

    def seem(self) -> tuple[Vector, Vector]:
        """(m, K, K) and (m, K): by how much one is ahead of another, and of its limit."""
        arms, objectives = range(self.n_arms), range(self.n_objectives)
        leads = [
            [
                [self._beyond(LEADS, i, a, b) if a != b else 0.0 for b in arms]
                for a in watched(f"comparing {self.table.objectives[i].name}", arms)
            ]
            for i in objectives
        ]
        near = [
            [self._beyond(NEARS, i, a, None) if self.is_limit[i] else 0.0 for a in arms] for i in objectives
        ]
        return np.array(leads), np.array(near)

    def _beyond(self, fact: str, i: int, a: int, b: int | None) -> float:
        limit = self.limit(fact, i)
        beyond = self.sample(fact, i, a, b).mean - limit
        return 0.0 if not self.noisy[i] and abs(beyond) <= self._slack(i, limit) else beyond

    def _slack(self, i: int, limit: float) -> float:
        """How far numbers that are equal as written may be apart."""
        return float(max(map(abs, self._ends[i])) + abs(limit)) * (1e-12 if self.as_list else 2**-50)

    def _lines_of(self, objective: Objective) -> dict[str, float]:
        """What a difference, or an arm's mean, must exceed: in the unit, or as a share of a mean.

        A list that is complete decides a limit as written: it has no inner line of its own.
        """
        tie, width, inner = objective.thresholds  # up to the margin; of a limit, the slack
        low = objective.sign * (objective.limit or 0.0)
        if self.as_list and inner is not None:
            width, inner = 0.0, low
        half = 0.0 if self.as_list else width / 2
        return {
            BEATS: tie,
            HOLDS: -width if inner is not None else -objective.margin_in_unit,
            LEADS: tie + half,
            SEEN: 0.0,
            MEETS: low,
            NEARS: low + half,
            BELOW: -(inner or 0.0),
            VIOLATES: -low,
        }

    def limit(self, fact: str, i: int) -> float:
        """What the mean of the sample must exceed."""
        return 0.0 if self.table.objectives[i].is_relative else self._lines[i][fact]

    def _weights(self, fact: str, i: int, a: int, b: int | None) -> tuple[tuple[int, float], ...]:
        """Arms and how they count in what the claim is about; of a share also the arm whose mean is meant."""
        if b is None:
            return ((a, -1.0 if fact in (BELOW, VIOLATES) else 1.0),)
        weights, objective = {a: 1.0, b: -1.0}, self.table.objectives[i]
        if objective.is_relative and fact != SEEN:
            better = a if fact in (BEATS, LEADS) else b
            of = better if objective.reference == "best" else self.table.arms.index(str(objective.reference))
            weights[of] = weights.get(of, 0.0) - objective.sign * self._lines[i][fact]
        return tuple(weights.items())

    def sample(self, fact: str, i: int, a: int, b: int | None) -> Sample:
        """What the claim is about."""
        is_seen = fact in (LEADS, NEARS, SEEN) or self.table.low is self.table.seen
        key = i, self._weights(fact, i, a, b), is_seen
        found = self._samples.get(key)
        if found is None:
            if len(self._samples) * len(self.table.seen) > MOST_KEPT:
                self._samples.clear()
            found = self._samples[key] = self._sample(*key)
        return found

    def _sample(self, i: int, weights: tuple[tuple[int, float], ...], is_seen: bool) -> Sample:
        table, (least, most) = self.table, self._ends[i]
        is_seen = is_seen or table.kinds[i] == "quantile"
        low, high = (table.seen, table.seen) if is_seen else (table.low, table.high)
        values = np.sum([w * (low if w > 0 else high)[:, x, i] for x, w in weights], axis=0)
        least, most = (
            float(sum(w * (end if w > 0 else other) for _, w in weights))
            for end, other in ((least, most), (most, least))
        )
        there = ~np.isnan(values)
        values = values[there]
        if not self.noisy[i] and not self.as_list:  # one value an arm
            values = np.array([sum(w * np.nanmax(table.seen[:, x, i]) for x, w in weights)])
        size = float(sum(abs(w) * np.nanmax(np.abs(table.seen[:, x, i])) for x, w in weights))
        sd = once.spread(values, size)
        mean, raw = float(values.mean()), None
        if table.kinds[i] == "quantile" and len(weights) == 2:
            (a, _), (b, _) = weights
            mine, other = table.low[:, a, i], table.high[:, b, i]
            known = ~np.isnan(mine + other)  # of those that count as their worst, all
            raw = mine[known], other[known]
        if table.clusters is None or not self.noisy[i]:
            return Sample(np.sort(values), mean, sd, least, most, weights, raw=raw)
        codes = np.unique(table.clusters[there], return_inverse=True)[1]
        sums, sizes = np.bincount(codes, values), np.bincount(codes).astype(np.float64)
        sd = once.spread(sums - mean * sizes, 2 * size * sizes.max()) / float(sizes.mean())
        return Sample(values, mean, sd, least, most, weights, sums.astype(np.float64), sizes, size=size)

    def _ends_of(self, i: int) -> tuple[float, float]:
        objective = self.table.objectives[i]
        low, high = objective.bounds
        if not math.isfinite(high - low):
            low, high = float(np.nanmin(self.table.seen[:, :, i])), float(np.nanmax(self.table.seen[:, :, i]))
            return low, high
        return (low, high) if objective.sign > 0 else (-high, -low)

    def exceeds(self, i: int, sample: Sample, b: float, alpha: float) -> bool:
        """Whether "the mean is more than b" is claimed at alpha."""
        kind, n, objective = self.table.kinds[i], sample.n, self.table.objectives[i]
        if sample.raw is not None:
            share = objective.quantile or 0.0
            return once.by_quantiles(*sample.raw, share if objective.sign > 0 else 1 - share, b, alpha)
        if sample.sums is not None and sample.sizes is not None:
            most = self.table.largest_cluster or int(sample.sizes.max())
            sums = np.sort(sample.sums - b * sample.sizes)
            sample = Sample(
                sums,
                sums.mean(),
                once.spread(sums, (sample.size + abs(b)) * float(sample.sizes.max())),
                most * (sample.low - b),
                most * (sample.high - b),
                sample.weights,
            )
            b, kind = 0.0, "bounded" if kind == "binary" else kind
        if kind in ("gaussian", "finite_variance"):
            return once.by_student(n, sample.mean, sample.sd, b, alpha)
        if kind == "sub_gaussian":
            return once.by_chernoff(n, sample.mean, self.scale(i, sample), b, alpha)
        if kind == "binary" and len(sample.weights) == 1:
            ones = round(float((sample.values - sample.low).sum()))
            return once.by_binomial(ones, n, b - sample.low, alpha)
        if kind == "binary" and not self.table.is_paired:
            (a, _), (other, _) = sample.weights
            columns = self.table.low[:, a, i], self.table.high[:, other, i]
            own, others = (np.abs(column[~np.isnan(column)]) for column in columns)
            if own.size * others.size <= MOST_CELLS:
                counts = [(int(values.sum()), values.size) for values in (own, others)]
                if objective.sign < 0:  # values are 0 and −1
                    counts = [(size - ones, size) for ones, size in counts]
                return once.by_binomials(*counts[0], *counts[1], b, alpha)
        if kind == "binary":
            n10, n01 = int((sample.values > 0).sum()), int((sample.values < 0).sum())
            return once.by_pairs(n10, n01, n, b, alpha)
        needed = -HOPELESS * special.ndtri(alpha)
        if b > sample.low and (sample.mean - b) * math.sqrt(n) < needed * sample.sd:
            return False
        return once.by_betting(sample.values, b, sample.low, sample.high, alpha)

    def scale(self, i: int, sample: Sample) -> float:
        """The scale of a contrast of sub-Gaussian values."""
        sizes = [abs(weight) for _, weight in sample.weights]
        scale = float(self.table.objectives[i].noise[1])
        return scale * (sum(sizes) if self.table.is_paired else math.hypot(*sizes))

    def bound(self, i: int, a: int, b: int, alpha: float) -> float:
        """a − b is at least this: −∞, or a number of a grid that no data have chosen.

        All claims up to it are made. They need not be nested, so that a search by halves would not do. From
        "not worse" on they are made at alpha, the level of facts; below it, where a false bound would be
        another test than a false "not worse", at a share of their own.
        """
        sample, objective = self.sample(BEATS, i, a, b), self.table.objectives[i]
        if objective.is_relative:
            return -math.inf  # a difference is not what was claimed
        if not self.noisy[i]:
            return sample.mean
        if self.copied[i, [a, b]].any():
            return -math.inf
        tie, holds, found = self._lines[i][BEATS], self._lines[i][HOLDS], -math.inf
        steps = OFFSETS * objective.thresholds.resolution
        if self.says(HOLDS, i, a, b, alpha):
            found, grid = holds, [tie, *(tie + steps)]
        else:
            grid, alpha = [*(holds - steps[::-1])], alpha * SHOWN / (1 - SHOWN)
        for limit in grid:
            if sample.mean <= limit or not self.exceeds(i, sample, float(limit), alpha):
                break
            found = float(limit)
        return found

    def side(self, i: int, delta: float, alone: bool = False) -> float:
        """The level of facts of one side of a pair (or of one arm and its limit) where all hold together."""
        share = delta / max(1, sum(self.noisy)) / (2 if self.is_limit[i] else 1) / self.n_arms
        return share if alone else share * (1 - SHOWN) / max(1, self.n_arms - 1)

    def doubts(self, fact: str, i: int, a: int, b: int | None, alpha: float) -> Iterator[str]:
        """Flags of a claim that was made, always in this order."""
        table, kind = self.table, self.table.kinds[i]
        if not self.noisy[i]:
            return
        sizes = self.sample(fact, i, a, b).sizes
        unequal = sizes is not None and bool(sizes.max() > sizes.min())
        unlike = kind == "gaussian" and (unequal or table.repeats[1] > 2 * table.repeats[0])
        if kind == "finite_variance" or unlike:
            yield "large-sample"
        if kind == "gaussian":
            if self.lead(fact, i, a, b) < once.edge_of_student(*self.skewness(fact, i, a, b), alpha):
                yield "skewed"
            if any(self._repeated[i, x] for x in (a, b) if x is not None):
                yield "repeated values"
        if kind in ("binary", "bounded") and table.clusters is not None and table.largest_cluster is None:
            yield "cluster size"

    def skewness(self, fact: str, i: int, a: int, b: int | None) -> tuple[int, float]:
        """The number and the skewness of what a claim is about."""
        if (key := (fact, i, a, b)) not in self._skewed:
            sample = self.sample(fact, i, a, b)
            values = sample.values
            if sample.sizes is not None and sample.sums is not None:
                values = sample.sums - sample.mean * sample.sizes
            self._skewed[key] = len(values), _skewness(values)
        return self._skewed[key]

    @cached_property
    def copied(self) -> NDArray[np.bool_]:
        """(m, K) the arms whose values seem to be copies of few measurements: nothing is claimed of them."""
        table, found = self.table, np.zeros((self.n_objectives, self.n_arms), np.bool_)
        for i, kind in enumerate(table.kinds):
            if self.noisy[i] and kind != "binary":
                values = (table.low if kind == "quantile" else table.seen)[:, :, i]
                if table.clusters is not None:
                    values = _of_clusters(values, table.clusters)
                ends = self._ends[i] if table.objectives[i].is_bounded else (-math.inf, math.inf)
                found[i] = copied_arms(values, *ends, table.is_paired)
        return found

    @cached_property
    def _repeated(self) -> NDArray[np.bool_]:
        """(m, K) whether one value makes up clearly more than a twentieth of an arm's."""
        found = np.zeros((self.n_objectives, self.n_arms), np.bool_)
        for i, a in np.ndindex(found.shape):
            values = self.table.seen[:, a, i]
            found[i, a] = one_value_returns(values[~np.isnan(values)])
        return found


def _of_clusters(values: Vector, clusters: NDArray[np.int64]) -> Vector:
    """(units, K) the mean of each cluster; of equal values that value, to the bit."""
    least, most = (np.full((int(clusters.max()) + 1, values.shape[1]), math.nan) for _ in range(2))
    np.fmin.at(least, clusters, values)
    np.fmax.at(most, clusters, values)
    there = ~np.isnan(values)
    sums, counts = np.zeros_like(least), np.zeros_like(least)
    np.add.at(sums, clusters, np.where(there, values, 0.0))
    np.add.at(counts, clusters, there)
    return np.where(least < most, sums / np.maximum(counts, 1), least)


def _skewness(values: Vector) -> float:
    centred = values - values.mean()
    spread = float((centred**2).mean())
    return float((centred**3).mean()) / spread**1.5 if spread > 0 else 0.0
