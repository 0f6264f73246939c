"""Exact simulation of elimination policies by blocks: nobody is asked where nothing can happen.

A round-robin policy offers `quiet_band`: how far the active means may spread before somebody leaves.
A block of pulls whose extremes stay within the band is added up and committed whole; one that does
not is tried again on its first half, down to the single pull that goes through `observe`. Noise is
kept in stream order, so the trajectory is that of the plain loop to the bit.
"""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from lexbandits.arrays import Counts, Vector
from lexbandits.jit import is_compiled, kernel
from lexbandits.policies.base import Arms, Rules
from lexbandits.world.noise import CORRELATED, World

BUFFER = 1 << 13  # normals: long blocks of few arms, and the cache holds them beside the arms
FIRST_FILL = 1 << 10  # a run that is over at once need not draw them all
SLACK = 1e-14  # relative; sweeps are screened with sum·(1/n), a few roundings away from sum/n


class Desk(NamedTuple):
    """Working arrays for one run after the other."""

    noise: Vector  # in stream order, m numbers a round
    cursor: Counts  # (3,) where the next round begins, where the drawn ones end, how many to hold
    order: Counts  # (K,) the active arms, ascending; what follows has their m values side by side
    truth: Vector  # (K·m,) true means
    scales: Vector  # (K·m,) standard deviations
    sums: Vector  # (K·m,) of the rewards, as the block goes on
    highs: Vector  # (K·m,) the largest estimate of each in the block
    lows: Vector  # (K·m,) the smallest
    top: Vector  # (m,) no estimate is above
    bottom: Vector  # (m,) or below


