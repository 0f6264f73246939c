"""The study in one sentence, and each arm in one: the answer, its certificate, why not the others."""

from lexbandits.outcomes import ArmOutcome, BaselineDecision, ClaimVerdict, DecidedBy, Decision, Scope
from lexbandits.study.core.messages import flag_messages, nobody_meets, on_these
from lexbandits.study.number_format import (
    amount,
    bound,
    capital,
    count,
    listed,
    many,
    percent,
    value,
)
from lexbandits.study.states import StudyState
from lexbandits.views.estimates import Estimates, by_means
from lexbandits.views.reasons import AT, Claim, Reason, against, reason_of
from lexbandits.views.view_parts import LABELS, ArmExplanation

NO_CHANCE = "This is exact: no sampling error is involved."


# --- the study


def headline(estimates: Estimates) -> str:
    """Return what to do with a baseline, the answer, whether it is certified, and what is being settled."""
    return f"{_decided(estimates)}{_who(estimates)}"


def _decided(estimates: Estimates) -> str:
    current, answer = estimates.replay.projection.spec.baseline, estimates.answer
    match answer.decision:
        case BaselineDecision.KEEP:
            return f"Keep {current}. "
        case BaselineDecision.SWITCH:
            return f"Switch from {current} to {answer.arm}. "
        case BaselineDecision.KEEP_FOR_NOW:
            return f"Keep {current} for now: nothing is certified better by more than the margin. "
    return ""


def _who(estimates: Estimates) -> str:
    answer = estimates.answer
    if answer.certified and answer.scope == Scope.ITEMS:
        return _on_a_list(estimates)
    if answer.certified:
        text = f"{answer.arm} wins: certified at {percent(1 - answer.delta)} confidence"
        return f"{text}, but {'; '.join(said)}." if (said := flag_messages(answer)) else f"{text}."
    if estimates.state == StudyState.FINISHED:
        return f"No certificate: {answer.arm} is the best guess, {why_not_certified(estimates)}."
    left, arms = len(answer.candidates), many(len(estimates.arms), "arm")
    if not estimates.results:
        first = estimates.objectives[estimates.columns[0]].name
        return f"{_halt(estimates)}No results yet: {first} is settled first, among {many(left, 'arm')}."
    text = f"{_halt(estimates)}Not decided yet: {answer.arm} is ahead"
    if estimates.settling is not None:
        being = "being settled" if estimates.state == StudyState.MEASURING else "not settled"
        text += f", {estimates.objectives[estimates.settling].name} is {being} among {left} of {arms}"
    text += "."
    for column in estimates.infeasible:
        text += f" {capital(nobody_meets(estimates.unmet(column)))}: how close they come counts instead."
    return text


def _on_a_list(estimates: Estimates) -> str:
    answer = estimates.answer
    said = "".join(f", but {text}" for text in ["; ".join(flag_messages(answer))] if text)
    if answer.exact:
        return f"{answer.arm} wins {on_these(answer)}{said}. {NO_CHANCE}"
    return f"{answer.arm} wins {on_these(answer)}: certified at {percent(1 - answer.delta)} confidence{said}."


def claimed(estimates: Estimates, claims: tuple[Claim, ...]) -> tuple[str, list[str]]:
    """A title and paragraphs: what the answer may give up, or before the end what is known so far."""
    sure = " ".join(claim.sentence for claim in claims if claim.worst is not None)
    rest = " ".join(claim.sentence for claim in claims if claim.worst is None)
    answer, title = estimates.answer, f"Certified at {percent(1 - estimates.answer.delta)} confidence"
    if not answer.certified:
        unmet = {estimates.objectives[column].name for column in estimates.infeasible}
        shown = [c.sentence for c in claims if c.worst is not None or c.objective in unmet]
        return "No certificate", [f"What is shown, {AT}: {' '.join(shown)}"] if shown else []
    if answer.scope != Scope.ITEMS:
        return title, [text for text in (sure, rest, "This holds whenever anyone looked.") if text]
    first, last = f"{capital(on_these(answer))}: {sure}", f"The probability is taken {_over_what(estimates)}."
    if answer.exact:
        title, last = "Exact certificate", NO_CHANCE
    per = "one" if estimates.spec.repeats == 1 else f"{estimates.spec.repeats}"
    values = (
        f"This is about the values this study got or would have got, {per} per arm and item: what one full "
        "run would have said, not the average of many."
    )
    return title, [text for text in (f"{first} {last}", rest, values) if text]


