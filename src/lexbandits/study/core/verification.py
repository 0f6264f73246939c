"""Is the record what it says? Replay it from nothing; compare it with its digests, its ends, its cache."""

import json
import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, groupby
from typing import Any

from lexbandits._validation import difference
from lexbandits.study.core.events import Event, EventKind, chained
from lexbandits.study.core.projection import Projection
from lexbandits.study.core.queries import Answer, ended, recorded
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, IMPORTED, LATE, OPEN, RELEASED
from lexbandits.study.errors import ODD, StudyError
from lexbandits.study.storage.contract import Seal, Storage, StudyRow

ENDS: dict[str, Callable[[Replay, str], dict[str, Any]]] = {
    EventKind.FINISHED: lambda replay, _: recorded(replay),
    EventKind.ENDED: lambda replay, reason: ended(replay, reason.removeprefix("ended by hand: ")),
}
MOST_PROBLEMS = 20  # that are listed


@dataclass(frozen=True)
class Verification:
    """What a replay found. `sha256` is the digest of all events, each chained to those before it."""

    events: int
    trials: int
    problems: tuple[str, ...]
    sha256: str

    @property
    def ok(self) -> bool:
        """Whether the record holds."""
        return not self.problems

    def __bool__(self) -> bool:
        return self.ok


def verify(storage: Storage, row: StudyRow, replay: Replay, digest: str | None = None) -> Verification:
    """Fold a journal from nothing, up to its last seal, and say what does not fit."""
    last = storage.last_seal(row.id)
    found = Chain(storage.seals(row.id), last)
    problems = [f"the database: {damage}" for damage in storage.damage()]
    events = up_to(last.seq, storage.read(row.id, 1))
    try:
        problems += _fold_all(replay, found.follow(events), Projection.from_bytes(storage.cached(row.id)))
    except StudyError as error:
        problems.append(str(error))
    except ODD as error:
        problems.append(f"the policy refuses the record: {type(error).__name__}: {error}")
    found.finish()
    more = next(storage.read(row.id, last.seq + 1, 1), None)
    if more is not None and storage.last_seal(row.id) == last:  # or somebody has just recorded it
        problems.append(f"event {more.seq} was added without a seal")
    projection = replay.projection
    if projection.seq and not problems:
        problems += _check_places(projection) + _check_row(projection, row)
    problems += found.problems + replay.disagreements
    if digest is not None and digest not in found.known:
        problems.append(
            f"no end of this journal has the digest {digest}: it is not the record of that answer"
        )
    shown = dict.fromkeys(problems)
    return Verification(projection.seq, len(projection), tuple(shown)[:MOST_PROBLEMS], found.digest)


