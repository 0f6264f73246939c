"""SQLite: one file, any number of processes on one machine, whose writers queue at a gate.

A backup may be put in the place of an open file. With mv it is another file, which is noticed and opened.
With cp it is the same file with other content, beside a log and caches of the old: SQLite cannot know, and
would write the one into the other.
"""

import ctypes
import os
import re
import sqlite3
import struct
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote

from lexbandits._printable import printable
from lexbandits.study.errors import StorageBusyError, StorageError
from lexbandits.study.storage.contract import file_of
from lexbandits.study.storage.file_lock import BINARY, FileLock, start_of
from lexbandits.study.storage.sql import SqlStorage, Statement, deleted_meanwhile
from lexbandits.study.storage.tables import Dialect

PATIENCE = 60.0  # seconds
PAGE = 2_048  # bytes; a commit writes whole pages, two or three of them for a few bytes each
CHECKPOINT = 8_000  # pages: the same few are written again and again, and each checkpoint syncs
FOLLOWS = 1 << 20  # times that a log may have begun anew between two looks
SYNCHRONOUS = ("OFF", "NORMAL", "FULL", "EXTRA")
NETWORK = re.compile("nfs|cifs|smb|sshfs|afs|glusterfs|ceph|lustre|gpfs|beegfs|davfs|9p")

SALT = struct.Struct(">16xI")  # in the header of a log: a number that grows by one when it begins anew

_spoiled: set[tuple[int, int]] = set()  # files that this process has seen overwritten, and must not open


class _Connection(sqlite3.Connection):
    """A connection that knows the log it writes."""

    log = -1  # SQLite has no locks on it: it may be opened and closed beside
    can_write = True

    def open_log(self, path: str) -> tuple[int, int] | None:
        """Hold on to the log that was opened a moment ago, and say which it is."""
        self.log = os.open(f"{path}-wal", os.O_RDONLY | BINARY)
        self.file = _identity(path)
        return _identity(f"{path}-wal")

    def has_lost_log(self) -> bool:
        """Whether somebody removed the log, which nobody does while it is in use."""
        return self.log >= 0 and os.fstat(self.log).st_nlink == 0

    def salt(self) -> int | None:
        """Which log it is; None while it is empty."""
        return _salt(start_of(self.log, SALT.size))

    def close(self) -> None:
        """Without a log it stays open for good: to close it would write the log into what is there now."""
        lost = self.has_lost_log()
        if self.log >= 0:  # before SQLite removes it: Windows would not, as long as it is open
            os.close(self.log)
            self.log = -1
        if lost:
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(self))  # not even the end of Python closes it
            if self.file is not None:
                _spoiled.add(self.file)
        else:
            super().close()


def _connect(where: str | Path, **how: Any) -> _Connection:
    alike: dict[str, Any] = {"timeout": PATIENCE, "isolation_level": None, "check_same_thread": False}
    return sqlite3.connect(where, factory=_Connection, **alike, **how)


