"""Test how often something passes: repeat a flaky or model-based test until its rate is shown either way.

The evidence is a mixture of likelihood ratios against the limit, a test martingale (Ville 1939; Wald 1945;
Robbins 1970): it may be looked at after every run. docs/testing.md has the proof and the figures. This module
imports nothing but the standard library, as the plug-in of pytest needs it.
"""

import math
import unittest
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Generator
from dataclasses import dataclass, field
from typing import Any

from lexbandits._code import Code

# Alternatives, in parts of the way from the limit to the end (0 or 1), and what is staked on each.
PARTS = {1.0: 0.4, 1 / 2: 0.25, 1 / 4: 0.15, 1 / 8: 0.12, 1 / 16: 0.08}


class IfUndecided(Code):
    """What a test does if nothing was shown."""

    FAIL = "fail"
    SKIP = "skip"


class RateOutcome(Code):
    """What repeated runs have shown about a rate."""

    MET = "met"  # the rate is at least the limit
    VIOLATED = "violated"  # the rate is below the limit
    TOO_CLOSE = "too_close"  # the rate is within the slack of the limit
    BUDGET_SPENT = "budget_spent"  # nothing was shown within the budget


class _Evidence:
    """The log of a process that passes 1/δ with probability at most δ unless the rate is beyond a boundary.

    `up` tests rates of at most the boundary, otherwise rates of at least the boundary. Each factor of a
    likelihood ratio has mean 1 at the boundary and less on the tested side, whatever came before.
    """

    def __init__(self, boundary: float, up: bool) -> None:
        end = 1.0 if up else 0.0
        self.stakes = list(PARTS.values())
        rates = [boundary + (end - boundary) * part for part in PARTS]
        self.factors = {True: [q / boundary for q in rates], False: [(1 - q) / (1 - boundary) for q in rates]}

    def add(self, passed: bool) -> None:
        self.stakes = [stake * by for stake, by in zip(self.stakes, self.factors[passed], strict=True)]

    def shows(self, delta: float) -> bool:
        return sum(self.stakes) * delta >= 1


@dataclass
class RateTest:
    """Runs that either pass or fail, and what they show: `add` each of them until there is an `outcome`.

    Args:
        at_least: the limit on the rate of passing runs, between 0 and 1.
        slack: rates within the slack of the limit may end as too close to call. By default a tenth of the
            limit, or half of what is left to 1 if that is less.
        delta: the probability of a wrong "met" where the rate is below the limit, and of a wrong "violated"
            where it is not.
        budget: the most runs.
        undecided: "fail" or "skip": what a test does if nothing was shown.

    >>> test = RateTest(at_least=0.9)
    >>> while test.outcome is None:
    ...     test.add(True)
    >>> test.outcome.value, test.runs
    ('met', 36)
    """

    at_least: float
    slack: float | None = None
    delta: float = 0.05
    budget: int = 1000
    undecided: str = "fail"
    runs: int = field(default=0, init=False)
    passed: int = field(default=0, init=False)
    outcome: RateOutcome | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        for name in ("at_least", "delta"):
            _check_share(name, getattr(self, name))
        if self.slack is None:
            self.slack = min(self.at_least / 10, (1 - self.at_least) / 2)
        _check_share("slack", self.slack)
        if type(self.budget) is not int or self.budget < 1:
            raise ValueError(f"budget must be a number of runs, got {self.budget!r}")
        if self.undecided not in [*IfUndecided]:
            raise ValueError(f'undecided must be "fail" or "skip", got {self.undecided!r}')
        low, high = self.at_least - self.slack, self.at_least + self.slack
        self._met, self._violated = _Evidence(self.at_least, up=True), _Evidence(self.at_least, up=False)
        self._above = _Evidence(low, up=True) if low > 0 else None
        self._below = _Evidence(high, up=False) if high < 1 else None
        self._shown_above = self._shown_below = False
        fewest = self._fewest()
        if self.budget < fewest:
            raise ValueError(
                f"{self.budget} runs cannot show a rate of {self.at_least:g} at {_percent(self.delta)} "
                f"confidence, even if all pass: say a budget of at least {fewest:,}, or a lower at_least"
            )

    def _fewest(self) -> int:
        """The runs that show the rate if all pass."""
        evidence, runs = _Evidence(self.at_least, up=True), 0
        while not evidence.shows(self.delta):
            evidence.add(True)
            runs += 1
        return runs

    def add(self, passed: bool) -> None:
        """Count a run."""
        if self.outcome is not None:
            raise ValueError(f"the test has ended: {self.message}")
        passed = bool(passed)
        self.runs += 1
        self.passed += passed
        for evidence in (self._met, self._violated, self._above, self._below):
            if evidence is not None:
                evidence.add(passed)
        self._shown_above |= self._above is not None and self._above.shows(self.delta)
        self._shown_below |= self._below is not None and self._below.shows(self.delta)
        if self._met.shows(self.delta):
            self.outcome = RateOutcome.MET
        elif self._violated.shows(self.delta):
            self.outcome = RateOutcome.VIOLATED
        elif self._shown_above and self._shown_below:
            self.outcome = RateOutcome.TOO_CLOSE
        elif self.runs >= self.budget:
            self.outcome = RateOutcome.BUDGET_SPENT

    @property
    def message(self) -> str:
        """The outcome in a sentence."""
        seen, sure = f"{self.passed:,} of {self.runs:,} runs passed", f"at {_percent(self.delta)} confidence"
        match self.outcome:
            case RateOutcome.MET:
                return f"{seen}: the rate is at least {self.at_least:g}, certified {sure}"
            case RateOutcome.VIOLATED:
                return f"{seen}: the rate is below {self.at_least:g}, certified {sure}"
            case RateOutcome.TOO_CLOSE:
                return (
                    f"not shown within {self.runs:,} runs: {seen}, so that the rate is within {self.slack:g} "
                    f"of {self.at_least:g}, too close to call; a smaller slack takes more runs"
                )
            case RateOutcome.BUDGET_SPENT:
                return (
                    f"not shown within {self.runs:,} runs: {seen}, which shows neither a rate of at least "
                    f"{self.at_least:g} nor a lower one {sure}; a larger budget may"
                )
        return f"{seen}, and nothing is shown yet"


