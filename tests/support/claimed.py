"""Claims without data: with p-values of their own, or about integer means."""

from typing import NamedTuple

import numpy as np

from lexbandits.judging.claims import Claims

ALPHA = 0.05


class Asked(NamedTuple):
    """An objective: of a limit the line and the slack, else the tie and from there to the margin."""

    is_limit: bool
    is_noisy: bool
    low: int
    width: int


class TrueMeans:
    """Claims about means, with the truth at hand; `made` says which are made, at their levels."""

    def __init__(self, asked, means, made=None):
        self.asked, self.means = asked, means
        self.is_limit, self.noisy = [o.is_limit for o in asked], [o.is_noisy for o in asked]
        self.n_arms, self.n_objectives = len(means), len(asked)
        self.told = (
            means,
            [0 if o.is_limit else o.low for o in asked],
            [o.width for o in asked],
            [o.low + o.width if o.is_limit else None for o in asked],
        )
        self.says = made or (lambda fact, i, a, b, alpha: self.is_true(fact, i, a, b))
        self.doubts = lambda *claim: ()

    def is_true(self, fact, i, a, b):
        _, _, low, width = self.asked[i]
        mean, tie, margin = self.means[a][i], *((0, width) if self.is_limit[i] else (low, low + width))
        if b is not None:
            ahead = mean - self.means[b][i]
            return {
                "better": ahead > tie,
                "not_worse": ahead >= -margin,
                "clearly_better": ahead > margin,
                "not_beaten": ahead >= -tie,
            }[fact]
        inner = low + width
        return {
            "meets_limit": mean >= low,
            "not_clearly_within": mean < inner,
            "violates_limit": mean < low,
        }[fact]

    def but(self, forbidden):
        """Everything is claimed but what is forbidden, or certain and false."""

        def made(fact, i, a, b, alpha):
            possible = self.is_true(fact, i, a, b) or self.noisy[i]
            return possible and ((fact, i, a, b), alpha) not in forbidden

        return TrueMeans(self.asked, self.means, made)

    def lead(self, fact, i, a, b):
        return float(a - (b or 0))

    def side(self, i, delta, alone=False):
        return delta

    def below(self, x):
        """The limits that x misses."""
        return [i for i, o in enumerate(self.asked) if o.is_limit and self.means[x][i] < o.low]

    def refusing(self, ways):
        """Of each way a false claim, at its level: without them none is made."""
        found = set()
        for way, level in ways:
            false = [claim for claim in way if not self.is_true(*claim)]
            assert false, "a way that is true"
            if all(self.noisy[claim[1]] for claim in false):
                found.add((false[0], level))
        return found


def cost(forbidden):
    return sum(level for _, level in forbidden) / ALPHA


def drawn_means(rng):
    """K ≤ 4 arms on up to three objectives; exact ones too."""
    asked = []
    for _ in range(rng.integers(1, 4)):
        is_limit, is_noisy = bool(rng.random() < 0.6), bool(rng.random() < 0.8)
        width = rng.choice((1, 2, 3) if is_noisy else (0, 0, 2) if is_limit else (0, 1))
        asked.append(Asked(is_limit, is_noisy, 4 if is_limit else int(rng.integers(0, 3)), int(width)))
    means = rng.integers(1, 9, (rng.integers(1, 5), len(asked))).tolist()
    return TrueMeans(asked, means)


FACTS = ("better", "not_worse", "meets_limit", "not_clearly_within", "violates_limit")


class Placed:
    """Claims by their p-values, (m, K, K) each; of single arms on the diagonal."""

    def __init__(self, p, noisy, is_limit):
        self.p, self.noisy, self.is_limit = p, noisy, is_limit
        self.n_objectives, self.n_arms = p["better"].shape[:2]

    def doubts(self, fact, i, a, b, alpha):
        return ()

    def says(self, fact, i, a, b, alpha):
        return bool(self.p[fact][i, a, a if b is None else b] <= (alpha if self.noisy[i] else 0.5))

    def lead(self, fact, i, a, b):
        return -float(np.log(self.p[fact][i, a, a if b is None else b] + 1e-9)) - 0.5

    side = Claims.side


def drawn_claims(rng):
    """Claims of K ≤ 5 arms on up to three objectives."""
    K, m = int(rng.integers(1, 6)), int(rng.integers(1, 4))
    p = {fact: 10.0 ** -rng.uniform(0, 4, (m, K, K)) for fact in FACTS}
    easy = rng.random((m, K, K)) < 0.75  # or hardly anything would be proven
    p["not_worse"] = np.where(easy, 1e-5, p["not_worse"])
    p["meets_limit"] = np.where(easy, 1e-5, p["meets_limit"])
    noisy = [bool(rng.random() < 0.8) for _ in range(m)]
    return Placed(p, noisy, [bool(rng.random() < 0.35) for _ in range(m)])
