"""Who thinks about studies never holds up who measures."""

import asyncio
import fcntl
import os
import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from starlette.exceptions import HTTPException

import lexbandits as lb
from lexbandits.service import job_queue
from lexbandits.service.auth import Tokens, open_lasting
from lexbandits.service.job_queue import JobQueue
from support.asked import MODELS, refused
from support.patience import alive, until, waits_at_gate
from support.questions import create, go_on
from support.services import fast


def hard(link):
    """A study that is far from its end: its forecast takes a while."""
    objectives = [
        lb.Objective("correct", margin=0.06, noise="bernoulli"),
        lb.Objective("latency", "minimize", unit="ms", margin=2, noise=("bounded", 0, 100)),
    ]
    study = create(link, objectives=objectives)
    go_on(study, 60)
    return study


def test_heartbeats_do_not_wait_for_forecasts(serve, tmp_path):
    storage = fast(tmp_path)
    tokens = Tokens(open_lasting(storage))
    reader, worker = tokens.create("reader", "read"), tokens.create("worker", "write")
    hard(storage).forecast(runs=10)  # compiled here, in whatever time it takes
    service = serve(storage)
    with service.client(token=worker) as client, service.client(token=reader) as looker:
        until(lambda: looker.get(f"{MODELS}/forecast?runs=10").status_code == 200, service)
        statuses = []

        def look(number):
            with service.client(token=reader) as somebody:
                statuses.append(somebody.get(f"{MODELS}/forecast?runs={10 + number % 20}").status_code)

        with ThreadPoolExecutor(100) as pool:
            asked = [pool.submit(look, number) for number in range(100)]
            meanwhile = 0
            while not all(each.done() for each in asked):
                assert client.post(f"{MODELS}/workers/w/heartbeat").status_code == 204
                meanwhile += not all(each.done() for each in asked)
                time.sleep(0.05)
            for each in asked:
                each.result()
    assert 200 in statuses
    assert set(statuses) <= {200, 503}
    assert meanwhile, "one was answered while somebody still waited for a forecast"


def test_nobody_waits_for_what_is_being_compiled(serve, tmp_path, monkeypatch):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    storage = fast(tmp_path)
    hard(storage)
    service = serve(storage)
    with service.client() as client:
        for path in ("forecast", "report", "figures/forecast"):
            answer = client.get(f"{MODELS}/{path}")
            refused(answer, 503)
            assert re.match(r"compiling, .* try again in \d+ s", answer.json()["detail"])
            assert int(answer.headers["Retry-After"]) > 1
        assert client.get(f"{MODELS}/explanation").status_code == 200
    (compiler,) = children(service.process.pid)
    service.stop()
    until(lambda: not alive(compiler))


