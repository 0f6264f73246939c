"""One study as people are shown it: facts with codes and fields, in their names, units and directions.

JSON, page, reports and terminal show this and derive nothing of their own.
"""

from typing import Any

from lexbandits._cached import cached_property
from lexbandits._printable import plain
from lexbandits.evidence.ordinary import FEWEST, Estimate
from lexbandits.outcomes import ClaimVerdict, Decision, ObjectiveStage
from lexbandits.study.core.messages import flag_messages
from lexbandits.study.core.queries import Answer, certificate_of
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, LATE, OPEN
from lexbandits.study.number_format import between, evidence, is_nothing, many, value
from lexbandits.study.objective import Objective
from lexbandits.study.spec import RESERVED_KEYS
from lexbandits.study.states import StudyState
from lexbandits.study.study import Study
from lexbandits.views.diagnostic_text import Assumption, assumptions_of
from lexbandits.views.estimates import Estimates, decision_of
from lexbandits.views.headlines import claimed, explanation_of, headline, why
from lexbandits.views.item_table import ByItem
from lexbandits.views.learning_cost import LearningCost, learning_cost
from lexbandits.views.reasons import Claim, basis_at_limit, claim_of
from lexbandits.views.trial_counts import tally_of
from lexbandits.views.view_parts import (
    LABELS,
    Against,
    Arm,
    ArmExplanation,
    Basis,
    Cell,
    Comparison,
    ObjectiveRow,
    basis_of,
    compared_on,
    matters,
    objective_row,
)

COMPARED = (  # stages at which pairs of arms are compared
    ObjectiveStage.SETTLED,
    ObjectiveStage.ENOUGH,
    ObjectiveStage.SETTLING,
    ObjectiveStage.NOT_SETTLED,
)


