"""Rules of a study: what time and the record bring by themselves, inside one transaction."""

from typing import TYPE_CHECKING, Any

from lexbandits.study.errors import ConflictError
from lexbandits.study.record.answers import recorded
from lexbandits.study.record.ledger import Ledger

if TYPE_CHECKING:
    from lexbandits.study.record.journal import Turn


def settle(turn: "Turn") -> None:
    """Note all that is due: trials that ran out, arms that cannot be measured, the answer."""
    expire_overdue(turn)
    conclude(turn)


def expire_overdue(turn: "Turn") -> None:
    """Declare the places missing whose lease has run out."""
    if not turn.ledger.open:
        return
    overdue = [number for number, until in turn.ledger.open.items() if until <= turn.now]
    for number in overdue:
        if not turn.in_time(number):
            turn.resolve("expired", number, {})


def conclude(turn: "Turn") -> None:
    """Append what follows from the record: an arm that cannot be measured leaves, the answer is there."""
    ledger = turn.ledger
    if ledger.end is not None:
        return
    if max(ledger.failing) >= ledger.spec.max_failures and not turn.fold.policy.finished:
        _give_up_arms(turn)
    if turn.fold.policy.finished:
        turn.append("finished", {**recorded(turn.fold), "record": turn.digest()})


def _give_up_arms(turn: "Turn") -> None:
    ledger = turn.ledger
    for index, (name, failures) in enumerate(zip(ledger.arm_names, ledger.failing, strict=True)):
        if not ledger.gives_up(index) or name in ledger.withdrawn or ledger.paused is not None:
            continue
        if name in ledger.spec.references:
            turn.append(
                "paused",
                {"reason": f"arm {name!r} failed {failures} times in a row; {_needed(ledger, name)}"},
            )
        elif any(ledger.measured[other] for other in ledger.offered if other != index):
            last = ledger.last_failures[index]
            reason = f"failed {failures} times in a row{f', the last: {last}' if last else ''}"
            withdraw_arm(turn, name, reason, failures=failures, last=last)
        else:  # without it, an arm of which nothing is known would be the answer
            reason = f"arm {name!r} failed {failures} times in a row, and no other was ever measured"
            turn.append("paused", {"reason": reason})


def check_stays(ledger: Ledger, name: str) -> None:
    """Refuse to take an arm out of the question that other arms are measured by."""
    if name in ledger.spec.references:
        raise ConflictError(f"arm {name!r} cannot be withdrawn: {_needed(ledger, name)}")


def _needed(ledger: Ledger, name: str) -> str:
    return f"percentages of {ledger.spec.references[name]!r} are of its mean, so every pass needs it"


def withdraw_arm(turn: "Turn", name: str, reason: str, **failed: Any) -> None:
    """Take an arm out of the question; the event says who comes back because of it."""
    ledger, policy, begins = turn.ledger, turn.fold.policy, after_all_begun(turn.ledger)
    left = [index for index in ledger.offered if ledger.arm_names[index] != name]
    after = policy.amended(offered=left, from_pass=begins["from_pass"]).candidates
    returned = [ledger.arm_names[index] for index in after if index not in policy.candidates]
    turn.append("arm_withdrawn", {"reason": reason, "returned": returned, **begins, **failed}, arm=name)


def after_all_begun(ledger: Ledger) -> dict[str, Any]:
    """From which pass on new rules choose who is measured.

    Who changes them may have seen values that are not folded: passes begun keep their members and count.
    """
    return {"from_pass": ledger.highest + 1}


def proof_of(ledger: Ledger) -> str:
    """How the answer is proven: "declared", by the rules as created, which is cheapest; or by facts.

    These hold under any rules: "closed", since rules that were declared have changed after a trial was handed
    out; "open", as it was from the start.
    """
    settings = ledger.settings
    if settings["rules"] != "declared" or settings.get("settle", "answer") != "answer":
        return "open"
    changes = (stop.data for stop in ledger.stops if stop.kind == "rules")
    return "closed" if any(change["from_pass"] > 0 for change in changes) else "declared"


def cost_of_closing(change: str, results: int) -> str:
    """What it costs to change rules that were declared, after so many results (docs/planning.md)."""
    kept = "1 result so far stays" if results == 1 else f"{results:,} results so far stay"
    closes = "closes the proof under the rules as created: in all it then takes up to about twice the results"
    return f"{change} {closes}. {kept}."
