"""The studies that the service has open: for each one who writes, and one who reads beside them."""

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from lexbandits.service.auth import open_lasting
from lexbandits.study.core.journal import FrozenJournal, Journal
from lexbandits.study.core.replay import Replay
from lexbandits.study.errors import StudyError, UnknownStudyError
from lexbandits.study.states import StudyState
from lexbandits.study.storage.contract import StudyRow
from lexbandits.study.storage.sql import SqlStorage
from lexbandits.study.study import Study

MOST_OPEN = 200  # studies
PATIENCE = 1.0  # seconds that who looks waits for a commit; the state before it is shown then
GLANCES, GLANCING = ThreadPoolExecutor(8, "glance"), threading.Lock()
WRITERS, READERS = 8, 4  # connections to the storage


class Answered(NamedTuple):
    """What was answered about a state, with its ETag."""

    tag: str
    content: dict[str, Any]


class OpenStudy:
    """One study. Its writer alone has the journal and folds it; who looks is shown a copy of its last state.

    Requests that write share commits, and those that read do not wait for them.
    """

    def __init__(self, row: StudyRow, writes: SqlStorage, reads: SqlStorage) -> None:
        self.row, self._writes, self.reads = row, writes, reads
        self.writer = Journal(writes, row, reads=reads)
        self._lock = threading.RLock()  # of who looks
        self._seen: Study | None = None
        self._analysed: Study | None = None
        self.summary, self.page = Answered("", {}), Answered("", {})  # the last ones
        self.analyses: dict[Any, Analysis] = {}  # the last ones, by what they were asked for
        self.glanced: Any = None  # the last that was seen of it in a list
        self.is_late = False  # whether a list has waited for it in vain
        self._job: Future[Any] | None = None

    def glance(self, look: Callable[["OpenStudy"], Any]) -> "Future[Any]":
        """Look at it in a thread beside, one at a time: who lists all studies need not wait for this one."""
        with GLANCING:
            if self._job is not None and self._job.done() and self._job.exception() is None:
                self.glanced = self._job.result()
            if self._job is None or self._job.done():
                self._job, self.is_late = GLANCES.submit(look, self), False
            return self._job

    def extend(self, *workers: str) -> None:
        """Heartbeats. They need nothing of the study but its leases."""
        self._writes.extend(self.row.id, *workers)

    @contextmanager
    def reading(self, note_due: bool = False) -> Iterator[Study]:
        """The study after its last commit, for one thread at a time.

        `note_due`: what time has brought since is noted first, where it can be. Nobody who looks waits for
        that: a storage that is locked would hold up all of them.
        """
        self._look(note_due)
        with self._lock:
            assert self._seen is not None
            yield self._seen

    def _look(self, note_due: bool) -> None:
        """See what is new, unless a commit takes long."""
        if not self.writer.lock.acquire(timeout=PATIENCE):
            if self._seen is None:
                self._seen = self._frozen(Journal(self.reads, self.row, read_only=True).replay())
            return
        try:
            try:
                replay = self.writer.settled() if note_due else self.writer.replay()
            except StudyError:  # who looks is not kept from it by what cannot be noted
                replay = self.writer.replay()
            if self._seen is None or state_of(self._seen) != state_of(replay):
                self._seen = self._frozen(replay)
        finally:
            self.writer.lock.release()

    def _frozen(self, replay: Replay) -> Study:
        return Study(FrozenJournal(self.reads, self.row, replay.frozen()))

    def analyst(self) -> Study:
        """Another copy, for what takes long: by one thread at a time, as `JobQueue` has it."""
        with self.reading() as study:
            replay = study._settled()
            if self._analysed is None or state_of(self._analysed) != state_of(replay):
                self._analysed = self._frozen(replay)
                self._analysed._settled().memory = {}
            return self._analysed


class Analysis(NamedTuple):
    """What took long, and of which state it is."""

    state: tuple[int, float]
    found: Any


def state_of(seen: Study | Replay) -> tuple[int, float]:
    """What tells a state from all others: the number of events alone would not, if a backup was restored."""
    projection = (seen._settled() if isinstance(seen, Study) else seen).projection
    return projection.seq, projection.at


class StudyRegistry:
    """Studies by name, as many as are in use."""

    def __init__(self, address: str | Path) -> None:
        self.address = address
        self.storage = open_lasting(address)
        self._writes = [self.storage, *(open_lasting(address) for _ in range(WRITERS - 1))]
        self.reads = open_lasting(address)  # to look things up with: never busy for long
        self.notes = open_lasting(address)  # what nobody waits for
        self._reads = [open_lasting(address) for _ in range(READERS)]
        self._lock = threading.Lock()
        self._open: OrderedDict[int, OpenStudy] = OrderedDict()

    def find(self, name: str) -> OpenStudy:
        """Return the open study of this name."""
        row = self.reads.find(name) if name.isprintable() else None
        if row is None:
            raise UnknownStudyError(f"no study {name!r}")
        return self.open(row)

    def open(self, row: StudyRow) -> OpenStudy:
        """Return a study, opened if need be."""
        with self._lock:
            opened = self._open.get(row.id)
            if opened is None or opened.row != row:
                opened = OpenStudy(row, self._writes[row.id % WRITERS], self._reads[row.id % READERS])
                self._open[row.id] = opened
            self._open.move_to_end(row.id)
            while len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
            return opened

    def counts(self) -> tuple[dict[StudyState, int], int]:
        """Return how many studies in use are in each state, and their open trials, as last seen."""
        with self._lock:
            projections = [
                replay.projection
                for opened in self._open.values()
                if (replay := opened.writer.last) is not None
            ]
        states = Counter(
            StudyState.FINISHED
            if of.end is not None
            else StudyState.PAUSED
            if of.paused is not None
            else StudyState.MEASURING
            for of in projections
        )
        return dict(states), sum(len(projection.open) for projection in projections)

    def forget(self, row: StudyRow) -> None:
        """A study was deleted."""
        with self._lock:
            self._open.pop(row.id, None)

    def close(self) -> None:
        """Give back the connections."""
        for storage in (*self._writes, self.reads, *self._reads):  # and not the notes: one may be waiting
            storage.close()
