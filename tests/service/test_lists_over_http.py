"""A study about a list behind the service: all of it works, and nobody reads the coming order."""

import json
import time

import lexbandits as lb
from support.journals import journal_of
from support.questions import create, go_on, measure


def test_nobody_reads_the_coming_order(service, client):
    study = create(service.link, items=[f"q{i}" for i in range(60)], seed=2718281828459045)
    here = lb.open_study("models", service.storage)
    go_on(study, 12)
    seed = next(iter(journal_of(here).events())).payload["spec"]["seed"]
    looks = ("", "/spec", "/events?limit=1000", "/trials", "/results", "/fragments", "/explanation",
             "/report", "/report?format=md", "/export?format=jsonl",
             "/items", "/items?format=csv")  # fmt: skip
    for look in looks:
        answer = client.get(f"/api/studies/models{look}")
        assert answer.status_code == 200, look
        assert str(seed) not in answer.text, look
    assert study.spec["seed"] is None
    assert list(study.trials().item) == list(here.trials().item)
    assert study.results().equals(here.results())
    go_on(study)
    assert study.answer.certified
    assert str(seed) in client.get("/api/studies/models/spec").text
    assert study.verify().ok
    assert study.verify().sha256 == here.verify().sha256


def test_items_with_keys_retries_and_late_results(service, client):
    items = [{"id": f"q{i}", "prompt": f"what is {i}?"} for i in range(20)]
    study = create(service.link, items=items, repeats=2, max_failures=100)
    late = study.ask(lease=0.05)
    assert late.item["prompt"].startswith("what is")
    assert late.repeat in (1, 2)
    failed = study.ask()
    study.fail(failed, "no")
    time.sleep(0.1)
    study.ask_many(1)
    assert study.retry() == 2
    assert study.tell(late, measure(late.arm)) in ("counted", "waiting")
    assert study.status.at_most < 120
    table = client.get("/api/studies/models/items?format=csv").text
    assert table.splitlines()[0].startswith("item,small: correct")
    assert client.get("/api/studies/models/items").json()["html"].count("<tr") == 2
    assert len(json.dumps(client.get("/api/studies/models").json())) < 20_000, "items are not polled"
