"""What is known of one arm on one objective, in a sentence with its numbers."""

import math
from dataclasses import dataclass

from lexbandits.picture.view import Difference, View
from lexbandits.policies.tol.proof import ENDS
from lexbandits.policies.tol.state import REACH
from lexbandits.printable import plain
from lexbandits.study.objective import Objective
from lexbandits.study.record.said import whoever
from lexbandits.study.words import amount, bound, evidence, is_nothing, listed, many, value

AT = "at the study's confidence"


@dataclass(frozen=True)
class Reason:
    """What is known of one arm on one objective, against `rival`.

    `difference` is how much worse the arm is, in the objective's unit; the truth lies in [low, high].
    Against a limit they are the arm's own mean and its bounds. verdict: "worse", "ties", "better", "not
    better" (by more than the margin), "beyond the limit", "not clearly within", "within the limit", "open",
    "no longer counts", "not measured"; of the answer itself "not worse" or "open". `results` are those that
    the difference rests on: common ones, or else the arm's own. `parts`: of an open one, how much there is of
    the evidence that settles it.
    """

    arm: str
    objective: str
    verdict: str
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


def reason_of(view: View, arm: int, position: int) -> Reason:
    """Of an arm on the objective at a position: against who eliminated it there, a limit, or the answer."""
    column = view.columns[position]
    left = view.eliminations.get(arm)
    if view.stops(arm) and view.position_left(arm) < position:
        return _past(view, arm, column)
    if view.counts[arm, column] == 0:
        return _not_measured(view, arm, column)
    if column in view.infeasible and (arm == view.leader or view.violates(arm, column)):
        return _beyond_like_all(view, arm, column)
    if view.is_target(column):
        return against_limit(view, arm, column)
    if left is not None and left.objective == column:
        return _worse(view, arm, left.rival, column)
    if arm == view.leader:
        return _of_leader(view, arm, column)
    if arm in view.thirds and view.behind[arm] == column:
        return _worse(view, arm, view.thirds[arm], column)
    return compared(view, arm, view.leader, column)


def given_up(view: View, column: int) -> float | None:
    """The most by which somebody who counts there may be better than the answer; None: nothing is claimed.

    A share where margins are shares.
    """
    rows = [row for row in view.seen if row.objective == column and row.verdict not in ENDS[1:]]
    reach = float(view.policy.state.limits[column, REACH])  # what was proven, whatever the interval says
    if view.objectives[column].is_relative:
        parts = {"open": math.inf, "beats": 0.0}
        return max([0.0, *(parts.get(row.verdict, reach) for row in rows)]) if rows else None
    worst = [-row.low if row.verdict == "open" else min(-row.low, reach) for row in rows]
    return max([0.0, *worst]) if rows else None


def _made(
    view: View,
    arm: int,
    column: int,
    verdict: str,
    sentence: str,
    *,
    rival: int | None = None,
    found: Difference | None = None,
    parts: float | None = None,
) -> Reason:
    objective = view.objectives[column]
    return Reason(
        arm=view.arms[arm],
        objective=objective.name,
        verdict=verdict,
        rival=None if rival is None else view.arms[rival],
        difference=None if found is None else plain(found.mean),
        low=None if found is None else plain(found.low),
        high=None if found is None else plain(found.high),
        margin=objective.margin_in_unit,
        tie=objective.tie_in_unit,
        results=int(view.counts[arm, column]) if found is None else found.results,
        sentence=sentence,
        parts=parts,
    )


# --- on its own


def _past(view: View, arm: int, column: int) -> Reason:
    objective, mean = view.objectives[column], view.mean(arm, column)
    shown = "not measured" if math.isnan(mean) else value(objective, mean, unit=True)
    return _made(view, arm, column, "no longer counts", f"{objective.name} {shown}, which no longer counts.")


def _not_measured(view: View, arm: int, column: int) -> Reason:
    name, told = view.objectives[column].name, view.values(arm, column).size
    text = f"{name} was never measured."
    if told:
        does = "does" if told == 1 else "do"
        yet = (
            ""
            if view.state == "finished"
            else f" yet: {'its' if told == 1 else 'their'} pass is not complete"
        )
        text = f"{name} has {many(told, 'result')} that {does} not count{yet}."
    return _made(view, arm, column, "not measured", text)


