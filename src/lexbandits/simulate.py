"""One policy against one instance: where the learner meets the truth."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.instance import Instance
from lexbandits.jit import is_compiled, kernel
from lexbandits.policies.base import Counts, Elimination, Policy, Rules, Vector
from lexbandits.policies.checks import whole

GAUSSIAN, CORRELATED, BERNOULLI, BETA = range(4)
CHUNK = 1 << 16  # rounds per compiled call: Ctrl-C is answered, and the horizon is never allocated


class World(NamedTuple):
    """How rewards are drawn, as plain arrays for the kernels."""

    kind: int
    means: Vector  # (K, m)
    scales: Vector  # (m,) standard deviations of Gaussian noise
    root: Vector  # (m, m) Cholesky-like root of the correlation
    shapes: Vector  # (K, m, 2) of the Beta distributions


def world(instance: Instance) -> World:
    """The kernels' view of an instance whose noise has a name."""
    kind = {"gaussian": GAUSSIAN, "bernoulli": BERNOULLI, "beta": BETA}[str(instance.noise)]
    root = np.eye(instance.n_objectives)
    if instance.correlation is not None:
        kind = CORRELATED
        root = _root(instance.correlation)
    shapes = np.empty((instance.n_arms, instance.n_objectives, 2))
    if kind == BETA:
        strength = instance.means * (1 - instance.means) / instance.noise_sds**2 - 1
        shapes[:, :, 0] = instance.means * strength
        shapes[:, :, 1] = (1 - instance.means) * strength
    return World(kind, np.array(instance.means), instance.noise_sds, root, shapes)


# One kernel per kind of noise: in a single one with branches, counting references to the arrays that
# the other branches use takes three times as long as drawing.


@kernel
def draw_gaussian(world: World, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """Fill `reward` with one reward vector of `arm`.

    It takes m normals whatever the arm, so that round t has the same noise for everyone.
    """
    for i in range(reward.size):
        reward[i] = world.means[arm, i] + world.scales[i] * rng.standard_normal()


@kernel
def draw_correlated(world: World, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """As `draw_gaussian`, with the root of the correlation between the normals and the reward."""
    m = reward.size
    normals = np.empty(m)
    for i in range(m):
        normals[i] = rng.standard_normal()
    for i in range(m):
        noise = 0.0
        for j in range(m):
            noise += world.root[i, j] * normals[j]
        reward[i] = world.means[arm, i] + world.scales[i] * noise


@kernel
def draw_bernoulli(world: World, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """Ones with the means as probabilities."""
    for i in range(reward.size):
        reward[i] = 1.0 if rng.random() < world.means[arm, i] else 0.0


@kernel
def draw_beta(world: World, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """Beta distributions with the given means and standard deviations."""
    for i in range(reward.size):
        reward[i] = rng.beta(world.shapes[arm, i, 0], world.shapes[arm, i, 1])


Draw = Callable[[World, np.random.Generator, int, Vector], None]

DRAWS: dict[int, Draw] = {
    GAUSSIAN: draw_gaussian,
    CORRELATED: draw_correlated,
    BERNOULLI: draw_bernoulli,
    BETA: draw_beta,
}


def stream(seed: int, replication: int) -> np.random.Generator:
    """The random numbers of one replication: a function of (seed, replication) alone."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(replication,))))


class Trajectory(NamedTuple):
    """What happened in one run: the arms played, in order, and what the policy said at the end."""

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
        """(rounds, m) R^i(t) in row t − 1: the paper's general regret, or the priority-based one.

        The priority-based regret (Hüyük and Tekin) charges a round only at the first objective on
        which the arm differs from the lex-optimal one.
        """
        charged = charges(instance, kind)
        if self.arms.size and self.arms.max() >= len(charged):
            raise ValueError(f"the run has arm {self.arms.max()}, the instance only {len(charged)} arms")
        return np.cumsum(charged[self.arms], axis=0)


def charges(instance: Instance, kind: str) -> Vector:
    """(K, m) what one pull of each arm adds to the regret."""
    if not isinstance(instance, Instance):
        raise TypeError(f"the instance must be an Instance, got {instance!r}")
    if kind == "general":
        return np.array(instance.gaps)
    if kind != "priority":
        raise ValueError(f'kind must be "general" or "priority", got {kind!r}')
    differs = np.abs(instance.gaps) > instance.tie_tolerance
    first = differs & (np.cumsum(differs, axis=1) == 1)
    return np.where(first, instance.gaps, 0.0)


def simulate(
    policy: Policy, instance: Instance, *, horizon: int, seed: int, replication: int = 0
) -> Trajectory:
    """Run a fresh copy of `policy` until it is finished or `horizon` pulls are made.

    The same numbers as replication `replication` of a sweep with this seed, to the bit. An answer
    is certified only where `finished` is True.
    """
    horizon = whole("horizon", horizon, least=0)
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
    drawn = world(instance)
    loop = plain_loop(policy.rules, DRAWS[drawn.kind])
    return int(loop(policy.state, drawn, rng, pending, arms))


@cache
def plain_loop(rules: Rules, draw: Draw) -> Callable[..., int]:
    """The loop over rounds for one algorithm and kind of noise; compiled when its functions are.

    Not kept on disk: the key of a function that closes over others contains their addresses.
    """
    choose, observe, finished = rules.choose, rules.observe, rules.finished

    def loop(state: Any, world: World, rng: np.random.Generator, pending: Counts, arms: Counts) -> int:
        reward = np.empty(world.means.shape[1])
        for t in range(arms.size):
            if finished(state):
                return t
            arm = choose(state, pending)
            draw(world, rng, arm, reward)
            observe(state, arm, reward)
            arms[t] = arm
        return arms.size

    compilable = is_compiled(choose) and is_compiled(observe) and is_compiled(finished)
    return partial(kernel, cache=False)(loop) if compilable else loop


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


def _root(correlation: Vector) -> Vector:
    """A root of the correlation: lower triangular where it has full rank."""
    try:
        return np.asarray(np.linalg.cholesky(correlation), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(correlation)
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)), np.float64)
