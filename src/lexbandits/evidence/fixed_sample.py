"""What values prove whose number was fixed before anybody looked: one claim, "the mean exceeds b".

Each test claims that with probability at most alpha if it is not so. docs/proofs.md, section 7. Where another
probability is unknown, a test takes the worst over a confidence set of it (Berger and Boos 1994, *JASA* 89).
"""

import hashlib
import math
from functools import lru_cache, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lexbandits._arrays import Vector
from lexbandits.evidence.moments import ROUNDING

SPARED = 1 / 50  # of alpha, for where the rarer outcome's probability may lie (Lemma E2)
ROUNDS = 40  # of halving cells, until a claim is given up
AIM = 1.6  # the gambler of Lemma E3 wants AIM/alpha
ORDERS, FEWEST_ORDERS, VALUES_IN_ALL = 64, 8, 2_000_000
STEPS = 500  # at which stakes are set anew, at most
CAREFUL = 0.99  # of what may be staked without ruin
CONTENT, RUINED = 0.999, 1e-6  # at which a gambler stops
PRIOR = 10.0  # values that the guess of a variance counts for
SKEW_SEEN, SKEW_UNSEEN = 0.9, 2.1  # how much of a sample's skewness counts, and what it may have missed
FLIPS_AT_LEVEL = 50  # of the flips that are tried, so many may do as well: more power is not worth the time
HOPELESS = 0.5  # of the normal quantile: no flipping below it
FEWEST_BITS, MOST_BITS = 12, 20  # of the number of flips
HADAMARD = reduce(np.kron, [np.array([[1.0, 1.0], [1.0, -1.0]])] * 4)
ASYMMETRY_SEEN = 1.5  # standard errors of a skewness that count
RESAMPLES, RESAMPLED = 100, 1000  # and values in each, at most
SPARED_PLACE = 1 / 10  # of alpha, for where a quantile may lie (Lemma E5)


def spread(values: Vector, size: float) -> float:
    """The standard deviation of values that were computed from numbers as large as `size`.

    0 if it may be all rounding. Numbers that are equal as written are then equal, and where the spread
    counts, rounding moves Student's t by less than 1/16.
    """
    n = values.size
    sd = float(values.std(ddof=1)) if n > 1 else 0.0
    return sd if sd > size * ROUNDING * math.sqrt(n) else 0.0


def by_student(n: int, mean: float, sd: float, b: float, alpha: float) -> bool:
    """Normal values of unknown variance. Values that are all equal prove nothing: normal ones never are."""
    return bool(n > 1 and sd > 0 and (mean - b) * math.sqrt(n) / sd >= student_quantile(n, alpha))


@lru_cache(maxsize=4096)
def student_quantile(n: int, alpha: float) -> float:
    """What Student's t of n values exceeds with probability alpha."""
    return float(-special.stdtrit(n - 1, alpha))


def by_chernoff(n: int, mean: float, scale: float, b: float, alpha: float) -> bool:
    """Sub-Gaussian values of a known scale."""
    return n > 0 and mean - b >= scale * math.sqrt(2 * math.log(1 / alpha) / n)


def by_binomial(k: int, n: int, b: float, alpha: float) -> bool:
    """k of n values are 1, the others 0."""
    return k > n * b and (b <= 0 or bool(special.bdtrc(k - 1, n, b) <= alpha))


def edge_of_student(n: Vector | int, skewness: Vector | float, alpha: float) -> Any:
    """Return how many standard errors beyond its limit a claim by Student is safe from skewness.

    A long tail towards the limit makes Student claim too often, and a sample that misses the tail looks
    symmetric. So the tail is taken as longer than it was seen, by SKEW_UNSEEN/sqrt(n): a sample's skewness is
    off by sqrt(6/n). What that does to Student's quantile t, Edgeworth's term in t/sqrt(n) says near the
    centre; the exponential follows the true quantiles further out. `benchmarks/judging.py --skewness` has its
    sizes.
    """
    t, root = -special.stdtrit(np.asarray(n) - 1, alpha), np.sqrt(n)
    longer = SKEW_UNSEEN / root - SKEW_SEEN * np.asarray(skewness)
    return t * np.exp(np.clip(longer * t / root, 0.0, 99.0))


