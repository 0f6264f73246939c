"""Simulation by sums, for a policy that looks at nothing but sums of fresh pulls."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import fused, kernel
from lexbandits.policies.base import Rules
from lexbandits.world.noise import World, draw_noise


class Tally(NamedTuple):
    """Pulls of each arm so far, and at the checkpoints passed."""

    checkpoints: Counts  # (C,) rounds, ascending
    pulls: Counts  # (K,)
    pulls_at: Counts  # (C, K), zero after the end


@kernel
def in_turn(counts: Counts, rounds: int, pulls: Counts) -> None:
    """Add to `pulls` those of `rounds` rounds in which the arms with a positive count take turns."""
    arms = 0
    for arm in range(counts.size):
        arms += counts[arm] > 0
    turns, extra = rounds // arms, rounds % arms
    for arm in range(counts.size):
        if counts[arm] > 0:
            pulls[arm] += turns + (extra > 0)
            extra -= extra > 0


@kernel
def count_batch(counts: Counts, made: int, length: int, tally: Tally) -> None:
    """Add the pulls of a batch that takes rounds made + 1 .. made + length."""
    following = np.searchsorted(tally.checkpoints, made + 1)
    while following < tally.checkpoints.size and tally.checkpoints[following] <= made + length:
        tally.pulls_at[following] = tally.pulls
        in_turn(counts, tally.checkpoints[following] - made, tally.pulls_at[following])
        following += 1
    in_turn(counts, length, tally.pulls)


@kernel
def draw_sum(world: World, rng: np.random.Generator, arm: int, count: int, sums: Vector) -> None:
    """Fill `sums` with the sum of `count` Gaussian rewards of `arm`, drawn as one."""
    draw_noise(world.root, rng, sums)
    for i in range(sums.size):
        sums[i] = world.means[arm, i] * count + world.scales[i] * math.sqrt(count) * sums[i]


@cache
def sum_loop(rules: Rules) -> Callable[[Any, World, np.random.Generator, int, int, Tally], int]:
    """The loop over batches for one algorithm, from `rounds` up to the horizon.

    The arms of a batch take turns, as they do pull by pull; one that does not fit is cut at the horizon.
    """
    batch, observe_sum, finished = rules.batch, rules.observe_sum, rules.finished
    if batch is None or observe_sum is None:
        raise ValueError("a policy without batch and observe_sum cannot be simulated by sums")

    def loop(
        state: Any, world: World, rng: np.random.Generator, rounds: int, horizon: int, tally: Tally
    ) -> int:
        n_arms, m = world.means.shape
        sums = np.empty(m)
        counts = np.zeros(n_arms, np.int64)
        fitting = np.zeros(n_arms, np.int64)
        made = rounds
        while made < horizon and not finished(state):
            batch(state, counts)
            length = min(counts.sum(), horizon - made)
            count_batch(counts, made, length, tally)
            fitting[:] = 0
            in_turn(counts, length, fitting)
            for arm in range(n_arms):
                if fitting[arm] > 0:
                    draw_sum(world, rng, arm, fitting[arm], sums)
                    observe_sum(state, arm, fitting[arm], sums)
            made += length
        return made - rounds

    return fused(loop, batch, observe_sum, finished)
