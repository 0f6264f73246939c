"""What happens when … workers die, results are late, disks fill, servers restart. On the real things."""

import multiprocessing
import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

import lexbandits as lb
from lexbandits.study.core.events import EventKind
from lexbandits.study.storage import postgres as postgres_module
from lexbandits.study.storage import sqlite as sqlite_module
from lexbandits.study.storage.contract import open_storage
from support import command
from support.consoles import forked
from support.journals import journal_of, storage_of
from support.patience import until, waits_at_gate
from support.questions import create, go_on, kinds, measure, question

GOOD = {"correct": 1, "latency": 10}


def python(code, *arguments, **options):
    """A Python process of its own that runs this code."""
    return subprocess.Popen(command.python(code, *arguments), stdout=subprocess.PIPE, text=True, **options)


# --- workers


def test_killed_while_measuring(clock, address):
    """The lease runs out, and the next ask of anybody declares the place missing."""
    study = create(address)
    code = """
        trial = lb.open_study("models", sys.argv[1]).ask(lease="1h", worker="doomed")
        print(trial.id, flush=True)
        time.sleep(600)
    """
    with python(code, address) as worker:
        lost = worker.stdout.readline().strip()
        worker.kill()
    clock.move(3601)
    reader = lb.open_study("models", address, read_only=True)
    assert (reader.status.overdue, reader.status.open) == (1, 1), "who only reads changes nothing"
    study.ask()
    frame = study.trials()
    assert list(frame.state) == ["expired", "open"]
    assert frame.id[0] == lost
    assert study.tell(lost, GOOD) == "late"
    assert study.trials().loc[0, ["correct", "state"]].tolist() == [1, "late"], "shown"
    assert (study.status.late, study.status.results) == (1, 0), "not counted"
    assert study.tell(lost, GOOD) == "repeated"


def test_killed_between_commit_and_answer(address):
    study = create(address)
    trial = study.ask()
    code = """
        study = lb.open_study("models", sys.argv[1])
        study.ask(request="the key")
        study.tell(sys.argv[2], {"correct": 1, "latency": 10})
        print("done", flush=True)
        os.kill(os.getpid(), 9)
    """
    with python(code, address, trial.id) as worker:
        assert worker.stdout.readline()
    assert study.tell(trial, GOOD) == "repeated"
    assert study.ask(request="the key").number == 1


def test_killed_inside_a_transaction(address):
    """It is rolled back and the gate is free at once."""
    study = create(address)
    code = """
        from lexbandits.study.core.ask_tell import hand_out
        from support.journals import journal_of
        def work(turn):
            hand_out(turn, 1, 600.0, None, None)
            turn.write()
            print("written", flush=True)
            time.sleep(600)
        journal_of(lb.open_study("models", sys.argv[1])).transact(work)
    """
    with python(code, address) as worker:
        assert worker.stdout.readline()
        waiting = threading.Thread(target=study.ask)
        waiting.start()
        until(lambda: queues(address), worker)
        assert waiting.is_alive(), "it queues behind the writer"
        worker.kill()
        waiting.join()
    assert kinds(study) == ["created", "asked"]
    assert len(study.trials()) == 1


def test_a_result_counts_until_its_own_time_whoever_noticed(clock, storage):
    study = create(storage)
    late, extended = study.ask(lease="1h"), study.ask(lease="1h", worker="alive")
    for _ in range(2):
        clock.move(1900)
        study.heartbeat("alive")
    assert [study.tell(trial, GOOD) for trial in (late, extended)] == ["late", "counted"], (
        "nobody had noticed"
    )
    assert study.status.late == 1
    gone = study.ask(lease="1h", worker="asleep")
    clock.move(3601)
    study.heartbeat("asleep")
    assert study.tell(gone, GOOD) == "late", "a heartbeat does not wake the dead"


