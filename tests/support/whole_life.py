"""A study in which everything has happened that can happen to one that is about a population."""

import time

import pandas as pd

import lexbandits as lb
from support.questions import create, go_on, measure


def whole_life(storage="memory"):
    """A life with every kind of event but `retried`, which only lists have."""
    objectives = [
        lb.Objective("correct", margin=0.7, noise="bernoulli"),
        lb.Objective("latency", "minimize", unit="ms", margin=40, noise=("bounded", 0, 100)),
    ]
    study = create(storage, max_arms=5, budget=5000, lease="1h", objectives=objectives)
    rows = [{"arm": arm, "item": item, **measure(arm, item)} for arm in study.arms for item in ("x", "y")]
    study.import_results(pd.DataFrame(rows), fair=True)
    go_on(study, 8)
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
    study.amend("latency", margin=50)
    study.reorder(["latency", "correct"])
    study.reorder(["correct", "latency"])
    study.pause("lunch")
    study.resume()
    study.set_budget(None)
    study.note("nearly there")
    study.end("tea")
    study.reopen("after tea")
    part = study.ask()
    study.tell(part, {"correct": 1}, partial=True)
    study.tell(part, {"latency": 5.0})
    go_on(study)
    return study
