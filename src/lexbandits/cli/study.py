"""`lexbandits study …`: everything about a study but measuring, for people and for scripts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexbandits.cli import terminal
from lexbandits.cli.storage import (
    DEFAULT,
    Baseline,
    Items,
    Serve,
    Shares,
    Traffic,
    Warmup,
    Where,
    is_missing,
    make_from_file,
    open_named,
    shares_of,
    shorten,
)
from lexbandits.cli.study_command import Name, Output, of_study, say
from lexbandits.cli.terminal import CONFLICT, AsJson, print_table, say_line
from lexbandits.outcomes import Scope
from lexbandits.study.errors import StudyError
from lexbandits.study.states import StudyState

if TYPE_CHECKING:
    from lexbandits.study.core.queries import Answer
    from lexbandits.study.study import Study

app = typer.Typer(no_args_is_help=True, help="Live studies: ask what to measure next, tell the result.")

TrialId = Annotated[str, typer.Argument(help="The id that ask gave.", metavar="TRIAL")]
Values = Annotated[list[str], typer.Argument(help="What was measured, by objective.", metavar="name=value …")]
Arm = Annotated[str, typer.Argument(help="An arm's name.")]
Why = Annotated[str, typer.Argument(help="Why, for the record.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether a change is worth its cost.")]
NO_BUDGET = "none"  # as it is written on the command line
Amount = Annotated[str | None, typer.Option(help='In its unit, or as "5%" of its reference.')]


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
    items: Annotated[str | None, Items] = None,
    baseline: Annotated[str | None, Baseline] = None,
    serve: Annotated[bool, Serve] = False,
    traffic: Annotated[float | None, Traffic] = None,
    warmup: Annotated[str | None, Warmup] = None,
    shares: Annotated[list[str] | None, Shares] = None,
    as_json: AsJson = False,
) -> None:
    """Create the study that a file describes."""
    said: dict[str, Any] = {
        "baseline": baseline,
        "serve": serve or None,
        "traffic": traffic,
        "warmup": warmup,
    }
    said["shares"] = shares_of(shares) if shares else None
    study = make_from_file(file, storage, load_if_exists, items=items, said=said)
    is_missing(study.storage)  # refuses memory, where it would be gone
    text = f"study {study.name!r} in {shorten(study.storage)}"
    say(Output({"name": study.name, "storage": study.storage}, text), as_json)


@terminal.command(app, "list")
def list_all(storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """List the studies in a storage."""
    from lexbandits.study.study import list_studies

    names = [] if is_missing(storage) else list_studies(storage)
    say(Output(names, "\n".join(names) if names else f"no studies in {storage}"), as_json)


@terminal.command(app)
def delete(
    name: Name,
    storage: Annotated[str, Where] = DEFAULT,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete a study with all its results, for good."""
    from lexbandits.study.study import delete_study

    open_named(name, storage)
    if not yes and sys.stdin.isatty():
        typer.confirm(f"Delete study {name!r} with all its results?", abort=True, err=True)
    delete_study(name, storage)
    say(Output({"deleted": name}, f"deleted {name!r}"), as_json)


# --- measuring


@of_study(app)
def ask(
    study: "Study",
    lease: Annotated[
        str | None, typer.Option(help='How long the trial is yours, as "10m". [the study\'s]')
    ] = None,
    worker: Annotated[str | None, typer.Option(help="Who measures it.")] = None,
    request: Annotated[str | None, typer.Option(help="The same key gives the same trial again.")] = None,
    wait: Annotated[
        str, typer.Option(help="How long to wait while results of others must come first; 0: not at all.")
    ] = "2s",
) -> Output:
    """Print the next trial: which arm to measure, on which item, until when. Exit code 3 if there is none.

    Exit code 6 if a trial of somebody else must come back first, and did not in time.
    """
    trial = study.ask(lease=lease, worker=worker, request=request, wait=wait)
    until = trial.as_json()["until"]
    return Output(
        trial.as_json(), f"trial {trial.id}: measure {trial.arm!r} on item {trial.item!r} until {until}"
    )


@of_study(app)
def tell(
    study: "Study",
    trial: TrialId,
    values: Values,
    partial: Annotated[bool, typer.Option("--partial", help="Values of other objectives follow.")] = False,
) -> Output:
    """Report a trial's values. Exit code 4 if others were told before."""
    from lexbandits.study.measure.programs import pairs

    return _outcome(trial, study.record(trial, pairs(values), partial))


@of_study(app)
def fail(
    study: "Study",
    trial: TrialId,
    reason: Annotated[str, typer.Argument(help="Why it could not be measured.")] = "",
) -> Output:
    """Report that a trial could not be measured."""
    return _outcome(trial, study.fail(trial, reason))


