"""What can happen to a study: the kinds of events, and what each carries. Never rewritten."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from enum import auto
from typing import Any, NamedTuple

from lexbandits._code import Code
from lexbandits.outcomes import Scope
from lexbandits.study.errors import DamagedError


class EventKind(Code):
    """What can happen to a study. Beside each kind: what its payload holds.

    `trial` and `arm` have columns of their own.
    """

    CREATED = auto()  # spec, policy, version, format
    # of a list the pass is the position in its order, the item what is there, again: it was asked before
    ASKED = auto()  # pass, nonce, until; item and again, of a list
    TOLD = auto()  # value by objective, null if missing
    TOLD_PART = auto()  # value by objective of those known so far: the trial stays open for the others
    FAILED = auto()  # reason; interrupted, if it was begun and broken off
    EXPIRED = auto()
    RELEASED = auto()
    TOLD_LATE = auto()  # value by objective: recorded, not counted, but for what fills a hole of a list
    RETRIED = auto()  # places, how many of a list are asked again
    CORRECTED = auto()  # values, reason
    # from_pass: new rules choose members from there; passes begun keep theirs
    ARM_ADDED = auto()  # arm, from_pass; of a list blind, if it was made without looking at results
    ARM_WITHDRAWN = auto()  # reason, returned, from_pass; failures and the last, if given up for failing
    ARM_RESTORED = auto()  # from_pass
    AMENDED = auto()  # objective, margin and tie, from_pass
    REORDERED = auto()  # objectives, from_pass
    PAUSED = auto()  # reason
    RESUMED = auto()
    BUDGET = auto()  # budget
    # digest: of all events before it
    FINISHED = auto()  # the answer and its certificate, digest
    ENDED = auto()  # reason, and the answer at that time, digest
    REOPENED = auto()  # why
    IMPORTED = auto()  # fair, digest of the rows, arms, items, passes (not of a list), values, skipped
    NOTE = auto()  # text; with a trial also the values of a correction that came too late


_JSON = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_in_c = getattr(json.encoder, "c_make_encoder", None)  # JSONEncoder makes one anew for every call
if _in_c is not None:
    _in_c = _in_c(None, _JSON.default, json.encoder.encode_basestring_ascii, None, ":", ",", *3 * (False,))


def _encoded(value: Any) -> str:
    return _JSON.encode(value) if _in_c is None else "".join(_in_c(value, 0))


class Event(NamedTuple):
    """One line of the journal. `at` is the storage's clock, in seconds since 1970; `by` the worker."""

    seq: int
    kind: str  # the value of an `EventKind`
    trial: int | None
    arm: str | None
    payload: dict[str, Any]
    at: float
    by: str | None

    def as_row(self) -> tuple[Any, ...]:
        """As the storage keeps it: the payload as JSON text."""
        return (*self[:4], _encoded(self.payload), *self[5:])


def chained(before: str, events: Iterable[Event]) -> str:
    """Return the digest of a record that goes on with these events; `before` is the digest so far.

    SHA-256 of `before` ("" before the first), of the columns seq, kind, trial, arm, by and at (hexadecimal)
    as one JSON array of arrays, and of the payloads as JSON, each after a line feed.
    """
    return chained_rows(before, [event.as_row() for event in events])


def chained_rows(before: str, rows: Sequence[tuple[Any, ...]]) -> str:
    """Return the same of rows."""
    if not rows:
        return before
    seqs, kinds, trials, arms, payloads, times, workers = zip(*rows, strict=True)
    in_hex = {at: float(at).hex() for at in set(times)}  # events of a transaction share theirs
    columns = _encoded((seqs, kinds, trials, arms, workers, [in_hex[at] for at in times]))
    return hashlib.sha256("\n".join((before + columns, *payloads)).encode()).hexdigest()


def without_order(event: Event) -> Event:
    """An event as it may be shown while items of a list are still to come: the seed tells their order."""
    if event.kind != EventKind.CREATED or event.payload["spec"].get("scope") != Scope.ITEMS:
        return event
    return event._replace(payload={**event.payload, "spec": {**event.payload["spec"], "seed": None}})


def from_rows(rows: Sequence[tuple[Any, ...]]) -> list[Event]:
    """Rows of a storage back to events; the payloads are parsed in one go, which is much faster."""
    try:
        if len(rows) < 3:
            return [Event(row[0], row[1], row[2], row[3], json.loads(row[4]), row[5], row[6]) for row in rows]
        columns = list(zip(*rows, strict=True))
        columns[4] = json.loads(f"[{','.join(columns[4])}]")
        return list(map(Event._make, zip(*columns[:7], strict=True)))
    except (ValueError, TypeError, RecursionError) as error:
        numbers = f"{rows[0][0]} to {rows[-1][0]}" if len(rows) > 1 else rows[0][0]
        raise DamagedError(f"the journal is damaged: in event {numbers} a payload is no JSON") from error
