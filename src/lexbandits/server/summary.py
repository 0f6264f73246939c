"""A study in one piece of JSON whose size depends on its arms and objectives, never on its trials."""

import math
import zlib
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

import numpy as np

from lexbandits.picture.draw import called
from lexbandits.server.rooms import Room
from lexbandits.server.tally import Tally, tally_of
from lexbandits.study.errors import StorageBusyError, StudyError, UnknownStudyError
from lexbandits.study.record.answers import (
    Answer,
    answer_of,
    certificate_of,
    flags_said,
    plain,
    settling,
    status_of,
    trial_id,
)
from lexbandits.study.record.asking import settle
from lexbandits.study.record.events import KINDS, Event
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.ledger import EXPIRED, FAILED, LATE, OPEN, STATES
from lexbandits.study.spec import duration
from lexbandits.study.storage.contract import LostConnectionError
from lexbandits.study.trial import moment

LATEST = 20  # events
WORKERS = 50
COUNTED = {"open": OPEN, "failed": FAILED, "expired": EXPIRED, "late": LATE}
COMMON = ("asked", "told")  # kinds that are counted rather than listed
ENDS = ("finished", "ended")


def when(at: float) -> str | None:
    """A time for JSON."""
    return None if math.isnan(at) else _iso(moment(at))


def _iso(time: datetime) -> str:
    return time.isoformat(timespec="milliseconds")


def event_words(event: Event) -> dict[str, Any]:
    """An event for JSON."""
    return {**event._asdict(), "at": when(event.at), "seconds": event.at}


def _brief(event: Event) -> dict[str, Any]:
    """An event without what could be long: the question, imported values, certificates."""

    def is_short(value: Any) -> bool:
        if isinstance(value, list):
            return len(value) <= LATEST and all(isinstance(each, (str, int, float)) for each in value)
        return not isinstance(value, dict) or all(
            isinstance(v, (int, float, type(None))) for v in value.values()
        )

    return {**event_words(event), "payload": {key: v for key, v in event.payload.items() if is_short(v)}}


def summary_of(room: Room) -> tuple[str, dict[str, Any]]:
    """Its ETag, which changes when anything in it does, and the summary; what has run out is noted first."""
    with room.reading() as study:
        fold = study._journal.fold()
        unsettled = fold.ledger.end is None and study._is_unsettled(fold)
    if unsettled:
        with suppress(StudyError):  # who looks is not kept from looking
            for work in room.change(lambda study: study._journal.transact(settle)):
                work.outcome()
    with room.reading() as study:
        fold = study._journal.fold()
        now, leases = room.reads.clock(room.row.id)
        overdue = sum(leases.get(number, until) <= now for number, until in fold.ledger.open.items())
        # seq alone would not do: heartbeats and the clock leave no event, a name may be used again, and a
        # restored backup may have grown to the same seq
        held = zlib.crc32(repr((fold.ledger.at, sorted(leases.items()))).encode())
        tag = f'"{fold.ledger.seq}-{room.row.nonce[:8]}-{overdue}-{held:08x}"'
        if room.memory.get("tag") != tag:
            events = _latest(room, fold)
            room.memory |= {"tag": tag, "summary": _summary(room, fold, now, leases, events)}
        return tag, room.memory["summary"]


def glance_at(room: Room) -> dict[str, Any]:
    """A study in a list of all; one that this version cannot read stands there by its name."""
    try:
        _, whole = summary_of(room)
    except (UnknownStudyError, StorageBusyError, LostConnectionError):
        raise
    except StudyError:
        return _unreadable(room)
    answer, keys = (
        whole["answer"],
        ("name", "called", "created", "seq", "state", "settling", "results", "budget", "open"),
    )
    return {
        **{key: whole[key] for key in (*keys, "overdue", "changed")},
        "answer": answer["arm"],
        "certified": answer["certified"],
        "flags": answer["flags"],
        "candidates": answer["candidates"],
        "arms": len(whole["arms"]),
        "objectives": [objective["name"] for objective in whole["objectives"]],
    }


def _unreadable(room: Room) -> dict[str, Any]:
    numbers = dict.fromkeys(("seq", "results", "open", "overdue", "arms"), 0)
    return {
        **numbers,
        "name": room.row.name,
        "created": when(room.row.created),
        "changed": when(room.row.created),
        "state": "unreadable",
        "called": "Unreadable",
        "settling": None,
        "budget": None,
        "answer": "",
        "certified": False,
        "flags": [],
        "candidates": [],
        "objectives": [],
    }


