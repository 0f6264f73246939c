"""Whether a run gave what its policy promises: judged here, since a policy cannot see the truth."""

from collections.abc import Mapping, Sequence, Set
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexbandits._validation import BEST, IfInfeasible, StopWhen
from lexbandits.environments.instance import Instance
from lexbandits.evidence.exact import rounding
from lexbandits.policies.base import LEFT_AT, LEFT_ON
from lexbandits.simulation.replicate import Runs


def kept(policy: str, settings: Mapping[str, Any], instance: Instance, runs: Runs) -> NDArray[np.bool_]:
    """(R,) whether each run's answer is right by the promise of the policy with this name.

    LexElimTol promises an acceptable arm (see `Tolerances`), a policy with target_size k above 1 that
    its candidates are k best arms of its objective, every other one the lex-optimal arm. With stop_when="all"
    LexElimTol also promises who survives what; a run that did not stop is judged by its answer.
    """
    if policy == "LexElimTol":
        return _acceptable(Tolerances(settings, instance), runs)
    size = settings.get("target_size", 1)
    if size <= 1:
        return lex_optimal(instance, runs)
    values = instance.means[:, settings.get("objective", 0)]
    worst_kept = np.where(runs.active, values, np.inf).min(axis=1)
    best_left = np.where(runs.active, -np.inf, values).max(axis=1)
    return np.asarray((runs.active.sum(axis=1) == size) & (worst_kept >= best_left))


def lex_optimal(instance: Instance, runs: Runs) -> NDArray[np.bool_]:
    """(R,) whether each recommendation is the lex-optimal arm."""
    return np.asarray(runs.recommendation == instance.lex_optimal_arm)


class Tolerances:
    """What LexElimTol promises under its settings, asked of the true means.

    Exact but for the rounding of the numbers as given: a gap equal to a tolerance is within it, and a
    mean equal to a target is not below it. With a target the objective is a limit: means count up to the
    target, as if it were the best possible one, with tolerance 0.
    """

    def __init__(self, settings: Mapping[str, Any], instance: Instance) -> None:
        m = instance.n_objectives
        self.means = [[Fraction(x) for x in row] for row in instance.settings["means"]]
        self.order: Sequence[int] = settings.get("order") or range(m)
        offered = settings.get("offered")
        self.offered = frozenset(range(instance.n_arms) if offered is None else offered)
        resolution = settings.get("resolution")
        self.tolerance = _each(settings["tolerance"], m)
        self.resolution = self.tolerance if resolution is None else _each(resolution, m)
        self.targets = _each(settings.get("at_least"), m)
        self.tolerance = [
            t if target is None else Fraction(0)
            for t, target in zip(self.tolerance, self.targets, strict=True)
        ]
        self.references = settings.get("reference") or [None] * m
        self.stops = settings.get("if_infeasible") == IfInfeasible.STOP
        self.settles_all = settings.get("stop_when") == StopWhen.ALL

    def kept(self, answer: int, left: Mapping[int, int], stopped: bool = True) -> bool:
        """Whether an answer is acceptable by the means, or by where each arm left: {arm: objective}.

        Who settled everything must be right about every arm, so that the means alone do not excuse him.
        """
        if self.settles_all and stopped:
            return self.accepts_course(answer, left)
        return self.accepts(answer) or self.accepts_course(answer, left)

    @cache  # noqa: B019, as it lives for one call
    def accepts(self, answer: int) -> bool:
        """Whether no arm that deserves to reach an objective is better there by more than it may be.

        B_1 is all arms offered; B_{i+1} is the answer and the arms of B_i within the tolerance of its best
        on objective i. The answer must be within tolerance + resolution of the best of every B_i. From a
        limit those go on who are as good there as the answer; if nobody in B_i is at its floor, a policy
        that stops there has ended the matter.
        """
        return answer in self.offered and self._accepts(answer, self.offered, 0)

    def _accepts(self, answer: int, reached: Set[int], stage: int) -> bool:
        if stage == len(self.order):
            return True
        i = self.order[stage]
        if self._ends(reached, i):
            return True
        if not self._within(answer, reached, i, self.tolerance[i] + self.resolution[i]):
            return False
        rivals = reached if self.targets[i] is None else {answer}
        close = {arm for arm in reached if self._within(arm, rivals, i, self.tolerance[i])}
        return self._accepts(answer, close | {answer}, stage + 1)

    def _ends(self, reached: Set[int], i: int) -> bool:
        """Whether the policy stops here, as nobody is at the floor of a limit."""
        return self.stops and self.targets[i] is not None and not any(self.meets(a, i) for a in reached)

    def accepts_course(self, answer: int, left: Mapping[int, int]) -> bool:
        """Whether, objective by objective, everybody who should stay stayed and nobody else did.

        Of the arms that reached an objective, those within the tolerance of their best survive it, and
        every survivor is within tolerance + resolution of that best.
        """
        reached: Set[int] = self.offered
        for i in self.order:
            survivors = {arm for arm in reached if left.get(arm) != i}
            if self._ends(reached, i):
                break
            if not self._fair(reached, survivors, i):
                return False
            reached = survivors
        return answer in reached

    def _fair(self, reached: Set[int], left: Set[int], i: int) -> bool:
        out = reached - left
        nobody_wronged = not any(self._within(arm, reached, i, self.tolerance[i]) for arm in out)
        reach = self.tolerance[i] + self.resolution[i]
        return bool(left) and nobody_wronged and all(self._within(arm, reached, i, reach) for arm in left)

    def _within(self, arm: int, others: Set[int], i: int, limit: Fraction) -> bool:
        best, mean = max(self._value(other, i) for other in others), self._value(arm, i)
        if self.references[i] is not None:  # a share of the best mean, or of an arm's
            of = self.references[i][0]
            limit *= abs(best if of == BEST else self.means[of][i])
        return bool(best - mean <= limit + rounding(best, mean, limit))

    def _value(self, arm: int, i: int) -> Fraction:
        """The mean, of which what is above a target does not count."""
        mean, target = self.means[arm][i], self.targets[i]
        return mean if target is None else min(mean, target)

    def meets(self, arm: int, i: int) -> bool:
        """Whether an arm is at least at the floor of a limit, target − resolution: the limit as written."""
        mean, target, slack = self.means[arm][i], self.targets[i], self.resolution[i]
        return bool(mean >= target - slack - rounding(mean, target, slack))


def _acceptable(promise: Tolerances, runs: Runs) -> NDArray[np.bool_]:
    judged = []
    for answer, left, stopped in zip(runs.recommendation.tolist(), runs.left, runs.stopped, strict=True):
        exits = {arm: int(left[arm, LEFT_ON]) for arm in np.flatnonzero(left[:, LEFT_AT]).tolist()}
        judged.append(promise.kept(answer, exits, bool(stopped)))
    return np.array(judged, np.bool_)


def _each(value: Any, count: int) -> list[Any]:
    """One exact number, or None, per objective."""
    values = [value] * count if value is None or np.ndim(value) == 0 else list(value)
    return [None if x is None else Fraction(x) for x in values]
