"""A second service on a hot standby of PostgreSQL: who only looks need not ask the first."""

from lexbandits.service.auth import Tokens, open_lasting
from support.asked import MODELS, ask, make, refused
from support.patience import until
from support.services import Clocked


def test_a_service_on_a_hot_standby_shows_all_and_changes_nothing(clock, serve, postgres, standby):
    token = Tokens(open_lasting(postgres)).create("all", "admin")
    first = serve(postgres, kind=Clocked)
    with first.client(token) as writing:
        make(writing, lease="1h")
        results = [{"trial": t["id"], "values": {"correct": 1, "latency": 50}} for t in ask(writing, 30)]
        writing.post(f"{MODELS}/results", json={"results": results}).raise_for_status()
        ask(writing, 2)  # which nobody measures: they run out
        second = serve(standby, kind=Clocked)
        with second.client(token) as looking:
            until(lambda: looking.get(MODELS).json().get("handed_out") == 32, second)
            clock.move(3601)
            assert looking.get(MODELS).json()["overdue"] == 2  # and it cannot note it
            for path in ("/api/studies", MODELS, f"{MODELS}/fragments", f"{MODELS}/export?format=csv"):
                assert looking.get(path).status_code == 200, path
            for path in ("/explanation", "/verification", "/trials", "/events", "/spec"):
                assert looking.get(f"{MODELS}{path}").status_code == 200, path
            assert looking.get("/healthz").status_code == 200
            refused(looking.post(f"{MODELS}/trials", json={"n": 1}), 503, "read-only")
            refused(looking.post(f"{MODELS}/state", json={"state": "paused", "reason": ""}), 503, "read-only")
            assert writing.get(MODELS).json()["overdue"] == 0  # noted
            writing.post(f"{MODELS}/state", json={"state": "paused", "reason": "tea"}).raise_for_status()
            until(lambda: looking.get(MODELS).json()["state"] == "paused", second)
            shown = [each.get(f"{MODELS}/export?format=jsonl").text for each in (writing, looking)]
            assert shown[0] == shown[1]
    errors = second.stop()[1]
    assert "Traceback" not in errors
    assert all("read-only" in line for line in errors.splitlines())
