"""The rule of LexElim-Tol: look, drop, settle, prove; and its passes, which ask, fill and fold places."""

import math

import numpy as np
from numpy.typing import NDArray

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import EXACT
from lexbandits.policies.tolerance.anytime import (
    beats,
    look,
    look_at_arm,
    meets,
    misses,
    shows_nothing,
    violates,
)
from lexbandits.policies.tolerance.folding import fold_values
from lexbandits.policies.tolerance.preregistered import held_now
from lexbandits.policies.tolerance.relative import ask_references, is_share, look_at_shares
from lexbandits.policies.tolerance.state import (
    ASKED,
    BY_PROOF,
    BY_RULE,
    CANDIDATE,
    FILLED,
    HIGHEST,
    LACKS,
    LEADER,
    LEVEL,
    NEXT,
    OFFERED,
    OVER,
    PASS,
    POSITION,
    REACH,
    RIVAL,
    STUCK,
    TOLERANCE,
    TURN,
    PassArrays,
    State,
)
from lexbandits.policies.tolerance.stopping import (
    LOOKED,
    is_closest_somewhere,
    look_for,
    plug_in,
    prove,
    weigh_limits,
)
from lexbandits.policies.tolerance.survivors import needs_pairs, survey

FIRST_PROOF = 10  # passes before there is a candidate
RULE_EVERY = 20  # once there is one, every twentieth pass asks as if there were none
FIRST_LED = 20  # passes before the candidate is asked several times in each, where that is wanted
MISFIT = "a value lies outside the bounds of its noise, or an exact objective has two different values"


@kernel
def next_evaluated(number: int) -> int:
    """The pass after which pairs are looked at again."""
    return number + max(1, number // 100)


@kernel(inline="never")
def look_at_limit(state: State, scratch: NDArray[np.bool_]) -> bool:
    """Look at what a limit still needs to know of the survivors; whether something was seen.

    Note in `scratch` whom it LOOKED at. Pairs matter where somebody is seen below the target and not at the
    floor.
    """
    active, lcb, limits, bounds = state.arms.active, state.lcb, state.limits, state.bounds
    kinds, singles, pairs, completed = state.kinds, state.singles, state.pairs, state.completed
    i, news = state.order[state.clock[POSITION]], False
    for a in range(active.size):
        scratch[LOOKED, a] = active[a] and not meets(bounds, limits, i, a)
        if scratch[LOOKED, a]:
            news |= look_at_arm(bounds, limits, kinds, singles, completed, i, a)
    if not needs_pairs(bounds, limits, active, i):
        return news
    kind = kind_at(kinds, i)
    for a in range(active.size):
        if active[a] and not scratch[LOOKED, a] and not misses(bounds, limits, i, a):
            scratch[LOOKED, a] = True
            news |= look_at_arm(bounds, limits, kinds, singles, completed, i, a)
        for b in range(a + 1, active.size):
            if not active[a] or not active[b] or beats(lcb, limits, i, a, b) or beats(lcb, limits, i, b, a):
                continue
            for arm in (a, b):
                if misses(bounds, limits, i, arm) and not meets(bounds, limits, i, arm):
                    news |= look(kind, lcb, limits, kinds, singles, pairs, completed, i, a, b)
                    break
    return news


@kernel(inline="never")
def look_for_guardrails(state: State) -> bool:
    """Look for arms that break a limit before all other objectives; whether something was seen."""
    masks, order, limits, bounds = state.masks, state.order, state.limits, state.bounds
    kinds, singles, completed, news, position = state.kinds, state.singles, state.completed, False, 0
    while position < order.size and state.is_limit[order[position]]:
        i = order[position]
        position += 1
        for arm in range(masks.shape[1]):
            known = meets(bounds, limits, i, arm) or violates(bounds, limits, i, arm)
            if masks[OFFERED, arm] and not known:
                news |= look_at_arm(bounds, limits, kinds, singles, completed, i, arm)
    return bool(news)


@kernel(inline="never")
def look_around(state: State, scratch: NDArray[np.bool_]) -> bool:
    """Look at what the current objective still needs to know of the survivors; whether something was seen.

    Note in `scratch` whom it LOOKED at alone, on a limit.
    """
    active, lcb, limits = state.arms.active, state.lcb, state.limits
    kinds, singles, pairs, completed = state.kinds, state.singles, state.pairs, state.completed
    i = state.order[state.clock[POSITION]]
    if state.is_limit[i]:
        return look_at_limit(state, scratch)
    kind, row, news = kind_at(kinds, i), -1, False
    share = is_share(limits, i)
    level, tolerance, reach = limits[i, LEVEL], limits[i, TOLERANCE], limits[i, REACH]
    for a in range(active.size):
        scratch[LOOKED, a] = False
        for b in range(a + 1, active.size):
            row += 1
            low, back = lcb[i, a, b], lcb[i, b, a]
            if not active[a] or not active[b] or (low >= -reach and back >= -reach):
                continue
            if share:
                news |= look_at_shares(state, i, a, b)
                continue
            n, mean, m2 = pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2]
            if not shows_nothing(kind, n, mean, m2, level, tolerance, reach, low, back):
                news |= look(kind, lcb, limits, kinds, singles, pairs, completed, i, a, b)
    return news


