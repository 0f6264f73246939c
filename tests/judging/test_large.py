"""Tables of many arms: what they would take is known first, and memory is bounded."""

import io
import itertools
import math
import time

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import lexbandits as lb
from lexbandits.judging import claims, sample_size, verdict
from lexbandits.study.measure import progress
from support.command import invoked

OBJECTIVES = [
    lb.Objective("hit", margin=0.1, noise="bernoulli"),
    lb.Objective("wait", "minimize", margin=2, noise="gaussian"),
    lb.Objective("cost", "minimize", margin=0.1, noise=("bounded", 0, 1)),
]


def table(K, n, seed=0):
    luck = np.random.default_rng(seed)
    return {
        "arm": np.repeat([f"a{arm}" for arm in range(K)], n),
        "item": np.tile(np.arange(n), K),
        "hit": (luck.random(K * n) < np.repeat(np.linspace(0.9, 0.3, K), n)).astype(float),
        "wait": luck.normal(10, 2, K * n),
        "cost": luck.random(K * n),
    }


@pytest.mark.parametrize(
    ("more", "most", "limit"), [({}, 577, 1_000_000), ({"sequential": True}, 258, 200_000)]
)
def test_too_many_arms_are_refused_with_what_they_would_take(more, most, limit):
    with pytest.raises(lb.StudyError) as said:
        lb.judge(table(1000, 2), OBJECTIVES, **more)
    assert str(said.value).startswith("1,000 arms on 3 objectives are 2,997,000 comparisons, which may take")
    assert f"at most {limit:,} are judged: keep {most} arms" in str(said.value)
    assert most * (most - 1) * 3 <= limit < (most + 1) * most * 3


def test_a_verdict_does_not_depend_on_how_much_is_kept_nor_on_the_size_of_blocks(monkeypatch):
    cells = table(8, 60)
    whole = lb.judge(cells, OBJECTIVES)
    monkeypatch.setattr(claims, "MOST_KEPT", 11)
    monkeypatch.setattr(claims, "BLOCK", 130)
    monkeypatch.setattr(sample_size, "MOST_KNOWN", 3)
    monkeypatch.setattr(sample_size, "PAIRS", 2)
    kept = lb.judge(cells, OBJECTIVES)
    assert kept == whole
    assert whole.missing_items is not None
    assert len(kept._claims._made) <= 11 < len(whole._claims._made)


@pytest.mark.parametrize("missing", ["drop", "worst"])
@pytest.mark.parametrize("noise", ["bernoulli", ("bounded", 0, 1), "gaussian"])
@pytest.mark.parametrize("reference", [None, "best", "a2"])
def test_contrasts_in_blocks_are_those_of_each_pair(noise, missing, reference, monkeypatch):
    """To the bit, with values missing, and of shares of a mean."""
    if (reference and noise == "bernoulli") or (missing == "worst" and noise == "gaussian"):
        noise = ("bounded", 0, 1)
    luck = np.random.default_rng(3)
    values = luck.random(6 * 40) if noise != "bernoulli" else luck.integers(0, 2, 6 * 40).astype(float)
    values[luck.random(values.size) < 0.2] = math.nan
    margin = {"margin": "10%", "reference": reference} if reference else {"margin": 0.1}
    cells = {
        "arm": np.repeat([f"a{k}" for k in range(6)], 40),
        "item": np.tile(np.arange(40), 6),
        "x": values,
    }
    monkeypatch.setattr(claims, "BLOCK", 90)
    made = lb.judge(cells, [lb.Objective("x", noise=noise, **margin)], missing=missing)._claims
    for fact in (claims.BEATS, claims.HOLDS, claims.LEADS, claims.SEEN):
        for a, b in itertools.permutations(range(6), 2):
            one = made._sample(0, made._weights(fact, 0, a, b), made._as_seen(fact, 0))
            block = made.sample(fact, 0, a, b)
            assert (block.mean, block.sd, block.n) == (one.mean, one.sd, one.n)
            assert (block.low, block.high) == (one.low, one.high)
            assert np.array_equal(block.values, one.values)
            assert made.skewness(fact, 0, a, b)[1] == pytest.approx(claims._skewnesses(one.values[None])[0])


