"""A plain install: what works without numba, pandas and the like, and the line that names an extra."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BARE = """
import importlib.util, sys
absent = {"numba", "pandas", "joblib", "matplotlib", "plotly", "fastapi", "uvicorn", "pyarrow", "psycopg"}
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
right = lb.Objective("q", tolerance=0.1, noise="bernoulli")
study = lb.create_study("s", "s.db", arms=["a", "b"], objectives=[right])
answer = study.run(lambda arm: {"q": random.random() < {"a": 0.4, "b": 0.9}[arm]}, workers=1, progress=False)
print(answer.arm, answer.certified)
study.report("r.html"), study.export("t.csv"), study.export("t.jsonl")
rows = {"arm": ["a", "b"] * 60, "item": [n // 2 for n in range(120)], "q": [0, 1] * 60}
for looks in ("once", "any"):
    print(lb.judge(rows, [right], looks=looks).arm)
wide = [lb.Objective("q", tolerance=0.001, noise="gaussian")]
asked = {"arms": ["a", "b", "c"], "objectives": wide}
found = lb.forecast(asked, [[0.0], [0.3], [0.32]], sd=1.0, runs=10_000)
print(0 < found.runs < found.asked == 10_000, "lexbandits[fast]" in str(found))
"""
LINES = {  # what is asked for, and the extra that it names
    "study.results()": "research",
    "study.trials()": "research",
    "study.export('t.parquet')": "research",
    "lb.sweep([lb.Cell('u', lb.UCB1(10, 3), lb.paper_instance(10), 50)], replications=1)": "research",
    "lb.plot.pulls(study)": "plot",
    "lb.open_study('s', 'postgresql://localhost/s')": "postgres",
}
COMMANDS = [(["serve"], "serve"), (["warm"], "fast"), (["headline"], "research")]


def bare(code, folder):
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", BARE + code], cwd=folder, env=environment, capture_output=True, text=True
    )


def test_a_plain_install_measures_judges_and_forecasts(tmp_path):
    done = bare(LIVE, tmp_path)
    assert done.stdout.splitlines() == ["b True", "b", "b", "True True"], done.stderr
    assert (tmp_path / "t.csv").read_text().startswith("number,id,arm,item,state")


def test_what_is_missing_is_named_in_one_line(tmp_path):
    code = "import lexbandits as lb\nq = lb.Objective('q', tolerance=1)\n"
    code += "study = lb.create_study('s', 'memory', arms=['a', 'b'], objectives=[q])\n"
    for words in LINES:
        code += f"try:\n    {words}\nexcept (ImportError, lb.StorageError) as error:\n    print(error)\n"
    done = bare(code, tmp_path)
    for line, extra in zip(done.stdout.splitlines(), LINES.values(), strict=True):
        assert f"pip install 'lexbandits[{extra}]' (in a clone pip install '.[{extra}]')" in line


@pytest.mark.parametrize(("words", "extra"), COMMANDS)
def test_a_command_says_it_without_a_traceback(words, extra, tmp_path):
    done = bare(f"from lexbandits.cli import app\napp({words})", tmp_path)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert f"lexbandits[{extra}]" in done.stderr


ALONE = {  # what its documents do with it
    "": LIVE,
    "fast": "import lexbandits as lb; policy = lb.LexElimTol(2, 1, delta=0.1, tolerance=1)\n"
    "assert lb.forecast(policy, [[0], [3]], sd=1, runs=200).runs == 200",
    "research": "import lexbandits as lb; cells = [lb.Cell('u', lb.UCB1(10, 3), lb.paper_instance(10), 50)]\n"
    "lb.sweep(cells, replications=2).frame()\n"
    "from lexbandits.cli import app; app(['bounds', '--paper', '10', '--picture', 'b.svg'])",
    "plot": LIVE + "lb.plot.pulls(study), lb.plot.workers(study), study.results(), study.trials()",
    "parquet": LIVE + "study.export('t.parquet')",
    "postgres": "import psycopg, lexbandits.study.storage.postgres",
    "serve": "import lexbandits.server.start, lexbandits.insight.plot",
}


@pytest.mark.slow
@pytest.mark.parametrize("extra", ALONE)
def test_each_extra_alone(extra, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    clone = f"{ROOT}[{extra}]" if extra else str(ROOT)
    pip = ["-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", clone]
    subprocess.run([python, *pip], check=True)
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    subprocess.run(
        [python, "-c", ALONE[extra].replace("print(0 <", "(0 <")], cwd=tmp_path, env=environment, check=True
    )
    if not extra:
        packages = next((tmp_path / "venv").glob("lib/*/site-packages"))
        own = ("pip", "setuptools", "pkg_resources", "_distutils")
        size = sum(
            file.stat().st_size
            for part in packages.iterdir()
            if not part.name.startswith(own)
            for file in (part.rglob("*") if part.is_dir() else [part])
            if file.is_file()
        )
        assert size < 300e6
