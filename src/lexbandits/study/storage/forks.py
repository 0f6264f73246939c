"""A process is forked between transactions, never inside one that another of its threads has begun.

The child would wait for a thread that it does not have; and SQLite would remember the parent's lock as its
own. To open or close a connection is such a time too: SQLite holds locks of the whole process meanwhile.
"""

import os
import threading
import weakref
from contextlib import suppress
from typing import Any

_journals: "weakref.WeakSet[Any]" = weakref.WeakSet()  # no fork while the `lock` of one is held
_storages: "weakref.WeakSet[Any]" = weakref.WeakSet()  # nor their `_lock`, which is taken after a journal's
_forking = threading.RLock()  # by one thread at a time, and taken first
_changing = threading.RLock()  # what is known here; nothing else is waited for inside it
_mine = threading.local()


def know_journal(journal: Any) -> None:
    """Never fork while its `lock` is held. Call it before the first time."""
    with _changing:
        _journals.add(journal)


def know_storage(storage: Any) -> None:
    """Never fork while its `_lock` is held. Call it before the first time."""
    with _changing:
        _storages.add(storage)


def close_here(connection: Any, pid: int) -> None:
    """Close a connection in the process that opened it, whatever state it is in."""
    if pid == os.getpid():
        with _changing, suppress(Exception):
            connection.close()


def _locks() -> list[Any]:
    return [*(journal.lock for journal in _journals), *(storage._lock for storage in _storages)]


def _hold() -> None:
    held = _mine.held = []  # of this thread alone: another may want to fork as well

    def take(lock: Any) -> None:
        lock.acquire()
        held.append(lock)

    take(_forking)
    while True:
        with _changing:
            locks = _locks()
        for lock in locks:
            take(lock)
        take(_changing)
        if set(_locks()) <= set(locks):
            return
        while held[-1] is not _forking:  # one was made meanwhile, and may be in use: all again, in order
            held.pop().release()


def _let_go() -> None:
    while _mine.held:
        _mine.held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
