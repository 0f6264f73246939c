"""Handing out trials and taking their results, inside one transaction."""

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lexbandits.study.errors import (
    ConflictError,
    StudyError,
    StudyFinished,
    StudyPaused,
    StudyWaiting,
    UnknownTrialError,
)
from lexbandits.study.record.answers import ended, plain_answer
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.ledger import Ledger
from lexbandits.study.record.rules import conclude, settle
from lexbandits.study.record.trials import EXPIRED, FAILED, LATE, OPEN, RELEASED, TOLD
from lexbandits.study.storage.contract import Lease, Request
from lexbandits.study.trial import Trial, moment

if TYPE_CHECKING:
    from lexbandits.study.record.journal import Turn

Told = tuple[Trial | str, Any]
Exchanged = tuple[list[str], list[Trial], StudyError | None]  # outcomes, trials, why there are none


def exchange(
    turn: "Turn",
    results: Sequence[Told],
    n: int,
    lease: float | None = None,
    worker: str | None = None,
    request: str | None = None,
) -> Exchanged:
    """Take results and hand out up to n trials."""
    outcomes = take_all(turn, results) if results else []
    held = turn.ledger.spec.lease if lease is None else lease
    trials = hand_out(turn, n, held, worker, request) if n else []
    return outcomes, trials, nothing_to_measure(turn) if n and not trials else None


# --- asking


def hand_out(turn: "Turn", n: int, lease: float, worker: str | None, request: str | None) -> list[Trial]:
    """Up to n trials; the same ones again for a request that was answered before."""
    if request is not None and (known := turn.request(request)) is not None:
        return [_given(turn, number) for number in range(known.first, known.first + known.size)]
    settle(turn)
    if turn.fold.state != "measuring":
        return []
    ledger, first, until = turn.ledger, len(turn.ledger), turn.now + lease
    trials: list[Trial] = []
    for number, (arm, pass_) in enumerate(turn.fold.next_places(n, turn.now), first):
        payload = {"pass": pass_, "nonce": int.from_bytes(os.urandom(4)), "until": until}
        if ledger.spec.is_list:
            payload["item"] = ledger.place_at(pass_)
            payload |= {"again": True} if (arm, pass_) in ledger.again else {}
        turn.append("asked", payload, number, ledger.arm_names[arm], worker)
        turn.leases.append(Lease(number, worker, until, lease))
        trials.append(_given(turn, number, until))
    if request is not None and trials:
        turn.new_requests.append(Request(request, first, len(trials)))
    return trials


def _given(turn: "Turn", number: int, until: float | None = None) -> Trial:
    """A trial as it is handed out, now or again: then with the time that heartbeats have added."""
    ledger = turn.ledger
    if until is None:
        until = turn.until(number) if number in ledger.open else ledger.until[number]
    pass_ = ledger.pass_of[number]
    trial = Trial(number, ledger.id_of(number), ledger.arm_of(number), ledger.item(pass_), moment(until))
    return trial if ledger.spec.repeats == 1 else trial.as_repeat(ledger.repeat(pass_))


def nothing_to_measure(turn: "Turn") -> StudyError:
    """Why an ask was given nothing."""
    fold = turn.fold
    name, state = fold.ledger.spec.name, fold.state
    if state == "paused":
        return StudyPaused(f"study {name!r} is paused: {fold.ledger.paused}")
    if state == "measuring":
        return _waiting(turn)
    answer = plain_answer(fold)
    return StudyFinished(f"study {name!r}: {state}; its answer is {answer.arm!r}, {answer.reason}")


def _waiting(turn: "Turn") -> StudyWaiting:
    """For whom, and until when at most."""
    ledger, first = turn.ledger, turn.fold.first_awaited()
    told = len(turn.fold.told_waiting())
    until, worker = moment(turn.until(first)), ledger.worker_of(first)
    whose = f"trial {first}" if worker is None else f"the trial of {worker}"
    many = "1 result waits" if told == 1 else f"{told:,} results wait"
    text = f"nothing to measure before {until:%H:%M:%S} UTC: {many} for {whose} ({ledger.arm_of(first)})"
    return StudyWaiting(f"study {ledger.spec.name!r}: {text}", until)


# --- telling


def number_of(turn: "Turn", trial: Trial | str) -> int:
    """The number of a trial that this study handed out."""
    identity = trial.id if isinstance(trial, Trial) else trial
    ledger = turn.ledger
    if identity is None:
        raise UnknownTrialError("this trial was handed out when there was nothing to measure: it is not told")
    if not isinstance(identity, str):
        raise TypeError(f"a trial is what ask gave, or its id, got {trial!r}")
    digits = identity.partition("-")[0]
    if digits.isdecimal() and len(digits) < 18 and int(digits) < len(ledger):
        number = int(digits)
        if identity == ledger.id_of(number) and not math.isnan(ledger.until[number]):
            return number
    raise UnknownTrialError(f"study {ledger.spec.name!r} did not hand out a trial {identity!r}")


