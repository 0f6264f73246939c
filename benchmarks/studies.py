"""What a study costs beside Optuna: same disk, same server, one run. Writes docs/benchmarks-studies.md.

python studies.py [--quick]: once each, with smaller studies, and without the million events.
"""

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import date
from itertools import chain
from pathlib import Path

from speed import ROOT, SHORT, Row, explain_and_exit_if_asked, machine, shown, table, verdict, write

sys.path.insert(0, str(ROOT / "tests"))
from support.database import Server, server_binaries

QUICK = SHORT or "--quick" in sys.argv
REPEATS = 1 if QUICK else 5
WRITERS = 4 if SHORT else 24
WORKER = str(ROOT / "benchmarks" / "study_worker.py")
PEERS = str(ROOT / ".venv-bench" / "bin" / "python")
BESIDE = Path(PEERS).exists()  # Optuna
PYTHON = {"ours": sys.executable, "optuna": PEERS, "nsga": PEERS}


def worker(side, task, storage, n=0, **options):
    command = [PYTHON[side], WORKER, side, task, storage, str(n)]
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **options}
    )


def done(process):
    out, _ = process.communicate()
    assert process.returncode == 0, process.args
    return json.loads(out.strip().splitlines()[-1]) if out.strip() else None


def together(side, storage, processes, n):
    """All workers start at once; asks with their tells a second, and the longest wait for one."""
    if storage != "memory":
        done(worker(side, "fill", storage, 0))  # Optuna's tables cannot be made by several at once
    workers = [worker(side, "rate", storage, n) for _ in range(processes)]
    for each in workers:
        assert each.stdout.readline() == "ready\n"
    for each in workers:
        each.stdin.write("\n")
        each.stdin.flush()
    told = [done(each) for each in workers]
    seconds = max(each["ended"] for each in told) - min(each["started"] for each in told)
    return processes * n / seconds, max(each["longest"] for each in told)


# --- rates

# trials per process: about two seconds of each on a laptop
N = {"memory": (4000, 4000), "NORMAL": (1500, 30), "FULL": (200, 30), "postgres": (300, 40)}
FEWER = {"memory": (1000, 1000), "NORMAL": (400, 15), "FULL": (60, 15), "postgres": (100, 15)}
TARGETS = {
    ("memory", 1): 2,
    ("FULL", 1): 7,
    ("FULL", 8): 6,
    ("NORMAL", 1): 80,
    ("NORMAL", 8): 30,
    ("postgres", 1): 6,
    ("postgres", 8): 4,
}
if SHORT:
    TARGETS = {key: TARGETS[key] for key in (("memory", 1), ("NORMAL", 8), ("postgres", 8))}
TITLES = {
    "memory": "in memory",
    "FULL": "SQLite, synchronous=FULL, the default",
    "NORMAL": "SQLite, synchronous=NORMAL",
    "postgres": "PostgreSQL",
}


def addresses(kind, folder, server, repeat):
    """Where ours and Optuna's study go: a new file or database each."""
    if kind == "memory":
        return "memory", "memory"
    if kind == "postgres":
        ours, theirs = (server.database(f"{side}_{time.monotonic_ns()}") for side in ("ours", "optuna"))
        return ours, theirs.replace("postgresql://", "postgresql+psycopg://")
    name = f"{kind}_{repeat}_{time.monotonic_ns()}.db"
    return f"sqlite:///{folder}/ours_{name}?synchronous={kind}", f"sqlite:///{folder}/optuna_{name}"


