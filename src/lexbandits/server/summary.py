"""A study in one piece of JSON whose size depends on its arms and objectives, never on its trials."""

import math
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import TimeoutError, wait
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any

import numpy as np

from lexbandits.picture.picture import Picture
from lexbandits.picture.shown import Arm
from lexbandits.picture.tally import Tally, tally_of
from lexbandits.printable import plain
from lexbandits.server.rooms import Room, Rooms
from lexbandits.server.schemas import EventOut, Glance, TrialRow, TrialRows, WorkerOut
from lexbandits.study.errors import StorageBusyError, StudyError, UnknownStudyError
from lexbandits.study.record.answers import status_of
from lexbandits.study.record.events import KINDS, Event
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.trials import OPEN, STATES
from lexbandits.study.spec import duration
from lexbandits.study.storage.contract import LostConnectionError, StudyRow
from lexbandits.study.study import Study
from lexbandits.study.trial import moment

PATIENCE = 1.0  # seconds that a list of studies waits for those that take long
LATEST = 20  # events
MOST_WORKERS = 50  # those heard of last
COMMON = ("asked", "told", "told_part")  # kinds that are counted rather than listed
ENDS = ("finished", "ended")


def when(at: float) -> str | None:
    """A time for JSON."""
    return None if math.isnan(at) else moment(at).isoformat(timespec="milliseconds")


def event_words(event: Event) -> EventOut:
    """An event for JSON."""
    return EventOut(**{**event._asdict(), "at": when(event.at), "seconds": event.at})


def _brief(event: Event) -> EventOut:
    """An event without what could be long: the question, imported values, certificates."""

    def is_short(value: Any) -> bool:
        if isinstance(value, list):
            return len(value) <= LATEST and all(isinstance(each, (str, int, float)) for each in value)
        return not isinstance(value, dict) or all(
            isinstance(v, (int, float, type(None))) for v in value.values()
        )

    return replace(event_words(event), payload={key: v for key, v in event.payload.items() if is_short(v)})


def summary_of(room: Room) -> tuple[str, dict[str, Any]]:
    """Its ETag, which changes when anything in it does, and the summary; what has run out is noted first."""
    with room.reading() as study:
        fold = study._journal.fold()
        unsettled = fold.ledger.end is None and study._journal.is_unsettled(fold)
    if unsettled:
        with suppress(StudyError):  # who looks is not kept from looking
            room.settle()
    with room.reading() as study:
        fold = study._journal.fold()
        now, leases = room.reads.clock(room.row.id)
        overdue = sum(leases.get(number, until) <= now for number, until in fold.ledger.open.items())
        # seq alone would not do: heartbeats and the clock leave no event, a name may be used again, and a
        # restored backup may have grown to the same seq
        held = zlib.crc32(repr((fold.ledger.at, sorted(leases.items()))).encode())
        tag = f'"{fold.ledger.seq}-{room.row.nonce[:8]}-{overdue}-{held:08x}"'
        if room.memory.get("tag") != tag:
            events = latest_events(room, fold)
            room.memory |= {"tag": tag, "summary": _summary(room, study, fold, now, leases, events)}
        return tag, room.memory["summary"]


def glances_at(rooms: Rooms, rows: Sequence[StudyRow]) -> list[Glance]:
    """Studies in a list of all, which waits for none of them: who takes long stands there as last seen."""
    asked = [(room, room.glance(glance_at)) for room in map(rooms.open, rows)]
    wait([job for _, job in asked], PATIENCE)
    found = []
    for room, job in asked:
        try:
            glance = job.result(0)
        except TimeoutError:
            glance = room.glanced or _named(room, "busy", "Being computed")
        except UnknownStudyError:  # deleted meanwhile
            continue
        room.glanced = glance
        found.append(glance)
    return found


def glance_at(room: Room) -> Glance:
    """A study in a list of all; one that this version cannot read stands there by its name."""
    try:
        _, whole = summary_of(room)
    except (UnknownStudyError, StorageBusyError, LostConnectionError):
        raise
    except StudyError:
        return _named(room, "unreadable", "Unreadable")
    answer, objectives = whole["answer"], whole["objectives"]
    told = {
        **whole,
        **{key: answer[key] for key in ("certified", "flags", "candidates")},
        "answer": answer["arm"],
        "arms": len(whole["arms"]),
        "objectives": [objective["name"] for objective in objectives],
        "stages": [objective["state"] for objective in objectives],
    }
    return Glance(**{each.name: told[each.name] for each in fields(Glance)})


def _named(room: Room, state: str, called: str) -> Glance:
    since = when(room.row.created) or ""
    named = {"name": room.row.name, "created": since, "changed": since, "answer": ""}
    empty: dict[str, Any] = {key: [] for key in ("flags", "candidates", "objectives", "stages")}
    numbers = dict.fromkeys(("seq", "results", "open", "overdue", "arms"), 0)
    words = {"state": state, "called": called, "settling": None, "budget": None}
    return Glance(**named, **words, **numbers, **empty, certified=False)  # type: ignore[arg-type]


