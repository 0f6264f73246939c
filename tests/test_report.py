"""The report in a real browser: offline, on a phone, without errors."""

from pathlib import Path

import pandas as pd
import pytest

from experiments.paper import regret, report
from experiments.paper import sections as paper

pytestmark = pytest.mark.slow  # a run of the whole paper; tests/test_cli.py has a short one
ALL = tuple(paper.SECTIONS.values())
CLAIMS = [claim for section in ALL for claim in section.CLAIMS]
COMMAND = "python -m experiments paper --out results/paper --replications 2"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A report of every section, with two replications."""
    out = tmp_path_factory.mktemp("paper")
    tables = paper.measure(replications=2, n_jobs=1, out=out / "runs")
    verdicts = paper.verdicts(tables, ALL, COMMAND)
    report.write(out, ALL, tables=tables, verdicts=verdicts, settings=paper.settings(2), command=COMMAND)
    return out


@pytest.fixture(scope="module", params=[(1280, 900), (360, 740)], ids=["desktop", "phone"])
def page(request, browser, folder):
    """The report opened as a file, with what the browser complained about and asked for."""
    width, height = request.param
    context = browser.new_context(viewport={"width": width, "height": height}, offline=True)
    opened = context.new_page()
    opened.complaints, opened.requests = [], []
    opened.on("console", lambda message: opened.complaints.append(message.text))
    opened.on("pageerror", lambda error: opened.complaints.append(str(error)))
    opened.on("request", lambda request: opened.requests.append(request.url))
    opened.goto((folder / "report.html").as_uri(), wait_until="load")
    yield opened
    context.close()


def test_it_opens_without_network_or_complaints(page):
    assert page.complaints == []
    asked = [url for url in page.requests if not url.startswith("data:")]
    assert [Path(url).name for url in asked] == ["report.html"]


def test_every_figure_is_shown(page):
    images = page.locator("img")
    assert images.count() == len(ALL)
    for i in range(images.count()):
        image = images.nth(i)
        image.scroll_into_view_if_needed()
        assert image.evaluate("e => e.complete && e.naturalWidth") > 1000
        assert image.get_attribute("alt")


def test_it_fits_the_width_of_the_screen(page):
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    wide = page.evaluate(
        """() => [...document.querySelectorAll('body *')]
            .filter(e => !e.closest('.scroll') && e.getBoundingClientRect().right > window.innerWidth + 1)
            .map(e => e.outerHTML.slice(0, 80))"""
    )
    assert wide == []


def test_every_claim_has_a_verdict_numbers_and_a_command(page):
    cards = page.locator("article")
    assert cards.count() == len(CLAIMS)
    for claim in CLAIMS:
        card = page.locator(f"article#{claim.name}")
        assert card.locator(".badge").inner_text().split(" ", 1)[1].startswith(("holds", "does not hold"))
        assert card.locator("li").count() >= 1
        assert card.locator("code").inner_text() == f"{COMMAND} --claim {claim.name}"


def test_the_overview_leads_to_the_claims(page):
    links = page.locator(".overview a")
    assert links.count() == len(CLAIMS)
    links.last.click()
    assert page.locator(f"article#{CLAIMS[-1].name}").evaluate(
        "e => Math.abs(e.getBoundingClientRect().top) < window.innerHeight"
    )


def test_figures_and_data_are_files_too(folder):
    for section in paper.SECTIONS:
        assert (folder / "figures" / f"{section}.png").read_bytes().startswith(b"\x89PNG")
        assert (folder / "figures" / f"{section}.pdf").read_bytes().startswith(b"%PDF")
    for name in ("acceleration", "regret", "samples", "theorems", "sensitivity", "verdicts", "settings"):
        assert len(pd.read_csv(folder / "data" / f"{name}.csv")) > 0


def test_a_sample_count_never_stands_without_its_errors(folder):
    for name in ("samples", "sensitivity", "acceleration_stopping"):
        table = pd.read_csv(folder / "data" / f"{name}.csv")
        assert {"pulls", "pulls_se", "wrong", "unstopped", "replications"} <= set(table.columns)


def test_a_second_run_takes_the_first_ones_results(folder):
    blocks = {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.npz")}
    again = paper.measure([regret], replications=2, out=folder / "runs")
    pd.testing.assert_frame_equal(
        again["regret_end"], pd.read_csv(folder / "data" / "regret_end.csv"), check_exact=False
    )
    assert {path: path.stat().st_mtime_ns for path in (folder / "runs").rglob("*.npz")} == blocks


def test_it_is_dark_in_the_dark_in_the_colours_of_the_house(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(250, 250, 249)"
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) == "rgb(15, 17, 19)"
    page.emulate_media(color_scheme="light")
