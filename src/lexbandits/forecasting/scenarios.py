"""Futures of a study: the same policy continues from a copy of its state, in scenarios of the posterior.

A list is played on to its end at the latest, each item once. In a pass the arms may share their luck, as
prompts that are hard for all do. Luck is shared between arms, not between objectives, judged one at a time.
"""

import copy
import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry, kernel
from lexbandits.environments.noise import stream
from lexbandits.policies.tolerance.acceptable import acceptable_arms
from lexbandits.policies.tolerance.finite.finite_asking import ask
from lexbandits.policies.tolerance.finite.finite_folding import take
from lexbandits.policies.tolerance.finite.finite_policy import FiniteLexElimTol
from lexbandits.policies.tolerance.finite.finite_state import FinitePopulation
from lexbandits.policies.tolerance.passes import close_pass, members, pass_arrays, take_pass
from lexbandits.policies.tolerance.state import OFFERED, OVER, PASS, POSITION, State

if TYPE_CHECKING:
    from lexbandits.forecasting.posterior import Posterior
    from lexbandits.policies.tolerance.lexelim_tol import LexElimTol


class Draw(IntEnum):
    """How the values of an objective are drawn."""

    NORMAL = 0
    COIN = 1  # one of two ends
    TABLE = 2  # from quantiles
    FIXED = 3  # always the same


# Plain integers for kernels: see policies/tolerance/state.py.
NORMAL, COIN, TABLE, FIXED = map(int, Draw)


class Scenario(NamedTuple):
    """A possible truth, larger is better. K arms, m objectives, q quantiles."""

    draws: Counts  # (m,) see `Draw`
    means: Vector  # (K, m)
    sds: Vector  # (K, m) of normal values
    ends: Vector  # (m, 2) the two values of a coin
    tables: Vector  # (K, m, q) quantiles, in order
    shared: Vector  # (m,) correlation of two arms in a pass
    missing: Vector  # (K, m) how often a value is missing


@kernel
def draw(
    scenario: Scenario,
    rng: np.random.Generator,
    arm: int,
    luck: Vector,
    shared_normal: Vector,
    reward: Vector,
) -> None:
    """Fill `reward` with the values of an arm in a pass with this luck."""
    for i in range(reward.size):
        how, share = scenario.draws[i], scenario.shared[i]
        if how == NORMAL:
            z = math.sqrt(share) * shared_normal[i] + math.sqrt(1.0 - share) * rng.standard_normal()
            reward[i] = scenario.means[arm, i] + scenario.sds[arm, i] * z
        elif how == FIXED:
            reward[i] = scenario.means[arm, i]
        else:
            u = luck[i] if rng.random() < math.sqrt(share) else rng.random()
            if how == COIN:
                low, high = scenario.ends[i, 0], scenario.ends[i, 1]
                reward[i] = high if u * (high - low) < scenario.means[arm, i] - low else low
            else:
                reward[i] = scenario.tables[arm, i, int(u * scenario.tables.shape[2])]
        if scenario.missing[arm, i] > 0.0 and rng.random() < scenario.missing[arm, i]:
            reward[i] = math.nan


@kernel
def play_scenario(
    state: State, scenario: Scenario, rng: np.random.Generator, most: int, spent: Counts, pulls: Counts
) -> int:
    """Measure until the end or for `most` results, and count them.

    `spent` (m,) counts results by the objective being settled, `pulls` (K,) by arm.
    """
    clock, order, arrays, m = state.clock, state.order, pass_arrays(state), spent.size
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
        some = min(members(arrays, asked), most - results)
        for k in range(some):
            draw(scenario, rng, asked[k], luck, shared_normal, reward)
            drawn[0, asked[k]] = reward
            pulls[asked[k]] += 1
        spent[order[clock[POSITION]]] += some
        results += some
        if take_pass(arrays, drawn, 0, some):
            close_pass(state)
    return results


