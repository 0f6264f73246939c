"""Changes of the rules and of a study's life, inside one transaction; each is one event."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexbandits.checks import whole
from lexbandits.study.errors import ConflictError, StudyError, study_errors
from lexbandits.study.record.journal import Turn
from lexbandits.study.record.rules import after_all_begun, check_stays, conclude, withdraw_arm
from lexbandits.study.record.trials import IMPORTED
from lexbandits.study.spec import arm_index, checked_arm


def _change(turn: Turn, kind: str, words: dict[str, Any], arm: str | None = None) -> None:
    turn.append(kind, words, arm=arm)
    conclude(turn)


def add_arm(turn: Turn, arm: str | Mapping[str, Any], blind: bool = False) -> None:
    """A further arm takes the next index."""
    words, ledger = checked_arm(arm), turn.ledger
    name = words["name"]
    if name in ledger.arm_names:
        way_out = "; restore brings it back" if name in ledger.withdrawn else ""
        raise ConflictError(f"there is an arm {name!r}{way_out}")
    most = ledger.spec.max_arms
    if len(ledger.arms) >= most:
        raise StudyError(
            f"the study was made for at most {most} arms, over which its delta is shared: "
            f"make it with a larger max_arms to add {name!r}"
        )
    if blind and not ledger.spec.is_list:
        raise StudyError('blind is for lists (about="items"): elsewhere a new arm is judged on new passes')
    said: dict[str, Any] = {"blind": True} if blind else {}
    begun = after_all_begun(ledger)
    if ledger.spec.is_list and ledger.counts[IMPORTED]:  # how far they count shows what comes first
        waits = [until + 1 for until in turn.fold.list_policy.until if until < ledger.passes]
        begun["from_pass"] = max(begun["from_pass"], *waits, 0)
    _change(turn, "arm_added", {"arm": words, **said, **begun}, name)


def withdraw(turn: Turn, name: str, reason: str) -> None:
    """An arm leaves the question, not because of its values."""
    ledger = turn.ledger
    arm_index(ledger.arm_names, name)
    if name in ledger.withdrawn:
        raise ConflictError(f"arm {name!r} was withdrawn before: {ledger.withdrawn[name]}")
    if len(ledger.offered) == 1:
        raise ConflictError(f"arm {name!r} is the last one: end the study instead")
    check_stays(ledger, name)
    withdraw_arm(turn, name, str(reason))
    conclude(turn)


def restore(turn: Turn, name: str) -> None:
    """A withdrawn arm is in question again."""
    arm_index(turn.ledger.arm_names, name)
    if name not in turn.ledger.withdrawn:
        raise ConflictError(f"arm {name!r} was not withdrawn")
    _change(turn, "arm_restored", after_all_begun(turn.ledger), name)


def amend(turn: Turn, objective: str, margin: Any, tie: Any) -> None:
    """Another margin or tie."""
    given = {"margin": margin, "tie": tie}
    words = {key: value for key, value in given.items() if value is not None}
    if not words:
        raise StudyError("amend needs a margin or a tie")
    spec = turn.ledger.spec.changed(objective, **words)  # says what is wrong with it
    changed = spec.objectives[spec.column(objective)]
    plain = {key: getattr(changed, key) for key in words}
    _change(turn, "amended", {"objective": objective, **plain, **after_all_begun(turn.ledger)})


def reorder(turn: Turn, objectives: Sequence[str]) -> None:
    """Another order of priority."""
    names = [objectives] if isinstance(objectives, str) else list(objectives)
    texts = all(isinstance(name, str) for name in names)
    if not texts or sorted(names) != sorted(turn.ledger.spec.names):
        there = ", ".join(map(repr, turn.ledger.spec.names))
        raise StudyError(f"reorder must name each objective once ({there}), got {names!r}")
    _change(turn, "reordered", {"objectives": names, **after_all_begun(turn.ledger)})


def retry(turn: Turn) -> int:
    """The places of a list that failed or ran out are asked again."""
    ledger = turn.ledger
    if not ledger.spec.is_list:
        raise StudyError(
            'only places of a list (about="items") are asked again: elsewhere that would choose by value'
        )
    if ledger.end is not None:
        raise ConflictError(f"study {ledger.spec.name!r} has ended: reopen it to measure again")
    in_flight = {ledger.place(number) for number in ledger.open}
    places = len(ledger.holes.keys() - in_flight)
    if places:
        turn.append("retried", {"places": places})
    return places


def pause(turn: Turn, reason: str) -> None:
    """Nothing is handed out from now on."""
    if turn.ledger.paused is None:
        _change(turn, "paused", {"reason": str(reason)})


def resume(turn: Turn) -> None:
    """Trials are handed out again."""
    if turn.ledger.paused is not None:
        _change(turn, "resumed", {})


def set_budget(turn: Turn, budget: int | None) -> None:
    """How many trials may be handed out in all."""
    with study_errors():
        most = None if budget is None else whole("budget", budget, least=1)
    _change(turn, "budget", {"budget": most})


def reopen(turn: Turn, why: str) -> None:
    """An end is taken back."""
    if turn.ledger.end is None:
        raise ConflictError(f"study {turn.ledger.spec.name!r} has not ended")
    _change(turn, "reopened", {"why": str(why)})


def note(turn: Turn, text: str) -> None:
    """A remark."""
    _change(turn, "note", {"text": str(text)})
