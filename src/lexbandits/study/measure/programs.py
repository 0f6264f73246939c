"""Measure with any program: fill in its command line, run it, read the values from its last line."""

import json
import math
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from lexbandits.study.errors import StudyError
from lexbandits.study.items import id_of
from lexbandits.study.measure import usage

PLACEHOLDER = re.compile(r"\{\{|\}\}|\{([^{}\s]+)\}")
GRACE = 3.0  # seconds between asking a program to end and ending it, and then until its pipes are left
LAST_LINE = 64 * 1024  # bytes of the line with the values, at most
KEPT = 4 * LAST_LINE  # bytes of each of a program's outputs that are kept, the last ones
SAID = 500  # characters of what it printed that an error repeats
LOOK = 1.0  # seconds between two looks whether everything has been ended
USAGE = {"seconds": "s", "memory": "MB"}  # what can be measured of a command
LAUNCHER = [sys.executable, "-I", "-S", usage.__file__]
MISSING = ("", "none", "null", "nan")

Arms = Mapping[str, Mapping[str, Any]]


class ProgramFailed(Exception):  # noqa: N818
    """It ended badly, took too long or said nothing that can be read: a failed trial."""


class Stopped(BaseException):
    """Somebody asked us to stop: the program was broken off, or never begun."""

    def __init__(self, begun: bool = True) -> None:
        self.begun = begun
        super().__init__()

    def __reduce__(self) -> tuple[Any, ...]:
        return Stopped, (self.begun,)


def check_possible() -> None:
    """Refuse to start programs where they cannot be ended with all that they have started."""
    if not hasattr(os, "killpg"):
        raise StudyError(
            "programs can be measured on Linux and macOS alone, where one is ended with all that it has "
            "started. On Windows call study.run with a function, or lexbandits study ask and tell"
        )


