"""Build a wheel and an sdist, look into them, install them into clean environments and try them there.

python .ci/dist.py [--extras research serve …] [--pythons python3.12 …]
"""

import argparse
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
STUDY = """
[study]
name = "codes"
[[objectives]]
name = "correct"
margin = 0.4
noise = "bernoulli"
[[arms]]
name = "old"
[[arms]]
name = "new"
"""
TABLE = "arm,item,size\n" + "".join(
    f"{arm},{i},{size}\n" for i in range(5) for arm, size in (("a", 3), ("b", 4))
)
PAGES = {  # whose examples run with an extra alone; with none, in a plain install
    "": "README choosing errata getting-started in-your-words report",
    "fast": "planning",
    "research": "simulation own-policy lower-bound regret studies",
    "inspect": "judge",
}
STUDIED = """
import sys, lexbandits as lb
q = lb.Objective("q", margin=0.4, noise="bernoulli")
study = lb.create_study("s", "s.db", arms=["a", "b"], objectives=[q], load_if_exists=True)
study.run(lambda arm: {"q": arm == "b"}, workers=1, progress=False)
cells = [lb.Cell("u", lb.UCB1(10, 3), lb.paper_instance(10), 50)]
"""
SERVED = """
import os, subprocess, lexbandits as lb
words = [sys.executable, "-m", "lexbandits", "serve", "--port", "0", "--storage", "s.db"]
with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as service:
    address = service.stdout.readline().split()
    if not address:
        sys.exit(service.wait())
    far = lb.open_study("s", address[0])
    assert far.answer.arm == "b" and far.status.results == study.status.results
    far.report("far.html"), lb.plot.pulls(far), far.forecast()
    service.terminate()
"""
USES = {  # what an extra is for: done with it alone; without it, the last line of what is said names it
    "fast": "app(['warm'])",
    "research": """
lb.sweep(cells, replications=2).frame(), study.results(), study.trials()
app(["bounds", "--paper", "10", "--figure", "b.svg"])
""",
    "postgres": """
try:
    lb.open_study("s", "postgresql://127.0.0.1:1/s")
except lb.StorageError as error:
    sys.exit(str(error) if "refused" not in str(error) else 0)
""",
    "parquet": """
lb.judge(study.export("t.parquet"), [q])
other = lb.create_study("o", arms=["a", "b"], objectives=[q])
assert other.import_results("t.parquet", fair=True) == study.status.results
""",
    "inspect": "lb.read.inspect('tests/read/made/quiz-1.eval')",
    "serve": f"{SERVED}\napp(['warm'])",  # as the Dockerfile does
    "dask": """
try:
    lb.sweep(cells, replications=2, backend="dask")
except ValueError as error:
    assert "needs an active Client" in str(error)
from distributed import Client
with Client(processes=False, dashboard_address=None):
    lb.sweep(cells, replications=2, backend="dask").frame()
""",
    "ray": """
try:
    lb.sweep(cells, replications=2, backend="ray")
except ValueError as error:
    assert "call ray.init() first" in str(error)
import ray
ray.init(num_cpus=1, include_dashboard=False, logging_level="ERROR")
lb.sweep(cells, replications=2, backend="ray").frame()
""",
}
WALK = """
import doctest, pathlib, sys
sys.path.insert(0, "tests")
from consoles import OPTIONS, unlike
page = pathlib.Path(sys.argv[1])
failed = doctest.testfile(str(page), module_relative=False, optionflags=OPTIONS, encoding="utf-8").failed
console = pathlib.Path("console")
console.mkdir()
console.joinpath("examples").symlink_to("../examples")
sys.exit("\\n".join(map(str, unlike(page, console.resolve()))) or failed)
"""
MOST = 300e6  # bytes of a plain install, without pip


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; what went wrong, if it fails."""
    done = _done(*command, cwd=cwd)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def _done(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    known = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run([str(word) for word in command], cwd=cwd, env=known, capture_output=True, text=True)


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel, made from the sdist, and the sdist, with what belongs into them and nothing else."""
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    [wheel], [sdist] = folder.glob("*.whl"), folder.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened, tarfile.open(sdist) as source_files:
        inside = set(opened.namelist())
        names = {name.partition("/")[2] for name in source_files.getnames()}
    source = ROOT / "src"
    kept = {path.relative_to(source).as_posix() for path in source.rglob("*") if path.is_file()}
    kept = {name for name in kept if "__pycache__" not in name and ".egg-info" not in name}
    info = {name for name in inside if ".dist-info/" in name}
    assert inside - info == kept, (inside - info) ^ kept
    assert {name.rpartition("/")[2] for name in info} == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "LICENSE",
        "entry_points.txt",
    }
    assert {
        "README.md",
        "CHANGELOG.md",
        "LICENSE",
        "pyproject.toml",
        "docs/judge.md",
        "tests/test_docs.py",
    } <= names
    assert not [
        name
        for name in names
        if name.startswith((".venv", "results", ".git/", ".ci")) or name.endswith(".pyc")
    ]
    return wheel, sdist


