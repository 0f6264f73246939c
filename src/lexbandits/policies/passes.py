"""What LexElim-Pool and LexElim-Phase share: sweeps over the active arms, judged in growing blocks.

The k-th reward told of an arm belongs to its k-th sweep, whenever it comes. A block of sweeps is
judged when every active arm's rewards for it are in; rewards that run ahead wait, summed per block.
Blocks grow by 1 %, so even an arm a billion sweeps ahead fills fewer than two thousand of them.
"""

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.radius import PRIOR as PRIOR
from lexbandits.evidence.radius import time_uniform_intervals
from lexbandits.jit import fused, kernel
from lexbandits.policies.base import Arms, Rules, record
from lexbandits.policies.policy import Policy

# The fields of Sweeps.clock: whose TURN it is, ACTIVE arms, JUDGED sweeps so far, END of the current
# block, its SLOT in `waiting`, active arms MISSING in it, pulls ISSUED up to the last judged sweep.
TURN, ACTIVE, JUDGED, END, SLOT, MISSING, ISSUED = range(7)

FIRST = 5  # the first judged sweep
SLOTS = 4  # blocks kept at first: a simulation needs one


class Sweeps(NamedTuple):
    """The block being filled, and the sums of those judged."""

    clock: Counts  # (7,) see above
    totals: Vector  # (K, m) S: rewards of the judged sweeps, added up block by block
    waiting: Vector  # (blocks, K, m) sums of the current block and of those that run ahead, a ring


def first_sweep(n_arms: int, n_objectives: int) -> Sweeps:
    """Nothing judged, nothing waiting."""
    clock = np.zeros(7, np.int64)
    clock[END] = FIRST
    clock[MISSING] = clock[ACTIVE] = n_arms
    return Sweeps(clock, np.zeros((n_arms, n_objectives)), np.zeros((SLOTS, n_arms, n_objectives)))


@kernel
def next_judged(sweep: int) -> int:
    """n_{k+1} = n_k + max(1, ⌈n_k/100⌉)."""
    return sweep + max(1, (sweep + 99) // 100)


@kernel
def blocks_ahead(sweep: int, end: int) -> int:
    """How many blocks after the one that ends at `end` the sweep with index `sweep` (from 0) lies."""
    ahead = 0
    while sweep >= end:
        end = next_judged(end)
        ahead += 1
    return ahead


@kernel
def has_room(arms: Arms, sweeps: Sweeps, arm: int) -> bool:
    """Whether the next reward of `arm` can wait in a slot that exists, or need not wait."""
    if not arms.active[arm]:
        return True
    return bool(blocks_ahead(arms.pulls[arm], sweeps.clock[END]) < sweeps.waiting.shape[0])


@kernel
def find_turn(arms: Arms, clock: Counts) -> None:
    """Give the turn to the active arm with the fewest pulls told, lowest index."""
    chosen = -1
    for arm in range(arms.pulls.size):
        if arms.active[arm] and (chosen < 0 or arms.pulls[arm] < arms.pulls[chosen]):
            chosen = arm
    clock[TURN] = chosen


@kernel
def enlist(arms: Arms, sweeps: Sweeps, arm: int, reward: Vector) -> None:
    """Record a reward of an active arm and add it to the sum of its block."""
    clock = sweeps.clock
    sweep = arms.pulls[arm]
    ahead = blocks_ahead(sweep, clock[END])
    if ahead >= sweeps.waiting.shape[0]:
        raise ValueError("an arm ran further ahead than its rewards can wait: use tell, which makes room")
    slot = (clock[SLOT] + ahead) % sweeps.waiting.shape[0]
    for i in range(reward.size):
        sweeps.waiting[slot, arm, i] += reward[i]
    record(arms, arm, reward)
    if sweep + 1 == clock[END]:
        clock[MISSING] -= 1
    if clock[TURN] == arm:
        find_turn(arms, clock)


@kernel
def close_block(arms: Arms, sweeps: Sweeps) -> Vector:
    """Count the current block as judged; return (K, m) its sums, good until `open_block`."""
    clock = sweeps.clock
    clock[ISSUED] += (clock[END] - clock[JUDGED]) * clock[ACTIVE]
    clock[JUDGED] = clock[END]
    sums: Vector = sweeps.waiting[clock[SLOT]]
    for arm in range(arms.pulls.size):
        if arms.active[arm]:
            for i in range(sums.shape[1]):
                sweeps.totals[arm, i] += sums[arm, i]
    return sums


@kernel
def open_block(arms: Arms, sweeps: Sweeps) -> None:
    """Go on to the next block, which rewards that ran ahead may already fill."""
    clock = sweeps.clock
    sweeps.waiting[clock[SLOT]] = 0.0
    clock[SLOT] = (clock[SLOT] + 1) % sweeps.waiting.shape[0]
    clock[END] = next_judged(clock[JUDGED])
    clock[MISSING] = 0
    clock[ACTIVE] = 0
    for arm in range(arms.pulls.size):
        if arms.active[arm]:
            clock[ACTIVE] += 1
            if arms.pulls[arm] < clock[END]:
                clock[MISSING] += 1
    find_turn(arms, clock)


class SweepPolicy(Policy):
    """A policy whose state has a field `sweeps`: what is told makes room for itself first."""

    round_robin = True

    def tell(self, arm: int, reward: ArrayLike) -> None:
        """Report the reward vector of a pull of `arm`: late, out of order or after the end if need be.

        An arm's k-th reward belongs to its k-th sweep; one that runs ahead waits for the others.
        """
        arm = self._checked_arm(arm)
        vector = self._checked_reward(reward)
        self._make_room(arm)
        self.rules.observe(self.state, arm, vector)

    def tell_many(self, arms: ArrayLike, rewards: ArrayLike) -> None:
        """Report many pulls in order: all are checked, then all are told, in compiled code."""
        played, table = self._checked_history(arms, rewards)
        replay, told = _replay_loop(self.rules), 0
        while told < played.size:
            self._make_room(int(played[told]))
            told = replay(self.state, played, table, told)

    @property
    @abstractmethod
    def evidence(self) -> Vector:
        """(K,) log wealth of each arm's gambler at the last judged sweep; an arm leaves at the threshold."""

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

    def _make_room(self, arm: int) -> None:
        arms, sweeps = self.state.arms, self.state.sweeps
        if arms.pulls[arm] < sweeps.clock[END] or has_room(arms, sweeps, arm):
            return
        slots = len(sweeps.waiting)
        while slots <= blocks_ahead(int(arms.pulls[arm]), int(sweeps.clock[END])):
            slots *= 2
        waiting = np.zeros((slots, *sweeps.waiting.shape[1:]))
        waiting[: len(sweeps.waiting)] = np.roll(sweeps.waiting, -sweeps.clock[SLOT], axis=0)
        sweeps.clock[SLOT] = 0
        self.state = self.state._replace(sweeps=sweeps._replace(waiting=waiting))


@cache
def _replay_loop(rules: Rules) -> Callable[..., int]:
    observe = rules.observe

    def replay(state, arms, rewards, start):  # type: ignore[no-untyped-def]
        for t in range(start, arms.size):
            if not has_room(state.arms, state.sweeps, arms[t]):
                return t
            observe(state, arms[t], rewards[t])
        return arms.size

    return fused(replay, observe)
