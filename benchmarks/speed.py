"""Speed against the random number generator, a NumPy script and peers: one run, medians, ratios, targets.

Single-threaded rates are per second of processor time, so that a busy machine disturbs them less;
threads, imports and first results are on the clock. Writes docs/benchmarks.md.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from typing import NamedTuple

import numpy as np

os.environ.setdefault("LEXBANDITS_JIT", "1")  # what goes on for long is compiled

sys.path.insert(0, str(Path(__file__).parents[1]))  # where experiments/ is, which nobody installs
import lexbandits as lb
from experiments.practice.common_random_numbers import CommonRandomNumbers, play_block
from experiments.practice.common_random_numbers import play as play_draws
from experiments.practice.studies import paper, studies
from lexbandits._jit import entry, fused
from lexbandits.environments.noise import stream
from lexbandits.simulation.oracle_settings import with_oracle_settings
from lexbandits.simulation.replicate import replicate
from lexbandits.simulation.trajectory import play, prepared
from script import lexelim_in

ROOT = Path(__file__).parent.parent
SHORT = "--short" in sys.argv  # whether it works at all, in a minute: of any script here; no page is written
REPEATS = 1 if SHORT else 7
M = 3
MATCHED = 0.1**0.5
LESS_IS_MORE = ("s", "ms", "bytes")


class Row(NamedTuple):
    what: str
    values: list[float]
    unit: str
    ratio: float | None = None
    of: str = ""
    target: float | None = None  # least ratio, or for times and sizes the most

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def reached(self):
        if self.target is None:
            return ""
        if self.unit in LESS_IS_MORE:
            return "yes" if self.median <= self.target else "**no**"
        good = (self.ratio or self.median) >= self.target
        return "yes" if good else "**no**"


@fused
def draw_normals(rng, out, rounds):
    """The limit: nothing but normals."""
    for _ in range(rounds):
        for k in range(out.size):
            out[k] = rng.standard_normal()


def limit():
    """Pulls a second if a pull were its m normals and nothing else."""
    rng, out = stream(0, 0), np.empty(1 << 13)
    draw_normals(rng, out, 1)
    start = time.thread_time()
    draw_normals(rng, out, 400)
    return 400 * out.size / M / (time.thread_time() - start)


def lexelim(name, n_arms, noise_sd):
    instance = lb.paper_instance(n_arms)
    cls = {"LexElim-In": lb.LexElimIn, "LexElim-Out": lb.LexElimOut}[name]
    return with_oracle_settings(cls, instance, delta=0.01, noise_sd=noise_sd), instance


def exact(policy, instance, horizon, runs, first):
    """Pulls a second with the screen, everything a sweep does per replication included."""
    start = time.thread_time()
    rounds = replicate(policy, instance, horizon=horizon, seed=1, first=first, count=runs).rounds.sum()
    return float(rounds / (time.thread_time() - start))


def pull_by_pull(policy, instance, rounds):
    """Pulls a second in the plain compiled loop."""
    run, rng, arms = prepared(policy, instance, 1, 0), stream(1, 0), np.empty(rounds, np.int64)
    start = time.thread_time()
    return play(run, instance, rng, arms) / (time.thread_time() - start)


def ask_and_tell(policy, rounds):
    """Asks with their tells a second, from Python, checks included."""
    run = policy.fresh()
    rewards = np.random.default_rng(0).normal(size=(rounds, M))
    rows = [tuple(row) for row in rewards.tolist()]
    start = time.thread_time()
    for row in rows:
        run.tell(run.ask(), row)
    return rounds / (time.thread_time() - start)


def simulation_rows():
    limits, rows, rates = [], [], {}
    cases = [
        # widths, K, horizon, runs: the printed widths make long runs, the matched ones many eliminations
        ("σ = 1 as printed", 1.0, 10, 10**7, 3),
        ("σ = √0.1", MATCHED, 100, 10**7, 2),
        ("σ = √0.1", MATCHED, 1000, 3 * 10**7, 1),
        ("σ = √0.1", MATCHED, 10, 10**7, 30),
        ("σ = 1, cut at 2·10⁷ pulls", 1.0, 1000, 2 * 10**7, 1),
    ]
    for label, noise_sd, n_arms, horizon, runs in cases[::2] if SHORT else cases:
        horizon = min(horizon, 10**5) if SHORT else horizon
        for name in ("LexElim-In", "LexElim-Out"):
            policy, instance = lexelim(name, n_arms, noise_sd)
            replicate(policy, instance, horizon=100, seed=1, first=0, count=1)
            values, ratios = [], []
            for repeat in range(REPEATS if n_arms < 1000 else 3):
                before = limit()
                values.append(exact(policy, instance, horizon, runs, repeat))
                ratios.append(values[-1] / ((before + limit()) / 2))
                limits.append(before)
            rows.append(
                Row(
                    f"{name}, K = {n_arms}, {label}",
                    values,
                    "pulls/s",
                    statistics.median(ratios),
                    "the limit",
                    0.60,
                )
            )
            rates[name, n_arms, noise_sd] = statistics.median(values)
    top = Row(f"normals of `Generator(SFC64)`, compiled loop, {M} a pull: the limit", limits, "pulls/s")
    return [top, *rows], rates


def tolerance_rows():
    """LexElim-Tol on results drawn before, one after the other: the studies of practice, the paper's arms."""
    rows = []
    for study in studies()[:1] if SHORT else (*studies(), paper(30)):
        policy, runs = study.policy("answer"), []
        for replication in range(1 if SHORT else 12):
            draws = CommonRandomNumbers(study.trials, 1, replication)
            ended = play_draws(policy, draws, 10**7)
            runs.append((ended.rounds, draws.first(ended.folded + 1)))
        results = sum(rounds for rounds, _ in runs)
        values = []
        for _ in range(REPEATS):
            taken = 0.0
            for _, known in runs:
                run = policy.fresh()
                start = time.thread_time()
                entry(play_block, bulk=True)(run.state, known, 0)
                taken += time.thread_time() - start
                assert run.finished
            values.append(results / taken)
        each = results / len(runs)
        what, target = f"LexElim-Tol, {study.name}, {each:,.0f} results a run", 3.5e6 if each > 10**4 else 2e6
        rows.append(Row(what, values, "pulls/s", target=target))
    return rows