# --- symmetric values: Lemma E7


def by_flips(values: Vector, b: float, alpha: float, size: float = 0.0) -> bool:
    """Values that are symmetric about their mean, computed from numbers as large as `size`.

    Flip their signs about b by the elements of a group: all flips of few values, else those that a drawn
    code generates (any subgroup will do: Hemerik and Goeman 2018, *TEST* 27). Of equally likely signs the sum
    is among the largest of the group's with probability at most alpha. A Walsh-Hadamard transform has the
    sums of all its elements.
    """
    gaps = values - b
    gaps[np.abs(gaps) <= ROUNDING * (size + abs(b))] = 0.0
    gaps = gaps[gaps != 0.0]
    gaps = gaps[np.argsort(np.abs(gaps), kind="stable")]  # whatever their signs
    if gaps.size == 0 or gaps.sum() <= 0.0 or 0.5**gaps.size > alpha:
        return False
    if gaps.sum() < -HOPELESS * special.ndtri(alpha) * math.sqrt(float((gaps * gaps).sum())):
        return False
    bits = min(MOST_BITS, max(FEWEST_BITS, math.ceil(math.log2(FLIPS_AT_LEVEL / alpha))))
    if gaps.size <= bits:
        bits = gaps.size
        codes = 2 ** np.arange(bits)
    else:  # drawn from the sizes alone, so that signs, if they are equally likely, remain so
        sizes = np.abs(gaps).astype("<f8").tobytes()
        codes = np.random.default_rng(list(hashlib.sha256(sizes).digest())).integers(2**bits, size=gaps.size)
    close = 1e-12 * float(np.abs(gaps).sum())
    for some in (max(0, bits - 4), bits):  # a few of the flips often show that too many do as well
        merged: Any = np.bincount(codes % 2**some, gaps, 2**some)
        sums = _all_flips(merged, some)
        if np.count_nonzero(sums >= sums[0] - close) > alpha * 2**bits:
            return False
    return True


def _all_flips(sums: Vector, bits: int) -> Vector:
    """A fast Walsh-Hadamard transform, four bits at a time: each turn brings the next ones to the end.

    What was the sum of some gaps becomes, for each element of the group, the sum of all with its signs.
    """
    for bit in range(0, bits, 4):
        size = 2 ** min(4, bits - bit)
        sums = (HADAMARD[:size, :size] @ sums.reshape(-1, size).T).ravel()
    return sums


def edge_of_flips(values: Vector, alpha: float) -> float:
    """Return how many standard errors beyond its limit a claim by flips is safe from the asymmetry seen.

    0 unless a tail towards the limit looks longer, by ASYMMETRY_SEEN standard errors.
    """
    if min(asymmetry(values)) >= -ASYMMETRY_SEEN:
        return 0.0
    t = float(-special.stdtrit(values.size - 1, alpha))
    return t * math.exp(min(99.0, max(0.0, -skewness(values)) * t / math.sqrt(values.size)))


def asymmetry(values: Vector) -> tuple[float, float]:
    """Return two measures of skewness in their standard errors: of the third moment, and of the bulk.

    The first scales itself, so that one value far out is no asymmetry. The second compares both sides of the
    median whatever the tails are, and takes its standard error from resamples.
    """
    x = values - values.mean()
    spread = math.sqrt(float((x * x).mean()))
    if values.size < 3 or not spread > 0.0:
        return 0.0, 0.0
    x /= spread
    parts = x * x * x - 3.0 * x  # a mean that is off moves the third power as well
    third = float(parts.sum()) / math.sqrt(float((parts * parts).sum()))
    some = x if x.size <= RESAMPLED else x[np.linspace(0, x.size - 1, RESAMPLED).astype(np.int64)]
    drawn = np.random.default_rng(0).integers(some.size, size=(RESAMPLES, some.size))
    error = float(_sides(some[drawn]).std())
    return third, float(_sides(some[None, :])[0]) / error if error > 0.0 else 0.0


