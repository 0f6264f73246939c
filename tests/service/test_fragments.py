"""What the page polls: one answer with its ETag, drawn by the service, no larger for more results."""

import re
from importlib.resources import files

import pytest

import lexbandits as lb
from lexbandits.service import overview
from lexbandits.service.schemas import ListedStudy
from support.asked import MODELS, ask, get_when_made, make, refused
from support.services import Clocked

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
    assert get_when_made(client, f"{MODELS}/forecast").status_code == 200
    assert get_when_made(client, f"{MODELS}/course").status_code == 200
    second = client.get(PAGE, headers=same)
    assert second.status_code == 200
    assert "Forecast" in second.json()["fragments"]["figures"]
    assert second.json()["wanted"] == ["forecast"]  # which the page asks for seldom
    same = {"If-None-Match": second.headers["etag"]}
    assert client.get(PAGE, headers=same).status_code == 304
    measure(client, 1)
    assert client.get(PAGE, headers=same).status_code == 200
    refused(client.get("/api/studies/nobody/fragments"), 404, "no study")


def test_after_the_end_it_says_what_learning_cost(client):
    make(client)
    measure(client, 24)
    assert "What learning cost" not in words_of(client, "figures")
    client.post(f"{MODELS}/state", json={"state": "finished", "reason": "enough"}).raise_for_status()
    assert "24 results in all: " in words_of(client, "figures").partition("What learning cost")[2]


def test_its_size_depends_on_arms_and_objectives_only(client):
    make(client, objectives=[{"name": "correct", "margin": 0.02, "noise": "bernoulli"}])
    sizes = []
    for n in (30, 470):
        for trial in ask(client, n, worker="bench 1"):
            values = {"correct": 1}
            client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": values}).raise_for_status()
        sizes.append(len(client.get(PAGE).content))
    assert sizes[1] < 1.05 * sizes[0]


def test_names_are_text(client):
    study = "/api/studies/models"
    make(client, arms=[EVIL, '"><script>', "it's"], objectives=[{"name": EVIL, "unit": "<u>", "margin": 2}])
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
    assert cost(preregistered=False) is None
    limit = {"name": "correct", "at_least": 0.4, "slack": 0.1, "noise": "bernoulli"}
    assert "6 results" in cost(
        objectives=[limit, {"name": "latency", "margin": 4, "noise": ["bounded", 0, 100]}]
    )
    cost()
    client.put(f"{MODELS}/objectives/correct", json={"margin": 0.4}).raise_for_status()
    assert client.get(PAGE).json()["closing"] is None, "it is closed"


def test_page_and_report_share_one_style_sheet(client, service, tmp_path):
    make(client)
    style = (files("lexbandits") / "views" / "style.css").read_text("utf-8")
    served = client.get("/style.css")
    assert served.text == style
    assert served.headers["content-type"].startswith("text/css")
    study = lb.open_study("models", service.storage)
    assert style in study.report(tmp_path / "report.html").read_text("utf-8")


def told(client, n, correct=lambda arm: 1, **words):
    for trial in ask(client, n, **words):
        values = {"correct": correct(trial["arm"]), "latency": 40}
        client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": values}).raise_for_status()


def words_of(client, name):
    """A fragment as it reads."""
    return " ".join(re.sub("<[^>]*>", " ", client.get(PAGE).json()["fragments"][name]).split())


def test_what_ran_out_is_one_line_is_no_gap_and_hides_no_ending(clock, serve):
    with serve(kind=Clocked).client() as client:
        ran_out(clock, client)


def ran_out(clock, client):
    declared = {"if_failed": 0, "if_expired": 0}
    first = {"name": "correct", "margin": 0.2, "noise": "bernoulli", **declared}
    second = {"name": "latency", "margin": 4, "noise": ["bounded", 0, 100], **declared}
    make(client, objectives=[first, second])
    trials = ask(client, 30, lease="1h")
    clock.move(3601)
    for trial in trials:
        assert client.post(f"{MODELS}/trials/{trial['id']}/expiry").status_code == 200
    trials = ask(client, 120, lease="1d")
    unneeded = ask(client, 24, lease="1h")  # of passes after the end
    results = [
        {"trial": t["id"], "values": {"correct": int(t["arm"] == "large"), "latency": 40}} for t in trials
    ]
    client.post(f"{MODELS}/results", json={"results": results}).raise_for_status()
    clock.move(3601)
    for trial in unneeded:
        assert client.post(f"{MODELS}/trials/{trial['id']}/expiry").status_code == 200
    assert client.get(MODELS).json()["expired"] == 54
    assert "large is certified as the answer" in words_of(client, "figures")
    line = "54 trials ran out in all (small 18, large 18, cot 18): what was declared counts"
    assert words_of(client, "figures").count("ran out") == 1
    assert line in words_of(client, "figures")
    strip = words_of(client, "strip")
    assert "Missing" not in strip
    assert "Without a result 30 30 ran out; they count as declared, 24 ran out after the end" in strip