def desk_for(n_arms: int, n_objectives: int) -> Desk:
    """A clear desk for policies of this shape."""
    flat = n_arms * n_objectives
    rounds = max(BUFFER // n_objectives, 2 * n_arms)
    return Desk(
        noise=np.empty(rounds * n_objectives),
        cursor=np.array([0, 0, FIRST_FILL]),
        order=np.zeros(n_arms, np.int64),
        truth=np.zeros(flat),
        scales=np.zeros(flat),
        sums=np.zeros(flat),
        highs=np.zeros(flat),
        lows=np.zeros(flat),
        top=np.zeros(n_objectives),
        bottom=np.zeros(n_objectives),
    )


def clear(desk: Desk) -> None:
    """Forget the noise of the last run."""
    desk.cursor[:] = 0, 0, FIRST_FILL


@cache
def block_loop(rules: Rules) -> Callable[[Any, World, np.random.Generator, Desk, int], int]:
    """The loop over blocks for one algorithm: play up to `limit` rounds, return their number.

    The desk must be cleared before a run and kept during it. Not on disk, as `plain_loop`.
    """
    observe, finished, quiet_band = rules.observe, rules.finished, rules.quiet_band
    if quiet_band is None:
        raise ValueError("a policy without quiet_band cannot be simulated by blocks")

    def loop(state: Any, world: World, rng: np.random.Generator, desk: Desk, limit: int) -> int:
        arms, cursor = state.arms, desk.cursor
        m = world.means.shape[1]
        band = np.empty(m)
        reward = np.empty(m)
        size, fewest, ahead = line_up(arms, desk)
        gather(world, desk, size)
        played = 0
        reach = size  # pulls to try, as far as noise, limit and sweep allow
        suspect = 0  # pulls to the end of the last block that was not quiet
        known = False  # whether top and bottom enclose the present estimates …
        tight = False  # … and are reached by two of them
        while played < limit and not finished(state):
            if cursor[1] - cursor[0] < size * m:
                refill(world, rng, desk, size * m)
            span = max(1, min(reach, limit - played, (cursor[1] - cursor[0]) // m))
            if ahead == 0 and fewest > 0 and span >= size:
                sweeps = span // size
                span = sweeps * size
                quiet_band(state, fewest + sweeps - 1, band)
                quiet = try_sweeps(arms, desk, size, fewest, sweeps, band)
                if quiet:
                    fewest += sweeps
                    keep_sweeps(arms, desk, size, fewest)
                known = False
                certain = False
            else:
                span = min(span, size - ahead)
                if not known:
                    extremes(arms, desk, size)
                    tight = True
                known = True
                quiet_band(state, fewest, band)
                quiet = try_part(arms, desk, ahead, span, fewest, band)
                certain = tight
                if quiet:
                    keep_part(arms, desk, ahead, span, fewest)
                    tight = False
                    ahead += span
                    if ahead == size:
                        ahead = 0
                        fewest += 1
                        known = False
            if quiet:
                arms.told[0] += span
                played += span
                cursor[0] += span * m
                suspect = max(0, suspect - span)
                reach = max(1, suspect // 2) if suspect > 0 else min(2 * reach, desk.noise.size)
            elif span > 1:
                suspect = span
                reach = span // 2
            elif not certain and size > 1:
                known = False
            else:
                arm = desk.order[ahead]
                for i in range(m):
                    reward[i] = world.means[arm, i] + world.scales[i] * desk.noise[cursor[0] + i]
                observe(state, arm, reward)
                played += 1
                cursor[0] += m
                before = size
                size, fewest, ahead = line_up(arms, desk)
                if size != before:
                    gather(world, desk, size)
                known = False
                reach = size
                suspect = 0
        return played

    compilable = is_compiled(observe) and is_compiled(finished) and is_compiled(quiet_band)
    return partial(kernel, cache=False)(loop) if compilable else loop


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
        root = world.root
        normals = np.empty(m)
        for start in range(left, end, m):
            for i in range(m):
                normals[i] = noise[start + i]
            for i in range(m):
                total = 0.0
                for j in range(m):
                    total += root[i, j] * normals[j]
                noise[start + i] = total
    cursor[0] = 0
    cursor[1] = end
    cursor[2] = min(noise.size, 2 * end)


@kernel
def try_sweeps(arms: Arms, desk: Desk, size: int, fewest: int, sweeps: int, band: Vector) -> bool:
    """Whether the estimates stay within the band during whole sweeps; `desk.sums` ends as their sums.

    The innermost loop is elementwise over arms and objectives, so that it compiles to vector code.
    """
    truth, scales, running, highs, lows = desk.truth, desk.scales, desk.sums, desk.highs, desk.lows
    m = band.size
    flat = size * m
    for position in range(size):
        arm = desk.order[position]
        for i in range(m):
            running[position * m + i] = arms.sums[arm, i]
            highs[position * m + i] = arms.means[arm, i]
            lows[position * m + i] = arms.means[arm, i]
    start = desk.cursor[0]
    rows = desk.noise[start : start + sweeps * flat].reshape((sweeps, flat))
    for sweep in range(sweeps):
        share = 1.0 / (fewest + sweep + 1)
        for k in range(flat):
            total = running[k] + (truth[k] + scales[k] * rows[sweep, k])
            running[k] = total
            estimate = total * share
            highs[k] = max(highs[k], estimate)
            lows[k] = min(lows[k], estimate)
    while size > 1:  # fold the last arms onto the first ones, elementwise again
        half = (size + 1) // 2
        upper, lower = highs[half * m :], lows[half * m :]
        for k in range((size - half) * m):
            highs[k] = max(highs[k], upper[k])
            lows[k] = min(lows[k], lower[k])
        size = half
    quiet = True
    for i in range(m):
        quiet &= highs[i] - lows[i] + SLACK * (abs(highs[i]) + abs(lows[i])) <= band[i]
    return quiet


@kernel
def keep_sweeps(arms: Arms, desk: Desk, size: int, count: int) -> None:
    """Commit whole sweeps: every active arm now has `count` pulls."""
    m = arms.sums.shape[1]
    for position in range(size):
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
def try_part(arms: Arms, desk: Desk, ahead: int, span: int, fewest: int, band: Vector) -> bool:
    """Whether the estimates seen before each of the next `span` pulls of a sweep are within the band.

    For one pull this is exactly the question whether somebody leaves, where top and bottom are tight.
    Widens them to the estimates after the pulls if so.
    """
    truth, scales, noise, running = desk.truth, desk.scales, desk.noise, desk.sums
    highs, lows, top, bottom = desk.highs, desk.lows, desk.top, desk.bottom
    m, start = band.size, desk.cursor[0]
    for i in range(m):
        highs[i] = top[i]
        lows[i] = bottom[i]
    for pull in range(span):
        for i in range(m):
            if not highs[i] - lows[i] <= band[i]:
                return False
        position = ahead + pull
        for i in range(m):
            k = position * m + i
            reward = truth[k] + scales[k] * noise[start + pull * m + i]
            running[k] = arms.sums[desk.order[position], i] + reward
            estimate = running[k] / (fewest + 1)
            highs[i] = max(highs[i], estimate)
            lows[i] = min(lows[i], estimate)
    for i in range(m):
        top[i] = highs[i]
        bottom[i] = lows[i]
    return True


@kernel
def keep_part(arms: Arms, desk: Desk, ahead: int, span: int, fewest: int) -> None:
    """Commit part of a sweep."""
    m = arms.sums.shape[1]
    for position in range(ahead, ahead + span):
        arm = desk.order[position]
        arms.pulls[arm] = fewest + 1
        for i in range(m):
            arms.sums[arm, i] = desk.sums[position * m + i]
            arms.means[arm, i] = desk.sums[position * m + i] / (fewest + 1)
