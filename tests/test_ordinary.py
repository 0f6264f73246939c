"""Ordinary intervals: against scipy, textbook numbers, naive loops, and exact or simulated coverage."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, stats

import lexbandits as lb
from lexbandits.evidence import ordinary
from lexbandits.evidence.ordinary import Interval
from lexbandits.judging import table_means
from lexbandits.judging.table import table_of

# --- against others


@pytest.mark.parametrize("n", [3, 4, 17, 400])
def test_student_is_that_of_scipy(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.normal(3.0, 2.0, n), rng.exponential(1.0, n)
    for values in (a, b, a - b):
        expected = stats.ttest_1samp(values, 0.0).confidence_interval(0.95)
        assert ordinary.of_mean(values) == pytest.approx(tuple(expected))
    paired = stats.ttest_rel(a, b).confidence_interval(0.95)
    assert ordinary.estimate_difference(a, b, is_binary=False) == pytest.approx(tuple(paired))
    welch = stats.ttest_ind(a, b[: max(3, n // 2)], equal_var=False).confidence_interval(0.95)
    assert ordinary.of_two_means(a, b[: max(3, n // 2)]) == pytest.approx(tuple(welch))


@pytest.mark.parametrize("n", [3, 10, 263, 5000])
def test_wilson_is_that_of_scipy_and_inverts_the_score_test(n: int) -> None:
    for ones in sorted({0, 1, n // 3, n - 1, n}):
        found = ordinary.of_share(ones, n)
        assert found is not None
        expected = stats.binomtest(ones, n).proportion_ci(0.95, method="wilson")
        assert found == pytest.approx((expected.low, expected.high), abs=1e-12)
        assert 0.0 <= found.low <= ones / n <= found.high <= 1.0

        def score(p: float, ones: int = ones) -> float:
            return (ones / n - p) ** 2 - stats.norm.ppf(0.975) ** 2 * p * (1 - p) / n

        if 0 < ones < n:
            ends = optimize.brentq(score, 1e-12, ones / n), optimize.brentq(score, ones / n, 1 - 1e-12)
            assert found == pytest.approx(ends, abs=1e-9)


# Newcombe, Stat Med 17 (1998) 873–890, table II, method 10
TWO = [
    (56, 70, 48, 80, 0.0524, 0.3339),
    (9, 10, 3, 10, 0.1705, 0.8090),
    (6, 7, 2, 7, 0.0582, 0.8062),
    (5, 56, 0, 29, -0.0381, 0.1926),
    (0, 10, 0, 20, -0.1611, 0.2775),
    (0, 10, 0, 10, -0.2775, 0.2775),
    (10, 10, 0, 20, 0.6791, 1.0),
    (10, 10, 0, 10, 0.6075, 1.0),
]
# Newcombe, Stat Med 17 (1998) 2635–2650, method 10; Altman et al., Statistics with Confidence (2000), p. 52;
# Fagerland, Lydersen and Laake, Stat Med 33 (2014) 2850–2875
PAIRED = [
    (20, 12, 2, 16, 0.0562, 0.3292),
    (36, 12, 2, 0, 0.0569, 0.3404),
    (14, 5, 0, 22, 0.011, 0.226),
    (1, 1, 7, 12, -0.507, -0.026),
]


@pytest.mark.parametrize(("ones", "n", "others", "m", "low", "high"), TWO)
def test_newcombe_without_pairs_is_that_of_the_paper(
    ones: int, n: int, others: int, m: int, low: float, high: float
) -> None:
    assert ordinary.of_two_shares(ones, n, others, m) == pytest.approx((low, high), abs=5.1e-5)
    back = ordinary.of_two_shares(others, m, ones, n)
    assert back == pytest.approx((-high, -low), abs=5.1e-5)


@pytest.mark.parametrize(("both", "first", "second", "neither", "low", "high"), PAIRED)
def test_newcombe_of_pairs_is_that_of_the_paper(
    both: int, first: int, second: int, neither: int, low: float, high: float
) -> None:
    digits = 5.1e-5 if round(low, 3) != low else 5.1e-4
    found = ordinary.of_paired_shares(both, first, second, neither)
    assert found == pytest.approx((low, high), abs=digits)
    assert ordinary.of_paired_shares(both, second, first, neither) == pytest.approx((-high, -low), abs=digits)
    pairs = [(1, 1)] * both + [(1, 0)] * first + [(0, 1)] * second + [(0, 0)] * neither
    mine, yours = np.array(pairs, float).T
    assert ordinary.estimate_difference(mine, yours, is_binary=True) == found


def naive_clusters(values: np.ndarray, clusters: np.ndarray) -> tuple[float, float]:
    """The ratio of two totals, with the linearised variance of cluster totals."""
    mean, groups = sum(values) / len(values), sorted(set(clusters))
    sums = [sum(v - mean for v, c in zip(values, clusters, strict=True) if c == g) for g in groups]
    G = len(groups)
    centre = sum(sums) / G
    var = sum((s - centre) ** 2 for s in sums) / (G - 1)
    se = math.sqrt(var / G) / (len(values) / G)
    half = stats.t.ppf(0.975, G - 1) * se
    return mean - half, mean + half


def test_clusters_vary_by_their_sums() -> None:
    rng = np.random.default_rng(5)
    clusters = rng.integers(0, 9, 60)
    values = rng.normal(0, 1, 9)[clusters] + rng.normal(0, 0.2, 60)
    assert ordinary.of_mean(values, clusters=clusters) == pytest.approx(naive_clusters(values, clusters))
    equal = np.repeat(np.arange(12), 5)
    values = rng.normal(0, 1, 60)
    means = values.reshape(12, 5).mean(axis=1)
    assert ordinary.of_mean(values, clusters=equal) == pytest.approx(ordinary.of_mean(means))
    assert ordinary.of_mean(values[:10], clusters=equal[:10]) is None, "two clusters"


def naive_quantile(values: np.ndarray, share: float) -> tuple[float, float]:
    """Try all ranks."""
    n, ordered = len(values), sorted(values)
    low, high = -math.inf, math.inf
    for r in range(1, n + 1):
        if stats.binom.cdf(r - 1, n, share) <= 0.025:
            low = ordered[r - 1]
    for s in range(n, 0, -1):
        if stats.binom.sf(s - 1, n, share) <= 0.025:
            high = ordered[s - 1]
    return low, high


@pytest.mark.parametrize("share", [0.01, 0.5, 0.9, 0.95, 0.99])
def test_quantiles_lie_between_order_statistics(share: float) -> None:
    rng = np.random.default_rng(1)
    for n in (3, 10, 59, 200, 1000):
        values = rng.lognormal(0, 1, n)
        found = ordinary.of_quantile(values, share)
        assert found == naive_quantile(values, share)
        assert found is not None
        ranks = np.searchsorted(np.sort(values), found)  # the k-th smallest has k − 1 below it
        covered = stats.binom.cdf(n if math.isinf(found.high) else ranks[1], n, share)
        covered -= 0.0 if math.isinf(found.low) else stats.binom.cdf(ranks[0], n, share)
        assert covered >= 0.95


# --- how often they are right


@pytest.mark.parametrize("n", [10, 30, 100])
def test_wilson_covers_by_exact_enumeration(n: int) -> None:
    ends = [ordinary.of_share(k, n) for k in range(n + 1)]
    covered = []
    for p in np.linspace(0.02, 0.98, 193):
        inside = [end is not None and end.low <= p <= end.high for end in ends]
        covered.append(stats.binom.pmf(np.arange(n + 1), n, p)[inside].sum())
    assert 0.945 < np.mean(covered) < 0.97
    assert min(covered) > 0.82  # of p near 0 and 1: as the literature has it


@pytest.mark.parametrize("cells", [(0.4, 0.2, 0.2, 0.2), (0.6, 0.15, 0.05, 0.2), (0.85, 0.05, 0.05, 0.05),
                                   (0.1, 0.4, 0.4, 0.1), (0.9, 0.08, 0.01, 0.01)])  # fmt: skip
def test_newcombe_of_pairs_covers_by_exact_enumeration(cells: tuple[float, ...]) -> None:
    n, covered, truth = 24, 0.0, cells[1] - cells[2]
    law = stats.multinomial(n, cells)
    for a in range(n + 1):
        for b in range(n + 1 - a):
            for c in range(n + 1 - a - b):
                found = ordinary.of_paired_shares(a, b, c, n - a - b - c)
                assert found is not None
                assert -1 <= found.low <= (b - c) / n <= found.high <= 1
                if found.low <= truth <= found.high:
                    covered += law.pmf([a, b, c, n - a - b - c])
    assert 0.945 < covered < (0.97 if min(cells) >= 0.1 else 1.0)  # cautious where one outcome is rare


def test_student_covers_in_simulations() -> None:
    rng, runs, missed = np.random.default_rng(7), 6000, np.zeros(3, int)
    for _ in range(runs):
        base = rng.normal(0, 3, 8)
        a, b = base + rng.normal(1, 1, 8), base + rng.normal(0, 2, 8)
        sizes = np.repeat(np.arange(40), 3)
        grouped = rng.normal(0, 1, 40)[sizes] + rng.normal(0, 1, 120)
        found = [ordinary.of_mean(a), ordinary.estimate_difference(a, b, is_binary=False)]
        found.append(ordinary.of_mean(grouped, clusters=sizes))
        for k, truth in enumerate((1.0, 1.0, 0.0)):
            missed[k] += not found[k].low <= truth <= found[k].high  # type: ignore[union-attr]
    for misses in missed:
        assert stats.binomtest(int(misses), runs, 0.05).pvalue > 1e-4, missed


def test_of_a_list_by_enumeration_of_all_samples() -> None:
    """Every sample of 7 of 13 items is as likely; without the correction nearly all would cover."""
    values, n = np.random.default_rng(3).normal(0, 1, 13), 7
    ones = (values > 0).astype(float)
    hits, plain, shares, total = 0, 0, 0, 0
    for chosen in itertools.combinations(range(13), n):
        part = list(chosen)
        found, wide = ordinary.of_mean(values[part], items=13), ordinary.of_mean(values[part])
        share = ordinary.estimate_mean(ones[part], is_binary=True, items=13)
        assert found is not None
        assert wide is not None
        assert share is not None
        hits += found.low <= values.mean() <= found.high
        plain += wide.low <= values.mean() <= wide.high
        shares += share.low <= ones.mean() <= share.high
        total += 1
    assert 0.92 < hits / total < 0.975 < plain / total
    assert shares / total > 0.92
    assert ordinary.of_mean(values, items=13) is None, "a complete list leaves nothing open"
    assert ordinary.estimate_mean(ones, is_binary=True, items=13) is None
    wide, narrow = (ordinary.of_paired_shares(5, 4, 1, 2, items=items) for items in (math.inf, 15))
    assert wide is not None
    assert narrow is not None
    assert wide.low < narrow.low < narrow.high < wide.high


def test_from_three_values_on() -> None:
    for n in (0, 1, 2):
        values = np.arange(float(n))
        assert ordinary.of_mean(values) is None
        assert ordinary.of_share(0, n) is None
        assert ordinary.of_quantile(values, 0.5) is None
        assert ordinary.estimate_difference(values, values, is_binary=False, is_paired=False) is None
        assert ordinary.estimate_difference(values % 2, values % 2, is_binary=True) is None
    assert ordinary.of_mean(np.full(3, 0.1)) == pytest.approx((0.1, 0.1))
    assert ordinary.of_two_means(np.full(3, 0.3), np.full(4, 0.1)) == pytest.approx((0.2, 0.2))


# --- of a table


def table(columns: dict[str, object], *objectives: lb.Objective, **more: object) -> object:
    given = {"arm": "arm", "item": "item", "repeat": None, "cluster": None, "max_cluster": None}
    return table_of(columns, objectives, **{**given, "missing": "error", **more})  # type: ignore[arg-type]


def random_columns(rng: np.random.Generator, n: int, gaps: float) -> dict[str, object]:
    arms = np.repeat(["a", "b"], n)
    ok = (rng.random(2 * n) < np.repeat([0.8, 0.6], n)).astype(float)
    size = rng.uniform(0, 10, 2 * n) * np.repeat([0.5, 1.0], n)
    for column in (ok, size):
        column[rng.random(2 * n) < gaps] = math.nan
    return {"arm": arms.tolist(), "item": [*range(n)] * 2, "ok": ok.tolist(), "size": size.tolist()}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("missing", ["worst", "drop"])
def test_the_mean_is_inside_whatever_is_missing(seed: int, missing: str) -> None:
    rng = np.random.default_rng(seed)
    asked = (
        lb.Objective("ok", margin=0.02),
        lb.Objective("size", "minimize", margin=1, noise=("bounded", 0, 10)),
    )
    cells = table(random_columns(rng, int(rng.integers(6, 60)), 0.25), *asked, missing=missing)
    for i in range(2):
        for a, b in ((0, 1), (1, 0)):
            for found in (table_means.of_arm(cells, i, a), table_means.of_difference(cells, i, a, b)):
                assert found.low is not None
                assert found.high is not None
                assert found.low <= found.mean <= found.high
            back = table_means.of_difference(cells, i, b, a)
            assert (found.mean, found.low, found.high) == pytest.approx((-back.mean, -back.high, -back.low))


def test_worst_is_the_hull_of_both_extremes() -> None:
    """By hand: the two missing values of `a` once 0 and once 1."""
    ok = [1.0] * 7 + [0.0] + [math.nan] * 2 + [1.0, 0.0] * 5
    columns = {"arm": ["a"] * 10 + ["b"] * 10, "item": [*range(10)] * 2, "ok": ok}
    cells = table(columns, lb.Objective("ok", margin=0.1, noise="bernoulli"), missing="worst")
    found = table_means.of_arm(cells, 0, 0)
    least, most = ordinary.of_share(7, 10), ordinary.of_share(9, 10)
    assert least is not None
    assert most is not None
    assert found == (7 / 8, least.low, most.high, 8)
    listed = table_means.of_arm(cells, 0, 0, as_list=True)
    assert (listed.low, listed.high) == (0.7, 0.9)
    assert table_means.of_arm(cells, 0, 1, as_list=True)[1:3] == (None, None), "complete: exact"


def test_direction_turns_it_around() -> None:
    rng = np.random.default_rng(2)
    columns = random_columns(rng, 40, 0.0)
    up, down = lb.Objective("ok", margin=0.02), lb.Objective("ok", "minimize", margin=0.02)
    more, less = table(columns, up), table(columns, down)
    assert table_means.of_arm(more, 0, 0) == pytest.approx(table_means.of_arm(less, 0, 0))
    one, other = table_means.of_difference(more, 0, 0, 1), table_means.of_difference(less, 0, 1, 0)
    assert one == pytest.approx(other)


def test_without_pairs_every_row_counts() -> None:
    rng = np.random.default_rng(4)
    columns = {"arm": ["a"] * 30 + ["b"] * 50, "x": rng.normal(0, 1, 80), "ok": rng.random(80) < 0.5}
    asked = lb.Objective("x", margin=0.1, noise="gaussian"), lb.Objective("ok", margin=0.1)
    cells = table(columns, *asked, item=None)
    x, ok = np.asarray(columns["x"]), np.asarray(columns["ok"])
    found = table_means.of_difference(cells, 0, 0, 1)
    welch = stats.ttest_ind(x[:30], x[30:], equal_var=False).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx(tuple(welch))
    assert found.mean == pytest.approx(x[:30].mean() - x[30:].mean())
    found = table_means.of_difference(cells, 1, 0, 1)
    assert (found.low, found.high) == ordinary.of_two_shares(int(ok[:30].sum()), 30, int(ok[30:].sum()), 50)


def test_quantiles_and_exact_values() -> None:
    rng = np.random.default_rng(9)
    values = rng.lognormal(0, 1, 400)
    columns = {"arm": ["a"] * 200 + ["b"] * 200, "item": [*range(200)] * 2, "t": values}
    columns["size"] = [3.0] * 200 + [4.0] * 200
    asked = (
        lb.Objective("t", "minimize", margin=0.1, quantile=0.9, noise=("bounded", 0, 1e3)),
        lb.Objective("size", "minimize", noise="exact"),
    )
    cells = table(columns, *asked)
    found = table_means.of_arm(cells, 0, 0)
    assert (found.low, found.high) == naive_quantile(values[:200], 0.9)
    both = table_means.of_difference(cells, 0, 1, 0)  # how much better, that is lower, b is
    mine, yours = naive_quantile(values[200:], 0.9), naive_quantile(values[:200], 0.9)
    at = [np.sort(part)[179] for part in (values[200:], values[:200])]
    assert both.mean == pytest.approx(at[1] - at[0])
    assert both.low == pytest.approx(both.mean - math.hypot(yours[0] - at[1], mine[1] - at[0]))
    assert both.high == pytest.approx(both.mean + math.hypot(yours[1] - at[1], mine[0] - at[0]))
    assert table_means.of_arm(cells, 1, 0)[:3] == (3.0, None, None)
    assert table_means.of_difference(cells, 1, 0, 1)[:3] == (1.0, None, None)


def test_ends_are_cut_to_what_is_possible() -> None:
    found = ordinary.Estimate.of(0.9, Interval(0.7, 1.1), 5, (0.0, 1.0))
    assert (found.low, found.high) == (0.7, 1.0)
    assert found.times(-1) == (-0.9, -1.0, -0.7, 5)
