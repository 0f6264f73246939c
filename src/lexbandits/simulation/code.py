"""What code a cell rests on: no stored result is taken for that of an edited policy or sampler."""

import dis
import hashlib
import sys
import types
from collections.abc import Iterator
from fractions import Fraction
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

OURS = __name__.split(".")[0]
UNKNOWN = "cannot be compared"
PLAIN = (bool, int, float, complex, str, bytes, Fraction, np.generic, type(None), type(...))
BY_NAME = (types.BuiltinFunctionType, np.ufunc)
HIDDEN = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__firstlineno__"}
MADE_OF = (  # where Python's functions, methods, properties, partials and code objects keep their parts
    *("__code__", "__defaults__", "__kwdefaults__", "__closure__", "cell_contents", "__func__", "__self__"),
    *("func", "args", "keywords", "fget", "fset", "co_code", "co_consts", "co_names"),
)


def code_of(thing: Any) -> str | None:
    """A digest of a class, function or other object and of all code and values that it uses by name.

    None for what comes with this package, whose version says the same; UNKNOWN where there is none, as for a
    sampler that holds a generator. Code of installed packages goes by its name, a module of one's own by its
    file. Files and the environment are not looked at.
    """
    if isinstance(thing, str) or _top(thing) == OURS:
        return None
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in _parts(thing, {}):
            digest.update(part.encode() + b"\0")
    except (TypeError, ValueError, RecursionError, ImportError, OSError):  # a ValueError: an empty cell
        return UNKNOWN
    return digest.hexdigest()


def _parts(thing: Any, seen: dict[int, Any]) -> Iterator[str]:
    """Everything that tells `thing` from another one; a TypeError where something in it has no such form."""
    thing = getattr(thing, "py_func", thing)  # of a kernel
    yield type(thing).__name__
    if isinstance(thing, PLAIN):
        yield repr(thing)
    elif isinstance(thing, BY_NAME):
        yield thing.__name__
    elif isinstance(thing, set | frozenset):
        yield repr(sorted(map(repr, thing)))
    elif isinstance(thing, np.ndarray) and thing.dtype != object:
        yield f"{thing.dtype} {thing.shape} {thing.tobytes().hex()}"
    elif isinstance(thing, tuple | list | dict):
        yield str(len(thing))
        for part in thing.items() if isinstance(thing, dict) else thing:
            yield from _parts(part, seen)
    elif id(thing) not in seen:
        seen[id(thing)] = thing  # held, so that no other one gets its id
        yield from _parts(_inside(thing), seen)


def _own_modules(module: types.ModuleType) -> list[types.ModuleType]:
    """Return the modules that a module names, or takes a name from, but for installed ones."""
    used = {
        id(part): part
        for value in vars(module).values()
        if (part := value if isinstance(value, types.ModuleType) else _home(value)) is not None
    }
    read = (part for part in used.values() if getattr(part, "__file__", None))  # not a session's __main__
    return [part for part in read if part is not module and not _installed(part)]


def _home(thing: Any) -> types.ModuleType | None:
    """Return the module in which a thing was written, where it says so."""
    name = getattr(thing, "__module__", None)
    return sys.modules.get(name) if isinstance(name, str) else None


def _inside(thing: Any) -> list[Any]:
    """What a module, a function, a class or another object is made of."""
    if isinstance(thing, types.ModuleType):
        if _installed(thing):
            return [thing.__name__]
        return [Path(str(thing.__file__)).read_bytes(), *_own_modules(thing)]
    parts = [getattr(thing, name) for name in MADE_OF if hasattr(thing, name)]
    if isinstance(thing, types.FunctionType | type):
        name = f"{thing.__module__}.{thing.__qualname__}"
        if _installed(thing):
            return [name]
        if isinstance(thing, type):
            return [name, thing.__bases__, {k: v for k, v in vars(thing).items() if k not in HIDDEN}]
        return [name, parts, _looked_up(thing)]
    if hasattr(thing, "__dict__"):
        return [type(thing), vars(thing), parts]
    if not parts and not hasattr(type(thing), "__get__"):  # a field of a named tuple and a slot have one
        raise TypeError(f"{thing!r} cannot be compared with another one")
    return parts


def _looked_up(function: types.FunctionType) -> list[tuple[str, Any]]:
    """The values of the names that a function, or one written inside it, may look up or import."""
    codes, space = list(_codes(function.__code__)), function.__globals__
    names = sorted({name for code in codes for name in code.co_names if name in space})
    values = [(name, space[name]) for name in names]
    for steps in (list(dis.get_instructions(code)) for code in codes):
        for level, step in zip(steps, steps[2:], strict=False):  # where an import keeps its dots
            if step.opname == "IMPORT_NAME":
                name = "." * (level.argval or 0) + step.argval
                values.append((name, import_module(name, space.get("__package__"))))
    return values


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _installed(thing: Any) -> bool:
    """Whether it belongs to Python, to this package or to another installed one."""
    top = _top(thing)
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top == OURS or top in sys.stdlib_module_names or "site-packages" in file or "dist-packages" in file


def _top(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    return str(name).split(".")[0]
