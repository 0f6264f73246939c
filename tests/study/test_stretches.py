"""Events taken by columns mean what they mean one by one, and damage is found either way."""

import pytest

import lexbandits as lb
from lexbandits.study.record import stretches
from lexbandits.study.record.ledger import Ledger
from support.lives import in_memory, script_of
from support.worlds import create


def one_by_one(events):
    ledger = Ledger()
    ledger.apply(events)
    return ledger


def by_columns(events):
    ledger = Ledger()
    stretches.apply(ledger, events)
    return ledger


def assert_same(ledger, other):
    assert ledger == other
    for name in ("open", "counts", "exact", "failing", "measured", "seq", "at", "highest", "workers"):
        assert getattr(ledger, name) == getattr(other, name), name


def with_an_exact_objective():
    exact = lb.Objective("size", "minimize", noise="exact")
    study = create(objectives=[lb.Objective("correct", margin=0.2, noise="bernoulli"), exact])
    for trial in study.ask_many(200):
        study.tell(trial, {} if trial.number % 17 == 4 else {"correct": 1, "size": len(trial.arm)})
    return study


@pytest.mark.parametrize("seed", range(40))
def test_any_interleaving_is_the_same_by_columns(seed, monkeypatch):
    monkeypatch.setattr(stretches, "LEAST_EVENTS", 1)
    events = list(in_memory().play(script_of(seed, 250)).events())
    ledger = one_by_one(events)
    for most in (7, 5_000):
        monkeypatch.setattr(stretches, "MOST_EVENTS", most)
        assert_same(ledger, by_columns(events))


def test_an_exact_objective_is_the_same_by_columns(monkeypatch):
    monkeypatch.setattr(stretches, "LEAST_EVENTS", 1)
    monkeypatch.setattr(stretches, "MOST_EVENTS", 40)
    events = list(with_an_exact_objective().events())
    assert_same(one_by_one(events), by_columns(events))


@pytest.fixture
def events():
    study = create(objectives=[lb.Objective("correct", margin=0.000002, noise="bernoulli")])
    for worker in ("one", "two"):
        trials = study.ask_many(100, worker=worker)
        study.tell_many([(trial, {"correct": trial.number % 2}) for trial in reversed(trials[1:])])
    study.note("in between")
    trials = study.ask_many(100)
    study.tell_many([(trial, {"correct": None if trial.number == 150 else 1}) for trial in trials])
    return list(study.events())


def test_ordinary_stretches_are_taken_by_columns(events, monkeypatch):
    expected, singles = one_by_one(events), []
    real = Ledger.apply
    monkeypatch.setattr(Ledger, "apply", lambda ledger, some: singles.extend(some) or real(ledger, some))
    assert_same(expected, by_columns(events))
    assert [event.kind for event in singles] == ["created", "note"]


def renumbered(events):
    return [event._replace(seq=seq) for seq, event in enumerate(events, 1)]


def at(events, kind, number=60):
    return next(i for i, event in enumerate(events) if event.kind == kind and event.trial == number)


def replaced(kind, /, **changes):
    def damage(events):
        i = at(events, kind)
        events[i] = events[i]._replace(**changes)
        return events

    return damage


def repeated(events):
    events.insert(at(events, "told") + 1, events[at(events, "told")])
    return renumbered(events)


def told_before_asked(events):
    events.insert(at(events, "asked"), events.pop(at(events, "told")))
    return renumbered(events)


def asked_twice(events):
    events.insert(at(events, "asked"), events[at(events, "asked")])
    return renumbered(events)


def gap(events):
    del events[at(events, "told")]
    return events


DAMAGE = {
    "a gap": gap,
    "told twice": repeated,
    "told before it was asked": told_before_asked,
    "asked twice": asked_twice,
    "told of nobody": replaced("told", trial=10**6),
    "told of none": replaced("told", trial=None),
    "an unknown arm": replaced("asked", arm="nobody"),
    "no pass": replaced("asked", payload={"nonce": 1, "until": 2.0}),
    "a pass in words": replaced("asked", payload={"pass": "first", "nonce": 1, "until": 2.0}),
    "a value in words": replaced("told", payload={"correct": "1"}),
    "no payload": replaced("told", payload=None),
    "an unknown kind": replaced("told", kind="sung"),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_damage_is_found_and_named_either_way(events, damage):
    events = damage(list(events))
    messages = []
    for take in (one_by_one, by_columns):
        with pytest.raises(lb.StorageError) as raised:
            take(events)
        messages.append((raised.type, str(raised.value)))
    assert messages[0] == messages[1]
