"""The algorithms transcribed from their papers, as literally as Python allows.

Slow on purpose and independent on purpose: it shares no code with the package, and is the only
place where an algorithm is written twice. Arms and objectives count from 0. `draw(t, a)` gives the
reward vector of round t if arm a is played; every transcription returns the arms played, in order,
and the arms that are left.
"""

from math import ceil, erfc, exp, inf, log, log1p, pi, sqrt

import numpy as np

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


# --- the baselines


def exponential_gap(draw, K, m, delta, horizon, objective=0, sigma=0.5, target=1, scale=1.0):
    """Karnin, Koren and Somekh (2013) with Median Elimination; pulls of a stage go round its arms."""
    played, out, S, r = [], [], list(range(K)), 1

    def averages(arms, count):
        """Fresh pulls of each arm; None when the horizon comes first."""
        count = ceil(4 * sigma * sigma / scale * count)
        total = dict.fromkeys(arms, 0.0)
        for _ in range(count):
            for a in arms:
                if len(played) == horizon:
                    return None
                total[a] += draw(len(played), a)[objective]
                played.append(a)
        return {a: total[a] / count for a in arms}

    while len(S) > target:
        eps, delta_r = 2.0**-r / 4, delta / (50 * r**3)
        p = averages(S, 2 / (eps * eps) * log(2 / delta_r))
        if p is None:
            break
        M, e, d = list(S), eps / 2 / 4, delta_r / 2
        while len(M) > 1:
            q = averages(M, 4 / (e * e) * log(3 / d))
            if q is None:
                return played, set(S), out
            M = sorted(sorted(M, key=lambda a: (-q[a], a))[: ceil(len(M) / 2)])
            e, d = 3 * e / 4, d / 2
        out += [(a, len(played), objective, M[0]) for a in S if p[a] < p[M[0]] - eps]
        S = [a for a in S if not p[a] < p[M[0]] - eps]
        r += 1
    return played, set(S), out


def ucb_alpha(draw, K, m, delta, alpha, horizon, objective=0, sigma=1.0, k=1, rigorous=False):
    """Degenne, Nedelec, Calauzènes and Perchet (2019), stopping at the k best."""
    first = max(2, ceil(exp(sqrt(delta / 3))))  # rounded, exp may be 1
    delta = delta / K if rigorous else delta
    rewards, played = {a: [] for a in range(K)}, []
    while k < K:
        if len(played) == horizon:
            return played, set(range(K)), []
        short = [a for a in range(K) if len(rewards[a]) < first]
        if short:
            a_t = min(short, key=lambda a: len(rewards[a]))
        else:
            a_t = max(range(K), key=lambda a: mean[a] + alpha * eps[a])
        rewards[a_t].append(draw(len(played), a_t)[objective])
        played.append(a_t)
        if all(len(rewards[a]) >= first for a in range(K)):
            mean, eps = {}, {}
            for a in range(K):
                n = len(rewards[a])
                mean[a] = in_order(rewards[a]) / n
                eps[a] = sigma * sqrt(2 / n * log(3 * log(n) * log(n) / delta))
            ranked = sorted(range(K), key=lambda a: (-mean[a], a))
            top, rest = ranked[:k], ranked[k:]
            if min(mean[a] - eps[a] for a in top) > max(mean[a] + eps[a] for a in rest):
                return played, set(top), [(a, len(played), objective, top[0]) for a in sorted(rest)]
    return played, set(range(K)), []


def in_order(values):
    """The sum from the first to the last; `sum` compensates since Python 3.12."""
    total = 0.0
    for value in values:
        total += value
    return total


