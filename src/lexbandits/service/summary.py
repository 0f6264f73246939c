"""A study in one piece of JSON whose size depends on its arms and objectives, never on its trials."""

import math
import zlib
from collections.abc import Iterable, Sequence
from concurrent.futures import TimeoutError, wait
from dataclasses import fields, replace
from typing import Any

import numpy as np

from lexbandits._printable import plain
from lexbandits.service.registry import Answered, OpenStudy, StudyRegistry
from lexbandits.service.schemas import EventOut, ListedStudy, TrialRow, TrialRows, WorkerOut
from lexbandits.study.core.events import Event, EventKind
from lexbandits.study.core.queries import status_of
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import OPEN, STATES
from lexbandits.study.errors import StorageBusyError, StudyError, UnknownStudyError
from lexbandits.study.spec import duration
from lexbandits.study.states import StudyState, TrialState
from lexbandits.study.storage.contract import LostConnectionError, StudyRow
from lexbandits.study.study import Study
from lexbandits.study.trial import moment
from lexbandits.views.study_view import StudyView
from lexbandits.views.trial_counts import Tally, tally_of
from lexbandits.views.view_parts import Arm

PATIENCE = 1.0  # seconds that a list of studies waits, once, for those that take long
LATEST = 20  # events
MOST_WORKERS = 50  # those heard of last
COMMON = (EventKind.ASKED, EventKind.TOLD, EventKind.TOLD_PART)  # kinds that are counted rather than listed
ENDS = (EventKind.FINISHED, EventKind.ENDED)


def when(at: float) -> str | None:
    """A time for JSON."""
    return None if math.isnan(at) else moment(at).isoformat(timespec="milliseconds")


def event_fields(event: Event) -> EventOut:
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

    return replace(event_fields(event), payload={key: v for key, v in event.payload.items() if is_short(v)})


def summary_of(opened: OpenStudy) -> Answered:
    """The summary of a study, with an ETag that changes when anything in it does."""
    with opened.reading(note_due=True) as study:
        return summarized(opened, study)


def summarized(opened: OpenStudy, study: Study) -> Answered:
    """The same of a study that is being read."""
    view = StudyView.of(study)
    projection, (now, leases) = view.estimates.replay.projection, opened.reads.clock(opened.row.id)
    overdue = sum(leases.get(number, until) <= now for number, until in projection.open.items())
    # seq alone would not do: heartbeats and the clock leave no event, a name may be used again, and a
    # restored backup may have grown to the same seq
    held = zlib.crc32(repr((projection.at, sorted(leases.items()))).encode())
    tag = f'"{projection.seq}-{opened.row.nonce[:8]}-{overdue}-{held:08x}"'
    if opened.summary.tag != tag:
        opened.summary = Answered(tag, _summary(opened, view, now, leases))
    return opened.summary


def glances_at(registry: StudyRegistry, rows: Sequence[StudyRow]) -> list[ListedStudy]:
    """Studies in a list of all: who takes long stands there as last seen, and is not waited for again."""
    asked = [(opened, opened.glance(glance_at)) for opened in map(registry.open, rows)]
    wait([job for opened, job in asked if not opened.is_late], PATIENCE)
    found = []
    for opened, job in asked:
        try:
            found.append(job.result(0))
        except TimeoutError:
            opened.is_late = True
            found.append(opened.glanced or _named(opened, StudyState.BUSY, "Being computed"))
        except UnknownStudyError:  # deleted meanwhile
            continue
    return found


def glance_at(opened: OpenStudy) -> ListedStudy:
    """A study in a list of all; one that this version cannot read stands there by its name."""
    try:
        _, whole = summary_of(opened)
    except (UnknownStudyError, StorageBusyError, LostConnectionError):
        raise
    except StudyError:
        return _named(opened, StudyState.UNREADABLE, "Unreadable")
    answer, objectives = whole["answer"], whole["objectives"]
    told = {
        **whole,
        **{key: answer[key] for key in ("certified", "flags", "candidates")},
        "answer": answer["arm"],
        "arms": len(whole["arms"]),
        "objectives": [objective["name"] for objective in objectives],
        "stages": [objective["stage"] for objective in objectives],
    }
    return ListedStudy(**{each.name: told[each.name] for each in fields(ListedStudy)})


def _named(opened: OpenStudy, state: StudyState, badge: str) -> ListedStudy:
    since = when(opened.row.created) or ""
    named = {"name": opened.row.name, "created": since, "changed": since, "answer": ""}
    empty: dict[str, Any] = {key: [] for key in ("flags", "candidates", "objectives", "stages")}
    numbers = dict.fromkeys(("seq", "results", "open", "overdue", "arms"), 0)
    payload = {"state": state, "badge": badge, "settling": None, "budget": None}
    return ListedStudy(**named, **payload, **numbers, **empty, certified=False)  # type: ignore[arg-type]