def _over_what(estimates: Estimates) -> str:
    """What is left to chance on a list."""
    assumed = [estimates.objectives[i].name for i in estimates.columns if estimates.is_modelled(i)]
    order = "over the order in which items were drawn"
    return f"{order}, and over normal values of {listed(assumed)}" if assumed else order


def _halt(estimates: Estimates) -> str:
    """Why nothing is measured now."""
    projection = estimates.replay.projection
    match estimates.state:
        case StudyState.PAUSED:
            return f"Paused{': ' if projection.paused else ''}{projection.paused or ''}. "
        case StudyState.BUDGET_SPENT:
            return f"The budget of {many(projection.budget or 0, 'trial')} is spent. "
        case StudyState.ITEMS_SPENT:
            if projection.spec.is_list:
                return f"No certificate: {'; '.join(flag_messages(estimates.answer))}. "
            return f"All {many(projection.n_items or 0, 'item')} are used. "
    return ""


def why_not_certified(estimates: Estimates) -> str:
    """Why an answer on record has no certificate."""
    why = [] if estimates.policy.finished else [estimates.answer.reason]
    return "; ".join([*why, *flag_messages(estimates.answer)]) or estimates.answer.reason


# --- one arm


def why(estimates: Estimates, arm: int, decision: Decision) -> str:
    """What decides on an arm, on the objective that does; empty if none does."""
    if decision.by is None:
        return ""
    is_seen = decision.by == DecidedBy.MEANS
    word = "On average, not certified" if is_seen else capital(LABELS[decision.outcome])
    return f"{word}: {deciding(estimates, arm, decision).core}"


def explanation_of(estimates: Estimates, arm: int, decision: Decision) -> ArmExplanation:
    """Return what became of an arm, and why."""
    reasons = tuple(reason_of(estimates, arm, position) for position in range(len(estimates.columns)))
    sentence = _sentence(estimates, arm, decision, reasons)
    return ArmExplanation(estimates.arms[arm], arm == estimates.leader, decision, reasons, sentence)


def deciding(estimates: Estimates, arm: int, decision: Decision) -> Reason:
    """The reason on the objective that decides, against who decides it."""
    column = estimates.spec.column(decision.objective or "")
    if decision.by != DecidedBy.MEANS:
        return reason_of(estimates, arm, estimates.columns.index(column))
    rival = None if decision.rival is None else estimates.index(decision.rival)
    return against(estimates, arm, column, rival)


def _sentence(estimates: Estimates, arm: int, decision: Decision, reasons: tuple[Reason, ...]) -> str:
    name = estimates.arms[arm]
    if decision.is_gone:
        text = LABELS[decision.outcome] if decision.outcome == ArmOutcome.FAILED else "was withdrawn"
        why = estimates.replay.projection.withdrawn[name]
        return f"{name} {text}: {why} ({many(estimates.measured[arm], 'result')})."
    if arm == estimates.leader:
        return _of_answer(estimates, arm)
    if decision.after is not None:
        because = reasons[estimates.position_left(arm)].sentence
        how = f"{LABELS[decision.outcome]} after {many(decision.after, 'trial')}"
        return f"{name} was {how}: {because}{_later(estimates, arm)}"
    if estimates.state == StudyState.FINISHED:
        return f"{name} {_at_the_end(estimates, arm, decision)}"
    now = 0 if estimates.settling is None else estimates.columns.index(estimates.settling)
    is_open = estimates.state in (StudyState.MEASURING, StudyState.PAUSED)
    may = "may still win" if is_open else "is undecided"
    if reasons[now].verdict == ClaimVerdict.WORSE:  # proven, but for the answer alone
        may = "is worse, and not excluded yet"
    return f"{name} {may}: {reasons[now].sentence}"


