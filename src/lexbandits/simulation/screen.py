"""Exact simulation of elimination policies with a screen: nobody is asked where nothing can happen.

A round-robin policy offers `quiet_band`: how far the active means may spread before somebody leaves.
Passes over the arms whose extremes stay within the band are added up and committed whole; if they do
not, half of them are tried, down to a single pass, which is followed pull by pull to the one that goes
through `observe`. Noise is kept in stream order, so the trajectory is that of the plain loop to the bit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lexbandits._arrays import Counts, Vector
from lexbandits._jit import kernel
from lexbandits.environments.noise import CORRELATED, RewardModel, correlate
from lexbandits.policies.base import Arms

BUFFER = 1 << 13  # normals: long stretches of few arms, and the cache holds them beside the arms
PASSES = 8  # held at least, so that many arms are not gathered and put back for every pass
TILE = 512  # values that go through all passes of a stretch together, as the cache holds no more
FIRST_FILL = 1 << 10  # a run that is over at once need not draw them all
FEW = 16  # arms whose extremes are as quickly found one by one
SLACK = 1e-14  # relative; passes are screened with sum·(1/n), a few roundings away from sum/n


class Scratch(NamedTuple):
    """Scratch arrays, reused by one run after the other."""

    noise: Vector  # in stream order, m numbers a round
    cursor: Counts  # (3,) where the next round begins, where the drawn ones end, how many to hold
    order: Counts  # (K,) the active arms, ascending; what follows has their m values side by side
    truth: Vector  # (K·m,) true means
    scales: Vector  # (K·m,) standard deviations
    sums: Vector  # (K·m,) of the rewards, as the stretch goes on
    maxima: Vector  # (K·m,) the largest estimate of each in the stretch
    minima: Vector  # (K·m,) the smallest
    top: Vector  # (m,) in a pass under way no estimate is above
    bottom: Vector  # (m,) or below


def scratch_for(n_arms: int, n_objectives: int) -> Scratch:
    """Return scratch arrays for policies of this shape."""
    flat = n_arms * n_objectives
    rounds = max(BUFFER // n_objectives, PASSES * n_arms)
    noise, cursor, order = np.empty(rounds * n_objectives), np.zeros(3, np.int64), np.zeros(n_arms, np.int64)
    truth, scales, sums, maxima, minima = np.zeros((5, flat))
    top, bottom = np.zeros((2, n_objectives))
    return Scratch(noise, cursor, order, truth, scales, sums, maxima, minima, top, bottom)


@kernel
def line_up(arms: Arms, scratch: Scratch) -> tuple[int, int, int]:
    """List the active arms; return how many, the fewest pulls, and how many have one pull more."""
    pulls, active, order = arms.pulls, arms.active, scratch.order
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
def gather(model: RewardModel, scratch: Scratch, size: int) -> None:
    """Put the true means and deviations of the active arms side by side."""
    means, deviations, order = model.means, model.scales, scratch.order
    truth, scales = scratch.truth, scratch.scales
    m = means.shape[1]
    for position in range(size):
        for i in range(m):
            truth[position * m + i] = means[order[position], i]
            scales[position * m + i] = deviations[i]


@kernel
def refill(model: RewardModel, rng: np.random.Generator, scratch: Scratch, least: int) -> None:
    """Draw until `least` or more numbers are ahead of the cursor, more each time."""
    noise, cursor, m = scratch.noise, scratch.cursor, model.means.shape[1]
    # Numbers that were drawn and not used come first: a round gets those that the plain loop gives it.
    left = cursor[1] - cursor[0]
    for k in range(left):
        noise[k] = noise[cursor[0] + k]
    end = min(noise.size, max(least, cursor[2]) // m * m)
    fresh = noise[left:end]  # a slice, as an index that may be negative costs a sixth of the speed
    for k in range(fresh.size):
        fresh[k] = rng.standard_normal()
    if model.kind == CORRELATED:
        normals = np.empty(m)
        for start in range(left, end, m):
            normals[:] = noise[start : start + m]
            correlate(model.root, normals, noise[start : start + m])
    cursor[0] = 0
    cursor[1] = end
    # A run that ends early has drawn little; a long one soon fills the whole buffer at once.
    cursor[2] = min(noise.size, 2 * end)


@kernel
def rounds_at_hand(model: RewardModel, rng: np.random.Generator, scratch: Scratch, least: int) -> int:
    """How many rounds have their noise drawn: `least` or more, after drawing if need be."""
    cursor, m = scratch.cursor, model.means.shape[1]
    if cursor[1] - cursor[0] < least * m:
        refill(model, rng, scratch, least * m)
    rounds: int = (cursor[1] - cursor[0]) // m
    return rounds


@kernel
def next_reward(model: RewardModel, scratch: Scratch, position: int, reward: Vector) -> int:
    """Fill in the reward of the pull at the cursor and move on; return its arm."""
    arm: int = scratch.order[position]
    for i in range(reward.size):
        reward[i] = model.means[arm, i] + model.scales[i] * scratch.noise[scratch.cursor[0] + i]
    scratch.cursor[0] += reward.size
    return arm


@kernel
def add_passes(arms: Arms, scratch: Scratch, size: int, fewest: int, passes: int) -> None:
    """Leave the sums after these passes in `scratch.sums`, the extremes on the way in `maxima` and `minima`.

    The innermost loop is elementwise over arms and objectives, so that it compiles to vector code.
    """
    truth, scales, running = scratch.truth, scratch.scales, scratch.sums
    maxima, minima = scratch.maxima, scratch.minima
    m = arms.sums.shape[1]
    for position in range(size):
        arm = scratch.order[position]
        for i in range(m):
            running[position * m + i] = arms.sums[arm, i]
            maxima[position * m + i] = arms.means[arm, i]
            minima[position * m + i] = arms.means[arm, i]
    flat, start = size * m, scratch.cursor[0]
    rows = scratch.noise[start : start + passes * flat].reshape((passes, flat))
    for first in range(0, flat, TILE):
        # unsigned, as an index that may be negative is not compiled to vector code
        begin, end = np.uint64(first), np.uint64(min(first + TILE, flat))
        for one in range(passes):
            # one division a pass instead of one per value; SLACK covers the few roundings between the two
            share = 1.0 / (fewest + one + 1)
            for k in range(begin, end):
                total = running[k] + (truth[k] + scales[k] * rows[one, k])
                running[k] = total
                estimate = total * share
                maxima[k] = max(maxima[k], estimate)
                minima[k] = min(minima[k], estimate)


@kernel
def fold(scratch: Scratch, size: int, m: int) -> None:
    """Leave the extremes of all arms together in the first m places."""
    maxima, minima = scratch.maxima, scratch.minima
    while size > FEW:  # the last arms onto the first ones, elementwise again
        half = (size + 1) // 2
        upper, lower = maxima[half * m :], minima[half * m :]
        for k in range((size - half) * m):
            maxima[k] = max(maxima[k], upper[k])
            minima[k] = min(minima[k], lower[k])
        size = half
    for i in range(m):
        high, low = maxima[i], minima[i]
        for position in range(1, size):
            high = max(high, maxima[position * m + i])
            low = min(low, minima[position * m + i])
        maxima[i], minima[i] = high, low


@kernel
def within(scratch: Scratch, band: Vector) -> bool:
    """Whether the extremes of all arms together are within the band on every objective."""
    maxima, minima = scratch.maxima, scratch.minima
    quiet = True
    for i in range(band.size):
        quiet &= maxima[i] - minima[i] + SLACK * (abs(maxima[i]) + abs(minima[i])) <= band[i]
    return quiet


@kernel
def keep(arms: Arms, scratch: Scratch, first: int, end: int, count: int) -> None:
    """Commit `scratch.sums` of the arms in places first .. end − 1, which now have `count` pulls each."""
    m = arms.sums.shape[1]
    for position in range(first, end):
        arm = scratch.order[position]
        arms.pulls[arm] = count
        for i in range(m):
            arms.sums[arm, i] = scratch.sums[position * m + i]
            arms.means[arm, i] = scratch.sums[position * m + i] / count


@kernel
def extremes(arms: Arms, scratch: Scratch, size: int) -> None:
    """The largest and the smallest estimate on each objective."""
    means, order, top, bottom = arms.means, scratch.order, scratch.top, scratch.bottom
    for i in range(top.size):
        top[i] = bottom[i] = means[order[0], i]
        for position in range(1, size):
            top[i] = max(top[i], means[order[position], i])
            bottom[i] = min(bottom[i], means[order[position], i])


@kernel
def part_of_a_pass(arms: Arms, scratch: Scratch, ahead: int, span: int, fewest: int, band: Vector) -> int:
    """Commit the next pulls of a pass, `span` at most, as long as the estimates before each are within
    the band, and widen top and bottom to the estimates after them; return how many.

    None, where top and bottom are tight, is exactly that somebody leaves.
    """
    truth, scales, noise, running = scratch.truth, scratch.scales, scratch.noise, scratch.sums
    top, bottom, m, start = scratch.top, scratch.bottom, band.size, scratch.cursor[0]
    # The fewest pulls of an arm stay the same to the end of the pass, and so does the band. Sums are divided
    # as `observe` divides them, so no slack is needed.
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
                running[k] = arms.sums[scratch.order[position], i] + reward
                estimate = running[k] / (fewest + 1)
                top[i] = max(top[i], estimate)
                bottom[i] = min(bottom[i], estimate)
            made += 1
    keep(arms, scratch, ahead, ahead + made, fewest + 1)
    return made


@kernel(inline="always")
def play_on(
    state: Any,
    model: RewardModel,
    rng: np.random.Generator,
    scratch: Scratch,
    limit: int,
    observe: Callable[[Any, int, Vector], None],
    finished: Callable[[Any], bool],
    quiet_band: Callable[[Any, int, Vector], None],
) -> int:
    """Play up to `limit` rounds of a run, stretch by stretch; return their number."""
    arms, m = state.arms, model.means.shape[1]
    band, reward = np.empty(m), np.empty(m)
    if arms.told[0] == 0:
        scratch.cursor[0], scratch.cursor[1], scratch.cursor[2] = 0, 0, FIRST_FILL
    size, fewest, ahead = line_up(arms, scratch)
    gather(model, scratch, size)
    # `reach` is how many rounds are tried at once: doubled while nothing happens, halved where something may.
    played, reach, enclosed = 0, size, False
    while played < limit and not finished(state):
        span = min(limit - played, rounds_at_hand(model, rng, scratch, size))
        if ahead == 0 and fewest > 0 and min(reach, span) >= size:
            # The band never widens as pulls grow, so that of the last pass holds for all of them.
            passes = min(reach, span) // size
            quiet_band(state, fewest + passes - 1, band)
            while passes > 1 and not within(scratch, band):  # it would not be quiet if it were as wide again
                passes //= 2
                quiet_band(state, fewest + passes - 1, band)
            add_passes(arms, scratch, size, fewest, passes)
            fold(scratch, size, m)
            made, reach = 0, passes * size // 2
            if within(scratch, band):
                keep(arms, scratch, 0, size, fewest + passes)
                made, reach = passes * size, 2 * passes * size
        else:
            # After a part of a pass top and bottom also enclose means that have changed since. Where they are
            # too wide, they are made tight first; only then does a pull go through `observe`.
            exactly = not enclosed
            if exactly:
                extremes(arms, scratch, size)
            quiet_band(state, fewest, band)
            made = part_of_a_pass(arms, scratch, ahead, min(span, size - ahead), fewest, band)
            if made == 0 and exactly:
                arm = next_reward(model, scratch, ahead, reward)
                observe(state, arm, reward)
                played += 1
                before = size
                size, fewest, ahead = line_up(arms, scratch)
                if size != before:
                    gather(model, scratch, size)
            reach, enclosed = size, 0 < made < size - ahead
        arms.told[0] += made
        scratch.cursor[0] += made * m
        played += made
        ahead += made
        fewest += ahead // size
        ahead %= size
    return played
