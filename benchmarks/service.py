"""What the service costs: results a second, how long an ask takes, what a look at a large study costs.

python service.py [--quick]: once each, for a shorter time, and with a smaller study to look at.
Writes docs/benchmarks-service.md.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from datetime import date
from itertools import chain, count
from pathlib import Path

import lexbandits as lb
from speed import ROOT, SHORT, Row, explain_and_exit_if_asked, machine, shown, table, verdict, write

sys.path.insert(0, str(ROOT / "tests"))
from support.services import FromNothing as Service

QUICK = SHORT or "--quick" in sys.argv
REPEATS = 1 if QUICK else 5
SECONDS = 0.3 if SHORT else 2.0 if QUICK else 5.0
TRIALS = 2_000 if SHORT else 20_000 if QUICK else 1_000_000
POLLS = 10 if QUICK else 50
CLIENTS = {1: "1 client", **({2: "2 clients"} if SHORT else {8: "8 clients", 32: "32 clients"})}
SOME = 2 if SHORT else 8
WORKER = str(ROOT / "benchmarks" / "service_worker.py")
FILLER = str(ROOT / "benchmarks" / "study_worker.py")
NAMES = (f"study {number}" for number in count())


@contextmanager
def serving(storage):
    service = Service(storage)
    try:
        yield service
    finally:
        service.kill()


def processor(pid):
    """Seconds of processor time that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- the disk


SYNCS = """
import os, sys, time
with open(sys.argv[1], "wb", buffering=0) as file:
    start, syncs = time.perf_counter(), 0
    while time.perf_counter() - start < 1:
        file.write(bytes(4096))
        os.fdatasync(file.fileno())
        syncs += 1
    print(syncs / (time.perf_counter() - start))
"""


def disk_row(folder, which="the disk"):
    """What a disk can do at all: appends that are safe before the next one begins."""
    command = [sys.executable, "-c", SYNCS, str(folder / "appended")]
    rates = [float(subprocess.check_output(command, text=True)) for _ in range(REPEATS)]
    return Row(f"{which}: appends of 4 kB, each safe before the next", rates, "a second")


@contextmanager
def slow_disk(folder):
    """For processes started meanwhile, syncs take 5 ms; False where that cannot be had."""
    library, compiler = folder / "slow_disk.so", shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        print("no C compiler or no Linux: the rows on a slow disk are left out", file=sys.stderr)
        yield False
        return
    source = ROOT / "benchmarks" / "slow_disk.c"
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    os.environ["LD_PRELOAD"] = str(library)
    try:
        yield True
    finally:
        del os.environ["LD_PRELOAD"]


def slow_rows(folder):
    """Where every commit waits for 5 ms, what counts is how many results share one."""
    with slow_disk(folder) as there:
        if not there:
            return
        yield disk_row(folder, "a slow disk (each sync made to take 5 ms)")
        with serving(f"sqlite:///{folder}/slow.db") as service:
            together(service, 1, 0)
            for clients, label in CLIENTS.items():
                rates = [together(service, clients, 1)[0] for _ in range(REPEATS)]
                target = 300 if clients == 8 else None
                yield Row(f"there, {label}, one result a request", rates, "results/s", target=target)
            rates = [together(service, SOME, 100)[0] for _ in range(REPEATS)]
            yield Row(f"there, {SOME} clients, 100 results a request", rates, "results/s", target=5000)
            runs = [together(service, SOME, 0) for _ in range(REPEATS)]
            yield Row(f"there, {SOME} clients, ask and tell apart", [run[0] for run in runs], "results/s")
            waits = [quantile(run[1], 0.99) for run in runs]
            yield Row(f"there, {SOME} clients: 99% of asks within", waits, "ms", target=100)


# --- measuring


def question():
    """A study that never ends."""
    correct = lb.Objective("correct", margin=1e-9, tie=0, noise="bernoulli")
    latency = lb.Objective("latency", "minimize", margin=2e-9, noise=("bounded", 0, 1))
    return {"arms": ["a", "b", "c", "d"], "objectives": [correct, latency]}


