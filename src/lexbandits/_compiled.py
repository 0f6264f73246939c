"""What numba is given of a kernel, and where the code is kept that it makes. The only import of numba.

numba compiles a twin of each kernel, whose global names are the compiled kernels; the function that was
written keeps calling written ones. Code is kept in files named after a digest of all that it was made from:
the kernel, the constants that it names, every kernel that it calls. So it is never stale, and comments,
docstrings and other functions do not matter. numba's own cache goes by the date of one source file: it would
not see that a called kernel has changed, and cannot keep loops that close over kernels.
"""

import hashlib
import os
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from itertools import chain
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))
announced: list[bool] = []  # whether it was said that something is compiled
lock = threading.RLock()  # of who imports numba or compiles


def _unlocked_after_fork() -> None:
    global lock
    lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unlocked_after_fork)


def announce() -> None:
    """Say once on stderr what takes so long."""
    if not announced:
        announced.append(True)
        print("lexbandits: compiling, once per version", file=sys.stderr)


def marked(function: F, options: dict[str, Any]) -> F:
    """A kernel: a copy of the function that says how numba is to compile it."""
    copied = _copied(function, cast(Any, function).__globals__, cast(Any, function).__closure__)
    copied.kernel_options = options
    return cast(F, copied)


def is_kernel(thing: Any) -> bool:
    """Whether numba may compile it."""
    return hasattr(thing, "kernel_options")


def numba() -> Any:
    """The compiler: imported by one thread at a time, since its modules import each other in circles."""
    with lock:
        import numba

        return numba


def compiled(function: Any, arguments: tuple[Any, ...], *, fixed: bool) -> Callable[..., Any]:
    """The code for arguments of these types, loaded or compiled; if `fixed`, for no others."""
    with lock:
        dispatcher, signature = _dispatcher(function), _types(arguments)
        dispatcher.compile(signature)
        return cast(Callable[..., Any], dispatcher.get_overload(signature) if fixed else dispatcher)


