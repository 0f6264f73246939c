"""Events -> what is on record: trials, arms, rules. The only place that knows what an event means.

Pure: no clock, no storage, no policy. Trials are columns, so that a million of them fit and load at once.
"""

import json
import math
import struct
from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.study.errors import StorageError, StorageVersionError
from lexbandits.study.objective import Objective
from lexbandits.study.record.events import Event
from lexbandits.study.spec import Spec, checked_arm, in_drawn_order, in_todays_words

STATES = ("open", "told", "failed", "expired", "late", "released", "imported")
OPEN, TOLD, FAILED, EXPIRED, LATE, RELEASED, IMPORTED = range(len(STATES))
COLUMNS = {  # name -> typecode of `array`
    "arm": "i",
    "pass_of": "q",
    "state": "b",
    "nonce": "I",
    "worker": "i",  # index into `workers`, -1 for none
    "asked": "d",
    "until": "d",
    "resolved": "d",
    "values": "d",  # m per trial, as told
    "fills": "q",  # the trials that filled a place or declared it missing, in the order of the journal
}
CACHE_FORMAT = 7


class Stop(NamedTuple):
    """Where a replay of `fills` must halt: the rules change, or an end was recorded."""

    position: int
    kind: str  # "rules" or "finished"
    data: dict[str, Any]  # arguments of `policy.amended`, or the recorded answer


