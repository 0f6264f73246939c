"""Handing out trials and taking their results, inside one transaction."""

import math
import os
from array import array
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lexbandits.study.core.events import EventKind
from lexbandits.study.core.lifecycle import conclude, settle
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.queries import ended, plain_answer
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, LATE, OPEN, RELEASED, TOLD
from lexbandits.study.errors import (
    ConflictError,
    StudyError,
    StudyFinished,
    StudyPaused,
    StudyWaiting,
    UnknownTrialError,
)
from lexbandits.study.states import StudyState
from lexbandits.study.storage.contract import Lease, Request
from lexbandits.study.trial import Trial, moment

if TYPE_CHECKING:
    from lexbandits.study.core.journal import UnitOfWork

Told = tuple[Trial | str, Any]
Exchanged = tuple[list[str], list[Trial], StudyError | None]  # outcomes, trials, why there are none


def exchange(
    unit: "UnitOfWork",
    results: Sequence[Told],
    n: int,
    lease: float | None = None,
    worker: str | None = None,
    request: str | None = None,
) -> Exchanged:
    """Take results and hand out up to n trials."""
    outcomes = take_all(unit, results) if results else []
    held = unit.projection.spec.lease if lease is None else lease
    trials = hand_out(unit, n, held, worker, request) if n else []
    return outcomes, trials, nothing_to_measure(unit) if n and not trials else None


# --- asking


def hand_out(
    unit: "UnitOfWork", n: int, lease: float, worker: str | None, request: str | None
) -> list[Trial]:
    """Up to n trials; the same ones again for a request that was answered before."""
    if request is not None and (known := unit.request(request)) is not None:
        return [given(unit, number) for number in range(known.first, known.first + known.size)]
    settle(unit)
    if unit.replay.state != StudyState.MEASURING:
        return []
    projection, first, until = unit.projection, len(unit.projection), unit.now + lease
    trials: list[Trial] = []
    places, told_until = unit.replay.next_places(n, unit.now), moment(until)
    nonces = array("I", os.urandom(4 * len(places)))
    for number, ((arm, pass_), nonce) in enumerate(zip(places, nonces, strict=True), first):
        payload = {"pass": pass_, "nonce": nonce, "until": until}
        if projection.spec.is_list:
            payload["item"] = projection.place_at(pass_)
            payload |= {"again": True} if (arm, pass_) in projection.again else {}
        unit.append(EventKind.ASKED, payload, number, projection.arm_names[arm], worker)
        unit.leases.append(Lease(number, worker, until, lease))
        trials.append(given(unit, number, told_until))
    if request is not None and trials:
        unit.new_requests.append(Request(request, first, len(trials)))
    return trials


def given(unit: "UnitOfWork", number: int, until: datetime | None = None) -> Trial:
    """A trial as it is handed out, now or again: then with the time that heartbeats have added."""
    projection = unit.projection
    if until is None:
        until = moment(unit.until(number) if number in projection.open else projection.until[number])
    pass_ = projection.pass_of[number]
    trial = Trial(number, projection.id_of(number), projection.arm_of(number), projection.item(pass_), until)
    return trial if projection.spec.repeats == 1 else trial.as_repeat(projection.repeat(pass_))


def nothing_to_measure(unit: "UnitOfWork") -> StudyError:
    """Why an ask was given nothing."""
    replay = unit.replay
    name, state = replay.projection.spec.name, replay.state
    if state == StudyState.PAUSED:
        return StudyPaused(f"study {name!r} is paused: {replay.projection.paused}")
    if state == StudyState.MEASURING:
        return _waiting(unit)
    answer = plain_answer(replay)
    return StudyFinished(f"study {name!r}: {state.label}; its answer is {answer.arm!r}, {answer.reason}")


def _waiting(unit: "UnitOfWork") -> StudyWaiting:
    """For whom, and until when at most."""
    projection, first = unit.projection, unit.replay.first_awaited()
    told = len(unit.replay.told_waiting())
    until, worker = moment(unit.until(first)), projection.worker_of(first)
    whose = f"trial {first}" if worker is None else f"the trial of {worker}"
    many = "1 result waits" if told == 1 else f"{told:,} results wait"
    text = f"nothing to measure before {until:%H:%M:%S} UTC: {many} for {whose} ({projection.arm_of(first)})"
    return StudyWaiting(f"study {projection.spec.name!r}: {text}", until)


# --- telling


def number_of(unit: "UnitOfWork", trial: Trial | str) -> int:
    """The number of a trial that this study handed out."""
    identity = trial.id if isinstance(trial, Trial) else trial
    projection = unit.projection
    if identity is None:
        raise UnknownTrialError("this trial was handed out when there was nothing to measure: it is not told")
    if not isinstance(identity, str):
        raise TypeError(f"a trial is what ask gave, or its id, got {trial!r}")
    digits = identity.partition("-")[0]
    if digits.isdecimal() and len(digits) < 18 and int(digits) < len(projection):
        number = int(digits)
        if identity == projection.id_of(number) and not math.isnan(projection.until[number]):
            return number
    raise UnknownTrialError(f"study {projection.spec.name!r} did not hand out a trial {identity!r}")


