"""Where a small error would make false claims: levels, scales and ends of claims, at their edges."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.evidence import fixed_sample
from lexbandits.evidence.bounded import LOG_WEIGHTS, MOST_RISK, STAKES
from lexbandits.evidence.sub_gaussian import one_sided_level, sub_gaussian_radius
from lexbandits.judging.claims import Claims, Sample
from lexbandits.judging.sequential import AnytimeClaims
from lexbandits.judging.table import table_of
from support import judge_oracle as naive

SCORE = lb.Objective("score", margin=0.6, noise="gaussian")


def cells(table, objectives, **how):
    words = dict.fromkeys(("repeat", "cluster", "max_cluster"))
    return table_of(table, objectives, **{"arm": "arm", "item": "item", "missing": "error", **words, **how})


def long(values, name="score"):
    """A table of (K, n) values, of arms a, b, …"""
    K, n = values.shape
    return {"arm": np.repeat([*"abcdefgh"[:K]], n), "item": [*range(n)] * K, name: values.ravel()}


def says_from(claims, sample, edge, alpha):
    """Whether a claim is made right below an edge, and not right above it."""
    made = [claims.exceeds(0, sample, edge + side, alpha) for side in (-1e-7, 1e-7)]
    return made == [True, False]


# --- cells without a row


@pytest.mark.parametrize("K", [2, 3, 4])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_every_cell_without_a_row_is_missing(K, direction):
    """Also if its item has a single row; and in one with rows, each value that is not there."""
    rng = np.random.default_rng(K)
    objective = lb.Objective("x", direction, margin=0.2, noise=("bounded", -1, 3))
    for _ in range(20):
        n = int(rng.integers(6, 12))
        is_there = np.concatenate([rng.random((n, K)) < 0.6, np.ones((2, K), bool)])
        is_there[0] = np.arange(K) == rng.integers(K)  # an item with one row
        rows = [
            (f"arm {a}", k, r, math.nan if rng.random() < 0.15 and k < n else float(rng.uniform(-1, 3)))
            for k, a in np.argwhere(is_there | (rng.random((n + 2, 1)) < 0.02)).tolist()
            for r in range(int(rng.integers(1, 3)))
        ]
        table = dict(zip(("arm", "item", "r", "x"), zip(*rows, strict=True), strict=True))
        words = {"repeat": "r", "missing": "worst"}
        found = cells(table, (objective,), **words)
        holes = 0
        for (k, item), (a, arm) in itertools.product(enumerate(found.items), enumerate(found.arms)):
            values = [x for name, of, _, x in rows if (name, of) == (arm, item)]
            lost = [math.isnan(x) for x in values]
            holes += not values or any(lost)
            filled = [
                np.mean([end if gone else x for x, gone in zip(values, lost, strict=True)] or [end])
                for end in (-1.0, 3.0)
            ]
            expected = filled if direction == "maximize" else [-filled[1], -filled[0]]
            assert [found.low[k, a, 0], found.high[k, a, 0]] == pytest.approx(expected)
        assert found.missing == holes > 0
        with pytest.raises(
            lb.StudyError, match=f"{holes} of {len(found.items) * K} values of 'x' (is|are) missing"
        ):
            cells(table, (objective,), repeat="r")


@pytest.mark.parametrize("missing", ["error", "worst"])
def test_an_item_that_only_one_of_two_arms_has_is_no_item_less(missing):
    """It may be missing because of what it was: dropped, the worse arm would be certified."""
    values = np.array([[1.0] * 30, [0.0] * 15 + [1.0] * 15])
    table = long(values, "x")
    kept = [k for k in range(60) if not 30 <= k < 45]  # b's failures are not there
    table = {name: [column[k] for k in kept] for name, column in table.items()}
    objective = lb.Objective("x", margin=0.2, noise="bernoulli")
    if missing == "error":
        with pytest.raises(lb.StudyError, match="15 of 60 values of 'x' are missing"):
            lb.judge(table, [objective])
    else:
        verdict = lb.judge(table, [objective], missing="worst", candidate="b")
        assert not verdict.certified
        assert "b" not in lb.judge(table, [objective], missing="worst").acceptable
    assert lb.judge(table, [objective], missing="drop", candidate="b").flags == ("dropped_missing",)


# --- ends of bets


@pytest.mark.parametrize("largest", [None, 4])
def test_the_least_sum_of_a_cluster_is_that_of_the_largest(largest):
    """Nearly all differences are as large as can be, so that what may yet be lost bounds the stakes."""
    rng, said, alphas = np.random.default_rng(0), [], [0.3, 0.1, 0.05, 0.02, 0.01, 0.003, 0.001, 1e-4]
    for clusters in (8, 15, 30):
        sizes = np.r_[np.full(clusters - 2, 1), 2, 2]
        of = np.repeat(np.arange(clusters), sizes)
        values = np.stack([np.ones(of.size), rng.uniform(0, 0.1, of.size)])
        table = long(values, "x") | {"c": [*of] * 2}
        objective = lb.Objective("x", margin=0.2, noise=("bounded", 0, 1))
        claims = Claims(cells(table, (objective,), cluster="c", max_cluster=largest))
        sample, most = claims.sample("better", 0, 0, 1), largest or 2
        for b, alpha in itertools.product((0.1, 0.4, 0.7), alphas):
            sums = np.sort(np.bincount(of, values[0] - values[1] - b))
            gained = naive.betting(
                sums[None], fixed_sample._orders(clusters), 0.0, most * (-1 - b), most * (1 - b), alpha
            )[0]
            said.append(claims.exceeds(0, sample, b, alpha))
            assert said[-1] == (gained >= 1), (clusters, b, alpha, gained)
    assert 5 < sum(said) < len(said) - 5


@pytest.mark.parametrize("noise", ["bernoulli", ("bounded", 0, 1)])
def test_how_large_a_cluster_can_be_must_be_given(noise):
    """The largest so far says nothing of those to come."""
    values = np.stack([np.ones(120), np.arange(120) % 8 < 1]).astype(float)
    table = long(values, "x") | {"c": [*np.arange(120) // 2] * 2}
    asked = [lb.Objective("x", margin=0.2, noise=noise)]
    stated, unsaid = (lb.judge(table, asked, cluster="c", max_cluster=most) for most in (2, None))
    assert (stated.certified, stated.flags) == (True, ())
    assert (unsaid.certified, unsaid.flags) == (False, ("cluster_size",))


@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_at_any_time_a_boundary_close_to_the_least_value_takes_evidence(low):
    claims, pair = AnytimeClaims(cells(long(np.ones((2, 3))), (replace(SCORE, noise=("bounded", 0, 1)),))), ()
    pair = ((0, 1.0), (1, -1.0)) if low < 0 else ((0, 1.0),)
    for near, some in itertools.product([1e-9, 1e-6, 1e-4, 5e-4, 1e-3, 2e-3, 1e-2], [1, 3]):
        b, values = low + near * (1 - low), np.sort(np.r_[np.full(40, low), np.full(some, 0.5)])
        gains = [
            math.log(weight)
            + sum(math.log1p(min(stake, MOST_RISK / near) * ((v - low) / (1 - low) - near)) for v in values)
            for stake, weight in zip(STAKES, np.exp(LOG_WEIGHTS), strict=True)
        ]
        edge = -float(np.logaddexp.reduce(gains))
        sample = Sample(
            lambda values=values: values, values.mean(), values.std(), low, 1.0, pair, len(values)
        )
        assert values.mean() > b
        assert claims.exceeds(0, sample, b, math.exp(edge + 1e-7))
        assert not claims.exceeds(0, sample, b, math.exp(edge - 1e-7))
    assert claims.exceeds(0, sample, low, 1e-300)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e6])
def test_exact_values_are_apart_by_more_than_rounding(scale):
    """What nobody measured with noise differs as it is written."""
    for tolerance, apart, beats in (
        (0.0, 1e-9, True),
        (0.3, 1e-9, True),
        (0.3, 0.0, False),
        (0.3, -1e-9, False),
    ):
        values = scale * np.array([[1.0 + tolerance + apart], [1.0]])
        objective = lb.Objective("x", margin=tolerance * scale, noise="exact")
        claims = Claims(cells(long(values, "x"), (objective,)))
        assert claims.says("better", 0, 0, 1, 0.05) == beats
        assert claims.says("not_worse", 0, 1, 0, 0.05) != beats


# --- contrasts of three arms: a share of a third one's mean

OF_A_THIRD = {"margin": "20%", "reference": "c", "noise": ("sub_gaussian", 1)}
LINES = {"better": -0.1, "not_worse": 0.2}  # what c's mean counts in the contrast with a − b


@pytest.mark.parametrize("fact", LINES)
def test_three_arms_on_common_items_may_share_their_luck(fact):
    """Sums of values of scale 1 have at most the sum of their scales, however they go together."""
    values = np.random.default_rng(1).normal(6, 1, (3, 50))
    table, weights = long(values), np.array([1, -1, LINES[fact]])
    mean = float(weights @ values.mean(axis=1))
    alpha, scale = 0.03, np.abs(weights).sum()
    claims = Claims(cells(table, (replace(SCORE, **OF_A_THIRD),)))
    sample = claims.sample(fact, 0, 0, 1)
    assert says_from(claims, sample, mean - scale * math.sqrt(2 * math.log(1 / alpha) / 50), alpha)
    looked = AnytimeClaims(claims.table)
    radius = sub_gaussian_radius(50.0, scale, one_sided_level(math.log(1 / alpha)))
    assert says_from(looked, sample, mean - radius, alpha)


@pytest.mark.parametrize("fact", LINES)
def test_three_arms_that_nothing_pairs_do_not_share_it(fact):
    values = np.random.default_rng(2).normal(6, 1, (3, 50))
    table, weights = long(values), np.array([1, -1, LINES[fact]])
    mean, scale, alpha = float(weights @ values.mean(axis=1)), float(np.hypot.reduce(weights)), 0.03
    claims = Claims(cells(table, (replace(SCORE, **OF_A_THIRD),), item=None))
    sample = claims.sample(fact, 0, 0, 1)
    assert says_from(claims, sample, mean - scale * math.sqrt(2 * math.log(1 / alpha) / 50), alpha)


@pytest.mark.parametrize("fact", LINES)
def test_at_any_time_three_arms_that_nothing_pairs_have_a_third_of_the_level_each(fact):
    values = np.random.default_rng(3).normal(6, 1, (3, 50))
    claims = AnytimeClaims(cells(long(values), (replace(SCORE, **OF_A_THIRD),), item=None))
    weights, alpha = np.array([1, -1, LINES[fact]]), 0.03
    radius = sub_gaussian_radius(50.0, 1.0, one_sided_level(math.log(3 / alpha)))
    least = float(weights @ values.mean(axis=1) - np.abs(weights).sum() * radius)
    assert says_from(claims, claims.sample(fact, 0, 0, 1), least, alpha)


def test_rows_without_items_are_in_no_order_of_values_whichever_arms_are_compared():
    """Two of five arms in the order of their values would seem to differ by the same everywhere."""
    rng = np.random.default_rng(4)
    values = np.sort(rng.normal(size=(5, 300)), axis=1)
    for table in (long(values), long(values[:, ::-1])):
        claims = Claims(cells(table, (SCORE,), item=None))
        for a, b in itertools.permutations(range(5), 2):
            assert claims.sample("better", 0, a, b).sd == pytest.approx(math.sqrt(2), rel=0.25)


# --- what a switch rests on


def three_arms(repeated, shares=(0.9, 0.72, 0.5)):
    """`first` beats `old` on correct; `new` beats `old` on score alone, where `old` may repeat a value."""
    rng, n = np.random.default_rng(5), 300
    correct = np.array([np.arange(n) < n * share for share in shares]).astype(float)
    score = rng.normal(size=(3, n))
    score = (score - score.mean(axis=1, keepdims=True)) / score.std(axis=1, keepdims=True)
    if repeated:
        score[2, np.argsort(np.abs(score[2]))[:90]] = 0.0
    score[1] += 4.5 * math.sqrt(2 / n)
    table = {"arm": np.repeat(["first", "new", "old"], n), "item": [*range(n)] * 3}
    order = np.stack([rng.permutation(n) for _ in range(3)])
    return table | {"correct": np.take_along_axis(correct, order, 1).ravel(), "score": score.ravel()}


def test_a_switch_that_rests_on_doubted_claims_is_none():
    objectives = [
        lb.Objective("correct", margin=0.4, noise="bernoulli"),
        lb.Objective("score", margin=0.02, noise="gaussian"),
    ]
    sound, doubted = (
        lb.judge(three_arms(repeated), objectives, baseline="old") for repeated in (False, True)
    )
    assert (sound.decision, sound.arm, sound.certified) == ("switch", "new", True)
    assert [row["verdict"] for row in sound.certificate if row["rival"] == "old"][:2] == [
        "not_worse",
        "beaten",
    ]
    beaten = next(row for row in sound.certificate if row["verdict"] == "beaten")
    assert (beaten["arm"], beaten["by"], beaten["rival"]) == ("first", "first", "old")
    assert beaten["difference"] == pytest.approx(0.4)
    assert "new" in doubted.acceptable  # which rests on correct alone as far as old is concerned
    assert (doubted.decision, doubted.arm, doubted.certified) == ("keep_for_now", "old", False)


def test_the_answer_is_an_arm_to_which_a_switch_is_proven():
    """By the means it is "new"; "first", which beats "old" on correct, is acceptable as well."""
    objectives = [
        lb.Objective("correct", margin=0.4, noise="bernoulli"),
        lb.Objective("score", margin=0.02, noise="gaussian"),
    ]
    verdict = lb.judge(three_arms(True, (0.99, 0.71, 0.5)), objectives, baseline="old")
    assert verdict.acceptable == ("first", "new")
    assert (verdict.decision, verdict.arm, verdict.certified) == ("switch", "first", True)


@pytest.mark.parametrize(
    ("ones", "said"), [(106, "below the inner line 0.8, and below b on it"), (40, "violates")]
)
def test_a_switch_by_a_limit_needs_both_claims(ones, said):
    """The current arm is below the inner line and behind; below the limit is shown of the second only."""
    values = (np.arange(200) < [[ones], [196]]).astype(float)
    limit = lb.Objective("score", at_least=0.5, slack=0.3, noise="bernoulli")
    verdict = lb.judge(long(values), [limit], baseline="a")
    assert (verdict.decision, verdict.arm, verdict.flags) == ("switch", "b", ())
    facts = ["meets_limit", "not_clearly_within", "better"]
    assert [row["verdict"] for row in verdict.certificate[-3:]] == facts
    assert [row["level"] for row in verdict.certificate[-3:]] == pytest.approx([0.75 * 0.025, 0.025, 0.025])
    assert f"Switch to b: a {said}" in str(verdict).replace("a is below", "a below")


@pytest.mark.parametrize("skewed", [False, True])
def test_what_a_third_arm_beats_is_doubted_too(skewed):
    """a is acceptable as c beats b, whose difference alone is skewed: the noise of a hides it elsewhere."""
    rng, n = np.random.default_rng(6), 400
    luck = np.where(np.arange(n) < 8, -7.0, 0.0) if skewed else rng.normal(size=n)
    luck += 0.01 * rng.normal(size=n)  # no value repeats
    luck = (luck - luck.mean()) / luck.std(ddof=1)
    own = rng.normal(size=n)
    first = np.stack([3 + 5 * (own - own.mean()), 1e-3 * rng.normal(size=n), 3 + 3.2 / 20 + luck])
    second = rng.normal([[5], [10], [0]], 1, (3, n))
    table = long(first, "x") | {"y": second.ravel()}
    verdict = lb.judge(
        table,
        [lb.Objective("x", margin=6, noise="gaussian"), lb.Objective("y", margin=0.6, noise="gaussian")],
        candidate="a",
    )
    third = [(row["by"], row["rival"]) for row in verdict.certificate if row["verdict"] == "beaten"]
    assert ("c", "b") in third
    assert (verdict.certified, verdict.flags) == ((False, ("skewed",)) if skewed else (True, ()))


# --- what is missing, and what counts for it


def test_a_list_with_gaps_is_certain_of_no_more_than_of_every_filling():
    values = np.array([[1.0] * 5 + [math.nan] * 5, [1.0] * 9 + [0.0]])
    objective = lb.Objective("score", margin=0.2, noise="bernoulli")
    verdict = lb.judge(long(values), [objective], scope="items", missing="worst")
    assert "a" not in verdict.acceptable  # it may be behind by 0.4
    assert not lb.judge(long(values), [objective], scope="items", missing="worst", candidate="a").certified
    values[0, 5:9] = 1.0
    verdict = lb.judge(long(values), [objective], scope="items", missing="worst")
    assert (verdict.acceptable, verdict.certified) == (("a", "b"), True)


@pytest.mark.parametrize(("failed", "counts"), [(3.5, 2.0), (0.5, 1.0), (1.5, 1.5)])
def test_what_a_failure_is_worth_is_cut_like_a_value(failed, counts):
    noise = ("bounded", 0, 4)
    objective = lb.Objective("x", "minimize", margin=0.2, noise=noise, cap=2, floor=1, if_failed=failed)
    found = cells(long(np.array([[3.0, math.nan], [1.2, 1.3]]), "x"), (objective,))
    assert found.seen[:, 0, 0].tolist() == found.low[:, 0, 0].tolist() == [-2.0, -counts]


@pytest.mark.parametrize("scope", ["population", "items"])
def test_a_claim_that_serves_two_objectives_alike_is_a_row_of_the_certificate(scope):
    """What is certain takes no share, so that it has one level wherever it is used."""
    n = 40
    noise = np.random.default_rng(1).normal(0, 0.1, (2, 2, n))
    table = {"arm": ["a"] * n + ["b"] * n, "item": [*range(n)] * 2, "price": [1.0] * n + [2.0] * n}
    table |= {name: np.r_[1 + noise[k, 0], 9 + noise[k, 1]] for k, name in enumerate(("x", "y"))}
    asked = [
        lb.Objective("price", "minimize", noise="exact"),
        lb.Objective("x", margin=1, noise="gaussian"),
        lb.Objective("y", margin=1, noise="gaussian"),
    ]
    verdict = lb.judge(table, asked, scope=scope)
    assert (verdict.arm, verdict.certified) == ("a", True)
    assert ("price", "better") in {(row["objective"], row["verdict"]) for row in verdict.certificate}
