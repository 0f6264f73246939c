"""What the page polls: one answer with its ETag, drawn by the service, no larger for more results."""

from importlib.resources import files

from asked import MODELS, ask, make, refused

import lexbandits as lb

EVIL = "<img src=x onerror=alert(1)>"
PAGE = f"{MODELS}/fragments"


def measure(client, n):
    for i, trial in enumerate(ask(client, n, worker="bench 1")):
        values = {"correct": i % 2, "latency": 40 + i % 7}
        client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": values}).raise_for_status()


def test_it_is_tagged_and_changes_with_what_is_known(client):
    make(client)
    measure(client, 24)
    first = client.get(PAGE)
    words = first.json()
    assert words["summary"] == client.get(MODELS).json()
    assert words["wanted"] == ["forecast", "course"]
    same = {"If-None-Match": first.headers["etag"]}
    assert client.get(PAGE, headers=same).status_code == 304
    assert "Forecast" not in words["fragments"]["figures"]
    assert client.get(f"{MODELS}/forecast").status_code == 200
    assert client.get(f"{MODELS}/course").status_code == 200
    second = client.get(PAGE, headers=same)
    assert second.status_code == 200
    assert "Forecast" in second.json()["fragments"]["figures"]
    assert second.json()["wanted"] == ["forecast"]  # which the page asks for seldom
    same = {"If-None-Match": second.headers["etag"]}
    assert client.get(PAGE, headers=same).status_code == 304
    measure(client, 1)
    assert client.get(PAGE, headers=same).status_code == 200
    refused(client.get("/api/studies/nobody/fragments"), 404, "no study")


def test_its_size_depends_on_arms_and_objectives_only(client):
    make(client, objectives=[{"name": "correct", "tolerance": 0.01, "noise": "bernoulli"}])
    sizes = []
    for n in (30, 470):
        for trial in ask(client, n, worker="bench 1"):
            values = {"correct": 1}
            client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": values}).raise_for_status()
        sizes.append(len(client.get(PAGE).content))
    assert sizes[1] < 1.05 * sizes[0]


def test_names_are_text(client):
    study = "/api/studies/models"
    make(
        client, arms=[EVIL, '"><script>', "it's"], objectives=[{"name": EVIL, "unit": "<u>", "tolerance": 1}]
    )
    for trial in ask(client, 9, study, worker=EVIL):
        client.put(f"{study}/trials/{trial['id']}/result", json={"values": {EVIL: 1.5}}).raise_for_status()
    client.post(f"{study}/arms/it's/withdrawal", json={"reason": "<h1>why</h1>"})
    drawn = "".join(client.get(PAGE).json()["fragments"].values())
    for bad in ("<img", "<script", "<u>", "<h1>why"):
        assert bad not in drawn
    assert "&lt;img src=x onerror=alert(1)&gt;" in drawn
    assert 'data-arm="&#34;&gt;&lt;script&gt;"' in drawn


def test_a_change_of_the_rules_costs_something_while_a_proof_is_open(client):
    def cost(**changes):
        client.delete(MODELS)
        make(client, **changes)
        before = client.get(PAGE).json()["closing"]
        assert before is None, "nobody has seen anything"
        measure(client, 6)
        return client.get(PAGE).json()["closing"]

    assert "6 results so far stay" in cost()
    assert cost(rules="open") is None
    limit = {"name": "correct", "at_least": 0.5, "resolution": 0.1, "noise": "bernoulli"}
    assert cost(objectives=[limit, {"name": "latency", "tolerance": 2, "noise": ["bounded", 0, 100]}]) is None
    cost()
    client.put(f"{MODELS}/objectives/correct", json={"tolerance": 0.2}).raise_for_status()
    assert client.get(PAGE).json()["closing"] is None, "it is closed"


def test_page_and_report_share_one_style_sheet(client, service, tmp_path):
    make(client)
    style = (files("lexbandits") / "picture" / "style.css").read_text("utf-8")
    served = client.get("/style.css")
    assert served.text == style
    assert served.headers["content-type"].startswith("text/css")
    study = lb.open_study("models", service.storage)
    assert style in study.report(tmp_path / "report.html").read_text("utf-8")
    assert client.get("/vendor/plotly.min.js").status_code == 404