@of_study(app)
def release(study: "Study", trial: TrialId) -> Output:
    """Give a trial back unmeasured. Its place is asked again under a new id."""
    study.release(trial)
    return _outcome(trial, "released")


@of_study(app)
def retry(study: "Study") -> Output:
    """Ask again for what failed or ran out, on a list. A diagnostic reports it."""
    places = study.retry()
    text = "nothing is missing" if not places else f"asked again: {places}"
    return Output({"places": places}, text)


@of_study(app)
def correct(
    study: "Study",
    trial: TrialId,
    values: Values,
    reason: Annotated[str, typer.Option(help="What was wrong, for the record.", show_default=False)],
) -> Output:
    """Correct the values of a trial, until others have been judged with it; later only a note."""
    from lexbandits.study.measure.programs import pairs

    return _outcome(trial, study.correct(trial, pairs(values), reason))


def _outcome(trial: str, outcome: str) -> Output:
    return Output({"trial": trial, "outcome": outcome}, outcome)


# --- looking


@of_study(app, reads=True)
def status(study: "Study") -> Output:
    """Show where a study stands, and its answer so far."""
    return Output(lambda: document(study), lambda: _show_status(study))


def document(study: "Study") -> dict[str, Any]:
    """Where a study stands and its answer so far, for scripts."""
    return {**study.status.as_json(), "answer": study.answer.as_json()}


def _show_status(study: "Study") -> None:
    status = study.status
    settling = f", settling {status.objective!r}" if status.objective else ""
    say_line(f"{status.name}: {status.state.label}{settling}")
    if status.state != StudyState.FINISHED:
        say_line(f"candidates: {', '.join(status.candidates)}")
    counts = ", ".join(
        f"{count} {what}"
        for what in ("open", "waiting", "overdue", "late", "failed", "expired")
        if (count := getattr(status, what))
    )
    most = "" if status.at_most is None else f", at most {status.at_most:,} more"
    say_line(f"results: {status.results}{most}" + (f" ({counts})" if counts else ""))
    if status.budget is not None:
        say_line(f"budget: {status.handed_out} of {status.budget} trials handed out")
    show_answer(study, study.answer)


def show_answer(study: "Study", answer: "Answer") -> None:
    """The answer, and a line for each other arm."""
    from lexbandits.views.answer_text import arms_of

    if answer.decision is not None:
        say_line(f"decision: {answer.decision}")
    say_line(f"{'answer' if answer.certified else 'best guess'}: {answer.arm} ({answer.reason})")
    for line in arms_of(answer, study.objectives) if answer.certificate else ():
        say_line(f"  {line}")


@of_study(app, reads=True)
def results(study: "Study") -> Output:
    """Show every arm with its outcome, and its means with ordinary 95 % intervals."""
    return Output(study._results, lambda: print_table(_by_arm(study), names=True))


def _by_arm(study: "Study") -> list[dict[str, Any]]:
    """One row per arm, as page and report show it."""
    from lexbandits.views.study_view import StudyView

    view = StudyView.of(study)
    heads = {row.name: f"{row.name}, {row.unit}" if row.unit else row.name for row in view.objectives}
    return [
        {"arm": arm.name, "outcome": arm.label, "results": arm.results}
        | {head: arm.objectives[name].in_short.replace(" – ", "–") for name, head in heads.items()}
        for arm in view.arms
    ]


@of_study(app)
def verify(
    study: "Study",
    digest: Annotated[
        str | None,
        typer.Option(help="The digest that an answer or a report names: it must be of this journal."),
    ] = None,
) -> Output:
    """Replay the journal from nothing; compare it with its digests and answer. Exit code 4 if they differ."""
    found = study.verify(digest)
    counted = f"{found.events} events, {found.trials} trials, SHA-256 {found.sha256}"
    text = "\n".join([counted, *(found.problems or ["the record holds"])])
    return Output({**vars(found), "ok": found.ok}, text, 0 if found.ok else CONFLICT)


# --- results in and out


@of_study(app, "import")
def import_results(
    study: "Study",
    file: Annotated[Path, typer.Argument(help=".csv, .parquet or .jsonl, one result per line.")],
    fair: Annotated[
        bool | None,
        typer.Option(
            "--fair/--unfair",
            help="Whether nobody looked at values to decide what to measure, which results are here, and "
            "what the study asks; if somebody did, there is no certificate.",
        ),
    ] = None,
    arm: Annotated[str, typer.Option(help="The column with the arms' names.")] = "arm",
    again: Annotated[bool, typer.Option("--again", help="These very rows were measured twice.")] = False,
    ignore: Annotated[
        list[str] | None, typer.Option(help="A column that is no objective; may be given more than once.")
    ] = None,
) -> Output:
    """Import results measured before: before the first ask, or at any time of a list (without --fair)."""
    if fair is None and study.spec.get("scope") != Scope.ITEMS:
        raise StudyError("say --fair, or --unfair if the collection of these results looked at their values")
    count = study.import_results(file, arm, fair=fair, again=again, ignore=ignore or ())
    return Output({"imported": count}, f"{count} results")


