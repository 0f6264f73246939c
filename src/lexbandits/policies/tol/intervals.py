"""Where means and differences lie by all that was folded: for people who watch."""

import math

from lexbandits.arrays import Vector
from lexbandits.evidence.interval import arm_interval, kind_at, pair_interval
from lexbandits.evidence.kinds import EXACT
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.facts import against_target, paired
from lexbandits.policies.tol.percent import is_share
from lexbandits.policies.tol.state import (
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


@apart
def fill_target_bounds(state: State, levels: Vector, shown: Vector) -> None:
    """(K, m, 2) where the means lie on objectives with a target, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            n, mean = state.singles[a, i, 0], state.singles[a, i, 1]
            shown[a, i, LOW], shown[a, i, HIGH] = -math.inf, math.inf
            if kind.worst > 0.0:
                n = state.completed[row_of_arm(a, n_arms), i, LOW, 0]
            if math.isnan(state.limits[i, TARGET]) or n < (1.0 if kind.code == EXACT else 2.0):
                continue
            if kind.code == EXACT:
                shown[a, i, LOW] = shown[a, i, HIGH] = against_target(state.limits, state.kinds, i, mean)
            else:
                ends = single_interval(state, i, a, levels[i])
                shown[a, i, LOW], shown[a, i, HIGH] = ends


@apart
def fill_intervals(state: State, level: float, pair_levels: Vector, singles: Vector, pairs: Vector) -> None:
    """(K, m, 2) where the means lie, (K, K, m, 2) and their differences, by all that was folded."""
    n_arms, m = state.values.shape
    for i in range(m):
        kind = kind_at(state.kinds, i)
        for a in range(n_arms):
            singles[a, i, LOW], singles[a, i, HIGH] = single_interval(state, i, a, level)
            for b in range(a + 1, n_arms):
                low, high = state.lows[i, a, b], -state.lows[i, b, a]
                if is_share(state.limits, i):  # of which no difference was seen
                    low, high = -math.inf, math.inf
                row = pair_of(a, b, n_arms)
                n, mean, m2, m3, m4 = moments(state.pairs, row, i)
                if kind.code == EXACT:
                    known, difference = paired(state.limits, state.kinds, state.singles, state.pairs, i, a, b)
                    if known > 0.0:
                        low = high = difference
                elif kind.worst > 0.0:
                    n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, LOW)
                    below, _ = pair_interval(kind, n, mean, m2, m3, m4, pair_levels[i])
                    n, mean, m2, m3, m4 = completed_moments(state.completed, row, i, HIGH)
                    _, above = pair_interval(kind, n, mean, m2, m3, m4, pair_levels[i])
                    if n >= 2.0:
                        low, high = max(low, below), min(high, above)
                elif n >= 2.0:
                    below, above = pair_interval(kind, n, mean, m2, m3, m4, pair_levels[i])
                    low, high = max(low, below), min(high, above)
                pairs[a, b, i, LOW], pairs[a, b, i, HIGH] = low, high
                pairs[b, a, i, LOW], pairs[b, a, i, HIGH] = -high, -low
