"""The studies that the service has open: for each one who writes, and one who reads beside them."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from lexbandits.server.tokens import open_lasting
from lexbandits.study.errors import UnknownStudyError
from lexbandits.study.record import rules
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.journal import Journal
from lexbandits.study.storage.contract import StudyRow
from lexbandits.study.storage.sql import SqlStorage
from lexbandits.study.study import Study

MOST_OPEN = 200  # studies
GLANCES, GLANCING = ThreadPoolExecutor(4, "glance"), threading.Lock()
WRITERS, READERS = 8, 4  # connections to the storage


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
        self.thoughts: dict[str, tuple[Any, Any]] = {}  # what took long: of which state it is, and what it is
        self.writer = Journal(writes, row)  # for the thread of its queue, and to settle
        self.memory: dict[Any, Any] = {}  # what readers remember, under their lock
        self.glanced: Any = None  # the last that was seen of it in a list
        self._job: Future[Any] | None = None

    def glance(self, look: Callable[["Room"], Any]) -> "Future[Any]":
        """Look at it in a thread beside, one at a time: who lists all studies need not wait for this one."""
        with GLANCING:
            if self._job is None or self._job.done():
                self._job = GLANCES.submit(look, self)
            return self._job

    def settle(self) -> None:
        """Note what time and the record have brought."""
        self.writer.transact(rules.settle)

    def extend(self, *workers: str) -> None:
        """Heartbeats. They need nothing of the study but its leases."""
        self._writes.extend(self.row.id, *workers)

    @cached_property
    def _reader(self) -> Study:
        return Study(_Looking(self.reads, self.row, read_only=True))

    @cached_property
    def thinker(self) -> Study:
        """Another one, for what takes long: by one thread at a time, as `Thinking` has it."""
        return Study(_Looking(self.reads, self.row, read_only=True))

    @contextmanager
    def reading(self) -> Iterator[Study]:
        """A study to look at, for one thread at a time; it changes nothing."""
        with self._lock:
            yield self._reader


class Rooms:
    """Studies by name, as many as are in use."""

    def __init__(self, address: str | Path) -> None:
        self.address = address
        self.storage = open_lasting(address)
        self._writes = [self.storage, *(open_lasting(address) for _ in range(WRITERS - 1))]
        self.reads = open_lasting(address)  # to look things up with: never busy for long
        self.notes = open_lasting(address)  # what nobody waits for
        self._reads = [open_lasting(address) for _ in range(READERS)]
        self._lock = threading.Lock()
        self._rooms: OrderedDict[int, Room] = OrderedDict()

    def find(self, name: str) -> Room:
        """The room of the study of this name."""
        row = self.reads.find(name) if name.isprintable() else None
        if row is None:
            raise UnknownStudyError(f"no study {name!r}")
        return self.open(row)

    def open(self, row: StudyRow) -> Room:
        """The room of a study."""
        with self._lock:
            room = self._rooms.get(row.id)
            if room is None or room.row != row:
                room = Room(row, self._writes[row.id % WRITERS], self._reads[row.id % READERS])
                self._rooms[row.id] = room
            self._rooms.move_to_end(row.id)
            while len(self._rooms) > MOST_OPEN:
                self._rooms.popitem(last=False)
            return room

    def standing(self) -> tuple[dict[str, int], int]:
        """How many studies in use are in which state, and their open trials: as last seen, at no cost."""
        with self._lock:
            ledgers = [fold.ledger for room in self._rooms.values() if (fold := room.writer.last) is not None]
        states = Counter(
            "finished" if of.end is not None else "paused" if of.paused is not None else "measuring"
            for of in ledgers
        )
        return dict(states), sum(len(ledger.open) for ledger in ledgers)

    def forget(self, row: StudyRow) -> None:
        """A study was deleted."""
        with self._lock:
            self._rooms.pop(row.id, None)

    def close(self) -> None:
        """Give back the connections."""
        for storage in (*self._writes, self.reads, *self._reads):  # and not the notes: one may be waiting
            storage.close()