@pytest.mark.parametrize("noise", [("bounded", 0, 1), "gaussian", ("sub_gaussian", 0.3)])
@pytest.mark.parametrize("reference", [None, "best", "a2"])
def test_pairs_forecast_together_are_those_of_each_pair(noise, reference):
    """In every world and every table, also where the margin is a share of an arm's mean."""
    luck, K = np.random.default_rng(4), 6
    values = np.clip(luck.normal(np.linspace(0.7, 0.3, K)[:, None], 0.2, (K, 50)), 0, 1).ravel()
    cells = {"arm": np.repeat([f"a{k}" for k in range(K)], 50), "item": [*range(50)] * K, "x": values}
    margin = {"margin": "10%", "reference": reference} if reference else {"margin": 0.1}
    future = sample_size._Future(lb.judge(cells, [lb.Objective("x", noise=noise, **margin)])._claims)
    a, b = np.array(list(itertools.permutations(range(K), 2))).T
    some = 0
    for fact, n in itertools.product((claims.BEATS, claims.HOLDS), (8, 60, 500)):
        each = [future._made(n, (fact, 0, *pair), 0.01) for pair in zip(a.tolist(), b.tolist(), strict=True)]
        by_all, by_any = future._made_by_all(n, fact, 0, a, b, 0.01)
        assert by_all.tolist() == [made.all() for made in each]
        assert by_any.tolist() == [made.any() for made in each]
        assert (future._count(n, fact, 0, a, b, 0.01) == np.sum(each, axis=0)).all()
        some += by_any.any() and not by_all.all()
    assert some


# --- who waits is told: what it will take, then how far it is


class Heard:
    """A watcher that keeps what it hears."""

    def __init__(self):
        self.expected, self.reached = [], []

    def expect(self, comparisons, seconds):
        assert not self.reached, "it is said first"
        self.expected.append((comparisons, seconds))

    def reach(self, stage, done, total):
        self.reached.append((stage, done, total))


def test_a_watcher_hears_what_it_will_take_and_every_stage(monkeypatch):
    cells, heard = table(8, 60), Heard()
    monkeypatch.setattr(verdict, "MANY_COMPARISONS", 8 * 7 * 3)
    plain = lb.judge(cells, OBJECTIVES)
    token = progress.WATCHER.set(heard)
    try:
        assert lb.judge(cells, OBJECTIVES) == plain, "what was timed changes nothing"
    finally:
        progress.WATCHER.reset(token)
    ((comparisons, seconds),) = heard.expected
    assert comparisons == 8 * 7 * 3
    assert 0 < seconds < math.inf
    stages = list(dict.fromkeys(stage for stage, _, _ in heard.reached))
    assert [stage for stage in stages if stage != "forecasting"] == [
        "comparing hit",
        "comparing wait",
        "comparing cost",
        "proving",
        "ranking",
    ]
    assert [done for stage, done, total in heard.reached if stage == "proving"] == [*range(8)]
    assert all(done < total for _, done, total in heard.reached)
    monkeypatch.setattr(verdict, "MANY_COMPARISONS", 8 * 7 * 3 + 1)
    again = Heard()
    token = progress.WATCHER.set(again)
    lb.judge(cells, OBJECTIVES)
    progress.WATCHER.reset(token)
    assert again.expected == [], "a small table is not timed"


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_is_shown_on_a_terminal_once_two_seconds_have_passed(is_terminal):
    now, out = [0.0], io.StringIO()
    console = Console(file=out, force_terminal=is_terminal, width=80)
    stages = progress.Stages(lambda *_: None, console, lambda: now[0])
    with stages.watching():
        assert list(progress.watched("proving [b]x[/b]", "abc")) == [*"abc"]
        now[0] = 1.9
        stages.reach("early", 1, 3)
        assert out.getvalue() == ""
        now[0] = 2.0
        for _ in progress.watched("proving [b]x[/b]", "abc"):
            now[0] += 0.3
    assert ("proving [b]x[/b]" in out.getvalue()) == is_terminal
    assert is_terminal or out.getvalue() == ""
    assert progress.WATCHER.get() is None


def test_the_command_says_first_what_a_large_table_will_take(tmp_path, monkeypatch):
    pd.DataFrame(table(4, 30)).to_csv(tmp_path / "t.csv", index=False)
    monkeypatch.setattr(verdict, "MANY_COMPARISONS", 12)
    question = ("judge", tmp_path / "t.csv", "hit max 0.1 bernoulli", "--json")
    quick = invoked(*question)
    assert quick.stderr == "", "seconds, if at all"
    for seconds, said in ((0.4, "up to a minute"), (1e3, "minutes")):
        monkeypatch.setattr(verdict, "SECONDS_TWO_ARMS", seconds)
        slow = invoked(*question)
        assert slow.stderr == f"12 comparisons, which may take {said}\n"
        assert slow.stdout == quick.stdout


@pytest.mark.slow
def test_five_hundred_arms_fit_time_and_memory():
    """500 arms × 200 items × 3 objectives take at most 60 s of a processor and 1.5 GB."""
    import resource

    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    assert lb.judge(table(500, 200), OBJECTIVES).missing_items
    assert time.process_time() - began < 60
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000, "kB"
