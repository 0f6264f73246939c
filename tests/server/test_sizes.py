"""No legal study stalls the service for the others."""

import threading

import lexbandits as lb
from lexbandits.server import summary
from lexbandits.server.rooms import Rooms
from support.services import fast
from support.worlds import create, go_on


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


def test_a_list_of_studies_waits_for_none(tmp_path, monkeypatch):
    address = fast(tmp_path)
    for name in ("quick", "slow"):
        go_on(create(address, name=name), 4)
    rooms = Rooms(address)
    rows = rooms.reads.studies()
    slow = rooms.find("slow")
    monkeypatch.setattr(summary, "PATIENCE", 0.05)
    begun, done = threading.Event(), threading.Event()

    def hold():
        with slow.reading():
            begun.set()
            assert done.wait(60)

    holder = threading.Thread(target=hold)
    holder.start()
    assert begun.wait(60)
    for _ in range(200):  # the first look at the quick one may take a while
        states = {glance.name: glance.state for glance in summary.glances_at(rooms, rows)}
        if states["quick"] != "busy":
            break
    assert states == {"quick": "measuring", "slow": "busy"}
    done.set()
    holder.join()
    monkeypatch.setattr(summary, "PATIENCE", 60)
    seen = {glance.name: glance for glance in summary.glances_at(rooms, rows)}
    assert seen["slow"].state == "measuring"
    assert seen["slow"].results == 4
    lb.delete_study("slow", address)
    assert [glance.name for glance in summary.glances_at(rooms, rows)] == ["quick"]
    rooms.close()


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
