"""The studies that the service has open: for each one who writes, and one who reads beside them."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from lexbandits.server.tokens import opened
from lexbandits.server.writer import GatheringJournal, StudyInTurn, Work
from lexbandits.study.errors import StorageBusyError, UnknownStudyError
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.journal import Journal, Turn
from lexbandits.study.storage.contract import Request, StudyRow
from lexbandits.study.storage.sql import SqlStorage
from lexbandits.study.study import Study

OPEN = 200  # studies
PATIENCE = 20.0  # seconds to wait for others who think about the same study
WRITERS, READERS = 8, 4  # connections to the storage
OUTCOMES = (None, "corrected", "noted", "expired", "repeated")  # of calls with a key, by number on record


class _Looking(Journal):
    """Changes nothing but the cache, which spares the next who opens the study most of the work."""

    def _loaded(self) -> Fold:
        self.read_only = False
        try:
            return super()._loaded()
        finally:
            self.read_only = True


class Room:
    """One study: requests that write share commits, those that read do not wait for them."""

    def __init__(self, row: StudyRow, writes: SqlStorage, reads: SqlStorage) -> None:
        self.row, self._writes, self.reads = row, writes, reads
        self._lock = threading.RLock()
        self._making = threading.Lock()
        self._thinks = threading.Lock()
        self._thoughts: dict[str, Any] = {}
        self._writer: Study | None = None
        self.memory: dict[str, Any] = {}  # what readers remember, under their lock

    @property
    def writer(self) -> Study:
        """To be shared by threads."""
        with self._making:
            if self._writer is None:
                self._writer = Study(self._writes, self.row, journal=GatheringJournal)
            return self._writer

    def extend(self, *workers: str) -> None:
        """Heartbeats. They need nothing of the study but its leases."""
        self._writes.extend(self.row.id, *workers)

    def change(self, *calls: Callable[[Study], Any]) -> list[Work]:
        """Do these in one commit, if none of them fails halfway; what came of each."""
        journal = self.writer._journal
        assert isinstance(journal, GatheringJournal)
        works = [Work(partial(_called, call, journal)) for call in calls]
        journal.do_all(works)
        return works

    def change_once(self, key: str | None, call: Callable[[Study], str | None]) -> str | None:
        """Do this in a commit, unless a call with this key was done: then what came of that one."""
        journal = self.writer._journal
        outcome: str | None = journal.transact(partial(_called_once, call, key, journal))
        return outcome

    @cached_property
    def _reader(self) -> Study:
        return Study(self.reads, self.row, read_only=True, journal=_Looking)

    @contextmanager
    def thinking(self) -> Iterator[tuple[Study, dict[str, Any]]]:
        """Another one, for what takes long, and what is known already; who looks does not wait for it."""
        if not self._thinks.acquire(timeout=PATIENCE):
            raise StorageBusyError(f"others think about study {self.row.name!r}: try again")
        try:
            yield self._thinker, self._thoughts
        finally:
            self._thinks.release()

    def thought(self, what: str) -> tuple[Any, Any] | None:
        """What was thought of last: of which state, and what; who looks does not wait for it."""
        return self._thoughts.get(what)

    @cached_property
    def _thinker(self) -> Study:
        return Study(self.reads, self.row, read_only=True, journal=_Looking)

    @contextmanager
    def reading(self) -> Iterator[Study]:
        """A study to look at, for one thread at a time; it changes nothing."""
        with self._lock:
            yield self._reader


def _called(call: Callable[[Study], Any], journal: GatheringJournal, turn: Turn) -> Any:
    return call(StudyInTurn(journal, turn))


def _called_once(call: Callable[[Study], str | None], key: str | None, journal: Journal, turn: Turn) -> Any:
    known = None if key is None else turn.request(key)
    if known is not None:
        return OUTCOMES[-known.size]
    outcome = call(StudyInTurn(journal, turn))
    if key is not None:
        turn.new_requests.append(Request(key, turn.ledger.seq, -OUTCOMES.index(outcome)))
    return outcome


class Rooms:
    """Studies by name, as many as are in use."""

    def __init__(self, address: str | Path) -> None:
        self.address = address
        self.storage = opened(address)
        self._writes = [self.storage, *(opened(address) for _ in range(WRITERS - 1))]
        self.reads = opened(address)  # to look things up with: never busy for long
        self.notes = opened(address)  # what nobody waits for
        self._reads = [opened(address) for _ in range(READERS)]
        self._lock = threading.Lock()
        self._rooms: OrderedDict[int, Room] = OrderedDict()

    def __getitem__(self, name: str) -> Room:
        row = self.reads.find(name) if name.isprintable() else None
        if row is None:
            raise UnknownStudyError(f"no study {name!r}")
        return self.room(row)

    def room(self, row: StudyRow) -> Room:
        """The room of a study."""
        with self._lock:
            room = self._rooms.get(row.id)
            if room is None or room.row != row:
                room = Room(row, self._writes[row.id % WRITERS], self._reads[row.id % READERS])
                self._rooms[row.id] = room
            self._rooms.move_to_end(row.id)
            while len(self._rooms) > OPEN:
                self._rooms.popitem(last=False)
            return room

    def forget(self, row: StudyRow) -> None:
        """A study was deleted."""
        with self._lock:
            self._rooms.pop(row.id, None)

    def close(self) -> None:
        """Give back the connections."""
        for storage in (*self._writes, self.reads, *self._reads):  # and not the notes: one may be waiting
            storage.close()
