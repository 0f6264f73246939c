"""Ordinary 95 % intervals of a mean, a share, a quantile or a difference: a picture, never the guarantee.

They know nothing of margins, of other arms or of how often anybody looked. Student for means (Welch without
pairs), Wilson (1927) and Newcombe (1998) for 0/1, order statistics for quantiles.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lexbandits._arrays import Vector

CONFIDENCE = 0.95
FEWEST = 3  # values, or clusters of them
TAIL = (1 - CONFIDENCE) / 2
Z = -float(special.ndtri(TAIL))


class Interval(NamedTuple):
    """The ends; an end that the values do not bound is infinite."""

    low: float
    high: float

    def within(self, low: float, high: float) -> "Interval":
        """Return it cut to what is possible."""
        return Interval(max(self.low, low), min(self.high, high))


def hull(*found: Interval | None) -> Interval | None:
    """Return the smallest interval that contains all; None if one is missing.

    >>> hull(Interval(0.1, 0.3), Interval(0.2, 0.5))
    Interval(low=0.1, high=0.5)
    """
    known = [each for each in found if each is not None]
    if len(known) < len(found):
        return None
    return Interval(min(each.low for each in known), max(each.high for each in known))


def of_mean(
    values: Vector, *, clusters: NDArray[np.int64] | None = None, items: float = math.inf
) -> Interval | None:
    """Return Student's interval of a mean; None for fewer than three values, or for a list that is complete.

    Args:
        values: one per item, or paired differences.
        clusters: the cluster of each value; their sums are then what varies (a ratio estimate).
        items: the length of the list that these are drawn from, without replacement.

    >>> low, high = of_mean(np.array([4.0, 5.0, 6.0]))
    >>> round(low, 2), round(high, 2)
    (2.52, 7.48)
    """
    n, mean, parts = values.size, float(values.mean()) if values.size else math.nan, values
    if clusters is not None and n:
        codes = np.unique(clusters, return_inverse=True)[1]
        sizes = np.bincount(codes)
        parts = (np.bincount(codes, values) - mean * sizes) / sizes.mean()
        n = sizes.size
    if n < FEWEST or values.size >= items:
        return None
    se = float(parts.std(ddof=1)) / math.sqrt(n) * math.sqrt(1 - values.size / items)
    half = -float(special.stdtrit(n - 1, TAIL)) * se
    return Interval(mean - half, mean + half)


def of_share(ones: int, n: int, *, items: float = math.inf) -> Interval | None:
    """Return Wilson's interval of a share, `ones` of `n`.

    Of a list of `items` it is that of as many draws with replacement as have the same variance.

    >>> low, high = of_share(81, 263)
    >>> round(low, 4), round(high, 4)
    (0.2553, 0.3662)
    """
    if n < FEWEST or n >= items:
        return None
    worth = n if math.isinf(items) else n * (items - 1) / (items - n)
    share = ones / n
    middle = (share + Z * Z / (2 * worth)) / (1 + Z * Z / worth)
    half = Z * math.sqrt(share * (1 - share) / worth + (Z / (2 * worth)) ** 2) / (1 + Z * Z / worth)
    # at 0 and 1 an end is that very number, which rounding must not hide
    return Interval(0.0 if ones == 0 else middle - half, 1.0 if ones == n else middle + half)


def of_two_means(values: Vector, others: Vector) -> Interval | None:
    """Return Welch's interval of the difference of two means whose values nothing pairs."""
    sizes = values.size, others.size
    if min(sizes) < FEWEST:
        return None
    parts = [float(each.var(ddof=1)) / each.size for each in (values, others)]
    mean, var = float(values.mean() - others.mean()), sum(parts)
    if var == 0:
        return Interval(mean, mean)
    freedom = var**2 / sum(part**2 / (size - 1) for part, size in zip(parts, sizes, strict=True))
    half = -float(special.stdtrit(freedom, TAIL)) * math.sqrt(var)
    return Interval(mean - half, mean + half)


def of_two_shares(ones: int, n: int, other_ones: int, other_n: int) -> Interval | None:
    """Return Newcombe's interval of the difference of two shares that nothing pairs (1998a, method 10).

    >>> low, high = of_two_shares(56, 70, 48, 80)
    >>> round(low, 4), round(high, 4)
    (0.0524, 0.3339)
    """
    shares = ones / max(1, n), other_ones / max(1, other_n)
    return _combined(shares[0], of_share(ones, n), shares[1], of_share(other_ones, other_n))