def test_who_gives_no_name_has_measured(client):
    make(client)
    assert "Workers – nobody has asked yet" in words_of(client, "strip")
    assert "Nobody has asked for a trial yet." in words_of(client, "workers")
    told(client, 6)
    assert "Workers – gave no name" in words_of(client, "strip")
    assert "The workers gave no names." in words_of(client, "workers")


def test_each_event_is_a_sentence(client):
    make(client, max_arms=4)
    told(client, 3)
    (trial,) = ask(client, worker="Marie")
    client.put(f"{MODELS}/trials/{trial['id']}/result", json={"failed": "<no>"}).raise_for_status()
    for path, body in (
        ("arms", {"name": "new"}),
        ("arms/new/withdrawal", {"reason": "dear"}),
        ("notes", {"text": "warm"}),
        ("state", {"state": "paused", "reason": "noon"}),
        ("state", {"state": "resumed"}),
        ("state", {"state": "finished", "reason": "enough"}),
        ("state", {"state": "reopened", "reason": "more"}),
    ):
        client.post(f"{MODELS}/{path}", json=body).raise_for_status()
    client.put(f"{MODELS}/budget", json={"budget": 50}).raise_for_status()
    said = words_of(client, "figures").partition("Latest")[2]
    for sentence in (
        "budget set to 50 trials", "reopened: “more”", "ended by hand: “enough”", "measuring again",
        "paused: “noon”", "note: “warm”", "new was withdrawn: “dear”", "new was added",
        "failed: “&lt;no&gt;” (Marie)", "the study was created",
    ):  # fmt: skip
        assert sentence in said, (sentence, said)


def test_the_list_is_searched_and_its_bars_are_true(client):
    make(client)
    make(client, name="other")
    told(client, 12)
    drawn = client.get("/api/fragments/studies").json()["fragments"]["studies"]
    assert drawn.count('class="seg"') == 2
    assert drawn.count('class="n"') == 1, "an empty study has no half-full bar"
    for query, names in {
        "search=OTH": {"other"},
        "show=paused": set(),
        "show=measuring": {"models", "other"},
    }.items():
        drawn = client.get(f"/api/fragments/studies?{query}").json()["fragments"]["studies"]
        assert set(re.findall('data-key="(models|other)"', drawn)) == names
    refused(client.get("/api/fragments/comparison?first=models&second=nobody"), 404, "no study")


def test_trials_by_arm_state_and_worker_page_by_page(client):
    make(client)
    told(client, 120, worker="Marie")
    ask(client, 3, worker="Pierre")

    def rows(**asked):
        answer = client.get(f"{PAGE}/trials", params=asked)
        answer.raise_for_status()
        return re.findall(r'<tr data-key="(\d+)-', answer.json()["fragments"]["trials"])

    assert rows() == [str(number) for number in range(122, 72, -1)]
    assert rows(page=3) == rows(page=99) == [str(number) for number in range(22, -1, -1)]
    assert rows(worker="Pierre") == rows(state="open") == ["122", "121", "120"]
    every = client.get(f"{MODELS}/trials?limit=1000").json()["trials"]
    of_cot = [str(row["number"]) for row in every if (row["arm"], row["worker"]) == ("cot", "Marie")][::-1]
    assert rows(arm="cot", worker="Marie", state="told") == of_cot[:50]
    assert rows(arm="nobody") == []
    assert client.get(f"{PAGE}/trials?state=lost").status_code == 422


def test_a_study_that_is_being_computed_is_not_said_to_have_stopped():
    """Nothing is known of it: neither that it measures, nor that it stopped, nor that it has no results."""
    told = {"name": "m", "created": "", "changed": "", "answer": "", "badge": "Being computed"}
    numbers = dict.fromkeys(("seq", "results", "open", "overdue", "arms"), 0)
    lists = {key: [] for key in ("flags", "candidates", "objectives", "stages")}
    state = {"state": "busy", "settling": None, "budget": None, "certified": False}
    listed = ListedStudy(**told, **numbers, **lists, **state)
    text = " ".join(
        re.sub("<[^>]+>", " ", str(part)) for part in overview.studies([listed], "", "all", 1, False)
    )
    assert "1 is being computed" in " ".join(text.split())
    assert "Stopped without a certificate 0" in text
    assert not re.search("no results yet|0 of 0|No study is measuring", text)


SETTLING = [("measuring", "0 of 2 settled, now correct"), ("paused", "0 of 2 settled, correct next")]


@pytest.mark.parametrize(("state", "text"), SETTLING)
def test_what_is_being_settled_is_not_said_to_be_settled(state, text):
    """Under "Settled" stands how many objectives are, and then which one is not."""
    told = {"name": "m", "created": "", "changed": "", "answer": "a", "badge": "Measuring"}
    numbers = {**dict.fromkeys(("seq", "open", "overdue"), 0), "results": 9, "arms": 2}
    lists = {"flags": [], "candidates": ["a", "b"], "objectives": ["correct", "latency"]}
    now = {"state": state, "settling": "correct", "budget": None, "certified": False}
    listed = ListedStudy(**told, **numbers, **lists, **now, stages=["settling", "later"])
    shown = re.sub("<[^>]+>", " ", str(overview.studies([listed], "", "all", 1, False)))
    assert text in " ".join(shown.split())
