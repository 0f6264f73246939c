"""Every endpoint does what it says, with its code."""

import json
import random
import time
from pathlib import Path

import pytest

import lexbandits as lb
from support.asked import MODELS, QUESTION, ask, get_when_made, make, refused
from support.questions import go_on, measure
from support.services import Clocked


def test_create_ask_tell_in_three_requests(client):
    made = make(client)
    assert made.headers["location"] == MODELS
    trial = ask(client, worker="ann")[0]
    assert list(trial) == ["number", "id", "arm", "item", "until"]
    told = client.put(
        f"{MODELS}/trials/{trial['id']}/result", json={"values": {"correct": 1, "latency": 9.5}}
    )
    assert (told.status_code, told.json()) == (200, {"outcome": "counted"})


def test_a_result_is_told_once(client):
    make(client)
    first, second = ask(client, 2)
    path = f"{MODELS}/trials/{first['id']}/result"
    for outcome in ("counted", "repeated"):
        assert client.put(path, json={"values": {"correct": 1}}).json() == {"outcome": outcome}
    problem = refused(client.put(path, json={"values": {"correct": 0}}), 409, "before")
    assert problem["kind"] == "ConflictError"
    assert client.put(f"{MODELS}/trials/{second['id']}/result", json={"failed": "oom"}).json() == {
        "outcome": "counted"
    }
    refused(client.put(path, json={}), 422, "not both")
    refused(client.put(path, json={"values": {}, "failed": "x"}), 422, "not both")


def test_values_are_refused_and_the_trial_stays_open(client):
    make(client)
    (trial,) = ask(client)
    path = f"{MODELS}/trials/{trial['id']}/result"
    refused(client.put(path, json={"values": {"correct": 7}}), 422, "[0, 1]", "7")
    refused(client.put(path, json={"values": {"speed": 1}}), 422, "'speed'")
    refused(client.put(path, json={"values": {"correct": "1"}}), 422, "values.correct")
    refused(client.put(path, json={"values": {"latency": 1e60}}), 422, "values.latency")
    for word in ("NaN", "Infinity", "-Infinity", "1e400"):
        content = f'{{"values": {{"correct": {word}}}}}'
        refused(client.put(path, content=content, headers={"content-type": "application/json"}), 422)
    assert client.put(path, json={"values": {"correct": True, "latency": None}}).json() == {
        "outcome": "counted"
    }


def test_unknown_is_404(client):
    refused(client.get(MODELS), 404, "'models'")
    make(client)
    refused(client.put(f"{MODELS}/trials/0-00000000/result", json={"values": {}}), 404, "0-00000000")
    refused(client.post(f"{MODELS}/arms/huge/withdrawal", json={"reason": "x"}), 404, "'huge'")
    refused(client.get("/api/other"), 404)
    refused(client.patch(MODELS), 405)


def test_the_same_key_gives_the_same_trials(client):
    make(client)
    key = {"Idempotency-Key": "a-key"}
    first, again, other = (
        client.post(f"{MODELS}/trials", json={"n": 2}, headers=headers).json()["trials"]
        for headers in (key, key, {"Idempotency-Key": "b-key"})
    )
    assert first == again
    assert {t["number"] for t in first}.isdisjoint(t["number"] for t in other)


def test_results_are_all_or_none_and_ask_goes_with_them(client):
    make(client)
    trials = ask(client, 3)
    results = [{"trial": t["id"], "values": {"correct": 1, "latency": 5}} for t in trials]
    wrong = [*results[:2], {"trial": results[2]["trial"], "values": {"correct": 2}}]
    refused(client.post(f"{MODELS}/results", json={"results": wrong}), 422)
    assert client.get(MODELS).json()["results"] == 0
    answer = client.post(f"{MODELS}/results", json={"results": results, "ask": 2, "worker": "ann"}).json()
    assert answer["outcomes"] == ["counted"] * 3
    assert len(answer["trials"]) == 2
    refused(client.post(f"{MODELS}/results", json={"results": results * 400}), 422, "results")


def test_a_paused_study_is_409_and_an_ended_one_has_nothing(client):
    make(client)
    assert client.post(f"{MODELS}/state", json={"state": "paused", "reason": "lunch"}).status_code == 200
    assert refused(client.post(f"{MODELS}/trials", json={}), 409, "lunch")["kind"] == "StudyPaused"
    client.post(f"{MODELS}/state", json={"state": "measuring"})
    assert len(ask(client)) == 1
    client.post(f"{MODELS}/state", json={"state": "finished", "reason": "enough"})
    over = client.post(f"{MODELS}/trials", json={})
    assert (over.status_code, over.json()["trials"], over.json()["state"]) == (201, [], "finished")
    assert "ended by hand" in over.json()["reason"]
    client.post(f"{MODELS}/state", json={"state": "measuring", "reason": "not enough"})
    assert client.get(MODELS).json()["state"] == "measuring"


