"""A worker of the soak: asks, measures and tells until it is killed, and notes what was acknowledged.

It can be killed at any moment: a line of its log is one write.
"""

import json
import os
import random
import time
import traceback
import uuid
import warnings

import lexbandits as lb

ARMS = ["old", "new", "other"]
LEASE = 4.0  # seconds
BATCH = 12


def question():
    """Nobody settles this: the arms are equal, and 0.0001 matters."""
    objectives = [
        lb.Objective("correct", margin=0.0002, noise="bernoulli"),
        lb.Objective("latency", "minimize", margin=0.002, noise=("bounded", 0, 1)),
    ]
    return {"arms": ARMS, "objectives": objectives, "max_failures": 10**6, "lease": LEASE}


def measured(arm, item):
    """The values of an arm on an item: a function of both."""
    luck = random.Random(f"{arm}/{item}")
    return {"correct": luck.getrandbits(1), "latency": luck.random()}


class Worker:
    """One process."""

    def __init__(self, address, study, log):
        self.log = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self.name = f"worker {os.getpid()} {uuid.uuid4().hex[:6]}"
        self.luck, self.calls = random.Random(self.name), 0
        self.late = []  # (when to tell it, trial): after its time
        self.study = self.insist(lb.open_study, study, address)

    def say(self, *words):
        os.write(self.log, (json.dumps(words) + "\n").encode())

    def insist(self, call, *arguments, **fields):
        """Until it is answered: whatever goes wrong with the storage, it may be repeated."""
        while True:
            start = time.monotonic()
            self.say("calls", start)
            try:
                return call(*arguments, **fields)
            except lb.StorageError as error:
                self.say("error", str(error)[:200])
                time.sleep(0.05)
            finally:
                self.say("called", time.monotonic() - start)

    def work(self):
        """For ever."""
        trials = []
        while True:
            self.calls += 1
            results = [(trial, measured(trial.arm, trial.item)) for trial in self.set_apart(trials)]
            key = f"{self.name} {self.calls}"
            how = {"worker": self.name, "request": key}
            outcomes, trials = self.insist(self.study.tell_ask, results, BATCH, **how)
            for (trial, values), outcome in zip(results, outcomes, strict=True):
                self.say("told", trial.id, values, outcome)
            self.say("asked", [trial.id for trial in trials])
            if not trials:  # others have to tell first
                time.sleep(0.2)
            if self.luck.random() < 0.02:
                self.odd(results)

    def set_apart(self, trials):
        """Some fail, some are given back, some are told too late; the others."""
        rest = []
        for trial in trials:
            chance = self.luck.random()
            if chance < 0.004:
                self.say("failed", trial.id, self.insist(self.study.fail, trial, "no luck"))
            elif chance < 0.006:
                self.insist(self.study.release, trial)
            elif chance < 0.010:
                self.late.append((time.monotonic() + 1.2 * LEASE, trial))
            else:
                rest.append(trial)
        due = [trial for at, trial in self.late if at < time.monotonic()]
        self.late = [(at, trial) for at, trial in self.late if at >= time.monotonic()]
        return rest + due

    def odd(self, results):
        """Results told again, a remark, a heartbeat."""
        for trial, values in results[:2]:
            self.say("again", trial.id, self.insist(self.study.tell, trial, values))
        self.insist(self.study.heartbeat, self.name)
        text = uuid.uuid4().hex
        self.say("notes", text)
        try:
            self.study.note(text)
        except lb.StorageError:
            return  # it may be there, and must not be there twice
        self.say("noted", text)


def main(address, study, log):
    """In a process of its own."""
    warnings.simplefilter("ignore")
    worker = None
    try:
        worker = Worker(address, study, log)
        worker.work()
    except BaseException:
        with open(log, "a", encoding="utf-8") as file:
            file.write(json.dumps(["crashed", traceback.format_exc()]) + "\n")
        raise


def warm_up():
    """Compiled code is loaded once, for all who are forked from here."""
    study = lb.create_study("first", "memory", **question())
    trials = study.ask_many(30)
    study.tell_many([(trial, measured(trial.arm, trial.item)) for trial in trials])


if __name__ == "__main__":
    print(__doc__)  # soak.py starts it
elif os.environ.get("LEXBANDITS_SOAK") == "nursery":
    warm_up()
