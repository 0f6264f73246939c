"""Evidence that a mean difference exceeds a boundary that was fixed before the first value.

One-sided and at one point, so it takes fewer values than an interval, which speaks of every point. Each
is the log of a process that starts at 1 and, while the truth does not exceed the boundary, passes e^l with
probability at most e^−l: a test martingale (Ville 1939; Shafer, Shen, Vereshchagin and Vovk 2011,
*Statistical Science* 26). Bets on bounded values are those of Waudby-Smith and Ramdas (2024, *JRSS B* 86).
docs/proofs.md, "Evidence at pre-registered boundaries".
"""

import math
from collections.abc import Sequence

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.finite_variance import LARGE_SAMPLE
from lexbandits.evidence.gaussian import gaussian_log_evidence
from lexbandits.evidence.kinds import FINITE_VARIANCE, SUB_GAUSSIAN, SYMMETRIC, Kind

# Stakes in units of what suits a truth one resolution above the boundary, and what is staked on each.
STAKES = np.array([0.5, 1.0, 2.0, 4.0, 8.0, math.inf])
SHARES = np.array([0.10, 0.34, 0.26, 0.13, 0.07, 0.10])
STEADY_SHARES = np.array([0.15, 0.42, 0.18, 0.07, 0.05, 0.13])  # where values are steady
HIGHEST_STAKE = 16.0  # in place of the last one where values are not bounded
# Of bounded values: the number and M2 of values imagined before the first, and the share of the wealth that
# one bet may lose. Values may jump from end to end, and rarely, so early calm proves little. Those that are
# `steady` keep to a small part of their range: there the largest stake is the best one, and early.
Caution = tuple[float, float, float]
JUMPING: Caution = (4.0, 0.5, 0.9)
STEADY: Caution = (2.0, 0.02, 0.97)
BOUNDARY_PRIOR = 10.0  # ρ of the Gaussian mixture
LEAST, MOST = 1e-140, 1e140  # products outside are kept as logarithms
BETS, LOW_BOUNDARY = 16, 1e-3  # so many bets at a boundary as high multiply by 1e-25 at least, 1e48 at most


@kernel
def stored_boundary(kind: Kind, boundary: float) -> float:
    """A boundary of a difference as the differences of a bounded kind are stored."""
    width = kind.high - kind.low
    return (boundary + width) / (2.0 * width)


@kernel
def keep_logarithms(wealth: Vector, row: int, i: int, claim: int) -> None:
    """Keep products that have become too small or too large as logarithms."""
    for direction in range(2):
        for g in range(STAKES.size):
            product = wealth[0, row, i, direction, claim, g]
            if not LEAST < product < MOST:
                wealth[1, row, i, direction, claim, g] += math.log(product)
                wealth[0, row, i, direction, claim, g] = 1.0


def first_wealth(kinds: Sequence[Kind]) -> Vector:
    """(objectives, stakes) what is staked before the first value; all of it is 1."""
    steady = np.array([kind.steady > 0.0 for kind in kinds])
    return np.where(steady[:, None], STEADY_SHARES, SHARES)


@kernel
def bet(
    wealth: Vector,
    row: int,
    i: int,
    claim: int,
    b: float,
    unit: float,
    lead: float,
    back_unit: float,
    back: float,
    n: float,
    most_risk: float,
) -> None:
    """Bet on the differences of a pair's pass n, `lead` = stored a − b, `back` = stored b − a, exceeding b.

    wealth (2, pairs, objectives, 2 directions, claims, stakes): products, and logarithms of what left them;
    `first_wealth` to begin with.
    The units, stakes that suit one resolution, are functions of earlier passes; `most_risk` is of the kind.
    """
    if not 0.0 < b < 1.0:
        return
    most = most_risk / b
    up, down = lead - b, back - b
    for g in range(STAKES.size):  # without a branch, so that it is vectorised
        stake, back_stake = STAKES[g] * unit, STAKES[g] * back_unit
        wealth[0, row, i, 0, claim, g] *= 1.0 + (stake if stake < most else most) * up
        wealth[0, row, i, 1, claim, g] *= 1.0 + (back_stake if back_stake < most else most) * down
    # BETS factors cannot overflow a product that was within LEAST and MOST, so it is looked at that rarely
    if b < LOW_BOUNDARY or int(n) % BETS == 0:
        keep_logarithms(wealth, row, i, claim)