def against_limit(view: View, arm: int, column: int) -> Reason:
    """An arm against the limit of an objective."""
    objective, mean = view.objectives[column], view.mean(arm, column)
    assert objective.limit is not None
    low, high = view.target_bounds(arm, column)
    found = Difference(int(view.counts[arm, column]), mean, low, high)
    shown, limit = value(objective, mean, unit=True), amount(objective, objective.limit)
    has = f"on {objective.name} it has {shown}"
    above = objective.at_most is not None
    if view.violates(arm, column):
        text = f"{has}, {bound_beyond(objective, low, high)} {AT}, and the limit is {limit}."
        return _made(view, arm, column, "beyond the limit", text, found=found)
    if (left := _out_by_limit(view, arm, column)) is not None:
        slack, by = amount(objective, objective.slack_in_unit), view.arms[left]
        text = f"{has}: not inside the limit of {limit} by the slack of {slack}, and {by} is better there"
        text += _nobody(view, column)
        return _made(view, arm, column, "not clearly within", text, rival=left, found=found)
    end = high if above else low
    if not math.isfinite(end):
        text = f"{has} over {many(found.results, 'result')}, too few for a bound; the limit is {limit}."
        return _made(view, arm, column, "open", text, found=found)
    how, word = ("up", "at most") if above else ("down", "at least")
    has = f"{has}, {word} {bound(objective, end, how)} {AT}"
    if view.meets(arm, column):
        text = f"{has}: within the limit of {limit}."
        return _made(view, arm, column, "within the limit", text, found=found)
    return _made(view, arm, column, "open", f"{has}; the limit is {limit}.", found=found)


def _out_by_limit(view: View, arm: int, column: int) -> int | None:
    """By whom an arm is out, or behind, on a limit; None if it is not."""
    left = view.eliminations.get(arm)
    if left is not None and left.objective == column:
        return left.rival
    return view.thirds.get(arm, view.leader) if view.behind.get(arm) == column else None


def _beyond_like_all(view: View, arm: int, column: int) -> Reason:
    """An arm where nobody meets the limit."""
    objective = view.objectives[column]
    found = Difference(
        int(view.counts[arm, column]), view.mean(arm, column), *view.target_bounds(arm, column)
    )
    text = f"on {objective.name} it has {value(objective, found.mean, unit=True)}, "
    text += f"{bound_beyond(objective, *view.target_bounds(arm, column))} {AT}{_nobody(view, column)}"
    return _made(view, arm, column, "beyond the limit", text, found=found)


def bound_beyond(objective: Objective, low: float, high: float) -> str:
    """How far at least a mean in [low, high] is beyond the limit; it is, if by little."""
    assert objective.limit is not None
    end, least, more, rounded = (low, "at least", "more than", "down")
    if objective.at_most is None:
        end, least, more, rounded = (high, "at most", "less than", "up")
    if end == objective.limit:
        return f"{more} {amount(objective, objective.limit)}"
    return f"{least} {bound(objective, end, rounded, beyond=objective.limit)}"


def _limit(view: View, column: int) -> str:
    objective = view.objectives[column]
    return amount(objective, objective.limit or 0.0)


def _of_leader(view: View, arm: int, column: int) -> Reason:
    objective = view.objectives[column]
    has = f"on {objective.name} it has {value(objective, view.mean(arm, column), unit=True)}"
    worst = given_up(view, column)
    if worst is None:
        return _made(view, arm, column, "open", f"{has}; nothing is claimed.")
    if math.isinf(worst):
        return _made(view, arm, column, "open", f"{has}; how much better others may be is open.")
    if worst == 0:
        text = f"{has}; no arm{tied_before(view, column)} is better there {AT}."
    else:
        text = f"{has}, {short_of_best(view, column, worst)} {AT}."
    return _made(view, arm, column, "not worse", text)


def short_of_best(view: View, column: int, worst: float, *, on: bool = False) -> str:
    """How far an answer is from the best at most, as a person writes a margin; `on`: with the objective."""
    objective = view.objectives[column]
    margin, side = objective.margin_in_unit, "below" if objective.sign > 0 else "above"
    if objective.is_relative:
        most = amount(objective, worst).removesuffix(" of the best")
    elif abs(worst - margin) <= 1e-9 * margin:
        most = amount(objective, margin)
    else:
        most = bound(objective, worst, "up", unit=True)
    where = f" on {objective.name}" if on else ""
    among = f" of the arms{tied}" if (tied := tied_before(view, column)) else ""
    return f"at most {most} {side} the best{where}{among}"


