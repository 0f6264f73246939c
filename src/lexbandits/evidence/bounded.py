"""Values in [0, 1]: betting, bounded below by four moments. docs/proofs.md, "Bounded values".

After Waudby-Smith and Ramdas (2024, *JRSS B* 86). A gambler holds a mixture of fixed stakes against the claim
that the mean is x. His wealth needs all values; the bound needs n, mean, M2, M3 and M4, and costs the same at
n = 10 and n = 10⁷.
"""

import math

import numpy as np

from lexbandits._arrays import Vector
from lexbandits._jit import kernel

RATIO, LEAST, MOST = 1.7, -40, 16  # stakes λ_k = 0.01·1.7^k; k from LEAST on are ever used
CENTRE = 0.3  # the stakes that have most weight
MOST_RISK = 0.9  # of the wealth, in one bet


def _mixture() -> tuple[Vector, Vector, Vector]:
    """λ_k, log w_k and log W_k = log Σ_{j≥k} w_j; w_k = c/(1 + log(λ_k/0.3)²) sums to 1 over all k ≤ 16."""
    step, lowest = math.log(RATIO), -2000

    def place(k: int) -> float:
        return math.log(0.01 / CENTRE) + k * step

    weights = [1.0 / (1.0 + place(k) * place(k)) for k in range(lowest, MOST + 1)]
    # what lies below `lowest`, as an integral that covers it
    total = math.fsum(weights) + (math.pi / 2.0 + math.atan(place(lowest))) / step
    used = range(LEAST, MOST + 1)
    stakes = [0.01 * RATIO**k for k in used]
    log_weights = [math.log(weights[k - lowest] / total) for k in used]
    log_tails = [math.log(math.fsum(weights[k - lowest :]) / total) for k in used]
    return np.array(stakes), np.array(log_weights), np.array(log_tails)


STAKES, LOG_WEIGHTS, LOG_TAILS = _mixture()
MOST_WEIGHT = float(LOG_WEIGHTS.max()) + math.log(2.0)  # of the stakes next to the best one, two at most


@kernel
def _remainder(y: float) -> float:
    """A(y) = (−log(1−y) − y − y²/2 − y³/3)/y⁴ or a little more, 0 ≤ y < 1.

    log(1+z) ≥ z − z²/2 + z³/3 − A(y)·z⁴ for z ≥ −y.
    """
    if y < 0.08:
        return 0.25 + y * (
            0.2 + y * (1.0 / 6.0 + y * (1.0 / 7.0 + y * (0.125 + y * (1.0 / 9.0 + y * 0.108))))
        )
    return (-math.log1p(-y) - y * (1.0 + y * (0.5 + y / 3.0))) / (y * y * y * y)


@kernel
def _least_stake(n: float) -> int:
    """The index of the largest stake ≤ min(0.01, 1/√n): smaller ones are left out, which is safe."""
    k = -LEAST
    while k > 0 and STAKES[k] * STAKES[k] * n > 1.0:
        k -= 1
    return k


@kernel(inline="never")
def _log_wealth(x: float, least: int, n: float, mean: float, m2: float, m3: float, m4: float) -> float:
    """LB(x) with the stakes from index `least` on; 0 < x ≤ 1."""
    # sums of powers about x from those about the mean: the data are not needed again
    d = mean - x
    s1 = n * d
    s2 = m2 + s1 * d
    s3 = m3 + 3.0 * d * m2 + s1 * d * d
    s4 = m4 + 4.0 * d * m3 + 6.0 * d * d * m2 + s1 * d * d * d
    most = MOST_RISK / x
    top, total = -math.inf, 0.0  # the sum of exponentials is exp(top)·total
    for k in range(least, STAKES.size):
        stake, log_weight = STAKES[k], LOG_WEIGHTS[k]
        last = stake >= most
        if last:  # all larger stakes are cut to the same one
            stake, log_weight = most, LOG_TAILS[k]
        square = stake * stake
        fourth = square * square * s4
        term = log_weight + stake * s1 - square * s2 / 2.0 + square * stake * s3 / 3.0
        if term - 0.25 * fourth > top - 30.0:  # A ≥ ¼; terms too small to matter are left out
            term -= fourth * _remainder(stake * x)
            if term > top:
                total = total * math.exp(top - term) + 1.0
                top = term
            else:
                total += math.exp(term - top)
        if last:
            break
    return top + math.log(total)


