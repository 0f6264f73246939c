"""Track-and-Stop (Garivier and Kaufmann 2016) on the lexicographic alternatives."""

import math

import numpy as np
from numpy.typing import ArrayLike

from experiments.baselines.likelihood import LikelihoodState, finished, first_state, nearest_instance, observe
from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry
from lexbandits.policies.base import Rules, fewest_pulls
from lexbandits.policies.policy import Policy, checked
from lexbandits.theory.alternatives import Problem, respond

STEPS = 12  # of mirror ascent at a look, each from where the last one ended
RATE = 0.3  # of a step, per unit of the largest slope
FLOOR = 1e-4  # of a share, so that no arm moves for free


def choose(state: LikelihoodState, pending: Counts) -> int:
    """D-tracking: the arm furthest behind its share, unless one has fewer than sqrt(t) − K/2 pulls."""
    pulls = state.arms.pulls + pending
    t = int(pulls.sum())
    behind = fewest_pulls(state.arms, pending)
    if pulls[behind] < max(1.0, math.sqrt(t) - pulls.size / 2):
        return behind
    return int(np.argmax(t * state.shares - pulls))


def plan(state: LikelihoodState, problem: Problem, leader: int) -> None:
    """`shares`: weights that nearly maximise min_{b ≠ leader} F_b on the nearest instance of the class.

    F_b is concave in the weights and the costs of its best response are a supergradient: exponentiated
    gradient steps, whose average is taken. The shares of the last look are where it begins.
    """
    truth = nearest_instance(problem, leader, state.points[leader])
    rivals = np.array([b for b in range(state.shares.size) if b != leader])
    points = state.points.copy()
    values, costs = np.empty(rivals.size), np.empty((rivals.size, state.shares.size))
    weights, total = state.shares.copy(), np.zeros_like(state.shares)
    for _ in range(STEPS):
        entry(respond, bulk=True)(truth, weights, rivals, points, values, costs)
        slope = costs[np.argmin(values)]
        weights = weights * np.exp(RATE * slope / max(slope.max(), 1e-300))
        weights = np.maximum(weights / weights.sum(), FLOOR)
        weights /= weights.sum()
        total += weights
    state.shares[:] = total / STEPS


def learn(state: LikelihoodState, arm: int, reward: Vector) -> None:
    """Record, look, plan."""
    observe(state, arm, reward, plan)


class TrackAndStop(Policy):
    """Pull arms in the proportions that the estimates say are best, until every other arm is refuted.

    For a unique lex-optimal arm and independent Gaussian noise: it ends with that arm with probability at
    least 1 − delta (experiments/baselines/likelihood.py has the proof). Its proportions follow those of T*
    (`lexbandits.characteristic_time`) as the estimates settle. It is plain Python around compiled searches: a
    look takes milliseconds, so looks get rarer as pulls add up.

    Args:
        n_arms, n_objectives: K and m.
        delta: the probability of a wrong answer.
        tradeoff: λ, at least the instance's least.
        noise_sd: σ, one or per objective.

    >>> import lexbandits as lb
    >>> instance = lb.Instance([[0.5, 0.9], [0.5, 0.1], [0.1, 0.9]], noise_sd=0.3)
    >>> policy = TrackAndStop(3, 2, delta=0.1, tradeoff=1, noise_sd=0.3)
    >>> run = lb.simulate(policy, instance, horizon=5000, seed=0)
    >>> run.recommendation, run.finished
    (0, True)
    """

    rules = Rules(choose, learn, finished)

    @checked
    def __init__(
        self, n_arms: int, n_objectives: int, *, delta: float, tradeoff: float, noise_sd: ArrayLike = 1.0
    ) -> None:
        self.state = first_state(n_arms, n_objectives, delta, tradeoff, noise_sd, np.zeros(2, np.int64))

    def best_guess(self) -> int:
        """The arm with the least evidence against it at the last look."""
        return int(np.argmin(self.state.evidence))
