"""The gate at which the writers of a SQLite file queue: locks on files beside it.

SQLite itself lets them try again and again, which starves some of them for many seconds. The kernel opens
the gate when a process dies. Unix has `flock`; Windows locks a byte, for one alone, and cannot wait in line.
"""

import os
import stat
import struct
import threading
import time
import weakref
from contextlib import suppress
from pathlib import Path
from typing import Any

from lexbandits.study.errors import StorageBusyError, StorageError

fcntl: Any = None
msvcrt: Any = None
with suppress(ImportError):
    import fcntl
with suppress(ImportError):
    import msvcrt

IMPATIENT = 0.05  # seconds after which a waiter keeps others from going first
SHORTEST = 5e-4  # seconds of sleep before it looks again
MARK = struct.Struct("=qq")
BYTE = 1 << 30  # which one Windows locks: behind the mark, as nobody else may read a byte that is locked
BINARY: int = getattr(os, "O_BINARY", 0)


class FileLock:
    """A block that one process at a time can be in, and one thread.

    Who waits looks again from time to time, and who gives the lock back and wants it again is there first.
    That is fast, and would starve some for many seconds. So who has waited for a while locks a second file,
    and as long as it is locked everybody goes to the end of the kernel's queue.
    """

    def __init__(self, path: Path, patience: float) -> None:
        if fcntl is None and msvcrt is None:
            raise StorageError(
                "SQLite studies need Linux, macOS or Windows; elsewhere use PostgreSQL or the service"
            )
        self.path, self.patience = path, patience
        self._names = f"{path}.queue", f"{path}.lock"
        self._locks: list[int] = []
        _file_locks.add(self)

    def take(self) -> bool:
        """Wait until nobody else is inside; `StorageBusyError` after `patience` seconds.

        Whether it had to wait. Who is interrupted gives it back, as it may have been had.
        """
        if not self._locks:
            flags = os.O_RDWR | os.O_CREAT | BINARY
            mode = stat.S_IMODE(self.path.stat().st_mode) if self.path.exists() else 0o600
            self._locks = [os.open(name, flags, mode) for name in self._names]  # whoever opens it may hold it
        if self._passed():
            return False
        start = time.monotonic()
        while (waited := time.monotonic() - start) < IMPATIENT:
            time.sleep(SHORTEST + waited / 4)  # far cheaper than a thread that waits
            if self._passed():
                return True
        self._wait(start)
        return True

    def _passed(self) -> bool:
        queue, gate = self._locks
        try:
            return _taken(queue, shared=True) and _taken(gate)
        finally:
            _give_back(queue)

    def give_back(self) -> None:
        """Let the next one in."""
        if self._locks:
            _give_back(self._locks[1])

    def leave(self, mark: tuple[int, int]) -> None:
        """Two numbers for whoever comes next; to be called inside."""
        os.lseek(self._locks[1], 0, os.SEEK_SET)
        os.write(self._locks[1], MARK.pack(*mark))

    def mark(self) -> tuple[int, int] | None:
        """Those that were left last, if any."""
        left = start_of(self._locks[1], MARK.size)
        return MARK.unpack(left) if len(left) == MARK.size else None

    def close(self) -> None:
        """Let go of the files."""
        locks, self._locks = self._locks, []
        for lock in locks:
            os.close(lock)

    def __del__(self) -> None:
        if hasattr(self, "_locks"):
            self.close()

    def _wait(self, start: float) -> None:
        if fcntl is None:
            self._look_again(start)
        else:
            self._wait_in_line(start)

    def _busy(self) -> StorageBusyError:
        return StorageBusyError(f"{self.path}: others wrote for {self.patience:g} s; nothing was changed")

    def _look_again(self, start: float) -> None:
        """Now and then, with the queue locked as soon as can be: who holds it is the next."""
        queue, gate = self._locks
        starving = False
        try:
            while not _taken(gate):
                if time.monotonic() - start >= self.patience:
                    raise self._busy()
                starving = starving or _taken(queue)
                time.sleep(IMPATIENT / 20 if starving else IMPATIENT / 5)
        except BaseException:
            self.close()  # which gives back what may have been had
            raise
        if starving:
            _give_back(queue)

    def _wait_in_line(self, start: float) -> None:
        """In a thread, since `flock` knows no time limit; with the queue locked as soon as can be."""
        (queue, gate), turn = self._locks, threading.Condition()
        state = {"ours": False, "given up": False}

        def wait() -> None:
            fcntl.flock(gate, fcntl.LOCK_EX)
            with turn:
                state["ours"] = True
                if state["given up"]:
                    fcntl.flock(gate, fcntl.LOCK_UN)  # a child made meanwhile has the file open too
                    os.close(gate)
                turn.notify()

        starving = False
        with turn:
            try:
                threading.Thread(target=wait, daemon=True).start()  # which waits too, and can be interrupted
                while not state["ours"]:
                    waited = time.monotonic() - start
                    if waited >= self.patience:
                        raise self._busy()
                    starving = starving or _taken(queue)
                    turn.wait(self.patience - waited if starving else IMPATIENT)
            except BaseException:  # Ctrl-C too: what comes when nobody waits any more is given back
                state["given up"] = True
                if state["ours"]:
                    fcntl.flock(gate, fcntl.LOCK_UN)
                if starving:
                    fcntl.flock(queue, fcntl.LOCK_UN)
                self._locks = [queue, gate] if state["ours"] else [queue]
                self.close()
                raise
            if starving:
                fcntl.flock(queue, fcntl.LOCK_UN)


def _taken(lock: int, shared: bool = False) -> bool:
    try:
        if fcntl is not None:
            fcntl.flock(lock, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        else:
            os.lseek(lock, BYTE, os.SEEK_SET)
            msvcrt.locking(lock, msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):
        return False
    return True


def _give_back(lock: int) -> None:
    if fcntl is not None:
        fcntl.flock(lock, fcntl.LOCK_UN)
        return
    os.lseek(lock, BYTE, os.SEEK_SET)
    with suppress(PermissionError):  # it was not ours
        msvcrt.locking(lock, msvcrt.LK_UNLCK, 1)


def start_of(file: int, size: int) -> bytes:
    """The first bytes of an open file."""
    if hasattr(os, "pread"):
        return os.pread(file, size, 0)
    os.lseek(file, 0, os.SEEK_SET)
    return os.read(file, size)


_file_locks: "weakref.WeakSet[FileLock]" = weakref.WeakSet()


def _let_go() -> None:
    """A child shares the locks of its parent, and would keep them if that died."""
    for gate in list(_file_locks):
        gate.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
