"""The page in a real browser against a real service: what it shows, what people can do there, how it asks."""

import csv
import importlib.util
import json
import os
import re
import subprocess
import sys
from datetime import datetime as time
from urllib.parse import quote

import pytest

from support.asked import MODELS, ask, get_when_made, make
from support.patience import until

EVIL = "<img src=x onerror=alert(1)>"
HURRY = 5  # what the page does every few seconds it does so many times as often
HASTE = f"""
const later = setTimeout;
window.planned = [];
setTimeout = (work, wait, ...rest) => {{
  planned.push(wait);
  return later(work, wait > 10_000 ? wait : wait / {HURRY}, ...rest);
}};
"""  # and what it waits for is noted
WIDTHS = {"desktop": (1280, 900), "phone": (360, 740)}
WORKER = """
import random, sys, time
import lexbandits as lb
study, rng = lb.open_study("models", sys.argv[1]), random.Random(sys.argv[2])
shares = {"small": 0.3, "large": 0.8, "cot": 0.3}
while True:
    try:
        trial = study.ask(worker=f"worker {sys.argv[2]}")
    except lb.StudyFinished:
        break
    except lb.StudyWaiting:
        time.sleep(0.05)
        continue
    time.sleep(0.1)  # long enough for the page to see it measure
    study.tell(trial, {"correct": int(rng.random() < shares[trial.arm]), "latency": rng.uniform(40, 60)})
"""


