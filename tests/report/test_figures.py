"""Figures say what is seen without a script or another file, and terminals print in 80 columns."""

import io
import os
import re
import subprocess
import sys
import time
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from rich.console import Console

import lexbandits as lb
from lexbandits.report import terminal_report
from lexbandits.report.plot import TALL
from lexbandits.views.study_view import StudyView
from lexbandits.views.verdict_view import VerdictView
from support import stage
from support.browser import browser

__all__ = ["browser"]
NAMES = ["intervals", "race", "evidence", "forecast", "pulls", "workers"]
TESTS = str(Path(__file__).parents[1])
SVG = "{http://www.w3.org/2000/svg}"


def parsed(figure):
    return ElementTree.fromstring(figure._repr_svg_())


def rows(figure):
    return {(chart.caption, row.name): row for chart in figure.charts for row in chart.rows}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["ended", "under_way"])
def test_a_figure_says_in_words_what_it_draws_and_needs_nothing_else(name, which, request, tmp_path):
    figure = getattr(lb.plot, name)(request.getfixturevalue(which))
    svg = parsed(figure)
    assert svg.get("role") == "img"
    assert svg.find(f"{SVG}title").text == figure.title
    said = svg.find(f"{SVG}desc").text
    assert all(row.label in said for row in rows(figure).values())
    for file in (figure.save(tmp_path / "figure.svg"), figure.save(tmp_path / "figure.html")):
        text = file.read_text("utf-8")
        assert not re.search(r"(href|src=|url\(|@import|<script)", text)
        assert text.count("prefers-color-scheme") == 1, "light and dark"
        assert all(arm in text for arm in {row.name for row in rows(figure).values()})
    assert (tmp_path / "figure.svg").read_text("utf-8") == figure._repr_svg_() + "\n"
    with pytest.raises(ValueError, match=r"must end in \.svg or \.html"):
        figure.save(tmp_path / "figure.png")


def test_every_text_of_a_figure_lies_in_it(ended, browser, tmp_path):
    long = lb.create_study(
        "long",
        arms=["an arm with a name that is far too long for a line " * 3, "b"],
        objectives=[lb.Objective("an objective with a long name too", noise=("bounded", 0, 1), margin=0.001)],
        seed=0,
    )
    for trial in long.ask_many(200):
        long.tell(trial, {"an objective with a long name too": 0.5 + 0.1 * (trial.arm == "b")})
    page = browser.new_page(viewport={"width": 800, "height": 900})
    for study in (ended, long):
        for name in NAMES:
            page.set_content(getattr(lb.plot, name)(study)._repr_svg_())
            outside = page.evaluate("""() => {
                const whole = document.querySelector("svg").getBoundingClientRect();
                return [...document.querySelectorAll("text")].filter(text => {
                    const box = text.getBoundingClientRect();
                    return box.left < whole.left || box.right > whole.right || box.bottom > whole.bottom;
                }).map(text => text.textContent);
            }""")
            assert not outside, (study.name, name)
    page.close()


def test_a_figure_as_a_page_fits_a_phone(under_way, browser, tmp_path):
    page = browser.new_page(viewport={"width": 390, "height": 800})
    for name in NAMES:
        getattr(lb.plot, name)(under_way).save(tmp_path / "figure.html")
        page.goto((tmp_path / "figure.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") <= 390, name
        assert page.locator("svg[role=img]").count() == page.locator("tbody tr").count()
    page.close()


def test_no_other_drawing_is_imported(tmp_path):
    code = (
        "import sys, lexbandits as lb\nfrom support import stage\n"
        "study = stage.create()\nstage.play(study, 400)\n"
        f"for name in {NAMES}: getattr(lb.plot, name)(study)._repr_svg_()\n"
        "lb.judge({'arm': ['a', 'b'] * 9, 'item': [n // 2 for n in range(18)], 'x': [0, 1] * 9}, "
        "[lb.Objective('x', margin=0.4)]).report('verdict.html')\n"
        "print(sorted({'plotly', 'matplotlib', 'pandas'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": TESTS},
    )  # fmt: skip
    assert done.stdout == "[]\n", done.stderr


def test_the_intervals_show_the_values_of_the_table(ended):
    found = rows(lb.plot.intervals(ended))
    table = ended.results().set_index(["arm", "objective"])["mean"]
    shown = {(caption.split(":")[0], arm): row.value for (caption, arm), row in found.items()}
    assert shown["3 latency", "base"] == f"{table['base', 'latency']:.0f}"
    assert shown["1 refusals", "tiny"] == f"{table['tiny', 'refusals']:.2f}"
    assert ("3 latency", "tiny") not in shown, "an arm that left is not shown where it no longer counts"


