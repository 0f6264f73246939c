"""Eight workers, a service and a database, and everything that can go wrong with them, for twenty minutes.

python soak.py [SECONDS] [SEED]: four workers measure one study on SQLite through the service, four another
one on PostgreSQL, all through proxies. Workers are killed, connections cut inside an answer or left silent,
the service and the database killed and started again. At the end every result that was acknowledged must
be on record once, and the certificate must be that of a replay. Prints a table; ends with 1 if anything
was lost, doubled or hung.
"""

import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import lexbandits as lb
import soak_worker
from lexbandits.service.auth import Tokens
from lexbandits.study.core.queries import recorded
from lexbandits.study.core.replay import Replay
from lexbandits.study.storage.contract import open_storage
from speed import ROOT, machine

sys.path.insert(0, str(ROOT / "tests"))
from support.database import Server, server_binaries
from support.proxy import Proxy
from support.services import Service

WORKERS = 4  # of each study
PAUSE = 2.0  # seconds between two faults
HUNG = 200.0  # seconds after which a call is one that hangs: clients wait for 90, and repeat for 60
STUDY = "soak"


class Side:
    """One study: its workers, and the proxy between them and where it is kept."""

    def __init__(self, title, storage, proxy, wired, folder, nursery):
        self.title, self.storage, self.proxy, self.wired = title, storage, proxy, wired
        self.folder, self.nursery = folder, nursery
        folder.mkdir()
        self.started, self.workers = 0, []
        lb.create_study(STUDY, storage, **soak_worker.question())

    def start_worker(self):
        log = self.folder / f"{self.started}.jsonl"
        self.started += 1
        arguments = self.wired, STUDY, str(log)
        process = self.nursery.Process(target=soak_worker.main, args=arguments, daemon=True)
        process.start()
        self.workers.append((process, log))

    def kill_worker(self, luck):
        process, _ = self.workers.pop(luck.randrange(len(self.workers)))
        _end(process)
        self.start_worker()

    def stop(self):
        for process, _ in self.workers:
            _end(process)

    def hung(self):
        """Workers whose call is under way for too long; they are replaced."""
        found = [pair for pair in self.workers if _waits(pair[1]) > HUNG]
        for pair in found:
            self.workers.remove(pair)
            _end(pair[0])
            self.start_worker()
        return len(found)

    def is_at_work(self):
        """Whether results have been told."""
        return any(words[0] == "told" for words in self.said())

    def said(self):
        """Everything that workers noted."""
        return [words for log in sorted(self.folder.iterdir()) for words in _lines(log)]


def _end(process):
    process.kill()
    process.join()


def _lines(log):
    lines = log.read_bytes().split(b"\n")
    return [json.loads(line) for line in lines[:-1]]  # the last one is empty, or was cut off


def _waits(log):
    """How long its last call has been under way."""
    if not log.exists():
        return 0.0
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - 4000))
        lines = [line for line in file.read().split(b"\n")[:-1] if line.startswith(b'["call')]
    words = json.loads(lines[-1]) if lines else ["called"]
    return time.monotonic() - words[1] if words[0] == "calls" else 0.0


class Faults:
    """What goes wrong, at random."""

    def __init__(self, sides, service, server, seed):
        self.sides, self.service, self.server = sides, service, server
        self.luck, self.done = random.Random(seed), Counter()
        self.kinds = {
            self.kill_worker: 30,
            self.cut_connections: 20,
            self.cut_an_answer: 40,
            self.swallow_an_answer: 1,
            self.kill_the_service: 4,
            self.stop_the_service: 2,
            self.restart_the_database: 3,
        }

    def one(self):
        (fault,) = self.luck.choices(list(self.kinds), list(self.kinds.values()))
        fault(self.luck.choice(self.sides))
        self.done[fault.__name__.replace("_", " ")] += 1

    def kill_worker(self, side):
        side.kill_worker(self.luck)

    def cut_connections(self, side):
        side.proxy.cut_all()

    def cut_an_answer(self, side):
        side.proxy.spoil("cut", self.luck.randrange(20_000))

    def swallow_an_answer(self, side):
        side.proxy.spoil("silent", self.luck.randrange(20_000))

    def kill_the_service(self, side):
        port = self.service.port
        self.service.kill()
        self.service.start(port)

    def stop_the_service(self, side):
        port = self.service.port
        self.service.stop()
        self.service.start(port)

    def restart_the_database(self, side):
        self.server.stop("immediate")
        self.server.start()


