"""The service is killed, stopped, started again: what it has acknowledged is there."""

import signal
import threading
import time

import httpx2
from asked import MODELS, ask, make
from worlds import measure

import lexbandits as lb


def worker(service, told, stop):
    """Ask, measure, tell one by one; note what was acknowledged."""
    with service.client() as client:
        while not stop.is_set():
            try:
                for trial in ask(client, 1, worker=threading.current_thread().name):
                    values = measure(trial["arm"], trial["item"])
                    answer = client.put(f"{MODELS}/trials/{trial['id']}/result", json={"values": values})
                    if answer.status_code == 200:
                        told.append((trial["id"], values))
            except httpx2.TransportError:
                return


def test_nothing_acknowledged_is_lost(serve, tmp_path):
    service = serve(f"{tmp_path}/service.db")  # synchronous=FULL
    with service.client() as client:
        objectives = [
            {"name": name, "resolution": 0.001, "noise": ["bounded", 0, 100]}
            for name in ("correct", "latency")
        ]
        make(client, objectives=objectives)  # without an end for long
    told = []
    for _ in range(3):
        stop = threading.Event()
        threads = [threading.Thread(target=worker, args=(service, told, stop)) for _ in range(8)]
        before = len(told)
        for thread in threads:
            thread.start()
        end = time.monotonic() + 30
        while len(told) < before + 60 and time.monotonic() < end:
            time.sleep(0.01)
        service.process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join(60)
        service.process.communicate()
        assert len(told) >= before + 60
        service.start()
    service.stop()
    study = lb.open_study("models", service.storage, read_only=True)
    trials = study.trials().set_index("id")
    assert len({identity for identity, _ in told}) == len(told)
    for identity, values in told:
        row = trials.loc[identity]
        assert row["state"] == "told"
        assert (row["correct"], row["latency"]) == (values["correct"], values["latency"])
    assert study.verify()


def test_a_graceful_stop_finishes_what_is_under_way(serve):
    service = serve()
    with service.client() as client:
        make(client)
        trials = ask(client, 1000)
    results = [{"trial": t["id"], "values": measure(t["arm"], t["item"])} for t in trials]
    answers = []

    begun = threading.Event()

    def tell():
        with service.client() as client:
            client.get("/healthz")
            begun.set()
            answers.append(client.post(f"{MODELS}/results", json={"results": results}))

    thread = threading.Thread(target=tell)
    thread.start()
    begun.wait()
    time.sleep(0.3)
    out, errors = service.stop()
    thread.join()
    assert service.process.returncode in (0, -signal.SIGTERM)
    assert (out, errors) == ("", "")
    assert answers[0].status_code == 200
    study = lb.open_study("models", service.storage, read_only=True)
    assert len(study.trials().query("state == 'told'")) == 1000
