"""LexElim-Tol may prove its answer before everything is settled: a candidate and its proof.

The candidate x is proven acceptable once every other arm y is done: going through the objectives in
order it has been seen that x is not worse than y by more than tolerance + resolution, until x beats
y. An arm that is out on the first objective is done at once. It is seen by anytime
evidence, which holds under any rules, or by a pre-registered test, which takes less evidence. On a limit x
must be at its floor; if no arm seems to be, x is proven the closest by anytime evidence alone.
docs/proofs.md, section 4.
"""

import math
from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.evidence.betting import may_reach
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import EXACT
from lexbandits.outcomes import ClaimVerdict
from lexbandits.policies.tolerance.anytime import (
    against_target,
    anytime_evidence,
    beats,
    close,
    look,
    look_at_arm,
    meets,
    misses,
    not_worse,
    paired,
    violates,
)
from lexbandits.policies.tolerance.preregistered import (
    beaten_by_third,
    evidence_for,
    preregistered_evidence,
    shown_not_worse,
    shown_to_beat,
    shown_to_meet,
    shown_to_miss,
    weigh_arm,
)
from lexbandits.policies.tolerance.relative import in_shares, is_share, look_at_shares, share_evidence
from lexbandits.policies.tolerance.state import (
    BEATS,
    BEATS_LEVEL,
    BY_PROOF,
    FLOOR,
    LEVEL,
    MEETS,
    MISSES,
    NOT_WORSE,
    NOT_WORSE_LEVEL,
    OFFERED,
    POSITION,
    REACH,
    TARGET,
    THIRD_LEVEL,
    TOLERANCE,
    State,
    pair_of,
)


class Scratch(IntEnum):
    """The rows of the scratch masks."""

    KEPT = 0  # arms kept,
    BEFORE = 1  # and arms kept before an objective
    LOOKED = 2  # arms looked at on the current objective


class ProofScratch(IntEnum):
    """The same rows while a proof is looked for."""

    LACKING = 0  # arms that it does not cover yet
    OUT = 1  # arms that are out on the first objective


# Plain integers for kernels: see state.py.
KEPT, BEFORE, LOOKED = map(int, Scratch)
LACKING, OUT = map(int, ProofScratch)
ENDS = (  # what is said last of a rival
    ClaimVerdict.BETTER,
    ClaimVerdict.BEATEN,
    ClaimVerdict.VIOLATES_LIMIT,
    ClaimVerdict.NOT_CLEARLY_WITHIN,
)


@kernel
def best_by_differences(
    limits: Vector, kinds: Vector, singles: Vector, pairs: Vector, scratch: NDArray[np.bool_], i: int
) -> int:
    """Of those kept the arm whose smallest mean difference to the others is largest, lowest index."""
    best = -1
    most = -math.inf
    for a in range(scratch.shape[1]):
        if scratch[KEPT, a]:
            least = math.inf
            for b in range(scratch.shape[1]):
                if scratch[KEPT, b] and b != a:
                    n, difference = paired(limits, kinds, singles, pairs, i, a, b)
                    if n > 0.0:
                        least = min(least, difference)
            if best < 0 or least > most:
                best = a
                most = least
    return best


@kernel
def seems_to_meet(limits: Vector, kinds: Vector, means: Vector, i: int, arm: int) -> bool:
    """Whether an arm's mean is nearer to the target of a limit than to its floor, or beyond it."""
    middle = 0.5 * (limits[i, TARGET] + limits[i, FLOOR])
    return bool(against_target(limits, kinds, i, means[arm, i]) >= middle)


