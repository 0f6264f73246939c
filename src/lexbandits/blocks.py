"""One replication at full speed: what `simulate` does, without keeping the arms played."""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from lexbandits.instance import Instance
from lexbandits.jit import kernel
from lexbandits.policies.base import Counts, Policy
from lexbandits.simulate import CHUNK, play, prepared, stream

PER_PULL, SUMS = "per pull", "sums"  # what a draw of Gaussian noise stands for


class Run(NamedTuple):
    """How one replication ended; O(K) numbers."""

    rounds: int
    stopped: bool
    recommendation: int
    active: NDArray[np.bool_]  # (K,) the candidates
    left: Counts  # (K, 3) round (0 for never), objective and rival of each elimination
    pulls: Counts  # (K,)
    pulls_at: Counts  # (checkpoints, K); rows after the end are zero


class Runs(NamedTuple):
    """The replications of one cell: O(K) numbers each."""

    replication: Counts  # (R,) ascending
    rounds: Counts  # (R,) pulls made
    stopped: NDArray[np.bool_]  # (R,)
    recommendation: Counts  # (R,)
    active: NDArray[np.bool_]  # (R, K) the candidates
    left: Counts  # (R, K, 3) round (0 for never), objective and rival of each elimination
    pulls: Counts  # (R, K)
    pulls_at: Counts  # (R, C, K) at the recording rounds, zero after the end

    @classmethod
    def gathered(cls, first: int, runs: list[Run]) -> Self:
        """The replications first, first + 1, … side by side."""
        columns = zip(*runs, strict=True)
        return cls(np.arange(first, first + len(runs)), *(np.array(column) for column in columns))

    def rows(self, which: Any) -> Self:
        """Some of the replications."""
        return type(self)(*(column[which] for column in self))

    @classmethod
    def joined(cls, parts: list[Self]) -> Self:
        """All parts, in order of replication."""
        whole = cls(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
        return whole.rows(np.argsort(whole.replication))


def run(
    policy: Policy,
    instance: Instance,
    *,
    horizon: int,
    seed: int,
    replication: int,
    checkpoints: Counts,
) -> Run:
    """Run a fresh copy of `policy` until it is finished or `horizon` pulls are made."""
    copy = prepared(policy, instance, seed, replication)
    rng = stream(seed, replication)
    pulls = np.zeros(policy.n_arms, np.int64)
    pulls_at = np.zeros((checkpoints.size, policy.n_arms), np.int64)
    rounds = 0
    arms = np.empty(min(CHUNK, horizon), np.int64)
    while rounds < horizon and not copy.finished:
        made = play(copy, instance, rng, arms[: horizon - rounds])
        count(arms[:made], rounds, pulls, checkpoints, pulls_at)
        rounds += made
    active = np.zeros(policy.n_arms, np.bool_)
    active[list(copy.candidates)] = True
    left = np.zeros((policy.n_arms, 3), np.int64)
    for arm, *how in copy.eliminations:
        left[arm] = how
    return Run(rounds, copy.finished, copy.recommendation, active, left, pulls, pulls_at)


def recording_rounds(policy: Policy, horizon: int) -> Counts:
    """The rounds after which pulls are written down: none where elimination rounds tell them all."""
    if policy.round_robin or horizon == 0:
        return np.empty(0, np.int64)
    return np.unique(np.rint(np.geomspace(1, horizon, 128)).astype(np.int64))


@kernel
def count(arms: Counts, rounds: int, pulls: Counts, checkpoints: Counts, pulls_at: Counts) -> None:
    """Add the pulls of rounds + 1, rounds + 2, … to `pulls`, with a copy at each checkpoint."""
    following = np.searchsorted(checkpoints, rounds + 1)
    for t in range(arms.size):
        pulls[arms[t]] += 1
        if following < checkpoints.size and checkpoints[following] == rounds + t + 1:
            pulls_at[following] = pulls
            following += 1