def _latest(room: Room, fold: Fold) -> list[Event]:
    """The last events that are worth a line; the journal is searched once, then only what is new."""
    ledger, seen, known = room.memory.get("latest", (None, 0, []))
    if ledger is not fold.ledger:
        seen, known = 0, []  # read anew: a backup may have been restored
    new = room.reads.latest(room.row.id, seen + 1, LATEST, COMMON)
    kept = [*(event for event in new if event.seq <= fold.ledger.seq), *known][:LATEST]
    room.memory["latest"] = fold.ledger, fold.ledger.seq, kept
    return kept


def _end(room: Room, fold: Fold) -> float:
    """When it ended: of an end that nobody has recorded yet, the last event."""
    if fold.ledger.end is None:
        return fold.ledger.at
    (event,) = room.reads.latest(room.row.id, 1, 1, [kind for kind in KINDS if kind not in ENDS])
    return event.at


def _summary(
    room: Room, fold: Fold, now: float, leases: dict[int, float], events: Sequence[Event]
) -> dict[str, Any]:
    ledger, spec = fold.ledger, fold.ledger.spec
    answer, status = answer_of(fold), status_of(fold, now, leases).as_json()
    tally = tally_of(ledger, room.memory)
    status["waiting_for"] = status["waiting_for"][:LATEST]
    status["settling"] = status["objective"]
    if status["state"] == "finished":  # though nobody may have recorded it yet
        status["reason"] = status["reason"] or answer.reason
    return {
        **status,
        "called": called(status["state"], answer),
        "created": when(room.row.created),
        "changed": when(ledger.at),
        "ended": when(_end(room, fold)) if status["state"] == "finished" else None,
        "seq": ledger.seq,
        "delta": spec.delta,
        "lease": duration(spec.lease),
        "items": None if ledger.drawn is None else len(ledger.imported_items) + len(ledger.drawn),
        "max_arms": spec.max_arms,
        "answer": {**answer.as_json(), "said": _said(fold, answer)},
        "objectives": _objectives(fold, answer),
        "arms": _arms(fold, answer, tally),
        "leader": ledger.arm_names[fold.policy.recommendation],
        "differences": list(certificate_of(fold)),
        "events": [_brief(event) for event in events],
        "workers": _workers(fold, leases, tally),
    }


def _said(fold: Fold, answer: Answer) -> list[str]:
    """What must be known besides, in sentences; of an end by hand its reason first."""
    by_hand = fold.ledger.end is not None and not fold.policy.finished
    return [*([answer.reason] if by_hand else []), *flags_said(answer)]


# --- trials


def trial_rows(
    fold: Fold, leases: dict[int, float], state: str | None, since: int, limit: int
) -> tuple[list[dict[str, Any]], int | None]:
    """Up to `limit` trials from number `since` on, and the number to go on from."""
    ledger, _ = fold.ledger, fold.policy  # which knows whose results are void
    numbers: Sequence[int] = range(since, len(ledger))
    if state is not None:
        found = np.flatnonzero(ledger.column("state")[since:] == STATES.index(state))
        numbers = (found[: limit + 1] + since).tolist()
    rows = [_trial_row(fold, leases, number) for number in numbers[:limit]]
    return rows, numbers[limit] if len(numbers) > limit else None


def _trial_row(fold: Fold, leases: dict[int, float], number: int) -> dict[str, Any]:
    ledger = fold.ledger
    state = STATES[ledger.state[number]]
    if state == "told" and fold.is_void(ledger.place[number]):
        state = "void"
    worker, until = ledger.worker[number], ledger.until[number]
    if ledger.state[number] == OPEN:
        until = leases.get(number, ledger.open[number])
    told = zip(ledger.spec.names, ledger.told_values(number), strict=True)
    return {
        "number": number,
        "id": trial_id(fold, number),
        "arm": ledger.arm_names[ledger.arm[number]],
        "item": ledger.item(ledger.place[number]),
        "state": state,
        "worker": ledger.workers[worker] if worker >= 0 else None,
        "asked": when(ledger.asked[number]),
        "until": when(until),
        "resolved": when(ledger.resolved[number]),
        "values": {name: plain(value) for name, value in told},
    }


# --- objectives


