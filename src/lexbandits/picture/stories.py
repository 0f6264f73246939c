"""Each arm in a sentence, and the study in one: who, is it certain, why not the others."""

import math

from lexbandits.picture import exits
from lexbandits.picture.exits import Way, way_of
from lexbandits.picture.reasons import AT, Reason, against_limit, bound_beyond, compared, reason_of
from lexbandits.picture.shown import Story
from lexbandits.picture.view import NOT_MEASURED, View
from lexbandits.study.record.said import flags_said, nobody_meets, on_these
from lexbandits.study.words import amount, bound, capital, count, listed, many, percent, value

NO_CHANCE = "This is certain: no chance is involved."
WHY = {
    exits.LEFT: "Out",
    exits.VIOLATES_LIMIT: "Out",
    exits.NOT_CLEARLY_WITHIN: "Out",
    exits.BEHIND: "Behind",
    exits.BY_THE_MEANS: "By the means",
}


# --- the study


def headline(view: View) -> str:
    """With a baseline what to do; who, is it certain, what is being settled."""
    return f"{_decided(view)}{_who(view)}"


def _decided(view: View) -> str:
    current, answer = view.fold.ledger.spec.baseline, view.answer
    match answer.decision:
        case "keep":
            return f"Keep {current}. "
        case "switch":
            return f"Switch from {current} to {answer.arm}. "
        case "keep for now":
            return f"Keep {current} for now: nothing is shown to be better. "
    return ""


def _who(view: View) -> str:
    answer = view.answer
    if answer.certified and answer.about == "items":
        return _on_a_list(view)
    if answer.certified:
        text = f"{answer.arm} is the answer, certain with probability at least {percent(1 - answer.delta)}"
        return f"{text}, but {'; '.join(said)}." if (said := flags_said(answer)) else f"{text}."
    if view.state == "finished":
        return f"{answer.arm} is the best guess, without a certificate: {why_not_certain(view)}."
    left, arms = len(answer.candidates), many(len(view.arms), "arm")
    if not view.results:
        first = view.objectives[view.columns[0]].name
        return f"{_halt(view)}No results yet: {first} is settled first, among {many(left, 'arm')}."
    called = "answer so far" if view.state == "measuring" else "best guess"
    text = f"{_halt(view)}{answer.arm} is the {called}, not certain"
    if view.settling is not None:
        being = "being settled" if view.state == "measuring" else "not settled"
        text += f": {view.objectives[view.settling].name} is {being} among {left} of {arms}"
    text += "."
    for column in view.infeasible:
        text += f" {capital(nobody_meets(view.unmet(column)))}: how close they come counts instead."
    return text


def _on_a_list(view: View) -> str:
    answer = view.answer
    said = "".join(f", but {text}" for text in ["; ".join(flags_said(answer))] if text)
    if answer.certain:
        return f"{answer.arm} is the best choice {on_these(answer)}{said}. {NO_CHANCE}"
    items = "the one item" if answer.items == 1 else f"all {count(answer.items or 0)} items"
    sure = f"with probability at least {percent(1 - answer.delta)} {over_what(view)}"
    promise = "it is, objective by objective, at most the margin worse than the best of the arms still tied"
    return f"{answer.arm} is certified {on_these(answer)}{said}: {sure}, on {items} {promise}."


def over_what(view: View) -> str:
    """What is left to chance on a list."""
    assumed = [view.objectives[column].name for column in view.columns if view.is_modelled(column)]
    order = "over the order in which items were drawn"
    return f"{order}, and over normal values of {listed(assumed)}" if assumed else order


def _halt(view: View) -> str:
    """Why nothing is measured now."""
    ledger = view.fold.ledger
    match view.state:
        case "paused":
            return f"Paused{': ' if ledger.paused else ''}{ledger.paused or ''}. "
        case "budget spent":
            return f"The budget of {many(ledger.budget or 0, 'trial')} is spent. "
        case "items spent":
            if ledger.spec.is_list:
                return f"No certificate: {'; '.join(flags_said(view.answer))}. "
            return f"All {many(ledger.n_items or 0, 'item')} are used. "
    return ""


