"""What a table proves of two arms on an objective, or of one and its limit: claims, each at a level."""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lexbandits._arrays import Vector
from lexbandits._cached import cached_property
from lexbandits.evidence import fixed_sample
from lexbandits.evidence.moments import ROUNDING
from lexbandits.judging.copies import copied_arms
from lexbandits.judging.table import Statistic, Table
from lexbandits.outcomes import ClaimVerdict, Flag
from lexbandits.policies.tolerance.validation import one_difference_prevails, one_value_returns
from lexbandits.study.measure.progress import watched
from lexbandits.study.objective import Objective

# What can be claimed of a and b, or of a alone: a is better by more than the tie; a is not worse by more than
# the margin; a meets its limit; it is below the limit's inner line; it is below the limit. For a gate: a is
# better by more than the margin; a is not worse by more than the tie. The next two are not claimed, but seem
# so: they lie between the others. The last is what is shown.
BEATS, HOLDS, MEETS = ClaimVerdict.BETTER, ClaimVerdict.NOT_WORSE, ClaimVerdict.MEETS_LIMIT
BELOW, VIOLATES = ClaimVerdict.NOT_CLEARLY_WITHIN, ClaimVerdict.VIOLATES_LIMIT
CLEARS, TIES = ClaimVerdict.CLEARLY_BETTER, ClaimVerdict.NOT_BEATEN
LEADS, NEARS, SEEN = "leads", "nears", "seen"
# Of shown bounds, in what lies between tie and margin.
OFFSETS = np.array([0.5, 1, 1.5, 2, 2.5, 3, 4.5, 7, 10, 15, 22, 33, 50])
SHOWN = 0.05  # share of a side's level for bounds that are shown where not even "not worse" is claimed
MOST_CELLS = 1_000_000  # counts of two arms that are all looked at; beyond, rows are paired
BLOCK = 2_000_000  # values of contrasts that are looked at together: some 50 MB with what is made of them
MOST_KEPT = 250_000  # claims that are remembered; others are made again when they are needed again
HOPELESS = 0.5  # of the normal quantile: no betting below it
SKEWABLE = (Statistic.GAUSSIAN, Statistic.SYMMETRIC)  # a tail that the sample missed could explain a claim
# flags that take a certificate away
UNSURE = {Flag.ASYMPTOTIC, Flag.SKEWED, Flag.REPEATED_VALUES, Flag.CLUSTER_SIZE}


class Sample(NamedTuple):
    """A contrast of arms' values, or ± those of one."""

    make: Callable[[], Vector]  # one value per item; sorted if there are no clusters
    mean: float
    sd: float
    low: float  # what a value can be
    high: float
    weights: tuple[tuple[int, float], ...]  # of the arms
    n: int  # independent units
    sums: Vector | None = None  # per cluster,
    sizes: Vector | None = None
    size: float = 0.0  # of the numbers that a value was computed from; in a cluster, of one item's

    @property
    def values(self) -> Vector:
        """Make the values: most claims need no more than their moments."""
        return self.make()

    @property
    def se(self) -> float:
        """The standard error of the mean."""
        return self.sd / math.sqrt(self.n)


class Contrasts(NamedTuple):
    """(K, K) what claims of arms a and b rest on: means, deviations and numbers of their contrasts."""

    means: Vector
    sds: Vector
    counts: NDArray[np.int64]
    leads: Vector  # by how many standard errors the mean exceeds the limit of the claim
    skewnesses: Vector  # nan where nobody has asked


