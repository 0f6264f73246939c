"""What LexDMED and LexIMED share: how plausible each arm still is, and pulls planned until the next decision.

The evidence against arm p by a witness b is Z_pb = ½·h·dist²(μ̂_p − μ̂_b, C_λ) with h = n_p·n_b/(n_p + n_b),
distances in units of the noise: the least log likelihood ratio at which p may be optimal beside b. E_p is the
largest Z_pb. Every arm is a witness, not only the leader. A policy's own rule, which pulls come next, is
handed in as a function.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits._validation import each_objective
from lexbandits.evidence.tradeoff_cone import squared_distance
from lexbandits.policies.base import Arms, add_reward, add_rewards, fewest_pulls
from lexbandits.policies.policy import Policy

BLOCK = 50  # the leader alone is pulled n/50 times before the next decision
EXACT = 1e-9  # relative to its means: the least standard deviation that is estimated


class Contest(NamedTuple):
    """The arms, the evidence against each of them, and the pulls that are planned."""

    arms: Arms
    wanted: Counts  # (K,) pulls each arm still lacks before the next decision
    lacking: Counts  # (1,) their number
    leader: Counts  # (1,) the arm with the least evidence against it; −1 before the first decision
    stale: NDArray[np.bool_]  # (K,) who has results that `pairs` does not know
    pairs: Vector  # (K, K) Z: the evidence against the row's arm by the column's
    evidence: Vector  # (K,) E
    squares: Vector  # (m,) Σ(r − mean of its arm)² of all rewards, where the noise is unknown
    weights: Vector  # (m,) 1/σ²
    difference: Vector  # (m,) room to work in
    levels: Vector  # (m,) likewise
    known: bool  # whether σ is
    tradeoff: float  # λ with its slack
    caution: float
    loglog: float


def first_contest(
    arms: Arms,
    *,
    tradeoff: float,
    noise_sd: ArrayLike | None,
    first: int,
    caution: float = 1.0,
    loglog: float = 0.0,
) -> Contest:
    """Return a contest in which every arm is to be pulled `first` times."""
    n_arms, m = arms.means.shape
    sds = each_objective(1.0 if noise_sd is None else noise_sd, m)
    if noise_sd is None and first < 2:
        raise ValueError(f"first must be at least 2 where noise_sd is estimated, got {first}")
    if not np.all((sds >= 1e-50) & (sds <= 1e50)) or tradeoff > 1e50:
        raise ValueError(
            "noise_sd must be between 1e-50 and 1e50, and tradeoff with its slack at most 1e50, "
            f"got tradeoff {tradeoff} and noise_sd {sds.tolist()}"
        )
    return Contest(
        arms,
        wanted=np.full(n_arms, first, np.int64),
        lacking=np.full(1, n_arms * first, np.int64),
        leader=np.full(1, -1, np.int64),
        stale=np.ones(n_arms, np.bool_),
        pairs=np.zeros((n_arms, n_arms)),
        evidence=np.zeros(n_arms),
        squares=np.zeros(m),
        weights=1.0 / (sds * sds),
        difference=np.zeros(m),
        levels=np.zeros(m),
        known=noise_sd is not None,
        tradeoff=float(tradeoff),
        caution=caution,
        loglog=loglog,
    )


# --- evidence


@kernel
def estimate_noise(contest: Contest) -> None:
    """Take 1/σ² from the variance within arms, pooled over all of them."""
    means, freedom = contest.arms.means, contest.arms.told[0] - contest.arms.pulls.size
    for i in range(means.shape[1]):
        largest = 1e-50
        for arm in range(means.shape[0]):
            largest = max(largest, EXACT * abs(means[arm, i]))
        contest.weights[i] = 1.0 / max(contest.squares[i] / freedom, largest * largest)
    contest.stale[:] = True


@kernel
def weigh_arms(contest: Contest) -> None:
    """Bring the evidence up to date, pair by pair, and find the leader: of equals the most pulled."""
    pulls, means, pairs = contest.arms.pulls, contest.arms.means, contest.pairs
    difference, levels, weights = contest.difference, contest.levels, contest.weights
    stale, evidence, tradeoff = contest.stale, contest.evidence, contest.tradeoff
    K, m = means.shape
    if not contest.known:
        estimate_noise(contest)
    leader = -1
    for arm in range(K):
        most = 0.0
        for b in range(K):
            # A distance to C_λ is the dear part: those of pairs without new results are kept.
            if arm != b and (stale[arm] or stale[b]):
                # the cheapest way to move two means until their difference has moved by d costs
                # ½·n·n'/(n + n')·d² in nats
                half = 0.5 * pulls[arm] * pulls[b] / (pulls[arm] + pulls[b])
                for i in range(m):
                    difference[i] = means[arm, i] - means[b, i]
                pairs[arm, b] = half * squared_distance(difference, weights, tradeoff, levels)
            most = max(most, pairs[arm, b])
        evidence[arm] = most
        if leader < 0 or most < evidence[leader] or (most == evidence[leader] and pulls[arm] > pulls[leader]):
            leader = arm
    stale[:] = False
    contest.leader[0] = leader


# --- plans


@kernel
def plan(contest: Contest, arm: int) -> None:
    """Ask for one more pull of `arm`; for a block if it is the leader, alone."""
    # A decision looks at K² pairs, which is dearer than a pull. While only the leader is plausible it is
    # pulled n/50 times at once: pulls of the best arm cost no regret.
    count = 1
    if arm == contest.leader[0] and contest.lacking[0] == 0:
        count = max(1, contest.arms.pulls[arm] // BLOCK)
    contest.wanted[arm] = count
    contest.lacking[0] += count


@kernel
def plan_pass(contest: Contest) -> None:
    """Ask for one pull of the leader and of every arm p with E_p ≤ f(t) − (1 − caution)·log n_p.

    f(t) = log t + loglog·log log t. Where nobody else is plausible the leader gets a block.
    """
    weigh_arms(contest)
    pulls, leader = contest.arms.pulls, contest.leader[0]
    log_t = math.log(contest.arms.told[0])
    bar = log_t + contest.loglog * math.log(max(log_t, 1.0))
    for arm in range(pulls.size):
        if arm != leader and contest.evidence[arm] <= bar - (1.0 - contest.caution) * math.log(pulls[arm]):
            plan(contest, arm)
    plan(contest, leader)


@kernel
def choose_planned(contest: Contest, pending: Counts) -> int:
    """The arm that lacks most pulls, those in flight counted, lowest index; the leader if none lacks any."""
    chosen, most = -1, 0
    for arm in range(pending.size):
        lacks = contest.wanted[arm] - pending[arm]
        if lacks > most:
            chosen, most = arm, lacks
    if chosen >= 0:
        return chosen
    return int(contest.leader[0]) if contest.leader[0] >= 0 else fewest_pulls(contest.arms, pending)


@kernel(inline="always")
def count_planned(contest: Contest, arm: int, count: int, decide: Callable[[Contest], None]) -> None:
    """Count `count` results of `arm` towards the plan; when it is done, decide(contest) makes the next."""
    contest.stale[arm] = True
    filled = min(count, contest.wanted[arm])
    if filled > 0:
        contest.wanted[arm] -= filled
        contest.lacking[0] -= filled
        if contest.lacking[0] == 0:
            decide(contest)


@kernel(inline="always")
def observe_one(contest: Contest, arm: int, reward: Vector, decide: Callable[[Contest], None]) -> None:
    """Fold in one reward vector."""
    if not contest.known:
        n = float(contest.arms.pulls[arm])
        for i in range(reward.size):
            # Welford's update of the sum of squares about the mean; before `add_reward` moves that mean
            off = reward[i] - contest.arms.means[arm, i]
            contest.squares[i] += off * off * (n / (n + 1.0))
    add_reward(contest.arms, arm, reward)
    count_planned(contest, arm, 1, decide)


@kernel(inline="always")
def observe_many(
    contest: Contest, arm: int, count: int, sums: Vector, decide: Callable[[Contest], None]
) -> None:
    """Fold in `count` reward vectors that add up to `sums`; only where σ is known."""
    add_rewards(contest.arms, arm, count, sums)
    count_planned(contest, arm, count, decide)


@kernel
def planned(contest: Contest, counts: Counts) -> None:
    """The `batch` of a policy whose state is a contest: a pass, or a block of the leader."""
    counts[:] = contest.wanted


class PlausiblePolicy(Policy):
    """A policy whose state is a `Contest`. It never finishes; its recommendation is the leader."""

    state: Contest

    @property
    def by_sums(self) -> bool:
        """Sums are all it looks at where σ is known; else it needs every reward."""
        return self.state.known

    @property
    def evidence(self) -> Vector:
        """(K,) E_p at the last decision: how much less likely the results are if p is optimal, in nats."""
        return np.array(self.state.evidence)

    def best_guess(self) -> int:
        """The leader; before the first decision the largest mean on the first objective."""
        leader = int(self.state.leader[0])
        return leader if leader >= 0 else super().best_guess()
