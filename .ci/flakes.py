"""The timed tests again and again on a busy machine: `make flakes ROUNDS=2 BURNERS=8 CASES=tests/service`.

Who fails once in many rounds fails by chance. Nothing is tried again: every failure is in the table, and all
that it said is kept in results/flakes (`KEPT`). Rounds may be split over CASES; each run says its executions.
"""

import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

ROUNDS, BURNERS = int(os.environ.get("ROUNDS", 20)), int(os.environ.get("BURNERS", 8))
KEPT = Path(os.environ.get("KEPT", "results/flakes"))
TIMED = [sys.executable, "-m", "pytest", "-q", "-m", "timed and not slow", "--numprocesses", "4",
         "--dist", "loadfile", "-p", "no:cacheprovider"]  # fmt: skip


def burn(parent):
    """Keep a core busy, as long as who started it lives."""
    while os.getppid() == parent:
        sum(range(10**6))


def one_round(cases, folder):
    """(those that failed, with all they said; how many were run)."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    done = subprocess.run([*TIMED, f"--junitxml={report}", *cases], capture_output=True, text=True)
    if not report.exists():
        sys.exit(done.stdout + done.stderr)
    failed, run = {}, 0
    for case in ElementTree.parse(report).iter("testcase"):
        run += case.find("skipped") is None
        for found in (*case.iterfind("failure"), *case.iterfind("error")):
            heard = "\n".join(part.text or "" for part in case if part.tag.startswith("system-"))
            said = f"{found.get('message', '')}\n\n{found.text or ''}\n{heard}"
            failed[f"{case.get('classname')}::{case.get('name')}"] = said
    return failed, run


def keep(case, said):
    """Write down what a failure said; where."""
    KEPT.mkdir(parents=True, exist_ok=True)
    name = re.sub(r"[^\w.-]+", "_", case.removeprefix("tests."))[:150]
    path = KEPT / f"{time.strftime('%m%d-%H%M%S')}-{os.getpid()}-{name}.txt"
    path.write_text(f"{case}\n{said}", "utf-8")
    return path


def main(cases):
    """Rounds, and the table."""
    burners = [multiprocessing.Process(target=burn, args=[os.getpid()], daemon=True) for _ in range(BURNERS)]
    for burner in burners:
        burner.start()
    failures, words, executions, done = Counter(), {}, 0, 0
    try:
        with tempfile.TemporaryDirectory() as folder:
            for done in range(1, ROUNDS + 1):
                start = time.monotonic()
                failed, run = one_round(cases, Path(folder))
                executions += run
                took = f"{time.monotonic() - start:.0f} s, load {os.getloadavg()[0]:.0f}"
                print(f"round {done}: {len(failed)} of {run} failed ({took})", flush=True)
                for case, said in failed.items():
                    failures[case] += 1
                    words[case] = said.partition("\n")[0][:150]
                    print(f"  {keep(case, said)}", flush=True)
    except KeyboardInterrupt:
        done -= 1
    for case, count in failures.most_common():
        print(f"{count:4d} of {done}  {case}: {words[case]}")
    print(f"{failures.total()} failures in {executions} executions, {done} rounds")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
