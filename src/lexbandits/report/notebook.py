"""What a notebook shows of a study, a verdict, an answer: the figures of page and report, styles kept in."""

import re
from collections.abc import Iterable
from functools import cache
from typing import TYPE_CHECKING

from markupsafe import Markup

from lexbandits.report.html_page import style
from lexbandits.views.svg import Part, join, kept_together, tag

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast
    from lexbandits.judging.verdict import Verdict
    from lexbandits.study.core.queries import Answer
    from lexbandits.study.study import Study
    from lexbandits.views.explain import Explanation

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


def _head(said: Part, badge: Part = None) -> Markup:
    return tag("p", said, " ", badge, kind="say")


def _listed(title: str, lines: Iterable[Part]) -> Part:
    rows = tag("ul", [tag("li", line) for line in lines], kind="arms")
    return tag("section", tag("header", tag("h2", title)), tag("div", rows, kind="pad"), kind="panel")


def of_study(study: "Study") -> str:
    """Where it stands."""
    from lexbandits.views import drawing
    from lexbandits.views.arms_table import arms_table
    from lexbandits.views.study_view import StudyView

    view = StudyView.of(study)
    table = tag("div", arms_table(view), kind="panel")
    stories = drawing.stories(view).panel("stories") if view.results else None
    head = _head(drawing.headline(view), drawing.badge(view))
    return fragment(head, table, stories, units=[objective.unit for objective in view.objectives])


def of_verdict(verdict: "Verdict") -> str:
    """The sentence, the arms table, every arm, and what the answer may give up."""
    from lexbandits.views import drawing
    from lexbandits.views.arms_table import arms_table
    from lexbandits.views.verdict_view import VerdictView, assumed, context, outlook

    view = VerdictView(verdict)
    lines = [
        tag("p", line, kind="sub") for line in (context(verdict), *view.claims, outlook(verdict)) if line
    ]
    table = tag("div", arms_table(view), kind="panel")
    rest = [drawing.stories(view).panel("stories"), tag("p", assumed(verdict), kind="hint")]
    head = _head(drawing.headline(view), drawing.badge(view))
    return fragment(
        head, lines, tag("p"), table, rest, units=[objective.unit for objective in view.objectives]
    )


def of_answer(answer: "Answer") -> str:
    """The answer, and what became of the other arms."""
    from lexbandits.views.answer_text import headline_of, lines_of

    before, _, after = headline_of(answer).partition(answer.arm)
    badge = ("Certified", "badge ok") if answer.certified else ("No certificate", "badge")
    head = _head([before, tag("b", answer.arm), after], tag("span", badge[0], kind=badge[1]))
    lines = lines_of(answer)
    return fragment(head, _listed("What it rests on", lines) if lines else None)


def of_explanation(found: "Explanation") -> str:
    """Every sentence of it."""
    from lexbandits.views import drawing

    lists = [
        _listed(title, [line if isinstance(line, str) else drawing.told(line) for line in lines])
        for title, lines in found.blocks
    ]
    return fragment(_head(found.sentence), lists)


def of_forecast(coming: "Forecast") -> str:
    """Who is likely to win, and what it takes."""
    from lexbandits.views import drawing

    return fragment(drawing.outlook(coming).panel("forecast"))
