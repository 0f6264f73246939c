"""Where a command finds its study, and how little it loads to use it."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lexbandits.study.errors import StorageError, StudyError, UnknownStudyError
from lexbandits.study.storage.contract import MEMORY
from lexbandits.study.storage.contract import is_missing as no_file

if TYPE_CHECKING:
    from lexbandits.study.study import Study

DEFAULT = "lexbandits.db"

Where = typer.Option("--storage", envvar="LEXBANDITS_STORAGE", help="A path or an address of a database.")


Items = typer.Option("--items", help="A .jsonl, .csv, .txt or a pattern of files: what to measure on.")
Serve = typer.Option("--serve", help="Ask the arm that leads twice as often: fewer visitors see a worse one.")
Baseline = typer.Option("--baseline", help="The current arm: is a switch worth it?", metavar="ARM")


def is_missing(storage: str) -> bool:
    """Whether a storage is a file that is not there: looking at it would make it."""
    if storage == MEMORY:
        raise StorageError("a study in memory ends with its process: say a file or a database for --storage")
    return no_file(storage)


def shorten(storage: str) -> str:
    """A storage as somebody in this folder would name it."""
    path, here = Path(storage), Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else storage


def open_named(name: str, storage: str, *, reads: bool = False) -> "Study":
    """Open an existing study."""
    if is_missing(storage):
        raise UnknownStudyError(f"no study {name!r}: there is no {storage}")
    from lexbandits.study.storage.contract import open_storage
    from lexbandits.study.study import open_study

    if storage.startswith(("http://", "https://")):
        return open_study(name, storage)
    return open_study(name, open_storage(storage), reads)


def make_from_file(
    file: Path,
    storage: str | None,
    load_if_exists: bool,
    *,
    items: str | None = None,
    baseline: str | None = None,
    serve: bool = False,
    prepared: Callable[[dict[str, Any], str], None] | None = None,
) -> "Study":
    """The study of a TOML file, in the storage given, else the file's, else the default.

    `prepared` may complete its words, given where the study is to be.
    """
    from lexbandits.study.items import items_of_file
    from lexbandits.study.spec import fields_from_toml
    from lexbandits.study.study import create_from_fields

    fields = fields_from_toml(file)
    if items is not None:
        fields |= items_of_file(items)
    if baseline is not None:
        fields["baseline"] = baseline
    if serve:
        fields["serve"] = True
    of_file = fields.pop("storage", DEFAULT)
    if prepared is not None:
        prepared(fields, storage or of_file)
    try:
        return create_from_fields(fields, storage or of_file, load_if_exists=load_if_exists)
    except TypeError as error:  # a mistake of whoever wrote the file
        raise StudyError(f"{file}: {error}") from None