class SqliteStorage(SqlStorage):
    """A path, or sqlite:///path[?synchronous=NORMAL]. FULL by default: a told result was paid for."""

    dialect = Dialect("id INTEGER PRIMARY KEY AUTOINCREMENT", "BLOB", "WITHOUT ROWID")
    mark = "?"
    now = "((julianday('now') - 2440587.5) * 86400.0)"

    _file: tuple[int, int] | None = None  # which one is connected to
    _log: tuple[int, int] | None = None  # and which log
    _content: tuple[int, int] | None = None  # when it was written, and its size, at the last look
    _salt: int | None = None  # of its log, then
    _seen: tuple[Any, Any] = (None, None)  # what is there, if it can only be looked at

    def __init__(self, address: str) -> None:
        path, words = file_of(address)
        if path in ("", ":memory:") or "://" in path:
            raise StorageError(
                'SQLite needs a file, as in sqlite:///study.db; for a study without one say storage="memory"'
            )
        query = dict(parse_qsl(words, keep_blank_values=True))
        self.synchronous = query.pop("synchronous", "FULL").upper()
        if query or bool(words) != ("=" in words) or self.synchronous not in SYNCHRONOUS:
            raise StorageError(f"{address}: only ?synchronous= {', '.join(SYNCHRONOUS)} is known")
        self.path = Path(path).expanduser().absolute()
        if not self.path.parent.is_dir():
            raise StorageError(f"{self.path}: there is no folder {self.path.parent}")
        _refuse_network(self.path)
        self._file_lock = FileLock(self.path, PATIENCE)
        super().__init__(str(self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        return SqliteStorage, (f"sqlite:///{quote(str(self.path))}?synchronous={self.synchronous}",)

    def _connected(self) -> Any:
        """Connect to the present file: a backup may have been put in its place."""
        file = _identity(self.shown)
        if self._connection is not None and self._pid == os.getpid():
            if file is None:
                raise StorageError(f"{self.path} is gone: it was deleted or moved")
            if file != self._file:
                self.close()
            elif self._connection.has_lost_log():
                raise self._copied()
            elif not self._connection.can_write and self._seen != self._contents():
                self.close()  # others can write, and it would not notice
        if self._connection is None and file != self._file is not None:
            self._refuse_old_log()
        connection = super()._connected()
        self._file = file or _identity(self.shown)
        return connection

    def _refuse_old_log(self) -> None:
        """Another file is there: SQLite would take the log beside it for its own."""
        name = self.path.name
        if self._log is None or _identity(f"{self.shown}-wal") != self._log:
            return
        with open(f"{self.shown}-wal", "rb") as log:
            salt = _salt(log.read(SALT.size))
        if salt is not None and _follows(salt, self._salt):  # and not a new one of the same number
            raise StorageError(
                f"{self.path} was replaced, and {name}-wal beside it belongs to the old file: stop all who "
                f"use it, remove {name}-wal and {name}-shm, and start again"
            )

    def _copied(self) -> StorageError:
        name = self.path.name
        return StorageError(
            f"{self.path} was overwritten while it was in use, as by cp. Nothing that is told now would "
            "last. Stop every worker and the service, and put the backup in its place with mv. Then remove "
            f"{name}-wal and {name}-shm, and start again"
        )

    def close(self) -> None:
        """Give back the connection and the gate."""
        with self._lock:
            self._file_lock.close()
            if self._connection is not None and self._pid == os.getpid() and self._connection.can_write:
                self._salt = self._connection.salt()
            super().close()

    def _connect(self) -> Any:
        if _identity(self.shown) in _spoiled:
            raise self._copied()
        if not self._can_write():
            return self._connect_to_look()
        with suppress(FileExistsError):  # its owner's alone: it holds results, and tokens' hashes
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
        connection = _connect(self.path, cached_statements=64)
        try:
            self._prepare_connection(connection)
        except BaseException:
            connection.close()  # it is no database, or was in use for too long
            raise
        return connection

    def _prepare_connection(self, connection: _Connection) -> None:
        connection.execute(f"PRAGMA page_size = {PAGE}")  # of a new file
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            self._file_lock.take()  # SQLite waits for nobody here, and would refuse all but one
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            finally:
                self._file_lock.give_back()
        connection.execute(f"PRAGMA synchronous = {self.synchronous}")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT}")
        connection.execute("SELECT 1 FROM sqlite_master").fetchone()  # which opens the log
        self._log = connection.open_log(self.shown)
        self._content, self._salt = _content(self.shown), connection.salt()

    def _can_write(self) -> bool:
        """Or there is nothing yet: then it has to be made."""
        log = f"{self.path}-wal"
        beside = os.access(self.path.parent, os.W_OK) or os.access(log, os.W_OK)
        return not self.path.exists() or (beside and os.access(self.path, os.W_OK))

    def _connect_to_look(self) -> Any:
        """To a file on a disk that is read only, or of somebody else."""
        self._seen = self._contents()
        log = self._seen[1]
        alone = log is None or log[1] == 0  # without a log SQLite must be kept from making one
        connection = _connect(f"{self.path.as_uri()}?mode=ro{'&immutable=1' if alone else ''}", uri=True)
        connection.can_write = False
        return connection

    def _contents(self) -> tuple[Any, Any]:
        """Of the file and of its log."""
        log = f"{self.shown}-wal"
        return _content(self.shown), _content(log) if os.path.exists(log) else None

    def _begin(self, study: int) -> None:
        if not self._connected().can_write:
            raise StorageError(f"{self.path} can only be looked at: it, or its folder, is read only")
        while self._file_lock.take() and _identity(self.shown) != self._file:  # it took a while
            self._file_lock.give_back()
            self._connected()
        self._look_at_content()
        self._writer.execute("BEGIN IMMEDIATE")

    def _look_at_content(self) -> None:
        """Whether the file was written by others than us, who leave a mark at the gate: is it still whole?"""
        content, salt = _content(self.shown), self._connection.salt()
        if self._connection.has_lost_log():
            raise self._copied()
        known = content == self._content or self._file_lock.mark() == content
        if not (known and _follows(salt, self._salt)):
            super().close()  # which forgets the pages that it remembers
            found = self._connected().execute("PRAGMA integrity_check(1)").fetchone()[0]
            if found != "ok":
                super().close()
                _spoiled.add(self._file or (0, 0))
                raise self._copied()
            self._file_lock.leave(content)
        self._content, self._salt = content, salt

    def _commit(self) -> None:
        self._writer.execute("COMMIT")
        content = _content(self.shown)
        if content != self._content:  # the log was written into the file
            self._content = content
            self._file_lock.leave(content)
        self._file_lock.give_back()

    def _roll_back(self) -> None:
        try:
            if self._is_inside():
                self._writer.execute("ROLLBACK")
        finally:
            self._file_lock.give_back()

    def _is_inside(self) -> bool:
        return self._connection is not None and bool(self._connection.in_transaction)

    def _send(self, cursor: Any, statements: list[Statement]) -> None:
        for statement, values in statements:
            cursor.execute(statement, values)

    def _has(self, table: str) -> bool:
        return bool(self._all("SELECT 1 FROM sqlite_master WHERE name = ?", f"lexbandits_{table}"))

    def damage(self) -> list[str]:
        """Return what SQLite's own check finds wrong with the file."""
        found = [row[0] for row in self._all("PRAGMA integrity_check(5)")]
        return [] if found == ["ok"] else [" ".join(str(words).split()) for words in found]

    def _explained(self, error: Exception) -> StorageError | None:
        if isinstance(error, sqlite3.IntegrityError) and "FOREIGN KEY" in str(error):
            return deleted_meanwhile()  # type: ignore[return-value]
        if isinstance(error, sqlite3.OperationalError) and "locked" in str(error):
            return StorageBusyError(f"{self.path} was in use for {PATIENCE:g} s; nothing was changed")
        if isinstance(error, sqlite3.OperationalError) and not self._can_write() and self._contents()[1]:
            name = self.path.name
            return StorageError(
                f"{self.path} is read only, and its latest results are in {name}-wal, which cannot be read "
                f"there ({error}). Copy {name} and {name}-wal to a folder that can be written, and look there"
            )
        if isinstance(error, (sqlite3.Error, OSError, UnicodeDecodeError)):  # the last of a damaged file
            return StorageError(f"{self.path}: {printable(str(error))[:200]}")
        return None


def _salt(header: bytes) -> int | None:
    return int(SALT.unpack(header)[0]) if len(header) == SALT.size else None


def _follows(salt: int | None, earlier: int | None) -> bool:
    """Whether a log may be an earlier one that has begun anew since; it may if either is empty."""
    return salt is None or earlier is None or (salt - earlier) % (1 << 32) < FOLLOWS


def _content(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _refuse_network(path: Path) -> None:
    kind = _file_system(path)
    if NETWORK.match(kind.removeprefix("fuse.")):
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
