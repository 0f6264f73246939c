"""`lexbandits study …`: everything about a study but measuring, for people and for scripts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexbandits.commands import terminal
from lexbandits.commands.storage import DEFAULT, Where, is_missing, made, opened
from lexbandits.commands.terminal import CONFLICT, AsJson, number, print_json, print_table
from lexbandits.study.errors import StudyError

if TYPE_CHECKING:
    import pandas as pd

    from lexbandits.study.answers import Answer
    from lexbandits.study.study import Study

app = typer.Typer(no_args_is_help=True, help="Live studies: ask what to measure next, tell the result.")

Name = Annotated[str, typer.Argument(help="The study's name.", show_default=False)]
TrialId = Annotated[str, typer.Argument(help="The id that ask gave.", metavar="TRIAL")]
Arm = Annotated[str, typer.Argument(help="An arm's name.")]


# --- making and finding


@terminal.command(app)
def create(
    file: Annotated[
        Path, typer.Argument(help="A TOML file: [study], [[objectives]], [[arms]].", show_default=False)
    ],
    storage: Annotated[str | None, Where] = None,
    load_if_exists: Annotated[
        bool, typer.Option("--load-if-exists", help="No error if it is there and asks the same.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Make the study that a file describes."""
    study = made(file, storage, load_if_exists)
    _say({"name": study.name, "storage": study.storage}, f"study {study.name!r} in {study.storage}", as_json)


