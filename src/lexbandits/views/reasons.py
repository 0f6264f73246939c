"""What is known of one arm on one objective, and what the answer may give up there, in sentences."""

import math
from dataclasses import dataclass

from lexbandits._printable import plain
from lexbandits.outcomes import ClaimVerdict, ObjectiveStage
from lexbandits.policies.tolerance.state import REACH
from lexbandits.policies.tolerance.stopping import ENDS
from lexbandits.study.core.messages import nobody_meets, whoever
from lexbandits.study.number_format import (
    amount,
    between,
    beyond_limit,
    bound,
    capital,
    evidence,
    is_nothing,
    listed,
    many,
    value,
)
from lexbandits.study.states import StudyState
from lexbandits.views.estimates import Difference, Estimates
from lexbandits.views.view_parts import BASES, Basis, basis_of

AT = "at the study's confidence"
NOT_SHOWN = ", not the guarantee"  # of an ordinary interval that seems to decide what is undecided


@dataclass(frozen=True)
class Reason:
    """What is known of one arm on one objective, against `rival`.

    `difference` is how much worse the arm is, in the objective's unit; the truth lies in [low, high].
    Against a limit they are the arm's own mean and its bounds. `verdict` says what is shown of the arm; of
    the answer itself "not_worse" or "open". `results` are those that the difference rests on: common ones,
    or else the arm's own. `parts`: of an open one, how much there is of the evidence that settles it.
    """

    arm: str
    objective: str
    verdict: ClaimVerdict
    rival: str | None
    difference: float | None
    low: float | None
    high: float | None
    margin: float
    tie: float
    results: int
    sentence: str
    parts: float | None = None

    def __str__(self) -> str:
        return self.sentence

    @property
    def core(self) -> str:
        """The sentence without what a table's head and row say already."""
        text = self.sentence.removeprefix(f"on {self.objective} it ").removesuffix(".")
        return text.removeprefix("is ").removeprefix("has ")


@dataclass(frozen=True)
class Claim:
    """The most that the answer may give up on one objective, in its unit or as a share; None: no claim."""

    objective: str
    worst: float | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def reason_of(estimates: Estimates, arm: int, position: int) -> Reason:
    """Of an arm on the objective at a position: against who eliminated it there, a limit, or the answer."""
    column = estimates.columns[position]
    about, left = _Known(estimates, arm, column), estimates.eliminations.get(arm)
    if estimates.stops(arm) and estimates.position_left(arm) < position:
        return about.past()
    if estimates.counts[arm, column] == 0:
        return about.not_measured()
    if estimates.is_target(column) or (
        column in estimates.infeasible and (arm == estimates.leader or estimates.violates(arm, column))
    ):
        return about.against_limit()
    if left is not None and left.objective == column:
        return about.worse_than(left.rival)
    if arm == estimates.leader:
        return about.of_leader(position)
    if arm in estimates.thirds and estimates.behind[arm] == column:
        return about.worse_than(estimates.thirds[arm])
    return about.compared(estimates.leader)


def basis_at_limit(estimates: Estimates, arm: int, column: int) -> Basis:
    """What shows that an arm meets a limit or violates it, where one of the two is shown."""
    meets, objective = estimates.meets(arm, column), estimates.objectives[column]
    is_below = (objective.sign < 0) == meets
    low, high = (None, objective.limit) if is_below else (objective.limit, None)
    if not (meets or estimates.violates(arm, column)):
        return Basis.ALWAYS
    proven = arm == estimates.leader and estimates.is_proven
    otherwise = Basis.ANSWER if proven else Basis.ONE_SIDED
    return basis_of(low, high, estimates.interval(arm, column), otherwise)


def against(estimates: Estimates, arm: int, column: int, rival: int | None) -> Reason:
    """Of an arm against another that is ahead in the mean, or against a limit."""
    about = _Known(estimates, arm, column)
    return about.against_limit() if rival is None else about.compared(rival, so="")