def latest_events(opened: OpenStudy, replay: Replay, without: Iterable[str] = ()) -> list[Event]:
    """The last events that are worth a line; the journal is searched once, then only what is new."""
    kinds = (*COMMON, *without)
    seen, known = replay.memory.get(kinds, (0, []))
    new = opened.reads.latest(opened.row.id, seen + 1, LATEST, kinds)
    kept = [*(event for event in new if event.seq <= replay.projection.seq), *known][:LATEST]
    replay.memory[kinds] = replay.projection.seq, kept
    return kept


def _end(opened: OpenStudy, replay: Replay) -> float:
    """When it ended: of an end that nobody has recorded yet, the last event."""
    if replay.projection.end is None:
        return replay.projection.at
    (event,) = opened.reads.latest(opened.row.id, 1, 1, [kind for kind in EventKind if kind not in ENDS])
    return event.at


def _summary(opened: OpenStudy, view: StudyView, now: float, leases: dict[int, float]) -> dict[str, Any]:
    replay = view.estimates.replay
    projection, spec = replay.projection, replay.projection.spec
    status, tally = status_of(replay, now, leases).as_json(), tally_of(replay)
    status["waiting_for"] = status["waiting_for"][:LATEST]
    status["settling"] = status["objective"]
    if status["state"] == StudyState.FINISHED:  # though nobody may have recorded it yet
        status["reason"] = status["reason"] or view.answer.reason
    arms = {arm.name: arm for arm in view.arms}
    return {
        **status,
        "badge": view.badge,
        "created": when(opened.row.created),
        "changed": when(projection.at),
        "ended": when(_end(opened, replay)) if status["state"] == StudyState.FINISHED else None,
        "seq": projection.seq,
        "delta": spec.delta,
        "lease": duration(spec.lease),
        "items": projection.n_items,
        "max_arms": spec.max_arms,
        "answer": {**view.answer.as_json(), "messages": list(view.messages)},
        "headline": view.headline,
        "open_question": view.open,
        "objectives": [
            {**vars(objective), "entered": list(objective.entered)} for objective in view.objectives
        ],
        "arms": [_arm(arms[name], view, tally) for name in projection.arm_names],
        "leader": projection.arm_names[replay.policy.recommendation],
        "differences": list(view.certificate),
        "events": [_brief(event) for event in latest_events(opened, replay)],
        "workers": _workers(replay, leases, tally),
        "more_workers": max(0, len(projection.workers) - MOST_WORKERS),
    }


def _arm(arm: Arm, view: StudyView, tally: Tally) -> dict[str, Any]:
    """An arm for JSON; `left` says when, on what and against whom it left (arm − rival), if it did."""
    cells = {name: vars(cell) for name, cell in arm.objectives.items()}
    decision = arm.decision
    payload = {**vars(arm), "decision": vars(decision), "objectives": cells, "left": None}
    if decision.after is not None:
        left = {"objective": decision.objective, "results": decision.after, "rival": decision.rival}
        payload["left"] = {**left, "at": when(tally.reached(decision.after)), **view.behind(arm)}
    return payload


# --- trials


def trial_rows(
    replay: Replay, leases: dict[int, float], state: TrialState | None, since: int, limit: int
) -> TrialRows:
    """Up to `limit` trials from number `since` on, and the number to go on from."""
    projection = replay.projection
    numbers: Sequence[int] = range(since, len(projection))
    if state is not None:
        found = np.flatnonzero(projection.column("state")[since:] == STATES.index(state))
        numbers = (found[: limit + 1] + since).tolist()
    rows = [trial_row(replay, leases, number) for number in numbers[:limit]]
    return TrialRows(trials=rows, next=numbers[limit] if len(numbers) > limit else None)


def trial_row(replay: Replay, leases: dict[int, float], number: int) -> TrialRow:
    """A trial on record."""
    projection = replay.projection
    until = projection.until[number]
    if projection.state[number] == OPEN:
        until = leases.get(number, projection.open[number])
    told = zip(projection.spec.names, projection.told_values(number), strict=True)
    return TrialRow(
        number=number,
        id=projection.id_of(number),
        arm=projection.arm_of(number),
        item=projection.item_id(projection.pass_of[number]),
        state=STATES[projection.state[number]],
        worker=projection.worker_of(number),
        asked=when(projection.asked[number]) or "",
        until=when(until),
        resolved=when(projection.resolved[number]),
        values={name: plain(value) for name, value in told},
    )


# --- workers


def _workers(replay: Replay, leases: dict[int, float], tally: Tally) -> list[WorkerOut]:
    """Those heard of last: what they hold, what they told, and since when they are silent."""
    projection = replay.projection
    holding: dict[int, list[float]] = {}
    for number, until in projection.open.items():
        holding.setdefault(projection.worker[number], []).append(leases.get(number, until))
    rows = []
    for index in np.argsort(-tally.heard, kind="stable")[:MOST_WORKERS].tolist():
        held = holding.get(index, [])
        rows.append(
            WorkerOut(
                name=projection.workers[index],
                open=len(held),
                resolved=int(tally.resolved[index]),
                heard=when(float(tally.heard[index])),
                until=when(min(held)) if held else None,
            )
        )
    return rows