class Claims:
    """Arms and objectives by number. With `as_list` the items are all there is, and what is seen is so."""

    def __init__(self, table: Table, as_list: bool = False) -> None:
        self.table, self.as_list = table, as_list
        self.n_arms, self.n_objectives = len(table.arms), len(table.objectives)
        self.noisy = [kind is not Statistic.EXACT and not as_list for kind in table.kinds]
        self.is_limit = [o.limit is not None for o in table.objectives]
        self._lines = [self._lines_of(o) for o in table.objectives]
        self._ends = [self._ends_of(i) for i in range(self.n_objectives)]
        self._columns = [np.ascontiguousarray(table.seen[:, :, i].T) for i in range(self.n_objectives)]
        self._largest = np.array([np.nanmax(np.abs(column), axis=1) for column in self._columns])  # (m, K)
        self._samples: dict[tuple[object, ...], Sample] = {}
        self._contrasts: dict[tuple[str, int], Contrasts] = {}
        self._made: dict[tuple[object, ...], bool] = {}

    def says(self, fact: str, i: int, a: int, b: int | None, alpha: float) -> bool:
        """Whether it is claimed; of what is not noisy, whether it is so."""
        key = fact, i, a, b, alpha if self.noisy[i] else None
        made = self._made.get(key)
        if made is None:
            limit, sample = self.limit(fact, i), self.sample(fact, i, a, b)
            if self.noisy[i]:
                copied = self._has_copies and self.copied[i, [arm for arm, _ in sample.weights]].any()
                made = not copied and self.exceeds(i, sample, limit, alpha)
            else:
                slack = self._slack(i, limit)
                is_strict = fact in (BEATS, BELOW, VIOLATES, CLEARS)
                made = sample.mean > limit + slack if is_strict else sample.mean >= limit - slack
            if len(self._made) >= MOST_KEPT:
                self._made.clear()
            self._made[key] = made
        return made

    def lead(self, fact: str, i: int, a: int, b: int | None) -> float:
        """By how many standard errors it seems so."""
        if b is not None:
            return float(self.contrasts(fact, i).leads[a, b])
        sample = self.sample(fact, i, a, b)
        beyond = sample.mean - self.limit(fact, i)
        return beyond / sample.se if sample.se > 0 else math.copysign(math.inf, beyond) if beyond else 0.0

    def seem(self) -> tuple[Vector, Vector]:
        """(m, K, K) and (m, K): by how much one is ahead of another, and of its limit."""
        leads = np.zeros((self.n_objectives, self.n_arms, self.n_arms))
        near = np.zeros((self.n_objectives, self.n_arms))
        for i in range(self.n_objectives):
            leads[i] = self._beyond(LEADS, i, self.contrasts(LEADS, i).means)
            np.fill_diagonal(leads[i], 0.0)
            if self.is_limit[i]:
                means = [self.sample(NEARS, i, a, None).mean for a in range(self.n_arms)]
                near[i] = self._beyond(NEARS, i, np.array(means))
        return leads, near

    def _beyond(self, fact: str, i: int, means: Vector) -> Vector:
        limit = self.limit(fact, i)
        beyond = means - limit
        if not self.noisy[i]:
            beyond[np.abs(beyond) <= self._slack(i, limit)] = 0.0
        return beyond

    def _slack(self, i: int, limit: float) -> float:
        """How far numbers that are equal as written may be apart."""
        return float(max(map(abs, self._ends[i])) + abs(limit)) * (1e-12 if self.as_list else 2**-50)

    def _lines_of(self, objective: Objective) -> dict[str, float]:
        """What a difference, or an arm's mean, must exceed: in the unit, or as a share of a mean.

        A list that is complete decides a limit as written: it has no inner line of its own.
        """
        tie, width, inner = objective.tolerance_settings  # up to the margin; of a limit, the slack
        low = objective.sign * (objective.limit or 0.0)
        if self.as_list and inner is not None:
            width, inner = 0.0, low
        half = 0.0 if self.as_list else width / 2
        return {
            BEATS: tie,
            HOLDS: -width if inner is not None else -objective.margin_in_unit,
            CLEARS: width if inner is not None else objective.margin_in_unit,
            TIES: -tie,
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
            better = a if fact in (BEATS, LEADS, CLEARS) else b
            of = better if objective.is_of_best else self.table.arms.index(str(objective.reference))
            weights[of] = weights.get(of, 0.0) - objective.sign * self._lines[i][fact]
        return tuple(weights.items())

    def sample(self, fact: str, i: int, a: int, b: int | None) -> Sample:
        """What the claim is about."""
        weights = self._weights(fact, i, a, b)
        if b is None or self._is_clustered(i):
            key = i, weights, self._as_seen(fact, i)
            if key not in self._samples:
                if len(self._samples) * len(self.table.seen) > BLOCK * 20:
                    self._samples.clear()
                self._samples[key] = self._sample(*key)
            return self._samples[key]
        found, as_seen = self.contrasts(fact, i), self._as_seen(fact, i)
        mean, sd, n = found.means[a, b].item(), found.sds[a, b].item(), found.counts[a, b].item()
        return Sample(
            lambda: np.sort(self._values(i, weights, as_seen)),
            mean,
            sd,
            *self._span(i, weights),
            weights,
            n,
            size=self._size(i, weights),
        )

    def _size(self, i: int, weights: tuple[tuple[int, float], ...]) -> float:
        """How large the numbers are that a contrast is computed from."""
        return float(sum(abs(w) * self._largest[i, x] for x, w in weights))

    def _as_seen(self, fact: str, i: int) -> bool:
        """Whether what is missing is left out; elsewhere it counts as its worst."""
        is_seen = fact in (LEADS, NEARS, SEEN) or self.table.low is self.table.seen
        return is_seen or self.table.kinds[i] is Statistic.QUANTILE

    def _is_clustered(self, i: int) -> bool:
        return self.table.clusters is not None and self.noisy[i]

    def _span(self, i: int, weights: tuple[tuple[int, float], ...]) -> tuple[float, float]:
        """What a value of a contrast can be."""
        least, most = self._ends[i]
        low, high = (
            float(sum(w * (end if w > 0 else other) for _, w in weights))
            for end, other in ((least, most), (most, least))
        )
        return low, high

    def _values(self, i: int, weights: tuple[tuple[int, float], ...], as_seen: bool) -> Vector:
        """The values of a contrast, in the order of the items."""
        table = self.table
        if not self.noisy[i] and not self.as_list:  # one value an arm
            return np.array([sum(w * np.nanmax(table.seen[:, x, i]) for x, w in weights)])
        low, high = (table.seen, table.seen) if as_seen else (table.low, table.high)
        values = np.sum([w * (low if w > 0 else high)[:, x, i] for x, w in weights], axis=0)
        return np.asarray(values[~np.isnan(values)])

    def _sample(self, i: int, weights: tuple[tuple[int, float], ...], as_seen: bool) -> Sample:
        table, values = self.table, self._values(i, weights, as_seen)
        size = self._size(i, weights)
        sd = fixed_sample.spread(values, size)
        mean, (least, most) = float(values.mean()), self._span(i, weights)
        if table.clusters is None or not self.noisy[i]:
            ordered = np.sort(values)
            return Sample(lambda: ordered, mean, sd, least, most, weights, len(values), size=size)
        low, high = (table.seen, table.seen) if as_seen else (table.low, table.high)
        there = ~np.isnan(np.sum([(low if w > 0 else high)[:, x, i] for x, w in weights], axis=0))
        codes = np.unique(table.clusters[there], return_inverse=True)[1]
        sums, sizes = np.bincount(codes, values), np.bincount(codes).astype(np.float64)
        sd = fixed_sample.spread(sums - mean * sizes, 2 * size * sizes.max()) / float(sizes.mean())
        totals = sums.astype(np.float64)
        return Sample(lambda: values, mean, sd, least, most, weights, len(totals), totals, sizes, size)

    # --- all pairs, in blocks

    def contrasts(self, fact: str, i: int) -> Contrasts:
        """What all claims of two arms on an objective rest on."""
        if (fact, i) not in self._contrasts:
            self._contrasts[fact, i] = self._all_contrasts(fact, i)
        return self._contrasts[fact, i]

    def _all_contrasts(self, fact: str, i: int) -> Contrasts:
        """A claim of another fact may rest on the same contrasts."""
        K, limit, is_share = self.n_arms, self.limit(fact, i), self.table.objectives[i].is_relative
        for other, j in () if is_share else [*self._contrasts]:
            if j == i and self._as_seen(other, i) == self._as_seen(fact, i):
                found = self._contrasts[other, i]
                return found._replace(leads=_leads(found.means, found.sds, found.counts, limit))
        means, sds, counts = np.zeros((K, K)), np.zeros((K, K)), np.ones((K, K), np.int64)
        everybody = np.arange(K)
        for a in watched(f"comparing {self.table.objectives[i].name}", range(K)):
            means[a], sds[a], counts[a] = self.moments(fact, i, np.full(K, a), everybody)
        leads = _leads(means, sds, counts, limit)
        return Contrasts(means, sds, counts, leads, np.full((K, K), math.nan))

    def moments(
        self, fact: str, i: int, a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> tuple[Vector, Vector, NDArray[np.int64]]:
        """Means, deviations and numbers of pairs of arms: those of `_sample`, to the bit."""
        means, sds, counts = np.zeros(a.size), np.zeros(a.size), np.ones(a.size, np.int64)
        if self._is_clustered(i):
            for k in np.flatnonzero(a != b):
                found = self._sample(i, self._weights(fact, i, int(a[k]), int(b[k])), self._as_seen(fact, i))
                means[k], sds[k], counts[k] = found.mean, found.sd, found.n
            return means, sds, counts
        for rows, values, sizes in self._of_pairs(fact, i, a, b):
            n = values.shape[1]
            means[rows], counts[rows] = values.mean(axis=1), n
            if n > 1:
                sd = values.std(axis=1, ddof=1)
                sds[rows] = np.where(sd > sizes * ROUNDING * math.sqrt(n), sd, 0.0)
        return means, sds, counts

    def _of_pairs(
        self, fact: str, i: int, a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> Iterator[tuple[NDArray[np.int64], Vector, Vector]]:
        """Which pairs have as many values in common, these (pairs, n), and how large an arm's are."""
        own, other, third, more = self.weights_of_pairs(fact, i, a, b)
        sizes = np.abs(own) * self._largest[i, a] + np.abs(other) * self._largest[i, b]
        sizes = np.where(more != 0, sizes + np.abs(more) * self._largest[i, third], sizes)
        if not self.noisy[i] and not self.as_list:
            most = np.nanmax(self._columns[i], axis=1)
            values = own * most[a] + other * most[b]
            values = np.where(more != 0, values + more * most[third], values)
            yield np.arange(a.size), values[:, None], sizes
            return
        low, high = (self._columns[i],) * 2 if self._as_seen(fact, i) else self._far_columns[i]
        for start in range(0, a.size, max(1, BLOCK // low.shape[1])):
            part = slice(start, start + max(1, BLOCK // low.shape[1]))
            values = own[part, None] * np.where((own[part] > 0)[:, None], low[a[part]], high[a[part]])
            values += other[part, None] * np.where((other[part] > 0)[:, None], low[b[part]], high[b[part]])
            if (extra := np.flatnonzero(more[part])).size:
                w, x = more[part][extra], third
                values[extra] += w[:, None] * np.where((w > 0)[:, None], low[x], high[x])
            there = ~np.isnan(values)
            common = there.sum(axis=1)
            for n in np.unique(common[common > 0]):
                rows = np.flatnonzero(common == n)
                yield start + rows, values[rows][there[rows]].reshape(-1, n), sizes[start + rows]

    def weights_of_pairs(
        self, fact: str, i: int, a: NDArray[np.int64], b: NDArray[np.int64]
    ) -> tuple[Vector, Vector, int, Vector]:
        """`_weights` of many pairs: of a, of b, and of a third arm, 0 where there is none."""
        own, other, more, third = np.ones(a.size), np.full(a.size, -1.0), np.zeros(a.size), 0
        objective = self.table.objectives[i]
        if objective.is_relative and fact != SEEN:
            part = objective.sign * self._lines[i][fact]
            if objective.is_of_best:
                if fact in (BEATS, LEADS, CLEARS):
                    own -= part
                else:
                    other -= part
            else:
                third = self.table.arms.index(str(objective.reference))
                own[a == third] -= part
                other[(b == third) & (a != third)] -= part
                more[(a != third) & (b != third)] -= part
        return own, other, third, more

    @cached_property
    def _far_columns(self) -> list[tuple[Vector, Vector]]:
        """Per objective (K, n) the least and the most that values can be."""
        ends = self.table.low, self.table.high
        return [
            (np.ascontiguousarray(ends[0][:, :, i].T), np.ascontiguousarray(ends[1][:, :, i].T))
            for i in range(self.n_objectives)
        ]

    def _quantiles_of(self, i: int, sample: Sample) -> tuple[Vector, Vector]:
        """The values of two arms whose quantiles are compared."""
        (a, _), (b, _) = sample.weights
        mine, other = self.table.low[:, a, i], self.table.high[:, b, i]
        known = ~np.isnan(mine + other)  # of those that count as their worst, all
        return mine[known], other[known]

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
        if kind is Statistic.QUANTILE and len(sample.weights) == 2:
            share = objective.quantile or 0.0
            share = share if objective.sign > 0 else 1 - share
            return fixed_sample.by_quantiles(*self._quantiles_of(i, sample), share, b, alpha)
        if sample.sums is not None and sample.sizes is not None:
            most = self.table.largest_cluster or int(sample.sizes.max())
            sums = np.sort(sample.sums - b * sample.sizes)
            size = (sample.size + abs(b)) * float(sample.sizes.max())
            sample = Sample(
                lambda: sums,
                sums.mean(),
                fixed_sample.spread(sums, size),
                most * (sample.low - b),
                most * (sample.high - b),
                sample.weights,
                n,
                size=size,
            )
            b, kind = 0.0, Statistic.BOUNDED if kind is Statistic.BINARY else kind
        if kind.is_normal:
            return fixed_sample.by_student(n, sample.mean, sample.sd, b, alpha)
        if kind is Statistic.SYMMETRIC:
            return fixed_sample.by_flips(sample.values, b, alpha, sample.size)
        if kind is Statistic.SUB_GAUSSIAN:
            return fixed_sample.by_chernoff(n, sample.mean, self.scale(i, sample), b, alpha)
        if kind is Statistic.BINARY and len(sample.weights) == 1:
            ones = round(float((sample.values - sample.low).sum()))
            return fixed_sample.by_binomial(ones, n, b - sample.low, alpha)
        if kind is Statistic.BINARY and not self.table.is_paired:
            (a, _), (other, _) = sample.weights
            columns = self.table.low[:, a, i], self.table.high[:, other, i]
            own, others = (np.abs(column[~np.isnan(column)]) for column in columns)
            if own.size * others.size <= MOST_CELLS:
                counts = [(int(values.sum()), values.size) for values in (own, others)]
                if objective.sign < 0:  # values are 0 and −1
                    counts = [(size - ones, size) for ones, size in counts]
                return fixed_sample.by_binomials(*counts[0], *counts[1], b, alpha)
        if kind is Statistic.BINARY:
            values = sample.values
            n10, n01 = int((values > 0).sum()), int((values < 0).sum())
            return fixed_sample.by_pairs(n10, n01, n, b, alpha)
        needed = -HOPELESS * special.ndtri(alpha)
        if b > sample.low and (sample.mean - b) * math.sqrt(n) < needed * sample.sd:
            return False
        return fixed_sample.by_betting(sample.values, b, sample.low, sample.high, alpha)

    def scale(self, i: int, sample: Sample) -> float:
        """The scale of a contrast of sub-Gaussian values."""
        sizes = [abs(weight) for _, weight in sample.weights]
        scale = self.table.objectives[i].scale
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
        steps = OFFSETS * objective.tolerance_settings.resolution
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

    def doubts(self, fact: str, i: int, a: int, b: int | None, alpha: float) -> Iterator[Flag]:
        """Flags of a claim that was made, always in this order."""
        table, kind = self.table, self.table.kinds[i]
        if not self.noisy[i]:
            return
        sizes = self.sample(fact, i, a, b).sizes
        unequal = sizes is not None and bool(sizes.max() > sizes.min())
        unlike = kind is Statistic.GAUSSIAN and unequal
        unlike |= kind in SKEWABLE and table.repeats[1] > 2 * table.repeats[0]
        if kind is Statistic.FINITE_VARIANCE or unlike:
            yield Flag.ASYMPTOTIC
        if kind in SKEWABLE:
            edge = fixed_sample.edge_of_student(*self.skewness(fact, i, a, b), alpha)
            if kind is Statistic.SYMMETRIC:
                edge = max(edge, fixed_sample.edge_of_flips(self._centred(fact, i, a, b), alpha))
            if self.lead(fact, i, a, b) < edge:
                yield Flag.SKEWED
        if kind is Statistic.GAUSSIAN and any(self._repeated[i, x] for x in (a, b) if x is not None):
            yield Flag.REPEATED_VALUES
        if kind is Statistic.SYMMETRIC and b is not None and self._prevails[i, a, b]:
            yield Flag.REPEATED_VALUES
        if (
            kind in (Statistic.BINARY, Statistic.BOUNDED)
            and table.clusters is not None
            and table.largest_cluster is None
        ):
            yield Flag.CLUSTER_SIZE

    def skewness(self, fact: str, i: int, a: int, b: int | None) -> tuple[int, float]:
        """The number and the skewness of what a claim is about."""
        if b is not None and not self._is_clustered(i):
            found = self.skewnesses(fact, i, np.array([a]), np.array([b]))
            return self.contrasts(fact, i).counts[a, b].item(), found[0].item()
        values = self._centred(fact, i, a, b)
        return len(values), fixed_sample.skewness(values)

    def skewnesses(self, fact: str, i: int, a: NDArray[np.int64], b: NDArray[np.int64]) -> Vector:
        """Of pairs of arms, found once."""
        known = self.contrasts(fact, i).skewnesses
        new = np.flatnonzero(np.isnan(known[a, b]))
        if new.size and self._is_clustered(i):
            known[a[new], b[new]] = [self.skewness(fact, i, int(a[k]), int(b[k]))[1] for k in new]
        elif new.size:
            for rows, values, _ in self._of_pairs(fact, i, a[new], b[new]):
                known[a[new[rows]], b[new[rows]]] = _skewnesses(np.sort(values, axis=1))
        return np.asarray(known[a, b])

    def _centred(self, fact: str, i: int, a: int, b: int | None) -> Vector:
        """What a claim is about, as one value per independent unit."""
        sample = self.sample(fact, i, a, b)
        if sample.sizes is None or sample.sums is None:
            return sample.values
        return sample.sums - sample.mean * sample.sizes

    @cached_property
    def copied(self) -> NDArray[np.bool_]:
        """(m, K) the arms whose values seem to be copies of few measurements: nothing is claimed of them."""
        table, found = self.table, np.zeros((self.n_objectives, self.n_arms), np.bool_)
        for i, kind in enumerate(table.kinds):
            if self.noisy[i] and kind is not Statistic.BINARY:
                values = (table.low if kind is Statistic.QUANTILE else table.seen)[:, :, i]
                if table.clusters is not None:
                    values = _of_clusters(values, table.clusters)
                ends = self._ends[i] if table.objectives[i].is_bounded else (-math.inf, math.inf)
                found[i] = copied_arms(values, *ends, table.is_paired)
        return found

    @cached_property
    def lasting_flags(self) -> set[Flag]:
        """The flags that some claim may have and that no number of items lifts."""
        table, found = self.table, {Flag.COPIED_VALUES} if self._has_copies else set()
        for i, kind in enumerate(table.kinds):
            if self.noisy[i] and (kind is Statistic.FINITE_VARIANCE or table.clusters is not None):
                found |= {Flag.ASYMPTOTIC, Flag.CLUSTER_SIZE}
            if self.noisy[i] and kind is Statistic.GAUSSIAN:
                found |= {Flag.ASYMPTOTIC} if table.repeats[1] > 2 * table.repeats[0] else set()
                found |= {Flag.REPEATED_VALUES} if self._repeated[i].any() else set()
            if self.noisy[i] and kind is Statistic.SYMMETRIC:
                found |= {Flag.ASYMPTOTIC} if table.repeats[1] > 2 * table.repeats[0] else set()
                found |= {Flag.REPEATED_VALUES} if self._prevails[i].any() else set()
        return found

    @cached_property
    def _has_copies(self) -> bool:
        return bool(self.copied.any())

    @cached_property
    def _repeated(self) -> NDArray[np.bool_]:
        """(m, K) whether one value makes up clearly more than a twentieth of an arm's."""
        found = np.zeros((self.n_objectives, self.n_arms), np.bool_)
        for i, a in np.ndindex(found.shape):
            values = self.table.seen[:, a, i]
            found[i, a] = one_value_returns(values[~np.isnan(values)])
        return found

    @cached_property
    def _prevails(self) -> NDArray[np.bool_]:
        """(m, K, K) whether one difference of two arms makes up clearly more than half of all."""
        found = np.zeros((self.n_objectives, self.n_arms, self.n_arms), np.bool_)
        for i, a, b in np.ndindex(found.shape):
            if self.table.kinds[i] is not Statistic.SYMMETRIC or b >= a:
                continue
            differences = self.table.seen[:, a, i] - self.table.seen[:, b, i]
            size = float(self._largest[i, a] + self._largest[i, b])
            found[i, [a, b], [b, a]] = one_difference_prevails(differences[~np.isnan(differences)], size)
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


def _leads(means: Vector, sds: Vector, counts: NDArray[np.int64], limit: float) -> Vector:
    """By how many standard errors means exceed a limit."""
    beyond, se = means - limit, sds / np.sqrt(counts)
    sure = np.where(beyond == 0, 0.0, np.copysign(math.inf, beyond))
    return np.where(se > 0, beyond / np.where(se > 0, se, 1.0), sure)


def _skewnesses(values: Vector) -> Vector:
    """Of each row."""
    centred = values - values.mean(axis=1, keepdims=True)
    spread = (centred**2).mean(axis=1)
    return np.where(spread > 0, (centred**3).mean(axis=1) / np.where(spread > 0, spread, 1.0) ** 1.5, 0.0)
