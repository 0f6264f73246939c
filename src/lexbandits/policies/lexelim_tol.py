"""LexElim-Tol: no trade-off and no set sizes, only the differences that do not matter.

Objective by objective: drop the arms that are worse than another by more than the tolerance, go on
when every pair left is close enough. docs/proofs.md has the proof.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.confidence import cost_of_time, spread_of_mean, two_sample_radius
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Counts, Policy, Rules, Vector, eliminate, untried
from lexbandits.policies.checks import per_objective, probability, spread
from lexbandits.policies.sweeps import (
    ACTIVE,
    PRIOR,
    TURN,
    choose_in_turn,
    pass_turn,
    time_uniform_intervals,
)

# The fields of State.clock after TURN and ACTIVE: the objective being settled (m when all are), and
# the observed active arms with the largest and the smallest mean on it (−1 when there is none).
OBJECTIVE, TOP, BOTTOM = 2, 3, 4


class State(NamedTuple):
    """The arms, counts per arm and objective, and what the radii on the current objective need."""

    arms: Arms
    clock: Counts  # (5,) see above
    counts: Counts  # (K, m) values told
    spreads: Vector  # (K,) 1/n' on the current objective
    costs: Vector  # (K,) ½·log(1 + n/ρ) on it
    floors: Vector  # (2,) bounds below the spreads and costs of all active arms
    tolerance: Vector  # (m,)
    reach: Vector  # (m,) tolerance + resolution
    noise_sd: Vector  # (m,)
    log_level: float  # log(m·K(K−1)/(2δ))


@kernel
def choose(state: State, pending: Counts) -> int:
    """The active arm with the fewest pulls, lowest index."""
    return choose_in_turn(state.arms, state.clock, pending)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Fold in what was measured; judge the pairs that it changes."""
    arms, clock = state.arms, state.clock
    on_trial = arms.active[arm] and not finished(state)
    arms.told[0] += 1
    arms.pulls[arm] += 1
    for i in range(reward.size):
        if not math.isnan(reward[i]):
            state.counts[arm, i] += 1
            arms.sums[arm, i] += reward[i]
            arms.means[arm, i] = arms.sums[arm, i] / state.counts[arm, i]
    if not on_trial:
        return
    if not math.isnan(reward[clock[OBJECTIVE]]):
        refresh(state, arm)
        if drop_beside(state, arm):
            find_extremes(state)
        while not finished(state) and settled(state):
            next_objective(state)
    if not arms.active[clock[TURN]]:
        pass_turn(arms, clock, 0)
    elif clock[TURN] == arm:
        pass_turn(arms, clock, arm + 1)


@kernel
def finished(state: State) -> bool:
    """One arm is left or the last objective is settled."""
    return bool(state.clock[ACTIVE] <= 1 or state.clock[OBJECTIVE] == state.tolerance.size)


@kernel
def radius(state: State, a: int, b: int) -> float:
    """W for two arms on the current objective; inf when one of them was not observed."""
    sd = state.noise_sd[state.clock[OBJECTIVE]]
    spreads, costs = state.spreads, state.costs
    return two_sample_radius(sd, state.log_level, spreads[a], spreads[b], costs[a], costs[b])


@kernel
def least_radius(state: State) -> float:
    """A bound below W of every pair; every step of both is monotone, so it holds to the last bit."""
    sd = state.noise_sd[state.clock[OBJECTIVE]]
    small, cheap = state.floors[0], state.floors[1]
    return two_sample_radius(sd, state.log_level, small, small, cheap, cheap)


@kernel
def refresh(state: State, arm: int) -> None:
    """Bring the extremes and the floors up to date with a new value of `arm`."""
    clock, objective = state.clock, state.clock[OBJECTIVE]
    state.spreads[arm] = spread_of_mean(state.counts[arm, objective], PRIOR)
    state.costs[arm] = cost_of_time(state.counts[arm, objective], PRIOR)
    mean = state.arms.means[:, objective]
    if clock[TOP] < 0 or clock[TOP] == arm or clock[BOTTOM] == arm:
        find_extremes(state)
        return
    state.floors[0] = min(state.floors[0], state.spreads[arm])
    if mean[arm] > mean[clock[TOP]]:
        clock[TOP] = arm
    if mean[arm] < mean[clock[BOTTOM]]:
        clock[BOTTOM] = arm


