"""When a kernel runs as Python and when compiled: interpreted at first, compiled once that pays.

A kernel is the function that was written: kernels call each other as Python does. Other code calls an
`entry`, which runs the function as it is until there is compiled code (_compiled.py), and that from then on.
Both work on the same arrays and agree bit for bit, so a process may change over between any two calls:

- Work in bulk, such as sweeps and forecasts, is always compiled: its first call waits for that.
- Everything else begins interpreted. After SOON seconds of it, or before a long replay, what is on disk is
  loaded. After PATIENCE seconds what is not is compiled: for studies by another process, meanwhile.
- LEXBANDITS_JIT=0 never compiles, LEXBANDITS_JIT=1 compiles everything before its first call.
"""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias, TypeVar, cast, overload

from lexbandits import _compiled
from lexbandits._compiled import can_keep, is_kept, is_kernel

F = TypeVar("F", bound=Callable[..., Any])
Inline: TypeAlias = Literal["llvm", "never", "always"]

MODE = os.environ.get("LEXBANDITS_JIT")
INSTALLED = find_spec("numba") is not None
INTERPRETED = MODE == "0" or not INSTALLED
SOON = 0.2  # seconds of interpreted kernels: a process that ends before never imports numba
PATIENCE = 3.0  # seconds of interpreted kernels
LONG = 3_000  # rows that take longer interpreted than numba takes to load
ROWS = 10_000  # rows handed over at a time, so that a long replay can change over on its way
AGAIN = 10  # seconds after which to ask again for what is being compiled
INLINING: dict[Inline, dict[str, Any]] = {  # what numba is told
    "llvm": {"forceinline": True},
    "never": {},
    "always": {"inline": "always"},
}


@overload
def kernel(function: F) -> F: ...


@overload
def kernel(*, inline: Inline) -> Callable[[F], F]: ...


def kernel(function: Callable[..., Any] | None = None, *, inline: Inline = "llvm") -> Any:
    """Mark a function that numba can compile, with strict IEEE arithmetic.

    Called from Python it runs as written; `entry` is what compiles it, and policies do so with their rules.

    Args:
        function: what numba can compile.
        inline: how calls of it from other kernels are compiled. "llvm" inlines the machine code, since numba
            counts references to every array handed to a call that stays a call. "never" keeps the call: for
            much work done rarely, which would take its callers long to compile. "always" is numba's own:
            the source is inlined, so that it may be handed other kernels.
    """
    if function is None:
        return lambda decorated: _compiled.marked(decorated, INLINING[inline])
    return _compiled.marked(function, INLINING[inline])


def fused(function: F, *parts: Any, bulk: bool = True) -> F:
    """The entry of a loop that closes over `parts`, compiled with them if all are kernels, else as it is."""
    return entry(kernel(function), bulk=bulk) if all(map(is_kernel, parts)) else function


def entry(function: F, *, bulk: bool = False, of_studies: bool = False) -> F:
    """What Python calls of a kernel; one for each. A function that is no kernel is its own.

    `bulk`: compiled before its first call. `of_studies`: compiled by cli/warm.py, and always called with the
    types of its first call, past numba's dispatcher, which would look at every array of a state.
    """
    if INTERPRETED or not is_kernel(function):
        return function
    known = vars(function).get("kernel_entry")
    if known is None:
        known = cast(Any, function).kernel_entry = Entry(function, bulk, of_studies)
    return cast(F, known)


@cache
def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The entry of a kernel of the policy that live studies have."""
    return entry(function, of_studies=True)


def take_kept() -> None:
    """Load what is on disk from the next call on: for a process that will be there for long."""
    _spent[0] = max(_spent[0], SOON)


def portion(left: int) -> int:
    """How many of `left` rows to hand to the next call: few enough that the one after it may be compiled."""
    if left >= LONG:
        take_kept()
    return min(left, ROWS)


class Compiling(RuntimeError):  # noqa: N818
    """Another process compiles what is needed."""


@contextmanager
def refusing_to_wait(*, begin: bool = True) -> Iterator[None]:
    """Refuse work in bulk that would wait here to be compiled; without `begin` that is not even begun."""
    token = _refused.set("to wait" if begin else "to begin")
    try:
        yield
    finally:
        _refused.reset(token)


class Entry:
    """A kernel as Python calls it."""

    def __init__(self, function: Any, bulk: bool, of_studies: bool) -> None:
        self.function, self._bulk, self._of_studies = function, bulk, of_studies
        self.code: Callable[..., Any] | None = None  # once it is compiled

    def __call__(self, *arguments: Any) -> Any:
        """Run it."""
        if self.code is None:
            self._consider(arguments)
        if self.code is not None:
            return self.code(*arguments)
        began = time.perf_counter()
        try:
            return self.function(*arguments)
        finally:
            _spent[0] += time.perf_counter() - began

    def _consider(self, arguments: tuple[Any, ...]) -> None:
        """Load or compile, if it is time."""
        at_once = self._bulk or MODE == "1"
        may_be_kept = at_once or (_spent[0] >= SOON and is_kept(self.function))
        if may_be_kept and self._load(arguments):
            return
        if at_once or _spent[0] >= PATIENCE:
            beside = self._of_studies and MODE != "1" and can_keep()
            if self._bulk and MODE != "1" and _refused.get() == "to begin":
                raise Compiling
            if not (beside and self._await_child(arguments)):
                self.compile(arguments, must=at_once)

    def _await_child(self, arguments: tuple[Any, ...]) -> bool:
        """Leave it to the child, and wait for it if this is work in bulk; whether it was of use."""
        child = compile_beside()
        while child.poll() is None:
            if not self._bulk:
                return True  # interpreted meanwhile
            if _refused.get():
                raise Compiling
            _compiled.announce()
            time.sleep(0.1)
            if self._load(arguments):
                return True
        return self._load(arguments)

    def _load(self, arguments: tuple[Any, ...]) -> bool:
        if _compiled.is_kept_for(self.function, arguments):
            self.compile(arguments)
        return self.code is not None

    def compile(self, arguments: tuple[Any, ...], must: bool = True) -> None:
        """Compile or load it for arguments of these types; what need not be compiled may stay as it is."""
        try:
            self.code = _compiled.compiled(self.function, arguments, fixed=self._of_studies)
        except _compiled.numba().core.errors.NumbaError:
            if must:
                raise
            self.code = self.function  # it has been good enough so far


_spent = [0.0]  # seconds of interpreted kernels in this process
_refused = ContextVar("_refused", default="")
_children: list["subprocess.Popen[bytes]"] = []  # that compile; one at most
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_children.clear)


def compile_beside() -> "subprocess.Popen[bytes]":
    """The process that compiles what studies run and keeps it on disk, begun if need be."""
    with _compiled.lock:
        if not _children:
            path = os.pathsep.join(filter(None, sys.path))
            child = subprocess.Popen(
                [sys.executable, "-P", "-m", "lexbandits.cli.warm"],
                env={**os.environ, "LEXBANDITS_JIT": "1", "PYTHONPATH": path},
                stdin=subprocess.PIPE,  # whose end tells it that we are gone, however that came
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            _children.append(child)
        return _children[0]