@kernel(inline="never")
def evaluate(state: State, anew: bool) -> None:
    """Who survives, who answers, and whom the rule and the proof of the answer would ask next.

    `anew`: by other rules than the last judgement, or the first one.
    """
    clock, active, preregistered = state.clock, state.arms.active, state.log_evidence.size > 0
    proving = state.options.proves and clock[PASS] >= FIRST_PROOF
    # looking at what the candidate's proof needs may drop arms, even the candidate: so there are two turns
    candidate, looked, scratch = -1, -1, np.empty((3, active.size), np.bool_)
    changed = look_for_guardrails(state) or anew
    for turn in range(2):
        while True:  # look, drop, and look at the next objective, until nothing changes
            if changed:
                survey(state)
            if clock[OVER] == 1 or clock[POSITION] == looked:
                break
            looked = clock[POSITION]
            changed = look_around(state, scratch)
        if clock[OVER] == 1 or not proving:
            break
        if candidate < 0 or not active[candidate]:
            candidate = plug_in(state, scratch)
        if preregistered:
            weigh_limits(state, candidate)
            if not is_closest_somewhere(state, candidate):
                break
        if turn == 0:
            changed = look_for(state, candidate, scratch)
    conclude(state, candidate, scratch, preregistered)
    if clock[OVER] == 1:
        look_at_all(state)
    if state.shares.size > 0:
        ask_references(state)


@kernel(inline="never")
def look_at_all(state: State) -> None:
    """Look at whom nobody saw at the floor of a limit: who was below it is said beside the answer."""
    bounds, limits, kinds = state.bounds, state.limits, state.kinds
    singles, masks = state.singles, state.masks
    for i in range(state.is_limit.size):
        for arm in range(masks.shape[1] if state.is_limit[i] else 0):
            if masks[OFFERED, arm] and not meets(bounds, limits, i, arm):
                look_at_arm(bounds, limits, kinds, singles, state.completed, i, arm)


@kernel(inline="never")
def conclude(state: State, candidate: int, scratch: NDArray[np.bool_], weighs: bool) -> None:
    """Answer if it is over, or if the candidate, −1 for none yet, is proven; `weighs`: see `prove`."""
    clock = state.clock
    if clock[OVER] == 1:
        candidate = plug_in(state, scratch)
    elif candidate >= 0 and prove(state, candidate, scratch, weighs):
        clock[OVER] = 1
    clock[CANDIDATE] = candidate


@kernel(inline="always")
def row_asked(state: State, number: int) -> int:
    """Which arms pass `number` asks, as things stand: mostly the proof's, now and then the rule's."""
    return BY_PROOF if state.clock[CANDIDATE] >= 0 and number % RULE_EVERY != 0 else BY_RULE


@kernel
def leader_of(state: State, number: int) -> int:
    """Whom pass `number` asks several times, as things stand, a function of the passes folded; −1: nobody."""
    leader = state.clock[CANDIDATE]
    if state.repeats.shape[0] == 0 or leader < 0 or number < FIRST_LED or state.clock[OVER] == 1:
        return -1
    return int(leader) if state.masks[row_asked(state, number), leader] else -1


@kernel(inline="always")
def open_pass(state: State) -> None:
    """Fix the members of the current pass and who is asked how often; nobody once it is over."""
    clock, masks, repeats = state.clock, state.masks, state.repeats
    row = row_asked(state, clock[PASS])
    clock[LACKS] = 0
    clock[LEADER] = -1
    if repeats.shape[0] > 0:
        repeats[:, -1] = 0.0
        clock[LEADER] = leader_of(state, clock[PASS])
        if clock[LEADER] >= 0:
            clock[LACKS] = repeats.shape[0] - 1
    clock[TURN] = -1
    for arm in range(masks.shape[1] - 1, -1, -1):  # backwards, so that TURN ends at the first member
        if masks[ASKED, arm]:
            for i in range(state.values.shape[1]):
                state.values[arm, i] = 0.0
        masks[FILLED, arm] = False
        masks[ASKED, arm] = clock[OVER] == 0 and masks[row, arm]
        if masks[ASKED, arm]:
            clock[LACKS] += 1
            clock[TURN] = arm


