"""The state of LexElim-Tol: who is asked, what was folded and seen of it, and the rules that judge it."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import kernel
from lexbandits.policies.base import Arms

# The fields of State.clock: the current PASS, the arm whose TURN it is (−1: nobody's), places that the
# pass still LACKS, the HIGHEST pass told (−1: none), the pass of the NEXT judgement, RESULTS folded, the
# POSITION in the order of the objective being settled, whether it is OVER, by a CONTRADICTION or not,
# and the CANDIDATE for the answer (−1: none yet).
PASS, TURN, LACKS, HIGHEST, NEXT, RESULTS, POSITION, OVER, CONTRADICTION, CANDIDATE = range(10)
# Rows of State.who: the arms in question, the members of the pass, who has its place there filled, and
# whom the rule and the proof of the candidate would ask.
OFFERED, ASKED, FILLED, BY_RULE, BY_PROOF = range(5)
# Columns of State.limits; four are what a claim under the declared rules takes. SIGN is 0 or, where
# tolerance and resolution are shares of the mean of an arm, OF, or of the best one, OF −1, that of values.
TOLERANCE, REACH, TARGET, FLOOR, LEVEL, TARGET_LEVEL, NOT_WORSE_LEVEL, BEATS_LEVEL, THIRD_LEVEL = range(9)
OF, SIGN, MEETS_LEVEL = 9, 10, 11
LOW, HIGH = 0, 1
FIRST = 5  # where the values begin in a row of State.singles
NOT_WORSE, BEATS = 0, 1  # claims under the declared rules: θ_a − θ_b > −reach, and > tolerance
MEETS, MISSES = 0, 1  # and of one arm and a limit: at least the floor, below the target


class Manner(NamedTuple):
    """Settings that are neither limits nor kinds."""

    proves: bool  # settle="answer"
    stops: bool  # where everybody is below the floor of a limit
    baseline: int  # the arm that answers unless another is better; −1 for none


class State(NamedTuple):
    """K arms, m objectives, P = K(K−1)/2 pairs; a row of moments is n, mean, M2 (, M3, M4)."""

    arms: Arms
    clock: Counts  # (10,) see above
    manner: Manner
    who: NDArray[np.bool_]  # (5, K) see above
    values: Vector  # (K, m) told in the current pass
    singles: Vector  # (K, m, 5 or more) moments of the arms' values, and the first where none must return
    pairs: Vector  # (P, m, 3 or 5) moments of the differences a − b, a < b
    lows: Vector  # (m, K, K) the largest lower end of θ_a − θ_b seen; the least upper end is −lows[i, b, a]
    bounds: Vector  # (m, K, 2) the largest lower and the least upper bound of arms tested against a target
    must: NDArray[np.bool_]  # (m,) whether the objective is a limit: has a target, and a floor below it
    reached: NDArray[np.bool_]  # (m, K) the arms that reached a limit, if all are seen to be below its floor
    order: Counts  # (m,) objectives by priority
    limits: Vector  # (m, 12) tolerance, tolerance + resolution, target, target − resolution, log levels, …
    kinds: Vector  # (m, 6) of the noise
    completed: Vector  # (P + K, m, 2, 5) of pairs and arms with missing values at their least and largest
    # the account of the declared rules; all are empty where there is none, or it was closed
    shown: Vector  # (2, m, K, K) per claim the largest log evidence seen
    arm_shown: (
        Vector  # (2, m, K) the same of arms and limits, empty without; on lists (3, m, K), account or not
    )
    wealth: Vector  # (2, P (+ K with limits), m, 2, 2, 6) bets of bounded kinds: see `boundary.bet`
    shares: Vector  # (2, m, K, K, 15) per claim moments and bets of a contrast: see `percent`; empty without


class Desk(NamedTuple):
    """What filling a place touches: numba counts references to every array that a loop hands to a call."""

    clock: Counts
    who: NDArray[np.bool_]
    values: Vector
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
