"""One policy against one instance: where the learner meets the truth."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import fused
from lexbandits._validation import whole
from lexbandits.environments.instance import Instance
from lexbandits.environments.noise import DRAWS, Draw, RewardModel, reward_model, stream
from lexbandits.policies.base import Elimination, Rules, Steps
from lexbandits.policies.policy import Policy
from lexbandits.simulation.regret_curves import charges

LONGEST = 2**62  # rounds: sums of a few counts stay within 64 bits
CHUNK = 1 << 16  # rounds per compiled call: Ctrl-C is answered, and the horizon is never allocated


class Trajectory(NamedTuple):
    """What happened in one run.

    Attributes:
        arms: (rounds,) the arms played, in order.
        finished: whether the policy had its answer.
        candidates: the arms still in the running at the end.
        recommendation: the answer, or a guess.
        eliminations: who left when.

    >>> from lexbandits import Instance, RoundRobin
    >>> instance = Instance([[1.0], [0.5]])
    >>> run = simulate(RoundRobin(2, 1), instance, horizon=4, seed=0)
    >>> run.arms.tolist(), run.regret(instance)[-1].tolist()
    ([0, 1, 0, 1], [1.0])
    """

    arms: NDArray[np.integer[Any]]  # (rounds,)
    finished: bool
    candidates: tuple[int, ...]
    recommendation: int
    eliminations: tuple[Elimination, ...]

    @property
    def rounds(self) -> int:
        """Pulls made."""
        return int(self.arms.size)

    def regret(self, instance: Instance, kind: str = "general") -> Vector:
        """(rounds, m) R^i(t) in row t − 1 on `instance`; `kind` "general", the paper's, or "priority".

        The priority-based regret (Hüyük and Tekin) charges a round only at the first objective on
        which the arm differs from the lex-optimal one.
        """
        charged = charges(instance, kind)
        if self.arms.size and self.arms.max() >= len(charged):
            raise ValueError(f"the run has arm {self.arms.max()}, the instance only {len(charged)} arms")
        return np.cumsum(charged[self.arms], axis=0)


def simulate(
    policy: Policy, instance: Instance, *, horizon: int, seed: int, replication: int = 0
) -> Trajectory:
    """Run a fresh copy of a policy until it is finished.

    The same numbers as one replication of a sweep, to the bit. An answer is certified only where
    `finished` is True.

    Args:
        policy: in any state.
        instance: what is true.
        horizon: the most pulls.
        seed: of the sweep.
        replication: which of its runs.
    """
    horizon = whole("horizon", horizon, least=0, most=LONGEST)
    run = prepared(policy, instance, seed, replication)
    rng = stream(seed, replication)
    pieces = [np.empty(0, np.int32)]
    left = horizon
    while left > 0 and not run.finished:
        arms = np.empty(min(CHUNK, left), np.int64)
        rounds = play(run, instance, rng, arms)
        pieces.append(arms[:rounds].astype(np.int32))
        left -= rounds
    return Trajectory(
        np.concatenate(pieces), run.finished, run.candidates, run.recommendation, run.eliminations
    )


def prepared(policy: Policy, instance: Instance, seed: int, replication: int) -> Policy:
    """A fresh copy of `policy`, its own draws tied to the run, checked against the instance."""
    check_match(policy, instance)
    run = policy.fresh()
    run.start_run(whole("seed", seed, least=0), whole("replication", replication, least=0))
    return run


def check_match(policy: Policy, instance: Instance) -> None:
    """Policy and instance must have the same arms and objectives."""
    if not isinstance(policy, Policy):
        raise TypeError(f"the policy must be a Policy, such as LexElimIn(10, 3, …), got {policy!r}")
    if not isinstance(instance, Instance):
        raise TypeError(f"the instance must be an Instance, got {instance!r}")
    if getattr(policy, "n_items", None) is not None:
        raise ValueError(
            "a policy about a list is told by places, not played against an instance: leave n_items out"
        )
    ours, theirs = (policy.n_arms, policy.n_objectives), (instance.n_arms, instance.n_objectives)
    if ours != theirs:
        raise ValueError(
            f"policy and instance must have the same shape: {policy.name} has {ours[0]} arms and "
            f"{ours[1]} objectives, the instance {theirs[0]} and {theirs[1]}"
        )


def play(policy: Policy, instance: Instance, rng: np.random.Generator, arms: Counts) -> int:
    """Play until `arms` is full or the policy finished; fill in the arms played, return their number."""
    pending = np.zeros(policy.n_arms, np.int64)
    if callable(instance.noise):
        return _play_sampled(policy, instance, rng, pending, arms)
    drawn = reward_model(instance)
    loop = plain_loop(policy.rules, DRAWS[drawn.kind])
    return int(loop(policy.state, drawn, rng, pending, arms))


@cache
def plain_loop(rules: Rules, draw: Draw) -> Callable[..., int]:
    """The loop over rounds for one algorithm and kind of noise."""
    if rules.steps is not None:
        return _loop_by_steps(rules.steps, draw)
    choose, observe, finished = rules.choose, rules.observe, rules.finished

    def loop(state: Any, model: RewardModel, rng: np.random.Generator, pending: Counts, arms: Counts) -> int:
        reward = np.empty(model.means.shape[1])
        for t in range(arms.size):
            if finished(state):
                return t
            arm = choose(state, pending)
            draw(model, rng, arm, reward)
            observe(state, arm, reward)
            arms[t] = arm
        return arms.size

    return fused(loop, choose, observe, finished, draw)


def _loop_by_steps(steps: Steps, draw: Draw) -> Callable[..., int]:
    arrays_of, members, take, close = steps

    def loop(state: Any, model: RewardModel, rng: np.random.Generator, pending: Counts, arms: Counts) -> int:
        arrays, reward = arrays_of(state), np.empty(model.means.shape[1])
        asked, results = np.empty(pending.size, np.int64), np.empty((1, pending.size, reward.size))
        t = 0
        while t < arms.size:
            most = min(members(arrays, asked), arms.size - t)
            if most == 0:
                return t
            for k in range(most):
                draw(model, rng, asked[k], reward)
                results[0, asked[k]] = reward
                arms[t + k] = asked[k]
            t += most
            if take(arrays, results, 0, most):
                close(state)
        return t

    return fused(loop, *steps, draw)


def _play_sampled(
    policy: Policy, instance: Instance, rng: np.random.Generator, pending: Counts, arms: Counts
) -> int:
    """The same loop around a user's sampler, whose rewards are checked like any other."""
    sample: Callable[..., Any] = instance.noise  # type: ignore[assignment]
    for t in range(arms.size):
        if policy.finished:
            return t
        arm = int(policy.rules.choose(policy.state, pending))
        policy.tell(arm, sample(rng, arm))
        arms[t] = arm
    return arms.size
