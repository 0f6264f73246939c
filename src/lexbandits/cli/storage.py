"""Where a command finds its study, and how little it loads to use it."""

from collections.abc import Callable, Mapping, Sequence
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
Traffic = typer.Option("--traffic", help="The share of the visitors who take part.")
Warmup = typer.Option("--warmup", help='How long that share grows from nothing, as "2d".')
Shares = typer.Option(
    "--shares",
    help="The share of the visitors who see an arm: a floor, or floor:ceiling. Once per arm.",
    metavar="ARM=SHARE",
)


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


def shares_of(texts: Sequence[str]) -> dict[str, Any]:
    """What is said of each arm's share of the visitors.

    >>> shares_of(["old=0.5", "new=0:0.1"])
    {'old': 0.5, 'new': [0.0, 0.1]}
    """
    shares: dict[str, Any] = {}
    for text in texts:
        arm, _, said = text.rpartition("=")
        try:
            bounds = [float(bound) for bound in said.split(":")]
        except ValueError:
            bounds = []
        if not arm or not 1 <= len(bounds) <= 2 or arm in shares:
            raise StudyError(f"--shares takes ARM=FLOOR or ARM=FLOOR:CEILING, once per arm, got {text!r}")
        shares[arm] = bounds[0] if len(bounds) == 1 else bounds
    return shares


def make_from_file(
    file: Path,
    storage: str | None,
    load_if_exists: bool,
    *,
    items: str | None = None,
    said: Mapping[str, Any] | None = None,
    prepared: Callable[[dict[str, Any], str], None] | None = None,
) -> "Study":
    """The study of a TOML file, in the storage given, else the file's, else the default.

    What is `said` replaces its words, where it is not None. `prepared` may complete them, given where the
    study is to be.
    """
    from lexbandits.study.items import items_of_file
    from lexbandits.study.spec import fields_from_toml
    from lexbandits.study.study import create_from_fields

    fields = fields_from_toml(file)
    if items is not None:
        fields |= items_of_file(items)
    fields |= {key: word for key, word in (said or {}).items() if word is not None}
    of_file = fields.pop("storage", DEFAULT)
    if prepared is not None:
        prepared(fields, storage or of_file)
    try:
        return create_from_fields(fields, storage or of_file, load_if_exists=load_if_exists)
    except TypeError as error:  # a mistake of whoever wrote the file
        raise StudyError(f"{file}: {error}") from None