@of_study(app, reads=True)
def export(
    study: "Study",
    path: Annotated[Path, typer.Argument(help=".csv or .parquet: the trials; .jsonl: the journal.")],
) -> Output:
    """Write the trials or the journal to a file."""
    written = str(study.export(path))
    return Output({"path": written}, written)


# --- changes, one event each


def _weigh(study: "Study", change: str, yes: bool) -> None:
    """Say what a change costs and ask, if somebody is there to answer."""
    if not yes and sys.stdin.isatty() and (cost := study.cost_of_change(change)):
        typer.confirm(f"{cost} Go on?", abort=True, err=True)


def _changed(study: "Study", text: str) -> Output:
    return Output(lambda: document(study), text)


@of_study(app)
def add_arm(
    study: "Study",
    arm: Arm,
    keys: Annotated[
        list[str] | None,
        typer.Argument(help="What run hands to the command as {key}.", metavar="key=value …"),
    ] = None,
    blind: Annotated[
        bool, typer.Option("--blind", help="Of a list: it was made without looking at results of the study.")
    ] = False,
    yes: Yes = False,
) -> Output:
    """Add an arm; max_arms must have left room for it."""
    further = {}
    for word in keys or ():
        key, equals, value = word.partition("=")
        if not (key and equals):
            raise StudyError(f"further keys are key=value pairs, got {word!r}")
        further[key] = value
    _weigh(study, "Adding an arm", yes)
    study.add_arm({"name": arm, **further} if further else arm, blind=blind)
    return _changed(study, f"added {arm!r}")


@of_study(app)
def withdraw(study: "Study", arm: Arm, reason: Why, yes: Yes = False) -> Output:
    """Take an arm out of the question, not because of its values."""
    _weigh(study, "Withdrawing an arm", yes)
    study.withdraw(arm, reason)
    return _changed(study, f"withdrew {arm!r}")


@of_study(app)
def restore(study: "Study", arm: Arm, yes: Yes = False) -> Output:
    """Bring a withdrawn arm back."""
    _weigh(study, "Bringing an arm back", yes)
    study.restore(arm)
    return _changed(study, f"restored {arm!r}")


@of_study(app)
def amend(
    study: "Study",
    objective: Annotated[str, typer.Argument(help="An objective's name.")],
    margin: Amount = None,
    tie: Amount = None,
    yes: Yes = False,
) -> Output:
    """Change a margin or a tie, after looking if need be."""
    _weigh(study, "Changing a margin" if margin else "Changing a tie", yes)
    study.amend(objective, margin=_amount(margin), tie=_amount(tie))
    return _changed(study, f"amended {objective!r}")


def _amount(text: str | None) -> float | str | None:
    """A number, or a text such as "5%"."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


@of_study(app)
def reorder(
    study: "Study",
    objectives: Annotated[list[str], typer.Argument(help="All objectives, the first counts most.")],
    yes: Yes = False,
) -> Output:
    """Change the order of priority, after looking if need be."""
    _weigh(study, "Changing the order", yes)
    study.reorder(objectives)
    return _changed(study, "order: " + ", ".join(objectives))


@of_study(app)
def budget(
    study: "Study",
    trials: Annotated[str, typer.Argument(help="How many may be handed out in all, or none for no end.")],
) -> Output:
    """Change the budget; a study that had spent its old one goes on."""
    if trials != NO_BUDGET and not trials.isdecimal():
        raise StudyError(f"a budget is a number of trials, or none for no end; got {trials!r}")
    study.set_budget(None if trials == NO_BUDGET else int(trials))
    return _changed(study, f"budget: {trials}")


@of_study(app)
def pause(study: "Study", reason: Why = "") -> Output:
    """Hand out nothing until resume; results are still taken."""
    study.pause(reason)
    return _changed(study, "paused")


@of_study(app)
def resume(study: "Study") -> Output:
    """Go on after a pause."""
    study.resume()
    return _changed(study, "resumed")


@of_study(app)
def end(study: "Study", reason: Why) -> Output:
    """End a study by hand: without a certificate, if its results do not give one by now."""
    study.end(reason)
    answer = study.answer
    if answer.certified:
        return _changed(study, f"it has an answer: {answer.arm}, {answer.reason}")
    return _changed(study, f"ended; best guess: {answer.arm}")


@of_study(app)
def reopen(study: "Study", why: Why) -> Output:
    """Go on after an end."""
    study.reopen(why)
    return _changed(study, "reopened")


@of_study(app)
def note(study: "Study", text: Annotated[str, typer.Argument(help="A remark for the record.")]) -> Output:
    """Record a remark, which changes nothing."""
    study.note(text)
    return _changed(study, "noted")
