"""`lexbandits study explain | forecast | report`: why, how much longer, and one file to hand on."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lexbandits._files import beside
from lexbandits._validation import toml_table
from lexbandits.cli import terminal
from lexbandits.cli.storage import DEFAULT, Where, open_named
from lexbandits.cli.study import app as app
from lexbandits.cli.study_command import Output, of_study
from lexbandits.cli.terminal import AsJson, print_json
from lexbandits.study.errors import StudyError

if TYPE_CHECKING:
    from lexbandits.study.study import Study


@of_study(app, reads=True)
def explain(
    study: "Study", arm: Annotated[str | None, typer.Argument(help="All about one arm.")] = None
) -> Output:
    """Explain why each arm left or stays, and what the answer may give up."""

    def words() -> None:
        from lexbandits.report.terminal_report import print_explanation

        print_explanation(study, arm)

    return Output(lambda: asdict(study.explain(arm)), words)


@terminal.command(app)
def forecast(
    name: Annotated[str, typer.Argument(help="The study's name, or a file.toml of one to be made.")],
    prior: Annotated[
        Path | None,
        typer.Option(
            help="A TOML file of expected means, not yet measured: [arm] objective = 0.8 or [0.7, 0.9]."
        ),
    ] = None,
    sd: Annotated[
        list[str] | None,
        typer.Option(help="objective=value, the standard deviation of one value; can be repeated."),
    ] = None,
    price: Annotated[float | None, typer.Option(help="Of one result.")] = None,
    runs: Annotated[int, typer.Option(help="Futures to play.", min=1)] = 200,
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Forecast how many results are still needed, which arm may win, and what a wider margin would save."""
    from lexbandits.forecasting import forecast as insight
    from lexbandits.forecasting.question import PriorNeeded
    from lexbandits.report.terminal_report import print_forecast
    from lexbandits.study.measure.programs import pairs

    planned = name.endswith(".toml") and Path(name).exists()
    what: Any = name if planned else open_named(name, storage, reads=True)
    how: dict[str, Any] = {"runs": runs, "price": price, "sd": pairs(sd) if sd else None}
    if prior is not None:
        how["prior"] = toml_table(prior)
    try:
        if as_json:
            print_json(insight.forecast(what, **how).as_json())
        else:
            print_forecast(what, **how)
    except PriorNeeded as lack:
        raise StudyError(lack.for_command) from None


@of_study(app, reads=True)
def items(
    study: "Study",
    path: Annotated[Path, typer.Argument(help="A file.csv to write.")],
    differ: Annotated[bool, typer.Option("--differ", help="Only items on which arms differ.")] = False,
) -> Output:
    """Write what each arm gave on each item: one row per item."""
    from lexbandits.views.study_view import StudyView

    table = StudyView.of(study).by_item
    if table is None:
        raise StudyError(f"study {study.name!r} has no items")
    with beside(path) as new:
        new.write_text(table.csv(differ), encoding="utf-8", errors="backslashreplace")
    return Output({"path": str(path), "items": len(table.items)}, f"{path}: {table.summary}")


@of_study(app, reads=True)
def report(
    study: "Study",
    path: Annotated[Path | None, typer.Argument(help="A file.html or file.md. [NAME.html]")] = None,
    format: Annotated[str | None, typer.Option(help="html or md. [by the file's name]")] = None,
) -> Output:
    """Write one file that a stranger can check the answer from."""
    place = path or Path(f"{study.name.replace('/', '-')}.{format or 'html'}")
    written = study.report(place, format=format)
    look = ": open it in a browser" if written.suffix == ".html" else ""
    return Output({"path": str(written)}, f"{written}{look}")
