"""The service is killed, stopped, started again: what it has acknowledged is there."""

import signal
import threading

import httpx2

import lexbandits as lb
from lexbandits.study.storage.file_lock import FileLock
from support.asked import MODELS, ask, make
from support.patience import until, waits_at_gate
from support.questions import measure


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
            {"name": name, "margin": 0.001, "tie": 0, "noise": ["bounded", 0, 100]}
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
        until(lambda goal=before + 60: len(told) >= goal)
        service.process.send_signal(signal.SIGKILL)
        for thread in threads:
            thread.join()
        service.process.communicate()
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


def test_a_graceful_stop_finishes_what_is_under_way(serve, tmp_path):
    service = serve()
    with service.client() as client:
        make(client)
        trials = ask(client, 1000)
    results = [{"trial": t["id"], "values": measure(t["arm"], t["item"])} for t in trials]
    answers = []

    def tell():
        with service.client() as client:
            answers.append(client.post(f"{MODELS}/results", json={"results": results}))

    gate = FileLock(tmp_path / "service.db", 60)
    gate.take()
    thread = threading.Thread(target=tell)
    thread.start()
    until(lambda: waits_at_gate(tmp_path / "service.db"))
    threading.Timer(0.3, gate.close).start()
    out, errors = service.stop()
    thread.join()
    assert service.process.returncode in (0, -signal.SIGTERM)
    assert (out, errors) == ("", "")
    assert answers[0].status_code == 200
    study = lb.open_study("models", service.storage, read_only=True)
    assert len(study.trials().query("state == 'told'")) == 1000
