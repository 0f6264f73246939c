"""Forecast how many new items would settle a question, from those that were judged.

New tables of every size are drawn by their means alone, and each is asked which claims it would make. Whether
it is settled follows from them as in a verdict: at the same levels, and with the same flags.
"""

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lexbandits.arrays import Vector
from lexbandits.evidence import once
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.judging.claims import Claims, Sample
from lexbandits.judging.scheme import Claim, Need, Way, of_limits, plug_in, rows, switch_levels
from lexbandits.judging.table import Table
from lexbandits.study.measure.progress import watched

WORLDS = 50  # draws of the true means, besides those that were seen
FUTURES = 100  # new tables of each
SETTLED = 0.8  # of them
CAUTIOUS = 0.65  # of the worlds need no more: estimates from few items are off, mostly it takes more
MOST = 10**8  # items
FAR = 100  # times the number: where it may lie has no other end
BETTING = 1.25  # items that a claim by betting takes, in those of a normal one
AROUND, RARER = 0.55, 5.0  # standard errors by which the edge of a claim about a quantile is further off
GRID = [2 ** (k / 2) for k in range(2, 54)]  # items that are tried
APPROXIMATE = "large-sample"

Made = NDArray[np.bool_]  # (1 + WORLDS, FUTURES)


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
    named: int | None = None,
    is_complete: bool = False,
) -> Needed:
    """Forecast how many items (clusters, or rows of each arm) give a certificate in 8 of 10 cases.

    `is_complete` says that the table made all claims, and flags took its certificate away.
    """
    future = _Future(claims)
    worlds = [
        plug_in(claims, leads + off[:, :, None] - off[:, None, :], near + off, first=base or 0)
        for off in future.off
    ]
    answers = {x for x, _, _ in worlds} | ({base} if base is not None else set())
    tried = sorted(answers) if named is None else [named]

    def settled(n: float) -> Made:
        found = np.zeros((WORLDS + 1, FUTURES), np.bool_)
        for x in tried:
            good = future.proven(n, x, alpha)
            if base is not None and x != base:
                good = good & future.better(n, switch_levels(claims, x, base, alpha))
            found = found | good
        return found

    needed, why = _first(settled), None
    if math.isinf(needed[0]) and future.blocked:
        why = next(iter(sorted(future.blocked - {APPROXIMATE})), APPROXIMATE)
        future.unblock()
        needed = _first(settled)
        is_answer = why == APPROXIMATE and base is None and not (is_complete and future.n >= LARGE_SAMPLE)
        if math.isfinite(needed[0]) and not is_answer:
            return Needed(why=why)
        needed = np.maximum(needed, LARGE_SAMPLE)
    if math.isinf(needed[0]):
        return Needed(why="edge" if named is None and base is None else "beyond")
    cautious, *sides = np.quantile(needed, (CAUTIOUS, 0.1, 0.9), method="nearest")
    low, high = (None if math.isinf(end) else math.ceil(end) for end in sides)
    if math.isinf(cautious):
        return Needed(ends=(low, None), why="edge")
    items = math.ceil(max(needed[0], cautious))
    return Needed(items, (low, high if high is None or high <= FAR * items else None), why)


def _first(settled: Callable[[float], Made]) -> Vector:
    """(1 + WORLDS,) the least number of items with which SETTLED of a world's tables are settled."""
    found = np.full(WORLDS + 1, math.inf)
    can = settled(MOST).mean(axis=1) >= SETTLED
    share, last = np.zeros(WORLDS + 1), 1.0
    for n in watched("forecasting", GRID):
        if not (can & np.isinf(found)).any():
            break
        before, share = share, settled(n).mean(axis=1)
        new = can & np.isinf(found) & (share >= SETTLED)
        back = np.clip((share - SETTLED) / np.maximum(share - before, 1e-9), 0, 1)
        found[new] = (n * (last / n) ** back)[new]
        last = n
    return found


