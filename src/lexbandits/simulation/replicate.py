"""Replications at full speed, kept in O(K) numbers each: with a screen, by sums or pull by pull."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts
from lexbandits.jit import kernel
from lexbandits.policies.policy import Policy
from lexbandits.simulation.screen import desk_for, screened_loop
from lexbandits.simulation.sums import Tally, sum_loop
from lexbandits.simulation.trajectory import CHUNK, check_match, play
from lexbandits.world.instance import Instance
from lexbandits.world.noise import stream, world

PER_PULL, SUMS = "per pull", "sums"  # what one draw of the noise stands for
CALL = 1 << 22  # rounds per compiled call with a screen: Ctrl-C is answered within a tenth of a second


Advance = Callable[[Policy, np.random.Generator, int, int, Tally], int]


class Runs(NamedTuple):
    """Replications of one cell, one row each."""

    replication: Counts  # (R,) ascending
    rounds: Counts  # (R,) pulls made
    stopped: NDArray[np.bool_]  # (R,)
    recommendation: Counts  # (R,)
    active: NDArray[np.bool_]  # (R, K) the candidates
    left: Counts  # (R, K, 3) round (0 for never), objective and rival of each elimination
    pulls: Counts  # (R, K)
    pulls_at: Counts  # (R, C, K) at the recording rounds, zero after the end

    def rows(self, which: Any) -> Self:
        """Some of the replications."""
        return type(self)(*(column[which] for column in self))

    @classmethod
    def blank(cls, replication: Counts, n_arms: int, n_checkpoints: int) -> Self:
        """Nothing has happened in these replications."""
        n, K = replication.size, n_arms
        shapes = (n,), (n,), (n,), (n, K), (n, K, 3), (n, K), (n, n_checkpoints, K)
        kinds = (np.int64, np.bool_, np.int64, np.bool_, np.int64, np.int64, np.int64)
        return cls(replication, *map(np.zeros, shapes, kinds))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """All parts, in order of replication."""
        whole = cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return whole.rows(np.argsort(whole.replication))


def replicate(
    policy: Policy,
    instance: Instance,
    *,
    horizon: int,
    seed: int,
    first: int,
    count: int,
    cancelled: Callable[[], bool] = lambda: False,
) -> Runs:
    """Replications first .. first + count − 1; each ends when finished or after `horizon` pulls."""
    check_match(policy, instance)
    advance, anew = engine(policy, instance), renewal(policy)
    checkpoints = recording_rounds(policy, horizon)
    runs = Runs.blank(np.arange(first, first + count), policy.n_arms, checkpoints.size)
    # made one after the other they take a third of what each would take between two runs
    streams = [stream(seed, replication) for replication in range(first, first + count)]
    for row, rng in enumerate(streams):
        run = anew()
        run.start_run(seed, first + row)
        tally = Tally(checkpoints, runs.pulls[row], runs.pulls_at[row])
        rounds, finished = 0, run.finished
        while rounds < horizon and not finished:
            if cancelled():
                raise InterruptedError("the sweep was cancelled")
            rounds += advance(run, rng, rounds, horizon, tally)
            finished = run.finished
        runs.rounds[row], runs.stopped[row] = rounds, finished
        runs.recommendation[row] = run.recommendation
        runs.active[row], runs.left[row] = run.state.arms.active, run.state.arms.left
    return runs


def recording_rounds(policy: Policy, horizon: int) -> Counts:
    """Rounds after which pulls are written down: those of two digits, 1, 2, … 99, 100, 110, …

    The end of a run is kept apart. None where elimination rounds tell the rest.
    """
    if policy.round_robin or horizon == 0:
        return np.empty(0, np.int64)
    decades = (digits * 10**power for power in range(len(str(horizon)) - 1) for digits in range(10, 100))
    return np.array([rounds for rounds in (*range(1, 10), *decades) if rounds <= horizon], np.int64)


def renewal(policy: Policy) -> Callable[[], Policy]:
    """A function that gives a policy with these settings and an empty history; the last one given is lost.

    Making one takes as long as thousands of pulls. Where all that it holds is numbers and arrays, the
    same one is put back to its first moment instead.
    """
    run = policy.fresh()
    first = dict(vars(run))
    try:
        arrays = [(array, array.copy()) for name, value in first.items() for array in _arrays(name, value)]
    except TypeError:
        return policy.fresh

    def anew() -> Policy:
        vars(run).clear()
        vars(run).update(first)
        for array, values in arrays:
            array[...] = values
        return run

    return anew


def _arrays(name: str, value: Any) -> Iterator[NDArray[Any]]:
    """The arrays inside an attribute of a policy that may change; a TypeError where something else may."""
    if isinstance(value, tuple):
        for part in value:
            yield from _arrays(name, part)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        if value.flags.writeable:
            yield value
    elif name != "_settings" and not isinstance(value, (int, float, str, bytes, np.generic, type(None))):
        raise TypeError(f"{name} may change during a run")


def noise_stream(policy: Policy, instance: Instance) -> str:
    """PER_PULL: the noise `simulate` draws. SUMS: that of many pulls as one number."""
    sums_do = policy.rules.batch is not None and policy.rules.observe_sum is not None
    return SUMS if sums_do and _gaussian(instance) else PER_PULL


def engine(policy: Policy, instance: Instance) -> Advance:
    """The fastest way to play on: (run, rng, rounds made, horizon, tally) -> rounds made now.

    Working arrays belong to the engine: one for each thread.
    """
    if noise_stream(policy, instance) == SUMS:
        loop, drawn = sum_loop(policy.rules), world(instance)
        return lambda run, rng, rounds, horizon, tally: loop(run.state, drawn, rng, rounds, horizon, tally)
    if policy.round_robin and policy.rules.quiet_band is not None and _gaussian(instance):
        return _screened(policy, instance)
    return partial(_by_pulls, instance)


def _gaussian(instance: Instance) -> bool:
    return isinstance(instance.noise, str) and instance.noise == "gaussian"


def _screened(policy: Policy, instance: Instance) -> Advance:
    loop, drawn = screened_loop(policy.rules), world(instance)
    desk = desk_for(policy.n_arms, policy.n_objectives)

    def advance(run: Policy, rng: np.random.Generator, rounds: int, horizon: int, tally: Tally) -> int:
        made = loop(run.state, drawn, rng, desk, min(CALL, horizon - rounds))
        tally.pulls[:] = run.state.arms.pulls
        return made

    return advance


def _by_pulls(
    instance: Instance, run: Policy, rng: np.random.Generator, rounds: int, horizon: int, tally: Tally
) -> int:
    arms = np.empty(min(CHUNK, horizon - rounds), np.int64)
    made = play(run, instance, rng, arms)
    count_pulls(arms[:made], rounds, tally)
    return made


@kernel
def count_pulls(arms: Counts, rounds: int, tally: Tally) -> None:
    """Add the arms played in rounds + 1, rounds + 2, …"""
    following = np.searchsorted(tally.checkpoints, rounds + 1)
    for t in range(arms.size):
        tally.pulls[arms[t]] += 1
        if following < tally.checkpoints.size and tally.checkpoints[following] == rounds + t + 1:
            tally.pulls_at[following] = tally.pulls
            following += 1
