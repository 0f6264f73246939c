"""What a plain install leaves out, and the one line that says how to get it."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

EXTRA_OF = {  # the package that is imported, and the extra it comes with
    "numba": "fast",
    "pandas": "research",
    "joblib": "research",
    "psycopg": "postgres",
    "pyarrow": "parquet",
    "zipfile_zstd": "inspect",
    "plotly": "plot",
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
