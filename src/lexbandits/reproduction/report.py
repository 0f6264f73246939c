"""Figures as files, tables as CSV and one self-contained HTML page, from tables and verdicts."""

import base64
import html
import math
from collections.abc import Iterable, Mapping
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexbandits.drawing import house_style
from lexbandits.reproduction.figures import FIGURES, WIDTHS
from lexbandits.reproduction.wording import count, pm

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


Tables = Mapping[str, "pd.DataFrame"]

PAPER = (
    "Xue, Wan, Lu and Zhang, Beyond the Lower Bound: Bridging Regret Minimization and Best Arm "
    "Identification in Lexicographic Bandits (AAAI 2026)"
)
DPI = 250

# Tables shown under a section's figure, with a title; every table is a CSV file.
SHOWN = {
    "acceleration": {
        "acceleration": "Who eliminates which arm, and when",
        "acceleration_stopping": "Pulls to stop, and two lower bounds",
    },
    "regret": {"regret_end": "Regret after the last round"},
    "samples": {
        "samples": "Pulls to identify",
        "lower_bound": "Least possible pulls, for any algorithm that knows λ = 2",
        "instance": "The paper's instances",
    },
    "bounds": {"bounds": "Bounds as printed, as repaired, and measured"},
    "sensitivity": {"sensitivity": "Sensitivity"},
}
MARKS = {"holds": ("yes", "✓"), "does not hold": ("no", "✗")}
HEADINGS = {
    "n_arms": "K",
    "noise_sd": "σ told",
    "first_half": "first half of the rounds",
    "second_half": "second half",
    "bend": "second half − 0.8 × first",
    "by_objective_2": "share by objective 2",
    "lower_bound_objective_1": "lower bound, objective 1 alone",
    "failed": "no right answer, %",
    "failed_low": "low",
    "failed_high": "high",
    "arms_eliminated": "arms eliminated",
    "samples_tilde": "samples, objective alone",
    "samples_1": "objective 1 settled",
    "above_printed": "runs above printed",
    "above_proved": "runs above repaired",
    "proved": "repaired",
    "error_low": "error, low",
    "error_high": "error, high",
}


def write(
    out: str | Path, *, tables: Tables, verdicts: "pd.DataFrame", settings: "pd.DataFrame", command: str
) -> Path:
    """Fill a folder with figures/, data/ and report.html; give the path of the page.

    A page of some sections is called report-<sections>.html, so that it does not replace the whole one.
    """
    folder, sections = Path(out), sections_of(tables)
    part = "" if sections == list(SHOWN) else f"-{'-'.join(sections)}"
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for name, table in {**tables, f"verdicts{part}": verdicts, f"settings{part}": settings}.items():
        table.to_csv(folder / "data" / f"{name}.csv", index=False)
    images = {section: _saved(section, tables, folder / "figures") for section in sections}
    page = folder / f"report{part}.html"
    page.write_text(_page(tables, verdicts, settings, images, command), encoding="utf-8")
    return page


def sections_of(tables: Tables) -> list[str]:
    """The sections whose tables are there, in the order of the report."""
    return [section for section, shown in SHOWN.items() if all(name in tables for name in shown)]


def _saved(section: str, tables: Tables, folder: Path) -> bytes:
    """Write a figure as PNG and PDF; give the PNG."""
    folder.mkdir(parents=True, exist_ok=True)
    with house_style():
        figure: Figure = FIGURES[section][0](tables)
        figure.savefig(folder / f"{section}.pdf", metadata={"CreationDate": None})
        memory = BytesIO()
        figure.savefig(memory, format="png", dpi=DPI, metadata={"Software": None})
    (folder / f"{section}.png").write_bytes(memory.getvalue())
    return memory.getvalue()


def _page(
    tables: Tables,
    verdicts: "pd.DataFrame",
    settings: "pd.DataFrame",
    images: Mapping[str, bytes],
    command: str,
) -> str:
    claims = [{str(key): value for key, value in row.items()} for row in verdicts.to_dict("records")]
    body = [
        "<header>",
        "<h1>The paper, run again</h1>",
        f"<p>{html.escape(PAPER)}</p>",
        f"<p>Every number on this page was computed by <code>{html.escape(command)}</code>. "
        f"{_tally(claims)} Means are given ± one standard error; figures show two.</p>",
        "</header>",
        "<main>",
        "<h2>Verdicts</h2>",
        _overview(claims),
    ]
    for section, image in images.items():
        body.append(_section(section, image, tables, [row for row in claims if row["section"] == section]))
    body += ["<h2>Settings, seeds, versions</h2>", _plain_table(settings), "</main>"]
    return PAGE.replace("{{body}}", "\n".join(body))


def _text(plain: str) -> str:
    """HTML in which a number stays on the line of its sign and unit."""
    escaped = html.escape(plain)
    for sign in ("=", "±", "≥", "≤", "×"):
        escaped = escaped.replace(f" {sign} ", f"\u00a0{sign}\u00a0")
    return escaped.replace(" %", "\u00a0%")


def _tally(claims: Iterable[Mapping[str, Any]]) -> str:
    outcomes = [_mark(row["verdict"])[0] for row in claims]
    yes, partly, no = (outcomes.count(kind) for kind in ("yes", "partly", "no"))
    return f"Of {len(outcomes)} claims {yes} hold, {partly} hold only under a condition and {no} do not hold."


def _mark(verdict: str) -> tuple[str, str]:
    return MARKS.get(verdict, ("partly", "◐"))


def _badge(verdict: str) -> str:
    kind, sign = _mark(verdict)
    return f'<span class="badge {kind}"><span aria-hidden="true">{sign}</span> {_text(verdict)}</span>'