class _Known:
    """One arm on one objective, and the sentences about it."""

    def __init__(self, estimates: Estimates, arm: int, column: int) -> None:
        self.estimates, self.arm, self.column = estimates, arm, column
        self.objective, self.mean = estimates.objectives[column], estimates.mean(arm, column)
        self.name = self.objective.name
        self.shown = value(self.objective, self.mean, unit=True)
        self.is_finished = estimates.state == StudyState.FINISHED

    def _reason(
        self,
        verdict: ClaimVerdict,
        sentence: str,
        found: Difference | None = None,
        rival: int | None = None,
        parts: float | None = None,
    ) -> Reason:
        numbers = (None, None, None) if found is None else map(plain, (found.mean, found.low, found.high))
        difference, low, high = numbers
        return Reason(
            arm=self.estimates.arms[self.arm],
            objective=self.name,
            verdict=verdict,
            rival=None if rival is None else self.estimates.arms[rival],
            difference=difference,
            low=low,
            high=high,
            margin=self.objective.margin_in_unit,
            tie=self.objective.tie_in_unit,
            results=int(self.estimates.counts[self.arm, self.column]) if found is None else found.results,
            sentence=sentence,
            parts=parts,
        )

    # --- on its own

    def past(self) -> Reason:
        """Of an objective after the one on which the arm left."""
        shown = "not measured" if math.isnan(self.mean) else self.shown
        return self._reason(ClaimVerdict.NOT_COUNTED, f"{self.name} {shown}, which no longer counts.")

    def not_measured(self) -> Reason:
        """Of an objective on which nothing counts."""
        told, text = self.estimates.values(self.arm, self.column).size, f"{self.name} was never measured."
        if told:
            does, its = ("does", "its") if told == 1 else ("do", "their")
            yet = "" if self.is_finished else f" yet: {its} pass is not complete"
            text = f"{self.name} has {many(told, 'result')} that {does} not count{yet}."
        return self._reason(ClaimVerdict.NOT_MEASURED, text)

    def of_leader(self, position: int) -> Reason:
        """Of the answer, or the best guess."""
        worst = given_up(self.estimates, self.column)
        is_known = worst is not None and math.isfinite(worst)
        text = f"on {self.name} it has {self.shown}. {claim_of(self.estimates, position)}"
        return self._reason(ClaimVerdict.NOT_WORSE if is_known else ClaimVerdict.OPEN, text)

    def against_limit(self) -> Reason:
        """Of an arm against the limit of the objective."""
        estimates, objective, arm, column = self.estimates, self.objective, self.arm, self.column
        found = Difference(
            int(estimates.counts[arm, column]), self.mean, *estimates.target_bounds(arm, column)
        )
        limit, text = amount(objective, objective.limit or 0.0), f"on {self.name} it has {self.shown}"
        proven = BASES[basis_at_limit(estimates, arm, column)]
        if column in estimates.infeasible and (arm == estimates.leader or estimates.violates(arm, column)):
            text += f", {proven} {beyond_limit(objective)}{self._nobody()}"
            return self._reason(ClaimVerdict.VIOLATES_LIMIT, text, found)
        if estimates.violates(arm, column):
            text += f", {proven} {beyond_limit(objective)}, the limit."
            return self._reason(ClaimVerdict.VIOLATES_LIMIT, text, found)
        if (left := self._out_by_limit()) is not None:
            slack, by = amount(objective, objective.slack_in_unit), estimates.arms[left]
            text += f", certified not inside the limit of {limit} by the slack of {slack}"
            text += f", and {by} is better there{self._nobody()}"
            return self._reason(ClaimVerdict.NOT_CLEARLY_WITHIN, text, found, left)
        if estimates.meets(arm, column):
            text += f", {proven} within the limit of {limit}."
            return self._reason(ClaimVerdict.MEETS_LIMIT, text, found)
        seen = estimates.estimate(arm, column)
        if seen.low is not None and seen.high is not None:
            best = seen.high if objective.sign > 0 else seen.low
            so = NOT_SHOWN if objective.sign * ((objective.limit or 0.0) - best) > 0 else ""
            text += f" (ordinary 95 % interval {self._ends(seen.low, seen.high)}{so})"
        return self._reason(ClaimVerdict.OPEN, f"{text}; the limit is {limit}.", found)

    def _out_by_limit(self) -> int | None:
        """By whom the arm is out, or behind, on a limit; None if it is not."""
        estimates, left = self.estimates, self.estimates.eliminations.get(self.arm)
        if left is not None and left.objective == self.column:
            return left.rival
        is_behind = estimates.behind.get(self.arm) == self.column
        return estimates.thirds.get(self.arm, estimates.leader) if is_behind else None

    # --- against another arm

    def worse_than(self, rival: int) -> Reason:
        """Of an arm that another one beats."""
        objective, found = self.objective, self.estimates.lead(rival, self.arm, self.column)
        by, tie = value(objective, found.mean, unit=True), self.estimates.tie(self.column)
        text = f"on {self.name} it is worse than {self.estimates.arms[rival]} by {by}"
        means = objective.sign * (self.estimates.mean(rival, self.column) - self.mean)
        if not is_nothing(objective, means - found.mean):  # each over its own results
            text += f" over {many(found.results, 'common result')}"
        if found.low > tie and found.low != found.high:
            least = bound(objective, found.low, "down", beyond=tie)
            text += f", certified worse by at least {least}"
        elif found.low != found.high:  # a step of the proof takes less evidence than an interval
            basis = Basis.SHARE if objective.is_relative else Basis.ANSWER
            said = f" by more than {amount(objective, objective.tie_in_unit)}"
            text += f", {BASES[basis]} worse{said if objective.tie_in_unit > 0 else ''}"
        return self._reason(ClaimVerdict.WORSE, text + self._nobody(), found, rival)

    def compared(self, rival: int, so: str = ": they tie") -> Reason:
        """Of an arm that is not out here; `so` follows from their being close."""
        estimates, objective, arm, column = self.estimates, self.objective, self.arm, self.column
        if estimates.beats(rival, arm, column):
            return self.worse_than(rival)
        found, parts, verdict = estimates.lead(rival, arm, column), None, ClaimVerdict.OPEN
        text = f"on {self.name} it has no result in common with {estimates.arms[rival]}"
        if found.results:
            text = f"on {self.name} it is {self._apart(rival, found)}"
            verdict = ClaimVerdict.NOT_BETTER if estimates.not_worse(rival, arm, column) else verdict
            if estimates.close(rival, arm, column):
                reach = self.estimates.margin(column)
                other = Basis.SHARE if objective.is_relative else Basis.ANSWER
                basis = basis_of(-reach, reach, (found.low, found.high), other)
                text += f", {BASES[basis].rstrip(':')} to differ by no more than {self._margin}{so}"
                verdict = ClaimVerdict.TIED
            elif estimates.beats(arm, rival, column):
                least = f"at least {bound(objective, -found.high, 'down', beyond=estimates.tie(column))}"
                if objective.is_relative:  # which was proven, and not by the interval
                    least = f"more than {amount(objective, objective.tie_in_unit)}"
                verdict, text = ClaimVerdict.BETTER, f"{text}, certified better by {least}"
            else:
                text += self._interval(rival)
            if verdict == ClaimVerdict.OPEN and rival == estimates.leader:
                parts = plain(estimates.parts.get((arm, column), math.nan))
                text += "" if parts is None or self.is_finished else f": {evidence(parts)}"
        return self._reason(verdict, text + self._nobody(), found, rival, parts)

    @property
    def _margin(self) -> str:
        return amount(self.objective, self.objective.margin_in_unit)

    def _apart(self, rival: int, found: Difference) -> str:
        """How far the arm is behind or ahead of its rival in the mean."""
        name = self.estimates.arms[rival]
        if is_nothing(self.objective, found.mean):
            return f"as good as {name} in the mean"
        by = value(self.objective, abs(found.mean), unit=True)
        return f"{'worse' if found.mean > 0 else 'better'} than {name} by {by}"

    def _interval(self, rival: int) -> str:
        """The ordinary interval of how far the arm is behind, in the direction in which the mean was said."""
        found = self.estimates.estimate_lead(rival, self.arm, self.column)
        common = many(found.results, "common result")
        if found.low is None or found.high is None:
            return f", over {common}"
        low, high = (found.low, found.high) if found.mean >= 0 else (-found.high, -found.low)
        if is_nothing(self.objective, found.mean):
            low, high = -max(-found.low, found.high), max(-found.low, found.high)
        so = NOT_SHOWN if low > 0 else ""
        return f" (ordinary 95 % interval {self._ends(low, high)}{so}), over {common}"

    def _ends(self, low: float, high: float) -> str:
        return between(self.objective, low, high).replace(" – ", " to ")

    def _nobody(self) -> str:
        """How a comparison ends: with what it is for, where nobody meets the limit."""
        if self.column not in self.estimates.infeasible:
            return "."
        limit = amount(self.objective, self.objective.limit or 0.0)
        return f"; no {whoever(self.estimates.unmet(self.column))} meets the limit of {limit}."