def together(service, clients, batch):
    """All clients work at once on a new study: results a second, asks in ms, processor ms a request."""
    name = next(NAMES)
    lb.create_study(name, service.link, **question())
    command = [sys.executable, WORKER, service.link, name, str(batch), str(SECONDS)]
    workers = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(clients)
    ]
    for each in workers:
        assert each.stdout.readline() == "ready\n"
    before = processor(service.process.pid)
    for each in workers:
        each.stdin.write("\n")
        each.stdin.flush()
    told = [json.loads(each.communicate()[0]) for each in workers]
    used = processor(service.process.pid) - before
    seconds = max(each["ended"] for each in told) - min(each["started"] for each in told)
    results = sum(each["told"] for each in told)
    requests = {0: 2 * results, "flag": results}.get(batch) or results / batch
    asks = sorted(1000 * wait for each in told for wait in each["asks"])
    theirs = sum(each["processor"] for each in told)
    return results / seconds, asks, 1000 * used / requests, 1000 * theirs / requests


def quantile(values, share):
    return values[min(int(share * len(values)), len(values) - 1)]


def measuring_rows(folder):
    with serving(f"sqlite:///{folder}/measuring.db") as service:
        together(service, 1, 0)  # compiled code is loaded
        for clients, label in CLIENTS.items():
            runs = [together(service, clients, 1) for _ in range(REPEATS)]
            rates, _, ours, theirs = map(list, zip(*runs, strict=True))
            target = 300 if clients == 8 else None
            yield Row(f"{label}, one result a request", rates, "results/s", target=target)
            if clients == 8:
                yield Row("of it processor time of the service, a request", ours, "ms")
                yield Row("of it processor time of a client in Python, a request", theirs, "ms")
        for clients, label in CLIENTS.items():
            rates = [together(service, clients, 100)[0] for _ in range(REPEATS)]
            target = 5000 if clients == 8 else None
            yield Row(f"{label}, 100 results a request", rates, "results/s", target=target)
        for clients, label in CLIENTS.items():
            runs = [together(service, clients, 0) for _ in range(REPEATS)]
            yield Row(f"{label}, ask and tell apart", [run[0] for run in runs], "results/s")
            for share, target in ((0.5, None), (0.99, 100 if clients == 8 else None)):
                waits = [quantile(run[1], share) for run in runs]
                yield Row(f"{label}: {share:.0%} of asks within", waits, "ms", target=target)


def visitor_rows(folder):
    """One visitor a request, by OFREP; a study that ends with no answer, on SQLite as it is quick."""
    with serving(f"sqlite:///{folder}/visitors.db?synchronous=NORMAL") as service:
        together(service, 1, "flag")
        for clients, label in CLIENTS.items():
            runs = [together(service, clients, "flag") for _ in range(REPEATS)]
            rates, asks, ours, _ = map(list, zip(*runs, strict=True))
            target = 1000 if clients == 8 else None
            yield Row(f"synchronous=NORMAL, {label}: flags evaluated", rates, "visitors/s", target=target)
            waits = [quantile(run, 0.5) for run in asks]
            yield Row(f"{label}: 50% of them within", waits, "ms", target=5 if clients == 1 else None)
        yield Row("of it processor time of the service, a visitor", ours, "ms")


# --- looking


def filled(folder, trials):
    """A study of so many trials, made in memory where there is such a disk."""
    fast = Path("/dev/shm") if Path("/dev/shm").is_dir() else folder
    with tempfile.TemporaryDirectory(dir=fast) as scratch:
        made = Path(scratch) / f"looking_{trials}.db"
        address = f"sqlite:///{made}?synchronous=OFF"
        subprocess.run([sys.executable, FILLER, "ours", "fill", address, str(trials)], check=True)
        return f"sqlite:///{shutil.copy(made, folder)}"


def polls(service):
    """Looks at a study after every result, and looks that find it as it was: ms each; bytes of the last."""
    changed, same, path = [], [], "/api/studies/bench"
    with service.client() as client:
        tag = client.get(path).headers["etag"]
        for _ in range(POLLS):
            (trial,) = client.post(f"{path}/trials", json={}).json()["trials"]
            values = {"values": {"correct": 1, "latency": 0.5}}
            client.put(f"{path}/trials/{trial['id']}/result", json=values).raise_for_status()
            for status, waits in ((200, changed), (304, same)):
                start = time.perf_counter()
                answer = client.get(path, headers={"If-None-Match": tag})
                waits.append(1000 * (time.perf_counter() - start))
                assert answer.status_code == status
                tag = answer.headers["etag"]
        return changed, same, len(client.get(path).content)


