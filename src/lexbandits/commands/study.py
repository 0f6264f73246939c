"""`lexbandits study …`: everything about a study but measuring, for people and for scripts."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexbandits.commands import terminal
from lexbandits.commands.shape import Name, Said, of_study, say
from lexbandits.commands.storage import (
    DEFAULT,
    Baseline,
    Items,
    Where,
    is_missing,
    make_from_file,
    open_named,
    shorten,
)
from lexbandits.commands.terminal import CONFLICT, AsJson, print_table, say_line
from lexbandits.study import words
from lexbandits.study.errors import StudyError

if TYPE_CHECKING:
    from lexbandits.study.objective import Objective
    from lexbandits.study.record.answers import Answer
    from lexbandits.study.study import Study

app = typer.Typer(no_args_is_help=True, help="Live studies: ask what to measure next, tell the result.")

TrialId = Annotated[str, typer.Argument(help="The id that ask gave.", metavar="TRIAL")]
Values = Annotated[list[str], typer.Argument(help="What was measured, by objective.", metavar="name=value …")]
Arm = Annotated[str, typer.Argument(help="An arm's name.")]
Why = Annotated[str, typer.Argument(help="Why, for the record.")]
Yes = Annotated[bool, typer.Option("--yes", help="Do not ask whether a change is worth its cost.")]
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
    as_json: AsJson = False,
) -> None:
    """Make the study that a file describes."""
    study = make_from_file(file, storage, load_if_exists, items=items, baseline=baseline)
    is_missing(study.storage)  # refuses memory, where it would be gone
    words = f"study {study.name!r} in {shorten(study.storage)}"
    say(Said({"name": study.name, "storage": study.storage}, words), as_json)


@terminal.command(app, "list")
def list_all(storage: Annotated[str, Where] = DEFAULT, as_json: AsJson = False) -> None:
    """The names of the studies in a storage."""
    from lexbandits.study.study import list_studies

    names = [] if is_missing(storage) else list_studies(storage)
    say(Said(names, "\n".join(names) if names else f"no studies in {storage}"), as_json)


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
    say(Said({"deleted": name}, f"deleted {name!r}"), as_json)


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
) -> Said:
    """The next trial: which arm to measure, on which item, until when. Exit code 3 when there is none.

    Exit code 6 if a trial of somebody else must come back first, and did not in time.
    """
    trial = study.ask(lease=lease, worker=worker, request=request, wait=wait)
    until = trial.as_json()["until"]
    return Said(
        trial.as_json(), f"trial {trial.id}: measure {trial.arm!r} on item {trial.item!r} until {until}"
    )


@of_study(app)
def tell(
    study: "Study",
    trial: TrialId,
    values: Values,
    more: Annotated[bool, typer.Option("--more", help="Values of other objectives follow.")] = False,
) -> Said:
    """Report a trial's values. Exit code 4 if others were told before."""
    from lexbandits.study.measure.programs import pairs

    return _outcome(trial, study.record(trial, pairs(values), more))


@of_study(app)
def fail(
    study: "Study",
    trial: TrialId,
    reason: Annotated[str, typer.Argument(help="Why it could not be measured.")] = "",
) -> Said:
    """Report that a trial could not be measured."""
    return _outcome(trial, study.fail(trial, reason))


@of_study(app)
def release(study: "Study", trial: TrialId) -> Said:
    """Give a trial back unmeasured: its place is asked again under a new id."""
    study.release(trial)
    return _outcome(trial, "released")


@of_study(app)
def retry(study: "Study") -> Said:
    """Ask again for what failed or ran out, on a list; counted as a strain."""
    places = study.retry()
    words = "nothing is missing" if not places else f"asked again: {places}"
    return Said({"places": places}, words)


@of_study(app)
def correct(
    study: "Study",
    trial: TrialId,
    values: Values,
    reason: Annotated[str, typer.Option(help="What was wrong, for the record.", show_default=False)],
) -> Said:
    """Other values for a trial that was told, until others have been judged with it; later only a note."""
    from lexbandits.study.measure.programs import pairs

    return _outcome(trial, study.correct(trial, pairs(values), reason))


def _outcome(trial: str, outcome: str) -> Said:
    return Said({"trial": trial, "outcome": outcome}, outcome)


# --- looking


@of_study(app, reads=True)
def status(study: "Study") -> Said:
    """Where a study stands, and its answer so far."""
    return Said(lambda: document(study), lambda: _show_status(study))


def document(study: "Study") -> dict[str, Any]:
    """Where a study stands and its answer so far, for scripts."""
    return {**study.status.as_json(), "answer": study.answer.as_json()}


def _show_status(study: "Study") -> None:
    status = study.status
    settling = f", settling {status.objective!r}" if status.objective else ""
    say_line(f"{status.name}: {status.state}{settling}")
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
    """The answer with what it rests on, one line per comparison."""
    if answer.decision is not None:
        say_line(f"decision: {answer.decision}")
    say_line(f"answer: {answer.arm} ({answer.reason})")
    objectives = {objective.name: objective for objective in study.objectives}
    for row in answer.certificate:
        say_line(f"  {row['objective']}: {_claim(row)}{_seen(objectives[row['objective']], row)}")


def _claim(row: dict[str, Any]) -> str:
    """What a row of the certificate says of the answer and a rival."""
    rival = row["rival"]
    claims = {
        "beats": f"better than {rival}",
        "close": f"close to {rival}",
        "not worse": f"not worse than {rival}",
        "beaten": f"{row['by']} is better than {rival}",
        "violates the limit": f"{rival} violates the limit",
        "not clearly within": f"{rival} is not shown to be inside the limit by the slack",
        "meets the target": f"{rival} meets the limit",
    }
    return claims.get(row["verdict"], f"{row['verdict']} against {rival}")