@kernel
def keep_likely(
    limits: Vector,
    kinds: Vector,
    singles: Vector,
    pairs: Vector,
    means: Vector,
    is_limit: bool,
    scratch: NDArray[np.bool_],
    i: int,
) -> None:
    """Keep who would survive objective i if today's means were the truth; all if that is nobody.

    On a limit who is nearer to its target than to its floor; if nobody is, as on any other objective.
    """
    share = is_share(limits, i)
    middle = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
    left = 0
    for arm in range(scratch.shape[1]):
        scratch[BEFORE, arm] = scratch[KEPT, arm]
        if is_limit and scratch[BEFORE, arm]:
            scratch[KEPT, arm] = singles[arm, i, 0] == 0.0 or seems_to_meet(limits, kinds, means, i, arm)
            left += scratch[KEPT, arm]
    if left > 0:
        return
    for arm in range(scratch.shape[1]):
        scratch[KEPT, arm] = scratch[BEFORE, arm]
        if scratch[BEFORE, arm]:
            for other in range(scratch.shape[1]):
                if scratch[BEFORE, other] and other != arm:
                    n, lead = paired(limits, kinds, singles, pairs, i, other, arm)
                    if share:
                        lead = in_shares(limits, means, i, other, arm, lead)
                    if n > 0.0 and lead > middle:
                        scratch[KEPT, arm] = False
                        break
        left += scratch[KEPT, arm]
    if left == 0:
        for arm in range(scratch.shape[1]):
            scratch[KEPT, arm] = scratch[BEFORE, arm]


@kernel(inline="never")
def plug_in(state: State, scratch: NDArray[np.bool_]) -> int:
    """The answer if today's means were the truth: the baseline if it survives, else the best who do.

    `scratch` (2, K) holds masks of arms: allocating them takes as long as all the rest.
    """
    limits, kinds, singles, pairs = state.limits, state.kinds, state.singles, state.pairs
    means, order, is_limit, active = state.arms.means, state.order, state.is_limit, state.arms.active
    start, baseline = state.clock[POSITION], state.options.baseline
    for arm in range(active.size):
        scratch[KEPT, arm] = active[arm]
    for position in range(start, order.size):
        i = order[position]
        keep_likely(limits, kinds, singles, pairs, means, is_limit[i], scratch, i)
    if baseline >= 0 and scratch[KEPT, baseline]:
        return baseline
    return best_by_differences(limits, kinds, singles, pairs, scratch, order[-1])


@kernel
def note_out(
    active: NDArray[np.bool_],
    left: Counts,
    limits: Vector,
    is_limit: NDArray[np.bool_],
    log_evidence: Vector,
    scratch: NDArray[np.bool_],
    first: int,
) -> None:
    """Note which arms are out on the first objective, by either kind of evidence, whoever answers.

    Nobody if it is a limit: there only the answer itself may beat.
    """
    enough = limits[first, THIRD_LEVEL]
    for y in range(active.size):
        scratch[OUT, y] = not active[y] and left[y, 1] == first and not is_limit[first]
    for z in range(0 if is_limit[first] else log_evidence.shape[2]):
        for y in range(log_evidence.shape[3]):
            scratch[OUT, y] |= log_evidence[BEATS, first, z, y] >= enough


@kernel(inline="never")
def look_for(state: State, x: int, scratch: NDArray[np.bool_]) -> bool:
    """Look at what the proof of x may need, arms at limits, and its pairs until it beats the other arm.

    Nothing has come since others were looked at on the current objective. Whether something was seen.
    """
    lcb, limits, bounds, order, is_limit = state.lcb, state.limits, state.bounds, state.order, state.is_limit
    kinds, singles, pairs, completed = state.kinds, state.singles, state.pairs, state.completed
    masks, active, left, first = state.masks, state.arms.active, state.arms.left, order[0]
    news, current = False, state.clock[POSITION]
    for y in range(masks.shape[1]):
        if not masks[OFFERED, y] or (not active[y] and left[y, 1] == first and not is_limit[first]):
            continue
        for position in range(order.size):
            i = order[position]
            if is_limit[i]:
                done = position == current and scratch[LOOKED, y]
                known = meets(bounds, limits, i, y) and misses(bounds, limits, i, y)
                if not done and not known:
                    news |= look_at_arm(bounds, limits, kinds, singles, completed, i, y)
            if y != x and (not is_limit[i] or misses(bounds, limits, i, y)):
                if beats(lcb, limits, i, x, y) or (close(lcb, limits, i, x, y) and not is_limit[i]):
                    pass
                elif is_share(limits, i):
                    news |= look_at_shares(state, i, x, y)
                else:
                    kind = kind_at(kinds, i)
                    a, b = min(x, y), max(x, y)
                    news |= look(kind, lcb, limits, kinds, singles, pairs, completed, i, a, b)
                if beats(lcb, limits, i, x, y):
                    break
    return news


