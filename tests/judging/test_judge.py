"""`lb.judge`: frames and files, repeats, clusters, gaps, lists, errors, and what must not matter."""

import itertools
import json
import subprocess
import sys
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy.stats import skew, t, ttest_1samp

import lexbandits as lb
from lexbandits.evidence import fixed_sample
from lexbandits.evidence.betting import gaussian_bets
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.interval import kind_at, stored_value
from lexbandits.evidence.kinds import kind_rows, spread_kinds
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius
from lexbandits.judging import sequential as sequential_claims
from lexbandits.judging.claims import Claims, Sample
from lexbandits.judging.sequential import AnytimeClaims, _moments
from lexbandits.judging.table import _drawn_together, table_of
from lexbandits.study.storage.memory import MemoryStorage
from support import judge_oracle as naive
from support.kernels import arm_bounds

CORRECT = lb.Objective("correct", margin=0.2, noise="bernoulli")
LATENCY = lb.Objective("latency", "minimize", margin=0.6, unit="s", noise=("bounded", 0, 4))
SCORE = lb.Objective("score", margin=0.6, noise="gaussian")


def drawn(n=150, seed=0, **means):
    """Rows of arms with their (correct, latency)."""
    rng, rows = np.random.default_rng(seed), []
    luck = rng.random(n)
    for arm, (correct, latency) in (
        means or {"slow": (0.85, 2.0), "fast": (0.85, 0.5), "bad": (0.3, 0.4)}
    ).items():
        mine = np.where(rng.random(n) < 0.7, luck, rng.random(n)) < correct
        seconds = np.clip(latency * rng.gamma(20, 1 / 20, n), 0, 4)
        rows += [
            {"arm": arm, "item": f"q{k}", "correct": int(mine[k]), "latency": seconds[k]} for k in range(n)
        ]
    return pd.DataFrame(rows)


TABLE = drawn()


def cells(table, objectives, **how):
    words = dict.fromkeys(("repeat", "cluster", "max_cluster"))
    return table_of(table, objectives, **{"arm": "arm", "item": "item", "missing": "error", **words, **how})


def judged(table=TABLE, objectives=(CORRECT, LATENCY), **how):
    return lb.judge(table, objectives, **how)


def test_a_plain_table():
    verdict = judged()
    assert (verdict.arm, verdict.certified, verdict.decision, verdict.flags) == ("fast", True, None, ())
    assert verdict.acceptable == ("fast",)
    assert verdict.candidates == ("fast",)
    assert verdict.tiers == (("fast",), ("slow",), ("bad",))
    assert verdict.missing_items is None
    assert verdict.items == 150
    bad, slow = verdict.outcomes["bad"], verdict.outcomes["slow"]
    assert bad == lb.Decision(
        lb.ArmOutcome.EXCLUDED,
        objective="correct",
        rival=bad.rival,
        by=lb.DecidedBy.ELIMINATION,
        bound=bad.bound,
        difference=pytest.approx(0.55, abs=0.1),
        low=bad.low,
        high=bad.high,
    )
    assert 0.2 <= bad.bound < bad.low < bad.difference < bad.high  # a picture is narrower than what is proven
    assert slow.objective == "latency"
    assert 0.3 < slow.bound < -slow.high  # fast − slow
    found = verdict.difference("latency", "fast", "slow")
    assert (found["low"], found["high"]) == pytest.approx((-slow.high, -slow.low))
    assert 0.3 < found["low"] < found["mean"] < found["high"]
    with pytest.raises(lb.StudyError, match="no objective 'size'; there are 'correct', 'latency'"):
        verdict.difference("size", "fast", "slow")
    assert json.loads(json.dumps(verdict.as_json()))["certificate"] == list(verdict.certificate)
    assert list(verdict.to_frame()["rival"].unique()) == ["slow", "bad"]