def _seen(objective: "Objective", row: dict[str, Any]) -> str:
    """How much better the answer is than its rival, in the mean and, where that is known, at least."""
    if row["difference"] is None:
        return ""
    sign, results = objective.sign, words.many(row["results"], "result")
    better = sign * row["difference"]
    seen = (
        f"{words.value(objective, abs(better), unit=True)} {'better' if better >= 0 else 'worse'} in the mean"
    )
    least = row["low"] if sign > 0 else row["high"]
    if least is None or sign * least <= 0 or objective.noise == "exact":
        return f" ({seen}; {results})"
    return f" ({seen}, at least {words.bound(objective, sign * least, 'down')}; {results})"


@of_study(app, reads=True)
def results(study: "Study") -> Said:
    """Means and intervals, one row per arm and objective."""
    found = study._results()
    return Said(found, lambda: print_table(_by_arm(study, found), names=True))


def _by_arm(study: "Study", found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per arm: each objective's mean and the interval that holds it."""
    rows: dict[str, dict[str, Any]] = {}
    objectives = {objective.name: objective for objective in study.objectives}
    for row in found:
        known = rows.setdefault(row["arm"], {"arm": row["arm"], "state": row["state"], "results": 0})
        known["results"] = max(known["results"], row["results"])
        title = f"{row['objective']}, {row['unit']}" if row["unit"] else str(row["objective"])
        objective = objectives[row["objective"]]
        within = f" ({words.between(objective, row['low'], row['high'])})" if row["results"] else ""
        known[title] = f"{words.value(objective, row['mean'])}{within}"
    return list(rows.values())


@of_study(app)
def verify(
    study: "Study",
    record: Annotated[
        str | None,
        typer.Option(help="The digest that an answer or a report names: it must be of this journal."),
    ] = None,
) -> Said:
    """Replay the journal from nothing; compare it with its digests and answer. Exit code 4 if they differ."""
    found = study.verify(record)
    counted = f"{found.events} events, {found.trials} trials, SHA-256 {found.sha256}"
    words = "\n".join([counted, *(found.problems or ["the record holds"])])
    return Said({**vars(found), "ok": found.ok}, words, 0 if found.ok else CONFLICT)


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
) -> Said:
    """Take over results measured before: before the first ask, or at any time of a list (no --fair there)."""
    if fair is None and study.spec.get("about") != "items":
        raise StudyError("say --fair, or --unfair if the collection of these results looked at their values")
    count = study.import_results(file, arm, fair=fair, again=again, ignore=ignore or ())
    return Said({"imported": count}, f"{count} results")


@of_study(app, reads=True)
def export(
    study: "Study",
    path: Annotated[Path, typer.Argument(help=".csv or .parquet: the trials; .jsonl: the journal.")],
) -> Said:
    """Write the trials or the journal to a file."""
    written = str(study.export(path))
    return Said({"path": written}, written)


# --- changes, one event each


def _weigh(study: "Study", change: str, yes: bool) -> None:
    """Say what a change costs and ask, if somebody is there to answer."""
    if not yes and sys.stdin.isatty() and (cost := study.cost_of_change(change)):
        typer.confirm(f"{cost} Go on?", abort=True, err=True)


def _changed(study: "Study", words: str) -> Said:
    return Said(lambda: document(study), words)


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
) -> Said:
    """Another arm; max_arms must have left room for it."""
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
def withdraw(study: "Study", arm: Arm, reason: Why, yes: Yes = False) -> Said:
    """Take an arm out of the question, not because of its values."""
    _weigh(study, "Withdrawing an arm", yes)
    study.withdraw(arm, reason)
    return _changed(study, f"withdrew {arm!r}")


@of_study(app)
def restore(study: "Study", arm: Arm, yes: Yes = False) -> Said:
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
) -> Said:
    """Another margin or tie, after looking if need be."""
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
) -> Said:
    """Another order of priority, after looking if need be."""
    _weigh(study, "Changing the order", yes)
    study.reorder(objectives)
    return _changed(study, "order: " + ", ".join(objectives))


@of_study(app)
def budget(
    study: "Study",
    trials: Annotated[str, typer.Argument(help="How many may be handed out in all, or none for no end.")],
) -> Said:
    """Another budget; a study that had spent its old one goes on."""
    if trials != "none" and not trials.isdecimal():
        raise StudyError(f"a budget is a number of trials, or none for no end; got {trials!r}")
    study.set_budget(None if trials == "none" else int(trials))
    return _changed(study, f"budget: {trials}")


@of_study(app)
def pause(study: "Study", reason: Why = "") -> Said:
    """Hand out nothing until resume; results are still taken."""
    study.pause(reason)
    return _changed(study, "paused")


@of_study(app)
def resume(study: "Study") -> Said:
    """Go on after a pause."""
    study.resume()
    return _changed(study, "resumed")


@of_study(app)
def end(study: "Study", reason: Why) -> Said:
    """End by hand, without a certificate; if its results have given the answer by now, with it."""
    study.end(reason)
    answer = study.answer
    if answer.certified:
        return _changed(study, f"it has an answer: {answer.arm}, {answer.reason}")
    return _changed(study, f"ended; best guess: {answer.arm}")


@of_study(app)
def reopen(study: "Study", why: Why) -> Said:
    """Go on after an end."""
    study.reopen(why)
    return _changed(study, "reopened")


@of_study(app)
def note(study: "Study", text: Annotated[str, typer.Argument(help="A remark for the record.")]) -> Said:
    """Put a remark on record; it changes nothing."""
    study.note(text)
    return _changed(study, "noted")
