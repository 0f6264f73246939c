"""`lexbandits study forecast | explain | report`: what a study will cost, and why it says what it says."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from lexbandits.commands import terminal
from lexbandits.commands.storage import DEFAULT, Where, opened
from lexbandits.commands.study import Name
from lexbandits.commands.study import app as app
from lexbandits.commands.terminal import AsJson, print_json


@terminal.command(app)
def forecast(
    name: Name,
    storage: Annotated[str, Where] = DEFAULT,
    runs: Annotated[int, typer.Option(help="Futures to play.", min=10)] = 200,
    price: Annotated[float | None, typer.Option(help="Of one result.")] = None,
    as_json: AsJson = False,
) -> None:
    """How many results are still needed, who is likely to win, and what to relax."""
    from lexbandits.insight.terminal import print_forecast

    study = opened(name, storage, reads=True)
    if as_json:
        print_json(study.forecast(runs=runs, price=price).as_json())
    else:
        print_forecast(study, runs=runs, price=price)


@terminal.command(app)
def explain(
    name: Name,
    arm: Annotated[str | None, typer.Argument(help="One arm's story. [all]")] = None,
    storage: Annotated[str, Where] = DEFAULT,
    as_json: AsJson = False,
) -> None:
    """Why each arm left or stays, what the answer may give up, and what strained the assumptions."""
    from lexbandits.insight.explain import Explanation
    from lexbandits.insight.terminal import print_explanation

    study = opened(name, storage, reads=True)
    if as_json:
        found = study.explain(arm)
        print_json(found.as_json() if isinstance(found, Explanation) else asdict(found))
    else:
        print_explanation(study, arm)


@terminal.command(app)
def report(
    name: Name,
    out: Annotated[Path | None, typer.Option(help="The file. [NAME.html, or NAME.md]")] = None,
    storage: Annotated[str, Where] = DEFAULT,
    format: Annotated[str | None, typer.Option(help="html or md. [by the file's name]")] = None,
    as_json: AsJson = False,
) -> None:
    """Write one file from which a stranger can check the answer."""
    from lexbandits.insight.terminal import write_report

    study = opened(name, storage, reads=True)
    path = out or Path(f"{name.replace('/', '-')}.{format or 'html'}")
    if as_json:
        print_json({"path": str(study.report(path, format=format))})
    else:
        write_report(study, path, format)
