"""`lexbandits serve` and `lexbandits token`."""

import re
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from lexbandits.study.errors import StudyError
from lexbandits.study.trial import moment

if TYPE_CHECKING:
    from lexbandits.server.tokens import Tokens

Storage = Annotated[
    str,
    typer.Option(
        envvar="LEXBANDITS_STORAGE",
        show_envvar=True,
        show_default="lexbandits.db",
        help="A path, sqlite:///… or postgresql://…; a password belongs in the variable.",
    ),
]
DEFAULT = "lexbandits.db"


def serve(
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine only with tokens.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 for any that is free.", min=0, max=65535)] = 8787,
    storage: Storage = DEFAULT,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name that others know this service by; can be repeated.")
    ] = None,
) -> None:
    """A service for a team: an API for workers, a page that shows every study live."""
    _refuse_password(storage)
    try:
        from lexbandits.server.start import serve as run
    except ModuleNotFoundError as error:
        raise StudyError(f"{error.name} is needed: pip install 'lexbandits[serve]'") from error

    run(storage, host, port, allow_host or (), say=lambda address: print(address, flush=True))


def create(
    name: Annotated[str, typer.Argument(help="Whose it is.")],
    role: Annotated[
        str, typer.Option(help="read (look), write (measure) or admin (make, change).")
    ] = "write",
    storage: Storage = DEFAULT,
) -> None:
    """Make a token and print it: nobody can see it again."""
    typer.echo(_tokens(storage).create(name, role))


def list_(storage: Storage = DEFAULT) -> None:
    """Show who has a token, never the token."""
    for row in _tokens(storage).storage.tokens():
        used = "never used" if row.last_used is None else f"last used {_day(row.last_used)}"
        gone = "" if row.revoked is None else f", revoked {_day(row.revoked)}"
        typer.echo(f"{row.name}: {row.role}, made {_day(row.created)}, {used}{gone}")


def _day(at: float) -> str:
    return moment(at).strftime("%Y-%m-%d %H:%M")


def revoke(name: Annotated[str, typer.Argument(help="Whose it is.")], storage: Storage = DEFAULT) -> None:
    """Take a token back, from the next request on."""
    _tokens(storage).revoke(name)


def _tokens(storage: str) -> "Tokens":
    _refuse_password(storage)
    from lexbandits.server.rooms import opened
    from lexbandits.server.tokens import Tokens

    return Tokens(opened(storage))


def _refuse_password(storage: str) -> None:
    """The words of a command can be read by everybody on the machine."""
    if re.search(r"://[^/@]*:[^/@]*@", storage) and any(storage in word for word in sys.argv):
        raise StudyError("an address with a password belongs in LEXBANDITS_STORAGE, not in the command")