def test_heartbeats_keep_an_ask_from_expiring_a_place(clock, storage):
    study = create(storage)
    trial = study.ask(lease="1h", worker="alive")
    for _ in range(4):
        clock.move(1900)
        study.heartbeat("alive")
        study.release(study.ask())
    assert study.tell(trial, GOOD) == "counted"


def test_expiry_with_a_value():
    """No purchase within the lease is 0."""
    bought = lb.Objective("bought", margin=0.4, noise="bernoulli", if_expired=0)
    study = lb.create_study("x", arms=["a", "b"], objectives=[bought], seed=0)
    study.ask_many(2, lease=0.01)
    time.sleep(0.02)
    study.ask()
    assert study.policy.folded == 1
    assert study.policy.means[:, 0].tolist() == [0.0, 0.0]


def test_expired_places_are_not_asked_again(storage):
    study = create(storage)
    trial = study.ask(lease=0.01)
    time.sleep(0.02)
    places = {(t.arm, t.item) for t in study.ask_many(9)}
    assert (trial.arm, trial.item) not in places


def test_all_workers_vanish(storage):
    study = create(storage)
    study.ask_many(5, lease=0.01)
    before = kinds(study)
    time.sleep(0.05)
    assert kinds(study) == before, "nothing happens by itself"
    assert (study.status.overdue, study.status.expired) == (0, 5), "who looks settles it"


def test_one_objective_never_measured_is_not_settled():
    study = create(budget=900)
    with pytest.raises(lb.StudyFinished, match="budget spent"):  # noqa: PT012
        while True:
            trial = study.ask()
            values = measure(trial.arm, trial.item)
            study.tell(trial, {"correct": values["correct"]} if trial.arm == "large" else values)
    assert not study.answer.certified


def test_host_clocks_do_not_count(address, monkeypatch):
    study = create(address)
    trial = study.ask(lease="1m")
    real = time.time
    monkeypatch.setattr(time, "time", lambda: real() + 86400)
    assert study.tell(trial, GOOD) == "counted"
    assert study.status.overdue == 0
    monkeypatch.setattr(time, "time", lambda: real() - 86400)
    short = study.ask(lease=0.05)
    time.sleep(0.1)
    assert study.tell(short, GOOD) == "late"


# --- the end


def test_results_after_the_end_leave_the_answer(storage):
    study = create(storage)
    in_flight = study.ask()
    with pytest.raises(lb.StudyFinished):  # noqa: PT012
        while True:
            following = study.ask()
            study.tell(in_flight, measure(in_flight.arm, in_flight.item))
            in_flight = following
    answer, end = study.answer, study.seq
    assert answer.certified
    assert study.status.open == 1
    assert study.tell(in_flight, {"correct": 0, "latency": 99}) == "after the end"
    assert study.answer == answer
    assert study.seq == end + 1, "recorded"
    assert study.trials().latency.iloc[-1] == 99


def test_a_replay_that_differs_is_reported(address):
    """As after an upgrade whose policy decides otherwise."""
    study = create(address)
    go_on(study)
    assert study.verify().ok
    connection = raw(address)
    connection.execute(
        'UPDATE lexbandits_events SET payload = replace(payload, \'"arm":"large"\', \'"arm":"cot"\') '
        "WHERE kind = 'finished'"
    )
    connection.commit()
    connection.close()
    with pytest.warns(UserWarning, match="answers 'cot', the replay 'large'"):
        again = lb.open_study("models", address)
    found = again.verify()
    assert not found
    assert "cot" in found.problems[0]


def test_verify_finds_a_result_that_was_changed(address):
    study = create(address)
    go_on(study)
    connection = raw(address)
    connection.execute(
        "UPDATE lexbandits_events SET payload = replace(payload, '\"correct\":1', '\"correct\":0') "
        "WHERE kind = 'told' AND arm = 'large'"
    )
    connection.commit()
    connection.close()
    assert not study.verify()


