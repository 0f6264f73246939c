"""Events -> what is on record: trials, arms, rules. The only place that knows what an event means.

Pure: no clock, no storage, no policy.
"""

import copy
import json
import math
import reprlib
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, Self

import numpy as np

from lexbandits.study.core.events import Event
from lexbandits.study.core.trial_columns import (
    COLUMNS,
    EXPIRED,
    FAILED,
    IMPORTED,
    LATE,
    OPEN,
    RELEASED,
    STATES,
    TOLD,
    Place,
    TrialTable,
    or_nan,
)
from lexbandits.study.errors import ODD, DamagedError, StorageVersionError, StudyError
from lexbandits.study.objective import Objective
from lexbandits.study.spec import Spec, check_format, checked_arm, in_drawn_order

CACHE_FORMAT = 12
LONGEST_ERROR = 400  # characters, of what a damaged event raises
MADE_ANEW = {"spec", "open", "counts", "exact_columns", "drawn", *COLUMNS}  # from what a cache keeps
TABLES = ("exact", "first_told", "parts", "holes", "again")  # whose keys JSON would make texts
SETS = ("retries", "filled_late")


class Stop(NamedTuple):
    """Where a replay of `fills` must halt: the rules change, or an end was recorded."""

    position: int
    is_end: bool
    data: dict[str, Any]  # arguments of `policy.amended`, or the recorded answer


