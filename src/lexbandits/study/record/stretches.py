"""Many events at once: stretches in which trials are asked and told, and nothing else, taken by columns.

They mean what `Ledger` makes of them one by one; this is several times faster. Where anything is out of
the ordinary a stretch is declined, before anything has changed, and its events are taken one by one.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import groupby, islice
from typing import Any

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.study.record.events import Event
from lexbandits.study.record.ledger import Ledger
from lexbandits.study.record.trials import OPEN, TOLD

USUAL = {"asked", "told"}
LEAST_EVENTS = 50  # events that make a stretch worth it
MOST_EVENTS = 5_000
PLAIN = {int, float, type(None)}


class _UnusualError(Exception):
    """To be taken one by one, which finds out what is wrong, if anything is."""


def apply(ledger: Ledger, events: Iterable[Event]) -> None:
    """`ledger.apply`, faster."""
    stream = iter(events)
    while portion := list(islice(stream, MOST_EVENTS)):
        for run in _split(portion):
            if len(run) < LEAST_EVENTS or run[0].kind not in USUAL or not _take(ledger, run):
                ledger.apply(run)


def _split(events: list[Event]) -> Iterable[list[Event]]:
    if len(events) < LEAST_EVENTS or USUAL.issuperset([event.kind for event in events]):
        return [events]
    return (list(run) for _, run in groupby(events, key=lambda event: event.kind in USUAL))


def _take(ledger: Ledger, events: Sequence[Event]) -> bool:
    """Record a stretch; False if nothing was done."""
    try:
        if [event.seq for event in events] != list(range(ledger.seq + 1, ledger.seq + 1 + len(events))):
            return False
        asked = _Asked(ledger, [event for event in events if event.kind == "asked"])
        told = _Told(ledger, [event for event in events if event.kind == "told"], asked)
    except (_UnusualError, KeyError, TypeError, ValueError, OverflowError, AttributeError):
        return False
    asked.record(ledger)
    told.record(ledger)
    ledger.seq, ledger.at = events[-1].seq, events[-1].at
    return True


class _Asked:
    """New trials."""

    def __init__(self, ledger: Ledger, events: Sequence[Event]) -> None:
        self.first = len(ledger)
        self.numbers = range(self.first, self.first + len(events))
        if [event.trial for event in events] != list(self.numbers):
            raise _UnusualError
        self.seqs = np.array([event.seq for event in events], np.int64)
        self.by = [event.by for event in events]
        payloads = [event.payload for event in events]
        if ledger.retries or (ledger.spec.is_list and ledger.spec.seed is None):
            raise _UnusualError
        if ledger.spec.is_list and any("again" in payload for payload in payloads):
            raise _UnusualError
        self.columns = {
            "arm": array("i", [ledger.arm_index(event.arm) for event in events]),
            "pass_of": array("q", [payload["pass"] for payload in payloads]),
            "state": array("b", [OPEN]) * len(events),
            "nonce": array("I", [payload["nonce"] for payload in payloads]),
            "asked": array("d", [event.at for event in events]),
            "until": array("d", [payload["until"] for payload in payloads]),
            "resolved": array("d", [np.nan]) * len(events),
            "values": array("d", [np.nan]) * (len(events) * len(ledger.spec.names)),
        }

    def record(self, ledger: Ledger) -> None:
        for name, column in self.columns.items():
            getattr(ledger, name).extend(column)
        index = {by: ledger.worker_index(by) for by in dict.fromkeys(self.by)}
        ledger.worker.extend([index[by] for by in self.by])
        ledger.open.update(zip(self.numbers, self.columns["until"], strict=True))
        ledger.counts[OPEN] += len(self.numbers)
        ledger.highest = max(ledger.highest, max(self.columns["pass_of"], default=-1))


class _Told:
    """First results of open trials, none of them without any value."""

    def __init__(self, ledger: Ledger, events: Sequence[Event], asked: _Asked) -> None:
        self.numbers = np.array([event.trial for event in events], np.int64)
        self.at = np.array([event.at for event in events], np.float64)
        self.values = self._values(ledger, [event.payload for event in events])
        self._check_open(ledger, np.array([event.seq for event in events], np.int64), asked)
        if ledger.exact_columns and len(ledger.exact) < len(ledger.arms) * len(ledger.exact_columns):
            raise _UnusualError

    def _values(self, ledger: Ledger, payloads: list[dict[str, Any]]) -> Vector:
        columns = [[payload.get(name) for payload in payloads] for name in ledger.spec.names]
        if not all(PLAIN.issuperset(map(type, column)) for column in columns):
            raise _UnusualError
        values: Vector = np.array(columns, np.float64).T
        if np.isnan(values).all(axis=1).any():
            raise _UnusualError
        return values

    def _check_open(self, ledger: Ledger, seqs: np.ndarray[Any, Any], asked: _Asked) -> None:
        """Each trial was asked before, and is told once."""
        old = self.numbers < asked.first
        here = self.numbers[~old] - asked.first
        once = np.unique(self.numbers).size == self.numbers.size
        known = ledger.open.keys() >= set(self.numbers[old].tolist()) and bool((here < asked.seqs.size).all())
        if not (once and known and bool((asked.seqs[here] < seqs[~old]).all())):
            raise _UnusualError

    def record(self, ledger: Ledger) -> None:
        if self.numbers.size == 0:
            return
        _put(ledger.state, self.numbers, TOLD)
        _put(ledger.resolved, self.numbers, self.at)
        m = self.values.shape[1]
        for i in range(m):
            _put(ledger.values, self.numbers * m + i, self.values[:, i])
        numbers = self.numbers.tolist()
        ledger.fills.extend(numbers)
        for number in numbers:
            del ledger.open[number]
            ledger.parts.pop(number, None)
        ledger.counts[OPEN] -= len(numbers)
        ledger.counts[TOLD] += len(numbers)
        for arm in {ledger.arm[number] for number in numbers}:
            ledger.break_streak(arm)
        for number in numbers:
            ledger.measured[ledger.arm[number]] += 1


def _put(column: "array[Any]", where: np.ndarray[Any, Any], values: Any) -> None:
    np.frombuffer(column, column.typecode)[where] = values