def assert_rate(
    run: Callable[[], Any],
    *,
    at_least: float,
    slack: float | None = None,
    delta: float = 0.05,
    budget: int = 1000,
    undecided: str = "fail",
) -> RateTest:
    """Call `run` until it is shown whether it passes at least this often; fail unless it does.

    Args:
        run: what is repeated. It fails if it raises an exception, or returns what is false, but for None.
        at_least: the limit on the rate of passing runs, between 0 and 1.
        slack: rates within the slack of the limit may end as too close to call.
        delta: the probability of a wrong pass where the rate is below the limit, and of a wrong violation
            where it is not.
        budget: the most runs.
        undecided: "fail" or "skip": what happens if nothing was shown.

    Returns:
        The test with its number of runs, those that passed, its outcome and message.

    Raises:
        AssertionError: if the rate is shown to be below the limit, or nothing was shown within the budget.

    >>> assert_rate(lambda: True, at_least=0.9).message
    '36 of 36 runs passed: the rate is at least 0.9, certified at 95 % confidence'
    """
    test = RateTest(at_least=at_least, slack=slack, delta=delta, budget=budget, undecided=undecided)
    failure: BaseException | None = None
    while test.outcome is None:
        try:
            returned = run()
        except BaseException as error:
            # What pytest.fail and pytest.raises raise is no Exception.
            is_failure = isinstance(error, Exception) or type(error).__name__ == "Failed"
            if isinstance(error, unittest.SkipTest) or not is_failure:
                raise
            returned, failure = False, error
        if isinstance(returned, (Coroutine, Generator)):
            returned.close()
        if isinstance(returned, (Awaitable, Generator, AsyncGenerator)):
            how = "pass lambda: asyncio.run(run())" if isinstance(returned, Awaitable) else "let it return"
            what = "a coroutine" if isinstance(returned, Coroutine) else f"a {type(returned).__name__}"
            raise TypeError(f"run returned {what}, which nobody has run: {how}")
        test.add(returned is None or bool(returned))
    if test.outcome is RateOutcome.MET:
        return test
    if undecided == IfUndecided.SKIP and test.outcome is not RateOutcome.VIOLATED:
        raise unittest.SkipTest(test.message)
    raise AssertionError(test.message) from failure


def _check_share(name: str, value: Any) -> None:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or not 0 < value < 1:
        raise ValueError(f"{name} must be between 0 and 1, and neither of them, got {value!r}")


def _percent(delta: float) -> str:
    return f"{100 * (1 - delta):.6g} %"
