"""The shape of a command about one study: `lexbandits study WORD NAME … [--storage …] [--json]`."""

import inspect
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import typer

from lexbandits.cli import terminal
from lexbandits.cli.storage import DEFAULT, Where, open_named
from lexbandits.cli.terminal import AsJson, print_json, say_line

Name = Annotated[str, typer.Argument(help="The study's name.", show_default=False)]


class Output(NamedTuple):
    """What a command says."""

    document: Any  # for scripts, or a function that makes it
    text: str | Callable[[], None]  # for people, or a function that prints them
    code: int = 0  # of the exit


def say(output: Output, as_json: bool) -> None:
    """Print one of the two; what is not printed is not made."""
    if as_json:
        print_json(output.document() if callable(output.document) else output.document)
    elif isinstance(output.text, str):
        say_line(output.text, lines=True)
    else:
        output.text()
    if output.code:
        raise typer.Exit(output.code)


def of_study(
    app: typer.Typer, name: str | None = None, *, reads: bool = False
) -> Callable[[Callable[..., Output]], Callable[..., None]]:
    """Make a function of a study, and of what else a person says, a command of `app`.

    The command takes the study's name first and --storage and --json last.
    """

    def added(function: Callable[..., Output]) -> Callable[..., None]:
        def called(
            name: Name, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False, **own: Any
        ) -> None:
            say(function(open_named(name, storage, reads=reads), **own), as_json)

        first, *last, _ = inspect.signature(called).parameters.values()
        _, *own = inspect.signature(function).parameters.values()
        taken = [first, *own, *last]
        called.__name__, called.__doc__ = function.__name__, function.__doc__
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in taken}
        called.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
        return terminal.command(app, name)(called)

    return added