def why_not_certain(view: View) -> str:
    """Why an answer on record has no certificate."""
    why = [] if view.policy.finished else [view.answer.reason]
    return "; ".join([*why, *flags_said(view.answer)]) or view.answer.reason


# --- one arm


def standing_of(view: View, arm: int, way: Way) -> str:
    """Where an arm stands, in few words."""
    match way.code:
        case exits.ANSWER if not view.results:
            return "candidate"
        case exits.ANSWER if view.answer.certified:
            return "the answer"
        case exits.ANSWER:
            return "answer so far" if view.state == "measuring" else "best guess"
        case exits.LEFT | exits.VIOLATES_LIMIT | exits.NOT_CLEARLY_WITHIN | exits.BEHIND:
            left = view.eliminations.get(arm)
            return "behind the answer" if left is None else f"out after {count(left.round)}"
        case exits.OPEN:
            return "not ruled out" if view.state == "finished" else "candidate"
        case exits.TIES:
            return "ties with the answer"
        case exits.FAILED:
            return NOT_MEASURED
        case exits.BY_THE_MEANS:
            return "behind by the means"
        case code:
            return code.lower().replace("_", " ")


def why(view: View, arm: int, way: Way) -> str:
    """What decides on an arm, on the objective that does; empty if none does."""
    if way.code not in WHY:
        return ""
    word = WHY[way.code] if way.code not in exits.BY_LIMIT or arm in view.eliminations else "Behind"
    reason, objective = deciding(view, arm, way), view.objectives[view.columns[way.position]]
    above, slack = objective.at_most is not None, view.tie(view.columns[way.position])
    if reason.verdict == "beyond the limit":
        ends = [math.nan if end is None else end for end in (reason.low, reason.high)]
        side = "above" if above else "below"
        return f"{word}: certainly {side} the limit, {bound_beyond(objective, *ends)}"
    seen = value(objective, reason.difference or 0.0)
    if reason.verdict == "not clearly within":
        return f"{word}: {seen}, not shown to be inside the limit by the slack"
    if reason.rival is None:
        return f"{word}: {seen}, not known to be within the limit"
    text = f"{word}: worse than {reason.rival} by {seen}"
    if reason.verdict != "worse" or reason.low is None or reason.low == reason.high:
        return text
    if reason.low <= slack:  # a step of the proof takes less evidence than an interval
        least = objective.tie_in_unit
        return f"{text}, certainly by more than {amount(objective, least)}" if least else f"{text}, certainly"
    return f"{text}, at least {bound(objective, reason.low, 'down', beyond=slack)}"


def story_of(view: View, arm: int) -> Story:
    """Where an arm stands, and why."""
    way, left = way_of(view, arm), view.eliminations.get(arm)
    reasons = tuple(reason_of(view, arm, position) for position in range(len(view.columns)))
    after = left.round if left is not None else None
    fate, told = way.code.lower().replace("_", " "), _sentence(view, arm, way, reasons)
    return Story(view.arms[arm], view.standing(arm), fate, after, reasons, told)


def deciding(view: View, arm: int, way: Way) -> Reason:
    """The reason on the objective that decides, against who decides it."""
    column = view.columns[way.position]
    if way.code not in (exits.BY_THE_MEANS, exits.OPEN):
        return reason_of(view, arm, way.position)
    return (
        against_limit(view, arm, column) if way.rival < 0 else compared(view, arm, way.rival, column, so="")
    )


def _sentence(view: View, arm: int, way: Way, reasons: tuple[Reason, ...]) -> str:
    name = view.arms[arm]
    if way.code == exits.ANSWER:
        return _of_answer(view, arm)
    if way.code in exits.GONE:
        text = NOT_MEASURED if way.code == exits.FAILED else "was withdrawn"
        why = view.fold.ledger.withdrawn[name]
        return f"{name} {text}: {why} ({many(view.measured[arm], 'result')})."
    if arm in view.eliminations:
        after = many(view.eliminations[arm].round, "result")
        return f"{name} left after {after}: {reasons[way.position].sentence}{_later(view, arm, way)}"
    if view.state != "finished":
        now = 0 if view.settling is None else view.columns.index(view.settling)
        may = "may still win" if view.state in ("measuring", "paused") else "is not ruled out"
        if reasons[now].verdict == "worse":  # proven, but for the answer alone: other rules could need it
            may = "is behind, not out yet"
        return f"{name} {may}: {reasons[now].sentence}"
    return f"{name} {_at_the_end(view, arm, way)}"


