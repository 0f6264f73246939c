"""Edits of a record: `verify` notices every one, whichever event, whichever field."""

import copy
import json
import random
import re
import shutil
import sqlite3
from contextlib import closing

import pandas as pd
import psycopg
import pytest

import lexbandits as lb
from lexbandits._validation import difference
from lexbandits.study.core.events import EventKind
from lexbandits.study.storage.contract import Seal
from lexbandits.study.storage.memory import MemoryStorage
from support.journals import journal_of, replay_of, storage_of
from support.questions import create, go_on
from support.whole_life import whole_life

COLUMNS = ("seq", "kind", "trial", "arm", "payload", "at", "by")


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """The file of a study, and its rows by number."""
    path = tmp_path_factory.mktemp("lived") / "life.db"
    study = whole_life(f"sqlite:///{path}?synchronous=OFF")
    assert study.verify().problems == ()
    assert {event.kind for event in study.events()} == {*EventKind} - {EventKind.RETRIED}
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
                other = luck.choice([kind for kind in EventKind if kind != row["kind"]])
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


# --- of an exported journal


@pytest.fixture(scope="module")
def exported(lived, tmp_path_factory):
    """The lines of a journal that was exported."""
    study = lb.open_study("models", lived[0], read_only=True)
    path = study.export(tmp_path_factory.mktemp("exported") / "life.jsonl")
    again = lb.open_study("models", path)
    assert again.verify() == study.verify()
    assert again.answer == study.answer
    assert again.export(path.with_name("again.jsonl")).read_text() == path.read_text()
    for change in (again.ask, lambda: again.note("x"), lambda: lb.delete_study("models", path)):
        with pytest.raises(lb.StudyError, match="read only"):
            change()
    return path.read_text().splitlines()


