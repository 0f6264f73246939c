"""What a policy about a finite population keeps beside the state of LexElim-Tol. docs/proofs.md, section 8.

A place is (arm, position). An arm is folded up to its first place that is not filled yet (finite_folding).
Two arms are compared on the positions that both have folded (finite_evidence), so all that was seen is a
function of the set of filled places. Each arm goes through one drawn order at its own pace (finite_asking).
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector

LOG_2 = math.log(2.0)


class PlaceStatus(IntEnum):
    """What a place may be, in FinitePopulation.status."""

    EMPTY = 0
    FILLED = 1
    GIVEN_UP = 2


class Mark(IntEnum):
    """The columns of FinitePopulation.marks."""

    ABOVE = 0  # the least number above the tolerance
    BELOW = 1  # the largest below −reach,
    UNDER = 2  # below the target
    FLAT = 3  # and below the floor
    NOTED = 4  # the wealth from which evidence about a pair is noted,
    TARGET_NOTED = 5  # and about a limit
    ENOUGH = 6  # the log that is enough for everything that a pair may show,
    TARGET_ENOUGH = 7  # and a limit


class Later(IntEnum):
    """The columns of FinitePopulation.later."""

    COUNT = 0  # moments from where bets begin
    MEAN = 1
    SQUARES = 2
    EARLIER = 3  # the sum before
    LOST = 4  # what is missing there


# Plain integers for kernels: see tolerance/state.py.
EMPTY, FILLED, GIVEN_UP = map(int, PlaceStatus)
ABOVE, BELOW, UNDER, FLAT, NOTED, TARGET_NOTED, ENOUGH, TARGET_ENOUGH = map(int, Mark)
COUNT, MEAN, SQUARES, EARLIER, LOST = map(int, Later)
PASSED = 2  # where claims about one arm and a limit (`LimitClaim`) begin in FinitePopulation.goals


class FinitePopulation(NamedTuple):
    """What a policy keeps of a finite population of N items: K arms, m objectives, P pairs, E stakes."""

    table: Vector  # (K, N, m) values by position, nan where there is none
    status: NDArray[np.int8]  # (K, N) see `PlaceStatus`
    until: Counts  # (K,) positions folded
    since: Counts  # (K,) where bets on an arm begin
    etas: Vector  # (E,) stakes,
    weights: Vector  # (E,) what is staked on each,
    risks: Vector  # (E,) and what it may lose at once
    goals: Vector  # (m, 5, 2) N·x of each claim, as a sum of two
    marks: Vector  # (m, 8) see `Mark`
    wealth: Vector  # (P, m, E, 4) of a − b not worse, beating, and of b − a
    sums: Vector  # (P, m, 2, 2) of what is stored of a − b and of b − a at their least
    later: Vector  # (P + K, m, 5) see `Later`, of pairs and arms whose values are not bounded
    arm_wealth: Vector  # (K, m, E, 3) at a limit: meets, misses, violates
    arm_sums: Vector  # (K, m, 2, 2)
    overturned: NDArray[np.bool_]  # (m, K, K) where arithmetic has refuted what was seen of a and b