def queues(address):
    """Whether somebody waits for a writer to end."""
    if not address.startswith("postgresql"):
        return waits_at_gate(re.sub(r"^sqlite:///|\?.*$", "", address))
    with raw(address) as connection:
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        return connection.execute(f"{waiting} AND wait_event_type = 'Lock'").fetchone()[0] > 0


def raw(address):
    """A driver's connection."""
    if address.startswith("postgresql"):
        return psycopg.connect(address)
    return sqlite3.connect(re.sub(r"^sqlite:///|\?.*$", "", address))


# --- many at once


def create_at_once(address, start, found):
    start.wait()
    try:
        found.put(create(address, load_if_exists=True).name)
    except Exception as error:
        found.put(repr(error))


def test_two_processes_create_the_study_at_once(address):
    context = multiprocessing.get_context("spawn")
    start, found = context.Barrier(3), context.Queue()
    workers = [context.Process(target=create_at_once, args=(address, start, found)) for _ in range(3)]
    for worker in workers:
        worker.start()
    assert [found.get(timeout=240) for _ in workers] == ["models"] * 3
    for worker in workers:
        worker.join()
    assert lb.list_studies(address) == ["models"]
    assert kinds(lb.open_study("models", address)) == ["created"]


def work(address, results=10**6, lease="2s"):
    """Ask and tell until so many results of its own are told."""
    study, name = lb.open_study("models", address), f"worker {os.getpid()}"
    while results:
        try:
            trial = study.ask(worker=name, lease=lease)
        except lb.StudyWaiting:  # for somebody who was killed, or has no turn on a busy machine
            time.sleep(0.1)
            continue
        study.tell(trial, measure(trial.arm, trial.item))
        results -= 1


def hard(address):
    """A question that nobody settles soon."""
    objectives = [lb.Objective("correct", margin=0.0002, noise="bernoulli"), question()["objectives"][1]]
    return create(address, objectives=objectives, max_failures=10**6)


def test_24_writers_queue(tmp_path, monkeypatch):
    """Each gets all of its turns; how soon is for benchmarks/studies.py to say."""
    monkeypatch.setattr(sqlite_module, "PATIENCE", 600)
    address = f"sqlite:///{tmp_path}/s.db?synchronous=OFF"
    study = hard(address)
    study.tell(study.ask(), GOOD)
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=work, args=(address, 5, "1h")) for _ in range(24)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    assert study.verify()
    told = study.trials().query("state == 'told'").worker.value_counts()
    assert sorted(told) == [5] * 24
    assert study.status.results == 121


def massacre(address, kills, clock):
    """Kill one of 8 workers whenever some have told, and start another; then look at the record."""
    study = hard(address)
    go_on(study, 1)
    context = multiprocessing.get_context("fork")

    def start():
        worker = context.Process(target=work, args=(address,))
        worker.start()
        return worker

    workers = [start() for _ in range(8)]
    for kill in range(1, kills + 1):
        until(lambda goal=5 * kill: study.status.results > goal)
        victim = workers.pop(0)
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        workers.append(start())
    until(lambda: study.status.results > 20)
    for worker in workers:
        worker.kill()
        worker.join()
    again = lb.open_study("models", address)
    frame = again.trials()
    assert again.verify().problems == (), "nothing handed out twice, nothing doubled"
    told = [event for event in again.events() if event.kind == "told"]
    assert len(told) == (frame.state == "told").sum() > 20, "nothing lost"
    assert frame[frame.state != "released"].duplicated(["arm", "item"]).sum() == 0
    assert (frame.state == "open").sum() <= 8 + kills
    for row in frame[frame.state == "told"].itertuples():
        assert row.latency == measure(row.arm, row.item)["latency"]
    clock.move(3)
    again.ask()
    assert again.status.open == 1, "the orphans are declared missing"


def test_workers_are_killed(clock, address):
    massacre(address, 12, clock)


@pytest.mark.slow
def test_workers_are_killed_for_long(clock, address):
    massacre(address, 80, clock)


