"""Studies that live as long as the object: for one process, and for tests."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from lexbandits.study.core.events import Event, EventKind, chained
from lexbandits.study.errors import UnknownStudyError
from lexbandits.study.storage import forks
from lexbandits.study.storage.contract import (
    MEMORY,
    UNSEALED,
    Assigned,
    Commits,
    Entries,
    Lease,
    Request,
    Seal,
    Storage,
    StudyRow,
    T,
    Transaction,
)


class _Journal:
    def __init__(self, row: StudyRow) -> None:
        self.row = row
        self.events: list[Event] = []
        self.seals: list[Seal] = []
        self.leases: dict[int, Lease] = {}
        self.requests: dict[str, Request] = {}
        self.assigned: dict[str, Assigned] = {}

    def seal(self) -> Seal:
        """Seal what is not sealed yet: when it is asked for, as nobody else can reach a list in memory."""
        last, size = self.seals[-1] if self.seals else UNSEALED, len(self.events)
        if last.seq != size:
            last = Seal(size, chained(last.digest, self.events[last.seq :]))
            self.seals.append(last)
        return last


class _UnitOfWork(Transaction):
    """A block under the storage's lock."""

    def __init__(self, storage: "MemoryStorage", study: int) -> None:
        self.storage, self.journal = storage, storage._journal(study)

    def news(self, seq: int, at: float) -> tuple[float, list[Event] | None]:
        events = self.journal.events
        same = 0 < seq <= len(events) and events[seq - 1].at == at
        return self.storage.time(), events[seq:] if same else None

    def leases(self) -> dict[int, float]:
        return {trial: lease.until for trial, lease in self.journal.leases.items()}

    def request(self, key: str) -> Request | None:
        return self.journal.requests.get(key)

    def assigned(self, key: str) -> Assigned | None:
        return self.journal.assigned.get(key)

    def forget(self, key: str | None) -> int:
        assigned = self.journal.assigned
        gone = list(assigned) if key is None else [key] * (key in assigned)
        for each in gone:
            del assigned[each]
        return len(gone)

    def digest(self, events: Sequence[Event]) -> str:
        return chained(self.journal.seal().digest, events)

    def write(self, entries: Entries) -> None:
        self.journal.events.extend(entries.events)
        for trial in entries.gone:
            self.journal.leases.pop(trial, None)
        for lease in entries.leases:
            self.journal.leases[lease.trial] = lease
        for request in entries.requests:
            self.journal.requests[request.key] = request
        for assigned in entries.assigned:
            self.journal.assigned[assigned.key] = assigned


class MemoryStorage(Storage):
    """A storage without a file. `time` may be replaced."""

    shown = MEMORY

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self.commits = Commits(self._lock)
        forks.know_storage(self)
        self._journals: dict[int, _Journal] = {}
        self._made = 0
        self.time = time.time

    def __reduce__(self) -> Any:
        raise TypeError("a study in memory cannot leave its process: keep it in a file or a database")

    def create(self, name: str, nonce: str, payload: dict[str, Any]) -> tuple[StudyRow, bool]:
        with self._lock:
            there = self.find(name)
            if there is not None:
                return there, False
            self._made += 1
            row = StudyRow(self._made, name, self.time(), nonce)
            journal = self._journals[row.id] = _Journal(row)
            journal.events.append(Event(1, EventKind.CREATED.value, None, None, payload, row.created, None))
            return row, True

    def find(self, name: str) -> StudyRow | None:
        return next((journal.row for journal in self._journals.values() if journal.row.name == name), None)

    def studies(self) -> list[StudyRow]:
        return sorted((journal.row for journal in self._journals.values()), key=lambda row: row.name)

    def delete(self, study: int) -> None:
        with self._lock:
            self._journals.pop(study, None)

    def transact(self, study: int, work: Callable[[Transaction], T]) -> T:
        with self._lock:
            result = work(_UnitOfWork(self, study))
            self.commits.add()
            return result

    def read(self, study: int, since: int, most: int | None = None) -> Iterator[Event]:
        first = max(since - 1, 0)
        return iter(self._journal(study).events[first : None if most is None else first + most])

    def seals(self, study: int) -> Iterator[Seal]:
        return iter(list(self._journal(study).seals))

    def last_seal(self, study: int) -> Seal:
        with self._lock:
            return self._journal(study).seal()

    def clock(self, study: int) -> tuple[float, dict[int, float]]:
        with self._lock:
            return self.time(), _UnitOfWork(self, study).leases()

    def extend(self, study: int, *workers: str) -> int:
        with self._lock:
            leases, now = self._journal(study).leases, self.time()
            mine = [lease for lease in leases.values() if lease.worker in workers and lease.until > now]
            leases.update((lease.trial, lease._replace(until=now + lease.seconds)) for lease in mine)
            return len(mine)

    def close(self) -> None:
        return None

    def _journal(self, study: int) -> _Journal:
        if study not in self._journals:
            raise UnknownStudyError("the study was deleted")
        return self._journals[study]
