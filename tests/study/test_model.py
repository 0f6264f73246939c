"""A study does what docs/studies.md says, whatever is called in whatever order: the same on every storage."""

import socket
import threading

import pandas as pd
import pytest
import uvicorn
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    rule,
    run_state_machine_as_test,
)

from lexbandits.service.app import make_app
from lexbandits.service.auth import Tokens, new_secret
from lexbandits.service.registry import StudyRegistry
from lexbandits.study.storage.contract import open_storage
from lexbandits.study.storage.postgres import PostgresStorage
from lexbandits.study.storage.sqlite import SqliteStorage
from support.lockstep import Clock, Home, Lockstep, Ref

CORRECT = {"name": "correct", "margin": 0.2, "noise": "bernoulli"}
LATENCY = {"name": "latency", "direction": "minimize", "margin": 4, "noise": ["bounded", 0, 100]}
SIZE = {"name": "size", "direction": "minimize", "noise": "exact"}
OBJECTIVES = [
    [CORRECT, LATENCY],
    [{**CORRECT, "if_expired": 0}, {**LATENCY, "if_failed": 100}],
    [{**CORRECT, "if_failed": 0}],
    [SIZE, CORRECT],  # ends after a pass or two
    [{"name": "correct", "margin": 1.8, "noise": ["sub_gaussian", 0.2]}],  # ends soon
]
ITEMS = ["one", "two", "three", "four"]
ARMS = ["a", "b", "c", "d"]

leases = st.sampled_from([None, 20, 20])
workers = st.sampled_from([None, "w1", "w1", "w2"])
requests = st.sampled_from([None, None, "r1", "r2", "r3"])
visitors = st.sampled_from(["ann", "bob", "c", "ü\0"])
luck = st.integers(0, 99)
decisions = st.sampled_from(
    [
        *[(call, [arm], {}) for call in ("restore", "restore", "add_arm") for arm in [*ARMS, "e"]],
        *[("withdraw", [arm, "so"], {}) for arm in [*ARMS, "e"]],
        *[(call, ["so"], {}) for call in ("pause", "end", "reopen", "reopen", "note")],
        *[("resume", [], {})] * 3,
        *[("set_budget", [budget], {}) for budget in (None, None, 3, 8)],
    ]
)
STEPS = [
    *[("tell",)] * 2, *[("fail", "broken")] * 3, *[("release",)] * 2, ("expire",), *[("correct", "typo")] * 2,
    *[("wait", 15)] * 2, ("wait", 20), ("wait", 60), *[("heartbeat", "w1")] * 2, *[("tell the last",)] * 2,
    ("withdraw its arm",), *[("restore its arm",)] * 2, *[("ask_many", 2)] * 3,
    ("pause", "so"), *[("resume",)] * 2, ("end", "so"), ("reopen", "so"),
]  # fmt: skip


