"""Edits of a record: `verify` notices every one, whichever event, whichever field."""

import copy
import json
import random
import shutil
import sqlite3
from contextlib import closing

import psycopg
import pytest

import lexbandits as lb
from lexbandits.study.record.events import KINDS
from lexbandits.study.storage.contract import Seal
from lexbandits.study.storage.memory import MemoryStorage
from support.journals import fold_of, journal_of, storage_of
from support.whole_life import whole_life
from support.worlds import create, go_on

COLUMNS = ("seq", "kind", "trial", "arm", "payload", "at", "by")


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """The file of a study, and its rows by number."""
    path = tmp_path_factory.mktemp("lived") / "life.db"
    study = whole_life(f"sqlite:///{path}?synchronous=OFF")
    assert study.verify().problems == ()
    assert {event.kind for event in study.events()} == {*KINDS} - {"retried"}
    study.close()
    with closing(sqlite3.connect(path)) as raw, raw:
        rows = raw.execute(f'SELECT {", ".join(COLUMNS[:-1])}, "by" FROM lexbandits_events ORDER BY seq')
        return path, [dict(zip(COLUMNS, row, strict=True)) for row in rows.fetchall()]


# --- one edit of a file


def changed(value, luck):
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + luck.choice([1, -1, 0.001, 1000])
    if isinstance(value, str):
        return luck.choice([value + "x", value[:-1], value.upper() + "'", ""]) if value else "x"
    if isinstance(value, list):
        shorter, longer = value[:-1], [*value, *(value[-1:] or ["x"])]
        inside = [changed(value[0], luck), *value[1:]] if value else longer
        return luck.choice([shorter if value else longer, longer, inside])
    if isinstance(value, dict) and value:
        key = luck.choice([*value])
        return {**value, key: changed(value[key], luck)}
    return luck.choice([1, "x"])


def edits(rows, luck):
    """(how, statements with values): every field of every kind; then events removed, swapped, moved."""
    by_kind = {}
    for row in rows:
        by_kind.setdefault(row["kind"], []).append(row)
    update = "UPDATE lexbandits_events SET {} = ? WHERE seq = ?"
    for kind, of_kind in by_kind.items():
        row = luck.choice(of_kind)
        payload = json.loads(row["payload"])
        for key in payload:
            other = {**payload, key: changed(payload[key], luck)}
            if other != payload:
                yield f"{kind}.{key}", (update.format("payload"), (json.dumps(other), row["seq"]))
            less = {name: value for name, value in payload.items() if name != key}
            yield f"{kind}.{key} gone", (update.format("payload"), (json.dumps(less), row["seq"]))
        yield f"{kind} + key", (update.format("payload"), (json.dumps({**payload, "x": 1}), row["seq"]))
        for column in COLUMNS[1:]:
            if column != "payload":
                other = luck.choice([kind for kind in KINDS if kind != row["kind"]])
                new = other if column == "kind" else changed(row[column], luck)
                yield f"{kind}: {column}", (update.format(f'"{column}"'), (new, row["seq"]))
        yield f"{kind} removed", ("DELETE FROM lexbandits_events WHERE seq = ?", (row["seq"],))
    seq = "UPDATE lexbandits_events SET seq = {} WHERE seq {} ?"
    again = (
        f"INSERT INTO lexbandits_events SELECT study, {len(rows) + 1}, kind, trial, arm, payload, at, "
        '"by" FROM lexbandits_events WHERE seq = ?'
    )
    for _ in range(30):
        first, second = luck.sample(range(1, len(rows) + 1), 2)
        swap = (seq.format(-1, "="), (first,)), (seq.format(first, "="), (second,))
        yield f"{first} and {second} swapped", *swap, (seq.format(second, "="), (-1,))
        yield f"{first} said again", (again, (first,))
    removal = "DELETE FROM lexbandits_events WHERE seq {} ?"
    for first in luck.sample(range(2, len(rows) + 1), 20):
        yield f"cut from {first} on", (removal.format(">="), (first,))
        yield f"moved on from {first}", (seq.format("seq + 1000", ">="), (first,))
        back = (seq.format("1 - seq", ">"), (first,)), (seq.format("-seq", "<"), (0,))
        yield f"{first} removed, renumbered", (removal.format("="), (first,)), *back
        yield f"seals gone from {first} on", ("DELETE FROM lexbandits_seals WHERE seq >= ?", (first,))
    yield "renamed", ("UPDATE lexbandits_studies SET name = 'other'", ())


def edited(path, to, statements):
    """Whether an edit of a copy of the file changes anything."""
    for old in to.parent.glob(f"{to.name}*"):
        old.unlink()
    shutil.copy(path, to)
    with closing(sqlite3.connect(to)) as raw, raw:
        raw.execute("PRAGMA synchronous = OFF")
        raw.execute("DROP INDEX lexbandits_told_once")  # an editor would too
        done = [raw.execute(*statement).rowcount for statement in statements]
    raw.close()
    return any(done)


