"""A verdict, shown: in a terminal, as Markdown for a pull request, as one HTML file."""

import shutil
from pathlib import Path
from typing import Any

from markupsafe import Markup

import lexbandits
from lexbandits.insight.page import kind_of, page_of, section
from lexbandits.judging.verdict import Verdict
from lexbandits.picture.judged import Judged, asked_for, assumed, context, outlook
from lexbandits.picture.shown import Cell
from lexbandits.picture.svg import join, tag
from lexbandits.printable import printable, unmarked
from lexbandits.study.files import beside
from lexbandits.study.words import toml_key

BAR = 17  # characters
COLUMNS = ("rival", "objective", "verdict", "by", "difference", "limit", "se", "results", "level")


# --- a terminal


def in_text(verdict: Verdict, width: int | None = None) -> str:
    """Objectives side by side where there is room for it, else below each other."""
    picture, width = Judged(verdict), width or shutil.get_terminal_size((100, 24)).columns
    names = [arm.name for arm in picture.arms]
    wide, blocks = max(map(len, names)), [_block(picture, k) for k in range(len(picture.objectives))]
    head, what = picture.headline, context(verdict)
    gap = width - len(head) - len(what)
    lines = [f"{head}{' ' * gap}{what}"] if gap >= 2 else [head, what]
    if wide + 2 + sum(max(map(len, block)) + 4 for block in blocks) <= width:
        for name, *rows in zip(["", *names], *blocks, strict=True):
            padded = (f"{row:<{max(map(len, block))}}" for row, block in zip(rows, blocks, strict=True))
            lines.append(f"  {name:<{wide}}  {'    '.join(padded)}".rstrip())
        lines.insert(-len(names) - 1, "")
    else:
        for title, *rows in blocks:
            lines += ["", f"  {title}"]
            lines += [f"    {name:<{wide}}  {row}".rstrip() for name, row in zip(names, rows, strict=True)]
    still = [story.sentence for story in picture.stories if story.fate == "open"]
    tail = [*still, *picture.claims, outlook(verdict), assumed(verdict)]
    return printable("\n".join([*lines, "", *(line for line in tail if line)]), lines=True)


def _block(picture: Judged, position: int) -> list[str]:
    """An objective and its arms, a line each: mean, a bar of it, what that comes to."""
    rung = picture.objectives[position]
    cells = {arm.name: arm.objectives[rung.name] for arm in picture.arms}
    ends = [end for cell in cells.values() if cell.counts for end in (cell.low, cell.high) if end is not None]
    texts = {name: f"{cell.shown} {rung.unit}".rstrip() for name, cell in cells.items()}
    shown = {name: text if cells[name].counts else f"({text})" for name, text in texts.items()}
    room = max(map(len, shown.values()))
    lines = [f"{position + 1} {rung.name}: {asked_for(picture.verdict.objectives[position])}"]
    for name, cell in cells.items():
        bar = _bar(cell, min(ends), max(ends)) if cell.counts else ""
        lines.append(f"{shown[name]:>{room}}  {bar:<{BAR}}  {picture.word(name, rung.name)}".rstrip())
    return lines


def _bar(cell: Cell, low: float, high: float) -> str:
    """The mean and its line, on a scale from low to high."""
    ends = [low if end is None else end for end in (cell.low, cell.mean, cell.high)]
    first, at, last = (round((end - low) / ((high - low) or 1.0) * (BAR - 1)) for end in ends)
    line = "".join("─" if first <= k <= last else " " for k in range(BAR))
    return f"{line[:at]}●{line[at + 1 :]}"


# --- Markdown