class Ledger:
    """The record of a study after its first `seq` events."""

    small: ClassVar[tuple[str, ...]] = (  # what a cache keeps beside the columns
        "seq", "at", "policy", "settings", "version", "arms", "order", "withdrawn", "given_up", "failing",
        "last_failures", "interrupted", "measured", "changes", "workers", "paused", "budget", "end", "unfair",
        "imports", "imported_items", "skipped", "highest", "from_pass", "notes",
    )  # fmt: skip

    def __init__(self) -> None:
        self.seq, self.at = 0, 0.0
        self.policy, self.version = "", ""
        self.settings: dict[str, Any] = {}
        self.asked_spec: Spec  # as created, in the words of then
        self.spec: Spec  # under the rules in force
        self.arms: list[dict[str, Any]] = []
        self.arm_names: list[str] = []
        self.order: list[int] = []  # columns by priority
        self.withdrawn: dict[str, str] = {}  # arm -> why
        self.given_up: dict[str, dict[str, Any]] = {}  # withdrawn for failing: arm -> failures, the last one
        self.failing: list[int] = []  # failures in a row, per arm
        self.last_failures: list[str] = []  # what the last one said, per arm
        self.interrupted: list[int] = []  # trials begun and broken off, per arm
        self.changes: list[dict[str, Any]] = []  # of the rules, by people who had seen a value
        self.measured: list[int] = []  # results, per arm
        self.workers: list[str] = []
        self.paused: str | None = None
        self.budget: int | None = None
        self.end: dict[str, Any] | None = (
            None  # the payload of "finished" or "ended", until something reopens
        )
        self.unfair = False  # data were imported whose collection looked at their values
        self.imports: list[str] = []  # digests of what was imported
        self.imported_items: list[Any] = []  # by pass
        self.skipped = 0  # numbers of passes that are items of imported ones
        self.drawn: list[Any] | None = None  # the items of the passes after the imported ones
        self.highest = -1  # the highest pass handed out or imported
        self.from_pass = 0  # where the rules in force begin
        self.notes = 0
        self.stops: list[Stop] = []
        self.open: dict[int, float] = {}  # number -> until
        self.exact_columns: list[int] = []
        self.exact: dict[tuple[int, int], float] = {}  # (arm, column) -> its one value
        self.first_told: dict[int, list[float]] = {}  # of corrected trials, as their workers may tell again
        self.parts: dict[int, list[float]] = {}  # of trials not told to their end: what is known, else nan
        self.revision = 0  # grows when a value changes after it was filled in
        self.counts = [0] * len(STATES)
        self.arm = array("i")
        self.pass_of = array("q")
        self.state = array("b")
        self.nonce = array("I")
        self.worker = array("i")
        self.asked, self.until, self.resolved = array("d"), array("d"), array("d")
        self.values, self.fills = array("d"), array("q")
        self._worker_index: dict[str | None, int] = {None: -1}
        self._arm_index: dict[str | None, int] = {}
        self._apply: dict[str, Callable[[Event], None]] = {
            name.removeprefix("_on_"): getattr(self, name) for name in dir(self) if name.startswith("_on_")
        }

    def apply(self, events: Iterable[Event]) -> None:
        """Go on from `seq`. An event that cannot be is an error: nothing is skipped."""
        handlers, seq = self._apply, self.seq
        event = None
        for event in events:
            seq += 1
            if event.seq != seq:
                raise StorageError(f"the journal has a gap: event {seq} is missing, {event.seq} comes next")
            handler = handlers.get(event.kind)
            if handler is None:
                raise StorageVersionError(
                    f"event {seq} is of the unknown kind {event.kind!r}: written by a newer lexbandits"
                )
            try:
                handler(event)
            except (KeyError, IndexError, TypeError, AttributeError) as error:
                raise _damaged(event, f"{type(error).__name__} {error}") from error
            self.seq = seq
        if event is not None:
            self.at = event.at

    # --- what it says

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def handed_out(self) -> int:
        """Trials handed out less those released: what the budget counts."""
        return len(self) - self.counts[RELEASED] - self.counts[IMPORTED]

    @property
    def offered(self) -> list[int]:
        """The arms in question."""
        return [i for i, name in enumerate(self.arm_names) if name not in self.withdrawn]

    def gives_up(self, arm: int) -> bool:
        """Whether an arm has failed so often in a row that it cannot be measured."""
        return self.failing[arm] >= self.spec.max_failures

    def arm_index(self, name: str | None) -> int:
        """The row of an arm."""
        return self._arm_index[name]

    def worker_index(self, name: str | None) -> int:
        """The number of a worker, a new one if need be; −1 for none."""
        index = self._worker_index.get(name)
        if index is None:
            index = self._worker_index[name] = len(self.workers)
            self.workers.append(str(name))
        return index

    def item(self, pass_: int) -> Any:
        """What the arms of a pass are measured on."""
        imported = len(self.imported_items)
        if pass_ < imported:
            return self.imported_items[pass_]
        return pass_ + self.skipped if self.drawn is None else self.drawn[pass_ - imported]

    @property
    def passes(self) -> float:
        """How many passes there are items for."""
        return math.inf if self.drawn is None else len(self.imported_items) + len(self.drawn)

    def told_values(self, number: int) -> list[float]:
        """(m,) values as told; nan where missing."""
        m = len(self.spec.names)
        return self.values[number * m : (number + 1) * m].tolist()

    def column(self, name: str) -> np.ndarray[Any, Any]:
        """A copy of a column; `values` as (trials, m)."""
        values = np.array(getattr(self, name))
        return values.reshape(-1, len(self.spec.names)) if name == "values" else values

    def told_from(self, pass_: int) -> list[int]:
        """The trials of this pass and of later ones that were told."""
        if not self.arm:
            return []
        states, passes = np.frombuffer(self.state, "b"), np.frombuffer(self.pass_of, "q")
        return np.flatnonzero((passes >= pass_) & (states == TOLD)).tolist()

    def filled(self, first: int, end: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], Vector]:
        """Arms, passes and values of fills first .. end − 1; failures carry their agreed value."""
        numbers = np.array(self.fills[first:end], dtype=np.int64)
        state, values = self._at(numbers, "state"), self._at(numbers, "values")
        for code in (FAILED, EXPIRED, LATE):
            values[state == code] = self._agreed(code)
        for row, number in enumerate(numbers.tolist()) if self.parts else ():
            values[row] = self._over(number, values[row])
        return self._at(numbers, "arm").astype(np.int64), self._at(numbers, "pass_of"), values

    def _at(self, numbers: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        """`column(name)[numbers]` without a copy of the whole."""
        view: np.ndarray[Any, Any] = np.frombuffer(getattr(self, name), COLUMNS[name])
        shaped = view.reshape(-1, len(self.spec.names)) if name == "values" else view
        found: np.ndarray[Any, Any] = shaped[numbers]
        return found

    def reward(self, number: int) -> Vector:
        """(m,) what the place of a trial counts as, of which more is better: `filled`, for one."""
        state = self.state[number]
        if state in (FAILED, EXPIRED, LATE):
            return self.spec.signed_row(self._over(number, self._agreed(state)))
        return self.spec.signed_row(self.told_values(number))

    def _over(self, number: int, values: Any) -> Any:
        """What was told of a trial before it was lost stays: values are agreed for the rest only."""
        part = self.parts.get(number)
        return values if part is None else [b if a != a else a for a, b in zip(part, values, strict=True)]

    def _agreed(self, state: int) -> list[float]:
        objectives = self.spec.objectives
        return [_or_nan(o.if_failed if state == FAILED else o.if_expired) for o in objectives]

    def count_trials(self, arm: int, *states: int) -> int:
        """How many trials of an arm are in one of these states."""
        if not self.arm:
            return 0
        here = np.frombuffer(self.arm, COLUMNS["arm"]) == arm
        return int((np.isin(np.frombuffer(self.state, COLUMNS["state"]), states) & here).sum())

    def counted_values(self, arm: int, column: int) -> Vector:
        """The values of an arm that were told in time or imported, in the order of their passes."""
        kept = np.isin(self.column("state"), (TOLD, IMPORTED)) & (self.column("arm") == arm)
        order = np.argsort(self.column("pass_of")[kept], kind="stable")
        values: Vector = self.column("values")[kept, column][order]
        return values[~np.isnan(values)]

    def value_if_expired(self, number: int) -> Vector:
        """(m,) what the place of a trial counts as if it runs out, of which more is better."""
        return self.spec.signed_row(self._over(number, self._agreed(EXPIRED)))

    def exact_of(self, arm: int) -> dict[int, float]:
        """Exact values of an arm, by column."""
        return {
            column: self.exact[arm, column] for column in self.exact_columns if (arm, column) in self.exact
        }

    def exact_elsewhere(self, number: int) -> dict[int, float]:
        """Exact values of this trial's arm that other trials have told, by column."""
        others = (self.column("arm") == self.arm[number]) & np.isin(self.column("state"), (TOLD, IMPORTED))
        others[number] = False
        values = self.column("values")[others]
        known = {column: values[np.isfinite(values[:, column]), column] for column in self.exact_columns}
        parts = [
            row
            for other, row in self.parts.items()
            if self.arm[other] == self.arm[number] and other != number
        ]
        in_parts = {
            column: row[column]
            for row in parts
            for column in self.exact_columns
            if row[column] == row[column]
        }
        return in_parts | {column: float(told[0]) for column, told in known.items() if told.size}

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ledger) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    # --- events about trials

    def _on_asked(self, event: Event) -> None:
        number, payload = event.trial, event.payload
        if number != len(self.arm):
            raise _damaged(event, f"trial {number} comes after {len(self.arm)} trials")
        worker = self.worker_index(event.by)
        pass_, until = payload["pass"], payload["until"]
        arm = self._arm_index[event.arm]
        self._add(arm, pass_, OPEN, payload["nonce"], worker, event.at, until, math.nan)
        self.values.extend([math.nan] * len(self.spec.names))
        self.open[number] = until

    def _on_told(self, event: Event) -> None:
        given = event.payload
        values = [math.nan if (value := given.get(name)) is None else value for name in self.spec.names]
        missing = all(value != value for value in values)
        number = self._resolve(event, FAILED if missing else TOLD)
        self.parts.pop(number, None)  # they are among the values
        self._set_values(number, values)
        self.fills.append(number)
        if missing:
            self._count_failure(number, "nothing was measured")
        else:
            self.break_streak(self.arm[number])
            self.measured[self.arm[number]] += 1

    def _on_told_part(self, event: Event) -> None:
        number = event.trial
        if number is None or number not in self.open:
            raise _damaged(event, f"trial {number} is not open")
        part = self.parts.setdefault(number, [math.nan] * len(self.spec.names))
        for name, value in event.payload.items():
            part[self.spec.column(name)] = value
        self._set_values(number, part)

    def _on_failed(self, event: Event) -> None:
        number = self._resolve(event, FAILED)
        self.fills.append(number)
        if event.payload.get("interrupted"):
            self.interrupted[self.arm[number]] += 1
        elif number in self.parts:  # something was measured
            self.break_streak(self.arm[number])
        else:
            self._count_failure(number, event.payload["reason"])

    def _count_failure(self, number: int, said: str) -> None:
        """A failure that has a value is no reason to give an arm up: that would be a choice by value.

        Nor is one that came after the end, or was asked under other rules.
        """
        arm = self.arm[number]
        self.last_failures[arm] = said
        noisy = [objective for objective in self.spec.objectives if objective.noise != "exact"]
        if noisy and all(objective.if_failed is not None for objective in noisy):
            return
        if self.end is None and self.pass_of[number] >= self.from_pass and not self.gives_up(arm):
            self.failing[arm] += 1

    def break_streak(self, arm: int) -> None:
        """A result ends a row of failures, unless it is long enough to act on, which may be done later."""
        if not self.gives_up(arm):
            self.failing[arm] = 0

    def _on_expired(self, event: Event) -> None:
        self.fills.append(self._resolve(event, EXPIRED))

    def _on_released(self, event: Event) -> None:
        self._resolve(event, RELEASED)

    def _on_told_late(self, event: Event) -> None:
        number = event.trial
        if number is None or self.state[number] != EXPIRED:
            raise _damaged(event, f"trial {number} had not expired")
        self._move(number, LATE, event.at)
        self._set_values(number, [_or_nan(event.payload.get(name)) for name in self.spec.names], exact=False)

    def _on_corrected(self, event: Event) -> None:
        number = event.trial
        if number is None or self.state[number] != TOLD:
            raise _damaged(event, f"trial {number} has no counted result")
        values = [_or_nan(event.payload["values"].get(name)) for name in self.spec.names]
        self.first_told.setdefault(number, self.told_values(number))
        if self.exact_columns:
            self._forget_exact(number)
        self._set_values(number, values)
        self.revision += 1

    def _on_imported(self, event: Event) -> None:
        payload = event.payload
        self.unfair |= not payload["fair"]
        if "digest" in payload:
            self.imports.append(payload["digest"])
        values = zip(*(payload["values"][name] for name in self.spec.names), strict=True)
        for arm, pass_, row in zip(payload["arms"], payload["passes"], values, strict=True):
            number = len(self.arm)
            self._add(self._arm_index[arm], pass_, IMPORTED, 0, -1, event.at, math.nan, event.at)
            self.values.extend([math.nan] * len(row))
            self._set_values(number, [_or_nan(value) for value in row])
            self.fills.append(number)
            self.measured[self.arm[number]] += any(value is not None for value in row)
        if payload["items"] is not None:
            self.imported_items += payload["items"]
            self.skipped = payload.get("skipped", 0)
            self._order_items()

    def _add(
        self,
        arm: int,
        pass_: int,
        state: int,
        nonce: int,
        worker: int,
        asked: float,
        until: float,
        resolved: float,
    ) -> None:
        self.arm.append(arm)
        self.pass_of.append(pass_)
        self.state.append(state)
        self.nonce.append(nonce)
        self.worker.append(worker)
        self.asked.append(asked)
        self.until.append(until)
        self.resolved.append(resolved)
        self.counts[state] += 1
        if pass_ > self.highest:
            self.highest = pass_

    def _resolve(self, event: Event, state: int) -> int:
        number = event.trial
        if number is None or self.open.pop(number, None) is None:
            raise _damaged(event, f"trial {number} is not open")
        self._move(number, state, event.at)
        return number

    def _move(self, number: int, state: int, at: float) -> None:
        self.counts[self.state[number]] -= 1
        self.counts[state] += 1
        self.state[number] = state
        self.resolved[number] = at

    def _set_values(self, number: int, values: list[float], exact: bool = True) -> None:
        m = len(values)
        self.values[number * m : (number + 1) * m] = array("d", values)
        if exact and self.exact_columns:
            for column in self.exact_columns:
                if values[column] == values[column]:
                    self.exact.setdefault((self.arm[number], column), values[column])

    def _forget_exact(self, number: int) -> None:
        others = self.exact_elsewhere(number)
        for column in self.exact_columns:
            key = self.arm[number], column
            self.exact.pop(key, None)
            if column in others:
                self.exact[key] = others[column]

    # --- events about the rules

    def _on_created(self, event: Event) -> None:
        payload = in_todays_words(event.payload)
        self.policy, self.settings = payload["policy"], payload["settings"]
        self.version = payload["version"]
        self.spec = Spec.from_json(payload["spec"])
        self.asked_spec = Spec.from_json(event.payload["spec"])
        self.budget = self.spec.budget
        self.order = list(range(len(self.spec.names)))
        for arm in self.spec.arms:
            self._new_arm(dict(arm))
        self._prepare()

    def _prepare(self) -> None:
        self.exact_columns = [i for i, o in enumerate(self.spec.objectives) if o.noise == "exact"]
        self._order_items()

    def _order_items(self) -> None:
        if self.spec.items is not None:
            rest = set(self.spec.items) - set(self.imported_items)
            self.drawn = in_drawn_order(rest, self.spec.seed)

    def _new_arm(self, arm: dict[str, Any]) -> None:
        self._arm_index[arm["name"]] = len(self.arms)
        self.arms.append(arm)
        self.arm_names.append(arm["name"])
        self.failing.append(0)
        self.last_failures.append("")
        self.interrupted.append(0)
        self.measured.append(0)

    def _rules(self, event: Event, **changed: Any) -> None:
        """The rules change from `from_pass` on, and whatever had ended goes on."""
        data = {**changed, "from_pass": event.payload["from_pass"]}
        if event.payload.get("begun") != "kept":
            data["void"] = True  # 0.2 threw away what was begun
        self.stops.append(Stop(len(self.fills), "rules", data))
        self.from_pass = data["from_pass"]
        self.end = None

    def _note_change(self, event: Event, **words: Any) -> None:
        """Who has seen a value and changes the rules is named with the answer."""
        if any(self.measured) or self.parts:
            self.changes.append({"kind": event.kind, "at": event.at, **words})

    def _on_arm_added(self, event: Event) -> None:
        self._note_change(event, arm=event.arm)
        self._new_arm(checked_arm(event.payload["arm"]))
        self._rules(event, offered=self.offered)

    def _on_arm_withdrawn(self, event: Event) -> None:
        payload, name = event.payload, self.arm_names[self._arm_index[event.arm]]
        self.withdrawn[name] = payload["reason"]
        if "failures" in payload:
            self.given_up[name] = {"failures": payload["failures"], "last": payload["last"]}
        else:
            self._note_change(event, arm=name)
        self._rules(event, offered=self.offered)

    def _on_arm_restored(self, event: Event) -> None:
        index = self._arm_index[event.arm]
        self._note_change(event, arm=event.arm)
        del self.withdrawn[self.arm_names[index]]
        self.given_up.pop(self.arm_names[index], None)
        self.failing[index] = 0
        self._rules(event, offered=self.offered)

    def _on_amended(self, event: Event) -> None:
        words = {key: event.payload[key] for key in ("tolerance", "resolution") if key in event.payload}
        self._note_change(event, objective=event.payload["objective"], **words)
        self.spec = self.spec.changed(event.payload["objective"], **words)
        self._rules(event, tolerance=self.spec.tolerances, resolution=self.spec.resolutions)

    def _on_reordered(self, event: Event) -> None:
        self._note_change(event, objectives=event.payload["objectives"])
        self.order = [self.spec.column(name) for name in event.payload["objectives"]]
        self._rules(event, order=list(self.order))

    # --- events about the study's life

    def _on_paused(self, event: Event) -> None:
        self.paused = event.payload["reason"] or "paused"

    def _on_resumed(self, event: Event) -> None:
        self.paused = None
        self.failing = [0] * len(self.failing)

    def _on_budget(self, event: Event) -> None:
        self.budget = event.payload["budget"]

    def _on_finished(self, event: Event) -> None:
        self.end = event.payload
        self.stops.append(Stop(len(self.fills), "finished", event.payload))

    def _on_ended(self, event: Event) -> None:
        self.end = event.payload

    def _on_reopened(self, event: Event) -> None:
        self.end = None

    def _on_note(self, event: Event) -> None:
        self.notes += 1

    # --- as one piece of bytes, for the cache and to compare

    def to_bytes(self) -> bytes:
        """All of it. Only the columns are large."""
        small = {key: getattr(self, key) for key in self.small}
        small |= {
            "format": CACHE_FORMAT,
            "created": self.asked_spec.as_json(),
            "objectives": [objective.as_json() for objective in self.spec.objectives],
            "stops": self.stops,
            "exact": [[*key, value] for key, value in self.exact.items()],
            "first_told": list(self.first_told.items()),
            "parts": list(self.parts.items()),
            "lengths": [len(getattr(self, name)) for name in COLUMNS],
        }
        header = json.dumps(small).encode()
        columns = (getattr(self, name).tobytes() for name in COLUMNS)
        return b"".join((struct.pack("<q", len(header)), header, *columns))

    @classmethod
    def from_bytes(cls, content: bytes) -> Self | None:
        """What `to_bytes` gave, or None if it is of another format."""
        (size,) = struct.unpack_from("<q", content)
        small = json.loads(content[8 : 8 + size])
        if small["format"] != CACHE_FORMAT:
            return None
        ledger = cls()
        for arm in small["arms"]:
            ledger._new_arm(arm)
        for key in cls.small:
            setattr(ledger, key, small[key])
        ledger.asked_spec = spec = Spec.from_json(small["created"])
        ledger.spec = replace(spec, objectives=tuple(map(Objective.from_json, small["objectives"])))
        ledger.stops = [Stop(*stop) for stop in small["stops"]]
        ledger.exact = {(arm, column): value for arm, column, value in small["exact"]}
        ledger.first_told, ledger.parts = dict(small["first_told"]), dict(small["parts"])
        ledger._worker_index |= {name: index for index, name in enumerate(ledger.workers)}
        start, view = 8 + size, memoryview(content)
        for (name, typecode), length in zip(COLUMNS.items(), small["lengths"], strict=True):
            column = array(typecode)
            end = start + length * column.itemsize
            column.frombytes(view[start:end])
            setattr(ledger, name, column)
            start = end
        states = ledger.column("state")
        ledger.counts = np.bincount(states, minlength=len(STATES)).tolist()
        ledger.open = {n: ledger.until[n] for n in np.flatnonzero(states == OPEN).tolist()}
        ledger._prepare()
        return ledger


def _or_nan(value: float | None) -> float:
    return math.nan if value is None else value


def _damaged(event: Event, what: str) -> StorageError:
    return StorageError(f"the journal is damaged at event {event.seq} ({event.kind}): {what}")
