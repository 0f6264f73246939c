"""SQLite: one file, any number of processes on one machine, whose writers queue at a gate."""

import os
import sqlite3
import sys
from pathlib import Path
from typing import Any

from lexbandits.study.errors import StorageBusyError, StorageError
from lexbandits.study.gate import Gate
from lexbandits.study.sql import SqlStorage, Statement, deleted_meanwhile

PATIENCE = 60.0  # seconds
PAGE = 2_048  # bytes; a commit writes whole pages, two or three of them for a few bytes each
CHECKPOINT = 8_000  # pages: the same few are written again and again, and each checkpoint syncs
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")
NETWORK = (
    "nfs",
    "cifs",
    "smb",
    "sshfs",
    "afs",
    "glusterfs",
    "ceph",
    "lustre",
    "gpfs",
    "beegfs",
    "davfs",
    "9p",
)


class SqliteStorage(SqlStorage):
    """A path, or sqlite:///path[?synchronous=NORMAL]. FULL by default: a told result was paid for."""

    dialect = "sqlite"
    mark = "?"
    now = "((julianday('now') - 2440587.5) * 86400.0)"

    _file: tuple[int, int] | None = None  # which one is connected to

    def __init__(self, address: str) -> None:
        if "://" in address:
            from sqlalchemy.engine import make_url

            url = make_url(address)
            path, query = url.database or "", dict(url.query)
        else:
            path, query = address, {}
        if path in ("", ":memory:"):
            raise StorageError('SQLite needs a file; for a study without one say storage="memory"')
        self.synchronous = str(query.pop("synchronous", "FULL")).upper()
        if query or self.synchronous not in SYNCHRONOUS:
            raise StorageError(f"{address}: only ?synchronous= {', '.join(SYNCHRONOUS)} is known")
        self.path = Path(path).expanduser().absolute()
        if not self.path.parent.is_dir():
            raise StorageError(f"{self.path}: there is no folder {self.path.parent}")
        _refuse_network(self.path)
        self._gate = Gate(self.path, PATIENCE)
        super().__init__(str(self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return SqliteStorage, (f"sqlite:///{self.path}?synchronous={self.synchronous}",)

    def _connected(self) -> Any:
        """To the file that is there now: a backup may have been put in its place."""
        file = _identity(self.shown)
        if self._connection is not None and file is None:
            raise StorageError(f"{self.path} is gone: it was deleted or moved")
        if self._connection is not None and file != self._file:
            self.close()
        connection = super()._connected()
        self._file = file or _identity(self.shown)
        return connection

    def close(self) -> None:
        """Give back the connection and the gate."""
        with self._lock:
            self._gate.close()
            super().close()

    def _connect(self) -> Any:
        connection = sqlite3.connect(
            self.path, timeout=PATIENCE, isolation_level=None, check_same_thread=False, cached_statements=64
        )
        connection.execute(f"PRAGMA page_size = {PAGE}")  # of a new file
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        return connection

    def _begin(self, study: int) -> None:
        self._connected()
        while self._gate.take() and _identity(self.shown) != self._file:  # it took a while
            self._gate.give_back()
            self._connected()
        self._writer.execute("BEGIN IMMEDIATE")

    def _commit(self) -> None:
        self._writer.execute("COMMIT")
        self._gate.give_back()

    def _roll_back(self) -> None:
        try:
            if self._is_inside():
                self._writer.execute("ROLLBACK")
        finally:
            self._gate.give_back()

    def _is_inside(self) -> bool:
        return self._connection is not None and bool(self._connection.in_transaction)

    def _send(self, cursor: Any, statements: list[Statement]) -> None:
        for statement, values in statements:
            cursor.execute(statement, values)

    def _version(self) -> int | None:
        there = self._all("SELECT 1 FROM sqlite_master WHERE name = 'lexbandits_version'")
        return int(self._all("SELECT schema FROM lexbandits_version")[0][0]) if there else None

    def _explained(self, error: Exception) -> StorageError | None:
        if isinstance(error, sqlite3.IntegrityError) and "FOREIGN KEY" in str(error):
            return deleted_meanwhile()  # type: ignore[return-value]
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            return StorageBusyError(f"{self.path} was in use for {PATIENCE:g} s; nothing was changed")
        if isinstance(error, (sqlite3.Error, OSError)):
            return StorageError(f"{self.path}: {error}")
        return None


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _refuse_network(path: Path) -> None:
    kind = _file_system(path)
    if kind.removeprefix("fuse.").startswith(NETWORK):
        raise StorageError(
            f"{path} is on a network file system ({kind}), whose locks SQLite cannot trust: "
            "put it on a local disk, or use PostgreSQL or the service"
        )


def _file_system(path: Path) -> str:
    """The kind of the file system that holds a path; "" where it cannot be found out."""
    if not sys.platform.startswith("linux"):
        return ""
    found, best = "", -1
    folder = os.path.realpath(path.parent)
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, mount, kind, *_ = line.split(" ")
        point = mount.replace("\\040", " ")
        if (folder == point or folder.startswith(point.rstrip("/") + "/")) and len(point) >= best:
            found, best = kind, len(point)
    return found
