"""A study as it stands, in the names, units and directions people gave: what all that is shown is made of."""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._cached import cached_property
from lexbandits._printable import plain
from lexbandits.evidence.ordinary import Estimate
from lexbandits.outcomes import ArmOutcome, ClaimVerdict, DecidedBy, Decision, ObjectiveStage
from lexbandits.policies.base import Elimination
from lexbandits.policies.tolerance.anytime import beats, close, meets, not_worse, paired, violates
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.policies.tolerance.preregistered import shown_not_worse, shown_to_beat
from lexbandits.policies.tolerance.relative import in_shares
from lexbandits.policies.tolerance.state import POSITION, REACH, RESULTS, TOLERANCE
from lexbandits.policies.tolerance.stopping import BEFORE, ENDS, KEPT, Seen, best_by_differences, keep_likely
from lexbandits.study.core.events import Event
from lexbandits.study.core.queries import Answer, answer_of, settling, unmet
from lexbandits.study.core.replay import Replay
from lexbandits.study.objective import Objective
from lexbandits.study.spec import Spec, arm_index
from lexbandits.study.states import StudyState
from lexbandits.study.study import Study
from lexbandits.views.cells import Cells


class Difference(NamedTuple):
    """How much better one arm is than another on an objective, in its unit, whatever the direction."""

    results: int  # common
    mean: float
    low: float  # the truth lies between these, at the study's confidence
    high: float


