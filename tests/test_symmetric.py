"""Symmetric differences: the evidence is what its page says, and nobody gains where the truth is below."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate
from scipy.stats import binom

import lexbandits as lb
from lexbandits._jit import fused
from lexbandits.evidence import fixed_sample
from lexbandits.evidence.betting import SHARES, log_wealth
from lexbandits.evidence.moments import push_squares
from lexbandits.evidence.symmetric import (
    DEPTH,
    best_symmetric_end,
    bet_on_sign,
    beyond,
    push_scaled,
    scaled_sums,
    symmetric_ceiling,
    symmetric_interval,
    symmetric_log_evidence,
    symmetric_lower,
    turned_sums,
    variance_so_far,
)
from lexbandits.judging.sequential import SIGN_WEIGHTS, symmetric_log_wealth
from support import tol_oracle


@fused
def follow(values, boundary, resolution, wealth, pairs):
    """Fold differences into bets at a boundary and into weighted sums; the largest log wealth on the way."""
    n, mean, m2, most = 0.0, 0.0, 0.0, -math.inf
    for t in range(values.size):
        variance = variance_so_far(n, m2, resolution)
        up, down = beyond(values[t], boundary, abs(values[t])), beyond(-values[t], boundary, abs(values[t]))
        bet_on_sign(wealth, 0, 0, 0, up, down, variance, resolution, n)
        push_scaled(pairs, 0, 0, values[t], variance)
        n, mean, m2 = push_squares(n, mean, m2, values[t])
        most = max(most, log_wealth(wealth, 0, 0, 0, 0, 0.5))
    return most


def nothing():
    shares = np.tile(SHARES, (1, 1, 2, 1, 1))
    return np.stack([shares, np.zeros(shares.shape)]), np.zeros((1, 1, DEPTH))


def gamble(values, boundary, resolution=1.0):
    """Log wealth of bets for and against, the largest on the way, and the sums."""
    wealth, pairs = nothing()
    most = follow(np.array(values, float), boundary, resolution, wealth, pairs)
    both = [log_wealth(wealth, 0, 0, side, 0, 0.5) for side in (0, 1)]
    return *both, most, scaled_sums(pairs, 0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_bets_and_sums_are_those_of_the_raw_differences(seed):
    rng = np.random.default_rng(seed)
    values = rng.standard_t(2, 200) * 10.0**seed + 3.0
    fine = [2.0] * values.size
    up, down, _, sums = gamble(values, 1.0, 2.0)
    assert up == pytest.approx(tol_oracle.symmetric_bets(list(values), fine, 1.0, 0.0), rel=1e-9)
    assert down == pytest.approx(tol_oracle.symmetric_bets(list(-values), fine, 1.0, 0.0), rel=1e-9)
    for c in (-5.0, 0.0, 3.0, 7.0):
        specified = tol_oracle.symmetric_evidence(list(values), fine, c)
        assert symmetric_log_evidence(sums, c) == pytest.approx(specified, rel=1e-9, abs=1e-9)
        specified = tol_oracle.symmetric_evidence(list(-values), fine, c)
        assert symmetric_log_evidence(turned_sums(sums), c) == pytest.approx(specified, rel=1e-9, abs=1e-9)
        ceiling = symmetric_ceiling(sums, c)
        assert ceiling >= symmetric_log_evidence(sums, c) - 1e-9


def capped_wealth(values, fine, c):
    """The wealth that proves it: each factor stops rising at its largest, so that all of it falls in c."""
    scales = tol_oracle.symmetric_scales(list(values), fine)
    scaled = np.array([(v - c) / s for v, s in zip(values, scales, strict=True) if s])

    def at(stake):
        v = np.minimum(stake * scaled, 1.0)
        density = math.sqrt(2 * 10 / math.pi) * math.exp(-10 * stake * stake / 2)
        return density * math.exp(float((v - v * v / 2).sum()))

    return integrate.quad(at, 0, 4, limit=200)[0]


@pytest.mark.parametrize("seed", range(4))
def test_sums_claim_no_more_than_a_wealth_that_falls_in_the_boundary(seed):
    values, fine = np.random.default_rng(seed).standard_t(3, 25) + seed, [1.0] * 25
    sums = gamble(values, 0.0)[-1]
    before = math.inf
    for c in np.linspace(-6, 6, 25):
        wealth = capped_wealth(values, fine, c)
        assert math.exp(symmetric_log_evidence(sums, c)) <= wealth * (1 + 1e-7)
        assert wealth <= before * (1 + 1e-7)
        before = wealth


@pytest.mark.parametrize("shift", [0.0, -0.4])
def test_wealth_is_1_on_average_at_the_boundary_and_less_below_it(shift):
    """Over all signs of ten differences whose sizes the past decides, as an adversary would."""
    bets, sums = 0.0, 0.0
    for signs in itertools.product([-1, 1], repeat=10):
        values = []
        for sign in signs:
            size = 1.0 + 2.0 * (sum(values) > 0) + 0.1 * len(values) ** 2 * (values[-1:] > [0])
            values.append(shift + sign * size)
        up, _, _, found = gamble(values, 0.0)
        bets += math.exp(up) / 2**10
        sums += math.exp(symmetric_log_evidence(found, 0.0)) / 2**10
    assert bets == pytest.approx(1.0) if shift == 0.0 else bets < 1.0
    assert sums <= 1.0 + 1e-12 if shift == 0.0 else sums < 1.0


def test_differences_at_the_boundary_as_written_prove_nothing():
    """0.86 − 0.83 is 0.03, whatever the last digits are."""
    up, down, _, sums = gamble([0.86 - 0.83] * 500, 0.03, 0.03)
    assert up == pytest.approx(0.0, abs=1e-12)
    assert down < 0.0
    assert symmetric_log_evidence(sums, 0.03) <= 0.0 + 1e-9
    assert gamble([0.86 - 0.83] * 20, 0.02, 0.03)[0] > 5  # equal values are no fault


LAWS = {
    "normal": lambda rng, size: rng.standard_normal(size),
    "cauchy": lambda rng, size: rng.standard_cauchy(size),
    "two points": lambda rng, size: rng.choice([-1.0, 1.0], size),
    "mostly zero": lambda rng, size: rng.choice([-1.0, 0.0, 1.0], size, p=[0.01, 0.98, 0.01]),
    "spread grows": lambda rng, size: 1.02 ** np.arange(size[1]) * rng.standard_normal(size),
    "spread falls": lambda rng, size: 0.99 ** np.arange(size[1]) * rng.standard_normal(size),
    "equal shapes": lambda rng, size: rng.exponential(size=size) - rng.exponential(size=size),
}


@pytest.mark.parametrize("law", LAWS)
def test_coverage_at_all_times(law):
    """At a level of 20 %: bets at the centre, and the two ends of an interval."""
    runs, alpha = 400, 0.2
    values = LAWS[law](np.random.default_rng([7, len(law)]), (runs, 600)) + 0.25
    passed = missed = 0
    for row in values:
        passed += gamble(row, 0.25, 0.5)[2] >= math.log(1 / alpha)
        wealth, pairs = nothing()
        out = False
        for part in (row[:20], row[:60], row[:200], row):
            pairs[:] = 0.0
            follow(part, 0.0, 0.5, wealth, pairs)
            low, high = symmetric_interval(scaled_sums(pairs, 0, 0), math.log(1 / alpha))
            out |= not low <= 0.25 <= high
        missed += out
    for count in (passed, missed):
        assert binom.sf(count - 1, runs, alpha) > 1e-9
    if law == "normal":
        assert passed > 20  # it is not just idle


def test_ends_are_the_nearest_that_have_enough_evidence():
    sums = gamble(np.random.default_rng(3).standard_normal(300) + 1.0, 0.0)[-1]
    low = symmetric_lower(sums, 4.0)
    assert symmetric_log_evidence(sums, low) >= 4.0 > symmetric_log_evidence(sums, low + 1e-6)
    each = 4.0 + math.log(2.0)
    low, high = symmetric_interval(sums, 4.0)
    assert low == pytest.approx(symmetric_lower(sums, each))
    assert high == pytest.approx(-symmetric_lower(turned_sums(sums), each))
    assert best_symmetric_end(sums, 4.0, 0.1, 0.2, -math.inf) == pytest.approx(low)
    assert best_symmetric_end(sums, 4.0, 5.0, 6.0, -2.0) == -2.0
    assert symmetric_lower((0.0,) * 5, 4.0) == -math.inf


# --- tables


@pytest.mark.parametrize(("n", "alpha"), [(10, 0.05), (14, 0.03), (14, 0.2)])
def test_flips_claim_as_often_as_said_over_all_signs(n, alpha):
    """With 14 values only a subgroup of all flips is tried; the level is kept exactly."""
    sizes = np.random.default_rng(n).exponential(size=n)
    claims = sum(
        fixed_sample.by_flips(sizes * signs + 0.7, 0.7, alpha)
        for signs in itertools.product([-1, 1], repeat=n)
    )
    assert 0.5 * alpha <= claims / 2**n <= alpha


def test_flips_of_few_values_are_those_of_all_signs():
    rng = np.random.default_rng(5)
    for _ in range(50):
        values = rng.standard_normal(9) + 0.6
        flips = np.array(list(itertools.product([-1, 1], repeat=9))) @ np.abs(values)
        p = float((flips >= values.sum() - 1e-9).mean())
        assert fixed_sample.by_flips(values.copy(), 0.0, 0.03) == (p <= 0.03)


@pytest.mark.parametrize("bits", [0, 1, 3, 4, 5, 8, 9])
def test_sums_of_all_flips_are_those_of_the_definition(bits):
    sums = np.random.default_rng(bits).standard_normal(2**bits)
    signs = [[(-1) ** (row & code).bit_count() for code in range(2**bits)] for row in range(2**bits)]
    assert fixed_sample._all_flips(sums, bits) == pytest.approx(signs @ sums)


def test_a_gap_of_rounding_has_no_sign():
    assert not fixed_sample.by_flips(np.full(50, 0.86 - 0.83), 0.03, 0.05, 1.69)
    assert fixed_sample.by_flips(np.full(50, 0.86 - 0.83), 0.02, 0.05, 1.69)


def test_asymmetry_counts_only_where_a_tail_points_to_the_limit():
    rng = np.random.default_rng(1)

    def flagged(draw, runs=200):
        return sum(fixed_sample.edge_of_flips(draw(200), 0.01) > 0 for _ in range(runs))

    assert flagged(lambda n: -rng.exponential(size=n)) > 180
    assert flagged(lambda n: rng.exponential(size=n)) == 0
    assert flagged(lambda n: rng.standard_t(3, n)) < 30
    assert fixed_sample.edge_of_flips(-rng.exponential(size=1000), 0.01) > 2.4


def test_looks_at_all_times_are_bets_in_any_order():
    assert SIGN_WEIGHTS.sum() == pytest.approx(1.0)
    average = sum(
        math.exp(symmetric_log_wealth(np.array(signs) * np.arange(1.0, 11.0), 3.0))
        for signs in itertools.product([-1, 1], repeat=10)
    )
    assert average / 2**10 == pytest.approx(1.0)


def table(rng, n, lead, draw):
    item = np.tile(np.arange(n), 2).tolist()
    values = np.concatenate([draw(rng, n) + lead, draw(rng, n)]).tolist()
    return {"arm": ["a"] * n + ["b"] * n, "item": item, "score": values}


@pytest.mark.parametrize("sequential", [False, True])
def test_tables_at_the_edge_are_certified_as_rarely_as_stated(sequential):
    """b is best by just the margin: answering a would be wrong."""
    rng, wrong, runs = np.random.default_rng(11), 0, 300
    objective = lb.Objective("score", margin=1.0, noise="symmetric")
    for _ in range(runs):
        verdict = lb.judge(table(rng, 25, -1.0, lambda r, n: r.exponential(size=n)), [objective],
                           delta=0.2, sequential=sequential)  # fmt: skip
        wrong += verdict.certified and verdict.arm == "a"
    assert binom.sf(wrong - 1, runs, 0.2) > 1e-9


def test_a_clear_table_is_certified_and_says_what_it_assumes():
    rng = np.random.default_rng(2)
    found = lb.judge(table(rng, 30, 2.0, lambda r, n: r.laplace(size=n).round(1)),
                     [lb.Objective("score", margin=1.0, noise="symmetric")])  # fmt: skip
    assert found.certified
    assert found.arm == "a"
    assert not found.flags
    assert "symmetrically about the mean difference" in str(found)


def test_refusals():
    with pytest.raises(lb.StudyError, match="says nothing about one arm and a limit"):
        lb.Objective("score", at_least=1.0, noise="symmetric")
    with pytest.raises(lb.StudyError, match="weighs two arms unequally"):
        lb.Objective("score", margin="5%", noise="symmetric")
    with pytest.raises(ValueError, match="nothing about one arm and a target"):
        lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise="symmetric", at_least=1.0)
    with pytest.raises(ValueError, match="weighs two arms unequally"):
        lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise="symmetric", reference="best")
    with pytest.raises(ValueError, match="says nothing about a list"):
        lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise="symmetric", n_items=10)


# --- noise that is left out


def test_noise_left_out_is_symmetric_where_that_says_something():
    assert lb.Objective("x", margin=1).noise == "symmetric"
    assert lb.Objective("x", margin=1, noise="auto").noise == "symmetric"
    assert lb.Objective("x", at_least=1).noise == "gaussian"
    assert lb.Objective("x", margin="5%").noise == "gaussian"
    assert lb.Objective("x", margin=1, cap=3).noise == ("bounded", 0.0, 3.0)
    assert lb.Objective.from_json(lb.Objective("x", margin=1).as_json()).noise == "symmetric"


def test_a_study_of_a_list_takes_gaussian_and_refuses_symmetric():
    words = {"arms": ["a", "b"], "items": range(20), "seed": 1}
    study = lb.create_study("listed", objectives=[lb.Objective("x", margin=1)], **words)
    assert study.spec["objectives"][0]["noise"] == "gaussian"
    with pytest.raises(lb.StudyError, match="says nothing about a list"):
        lb.create_study("refused", objectives=[lb.Objective("x", margin=1, noise="symmetric")], **words)


@pytest.mark.parametrize(
    ("values", "words", "taken"),
    [
        ([0, 1], {}, "bernoulli"),
        ([True, False], {}, "bernoulli"),
        ([0.5, 1], {}, "symmetric"),
        ([0, 1], {"noise": "gaussian"}, "gaussian"),
        ([0, 1], {"if_failed": 0}, "bernoulli"),
        ([0, 1], {"if_missing": None, "at_least": 0.2, "margin": None}, "bernoulli"),
    ],
)
def test_a_column_says_what_it_is(values, words, taken):
    frame = {"arm": ["a", "b"] * 20, "item": np.repeat(range(20), 2).tolist(), "x": values * 20}
    (objective,) = lb.judge(frame, [lb.Objective("x", **{"margin": 0.5, **words})]).objectives
    assert objective.noise == taken


def test_rows_that_nothing_pairs_at_many_looks():
    frame = {"arm": ["a", "b"] * 20, "x": np.random.default_rng(0).random(40).tolist()}
    (taken,) = lb.judge(frame, [lb.Objective("x", margin=0.5)], item=None, sequential=True).objectives
    assert taken.noise == "gaussian"
    with pytest.raises(lb.StudyError, match="no evidence at many looks"):
        lb.judge(frame, [lb.Objective("x", margin=0.5, noise="symmetric")], item=None, sequential=True)


def finished(draw, **words):
    """The answer of a study of two arms, as its policy stops or after 400 results."""
    study = lb.create_study("s", arms=["a", "b"], objectives=[lb.Objective("x", margin=1.0, **words)],
                            seed=3, budget=400)  # fmt: skip
    rng = np.random.default_rng(4)
    for trial in iter(lambda: study.ask_many(1, wait=0), []):
        study.tell(trial[0], {"x": draw(rng, trial[0].arm == "a")})
    return study


def test_a_study_says_where_values_are_no_symmetric_ones():
    def noise(study):
        (found,) = [s for s in study.explain().diagnostics if "symmetric" in s.sentence]
        return found

    usual = noise(finished(lambda rng, first: rng.normal(0.1 * first)))
    assert usual.severity == "ok"
    shares = noise(finished(lambda rng, first: float(rng.random() < 0.5 + 0.3 * first)))
    assert shares.severity == "warning"
    assert "bernoulli" in shares.observed
    skewed = noise(finished(lambda rng, first: rng.exponential() ** 3 if first else rng.normal(0, 0.1)))
    assert skewed.severity == "warning"
    assert "skewed" in skewed.observed
    same = finished(lambda rng, first: 0.0 if first else 3.0)
    assert same.answer.certified
    assert not same.answer.flags