def children(pid):
    """The processes that a process has started."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return [int(word) for task in tasks for word in (task / "children").read_text().split()]


def test_heartbeats_at_a_held_gate_do_not_use_up_the_threads(serve, tmp_path):
    service = serve()
    study = create(service.link)
    trial = study.ask(worker="w7", lease="1h")
    gate = os.open(f"{tmp_path}/service.db.lock", os.O_RDWR)
    fcntl.flock(gate, fcntl.LOCK_EX)

    def beat(number):
        with service.client() as client:
            return client.post(f"{MODELS}/workers/w{number}/heartbeat").status_code

    with ThreadPoolExecutor(80) as pool, service.client() as client:
        beats = [pool.submit(beat, number) for number in range(80)]
        until(lambda: waits_at_gate(tmp_path / "service.db"))
        until(lambda: service.unread() == 0)
        assert not any(each.done() for each in beats)
        for path in (MODELS, "/healthz", f"{MODELS}/trials", "/api/studies"):
            assert client.get(path).status_code == 200
        assert not any(each.done() for each in beats), "who looks was answered before them"
        fcntl.flock(gate, fcntl.LOCK_UN)
        assert {each.result() for each in beats} == {204}
        extended = client.get(f"{MODELS}/trials").json()["trials"][0]["until"]
    os.close(gate)
    assert extended > trial.until.isoformat(), "and they are heard"


@pytest.mark.parametrize("header", [{}, {"Content-Type": "text/plain"}, {"Content-Length": "0"}], ids=str)
def test_a_heartbeat_however_it_is_sent(service, header):
    study = create(service.link)
    before = study.ask(worker="a/b ü", lease="1m").until
    time.sleep(0.01)
    with service.client() as client:
        assert client.post(f"{MODELS}/workers/a%2Fb%20%C3%BC/heartbeat", headers=header).status_code == 204
        extended = client.get(f"{MODELS}/trials").json()["trials"][0]["until"]
        assert extended > before.isoformat(timespec="milliseconds")
        refused(client.post("/api/studies/none/workers/w/heartbeat"), 404)
        refused(client.post(f"{MODELS}/workers/%00/heartbeat"), 422)
        refused(client.post(f"{MODELS}/workers/{'x' * 201}/heartbeat"), 422)
    with service.client(token="lb_wrong") as stranger:
        refused(stranger.post(f"{MODELS}/workers/w/heartbeat"), 401)


# --- the queue


class Made:
    """Things that take until they are let go."""

    def __init__(self):
        self.begun, self.go = [], threading.Event()

    def __call__(self, what):
        def make():
            self.begun.append(what)
            self.go.wait(120)
            return f"{what} {len(self.begun)}"

        return make


def gathered(queue, made, things):
    """What each of these is given, asked for one after the other, when the first of each study has begun."""

    async def all_of_them():
        async def one(study, what):
            try:
                return await queue.get(study, what, made(what))
            except HTTPException as refusal:
                return refusal.status_code

        tasks, studies = [], set()
        for study, what in things:
            tasks.append(asyncio.create_task(one(study, what)))
            studies.add(study)
            while len(made.begun) < min(len(studies), job_queue.MOST_AT_WORK):
                await asyncio.sleep(0.001)
        await asyncio.sleep(0.02)
        made.go.set()
        return await asyncio.gather(*tasks)

    return asyncio.run(all_of_them())


def test_what_many_ask_for_is_made_once_and_new_enough():
    made = Made()
    given = gathered(JobQueue(), made, [("s", "forecast")] * 50)
    assert made.begun == ["forecast"] * 2, "the first had begun when the others came"
    assert given == ["forecast 1"] + ["forecast 2"] * 49


def test_one_study_has_one_thread_and_others_go_on():
    made = Made()
    gathered(JobQueue(), made, [("s", "a"), ("s", "b"), ("t", "c"), ("u", "d")])
    assert made.begun[:2] == ["a", "c"]
    assert sorted(made.begun) == ["a", "b", "c", "d"]


def test_too_much_is_refused():
    made = Made()
    given = gathered(JobQueue(), made, [("s", number) for number in range(job_queue.MOST_WAITING + 5)])
    assert given.count(503) == 4, "one is at work, as many wait"
    assert given[-4:] == [503] * 4


def test_who_has_waited_too_long_finds_it_later(monkeypatch):
    monkeypatch.setattr(job_queue, "LONGEST_WAIT", 0.1)
    made, queue = Made(), JobQueue()

    async def twice():
        with pytest.raises(HTTPException, match="not made within"):
            await queue.get("s", "x", made("x"))
        with pytest.raises(HTTPException, match="not made within"):
            await queue.get("s", "x", made("x"))
        made.go.set()
        return await queue.get("s", "x", made("x"))

    assert asyncio.run(twice()) == "x 2"


def test_what_fails_fails_for_all_and_the_queue_goes_on():
    queue, calls = JobQueue(), []

    def fails():
        calls.append(1)
        raise lb.ConflictError("too little")

    async def twice():
        outcomes = await asyncio.gather(
            *(queue.get("s", "x", fails) for _ in range(3)), return_exceptions=True
        )
        return outcomes, await queue.get("s", "y", lambda: 7)

    outcomes, after = asyncio.run(twice())
    assert [str(error) for error in outcomes] == ["too little"] * 3
    assert after == 7


def test_who_goes_away_takes_nothing_from_others():
    made, queue = Made(), JobQueue()

    async def leave():
        first = asyncio.create_task(queue.get("s", "x", made("x")))
        while not made.begun:
            await asyncio.sleep(0.001)
        waits = [asyncio.create_task(queue.get("s", "y", made("y"))) for _ in range(2)]
        await asyncio.sleep(0.05)
        waits[0].cancel()
        made.go.set()
        return await first, await waits[1]

    assert asyncio.run(leave()) == ("x 1", "y 2")
