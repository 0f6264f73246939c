"""Rates of passing runs: exact error rates, and the marker in a pytest of its own.

`python tests/test_testing.py` prints the table of docs/testing.md.
"""

import asyncio
import os
import random
import subprocess
import sys
import tomllib
import unittest
from pathlib import Path

import numpy as np
import pytest

from lexbandits.testing import PARTS, RateOutcome, RateTest, assert_rate

ROOT = Path(__file__).parents[1]
RATES = (1.0, 0.99, 0.97, 0.95, 0.93, 0.9, 0.87, 0.85, 0.8, 0.5)


def exact_outcomes(p, *, at_least=0.9, slack=0.05, delta=0.05, budget=1000):
    """({outcome: probability}, mean number of runs) of a rate p, by all ways in which runs can come.

    The naive oracle: evidence is computed anew from the counts, as the ratio of two binomial likelihoods.
    """

    def shows(boundary, end, n, k):
        rates = [(boundary + (end - boundary) * part, stake) for part, stake in PARTS.items()]
        ratio = sum(stake * (q / boundary) ** k * ((1 - q) / (1 - boundary)) ** (n - k) for q, stake in rates)
        return ratio * delta >= 1

    found, mean = dict.fromkeys(RateOutcome, 0.0), 0.0
    live = {(0, False, False): 1.0}
    for n in range(1, budget + 1):
        after = {}
        for (k, above, below), chance in live.items():
            mean += chance
            for passed, share in ((1, p), (0, 1 - p)):
                if share == 0:
                    continue
                now = k + passed
                is_above = above or shows(at_least - slack, 1, n, now)
                is_below = below or (at_least + slack < 1 and shows(at_least + slack, 0, n, now))
                if shows(at_least, 1, n, now):
                    found[RateOutcome.MET] += chance * share
                elif shows(at_least, 0, n, now):
                    found[RateOutcome.VIOLATED] += chance * share
                elif is_above and is_below:
                    found[RateOutcome.TOO_CLOSE] += chance * share
                elif n == budget:
                    found[RateOutcome.BUDGET_SPENT] += chance * share
                else:
                    key = now, is_above, is_below
                    after[key] = after.get(key, 0.0) + chance * share
        live = after
    return found, mean


def table():
    """The rows of docs/testing.md."""
    lines = []
    for p in RATES:
        found, mean = exact_outcomes(p)
        shares = " | ".join(f"{100 * found[outcome]:.1f} %" for outcome in RateOutcome)
        lines.append(f"| {p:g} | {shares} | {mean:.0f} |")
    return lines


def test_the_table_of_the_docs_is_what_is_computed():
    page = (ROOT / "docs" / "testing.md").read_text("utf-8")
    for line in table():
        assert line in page


@pytest.mark.parametrize("at_least", [0.05, 0.5, 0.9, 0.99])
@pytest.mark.parametrize("delta", [0.3, 0.05])
def test_errors_at_the_limit_are_at_most_delta(at_least, delta):
    """A rate just below the limit is met, and one at the limit violated, with probability at most delta."""
    slack = min(at_least / 10, (1 - at_least) / 2)
    found, _ = exact_outcomes(at_least, at_least=at_least, slack=slack, delta=delta, budget=500)
    assert sum(found.values()) == pytest.approx(1)
    assert delta / 20 < found[RateOutcome.MET] <= delta or at_least in (0.05, 0.99)
    assert found[RateOutcome.MET] <= delta
    assert found[RateOutcome.VIOLATED] <= delta


@pytest.mark.parametrize("p", [0.99, 0.95, 0.9, 0.85, 0.4])
def test_a_test_ends_as_the_oracle_does(p):
    """Of 200 sequences each outcome comes about as often as it must, by exact binomial tails."""
    from scipy.stats import binom

    found, _ = exact_outcomes(p, budget=300)
    counts = dict.fromkeys(RateOutcome, 0)
    for seed in range(200):
        luck = random.Random(f"{p} {seed}")
        test = RateTest(at_least=0.9, slack=0.05, budget=300)
        while test.outcome is None:
            test.add(luck.random() < p)
        counts[test.outcome] += 1
    for outcome, count in counts.items():
        share = min(1.0, max(0.0, found[outcome]))
        assert binom.ppf(1e-5, 200, share) <= count <= binom.isf(1e-5, 200, share), (outcome, share, count)


# --- assert_rate