def _of_answer(estimates: Estimates, arm: int) -> str:
    name, counted, waits = estimates.arms[arm], estimates.counted(arm), estimates.measured[arm]
    sure = "is ahead, not certified"
    if estimates.state == StudyState.FINISHED:
        sure = "wins" if estimates.answer.certified else "is the best guess, not certified"
    if not counted:
        tail = f" ({many(waits, 'result')} told)" if waits else ""
        return f"{name} {sure}: nothing of it counts yet{tail}."
    parts = []
    for column in estimates.columns:
        objective, of = estimates.objectives[column], estimates.counts[arm, column]
        shown = value(objective, estimates.mean(arm, column), unit=True) if of else "not measured"
        fewer = f" (over {count(of)})" if 0 < of < counted else ""
        parts.append(f"{objective.name} {shown}{fewer}")
    return f"{name} {sure}: {', '.join(parts)}, over {many(counted, 'result')}."


def _at_the_end(estimates: Estimates, arm: int, decision: Decision) -> str:
    """Of a candidate that is not the answer of a study that has ended."""
    answer = estimates.answer.arm
    if decision.by == DecidedBy.PROOF:
        because = deciding(estimates, arm, decision).sentence
        return f"is {LABELS[decision.outcome]}: {because}{_later(estimates, arm)}"
    if estimates.policy.contradiction:
        return "is undecided: what was measured refutes every arm."
    if not estimates.is_proven:  # it may be the answer
        if estimates.dropped is not None and arm in estimates.dropped:
            behind = deciding(estimates, arm, by_means(estimates, arm)).sentence
            return f"is undecided, and worse on average: {behind}"
        return f"is undecided{_tie_broken(estimates, arm)}."
    if decision.outcome == ArmOutcome.TIED:
        text = f"is tied: it and {answer} are within the margin of each other on every objective"
        return f"{text}{_tie_broken(estimates, arm)}."
    text = f"is undecided{_tie_broken(estimates, arm)}."
    if decision.by == DecidedBy.MEANS:
        text = f"is undecided, and worse on average: {deciding(estimates, arm, decision).sentence}"
    of = sum(map(estimates.is_target, estimates.columns))
    limits = f"keeps to the limit{'s' if of > 1 else ''} and " if of else ""
    other = "no other" if limits else "no"
    sure = f"{answer} {limits}is worse than {estimates.arms[arm]} on {other} objective"
    return f"{text} {capital(AT)} {sure} by more than the margin."


def _tie_broken(estimates: Estimates, arm: int) -> str:
    """Why the answer and not an arm that nothing certified tells from it."""
    if estimates.dropped is None:
        return ""
    position, rival = estimates.dropped.get(arm, (len(estimates.columns) - 1, estimates.leader))
    column, answer = estimates.columns[position], estimates.answer.arm
    objective = estimates.objectives[column]
    if rival < 0:
        mean, limit = value(objective, estimates.mean(arm, column)), amount(objective, objective.limit or 0.0)
        return f"; in the mean it has {objective.name} of {mean}, and the limit is {limit}, which decides"
    lead = estimates.lead(rival, arm, column)
    if lead.results and lead.mean > 0:
        by = bound(objective, lead.mean, "down", beyond=0.0, unit=True)
        return f"; in the mean {estimates.arms[rival]} is better on {objective.name} by {by}, which decides"
    if lead.results and lead.mean == 0 and estimates.leader < arm:
        return f"; their means on {objective.name} are equal, and {answer} is listed first"
    return f"; the means on {objective.name} of all arms left decide"


def _later(estimates: Estimates, arm: int) -> str:
    """What the arm is better at, if that comes later in the order."""
    better = []
    for column in estimates.columns[estimates.position_left(arm) + 1 :]:
        lead = estimates.lead(arm, estimates.leader, column)
        objective = estimates.objectives[column]
        if lead.results >= 5 and lead.low > estimates.tie(column):
            better.append(f"{objective.name} ({value(objective, estimates.mean(arm, column), unit=True)})")
    if not better:
        return ""
    come = "comes" if len(better) == 1 else "come"
    return f" It is better than {estimates.answer.arm} on {listed(better)}, which {come} later in the order."