@kernel
def bounded_log_evidence(x: float, n: float, mean: float, m2: float, m3: float, m4: float) -> float:
    """LB(x), 0 < x ≤ 1: never above the log wealth of betting that the mean exceeds x.

    That wealth starts at 1, is a martingale when x is the mean and falls in x. For evidence that
    the mean is below x hand over 1 − x, 1 − mean and −m3.
    """
    return _log_wealth(x, _least_stake(n), n, mean, m2, m3, m4)


@kernel
def bounded_ceiling(x: float, n: float, mean: float, m2: float, m3: float, m4: float) -> float:
    """No less than LB(x) where that is enough to show anything; it takes no logarithm.

    A stake λ adds at most λ·s1 − λ²·s/2 with s = s2 − 2·s3²/(9·s4), hence s1²/(2s), times its weight.
    """
    d = mean - x
    s1 = n * d
    if s1 <= 0.0:
        return 0.0
    s2, s = m2 + s1 * d, m2 + s1 * d
    s3 = m3 + 3.0 * d * m2 + s1 * d * d
    if s3 > 0.0:
        s4 = m4 + 4.0 * d * m3 + 6.0 * d * d * m2 + s1 * d * d * d
        s -= s3 * s3 / s4 / 4.5
    alone = s1 < 0.5 * MOST_RISK / x * s2  # else stakes are cut to the largest, which has their weights
    return 0.5 * s1 * s1 / s + (MOST_WEIGHT if alone else 0.0)


@kernel(inline="never")
def bounded_lower(n: float, mean: float, m2: float, m3: float, m4: float, level: float) -> float:
    """A lower bound of the mean that fails with probability ≤ exp(−level), at all n at once.

    A point x with LB(x) ≥ level, hence valid; within about 0.1 % of the nearest to the mean. 0 where
    there is none above mean/1000.
    """
    if n < 1.0 or mean <= 0.0:
        return 0.0
    least = _least_stake(n)
    found = False
    near, far = 0.0, 0.999 * mean  # distances from the mean: too little evidence, (once found) enough
    want = level + 2.0
    goal = math.sqrt(1.001 * want)
    distance = min(far, math.sqrt(2.0 * m2 / n * want / n) + 0.5 * mean * want / n)
    old_distance, old_root = 0.0, 0.0
    for turn in range(60):
        evidence = _log_wealth(mean - distance, least, n, mean, m2, m3, m4)
        if evidence >= level:
            found, far = True, distance
            if evidence - level <= 0.002 * want:
                break
        elif distance >= far:
            return 0.0
        else:
            near = distance
        if found and far - near <= 0.001 * far:
            break
        # sqrt(LB + 2) is nearly linear in the distance
        root = math.sqrt(max(evidence + 2.0, 0.0))
        guess = -1.0
        # Secant steps; after a dozen of them bisection alone, which cannot stall.
        if root != old_root and turn < 12:
            guess = distance + (goal - root) * (distance - old_distance) / (root - old_root)
        old_distance, old_root = distance, root
        if near < guess < far:
            distance = guess
        elif found:
            distance = 0.5 * (near + far)
        else:
            distance = far
    return mean - far if found else 0.0


@kernel
def bounded_upper(n: float, mean: float, m2: float, m3: float, m4: float, level: float) -> float:
    """An upper bound of the mean that fails with probability ≤ exp(−level): the mirror of the lower one."""
    return 1.0 - bounded_lower(n, 1.0 - mean, m2, -m3, m4, level)


@kernel
def bounded_interval(
    n: float, mean: float, m2: float, m3: float, m4: float, level: float
) -> tuple[float, float]:
    """Both ends, which together miss with probability ≤ exp(−level), at all n at once."""
    each = level + math.log(2.0)
    return bounded_lower(n, mean, m2, m3, m4, each), bounded_upper(n, mean, m2, m3, m4, each)