def test_a_fork_with_an_open_study(address):
    study = create(address)
    trial = study.ask()
    child = forked(lambda: study.tell(trial, GOOD) == "counted" and study.ask().number == 1)
    assert os.waitpid(child, 0)[1] == 0
    assert study.tell(trial, GOOD) == "repeated"
    assert study.ask().number == 2


def test_threads_share_a_study(address):
    study = hard(address)

    def many():
        for _ in range(20):
            trial = study.ask()
            study.tell(trial, measure(trial.arm, trial.item))

    threads = [threading.Thread(target=many) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert study.status.results == 120
    assert study.verify()


def test_a_study_can_be_sent_to_another_process(address):
    study = create(address)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(lb.Study.ask, (study,)).number == 0
    assert study.ask().number == 1


# --- storages in trouble


def test_lock_not_had_in_time(address, monkeypatch):
    study = create(address)
    monkeypatch.setattr(sqlite_module, "PATIENCE", 0.3)
    monkeypatch.setattr(postgres_module, "PATIENCE", 1)
    other = lb.open_study("models", address)
    storage = open_storage(address)

    def meanwhile(_):
        with pytest.raises(lb.StorageBusyError, match=r"others wrote for .* nothing was changed"):
            other.ask()

    storage.transact(journal_of(study).row.id, meanwhile)
    assert kinds(study) == ["created"]
    assert other.ask().number == 0


def test_disk_full(disk, remount):
    remount("size=1m")
    study = hard(disk / "s.db")
    with pytest.raises(lb.StorageError, match=r"s\.db.*full"):  # noqa: PT012
        for _ in range(3000):
            trial = study.ask()
            study.tell(trial, measure(trial.arm, trial.item))
    remount("size=4m")
    before = study.status.results
    assert study.verify().ok
    assert before > 20
    trial = study.ask()
    assert study.tell(trial, measure(trial.arm, trial.item)) in ("counted", "waiting")
    assert study.status.results == before + 1
    storage_of(study).close()


def test_postgres_restarts(own_server):
    server, study = own_server, create(own_server.database("restarts"))
    trial = study.ask()
    server.stop("immediate")
    server.start()
    assert study.tell(trial, GOOD) == "counted"
    server.stop("fast")
    try:
        with pytest.raises(lb.StorageError, match="lex") as told:
            study.ask()
        assert "sesame" not in str(told.value)
        assert "sesame" not in repr(study)
        with pytest.raises(lb.StorageError):
            _ = study.status
    finally:
        server.start()
    assert study.status.results == 1
    assert study.ask().number == 1


def test_tables_of_a_newer_version(address):
    create(address)
    connection = raw(address)
    connection.execute("UPDATE lexbandits_version SET schema = 99")
    connection.commit()
    connection.close()
    with pytest.raises(lb.StorageVersionError, match="99"):
        lb.open_study("models", address)


def test_an_unknown_kind_of_event_stops_an_old_version(address):
    study = create(address)
    connection = raw(address)
    connection.execute(
        "INSERT INTO lexbandits_events (study, seq, kind, payload, at) VALUES (1, 2, 'teleported', '{}', 1)"
    )
    connection.execute("INSERT INTO lexbandits_seals (study, seq, digest) VALUES (1, 2, 'theirs')")
    connection.commit()
    connection.close()
    with pytest.raises(lb.StorageVersionError, match="teleported"):
        study.ask()
    with pytest.raises(lb.StorageVersionError, match="teleported"):
        lb.open_study("models", address)


def test_the_database_refuses_a_second_first_result(address):
    study = create(address)
    study.tell(study.ask(), GOOD)
    connection = raw(address)
    with pytest.raises((sqlite3.IntegrityError, psycopg.IntegrityError)):
        connection.execute(
            "INSERT INTO lexbandits_events (study, seq, kind, trial, payload, at) "
            "VALUES (1, 4, 'told', 0, '{}', 1)"
        )
    connection.close()


def test_a_restored_backup(tmp_path):
    """Trials handed out after the backup are unknown, and an open study notices."""
    path = tmp_path / "s.db"
    study = create(path)
    known = study.ask()
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(tmp_path / "backup.db")) as backup:
        source.backup(backup)
    source.close()
    forgotten = study.ask()
    with closing(sqlite3.connect(tmp_path / "backup.db")) as backup, closing(sqlite3.connect(path)) as target:
        backup.backup(target)
    backup.close()
    target.close()
    other = lb.open_study("models", path).ask()
    assert other.number == forgotten.number
    assert other.id != forgotten.id
    with pytest.raises(lb.UnknownTrialError):
        study.tell(forgotten, GOOD)
    assert study.tell(known, GOOD) == "counted"
    assert study.tell(other, GOOD) == "counted"


