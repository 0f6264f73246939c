"""What must work on every system, in a minute: policies, tables, SQLite studies, commands, the service.

Alone, without the other tests' helpers, which need Unix: python -m pytest --noconftest tests/test_smoke.py
"""

import json
import subprocess
import sys

import pytest

import lexbandits as lb

X = {"name": "x", "margin": 0.2, "noise": "bernoulli"}
STUDY = """
[study]
name = "easy"
seed = 0
[[objectives]]
name = "x"
margin = 0.2
noise = "bernoulli"
[[arms]]
name = "a"
[[arms]]
name = "b"
"""
WORKER = """
import sys, lexbandits as lb
study = lb.open_study("easy", sys.argv[1])
while True:
    try:
        trial = study.ask(worker=sys.argv[2], wait="5m")
    except lb.StudyFinished:
        break
    study.tell(trial, {"x": trial.item % 2 if trial.item < 30 else int(trial.arm == "a")})
"""
DYING = """
import os, sys, lexbandits as lb
from lexbandits.study.core.journal import UnitOfWork
study = lb.open_study("easy", sys.argv[1])
UnitOfWork.write = lambda self: os._exit(9)
study.ask()
"""


def process(*words, code=0):
    done = subprocess.run([sys.executable, *map(str, words)], capture_output=True, text=True, timeout=600)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def command(*words, code=0):
    return process("-m", "lexbandits", *words, code=code)


def easy(storage):
    return lb.create_study("easy", storage, arms=["a", "b"], objectives=[X], seed=0)


def test_policies():
    instance = lb.paper_instance(10)
    for policy in (lb.LexElimIn(10, 3, delta=0.1, tradeoff=2), lb.UCB1(10, 3)):
        assert lb.simulate(policy, instance, horizon=500, seed=0).rounds == 500
    policy = lb.LexElimTol(2, 1, delta=0.05, tolerance=[0.1], noise=["bernoulli"])
    while not policy.finished:
        arm = policy.ask()
        policy.tell(arm, [int(arm == 1)])
    assert policy.recommendation == 1


def test_a_table(tmp_path):
    rows = "".join(f"{arm},{item},{int(arm == 'a')}\n" for item in range(60) for arm in "ab")
    (tmp_path / "table.csv").write_text(f"arm,item,x\n{rows}", encoding="utf-8")
    verdict = lb.judge(tmp_path / "table.csv", [lb.Objective("x", margin=0.2, noise="bernoulli")])
    assert (verdict.arm, verdict.certified) == ("a", True)
    assert "a" in command("judge", tmp_path / "table.csv", "x max 0.1 bernoulli")


@pytest.mark.parametrize("executor", ["threads", "processes"])
def test_a_study(executor, tmp_path):
    study = easy(tmp_path / "study.db")
    answer = study.run(measured, 2, executor=executor, progress=False)
    assert (answer.arm, answer.certified) == ("a", True)
    study.report(tmp_path / "report.html")
    study.close()
    assert lb.open_study("easy", tmp_path / "study.db").verify().ok


def measured(arm):
    return {"x": int(arm == "a")}


def test_processes_share_a_study(tmp_path):
    """And one of them dies inside a transaction."""
    file = tmp_path / "study.db"
    study = easy(file)
    assert process("-c", DYING, file, code=9) == ""
    assert study.status.handed_out == 0
    words = [sys.executable, "-c", WORKER, str(file)]
    workers = [subprocess.Popen([*words, f"w{number}"]) for number in range(3)]
    assert [worker.wait(600) for worker in workers] == [0, 0, 0]
    assert study.answer.arm == "a"
    assert study.verify().ok


def test_commands(tmp_path):
    (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
    where = "--storage", str(tmp_path / "study.db")
    command("study", "create", tmp_path / "study.toml", *where)
    trial = json.loads(command("study", "ask", "easy", "--json", *where))["id"]
    command("study", "tell", "easy", trial, "x=1", *where)
    assert json.loads(command("study", "status", "easy", "--json", *where))["results"] == 1
    if sys.platform == "win32":
        said = command("run", tmp_path / "study.toml", *where, "--", sys.executable, "-V", code=2)
        assert "Linux and macOS alone" in said


def test_the_service(tmp_path):
    words = [sys.executable, "-m", "lexbandits", "serve", "--port", "0", "--storage", str(tmp_path / "s.db")]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as serving:
        try:
            study = easy(serving.stdout.readline().strip())
            assert study.run(measured, progress=False).arm == "a"
            study.close()
        finally:
            serving.terminate()