@kernel(inline="never")
def close_pass(state: State) -> None:
    """Fold the current pass, evaluate if it is time, and open the next; it must be full: see `take_pass`."""
    clock = state.clock
    if clock[LACKS] > 0:
        raise ValueError(MISFIT)
    fold_values(state)
    clock[PASS] += 1
    if clock[PASS] == clock[NEXT]:
        evaluate(state, False)
        clock[NEXT] = next_evaluated(clock[PASS])
    elif clock[RIVAL] >= 0:  # to evaluate at every pass takes twice the time, and ends no sooner
        i, x, y, n_arms = clock[STUCK], clock[CANDIDATE], clock[RIVAL], state.masks.shape[1]
        if held_now(state.limits, state.kinds, state.pairs, state.wealth, n_arms, i, x, y):
            evaluate(state, False)
    open_pass(state)


@kernel
def pass_arrays(state: State) -> PassArrays:
    """Return the arrays that filling a place touches."""
    arms = state.arms
    return PassArrays(
        state.clock,
        state.masks,
        state.values,
        state.repeats,
        state.kinds,
        state.singles,
        arms.told,
        arms.pulls,
    )


@kernel
def members(arrays: PassArrays, arms: Counts) -> int:
    """How many members of the pass lack results, 0 after the end; `arms` says who, each once, in turn."""
    clock, masks, lacking = arrays.clock, arrays.masks, 0
    for arm in range(masks.shape[1] if clock[TURN] >= 0 else 0):
        if masks[ASKED, arm] and not masks[FILLED, arm]:
            arms[lacking] = arm
            lacking += 1
    return lacking


@kernel
def fits(value: float, low: float, high: float, known: bool, before: float) -> bool:
    """Whether a value is within the bounds of its noise and, if it is exact and known, as it was before."""
    return not (value < low or value > high or (known and abs(value - before) > 0.0))


@kernel
def take_repeat(arrays: PassArrays, arm: int, repeat: int, reward: Vector) -> None:
    """Fill a place of the leader; when all of them are filled, the mean of what is present is its value.

    Never before: whoever chooses which of its results comes first would choose its value.
    """
    values, repeats, m, low, high = arrays.values, arrays.repeats, reward.size, 0.0, 0.0
    repeats[repeat, :m] = reward
    repeats[repeat, m] = 1.0
    for other in range(repeats.shape[0]):
        if repeats[other, m] == 0.0:
            return
    for i in range(m):
        total, present, exact = 0.0, 0, arrays.kinds[i, 0] == EXACT
        for other in range(repeats.shape[0]):
            value = repeats[other, i]
            if math.isnan(value) or (exact and present > 0):
                continue
            low, high = (value, value) if present == 0 else (min(low, value), max(high, value))
            total += value
            present += 1
        # rounding must not take a mean out of the bounds of its noise
        values[arm, i] = min(max(total / present, low), high) if present > 0 else math.nan
    arrays.masks[FILLED, arm] = True


@kernel
def earliest_repeat(repeats: Vector) -> int:
    """The leader's first place that is not filled."""
    repeat = 0
    while repeats[repeat, -1] > 0.0:
        repeat += 1
    return repeat


@kernel
def take_pass(arrays: PassArrays, results: Vector, number: int, most: int) -> bool:
    """Take results[number] of members that lack theirs, of `most` of them; whether the pass is to be closed.

    It is full, or a value does not fit: then it still lacks one, and `close_pass` says so. Nothing is raised
    or called with an array in this loop, so that no references are counted in it.
    """
    clock, masks, values, repeats, kinds, singles, told, pulls = arrays
    taken = 0
    for arm in range(masks.shape[1]):
        if not masks[ASKED, arm] or masks[FILLED, arm] or taken == most:
            continue
        for i in range(values.shape[1]):
            value, known = results[number, arm, i], kinds[i, 0] == EXACT and singles[arm, i, 0] > 0.0
            if not fits(value, kinds[i, 1], kinds[i, 2], known, singles[arm, i, 1]):
                return True
            values[arm, i] = value
        if arm == clock[LEADER]:
            take_repeat(arrays, arm, earliest_repeat(repeats), results[number, arm])
        else:
            masks[FILLED, arm] = True
        pulls[arm] += 1
        told[0] += 1
        taken += 1
        clock[LACKS] -= 1
    clock[HIGHEST] = max(clock[HIGHEST], clock[PASS])
    if clock[LACKS] == 0:
        return True
    while not (masks[ASKED, clock[TURN]] and not masks[FILLED, clock[TURN]]):
        clock[TURN] += 1
    return False


