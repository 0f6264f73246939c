"""OFREP as OpenFeature's own provider speaks it, and what the protocol says of everything else."""

import os
import subprocess
from pathlib import Path

import pytest

import lexbandits as lb
from support.questions import create, go_on

ROOT = Path(__file__).parents[2]
FLAGS = "/ofrep/v1/evaluate/flags"


def context(key="ann", **more):
    return {"context": {"targetingKey": key, **more}}


@pytest.fixture
def study(service):
    service.clear()
    return create(service.link, lease="1h")


def test_a_flag_is_what_assign_gives(service, study):
    with service.client() as client:
        first = client.post(f"{FLAGS}/models", json=context(plan="gold"))
        assert first.status_code == 200
        flag = first.json()
        trial = study.assign("ann")
        metadata = {"assigned": "trial", "trial": trial.id, "until": trial.until.isoformat()}
        assert flag == {
            "key": "models",
            "value": "small",
            "variant": "small",
            "reason": "SPLIT",
            "metadata": metadata,
        }
        assert client.post(f"{FLAGS}/models", json=context()).json() == flag
        told = f"/api/studies/models/trials/{flag['metadata']['trial']}/result"
        assert client.put(told, json={"values": {"correct": 1, "latency": 9}}).json() == {
            "outcome": "counted"
        }
        again = client.post(f"{FLAGS}/models", json=context()).json()
        assert (again["variant"], again["reason"]) == ("small", "SPLIT")
        assert again["metadata"] == {"assigned": "sticky"}
        study.pause("lunch")
        idle = client.post(f"{FLAGS}/models", json=context("bob")).json()
        assert (idle["reason"], idle["metadata"]) == ("DEFAULT", {"assigned": "leader"})
        study.resume()
        go_on(study)
        last = client.post(f"{FLAGS}/models", json=context("bob")).json()
        assert (last["value"], last["reason"]) == ("large", "STATIC")


def test_who_does_not_take_part_gets_the_default(service):
    service.clear()
    study = create(service.link, baseline="large", traffic=0.5, warmup="1d", shares={"large": [0.2, 1.0]})
    with service.client() as client:
        flag = client.post(f"{FLAGS}/models", json=context()).json()
    assert (flag["variant"], flag["reason"]) == ("large", "DEFAULT")
    assert flag["metadata"] == {"assigned": "outside"}
    assert study.status.handed_out == 0


def test_an_arm_may_say_its_value(service):
    service.clear()
    arms = [{"name": "on", "value": True}, {"name": "slow", "value": 2.5}, {"name": "off", "value": False}]
    create(service.link, name="switch", arms=arms)
    with service.client() as client:
        found = [client.post(f"{FLAGS}/switch", json=context(key)).json() for key in "abc"]
    assert [(flag["value"], flag["variant"]) for flag in found] == [
        (True, "on"),
        (2.5, "slow"),
        (False, "off"),
    ]


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        ({"json": {}}, "TARGETING_KEY_MISSING"),
        ({}, "TARGETING_KEY_MISSING"),
        ({"json": {"context": {}}}, "TARGETING_KEY_MISSING"),
        ({"json": {"context": {"targetingKey": ""}}}, "TARGETING_KEY_MISSING"),
        ({"json": {"context": {"targetingKey": 7}}}, "TARGETING_KEY_MISSING"),
        ({"json": {"context": "ann"}}, "INVALID_CONTEXT"),
        ({"json": [1]}, "INVALID_CONTEXT"),
        ({"content": b"{", "headers": {"Content-Type": "application/json"}}, "PARSE_ERROR"),
        ({"content": b"ann", "headers": {"Content-Type": "text/plain"}}, "PARSE_ERROR"),
    ],
)
@pytest.mark.parametrize("path", [f"{FLAGS}/models", FLAGS])
def test_what_the_protocol_refuses(service, study, path, sent, code):
    with service.client() as client:
        answer = client.post(path, **sent)
    assert answer.status_code == 400
    assert answer.json().keys() == {"key", "errorCode", "errorDetails"}
    assert answer.json()["errorCode"] == code
    assert answer.json()["key"] == ("models" if path != FLAGS else "")
    assert study.status.handed_out == 0


@pytest.mark.parametrize("name", ["nobody", "x" * 300, "%00", "a%2Fb"])
def test_an_unknown_flag(service, name):
    with service.client() as client:
        answer = client.post(f"{FLAGS}/{name}", json=context())
    assert answer.status_code == 404
    if name != "a%2Fb":
        assert answer.json()["errorCode"] == "FLAG_NOT_FOUND"


def test_who_may_not_is_refused_as_elsewhere(service, study):
    with service.client(token="lb_wrong") as client:
        for path in (FLAGS, f"{FLAGS}/models"):
            assert client.post(path, json=context()).status_code == 401
    assert study.status.handed_out == 0


