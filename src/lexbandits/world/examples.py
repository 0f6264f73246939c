"""Instances by name: the paper's, and random ones."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from lexbandits.world.instance import Instance, _numbers


def paper_instance(n_arms: int) -> Instance:
    """The instance of the paper's experiments, with its ties exact; K a multiple of 10.

    >>> [paper_instance(K).lex_optimal_arm for K in (10, 20, 30)]
    [5, 11, 17]
    """
    if isinstance(n_arms, bool) or not isinstance(n_arms, (int, np.integer)):
        raise TypeError(f"n_arms must be an integer, got {n_arms!r}")
    if n_arms < 10 or n_arms % 10:
        raise ValueError(f"the paper's instance needs a positive multiple of 10 arms, got {n_arms}")

    def distance(x: Fraction, *peaks: int) -> Fraction:
        return min(abs(x - Fraction(p, 10)) for p in peaks)

    positions = [Fraction(a, int(n_arms)) for a in range(1, int(n_arms) + 1)]
    means = [[1 - distance(x, 3, 6, 9), 1 - 2 * distance(x, 5, 8), 1 - 2 * distance(x, 5)] for x in positions]
    return Instance(means, noise_sd=float(np.sqrt(0.1)))


def random_instance(
    n_arms: int,
    n_objectives: int,
    *,
    seed: int,
    ties: bool = True,
    max_tradeoff: float | None = None,
    noise_sd: float | ArrayLike = 1.0,
) -> Instance:
    """A random instance with means in [0, 1] and a unique lex-optimal arm.

    With `ties` the means lie on a coarse grid, so that arms tie on some objectives; without, no two
    means are equal. `max_tradeoff` caps the least λ: gains above it are cut down to it exactly.
    """
    _check_shape(n_arms, n_objectives)
    if max_tradeoff is not None:
        cap = float(_numbers("max_tradeoff", max_tradeoff, shape=()))
        if not (np.isfinite(cap) and cap >= 0):
            raise ValueError(f"max_tradeoff must be None or a finite number >= 0, got {max_tradeoff!r}")
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
        raise TypeError(f"seed must be an integer, got {seed!r}")
    if seed < 0:
        raise ValueError(f"seed must be at least 0, got {seed}")
    rng = np.random.default_rng(np.random.SeedSequence(int(seed)))
    steps = 8 if ties else 2**40
    while True:
        grid = rng.integers(0, steps, size=(n_arms, n_objectives), endpoint=True)
        means = [[Fraction(int(x), steps) for x in row] for row in grid]
        best = max(means)
        if max_tradeoff is not None:
            # without ties a gain is cut to somewhere below the cap, lest arms meet there
            keep = rng.integers(1, steps, size=(n_arms, n_objectives))
            shares = [[Fraction(1) if ties else Fraction(int(k), steps) for k in row] for row in keep]
            means = [
                _capped(row, best, Fraction(cap), share) for row, share in zip(means, shares, strict=True)
            ]
        distinct = ties or all(len(set(column)) == n_arms for column in zip(*means, strict=True))
        if means.count(best) == 1 and distinct:
            return Instance(means, noise_sd=noise_sd)
        if ties and (n_arms > (steps + 1) ** n_objectives // 2):
            steps *= 2


def _capped(
    row: list[Fraction], best: list[Fraction], tradeoff: Fraction, shares: list[Fraction]
) -> list[Fraction]:
    """`row` with every gain over `best` at most `tradeoff` times the worst loss on earlier objectives.

    A value above its cap becomes a share of the cap.
    """
    if row == best:
        return row
    capped = row[:1]
    for i in range(1, len(row)):
        worst_loss = max(b - x for b, x in zip(best, capped, strict=False))
        cap = best[i] + tradeoff * worst_loss
        capped.append(row[i] if row[i] <= cap else cap * shares[i])
    return capped


def _check_shape(n_arms: int, n_objectives: int) -> None:
    for name, value in (("n_arms", n_arms), ("n_objectives", n_objectives)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
            raise TypeError(f"{name} must be an integer, got {value!r}")
        if value < 1:
            raise ValueError(f"{name} must be at least 1, got {value}")
