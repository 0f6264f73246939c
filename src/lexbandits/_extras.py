"""What a plain install leaves out, and the one line that says how to get it; names loaded on first use."""

import ast
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

EXTRA_OF = {  # the package that is imported, and the extra it comes with
    "numba": "fast",
    "pandas": "research",
    "joblib": "research",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "zipfile_zstd": "inspect",
    "openpyxl": "excel",
    "fastapi": "serve",
    "starlette": "serve",
    "uvicorn": "serve",
    "distributed": "dask",
    "ray": "ray",
}


class MissingExtra(ImportError):  # noqa: N818
    """Something needs a package that comes with an extra of this one."""

    def __init__(self, package: str, what: str = "this") -> None:
        extra = EXTRA_OF[package]
        install = f"pip install 'lexbandits[{extra}]' (in a clone pip install '.[{extra}]')"
        super().__init__(f"{what} needs {package}: {install}", name=package)


def need(package: str, what: str) -> Any:
    """A package that comes with an extra."""
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise MissingExtra(package, what) from None


@contextmanager
def naming_extras() -> Iterator[None]:
    """Where a whole module cannot be imported for want of an extra, say which."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in EXTRA_OF:
            raise
        raise MissingExtra(error.name) from None


def lazy_names(package: str, init: str) -> tuple[list[str], Callable[[str], Any]]:
    """Make `__all__` and `__getattr__` of a package whose public names are in the `.pyi` beside `init`.

    Each name is loaded on first use, so that importing the package costs nothing it does not need.
    """
    homes = _homes(Path(init).with_suffix(".pyi"), package)

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        path = Path(init).parent.joinpath(*home.split(".")[package.count(".") + 1 :], name)
        is_module = path.is_dir() or path.with_suffix(".py").is_file()
        with naming_extras():
            value = import_module(f"{home}.{name}") if is_module else getattr(import_module(home), name)
        setattr(sys.modules[package], name, value)
        return value

    return list(homes), load


def _homes(source: Path, package: str) -> dict[str, str]:
    """The names that a file imports and the modules they come from."""
    homes: dict[str, str] = {}
    for line in ast.parse(source.read_text("utf-8")).body:
        if isinstance(line, ast.ImportFrom):
            home = line.module or package
            for name in line.names:
                if name.name == "*":
                    starred = source.parent.joinpath(*home.split(".")[package.count(".") + 1 :])
                    homes |= _homes(starred.with_suffix(".py"), package)
                else:
                    homes[name.name] = home
    return homes