@kernel(inline="never")
def weigh_for(state: State, x: int, scratch: NDArray[np.bool_]) -> None:
    """Weigh what the proof of x needs: its own pairs, and for whom it does not do who else beats them.

    `scratch` holds masks of arms: see `plug_in`.
    """
    lcb, limits, log_evidence = state.lcb, state.limits, state.log_evidence
    kinds, wealth = state.kinds, state.wealth
    singles, pairs, masks, order, is_limit = (
        state.singles,
        state.pairs,
        state.masks,
        state.order,
        state.is_limit,
    )
    first, shares, n_arms, some = order[0], state.shares, masks.shape[1], False
    note_out(state.arms.active, state.arms.left, limits, is_limit, log_evidence, scratch, first)
    for i in range(order.size):
        if is_limit[i]:
            weigh_arm(state, MEETS, i, x)
    for y in range(n_arms):
        scratch[LACKING, y] = False
        if not masks[OFFERED, y] or y == x or scratch[OUT, y]:
            continue
        row, direction, sign = pair_of(min(x, y), max(x, y), n_arms), int(x > y), -1.0 if x > y else 1.0
        for position in range(order.size):
            i = order[position]
            kind, share = kind_at(kinds, i), is_share(limits, i)
            n, mean, squares = pairs[row, i, 0], sign * pairs[row, i, 1], pairs[row, i, 2]
            if kind.code == EXACT:
                n, mean = paired(limits, kinds, singles, pairs, i, x, y)
            tolerance, reach, low = limits[i, TOLERANCE], limits[i, REACH], lcb[i, x, y]
            held, enough = True, limits[i, NOT_WORSE_LEVEL]
            under = True
            if is_limit[i]:  # where x must be at the floor, which makes it not worse
                weigh_arm(state, MISSES, i, y)
                under = shown_to_miss(state.bounds, limits, state.arm_log_evidence, i, y)
            for claim in range(BEATS if is_limit[i] else NOT_WORSE, 2 if under else 0):  # BEATS if not worse
                boundary = -reach if claim == NOT_WORSE else tolerance
                seen, enough = log_evidence[claim, i, x, y], limits[i, NOT_WORSE_LEVEL + claim]
                if held and seen < enough:
                    if share:
                        found = share_evidence(limits, kinds, singles, shares, claim, i, x, y)
                    else:
                        place, lead = (row, i, direction, claim), (n, mean, squares)
                        found = preregistered_evidence(
                            kind, wealth, place, boundary, reach - tolerance, lead, enough
                        )
                    seen = max(seen, found)
                    log_evidence[claim, i, x, y] = seen
                if claim == NOT_WORSE:
                    held = seen >= enough or low >= -reach
            beaten = under and (log_evidence[BEATS, i, x, y] >= enough or low > tolerance)
            if not held or beaten:
                scratch[LACKING, y] = not held
                some |= not held
                break
    if some and limits[first, THIRD_LEVEL] < math.inf:
        weigh_thirds(state, x, scratch)


