"""How people choose today, for the same promise: planned t-tests, peeking, halving, comparing means.

Each is handed `first`, which gives the results of the first n passes, and ends with an answer and with
the objective on which each other arm was dropped: it is then judged as a policy is.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from lexbandits._arrays import Vector

PEEK_EVERY = 100  # results
FEWEST = 30  # results of each arm before anybody believes a t-test
SHARE = 10  # who does not test measures a tenth of what planned tests would


class Aim(NamedTuple):
    """What is to be decided, as LexElimTol is told it, and how noisy the hardest comparison is."""

    n_arms: int
    delta: float
    tolerance: Vector  # (m,)
    resolution: Vector  # (m,)
    at_least: Sequence[float | None]  # m of them
    noise: Vector  # (m,) the true variance of a difference of two results, or of one result beside a target


class Choice(NamedTuple):
    """An answer, what it took, and on which objective each arm was dropped."""

    answer: int
    pulls: int
    dropped: dict[int, int]


First = Callable[[int], Vector]  # n -> (n, K, m)


class Sample(NamedTuple):
    """n results of every arm: means and sums of squared deviations, (K, m) each."""

    means: Vector
    squares: Vector
    n: int

    @classmethod
    def of(cls, results: Vector) -> "Sample":
        """From (n, K, m) results."""
        n = len(results)
        return cls(results.mean(axis=0), n * results.var(axis=0), n)

    def joined(self, other: "Sample") -> "Sample":
        """With the results of another sample."""
        n, step = self.n + other.n, other.means - self.means
        squares = self.squares + other.squares + step**2 * self.n * other.n / n
        return Sample(self.means + step * other.n / n, squares, n)

    @property
    def errors(self) -> Vector:
        """(K, m) squared standard errors of the means."""
        return np.asarray(self.squares / (self.n * (self.n - 1)))

    def leads(self, i: int, level: float) -> tuple[Vector, Vector]:
        """(K, K) ends of Welch's interval for mean of row − mean of column on objective i.

        Two arms without any variation say nothing yet.
        """
        from scipy.stats import t as student

        mean, error = self.means[:, i], self.errors[:, i]
        square = error[:, None] + error
        known = np.where(square > 0, square, 1.0)
        freedom = known**2 * (self.n - 1) / np.where(square > 0, error[:, None] ** 2 + error**2, 1.0)
        radius = np.where(square > 0, student.isf(level / 2, freedom) * np.sqrt(known), np.inf)
        difference = mean[:, None] - mean
        np.fill_diagonal(radius, 0.0)
        return difference - radius, difference + radius

    def place(self, i: int, level: float) -> tuple[Vector, Vector]:
        """(K,) ends of Student's interval for each mean on objective i."""
        from scipy.stats import t as student

        radius = np.sqrt(self.errors[:, i]) * student.isf(level / 2, self.n - 1)
        radius = np.where(radius > 0, radius, np.inf)
        return self.means[:, i] - radius, self.means[:, i] + radius

    def best(self, arms: Sequence[int]) -> int:
        """The largest mean on the last objective."""
        return max(arms, key=lambda arm: (self.means[arm, -1], -arm))


def planned_size(aim: Aim) -> int:
    """Results of each arm in a plan that keeps the promise with probability 1 − δ, were all means normal.

    Each test of a pair errs with probability δ/2 over the number of tests if the difference is the
    tolerance, and misses as rarely if it is tolerance + resolution; likewise for targets. It is generous
    to plan with the true noise.
    """
    from scipy.stats import norm

    level = _planned_level(aim)
    reach = float(norm.isf(level / 2) + norm.isf(level))
    return max(FEWEST, math.ceil(np.max(reach**2 * aim.noise / aim.resolution**2)))


def planned_tests(first: First, aim: Aim) -> Choice:
    """The plan of `planned_size`, then t-tests at the level it was made for."""
    n = planned_size(aim)
    sample = Sample.of(first(n))
    left, dropped = list(range(aim.n_arms)), dict[int, int]()
    for i in range(len(aim.tolerance)):
        _drop(found_worse(sample, left, i, aim, _planned_level(aim)), i, left, dropped)
    return Choice(sample.best(left), n * aim.n_arms, dropped)


