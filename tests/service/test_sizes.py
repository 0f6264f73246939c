"""No legal study stalls the service for the others."""

import asyncio
import random
import threading

import httpx2
import pytest

import lexbandits as lb
from lexbandits._cached import cached_property
from lexbandits.report import plot
from lexbandits.service import requests, summary
from lexbandits.service.app import MOST_LOOKING, make_app
from lexbandits.service.auth import Tokens
from lexbandits.service.fragments import fragments_of
from lexbandits.service.registry import StudyRegistry
from lexbandits.study.core.journal import Journal
from lexbandits.views.history import history_of
from lexbandits.views.study_view import StudyView
from support.questions import create, go_on
from support.services import fast


def asked(K, m, **words):
    objectives = [{"name": f"o{i}", "margin": 0.2, "noise": "bernoulli"} for i in range(m)]
    return {"name": "large", "arms": [f"a{arm}" for arm in range(K)], "objectives": objectives, **words}


def test_what_a_study_may_cost_is_bounded_when_it_is_created(client):
    said = client.post("/api/studies", json=asked(200, 20, items=list(range(1000))))
    assert said.status_code == 422
    assert "200 arms on 20 objectives are 796,000 comparisons, more than the 200,000" in said.json()["detail"]
    said = client.post("/api/studies", json=asked(2, 1, max_arms=200, items=list(range(1000)), repeats=1000))
    assert said.status_code == 422
    assert "200,000,000 values, more than the 20,000,000" in said.json()["detail"]
    assert client.post("/api/studies", json=asked(60, 2, items=list(range(100)))).status_code == 201


@pytest.fixture
def held(tmp_path):
    """The studies of a service, quick and slow; the second is being looked at until `done` is set."""
    address = fast(tmp_path)
    for name in ("quick", "slow"):
        go_on(create(address, name=name), 4)
    registry = StudyRegistry(address)
    begun, done = threading.Event(), threading.Event()

    def hold():
        with registry.find("slow").reading():
            begun.set()
            assert done.wait(600)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(600)
    yield registry, done
    done.set()
    holder.join()
    registry.close()


def test_a_list_of_studies_waits_for_none(held, monkeypatch):
    registry, done = held
    rows = registry.reads.studies()

    def listed():
        return {glance.name: glance for glance in summary.glances_at(registry, rows)}

    monkeypatch.setattr(summary, "PATIENCE", 0.05)
    registry.find("quick").glance(summary.glance_at).result(600)
    assert [(glance.name, glance.state) for glance in listed().values()] == [
        ("quick", "measuring"),
        ("slow", "busy"),
    ]
    monkeypatch.setattr(summary, "PATIENCE", 3600)
    at_last = threading.Timer(300, done.set)  # for who would wait
    at_last.start()
    assert [glance.state for glance in listed().values()] == ["measuring", "busy"]
    at_last.cancel()
    slow = registry.find("slow")
    done.set()
    slow.glance(summary.glance_at).result(600)
    assert listed()["slow"].results == 4
    with slow.reading():  # and again: it stands there as last seen
        go_on(lb.open_study("slow", registry.address), 1)
        monkeypatch.setattr(summary, "PATIENCE", 0.05)
        assert listed()["slow"].results == 4
    monkeypatch.setattr(summary, "PATIENCE", 3600)
    slow.glance(summary.glance_at).result(600)
    assert listed()["slow"].results == 5
    lb.delete_study("slow", registry.address)
    assert [*listed()] == ["quick"]


def test_who_waits_for_a_study_holds_up_nobody_else(held):
    """More look at one that is being computed than the service has threads."""
    registry, done = held
    app, many = make_app(registry, Tokens(registry.reads, "lb_start")), 2 * MOST_LOOKING
    paths = ["", "/fragments", "/trials", "/results", "/spec", "/events", "/fragments/trials"]
    mine = {"base_url": "http://localhost", "headers": {"Authorization": "Bearer lb_start"}}

    async def visit():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), **mine) as client:
            looks = [client.get(f"/api/studies/slow{paths[n % len(paths)]}") for n in range(many)]
            looks.append(client.get("/api/fragments/comparison?first=quick&second=slow"))
            waiting = [asyncio.create_task(look) for look in looks]
            async with asyncio.timeout(60):  # where somebody is held up, it is for ever
                while f"lexbandits_waiting_readers {many}\n" not in (await client.get("/metrics")).text:
                    await asyncio.sleep(0.01)
                for path in (
                    "/healthz",
                    "/api/studies",
                    "/api/studies/quick",
                    "/api/studies/quick/fragments",
                ):
                    assert (await client.get(path)).status_code == 200, path
                asked = await client.post("/api/studies/slow/trials", json={"n": 1})
                assert asked.status_code == 201, "nor are those who measure it"
            assert not any(look.done() for look in waiting)
            done.set()
            return [answer.status_code for answer in await asyncio.gather(*waiting)]

    assert asyncio.run(visit()) == [200] * (many + 1)