def edits_of_lines(lines, luck):
    """(how, lines): every field of every kind; then lines removed, swapped, said again, cut off."""
    rows = [json.loads(line) for line in lines]
    for kind in dict.fromkeys(row["kind"] for row in rows):
        at = luck.choice([n for n, row in enumerate(rows) if row["kind"] == kind])

        def put(words, at=at):
            return [*lines[:at], json.dumps(words), *lines[at + 1 :]]

        row = rows[at]
        for key, value in row.items():
            other = (
                luck.choice([k for k in EventKind if k != kind]) if key == "kind" else changed(value, luck)
            )
            if json.dumps(other) != json.dumps(value):
                yield f"{kind}: {key}", put({**row, key: other})
            yield f"{kind}: no {key}", put({k: v for k, v in row.items() if k != key})
        for key, value in row["payload"].items():
            payload = {**row["payload"], key: changed(value, luck)}
            if json.dumps(payload) != json.dumps(row["payload"]):
                yield f"{kind}.{key}", put({**row, "payload": payload})
        yield f"{kind} + key", put({**row, "x": 1})
        yield f"{kind} removed", [*lines[:at], *lines[at + 1 :]]
        yield f"{kind} said again", [*lines, lines[at]]
    for _ in range(30):
        first, second = sorted(luck.sample(range(len(lines)), 2))
        swapped = [*lines]
        swapped[first], swapped[second] = lines[second], lines[first]
        yield f"{first} and {second} swapped", swapped
        yield f"cut from {second} on", lines[:second]
        renumbered = [json.dumps({**row, "seq": row["seq"] - 1}) for row in rows[first + 1 :]]
        yield f"{first} removed, renumbered", [*lines[:first], *renumbered]
        yield (
            f"{first} damaged",
            [*lines[:first], lines[first][: luck.randrange(len(lines[first]))], *lines[first + 1 :]],
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("most", [60, pytest.param(None, marks=pytest.mark.slow)])
def test_every_edit_of_an_exported_journal_is_noticed(exported, tmp_path, most):
    luck, path, missed = random.Random(2), tmp_path / "edited.jsonl", []
    every = list(edits_of_lines(exported, luck))
    assert len(every) >= 400
    for how, lines in every if most is None else luck.sample(every, most):
        path.write_text("".join(f"{line}\n" for line in lines))
        if not noticed(path):
            missed.append(how)
    assert missed == []


@pytest.mark.parametrize(
    "content", ["", "[]", "7", "null", "{}", "[" * 10**5, '{"a":' * 10**5, "SQLite", "\x00"]
)
def test_what_is_no_exported_journal_is_refused_in_a_line(tmp_path, content):
    path = tmp_path / "odd.jsonl"
    path.write_text(content)
    with pytest.raises(lb.StudyError, match=r"odd\.jsonl"):
        lb.open_study("models", path)


def test_a_key_that_was_damaged_is_cut_short():
    said = difference({"a": {f"x{'9' * 5000}\n": 1}}, {"a": {}})
    assert said.startswith("a.'x999")
    assert len(said) < 100
    assert said.isprintable()


@pytest.mark.filterwarnings("ignore")
def test_bytes_that_were_damaged_are_noticed_or_change_nothing(exported, tmp_path):
    """Bits flipped, bytes lost or added, odd values in the place of numbers: a line, or the same events."""
    luck, path = random.Random(7), tmp_path / "damaged.jsonl"
    whole = "".join(f"{line}\n" for line in exported).encode()
    odd = [b"NaN", b"1e999", b"-0.0", b"null", b"\xff\xfe", b"\x00", b'"', b"9" * 5000, b"[" * 3000]
    for turn in range(160):
        at, damaged = luck.randrange(len(whole)), bytearray(whole)
        if turn % 4 == 0:
            damaged[at] ^= 1 << luck.randrange(8)
        elif turn % 4 == 1:
            del damaged[at : at + luck.choice([1, 5, 300])]
        elif turn % 4 == 2:
            damaged[at:at] = luck.choice(odd)
        else:
            number = luck.choice([*re.finditer(rb"[\d.]+", whole)])
            damaged[number.start() : number.end()] = luck.choice(odd)
        path.write_bytes(damaged)
        problems = noticed(path)
        assert all(len(problem) < 600 and "\n" not in problem for problem in problems)
        if not problems:
            assert [json.loads(line) for line in damaged.splitlines()] == list(map(json.loads, exported))


@pytest.mark.parametrize("word", ["asked", "margin", "latency"])  # an event, a setting, an objective
def test_a_name_of_thousands_of_characters_is_not_repeated_in_full(exported, tmp_path, word):
    path, long = tmp_path / "long.jsonl", f'"{word}{"9" * 5000}"'
    for line, number in ((line, number) for number, line in enumerate(exported) if f'"{word}"' in line):
        changed = [*exported[:number], line.replace(f'"{word}"', long, 1), *exported[number + 1 :]]
        path.write_text("".join(f"{each}\n" for each in changed))
        problems = noticed(path)
        assert problems
        assert all(len(problem) < 600 for problem in problems)
        if number > 20:
            break


@pytest.mark.parametrize("deep", [100, 500, 900, 990, 2000])
def test_a_payload_that_is_nested_deeply_is_refused_or_noticed(exported, tmp_path, deep):
    path, words = tmp_path / "deep.jsonl", json.loads(exported[-1])
    line = json.dumps({**words, "payload": {"text": 0}}).replace(
        '"text": 0', '"text": ' + "[" * deep + "]" * deep
    )
    path.write_text("".join(f"{line}\n" for line in [*exported[:-1], line]))
    assert noticed(path)


def test_a_list_is_exported_with_digests_once_its_order_may_be_known(tmp_path):
    objectives = [lb.Objective("x", margin=0.2, noise="bernoulli")]
    study = lb.create_study(
        "s", arms=["a", "b"], objectives=objectives, items=range(9), seed=0, scope="items"
    )
    study.ask()
    path = study.export(tmp_path / "s.jsonl")
    assert '"digest"' not in path.read_text()
    with pytest.raises(lb.StorageError, match="without the seed, and so without digests"):
        lb.open_study("s", path)
    study.end("enough")
    study.export(path)
    assert lb.open_study("s", path).verify(study.answer.digest) == study.verify()


# --- who computes the digests anew is still held to the answer


def forged(study, change):
    """The study in another storage, with its events changed and all digests fitting."""
    events = [event._replace(payload=copy.deepcopy(event.payload)) for event in journal_of(study).events()]
    storage = MemoryStorage()
    row, _ = storage.create(study.name, "", events[0].payload)
    journal = storage._journals[row.id]
    journal.events[:] = change(events)
    for at, event in enumerate(journal.events):
        if "digest" in event.payload:
            journal.events[at] = event
            sealed, journal.events = journal.events, journal.events[:at]
            digest, journal.events = journal.seal().digest, sealed
            journal.events[at] = event._replace(payload={**event.payload, "digest": digest})
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
    "flags": ["asymptotic"],
    "certificate": [],
    "details": {"contradiction": {}},
    "scope": "items",
    "items": 7,
    "results": 7,
    "full": 7,
    "exact": True,
    "decision": "switch",
}