def test_leases(clock, serve):
    with serve(kind=Clocked).client() as client:
        leases(clock, client)


def leases(clock, client):
    make(client)
    kept, given_back = ask(client, 2, lease="1d", worker="ann")
    assert client.delete(f"{MODELS}/trials/{given_back['id']}/lease").status_code == 204
    refused(
        client.put(f"{MODELS}/trials/{given_back['id']}/result", json={"values": {"correct": 1}}),
        409,
        "released",
    )
    refused(client.post(f"{MODELS}/trials/{kept['id']}/expiry"), 409, "not overdue")
    assert client.post(f"{MODELS}/workers/nobody/heartbeat").status_code == 204
    client.put(f"{MODELS}/trials/{kept['id']}/result", json={"values": {"correct": 1}})
    (gone,) = ask(client, lease="1h", worker="bob")
    before = client.get(MODELS).headers["etag"]
    clock.move(3601)
    assert client.post(f"{MODELS}/trials/{gone['id']}/expiry").json() == {"outcome": "expired"}
    assert client.post(f"{MODELS}/trials/{gone['id']}/expiry").json() == {"outcome": "repeated"}
    after = client.get(MODELS, headers={"If-None-Match": before})
    assert (after.status_code, after.json()["overdue"]) == (200, 0)
    late = client.put(f"{MODELS}/trials/{gone['id']}/result", json={"values": {"correct": 1}})
    assert late.json() == {"outcome": "late"}


def test_a_correction(client):
    make(client)
    first, _ = ask(client, 2)
    client.put(f"{MODELS}/trials/{first['id']}/result", json={"values": {"correct": 1}})
    corrected = client.put(
        f"{MODELS}/trials/{first['id']}/correction", json={"values": {"correct": 0}, "reason": "a slip"}
    )
    assert corrected.json() == {"outcome": "corrected"}


def test_arms_objectives_and_budget_change(client):
    make(client, max_arms=4)
    assert client.post(f"{MODELS}/arms", json={"name": "huge", "tokens": 900}).status_code == 201
    refused(client.post(f"{MODELS}/arms", json={"name": "huge"}), 409)
    refused(client.post(f"{MODELS}/arms", json={"name": "fifth"}), 422, "max_arms")
    assert client.post(f"{MODELS}/arms/huge/withdrawal", json={"reason": "too dear"}).status_code == 200
    arms = {arm["name"]: arm for arm in client.get(MODELS).json()["arms"]}
    assert (arms["huge"]["decision"]["outcome"], arms["huge"]["withdrawn"], arms["huge"]["fields"]) == (
        "withdrawn",
        "too dear",
        {"tokens": 900},
    )
    assert client.delete(f"{MODELS}/arms/huge/withdrawal").status_code == 200
    assert client.put(f"{MODELS}/objectives/latency", json={"margin": 6}).status_code == 200
    assert client.put(f"{MODELS}/order", json={"objectives": ["latency", "correct"]}).status_code == 200
    assert client.put(f"{MODELS}/budget", json={"budget": 500}).status_code == 200
    assert client.post(f"{MODELS}/notes", json={"text": "as agreed"}).status_code == 201
    summary = client.get(MODELS).json()
    assert [(o["name"], o["margin"]) for o in summary["objectives"]] == [
        ("latency", 6.0),
        ("correct", 0.2),
    ]
    assert summary["budget"] == 500
    assert [event["kind"] for event in summary["events"]][:2] == ["note", "budget"]


def test_the_summary_is_known_by_its_etag(client):
    make(client)
    first = client.get(MODELS)
    assert first.headers["etag"].startswith(f'"{first.json()["seq"]}-')
    assert (first.json()["objective"], first.json()["candidates"]) == ("correct", ["small", "large", "cot"])
    assert client.get(MODELS, headers={"If-None-Match": first.headers["etag"]}).status_code == 304
    ask(client, worker="ann")
    second = client.get(MODELS, headers={"If-None-Match": first.headers["etag"]})
    assert second.status_code == 200
    client.post(f"{MODELS}/workers/ann/heartbeat")
    third = client.get(MODELS, headers={"If-None-Match": second.headers["etag"]})
    assert third.status_code == 200  # a lease was extended, though no event says so
    assert third.json()["workers"][0]["until"] > second.json()["workers"][0]["until"]


