"""One process of a benchmark of studies: `python study_worker.py ours|optuna|nsga TASK STORAGE [N]`.

Prints JSON. Runs in .venv for ours and in .venv-bench for Optuna's; both are asked for the same: ask which
of four arms to measure, tell two values.
"""

import json
import os
import random
import sys
import time

os.environ["LEXBANDITS_JIT"] = "1"  # what goes on for long is compiled
ARMS = ["a", "b", "c", "d"]


class Ours:
    """A study of lexbandits that never ends."""

    def __init__(self, storage):
        import lexbandits as lb

        self.lb, self.storage = lb, storage
        objectives = [
            lb.Objective("correct", margin=1e-9, tie=0, noise="bernoulli"),
            lb.Objective("latency", "minimize", margin=2e-9, noise=("bounded", 0, 1)),
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

    def warm(self):
        """Load what every process loads once."""
        self.study = self.lb.create_study("warm", **self.question)
        self.fill(100)
        assert self.study.status.results
        self.one()
        assert self.lb.list_studies(self.storage)

    def look(self, read_only=False):
        assert self.lb.open_study("bench", self.storage, read_only).status.results

    def glance(self):
        """As `look`, but leaves no cache."""
        self.look(read_only=True)


class Optuna:
    """The same with Optuna: a categorical parameter, two objectives, drawn at random."""

    sampler = "RandomSampler"

    def __init__(self, storage):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        self.optuna, self.storage = optuna, None if storage == "memory" else storage
        if storage.startswith("sqlite:"):
            self.storage += "?timeout=600"  # it gives up after five seconds, also where it is only its turn

    def open(self):
        self.study = self.optuna.create_study(
            study_name="bench",
            storage=self.storage,
            load_if_exists=True,
            directions=["maximize", "minimize"],
            sampler=getattr(self.optuna.samplers, self.sampler)(),
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

    def warm(self):
        self.study = self.optuna.create_study(directions=["maximize", "minimize"])
        self.one()
        assert self.optuna.get_all_study_names(self.storage)

    def look(self):
        study = self.optuna.load_study(study_name="bench", storage=self.storage)
        assert study.get_trials(deepcopy=False)


class Nsga(Optuna):
    """With the sampler that Optuna takes for two objectives unless told otherwise."""

    sampler = "NSGAIISampler"


def main():
    """Do one task, after a little of it to warm up; times are of the machine's clock."""
    side, task, storage, *rest = sys.argv[1:]
    n = int(rest[0]) if rest else 0
    peer = {"ours": Ours, "optuna": Optuna, "nsga": Nsga}[side](storage)
    if task in ("look", "glance"):
        peer.warm()
        start = time.perf_counter()
        getattr(peer, task)()
        print(json.dumps({"seconds": time.perf_counter() - start}))
        return
    peer.open()
    if task == "fill":
        peer.fill(n)
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
    if "--help" in sys.argv:
        sys.exit(print(__doc__))
    main()