def _objectives(fold: Fold, answer: Answer) -> list[dict[str, Any]]:
    ledger = fold.ledger
    names = [ledger.spec.names[column] for column in ledger.order]
    current = settling(fold)
    rows = []
    for position, column in enumerate(ledger.order):
        objective = ledger.spec.objectives[column]
        if current is not None:
            now = names.index(current)
            state = "settled" if position < now else "settling" if position == now else "later"
        elif _needed(fold, answer, column):  # "enough": the answer was certain before it was settled
            state = "settled" if position < _settled_by_rule(fold) else "enough"
        else:
            state = "not needed"
        bounds = [plain(bound) for bound in objective.bounds]
        rows.append(
            {
                "name": objective.name,
                "direction": objective.direction,
                "unit": objective.unit,
                "tolerance": objective.tolerance_in_unit,
                "resolution": objective.resolution_in_unit,
                "target": objective.target,
                "noise": objective.noise if isinstance(objective.noise, str) else list(objective.noise),
                "bounds": None if None in bounds else bounds,
                "state": state,
            }
        )
    return rows


def _settled_by_rule(fold: Fold) -> int:
    """How many objectives, in their order, were settled for every arm that reached them."""
    order, now = fold.ledger.order, fold.policy.objective
    return order.index(now) if now in order else len(order)


def _needed(fold: Fold, answer: Answer, column: int) -> bool:
    """Whether an answer rests on this objective."""
    objective = fold.ledger.spec.objectives[column]
    left_here = any(elimination.objective == column for elimination in fold.policy.eliminations)
    seen = any(row["objective"] == objective.name and row["verdict"] != "open" for row in answer.certificate)
    return left_here or seen or objective.target is not None


# --- arms


def _arms(fold: Fold, answer: Answer, tally: Tally) -> list[dict[str, Any]]:
    ledger, policy = fold.ledger, fold.policy
    gone = {elimination.arm: elimination for elimination in policy.eliminations}
    means, counts, intervals = policy.means, policy.counts, policy.intervals
    differences: Any = policy.differences if gone else None
    rows = []
    for index, arm in enumerate(ledger.arms):
        name = arm["name"]
        why = ledger.withdrawn.get(name)
        where = "withdrawn" if why is not None else "left" if index in gone else "candidate"
        measured = {}
        for column in ledger.order:
            objective = ledger.spec.objectives[column]
            low, high = sorted((objective.sign * intervals[index, column]).tolist())
            mean = objective.sign * float(means[index, column])
            measured[objective.name] = {
                "results": int(counts[index, column]),
                "mean": plain(mean),
                "low": plain(low),
                "high": plain(high),
            }
        rows.append(
            {
                "name": name,
                "words": {key: value for key, value in arm.items() if key != "name"},
                "state": "answer" if name == answer.arm and where != "withdrawn" else where,
                "results": ledger.measured[index],
                **{word: int(tally.by_arm[index, state]) for word, state in COUNTED.items()},
                "objectives": measured,
                "left": _left(fold, gone[index], differences, tally) if where == "left" else None,
                "withdrawn": why,
            }
        )
    return rows


def _left(fold: Fold, elimination: Any, differences: Any, tally: Tally) -> dict[str, Any]:
    """When, on what and against whom an arm left, and how far it is behind (arm − rival).

    Without a rival it missed the objective's target.
    """
    ledger = fold.ledger
    column, rival = elimination.objective, elimination.rival
    objective = ledger.spec.objectives[column]
    results = int(elimination.round)
    words = {
        "objective": objective.name,
        "results": results,
        "at": when(tally.reached(results)),
        "rival": None,
    }
    if rival >= 0:
        low, high = sorted((objective.sign * differences[elimination.arm, rival, column]).tolist())
        words |= {"rival": ledger.arm_names[rival], "low": plain(low), "high": plain(high)}
    return words


# --- workers


def _workers(fold: Fold, leases: dict[int, float], tally: Tally) -> list[dict[str, Any]]:
    """Those heard of last: what they hold, what they told, and since when they are silent."""
    ledger = fold.ledger
    holding: dict[int, list[float]] = {}
    for number, until in ledger.open.items():
        holding.setdefault(ledger.worker[number], []).append(leases.get(number, until))
    rows = []
    for index in np.argsort(-tally.heard, kind="stable")[:WORKERS].tolist():
        held = holding.get(index, [])
        rows.append(
            {
                "name": ledger.workers[index],
                "open": len(held),
                "resolved": int(tally.resolved[index]),
                "heard": when(float(tally.heard[index])),
                "until": when(min(held)) if held else None,
            }
        )
    return rows