@kernel(inline="never")
def weigh_thirds(state: State, x: int, scratch: NDArray[np.bool_]) -> None:
    """Weigh who else beats an arm that x lacks on the first objective."""
    limits, log_evidence, kinds = state.limits, state.log_evidence, state.kinds
    wealth, pairs = state.wealth, state.pairs
    singles, masks, first, shares = state.singles, state.masks, state.order[0], state.shares
    kind, enough, row = kind_at(kinds, first), limits[first, THIRD_LEVEL], -1
    tolerance, resolution = limits[first, TOLERANCE], limits[first, REACH] - limits[first, TOLERANCE]
    share = is_share(limits, first)
    by_moments = kind.code < EXACT and not share
    for a in range(masks.shape[1]):
        for b in range(a + 1, masks.shape[1]):
            row += 1
            if not scratch[LACKING, a] and not scratch[LACKING, b]:
                continue
            n, mean, squares = pairs[row, first, 0], pairs[row, first, 1], pairs[row, first, 2]
            if by_moments and not may_reach(kind, n, abs(mean) - tolerance, squares, enough):
                continue
            if kind.code == EXACT:
                n, mean = paired(limits, kinds, singles, pairs, first, a, b)
            for turn in range(2):
                z, y = (a, b) if turn == 0 else (b, a)
                if scratch[LACKING, y] and z != x and masks[OFFERED, z]:
                    if share:
                        found = share_evidence(limits, kinds, singles, shares, BEATS, first, z, y)
                    else:
                        place, lead = (row, first, turn, BEATS), (n, -mean if turn else mean, squares)
                        found = preregistered_evidence(
                            kind, wealth, place, tolerance, resolution, lead, enough
                        )
                    log_evidence[BEATS, first, z, y] = max(log_evidence[BEATS, first, z, y], found)


@kernel
def is_closest(state: State, i: int, x: int) -> bool:
    """Whether x looks as if it could only be the closest on a limit: not seen at its floor, nor near it."""
    seen = shown_to_meet(state.bounds, state.limits, state.arm_log_evidence, i, x)
    return not seen and not seems_to_meet(state.limits, state.kinds, state.arms.means, i, x)


@kernel(inline="never")
def is_closest_somewhere(state: State, x: int) -> bool:
    """Whether x looks so on some limit: then anytime evidence alone proves it."""
    some = False
    for i in range(state.is_limit.size):
        some |= state.is_limit[i] and is_closest(state, i, x)
    return bool(some)


@kernel(inline="never")
def prove(state: State, x: int, scratch: NDArray[np.bool_]) -> bool:
    """Whether x is proven, and better than a baseline that may answer; note in `masks` whom that needs.

    On a limit x must be at its floor. As the closest it must be not worse than who is not beaten before, and
    all of them, itself too, must be below the target.
    """
    lcb, limits, bounds, order, is_limit = state.lcb, state.limits, state.bounds, state.order, state.is_limit
    masks, log_evidence, active = state.masks, state.log_evidence, state.arms.active
    left, first = state.arms.left, order[0]
    arm_log_evidence, baseline = state.arm_log_evidence, state.options.baseline
    preregistered = log_evidence.size > 0 and not is_closest_somewhere(state, x)
    proven = True
    note_out(active, left, limits, is_limit, log_evidence, scratch, first)
    for y in range(masks.shape[1]):
        lacks = False
        out = y != x and scratch[OUT, y]
        position = order.size if out or not masks[OFFERED, y] else 0
        ahead = y != baseline or y == x or not active[y] or out
        while position < order.size:
            i = order[position]
            low = lcb[i, x, y]
            held, beaten = y == x or low >= -limits[i, REACH], y != x and low > limits[i, TOLERANCE]
            if preregistered and y != x:
                held |= log_evidence[NOT_WORSE, i, x, y] >= limits[i, NOT_WORSE_LEVEL]
                beaten |= log_evidence[BEATS, i, x, y] >= limits[i, BEATS_LEVEL]
            if is_limit[i]:
                under, within = misses(bounds, limits, i, y), meets(bounds, limits, i, x)
                if preregistered:
                    under = shown_to_miss(bounds, limits, arm_log_evidence, i, y)
                    within = shown_to_meet(bounds, limits, arm_log_evidence, i, x)
                beaten = beaten and under
                closest = not within and is_closest(state, i, x)
                held = held and under if closest else within or y != x
            lacks = not held
            ahead = ahead or beaten
            position = order.size if lacks or beaten else position + 1
        lacks = lacks or not ahead
        scratch[LACKING, y] = lacks and y != x
        masks[BY_PROOF, y] = lacks or y == x
        proven = proven and not lacks
    if not proven:
        ask_thirds(state, scratch, x)
    return proven


