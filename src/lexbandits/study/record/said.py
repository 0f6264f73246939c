"""Why an answer is certain, and what its reader must know besides: each flag in a sentence."""

import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lexbandits.study.objective import written
from lexbandits.study.trial import moment

if TYPE_CHECKING:
    from lexbandits.study.record.answers import Answer

DECIDED = {
    None: "",
    "keep": "; the current arm stays",
    "switch": "; it is better than the current arm",
    "keep for now": "; that it is better than the current arm is not shown",
}


def certified_reason(answer: "Answer") -> str:
    """Of a certified answer: "certified" alone only where nothing is flagged."""
    sure = f"at the study's confidence of {1 - answer.delta:g}{DECIDED[answer.decision]}"
    said = flags_said(answer)
    if answer.about == "items":
        where = on_these(answer)
        how = (
            f"certain {where}: no chance is involved{DECIDED[answer.decision]}"
            if answer.certain
            else f"certified {where}, {sure}"
        )
        return f"{how}, but {'; '.join(said)}" if said else how
    return f"certified {sure}, but {'; '.join(said)}" if said else f"certain {sure}"


def on_these(answer: "Answer") -> str:
    """The list that an answer is about, and what of it was measured."""
    items = "this one item" if answer.items == 1 else f"these {answer.items:,} items"
    return f"on {items} after {answer.results:,} of {answer.full:,} results"


def flags_said(answer: "Answer") -> list[str]:
    """Each flag of an answer in a sentence without its full stop."""
    return [_SAID[flag](answer.details.get(flag, {})) for flag in answer.flags if flag in _SAID]


def nobody_meets(words: Mapping[str, Any]) -> str:
    """That nobody meets a limit; an arm that left earlier may."""
    limit = written(words["limit"], words["unit"])
    return f"no {whoever(words)} has {words['objective']} of {words['side']} {limit}"


def whoever(words: Mapping[str, Any]) -> str:
    """The arms that a limit nobody meets speaks of."""
    return "arm" if words["all"] else "arm that got that far"


def _closest_said(fields: Mapping[str, Any]) -> str:
    unmet = " and ".join(map(nobody_meets, fields.get("objectives", ()))) or "no arm meets a limit"
    if fields.get("stopped"):
        return f"{unmet}; stopped there, as asked"
    return f"{unmet}; it is {_short(fields)}"


def _short(fields: Mapping[str, Any]) -> str:
    """How far the answer is from the closest to a limit, at most."""
    slacks = {written(words["slack"], words["unit"]) for words in fields.get("objectives", ())}
    return (
        f"at most {slacks.pop()} short of the closest" if len(slacks) == 1 else "as close as the slacks say"
    )


def _near_said(fields: Mapping[str, Any]) -> str:
    names = " and ".join(words["objective"] for words in fields["objectives"])
    return (
        f"no arm is inside the limit on {names} by the slack; it is {_short(fields)}. "
        "That it meets the limit is not shown"
    )


def _given_up_said(fields: Mapping[str, Any]) -> str:
    names = [
        f"{arm['arm']} could not be measured ({arm['failures']} failures in a row"
        f"{', the last: ' + arm['last'] if arm['last'] else ''})"
        for arm in fields["arms"]
    ]
    left = fields["left"]
    others = "the one arm left" if left == 1 else f"the other {left} arms"
    return f"{' and '.join(names)}: the answer speaks of {others} only"


def _changed_said(fields: Mapping[str, Any]) -> str:
    last = fields["changes"][-1]
    times = "" if fields["count"] == 1 else f", {fields['count']} times in all"
    when = f"last on {moment(last['at']):%-d %B %Y} ({_change_said(last)})"
    return f"the rules were changed after looking, {when}{times}: it is about the rules since then"


def _change_said(change: Mapping[str, Any]) -> str:
    if change["kind"] == "reordered":
        return f"the order: {', '.join(change['objectives'])}"
    if change["kind"] != "amended":
        does = {
            "arm_added": "was added",
            "arm_withdrawn": "was withdrawn",
            "arm_restored": "was brought back",
        }
        return f"{change['arm']} {does[change['kind']]}"
    new = [f"{key} {change[key]}" for key in ("margin", "tie") if change.get(key) is not None]
    return f"{change['objective']}: {', '.join(new)}"


def _strain_said(strain: Mapping[str, Any]) -> str:
    worst, share = strain.get("worst"), f"{strain.get('lost')} of {strain.get('of')}"
    if strain["code"] == "losses":
        return f"{worst} loses results more often than others" if worst else f"{share} results were lost"
    if strain["code"] == "returned":
        what = "were given back or broken off"
        return f"trials of {worst} {what} more often than others" if worst else f"{share} trials {what}"
    if strain["code"] == "gaps":
        what = f"{strain['objective']} is missing"
        return f"{what} more often for {worst} than for others" if worst else f"{what} in {share} results"
    if strain["code"] == "retried":
        return f"what failed was measured again ({share} trials)"
    if strain["code"] == "corrected":
        return f"results of {worst} were corrected more often" if worst else f"{share} results were corrected"
    if strain["code"] == "drift":
        what = f"{strain['objective']} of {worst} was another when it was measured later"
        return f'{what} (about="population" does not assume that it is not)'
    return f"the values of {strain['objective']} contradict the noise that was declared"


def _missing_said(fields: Mapping[str, Any]) -> str:
    are = "1 result is" if fields["missing"] == 1 else f"{fields['missing']:,} results are"
    again = f"measure again what is (study.retry(), lexbandits study retry {shlex.quote(fields['study'])}; "
    worth = "it counts as a strain), or say what a missing result is worth (if_failed)"
    return f"{are} missing, and could change the answer: {again}{worth}"


_SAID: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "large-sample": lambda _: "the noise is only known to have a variance, so it is approximate",
    "repeated values": lambda fields: (
        f"one value of {' and of '.join(fields['objectives'])} came again and again, "
        "so the noise is not Gaussian as declared"
    ),
    "imported unfairly": lambda _: "results were imported that had been collected by looking at them",
    "contradiction": lambda _: (
        "what was measured refutes every arm: the noise is not as declared, or it was bad luck"
    ),
    "infeasible": _closest_said,
    "not_clearly_feasible": _near_said,
    "missing results decide": _missing_said,
    "arm given up": _given_up_said,
    "rules changed": _changed_said,
    "strained": lambda fields: f"strained: {', '.join(dict.fromkeys(map(_strain_said, fields['strains'])))}",
}
