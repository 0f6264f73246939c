"""Waiting for what must come: a limit only says that it never will, however busy the machine is."""

import fcntl
import os
import time
from concurrent.futures import Future
from pathlib import Path


def until(condition, process=None, seconds=600):
    """Wait for something to become true; in vain at once if a process (a service, a future) that it is up to
    has ended."""
    end = time.monotonic() + seconds
    while not condition():
        how = _ended(getattr(process, "process", process))
        assert not how or condition(), how
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def _ended(process):
    """How it has ended; nothing while it goes on."""
    if process is None:
        return ""
    if isinstance(process, Future):
        return f"it ended with {process.exception()!r}" if process.done() else ""
    if process.poll() is None:
        return ""
    heard = process.stderr and not process.stderr.closed
    return f"it ended with {process.returncode} and said {process.stderr.read() if heard else '?'}"


def alive(pid):
    """Whether a process runs; one that has ended and was not asked how does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def number_in(path, process=None):
    """What a program has written there, once it is written: its process id."""
    until(lambda: path.exists() and path.read_text().endswith("\n"), process)
    return int(path.read_text())


def waits_at_gate(path):
    """Whether somebody has waited at the gate of a SQLite file for a while."""
    queue = os.open(f"{path}.queue", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(queue, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(queue)
    return False
