"""`lexbandits study … --storage http://…`: the commands of a worker, with a real service behind them."""

import json
import os

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
