"""A verdict, shown: text, Markdown, page and notebook say the same, and nothing that was not proven."""

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.report.notebook import scoped_style
from lexbandits.views.verdict_view import VerdictView

ARMS = ["it's", "<b>x</b> & y", "نموذج", "a|b_c", "plain", "a name of very many words, none of them short"]


def drawn(seed):
    """A table with odd names, and what is asked about it."""
    rng = np.random.default_rng(seed)
    n, arms = int(rng.choice([12, 60, 300])), [str(a) for a in rng.permutation(ARMS)[: rng.integers(1, 7)]]
    luck, table = rng.random(n), {"arm": [], "item": [], "right": [], "time": []}
    for arm in arms:
        tilt = rng.choice([0.0, 0.05, 0.5], 2)
        table["arm"] += [arm] * n
        table["item"] += range(n)
        table["right"] += (np.where(rng.random(n) < 0.8, luck, rng.random(n)) < 0.9 - tilt[0]).tolist()
        table["time"] += np.clip((1 + tilt[1]) * rng.gamma(30, 1 / 30, n), 0, 3).tolist()
    right = lb.Objective("right", margin=0.2, noise="bernoulli")
    time = [
        lb.Objective("time", "minimize", margin=0.434, unit="s", noise=("bounded", 0, 3)),
        lb.Objective("time", "minimize", margin="40%", unit="s", reference="best", cap=3),
        lb.Objective("time", "minimize", margin=0.434, unit="s", quantile=0.5, noise="gaussian"),
        lb.Objective("time", "minimize", at_most=1.4, slack=0.2, unit="s", noise=("bounded", 0, 3)),
    ][seed % 4]
    how = [{}, {"scope": "items"}, {"baseline": arms[0]}, {"candidate": arms[-1]}, {}][seed % 5]
    order = [time, right] if time.limit is not None else [right, time]
    return lb.judge(table, order, delta=0.1, **how)


@pytest.fixture(scope="module")
def verdicts():
    digits = Path(__file__).parents[2] / "examples" / "digits" / "results.csv"
    asked = [
        lb.Objective("correct", margin=0.04, noise="bernoulli"),
        lb.Objective("latency", "minimize", margin=200, unit="µs", cap=2000),
    ]
    found = [drawn(seed) for seed in range(24)]
    found.append(lb.judge(digits, asked, arm="model", item="image"))
    decisions = [decision for verdict in found for decision in verdict.outcomes.values()]
    assert {decision.outcome for decision in decisions} == {
        "winner",
        "tied",
        "excluded",
        "outside_limit",
        "undecided",
    }
    assert {decision.by for decision in decisions} == {None, "elimination", "proof"}
    assert {decision.is_open for decision in decisions} == {True, False}
    assert {verdict.certified for verdict in found} == {True, False}
    return found


class Cells(HTMLParser):
    """(arm, objective) -> mean, range and reason of an arms table; and the text of it all."""

    def __init__(self, text):
        super().__init__()
        self.cells, self.text, self._open, self._arm, self._at = {}, "", [], None, None
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        if tag not in ("meta", "line", "circle", "rect", "col"):
            self._open.append(found.get("class") or "")
        self._arm = found.get("data-arm", self._arm)
        if "data-objective" in found:
            self._at = self.cells[self._arm, found["data-objective"]] = {"m": "", "r": "", "why": ""}

    def handle_endtag(self, tag):
        if tag not in ("meta", "line", "circle", "rect", "col"):
            self._open.pop()

    def handle_data(self, text):
        self.text += text
        for kind in ("m", "r", "why"):
            if self._at is not None and kind in " ".join(self._open).split():
                self._at[kind] += text


def squeezed(text):
    return re.sub(r"[\s\\]+", "", text)


def test_all_views_say_the_same(verdicts, tmp_path):
    for verdict in verdicts:
        view, text, markdown = VerdictView(verdict), str(verdict), squeezed(verdict.as_markdown())
        page = verdict.report(tmp_path / "v.html").read_text("utf-8")
        for shown in (Cells(page), Cells(verdict._repr_html_())):
            for arm in view.arms:
                for name, cell in arm.objectives.items():
                    there = shown.cells[arm.name, name]
                    wanted = {"m": cell.shown, "r": cell.range, "why": cell.why}
                    for kind, words in wanted.items():
                        assert squeezed(there[kind]) == squeezed(words)
            for story in view.explanations:
                assert squeezed(story.sentence) in squeezed(shown.text)
        for arm, story in zip(view.arms, view.explanations, strict=True):
            assert all(squeezed(cell.in_short) in markdown for cell in arm.objectives.values())
            assert squeezed(story.rest).removeprefix("is") in markdown
            assert all(cell.shown in text for cell in arm.objectives.values())
        for said in (text, page):
            assert not re.search(r"measuring|may still win|\bpull|learning cost|certified at 100", said)