@kernel
def ask_thirds(state: State, scratch: NDArray[np.bool_], x: int) -> None:
    """Where the means do not let x handle y, ask who keeps y out: does it belong in the answer's place?

    x handles y if, going through the order, it is ahead before it is behind, by the means; if it is neither,
    y must be no baseline. On a limit no arm is ahead of one that seems to be within it.
    """
    limits, kinds, singles, pairs = state.limits, state.kinds, state.singles, state.pairs
    means, order, is_limit, active = state.arms.means, state.order, state.is_limit, state.arms.active
    for y in range(active.size):
        handled, third = not scratch[LACKING, y], -1
        for position in range(order.size):
            i = order[position]
            middle = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
            if not handled and not (is_limit[i] and seems_to_meet(limits, kinds, means, i, y)):
                _, lead = paired(limits, kinds, singles, pairs, i, x, y)
                if is_share(limits, i):
                    lead = in_shares(limits, means, i, x, y, lead)
                handled = lead > middle
                if lead < -middle:
                    break
        else:
            handled = handled or y != state.options.baseline
        for position in range(order.size):
            i = order[position]
            most = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
            if handled or third >= 0 or (is_limit[i] and seems_to_meet(limits, kinds, means, i, y)):
                continue
            share = is_share(limits, i)
            for z in range(active.size):
                if z != y and active[z]:
                    n, lead = paired(limits, kinds, singles, pairs, i, z, y)
                    if share:
                        lead = in_shares(limits, means, i, z, y, lead)
                    if n > 0.0 and lead > most:
                        third, most = z, lead
        if third >= 0:
            state.masks[BY_PROOF, third] = True


class Seen(NamedTuple):
    """What was seen of the answer against one rival on one objective.

    A rival is BEATEN `by` a third arm. On a limit it MEETS_LIMIT, which is seen of its floor, or is worse
    than the answer, or the arm `by` whom it left, and VIOLATES_LIMIT, or is seen to be below the target
    alone: NOT_CLEARLY_WITHIN.
    """

    rival: int
    objective: int
    difference: float  # answer − rival, the mean over common results; nan without any
    low: float  # the true difference lies between these: a statement of its own
    high: float
    results: int  # common results
    verdict: ClaimVerdict
    by: int  # −1: nobody
    parts: float  # of the evidence that settles it, at most 1; nan against a target
    exact: bool = False  # whether it rests on arithmetic alone: no chance is involved


def certificate(
    state: State,
    x: int,
    difference: Callable[[int, int, int], tuple[float, float]],
    parts_of: Callable[[int, int, int], float] | None = None,
    exact: State | None = None,
) -> tuple[Seen, ...]:
    """Per rival of x, objective by objective until it is done.

    `difference` (x, y, objective) says where it lies; it is asked for no other pair. `parts_of` (x, y,
    objective) says how much of the evidence there is where bets are kept elsewhere, `exact` is the state
    with nothing in it but what is exact. Where all is settled and there are limits anytime evidence alone
    counts: the tests are paid for as parts of a proof that meets every limit.
    """
    if state.is_limit.any() and state.clock[POSITION] == state.order.size:
        unseen, nobody = (
            np.full_like(claims, -math.inf) for claims in (state.log_evidence, state.arm_log_evidence)
        )
        state = state._replace(log_evidence=unseen, arm_log_evidence=nobody)
    seen = []
    for y in np.flatnonzero(state.masks[OFFERED]).tolist():
        for i in state.order.tolist() if y != x else ():
            results, mean = paired(state.limits, state.kinds, state.singles, state.pairs, i, x, y)
            low, high = difference(x, y, i)
            verdict, by = _verdict(state, x, y, i, high)
            parts = math.nan if state.is_limit[i] else 1.0
            if verdict == ClaimVerdict.OPEN and not state.is_limit[i]:
                parts = _parts(state, x, y, i) if parts_of is None else parts_of(x, y, i)
            sure = state.kinds[i, 0] == EXACT if exact is None else _holds(exact, x, y, i, verdict, by)
            average = mean if results else math.nan
            seen.append(Seen(y, i, average, low, high, int(results), verdict, by, parts, bool(sure)))
            if verdict in ENDS:
                break
    return tuple(seen)


