"""How rewards are drawn: kinds of noise, and the stream of random numbers of a run."""

import ctypes
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.environments.instance import Distribution, Instance

GAUSSIAN, CORRELATED, BERNOULLI, BETA = range(4)
CODES = {Distribution.GAUSSIAN: GAUSSIAN, Distribution.BERNOULLI: BERNOULLI, Distribution.BETA: BETA}


class RewardModel(NamedTuple):
    """How rewards are drawn, as plain arrays for the kernels."""

    kind: int
    means: Vector  # (K, m)
    scales: Vector  # (m,) standard deviations of Gaussian noise
    root: Vector  # (m, m) Cholesky-like root of the correlation
    shapes: Vector  # (K, m, 2) of the Beta distributions


def reward_model(instance: Instance) -> RewardModel:
    """The kernels' view of an instance whose noise has a name."""
    kind = CODES[Distribution(str(instance.noise))]
    root = np.eye(instance.n_objectives)
    if instance.correlation is not None:
        kind = CORRELATED
        root = _root(instance.correlation)
    shapes = np.empty((instance.n_arms, instance.n_objectives, 2))
    if kind == BETA:
        strength = instance.means * (1 - instance.means) / instance.noise_sds**2 - 1
        shapes[:, :, 0] = instance.means * strength
        shapes[:, :, 1] = (1 - instance.means) * strength
    return RewardModel(kind, np.array(instance.means), instance.noise_sds, root, shapes)


# One kernel per kind of noise: in a single one with branches, counting references to the arrays that
# the other branches use takes three times as long as drawing.


@kernel
def draw_gaussian(model: RewardModel, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """Fill `reward` with one reward vector of `arm`.

    It takes m normals whatever the arm, so that round t has the same noise for everyone.
    """
    for i in range(reward.size):
        reward[i] = model.means[arm, i] + model.scales[i] * rng.standard_normal()


@kernel
def correlate(root: Vector, normals: Vector, noise: Vector) -> None:
    """Fill `noise` with the root of the correlation times independent normals."""
    for i in range(noise.size):
        noise[i] = 0.0
        for j in range(noise.size):
            noise[i] += root[i, j] * normals[j]


@kernel
def draw_noise(root: Vector, rng: np.random.Generator, noise: Vector) -> None:
    """Fill `noise` with normals of variance 1 that have this root of their correlation."""
    normals = np.empty(noise.size)
    for i in range(noise.size):
        normals[i] = rng.standard_normal()
    correlate(root, normals, noise)


@kernel
def draw_correlated(model: RewardModel, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """As `draw_gaussian`, with the root of the correlation between the normals and the reward."""
    draw_noise(model.root, rng, reward)
    for i in range(reward.size):
        reward[i] = model.means[arm, i] + model.scales[i] * reward[i]


@kernel
def draw_bernoulli(model: RewardModel, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """Ones with the means as probabilities."""
    for i in range(reward.size):
        reward[i] = 1.0 if rng.random() < model.means[arm, i] else 0.0


@kernel
def draw_beta(model: RewardModel, rng: np.random.Generator, arm: int, reward: Vector) -> None:
    """Beta distributions with the given means and standard deviations."""
    for i in range(reward.size):
        reward[i] = rng.beta(model.shapes[arm, i, 0], model.shapes[arm, i, 1])


Draw = Callable[[RewardModel, np.random.Generator, int, Vector], None]

DRAWS: tuple[Draw, ...] = (draw_gaussian, draw_correlated, draw_bernoulli, draw_beta)  # by kind


def stream(seed: int, replication: int) -> np.random.Generator:
    """The random numbers of one replication: a function of (seed, replication) alone."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=(replication,))))


def stream_words(seed: int, replications: Iterable[int]) -> NDArray[np.uint64]:
    """(R, 4) where the streams of these replications begin, as `words_of` has it."""
    starts = (stream(seed, replication).bit_generator.state for replication in replications)
    return np.array([start["state"]["state"] for start in starts], np.uint64)


def words_of(rng: np.random.Generator) -> NDArray[np.uint64]:
    """(4,) the memory in which a stream keeps where it is: it goes on from what is written there."""
    there = (ctypes.c_uint64 * 4).from_address(rng.bit_generator.ctypes.state_address)
    words: NDArray[np.uint64] = np.ctypeslib.as_array(there)
    if words.tolist() != rng.bit_generator.state["state"]["state"].tolist():
        raise RuntimeError(f"NumPy {np.__version__} keeps the state of SFC64 in another way than is known")
    return words


def _root(correlation: Vector) -> Vector:
    """A root of the correlation: lower triangular where it has full rank."""
    try:
        return np.asarray(np.linalg.cholesky(correlation), np.float64)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(correlation)
        return np.ascontiguousarray(vectors * np.sqrt(np.maximum(values, 0.0)), np.float64)
