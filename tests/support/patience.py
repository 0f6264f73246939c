"""Waiting for what must come: a limit only says that it never will, however busy the machine is."""

import fcntl
import os
import time
from pathlib import Path


def until(condition, seconds=600):
    """Wait for something to become true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def alive(pid):
    """Whether a process runs; one that has ended and was not asked how does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def number_in(path):
    """What a program has written there, once it is written: its process id."""
    until(lambda: path.exists() and path.read_text().endswith("\n"))
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


def kept_alive(study, worker, lease, since, between=lambda: None):
    """Heartbeats for longer than a lease that was asked for not before `since`; until when it lasts.

    On a busy machine one may come too late: then it may have lasted until any time.
    """
    last, in_time = since, True
    while time.monotonic() < since + 1.3 * lease:
        time.sleep(lease / 3)
        begun = time.monotonic()
        study.heartbeat(worker)
        in_time &= time.monotonic() - last < lease
        last = begun
        between()
    return last + lease if in_time else 0.0