def test_a_verdict_is_drawn_as_a_study_is():
    table = {"arm": ["a", "b"] * 30, "item": [n // 2 for n in range(60)], "x": [0, 1] * 30}
    verdict = lb.judge(table, [lb.Objective("x", margin=0.4)])
    figure = lb.plot.intervals(verdict)
    assert figure.title == VerdictView(verdict).headline
    assert {name for _, name in rows(figure)} == {"a", "b"}


def test_the_race_ends_where_arms_left(ended):
    (chart,) = lb.plot.race(ended).charts
    explained, found = ended.explain(), {row.name: row for row in chart.rows}
    for arm in ("tiny", "small"):
        assert found[arm].value == f"{explained[arm].decision.after:,}"
        assert f"{arm}: excluded after {found[arm].value} trials" == found[arm].label
    assert found["base"].label.startswith("base: still in after")


def points(path):
    return [tuple(map(float, point)) for point in re.findall(r"[ML](\S+) (\S+)", path.get("d"))]


def edges(row):
    """The lower and the upper end of an interval over time, in pixels from the top."""
    drawn = ElementTree.fromstring(f"<svg>{row.drawn[1]}</svg>")
    return [points(path) for path in drawn.iter("path") if path.get("fill") == "none"]


def test_the_evidence_ends_at_what_the_policy_knows(ended):
    figure = lb.plot.evidence(ended)
    names = [objective.name for objective in ended.objectives]
    i = names.index(figure.title.split()[0])
    (row,) = rows(figure).values()
    assert (row.name, row.more) == ("large", "excluded"), "as everybody else says it"
    arms, margin = list(ended.arms), ended.objectives[i].margin_in_unit
    known = ended.policy.differences[arms.index("large"), arms.index("base"), i]
    below, above = max(4 * margin, -1.25 * known[0]), max(4 * margin, 1.25 * known[1])
    heights = [TALL * (above - end) / (above + below) for end in known]
    assert [end[-1][1] for end in edges(row)] == pytest.approx(heights, abs=0.01)


@pytest.mark.parametrize("name", ["intervals", "race", "evidence", "pulls", "workers"])
def test_a_new_study_can_be_drawn(name):
    assert parsed(getattr(lb.plot, name)(stage.create("new"))).get("role") == "img"


@pytest.mark.parametrize("which", ["ended", "under_way"])
def test_the_terminal_is_80_columns_wide(which, request):
    study = request.getfixturevalue(which)
    out = io.StringIO()
    console = Console(file=out, width=80)
    terminal_report.print_forecast(study, console=console, runs=10)
    terminal_report.print_explanation(study, console=console)
    terminal_report.print_explanation(study, "tiny", console=console)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "tiny was excluded after" in text
    assert "What learning cost" in text


def few_results(name, **changes):
    """A study that has seen too little to tell arms apart."""
    latency = lb.Objective("latency", "minimize", unit="ms", margin=300, noise=("bounded", 0, 5000))
    study = stage.create(name, objectives=[latency], **changes)
    for trial in study.ask_many(60):
        study.tell(trial, {"latency": stage.measure(trial.arm, trial.item)["latency"]})
    return study


@pytest.mark.parametrize("which", ["ended", "under_way", "few"])
def test_the_last_interval_of_the_evidence_is_in_sight(which, request):
    study = few_results("wide") if which == "few" else request.getfixturevalue(which)
    for row in rows(lb.plot.evidence(study)).values():
        assert all(0 < end[-1][1] < TALL for end in edges(row)), "else it is a rectangle without ends"


def test_where_no_interval_is_known_none_is_drawn():
    study = lb.create_study(
        "few", arms=["a", "b"], objectives=[lb.Objective("x", margin=2, noise="gaussian")], seed=0
    )
    for k, trial in enumerate(study.ask_many(4)):
        study.tell(trial, {"x": k**0.5})
    (row,) = rows(lb.plot.evidence(study)).values()
    assert not edges(row)
    assert row.more == "too few for an interval"


@pytest.mark.parametrize("which", ["ended", "under_way"])
def test_a_figure_says_of_the_answer_what_the_page_says(which, request):
    study = request.getfixturevalue(which)
    for name in ("race", "intervals"):
        assert getattr(lb.plot, name)(study).title == StudyView.of(study).headline


def test_what_came_late_does_not_hide_what_was_told():
    study = stage.create("late")
    late = study.ask_many(2, worker="w", lease="10ms")
    time.sleep(0.02)
    for trial in study.ask_many(20, worker="w"):
        study.tell(trial, stage.measure(trial.arm, trial.item))
    for trial in late:
        assert study.tell(trial, stage.measure(trial.arm, trial.item)) == "late"
    (row,) = rows(lb.plot.workers(study)).values()
    assert row.more == "2 late, 20 told"
    looks = [
        (rect.get("class"), float(rect.get("height"))) for rect in map(ElementTree.fromstring, row.drawn)
    ]
    assert looks == [("lost late", 20.0)] * 2 + [("fillbar", 10.0)] * 20, "what is drawn last is seen"
