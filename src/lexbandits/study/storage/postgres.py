"""PostgreSQL: any number of machines. Writers of a study queue at an advisory lock, in the server's order."""

import math
import time
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus as Status

from lexbandits.study.errors import StorageBusyError, StorageError
from lexbandits.study.storage.contract import LostConnectionError
from lexbandits.study.storage.sql import SqlStorage, Statement, deleted_meanwhile
from lexbandits.study.storage.tables import Dialect

PATIENCE = 60  # seconds
SILENCE = 30  # seconds: who is silent inside a transaction has lost its power, or its network
PARAMETERS = 65_535  # of one statement
LOCKS = 0x6C657842  # the half of our advisory locks' keys that tells them from others'
SETTINGS = (
    "SET lock_timeout = '{}s'; SET idle_in_transaction_session_timeout = '{}s'; "  # or it kept its lock
    "SET default_transaction_isolation = 'read committed'"
)


class _Connection(psycopg.Connection[Any]):
    """Does not wait for ever: libpq would, if the server or the network fell silent."""

    def wait(self, gen: Any, *arguments: Any, **fields: Any) -> Any:
        """As psycopg does, for what is not silent for too long."""
        try:
            return super().wait(_not_silent(gen, PATIENCE + SILENCE), *arguments, **fields)
        except _SilentError as error:
            self.pgconn.finish()
            raise psycopg.OperationalError(f"no answer for {PATIENCE + SILENCE} s") from error


class _SilentError(Exception):
    """Nothing came for too long."""


def _not_silent(steps: Any, seconds: float) -> Any:
    """psycopg's steps of a call, which it takes whenever something has come, and from time to time."""
    since, what = math.inf, next(steps)
    while True:
        ready = yield what
        if ready:
            since = math.inf
        else:
            since = min(since, time.monotonic())
            if time.monotonic() - since > seconds:
                raise _SilentError
        try:
            what = steps.send(ready)
        except StopIteration as done:
            return done.value


class PostgresStorage(SqlStorage):
    """postgresql://user:password@host:port/database. The password is in no message."""

    dialect = Dialect("id SERIAL PRIMARY KEY", "BYTEA", "")
    mark = "%s"
    now = "extract(epoch from clock_timestamp())::double precision"

    def __init__(self, address: str) -> None:
        self._address, scheme = address, address.partition("://")[0]
        try:
            self._conninfo: dict[str, Any] = conninfo_to_dict(address.replace(scheme, "postgresql", 1))
        except psycopg.ProgrammingError:
            self._conninfo = {"port": "?"}
        # libpq ends user and password at the first "/": what it then takes for a host must not be shown
        is_cut = "@" in address.partition("?")[0].partition("://")[2].partition("/")[2]
        if is_cut or not str(self._conninfo.get("port", 0)).isdecimal():
            raise StorageError(
                "the address of the database cannot be read: postgresql://user:password@host:port/database, "
                "with / @ : % in a password written as %2F %40 %3A %25"
            )
        super().__init__(_shown(**self._conninfo))

    def __reduce__(self) -> tuple[Any, ...]:
        return PostgresStorage, (self._address,)

    def _connect(self) -> Any:
        arguments = {"connect_timeout": 10, "application_name": "lexbandits", **self._conninfo}
        connection = _Connection.connect(autocommit=True, **arguments)
        connection.execute(SETTINGS.format(PATIENCE, SILENCE))
        return connection

    def _begin(self, study: int) -> None:
        self._connected()
        # both in one message; the lock comes before the first read, whose snapshot is thus the newest
        self._writer.execute(f"BEGIN; SELECT pg_advisory_xact_lock({LOCKS}, {int(study)})")

    def _commit(self) -> None:
        self._writer.execute("COMMIT")

    def _roll_back(self) -> None:
        connection = self._connection
        try:
            if connection is not None and connection.info.transaction_status != Status.IDLE:
                connection.execute("ROLLBACK")
        except psycopg.Error:
            self.close()

    def _is_inside(self) -> bool:
        connection = self._connection
        inside = Status.ACTIVE, Status.INTRANS, Status.INERROR  # and not UNKNOWN: the server has gone
        return connection is not None and connection.info.transaction_status in inside

    def _make(self, table: str) -> None:
        """Locked before the transaction begins: inside one, a backend that has found no table goes on
        believing so while another commits it."""
        with self._speaking():
            self._connected().execute(f"SELECT pg_advisory_lock({LOCKS}, 0)")
            try:
                super()._make(table)
            finally:
                if self._connection is not None:
                    self._connection.execute(f"SELECT pg_advisory_unlock({LOCKS}, 0)")

    def _send(self, cursor: Any, statements: list[Statement]) -> None:
        """As few messages as the protocol's number of parameters allows."""
        portion: list[Statement] = []
        for statement in statements:
            if portion and sum(len(values) for _, values in (*portion, statement)) > PARAMETERS:
                self._send_as_one(cursor, portion)
                portion = []
            portion.append(statement)
        self._send_as_one(cursor, portion)

    def _send_as_one(self, cursor: Any, statements: list[Statement]) -> None:
        """All in one statement: each but the last in a WITH."""
        *others, (last, values) = statements
        parts = ", ".join(f"part{i} AS ({statement})" for i, (statement, _) in enumerate(others))
        whole = f"WITH {parts} {last}" if others else last
        cursor.execute(self._sql(whole), [value for _, part in others for value in part] + list(values))

    def _has(self, table: str) -> bool:
        return self._all("SELECT to_regclass(?)", f"lexbandits_{table}")[0][0] is not None

    def _explained(self, error: Exception) -> StorageError | None:
        if isinstance(error, psycopg.errors.ForeignKeyViolation):
            return deleted_meanwhile()  # type: ignore[return-value]
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return StorageBusyError(f"{self.shown}: others wrote for {PATIENCE} s; nothing was changed")
        if not isinstance(error, psycopg.Error):
            return None
        text = " ".join(str(error).split())
        connection = self._connection
        lost = psycopg.OperationalError, psycopg.errors.IdleInTransactionSessionTimeout
        if isinstance(error, lost) and (connection is None or connection.closed):
            self.close()
            return LostConnectionError(f"{self.shown}: {text}")
        return StorageError(f"{self.shown}: {text}")


def _shown(
    host: str = "", port: Any = "", user: str = "", password: str = "", dbname: str = "", **_: Any
) -> str:
    """An address without its password, and whatever else it says."""
    login, place = f"{user}{password and ':***'}@" if user else "", f":{port}" if port else ""
    if host.startswith("/"):  # a folder with a socket
        return f"postgresql://{login}{place}/{dbname}?host={host}"
    return f"postgresql://{login}{host}{place}/{dbname}"