def test_what_passes_and_fails():
    assert assert_rate(lambda: None, at_least=0.5).outcome is RateOutcome.MET
    with pytest.raises(AssertionError, match=r"^0 of \d+ runs passed: the rate is below 0\.9, certified"):
        assert_rate(lambda: False, at_least=0.9)
    runs = iter([True, False] * 50)
    with pytest.raises(AssertionError, match=r"not shown within 50 runs: 25 of 50 runs passed"):
        assert_rate(lambda: next(runs), at_least=0.5, slack=0.01, budget=50)
    runs = iter([True, False] * 1000)
    with pytest.raises(AssertionError, match=r"within 0\.2 of 0\.5, too close to call"):
        assert_rate(lambda: next(runs), at_least=0.5, slack=0.2)


def test_an_exception_is_a_failed_run_and_is_shown():
    def broken():
        raise KeyError("answer")

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(AssertionError) as said:
        assert_rate(broken, at_least=0.9)
    assert isinstance(said.value.__cause__, KeyError)

    with pytest.raises(AssertionError, match=r"^0 of \d+ runs passed"):
        assert_rate(lambda: pytest.fail("wrong"), at_least=0.9)
    with pytest.raises(KeyboardInterrupt):
        assert_rate(interrupted, at_least=0.9)

    def skipped():
        raise unittest.SkipTest("no model here")

    with pytest.raises(unittest.SkipTest, match="no model here"):
        assert_rate(skipped, at_least=0.9)


@pytest.mark.parametrize("value", [0, "", np.False_, [], 0.0])
def test_what_is_false_is_a_failed_run(value):
    with pytest.raises(AssertionError, match=r"^0 of \d+ runs passed"):
        assert_rate(lambda: value, at_least=0.9)


def test_a_coroutine_is_no_run():
    async def asked():
        return True

    with pytest.raises(TypeError, match="returned a coroutine, which nobody has run"):
        assert_rate(asked, at_least=0.9)
    assert assert_rate(lambda: asyncio.run(asked()), at_least=0.5).passed == 6


def test_a_generator_is_no_run():
    """Nothing of it has run, so that whatever it asserts would pass."""

    def wrong():
        yield
        raise AssertionError

    async def also_wrong():
        yield
        raise AssertionError

    class Promise:
        def __await__(self):
            yield

    for run in (wrong, also_wrong, Promise):
        with pytest.raises(TypeError, match="which nobody has run"):
            assert_rate(run, at_least=0.9)


def test_what_is_undecided_may_be_skipped_but_never_passes():
    runs = iter([True, False] * 50)
    with pytest.raises(unittest.SkipTest, match="not shown within 50 runs"):
        assert_rate(lambda: next(runs), at_least=0.5, slack=0.01, budget=50, undecided="skip")
    with pytest.raises(AssertionError, match="below"):
        assert_rate(lambda: False, at_least=0.5, undecided="skip")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"at_least": 1}, "at_least must be between 0 and 1"),
        ({"at_least": 0.0}, "at_least must be between 0 and 1"),
        ({"at_least": "0.9"}, "at_least must be between 0 and 1"),
        ({"at_least": 0.9, "delta": True}, "delta must be between 0 and 1"),
        ({"at_least": 0.9, "slack": 0}, "slack must be between 0 and 1"),
        ({"at_least": 0.9, "budget": 0}, "budget must be a number of runs"),
        ({"at_least": 0.9, "budget": 35}, "even if all pass: say a budget of at least 36"),
        ({"at_least": 0.9, "undecided": "pass"}, 'undecided must be "fail" or "skip"'),
    ],
)
def test_a_mistake_is_said_before_anything_runs(words, sentence):
    called = []
    with pytest.raises(ValueError, match=sentence):
        assert_rate(lambda: called.append(1), **words)
    assert not called


# --- the marker, in a pytest of its own


def in_pytest(folder, code, *words, plugin=True):
    """What pytest prints of a file with this code."""
    (folder / "test_it.py").write_text(code)
    known = ["-p", "no:lexbandits", *(["-p", "lexbandits.pytest_plugin"] if plugin else [])]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", *known, *words, "test_it.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


