"""Futures of a study: the same policy goes on from a copy of its state, in worlds that may be true.

A list is played on to its end at the latest, each item once. In a pass the arms may share their luck, as
prompts that are hard for all do. Luck is shared between arms, not between objectives, judged one at a time.
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
from lexbandits.policies.tol.judgement import close_pass, desk_of, members, take_pass
from lexbandits.policies.tol.list_asking import ask
from lexbandits.policies.tol.list_folding import take
from lexbandits.policies.tol.list_policy import ListTol
from lexbandits.policies.tol.listed import Listed
from lexbandits.policies.tol.state import OVER, PASS, POSITION, State
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
    clock, order, desk, m = state.clock, state.order, desk_of(state), spent.size
    luck, shared_normal, reward = np.empty(m), np.empty(m), np.empty(m)
    asked, drawn = np.empty(pulls.size, np.int64), np.empty((1, pulls.size, m))
    number = -1
    results = 0
    while clock[OVER] == 0 and results < most:
        if clock[PASS] != number:
            number = clock[PASS]
            for i in range(m):
                luck[i] = rng.random()
                shared_normal[i] = rng.standard_normal()
        some = min(members(desk, asked), most - results)
        for k in range(some):
            draw(world, rng, asked[k], luck, shared_normal, reward)
            drawn[0, asked[k]] = reward
            pulls[asked[k]] += 1
        spent[order[clock[POSITION]]] += some
        results += some
        if take_pass(desk, drawn, 0, some):
            close_pass(state)
    return results


@kernel
def go_on_list(
    state: State,
    listed: Listed,
    world: World,
    rng: np.random.Generator,
    luck: Vector,
    shared_normal: Vector,
    most: int,
    spent: Counts,
    pulls: Counts,
) -> int:
    """The same of a list, which has an end: (N, m) luck by position."""
    nobody, nothing = np.zeros(pulls.size + 1, np.int64), np.empty(0, np.int64)
    place, reward = np.empty((1, 2), np.int64), np.empty(spent.size)
    results = 0
    while state.clock[OVER] == 0 and results < most and ask(state, listed, nobody, nothing, place) == 1:
        arm, position = place[0, 0], place[0, 1]
        draw(world, rng, arm, luck[position], shared_normal[position], reward)
        spent[state.order[state.clock[POSITION]]] += 1
        pulls[arm] += 1
        take(state, listed, arm, position, reward)
        results += 1
    return results


def luck_of(world: World, table: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """(N, m) uniform and normal luck of the items of a list, given (K, N, m) what is known of them.

    An arm that catches up meets items on which others were measured: it shares the luck these had there.
    """
    n_arms, n, m = table.shape
    luck, normal = rng.random((n, m)), rng.standard_normal((n, m))
    for i in range(m):
        share, how = float(world.shared[i]), world.draws[i]
        for arm in range(n_arms) if share > 0.0 and how != FIXED else ():
            at = np.flatnonzero(~np.isnan(table[arm, :, i]))
            values, mean = table[arm, at, i], world.means[arm, i]
            if how == NORMAL:
                z = (values - mean) / max(world.sds[arm, i], 1e-300)
                normal[at, i] = math.sqrt(share) * z + math.sqrt(1.0 - share) * rng.standard_normal(at.size)
                continue
            if how == COIN:
                low, high = world.ends[i]
                ones = (mean - low) / (high - low)
                is_one, u = values > (low + high) / 2, rng.random(at.size)
                found = np.where(is_one, u * ones, ones + u * (1.0 - ones))
            else:
                size = world.tables.shape[2]
                found = np.searchsorted(world.tables[arm, i], values) + rng.random(at.size)
                found = np.minimum(found / size, 1.0 - 1e-12)
            shares = rng.random(at.size) < math.sqrt(share)
            luck[at[shares], i] = found[shares]
    return luck, normal


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
        future, counted = copy.copy(policy), (found.spent[run], found.pulls[run])
        if isinstance(future, ListTol):
            luck = luck_of(world, future.listed.table, rng)
            found.ends[run] = play_list(future.state, future.listed, world, rng, *luck, most, *counted)
        else:
            found.ends[run] = play_on(future.state, world, rng, most, *counted)
        found.winners[run] = future.recommendation

    play_on = entry(go_on, bulk=True, fixed=True, rehearsal="forecast")
    play_list = entry(go_on_list, bulk=True, fixed=True, rehearsal="list_forecast")
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
