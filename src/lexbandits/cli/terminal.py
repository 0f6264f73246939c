"""How commands speak: one way to say errors, with their exit codes; one table printer; JSON."""

import inspect
import json
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Annotated, Any, get_args

import typer
from typer.core import TyperGroup

from lexbandits._extras import MissingExtra, naming_extras
from lexbandits._printable import plain, printable
from lexbandits.study.errors import (
    ConflictError,
    DamagedError,
    SpecMismatchError,
    StorageBusyError,
    StudyExistsError,
    StudyFinished,
    StudyPaused,
    StudyWaiting,
)

BRACKET = re.compile(r"(?<!\\)\[(?=[a-z#/@\[])")  # that may open a style of rich
UNCERTIFIED, USAGE, FINISHED, CONFLICT, BUSY, WAITING, REGRESSION = 1, 2, 3, 4, 5, 6, 7
UNEXPECTED = 70  # EX_SOFTWARE: a traceback's 1 would read as "not certified"
EXIT_CODES: dict[int, tuple[type[Exception], ...]] = {
    FINISHED: (StudyFinished,),
    CONFLICT: (ConflictError, StudyExistsError, SpecMismatchError, StudyPaused, DamagedError),
    BUSY: (StorageBusyError,),
    WAITING: (StudyWaiting,),
}  # whatever else a person can mend is USAGE

AsJson = Annotated[
    bool, typer.Option("--json", help="Print one JSON document on stdout; messages go to stderr.")
]


@contextmanager
def plain_errors(as_json: bool = False) -> Iterator[None]:
    """What a person can mend is one line and an exit code; a traceback is an internal error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_: say_line(f"Warning: {message}", err=True)
            with naming_extras():
                yield
    except (OSError, ValueError, MissingExtra) as error:
        say_line(f"Error: {error}", err=True)
        if as_json:
            print_json({"error": type(error).__name__, "message": str(error)})
        code = next((code for code, kinds in EXIT_CODES.items() if isinstance(error, kinds)), USAGE)
        raise typer.Exit(code) from error
    except Exception as error:
        if isinstance(error, (typer.Exit, typer.Abort)) or hasattr(error, "format_message"):
            raise
        traceback.print_exc()
        raise typer.Exit(UNEXPECTED) from None


class Commands(TyperGroup):
    """All commands: with --json a mistake in the words of one is a document too."""

    def invoke(self, context: Any) -> Any:
        """Find the command and run it."""
        words = list(context.args)
        try:
            return super().invoke(context)
        except Exception as error:
            if "--json" in words and hasattr(error, "format_message"):  # what the parser of options raises
                print_json({"error": "UsageError", "message": error.format_message()})
            raise


def command(
    app: typer.Typer, name: str | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Make a function a command of `app`; one that takes `as_json` says errors in JSON too."""

    def added(function: Callable[..., None]) -> Callable[..., None]:
        _make_readable(function)

        @wraps(function)
        def called(*arguments: Any, **options: Any) -> None:
            with plain_errors(options.get("as_json", False)):
                function(*arguments, **options)

        return app.command(name)(called)

    return added


def _make_readable(function: Callable[..., None]) -> None:
    """What --help says of a command: lines joined, brackets kept, as [study] would be a style."""
    if function.__doc__:
        paragraphs = inspect.cleandoc(function.__doc__).split("\n\n")
        function.__doc__ = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    shown: list[tuple[Any, str]] = [(function, "__doc__")]
    for parameter in inspect.signature(function).parameters.values():
        shown += [(told, "help") for told in get_args(parameter.annotation) if hasattr(told, "help")]
    for told, name in shown:
        if text := getattr(told, name):
            setattr(told, name, BRACKET.sub(r"\\[", text))


def say_line(text: str, *, err: bool = False, lines: bool = False) -> None:
    """A line for people; with `lines` it may be several."""
    _echo(printable(text, lines=lines), err=err)


def print_json(document: Any) -> None:
    """One document; what JSON cannot say (nan, infinity) is null, what a terminal would obey is escaped."""
    text = json.dumps(plain(document), ensure_ascii=False, allow_nan=False)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)
    _echo(text)


def _echo(text: str, *, err: bool = False) -> None:
    """Write; a reader that has gone, as `head` does, changes neither what is done nor the exit code."""
    try:
        typer.echo(text, err=err)
    except BrokenPipeError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, (sys.stderr if err else sys.stdout).fileno())
        os.close(nobody)


def print_table(
    table: dict[str, Iterable[Any]] | list[dict[str, Any]], title: str | None = None, *, names: bool = False
) -> None:
    """Show a table, columns or rows; a float has three digits below 100 and none after the point above.

    `names`: texts are names that people gave, and stay as they are.
    """
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    columns = table if isinstance(table, dict) else table[0] if table else {}
    rows = zip(*table.values(), strict=True) if isinstance(table, dict) else (row.values() for row in table)
    heads = (Text(printable(str(name) if names else str(name).replace("_", " "))) for name in columns)
    shown = Table(*map(Column, heads), title=title, title_justify="left")
    for row in rows:
        words = (value if names and isinstance(value, str) else number(value) for value in row)
        shown.add_row(*(Text(printable(word)) for word in words))
    Console().print(shown)


def number(value: Any) -> str:
    """A value for people."""
    if not isinstance(value, float):
        return str(value).replace("_", " ")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