def of_paired_shares(
    both: int, first: int, second: int, neither: int, *, items: float = math.inf
) -> Interval | None:
    """Return Newcombe's interval of a difference of paired shares (1998b, method 10).

    Args:
        both: how often both are 1.
        first: how often only the first is.
        second: how often only the second is.
        neither: how often both are 0.
        items: the length of the list that these are drawn from, without replacement.

    >>> low, high = of_paired_shares(20, 12, 2, 16)
    >>> round(low, 4), round(high, 4)
    (0.0562, 0.3292)
    """
    n = both + first + second + neither
    ones, others = both + first, both + second
    cross, marginals = float(both * neither - first * second), ones * (n - ones) * others * (n - others)
    if cross > 0:  # corrected for continuity, towards no correlation
        cross = max(cross - n / 2, 0.0)
    phi = cross / math.sqrt(marginals) if marginals else 0.0
    found = of_share(ones, n, items=items), of_share(others, n, items=items)
    return _combined(ones / max(1, n), found[0], others / max(1, n), found[1], phi)


def _combined(
    mine: float, own: Interval | None, yours: float, other: Interval | None, correlation: float = 0.0
) -> Interval | None:
    """Return the interval of mine − yours from one of each: distances to the ends add as deviations do."""
    if own is None or other is None:
        return None

    def far(one: float, two: float) -> float:
        if math.isinf(one) or math.isinf(two):
            return math.inf
        return math.sqrt(max(0.0, one * one - 2 * correlation * one * two + two * two))

    difference = mine - yours
    return Interval(
        difference - far(mine - own.low, other.high - yours),
        difference + far(own.high - mine, yours - other.low),
    )


def of_quantile(values: Vector, share: float) -> Interval | None:
    """Return the interval of a quantile between two order statistics.

    The narrowest ranks that leave at most 2.5 % on each side; a side on which even the most extreme value
    does not is open.

    >>> of_quantile(np.arange(1.0, 101.0), 0.5)
    Interval(low=40.0, high=61.0)
    """
    n = values.size
    if n < FEWEST:
        return None
    ordered = np.sort(values)
    at_most = special.bdtr(np.arange(n), n, share)  # P(no more than 0, 1, … values are below the quantile)
    rank = int(np.searchsorted(at_most, TAIL, side="right"))
    last = int(np.searchsorted(at_most, 1 - TAIL, side="left"))
    low = float(ordered[rank - 1]) if rank > 0 else -math.inf
    return Interval(low, float(ordered[last]) if last < n else math.inf)


def of_two_quantiles(
    mine: float, values: Vector, yours: float, others: Vector, share: float
) -> Interval | None:
    """Return the interval of a difference of quantiles: those of both, combined as if nothing pairs them."""
    return _combined(mine, of_quantile(values, share), yours, of_quantile(others, share))


class Estimate(NamedTuple):
    """What is drawn of an arm or of a difference: its mean, its ordinary interval, and how many it rests on.

    `low` and `high` are None without an interval, and infinite where the values do not bound an end.
    """

    mean: float
    low: float | None
    high: float | None
    results: int

    @classmethod
    def of(cls, mean: float, found: Interval | None, results: int, bounds: tuple[float, float]) -> "Estimate":
        """Return a mean with its interval, cut to what is possible."""
        low, high = (None, None) if found is None else found.within(*bounds)
        return cls(mean, low, high, results)

    def times(self, sign: int) -> "Estimate":
        """Return it as measured where less is better, or the other way about."""
        if sign > 0:
            return self
        low, high = (None if end is None else -end + 0.0 for end in (self.high, self.low))
        return Estimate(-self.mean + 0.0, low, high, self.results)


def estimate_mean(
    values: Vector,
    *,
    is_binary: bool,
    clusters: NDArray[np.int64] | None = None,
    items: float = math.inf,
) -> Interval | None:
    """Return the interval of a mean: Wilson's of 0/1 values without clusters, else Student's."""
    if is_binary and clusters is None:
        return of_share(round(float(values.sum())), values.size, items=items)
    return of_mean(values, clusters=clusters, items=items)


def estimate_difference(
    values: Vector,
    others: Vector,
    *,
    is_binary: bool,
    is_paired: bool = True,
    clusters: NDArray[np.int64] | None = None,
    items: float = math.inf,
) -> Interval | None:
    """Return the interval of a difference: Newcombe's of 0/1 values without clusters, else Student's.

    Args:
        values: of one arm; with pairs, on the same items in the same order.
        others: of the other arm.
        is_binary: whether all are 0 or 1.
        is_paired: whether items pair them.
        clusters: the cluster of each pair.
        items: the length of the list that these are drawn from, without replacement.
    """
    if not is_binary or clusters is not None:
        if is_paired:
            return of_mean(values - others, clusters=clusters, items=items)
        return of_two_means(values, others)
    ones, theirs = round(float(values.sum())), round(float(others.sum()))
    if not is_paired:
        return of_two_shares(ones, values.size, theirs, others.size)
    both = round(float((values * others).sum()))
    neither = values.size - ones - theirs + both
    return of_paired_shares(both, ones - both, theirs - both, neither, items=items)
