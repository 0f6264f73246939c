"""A gate in sentences, made from its codes and fields."""

from lexbandits.judging.gate import Gate, GateFinding, GateOutcome, OpenReason
from lexbandits.judging.verdict import Verdict, proven_lead
from lexbandits.outcomes import Scope
from lexbandits.study.number_format import about, limit_of, listed, percent, points, value
from lexbandits.study.objective import Objective

BADGES = {
    GateOutcome.SHIP: "May ship",
    GateOutcome.NOT_SHOWN: "Not shown",
    GateOutcome.REGRESSION: "Regression",
}


def headline(verdict: Verdict, gate: Gate, but: str) -> str:
    """Say the outcome in one sentence; `but` has what its flags say."""
    sentence = {
        GateOutcome.SHIP: _ship,
        GateOutcome.NOT_SHOWN: _not_shown,
        GateOutcome.REGRESSION: _regression,
    }[gate.outcome](verdict, gate)
    return f"{sentence}{but}."


def _ship(verdict: Verdict, gate: Gate) -> str:
    """Ship: not worse here, better there, within limits."""
    better = [asked for asked in verdict.objectives if gate.findings[asked.name] is GateFinding.BETTER]
    equal = [asked for asked in verdict.objectives if gate.findings[asked.name] is GateFinding.NOT_WORSE]
    within = [asked for asked in verdict.objectives if gate.findings[asked.name] is GateFinding.WITHIN_LIMIT]
    said = []
    if equal:
        on = listed([f"{asked.name} ({_margin(asked)})" for asked in equal])
        said.append(f"not worse than {gate.baseline} on {on}")
    if better:
        on = listed([f"{asked.name} {_by(verdict, gate, asked)}" for asked in better])
        said.append(f"better {'' if equal else f'than {gate.baseline} '}on {on}")
    if within:
        said.append(
            f"within {listed([f'the limit on {asked.name} ({limit_of(asked)})' for asked in within])}"
        )
    sure = "on these items it is" if verdict.scope == Scope.ITEMS else "certified"
    return f"Ship {gate.candidate}: {sure} {listed(said)}"


def _by(verdict: Verdict, gate: Gate, asked: Objective) -> str:
    """By how much the candidate is better, as far as all facts hold together."""
    least = proven_lead(verdict, asked.name, gate.candidate, gate.baseline)
    if verdict.scope == Scope.ITEMS and least is not None:
        return f"by {points(asked, least, 'near')}"
    if least is None or least <= asked.tie_in_unit:
        return f"by more than {points(asked, asked.tie_in_unit)}"
    return f"by at least {points(asked, least, 'down')}"


def _regression(verdict: Verdict, gate: Gate) -> str:
    asked = _decides(verdict, gate)
    if asked.limit is not None:
        seen = value(asked, verdict.means[gate.candidate][asked.name]["mean"], unit=True)
        limit = f"the limit on {asked.name} ({limit_of(asked)})"
        return f"Regression: {gate.candidate} violates {limit}, seen {seen}"
    return f"Regression: {gate.candidate} is {worse(verdict, gate)} on {asked.name} ({_margin(asked)})"


def worse(verdict: Verdict, gate: Gate) -> str:
    """By how much a regression is worse than the baseline."""
    asked = _decides(verdict, gate)
    least, margin = gate.bound, asked.margin_in_unit
    by = f"more than {points(asked, margin)}"
    if least is not None and least > margin:
        by = f"at least {points(asked, least, 'down')}"
    if verdict.scope == Scope.ITEMS and least is not None:
        by = points(asked, least, "near")
    return f"worse than {gate.baseline} by {by}"


def _not_shown(verdict: Verdict, gate: Gate) -> str:
    number = verdict.missing_items
    more = ""
    if number is not None and verdict.missing_reason is None:
        unit = verdict.unit.replace("rows", "new rows") if " " in verdict.unit else f"new {verdict.unit}"
        more = f"; about {about(number, up=True)} {unit} should settle it"
    return f"Not shown yet: {open_question(verdict, gate)}{more}"


def open_question(verdict: Verdict, gate: Gate) -> str:
    """Say what keeps the candidate from shipping."""
    if gate.reason is OpenReason.DOUBTED:
        return f"{gate.candidate} would pass"
    if gate.reason is OpenReason.NOT_BETTER:
        return f"{gate.candidate} is not shown to be better than {gate.baseline} on any objective"
    asked = _decides(verdict, gate)
    if gate.reason is OpenReason.MAY_VIOLATE_LIMIT:
        seen = value(asked, verdict.means[gate.candidate][asked.name]["mean"], unit=True)
        return f"{gate.candidate} may violate the limit on {asked.name} ({limit_of(asked)}), seen {seen}"
    by = f"more than {points(asked, asked.margin_in_unit)}"
    if gate.bound is not None and gate.bound > asked.margin_in_unit:
        by = f"up to {points(asked, gate.bound, 'up')}"
    return f"{gate.candidate} may be worse than {gate.baseline} by {by} on {asked.name} ({_margin(asked)})"


def guarantee(verdict: Verdict, gate: Gate) -> tuple[str, ...]:
    """Say how often each outcome may be wrong."""
    if verdict.scope == Scope.ITEMS:
        return ()
    rate, limits = percent(verdict.delta), any(asked.limit is not None for asked in verdict.objectives)
    return (
        f"Guarantee: a regression ships in at most {rate} of tables. Any other candidate is called a "
        f"regression in at most {rate}.",
        f"A regression is worse than {gate.baseline} by more than the margin of an objective and not better "
        f"on an earlier one{', or violates a limit' if limits else ''}.",
        f"Other bounds are a separate claim, also at {percent(1 - verdict.delta)} confidence.",
    )


def explanation(verdict: Verdict, gate: Gate, arm: str) -> str:
    """Describe an arm in one sentence."""
    if arm == gate.baseline:
        return f"{arm} is the baseline."
    found = {
        asked.name: found_on(verdict, gate, asked.name).removeprefix("open: ") for asked in verdict.objectives
    }
    said = [
        f"{'' if words.startswith(('may', 'violates')) else 'is '}{words} on {name}"
        for name, words in found.items()
        if words
    ]
    return f"{arm} is the candidate. It {listed(said)}."


def found_on(verdict: Verdict, gate: Gate, objective: str) -> str:
    """Say what was found of the candidate on an objective, for a line of text."""
    asked = next(asked for asked in verdict.objectives if asked.name == objective)
    finding, old = gate.findings[objective], gate.baseline
    return {
        GateFinding.BETTER: f"better than {old}",
        GateFinding.NOT_WORSE: f"not worse than {old}",
        GateFinding.NOT_BETTER: f"not better than {old}",
        GateFinding.WORSE: worse(verdict, gate) if finding is GateFinding.WORSE else "",
        GateFinding.WITHIN_LIMIT: "within the limit",
        GateFinding.OUTSIDE_LIMIT: "violates the limit",
        GateFinding.OPEN: "open: may violate the limit"
        if asked.limit is not None
        else f"open: may be worse than {old}",
        GateFinding.NOT_NEEDED: "",
    }[finding]


def _margin(asked: Objective) -> str:
    return f"margin {points(asked, asked.margin_in_unit)}"


def _decides(verdict: Verdict, gate: Gate) -> Objective:
    return next(asked for asked in verdict.objectives if asked.name == gate.objective)