def take_all(turn: "Turn", results: Sequence[Told]) -> list[str]:
    """Take results: all are checked before the first is recorded."""
    spec = turn.ledger.spec
    checked = [(number_of(turn, trial), spec.checked(values)) for trial, values in results]
    outcomes = [_take(turn, number, values) for number, values in checked]
    new = [i for i, outcome in enumerate(outcomes) if outcome == "recorded"]
    for i, worth in zip(new, _worth(turn.fold, [checked[i][0] for i in new]), strict=True):
        outcomes[i] = worth
    conclude(turn)
    return outcomes


def take(turn: "Turn", trial: Trial | str, values: Any, more: bool = False) -> str:
    """Take one result; or with `more` what is known of it so far, unless that is all."""
    if more and (outcome := _take_part(turn, number_of(turn, trial), turn.ledger.spec.checked(values))):
        return outcome
    return take_all(turn, [(trial, values)])[0]


def record(turn: "Turn", trial: Trial | str, values: Any, more: bool = False) -> str:
    """Take one result without looking at what it means."""
    number, checked = number_of(turn, trial), turn.ledger.spec.checked(values)
    return (_take_part(turn, number, checked) if more else "") or _take(turn, number, checked)


def _take_part(turn: "Turn", number: int, values: dict[str, float | None]) -> str:
    """ "part", "repeated" or "after the end"; "" if it is no part: complete, late, or of no open trial.

    It decides nothing yet, and nobody can be rid of it: a place has one value of each objective, for good.
    """
    ledger = turn.ledger
    if ledger.state[number] != OPEN or not turn.in_time(number):
        return ""
    given = {name: value for name, value in values.items() if value is not None}
    if not given:
        raise StudyError("more=True takes what is known so far: at least one value")
    known = _told_so_far(turn, number, values)
    if all(known.get(name) is not None for name in ledger.spec.names):
        return ""
    if ledger.exact:
        _check_exact(ledger, number, known, ledger.exact_of(ledger.arm[number]))
    before = dict(zip(ledger.spec.names, ledger.told_values(number), strict=True))
    new = {name: value for name, value in given.items() if before[name] != value}
    if not new:
        return "repeated"
    turn.append("told_part", new, number, ledger.arm_of(number), ledger.worker_of(number))
    return "part" if ledger.end is None else "after the end"


def _told_so_far(turn: "Turn", number: int, values: dict[str, float | None]) -> dict[str, float | None]:
    """These values, with those that were told of the trial before."""
    part = turn.ledger.parts.get(number)
    if part is None:
        return values
    joined = dict(values)
    for name, known in zip(turn.ledger.spec.names, part, strict=True):
        if known == known:
            if joined.get(name) not in (None, known):
                raise _conflict(turn, number, f"was told {name} {known:g} before, got {joined[name]:g}")
            joined[name] = known
    return joined


def _take(turn: "Turn", number: int, values: dict[str, float | None]) -> str:
    ledger = turn.ledger
    state = ledger.state[number]
    if ledger.parts and state in (OPEN, EXPIRED):
        values = _told_so_far(turn, number, values)
    if state == OPEN:
        if not turn.in_time(number):
            turn.resolve("expired", number, {})
            return _take_late(turn, number, values)
        if ledger.exact:
            _check_exact(ledger, number, values, ledger.exact_of(ledger.arm[number]))
        over = ledger.end is not None
        turn.resolve("told", number, values)
        if ledger.state[number] == LATE:  # its place, asked again, was filled meanwhile
            return "late"
        return "after the end" if over else "recorded"
    if state == EXPIRED:
        return _take_late(turn, number, values)
    if state == RELEASED:
        raise _conflict(turn, number, "was released; its place is asked again as another")
    vector = [math.nan if (value := values.get(name)) is None else value for name in ledger.spec.names]
    on_record = ledger.told_values(number)
    for known in (on_record, ledger.first_told.get(number, on_record)):
        if all(a == b or (a != a and b != b) for a, b in zip(vector, known, strict=True)):
            return "repeated"
    if state == FAILED and all(value != value for value in on_record):
        raise _conflict(turn, number, f"is on record as failed, got {values!r}")
    before = {n: None if v != v else v for n, v in zip(ledger.spec.names, on_record, strict=True)}
    raise _conflict(turn, number, f"was told {before!r} before, got {values!r}")


def _conflict(turn: "Turn", number: int, words: str) -> ConflictError:
    return ConflictError(f"trial {turn.ledger.id_of(number)} {words}")