# --- what the answer may give up


def given_up(estimates: Estimates, column: int) -> float | None:
    """The most by which somebody who counts there may be better than the answer; None: nothing is claimed.

    A share where margins are shares.
    """
    rows = [row for row in estimates.seen if row.objective == column and row.verdict not in ENDS[1:]]
    reach = float(estimates.policy.state.limits[column, REACH])  # what was proven, whatever the interval says
    if estimates.objectives[column].is_relative:
        parts = {ClaimVerdict.OPEN: math.inf, ClaimVerdict.BETTER: 0.0}
        return max([0.0, *(parts.get(row.verdict, reach) for row in rows)]) if rows else None
    worst = [-row.low if row.verdict == ClaimVerdict.OPEN else min(-row.low, reach) for row in rows]
    return max([0.0, *worst]) if rows else None


def claim_of(estimates: Estimates, position: int) -> Claim:
    """What the certificate says of an objective; before the end what is known so far."""
    column, stage = estimates.columns[position], estimates.stage(position)
    name, worst = estimates.objectives[column].name, given_up(estimates, column)
    why = ""
    if estimates.policy.contradiction:
        why = "what was measured refutes every arm"
    elif column in estimates.infeasible:
        return _closest(estimates, column)
    elif stage == ObjectiveStage.NOT_REACHED:
        why = "the study ended before it"
    elif estimates.is_target(column) and stage != ObjectiveStage.NOT_NEEDED:
        return _within(estimates, column)
    elif stage == ObjectiveStage.NOT_NEEDED or worst is None:
        why = "no other arm got that far"
    if why or worst is None:
        return Claim(name, None, f"Nothing is claimed about {name}: {why}.")
    if math.isfinite(worst):
        return Claim(name, worst, _no_better(estimates, column, worst))
    if estimates.state == StudyState.FINISHED:
        return Claim(name, None, f"Too little was measured to claim anything about {name}.")
    return Claim(name, None, f"Nothing is known about {name} yet.")


