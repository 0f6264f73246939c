"""What is drawn of a table: means and differences with ordinary 95 % intervals; a picture, no claim."""

import math

import numpy as np

from lexbandits._arrays import Vector
from lexbandits.evidence import ordinary
from lexbandits.evidence.ordinary import Estimate, Interval
from lexbandits.judging.table import Table


def of_arm(table: Table, i: int, a: int, *, as_list: bool = False) -> Estimate:
    """Return the mean of arm a on objective i, as measured.

    Missing values that count as their worst widen the interval to what holds at the best and at the worst.
    """
    seen, sign = _known(table.seen[:, a, i]), table.objectives[i].sign
    ends = [_interval(table, i, cells[:, a, i], as_list) for cells in (table.low, table.high)]
    return Estimate.of(float(seen.mean()), _hull(ends), seen.size, _bounds(table, i)).times(sign)


def of_difference(table: Table, i: int, a: int, b: int, *, as_list: bool = False) -> Estimate:
    """Return how much better arm a is than arm b on objective i.

    On common items; where missing values count as their worst, the difference of the two means.
    """
    mine, yours = table.seen[:, a, i], table.seen[:, b, i]
    is_gappy = bool((table.low[:, [a, b], i] < table.high[:, [a, b], i]).any())
    if table.is_paired and not is_gappy:  # with gaps the mean of common ones could lie outside
        mine, yours = (values[~np.isnan(mine + yours)] for values in (mine, yours))
    mine, yours = _known(mine), _known(yours)
    ends = [
        _difference(table, i, cells[:, a, i], others[:, b, i], as_list)
        for cells, others in ((table.low, table.high), (table.high, table.low))
    ]
    mean, (low, high) = float(mine.mean() - yours.mean()), _bounds(table, i)
    return Estimate.of(mean, _hull(ends), min(mine.size, yours.size), (low - high, high - low))


def _hull(ends: list[Interval | None]) -> Interval | None:
    """Return what holds at both ends; None where that is one number, of a list without gaps."""
    found = ordinary.hull(*ends)
    return None if found is None or math.isclose(*found, rel_tol=1e-12) else found


def _known(values: Vector) -> Vector:
    return np.asarray(values[~np.isnan(values)])


def _bounds(table: Table, i: int) -> tuple[float, float]:
    """Return what a value can be, of the kind "more is better"."""
    low, high = table.objectives[i].bounds
    return (low, high) if table.objectives[i].sign > 0 else (-high, -low)


def _middle(table: Table, i: int, values: Vector) -> float:
    """Return what an objective is about: the mean, or a quantile."""
    objective = table.objectives[i]
    if objective.quantile is None:
        return float(values.mean())
    place = min(max(math.ceil(values.size * objective.quantile - 1e-9), 1), values.size)
    return objective.sign * float(np.sort(objective.sign * values)[place - 1])


def _interval(table: Table, i: int, values: Vector, as_list: bool) -> Interval | None:
    there = ~np.isnan(values)
    values = values[there]
    if table.kinds[i] == "exact" or not values.size:
        return None
    if as_list:  # nothing is left to chance, but what is missing
        middle = _middle(table, i, values)
        return None if table.low is table.seen else Interval(middle, middle)
    sign, share = table.objectives[i].sign, table.objectives[i].quantile
    clusters, values = None if table.clusters is None else table.clusters[there], sign * values
    if share is not None:
        found = ordinary.of_quantile(values, share)
    else:
        found = ordinary.estimate_mean(values, is_binary=table.kinds[i] == "binary", clusters=clusters)
    return found if sign > 0 or found is None else Interval(-found.high, -found.low)


def _difference(table: Table, i: int, mine: Vector, yours: Vector, as_list: bool) -> Interval | None:
    clusters = None
    if table.is_paired:
        there = ~np.isnan(mine + yours)
        mine, yours = mine[there], yours[there]
        clusters = None if table.clusters is None else table.clusters[there]
    mine, yours = _known(mine), _known(yours)
    if table.kinds[i] == "exact" or not mine.size or not yours.size:
        return None
    middles = _middle(table, i, mine), _middle(table, i, yours)
    if as_list:
        gap = middles[0] - middles[1]
        return None if table.low is table.seen else Interval(gap, gap)
    if table.objectives[i].sign < 0:  # a − b = (−b) − (−a), as measured
        mine, yours, middles = -yours, -mine, (-middles[1], -middles[0])
    if (share := table.objectives[i].quantile) is not None:
        return ordinary.of_two_quantiles(middles[0], mine, middles[1], yours, share)
    return ordinary.estimate_difference(
        mine,
        yours,
        is_binary=table.kinds[i] == "binary",
        is_paired=table.is_paired,
        clusters=clusters,
    )