def in_markdown(verdict: Verdict) -> str:
    """A heading, one table, a few lines, and the certificate folded away."""
    picture = Judged(verdict)
    heads = ["arm", *(f"{o.name} ({asked_for(o)})" for o in verdict.objectives), "verdict"]
    rows = [
        [
            arm.name,
            *(cell.in_short for cell in arm.objectives.values()),
            story.rest.strip().removeprefix("is "),
        ]
        for arm, story in zip(picture.arms, picture.stories, strict=True)
    ]
    proof = [[_plain(row.get(name)) for name in COLUMNS] for row in verdict.certificate]
    tail = [*picture.claims, outlook(verdict), assumed(verdict)]
    return "\n".join([
        f"### {unmarked(picture.headline)}",
        "",
        unmarked(context(verdict)),
        "",
        *_pipes(heads, rows),
        "",
        *(unmarked(line) + "\n" for line in tail if line),
        "<details><summary>Certificate</summary>",
        "",
        *_pipes(list(COLUMNS), proof),
        "",
        "</details>",
    ])  # fmt: skip


def _plain(cell: Any) -> str:
    return "" if cell is None else f"{cell:.4g}".replace("-", "−") if isinstance(cell, float) else str(cell)


def _pipes(heads: list[str], rows: list[list[str]]) -> list[str]:
    table = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cell if cell == '---' else unmarked(cell) for cell in row)} |" for row in table]


# --- HTML


def write(verdict: Verdict, path: Path, format: str | None = None) -> Path:
    """Write the report; the format follows from the name unless given."""
    text = in_markdown(verdict) if kind_of(path, format) == "md" else in_html(verdict)
    with beside(path) as new:
        new.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def in_html(verdict: Verdict) -> str:
    """The whole page."""
    from lexbandits.picture import draw
    from lexbandits.picture.ladder import ladder

    picture = Judged(verdict)
    title = f"Which of {len(picture.arms)} arms: a table, judged"
    body = [
        tag(
            "header",
            tag("h1", title, " ", draw.pill(picture)),
            tag("p", f"{context(verdict)}; δ = {verdict.delta:g}"),
            kind="title",
        ),
        section("Answer", answer_of(picture)),
        section("Every arm, in one sentence", draw.stories(picture).body),
        section("The order, and who stopped where", tag("div", ladder(picture), kind="panel"), full=True),
        [section(*draw.compared(picture, found).parts) for found in picture.comparisons],
        section("Certificate", _certificate(verdict)),
        section("Question", tag("pre", _question(verdict), tabindex=0)),
        section("Judged by", tag("p", f"lexbandits {lexbandits.__version__}")),
    ]
    return page_of("A table, judged", join(body), [objective.unit for objective in verdict.objectives])


def answer_of(picture: Judged) -> Markup:
    """The sentence, what the answer may give up, what would settle it, what is assumed."""
    from lexbandits.picture import draw

    verdict, sure = picture.verdict, picture.pill.startswith(("Certified", "As"))
    head = tag("h3", picture.pill, kind="tick" if sure else None)
    lines = [line for line in (*picture.claims, outlook(verdict), assumed(verdict)) if line]
    box = tag("div", head, [tag("p", line) for line in lines], kind="sure" if sure else "sure not")
    return join([tag("p", draw.headline(picture), kind="lead"), box])


def _certificate(verdict: Verdict) -> Markup:
    names = [name for name in COLUMNS if any(row.get(name) is not None for row in verdict.certificate)]
    rows = [tag("tr", [tag("td", _plain(row.get(name))) for name in names]) for row in verdict.certificate]
    if not rows:
        return tag("p", "Nothing had to be proven.")
    heads = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    hint = "What the answer was proven against, each at its level: answer − rival, and the limit."
    table = tag(
        "div",
        tag("table", heads, tag("tbody", rows), kind="mini", style="min-width:600px"),
        kind="scroll",
        tabindex=0,
    )
    return join([tag("p", hint, kind="hint"), table])


def _question(verdict: Verdict) -> str:
    """As TOML has it."""
    lines = [f"delta = {verdict.delta:g}"]
    from lexbandits.insight.page import toml_word

    for objective in verdict.objectives:
        lines += ["", "[[objectives]]"]
        lines += [f"{toml_key(key)} = {toml_word(found)}" for key, found in objective.as_json().items()]
    return "\n".join(lines)
