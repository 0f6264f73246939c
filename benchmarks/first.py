"""How soon a new process answers with nothing compiled, the least of some tries: docs/benchmarks-first.md.

python first.py [--before COMMIT] [--tries N] [ROW …]: what is warm beside the package at a commit, in turns.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

from speed import ROOT, machine, write

README = """
import numpy as np, lexbandits as lb
truth = {"small": (0.71, 0.4, 0.1), "medium": (0.84, 0.9, 0.4), "large": (0.85, 2.1, 1.9),
         "huge": (0.86, 2.6, 2.4)}
rng = np.random.default_rng(7)
def measure(model):
    right, seconds, cents = truth[model]
    return {"correct": rng.random() < right, "latency": min(10, rng.gamma(25, seconds / 25)),
            "cost": cents * rng.uniform(0.8, 1.2)}
study = lb.create_study("models", arms=list(truth), delta=0.05, objectives=[
    lb.Objective("correct", margin=0.06, noise="bernoulli"),
    lb.Objective("latency", "minimize", unit="s", margin=0.4, noise=("bounded", 0, 10)),
    lb.Objective("cost", "minimize", unit="cents", margin=0.2, noise=("bounded", 0, 3))])
assert study.run(measure, progress=False).arm == "medium"
study.report("report.html")
"""
STUDY = """
import lexbandits as lb
words = dict(arms=["a", "b", "c", "d"], objectives=[
    lb.Objective("correct", margin=0.02, noise="bernoulli"),
    lb.Objective("latency", "minimize", margin=0.2, noise=("bounded", 0, 10))])
study = lb.create_study("bench", {storage!r}, load_if_exists=True, **words)
for number in range({results}):
    study.tell(study.ask(), {{"correct": number % 3 > 0, "latency": number % 7}})
"""
OWN_MEMORY = """
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""
OPEN = "import lexbandits as lb; print(lb.open_study('bench', 'bench.db').status.results)"
TABLE = """
import csv, random
random.seed(1)
with open("table.csv", "w", newline="") as file:
    rows = csv.writer(file)
    rows.writerow(["arm", "item", "correct", "latency", "cost"])
    for item in range(500):
        for arm in range(4):
            right = int(random.random() < 0.7 + arm / 20)
            rows.writerow([f"arm {arm}", item, right, random.random(), random.random()])
"""
SERVE = """
import subprocess, sys
words = [sys.executable, "-m", "lexbandits", "serve", "--port", "0"]
served = subprocess.Popen(words, stdout=subprocess.PIPE)
assert served.stdout.readline().startswith(b"http")
served.kill()
served.wait()
"""
WORKER = """
import subprocess, sys
words = [sys.executable, "-m", "lexbandits", "serve", "--port", "0", "--storage", "bench.db"]
served = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
{study}
{memory}
served.kill()
served.wait()
"""
PLAYED = """
import lexbandits as lb
words = dict(arms=["a", "b", "c"], objectives=[lb.Objective("q", margin=0.1, noise="bernoulli")])
assert lb.forecast(words, [[0.6], [0.65], [0.7]], runs=200).runs == 200
"""
SWEPT = """
import lexbandits as lb
pool = lb.LexElimPool(20, 3, delta=0.05, tradeoff=1.0)
cells = [lb.simulation.Cell("pool", pool, lb.paper_instance(20), 10**6)]
lb.sweep(cells, replications=100, n_jobs=1)
"""
JUDGE = ["correct max 0.03 bernoulli", "latency min 0.2 bounded 0 1", "cost min 0.2 bounded 0 1"]
CODECS = ROOT / "examples" / "compression"
ITSELF = f"{sys.executable} -m lexbandits"
MEASURE = f"{sys.executable} {CODECS}/measure.py '{{codec}}' '{{level}}' '{{item}}'"
DEMO = f"""set -e
rm -f demo.db*
{ITSELF} run {CODECS}/study.toml --workers 2 --storage demo.db -- {MEASURE}
{ITSELF} study explain compression --storage demo.db
{ITSELF} study report compression demo.html --storage demo.db
"""


def script(text):
    return [sys.executable, "-c", text]


def lexbandits(*words):
    return [sys.executable, "-m", "lexbandits", *words]


SAME = "no longer than before"


class Row(NamedTuple):
    name: str
    what: str
    command: list[str]
    target: str = ""
    first: list[str] | None = None  # not measured
    cold: bool = True
    before: bool = True  # if it is warm, of earlier code too
    unit: str = "s"


