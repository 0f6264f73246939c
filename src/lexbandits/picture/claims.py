"""What the answer may give up on each objective, and what cannot be claimed."""

import math
from dataclasses import dataclass

from lexbandits.picture.reasons import AT, bound_beyond, given_up, short_of_best, tied_before
from lexbandits.picture.view import View
from lexbandits.study.record.said import nobody_meets
from lexbandits.study.words import amount, bound, capital


@dataclass(frozen=True)
class Claim:
    """The most that the answer may give up on one objective, in its unit or as a share; None: no claim."""

    objective: str
    worst: float | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


def claims_of(view: View) -> tuple[Claim, ...]:
    """Per objective, by priority, what the certificate says; before the end what is known so far."""
    return tuple(_claim(view, position) for position in range(len(view.columns)))


def _claim(view: View, position: int) -> Claim:
    column = view.columns[position]
    objective = view.objectives[column]

    def none(why: str) -> Claim:
        return Claim(objective.name, None, f"Nothing is claimed about {objective.name}: {why}.")

    if view.policy.contradiction:
        return none("what was measured refutes every arm")
    if column in view.infeasible:
        return _closest(view, column)
    if view.stage(position) == "not needed":
        return none("no other arm got that far")
    if view.stage(position) == "not reached":
        return none("the study ended before it")
    if view.is_target(column):
        return _limit(view, column)
    worst = given_up(view, column)
    if worst is None:
        return none("no other arm got that far")
    if math.isinf(worst):
        return _unknown(view, column)
    return Claim(objective.name, worst, f"{_no_better(view, column, worst)}.")


def _unknown(view: View, column: int) -> Claim:
    name = view.objectives[column].name
    if view.state == "finished":
        return Claim(name, None, f"Too little was measured to claim anything about {name}.")
    return Claim(name, None, f"Nothing is known about {name} yet.")


def _limit(view: View, column: int) -> Claim:
    """What the answer has where there is a limit."""
    objective = view.objectives[column]
    limit = amount(objective, objective.limit or 0.0)
    if view.is_proven and column in view.policy.flags:
        slack = amount(objective, objective.slack_in_unit)
        text = f"No arm is inside the limit of {limit} on {objective.name} by the slack of {slack}; "
        text += f"{view.answer.arm} is at most {slack} short of the closest. "
        text += "That it meets the limit is not shown."
        return Claim(objective.name, None, text)
    low, high = view.target_bounds(view.leader, column)
    if view.answer.certified and view.is_proven:
        word = "at most" if objective.at_most is not None else "at least"
        text = f"{view.answer.arm} has {objective.name} of {word} {limit}, as required."
        return Claim(objective.name, objective.limit, text)
    end = high if objective.at_most is not None else low
    if not math.isfinite(end):
        return _unknown(view, column)
    word, how = ("at most", "up") if objective.at_most is not None else ("at least", "down")
    shown = bound(objective, end, how, unit=True)
    text = f"{view.answer.arm} has {objective.name} of {word} {shown}; the limit is {limit}."
    return Claim(objective.name, end, text)


def _closest(view: View, column: int) -> Claim:
    """What is known where nobody meets the limit."""
    objective, tested = view.objectives[column], view.infeasible[column]
    bounds = [view.target_bounds(arm, column) for arm in tested if view.violates(arm, column)]
    each = bound_beyond(objective, min(low for low, _ in bounds), max(high for _, high in bounds))
    text = f"{capital(nobody_meets(view.unmet(column)))}: each has {each} {AT}."
    worst = None if view.is_stopped else given_up(view, column)
    if worst is None or math.isinf(worst):
        return Claim(objective.name, None, text)
    return Claim(objective.name, worst, f"{text} {_no_better(view, column, worst)}.")


def _no_better(view: View, column: int, worst: float) -> str:
    objective, name = view.objectives[column], view.answer.arm
    if worst == 0:
        return f"No arm{tied_before(view, column)} is better than {name} on {objective.name}"
    margin = objective.margin_in_unit if objective.limit is None else objective.slack_in_unit
    said = amount(objective, margin)
    if worst <= margin * (1 + 1e-9):
        return f"{name} is {short_of_best(view, column, worst, on=True)} (margin {said})"
    return f"{name} is shown to be {short_of_best(view, column, worst, on=True)}; the margin is {said}"
