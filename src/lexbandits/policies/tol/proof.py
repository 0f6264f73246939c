"""The answer of LexElim-Tol may be certain before everything is settled: a candidate and its proof.

The candidate x is proven acceptable once every other arm y is done: going through the objectives in
order it has been seen that x is not worse than y by more than tolerance + resolution, until x beats
y. An arm that is out on the first objective is done at once. Seen is a fact, which holds under any rules,
or a claim under the rules as declared, which takes less evidence. On a limit x must be at its floor; who
looks as if nobody were is proven by facts alone, as the closest. docs/proofs.md, section 4.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.boundary import may_reach
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import EXACT
from lexbandits.jit import apart, kernel
from lexbandits.policies.tol.claims import (
    beaten_by_third,
    claim_evidence,
    evidence_for,
    is_beaten,
    is_held,
    is_in,
    is_under,
    weigh_arm,
)
from lexbandits.policies.tol.facts import (
    against_target,
    beats,
    close,
    fact_evidence,
    look,
    look_at_arm,
    meets,
    misses,
    not_worse,
    paired,
    violates,
)
from lexbandits.policies.tol.percent import in_shares, is_share, look_at_shares, share_evidence
from lexbandits.policies.tol.state import (
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

KEPT, BEFORE = 0, 1  # rows of drafts: who is kept, and who was before an objective;
LOOKED = 2  # who was looked at on the current objective
ENDS = ("beats", "beaten", "violates the limit", "not clearly within")  # what is said last of a rival
LACKING, OUT = 0, 1  # and in a proof: with whom it is not done, and who is out on the first objective


@kernel
def best_by_differences(
    limits: Vector, kinds: Vector, singles: Vector, pairs: Vector, drafts: NDArray[np.bool_], i: int
) -> int:
    """Of those kept the arm whose smallest mean difference to the others is largest, lowest index."""
    best = -1
    most = -math.inf
    for a in range(drafts.shape[1]):
        if drafts[KEPT, a]:
            least = math.inf
            for b in range(drafts.shape[1]):
                if drafts[KEPT, b] and b != a:
                    n, difference = paired(limits, kinds, singles, pairs, i, a, b)
                    if n > 0.0:
                        least = min(least, difference)
            if best < 0 or least > most:
                best = a
                most = least
    return best


@kernel
def looks_in(limits: Vector, kinds: Vector, means: Vector, i: int, arm: int) -> bool:
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
    must: bool,
    drafts: NDArray[np.bool_],
    i: int,
) -> None:
    """Keep who would survive objective i if today's means were the truth; all if that is nobody.

    On a limit who is nearer to its target than to its floor; if nobody is, as on any other objective.
    """
    share = is_share(limits, i)
    middle = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
    left = 0
    for arm in range(drafts.shape[1]):
        drafts[BEFORE, arm] = drafts[KEPT, arm]
        if must and drafts[BEFORE, arm]:
            drafts[KEPT, arm] = singles[arm, i, 0] == 0.0 or looks_in(limits, kinds, means, i, arm)
            left += drafts[KEPT, arm]
    if left > 0:
        return
    for arm in range(drafts.shape[1]):
        drafts[KEPT, arm] = drafts[BEFORE, arm]
        if drafts[BEFORE, arm]:
            for other in range(drafts.shape[1]):
                if drafts[BEFORE, other] and other != arm:
                    n, lead = paired(limits, kinds, singles, pairs, i, other, arm)
                    if share:
                        lead = in_shares(limits, means, i, other, arm, lead)
                    if n > 0.0 and lead > middle:
                        drafts[KEPT, arm] = False
                        break
        left += drafts[KEPT, arm]
    if left == 0:
        for arm in range(drafts.shape[1]):
            drafts[KEPT, arm] = drafts[BEFORE, arm]


@apart
def plug_in(state: State, drafts: NDArray[np.bool_]) -> int:
    """The answer if today's means were the truth: the baseline if it survives, else the best who do.

    `drafts` (2, K) is for sets of arms: to allocate them takes as long as all the rest.
    """
    limits, kinds, singles, pairs = state.limits, state.kinds, state.singles, state.pairs
    means, order, must, active = state.arms.means, state.order, state.must, state.arms.active
    start, baseline = state.clock[POSITION], state.manner.baseline
    for arm in range(active.size):
        drafts[KEPT, arm] = active[arm]
    for position in range(start, order.size):
        i = order[position]
        keep_likely(limits, kinds, singles, pairs, means, must[i], drafts, i)
    if baseline >= 0 and drafts[KEPT, baseline]:
        return baseline
    return best_by_differences(limits, kinds, singles, pairs, drafts, order[-1])


@kernel
def note_out(
    active: NDArray[np.bool_],
    left: Counts,
    limits: Vector,
    must: NDArray[np.bool_],
    shown: Vector,
    drafts: NDArray[np.bool_],
    first: int,
) -> None:
    """Note who is out on the first objective, by a fact or under the declared rules, whoever answers.

    Nobody if it is a limit: there only the answer itself may beat.
    """
    enough = limits[first, THIRD_LEVEL]
    for y in range(active.size):
        drafts[OUT, y] = not active[y] and left[y, 1] == first and not must[first]
    for z in range(0 if must[first] else shown.shape[2]):
        for y in range(shown.shape[3]):
            drafts[OUT, y] |= shown[BEATS, first, z, y] >= enough


@apart
def look_for(state: State, x: int, drafts: NDArray[np.bool_]) -> bool:
    """Look at what the proof of x may need, arms at limits, and its pairs until it beats the other arm.

    Nothing has come since others were looked at on the current objective. Whether something was seen.
    """
    lows, limits, bounds, order, must = state.lows, state.limits, state.bounds, state.order, state.must
    kinds, singles, pairs, completed = state.kinds, state.singles, state.pairs, state.completed
    who, active, left, first = state.who, state.arms.active, state.arms.left, order[0]
    news, current = False, state.clock[POSITION]
    for y in range(who.shape[1]):
        if not who[OFFERED, y] or (not active[y] and left[y, 1] == first and not must[first]):
            continue
        for position in range(order.size):
            i = order[position]
            if must[i]:
                done = position == current and drafts[LOOKED, y]
                known = meets(bounds, limits, i, y) and misses(bounds, limits, i, y)
                if not done and not known:
                    news |= look_at_arm(bounds, limits, kinds, singles, completed, i, y)
            if y != x and (not must[i] or misses(bounds, limits, i, y)):
                if beats(lows, limits, i, x, y) or (close(lows, limits, i, x, y) and not must[i]):
                    pass
                elif is_share(limits, i):
                    news |= look_at_shares(state, i, x, y)
                else:
                    kind = kind_at(kinds, i)
                    a, b = min(x, y), max(x, y)
                    news |= look(kind, lows, limits, kinds, singles, pairs, completed, i, a, b)
                if beats(lows, limits, i, x, y):
                    break
    return news


@apart
def weigh_for(state: State, x: int, drafts: NDArray[np.bool_]) -> None:
    """Weigh what the proof of x needs: its own pairs, and for whom it does not do who else beats them.

    `drafts` is for sets of arms: see `plug_in`.
    """
    lows, limits, shown, kinds, wealth = state.lows, state.limits, state.shown, state.kinds, state.wealth
    singles, pairs, who, order, must = state.singles, state.pairs, state.who, state.order, state.must
    first, shares, n_arms, some = order[0], state.shares, who.shape[1], False
    note_out(state.arms.active, state.arms.left, limits, must, shown, drafts, first)
    for i in range(order.size):
        if must[i]:
            weigh_arm(state, MEETS, i, x)
    for y in range(n_arms):
        drafts[LACKING, y] = False
        if not who[OFFERED, y] or y == x or drafts[OUT, y]:
            continue
        row, direction, sign = pair_of(min(x, y), max(x, y), n_arms), int(x > y), -1.0 if x > y else 1.0
        for position in range(order.size):
            i = order[position]
            kind, share = kind_at(kinds, i), is_share(limits, i)
            n, mean, squares = pairs[row, i, 0], sign * pairs[row, i, 1], pairs[row, i, 2]
            if kind.code == EXACT:
                n, mean = paired(limits, kinds, singles, pairs, i, x, y)
            tolerance, reach, low = limits[i, TOLERANCE], limits[i, REACH], lows[i, x, y]
            held, enough = True, limits[i, NOT_WORSE_LEVEL]
            under = True
            if must[i]:  # where x must be at the floor, which makes it not worse
                weigh_arm(state, MISSES, i, y)
                under = is_under(state.bounds, limits, state.arm_shown, i, y)
            for claim in range(BEATS if must[i] else NOT_WORSE, 2 if under else 0):  # BEATS if not worse
                boundary = -reach if claim == NOT_WORSE else tolerance
                seen, enough = shown[claim, i, x, y], limits[i, NOT_WORSE_LEVEL + claim]
                if held and seen < enough:
                    if share:
                        found = share_evidence(limits, kinds, singles, shares, claim, i, x, y)
                    else:
                        place, lead = (row, i, direction, claim), (n, mean, squares)
                        found = claim_evidence(kind, wealth, place, boundary, reach - tolerance, lead, enough)
                    seen = max(seen, found)
                    shown[claim, i, x, y] = seen
                if claim == NOT_WORSE:
                    held = seen >= enough or low >= -reach
            beaten = under and (shown[BEATS, i, x, y] >= enough or low > tolerance)
            if not held or beaten:
                drafts[LACKING, y] = not held
                some |= not held
                break
    if some and limits[first, THIRD_LEVEL] < math.inf:
        weigh_thirds(state, x, drafts)


@apart
def weigh_thirds(state: State, x: int, drafts: NDArray[np.bool_]) -> None:
    """Weigh who else beats an arm that x lacks on the first objective."""
    limits, shown, kinds, wealth, pairs = state.limits, state.shown, state.kinds, state.wealth, state.pairs
    singles, who, first, shares = state.singles, state.who, state.order[0], state.shares
    kind, enough, row = kind_at(kinds, first), limits[first, THIRD_LEVEL], -1
    tolerance, resolution = limits[first, TOLERANCE], limits[first, REACH] - limits[first, TOLERANCE]
    share = is_share(limits, first)
    by_moments = kind.code < EXACT and not share
    for a in range(who.shape[1]):
        for b in range(a + 1, who.shape[1]):
            row += 1
            if not drafts[LACKING, a] and not drafts[LACKING, b]:
                continue
            n, mean, squares = pairs[row, first, 0], pairs[row, first, 1], pairs[row, first, 2]
            if by_moments and not may_reach(kind, n, abs(mean) - tolerance, squares, enough):
                continue
            if kind.code == EXACT:
                n, mean = paired(limits, kinds, singles, pairs, first, a, b)
            for turn in range(2):
                z, y = (a, b) if turn == 0 else (b, a)
                if drafts[LACKING, y] and z != x and who[OFFERED, z]:
                    if share:
                        found = share_evidence(limits, kinds, singles, shares, BEATS, first, z, y)
                    else:
                        place, lead = (row, first, turn, BEATS), (n, -mean if turn else mean, squares)
                        found = claim_evidence(kind, wealth, place, tolerance, resolution, lead, enough)
                    shown[BEATS, first, z, y] = max(shown[BEATS, first, z, y], found)


@kernel
def is_closest(state: State, i: int, x: int) -> bool:
    """Whether x looks as if it could only be the closest on a limit: not seen at its floor, nor near it."""
    seen = is_in(state.bounds, state.limits, state.arm_shown, i, x)
    return not seen and not looks_in(state.limits, state.kinds, state.arms.means, i, x)


@apart
def some_closest(state: State, x: int) -> bool:
    """Whether x looks so on some limit: then facts alone prove it."""
    some = False
    for i in range(state.must.size):
        some |= state.must[i] and is_closest(state, i, x)
    return bool(some)


@apart
def prove(state: State, x: int, drafts: NDArray[np.bool_]) -> bool:
    """Whether x is proven, and better than a baseline that may answer; note in `who` whom that needs.

    On a limit x must be at its floor. As the closest it must be not worse than who is not beaten before, and
    all of them, itself too, must be below the target.
    """
    lows, limits, bounds, order, must = state.lows, state.limits, state.bounds, state.order, state.must
    who, shown, active, left, first = state.who, state.shown, state.arms.active, state.arms.left, order[0]
    arm_shown, baseline = state.arm_shown, state.manner.baseline
    declared = shown.size > 0 and not some_closest(state, x)
    proven = True
    note_out(active, left, limits, must, shown, drafts, first)
    for y in range(who.shape[1]):
        lacks = False
        out = y != x and drafts[OUT, y]
        position = order.size if out or not who[OFFERED, y] else 0
        ahead = y != baseline or y == x or not active[y] or out
        while position < order.size:
            i = order[position]
            low = lows[i, x, y]
            held, beaten = y == x or low >= -limits[i, REACH], y != x and low > limits[i, TOLERANCE]
            if declared and y != x:
                held |= shown[NOT_WORSE, i, x, y] >= limits[i, NOT_WORSE_LEVEL]
                beaten |= shown[BEATS, i, x, y] >= limits[i, BEATS_LEVEL]
            if must[i]:
                under, within = misses(bounds, limits, i, y), meets(bounds, limits, i, x)
                if declared:
                    under = is_under(bounds, limits, arm_shown, i, y)
                    within = is_in(bounds, limits, arm_shown, i, x)
                beaten = beaten and under
                closest = not within and is_closest(state, i, x)
                held = held and under if closest else within or y != x
            lacks = not held
            ahead = ahead or beaten
            position = order.size if lacks or beaten else position + 1
        lacks = lacks or not ahead
        drafts[LACKING, y] = lacks and y != x
        who[BY_PROOF, y] = lacks or y == x
        proven = proven and not lacks
    if not proven:
        ask_thirds(state, drafts, x)
    return proven


@kernel
def ask_thirds(state: State, drafts: NDArray[np.bool_], x: int) -> None:
    """Where the means do not let x handle y, ask who keeps y out: does it belong in the answer's place?

    x handles y if, going through the order, it is ahead before it is behind, by the means; if it is neither,
    y must be no baseline. On a limit nobody is ahead of who looks as if he were in.
    """
    limits, kinds, singles, pairs = state.limits, state.kinds, state.singles, state.pairs
    means, order, must, active = state.arms.means, state.order, state.must, state.arms.active
    for y in range(active.size):
        handled, third = not drafts[LACKING, y], -1
        for position in range(order.size):
            i = order[position]
            middle = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
            if not handled and not (must[i] and looks_in(limits, kinds, means, i, y)):
                _, lead = paired(limits, kinds, singles, pairs, i, x, y)
                if is_share(limits, i):
                    lead = in_shares(limits, means, i, x, y, lead)
                handled = lead > middle
                if lead < -middle:
                    break
        else:
            handled = handled or y != state.manner.baseline
        for position in range(order.size):
            i = order[position]
            most = 0.5 * (limits[i, TOLERANCE] + limits[i, REACH])
            if handled or third >= 0 or (must[i] and looks_in(limits, kinds, means, i, y)):
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
            state.who[BY_PROOF, third] = True


class Seen(NamedTuple):
    """What was seen of the answer against one rival on one objective.

    `verdict`: the answer "beats" the rival, they are "close", it is "not worse", the rival is "beaten" `by` a
    third arm, or the question is "open". On a limit the rival "meets the target", which is seen of its floor,
    or is worse than the answer, or the arm `by` whom it left, and "violates the limit", or is seen to be
    below the target alone: "not clearly within".
    """

    rival: int
    objective: int
    difference: float  # answer − rival, the mean over common results; nan without any
    low: float  # the true difference lies between these: a statement of its own
    high: float
    results: int  # common results
    verdict: str
    by: int  # −1: nobody
    parts: float  # of the evidence that settles it, at most 1; nan against a target
    certain: bool = False  # whether it rests on arithmetic alone: no chance is involved


def certificate(
    state: State,
    x: int,
    differences: Vector,
    parts_of: Callable[[int, int, int], float] | None = None,
    certain: State | None = None,
) -> tuple[Seen, ...]:
    """Per rival of x, objective by objective until it is done.

    `parts_of` (x, y, objective) says how much of the evidence there is where bets are kept elsewhere,
    `certain` is the state with nothing in it but what is certain. Where all is settled and there are limits
    facts alone count: claims are paid for as parts of a proof that meets every limit.
    """
    if state.must.any() and state.clock[POSITION] == state.order.size:
        unseen, nobody = (np.full_like(claims, -math.inf) for claims in (state.shown, state.arm_shown))
        state = state._replace(shown=unseen, arm_shown=nobody)
    seen = []
    for y in np.flatnonzero(state.who[OFFERED]).tolist():
        for i in state.order.tolist() if y != x else ():
            results, mean = paired(state.limits, state.kinds, state.singles, state.pairs, i, x, y)
            low, high = differences[x, y, i].tolist()
            said, by = _verdict(state, x, y, i, high)
            parts = math.nan if state.must[i] else 1.0
            if said == "open" and not state.must[i]:
                parts = _parts(state, x, y, i) if parts_of is None else parts_of(x, y, i)
            sure = state.kinds[i, 0] == EXACT if certain is None else _holds(certain, x, y, i, said, by)
            shown = mean if results else math.nan
            seen.append(Seen(y, i, shown, low, high, int(results), said, by, parts, bool(sure)))
            if said in ENDS:
                break
    return tuple(seen)


def _verdict(state: State, x: int, y: int, i: int, high: float) -> tuple[str, int]:
    lows, limits, bounds, shown = state.lows, state.limits, state.bounds, state.shown
    # after the first objective it is the survivors' end, not the proof, to which other arms matter
    _, left_on, rival = state.arms.left[y].tolist()
    ended = (i == state.order[0] and not state.must[i]) or state.clock[POSITION] == state.order.size
    left = not state.arms.active[y] and left_on == i and ended
    if state.must[i]:
        beaten = is_under(bounds, limits, state.arm_shown, i, y) and is_beaten(lows, limits, shown, i, x, y)
        if beaten or left:
            said = "violates the limit" if violates(bounds, limits, i, y) else "not clearly within"
            return said, -1 if beaten else rival
        if is_in(bounds, limits, state.arm_shown, i, y):
            return "meets the target", -1
        if is_in(bounds, limits, state.arm_shown, i, x) or not not_worse(lows, limits, i, x, y):
            return "open", -1
        return ("close" if high <= limits[i, REACH] else "not worse"), -1
    if is_beaten(lows, limits, shown, i, x, y):
        return "beats", -1
    if left:
        return "beaten", rival
    third = beaten_by_third(limits, shown, i, y) if i == state.order[0] else -1
    if third >= 0:
        return "beaten", third
    if not is_held(lows, limits, shown, i, x, y):
        return "open", -1
    both = not_worse(lows, limits, i, y, x) if is_share(limits, i) else high <= limits[i, REACH]
    return ("close" if both else "not worse"), -1


def _holds(state: State, x: int, y: int, i: int, said: str, by: int) -> bool:
    """Whether what was said of a rival follows from this state as well."""
    lows, limits, bounds = state.lows, state.limits, state.bounds
    if said == "beats" or said == "beaten":
        return beats(lows, limits, i, x if said == "beats" else by, y)
    if said == "violates the limit" or said == "not clearly within":
        below = violates if said == "violates the limit" else misses
        return below(bounds, limits, i, y) and beats(lows, limits, i, x if by < 0 else by, y)
    if said == "meets the target":
        return meets(bounds, limits, i, y)
    return said != "open" and (close if said == "close" else not_worse)(lows, limits, i, x, y)


def _parts(state: State, x: int, y: int, i: int) -> float:
    """How much of the evidence there is that x is not worse than y, or that a third arm beats it."""
    limits, first = state.limits, state.order[0]
    if state.shown.size == 0:
        return _share(fact_evidence(state, i, x, y), limits[i, LEVEL])
    found = [_share(evidence_for(state, NOT_WORSE, i, x, y), limits[i, NOT_WORSE_LEVEL])]
    if i == first and limits[i, THIRD_LEVEL] < math.inf:
        others = [z for z in np.flatnonzero(state.who[OFFERED]).tolist() if z not in (x, y)]
        found += [_share(evidence_for(state, BEATS, i, z, y), limits[i, THIRD_LEVEL]) for z in others]
    return max(found)


def _share(evidence: float, enough: float) -> float:
    return min(1.0, max(0.0, evidence / enough)) if enough > 0.0 else float(evidence > 0.0)
