"""Questions to ask in tests, and measurements that answer them the same way every time."""

import random

import lexbandits as lb

ACCURACY = {"small": 0.6, "large": 0.9, "cot": 0.9}
LATENCY = {"small": 5.0, "large": 9.0, "cot": 20.0}


def question(**changes):
    """Accuracy first, then latency: "large" is right, by far."""
    words = {
        "arms": list(ACCURACY),
        "objectives": [
            lb.Objective("correct", margin=0.2, noise="bernoulli"),
            lb.Objective("latency", "minimize", unit="ms", margin=4, noise=("bounded", 0, 100)),
        ],
    }
    return {**words, **changes}


def create(storage="memory", name="models", **changes):
    return lb.create_study(name, storage, **{"seed": 0, **question(**changes)})


def measure(arm, item=0):
    """The values of an arm on an item: a function of both."""
    luck = random.Random(f"{arm}/{item}")
    known = ACCURACY.get(arm, 0.3)
    latency = LATENCY.get(arm, 30.0) * (0.5 + luck.random())
    return {"correct": int(luck.random() < known), "latency": latency}


def go_on(study, results=10**6):
    """Ask and tell until it is finished or `results` are told."""
    for count in range(results):
        try:
            trial = study.ask()
        except lb.StudyFinished:
            return count
        study.tell(trial, measure(trial.arm, trial.item))
    return results


def kinds(study):
    return [event.kind for event in study.events()]


X = lb.Objective("x", margin=0.2, noise="bernoulli")


def easy(storage="memory", **changes):
    """One arm always succeeds, the other never does."""
    return lb.create_study(
        changes.pop("name", "easy"), storage, arms=["a", "b"], objectives=[X], **{"seed": 0, **changes}
    )


def tried(arm):
    return {"x": int(arm == "a")}


def work(study, most=5_000):
    """Measure until nothing is handed out: how many results, and why."""
    for told in range(most):
        try:
            trial = study.ask(worker="alive", wait=0)
        except (lb.StudyWaiting, lb.StudyFinished) as stop:
            return told, stop
        study.tell(trial, tried(trial.arm))
    raise AssertionError(f"{most} results, and no end")