class StudyView:
    """One state of a study. Its parts are made when first asked for."""

    marks = "mean and an ordinary 95 % interval: a picture, not the guarantee"
    always: str | None = "interval that holds at all times"

    def __init__(self, estimates: Estimates) -> None:
        self.estimates = estimates

    @classmethod
    def of(cls, study: Study) -> "StudyView":
        """The view of a study as it stands."""
        return cls.of_fold(study._settled(), study)

    @classmethod
    def of_fold(cls, replay: Replay, study: Study) -> "StudyView":
        """The same, made once per state of the journal."""
        seq, view = replay.memory.get(cls, (-1, None))
        if seq != replay.projection.seq:
            view = cls(Estimates(replay, study.events))
            replay.memory[cls] = replay.projection.seq, view
        found: StudyView = view
        return found

    @property
    def name(self) -> str:
        """The study's name."""
        return self.estimates.name

    @property
    def common(self) -> str:
        """What pairs of arms have in common."""
        return "the same items" if self.estimates.replay.projection.spec.items else "common passes"

    @property
    def note(self) -> str:
        """How to read the table."""
        return f"{compared_on(self.common)} “Measured” has all results, and means use those that count."

    @property
    def state(self) -> StudyState:
        """Where the study stands."""
        return self.estimates.state

    @property
    def results(self) -> int:
        """Told in all."""
        return self.estimates.results

    @cached_property
    def unmet(self) -> frozenset[str]:
        """Limits that the answer is not shown to meet: nobody does, or nobody clearly."""
        estimates = self.estimates
        near = estimates.policy.flags if estimates.is_proven else ()
        return frozenset(estimates.objectives[column].name for column in {*estimates.infeasible, *near})

    @cached_property
    def answer(self) -> Answer:
        """The answer, or the best guess."""
        return self.estimates.answer

    @cached_property
    def headline(self) -> str:
        """The answer, whether it is certified, and what is being settled."""
        return headline(self.estimates)

    @cached_property
    def messages(self) -> tuple[str, ...]:
        """What must be known of the answer besides, in sentences; of an end by hand its reason first."""
        by_hand = self.estimates.replay.projection.end is not None and not self.estimates.policy.finished
        return (*((self.answer.reason,) if by_hand else ()), *flag_messages(self.answer))

    @property
    def badge(self) -> str:
        """The state in few words."""
        if self.answer.certified:
            return "Certified, with flags" if self.answer.flags else "Certified"
        return "Ended, no certificate" if self.state == StudyState.FINISHED else self.state.label.capitalize()

    # --- objectives

    @cached_property
    def objectives(self) -> tuple[ObjectiveRow, ...]:
        """By priority."""
        return tuple(self._objective_row(position) for position in range(len(self.estimates.columns)))

    def _objective_row(self, position: int) -> ObjectiveRow:
        estimates, column = self.estimates, self.estimates.columns[position]
        return objective_row(
            estimates.objectives[column],
            estimates.margin(column),
            estimates.tie(column),
            estimates.stage(position),
            _stage_message(estimates, position),
            tuple(estimates.arms[arm] for arm in estimates.entered(position)),
        )

    # --- arms

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What became of each arm, by index."""
        return tuple(decision_of(self.estimates, arm) for arm in range(len(self.estimates.arms)))

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """As a report lists them: the answer, candidates, those behind last, then who left last."""
        return tuple(self._arm(arm, rank) for rank, arm in enumerate(self.estimates.by_rank))

    @cached_property
    def _tally(self) -> list[list[int]]:
        return tally_of(self.estimates.replay).by_arm.tolist()

    def _arm(self, arm: int, rank: int) -> Arm:
        estimates, projection = self.estimates, self.estimates.replay.projection
        decision, tally = self.decisions[arm], self._tally[arm]
        fields = {key: word for key, word in projection.arms[arm].items() if key not in RESERVED_KEYS}
        return Arm(
            name=estimates.arms[arm],
            fields=fields,
            leads=arm == estimates.leader and not decision.is_gone,
            label=LABELS[decision.outcome],
            decision=decision,
            rank=rank,
            results=estimates.measured[arm],
            counted=estimates.counted(arm),
            open=tally[OPEN],
            failed=tally[FAILED],
            expired=tally[EXPIRED],
            late=tally[LATE],
            objectives={
                estimates.objectives[column].name: self._cell(arm, decision, position)
                for position, column in enumerate(estimates.columns)
            },
            withdrawn=projection.withdrawn.get(estimates.arms[arm]),
        )

    def behind(self, arm: Arm) -> dict[str, Any]:
        """Return the difference of an arm and the arm that excluded it, as measured (arm − rival)."""
        estimates, decision = self.estimates, arm.decision
        if decision.rival is None or decision.objective is None:
            return {}
        column = estimates.spec.column(decision.objective)
        lead = estimates.lead(estimates.index(arm.name), estimates.index(decision.rival), column)
        low, high = sorted(
            (estimates.objectives[column].sign * lead.low, estimates.objectives[column].sign * lead.high)
        )
        return {"low": plain(low), "high": plain(high)}

    def _cell(self, arm: int, decision: Decision, position: int) -> Cell:
        estimates, column = self.estimates, self.estimates.columns[position]
        objective, results = estimates.objectives[column], int(estimates.counts[arm, column])
        mean, found = estimates.mean(arm, column), estimates.estimate(arm, column)
        is_limit = estimates.is_target(column)
        low, high = estimates.interval(arm, column)
        counts = not decision.is_gone and not (
            estimates.stops(arm) and estimates.position_left(arm) < position
        )
        return Cell(
            results=results,
            mean=plain(mean),
            low=plain(found.low),
            high=plain(found.high),
            shown=value(objective, mean),
            range=range_of(objective, found) if results and counts else "",
            counts=counts,
            why=why(estimates, arm, decision) if decision.objective == objective.name else "",
            always_low=plain(low),
            always_high=plain(high),
            meets=self._meets(arm, column),
            basis=basis_at_limit(estimates, arm, column) if is_limit else Basis.ALWAYS,
        )

    def _meets(self, arm: int, column: int) -> bool | None:
        estimates = self.estimates
        if not estimates.is_target(column):
            return None
        return True if estimates.meets(arm, column) else False if estimates.violates(arm, column) else None

    # --- what was seen

    @cached_property
    def certificate(self) -> tuple[dict[str, Any], ...]:
        """The best guess against each rival, objective by objective until one decides; `message`: how far."""
        rows = certificate_of(self.estimates.replay, self.estimates.rows)
        return tuple(
            {**row, "message": self._open_message(row) if row["verdict"] == ClaimVerdict.OPEN else "settled"}
            for row in rows
        )

    def _open_message(self, row: dict[str, Any]) -> str:
        return evidence(None if self.state == StudyState.FINISHED else row["parts"])

    def is_limit(self, objective: str) -> bool:
        """Whether it is met or not; False once nobody can meet it."""
        return self.estimates.is_target(self.estimates.spec.column(objective))

    def meets(self, arm: str, objective: str) -> bool:
        """Whether it was seen that an arm is within a limit."""
        return self.estimates.meets(self.estimates.index(arm), self.estimates.spec.column(objective))

    def open_by(self, arm: str, objective: str) -> str:
        """Of what is open: how much of the evidence is there."""
        key = arm, objective, ClaimVerdict.OPEN
        rows = [row for row in self.certificate if (row["rival"], row["objective"], row["verdict"]) == key]
        return rows[0]["message"] if rows else evidence(None)

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Of each objective on which pairs were compared."""
        estimates = self.estimates
        return tuple(
            self.comparison(position)
            for position, column in enumerate(estimates.columns)
            if not estimates.is_target(column)
            and estimates.stage(position) in COMPARED
            and len(estimates.entered(position)) > 1
            and estimates.counts[estimates.entered(position), column].min() > 0
        )

    @property
    def compared_last(self) -> int:
        """The position at which pairs of arms are being compared, or were last; else the first."""
        columns, stage = self.estimates.columns, self.estimates.stage
        pairs = [k for k, column in enumerate(columns) if not self.estimates.is_target(column)] or [0]
        return max((k for k in pairs if stage(k) in COMPARED), default=pairs[0])

    def comparison(self, position: int) -> Comparison:
        """The arms that reached the objective at a position, against one of them."""
        estimates, column = self.estimates, self.estimates.columns[position]
        best, entered = estimates.reference(position), estimates.entered(position)
        rows = tuple(
            self._against(arm, best, column) for arm in estimates.by_rank if arm in entered and arm != best
        )
        name = estimates.objectives[column].name
        told = any(self.decisions[arm].objective == name for arm in entered)
        decided = told or estimates.stage(position) == ObjectiveStage.SETTLING
        return Comparison(name, estimates.arms[best], decided, rows)

    def _against(self, arm: int, best: int, column: int) -> Against:
        estimates = self.estimates
        found, always = estimates.estimate_lead(arm, best, column), estimates.lead(arm, best, column)
        objective, left = estimates.objectives[column], estimates.eliminations.get(arm)
        low = high = None  # what is certified of the difference
        by, verdict = None, ClaimVerdict.OPEN
        if left is not None and left.objective == column:
            by = None if left.rival in (best, -1) else estimates.arms[left.rival]
            verdict = ClaimVerdict.WORSE if by is None else ClaimVerdict.BEATEN
        elif estimates.behind.get(arm) == column:
            third = estimates.thirds.get(arm, best)
            by = None if third == best else estimates.arms[third]
            verdict = ClaimVerdict.WORSE if by is None else ClaimVerdict.BEATEN
        elif estimates.close(arm, best, column):
            verdict, low, high = ClaimVerdict.TIED, -estimates.margin(column), estimates.margin(column)
        elif estimates.not_worse(best, arm, column):
            verdict, high = ClaimVerdict.NOT_BETTER, estimates.margin(column)
        if verdict == ClaimVerdict.WORSE:
            high = min(always.high, -estimates.tie(column)) + 0.0
        other = Basis.SHARE if objective.is_relative else Basis.ANSWER
        return Against(
            arm=estimates.arms[arm],
            results=always.results,
            mean=plain(found.mean),
            low=plain(found.low),
            high=plain(found.high),
            shown=f"{'+' if found.mean > 0 else ''}{value(objective, found.mean)}",
            verdict=verdict,
            by=by,
            proven_low=low,
            proven_high=high,
            always_low=plain(always.low),
            always_high=plain(always.high),
            basis=basis_of(low, high, (always.low, always.high), other),
        )

    # --- sentences

    @cached_property
    def explanations(self) -> tuple[ArmExplanation, ...]:
        """Each arm in a sentence, in the order of `arms`."""
        return tuple(self.explanation(self.estimates.arms[arm]) for arm in self.estimates.by_rank)

    def explanation(self, arm: str) -> ArmExplanation:
        """Return the explanation of one arm."""
        index = self.estimates.index(arm)
        return explanation_of(self.estimates, index, self.decisions[index])

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the certificate says, per objective; before the end what is known so far."""
        return tuple(claim_of(self.estimates, position) for position in range(len(self.estimates.columns)))

    @cached_property
    def claimed(self) -> tuple[str, list[str]]:
        """The same as a title and paragraphs."""
        return claimed(self.estimates, self.claims)

    @cached_property
    def cost(self) -> LearningCost | None:
        """What learning cost, in results."""
        return learning_cost(self.estimates)

    @cached_property
    def diagnostics(self) -> tuple[Assumption, ...]:
        """What was assumed, and what happened; takes a while."""
        return assumptions_of(self.estimates)

    @cached_property
    def by_item(self) -> ByItem | None:
        """What each arm gave on each item; None without items."""
        return ByItem.of(self.estimates)

    @cached_property
    def open(self) -> str:
        """The rival that most is missing against, in a sentence; empty when there is none."""
        return _most_open(self)


# --- the words of an objective


def range_of(objective: Objective, found: Estimate) -> str:
    """Write an ordinary interval; nothing where a list is complete."""
    if objective.is_exact:
        return "exact"
    if found.low is None or found.high is None:
        return "too few" if found.results < FEWEST else ""
    return between(objective, found.low, found.high)


def _stage_message(estimates: Estimates, position: int) -> str:
    """Where an objective stands."""
    stage, entered = estimates.stage(position), estimates.entered(position)
    out = [a for a in entered if a in estimates.eliminations and estimates.position_left(a) == position]
    behind = sum(estimates.behind.get(arm) == estimates.columns[position] for arm in entered)
    stay = f"{len(entered)} → {many(len(entered) - len(out), 'arm')}" if out else many(len(entered), "arm")
    column, nobody = estimates.columns[position], ""
    if column in estimates.infeasible:
        nobody = "Nobody meets it"
    elif estimates.is_proven and column in estimates.policy.flags:
        nobody = "Nobody is inside it by the slack"
    match stage:
        case ObjectiveStage.SETTLED:
            return f"{nobody or 'Settled'}: {stay}{'' if out else ' stay'}"
        case ObjectiveStage.ENOUGH:
            excluded = f": {gone} excluded" if (gone := len(out) + behind) else ""
            enough = f"Enough for the {'answer' if estimates.answer.certified else 'best guess'}"
            return f"{nobody or enough}{excluded}"
        case ObjectiveStage.SETTLING if estimates.state == StudyState.MEASURING:
            return f"{nobody or 'Being settled'}: {stay}{' so far' if out else ''}"
        case ObjectiveStage.SETTLING | ObjectiveStage.NOT_SETTLED:
            return f"{nobody or 'Not settled'}: {stay}"
        case ObjectiveStage.LATER:
            return "Later, among those that stay"
        case ObjectiveStage.NOT_REACHED:
            return "Not reached"
    return "Not needed: one arm left"


def _most_open(view: StudyView) -> str:
    estimates = view.estimates
    if estimates.settling is None:
        return ""
    objective = estimates.objectives[estimates.settling]
    rows = [
        row
        for row in view.certificate
        if row["objective"] == objective.name and row["verdict"] == ClaimVerdict.OPEN
    ]
    if estimates.is_target(estimates.settling):
        still = [arm for arm in view.arms if not (arm.decision.is_out or arm.decision.is_gone)]
        names = [arm.name for arm in still if arm.objectives[objective.name].meets is None]
        return (
            f"Undecided on {objective.name}: {', '.join(names[:4])}{' and more' if names[4:] else ''}."
            if names
            else ""
        )
    rows = [row for row in rows if row["difference"] is not None]
    if not rows:
        return ""
    far = {None: ""}  # of those that are as far, the closest
    row = min(rows, key=lambda row: (far.get(row["parts"], row["message"]), abs(row["difference"])))
    leader, ahead = estimates.arms[estimates.policy.recommendation], objective.sign * row["difference"] > 0
    by = value(objective, abs(row["difference"]), unit=True)
    stands = f"is {by} {'worse' if ahead else 'better'} than {leader} on {objective.name}"
    if is_nothing(objective, row["difference"]):
        stands = f"is as good as {leader} on {objective.name} in the mean"
    return f"Most open: {row['rival']} {stands} ({matters(objective)}): {row['message']}."
