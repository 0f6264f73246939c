"""How many new items a verdict asks for: against the scheme and the tests it foresees, and tried out."""

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

import lexbandits as lb
from lexbandits.evidence import fixed_sample
from lexbandits.judging.claims import Claims
from lexbandits.judging.sample_size import FUTURES, SCENARIOS, _Future
from lexbandits.judging.scheme import is_better, proof_of, switch_levels
from lexbandits.judging.table import table_of
from lexbandits.views.verdict_view import outlook
from support.claimed import drawn_claims

ROOT = Path(__file__).parents[2]
SHAPE = SCENARIOS + 1, FUTURES


def table(values, names=("score",), **columns):
    """(n, K, m) values as columns, of arms a, b, …"""
    n, K, _ = values.shape
    found = {"arm": np.tile([*"abcdefgh"[:K]], n), "item": np.repeat(np.arange(n), K), **columns}
    return found | {name: values[:, :, i].ravel() for i, name in enumerate(names)}


def normal(n, *means, seed=0):
    """Values whose means and deviations are exact."""
    values = np.random.default_rng(seed).standard_normal((n, len(means)))
    return ((values - values.mean(axis=0)) / values.std(axis=0, ddof=1) + means)[:, :, None]


def score(half=0.3, **more):
    return [lb.Objective("score", **{"margin": 2 * half, "noise": "gaussian", **more})]


# --- the same rule as a verdict


class Given(_Future):
    """Claims that are made as in `test_scheme.Placed`."""

    def __init__(self, claims):
        self.claims, self.blocks, self._marks, self._columns_of = claims, False, set(), None

    def made(self, n, claim, alpha):
        return np.full(SHAPE, self.claims.says(*claim, alpha))

    _made = made

    def _is_plain(self, i):
        return False


def test_who_is_certified_follows_as_in_a_verdict():
    rng, proven, better = np.random.default_rng(1), 0, 0
    for _ in range(600):
        claims = drawn_claims(rng)
        future = Given(claims)
        for x in range(claims.n_arms):
            found = future.proven(0, x, 0.05)
            assert found.all() == found.any()
            assert found.all() == proof_of(claims, x, 0.05).is_complete
            proven += found.all()
        if claims.n_arms > 1:
            found = future.better(0, switch_levels(claims, 0, 1, 0.05))
            assert found.all() == found.any() == bool(is_better(claims, 0, 1, 0.05))
            better += found.all()
    assert proven > 100
    assert better > 30


# --- the same tests


KINDS = {  # noise, how its difference is drawn with a mean of 0
    "gaussian": ("gaussian", lambda rng, n: rng.standard_normal(n)),
    "symmetric": ("symmetric", lambda rng, n: rng.laplace(size=n)),
    "sub_gaussian": (("sub_gaussian", 0.5), lambda rng, n: rng.standard_normal(n) / 2),
    "binary": ("bernoulli", None),
    "bounded": (("bounded", 0.0, 4.0), None),
}


def two_arms(kind, rng, n, mean):
    """Values of two arms, the first better by `mean`."""
    if kind == "binary":
        return (rng.random((n, 2)) < [0.5 + mean, 0.5]).astype(float)[:, :, None]
    if kind == "bounded":
        return np.clip(rng.gamma(4, 0.25, (n, 2)) + np.array([1 + mean, 1.0]), 0, 4)[:, :, None]
    luck = rng.standard_normal(n)  # of the item, the same for both
    return np.stack([luck + KINDS[kind][1](rng, n) + mean, luck], axis=1)[:, :, None]


