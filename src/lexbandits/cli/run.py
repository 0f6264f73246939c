"""`lexbandits run STUDY.toml -- command {arm} {item}`: measure with any program until there is an answer."""

import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexbandits.cli.storage import Baseline, Items, Where, make_from_file, shorten
from lexbandits.cli.study import document, show_answer
from lexbandits.cli.terminal import UNCERTIFIED, AsJson, print_json, say_line
from lexbandits.outcomes import BaselineDecision
from lexbandits.study.errors import SpecMismatchError, StudyError
from lexbandits.study.states import StudyState

if TYPE_CHECKING:
    from lexbandits.study.measure.programs import Program
    from lexbandits.study.study import Study

BURN_IN = 3  # runs of each arm whose largest value sets a cap
LARGE = 1e9  # a value that no limit exceeds
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
    than 0 is a failed trial. Exit code 0 if the answer is certified (with a baseline: switch), 1 if it is a
    best guess (with a baseline: keep), 2 for a mistake in the question or the command, 70 for an internal
    error.
    """
    from lexbandits.study.measure.programs import Program, Stopped, check_possible
    from lexbandits.study.spec import seconds

    check_possible()
    limit = None if timeout is None else seconds("--timeout", timeout)
    asks_for = None if time_limit is None else seconds("--time-limit", time_limit)
    held = None if lease is None else seconds("--lease", lease)

    def burn_in(fields: dict[str, Any], where: str) -> None:
        measured = [] if measure is None else _measures(measure, list(fields["objectives"]))
        _burn_in(fields, where, measured, command, limit)

    def make() -> "Study":
        said = {"baseline": baseline}
        return make_from_file(file, storage, load_if_exists=True, items=items, said=said, prepared=burn_in)

    try:
        study = make()
    except SpecMismatchError:
        study = make()  # who created it during our burn-in has another one on record, which is taken
    held = min(LEASE, seconds("lease", study.spec["lease"])) if held is None else held
    measures = [] if measure is None else _measures(measure, list(study.spec["objectives"]))
    prints = len(measures) < len(study.spec["objectives"])
    program = Program(command, lambda: study.arms, limit, measures, prints, (study.spec["items"] or [0])[0])
    try:
        with _signals(program):
            answer = study.run(program, workers, lease=held, time_limit=asks_for)
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
        late = (
            "; the time is up, and the same command goes on" if status.state == StudyState.MEASURING else ""
        )
        say_line(f"{study.name}: {status.state.label} after {status.results} results{late}")
        show_answer(study, answer)
        where = f"{shlex.quote(study.name)} --storage {shlex.quote(shorten(study.storage))}"
        say_line(f"look: lexbandits study explain|results|report {where}")
    if not answer.certified or answer.decision not in (None, BaselineDecision.SWITCH):
        raise typer.Exit(UNCERTIFIED)


def _burn_in(
    fields: dict[str, Any], where: str, measured: list[str], command: list[str], limit: float | None
) -> None:
    """Cap what is measured of a command at four times the largest of a few runs, which do not count."""
    from lexbandits.study.errors import UnknownStudyError
    from lexbandits.study.measure.programs import Program, ProgramFailed, Stopped
    from lexbandits.study.spec import Spec
    from lexbandits.study.storage.contract import is_missing
    from lexbandits.study.study import open_study

    said = {"noise", "cap", "floor", "above"}
    objectives = [
        {**one, "cap": "auto"} if one["name"] in measured and not said & one.keys() else one
        for one in fields["objectives"]
    ]
    waiting = [one["name"] for one in objectives if one.get("cap") == "auto"]
    if not waiting or "burn_in" in fields:
        return
    if not is_missing(where):
        with suppress(UnknownStudyError):
            known = open_study(fields["name"], where, read_only=True).spec.get("burn_in")
            if known is not None:
                fields |= {"objectives": objectives, "burn_in": known}
            return
    fields["objectives"] = objectives
    tried = {name: {_name(arm): [LARGE] for arm in fields["arms"]} for name in waiting}
    spec = Spec.from_json({**fields, "burn_in": tried})  # refuses what is wrong before anything is run
    arms = {arm["name"]: arm for arm in spec.arms}
    items = list(spec.items or range(BURN_IN))
    program = Program(command, lambda: arms, limit, measured, len(measured) < len(objectives), items[0])
    found: dict[str, dict[str, list[float]]] = {name: {arm: [] for arm in arms} for name in waiting}
    failures: dict[str, str] = {}
    say_line(f"burn-in: {BURN_IN} runs of each arm set the cap of {', '.join(waiting)}", err=True)
    with _signals(program):
        for turn in range(BURN_IN):
            for arm in arms:
                try:
                    values = program(arm, items[turn % len(items)])
                except ProgramFailed as error:
                    failures[arm] = str(error)
                    continue
                except Stopped:
                    raise typer.Exit(128 + (program.stopped or 0)) from None
                for name in waiting:
                    if values.get(name) is not None:
                        found[name][arm].append(float(values[name]))
    for arm, why in failures.items():
        if not all(found[name][arm] for name in waiting):
            raise StudyError(f"every run of {arm!r} in the burn-in failed, the last: {why}")
    fields["burn_in"] = found


def _name(arm: Any) -> Any:
    return arm.get("name") if isinstance(arm, dict) else arm


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
