"""What a thousand workers and a million studies ask of services: a calculation from measured figures.

python benchmarks/scale.py [--help]. Workers measure for so many seconds, tell and ask in one request, and
wait for its answer. A service takes what waits for a study, at most 256 requests, into one commit, one
commit after the other: simulated event by event with the processor time of a request and the time of a
commit that docs/benchmarks-service.md has. How many bytes a result takes is measured, in a SQLite file.
"""

import argparse
import heapq
import os
import random
import re
import tempfile
from pathlib import Path

import lexbandits as lb

PAGE = Path(__file__).parents[1] / "docs" / "benchmarks-service.md"
MOST_JOBS_IN_A_COMMIT = 256
APPENDS = "appends of 4 kB, each safe before the next"


def figure(what: str) -> float:
    """A median of the page, in its unit."""
    row = next(line for line in PAGE.read_text("utf-8").splitlines() if line.startswith(f"| {what} |"))
    number, kilo = re.match(r"([\d.,]+)( k)?", row.split("|")[2].strip()).groups()
    return float(number.replace(",", "")) * (1000 if kilo else 1)


def waits(
    workers: int, seconds: float, studies: int, request: float, commit: float
) -> tuple[float, list[float]]:
    """Results a second, and how long requests wait: `workers` on `studies`, one processor, 1,000 s."""
    rng, waiting, found = random.Random(0), [[] for _ in range(studies)], []
    coming = [(rng.uniform(0, seconds), n % studies) for n in range(workers)]
    heapq.heapify(coming)
    now, turn, end = 0.0, 0, 1000.0
    while now < end:
        while coming and coming[0][0] <= now:
            at, study = heapq.heappop(coming)
            waiting[study].append(at)
        ready = [study for study in range(studies) if waiting[study]]
        if not ready:
            now = coming[0][0]
            continue
        study = min(ready, key=lambda study: (study - turn) % studies)
        turn = study + 1
        batch, waiting[study] = waiting[study][:MOST_JOBS_IN_A_COMMIT], waiting[study][MOST_JOBS_IN_A_COMMIT:]
        now += commit + request * len(batch)
        for at in batch:
            found.append(now - at)
            heapq.heappush(coming, (now + seconds * rng.uniform(0.5, 1.5), study))
    return len(found) / now, sorted(found)


def bytes_of_a_result(results: int = 2000) -> float:
    """Of a study with three objectives in SQLite: an ask and a tell, with what indexes take."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "study.db")
        objectives = [lb.Objective(name, margin=0.000002, noise=("bounded", 0, 1)) for name in "abc"]
        study = lb.create_study(
            "sized", f"sqlite:///{path}?synchronous=OFF", arms=["one", "two"], objectives=objectives
        )
        study.close()
        empty = os.path.getsize(path)
        rng = random.Random(0)
        while study.status.results < results:
            study.tell_many(
                [(trial, {name: rng.random() for name in "abc"}) for trial in study.ask_many(200)]
            )
        study.close()
        return (os.path.getsize(path) - empty) / study.status.results


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--studies", type=int, default=1_000_000, help="that are kept")
    parser.add_argument("--results", type=int, default=1000, help="of a study")
    asked = parser.parse_args()
    request = figure("of it processor time of the service, a request") / 1000
    commit = 1 / figure(f"the disk: {APPENDS}")
    slow = 1 / figure(f"a slow disk (each sync made to take 5 ms): {APPENDS}")
    print(f"a request takes {1000 * request:.2f} ms of processor, a commit {1000 * commit:.2f} ms,", end=" ")
    print(f"on a slow disk {1000 * slow:.1f} ms\n")
    print("| workers | a measurement | studies | disk | results/s | median wait | 99 % within |")
    print("| ---: | ---: | ---: | --- | ---: | ---: | ---: |")
    for seconds in (60.0, 10.0, 1.0):
        for studies in (1, 100):
            for disk, took in (("fast", commit), ("slow", slow)):
                rate, found = waits(asked.workers, seconds, studies, request, took)
                median, last = (1000 * found[int(share * (len(found) - 1))] for share in (0.5, 0.99))
                words = f"{asked.workers:,} | {seconds:g} s | {studies} | {disk} | {rate:,.0f}"
                print(f"| {words} | {median:,.1f} ms | {last:,.1f} ms |")
    each = bytes_of_a_result()
    total = each * asked.studies * asked.results
    kept = f"{asked.studies:,} studies of {asked.results:,} results"
    print(f"\na result takes {each:.0f} bytes; {kept} {total / 1e12:.2f} TB")
    per_day = figure("8 clients, one result a request") * 86400
    days = asked.studies * asked.results / per_day
    print(f"one service takes {per_day / 1e6:,.0f} million results a day, and these in {days:,.1f} days")


if __name__ == "__main__":
    main()
