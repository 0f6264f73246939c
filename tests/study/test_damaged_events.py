"""Events that cannot be are found and named, whichever they are."""

import pytest

import lexbandits as lb
from lexbandits.study.core.projection import Projection
from support.questions import create


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
def test_damage_is_found_and_named(events, damage):
    events = damage(list(events))
    with pytest.raises(lb.StorageError, match=r"event \d+|the journal"):
        Projection().apply(events)