def comparison_rows(rates):
    rows = []
    for n_arms in (10, 100, 1000):
        policy, instance = lexelim("LexElim-In", n_arms, MATCHED)
        pull_by_pull(policy, instance, 10)
        values = [pull_by_pull(policy, instance, 30_000) for _ in range(REPEATS)]
        rows.append(Row(f"LexElim-In, K = {n_arms}, plain compiled loop", values, "pulls/s"))

    def scripted(seed):
        instance = lb.paper_instance(10)
        start = time.thread_time()
        rounds = lexelim_in(instance.means, MATCHED, 0.01, 2.0, 1.0, 5000, np.random.default_rng(seed))
        return rounds / (time.thread_time() - start)

    values = [scripted(seed) for seed in range(REPEATS)]
    ratio = rates["LexElim-In", 10, 1.0] / statistics.median(values)
    rows.append(
        Row("LexElim-In, K = 10, line-by-line NumPy script", values, "pulls/s", ratio, "ours ÷ script", 1000)
    )
    instance = lb.Instance(lb.paper_instance(10).means[:, :1], noise_sd=MATCHED)
    ucb = lb.UCB1(10, 1, noise_sd=MATCHED)
    pull_by_pull(ucb, instance, 10)
    ours = [pull_by_pull(ucb, instance, 10**4 if SHORT else 10**6) for _ in range(REPEATS)]
    rows.append(Row("UCB1, K = 10, one objective", ours, "pulls/s"))
    for name, values in peers().items():
        ratio = statistics.median(ours) / statistics.median(values)
        rows.append(Row(f"{name}, K = 10", values, "pulls/s", ratio, "ours ÷ theirs", 100))
    return rows


def peers():
    python = ROOT / ".venv-bench" / "bin" / "python"
    if not python.exists():
        print("no .venv-bench: peers are left out (make bench installs them)", file=sys.stderr)
        return {}
    script = str(ROOT / "benchmarks" / "peers.py")
    done = subprocess.run([python, script, str(REPEATS)], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def thread_rows():
    policy, instance = lexelim("LexElim-In", 100, MATCHED)
    cells = [lb.simulation.Cell("a", policy, instance, 10**5 if SHORT else 10**8)]
    lb.sweep(cells, replications=2, n_jobs=2)
    tables, times = {}, {1: [], 2: []}
    for _ in range(REPEATS):
        for n_jobs in times:
            start = time.perf_counter()
            tables[n_jobs] = lb.sweep(cells, replications=2 if SHORT else 48, n_jobs=n_jobs).frame()
            times[n_jobs].append(time.perf_counter() - start)
    assert tables[1].equals(tables[2])
    ratio = statistics.median(a / b for a, b in zip(times[1], times[2], strict=True))
    one, two = ([tables[1]["rounds"].sum() / t for t in times[n]] for n in (1, 2))
    return [
        Row("sweep of LexElim-In, K = 100, one thread", one, "pulls/s"),
        Row("the same on two threads, same bits", two, "pulls/s", ratio, "one thread", 1.8),
    ]


def ask_rows():
    rows = []
    for n_arms in (10, 100, 1000):
        policy, _ = lexelim("LexElim-In", n_arms, 1.0)
        ask_and_tell(policy, 100)
        values = [ask_and_tell(policy, 1_000 if SHORT else 20_000) for _ in range(REPEATS)]
        rows.append(Row(f"ask + tell, LexElim-In, K = {n_arms}", values, "a second", target=100_000))
    return rows


FIRST = """
import lexbandits as lb
policy = lb.LexElimIn(10, 3, delta=0.1, tradeoff=2)
lb.sweep([lb.simulation.Cell("a", policy, lb.paper_instance(10), 10**5)], replications=1).frame()
"""


def start_rows():
    def timed(code, cache):
        environment = {**os.environ, "XDG_CACHE_HOME": cache}
        environment.pop("NUMBA_CACHE_DIR", None)
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], env=environment, check=True)
        return time.perf_counter() - start

    with tempfile.TemporaryDirectory() as cache:
        empty = [timed("pass", cache) for _ in range(REPEATS)]
        bare = statistics.median(empty)
        imports = [timed("import lexbandits", cache) - bare for _ in range(REPEATS)]
        cold = [timed(FIRST, cache)]
        cached = [timed(FIRST, cache) for _ in range(REPEATS)]
    return [
        Row("`import lexbandits`, beyond starting Python", imports, "s", target=0.5),
        Row("first result of a sweep in a new process, nothing cached", cold, "s"),
        Row("first result of a sweep in a new process, leaf kernels cached", cached, "s", target=3.0),
    ]