def _verdict(state: State, x: int, y: int, i: int, high: float) -> tuple[ClaimVerdict, int]:
    lcb, limits, bounds, log_evidence = state.lcb, state.limits, state.bounds, state.log_evidence
    # after the first objective it is the survivors' end, not the proof, to which other arms matter
    _, left_on, rival = state.arms.left[y].tolist()
    ended = (i == state.order[0] and not state.is_limit[i]) or state.clock[POSITION] == state.order.size
    left = not state.arms.active[y] and left_on == i and ended
    if state.is_limit[i]:
        beaten = shown_to_miss(bounds, limits, state.arm_log_evidence, i, y) and shown_to_beat(
            lcb, limits, log_evidence, i, x, y
        )
        if beaten or left:
            is_beyond = violates(bounds, limits, i, y)
            verdict = ClaimVerdict.VIOLATES_LIMIT if is_beyond else ClaimVerdict.NOT_CLEARLY_WITHIN
            return verdict, -1 if beaten else rival
        if shown_to_meet(bounds, limits, state.arm_log_evidence, i, y):
            return ClaimVerdict.MEETS_LIMIT, -1
        if shown_to_meet(bounds, limits, state.arm_log_evidence, i, x) or not not_worse(lcb, limits, i, x, y):
            return ClaimVerdict.OPEN, -1
        return (ClaimVerdict.TIED if high <= limits[i, REACH] else ClaimVerdict.NOT_WORSE), -1
    if shown_to_beat(lcb, limits, log_evidence, i, x, y):
        return ClaimVerdict.BETTER, -1
    if left:
        return ClaimVerdict.BEATEN, rival
    third = beaten_by_third(limits, log_evidence, i, y) if i == state.order[0] else -1
    if third >= 0:
        return ClaimVerdict.BEATEN, third
    if not shown_not_worse(lcb, limits, log_evidence, i, x, y):
        return ClaimVerdict.OPEN, -1
    both = not_worse(lcb, limits, i, y, x) if is_share(limits, i) else high <= limits[i, REACH]
    return (ClaimVerdict.TIED if both else ClaimVerdict.NOT_WORSE), -1


def _holds(state: State, x: int, y: int, i: int, verdict: ClaimVerdict, by: int) -> bool:
    """Whether a verdict on a rival follows from this state as well."""
    lcb, limits, bounds = state.lcb, state.limits, state.bounds
    match verdict:
        case ClaimVerdict.BETTER:
            return beats(lcb, limits, i, x, y)
        case ClaimVerdict.BEATEN:
            return beats(lcb, limits, i, by, y)
        case ClaimVerdict.VIOLATES_LIMIT:
            return violates(bounds, limits, i, y) and beats(lcb, limits, i, x if by < 0 else by, y)
        case ClaimVerdict.NOT_CLEARLY_WITHIN:
            return misses(bounds, limits, i, y) and beats(lcb, limits, i, x if by < 0 else by, y)
        case ClaimVerdict.MEETS_LIMIT:
            return meets(bounds, limits, i, y)
        case ClaimVerdict.TIED:
            return close(lcb, limits, i, x, y)
        case ClaimVerdict.NOT_WORSE:
            return not_worse(lcb, limits, i, x, y)
    return False


def _parts(state: State, x: int, y: int, i: int) -> float:
    """How much of the evidence there is that x is not worse than y, or that a third arm beats it."""
    limits, first = state.limits, state.order[0]
    if state.log_evidence.size == 0:
        return _share(anytime_evidence(state, i, x, y), limits[i, LEVEL])
    found = [_share(evidence_for(state, NOT_WORSE, i, x, y), limits[i, NOT_WORSE_LEVEL])]
    if i == first and limits[i, THIRD_LEVEL] < math.inf:
        others = [z for z in np.flatnonzero(state.masks[OFFERED]).tolist() if z not in (x, y)]
        found += [_share(evidence_for(state, BEATS, i, z, y), limits[i, THIRD_LEVEL]) for z in others]
    return max(found)


def _share(evidence: float, enough: float) -> float:
    return min(1.0, max(0.0, evidence / enough)) if enough > 0.0 else float(evidence > 0.0)