def first_look(service):
    """Seconds until the first summary after a start, and the longest that somebody else waits meanwhile."""
    import threading

    waits, over = [], threading.Event()

    def others():
        with service.client() as client:
            while not over.is_set():
                start = time.perf_counter()
                client.get("/healthz").raise_for_status()
                waits.append(time.perf_counter() - start)
                time.sleep(0.005)

    with service.client() as client:
        beside = threading.Thread(target=others)
        beside.start()
        start = time.perf_counter()
        client.get("/api/studies/bench").raise_for_status()
        seconds = time.perf_counter() - start
        over.set()
        beside.join()
    return seconds, max(waits)


def paints(service):
    """Seconds until a browser has painted something, and until the study stands there; None without one."""
    chromium = shutil.which("chromium")
    if chromium is None:
        print("no chromium here: what the page takes is left out", file=sys.stderr)
        return None
    from playwright.sync_api import sync_playwright

    painted, drawn = [], []
    with sync_playwright() as play:
        flags = ["--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"]
        browser = play.chromium.launch(executable_path=chromium, args=flags)
        for _ in range(max(3, REPEATS)):
            context = browser.new_context()
            page = context.new_page()
            page.goto(f"{service.address}/#token={service.token}")
            page.wait_for_selector(".ls")
            page.goto("about:blank")
            page.goto(f"{service.address}/#/study/bench")
            start = time.perf_counter()
            page.reload()
            page.wait_for_selector(".arms-table")
            drawn.append(time.perf_counter() - start)
            first = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
            painted.append(page.evaluate(first) / 1000)
            context.close()
        browser.close()
    return painted, drawn


def looking_rows(folder):
    small = 1000
    with serving(filled(folder, small)) as service:
        _, _, size = polls(service)
    yield Row(f"summary of {small:,} trials", [size], "bytes")
    large = filled(folder, TRIALS)
    for what in ("nothing cached", "from its cache"):
        with serving(large) as service:
            time.sleep(3)  # compiled code is loaded
            seconds, longest = first_look(service)
            yield Row(f"first look at {TRIALS:,} trials after a start, {what}", [seconds], "s")
            yield Row("longest wait of others meanwhile", [longest], "s")
            if what == "nothing cached":
                continue
            changed, same, bytes_ = polls(service)
            yield Row(f"summary of {TRIALS:,} trials", [bytes_], "bytes", target=2 * size)
            yield Row(f"poll of {TRIALS:,} trials after a result", changed, "ms", target=50)
            yield Row(f"poll of {TRIALS:,} trials without news", same, "ms", target=50)
            found = paints(service)
            if found is not None:
                yield Row(f"the page of {TRIALS:,} trials in Chromium: first paint", found[0], "s")
                yield Row("until the study stands there", found[1], "s")


PAGE = """# What the service costs

Measured by {how} on {day}: {machine}. `lexbandits serve` on SQLite with `synchronous=FULL`, the default:
every answer comes after its commit. The clients are Python processes (`storage="http://…"`) on the same
machine, so that they share its processors with the service. A request tells results and asks for as many
new trials, as `study.run` does; "apart" are an ask and a tell in a request each. Medians of {repeats} runs
of {seconds:g} seconds each, with the smallest and the largest; of polls the median of {polls}. The targets
are meant for a disk that does 200 appends a second: the slow disk is this one with every sync of the service
drawn out to 5 ms (benchmarks/slow_disk.c).

{table}
"""


def main():
    about = machine()
    print(about, flush=True)
    results = ROOT / "results"
    results.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=results) as name:
        folder = Path(name)
        parts = measuring_rows(folder), visitor_rows(folder), slow_rows(folder), looking_rows(folder)
        rows = shown(chain([disk_row(folder)], *parts))
    how = "a short run (`python benchmarks/service.py --quick`)" if QUICK else "`make bench`"
    page = PAGE.format(
        how=how,
        day=date.today().isoformat(),
        machine=about,
        repeats=REPEATS,
        seconds=SECONDS,
        polls=POLLS,
        table=table(rows),
    )
    write("benchmarks-service.md", page)
    print(verdict(rows))


if __name__ == "__main__":
    explain_and_exit_if_asked(__doc__)
    main()