def test_judge_loads_neither_numba_nor_pandas():
    code = (
        "import sys, lexbandits as lb\n"
        "table = {'arm': ['a', 'b'] * 9, 'item': [k // 2 for k in range(18)], 'x': [0, 1] * 9}\n"
        "verdict = lb.judge(table, [lb.Objective('x', margin=0.2, noise='bernoulli')])\n"
        "str(verdict), verdict.as_markdown(), verdict._repr_html_()\n"
        "print([name for name in ('numba', 'pandas', 'narwhals') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- where tables come from


@pytest.mark.parametrize(
    "form", ["dict", "arrays", "pyarrow", "nullable", "csv", "jsonl", "parquet", "polars"]
)
def test_all_forms_of_a_table_say_the_same(form, tmp_path):
    table = TABLE
    if form == "dict":
        table = TABLE.to_dict("list")
    elif form == "arrays":
        table = {name: TABLE[name].to_numpy() for name in TABLE}
    elif form == "pyarrow":
        table = pa.Table.from_pandas(TABLE)
    elif form == "nullable":
        table = TABLE.convert_dtypes()
    elif form == "polars":
        table = pytest.importorskip("polars").from_pandas(TABLE)
    elif form == "csv":
        table = tmp_path / "results.csv"
        TABLE.to_csv(table, index=False)
    elif form == "jsonl":
        table = str(tmp_path / "results.jsonl")
        TABLE.to_json(table, orient="records", lines=True, double_precision=15)
    else:
        table = tmp_path / "results.parquet"
        pyarrow.parquet.write_table(pa.Table.from_pandas(TABLE), table)
    found, expected = judged(table).as_json(), judged().as_json()
    assert found.pop("means")["fast"]["latency"]["mean"] == pytest.approx(
        expected.pop("means")["fast"]["latency"]["mean"]
    )
    for verdict in (found, expected):
        for row in verdict["certificate"]:
            row["difference"], row["se"] = round(row["difference"], 9), round(row["se"], 9)
        for decision in verdict["outcomes"].values():
            decision["difference"] = round(decision["difference"] or 0.0, 9)
    assert found == expected


def test_a_file_may_say_true_and_leave_gaps(tmp_path):
    path = tmp_path / "results.csv"
    lines = [f"{arm},{k},{'True' if k % 9 else ''}" for arm in "ab" for k in range(60)]
    path.write_text("\n".join(["arm,item,correct", *lines]))
    assert judged(path, [CORRECT], missing="drop").means["a"]["correct"] == {
        "mean": 1.0,
        "se": 0.0,
        "low": pytest.approx(53 / (53 + 1.96**2), abs=1e-4),  # Wilson
        "high": 1.0,
        "results": 53,
    }


# --- what must not matter


def said(verdict):
    """A verdict without names."""
    rows = sorted(
        (row["objective"], row["verdict"], row["level"], row["results"]) for row in verdict.certificate
    )
    outcomes = sorted(
        (found.outcome, str(found.by), str(found.objective)) for found in verdict.outcomes.values()
    )
    return verdict.certified, rows, outcomes, [len(tier) for tier in verdict.tiers]


@pytest.mark.parametrize("n", [40, 150])
def test_order_names_and_units_do_not_matter(n):
    table = drawn(n)
    plain = judged(table)
    shuffled = table.sample(frac=1, random_state=1)
    assert said(judged(shuffled)) == said(plain)
    assert judged(shuffled).arm == plain.arm
    renamed = table.replace({"slow": "x", "fast": "y", "bad": "z"})
    renamed["item"] = "i" + renamed["item"]
    assert said(judged(renamed)) == said(plain)
    assert judged(renamed).arm == {"slow": "x", "fast": "y", "bad": "z"}[plain.arm]
    milliseconds = lb.Objective("latency", "minimize", margin=600, unit="ms", noise=("bounded", 0, 4000))
    assert said(judged(table.assign(latency=1000 * table.latency), (CORRECT, milliseconds))) == said(plain)
    negative = lb.Objective("latency", margin=0.6, noise=("bounded", -4, 0))
    assert said(judged(table.assign(latency=-table.latency), (CORRECT, negative))) == said(plain)


def test_rows_without_items_are_paired_in_no_order_of_theirs():
    """Two arms of independent values, sorted: equal ranks would seem to differ by nothing at all."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"arm": ["a", "b"] * 200, "score": rng.normal(size=400)})
    by_value = table.sort_values("score")
    found = [judged(t, [SCORE], item=None) for t in (table, by_value, by_value[::-1])]
    assert len({row["se"] for verdict in found for row in verdict.certificate}) <= 2  # of a − b and b − a
    assert found[0].certificate[0]["se"] == pytest.approx(np.sqrt(2 / 200), rel=0.2)
    fewer = judged(table[:-50:], [SCORE], item=None)
    assert fewer.flags == ()
    independent = lb.Objective("score", margin=1, noise=("sub_gaussian", 1.0, "independent"))
    assert judged(table, [independent], item=None).certified


@pytest.mark.parametrize("sizes", [(9, 9), (24, 88), (88, 24), (30, 30, 30), (12, 40, 25)])
def test_rows_without_items_are_paired_by_what_they_hold(sizes):
    """Not by their order, nor the arms' names; and the same ranks are not paired in every table."""

    def pairs(scores, names=("a", "b", "c"), order=None):
        """Which ranks share a place, of the first two arms."""
        frame = pd.DataFrame([(name, v) for name, own in zip(names, scores, strict=False) for v in own])
        frame.columns = ["arm", "score"]
        seen = cells(frame if order is None else frame.iloc[order], (SCORE,), item=None)
        columns = [seen.seen[:, seen.arms.index(name), 0] for name in names[:2]]
        ranks = [np.where(np.isnan(own), -1, own.argsort().argsort()) for own in columns]
        return sorted(zip(*(rank.tolist() for rank in ranks), strict=True))

    rng = np.random.default_rng(list(sizes))
    scores = [rng.random(size) for size in sizes]
    found = pairs(scores)
    assert pairs(scores, order=rng.permutation(sum(sizes))) == pairs(scores, ("z", "y", "x")) == found
    assert pairs([own[::-1] for own in scores]) == found
    for arm in range(len(sizes)):
        changed = [own.copy() for own in scores]
        changed[arm][changed[arm].argmax()] += 0.01
        assert pairs(changed) != found
    assert any(first != second for first, second in pairs([scores[0]] * 2)), "nor is every value its own pair"
    column = np.concatenate(scores).round(1)
    column[::7], column[1::7] = np.nan, 0.0
    codes, other = np.repeat(np.arange(len(sizes)), sizes), np.where(column == 0, -0.0, column)
    other[np.isnan(other)] = np.copysign(np.nan, -1)
    places = [_drawn_together(codes, list("abc"), values[:, None]) for values in (column, other)]
    assert (places[0] == places[1]).all(), "there is one way to write 0, and nan"


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_unpaired_zeros_and_ones_are_counted(direction, monkeypatch):
    """All rows of both arms; at their worst where some are missing. Of very many, pairs are."""
    rng, (n, other) = np.random.default_rng(1), (40, 25)
    values = np.r_[rng.random(n) < 0.6, rng.random(other) < 0.5].astype(float)
    arms = ["a"] * n + ["b"] * other
    right = lb.Objective("x", direction, margin=0.15, tie=0.05, noise="bernoulli")
    for lost in (0, 3):
        values[:lost], values[n : n + lost] = np.nan, np.nan
        claims = Claims(cells({"arm": arms, "x": values}, (right,), item=None, missing="worst"))
        up = values if direction == "maximize" else 1 - values
        for a, b, sizes in ((0, 1, (n, other)), (1, 0, (other, n))):
            own, rest = (up[np.array(arms) == claims.table.arms[arm]] for arm in (a, b))
            ones = int(np.nansum(own)), int(np.nansum(rest)) + lost
            for alpha in (0.3, 0.1, 0.02, 0.001):
                wanted = fixed_sample.by_binomials(ones[0], sizes[0], ones[1], sizes[1], -0.15, alpha)
                assert claims.says("not_worse", 0, a, b, alpha) == wanted
    monkeypatch.setattr(fixed_sample, "by_binomials", None)
    monkeypatch.setattr("lexbandits.judging.claims.MOST_CELLS", n * other - 1)
    assert Claims(claims.table).says("not_worse", 0, 0, 1, 0.3) in (True, False)


# --- repeats and clusters


def test_one_repeat_is_none_and_clusters_of_one_are_none():
    plain = said(judged())
    assert said(judged(TABLE.assign(epoch=1, latency=TABLE.latency), [LATENCY], repeat="epoch")) == said(
        judged(objectives=[LATENCY])
    )
    gaussian = [lb.Objective("latency", "minimize", margin=0.6, noise="gaussian")]
    clustered = judged(TABLE.assign(passage=TABLE.item), gaussian, cluster="passage", max_cluster=1)
    assert said(clustered) == said(judged(objectives=gaussian))
    assert plain[0]


def test_repeats_are_averaged_and_do_not_count_as_items():
    table = pd.concat([drawn(60, seed).assign(epoch=seed) for seed in range(3)])
    verdict = judged(table, repeat="epoch")
    assert verdict.items == 60
    assert cells(table, (CORRECT, LATENCY), repeat="epoch").kinds == ("bounded", "bounded")
    mean = table.groupby(["arm", "item"]).correct.mean().groupby("arm").mean()
    assert verdict.means["fast"]["correct"]["mean"] == pytest.approx(mean["fast"])
    assert {row["results"] for row in verdict.certificate} == {60}
    unequal = pd.concat(
        [
            table,
            drawn(60, 9)[:100].assign(epoch=[3] * 100),
            drawn(60, 8)[:100].assign(epoch=[4] * 100),
            drawn(60, 7)[:100].assign(epoch=[5] * 100),
            drawn(60, 6)[:100].assign(epoch=[6] * 100),
        ]
    )
    gaussian = [lb.Objective("latency", "minimize", margin=0.6, noise="gaussian")]
    assert "asymptotic" in judged(unequal, gaussian, repeat="epoch").flags


def test_clusters_weigh_items_alike_and_are_the_units():
    table = TABLE.assign(passage=TABLE.item.str[1:].astype(int) // 5)
    table = table[~((table.passage < 10) & (table.item.str[1:].astype(int) % 5 > 1))]  # sizes 2 and 5
    verdict = judged(table, [LATENCY], cluster="passage", max_cluster=5)
    assert verdict.clusters == 30
    assert verdict.means["fast"]["latency"]["mean"] == pytest.approx(
        table[table.arm == "fast"].latency.mean()
    )
    assert {row["results"] for row in verdict.certificate} == {30}
    assert verdict.certified
    claims = Claims(cells(table, [LATENCY], cluster="passage", max_cluster=5))
    sample = claims.sample("better", 0, 1, 0)
    for b in np.linspace(sample.mean - 0.6, sample.mean, 12):
        sums = np.sort(sample.sums - b * sample.sizes)
        expected = fixed_sample.by_betting(sums, 0.0, 5 * (-4 - b), 5 * (4 - b), 0.01)
        assert claims.exceeds(0, sample, b, 0.01) == expected
    assert not judged(table, [LATENCY], cluster="passage", max_cluster=500).certified, "one may yet come"
    unsaid = judged(table, [LATENCY], cluster="passage")
    assert not unsaid.certified
    assert unsaid.flags == ("cluster_size",)
    gaussian = judged(
        table, [lb.Objective("latency", "minimize", margin=0.6, noise="gaussian")], cluster="passage"
    )
    assert gaussian.flags == ("asymptotic",)
    few = judged(table[table.passage < 8], [LATENCY], cluster="passage", max_cluster=5)
    assert "few_clusters" in few.flags


def test_items_that_share_their_luck_prove_as_much_as_one():
    """Ten copies of an item in a cluster: 200 equal items would certify what 20 clusters leave open."""
    rng = np.random.default_rng(1)
    base = pd.DataFrame(
        {"arm": np.repeat(["a", "b"], 20), "passage": list(range(20)) * 2, "score": rng.normal(size=40)}
    )
    copies = base.loc[base.index.repeat(10)].reset_index(drop=True)
    copies["item"] = copies.groupby("arm").cumcount()
    objective = [lb.Objective("score", margin=0.5, noise="gaussian")]
    assert judged(copies, objective).flags == ("copied_values",)
    apart = copies.assign(score=copies.score + rng.normal(0, 1e-6, len(copies)))
    assert judged(apart, objective).certified, "no flag can see what is not equal"
    for table in (copies, apart):
        clustered = judged(table, objective, cluster="passage")
        assert (clustered.certified, clustered.flags) == (False, ())


# --- what is missing


def with_gaps(seed, share=0.1):
    table = TABLE.copy().astype({"correct": float})
    table.loc[np.random.default_rng(seed).random(len(table)) < share, "correct"] = np.nan
    return table


def test_the_three_ways_with_missing_values():
    table = with_gaps(1)
    with pytest.raises(lb.StudyError, match="values of 'correct' are missing: say missing=\"worst\""):
        judged(table)
    dropped = judged(table, missing="drop")
    assert dropped.flags == ("dropped_missing",)
    assert dropped.certified
    assert "left out" in str(dropped)
    worst = judged(table, missing="worst")
    assert worst.flags == ()
    assert not worst.certified  # a tenth missing is more than may be given up
    assert judged(with_gaps(1, 0.01), missing="worst").certified
    agreed = lb.Objective("correct", margin=0.2, noise="bernoulli", if_failed=0.0)
    assert judged(table, (agreed, LATENCY)).means["fast"]["correct"]["results"] == 150


@pytest.mark.parametrize("n", [8, 15, 60, 1000])
@pytest.mark.parametrize("alpha", [0.05, 0.001])
def test_a_look_draws_its_line_where_students_test_would_at_a_smaller_level(n, alpha):
    level = sequential_claims._at_one_look(n, alpha)
    line = -t.ppf(level, n - 1)
    worth = [gaussian_bets(n, line * share / np.sqrt(n), n - 1.0) for share in (1 - 1e-6, 1 + 1e-6)]
    if n == 8:
        assert level == alpha, "nothing is claimed of so few"
        return
    assert worth[0] < np.log(1 / alpha) <= worth[1]
    assert level < alpha


def test_all_looks_are_asked_about_skewness_where_they_draw_their_line():
    rng, n = np.random.default_rng(0), 60
    values = [rng.normal(0, 0.1, n), 1 - rng.exponential(size=n)]
    columns = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "score": np.concatenate(values)}
    for item, parts in (("item", 1), (None, 2)):
        growing = AnytimeClaims(cells(columns, (SCORE,), item=item))
        claim = "not_worse", 0, 1, 0
        lead, shape = growing.lead(*claim), growing.skewness(*claim)
        for alpha in np.geomspace(0.3, 1e-9, 150).tolist():
            line = fixed_sample.edge_of_student(*shape, sequential_claims._at_one_look(n, alpha / parts))
            assert ("skewed" in growing.doubts(*claim, alpha)) == (lead < line)


def test_what_an_objective_says_of_missing_values_wins():
    at_worst = lb.Objective("correct", margin=0.2, noise="bernoulli", if_missing="worst")
    table = with_gaps(1)
    worst = judged(table, missing="worst")
    for missing in ("error", "drop", "worst"):
        asked = judged(table, (at_worst, LATENCY), missing=missing)
        assert (asked.flags, asked.certified, asked.certificate) == ((), False, worst.certificate)
        assert "count as the worst they could have been" in str(asked)
    assert "missing results of correct count as the worst" in str(judged(table, (at_worst,), missing="drop"))
    table["latency"] = table.latency.where(np.arange(len(table)) % 9 > 0)
    both = judged(table, (at_worst, LATENCY), missing="drop")
    assert both.details["dropped_missing"] == {"cells": int(table.latency.isna().sum())}
    claims = both._claims.table
    assert (claims.low[..., 1] == claims.seen[..., 1])[~np.isnan(claims.seen[..., 1])].all()
    assert (claims.low[..., 0] == np.where(np.isnan(claims.seen[..., 0]), 0, claims.seen[..., 0])).all()
    assert (claims.high[..., 0] == np.where(np.isnan(claims.seen[..., 0]), 1, claims.seen[..., 0])).all()
    with pytest.raises(lb.StudyError, match="values of 'latency' are missing"):
        judged(table, (at_worst, LATENCY))
    with pytest.raises(lb.StudyError, match="needs all values"):
        judged(table, (at_worst, LATENCY), missing="drop", scope="items")
    judged(with_gaps(1), (at_worst, LATENCY), missing="drop", scope="items")


@pytest.mark.parametrize(
    ("objective", "ways"),
    [
        (CORRECT, 'missing="worst".*missing="drop".*if_failed= of the objective'),
        (
            lb.Objective("correct", margin=0.2, noise="gaussian"),
            r'say missing="drop" \(.*\), or noise=\("bounded", low, high\)',
        ),
        (
            lb.Objective("correct", margin=0.2, quantile=0.9, noise="gaussian"),
            r'say missing="drop" \(.*\), or if_failed=',
        ),
    ],
)
def test_only_what_helps_is_offered_for_missing_values(objective, ways):
    with pytest.raises(lb.StudyError, match=f"missing: .*{ways}"):
        judged(with_gaps(1), [objective])


def test_rows_that_are_not_there_are_missing_too():
    table = TABLE.drop(index=[3, 77])
    with pytest.raises(lb.StudyError, match="2 of 450 values of 'correct' are missing"):
        judged(table)
    assert judged(table, missing="worst").certified


@pytest.mark.parametrize("scope", ["population", "items"])
def test_the_worst_certifies_nothing_that_some_filling_refutes(scope):
    """All ways to fill in what is missing, on tables so small that certificates come from what is certain."""
    rng, certain = np.random.default_rng(2), 0
    objective = lb.Objective("x", margin=0.5, noise="bernoulli")
    for _ in range(40):
        n = 8
        values = (rng.random((2, n)) < rng.uniform(0.2, 0.95, (2, 1))).astype(float)
        holes = [tuple(hole) for hole in rng.integers(0, [2, n], (int(rng.integers(1, 4)), 2))]
        for hole in holes:
            values[hole] = np.nan
        table = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "x": values.ravel()}
        verdict = lb.judge(table, [objective], missing="worst", scope=scope, delta=0.4)
        holes = list(dict.fromkeys(holes))
        for filling in itertools.product((0.0, 1.0), repeat=len(holes)):
            filled = values.copy()
            for hole, value in zip(holes, filling, strict=True):
                filled[hole] = value
            full = lb.judge({**table, "x": filled.ravel()}, [objective], scope=scope, delta=0.4)
            if verdict.certified and scope == "items":
                assert naive.accepts(
                    filled.mean(axis=1)[:, None], [0.25], [0.25], [None], "ab".index(verdict.arm)
                )
            elif verdict.certified:
                assert verdict.arm in full.acceptable
        certain += verdict.certified
    assert certain >= 5