def _sides(rows: Vector) -> Vector:
    """(rows,) how much more lies above the median than below it, large deviations counting as one."""
    off = rows - np.median(rows, axis=1, keepdims=True)
    scale = np.median(np.abs(off), axis=1, keepdims=True)
    scale = np.where(scale > 0.0, scale, np.maximum(np.abs(off).mean(axis=1, keepdims=True), 1e-300))
    return np.asarray(np.tanh(off / scale).mean(axis=1))


def skewness(values: Vector) -> float:
    """Return the third central moment over the cube of the standard deviation; 0 of equal values."""
    centred = values - values.mean()
    spread = float((centred**2).mean())
    return float((centred**3).mean()) / spread**1.5 if spread > 0 else 0.0


# --- pairs of 0/1 values: Lemma E2


@lru_cache(maxsize=2**15)
def by_pairs(n10: int, n01: int, n: int, b: float, alpha: float) -> bool:
    """n pairs of 0/1 values: the first alone is 1 in n10 of them, the second alone in n01."""
    if b <= -1:
        return b < -1 or n01 < n
    if n10 - n01 <= n * b:
        return False
    goal = alpha * (1 - SPARED)
    least, most = max(0.0, -b), (1 - b) / 2
    score, likely = (float(found[0]) for found in _score(np.array([n10]), np.array([n01]), n, b))
    tail = alpha * SPARED / 2
    low = 0.0 if n01 == 0 else float(special.betaincinv(n01, n - n01 + 1, tail))
    high = 1.0 if n01 == n else float(special.betaincinv(n01 + 1, n - n01, 1 - tail))
    edges = np.linspace(min(max(low, least), most), min(max(high, least), most), 9)
    spread = math.sqrt(n * max(likely * (1 - likely), 1 / n))
    region = _Region(score - 1e-9, n, b, edges[0], edges[-1], alpha)
    if region.chance(np.array([likely + b]), np.array([likely]), 1, least=True)[0] > goal:
        return False
    return region.is_rare(b, edges, spread, goal)


def _score(n10: NDArray[Any], n01: NDArray[Any], n: int, b: float) -> tuple[Vector, Vector]:
    """Tango's score of p10 − p01 = b, which rises in n10 and falls in n01, and p01 as estimated for it."""
    half = n10 * (1 + b) + n01 * (1 - b) - 2 * n * b
    root = np.sqrt(np.maximum(half * half + 8 * n * n01 * b * (1 - b), 0.0))
    likely = np.clip((half + root) / (4 * n), max(0.0, -b), (1 - b) / 2)
    variance = n * (2 * likely + b - b * b)
    lead = n10 - n01 - n * b
    return np.where(variance > 0, lead / np.sqrt(np.maximum(variance, 1e-300)), 0.0), likely


