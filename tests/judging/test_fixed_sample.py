"""Claims at one look: their size by enumeration, against the naive transcription, and on edges."""

import numpy as np
import pytest
from scipy.stats import binom, multinomial, t

from lexbandits.evidence import fixed_sample
from support import judge_oracle as naive

LIMITS = (-0.5, -0.2, -0.06, -0.02, 0.0, 0.03, 0.1, 0.4)
LEVELS = (0.05, 0.0125, 0.001)


def cells(n):
    return [(i, k) for i in range(n + 1) for k in range(n + 1 - i)]


def size_of_pairs(n, b, alpha):
    """The largest probability of a claim over laws with p10 − p01 <= b."""
    counts = np.array([[i, k, n - i - k] for i, k in cells(n) if fixed_sample.by_pairs(i, k, n, b, alpha)])
    if not counts.size:
        return 0.0
    p01 = np.linspace(max(0.0, -b), (1 - b) / 2, 60)
    inner = np.random.default_rng(0).uniform(size=(40, 2)) * [0.3, 1.0]
    laws = [(q + b, q) for q in p01] + [
        (q + b - d, q) for d, q in inner if q + b - d >= 0 and 2 * q + b - d <= 1
    ]
    return max(multinomial.pmf(counts, n, [p, q, max(0.0, 1 - p - q)]).sum() for p, q in laws)


@pytest.mark.parametrize(
    "n", [2, 6, pytest.param(12, marks=pytest.mark.slow), pytest.param(25, marks=pytest.mark.slow)]
)
def test_a_claim_about_pairs_is_false_with_probability_alpha_at_most(n):
    sizes = {(b, alpha): size_of_pairs(n, b, alpha) for b in LIMITS for alpha in LEVELS}
    assert all(size <= alpha for (_, alpha), size in sizes.items()), sizes
    if n >= 12:
        assert max(size / alpha for (_, alpha), size in sizes.items()) > 0.7  # and not for want of claims


@pytest.mark.parametrize(
    ("n", "b", "alpha"), [(7, 0.0, 0.05), (8, -0.2, 0.05), (8, 0.1, 0.0125), (6, -0.5, 0.05)]
)
def test_pairs_are_judged_as_transcribed(n, b, alpha):
    for n10, n01 in cells(n):
        excess = naive.pairs_excess(n10, n01, n, b, alpha) if n10 - n01 > n * b else 1.0
        if abs(excess) > 1e-3:  # the transcription's supremum is over a grid
            assert fixed_sample.by_pairs(n10, n01, n, b, alpha) == (excess < 0), (n10, n01, excess)


@pytest.mark.parametrize("b", LIMITS)
def test_the_score_rises_with_every_pair_won_and_falls_with_every_pair_lost(b):
    n = 40
    scores = np.full((n + 1, n + 1), np.nan)
    for i, k in cells(n):
        scores[i, k] = naive.score(i, k, n, b)
        found = fixed_sample._score(np.array([i]), np.array([k]), n, b)[0][0]
        assert found == pytest.approx(scores[i, k], abs=1e-9)
    i, k = np.indices(scores.shape)
    ahead = i - k > n * b
    assert (np.diff(scores, axis=0)[ahead[:-1] & (i + k < n)[:-1]] > 0).all()
    assert (np.diff(scores, axis=1)[ahead[:, :-1] & (i + k < n)[:, :-1]] < 0).all()


def test_a_corner_bounds_its_cell_and_a_block_its_counts():
    rng, n, b = np.random.default_rng(0), 60, -0.06
    region = fixed_sample._Region(float(naive.score(14, 8, n, b)) - 1e-9, n, b, 0.06, 0.4, 0.01)
    for _ in range(1000):
        left = rng.uniform(0.06, 0.4)
        right = rng.uniform(left, 0.4)
        q = np.array([rng.uniform(left, right)])
        inside = region.chance(q + b, q, 1, least=True)[0]
        corner = region.chance(
            np.array([min(right + b, 1 - left)]), np.array([left]), int(rng.integers(1, 9))
        )[0]
        assert corner >= inside - 1e-12
        assert region.chance(q + b, q, 5, least=True)[0] <= inside + 1e-12