@dataclass(frozen=True)
class Estimates:
    """One study, read once. Arms are indices, objectives are columns; `columns` has them by priority."""

    replay: Replay
    events: Callable[[], Iterable[Event]]  # reads the whole journal
    # intervals of differences that somebody asked for: of all pairs they would take too long
    compared: dict[tuple[int, int, int], tuple[float, float]] = field(default_factory=dict)
    pictures: dict[tuple[int, ...], Estimate] = field(default_factory=dict)

    @classmethod
    def of(cls, study: Study) -> "Estimates":
        """The estimates of a study as it stands."""
        return cls(study._settled(), study.events)

    @property
    def name(self) -> str:
        """The study's name."""
        return self.spec.name

    # --- the question

    @cached_property
    def spec(self) -> Spec:
        """The question under the rules in force."""
        return self.replay.projection.spec

    @cached_property
    def columns(self) -> tuple[int, ...]:
        """Objectives by priority."""
        return tuple(self.replay.projection.order)

    @cached_property
    def objectives(self) -> tuple[Objective, ...]:
        """By column."""
        return self.spec.objectives

    @cached_property
    def arms(self) -> list[str]:
        """All arms by index, withdrawn ones too."""
        return list(self.replay.projection.arm_names)

    def index(self, arm: str) -> int:
        """The index of an arm, by name."""
        return arm_index(self.arms, arm)

    # --- the answer

    @cached_property
    def policy(self) -> LexElimTol:
        """The policy behind it; not to be changed."""
        return self.replay.policy

    @cached_property
    def answer(self) -> Answer:
        """The answer, or the best guess."""
        return answer_of(self.replay)

    @cached_property
    def leader(self) -> int:
        """The answer's index."""
        return self.index(self.answer.arm)

    @cached_property
    def state(self) -> StudyState:
        """Where the study stands."""
        return self.replay.state

    @cached_property
    def settling(self) -> int | None:
        """The column of the objective being settled."""
        name = settling(self.replay)
        return None if name is None else self.spec.names.index(name)

    @cached_property
    def eliminations(self) -> dict[int, Elimination]:
        """Arm -> when it left, and on what and by whom it is out today; all others are candidates."""
        withdrawn = self.replay.projection.withdrawn
        return {left.arm: left for left in self.policy.eliminations if self.arms[left.arm] not in withdrawn}

    @cached_property
    def rows(self) -> tuple[Seen, ...]:
        """What was seen of the best guess against each rival; nothing after a contradiction."""
        return self.policy.seen(self.difference)

    @cached_property
    def seen(self) -> tuple[Seen, ...]:
        """The same of the answer; nothing if the record answers otherwise."""
        return self.rows if self.policy.recommendation == self.leader else ()

    @cached_property
    def parts(self) -> dict[tuple[int, int], float]:
        """(Rival, column) -> how much of the evidence there is, of what was seen of the answer."""
        return {(row.rival, row.objective): row.parts for row in self.seen}

    @cached_property
    def behind(self) -> dict[int, int]:
        """Candidate -> the column on which a proven answer or a third arm beats it, on a limit too.

        It never left: what comes before was not settled, but need not be, or a proof takes less evidence.
        """
        rows = self.seen if self.is_proven else ()
        won = {row.rival: row.objective for row in rows if row.verdict in ENDS}
        return {arm: column for arm, column in won.items() if arm not in self.eliminations}

    @cached_property
    def thirds(self) -> dict[int, int]:
        """Of those behind, who are so because a third arm beats them -> that arm."""
        return {row.rival: row.by for row in self.seen if row.by >= 0 and row.rival in self.behind}

    @cached_property
    def dropped(self) -> dict[int, tuple[int, int]] | None:
        """Candidate -> the position where today's means drop it and by whom, or −1 for a limit.

        None if they do not lead to the answer.
        """
        state, found = self.policy.state, {}
        folded = state.limits, state.kinds, state.singles, state.pairs
        scratch = np.array([state.arms.active, state.arms.active])
        for position in range(int(state.clock[POSITION]), len(self.columns)):
            column = self.columns[position]
            keep_likely(*folded, state.arms.means, state.is_limit[column], scratch, column)
            kept, before = scratch[[KEPT, BEFORE]]
            for arm in np.flatnonzero(before & ~kept).tolist():
                found[arm] = position, self._ahead(arm, np.flatnonzero(before).tolist(), column)
        chosen = best_by_differences(*folded, scratch, self.columns[-1])
        return found if chosen == self.leader else None

    def _ahead(self, arm: int, others: list[int], column: int) -> int:
        """Who is ahead of an arm by too much in the mean: the answer if it is, else who leads most."""
        if self.is_target(column):
            return -1
        state = self.policy.state
        leads = {other: self.lead(other, arm, column).mean for other in others if other != arm}
        if self.objectives[column].is_relative:
            leads = {
                other: in_shares(state.limits, state.arms.means, column, other, arm, lead)
                for other, lead in leads.items()
            }
        middle = self.policy.state.limits[column, [TOLERANCE, REACH]].mean()
        if leads.get(self.leader, -math.inf) > middle:
            return self.leader
        return max(leads, key=lambda other: -math.inf if math.isnan(leads[other]) else leads[other])

    @cached_property
    def is_proven(self) -> bool:
        """Whether the policy ended because its answer is acceptable; not by a contradiction or a limit."""
        return self.policy.finished and not self.policy.contradiction and not self.is_stopped

    @cached_property
    def is_stopped(self) -> bool:
        """Whether it ended because nobody meets a limit."""
        state = self.policy.state
        unsettled = int(state.clock[POSITION]) < len(self.columns)
        return bool(self.policy.finished and state.options.stops and unsettled and self.infeasible)

    @cached_property
    def infeasible(self) -> dict[int, tuple[int, ...]]:
        """Column of a limit that nobody meets -> the arms tested against it."""
        return dict(self.policy.infeasible)

    def unmet(self, column: int) -> dict[str, Any]:
        """A limit that nobody meets, for `answers.nobody_meets`."""
        return unmet(self.replay, column, self.infeasible[column])

    @cached_property
    def by_rank(self) -> list[int]:
        """Arms as a report lists them: the answer, candidates, those behind last, then who left last."""
        projection = self.replay.projection

        def key(arm: int) -> tuple[bool, bool, bool, bool, bool, float, int]:
            name, left = self.arms[arm], self.eliminations.get(arm)
            gone = name in projection.withdrawn, name in projection.given_up
            order = *gone, arm != self.leader, left is not None, arm in self.behind
            return *order, 0.0 if left is None else -left.round, arm

        return sorted(range(len(self.arms)), key=key)

    def position_left(self, arm: int) -> int:
        """The position of the objective on which the arm left or is behind, else the last one."""
        if arm in self.eliminations:
            return self.columns.index(self.eliminations[arm].objective)
        return self.columns.index(self.behind.get(arm, self.columns[-1]))

    def stops(self, arm: int) -> bool:
        """Whether objectives after `position_left` no longer count for an arm."""
        return arm in self.eliminations or arm in self.behind

    def entered(self, position: int) -> list[int]:
        """The arms that count on the objective at this position."""
        offered = [a for a in range(len(self.arms)) if self.arms[a] not in self.replay.projection.withdrawn]
        return [a for a in offered if not self.stops(a) or self.position_left(a) >= position]

    def stage(self, position: int) -> ObjectiveStage:
        """How far an objective has come; a study that ended without a proof keeps what was being settled."""
        column, now = self.columns[position], int(self.policy.state.clock[POSITION])
        if not self.is_proven and position >= now:
            if self.state == StudyState.FINISHED:
                return ObjectiveStage.NOT_REACHED if position > now else ObjectiveStage.NOT_SETTLED
            return ObjectiveStage.LATER if position > now else ObjectiveStage.SETTLING
        rests = any(row.objective == column and row.verdict != ClaimVerdict.OPEN for row in self.seen)
        is_needed = rests or len(self.entered(position)) > 1 or self.objectives[column].limit is not None
        if self.policy.finished and not is_needed:
            return ObjectiveStage.NOT_NEEDED
        return ObjectiveStage.SETTLED if position < now else ObjectiveStage.ENOUGH

    def reference(self, position: int) -> int:
        """Whom others are compared with: who removed most, else the answer, else the best mean."""
        column, entered = self.columns[position], self.entered(position)
        if self.is_proven and position >= int(self.policy.state.clock[POSITION]):
            return self.leader
        rivals = [e.rival for e in self.eliminations.values() if e.objective == column and e.rival >= 0]
        if rivals:
            return max(entered, key=lambda arm: (rivals.count(arm), -arm))
        sign = self.objectives[column].sign
        best = max(entered, key=lambda arm: (sign * self.mean(arm, column), -arm))
        return self.leader if self.leader in entered else best

    # --- what was measured

    @cached_property
    def counts(self) -> Counts:
        """(K, m) values that count."""
        return self.policy.counts

    @cached_property
    def measured(self) -> list[int]:
        """Results told per arm; some wait for their pass, came after the end or were never asked for."""
        return list(self.replay.projection.measured)

    def counted(self, arm: int) -> int:
        """Results of an arm that its means rest on."""
        return int(self.counts[arm].max())

    @cached_property
    def folded(self) -> int:
        """Results that count, in all."""
        return int(self.policy.state.clock[RESULTS])

    @cached_property
    def results(self) -> int:
        """Results told in all."""
        return sum(self.measured)

    def difference(self, arm: int, other: int, column: int) -> tuple[float, float]:
        """Where the difference of two arms lies in the policy's direction; computed once."""
        key = min(arm, other), max(arm, other), column
        if key not in self.compared:
            self.compared[key] = self.policy.difference(*key)
        low, high = self.compared[key]
        return (low, high) if arm < other else (-high, -low)

    @cached_property
    def _means(self) -> list[list[float]]:
        return (self._signs * self.policy.means).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _ends(self) -> list[list[list[float]]]:
        return np.sort(self._signs[:, None] * self.policy.intervals, axis=-1).tolist()  # type: ignore[no-any-return]

    @cached_property
    def _signs(self) -> Vector:
        return np.array([objective.sign for objective in self.objectives], float)

    def mean(self, arm: int, column: int) -> float:
        """The mean as measured."""
        return self._means[arm][column]

    def interval(self, arm: int, column: int) -> tuple[float, float]:
        """Where the mean lies, as measured."""
        low, high = self._ends[arm][column]
        return low, high

    @cached_property
    def _cells(self) -> Cells:
        return Cells(self.replay)

    @cached_property
    def deviations(self) -> Vector:
        """(m,) standard deviations of one value, within arms, as measured."""
        return np.array([self._cells.deviation(column) for column in range(len(self.objectives))])

    def estimate(self, arm: int, column: int) -> Estimate:
        """The mean as measured, with an ordinary 95 % interval: a picture, not the guarantee."""
        key = arm, column
        if key not in self.pictures:
            self.pictures[key] = self._cells.arm(arm, column, self.mean(arm, column))
        return self.pictures[key]

    def estimate_lead(self, arm: int, other: int, column: int) -> Estimate:
        """The same of how much better `arm` is than `other`."""
        key = arm, other, column
        if key not in self.pictures:
            mean = self.lead(arm, other, column).mean
            self.pictures[key] = self._cells.difference(arm, other, column, mean)
        return self.pictures[key]

    def lead(self, arm: int, other: int, column: int) -> Difference:
        """How much better `arm` is than `other`, and where that lies at all times."""
        state = self.policy.state
        results, mean = paired(state.limits, state.kinds, state.singles, state.pairs, column, arm, other)
        low, high = self.difference(arm, other, column)
        if self.objectives[column].is_exact:  # without what binary fractions add
            mean, low, high = (float(f"{number:.12g}") for number in (mean, low, high))
            size = abs(self.mean(arm, column)) + abs(self.mean(other, column))
            if abs(mean) <= 1e-12 * size:
                mean = low = high = 0.0
        return Difference(int(results), float(mean) if results else math.nan, low, high)

    def tie(self, column: int) -> float:
        """The tie in the unit of an objective; of a share by the means so far: proves nothing."""
        return self.objectives[column].tie_in_unit * self._whole(column)

    def margin(self, column: int) -> float:
        """The same of the margin."""
        return self.objectives[column].margin_in_unit * self._whole(column)

    def _whole(self, column: int) -> float:
        objective = self.objectives[column]
        if not objective.is_relative:
            return 1.0
        arms = range(len(self.arms)) if objective.is_of_best else [self.index(str(objective.reference))]
        known = [mean for arm in arms if not math.isnan(mean := self.mean(arm, column))]
        return abs(objective.sign * max(objective.sign * mean for mean in known)) if known else 0.0

    def beats(self, arm: int, other: int, column: int) -> bool:
        """Whether it was seen that `arm` is better by more than the tie."""
        state = self.policy.state
        if arm == self.leader:  # of whom alone something was claimed under the declared rules
            return bool(shown_to_beat(state.lcb, state.limits, state.log_evidence, column, arm, other))
        return bool(beats(state.lcb, state.limits, column, arm, other))

    def close(self, arm: int, other: int, column: int) -> bool:
        """Whether it was seen that the two differ by at most the margin."""
        state = self.policy.state
        if other == self.leader:
            arm, other = other, arm
        if arm == self.leader and self.objectives[column].is_relative:
            return self.not_worse(arm, other, column) and self.not_worse(other, arm, column)
        if arm == self.leader:
            reach = state.limits[column, REACH]
            return self.not_worse(arm, other, column) and bool(self.lead(arm, other, column).high <= reach)
        return bool(close(state.lcb, state.limits, column, arm, other))

    def not_worse(self, arm: int, other: int, column: int) -> bool:
        """Whether it was seen that `arm` is worse by at most the margin."""
        state = self.policy.state
        if arm == self.leader:
            return bool(shown_not_worse(state.lcb, state.limits, state.log_evidence, column, arm, other))
        return bool(not_worse(state.lcb, state.limits, column, arm, other))

    def is_modelled(self, column: int) -> bool:
        """Whether a noise is assumed of values on a list; nothing is once all are there."""
        is_modelled = self.objectives[column].kind.traits.unbounded
        rows = [row for row in self.answer.certificate if row["objective"] == self.objectives[column].name]
        return is_modelled and not all(row["exact"] for row in rows)

    def is_target(self, column: int) -> bool:
        """Whether the objective is a limit."""
        return bool(self.policy.state.is_limit[column])

    def meets(self, arm: int, column: int) -> bool:
        """Whether it was seen that the arm is within the limit; of the answer, as it is certified."""
        if arm == self.leader and self.is_proven:
            return column not in self.policy.flags
        return bool(meets(self.policy.state.bounds, self.policy.state.limits, column, arm))

    def violates(self, arm: int, column: int) -> bool:
        """Whether it was seen that the arm is beyond the limit."""
        return bool(violates(self.policy.state.bounds, self.policy.state.limits, column, arm))

    def target_bounds(self, arm: int, column: int) -> tuple[float, float]:
        """Where an arm lies that is held against a limit, as measured, at all times."""
        low, high = sorted((self.objectives[column].sign * self._target_bounds[arm, column]).tolist())
        return low, high

    @cached_property
    def _target_bounds(self) -> Vector:
        return self.policy.target_bounds

    def values(self, arm: int, column: int) -> Vector:
        """The values that count, as measured, in the order of their passes."""
        return self.replay.projection.counted_values(arm, column)


