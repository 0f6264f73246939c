"""What code a cell rests on: no stored result is taken for that of an edited policy or sampler."""

import dis
import hashlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

OURS = __name__.split(".")[0]
UNKNOWN = "cannot be compared"
# What looks where no digest can follow: files, the environment, other programs, names made while it runs
ELSEWHERE_MODULES = {
    *("subprocess", "socket", "sqlite3", "shelve", "pathlib", "importlib", "inspect", "urllib.request"),
    *("http.client", "runpy", "pkgutil", "glob", "tempfile", "fileinput", "linecache", "mmap", "posix", "io"),
}
ELSEWHERE = {
    "builtins": {"open", "eval", "exec", "globals", "vars", "__import__", "compile", "input"},
    "os": {
        *("environ", "environb", "getenv", "getenvb", "popen", "system", "open", "read", "fdopen", "stat"),
        *("listdir", "scandir", "walk", "getcwd"),
    },
    "sys": {"modules", "argv", "stdin", "_getframe"},
    "numpy": {"load", "loadtxt", "genfromtxt", "fromfile", "memmap"},
    "pandas": {f"read_{kind}" for kind in ("csv", "parquet", "json", "excel", "pickle", "table", "sql")},
}
BARE = {"os", "sys", "builtins"} | ELSEWHERE_MODULES  # modules that are not to be passed around either
PLAIN = (bool, int, float, complex, str, bytes, Fraction, np.generic, type(None), type(...))
BY_NAME = (types.ModuleType, types.BuiltinFunctionType, np.ufunc)
HIDDEN = {"__dict__", "__weakref__", "__module__", "__doc__", "__annotations__", "__firstlineno__"}
MADE_OF = (  # where Python's functions, methods, properties, partials and code objects keep their parts
    *("__code__", "__defaults__", "__kwdefaults__", "__closure__", "cell_contents", "__func__", "__self__"),
    *("func", "args", "keywords", "fget", "fset", "co_code", "co_consts", "co_names"),
)


class Unfollowed(TypeError):  # noqa: N818
    """It uses something that may change without being seen from its code."""


def code_of(thing: Any) -> str | None:
    """A digest of a class, function or other object and of all code and values that it uses by name.

    None for what comes with this package, whose version says the same; UNKNOWN and why where there is none,
    as for a sampler that holds a generator or reads a file. Code of installed packages goes by its name.
    """
    if isinstance(thing, str) or _top(thing) == OURS:
        return None
    digest = hashlib.blake2b(digest_size=16)
    try:
        for part in _parts(thing, {}):
            digest.update(part.encode() + b"\0")
    except Unfollowed as error:
        return f"{UNKNOWN}: {error}"
    except (TypeError, ValueError, RecursionError):  # a ValueError: an empty cell
        return UNKNOWN
    return digest.hexdigest()


def _parts(thing: Any, seen: dict[int, Any]) -> Iterator[str]:
    """Everything that tells `thing` from another one; a TypeError where something in it has no such form."""
    thing = getattr(thing, "py_func", thing)  # of a kernel
    yield type(thing).__name__
    if elsewhere := _elsewhere(thing):
        raise Unfollowed(f"it uses {elsewhere}")
    if isinstance(thing, types.ModuleType) and not _installed(thing):
        raise Unfollowed(f"it holds the module {thing.__name__}")
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
    codes, values = list(_codes(function.__code__)), list[tuple[str, Any]]()
    for code in codes:
        _check_builtins(code, function.__globals__)
    used = (module for code in codes for module in _modules_used(code, function.__globals__))
    own = {module.__name__: module for module in used}
    spaces = [function.__globals__, *map(vars, own.values())]
    names = sorted({name for code in codes for name in code.co_names})
    for space, name in ((space, name) for space in spaces for name in names if name in space):
        value = space[name]
        if not isinstance(value, types.ModuleType) or _installed(value):
            values.append((name, value))
            continue
        if space is function.__globals__:
            values.append((name, value.__name__))
        if value.__name__ not in own:  # modules of one's own may hold others
            own[value.__name__] = value
            spaces.append(vars(value))
    return values


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _check_builtins(code: types.CodeType, space: dict[str, Any]) -> None:
    for step in _steps(code):
        is_global = step.opname in ("LOAD_GLOBAL", "LOAD_NAME")
        if is_global and step.argval in ELSEWHERE["builtins"] and step.argval not in space:
            raise Unfollowed(f"it uses {step.argval}()")
    for name in {"__globals__", "__builtins__"}.intersection(code.co_names):
        raise Unfollowed(f"it uses {name}")


