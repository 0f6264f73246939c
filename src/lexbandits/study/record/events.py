"""What can happen to a study: the kinds of events, and what each carries. Never rewritten."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from lexbandits.study.errors import DamagedError

# kind -> what its payload holds; `trial` and `arm` have columns of their own
KINDS = {
    "created": "spec, policy, version, format",
    # of a list the pass is the position in its order, the item what is there, again: it was asked before
    "asked": "pass, nonce, until; item and again, of a list",
    "told": "value by objective, null if missing",
    "told_part": "value by objective of those known so far: the trial stays open for the others",
    "failed": "reason; interrupted, if it was begun and broken off",
    "expired": "",
    "released": "",
    "told_late": "value by objective: recorded, not counted, but for what fills a hole of a list",
    "retried": "places, how many of a list are asked again",
    "corrected": "values, reason",
    # from_pass: new rules choose members from there; passes begun keep theirs
    "arm_added": "arm, from_pass; of a list blind, if it was made without looking at results",
    "arm_withdrawn": "reason, returned, from_pass; failures and the last, if given up for failing",
    "arm_restored": "from_pass",
    "amended": "objective, margin and tie, from_pass",
    "reordered": "objectives, from_pass",
    "paused": "reason",
    "resumed": "",
    "budget": "budget",
    # record: the digest of all events before it
    "finished": "the answer and its certificate, record",
    "ended": "reason, and the answer at that time, record",
    "reopened": "why",
    "imported": "fair, digest of the rows, arms, items, passes (not of a list) and values by column; skipped",
    "note": "text; with a trial also the values of a correction that came too late",
}


_encoded = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode


class Event(NamedTuple):
    """One line of the journal. `at` is the storage's clock, in seconds since 1970; `by` the worker."""

    seq: int
    kind: str
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
    columns = _encoded((seqs, kinds, trials, arms, workers, [float(at).hex() for at in times]))
    return hashlib.sha256("\n".join((before + columns, *payloads)).encode()).hexdigest()


def without_order(event: Event) -> Event:
    """An event as it may be shown while items of a list are still to come: the seed tells their order."""
    if event.kind != "created" or event.payload["spec"].get("about") != "items":
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