def tied_before(view: View, column: int) -> str:
    """Who counts on an objective: the arms that tie on those before it."""
    before = [view.objectives[each].name for each in view.columns[: view.columns.index(column)]]
    return f" tied on {listed(before)}" if before else ""


# --- against another arm


def _worse(view: View, arm: int, rival: int, column: int) -> Reason:
    """The arm is beaten."""
    objective, found = view.objectives[column], view.lead(rival, arm, column)
    tie, said = view.tie(column), amount(objective, objective.tie_in_unit)
    text = f"on {objective.name} it is worse than {view.arms[rival]} by "
    text += value(objective, found.mean, unit=True)
    some = objective.tie_in_unit > 0
    matters = f"arms within {said} tie" if some else "every difference matters"
    if found.low == found.high:  # exact
        text += f", and {matters}"
    elif found.low > tie:
        text += f", by at least {bound(objective, found.low, 'down', beyond=tie)} {AT}, and {matters}"
    else:  # a step of the proof takes less evidence than an interval
        more = f"by more than {said}" if some else "worse"
        text += f", {_somewhere(view, column, found)}; the proof has it {more}"
    return _made(view, arm, column, "worse", text + _nobody(view, column), rival=rival, found=found)


def compared(view: View, arm: int, rival: int, column: int, *, so: str = ": they tie") -> Reason:
    """An arm that is not out here, against another; `so` follows from their being close."""
    objective, name = view.objectives[column], view.arms[rival]
    found, parts = view.lead(rival, arm, column), None
    if view.beats(rival, arm, column):
        return _worse(view, arm, rival, column)
    verdict, text = "open", f"on {objective.name} it has no result in common with {name}"
    if found.results:
        text = f"on {objective.name} it is {_apart(view, rival, column, found)}"
        verdict = "not better" if view.not_worse(rival, arm, column) else "open"
        if view.close(rival, arm, column):
            margin = amount(objective, objective.margin_in_unit)
            text += f", and they certainly differ by no more than {margin}{so}"
            verdict = "ties"
        elif view.beats(arm, rival, column):
            least = f"at least {bound(objective, -found.high, 'down', beyond=view.tie(column))}"
            if objective.is_relative:  # which was proven, and not by the interval
                least = f"more than {amount(objective, objective.tie_in_unit)}"
            verdict, text = "better", f"{text}, by {least} {AT}"
        else:
            text = f"{text}, {_somewhere(view, column, found)}"
        if verdict == "open" and rival == view.leader:
            rows = (row.parts for row in view.seen if (row.rival, row.objective) == (arm, column))
            parts = plain(next(rows, math.nan))
            text += "" if parts is None else f": {evidence(parts)}"
    tail = _nobody(view, column)
    return _made(view, arm, column, verdict, text + tail, rival=rival, found=found, parts=parts)


def _apart(view: View, rival: int, column: int, found: Difference) -> str:
    """How far an arm is behind or ahead of its rival in the mean."""
    if is_nothing(view.objectives[column], found.mean):
        return f"as good as {view.arms[rival]} in the mean"
    by = value(view.objectives[column], abs(found.mean), unit=True)
    return f"{'worse' if found.mean > 0 else 'better'} than {view.arms[rival]} by {by}"


def _somewhere(view: View, column: int, found: Difference) -> str:
    """Where the truth lies, in the direction in which the mean was said."""
    objective, common = view.objectives[column], many(found.results, "common result")
    if math.isinf(found.low) or math.isinf(found.high):
        return f"over {common}, too few for an interval"
    low, high = (found.low, found.high) if found.mean >= 0 else (-found.high, -found.low)
    if is_nothing(objective, found.mean):
        worse, better = bound(objective, found.high, "up"), bound(objective, -found.low, "up")
        where = f"somewhere between {worse} worse and {better} better"
    else:
        least, most = bound(objective, low, "down"), bound(objective, high, "up")
        where = f"somewhere between {least} and {most}"
    return f"{where} {AT}, over {common}"


def _nobody(view: View, column: int) -> str:
    """How a comparison ends: with what it is for, where nobody meets the limit."""
    if column not in view.infeasible:
        return "."
    return f"; no {whoever(view.unmet(column))} meets the limit of {_limit(view, column)}."