def test_a_region_has_the_probability_of_its_cells():
    n, b, q = 30, 0.1, 0.2
    seen = naive.score(13, 4, n, b) - 1e-9
    counts = np.array([[i, k, n - i - k] for i, k in cells(n) if naive.score(i, k, n, b) >= seen])
    region = fixed_sample._Region(seen, n, b, 0.05, 0.4, 0.01)
    exact = multinomial.pmf(counts, n, [q + b, q, 1 - 2 * q - b]).sum()
    assert region.chance(np.array([q + b]), np.array([q]), 1)[0] == pytest.approx(exact, rel=1e-3)
    narrow = fixed_sample._Region(seen, n, b, 0.45, 0.45, 500.0)  # counts that are not looked at are added
    assert narrow.chance(np.array([q + b]), np.array([q]), 1)[0] >= exact
    assert narrow.chance(np.array([q + b]), np.array([q]), 1, least=True)[0] < exact - 1e-4


@pytest.mark.parametrize("alpha", [0.2, 0.05])
def test_nobody_is_ahead_who_won_no_more_pairs_than_he_lost(alpha):
    assert not any(fixed_sample.by_pairs(i, k, 30, 0.0, alpha) for i, k in cells(30) if i <= k)
    assert fixed_sample.by_pairs(30, 0, 30, 0.0, alpha)


def test_what_is_certain_needs_no_pairs():
    assert fixed_sample.by_pairs(0, 5, 9, -1.5, 1e-9)
    assert fixed_sample.by_pairs(0, 8, 9, -1.0, 1e-9)
    assert not fixed_sample.by_pairs(0, 9, 9, -1.0, 0.5)
    assert not fixed_sample.by_pairs(9, 0, 9, 1.0, 0.5)


# --- bounded values

LAWS = {
    "fair coins": (0.0, 1.0, lambda rng, shape: rng.integers(0, 2, shape).astype(float)),
    "rare losses": (0.0, 1.0, lambda rng, shape: (rng.random(shape) > 0.05).astype(float)),
    "rare wins": (0.0, 1.0, lambda rng, shape: (rng.random(shape) < 0.05).astype(float)),
    "skewed": (
        0.0,
        10.0,
        lambda rng, shape: np.where(rng.random(shape) < 0.02, 0.0, 10 * rng.beta(2, 8, shape)),
    ),
    "differences": (-1.0, 1.0, lambda rng, shape: rng.beta(2, 2, shape) - rng.beta(2, 2, shape)),
}
MEANS = {"fair coins": 0.5, "rare losses": 0.95, "rare wins": 0.05, "skewed": 0.98 * 2.0, "differences": 0.0}


@pytest.mark.parametrize("law", LAWS)
def test_no_gambler_gains_on_average_if_the_mean_is_what_he_bets_against(law):
    low, high, draw = LAWS[law]
    alpha, n, tables = 0.05, 40, 3000
    values = np.sort(draw(np.random.default_rng(1), (tables, n)), axis=1)
    gained = naive.betting(values, fixed_sample._orders(n), MEANS[law], low, high, alpha)
    assert gained.mean() <= alpha + 4 * gained.std() / np.sqrt(tables)
    assert (gained >= 1).mean() <= alpha


@pytest.mark.parametrize("law", LAWS)
def test_bets_are_placed_as_transcribed(law):
    low, high, draw = LAWS[law]
    n, claimed = 60, []
    for row, far in zip(draw(np.random.default_rng(2), (20, n)), np.linspace(0.5, 4.0, 20), strict=True):
        values = np.sort(row)
        b = max(values.mean() - far * 1.645 * (values.std() + 0.01) / np.sqrt(n), low + 1e-3)
        gained = naive.betting(values[None], fixed_sample._orders(n), b, low, high, 0.05)[0]
        claimed.append(fixed_sample.by_betting(values, b, low, high, 0.05))
        assert claimed[-1] == (gained >= 1 and values.mean() > b), (far, gained)
    assert 0 < sum(claimed) < 20