def pf_lex(draw, K, m, delta, epsilon, horizon, uniform, sigma=None, variant="official"):
    """Hüyük and Tekin (2021); `uniform(t)` in [0, 1) picks among the arms to explore in round t."""
    sigma = sigma or [1.0] * m
    sums, n, played = {a: [0.0] * m for a in range(K)}, dict.fromkeys(range(K), 0), []
    while len(played) < horizon:
        C, U, L = {}, {}, {}
        for a in range(K):
            root = inf
            if n[a] > 0:
                root = sqrt((1 + n[a]) / n[a] ** 2 * (1 + 2 * log(K * m * sqrt(1 + n[a]) / delta)))
            mu = [sums[a][i] / n[a] if n[a] > 0 else 0.0 for i in range(m)]
            C[a] = max(s * root for s in sigma)
            U[a] = [mu[i] + sigma[i] * root for i in range(m)]
            L[a] = [mu[i] - sigma[i] * root for i in range(m)]
        A = chained(U, L, 0, range(K))
        wide = [a for a in A if C[a] > epsilon / 2]
        if variant == "xue":
            wide = [a for a in range(K) if C[a] > epsilon]
        if wide:
            a_t = wide[int(uniform(len(played)) * len(wide))]
        else:
            for i in range(1, m - 1):
                A = chained(U, L, i, A)
            a_t = max(A, key=lambda a: U[a][m - 1])
        reward = draw(len(played), a_t)
        n[a_t] += 1
        for i in range(m):
            sums[a_t][i] += reward[i]
        played.append(a_t)
    return played


def chained(U, L, i, A):
    """The arms of A chained on objective i to the largest upper end in A: the transitive closure."""
    K = len(U)
    link = [[L[a][i] <= U[b][i] and L[b][i] <= U[a][i] for b in range(K)] for a in range(K)]
    for c in range(K):
        for a in range(K):
            for b in range(K):
                link[a][b] = link[a][b] or (link[a][c] and link[c][b])
    best = max(A, key=lambda a: U[a][i])
    return [a for a in A if link[a][best]]


def index_policy(draw, K, horizon, objective, index):
    """Each arm once, then the largest index(t, mean, n, arm), t pulls made so far."""
    sums, n, played = [0.0] * K, [0] * K, []
    for t in range(horizon):
        a_t = t if t < K else max(range(K), key=lambda a: index(t, sums[a] / n[a], n[a], a))
        sums[a_t] += draw(t, a_t)[objective]
        n[a_t] += 1
        played.append(a_t)
    return played


def ucb1(draw, K, horizon, objective=0, sigma=1.0):
    """Auer, Cesa-Bianchi and Fischer (2002)."""
    return index_policy(draw, K, horizon, objective, lambda t, mu, n, a: mu + sigma * sqrt(8 * log(t) / n))


def moss_anytime(draw, K, horizon, objective=0, sigma=1.0):
    """Degenne and Perchet (2016), α = 1.35."""

    def index(t, mu, n, a):
        return mu + 2 * sigma * sqrt(2.35 / 2 * max(log(t / (K * n)), 0.0) / n)

    return index_policy(draw, K, horizon, objective, index)


def thompson(draw, K, horizon, normal, objective=0, sigma=1.0):
    """A sample of N(mean, σ²/n) for each arm; `normal(t, a)` is standard."""

    def index(t, mu, n, a):
        return mu + sigma / sqrt(n) * normal(t, a)

    return index_policy(draw, K, horizon, objective, index)


def kl(p, q):
    """Of two Bernoulli laws, p moved into [0, 1]."""
    p = min(max(p, 0.0), 1.0)
    first = 0.0 if p == 0 else inf if q <= 0 else p * log(p / q)
    second = 0.0 if p == 1 else inf if q >= 1 else (1 - p) * log((1 - p) / (1 - q))
    return max(first + second, 0.0)


def kl_ucb(draw, K, horizon, objective=0, sigma=None, c=0.0):
    """Garivier and Cappé (2011); without σ for Bernoulli rewards, kl(mean, q) = level solved by halving."""

    def index(t, mu, n, a):
        level = log(t) + c * log(max(log(t), 1.0))
        if sigma is not None:
            return mu + sigma * sqrt(2 * level / n)
        low, high = min(max(mu, 0.0), 1.0), 1.0
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if kl(mu, middle) <= level / n else (low, middle)
        return low

    return index_policy(draw, K, horizon, objective, index)


