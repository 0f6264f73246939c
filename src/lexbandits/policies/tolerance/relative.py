"""Tolerances that are shares of a mean: of the best one, or of a named arm's.

"a beats b by more than r of the best" says that the mean of x_a − x_b − r·x_a is above 0, "a is worse by at
most s of it" the same of x_a − x_b + s·x_b; of a named arm c's mean both have x_c there. Each claim has a
sequence of its own, tested at 0, a boundary that no change of the rules moves: so pre-registered
tests and anytime evidence are two levels of one process. docs/proofs.md, "Percent of the best".
"""

import math

from lexbandits._arrays import Vector
from lexbandits._jit import kernel
from lexbandits.evidence.betting import (
    HIGHEST_STAKE,
    LEAST,
    MOST,
    STAKES,
    caution_of,
    moment_bets,
    unit_stake,
)
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import BOUNDED, EXACT, SUB_GAUSSIAN, Kind
from lexbandits.evidence.moments import push_squares, unless_rounded
from lexbandits.policies.tolerance.state import (
    ASKED,
    BEATS,
    BY_PROOF,
    BY_RULE,
    LEVEL,
    NOT_WORSE,
    OF,
    REACH,
    SIGN,
    TOLERANCE,
    State,
)

BETS = 3  # where products of bets begin in a row of State.shares, after n, mean and M2; then their logarithms
LOGS = BETS + STAKES.size
DEPTH = LOGS + STAKES.size
LOG_2 = math.log(2.0)
ROUNDING = 2.0**-51  # of a part: shares, values and their product are rounded


@kernel
def is_share(limits: Vector, i: int) -> bool:
    """Whether tolerance and resolution of an objective are shares of a mean."""
    return bool(limits[i, SIGN] != 0.0)


@kernel
def in_shares(limits: Vector, means: Vector, i: int, a: int, b: int, difference: float) -> float:
    """The mean difference of a and b as a share, by the means so far."""
    if difference == 0.0:
        return difference
    better = a if difference > 0.0 else b
    of = int(limits[i, OF])
    whole = abs(means[better if of < 0 else of, i])
    return difference / whole if whole > 0.0 else math.copysign(math.inf, difference)


@kernel
def weights(limits: Vector, claim: int, i: int, a: int, b: int) -> tuple[float, float, float, int]:
    """What a, b and a third arm, the last, count in the contrast of a claim; a or b may be the third."""
    line = limits[i, TOLERANCE] if claim == BEATS else -limits[i, REACH]
    of, part = int(limits[i, OF]), -limits[i, SIGN] * line
    if of < 0:
        of = a if claim == BEATS else b
    if of == a:
        return 1.0 + part, -1.0, 0.0, a
    if of == b:
        return 1.0, part - 1.0, 0.0, b
    return 1.0, -1.0, part, of


@kernel
def end_of(weight: float, low: float, high: float) -> float:
    """The least that a value in [low, high] adds to a contrast."""
    return weight * (low if weight > 0.0 else high)


@kernel
def least_of(kind: Kind, weight: float, value: float) -> float:
    """The least that a value adds to a contrast: where it is missing and counts at its worst, all of that."""
    if math.isnan(value) and kind.worst > 0.0:
        return end_of(weight, kind.low, kind.high)
    return weight * value


@kernel
def bet_on_share(
    row: Vector, kind: Kind, sizes: tuple[float, float, float], value: float, aim: float
) -> None:
    """Bet on a contrast exceeding 0, by stakes that suit a truth `aim` above it; a function of the past."""
    of_a, of_b, of_third = sizes
    if kind.code == SUB_GAUSSIAN:
        scale = kind.sd * (abs(of_a) + abs(of_b) + abs(of_third))
        if kind.pair_sd < 1.5 * kind.sd:  # independent arms
            scale = kind.sd * math.sqrt(of_a * of_a + of_b * of_b + of_third * of_third)
        for g in range(STAKES.size):
            stake = min(STAKES[g], HIGHEST_STAKE) * aim / (scale * scale)
            row[LOGS + g] += stake * (value - 0.5 * stake * scale * scale)
        return
    low = end_of(of_a, kind.low, kind.high) + end_of(of_b, kind.low, kind.high)
    low += end_of(of_third, kind.low, kind.high)
    high = -end_of(-of_a, kind.low, kind.high) - end_of(-of_b, kind.low, kind.high)
    high -= end_of(-of_third, kind.low, kind.high)
    if not low < 0.0 < high:
        return
    width = high - low
    unit = unit_stake(kind, row[0], row[2] / (width * width), aim / width)
    most = caution_of(kind)[2] * width / -low
    for g in range(STAKES.size):
        wealth = row[BETS + g] * (1.0 + min(STAKES[g] * unit, most) * (value / width))
        row[BETS + g] = wealth
        if not LEAST < wealth < MOST:
            row[LOGS + g] += math.log(wealth)
            row[BETS + g] = 1.0


