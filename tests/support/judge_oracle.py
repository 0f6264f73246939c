"""What `judge` should claim, transcribed from docs/proofs.md, section 7, without any thought for speed."""

import itertools
import math

import numpy as np
from scipy.special import ndtri
from scipy.stats import beta, binom, multinomial

# --- Lemma E2


def score(n10, n01, n, b):
    """Tango's, with the restricted estimate by its quadratic equation."""
    n00 = n - n10 - n01
    half = n10 * (1 - b) + n01 * (1 - 3 * b) - 2 * n00 * b
    q = (half + math.sqrt(max(half**2 + 8 * n * n01 * b * (1 - b), 0))) / (4 * n)
    q = min(max(q, 0, -b), (1 - b) / 2)
    variance = n * (2 * q + b - b * b)
    return (n10 - n01 - n * b) / math.sqrt(variance) if variance > 1e-15 else 0.0


def pairs_excess(n10, n01, n, b, alpha, points=300):
    """How far the supremum is above what is allowed, relative to it: a claim if negative."""
    gamma = alpha / 50
    cells = [(i, k) for i in range(n + 1) for k in range(n + 1 - i)]
    seen = score(n10, n01, n, b)
    closed = {(i, k) for i, k in cells if score(i, k, n, b) >= seen - 1e-9}
    for i, k in sorted(closed, key=lambda cell: -cell[1]):  # what is larger is in it too
        closed |= {(j, q) for q in range(k + 1) for j in range(i, n + 1 - q)}
    low = 0.0 if n01 == 0 else beta.ppf(gamma / 2, n01, n - n01 + 1)
    high = 1.0 if n01 == n else beta.isf(gamma / 2, n01 + 1, n - n01)
    least, most = max(0.0, -b), (1 - b) / 2
    grid = np.linspace(min(max(low, least), most), min(max(high, least), most), points)
    counts = np.array([[i, k, n - i - k] for i, k in sorted(closed)])
    chance = max(multinomial.pmf(counts, n, [q + b, q, max(0.0, 1 - 2 * q - b)]).sum() for q in grid)
    return chance / (alpha - gamma) - 1


def binomials_excess(k, n, k_other, n_other, b, alpha, points=200):
    """The same of two arms that nothing pairs."""

    def rank(i, j):
        other = min(max((i + j - n * b) / (n + n_other), 0, -b), 1, 1 - b)
        own = other + b
        variance = own * (1 - own) / n + other * (1 - other) / n_other + (n + n_other) ** -2
        return (i / n - j / n_other - b) / math.sqrt(variance)

    gamma, seen = alpha / 50, rank(k, k_other) - 1e-9
    as_far = [(i, j) for i in range(n + 1) for j in range(n_other + 1) if rank(i, j) >= seen]
    closed = {(i, j) for j in range(n_other + 1)
              for i in range(min((x for x, y in as_far if y >= j), default=n + 1), n + 1)}  # fmt: skip
    low = 0.0 if k_other == 0 else beta.ppf(gamma / 2, k_other, n_other - k_other + 1)
    high = 1.0 if k_other == n_other else beta.isf(gamma / 2, k_other + 1, n_other - k_other)
    ends = [min(max(end, 0, -b), 1, 1 - b) for end in (low, high)]
    inside = np.zeros((n + 1, n_other + 1))
    inside[tuple(np.array(sorted(closed)).T)] = 1
    chances = [
        [binom.pmf(np.arange(size + 1), size, min(max(p, 0), 1)) for size, p in ((n, q + b), (n_other, q))]
        for q in np.linspace(*ends, points)
    ]
    return max(own @ inside @ other for own, other in chances) / (alpha - gamma) - 1


# --- Lemma E3


def betting(tables, orders, b, low, high, alpha, aim=1.6, careful=0.99, content=0.999, ruined=1e-6):
    """(tables,) the average over the orders of what a gambler has in the end, in units of 1/alpha."""
    n, total = tables.shape[1], 0.0
    for order in orders.T:
        wealth = np.full(len(tables), alpha / aim)
        squares = np.full(len(tables), 10 * ((high - low) / 8) ** 2)
        for t in range(n):
            gain = tables[:, order[t]] - b
            d = ndtri(np.minimum(wealth, content))
            hedge = np.exp(-(d**2) / 2) / math.sqrt(2 * math.pi) / wealth
            stake = np.minimum(hedge / np.sqrt(squares / (10 + t) * (n - t)), careful / (b - low))
            stake[(wealth >= content) | (wealth <= ruined)] = 0
            wealth = wealth * (1 + stake * gain)
            squares = squares + gain**2
        total = total + aim * wealth
    return total / orders.shape[1]


# --- Theorems J1, L and J2; p[fact][i][a][b] are p-values of claims


