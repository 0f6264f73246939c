"""Forecast how many new items would settle a question, from those that were judged.

New tables of every size are drawn by their means alone, and each is asked which claims it would make. Whether
it is settled follows from them as in a verdict: at the same levels, and with the same flags.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lexbandits._arrays import Vector
from lexbandits.evidence import fixed_sample
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.judging.claims import BEATS, HOLDS, SKEWABLE, Claims, Sample
from lexbandits.judging.scheme import (
    Claim,
    Need,
    Refutation,
    Shares,
    by_others,
    direct,
    of_limits,
    others_count,
    plug_in,
    shares_of,
    switch_levels,
)
from lexbandits.judging.table import Statistic, Table
from lexbandits.outcomes import Flag
from lexbandits.study.measure.progress import watched

SCENARIOS = 50  # draws of the true means, besides those that were seen
FUTURES = 100  # new tables of each
SETTLED = 0.8  # of them
CAUTIOUS = 0.65  # of the scenarios need no more: estimates from few items are off, mostly it takes more
MOST = 10**8  # items
FAR = 100  # times the number: where it may lie has no other end
BETTING = 1.25  # items that a claim by betting takes, in those of a normal one
AROUND, RARER = 0.55, 5.0  # standard errors by which the edge of a claim about a quantile is further off
GRID = [2 ** (k / 2) for k in range(2, 54)]  # items that are tried
MOST_KNOWN = 20_000  # claims of all tables that are remembered: 100 MB
APPROXIMATE = Flag.ASYMPTOTIC

PAIRS = 100  # pairs of arms whose claims in all tables are made together
Arms = NDArray[np.int64]
Made = NDArray[np.bool_]  # (1 + SCENARIOS, FUTURES)


class Needed(NamedTuple):
    """How many new items settle it in 8 of 10 cases, where that may lie, and what stands in the way.

    `why` is a flag that no number of items lifts. Without a number it may be "beyond", if what is asked about
    seems unacceptable, or "edge", if a difference lies, or may well lie, where nothing can be claimed.
    """

    items: int | None = None
    ends: tuple[int | None, int | None] | None = None
    why: str | None = None


def items_needed(
    claims: Claims,
    leads: Vector,
    near: Vector,
    alpha: float,
    *,
    base: int | None = None,
    candidate: int | None = None,
    is_complete: bool = False,
) -> Needed:
    """Forecast how many items (clusters, or rows of each arm) give a certificate in 8 of 10 cases.

    `is_complete` says that the table made all claims, and flags took its certificate away.
    """
    future = _Future(claims)
    scenarios = [
        plug_in(claims, leads + off[:, :, None] - off[:, None, :], near + off, first=base or 0)
        for off in future.off
    ]
    answers = {x for x, _, _ in scenarios} | ({base} if base is not None else set())
    tried = sorted(answers) if candidate is None else [candidate]

    def settled(n: float) -> Made:
        found = np.zeros((SCENARIOS + 1, FUTURES), np.bool_)
        for x in tried:
            good = future.proven(n, x, alpha)
            if base is not None and x != base:
                good = good & future.better(n, switch_levels(claims, x, base, alpha))
            found = found | good
        return found

    can_be_approximate = base is None and not (is_complete and future.n >= LARGE_SAMPLE)
    no_number = "edge" if candidate is None and base is None else "beyond"
    return _forecast(future, settled, no_number, can_be_approximate)


def items_for_gate(claims: Claims, routes: list[list[Need]]) -> Needed:
    """Forecast how many items settle a gate in 8 of 10 cases: all claims of some route are then made."""
    future = _Future(claims)

    def settled(n: float) -> Made:
        found = np.zeros((SCENARIOS + 1, FUTURES), np.bool_)
        for route in routes:
            found |= future.all_made(n, iter(route))
        return found

    return _forecast(future, settled, "edge", False)


def _forecast(
    future: "_Future", settled: Callable[[float], Made], no_number: str, can_be_approximate: bool
) -> Needed:
    needed, why = _first(settled), None
    if math.isinf(needed[0]) and future.blocked:
        why = next(iter(sorted(future.blocked - {APPROXIMATE})), APPROXIMATE)
        future.unblock()
        needed = _first(settled)
        if math.isfinite(needed[0]) and not (why == APPROXIMATE and can_be_approximate):
            return Needed(why=why)
        needed = np.maximum(needed, LARGE_SAMPLE)
    if math.isinf(needed[0]):
        return Needed(why=no_number)
    cautious, *sides = np.quantile(needed, (CAUTIOUS, 0.1, 0.9), method="nearest")
    low, high = (None if math.isinf(end) else math.ceil(end) for end in sides)
    if math.isinf(cautious):
        return Needed(ends=(low, None), why="edge")
    items = math.ceil(max(needed[0], cautious))
    high = None if high is None or high > FAR * items else max(high, items)
    return Needed(items, (low, high), why)


def _first(settled: Callable[[float], Made]) -> Vector:
    """(1 + SCENARIOS,) the least number of items with which SETTLED of a scenario's tables are settled."""
    found = np.full(SCENARIOS + 1, math.inf)
    can = settled(MOST).mean(axis=1) >= SETTLED
    share, last = np.zeros(SCENARIOS + 1), 1.0
    for n in watched("forecasting", GRID):
        if not (can & np.isinf(found)).any():
            break
        before, share = share, settled(n).mean(axis=1)
        new = can & np.isinf(found) & (share >= SETTLED)
        back = np.clip((share - SETTLED) / np.maximum(share - before, 1e-9), 0, 1)
        found[new] = (n * (last / n) ** back)[new]
        last = n
    return found