@pytest.mark.parametrize("n", [40, 600])
@pytest.mark.parametrize("kind", KINDS)
def test_claims_are_made_beyond_the_edge_that_is_forecast(kind, n):
    """Of samples on it about half make the claim, of those beyond it most do, of those short of it few."""
    rng, alpha, objectives = np.random.default_rng(n), 0.02, score(0.1, noise=KINDS[kind][0])
    words = {"arm": "arm", "item": "item", "missing": "error"} | dict.fromkeys(
        ("repeat", "cluster", "max_cluster")
    )
    claim = ("better", 0, 0, 1)
    claims = Claims(table_of(table(two_arms(kind, rng, n, 0.1)), objectives, **words))
    edge = float(np.mean(_Future(claims).edge(n, claim, alpha)))
    made = []
    for times in (0.5, 1.0, 1.6):
        found = []
        for _ in range(60):
            values = two_arms(kind, rng, n, 0.1 + times * edge)
            tried = Claims(table_of(table(values), objectives, **words))
            found.append(tried.says(*claim, alpha) and "skewed" not in tried.doubts(*claim, alpha))
        made.append(np.mean(found))
    assert made[0] <= 0.4
    assert 0.25 <= made[1] <= 0.85
    assert made[2] >= 0.8


def test_a_quantile_needs_as_many_as_can_have_it():
    rng = np.random.default_rng(0)
    values = 1000 * np.arange(2)[:, None] + rng.standard_normal((30, 2, 1))
    verdict = lb.judge(table(values), score(0.1, quantile=0.97))
    assert not verdict.certified
    fewest = fixed_sample.fewest_for_quantile(0.97, 0.05)
    assert 0.8 * fewest <= verdict.missing_items <= 1.3 * fewest


def test_a_known_scale_counts_not_the_deviation_that_is_seen():
    asked = {
        scale: lb.judge(
            table(normal(400, 0.0, 0.2)), score(0.15, noise=("sub_gaussian", scale))
        ).missing_items
        for scale in (4.0, 8.0)
    }
    assert asked[4.0] > 1500
    assert 3 < asked[8.0] / asked[4.0] < 4.5


# --- a baseline, and a candidate


def test_a_switch_takes_more_than_a_good_arm():
    """b is as good as any with few items; that it is better than a by 0.15 takes more of them."""
    values = normal(40, 0.0, 0.5)
    plain, switch = (lb.judge(table(values), score(0.15), **how) for how in ({}, {"baseline": "a"}))
    assert plain.certified
    assert switch.decision == "keep_for_now"
    assert switch.missing_items > 70


def test_a_named_arm_has_all_of_delta():
    values = normal(5, 0.0, -1.0, -1.1, -1.2)
    asked = [lb.judge(table(values), score(0.1), **how).missing_items for how in ({}, {"candidate": "a"})]
    assert asked[1] < asked[0]


@pytest.mark.parametrize(("K", "n"), [(2, 50), (4, 120)])
def test_no_number_for_an_arm_that_is_beyond_what_may_be_given_up(K, n):
    verdict = lb.judge(table(normal(n, *[2.0] * (K - 1), 0.0)), score(), candidate="abcd"[K - 1])
    assert (verdict.missing_items, verdict.missing_range, verdict.missing_reason) == (None, None, "beyond")
    assert "no number of items would certify" in str(verdict)
    assert "a is better on score by 2.00, more than 0.6." in str(verdict)
    limit = [lb.Objective("score", at_least=0.8, slack=0.2, noise="gaussian")]
    missed = lb.judge(table(normal(n, *[2.0] * (K - 1), 0.0)), limit, candidate="abcd"[K - 1])
    assert "its score is 0.00, not at least 0.8." in str(missed)


def test_no_number_where_neither_keeping_nor_a_switch_can_be_proven():
    """b is much better on the second; on the first it is worse by no less and no more than matters."""
    first, then = normal(400, 0.0, -0.2, seed=1), normal(400, 0.0, 3.0, seed=2)
    asked = [
        lb.Objective("score", margin=0.200000001, tie=0.2, noise="gaussian"),
        lb.Objective("then", margin=0.6, noise="gaussian"),
    ]
    verdict = lb.judge(table(np.concatenate([first, then], axis=2), ("score", "then")), asked, baseline="a")
    assert (verdict.decision, verdict.missing_items) == ("keep_for_now", None)
    assert "no number of items would prove a switch, or that a may be kept" in str(verdict)


