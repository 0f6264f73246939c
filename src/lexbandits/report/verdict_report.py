"""A verdict, shown: in a terminal, as Markdown for a pull request, as one HTML file."""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from markupsafe import Markup

import lexbandits
from lexbandits._files import beside
from lexbandits._printable import printable, unmarked
from lexbandits.judging.verdict import Verdict
from lexbandits.outcomes import BaselineDecision, ClaimVerdict
from lexbandits.report.html_page import Format, format_of, page_of, section
from lexbandits.study.number_format import amount, listed, many, toml_key
from lexbandits.study.table_files import TableNotice
from lexbandits.views.svg import join, tag
from lexbandits.views.verdict_view import VerdictView, assumed, context, outlook
from lexbandits.views.view_parts import Arm, Cell, matters, question

BAR = 17  # characters
COLUMNS = ("rival", "objective", "verdict", "by", "difference", "limit", "se", "results", "level")


# --- a terminal


def in_text(verdict: Verdict, width: int | None = None) -> str:
    """The headline, a block of lines for each objective, and what it comes to."""
    view, width = VerdictView(verdict), width or shutil.get_terminal_size((100, 24)).columns
    head, what = view.headline, context(verdict)
    gap = width - len(head) - len(what)
    lines = [f"{head}{' ' * gap}{what}"] if gap >= 2 else [head, what]
    for position in range(len(view.objectives)):
        lines += _block(view, position)
    still = [found.sentence for found in view.explanations if found.decision.is_open]
    has_interval = any(_half(view, arm, objective.name) for arm in view.arms for objective in view.objectives)
    tail = [*still, *view.claims, assumed(verdict), *_notices(verdict), outlook(verdict)]
    tail += [HALF] if has_interval else []
    return printable("\n".join([*lines, "", *(line for line in tail if line)]), lines=True)


HALF = "± is half of an ordinary 95 % interval for each mean: a picture, not the guarantee."


def _half(view: VerdictView, arm: Arm, objective: str) -> str:
    """Half the width of an arm's interval."""
    cell = arm.objectives[objective]
    if cell.low is None or cell.high is None or not cell.high > cell.low:
        return ""
    places = len(cell.shown.partition(".")[2])  # as many as the mean has
    half = (cell.high - cell.low) / 2
    if "e" not in cell.shown and (shown := f"{half:,.{places}f}").strip("0."):
        return f"±{shown}"
    return f"±{half:.1g}".replace("-", "−")


def _block(view: VerdictView, position: int) -> list[str]:
    """An objective and its arms, a line each: mean, a bar of it, what that comes to."""
    objective, asked = view.objectives[position], view.verdict.objectives[position]
    lines = [f"  {position + 1}. {objective.name} ({question(asked)}, {matters(asked)})"]
    counted = [arm.objectives[objective.name] for arm in view.arms if arm.objectives[objective.name].counts]
    ends = [e for cell in counted for e in (cell.low, cell.mean, cell.high) if e is not None]
    rows = []
    for arm in view.arms:
        cell = arm.objectives[objective.name]
        text = f"{cell.shown} {objective.unit}".rstrip()
        if cell.counts:
            bar, half = _bar(cell, min(ends), max(ends)), _half(view, arm, objective.name)
            rows.append((arm.name, text, half, bar, view.word(arm.name, objective.name)))
        else:
            rows.append((arm.name, f"({text})", "", "", ""))
    wide, room, spread = (max(len(row[k]) for row in rows) for k in range(3))
    for name, text, half, bar, word in rows:
        lines.append(f"     {name:<{wide}}  {text:>{room}}  {half:<{spread}}  {bar:<{BAR}}  {word}".rstrip())
    return lines


def _bar(cell: Cell, low: float, high: float) -> str:
    """The mean and its line, on a scale from low to high."""
    middle = cell.mean or 0.0
    ends = [middle if end is None else min(max(end, low), high) for end in (cell.low, middle, cell.high)]
    first, at, last = (round((end - low) / ((high - low) or 1.0) * (BAR - 1)) for end in ends)
    line = "".join("━" if first <= k <= last else " " for k in range(BAR))
    return f"{line[:at]}●{line[at + 1 :]}"


# --- Markdown


def in_markdown(verdict: Verdict) -> str:
    """A heading, one table, a few lines, and the certificate folded away."""
    view = VerdictView(verdict)
    heads = ["arm", *(f"{o.name} ({question(o)}, {matters(o)})" for o in verdict.objectives), "verdict"]
    rows = [
        [
            arm.name,
            *(cell.in_short for cell in arm.objectives.values()),
            explanation.rest.strip().removeprefix("is "),
        ]
        for arm, explanation in zip(view.arms, view.explanations, strict=True)
    ]
    proof = [[certificate_cell(row, name) for name in COLUMNS] for row in certificate_rows(verdict)]
    tail = [*view.claims, assumed(verdict), *_notices(verdict), outlook(verdict)]
    return "\n".join([
        f"### {unmarked(view.headline)}",
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


def certificate_rows(verdict: Verdict) -> list[dict[str, Any]]:
    """The certificate with limits as they were asked: a share was proven as such, not as a difference."""
    asked = {objective.name: objective for objective in verdict.objectives}
    rows = [dict(row) for row in verdict.certificate]
    for row, objective in ((row, asked[row["objective"]]) for row in rows):
        if objective.is_relative and row.get("limit") is not None:
            is_tie = row["verdict"] in (ClaimVerdict.BETTER, ClaimVerdict.BEATEN)
            row["limit"] = amount(objective, objective.tie_in_unit if is_tie else objective.margin_in_unit)
    return rows


def certificate_cell(row: Mapping[str, Any], name: str) -> str:
    """Return one field of a row of a certificate, as people read it."""
    cell = row.get(name)
    if name == "verdict":
        return "undecided" if cell == ClaimVerdict.OPEN else str(cell).replace("_", " ")
    return "" if cell is None else f"{cell:.4g}".replace("-", "−") if isinstance(cell, float) else str(cell)


def _pipes(heads: list[str], rows: list[list[str]]) -> list[str]:
    table = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cell if cell == '---' else unmarked(cell) for cell in row)} |" for row in table]