class _Region:
    """The counts (n10, n01) whose score is at least `sought`: an up-set, by its least n10 for every n01."""

    def __init__(self, sought: float, n: int, b: float, low: float, high: float, alpha: float) -> None:
        self.n, far = n, -special.ndtri(alpha / 1000)
        ends = [n * q + side * (far * math.sqrt(n * q * (1 - q)) + 9) for q, side in ((low, -1), (high, 1))]
        first, last = max(0, int(ends[0])), min(n, int(ends[1]))
        k = np.arange(first, last + 1)
        below, above = np.zeros_like(k), n - k + 1
        while (below < above).any():
            middle = (below + above) // 2
            enough = _score(middle, k, n, b)[0] >= sought
            below, above = np.where(enough, below, middle + 1), np.where(enough, middle, above)
        # rounding may spoil that `above` rises with k: outwards, as a smaller region would be less probable
        above = np.where(above > n - k, n + 1, above)
        self.k, self.needed = k, np.minimum.accumulate(above[::-1])[::-1]

    def is_rare(self, b: float, edges: Vector, spread: float, goal: float) -> bool:
        """Whether it has a probability of at most `goal` under all (q + b, q), q between the edges."""
        left, right = edges[:-1], edges[1:]
        for turn in range(ROUNDS):
            step = max(1, int(spread / 8 / 4 ** (turn // 2)))
            wide = self.chance(self.capped(right + b, left), left, step) > goal  # bounds the whole cell
            if not wide.any():
                return True
            left, right = left[wide], right[wide]
            middle = (left + right) / 2
            if (self.chance(middle + b, middle, step, least=True) > goal).any():
                return False
            left, right = np.r_[left, middle], np.r_[middle, right]
        return False

    def capped(self, q10: Vector, q01: Vector) -> Vector:
        """The first of two chances that go together."""
        return np.minimum(q10, 1 - q01)

    def given(self, q10: Vector, q01: Vector, k: NDArray[Any]) -> tuple[Vector, NDArray[Any]]:
        """Of how many N10 is one, given N01 = k, and with which chance each."""
        return np.clip(q10 / np.maximum(1 - q01, 1e-300), 0.0, 1.0), self.n - k

    def chance(self, q10: Vector, q01: Vector, step: int, least: bool = False) -> Vector:
        """At most (or at least) how probable the region is; its n01 are taken `step` at a time.

        Given n01 the region's probability falls in n01: the first of a block bounds it from above.
        """
        starts = np.arange(0, self.k.size, step)
        shown = np.minimum(starts + step, self.k.size) - 1 if least else starts
        k, needed = self.k[shown], self.needed[shown]
        q10, q01 = q10[:, None], q01[:, None]
        p, room = self.given(q10, q01, k)
        inside = (needed >= 1) & (needed <= room)
        a, z = np.where(inside, needed, 1), np.where(inside, room - needed + 1, 1)
        tail = np.where(inside, special.betainc(a, z, p), needed < 1)
        ends = np.append(self.k[starts] - 1, self.k[-1])
        up_to = np.where(ends < 0, 0.0, special.bdtr(np.maximum(ends, 0), self.n, q01))
        total = (np.diff(up_to) * tail).sum(axis=1)
        beyond = up_to[:, 0] + (1 - up_to[:, -1]) * tail[:, -1]
        return np.asarray(total if least else total + beyond + 1e-12)


# --- 0/1 values of two arms that nothing pairs: Lemma E6


def by_binomials(k: int, n: int, k_other: int, n_other: int, b: float, alpha: float) -> bool:
    """k of n values of an arm are 1, and k_other of n_other of another, which it is to exceed by b."""
    if b <= -1:
        return b < -1 or k > 0 or k_other < n_other
    if k / n - k_other / n_other <= b:
        return False
    least, most, tail = max(0.0, -b), min(1.0, 1 - b), alpha * SPARED / 2
    low = 0.0 if k_other == 0 else float(special.betaincinv(k_other, n_other - k_other + 1, tail))
    high = 1.0 if k_other == n_other else float(special.betaincinv(k_other + 1, n_other - k_other, 1 - tail))
    edges = np.linspace(min(max(low, least), most), min(max(high, least), most), 9)
    likely = k_other / n_other
    spread = math.sqrt(n_other * max(likely * (1 - likely), 1 / n_other))
    return _Apart(k, n, k_other, n_other, b).is_rare(b, edges, spread, alpha * (1 - SPARED))


class _Apart(_Region):
    """The counts of two arms whose difference is as far above b as the one seen, and all beyond these."""

    def __init__(self, k: int, n: int, k_other: int, n_other: int, b: float) -> None:
        self.n, self.own, self.k = n_other, n, np.arange(n_other + 1)
        rank = _standardised(n, n_other, b)
        enough = rank >= rank[k, k_other] - 1e-9
        needed = np.where(enough.any(axis=0), enough.argmax(axis=0), n + 1)
        self.needed = np.minimum.accumulate(needed[::-1])[::-1]

    def capped(self, q10: Vector, q01: Vector) -> Vector:
        return np.minimum(q10, 1.0)

    def given(self, q10: Vector, q01: Vector, k: NDArray[Any]) -> tuple[Vector, NDArray[Any]]:
        return np.clip(q10, 0.0, 1.0), np.full_like(k, self.own)


@lru_cache(maxsize=4)
def _standardised(n: int, n_other: int, b: float) -> Vector:
    """(n + 1, n_other + 1) how far two shares differ by more than b, by the deviation where they differ by b.

    −∞ where they differ by less. Any other ranking of the counts would do: it decides what is found.
    """
    k, k_other = np.arange(n + 1)[:, None], np.arange(n_other + 1)
    other = np.clip((k + k_other - n * b) / (n + n_other), max(0.0, -b), min(1.0, 1 - b))
    own = other + b
    variance = own * (1 - own) / n + other * (1 - other) / n_other + 1 / (n + n_other) ** 2
    lead = k / n - k_other / n_other - b
    return np.where(lead > 0, lead / np.sqrt(variance), -math.inf)


# --- bounded values: Lemma E3


def by_betting(values: Vector, b: float, low: float, high: float, alpha: float) -> bool:
    """Sorted values of at least `low`; `high` only guides the stakes.

    A gambler bets on "more than b" in each of many drawn orders, towards AIM/alpha at the last value.
    """
    if b < low:
        return True
    if b == low:
        return bool(values[-1] > low)  # a mean of low means all values are
    if b >= high or values.mean() <= b:
        return False
    n, orders = values.size, _orders(values.size)
    wealth = np.full(orders.shape[1], alpha / AIM)  # in units of what is aimed at
    squares = np.full(orders.shape[1], PRIOR * ((high - low) / 8) ** 2)
    block = -(-n // STEPS)
    for start in range(0, n, block):
        gains = values[orders[start : start + block]] - b
        d = special.ndtri(np.minimum(wealth, CONTENT))
        left = 2 * math.pi * (n - start) * squares / (PRIOR + start)
        stakes = np.minimum(np.exp(-0.5 * d * d) / (wealth * np.sqrt(left)), CAREFUL / (b - low))
        stakes[(wealth >= CONTENT) | (wealth <= RUINED)] = 0.0
        wealth = wealth * (1 + stakes * gains).prod(axis=0)
        squares += (gains * gains).sum(axis=0)
        if start // block % 16 == 15:
            if AIM * wealth[wealth >= CONTENT].sum() >= wealth.size:
                return True  # they have stopped: it is sure
            if not stakes.any():
                break
    return bool(AIM * wealth.mean() >= 1)


@lru_cache(maxsize=4)
def _orders(n: int) -> NDArray[np.int64]:
    """(n, orders) drawn without regard to any value: sorted values in such an order are independent again."""
    orders = max(FEWEST_ORDERS, min(ORDERS, VALUES_IN_ALL // n))
    drawn = np.random.default_rng(0).permuted(np.tile(np.arange(n), (orders, 1)), axis=1)
    return np.ascontiguousarray(drawn.T)


# --- quantiles of paired values: Lemma E5


def by_quantiles(a: Vector, b: Vector, p: float, limit: float, alpha: float) -> bool:
    """Whether "the p-quantile of a is more than that of b + limit" is claimed.

    Wherever b's quantile q may lie, more pairs have a above q + limit and b below q than the other way round,
    by the sign test. It is enough to look where q is a value of b or of a − limit.
    """
    n, spare = b.size, alpha * SPARED_PLACE
    k = np.arange(n)
    first = int((special.bdtr(k, n, p) <= spare / 2).sum())  # order statistics, counted from 1
    last = int((special.bdtrc(k, n, p) > spare / 2).sum()) + 1
    if first < 1 or last > n:
        return False
    both = np.concatenate([b, a - limit])
    order = np.argsort(both, kind="stable")
    distinct = np.diff(both[order]) > 1e-12 * np.abs(both).max()
    place = np.empty(2 * n, np.int64)
    place[order] = np.concatenate([[0], np.cumsum(distinct)])
    below, above = place[:n], place[n:]
    is_won, size = above > below, int(place.max()) + 2
    won, lost = (
        np.cumsum(np.bincount(start, minlength=size) - np.bincount(end, minlength=size))
        for start, end in ((below[is_won] + 1, above[is_won]), (above[~is_won], below[~is_won] + 1))
    )
    ends = np.sort(below)[[first - 1, last - 1]]
    won, lost = (counts[ends[0] : ends[1] + 1] for counts in (won, lost))
    return bool((special.bdtrc(won - 1, won + lost, 0.5) <= alpha - spare).all())


def fewest_for_quantile(p: float, alpha: float) -> int:
    """With how many values the p-quantile can lie between two of them, at the level that is spared."""
    return math.ceil(math.log(alpha * SPARED_PLACE / 2) / math.log(max(p, 1 - p)))
