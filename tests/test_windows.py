"""What must work on Windows, as far as it can be tried elsewhere: nothing of Unix is needed to import."""

import os
import subprocess
import threading

import pytest

import lexbandits as lb
from lexbandits.study.storage import file_lock
from lexbandits.study.storage.file_lock import FileLock
from support.command import python
from support.patience import until
from support.questions import easy, go_on, tried, work
from support.windows import msvcrt

HIDDEN = """
import importlib, os, pkgutil, signal, socket, sys
import lexbandits
names = [each.name for each in pkgutil.walk_packages(lexbandits.__path__, "lexbandits.")]
names = [name for name in names if not name.endswith("__main__")]
for name in names:
    importlib.import_module(name)  # with all that others need of Unix
import asyncio, concurrent.futures.process, multiprocessing.pool, subprocess, tempfile, rich.progress
from support import windows
for name in [name for name in sys.modules if name.partition(".")[0] == "lexbandits"]:
    del sys.modules[name]
del lexbandits

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name in windows.MISSING:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

for name in windows.MISSING:
    sys.modules.pop(name, None)
sys.meta_path.insert(0, Hidden())
sys.modules["msvcrt"] = windows.msvcrt
for module in (os, signal, socket):
    for name in windows.LACKING[module.__name__]:
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
for name in names:
    importlib.import_module(name)
import lexbandits as lb
from lexbandits.study.storage import file_lock
assert file_lock.fcntl is None and file_lock.msvcrt is windows.msvcrt
"""

WORKS = """
study = lb.create_study("easy", "study.db", arms=["a", "b"], seed=0,
                        objectives=[lb.Objective("x", margin=0.2, noise="bernoulli")])
assert study.run(lambda arm: {"x": int(arm == "a")}, workers=2, progress=False).arm == "a"
study.close()
assert lb.open_study("easy", "study.db").verify().ok
table = {"arm": ["a", "b"] * 60, "item": [i // 2 for i in range(120)], "x": [1, 0] * 60}
assert lb.judge(table, [lb.Objective("x", margin=0.2, noise="bernoulli")]).arm == "a"
policy = lb.LexElimTol(2, 1, delta=0.05, tolerance=[0.1], noise=["bernoulli"])
while not policy.finished:
    policy.tell(arm := policy.ask(), [int(arm == 0)])
from typer.testing import CliRunner
from lexbandits.cli.main import app
said = CliRunner().invoke(app, ["run", "study.toml", "--", "measure", "{arm}"])
assert said.exit_code == 2, said.output
assert "on Linux and macOS alone" in said.output, said.output
print("all of it")
"""


def test_nothing_of_unix_is_needed(tmp_path, monkeypatch):
    """Every module is imported, a table judged, a SQLite study measured; a program is refused in words."""
    monkeypatch.setenv("LEXBANDITS_JIT", "0")
    done = subprocess.run(python(HIDDEN + WORKS), cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.stdout.endswith("all of it\n"), done.stderr


@pytest.fixture
def bytes_locked(monkeypatch):
    """As if there were no `flock`."""
    monkeypatch.setattr(file_lock, "fcntl", None)
    monkeypatch.setattr(file_lock, "msvcrt", msvcrt)


@pytest.mark.usefixtures("bytes_locked")
class TestBytesLocked:
    """The gate of Windows."""

    def test_one_at_a_time(self, tmp_path):
        inside, most, done = [], [], []

        def come_and_go():
            gate = FileLock(tmp_path / "s.db", 600)
            for _ in range(30):
                gate.take()
                inside.append(gate)
                most.append(len(inside))
                inside.remove(gate)
                gate.give_back()
            gate.close()
            done.append(True)

        threads = [threading.Thread(target=come_and_go) for _ in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(600)
        assert len(done) == 6
        assert set(most) == {1}

    def test_who_waits_in_vain_is_told_and_keeps_nothing(self, tmp_path):
        holder, waiter, third = FileLock(tmp_path / "s.db", 60), FileLock(tmp_path / "s.db", 0.2), None
        assert holder.take() is False
        with pytest.raises(lb.StorageBusyError, match="others wrote for"):
            waiter.take()
        holder.give_back()
        third = FileLock(tmp_path / "s.db", 60)
        assert third.take() is False
        third.give_back()
        assert waiter.take() is False

    def test_who_has_waited_goes_first(self, tmp_path):
        """Its lock of the queue keeps out whoever comes later."""
        holder, starving, later = (FileLock(tmp_path / "s.db", 600) for _ in range(3))
        holder.take()
        went = threading.Event()
        waits = threading.Thread(target=lambda: (starving.take(), went.set()))
        waits.start()
        queue = os.open(f"{tmp_path}/s.db.queue", os.O_RDWR)

        def is_locked():
            os.lseek(queue, file_lock.BYTE, os.SEEK_SET)
            try:
                msvcrt.locking(queue, msvcrt.LK_NBLCK, 1)
            except PermissionError:
                return True
            msvcrt.locking(queue, msvcrt.LK_UNLCK, 1)
            return False

        until(is_locked)
        os.close(queue)
        holder.give_back()
        assert went.wait(600)
        waits.join()
        starving.give_back()
        assert later.take() is False

    def test_the_mark_can_be_read_while_it_is_locked(self, tmp_path):
        holder, other = FileLock(tmp_path / "s.db", 60), FileLock(tmp_path / "s.db", 60)
        holder.take()
        holder.leave((7, 9))
        holder.give_back()
        other.take()
        assert other.mark() == (7, 9)

    def test_a_study(self, tmp_path):
        study = easy(f"{tmp_path}/s.db", seed=0)
        lost = study.ask(worker="gpu-3", lease="1h")
        assert isinstance(work(study)[1], lb.StudyWaiting)
        study.tell(lost, tried(lost.arm))
        assert study.answer.arm == "a"
        assert study.verify().ok
        assert go_on(study) == 0
