"""Common random numbers: results of all arms, drawn pass by pass, the same for whoever asks for them."""

from collections.abc import Iterator

import numpy as np

from experiments.practice.trials import Trials
from lexbandits._arrays import Vector
from lexbandits._jit import entry, kernel
from lexbandits.environments.noise import stream
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.policies.tolerance.passes import close_pass, pass_arrays, take_pass
from lexbandits.policies.tolerance.state import OVER, PASS, State
from lexbandits.simulation.trajectory import check_match

# Passes drawn at a time, whoever asks: a result depends on (seed, replication, pass, arm) alone.
BLOCK = 1 << 10


class CommonRandomNumbers:
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


@kernel
def play_block(state: State, results: Vector, first: int) -> bool:
    """Play LexElim-Tol as long as its pass is among `results`, which begin with pass `first`.

    Whether it is finished.
    """
    arrays, clock, everybody = pass_arrays(state), state.clock, results.shape[1]
    while clock[OVER] == 0:
        number = clock[PASS] - first
        if number >= results.shape[0]:
            return False
        if take_pass(arrays, results, number, everybody):
            close_pass(state)
    return True


def play(policy: LexElimTol, draws: CommonRandomNumbers, horizon: int) -> LexElimTol:
    """A fresh copy of the policy after its run, one result after the other; ended soon after `horizon`.

    Each result is a function of its place, arm and pass, so arms share the luck of common items.
    """
    check_match(policy, draws.trials.instance())
    run, first = policy.fresh(), 0
    for results in draws.blocks():
        if entry(play_block, bulk=True)(run.state, results, first) or run.rounds >= horizon:
            break
        first += len(results)
    return run
