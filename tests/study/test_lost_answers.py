"""The connection is lost while a commit is under way: whatever was asked for is done once, and said once."""

import threading

import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.study.storage import postgres as postgres_module
from support.journals import storage_of
from support.proxy import Proxy
from support.questions import create, kinds, measure

CUTS = ("before", "after", "answered")
GOOD = {"correct": 1, "latency": 10}
PILOT = pd.DataFrame({"arm": ["small", "large", "cot"], "correct": [0, 1, 1], "latency": [5.0, 9.0, 20.0]})


@pytest.fixture
def wire(postgres, server):
    proxy = Proxy(server.socket)
    yield proxy
    proxy.close()


def over(wire, address, how):
    """The study by way of a wire that is cut at the next commit."""
    study = lb.open_study("models", wire.of(address))
    wire.arm(b"COMMIT", how)
    return study


CHANGES = {
    "import": lambda study: study.import_results(PILOT, fair=True),
    "note": lambda study: study.note("hello"),
    "amend": lambda study: study.amend("correct", margin=0.4),
    "withdraw": lambda study: study.withdraw("cot", "so"),
    "add_arm": lambda study: study.add_arm("new"),
    "reorder": lambda study: study.reorder(["latency", "correct"]),
    "budget": lambda study: study.set_budget(9),
    "pause": lambda study: study.pause("lunch"),
    "end": lambda study: study.end("enough"),
}


@pytest.mark.parametrize("how", CUTS)
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_change_is_made_once(wire, postgres, change, how):
    here = create(postgres, max_arms=4)
    plain = create(name="plain", max_arms=4)
    expected = change(plain)  # first, as it may have to be compiled: a server does not wait for that for ever
    assert change(over(wire, postgres, how)) == expected
    assert wire.cuts == 1
    assert kinds(here) == kinds(plain)
    assert here.verify().problems == ()


@pytest.mark.parametrize("how", CUTS)
def test_what_is_asked_is_handed_out_once(wire, postgres, how):
    here = create(postgres)
    trials = over(wire, postgres, how).ask_many(3, worker="w")
    assert wire.cuts == 1
    assert here.trials()["id"].tolist() == [trial.id for trial in trials]
    assert here.tell_many([(trial, GOOD) for trial in trials]) == ["counted"] * 3


@pytest.mark.parametrize("how", CUTS)
def test_what_is_told_is_counted_once(wire, postgres, how):
    here = create(postgres)
    trial = here.ask()
    assert over(wire, postgres, how).tell(trial, GOOD) == "counted", "and not repeated"
    assert wire.cuts == 1
    assert here.status.results == 1


@pytest.mark.parametrize("how", CUTS)
def test_others_write_meanwhile(wire, postgres, how):
    """What the first attempt gave is given back, though the record has gone on since."""
    here = create(postgres)
    study = over(wire, postgres, how)
    storage, real = storage_of(study), storage_of(study)._connect

    def connect():
        here.note("from elsewhere")
        return real()

    storage._connect = connect
    trial = study.ask()
    assert sorted(kinds(here)) == ["asked", "created", "note"]
    assert study.tell(trial, GOOD) == "counted"


@pytest.mark.parametrize("how", CUTS)
def test_a_study_is_made_once(wire, postgres, how):
    lb.list_studies(postgres)  # makes the tables
    wire.arm(b"COMMIT", how)
    study = create(wire.of(postgres))
    assert wire.cuts == 1
    assert kinds(study) == ["created"]


@pytest.mark.slow
@pytest.mark.parametrize("how", CUTS)
def test_run_has_no_orphans(wire, postgres, how):
    here = create(postgres)
    study = lb.open_study("models", wire.of(postgres))
    cut = iter(range(2, 1000, 3))  # a driver sends the word itself a few times only
    following = [next(cut)]

    def measured(arm, item):
        if study.status.results >= following[0]:
            following[0] = next(cut)
            wire.arm(b"COMMIT", how)
        return measure(arm, item)

    answer = study.run(measured, progress=False)
    assert (answer.arm, answer.certified) == ("large", True)
    assert wire.cuts >= 2
    frame = here.trials()
    assert (frame["state"] == "told").all(), "nobody heartbeats a trial that nobody measures"
    assert here.verify().problems == ()


def test_it_says_so_when_nobody_can_know(wire, postgres, monkeypatch):
    create(postgres)
    study = over(wire, postgres, "answered")
    wire_down = threading.Event()
    real = storage_of(study)._connect

    def connect():
        wire_down.set()
        monkeypatch.setattr(postgres_module.PostgresStorage, "_connect", gone)
        return gone(None)

    def gone(_):
        raise postgres_module.psycopg.OperationalError("connection refused")

    storage_of(study)._connect = connect
    with pytest.raises(lb.StorageError, match="look at the study before you repeat it"):
        study.note("hello")
    assert wire_down.is_set()
    monkeypatch.undo()
    storage_of(study)._connect = real
    assert kinds(study) == ["created", "note"]
