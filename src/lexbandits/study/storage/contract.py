"""What a storage offers: studies by name, journals that only grow, leases, and a lock around it all."""

import re
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar
from urllib.parse import unquote

from lexbandits._extras import MissingExtra
from lexbandits.study.core.events import Event
from lexbandits.study.errors import StorageError

T = TypeVar("T")
MEMORY = "memory"  # the address of a storage that ends with its process


class StudyRow(NamedTuple):
    """A study as its storage knows it."""

    id: int
    name: str
    created: float
    nonce: str


class Lease(NamedTuple):
    """Who has an open trial until when; `seconds` is what a heartbeat extends it by."""

    trial: int
    worker: str | None
    until: float
    seconds: float


class Request(NamedTuple):
    """What may be repeated. An ask was given `size` trials from number `first` on; any other call none.

    `outcome`: what came of it, if there was anything to say.
    """

    key: str
    first: int = 0
    size: int = 0
    outcome: str | None = None


class Assigned(NamedTuple):
    """What a visitor was given: an arm, and the number of the trial if it is measured.

    `key` is a keyed digest; whoever the visitor is, is not kept.
    """

    key: str
    arm: str
    trial: int | None
    at: float


class Seal(NamedTuple):
    """The digest of all events up to `seq`, the last one of a transaction."""

    seq: int
    digest: str


UNSEALED = Seal(0, "")


class Entries(NamedTuple):
    """What a transaction writes: events, leases, trials whose lease is gone, requests and visitors."""

    events: Sequence[Event]
    leases: Sequence[Lease] = ()
    gone: Sequence[int] = ()
    requests: Sequence[Request] = ()
    assigned: Sequence[Assigned] = ()


class LostConnectionError(StorageError):
    """The server went away; the whole transaction may be tried once more."""


class Transaction(ABC):
    """One turn at writing, alone."""

    @abstractmethod
    def news(self, seq: int, at: float) -> tuple[float, list[Event] | None]:
        """The storage's clock and the events after `seq`; None if that one is not of time `at`."""

    @abstractmethod
    def leases(self) -> dict[int, float]:
        """Open trial -> until, heartbeats included."""

    @abstractmethod
    def request(self, key: str) -> Request | None:
        """What this key was given, if anything."""

    @abstractmethod
    def assigned(self, key: str) -> Assigned | None:
        """Return what a visitor was given, by the digest of its key."""

    @abstractmethod
    def forget(self, key: str | None) -> int:
        """Delete what a visitor was given, or all of them were. Return how many there were."""

    @abstractmethod
    def digest(self, events: Sequence[Event]) -> str:
        """Return the digest of the record with these events, not written yet, at its end."""

    @abstractmethod
    def write(self, entries: Entries) -> None:
        """Record what is new, and seal it."""


class Commits:
    """Counts what was committed through one storage object, and wakes the threads that wait for more."""

    def __init__(self, lock: Any) -> None:
        self.count = 0
        self._changed = threading.Condition(lock)

    def add(self) -> None:
        """Count one more. The storage's lock is held."""
        self.count += 1
        self._changed.notify_all()

    def wait(self, known: int, seconds: float) -> None:
        """Return once there are others than the `known` ones, at the latest after so many seconds."""
        with self._changed:
            self._changed.wait_for(lambda: self.count != known, seconds)