@pytest.fixture
def visit(browser, service):
    """Open the page as a person would; at the end nothing may have been complained about."""
    contexts, complaints = [], []

    def opened(study=None, size="desktop", scheme="light", token=None, tolerate=(), wait=True):
        width, height = WIDTHS[size]
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
        context.add_init_script(HASTE)
        page = context.new_page()
        page.set_default_timeout(240_000)

        def complain(text):
            if not any(word in text for word in tolerate):
                complaints.append(text)

        page.on("console", lambda message: complain(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: complain(f"{error}"))
        page.on("dialog", lambda dialog: (complaints.append(f"a dialog: {dialog.message}"), dialog.dismiss()))
        page.asked = []
        page.on("response", lambda response: page.asked.append((response.status, response.url)))
        contexts.append(context)
        page.goto(f"{service.address}/#token={token or service.token}")
        if study is not None:
            page.goto(f"{service.address}/#/study/{quote(study, safe='')}")
        if wait:
            page.wait_for_selector(".arms-table" if study else ".ls, .blank")
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []


@pytest.fixture
def start(service):
    """Start worker processes; none outlives its test."""
    started = []

    def worker(name):
        command = [sys.executable, "-c", WORKER, service.address, name]
        environment = {**os.environ, "LEXBANDITS_TOKEN": service.token}
        started.append(subprocess.Popen(command, env=environment))
        return started[-1]

    yield worker
    for process in started:
        process.kill()
        process.wait()


def plain(text):
    """With spaces that may break."""
    return text.replace("\u00a0", " ")


def press(page, name, where="body"):
    page.locator(where).get_by_role("button", name=name, exact=True).click()


def tell(client, trial, study=MODELS, **body):
    answer = client.put(f"{study}/trials/{trial['id']}/result", json=body)
    assert answer.status_code == 200, answer.text


def measured(client, n=12, **changes):
    """A study with some results."""
    make(client, **changes)
    for i, trial in enumerate(ask(client, n, worker="bench 1")):
        tell(client, trial, values={"correct": i % 2, "latency": 40 + i})


def finished(client, **changes):
    """A study that is certain after one result an arm, without its second objective."""
    size = {"name": "size", "direction": "minimize", "unit": "MB", "margin": 1, "noise": "exact"}
    make(client, objectives=[size, {"name": "cost", "margin": 2}], **changes)
    for trial in ask(client, 3, worker="bench 1"):
        value = {"small": 10, "large": 90.5, "cot": 30}[trial["arm"]]
        tell(client, trial, values={"size": value, "cost": 1})
    assert client.get(MODELS).json()["answer"]["certified"]


# --- measuring


@pytest.mark.parametrize("service", ["sqlite", "postgres"], indirect=True)
def test_workers_beyond_those_listed(client, visit):
    make(client)
    for number in range(53):
        ask(client, 1, worker=f"w{number}")
    panel = visit("models").locator("[data-key=workers]")
    panel.get_by_text("and 3 more, not heard of for longer").wait_for()
    assert panel.get_by_text("without a name").count() == 0
    assert panel.locator("tbody th").last.text_content() == "others"


def test_two_workers_measure_and_the_page_sees_it_end(client, visit, start):
    make(client)
    page = visit("models")
    assert "No results yet" in page.inner_text(".say")
    workers = [start("0"), start("1")]
    page.wait_for_selector("text=Not decided yet", timeout=240_000)
    assert "Measuring" in page.inner_text("h1")
    page.wait_for_selector(".badge.ok", timeout=240_000)
    assert [worker.wait(240) for worker in workers] == [0, 0]
    assert plain(page.inner_text(".say")) == ("large wins: certified at 95 % confidence.")
    assert "95 %" in plain(page.inner_text(".strip"))
    assert page.inner_text("#news") == "large is the answer, certified."
    table = page.inner_text(".arms-table")
    assert "the answer" in table
    assert "worse than large by" in table
    assert {"worker 0", "worker 1"} <= set(page.locator(".wk tbody th").all_inner_texts())
    assert page.locator("[data-do=measure]").count() == 0


def test_a_result_by_hand(client, visit):
    make(client, items=[0.25])
    page = visit("models", tolerate=["422"])
    press(page, "Measure by hand")
    press(page, "Ask for a trial")
    assert page.inner_text("[role=alert]") == "Who measures is needed."
    page.fill("#f-worker", "Marie")
    page.select_option("#f-lease", "1d")
    press(page, "Ask for a trial")
    page.wait_for_selector("text=Enter a result")
    assert "on item 0.25, before" in page.inner_text("dialog")
    hints = page.inner_text("dialog")
    assert "is better. Empty if not measured." in hints
    assert "undefined" not in hints
    press(page, "Save result")
    assert "at least one value" in page.inner_text("dialog [role=alert]")
    page.fill("#f-v0", "1")
    for wrong, said in (("5x", "a number"), ("1,234", "could be 1.234 or 1234"), ("555", "latency")):
        page.fill("#f-v1", wrong)
        press(page, "Save result")
        page.locator("dialog [role=alert]", has_text=said).wait_for()
    page.keyboard.press("Escape")
    assert "throws away" in page.inner_text("dialog [role=alert]")
    page.fill("#f-v1", "55,5")
    press(page, "Save, then the next")
    page.wait_for_selector("dialog >> text=Saved and counted.")
    told, open_ = (
        client.get(f"{MODELS}/trials?state={state}").json()["trials"] for state in ("told", "open")
    )
    assert [(row["worker"], row["values"]) for row in told] == [("Marie", {"correct": 1.0, "latency": 55.5})]
    lasts = [time.fromisoformat(open_[0][key]) for key in ("asked", "until")]
    assert (lasts[1] - lasts[0]).total_seconds() > 86000, "the time that was chosen is kept"
    page.fill("#f-failed", "the bulb broke")
    press(page, "Could not be measured")
    page.wait_for_selector("text=“the bulb broke”")
    assert client.get(MODELS).json()["failed"] == 1
    press(page, "Close")
    press(page, "Measure by hand")
    page.wait_for_selector("dialog >> text=Enter a result")
    page.fill("#f-v1", "2%")
    press(page, "Save result")
    page.wait_for_selector("dialog >> text=Saved")
    press(page, "Close")
    page.locator("a", has_text="Trials").click()
    page.locator("tr", has_text="0.02").get_by_text("Correct").click()
    assert page.input_value("#f-v1") == "0.02"
    page.fill("#f-v1", "2")
    page.fill("#f-reason", "not a percentage")
    press(page, "Correct", "dialog")
    until(lambda: page.wait_for_timeout(50) or page.inner_text("#news").startswith(("Corrected", "Too late")))


def test_open_trials_can_be_entered_and_given_back(client, visit):
    make(client, items=[1700000000, 1700000001])
    ask(client, worker="Marie", lease="1h")
    first, second = ask(client, 2, worker="Pierre", lease="1h")
    ask(client, worker="Irène", lease=0.01)
    page = visit("models")
    assert page.locator(".wk tbody th").all_inner_texts() == ["Irène", "Marie", "Pierre"]
    assert "item 170000000" in page.inner_text(".held >> nth=1")
    page.focus(f"[data-do=release][data-trial='{second['id']}']")
    tell(client, first, values={"correct": 1, "latency": 50})
    page.wait_for_selector(f"[data-trial='{first['id']}']", state="detached")
    assert page.evaluate("document.activeElement.dataset.trial") == second["id"]
    page.locator("tr", has_text="Marie").locator("text=Enter result").click()
    page.fill("#f-v0", "1")
    press(page, "Save result")
    page.wait_for_selector("dialog >> text=Saved")
    page.keyboard.press("Escape")
    page.locator("tr", has_text="Pierre").locator("text=Give back").click()
    assert client.get(MODELS).json()["open"] == 1, "what ran out was noted by who looked"
    press(page, "Give back", "dialog")
    page.wait_for_selector("text=was given back")
    page.wait_for_selector("text=ran out: missing")
    counts = client.get(MODELS).json()
    assert (counts["results"], counts["open"], counts["expired"]) == (2, 0, 1)


# --- deciding


def test_a_study_is_made_by_a_form(client, visit):
    page = visit(tolerate=["409", "422"])
    press(page, "New study")
    page.fill("#f-name", "which lamp?")
    page.fill("#f-arms", "old\n\n  new \n")
    press(page, "Next: what matters")
    page.fill("#f-name", "broken")
    page.select_option("#f-direction", "minimize")
    page.fill("#f-limit", "0.1")
    page.select_option("#f-noise", "bernoulli")
    press(page, "One more objective")
    page.wait_for_selector("text=So far: broken")
    page.fill("#f-name", "light")
    page.fill("#f-unit", "lm")
    page.select_option("#f-noise", "bounded")
    page.fill("#f-low", "0")
    press(page, "Create the study")
    assert "needs both" in page.inner_text("dialog [role=alert]")
    page.fill("#f-high", "2000")
    press(page, "Create the study")
    page.locator("dialog [role=alert]", has_text="margin").wait_for()
    press(page, "Cancel")
    assert client.get("/api/studies").json()["studies"] == []
    make(client)
    press(page, "New study")
    page.fill("#f-name", "models")
    page.fill("#f-arms", "old\nnew")
    page.select_option("#f-preregistered", "false")
    page.click("dialog summary")
    page.fill("#f-shares", "many")
    press(page, "Next: what matters")
    assert "an arm and one or two shares, got “many”" in page.inner_text("dialog [role=alert]")
    page.fill("#f-shares", "old 10 % 50%\nnew: 0.2")
    press(page, "Next: what matters")
    page.fill("#f-name", "broken")
    page.select_option("#f-direction", "minimize")
    page.fill("#f-limit", "0.1")
    page.click("dialog summary")
    page.fill("#f-slack", "0.05")
    assert not page.is_visible("#f-if_missing")
    page.select_option("#f-noise", "bernoulli")
    assert not page.is_visible("#f-low")
    page.select_option("#f-if_missing", "worst")
    press(page, "One more objective")
    page.fill("#f-name", "light")
    page.fill("#f-unit", "lm")
    page.fill("#f-margin", "40")
    press(page, "Create the study")
    page.wait_for_selector("text=Another name is needed")
    assert page.input_value("#f-name") == "models"
    page.fill("#f-name", "which lamp?")
    press(page, "Create the study")
    page.wait_for_selector("h1 >> text=which lamp?")
    spec = client.get("/api/studies/which%20lamp%3F/spec").json()
    assert [arm if isinstance(arm, str) else arm["name"] for arm in spec["arms"]] == ["old", "new"]
    broken, light = spec["objectives"]
    assert (broken["at_most"], broken["slack"], broken["noise"]) == (0.1, 0.05, "bernoulli")
    assert broken["if_missing"] == "worst"
    assert spec["preregistered"] is False
    assert spec["shares"] == {"old": [0.1, 0.5], "new": [0.2, 1]}
    assert (light["margin"], light["unit"], light["direction"]) == (40, "lm", "maximize")


def test_a_study_has_all_its_settings_from_the_form(client, visit):
    page = visit()
    press(page, "New study")
    page.click("dialog summary")
    entered = {
        "name": "lamps",
        "arms": "a\nb",
        "baseline": "c",
        "delta": "1%",
        "items": "x\n7",
        "max_arms": "3",
        "lease": "2h",
        "traffic": "20%",
        "warmup": " 2d ",
    }
    for name, text in entered.items():
        page.fill(f"#f-{name}", text)
    press(page, "Next: what matters")
    assert page.inner_text("dialog [role=alert]") == "The arm in use today is none of the arms: c"
    page.fill("#f-baseline", "b")
    press(page, "Next: what matters")
    page.fill("#f-name", "light")
    page.fill("#f-margin", "0,5")
    page.click("dialog summary")
    page.fill("#f-tie", "0.1")
    assert not page.is_visible("#f-cap")
    page.select_option("#f-noise", "finite_variance")
    press(page, "One more objective")
    page.wait_for_selector("text=So far: light")
    page.fill("#f-name", "euros")
    page.fill("#f-margin", "2")
    page.select_option("#f-noise", "finite_variance")
    page.fill("#f-floor", "-10")
    press(page, "One more objective")
    assert page.inner_text("dialog [role=alert]") == "A floor needs a cap."
    page.fill("#f-cap", "200")
    press(page, "One more objective")
    page.wait_for_selector("text=So far: light › euros")
    page.fill("#f-name", "watts")
    page.fill("#f-margin", "2%")
    page.click("dialog summary")
    page.fill("#f-reference", "60")
    press(page, "Create the study")
    page.wait_for_selector("h1 >> text=lamps")
    spec = client.get("/api/studies/lamps/spec").json()
    assert (spec["delta"], spec["items"], spec["max_arms"], spec["lease"]) == (0.01, ["x", 7], 3, "2h")
    assert (spec["baseline"], spec["traffic"], spec["warmup"]) == ("b", 0.2, "2d")
    light, euros, watts = spec["objectives"]
    assert (light["margin"], light["tie"], light["noise"]) == (0.5, 0.1, "finite_variance")
    assert (euros["margin"], euros["cap"], euros["floor"]) == (2, 200, -10)
    assert euros["noise"] == ["bounded", -10, 200]
    assert (watts["margin"], watts["reference"]) == ("2%", 60)


def test_percentages_are_of_the_best_of_an_arm_or_points_of_a_share(client, visit):
    page = visit()
    press(page, "New study")
    page.fill("#f-name", "bulbs")
    page.fill("#f-arms", "old\nnew")
    press(page, "Next: what matters")
    for name, noise, of in (
        ("watts", "gaussian", ""),
        ("light", "bernoulli", " old "),
        ("hum", "bernoulli", ""),
    ):
        if name != "watts":
            press(page, "One more objective")
        page.fill("#f-name", name)
        page.fill("#f-margin", "2%")
        page.select_option("#f-noise", noise)
        page.click("dialog summary")
        page.fill("#f-reference", of)
    press(page, "Create the study")
    page.wait_for_selector("h1 >> text=bulbs")
    found = client.get("/api/studies/bulbs/spec").json()["objectives"]
    assert [(one["margin"], one.get("reference")) for one in found] == [
        ("2%", "best"), ("2%", "old"), (0.02, None)
    ]  # fmt: skip
    page.wait_for_selector("text=margin 2\u00a0% of the best")


def test_an_arm_is_withdrawn_with_a_reason_and_comes_back(client, visit):
    measured(client)
    page = visit("models")
    page.click("button[data-arm=cot]")
    press(page, "Withdraw", "dialog")
    assert page.inner_text("dialog [role=alert]") == "Why withdraw it is needed."
    page.fill("#f-reason", "sold out")
    press(page, "Withdraw", "dialog")
    row = page.locator(".arms-table tr[data-key=cot]")
    row.locator("text=withdrawn").wait_for()
    assert "sold out" in row.inner_text()
    assert row.locator("td.past").count() == 2
    page.click("button[data-arm=cot]")
    press(page, "Bring back")
    row.locator("text=undecided").wait_for()
    assert client.get(MODELS).json()["arms"][2]["withdrawn"] is None


def test_pause_resume_end_reopen_and_the_rest(client, visit):
    measured(client, max_arms=4)
    page = visit("models")
    press(page, "Pause")
    page.fill("#f-reason", "the lab is closed")
    press(page, "Pause", "dialog")
    page.wait_for_selector(".badge:has-text('Paused')")
    assert page.inner_text(".say").startswith("Paused: the lab is closed.")
    press(page, "Resume")
    press(page, "Resume", "dialog")
    page.wait_for_selector(".badge:has-text('Measuring')")
    forms = {
        "Write a note": ({"reason": "warm day"}, "Save", "“warm day”"),
        "Add an arm": ({"name": "tiny"}, "Add", ".arms-table >> text=tiny"),
        "Change a margin": ({"margin": "0.25"}, "Change", "text=margin 0.25"),
        "Set the budget": ({"budget": "50"}, "Set", "text=of 50 trials"),
        "Change the order": ({"o0": "latency", "o1": "correct"}, "Change", "new order: latency › correct"),
        "End without a certificate": ({"reason": "enough"}, "End the study", "text=is the best guess"),
    }
    for entry, (fields, button, seen) in forms.items():
        page.click("summary")
        press(page, entry)
        for name, value in fields.items():
            enter = page.select_option if name in ("o0", "o1") else page.fill
            enter(f"#f-{name}", value)
        press(page, button, "dialog")
        page.locator(seen if seen.startswith((".", "text=")) else f"text={seen}").first.wait_for()
        page.wait_for_selector("dialog[open]", state="detached")
    assert "is the best guess, ended by hand: enough" in page.inner_text(".say")
    press(page, "Reopen")
    page.fill("#f-reason", "more money")
    press(page, "Reopen", "dialog")
    page.wait_for_selector(".badge:has-text('Measuring')")


def test_before_rules_are_changed_it_says_what_that_costs(client, visit):
    """A proof under the rules as created is closed by a change: once, and only if it had begun."""
    make(client, max_arms=4)
    page = visit("models")
    forms = ("Add an arm", "Change a margin", "Change the order")

    def costs(arm="cot"):
        said = []
        for form in forms:
            page.click("summary")
            press(page, form)
            said.append(page.inner_text("dialog"))
            press(page, "Cancel")
        page.click(f"button[data-arm={arm}]")
        said.append(page.inner_text("dialog"))
        press(page, "Close")
        found = {"closes the proof" in text for text in said}
        assert len(found) == 1, said
        return found.pop()

    assert not costs()
    for trial in ask(client, 12):
        tell(client, trial, values={"correct": 1, "latency": 50})
    page.wait_for_selector(".strip >> text=12")
    assert costs()
    page.click("summary")
    press(page, "Change a margin")
    assert "up to about twice the results. 12 results so far stay. Go on?" in page.inner_text("dialog")
    page.fill("#f-margin", "0.25")
    press(page, "Change", "dialog")
    page.wait_for_selector("text=margin 0.25")
    assert not costs()


@pytest.mark.parametrize("role", ["read", "write"])
def test_who_may_not_sees_no_buttons(service, client, visit, role):
    measured(client)
    ask(client, worker="Marie")
    page = visit("models", wait=False)
    page.route(
        "**/api/studies?*", lambda route: route.fulfill(json={"studies": [], "next": None, "role": role})
    )
    page.reload()
    page.wait_for_selector(f"text={role} access")
    page.wait_for_selector(".arms-table")
    offered = set(page.locator("[data-do]").evaluate_all("all => all.map(each => each.dataset.do)"))
    looks = {"leave", "report", "compare", "export-trials", "export-events", "verify"}
    assert offered - looks == {"arm"} | (
        {"measure", "note", "enter", "release"} if role == "write" else set()
    )
    page.click("button[data-arm=cot]")
    assert page.locator("dialog >> text=Withdraw").count() == 0


# --- what is shown


def test_names_are_text(client, visit):
    names = {"name": f"{EVIL}/&?#", "arms": [EVIL, "</script><script>alert(2)</script>", "x" * 200]}
    objective = {"name": "<b onclick=alert(3)>", "unit": "<u>", "margin": 0.2, "noise": "bernoulli"}
    make(client, **names, objectives=[objective])
    study = f"/api/studies/{quote(names['name'], safe='')}"
    for trial in ask(client, 6, study, worker="<svg onload=alert(4)>"):
        tell(client, trial, study, values={objective["name"]: 1})
    tell(client, *ask(client, 1, study), study, failed="<iframe src=javascript:alert(5)>")
    ask(client, 1, study, worker="<svg onload=alert(4)>")
    client.post(f"{study}/arms/{'x' * 200}/withdrawal", json={"reason": "<h1>why</h1>"})
    for size in WIDTHS:
        page = visit(names["name"], size)
        for text in (
            names["name"],
            EVIL,
            objective["name"],
            "<svg onload=alert(4)>",
            "<h1>why</h1>",
            "<iframe",
        ):
            assert page.get_by_text(text).count() > 0, text
        assert page.locator("main img, main script, main iframe, main u, main h1 h1").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.locator("[data-do=arm]").first.click()
        assert page.evaluate("document.querySelector('dialog').scrollWidth <= innerWidth")
        page.goto(f"{page.url.partition('#')[0]}#/")
        page.get_by_role("link", name=names["name"]).click()
        page.wait_for_selector(".arms-table")


def test_values_are_as_people_gave_them(client, visit):
    make(
        client,
        objectives=[
            {
                "name": "net",
                "direction": "minimize",
                "unit": "°C",
                "margin": 1,
                "noise": ["bounded", -50, 50],
            },
            {"name": "memory", "direction": "minimize", "unit": "B", "at_most": 16777217, "slack": 1},
        ],
    )
    for trial in ask(client, 30):
        net = {"small": -12.25, "large": -3.5, "cot": 4}[trial["arm"]]
        tell(client, trial, values={"net": net, "memory": 1024})
    page = visit("models")
    row = page.locator(".arms-table tr[data-key=small]")
    assert row.locator(".m").first.inner_text() == "−12.25"
    assert "°C, lower is better" in page.inner_text(".arms-table thead")
    assert "margin 1\u00a0°C" in page.inner_text(".arms-table thead")
    assert "at most 16,777,217\u00a0B" in page.inner_text(".arms-table thead")
    assert page.inner_text(".say").startswith("Not decided yet: small is ahead")


def shown_ends(text):
    """The interval that a cell shows, as numbers."""
    numbers = [float(end.replace(",", "").replace("−", "-")) for end in re.split("–| to ", text)]
    assert len(numbers) == 2, text
    return numbers


def test_bounds_claim_no_more_than_was_proven(client, visit):
    """They are rounded outwards, never to the nearest."""
    make(client)
    for i, trial in enumerate(ask(client, 60)):
        latency = {"small": 20.0, "large": 40.0, "cot": 80.0}[trial["arm"]] + i % 7
        tell(client, trial, values={"correct": i % 2, "latency": latency})
    known = {arm["name"]: arm["objectives"] for arm in client.get(MODELS).json()["arms"]}
    page = visit("models")
    seen = 0
    for arm, objectives in known.items():
        cells = page.locator(f".arms-table tr[data-key={arm}] td[data-l]").all()
        for cell, objective in zip(cells, ("correct", "latency"), strict=True):
            if not cell.locator(".r").count():
                continue
            low, high = shown_ends(cell.locator(".r").inner_text())
            truth = objectives[objective]
            assert low <= truth["low"], (arm, objective)
            assert high >= truth["high"], (arm, objective)
            assert high - low < truth["high"] - truth["low"] + 0.3
            seen += 1
    assert seen >= 4


def test_a_row_stops_where_its_arm_left(client, visit):
    finished(client, delta=0.005)
    page = visit("models")
    assert "This holds whenever anyone looked." in plain(page.inner_text("main"))
    assert "99.5 %" in plain(page.inner_text(".strip"))
    assert "worse than small by" in page.inner_text(
        ".arms-table tr[data-key=large] td.now, .arms-table tr[data-key=large] td >> nth=0"
    )
    assert page.locator(".arms-table tr[data-key=large] td.past").count() == 1
    assert "no longer counts" in page.inner_text(".arms-table tr[data-key=large] td.past")
    assert page.inner_text(".arms-table thead th.st >> nth=0").endswith("Settled: 3 → 1 arm")
    assert page.inner_text(".arms-table thead th.st >> nth=1").endswith("Not needed: one arm left")
    assert "Certified at 99.5 % confidence" in plain(page.inner_text("[data-key=certificate]"))
    assert "Nothing is claimed about cost" in page.inner_text("[data-key=certificate]")
    assert "large was excluded after 3 trials" in page.inner_text("[data-key=stories]")


STATES = {
    "empty": ({}, None, "Measuring", "No results yet: correct is settled first, among 3 arms."),
    "budget": ({"budget": 12}, None, "Budget spent", "The budget of 12 trials is spent."),
    "items": ({"items": ["a", "b"], "scope": "population"}, None, "Items spent", "All 2 items are used."),
    "ended": (
        {},
        {"state": "finished", "reason": "enough"},
        "Ended, no certificate",
        "is the best guess",
    ),
}


def test_the_items_of_a_list(client, visit):
    make(client, items=["a", "b"])
    for trial in ask(client, 6):
        tell(client, trial, values={"correct": int(trial["arm"] == "large"), "latency": 50})
    page = visit("models")
    assert "This is exact: no sampling error is involved." in page.inner_text(".say")
    page.click("details.menu summary")
    page.click("[data-do=show-items]")
    page.wait_for_selector("dialog .byitem table")
    assert "2 items measured; on 2 of them arms differ on correct" in page.inner_text("dialog")


def test_who_left_and_what_was_settled_have_their_time(client, visit):
    """Exact sizes first: two arms leave at once, and the coins of the others are next."""
    size = {"name": "size", "direction": "minimize", "unit": "MB", "margin": 1, "noise": "exact"}
    make(
        client,
        arms=["a", "b", "c", "d"],
        objectives=[size, {"name": "wins", "margin": 0.2, "noise": "bernoulli"}],
    )
    for _ in range(10):
        for trial in ask(client, 4, worker="bench 1"):
            tell(client, trial, values={"size": 10 if trial["arm"] in "ab" else 50, "wins": 1})
    page = visit(tolerate=["404", "409"])  # of arms that left, too little is known to foretell
    page.route("**/course", lambda route: route.fulfill(status=404, json={"detail": "gone"}), times=1)
    page.click(".ls >> text=models")
    page.wait_for_selector("[data-key=latest] >> text=size settled; wins is next")
    lines = page.locator(".tl li").all_inner_texts()
    assert sum("excluded after" in line and "on size it is worse than" in line for line in lines) == 2
    assert lines[-1].endswith("the study was created")
    left = {arm["name"]: arm["left"] for arm in client.get(MODELS).json()["arms"]}
    told = client.get(f"{MODELS}/trials?state=told").json()["trials"]
    assert left["c"]["at"] == sorted(row["resolved"] for row in told)[left["c"]["results"] - 1]
    phases = get_when_made(client, f"{MODELS}/course").json()["phases"]
    assert [phase["objective"] for phase in phases] == ["size", "wins"]
    assert phases[0]["since"] == 0
    assert phases[0]["until"] == phases[1]["since"]
    label = page.locator("[aria-label^='Being settled']").get_attribute("aria-label")
    assert f"size from 0 to {phases[0]['until']}" in label
    assert "wins from" in label
    assert page.locator("[data-key=race] tbody tr").first.locator(".phase").count() == 2


@pytest.mark.parametrize("state", STATES)
def test_states_have_a_shape_and_a_word(client, visit, state):
    changes, then, word, sentence = STATES[state]
    if state == "empty":
        make(client)
    elif state == "items":
        make(client, **changes)
        for trial in ask(client, 6):
            tell(client, trial, values={"correct": 1, "latency": 50})
    else:
        measured(client, **changes)
    if then:
        assert client.post(f"{MODELS}/state", json=then).status_code == 200
    page = visit("models")
    assert page.inner_text("h1 .badge") == word
    shape = "getComputedStyle(document.querySelector('h1 .badge'), '::before')"
    assert page.evaluate(f"{shape}.content + {shape}.width") in ('""8px', '""10px')
    assert sentence in page.inner_text(".say")
    assert page.locator(".halo").count() == 0 or state != "empty"


def test_no_studies_and_no_such_study(client, visit):
    page = visit(tolerate=["404"])
    assert "No studies yet." in page.inner_text("main")
    page.goto(f"{page.url}study/nowhere")
    page.wait_for_selector("text=There is no such study.")
    assert "connected" not in page.inner_text("#top")
    make(client)
    page.click("text=All studies")
    page.click(".ls >> text=models")
    page.wait_for_selector(".arms-table")
    assert page.evaluate("document.activeElement.innerText").startswith("models")


def test_the_service_foretells_and_reports(client, visit, tmp_path):
    measured(client, 24)
    page = visit("models")
    page.wait_for_selector("text=Who is likely to win", timeout=120_000)
    assert re.search("About [0-9,]+ more results? should end the study", page.inner_text(".say"))
    assert "in 8 of 10 runs" in page.inner_text(".strip")
    assert "on to the end that is likely" in page.inner_text("[data-key=race]")
    assert page.locator("[data-key=race] .band.pale").count() == 3
    with page.expect_download(timeout=240_000) as download:
        press(page, "Report")
    assert download.value.suggested_filename == "models.html"
    download.value.save_as(tmp_path / "report.html")
    assert "models" in (tmp_path / "report.html").read_text()


def test_little_is_not_foretold(client, visit):
    measured(client)
    page = visit("models")
    page.wait_for_selector(".phase", state="attached")
    assert not any(url.endswith("/forecast") for _, url in page.asked)
    assert page.locator("text=Forecast").count() == 0


def test_the_record_can_be_taken_away_and_checked(client, visit, tmp_path):
    measured(client, 12)
    page = visit("models")
    for entry, ending in (("Download the trials", "csv"), ("Download the record", "jsonl")):
        page.click("summary")
        with page.expect_download() as download:
            press(page, entry)
        assert download.value.suggested_filename == f"models.{ending}"
        download.value.save_as(tmp_path / f"models.{ending}")
    rows = list(csv.DictReader((tmp_path / "models.csv").read_text().splitlines()))
    assert [row["state"] for row in rows] == ["told"] * 12
    assert rows[3]["latency"] == "43.0"
    kinds = [json.loads(line)["kind"] for line in (tmp_path / "models.jsonl").read_text().splitlines()]
    assert kinds == ["created", *["asked"] * 12, *["told"] * 12]
    page.click("summary")
    press(page, "Check the record")
    page.wait_for_selector("text=The record holds.")
    dialog = page.inner_text("dialog")
    assert "25 events and 12 trials" in dialog
    assert re.search("[0-9a-f]{64}", dialog)


def test_what_did_not_work_is_seen(client, visit):
    measured(client)
    page = visit("models", tolerate=["503"])
    full = {"status": 503, "json": {"detail": "the disk is full"}}
    page.route(re.compile("/(report|export|verification)"), lambda route: route.fulfill(**full))
    for action, what in {
        "report": "report",
        "export-trials": "download",
        "verify": "check of the record",
    }.items():
        page.locator(f"[data-do={action}]").dispatch_event("click")
        page.wait_for_selector("dialog >> text=It did not work.")
        assert f"models, {what}: the disk is full" in page.inner_text("dialog")
        assert "the disk is full" in page.inner_text("#news")
        press(page, "Close")


def test_what_makes_no_sense_is_refused_before_it_is_sent(client, visit):
    measured(client, budget=50)
    page = visit("models")
    page.click("summary")
    press(page, "Change the order")
    page.select_option("#f-o0", "latency")
    press(page, "Change", "dialog")
    assert page.inner_text("dialog [role=alert]") == "latency is there twice."
    press(page, "Cancel")
    page.click("summary")
    press(page, "Set the budget")
    page.fill("#f-budget", "1e999")
    press(page, "Set", "dialog")
    assert page.inner_text("dialog [role=alert]") == "Trials in all: “1e999” is too large."
    page.keyboard.press("Escape")
    assert "Escape once more" in page.inner_text("dialog [role=alert]")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog[open]", state="detached")
    assert client.get(MODELS).json()["budget"] == 50


def test_an_answer_is_waited_for_and_stays_with_its_study(client, visit):
    make(client)
    make(client, name="other")
    ask(client, worker="Marie")
    page = visit("models")
    page.click("text=Enter result")
    page.fill("#f-v0", "1")
    held = []
    page.route("**/result", lambda route: held.append(route))
    press(page, "Save result")
    until(lambda: page.wait_for_timeout(50) or held)
    for _ in range(3):
        page.keyboard.press("Escape")
    assert page.locator("dialog[open]").count() == 1
    page.evaluate("location.hash = '#/study/other'")
    page.wait_for_selector("h1 >> text=other")
    held[0].continue_()
    page.wait_for_selector("#news:has-text('Saved')", state="attached")
    assert page.locator("dialog[open]").count() == 0


# --- beside each other


def test_views_are_searched_filtered_compared_and_shared(client, visit):
    measured(client)
    make(client, name="other")
    client.post("/api/studies/other/state", json={"state": "paused"})
    page = visit()
    page.fill("#search", "MOD")
    page.locator(".ls a", has_text="other").wait_for(state="detached")
    assert page.evaluate("document.activeElement.id") == "search"
    page.fill("#search", "")
    page.click("text=Paused 1")
    page.locator(".ls a", has_text="models").wait_for(state="detached")
    shared = visit(tolerate=())
    shared.goto(page.url)
    shared.locator(".ls a", has_text="models").wait_for(state="detached")
    assert shared.locator(".ls tbody tr").count() == 1
    page.goto(f"{page.url.partition('#')[0]}#/study/models/trials")
    page.select_option("select[name=arm]", "cot")
    page.wait_for_selector("text=4 trials of 12")
    page.select_option("select[name=state]", "failed")
    page.wait_for_selector("text=No such trial.")
    page.go_back()
    page.wait_for_selector("text=4 trials of 12")
    assert page.input_value("select[name=state]") == ""
    assert page.url.endswith("/trials?arm=cot")
    page.click("text=back to the study")
    page.click("summary")
    press(page, "Compare with another")
    press(page, "Compare", "dialog")
    page.wait_for_selector(".cmp")
    words = client.get(MODELS).json()["arms"][0]["objectives"]["correct"]
    assert f"{words['shown']} ({words['range']})" in page.inner_text(".cmp")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


# --- tokens


def test_the_token_is_kept_in_the_tab_and_nowhere_else(service, client, visit):
    make(client)
    page = visit()
    assert page.url == f"{service.address}/#/"
    assert service.token not in page.content()
    assert page.evaluate("Object.values(sessionStorage)") == [service.token]
    assert page.evaluate("Object.values(localStorage).length + document.cookie.length") == 0
    assert not any(service.token in url for _, url in page.asked)
    page.reload()
    page.wait_for_selector(".ls")
    press(page, "Leave")
    page.wait_for_selector("text=Which token do you have?")
    assert page.evaluate("sessionStorage.length") == 0


def test_a_refused_token_is_asked_for_again(service, client, visit):
    make(client)
    page = visit(token="%", wait=False, tolerate=["401"])
    page.wait_for_selector("text=This token is not known here")
    page.fill("#token", "lb_wrong")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=This token is not known here")
    assert page.evaluate("document.activeElement.id") == "token"
    page.fill("#token", service.token)
    page.keyboard.press("Enter")
    page.wait_for_selector(".ls >> text=models")
    assert page.evaluate("document.activeElement.tagName") == "H1"


# --- how it asks


def settled(page):
    """What was settled when is asked for once, beside the polls; then the page only polls."""
    page.wait_for_selector(".phase", state="attached")
    page.evaluate("planned.length = 0")
    planned(page, "planned.filter((wait) => wait > 0).length > 1")


def planned(page, condition):
    """Wait until the page has planned its next looks so."""
    until(lambda: page.wait_for_timeout(50) or page.evaluate(condition))


def test_it_polls_with_its_etag_one_request_at_a_time(client, visit):
    measured(client)
    page = visit("models")
    settled(page)
    under_way, most = set(), [0]

    def begins(request):
        under_way.add(request)
        most[0] = max(most[0], len(under_way))

    page.on("request", begins)
    page.on("requestfinished", lambda request: under_way.discard(request))
    page.on("requestfailed", lambda request: under_way.discard(request))
    del page.asked[:]
    page.evaluate("planned.length = 0")
    until(lambda: page.wait_for_timeout(50) or len(page.asked) >= 3)
    asked = list(page.asked)  # it goes on while we look
    assert {status for status, _ in asked} == {304}
    assert all(url.endswith(f"{MODELS}/fragments") for _, url in asked)
    assert set(page.evaluate("planned")) == {2000}, "every two seconds"
    assert most == [1]
    tell(client, *ask(client), values={"correct": 1, "latency": 50})
    page.wait_for_selector(".strip >> text=13")


def test_it_rests_when_nobody_looks(client, visit):
    measured(client)
    page = visit("models")
    settled(page)
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    planned(page, "planned.at(-1) > 10_000")
    page.wait_for_timeout(50)  # for what we hear of it
    del page.asked[:]
    page.wait_for_timeout(5000 / HURRY)
    assert page.asked == []
    page.evaluate("delete document.hidden; document.dispatchEvent(new Event('visibilitychange'))")
    until(lambda: page.wait_for_timeout(50) or page.asked)


def test_without_the_service_it_says_so_keeps_what_it_knows_and_backs_off(client, visit):
    measured(client)
    page = visit("models", tolerate=["ERR_INTERNET_DISCONNECTED", "null"])
    page.context.set_offline(True)
    page.wait_for_selector(".notice")
    assert "Not connected" in page.inner_text("#top")
    assert "What you see is from" in page.inner_text(".notice")
    assert page.locator(".arms-table tbody tr").count() == 3
    planned(page, "planned.join().includes('2000,4000,8000')")
    page.context.set_offline(False)
    page.wait_for_selector(".notice", state="detached")
    page.route(f"**{MODELS}/fragments", lambda route: route.fulfill(body='{"name": "mod'))
    page.wait_for_selector(".notice >> text=the answer broke off")
    page.unroute(f"**{MODELS}/fragments")
    page.wait_for_selector(".notice", state="detached")
    nonsense = client.get(f"{MODELS}/fragments").json()
    nonsense["fragments"] = None
    with page.expect_event("pageerror"):
        page.route(f"**{MODELS}/fragments", lambda route: route.fulfill(json=nonsense), times=1)
    tell(client, *ask(client), values={"correct": 1, "latency": 50})
    page.wait_for_selector(".strip >> text=13")


def test_an_open_menu_and_the_focus_survive_news(client, visit):
    measured(client)
    page = visit("models", "phone")
    page.focus("button[data-arm=large]")
    page.evaluate("scrollTo(0, 300)")
    tell(client, *ask(client), values={"correct": 1, "latency": 50})
    page.wait_for_selector(".strip >> text=13")
    assert page.evaluate("[document.activeElement.dataset.arm, scrollY]") == ["large", 300]
    page = visit("models")
    page.click("summary")
    page.focus(".menu [data-do=note]")
    tell(client, *ask(client), values={"correct": 1, "latency": 50})
    page.wait_for_selector(".strip >> text=14")
    assert page.evaluate("document.activeElement.dataset.do") == "note"
    assert page.locator("details.menu[open]").count() == 1


# --- for everybody


def axe(page):
    if importlib.util.find_spec("axe_playwright_python") is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no axe: in CI the page must be checked (axe-playwright-python)")
        pytest.skip("no axe here: pip install axe-playwright-python")
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page, options={"resultTypes": ["violations"]})
    assert found.violations_count == 0, found.generate_report()