# --- what became of each arm


def decision_of(estimates: Estimates, arm: int) -> Decision:
    """Return what became of an arm.

    An arm that a proven answer or a third arm beats, while what comes before is not settled, is excluded by
    the proof, and still a candidate. What the means alone decide is undecided.
    """
    name, projection = estimates.arms[arm], estimates.replay.projection
    if name in projection.withdrawn:
        return Decision(ArmOutcome.FAILED if name in projection.given_up else ArmOutcome.WITHDRAWN)
    if arm == estimates.leader:
        return Decision(ArmOutcome.WINNER if estimates.answer.certified else ArmOutcome.UNDECIDED)
    if arm in estimates.eliminations:
        left = estimates.eliminations[arm]
        return _beaten(estimates, arm, left.objective, left.rival, DecidedBy.ELIMINATION)
    if arm in estimates.behind:
        rival = estimates.thirds.get(arm, estimates.leader)
        return _beaten(estimates, arm, estimates.behind[arm], rival, DecidedBy.PROOF)
    if estimates.is_proven and _is_tied(estimates, arm):
        return Decision(ArmOutcome.TIED)
    if estimates.is_proven and estimates.dropped is not None and arm in estimates.dropped:
        return by_means(estimates, arm)
    return Decision(ArmOutcome.UNDECIDED)


