"""LexElim-Tol as its page says it, by plain lists: every fact from the raw values of all passes so far.

`run(rules, filled)` folds the filled places {(arm, pass): values or None where not measured}, as far as
they go. Intervals of bounded values are handed in: they have tests of their own. Claims under the declared
rules are products over raw values.
"""

from copy import deepcopy
from fractions import Fraction
from itertools import takewhile
from math import erfc, exp, expm1, inf, isnan, log, log1p, nan, sqrt, tanh

RHO = 30.0
GRID = [(0.5, 0.10), (1.0, 0.34), (2.0, 0.26), (4.0, 0.13), (8.0, 0.07), (inf, 0.10)]  # stakes, weights
STEADY_GRID = [(0.5, 0.15), (1.0, 0.42), (2.0, 0.18), (4.0, 0.07), (8.0, 0.05), (inf, 0.13)]
WITH_ENDS = ("bounded", "bernoulli", "steady")


class Rules:
    """Everything that is decided before the first pass."""

    def __init__(self, K, m, delta, tol, res, kinds, at_least=None, order=None, offered=None, stop=False,
                 answer=True, bounded=None, preregistered=False, baseline=None,
                 reference=None, repeats=1):  # fmt: skip
        self.repeats, self.first_led = repeats, 20
        if repeats > 1:  # of a mean of several values, what is missing is the worst it could have been
            kinds = [(*kind, "in part") if kind[0] in WITH_ENDS and not kind[3:] else kind for kind in kinds]
        self.K, self.m, self.delta, self.kinds, self.stop, self.answer = K, m, delta, kinds, stop, answer
        self.target = list(at_least or [None] * m)
        self.limited = any(t is not None for t in self.target)
        # on a limit everything that is better is better, up to the target
        self.tol = [t if line is None else 0.0 for t, line in zip(tol, self.target, strict=True)]
        self.reach = [t + r for t, r in zip(self.tol, res, strict=True)]
        self.floor = [None if t is None else t - r for t, r in zip(self.target, res, strict=True)]
        self.order = list(order or range(m))
        self.offered = sorted(range(K) if offered is None else offered)
        self.baseline = baseline
        self.reference = reference or [None] * m  # per objective None or ("best" or an arm, sign of values)
        self.always = {given[0] for given in self.reference if given and given[0] != "best"}
        self.bounded, self.every = bounded, 20
        self.preregistered = preregistered and answer
        pairs = max(1, K * (K - 1) // 2)
        anytime = 0.05 * delta if self.preregistered else delta
        self.level = [log(m * pairs / anytime) + (0.0 if t is None else log(2.0)) for t in self.target]
        self.target_level = log(2 * K * m / anytime)
        rivals, own = max(1, len(self.offered) - 1), 0.95
        if self.limited:  # everybody may be unacceptable
            rivals = len(self.offered)
        noisy = [i for i in self.order if kinds[i][0] != "exact"]
        share = {i: 2.0 ** -(position + 1) for position, i in enumerate(noisy)}  # 1/2, 1/4, …
        self.enough_not_worse = {i: log(rivals / (own * delta * 2 * share[i])) for i in noisy}
        self.enough_beats = {i: log(rivals / (own * delta * share[i])) for i in noisy}
        if baseline is not None and noisy and self.target[noisy[-1]] is None:  # all that is left
            self.enough_beats[noisy[-1]] = self.enough_not_worse[noisy[-1]]
        self.enough_meets = {i: log(rivals / (own * delta)) for i in noisy}


def first_guess(kind):
    """What is known of bounded values before the first: their number, their M2; the most a bet loses."""
    return (2, 0.02, 0.97) if is_steady(kind) else (4, 0.5, 0.9)


def is_steady(kind):
    return kind[0] == "steady"


def grid_of(kind):
    return STEADY_GRID if is_steady(kind) else GRID


def moments(values):
    n, mean, m2, m3, m4 = 0.0, 0.0, 0.0, 0.0, 0.0
    for v in values:
        n1, n = n, n + 1
        d = v - mean
        dn = d / n
        dn2 = dn * dn
        t = d * dn * n1
        m4 += t * dn2 * (n * n - 3 * n + 3) + 6 * dn2 * m2 - 4 * dn * m3
        m3 += t * dn * (n - 2) - 3 * dn * m2
        m2 += t
        mean += dn
    return n, mean, m2, m3, m4


def radius(kind, n, m2, scale, level):
    if n < 2:
        return inf
    cost = level + 0.5 * log1p(n / RHO)
    if kind[0] == "sub_gaussian":
        return scale * sqrt(2.0 * cost * ((n + RHO) / n / n))
    if kind[0] == "finite_variance" and n < 300:
        return inf
    if not m2 > 0 or 2.0 / n * cost > 100:
        return inf
    g = expm1(2.0 / n * cost)
    left = (n - RHO * g) / (n + RHO)
    return inf if left <= 0 else sqrt(m2 / n * g / left)


def noisier(kind):
    """How many times noisier than an arm a sub-Gaussian pair is."""
    return sqrt(2.0) if kind[2:] == ("independent",) else 2.0


def ends(rules, i, values, level, pair):
    """The interval of a mean (one-sided bounds: pair False) or of a mean difference."""
    kind = rules.kinds[i]
    n, mean, m2, *_ = moments(values)
    if kind[0] in WITH_ENDS:
        return rules.bounded(kind, values, level, pair)
    if not pair:
        level = level + log1p(exp(-level)) - log(2.0)
    sd = kind[1] if kind[0] == "sub_gaussian" else nan
    r = radius(kind, n, m2, noisier(kind) * sd if pair else sd, level)
    return mean - r, mean + r


def symmetric_scales(D, fine):
    """Per difference the standard deviation by which it is scaled, from those before it; None at first."""
    scales = []
    for t, res in enumerate(fine):
        variance = (moments(D[:t])[2] + 0.02 * res**2) / (t - 1) * (1 + 4 / t) if t >= 4 else None
        scales.append(None if variance is None else sqrt(variance))
    return scales


def symmetric_bets(D, fine, c, size):
    """Log wealth of stakes on the sign of what exceeds c."""
    wealth = [w for _, w in GRID]
    for d, s, res in zip(D, symmetric_scales(D, fine), fine, strict=True):
        gap = 0.0 if abs(d - c) <= 2.0**-48 * size else d - c
        for k, (g, _) in enumerate(GRID if s else ()):
            wealth[k] *= 1 + 0.99 * tanh(min(g * res / s**2, 1.5 / s) * gap)
    return log(sum(wealth))


def symmetric_evidence(D, fine, c):
    """The half-normal mixture of exp(h·G − h²V/2), G and V the sums of what exceeds c and of its squares."""
    scaled = [(d - c) / s for d, s in zip(D, symmetric_scales(D, fine), strict=True) if s]
    if not any(scaled):
        return 0.0
    G, V = sum(scaled), sum(x * x for x in scaled)
    z = G / sqrt(V + 10)
    return log(erfc(-z / sqrt(2))) + 0.5 * log(10 / (V + 10)) + z * z / 2


class Run:
    """The fold of all passes whose members' places are filled."""

    def __init__(self, rules, filled):
        self.rules, self.filled = rules, filled
        self.preregistered = rules.preregistered
        self.claims = {}  # ("not worse" or "beats", i, a, b): every log evidence seen
        self.results = self.passes = self.start = 0
        self.before, self.until = None, 0  # who folds the passes below `until`, begun under earlier rules
        self.folded = []  # per pass the members
        self.led = []  # and who was asked several times
        self.fine = []  # and the resolutions when it was folded
        self.lcb = {}  # (i, a, b): every lower end of θ_a − θ_b seen
        self.bounds = {}  # (i, a): every (low, high) seen
        self.left = {}
        self.active = set(rules.offered)
        self.over = self.contradiction = False
        self.candidate = self.lacked = None
        self.position, self.gone, self.infeasible = 0, {}, {}
        self.next = 1 if any(kind[0] == "exact" for kind in rules.kinds) else 5
        self.evaluate()
        self.go_on()

    def go_on(self):
        while (
            self.before is None
            and not self.over
            and all(place in self.filled for a in self.members() for place in self.places(a))
        ):
            self.fold()
        if self.before is not None:
            # passes from `until` on go by these rules
            end = self.until * self.rules.repeats
            self.before.filled = {place: v for place, v in self.filled.items() if place[1] < end}
            folded = self.before.now().passes
            self.before.go_on()
            if self.over:
                return  # an answer stays what it was when the rules changed
            if self.before.now().passes > folded:
                self.folded, self.results = list(self.before.folded), self.before.results
                self.fine, self.led = list(self.before.fine), list(self.before.led)
                self.note_all(self.before)
            if self.before.is_over(self.until):
                before, self.before = self.before, None
                before.note_all(self)
                before.judge_by(self.rules, self.start)
                self.__dict__.update({**before.__dict__, "filled": self.filled})
                self.go_on()

    def note_all(self, other):
        """What another run has seen of the same results."""
        for mine, its in ((self.lcb, other.lcb), (self.bounds, other.bounds)):
            for key, seen in its.items():
                mine[key] = [*mine.get(key, []), *seen]

    def now(self):
        """Who folds the current pass."""
        return self if self.before is None else self.before.now()

    def is_over(self, until):
        return self.before is None and (self.over or self.passes >= until)

    def amend(self, rules, from_pass, filled):
        """New rules choose the members of passes from `from_pass` on; those below it go on as they were."""
        if self.preregistered and from_pass == 0:
            self.__init__(rules, filled)  # nobody has looked
            return
        self.filled = filled
        idle = self.over or from_pass <= self.start  # no pass has begun under its rules
        begun, until = (self.before, self.until) if self.before and idle else (self, from_pass)
        begun, seen = deepcopy(begun), deepcopy(begun.now())
        seen.judge_by(rules, max(from_pass, self.start))
        seen.before, seen.until = (None if begun.is_over(until) else begun), until
        self.__dict__.update(seen.__dict__)
        self.filled = filled
        self.go_on()

    def judge_by(self, rules, start):
        """Other rules on what is folded here."""
        before, self.left = self.left, {}
        self.preregistered, self.claims = False, {}
        self.rules, self.active = rules, set(rules.offered)
        self.over = self.contradiction = False
        for seen in (self.lcb, self.bounds):  # exact values are compared with the new limits
            for key in [key for key in seen if rules.kinds[key[0]][0] == "exact"]:
                del seen[key]
        self.start = self.passes = max(self.passes, start)
        self.folded += [set()] * (self.passes - len(self.folded))
        self.fine += [None] * (self.passes - len(self.fine))
        self.led += [None] * (self.passes - len(self.led))
        while self.next <= self.passes:
            self.next += max(1, self.next // 100)
        self.evaluate()
        for a, (_, objective, _) in list(self.left.items()):
            if a in before and before[a][1] == objective and before[a][2] in [-1, *rules.offered]:
                self.left[a] = (before[a][0], *self.left[a][1:])

    # --- data

    def told(self, a, k, i):
        """What the places of an arm in a folded pass have, None where it is missing."""
        first, times = k * self.rules.repeats, self.rules.repeats if self.led[k] == a else 1
        values = [self.filled[a, first + j][i] for j in range(times)]
        return [None if v is None or isnan(v) else v for v in values]

    def value(self, a, k, i):
        """The mean of what is present; exact values are all the same."""
        there = [v for v in self.told(a, k, i) if v is not None]
        if not there:
            return None
        exact = self.rules.kinds[i][0] == "exact"
        return there[0] if exact else min(max(sum(there) / len(there), min(there)), max(there))

    def variances(self, i, a, b):
        """Per difference the variance proxy of sub-Gaussian noise."""
        kind, found = self.rules.kinds[i], []
        for k, members in enumerate(self.folded):
            if {a, b} <= members and None not in (self.value(a, k, i), self.value(b, k, i)):
                present = [sum(v is not None for v in self.told(x, k, i)) for x in (a, b)]
                each = sum(1 / n for n in present) if noisier(kind) < 2 else 4
                found.append(kind[1] ** 2 * each)
        return found

    def single(self, i, a):
        ks = [k for k, members in enumerate(self.folded) if a in members]
        return [v for v in (self.value(a, k, i) for k in ks) if v is not None]

    def differences(self, i, a, b):
        both = [k for k, members in enumerate(self.folded) if a in members and b in members]
        pairs = [(self.value(a, k, i), self.value(b, k, i)) for k in both]
        return [v - w for v, w in pairs if v is not None and w is not None]

    def resolutions(self, i, a, b):
        """Per difference the resolution in force when its pass was folded."""
        both = [k for k, members in enumerate(self.folded) if a in members and b in members]
        there = [k for k in both if None not in (self.value(a, k, i), self.value(b, k, i))]
        return [self.fine[k][i] for k in there]

    def likely(self, i, a, b):
        """Mean of a − b in what tolerances are given in, None without common results."""
        lead = self.lead(i, a, b)
        if self.rules.reference[i] is None or not lead:
            return lead
        of = self.rules.reference[i][0]
        values = self.single(i, of if of != "best" else a if lead > 0 else b)
        whole = abs(mean(values)) if values else 0.0
        return lead / whole if whole else lead * inf

    def lead(self, i, a, b):
        """Mean of a − b, None without common results."""
        if self.rules.kinds[i][0] == "exact":
            va, vb = self.single(i, a), self.single(i, b)
            return (
                as_written(va[0], vb[0], [0, self.rules.tol[i], self.rules.reach[i]]) if va and vb else None
            )
        sign = 1 if a < b else -1
        D = self.differences(i, min(a, b), max(a, b))
        if self.rules.kinds[i][0] == "sub_gaussian" and D:
            return sign * self.weighted(i, min(a, b), max(a, b))[0]
        if self.rules.kinds[i][0] in WITH_ENDS:
            width = self.rules.kinds[i][2] - self.rules.kinds[i][1]
            z = moments([(d + width) / (2.0 * width) for d in D])[1]
            return sign * (2.0 * z - 1.0) * width if D else None
        return sign * moments(D)[1] if D else None

    def completed(self, i, a, side, b=None):
        """Values of a, or differences a − b, with missing values as makes them least or largest."""
        low, high = self.rules.kinds[i][1:3]
        ours, theirs = (low, high) if side == 0 else (high, low)
        arms = {a, a if b is None else b}
        ks = [k for k, members in enumerate(self.folded) if arms <= members]
        if self.rules.kinds[i][3] == "in part":
            ks = [k for k in ks if None not in [self.value(arm, k, i) for arm in arms]]

        def filled(arm, k, missing):
            values = self.told(arm, k, i)
            return sum(missing if value is None else value for value in values) / len(values)

        return [filled(a, k, ours) - (0.0 if b is None else filled(b, k, theirs)) for k in ks]

    # --- facts

    def low(self, i, a, b):
        return max(self.lcb.get((i, a, b), []), default=-inf)

    def beats(self, i, a, b):
        return self.low(i, a, b) > self.rules.tol[i]

    def not_worse(self, i, a, b):
        return self.low(i, a, b) >= -self.rules.reach[i]

    def close(self, i, a, b):
        return self.not_worse(i, a, b) and self.not_worse(i, b, a)

    def highest(self, i, a):
        return min((high for _, high in self.bounds.get((i, a), [])), default=inf)

    def misses(self, i, a):
        return self.highest(i, a) < self.rules.target[i]

    def violates(self, i, a):
        return self.highest(i, a) < self.rules.floor[i]

    def meets(self, i, a):
        return max((low for low, _ in self.bounds.get((i, a), [])), default=-inf) >= self.rules.floor[i]

    def beats_by_facts(self, i, a, b):
        """On a limit only who is below the target is beaten; and by who is at the floor, if below that."""
        if not self.is_limit(i):
            return self.beats(i, a, b)
        return (self.beats(i, a, b) and self.misses(i, b)) or (self.meets(i, a) and self.violates(i, b))

    def is_stopped(self, a):
        """Whether an arm breaks a limit that comes before all other objectives."""
        before = list(takewhile(self.is_limit, self.rules.order))
        return any(self.violates(i, a) for i in before)

    # --- shares of a mean

    def share(self, claim, i, a, b):
        """Arm -> weight in the sequence whose mean is above 0 where the claim is true."""
        (of, sign), rules = self.rules.reference[i], self.rules
        if of == "best":
            of = a if claim == "beats" else b
        counted = dict.fromkeys((a, b, of), 0.0)
        counted[a] += 1.0
        counted[b] -= 1.0
        counted[of] += sign * (-rules.tol[i] if claim == "beats" else rules.reach[i])
        return of, counted

    def share_evidence(self, claim, i, a, b):
        """What beats is not worse: "beats" has the smaller of both evidences."""
        claims = ("not worse", "beats") if claim == "beats" else (claim,)
        return min(self.contrast_evidence(each, i, a, b) for each in claims)

    def contrast_evidence(self, claim, i, a, b):
        """Log evidence that (1−r)x_a − x_b, or x_a − (1−s)x_b, has a mean above 0, from the raw values."""
        rules, kind = self.rules, self.rules.kinds[i]
        of, weights = self.share(claim, i, a, b)
        if kind[0] == "exact":
            known = {x: self.single(i, x) for x in weights}
            if not all(known.values()):
                return -inf
            parts = [Fraction(w) * Fraction(known[x][0]) for x, w in weights.items()]
            total = sum(parts)
            total = 0 if abs(total) <= sum(map(abs, parts)) / 2**51 else total
            return inf if total > 0 or (total == 0 and claim == "not worse") else -inf
        low = high = 0.0
        if kind[0] in WITH_ENDS:
            low = sum(w * (kind[1] if w > 0 else kind[2]) for w in weights.values())
            high = sum(w * (kind[2] if w > 0 else kind[1]) for w in weights.values())
            if low >= 0:
                return inf
        C, Z, past, logs = [], [], [], [0.0] * len(GRID)  # past: what the reference gave
        for k, members in enumerate(self.folded):
            aim = (rules.reach[i] - rules.tol[i]) * abs(mean(past)) if past else 0.0
            past += [self.value(of, k, i)] if of in members and self.value(of, k, i) is not None else []
            if not set(weights) <= members:
                continue
            values = {x: self.value(x, k, i) for x in weights}
            if kind[3:]:
                worst = {x: kind[1] if weights[x] > 0 else kind[2] for x in weights}
                values = {x: worst[x] if v is None else v for x, v in values.items()}
            if None in values.values():
                continue
            c = sum(w * values[x] for x, w in weights.items())
            if kind[0] in WITH_ENDS:
                known, squares, risk = first_guess(kind)
                z, b0 = (c - low) / (high - low), -low / (high - low)
                v = (moments(Z)[2] + squares) / (len(Z) + known)
                Z.append(z)
            for g, (stake, _) in enumerate(GRID if aim else ()):
                if kind[0] == "sub_gaussian":
                    sizes = [abs(w) for w in weights.values()]
                    s = kind[1] * (sqrt(sum(w * w for w in sizes)) if kind[2:] else sum(sizes))
                    stake = min(stake, 16) * aim / s**2
                    logs[g] += stake * c - stake**2 * s**2 / 2
                elif kind[0] in WITH_ENDS:
                    logs[g] += log(1 + min(stake * aim / (high - low) / v, risk / b0) * (z - b0))
            C.append(c)
        if kind[0] in ("sub_gaussian", *WITH_ENDS):
            terms = [log(w) + part for (_, w), part in zip(grid_of(kind), logs, strict=True)]
            return max(terms) + log(sum(exp(t - max(terms)) for t in terms))
        return self.gaussian_evidence(kind, C, 0.0)

    def gaussian_evidence(self, kind, values, c):
        n, mean, m2, *_ = moments(values)
        if n < (300 if kind[0] == "finite_variance" else 2) or mean <= c or not m2 > 0:
            return 0.0
        u = n * (mean - c) ** 2 / m2
        e = 0.5 * n * (log1p(u) - log1p(u * 10 / (n + 10))) - 0.5 * log1p(n / 10)
        return e + log(2 - exp(-e)) if e > 0 else 0.0

    # --- pre-registered tests

    def evidence(self, claim, i, a, b):
        """Log evidence that θ_a − θ_b > −reach, or > tolerance, from the raw differences."""
        rules = self.rules
        if rules.reference[i] is not None:
            return self.share_evidence(claim, i, a, b)
        kind, tol, reach = rules.kinds[i], rules.tol[i], rules.reach[i]
        c = tol if claim == "beats" else -reach
        if kind[0] == "exact":
            d = self.lead(i, a, b)
            return inf if d is not None and (d > c or (claim == "not worse" and d == c)) else -inf
        # missing values count as the worst they could have been, where that was said
        D = self.completed(i, a, 0, b) if kind[3:] else self.differences(i, a, b)
        if kind[0] in WITH_ENDS:
            R = kind[2] - kind[1]
            b0 = (c + R) / (2 * R)
            if not 0 < b0 < 1:
                return inf if b0 <= 0 else -inf
            Z = [(d + R) / (2 * R) for d in D]
            wealth, (known, squares, risk) = [w for _, w in grid_of(kind)], first_guess(kind)
            for t, z in enumerate(Z):
                v = (moments(Z[:t])[2] + squares) / (t + known)
                for k, (g, _) in enumerate(GRID):
                    wealth[k] *= 1 + min(g * (reach - tol) / (2 * R) / v, risk / b0) * (z - b0)
            return log(sum(wealth))
        if kind[0] == "symmetric":
            return symmetric_bets(D, self.resolutions(i, a, b), c, 4.0)
        if kind[0] == "sub_gaussian":
            terms = [log(w) for _, w in GRID]
            for d, variance in zip(D, self.variances(i, a, b), strict=True):
                for k, (g, _) in enumerate(GRID):
                    lam = min(g, 16) * (reach - tol) / variance
                    terms[k] += lam * (d - c) - lam**2 * variance / 2
            return max(terms) + log(sum(exp(t - max(terms)) for t in terms))
        return self.gaussian_evidence(kind, D, c)

    def arm_evidence(self, claim, i, a):
        """Log evidence that an arm is at least at the floor ("meets"), or below the target ("misses")."""
        kind, s = self.rules.kinds[i], self.rules.reach[i] / 2
        line = self.rules.floor[i] if claim == "meets" else self.rules.target[i]
        sign = 1 if claim == "meets" else -1
        values = self.single(i, a)
        if kind[0] == "exact":
            lead = sign * (self.as_compared(i, values[0]) - line) if values else -1.0
            return inf if lead > 0 or (lead == 0 and claim == "meets") else -inf
        if kind[3:]:
            values = self.completed(i, a, 0 if claim == "meets" else 1)
        if kind[0] in WITH_ENDS:
            lo, hi = kind[1:3]
            Z = [(v - lo) / (hi - lo) for v in values]
            b0 = (line - lo) / (hi - lo)
            Z, b0 = (Z, b0) if claim == "meets" else ([1 - z for z in Z], 1 - b0)
            if not 0 < b0 < 1:
                return inf if b0 < 0 or (b0 == 0 and claim == "meets") else -inf
            wealth, (known, squares, risk) = [w for _, w in grid_of(kind)], first_guess(kind)
            for t, z in enumerate(Z):
                v = (moments(Z[:t])[2] + squares) / (t + known)
                for k, (g, _) in enumerate(GRID):
                    wealth[k] *= 1 + min(g * s / (hi - lo) / v, risk / b0) * (z - b0)
            return log(sum(wealth))
        values = [sign * v for v in values]
        n, mean, *_ = moments(values)
        if kind[0] == "sub_gaussian":
            sd = kind[1]
            stakes = [(min(g, 16) * s / sd**2, w) for g, w in GRID]
            terms = [log(w) + lam * n * (mean - sign * line) - lam**2 * sd**2 * n / 2 for lam, w in stakes]
            return max(terms) + log(sum(exp(t - max(terms)) for t in terms))
        return self.gaussian_evidence(kind, values, sign * line)

    def weigh_arm(self, claim, i, a):
        self.claims.setdefault((claim, i, a), []).append(self.arm_evidence(claim, i, a))

    def arm_shown(self, claim, i, a):
        return max(self.claims.get((claim, i, a), []), default=-inf)

    def shown_to_meet(self, i, a):
        return self.meets(i, a) or self.arm_shown("meets", i, a) >= self.rules.enough_meets.get(i, 0)

    def shown_to_miss(self, i, a):
        return self.misses(i, a) or self.arm_shown("misses", i, a) >= self.rules.enough_beats.get(i, 0)

    def weigh(self, claim, i, a, b):
        self.claims.setdefault((claim, i, a, b), []).append(self.evidence(claim, i, a, b))

    def shown(self, claim, i, a, b):
        return max(self.claims.get((claim, i, a, b), []), default=-inf)

    def is_beaten(self, i, a, b):
        better = self.beats(i, a, b) or self.shown("beats", i, a, b) >= self.rules.enough_beats.get(i, 0)
        return better and (not self.is_limit(i) or self.shown_to_miss(i, b))

    def is_held(self, i, a, b):
        enough = self.rules.enough_not_worse.get(i, 0)
        return self.not_worse(i, a, b) or self.shown("not worse", i, a, b) >= enough

    def out_at_once(self, y):
        first = self.rules.order[0]
        if self.is_limit(first):
            return False  # there only the answer beats
        return y in self.gone and self.gone[y][0] == 0

    def weigh_for(self, x):
        """Evidence for x going through the order until it beats the rival, or is not seen to be not worse."""
        for y in [y for y in self.rules.offered if y != x and not self.out_at_once(y)]:
            for i in self.rules.order:
                if self.is_short_of(i, x, y):
                    break
                if self.is_limit(i):
                    self.weigh_arm("misses", i, y)
                    if self.shown_to_miss(i, y):
                        self.weigh("beats", i, x, y)
                else:
                    self.weigh("not worse", i, x, y)
                    if not self.is_held(i, x, y):
                        break
                    self.weigh("beats", i, x, y)
                if self.is_beaten(i, x, y):
                    break

    def stuck(self, x):
        """The first rival of which the proof lacks something, and on what, if passes may show it."""
        if any(self.is_limit(i) and not self.shown_to_meet(i, x) for i in self.rules.order):
            return None
        for y in self.rules.offered:
            if y != x and not self.done(x, y):
                for i in self.rules.order:
                    if not self.is_limit(i) and not self.is_held(i, x, y):
                        sampled = self.rules.kinds[i][0] != "exact" and self.rules.reference[i] is None
                        return (y, i) if sampled else None
                return None
        return None

    def is_limit(self, i):
        return self.rules.target[i] is not None

    # --- looking

    def look(self, i, a, b):
        a, b = min(a, b), max(a, b)
        rules = self.rules
        if rules.reference[i] is not None:
            for x, y in ((a, b), (b, a)):
                seen = [claim for claim in ("not worse", "beats") if self.share_evidence(claim, i, x, y)
                        >= rules.level[i] + log(2.0)]  # fmt: skip
                if "not worse" in seen or self.not_worse(i, x, y):
                    self.lcb.setdefault((i, x, y), []).append(inf if "beats" in seen else -rules.reach[i])
            return
        if rules.kinds[i][0] == "exact":
            d = self.lead(i, a, b)
            if d is not None:
                self.note(i, a, b, d, d)
            return
        if rules.kinds[i][0] == "symmetric":
            for x, y in ((a, b), (b, a)):
                self.note_end(i, x, y, self.symmetric_end(i, x, y))
            return
        least = largest = self.differences(i, a, b)
        if rules.kinds[i][3:]:
            least, largest = (self.completed(i, a, side, b) for side in (0, 1))
        if len(least) >= 2:
            low, _ = ends(rules, i, least, rules.level[i], pair=True)
            _, high = ends(rules, i, largest, rules.level[i], pair=True)
            if rules.kinds[i][0] == "sub_gaussian":
                middle, r = self.weighted(i, a, b)
                low, high = middle - r, middle + r
            self.note_end(i, a, b, low)
            self.note_end(i, b, a, -high)

    def weighted(self, i, a, b):
        """Mean and radius of differences whose variance proxies differ."""
        kind, S, V = self.rules.kinds[i], 0.0, 0.0
        for d, variance in zip(self.differences(i, a, b), self.variances(i, a, b), strict=True):
            S, V = S + d / variance, V + 1 / variance
        prior = RHO / (noisier(kind) * kind[1]) ** 2
        return S / V, sqrt(2 * (self.rules.level[i] + 0.5 * log1p(V / prior)) * (V + prior)) / V

    def symmetric_end(self, i, a, b):
        """A point between what is asked next and the mean that has enough evidence, and no higher one has."""
        D, fine, level = self.differences(i, a, b), self.resolutions(i, a, b), self.rules.level[i] + log(2.0)
        tol, reach = self.rules.tol[i], self.rules.reach[i]
        low = -reach if self.low(i, a, b) < -reach else tol
        if symmetric_evidence(D, fine, low) < level:
            return -inf
        weights = [1 / s if s else 0.0 for s in symmetric_scales(D, fine)]
        high = sum(w * d for w, d in zip(weights, D, strict=True)) / sum(weights)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if symmetric_evidence(D, fine, middle) >= level else (low, middle)
        return low

    def note_end(self, i, a, b, low):
        """Ends that show nothing new are not kept: new rules are judged by what is folded then."""
        tol, reach, seen = self.rules.tol[i], self.rules.reach[i], self.low(i, a, b)
        if seen <= tol < low or seen < -reach <= low:
            self.lcb.setdefault((i, a, b), []).append(low)

    def note(self, i, a, b, low, high):
        self.lcb.setdefault((i, a, b), []).append(low)
        self.lcb.setdefault((i, b, a), []).append(-high)

    def look_at_arm(self, i, a):
        values = self.single(i, a)
        if self.rules.kinds[i][0] == "exact":
            if values:
                value = self.as_compared(i, values[0])
                self.bounds[i, a] = [(value, value)]
            return
        least = largest = values
        if self.rules.kinds[i][3:]:
            least, largest = (self.completed(i, a, side) for side in (0, 1))
        if len(least) >= 2:
            low, _ = ends(self.rules, i, least, self.rules.target_level, pair=False)
            _, high = ends(self.rules, i, largest, self.rules.target_level, pair=False)
            low = low if low >= self.rules.floor[i] else -inf  # what shows nothing is not kept
            seen, target, floor = self.highest(i, a), self.rules.target[i], self.rules.floor[i]
            high = high if (high < target <= seen) or (high < floor <= seen) else inf
            self.bounds.setdefault((i, a), []).append((low, high))

    def as_compared(self, i, value):
        """A value as it is compared with a target."""
        if self.rules.kinds[i][0] == "exact":
            for limit in (self.rules.target[i], self.rules.floor[i]):
                if same(value, 0.0, limit, self.rules.target[i], self.rules.target[i] - self.rules.floor[i]):
                    return limit
        return value

    # --- the rule

    def survey(self):
        alive, gone, self.infeasible = set(self.rules.offered), {}, {}
        position = 0
        while position < self.rules.m:
            i = self.rules.order[position]
            beaten = {b: [a for a in alive if a != b and self.beats_by_facts(i, a, b)] for b in alive}
            out = {b: min(by) for b, by in beaten.items() if by}
            if set(out) == alive:
                self.over = self.contradiction = True
                return
            gone.update({a: (position, rival) for a, rival in out.items()})
            alive = alive - set(out)
            if self.is_limit(i) and all(self.violates(i, a) for a in alive):
                self.infeasible[i] = sorted(alive | set(out))
                if self.rules.stop:
                    self.over = True
                    break
            if self.open_among(i, alive):
                break
            position += 1
        self.position, self.gone = position, gone
        self.over = self.over or position == self.rules.m
        for a in self.rules.offered:
            if a in alive:
                self.left.pop(a, None)
            else:  # the round is that of leaving, the reason that of today
                round = self.results if a in self.active else self.left[a][0]
                self.left[a] = (round, self.rules.order[gone[a][0]], gone[a][1])
        self.active = alive

    def open_among(self, i, alive):
        """Whom the rule asks: of those who may meet the limits; if all is settled among these, of all."""
        kept = {a for a in alive if not self.is_stopped(a)}
        return {a for a in kept if self.open(i, a, kept)} or {a for a in alive if self.open(i, a, alive)}

    def open(self, i, a, alive):
        if not self.is_limit(i):
            return any(not self.close(i, a, b) for b in alive if b != a)
        if not self.meets(i, a):
            others = all(self.misses(i, b) and self.not_worse(i, a, b) for b in alive - {a})
            return not (self.misses(i, a) and others)
        short = [b for b in alive if self.misses(i, b) and not self.meets(i, b)]
        return any(not (self.misses(i, a) and self.not_worse(i, b, a)) for b in short)

    def settle(self, looked):
        while True:
            self.survey()
            if self.over or self.position == looked:
                return
            looked = self.position
            i = self.rules.order[looked]
            if self.is_limit(i):
                self.look_at_limit(i)
                continue
            for a in sorted(self.active):
                for b in sorted(self.active):
                    if a < b and not self.close(i, a, b):
                        self.look(i, a, b)

    def look_at_limit(self, i):
        for a in [a for a in self.active if not self.meets(i, a)]:
            self.look_at_arm(i, a)
        if not any(self.is_short(i, a) for a in self.active):
            return
        for a in [a for a in self.active if self.meets(i, a) and not self.misses(i, a)]:
            self.look_at_arm(i, a)
        for a in self.active:
            for b in [b for b in self.active if a < b and (self.is_short(i, a) or self.is_short(i, b))]:
                if not self.beats(i, a, b) and not self.beats(i, b, a):
                    self.look(i, a, b)

    def is_short(self, i, a):
        return self.misses(i, a) and not self.meets(i, a)

    def evaluate(self):
        proving = self.rules.answer and self.passes >= 10
        x = None
        for i in takewhile(self.is_limit, self.rules.order):
            for a in [a for a in self.rules.offered if not self.meets(i, a) and not self.violates(i, a)]:
                self.look_at_arm(i, a)
        for turn in range(2):
            self.settle(None if turn == 0 else self.position)
            if self.over or not proving:
                break
            if x not in self.active:
                x = self.plug_in()
            if self.preregistered:
                for i in [i for i in self.rules.order if self.is_limit(i)]:
                    self.weigh_arm("meets", i, x)
                if not self.is_closest_somewhere(x):
                    self.weigh_for(x)
                    break
            if turn == 0:
                self.look_for(x)
        if self.over:
            everything = self.position == self.rules.m and not self.contradiction
            self.candidate = self.best(self.active) if everything else self.plug_in()
            self.look_at_all()
            return
        self.candidate, self.lacked = x, None
        i = self.rules.order[self.position]
        self.by_rule = self.open_among(i, self.active)
        if proving:
            lacking = {y for y in self.rules.offered if not self.done(x, y)}
            idle = {y for y in lacking - {x} if self.is_stopped(y) and not self.is_short_somewhere(x)}
            self.by_proof = lacking - idle | {x}
            self.over = not lacking
            if self.preregistered and not self.is_closest_somewhere(x):
                self.lacked = self.stuck(x)
            if self.over:
                self.look_at_all()
            for y in lacking - idle - {x}:
                if not self.handles(x, y):
                    self.by_proof |= self.third(x, y)

    def look_at_all(self):
        for i in [i for i in self.rules.order if self.is_limit(i)]:
            for a in [a for a in self.rules.offered if not self.meets(i, a)]:
                self.look_at_arm(i, a)

    def seems_to_meet(self, i, a):
        middle = 0.5 * (self.rules.target[i] + self.rules.floor[i])
        return self.as_compared(i, mean(self.single(i, a)) if self.single(i, a) else 0.0) >= middle

    def is_closest(self, i, x):
        return not self.shown_to_meet(i, x) and not self.seems_to_meet(i, x)

    def is_closest_somewhere(self, x):
        return any(self.is_limit(i) and self.is_closest(i, x) for i in self.rules.order)

    def is_short_somewhere(self, x):
        limits = [i for i in self.rules.order if self.is_limit(i)]
        return any(self.misses(i, x) and self.is_closest(i, x) for i in limits)

    def middle(self, i):
        return 0.5 * (self.rules.tol[i] + self.rules.reach[i])

    def handles(self, x, y):
        """Whether the means let x go through the order against y."""
        for i in self.rules.order:
            lead = self.likely(i, x, y) or 0.0
            if not (self.is_limit(i) and self.seems_to_meet(i, y)) and abs(lead) > self.middle(i):
                return lead > 0
        return y != self.rules.baseline

    def third(self, x, y):
        """Who keeps y out by the means, on the first objective where somebody does."""
        some = {z for z in self.active - {y} if self.is_short_somewhere(x) or not self.is_stopped(z)}
        for i in self.rules.order:
            if self.is_limit(i) and self.seems_to_meet(i, y):
                continue
            leads = {z: self.likely(i, z, y) for z in sorted(some)}
            over = {z: lead for z, lead in leads.items() if lead is not None and lead > self.middle(i)}
            if over:
                return {max(over, key=over.get)}
        return set()

    def best(self, kept):
        last = self.rules.order[-1]

        def least(a):
            leads = [self.lead(last, a, b) for b in kept if b != a]
            return min((d for d in leads if d is not None), default=inf)

        return min(kept, key=lambda a: (a != self.rules.baseline, -least(a), a))

    def plug_in(self):
        kept = set(self.active)
        for i in self.rules.order[self.position :]:
            fails = set(kept)
            if self.is_limit(i):
                fails = {a for a in kept if self.single(i, a) and not self.seems_to_meet(i, a)}
            if fails == kept:  # as on any other objective
                middle = 0.5 * (self.rules.tol[i] + self.rules.reach[i])
                leads = {b: [self.likely(i, a, b) for a in kept if a != b] for b in kept}
                fails = {b for b in kept if any(d is not None and d > middle for d in leads[b])}
            kept = kept - fails or kept
        return self.best(kept)

    def look_for(self, x):
        for y in self.rules.offered:
            if y in self.gone and self.gone[y][0] == 0 and not self.is_limit(self.rules.order[0]):
                continue
            for i in self.rules.order:
                if self.is_limit(i) and not (self.meets(i, y) and self.misses(i, y)):
                    self.look_at_arm(i, y)
                if y != x and (not self.is_limit(i) or self.misses(i, y)):
                    known = self.close(i, x, y) and not self.is_limit(i)
                    if not self.beats(i, x, y) and not known:
                        self.look(i, x, y)
                    if self.beats(i, x, y):
                        break

    def done(self, x, y):
        anytime = self.is_closest_somewhere(x)  # then claims do not count
        within, under = (self.meets, self.misses) if anytime else (self.shown_to_meet, self.shown_to_miss)
        held, beaten = (self.not_worse, self.beats_by_facts) if anytime else (self.is_held, self.is_beaten)
        if y != x and self.out_at_once(y):
            return True
        for i in self.rules.order:
            if not self.is_limit(i):
                done = y == x or held(i, x, y)
            elif within(i, x):
                done = True
            elif self.is_closest(i, x):
                done = under(i, y) and (y == x or self.not_worse(i, x, y))
            else:
                done = y != x
            if not done:
                return False
            if y != x and (beaten(i, x, y) or self.is_short_of(i, x, y)):
                return True
        return y == x or y != self.rules.baseline or y not in self.active

    def is_short_of(self, i, x, y):
        """Whether y is below a floor that x must be seen at."""
        return self.is_limit(i) and self.violates(i, y) and not self.is_closest(i, x)

    # --- the certificate

    def all_below(self, i):
        """Who reaches a limit, if everybody who does is seen to be below its floor."""
        if i in self.infeasible or not self.over or self.contradiction:
            return self.infeasible.get(i, [])
        at, still = self.rules.order.index(i), []
        for y in self.rules.offered:
            beaten = any(self.beats_by_facts(j, self.candidate, y) for j in self.rules.order[:at])
            if y == self.candidate or not beaten:
                still += [y] if y not in self.gone or self.gone[y][0] >= at else []
        left = [y for y in still if y in self.gone and self.gone[y][0] == at]
        return still if all(self.violates(i, y) or y in left for y in still) else []

    def flags(self, x):
        limits = [i for i in self.rules.order if self.is_limit(i)]
        if all(self.shown_to_meet(i, x) for i in limits):
            return {}
        words = {True: "infeasible", False: "not_clearly_feasible"}
        return {i: words[bool(self.all_below(i))] for i in limits if not self.meets(i, x)}

    def said(self, x, y, highs):
        """(objective, verdict, by whom) in order until y is done; highs[i]: x − y is at most that."""
        found = []
        for position, i in enumerate(self.rules.order):
            verdict, by = self.verdict(x, y, i, position, highs.get(i))
            found.append((i, verdict, by))
            if verdict in ("better", "beaten", "violates_limit", "not_clearly_within"):
                break
        return found

    def verdict(self, x, y, i, position, high):
        first = position == 0
        if self.is_limit(i):
            left = y in self.gone and self.gone[y][0] == position and self.position == self.rules.m
            beaten = self.is_beaten(i, x, y) or (self.shown_to_meet(i, x) and self.violates(i, y))
            if beaten or left:
                by = -1 if beaten else self.gone[y][1]
                return "violates_limit" if self.violates(i, y) else "not_clearly_within", by
            if self.shown_to_meet(i, y):
                return "meets_limit", -1
            if self.shown_to_meet(i, x) or not self.not_worse(i, x, y):
                return "open", -1
            return "tied" if high <= self.rules.reach[i] else "not_worse", -1
        if self.is_beaten(i, x, y):
            return "better", -1
        if y in self.gone and self.gone[y][0] == position and (first or self.position == self.rules.m):
            return "beaten", self.gone[y][1]
        if not self.is_held(i, x, y):
            return "open", -1
        both = self.not_worse(i, y, x) if self.rules.reference[i] else high <= self.rules.reach[i]
        return "tied" if both else "not_worse", -1

    # --- passes

    def members(self):
        proof = self.candidate is not None and self.passes % self.rules.every != 0
        return sorted((self.by_proof if proof else self.by_rule) | self.rules.always)

    def leader(self):
        """Who is asked several times."""
        led = self.rules.repeats > 1 and self.passes >= self.rules.first_led and not self.over
        return self.candidate if led and self.candidate in self.members() else None

    def places(self, arm):
        """Those of a member of the current pass."""
        first, times = self.passes * self.rules.repeats, self.rules.repeats if arm == self.leader() else 1
        return [(arm, first + j) for j in range(times)]

    def fold(self):
        members = self.members()
        self.led.append(self.leader())
        self.results += sum(len(self.places(arm)) - 1 for arm in members)
        self.folded.append(set(members))
        rules = self.rules
        self.fine.append([reach - tol for reach, tol in zip(rules.reach, rules.tol, strict=True)])
        self.results += len(members)
        self.passes += 1
        if self.passes == self.next:
            self.evaluate()
            self.next += max(1, self.next // 100)
        elif self.lacked is not None:
            y, i = self.lacked
            if self.evidence("not worse", i, self.candidate, y) >= self.rules.enough_not_worse[i]:
                self.judge()


def same(value, other, limit, *more):
    """Whether value − other is the limit, but for the last digits of the numbers it is made of."""
    parts = [value, other, *(more or [limit])]
    gap = Fraction(value - other) - Fraction(limit)
    return abs(gap) <= sum(abs(Fraction(part)) for part in parts) / 2**52


def as_written(value, other, limits):
    """value − other; ± the first of the limits that it is, but for last digits."""
    for limit in limits:
        if same(max(value, other), min(value, other), limit):
            return limit if value > other else -limit
    return value - other


def mean(values):
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