def test_the_summary_says_what_the_study_says(client, service):
    make(client, preregistered=False)  # the answer then takes so long that the others leave before
    study = lb.open_study("models", service.link)
    study.run(measure, workers=8, progress=False)
    here = lb.open_study("models", service.storage, read_only=True)
    summary = client.get(MODELS).json()
    assert summary["answer"] == {**here.answer.as_json(), "messages": []}
    assert (summary["state"], summary["results"]) == ("finished", here.status.results)
    outcomes = {arm["name"]: (arm["decision"]["outcome"], arm["decision"]["by"]) for arm in summary["arms"]}
    out = ("excluded", "elimination")
    assert outcomes == {"small": out, "large": ("winner", None), "cot": out}
    left = next(arm["left"] for arm in summary["arms"] if arm["name"] == "small")
    assert left["objective"] == "correct"
    assert left["high"] < -0.1 or left["rival"] != "large"
    table = here.results()
    for arm in summary["arms"]:
        for name, seen in arm["objectives"].items():
            row = table[(table["arm"] == arm["name"]) & (table["objective"] == name)].iloc[0]
            assert (seen["mean"], seen["results"]) == (row["mean"], row["results"])
            assert row["low"] < seen["low"] < seen["mean"] < seen["high"] < row["high"]
    assert {o["name"]: o["stage"] for o in summary["objectives"]} == {
        "correct": "settled",
        "latency": "settled",
    }
    assert here.verify()


def test_the_summary_does_not_grow_with_trials(client):
    make(client)
    ask(client, 2, worker="ann")
    small = len(client.get(MODELS).content)
    for _ in range(5):
        ask(client, 1000, worker="ann")
    assert len(client.get(MODELS).content) < 1.2 * small


def test_pages_of_events_and_trials(client):
    make(client)
    ask(client, 5)
    page = client.get(f"{MODELS}/events", params={"limit": 4}).json()
    rest = client.get(f"{MODELS}/events", params={"since": page["next"], "limit": 4}).json()
    assert [e["seq"] for e in (*page["events"], *rest["events"])] == [1, 2, 3, 4, 5, 6]
    assert rest["next"] is None
    page = client.get(f"{MODELS}/trials", params={"state": "open", "limit": 3}).json()
    assert [t["number"] for t in page["trials"]] == [0, 1, 2]
    assert page["next"] == 3
    assert client.get(f"{MODELS}/trials", params={"state": "told"}).json() == {"trials": [], "next": None}


def test_all_studies_at_a_glance(client):
    for name in ("b", "a", "c"):
        make(client, name=name)
    first = client.get("/api/studies", params={"limit": 2}).json()
    assert [s["name"] for s in first["studies"]] == ["a", "b"]
    second = client.get("/api/studies", params={"after": first["next"]}).json()
    assert [s["name"] for s in second["studies"]] == ["c"]
    assert (second["next"], second["role"]) == (None, "admin")