def is_kept_for(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether code for arguments of these types is on disk."""
    dispatcher = _dispatcher(function)
    return os.path.exists(dispatcher._cache.path(_types(arguments), dispatcher.targetctx))


def _types(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(numba().typeof, arguments))


def _dispatcher(function: Any) -> Any:
    """What numba makes of a kernel; one for each."""
    with lock:
        known = vars(function).get("kernel_dispatcher")
        if known is not None:
            return known
        space: dict[str, Any] = {"__name__": function.__module__, "__builtins__": __builtins__}
        cells = tuple(types.CellType(_in_compiled_code(value)) for value in _held(function))
        options = {"nogil": True, "error_model": "numpy", "fastmath": False, **function.kernel_options}
        dispatcher: Any = numba().njit(**options)(_copied(function, space, cells))

        def name_all() -> None:
            space.update({name: _in_compiled_code(value) for name, value in _named(function).items()})

        dispatcher._cache = KernelCache(function, name_all)
        dispatcher.get_call_template = _once_for_all_values(dispatcher.get_call_template)
        function.kernel_dispatcher = dispatcher
        if "inline" in options:  # its callers take its text
            name_all()
        return dispatcher


def _in_compiled_code(value: Any) -> Any:
    return _dispatcher(value) if is_kernel(value) else value


def _once_for_all_values(template: Callable[..., Any]) -> Callable[..., Any]:
    """numba compiles a kernel anew for each constant that it is called with: rather for its type."""
    unliteral = numba().types.unliteral

    def of_types(args: Any, kws: Any) -> Any:
        return template(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    return of_types


def _copied(function: Any, space: dict[str, Any], cells: Any) -> Any:
    copied = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    for name in ("__module__", "__qualname__", "__doc__", "__annotations__", "__kwdefaults__"):
        setattr(copied, name, getattr(function, name))
    return copied


# --- where code is kept: a folder for each kernel, and in it a file for each tuple of types


@cache
def folder() -> str:
    """Where compiled code is kept, if only by others; none where there is no such folder."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    kept = os.environ.get("NUMBA_CACHE_DIR") or os.path.join(home, "lexbandits", "kernels")
    try:
        os.makedirs(kept, exist_ok=True)
    except OSError:
        return ""
    return kept


def can_keep() -> bool:
    """Whether compiled code can be kept on disk."""
    return bool(folder()) and os.access(folder(), os.W_OK)


def is_kept(function: Any) -> bool:
    """Whether there may be code of a kernel on disk; to know that takes no numba."""
    return os.path.isdir(folder_of(function))


def folder_of(function: Any) -> str:
    """The folder of its files; none where something in it has no lasting form."""
    try:
        name = f"{function.__name__.strip('<>')}-{_digest(function)}.{sys.implementation.cache_tag}"
    except TypeError:
        return ""
    return folder() and os.path.join(folder(), name)


class KernelCache:
    """What numba asks for the code of a kernel, and hands it to."""

    cache_path = ""

    def __init__(self, function: Any, name_all: Callable[[], None]) -> None:
        self._folder, self._name_all = folder_of(function), name_all

    def path(self, signature: Any, target: Any) -> str:
        """The file of these types, for this processor."""
        made_for = numba().__version__, target.codegen().magic_tuple(), [_text(kind) for kind in signature]
        name = hashlib.blake2b(repr(made_for).encode(), digest_size=8).hexdigest()
        return self._folder and os.path.join(self._folder, name)

    def load_overload(self, signature: Any, target: Any) -> Any:
        """What is kept; None where that is nothing, or damaged."""
        from numba.core.compiler import CompileResult

        target.refresh()
        with suppress(Exception), open(self.path(signature, target), "rb") as file:
            digest, kept = file.read(16), file.read()
            if digest == hashlib.blake2b(kept, digest_size=16).digest():
                found = CompileResult._rebuild(target, *pickle.loads(kept))  # type: ignore[no-untyped-call]
                if found.signature.args == tuple(signature):
                    return found
        announce()
        self._name_all()  # it is compiled, with all that it calls
        return None

    def save_overload(self, signature: Any, made: Any) -> None:
        """Keep it where that is possible; all of it at once, as other processes may be at the same."""
        from numba.core.serialize import dumps

        if not self._folder or made.library.has_dynamic_globals:
            return
        kept = dumps(made._reduce())  # type: ignore[no-untyped-call]
        path = self.path(signature, made.target_context)
        part = f"{path}.{os.urandom(8).hex()}"
        with suppress(OSError):
            os.makedirs(self._folder, exist_ok=True)
            with open(part, "wb") as file:
                file.write(hashlib.blake2b(kept, digest_size=16).digest() + kept)
            os.replace(part, path)


def _text(kind: Any) -> str:
    """A type of numba in words: a named tuple's class by its module and fields too."""
    made = getattr(kind, "instance_class", None)
    parts = [_text(part) for part in getattr(kind, "types", ())]
    return f"{kind} {parts}" + (f" {made.__module__}.{made.__qualname__} {made._fields}" if made else "")


def _digest(function: Any) -> str:
    known = vars(function).get("kernel_digest")
    if known is None:
        function.kernel_digest = ""  # while it is made: of a kernel that calls itself
        code, digest = function.__code__, hashlib.blake2b(digest_size=8)
        if function.__doc__ is not None and code.co_consts[0] == function.__doc__:
            code = code.replace(co_consts=(None, *code.co_consts[1:]))  # a docstring is not compiled
        named = list(_named(function).items())
        made_of = [function.kernel_options, function.__defaults__, _held(function), named]
        try:
            for part in chain(_parts(code), _parts(made_of)):
                digest.update(part + b"\0")
        except TypeError:
            del function.kernel_digest
            raise
        known = function.kernel_digest = digest.hexdigest()
    return cast(str, known)


def _parts(value: Any) -> Iterator[bytes]:
    """Everything that tells what a kernel holds or names from something else."""
    if isinstance(value, types.CodeType):
        yield value.co_code
        yield from _parts([value.co_consts, value.co_names, value.co_varnames, value.co_freevars])
    elif isinstance(value, dict):
        yield from _parts(sorted(value.items()))
    elif isinstance(value, tuple | list):
        yield str(len(value)).encode()
        for part in value:
            yield from _parts(part)
    elif is_kernel(value):
        yield _digest(value).encode()
    elif isinstance(value, PLAIN):
        yield repr(value).encode()
    elif hasattr(value, "dtype") and hasattr(value, "tobytes"):
        yield f"{value.dtype} {value.shape}".encode() + value.tobytes()
    elif isinstance(value, types.ModuleType | type | types.BuiltinFunctionType):
        yield f"{getattr(value, '__module__', '')}.{value.__name__}{getattr(value, '_fields', '')}".encode()
    else:
        raise TypeError(f"{value!r} has no form that lasts")


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _named(function: Any) -> dict[str, Any]:
    """The values of the global names that a function looks up, or that attributes happen to be called by."""
    names = sorted({name for code in _codes(function.__code__) for name in code.co_names})
    return {name: function.__globals__[name] for name in names if name in function.__globals__}


def _held(function: Any) -> list[Any]:
    return [cell.cell_contents for cell in function.__closure__ or ()]
