"""LexElim-Tol as its page says it, by plain lists: every fact from the raw values of all passes so far.

`run(rules, filled)` folds the filled places {(arm, pass): values or None where not measured}, as far as
they go. Intervals of bounded values are handed in: they have tests of their own.
"""

from math import exp, expm1, inf, isnan, log, log1p, nan, sqrt

RHO = 30.0


class Rules:
    """Everything that is decided before the first pass."""

    def __init__(self, K, m, delta, tol, res, kinds, at_least=None, order=None, offered=None, stop=False,
                 answer=True, bounded=None):  # fmt: skip
        self.K, self.m, self.delta, self.kinds, self.stop, self.answer = K, m, delta, kinds, stop, answer
        self.tol, self.reach = list(tol), [t + r for t, r in zip(tol, res, strict=True)]
        self.target = list(at_least or [None] * m)
        self.floor = [None if t is None else t - r for t, r in zip(self.target, res, strict=True)]
        self.order = list(order or range(m))
        self.offered = sorted(range(K) if offered is None else offered)
        self.bounded = bounded
        pairs = max(1, K * (K - 1) // 2)
        self.level = [log(m * pairs / delta) + (0.0 if t is None else log(2.0)) for t in self.target]
        self.target_level = log(2 * K * m / delta)


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


def ends(rules, i, values, level, pair):
    """The interval of a mean (one-sided bounds: pair False) or of a mean difference."""
    kind = rules.kinds[i]
    n, mean, m2, *_ = moments(values)
    if kind[0] == "bounded":
        return rules.bounded(kind, values, level, pair)
    if not pair:
        level = level + log1p(exp(-level)) - log(2.0)
    sd = kind[1] if kind[0] == "sub_gaussian" else nan
    r = radius(kind, n, m2, sqrt(2.0) * sd if pair else sd, level)
    return mean - r, mean + r


class Run:
    """The fold of all passes whose members' places are filled."""

    def __init__(self, rules, filled):
        self.rules, self.filled = rules, filled
        self.results = self.passes = 0
        self.folded = []  # per pass the members
        self.lows = {}  # (i, a, b): every lower end of θ_a − θ_b seen
        self.bounds = {}  # (i, a): every (low, high) seen
        self.left = {}
        self.active = set(rules.offered)
        self.over = self.contradiction = False
        self.candidate = None
        self.position, self.gone, self.infeasible = 0, {}, {}
        self.next = 1 if any(kind[0] == "exact" for kind in rules.kinds) else 5
        self.judge()
        self.go_on()

    def go_on(self):
        while not self.over and all((a, self.passes) in self.filled for a in self.members()):
            self.fold()

    def amend(self, rules, from_pass, filled):
        """New rules from a pass on; places below it that are not folded are void."""
        before, self.left = self.left, {}
        self.rules, self.filled, self.active = rules, filled, set(rules.offered)
        self.over = self.contradiction = False
        self.passes = max(self.passes, from_pass)
        self.folded += [set()] * (self.passes - len(self.folded))
        while self.next <= self.passes:
            self.next += max(1, self.next // 100)
        self.judge()
        for a, (_, objective, _) in list(self.left.items()):
            if a in before and before[a][1] == objective and before[a][2] in [-1, *rules.offered]:
                self.left[a] = before[a]
        self.go_on()

    # --- data

    def value(self, a, k, i):
        values = self.filled[a, k]
        return None if values[i] is None or isnan(values[i]) else values[i]

    def single(self, i, a):
        ks = [k for k, members in enumerate(self.folded) if a in members]
        return [v for v in (self.value(a, k, i) for k in ks) if v is not None]

    def differences(self, i, a, b):
        both = [k for k, members in enumerate(self.folded) if a in members and b in members]
        pairs = [(self.value(a, k, i), self.value(b, k, i)) for k in both]
        return [v - w for v, w in pairs if v is not None and w is not None]

    def lead(self, i, a, b):
        """Mean of a − b, None without common results."""
        if self.rules.kinds[i][0] == "exact":
            va, vb = self.single(i, a), self.single(i, b)
            return va[0] - vb[0] if va and vb else None
        sign = 1 if a < b else -1
        D = self.differences(i, min(a, b), max(a, b))
        if self.rules.kinds[i][0] == "bounded":
            width = self.rules.kinds[i][2] - self.rules.kinds[i][1]
            z = moments([(d + width) / (2.0 * width) for d in D])[1]
            return sign * (2.0 * z - 1.0) * width if D else None
        return sign * moments(D)[1] if D else None

    # --- facts

    def low(self, i, a, b):
        return max(self.lows.get((i, a, b), []), default=-inf)

    def beats(self, i, a, b):
        return self.low(i, a, b) > self.rules.tol[i]

    def not_worse(self, i, a, b):
        return self.low(i, a, b) >= -self.rules.reach[i]

    def close(self, i, a, b):
        return self.not_worse(i, a, b) and self.not_worse(i, b, a)

    def misses(self, i, a):
        return min((high for _, high in self.bounds.get((i, a), [])), default=inf) < self.rules.target[i]

    def meets(self, i, a):
        best = max((low for low, _ in self.bounds.get((i, a), [])), default=-inf)
        return best >= self.rules.floor[i] and not self.misses(i, a)

    def must(self, i):
        return self.rules.target[i] is not None and i not in self.infeasible

    # --- looking

    def look(self, i, a, b):
        a, b = min(a, b), max(a, b)
        rules = self.rules
        if rules.kinds[i][0] == "exact":
            d = self.lead(i, a, b)
            if d is not None:
                self.note(i, a, b, d, d)
            return
        D = self.differences(i, a, b)
        if len(D) >= 2 and self.worth_it(i, a, b, D):
            self.note(i, a, b, *ends(rules, i, D, rules.level[i], pair=True))

    def note(self, i, a, b, low, high):
        self.lows.setdefault((i, a, b), []).append(low)
        self.lows.setdefault((i, b, a), []).append(-high)

    def worth_it(self, i, a, b, D):
        kind, tol, reach = self.rules.kinds[i], self.rules.tol[i], self.rules.reach[i]
        n, mean, m2, *_ = moments(D)
        x = 2.0 * self.rules.level[i] / n
        if kind[0] == "bounded":
            width = kind[2] - kind[1]
            n, z, m2, *_ = moments([(d + width) / (2.0 * width) for d in D])
            mean, least = (2.0 * z - 1.0) * width, 2.0 * width * sqrt(x * (m2 / n))
        elif kind[0] == "sub_gaussian":
            least = sqrt(2.0) * kind[1] * sqrt(x * (n + RHO) / n)
        else:
            g = x + 0.5 * x * x
            if n <= RHO * g:
                return False
            least = sqrt(m2 / n * g * (n + RHO) / (n - RHO * g))
        least *= 1.0 - 1e-12
        low, high = self.low(i, a, b), -self.low(i, b, a)
        return (
            low <= tol < mean - least
            or high >= -tol > mean + least
            or high > reach >= mean + least
            or low < -reach <= mean - least
        )

    def look_at_arm(self, i, a):
        values = self.single(i, a)
        if self.rules.kinds[i][0] == "exact":
            if values:
                self.bounds.setdefault((i, a), []).append((values[0], values[0]))
        elif len(values) >= 2:
            level = self.rules.target_level
            self.bounds.setdefault((i, a), []).append(ends(self.rules, i, values, level, pair=False))

    # --- the rule

    def survey(self):
        alive, gone, self.infeasible = set(self.rules.offered), {}, {}
        position = 0
        while position < self.rules.m:
            i = self.rules.order[position]
            if self.must(i):
                out = {a: -1 for a in alive if self.misses(i, a)}
                if set(out) == alive:
                    self.infeasible[i] = sorted(alive)
                    if self.rules.stop:
                        self.over = True
                        break
            if not self.must(i):
                beaten = {b: [a for a in alive if a != b and self.beats(i, a, b)] for b in alive}
                out = {b: min(by) for b, by in beaten.items() if by}
                if set(out) == alive:
                    self.over = self.contradiction = True
                    return
            gone.update({a: (position, rival) for a, rival in out.items()})
            alive = alive - set(out)
            if any(self.open(i, a, alive) for a in alive):
                break
            position += 1
        self.position, self.gone = position, gone
        self.over = self.over or position == self.rules.m
        for a in self.rules.offered:
            if a in alive:
                self.left.pop(a, None)
            elif a in self.active:
                self.left[a] = (self.results, self.rules.order[gone[a][0]], gone[a][1])
        self.active = alive

    def open(self, i, a, alive):
        if self.must(i):
            return not self.meets(i, a)
        return any(not self.close(i, a, b) for b in alive if b != a)

    def settle(self, looked):
        while True:
            self.survey()
            if self.over or self.position == looked:
                return
            looked = self.position
            i = self.rules.order[looked]
            for a in sorted(self.active):
                if self.must(i) and not self.meets(i, a):
                    self.look_at_arm(i, a)
                for b in sorted(self.active):
                    if not self.must(i) and a < b and not self.close(i, a, b):
                        self.look(i, a, b)

    def judge(self):
        proving = self.rules.answer and self.passes >= 10
        x = None
        for turn in range(2):
            self.settle(None if turn == 0 else self.position)
            if self.over or not proving:
                break
            if x not in self.active:
                x = self.plug_in()
            if turn == 0:
                self.look_for(x)
        if self.over:
            everything = self.position == self.rules.m and not self.contradiction
            self.candidate = self.best(self.active) if everything else self.plug_in()
            return
        self.candidate = x
        i = self.rules.order[self.position]
        self.by_rule = {a for a in self.active if self.open(i, a, self.active)}
        if proving:
            lacking = {y for y in self.rules.offered if not self.done(x, y)}
            self.by_proof = lacking | {x}
            self.over = not lacking

    def best(self, kept):
        last = self.rules.order[-1]

        def least(a):
            leads = [self.lead(last, a, b) for b in kept if b != a]
            return min((d for d in leads if d is not None), default=inf)

        return min(kept, key=lambda a: (-least(a), a))

    def plug_in(self):
        kept = set(self.active)
        for i in self.rules.order[self.position :]:
            if self.must(i):
                middle = 0.5 * (self.rules.target[i] + self.rules.floor[i])
                fails = {a for a in kept if self.single(i, a) and mean(self.single(i, a)) < middle}
            else:
                middle = 0.5 * (self.rules.tol[i] + self.rules.reach[i])
                leads = {b: [self.lead(i, a, b) for a in kept if a != b] for b in kept}
                fails = {b for b in kept if any(d is not None and d > middle for d in leads[b])}
            kept = kept - fails or kept
        return self.best(kept)

    def look_for(self, x):
        for y in self.rules.offered:
            if y in self.gone and self.gone[y][0] == 0:
                continue
            for i in self.rules.order:
                if self.must(i):
                    if not self.meets(i, y) and not self.misses(i, y):
                        self.look_at_arm(i, y)
                    if self.misses(i, y):
                        break
                elif y != x:
                    if not self.beats(i, x, y) and not self.close(i, x, y):
                        self.look(i, x, y)
                    if self.beats(i, x, y):
                        break

    def done(self, x, y):
        if y == x:
            return all(self.meets(i, x) for i in self.rules.order if self.must(i))
        if y in self.gone and self.gone[y][0] == 0:
            return True
        for i in self.rules.order:
            if self.must(i):
                if self.misses(i, y):
                    return True
            elif not self.not_worse(i, x, y):
                return False
            elif self.beats(i, x, y):
                return True
        return True

    # --- passes

    def members(self):
        proof = self.candidate is not None and self.passes % 5 != 0
        return sorted(self.by_proof if proof else self.by_rule)

    def fold(self):
        members = self.members()
        self.folded.append(set(members))
        self.results += len(members)
        self.passes += 1
        if self.passes == self.next:
            self.judge()
            self.next += max(1, self.next // 100)


def mean(values):
    total = 0.0
    for value in values:
        total += value
    return total / len(values)