def test_a_turn_that_does_not_come_is_refused(held, monkeypatch):
    registry, done = held
    monkeypatch.setattr(requests, "LONGEST_WAIT", 0.01)
    app = make_app(registry, Tokens(registry.reads, "lb_start"))
    mine = {"base_url": "http://localhost", "headers": {"Authorization": "Bearer lb_start"}}

    async def visit():
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app), **mine) as client:
            both = [asyncio.create_task(client.get("/api/studies/slow")) for _ in range(2)]
            (first,), (second,) = await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            done.set()
            return first.result(), await second

    refused, answered = asyncio.run(visit())
    assert (refused.status_code, answered.status_code) == (503, 200)
    assert "study 'slow' was being computed for 0.01 s" in refused.json()["detail"]
    assert refused.headers["retry-after"]


def test_a_study_that_is_read_for_the_first_time_holds_up_no_other(tmp_path, monkeypatch):
    """Nor do properties of its views: what one of them locks is its own."""
    address, begun, done = fast(tmp_path), threading.Event(), threading.Event()
    for name in ("quick", "slow"):
        go_on(create(address, name=name), 4)
    replay = Journal.replay

    def waiting(journal):
        if journal.row.name == "slow":
            begun.set()
            assert done.wait(600)
        return replay(journal)

    monkeypatch.setattr(Journal, "replay", waiting)
    registry = StudyRegistry(address)
    slow = threading.Thread(target=summary.summary_of, args=(registry.find("slow"),))
    slow.start()
    assert begun.wait(600)
    at_last = threading.Timer(300, done.set)  # for who would wait
    at_last.start()
    assert summary.summary_of(registry.find("quick"))[1]["results"] == 4
    assert not done.is_set()
    at_last.cancel()
    done.set()
    slow.join()
    registry.close()


def test_a_property_of_one_object_is_computed_while_that_of_another_is():
    begun, done = threading.Event(), threading.Event()

    class Thing:
        def __init__(self, is_slow):
            self.is_slow = is_slow

        @cached_property
        def answer(self):
            if self.is_slow:
                begun.set()
                assert done.wait(600)
            return object()

    slow, quick = Thing(is_slow=True), Thing(is_slow=False)
    thread = threading.Thread(target=lambda: slow.answer)
    thread.start()
    assert begun.wait(600)
    at_last = threading.Timer(300, done.set)
    at_last.start()
    assert quick.answer is quick.answer
    assert not done.is_set()
    at_last.cancel()
    done.set()
    thread.join()
    assert vars(slow)["answer"] is slow.answer
    assert isinstance(Thing.answer, cached_property)


@pytest.mark.parametrize("items", [None, list(range(200))])
def test_only_pairs_that_are_shown_are_computed(tmp_path, items, monkeypatch):
    """Of 30 arms on 4 objectives 1,740 pairs: the page shows two of each arm on each objective at most."""
    K, m, luck = 30, 4, random.Random(5)
    address = fast(tmp_path)
    words = {**asked(K, m), "items": items, "seed": 5, "preregistered": False, "storage": address}
    study = lb.create_study(**words)
    for _ in range(45):
        told = [(trial, {f"o{i}": luck.randrange(2) for i in range(m)}) for trial in study.ask_many(K)]
        study.tell_many([(trial, {**values, "o0": int(trial.arm < "a2")}) for trial, values in told])
    left, all_of_them = len(study.policy.eliminations), study.policy.differences
    assert left >= 5
    registry = StudyRegistry(address)
    opened = registry.find("large")
    monkeypatch.setattr(type(study.policy), "differences", None)  # nobody asks for all of them
    fragments_of(opened)
    with opened.reading() as reader:
        view = StudyView.of(reader)
    known = view.estimates.compared
    assert (K - left - 1) * m <= len(known) <= 2 * K * m
    assert known == {pair: tuple(all_of_them[pair].tolist()) for pair in known}
    plot.evidence(study)
    most = max(len(moment.differences) for moment in history_of(study._settled()))
    assert 0 < most < len(known)
    registry.close()


def test_intervals_of_a_list_are_computed_once_each():
    """Not all of them again for each new one: that is what stalled."""
    objectives = [lb.Objective("x", margin=0.2, noise="bernoulli")]
    arms, items = [f"a{arm}" for arm in range(12)], list(range(50))
    study = lb.create_study("s", arms=arms, objectives=objectives, items=items, seed=0)
    for trial in study.ask_many(24):
        study.tell(trial, {"x": 1})
    policy = study.policy
    first = policy.differences
    kept = dict(policy._ends)
    assert len(kept) >= 12 * 11 // 2
    assert (policy.differences == first).all()
    assert policy._ends == kept