def is_proven(p, K, m, alpha, noisy, limits, x):
    """How x is certified: "met" (all limits), "closest" (some limit is flagged), or "" (it is not)."""

    def says(fact, i, a, b, level):
        return p[fact][i][a][b] <= (level if noisy[i] else 0.5)

    def beats(j, a, y, level):
        below = says("not_clearly_within", j, y, y, level) if limits[j] else True
        return below and says("better", j, a, y, level)

    for y, i in itertools.product(range(K), range(m)):
        if y == x:
            continue
        earlier = sum(noisy[:i])
        thirds = K - 2 if i > 0 and noisy[0] and not limits[0] else 0
        own, before, third = {
            (False, False): (1, 0, 0),
            (True, False): (1 / 2, 1 / 2, 0),
            (False, True): (1 / 2, 0, 1 / 2),
            (True, True): (1 / 2, 1 / 4, 1 / 4),
        }[earlier > 0, thirds > 0]
        if not noisy[i] and before + third > 0:  # it is exact, and leaves its part to the others
            before, third = before / (before + third), third / (before + third)
        rest = alpha / 4 if limits[i] and noisy[i] else alpha
        done = says("not_worse", i, x, y, own * rest)
        done |= bool(limits[i]) and says("meets_limit", i, x, x, 3 * alpha / 4)
        for j in range(i):
            done |= beats(j, x, y, before * rest / max(1, earlier))
        if i > 0 and not limits[0]:
            others = [z for z in range(K) if z not in (x, y)]
            done |= any(beats(0, z, y, third * rest / max(1, thirds)) for z in others)
        if not done:
            return ""
    asked = [i for i in range(m) if limits[i]]
    if all(says("meets_limit", i, x, x, 3 * alpha / 4) for i in asked):
        return "met"
    for i in asked:
        if says("meets_limit", i, x, x, alpha / 4 / len(asked)):
            continue
        for y in range(K):
            out = any(beats(j, x, y, alpha) for j in range(i)) if y != x else False
            if y != x and i > 0 and not limits[0]:
                out |= any(beats(0, z, y, alpha) for z in range(K) if z != y)
            if not out and not says("not_clearly_within", i, y, y, alpha):
                return ""
    return "closest"


def fails(means, tol, res, targets, x):
    """Where x is first not acceptable, and because of whom; None if it is.

    Of a limit `targets` has the inner line and `res` the slack.
    """
    reached = range(len(means))
    for i, target in enumerate(targets):
        values = [row[i] if target is None else min(row[i], target) for row in means]
        tie, margin = (tol[i], tol[i] + res[i]) if target is None else (0, res[i])
        best = max(reached, key=lambda a: values[a])
        if values[x] < values[best] - margin:
            return i, best
        line = values[best] - tie if target is None else values[x]
        reached = [a for a in reached if values[a] >= line or a == x]
    return None


def accepts(means, tol, res, targets, x):
    """Whether x is acceptable: simulation/promise.py has it in exact fractions."""
    return fails(means, tol, res, targets, x) is None


def is_better(means, tol, res, targets, w, c):
    for k, target in enumerate(targets):
        mine, other = (row[k] if target is None else min(row[k], target) for row in (means[w], means[c]))
        tie, margin = (tol[k], tol[k] + res[k]) if target is None else (0, res[k])
        if mine - other > tie:
            return True
        if mine - other < -margin:
            return False
    return False


# --- Theorem G: the gate. `floors` has limits as written, None elsewhere; ties and margins are of the others


def gate_truth(means, tie, margin, floors, w, c):
    """What w is beside c: "regression", "better" or "not worse"."""
    if any(low is not None and means[w][i] < low for i, low in enumerate(floors)):
        return "regression"
    for i, low in enumerate(floors):
        ahead = means[w][i] - means[c][i]
        if ahead < -margin[i] if low is None else False:
            return "regression"
        if ahead > tie[i] if low is None else means[c][i] < low:
            return "better"
    return "not worse"


def gate_outcome(p, m, delta, noisy, limits, w, c, rule):
    """What the gate says of w."""

    def says(fact, i, a, b, level):
        return p[fact][i][a][b] <= (level if noisy[i] else 0.5)

    def wins(j, level):
        return says("violates_limit", j, c, c, level) if limits[j] else says("better", j, w, c, level)

    limited = [i for i in range(m) if limits[i]]
    ordinary = [i for i in range(m) if not limits[i]]

    # a regression: limits first, each a slot; then objectives in their order
    t, n = sum(noisy[i] for i in limited), sum(noisy[i] for i in ordinary)
    slots = t + n
    if t and ordinary and not noisy[ordinary[-1]]:
        slots += 1
    slots = max(1, slots)
    if any(says("violates_limit", i, w, w, delta / slots) for i in limited):
        return "regression"
    for i in ordinary:
        excused = False
        for j in range(i + 1):
            level = delta * (1 - (t + sum(noisy[k] for k in ordinary if k < j)) / slots)
            if limits[j]:
                excused |= not says("meets_limit", j, c, c, level)
            else:
                excused |= not says("not_beaten", j, c, w, level)
        if not excused and says("clearly_better", i, c, w, delta / slots):
            return "regression"

    # it may ship
    if not all(says("meets_limit", i, w, w, delta) for i in limited):
        return "not_shown"
    if rule == "not_worse":
        for i in ordinary:
            earlier = sum(noisy[:i])
            own, before = (0.5, 0.5) if earlier and noisy[i] else (1, 1)
            done = says("not_worse", i, w, c, own * delta)
            done |= any(wins(j, before * delta / max(1, earlier)) for j in range(i))
            if not done:
                return "not_shown"
        return "ship"
    for k in range(m):
        before = sum(noisy[:k])
        level = delta * (1 - before / max(1, sum(noisy)))
        if not limits[k] and not says("not_worse", k, w, c, level):
            return "not_shown"
        if wins(k, delta / max(1, sum(noisy))):
            return "ship"
    return "not_shown"
