"""What a notebook shows of a study, a verdict, an answer: the figures of page and report, styles kept in."""

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from lexbandits.insight.page import style
from lexbandits.picture.svg import Part, join, kept_together, tag

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast
    from lexbandits.judging.verdict import Verdict
    from lexbandits.picture.explain import Explanation
    from lexbandits.study.record.answers import Answer
    from lexbandits.study.study import Study

# A notebook has rules for the tables of outputs, which these take back.
RESET = """
.lexbandits.lexbandits.lexbandits { container-type: inline-size; padding: 8px 0; background: none;
  table, tr, th, td, thead, tbody {
    background: none; border: 0; text-align: left; max-width: none; line-height: inherit;
  }
  table { margin: 0; font-size: inherit; } p, li { margin: 0; } ul { padding: 0; } h2, h3 { margin: 0; }
}
"""
LEFT_OUT = ("top", "strip", "list", "nothing there yet", "forms")  # parts of the style sheet


@cache
def scoped_style() -> str:
    """The one style sheet, about nothing but what stands in `.lexbandits`, as wide as its place."""
    sheet = style().partition("@media print")[0]
    parts = re.split(r"^(?=/\* )", sheet, flags=re.MULTILINE)
    kept = "".join(part for part in parts if not part.removeprefix("/* ").startswith(LEFT_OUT))
    small = sheet[sheet.index("@media screen and (max-width: 1000px)") :]
    kept = kept if small in kept else kept + small
    for find, put in (
        (
            r"@media screen and \(prefers-color-scheme: dark\) \{",
            '[data-jp-theme-light="false"] &, .vscode-dark & {',
        ),
        (r"@media screen and \(max-width: 1000px", "@container (max-width: 760px"),
        (r"@media screen and \(max-width: 700px", "@container (max-width: 560px"),
        (r"(?m)^( *)(:root|html|body) \{", r"\1& {"),
        (r"color-scheme: light dark;", ""),
    ):
        kept = re.sub(find, put, kept)
    return (
        f"{RESET}{4 * '.lexbandits'} {{\n{kept}\n& {{ background: none; }} .panel {{ margin: 10px 0; }}\n}}\n"
    )


def fragment(*parts: Part, units: Iterable[str] = ()) -> str:
    """A piece of HTML that disturbs nothing around it."""
    look = tag("style", Markup(scoped_style()))
    return str(tag("div", look, kept_together(join(parts), units), kind="lexbandits"))


def _head(said: Part, pill: Part = None) -> Markup:
    return tag("p", said, " ", pill, kind="say")


def _listed(title: str, lines: Iterable[Part]) -> Part:
    rows = [tag("li", line) for line in lines]
    return rows and tag(
        "section",
        tag("header", tag("h2", title)),
        tag("div", tag("ul", rows, kind="arms"), kind="pad"),
        kind="panel",
    )


def of_study(study: "Study") -> str:
    """Where it stands."""
    from lexbandits.picture import draw
    from lexbandits.picture.ladder import ladder
    from lexbandits.picture.picture import Picture

    picture = Picture.of(study)
    table = tag("div", ladder(picture), kind="panel")
    stories = draw.stories(picture).panel("stories") if picture.results else None
    head = _head(draw.headline(picture), draw.pill(picture))
    return fragment(head, table, stories, units=[rung.unit for rung in picture.objectives])


def of_verdict(verdict: "Verdict") -> str:
    """The sentence, the ladder, every arm, and what the answer may give up."""
    from lexbandits.picture import draw
    from lexbandits.picture.judged import Judged, assumed, context, outlook
    from lexbandits.picture.ladder import ladder

    picture = Judged(verdict)
    lines = [
        tag("p", line, kind="sub") for line in (context(verdict), *picture.claims, outlook(verdict)) if line
    ]
    table = tag("div", ladder(picture), kind="panel")
    rest = [draw.stories(picture).panel("stories"), tag("p", assumed(verdict), kind="hint")]
    head = _head(draw.headline(picture), draw.pill(picture))
    return fragment(head, lines, tag("p"), table, rest, units=[rung.unit for rung in picture.objectives])


def of_answer(answer: "Answer") -> str:
    """The answer, why, and what it rests on."""
    from lexbandits.study.record.said import flags_said

    word = "is the answer" if answer.certified else "is the best guess"
    flags = "".join(f" But {said}." for said in flags_said(answer))
    head = _head([tag("b", answer.arm), f" {word}: {answer.reason}.{flags}"], _pill(answer.certified))
    names = [
        n
        for n in ("rival", "objective", "difference", "low", "high", "results", "verdict", "by")
        if any(row.get(n) is not None for row in answer.certificate)
    ]
    rows = [tag("tr", [tag("td", _plain(row.get(n))) for n in names]) for row in answer.certificate]
    heads = tag("thead", tag("tr", [tag("th", name, scope="col") for name in names]))
    table = rows and tag("table", heads, tag("tbody", rows), kind="mini")
    return fragment(head, table and tag("div", tag("div", table, kind="pad"), kind="panel"))


def _pill(certified: bool) -> Markup:
    word, look = ("Certified", "pill ok") if certified else ("No certificate", "pill")
    return tag("span", word, kind=look)


def _plain(cell: Any) -> str:
    return "" if cell is None else f"{cell:.4g}".replace("-", "−") if isinstance(cell, float) else str(cell)


def of_explanation(found: "Explanation") -> str:
    """Every sentence of it."""
    from lexbandits.picture import draw

    strained = [f"{s.sentence} ({s.level})" for s in found.strains if s.level in ("strained", "slight")]
    return fragment(
        _head(found.sentence),
        _listed("Every arm", map(draw.told, found.arms)),
        _listed("What the answer may give up", (claim.sentence for claim in found.claims)),
        _listed("What learning cost", (cost.sentence for cost in found.costs)),
        _listed("Strained", strained),
    )


def of_forecast(coming: "Forecast") -> str:
    """Who is likely to win, and what it takes."""
    from lexbandits.picture import draw

    return fragment(draw.outlook(coming).panel("forecast"))