def noticed(path, name="models"):
    """What `verify` says, or the one plain line by which the study is refused."""
    try:
        study = lb.open_study(name, path)
    except lb.StudyError as error:
        return (str(error),)
    try:
        return study.verify().problems
    finally:
        study.close()


def unnoticed(lived, tmp_path, most):
    path, rows = lived
    luck, missed, tried = random.Random(1), [], 0
    every = list(edits(rows, luck))
    for how, *statements in every if most is None else luck.sample(every, most):
        if edited(path, tmp_path / "edited.db", statements):
            tried += 1
            if not noticed(tmp_path / "edited.db", "other" if how == "renamed" else "models"):
                missed.append(how)
    return tried, missed


# --- the same on PostgreSQL


@pytest.fixture
def lived_there(postgres):
    """The address of a study, and its rows by number."""
    study = whole_life(postgres)
    assert study.verify().problems == ()
    study.close()
    with psycopg.connect(postgres) as raw:
        raw.execute("DROP INDEX lexbandits_told_once")  # an editor would too
        rows = raw.execute(f'SELECT {", ".join(COLUMNS[:-1])}, "by" FROM lexbandits_events ORDER BY seq')
        return postgres, [dict(zip(COLUMNS, row, strict=True)) for row in rows.fetchall()]


TABLES = ("studies", "events", "seals")


def kept_aside(address):
    """Keep a copy of all that is edited, in a schema of its own."""
    with psycopg.connect(address) as raw:
        raw.execute("DROP SCHEMA IF EXISTS kept CASCADE; CREATE SCHEMA kept")
        for table in TABLES:
            raw.execute(f"CREATE TABLE kept.{table} AS TABLE lexbandits_{table}")


def as_before(raw):
    raw.execute("DELETE FROM lexbandits_seals; DELETE FROM lexbandits_events")
    raw.execute("UPDATE lexbandits_studies SET name = kept.studies.name FROM kept.studies")
    for table in TABLES[1:]:
        raw.execute(f"INSERT INTO lexbandits_{table} SELECT * FROM kept.{table}")


_UNLIKE = (  # a number of 7.001 is 7 in a column of whole ones: that is no edit
    "(TABLE kept.{0} EXCEPT TABLE lexbandits_{0}) UNION ALL (TABLE lexbandits_{0} EXCEPT TABLE kept.{0})"
)


def edited_there(address, statements):
    """Whether an edit changes anything; one that PostgreSQL itself refuses does not."""
    with psycopg.connect(address) as raw:
        as_before(raw)
        raw.commit()
        try:
            for words, values in statements:
                raw.execute(words.replace("?", "%s"), values)
        except psycopg.Error:
            raw.rollback()
            return False
        return any(raw.execute(_UNLIKE.format(table)).fetchone() for table in TABLES)


def unnoticed_there(lived_there, most):
    address, rows = lived_there
    luck, missed, tried = random.Random(2), [], 0
    every = list(edits(rows, luck))
    kept_aside(address)
    for how, *statements in every if most is None else luck.sample(every, most):
        if edited_there(address, statements):
            tried += 1
            if not noticed(address, "other" if how == "renamed" else "models"):
                missed.append(how)
    with psycopg.connect(address) as raw:
        as_before(raw)
    assert noticed(address) == (), "only the edits were noticed"
    return tried, missed


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_edits_on_postgres_is_noticed(lived_there):
    tried, missed = unnoticed_there(lived_there, 25)
    assert missed == []
    assert tried >= 15


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_edit_on_postgres_is_noticed(lived_there):
    tried, missed = unnoticed_there(lived_there, None)
    assert missed == []
    assert tried >= 400


# --- on SQLite


@pytest.mark.filterwarnings("ignore")
def test_a_sample_of_edits_is_noticed(lived, tmp_path):
    tried, missed = unnoticed(lived, tmp_path, 60)
    assert missed == []
    assert tried >= 50


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_every_edit_is_noticed(lived, tmp_path):
    tried, missed = unnoticed(lived, tmp_path, None)
    assert missed == []
    assert tried >= 400


# --- who computes the digests anew is still held to the answer


def forged(study, change):
    """The study in another storage, with its events changed and all digests fitting."""
    events = [event._replace(payload=copy.deepcopy(event.payload)) for event in journal_of(study).events()]
    storage = MemoryStorage()
    row, _ = storage.create(study.name, "", events[0].payload)
    journal = storage._journals[row.id]
    journal.events[:] = change(events)
    for at, event in enumerate(journal.events):
        if "record" in event.payload:
            journal.events[at] = event
            sealed, journal.events = journal.events, journal.events[:at]
            digest, journal.events = journal.seal().digest, sealed
            journal.events[at] = event._replace(payload={**event.payload, "record": digest})
    return lb.open_study(study.name, storage)


