"""One writer at a time, whoever is interrupted, forked or moved away meanwhile."""

import gc
import itertools
import os
import shutil
import signal
import sqlite3
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import lexbandits as lb
from lexbandits.study.core import journal
from lexbandits.study.core.events import EventKind
from lexbandits.study.storage import file_lock, forks, postgres, sql, sqlite
from lexbandits.study.storage.contract import open_storage
from lexbandits.study.storage.file_lock import FileLock
from support.consoles import forked
from support.journals import journal_of, storage_of
from support.patience import until, waits_at_gate
from support.questions import create, measure

WRITING = {module.__file__ for module in (file_lock, journal, postgres, sql, sqlite)}


@pytest.mark.parametrize("where", ["while its thread starts", "while it waits"])
def test_who_stops_waiting_at_the_gate_gives_back_what_comes(tmp_path, monkeypatch, where):
    """Ctrl-C, or a minute gone by: the lock that comes afterwards must not stay with nobody."""
    path = tmp_path / "s.db"
    holder, waiter, third = (FileLock(path, 60) for _ in range(3))

    def interrupted(*_):
        raise KeyboardInterrupt

    holder.take()
    with monkeypatch.context() as patch:
        starts = interrupted if where == "while its thread starts" else lambda *_: True
        patch.setattr(threading.Event, "wait", starts)
        patch.setattr(threading.Condition, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            waiter.take()
    impatient = FileLock(path, 0.2)
    with pytest.raises(lb.StorageBusyError):
        impatient.take()
    holder.give_back()
    third.take()
    with pytest.raises(lb.StorageBusyError):
        FileLock(path, 0.1).take()
    third.give_back()
    waiter.take()


def test_a_child_made_while_somebody_had_given_up_does_not_keep_the_gate(tmp_path):
    holder, waiter = FileLock(tmp_path / "s.db", 60), FileLock(tmp_path / "s.db", 0.1)
    holder.take()
    with pytest.raises(lb.StorageBusyError):
        waiter.take()
    child = forked(lambda: time.sleep(600))
    try:
        holder.give_back()
        assert FileLock(tmp_path / "s.db", 300).take() in (False, True)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def interrupted_at(moment, call):
    """Do it with Ctrl-C at the moment-th place where Python looks for signals; whether it came so far.

    These are the beginnings of functions and the ends of calls of compiled ones. Meanwhile no garbage of
    earlier tests is collected: Python swallows what is raised in a `__del__`, so that would be no place.
    """
    places = itertools.count(1)
    gc.collect()
    gc.disable()

    def look(frame, event, argument):
        signals = event in ("call", "c_return") and frame.f_code.co_filename in WRITING
        if signals and next(places) == moment:
            sys.setprofile(None)
            raise KeyboardInterrupt

    sys.setprofile(look)
    try:
        call()
    except KeyboardInterrupt:
        return True
    finally:
        sys.setprofile(None)
        gc.enable()
    return False


@pytest.mark.parametrize("what", ["ask", "tell", "heartbeat"])
def test_ctrl_c_at_any_place_leaves_nobody_waiting(address, what):
    study, other = create(address), lb.open_study("models", address)
    storage = storage_of(study)
    study.tell(study.ask(), measure("small", 0))

    def call():
        if what == "ask":
            study.ask(worker="w")
        elif what == "tell":
            study.tell(trial, measure(trial.arm, trial.item))
        else:
            study.heartbeat("w")

    for moment in itertools.count(1):
        trial = other.ask(worker="w")
        came = interrupted_at(moment, call)
        assert not storage._is_inside(), moment
        other.note("nobody is in the way")
        free = []

        def try_lock(free=free):
            free.append(storage._lock.acquire(timeout=600))
            storage._lock.release()

        thread = threading.Thread(target=try_lock)
        thread.start()
        thread.join()
        assert free == [True], moment
        call()
        other.release(other.ask())
        if not came:
            break
    assert moment > 10
    assert study.verify().problems == ()
    states = study.trials().state
    assert what != "tell" or (states == "told").sum() == moment + 1, "what was interrupted was told again"


def test_a_transaction_inside_another_is_refused(address):
    study = create(address)
    storage = storage_of(study)

    def outer(_):
        with pytest.raises(lb.StorageError, match="inside another"):
            study.note("inner")
        with pytest.raises(lb.StorageError, match="inside another"):
            storage.extend(1, "w")
        assert storage._is_inside()

    storage.transact(journal_of(study).row.id, outer)
    study.note("after it")
    assert [event.kind for event in study.events()] == ["created", "note"]


def test_who_opens_a_new_file_waits_for_who_prepares_it(tmp_path):
    """SQLite refuses at once who changes the kind of a file's log while another does."""
    path, gate = tmp_path / "s.db", FileLock(tmp_path / "s.db", 5)
    gate.take()
    preparing = sqlite3.connect(path, isolation_level=None)
    preparing.execute("BEGIN IMMEDIATE")
    with ThreadPoolExecutor(1) as threads:
        opened = threads.submit(open_storage, path)
        until(lambda: waits_at_gate(path), opened)
        preparing.execute("ROLLBACK")
        preparing.close()
        gate.give_back()
        opened.result(600).close()
    assert lb.list_studies(path) == []


def test_what_cannot_be_opened_is_closed_again(tmp_path):
    path = tmp_path / "s.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(lb.StorageError, match="not a database"):
        open_storage(path)
    held = [os.readlink(file) for file in Path("/proc/self/fd").iterdir() if file.exists()]
    assert str(path) not in held


def test_a_file_replaced_while_waiting_at_the_gate(tmp_path):
    """What is told then is in the file that is there, not in the one that was."""
    path = tmp_path / "s.db"
    study = create(f"sqlite:///{path}?synchronous=OFF")
    study.close()
    shutil.copy(path, tmp_path / "backup.db")
    study.note("before the backup is put back")
    gate = FileLock(path, 5)
    gate.take()

    def put_back():
        until(lambda: waits_at_gate(path))
        for end in ("-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        os.replace(tmp_path / "backup.db", path)
        gate.give_back()

    thread = threading.Thread(target=put_back)
    thread.start()
    study.note("after it")
    thread.join()
    seen = lb.open_study("models", path)
    assert [event.payload.get("text") for event in seen.events()][1:] == ["after it"]


def test_many_writers_of_one_object_and_of_many(address):
    """Threads on one storage beside storages of their own: every event once."""
    study = create(address)
    storages = [open_storage(address) for _ in range(3)]
    handles = [study, study, study, *(lb.open_study("models", storage) for storage in storages)]

    def write(handle, who):
        for number in range(20):
            handle.note(f"{who} {number}")

    threads = [threading.Thread(target=write, args=(handle, who)) for who, handle in enumerate(handles)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    texts = [event.payload["text"] for event in study.events() if event.kind == "note"]
    assert sorted(texts) == sorted(f"{who} {number}" for who in range(6) for number in range(20))
    for storage in storages:
        storage.close()


def test_a_child_made_while_another_thread_writes(address):
    study = create(address)
    inside, go_on = threading.Event(), threading.Event()

    def slowly(unit):
        unit.append(EventKind.NOTE, {"text": "of the parent's thread"})
        inside.set()
        go_on.wait(600)

    thread = threading.Thread(target=journal_of(study).transact, args=(slowly,))
    thread.start()
    assert inside.wait(600)
    threading.Timer(0.2, go_on.set).start()  # a fork waits for it, however long that takes

    def write():
        signal.alarm(600)
        study.note("of the child")
        return True

    child = forked(write)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    texts = [event.payload.get("text") for event in study.events()]
    assert texts[1:] == ["of the parent's thread", "of the child"]
    assert study.verify().problems == ()


class Watched:
    """A journal or storage that only has a lock; `taken` is called when a fork takes it."""

    def __init__(self, taken):
        self.lock = self._lock = self
        self.taken, self.holders, self.wrong = taken, [], 0

    def acquire(self):
        self.taken()
        self.holders.append(threading.get_ident())

    def release(self):
        try:
            self.holders.remove(threading.get_ident())
        except ValueError:
            self.wrong += 1  # somebody else's


def test_a_child_made_while_another_thread_opens_the_same_file(tmp_path, monkeypatch):
    """SQLite holds locks of the whole process meanwhile, which the child would wait for."""
    path = tmp_path / "s.db"
    study = create(path)
    forking, opening, go_on = threading.Event(), threading.Event(), threading.Event()
    half_open = set()
    connect = sqlite.SqliteStorage._connect

    def slowly(storage):
        half_open.add(threading.get_ident())
        opening.set()
        go_on.wait(600)
        try:
            return connect(storage)
        finally:
            half_open.discard(threading.get_ident())

    def begin_to_open():
        forking.set()
        assert opening.wait(600)
        threading.Timer(0.2, go_on.set).start()  # a fork waits for it

    def open_it():
        assert forking.wait(600)
        with monkeypatch.context() as patch:
            patch.setattr(sqlite.SqliteStorage, "_connect", slowly)
            open_storage(str(path)).close()

    watched = Watched(begin_to_open)
    forks.know_storage(watched)
    thread = threading.Thread(target=open_it)
    thread.start()

    def write():
        signal.alarm(600)
        study.note("of the child")
        return not half_open

    child = forked(write)
    watched.taken = bool
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert (watched.holders, watched.wrong) == ([], 0)


@pytest.mark.parametrize("how", ["closed", "forgotten"])
def test_a_child_made_while_another_thread_closes_the_file(tmp_path, monkeypatch, how):
    """Closed by its owner, or by Python after its last owner."""
    path = tmp_path / "s.db"
    study, storages = create(path), [open_storage(str(tmp_path / "s.db"))]
    closing, go_on = threading.Event(), threading.Event()
    half_closed = set()
    close = sqlite._Connection.close

    def slowly(connection):
        half_closed.add(connection)
        closing.set()
        go_on.wait(600)
        close(connection)
        half_closed.discard(connection)

    def close_it():
        storage = storages.pop()
        with monkeypatch.context() as patch:
            patch.setattr(sqlite._Connection, "close", slowly)
            if how == "closed":
                storage.close()
            del storage

    thread = threading.Thread(target=close_it)
    thread.start()
    assert closing.wait(600)
    threading.Timer(0.2, go_on.set).start()  # a fork waits for it

    def write():
        signal.alarm(600)
        study.note("of the child")
        return not half_closed

    child = forked(write)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0


def test_two_threads_that_fork_at_once_let_go_of_their_own_locks(monkeypatch):
    at_work, both = threading.Event(), threading.Event()
    came, codes = set(), []

    def count():
        came.add(threading.get_ident())
        if len(came) == 2:
            both.set()

    def wait_for_the_other():
        at_work.set()
        both.wait(0.5)  # in vain: one forks after the other

    def fork():
        codes.append(os.waitpid(forked(lambda: True), 0)[1])

    first, then = Watched(count), Watched(wait_for_the_other)
    monkeypatch.setattr(forks, "_journals", {first})
    monkeypatch.setattr(forks, "_storages", {then})
    threads = [threading.Thread(target=fork) for _ in range(2)]
    threads[0].start()
    assert at_work.wait(600)
    threads[1].start()
    for thread in threads:
        thread.join()
    assert codes == [0, 0]
    assert len(came) == 2
    assert [(watched.holders, watched.wrong) for watched in (first, then)] == [([], 0)] * 2
