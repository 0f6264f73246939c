"""Changes of the rules and of a study's life, inside one transaction; each is one event."""

from collections.abc import Mapping, Sequence
from typing import Any

from lexbandits._validation import whole
from lexbandits.study.core.events import EventKind
from lexbandits.study.core.journal import UnitOfWork
from lexbandits.study.core.lifecycle import after_all_begun, check_stays, conclude, withdraw_arm
from lexbandits.study.core.trial_columns import IMPORTED
from lexbandits.study.errors import ConflictError, StudyError, study_errors
from lexbandits.study.spec import arm_index, checked_arm


def _change(unit: UnitOfWork, kind: EventKind, fields: dict[str, Any], arm: str | None = None) -> None:
    unit.append(kind, fields, arm=arm)
    conclude(unit)


def add_arm(unit: UnitOfWork, arm: str | Mapping[str, Any], blind: bool = False) -> None:
    """A further arm takes the next index."""
    fields, projection = checked_arm(arm), unit.projection
    name = fields["name"]
    if name in projection.arm_names:
        way_out = "; restore brings it back" if name in projection.withdrawn else ""
        raise ConflictError(f"there is an arm {name!r}{way_out}")
    most = projection.spec.max_arms
    if len(projection.arms) >= most:
        raise StudyError(
            f"the study was made for at most {most} arms, over which its delta is shared: "
            f"make it with a larger max_arms to add {name!r}"
        )
    if blind and not projection.spec.is_list:
        raise StudyError('blind is for lists (scope="items"): elsewhere a new arm is judged on new passes')
    said: dict[str, Any] = {"blind": True} if blind else {}
    begun = after_all_begun(projection)
    if projection.spec.is_list and projection.counts[IMPORTED]:  # how far they count shows what comes first
        waits = [until + 1 for until in unit.replay.list_policy.until if until < projection.passes]
        begun["from_pass"] = max(begun["from_pass"], *waits, 0)
    _change(unit, EventKind.ARM_ADDED, {"arm": fields, **said, **begun}, name)


def withdraw(unit: UnitOfWork, name: str, reason: str) -> None:
    """An arm leaves the question, not because of its values."""
    projection = unit.projection
    arm_index(projection.arm_names, name)
    if name in projection.withdrawn:
        raise ConflictError(f"arm {name!r} was withdrawn before: {projection.withdrawn[name]}")
    if len(projection.offered) == 1:
        raise ConflictError(f"arm {name!r} is the last one: end the study instead")
    check_stays(projection, name)
    withdraw_arm(unit, name, str(reason))
    conclude(unit)


def restore(unit: UnitOfWork, name: str) -> None:
    """A withdrawn arm is in question again."""
    arm_index(unit.projection.arm_names, name)
    if name not in unit.projection.withdrawn:
        raise ConflictError(f"arm {name!r} was not withdrawn")
    _change(unit, EventKind.ARM_RESTORED, after_all_begun(unit.projection), name)


def amend(unit: UnitOfWork, objective: str, margin: Any, tie: Any) -> None:
    """Another margin or tie."""
    given = {"margin": margin, "tie": tie}
    fields = {key: value for key, value in given.items() if value is not None}
    if not fields:
        raise StudyError("amend needs a margin or a tie")
    spec = unit.projection.spec.changed(objective, **fields)  # says what is wrong with it
    changed = spec.objectives[spec.column(objective)]
    plain = {key: getattr(changed, key) for key in fields}
    _change(unit, EventKind.AMENDED, {"objective": objective, **plain, **after_all_begun(unit.projection)})


def reorder(unit: UnitOfWork, objectives: Sequence[str]) -> None:
    """Another order of priority."""
    names = [objectives] if isinstance(objectives, str) else list(objectives)
    texts = all(isinstance(name, str) for name in names)
    if not texts or sorted(names) != sorted(unit.projection.spec.names):
        there = ", ".join(map(repr, unit.projection.spec.names))
        raise StudyError(f"reorder must name each objective once ({there}), got {names!r}")
    _change(unit, EventKind.REORDERED, {"objectives": names, **after_all_begun(unit.projection)})


def retry(unit: UnitOfWork) -> int:
    """The places of a list that failed or ran out are asked again."""
    projection = unit.projection
    if not projection.spec.is_list:
        raise StudyError(
            'only places of a list (scope="items") are asked again: elsewhere that would choose by value'
        )
    if projection.end is not None:
        raise ConflictError(f"study {projection.spec.name!r} has ended: reopen it to measure again")
    in_flight = {projection.place(number) for number in projection.open}
    places = len(projection.holes.keys() - in_flight)
    if places:
        unit.append(EventKind.RETRIED, {"places": places})
    return places


def pause(unit: UnitOfWork, reason: str) -> None:
    """Nothing is handed out from now on."""
    if unit.projection.paused is None:
        _change(unit, EventKind.PAUSED, {"reason": str(reason)})


def resume(unit: UnitOfWork) -> None:
    """Trials are handed out again."""
    if unit.projection.paused is not None:
        _change(unit, EventKind.RESUMED, {})


def set_budget(unit: UnitOfWork, budget: int | None) -> None:
    """How many trials may be handed out in all."""
    with study_errors():
        most = None if budget is None else whole("budget", budget, least=1)
    _change(unit, EventKind.BUDGET, {"budget": most})


def reopen(unit: UnitOfWork, why: str) -> None:
    """An end is taken back."""
    if unit.projection.end is None:
        raise ConflictError(f"study {unit.projection.spec.name!r} has not ended")
    _change(unit, EventKind.REOPENED, {"why": str(why)})


def note(unit: UnitOfWork, text: str) -> None:
    """A remark."""
    _change(unit, EventKind.NOTE, {"text": str(text)})
