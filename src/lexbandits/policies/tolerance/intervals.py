"""Where means and differences lie by all that was folded: for people who watch."""

import math

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.evidence.interval import arm_interval, kind_at, pair_interval
from lexbandits.evidence.kinds import EXACT, SYMMETRIC
from lexbandits.evidence.symmetric import scaled_sums, symmetric_interval
from lexbandits.policies.tolerance.anytime import against_target, paired
from lexbandits.policies.tolerance.relative import is_share
from lexbandits.policies.tolerance.state import (
    HIGH,
    LOW,
    TARGET,
    State,
    completed_moments,
    moments,
    pair_of,
    row_of_arm,
)


@kernel
def single_interval(state: State, i: int, a: int, level: float) -> tuple[float, float]:
    """Where the mean of an arm lies, whatever its missing values were if that is to be so."""
    kind = kind_at(state.kinds, i)
    if kind.worst > 0.0:
        row = row_of_arm(a, state.values.shape[0])
        n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW)
        low, _ = arm_interval(kind, n, mean, m2, m3, m4, level)
        n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, HIGH)
        _, high = arm_interval(kind, n, mean, m2, m3, m4, level)
        return low, high
    n, mean, m2, m3, m4 = moments(state.singles, a, i)
    return arm_interval(kind, n, mean, m2, m3, m4, level)


@kernel(inline="never")
def fill_target_bounds(state: State, levels: Vector, filled: Vector) -> None:
    """(K, m, 2) where the means lie on objectives with a target, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            n, mean = state.singles[a, i, 0], state.singles[a, i, 1]
            filled[a, i, LOW], filled[a, i, HIGH] = -math.inf, math.inf
            if kind.worst > 0.0:
                n = state.completed[row_of_arm(a, n_arms), i, LOW, 0]
            if math.isnan(state.limits[i, TARGET]) or n < (1.0 if kind.code == EXACT else 2.0):
                continue
            if kind.code == EXACT:
                filled[a, i, LOW] = filled[a, i, HIGH] = against_target(state.limits, state.kinds, i, mean)
            else:
                ends = single_interval(state, i, a, levels[i])
                filled[a, i, LOW], filled[a, i, HIGH] = ends


@kernel(inline="never")
def fill_intervals(state: State, level: float, singles: Vector) -> None:
    """(K, m, 2) where the means lie, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        for a in range(n_arms):
            singles[a, i, LOW], singles[a, i, HIGH] = single_interval(state, i, a, level)


@kernel(inline="never")
def fill_differences(state: State, levels: Vector, pairs: Counts, ends: Vector) -> None:
    """(n, 2) where the difference a − b lies on i, for each row (a, b, i) of `pairs`."""
    n_arms = state.values.shape[0]
    for at in range(pairs.shape[0]):
        a, b, i = pairs[at, 0], pairs[at, 1], pairs[at, 2]
        kind = kind_at(state.kinds, i)
        low, high = state.lcb[i, a, b], -state.lcb[i, b, a]
        if is_share(state.limits, i):  # of which no difference was seen
            low, high = -math.inf, math.inf
        first, second = min(a, b), max(a, b)
        row = pair_of(first, second, n_arms)
        below, above = -math.inf, math.inf  # of the first arm − the second
        n, mean, m2, m3, m4 = moments(state.pairs, row, i)
        if kind.code == EXACT:
            known, difference = paired(
                state.limits, state.kinds, state.singles, state.pairs, i, first, second
            )
            if known > 0.0:
                below = above = difference
                low, high = -math.inf, math.inf
        elif kind.code == SYMMETRIC:
            below, above = symmetric_interval(scaled_sums(state.pairs, row, i), levels[i])
        elif kind.worst > 0.0:
            n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW)
            lower, _ = pair_interval(kind, n, mean, m2, m3, m4, levels[i])
            n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, HIGH)
            _, upper = pair_interval(kind, n, mean, m2, m3, m4, levels[i])
            if n >= 2.0:
                below, above = lower, upper
        elif n >= 2.0:
            below, above = pair_interval(kind, n, mean, m2, m3, m4, levels[i])
        if a > b:
            below, above = -above, -below
        ends[at, LOW], ends[at, HIGH] = max(low, below), min(high, above)
