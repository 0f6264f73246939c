"""Simulation by sums, for a policy that looks at nothing but sums of fresh pulls."""

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import fused, kernel
from lexbandits.environments.noise import RewardModel, draw_noise
from lexbandits.policies.base import Rules


class PullCounts(NamedTuple):
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
def count_batch(counts: Counts, made: int, length: int, tally: PullCounts) -> None:
    """Add the pulls of a batch that takes rounds made + 1 .. made + length."""
    following = np.searchsorted(tally.checkpoints, made + 1)
    while following < tally.checkpoints.size and tally.checkpoints[following] <= made + length:
        tally.pulls_at[following] = tally.pulls
        in_turn(counts, tally.checkpoints[following] - made, tally.pulls_at[following])
        following += 1
    in_turn(counts, length, tally.pulls)


@kernel
def draw_sum(model: RewardModel, rng: np.random.Generator, arm: int, count: int, sums: Vector) -> None:
    """Fill `sums` with the sum of `count` Gaussian rewards of `arm`, drawn as one."""
    # The sum of n Gaussian rewards is Gaussian with n times the variance: the same law as n draws, though not
    # the same bits. So a cell says which `stream` it has.
    draw_noise(model.root, rng, sums)
    for i in range(sums.size):
        sums[i] = model.means[arm, i] * count + model.scales[i] * math.sqrt(count) * sums[i]


@cache
def sum_loop(rules: Rules) -> Callable[[Any, RewardModel, np.random.Generator, int, int, PullCounts], int]:
    """The loop over batches for one algorithm, from `rounds` up to the horizon.

    The arms of a batch take turns, as they do pull by pull; one that does not fit is cut at the horizon.
    """
    batch, observe_sum, finished = rules.batch, rules.observe_sum, rules.finished
    if batch is None or observe_sum is None:
        raise ValueError("a policy without batch and observe_sum cannot be simulated by sums")

    def loop(
        state: Any, model: RewardModel, rng: np.random.Generator, rounds: int, horizon: int, tally: PullCounts
    ) -> int:
        n_arms, m = model.means.shape
        sums = np.empty(m)
        counts = np.zeros(n_arms, np.int64)
        fitting = np.zeros(n_arms, np.int64)
        made = rounds
        while made < horizon and not finished(state):
            batch(state, counts)
            # `batch` asks for what is missing; at the horizon only the turns that still fit are played.
            length = min(counts.sum(), horizon - made)
            count_batch(counts, made, length, tally)
            fitting[:] = 0
            in_turn(counts, length, fitting)
            for arm in range(n_arms):
                if fitting[arm] > 0:
                    draw_sum(model, rng, arm, fitting[arm], sums)
                    observe_sum(state, arm, fitting[arm], sums)
            made += length
        return made - rounds

    return fused(loop, batch, observe_sum, finished)
