"""Write the journal that later versions must still open: cd tests; python -m support.write_journal"""

import time
from pathlib import Path

import pandas as pd

import lexbandits as lb
from lexbandits.study.record.events import KINDS
from lexbandits.study.storage.sql import SCHEMA
from support import TESTS
from support.worlds import create, go_on, measure

HERE = TESTS / "study" / "journals"


def write() -> Path:
    """A life with every kind of event."""
    objectives = [
        lb.Objective("correct", tolerance=0.25, noise="bernoulli"),
        lb.Objective("latency", "minimize", unit="ms", tolerance=8, noise=("bounded", 0, 100)),
    ]
    study = create(max_arms=5, budget=5000, lease="1h", objectives=objectives)
    rows = [{"arm": arm, "item": item, **measure(arm, item)} for arm in study.arms for item in ("x", "y")]
    study.import_results(pd.DataFrame(rows), fair=True)
    go_on(study, 30)
    study.ask_many(2, lease=0.001, worker="lost")
    lost = study.ask(lease=0.001)
    time.sleep(0.01)
    study.fail(study.ask(), "crashed")
    study.tell(lost, measure(lost.arm, lost.item))
    study.release(study.ask())
    first, second = study.ask_many(2)
    study.tell(second, measure(second.arm, second.item))
    study.correct(second, {"correct": 1, "latency": 7.5}, "typo")
    study.tell(first, {"correct": 1})
    study.add_arm({"name": "tiny", "size": 3})
    study.withdraw("small", "too old")
    study.restore("small")
    study.amend("latency", tolerance=9)
    study.reorder(["latency", "correct"])
    study.reorder(["correct", "latency"])
    study.pause("lunch")
    study.resume()
    study.set_budget(None)
    study.note("nearly there")
    study.end("tea")
    study.reopen("after tea")
    go_on(study)
    assert study.verify(), study.verify()
    assert {event.kind for event in study.events()} == set(KINDS)
    HERE.mkdir(exist_ok=True)
    return study.export(HERE / f"schema-{SCHEMA}-lexbandits-{lb.__version__}.jsonl")


if __name__ == "__main__":
    print(write())