def rate_rows(folder, server):
    for (kind, processes), target in TARGETS.items():
        if kind == "postgres" and server is None:
            continue
        ours, theirs, ratios = [], [], []
        for repeat in range(REPEATS):
            here, there = addresses(kind, folder, server, repeat)
            n, m = (FEWER if QUICK else N)[kind]
            share = 1 if processes == 1 else 2  # each of eight does a half
            ours.append(together("ours", here, processes, n // share)[0])
            if BESIDE:
                theirs.append(together("optuna", there, processes, m // share)[0])
                ratios.append(ours[-1] / theirs[-1])
        where = f"{TITLES[kind]}, {processes} process{'es' if processes > 1 else ''}"
        if not BESIDE:
            yield Row(f"ask + tell, {where}", ours, "a second")
            continue
        ratio = statistics.median(ratios)
        yield Row(f"ask + tell, {where}", ours, "a second", ratio, "ours ÷ Optuna", target)
        yield Row(f"Optuna, {where}", theirs, "a second")
        if kind == "memory":
            default = [together("nsga", "memory", 1, m)[0] for _ in range(REPEATS)]
            ratio = statistics.median(ours) / statistics.median(default)
            what = "Optuna with its default sampler, in memory"
            yield Row(what, default, "a second", ratio, "ours ÷ Optuna")


# --- opening, waiting, starting


def open_rows(folder, server):
    n = 2000 if QUICK else 10_000
    fast = Path("/dev/shm") if Path("/dev/shm").is_dir() else folder  # made there, measured on the disk
    places = {}
    with tempfile.TemporaryDirectory(dir=fast) as scratch:
        for side in ("ours", "optuna") if BESIDE else ("ours",):
            done(worker(side, "fill", f"sqlite:///{scratch}/{side}_open.db", n))
            shutil.copy(f"{scratch}/{side}_open.db", folder)
    places["SQLite", 20] = [f"sqlite:///{folder}/{side}_open.db" for side in ("ours", "optuna")]
    if server is not None:
        here, there = addresses("postgres", folder, server, 0)
        careless = {"PGOPTIONS": "-c synchronous_commit=off"}
        done(worker("ours", "fill", here, n, **careless))
        if BESIDE:
            done(worker("optuna", "fill", there, n, **careless))
        places["PostgreSQL", 15] = [here, there]
    for (what, target), (here, there) in places.items():
        ours = [done(worker("ours", "glance", here))["seconds"] for _ in range(REPEATS)]
        theirs = [done(worker("optuna", "look", there))["seconds"] for _ in range(REPEATS * BESIDE)]
        done(worker("ours", "look", here))  # leaves its cache
        cached = [done(worker("ours", "look", here))["seconds"] for _ in range(REPEATS)]
        title = f"opening a study of {n:,} results, {what}"
        for name, times, aim in ((title, ours, target), ("the same, from its cache", cached, None)):
            ratio = statistics.median(theirs) / statistics.median(times) if BESIDE else None
            yield Row(
                name, [1 / t for t in times], "a second", ratio, "ours ÷ Optuna", aim if BESIDE else None
            )
        if BESIDE:
            yield Row(f"Optuna, {title}", [1 / t for t in theirs], "a second")


def large_rows(folder):
    """A million events, first read one by one, then from the cache that the first opening has made."""
    if QUICK:
        return []
    address = f"sqlite:///{folder}/large.db?synchronous=OFF"
    done(worker("ours", "fill", address, 500_000))
    storage = __import__("sqlite3").connect(folder / "large.db")
    cold, cached = [], []
    for _ in range(3):
        storage.execute("DELETE FROM lexbandits_history")
        storage.commit()
        cold.append(done(worker("ours", "look", address))["seconds"])
        cached.append(done(worker("ours", "look", address))["seconds"])
    storage.close()
    return [
        Row("opening a study of 1,000,000 events", cold, "s", target=6),
        Row("the same, from the cache", cached, "s", target=1),
    ]


def wait_rows(folder):
    waits = [
        together("ours", f"sqlite:///{folder}/wait_{i}.db", WRITERS, 5 if QUICK else 20)[1]
        for i in range(REPEATS)
    ]
    return [Row(f"longest wait of {WRITERS} SQLite writers for an ask and a tell", waits, "s", target=2.0)]


STUDY = """
[study]
name = "bench"
[[objectives]]
name = "correct"
margin = 0.2
noise = "bernoulli"
[[arms]]
name = "a"
[[arms]]
name = "b"
"""


def start_rows(folder):
    (folder / "study.toml").write_text(STUDY)
    here = ["--storage", f"{folder}/cli.db"]

    def command(*words):
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        ended = subprocess.run(
            [sys.executable, "-m", "lexbandits", "study", *words, *here],
            capture_output=True,
            text=True,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        return ended.stdout, time.perf_counter() - start, spent

    command("create", str(folder / "study.toml"))
    asks, tells, processor = [], [], {"ask": [], "tell": []}
    for _ in range(2 * REPEATS):
        out, seconds, spent = command("ask", "bench", "--json")
        asks.append(seconds)
        processor["ask"].append(spent)
        _, seconds, spent = command("tell", "bench", json.loads(out)["id"], "correct=1")
        tells.append(seconds)
        processor["tell"].append(spent)
    return [
        Row("`lexbandits study tell` in a new process", tells, "s", target=1.0),
        Row("of it processor time", processor["tell"], "s"),
        Row("`lexbandits study ask` in a new process", asks, "s", target=1.5),
        Row("of it processor time", processor["ask"], "s"),
    ]


@contextmanager
def postgres():
    """A server that writes to disk before it says so, as it comes."""
    binaries = server_binaries()
    if binaries is None:
        print("no PostgreSQL here: its rows are left out", file=sys.stderr)
        yield None
        return
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        (Path(folder) / "server").mkdir()
        running = Server(Path(folder) / "server", binaries, options="").make()
        try:
            yield running
        finally:
            running.stop("immediate")


PAGE = """# What a study costs

Measured by {how} on {day}: {machine}. Beside Optuna {optuna} in the same run, on the same disk
and the same PostgreSQL server: medians of {repeats} repetitions, on the clock, with the smallest and the
largest. An ask and a tell of lexbandits decides by all results so far what to measure; Optuna draws at random
(`RandomSampler`, its fastest), a categorical parameter with four values and two objectives. "Opening" is to
open a study and see all that it knows. Ratios to Optuna depend on the disk: with `synchronous=NORMAL` ours
never waits for it, Optuna always does.

{table}
"""


def main():
    about = machine()
    print(about, flush=True)
    if not BESIDE:
        print("no .venv-bench: Optuna is left out, and no page is written (make bench installs it)")
    results = ROOT / "results"
    results.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=results) as name, postgres() as server:
        folder = Path(name)
        parts = (
            start_rows(folder),
            open_rows(folder, server),
            rate_rows(folder, server),
            wait_rows(folder),
            large_rows(folder),
        )
        rows = shown(chain(*parts))
    text = table(rows)
    if not BESIDE:
        return print(verdict(rows))
    asked = [PYTHON["optuna"], "-c", "import optuna; print(optuna.__version__)"]
    optuna = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    how = "a short run (`python benchmarks/studies.py --quick`)" if QUICK else "`make bench`"
    page = PAGE.format(
        how=how, day=date.today().isoformat(), machine=about, optuna=optuna, repeats=REPEATS, table=text
    )
    write("benchmarks-studies.md", page)
    return print(verdict(rows))


if __name__ == "__main__":
    explain_and_exit_if_asked(__doc__)
    main()
