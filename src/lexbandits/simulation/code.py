"""What code a cell rests on: no stored result is taken for that of an edited policy or sampler."""

import hashlib
import sys
import types
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

OURS = __name__.split(".")[0]
UNKNOWN = "cannot be compared"
PLAIN = (bool, int, float, complex, str, bytes, Fraction, np.generic, type(None), type(...))
BY_NAME = (types.ModuleType, types.BuiltinFunctionType, np.ufunc)
HIDDEN = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__firstlineno__"}
MADE_OF = (  # where Python's functions, methods, properties, partials and code objects keep their parts
    *("__code__", "__defaults__", "__kwdefaults__", "__closure__", "cell_contents", "__func__", "__self__"),
    *("func", "args", "keywords", "fget", "fset", "co_code", "co_consts", "co_names"),
)


def code_of(thing: Any) -> str | None:
    """A digest of a class, function or other object and of all code and values that it uses by name.

    None for what comes with this package, whose version says the same; UNKNOWN where there is none, as for
    a sampler that holds a generator or an open file. Code of installed packages goes by its name.
    """
    if isinstance(thing, str) or _top(thing) == OURS:
        return None
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in _parts(thing, {}):
            digest.update(part.encode() + b"\0")
    except (TypeError, ValueError, RecursionError):  # a ValueError: an empty cell
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


def _inside(thing: Any) -> list[Any]:
    """What a function, a class or another object is made of."""
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
    """The values of the names that a function, or one written inside it, may look up."""
    names = sorted(_names(function.__code__))
    found = [(name, function.__globals__[name]) for name in names if name in function.__globals__]
    modules = [value for _, value in found if isinstance(value, types.ModuleType) and not _installed(value)]
    return found + [(name, vars(own)[name]) for own in modules for name in names if name in vars(own)]


def _names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_names, inner))


def _installed(thing: Any) -> bool:
    """Whether it belongs to Python, to this package or to another installed one."""
    top = _top(thing)
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top == OURS or top in sys.stdlib_module_names or "site-packages" in file or "dist-packages" in file


def _top(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    return str(name).split(".")[0]