# --- about these items


def filtered(means, tol):
    kept = list(range(len(means)))
    for i in range(len(tol)):
        best = max(means[a][i] for a in kept)
        kept = [a for a in kept if means[a][i] >= best - tol[i] - 1e-9]
    return kept


def test_a_list_is_what_was_measured():
    rng, objectives = (
        np.random.default_rng(3),
        [lb.Objective("x", margin=0.2, noise="gaussian"), lb.Objective("y", margin=0.2, noise="gaussian")],
    )
    for _ in range(60):
        K, n = int(rng.integers(1, 5)), 10
        values = rng.integers(0, 3, (K, n, 2)) / 2
        rows = [(f"arm {a}", k, *values[a, k]) for a in range(K) for k in range(n)]
        table = dict(zip(("arm", "item", "x", "y"), zip(*rows, strict=True), strict=True))
        means = values.mean(axis=1)
        kept = filtered(means, [0.1, 0.1])
        verdict = lb.judge(table, objectives, scope="items")
        assert verdict.certified
        assert verdict.delta == 0.0
        assert verdict.acceptable == tuple(f"arm {a}" for a in kept)
        assert verdict.arm == f"arm {max(kept, key=lambda a: (round(means[a][1], 9), -a))}"
        assert verdict.candidates == verdict.acceptable
        based = lb.judge(table, objectives, scope="items", baseline="arm 0")
        assert (based.decision == "keep") == (0 in kept)
    assert "No sampling error is involved." in str(lb.judge(TABLE, [CORRECT, LATENCY], scope="items"))


# --- limits, a baseline, a candidate, exact objectives

REFUSALS = lb.Objective("refused", "minimize", at_most=0.3, slack=0.1, noise="bernoulli")


def refusing(seed, **shares):
    rng = np.random.default_rng(seed)
    return TABLE.assign(refused=[int(rng.random() < shares[arm]) for arm in TABLE.arm])


def test_a_limit_comes_first():
    verdict = judged(refusing(4, slow=0.02, fast=0.6, bad=0.02), (REFUSALS, CORRECT, LATENCY))
    assert (verdict.arm, verdict.certified, verdict.flags) == ("slow", True, ())
    fast = verdict.outcomes["fast"]
    found = fast.outcome, fast.by, fast.objective, fast.limit
    assert found == ("outside_limit", "elimination", "refused", "violates_limit")
    assert "outside the limit: certified more than 0.3, seen" in str(verdict)
    assert "slow: refused is at most 0.3, as required." in str(verdict)


def test_who_is_excluded_by_a_limit_may_still_meet_it():
    """0.25 is within 0.3, but not by the slack of 0.1; who refuses less is below it."""
    table = pd.concat([refusing(k, slow=0.02, fast=0.26, bad=0.02).assign(k=k) for k in range(6)])
    table["item"] = table.item + table.k.astype(str)
    verdict = judged(table, (REFUSALS, CORRECT, LATENCY))
    assert (verdict.arm, verdict.certified) == ("slow", True)
    fast = verdict.outcomes["fast"]
    found = fast.outcome, fast.by, fast.objective, fast.limit
    assert found == ("excluded", "elimination", "refused", "not_clearly_within")
    assert f"excluded: above the inner line 0.2, and above {fast.rival} on it, seen" in str(verdict)
    assert "misses" not in str(verdict)
    kept = judged(table, (REFUSALS,), baseline="fast")
    assert (kept.decision, kept.flags) == ("keep", ()), "it meets the limit"


