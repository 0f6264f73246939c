"""Assign visitors from a stock of trials that this machine keeps, and tell what came of them in bulk.

python edge.py [--storage FILE] [--own FILE] [--visitors N]. Killed at any moment and started again, it loses
nothing and doubles nothing: a stock is asked for under a name that is kept first, so that the same trials
come again, and what was told before is told again without effect. Visitors are drawn: put your own there.
"""

import argparse
import contextlib
import json
import random
import sqlite3
import time
import uuid

import lexbandits as lb

BUYS = {"current": 0.10, "short form": 0.25, "with video": 0.20}
TRIALS = "trials (id text primary key, arm text, until real, key text unique, said text, told int default 0)"


class Edge:
    """Trials of a study in a file of one's own."""

    def __init__(self, study: lb.Study, own: str, stock: int = 1000, window: float = 3600.0) -> None:
        self.study, self.stock, self.window = study, stock, window  # seconds that a visitor has to answer
        self.own = sqlite3.connect(own, isolation_level=None)
        self.own.execute("pragma journal_mode = wal")
        self.own.execute(f"create table if not exists {TRIALS}")
        self.own.execute("create table if not exists asked (name text primary key)")

    def assign(self, key: str) -> str:
        """Return the arm of a visitor, the same one every time; without a trial the best so far."""
        free = "select id from trials where key is null and until > ? order by rowid limit 1"
        for _ in range(2):
            if known := self.own.execute("select arm from trials where key = ?", (key,)).fetchone():
                return str(known[0])
            now = time.time() + self.window
            if self.own.execute(f"update trials set key = ? where id = ({free})", (key, now)).rowcount == 0:
                self.refill()
        known = self.own.execute("select arm from trials where key = ?", (key,)).fetchone()
        return str(known[0]) if known else str(self.study.answer.arm)

    def tell(self, key: str, values: dict[str, float]) -> None:
        """Keep what came of a visitor until the next `flush`."""
        self.own.execute("update trials set said = ? where key = ? and told = 0", (json.dumps(values), key))

    def refill(self) -> None:
        """Ask for a stock; for the same one as before, if that was asked for and never kept."""
        name = self.own.execute("select name from asked").fetchone() or (uuid.uuid4().hex,)
        self.own.execute("insert or ignore into asked values (?)", name)
        trials = self.study.ask_many(self.stock, request=name[0], lease=2 * self.window, wait=0)
        rows = [(t.id, t.arm, t.until.timestamp()) for t in trials if t.id and t.until]
        self.own.execute("begin immediate")
        self.own.executemany("insert or ignore into trials (id, arm, until) values (?, ?, ?)", rows)
        self.own.execute("delete from asked")
        self.own.execute("commit")

    def flush(self, closing: bool = False) -> None:
        """Tell what is known, and give back trials that come too late for a visitor."""
        new = "select id, said from trials where said is not null and told = 0"
        rows = self.own.execute(new).fetchall()
        self.study.tell_many([(trial, json.loads(said)) for trial, said in rows])
        self.own.executemany("update trials set told = 1 where id = ?", [row[:1] for row in rows])
        least = float("inf") if closing else time.time() + self.window
        unused = "select id from trials where key is null and until <= ?"
        for (trial,) in self.own.execute(unused, (least,)).fetchall():
            with contextlib.suppress(lb.ConflictError):  # given back before a kill, or its lease is over
                self.study.release(trial)
            self.own.execute("delete from trials where id = ?", (trial,))


def main() -> None:
    """Serve visitors, and say what came out."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--storage", default="edge.db")
    arguments.add_argument("--own", default="stock.db")
    arguments.add_argument("--visitors", type=int, default=3000)
    given = arguments.parse_args()
    objective = lb.Objective("bought", margin=0.05, noise="bernoulli", if_expired=0)
    study = lb.create_study(
        "shop", given.storage, arms=list(BUYS), objectives=[objective], seed=0, load_if_exists=True
    )
    edge = Edge(study, given.own, stock=200)
    for number in range(given.visitors):
        arm = edge.assign(f"visitor {number}")
        edge.tell(f"visitor {number}", {"bought": int(random.Random(number).random() < BUYS[arm])})
        if number % 100 == 99:
            edge.flush()
            print(f"{number + 1} visitors", flush=True)
    edge.flush(closing=True)
    print(f"{study.answer.arm}: {study.status.results} results, {study.status.open} trials open")


if __name__ == "__main__":
    main()