def imed(draw, K, horizon, objective=0, sigma=None):
    """Honda and Takemura (2015)."""
    sums, n, played = [0.0] * K, [0] * K, []
    for t in range(horizon):
        a_t = t
        if t >= K:
            mu = [sums[a] / n[a] for a in range(K)]
            d = [kl(x, max(mu)) if sigma is None else (x - max(mu)) ** 2 / (2 * sigma**2) for x in mu]
            a_t = min(range(K), key=lambda a: n[a] * d[a] + log(n[a]))
        sums[a_t] += draw(t, a_t)[objective]
        n[a_t] += 1
        played.append(a_t)
    return played


def mtlo(draw, K, m, delta, lam, horizon, T, uniform, R=1.0, U=1.0, scale=1.0):
    """Xue, Lin, Zhang and Zhang (2025), Algorithms 2 and 3, arms as basis vectors, in matrices."""
    V, b, played = np.eye(K), np.zeros((K, m)), []

    def loaf(D, W):
        for i in range(m):
            top = max(theta[a][i] + w[a] for a in D)
            factor = 2 + sum(4 * lam**j for j in range(1, i + 1))
            D = [a for a in D if theta[a][i] + w[a] >= top - factor * W]
        return D

    for t in range(1, horizon + 1):
        theta = np.linalg.inv(V) @ b
        gamma = R * sqrt(K * log(2 * m * t / delta)) + U
        w = [scale * gamma * sqrt(np.linalg.inv(V)[a][a]) for a in range(K)]
        D, s = list(range(K)), 1
        while True:
            if all(w[a] <= 1 / sqrt(T) for a in D):
                D = loaf(D, 1 / sqrt(T))
                a_t = D[int(uniform(t - 1) * len(D))]
                break
            if any(w[a] > 2.0**-s for a in D):
                a_t = max(D, key=lambda a: w[a])
                break
            D, s = loaf(D, 2.0**-s), s + 1
        b[a_t] += draw(t - 1, a_t)
        V[a_t][a_t] += 1
        played.append(a_t)
    return played


def philox(key, counter):
    """Philox-4x32-10 (Salmon, Moraes, Dror and Shaw 2011): four words from two and four."""
    (k0, k1), (c0, c1, c2, c3) = key, counter
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c0, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c2, 2**32)
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    return c0, c1, c2, c3


# --- LexElim-Pool, LexElim-Phase and LexElim-Tol


def log_mixture(G, V, R):
    """The half-normal mixture, in logs."""
    if G == 0 and V == 0:
        return 0.0
    z = G / sqrt(V + R)
    if z >= -30:
        tail = z * z / 2 + log(erfc(-z / sqrt(2)) / 2)
    else:
        tail = -log(-z) - log(2 * pi) / 2 + log1p(-1 / z**2 + 3 / z**4 - 15 / z**6)
    return log(2) + log(R / (V + R)) / 2 + tail


