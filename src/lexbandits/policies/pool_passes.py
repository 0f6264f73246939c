"""What LexElim-Pool and LexElim-Phase share: passes over the active arms, evaluated in growing blocks.

A pass pulls every active arm once. The k-th reward told of an arm belongs to its k-th pass, whenever it
comes. A block of passes is evaluated when every active arm's rewards for it are in; rewards that run ahead
wait, summed per block. Blocks grow by 1 %, so even an arm a billion passes ahead fills fewer than two
thousand of them. A policy's own mathematics is handed in as functions: numba writes them in.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from enum import IntEnum
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import fused, kernel, portion
from lexbandits.evidence.radius import PRIOR as PRIOR
from lexbandits.evidence.radius import time_uniform_intervals
from lexbandits.policies.base import LEFT_ON, LEFT_TO, Arms, Rules, add_rewards, eliminate, fewest_pulls
from lexbandits.policies.policy import Policy


class Clock(IntEnum):
    """The fields of Passes.clock."""

    TURN = 0  # the arm whose turn it is
    ACTIVE = 1  # how many arms are
    EVALUATED = 2  # passes so far
    END = 3  # of the current block
    SLOT = 4  # of the current block in `buffer`
    MISSING = 5  # active arms in it
    ISSUED = 6  # pulls up to the last evaluated pass


# Plain integers for kernels: see tolerance/state.py.
TURN, ACTIVE, EVALUATED, END, SLOT, MISSING, ISSUED = map(int, Clock)

FIRST = 5  # the first evaluated pass
SLOTS = 4  # blocks kept at first: a simulation needs one


class Passes(NamedTuple):
    """The block being filled, and the sums of those evaluated."""

    clock: Counts  # (7,) see `Clock`
    totals: Vector  # (K, m) S: rewards of the evaluated passes, added up block by block
    buffer: Vector  # (blocks, K, m) sums of the current block and of those that run ahead, a ring


def first_pass(n_arms: int, n_objectives: int) -> Passes:
    """Return passes with nothing evaluated and an empty buffer."""
    clock = np.zeros(7, np.int64)
    clock[END] = FIRST
    clock[MISSING] = clock[ACTIVE] = n_arms
    return Passes(clock, np.zeros((n_arms, n_objectives)), np.zeros((SLOTS, n_arms, n_objectives)))


# --- blocks


@kernel
def next_evaluated(evaluated: int) -> int:
    """n_{k+1} = n_k + max(1, ⌈n_k/100⌉)."""
    return evaluated + max(1, (evaluated + 99) // 100)


@kernel
def blocks_ahead(made: int, end: int) -> int:
    """How many blocks after the one that ends at `end` the next pass of an arm lies that has `made` some."""
    ahead = 0
    while made >= end:
        end = next_evaluated(end)
        ahead += 1
    return ahead


@kernel
def has_room(arms: Arms, passes: Passes, arm: int) -> bool:
    """Whether the next reward of `arm` can wait in a slot that exists, or need not wait."""
    if not arms.active[arm] or passes.clock[ACTIVE] <= 1:
        return True
    return bool(blocks_ahead(arms.pulls[arm], passes.clock[END]) < passes.buffer.shape[0])


@kernel
def find_turn(arms: Arms, clock: Counts) -> None:
    """Give the turn to the active arm with the fewest pulls told, lowest index."""
    chosen = -1
    for arm in range(arms.pulls.size):
        if arms.active[arm] and (chosen < 0 or arms.pulls[arm] < arms.pulls[chosen]):
            chosen = arm
    clock[TURN] = chosen


@kernel
def slot_ahead(passes: Passes, made: int) -> int:
    """Where the next reward of an arm waits that has `made` some, more than the current block asks."""
    ahead = blocks_ahead(made, passes.clock[END])
    if ahead >= passes.buffer.shape[0]:
        raise ValueError("an arm ran further ahead than its rewards can wait: use tell, which makes room")
    return int((passes.clock[SLOT] + ahead) % passes.buffer.shape[0])


@kernel
def close_block(arms: Arms, passes: Passes) -> Vector:
    """Count the current block as evaluated; return (K, m) its sums, good until `open_block`."""
    clock = passes.clock
    clock[ISSUED] += (clock[END] - clock[EVALUATED]) * clock[ACTIVE]
    clock[EVALUATED] = clock[END]
    sums: Vector = passes.buffer[clock[SLOT]]
    for arm in range(arms.pulls.size):
        if arms.active[arm]:
            for i in range(sums.shape[1]):
                passes.totals[arm, i] += sums[arm, i]
    return sums


@kernel
def open_block(arms: Arms, passes: Passes) -> None:
    """Go on to the next block, which rewards that ran ahead may already fill."""
    clock = passes.clock
    passes.buffer[clock[SLOT]] = 0.0
    clock[SLOT] = (clock[SLOT] + 1) % passes.buffer.shape[0]
    clock[END] = next_evaluated(clock[EVALUATED])
    clock[MISSING] = 0
    clock[ACTIVE] = 0
    for arm in range(arms.pulls.size):
        if arms.active[arm]:
            clock[ACTIVE] += 1
            if arms.pulls[arm] < clock[END]:
                clock[MISSING] += 1
    find_turn(arms, clock)


# --- the rules, but for a policy's own mathematics


@kernel
def choose_in_turn(state: Any, pending: Counts) -> int:
    """The active arm with the fewest pulls, lowest index.

    With nothing in flight that is whose turn it is: nobody has fewer pulls, and nobody before as few.
    """
    turn = state.passes.clock[TURN]
    return int(turn) if pending[turn] == 0 else fewest_pulls(state.arms, pending)


@kernel(inline="always")
def observe_passes(
    state: Any,
    arm: int,
    count: int,
    sums: Vector,
    finished: Callable[..., bool],
    evaluate: Callable[..., None],
) -> None:
    """Add `count` rewards, all of one block, to the arm's block; evaluate every complete block."""
    arms, clock = state.arms, state.passes.clock
    if finished(state) or not arms.active[arm]:
        add_rewards(arms, arm, count, sums)
    else:
        made = arms.pulls[arm]
        slot = clock[SLOT] if made < clock[END] else slot_ahead(state.passes, made)
        for i in range(sums.size):
            state.passes.buffer[slot, arm, i] += sums[i]
        add_rewards(arms, arm, count, sums)
        if made + count == clock[END]:
            clock[MISSING] -= 1
        # Arms take turns by index, so the next one is almost always close by: a scan of all K arms for every
        # pull would take longer than all the rest.
        if clock[TURN] == arm:
            following = arm + 1
            while following < arms.pulls.size and not (
                arms.active[following] and arms.pulls[following] == made
            ):
                following += 1
            if following < arms.pulls.size:
                clock[TURN] = following
            else:
                find_turn(arms, clock)
        while clock[MISSING] == 0 and not finished(state):
            evaluate(state)