@kernel
def caution_of(kind: Kind) -> Caution:
    """How carefully a bounded kind is bet on."""
    return STEADY if kind.steady > 0.0 else JUMPING


@kernel
def unit_stake(kind: Kind, n: float, m2: float, aim: float) -> float:
    """The stake that suits a truth `aim` above the boundary, by the spread of n values so far; as stored."""
    values, squares, _ = caution_of(kind)
    return aim * (n + values) / (m2 + squares)


@kernel
def log_wealth(wealth: Vector, row: int, i: int, direction: int, claim: int, b: float) -> float:
    """The log of what the bets that a difference exceeds b are worth; b outside (0, 1) needs none."""
    if not 0.0 < b < 1.0:
        return math.inf if b <= 0.0 else -math.inf
    top = float(wealth[1, row, i, direction, claim, 0])
    for g in range(1, STAKES.size):
        top = max(top, wealth[1, row, i, direction, claim, g])
    total = 0.0
    for g in range(STAKES.size):
        kept = wealth[1, row, i, direction, claim, g]
        part = wealth[0, row, i, direction, claim, g]
        total += part if kept == top else part * math.exp(kept - top)
    return top + math.log(total)


@kernel
def sub_gaussian_bets(n: float, lead: float, scale: float, resolution: float) -> float:
    """Log wealth by n differences that exceed the boundary by `lead` on average."""
    top, total = -math.inf, 0.0
    for g in range(STAKES.size):
        stake = min(STAKES[g], HIGHEST_STAKE) * resolution / (scale * scale)
        term = math.log(SHARES[g]) + n * stake * (lead - 0.5 * stake * scale * scale)
        if term > top:
            total = total * math.exp(top - term) + 1.0
            top = term
        else:
            total += math.exp(term - top)
    return top + math.log(total)


@kernel
def gaussian_bets(n: float, lead: float, squares: float) -> float:
    """log(2E − 1) of the mixture's evidence E, 0 unless it speaks for a truth above the boundary."""
    if n < 2.0 or lead <= 0.0 or not squares > 0.0:
        return 0.0
    evidence = gaussian_log_evidence(n, lead, squares, 0.0, BOUNDARY_PRIOR)
    return evidence + math.log(2.0 - math.exp(-evidence)) if evidence > 0.0 else 0.0


@kernel
def moment_bets(kind: Kind, n: float, lead: float, squares: float, resolution: float) -> float:
    """The evidence of a kind whose differences are not bounded."""
    if kind.code == SUB_GAUSSIAN:
        return sub_gaussian_bets(n, lead, kind.pair_sd, resolution)
    if kind.code == FINITE_VARIANCE and n < LARGE_SAMPLE:
        return 0.0
    return gaussian_bets(n, lead, squares)


@kernel
def may_reach(kind: Kind, n: float, lead: float, squares: float, enough: float) -> bool:
    """Whether `moment_bets` can be enough: a bound on it that takes no logarithm."""
    if lead <= 0.0:
        return False
    if enough < 0.0 or kind.code == SYMMETRIC:  # whose bets are kept apart
        return True
    if kind.code == SUB_GAUSSIAN:
        return 0.5 * n * lead * lead / (kind.pair_sd * kind.pair_sd) >= enough - 1e-9
    # log(2E − 1) ≤ log 2 + log E, and log E ≤ n/2·log(1 + u) ≤ nu/2 with u = n·lead²/M2; multiplied by M2
    return 0.7 * squares + 0.5 * n * lead * n * lead >= (enough - 1e-9) * squares
