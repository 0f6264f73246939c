"""Studies in a database: the tables, and what SQLite and PostgreSQL have in common.

Statements go straight to the driver. They are written with `?`, which is put in the driver's own style.
"""

import os
import threading
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import Any, NamedTuple

from lexbandits.study.core.events import Event, EventKind, chained, chained_rows, from_rows
from lexbandits.study.errors import ODD, DamagedError, StorageError, StorageVersionError, UnknownStudyError
from lexbandits.study.storage import forks
from lexbandits.study.storage.contract import (
    UNSEALED,
    Assigned,
    Commits,
    Entries,
    LostConnectionError,
    Request,
    Seal,
    Storage,
    StudyRow,
    T,
    Transaction,
)
from lexbandits.study.storage.tables import Dialect, statements

SCHEMA = 4


class TokenRow(NamedTuple):
    """A token of the service, without its secret."""

    id: int
    name: str
    role: str
    sha256: str
    created: float
    last_used: float | None
    revoked: float | None


ROWS_AT_ONCE = 1000  # of one INSERT
FETCH = 5_000  # small enough that what is parsed dies young
LAST_SEAL = "(SELECT seq || ':' || digest FROM lexbandits_seals WHERE study = ? ORDER BY seq DESC LIMIT 1)"
MOVED = (  # a visitor whose arm is no longer given to anybody
    "ON CONFLICT (study, visitor) DO UPDATE SET arm = excluded.arm, trial = excluded.trial, at = excluded.at"
)
EVENT_COLUMNS = 'seq, kind, trial, arm, payload, at, "by"'

FILLED = {  # what a table begins with: what has happened is no news to receivers from now on
    "version": f"INSERT INTO lexbandits_version (schema) VALUES ({SCHEMA})",
    "delivered": "INSERT INTO lexbandits_delivered (study, what, seq) "
    "SELECT id, '', (SELECT max(seq) FROM lexbandits_events WHERE study = id) FROM lexbandits_studies",
}

Statement = tuple[str, Sequence[Any]]