def test_all_flags_at_once(service):
    service.clear()
    shop, news, other = (create(service.link, name=name) for name in ("shop", "news", "other"))
    with service.client() as client:
        assert client.post(FLAGS, json=context()).json() == {"flags": []}, "none has served a visitor"
        asked = client.post(FLAGS, json=context(studies=["shop", "news", "shop", "gone"]))
        shop_flag, news_flag, gone = asked.json()["flags"]
        assert gone == {"key": "gone", "errorCode": "FLAG_NOT_FOUND", "errorDetails": "no study 'gone'"}
        assert shop_flag["metadata"]["trial"] == shop.assign("ann").id
        assert news_flag["metadata"]["trial"] == news.assign("ann").id
        every = client.post(FLAGS, json=context())
        assert every.json() == {"flags": [news_flag, shop_flag]}
        tag = every.headers["ETag"]
        known = client.post(FLAGS, json=context(), headers={"If-None-Match": tag})
        assert (known.status_code, known.content, known.headers["ETag"]) == (304, b"", tag)
        bob = client.post(FLAGS, json=context("bob"), headers={"If-None-Match": tag})
        assert bob.status_code == 200
        shop.tell(shop.assign("ann"), {"correct": 1, "latency": 3})
        changed = client.post(FLAGS, json=context(), headers={"If-None-Match": tag})
        assert changed.status_code == 200
        assert changed.headers["ETag"] != tag
    assert other.status.handed_out == 0, "nobody is put into a study that serves nobody"


PROVIDER = """
import sys
from openfeature import api
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext

address, token = sys.argv[1:]
api.set_provider(OFREPProvider(address, headers_factory=lambda: {"Authorization": f"Bearer {token}"}))
client = api.get_client()
ann = EvaluationContext("ann", {"plan": "gold"})
for _ in range(2):
    found = client.get_string_details("models", "mine", ann)
    print(found.value, found.variant, found.reason.name, found.flag_metadata["trial"])
for flag, who in (("nobody", ann), ("models", EvaluationContext())):
    found = client.get_string_details(flag, "mine", who)
    print(found.value, found.reason.name, found.error_code.name)
print(client.get_boolean_value("switch", False, ann), client.get_float_value("models", 1.5, ann))
api.set_provider(OFREPProvider(address))
found = client.get_string_details("models", "mine", ann)
print(found.value, found.reason.name, found.error_code.name)
"""


@pytest.fixture
def tools():
    """A Python that has OpenFeature's provider."""
    own = ROOT / ".venv-tools" / "bin" / "python"
    found = os.environ.get("LEXBANDITS_TOOLS") or (str(own) if own.exists() else None)
    checked = found and subprocess.run(
        [found, "-c", "import openfeature.contrib.provider.ofrep"], check=False
    )
    if not found or checked.returncode:
        if os.environ.get("CI") == "true":
            pytest.fail("no tools here: make .venv-tools/.ready")
        pytest.skip("no tools here: make .venv-tools/.ready")
    return found


def test_openfeatures_own_provider(service, study, tools):
    create(service.link, name="switch", arms=[{"name": "on", "value": True}, "off"])
    done = subprocess.run(
        [tools, "-c", PROVIDER, service.address, service.token],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    trial = study.assign("ann")
    assert done.stdout.splitlines() == [
        f"small small SPLIT {trial.id}",
        f"small small SPLIT {trial.id}",
        "mine ERROR FLAG_NOT_FOUND",
        "mine ERROR TARGETING_KEY_MISSING",
        "True 1.5",
        "mine ERROR GENERAL",
    ]
    assert study.status.handed_out == 1


TRACKING = """
import sys
from openfeature import api
from openfeature.evaluation_context import EvaluationContext
from openfeature.track import TrackingEventDetails
from provider import LexbanditsProvider

api.set_provider(LexbanditsProvider(*sys.argv[1:]))
client, ann = api.get_client(), EvaluationContext("ann")
client.get_string_value("models", "mine", ann)
for name, value in (("latency", 9.0), ("latency", 9.0), ("correct", None), ("correct", 1.0)):
    client.track(name, ann, TrackingEventDetails(value, {"study": "models"}))
"""


def test_a_provider_tracks_outcomes(service, study, tools):
    """In parts; what comes when all is told, or twice, changes nothing."""
    done = subprocess.run(
        [tools, "-c", TRACKING, service.address, service.token],
        cwd=ROOT / "examples" / "openfeature",
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (trial,) = study.trials().to_dict("records")
    assert (trial["state"], trial["correct"], trial["latency"]) == ("told", 1, 9)


def test_sticky_after_a_kill(serve, tmp_path):
    service = serve(f"sqlite:///{tmp_path}/s.db?synchronous=NORMAL")
    create(service.link)
    keys = [f"visitor {number}" for number in range(25)]
    with service.client() as client:
        before = [client.post(f"{FLAGS}/models", json=context(key)).json() for key in keys]
    service.kill()
    service.start()
    with service.client() as client:
        assert [client.post(f"{FLAGS}/models", json=context(key)).json() for key in keys] == before
    assert lb.open_study("models", service.storage).status.handed_out == 25
