"""The rule of LexElim-Tol: look, drop, settle, prove; and its passes, which ask, fill and fold places."""

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Counts, Vector
from lexbandits.evidence.interval import kind_at
from lexbandits.evidence.kinds import EXACT
from lexbandits.jit import apart, kernel, written_in
from lexbandits.policies.tol.facts import beats, look, look_at_arm, meets, misses, shows_nothing
from lexbandits.policies.tol.folding import fold_values
from lexbandits.policies.tol.percent import ask_references, is_share, look_at_shares
from lexbandits.policies.tol.proof import LOOKED, look_for, plug_in, prove, some_closest, weigh_for
from lexbandits.policies.tol.state import (
    ASKED,
    BY_PROOF,
    BY_RULE,
    CANDIDATE,
    FILLED,
    HIGHEST,
    LACKS,
    LEVEL,
    NEXT,
    OFFERED,
    OVER,
    PASS,
    POSITION,
    REACH,
    TOLERANCE,
    TURN,
    Desk,
    State,
)
from lexbandits.policies.tol.survivors import needs_pairs, survey

FIRST_PROOF = 10  # passes before there is a candidate
RULE_EVERY = 20  # once there is one, every twentieth pass asks as if there were none
MISFIT = "a value lies outside the bounds of its noise, or an exact objective has two different values"


