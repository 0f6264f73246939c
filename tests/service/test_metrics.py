"""What Prometheus reads, and the API's description for people."""

import re

import lexbandits as lb


def lines(client):
    answer = client.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))


def test_what_was_done_is_counted(service, client):
    before = lines(client)
    with service.client(token="lb_nobody") as nobody:
        assert nobody.get("/metrics").status_code == 401
    objective = lb.Objective("right", margin=0.2, noise="bernoulli")
    study = lb.create_study("counted", service.link, arms=["a", "b"], objectives=[objective], seed=0)
    first, second, _ = study.ask_many(3)
    study.tell(first, {"right": 1})
    study.tell(second, {"right": 0})
    study.pause("tea")
    now = lines(client)

    def grown(name):
        return float(now[f"lexbandits_{name}"]) - float(before.get(f"lexbandits_{name}", 0))

    assert grown('events_total{kind="told"}') == 2
    assert grown('events_total{kind="asked"}') == 3
    assert grown('requests_total{kind="tell",status="200"}') == 2
    assert grown('requests_total{kind="ask",status="201"}') == 1
    assert grown('request_seconds_count{kind="tell"}') == 2
    assert grown('request_seconds_bucket{kind="tell",le="+Inf"}') == 2
    assert grown('request_seconds_sum{kind="tell"}') > 0
    buckets = [float(count) for line, count in now.items() if 'bucket{kind="tell"' in line]
    assert buckets == sorted(buckets)
    assert now["lexbandits_open_trials"] == "1"
    assert now['lexbandits_studies{state="paused"}'] == "1"
    assert grown('requests_total{kind="look",status="401"}') == 1


def test_the_description_for_people_names_every_endpoint_and_loads_nothing(client):
    page = client.get("/docs").text
    for path, ways in client.get("/openapi.json").json()["paths"].items():
        for method in ways:
            assert f"{method.upper()} {path}<" in page
    assert set(re.findall(r'(?:href|src)="?([^">]+)', page)) == {"/style.css", "/openapi.json"}
    assert client.get("/style.css").status_code == 200
