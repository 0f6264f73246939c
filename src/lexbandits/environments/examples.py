"""Instances by name: the paper's, and random ones."""

from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike

from lexbandits._validation import at_least, whole
from lexbandits.environments.instance import Instance


def paper_instance(n_arms: int) -> Instance:
    """The instance of the paper's experiments, with its ties exact.

    Args:
        n_arms: K, a multiple of 10.

    >>> [paper_instance(K).lex_optimal_arm for K in (10, 20, 30)]
    [5, 11, 17]
    """
    K = whole("n_arms, a multiple of 10,", n_arms, least=10)
    if K % 10:
        raise ValueError(f"the paper's instance needs a multiple of 10 arms, got {K}")

    def distance(x: Fraction, *peaks: int) -> Fraction:
        return min(abs(x - Fraction(p, 10)) for p in peaks)

    positions = [Fraction(a, K) for a in range(1, K + 1)]
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

    Args:
        n_arms, n_objectives: K and m.
        seed: of the draw.
        ties: the means lie on a coarse grid, so that arms tie on some objectives; else no two are equal.
        max_tradeoff: the largest λ: gains above it are cut down to it exactly.
        noise_sd: standard deviation, one or per objective.
    """
    n_arms = whole("n_arms", n_arms, least=1)
    n_objectives = whole("n_objectives", n_objectives, least=1)
    cap = None if max_tradeoff is None else Fraction(at_least("max_tradeoff", max_tradeoff, 0.0))
    rng = np.random.default_rng(np.random.SeedSequence(whole("seed", seed, least=0)))
    steps = 8 if ties else 2**40
    while True:
        grid = rng.integers(0, steps, size=(n_arms, n_objectives), endpoint=True)
        means = [[Fraction(int(x), steps) for x in row] for row in grid]
        best = max(means)
        if cap is not None:
            # without ties a gain is cut to somewhere below the cap, lest arms meet there
            keep = rng.integers(1, steps, size=(n_arms, n_objectives))
            shares = [[Fraction(1) if ties else Fraction(int(k), steps) for k in row] for row in keep]
            means = [_capped(row, best, cap, share) for row, share in zip(means, shares, strict=True)]
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
