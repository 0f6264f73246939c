"""Every script of benchmarks/ runs whole, in its short form: what nobody starts rots."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "benchmarks"
SHORT = {  # script -> words, and what it says when it has come to its end
    "speed": (["--short"], "first result of a sweep in a new process, leaf kernels cached"),
    "studies": (["--short"], "longest wait of 4 SQLite writers"),
    "service": (["--short"], "summary of 2,000 trials"),
    "first": (["--short"], "opening a study of 5,000 results, warm"),
    "judging": (["--tables", "3", "--items", "40", "--most", "400"], "40"),
    "lists": (["edges", "--orders", "3"], ""),
    "one_evidence": (["--short"], "| 10,000 |"),
    "scale": (["--workers", "20", "--studies", "10", "--results", "10"], "20 |"),
    "soak": (["6"], "| certificate equal to the replay's | yes | yes |"),
}
STARTED = {"peers", "study_worker", "service_worker"}  # by others
IMPORTED = {"script", "soak_worker"}


def test_no_script_is_left_out():
    there = {path.stem for path in FOLDER.glob("*.py")}
    assert there == SHORT.keys() | STARTED | IMPORTED


@pytest.mark.slow
@pytest.mark.parametrize("script", SHORT)
def test_a_short_run(script):
    words, last = SHORT[script]
    pages = {page: page.read_bytes() for page in (ROOT / "docs").glob("benchmarks*.md")}
    done = subprocess.run(
        [sys.executable, FOLDER / f"{script}.py", *words], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert last in done.stdout
    assert done.stdout.strip()
    assert pages == {page: page.read_bytes() for page in pages}, "figures of a short run are none"