@terminal.command(app, "list")
def list_all(storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """The names of the studies in a storage."""
    from lexbandits.study.study import list_studies

    names = [] if is_missing(storage) else list_studies(storage)
    _say(names, "\n".join(names) if names else f"no studies in {storage}", as_json)


@terminal.command(app)
def delete(
    name: Name,
    storage: Annotated[str, Where] = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a study with all its results, for good."""
    from lexbandits.study.study import delete_study

    opened(name, storage)
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete study {name!r} with all its results?", abort=True, err=True)
    delete_study(name, storage)
    _say({"deleted": name}, f"deleted {name!r}", as_json)


def _say(document: Any, text: str, as_json: bool) -> None:
    if as_json:
        print_json(document)
    else:
        typer.echo(text)


# --- measuring


@terminal.command(app)
def ask(
    name: Name,
    storage: Annotated[str, Where] = DEFAULT,
    lease: Annotated[
        str | None, typer.Option(help='How long the trial is yours, as "10m". [the study\'s]')
    ] = None,
    worker: Annotated[str | None, typer.Option(help="Who measures it.")] = None,
    request: Annotated[str | None, typer.Option(help="The same key gives the same trial again.")] = None,
    as_json: AsJson = False,
) -> None:
    """The next trial: which arm to measure, on which item, until when. Exit code 3 when there is none."""
    trial = opened(name, storage).ask(lease=lease, worker=worker, request=request)
    said = f"trial {trial.id}: measure {trial.arm!r} on item {trial.item!r} until {trial.as_json()['until']}"
    _say(trial.as_json(), said, as_json)


@terminal.command(app)
def tell(
    name: Name,
    trial: TrialId,
    values: Annotated[
        list[str], typer.Argument(help="What was measured, by objective.", metavar="name=value …")
    ],
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report a trial's values. Exit code 4 if others were told before."""
    from lexbandits.study.programs import pairs

    outcome = opened(name, storage).record(trial, pairs(values))
    _say({"trial": trial, "outcome": outcome}, outcome, as_json)


@terminal.command(app)
def fail(
    name: Name,
    trial: TrialId,
    reason: Annotated[str, typer.Argument(help="Why it could not be measured.")] = "",
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Report that a trial could not be measured."""
    outcome = opened(name, storage).fail(trial, reason)
    _say({"trial": trial, "outcome": outcome}, outcome, as_json)


@terminal.command(app)
def release(
    name: Name, trial: TrialId, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False
) -> None:
    """Give a trial back unmeasured: its place is asked again under a new id."""
    opened(name, storage).release(trial)
    _say({"trial": trial, "outcome": "released"}, "released", as_json)


# --- looking


@terminal.command(app)
def status(name: Name, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """Where a study stands, and its answer so far."""
    _show_status(opened(name, storage, reads=True), as_json)


def _show_status(study: "Study", as_json: bool) -> None:
    status, answer = study.status, study.answer
    if as_json:
        print_json({**status.as_json(), "answer": answer.as_json()})
        return
    settling = f", settling {status.objective!r}" if status.objective else ""
    typer.echo(f"{status.name}: {status.state}{settling}")
    typer.echo(f"candidates: {', '.join(status.candidates)}")
    counts = ", ".join(
        f"{count} {what}"
        for what in ("open", "waiting", "overdue", "late", "failed", "expired", "void")
        if (count := getattr(status, what))
    )
    typer.echo(f"results: {status.results}" + (f" ({counts})" if counts else ""))
    if status.budget is not None:
        typer.echo(f"budget: {status.handed_out} of {status.budget} trials handed out")
    show_answer(answer)


def show_answer(answer: "Answer") -> None:
    """The answer with what it rests on, one line per comparison."""
    typer.echo(f"answer: {answer.arm} ({answer.reason})")
    for row in answer.certificate:
        between = f"between {_or(row['low'], '-∞')} and {_or(row['high'], '∞')}"
        typer.echo(
            f"  {row['objective']}: {answer.arm} − {row['rival']} = {_or(row['difference'], '?')}, "
            f"{between}: {row['verdict']} ({row['results']} results)"
        )


def _or(value: float | None, unknown: str) -> str:
    return unknown if value is None else number(value)


@terminal.command(app)
def results(name: Name, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """Means and intervals, one row per arm and objective."""
    frame = opened(name, storage, reads=True).results()
    if as_json:
        print_json(frame.to_dict("records"))
    else:
        print_table(_by_arm(frame), names=True)


def _by_arm(frame: "pd.DataFrame") -> "pd.DataFrame":
    """One row per arm: each objective's mean and the interval that holds it."""
    import pandas as pd

    rows: dict[str, dict[str, Any]] = {}
    for row in frame.to_dict("records"):
        known = rows.setdefault(row["arm"], {"arm": row["arm"], "state": row["state"], "results": 0})
        known["results"] = max(known["results"], row["results"])
        title = f"{row['objective']}, {row['unit']}" if row["unit"] else str(row["objective"])
        mean = "–" if pd.isna(row["mean"]) else number(row["mean"])
        known[title] = f"{mean} [{number(row['low'])}, {number(row['high'])}]"
    return pd.DataFrame(list(rows.values()))


@terminal.command(app)
def verify(name: Name, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """Replay the journal from nothing and compare it with what was recorded. Exit code 4 if they differ."""
    found = opened(name, storage).verify()
    if as_json:
        print_json({**vars(found), "ok": found.ok})
    else:
        typer.echo(f"{found.events} events, {found.trials} trials, SHA-256 {found.sha256}")
        typer.echo("\n".join(found.problems) if found.problems else "the record holds")
    if not found.ok:
        raise typer.Exit(CONFLICT)


# --- results in and out


@terminal.command(app, "import")
def import_results(
    name: Name,
    file: Annotated[Path, typer.Argument(help=".csv, .parquet or .jsonl, one result per line.")],
    fair: Annotated[
        bool | None,
        typer.Option(
            "--fair/--unfair",
            help="Whether their collection did not look at their values; if it did, there is no certificate.",
        ),
    ] = None,
    arm: Annotated[str, typer.Option(help="The column with the arms' names.")] = "arm",
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Take over results measured before, before the first ask."""
    import pandas as pd

    if fair is None:
        raise StudyError("say --fair, or --unfair if the collection of these results looked at their values")
    readers: dict[str, Any] = {".csv": pd.read_csv, ".parquet": pd.read_parquet}
    readers[".jsonl"] = lambda path: pd.read_json(path, lines=True)
    if file.suffix not in readers:
        raise StudyError(f"import reads {', '.join(readers)}, got {file.name!r}")
    frame = readers[file.suffix](file)
    count = opened(name, storage).import_results(frame, arm, fair=fair)
    _say({"imported": count}, f"{count} results", as_json)


@terminal.command(app)
def export(
    name: Name,
    path: Annotated[Path, typer.Argument(help=".csv or .parquet: the trials; .jsonl: the journal.")],
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Write the trials or the journal to a file."""
    written = opened(name, storage, reads=True).export(path)
    _say({"path": str(written)}, str(written), as_json)


# --- changes, one event each


def _changed(study: "Study", said: str, as_json: bool) -> None:
    if as_json:
        _show_status(study, as_json)
    else:
        typer.echo(said)


@terminal.command(app)
def add_arm(
    name: Name,
    arm: Arm,
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="What run hands to the command as {key}.", metavar="key=value …"),
    ] = None,
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Another arm; max_arms must have left room for it."""
    further = {}
    for word in keys or ():
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise StudyError(f"further keys are key=value pairs, got {word!r}")
        further[key] = value
    study = opened(name, storage)
    study.add_arm({"name": arm, **further} if further else arm)
    _changed(study, f"added {arm!r}", as_json)


@terminal.command(app)
def withdraw(
    name: Name,
    arm: Arm,
    reason: Annotated[str, typer.Argument(help="Why, for the record.")],
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Take an arm out of the question, not because of its values."""
    study = opened(name, storage)
    study.withdraw(arm, reason)
    _changed(study, f"withdrew {arm!r}", as_json)


@terminal.command(app)
def restore(name: Name, arm: Arm, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """Bring a withdrawn arm back."""
    study = opened(name, storage)
    study.restore(arm)
    _changed(study, f"restored {arm!r}", as_json)


def _amount(text: str | None) -> float | str | None:
    """A number, or a text such as "5%"."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@terminal.command(app)
def amend(
    name: Name,
    objective: Annotated[str, typer.Argument(help="An objective's name.")],
    tolerance: Annotated[str | None, typer.Option(help='In its unit, or as "5%" of its reference.')] = None,
    resolution: Annotated[str | None, typer.Option(help='In its unit, or as "5%" of its reference.')] = None,
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Another tolerance or resolution, after looking if need be."""
    study = opened(name, storage)
    study.amend(objective, tolerance=_amount(tolerance), resolution=_amount(resolution))
    _changed(study, f"amended {objective!r}", as_json)


@terminal.command(app)
def reorder(
    name: Name,
    objectives: Annotated[list[str], typer.Argument(help="All objectives, the first counts most.")],
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Another order of priority, after looking if need be."""
    study = opened(name, storage)
    study.reorder(objectives)
    _changed(study, "order: " + ", ".join(objectives), as_json)


@terminal.command(app)
def pause(
    name: Name,
    reason: Annotated[str, typer.Argument(help="Why, for the record.")] = "",
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Hand out nothing until resume; results are still taken."""
    study = opened(name, storage)
    study.pause(reason)
    _changed(study, "paused", as_json)


@terminal.command(app)
def resume(name: Name, storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """Go on after a pause."""
    study = opened(name, storage)
    study.resume()
    _changed(study, "resumed", as_json)


@terminal.command(app)
def end(
    name: Name,
    reason: Annotated[str, typer.Argument(help="Why, for the record.")],
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """End by hand, without a certificate."""
    study = opened(name, storage)
    study.end(reason)
    _changed(study, f"ended; best guess: {study.answer.arm}", as_json)


@terminal.command(app)
def reopen(
    name: Name,
    why: Annotated[str, typer.Argument(help="Why, for the record.")],
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Go on after an end."""
    study = opened(name, storage)
    study.reopen(why)
    _changed(study, "reopened", as_json)