@kernel
def take(arrays: PassArrays, arm: int, repeat: int, reward: Vector) -> bool:
    """Fill a place of the arm in the current pass; whether it was the last one, so that the pass may close.

    `repeat`: which of its places, −1 for the earliest; only the leader has more than one.
    """
    clock, masks, kinds = arrays.clock, arrays.masks, arrays.kinds
    is_leader = arm == clock[LEADER]
    if repeat > 0 and not is_leader:
        return False
    if masks[FILLED, arm]:
        raise ValueError("the arm's place in this pass is filled: use tell, which keeps what comes early")
    for i in range(reward.size):
        known = kinds[i, 0] == EXACT and arrays.singles[arm, i, 0] > 0.0
        if not fits(reward[i], kinds[i, 1], kinds[i, 2], known, arrays.singles[arm, i, 1]):
            raise ValueError(MISFIT)
    if is_leader:
        take_repeat(arrays, arm, earliest_repeat(arrays.repeats) if repeat < 0 else repeat, reward)
    else:
        masks[FILLED, arm] = True
        if not masks[ASKED, arm]:
            return False
        for i in range(reward.size):
            arrays.values[arm, i] = reward[i]
    clock[LACKS] -= 1
    if clock[LACKS] == 0:
        return True
    while not (masks[ASKED, clock[TURN]] and not masks[FILLED, clock[TURN]]):
        clock[TURN] += 1
    return False


@kernel
def count(arrays: PassArrays, arm: int, number: int) -> None:
    """Count a result of the arm in pass `number`."""
    arrays.told[0] += 1
    arrays.pulls[arm] += 1
    arrays.clock[HIGHEST] = max(arrays.clock[HIGHEST], number)


@kernel
def take_and_count(arrays: PassArrays, arm: int, repeat: int, reward: Vector) -> bool:
    """Take a result of the current pass."""
    last = take(arrays, arm, repeat, reward)
    count(arrays, arm, arrays.clock[PASS])
    return last


@kernel(inline="always")
def fill(state: State, arm: int, repeat: int, reward: Vector) -> None:
    """Fill a place of the arm in the current pass; the last place folds it, and opens the next."""
    if take(pass_arrays(state), arm, repeat, reward):
        close_pass(state)


@kernel
def choose(state: State, pending: Counts) -> int:
    """Whose turn it is; with results in flight, the member of the pass with the fewest taken places."""
    turn = state.clock[TURN]
    if pending[turn] == 0:
        return int(turn)
    chosen = -1
    fewest = 0
    for arm in range(pending.size):
        taken = pending[arm] + state.masks[FILLED, arm]
        if arm == state.clock[LEADER]:  # whose places are filled one by one
            taken = (taken + int(state.repeats[:, -1].sum())) // state.repeats.shape[0]
        if state.masks[ASKED, arm] and (chosen < 0 or taken < fewest):
            chosen = arm
            fewest = taken
    return chosen


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Count a result of the current pass, one after the other; after the end it is only counted."""
    arrays = pass_arrays(state)
    if state.clock[OVER] == 1:
        count(arrays, arm, state.clock[PASS])
    elif take_and_count(arrays, arm, -1, reward):
        close_pass(state)


@kernel
def observe_place(state: State, arm: int, repeat: int, reward: Vector) -> None:
    """Take a result of the current pass, at its place."""
    if take_and_count(pass_arrays(state), arm, repeat, reward):
        close_pass(state)


@kernel
def finished(state: State) -> bool:
    """The answer is proven, or there is none to be had."""
    return bool(state.clock[OVER] == 1)


@kernel
def replay(
    state: State, arms: Counts, rewards: Vector, items: Counts, start: int, somebody_waits: bool
) -> int:
    """Tell in order until a result must wait, or until those that wait may go on; return how far it came.

    items: the place of each result, −1 for the earliest that the arm lacks.
    """
    clock, masks, arrays, reward = state.clock, state.masks, pass_arrays(state), np.empty(rewards.shape[1])
    times = max(1, state.repeats.shape[0])
    for t in range(start, arms.size):
        number, arm, place, repeat = clock[PASS], arms[t], items[t], -1
        if times > 1 and place >= 0:
            place, repeat = place // times, place % times
        if clock[OVER] == 1 or 0 <= place < number:
            count(arrays, arm, max(place, number if place < 0 else 0))
            continue
        if place > number or (masks[FILLED, arm] and repeat <= 0):
            return t
        for i in range(reward.size):
            reward[i] = rewards[t, i]
        if take_and_count(arrays, arm, repeat, reward):
            close_pass(state)
            if somebody_waits:
                return t + 1
    return int(arms.size)


@kernel
def begin(state: State) -> None:
    """Judge by the rules in force and open a pass."""
    evaluate(state, True)
    open_pass(state)