FEW, MANY = STUDY.format(storage="bench.db", results=1), STUDY.format(storage="bench.db", results=5000)
WARMED_UP = [sys.executable, "-c", "from lexbandits.cli import warm; warm.live(), warm.lists()"]
LONG = script(STUDY.format(storage="memory", results=20_000))
OVER_HTTP = STUDY.format(storage="LINK", results=1000).replace("'LINK'", "served.stdout.readline().strip()")
ROWS = [
    Row("readme", "README's example with a report", script(README), "≤ 5 s"),
    Row("tell", "a study in a new process: its first ask and tell", script(FEW), "≤ 0.6 s"),
    Row("ask", "`lexbandits study ask`", lexbandits("study", "ask", "bench", "--storage", "bench.db"),
        "≤ 0.8 s", script(FEW)),
    Row("judge", "`lexbandits judge`, 500 items, 4 arms, 3 objectives",
        lexbandits("judge", "table.csv", *JUDGE), "≤ 2 s", script(TABLE)),
    Row("demo", "`make demo`", ["sh", "-c", DEMO], "≤ 2 s more than warm"),
    Row("demo-warm", "`make demo`, warm", ["sh", "-c", DEMO], first=WARMED_UP, cold=False, before=False),
    Row("serve", "`lexbandits serve` listens", script(SERVE), "≤ 2 s"),
    Row("memory", "resident memory of a process that asked and told 1,000 results",
        script(STUDY.format(storage="bench.db", results=1000) + OWN_MEMORY), "≤ 120 MB", unit="MB"),
    Row("worker", "resident memory of a worker that asked and told as many over http",
        script(WORKER.format(study=OVER_HTTP, memory=OWN_MEMORY)), "≤ 120 MB", unit="MB"),
    Row("import", "`import lexbandits`, and a study's first name, warm",
        script("import lexbandits as lb; lb.create_study"), "≤ 1 s", cold=False),
    Row("long", "20,000 results asked and told one by one in memory, warm", LONG, SAME, LONG, cold=False),
    Row("open", "opening a study of 5,000 results, warm", script(OPEN), SAME, script(MANY), cold=False),
    Row("forecast", "a forecast of 200 futures, warm", script(PLAYED), SAME, script(PLAYED), cold=False),
    Row("sweep", "100 runs of LexElim-Pool, 20 arms, warm", script(SWEPT), SAME, script(SWEPT), cold=False),
]  # fmt: skip


LONG_ROWS = ("demo", "demo-warm", "long", "sweep", "forecast")  # which a short run leaves out


def measured(command, folder, source, cache, compiled=False):
    """Seconds on the clock, of the processor, and what it printed, of a process in a folder."""
    environment = {**os.environ, "PYTHONPATH": str(source), "XDG_CACHE_HOME": str(cache)}
    environment.pop("NUMBA_CACHE_DIR", None)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # what is installed is not read anew each time
    environment["LEXBANDITS_JIT"] = "1" if compiled else ""
    began = time.perf_counter()
    with (folder / "printed").open("w+") as printed, (folder / "said").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=printed, stderr=said)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0), said.seek(0)
        if process.returncode not in (0, 1) or "Traceback" in (words := said.read()):  # 1: not certified
            raise RuntimeError(words)
        return seconds, used.ru_utime + used.ru_stime, printed.read()


def once(row, source, work):
    """One try in a folder of its own; nothing has been compiled before a cold one."""
    folder, kept = Path(tempfile.mkdtemp(dir=work)), work / f"kernels {source.parent.name}"
    if row.first is not None:
        measured(row.first, folder, source, kept, compiled=not row.cold)
    seconds, processor, printed = measured(
        row.command, folder, source, folder / "cache" if row.cold else kept
    )
    shutil.rmtree(folder)
    return (float(printed) / 1024,) if row.unit == "MB" else (seconds, processor)


def cells_of(row, sources, tries, work):
    """What is least in some tries, of each source in turns; of earlier code where all is compiled."""
    found = {head: [] for head in sources}
    for _ in range(tries):
        for head, source in sources.items():
            if head == "now" or (row.before and not row.cold):
                found[head].append(once(row, source, work))
    for each in found.values():
        best = [min(column) for column in zip(*each, strict=True)]
        if not best:
            yield ""
        else:
            yield f"{best[0]:.0f} MB" if row.unit == "MB" else f"{best[0]:.2f} s ({best[1]:.2f})"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--before", metavar="COMMIT", help="measure what is warm with the package at this commit too"
    )
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="see in a minute whether it works; no page")
    parser.add_argument("rows", nargs="*", help=", ".join(row.name for row in ROWS))
    asked = parser.parse_args()
    if asked.short:
        asked.tries, asked.rows = 1, asked.rows or [row.name for row in ROWS if row.name not in LONG_ROWS]
    about, lines = machine(), []
    print(about, flush=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        sources = {"now": ROOT / "src"}
        if asked.before:
            archive = work / "before.tar"
            subprocess.run(["git", "archive", "-o", archive, asked.before, "src"], cwd=ROOT, check=True)
            shutil.unpack_archive(archive, work / "before", filter="data")
            sources = {f"at {asked.before[:7]}": work / "before" / "src", **sources}
        for row in ROWS:
            if not asked.rows or row.name in asked.rows:
                cells = cells_of(row, sources, asked.tries, work)
                lines.append(f"| {' | '.join([row.what, *cells, row.target])} |")
                print(lines[-1], flush=True)
    after = os.getloadavg()[0]
    heads = ["what", *sources, "target"]
    rule = ["---", *["---:"] * (len(heads) - 1)]
    page = f"""# The first answer

Measured by `benchmarks/first.py` (`make bench`) on {date.today()}: {about}; when it ended: {after:.1f}.
The least of {asked.tries} tries on the clock, in brackets of processor time, which others on the machine
lengthen less. Each is a new process. Nothing has been compiled before but where it says "warm": that finds
compiled code on disk. A study is interpreted at first and goes over to compiled code once that pays.

{chr(10).join(f"| {' | '.join(words)} |" for words in (heads, rule))}
{chr(10).join(lines)}
"""
    if not asked.rows:
        write("benchmarks-first.md", page)


if __name__ == "__main__":
    main()
