"""A study as it stands, in the names, units and directions people gave: what all that is shown is made of."""

import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.policies.base import Elimination
from lexbandits.policies.facts import RESULTS, beats, close, meets, misses, paired
from lexbandits.policies.lexelim_tol import LexElimTol
from lexbandits.study.answers import Answer, answer_of, settling
from lexbandits.study.fold import Fold, make_policy
from lexbandits.study.ledger import EXPIRED, FAILED, IMPORTED, LATE, OPEN, TOLD
from lexbandits.study.objective import Objective
from lexbandits.study.spec import Spec, arm_index
from lexbandits.study.study import Study

NOT_MEASURED = "could not be measured"


class Difference(NamedTuple):
    """How much better one arm is than another on an objective, in its unit, whatever the direction."""

    results: int  # common
    mean: float
    low: float  # the truth lies between these, at the study's confidence
    high: float


class Moment(NamedTuple):
    """The study after some results."""

    results: int
    objective: int  # column being settled; the number of objectives when all are
    candidates: tuple[int, ...]
    differences: Vector  # (K, K, m, 2)


@dataclass(frozen=True)
class View:
    """One study, read once. Arms are indices, objectives are columns; `columns` has them by priority."""

    study: Study
    fold: Fold

    @classmethod
    def of(cls, study: Study) -> "View":
        """The view of a study as it stands."""
        return cls(study, study._settled())

    @property
    def name(self) -> str:
        """The study's name."""
        return self.spec.name

    @cached_property
    def kinds(self) -> Counter[str]:
        """How many events of each kind there are."""
        return Counter(event.kind for event in self.study.events())

    # --- the question

    @cached_property
    def spec(self) -> Spec:
        """The question under the rules in force."""
        return self.fold.ledger.spec

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Objectives by priority."""
        return tuple(self.fold.ledger.order)

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """By column."""
        return self.spec.objectives

    @cached_property
    def arms(self) -> list[str]:
        """All arms by index, withdrawn ones too."""
        return list(self.fold.ledger.arm_names)

    def index(self, arm: str) -> int:
        """The index of an arm, by name."""
        return arm_index(self.arms, arm)

    # --- the answer

    @cached_property
    def policy(self) -> LexElimTol:
        """The policy behind it; not to be changed."""
        return cast(LexElimTol, self.fold.policy)

    @cached_property
    def answer(self) -> Answer:
        """The answer, or the best guess."""
        return answer_of(self.fold)

    @cached_property
    def leader(self) -> int:
        """The answer's index."""
        return self.index(self.answer.arm)

    @cached_property
    def state(self) -> str:
        """measuring, finished, paused, budget spent or items spent."""
        return self.fold.state

    @cached_property
    def settling(self) -> int | None:
        """The column of the objective being settled."""
        name = settling(self.fold)
        return None if name is None else self.spec.names.index(name)

    @cached_property
    def eliminations(self) -> dict[int, Elimination]:
        """Arm -> when, on what and by whom it left; at the end also whom the answer was seen to beat."""
        policy = self.policy
        out = {e.arm: e for e in policy.eliminations}
        if policy.finished:
            end = int(policy.state.clock[RESULTS])
            for row in policy.certificate:
                if row.verdict == "beats":
                    out.setdefault(row.rival, Elimination(row.rival, end, row.objective, self.leader))
        return {arm: out[arm] for arm in out if self.arms[arm] not in self.fold.ledger.withdrawn}

    def standing(self, arm: int) -> str:
        """ "answer", "candidate", "left", "withdrawn" or "could not be measured"."""
        why = self.fold.ledger.withdrawn.get(self.arms[arm])
        if why is not None:
            return NOT_MEASURED if why.startswith(NOT_MEASURED) else "withdrawn"
        if arm == self.leader:
            return "answer"
        return "left" if arm in self.eliminations else "candidate"

    @cached_property
    def by_standing(self) -> list[int]:
        """Arms as a report lists them: the answer, candidates, then who left last."""

        def key(arm: int) -> tuple[int, float, int]:
            order = ("answer", "candidate", "left", "withdrawn", NOT_MEASURED).index(self.standing(arm))
            left = self.eliminations[arm].round if arm in self.eliminations else 0
            return order, -left, arm

        return sorted(range(len(self.arms)), key=key)

    def position_left(self, arm: int) -> int:
        """The position of the objective on which the arm left, else the last one."""
        if arm in self.eliminations:
            return self.columns.index(self.eliminations[arm].objective)
        return len(self.columns) - 1

    def entered(self, position: int) -> list[int]:
        """The arms that reached the objective at this position."""
        offered = [a for a in range(len(self.arms)) if self.arms[a] not in self.fold.ledger.withdrawn]
        return [a for a in offered if a not in self.eliminations or self.position_left(a) >= position]

    def stage(self, position: int) -> str:
        """ "settled", "being settled", "later" or "not needed" for an objective."""
        column = self.columns[position]
        if self.settling is not None:
            now = self.columns.index(self.settling)
            return "settled" if position < now else "being settled" if position == now else "later"
        rows = [row for row in self.answer.certificate if row["objective"] == self.objectives[column].name]
        needed = len(self.entered(position)) > 1 or any(row["verdict"] != "open" for row in rows)
        if self.objectives[column].target is not None:
            needed = True
        return "settled" if needed else "not needed"

    # --- what was measured

    @cached_property
    def counts(self) -> Counts:
        """(K, m) values that count."""
        return self.policy.counts

    @cached_property
    def measured(self) -> list[int]:
        """Results per arm."""
        return list(self.fold.ledger.measured)

    @cached_property
    def results(self) -> int:
        """Results in all."""
        return sum(self.measured)

    @cached_property
    def _signed(self) -> tuple[Vector, Vector]:
        return self.policy._all_intervals()

    def mean(self, arm: int, column: int) -> float:
        """The mean as measured."""
        return float(self.objectives[column].sign * self.policy.means[arm, column])

    def interval(self, arm: int, column: int) -> tuple[float, float]:
        """Where the mean lies, as measured."""
        ends = self.objectives[column].sign * self._signed[0][arm, column]
        return float(min(ends)), float(max(ends))

    def lead(self, arm: int, other: int, column: int) -> Difference:
        """How much better `arm` is than `other`."""
        state = self.policy.state
        results, mean = paired(state.kinds, state.singles, state.pairs, column, arm, other)
        low, high = self._signed[1][arm, other, column].tolist()
        return Difference(int(results), float(mean) if results else math.nan, low, high)

    def beats(self, arm: int, other: int, column: int) -> bool:
        """Whether it was seen that `arm` is better by more than the tolerance."""
        return bool(beats(self.policy.state.lows, self.policy.state.limits, column, arm, other))

    def close(self, arm: int, other: int, column: int) -> bool:
        """Whether it was seen that the two differ by at most tolerance + resolution."""
        return bool(close(self.policy.state.lows, self.policy.state.limits, column, arm, other))

    def is_target(self, column: int) -> bool:
        """Whether the objective is met or not; False once nobody can meet it."""
        return bool(self.policy.state.must[column])

    def meets(self, arm: int, column: int) -> bool:
        """Whether it was seen that the arm is within the limit, or beyond it by less than the resolution."""
        return bool(meets(self.policy.state.bounds, self.policy.state.limits, column, arm))

    def misses(self, arm: int, column: int) -> bool:
        """Whether it was seen that the arm is beyond the limit."""
        return bool(misses(self.policy.state.bounds, self.policy.state.limits, column, arm))

    def target_bounds(self, arm: int, column: int) -> tuple[float, float]:
        """The bounds by which an arm is judged against a limit, as measured."""
        ends = self.objectives[column].sign * self.policy.state.bounds[column, arm]
        return float(min(ends)), float(max(ends))

    # --- trials

    @cached_property
    def states(self) -> Counts:
        """(trials,) states, of ledger.STATES."""
        return self.fold.ledger.column("state")

    def trials_of(self, arm: int, *states: int) -> int:
        """How many trials of an arm are in one of these states."""
        mine = self.fold.ledger.column("arm") == arm
        return int((np.isin(self.states, states) & mine).sum())

    def losses(self, arm: int) -> dict[str, int]:
        """What was handed out and did not come back as a result in time."""
        return {
            "failed": self.trials_of(arm, FAILED),
            "expired": self.trials_of(arm, EXPIRED),
            "late": self.trials_of(arm, LATE),
        }

    def open_of(self, arm: int) -> int:
        """Trials in flight."""
        return self.trials_of(arm, OPEN)

    def values(self, arm: int, column: int) -> Vector:
        """The values that count, as measured, in the order of their passes."""
        ledger = self.fold.ledger
        kept = np.isin(self.states, (TOLD, IMPORTED)) & (ledger.column("arm") == arm)
        order = np.argsort(ledger.column("place")[kept], kind="stable")
        values = ledger.column("values")[kept, column][order]
        return np.asarray(values[~np.isnan(values)])

    # --- how it came to be

    def history(self, steps: int = 120) -> list[Moment]:
        """The study replayed: how it stood after 1/steps, 2/steps, … of its results."""
        ledger = self.fold.ledger
        policy: Any = make_policy(ledger.policy, ledger.settings)
        ends = np.unique(np.linspace(0, len(ledger.fills), steps + 1).astype(int)).tolist()
        rules = [stop for stop in ledger.stops if stop.kind == "rules"]
        moments, done = [_moment(policy)], 0
        for position in sorted({*ends[1:], *(stop.position for stop in rules)}):
            while rules and rules[0].position <= done:
                policy = policy.amended(**rules.pop(0).data)
            done = _told(ledger, policy, done, position)
            moments.append(_moment(policy))
        for stop in rules:
            policy = policy.amended(**stop.data)
        return [*moments, _moment(policy)] if rules else moments


def _told(ledger: Any, policy: Any, first: int, end: int) -> int:
    if end > first:
        arms, places, values = ledger.filled(first, end)
        policy.tell_many(arms, ledger.spec.signed(values), items=places)
    return end


def _moment(policy: LexElimTol) -> Moment:
    found = int(policy.state.clock[RESULTS])
    return Moment(found, policy.objective, policy.candidates, policy.differences)
