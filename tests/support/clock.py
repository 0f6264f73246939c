"""A clock that a test moves: the time of storages, here and in services, is so far ahead of the machine's.

A lease of an hour outlasts any work; then `clock.move(3600)`, and it has run out.
"""

import os
import tempfile
import time
from pathlib import Path

from lexbandits.study.storage.postgres import PostgresStorage
from lexbandits.study.storage.sqlite import SqliteStorage

FILE = Path(tempfile.gettempdir()) / f"lex-clock-{os.getpid()}"


def follow(file=FILE, change=setattr):
    """Let the databases' clocks be ahead by as many seconds as the file says."""
    for kind in (SqliteStorage, PostgresStorage):
        now = property(lambda _, real=kind.now: f"({real} + {_ahead(file)!r})")
        change(kind, "now", now)


class Clock:
    """Of this process, and of services that follow it."""

    def time(self):
        return time.time() + _ahead(FILE)

    def move(self, seconds):
        later = FILE.with_suffix(".new")
        later.write_text(repr(_ahead(FILE) + seconds))
        later.replace(FILE)

    def close(self):
        FILE.unlink(missing_ok=True)


def _ahead(file):
    try:
        return float(file.read_text())
    except FileNotFoundError:
        return 0.0
