"""`lexbandits run STUDY.toml -- command {arm} {item}`: measure with any program until there is an answer."""

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexbandits.commands.storage import Baseline, Items, Where, make_from_file, shorten
from lexbandits.commands.study import document, show_answer
from lexbandits.commands.terminal import UNCERTIFIED, AsJson, print_json, say_line
from lexbandits.study.errors import StudyError

if TYPE_CHECKING:
    from lexbandits.study.measure.programs import Program

LEASE = 60.0  # seconds; heartbeats extend it, and a process that was killed blocks nobody for longer


def run(
    file: Annotated[
        Path,
        typer.Argument(help="A TOML file: [study], [[objectives]], [[arms]].", metavar="STUDY.toml"),
    ],
    command: Annotated[
        list[str],
        typer.Argument(help="What measures: {arm}, {item}, {item[key]} and {key} of [[arms]] are filled in."),
    ],
    items: Annotated[str | None, Items] = None,
    baseline: Annotated[str | None, Baseline] = None,
    workers: Annotated[int, typer.Option(help="Commands at once.", min=1)] = 1,
    timeout: Annotated[str | None, typer.Option(help='Of one command, as "30s"; then it has failed.')] = None,
    lease: Annotated[
        str | None, typer.Option(help="How long a trial outlives a kill -9 of this. [60s]")
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help='Objectives that are measured of the command: "seconds", "memory" (MB), or both.'),
    ] = None,
    time_limit: Annotated[
        str | None, typer.Option(help='As "2h": then nothing more is begun, and what is begun is finished.')
    ] = None,
    storage: Annotated[str | None, Where] = None,
    as_json: AsJson = False,
) -> None:
    """Measure with any program until there is an answer; started again, it goes on where it was.

    The last line the program prints is a JSON object of values, or name=value pairs; an exit code other
    than 0 is a failed trial. Exit code 0 if the answer is certified (with a baseline: switch or keep), 1 if
    it is a best guess, 2 for a mistake in the question or the command, 70 for an error of ours.
    """
    from lexbandits.study.measure.programs import Program, Stopped, check_possible
    from lexbandits.study.spec import seconds

    check_possible()
    limit = None if timeout is None else seconds("timeout", timeout)
    study = make_from_file(file, storage, load_if_exists=True, items=items, baseline=baseline)
    held = min(LEASE, seconds("lease", study.spec["lease"])) if lease is None else seconds("lease", lease)
    measures = [] if measure is None else _measures(measure, list(study.spec["objectives"]))
    prints = len(measures) < len(study.spec["objectives"])
    program = Program(command, lambda: study.arms, limit, measures, prints, (study.spec["items"] or [0])[0])
    try:
        with _signals(program):
            answer = study.run(program, workers, lease=held, time_limit=time_limit)
    except Stopped as stopped:
        became = "".join(f" {note}." for note in getattr(stopped, "__notes__", ()))
        say_line(f"stopped.{became} The same command goes on.", err=True)
        if as_json:
            print_json(document(study))
        raise typer.Exit(128 + (program.stopped or 0)) from None
    status = study.status
    if program.failure:
        say_line(f"failed trials: {status.failed}, the last: {program.failure}", err=True)
    if as_json:
        print_json(document(study))
    else:
        late = "; the time is up, and the same command goes on" if status.state == "measuring" else ""
        say_line(f"{study.name}: {status.state} after {status.results} results{late}")
        show_answer(study, answer)
        where = f"{shlex.quote(study.name)} --storage {shlex.quote(shorten(study.storage))}"
        say_line(f"look: lexbandits study explain|results|report {where}")
    if not answer.certified or answer.decision == "keep for now":
        raise typer.Exit(UNCERTIFIED)


def _measures(text: str, objectives: list[dict[str, Any]]) -> list[str]:
    from lexbandits.study.measure.programs import USAGE

    names, there = [name.strip() for name in text.split(",")], [one["name"] for one in objectives]
    for name in names:
        if name not in USAGE:
            raise StudyError(f"--measure knows {', '.join(USAGE)}, got {name!r}")
        if name not in there:
            raise StudyError(
                f"--measure {name}: the study has no objective of this name, but {', '.join(there)}"
            )
    return list(dict.fromkeys(names))


@contextmanager
def _signals(program: "Program") -> Iterator[None]:
    """SIGTERM, SIGHUP and Ctrl-C end the commands; no transaction is torn.

    What is ignored stays ignored: by nohup, or in a job that a shell started in the background.
    """
    wanted = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)
    numbers = [number for number in wanted if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda given, _: program.stop(given)) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