@kernel
def play_finite_scenario(
    state: State,
    population: FinitePopulation,
    scenario: Scenario,
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
    while state.clock[OVER] == 0 and results < most and ask(state, population, nobody, nothing, place) == 1:
        arm, position = place[0, 0], place[0, 1]
        draw(scenario, rng, arm, luck[position], shared_normal[position], reward)
        spent[state.order[state.clock[POSITION]]] += 1
        pulls[arm] += 1
        take(state, population, arm, position, reward)
        results += 1
    return results


def luck_of(scenario: Scenario, table: Vector, rng: np.random.Generator) -> tuple[Vector, Vector]:
    """(N, m) uniform and normal luck of the items of a list, given (K, N, m) what is known of them.

    An arm that catches up meets items on which others were measured: it shares the luck these had there.
    """
    n_arms, n, m = table.shape
    luck, normal = rng.random((n, m)), rng.standard_normal((n, m))
    for i in range(m):
        share, how = float(scenario.shared[i]), scenario.draws[i]
        for arm in range(n_arms) if share > 0.0 and how != FIXED else ():
            at = np.flatnonzero(~np.isnan(table[arm, :, i]))
            values, mean = table[arm, at, i], scenario.means[arm, i]
            if how == NORMAL:
                z = (values - mean) / max(scenario.sds[arm, i], 1e-300)
                normal[at, i] = math.sqrt(share) * z + math.sqrt(1.0 - share) * rng.standard_normal(at.size)
                continue
            if how == COIN:
                low, high = scenario.ends[i]
                ones = (mean - low) / (high - low)
                is_one, u = values > (low + high) / 2, rng.random(at.size)
                found = np.where(is_one, u * ones, ones + u * (1.0 - ones))
            else:
                size = scenario.tables.shape[2]
                found = np.searchsorted(scenario.tables[arm, i], values) + rng.random(at.size)
                found = np.minimum(found / size, 1.0 - 1e-12)
            shares = rng.random(at.size) < math.sqrt(share)
            luck[at[shares], i] = found[shares]
    return luck, normal


ENOUGH = 30  # futures: would one in ten end before the cap, the first 30 missed them all in 4 % of cases


class Futures(NamedTuple):
    """What some futures gave."""

    ends: Counts  # (runs,) results
    spent: Counts  # (runs, m) by objective being settled
    pulls: Counts  # (runs, K)
    winners: Counts  # (runs,)
    worse: Counts  # (runs,) results of arms that are worse than may be given up


def play(
    policy: "LexElimTol", posterior: "Posterior", runs: int, seed: int, most: int, until: float = math.inf
) -> Futures:
    """Futures 0 .. runs − 1, each a function of (seed, its number) alone.

    Fewer if `until` comes before, or if the first were all given up after `most` results.
    """
    K, m = policy.max_arms, policy.n_objectives
    found = Futures(
        np.zeros(runs, np.int64),
        np.zeros((runs, m), np.int64),
        np.zeros((runs, K), np.int64),
        np.zeros(runs, np.int64),
        np.zeros(runs, np.int64),
    )

    offered = policy.state.masks[OFFERED]

    def one(run: int) -> None:
        rng = stream(seed, run)
        scenario = posterior.scenario(rng)
        future, counted = copy.copy(policy), (found.spent[run], found.pulls[run])
        if isinstance(future, FiniteLexElimTol):
            luck = luck_of(scenario, future.population.table, rng)
            found.ends[run] = play_finite(
                future.state, future.population, scenario, rng, *luck, most, *counted
            )
        else:
            found.ends[run] = play_infinite(future.state, scenario, rng, most, *counted)
        found.winners[run] = future.recommendation
        found.worse[run] = found.pulls[run, offered & ~acceptable_arms(policy.state, scenario.means)].sum()

    play_infinite = entry(play_scenario, bulk=True, of_studies=True)
    play_finite = entry(play_finite_scenario, bulk=True, of_studies=True)

    def are_given_up(done: int) -> bool:
        return done == min(ENOUGH, runs) and bool(found.ends[:done].min() >= most)

    one(0)  # compiled once, before the threads
    done = 1
    if until < math.inf:
        while done < runs and time.monotonic() < until and not are_given_up(done):
            one(done)
            done += 1
    else:
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            for end in (min(ENOUGH, runs), runs):
                if not are_given_up(done):
                    list(pool.map(one, range(done, end)))
                    done = end
    return Futures(*(column[:done] for column in found))
