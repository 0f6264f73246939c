"""`lexbandits study … --storage http://…`: the commands of a worker, with a real service behind them."""

import json
import os

import lexbandits as lb
from support.nursery import started

TOML = """
[study]
name = "models"
[[objectives]]
name = "correct"
margin = 0.6
noise = "bernoulli"
[[arms]]
name = "small"
[[arms]]
name = "large"
"""


def test_create_ask_tell_status_and_run(serve, tmp_path, monkeypatch):
    service = serve()
    (tmp_path / "models.toml").write_text(TOML)
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "LEXBANDITS_STORAGE": service.address, "LEXBANDITS_TOKEN": service.token}

    def command(*words, code=0):
        done = started(["-m", "lexbandits", *words], environment)
        out, errors = done.communicate()
        assert done.returncode == code, errors
        return out

    command("study", "create", "models.toml")
    trial = json.loads(command("study", "ask", "models", "--json"))
    assert list(trial) == ["number", "id", "arm", "item", "until"]
    assert command("study", "tell", "models", trial["id"], "correct=1").strip() in ("recorded", "counted")
    assert json.loads(command("study", "status", "models", "--json"))["results"] == 1
    asked = json.loads(command("study", "ask", "models", "--json"))["id"]
    command("study", "tell", "models", asked, "correct=0")
    assert (
        command("study", "correct", "models", trial["id"], "correct=1", "--reason", "so").strip() == "noted"
    )
    assert command("study", "note", "models", "tea").strip() == "noted"
    good = "echo correct=$([ '{arm}' = large ] && echo 1 || echo 0)"
    assert "answer: large" in command("run", "models.toml", "--", "sh", "-c", good)
    command("study", "ask", "models", code=3)


TIMED = """
[study]
name = "naps"
budget = 4
[[objectives]]
name = "seconds"
direction = "minimize"
margin = 5
unit = "s"
[[arms]]
name = "0"
[[arms]]
name = "0.01"
"""


def test_run_takes_its_burn_in_once_where_the_study_is_at_a_service(serve, tmp_path, monkeypatch):
    service = serve()
    (tmp_path / "naps.toml").write_text(TIMED)
    monkeypatch.chdir(tmp_path)
    environment = {**os.environ, "LEXBANDITS_STORAGE": service.address, "LEXBANDITS_TOKEN": service.token}
    words = ["run", "naps.toml", "--measure", "seconds", "--", "sh", "-c", "echo >> ran; sleep {arm}"]
    errors = []
    for _ in range(2):
        done = started(["-m", "lexbandits", *words], environment)
        errors.append(done.communicate()[1])
        assert done.returncode == 1, errors  # the budget is too small
    assert "burn-in: 3 runs of each arm set the cap of seconds" in errors[0]
    assert "burn-in" not in errors[1]
    assert (tmp_path / "ran").read_text().count("\n") == 6 + 4
    study = lb.open_study("naps", service.link)
    burnt = study.spec["burn_in"]["seconds"]
    assert {arm: len(values) for arm, values in burnt.items()} == {"0": 3, "0.01": 3}
    assert study.spec["objectives"][0]["cap"] >= 4 * max(map(max, burnt.values()))
    assert study.status.results == 4
