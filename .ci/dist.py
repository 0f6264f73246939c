"""Build a wheel and an sdist, look into them, install them into clean environments and try them there.

python .ci/dist.py [--extras plot serve …] [--pythons python3.12 …]
"""

import argparse
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
tolerance = 0.2
noise = "bernoulli"
[[arms]]
name = "old"
[[arms]]
name = "new"
"""
TABLE = "arm,item,size\n" + "".join(
    f"{arm},{i},{size}\n" for i in range(5) for arm, size in (("a", 3), ("b", 4))
)
BRINGS = {  # what an extra is for
    "live": "sqlalchemy",
    "fast": "numba",
    "research": "numba, joblib, matplotlib, pandas",
    "postgres": "psycopg",
    "parquet": "pyarrow",
    "plot": "plotly",
    "client": "httpx2",
    "serve": "fastapi, uvicorn, lexbandits.server.app",
    "dask": "distributed",
    "ray": "ray",
}
STUDIED = """
import lexbandits as lb
q = lb.Objective("q", tolerance=0.2, noise="bernoulli")
study = lb.create_study("s", "s.db", arms=["a", "b"], objectives=[q])
study.run(lambda arm: {"q": arm == "b"}, workers=1, progress=False)
"""
USES = {  # what its documents do with it
    "fast": "import lexbandits as lb; policy = lb.LexElimTol(2, 1, delta=0.1, tolerance=1)\n"
    "assert lb.forecast(policy, [[0], [3]], sd=1, runs=200).runs == 200",
    "research": "import lexbandits as lb; cells = [lb.Cell('u', lb.UCB1(10, 3), lb.paper_instance(10), 50)]\n"
    "lb.sweep(cells, replications=2).frame()\n"
    "from lexbandits.cli import app; app(['bounds', '--paper', '10', '--picture', 'b.svg'])",
    "plot": STUDIED + "lb.plot.pulls(study), lb.plot.workers(study), study.results(), study.trials()",
    "parquet": STUDIED + "study.export('t.parquet')",
}
MOST = 300e6  # bytes of a plain install, without pip


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """What a command prints; what went wrong, if it fails."""
    done = subprocess.run([str(word) for word in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


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


def tried(python: str, what: str, brings: str) -> str:
    """Install into an environment of its own, and use it in a folder of its own."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        run(python, "-m", "venv", folder / "venv")
        bin = folder / "venv/bin"
        run(bin / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what)
        run(bin / "python", "-m", "pip", "check")
        work = folder / "work"
        work.mkdir()
        (work / "study.toml").write_text(STUDY)
        (work / "table.csv").write_text(TABLE)
        code = f"import lexbandits as lb{', ' + brings if brings else ''}; print(lb.__version__, lb.__file__)"
        if brings in BRINGS.values():
            extra = next(name for name, parts in BRINGS.items() if parts == brings)
            run(bin / "python", "-c", USES.get(extra, ""), cwd=work)
        else:
            packages = next((folder / "venv").glob("lib/*/site-packages"))
            parts = [
                part for part in packages.iterdir() if not part.name.startswith(("pip", "setuptools", "pkg_"))
            ]
            size = sum(
                file.stat().st_size for part in parts for file in [part, *part.rglob("*")] if file.is_file()
            )
            assert size < MOST, f"a plain install is {size / 1e6:.0f} MB"
        version, _, where = run(bin / "python", "-c", code, cwd=work).strip().partition(" ")
        assert str(ROOT) not in where, where
        run(bin / "lexbandits", "--help", cwd=work)
        judged = run(
            bin / "lexbandits", "judge", "table.csv", "size min 0 exact", "--about", "items", cwd=work
        )
        assert judged.startswith("On these 5 items, as measured, a is the best choice"), judged
        measure = (
            "sh",
            "-c",
            "echo correct=$([ {{arm}} = new ] && echo 1 || echo 0)".replace("{{arm}}", "{arm}"),
        )
        ended = run(bin / "lexbandits", "run", "study.toml", "--", *measure, cwd=work)
        assert "answer: new" in ended, ended
        return version


def main() -> None:
    """All of it, a line for each step."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = sorted(SETTINGS["optional-dependencies"])
    parser.add_argument("--extras", nargs="*", default=every, help="to be tried alone (all)")
    parser.add_argument("--pythons", nargs="*", default=[], help="further interpreters to try it with")
    asked = parser.parse_args()
    folder = ROOT / "dist"
    for old in folder.glob("lexbandits-*"):
        old.unlink()
    wheel, sdist = built(folder)
    print(
        f"{wheel.name}: {wheel.stat().st_size:,} bytes; {sdist.name}: {sdist.stat().st_size:,} bytes",
        flush=True,
    )
    for python in (sys.executable, *asked.pythons):
        print(f"{python}: {tried(python, str(wheel), '')} works", flush=True)
    print(f"from the sdist: {tried(sys.executable, str(sdist), '')} works", flush=True)
    for extra in asked.extras:
        tried(sys.executable, f"{wheel}[{extra}]", BRINGS.get(extra, ""))
        print(f"[{extra}] alone works", flush=True)


if __name__ == "__main__":
    main()