def number(value, unit):
    if unit in LESS_IS_MORE:
        return (
            f"{value:.2f} s"
            if unit == "s"
            else f"{value:,.3g} {unit}"
            if value < 1000
            else f"{value:,.0f} {unit}"
        )
    if value < 1000:
        return f"{value:.3g}"
    return f"{value / 1e6:.1f} M" if value >= 1e6 else f"{value / 1e3:,.1f} k"


def table(rows):
    lines = [
        "| what | median | from – to | ratio | target | reached |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        spread = f"{number(min(row.values), row.unit)} – {number(max(row.values), row.unit)}"
        ratio = (
            ""
            if row.ratio is None
            else f"{row.ratio:,.2f} {row.of}"
            if row.ratio < 10
            else f"{row.ratio:,.0f} {row.of}"
        )
        target = ""
        if row.target is not None:
            less = row.unit in LESS_IS_MORE
            target = f"≤ {row.target:,g} {row.unit}" if less else f"≥ {row.target:,g}"
        unit = "" if row.unit in LESS_IS_MORE else f" {row.unit}"
        median = number(row.median, row.unit) + unit
        lines.append(f"| {row.what} | {median} | {spread} | {ratio} | {target} | {row.reached} |")
    return "\n".join(lines)


def machine():
    model = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), model)
    numba = __import__("numba").__version__
    load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
    return (
        f"{model}, {os.cpu_count()} cores, {platform.system()}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, numba {numba}; load when it began: {load}"
    )


def shown(rows):
    """The rows, each printed as soon as it is there."""
    rows_so_far = []
    for row in rows:
        rows_so_far.append(row)
        print(table([row]).splitlines()[-1], flush=True)
    return rows_so_far


def write(name, page):
    """A page of docs/, unless the run was short: figures of a short run are none."""
    if not SHORT:
        (ROOT / "docs" / name).write_text(page)


def verdict(rows):
    missed = [row.what for row in rows if "no" in row.reached]
    return "\nmissed: " + "; ".join(missed) if missed else "\nevery target reached"


PAGE = """# Benchmarks

Measured by `make bench` on {day}: {machine}. Rates are medians of {repeats} repetitions (three at
K = 1000) per second of processor time, with the smallest and the largest; threads, imports and first results
are on the clock. A ratio to the limit compares runs with normals drawn just before and after.

{table}

The instances are `paper_instance(K)` with three objectives, δ = 0.01 and λ = 2. A sweep's cost of setting
up and writing down a replication is included. The script's ratio is to our long runs, with σ = 1; its
own runs are the first rounds of one, when all arms are active. Peers' rates
include their own set-up and recording. LexElim-Tol's studies are those of [practice](practice.md), twelve
runs each on results drawn before.
"""


def explain_and_exit_if_asked(page):
    """With --help say what a script is for; refuse what it does not know."""
    parser = argparse.ArgumentParser(description=page, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--short", action="store_true", help="see in a minute whether it works; no page")
    if "[--quick]" in page:
        parser.add_argument("--quick", action="store_true", help="a short run")
    parser.parse_args()


def main():
    about = machine()
    simulations, rates = simulation_rows()
    more = *comparison_rows(rates), *thread_rows(), *ask_rows(), *start_rows()
    rows = [*simulations, *tolerance_rows(), *more]
    text = table(rows)
    print(about, text, sep="\n\n")
    page = PAGE.format(day=date.today().isoformat(), machine=about, repeats=REPEATS, table=text)
    write("benchmarks.md", page)
    print(verdict(rows))


if __name__ == "__main__":
    explain_and_exit_if_asked(__doc__)
    main()
