"""The state of LexElim-Tol: who is asked, what was folded and seen of it, and the rules that apply to it."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.policies.base import Arms


class Clock(IntEnum):
    """The fields of State.clock."""

    PASS = 0  # the current one
    TURN = 1  # the arm whose turn it is; −1: nobody's
    LACKS = 2  # places that the pass still lacks
    HIGHEST = 3  # the highest pass told; −1: none
    NEXT = 4  # the pass of the next judgement
    RESULTS = 5  # folded
    POSITION = 6  # in the order, of the objective being settled
    OVER = 7  # whether it is over,
    CONTRADICTION = 8  # and by a contradiction
    CANDIDATE = 9  # for the answer; −1: none yet
    LEADER = 10  # asked several times in the current pass; −1: nobody
    RIVAL = 11  # that the candidate was not shown to be not worse than when last evaluated; −1: nobody,
    STUCK = 12  # and on which objective


class Mask(IntEnum):
    """The rows of State.masks, each a set of arms."""

    OFFERED = 0  # those in question
    ASKED = 1  # the members of the pass
    FILLED = 2  # those whose place in it is filled
    BY_RULE = 3  # those that the rule would ask
    BY_PROOF = 4  # those that the proof of the candidate would ask


class Limit(IntEnum):
    """The columns of State.limits; levels are logarithms of 1/α."""

    TOLERANCE = 0
    REACH = 1  # tolerance + resolution
    TARGET = 2  # of a limit, nan elsewhere
    FLOOR = 3  # target − resolution
    LEVEL = 4  # of anytime evidence about a pair,
    TARGET_LEVEL = 5  # and about an arm and a limit
    NOT_WORSE_LEVEL = 6  # of pre-registered tests of the answer: not worse than a rival,
    BEATS_LEVEL = 7  # better than a rival, or a rival below the target,
    MEETS_LEVEL = 8  # and at the floor
    OF = 9  # where tolerance and resolution are shares of a mean: of this arm's, or of the best (−1)
    SIGN = 10  # and the sign of the values; 0 where they are none


class Side(IntEnum):
    """Of an interval, or what missing values are taken to be."""

    LOW = 0
    HIGH = 1


class PairClaim(IntEnum):
    """What may be shown of a pair: θ_a − θ_b exceeds −reach, or the tolerance."""

    NOT_WORSE = 0
    BEATS = 1


class LimitClaim(IntEnum):
    """What may be shown of an arm and a limit; the last only of finite populations."""

    MEETS = 0  # at least at the floor
    MISSES = 1  # below the target
    VIOLATES = 2  # below the floor


# Kernels use plain integers, which are the same to numba: interpreted, `clock[Clock.PASS]` takes 77 ns and
# `clock[PASS]` 30 ns (CPython 3.11). tests/test_policies.py holds the names against the members.
PASS, TURN, LACKS, HIGHEST, NEXT, RESULTS, POSITION, OVER, CONTRADICTION, CANDIDATE, *_proof = map(int, Clock)
LEADER, RIVAL, STUCK = _proof
OFFERED, ASKED, FILLED, BY_RULE, BY_PROOF = map(int, Mask)
TOLERANCE, REACH, TARGET, FLOOR, LEVEL, TARGET_LEVEL, *_levels, OF, SIGN = map(int, Limit)
NOT_WORSE_LEVEL, BEATS_LEVEL, MEETS_LEVEL = _levels
LOW, HIGH = map(int, Side)
NOT_WORSE, BEATS = map(int, PairClaim)
MEETS, MISSES, _ = map(int, LimitClaim)
FIRST = 5  # where the values begin in a row of State.singles


class Options(NamedTuple):
    """Options of the policy that are neither limits nor kinds of noise."""

    proves: bool  # stop_when="answer"
    stops: bool  # where everybody is below the floor of a limit
    baseline: int  # the arm that answers unless another is better; −1 for none


class State(NamedTuple):
    """K arms, m objectives, P = K(K−1)/2 pairs; a row of moments is n, mean, M2 (, M3, M4)."""

    arms: Arms
    clock: Counts  # (13,) see `Clock`
    options: Options
    masks: NDArray[np.bool_]  # (5, K) see `Mask`
    values: Vector  # (K, m) told in the current pass
    repeats: Vector  # (r, m + 1) told of its leader, and whether it was; empty where all are asked once
    singles: Vector  # (K, m, 5 or more) moments of the arms' values, and the first where none must return
    pairs: Vector  # (P, m, 3 or 5) moments of the differences a − b, a < b
    lcb: Vector  # (m, K, K) largest lower bound of θ_a − θ_b so far; the least upper one is −lcb[i, b, a]
    bounds: Vector  # (m, K, 2) the largest lower and the least upper bound of arms tested against a target
    is_limit: NDArray[np.bool_]  # (m,) whether the objective is a limit: has a target, and a floor below it
    reached: NDArray[np.bool_]  # (m, K) the arms that reached a limit, if all are seen to be below its floor
    order: Counts  # (m,) objectives by priority
    limits: Vector  # (m, 11) see `Limit`
    kinds: Vector  # (m, 6) of the noise
    completed: Vector  # (P + K, m, 2, 5) of pairs and arms with missing values at their least and largest
    # of the pre-registered tests; all are empty where there are none, or rules were changed
    log_evidence: Vector  # (2, m, K, K) per claim the largest log evidence seen
    arm_log_evidence: (
        Vector  # (2, m, K) the same of arms and limits; on finite populations (3, m, K), never empty
    )
    wealth: Vector  # (2, P (+ K with limits), m, 2, 2, 6) bets of bounded kinds: see `betting.bet`
    shares: Vector  # (2, m, K, K, 15) per claim moments and bets of a contrast: see `relative`; empty without


class PassArrays(NamedTuple):
    """The arrays that filling a place touches.

    Few, since numba counts references to every array that a loop hands to a call.
    """

    clock: Counts
    masks: NDArray[np.bool_]
    values: Vector
    repeats: Vector
    kinds: Vector
    singles: Vector
    told: Counts
    pulls: Counts


@kernel
def pair_of(a: int, b: int, n_arms: int) -> int:
    """The row of the pair a < b."""
    return a * (2 * n_arms - a - 1) // 2 + b - a - 1


@kernel
def moments(table: Vector, row: int, i: int) -> tuple[float, float, float, float, float]:
    """n, mean, M2, M3, M4; the last two are 0 where nobody needs them."""
    if table.shape[2] == 3:
        return table[row, i, 0], table[row, i, 1], table[row, i, 2], 0.0, 0.0
    return table[row, i, 0], table[row, i, 1], table[row, i, 2], table[row, i, 3], table[row, i, 4]


@kernel
def completed_moments(
    completed: Vector, row: int, i: int, side: int
) -> tuple[float, float, float, float, float]:
    """n, mean, M2, M3, M4 with missing values at their least (LOW) or largest (HIGH)."""
    n, mean, m2 = completed[row, i, side, 0], completed[row, i, side, 1], completed[row, i, side, 2]
    return n, mean, m2, completed[row, i, side, 3], completed[row, i, side, 4]


@kernel
def row_of_arm(arm: int, n_arms: int) -> int:
    """The row of an arm in State.completed and State.wealth."""
    return n_arms * (n_arms - 1) // 2 + arm
