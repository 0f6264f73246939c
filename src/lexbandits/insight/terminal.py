"""A study in the terminal: what `lexbandits study forecast | explain | report` print, at 80 columns."""

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from lexbandits.forecasting.forecast import Forecast, forecast
from lexbandits.picture.explain import Explanation, explain
from lexbandits.picture.picture import Picture
from lexbandits.picture.shown import Story
from lexbandits.picture.strains import Assumption
from lexbandits.printable import printable
from lexbandits.study.study import Study
from lexbandits.study.words import about, percent, span

BAR = 24


def print_forecast(study: Study, *, console: Console | None = None, **how: Any) -> Forecast:
    """Print the forecast of a study; `how` as `Study.forecast` takes it."""
    console, coming = console or Console(), forecast(study, **how)
    for line in (coming.sentence, *coming.caution("--sd {0}=…")):
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


def _text(words: str, style: str = "") -> Text:
    return Text(printable(words), style)


def _print_winners(console: Console, coming: Forecast) -> None:
    console.print()
    for arm, share in sorted(coming.winners.items(), key=lambda row: -row[1]):
        if share:
            line = _text(f"{arm[:24]:<24} ")
            line.append("█" * max(1, round(BAR * share)), style="blue")
            console.print(line.append(f" {percent(share)}"))


def print_explanation(
    study: Study, arm: str | None = None, *, console: Console | None = None
) -> Explanation | Story:
    """Print why each arm left or stays, or all about one arm."""
    console, found, picture = console or Console(), explain(study, arm), Picture.of(study)
    if isinstance(found, Story):
        console.print(_sentence(found))
        for reason in found.reasons:
            console.print(
                Padding(_text(reason.objective, "bold") + _text(f": {reason.sentence}"), (0, 0, 0, 2))
            )
        return found
    console.print(_text(found.sentence, "bold"))
    heads = ("arm", "stands", *(rung.name for rung in picture.objectives))
    rows = [
        (a.name, a.standing, *(_kept_together(c.in_short) for c in a.objectives.values()))
        for a in picture.arms
    ]
    _print_table(console, heads, rows, right=())
    for title, lines in (
        ("Arms", [_sentence(story) for story in found.arms]),
        ("What the answer may give up", [_text(claim.sentence) for claim in found.claims]),
        ("What learning cost", [_text(cost.sentence) for cost in found.costs]),
        (
            "Assumptions that something strained",
            [_strain(s) for s in found.strains if s.level in ("slight", "strained")],
        ),
    ):
        if lines:
            console.print(f"\n[bold]{title}[/bold]")
            for line in lines:
                console.print(Padding(line, (0, 0, 0, 2)))
    return found


def _kept_together(text: str) -> str:
    return text.replace(" – ", "–")  # a table would break it at any space


def _sentence(story: Story) -> Text:
    style = (
        "bold blue" if story.standing == "answer" else "bold" if story.standing == "candidate" else "dim bold"
    )
    return _text(story.arm, style) + _text(story.rest)


def _strain(strain: Assumption) -> Text:
    style = "yellow" if strain.level == "strained" else ""
    return _text(strain.level, style) + _text(f": {strain.sentence}")


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