def with_end(**words):
    def change(events):
        (at,) = [at for at, event in enumerate(events) if event.kind in ("finished", "ended")]
        events[at] = events[at]._replace(payload={**events[at].payload, **words})
        return events

    return change


ENDS = {
    "arm": "cot",
    "certified": False,
    "delta": 0.001,
    "candidates": ["large", "small"],
    "reason": "certain",
    "flags": ["large-sample"],
    "certificate": [],
    "details": {"contradiction": {}},
    "about": "items",
    "items": 7,
    "results": 7,
    "full": 7,
    "certain": True,
    "decision": "switch",
}


@pytest.mark.filterwarnings("ignore")
def test_an_end_that_was_rewritten_is_noticed_whoever_computed_the_digests():
    study = create()
    go_on(study)
    assert forged(study, list).verify().problems == ()
    assert ENDS.keys() | {"record"} == vars(study.answer).keys()
    for part, value in ENDS.items():
        problems = forged(study, with_end(**{part: value})).verify().problems
        assert problems, part
        assert any(part in problem or "the record answers" in problem for problem in problems), problems
    certificate = [{**row, "low": row["low"] + 0.01} for row in study.answer.certificate]
    assert "certificate[0].low" in forged(study, with_end(certificate=certificate)).verify().problems[0]
    rounded = [
        {key: float(f"{v:.9g}") if isinstance(v, float) else v for key, v in row.items()}
        for row in study.answer.certificate
    ]
    assert forged(study, with_end(certificate=rounded)).verify().ok, "another processor"


def test_an_end_by_hand_is_compared_too():
    study = create()
    go_on(study, 5)
    study.end("tea")
    assert study.answer.record is not None
    assert study.verify(study.answer.record).ok
    for part, value in ENDS.items():
        if value not in (getattr(study.answer, part), [*study.answer.certificate]) and part not in (
            "reason",
            "certified",
        ):
            assert forged(study, with_end(**{part: value})).verify().problems, part
    assert forged(study, with_end(certified=True)).verify().problems


@pytest.mark.filterwarnings("ignore")
def test_a_question_that_was_changed_is_noticed_whoever_computed_the_digests():
    study = create()
    go_on(study)

    def narrower(events):
        events[0].payload["spec"]["objectives"][0]["margin"] = 0.001
        return events

    def surer(events):
        events[0].payload["spec"]["delta"] = 0.0001
        return events

    for change in (narrower, surer):
        assert forged(study, change).verify().problems, "settings follow from the spec alone"


# --- what an answer names


@pytest.mark.parametrize("storage", ["memory", "sqlite", "postgres"], indirect=True)
def test_who_kept_the_digest_of_an_answer_can_tell(storage):
    study = create(storage)
    go_on(study)
    record = study.answer.record
    assert study.verify(record).ok
    assert study.verify(study.verify().sha256).ok
    study.note("afterwards")
    assert study.verify(record).ok
    again = create(storage, name="again")
    go_on(again)
    assert again.answer.record != record
    problems = again.verify(record).problems
    assert problems == (
        f"no end of this journal has the digest {record}: it is not the record of that answer",
    )


def test_nothing_is_added_to_a_record_that_was_cut(tmp_path):
    study = create(tmp_path / "s.db")
    go_on(study, 5)
    with closing(sqlite3.connect(tmp_path / "s.db")) as raw, raw:
        raw.execute("DELETE FROM lexbandits_events WHERE seq > 6")
    raw.close()
    with pytest.raises(lb.StorageError, match=r"ends with event 6, but was sealed at event 11"):
        study.ask()


def test_a_cache_that_was_changed_is_noticed_and_a_damaged_one_is_left_aside(tmp_path):
    study = create(tmp_path / "s.db")
    go_on(study, 20)
    storage, row = storage_of(study), journal_of(study).row
    ledger = fold_of(study).ledger
    storage.put_cache(row.id, ledger.seq, ledger.to_bytes())
    assert study.verify().ok
    ledger.values[0] += 0.5
    storage.put_cache(row.id, ledger.seq, ledger.to_bytes())
    assert study.verify().problems == (f"the cache of the first {ledger.seq} events is not what they say",)
    good = ledger.to_bytes()
    for damaged in (b"", good[:3], good[:-1], good[:50] + b"?" + good[51:], b"\x00" * 99):
        storage.put_cache(row.id, ledger.seq, damaged)
        assert lb.open_study("models", tmp_path / "s.db").verify().ok


def test_seals_in_memory_are_made_when_they_are_asked_for():
    study = create()
    go_on(study, 5)
    storage, row = storage_of(study), journal_of(study).row
    assert list(storage.seals(row.id)) == []
    assert storage.last_seal(row.id) == Seal(study.seq, study.verify().sha256)
