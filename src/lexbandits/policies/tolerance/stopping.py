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
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import EXACT
from lexbandits.outcomes import ClaimVerdict
from lexbandits.policies.base import LEFT_ON
from lexbandits.policies.tolerance.anytime import (
    against_target,
    anytime_evidence,
    beats,
    beats_at,
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
    RIVAL,
    STUCK,
    TARGET,
    TOLERANCE,
    State,
    pair_of,
)
from lexbandits.policies.tolerance.survivors import breaks_limit


class Scratch(IntEnum):
    """The rows of the scratch masks."""

    KEPT = 0  # arms kept,
    BEFORE = 1  # and arms kept before an objective
    LOOKED = 2  # arms looked at on the current objective


class ProofScratch(IntEnum):
    """The same rows while a proof is looked for."""

    LACKING = 0  # arms that it does not cover yet


# Plain integers for kernels: see state.py.
KEPT, BEFORE, LOOKED = map(int, Scratch)
(LACKING,) = map(int, ProofScratch)
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
def is_out(active: NDArray[np.bool_], left: Counts, is_limit: NDArray[np.bool_], first: int, y: int) -> bool:
    """Whether an arm is out on the first objective, whoever answers; on a limit only the answer beats."""
    return bool(not active[y] and left[y, LEFT_ON] == first and not is_limit[first])


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
        if not masks[OFFERED, y] or is_out(active, left, is_limit, first, y):
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
def is_short_somewhere(state: State, x: int) -> bool:
    """Whether x can only be the closest on some limit: it is seen to be below the target, and looks so."""
    some = False
    for i in range(state.is_limit.size):
        some |= state.is_limit[i] and misses(state.bounds, state.limits, i, x) and is_closest(state, i, x)
    return bool(some)


@kernel(inline="never")
def weigh_limits(state: State, x: int) -> None:
    """Take note of the evidence that x is at the floor of every limit."""
    for i in range(state.is_limit.size):
        if state.is_limit[i]:
            weigh_arm(state, MEETS, i, x)


