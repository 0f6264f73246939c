"""Figures as files, tables as CSV and one self-contained page (report.html), from tables and verdicts."""

import base64
import html
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template

import pandas as pd

from experiments.drawing import house_style, save
from experiments.paper.experiment import WIDTHS
from experiments.paper.section import Section
from experiments.paper.sections import SECTIONS
from experiments.paper.tables import Row, Tables, count, mean, rows_of

DPI = 250
MARKS = {"holds": ("yes", "✓"), "does not hold": ("no", "✗")}
HEADINGS = {
    "n_arms": "K",
    "noise_sd": "σ told",
    "first_half": "first half of the rounds",
    "bend": "second half − 0.8 × first",
    "by_objective_2": "share by objective 2",
    "lower_bound_objective_1": "lower bound, objective 1 alone",
    "regret_lower_bound": "lower bound of its regret",
    "regret_1": "regret, objective 1",
    "failed": "no right answer, %",
    "failed_low": "low",
    "failed_high": "high",
    "samples_tilde": "samples, objective alone",
    "samples_1": "objective 1 settled",
    "above_printed": "runs above printed",
    "above_proved": "runs above repaired",
    "proved": "repaired",
}


def write(
    out: str | Path,
    sections: Sequence[Section],
    *,
    tables: Tables,
    verdicts: pd.DataFrame,
    settings: pd.DataFrame,
    command: str,
) -> Path:
    """Fill a folder with figures/, data/ and report.html; give the path of the page.

    A page of some sections is called report-<sections>.html, so that it does not replace the whole one.
    """
    folder = Path(out)
    part = "" if len(sections) == len(SECTIONS) else f"-{'-'.join(section.NAME for section in sections)}"
    for inner in ("data", "figures"):
        (folder / inner).mkdir(parents=True, exist_ok=True)
    for name, table in {**tables, f"verdicts{part}": verdicts, f"settings{part}": settings}.items():
        table.to_csv(folder / "data" / f"{name}.csv", index=False)
    claims = rows_of(verdicts)
    template = Template(files("experiments.paper").joinpath("report.html").read_text("utf-8"))
    house = files("lexbandits.views").joinpath("style.css").read_text("utf-8")
    text = template.substitute(
        palette=house.partition("\n* {")[0],
        command=html.escape(command),
        tally=_tally(claims),
        overview=_overview(claims),
        sections="\n".join(_section(section, tables, claims, folder / "figures") for section in sections),
        settings=_table(settings),
    )
    page = folder / f"report{part}.html"
    page.write_text(text, encoding="utf-8")
    return page


def _tally(claims: Iterable[Row]) -> str:
    outcomes = [_mark(row["verdict"])[0] for row in claims]
    yes, partly, no = (outcomes.count(kind) for kind in ("yes", "partly", "no"))
    return f"Of {len(outcomes)} claims {yes} hold, {partly} hold only under a condition and {no} do not hold."


def _overview(claims: Iterable[Row]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{html.escape(row["claim"])}">{_text(row["statement"])}</a>'
        f'<div class="source">{html.escape(row["source"])}</div></td><td>{_badge(row["verdict"])}</td></tr>'
        for row in claims
    )
    head = "<thead><tr><th>Claim</th><th>Verdict</th></tr></thead>"
    return f'<table class="overview">{head}<tbody>{rows}</tbody></table>'


def _section(section: Section, tables: Tables, claims: Iterable[Row], figures: Path) -> str:
    """The figure, its claims and its tables; the figure is written to its own files too."""
    with house_style():
        figure = section.draw(tables)
    image = figures / f"{section.NAME}.png"
    save(figure, image, dpi=DPI)
    save(figure, image.with_suffix(".pdf"))
    title, source = html.escape(section.TITLE), base64.b64encode(image.read_bytes()).decode()
    parts = [
        f'<section id="{section.NAME}"><h2>{title}</h2>',
        f'<figure><div class="scroll"><img alt="{title}" src="data:image/png;base64,{source}"></div>',
        f"<figcaption>{_text(section.CAPTION)} Files: figures/{section.NAME}.png and .pdf.</figcaption>",
        "</figure>",
        *(_card(row) for row in claims if row["section"] == section.NAME),
    ]
    for name, heading in section.SHOWN.items():
        parts.append(
            f"<details><summary>{html.escape(heading)} <span>data/{name}.csv</span></summary>"
            f'<div class="scroll">{_table(tables[name])}</div></details>'
        )
    return "\n".join([*parts, "</section>"])


def _card(row: Row) -> str:
    numbers = "".join(f"<li>{_text(line)}</li>" for line in row["numbers"].split("\n"))
    return (
        f'<article id="{html.escape(row["claim"])}"><h3>{_text(row["statement"])}</h3>'
        f'<p>{_badge(row["verdict"])} <span class="source">{html.escape(row["source"])}</span></p>'
        f'<ul>{numbers}</ul><p class="command"><code>{html.escape(row["command"])}</code></p></article>'
    )


def _table(table: pd.DataFrame) -> str:
    """Rows as they are, each mean joined with its standard error."""
    rows = rows_of(table)
    columns = [str(name) for name in table.columns if not str(name).endswith("_se")]
    numeric = {name for name in columns if not isinstance(rows[0][name], (str, bool))}

    def cell(tag: str, name: str, text: str) -> str:
        return f"<{tag}{' class=number' if name in numeric else ''}>{_text(text)}</{tag}>"

    head = "".join(cell("th", name, HEADINGS.get(name, name.replace("_", " "))) for name in columns)
    body = "".join(
        f"<tr>{''.join(cell('td', name, _value(row, name)) for name in columns)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _value(row: Row, name: str) -> str:
    value = row[name]
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, str):
        return WIDTHS[value].title if name == "width" and value in WIDTHS else value
    if math.isnan(value):
        return ""
    return str(mean(row, name)) if f"{name}_se" in row else count(value)


def _mark(verdict: str) -> tuple[str, str]:
    return MARKS.get(verdict, ("partly", "◐"))


def _badge(verdict: str) -> str:
    kind, sign = _mark(verdict)
    return f'<span class="badge {kind}"><span aria-hidden="true">{sign}</span> {_text(verdict)}</span>'


def _text(plain: str) -> str:
    """HTML in which a number stays on the line of its sign and unit."""
    escaped = html.escape(plain)
    for sign in ("=", "±", "≥", "≤", "×"):
        escaped = escaped.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return escaped.replace(" %", "\u00a0%")
