"""How many items a certificate may take, by the means of those that are there."""

import math

import numpy as np
from scipy import special

from lexbandits.arrays import Vector
from lexbandits.judging.claims import MEETS, MISSES, Claims
from lexbandits.judging.scheme import Claim, plug_in, shares
from lexbandits.judging.table import Table

FUTURES = 50  # draws of the means
CAUTIOUS = 0.6  # of them are to need no more: estimates from few items are off, and mostly it takes more


def items_needed(
    claims: Claims, leads: Vector, near: Vector, alpha: float
) -> tuple[int | None, tuple[int | None, int | None] | None]:
    """How many items (or clusters) give a certificate in 8 of 10 cases, and where that may lie.

    None if by the means no number does; an end is None if it is not finite.
    """
    typical, *possible = (_needed_in(claims, leads, near, noise, alpha) for noise in _noise(claims.table))
    if math.isinf(typical):
        return None, None
    cautious, *ends = np.quantile([typical, *possible], (CAUTIOUS, 0.1, 0.9), method="nearest")
    low, high = (None if math.isinf(end) else math.ceil(end) for end in ends)
    return math.ceil(typical if math.isinf(cautious) else max(typical, cautious)), (low, high)


def _noise(table: Table) -> Vector:
    """(1 + FUTURES, m, K) by how much the means may be off; the first time not at all."""
    filled = table.seen - np.nanmean(table.seen, axis=0)
    filled[np.isnan(filled)] = 0.0
    units = filled.transpose(0, 2, 1).reshape(len(filled), -1)
    if table.clusters is not None:
        summed = np.zeros((table.n_units, units.shape[1]))
        np.add.at(summed, table.clusters, units)
        units = summed
    drawn = np.random.default_rng(0).standard_normal((FUTURES, len(units))) @ units / len(filled)
    return np.concatenate([np.zeros((1, units.shape[1])), drawn]).reshape(FUTURES + 1, *filled.shape[:0:-1])


def _needed_in(claims: Claims, leads: Vector, near: Vector, noise: Vector, alpha: float) -> float:
    """How many items (or clusters) give the likely answer its certificate in 8 of 10 cases."""
    x, _, given_up = plug_in(claims, leads + noise[:, :, None] - noise[:, None, :], near + noise)
    limits = [i for i, target in enumerate(claims.targets) if target is not None and i not in given_up]
    needed = [_enough(claims, noise, (MEETS, i, x, None), alpha) for i in limits]
    for y in range(claims.n_arms):
        for i in range(claims.n_objectives):
            if y != x and i not in limits:
                ways = shares(claims, x, y, i, limits)
                needed.append(min(_enough(claims, noise, claim, share * alpha) for claim, share in ways))
    return max(needed, default=0.0)


def _enough(claims: Claims, noise: Vector, claim: Claim, alpha: float) -> float:
    fact, i, a, b = claim
    sample, limit = claims.sample(*claim), claims.limit(fact, i)
    if not claims.noisy[i]:
        return 0.0 if claims.says(*claim, alpha) else math.inf
    lead = sample.mean - limit + (-1 if fact == MISSES else 1) * noise[i, a]
    lead -= 0.0 if b is None else noise[i, b]
    if lead <= 0:
        return math.inf
    sd = sample.sd
    if claims.table.kinds[i] == "binary":  # few pairs may hide how often arms differ: one more each way
        sd = math.sqrt((sd * sd * (sample.n - 1) + len(sample.weights)) / (sample.n + 1))
    plain = float((special.ndtri(0.8) - special.ndtri(alpha)) * sd / lead) ** 2
    if claims.table.kinds[i] == "gaussian":
        return max(plain, claims.enough_for_normal(*claim, alpha))
    if claims.table.kinds[i] != "bounded":
        return plain
    return 1.25 * plain + (limit - sample.low) * math.log(1 / alpha) / float(lead)
