"""A process is forked between transactions, never inside one that another of its threads has begun.

The child would wait for a thread that it does not have; and SQLite would remember the parent's lock as its
own.
"""

import os
import weakref
from contextlib import suppress
from typing import Any

journals: "weakref.WeakSet[Any]" = weakref.WeakSet()  # no fork while the `lock` of one is held
storages: "weakref.WeakSet[Any]" = weakref.WeakSet()  # nor their `_lock`, which is taken after a journal's
_held: list[Any] = []


def close_here(connection: Any, pid: int) -> None:
    """Close a connection in the process that opened it, whatever state it is in."""
    if pid == os.getpid():
        with suppress(Exception):
            connection.close()


def _hold() -> None:
    locks = [*(journal.lock for journal in list(journals)), *(storage._lock for storage in list(storages))]
    for lock in locks:
        lock.acquire()
        _held.append(lock)


def _let_go() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