def test_a_study_is_made_once_and_deleted_for_good(client):
    make(client)
    assert refused(client.post("/api/studies", json=QUESTION), 409)["kind"] == "StudyExistsError"
    (trial,) = ask(client)
    assert client.delete(MODELS).status_code == 204
    refused(client.get(MODELS), 404)
    make(client)
    refused(client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": {"correct": 1}}), 404)


def test_what_a_question_cannot_be(client):
    without = {**QUESTION["objectives"][0]}
    del without["margin"]
    for changes, word in (
        ({"arms": ["a", "a"]}, "twice"),
        ({"objectives": [without]}, "margin"),
        ({"delta": 2}, "delta"),
        ({"colour": "red"}, "colour"),
        ({"arms": []}, "arms"),
        ({"arms": [f"arm {i}" for i in range(500)]}, "arms"),
        ({"name": ".."}, "name"),
        ({"name": "x" * 201}, "name"),
        ({"lease": "soon"}, "lease"),
        ({"lease": "0s"}, "lease"),
    ):
        refused(client.post("/api/studies", json={**QUESTION, **changes}), 422, word)
    assert client.get("/api/studies").json()["studies"] == []


def test_health_description_and_page_need_no_token(service):
    with service.client(token="") as stranger:
        assert stranger.get("/healthz").json()["status"] == "ok"
        assert stranger.get("/openapi.json").json()["openapi"].startswith("3.1")
        page = stranger.get("/")
        assert page.status_code == 200
        assert page.headers["content-type"].startswith("text/html")
        assert "script-src 'self'" in page.headers["content-security-policy"]


def test_export_and_verification(client, service, tmp_path):
    make(client)
    study = lb.open_study("models", service.link)
    go_on(study, 20)
    here = lb.open_study("models", service.storage, read_only=True)
    table = client.get(f"{MODELS}/export")
    assert table.headers["content-type"] == "text/csv; charset=utf-8"
    assert table.headers["content-disposition"] == 'attachment; filename="study.csv"'
    assert table.text == Path(here.export(tmp_path / "study.csv")).read_text()
    lines = client.get(f"{MODELS}/export", params={"format": "jsonl"}).text.splitlines()
    events = [event._asdict() for event in here.events()]
    assert [json.loads(line) | event for line, event in zip(lines, events, strict=True)] == list(
        map(json.loads, lines)
    )
    refused(client.get(f"{MODELS}/export", params={"format": "xlsx"}), 422)
    found, known = get_when_made(client, f"{MODELS}/verification").json(), here.verify()
    assert found == {"ok": True, "events": 41, "trials": 20, "problems": [], "sha256": known.sha256}


def test_explanation_forecast_figures_and_report(client, service):
    make(client)
    refused(client.get(f"{MODELS}/forecast"), 409)  # nothing is measured
    assert get_when_made(client, f"{MODELS}/course").json() == {"phases": []}
    refused(client.get(f"{MODELS}/figures/nothing"), 422)
    study = lb.open_study("models", service.link)
    go_on(study, 60)
    explained = get_when_made(client, f"{MODELS}/explanation").json()
    assert {story["arm"] for story in explained["arms"]} == {"small", "large", "cot"}
    coming = get_when_made(client, f"{MODELS}/forecast", runs=20).json()
    assert coming["runs"] == 20
    assert set(coming["winners"]) == {"small", "large", "cot"}
    refused(client.get(f"{MODELS}/forecast", params={"runs": 10**6}), 422)
    for name in ("intervals", "race", "evidence", "forecast", "pulls", "workers"):
        figure = get_when_made(client, f"{MODELS}/figures/{name}")
        assert figure.headers["content-type"] == "image/svg+xml"
        assert "sandbox" in figure.headers["content-security-policy"]
        if name != "forecast":
            assert figure.text == getattr(lb.plot, name)(study)._repr_svg_()
    report = get_when_made(client, f"{MODELS}/report")
    assert report.headers["content-type"] == "text/html; charset=utf-8"
    assert report.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert "sandbox" in report.headers["content-security-policy"]
    assert "<script" not in report.text
    here = lb.open_study("models", service.storage, read_only=True)
    assert here.verify().sha256 in report.text
    assert get_when_made(client, f"{MODELS}/report", format="md").text.startswith("#")


def test_what_the_answer_did_not_wait_for_is_not_called_settled(client, service):
    """An answer may be certain before its rivals have left: nothing contradicts `candidates`."""
    make(client, objectives=[{"name": "correct", "margin": 0.2, "noise": "bernoulli"}])
    luck, chance = random.Random(4), {"small": 0.45, "large": 0.8, "cot": 0.75}
    study = lb.open_study("models", service.link)
    study.run(lambda arm: {"correct": luck.random() < chance[arm]}, progress=False)
    summary = client.get(MODELS).json()
    assert summary["answer"]["certified"]
    assert len(summary["candidates"]) > 1
    assert summary["objectives"][0]["stage"] == "enough"
    left = {arm["name"] for arm in summary["arms"] if arm["decision"]["by"] == "elimination"}
    assert left.isdisjoint(summary["candidates"])


# --- a study that waits for a trial under way


def test_a_study_that_waits_says_until_when(client, service):
    x = {"name": "x", "margin": 0.2, "noise": "bernoulli"}
    make(client, name="easy", arms=["a", "b"], objectives=[x])
    (lost,) = ask(client, study="/api/studies/easy", worker="gpu-3", lease="1h")
    for _ in range(1000):
        answer = client.post("/api/studies/easy/trials", json={"worker": "alive", "wait": 0})
        if answer.status_code != 201:
            break
        (trial,) = answer.json()["trials"]
        told = {"values": {"x": int(trial["arm"] == "a")}}
        client.put(f"/api/studies/easy/trials/{trial['id']}/result", json=told)
    words = refused(answer, 409, "results wait for the trial of gpu-3")
    assert words["kind"] == "StudyWaiting"
    assert words["until"] == lost["until"]
    assert 3000 < int(answer.headers["Retry-After"]) <= 3600
    remote = lb.open_study("easy", service.link)
    with pytest.raises(lb.StudyWaiting) as waiting:
        remote.ask(wait=0)
    assert waiting.value.until.isoformat() == lost["until"]
    assert remote.ask_many(2, wait=0) == []
    remote.fail(lost["id"], "it hung", interrupted=True)
    assert client.get("/api/studies/easy").json()["state"] == "finished"


def test_who_looks_at_a_study_settles_what_has_run_out(client):
    x = {"name": "x", "margin": 0.2, "noise": "bernoulli"}
    make(client, name="brief", arms=["a", "b"], objectives=[x])
    ask(client, study="/api/studies/brief", lease="100ms")
    time.sleep(0.2)
    summary = client.get("/api/studies/brief").json()
    assert (summary["open"], summary["expired"], summary["overdue"]) == (0, 1, 0)


def test_an_end_stays_where_it_was(client):
    make(client)
    assert client.get(MODELS).json()["ended"] is None
    client.post(f"{MODELS}/state", json={"state": "finished", "reason": "enough"})
    ended = client.get(MODELS).json()
    assert ended["ended"] == ended["changed"]
    for number in range(30):
        client.post(f"{MODELS}/notes", json={"text": f"later {number}"})
    noted = client.get(MODELS).json()
    assert noted["ended"] == ended["ended"] < noted["changed"]
    client.post(f"{MODELS}/state", json={"state": "measuring", "reason": "go on"})
    assert client.get(MODELS).json()["ended"] is None


def test_an_end_that_nobody_has_recorded_has_its_reason(service, client):
    make(
        client,
        arms=["a", "b"],
        objectives=[
            {
                "name": "size",
                "noise": "exact",
            }
        ],
    )
    study = lb.open_study("models", service.storage)
    for trial, size in zip(study.ask_many(2), (1, 2), strict=True):
        study.record(trial, {"size": size})
    status = lb.open_study("models", service.link).status
    assert (status.state, status.reason) == ("finished", study.answer.reason)


def test_an_objective_that_is_not_there(client):
    make(client)
    refused(client.put(f"{MODELS}/objectives/none", json={"margin": 0.4}), 404, "no objective 'none'")
    refused(client.put(f"{MODELS}/objectives/correct", json={"margin": -1}), 422)


def test_percentages_of_a_mean_are_words_of_a_study(service, client):
    time = {"name": "time", "direction": "minimize", "margin": "10%", "noise": ["bounded", 0, 10]}
    words = {"name": "shares", "arms": ["a", "b"], "objectives": [{**time, "reference": "b"}]}
    assert client.post("/api/studies", json=words).status_code == 201
    study = lb.open_study("shares", service.link)
    while study.status.state == "measuring":
        for trial in study.ask_many(8):
            study.tell(trial, {"time": 2.0 if trial.arm == "a" else 4.0})
    assert (study.answer.arm, study.answer.certified) == ("a", True)
    (objective,) = client.get("/api/studies/shares").json()["objectives"]
    assert objective["matters"] == "margin 10 % of b, tie 5 % of b"
    refused = client.put("/api/studies/shares/objectives/time", json={"margin": "2%"})
    assert (refused.status_code, "cannot be changed" in refused.json()["detail"]) == (422, True)
    withdrawn = client.post("/api/studies/shares/arms/b/withdrawal", json={"reason": "no"})
    assert withdrawn.status_code == 409
    wrong = {**words, "name": "other", "objectives": [{**time, "reference": "c"}]}
    assert "one of the arms" in client.post("/api/studies", json=wrong).json()["detail"]


def test_cuts_and_a_baseline_are_words_of_a_study(service, client):
    latency = lb.Objective("latency", "minimize", unit="s", cap=2.0, margin=0.2)
    study = lb.create_study("slow", service.link, arms=["a", "b"], objectives=[latency], baseline="b", seed=0)
    for trial in study.ask_many(2):
        study.tell(trial, {"latency": 60.0})
    spec = client.get("/api/studies/slow/spec").json()
    assert (spec["objectives"][0]["cap"], spec["baseline"]) == (2.0, "b")
    assert set(study.results()["mean"]) == {2.0}
    assert (
        client.get("/api/studies/slow").json()["answer"]["decision"]
        == study.answer.decision
        == "keep_for_now"
    )
