"""The examples are real: they run, in processes of their own, and end with the answer their pages show."""

import importlib.util
import json
import re
import sqlite3
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

import lexbandits as lb
from support.consoles import in_console, shell

ROOT = Path(__file__).parent.parent
EXAMPLES = ROOT / "examples"
PAGES = sorted(EXAMPLES.glob("*/README.md"))


def shown(name):
    """(command, what it prints) of an example's page."""
    return list(in_console(EXAMPLES / name / "README.md"))


def skeleton(text, study):
    """The lines of an output without what differs from machine to machine, and the wrapping of sentences."""
    arms = "|".join(map(re.escape, sorted(study.arms, key=len, reverse=True)))
    lines = set()
    for line in text.splitlines():
        line = re.sub(arms, "ARM", line)
        line = re.sub(r"(?<!\w)-?(\d[\d.,]*(e[+-]\d+)?|∞|inf\b),?", "#", line.replace("[", "[ "))
        # on a busy machine a diagnostic may warn
        line = re.sub("certified (.*?),? but diagnostics warn: .* declared", r"certified \1", line)
        line = re.sub(r"beaten by 'ARM'|better|not_worse|tied|candidate|left", "FATE", line)
        line = " ".join(re.sub("[━─]+", "━", line).split())
        if not line.startswith("ARM "):  # each arm has its own fate
            lines.add(line)
    return lines


def check_page(name, folder, study_name, place, further="", **environment):
    """Run all commands of a page; they print what it shows. The study, and what the first command said."""
    (folder / "examples").symlink_to(EXAMPLES)
    said = []
    for command, output in shown(name):
        done = shell(command + further, folder, COLUMNS="80", **environment)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
        study = lb.open_study(study_name, folder / place)
        if "explain" in command:  # sentences are wrapped, and each arm has its own fate
            assert headings(done.stdout) == headings(output)
        else:
            assert skeleton(done.stdout, study) <= skeleton(output, study)
    return study, said[0]


def headings(text):
    """But for the table of arms, whose order is theirs, as is the width of its columns."""
    table, rest = text.split("\n\n", 2)[1:]
    assert table.split()[:2] == ["arm", "stands"]
    return [table.splitlines()[0].split(), *(line for line in rest.splitlines() if line[:1].strip())]


def measured(item, *arm):
    words = [sys.executable, EXAMPLES / "compression" / "measure.py", *arm, item]
    out = subprocess.run(
        list(map(str, words)), capture_output=True, text=True, timeout=240, check=True
    ).stdout
    return json.loads(out.splitlines()[-1])


def test_codecs_are_compared_on_the_same_text():
    first, again, other = measured(3, "zlib", 6), measured(3, "zlib", 6), measured(4, "zlib", 6)
    assert first["ratio"] == again["ratio"] != other["ratio"]
    assert measured(3, "lzma", 6)["ratio"] < first["ratio"] < measured(3, "zlib", 1)["ratio"]


@pytest.mark.slow
def test_compression_ends_with_a_codec_that_is_small_and_fast(tmp_path):
    """Slow or fast as the machine may be, these are far apart."""
    study, out = check_page("compression", tmp_path, "compression", "demo.db")
    assert study.answer.certified
    assert study.answer.arm.startswith("bz2")
    assert re.search(rf"answer: {study.answer.arm} \(cert(ain|ified)", out)
    assert study.status.results < 600
    ratios = (
        study.trials().query("state == 'told'").pivot(index="item", columns="arm", values="ratio").dropna()
    )
    alone = ratios["bz2 9"].var() + ratios["lzma 6"].var()
    assert (ratios["bz2 9"] - ratios["lzma 6"]).var() < alone / 2, "common files cancel in the differences"


def test_the_demo_is_the_example():
    """It says the answer, why, and where to look further."""
    recipe = (ROOT / "Makefile").read_text().partition("\ndemo:")[2].partition("\n\n")[0]
    recipe = recipe.replace("$(BIN)/", "").replace("\\\n\t\t", "").replace("results/", "")
    (command, _), (explain, _), _ = shown("compression")
    assert command in recipe
    assert explain in recipe
    assert "lexbandits study report compression demo.html --storage demo.db" in recipe
    assert "lexbandits serve --storage demo.db" in recipe
    arms = tomllib.loads((EXAMPLES / "compression" / "study.toml").read_text())["arms"]
    assert all({"codec", "level"} < set(arm) for arm in arms)


@pytest.mark.slow
def test_models_are_chosen_by_accuracy_then_latency_then_size(tmp_path):
    """With a wider margin than the page, to be short: then a quick model is accurate enough."""
    pytest.importorskip("sklearn")
    study, out = check_page("models", tmp_path, "models", "models.db", " --margin 12%", OMP_NUM_THREADS="1")
    answer = study.answer
    assert answer.certified
    assert answer.arm in ("linear discriminant", "forest of 20")
    assert re.search(rf"\n{answer.arm}: cert(ain|ified)", out)
    told = study.trials().query("state == 'told'")
    assert told.groupby("arm")["size"].nunique().max() == 1, "size is exact"
    assert told.groupby("item")["arm"].nunique().max() == 6, "all on the same split"


@pytest.mark.slow
def test_a_page_test_counts_an_expiry_as_no_purchase(tmp_path):
    study, out = check_page("page-test", tmp_path, "page", "page.db")
    assert study.answer.certified
    assert study.answer.arm == "short form"
    assert "short form: certified" in out
    trials = study.trials()
    assert trials["worker"].nunique() == 3, "three servers in processes of their own"
    assert (trials.state == "expired").sum() > (trials.state == "told").sum() > 50
    means = study.results().query("objective == 'conversion'").set_index("arm")["mean"]
    assert 0.02 < means["current"] < 0.2 < means["short form"] < 0.5, "buyers among all visitors"
    assert study.verify().ok