def evaluated_passes():
    n = 5
    while True:
        yield n
        n += max(1, (n + 99) // 100)


def lexelim_pool(draw, K, m, delta, lam, horizon, sigma=None, correlated=False):
    """One pot per arm; each witness attacks where it is furthest ahead; also the wealths at the end."""
    sigma = sigma or [1.0] * m
    A, played, out, grid = set(range(K)), [], [], evaluated_passes()
    S = {a: [0.0] * m for a in range(K)}
    G, V = dict.fromkeys(range(K), 0.0), dict.fromkeys(range(K), 0.0)
    logE = dict.fromkeys(range(K), 0.0)
    D = {(b, a, i): [0.0] * i for b in range(K) for a in range(K) for i in range(2, m)}
    weights, n = {}, 0

    def s(i, j):
        high, low = sigma[i], lam * sigma[j]
        if correlated is True:
            return high + low
        if correlated is False:
            return sqrt(high * high + low * low)
        square = high * high + low * low + 2 * correlated[i][j] * high * low
        return max(high, low, sqrt(max(0.0, square)))

    def lead(y, a, b, i, j):
        if i == 0:
            return (y[a][0] - y[b][0]) / sigma[0]
        return ((y[a][i] - y[b][i]) + lam * (y[a][j] - y[b][j])) / s(i, j)

    def attack(a, b):
        q = [min(lead(S, a, b, i, j) / n for j in range(max(i, 1))) for i in range(m)]
        return max(q), q.index(max(q))

    while len(A) > 1:
        end = next(grid)
        x = {a: [0.0] * m for a in A}
        for _ in range(end - n):
            for a in sorted(A):
                if len(played) == horizon:
                    return played, A, out, logE
                r = draw(len(played), a)
                played.append(a)
                for i in range(m):
                    x[a][i] += r[i]
        J, n = end - n, end
        for a in A:
            for i in range(m):
                S[a][i] += x[a][i]
        if weights:
            for b in A:
                for a, (w, i) in sorted(weights[b].items()):
                    if i < 2:
                        G[b] += w * lead(x, a, b, i, 0)
                    else:
                        before = min(D[b, a, i])
                        D[b, a, i] = [D[b, a, i][j] + w * lead(x, a, b, i, j) for j in range(i)]
                        G[b] += min(D[b, a, i]) - before
                V[b] += J * (1 + sum(w * w for w, _ in weights[b].values()))
            wealth = {b: log_mixture(G[b], V[b], 45.0) for b in A}
            logE.update(wealth)
            drop = {b for b in A if wealth[b] >= log(1 / delta)}
            if drop == A:
                drop = drop - {min(sorted(A), key=lambda b: wealth[b])}
            for b in sorted(drop):
                rival = max(sorted(weights[b]), key=lambda a: weights[b][a][0])
                out.append((b, len(played), weights[b][rival][1], rival))
            A = A - drop
        weights = {}
        for b in A if len(A) > 1 else ():
            q = {a: attack(a, b) for a in A - {b}}
            order = sorted(q, key=lambda a: (-q[a][0], a))
            r, total = 1, q[order[0]][0]
            while total > 0 and r < len(order) and (r + 1) * q[order[r]][0] > total:
                total += q[order[r]][0]
                r += 1
            w = {a: (r + 1) * q[a][0] / total - 1 if total > 0 else 1.0 for a in order[:r]}
            weights[b] = {a: (w[a], q[a][1]) for a in order[:r]}
    return played, A, out, logE


def lexelim_phase(draw, K, m, delta, sizes, horizon, sigma=None):
    """Averaged evidence of all witnesses, phase by phase; also the wealths at the end, or on leaving."""
    sigma = sigma or [1.0] * m
    A, played, out, grid = set(range(K)), [], [], evaluated_passes()
    S = {a: [0.0] * m for a in range(K)}
    N = (K - 1) + sum(size - 1 for size in sizes[:-1])
    frozen = {b: [] for b in range(K)}
    logE = dict.fromkeys(range(K), 0.0)
    n, phase = 0, 0
    while phase < m and len(A) <= sizes[phase]:
        phase += 1

    def terms(b, a):
        return [log_mixture((S[a][i] - S[b][i]) / sigma[i], 2 * n, 60.0) for i in range(min(phase + 1, m))]

    def evidence(b):
        logs = frozen[b] + [t for a in A - {b} for t in terms(b, a)]
        top = max(logs)
        return top + log(sum(exp(t - top) for t in logs)) - log(N)

    while phase < m:
        end = next(grid)
        for _ in range(end - n):
            for a in sorted(A):
                if len(played) == horizon:
                    return played, A, out, logE
                r = draw(len(played), a)
                played.append(a)
                for i in range(m):
                    S[a][i] += r[i]
        n = end
        while phase < m:
            wealth = {b: evidence(b) for b in A}
            logE.update(wealth)
            drop = {b for b in A if wealth[b] >= log(sizes[0] / delta)}
            if drop == A:
                drop = drop - {min(sorted(A), key=lambda b: wealth[b])}
            if not drop:
                break
            for b in sorted(drop):
                pairs = [(i, a) for i in range(phase + 1) for a in sorted(A - {b})]
                i, a = max(pairs, key=lambda p: (S[p[1]][p[0]] - S[b][p[0]]) / sigma[p[0]])
                out.append((b, len(played), i, a))
            A = A - drop
            for b in A:
                for a in sorted(drop):
                    frozen[b] += terms(b, a)
            while phase < m and len(A) <= sizes[phase]:
                phase += 1
        logE.update({b: evidence(b) for b in A})
    return played, A, out, logE
