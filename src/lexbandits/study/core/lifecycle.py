"""Rules of a study: what time and the record bring by themselves, inside one transaction."""

import math
from typing import TYPE_CHECKING, Any

from lexbandits._code import Code
from lexbandits._validation import StopWhen
from lexbandits.study.core.events import EventKind
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.queries import recorded
from lexbandits.study.errors import ConflictError

if TYPE_CHECKING:
    from lexbandits.study.core.journal import UnitOfWork


def settle(unit: "UnitOfWork") -> None:
    """Note all that is due: trials that ran out, arms that cannot be measured, the answer."""
    expire_overdue(unit)
    conclude(unit)


def expire_overdue(unit: "UnitOfWork") -> None:
    """Declare the places missing whose lease has run out."""
    projection, replay = unit.projection, unit.replay
    if not projection.open:
        return
    soonest, known = replay.soonest
    soonest = min((soonest, *projection.until[known:]))
    if unit.now >= soonest:
        overdue = [number for number, until in projection.open.items() if until <= unit.now]
        for number in overdue:
            if not unit.in_time(number):
                unit.resolve(EventKind.EXPIRED, number, {})
        soonest = min(projection.open.values(), default=math.inf)
    replay.soonest = soonest, len(projection)


def conclude(unit: "UnitOfWork") -> None:
    """Append what follows from the record: an arm that cannot be measured leaves, the answer is there."""
    projection = unit.projection
    if projection.end is not None:
        return
    if max(projection.failing) >= projection.spec.max_failures and not unit.replay.policy.finished:
        _give_up_arms(unit)
    if unit.replay.policy.finished:
        unit.append(EventKind.FINISHED, {**recorded(unit.replay), "digest": unit.digest()})


def _give_up_arms(unit: "UnitOfWork") -> None:
    projection = unit.projection
    for index, (name, failures) in enumerate(zip(projection.arm_names, projection.failing, strict=True)):
        if not projection.gives_up(index) or name in projection.withdrawn or projection.paused is not None:
            continue
        if name in projection.spec.references:
            unit.append(
                EventKind.PAUSED,
                {"reason": f"arm {name!r} failed {failures} times in a row; {_needed(projection, name)}"},
            )
        elif any(projection.measured[other] for other in projection.offered if other != index):
            last = projection.last_failures[index]
            reason = f"failed {failures} times in a row{f', the last: {last}' if last else ''}"
            withdraw_arm(unit, name, reason, failures=failures, last=last)
        else:  # without it, an arm of which nothing is known would be the answer
            reason = f"arm {name!r} failed {failures} times in a row, and no other was ever measured"
            unit.append(EventKind.PAUSED, {"reason": reason})


def check_stays(projection: Projection, name: str) -> None:
    """Refuse to take an arm out of the question that other arms are measured by."""
    if name in projection.spec.references:
        raise ConflictError(f"arm {name!r} cannot be withdrawn: {_needed(projection, name)}")


def _needed(projection: Projection, name: str) -> str:
    return f"percentages of {projection.spec.references[name]!r} are of its mean, so every pass needs it"


def withdraw_arm(unit: "UnitOfWork", name: str, reason: str, **failed: Any) -> None:
    """Take an arm out of the question; the event says who comes back because of it."""
    projection, policy, begins = unit.projection, unit.replay.policy, after_all_begun(unit.projection)
    left = [index for index in projection.offered if projection.arm_names[index] != name]
    after = policy.amended(offered=left, from_pass=begins["from_pass"]).candidates
    returned = [projection.arm_names[index] for index in after if index not in policy.candidates]
    unit.append(
        EventKind.ARM_WITHDRAWN, {"reason": reason, "returned": returned, **begins, **failed}, arm=name
    )


def after_all_begun(projection: Projection) -> dict[str, Any]:
    """From which pass on new rules choose who is measured.

    Who changes them may have seen values that are not folded: passes begun keep their members and count.
    """
    return {"from_pass": projection.next_pass}


class ProofKind(Code):
    """What the certificate of a study rests on.

    PREREGISTERED: tests fixed when the study was created, which need fewest results. Else evidence that holds
    under any rules: CLOSED after preregistered rules were changed, ANYTIME if they never were preregistered.
    """

    PREREGISTERED = "preregistered"
    CLOSED = "closed"
    ANYTIME = "anytime"


def proof_of(projection: Projection) -> ProofKind:
    """Return what the answer is proven by."""
    settings = projection.settings
    if not settings["preregistered"] or settings.get("stop_when", StopWhen.ANSWER) != StopWhen.ANSWER:
        return ProofKind.ANYTIME
    changes = (stop.data for stop in projection.stops if not stop.is_end)
    return ProofKind.CLOSED if any(change["from_pass"] > 0 for change in changes) else ProofKind.PREREGISTERED


def cost_of_closing(change: str, results: int) -> str:
    """What it costs to change rules that were declared, after so many results (docs/planning.md)."""
    kept = "1 result so far stays" if results == 1 else f"{results:,} results so far stay"
    closes = "closes the proof under the rules as created: in all it then takes up to about twice the results"
    return f"{change} {closes}. {kept}."