@kernel(inline="always")
def drop_rejected(
    state: Any,
    cannot_reject: Callable[..., bool],
    log_evidence: Callable[..., float],
    strongest: Callable[..., tuple[int, int]],
) -> NDArray[np.bool_]:
    """Drop every arm whose evidence reaches the threshold, or all but the least if that is everyone.

    (K,) who left. `cannot_reject(state, arm)` is a cheaper bound; `strongest(state, arm)` is the
    objective and the rival to be named.
    """
    arms, issued = state.arms, state.passes.clock[ISSUED]
    rejected = np.zeros(arms.active.size, np.bool_)
    spared = -1
    least = math.inf
    some_stay = False
    for arm in range(arms.active.size):
        if arms.active[arm]:
            evidence = -math.inf if cannot_reject(state, arm) else log_evidence(state, arm)
            if evidence < state.threshold:
                some_stay = True
            else:
                rejected[arm] = True
                if spared < 0 or evidence < least:
                    spared = arm
                    least = evidence
    if spared >= 0 and not some_stay:
        rejected[spared] = False
    for arm in range(arms.active.size):
        if rejected[arm]:
            arms.left[arm, LEFT_ON], arms.left[arm, LEFT_TO] = strongest(state, arm)
    for arm in range(arms.active.size):  # when all rivals are named
        if rejected[arm]:
            eliminate(arms, arm, issued, arms.left[arm, LEFT_ON], arms.left[arm, LEFT_TO])
            state.passes.clock[ACTIVE] -= 1
    return rejected


class BettingPolicy(Policy):
    """A policy whose state has a field `passes`: what is told makes room for itself first."""

    round_robin = True

    @property
    @abstractmethod
    def evidence(self) -> Vector:
        """(K,) log wealth of each arm's gambler at the last evaluated pass; an arm leaves at a threshold."""

    @property
    def intervals(self) -> Vector:
        """(K, m, 2) where each mean lies, all of them at all times, with probability at least 1 − delta.

        Normal-mixture intervals for people who watch a run; the policy decides by evidence instead.
        """
        return time_uniform_intervals(self.means, self.pulls, self._settings)

    def best_guess(self) -> int:
        """The candidate with the least evidence against it, lowest index; the first before any."""
        evidence = self.evidence
        return min(self.candidates, key=lambda arm: (evidence[arm], arm))

    def _observe(self, arm: int, reward: Vector) -> None:
        self._make_room(arm)
        super()._observe(arm, reward)

    def _replay(self, arms: Counts, rewards: Vector) -> None:
        replay, told = _replay_loop(self.rules), 0
        while told < arms.size:
            self._make_room(int(arms[told]))
            end = told + portion(arms.size - told)
            told = replay(self.state, arms[:end], rewards[:end], told)

    def _make_room(self, arm: int) -> None:
        passes = self.state.passes
        while not has_room(self.state.arms, passes, arm):
            # a ring can only grow at its end: turn it so that the current block comes first
            unrolled = np.roll(passes.buffer, -passes.clock[SLOT], axis=0)
            passes.clock[SLOT] = 0
            passes = passes._replace(buffer=np.concatenate([unrolled, np.zeros_like(unrolled)]))
            self.state = self.state._replace(passes=passes)


@cache
def _replay_loop(rules: Rules) -> Callable[..., int]:
    observe = rules.observe

    def replay(state, arms, rewards, start):  # type: ignore[no-untyped-def]
        for t in range(start, arms.size):
            if not has_room(state.arms, state.passes, arms[t]):
                return t
            observe(state, arms[t], rewards[t])
        return arms.size

    return fused(replay, observe, bulk=False)