def test_a_limit_that_nobody_meets_is_flagged():
    table = refusing(4, slow=0.7, fast=0.7, bad=0.7)
    loose = lb.Objective("refused", "minimize", at_most=0.4, slack=0.2, noise="bernoulli")
    nobody = judged(table, (CORRECT, loose))
    assert (nobody.certified, nobody.details) == (True, {"infeasible": {"objectives": ["refused"]}})
    assert "no arm meets the limit on refused" in str(nobody)
    assert f"No arm meets the limit on refused; {nobody.arm} is at most 0.2 short of the closest." in str(
        nobody
    )


@pytest.mark.parametrize(("sequential", "other"), [(False, 0.62), (True, 0.62), (False, 0.2)])
def test_a_limit_that_nobody_clearly_meets_is_flagged(sequential, other):
    """One at least lies between the limit and its inner line, closer to the limit."""
    table = pd.concat([drawn(300, seed, a=(0.62, 1.0), b=(other, 1.0)).assign(k=seed) for seed in range(4)])
    table["item"] = table.item + table.k.astype(str)
    limit = lb.Objective("correct", at_least=0.6, slack=0.15, noise="bernoulli")
    verdict = judged(table, [limit], sequential=sequential)
    assert (verdict.certified, verdict.flags) == (True, ("not_clearly_feasible",))
    assert verdict.candidates == (("a", "b") if other > 0.5 else ("a",))
    assert "confidence, but no arm is inside the limit on correct by the slack" in str(verdict)
    closest = f"by the slack of 0.15; {verdict.arm} is at most 0.15 short of the closest"
    sentence = f"No arm is inside the limit on correct {closest}. That it meets the limit is not shown."
    assert sentence in str(verdict)
    assert "as required" not in str(verdict)


@pytest.mark.parametrize(
    ("mean", "flags"), [(0.74, ()), (0.61, ("not_clearly_feasible",)), (0.2, ("infeasible",))]
)
def test_one_arm_alone_is_held_against_its_limit(mean, flags):
    limit = lb.Objective("correct", at_least=0.6, slack=0.15, noise="bernoulli")
    verdict = judged(drawn(1000, 1, a=(mean, 1.0)), [limit])
    assert (verdict.certified, verdict.flags) == (True, flags)
    said = {(): "a: correct is at least 0.6, as required."}.get(
        flags, "a is at most 0.15 short of the closest."
    )
    assert said in str(verdict)
    few = judged(drawn(12, 1, a=(0.67, 1.0)), [limit])
    assert str(few).startswith(("No certificate: a is ahead", "Not decided yet: a is ahead"))
    assert (few.certified, few.flags) == (False, ())


def test_who_meets_all_limits_goes_before_who_is_the_closest():
    """Both are proven: c as close as it may be, b within the limit; c is much better on what comes next."""
    ones = np.arange(400) % 100
    table = {"arm": np.repeat(["b", "c"], 400), "item": [*range(400)] * 2}
    table["right"] = np.r_[ones < 68, ones < 60].astype(float)
    table["price"] = np.repeat([9.0, 1.0], 400)
    asked = (
        lb.Objective("right", at_least=0.59, slack=0.2, noise="bernoulli"),
        lb.Objective("price", "minimize", noise="exact"),
    )
    verdict = judged(table, asked)
    assert set(verdict.acceptable) == {"b", "c"}
    assert (verdict.arm, verdict.flags) == ("b", ())
    assert judged(table, asked, candidate="c").flags == ("not_clearly_feasible",)
    switch = judged(table, asked, baseline="c")
    assert (switch.decision, switch.arm) == ("switch", "b")


def test_what_is_open_is_said_of_the_closest_where_nobody_seems_to_meet_a_limit():
    limit = lb.Objective("correct", at_least=0.6, slack=0.2, noise="bernoulli")
    for means, is_open in (((0.2, 0.3), False), ((0.7, 0.3), True)):
        verdict = judged(drawn(16, 3, a=(means[0], 1.0), b=(means[1], 1.0)), [limit])
        found = verdict.outcomes[verdict.arm]
        assert (verdict.certified, found.outcome, found.is_open) == (False, "undecided", is_open)


def test_exact_objectives_take_no_share():
    price = {"slow": 2.0, "fast": 1.0, "bad": 0.1}
    table = TABLE.assign(price=[price[arm] for arm in TABLE.arm])
    verdict = judged(table, (CORRECT, lb.Objective("price", "minimize", noise="exact")))
    assert (verdict.arm, verdict.certified) == ("fast", True)
    levels = {row["objective"]: row["level"] for row in verdict.certificate}
    assert levels["price"] == 0.0
    two = table[table.arm != "bad"]
    alone = judged(two, (lb.Objective("price", "minimize", noise="exact"), CORRECT))
    assert alone.arm == "fast"


@pytest.mark.parametrize(
    ("baseline", "means", "decision"),
    [
        ("old", {"old": (0.85, 0.5), "new": (0.85, 0.5)}, "keep"),
        ("old", {"old": (0.85, 2.0), "new": (0.85, 0.5)}, "switch"),
        ("old", {"old": (0.5, 0.5), "new": (0.9, 2.0)}, "switch"),
        ("old", {"old": (0.72, 0.5), "new": (0.9, 0.5)}, "keep_for_now"),
    ],
)
def test_a_baseline_is_kept_unless_a_switch_is_proven(baseline, means, decision):
    verdict = judged(drawn(150, 2, **means), baseline=baseline)
    assert verdict.decision == decision
    assert verdict.arm == ("new" if decision == "switch" else "old")
    assert verdict.certified == (decision != "keep_for_now")
    if decision == "switch":
        last = verdict.certificate[-1]
        assert (last["rival"], last["verdict"]) == ("old", "better")
        assert f"better than old on {last['objective']}" in str(verdict)
    assert str(verdict).startswith(
        {"keep": "Keep old: ", "switch": "Switch to new: ", "keep_for_now": "Keep old for now: "}[decision]
    )


def test_a_baseline_that_only_seems_as_good_is_kept_for_now():
    few = judged(drawn(6, 2, old=(0.85, 0.5), new=(0.85, 0.5)), baseline="old")
    assert (few.decision, few.certified) == ("keep_for_now", False)


def test_a_named_arm_has_all_of_delta():
    verdict = judged(candidate="fast")
    assert verdict.certified
    assert max(row["level"] for row in verdict.certificate) == pytest.approx(0.05)
    assert not judged(candidate="bad").certified
    assert judged(candidate="bad").arm == "bad"


def test_one_arm_is_the_only_one():
    verdict = judged(TABLE[TABLE.arm == "bad"])
    assert (verdict.arm, verdict.certified) == ("bad", True)
    assert str(verdict).startswith("bad is the only arm.")


# --- flags of what is not proven


def test_values_that_are_not_gaussian_are_flagged():
    rng = np.random.default_rng(5)
    skewed = pd.DataFrame({"arm": np.repeat(["a", "b"], 80), "item": [*range(80)] * 2})
    rare = (rng.random(160) < 0.04) & (skewed.arm == "b")
    skewed["score"] = np.where(rare, -20.0, 0.0) + rng.normal(0, 0.1, 160)
    just, far = ([lb.Objective("score", margin=margin, noise="gaussian")] for margin in (2.4, 6.0))
    assert judged(skewed, just, candidate="b").flags == ("skewed",)
    assert not judged(skewed, just, candidate="b").certified
    assert judged(skewed, far, candidate="b").certified, "so far from the limit no tail matters"
    turned = skewed.assign(score=-skewed.score)
    assert judged(turned, just, candidate="b").certified, "a tail on the other side does no harm"
    repeated = TABLE.assign(score=TABLE.correct.astype(float))
    assert "repeated_values" in judged(repeated, [lb.Objective("score", margin=0.6, noise="gaussian")]).flags
    loose = judged(TABLE, [lb.Objective("latency", "minimize", margin=0.6, noise="finite_variance")])
    assert loose.flags == ("asymptotic",)
    assert not loose.certified
    same = TABLE.assign(score=1.0)
    assert not judged(same, [SCORE]).certified


def test_a_share_between_0_and_1_is_bounded_and_said_so():
    verdict = judged(TABLE.assign(correct=0.5 * TABLE.correct + 0.2))
    assert verdict.flags == ("not_binary",)
    assert verdict.certified


# --- how many items it takes


FINE = (lb.Objective("correct", margin=0.08, noise="bernoulli"), LATENCY)


def test_what_is_open_says_how_many_items_it_may_take():
    verdict = judged(drawn(60), FINE)
    assert not verdict.certified
    low, high = verdict.missing_range
    assert low <= verdict.missing_items <= high
    assert 60 < verdict.missing_items < 3000
    assert "by what is seen). Judge them alone" in str(verdict)


# --- at any time


def verdicts(verdict):
    """What a verdict says, but for the last digits of its numbers."""
    rows = [(row["rival"], row["objective"], row["verdict"], row["by"]) for row in verdict.certificate]
    groups = [sorted(arms) for arms in (verdict.acceptable, verdict.candidates, *verdict.tiers)]
    return verdict.arm, verdict.certified, groups, sorted(rows, key=str)