@pytest.mark.parametrize(("n", "b"), [(98, 0.8418), (117, 0.8474), (167, 0.8644)])
def test_what_gamblers_have_on_the_way_is_no_claim(n, b):
    """Their average over the orders comes to 1/alpha and falls again: only who has stopped keeps it."""
    values = np.sort(np.r_[np.full(n - 3, 0.9), 0.05, 0.075, 0.1])
    gained = naive.betting(values[None], fixed_sample._orders(n), b, 0.0, 1.0, 0.2)[0]
    assert 0.97 < gained < 1
    assert not fixed_sample.by_betting(values, b, 0.0, 1.0, 0.2)


def test_bets_on_the_edge_of_what_values_can_be():
    zeros, some = np.zeros(5), np.array([0.0, 0.0, 0.0, 0.0, 0.1])
    assert fixed_sample.by_betting(zeros, -0.1, 0.0, 1.0, 1e-9)
    assert not fixed_sample.by_betting(zeros, 0.0, 0.0, 1.0, 0.9)
    assert fixed_sample.by_betting(some, 0.0, 0.0, 1.0, 1e-9)
    assert not fixed_sample.by_betting(np.ones(5), 1.0, 0.0, 1.0, 0.9)
    assert fixed_sample.by_betting(np.ones(500), 0.9, 0.0, 1.0, 0.01)
    assert not fixed_sample.by_betting(np.ones(2), 0.9, 0.0, 1.0, 0.01)


def test_many_values_are_bet_on_in_blocks_with_hardly_a_loss():
    rng = np.random.default_rng(3)
    for _ in range(3):
        values = np.sort(rng.beta(2, 2, 3000) - rng.beta(2, 2, 3000))
        deviation = values.std() / np.sqrt(values.size) * 2.24
        assert fixed_sample.by_betting(values, values.mean() - 1.16 * deviation, -1.0, 1.0, 0.0125)
        assert not fixed_sample.by_betting(values, values.mean() - deviation, -1.0, 1.0, 0.0125)


# --- the others


def test_student_chernoff_and_the_binomial_tail():
    values = np.random.default_rng(4).normal(0.4, 1.0, 30)
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    edge = mean - t.isf(0.01, 29) * sd / np.sqrt(30)
    assert fixed_sample.by_student(30, mean, sd, edge - 1e-9, 0.01)
    assert not fixed_sample.by_student(30, mean, sd, edge + 1e-9, 0.01)
    assert not fixed_sample.by_student(30, 1.0, 0.0, 0.0, 0.5)
    edge = mean - 2.0 * np.sqrt(2 * np.log(100) / 30)
    assert fixed_sample.by_chernoff(30, mean, 2.0, edge - 1e-9, 0.01)
    assert not fixed_sample.by_chernoff(30, mean, 2.0, edge + 1e-9, 0.01)
    for k in range(31):
        assert fixed_sample.by_binomial(k, 30, 0.3, 0.01) == bool(binom.sf(k - 1, 30, 0.3) <= 0.01)
    assert fixed_sample.by_binomial(1, 30, 0.0, 1e-9)
    assert not fixed_sample.by_binomial(0, 30, 0.0, 0.5)
    assert fixed_sample.by_binomial(0, 30, -0.1, 1e-9)


def test_a_claim_is_safe_from_skewness_the_further_beyond_the_longer_a_tail():
    plain = t.isf(0.01, 29)
    assert fixed_sample.edge_of_student(30, 0.0, 0.01) == pytest.approx(
        plain * np.exp(2.1 / np.sqrt(30) * plain / np.sqrt(30))
    )
    assert fixed_sample.edge_of_student(30, 5.0, 0.01) == pytest.approx(plain), (
        "a tail away from the limit is safe"
    )
    edges = fixed_sample.edge_of_student(30, np.array([0.3, 0.0, -1.0, -2.0, -5.0, -1e6]), 0.01)
    assert np.isfinite(edges).all()
    assert (np.diff(edges) > 0).all()
    assert fixed_sample.edge_of_student(3000, 0.0, 0.01) < 1.01 * t.isf(0.01, 2999)


SKEWED = {
    "exponential": lambda rng, size: 1 - rng.standard_exponential(size),
    "lognormal": lambda rng, size: np.exp(0.5) - np.exp(rng.standard_normal(size)),
    "gamma": lambda rng, size: 0.3 - rng.gamma(0.3, size=size),
    **{f"two points, {p}": lambda rng, size, p=p: p - (rng.random(size) < p) for p in (0.1, 0.3, 0.5, 0.9)},
}