def latest_events(room: Room, fold: Fold, without: Iterable[str] = ()) -> list[Event]:
    """The last events that are worth a line; the journal is searched once, then only what is new."""
    kinds = (*COMMON, *without)
    ledger, seen, known = room.memory.get(kinds, (None, 0, []))
    if ledger is not fold.ledger:
        seen, known = 0, []  # read anew: a backup may have been restored
    new = room.reads.latest(room.row.id, seen + 1, LATEST, kinds)
    kept = [*(event for event in new if event.seq <= fold.ledger.seq), *known][:LATEST]
    room.memory[kinds] = fold.ledger, fold.ledger.seq, kept
    return kept


def _end(room: Room, fold: Fold) -> float:
    """When it ended: of an end that nobody has recorded yet, the last event."""
    if fold.ledger.end is None:
        return fold.ledger.at
    (event,) = room.reads.latest(room.row.id, 1, 1, [kind for kind in KINDS if kind not in ENDS])
    return event.at


def _summary(
    room: Room, study: Study, fold: Fold, now: float, leases: dict[int, float], events: Sequence[Event]
) -> dict[str, Any]:
    ledger, spec, picture = fold.ledger, fold.ledger.spec, Picture.of_fold(fold, study)
    status, tally = status_of(fold, now, leases).as_json(), tally_of(fold)
    status["waiting_for"] = status["waiting_for"][:LATEST]
    status["settling"] = status["objective"]
    if status["state"] == "finished":  # though nobody may have recorded it yet
        status["reason"] = status["reason"] or picture.answer.reason
    arms = {arm.name: arm for arm in picture.arms}
    return {
        **status,
        "called": picture.pill,
        "created": when(room.row.created),
        "changed": when(ledger.at),
        "ended": when(_end(room, fold)) if status["state"] == "finished" else None,
        "seq": ledger.seq,
        "delta": spec.delta,
        "lease": duration(spec.lease),
        "items": ledger.n_items,
        "max_arms": spec.max_arms,
        "answer": {**picture.answer.as_json(), "said": list(picture.said)},
        "headline": picture.headline,
        "open_question": picture.open,
        "objectives": [{**vars(rung), "entered": list(rung.entered)} for rung in picture.objectives],
        "arms": [_arm(arms[name], picture, tally) for name in ledger.arm_names],
        "leader": ledger.arm_names[fold.policy.recommendation],
        "differences": list(picture.certificate),
        "events": [_brief(event) for event in events],
        "workers": _workers(fold, leases, tally),
        "more_workers": max(0, len(ledger.workers) - MOST_WORKERS),
    }


def _arm(arm: Arm, picture: Picture, tally: Tally) -> dict[str, Any]:
    """An arm for JSON; `left` says when, on what and against whom it left (arm − rival), if it did."""
    cells = {name: vars(cell) for name, cell in arm.objectives.items()}
    words = {**vars(arm), "exit": vars(arm.exit), "objectives": cells, "left": None}
    if arm.exit.after is not None:
        left = {"objective": arm.exit.objective, "results": arm.exit.after, "rival": arm.exit.rival}
        words["left"] = {**left, "at": when(tally.reached(arm.exit.after)), **picture.behind(arm)}
    return words


# --- trials


def trial_rows(fold: Fold, leases: dict[int, float], state: str | None, since: int, limit: int) -> TrialRows:
    """Up to `limit` trials from number `since` on, and the number to go on from."""
    ledger = fold.ledger
    numbers: Sequence[int] = range(since, len(ledger))
    if state is not None:
        found = np.flatnonzero(ledger.column("state")[since:] == STATES.index(state))
        numbers = (found[: limit + 1] + since).tolist()
    rows = [trial_row(fold, leases, number) for number in numbers[:limit]]
    return TrialRows(trials=rows, next=numbers[limit] if len(numbers) > limit else None)


def trial_row(fold: Fold, leases: dict[int, float], number: int) -> TrialRow:
    """A trial on record."""
    ledger = fold.ledger
    until = ledger.until[number]
    if ledger.state[number] == OPEN:
        until = leases.get(number, ledger.open[number])
    told = zip(ledger.spec.names, ledger.told_values(number), strict=True)
    return TrialRow(
        number=number,
        id=ledger.id_of(number),
        arm=ledger.arm_of(number),
        item=ledger.item_id(ledger.pass_of[number]),
        state=STATES[ledger.state[number]],
        worker=ledger.worker_of(number),
        asked=when(ledger.asked[number]) or "",
        until=when(until),
        resolved=when(ledger.resolved[number]),
        values={name: plain(value) for name, value in told},
    )


# --- workers


def _workers(fold: Fold, leases: dict[int, float], tally: Tally) -> list[WorkerOut]:
    """Those heard of last: what they hold, what they told, and since when they are silent."""
    ledger = fold.ledger
    holding: dict[int, list[float]] = {}
    for number, until in ledger.open.items():
        holding.setdefault(ledger.worker[number], []).append(leases.get(number, until))
    rows = []
    for index in np.argsort(-tally.heard, kind="stable")[:MOST_WORKERS].tolist():
        held = holding.get(index, [])
        rows.append(
            WorkerOut(
                name=ledger.workers[index],
                open=len(held),
                resolved=int(tally.resolved[index]),
                heard=when(float(tally.heard[index])),
                until=when(min(held)) if held else None,
            )
        )
    return rows
