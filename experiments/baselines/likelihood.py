"""What Track-and-Stop and Top-Two share: the generalised likelihood ratio on lexicographic alternatives.

F_b(w) is the least cost of an instance in which arm b is lex-optimal with trade-off λ, when moving arm a's
means costs w_a·‖·‖²/2 in units of the noise (`lexbandits.theory.alternatives`).

**Stopping.** For independent Gaussian noise, or sub-Gaussian noise given the past, the product over the arms
of a set S and all objectives of N(0, 1/κ)-mixtures is a test martingale however the arms are chosen. At the
true means it is at least exp(½·Σ_S w_a‖μ̂(a) − μ(a)‖² − (m/2)·Σ_S log(1 + n_a/κ)), w_a = n_a²/(n_a + κ). If b
is lex-optimal, the true instance is one of its alternatives, so that the least cost of moving the arms of S
is at most that sum. By Ville's inequality arm b may be dropped, with an error of at most δ in all, once

- F_b(w) ≥ log(2/δ) + (m/2)·Σ_a log(1 + n_a/κ), all arms moving (asymptotically the sharpest), or
- ½·h·dist²(μ̂(b) − μ̂(a), C_λ) ≥ log(2(K − 1)/δ) + (m/2)·(log(1 + n_a/κ) + log(1 + n_b/κ)) for some arm a,
  h = w_a·w_b/(w_a + w_b), two arms moving (fewer dimensions: it comes first unless δ is tiny).

`refute` proves the first by branch and bound; descent alone would not.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import entry, kernel
from lexbandits._validation import each_objective
from lexbandits.policies.base import Arms, add_reward, eliminate, untried
from lexbandits.theory.alternatives import Problem, refute, respond
from lexbandits.theory.cones import Cones, cones_of, leave_nearest, squared_length

KAPPA = 1.0  # of the mixtures
LAZINESS = 50  # look again after a fiftieth more pulls, and a pull of each arm at least
MAX_NODES = 20_000  # of branch and bound at one look; if they run out, the next look tries again


class LikelihoodState(NamedTuple):
    """What is known of the arms, and what the last look at them said."""

    arms: Arms
    inverse_sds: Vector  # (m,) 1/σ
    cones: Cones
    points: Vector  # (K, m) where each arm's best response had it last
    evidence: Vector  # (K,) F_b against each arm
    shares: Vector  # (K,) of pulls, that Track-and-Stop aims at
    look: Counts  # (1,) pulls before the next look
    key: Counts  # (2,) of the draws
    delta: float


def first_state(
    n_arms: int, n_objectives: int, delta: float, tradeoff: float, noise_sd: Any, key: Counts
) -> LikelihoodState:
    """Nothing pulled, uniform shares."""
    sds = each_objective(noise_sd, n_objectives)
    return LikelihoodState(
        untried(n_arms, n_objectives),
        1.0 / sds,
        cones_of(tradeoff, sds),
        np.zeros((n_arms, n_objectives)),
        np.zeros(n_arms),
        np.full(n_arms, 1.0 / n_arms),
        np.array([n_arms]),
        key,
        delta,
    )


def finished(state: LikelihoodState) -> bool:
    """One arm is left."""
    return bool(np.sum(state.arms.active) == 1)


def observe(state: LikelihoodState, arm: int, reward: Vector, plan: Any = None) -> None:
    """Record the reward; look at the evidence when it is time, then let `plan` prepare what to pull."""
    was_finished = finished(state)
    add_reward(state.arms, arm, reward)
    told = int(state.arms.told[0])
    if was_finished or told < state.look[0] or not state.arms.pulls.all():
        return
    state.look[0] = told + max(state.arms.pulls.size, told // LAZINESS)
    problem = Problem(np.ascontiguousarray(state.arms.means * state.inverse_sds), state.cones)
    leader = weigh(state, problem)
    if not stop(state, problem, leader) and plan is not None:
        plan(state, problem, leader)


def weigh(state: LikelihoodState, problem: Problem) -> int:
    """`evidence` = F_b with the weights of the stopping rule; returns the arm with the least."""
    n_arms = state.arms.pulls.size
    costs = np.empty((n_arms, n_arms))
    weights = mixture_weights(state.arms.pulls)
    entry(respond, bulk=True)(problem, weights, np.arange(n_arms), state.points, state.evidence, costs)
    return int(np.argmin(state.evidence))


def mixture_weights(pulls: Counts) -> Vector:
    """w = n²/(n + κ)."""
    return np.asarray(pulls * pulls / (pulls + KAPPA))


@kernel
def pair_costs(problem: Problem, weights: Vector, costs: Vector) -> None:
    """`costs`[b, a] = the least cost of moving b and a until b may beat a."""
    n_arms, m = problem.means.shape
    y, residual = np.empty(m), np.empty(m)
    for b in range(n_arms):
        for a in range(n_arms):
            for i in range(m):
                y[i] = problem.means[b, i] - problem.means[a, i]
            leave_nearest(problem.cones, y, residual)
            half = 0.5 * weights[a] * weights[b] / (weights[a] + weights[b])
            costs[b, a] = half * squared_length(residual)


def refuted(state: LikelihoodState, problem: Problem) -> NDArray[np.bool_]:
    """(K,) which arms the second rule drops."""
    n_arms, m = problem.means.shape
    costs = np.zeros((n_arms, n_arms))
    entry(pair_costs, bulk=True)(problem, mixture_weights(state.arms.pulls), costs)
    dimensions = m / 2 * np.log1p(state.arms.pulls / KAPPA)
    needed = math.log(2 * max(n_arms - 1, 1) / state.delta) + dimensions[:, None] + dimensions
    return np.asarray((costs >= needed).any(axis=1))


def stop(state: LikelihoodState, problem: Problem, leader: int) -> bool:
    """Drop everybody else if each is refuted by one of the two rules."""
    m = state.inverse_sds.size
    needed = math.log(2 / state.delta) + m / 2 * float(np.log1p(state.arms.pulls / KAPPA).sum())
    is_refuted = refuted(state, problem)
    others = [b for b in range(state.evidence.size) if b != leader]
    left = [b for b in others if not is_refuted[b]]
    if any(state.evidence[b] < needed for b in left):
        return False
    weights = mixture_weights(state.arms.pulls)
    for b in left:
        bound, _, _ = entry(refute, bulk=True)(problem, weights, b, needed, MAX_NODES, state.points[b].copy())
        if bound < needed:
            return False
    for b in others:
        ahead = problem.means[leader] - problem.means[b]
        eliminate(state.arms, b, int(state.arms.told[0]), int(np.argmax(ahead)), leader)
    return True


def nearest_instance(problem: Problem, leader: int, point: Vector) -> Problem:
    """The estimates moved to the nearest instance found in which `leader` is lex-optimal."""
    means = problem.means.copy()
    residual = np.empty(point.size)
    for arm in range(len(means)):
        if arm != leader:
            leave_nearest(problem.cones, point - means[arm], residual)
            means[arm] += residual
    means[leader] = point
    return Problem(means, problem.cones)
