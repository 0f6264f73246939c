"""Which page sells? Conversion first, to within 10 points of the best; then revenue per visitor.

python serve.py [--storage FILE] [--servers N]. Several processes serve visitors from one study. A purchase is
known some time after the visit; that there was none is known only when the time for it has passed: the
lease of a trial, after which a visit counts as no purchase. A second here stands for a week. Visitors are
drawn at random: put your own in their place.
"""

import argparse
import heapq
import itertools
import multiprocessing
import random
import time

import lexbandits as lb

BUYS = {"current": 0.10, "short form": 0.35, "with video": 0.35}
SPENDS = {"current": 30.0, "short form": 40.0, "with video": 20.0}


def visit(page: str, luck: random.Random) -> tuple[float, float] | None:
    """(delay, revenue) of a visitor who buys."""
    if luck.random() >= BUYS[page]:
        return None
    return luck.expovariate(5), min(luck.gammavariate(4, SPENDS[page] / 4), 100.0)


def serve(storage: str, seed: int) -> None:
    """Show pages and report purchases until the study has its answer; then everybody sees the winner."""
    study = lb.open_study("page", storage)
    luck = random.Random(seed)
    coming: list[tuple[float, str, float]] = []  # purchases that are on their way
    for number in itertools.count():
        trial = study.assign(f"visitor {number} of server {seed}", worker=f"server {seed}")
        purchase = None if trial.id is None else visit(trial.arm, luck)
        if purchase is not None:
            heapq.heappush(coming, (time.monotonic() + purchase[0], trial.id, purchase[1]))
        elif trial.id is None and study.status.state != "measuring":
            return
        elif trial.id is None:  # so much waits for visitors under way that this one just sees the best guess
            time.sleep(0.01)
        while coming and coming[0][0] <= time.monotonic():
            _, bought, revenue = heapq.heappop(coming)
            study.tell(bought, {"conversion": 1, "revenue": revenue})


def main() -> None:
    """Make or open the study, serve, say what came out."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--storage", default="page.db")
    arguments.add_argument("--servers", type=int, default=3)
    given = arguments.parse_args()
    study = lb.create_study(
        "page",
        given.storage,
        load_if_exists=True,
        arms=list(BUYS),
        objectives=[
            lb.Objective("conversion", margin=0.1, noise="bernoulli", if_expired=0),
            lb.Objective("revenue", unit="EUR", margin=4, noise=("bounded", 0, 100), if_expired=0),
        ],
        lease="1s",
    )
    processes = multiprocessing.get_context("spawn")
    servers = [processes.Process(target=serve, args=(given.storage, seed)) for seed in range(given.servers)]
    for server in servers:
        server.start()
    for server in servers:
        server.join()
    answer, status = study.answer, study.status
    print(f"{answer.arm}: {answer.reason}")
    print(
        f"{status.results} purchases in time, {status.expired} visits without, {status.late} bought too late"
    )
    for row in answer.certificate:
        seen = f"beaten by {row['by']!r}" if row["by"] else row["verdict"]
        print(f"  {row['objective']} against {row['rival']}: {row['difference']:.3g} ({seen})")


if __name__ == "__main__":
    main()