class Program:
    """A command line with `{arm}`, `{item}`, `{item[key]}`, `{repeat}` and the further keys of the arms.

    `{{` and `}}` are braces. `example` is an item such as there will be.
    """

    def __init__(
        self,
        command: Sequence[str],
        arms: Callable[[], Arms],
        timeout: float | None = None,
        measures: Sequence[str] = (),
        prints: bool = True,
        example: Any = 0,
    ) -> None:
        self._command, self._arms, self._timeout = list(command), arms, timeout
        self._measures, self._prints = measures, prints  # of USAGE; whether it prints values too
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock = threading.Lock()
        self.stopped: int | None = None  # by this signal
        self.failure = ""  # the last one
        self._broken_off: set[subprocess.Popen[bytes]] = set()  # asked to end while they ran
        self._killed = False  # so long ago that whatever would end has ended
        check_possible()
        if not self._command:
            raise StudyError("say the command after --, such as: -- python measure.py {arm}")
        for arm in arms():
            self._filled(arm, example, 1)
        if PLACEHOLDER.search(self._command[0]) is None and shutil.which(self._command[0]) is None:
            raise StudyError(f"no program {self._command[0]!r}")

    def __call__(self, arm: str, item: Any, repeat: int = 1) -> dict[str, Any]:
        """The values that one run of the program prints."""
        try:
            return self._measured(self._filled(arm, item, repeat))
        except ProgramFailed as failure:
            self.failure = str(failure)
            raise

    def _measured(self, line: list[str]) -> dict[str, Any]:
        used, pipe = os.pipe() if self._measures else (None, None)
        try:
            values = self._run(line if pipe is None else [*LAUNCHER, str(pipe), *line], pipe)
            return values if used is None else self._with_usage(values, os.read(used, 100))
        finally:
            for end in (used, pipe):
                if end is not None:
                    os.close(end)

    def _with_usage(self, values: dict[str, Any], told: bytes) -> dict[str, Any]:
        took, peak = map(float, told.split())
        known = {"seconds": took, "memory": peak / 1e6}
        if twice := values.keys() & set(self._measures):
            raise ProgramFailed(f"it prints {min(twice)!r}, which --measure measures")
        return {**values, **{name: known[name] for name in self._measures}}

    def _run(self, line: list[str], pipe: int | None) -> dict[str, Any]:
        with self._lock:
            if self.stopped is not None:
                raise Stopped(begun=False)
            try:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    start_new_session=True,  # so that its own children end with it
                    pass_fds=() if pipe is None else (pipe,),
                )
            except OSError as error:
                raise ProgramFailed(f"{line[0]}: {error}") from None
            self._running.add(process)
            if self.stopped is not None:  # since it was begun: the signal found it nowhere
                self._break_off(process)
        try:
            out, err = self._output(process)
            if process.returncode != 0 and process in self._broken_off:
                raise Stopped
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode != 0:
            said = _shortened((_lines(err) or [""])[-1])
            raise ProgramFailed(f"exit code {process.returncode}{': ' if said else ''}{said}")
        return values_of(out) if self._prints else {}

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End what runs, measure nothing more. Safe in a signal handler."""
        self.stopped = number
        for process in tuple(self._running):
            self._break_off(process)
        killer = threading.Timer(GRACE, self._kill)
        killer.daemon = True
        killer.start()

    def _break_off(self, process: subprocess.Popen[bytes]) -> None:
        if not _has_ended(process):  # how it ended by itself is its own result, whoever holds its pipes
            self._broken_off.add(process)
        _signal_group(process, signal.SIGTERM)

    def _kill(self) -> None:
        self._killed = True
        for process in tuple(self._running):
            _signal_group(process, signal.SIGKILL)

    def _output(self, process: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
        """What it printed until it and all who hold its pipes had ended."""
        limit = math.inf if self._timeout is None else self._timeout
        end = time.monotonic() + limit
        tails = Tails(process)
        while not self._killed and (left := end - time.monotonic()) > 0:
            if tails.read(min(left, LOOK)):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(min(left, LOOK))
                    return bytes(tails.out), bytes(tails.err)
        was_stopped = self._killed
        _end(process, tails)
        if not was_stopped:
            raise ProgramFailed(f"no result within {limit:g} s")
        if process.returncode == 0:  # but not all that it would print
            raise Stopped
        return bytes(tails.out), bytes(tails.err)

    def _filled(self, arm: str, item: Any, repeat: int) -> list[str]:
        keys = item if isinstance(item, dict) else {}
        known = {"arm": arm, "item": id_of(item), **self._arms()[arm], "repeat": repeat}
        known |= {f"item[{key}]": word for key, word in keys.items()}
        known.pop("name")

        def value(match: re.Match[str]) -> str:
            if match[1] is None:
                return match[0][0]
            if match[1] not in known:
                there = ", ".join(f"{{{key}}}" for key in known)
                raise StudyError(f"arm {arm!r} has no {match[0]}; there are {there} ({{{{ is a brace)")
            return str(known[match[1]])

        return [PLACEHOLDER.sub(value, word) for word in self._command]


def pairs(words: Iterable[str]) -> dict[str, float | None]:
    """`name=value` pairs as values; none, null, nan or nothing where there is no value.

    >>> pairs(["correct=1", "time = 0.25", "cost="])
    {'correct': 1.0, 'time': 0.25, 'cost': None}
    """
    values: dict[str, float | None] = {}
    for word in words:
        name, equals, text = (part.strip() for part in word.rpartition("="))
        if not (name and equals):
            raise StudyError(f"values are name=value pairs, such as latency=640, got {word!r}")
        if name in values:
            raise StudyError(f"{name!r} is given twice")
        if text.lower() in MISSING:
            values[name] = None
            continue
        try:
            values[name] = float(text)
        except ValueError:
            raise StudyError(f"{name}: a value must be a number, got {text!r}") from None
    return values


def _has_ended(process: subprocess.Popen[bytes]) -> bool:
    """Whether it has ended, whoever asks meanwhile how: `poll` says no while another thread waits for it."""
    if process.returncode is not None or not hasattr(os, "waitid"):  # macOS has it from Python 3.13 on
        return process.poll() is not None
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return True


def _signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Signal it and its children, which may outlive it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


class Tails:
    """The ends of what a program prints, however much that is."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self.out, self.err = bytearray(), bytearray()
        self._pipes = process.stdout, process.stderr
        self._open = {process.stdout.fileno(): self.out, process.stderr.fileno(): self.err}

    def read(self, seconds: float) -> bool:
        """Read for so long at most; whether both outputs have ended."""
        end = time.monotonic() + seconds
        with selectors.DefaultSelector() as selector:
            for pipe in self._open:
                selector.register(pipe, selectors.EVENT_READ)
            while self._open and (left := end - time.monotonic()) > 0:
                for key, _ in selector.select(left):
                    self._take(selector, key.fd)
        if not self._open:
            self.close()
        return not self._open

    def _take(self, selector: selectors.BaseSelector, pipe: int) -> None:
        more = os.read(pipe, KEPT)
        if more:
            self._open[pipe] += more
            del self._open[pipe][:-KEPT]
        else:
            selector.unregister(pipe)
            del self._open[pipe]

    def close(self) -> None:
        """Leave the pipes, whoever still holds them."""
        for pipe in self._pipes:
            pipe.close()


def _end(process: subprocess.Popen[bytes], tails: Tails) -> None:
    """End it with its children; a child in a session of its own may still hold the pipes: leave them."""
    _signal_group(process, signal.SIGKILL)
    tails.read(GRACE)
    tails.close()
    with suppress(subprocess.TimeoutExpired):
        process.wait(GRACE)


def _lines(output: bytes) -> list[str]:
    return [line for line in output.decode("utf-8", "replace").splitlines() if line.strip()]


def _shortened(text: str) -> str:
    return text if len(text) <= SAID else f"{text[:SAID]}…"


def values_of(output: bytes) -> dict[str, Any]:
    """The values on the last line that says anything: a JSON object, or name=value pairs."""
    lines = _lines(output)
    if not lines:
        raise ProgramFailed("it printed nothing")
    last = lines[-1].strip()
    if len(last.encode()) > LAST_LINE:
        raise ProgramFailed(
            f"its last line is longer than {LAST_LINE:,} bytes: print the values on a line of their own"
        )
    try:
        if last.startswith("{"):
            values = json.loads(last)
            if isinstance(values, dict):
                return values
        words = shlex.split(last) if re.search(r"['\"\\]", last) else last.split()
        return pairs(word.rstrip(",") for word in words)
    except (ValueError, RecursionError):
        raise ProgramFailed(
            f"its last line is neither a JSON object nor name=value pairs: {_shortened(last)!r}"
        ) from None
