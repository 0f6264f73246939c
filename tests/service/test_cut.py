"""Answers are lost on their way, at any byte: what was acknowledged is there once, and nothing hangs."""

import threading
from collections import Counter

import httpx2
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.study.storage import http as remote
from lexbandits.study.storage import postgres as postgres_module
from support.journals import storage_of
from support.proxy import Proxy
from support.questions import create, measure
from support.services import Service

LIMIT = 120  # seconds of any call, on a busy machine
PILOT = pd.DataFrame({"arm": ["small", "large", "cot"], "correct": [0, 1, 1], "latency": [5.0, 9.0, 20.0]})


class Line:
    """A study over a wire that can be cut, and the same one without."""

    def __init__(self, proxy, direct, wired, has_import):
        self.proxy, self.direct, self.wired, self.has_import = proxy, direct, wired, has_import
        self.names = 0

    def study(self):
        """A new study: as it is, and over the wire."""
        self.names += 1
        here = create(self.direct, name=f"models {self.names}", max_arms=4)
        wired = lb.open_study(here.name, self.wired)
        if storage_of(wired).is_remote:
            soon = {"timeout": httpx2.Timeout(1.0).as_dict()}  # an impatient client
            storage_of(wired)._timeouts = {True: soon, False: soon}
        return here, wired


class Impatient(Service):
    """A service that does not wait a minute for its database."""

    program = (
        "-c",
        "from lexbandits.study.storage import postgres\n"
        "postgres.PATIENCE = postgres.SILENCE = 1\n"
        "from lexbandits.cli.main import app\napp()",
    )


@pytest.fixture
def line(request, monkeypatch):
    """To PostgreSQL; to a service on SQLite; to a service whose PostgreSQL is behind the wire."""
    monkeypatch.setattr(postgres_module, "PATIENCE", 1)
    monkeypatch.setattr(postgres_module, "SILENCE", 1)
    monkeypatch.setattr(remote, "PATIENCE", 60.0)
    if request.param == "service":
        service = request.getfixturevalue("service")
        proxy = Proxy(service.port)
        yield Line(proxy, service.link, proxy.of(service.link), False)
    else:
        address = request.getfixturevalue("postgres")
        proxy = Proxy(request.getfixturevalue("server").socket)
        if request.param == "postgres":
            yield Line(proxy, address, proxy.of(address), True)
        else:
            service = Impatient(proxy.of(address))
            yield Line(proxy, address, service.link, False)
            service.kill()
    proxy.close()


EVERYWHERE = pytest.mark.parametrize("line", ["postgres", "service", "service on postgres"], indirect=True)

# name -> (the call, given a study and one of its open trials; how many events of which kind it makes)
CALLS = {
    "ask": (lambda study, trial: study.ask(), "asked"),
    "ask_many": (lambda study, trial: study.ask_many(3), "asked"),
    "tell": (lambda study, trial: study.tell(trial, measure(trial.arm, trial.item)), "told"),
    "tell_ask": (
        lambda study, trial: study.tell_ask([(trial, measure(trial.arm, trial.item))], 2),
        "told asked",
    ),
    "fail": (lambda study, trial: study.fail(trial, "broken"), "failed"),
    "release": (lambda study, trial: study.release(trial), "released"),
    "correct": (lambda study, trial: study.correct(study.told, measure("small", 7), "typo"), "corrected"),
    "note": (lambda study, trial: study.note("so"), "note"),
    "amend": (lambda study, trial: study.amend("latency", margin=6), "amended"),
    "withdraw": (lambda study, trial: study.withdraw("cot", "so"), "arm_withdrawn"),
    "add_arm": (lambda study, trial: study.add_arm("new"), "arm_added"),
    "pause": (lambda study, trial: study.pause("so"), "paused"),
    "end": (lambda study, trial: study.end("so"), "ended"),
    "import": (lambda study, trial: study.import_results(PILOT, fair=True), "imported"),
}


def in_time(work):
    """What it gives or raises; an error of the test if it hangs."""
    found = []

    def attempt():
        try:
            found.append(work())
        except lb.StudyError as error:
            found.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert not thread.is_alive(), "it hangs"
    return found[0]


def prepared(line, call):
    """A study over the wire, whose connection is there, with a trial to be told."""
    here, study = line.study()
    trial = None
    if call != "import":
        study.told, trial = here.ask_many(2)
        here.tell(study.told, measure(study.told.arm, study.told.item))
    assert study.status.state == "measuring"
    return here, study, trial


def made(here):
    return Counter(event.kind for event in here.events())


def spoiled(line, call, how, after):
    """One call whose answer is spoiled after so many bytes."""
    work, kinds = CALLS[call]
    here, study, trial = prepared(line, call)
    before, spoilt = made(here), line.proxy.cuts
    line.proxy.spoil(how, after)
    found = in_time(lambda: work(study, trial))
    line.proxy.spoil(None, 0)
    if line.proxy.cuts == spoilt:
        return  # the answer was shorter this time
    new = made(here) - before
    full = Counter(kinds.split())
    full["asked"] *= {"ask_many": 3, "tell_ask": 2}.get(call, 1)
    where = f"{call}, {how} after {after} bytes: {found!r}"
    if isinstance(found, lb.StudyError):
        assert isinstance(found, lb.StorageError), where
        assert new in (+full, Counter()), where
    else:
        assert new == +full, where
    given = found if call == "ask_many" else found[1] if call == "tell_ask" else [found]
    if "asked" in kinds and not isinstance(found, lb.StudyError):
        known = set(here.trials().id)
        assert {each.id for each in given} <= known, where
    assert here.verify().problems == (), where
    again = in_time(study.ask) if call not in ("pause", "end") else None
    assert not isinstance(again, lb.StudyError), where
    study.close()


def healthy(line, call):
    """How many bytes the answers to a call take."""
    work, _ = CALLS[call]
    _, study, trial = prepared(line, call)
    before = line.proxy.answered
    work(study, trial)
    study.close()
    return line.proxy.answered - before


def spoil_many(line, call, how, number):
    size = healthy(line, call)
    last = {0, 1, size - 6, size - 1}  # of PostgreSQL's answer to COMMIT, "ready" is the last
    for after in sorted(last | {size * i // number for i in range(number)}):
        spoiled(line, call, how, max(0, after))


def calls(line):
    return [call for call in CALLS if call != "import" or line.has_import]


@EVERYWHERE
def test_an_answer_is_cut(line):
    for call in ("ask", "tell", "note"):
        for part in (0, 1):
            spoiled(line, call, "cut", part * (healthy(line, call) - 1))


@pytest.mark.slow
@EVERYWHERE
def test_an_answer_is_cut_anywhere(line):
    for call in calls(line):
        spoil_many(line, call, "cut", 12)


@pytest.mark.slow
@EVERYWHERE
def test_an_answer_never_comes(line):
    for call in calls(line):
        size = healthy(line, call)
        for after in (0, size - 1):
            spoiled(line, call, "silent", after)
