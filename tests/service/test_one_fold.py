"""A study in the service is folded once: who looks sees copies of what its writer has folded.

Reports and figures replay a study to draw how it came to be; nothing else does.
"""

import copy
import threading

import pytest

import lexbandits as lb
from lexbandits.service import analysis
from lexbandits.service.auth import Tokens
from lexbandits.service.fragments import fragments_of
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.summary import summary_of
from lexbandits.service.write_queue import Job, Queues
from lexbandits.study.core import ask_tell
from lexbandits.study.core.projection import MEANINGS
from lexbandits.study.core.replay import Replay
from support.questions import create, measure
from support.services import fast


@pytest.fixture
def counted(monkeypatch):
    """How often a told result was recorded by some fold, and told to some policy."""
    counts = {"recorded": 0, "folded": 0}
    recorded, folded = MEANINGS["told"], Replay._tell_until

    def record(projection, event):
        counts["recorded"] += 1
        recorded(projection, event)

    def fold(replay, policy, position):
        counts["folded"] += position - replay._fills
        folded(replay, policy, position)

    monkeypatch.setitem(MEANINGS, "told", record)
    monkeypatch.setattr(Replay, "_tell_until", fold)
    return counts


def test_a_told_result_is_folded_once_however_many_look(tmp_path, counted):
    registry = StudyRegistry(fast(tmp_path))
    create(registry.storage)
    queues = Queues(registry, Tokens(registry.reads, "lb_me"))
    opened = registry.find("models")

    def do(work):
        job = Job("Bearer lb_me", "write", lambda: work)
        queues._do_all("models", [job])
        return job.outcome()

    told = 0
    for _ in range(6):
        for trial in do(lambda unit: ask_tell.hand_out(unit, 6, 60.0, None, None)):
            values = measure(trial.arm, trial.item)
            do(lambda unit, t=trial, v=values: ask_tell.take_all(unit, [(t, v)]))
            told += 1
            assert summary_of(opened).content["results"] == told
        fragments_of(opened)
        analysis._made(opened, analysis.explained)
        with opened.reading() as seen:
            assert len(seen._trials()["arm"]) == told
    analysis._made(opened, analysis.foretold, 10)
    assert counted == {"recorded": told, "folded": told}
    registry.close()


def test_nothing_that_comes_later_reaches_a_copy(tmp_path):
    study = create(fast(tmp_path), max_arms=4)
    trials = study.ask_many(9)
    study.tell(trials[0], {"correct": 1}, partial=True)
    replay = study._settled()
    seen = replay.frozen()
    before, policy = seen.projection.to_bytes(), copy.copy(seen.policy)
    for trial in trials:
        study.tell(trial, {"correct": 1, "latency": 5})
    study.add_arm("new")
    study.amend("correct", margin=0.2)
    study.note("so")
    assert study._settled() is replay
    assert replay.projection.to_bytes() != before
    assert seen.projection.to_bytes() == before
    assert seen.policy == policy != replay.policy


def test_who_looks_sees_the_state_before_a_commit_that_takes_long(tmp_path, monkeypatch):
    monkeypatch.setattr("lexbandits.service.registry.PATIENCE", 0.01)
    address = fast(tmp_path)
    study, registry = create(address), StudyRegistry(address)
    opened, new = registry.find("models"), StudyRegistry(address)
    assert summary_of(opened).content["open"] == 0
    study.ask()
    begun, done = threading.Event(), threading.Event()

    def hold(lock):
        with lock:
            begun.set()
            done.wait(600)

    for each, seen in ((opened, 0), (new.find("models"), 1)):  # that one has nothing else to show
        holder = threading.Thread(target=hold, args=(each.writer.lock,))
        holder.start()
        assert begun.wait(600)
        assert summary_of(each).content["open"] == seen
        done.set()
        holder.join()
        assert summary_of(each).content["open"] == 1
        begun.clear()
        done.clear()
    with pytest.raises(lb.StorageError, match="read only"), opened.reading() as frozen:
        frozen.note("so")
    for each in (registry, new):
        each.close()


def test_a_settling_that_takes_long_holds_up_nobody_who_looks(tmp_path, monkeypatch):
    """An answer or an end that is due is noted by who comes first; all others see the state before."""
    monkeypatch.setattr("lexbandits.service.registry.PATIENCE", 0.01)
    address = fast(tmp_path)
    create(address)
    registry = StudyRegistry(address)
    opened = registry.find("models")
    with opened.reading() as study:
        assert study.status.results == 0
    begun, done, settled = threading.Event(), threading.Event(), opened.writer.settled

    def settle():
        begun.set()
        assert done.wait(600)
        return settled()

    monkeypatch.setattr(opened.writer, "settled", settle)
    first = threading.Thread(target=summary_of, args=(opened,))
    first.start()
    assert begun.wait(600)
    seen = []

    def look():
        with opened.reading() as study:
            seen.append(study.status.results)

    others = [threading.Thread(target=look, daemon=True) for _ in range(2)]
    for other in others:
        other.start()
    for other in others:
        other.join(60)
    waiting = [other for other in others if other.is_alive()]
    done.set()
    first.join()
    assert (waiting, seen) == ([], [0, 0])
    registry.close()
