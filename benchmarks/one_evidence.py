"""Why facts keep four-moment intervals beside the bets of the declared rules: ends of one pair, both ways.

The bets' wealth falls in the boundary, so their values alone would give intervals, by bisection over all
results. Prints per number of results: CPU seconds of one end, and how far it lies from the mean difference.
"""

import math
import time

import numpy as np

from lexbandits._jit import entry, kernel
from lexbandits.evidence.betting import SHARES, STAKES, bet, caution_of, log_wealth, unit_stake
from lexbandits.evidence.bounded import bounded_lower
from lexbandits.evidence.kinds import spread_kinds
from lexbandits.evidence.moments import push
from speed import SHORT, explain_and_exit_if_asked

KIND = spread_kinds("bernoulli", 1)[0]
LEVEL, RESOLUTION, STEPS = 8.0, 0.03, 22  # a level of four arms and three objectives at δ = 0.05


@kernel
def bet_on_all(values, b, kind, resolution, wealth):
    """The log wealth of bets that the mean of the stored differences exceeds b."""
    wealth[0], wealth[1] = SHARES, 0.0
    n, mean, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for value in values:
        unit = unit_stake(kind, n, m2, resolution / (2.0 * (kind.high - kind.low)))
        bet(wealth, 0, 0, 0, b, unit, value, unit, 1.0 - value, n, caution_of(kind)[2])
        n, mean, m2, m3, m4 = push(n, mean, m2, m3, m4, value)
    return log_wealth(wealth, 0, 0, 0, 0, b)


@kernel
def lower_end(values, mean, kind, resolution, level, steps, wealth):
    """The largest b, about, that the bets refute."""
    low, high = 0.0, mean
    for _ in range(steps):
        b = 0.5 * (low + high)
        if bet_on_all(values, b, kind, resolution, wealth) >= level:
            low = b
        else:
            high = b
    return low


def timed(call):
    call()
    taken = []
    for _ in range(3):
        start = time.thread_time()
        found = call()
        taken.append(time.thread_time() - start)
    return found, min(taken)


def main():
    rng, wealth = np.random.default_rng(0), np.zeros((2, 1, 1, 2, 2, STAKES.size))
    print("| results of each arm | s, bets | s, moments | distance, bets | distance, moments |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for n in (1_000, 10_000) if SHORT else (1_000, 10_000, 100_000, 1_000_000):
        values = 0.5 * (1.0 * (rng.random(n) < 0.84) - (rng.random(n) < 0.86) + 1.0)
        mean, away = values.mean(), values - values.mean()
        moments = float(n), mean, *(math.fsum(away**power) for power in (2, 3, 4))
        by_bets, bets_take = timed(
            lambda: entry(lower_end, bulk=True)(values, mean, KIND, RESOLUTION, LEVEL, STEPS, wealth)  # noqa: B023
        )
        by_moments, moments_take = timed(
            lambda: [entry(bounded_lower, bulk=True)(*moments, LEVEL) for _ in range(1000)][-1]  # noqa: B023
        )
        far = [2.0 * (mean - end) for end in (by_bets, by_moments)]
        print(f"| {n:,} | {bets_take:.2g} | {moments_take / 1000:.2g} | {far[0]:.4f} | {far[1]:.4f} |")


if __name__ == "__main__":
    explain_and_exit_if_asked(__doc__)
    main()