class _Future:
    """Which claims new tables would make, in each of some worlds that may be the true one.

    A world's means are off from those that were seen; the first one's are not.
    """

    def __init__(self, claims: Claims) -> None:
        self.claims, self.n = claims, _fewest(claims.table)
        rng, root = np.random.default_rng(0), _root(claims.table)
        shape = claims.n_objectives, claims.n_arms
        drawn = rng.standard_normal((WORLDS + FUTURES, len(root))) @ root
        self.off = np.concatenate(
            [np.zeros((1, *shape)), drawn[:WORLDS].reshape(-1, *shape) / math.sqrt(self.n)]
        )
        self.luck = drawn[WORLDS:].reshape(-1, *shape)
        self.of_spread, self.of_skewness = rng.standard_normal((2, FUTURES))
        self.blocks, self.blocked = True, set[str]()
        self._flags: dict[Claim, set[str]] = {}
        self._known: dict[tuple[Claim, float], Made] = {}
        self._known_of = 0.0

    def unblock(self) -> None:
        """Make claims whatever their flags."""
        self.blocks, self._known = False, {}

    def proven(self, n: float, x: int, alpha: float) -> Made:
        """Whether `scheme.proof_of` would be complete."""
        found = self.all_made(n, rows(self.claims, x, alpha))
        limits = (self.all_made(n, of_limits(self.claims, x, alpha, closest=way)) for way in (False, True))
        return found & np.logical_or(*limits) if any(self.claims.is_limit) and found.any() else found

    def all_made(self, n: float, needs: Iterator[Need]) -> Made:
        """Whether of every need a way is made."""
        found = np.ones((WORLDS + 1, FUTURES), np.bool_)
        for _, _, ways in needs:
            found &= self.one_made(n, ways)
            if not found.any():
                break
        return found

    def one_made(self, n: float, ways: list[Way]) -> Made:
        """Whether all claims of one of the ways are made."""
        found = np.zeros((WORLDS + 1, FUTURES), np.bool_)
        for way, level in ways:
            found |= np.logical_and.reduce([self.made(n, claim, level) for claim in way])
        return found

    def better(self, n: float, levels: list[tuple[list[Way], Way]]) -> Made:
        """Whether `scheme.is_better` would say so."""
        found = np.zeros((WORLDS + 1, FUTURES), np.bool_)
        so_far = ~found
        for holds, beats in levels:
            so_far = so_far & self.one_made(n, holds)
            found |= so_far & self.one_made(n, [beats])
        return found

    def made(self, n: float, claim: Claim, alpha: float) -> Made:
        """Which tables of n items make a claim that no flag takes away."""
        if n != self._known_of:
            self._known, self._known_of = {}, n
        if (claim, alpha) not in self._known:
            self._known[claim, alpha] = self._made(n, claim, alpha)
        return self._known[claim, alpha]

    def _made(self, n: float, claim: Claim, alpha: float) -> Made:
        claims, (fact, i, _, _) = self.claims, claim
        if not claims.noisy[i]:
            return np.full((WORLDS + 1, FUTURES), claims.says(*claim, alpha))
        sample, flags = claims.sample(*claim), self._lasting(claim)
        off = np.sum([weight * self.off[:, i, x] for x, weight in sample.weights], axis=0)
        lead = sample.mean - claims.limit(fact, i) + off
        if flags and self.blocks:
            self.blocked |= flags
        if (flags and self.blocks) or (lead <= 0).all():
            return np.zeros((WORLDS + 1, FUTURES), np.bool_)
        luck = np.sum([weight * self.luck[:, i, x] for x, weight in sample.weights], axis=0) / math.sqrt(n)
        return np.asarray(lead[:, None] + luck >= self._edge(n, claim, sample, alpha))

    def _lasting(self, claim: Claim) -> set[str]:
        """The flags of a claim that no number of items lifts."""
        if claim not in self._flags:
            flags = set(self.claims.doubts(*claim, alpha=0.5)) - {"skewed"}
            arms = [arm for arm, _ in self.claims.sample(*claim).weights]
            self._flags[claim] = flags | (
                {"copied values"} if self.claims.copied[claim[1], arms].any() else set()
            )
        return self._flags[claim]

    def _edge(self, n: float, claim: Claim, sample: Sample, alpha: float) -> Vector | float:
        """How far beyond its limit the mean of n items must be."""
        table, (fact, i, _, _), z = self.claims.table, claim, -float(special.ndtri(alpha))
        kind, limit = table.kinds[i], self.claims.limit(fact, i)
        if table.is_paired:  # of some items a value is missing
            n = max(2.0, n * sample.n / table.n_units)
        if kind == "quantile":
            share = table.objectives[i].quantile or 0.0
            if n < once.fewest_for_quantile(share, alpha):
                return math.inf
            return (z + AROUND + RARER / math.sqrt(n * min(share, 1 - share))) * sample.sd / math.sqrt(n)
        if kind == "sub_gaussian":
            return self.claims.scale(i, sample) * math.sqrt(2 * math.log(1 / alpha) / n)
        if kind in ("gaussian", "finite_variance"):
            seen = self.claims.skewness(*claim)[1] if kind == "gaussian" else math.inf
            noise = math.sqrt(6 / sample.n)
            skewness = (seen if abs(seen) > 2.5 * noise else 0.0) + self.of_skewness * math.sqrt(6 / n)
            edge = once.edge_of_student(max(2, round(n)), skewness, alpha)
            return np.asarray(edge * sample.sd / math.sqrt(n) * (1 + self.of_spread / math.sqrt(2 * n)))
        if kind == "binary" and sample.sizes is None:  # few pairs may hide how often arms differ
            sd = math.sqrt((sample.sd**2 * (sample.n - 1) + len(sample.weights)) / (sample.n + 1))
            return z * sd / math.sqrt(n) + 1 / n
        most = 1.0
        if sample.sizes is not None:
            most = (table.largest_cluster or float(sample.sizes.max())) / float(sample.sizes.mean())
        far = (limit - sample.low) * most * math.log(1 / alpha)
        return (far + math.sqrt(far * far + 4 * BETTING * n * (z * sample.sd) ** 2)) / (2 * n)


def _fewest(table: Table) -> int:
    """How many items, or clusters, the means rest on: without items the rows of the smallest arm."""
    if table.is_paired:
        return table.n_units
    return int((~np.isnan(table.seen)).sum(axis=0).min())


def _root(table: Table) -> Vector:
    """(mK, mK) a root of the covariance of an item's values; without items arms share nothing."""
    seen = table.seen.transpose(0, 2, 1)  # (n, m, K)
    there = ~np.isnan(seen)
    units = np.where(there, seen - np.nanmean(seen, axis=0), 0.0)
    if table.is_paired:
        units *= len(units) / there.sum(axis=0)  # what is missing makes a mean less certain
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
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))).T)
