"""Passes drawn ahead: results of all arms on one item after the other, for whoever asks for them in order."""

from collections.abc import Iterator

import numpy as np

from lexbandits.arrays import Vector
from lexbandits.world.noise import stream
from lexbandits.world.trials import Trials

BLOCK = (
    1 << 10
)  # passes drawn at a time, whoever asks: a result depends on (seed, replication, pass, arm) alone


class Tape:
    """What each arm would give in each pass of one replication."""

    def __init__(self, trials: Trials, seed: int, replication: int) -> None:
        self.trials, self.seed, self.replication = trials, seed, replication
        self._known = trials.passes(np.random.default_rng(0), 0)
        self._blocks = self.blocks()

    def blocks(self) -> Iterator[Vector]:
        """(BLOCK, K, m) after (BLOCK, K, m), without end; nothing is kept."""
        rng = stream(self.seed, self.replication)
        while True:
            yield self.trials.passes(rng, BLOCK)

    def first(self, n: int) -> Vector:
        """(n, K, m) the first n passes; they are kept."""
        if len(self._known) < n:
            missing = -(-(n - len(self._known)) // BLOCK)
            self._known = np.concatenate([self._known, *(next(self._blocks) for _ in range(missing))])
        return self._known[:n]
