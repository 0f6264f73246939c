"""Ordinary Python, compiled by numba: `kernel`, `written_in` and `fused`. The only import of numba."""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

INTERPRETED = os.environ.get("LEXBANDITS_JIT") == "0"


def interpret() -> None:
    """Leave the kernels of modules imported from now on as they are: for a process too short for numba."""
    global INTERPRETED
    INTERPRETED = True


def kernel(function: F) -> F:
    """Compile `function` with strict IEEE arithmetic, so that both modes agree bit for bit.

    With LEXBANDITS_JIT=0 the same source runs interpreted: for coverage, a debugger, or doubt.
    Compiled code is kept on disk where a folder can be written, and in memory elsewhere.

    Args:
        function: what numba can compile.
    """
    # forceinline: numba counts references to every array handed to a call that stays a call
    return _compiled(function, forceinline=True)


def apart(function: F) -> F:
    """A kernel that stays a call: for much work done rarely, which would take its callers long to compile."""
    return _compiled(function)


def written_in(function: F) -> F:
    """A kernel that is written into each caller, so that it may be handed other kernels.

    As fast as if its text stood there: for what several policies do alike with functions of their own.
    """
    return _compiled(function, inline="always")


def fused(function: F, *parts: Any) -> F:
    """A loop that closes over `parts`, compiled with them if all of them are kernels, else as it is.

    Kept on disk where the parts are and close over nothing: their files and names then say which it is.
    """
    if not all(hasattr(part, "py_func") for part in parts):
        return function
    kept = [part for part in parts if hasattr(part, "kernel_sources") and part.py_func.__closure__ is None]
    if not all(any(cell.cell_contents is part for part in kept) for cell in function.__closure__ or ()):
        return _compiled(function, cache=False, forceinline=True)
    dispatcher: Any = _compiled(function, parts=parts, forceinline=True)
    names = tuple(
        (part.__module__, part.__qualname__, part.py_func.__code__.co_firstlineno) for part in parts
    )
    # numba's own key pickles what is closed over, and no two processes pickle a kernel alike
    dispatcher._cache._index_key = lambda signature, codegen: (signature, codegen.magic_tuple(), names)
    return cast(F, dispatcher)


@cache
def direct(function: F) -> F:
    """A kernel called past numba's dispatcher, which looks at every array of a state at every call.

    For one whose arguments are always of the types of its first call: nobody checks them afterwards.
    """
    dispatcher: Any = function
    if not hasattr(dispatcher, "get_overload"):
        return function
    code: list[Callable[..., Any]] = []

    def call(*arguments: Any) -> Any:
        if code:
            return code[0](*arguments)
        from numba import typeof

        result = dispatcher(*arguments)
        code.append(dispatcher.get_overload(tuple(map(typeof, arguments))))
        return result

    return cast(F, call)


def _compiled(function: F, *, cache: bool = True, parts: tuple[Any, ...] = (), **how: Any) -> F:
    if INTERPRETED:
        return function
    from numba import njit

    _announce_compilation()

    def compiled(cache: bool) -> Any:
        return njit(cache=cache, nogil=True, error_model="numpy", fastmath=False, **how)(function)

    if not cache or not os.path.exists(function.__code__.co_filename):  # typed at a prompt
        return cast(F, compiled(False))
    sources = _sources(function).union(*(part.kernel_sources for part in parts))
    with _cache_folder(sources) as writable:
        dispatcher = compiled(writable)
    if writable:
        _keep_apart(dispatcher._cache._cache_file)
    dispatcher.kernel_sources = sources
    return cast(F, dispatcher)


@cache
def _announce_compilation() -> None:
    """Say once on stderr what takes so long, when the first kernel is not found on disk."""
    from numba.core import event

    said: list[bool] = []

    def on_start(compilation: Any) -> None:
        if not said and hasattr(compilation.data["dispatcher"], "kernel_sources"):
            said.append(True)
            print(
                "lexbandits: compiling for a few seconds; the next process finds it on disk", file=sys.stderr
            )

    methods = {"on_start": lambda self, compilation: on_start(compilation), "on_end": lambda *_: None}
    listen: Any = event.register
    listen("numba:compile", type("Announcement", (event.Listener,), methods)())


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


def _keep_apart(file: Any) -> None:
    """Keep what is compiled in a file of its own, and list it when it is there.

    numba counts the files up: two processes that compile at once may write one over the other's, and run it.
    """

    def save(key: Any, data: Any) -> None:
        name = file._data_name_pattern.replace("{number:d}", os.urandom(8).hex())
        file._save_data(name, data)
        file._save_index({**file._load_index(), key: name})

    file.save = save


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