def _overview(claims: Iterable[Mapping[str, Any]]) -> str:
    rows = "".join(
        f'<tr><td><a href="#{html.escape(row["claim"])}">{_text(row["statement"])}</a>'
        f'<div class="source">{html.escape(row["source"])}</div></td><td>{_badge(row["verdict"])}</td></tr>'
        for row in claims
    )
    head = "<thead><tr><th>Claim</th><th>Verdict</th></tr></thead>"
    return f'<table class="overview">{head}<tbody>{rows}</tbody></table>'


def _section(section: str, image: bytes, tables: Tables, claims: Iterable[Mapping[str, Any]]) -> str:
    _, title, caption = FIGURES[section]
    source = f"data:image/png;base64,{base64.b64encode(image).decode()}"
    parts = [
        f'<section id="{section}"><h2>{html.escape(title)}</h2>',
        f'<figure><div class="scroll"><img alt="{html.escape(title)}" src="{source}"></div>',
        f"<figcaption>{_text(caption)} Files: figures/{section}.png and .pdf.</figcaption></figure>",
        *(_card(row) for row in claims),
    ]
    for name, heading in SHOWN[section].items():
        parts.append(
            f"<details><summary>{html.escape(heading)} <span>data/{name}.csv</span></summary>"
            f'<div class="scroll">{_plain_table(tables[name])}</div></details>'
        )
    return "\n".join([*parts, "</section>"])


def _card(row: Mapping[str, Any]) -> str:
    numbers = "".join(f"<li>{_text(line)}</li>" for line in row["numbers"].split("\n"))
    return (
        f'<article id="{html.escape(row["claim"])}"><h3>{_text(row["statement"])}</h3>'
        f'<p>{_badge(row["verdict"])} <span class="source">{html.escape(row["source"])}</span></p>'
        f'<ul>{numbers}</ul><p class="command"><code>{html.escape(row["command"])}</code></p></article>'
    )


def _plain_table(table: "pd.DataFrame") -> str:
    """Rows as they are, each mean joined with its standard error."""
    rows = [{str(name): value for name, value in row.items()} for row in table.to_dict("records")]
    columns = [str(name) for name in table.columns if not str(name).endswith("_se")]
    numeric = {name for name in columns if not isinstance(rows[0][name], (str, bool))}

    def cell(tag: str, name: str, text: str) -> str:
        return f"<{tag}{' class=number' if name in numeric else ''}>{_text(text)}</{tag}>"

    head = "".join(cell("th", name, HEADINGS.get(name, name.replace("_", " "))) for name in columns)
    body = "".join(
        f"<tr>{''.join(cell('td', name, _value(row, name)) for name in columns)}</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _value(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if isinstance(value, bool):
        return "yes" if value else ""
    if isinstance(value, str):
        return WIDTHS.get(value, value) if name == "width" else value
    if isinstance(value, float) and math.isnan(value):
        return ""
    return pm(value, row[f"{name}_se"]) if f"{name}_se" in row else count(value)


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>lexbandits: the paper, run again</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light; --ink: #1c1c1c; --soft: #5a5a5a; --line: #dcdcdc; --shade: #f6f6f4; }
* { box-sizing: border-box; }
body { margin: 0; background: #fff; color: var(--ink); line-height: 1.5;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif; }
header, main { max-width: 62rem; margin: 0 auto; padding: 0 1rem; }
header { padding-top: 1.5rem; }
main { padding-bottom: 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.35rem; margin: 2.6rem 0 .8rem; }
h3 { font-size: 1rem; margin: 0 0 .4rem; }
p, ul { margin: .4rem 0; overflow-wrap: anywhere; }
ul { padding-left: 1.1rem; }
li { font-size: .86rem; margin: .2rem 0; }
a { color: #0b4f7d; text-decoration: none; }
a:hover, a:focus { text-decoration: underline; }
code { font: .85em ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; overflow-wrap: anywhere; }
figure { margin: 0 0 1rem; }
img { display: block; width: 100%; min-width: 44rem; height: auto; }
figcaption { font-size: .88rem; color: var(--soft); margin-top: .5rem; }
.scroll { overflow-x: auto; }
article { border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; margin: .8rem 0;
  scroll-margin-top: 1rem; }
.source { color: var(--soft); font-size: .85rem; }
.command { margin-bottom: 0; }
.command code { display: inline-block; background: var(--shade); padding: .15rem .45rem; border-radius: 4px; }
.badge { display: inline-block; font-size: .85rem; font-weight: 600; padding: .1rem .5rem;
  border-radius: 4px; }
.yes { background: #d9f0e6; color: #00513b; }
.partly { background: #fdeecb; color: #6a4700; }
.no { background: #fadcd2; color: #7c2500; }
table { border-collapse: collapse; font-size: .82rem; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem .3rem 0;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.overview { font-size: .92rem; }
.overview td { padding: .5rem .8rem .5rem 0; }
.overview td + td { min-width: 17rem; }
details { margin: .6rem 0; }
details table { width: auto; }
details td, details th { padding-right: 1rem; white-space: nowrap; }
summary { cursor: pointer; font-size: .92rem; padding: .3rem 0; }
summary span { color: var(--soft); font-size: .82rem; }
@media (max-width: 40rem) {
  h1 { font-size: 1.5rem; }
  .overview thead { display: none; }
  .overview td { display: block; border: 0; padding: .2rem 0; }
  .overview td + td { min-width: 0; }
  figure::before { content: "Swipe the figure sideways to see all of it."; font-size: .8rem;
    color: var(--soft); }
  .overview tr { display: block; border-bottom: 1px solid var(--line); padding: .5rem 0; }
}
@media print { details { display: none; } article { break-inside: avoid; } img { min-width: 0; } }
</style>
</head>
<body>
{{body}}
</body>
</html>
"""