def tried(python: str, what: str, extra: str = "") -> str:
    """Install into an environment of its own, and use it in a folder of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder, work = Path(place), Path(place) / "work"
        run(python, "-m", "venv", folder / "venv")
        installed = folder / "venv/bin/python"
        install = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check")
        run(installed, *install, f"{what}[{extra}]" if extra else what)
        run(installed, "-m", "pip", "check")
        work.mkdir()
        for name in ("examples", "tests"):
            shutil.copytree(ROOT / name, work / name)
        version = _smoke(installed, work)
        for page in PAGES.get(extra, "").split():
            path = ROOT / f"{page}.md" if page.isupper() else ROOT / "docs" / f"{page}.md"
            walked = work / page
            walked.mkdir()
            for name in ("examples", "tests"):
                (walked / name).symlink_to(work / name)
            run(installed, "-c", WALK, path, cwd=walked)
        if extra:
            run(installed, "-c", _use(extra), cwd=work)
            return version
        _check_size(next((folder / "venv").glob("lib/*/site-packages")))
        for left_out in USES:
            done = _done(installed, "-c", _use(left_out), cwd=work)
            assert done.returncode, left_out
            assert f"lexbandits[{left_out}]" in done.stderr.splitlines()[-1], (left_out, done.stderr)
        return version


def _use(extra: str) -> str:
    return f"{STUDIED}\nfrom lexbandits.cli.main import app\n{USES.get(extra, '')}"


def _smoke(python: Path, work: Path) -> str:
    """What everybody may do at once; the version."""
    (work / "study.toml").write_text(STUDY)
    (work / "table.csv").write_text(TABLE)
    lexbandits = python.with_name("lexbandits")
    code = "import lexbandits as lb; print(lb.__version__, lb.__file__)"
    version, _, where = run(python, "-c", code, cwd=work).strip().partition(" ")
    assert str(ROOT) not in where, where
    run(lexbandits, "--help", cwd=work)
    judged = run(lexbandits, "judge", "table.csv", "size min 0 exact", "--scope", "items", cwd=work)
    assert judged.startswith("On these 5 items, as measured, a is the best choice"), judged
    measure = ("sh", "-c", "echo correct=$([ {arm} = new ] && echo 1 || echo 0)")
    ended = run(lexbandits, "run", "study.toml", "--", *measure, cwd=work)
    assert "answer: new" in ended, ended
    return version


def _check_size(packages: Path) -> None:
    parts = [part for part in packages.iterdir() if not part.name.startswith(("pip", "setuptools", "pkg_"))]
    files = (file for part in parts for file in [part, *part.rglob("*")] if file.is_file())
    size = sum(file.stat().st_size for file in files)
    assert size < MOST, f"a plain install is {size / 1e6:.0f} MB"
    print(f"a plain install: {size / 1e6:.0f} MB", flush=True)


def _check_pages() -> None:
    """Every page with examples is walked in one of the environments."""
    walked = set(" ".join(PAGES.values()).split())
    shown = {
        path.stem
        for path in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
        if any(sign in path.read_text("utf-8") for sign in (">>> ", "```console"))
    }
    assert walked == shown, walked ^ shown


def main() -> None:
    """All of it, a line for each step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = sorted(SETTINGS["optional-dependencies"])
    parser.add_argument("--extras", nargs="*", default=every, help="to be tried alone (all)")
    parser.add_argument("--pythons", nargs="*", default=[], help="further interpreters to try it with")
    asked = parser.parse_args()
    _check_pages()
    folder = ROOT / "dist"
    for old in folder.glob("lexbandits-*"):
        old.unlink()
    wheel, sdist = built(folder)
    print(
        f"{wheel.name}: {wheel.stat().st_size:,} bytes; {sdist.name}: {sdist.stat().st_size:,} bytes",
        flush=True,
    )
    for python in (sys.executable, *asked.pythons):
        print(f"{python}: {tried(python, str(wheel))} works", flush=True)
    print(f"from the sdist: {tried(sys.executable, str(sdist))} works", flush=True)
    for extra in asked.extras:
        tried(sys.executable, str(wheel), extra)
        print(f"[{extra}] alone works", flush=True)


if __name__ == "__main__":
    main()