def by_means(estimates: Estimates, arm: int) -> Decision:
    """Return what today's means decide on an arm that they drop."""
    assert estimates.dropped is not None
    position, rival = estimates.dropped[arm]
    return Decision(
        ArmOutcome.UNDECIDED,
        objective=estimates.objectives[estimates.columns[position]].name,
        rival=estimates.arms[rival] if rival >= 0 else None,
        by=DecidedBy.MEANS,
    )


def _beaten(estimates: Estimates, arm: int, column: int, rival: int, by: DecidedBy) -> Decision:
    """Return the decision on a beaten arm; on a limit by what was seen of it alone."""
    objective, outcome, limit = estimates.objectives[column], ArmOutcome.EXCLUDED, None
    bound: float | None
    if estimates.is_target(column):
        limit = ClaimVerdict.NOT_CLEARLY_WITHIN
        if estimates.violates(arm, column):
            outcome, limit = ArmOutcome.OUTSIDE_LIMIT, ClaimVerdict.VIOLATES_LIMIT
        bound = objective.limit if outcome is ArmOutcome.OUTSIDE_LIMIT else objective.inner_limit
    else:  # what was proven without an interval
        proven = -math.inf if objective.is_relative else objective.tie_in_unit
        bound = max(estimates.lead(rival, arm, column).low, proven)
    left = estimates.eliminations.get(arm)
    return Decision(
        outcome,
        objective=objective.name,
        rival=estimates.arms[rival] if rival >= 0 else None,
        by=by,
        limit=limit,
        bound=None if bound is None else plain(bound),
        after=None if left is None else int(left.round),
    )


def _is_tied(estimates: Estimates, arm: int) -> bool:
    """Return whether it was seen, objective by objective, that an arm is as good as the answer."""
    verdicts = [row.verdict for row in estimates.seen if row.rival == arm]
    return bool(verdicts) and set(verdicts) <= {ClaimVerdict.TIED, ClaimVerdict.MEETS_LIMIT}
