"""Exact simulation of elimination policies with a screen: nobody is asked where nothing can happen.

A round-robin policy offers `quiet_band`: how far the active means may spread before somebody leaves.
Passes over the arms whose extremes stay within the band are added up and committed whole; if they do
not, half of them are tried, down to a single pass, which is followed pull by pull to the one that goes
through `observe`. Noise is kept in stream order, so the trajectory is that of the plain loop to the bit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import kernel, written_in
from lexbandits.policies.base import Arms
from lexbandits.world.noise import CORRELATED, World, correlate

BUFFER = 1 << 13  # normals: long stretches of few arms, and the cache holds them beside the arms
PASSES = 8  # held at least, so that many arms are not gathered and put back for every pass
TILE = 512  # values that go through all passes of a stretch together, as the cache holds no more
FIRST_FILL = 1 << 10  # a run that is over at once need not draw them all
FEW = 16  # arms whose extremes are as quickly found one by one
SLACK = 1e-14  # relative; passes are screened with sum·(1/n), a few roundings away from sum/n


class Desk(NamedTuple):
    """Working arrays for one run after the other."""

    noise: Vector  # in stream order, m numbers a round
    cursor: Counts  # (3,) where the next round begins, where the drawn ones end, how many to hold
    order: Counts  # (K,) the active arms, ascending; what follows has their m values side by side
    truth: Vector  # (K·m,) true means
    scales: Vector  # (K·m,) standard deviations
    sums: Vector  # (K·m,) of the rewards, as the stretch goes on
    highs: Vector  # (K·m,) the largest estimate of each in the stretch
    lows: Vector  # (K·m,) the smallest
    top: Vector  # (m,) in a pass under way no estimate is above
    bottom: Vector  # (m,) or below


def desk_for(n_arms: int, n_objectives: int) -> Desk:
    """A desk for policies of this shape."""
    flat = n_arms * n_objectives
    rounds = max(BUFFER // n_objectives, PASSES * n_arms)
    noise, cursor, order = np.empty(rounds * n_objectives), np.zeros(3, np.int64), np.zeros(n_arms, np.int64)
    truth, scales, sums, highs, lows = np.zeros((5, flat))
    top, bottom = np.zeros((2, n_objectives))
    return Desk(noise, cursor, order, truth, scales, sums, highs, lows, top, bottom)


@kernel
def line_up(arms: Arms, desk: Desk) -> tuple[int, int, int]:
    """List the active arms; return how many, the fewest pulls, and how many have one pull more."""
    pulls, active, order = arms.pulls, arms.active, desk.order
    size = 0
    fewest = -1
    for arm in range(pulls.size):
        if active[arm]:
            order[size] = arm
            size += 1
            if fewest < 0 or pulls[arm] < fewest:
                fewest = pulls[arm]
    ahead = 0
    while ahead < size and pulls[order[ahead]] > fewest:
        ahead += 1
    return size, fewest, ahead


@kernel
def gather(world: World, desk: Desk, size: int) -> None:
    """Put the true means and deviations of the active arms side by side."""
    means, deviations, order, truth, scales = world.means, world.scales, desk.order, desk.truth, desk.scales
    m = means.shape[1]
    for position in range(size):
        for i in range(m):
            truth[position * m + i] = means[order[position], i]
            scales[position * m + i] = deviations[i]


@kernel
def refill(world: World, rng: np.random.Generator, desk: Desk, least: int) -> None:
    """Draw until `least` or more numbers are ahead of the cursor, more each time."""
    noise, cursor, m = desk.noise, desk.cursor, world.means.shape[1]
    left = cursor[1] - cursor[0]
    for k in range(left):
        noise[k] = noise[cursor[0] + k]
    end = min(noise.size, max(least, cursor[2]) // m * m)
    fresh = noise[left:end]  # a slice, as an index that may be negative costs a sixth of the speed
    for k in range(fresh.size):
        fresh[k] = rng.standard_normal()
    if world.kind == CORRELATED:
        normals = np.empty(m)
        for start in range(left, end, m):
            normals[:] = noise[start : start + m]
            correlate(world.root, normals, noise[start : start + m])
    cursor[0] = 0
    cursor[1] = end
    cursor[2] = min(noise.size, 2 * end)


@kernel
def rounds_at_hand(world: World, rng: np.random.Generator, desk: Desk, least: int) -> int:
    """How many rounds have their noise drawn: `least` or more, after drawing if need be."""
    cursor, m = desk.cursor, world.means.shape[1]
    if cursor[1] - cursor[0] < least * m:
        refill(world, rng, desk, least * m)
    rounds: int = (cursor[1] - cursor[0]) // m
    return rounds


@kernel
def next_reward(world: World, desk: Desk, position: int, reward: Vector) -> int:
    """Fill in the reward of the pull at the cursor and move on; return its arm."""
    arm: int = desk.order[position]
    for i in range(reward.size):
        reward[i] = world.means[arm, i] + world.scales[i] * desk.noise[desk.cursor[0] + i]
    desk.cursor[0] += reward.size
    return arm


@kernel
def add_passes(arms: Arms, desk: Desk, size: int, fewest: int, passes: int) -> None:
    """Leave the sums after these passes in `desk.sums`, the extremes on the way in `highs` and `lows`.

    The innermost loop is elementwise over arms and objectives, so that it compiles to vector code.
    """
    truth, scales, running, highs, lows = desk.truth, desk.scales, desk.sums, desk.highs, desk.lows
    m = arms.sums.shape[1]
    for position in range(size):
        arm = desk.order[position]
        for i in range(m):
            running[position * m + i] = arms.sums[arm, i]
            highs[position * m + i] = arms.means[arm, i]
            lows[position * m + i] = arms.means[arm, i]
    flat, start = size * m, desk.cursor[0]
    rows = desk.noise[start : start + passes * flat].reshape((passes, flat))
    for first in range(0, flat, TILE):
        # unsigned, as an index that may be negative is not compiled to vector code
        begin, end = np.uint64(first), np.uint64(min(first + TILE, flat))
        for one in range(passes):
            share = 1.0 / (fewest + one + 1)
            for k in range(begin, end):
                total = running[k] + (truth[k] + scales[k] * rows[one, k])
                running[k] = total
                estimate = total * share
                highs[k] = max(highs[k], estimate)
                lows[k] = min(lows[k], estimate)


@kernel
def fold(desk: Desk, size: int, m: int) -> None:
    """Leave the extremes of all arms together in the first m places."""
    highs, lows = desk.highs, desk.lows
    while size > FEW:  # the last arms onto the first ones, elementwise again
        half = (size + 1) // 2
        upper, lower = highs[half * m :], lows[half * m :]
        for k in range((size - half) * m):
            highs[k] = max(highs[k], upper[k])
            lows[k] = min(lows[k], lower[k])
        size = half
    for i in range(m):
        high, low = highs[i], lows[i]
        for position in range(1, size):
            high = max(high, highs[position * m + i])
            low = min(low, lows[position * m + i])
        highs[i], lows[i] = high, low


@kernel
def within(desk: Desk, band: Vector) -> bool:
    """Whether the extremes of all arms together are within the band on every objective."""
    highs, lows = desk.highs, desk.lows
    quiet = True
    for i in range(band.size):
        quiet &= highs[i] - lows[i] + SLACK * (abs(highs[i]) + abs(lows[i])) <= band[i]
    return quiet


@kernel
def keep(arms: Arms, desk: Desk, first: int, end: int, count: int) -> None:
    """Commit `desk.sums` of the arms in places first .. end − 1, which now have `count` pulls each."""
    m = arms.sums.shape[1]
    for position in range(first, end):
        arm = desk.order[position]
        arms.pulls[arm] = count
        for i in range(m):
            arms.sums[arm, i] = desk.sums[position * m + i]
            arms.means[arm, i] = desk.sums[position * m + i] / count


@kernel
def extremes(arms: Arms, desk: Desk, size: int) -> None:
    """The largest and the smallest estimate on each objective."""
    means, order, top, bottom = arms.means, desk.order, desk.top, desk.bottom
    for i in range(top.size):
        top[i] = bottom[i] = means[order[0], i]
        for position in range(1, size):
            top[i] = max(top[i], means[order[position], i])
            bottom[i] = min(bottom[i], means[order[position], i])


@kernel
def part_of_a_pass(arms: Arms, desk: Desk, ahead: int, span: int, fewest: int, band: Vector) -> int:
    """Commit the next pulls of a pass, `span` at most, as long as the estimates before each are within
    the band, and widen top and bottom to the estimates after them; return how many.

    None, where top and bottom are tight, is exactly that somebody leaves.
    """
    truth, scales, noise, running = desk.truth, desk.scales, desk.noise, desk.sums
    top, bottom, m, start = desk.top, desk.bottom, band.size, desk.cursor[0]
    made = 0
    quiet = True
    while made < span and quiet:
        for i in range(m):
            quiet &= top[i] - bottom[i] <= band[i]
        if quiet:
            position = ahead + made
            for i in range(m):
                k = position * m + i
                reward = truth[k] + scales[k] * noise[start + made * m + i]
                running[k] = arms.sums[desk.order[position], i] + reward
                estimate = running[k] / (fewest + 1)
                top[i] = max(top[i], estimate)
                bottom[i] = min(bottom[i], estimate)
            made += 1
    keep(arms, desk, ahead, ahead + made, fewest + 1)
    return made


@written_in
def play_on(
    state: Any,
    world: World,
    rng: np.random.Generator,
    desk: Desk,
    limit: int,
    observe: Callable[[Any, int, Vector], None],
    finished: Callable[[Any], bool],
    quiet_band: Callable[[Any, int, Vector], None],
) -> int:
    """Play up to `limit` rounds of a run, stretch by stretch; return their number."""
    arms, m = state.arms, world.means.shape[1]
    band, reward = np.empty(m), np.empty(m)
    if arms.told[0] == 0:
        desk.cursor[0], desk.cursor[1], desk.cursor[2] = 0, 0, FIRST_FILL
    size, fewest, ahead = line_up(arms, desk)
    gather(world, desk, size)
    played, reach, enclosed = 0, size, False
    while played < limit and not finished(state):
        span = min(limit - played, rounds_at_hand(world, rng, desk, size))
        if ahead == 0 and fewest > 0 and min(reach, span) >= size:
            passes = min(reach, span) // size
            quiet_band(state, fewest + passes - 1, band)
            while passes > 1 and not within(desk, band):  # it would not be quiet if it were as wide again
                passes //= 2
                quiet_band(state, fewest + passes - 1, band)
            add_passes(arms, desk, size, fewest, passes)
            fold(desk, size, m)
            made, reach = 0, passes * size // 2
            if within(desk, band):
                keep(arms, desk, 0, size, fewest + passes)
                made, reach = passes * size, 2 * passes * size
        else:
            exactly = not enclosed
            if exactly:
                extremes(arms, desk, size)
            quiet_band(state, fewest, band)
            made = part_of_a_pass(arms, desk, ahead, min(span, size - ahead), fewest, band)
            if made == 0 and exactly:
                arm = next_reward(world, desk, ahead, reward)
                observe(state, arm, reward)
                played += 1
                before = size
                size, fewest, ahead = line_up(arms, desk)
                if size != before:
                    gather(world, desk, size)
            reach, enclosed = size, 0 < made < size - ahead
        arms.told[0] += made
        desk.cursor[0] += made * m
        played += made
        ahead += made
        fewest += ahead // size
        ahead %= size
    return played