@pytest.mark.parametrize("item", ["item", None])
def test_at_any_time_names_and_order_of_items_play_no_part(item):
    """Else every new name, and every item that comes, would be another chance to be wrong."""
    found = set()
    for n in range(40, 300, 10):
        table = drawn(n, n, slow=(0.83, 1.45), fast=(0.85, 0.9))
        renamed = table.assign(item="other " + table.item).sample(frac=1, random_state=n)
        verdict = judged(table, sequential=True, item=item)
        assert verdicts(verdict) == verdicts(judged(renamed, sequential=True, item=item))
        found.add(verdict.certified)
    assert found == {False, True}
    assert "judged as it grows" in str(verdict)
    capped = replace(LATENCY, cap=1.0)
    assert judged(table, [capped], sequential=True).means["slow"]["latency"]["mean"] <= 1.0


@pytest.mark.parametrize("b", [-0.2, 0.0, 0.1])
def test_at_any_time_a_claim_is_ever_false_with_probability_alpha_at_most(b):
    """Pairs of 0/1 values whose mean is b, judged after each: the chance of ever claiming more, exactly."""
    claims, pair, alpha, q = AnytimeClaims(cells(TABLE, (CORRECT,))), ((0, 1.0), (1, -1.0)), 0.2, 0.3
    going = {(0, 0): 1.0}
    for n in range(1, 31):
        new = defaultdict(float)
        for (i, k), p in going.items():
            for up, down, step in ((1, 0, q + b), (0, 1, q), (0, 0, 1 - 2 * q - b)):
                new[i + up, k + down] += p * step
        going = {}
        for (i, k), p in new.items():
            values = np.repeat([-1.0, 0.0, 1.0], [k, n - i - k, i])
            sample = Sample(lambda values=values: values, values.mean(), 1.0, -1.0, 1.0, pair, len(values))
            if i - k <= n * b or not claims.exceeds(0, sample, b, alpha):
                going[i, k] = p
    assert alpha / 10 < 1 - sum(going.values()) <= alpha


def test_at_any_time_very_many_values_are_judged_by_their_moments(monkeypatch):
    values, places = np.random.default_rng(1).beta(2, 3, 400), np.arange(0.2, 0.5, 0.02)
    wealth = [sequential_claims._log_wealth(values, x) for x in places]
    monkeypatch.setattr(sequential_claims, "MANY", 399)
    bounds = [sequential_claims._log_wealth(values, x) for x in places]
    assert all(least <= exact + 1e-9 for least, exact in zip(bounds, wealth, strict=True))
    assert all(least > exact / 3 for least, exact in zip(bounds, wealth, strict=True) if exact > 3)


@pytest.mark.parametrize("alpha", [0.2, 0.01])
def test_at_any_time_normal_values_are_judged_by_their_mixture(alpha):
    found = set()
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n, rho = int(rng.integers(2, 60)), 10
        frame = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2}
        frame["score"] = np.r_[rng.normal(0.4, 1, n), rng.normal(0, 1, n)]
        claims = AnytimeClaims(cells(frame, (SCORE,)))
        y = frame["score"][:n] - frame["score"][n:] - 0.3
        evidence = (rho / (n + rho)) ** 0.5 * ((y @ y) / (y @ y - y.sum() ** 2 / (n + rho))) ** (n / 2)
        claimed = claims.says("better", 0, 0, 1, alpha)
        assert claimed == (y.mean() > 0 and 2 * evidence - 1 >= 1 / alpha)
        found.add(claimed)
        if y.mean() > 0 and evidence > 1:
            edge = 1 / (2 * evidence - 1)
            assert claims.says("better", 0, 0, 1, edge * (1 + 1e-9))
            assert not claims.says("better", 0, 0, 1, edge * (1 - 1e-9))
    assert found == {False, True} or alpha < 0.1


def anytime_claims(n, item="item", **words):
    """Of n values of two arms each, and their means."""
    scores = np.random.default_rng(n).normal(6, 1, (2, n))
    frame = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "score": scores.ravel()}
    return AnytimeClaims(cells(frame, (replace(SCORE, **words),), item=item)), scores.mean(axis=1)


def test_at_any_time_arms_on_common_items_may_share_their_luck():
    """A difference of two values of scale 1 has one of 2, however they go together."""
    claims, (a, b) = anytime_claims(50, noise=("sub_gaussian", 1))
    least = a - b - sub_gaussian_radius(50.0, 2.0, one_sided_level(np.log(1 / 0.05)))
    sample = claims.sample("better", 0, 0, 1)
    assert claims.exceeds(0, sample, least - 1e-9, 0.05)
    assert not claims.exceeds(0, sample, least + 1e-9, 0.05)


def test_at_any_time_a_share_of_an_arm_has_its_part_of_the_scale():
    """a is not worse than b by more than 20 % of it if 1.2·b − a is above 0."""
    words = {"direction": "minimize", "margin": "20%", "tie": "10%", "noise": ("sub_gaussian", 1)}
    claims, (a, b) = anytime_claims(50, item=None, **words)
    radius = sub_gaussian_radius(50.0, 1.0, one_sided_level(np.log(2 / 0.05)))
    sample, least = claims.sample("not_worse", 0, 0, 1), 1.2 * (b - radius) - (a + radius)
    assert claims.exceeds(0, sample, least - 1e-9, 0.05)
    assert not claims.exceeds(0, sample, least + 1e-9, 0.05)


@pytest.mark.parametrize("item", ["item", None])
def test_at_any_time_few_values_of_finite_variance_claim_nothing(item):
    for n, enough in ((LARGE_SAMPLE - 1, False), (LARGE_SAMPLE, True)):
        claims, _ = anytime_claims(int(n), item, noise="finite_variance")
        assert claims.exceeds(0, claims.sample("better", 0, 0, 1), -10.0, 0.2) == enough


# --- claims, each at its limit and its level


def grouped(**words):
    """30 clusters of 1 to 4 items, of two arms; claims about them, and what a cluster has in sum, a − b."""
    rng, sizes = np.random.default_rng(7), np.tile([1, 2, 3, 4], 8)[:30]
    of, n = np.repeat(np.arange(30), sizes), int(sizes.sum())
    values = (rng.random((2, n)) < [[0.8], [0.4]]).astype(float)
    values += 0.0 if words["noise"] == "bernoulli" else rng.exponential(1.0, (2, n))
    frame = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "c": [*of] * 2, "x": values.ravel()}
    claims = Claims(cells(frame, (lb.Objective("x", margin=0.2, **words),), cluster="c"))
    return claims, np.bincount(of, values[0] - values[1]), sizes


FACTS = (
    "better",
    "not_worse",
    "leads",
    "meets_limit",
    "nears",
    "not_clearly_within",
    "violates_limit",
)
LINES = {  # at_least 0.75 and at_most 0.25, each with a slack of 0.05: signed
    "noisy": (0.0, -0.05, 0.025, 0.75, 0.775, -0.8, -0.75),
    "exact": (0.0, 0.0, 0.0, 0.75, 0.75, -0.75, -0.75),
    "a list": (0.0, 0.0, 0.0, 0.75, 0.75, -0.75, -0.75),
}


@pytest.mark.parametrize("kind", LINES)
def test_what_each_claim_must_exceed(kind):
    words = {"noise": "exact"} if kind == "exact" else {"noise": ("bounded", 0, 1), "slack": 0.05}
    values = [0.5, 0.5] if kind == "exact" else [0.5, 0.6]
    for objective, off in (
        (lb.Objective("x", at_least=0.75, **words), 0.0),
        (lb.Objective("x", "minimize", at_most=0.25, **words), 1.0),  # 1 − x
    ):
        frame = {"arm": ["a", "a"], "item": [1, 2], "x": values}
        claims = Claims(cells(frame, (objective,)), as_list=kind == "a list")
        signs = (0, 0, 0, -1, -1, 1, 1)
        expected = [line + sign * off for line, sign in zip(LINES[kind], signs, strict=True)]
        assert [claims.limit(fact, 0) for fact in FACTS] == pytest.approx(expected)


@pytest.mark.parametrize("as_list", [False, True])
def test_what_each_difference_must_exceed(as_list):
    ordinary = lb.Objective("x", margin=0.15, tie=0.1, noise=("bounded", 0, 1))
    claims = Claims(cells({"arm": ["a", "a"], "item": [1, 2], "x": [0.5, 0.6]}, (ordinary,)), as_list=as_list)
    found = [claims.limit(fact, 0) for fact in ("better", "not_worse", "leads")]
    assert found == pytest.approx([0.1, -0.15, 0.1 if as_list else 0.125])