class Projection(TrialTable):
    """The record of a study after its first `seq` events."""

    def __init__(self) -> None:
        super().__init__()
        self.seq, self.at, self.created = 0, 0.0, 0.0
        self.policy, self.version = "", ""
        self.settings: dict[str, Any] = {}
        self.asked_spec: Spec  # as created, in the words of then
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
        self.end: dict[str, Any] | None = None  # payload of the event that ended it, until something reopens
        self.unfair = False  # data were imported whose collection looked at their values
        self.imports: list[str] = []  # digests of what was imported
        self.imported_items: list[Any] = []  # by pass
        self.lost_before: dict[str, list[int]] = {}  # arm -> imported rows without any value, and all of them
        self.skipped = 0  # numbers of passes that are items of imported ones
        self.drawn: list[Any] | None = None  # of a population: the items after the imported ones
        self.holes: dict[Place, None] = {}  # of a list: places without any value that counts
        self.again: dict[Place, None] = {}  # those of them that are to be asked again
        self.retries: set[int] = set()  # trials of places that were asked before
        self._order: list[int] | None = None  # of a list: position -> which place
        self._known: dict[int, int] = {}  # the same, of those handed out, where the seed is not shown
        self.from_pass = 0  # where the rules in force begin
        self.stops: list[Stop] = []
        self.first_told: dict[int, list[float]] = {}  # of corrected trials, as their workers may tell again
        self.revision = 0  # grows when a value changes after it was filled in
        self._worker_index: dict[str | None, int] = {None: -1}
        self._arm_index: dict[str | None, int] = {}

    def __copy__(self) -> Self:
        twin = type(self).__new__(type(self))
        mutable = (array, list, dict, set)
        vars(twin).update((k, copy.copy(v) if isinstance(v, mutable) else v) for k, v in vars(self).items())
        twin.parts = {number: [*values] for number, values in self.parts.items()}
        twin.lost_before = {arm: [*counts] for arm, counts in self.lost_before.items()}
        return twin

    def apply(self, events: Iterable[Event]) -> None:
        """Go on from `seq`. An event that cannot be is an error: nothing is skipped."""
        seq, event = self.seq, None
        for event in events:
            seq += 1
            if event.seq != seq:
                raise DamagedError(f"the journal has a gap: event {seq} is missing, {event.seq} comes next")
            handler = MEANINGS.get(event.kind)
            if handler is None:
                raise StorageVersionError(
                    f"event {seq} is of the unknown kind {reprlib.repr(event.kind)}: "
                    "written by a newer lexbandits"
                )
            try:
                handler(self, event)
            except StudyError as error:
                if len(str(error)) < LONGEST_ERROR:
                    raise
                raise _damaged(event, f"{str(error)[:200]} …") from error  # it repeats what was damaged
            except ODD as error:
                raise _damaged(event, f"{type(error).__name__} {str(error)[:200]}") from error
            self.seq = seq
        if event is not None:
            self.at = event.at

    def record(self, event: Event) -> None:
        """Go on with an event of which nothing is wrong, as it was made from this record."""
        MEANINGS[event.kind](self, event)
        self.seq, self.at = event.seq, event.at

    # --- what it says

    @property
    def offered(self) -> list[int]:
        """The arms in question."""
        return [i for i, name in enumerate(self.arm_names) if name not in self.withdrawn]

    def count_by_arm(self, *states: int) -> list[int]:
        """How many trials of each arm are in one of these states."""
        arms = self.column("arm")[np.isin(self.column("state"), states)]
        counts: list[int] = np.bincount(arms, minlength=len(self.arms)).tolist()
        return counts

    def gives_up(self, arm: int) -> bool:
        """Whether an arm has failed so often in a row that it cannot be measured."""
        return self.failing[arm] >= self.spec.max_failures

    def arm_index(self, name: str | None) -> int:
        """The row of an arm."""
        return self._arm_index[name]

    def id_of(self, number: int) -> str:
        """What a trial is told by: its number, and a nonce that a restored backup would draw anew."""
        return f"{number}-{self.nonce[number]:08x}"

    def arm_of(self, number: int) -> str:
        """Whose trial it is."""
        return self.arm_names[self.arm[number]]

    def worker_of(self, number: int) -> str | None:
        """Who was handed a trial, if they gave a name."""
        return self.workers[worker] if (worker := self.worker[number]) >= 0 else None

    def worker_index(self, name: str | None) -> int:
        """The number of a worker, a new one if need be; −1 for none."""
        index = self._worker_index.get(name)
        if index is None:
            index = self._worker_index[name] = len(self.workers)
            self.workers.append(str(name))
        return index

    def item(self, pass_: int) -> Any:
        """What the arms of a pass are measured on: an item with all its keys, or the number of the pass."""
        spec = self.spec
        if spec.items is not None and spec.is_list:
            item = spec.items[self.place_at(pass_) // spec.repeats]
        else:
            item = self._item_of_pass(pass_)
            item = item if self.drawn is None else self._with_keys.get(item, item)
        return dict(item) if isinstance(item, dict) else item

    def item_id(self, pass_: int) -> Any:
        """What that is called in tables; of repeats "q17#2"."""
        spec = self.spec
        if not spec.is_list:
            return self._item_of_pass(pass_)
        item, repeat = divmod(self.place_at(pass_), spec.repeats)
        return spec.ids[item] if spec.repeats == 1 else f"{spec.ids[item]}#{repeat + 1}"

    def item_names(self) -> list[Any]:
        """What all items are called in tables, in the order given."""
        ids, repeats = self.spec.ids, self.spec.repeats
        return list(ids) if repeats == 1 else [f"{i}#{r}" for i in ids for r in range(1, repeats + 1)]

    def repeat(self, pass_: int) -> int | None:
        """Which measurement of its item it is, from 1 on; None if each is measured once."""
        return self.place_at(pass_) % self.spec.repeats + 1 if self.spec.repeats > 1 else None

    def _item_of_pass(self, pass_: int) -> Any:
        imported = len(self.imported_items)
        if pass_ < imported:
            return self.imported_items[pass_]
        return pass_ + self.skipped if self.drawn is None else self.drawn[pass_ - imported]

    def place_at(self, position: int) -> int:
        """Which place of a list, by item and repeat, is measured at a position of its order."""
        if self.spec.seed is None:
            return self._known[position]
        if self._order is None:
            self._order = in_drawn_order(range(self.settings["n_items"]), self.spec.seed)
        return self._order[position]

    def positions(self) -> dict[Any, int]:
        """Where the order of a list has each place, by its name in tables."""
        if self.spec.seed is None:
            raise StudyError(
                "the order of a list is not shown before the end, and results were imported into it: look "
                "at the study where its service runs, or on its page"
            )
        return {self.item_id(position): position for position in range(self.settings["n_items"])}

    @property
    def passes(self) -> float:
        """How many passes there are items for."""
        if self.spec.is_list:
            return float(self.settings["n_items"])
        return math.inf if self.drawn is None else len(self.imported_items) + len(self.drawn)

    @property
    def next_pass(self) -> int:
        """The number of the first pass that nobody was asked for; where one arm is asked r times, r apart."""
        times: int = self.settings.get("leader_repeats", 1)
        return -(-(self.highest + 1) // times) * times

    @property
    def n_items(self) -> int | None:
        """How many items there are to be measured on; None if nobody has said."""
        return None if self.spec.items is None else int(self.passes)

    @property
    def shows_order(self) -> bool:
        """Whether the seed may be shown: at the end, if no arm can be added that is tuned on coming items."""
        return self.end is not None and len(self.arms) >= self.spec.max_arms

    def places_taken(self) -> set[Place]:
        """The places of a list that have a value or are being measured."""
        kept = np.flatnonzero(self.column("state") != RELEASED)
        places = zip(self.column("arm")[kept].tolist(), self.column("pass_of")[kept].tolist(), strict=True)
        in_flight = {self.place(number) for number in self.open}
        return (set(places) - self.holes.keys()) | in_flight

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Projection) and self.to_bytes() == other.to_bytes()

    __hash__ = None  # type: ignore[assignment]

    # --- events about trials

    def _on_asked(self, event: Event) -> None:
        _, _, number, name, payload, at, by = event  # at once: a journal has millions
        if number != len(self.arm):
            raise _damaged(event, f"trial {number} comes after {len(self.arm)} trials")
        worker = -1 if by is None else self.worker_index(by)
        pass_, until = payload["pass"], payload["until"]
        arm = self._arm_index[name]
        if self.spec.is_list:
            if "item" in payload and self.spec.seed is None:
                self._known[pass_] = payload["item"]
            if payload.get("again"):
                self.retries.add(number)
                self.again.pop((arm, pass_), None)
        self._add(arm, pass_, OPEN, payload["nonce"], worker, at, until, math.nan)
        self.values.extend([math.nan] * len(self.spec.names))
        self.open[number] = until

    def _on_told(self, event: Event) -> None:
        told: list[Any] = [*map(event.payload.get, self.spec.names)]
        missing = told.count(None) == len(told)
        values: list[float] = [*map(or_nan, told)] if None in told else told
        if event.trial in self.retries and self.place(event.trial) not in self.holes:  # filled meanwhile
            self._set_values(self._resolve(event, LATE), values, exact=False)
            return
        number = self._resolve(event, FAILED if missing else TOLD)
        self.parts.pop(number, None)  # they are among the values
        self._set_values(number, values)
        self._fill(number, missing)
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
        self._fill(number)
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
        noisy = [objective for objective in self.spec.objectives if not objective.is_exact]
        if noisy and all(objective.if_failed is not None for objective in noisy):
            return
        if self.end is None and self.pass_of[number] >= self.from_pass and not self.gives_up(arm):
            self.failing[arm] += 1

    def break_streak(self, arm: int) -> None:
        """A result ends a row of failures, unless it is long enough to act on, which may be done later."""
        if 0 < self.failing[arm] < self.spec.max_failures:
            self.failing[arm] = 0

    def _on_expired(self, event: Event) -> None:
        self._fill(self._resolve(event, EXPIRED))

    def _fill(self, number: int, missing: bool = True) -> None:
        """A place has its value, an agreed one, or none: on a list that is a hole, which may be filled."""
        if self.spec.is_list:
            place = self.place(number)
            if number in self.retries and place not in self.holes:
                return
            if missing and all(value != value for value in self._if_lost(number, self.state[number])):
                if place in self.holes:
                    return
                self.holes[place] = None
            else:
                self.holes.pop(place, None)
        self.fills.append(number)

    def _on_released(self, event: Event) -> None:
        number = self._resolve(event, RELEASED)
        if number in self.retries:
            self.again[self.place(number)] = None

    def _on_retried(self, event: Event) -> None:
        in_flight = {self.place(number) for number in self.open}
        self.again = {place: None for place in sorted(self.holes) if place not in in_flight}

    def _on_told_late(self, event: Event) -> None:
        number = event.trial
        if number is None or self.state[number] != EXPIRED:
            raise _damaged(event, f"trial {number} had not expired")
        values = [or_nan(event.payload.get(name)) for name in self.spec.names]
        fills = self.place(number) in self.holes and any(v == v for v in self.counts_late(values))
        self._move(number, TOLD if fills else LATE, event.at)
        self._set_values(number, values, exact=False)
        if fills:
            del self.holes[self.place(number)]
            self.again.pop(self.place(number), None)
            self.filled_late.add(number)
            self.fills.append(~number)
            self.measured[self.arm[number]] += 1

    def _on_corrected(self, event: Event) -> None:
        number = event.trial
        if number is None or self.state[number] != TOLD:
            raise _damaged(event, f"trial {number} has no counted result")
        values = [or_nan(event.payload["values"].get(name)) for name in self.spec.names]
        first = self.first_told.setdefault(number, self.told_values(number))
        if self.spec.is_list:  # what was missing stays so where it is not held at its worst
            kept = zip(values, first, self.spec.objectives, strict=True)
            values = [v if f == f or o.is_bounded or o.is_exact else math.nan for v, f, o in kept]
        if self.exact_columns:
            self._forget_exact(number)
        self._set_values(number, values)
        self.revision += 1
        if self.spec.is_list:  # where it may be folded: ends that were recorded before rest on the old one
            self.stops = [stop for stop in self.stops if not stop.is_end]

    def _on_imported(self, event: Event) -> None:
        payload = event.payload
        self.unfair |= not payload["fair"]
        if "digest" in payload:
            self.imports.append(payload["digest"])
        for arm, (lost, of) in payload.get("lost", {}).items():
            known = self.lost_before.setdefault(arm, [0, 0])
            known[0], known[1] = known[0] + lost, known[1] + of
        values = zip(*(payload["values"][name] for name in self.spec.names), strict=True)
        if self.spec.is_list:
            where = self.positions()
            passes = [where[item] for item in payload["items"]]
        else:
            passes = payload["passes"]
        for arm, pass_, row in zip(payload["arms"], passes, values, strict=True):
            number = len(self.arm)
            self._add(self._arm_index[arm], pass_, IMPORTED, 0, -1, event.at, math.nan, event.at)
            self.values.extend([math.nan] * len(row))
            self._set_values(number, [or_nan(value) for value in row])
            self._fill(number, missing=False)
            self.measured[self.arm[number]] += any(value is not None for value in row)
        if payload["items"] is not None and not self.spec.is_list:
            self.imported_items += payload["items"]
            self.skipped = payload.get("skipped", 0)
            self._order_items()

    def _resolve(self, event: Event, state: int) -> int:
        number = event.trial
        if number is None or self.open.pop(number, None) is None:
            raise _damaged(event, f"trial {number} is not open")
        self._move(number, state, event.at)
        return number

    def _forget_exact(self, number: int) -> None:
        arm = self.arm[number]
        for column in self.exact_columns:
            self.exact.pop((arm, column), None)
        self.exact |= {(arm, column): value for column, value in self.exact_elsewhere(number).items()}

    # --- events about the rules

    def _on_created(self, event: Event) -> None:
        payload = event.payload
        check_format(payload)
        self.created = event.at
        self.policy, self.version = payload["policy"], payload["version"]
        self.spec = self.asked_spec = Spec.from_json(payload["spec"])
        self.settings = self.spec.policy_settings()
        self.budget = self.spec.budget
        self.order = list(range(len(self.spec.names)))
        for arm in self.spec.arms:
            self._new_arm(dict(arm))
        self._prepare()

    def _prepare(self) -> None:
        self.exact_columns = [i for i, o in enumerate(self.spec.objectives) if o.is_exact]
        self._order_items()

    def _order_items(self) -> None:
        if self.spec.items is not None and not self.spec.is_list:
            rest = set(self.spec.ids) - set(self.imported_items)
            self.drawn = in_drawn_order(rest, self.spec.seed or 0)
            self._with_keys = {item["id"]: item for item in self.spec.items if isinstance(item, dict)}

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
        self.end = None
        if self.spec.is_list:  # where nothing is begun under rules: what was handed out may have been seen
            position = len(self.fills)
            begun = max(position, event.payload["from_pass"])
            self.stops.append(Stop(position, False, {**changed, "from_pass": begun}))
            return
        self.from_pass = event.payload["from_pass"]
        self.stops.append(Stop(len(self.fills), False, {**changed, "from_pass": self.from_pass}))

    def _note_change(self, event: Event, **fields: Any) -> None:
        """Who has seen a value and changes the rules is named with the answer."""
        if any(self.measured) or self.parts:
            self.changes.append({"kind": event.kind, "at": event.at, **fields})

    def _on_arm_added(self, event: Event) -> None:
        self._note_change(event, arm=event.arm)
        self._new_arm(checked_arm(event.payload["arm"]))
        begins: dict[str, Any] = {}
        if self.spec.is_list and not event.payload.get("blind"):
            begins["since"] = {str(self.arm_index(event.arm)): event.payload["from_pass"]}
        self._rules(event, offered=self.offered, **begins)

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
        fields = {key: event.payload[key] for key in ("margin", "tie") if key in event.payload}
        self._note_change(event, objective=event.payload["objective"], **fields)
        self.spec = self.spec.changed(event.payload["objective"], **fields)
        self._rules(event, **self.spec.tolerance_settings)

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
        self.stops.append(Stop(len(self.fills), True, event.payload))

    def _on_ended(self, event: Event) -> None:
        self.end = event.payload

    def _on_reopened(self, event: Event) -> None:
        self.end = None

    def _on_note(self, event: Event) -> None:
        """It changes nothing."""

    # --- as one piece of bytes, for the cache and to compare

    def to_bytes(self) -> bytes:
        """All of it. Only the columns are large."""
        kept = {name: value for name, value in vars(self).items() if name[0] != "_" and name not in MADE_ANEW}
        kept |= {name: list(kept[name].items()) for name in TABLES} | {
            name: sorted(kept[name]) for name in SETS
        }
        kept |= {
            "format": CACHE_FORMAT,
            "asked_spec": self.asked_spec.as_json(),
            "objectives": [objective.as_json() for objective in self.spec.objectives],
            "lengths": [len(getattr(self, name)) for name in COLUMNS],
        }
        header = json.dumps(kept).encode()
        columns = (getattr(self, name).tobytes() for name in COLUMNS)
        content = b"".join((struct.pack("<q", len(header)), header, *columns))
        return struct.pack("<I", zlib.crc32(content)) + content

    @classmethod
    def from_bytes(cls, content: bytes | None) -> Self | None:
        """What `to_bytes` gave, or None if there is nothing, or it is damaged, or of another format."""
        if content is None:
            return None
        view = memoryview(content)
        if len(view) < 12 or struct.unpack_from("<I", view)[0] != zlib.crc32(view[4:]):
            return None
        (size,) = struct.unpack_from("<q", view, 4)
        kept = json.loads(content[12 : 12 + size])
        if kept.pop("format") != CACHE_FORMAT:
            return None
        projection, start = cls(), 12 + size
        for (name, typecode), length in zip(COLUMNS.items(), kept.pop("lengths"), strict=True):
            column = array(typecode)
            end = start + length * column.itemsize
            column.frombytes(view[start:end])
            setattr(projection, name, column)
            start = end
        kept["asked_spec"] = spec = Spec.from_json(kept["asked_spec"])
        projection.spec = replace(spec, objectives=tuple(map(Objective.from_json, kept.pop("objectives"))))
        kept["stops"] = [Stop(*stop) for stop in kept["stops"]]
        for name in TABLES:
            kept[name] = {tuple(key) if isinstance(key, list) else key: value for key, value in kept[name]}
        vars(projection).update(kept, **{name: set(kept[name]) for name in SETS})
        projection._arm_index |= {name: index for index, name in enumerate(projection.arm_names)}
        projection._worker_index |= {name: index for index, name in enumerate(projection.workers)}
        states = projection.column("state")
        projection.counts = np.bincount(states, minlength=len(STATES)).tolist()
        projection.open = {n: projection.until[n] for n in np.flatnonzero(states == OPEN).tolist()}
        projection._prepare()
        return projection


MEANINGS: dict[str, Callable[[Projection, Event], None]] = {
    name.removeprefix("_on_"): handler
    for name, handler in vars(Projection).items()
    if name.startswith("_on_")
}


def _damaged(event: Event, what: str) -> DamagedError:
    return DamagedError(f"the journal is damaged at event {event.seq} ({event.kind}): {what}")