class Scenario(RuleBasedStateMachine):
    """Calls at random."""

    clock: Clock
    homes: tuple
    share = 4  # of so many scenarios one is played on every storage

    @initialize(
        objectives=st.sampled_from(OBJECTIVES),
        items=st.sampled_from([None, None, ITEMS]),
        budget=st.sampled_from([None, 4, 10]),
        most=st.integers(2, 3),
        failures=st.integers(1, 3),
        pilot=st.sampled_from([False, False, False, True]),
        first=st.integers(0, 4),
        unit=st.integers(0, 10**6),
    )
    def begin(self, objectives, items, budget, most, failures, pilot, first, unit):
        words = {
            "arms": ARMS[:most],
            "max_arms": most + 1,
            "objectives": objectives,
            "items": items,
            "scope": "population",
            "seed": 0,
            "budget": budget,
            "max_failures": failures,
            "lease": 60,
        }
        everywhere = unit % self.share == self.share - 1
        homes = [home for home in self.homes if everywhere or home.kind == "sqlite"]
        self.names = [objective["name"] for objective in objectives]
        frame = None
        if pilot:
            rows = [("a", "one", 1), ("b", "one", 0), ("b", "two", 0)]
            frame = pd.DataFrame(rows, columns=["arm", "item", self.names[0]])
        self.all = Lockstep(self.clock, homes, words, frame)
        self.all.do("ask_many", first)

    def trial(self, which):
        """One of those handed out, mostly an open one; now and then one that never was."""
        trials = self.all.model.trials
        some = self.all.model.of("open") if which % 3 else trials
        if not trials or which == 98:
            return Ref(len(trials) + 5)
        return Ref((some or trials)[-1 - which % len(some or trials)].number)

    def arm_of(self, number):
        model = self.all.model
        return model.arms[model.trials[number].arm] if number < len(model.trials) else "nobody"

    def values(self, number, which):
        """Values as measured; some are missing, some are another arm's exact size."""
        values = {"correct": which % 2, "latency": float(which % 5)}
        if number < len(self.all.model.trials):
            values["size"] = float(self.all.model.trials[number].arm) + (which % 10 == 9)
        values = {name: values.get(name) for name in self.names}
        if which % 7 == 3:
            values.pop(self.names[0])
        return {} if which % 8 == 5 else values

    # --- measuring

    @rule(n=st.integers(1, 4), lease=leases, worker=workers, request=requests)
    def ask_many(self, n, lease, worker, request):
        self.all.do("ask_many", n, lease=lease, worker=worker, request=request)

    @rule(worker=workers, request=requests)
    def ask(self, worker, request):
        self.all.do("ask", worker=worker, request=request)

    @rule(key=visitors, lease=leases, worker=workers)
    def assign(self, key, lease, worker):
        self.all.do("assign", key, lease=lease, worker=worker)

    @rule(key=st.sampled_from(["ann", "bob", None]))
    def forget(self, key):
        self.all.do("forget", key)

    @rule(which=luck, value=luck, call=st.sampled_from(["tell", "tell", "record"]), partial=st.booleans())
    def tell(self, which, value, call, partial):
        number = self.trial(which)
        remote = any(copy.kind == "http" for copy in self.all.copies)
        values = self.values(number, value)
        if partial:
            values = dict(list(values.items())[value % 3 :][: 1 + value % 2])
        self.all.do("tell" if remote else call, number, values, partial)

    @rule(which=st.lists(luck, min_size=1, max_size=4), value=luck)
    def tell_many(self, which, value):
        numbers = [self.trial(each) for each in which]
        self.all.do("tell_many", [(n, self.values(n, value + i)) for i, n in enumerate(numbers)])

    @rule(which=luck, value=luck, n=st.integers(0, 2), request=requests)
    def tell_ask(self, which, value, n, request):
        number = self.trial(which)
        self.all.do("tell_ask", [(number, self.values(number, value))], n, request=request)

    @rule(which=luck, values=st.sampled_from([{"speed": 1}, {"correct": 2}, {"latency": -1.0}]))
    def tell_nonsense(self, which, values):
        number = self.trial(which)
        if number < len(self.all.model.trials) and self.all.model.trials[number].state != "imported":
            self.all.do("tell", number, values)

    @rule(which=luck, interrupted=st.sampled_from([False, False, True]))
    def fail(self, which, interrupted):
        self.all.do("fail", self.trial(which), "broken", interrupted=interrupted)

    @rule(which=luck, call=st.sampled_from(["release", "release", "expire"]))
    def give_back(self, which, call):
        self.all.do(call, self.trial(which))

    @rule(which=luck, value=luck)
    def correct(self, which, value):
        number = self.trial(which)
        self.all.do("correct", number, self.values(number, value), "typo")

    @rule(worker=st.sampled_from(["w1", "w2"]))
    def heartbeat(self, worker):
        self.all.do("heartbeat", worker)

    @rule(seconds=st.sampled_from([1, 15, 20, 70]))
    def wait(self, seconds):
        self.all.wait(seconds)

    @rule(which=luck, value=luck, steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=5))
    def dwell_on(self, which, value, steps):
        """Several things about one trial."""
        number = self.trial(which)
        for i, (name, *arguments) in enumerate(steps):
            if name == "wait":
                self.all.wait(*arguments)
            elif name in ("tell", "correct"):
                self.all.do(name, number, self.values(number, value + i // 2), *arguments)
            elif name in ("fail", "release", "expire"):
                self.all.do(name, number, *arguments)
            elif name == "withdraw its arm":
                self.all.do("withdraw", self.arm_of(number), "so")
            elif name == "restore its arm":
                self.all.do("restore", self.arm_of(number))
            elif name == "tell the last":
                last = self.trial(1)
                self.all.do("tell", last, self.values(last, value))
            else:
                self.all.do(name, *arguments)

    @rule(which=luck, value=luck, steps=st.lists(st.sampled_from(STEPS), min_size=2, max_size=5))
    def dwell_on_another(self, which, value, steps):
        self.all.hand = 1 - self.all.hand
        Scenario.dwell_on(self, which, value, steps)

    @rule()
    def another_process(self):
        self.all.hand = 1 - self.all.hand

    @rule()
    def look(self):
        self.all.look()

    # --- deciding

    @rule(decision=decisions)
    def decide(self, decision):
        name, arguments, words = decision
        self.all.do(name, *arguments, **words)

    @rule(margin=st.sampled_from([0.1, 0.4]), last=st.booleans(), again=st.booleans())
    def change_rules(self, margin, last, again):
        if again:
            self.all.do("amend", self.names[-1] if last else self.names[0], margin=margin)
        else:
            self.all.do("reorder", self.names[::-1] if last else self.names)

    def teardown(self):
        if hasattr(self, "all"):
            self.all.finish()


@pytest.fixture
def clock():
    made = Clock(SqliteStorage, PostgresStorage)
    yield made
    made.restore()


@pytest.fixture
def sqlite(tmp_path):
    address = f"sqlite:///{tmp_path}/study.db?synchronous=OFF"
    storage = open_storage(address)
    yield Home("sqlite", storage, address, address)
    storage.close()


@pytest.fixture
def database(postgres):
    storage = open_storage(postgres)
    yield Home("postgres", storage, postgres, postgres)
    storage.close()


@pytest.fixture
def http(tmp_path):
    """A service in a thread, whose storage has the same clock."""
    address = f"sqlite:///{tmp_path}/service.db?synchronous=OFF"
    registry, secret = StudyRegistry(address), new_secret()
    app = make_app(registry, Tokens(registry.reads, secret, registry.notes))
    service = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
    with socket.create_server(("127.0.0.1", 0)) as bound:
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        thread = threading.Thread(target=service.run, args=([bound],))
        thread.start()
        link = f"http://127.0.0.1:{bound.getsockname()[1]}/#token={secret}"
        yield Home("http", link, link, address)
        service.should_exit = True
        thread.join()


@pytest.fixture
def play(clock, sqlite, database, http):
    """Scenarios on memory and SQLite, and so many of them on every storage."""

    def go(scenarios, calls, share):
        words = {"clock": clock, "homes": (sqlite, database, http), "share": share}
        how = settings(max_examples=scenarios, stateful_step_count=calls, report_multiple_bugs=False)
        run_state_machine_as_test(type("Scenario", (Scenario,), words), settings=how)

    return go


def test_a_study_is_its_model_on_every_storage(play):
    """PostgreSQL and the service in one of 14 scenarios: a call over http takes as long as ten others."""
    play(70, 30, share=14)


@pytest.mark.slow
def test_a_study_is_its_model_on_every_storage_for_long(play):
    play(1000, 60, share=10)


GOOD, BAD = {"correct": 1}, {"correct": 0}
BY_HAND = {  # what chance finds too seldom
    "a heartbeat keeps a trial": [
        ("ask", {"lease": 20, "worker": "w1"}),
        ("wait", 15),
        ("heartbeat", "w1"),
        ("wait", 15),
        ("tell", Ref(0), GOOD),
    ],
    "a result breaks a row of failures": [
        ("ask_many", 8),
        ("tell", Ref(1), GOOD),
        ("fail", Ref(0), "no"),
        ("tell", Ref(2), GOOD),
        ("fail", Ref(4), "no"),
        ("look",),
        ("fail", Ref(6), "no"),
        ("look",),
    ],
    "a corrected result is judged anew": [
        ("ask_many", 4),
        ("look",),
        ("tell", Ref(2), GOOD),
        ("look",),
        ("correct", Ref(2), BAD, "typo"),
        ("tell", Ref(2), GOOD),
        ("tell_many", [(Ref(0), BAD), (Ref(1), BAD), (Ref(3), BAD)]),
        ("correct", Ref(2), GOOD, "no typo"),
    ],
    "a restored arm begins anew": [
        ("ask_many", 6),
        ("tell", Ref(1), GOOD),
        ("fail", Ref(0), "no"),
        ("fail", Ref(2), "no"),
        ("restore", "a"),
        ("ask_many", 4),
        ("fail", Ref(6), "no"),
        ("look",),
        ("ask", {}),
    ],
    "nobody asks far ahead of a place that is open": [
        ("ask", {"lease": 20, "worker": "dead"}),
        *[
            call
            for i in range(30)
            for call in (
                ("ask_many", 5),
                ("tell_many", [(Ref(5 * i + j), {"correct": (5 * i + j) // 2 % 2}) for j in range(1, 6)]),
            )
        ],
        ("ask", {}),  # who has it may have paused for a moment
        ("wait", 6),
        ("ask", {}),
        ("assign", "ann"),
        ("look",),
        ("wait", 20),
        ("ask", {}),
    ],
}


@pytest.mark.parametrize("calls", BY_HAND.values(), ids=BY_HAND)
def test_by_hand(calls, clock, sqlite, database, http):
    words = {
        "arms": ["a", "b"],
        "objectives": [{**CORRECT, "margin": 0.02}],
        "max_failures": 2,
        "lease": 60,
    }
    together = Lockstep(clock, [sqlite, database, http], words)
    for name, *arguments in calls:
        if name in ("wait", "look"):
            getattr(together, name)(*arguments)
        elif arguments and isinstance(arguments[-1], dict) and name == "ask":
            together.do(name, **arguments[0])
        else:
            together.do(name, *arguments)
    together.finish()


def test_what_was_told_in_part_stays(clock, sqlite, database, http):
    objectives = [{**CORRECT, "if_expired": 0}, {**LATENCY, "if_failed": 100}]
    words = {"arms": ["a", "b"], "objectives": objectives, "max_failures": 1, "lease": 20}
    together = Lockstep(clock, [sqlite, database, http], words)
    together.do("ask_many", 6)
    for number, values in (
        (0, {"correct": 1}),
        (1, {"latency": 5.0}),
        (2, {"correct": 1}),
        (2, {"correct": 1}),
    ):
        together.do("tell", Ref(number), values, True)
    together.do("tell", Ref(2), {"correct": 0}, True)
    together.do("tell", Ref(2), {}, True)
    together.do("release", Ref(2))
    together.do("tell", Ref(2), {"latency": 3.0}, True)
    together.do("fail", Ref(0), "the rest never came")
    together.look()
    together.do("tell_many", [(Ref(3), {"correct": 1, "latency": 4.0}), (Ref(4), {"correct": 1})])
    together.do("tell", Ref(5), {"latency": 1.0}, True)
    together.wait(25)
    together.do("tell", Ref(5), {"correct": 1})
    together.look()
    model = together.model
    assert [trial.state for trial in model.trials[:6]] == [
        "failed",
        "expired",
        "told",
        "told",
        "told",
        "late",
    ]
    means = model.means()
    assert means["a", "latency"] == (100 + 3) / 2
    assert means["b", "latency"] == (5 + 4 + 1) / 3
    assert means["b", "correct"] == 1 / 3
    together.finish()