@pytest.mark.filterwarnings("ignore")
def test_an_end_that_was_rewritten_is_noticed_whoever_computed_the_digests():
    study = create()
    go_on(study)
    assert forged(study, list).verify().problems == ()
    assert ENDS.keys() | {"digest"} == vars(study.answer).keys()
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
    assert study.answer.digest is not None
    assert study.verify(study.answer.digest).ok
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


def test_a_place_with_two_results_is_noticed_whoever_computed_the_digests():
    study = create()
    go_on(study, 12)

    def asked_again(events):
        (event,) = [event for event in events if event.kind == EventKind.ASKED and event.trial == 3]
        event.payload["pass"] = 0
        return events

    found = forged(study, asked_again).verify().problems
    assert found == ("a place was handed out twice", "a place has two results")


def test_a_row_that_was_imported_onto_a_result_is_noticed_whoever_computed_the_digests():
    study = lb.create_study(
        "models",
        arms=["a", "b"],
        objectives=[lb.Objective("x", margin=0.2, noise="bernoulli")],
        items=range(30),
        seed=0,
    )
    trial = study.ask()
    study.tell(trial, {"x": 1})
    free = next(item for item in range(30) if item != trial.item)
    study.import_results(pd.DataFrame({"arm": [trial.arm], "item": [free], "x": [0]}), fair=True)

    def moved(events):
        (event,) = [event for event in events if event.kind == EventKind.IMPORTED]
        event.payload["items"][0] = trial.item
        return events

    assert forged(study, list).verify().ok
    (problem,) = forged(study, moved).verify().problems
    assert "the place of arm 0 at position 0 is already filled" in problem


# --- what an answer names


@pytest.mark.parametrize("storage", ["memory", "sqlite", "postgres"], indirect=True)
def test_who_kept_the_digest_of_an_answer_can_tell(storage):
    study = create(storage)
    go_on(study)
    record = study.answer.digest
    assert study.verify(record).ok
    assert study.verify(study.verify().sha256).ok
    study.note("afterwards")
    assert study.verify(record).ok
    again = create(storage, name="again")
    go_on(again)
    assert again.answer.digest != record
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
    projection = replay_of(study).projection
    storage.put_cache(row.id, projection.seq, projection.to_bytes())
    assert study.verify().ok
    projection.values[0] += 0.5
    storage.put_cache(row.id, projection.seq, projection.to_bytes())
    assert study.verify().problems == (
        f"the cache of the first {projection.seq} events is not what they say",
    )
    good = projection.to_bytes()
    for damaged in (b"", good[:3], good[:-1], good[:50] + b"?" + good[51:], b"\x00" * 99):
        storage.put_cache(row.id, projection.seq, damaged)
        assert lb.open_study("models", tmp_path / "s.db").verify().ok


def test_seals_in_memory_are_made_when_they_are_asked_for():
    study = create()
    go_on(study, 5)
    storage, row = storage_of(study), journal_of(study).row
    assert list(storage.seals(row.id)) == []
    assert storage.last_seal(row.id) == Seal(study.seq, study.verify().sha256)