def _within(estimates: Estimates, column: int) -> Claim:
    """What the answer has where there is a limit."""
    objective, answer = estimates.objectives[column], estimates.answer
    limit = amount(objective, objective.limit or 0.0)
    if estimates.is_proven and column in estimates.policy.flags:
        slack = amount(objective, objective.slack_in_unit)
        text = f"No arm is inside the limit of {limit} on {objective.name} by the slack of {slack}; "
        text += f"{answer.arm} is at most {slack} short of the closest. That it meets the limit is not shown."
        return Claim(objective.name, None, text)
    has = f"{answer.arm} has {objective.name} of {'at most' if objective.sign < 0 else 'at least'} {limit}"
    if estimates.meets(estimates.leader, column):
        required = ", as required" if answer.certified else ""
        return Claim(objective.name, objective.limit, f"{has}{required}.")
    return Claim(objective.name, None, f"It is not shown that {has}.")


def _closest(estimates: Estimates, column: int) -> Claim:
    """What is known where nobody meets the limit."""
    objective = estimates.objectives[column]
    text = f"{capital(nobody_meets(estimates.unmet(column)))}: each has {beyond_limit(objective)}."
    worst = None if estimates.is_stopped else given_up(estimates, column)
    if worst is None or math.isinf(worst):
        return Claim(objective.name, None, text)
    return Claim(objective.name, worst, f"{text} {_no_better(estimates, column, worst)}")


def _no_better(estimates: Estimates, column: int, worst: float) -> str:
    """How far the answer is from the best at most, as a person writes a margin."""
    objective, name = estimates.objectives[column], estimates.answer.arm
    before = [estimates.objectives[each].name for each in estimates.columns]
    before = before[: before.index(objective.name)]
    tied = f" tied on {listed(before)}" if before else ""
    if worst == 0:
        return f"No arm{tied} is better than {name} on {objective.name}."
    margin = objective.margin_in_unit if objective.limit is None else objective.slack_in_unit
    said = amount(objective, margin)
    most = bound(objective, worst, "up", unit=True)
    if objective.is_relative:
        most = amount(objective, worst).removesuffix(" of the best")
    elif abs(worst - margin) <= 1e-9 * margin:
        most = said
    side, among = "below" if objective.sign > 0 else "above", f" of the arms{tied}" if tied else ""
    short = f"at most {most} {side} the best on {objective.name}{among}"
    what = "margin" if objective.limit is None else "slack"
    if worst <= margin * (1 + 1e-9):
        return f"{name} is {short} ({what} {said})."
    return f"{name} is shown to be {short}; the {what} is {said}."
