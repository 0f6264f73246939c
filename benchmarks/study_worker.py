"""One process of a benchmark of studies: `python study_worker.py ours|optuna TASK STORAGE [N]`.

Prints JSON. Runs in .venv for ours and in .venv-bench for Optuna's; both are asked for the same: ask which
of four arms to measure, tell two values.
"""

import json
import random
import sys
import time

ARMS = ["a", "b", "c", "d"]


class Ours:
    """A study of lexbandits that never ends."""

    def __init__(self, storage):
        import lexbandits as lb

        self.lb, self.storage = lb, storage
        objectives = [
            lb.Objective("correct", tolerance=0, resolution=1e-9, noise="bernoulli"),
            lb.Objective("latency", "minimize", tolerance=1e-9, noise=("bounded", 0, 1)),
        ]
        self.question = {"arms": ARMS, "objectives": objectives, "lease": "10m"}

    def open(self):
        self.study = self.lb.create_study("bench", self.storage, load_if_exists=True, **self.question)

    def one(self):
        trial = self.study.ask()
        self.study.tell(trial, {"correct": random.getrandbits(1), "latency": 0.5})

    def fill(self, n):
        for start in range(0, n, 1000):
            trials = self.study.ask_many(min(1000, n - start))
            self.study.tell_many([(t, {"correct": random.getrandbits(1), "latency": 0.5}) for t in trials])

    def look(self):
        assert self.lb.open_study("bench", self.storage).status.results


class Optuna:
    """The same with Optuna: a categorical parameter, two objectives, drawn at random."""

    def __init__(self, storage):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna, self.storage = optuna, None if storage == "memory" else storage

    def open(self):
        self.study = self.optuna.create_study(
            study_name="bench",
            storage=self.storage,
            load_if_exists=True,
            directions=["maximize", "minimize"],
            sampler=self.optuna.samplers.RandomSampler(),
        )

    def one(self):
        trial = self.study.ask()
        trial.suggest_categorical("arm", ARMS)
        self.study.tell(trial, [random.getrandbits(1), 0.5])

    def fill(self, n):
        arm = {"arm": self.optuna.distributions.CategoricalDistribution(ARMS)}
        create = self.optuna.trial.create_trial
        self.study.add_trials(
            create(params={"arm": ARMS[i % 4]}, distributions=arm, values=[i % 2, 0.5]) for i in range(n)
        )

    def look(self):
        study = self.optuna.load_study(study_name="bench", storage=self.storage)
        assert study.get_trials(deepcopy=False)


def main():
    """Do one task, after a little of it to warm up; times are of the machine's clock."""
    who, task, storage, *rest = sys.argv[1:]
    n = int(rest[0]) if rest else 0
    peer = {"ours": Ours, "optuna": Optuna}[who](storage)
    peer.open()
    if task == "fill":
        peer.fill(n)
        return
    if task == "look":
        start = time.perf_counter()
        peer.look()
        print(json.dumps({"seconds": time.perf_counter() - start}))
        return
    for _ in range(5):
        peer.one()
    print("ready", flush=True)
    sys.stdin.readline()
    started, waits = time.time(), []
    for _ in range(n):
        before = time.perf_counter()
        peer.one()
        waits.append(time.perf_counter() - before)
    print(json.dumps({"started": started, "ended": time.time(), "longest": max(waits)}))


if __name__ == "__main__":
    main()