def _steps(code: types.CodeType) -> list[dis.Instruction]:
    return [step for step in dis.get_instructions(code) if step.opname not in ("CACHE", "PUSH_NULL", "NOP")]


def _modules_used(code: types.CodeType, space: dict[str, Any]) -> Iterator[types.ModuleType]:
    """The modules of one's own whose names a function looks up; of all others, that it looks up nothing else.

    A module that is passed on, `getattr(module, name)` or `run(module)`, may be asked for anything.
    """
    steps = _steps(code)
    held = {name: space[name] for name in code.co_names if isinstance(space.get(name), types.ModuleType)}
    for number, step in enumerate(steps):
        if step.opname == "IMPORT_NAME":
            held.update(_imported(steps, number, space))
    for number, step in enumerate(steps):
        named = step.argval if isinstance(step.argval, tuple) else (step.argval,)
        if step.opname.startswith("LOAD_") and not step.opname.startswith(("LOAD_ATTR", "LOAD_CONST")):
            for name in named:
                if isinstance(name, str) and name in held:
                    _check_use(held[name], steps[number + 1 :], alone=len(named) == 1)
    yield from (module for module in held.values() if not _installed(module))


def _imported(
    steps: list[dis.Instruction], number: int, space: dict[str, Any]
) -> dict[str, types.ModuleType]:
    """Variable -> module of an import inside a function; the modules of one's own in any case."""
    name, level = steps[number].argval, steps[number - 2].argval or 0
    package = space.get("__package__") or ""
    try:
        full = importlib.util.resolve_name("." * level + name, package) if level else name
        module = importlib.import_module(full)
    except (ImportError, ValueError):
        raise Unfollowed(f"it imports {name or '.'}, which cannot be found from here") from None
    following, held = steps[number + 1 :], {f"import {full}": module}
    if following[0].opname != "IMPORT_FROM":
        top = importlib.import_module(full.partition(".")[0])
        variable = str(following[0].argval)
        return held | {variable: top if variable == top.__name__ else module}
    for taken, stored in pairwise(following):
        if taken.opname == "POP_TOP":
            break
        if taken.opname == "IMPORT_FROM":
            value = getattr(module, taken.argval, None)
            if elsewhere := _elsewhere(value):
                raise Unfollowed(f"it uses {elsewhere}")
            if isinstance(value, types.ModuleType):
                held[str(stored.argval)] = value
    return held


def _check_use(module: types.ModuleType, following: list[dis.Instruction], *, alone: bool) -> None:
    """Refuse what cannot be followed in what a function asks of a module."""
    value: Any = module
    for step in following if alone else ():
        if step.opname not in ("LOAD_ATTR", "LOAD_METHOD") or not isinstance(value, types.ModuleType):
            break
        if step.argval == "__dict__":
            raise Unfollowed(f"it uses {value.__name__}.__dict__")
        value = getattr(value, step.argval, None)
    if isinstance(value, types.ModuleType) and (not _installed(value) or value.__name__ in BARE):
        raise Unfollowed(f"it passes the module {value.__name__} on")
    if elsewhere := _elsewhere(value):
        raise Unfollowed(f"it uses {elsewhere}")


def _elsewhere(thing: Any) -> str | None:
    """What it is called, if it looks where no digest can follow."""
    if isinstance(thing, types.ModuleType):
        return None
    if thing is os.environ or thing is getattr(os, "environb", None):
        return "os.environ"
    if thing is sys.modules or thing is sys.argv:
        return "sys.modules" if thing is sys.modules else "sys.argv"
    if not isinstance(thing, types.FunctionType | types.BuiltinFunctionType | type):
        return None
    module, name = getattr(thing, "__module__", None) or "", thing.__name__
    if thing is open:
        return "open()"
    top = module.partition(".")[0]
    home = {"posix": "os", "nt": "os"}.get(module, module if module in ELSEWHERE_MODULES else top)
    known = getattr(sys.modules.get(home), name, None) is thing
    if known and (home in ELSEWHERE_MODULES or name in ELSEWHERE.get(home, ())):
        return f"{home}.{name}"
    return None


def _installed(thing: Any) -> bool:
    """Whether it belongs to Python, to this package or to another installed one."""
    top = _top(thing)
    file = getattr(sys.modules.get(top), "__file__", None) or ""
    return top == OURS or top in sys.stdlib_module_names or "site-packages" in file or "dist-packages" in file


def _top(thing: Any) -> str:
    name = thing.__name__ if isinstance(thing, types.ModuleType) else getattr(thing, "__module__", None)
    return str(name).split(".")[0]
