"""Many requests, few commits; and none that is answered before it is safe."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from worlds import create

import lexbandits as lb
from lexbandits.server.writer import GatheringJournal
from lexbandits.study.storage.sqlite import SqliteStorage
from lexbandits.study.study import Study


class Counted(SqliteStorage):
    """Counts commits, and can hold the first one up until others wait."""

    commits = 0

    def transact(self, study, work):
        self.commits += 1
        return super().transact(study, work)


@pytest.fixture
def shared(tmp_path):
    storage = Counted(f"sqlite:///{tmp_path}/study.db?synchronous=OFF")
    create(storage)
    study = Study(GatheringJournal(storage, storage.find("models")))
    yield study
    storage.close()


def gathered(study, works):
    """What becomes of pieces of work that all wait for the same commit."""
    journal = study._journal
    held, reached = threading.Event(), threading.Event()

    def hold(turn):
        reached.set()
        held.wait(120)

    def outcome(work):
        try:
            return work()
        except lb.StudyError as error:
            return error

    with ThreadPoolExecutor(len(works) + 1) as pool:
        first = pool.submit(journal.transact, hold)
        reached.wait(120)
        journal.storage.commits = 0
        futures = []
        for work in works:
            before = len(journal._queue)
            futures.append(pool.submit(outcome, work))
            while len(journal._queue) == before:
                time.sleep(1e-4)  # in this order
        held.set()
        first.result()
        return [future.result() for future in futures]


def test_what_waits_is_committed_together(shared):
    trials = shared.ask_many(20)
    told = gathered(shared, [lambda t=t: shared.tell(t, {"correct": 1}) for t in trials])
    assert told == ["counted"] * 20
    assert shared._journal.storage.commits == 1
    assert shared.verify()


def test_a_refusal_is_for_one_alone(shared):
    a, b, c = shared.ask_many(3)
    told = gathered(
        shared,
        [
            lambda: shared.tell(a, {"correct": 1}),
            lambda: shared.tell(b, {"correct": 7}),
            lambda: shared.tell(a, {"correct": 0}),
            lambda: shared.tell(c, {"correct": 0}),
        ],
    )
    assert (told[0], told[3]) == ("counted", "waiting")  # behind b, which is still open
    assert isinstance(told[1], lb.ValueOutOfRange)
    assert isinstance(told[2], lb.ConflictError)
    assert shared._journal.storage.commits == 1
    assert shared.trials()["state"].tolist() == ["told", "open", "told"]


def test_work_that_fails_halfway_spoils_no_other(shared):
    a, b, c = shared.ask_many(3)
    shared.tell(b, {"correct": 1})
    halfway = [(c, {"correct": 1}), (b, {"correct": 0})]  # the second contradicts, when the first is recorded
    told = gathered(
        shared,
        [lambda: shared.tell(a, {"correct": 1}), lambda: shared.tell_many(halfway), lambda: shared.ask()],
    )
    assert told[0] == "counted"
    assert isinstance(told[1], lb.ConflictError)
    assert told[2].number == 3
    assert shared.trials()["state"].tolist() == ["told", "told", "open", "open"]
    assert shared.verify()


def test_asks_with_the_same_key_in_one_commit(shared):
    asked = gathered(
        shared, [lambda: shared.ask(request="key"), lambda: shared.ask(request="key"), shared.ask]
    )
    assert asked[0] == asked[1] != asked[2]
    assert shared.status.open == 2


def test_nobody_is_answered_when_the_commit_fails(shared, monkeypatch):
    trials = shared.ask_many(3)

    def full(*_):
        raise lb.StorageError("disk full")

    monkeypatch.setattr(type(shared._journal.storage), "_send", full)
    told = gathered(shared, [lambda t=t: shared.tell(t, {"correct": 1}) for t in trials])
    assert [str(error) for error in told] == ["disk full"] * 3
    monkeypatch.undo()
    assert shared.status.results == 0
    assert [shared.tell(t, {"correct": 1}) for t in trials] == ["counted"] * 3