@pytest.mark.parametrize("seed", range(3))
def test_what_may_be_on_the_edge_has_no_number(seed):
    """The gap of the candidate is what may be given up, but for a hundredth of a standard error."""
    verdict = lb.judge(table(normal(100, 0.0, -0.598, seed=seed)), score(), candidate="b")
    assert (verdict.missing_items, verdict.missing_reason) == (None, "edge")
    assert "More items may not settle it: it would take at least about" in str(verdict)


# --- flags


def test_finite_variance_takes_its_least_number_and_is_never_certified():
    few, many = (
        lb.judge(table(normal(n, 0.0, 1.0)), score(noise="finite_variance"), **how)
        for n, how in ((40, {}), (400, {}))
    )
    assert few.missing_items == 300
    assert "About 300 new items should settle it, but never give a certificate: finite_variance" in str(few)
    assert (many.missing_items, many.missing_reason) == (None, "asymptotic")
    assert "More items would not give a certificate: finite_variance is an approximation" in str(many)
    kept = lb.judge(table(normal(40, 0.0, 1.0)), score(noise="finite_variance"), baseline="a")
    assert (kept.missing_items, kept.missing_reason) == (None, "asymptotic")


def test_what_no_item_cures_is_said_instead_of_a_number():
    rng, of = np.random.default_rng(0), np.repeat(np.arange(30), 4)
    values = (rng.random((60, 2, 1)) < [[0.9], [0.3]]).astype(float)
    unsaid = lb.judge(table(values, of=of), score(noise="bernoulli"), cluster="of")
    assert (unsaid.missing_items, unsaid.missing_reason) == (None, "cluster_size")
    assert "More clusters would not give a certificate: say how many items" in str(unsaid)
    times = np.stack([np.full(60, 3.0), 1 + rng.random(60)], axis=1)[:, :, None]
    copied = lb.judge(table(times), score(noise=("bounded", 0.0, 9.0)))
    assert (copied.missing_items, copied.missing_reason) == (None, "copied_values")
    assert "More rows of the same measurements would not do." in str(copied)
    again = lb.judge(table(values), score())
    assert (again.missing_items, again.missing_reason) == (None, "repeated_values")
    assert "More items would not give a certificate: values that repeat themselves" in str(again)


def test_a_long_tail_asks_for_more_items_than_none():
    rng, asked = np.random.default_rng(2), {}
    tail = rng.standard_exponential(200)
    tail = (tail - tail.mean()) / tail.std(ddof=1)
    for sign in (-1, 1):
        luck = rng.standard_normal(200)
        values = np.stack([luck + sign * tail - 0.25, luck], axis=1)[:, :, None]
        asked[sign] = lb.judge(table(values), score(margin=0.38, tie=0.2), candidate="a", delta=0.001)
    assert asked[-1].missing_items > 1.1 * asked[1].missing_items


# --- words


def test_one_number_is_not_said_twice():
    verdict = lb.judge(table(normal(8, 0.0, 0.3)), score(0.2))
    same = replace(verdict, missing_items=240, missing_range=(240, 243))
    assert outlook(same).startswith("About 240 new items should settle it. Judge them alone, or")
    some = replace(verdict, missing_items=1210, missing_range=(240, 2430))
    assert outlook(some).startswith("About 1,300 new items should settle it (240 to 2,400 by what is seen).")
    open_end = replace(verdict, missing_items=1210, missing_range=(240, None))
    assert "should settle it (at least 240 by what is seen)." in outlook(open_end)


