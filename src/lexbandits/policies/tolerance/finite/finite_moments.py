"""Lists of values that are not bounded: what their moments show, from where bets begin."""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.betting import BOUNDARY_PRIOR
from lexbandits.evidence.finite_population import finite_log_evidence, finite_radius
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.kinds import FINITE_VARIANCE, Kind
from lexbandits.evidence.moments import push_squares
from lexbandits.policies.tolerance.anytime import beats, not_worse
from lexbandits.policies.tolerance.finite.finite_state import (
    ABOVE,
    COUNT,
    EARLIER,
    LOST,
    MEAN,
    SQUARES,
    FinitePopulation,
)
from lexbandits.policies.tolerance.state import (
    BEATS,
    LEVEL,
    NOT_WORSE_LEVEL,
    REACH,
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
    population: FinitePopulation, kind: Kind, row: int, i: int, since: int, level: float
) -> tuple[float, float, bool]:
    """Where the mean of a list lies whose values are not bounded, and whether all of them are known."""
    n_items = float(population.status.shape[1])
    left = n_items - since
    n, mean = population.later[row, i, COUNT], population.later[row, i, MEAN]
    lost = population.later[row, i, LOST]
    radius = math.inf
    if lost == 0.0 and (kind.code != FINITE_VARIANCE or n >= LARGE_SAMPLE or n == left):
        radius = finite_radius(n, left, population.later[row, i, SQUARES], level)
    earlier = population.later[row, i, EARLIER]
    full = lost == 0.0 and n == left
    return (earlier + left * (mean - radius)) / n_items, (earlier + left * (mean + radius)) / n_items, full


@kernel
def later_evidence(
    population: FinitePopulation, kind: Kind, row: int, i: int, since: int, sign: float, boundary: float
) -> float:
    """The log evidence that the mean of sign · values that are not bounded exceeds a boundary."""
    n_items = float(population.status.shape[1])
    left = n_items - since
    n, squares = population.later[row, i, COUNT], population.later[row, i, SQUARES]
    lost = population.later[row, i, LOST]
    if (
        lost > 0.0
        or n < 2.0
        or n >= left
        or not squares > 0.0
        or (kind.code == FINITE_VARIANCE and n < LARGE_SAMPLE)
    ):
        return -math.inf
    lead = (
        sign * population.later[row, i, MEAN]
        - (n_items * boundary - sign * population.later[row, i, EARLIER]) / left
    )
    if lead <= 0.0:
        return -math.inf
    evidence = finite_log_evidence(n, left, lead, squares, 0.0, BOUNDARY_PRIOR)
    return evidence + math.log(2.0 - math.exp(-evidence)) if evidence > 0.0 else -math.inf


@kernel(inline="never")
def push_unbounded(
    state: State, population: FinitePopulation, kind: Kind, i: int, row: int, p: int, q: int, t: int
) -> bool:
    """Count position t of the pair p < q where values are not bounded; whether that is news."""
    lcb, limits, log_evidence = state.lcb, state.limits, state.log_evidence
    since = max(population.since[p], population.since[q])
    push_later(population.later, row, i, t, since, population.table[p, t, i] - population.table[q, t, i])
    low, high, full = later_interval(population, kind, row, i, since, limits[i, LEVEL])
    tolerance, reach = limits[i, TOLERANCE], limits[i, REACH]
    # how far a mean may be off by rounding and be equal to a limit as written
    slack = 1e-12 * (abs(state.arms.means[p, i]) + abs(state.arms.means[q, i]) + reach) if full else 0.0
    news = False
    for way in range(2):
        a, b, end = (p, q, low) if way == 0 else (q, p, -high)
        were_seen = not_worse(lcb, limits, i, a, b), beats(lcb, limits, i, a, b)
        if full:
            end = max(end, population.marks[i, ABOVE]) if end > tolerance + slack else min(end, tolerance)
            end = max(end, -reach) if end >= -reach - slack else end
        lcb[i, a, b] = end if full else max(lcb[i, a, b], end)
        for claim in range(2):  # NOT_WORSE, BEATS
            holds = beats(lcb, limits, i, a, b) if claim == BEATS else not_worse(lcb, limits, i, a, b)
            news |= holds != were_seen[claim]
            before, enough = log_evidence[claim, i, a, b], limits[i, NOT_WORSE_LEVEL + claim]
            if full and not holds:
                population.overturned[i, a, b] |= were_seen[claim] or before > -math.inf
                log_evidence[claim, i, a, b] = -math.inf
            elif not full and before < enough < math.inf:
                boundary = tolerance if claim == BEATS else -reach
                now = later_evidence(population, kind, row, i, since, 1.0 if way == 0 else -1.0, boundary)
                if now >= enough:
                    log_evidence[claim, i, a, b] = now
                    news = True
    return bool(news)