@kernel(inline="never")
def prove(state: State, x: int, scratch: NDArray[np.bool_], weighs: bool) -> bool:
    """Whether x is proven, and better than a baseline that may answer; note in `masks` whom that needs.

    On a limit x must be at its floor. As the closest it must be not worse than who is not beaten before, and
    all of them, itself too, must be below the target. `weighs`: whether pre-registered tests are brought up
    to date on the way.
    """
    lcb, limits, bounds, log_evidence = state.lcb, state.limits, state.bounds, state.log_evidence
    kinds, wealth, singles, pairs = state.kinds, state.wealth, state.singles, state.pairs
    masks, order, is_limit, clock = state.masks, state.order, state.is_limit, state.clock
    arm_log_evidence, active, left = state.arm_log_evidence, state.arms.active, state.arms.left
    tests = log_evidence.size > 0 and not is_closest_somewhere(state, x)
    first, n_arms, proven, short = order[0], masks.shape[1], True, is_short_somewhere(state, x)
    clock[RIVAL] = -1
    for i in range(order.size):
        if is_limit[i] and not meets(bounds, limits, i, x):
            if is_closest(state, i, x):
                proven = proven and misses(bounds, limits, i, x)
            elif not tests or not shown_to_meet(bounds, limits, arm_log_evidence, i, x):
                proven = False
    for y in range(n_arms):
        scratch[LACKING, y] = False
        masks[BY_PROOF, y] = y == x
        if not masks[OFFERED, y] or y == x or is_out(active, left, is_limit, first, y):
            continue
        row, direction, sign = pair_of(min(x, y), max(x, y), n_arms), int(x > y), -1.0 if x > y else 1.0
        held, beaten, position, i = True, False, 0, 0
        while held and not beaten and position < order.size:
            i = order[position]
            tolerance, reach, low, under = limits[i, TOLERANCE], limits[i, REACH], lcb[i, x, y], True
            if is_limit[i]:  # that x is at the floor is asked of x alone
                if violates(bounds, limits, i, y) and not is_closest(state, i, x):
                    beaten = True
                    continue
                if tests and weighs:
                    weigh_arm(state, MISSES, i, y)
                under = misses(bounds, limits, i, y)
                under = under or (tests and shown_to_miss(bounds, limits, arm_log_evidence, i, y))
                held = (under and low >= -reach) or not is_closest(state, i, x)
            for claim in range(BEATS if is_limit[i] else NOT_WORSE, 2 if held and under else 0):
                holds = low > tolerance if claim == BEATS else low >= -reach
                if tests:
                    seen, enough = log_evidence[claim, i, x, y], limits[i, NOT_WORSE_LEVEL + claim]
                    if weighs and seen < enough:
                        if is_share(limits, i):
                            found = share_evidence(limits, kinds, singles, state.shares, claim, i, x, y)
                        else:
                            kind, boundary = kind_at(kinds, i), tolerance if claim == BEATS else -reach
                            n, mean, squares = pairs[row, i, 0], sign * pairs[row, i, 1], pairs[row, i, 2]
                            if kind.code == EXACT:
                                n, mean = paired(limits, kinds, singles, pairs, i, x, y)
                            place, lead = (row, i, direction, claim), (n, mean, squares)
                            found = preregistered_evidence(
                                kind, wealth, place, boundary, reach - tolerance, lead, enough
                            )
                        seen = max(seen, found)
                        log_evidence[claim, i, x, y] = seen
                    holds = holds or seen >= enough
                if claim == BEATS:
                    beaten = holds
                else:
                    held = holds
                if not held:
                    break
            position += 1
        if held and (beaten or y != state.options.baseline or not active[y]):
            continue
        sampled = not is_limit[i] and not is_share(limits, i) and kinds[i, 0] != EXACT
        if proven and tests and not held and sampled:
            clock[RIVAL], clock[STUCK] = y, i
        proven = False
        if short or not breaks_limit(bounds, limits, order, is_limit, y):
            scratch[LACKING, y] = masks[BY_PROOF, y] = True
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
    bounds, short = state.bounds, is_short_somewhere(state, x)
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
                if z != y and active[z] and (short or not breaks_limit(bounds, limits, order, is_limit, z)):
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
        meets_it = shown_to_meet(bounds, limits, state.arm_log_evidence, i, x)
        beaten = shown_to_miss(bounds, limits, state.arm_log_evidence, i, y) and shown_to_beat(
            lcb, limits, log_evidence, i, x, y
        )
        beaten = beaten or (meets_it and violates(bounds, limits, i, y))
        if beaten or left:
            is_beyond = violates(bounds, limits, i, y)
            verdict = ClaimVerdict.VIOLATES_LIMIT if is_beyond else ClaimVerdict.NOT_CLEARLY_WITHIN
            return verdict, -1 if beaten else rival
        if shown_to_meet(bounds, limits, state.arm_log_evidence, i, y):
            return ClaimVerdict.MEETS_LIMIT, -1
        if meets_it or not not_worse(lcb, limits, i, x, y):
            return ClaimVerdict.OPEN, -1
        return (ClaimVerdict.TIED if high <= limits[i, REACH] else ClaimVerdict.NOT_WORSE), -1
    if shown_to_beat(lcb, limits, log_evidence, i, x, y):
        return ClaimVerdict.BETTER, -1
    if left:
        return ClaimVerdict.BEATEN, rival
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
            return violates(bounds, limits, i, y) and beats_at(state, i, x if by < 0 else by, y)
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
    """How much of the evidence there is that x is not worse than y."""
    limits = state.limits
    if state.log_evidence.size == 0:
        return _share(anytime_evidence(state, i, x, y), limits[i, LEVEL])
    return _share(evidence_for(state, NOT_WORSE, i, x, y), limits[i, NOT_WORSE_LEVEL])


def _share(evidence: float, enough: float) -> float:
    return min(1.0, max(0.0, evidence / enough)) if enough > 0.0 else float(evidence > 0.0)
