"""One client process of a benchmark of the service: `python service_worker.py ADDRESS STUDY BATCH SECONDS`.

Says "ready", waits for a line, and then works for so many seconds: BATCH results a request, which asks for
as many new trials, as `study.run` does; with BATCH 0 an ask and a tell apart, with BATCH "flag" one visitor
after another by OFREP. Prints JSON: results told (or visitors), when it began and ended, processor seconds,
and how long every ask took.
"""

import json
import os
import random
import sys
import time

import httpx2

import lexbandits as lb


def values():
    """Of one result."""
    return {"correct": random.getrandbits(1), "latency": 0.5}


def one_by_one(study, until, asks):
    """Ask for a trial, tell its result: a request each."""
    told = 0
    while time.perf_counter() < until:
        before = time.perf_counter()
        trial = study.ask()
        asks.append(time.perf_counter() - before)
        study.tell(trial, values())
        told += 1
    return told


def in_batches(study, until, size):
    """Tell so many results and ask for as many in the same request."""
    told, trials = 0, study.ask_many(size)
    while time.perf_counter() < until:
        outcomes, trials = study.tell_ask([(trial, values()) for trial in trials], size)
        told += len(outcomes)
    return told


def visitors(address, name, until, asks):
    """Show an arm to one visitor after another."""
    service, _, token = address.partition("/#token=")
    flag, shown = f"/ofrep/v1/evaluate/flags/{name}", 0
    with httpx2.Client(base_url=service, headers={"Authorization": f"Bearer {token}"}) as client:
        while time.perf_counter() < until:
            key = f"visitor {shown} of {os.getpid()} at {until}"
            before = time.perf_counter()
            client.post(flag, json={"context": {"targetingKey": key}}).raise_for_status()
            asks.append(time.perf_counter() - before)
            shown += 1
    return shown


def main():
    """One run."""
    address, name, batch, seconds = *sys.argv[1:4], float(sys.argv[4])
    study, asks = lb.open_study(name, address), []

    def work(until, size):
        if size == "flag":
            return visitors(address, name, until, asks)
        return in_batches(study, until, int(size)) if int(size) else one_by_one(study, until, asks)

    work(time.perf_counter() + 0.2, "flag" if batch == "flag" else "0")
    asks.clear()
    print("ready", flush=True)
    sys.stdin.readline()
    started, processor = time.time(), time.process_time()
    until = time.perf_counter() + seconds
    told = work(until, batch)
    words = {"told": told, "started": started, "ended": time.time(), "asks": asks}
    print(json.dumps({**words, "processor": time.process_time() - processor}))


if __name__ == "__main__":
    if "--help" in sys.argv:
        sys.exit(print(__doc__))
    main()
