"""A process is forked between transactions, never inside one that another of its threads has begun.

The child would wait for a thread that it does not have; and SQLite would remember the parent's lock as its
own.
"""

import os
import weakref
from typing import Any

_journals: "weakref.WeakSet[Any]" = weakref.WeakSet()
_storages: "weakref.WeakSet[Any]" = weakref.WeakSet()
_held: list[Any] = []


def watch_journal(journal: Any) -> None:
    """No fork while its `lock` is held by another thread."""
    _journals.add(journal)


def watch_storage(storage: Any) -> None:
    """The same of its `_lock`, which is taken after a journal's."""
    _storages.add(storage)


def _hold() -> None:
    journals = [journal.lock for journal in list(_journals)]
    for lock in [*journals, *(storage._lock for storage in list(_storages))]:
        lock.acquire()
        _held.append(lock)


def _let_go() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_hold, after_in_parent=_let_go, after_in_child=_let_go)
