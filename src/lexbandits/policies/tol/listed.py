"""What a policy about a list keeps, beside the state of LexElim-Tol. docs/proofs.md, section 8.

A place is (arm, position). An arm is folded up to its first place that is not filled yet (list_folding), and
two arms are compared on the positions that both have folded (list_judging), so all that was seen is a
function of the set of filled places. Each arm goes through one drawn order at its own pace (list_asking).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector

LOG_2 = math.log(2.0)
EMPTY, FILLED, GIVEN_UP = 0, 1, 2  # what a place may be
PASSED = 2  # where claims about one arm and a limit begin in Listed.goals: MEETS, MISSES and VIOLATES
VIOLATES = 2  # it is below the floor: the last row of State.arm_shown
# Columns of Listed.marks: the least number above the tolerance, the largest below −reach, target and floor;
# the wealth from which evidence is noted, of pairs and at limits, and the logs that are enough for all.
ABOVE, BELOW, UNDER, FLAT, NOTED, TARGET_NOTED, ENOUGH, TARGET_ENOUGH = range(8)
# Columns of Listed.later: moments from where bets begin, the sum before, and what is missing there.
COUNT, MEAN, SQUARES, EARLIER, LOST = range(5)


class Listed(NamedTuple):
    """What a policy keeps of a list of N items: K arms, m objectives, P pairs, E stakes."""

    table: Vector  # (K, N, m) values by position, nan where there is none
    status: NDArray[np.int8]  # (K, N) of the places
    until: Counts  # (K,) positions folded
    since: Counts  # (K,) where bets on an arm begin
    etas: Vector  # (E,) stakes,
    weights: Vector  # (E,) what is staked on each,
    risks: Vector  # (E,) and what it may lose at once
    goals: Vector  # (m, 5, 2) N·x of each claim, as a sum of two
    marks: Vector  # (m, 8) see above
    wealth: Vector  # (P, m, E, 4) of a − b not worse, beating, and of b − a
    sums: Vector  # (P, m, 2, 2) of what is stored of a − b and of b − a at their least
    later: Vector  # (P + K, m, 5) see above, of pairs and arms whose values are not bounded
    arm_wealth: Vector  # (K, m, E, 3) at a limit: meets, misses, violates
    arm_sums: Vector  # (K, m, 2, 2)
    overturned: NDArray[np.bool_]  # (m, K, K) where arithmetic has refuted what was seen of a and b