class Storage(ABC):
    """Where studies are kept. Safe to use from several threads."""

    shown: str  # its address without a password
    commits: Commits  # of this process, through this object; others' are found by looking
    is_remote: ClassVar[bool] = False  # whether others do the transactions, as a service does
    is_read_only: ClassVar[bool] = False  # whether nothing can be changed in it

    @abstractmethod
    def create(self, name: str, nonce: str, payload: dict[str, Any]) -> tuple[StudyRow, bool]:
        """The study of this name, and whether it is new: then `created` is its first event."""

    @abstractmethod
    def find(self, name: str) -> StudyRow | None:
        """The study of this name."""

    @abstractmethod
    def studies(self) -> list[StudyRow]:
        """All of them, by name."""

    @abstractmethod
    def delete(self, study: int) -> None:
        """A study with all that belongs to it."""

    @abstractmethod
    def transact(self, study: int, work: Callable[[Transaction], T]) -> T:
        """Do the work in a transaction, committed unless it raises.

        Waits for the lock, at most a minute (`StorageBusyError`). Not a `with` block: Ctrl-C at the wrong
        moment would leave that open, and everybody else waiting.
        """

    @abstractmethod
    def read(self, study: int, since: int, most: int | None = None) -> Iterator[Event]:
        """Events from `since` on, without the lock."""

    @abstractmethod
    def seals(self, study: int) -> Iterator[Seal]:
        """Iterate over the seals of a journal, without the lock: each transaction has left one."""

    @abstractmethod
    def last_seal(self, study: int) -> Seal:
        """Return the last of them."""

    def damage(self) -> list[str]:
        """Return what the database finds wrong with its own files."""
        return []

    @abstractmethod
    def clock(self, study: int) -> tuple[float, dict[int, float]]:
        """The storage's time, and the leases: open trial -> until. Without the lock."""

    @abstractmethod
    def extend(self, study: int, *workers: str) -> int:
        """Heartbeats: the workers' leases that have not run out start again. How many there were."""

    def cached(self, study: int) -> bytes | None:
        """A projection put aside by `put_cache`, to load faster."""
        return None

    def put_cache(self, study: int, seq: int, content: bytes) -> None:
        """Put a projection aside. It may be lost at any time."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Give back connections."""


def is_missing(storage: "str | Path | Storage") -> bool:
    """Whether a storage is a file that is not there: opening it would make it."""
    if isinstance(storage, Storage) or str(storage) == MEMORY:
        return False
    if re.match(r"(postgres|sqlite|http)\w*(\+\w+)?:/?[^/]", str(storage)):  # no path: it may hold a password
        raise StorageError("an address has two slashes after its colon, such as postgresql://…")
    path, _ = file_of(str(storage))
    return "://" not in path and not Path(path).expanduser().exists()


def file_of(address: str) -> tuple[str, str]:
    """The path and the query of an address; a plain path is itself, whatever characters it has."""
    if not address.startswith("sqlite:///"):
        return address, ""
    path, _, query = address.removeprefix("sqlite:///").partition("?")
    return unquote(path), query


def open_storage(storage: "str | Path | Storage") -> Storage:
    """A storage by its address: "memory", a path, sqlite:///…, postgresql://…, http://…; or an open one.

    A path of an exported journal (.jsonl) is a storage to be read.
    """
    if isinstance(storage, Storage):
        return storage
    if not isinstance(storage, (str, Path)):
        raise TypeError(f"storage must be an address or a storage, got {storage!r}")
    address = str(storage)
    is_missing(address)  # refuses what only looks like a path
    if address == MEMORY:
        from lexbandits.study.storage.memory import MemoryStorage

        return MemoryStorage()
    scheme = address.partition("://")[0] if "://" in address else ""
    try:
        if scheme.partition("+")[0] in ("postgresql", "postgres"):
            from lexbandits.study.storage.postgres import PostgresStorage

            return PostgresStorage(address)
        if scheme in ("http", "https"):
            from lexbandits.study.storage.http import HttpStorage

            return HttpStorage(address)
        if not scheme and address.endswith(".jsonl"):
            from lexbandits.study.storage.journal_file import JournalFile, is_journal_file

            if is_journal_file(path := Path(address).expanduser()):
                return JournalFile(path)
        if scheme in ("", "sqlite"):
            from lexbandits.study.storage.sqlite import SqliteStorage

            return SqliteStorage(address)
    except ModuleNotFoundError as error:
        if error.name != "psycopg":
            raise
        raise StorageError(str(MissingExtra("psycopg", "PostgreSQL"))) from None
    raise StorageError(
        f"storage must be a path, sqlite:///…, postgresql://…, http://… or memory; "
        f"got one that begins with {scheme}://"
    )
