"""Ordinary Python, compiled by numba: `kernel`, `apart`, `written_in` and `fused`. The only import of numba."""

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = os.environ.get("LEXBANDITS_JIT") == "0"


def kernel(function: F, *, cache: bool = True) -> F:
    """Compile `function` with strict IEEE arithmetic, so that both modes agree bit for bit.

    With LEXBANDITS_JIT=0 the same source runs interpreted: for coverage, a debugger, or doubt.
    Compiled code is kept on disk where a folder can be written, and in memory elsewhere.
    """
    # forceinline: numba counts references to every array handed to a call that stays a call
    return _compiled(function, cache=cache, forceinline=True)


def apart(function: F) -> F:
    """A kernel that stays a call: for much work done rarely, which would take its callers long to compile."""
    return _compiled(function)


def written_in(function: F) -> F:
    """A kernel that is written into each caller, so that it may be handed other kernels.

    As fast as if its text stood there: for what several policies do alike with functions of their own.
    """
    return _compiled(function, inline="always")


def fused(function: F, *parts: Callable[..., Any]) -> F:
    """A loop that closes over `parts`, compiled with them if all of them are kernels, else as it is.

    Never kept on disk: numba could not find it again.
    """
    return _compiled(function, cache=False, forceinline=True) if all(map(is_compiled, parts)) else function


def _compiled(function: F, *, cache: bool = True, **how: Any) -> F:
    if INTERPRETED:
        return function
    from numba import njit

    def compiled(cache: bool) -> Any:
        return njit(cache=cache, nogil=True, error_model="numpy", fastmath=False, **how)(function)

    if not cache or not os.path.exists(function.__code__.co_filename):  # typed at a prompt
        return cast(F, compiled(False))
    sources = _sources(function)
    with _cache_folder(sources) as writable:
        dispatcher = compiled(writable)
    dispatcher.kernel_sources = sources
    return cast(F, dispatcher)


def is_compiled(function: Callable[..., Any]) -> bool:
    """Whether `function` is compiled code, which a compiled loop can call."""
    return hasattr(function, "py_func")


def _sources(function: Callable[..., Any]) -> frozenset[str]:
    """The files of `function` and of every kernel that its module has imported so far.

    More than those it calls, as it may call one that is defined below it, which calls any of them.
    """
    known = (getattr(value, "kernel_sources", ()) for value in function.__globals__.values())
    return frozenset({function.__code__.co_filename}).union(*known)


@contextmanager
def _cache_folder(sources: frozenset[str]) -> Iterator[bool]:
    # numba looks only at the file of the function itself to decide that its cache is stale, not at
    # those of the kernels it calls. A folder named after all of them is never stale, for us and for
    # a policy outside the package that calls our kernels.
    import numba

    config: Any = numba.config

    before = config.CACHE_DIR
    home = before or _writable_home()
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(sources):
        digest.update(_file_digest(source))
    config.CACHE_DIR = os.path.join(home, digest.hexdigest()) if home else before
    try:
        yield bool(home)
    finally:
        config.CACHE_DIR = before


@cache
def _file_digest(path: str) -> bytes:
    return hashlib.blake2b(Path(path).read_bytes()).digest()


@cache
def _writable_home() -> str:
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    folder = os.path.join(home, "lexbandits", "kernels")
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        return ""
    return folder if os.access(folder, os.W_OK) else ""