def _of_answer(view: View, arm: int) -> str:
    name, counted = view.arms[arm], view.counted(arm)
    sure = (
        "is the answer so far, not certain" if view.state == "measuring" else "is the best guess, not certain"
    )
    if view.state == "finished":
        sure = "is the answer" if view.answer.certified else "is the best guess, without a certificate"
    if not counted:
        waits = view.measured[arm]
        tail = f" ({many(waits, 'result')} told)" if waits else ""
        return f"{name} {sure}: nothing of it counts yet{tail}."
    parts = []
    for column in view.columns:
        objective, mean, of = view.objectives[column], view.mean(arm, column), view.counts[arm, column]
        shown = value(objective, mean, unit=True) if of else "not measured"
        fewer = f" (over {count(of)})" if 0 < of < counted else ""
        parts.append(f"{objective.name} {shown}{fewer}")
    return f"{name} {sure}: {', '.join(parts)}, over {many(counted, 'result')}."


def _at_the_end(view: View, arm: int, way: Way) -> str:
    """Of a candidate that is not the answer of a study that has ended."""
    answer = view.answer.arm
    if way.code in (exits.BEHIND, *exits.BY_LIMIT):
        return f"is behind the answer: {deciding(view, arm, way).sentence}{_later(view, arm, way)}"
    if view.policy.contradiction:
        return f"is not told apart from {answer}: what was measured refutes every arm."
    if way.code == exits.OPEN:
        if view.dropped is not None and arm in view.dropped:
            by_means = deciding(view, arm, Way(exits.BY_THE_MEANS, *view.dropped[arm])).sentence
            return f"is not ruled out, but behind by the means: {by_means}"
        return f"is not ruled out{_tie_broken(view, arm)}."
    if way.code == exits.TIES:
        return f"and {answer} are within the margin of each other on every objective{_tie_broken(view, arm)}."
    text = f"is not told apart from {answer}{_tie_broken(view, arm)}."
    if way.code == exits.BY_THE_MEANS:
        text = f"is behind the answer by the means: {deciding(view, arm, way).sentence}"
    of = sum(map(view.is_target, view.columns))
    limits = f"keeps to the limit{'s' if of > 1 else ''} and " if of else ""
    other = "no other" if limits else "no"
    sure = f"{answer} {limits}is worse than {view.arms[arm]} on {other} objective"
    return f"{text} {capital(AT)} {sure} by more than the margin."


def _tie_broken(view: View, arm: int) -> str:
    """Why the answer and not an arm that nothing certain tells from it."""
    if view.dropped is None:
        return ""
    position, rival = view.dropped.get(arm, (len(view.columns) - 1, view.leader))
    column, answer = view.columns[position], view.answer.arm
    objective = view.objectives[column]
    if rival < 0:
        mean, limit = value(objective, view.mean(arm, column)), amount(objective, objective.limit or 0.0)
        return f"; in the mean it has {objective.name} of {mean}, and the limit is {limit}, which decides"
    lead = view.lead(rival, arm, column)
    if lead.results and lead.mean > 0:
        by = bound(objective, lead.mean, "down", beyond=0.0, unit=True)
        return f"; in the mean {view.arms[rival]} is better on {objective.name} by {by}, which decides"
    if lead.results and lead.mean == 0 and view.leader < arm:
        return f"; their means on {objective.name} are equal, and {answer} is listed first"
    return f"; the means on {objective.name} of all arms left decide"


def _later(view: View, arm: int, way: Way) -> str:
    """What the arm is better at, if that comes later in the order."""
    better = []
    for column in view.columns[way.position + 1 :]:
        lead = view.lead(arm, view.leader, column)
        objective = view.objectives[column]
        if lead.results >= 5 and lead.low > view.tie(column):
            better.append(f"{objective.name} ({value(objective, view.mean(arm, column), unit=True)})")
    if not better:
        return ""
    come = "comes" if len(better) == 1 else "come"
    return f" It is better than {view.answer.arm} on {listed(better)}, which {come} later in the order."
