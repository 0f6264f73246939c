"""Ordinary Python in two tiers: run as it is, and compiled by numba once that pays. The only import of numba.

A kernel is the function that was written: kernels call each other as Python does. What other code calls is an
`entry`, which runs the function interpreted until it is compiled, and the compiled one from the next call on;
both work on the same arrays, bit for bit. LEXBANDITS_JIT=0 never compiles, LEXBANDITS_JIT=1 always, at once.
"""

import hashlib
import math
import os
import subprocess
import sys
import threading
import time
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib.util import find_spec
from typing import Any, ClassVar, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

MODE = os.environ.get("LEXBANDITS_JIT")
INSTALLED = find_spec("numba") is not None
INTERPRETED = MODE == "0" or not INSTALLED
LOADING = 0.5  # seconds: numba and what it has kept on disk are there
SOON = 0.2  # seconds of interpreted kernels, after which what is on disk is loaded: many processes end before
PATIENCE = 3.0  # seconds of interpreted kernels, after which they are compiled beside them
PORTION = 500  # rows handed over at a time while nobody knows how long they take,
ROW = 1.5e-4  # seconds of one, about: where that makes loading pay, it is not tried
EACH = 0.4  # seconds, about, that a kernel takes to compile
PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def kernel(function: F) -> F:
    """A function that numba can compile, with strict IEEE arithmetic: both tiers agree bit for bit.

    Called from Python it runs as written; `entry` is what compiles it, and policies do so with their rules.

    Args:
        function: what numba can compile.
    """
    # forceinline: numba counts references to every array handed to a call that stays a call
    return _marked(function, forceinline=True)


def apart(function: F) -> F:
    """A kernel that stays a call: for much work done rarely, which would take its callers long to compile."""
    return _marked(function)


def written_in(function: F) -> F:
    """A kernel that is written into each caller, so that it may be handed other kernels.

    As fast as if its text stood there: for what several policies do alike with functions of their own.
    """
    return _marked(function, inline="always")


def fused(function: F, *parts: Any, bulk: bool = True) -> F:
    """The entry of a loop that closes over `parts`, compiled with them if all are kernels, else as it is."""
    if not all(map(is_kernel, parts)):
        return function
    return entry(kernel(function), bulk=bulk)


def is_kernel(thing: Any) -> bool:
    """Whether numba may compile it."""
    return hasattr(thing, "kernel_options")


def entry(function: F, *, bulk: bool = False, fixed: bool = False, rehearsal: str = "") -> F:
    """What Python calls of a kernel; one for each. A function that is no kernel is its own.

    `bulk`: compiled before its first call. `fixed`: always called with the types of its first call, past
    numba's dispatcher, which looks at every array of a state. `rehearsal`: the set of commands/warm.py that
    it belongs to, so that another process can compile it.
    """
    if INTERPRETED or not is_kernel(function):
        return function
    known = vars(function).get("kernel_entry")
    if known is None:
        known = cast(Any, function).kernel_entry = Entry(function, bulk, fixed, rehearsal)
    return cast(F, known)


@cache
def direct(function: Callable[..., Any]) -> Callable[..., Any]:
    """The entry of a kernel of the policy that live studies have: always called with the same types."""
    return entry(function, fixed=True, rehearsal="live")


def portion(called: Callable[..., Any], left: int) -> int:
    """How many of `left` rows to hand to the next call: few while it is not known whether compiling pays."""
    return called.portion(left) if isinstance(called, Entry) else left


def take_kept() -> None:
    """Load what is on disk from the next call on: for a process that will be there for long."""
    _spent[0] = max(_spent[0], SOON)


