"""Tables of many arms: what they would take is known first, and memory is bounded."""

import io
import math
import re

import numpy as np
import pandas as pd
import pytest
from rich.console import Console

import lexbandits as lb
from lexbandits.judging import claims, verdict
from lexbandits.study.measure import progress
from support.command import invoked

OBJECTIVES = [
    lb.Objective("hit", margin=0.1, noise="bernoulli"),
    lb.Objective("wait", "minimize", margin=2),
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


def test_too_many_arms_are_refused_with_what_they_would_take():
    with pytest.raises(lb.StudyError) as said:
        lb.judge(table(500, 2), OBJECTIVES)
    assert str(said.value).startswith(
        "500 arms on 3 objectives are 748,500 comparisons, which would take about 4 minutes"
    )
    assert "keep 258 arms" in str(said.value)
    K, m = 258, 3
    assert K * (K - 1) * m <= verdict.MOST_COMPARISONS < 300 * 299 * m


def test_a_verdict_does_not_depend_on_how_much_is_kept(monkeypatch):
    cells = table(8, 60)
    whole = lb.judge(cells, OBJECTIVES)
    monkeypatch.setattr(claims, "MOST_KEPT", 600)
    kept = lb.judge(cells, OBJECTIVES)
    assert kept == whole
    assert len(kept._claims._samples) <= 11
    assert len(whole._claims._samples) > 11


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
    assert stages[:5] == ["comparing hit", "comparing wait", "comparing cost", "proving", "ranking"]
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
    monkeypatch.setattr(verdict, "OF_SAMPLE", 1e9)
    slow = invoked(*question)
    assert re.fullmatch(r"12 comparisons, about [\d,.]+ (s|min|h|days)\n", slow.stderr)
    assert slow.stdout == quick.stdout


@pytest.mark.slow
def test_the_largest_table_that_is_taken_fits_the_memory():
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert lb.judge(table(258, 200), OBJECTIVES).arm
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_500_000, "kB"