@pytest.mark.parametrize(("noise", "as_list"), [("exact", False), ("bernoulli", True)])
def test_who_is_ahead_by_exactly_the_tolerance_does_not_beat(noise, as_list):
    frame = {"arm": ["a", "b"], "item": [1, 1], "x": [0.86, 0.83]}
    objective = lb.Objective("x", margin=0.03, tie=0.03, noise=noise)
    if as_list:
        ones = np.arange(100) < np.array([[86], [83]])
        frame = {"arm": ["a"] * 100 + ["b"] * 100, "item": [*range(100)] * 2, "x": ones.ravel() * 1.0}
    claims = Claims(cells(frame, (objective,)), as_list=as_list)
    assert not claims.says("better", 0, 0, 1, 0.05)
    assert claims.says("not_worse", 0, 1, 0, 0.05)


def test_a_claim_is_made_at_its_own_level():
    claims = Claims(cells(TABLE, (CORRECT,)))
    said = [claims.says("better", 0, 0, 2, alpha) for alpha in (0.5, 1e-300, 0.5)]
    assert said == [True, False, True]


def test_arms_on_common_items_may_share_their_luck():
    """A difference of two values of scale 1 has one of 2, however they go together."""
    scores = np.random.default_rng(50).normal(0, 1, 100)
    frame = {"arm": ["a"] * 50 + ["b"] * 50, "item": [*range(50)] * 2, "score": scores}
    claims = Claims(cells(frame, (replace(SCORE, noise=("sub_gaussian", 1)),)))
    sample, radius = claims.sample("better", 0, 0, 1), 2 * np.sqrt(2 * np.log(1 / 0.05) / 50)
    least = scores[:50].mean() - scores[50:].mean() - radius
    assert claims.exceeds(0, sample, least - 1e-9, 0.05)
    assert not claims.exceeds(0, sample, least + 1e-9, 0.05)


def test_clusters_of_normal_values_are_judged_by_student():
    claims, sums, sizes = grouped(noise="gaussian")
    p = ttest_1samp(sums - 0.1 * sizes, 0.0, alternative="greater").pvalue
    assert claims.says("better", 0, 0, 1, p * (1 + 1e-6))
    assert not claims.says("better", 0, 0, 1, p * (1 - 1e-6))
    off = sums - sums.sum() / sizes.sum() * sizes
    assert claims.skewness("better", 0, 0, 1) == (30, pytest.approx(skew(off)))


def test_clusters_of_zeros_and_ones_are_bet_on():
    claims, sums, sizes = grouped(noise="bernoulli")
    sample, said = claims.sample("better", 0, 0, 1), []
    for b in np.linspace(-0.1, 0.5, 25):
        values = np.sort(sums - b * sizes)
        said.append(claims.exceeds(0, sample, b, 0.05))
        assert said[-1] == fixed_sample.by_betting(values, 0.0, 4 * (-1 - b), 4 * (1 - b), 0.05)
    assert 0 < sum(said) < 25


def test_values_that_repeat_are_doubted_of_either_arm():
    rng = np.random.default_rng(8)
    scores = np.r_[rng.normal(0, 1, 60), np.where(rng.random(60) < 0.5, 2.0, rng.normal(0, 1, 60))]
    frame = {"arm": ["a"] * 60 + ["b"] * 60, "item": [*range(60)] * 2, "score": scores}
    claims = Claims(cells(frame, (SCORE,)))
    for a, b in ((0, 1), (1, 0)):
        assert "repeated_values" in claims.doubts("not_worse", 0, a, b, 0.05)


def test_a_bound_that_is_shown_has_all_claims_below_it():
    """They need not be nested: what is above one that is not made does not count."""

    class WithAGap(Claims):
        def exceeds(self, i, sample, b, alpha):
            return not 0.5 < b < 0.7

    claims = WithAGap(cells(TABLE, (lb.Objective("correct", margin=0.2, noise="bernoulli"),)))
    claims.contrasts("better", 0).means[0, 2] = 1.0
    assert claims.bound(0, 0, 2, 0.05) == pytest.approx(0.4)


@pytest.mark.parametrize("claims_of", [Claims, AnytimeClaims])
def test_who_never_failed_is_not_below_an_inner_line_of_all(claims_of):
    """One failure is enough to know: a mean of 1 has none."""
    frame = {"arm": ["a"] * 9 + ["b"] * 9, "item": [*range(9)] * 2, "x": [1.0] * 17 + [0.0]}
    claims = claims_of(cells(frame, (lb.Objective("x", at_least=0.9, slack=0.1, noise="bernoulli"),)))
    assert [claims.says("not_clearly_within", 0, arm, None, 0.5) for arm in (0, 1)] == [False, True]


@pytest.mark.parametrize("noise", ["gaussian", ("bounded", -6, 6), ("sub_gaussian", 1), "finite_variance"])
def test_at_any_time_rows_that_nothing_pairs_are_judged_by_the_bounds_of_each_arm(noise):
    """At half of the level each; an arm may have more rows than another."""
    rng, objective = np.random.default_rng(5), replace(SCORE, noise=noise)
    scores = np.clip(np.r_[rng.normal(1.5, 1, 700), rng.normal(0, 1, 400)], -6, 6)
    frame = {"arm": ["a"] * 700 + ["b"] * 400, "score": scores}
    claims = AnytimeClaims(cells(frame, (objective,), item=None))
    kind, level = kind_at(kind_rows(spread_kinds([noise], 1)), 0), np.log(2 / 0.01)
    least, most = (
        arm_bounds(kind, *_moments(stored_value(kind, values)), level)
        for values in (scores[:700], scores[700:])
    )
    sample = claims.sample("better", 0, 0, 1)
    assert claims.exceeds(0, sample, least[0] - most[1] - 1e-9, 0.01)
    assert not claims.exceeds(0, sample, least[0] - most[1] + 1e-9, 0.01)
    assert judged(frame, [objective], item=None, sequential=True).certified == (noise != "finite_variance")


def test_at_any_time_rows_that_nothing_pairs_count_as_their_worst_where_they_are_missing():
    rng, objective = np.random.default_rng(6), lb.Objective("x", margin=0.2, noise=("bounded", 0, 1))
    frame = pd.DataFrame(
        {"arm": ["a"] * 300 + ["b"] * 300, "x": np.r_[rng.beta(8, 2, 300), rng.beta(2, 8, 300)]}
    )
    holes, worst = frame.assign(x=frame.x.where(frame.index % 5 > 0)), np.repeat([0.0, 1.0], 300)
    claims, filled = (
        AnytimeClaims(cells(table, (objective,), item=None, missing="worst"))
        for table in (holes, holes.assign(x=holes.x.fillna(pd.Series(worst))))
    )
    said = [
        [made.exceeds(0, made.sample("better", 0, 0, 1), b, 0.01) for b in np.linspace(-0.2, 0.8, 101)]
        for made in (claims, filled)
    ]
    assert said[0] == said[1]
    assert 0 < sum(said[0]) < 101


# --- errors


def duplicated():
    """Rows of one item that are there again, a little later."""
    return pd.concat([TABLE, TABLE[TABLE.item == "q7"].assign(latency=3.9)])