@pytest.mark.parametrize("times", [1, 4])
def test_without_items_rows_of_each_arm_are_counted(times):
    """However many more rows the other arm has: what the small one knows decides."""
    rows = {"arm": ["a"] * 40 * times + ["b"] * 40}
    rows["score"] = np.concatenate([normal(40 * times, 0.0).ravel(), normal(40, 0.4, seed=1).ravel()])
    verdict = lb.judge(rows, score(0.2), item=None, baseline="a")
    assert not verdict.certified
    assert "new rows per arm should settle it" in str(verdict)
    assert 200 < verdict.missing_items < 1000


@pytest.mark.parametrize("rows", [(40, 40), (160, 40), (40, 400)])
def test_scenarios_are_as_far_off_as_the_smaller_arm_may_be(rows):
    values = {"arm": np.repeat(["a", "b"], rows), "score": np.random.default_rng(1).normal(0, 3, sum(rows))}
    words = {"arm": "arm", "item": None, "missing": "error"} | dict.fromkeys(
        ("repeat", "cluster", "max_cluster")
    )
    off = _Future(Claims(table_of(values, score(), **words))).off[1:, 0]
    assert off.std(axis=0) == pytest.approx([3 / np.sqrt(min(rows))] * 2, rel=0.4)


def test_clusters_are_counted_and_no_study_is_offered():
    of = np.repeat(np.arange(20), 4)
    verdict = lb.judge(table(normal(40, 0.0, 0.2), of=of), score(0.15), cluster="of")
    assert "new clusters should settle it" in str(verdict)
    assert "follow_up" not in str(verdict)


# --- tried out


def scenarios():
    spec = importlib.util.spec_from_file_location("judging", ROOT / "benchmarks" / "judging.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def tried(scenario, n, tables, seed=5, most=6000):
    """How many of undecided tables are settled by as many new items as they ask for, and how many asked."""
    module = scenarios()
    draw, objectives, how = module.SCENARIOS[scenario]
    settled = asked = 0
    for number in range(tables):
        rng = np.random.default_rng([seed, number, n])
        verdict = module.judged(draw, objectives, how, rng, n)
        if verdict.missing_items is not None and verdict.missing_items <= most:
            new = module.judged(draw, objectives, how, rng, verdict.missing_items, first=False)
            settled, asked = settled + module.is_settled(new, verdict.missing_reason), asked + 1
    return settled, asked


@pytest.mark.parametrize(
    ("scenario", "n"),
    [
        ("gaussian, baseline", 40),
        ("of six, candidate", 30),
        ("A/B, 1 to 4, baseline", 40),
        ("finite_variance", 60),
    ],
)
def test_as_many_items_as_are_asked_for_mostly_settle_it(scenario, n):
    settled, asked = tried(scenario, n, 24)
    assert asked >= 8
    assert settled >= binom.ppf(1e-3, asked, 0.8), f"{settled} of {asked}"


@pytest.mark.slow
@pytest.mark.parametrize("scenario", scenarios().SCENARIOS)
def test_as_many_items_as_are_asked_for_mostly_settle_it_in_every_world(scenario):
    """A little less than 8 in 10 where a table says little: there its means are as good as drawn."""
    n = scenarios().SIZES.get(scenario, (60, 150))[-1]
    settled, asked = tried(scenario, n, 100, most=30_000)
    assert settled >= binom.ppf(1e-3, asked, 0.75), f"{settled} of {asked}"


def test_the_number_does_not_depend_on_the_processor(monkeypatch):
    """LAPACK may turn an eigenvector round: on another processor it does."""
    undecided = table(normal(40, 0, 0.1, 0.2))
    wanted = lb.judge(undecided, score(0.05))
    decompose = np.linalg.eigh

    def turned(matrix):
        values, vectors = decompose(matrix)
        return values, vectors * np.where(np.arange(len(values)) % 2, 1.0, -1.0)

    monkeypatch.setattr(np.linalg, "eigh", turned)
    found = lb.judge(undecided, score(0.05))
    assert wanted.missing_items is not None
    assert (found.missing_items, found.missing_range) == (wanted.missing_items, wanted.missing_range)