def judged(side):
    """What became of everything that was acknowledged."""
    study, said, found = lb.open_study(STUDY, side.storage), side.said(), Counter()
    told, late, failed, notes, asked = {}, {}, set(), Counter(), set()
    for event in study.events():
        if event.kind == "told":
            found["doubled"] += event.trial in told
            told[event.trial] = event.payload
        elif event.kind == "told_late":
            found["doubled"] += event.trial in late
            late[event.trial] = event.payload
        elif event.kind == "failed":
            failed.add(event.trial)
        elif event.kind == "note":
            notes[event.payload["text"]] += 1
        elif event.kind == "asked":
            asked.add(f"{event.trial}-{event.payload['nonce']:08x}")
    found["doubled"] += sum(count - 1 for count in notes.values())
    problems = study.verify().problems
    found["doubled"] += len(problems)
    for kind, *words in said:
        if kind == "told":
            identity, values, outcome = words
            number = int(identity.partition("-")[0])
            found["acknowledged"] += 1
            found["late"] += outcome == "late"
            there = late.get(number) if outcome == "late" else told.get(number) or late.get(number)
            found["lost"] += there != values or identity not in asked
        elif kind == "asked":
            found["lost"] += sum(identity not in asked for identity in words[0])
        elif kind == "failed":
            number = int(words[0].partition("-")[0])
            found["failed"] += 1
            found["lost"] += words[1] != "late" and number not in failed
        elif kind == "noted":
            found["lost"] += notes[words[0]] == 0
        elif kind == "again":
            found["lost"] += words[1] != "repeated"
        elif kind in ("error", "crashed"):
            found[kind] += 1
            if kind == "crashed":
                print(words[0], file=sys.stderr)
        elif kind == "called":
            found["longest"] = max(found["longest"], words[0])
    for problem in problems:
        print(f"{side.title}: {problem}", file=sys.stderr)
    found["results"] = study.status.results
    return found


def finished(side):
    """Let the study end: now nothing below a half matters. Whether its certificate is that of a replay."""
    study = lb.open_study(STUDY, side.storage)
    time.sleep(1.1 * soak_worker.LEASE)
    for name in ("correct", "latency"):
        study.amend(name, margin=0.9)
    answer = study.run(soak_worker.measured, progress=False)
    events = list(study.events())
    last = max(i for i, event in enumerate(events) if event.kind == "finished")
    replay = Replay()
    replay.apply(events[:last])
    noted = events[last].payload
    found = {**recorded(replay), "digest": noted["digest"]}  # what is before it, which `verify` compares
    same = found == noted and list(answer.certificate) == noted["certificate"]
    return answer.certified and same and study.verify().ok


def soak(seconds, seed):
    """The figures of one run, and whether all is well."""
    where = machine()
    os.environ["LEXBANDITS_SOAK"] = "nursery"
    nursery = multiprocessing.get_context("forkserver")
    nursery.set_forkserver_preload(["soak_worker"])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        folder.chmod(0o755)
        (folder / "database").mkdir()
        server = Server(folder / "database", server_binaries()).make()
        file = f"sqlite:///{folder}/soak.db"
        token = Tokens(open_storage(file)).create("soak", "admin")
        service = Service(file)
        wires = Proxy(service.port), Proxy(server.socket)
        database = server.database("soak")
        sides = [
            Side(
                "SQLite through the service",
                file,
                wires[0],
                f"{wires[0].of(service.address)}#token={token}",
                folder / "far",
                nursery,
            ),
            Side("PostgreSQL", database, wires[1], wires[1].of(database), folder / "near", nursery),
        ]
        try:
            for side in sides:
                for _ in range(WORKERS):
                    side.start_worker()
            faults, hung = Faults(sides, service, server, seed), 0
            begun = time.monotonic()
            while time.monotonic() - begun < HUNG and not all(side.is_at_work() for side in sides):
                time.sleep(0.1)
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                faults.one()
                hung += sum(side.hung() for side in sides)
                time.sleep(PAUSE * (0.5 + faults.luck.random()))
            for side in sides:
                side.stop()
            service.stop()
            figures = [judged(side) for side in sides]
            certified = [finished(side) for side in sides]
        finally:
            for side in sides:
                side.stop()
            if service.process.poll() is None:
                service.kill()
            server.stop("immediate")
    return written(sides, figures, certified, faults.done, hung, f"{seconds:g} s on {where}")


def written(sides, figures, certified, faults, hung, title):
    """The table, and whether all is well."""
    rows = [
        ("results acknowledged", "acknowledged", "{:,}"),
        ("results that count", "results", "{:,}"),
        ("told after their time", "late", "{:,}"),
        ("failed", "failed", "{:,}"),
        ("errors that workers saw and called again after", "error", "{:,}"),
        ("longest call, seconds", "longest", "{:.1f}"),
        ("acknowledged and lost", "lost", "{}"),
        ("on record twice", "doubled", "{}"),
        ("workers that crashed", "crashed", "{}"),
    ]
    print(f"{title}; {sum(faults.values())} faults:", end=" ")
    print(", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())) + ".\n")
    print(f"| | {' | '.join(side.title for side in sides)} |")
    print("| --- | ---: | ---: |")
    for title, key, shape in rows:
        print(f"| {title} | {' | '.join(shape.format(each[key]) for each in figures)} |")
    print(f"| certificate equal to the replay's | {' | '.join('yes' if c else 'no' for c in certified)} |")
    print(f"| calls that hung | {hung} | |")
    bad = hung + sum(each[key] for each in figures for key in ("lost", "doubled", "crashed"))
    return bad == 0 and all(certified)


if __name__ == "__main__":
    if "--help" in sys.argv:
        sys.exit(print(__doc__))
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 1200.0
    sys.exit(0 if soak(length, int(sys.argv[2]) if len(sys.argv) > 2 else 1) else 1)
