"""What the service says on stderr: one line for each thing, of which study it is, in text or in JSON."""

import json

import pytest

from support.asked import ask, make
from support.services import Service, fast

GAUSSIAN = [{"name": name, "margin": 0.2, "noise": "gaussian"} for name in ("score", "cost")]


def repeat_values(client, name):
    """Every arm gives the same again and again, which Gaussian noise never does."""
    make(client, name=name, objectives=GAUSSIAN)
    study = f"/api/studies/{name}"
    for n in (6, 6, 60):  # told one by one, and many at once
        values = {"score": 1.5, "cost": 2.5}
        results = [{"trial": trial["id"], "values": values} for trial in ask(client, n, study)]
        client.post(f"{study}/results", json={"results": results}).raise_for_status()
        for look in ("", "/explanation", "/verification", "/fragments"):
            client.get(f"{study}{look}").raise_for_status()


def test_each_thing_is_one_line_of_json_with_codes_and_names(serve):
    service = serve(None, "--log-format", "json")
    with service.client() as client:
        repeat_values(client, "models")
        repeat_values(client, "other\N{SNOWMAN}")
    lines = [json.loads(line) for line in service.stop()[1].splitlines()]
    keys = ("level", "code", "study", "arm", "objective")
    assert sorted(tuple(line[key] for key in keys) for line in lines) == [
        ("warning", "repeats", study, "small", objective)
        for study in ("models", "other\N{SNOWMAN}")
        for objective in ("cost", "score")
    ]
    assert all(line["time"].endswith("+00:00") for line in lines)
    assert all(line["message"].startswith("arm 'small' gave a value of") for line in lines)


def test_text_names_the_study_first(serve):
    service = serve()
    with service.client() as client:
        repeat_values(client, "models")
    first, second = service.stop()[1].splitlines()
    assert " WARNING study 'models': arm 'small' gave a value of" in first
    assert first != second


class Broken(Service):
    """With a defect in what it shows, and in what it does."""

    program = (
        "-c",
        "from lexbandits.service import summary\n"
        "from lexbandits.study.core import changes\n"
        "def planted(*_): return {}['planted']\n"
        "summary._summary = changes.pause = planted\n"
        "from lexbandits.cli.main import app\n"
        "app()",
    )


@pytest.mark.parametrize("form", ["text", "json"])
def test_an_error_of_ours_is_said_once_with_its_study_and_where_it_arose(tmp_path, form):
    service = Broken(fast(tmp_path), "--log-format", form)
    try:
        with service.client() as client:
            make(client)
            make(client, name="other one")
        for study in ("models", "other one", "models"):
            with service.client() as client:  # a new connection: the framework closes it after such an error
                body = {"state": "paused", "reason": ""}
                paused = client.post(f"/api/studies/{study}/state", json=body)
                looked = client.get(f"/api/studies/{study}")
            assert (paused.status_code, looked.status_code) == (500, 500)
            assert "planted" not in paused.text + looked.text
    finally:
        _, errors = service.stop()
    lines = errors.splitlines()
    if form == "json":
        keys = ("level", "code", "study", "message")
        assert [tuple(json.loads(line)[key] for key in keys) for line in lines] == [
            ("error", "defect", "models", "KeyError: 'planted'"),
            ("error", "defect", "other one", "KeyError: 'planted'"),
        ]
        assert all("in planted" in json.loads(line)["traceback"] for line in lines)
    else:
        assert "ERROR study 'models': KeyError: 'planted'" in lines[0]
        assert lines[1].startswith("Traceback")
        assert sum("ERROR" in line for line in lines) == sum("Traceback" in line for line in lines) == 2