LONG = {"marks": pytest.mark.slow}  # colours do not depend on the width, nor places on the colours


@pytest.mark.parametrize(
    ("size", "scheme"),
    [("desktop", "light"), pytest.param("phone", "dark", **LONG),
     pytest.param("desktop", "dark", **LONG), pytest.param("phone", "light", **LONG)],
)  # fmt: skip
def test_it_is_accessible_and_fits(client, visit, size, scheme):
    """Nothing that axe finds, nothing wider than the screen: list, study, dialogs, end, token."""

    def fine(page):
        axe(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    finished(client)
    end = visit("models", size, scheme)
    fine(end)
    end.close()  # it would ask for what is deleted
    client.delete(MODELS)
    measured(client)
    ask(client, worker="Marie", lease=0.01)
    client.post(f"{MODELS}/arms/cot/withdrawal", json={"reason": "sold out"})
    fine(visit(None, size, scheme))
    page = visit("models", size, scheme)
    fine(page)
    for view, part in (("study/models/trials", ".one"), ("compare?first=models&second=models", ".cmp")):
        page.goto(f"{page.url.partition('#')[0]}#/{view}")
        page.wait_for_selector(part)
        fine(page)
    page.goto(f"{page.url.partition('#')[0]}#/study/models")
    page.wait_for_selector(".arms-table")
    page.click("summary")
    fine(page)
    press(page, "Measure by hand")
    fine(page)
    page.fill("#f-worker", "Marie")
    press(page, "Ask for a trial")
    page.wait_for_selector("text=Enter a result")
    fine(page)
    page.keyboard.press("Escape")
    press(page, "Leave")
    fine(page)


def test_on_paper_it_is_a_table_in_daylight_without_buttons(client, visit):
    measured(client)
    page = visit("models", "phone", "dark")
    assert page.is_visible(".arms-table tfoot td[data-l=latency] text >> nth=0"), "a phone has axes too"
    page.emulate_media(media="print")
    shown = "name => getComputedStyle(document.querySelector(name)).display"
    assert [page.evaluate(shown, name) for name in (".arms-table", ".arms-table tbody tr")] == [
        "table",
        "table-row",
    ]
    assert page.is_visible(".arms-table tfoot td[data-l=latency] text >> nth=0")
    assert page.locator("button:visible, summary:visible").count() == 0
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


@pytest.mark.parametrize("size", WIDTHS)
def test_the_keyboard_reaches_every_action_and_one_sees_where_it_is(client, visit, size):
    measured(client)
    ask(client, worker="Marie")
    page = visit("models", size)
    page.focus("summary")
    page.keyboard.press("Enter")
    page.evaluate("document.activeElement.blur()")
    name = "e => e.dataset.do ? e.dataset.do + (e.dataset.arm ?? '') : e.tagName + e.textContent"
    wanted = set(page.locator("a:visible, button:visible, summary").evaluate_all(f"all => all.map({name})"))
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(page.evaluate(f"({name})(document.activeElement)"))
        assert page.evaluate("document.activeElement.matches('body, :focus-visible')")
        if page.evaluate("document.activeElement !== document.body"):
            assert page.evaluate("getComputedStyle(document.activeElement).outlineWidth") == "2px"
        if wanted <= reached:
            break
    assert wanted <= reached
    page.focus("button[data-arm=cot]")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.type("sold out")
    for _ in range(2):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.wait_for_selector(".arms-table >> text=sold out")
    page.focus("button[data-arm=small]")
    page.keyboard.press("Enter")
    page.wait_for_selector("dialog[open]")
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.dataset.arm") == "small"


def test_the_first_tab_skips_to_the_content(client, visit):
    measured(client)
    page = visit("models")
    page.reload()
    page.wait_for_selector(".arms-table")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "view"
    page.wait_for_url(re.compile("#/study/models$"))  # the page puts its own address back


def test_screen_readers_hear_tables_and_names(client, visit):
    measured(client)
    for size in WIDTHS:
        page = visit("models", size)
        table = page.get_by_role("table").first
        assert table.get_by_role("row").count() == 4
        assert table.get_by_role("columnheader", name="latency").count() == 1
        assert page.get_by_role("rowheader", name="small").count() >= 1
        assert page.get_by_role("button", name="small: details and actions").count() == 1
        assert json.loads(page.evaluate("JSON.stringify(document.title)")).startswith("models, measuring")
