"""Futures of a study: the same policy goes on from a copy of its state, in worlds that may be true.

In a pass the arms may share their luck, as prompts that are hard for all do. Luck is shared between
arms, not between objectives, which are judged one at a time.
"""

import copy
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import entry, kernel
from lexbandits.policies.tol.judgement import observe
from lexbandits.policies.tol.state import OVER, PASS, POSITION, TURN, State
from lexbandits.world.noise import stream

if TYPE_CHECKING:
    from lexbandits.forecasting.beliefs import Beliefs
    from lexbandits.policies.tol.lexelim_tol import LexElimTol

# How the values of an objective are drawn: normal, one of two ends, from quantiles, always the same.
NORMAL, COIN, TABLE, FIXED = range(4)


class World(NamedTuple):
    """A possible truth, larger is better. K arms, m objectives, q quantiles."""

    draws: Counts  # (m,) how, see above
    means: Vector  # (K, m)
    sds: Vector  # (K, m) of normal values
    ends: Vector  # (m, 2) the two values of a coin
    tables: Vector  # (K, m, q) quantiles, in order
    shared: Vector  # (m,) correlation of two arms in a pass
    missing: Vector  # (K, m) how often a value is missing


@kernel
def draw(
    world: World, rng: np.random.Generator, arm: int, luck: Vector, shared_normal: Vector, reward: Vector
) -> None:
    """Fill `reward` with the values of an arm in a pass with this luck."""
    for i in range(reward.size):
        how, share = world.draws[i], world.shared[i]
        if how == NORMAL:
            z = math.sqrt(share) * shared_normal[i] + math.sqrt(1.0 - share) * rng.standard_normal()
            reward[i] = world.means[arm, i] + world.sds[arm, i] * z
        elif how == FIXED:
            reward[i] = world.means[arm, i]
        else:
            u = luck[i] if rng.random() < math.sqrt(share) else rng.random()
            if how == COIN:
                low, high = world.ends[i, 0], world.ends[i, 1]
                reward[i] = high if u * (high - low) < world.means[arm, i] - low else low
            else:
                reward[i] = world.tables[arm, i, int(u * world.tables.shape[2])]
        if world.missing[arm, i] > 0.0 and rng.random() < world.missing[arm, i]:
            reward[i] = math.nan


@kernel
def go_on(
    state: State, world: World, rng: np.random.Generator, most: int, spent: Counts, pulls: Counts
) -> int:
    """Measure until the end or for `most` results, and count them.

    `spent` (m,) counts results by the objective being settled, `pulls` (K,) by arm.
    """
    clock = state.clock
    m = spent.size
    luck, shared_normal, reward = np.empty(m), np.empty(m), np.empty(m)
    number = -1
    results = 0
    while clock[OVER] == 0 and results < most:
        if clock[PASS] != number:
            number = clock[PASS]
            for i in range(m):
                luck[i] = rng.random()
                shared_normal[i] = rng.standard_normal()
        arm = clock[TURN]
        draw(world, rng, arm, luck, shared_normal, reward)
        spent[state.order[clock[POSITION]]] += 1
        pulls[arm] += 1
        observe(state, arm, reward)
        results += 1
    return results


class Futures(NamedTuple):
    """What some futures gave."""

    ends: Counts  # (runs,) results
    spent: Counts  # (runs, m) by objective being settled
    pulls: Counts  # (runs, K)
    winners: Counts  # (runs,)


def play(
    policy: "LexElimTol", beliefs: "Beliefs", runs: int, seed: int, most: int, until: float = math.inf
) -> Futures:
    """Futures 0 .. runs − 1, each a function of (seed, its number) alone; fewer if `until` comes before."""
    K, m = policy.max_arms, policy.n_objectives
    found = Futures(
        np.zeros(runs, np.int64),
        np.zeros((runs, m), np.int64),
        np.zeros((runs, K), np.int64),
        np.zeros(runs, np.int64),
    )

    def one(run: int) -> None:
        rng = stream(seed, run)
        world = beliefs.world(rng)
        future = copy.copy(policy)
        found.ends[run] = play_on(future.state, world, rng, most, found.spent[run], found.pulls[run])
        found.winners[run] = future.recommendation

    play_on = entry(go_on, bulk=True, fixed=True, rehearsal="forecast")
    one(0)  # compiled once, before the threads
    if until < math.inf:
        done = 1
        while done < runs and time.monotonic() < until:
            one(done)
            done += 1
        return Futures(*(column[:done] for column in found))
    with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
        list(pool.map(one, range(1, runs)))
    return found
