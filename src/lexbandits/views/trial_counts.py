"""Trials counted by arm and by worker, and brought up to date by what is new: never all of them again."""

import math
from typing import Any

import numpy as np

from lexbandits.study.core.projection import Projection
from lexbandits.study.core.replay import Replay
from lexbandits.study.core.trial_columns import COLUMNS, EXPIRED, IMPORTED, OPEN, STATES, TOLD

Array = np.ndarray[Any, Any]


class Tally:
    """Of one fold, which only grows: a trial that is neither open nor expired stays what it is."""

    def __init__(self) -> None:
        self.projection: Projection
        self.by_arm = np.zeros((0, len(STATES)), np.int64)
        self.resolved = np.zeros(0, np.int64)  # by worker
        self.heard = np.zeros(0)  # by worker: when it last asked or told
        self._reached: dict[int, float] = {}
        self._seen = 0
        self._moving = self._states = np.zeros(0, np.int64)  # trials that may change, and what they were

    def update(self, projection: Projection) -> None:
        """Count what has changed."""
        self.projection = projection
        self.by_arm = _longer(self.by_arm, len(projection.arms), 0)
        self.resolved = _longer(self.resolved, len(projection.workers), 0)
        self.heard = _longer(self.heard, len(projection.workers), -math.inf)
        if len(projection) == 0:
            return
        column = {name: np.frombuffer(getattr(projection, name), COLUMNS[name]) for name in _NEEDED}
        np.subtract.at(self.by_arm, (column["arm"][self._moving], self._states), 1)
        numbers = np.concatenate((self._moving, np.arange(self._seen, len(projection))))
        states, arms, workers = (column[name][numbers] for name in ("state", "arm", "worker"))
        np.add.at(self.by_arm, (arms, states), 1)
        moving = (states == OPEN) | (states == EXPIRED)  # late results come for expired ones
        known = workers >= 0
        told = known & ~moving
        np.add.at(self.resolved, workers[told], 1)
        np.fmax.at(self.heard, workers[known], column["asked"][numbers[known]])
        np.fmax.at(self.heard, workers[told], column["resolved"][numbers[told]])
        self._moving, self._states, self._seen = numbers[moving], states[moving], len(projection)

    def reached(self, results: int) -> float:
        """When so many results had come, or the last of all, by the storage's clock; nan without any."""
        if results not in self._reached:
            projection = self.projection
            fills = np.array(projection.fills, np.int64)
            measured = fills[np.isin(projection.column("state")[fills], (TOLD, IMPORTED))]
            if len(measured) < max(results, 1):
                return projection.resolved[int(measured[-1])] if len(measured) else math.nan
            self._reached[results] = projection.resolved[int(measured[results - 1])]
        return self._reached[results]


_NEEDED = ("arm", "state", "worker", "asked", "resolved")


def _longer(table: Array, rows: int, filler: float) -> Array:
    """With so many rows."""
    more = np.full((rows - len(table), *table.shape[1:]), filler, table.dtype)
    return np.concatenate((table, more)) if len(more) else table


def tally_of(replay: Replay) -> Tally:
    """The tally of a study, kept between two looks at it."""
    tally: Tally = replay.memory.setdefault(Tally, Tally())
    tally.update(replay.projection)
    return tally
