"""`lexbandits run STUDY.toml -- command {arm} {item}`: measure with any program until there is an answer."""

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexbandits.commands.storage import Where, made, nearby
from lexbandits.commands.study import document, show_answer
from lexbandits.commands.terminal import AsJson, print_json

if TYPE_CHECKING:
    from lexbandits.study.programs import Program

LEASE = 60.0  # seconds; heartbeats extend it, and a process that was killed blocks nobody for longer


def run(
    file: Annotated[
        Path,
        typer.Argument(help="A TOML file: [study], [[objectives]], [[arms]].", metavar="STUDY.toml"),
    ],
    command: Annotated[
        list[str], typer.Argument(help="What measures: {arm}, {item} and {key} of [[arms]] are filled in.")
    ],
    workers: Annotated[int, typer.Option(help="Commands at once.", min=1)] = 1,
    timeout: Annotated[str | None, typer.Option(help='Of one command, as "30s"; then it has failed.')] = None,
    lease: Annotated[
        str | None, typer.Option(help="How long a trial outlives a kill -9 of this. [60s]")
    ] = None,
    storage: Annotated[str | None, Where] = None,
    as_json: AsJson = False,
) -> None:
    """Measure with any program until there is an answer; started again, it goes on where it was.

    The last line the program prints is a JSON object of values, or name=value pairs; an exit code other
    than 0 is a failed trial.
    """
    from lexbandits.study.programs import Program, Stopped
    from lexbandits.study.spec import seconds

    limit = None if timeout is None else seconds("timeout", timeout)
    study = made(file, storage, load_if_exists=True, short=False)
    held = min(LEASE, seconds("lease", study.spec["lease"])) if lease is None else seconds("lease", lease)
    program = Program(command, lambda: study.arms, limit)
    try:
        with _signals(program):
            answer = study.run(program, workers, lease=held)
    except Stopped:
        again = "what was being measured is released; the same command goes on"
        typer.echo(f"stopped: {again}", err=True)
        if as_json:
            print_json(document(study))
        raise typer.Exit(128 + (program.stopped or 0)) from None
    if as_json:
        print_json(document(study))
        return
    status = study.status
    typer.echo(f"{study.name}: {status.state} after {status.results} results")
    show_answer(answer)
    where = f"{shlex.quote(study.name)} --storage {shlex.quote(nearby(study.storage))}"
    typer.echo(f"look: lexbandits study explain|results|report {where}")


@contextmanager
def _signals(program: "Program") -> Iterator[None]:
    """SIGTERM and Ctrl-C end the commands; the trials are given back where no transaction is torn."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = {number: signal.signal(number, lambda given, _: program.stop(given)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
