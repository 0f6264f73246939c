"""The trials on record, as columns: a million of them fit, and load at once.

Which are whose, what was told of each, and what its place counts as.
"""

import math
from array import array
from typing import Any

import numpy as np

from lexbandits._arrays import Vector
from lexbandits.study.spec import Spec
from lexbandits.study.states import TrialState

STATES = tuple(TrialState)  # a column holds the index
OPEN, TOLD, FAILED, EXPIRED, LATE, RELEASED, IMPORTED = range(len(STATES))
LOST = (FAILED, EXPIRED, LATE)
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
    # the trials that filled a place or declared it missing, in the order of the journal; ~number: one that
    # had declared it missing and was told after all, on a list
    "fills": "q",
}

Place = tuple[int, int]  # arm, pass


class TrialTable:
    """Trials by number. Values are those of `spec`'s objectives, nan where missing."""

    spec: Spec  # under the rules in force

    def __init__(self) -> None:
        self.open: dict[int, float] = {}  # number -> until
        self.parts: dict[int, list[float]] = {}  # of trials not told to their end: what is known, else nan
        self.filled_late: set[int] = set()  # trials that ran out and were told after all, and count
        self.exact_columns: list[int] = []
        self.exact: dict[tuple[int, int], float] = {}  # (arm, column) -> its one value
        self.counts = [0] * len(STATES)
        self.highest = -1  # the highest pass handed out or imported
        self.arm = array("i")
        self.pass_of = array("q")
        self.state = array("b")
        self.nonce = array("I")
        self.worker = array("i")
        self.asked, self.until, self.resolved = array("d"), array("d"), array("d")
        self.values, self.fills = array("d"), array("q")

    def __len__(self) -> int:
        return len(self.arm)

    @property
    def handed_out(self) -> int:
        """Trials handed out less those released: what the budget counts."""
        return len(self) - self.counts[RELEASED] - self.counts[IMPORTED]

    def place(self, number: int) -> Place:
        """Where a trial belongs."""
        return self.arm[number], self.pass_of[number]

    def counts_late(self, values: list[float]) -> list[float]:
        """What of a late result fills a hole of a list: where a missing value was held at its worst."""
        kept = zip(values, self.spec.objectives, strict=True)
        return [v if o.is_bounded and o.if_expired is None else math.nan for v, o in kept]

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
        """Arms, passes and values of fills first .. end − 1, as they count."""
        fills = np.array(self.fills[first:end], dtype=np.int64)
        numbers = np.where(fills < 0, ~fills, fills)
        values, agreed = self._at(numbers, "values"), np.isin(self._at(numbers, "state"), LOST)
        if self.filled_late:
            agreed |= np.isin(numbers, list(self.filled_late))
        for row in np.flatnonzero(agreed).tolist():
            values[row] = self.counted(int(fills[row]))
        return self._at(numbers, "arm").astype(np.int64), self._at(numbers, "pass_of"), values

    def counted(self, fill: int) -> list[float]:
        """(m,) what the place of a trial counts as: `filled`, for one. Where it was lost, as was agreed."""
        if fill < 0:
            return self.counts_late(self.told_values(~fill))
        state = EXPIRED if fill in self.filled_late else self.state[fill]
        return self._if_lost(fill, state) if state in LOST else self.told_values(fill)

    def reward(self, fill: int) -> Vector:
        """The same, of which more is better."""
        return self.spec.signed_row(self.counted(fill))

    def reward_if_expired(self, number: int) -> Vector:
        """(m,) what the place of a trial counts as if it runs out, of which more is better."""
        return self.spec.signed_row(self._if_lost(number, EXPIRED))

    def _if_lost(self, number: int, state: int) -> list[float]:
        """What was told of a trial before it was lost stays: values are agreed for the rest only."""
        agreed = [or_nan(o.if_failed if state == FAILED else o.if_expired) for o in self.spec.objectives]
        part = self.parts.get(number)
        return agreed if part is None else [b if a != a else a for a, b in zip(part, agreed, strict=True)]

    def _at(self, numbers: np.ndarray[Any, Any], name: str) -> np.ndarray[Any, Any]:
        """`column(name)[numbers]` without a copy of the whole."""
        view: np.ndarray[Any, Any] = np.frombuffer(getattr(self, name), COLUMNS[name])
        shaped = view.reshape(-1, len(self.spec.names)) if name == "values" else view
        found: np.ndarray[Any, Any] = shaped[numbers]
        return found

    def trials_of(self, arm: int, *states: int) -> np.ndarray[Any, Any]:
        """The trials of an arm that are in one of these states."""
        if not self.arm:
            return np.zeros(0, np.int64)
        here = np.frombuffer(self.arm, COLUMNS["arm"]) == arm
        return np.flatnonzero(here & np.isin(np.frombuffer(self.state, COLUMNS["state"]), states))

    def counted_values(self, arm: int, column: int) -> Vector:
        """The values of an arm that were told in time or imported, as they count, in order of passes."""
        numbers = self.trials_of(arm, TOLD, IMPORTED)
        if not numbers.size:
            return np.zeros(0)
        numbers = numbers[np.argsort(self._at(numbers, "pass_of"), kind="stable")]
        values: Vector = self._at(numbers, "values")[:, column]
        if self.filled_late and not self.spec.objectives[column].is_bounded:
            values[np.isin(numbers, list(self.filled_late))] = math.nan
        found: Vector = self.spec.objectives[column].cut(values[~np.isnan(values)])
        return found

    def exact_of(self, arm: int) -> dict[int, float]:
        """Exact values of an arm, by column."""
        return {
            column: self.exact[arm, column] for column in self.exact_columns if (arm, column) in self.exact
        }

    def exact_elsewhere(self, number: int) -> dict[int, float]:
        """Exact values of this trial's arm that other trials have told, by column."""
        arm = self.arm[number]
        told = self.trials_of(arm, TOLD, IMPORTED)
        parts = [part for other, part in self.parts.items() if self.arm[other] == arm and other != number]
        rows = np.vstack([self._at(told[told != number], "values"), *reversed(parts)])
        known = {column: rows[np.isfinite(rows[:, column]), column] for column in self.exact_columns}
        return {column: float(values[0]) for column, values in known.items() if values.size}

    # --- as they change

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
        if pass_ > self.highest and not (state == IMPORTED and self.spec.is_list):
            self.highest = pass_

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


def or_nan(value: float | None) -> float:
    """A value as a column has it."""
    return math.nan if value is None else value