def take_all(unit: "UnitOfWork", results: Sequence[Told]) -> list[str]:
    """Take results: all are checked before the first is recorded."""
    spec = unit.projection.spec
    checked = [(number_of(unit, trial), spec.checked(values)) for trial, values in results]
    outcomes = [_take(unit, number, values) for number, values in checked]
    new = [i for i, outcome in enumerate(outcomes) if outcome == "recorded"]
    for i, worth in zip(new, _worth(unit.replay, [checked[i][0] for i in new]), strict=True):
        outcomes[i] = worth
    conclude(unit)
    return outcomes


def take(unit: "UnitOfWork", trial: Trial | str, values: Any, partial: bool = False) -> str:
    """Take one result; or with `partial` what is known of it so far, unless that is all."""
    if partial and (
        outcome := _take_part(unit, number_of(unit, trial), unit.projection.spec.checked(values))
    ):
        return outcome
    return take_all(unit, [(trial, values)])[0]


def record(unit: "UnitOfWork", trial: Trial | str, values: Any, partial: bool = False) -> str:
    """Take one result without looking at what it means."""
    number, checked = number_of(unit, trial), unit.projection.spec.checked(values)
    return (_take_part(unit, number, checked) if partial else "") or _take(unit, number, checked)


def _take_part(unit: "UnitOfWork", number: int, values: dict[str, float | None]) -> str:
    """ "part", "repeated" or "after the end"; "" if it is no part: complete, late, or of no open trial.

    It decides nothing yet, and nobody can be rid of it: a place has one value of each objective, for good.
    """
    projection = unit.projection
    if projection.state[number] != OPEN or not unit.in_time(number):
        return ""
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        raise StudyError("partial=True takes what is known so far: at least one value")
    known = _told_so_far(unit, number, values)
    if all(known.get(name) is not None for name in projection.spec.names):
        return ""
    if projection.exact:
        _check_exact(projection, number, known, projection.exact_of(projection.arm[number]))
    before = dict(zip(projection.spec.names, projection.told_values(number), strict=True))
    new = {name: value for name, value in given.items() if before[name] != value}
    if not new:
        return "repeated"
    unit.append(EventKind.TOLD_PART, new, number, projection.arm_of(number), projection.worker_of(number))
    return "part" if projection.end is None else "after the end"


def _told_so_far(unit: "UnitOfWork", number: int, values: dict[str, float | None]) -> dict[str, float | None]:
    """These values, with those that were told of the trial before."""
    part = unit.projection.parts.get(number)
    if part is None:
        return values
    joined = dict(values)
    for name, known in zip(unit.projection.spec.names, part, strict=True):
        if known == known:
            if joined.get(name) not in (None, known):
                raise _conflict(unit, number, f"was told {name} {known:g} before, got {joined[name]:g}")
            joined[name] = known
    return joined


def _take(unit: "UnitOfWork", number: int, values: dict[str, float | None]) -> str:
    projection = unit.projection
    state = projection.state[number]
    if projection.parts and state in (OPEN, EXPIRED):
        values = _told_so_far(unit, number, values)
    if state == OPEN:
        if not unit.in_time(number):
            unit.resolve(EventKind.EXPIRED, number, {})
            return _take_late(unit, number, values)
        if projection.exact:
            _check_exact(projection, number, values, projection.exact_of(projection.arm[number]))
        over = projection.end is not None
        unit.resolve(EventKind.TOLD, number, values)
        if projection.state[number] == LATE:  # its place, asked again, was filled meanwhile
            return "late"
        return "after the end" if over else "recorded"
    if state == EXPIRED:
        return _take_late(unit, number, values)
    if state == RELEASED:
        raise _conflict(unit, number, "was released; its place is asked again as another")
    vector = [math.nan if (value := values.get(name)) is None else value for name in projection.spec.names]
    on_record = projection.told_values(number)
    for known in (on_record, projection.first_told.get(number, on_record)):
        if all(a == b or (a != a and b != b) for a, b in zip(vector, known, strict=True)):
            return "repeated"
    if state == FAILED and all(value != value for value in on_record):
        raise _conflict(unit, number, f"is on record as failed, got {values!r}")
    before = {n: None if v != v else v for n, v in zip(projection.spec.names, on_record, strict=True)}
    raise _conflict(unit, number, f"was told {before!r} before, got {values!r}")


def _conflict(unit: "UnitOfWork", number: int, text: str) -> ConflictError:
    return ConflictError(f"trial {unit.projection.id_of(number)} {text}")