class Compiling(RuntimeError):  # noqa: N818
    """Another process compiles what is needed, for about so many `seconds`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = max(1, math.ceil(seconds))
        super().__init__(f"compiling, about {self.seconds} s, once per version: try again then")


@contextmanager
def refusing_to_wait(*, begin: bool = True) -> Iterator[None]:
    """What would wait here for bulk work to be compiled is refused: `Compiling`.

    It is begun by another process where code can be kept on disk; without `begin` it is not even begun.
    """
    token = _refuses.set("to wait" if begin else "to begin")
    try:
        yield
    finally:
        _refuses.reset(token)


class Entry:
    """A kernel as Python calls it, in the tier that pays."""

    def __init__(self, function: Any, bulk: bool, fixed: bool, rehearsal: str) -> None:
        self.function, self.fixed, self.rehearsal = function, fixed, rehearsal
        self.code: Callable[..., Any] | None = None
        self._bulk, self._at_once = bulk, bulk or MODE == "1"
        self._seconds, self._rows = 0.0, 0
        self._missed = -1  # how much had been kept when it was looked for in vain

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
            taken = time.perf_counter() - began
            self._seconds += taken
            _spent[0] += taken

    def portion(self, left: int) -> int:
        """How many of `left` rows to hand to the next call: all, once it is known which tier pays."""
        if self.code is not None or self._at_once:
            return left
        each = self._seconds / self._rows if self._rows else ROW
        if each * left > self.price():
            self._at_once = True
            return left
        some = min(left, PORTION)
        self._rows += some
        return some

    def price(self) -> float:
        """Seconds, about, until it could be called compiled."""
        return LOADING + EACH * sum(
            not _is_kept(each) for each in _reached(self.function) if _is_compiled(each)
        )

    def compile(self, arguments: tuple[Any, ...], *, only_load: bool = False) -> Callable[..., Any]:
        """The compiled function for arguments of these types; a LookupError if it may only be loaded."""
        with _lock:
            dispatcher = _dispatcher(self.function)
            signature = tuple(map(_numba().typeof, arguments))
            dispatcher._cache.only_load = only_load
            try:
                dispatcher.compile(signature)
            finally:
                dispatcher._cache.only_load = False
            return cast(Callable[..., Any], dispatcher.get_overload(signature) if self.fixed else dispatcher)

    def _consider(self, arguments: tuple[Any, ...]) -> None:
        """Load or compile, if it is time."""
        if not self._at_once and _spent[0] < SOON:
            return
        if self._missed != _Rehearsal.finished and _is_kept(self.function):
            self._missed = _Rehearsal.finished
            if self._load(arguments):
                return
        if self._at_once or (_spent[0] > PATIENCE and not self._is_being_compiled()):
            self._compile_now(arguments)

    def _is_being_compiled(self) -> bool:
        """Whether another process is at it, begun here if need be."""
        return bool(self.rehearsal) and can_keep() and not _Rehearsal.of(self.rehearsal).is_over

    def _load(self, arguments: tuple[Any, ...]) -> bool:
        try:
            self.code = self.compile(arguments, only_load=True)
        except LookupError:  # compiled for another processor, or by another numba
            return False
        return True

    def _compile_now(self, arguments: tuple[Any, ...]) -> None:
        if self._bulk and MODE != "1" and _refuses.get() == "to begin":
            raise Compiling(self.price() - LOADING)
        _announce(self.price() - LOADING)
        # in another process it would not hold up the threads of this one, nor stay in its memory
        if MODE != "1" and self.rehearsal and can_keep():
            beside = _Rehearsal.of(self.rehearsal)
            if self._bulk and _refuses.get() != "nothing" and not beside.is_over:
                raise Compiling(self.price() - LOADING)
            if beside.wait() and self._load(arguments):
                return
        try:
            self.code = self.compile(arguments)
        except _numba().core.errors.NumbaError:
            if self._at_once:
                raise
            self.code = self.function  # it has been good enough so far


_lock = threading.RLock()
_refuses = ContextVar("_refuses", default="nothing")
_spent = [0.0]  # seconds of interpreted kernels in this process
announced: list[bool] = []  # whether it was said that something is compiled


class _Rehearsal:
    """A process that compiles a set of kernels and keeps them on disk; at most one per set."""

    finished = 0  # how many have come to their end
    _known: ClassVar[dict[str, "_Rehearsal"]] = {}

    def __init__(self, name: str) -> None:
        command = [sys.executable, "-P", "-m", "lexbandits.commands.warm", name]
        environment = {
            **os.environ,
            "LEXBANDITS_JIT": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        self._process: subprocess.Popen[bytes] | None = None
        try:
            self._process = subprocess.Popen(
                command,
                env=environment,
                stdin=subprocess.PIPE,  # whose end tells it that we are gone, however that came
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return
        threading.Thread(target=self.wait, name=f"lexbandits compiles ({name})", daemon=True).start()

    @classmethod
    def of(cls, name: str) -> "_Rehearsal":
        """The one of this set, begun if need be."""
        with _lock:
            if name not in cls._known:
                cls._known[name] = cls(name)
            return cls._known[name]

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self._process is None or self._process.poll() is not None

    def wait(self) -> bool:
        """Wait for its end; whether all went well."""
        process = self._process
        done = process is not None and process.wait() == 0
        _Rehearsal.finished = len(_Rehearsal._known)
        return done


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    _Rehearsal._known = {}  # the parent's


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _announce(seconds: float) -> None:
    """Say once on stderr what takes so long."""
    if seconds > 0 and not announced:
        announced.append(True)
        about = f"{math.ceil(seconds / 5) * 5} s"
        print(f"lexbandits: compiling, about {about}, once per version", file=sys.stderr)


# --- what numba is given: the function with every kernel that it names replaced by its compiled one


def _marked(function: F, **options: Any) -> F:
    marked = _copied(function, function.__globals__, function.__closure__)
    marked.kernel_options = options
    return cast(F, marked)


def _copied(function: Any, space: dict[str, Any], cells: Any) -> Any:
    copied = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, cells)
    for name in ("__module__", "__qualname__", "__doc__", "__annotations__", "__kwdefaults__"):
        setattr(copied, name, getattr(function, name))
    return copied


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


def _numba() -> Any:
    """The compiler: imported by one thread at a time, since its modules import each other in circles."""
    with _lock:
        import numba

        return numba


def _dispatcher(function: Any) -> Any:
    """What numba makes of a kernel; one for each."""
    known = vars(function).get("kernel_dispatcher")
    if known is not None:
        return known
    space: dict[str, Any] = {"__name__": function.__module__, "__builtins__": __builtins__}
    cells = tuple(types.CellType(_in_compiled_code(value)) for value in _held(function))
    twin = _copied(function, space, cells)
    options = {"nogil": True, "error_model": "numpy", "fastmath": False, **function.kernel_options}
    dispatcher: Any = _numba().njit(**options)(twin)

    def name_all() -> None:
        space.update({name: _in_compiled_code(value) for name, value in _named(function).items()})

    dispatcher._cache = _keeping()(function, name_all)
    dispatcher.get_call_template = _once_for_all_values(dispatcher.get_call_template)
    function.kernel_dispatcher = dispatcher
    if "inline" in options:  # its callers take its text
        name_all()
    return dispatcher


def _once_for_all_values(template: Callable[..., Any]) -> Callable[..., Any]:
    """numba compiles a kernel anew for each constant that it is called with: rather for its type."""
    unliteral = _numba().types.unliteral

    def of_types(args: Any, kws: Any) -> Any:
        return template(tuple(map(unliteral, args)), {name: unliteral(kind) for name, kind in kws.items()})

    return of_types


def _in_compiled_code(value: Any) -> Any:
    return _dispatcher(value) if is_kernel(value) else value


def _reached(function: Any, found: dict[int, Any] | None = None) -> list[Any]:
    """A kernel and all that it calls."""
    found = {} if found is None else found
    if id(function) not in found:
        found[id(function)] = function
        for value in [*_named(function).values(), *_held(function)]:
            if is_kernel(value):
                _reached(value, found)
    return list(found.values())


# --- where compiled code is kept: in files named after all that it was made from, so they are never stale


@cache
def _keeping() -> Any:
    """A cache that numba loads from and saves to, in files of our own naming."""
    _numba()
    from numba.core import caching

    file: Any = caching.IndexDataCacheFile

    class Keeping(caching.FunctionCache):
        only_load = False

        def __init__(self, function: Any, name_all: Callable[[], None]) -> None:
            name, self._name_all = _kept_name(function), name_all
            self._name, self._py_func, self._cache_path = repr(function), function, folder()
            self._impl = caching.CompileResultCacheImpl.__new__(caching.CompileResultCacheImpl)
            self._cache_file: Any = file(folder(), name, "")
            self._enabled = bool(folder() and name)

        def _index_key(self, signature: Any, codegen: Any) -> Any:
            return signature, codegen.magic_tuple()

        def _save_overload(self, signature: Any, compiled: Any) -> None:
            lasting = not compiled.library.has_dynamic_globals and not _is_foreign(self._py_func, signature)
            if self._enabled and can_keep() and lasting:
                # numba counts its files up: two processes at once might write one over the other's
                kept, key = self._cache_file, self._index_key(signature, compiled.codegen)
                name = kept._data_name_pattern.replace("{number:d}", os.urandom(8).hex())
                kept._save_data(name, self._impl.reduce(compiled))
                try:
                    known = kept._load_index()
                except (ImportError, AttributeError):
                    known = {}
                kept._save_index({**known, key: name})

        def load_overload(self, signature: Any, target: Any) -> Any:
            try:
                found = caching.FunctionCache.load_overload(self, signature, target)  # type: ignore[no-untyped-call]
            except (ImportError, AttributeError):  # of types that are not there any more
                found = None
            if found is None and self.only_load:
                raise LookupError(self._name)
            if found is None:  # to be compiled, with all that it calls
                self._name_all()
            return found

    return Keeping


def _is_foreign(function: Any, signature: Any) -> bool:
    """Whether a kernel of the package was compiled for a type from outside it.

    All who use the kernel read the list of what is kept of it, and they need not have that type.
    """
    ours = __name__.partition(".")[0]

    def modules(kind: Any) -> Iterator[str]:
        if hasattr(kind, "instance_class"):
            yield kind.instance_class.__module__.partition(".")[0]
        for part in getattr(kind, "types", ()):
            yield from modules(part)

    inside = function.__module__.partition(".")[0] == ours
    return inside and any(module != ours for kind in signature for module in modules(kind))


def can_keep() -> bool:
    """Whether compiled code can be kept on disk."""
    return bool(folder()) and os.access(folder(), os.W_OK)


def _is_compiled(function: Any) -> bool:
    """Whether it has code of its own, and is not written into its callers."""
    return "inline" not in function.kernel_options


def _is_kept(function: Any) -> bool:
    name = _kept_name(function)
    return bool(folder() and name) and os.path.exists(os.path.join(folder(), f"{name}.nbi"))


def _kept_name(function: Any) -> str:
    """The name of its files; none where something in it has no lasting form."""
    try:
        digest = _digest(function)
    except TypeError:
        return ""
    return f"{function.__name__.strip('<>')}-{digest}.{sys.implementation.cache_tag}"


def _digest(function: Any) -> str:
    known = vars(function).get("kernel_digest")
    if known is None:
        function.kernel_digest = ""  # while it is made: of a kernel that calls itself
        digest = hashlib.blake2b(digest_size=8)
        parts = [
            function.kernel_options,
            function.__defaults__,
            _held(function),
            list(_named(function).items()),
        ]
        try:
            for part in [*_parts(function.__code__), *_parts(parts)]:
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