@kernel
def find_extremes(state: State) -> None:
    """Look at every active arm."""
    clock, objective = state.clock, state.clock[OBJECTIVE]
    mean = state.arms.means[:, objective]
    clock[TOP] = clock[BOTTOM] = -1
    state.floors[0] = state.floors[1] = math.inf
    for arm in range(mean.size):
        if state.arms.active[arm]:
            state.floors[0] = min(state.floors[0], state.spreads[arm])
            state.floors[1] = min(state.floors[1], state.costs[arm])
            if state.counts[arm, objective] > 0:
                if clock[TOP] < 0 or mean[arm] > mean[clock[TOP]]:
                    clock[TOP] = arm
                if clock[BOTTOM] < 0 or mean[arm] < mean[clock[BOTTOM]]:
                    clock[BOTTOM] = arm


@kernel
def drop_beside(state: State, arm: int) -> bool:
    """Drop whoever is certainly worse by more than the tolerance, in pairs with `arm`; whether any left.

    No other pair has changed since it was last judged.
    """
    arms, clock, objective = state.arms, state.clock, state.clock[OBJECTIVE]
    mean = arms.means[:, objective]
    tolerance = state.tolerance[objective]
    least = least_radius(state)
    behind = (mean[clock[TOP]] - mean[arm]) - least > tolerance
    ahead = (mean[arm] - mean[clock[BOTTOM]]) - least > tolerance
    if not (behind or ahead):
        return False
    rival = -1
    most = tolerance
    before = clock[ACTIVE]
    for other in range(mean.size):
        if arms.active[other] and other != arm:
            width = radius(state, arm, other)
            if (mean[arm] - mean[other]) - width > tolerance:
                leave(state, other, arm)
            lead = (mean[other] - mean[arm]) - width
            if lead > most:
                most = lead
                rival = other
    if rival >= 0:
        leave(state, arm, rival)
    return bool(clock[ACTIVE] < before)


@kernel
def leave(state: State, arm: int, rival: int) -> None:
    """Take `arm` out on the current objective."""
    eliminate(state.arms, arm, state.arms.told[0], state.clock[OBJECTIVE], rival)
    state.clock[ACTIVE] -= 1


@kernel
def settled(state: State) -> bool:
    """Whether every active pair is within tolerance + resolution on the current objective for certain.

    Among arms with equal counts the radius is the same, so only their extremes matter.
    """
    arms, clock, objective = state.arms, state.clock, state.clock[OBJECTIVE]
    mean = arms.means[:, objective]
    reach = state.reach[objective]
    if clock[TOP] < 0 or not (mean[clock[TOP]] - mean[clock[BOTTOM]]) + least_radius(state) <= reach:
        return False
    sample = np.empty(mean.size, np.int64)  # one arm of each group of equal counts
    size = np.empty(mean.size, np.int64)
    highest = np.empty(mean.size)
    lowest = np.empty(mean.size)
    groups = 0
    for arm in range(mean.size):
        if not arms.active[arm]:
            continue
        g = 0
        while g < groups and state.counts[sample[g], objective] != state.counts[arm, objective]:
            g += 1
        if g == groups:
            groups += 1
            sample[g] = arm
            size[g] = 0
            highest[g] = lowest[g] = mean[arm]
        size[g] += 1
        highest[g] = max(highest[g], mean[arm])
        lowest[g] = min(lowest[g], mean[arm])
    for g in range(groups):
        for h in range(g, groups):
            if g != h or size[g] > 1:
                widest = max(highest[g] - lowest[h], highest[h] - lowest[g])
                if not widest + radius(state, sample[g], sample[h]) <= reach:
                    return False
    return True


@kernel
def next_objective(state: State) -> None:
    """Go on to the next objective and judge all its pairs."""
    arms, clock = state.arms, state.clock
    clock[OBJECTIVE] += 1
    if finished(state):
        return
    objective = clock[OBJECTIVE]
    mean = arms.means[:, objective]
    for arm in range(mean.size):
        state.spreads[arm] = spread_of_mean(state.counts[arm, objective], PRIOR)
        state.costs[arm] = cost_of_time(state.counts[arm, objective], PRIOR)
    rivals = np.full(mean.size, -1, np.int64)
    for arm in range(mean.size):
        if not arms.active[arm]:
            continue
        most = state.tolerance[objective]
        for other in range(mean.size):
            if arms.active[other] and other != arm:
                lead = (mean[other] - mean[arm]) - radius(state, arm, other)
                if lead > most:
                    most = lead
                    rivals[arm] = other
    for arm in range(mean.size):
        if rivals[arm] >= 0:
            leave(state, arm, rivals[arm])
    find_extremes(state)