@kernel(inline="never")
def fold_shares(state: State, i: int) -> None:
    """Count the current pass in the contrasts of an objective, before anything else of it is counted."""
    kind, limits, values, masks = kind_at(state.kinds, i), state.limits, state.values, state.masks
    if kind.code == EXACT:
        return
    for a in range(values.shape[0]):
        for b in range(values.shape[0]):
            for claim in range(2 if a != b and masks[ASKED, a] and masks[ASKED, b] else 0):
                of_a, of_b, of_third, third = weights(limits, claim, i, a, b)
                value = least_of(kind, of_a, values[a, i]) + least_of(kind, of_b, values[b, i])
                value += least_of(kind, of_third, values[third, i])
                if math.isnan(value):
                    continue
                row = state.shares[claim, i, a, b]
                of = int(limits[i, OF])
                if of < 0:
                    of = a if claim == BEATS else b
                aim = (limits[i, REACH] - limits[i, TOLERANCE]) * abs(state.arms.means[of, i])
                if aim > 0.0 and (kind.code >= BOUNDED or kind.code == SUB_GAUSSIAN):
                    bet_on_share(row, kind, (of_a, of_b, of_third), value, aim)
                size = abs(of_a * values[a, i]) + abs(of_b * values[b, i]) + abs(of_third * values[third, i])
                value = unless_rounded(value, row[1], size)
                row[0], row[1], row[2] = push_squares(row[0], row[1], row[2], value)


@kernel(inline="never")
def share_evidence(
    limits: Vector, kinds: Vector, singles: Vector, shares: Vector, claim: int, i: int, a: int, b: int
) -> float:
    """The log evidence for a claim about a and b by all that was folded, however little.

    That of "beats" is at most that of "not worse", as it is where both are of one sequence.
    """
    found = contrast_evidence(limits, kinds, singles, shares, claim, i, a, b)
    if claim == BEATS:
        found = min(found, contrast_evidence(limits, kinds, singles, shares, NOT_WORSE, i, a, b))
    return found


@kernel
def contrast_evidence(
    limits: Vector, kinds: Vector, singles: Vector, shares: Vector, claim: int, i: int, a: int, b: int
) -> float:
    """The log evidence that the mean of one contrast is above 0."""
    kind, row = kind_at(kinds, i), shares[claim, i, a, b]
    of_a, of_b, of_third, third = weights(limits, claim, i, a, b)
    if kind.code == EXACT:
        if min(singles[a, i, 0], singles[b, i, 0], singles[third, i, 0]) < 1.0:
            return -math.inf
        parts = of_a * singles[a, i, 1], of_b * singles[b, i, 1], of_third * singles[third, i, 1]
        lead = parts[0] + parts[1] + parts[2]
        if abs(lead) <= ROUNDING * (abs(parts[0]) + abs(parts[1]) + abs(parts[2])):
            lead = 0.0
        return math.inf if lead > 0.0 or (lead == 0.0 and claim == NOT_WORSE) else -math.inf
    if kind.code < BOUNDED and kind.code != SUB_GAUSSIAN:
        return moment_bets(kind, row[0], row[1], row[2], 0.0)
    low = end_of(of_a, kind.low, kind.high) + end_of(of_b, kind.low, kind.high)
    if kind.code >= BOUNDED and low + end_of(of_third, kind.low, kind.high) >= 0.0:
        return math.inf
    top = row[LOGS]
    for g in range(1, STAKES.size):
        top = max(top, row[LOGS + g])
    total = 0.0
    for g in range(STAKES.size):
        total += row[BETS + g] * math.exp(row[LOGS + g] - top)
    return float(top + math.log(total))


@kernel(inline="never")
def look_at_shares(state: State, i: int, a: int, b: int) -> bool:
    """Take note of what is seen of a and b: in `lcb` as the least value that shows it.

    A side costs one level: "beats" is never seen without "not worse". Whether something was seen.
    """
    lcb, limits, kinds, singles, shares = state.lcb, state.limits, state.kinds, state.singles, state.shares
    level, news = limits[i, LEVEL] + LOG_2, False
    for turn in range(2):
        x, y = (a, b) if turn == 0 else (b, a)
        unseen = lcb[i, x, y] < -limits[i, REACH]
        if unseen and share_evidence(limits, kinds, singles, shares, NOT_WORSE, i, x, y) >= level:
            lcb[i, x, y], news = -limits[i, REACH], True
        held = -limits[i, REACH] <= lcb[i, x, y] <= limits[i, TOLERANCE]
        if held and share_evidence(limits, kinds, singles, shares, BEATS, i, x, y) >= level:
            lcb[i, x, y], news = math.inf, True
    return news


@kernel(inline="never")
def ask_references(state: State) -> None:
    """The arms of whose means something is a share are asked in every pass."""
    for i in range(state.order.size):
        if is_share(state.limits, i) and state.limits[i, OF] >= 0.0:
            arm = int(state.limits[i, OF])
            state.masks[BY_RULE, arm] = state.masks[BY_PROOF, arm] = True