CODE = """
import random, pytest, itertools

luck = random.Random(5)
seen = {"function": 0, "module": 0, "torn down": 0}

@pytest.fixture
def fresh(tmp_path):
    seen["function"] += 1
    assert not list(tmp_path.iterdir())
    yield tmp_path
    seen["torn down"] += 1

@pytest.fixture(scope="module")
def shared():
    seen["module"] += 1
    return seen

@pytest.mark.certify(at_least=0.8)
def test_mostly(fresh, shared):
    (fresh / "a").write_text("x")
    assert seen["function"] == seen["torn down"] + 1
    assert luck.random() < 0.97

def test_fixtures_were_set_up_each_time(shared):
    assert shared["module"] == 1
    assert shared["function"] == shared["torn down"] >= 16

@pytest.mark.certify(at_least=0.9)
def test_rarely():
    print("what was printed")
    assert luck.random() < 0.3, "wrong answer"

@pytest.mark.certify(at_least=0.5, slack=0.01, budget=30)
def test_undecided(turns=itertools.cycle([1, 0])):
    assert next(turns)

@pytest.mark.certify(at_least=0.5, slack=0.01, budget=30, undecided="skip")
def test_undecided_and_skipped(turns=itertools.cycle([1, 0])):
    assert next(turns)

@pytest.mark.certify(at_least=0.9)
def test_skipped():
    pytest.skip("no model here")

@pytest.mark.certify(at_least=0.9)
def test_returns_what_it_should_assert():
    return True

@pytest.fixture
def broken():
    raise OSError("no disk")

@pytest.mark.certify(at_least=0.9)
def test_broken_fixture(broken):
    pass

@pytest.fixture
def bad_end():
    yield
    raise OSError("not closed")

@pytest.mark.certify(at_least=0.9)
def test_bad_teardown(bad_end):
    pass

@pytest.mark.certify(at_least=2)
def test_bad_limit():
    pass

@pytest.mark.certify(0.9)
def test_bad_words():
    pass

@pytest.mark.parametrize("share", [0.99, 0.5])
@pytest.mark.certify(at_least=0.75)
def test_of(share):
    assert luck.random() < share

@pytest.mark.certify(at_least=0.8)
class TestClass:
    def test_inside(self):
        pass

def test_plain():
    pass
"""


@pytest.fixture(scope="module")
def said(tmp_path_factory):
    return in_pytest(tmp_path_factory.mktemp("marker"), CODE, "--strict-markers", "--junitxml=out.xml")


@pytest.mark.parametrize(
    "line",
    [
        "PASSED test_it.py::test_mostly",
        "PASSED test_it.py::test_fixtures_were_set_up_each_time",
        "FAILED test_it.py::test_rarely",
        "FAILED test_it.py::test_undecided - not shown within 30 runs: 15 of 30 runs passed",
        "FAILED test_it.py::test_bad_limit - test_it.py::test_bad_limit: at_least must be between 0 and 1",
        "FAILED test_it.py::test_bad_words",
        "ERROR test_it.py::test_broken_fixture - OSError: no disk",
        "ERROR test_it.py::test_bad_teardown - OSError: not closed",
        "PASSED test_it.py::test_of[0.99]",
        "FAILED test_it.py::test_of[0.5]",
        "PASSED test_it.py::TestClass::test_inside",
        "PASSED test_it.py::test_plain",
        "FAILED test_it.py::test_returns_what_it_should_assert - 0 of 2 runs passed",
        "Did you mean to use `assert` instead of `return`?",
        "no model here",
        ": not shown within 30 runs: 15 of 30 runs passed, which shows neither",
        "the rate is below 0.9, certified at 95 % confidence",
        "The last run that failed:",
        "wrong answer",
        "what was printed",
    ],
)
def test_the_marker(said, line):
    assert line in said


def test_each_test_is_reported_once(said):
    assert "6 failed, 5 passed, 2 skipped, 2 errors" in said


def test_without_a_marked_test_nothing_is_imported(tmp_path):
    code = """
import sys
def test_it():
    assert "lexbandits.pytest_plugin" in sys.modules
    heavy = {"numpy", "scipy", "numba", "lexbandits.testing", "lexbandits.study"} & set(sys.modules)
    assert not heavy
"""
    assert "1 passed" in in_pytest(tmp_path, code)


def test_a_marked_test_needs_no_numpy(tmp_path):
    code = """
import pytest, sys
@pytest.mark.certify(at_least=0.5)
def test_it():
    pass
def test_after():
    assert "lexbandits.testing" in sys.modules
    assert "numpy" not in sys.modules
"""
    assert "2 passed" in in_pytest(tmp_path, code)


def test_the_plugin_is_an_entry_point():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"lexbandits": "lexbandits.pytest_plugin"}


if __name__ == "__main__":
    print("\n".join(table()))