class Chain:
    """The digests of a journal, computed anew and compared with those on record."""

    def __init__(self, seals: Iterable[Seal], last: Seal) -> None:
        self.problems: list[str] = []
        self.digest = ""  # of all up to the last seal
        self.known: set[str] = set()  # that an answer may name
        self._seals, self._last = iter(seals), last
        self._seal = next(self._seals, None)
        self._open: list[Event] = []  # since the last seal
        self._events: Iterator[Event] = iter(())

    def follow(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield events as they come, each checked."""
        self._events = iter(events)
        for event in self._events:
            self._take(event)
            yield event

    def _take(self, event: Event) -> None:
        if event.kind in ENDS:
            before = chained(self.digest, self._open)
            self.known.add(before)
            if event.payload.get("digest") != before:
                self.problems.append(
                    f"event {event.seq} names another digest than that of the events before it"
                )
        self._open.append(event)
        while self._seal is not None and self._seal.seq <= event.seq:
            self._compare(self._seal)
            self._seal = next(self._seals, None)

    def _compare(self, seal: Seal) -> None:
        if not self._open or self._open[-1].seq != seal.seq:
            self.problems.append(f"event {seal.seq} is missing: it was sealed")
            self.digest, self._open = seal.digest, [event for event in self._open if event.seq > seal.seq]
            return
        digest = chained(self.digest, self._open)
        if digest != seal.digest:
            first = self._open[0].seq
            which = f"event {seal.seq}" if first == seal.seq else f"one of the events {first} to {seal.seq}"
            self.problems.append(f"{which} is not what was recorded: its digest is another")
        self.digest, self._open = seal.digest, []  # so that later events are compared by themselves
        self.known.add(seal.digest)

    def finish(self) -> None:
        """Check what is left, also after an error."""
        try:
            for _ in self.follow(self._events):
                pass
        except (StudyError, *ODD) as error:
            self.problems.append(str(error))
        if self._seal is not None:
            self.problems.append(f"event {self._last.seq} is missing: it was sealed")


def up_to(seq: int, events: Iterable[Event]) -> Iterator[Event]:
    """Yield events up to a number; those after it are left where they are."""
    for event in events:
        if event.seq > seq:
            return
        yield event
        if event.seq == seq:
            return


def _fold_all(replay: Replay, events: Iterator[Event], cached: Projection | None) -> list[str]:
    """Fold them; where an end was recorded, what the replay would have recorded otherwise."""
    problems: list[str] = []
    if cached is not None:
        problems += _fold_part(replay, up_to(cached.seq, events))
        if replay.projection.seq == cached.seq and replay.projection != cached:
            problems.append(f"the cache of the first {cached.seq} events is not what they say")
    problems += _fold_part(replay, events)
    _ = replay.policy
    return problems


def _fold_part(replay: Replay, events: Iterable[Event]) -> list[str]:
    problems: list[str] = []
    for is_end, part in groupby(events, lambda event: event.kind in ENDS):
        if not is_end:
            replay.apply(part)
            continue
        for event in part:
            problems += _compare(replay, event)
            replay.apply([event])
    return problems


def _compare(replay: Replay, end: Event) -> list[str]:
    """What differs, field by field, but for the digest: the chain compares that."""
    if end.kind == EventKind.FINISHED and not replay.policy.finished:
        return []  # the fold says so
    try:
        told = _plain(Answer.from_json(end.payload).as_json())
        found = _plain(ENDS[end.kind](replay, told["reason"]))
    except (KeyError, TypeError, AttributeError) as error:
        return [f"event {end.seq} records no answer: {type(error).__name__} {error}"]
    told.pop("digest"), found.pop("digest")
    return [
        f"event {end.seq} records other {part} than the replay: "
        f"{difference(told.get(part), found.get(part), part)}"
        for part in dict.fromkeys(chain(told, found))
        if not _same(told.get(part), found.get(part))
    ]


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """As a storage gives it back: lists for tuples."""
    plain: dict[str, Any] = json.loads(json.dumps(fields))
    return plain


def _same(told: Any, found: Any) -> bool:
    """Equal but for the last digits of a number, which another processor may round otherwise."""
    if isinstance(found, dict):
        alike = isinstance(told, dict) and told.keys() == found.keys()
        return alike and all(_same(told[key], found[key]) for key in found)
    if isinstance(found, list):
        return isinstance(told, list) and len(told) == len(found) and all(map(_same, told, found))
    if type(found) is float and type(told) in (int, float):
        return math.isclose(told, found, rel_tol=1e-6, abs_tol=1e-9)
    return type(told) is type(found) and bool(told == found)


def _check_places(projection: Projection) -> list[str]:
    """A place is handed out once, but for retries; an imported row may fill what was lost."""
    empty = (OPEN, RELEASED, FAILED, EXPIRED, LATE)
    asked, filled = [], []
    for number, state in enumerate(projection.state):
        if number not in projection.retries and state not in (RELEASED, IMPORTED):
            asked.append(projection.place(number))
        if state not in empty:
            filled.append(projection.place(number))
    problems = {"a place was handed out twice": asked, "a place has two results": filled}
    return [problem for problem, places in problems.items() if len(set(places)) < len(places)]


def _check_row(projection: Projection, row: StudyRow) -> list[str]:
    """Whether the study is listed under the name that it was given."""
    name = projection.asked_spec.name
    return [] if name == row.name else [f"it is listed as {row.name!r}, but was created as {name!r}"]
