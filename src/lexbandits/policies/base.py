"""What an algorithm is (`Rules` on a state) and what a user drives (`Policy`)."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel

NEVER = 2**62  # more pulls than any run has


class Left(IntEnum):
    """The columns of `Arms.left`."""

    LEFT_AT = 0  # the round of the elimination; 0 while active
    LEFT_ON = 1  # its objective
    LEFT_TO = 2  # and the rival


LEFT_AT, LEFT_ON, LEFT_TO = map(int, Left)  # for kernels: see tolerance/state.py


class Steps(NamedTuple):
    """The same as `choose` and `observe` of a policy whose state is large and which asks in passes.

    numba counts references to every array that a loop hands to a call: so a call takes a few, once a pass.

    Args:
        arrays: (state) -> the arrays that filling a pass touches.
        members: (arrays, arms) -> how many arms are asked next, 0 at the end; lists them in `arms`, in turn.
        take: (arrays, results, row, most) -> whether `close` is due, with results[row] of the first `most`.
        close: (state): does what is left of `observe`.
    """

    arrays: Callable[[Any], Any]
    members: Callable[[Any, Counts], int]
    take: Callable[[Any, Vector, int, int], bool]
    close: Callable[[Any], None]


class Rules(NamedTuple):
    """An algorithm. Each function is a kernel and takes the algorithm's own state first.

    The last four are for the simulator alone. `quiet_band` is of a round-robin policy; one that looks only
    at sums of fresh pulls offers `batch` and `observe_sum`, one of many arrays `steps`.

    Args:
        choose: (state, pending) -> arm; it changes nothing. pending (K,): pulls handed out and not yet told.
        observe: (state, arm, reward): folds in one reward vector.
        finished: (state) -> whether the answer is there.
        quiet_band: (state, pulls, band): fills band (m,) with the largest spread max − min of the active
            arms' means at which `observe` eliminates nobody and the policy does not finish, while the
            fewest pulls of an active arm are `pulls`; it never widens as they grow.
        batch: (state, counts): fills counts (K,) with the fresh pulls that arms are to have before the next
            decision, the same number for all that have any.
        observe_sum: (state, arm, count, sums): folds them in at once.
        steps: what the plain loop calls instead.

    >>> from lexbandits import RoundRobin
    >>> policy = RoundRobin(2, 1)
    >>> int(policy.rules.choose(policy.state, np.array([1, 0])))
    1
    """

    choose: Callable[[Any, Counts], int]
    observe: Callable[[Any, int, Vector], None]
    finished: Callable[[Any], bool]
    quiet_band: Callable[[Any, int, Vector], None] | None = None
    batch: Callable[[Any, Counts], None] | None = None
    observe_sum: Callable[[Any, int, int, Vector], None] | None = None
    steps: Steps | None = None


class Elimination(NamedTuple):
    """Who left when, on what, and by whom.

    Attributes:
        arm: who left.
        round: when, from 1, as the paper's t.
        objective: on which.
        rival: beaten by whom.

    >>> Elimination(arm=2, round=17, objective=0, rival=1).round
    17
    """

    arm: int
    round: int
    objective: int
    rival: int


class Arms(NamedTuple):
    """What every policy remembers of its arms. K arms, m objectives.

    Attributes:
        pulls: (K,) rewards told.
        sums: (K, m).
        means: (K, m) sums / pulls, kept so that no filter divides; 0 before the first pull.
        active: (K,) who is in the running.
        left: (K, 3) round (0 while active), objective and rival of the elimination.
        told: (1,) rewards told in all.

    >>> untried(3, 2).active.tolist()
    [True, True, True]
    """

    pulls: Counts  # (K,) rewards told
    sums: Vector  # (K, m)
    means: Vector  # (K, m) sums / pulls, kept so that no filter divides; 0 before the first pull
    active: NDArray[np.bool_]  # (K,)
    left: Counts  # (K, 3) see `Left`
    told: Counts  # (1,) rewards told in all


def untried(n_arms: int, n_objectives: int) -> Arms:
    """All arms active, none pulled.

    Args:
        n_arms, n_objectives: K and m.
    """
    return Arms(
        pulls=np.zeros(n_arms, np.int64),
        sums=np.zeros((n_arms, n_objectives)),
        means=np.zeros((n_arms, n_objectives)),
        active=np.ones(n_arms, np.bool_),
        left=np.zeros((n_arms, len(Left)), np.int64),
        told=np.zeros(1, np.int64),
    )


@kernel
def add_rewards(arms: Arms, arm: int, count: int, sums: Vector) -> None:
    """Fold `count` reward vectors that add up to `sums` into the statistics of `arm`.

    Sums rather than the recurrence on means, so that blocks and single pulls agree to the bit.
    """
    arms.told[0] += count
    n = arms.pulls[arm] + count
    arms.pulls[arm] = n
    for i in range(sums.size):
        total = arms.sums[arm, i] + sums[i]
        arms.sums[arm, i] = total
        arms.means[arm, i] = total / n


@kernel
def add_reward(arms: Arms, arm: int, reward: Vector) -> None:
    """Fold one reward vector into the statistics of an arm, Eq. (3).

    Args:
        arms: what is known of them.
        arm: whose reward.
        reward: (m,) the vector.
    """
    add_rewards(arms, arm, 1, reward)


@kernel
def observe_only(state: Any, arm: int, reward: Vector) -> None:
    """The `observe` of a policy that keeps nothing but its arms."""
    add_reward(state.arms, arm, reward)


@kernel
def never(state: Any) -> bool:
    """The `finished` of a policy that has no end."""
    return False


@kernel
def eliminate(arms: Arms, arm: int, round: int, objective: int, rival: int) -> None:
    """Take an arm out of the active set and note when, on which objective and by whom.

    Args:
        arms: what is known of them.
        arm: which leaves.
        round: when, from 1.
        objective: on which.
        rival: beaten by whom.
    """
    arms.active[arm] = False
    arms.left[arm, LEFT_AT] = round
    arms.left[arm, LEFT_ON] = objective
    arms.left[arm, LEFT_TO] = rival


@kernel
def fewest_among(pulls: Counts, pending: Counts, among: NDArray[np.bool_]) -> int:
    """The arm of `among` with the fewest pulls, those in flight included; the lowest index if several."""
    fewest = NEVER
    for arm in range(pulls.size):  # the least first, then who has it: the first loop is vectorised
        fewest = min(fewest, pulls[arm] + pending[arm] if among[arm] else NEVER)
    for arm in range(pulls.size):
        if among[arm] and pulls[arm] + pending[arm] == fewest:
            return arm
    return -1


@kernel
def fewest_pulls(arms: Arms, pending: Counts) -> int:
    """Return the active arm with the fewest pulls, those in flight included; the lowest index if several.

    Args:
        arms: what is known of them.
        pending: (K,) pulls handed out and not yet told.
    """
    return fewest_among(arms.pulls, pending, arms.active)


@kernel
def choose_fewest(state: Any, pending: Counts) -> int:
    """The `choose` of a policy that takes its arms in turn: argmax of any width that shrinks with pulls."""
    return fewest_pulls(state.arms, pending)


def ranked(arms: Arms, candidates: Iterable[int], objective: int) -> list[int]:
    """`candidates` from the largest mean on `objective` to the smallest; unpulled last, ties by index."""
    return sorted(candidates, key=lambda a: (arms.pulls[a] == 0, -arms.means[a, objective], a))