def test_no_bound_that_is_shown_is_sharper_than_what_was_proven(verdicts):
    checked = 0
    for verdict in verdicts:
        for arm, decision in verdict.outcomes.items():
            story = next(s.sentence for s in VerdictView(verdict).explanations if s.arm == arm)
            found = re.search(r"by at least ([\d.]+)", story)
            if found:
                assert float(found[1]) <= decision.bound + 1e-12
                checked += 1
    assert checked > 5


OBEYED = ["\x1b[31m", "\x07", "\u202e", "\u2066", "\x9b1m"]


@pytest.mark.parametrize("sign", OBEYED, ids=ascii)
def test_names_turn_nothing_around_and_notify_nobody(sign, tmp_path):
    """What a terminal or a browser would obey is written out, and @team in Markdown is no mention."""
    arms = [f"{letter}{sign}x <script>@team" for letter in "ab"]
    table = {"arm": np.repeat(arms, 20), "item": [*range(20)] * 2, "right": [1] * 20 + [0] * 20}
    verdict = lb.judge(table, [lb.Objective("right", margin=0.2, noise="bernoulli")])
    files = [verdict.report(tmp_path / name) for name in ("v.html", "v.md")]
    shown = [str(verdict), verdict._repr_html_(), *(path.read_text() for path in files)]
    for text in [re.sub(r'data-\w+="[^"]*"', "", text) for text in shown]:
        assert sign[0] not in text
        assert f"\\u{ord(sign[0]):04x}" in text
    assert "<script>" not in "".join(shown[1:])
    assert "@team" in shown[0]
    assert "@&#8288;team" in shown[3]
    assert "@team" not in shown[3]


def test_a_report_is_one_file_without_scripts(verdicts, tmp_path):
    page = verdicts[0].report(tmp_path / "v.html").read_text("utf-8")
    assert not re.search(r"<script|src=|href=|@import|url\(", page)
    assert verdicts[0].report(tmp_path / "v.md").read_text("utf-8") == verdicts[0].as_markdown()
    with pytest.raises(ValueError, match="format must be"):
        verdicts[0].report(tmp_path / "v.html", format="pdf")


AROUND = """<html><body data-jp-theme-light="%s"><h2 id=h>a</h2><p>b</p>
<table id=t><tr class=now><td>1</td></tr></table>
<div id=x class=jp-RenderedHTMLCommon></div></body></html>"""
LOOK = "() => ['h', 't'].map((id) => JSON.stringify([...getComputedStyle(document.getElementById(id))].map("
LOOK += "(name) => getComputedStyle(document.getElementById(id)).getPropertyValue(name))))"


def test_in_a_notebook_nothing_around_it_changes_and_its_theme_counts(browser):
    study = lb.create_study(
        "s", arms=["a", "b"], objectives=[lb.Objective("x", margin=0.4, noise="bernoulli")], seed=0
    )
    for k, trial in enumerate(study.ask_many(40)):
        study.tell(trial, {"x": k % 2})
    shown = [drawn(0), study, study.answer, study.explain(), study.forecast(runs=5)]
    page = browser.new_page(viewport={"width": 1000, "height": 800})
    for light, dark in (("true", False), ("false", True)):
        page.set_content(AROUND % light)
        before = page.evaluate(LOOK)
        for each in shown:
            page.evaluate("(html) => { document.getElementById('x').innerHTML = html }", each._repr_html_())
            assert page.evaluate(LOOK) == before
            colour = page.evaluate("() => getComputedStyle(document.querySelector('.lexbandits')).color")
            assert (min(map(int, re.findall(r"\d+", colour)[:3])) > 128) == dark
            assert page.evaluate("() => document.documentElement.scrollWidth") <= 1000
    page.close()


def test_a_report_is_whole_on_a_phone_and_on_paper(browser, tmp_path):
    """Nothing of the certificate is cut at 390 pixels, and the arms' table begins a page of its own."""
    verdict = next(verdict for verdict in map(drawn, range(20)) if len(verdict.certificate) > 3)
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(verdict.report(tmp_path / "verdict.html").as_uri())
    box = "e => e.getBoundingClientRect()"
    cells = page.locator(".cert td").evaluate_all(f"all => all.map({box}).map(b => [b.left, b.right])")
    assert cells
    assert all(0 <= left <= right <= 390 for left, right in cells)
    wide = page.locator(".cert td").evaluate_all("all => all.map(e => e.scrollWidth - e.clientWidth)")
    assert max(wide) <= 0
    heads = page.locator(".cert td").evaluate_all("all => all.map(e => e.dataset.l)")
    assert {"rival", "objective", "verdict", "level"} <= set(heads)
    page.emulate_media(media="print")
    before = "e => getComputedStyle(e).breakBefore"
    assert page.locator("section:has(.arms-table)").evaluate(before) == "page"
    page.close()


def test_the_style_sheet_of_a_notebook_stays_inside():
    depth, outside = 0, ""
    for char in scoped_style():
        depth += (char == "{") - (char == "}")
        outside += char if depth == 0 and char != "}" else ""
    assert depth == 0
    assert set(outside.split()) == {3 * ".lexbandits", 4 * ".lexbandits"}
    assert not re.search(r":root|\bbody\b|\bhtml\b|prefers-color|@page", scoped_style())
