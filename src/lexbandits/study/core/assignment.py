"""Giving visitors an arm, inside one transaction: the same key gets the same trial, then the same arm."""

from typing import TYPE_CHECKING, Any

import numpy as np

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
    taking, besides = _divided(unit)
    place = int(visitor, 16) / 16.0 ** len(visitor)  # uniform among visitors
    takes_part = is_new and place < taking
    if takes_part:
        held = unit.projection.spec.lease if lease is None else lease
        if trials := hand_out(unit, 1, held, worker, None):
            unit.assign(visitor, trials[0].arm, trials[0].number)
            return trials[0].as_assigned(AssignReason.TRIAL)
    if unit.replay.state == StudyState.FINISHED:  # everybody's from now on
        return untold(best_arm(unit.replay), AssignReason.WINNER)
    if is_new and not takes_part:
        arm, reason = _at(besides, (place - taking) / (1 - taking)), AssignReason.OUTSIDE
    else:
        arm, reason = _at(_unmeasured(unit), place), AssignReason.LEADER
    unit.assign(visitor, arm, None)
    return untold(arm, reason)


def forget(unit: "UnitOfWork", key: str | None) -> int:
    """Delete what is kept of a visitor, or of all; how many there were."""
    return unit.forget(None if key is None else unit.visitor(key))


# --- who sees what

Shares = dict[str, tuple[float, float]]  # arm -> floor and ceiling of its share of the visitors
Division = dict[str, float]  # arm -> the share of the visitors who see it without being measured


def _divided(unit: "UnitOfWork") -> tuple[float, Division]:
    """Return the share of the visitors who take part, and what the others see.

    A function of the clock and of the passes folded alone, and visitors are placed by the digests of their
    keys: so no value of a pass decides whose values it has.
    """
    spec, age = unit.projection.spec, unit.now - unit.projection.created
    most = spec.traffic * (min(1.0, max(age, 0.0) / spec.warmup) if spec.warmup else 1.0)
    if most == 1.0 and spec.shares is None:
        return most, {}
    asked = _parts_of_next_pass(unit)
    if spec.shares is not None and not asked:
        return 1.0, {}  # nobody stands outside where nobody can take part
    return divide(most, asked, *_shares_and_order(unit, spec.baseline))


def _unmeasured(unit: "UnitOfWork") -> Division:
    """Return what visitors see who are not measured as nothing can be, or as their arm is out."""
    spec = unit.projection.spec
    return divide(0.0, {}, *_shares_and_order(unit, spec.baseline if spec.shares else None))[1]


def _parts_of_next_pass(unit: "UnitOfWork") -> Division:
    """Return which part of the places each arm has in the pass that is handed out next."""
    replay, names = unit.replay, unit.projection.arm_names
    if unit.projection.spec.shares is None or replay.state != StudyState.MEASURING:
        return {}
    places = replay.next_places(1, unit.now)
    parts = replay.policy.parts_of_pass(places[0][1]) if places else {}
    return {names[arm]: part for arm, part in parts.items()}


def _shares_and_order(unit: "UnitOfWork", first: str | None) -> tuple[Shares, list[str]]:
    """Return the shares of the arms in question, and these: the first, if it is one, then the best so far."""
    projection, policy, best = unit.projection, unit.replay.policy, best_arm(unit.replay)
    shares, names, stopped = projection.spec.shares or {}, projection.arm_names, policy.stopped
    shown = [names[arm] for arm in policy.candidates if arm not in stopped]
    arms = [arm for arm in shown if arm not in projection.withdrawn]
    order = sorted({*arms, best}, key=lambda arm: (arm != first, arm != best, names.index(arm)))
    return {arm: bounds for arm, bounds in shares.items() if arm in arms}, order


def divide(most: float, asked: Division, shares: Shares, order: list[str]) -> tuple[float, Division]:
    """Divide the visitors: the largest share, up to `most`, that may be measured, and what the others see.

    `asked`: arm -> its part of those measured. Others see what a floor lacks, then the arms in order, each up
    to its ceiling; if all are at theirs, the first.

    >>> divide(1.0, {"old": 0.5, "new": 0.5}, {"new": (0.0, 0.125)}, ["old", "new"])
    (0.25, {'old': 0.75})
    """
    ceilings = (high / asked[arm] for arm, (_, high) in shares.items() if asked.get(arm, 0.0) > 0.0)
    taking, lacks = min([most, *ceilings]), {}
    for _ in range(len(shares) + 1):  # Newton's steps to a root of a convex function of straight pieces
        lacks = {arm: low - taking * asked.get(arm, 0.0) for arm, (low, _) in shares.items()}
        lacks = {arm: lack for arm, lack in lacks.items() if lack > 0.0}
        excess = taking + sum(lacks.values()) - 1.0
        if excess <= 1e-12:
            break
        taking -= excess / (1.0 - sum(asked.get(arm, 0.0) for arm in lacks))
    left = 1.0 - taking - sum(lacks.values())
    for arm in order:
        room = shares.get(arm, (0.0, 1.0))[1] - taking * asked.get(arm, 0.0) - lacks.get(arm, 0.0)
        given = min(left, max(room, 0.0))
        left -= given
        lacks[arm] = lacks.get(arm, 0.0) + given
    lacks[order[0]] += max(left, 0.0)
    return taking, {arm: part for arm, part in lacks.items() if part > 1e-12}


def _at(division: Division, place: float) -> str:
    """Return the arm at a place between 0 and 1 where each takes its part."""
    reached = place * sum(division.values()) < np.cumsum([*division.values()])
    return [*division][int(reached.argmax())] if reached.any() else [*division][-1]


def _seen_again(unit: "UnitOfWork", known: "Assigned") -> Trial | None:
    """Return what a visitor had, if it may be given again.

    An arm is given to nobody once it was withdrawn, or is shown to be worse or to break a limit. Its open
    trials are left as they are: a value that came of another arm must not count for this one.
    """
    projection, policy, number = unit.projection, unit.replay.policy, known.trial
    arm = projection.arm_names.index(known.arm)
    if known.arm in projection.withdrawn or arm not in policy.candidates or arm in policy.stopped:
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