@pytest.mark.parametrize("kind", ["nfs4", "cifs", "fuse.sshfs"])
def test_network_file_systems_are_refused(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(sqlite_module, "_file_system", lambda path: kind)
    with pytest.raises(lb.StorageError, match="PostgreSQL or the service"):
        create(tmp_path / "s.db")


def test_the_file_system_of_a_path():
    assert sqlite_module._file_system(Path("/proc/x")) == "proc"
    assert sqlite_module._file_system(Path("/dev/shm/x")) in ("tmpfs", "")


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (":memory:", "memory"),
        ("sqlite:///x.db?mode=ro", "synchronous"),
        ("sqlite:///x.db?synchronous=PERHAPS", "synchronous"),
        ("mysql://localhost/x", "mysql"),
        ("/nowhere/at/all/s.db", "no folder"),
    ],
)
def test_addresses_that_are_refused(wrong, words):
    with pytest.raises(lb.StorageError, match=words):
        create(wrong)


def test_no_server_there():
    with pytest.raises(lb.StorageError, match=r"lex:\*\*\*") as told:
        create("postgresql://lex:sesame@127.0.0.1:1/x")
    assert "sesame" not in str(told.value)


def test_a_file_that_is_no_database(tmp_path):
    (tmp_path / "s.db").write_bytes(b"not a database, " * 100)
    with pytest.raises(lb.StorageError, match=r"s\.db"):
        create(tmp_path / "s.db")


def test_threads_read_one_object_while_others_write():
    study = create(objectives=[lb.Objective("correct", margin=0.000002, noise="bernoulli")])
    go_on_measuring, errors = threading.Event(), []

    def forever(work):
        try:
            while not go_on_measuring.is_set():
                work()
        except Exception as error:
            errors.append(error)

    def measure_one():
        try:
            trial = study.ask()
        except lb.StudyWaiting:  # for the other one, who has no turn on a busy machine
            return time.sleep(0.001)
        study.tell(trial, {"correct": trial.number % 2})

    def look():
        assert study.status.results <= len(study.trials())
        assert study.answer.arm in study.arms
        assert len(study.results()) == 3
        assert study.policy.rounds <= study.seq

    def explain():
        assert study.explain().arms

    works = [measure_one, measure_one, look, look, explain]
    threads = [threading.Thread(target=forever, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    until(lambda: errors or study.status.results > 100)
    go_on_measuring.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert study.verify().problems == ()


def test_a_machine_that_vanishes_inside_a_transaction(postgres, monkeypatch):
    """Nobody tells the server that it is gone: the lock is freed all the same."""
    study = create(postgres)
    monkeypatch.setattr(postgres_module, "SILENCE", 1)
    gone = lb.open_study("models", postgres)
    inside, comes_back = threading.Event(), threading.Event()

    def fall_silent(unit):
        inside.set()
        comes_back.wait(120)
        unit.append(EventKind.NOTE, {"text": "it was only slow"})

    slow = threading.Thread(target=journal_of(gone).transact, args=(fall_silent,))
    slow.start()
    assert inside.wait(120)
    assert study.ask().number == 0, "before it said anything"
    comes_back.set()
    slow.join()
    assert kinds(study) == ["created", "asked", "note"], "who comes back does it again, once"
