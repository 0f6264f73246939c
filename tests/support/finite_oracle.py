"""What a list of items proves, naively: exact sums, every prefix from the start, nothing kept."""

import math
from fractions import Fraction

GUARD = Fraction(1, 10**9)


def stakes(n_items):
    """(stake, weight, risk), the boldest first."""
    etas = [3.0]
    while etas[-1] >= 1 / math.sqrt(n_items):
        etas.append(3.0 / 1.7 ** len(etas))
    total = sum(eta**0.75 for eta in etas)
    return [(eta, eta**0.75 / total, 0.95 if k == 0 else 0.7) for k, eta in enumerate(etas)]


def wealths(values, n_items, x, since=0):
    """What the stakes on "the list's mean exceeds x" are worth after each value of a prefix, in [0, 1]."""
    found, known = [], Fraction(0)
    bets = [[eta, weight, risk] for eta, weight, risk in stakes(n_items)]
    for t, value in enumerate(values):
        left = n_items - t
        m = max(0.0, float((n_items * Fraction(x) - known) / left))
        for one in bets if t >= since else ():
            eta, _, risk = one
            stake = eta * n_items / left if m == 0 else min(eta * n_items / left, risk / m)
            one[1] *= 1 + stake * (float(value) - m)
        known += Fraction(value)
        found.append(sum(one[1] for one in bets))
    return found


def claim(values, backs, n_items, x, strict, enough, since=0):
    """(whether "the mean exceeds x" holds, whether that is exact, the largest log evidence, wealth now).

    `values` at the least they may be, `backs` = 1 − values at the most; not strict: "is at least x".
    """
    goal, slack = n_items * Fraction(x), GUARD * n_items
    least = sum(map(Fraction, values))
    most = n_items - sum(map(Fraction, backs))

    def says(total):
        return total > goal + slack if strict else total >= goal - slack

    found = wealths(values, n_items, x, since) or [1.0]
    evidence = math.log(max(found))
    return says(least) or (evidence >= enough and says(most)), says(least), evidence, found[-1]


def stored_pair(mine, its, low, high):
    """What is stored of mine − its and of its − mine at their least; None is missing."""
    width = Fraction(high) - Fraction(low)

    def ends(v):
        return (Fraction(low), Fraction(high)) if v is None else (Fraction(v), Fraction(v))

    leads = [(ends(a)[0] - ends(b)[1] + width) / (2 * width) for a, b in zip(mine, its, strict=True)]
    backs = [(ends(b)[0] - ends(a)[1] + width) / (2 * width) for a, b in zip(mine, its, strict=True)]
    return leads, backs


def pair(mine, its, n_items, low, high, tolerance, reach, enough, since=0):
    """{"beats", "not worse"} of mine over its on the prefix that both have, each as `claim` says it."""
    leads, backs = stored_pair(mine, its, low, high)
    width = Fraction(high) - Fraction(low)
    above, below = (width + Fraction(tolerance)) / (2 * width), (width - Fraction(reach)) / (2 * width)
    return {
        "beats": claim(leads, backs, n_items, above, True, enough, since),
        "not worse": claim(leads, backs, n_items, below, False, enough, since),
    }


def acceptable(means, tolerance, reach):
    """The arms that Theorem 9 allows; means by arm, then objective, exact."""
    good = []
    for x in range(len(means)):
        deserving, fine = set(range(len(means))), True
        for i in range(len(means[0])):
            best = max(means[a][i] for a in deserving)
            fine &= means[x][i] >= best - Fraction(reach[i]) - 3 * GUARD
            deserving = {a for a in deserving if means[a][i] >= best - Fraction(tolerance[i]) - 3 * GUARD}
            deserving.add(x)
        if fine:
            good.append(x)
    return good
