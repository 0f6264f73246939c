"""Lives of a study, drawn from a seed: asks, tells, failures, expiries, changes of the rules."""

import random

import pandas as pd

import lexbandits as lb
from lexbandits.study.storage.memory import MemoryStorage
from support.questions import create, go_on, measure

ACTIONS = [
    *["ask"] * 4, *["ask_many"] * 3, *["tell"] * 6, *["tell_many"] * 2, "tell_ask", "fail", "release", "late",
    "expire", "repeat", *["correct"] * 2, "amend", "amend_tie", "reorder", "add_arm", "withdraw",
    "restore", "pause", *["resume"] * 3, "budget", "end", *["reopen"] * 2, "note", "heartbeat",
]  # fmt: skip


ON_A_LIST = [*ACTIONS, *["retry"] * 2, *["take_over"] * 2, "late"]


class Player:
    """Plays a list of drawn actions on a study; whatever a study refuses is part of the game."""

    def __init__(self, study, tick):
        self.study, self.tick = study, tick
        self.open, self.done, self.expired = [], [], []

    def play(self, actions):
        for action, luck in actions:
            try:
                getattr(self, action)(random.Random(luck))
            except lb.StudyError:
                continue
        return self.study

    def values(self, trial):
        values = measure(trial.arm, trial.item)
        if trial.number % 7 == 3:
            values["correct"] = None
        return {} if trial.number % 11 == 5 else values

    def ask(self, luck):
        self.open.append(self.study.ask(worker=luck.choice(["w1", "w2", None]), lease="1h", wait=0))

    def ask_many(self, luck):
        self.open += self.study.ask_many(
            luck.randrange(1, 5), lease="1h", request=luck.choice([None, "r"]), wait=0
        )

    def _pop(self, luck):
        return (
            self.open.pop(luck.randrange(len(self.open))) if self.open else self.study.ask(lease="1h", wait=0)
        )

    def tell(self, luck):
        trial = self._pop(luck)
        self.study.tell(trial, self.values(trial))
        self.done.append(trial)

    def tell_many(self, luck):
        trials = [self._pop(luck) for _ in range(3)]
        self.study.tell_many([(trial, self.values(trial)) for trial in trials])
        self.done += trials

    def tell_ask(self, luck):
        trial = self._pop(luck)
        self.open += self.study.tell_ask([(trial, self.values(trial))], 2, lease="1h", wait=0)[1]

    def fail(self, luck):
        self.study.fail(self._pop(luck), "no")

    def release(self, luck):
        self.study.release(self._pop(luck))

    def expire(self, luck):
        self.expired += self.study.ask_many(2, lease=0.001, wait=0)
        self.tick()
        self.open.append(self.study.ask(lease="1h", wait=0))

    def late(self, luck):
        if self.expired:
            trial = self.expired.pop()
            outcome = self.study.tell(trial, self.values(trial))
            assert outcome == "late" or self.study.spec.get("scope") == "items"

    def repeat(self, luck):
        if self.done:
            trial = luck.choice(self.done)
            assert self.study.tell(trial, self.values(trial)) == "repeated"

    def correct(self, luck):
        trial = (self.done or self.open or [self.study.ask(lease="1h", wait=0)])[
            -1
        ]  # the likeliest not to be folded
        self.study.correct(trial, measure(trial.arm, "corrected"), "typo")
        self.done = [other for other in self.done if other != trial]

    def amend(self, luck):
        self.study.amend("latency", margin=luck.choice([2, 4, 10]))

    def amend_tie(self, luck):
        tie = next(o.tie_in_unit for o in self.study.objectives if o.name == "correct")
        self.study.amend("correct", margin=round(tie + luck.choice([0.05, 0.2]), 9), tie=tie)

    def reorder(self, luck):
        self.study.reorder(luck.sample(["correct", "latency"], 2))

    def add_arm(self, luck):
        self.study.add_arm(luck.choice(["fourth", "fifth"]))

    def withdraw(self, luck):
        self.study.withdraw(luck.choice(["small", "large", "fourth"]), "so")

    def restore(self, luck):
        self.study.restore(luck.choice(["small", "large", "fourth"]))

    def pause(self, luck):
        self.study.pause("tea")

    def resume(self, luck):
        self.study.resume()

    def budget(self, luck):
        self.study.set_budget(luck.choice([None, 10, 200]))

    def end(self, luck):
        self.study.end("so")

    def reopen(self, luck):
        self.study.reopen("so")

    def note(self, luck):
        self.study.note("so")

    def heartbeat(self, luck):
        self.study.heartbeat("w1")

    def retry(self, luck):
        self.study.retry()

    def take_over(self, luck):
        item = luck.choice(self.study.spec["items"])
        arm = luck.choice(["small", "large", "fourth"])
        self.study.import_results(pd.DataFrame([{"arm": arm, "item": item, **measure(arm, item)}]))


def script_of(seed, length, actions=ACTIONS):
    luck = random.Random(seed)
    return [(luck.choice(actions), luck.randrange(10**6)) for _ in range(length)]


def in_memory(**changes):
    """A study in memory whose clock only moves when told to."""
    storage = MemoryStorage()
    now = [1e9]
    storage.time = lambda: now[0]

    def tick():
        now[0] += 1.0

    return Player(create(storage, **{"max_arms": 4, **changes}), tick)


CORRECT = lb.Objective("correct", margin=0.2, noise="bernoulli")
LATENCY = lb.Objective("latency", "minimize", unit="ms", margin=4, noise=("bounded", 0, 100))
QUESTIONS = {
    "plain": {},
    "open": {"preregistered": False, "delta": 0.1},
    "limit": {"objectives": [lb.Objective("latency", "minimize", at_most=19, noise=("bounded", 0, 100),
                                          slack=4), CORRECT]},
    "unmet": {"objectives": [lb.Objective("correct", at_least=0.89, noise="bernoulli", slack=0.1),
                             LATENCY],
              "if_infeasible": "stop"},
    "gaussian": {"objectives": [lb.Objective("latency", "minimize", margin=6, noise="gaussian"), CORRECT]},
    "items": {"items": [f"item {number}" for number in range(300)], "scope": "population", "seed": 0},
    "agreed": {"objectives": [lb.Objective("correct", margin=0.4, noise="bernoulli", if_failed=0),
                              lb.Objective("latency", "minimize", margin=8, noise=("bounded", 0, 100),
                                           if_missing="worst")]},
    "fragile": {"max_failures": 2, "budget": 900},
}  # fmt: skip
LIVES = [(question, seed) for question in QUESTIONS for seed in range(6)]


def live(question, seed):
    """A drawn life; every second one goes on until it ends."""
    player = in_memory(**QUESTIONS[question])
    study = player.play(script_of(f"{question} {seed}", 30 + 20 * seed))
    if seed % 2:
        for rescue in (study.resume, lambda: study.set_budget(None), lambda: study.reopen("continue")):
            try:
                rescue()
            except lb.StudyError:
                continue
        for _ in range(4000):  # seconds: what is under way runs out
            player.tick()
        try:
            go_on(study, 1500)
        except lb.StudyPaused:
            return study
    return study