@pytest.mark.slow
def test_the_table_of_digits_is_made_anew_as_it_is(tmp_path):
    (tmp_path / "examples").symlink_to(EXAMPLES)
    (command, output), *_ = shown("digits")
    assert shell(command, tmp_path).stdout.strip() == output.strip()
    made, kept = (
        path.read_text().splitlines() for path in (tmp_path / "new.csv", EXAMPLES / "digits" / "results.csv")
    )
    assert [line.rpartition(",")[0] for line in made] == [line.rpartition(",")[0] for line in kept]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.parent.name)
def test_the_page_of_an_example_is_linked(page):
    link = f"examples/{page.parent.name}/README.md"
    assert any(link in document.read_text("utf-8") for document in (ROOT / "docs").glob("*.md"))


def test_every_example_has_a_page():
    assert {page.parent for page in PAGES} == {path for path in EXAMPLES.iterdir() if path.is_dir()}


@pytest.mark.slow
def test_digits_are_read_by_models_that_have_not_seen_them(tmp_path):
    pytest.importorskip("sklearn")
    folder = EXAMPLES / "digits"
    found = importlib.util.spec_from_file_location("compare", folder / "compare.py")
    compare = importlib.util.module_from_spec(found)
    found.loader.exec_module(compare)
    study = lb.study_from_toml(folder / "study.toml")
    assert study.status.at_most == 8 * 1797
    assert list(study.arms) == list(compare.MODELS)
    for trial in study.ask_many(24):
        assert study.tell(trial, compare.measure(trial.arm, trial.item)) in ("counted", "waiting")
    assert study.results().set_index(["objective", "arm"])["mean"]["correct"].mean() > 0.7
    table = [row["digit"] for row in study.spec["items"]]
    assert table == [str(digit) for digit in compare.DIGITS.tolist()]


@pytest.mark.slow
def test_digits_end_certified_with_a_fraction_of_the_table(tmp_path):
    pytest.importorskip("sklearn")
    (tmp_path / "examples").symlink_to(EXAMPLES)
    command = re.search("(?s)```sh\n(.*?)```", (EXAMPLES / "digits" / "README.md").read_text())[1]
    done = shell(command.replace("--time-limit 1m", "--time-limit 5s").replace("\\\n", " "), tmp_path)
    assert done.returncode == 1, done.stderr  # no certificate yet
    assert lb.open_study("digits", tmp_path / "digits.db").status.results > 0
    for command, _ in shown("digits")[1:]:
        done = shell(command, tmp_path, OMP_NUM_THREADS="1")
        assert done.returncode == 0, done.stderr
    study = lb.open_study("digits", tmp_path / "digits.db")
    assert study.answer.certified
    assert study.answer.arm in ("vectors", "neighbours")
    assert study.answer.results < 0.3 * study.answer.full
    assert study.verify().ok


def edge_of(study, own, clock=time, **settings):
    spec = importlib.util.spec_from_file_location("edge", EXAMPLES / "edge" / "edge.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.time = clock
    return module.Edge(study, str(own), **settings)


def shop(storage="memory"):
    bought = lb.Objective("bought", margin=0.05, noise="bernoulli", if_expired=0)
    return lb.create_study("shop", storage, arms=["old", "new"], objectives=[bought], seed=0)


def test_an_edge_that_is_killed_loses_and_doubles_nothing(tmp_path):
    words = [sys.executable, EXAMPLES / "edge" / "edge.py", "--visitors", "500"]
    words += ["--storage", tmp_path / "edge.db", "--own", tmp_path / "stock.db"]
    for last in ("100", "300", "500"):  # the first two are killed after that
        process = subprocess.Popen(list(map(str, words)), stdout=subprocess.PIPE, text=True)
        heard = next(line for line in process.stdout if line.startswith(f"{last} visitors"))
        assert heard
        if last != "500":
            process.kill()
        rest = process.communicate()[0]
    assert process.returncode == 0
    assert "500 results, 0 trials open" in rest
    told = lb.open_study("shop", tmp_path / "edge.db").trials().query("state == 'told'")
    own = sqlite3.connect(tmp_path / "stock.db").execute("select id, key, said from trials").fetchall()
    assert len({key for _, key, _ in own}) == len(own) == len(told) == 500
    said = {trial: json.loads(said)["bought"] for trial, _, said in own}
    assert dict(zip(told["id"], told["bought"], strict=True)) == said


def test_a_stock_that_was_asked_for_and_not_kept_comes_again(tmp_path):
    study = shop()
    killed = edge_of(study, tmp_path / "own.db", stock=6)
    killed.own.execute("insert into asked values ('before the kill')")
    lost = study.ask_many(6, request="before the kill", lease=7200, wait=0)
    edge = edge_of(study, tmp_path / "own.db", stock=6)
    assert [edge.assign(key) for key in "abab"] == [trial.arm for trial in (*lost[:2], *lost[:2])]
    edge.tell("a", {"bought": 1})
    edge.flush()
    edge.flush()
    assert (study.status.results, study.status.handed_out, study.status.open) == (1, 6, 5)


def test_trials_that_come_too_late_for_a_visitor_are_given_back(clock, tmp_path):
    study = shop()
    edge = edge_of(study, tmp_path / "own.db", clock, stock=6, window=60.0)
    edge.assign("a")
    clock.move(61)
    edge.flush()
    assert study.status.released == 5
    edge.assign("b")
    assert study.status.handed_out == 7
    edge.flush(closing=True)
    assert study.status.open == 2, "those of the two visitors"
