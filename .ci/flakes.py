"""The timed tests again and again on a busy machine: `make flakes ROUNDS=2 BURNERS=8 CASES=tests/server`.

Who fails once in many rounds fails by chance. Nothing is tried again: every failure is in the table.
"""

import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROUNDS, BURNERS = int(os.environ.get("ROUNDS", 20)), int(os.environ.get("BURNERS", 8))
TIMED = [sys.executable, "-m", "pytest", "-q", "-m", "timed and not slow", "--numprocesses", "4",
         "--dist", "loadfile", "-p", "no:cacheprovider"]  # fmt: skip


def burn():
    """Keep a core busy."""
    while True:
        sum(range(10**6))


def one_round(cases, folder):
    """(those that failed, with their first line; how many were run)."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    done = subprocess.run([*TIMED, f"--junitxml={report}", *cases], capture_output=True, text=True)
    if not report.exists():
        sys.exit(done.stdout + done.stderr)
    failed, run = {}, 0
    for case in ElementTree.parse(report).iter("testcase"):
        run += case.find("skipped") is None
        for found in (*case.iterfind("failure"), *case.iterfind("error")):
            failed[f"{case.get('classname')}::{case.get('name')}"] = found.get("message", "").split("\n")[0]
    return failed, run


def main(cases):
    """Rounds, and the table."""
    burners = [multiprocessing.Process(target=burn, daemon=True) for _ in range(BURNERS)]
    for burner in burners:
        burner.start()
    failures, words, executions = Counter(), {}, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(1, ROUNDS + 1):
            start = time.monotonic()
            failed, run = one_round(cases, Path(folder))
            failures.update(failed.keys())
            words |= failed
            executions += run
            took = f"{time.monotonic() - start:.0f} s, load {os.getloadavg()[0]:.0f}"
            print(f"round {number}: {len(failed)} of {run} failed ({took})", flush=True)
    for case, count in failures.most_common():
        print(f"{count:4d} of {ROUNDS}  {case}: {words[case][:150]}")
    print(f"{failures.total()} failures in {executions} executions")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