class _Spread(NamedTuple):
    """What is known of claims of one kind: deviations, numbers of values, skewnesses."""

    sds: Vector
    counts: NDArray[np.int64]
    skewnesses: Vector


class _Future:
    """Which claims new tables would make, in each of some scenarios that may be the true one.

    A scenario's means are off from those that were seen; the first one's are not.
    """

    def __init__(self, claims: Claims) -> None:
        self.claims, self.n = claims, _fewest(claims.table)
        rng, root = np.random.default_rng(0), _root(claims.table)
        shape = claims.n_objectives, claims.n_arms
        drawn = rng.standard_normal((SCENARIOS + FUTURES, len(root))) @ root
        self.off = np.concatenate(
            [np.zeros((1, *shape)), drawn[:SCENARIOS].reshape(-1, *shape) / math.sqrt(self.n)]
        )
        self.luck = drawn[SCENARIOS:].reshape(-1, *shape)
        self.of_spread, self.of_skewness = rng.standard_normal((2, FUTURES))
        self.blocks, self.blocked = True, set[str]()
        self._marks = claims.lasting_flags  # that any claim may have
        self._flags: dict[Claim, set[Flag]] = {}
        self._known: dict[tuple[Claim, float], Made] = {}
        self._columns: dict[tuple[int, float], tuple[set[int], Arms, NDArray[np.int64] | None]] = {}
        self._known_of = self._columns_of = 0.0

    def unblock(self) -> None:
        """Make claims whatever their flags."""
        self.blocks, self._known, self._columns = False, {}, {}

    def proven(self, n: float, x: int, alpha: float) -> Made:
        """Whether `scheme.proof_of` would be complete."""
        found = self._refuted(n, x, alpha)
        limits = (self.all_made(n, of_limits(self.claims, x, alpha, closest=way)) for way in (False, True))
        return found & np.logical_or(*limits) if any(self.claims.is_limit) and found.any() else found

    def _refuted(self, n: float, x: int, alpha: float) -> Made:
        """Whether of every need of a proof a way is made.

        Most rivals are refuted in all tables by one claim, which is seen of all of them together. Arrays of
        tables are made for the others alone.
        """
        claims, found = self.claims, np.ones((SCENARIOS + 1, FUTURES), np.bool_)
        shares = [shares_of(claims, i) for i in range(claims.n_objectives)]
        arms = np.array([y for y in range(claims.n_arms) if y != x], np.int64)
        own = np.zeros((claims.n_objectives, claims.n_arms), np.bool_)
        for i, share in enumerate(shares):
            own[i, arms] = self._made_by_all(n, HOLDS, i, np.full_like(arms, x), arms, share.own * alpha)[0]
        for y in range(claims.n_arms):
            for i in range(claims.n_objectives) if y != x else ():
                self._note(x, y, i)
                if own[i, y]:
                    continue
                made = self.one_made(n, direct(claims, x, y, i, shares[i], alpha))
                if others_count(claims, i) and (found & ~made).any():
                    made = made | self._by_thirds(n, x, y, shares[i].third * alpha)
                found &= made
                if not found.any():
                    return found
        return found

    def _by_thirds(self, n: float, x: int, y: int, level: float) -> Made:
        """In which tables an arm besides x is better than y on the first objective."""
        if n != self._columns_of:
            self._columns, self._columns_of = {}, n
        if (y, level) not in self._columns:
            arms = np.array([z for z in range(self.claims.n_arms) if z != y], np.int64)
            sure, some = self._made_by_all(n, BEATS, 0, arms, np.full_like(arms, y), level)
            self._columns[y, level] = {*arms[sure].tolist()}, arms[some], None
        by_all, by_some, counts = self._columns[y, level]
        if by_all - {x}:
            return np.ones((SCENARIOS + 1, FUTURES), np.bool_)
        if counts is None:
            counts = self._count(n, BEATS, 0, by_some, np.full_like(by_some, y), level)
            self._columns[y, level] = by_all, by_some, counts
        return np.asarray(counts > (self._made(n, (BEATS, 0, x, y), level) if x in by_some else 0))

    def _made_by_all(
        self, n: float, fact: str, i: int, a: Arms, b: Arms, alpha: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of pairs of arms, whether all tables make a claim, and whether any does."""
        if not self._is_plain(i):
            made = [
                self._made(n, (fact, i, *pair), alpha) for pair in zip(a.tolist(), b.tolist(), strict=True)
            ]
            return np.array([one.all() for one in made]), np.array([one.any() for one in made])
        lead, luck, edge = self._parts(n, fact, i, a, b, alpha)
        sides = lead.min(axis=0), lead.max(axis=0)
        return (sides[0] + luck >= edge).all(axis=0), (sides[1] + luck >= edge).any(axis=0)

    def _count(self, n: float, fact: str, i: int, a: Arms, b: Arms, alpha: float) -> NDArray[np.int64]:
        """Of how many pairs of arms each table makes a claim."""
        found = np.zeros((SCENARIOS + 1, FUTURES), np.int64)
        if not self._is_plain(i):
            for pair in zip(a.tolist(), b.tolist(), strict=True):
                found += self._made(n, (fact, i, *pair), alpha)
            return found
        for start in range(0, a.size, PAIRS):
            part = slice(start, start + PAIRS)
            lead, luck, edge = self._parts(n, fact, i, a[part], b[part], alpha)
            found += (lead[:, None] + luck >= edge).sum(axis=2)
        return found

    def _is_plain(self, i: int) -> bool:
        """Whether claims of two arms are about values item by item."""
        return self.claims.noisy[i] and self.claims.table.clusters is None

    def _parts(
        self, n: float, fact: str, i: int, a: Arms, b: Arms, alpha: float
    ) -> tuple[Vector, Vector, Vector]:
        """How far pairs of arms are beyond a limit per scenario, each table's luck, and what they must be.

        What is never claimed must be infinitely far.
        """
        claims, contrasts = self.claims, self.claims.contrasts(fact, i)
        own, other, third, more = claims.weights_of_pairs(fact, i, a, b)
        off, luck = (
            own * drawn[:, i, a] + other * drawn[:, i, b] + more * drawn[:, i, [third]]
            for drawn in (self.off, self.luck)
        )
        lead, luck = contrasts.means[a, b] - claims.limit(fact, i) + off, luck / math.sqrt(n)
        never = (lead <= 0).all(axis=0)
        if self.blocks and self._marks:
            pairs = zip(a.tolist(), b.tolist(), strict=True)
            never |= np.array([bool(self._lasting((fact, i, *pair))) for pair in pairs])
        is_skewed = claims.table.kinds[i] in SKEWABLE
        skewnesses = claims.skewnesses(fact, i, a, b) if is_skewed else np.zeros(a.size)
        of = _Spread(contrasts.sds[a, b], contrasts.counts[a, b], skewnesses)
        edge = np.empty((FUTURES, a.size))
        for weights in {*zip(own.tolist(), other.tolist(), more.tolist(), strict=True)}:
            like = np.flatnonzero((own == weights[0]) & (other == weights[1]) & (more == weights[2]))
            sample = claims.sample(fact, i, int(a[like[0]]), int(b[like[0]]))
            part = _Spread(of.sds[like], of.counts[like], of.skewnesses[like])
            edge[:, like] = self._edge(n, fact, i, sample, part, alpha)
        return lead, luck, np.where(never, math.inf, edge)

    def _note(self, x: int, y: int, i: int) -> None:
        """Note the flags of all claims that would refute y on i."""
        if not self.blocks or self._marks <= self.blocked:
            return
        shares = Shares(0.0, 0.0, 0.0, 0.0)
        for way, _ in chain(
            direct(self.claims, x, y, i, shares, 1.0), by_others(self.claims, x, y, i, shares, 1.0)
        ):
            for claim in way:
                if self.claims.noisy[claim[1]]:
                    self.blocked |= self._lasting(claim)

    def all_made(self, n: float, needs: Iterator[Need]) -> Made:
        """Whether of every need a way is made."""
        found = np.ones((SCENARIOS + 1, FUTURES), np.bool_)
        for _, _, ways in needs:
            found &= self.one_made(n, ways)
            if not found.any():
                break
        return found

    def one_made(self, n: float, ways: Iterable[Refutation]) -> Made:
        """Whether all claims of one of the ways are made."""
        found = np.zeros((SCENARIOS + 1, FUTURES), np.bool_)
        for way, level in ways:
            if found.all() and not self._marks:
                break
            found |= np.logical_and.reduce([self.made(n, claim, level) for claim in way])
        return found

    def better(self, n: float, levels: list[tuple[list[Refutation], Refutation]]) -> Made:
        """Whether `scheme.is_better` would say so."""
        found = np.zeros((SCENARIOS + 1, FUTURES), np.bool_)
        so_far = ~found
        for holds, beats in levels:
            so_far = so_far & self.one_made(n, holds)
            found |= so_far & self.one_made(n, [beats])
        return found

    def made(self, n: float, claim: Claim, alpha: float) -> Made:
        """Which tables of n items make a claim that no flag takes away."""
        if n != self._known_of or len(self._known) >= MOST_KNOWN:
            self._known, self._known_of = {}, n
        if (claim, alpha) not in self._known:
            if self.blocks and self.claims.noisy[claim[1]]:
                self.blocked |= self._lasting(claim)
            self._known[claim, alpha] = self._made(n, claim, alpha)
        return self._known[claim, alpha]

    def _made(self, n: float, claim: Claim, alpha: float) -> Made:
        claims, (fact, i, _, _) = self.claims, claim
        if not claims.noisy[i]:
            return np.full((SCENARIOS + 1, FUTURES), claims.says(*claim, alpha))
        sample, flags = claims.sample(*claim), self._lasting(claim)
        off = np.sum([weight * self.off[:, i, x] for x, weight in sample.weights], axis=0)
        lead = sample.mean - claims.limit(fact, i) + off
        if (flags and self.blocks) or (lead <= 0).all():
            return np.zeros((SCENARIOS + 1, FUTURES), np.bool_)
        luck = np.sum([weight * self.luck[:, i, x] for x, weight in sample.weights], axis=0) / math.sqrt(n)
        return np.asarray(lead[:, None] + luck >= self.edge(n, claim, alpha))

    def _lasting(self, claim: Claim) -> set[Flag]:
        """The flags of a claim that no number of items lifts."""
        if not self._marks:
            return self._marks
        if claim not in self._flags:
            flags = set(self.claims.doubts(*claim, alpha=0.5)) - {Flag.SKEWED}
            arms = [arm for arm, _ in self.claims.sample(*claim).weights]
            self._flags[claim] = flags | (
                {Flag.COPIED_VALUES} if self.claims.copied[claim[1], arms].any() else set()
            )
        return self._flags[claim]

    def edge(self, n: float, claim: Claim, alpha: float) -> Vector:
        """How far beyond its limit the mean of n items must be, in each table."""
        sample, (fact, i, _, _) = self.claims.sample(*claim), claim
        skewness = self.claims.skewness(*claim)[1] if self.claims.table.kinds[i] in SKEWABLE else math.nan
        of = _Spread(np.array([sample.sd]), np.array([sample.n]), np.array([skewness]))
        return np.asarray(self._edge(n, fact, i, sample, of, alpha)[..., 0])

    def _edge(self, n: float, fact: str, i: int, sample: Sample, of: _Spread, alpha: float) -> Vector:
        """(tables, claims), or (claims,) if it is the same in all; what they share is in `sample`."""
        table, z = self.claims.table, -float(special.ndtri(alpha))
        kind, limit = table.kinds[i], self.claims.limit(fact, i)
        size = np.full(of.sds.shape, n)
        if table.is_paired:  # of some items a value is missing
            size = np.maximum(2.0, n * of.counts / table.n_units)
        if kind is Statistic.QUANTILE:
            share = table.objectives[i].quantile or 0.0
            rarer = RARER / np.sqrt(size * min(share, 1 - share))
            edge = (z + AROUND + rarer) * of.sds / np.sqrt(size)
            return np.where(size < fixed_sample.fewest_for_quantile(share, alpha), math.inf, edge)
        if kind is Statistic.SUB_GAUSSIAN:
            return np.asarray(self.claims.scale(i, sample) * np.sqrt(2 * math.log(1 / alpha) / size))
        if kind is Statistic.FINITE_VARIANCE or kind in SKEWABLE:
            seen = of.skewnesses if kind in SKEWABLE else np.full(of.sds.shape, math.inf)
            seen = np.where(np.abs(seen) > 2.5 * np.sqrt(6 / of.counts), seen, 0.0)
            skewness = seen + self.of_skewness[:, None] * np.sqrt(6 / size)
            edge = fixed_sample.edge_of_student(np.maximum(2, np.rint(size)), skewness, alpha)
            return np.asarray(
                edge * of.sds / np.sqrt(size) * (1 + self.of_spread[:, None] / np.sqrt(2 * size))
            )
        if kind is Statistic.BINARY and sample.sizes is None:  # few pairs may hide how often arms differ
            sd = np.sqrt((of.sds**2 * (of.counts - 1) + len(sample.weights)) / (of.counts + 1))
            return np.asarray(z * sd / np.sqrt(size) + 1 / size)
        most = 1.0
        if sample.sizes is not None:
            most = (table.largest_cluster or float(sample.sizes.max())) / float(sample.sizes.mean())
        far = (limit - sample.low) * most * math.log(1 / alpha)
        return np.asarray((far + np.sqrt(far * far + 4 * BETTING * size * (z * of.sds) ** 2)) / (2 * size))


def _fewest(table: Table) -> int:
    """How many items, or clusters, the means rest on: without items the rows of the smallest arm."""
    if table.is_paired:
        return table.n_units
    return int((~np.isnan(table.seen)).sum(axis=0).min())


def _root(table: Table) -> Vector:
    """Return the symmetric root (mK, mK) of the covariance of an item's values; unpaired arms share nothing.

    It is unique. Eigenvectors alone are not: their signs, and so the draws, would depend on the processor.
    """
    seen = table.seen.transpose(0, 2, 1)  # (n, m, K)
    there = ~np.isnan(seen)
    units = np.where(there, seen - np.nanmean(seen, axis=0), 0.0)
    if table.is_paired:
        units *= len(units) / there.sum(axis=0)  # what is missing makes a mean less precise
    else:
        units *= np.sqrt(len(units) / there.sum(axis=0))
    units = units.reshape(len(units), -1)
    if table.clusters is not None:
        summed = np.zeros((table.n_units, units.shape[1]))
        np.add.at(summed, table.clusters, units)
        units = summed * (table.n_units / len(units))
    spread = units.T @ units / len(units)
    if not table.is_paired:
        arms = np.tile(np.arange(len(table.arms)), len(table.objectives))
        spread *= arms[:, None] == arms
    values, vectors = np.linalg.eigh(spread)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)