def _take_late(unit: "UnitOfWork", number: int, values: dict[str, float | None]) -> str:
    """A result after its time: on a list it fills its hole, elsewhere it never counts."""
    over = unit.projection.end is not None
    unit.resolve(EventKind.TOLD_LATE, number, values)
    if unit.projection.state[number] == LATE:
        return "late"
    return "after the end" if over else "recorded"


def _worth(replay: Replay, numbers: Sequence[int]) -> list[str]:
    """What results that were just recorded are worth."""
    if not replay.projection.open:
        return ["counted"] * len(numbers)
    return ["waiting" if waits else "counted" for waits in replay.waiting(numbers)]


def _check_exact(
    projection: Projection, number: int, values: dict[str, float | None], known: dict[int, float]
) -> None:
    for column, one in known.items():
        objective = projection.spec.objectives[column]
        value = values.get(objective.name)
        if value is not None and value != one:
            arm = projection.arm_of(number)
            raise ConflictError(f"{objective} is exact and arm {arm!r} has {one:g}, got {value:g}")


def fail(unit: "UnitOfWork", trial: Trial | str, reason: str, interrupted: bool = False) -> str:
    """Record that a trial could not be measured, or was begun and broken off."""
    number = number_of(unit, trial)
    projection, state = unit.projection, unit.projection.state[number]
    if state == OPEN:
        over, in_time = projection.end is not None, unit.in_time(number)
        fields = {"reason": reason, **({"interrupted": True} if interrupted else {})}
        unit.resolve(EventKind.FAILED if in_time else EventKind.EXPIRED, number, fields if in_time else {})
        outcome = "late" if not in_time else "after the end" if over else _worth(unit.replay, [number])[0]
        conclude(unit)
        return outcome
    if state == FAILED:
        return "repeated"
    if state in (EXPIRED, LATE):
        return "late"
    word = "told" if state == TOLD else "released"
    raise _conflict(unit, number, f"was {word} before, and cannot fail now")


def release(unit: "UnitOfWork", trial: Trial | str) -> None:
    """Give a trial back that nobody has begun to measure; nothing to do if it was released before.

    What was begun is failed instead: to measure it again would choose which values count. After its time
    it expires, whether or not anybody had noticed, for the same reason.
    """
    number = number_of(unit, trial)
    state = unit.projection.state[number]
    if state == OPEN and unit.in_time(number):
        if number in unit.projection.parts:
            one = f"part of trial {unit.projection.id_of(number)}"
            raise ConflictError(f"{one} was told, and it cannot be released: tell the rest, or fail it")
        unit.resolve(EventKind.RELEASED, number, {})
    elif state == OPEN:
        unit.resolve(EventKind.EXPIRED, number, {})
        conclude(unit)
    elif state in (TOLD, FAILED, LATE):
        raise _conflict(unit, number, "has a result and cannot be released")


def expire(unit: "UnitOfWork", trial: Trial | str) -> str:
    """Declare a place missing now whose time has run out, as the next ask would; "repeated" if it was."""
    number = number_of(unit, trial)
    state = unit.projection.state[number]
    if state in (EXPIRED, LATE):
        return "repeated"
    if state != OPEN:
        raise _conflict(unit, number, "is not open")
    if unit.in_time(number):
        until = moment(unit.projection.open[number]).isoformat(timespec="seconds")
        raise _conflict(unit, number, f"is not overdue: it has until {until}")
    unit.resolve(EventKind.EXPIRED, number, {})
    conclude(unit)
    return "expired"


def correct(unit: "UnitOfWork", trial: Trial | str, values: Any, reason: str) -> str:
    """Other values for a counted result, while its pass is not folded; later only a note of them."""
    number = number_of(unit, trial)
    projection = unit.projection
    new = projection.spec.checked(values)
    if projection.state[number] != TOLD:
        raise _conflict(unit, number, "has no counted result to correct")
    arm = projection.arm_of(number)
    is_folded = not projection.spec.is_list and projection.pass_of[number] < unit.replay.policy.folded
    if projection.end is not None or is_folded:
        text = "a correction that came too late to count"
        unit.append(EventKind.NOTE, {"text": text, "values": new, "reason": reason}, number, arm)
        return "noted"
    if all(value is None for value in new.values()):
        raise ConflictError("a correction needs a value: what was not measured cannot be declared later")
    if projection.exact_columns:  # one may be corrected while no other trial of the arm has told it
        _check_exact(projection, number, new, projection.exact_elsewhere(number))
    unit.append(EventKind.CORRECTED, {"values": new, "reason": reason}, number, arm)
    conclude(unit)
    return "corrected"


def end(unit: "UnitOfWork", reason: str) -> None:
    """The end by hand, with the best guess of now; an answer that was due, but not noted, is kept instead."""
    if unit.projection.end is not None:
        raise StudyFinished(f"study {unit.projection.spec.name!r} has ended before")
    settle(unit)
    if unit.projection.end is None:
        unit.append(EventKind.ENDED, {**ended(unit.replay, reason), "digest": unit.digest()})
