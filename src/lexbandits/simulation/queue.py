"""Runs with a screen, one after the other in one compiled call: handing over each alone takes long.

So that compiled code can begin a run, the arrays of the policy's state are made of one piece of memory, and
the generator is told where its stream begins by writing into its own.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts
from lexbandits._jit import fused
from lexbandits.environments.noise import RewardModel
from lexbandits.policies.base import Rules
from lexbandits.simulation.screen import Scratch, play_on


class Queue(NamedTuple):
    """Runs that one call plays one after the other."""

    memory: Counts  # (w,) what the arrays of the state are made of
    words: NDArray[np.uint64]  # (4,) where the stream of random numbers is
    before: Counts  # (w,) the memory before a run
    starts: NDArray[np.uint64]  # (R, 4) the words before each
    after: Counts  # (R, w) the memory after each
    rounds: Counts  # (R,) made so far


def queue_for(memory: Counts, words: NDArray[np.uint64], starts: NDArray[np.uint64]) -> Queue:
    """Runs from the state that the memory has now, on the streams that begin at `starts`."""
    n = len(starts)
    return Queue(
        memory, words, memory.copy(), starts, np.empty((n, memory.size), np.int64), np.zeros(n, np.int64)
    )


def in_one_piece(state: Any) -> tuple[Any, Counts]:
    """A copy of a named tuple of arrays, and the memory that all of them are made of."""
    owners = {id(owner): owner for owner in map(_owner, _arrays_in(state))}
    ends = np.cumsum([-(-owner.nbytes // 8) for owner in owners.values()]).tolist()
    memory = np.zeros(ends[-1], np.int64)
    begins = dict(zip(owners, [0, *ends], strict=False))
    for key, owner in owners.items():
        memory[begins[key] :].view(np.uint8)[: owner.nbytes] = owner.ravel("K").view(np.uint8)

    def moved(part: Any) -> Any:
        if isinstance(part, tuple):
            return type(part)(*map(moved, part)) if hasattr(part, "_fields") else tuple(map(moved, part))
        if not isinstance(part, np.ndarray):
            return part
        owner = _owner(part)
        into = 0 if owner is part else part.ctypes.data - owner.ctypes.data
        return np.ndarray(part.shape, part.dtype, memory, 8 * begins[id(owner)] + into, part.strides)

    return moved(state), memory


def _owner(array: NDArray[Any]) -> NDArray[Any]:
    """The array whose memory this one is made of."""
    return _owner(array.base) if isinstance(array.base, np.ndarray) else array


def _arrays_in(state: Any) -> Iterator[NDArray[Any]]:
    for part in state:
        if isinstance(part, tuple):
            yield from _arrays_in(part)
        elif isinstance(part, np.ndarray):
            yield part


@cache
def screened_runs(
    rules: Rules,
) -> Callable[[Any, RewardModel, np.random.Generator, Scratch, Queue, int, int, int], int]:
    """The loop over runs for one algorithm: play on from run `row`, up to `limit` rounds in all.

    It returns the first run that is not over, which the next call continues on the same scratch arrays.
    """
    observe, finished, quiet_band = rules.observe, rules.finished, rules.quiet_band
    if quiet_band is None:
        raise ValueError("a policy without quiet_band cannot be simulated with a screen")

    # numba orders code by the names of variables: were `course` called `queue`, it would be 5 % slower
    def loop(
        state: Any,
        model: RewardModel,
        rng: np.random.Generator,
        scratch: Scratch,
        course: Queue,
        row: int,
        horizon: int,
        limit: int,
    ) -> int:
        rounds, played = course.rounds, 0
        while row < rounds.size and played < limit:
            if rounds[row] == 0:
                course.memory[:] = course.before
                course.words[:] = course.starts[row]
            most = min(horizon - rounds[row], limit - played)
            made = play_on(state, model, rng, scratch, most, observe, finished, quiet_band)
            rounds[row] += made
            played += made
            if made < most or rounds[row] == horizon or finished(state):
                course.after[row] = course.memory
                row += 1
        return row

    return fused(loop, observe, finished, quiet_band)
