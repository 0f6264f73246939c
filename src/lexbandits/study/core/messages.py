"""Why an answer is certified, and what its reader must know besides: each flag in a sentence."""

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lexbandits.outcomes import BaselineDecision, Flag, Scope
from lexbandits.study.core.diagnostics import DiagnosticCode
from lexbandits.study.core.events import EventKind
from lexbandits.study.number_format import percent
from lexbandits.study.objective import written
from lexbandits.study.trial import moment

if TYPE_CHECKING:
    from lexbandits.study.core.queries import Answer

DECIDED = {
    None: "",
    BaselineDecision.KEEP: "; the current arm stays",
    BaselineDecision.SWITCH: "; it is better than the current arm",
    BaselineDecision.KEEP_FOR_NOW: "; that it is better than the current arm is not shown",
}


def certified_reason(answer: "Answer") -> str:
    """Of a certified answer: "certified" alone only where nothing is flagged."""
    sure = f"at {percent(1 - answer.delta)} confidence{DECIDED[answer.decision]}"
    flagged = flag_messages(answer)
    if answer.scope == Scope.ITEMS:
        where = on_these(answer)
        how = f"certified {where} {sure}"
        if answer.exact:
            how = f"exact {where}: no sampling error is involved{DECIDED[answer.decision]}"
    else:
        how = f"certified {sure}"
    return f"{how}, but {'; '.join(flagged)}" if flagged else how


def on_these(answer: "Answer") -> str:
    """The list that an answer is about, and what of it was measured."""
    items = "this one item" if answer.items == 1 else f"these {answer.items:,} items"
    return f"on {items} after {answer.results:,} of {answer.full:,} results"


def flag_messages(answer: "Answer") -> list[str]:
    """Each flag of an answer in a sentence without its full stop."""
    return [_SAID[flag](answer.details.get(flag, {})) for flag in answer.flags if flag in _SAID]


def nobody_meets(fields: Mapping[str, Any]) -> str:
    """That nobody meets a limit; an arm that left earlier may."""
    limit = written(fields["limit"], fields["unit"])
    return f"no {whoever(fields)} has {fields['objective']} of {fields['side']} {limit}"


def whoever(fields: Mapping[str, Any]) -> str:
    """The arms that a limit nobody meets speaks of."""
    return "arm" if fields["all"] else "arm that got that far"


def _closest_message(fields: Mapping[str, Any]) -> str:
    unmet = " and ".join(map(nobody_meets, fields.get("objectives", ()))) or "no arm meets a limit"
    if fields.get("stopped"):
        return f"{unmet}; stopped there, as asked"
    return f"{unmet}; it is {_short(fields)}"


def _short(fields: Mapping[str, Any]) -> str:
    """How far the answer is from the closest to a limit, at most."""
    slacks = {written(payload["slack"], payload["unit"]) for payload in fields.get("objectives", ())}
    return (
        f"at most {slacks.pop()} short of the closest" if len(slacks) == 1 else "as close as the slacks say"
    )


def _near_message(fields: Mapping[str, Any]) -> str:
    names = " and ".join(payload["objective"] for payload in fields["objectives"])
    return (
        f"no arm is inside the limit on {names} by the slack; it is {_short(fields)}. "
        "That it meets the limit is not shown"
    )


def _given_up_message(fields: Mapping[str, Any]) -> str:
    names = [
        f"{arm['arm']} could not be measured ({arm['failures']} failures in a row"
        f"{', the last: ' + arm['last'] if arm['last'] else ''})"
        for arm in fields["arms"]
    ]
    left = fields["left"]
    others = "the one arm left" if left == 1 else f"the other {left} arms"
    return f"{' and '.join(names)}: the answer speaks of {others} only"


def _changed_message(fields: Mapping[str, Any]) -> str:
    last = fields["changes"][-1]
    times = "" if fields["count"] == 1 else f", {fields['count']} times in all"
    when = f"last on {moment(last['at']):%-d %B %Y} ({_change_message(last)})"
    seen = f"the rules were changed after results had been seen, {when}{times}"
    return f"{seen}: the certificate refers to the current rules"


def _change_message(change: Mapping[str, Any]) -> str:
    if change["kind"] == EventKind.REORDERED:
        return f"the order: {', '.join(change['objectives'])}"
    if change["kind"] != EventKind.AMENDED:
        does = {
            EventKind.ARM_ADDED: "was added",
            EventKind.ARM_WITHDRAWN: "was withdrawn",
            EventKind.ARM_RESTORED: "was brought back",
        }
        return f"{change['arm']} {does[change['kind']]}"
    new = [f"{key} {change[key]}" for key in ("margin", "tie") if change.get(key) is not None]
    return f"{change['objective']}: {', '.join(new)}"


def _diagnostic_message(diagnostic: Mapping[str, Any]) -> str:
    worst, share = diagnostic.get("worst"), f"{diagnostic.get('lost')} of {diagnostic.get('of')}"
    if diagnostic["code"] == DiagnosticCode.LOSSES:
        return f"{worst} loses results more often than others" if worst else f"{share} results were lost"
    if diagnostic["code"] == DiagnosticCode.RETURNED:
        what = "were given back or broken off"
        return f"trials of {worst} {what} more often than others" if worst else f"{share} trials {what}"
    if diagnostic["code"] == DiagnosticCode.GAPS:
        what = f"{diagnostic['objective']} is missing"
        return f"{what} more often for {worst} than for others" if worst else f"{what} in {share} results"
    if diagnostic["code"] == DiagnosticCode.RETRIED:
        return f"what failed was measured again ({share} trials)"
    if diagnostic["code"] == DiagnosticCode.CORRECTED:
        return f"results of {worst} were corrected more often" if worst else f"{share} results were corrected"
    if diagnostic["code"] == DiagnosticCode.DRIFT:
        what = f"{diagnostic['objective']} of {worst} was another when it was measured later"
        return f'{what} (scope="population" does not assume that it is not)'
    return f"the values of {diagnostic['objective']} contradict the noise that was declared"


def _missing_message(fields: Mapping[str, Any]) -> str:
    are = "1 result is" if fields["missing"] == 1 else f"{fields['missing']:,} results are"
    again = f"measure again what is (study.retry(), lexbandits study retry {shlex.quote(fields['study'])}; "
    worth = "it is reported as a diagnostic), or say what a missing result is worth (if_failed)"
    return f"{are} missing, and could change the answer: {again}{worth}"


_SAID: dict[Flag, Callable[[Mapping[str, Any]], str]] = {
    Flag.ASYMPTOTIC: lambda _: "the noise is only known to have a variance, so it is approximate",
    Flag.REPEATED_VALUES: lambda fields: (
        f"one value of {' and of '.join(fields['objectives'])} was repeated too often, "
        "which this kind of noise never does: say bounds"
    ),
    Flag.BIASED_IMPORT: lambda _: "results were imported that had been collected by looking at them",
    Flag.CONTRADICTION: lambda _: (
        "what was measured refutes every arm: the noise is not as declared, or it was bad luck"
    ),
    Flag.INFEASIBLE: _closest_message,
    Flag.NOT_CLEARLY_FEASIBLE: _near_message,
    Flag.UNDETERMINED_MISSING: _missing_message,
    Flag.ARM_EXCLUDED: _given_up_message,
    Flag.RULES_CHANGED: _changed_message,
    Flag.ASSUMPTION_WARNING: lambda fields: (
        f"diagnostics warn: {', '.join(dict.fromkeys(map(_diagnostic_message, fields['diagnostics'])))}"
    ),
}
