"""One measurement copied to many rows: a fold's or a model's time beside every item.

Such rows are no items of their own. Equal values alone say little, as scores, grades and rounded numbers are
often equal; what gives copies away is said below. tests/judging/test_copies.py has how often it is wrong.
"""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Vector

FEWEST_FINE, FEWEST_COARSE = 5, 50  # items of which one value is suspicious
STEPS, LEVELS = (1.0, 0.5, 0.25, 0.1), 40  # of scores and grades, and how many there are at most
FEWEST, ENOUGH = 15, 30  # items of which groups are, and of which they need not coincide exactly
FEWEST_REPEATED, REDUNDANT = 10, 1 / 4  # of them, that belong to a group seen before
BOTH, EITHER = 0.6, 0.9  # how well groups must coincide, beyond chance: by both arms, and by one
EXACTLY = 0.95  # by both, of coarse or few values
ALIKE, ALIKE_COARSE = 1e-4, 0.1  # 1 − r² below which one arm follows from the other: a multiple, or a shift


def copied_arms(columns: Vector, low: float, high: float, is_paired: bool) -> NDArray[np.bool_]:
    """(K,) the arms of (n, K) values whose rows seem to be copies; values lie between low and high.

    An arm is one if it has one value, which is neither 0 nor an end of the range; or if items that are equal
    on another arm are equal on this one too, although the two arms differ. A score that two arms share, a
    shift, or a cost that is a multiple of the other is none.
    """
    n_arms = columns.shape[1]
    found = np.zeros(n_arms, np.bool_)
    coarse = _is_coarse(columns[~np.isnan(columns)], low, high)
    for a in range(n_arms):
        own = columns[:, a][~np.isnan(columns[:, a])]
        fewest = FEWEST_COARSE if coarse else FEWEST_FINE
        found[a] = own.size >= fewest and own.min() == own.max() and low < own[0] < high and own[0] != 0
    known = ~np.isnan(columns)
    repeated = [int(known[:, a].sum()) - np.unique(columns[known[:, a], a]).size for a in range(n_arms)]
    grouped = [a for a in range(n_arms if is_paired else 0) if repeated[a] >= FEWEST_REPEATED]
    for a in grouped:
        for b in grouped[: grouped.index(a)]:
            both = known[:, a] & known[:, b]
            if not (found[a] and found[b]) and _coincide(columns[both, a], columns[both, b], coarse):
                found[[a, b]] = True
    return found


def _is_coarse(values: Vector, low: float, high: float) -> bool:
    """Whether they are multiples of a step of which a scale has few, as scores and grades are."""
    if not math.isfinite(high - low):
        low, high = float(values.min()), float(values.max())
    steps = [step for step in STEPS if (high - low) / step <= LEVELS]
    return any(np.abs(values / step - np.round(values / step)).max() < 1e-6 for step in steps)


def _coincide(a: Vector, b: Vector, coarse: bool) -> bool:
    """Whether items in groups of equal values are in the same groups by both arms."""
    n, pairs = a.size, a.size * (a.size - 1) / 2
    if n < FEWEST or (a != b).sum() * 2 < n:
        return False
    codes = [np.unique(values, return_inverse=True)[1] for values in (a, b)]
    sizes = [np.unique(code, return_counts=True)[1] for code in (*codes, codes[0] * n + codes[1])]
    if n - sizes[2].size < max(FEWEST_REPEATED, REDUNDANT * n):
        return False
    ties_a, ties_b, both = (float((size * (size - 1.0)).sum()) / 2 for size in sizes)
    if max(ties_a, ties_b) >= pairs or min(ties_a, ties_b) == 0:
        return False  # one value, of which the other rule speaks
    kappas = [
        (both / mine - other / pairs) / (1 - other / pairs)
        for mine, other in ((ties_a, ties_b), (ties_b, ties_a))
    ]
    if min(kappas) < (EXACTLY if coarse or n < ENOUGH else BOTH) or max(kappas) < EITHER:
        return False
    if sizes[2].size == 2:
        return not coarse
    return float(1 - np.corrcoef(a, b)[0, 1] ** 2) > (ALIKE_COARSE if coarse else ALIKE)