@pytest.mark.parametrize("n", [8, 10, 15, 20, 30, 50, 100])
def test_claims_that_are_safe_from_skewness_are_wrong_in_a_level_and_a_half_at_most(n):
    number = 400_000 // n
    for law, draw in SKEWED.items():
        values = draw(np.random.default_rng([n, len(law)]), (number, n))
        off = values - values.mean(axis=1, keepdims=True)
        spread = np.maximum((off**2).mean(axis=1), 1e-30)
        lead = np.where(spread > 1e-20, values.mean(axis=1) * np.sqrt((n - 1) / spread), -np.inf)
        for alpha in (0.05, 0.01):
            wrong = (
                lead >= fixed_sample.edge_of_student(n, (off**3).mean(axis=1) / spread**1.5, alpha)
            ).sum()
            assert wrong <= binom.isf(1e-4, number, 1.5 * alpha), (law, alpha, wrong / number / alpha)


# --- quantiles


def claimed_naively(a, b, p, limit, alpha):
    """Lemma E5 at every q that matters, one by one."""
    n, spare = len(b), alpha / 10
    k = np.arange(n + 1)
    chances = binom.pmf(k, n, p)
    low = max((j for j in range(n + 1) if chances[:j].sum() <= spare / 2), default=0)
    high = min((j for j in range(n + 2) if chances[j:].sum() <= spare / 2), default=n + 1)
    if low < 1 or high > n:
        return False
    ends = np.sort(b)[[low - 1, high - 1]]
    steps = np.unique(np.concatenate([b, a - limit]))
    places = [q for q in [*steps, *(steps[1:] + steps[:-1]) / 2] if ends[0] <= q <= ends[1]]
    for q in places:
        won, lost = int(((a - limit > q) & (b < q)).sum()), int(((a - limit <= q) & (b >= q)).sum())
        if binom.sf(won - 1, won + lost, 0.5) > alpha - spare:
            return False
    return True


def test_quantiles_are_compared_as_transcribed():
    rng, claims = np.random.default_rng(5), 0
    for _ in range(600):
        n, p = int(rng.integers(5, 60)), float(rng.choice([0.25, 0.5, 0.8]))
        b = rng.integers(0, rng.choice([4, 30]), n).astype(float)
        a = rng.permutation(b) + rng.integers(-2, 12, n)
        limit, alpha = float(rng.integers(-3, 3)), float(rng.choice([0.3, 0.05]))
        found = fixed_sample.by_quantiles(a, b, p, limit, alpha)
        assert found == claimed_naively(a, b, p, limit, alpha)
        claims += found
    assert 60 < claims < 540


def test_a_far_quantile_takes_many_values():
    least = fixed_sample.fewest_for_quantile(0.95, 0.05)
    for n, expected in ((least - 1, False), (least, True)):
        b = np.arange(n, dtype=float)
        assert fixed_sample.by_quantiles(b + 1e6, b, 0.95, 0.0, 0.05) == expected


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_quantiles_that_differ_by_the_limit_are_told_apart_in_at_most_alpha(p):
    """Discrete values and continuous ones, with the quantile of a exactly at that of b + the limit."""
    rng, alpha, tables, wrong = np.random.default_rng(6), 0.1, 800, np.zeros(2)
    for _ in range(tables):
        shared = rng.normal(size=300)
        a, b = (0.6 * shared + 0.8 * rng.normal(size=300) for _ in range(2))
        wrong += [
            fixed_sample.by_quantiles(a + 0.25, b, p, 0.25, alpha),
            fixed_sample.by_quantiles(np.round(2 * a), np.round(2 * b), p, 0.0, alpha),
        ]
    assert (wrong <= tables * (alpha + 4 * np.sqrt(alpha * (1 - alpha) / tables))).all()


