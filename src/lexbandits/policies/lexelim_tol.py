"""LexElim-Tol: no trade-off and no set sizes, only the differences that do not matter.

Objective by objective: drop the arms that are worse than another by more than the tolerance, go on
when every pair left is close enough. docs/proofs.md has the proof.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.arrays import Counts, Vector
from lexbandits.checks import each_objective, per_objective, probability
from lexbandits.evidence.radius import cost_of_time, spread_of_mean, time_uniform_intervals, two_sample_radius
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms, Rules, eliminate, fewest_pulls, untried
from lexbandits.policies.passes import ACTIVE, PRIOR, TURN, find_turn
from lexbandits.policies.policy import Policy

# The fields of State.clock after TURN and ACTIVE: the objective being settled (m when all are), and
# the observed active arms with the largest and the smallest mean on it (−1 when there is none).
OBJECTIVE, TOP, BOTTOM = 2, 3, 4
# Columns of State.terms and State.floors, and of State.limits.
SPREAD, COST = 0, 1
TOLERANCE, REACH, NOISE_SD = 0, 1, 2


class State(NamedTuple):
    """The arms, counts per arm and objective, and what the radii on the current objective need."""

    arms: Arms
    clock: Counts  # (5,) see above
    counts: Counts  # (K, m) values told
    terms: Vector  # (K, 2) 1/n' and ½·log(1 + n/ρ) on the current objective
    floors: Vector  # (2,) bounds below the terms of all active arms
    limits: Vector  # (m, 3) tolerance, tolerance + resolution, σ
    log_level: float  # log(m·K(K−1)/(2δ))


@kernel
def choose(state: State, pending: Counts) -> int:
    """The active arm with the fewest pulls, lowest index; with nothing in flight, whose turn it is."""
    turn = state.clock[TURN]
    return int(turn) if pending[turn] == 0 else fewest_pulls(state.arms, pending)


@kernel
def finished(state: State) -> bool:
    """One arm is left or the last objective is settled."""
    return bool(state.clock[ACTIVE] <= 1 or state.clock[OBJECTIVE] == state.limits.shape[0])


@kernel
def radius(state: State, a: int, b: int) -> float:
    """W for two arms on the current objective; inf when one of them was not observed."""
    sd, terms = state.limits[state.clock[OBJECTIVE], NOISE_SD], state.terms
    return two_sample_radius(
        sd, state.log_level, terms[a, SPREAD], terms[b, SPREAD], terms[a, COST], terms[b, COST]
    )


@kernel
def find_extremes(state: State) -> None:
    """Look at every active arm: the largest and smallest mean, and the floors."""
    clock, objective = state.clock, state.clock[OBJECTIVE]
    mean, floors, terms = state.arms.means, state.floors, state.terms
    clock[TOP] = clock[BOTTOM] = -1
    floors[SPREAD] = floors[COST] = math.inf
    for arm in range(terms.shape[0]):
        if state.arms.active[arm]:
            floors[SPREAD] = min(floors[SPREAD], terms[arm, SPREAD])
            floors[COST] = min(floors[COST], terms[arm, COST])
            if state.counts[arm, objective] > 0:
                if clock[TOP] < 0 or mean[arm, objective] > mean[clock[TOP], objective]:
                    clock[TOP] = arm
                if clock[BOTTOM] < 0 or mean[arm, objective] < mean[clock[BOTTOM], objective]:
                    clock[BOTTOM] = arm


@kernel
def leave(state: State, arm: int, rival: int) -> None:
    """Take `arm` out on the current objective."""
    eliminate(state.arms, arm, state.arms.told[0], state.clock[OBJECTIVE], rival)
    state.clock[ACTIVE] -= 1


@kernel
def drop_beside(state: State, arm: int) -> None:
    """Drop whoever is certainly worse by more than the tolerance, in pairs with `arm`.

    No other pair has changed since it was last judged.
    """
    arms, objective = state.arms, state.clock[OBJECTIVE]
    mean = arms.means[:, objective]
    tolerance = state.limits[objective, TOLERANCE]
    rival = -1
    most = tolerance
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


@kernel
def settled(state: State) -> bool:
    """Whether every active pair is within tolerance + resolution on the current objective for certain.

    Among arms with equal counts the radius is the same, so only their extremes matter.
    """
    active, counts, objective = state.arms.active, state.counts, state.clock[OBJECTIVE]
    mean = state.arms.means[:, objective]
    sample = np.empty(mean.size, np.int64)  # one arm of each group of equal counts
    size = np.empty(mean.size, np.int64)
    highest = np.empty(mean.size)
    lowest = np.empty(mean.size)
    groups = 0
    for arm in range(mean.size):
        if not active[arm]:
            continue
        g = 0
        while g < groups and counts[sample[g], objective] != counts[arm, objective]:
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
                if not widest + radius(state, sample[g], sample[h]) <= state.limits[objective, REACH]:
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
        state.terms[arm, SPREAD] = spread_of_mean(state.counts[arm, objective], PRIOR)
        state.terms[arm, COST] = cost_of_time(state.counts[arm, objective], PRIOR)
    rivals = np.full(mean.size, -1, np.int64)
    for arm in range(mean.size):
        if not arms.active[arm]:
            continue
        most = state.limits[objective, TOLERANCE]
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


@kernel
def judge(state: State, arm: int) -> None:
    """Drop in pairs with `arm`, and go on to the next objective, until nothing changes."""
    before = state.clock[ACTIVE]
    drop_beside(state, arm)
    if state.clock[ACTIVE] < before:
        find_extremes(state)
    while not finished(state) and settled(state):
        next_objective(state)
    find_turn(state.arms, state.clock)


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Fold in what was measured; judge if a bound on all radii says that something may happen.

    Every step of the radius and of the tests is monotone, so the bound holds to the last bit.
    """
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
    following = clock[TURN]
    if arm == following:
        following += 1
        while following < arms.pulls.size and not (
            arms.active[following] and arms.pulls[following] == arms.pulls[arm] - 1
        ):
            following += 1
    if following < arms.pulls.size:
        clock[TURN] = following
    else:
        find_turn(arms, clock)
    objective = clock[OBJECTIVE]
    if math.isnan(reward[objective]):
        return
    mean, floors = arms.means, state.floors
    state.terms[arm, SPREAD] = spread_of_mean(state.counts[arm, objective], PRIOR)
    state.terms[arm, COST] = cost_of_time(state.counts[arm, objective], PRIOR)
    if clock[TOP] < 0 or clock[TOP] == arm or clock[BOTTOM] == arm:
        find_extremes(state)
    else:
        floors[SPREAD] = min(floors[SPREAD], state.terms[arm, SPREAD])
        if mean[arm, objective] > mean[clock[TOP], objective]:
            clock[TOP] = arm
        if mean[arm, objective] < mean[clock[BOTTOM], objective]:
            clock[BOTTOM] = arm
    top, bottom, here = mean[clock[TOP], objective], mean[clock[BOTTOM], objective], mean[arm, objective]
    least = two_sample_radius(
        state.limits[objective, NOISE_SD],
        state.log_level,
        floors[SPREAD],
        floors[SPREAD],
        floors[COST],
        floors[COST],
    )
    may_drop = max(top - here, here - bottom) - least > state.limits[objective, TOLERANCE]
    if may_drop or (top - bottom) + least <= state.limits[objective, REACH]:
        judge(state, arm)


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
        slack = each_objective(settings["tolerance"], n_objectives)
        fine = slack if resolution is None else each_objective(settings["resolution"], n_objectives)
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
            terms=np.tile([math.inf, 0.0], (n_arms, 1)),
            floors=np.array([math.inf, 0.0]),
            limits=np.stack(
                [slack, slack + fine, each_objective(settings["noise_sd"], n_objectives)], axis=1
            ),
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
            tolerance = 0.0 if i == last else state.limits[i, TOLERANCE]
            left = [arm for arm in seen if best - state.arms.means[arm, i] <= tolerance] or left
        return left[0]
