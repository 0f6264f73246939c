"""`lexbandits serve` and `lexbandits token`."""

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lexbandits.cli.storage import DEFAULT, Where
from lexbandits.cli.terminal import AsJson, command, print_json, print_table
from lexbandits.study.errors import StudyError
from lexbandits.study.trial import moment

if TYPE_CHECKING:
    from lexbandits.service.auth import Tokens
    from lexbandits.service.webhook import Receiver

Storage = Annotated[str, Where]
Owner = Annotated[str, typer.Argument(help="Whose it is.")]

token = typer.Typer(no_args_is_help=True, help="Who may use the service.")


def serve(
    host: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine only with tokens.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(metavar="PORT", help="0 for any that is free.", min=0, max=65535)
    ] = 8787,
    storage: Storage = DEFAULT,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A name that others know this service by; can be repeated."),
    ] = None,
    webhook: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            envvar="LEXBANDITS_WEBHOOK",
            help="Address that is told when a study finishes or pauses, or when a diagnostic warns.",
        ),
    ] = None,
    webhook_secret_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The secret that signs; else LEXBANDITS_WEBHOOK_SECRET."),
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where people reach the page, for links; else where it listens."),
    ] = None,
    log_format: Annotated[
        Literal["text", "json"], typer.Option(help="How lines on stderr are written.")
    ] = "text",
) -> None:
    """Serve studies to a team: an API for workers, a page that shows every study live."""
    _refuse_password(storage)
    from lexbandits.service.start import serve as run

    run(
        storage,
        host,
        port,
        allow_host or (),
        say=lambda address: print(address, flush=True),
        receiver=_receiver(webhook, webhook_secret_file),
        page=None if url is None else f"{url.rstrip('/')}/",
        log_format=log_format,
    )


def _receiver(url: str | None, file: Path | None) -> "Receiver | None":
    secret = os.environ.get("LEXBANDITS_WEBHOOK_SECRET", "") if file is None else file.read_text()
    if not url:
        if file is not None:
            raise StudyError("a secret needs a webhook to sign: say --webhook as well")
        return None
    if not secret.strip():
        raise StudyError("a webhook is signed: say LEXBANDITS_WEBHOOK_SECRET or --webhook-secret-file")
    from lexbandits.service.webhook import Receiver

    return Receiver(url, secret.strip())


@command(token)
def create(
    name: Owner,
    role: Annotated[
        str, typer.Option(help="read (look), write (measure) or admin (make and change studies).")
    ] = "write",
    storage: Storage = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Make a token and print it: nobody can see it again."""
    secret = _tokens(storage).create(name, role)
    if as_json:
        print_json({"name": name, "role": role, "token": secret})
    else:
        typer.echo(secret)


@command(token, "list")
def show(storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """Show who has a token, never the token."""
    rows: list[dict[str, Any]] = []
    for row in _tokens(storage).storage.tokens():
        times = {"created": row.created, "last used": row.last_used, "revoked": row.revoked}
        when = {
            key: at if at is None else moment(at).isoformat(timespec="seconds") for key, at in times.items()
        }
        rows.append({"name": row.name, "role": row.role, **when})
    if as_json:
        print_json(rows)
        return
    print_table([{key: value or "" for key, value in row.items()} for row in rows], names=True)


@command(token)
def revoke(name: Owner, storage: Storage = DEFAULT, as_json: AsJson = False) -> None:
    """Take a token back, from the next request on."""
    _tokens(storage).revoke(name)
    if as_json:
        print_json({"name": name, "revoked": True})


def _tokens(storage: str) -> "Tokens":
    _refuse_password(storage)
    from lexbandits.service.auth import Tokens, open_lasting

    return Tokens(open_lasting(storage))


def _refuse_password(storage: str) -> None:
    """The words of a command can be read by everybody on the machine."""
    if re.search(r"://[^/@]*:[^/@]*@", storage) and any(storage in word for word in sys.argv):
        raise StudyError("an address with a password belongs in LEXBANDITS_STORAGE, not in the command")