class SqlStorage(Storage):
    """One connection, one lock for the threads that share it; a new connection after a fork."""

    dialect: Dialect
    mark: str  # of a parameter
    now: str  # SQL for the database's clock, in seconds since 1970

    def __init__(self, shown: str) -> None:
        self.shown = shown
        self._lock = threading.RLock()
        self.commits = Commits(self._lock)
        self._connection: Any = None
        self._writer: Any = None
        self._pid = 0
        forks.know_storage(self)
        with self._lock:
            self._prepare()

    # --- what differs

    @abstractmethod
    def _connect(self) -> Any:
        """A driver's connection in autocommit mode."""

    @abstractmethod
    def _begin(self, study: int) -> None:
        """A transaction that nobody else can have at the same time; 0 for all studies."""

    @abstractmethod
    def _commit(self) -> None:
        """End it."""

    @abstractmethod
    def _roll_back(self) -> None:
        """End it as if it had not been; whatever state it is in, even if it has not begun."""

    @abstractmethod
    def _is_inside(self) -> bool:
        """Whether a transaction is open."""

    @abstractmethod
    def _send(self, cursor: Any, statements: list[Statement]) -> None:
        """Execute statements that return nothing."""

    @abstractmethod
    def _explained(self, error: Exception) -> StorageError | None:
        """A driver's error in our words; None if it is none."""

    # --- connections

    def _connected(self) -> Any:
        """This process's connection. Call it with the lock."""
        if self._pid != os.getpid():
            self._connection, self._pid = None, os.getpid()  # a parent's is not ours to use, nor to close
        if self._connection is None:
            connection = self._connect()
            self._closer = weakref.finalize(self, forks.close_here, connection, self._pid)
            self._writer = connection.cursor()  # of all transactions, one after the other
            self._connection = connection
        return self._connection

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection = self._writer = None
                self._closer()

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """Errors of the driver, in our words."""
        with self._lock:
            try:
                yield
            except Exception as error:
                self._explain(error)
                raise

    def _explain(self, error: Exception) -> None:
        explained = self._explained(error)
        if explained is not None:
            raise explained from error

    def _sql(self, statement: str) -> str:
        return statement.replace("?", self.mark)

    def _all(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._speaking():
            cursor = self._connected().cursor()
            cursor.execute(self._sql(statement), values)
            rows: list[tuple[Any, ...]] = cursor.fetchall()
            return rows

    # --- tables

    def _prepare(self) -> None:
        """Make the tables where there are none; refuse those of a newer version."""
        if self._version() is None:
            self._make("version")
        version = self._version()
        if version != SCHEMA:
            older = "an older lexbandits" if version is None or version < SCHEMA else "a newer lexbandits"
            raise StorageVersionError(
                f"{self.shown} has tables of version {version}, written by {older}; this one reads version "
                f"{SCHEMA} alone: open it with the lexbandits that made it"
            )

    def _version(self) -> int | None:
        """The version of the tables; None without tables."""
        if not self._has("version"):
            return None
        rows = self._all("SELECT schema FROM lexbandits_version")
        try:
            return int(rows[0][0])
        except ODD as error:
            raise DamagedError(f"{self.shown} is damaged: its version is no number") from error

    def _make(self, table: str) -> None:
        """A table, unless somebody has made it; with the version come all but those made later."""

        def make(_: Transaction) -> None:
            if not self._has(table):
                for statement in (*statements(self.dialect, table), FILLED[table]):
                    self._writer.execute(statement)

        self.transact(0, make)

    @abstractmethod
    def _has(self, table: str) -> bool:
        """Whether there is a table."""

    # --- studies

    def create(self, name: str, nonce: str, payload: dict[str, Any]) -> tuple[StudyRow, bool]:
        there = self.find(name)
        if there is not None:
            return there, False
        return self._repeated(0, lambda _: self._created(name, nonce, payload))

    def _created(self, name: str, nonce: str, payload: dict[str, Any]) -> tuple[StudyRow, bool]:
        there = self.find(name)
        if there is not None:
            return there, there.nonce == nonce  # ours, if only the answer was lost
        cursor = self._writer
        cursor.execute(f"SELECT {self.now}")
        at = float(cursor.fetchone()[0])
        insert = "INSERT INTO lexbandits_studies (name, created, nonce) VALUES (?, ?, ?) RETURNING id"
        cursor.execute(self._sql(insert), (name, at, nonce))
        study = int(cursor.fetchone()[0])
        event = Event(1, EventKind.CREATED.value, None, None, payload, at, None)
        self._send(cursor, _inserts(study, Entries([event]), UNSEALED.digest))
        return StudyRow(study, name, at, nonce), True

    def find(self, name: str) -> StudyRow | None:
        rows = self._all("SELECT id, name, created, nonce FROM lexbandits_studies WHERE name = ?", name)
        return StudyRow(*rows[0]) if rows else None

    def studies(self) -> list[StudyRow]:
        rows = self._all("SELECT id, name, created, nonce FROM lexbandits_studies ORDER BY name")
        return [StudyRow(*row) for row in rows]

    def delete(self, study: int) -> None:
        self._change(study, "DELETE FROM lexbandits_studies WHERE id = ?", study)

    # --- journals

    def transact(self, study: int, work: Callable[[Transaction], T]) -> T:
        with self._lock:
            try:
                result = self._alone(study, work)
            except Exception as error:
                self._explain(error)
                raise
            self.commits.add()
            return result

    def _alone(self, study: int, work: Callable[[Transaction], T]) -> T:
        if self._is_inside():
            raise StorageError("a transaction cannot begin inside another")
        try:
            self._begin(study)
            result = work(_SqlTransaction(self, self._writer, study))
            self._commit()
            return result
        except BaseException:
            self._roll_back()
            raise

    def read(self, study: int, since: int, most: int | None = None) -> Iterator[Event]:
        """In portions, each of its own statement: no slow reader is waited for."""
        wanted = "WHERE study = ? AND seq >= ? ORDER BY seq LIMIT ?"
        statement, left = f"SELECT {EVENT_COLUMNS} FROM lexbandits_events {wanted}", most
        while left is None or left > 0:
            size = FETCH if left is None else min(left, FETCH)
            rows = self._all(statement, study, since, size)
            yield from from_rows(rows)
            if len(rows) < size:
                return
            since = rows[-1][0] + 1
            left = None if left is None else left - size

    def seals(self, study: int) -> Iterator[Seal]:
        since, wanted = 0, "WHERE study = ? AND seq > ? ORDER BY seq LIMIT ?"
        while True:
            rows = self._all(f"SELECT seq, digest FROM lexbandits_seals {wanted}", study, since, FETCH)
            yield from map(Seal._make, rows)
            if len(rows) < FETCH:
                return
            since = rows[-1][0]

    def last_seal(self, study: int) -> Seal:
        last = "WHERE study = ? ORDER BY seq DESC LIMIT 1"
        rows = self._all(f"SELECT seq, digest FROM lexbandits_seals {last}", study)
        return Seal._make(rows[0]) if rows else UNSEALED

    def clock(self, study: int) -> tuple[float, dict[int, float]]:
        join = "FROM (SELECT 1) AS one LEFT JOIN lexbandits_leases ON study = ?"
        rows = self._all(f"SELECT {self.now}, trial, until {join}", study)
        return float(rows[0][0]), {trial: until for _, trial, until in rows if trial is not None}

    def extend(self, study: int, *workers: str) -> int:
        marks = ", ".join("?" * len(workers))
        return self._change(
            study,
            f"UPDATE lexbandits_leases SET until = {self.now} + seconds "
            f"WHERE study = ? AND worker IN ({marks}) AND until > {self.now}",
            *(study, *workers),
        )

    def latest(self, study: int, since: int, most: int, without: Sequence[str]) -> list[Event]:
        """The last events from `since` on, but not of the kinds in `without`; the latest first."""
        marks = ", ".join("?" * len(without))
        rows = self._all(
            f"SELECT {EVENT_COLUMNS} FROM lexbandits_events WHERE study = ? AND seq >= ? "
            f"AND kind NOT IN ({marks}) ORDER BY seq DESC LIMIT ?",
            *(study, since, *map(str, without), most),
        )
        return from_rows(rows)

    def serving(self) -> list[str]:
        """Return the names of the studies that have given an arm to a visitor."""
        some = "EXISTS (SELECT 1 FROM lexbandits_assigned a WHERE a.study = s.id)"
        return [
            row[0] for row in self._all(f"SELECT name FROM lexbandits_studies s WHERE {some} ORDER BY name")
        ]

    # --- tokens of the service

    def tokens(self) -> list[TokenRow]:
        """All of them, revoked ones too."""
        rows = self._all(f"SELECT {', '.join(TokenRow._fields)} FROM lexbandits_tokens ORDER BY id")
        return [TokenRow(*row) for row in rows]

    def add_token(
        self, name: str, role: str, sha256: str, check: Callable[[list[TokenRow]], None] = lambda _: None
    ) -> None:
        """A new token, known by its hash alone. `check` may refuse it, by those that are there."""

        def add(_: Transaction) -> None:
            there = self.tokens()
            if any(row.sha256 == sha256 for row in there):
                return  # only the answer was lost
            check(there)
            insert = (
                f"INSERT INTO lexbandits_tokens (name, role, sha256, created) VALUES (?, ?, ?, {self.now})"
            )
            self._writer.execute(self._sql(insert), (name, role, sha256))

        self._repeated(0, add)

    def use_token(self, token: int) -> None:
        """Note that it is in use."""
        self._change(0, f"UPDATE lexbandits_tokens SET last_used = {self.now} WHERE id = ?", token)

    def revoke_tokens(self, name: str) -> int:
        """All of this name; how many there were."""
        update = f"UPDATE lexbandits_tokens SET revoked = {self.now} WHERE name = ? AND revoked IS NULL"
        return self._change(0, update, name)

    # --- what the webhook has delivered: under "" up to which event, else what an event does not say

    def start_delivering(self) -> None:
        """From now on, unless that was said before."""
        if not self._has("delivered"):
            self._make("delivered")

    def undelivered(self) -> list[tuple[StudyRow, int, int]]:
        """Studies that have gone on: each, its last event, and the last that was dealt with."""
        last = (
            "(SELECT max(seq) FROM lexbandits_events WHERE study = s.id) AS last, coalesce(d.seq, 0) AS done"
        )
        join = "LEFT JOIN lexbandits_delivered d ON d.study = s.id AND d.what = ''"
        every = f"SELECT s.id, s.name, s.created, s.nonce, {last} FROM lexbandits_studies s {join}"
        rows = self._all(f"SELECT * FROM ({every}) AS every_study WHERE last > done")
        return [(StudyRow(*row[:4]), row[4], row[5]) for row in rows]

    def delivered(self, study: int) -> dict[str, int]:
        """What was, and at which event."""
        return dict(self._all("SELECT what, seq FROM lexbandits_delivered WHERE study = ?", study))

    def note_delivered(self, study: int, what: str, seq: int) -> None:
        """It was."""
        insert = "INSERT INTO lexbandits_delivered (study, what, seq) VALUES (?, ?, ?)"
        again = "ON CONFLICT (study, what) DO UPDATE SET seq = excluded.seq"
        self._change(study, f"{insert} {again}", study, what, seq)

    def _change(self, study: int, statement: str, *values: Any) -> int:
        def change(_: Transaction) -> int:
            self._writer.execute(self._sql(statement), values)
            return int(self._writer.rowcount)

        return self._repeated(study, change)

    def _repeated(self, study: int, work: Callable[[Transaction], T]) -> T:
        """Work that may be done twice, tried once more if the server went away."""
        try:
            return self.transact(study, work)
        except LostConnectionError:
            return self.transact(study, work)

    # --- the cache

    def cached(self, study: int) -> bytes | None:
        rows = self._all("SELECT blob FROM lexbandits_history WHERE study = ?", study)
        return bytes(rows[0][0]) if rows else None

    def put_cache(self, study: int, seq: int, content: bytes) -> None:
        def put(_: Transaction) -> None:
            self._writer.execute(self._sql("DELETE FROM lexbandits_history WHERE study = ?"), (study,))
            insert = "INSERT INTO lexbandits_history (study, seq, blob) VALUES (?, ?, ?)"
            self._writer.execute(self._sql(insert), (study, seq, content))

        with suppress(StorageError):  # it only saves time
            self.transact(study, put)


class _SqlTransaction(Transaction):
    def __init__(self, storage: SqlStorage, cursor: Any, study: int) -> None:
        self.storage, self.cursor, self.study = storage, cursor, study
        self.sealed: str | None = None  # number and digest of the last seal, once it was looked up

    def _rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        self.cursor.execute(self.storage._sql(statement), values)
        rows: list[tuple[Any, ...]] = self.cursor.fetchall()
        return rows

    def news(self, seq: int, at: float) -> tuple[float, list[Event] | None]:
        join = "FROM (SELECT 1) AS one LEFT JOIN lexbandits_events ON study = ? AND seq >= ? ORDER BY seq"
        columns = f"{EVENT_COLUMNS}, {self.storage.now}, {LAST_SEAL}"
        rows = self._rows(f"SELECT {columns} {join}", self.study, self.study, seq)
        first, last = rows[0], rows[-1][0]
        self.sealed = sealed = first[8] or ""
        if last is None:  # the journal is another than the one that was folded
            last = self._rows("SELECT max(seq) FROM lexbandits_events WHERE study = ?", self.study)[0][0]
        if last is not None and not sealed.startswith(f"{last}:"):
            raise StorageError(
                f"{self.storage.shown}: the journal ends with event {last}, but was sealed at event "
                f"{sealed.partition(':')[0] or 'none'}: somebody changed it from outside, and nothing can be "
                "added to it. Run `lexbandits study verify`, or restore a backup"
            )
        return float(first[7]), from_rows(rows[1:]) if (first[0], first[5]) == (seq, at) else None

    def _before(self) -> str:
        if self.sealed is None:
            self.sealed = self._rows(f"SELECT {LAST_SEAL}", self.study)[0][0] or ""
        return self.sealed.partition(":")[2]

    def digest(self, events: Sequence[Event]) -> str:
        return chained(self._before(), events)

    def leases(self) -> dict[int, float]:
        return dict(self._rows("SELECT trial, until FROM lexbandits_leases WHERE study = ?", self.study))

    def request(self, key: str) -> Request | None:
        wanted = "FROM lexbandits_requests WHERE study = ? AND request = ?"
        statement = f"SELECT request, first, size, outcome {wanted}"
        rows = self._rows(statement, self.study, key)
        return Request(*rows[0]) if rows else None

    def assigned(self, key: str) -> Assigned | None:
        statement = "SELECT visitor, arm, trial, at FROM lexbandits_assigned WHERE study = ? AND visitor = ?"
        rows = self._rows(statement, self.study, key)
        return Assigned(*rows[0]) if rows else None

    def forget(self, key: str | None) -> int:
        one, values = ("", [self.study]) if key is None else (" AND visitor = ?", [self.study, key])
        statement = f"DELETE FROM lexbandits_assigned WHERE study = ?{one}"
        self.cursor.execute(self.storage._sql(statement), values)
        return int(self.cursor.rowcount)

    def write(self, entries: Entries) -> None:
        self.storage._send(self.cursor, _inserts(self.study, entries, self._before()))


def _inserts(study: int, entries: Entries, before: str) -> list[Statement]:
    """The statements of a write, as few as can be; `before` is the digest of what is there."""
    events, leases, gone, requests, assigned = entries
    statements: list[Statement] = []
    if events:
        rows = [event.as_row() for event in events]
        statements = _insertions("lexbandits_events", EVENT_COLUMNS, study, rows)
        seal = rows[-1][0], chained_rows(before, rows)
        statements += _insertions("lexbandits_seals", "seq, digest", study, [seal])
    if leases:
        statements += _insertions("lexbandits_leases", "trial, worker, until, seconds", study, leases)
    for start in range(0, len(gone), ROWS_AT_ONCE):
        part = gone[start : start + ROWS_AT_ONCE]
        statements.append((_deletion(len(part)), [study, *part]))
    if requests:
        statements += _insertions("lexbandits_requests", "request, first, size, outcome", study, requests)
    if assigned:
        inserted = _insertions("lexbandits_assigned", "visitor, arm, trial, at", study, assigned)
        statements += [(f"{statement} {MOVED}", values) for statement, values in inserted]
    return statements


def _insertions(table: str, columns: str, study: int, rows: Sequence[Sequence[Any]]) -> list[Statement]:
    if len(rows) == 1:
        return [(_insertion(table, columns, 1), (study, *rows[0]))]
    parts = [rows[start : start + ROWS_AT_ONCE] for start in range(0, len(rows), ROWS_AT_ONCE)]
    return [
        (_insertion(table, columns, len(part)), [value for row in part for value in (study, *row)])
        for part in parts
    ]


@lru_cache(maxsize=64)
def _insertion(table: str, columns: str, rows: int) -> str:
    row = f"(?{', ?' * (columns.count(',') + 1)})"
    return f"INSERT INTO {table} (study, {columns}) VALUES {', '.join([row] * rows)}"


@lru_cache(maxsize=64)
def _deletion(rows: int) -> str:
    return f"DELETE FROM lexbandits_leases WHERE study = ? AND trial IN ({', '.join('?' * rows)})"


def deleted_meanwhile() -> UnknownStudyError:
    """A write into a study that is not there any more."""
    return UnknownStudyError("the study was deleted")
