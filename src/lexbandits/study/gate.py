"""The gate at which the writers of a SQLite file queue: `flock` on files beside it.

SQLite itself lets them try again and again, which starves some of them for many seconds. The kernel opens
the gate when a process dies.
"""

import os
import threading
import time
import weakref
from pathlib import Path
from types import TracebackType

from lexbandits.study.errors import StorageBusyError, StorageError

try:
    import fcntl
except ImportError:  # neither Linux nor macOS
    fcntl = None  # type: ignore[assignment]


class Gate:
    """A block that one process at a time can be in, and one thread: one after the other.

    Who has just given the lock back would take it again before the kernel has woken who waits for it, so
    it is waited for with the place at the head of a queue, a lock on a second file, in hand.
    """

    def __init__(self, path: Path, patience: float) -> None:
        if fcntl is None:
            raise StorageError("SQLite studies need Linux or macOS; elsewhere use PostgreSQL or the service")
        self.path, self.patience = path, patience
        self._names = f"{path}.queue", f"{path}.lock"
        self._locks: list[int] = []
        _gates.add(self)

    def __enter__(self) -> None:
        if not self._locks:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._locks = [os.open(name, flags, 0o666) for name in self._names]
        taken = 0
        try:
            for lock in self._locks:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                taken += 1
        except BlockingIOError:
            self._wait(taken)
        fcntl.flock(self._locks[0], fcntl.LOCK_UN)  # the next one is the head of the queue

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._locks:
            fcntl.flock(self._locks[1], fcntl.LOCK_UN)

    def close(self) -> None:
        """Let go of the files."""
        locks, self._locks = self._locks, []
        for lock in locks:
            os.close(lock)

    def __del__(self) -> None:
        if hasattr(self, "_locks"):
            self.close()

    def _wait(self, taken: int) -> None:
        """For the locks that are not taken, in a thread, since `flock` knows no time limit."""
        locks, turn = self._locks, threading.Condition()
        state = {"ours": False, "given up": False}

        def wait() -> None:
            for lock in locks[taken:]:
                fcntl.flock(lock, fcntl.LOCK_EX)
            with turn:
                state["ours"] = True
                if state["given up"]:
                    for lock in locks:
                        os.close(lock)
                turn.notify()

        threading.Thread(target=wait, daemon=True).start()
        until = time.monotonic() + self.patience
        with turn:
            while not state["ours"]:
                if not turn.wait(until - time.monotonic()) and not state["ours"]:
                    state["given up"] = True
                    self._locks = []  # they are the thread's to close
                    raise StorageBusyError(
                        f"{self.path}: others wrote for {self.patience:g} s; nothing was changed"
                    )


_gates: "weakref.WeakSet[Gate]" = weakref.WeakSet()


def _let_go() -> None:
    """A child shares the locks of its parent, and would keep them if that died."""
    for gate in list(_gates):
        gate.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go)
