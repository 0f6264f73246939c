"""Replications at full speed, kept in O(K) numbers each: with a screen, by sums or pull by pull."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts
from lexbandits._jit import entry, kernel
from lexbandits.environments.instance import Distribution, Instance
from lexbandits.environments.noise import reward_model, stream, stream_words, words_of
from lexbandits.policies.policy import Policy
from lexbandits.simulation.queue import in_one_piece, queue_for, screened_runs
from lexbandits.simulation.screen import scratch_for
from lexbandits.simulation.sums import PullCounts, sum_loop
from lexbandits.simulation.trajectory import CHUNK, check_match, play

PER_PULL, SUMS = "per pull", "sums"  # what one draw of the noise stands for
KEPT = 1 << 22  # bytes of what runs end with, held until they are read
CALL = 1 << 22  # rounds per compiled call with a screen: Ctrl-C is answered within a tenth of a second


Advance = Callable[[Policy, np.random.Generator, int, int, PullCounts], int]
Ends = Iterator[tuple[Policy, int]]  # a policy at the end of each run, with the rounds made
Engine = Callable[[Policy, Instance, int, int, "Runs", Callable[[], bool]], Ends]


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
    runs = Runs.blank(np.arange(first, first + count), policy.n_arms, recording_rounds(policy, horizon).size)
    ends = engine(policy, instance)(policy, instance, horizon, seed, runs, cancelled)
    for row, (run, rounds) in enumerate(ends):
        runs.rounds[row], runs.stopped[row] = rounds, rounds < horizon or run.finished
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


def is_renewable(policy: Policy) -> bool:
    """Whether all runs begin with the same arrays, and nothing else may change in them."""
    try:
        for name, value in vars(policy).items():
            list(_arrays(name, value))
    except TypeError:
        return False
    return type(policy).start_run is Policy.start_run


def noise_stream(policy: Policy, instance: Instance) -> str:
    """PER_PULL: the noise `simulate` draws. SUMS: that of many pulls as one number."""
    return SUMS if policy.by_sums and _gaussian(instance) else PER_PULL


def engine(policy: Policy, instance: Instance) -> Engine:
    """The fastest way to play: (policy, instance, horizon, seed, blank runs, cancelled) -> their ends."""
    if noise_stream(policy, instance) == SUMS:
        loop, drawn = sum_loop(policy.rules), reward_model(instance)
        return partial(_one_by_one, lambda run, *how: loop(run.state, drawn, *how))
    if policy.round_robin and policy.rules.quiet_band is not None and _gaussian(instance):
        return partial(_on_screen, screened_runs(policy.rules))
    return partial(_one_by_one, partial(_by_pulls, instance))


def _one_by_one(
    advance: Advance,
    policy: Policy,
    instance: Instance,
    horizon: int,
    seed: int,
    runs: Runs,
    cancelled: Callable[[], bool],
) -> Ends:
    anew, checkpoints = renewal(policy), recording_rounds(policy, horizon)
    replications = runs.replication.tolist()
    # made one after the other they take a third of what each would take between two runs
    streams = [stream(seed, replication) for replication in replications]
    for row, rng in enumerate(streams):
        run = anew()
        run.start_run(seed, replications[row])
        tally = PullCounts(checkpoints, runs.pulls[row], runs.pulls_at[row])
        rounds = 0
        while rounds < horizon and not run.finished:
            check_not(cancelled)
            rounds += advance(run, rng, rounds, horizon, tally)
        yield run, rounds


def _on_screen(
    loop: Callable[..., int],
    policy: Policy,
    instance: Instance,
    horizon: int,
    seed: int,
    runs: Runs,
    cancelled: Callable[[], bool],
) -> Ends:
    drawn, rng = reward_model(instance), stream(seed, 0)
    scratch = scratch_for(policy.n_arms, policy.n_objectives)
    renewable, replications, row = is_renewable(policy), runs.replication.tolist(), 0
    while row < len(replications):
        run = policy.fresh()
        run.start_run(seed, replications[row])
        run.state, memory = in_one_piece(run.state)
        some = max(1, KEPT // memory.nbytes) if renewable else 1
        starts = stream_words(seed, replications[row : row + some])
        queue, played = queue_for(memory, words_of(rng), starts), 0
        while played < len(starts):
            check_not(cancelled)
            played = loop(run.state, drawn, rng, scratch, queue, played, horizon, CALL)
        for rounds, after in zip(queue.rounds.tolist(), queue.after, strict=True):
            memory[:] = after
            runs.pulls[row] = run.state.arms.pulls
            yield run, rounds
            row += 1


def check_not(cancelled: Callable[[], bool]) -> None:
    """Stop here if somebody has cancelled the sweep."""
    if cancelled():
        raise InterruptedError("the sweep was cancelled")


def _gaussian(instance: Instance) -> bool:
    return isinstance(instance.noise, str) and instance.noise == Distribution.GAUSSIAN


def _by_pulls(
    instance: Instance, run: Policy, rng: np.random.Generator, rounds: int, horizon: int, tally: PullCounts
) -> int:
    arms = np.empty(min(CHUNK, horizon - rounds), np.int64)
    made = play(run, instance, rng, arms)
    entry(count_pulls, bulk=True)(arms[:made], rounds, tally)
    return made


@kernel
def count_pulls(arms: Counts, rounds: int, tally: PullCounts) -> None:
    """Add the arms played in rounds + 1, rounds + 2, …"""
    following = np.searchsorted(tally.checkpoints, rounds + 1)
    for t in range(arms.size):
        tally.pulls[arms[t]] += 1
        if following < tally.checkpoints.size and tally.checkpoints[following] == rounds + t + 1:
            tally.pulls_at[following] = tally.pulls
            following += 1
