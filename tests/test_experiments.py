"""`python -m experiments`: what each experiment prints and writes, and how it says what is wrong."""

import shutil
import struct
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from experiments import misspecification, serving
from experiments.__main__ import app
from experiments.paper.sections import section_of
from experiments.screenshots import SIZE
from support import command

ROOT = Path(__file__).parents[1]
invoked = partial(command.invoked, app=app)


def refused(said, *arguments):
    """One line that says what is wrong, and no traceback."""
    done = invoked(*arguments)
    assert (done.exit_code, type(done.exception)) == (2, SystemExit), done.output
    assert said in done.output
    assert done.output.count("Error: ") == 1


def test_python_m_names_every_experiment():
    shown = [sys.executable, "-m", "experiments", "--help"]
    done = subprocess.run(shown, cwd=ROOT, capture_output=True, text=True, check=True)
    for name in ("paper", "headline", "misspecification", "practice", "regret", "margins", "zone"):
        assert name in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("paper", "--only", "regrets"), "got 'regrets'"),
        (("paper", "--claim", "far-yelow-arm"), "did you mean 'far-yellow-arm'?"),
        (("headline", "--only", "LexElim-Pol"), "unknown algorithm 'LexElim-Pol'"),
        (("regret", "--only", "figure3"), "--only must be one of figure2, long"),
    ],
)
def test_what_is_wrong_is_reported(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(said, *arguments)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["paper", "headline", "misspecification"])
def test_a_place_that_cannot_be_written_is_named(command, tmp_path):
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "below"
    refused(str(place), command, "--out", place, "--replications", 2)


def test_paper_writes_the_report_and_prints_the_verdicts(tmp_path):
    done = invoked("paper", "--out", tmp_path, "--only", "acceleration", "--replications", 2)
    assert done.exit_code == 0, done.output
    assert "both-yellow-arms" in done.output
    text = (tmp_path / "report-acceleration.html").read_text(encoding="utf-8")
    assert text.count("<img") == 1
    assert text.count("<article") == 4


def test_paper_judges_one_claim_alone(tmp_path):
    done = invoked("paper", "--out", tmp_path, "--claim", "far-yellow-arm", "--replications", 2)
    assert done.exit_code == 0
    statements = {claim.name: claim.statement for claim in section_of("far-yellow-arm").CLAIMS}
    assert statements["far-yellow-arm"] in done.output
    assert not list(tmp_path.glob("*.html"))


def test_headline_and_misspecification_print_and_write_their_tables(tmp_path):
    done = invoked(
        "headline", "--out", tmp_path / "h", "--arms", 10, "--replications", 2, "--only", "LexElim-Pool"
    )
    assert done.exit_code == 0
    assert "| K | lower bound | LexElim-Pool |" in done.output
    assert (tmp_path / "h" / "headline.csv").exists()
    done = invoked("misspecification", "--out", tmp_path / "i", "--replications", 2)
    assert done.exit_code == 0
    assert all(f"| {title}" in done.output for title in misspecification.TOPICS.values())
    assert {file.suffix for file in (tmp_path / "i").glob("misspecification.*")} == {".csv", ".svg"}


def test_a_baseline_takes_what_the_gaps_say():
    """By hand, in points: 1.6 to 0.4, 10 to 6 and 12 to 6; nothing where the baseline is the answer."""
    found = [serving.by_gaps(rates, tie) for rates, tie in serving.CONTROLLED.values()]
    assert found == pytest.approx([16.0, (10 / 6) ** 2, 4.0, 1.0])
    without, with_one = (
        sum(serving.results_with((0.30, 0.38), 0.02, baseline, 0, run) for run in range(20))
        for baseline in (None, 0)
    )
    assert 2 < with_one / without < 5


@pytest.mark.slow
def test_the_pictures_of_the_readme_are_taken_in_a_browser(tmp_path):
    if shutil.which("chromium") is None:
        pytest.skip("no chromium here: make browser installs it")
    done = invoked("screenshots", tmp_path)
    assert done.exit_code == 0, done.output
    for name in ("page.png", "report.png"):
        width, height = struct.unpack(">II", (tmp_path / name).read_bytes()[16:24])  # of a PNG's header
        assert width / height == pytest.approx(SIZE["width"] / SIZE["height"], abs=0.01)
        assert width >= 1.2 * SIZE["width"]  # sharp on a screen of today