@kernel
def next_judged(number: int) -> int:
    """The pass after which pairs are looked at again."""
    return number + max(1, number // 100)


@apart
def look_at_limit(state: State, drafts: NDArray[np.bool_]) -> bool:
    """Look at what a limit still needs to know of the survivors; whether something was seen.

    Note in `drafts` whom it LOOKED at. Pairs matter where somebody is seen below the target and not at the
    floor.
    """
    active, lows, limits, bounds = state.arms.active, state.lows, state.limits, state.bounds
    kinds, singles, pairs, completed = state.kinds, state.singles, state.pairs, state.completed
    i, news = state.order[state.clock[POSITION]], False
    for a in range(active.size):
        drafts[LOOKED, a] = active[a] and not meets(bounds, limits, i, a)
        if drafts[LOOKED, a]:
            news |= look_at_arm(bounds, limits, kinds, singles, completed, i, a)
    if not needs_pairs(bounds, limits, active, i):
        return news
    kind = kind_at(kinds, i)
    for a in range(active.size):
        if active[a] and not drafts[LOOKED, a] and not misses(bounds, limits, i, a):
            drafts[LOOKED, a] = True
            news |= look_at_arm(bounds, limits, kinds, singles, completed, i, a)
        for b in range(a + 1, active.size):
            if not active[a] or not active[b] or beats(lows, limits, i, a, b) or beats(lows, limits, i, b, a):
                continue
            for arm in (a, b):
                if misses(bounds, limits, i, arm) and not meets(bounds, limits, i, arm):
                    news |= look(kind, lows, limits, kinds, singles, pairs, completed, i, a, b)
                    break
    return news


@apart
def look_around(state: State, drafts: NDArray[np.bool_]) -> bool:
    """Look at what the current objective still needs to know of the survivors; whether something was seen.

    Note in `drafts` whom it LOOKED at alone, on a limit.
    """
    active, lows, limits = state.arms.active, state.lows, state.limits
    kinds, singles, pairs, completed = state.kinds, state.singles, state.pairs, state.completed
    i = state.order[state.clock[POSITION]]
    if state.must[i]:
        return look_at_limit(state, drafts)
    kind, row, news = kind_at(kinds, i), -1, False
    share = is_share(limits, i)
    level, tolerance, reach = limits[i, LEVEL], limits[i, TOLERANCE], limits[i, REACH]
    for a in range(active.size):
        drafts[LOOKED, a] = False
        for b in range(a + 1, active.size):
            row += 1
            low, back = lows[i, a, b], lows[i, b, a]
            if not active[a] or not active[b] or (low >= -reach and back >= -reach):
                continue
            if share:
                news |= look_at_shares(state, i, a, b)
                continue
            n, mean, m2 = pairs[row, i, 0], pairs[row, i, 1], pairs[row, i, 2]
            if not shows_nothing(kind, n, mean, m2, level, tolerance, reach, low, back):
                news |= look(kind, lows, limits, kinds, singles, pairs, completed, i, a, b)
    return news


@apart
def judge(state: State, anew: bool) -> None:
    """Who survives, who answers, and whom the rule and the proof of the answer would ask next.

    `anew`: by other rules than the last judgement, or the first one.
    """
    clock, active, declared = state.clock, state.arms.active, state.shown.size > 0
    proving = state.manner.proves and clock[PASS] >= FIRST_PROOF
    candidate, changed, looked, drafts = -1, anew, -1, np.empty((3, active.size), np.bool_)
    for turn in range(2):
        while True:  # look, drop, and look at the next objective, until nothing changes
            if changed:
                survey(state)
            if clock[OVER] == 1 or clock[POSITION] == looked:
                break
            looked = clock[POSITION]
            changed = look_around(state, drafts)
        if clock[OVER] == 1 or not proving:
            break
        if candidate < 0 or not active[candidate]:
            candidate = plug_in(state, drafts)
        if declared:
            weigh_for(state, candidate, drafts)
            if not some_closest(state, candidate):
                break
        if turn == 0:
            changed = look_for(state, candidate, drafts)
    conclude(state, candidate, drafts)
    if clock[OVER] == 1:
        look_at_all(state)
    if state.shares.size > 0:
        ask_references(state)


@apart
def look_at_all(state: State) -> None:
    """Look at whom nobody saw at the floor of a limit: who was below it is said beside the answer."""
    bounds, limits, kinds, singles, who = state.bounds, state.limits, state.kinds, state.singles, state.who
    for i in range(state.must.size):
        for arm in range(who.shape[1] if state.must[i] else 0):
            if who[OFFERED, arm] and not meets(bounds, limits, i, arm):
                look_at_arm(bounds, limits, kinds, singles, state.completed, i, arm)


@apart
def conclude(state: State, candidate: int, drafts: NDArray[np.bool_]) -> None:
    """Answer if it is over, or if the candidate, −1 for none yet, is proven."""
    clock = state.clock
    if clock[OVER] == 1:
        candidate = plug_in(state, drafts)
    elif candidate >= 0 and prove(state, candidate, drafts):
        clock[OVER] = 1
    clock[CANDIDATE] = candidate


@written_in
def row_asked(state: State, number: int) -> int:
    """Which arms pass `number` asks, as things stand: mostly the proof's, now and then the rule's."""
    return BY_PROOF if state.clock[CANDIDATE] >= 0 and number % RULE_EVERY != 0 else BY_RULE


@written_in
def open_pass(state: State) -> None:
    """Fix the members of the current pass; nobody once it is over."""
    clock, who = state.clock, state.who
    row = row_asked(state, clock[PASS])
    clock[LACKS] = 0
    clock[TURN] = -1
    for arm in range(who.shape[1] - 1, -1, -1):
        if who[ASKED, arm]:
            for i in range(state.values.shape[1]):
                state.values[arm, i] = 0.0
        who[FILLED, arm] = False
        who[ASKED, arm] = clock[OVER] == 0 and who[row, arm]
        if who[ASKED, arm]:
            clock[LACKS] += 1
            clock[TURN] = arm


@apart
def close_pass(state: State) -> None:
    """Fold the current pass, judge if it is time, and open the next; it must be full: see `take_pass`."""
    clock = state.clock
    if clock[LACKS] > 0:
        raise ValueError(MISFIT)
    fold_values(state)
    clock[PASS] += 1
    if clock[PASS] == clock[NEXT]:
        judge(state, False)
        clock[NEXT] = next_judged(clock[PASS])
    open_pass(state)


@kernel
def desk_of(state: State) -> Desk:
    """What filling a place touches."""
    arms = state.arms
    return Desk(state.clock, state.who, state.values, state.kinds, state.singles, arms.told, arms.pulls)


@kernel
def members(desk: Desk, arms: Counts) -> int:
    """How many members of the pass lack their results, 0 after the end; `arms` says who, in turn."""
    clock, who, lacking = desk.clock, desk.who, 0
    for arm in range(who.shape[1] if clock[TURN] >= 0 else 0):
        if who[ASKED, arm] and not who[FILLED, arm]:
            arms[lacking] = arm
            lacking += 1
    return lacking


@kernel
def fits(value: float, low: float, high: float, known: bool, before: float) -> bool:
    """Whether a value is within the bounds of its noise and, if it is exact and known, as it was before."""
    return not (value < low or value > high or (known and abs(value - before) > 0.0))


@kernel
def take_pass(desk: Desk, results: Vector, number: int, most: int) -> bool:
    """Take results[number] of members that lack theirs, of `most` of them; whether the pass is to be closed.

    It is full, or a value does not fit: then it still lacks one, and `close_pass` says so. Nothing is raised
    or called with an array in this loop, so that no references are counted in it.
    """
    clock, who, values, kinds, singles, told, pulls = desk
    taken = 0
    for arm in range(who.shape[1]):
        if not who[ASKED, arm] or who[FILLED, arm] or taken == most:
            continue
        for i in range(values.shape[1]):
            value, known = results[number, arm, i], kinds[i, 0] == EXACT and singles[arm, i, 0] > 0.0
            if not fits(value, kinds[i, 1], kinds[i, 2], known, singles[arm, i, 1]):
                return True
            values[arm, i] = value
        who[FILLED, arm] = True
        pulls[arm] += 1
        told[0] += 1
        taken += 1
        clock[LACKS] -= 1
    clock[HIGHEST] = max(clock[HIGHEST], clock[PASS])
    if clock[LACKS] == 0:
        return True
    while not (who[ASKED, clock[TURN]] and not who[FILLED, clock[TURN]]):
        clock[TURN] += 1
    return False


@kernel
def take(desk: Desk, arm: int, reward: Vector) -> bool:
    """Fill the arm's place in the current pass; whether it was the last one, so that the pass may close."""
    clock, who, kinds = desk.clock, desk.who, desk.kinds
    if who[FILLED, arm]:
        raise ValueError("the arm's place in this pass is filled: use tell, which keeps what comes early")
    for i in range(reward.size):
        known = kinds[i, 0] == EXACT and desk.singles[arm, i, 0] > 0.0
        if not fits(reward[i], kinds[i, 1], kinds[i, 2], known, desk.singles[arm, i, 1]):
            raise ValueError(MISFIT)
    who[FILLED, arm] = True
    if not who[ASKED, arm]:
        return False
    for i in range(reward.size):
        desk.values[arm, i] = reward[i]
    clock[LACKS] -= 1
    if clock[LACKS] == 0:
        return True
    while not (who[ASKED, clock[TURN]] and not who[FILLED, clock[TURN]]):
        clock[TURN] += 1
    return False


@kernel
def count(desk: Desk, arm: int, number: int) -> None:
    """Count a result of the arm in pass `number`."""
    desk.told[0] += 1
    desk.pulls[arm] += 1
    desk.clock[HIGHEST] = max(desk.clock[HIGHEST], number)


@kernel
def take_and_count(desk: Desk, arm: int, reward: Vector) -> bool:
    """Take a result of the current pass, one after the other."""
    last = take(desk, arm, reward)
    count(desk, arm, desk.clock[PASS])
    return last


@written_in
def fill(state: State, arm: int, reward: Vector) -> None:
    """Fill the arm's place in the current pass; the last place folds it, and opens the next."""
    if take(desk_of(state), arm, reward):
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
        taken = pending[arm] + state.who[FILLED, arm]
        if state.who[ASKED, arm] and (chosen < 0 or taken < fewest):
            chosen = arm
            fewest = taken
    return chosen


@kernel
def observe(state: State, arm: int, reward: Vector) -> None:
    """Count a result of the current pass, one after the other; after the end it is only counted."""
    desk = desk_of(state)
    if state.clock[OVER] == 1:
        count(desk, arm, state.clock[PASS])
    elif take_and_count(desk, arm, reward):
        close_pass(state)


@kernel
def finished(state: State) -> bool:
    """The answer is certain, or there is none to be had."""
    return bool(state.clock[OVER] == 1)


@kernel
def replay(
    state: State, arms: Counts, rewards: Vector, items: Counts, start: int, somebody_waits: bool
) -> int:
    """Tell in order until a result must wait, or until those that wait may go on; return how far it came.

    items: the pass of each result, −1 for the earliest that the arm lacks.
    """
    clock, who, desk, reward = state.clock, state.who, desk_of(state), np.empty(rewards.shape[1])
    for t in range(start, arms.size):
        number = clock[PASS]
        if clock[OVER] == 1 or 0 <= items[t] < number:
            count(desk, arms[t], max(items[t], number if items[t] < 0 else 0))
            continue
        if who[FILLED, arms[t]] or items[t] > number:
            return t
        for i in range(reward.size):
            reward[i] = rewards[t, i]
        if take_and_count(desk, arms[t], reward):
            close_pass(state)
            if somebody_waits:
                return t + 1
    return int(arms.size)


@kernel
def begin(state: State) -> None:
    """Judge by the rules in force and open a pass."""
    judge(state, True)
    open_pass(state)
