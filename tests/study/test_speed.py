"""What a call costs the database, and an old journal to open: counted where possible, not timed."""

import time

import pytest

import lexbandits as lb
from lexbandits.study.core import journal as journal_module
from lexbandits.study.core.events import Event
from lexbandits.study.core.projection import Projection
from lexbandits.study.storage.contract import Entries
from support.journals import journal_of, replay_of, storage_of
from support.questions import create, go_on, measure

GOOD = {"correct": 1, "latency": 10}


class Counted:
    """A connection or a cursor that counts; whatever else is asked goes to the real one."""

    def __init__(self, real, seen):
        self._real, self._seen = real, seen

    def execute(self, statement, *values):
        self._seen.append(" ".join(statement.split()))
        return self._real.execute(statement, *values)

    def cursor(self):
        return Counted(self._real.cursor(), self._seen)

    def __getattr__(self, name):
        return getattr(self._real, name)


@pytest.fixture
def counted(address, monkeypatch):
    """A study and the list of what its connection executes."""
    study, seen = create(address), []
    storage = storage_of(study)
    real = storage._connect
    monkeypatch.setattr(storage, "_connect", lambda: Counted(real(), seen))
    storage.close()
    study.tell(study.ask(), GOOD)
    seen.clear()
    return study, seen


def cost(seen):
    """Statements and commits; BEGIN is part of its commit, but for the lock that PostgreSQL takes with it."""
    commits = seen.count("COMMIT")
    lock = sum("pg_advisory" in statement for statement in seen)
    own = [s for s in seen if s != "COMMIT" and not s.startswith("BEGIN")]
    return len(own) + lock, commits


def test_statements_of_ask_and_tell(counted):
    study, seen = counted
    study.tell(study.ask(worker="w"), GOOD)
    statements, commits = cost(seen)
    assert statements <= 8, seen
    assert commits == 2


def test_statements_of_tell_ask(counted):
    study, seen = counted
    trial = study.ask()
    seen.clear()
    study.tell_ask([(trial, GOOD)])
    statements, commits = cost(seen)
    assert statements <= 5, seen
    assert commits == 1


def test_many_results_are_one_transaction(counted):
    study, seen = counted
    trials = study.ask_many(700)
    seen.clear()
    study.tell_many([(trial, measure(trial.arm, trial.item)) for trial in trials])
    assert cost(seen) <= (6, 1)


# --- the cache


def test_the_cache_saves_reading_and_may_be_lost(address, monkeypatch):
    study = create(address)
    go_on(study, 60)
    study.withdraw("cot", "so")
    go_on(study, 20)
    monkeypatch.setattr(journal_module, "CACHE_EVERY", 50)
    lb.open_study("models", address)  # puts it aside
    go_on(study, 4)
    asked = []
    storage = storage_of(lb.open_study("models", address))
    real = storage.read
    monkeypatch.setattr(
        storage, "read", lambda s, since, most=None: asked.append(since) or real(s, since, most)
    )
    again = lb.open_study("models", storage)
    assert asked[0] > 100
    assert replay_of(again).projection == replay_of(study).projection
    assert again.policy == study.policy
    storage.put_cache(journal_of(study).row.id, 1, Projection.to_bytes(replay_of(create()).projection))
    assert lb.open_study("models", storage).policy == study.policy, "one of another journal is not believed"
    storage.transact(1, lambda transaction: transaction.cursor.execute("DELETE FROM lexbandits_history"))
    assert lb.open_study("models", storage).policy == study.policy


@pytest.mark.slow
def test_a_million_events_open_in_seconds(tmp_path):
    address = f"sqlite:///{tmp_path}/s.db?synchronous=OFF"
    objectives = [lb.Objective("correct", margin=0.000002, noise="bernoulli")]
    study = create(address, objectives=objectives)
    events = []
    for number in range(500_000):
        arm, place = ("small", "large", "cot")[number % 3], number // 3
        asked = {"pass": place, "nonce": number, "until": 2e9}
        told = {"correct": (number * 7919) % 13 / 13}
        events.append(Event(2 * number + 2, "asked", number, arm, asked, 1e9, "w"))
        events.append(Event(2 * number + 3, "told", number, arm, told, 1e9, "w"))
    storage_of(study).transact(1, lambda transaction: transaction.write(Entries(events)))
    events.clear()
    for limit in (6, 1):
        start = time.process_time()
        again = lb.open_study("models", address)
        assert again.policy.rounds == 500_000
        assert time.process_time() - start < 2 * limit, "twice the target: other tests run beside it"