GAUSSIAN_GAPS = (lb.Objective("correct", margin=0.2, noise="gaussian"),)
WRONG = {
    "a table is a frame": ((5,), {}),
    r"judge reads \.csv, \.tsv, .*; got 'x\.txt'": (("x.txt",), {}),
    "no column 'amr', which names the arms; did you mean 'arm'\\? There are arm, item": (
        (TABLE,),
        {"arm": "amr"},
    ),
    "no column 'correct'; there are arm, item, latency": ((TABLE.drop(columns="correct"),), {}),
    "equally long": (({"arm": ["a"], "item": [1, 2], "correct": [1, 0], "latency": [1, 2]},), {}),
    "row 1: objective 'correct' must be a number, or None where it is missing, got 'well'": (
        (TABLE.assign(correct="well"),),
        {},
    ),
    "row 1: the item is missing": ((TABLE.assign(item=None),), {}),
    "row 1: the arm is missing": ((TABLE.assign(arm=[None, *TABLE.arm[1:]]),), {}),
    "row 1: the cluster is missing": ((TABLE.assign(c=np.nan),), {"cluster": "c"}),
    "the table has no rows": ((TABLE[:0],), {}),
    "names of arms must differ, '1' is there twice": (
        ({"arm": [1, "1"] * 2, "item": [1, 1, 2, 2], "score": [0.1] * 4}, [SCORE]),
        {},
    ),
    "item 'q7' has 2 rows of 'slow': say repeat=": ((duplicated(),), {}),
    "item 'q7' has 2 rows of 'slow' with one 'epoch'": ((duplicated().assign(epoch=1),), {"repeat": "epoch"}),
    "no arm 'none'; there are 'slow', 'fast', 'bad'": ((TABLE,), {"baseline": "none"}),
    r"row 1, item 'q0': objective 'latency' must be in \[0, 4\], got 5": ((TABLE.assign(latency=5.0),), {}),
    "row 1, item 'q0': objective 'score' must be finite, got inf": (
        (TABLE.assign(score=np.inf), [SCORE]),
        {},
    ),
    "is exact, but arm 'slow' has two different values": (
        (TABLE, [lb.Objective("latency", "minimize", noise="exact")]),
        {},
    ),
    "'slow' has no value of 'correct'": (
        (TABLE.assign(correct=TABLE.correct.where(TABLE.arm != "slow")),),
        {},
    ),
    "'a' and 'b' have no item in common": (
        ({"arm": list("abacbc"), "item": [1, 2, 3, 3, 4, 4], "score": [0.1, 0.2] * 3}, [SCORE]),
        {"missing": "drop"},
    ),
    "one item proves nothing": (({"arm": ["a", "b"], "item": [1, 1], "score": [0.1, 0.2]}, [SCORE]), {}),
    "sequential must be True or False, got 'twice'": ((TABLE,), {"sequential": "twice"}),
    "scope must be one of items, population, got 'list'": ((TABLE,), {"scope": "list"}),
    "missing must be one of error, worst, drop": ((TABLE,), {"missing": "guess"}),
    'missing="worst" needs values that have a worst': ((with_gaps(1), GAUSSIAN_GAPS), {"missing": "worst"}),
    'scope="items" needs all values': ((with_gaps(1),), {"missing": "drop", "scope": "items"}),
    "item 'q0' is in two clusters": ((TABLE.assign(c=range(len(TABLE))),), {"cluster": "c"}),
    "a cluster has 150 items, more than max_cluster=9": (
        (TABLE.assign(c=1),),
        {"cluster": "c", "max_cluster": 9},
    ),
    "nobody knows the scale of a cluster": (
        (TABLE.assign(c=TABLE.item), [lb.Objective("correct", margin=0.2, noise=("sub_gaussian", 0.5))]),
        {"cluster": "c"},
    ),
    "share what an item has in common": (
        (TABLE, [lb.Objective("correct", margin=0.2, noise=("sub_gaussian", 0.5, "independent"))]),
        {},
    ),
    "repeat= and cluster= need item=": ((TABLE,), {"item": None, "repeat": "x"}),
    "max_cluster= goes with cluster=": ((TABLE,), {"max_cluster": 3}),
    "judge needs objectives, each with a name": ((TABLE, []), {}),
    "sequential=True has neither": ((TABLE,), {"sequential": True, "baseline": "fast"}),
    "sequential=True takes no quantile=": (
        (TABLE, [lb.Objective("latency", margin=2, quantile=0.5, noise="gaussian")]),
        {"sequential": True},
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_an_error_says_what_to_mend(message):
    (table, *objectives), how = WRONG[message]
    with pytest.raises(lb.StudyError, match=message):
        judged(table, *objectives, **how)


# --- values that are cut


def test_a_cap_is_part_of_the_question():
    table = TABLE.assign(revenue=np.random.default_rng(6).lognormal(0, 1.5, len(TABLE)))
    capped = lb.Objective("revenue", margin=2, cap=5)
    assert capped.noise == ("bounded", 0.0, 5.0)
    verdict = judged(table, [capped])
    expected = table[table.arm == "fast"].revenue.clip(upper=5).mean()
    assert verdict.means["fast"]["revenue"]["mean"] == pytest.approx(expected)
    assert "the mean of values up to 5, higher is better" in str(verdict)
    floored = lb.Objective("revenue", margin=2, floor=1, noise=("bounded", 0, 500))
    assert floored.bounds == (1.0, 500.0)
    assert lb.Objective.from_json(capped.as_json()) == capped
    with pytest.raises(lb.StudyError, match="floor= needs cap="):
        lb.Objective("revenue", margin=2, floor=1)
    with pytest.raises(lb.StudyError, match="above= or cap="):
        lb.Objective("revenue", margin=2, cap=1, above=1)


def test_a_quantile_as_a_limit_is_a_share():
    """p95 of latency is at most 1.2 s: at most 5 % are above."""
    p95 = lb.Objective("latency", "minimize", above=1.2, at_most=0.3, slack=0.1)
    verdict = judged(objectives=[p95, CORRECT])
    share = (TABLE[TABLE.arm == "slow"].latency > 1.2).mean()
    assert verdict.means["slow"]["latency"]["mean"] == pytest.approx(share)
    assert verdict.outcomes["slow"].by == "elimination"
    assert verdict.arm == "fast"
    assert "how often it is above 1.2, at most 0.3" in str(verdict)


# --- shares of the best


def relative(**words):
    return lb.Objective("latency", "minimize", margin="40%", reference="best", **words)


@pytest.mark.parametrize("noise", ["gaussian", ("bounded", 0, 4)])
def test_a_share_of_the_best_is_a_claim_about_a_contrast(noise):
    table = drawn(200, 3, a=(0.9, 1.0), b=(0.9, 1.1), c=(0.9, 2.0))
    verdict = judged(table, [relative(noise=noise), CORRECT])
    assert verdict.certified
    assert verdict.outcomes["c"].by == "elimination"
    assert "margin 40 % of the best" in str(verdict)
    assert "excluded: worse by" in str(verdict)
    claims = Claims(cells(table, [relative(noise=noise)]))
    means = {arm: table[table.arm == arm].latency.mean() for arm in "abc"}
    assert claims.sample("better", 0, 0, 2).mean == pytest.approx(means["c"] - 1.2 * means["a"])
    assert claims.sample("not_worse", 0, 0, 2).mean == pytest.approx(1.4 * means["c"] - means["a"])
    if noise != "gaussian":
        assert claims.sample("better", 0, 0, 2)[3:5] == pytest.approx((-4.8, 4.0))
    more = lb.Objective("latency", margin="40%", reference="best", noise=noise)
    claims = Claims(cells(table, [more]))
    assert claims.sample("better", 0, 2, 0).mean == pytest.approx(0.8 * means["c"] - means["a"])
    assert claims.sample("not_worse", 0, 0, 2).mean == pytest.approx(means["a"] - 0.6 * means["c"])
    if noise != "gaussian":
        assert (claims.sample("better", 0, 2, 0).low, claims.sample("better", 0, 2, 0).high) == (-4.0, 3.2)


def test_shares_of_the_best_scale_with_the_unit():
    in_ms = TABLE.assign(latency=1000 * TABLE.latency)
    plain = judged(objectives=[relative(noise=("bounded", 0, 4)), CORRECT])
    scaled = judged(in_ms, [relative(noise=("bounded", 0, 4000)), CORRECT])
    assert said(scaled) == said(plain)


@pytest.mark.slow
def test_shares_of_the_best_are_claimed_wrongly_in_at_most_alpha():
    rng, wrong, tables = np.random.default_rng(7), 0, 1500
    for _ in range(tables):
        size = rng.gamma(25, 1 / 25, (60, 1))
        latency = size * rng.gamma(25, 1 / 25, (60, 2)) * [1.0, 1.4]  # exactly the margin
        table = {"arm": ["a", "b"] * 60, "item": np.repeat(range(60), 2), "latency": latency.ravel()}
        wrong += Claims(cells(table, [relative()])).says("not_worse", 0, 1, 0, 0.05)
    assert wrong <= tables * (0.05 + 4 * np.sqrt(0.05 * 0.95 / tables))


def test_what_a_share_of_the_best_cannot_be():
    with pytest.raises(lb.StudyError, match="not negative"):
        judged(TABLE.assign(latency=-TABLE.latency), [relative(noise=("bounded", -4, 0))])
    with pytest.raises(lb.StudyError, match="below 100 %"):
        lb.Objective("latency", margin="120%", reference="best", noise="gaussian")
    with pytest.raises(lb.StudyError, match="is a percentage"):
        lb.Objective("latency", margin=1.2, reference="best", noise="gaussian")
    with pytest.raises(lb.StudyError, match=r"shares of best need values that are not negative, nor all 0"):
        judged(TABLE.assign(latency=0.0), [relative()])


@pytest.mark.parametrize("reference", ["best", "slow"])
def test_shares_are_judged_at_any_time(reference):
    table = drawn(400, 3, fast=(0.9, 1.0), slow=(0.9, 2.0))
    share = replace(relative(noise=("bounded", 0, 4)), reference=reference)
    found = judged(table, [share], sequential=True)
    assert (found.arm, found.certified, found.sequential) == ("fast", True, True)
    assert not judged(table[table.item.isin([f"q{k}" for k in range(6)])], [share], sequential=True).certified


def test_percentages_of_a_named_arm_are_of_its_mean():
    table = drawn(200, 3, a=(0.9, 1.0), b=(0.9, 1.1), c=(0.9, 2.0))
    of_c = lb.Objective("latency", "minimize", margin="40%", reference="c", noise=("bounded", 0, 4))
    claims, means = Claims(cells(table, [of_c])), table.groupby("arm").latency.mean()
    for a, b in itertools.permutations(range(3), 2):
        apart = means["abc"[b]] - means["abc"[a]]
        assert claims.sample("better", 0, a, b).mean == pytest.approx(apart - 0.2 * means["c"])
        assert claims.sample("not_worse", 0, a, b).mean == pytest.approx(apart + 0.4 * means["c"])
    assert claims.sample("better", 0, 0, 1)[3:5] == pytest.approx((-4.8, 4.0))
    assert claims.sample("better", 0, 0, 2)[3:5] == pytest.approx((-4.0, 3.2))  # (1 − 0.2)·c − a
    verdict = judged(table, [of_c, CORRECT])
    assert (verdict.certified, verdict.outcomes["c"].by) == (True, "elimination")
    assert "margin 40 % of c" in str(verdict)
    known = replace(of_c, margin=0.4 * means["c"], reference=None)  # as if it were known
    assert judged(table, [known, CORRECT]).outcomes["c"].by == "elimination"
    with pytest.raises(lb.StudyError, match="reference must be \"best\", an arm or a number, got 'd'"):
        judged(table, [replace(of_c, reference="d")])


# --- quantiles

P90 = lb.Objective("latency", "minimize", margin=0.8, unit="s", quantile=0.9, noise="gaussian")


def test_a_quantile_is_judged_whatever_the_noise():
    table = drawn(600, 4, slow=(0.9, 2.0), fast=(0.9, 0.5))
    verdict = judged(table, [P90, CORRECT])
    assert (verdict.arm, verdict.certified, verdict.flags) == ("fast", True, ())
    seen = {arm: np.sort(table[table.arm == arm].latency)[539] for arm in ("slow", "fast")}
    for arm, quantile in seen.items():
        assert verdict.means[arm]["latency"]["mean"] == pytest.approx(quantile)
        assert verdict.means[arm]["latency"]["se"] == pytest.approx(0.3 * quantile / np.sqrt(600), rel=0.5)
    assert "the value that 90 % do not exceed, lower is better" in str(verdict)
    assert "normal" not in str(verdict)
    turned = table.assign(latency=-table.latency)
    mirrored = judged(turned, [replace(P90, direction="maximize", quantile=0.1), CORRECT])
    assert mirrored.outcomes["slow"].bound == pytest.approx(verdict.outcomes["slow"].bound)
    for arm in seen:  # order statistics of negated values
        mine, theirs = (found.means[arm]["latency"] for found in (verdict, mirrored))
        assert (mine["low"], mine["high"]) == pytest.approx((-theirs["high"], -theirs["low"]))
    listed = judged(table, [P90, CORRECT], scope="items")
    assert (listed.arm, listed.delta) == ("fast", 0.0)


def test_gaps_count_as_the_worst_for_a_quantile_too():
    table = TABLE.assign(latency=TABLE.latency.where(np.random.default_rng(3).random(len(TABLE)) > 0.1))
    claims = Claims(cells(table, [replace(P90, noise=("bounded", 0, 4))], missing="worst"))
    for a, b in itertools.permutations(range(3), 2):
        mine, other = claims._quantiles_of(0, claims.sample("not_worse", 0, a, b))
        lost = [table[table.arm == claims.table.arms[x]].latency.isna().sum() for x in (a, b)]
        assert [mine.size, (mine == -4).sum(), (other == 0).sum()] == [150, *lost]
        assert min(lost) > 5


def test_too_few_items_for_a_quantile_is_reported():
    verdict = judged(drawn(60), [replace(P90, quantile=0.99)])
    assert not verdict.certified
    assert verdict.details["few_for_quantile"]["needed"] > 500
    assert "needs at least" in str(verdict)


def test_what_a_quantile_cannot_be():
    for words, message in (
        ({"quantile": 1.5}, "between 0 and 1"),
        ({"at_most": 2.0}, "above=LIMIT, at_most=0.1"),
        ({"cap": 3.0}, "takes no cap="),
        ({"noise": "exact"}, "has no quantiles"),
        ({"margin": "5%", "reference": "best"}, "or percentage"),
    ):
        with pytest.raises(lb.StudyError, match=message):
            replace(P90, **words)
    with pytest.raises(lb.StudyError, match="repeat= and cluster= do not go with it"):
        judged(TABLE.assign(epoch=1), [P90], repeat="epoch")
    with pytest.raises(lb.StudyError, match="give a study a limit, above=LIMIT, at_most=0"):
        lb.create_study("s", MemoryStorage(), arms=["a"], objectives=[P90], seed=0)


def test_a_limit_that_nobody_meets_is_said_at_any_time():
    table = drawn(400, 2, a=(0.2, 1.0), b=(0.1, 1.0))
    limit = lb.Objective("correct", at_least=0.85, slack=0.05, noise="bernoulli")
    for sequential in (False, True):
        verdict = judged(table, [limit], sequential=sequential)
        assert verdict.details["infeasible"] == {"objectives": ["correct"]}
        assert "no arm meets the limit on correct" in str(verdict)


def test_flags_come_in_one_order_whatever_the_hashes_of_their_names():
    rng, rows = np.random.default_rng(0), np.arange(240)
    table = {"arm": ["a", "b"] * 120, "item": rows // 2, "of": np.minimum(rows // 10, 20)}
    table["x"] = np.where(rows % 12 < 4, 1.0, -(rng.exponential(size=240) ** 3))
    limit = lb.Objective("x", at_least=-9.2, slack=0.2, noise="gaussian")
    assert judged(table, [limit], cluster="of").flags == ("asymptotic", "skewed", "repeated_values")


# --- a study that follows


def test_a_study_follows_up_the_candidates():
    near = drawn(60, 2, a=(0.8, 1.0), b=(0.8, 1.1), bad=(0.1, 1.0))
    of_best = lb.Objective("latency", "minimize", margin="40%", reference="best", cap=4)
    verdict = judged(near, [replace(CORRECT, margin=0.04), of_best])
    words = verdict.follow_up("again")
    study = lb.create_study(storage=MemoryStorage(), **{"seed": 0, **words})
    assert study.status.candidates == verdict.candidates == ("a", "b")
    least = min(verdict.means[arm]["latency"]["mean"] for arm in "ab")
    assert study.objectives[1].margin_in_unit == pytest.approx(0.4 * least)
    assert (study.objectives[1].noise, study.objectives[1].cap) == (("bounded", 0.0, 4.0), 4.0)
    with pytest.raises(lb.StudyError, match="above=LIMIT"):
        judged(near, [P90, CORRECT]).follow_up()
    with pytest.raises(lb.StudyError, match="only 'fast' is left"):
        judged().follow_up()


def test_a_study_that_follows_asks_the_same_question():
    near = drawn(60, 2, a=(0.8, 1.0), b=(0.8, 1.1), bad=(0.1, 1.0))
    objectives = [
        replace(CORRECT, margin=0.04),
        lb.Objective("latency", "minimize", margin=0.2, noise="gaussian"),
    ]
    table = near.astype({"correct": float})
    table.loc[[3, 50], "correct"] = np.nan
    verdict = judged(table, objectives, missing="worst", baseline="b")
    assert verdict.decision == "keep_for_now"
    study = lb.create_study(storage=MemoryStorage(), **{"seed": 0, **verdict.follow_up()})
    assert (study.spec["baseline"], study.answer.decision) == ("b", "keep_for_now")
    assert [objective.if_missing for objective in study.objectives] == ["worst", None]
    assert "baseline" not in judged(near, objectives).follow_up()
    agreed = replace(CORRECT, margin=0.04, if_missing="worst")
    words = judged(near, [agreed, objectives[1]]).follow_up()
    assert [objective.get("if_missing") for objective in words["objectives"]] == ["worst", None]
    bad = judged(near, objectives, baseline="bad").follow_up()
    assert (bad["baseline"], set(bad["arms"])) == ("bad", {"a", "b", "bad"}), "one that is out stays"
    clustered = near.assign(of=[int(item[1:]) // 2 for item in near.item])
    verdict = judged(clustered, [replace(CORRECT, margin=0.04)], cluster="of", max_cluster=2)
    assert not verdict.certified
    assert "follow_up()" not in str(verdict)
    assert "follow_up()" in str(judged(near, [replace(CORRECT, margin=0.04)]))
    with pytest.raises(lb.StudyError, match="knows no clusters"):
        verdict.follow_up()


def test_on_a_list_every_difference_may_matter():
    strict = [lb.Objective("correct", margin=0, noise="bernoulli")]
    table = {"arm": [*"abab"], "item": [1, 1, 2, 2], "correct": [1, 1, 1, 0]}
    verdict = lb.judge(table, strict, scope="items")
    assert (verdict.arm, verdict.certified, verdict.candidates) == ("a", True, ("a",))
    with pytest.raises(lb.StudyError, match="the margin must be positive"):
        lb.judge(table, strict)
    study = lb.create_study("s", MemoryStorage(), arms=["a", "b"], objectives=strict, items=[1, 2], seed=0)
    assert study.run(lambda arm, item: {"correct": arm == "a" or item == 1}, progress=False).exact
