"""A study is a function of its journal: any interleaving replays to the same state, on every storage."""

import random
import secrets
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from worlds import create, measure, question

import lexbandits as lb
from lexbandits.study.fold import Fold
from lexbandits.study.ledger import Ledger
from lexbandits.study.memory import MemoryStorage
from lexbandits.study.storage import open_storage

ACTIONS = [
    *["ask"] * 4, *["ask_many"] * 3, *["tell"] * 6, *["tell_many"] * 2, "tell_ask", "fail", "release", "late",
    "expire", "repeat", *["correct"] * 2, "amend", "amend_resolution", "reorder", "add_arm", "withdraw",
    "restore", "pause", *["resume"] * 3, "budget", "end", *["reopen"] * 2, "note", "heartbeat",
]  # fmt: skip


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
        self.open.append(self.study.ask(worker=luck.choice(["w1", "w2", None]), lease="1h"))

    def ask_many(self, luck):
        self.open += self.study.ask_many(luck.randrange(1, 5), lease="1h", request=luck.choice([None, "r"]))

    def _pop(self, luck):
        return self.open.pop(luck.randrange(len(self.open))) if self.open else self.study.ask(lease="1h")

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
        self.open += self.study.tell_ask([(trial, self.values(trial))], 2, lease="1h")[1]

    def fail(self, luck):
        self.study.fail(self._pop(luck), "no")

    def release(self, luck):
        self.study.release(self._pop(luck))

    def expire(self, luck):
        self.expired += self.study.ask_many(2, lease=0.001)
        self.tick()
        self.open.append(self.study.ask(lease="1h"))

    def late(self, luck):
        if self.expired:
            trial = self.expired.pop()
            assert self.study.tell(trial, self.values(trial)) == "late"

    def repeat(self, luck):
        if self.done:
            trial = luck.choice(self.done)
            assert self.study.tell(trial, self.values(trial)) == "repeated"

    def correct(self, luck):
        trial = (self.done or self.open or [self.study.ask(lease="1h")])[-1]  # the likeliest not to be folded
        self.study.correct(trial, measure(trial.arm, "corrected"), "typo")
        self.done = [other for other in self.done if other != trial]

    def amend(self, luck):
        self.study.amend("latency", tolerance=luck.choice([1, 2, 5]))

    def amend_resolution(self, luck):
        self.study.amend("correct", resolution=luck.choice([0.05, 0.2]))

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


def script_of(seed, length):
    luck = random.Random(seed)
    return [(luck.choice(ACTIONS), luck.randrange(10**6)) for _ in range(length)]


# from a seed, since lists that Hypothesis draws repeat few actions; a failure still shrinks to few
SCRIPTS = st.builds(script_of, st.integers(0, 10**6), st.integers(1, 120))
GENTLE = settings(suppress_health_check=list(HealthCheck), max_examples=60)
SLOWLY = settings(GENTLE, max_examples=25)


def in_memory():
    """A study in memory whose clock only moves when told to."""
    storage = MemoryStorage()
    now = [1e9]
    storage.time = lambda: now[0]

    def tick():
        now[0] += 1.0

    return Player(create(storage, max_arms=4), tick)


def same(study, other):
    mine, theirs = study._journal.fold(), other._journal.fold()
    assert mine.ledger == theirs.ledger
    assert mine.policy == theirs.policy
    assert study.answer == other.answer
    assert study.status == other.status
    assert study.trials().equals(other.trials())


@GENTLE
@given(script=SCRIPTS)
def test_replay_is_recovery(script):
    """The fold kept between calls, the fold of the journal and the fold of the cache are the same."""
    study = in_memory().play(script)
    again = lb.open_study("models", study._journal.storage)
    same(study, again)
    ledger = study._journal.fold().ledger
    cached = Ledger.from_bytes(ledger.to_bytes())
    assert cached == ledger
    assert Fold(cached).policy == study.policy
    assert study.verify().problems == ()


@SLOWLY
@given(script=SCRIPTS)
def test_a_journal_means_the_same_in_every_storage(script, databases):
    study = in_memory().play(script)
    events = list(study.events())
    for storage in databases:
        name = secrets.token_hex(8)
        row, _ = storage.create(name, "", events[0].payload)
        with storage.transaction(row.id) as transaction:
            if events[1:]:
                transaction.write(events[1:], [], [], [])
        moved = lb.open_study(name, storage)
        fold = moved._journal.fold()
        fold.ledger.at = study._journal.fold().ledger.at  # the first event keeps its own time
        assert fold.ledger == study._journal.fold().ledger
        assert fold.policy == study.policy
        assert moved.answer == study.answer
        assert moved.trials().equals(study.trials())


@SLOWLY
@given(script=SCRIPTS)
def test_every_storage_lives_the_same_life(script, databases):
    """The same calls give the same events, but for nonces and times."""
    lives = []
    for storage in [MemoryStorage(), *databases]:
        study = create(storage, name=secrets.token_hex(8), max_arms=4)
        Player(study, lambda: time.sleep(0.003)).play(script)
        lives.append([(e.kind, e.trial, e.arm, plain(e.payload), e.by) for e in study.events(since=1)])
        same(study, lb.open_study(study.name, storage))
    assert lives[0] == lives[1] == lives[2]


def plain(payload):
    return {key: value for key, value in payload.items() if key not in ("nonce", "until")}


@pytest.fixture(scope="session")
def databases(tmp_path_factory, server):
    folder = tmp_path_factory.mktemp("sqlite")
    opened = [
        open_storage(f"sqlite:///{folder}/s.db?synchronous=OFF"),
        open_storage(server.database("replay")),
    ]
    yield opened
    for storage in opened:
        storage.close()


@GENTLE
@given(luck=st.randoms(use_true_random=False))
def test_the_order_of_telling_does_not_matter(luck):
    """Whatever comes when, the places decide: the same results in any order leave the same policy."""
    policies = []
    for shuffled in (False, True):
        study = create()
        trials = study.ask_many(45)
        if shuffled:
            luck.shuffle(trials)
        for trial in trials:
            study.tell(trial, measure(trial.arm, trial.item))
        policies.append(study.policy)
        assert study.status.waiting == 0
    assert policies[0] == policies[1]


def test_a_spec_reads_back_equal():
    study = create(max_arms=7, items=["a", 1, 2.5], budget=9, lease="90s", **{})
    spec = study._journal.fold().ledger.asked_spec
    assert type(spec).from_json(spec.as_json()) == spec
    assert question()["arms"] == list(study.arms)
