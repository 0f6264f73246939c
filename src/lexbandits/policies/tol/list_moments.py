"""Lists of values that are not bounded: what their moments show, from where bets begin."""

import math

from lexbandits.arrays import Vector
from lexbandits.evidence.boundary import BOUNDARY_PRIOR
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.kinds import FINITE_VARIANCE, Kind
from lexbandits.evidence.moments import push_squares
from lexbandits.evidence.without_replacement import list_log_evidence, list_radius
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.facts import beats, not_worse
from lexbandits.policies.tol.listed import ABOVE, COUNT, EARLIER, LOST, MEAN, SQUARES, Listed
from lexbandits.policies.tol.state import (
    BEATS,
    LEVEL,
    NOT_WORSE_LEVEL,
    REACH,
    THIRD_LEVEL,
    TOLERANCE,
    State,
)


@kernel
def push_later(later: Vector, row: int, i: int, t: int, since: int, value: float) -> None:
    """Count a value, nan if it is missing, among those before or after bets begin."""
    if math.isnan(value):
        if t < since:
            later[row, i, LOST] += 1.0
    elif t < since:
        later[row, i, EARLIER] += value
    else:
        n, mean, squares = later[row, i, COUNT], later[row, i, MEAN], later[row, i, SQUARES]
        n, mean, squares = push_squares(n, mean, squares, value)
        later[row, i, COUNT], later[row, i, MEAN], later[row, i, SQUARES] = n, mean, squares


@kernel
def later_interval(
    listed: Listed, kind: Kind, row: int, i: int, since: int, level: float
) -> tuple[float, float, bool]:
    """Where the mean of a list lies whose values are not bounded, and whether all of them are known."""
    n_items = float(listed.status.shape[1])
    left = n_items - since
    n, mean, lost = listed.later[row, i, COUNT], listed.later[row, i, MEAN], listed.later[row, i, LOST]
    radius = math.inf
    if lost == 0.0 and (kind.code != FINITE_VARIANCE or n >= LARGE_SAMPLE or n == left):
        radius = list_radius(n, left, listed.later[row, i, SQUARES], level)
    earlier = listed.later[row, i, EARLIER]
    full = lost == 0.0 and n == left
    return (earlier + left * (mean - radius)) / n_items, (earlier + left * (mean + radius)) / n_items, full


@kernel
def later_evidence(
    listed: Listed, kind: Kind, row: int, i: int, since: int, sign: float, boundary: float
) -> float:
    """The log evidence that the mean of sign · values that are not bounded exceeds a boundary."""
    n_items = float(listed.status.shape[1])
    left = n_items - since
    n, squares, lost = listed.later[row, i, COUNT], listed.later[row, i, SQUARES], listed.later[row, i, LOST]
    if (
        lost > 0.0
        or n < 2.0
        or n >= left
        or not squares > 0.0
        or (kind.code == FINITE_VARIANCE and n < LARGE_SAMPLE)
    ):
        return -math.inf
    lead = (
        sign * listed.later[row, i, MEAN] - (n_items * boundary - sign * listed.later[row, i, EARLIER]) / left
    )
    if lead <= 0.0:
        return -math.inf
    evidence = list_log_evidence(n, left, lead, squares, 0.0, BOUNDARY_PRIOR)
    return evidence + math.log(2.0 - math.exp(-evidence)) if evidence > 0.0 else -math.inf


@apart
def push_unbounded(
    state: State, listed: Listed, kind: Kind, i: int, row: int, p: int, q: int, t: int
) -> bool:
    """Count position t of the pair p < q where values are not bounded; whether that is news."""
    lows, limits, shown = state.lows, state.limits, state.shown
    since = max(listed.since[p], listed.since[q])
    push_later(listed.later, row, i, t, since, listed.table[p, t, i] - listed.table[q, t, i])
    low, high, full = later_interval(listed, kind, row, i, since, limits[i, LEVEL])
    tolerance, reach, third = limits[i, TOLERANCE], limits[i, REACH], limits[i, THIRD_LEVEL]
    # how far a mean may be off by rounding and be equal to a limit as written
    slack = 1e-12 * (abs(state.arms.means[p, i]) + abs(state.arms.means[q, i]) + reach) if full else 0.0
    news = False
    for way in range(2):
        a, b, end = (p, q, low) if way == 0 else (q, p, -high)
        were_seen = not_worse(lows, limits, i, a, b), beats(lows, limits, i, a, b)
        if full:
            end = max(end, listed.marks[i, ABOVE]) if end > tolerance + slack else min(end, tolerance)
            end = max(end, -reach) if end >= -reach - slack else end
        lows[i, a, b] = end if full else max(lows[i, a, b], end)
        for claim in range(2):  # NOT_WORSE, BEATS
            holds = beats(lows, limits, i, a, b) if claim == BEATS else not_worse(lows, limits, i, a, b)
            news |= holds != were_seen[claim]
            before, enough = shown[claim, i, a, b], limits[i, NOT_WORSE_LEVEL + claim]
            if full and not holds:
                listed.overturned[i, a, b] |= were_seen[claim] or before > -math.inf
                shown[claim, i, a, b] = -math.inf
            elif not full and (before < enough < math.inf or before < third < math.inf):
                boundary = tolerance if claim == BEATS else -reach
                now = later_evidence(listed, kind, row, i, since, 1.0 if way == 0 else -1.0, boundary)
                if now > before and now >= min(enough, third):
                    shown[claim, i, a, b] = now
                    news |= before < enough <= now or before < third <= now
    return bool(news)