@pytest.mark.parametrize("b", [-0.3, -0.1, 0.0, 0.05, 0.2])
@pytest.mark.parametrize("off", [0.0, 0.6])
def test_a_region_that_is_rounded_keeps_all_of_its_counts(monkeypatch, b, off):
    """A score that is off, here by far more than by rounding, makes the region larger, never smaller."""
    exact, n = fixed_sample._score, 24

    def rounded(n10, n01, n, b):
        score, likely = exact(n10, n01, n, b)
        return score + off * np.sin(7.0 * n01), likely

    monkeypatch.setattr(fixed_sample, "_score", rounded)
    for sought in (0.4, 1.3, 2.6):
        region = fixed_sample._Region(sought, n, b, 0.0, 1.0, 0.05)
        needed = dict(zip(region.k.tolist(), region.needed.tolist(), strict=True))
        assert sorted(needed) == [*range(n + 1)]
        assert (np.diff(region.needed) >= 0).all(), "an up-set"
        counts = [(i, k) for k in range(n + 1) for i in range(n - k + 1)]
        inside = {(i, k) for i, k in counts if i - k > n * b
                  and rounded(np.array([i]), np.array([k]), n, b)[0][0] >= sought}  # fmt: skip
        assert all(i >= needed[k] for i, k in inside)
        if not off:
            assert {(i, k) for i, k in counts if i >= needed[k]} == inside


@pytest.mark.parametrize("sizes", [(3, 3), (5, 9), (9, 5), (12, 12), (7, 30), (24, 18)])
@pytest.mark.parametrize("b", [-0.3, -0.1, 0.0, 0.05, 0.2])
def test_a_claim_about_two_arms_is_false_with_probability_alpha_at_most(sizes, b):
    n, other = sizes
    for alpha in (0.2, 0.05, 0.01):
        counts = np.ndindex(n + 1, other + 1)
        claims = np.array([fixed_sample.by_binomials(i, n, j, other, b, alpha) for i, j in counts])
        claims = claims.reshape(n + 1, other + 1)
        for q in np.linspace(max(0.0, -b), min(1.0, 1 - b), 41):
            for less in (0.0, 0.1):
                law = binom.pmf(np.arange(n + 1), n, min(max(q + b - less, 0.0), 1.0))
                assert law @ claims @ binom.pmf(np.arange(other + 1), other, q) <= alpha


@pytest.mark.parametrize(
    ("sizes", "b", "alpha"),
    [
        ((6, 6), 0.0, 0.1),
        ((9, 5), -0.2, 0.05),
        ((5, 9), 0.1, 0.2),
        ((8, 17), -0.1, 0.01),
        ((13, 12), 0.05, 0.05),
    ],
)
def test_two_arms_are_judged_as_transcribed(sizes, b, alpha):
    n, other = sizes
    for k, k_other in np.ndindex(n + 1, other + 1):
        claimed = fixed_sample.by_binomials(k, n, k_other, other, b, alpha)
        if k / n - k_other / other <= b:
            assert not claimed
        elif (k + 2 * k_other) % 7 == 0:
            excess = naive.binomials_excess(k, n, k_other, other, b, alpha)
            assert claimed == (excess <= 0) or abs(excess) < 1e-3


def test_what_is_certain_of_two_arms():
    assert fixed_sample.by_binomials(0, 5, 5, 5, -1.1, 0.05)
    assert not fixed_sample.by_binomials(0, 5, 5, 5, -1.0, 0.05)
    assert fixed_sample.by_binomials(1, 5, 5, 5, -1.0, 0.05)
    assert fixed_sample.by_binomials(0, 5, 4, 5, -1.0, 0.05)
    assert not fixed_sample.by_binomials(5, 5, 0, 5, 1.0, 0.05)
    assert fixed_sample.by_binomials(300, 300, 0, 40, 0.8, 0.05)


def test_counts_of_two_arms_are_closed_whatever_their_ranking(monkeypatch):
    rng, n, other = np.random.default_rng(0), 12, 17
    ranks = rng.random((n + 1, other + 1))
    monkeypatch.setattr(fixed_sample, "_standardised", lambda *_: ranks)
    for k, k_other in ((8, 3), (12, 0), (5, 11)):
        needed = fixed_sample._Apart(k, n, k_other, other, 0.0).needed
        as_far = np.argwhere(ranks >= ranks[k, k_other] - 1e-9)
        for i, j in np.ndindex(ranks.shape):
            beyond = ((as_far[:, 0] <= i) & (as_far[:, 1] >= j)).any()
            assert (i >= needed[j]) == beyond
