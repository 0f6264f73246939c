"""A study in the terminal: what `lexbandits study forecast | explain | report` print, at 80 columns."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lexbandits._printable import printable
from lexbandits.forecasting.forecast import Forecast, forecast
from lexbandits.study.number_format import about, percent, span
from lexbandits.study.study import Study
from lexbandits.views.explain import Explanation, explain
from lexbandits.views.study_view import StudyView
from lexbandits.views.view_parts import ArmExplanation

BAR = 24


def print_forecast(study: Study, *, console: Console | None = None, **how: Any) -> Forecast:
    """Print the forecast of a study; `how` as `Study.forecast` takes it."""
    console, coming = console or Console(), forecast(study, **how)
    for line in (coming.sentence, *coming.caution("--sd {0}=…"), *coming.notes):
        console.print(_text(line))
    rows = [("results", *map(about, coming.results))]
    if coming.cost is not None:
        rows.append(("cost", *(f"{number:,.4g}" for number in coming.cost)))
    if coming.seconds is not None:
        rows.append(("time", *map(span, coming.seconds)))
    rows += [(f"  {name}", *map(about, found)) for name, found in coming.by_objective.items() if found.high]
    if coming.results.high:
        _print_table(console, ("still needed", "10 %", "median", "90 %"), rows)
    _print_winners(console, coming)
    if coming.relax:
        lines = [
            (
                f"{row.setting}{f' of {row.objective}' if row.objective else ''}",
                f"{row.now:g} → {row.then:g}",
                row.effect,
            )
            for row in coming.relax
        ]
        _print_table(console, ("doubling", "", ""), lines, right=())
    if coming.within is not None:
        console.print(
            f"\n{percent(coming.within)} of the futures end before the budget or the items are spent."
        )
    return coming


def _text(text: str, style: str = "") -> Text:
    return Text(printable(text), style)


def _print_winners(console: Console, coming: Forecast) -> None:
    console.print()
    for arm, share in sorted(coming.winners.items(), key=lambda row: -row[1]):
        if share:
            line = _text(f"{arm[:24]:<24} ")
            line.append("█" * max(1, round(BAR * share)), style="blue")
            console.print(line.append(f" {percent(share)}"))


def print_explanation(
    study: Study, arm: str | None = None, *, console: Console | None = None
) -> Explanation | ArmExplanation:
    """Print why each arm left or stays, or all about one arm."""
    console, found, view = console or Console(), explain(study, arm), StudyView.of(study)
    if isinstance(found, ArmExplanation):
        console.print(_sentence(found))
        for reason in found.reasons:
            console.print(
                Padding(_text(reason.objective, "bold") + _text(f": {reason.sentence}"), (0, 0, 0, 2))
            )
        return found
    console.print(_text(found.sentence, "bold"))
    heads = ("arm", "stands", *(objective.name for objective in view.objectives))
    rows = [
        (a.name, a.label, *(_kept_together(c.in_short) for c in a.objectives.values())) for a in view.arms
    ]
    _print_table(console, heads, rows, right=())
    for title, lines in found.blocks:
        console.print(f"\n[bold]{title}[/bold]")
        for line in lines:
            text = _sentence(line) if isinstance(line, ArmExplanation) else _text(line)
            console.print(Padding(text, (0, 0, 0, 2)))
    return found


def _kept_together(text: str) -> str:
    return text.replace(" – ", "–")  # a table would break it at any space


def _sentence(found: ArmExplanation) -> Text:
    style = "bold blue" if found.leads else "bold" if found.decision.is_candidate else "dim bold"
    return _text(found.arm, style) + _text(found.rest)


def _print_table(
    console: Console,
    heads: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    right: tuple[int, ...] | None = None,
) -> None:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    aligned = range(1, len(heads)) if right is None else right
    for k, head in enumerate(heads):
        table.add_column(head, justify="right" if k in aligned else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_text, row))
    console.print()
    console.print(table)
