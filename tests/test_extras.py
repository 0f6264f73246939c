"""A plain install: what works without numba, pandas and the like, and the line that names an extra."""

import os
import subprocess
import sys

import pytest

BARE = """
import importlib.util, sys
absent = {"numba", "pandas", "joblib", "matplotlib", "fastapi", "uvicorn", "pyarrow", "psycopg"}
found = importlib.util.find_spec
importlib.util.find_spec = lambda name, package=None: None if name in absent else found(name, package)
class Absent:
    def find_spec(self, name, path, target=None):
        if name in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Absent())
"""
LIVE = """
import random
import lexbandits as lb
random.seed(1)
right = lb.Objective("q", margin=0.2, noise="bernoulli")
study = lb.create_study("s", "s.db", arms=["a", "b"], objectives=[right], seed=1)
answer = study.run(lambda arm: {"q": random.random() < {"a": 0.4, "b": 0.9}[arm]}, workers=1, progress=False)
print(answer.arm, answer.certified)
study.report("r.html"), study.export("t.csv"), study.export("t.jsonl")
again = lb.create_study("again", arms=["a", "b"], objectives=[right], seed=1)
print(again.import_results("t.csv", fair=True) == study.status.results)
rows = {"arm": ["a", "b"] * 60, "item": [n // 2 for n in range(120)], "q": [0, 1] * 60}
for sequential in (False, True):
    print(lb.judge(rows, [right], sequential=sequential).arm)
wide = [lb.Objective("q", margin=0.002, noise="gaussian")]
asked = {"arms": ["a", "b", "c"], "objectives": wide}
found = lb.forecast(asked, [[0.0], [0.3], [0.32]], sd=1.0, runs=10_000)
print(0 < found.runs < found.asked == 10_000, "lexbandits[fast]" in str(found))
"""
LINES = {  # what is asked for, and the extra that it names
    "study.results()": "research",
    "study.trials()": "research",
    "study.export('t.parquet')": "parquet",
    "study.import_results('t.parquet', fair=True)": "parquet",
    "lb.judge('t.parquet', [q])": "parquet",
    "lb.sweep([lb.simulation.Cell('u', lb.UCB1(2, 1), lb.Instance([[0], [1]]), 5)], replications=1)": (
        "research"
    ),
    "lb.open_study('s', 'postgresql://localhost/s')": "postgres",
}
CELLS = "horizon = 9\ninstances.i.means = [[1], [0]]\npolicies.p.policy = 'RoundRobin'\nreplications = 2\n"
COMMANDS = [(["serve"], "serve"), (["warm"], "fast"), (["simulate", "cells.toml"], "research")]


def bare(code, folder):
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", BARE + code], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_a_plain_install_measures_judges_and_forecasts(tmp_path):
    done = bare(LIVE, tmp_path)
    assert done.stdout.splitlines() == ["b True", "True", "b", "b", "True True"], done.stderr
    assert (tmp_path / "t.csv").read_text().startswith("number,id,arm,item,state")


def test_what_is_missing_is_named_in_one_line(tmp_path):
    code = "import lexbandits as lb\nq = lb.Objective('q', margin=2)\n"
    code += "study = lb.create_study('s', 'memory', arms=['a', 'b'], objectives=[q], seed=1)\n"
    for words in LINES:
        code += f"try:\n    {words}\nexcept (ImportError, lb.StorageError) as error:\n    print(error)\n"
    done = bare(code, tmp_path)
    for line, extra in zip(done.stdout.splitlines(), LINES.values(), strict=True):
        assert f"pip install 'lexbandits[{extra}]' (in a clone pip install '.[{extra}]')" in line


@pytest.mark.parametrize(("words", "extra"), COMMANDS)
def test_a_command_says_it_without_a_traceback(words, extra, tmp_path):
    (tmp_path / "cells.toml").write_text(CELLS)
    done = bare(f"from lexbandits.cli.main import app\napp({words})", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"lexbandits[{extra}]" in done.stderr


def test_the_commands_of_simulation_need_no_frames_and_no_other_drawing(tmp_path):
    (tmp_path / "cells.toml").write_text(CELLS)
    words = [["simulate", "cells.toml", "--jobs", "1"], ["bounds", "--paper", "10", "--figure", "b.svg"]]
    code = "absent.clear(), absent.update({'pandas', 'matplotlib'})\nfrom lexbandits.cli.main import app\n"
    done = bare(code + f"for words in {words}:\n    app(words, standalone_mode=False)", tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "b.svg").read_text().startswith("<svg")
    folder = tmp_path / "results" / "cells"
    assert {file.name for file in folder.glob("*.*")} == {
        "runs.csv", "summary.csv", "regret.svg", "regret.md", "regret.tex",
    }  # fmt: skip