def _take_late(turn: "Turn", number: int, values: dict[str, float | None]) -> str:
    """A result after its time: on a list it fills its hole, elsewhere it never counts."""
    over = turn.ledger.end is not None
    turn.resolve("told_late", number, values)
    if turn.ledger.state[number] == LATE:
        return "late"
    return "after the end" if over else "recorded"


def _worth(fold: Fold, numbers: Sequence[int]) -> list[str]:
    """What results that were just recorded are worth."""
    if not fold.ledger.open:
        return ["counted"] * len(numbers)
    return ["waiting" if waits else "counted" for waits in fold.waiting(numbers)]


def _check_exact(
    ledger: Ledger, number: int, values: dict[str, float | None], known: dict[int, float]
) -> None:
    for column, one in known.items():
        objective = ledger.spec.objectives[column]
        value = values.get(objective.name)
        if value is not None and value != one:
            arm = ledger.arm_of(number)
            raise ConflictError(f"{objective} is exact and arm {arm!r} has {one:g}, got {value:g}")


def fail(turn: "Turn", trial: Trial | str, reason: str, interrupted: bool = False) -> str:
    """Record that a trial could not be measured, or was begun and broken off."""
    number = number_of(turn, trial)
    ledger, state = turn.ledger, turn.ledger.state[number]
    if state == OPEN:
        over, in_time = ledger.end is not None, turn.in_time(number)
        words = {"reason": reason, **({"interrupted": True} if interrupted else {})}
        turn.resolve("failed" if in_time else "expired", number, words if in_time else {})
        outcome = "late" if not in_time else "after the end" if over else _worth(turn.fold, [number])[0]
        conclude(turn)
        return outcome
    if state == FAILED:
        return "repeated"
    if state in (EXPIRED, LATE):
        return "late"
    word = "told" if state == TOLD else "released"
    raise _conflict(turn, number, f"was {word} before, and cannot fail now")


def release(turn: "Turn", trial: Trial | str) -> None:
    """Give a trial back that nobody has begun to measure; nothing to do if it was released before.

    What was begun is failed instead: to measure it again would choose which values count. After its time
    it expires, whether or not anybody had noticed, for the same reason.
    """
    number = number_of(turn, trial)
    state = turn.ledger.state[number]
    if state == OPEN and turn.in_time(number):
        if number in turn.ledger.parts:
            one = f"part of trial {turn.ledger.id_of(number)}"
            raise ConflictError(f"{one} was told, and it cannot be released: tell the rest, or fail it")
        turn.resolve("released", number, {})
    elif state == OPEN:
        turn.resolve("expired", number, {})
        conclude(turn)
    elif state in (TOLD, FAILED, LATE):
        raise _conflict(turn, number, "has a result and cannot be released")


def expire(turn: "Turn", trial: Trial | str) -> str:
    """Declare a place missing now whose time has run out, as the next ask would; "repeated" if it was."""
    number = number_of(turn, trial)
    state = turn.ledger.state[number]
    if state in (EXPIRED, LATE):
        return "repeated"
    if state != OPEN:
        raise _conflict(turn, number, "is not open")
    if turn.in_time(number):
        until = moment(turn.ledger.open[number]).isoformat(timespec="seconds")
        raise _conflict(turn, number, f"is not overdue: it has until {until}")
    turn.resolve("expired", number, {})
    conclude(turn)
    return "expired"


def correct(turn: "Turn", trial: Trial | str, values: Any, reason: str) -> str:
    """Other values for a counted result, while its pass is not folded; later only a note of them."""
    number = number_of(turn, trial)
    ledger = turn.ledger
    new = ledger.spec.checked(values)
    if ledger.state[number] != TOLD:
        raise _conflict(turn, number, "has no counted result to correct")
    arm = ledger.arm_of(number)
    is_folded = not ledger.spec.is_list and ledger.pass_of[number] < turn.fold.policy.folded
    if ledger.end is not None or is_folded:
        text = "a correction that came too late to count"
        turn.append("note", {"text": text, "values": new, "reason": reason}, number, arm)
        return "noted"
    if all(value is None for value in new.values()):
        raise ConflictError("a correction needs a value: what was not measured cannot be declared later")
    if ledger.exact_columns:  # one may be corrected while no other trial of the arm has told it
        _check_exact(ledger, number, new, ledger.exact_elsewhere(number))
    turn.append("corrected", {"values": new, "reason": reason}, number, arm)
    conclude(turn)
    return "corrected"


def end(turn: "Turn", reason: str) -> None:
    """The end by hand, with the best guess of now; an answer that was due, but not noted, is kept instead."""
    if turn.ledger.end is not None:
        raise StudyFinished(f"study {turn.ledger.spec.name!r} has ended before")
    settle(turn)
    if turn.ledger.end is None:
        turn.append("ended", {**ended(turn.fold, reason), "record": turn.digest()})
