"""Giving visitors an arm, inside one transaction: the same key gets the same trial, then the same arm."""

from typing import TYPE_CHECKING, Any

from lexbandits.study.core.ask_tell import given, hand_out
from lexbandits.study.core.trial_columns import OPEN, RELEASED
from lexbandits.study.errors import StudyError
from lexbandits.study.states import StudyState
from lexbandits.study.trial import AssignReason, Trial

if TYPE_CHECKING:
    from lexbandits.study.core.journal import UnitOfWork
    from lexbandits.study.core.replay import Replay
    from lexbandits.study.storage.contract import Assigned

LONGEST_KEY = 1000  # characters


def checked_key(key: Any) -> str:
    """Return a visitor's key, or refuse what is none."""
    if not isinstance(key, str) or not 1 <= len(key) <= LONGEST_KEY:
        shown = f"{len(key):,} characters" if isinstance(key, str) else repr(key)
        raise StudyError(f"key must be 1 to {LONGEST_KEY:,} characters of text, got {shown}")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise StudyError(f"key must be text that UTF-8 can encode, got {key!r}") from None
    return key


def assign(unit: "UnitOfWork", key: str, lease: float | None = None, worker: str | None = None) -> Trial:
    """Return what a visitor is given: a trial while measuring, else an arm without one."""
    visitor = unit.visitor(key)
    known = unit.assigned(visitor)
    if known is not None and (again := _seen_again(unit, known)) is not None:
        return again
    is_new = known is None or (known.trial is not None and unit.projection.state[known.trial] == RELEASED)
    takes_part = is_new and _takes_part(unit, visitor)
    if takes_part:
        held = unit.projection.spec.lease if lease is None else lease
        if trials := hand_out(unit, 1, held, worker, None):
            unit.assign(visitor, trials[0].arm, trials[0].number)
            return trials[0].as_assigned(AssignReason.TRIAL)
    arm = best_arm(unit.replay)
    if unit.replay.state == StudyState.FINISHED:  # everybody's from now on
        return untold(arm, AssignReason.WINNER)
    if is_new and not takes_part:
        arm = _outside(unit, arm)
    unit.assign(visitor, arm, None)
    return untold(arm, AssignReason.OUTSIDE if is_new and not takes_part else AssignReason.LEADER)


def forget(unit: "UnitOfWork", key: str | None) -> int:
    """Delete what is kept of a visitor, or of all; how many there were."""
    return unit.forget(None if key is None else unit.visitor(key))


def _takes_part(unit: "UnitOfWork", visitor: str) -> bool:
    """Whether a visitor is among the share that takes part: by the digest of the key and the clock alone."""
    spec, age = unit.projection.spec, unit.now - unit.projection.created
    grown = min(1.0, max(age, 0.0) / spec.warmup) if spec.warmup else 1.0
    return int(visitor, 16) < spec.traffic * grown * 16.0 ** len(visitor)


def _outside(unit: "UnitOfWork", best: str) -> str:
    """Return what is shown to who does not take part: the baseline, unless it is out."""
    baseline = unit.projection.spec.baseline
    if baseline is None or baseline in unit.projection.withdrawn:
        return best
    return baseline if unit.projection.arm_names.index(baseline) in unit.replay.policy.candidates else best


def _seen_again(unit: "UnitOfWork", known: "Assigned") -> Trial | None:
    """Return what a visitor had, if it may be given again.

    An arm is given to nobody once it was withdrawn, or is shown to be worse or to break a limit. Its open
    trials are left as they are: a value that came of another arm must not count for this one.
    """
    projection, policy, number = unit.projection, unit.replay.policy, known.trial
    arm = projection.arm_names.index(known.arm)
    if known.arm in projection.withdrawn or arm not in policy.candidates:
        return None
    if number is not None and projection.state[number] == OPEN and unit.in_time(number):
        return given(unit, number).as_assigned(AssignReason.TRIAL)
    if unit.replay.state == StudyState.FINISHED or (
        number is not None and projection.state[number] == RELEASED
    ):
        return None
    return untold(known.arm, AssignReason.STICKY)


def best_arm(replay: "Replay") -> str:
    """Return the arm of the answer, or the best so far."""
    end = replay.projection.end
    return str(end["arm"]) if end is not None else replay.projection.arm_names[replay.policy.recommendation]


def untold(arm: str, reason: AssignReason) -> Trial:
    """Return an arm to show without measuring it."""
    return Trial(None, None, arm, None, None).as_assigned(reason)
