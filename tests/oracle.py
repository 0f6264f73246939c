"""The algorithms transcribed from their papers, as literally as Python allows.

Slow on purpose and independent on purpose: it shares no code with the package, and is the only
place where an algorithm is written twice. Arms and objectives count from 0. `draw(t, a)` gives the
reward vector of round t if arm a is played; every transcription returns the arms played, in order,
and the arms that are left.
"""

from math import inf, log, sqrt


# --- Algorithms 1 and 2: LexElim-Out and LexElim-In


def update(sums, mu, n, c, a, r, K, m, delta):
    """Eqs. (3) and (4)."""
    n[a] += 1
    for i in range(m):
        sums[a][i] += r[i]
        mu[a][i] = sums[a][i] / n[a]
    c[a] = sqrt(4 / n[a] * log(6 * K * m * n[a] / delta))


def lexelim_out(draw, K, m, delta, sizes, horizon, sigma=None):
    """Algorithm 1; also the (arm, round, objective, rival) of every elimination."""
    sigma = sigma or [1.0] * m
    sums = {a: [0.0] * m for a in range(K)}
    mu = {a: [0.0] * m for a in range(K)}
    n, c = dict.fromkeys(range(K), 0), dict.fromkeys(range(K), inf)
    A, played, out = set(range(K)), [], []
    for i in range(m):
        while len(A) > sizes[i]:
            if len(played) == horizon:
                return played, A, out
            a_t = max(sorted(A), key=lambda a: c[a])
            best = max(sorted(A), key=lambda a: mu[a][i])
            B = {a for a in A if mu[best][i] - mu[a][i] <= 2 * sigma[i] * c[a_t]}
            out += [(a, len(played) + 1, i, best) for a in sorted(A - B)]
            update(sums, mu, n, c, a_t, draw(len(played), a_t), K, m, delta)
            played.append(a_t)
            A = B
    return played, A, out


def lexelim_in(draw, K, m, delta, lam, horizon, sigma=None):
    """Algorithm 2; with one σ per objective the thresholds of its induction."""
    sums = {a: [0.0] * m for a in range(K)}
    mu = {a: [0.0] * m for a in range(K)}
    n, c = dict.fromkeys(range(K), 0), dict.fromkeys(range(K), inf)
    A, played, out = set(range(K)), [], []
    if sigma is None:
        factor = [2 + sum(4 * lam**j for j in range(1, i + 1)) for i in range(m)]
    else:
        factor = []
        for i in range(m):
            factor.append(2 * sigma[i] + lam * max([factor[j] + 2 * sigma[j] for j in range(i)], default=0))
    while len(A) > 1 and len(played) < horizon:
        a_t = max(sorted(A), key=lambda a: c[a])
        B, gone = A, []
        for i in range(m):
            best = max(sorted(B), key=lambda a: mu[a][i])
            C = {a for a in B if mu[best][i] - mu[a][i] <= factor[i] * c[a_t]}
            gone += [(a, len(played) + 1, i, best) for a in B - C]
            B = C
        out += sorted(gone)
        update(sums, mu, n, c, a_t, draw(len(played), a_t), K, m, delta)
        played.append(a_t)
        A = B
    return played, A, out
