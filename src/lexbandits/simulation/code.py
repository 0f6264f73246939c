"""What code a cell rests on: no stored result is taken for that of an edited policy or sampler."""

import hashlib
import sys
import types
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

OURS = __name__.split(".")[0]
UNKNOWN = "cannot be compared"
PLAIN = (bool, int, float, complex, str, bytes, Fraction, np.generic, type(None), type(...))
BY_NAME = (types.ModuleType, types.BuiltinFunctionType, np.ufunc)
HIDDEN = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__firstlineno__"}


def code_of(thing: Any) -> str | None:
    """A digest of a class, function or other object and of all code and values that it uses by name.

    None for what comes with this package, whose version says the same; UNKNOWN where there is none, as for
    a sampler that holds a generator or an open file. Code of installed packages goes by its name.
    """
    if isinstance(thing, str) or _top(thing) == OURS:
        return None
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in _parts(thing, set()):
            digest.update(part.encode() + b"\0")
    except (TypeError, RecursionError):
        return UNKNOWN
    return digest.hexdigest()


def _parts(thing: Any, seen: set[int]) -> Iterator[str]:
    """Everything that tells `thing` from another one; a TypeError where something in it has no such form."""
    thing = getattr(thing, "py_func", thing)  # of a kernel
    match thing:
        case _ if isinstance(thing, PLAIN):
            yield f"{type(thing).__name__} {thing!r}"
        case _ if isinstance(thing, BY_NAME):
            yield thing.__name__
        case tuple() | list():
            yield f"{type(thing).__name__} of {len(thing)}"
            for part in thing:
                yield from _parts(part, seen)
        case dict():
            yield from _parts(list(thing.items()), seen)
        case set() | frozenset():
            yield f"set {sorted(map(repr, thing))}"
        case np.ndarray() if thing.dtype != object:
            yield f"array {thing.dtype} {thing.shape} {thing.tobytes().hex()}"
        case types.CodeType():
            yield thing.co_code.hex()
            yield from _parts((thing.co_consts, thing.co_names), seen)
        case types.MethodType():
            yield from _parts((thing.__func__, thing.__self__), seen)
        case partial():
            yield from _parts((thing.func, thing.args, thing.keywords), seen)
        case staticmethod() | classmethod():
            yield from _parts(thing.__func__, seen)
        case property():
            yield from _parts((thing.fget, thing.fset), seen)
        case _ if id(thing) in seen:
            yield "again"
        case _:
            seen.add(id(thing))
            yield from _function_class_or_object(thing, seen)


def _function_class_or_object(thing: Any, seen: set[int]) -> Iterator[str]:
    if isinstance(thing, types.FunctionType | type):
        yield f"{thing.__module__}.{thing.__qualname__}"
        if _installed(thing):
            return
    if isinstance(thing, types.FunctionType):
        yield from _parts((thing.__code__, thing.__defaults__, thing.__kwdefaults__), seen)
        yield from _parts([cell.cell_contents for cell in thing.__closure__ or ()], seen)
        yield from _parts(_looked_up(thing), seen)
    elif isinstance(thing, type):
        yield from _parts((thing.__bases__, {k: v for k, v in vars(thing).items() if k not in HIDDEN}), seen)
    elif hasattr(thing, "__dict__"):
        yield from _parts((type(thing), vars(thing)), seen)
    elif hasattr(type(thing), "__get__"):  # a field of a named tuple, a slot
        yield type(thing).__name__
    else:
        raise TypeError(f"{thing!r} cannot be compared with another one")


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