class LexElimTol(Policy):
    """For ties that are never exact: all it needs are the differences that do not matter.

    Per objective i, differences up to `tolerance`[i] are immaterial: such arms go on to the next
    objective. An arm worse by more than tolerance + `resolution` does not; in between either may
    happen. Without a resolution it is the tolerance; both zero is an error. For rewards whose
    objective i is `noise_sd`[i]-sub-Gaussian given everything before, with probability at least
    1 − delta, for every i: an arm within tolerance[i] of the best arm that reached objective i
    survives it, and the answer is within tolerance[i] + resolution[i] of that best arm.

    It promises nothing about the lex-optimal arm itself: even with tolerance 0 that arm may lose on
    objective 2 to one within resolution[0] of it. It surely ends, after about
    16σ²β(1 + ρ/n)/resolution² pulls of each arm, the largest over the objectives (see `intervals`
    for β and ρ). `None` in a reward is a value not measured: counts are kept per arm and objective.
    Judged after every reward, until nothing changes. Finished, it recommends the candidate with the
    largest mean on the last objective; before that, objectives not yet settled first keep only
    the candidates within their tolerance of the best estimate. Ties go to the lowest index.
    """

    rules = Rules(choose, observe, finished)
    accepts_missing = True
    round_robin = True

    def __init__(
        self,
        n_arms: int,
        n_objectives: int,
        *,
        delta: float,
        tolerance: float | ArrayLike,
        resolution: float | ArrayLike | None = None,
        noise_sd: float | ArrayLike = 1.0,
    ) -> None:
        super().__init__(
            n_arms,
            n_objectives,
            delta=probability("delta", delta),
            tolerance=per_objective("tolerance", tolerance, n_objectives, zero=True),
            resolution=None
            if resolution is None
            else per_objective("resolution", resolution, n_objectives, zero=True),
            noise_sd=per_objective("noise_sd", noise_sd, n_objectives),
        )
        settings = self._settings
        slack = spread(settings["tolerance"], n_objectives)
        fine = slack if resolution is None else spread(settings["resolution"], n_objectives)
        for i in range(n_objectives):
            if fine[i] == 0:
                raise ValueError(
                    f"objective {i} needs a positive tolerance or a positive resolution to be settled, "
                    f"got tolerance {slack[i]:g} and resolution {settings['resolution']}"
                )
        level = n_objectives * max(1, n_arms * (n_arms - 1) // 2) / settings["delta"]
        self.state = State(
            untried(n_arms, n_objectives),
            clock=np.array([0, n_arms, 0, -1, -1], np.int64),
            counts=np.zeros((n_arms, n_objectives), np.int64),
            spreads=np.full(n_arms, math.inf),
            costs=np.zeros(n_arms),
            floors=np.array([math.inf, 0.0]),
            tolerance=slack,
            reach=slack + fine,
            noise_sd=spread(settings["noise_sd"], n_objectives),
            log_level=math.log(level),
        )

    @property
    def means(self) -> Vector:
        """(K, m) average of the values told; nan where there is none."""
        return np.where(self.state.counts > 0, self.state.arms.means, math.nan)

    @property
    def intervals(self) -> Vector:
        """(K, m, 2) where each mean lies, all of them at all times, with probability at least 1 − delta.

        mean ± σ·sqrt(2β(n + ρ)/n²), β = log(Km/delta) + ½·log(1 + n/ρ), ρ = 30: for people who watch
        a run. The policy compares pairs, whose radii are a little different.
        """
        return time_uniform_intervals(self.means, self.state.counts, self._settings)

    def best_guess(self) -> int:
        """Within tolerance of the best on the objectives not yet settled, then best on the last."""
        state, last = self.state, self.n_objectives - 1
        left = list(self.candidates)
        for i in range(min(int(state.clock[OBJECTIVE]), last), last + 1):
            seen = [arm for arm in left if state.counts[arm, i] > 0]
            best = max((state.arms.means[arm, i] for arm in seen), default=0.0)
            tolerance = 0.0 if i == last else state.tolerance[i]
            left = [arm for arm in seen if best - state.arms.means[arm, i] <= tolerance] or left
        return left[0]
