"""A study behind the service is looked at like any other: its journal is folded here, what is new of it."""

import pytest

import lexbandits as lb
from lexbandits.study.storage.http import HttpStorage
from support.journals import replay_of
from support.questions import create, go_on


@pytest.fixture
def both(service):
    """The same study behind the service, and in its storage."""
    there = create(service.link, max_arms=4)
    go_on(there, 90)
    there.fail(there.ask(), "crashed")
    there.withdraw("small", "too old")
    there.add_arm({"name": "tiny", "size": 3})
    go_on(there, 20)
    return there, lb.open_study("models", service.storage, read_only=True)


@pytest.fixture
def sent(monkeypatch):
    """What is asked of the service."""
    calls, call = [], HttpStorage.call
    monkeypatch.setattr(
        HttpStorage, "call", lambda *given, **how: calls.append((given[1:3], how)) or call(*given, **how)
    )
    return calls


def test_everything_that_is_known_is_known_over_http(both, tmp_path):
    there, here = both
    assert there.explain() == here.explain()
    assert there.explain("large") == here.explain("large")
    assert there.forecast(runs=20).as_json() == here.forecast(runs=20).as_json()
    assert there.results().equals(here.results())
    assert there.trials().equals(here.trials())
    assert there.policy == here.policy
    assert there.verify() == here.verify()
    assert (there.answer, there.status, there.arms, there.seq, there.objectives, there.spec) == (
        here.answer,
        here.status,
        here.arms,
        here.seq,
        here.objectives,
        here.spec,
    )
    for name in ("trials.csv", "journal.jsonl"):
        mine, its = there.export(tmp_path / f"there {name}"), here.export(tmp_path / f"here {name}")
        assert mine.read_bytes() == its.read_bytes()
    assert "tiny" in there.report(tmp_path / "report.md").read_text()
    assert lb.plot.race(there)._repr_svg_() == lb.plot.race(here)._repr_svg_()


def test_only_what_is_new_is_fetched(both, sent):
    there, _ = both
    assert len(there.trials()) == 111
    sent.clear()
    seq = replay_of(there).projection.seq
    there.note("so")
    assert len(there.trials()) == 111
    assert [how.get("since") for (_, path), how in sent if path.endswith("/events")] == [seq - 1, seq - 1]


def test_asking_and_telling_fetch_nothing(both, sent):
    there, _ = both
    sent.clear()
    go_on(there, 5)
    assert {method for (method, _), _ in sent} == {"POST", "PUT"}
    assert len(sent) == 10