# --- HTML


def write(verdict: Verdict, path: Path, format: str | None = None) -> Path:
    """Write the report; the format follows from the name unless given."""
    text = in_markdown(verdict) if format_of(path, format) is Format.MARKDOWN else in_html(verdict)
    with beside(path) as new:
        new.write_text(text, encoding="utf-8", errors="backslashreplace")
    return path


def in_html(verdict: Verdict) -> str:
    """The whole page."""
    from lexbandits.views import drawing
    from lexbandits.views.arms_table import arms_table

    view = VerdictView(verdict)
    title = f"Which of {len(view.arms)} arms: a table, judged"
    if verdict.gate is not None:
        title = f"May {verdict.gate.candidate} take the place of {verdict.gate.baseline}?"
    body = [
        tag("header", tag("h1", title, " ", drawing.badge(view)), tag("p", context(verdict)), kind="title"),
        section("Answer", answer_of(view)),
        section("Arms by objective", tag("div", arms_table(view), kind="panel"), full=True),
        section("Every arm, in one sentence", drawing.stories(view).body),
        [section(*drawing.compared(view, found).parts) for found in view.comparisons],
        section("Certificate", _certificate(verdict)),
        section("Question", tag("pre", _question(verdict), tabindex=0)),
        section("Judged by", tag("p", f"lexbandits {lexbandits.__version__}")),
    ]
    return page_of("A table, judged", join(body), [objective.unit for objective in verdict.objectives])


def answer_of(view: VerdictView) -> Markup:
    """The sentence, what the answer may give up, what would settle it, what is assumed."""
    from lexbandits.views import drawing

    verdict = view.verdict
    sure = verdict.certified and verdict.decision != BaselineDecision.KEEP_FOR_NOW
    head = tag("h3", view.badge, kind="tick" if sure else None)
    tail = (*view.claims, assumed(verdict), *_notices(verdict), outlook(verdict))
    lines = [line for line in tail if line]
    box = tag("div", head, [tag("p", line) for line in lines], kind="sure" if sure else "sure not")
    return join([tag("p", drawing.headline(view), kind="lead"), box])


def _certificate(verdict: Verdict) -> Markup:
    names = [name for name in COLUMNS if any(row.get(name) is not None for row in verdict.certificate)]
    rows = [
        tag("tr", [tag("td", certificate_cell(row, name), data_l=name) for name in names])
        for row in certificate_rows(verdict)
    ]
    if not rows:
        return tag("p", "Nothing had to be proven.")
    heads = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    hint = "What the answer was proven against, each at its level: answer − rival, and the limit."
    return join([tag("p", hint, kind="hint"), tag("table", heads, tag("tbody", rows), kind="mini cert")])


def _question(verdict: Verdict) -> str:
    """As TOML has it."""
    lines = [f"delta = {verdict.delta:g}"]
    from lexbandits.report.html_page import toml_word

    for objective in verdict.objectives:
        lines += ["", "[[objectives]]"]
        lines += [f"{toml_key(key)} = {toml_word(found)}" for key, found in objective.as_json().items()]
    return "\n".join(lines)


def _notices(verdict: Verdict) -> list[str]:
    return [_notice(**notice) for notice in verdict.notices]


def _notice(code: str, **fields: Any) -> str:
    """Return a sentence for what was decided about a table while it was read."""
    match code:
        case TableNotice.COLUMNS_CHOSEN:
            return f"Columns: {listed([f'{name} is the {role}' for role, name in fields.items()])}."
        case TableNotice.DUPLICATES_DROPPED:
            rows = many(fields["rows"], "duplicate row")
            return f"{rows} dropped, the first of item {fields['item']} and {fields['arm']}."
        case TableNotice.ITEMS_UNPAIRED:
            return f"No {fields['item']} has results of two arms: arms are compared as independent groups."
        case TableNotice.FOLDS:
            return (
                f"If {fields['column']} is a fold of a cross-validation: folds share training data, so the "
                "certificate is about the models that were trained, not about training again."
            )
        case TableNotice.FAILED_LOGS:
            logs = f"{fields['failed']} of {many(fields['of'], 'log')}"
            return f"{logs} ended in an error: {listed(fields['names'])}."
        case TableNotice.BURN_IN:
            rows = many(fields["rows"], "drawn row")
            if "units" in fields:
                rows = f"{many(fields['rows'], 'row')} of {many(fields['units'], 'drawn item')}"
            return f"Burn-in: {rows} set the cap and do not count."
        case TableNotice.TASKS_LEFT_OUT:
            return (
                f"Left out, as they do not measure {listed(fields['objectives'])}: {listed(fields['tasks'])}."
            )
        case TableNotice.MARGIN_ABOVE_VALUES:
            names = listed(fields["objectives"])
            return f"Every value of {names} is below the margin, which decides nothing: is its unit right?"
    raise AssertionError(code)
