"""The examples are real: they run, in processes of their own, and end with the answer their pages show."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import lexbandits as lb

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PAGES = sorted(EXAMPLES.glob("*/README.md"))


def run(folder, *words, **options):
    """A command in a folder of its own."""
    environment = {**os.environ, "LEXBANDITS_STORAGE": "", **options}
    environment.pop("LEXBANDITS_STORAGE")
    done = subprocess.run(
        [sys.executable, *map(str, words)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def measured(item, *arm):
    out = run(EXAMPLES / "compression", "measure.py", *arm, item)
    return json.loads(out.splitlines()[-1])


def test_codecs_are_compared_on_the_same_text():
    first, again, other = measured(3, "zlib", 6), measured(3, "zlib", 6), measured(4, "zlib", 6)
    assert first["ratio"] == again["ratio"] != other["ratio"]
    assert measured(3, "lzma", 6)["ratio"] < first["ratio"] < measured(3, "zlib", 1)["ratio"]


def test_compression_ends_with_a_codec_that_is_small_and_fast(tmp_path):
    """The command of `make demo`; slow or fast as the machine may be, these are far apart."""
    here = EXAMPLES / "compression"
    command = [sys.executable, here / "measure.py", "{codec}", "{level}", "{item}"]
    out = run(tmp_path, "-m", "lexbandits", "run", here / "study.toml", "--workers", 2, "--", *command)
    study = lb.open_study("compression", tmp_path / "lexbandits.db")
    assert study.answer.certified
    assert study.answer.arm.startswith("bz2")
    assert f"answer: {study.answer.arm} (certain" in out
    assert study.status.results < 600
    ratios = (
        study.trials().query("state == 'told'").pivot(index="item", columns="arm", values="ratio").dropna()
    )
    alone = ratios["bz2 9"].var() + ratios["lzma 6"].var()
    assert (ratios["bz2 9"] - ratios["lzma 6"]).var() < alone / 2, "common files cancel in the differences"


def test_the_demo_is_the_example():
    lines = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    assert "examples/compression/study.toml" in lines
    arms = tomllib.loads((EXAMPLES / "compression" / "study.toml").read_text())["arms"]
    assert all({"codec", "level"} < set(arm) for arm in arms)


def test_models_are_chosen_by_accuracy_then_latency_then_size(tmp_path):
    """With a coarser tolerance than the page, to be short: then a quick model is accurate enough."""
    pytest.importorskip("sklearn")
    script = EXAMPLES / "models" / "choose.py"
    out = run(tmp_path, script, "--tolerance", "6%", "--workers", 2, OMP_NUM_THREADS="1")
    study = lb.open_study("models", tmp_path / "models.db")
    answer = study.answer
    assert answer.certified
    assert answer.arm in ("linear discriminant", "forest of 20")
    assert f"\n{answer.arm}: certain" in out
    told = study.trials().query("state == 'told'")
    assert told.groupby("arm")["size"].nunique().max() == 1, "size is exact"
    assert told.groupby("item")["arm"].nunique().max() == 6, "all on the same split"


def test_a_page_test_counts_an_expiry_as_no_purchase(tmp_path):
    out = run(tmp_path, EXAMPLES / "page-test" / "serve.py", "--servers", 3)
    study = lb.open_study("page", tmp_path / "page.db")
    assert study.answer.certified
    assert study.answer.arm == "short form"
    assert "short form: certain" in out
    trials = study.trials()
    assert trials["worker"].nunique() == 3, "three servers in processes of their own"
    assert (trials.state == "expired").sum() > (trials.state == "told").sum() > 50
    means = study.results().query("objective == 'conversion'").set_index("arm")["mean"]
    assert 0.02 < means["current"] < 0.2 < means["short form"] < 0.5, "buyers among all visitors"
    assert study.verify().ok


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_a_page_shows_what_its_example_prints(page):
    text = page.read_text("utf-8")
    assert "```text" in text
    assert "certain at the study's confidence" in text
    assert f"examples/{page.parent.name}/README.md" in (ROOT / "docs" / "studies.md").read_text("utf-8")


def test_every_example_has_a_page():
    assert {page.parent for page in PAGES} == {path for path in EXAMPLES.iterdir() if path.is_dir()}