def peeking(first: First, aim: Aim) -> Choice:
    """t-tests at level δ after every 100 results; arms found worse are measured no more.

    On to the next objective when the tests call every pair left equivalent, to within tolerance +
    resolution. Nothing is paid for looking again and again, nor for testing many pairs.
    """
    left, dropped = list(range(aim.n_arms)), dict[int, int]()
    sample = Sample.of(first(max(FEWEST, math.ceil(PEEK_EVERY / aim.n_arms))))
    pulls, i = sample.n * aim.n_arms, 0
    while True:
        while i < len(aim.tolerance):
            _drop(found_worse(sample, left, i, aim, aim.delta), i, left, dropped)
            if not settled(sample, left, i, aim, aim.delta):
                break
            i += 1
        if i == len(aim.tolerance):
            return Choice(sample.best(left), pulls, dropped)
        more = math.ceil(PEEK_EVERY / len(left))
        pulls += more * len(left)
        sample = sample.joined(Sample.of(first(sample.n + more)[sample.n :]))


def halving(first: First, aim: Aim) -> Choice:
    """Successive halving on the first objective: rounds of equal cost, after each the better half goes on.

    Together the rounds cost a tenth of the plan.
    """
    rounds = max(1, math.ceil(math.log2(aim.n_arms)))
    left, dropped = list(range(aim.n_arms)), dict[int, int]()
    n = pulls = 0
    while len(left) > 1:
        more = math.ceil(planned_size(aim) * aim.n_arms / (SHARE * rounds * len(left)))
        n, pulls = n + more, pulls + more * len(left)
        means = first(n)[:, :, 0].mean(axis=0)
        ranked = sorted(left, key=lambda arm: (-means[arm], arm))
        _drop(ranked[math.ceil(len(ranked) / 2) :], 0, left, dropped)
    return Choice(left[0], pulls, dropped)


def comparing_means(first: First, aim: Aim) -> Choice:
    """A tenth of the plan; on each objective the arms whose mean is close to the best go on.

    Close is within tolerance + half the resolution, the middle of what the promise leaves open, and a
    target may be missed by half its resolution.
    """
    n = max(2, math.ceil(planned_size(aim) / SHARE))
    sample = Sample.of(first(n))
    left, dropped = list(range(aim.n_arms)), dict[int, int]()
    for i, target in enumerate(aim.at_least):
        means = sample.means[:, i]
        short = [] if target is None else [a for a in left if means[a] < target - aim.resolution[i] / 2]
        if target is None or len(short) == len(left):
            line = max(means[left]) - aim.tolerance[i] - aim.resolution[i] / 2
            short = [arm for arm in left if means[arm] < line]
        _drop(short, i, left, dropped)
    return Choice(sample.best(left), n * aim.n_arms, dropped)


def found_worse(sample: Sample, left: Sequence[int], i: int, aim: Aim, level: float) -> list[int]:
    """Whom the tests call below the target or, without one, worse than another by more than the tolerance."""
    target = aim.at_least[i]
    if target is not None:
        below = [arm for arm in left if sample.place(i, level)[1][arm] < target]
        if len(below) < len(left):
            return below
    low, _ = sample.leads(i, level)
    return [arm for arm in left if any(low[a, arm] > aim.tolerance[i] for a in left)]


def settled(sample: Sample, left: Sequence[int], i: int, aim: Aim, level: float) -> bool:
    """Whether the tests call every arm left good enough for the target or, without one, every pair close."""
    target, slack = aim.at_least[i], aim.resolution[i]
    if target is not None:
        low, high = sample.place(i, level)
        if any(high[arm] >= target for arm in left):
            return bool(np.all(low[left] >= target - slack))
    _, high = sample.leads(i, level)
    return bool(np.all(high[np.ix_(left, left)] <= aim.tolerance[i] + slack))


def _drop(arms: Sequence[int], i: int, left: list[int], dropped: dict[int, int]) -> None:
    for arm in arms:
        left.remove(arm)
        dropped[arm] = i


def _planned_level(aim: Aim) -> float:
    tests = len(aim.tolerance) * max(1, aim.n_arms * (aim.n_arms - 1) // 2)
    return aim.delta / 2 / tests


COMMON_PRACTICE: dict[str, Callable[[First, Aim], Choice]] = {
    "planned t-tests": planned_tests,
    "peeking at t-tests": peeking,
    "successive halving": halving,
    "comparing means": comparing_means,
}
