"""A forecast is calibrated, speaks the user's language and changes nothing."""

import copy
import dataclasses
import json
import time

import numpy as np
import pytest
from scipy.stats import binom

import lexbandits as lb
from lexbandits.environments.noise import stream
from lexbandits.forecasting import forecast as forecasting
from lexbandits.forecasting.forecast import Range
from lexbandits.forecasting.posterior import Measured, Posterior, Prior, coins_of, kinds_of, table_of
from lexbandits.forecasting.question import WhyMore
from lexbandits.forecasting.scenarios import ENOUGH, play, play_scenario
from lexbandits.study.number_format import about
from support import stage

SPEC = {
    "arms": ["small", "large"],
    "objectives": [
        lb.Objective("correct", margin=0.2, noise="bernoulli"),
        lb.Objective("latency", "minimize", unit="ms", margin=100, noise=("bounded", 0, 2000)),
    ],
}
PRIOR = {"small": {"correct": 0.8, "latency": 300}, "large": {"correct": 0.82, "latency": 700}}
SD = {"latency": 100}
ENDS = (20, 20, 20, 20, 20, 20, 22, 24, 24, 24)

WORLDS = {
    "gaussian": (
        lambda: lb.LexElimTol(4, 2, delta=0.05, tolerance=[0.3, 0.3]),
        [[1, 0], [1.1, 0.5], [0.2, 1], [0.9, 1.4]],
        [1, 1],
        0.0,
    ),
    "shared luck": (
        lambda: lb.LexElimTol(4, 2, delta=0.05, tolerance=[0.3, 0.3]),
        [[1, 0], [1.1, 0.5], [0.2, 1], [0.9, 1.4]],
        [2, 2],
        0.7,
    ),
    "bernoulli, then bounded": (
        lambda: lb.LexElimTol(3, 2, delta=0.05, tolerance=0.15, noise=["bernoulli", ["bounded", 0, 1]]),
        [[0.8, 0.3], [0.85, 0.6], [0.4, 0.9]],
        [0.1, 0.15],
        0.0,
    ),
}


def truth(policy, means, sds, shared):
    means = np.array(means, float)
    prior = Prior(means, means, np.array(sds, float), np.full(policy.n_objectives, shared), coins_of(policy))
    return Posterior(Measured(policy, {}, coins_of(policy)), prior)


def covered(make, means, sds, shared, studies, futures, seed=1):
    """Of some studies, in how many the 80 % range holds the true end: at the start and half-way.

    Half-way is half of the median that was forecast, which does not look into the future; a study that
    has ended by then has no forecast.
    """
    policy = make()
    posterior = truth(policy, means, sds, shared)
    scenario = posterior.scenario(stream(0, 0))
    K, m = policy.max_arms, policy.n_objectives
    first = play(policy, posterior, 400, seed + 1, 10**5).ends
    low, high = np.quantile(first, (0.1, 0.9))
    half = int(np.median(first) / 2)
    at_start, at_half = [], []
    for number in range(studies):
        study, rng = copy.copy(policy), stream(seed, number)
        counters = np.zeros(m, np.int64), np.zeros(K, np.int64)
        done = play_scenario(study.state, scenario, rng, half, *counters)
        if study.finished:
            at_start.append(low <= done <= high)
            continue
        known = Posterior(Measured(copy.copy(study), {}, coins_of(study)))
        ends = play(study, known, futures, number, 10**5).ends
        rest = play_scenario(study.state, scenario, rng, 10**5, *counters)
        at_start.append(low <= done + rest <= high)
        at_half.append(np.quantile(ends, 0.1) <= rest <= np.quantile(ends, 0.9))
    return at_start, at_half


def assert_between_70_and_90_per_cent(found):
    """By exact tails: so many could come of a chance in between."""
    assert binom.cdf(sum(found), len(found), 0.7) > 0.01, f"{sum(found)} of {len(found)}: too few"
    assert binom.sf(sum(found) - 1, len(found), 0.9) > 0.01, f"{sum(found)} of {len(found)}: too many"


def test_the_range_covers_the_end_about_eight_times_in_ten():
    for found in covered(*WORLDS["gaussian"], studies=26, futures=40):
        assert len(found) > 20
        assert_between_70_and_90_per_cent(found)


@pytest.mark.slow
@pytest.mark.parametrize("name", WORLDS)
def test_over_200_studies_the_range_covers_the_end_70_to_90_per_cent_of_the_time(name):
    for found in covered(*WORLDS[name], studies=200, futures=100):
        assert len(found) >= 160
        assert_between_70_and_90_per_cent(found)


@pytest.mark.slow
@pytest.mark.parametrize("shared", [0.0, 0.8])
def test_worlds_are_as_uncertain_as_the_data(shared):
    """Over data sets, the middle 80 % of the drawn differences hold the true one 8 times in 10."""
    held = 0
    for seed in range(100):
        rng, policy = np.random.default_rng(seed), lb.LexElimTol(3, 1, delta=0.05, tolerance=0.01)
        luck = np.sqrt(shared) * rng.standard_normal((30, 1))
        values = luck + np.sqrt(1 - shared) * rng.standard_normal((30, 3)) + [0.0, 0.5, 1.0]
        policy.tell_many(np.tile([0, 1, 2], 30), values.reshape(-1, 1))
        posterior = Posterior(Measured(policy, {}, (False,)))
        drawn = np.array([posterior.scenario(stream(seed, k)).means[:, 0] for k in range(200)])
        low, high = np.quantile(drawn[:, 2] - drawn[:, 0], (0.1, 0.9))
        held += low <= 1.0 <= high
    assert 0.001 < binom.cdf(held, 100, 0.8) < 0.999, f"{held} of 100"


def test_a_forecast_in_words():
    found = lb.forecast(SPEC, PRIOR, sd=SD, price=0.01, seconds=2.0, runs=100)
    assert found.results.low <= found.results.median <= found.results.high
    assert found.winners == {"small": 1.0, "large": 0.0}, "lower latency is better"
    assert found.cost.median == pytest.approx(0.01 * found.results.median)
    assert found.seconds.median == pytest.approx(2 * found.results.median)
    assert set(found.by_objective) == {"correct", "latency"}
    assert set(found.by_arm) == {"small", "large"}
    assert {(row.setting, row.objective) for row in found.relax} == {
        ("margin", "correct"),
        ("margin", "latency"),
        ("delta", None),
    }
    assert all(row.then == 2 * row.now for row in found.relax)
    assert found.sentence.startswith("About ")
    assert "small wins 100" in found.sentence
    assert "Doubling the delta 0.05 → 0.1" in str(found)
    json.dumps(found.as_json(), allow_nan=False)


def test_how_many_results_come_of_arms_that_nobody_would_want():
    """Where means are known these are the results of the same arms in every future."""
    coins = {"arms": list("abc"), "objectives": [{"name": "x", "margin": 0.1, "noise": "bernoulli"}]}
    found = lb.forecast(coins, {"a": [0.3], "b": [0.6], "c": [0.55]}, runs=20)
    assert found.on_worse == found.by_arm["a"]
    share = f"{about(found.on_worse.median)} ({about(found.on_worse.low)} to {about(found.on_worse.high)})"
    assert f"about {share} come of arms worse than may be given up" in str(found)
    tied = lb.forecast(coins, {"a": [0.6], "b": [0.6], "c": [0.55]}, runs=5)
    assert tied.on_worse == Range(0, 0, 0)
    assert "worse than may be given up" not in str(tied)


def test_what_a_baseline_takes_is_said_beforehand():
    coins = {"arms": ["a", "b"], "objectives": [{"name": "x", "margin": 0.1, "noise": "bernoulli"}]}
    prior = {"a": [0.3], "b": [0.38]}
    with_one = lb.forecast({**coins, "baseline": "a"}, prior, runs=20)
    assert with_one.without_baseline < 0.7 * with_one.results.median
    assert "better than a by more than the tie" in str(with_one)
    without = lb.forecast(coins, prior, runs=20)
    assert without.without_baseline is None
    assert without.results.median == pytest.approx(with_one.without_baseline, rel=0.3)
    clear = lb.forecast({**coins, "baseline": "b"}, prior, runs=20)
    assert "baseline" not in str(clear)


def test_the_same_seed_gives_the_same_forecast():
    again = [lb.forecast(SPEC, PRIOR, sd=SD, runs=30, seed=seed) for seed in (3, 3, 4)]
    assert again[0] == again[1] != again[2]


def test_what_is_closer_together_costs_more_and_shared_luck_cancels():
    policy = lb.LexElimTol(2, 2, delta=0.05, tolerance=0.5)

    def needed(lead, shared=0.0):
        means = [[0.0, 3.0], [lead, 0.0]]
        return lb.forecast(policy, means, sd=1.0, shared=shared, runs=60).results.median

    assert needed(0.75) > 3 * max(needed(0.0), needed(1.5)), "between tolerance and tolerance + resolution"
    assert needed(0.75, shared=0.8) < 0.5 * needed(0.75)


def test_doubling_the_margin_of_what_decides_saves_much():
    prior = {"small": {"correct": 0.8, "latency": 300}, "large": {"correct": 0.93, "latency": 700}}
    found = lb.forecast(SPEC, prior, sd=SD, runs=80)
    rows = {(row.setting, row.objective): row for row in found.relax}
    assert rows["margin", "correct"].saves > 0.3 * found.results.median
    assert "saves about" in rows["margin", "correct"].effect
    assert abs(rows["margin", "latency"].saves) < 0.1 * found.results.median
    assert max(row.saves for row in found.relax) <= found.results.median, "nothing saves more than all"


def test_what_costs_results_says_why(under_way):
    """After the first result a change ends the pre-registered tests, and not before."""
    before = {row.why for row in lb.forecast(SPEC, PRIOR, sd=SD, runs=2).relax if row.setting == "margin"}
    assert before == {WhyMore.TIE_GROWS}
    study = stage.create("kept", preregistered=True)
    stage.play(study, 60)
    after = study.forecast(runs=2).relax
    assert {row.why for row in after} == {WhyMore.TESTS_END}
    dearer = dataclasses.replace(after[0], saves=-90.0, error=1.0)
    assert dearer.effect == "costs about 90 more (a change now ends the pre-registered tests)"
    assert {row.why for row in under_way.forecast(runs=2).relax} == {WhyMore.TIE_GROWS}, "it has none"


def test_a_policy_goes_by_numbers_and_ranges_have_a_worst_case():
    policy = lb.LexElimTol(3, 1, delta=0.1, tolerance=0.3, noise_sd=1.0)
    fixed = lb.forecast(policy, [[1.0], [0.4], [-1.0]], runs=60)
    assert set(fixed.winners) == {"0", "1", "2"}
    assert fixed.worst_case is None
    spread = lb.forecast(policy, [[(0.2, 1.0)], [0.4], [-1.0]], runs=60)
    assert spread.worst_case > spread.median_case > 0
    assert "in the worst case" in str(spread)
    assert policy == lb.LexElimTol(3, 1, delta=0.1, tolerance=0.3, noise_sd=1.0), "it is left as it was"


def test_a_price_may_differ_between_arms():
    dear = lb.forecast(SPEC, PRIOR, sd=SD, runs=20, price={"small": 1.0, "large": 10.0})
    cheap = lb.forecast(SPEC, PRIOR, sd=SD, runs=20, price=1.0)
    assert dear.cost.median > 3 * cheap.cost.median


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prior": None}, "'small' has too few results on 'correct'"),
        ({"prior": {"small": {"correct": 0.8}}}, "'large' has too few results on 'correct'"),
        ({"prior": 3}, r"prior must be \{arm: \{objective: mean\}\} or a row per arm, got 3"),
        ({"prior": [[0.8, 300], [0.8]]}, r"the prior of 'large' must be .* or 2 means, got \[0.8\]"),
        ({"prior": {"small": 0.8}}, r"the prior of 'small' must be .* got 0.8"),
        ({"prior": {**PRIOR, "small": {"correct": "much"}}}, "must be a number, got 'much'"),
        ({"sd": "wide"}, "sd must be one number or one per objective"),
        ({"runs": 1.5}, "runs must be an integer, got 1.5"),
        ({"seconds": -1}, "seconds must be positive, got -1"),
        ({"prior": {**PRIOR, "medium": {}}}, "no arm 'medium'; there are 'small', 'large'"),
        ({"prior": {**PRIOR, "small": {"right": 1}}}, "no objective 'right'"),
        ({"prior": {**PRIOR, "small": {"correct": 1.8, "latency": 1}}}, r"must be in \[0, 1\], got 1.8"),
        ({"prior": {**PRIOR, "small": {"correct": 0.8, "latency": -5}}}, r"must be in \[0, 2000\], got -5"),
        ({"prior": {**PRIOR, "small": {"correct": (0.1, 0.2, 0.3)}}}, r"a number or a range \(low, high\)"),
        ({"price": {"small": 1.0}}, "price lacks arm 'large'"),
        ({"price": 0}, "price must be positive, got 0"),
        ({"shared": 1.0}, "at least 0 and below 1"),
        ({"runs": 0}, "runs must be at least 1, got 0"),
    ],
)
def test_what_is_wrong_is_reported(change, message):
    how = {"prior": PRIOR, "sd": SD, **change}
    with pytest.raises(lb.StudyError, match=message):
        lb.forecast(SPEC, how.pop("prior"), **how)


def test_gaussian_noise_has_no_worst_case():
    spec = {**SPEC, "objectives": [lb.Objective("x", margin=1, noise="gaussian"), SPEC["objectives"][0]]}
    prior = {"small": {"x": 1.0, "correct": 0.8}, "large": {"x": 2.0, "correct": 0.8}}
    with pytest.raises(lb.StudyError, match=r"standard deviation of one value on 'x': say sd=\{'x'"):
        lb.forecast(spec, prior)


def test_bounds_give_the_worst_case_where_no_spread_is_reported():
    """Values at the bounds, and the mean alone decides how many at which: for [0, 1] that is yes or no.

    Bets on bounded values expect them to keep away from the ends, so here they take up to a third more.
    """
    share = {"small": {"share": 0.8}, "large": {"share": 0.6}}
    kinds = [lb.Objective("share", margin=0.2, noise=noise) for noise in (("bounded", 0, 1), "bernoulli")]
    yes_or_no = [lb.forecast({**SPEC, "objectives": [kind]}, share, runs=20) for kind in kinds]
    assert 1 <= sum(yes_or_no[0].ends) / sum(yes_or_no[1].ends) < 1.5
    assert yes_or_no[0].at_bounds == ("share",)
    assert yes_or_no[1].at_bounds == ()
    spec = {**SPEC, "objectives": SPEC["objectives"][1:]}
    prior = {"small": {"latency": 300}, "large": {"latency": 700}}
    worst = lb.forecast(spec, prior, runs=60)
    assert worst.at_bounds == ("latency",)
    assert "values of latency lie is not known" in str(worst)
    assert "worst case. sd={'latency': …} gives a closer forecast" in str(worst)
    closer = lb.forecast(spec, prior, sd=SD, runs=60)
    assert closer.at_bounds == ()
    assert "worst case" not in str(closer)
    assert closer.results.median < 0.5 * worst.results.median
    measured = lb.create_study("half", **{"seed": 0, **SPEC})
    for trial in measured.ask_many(20):
        measured.tell(trial, {"correct": trial.item % 2, "latency": 300.0 + trial.item})
    assert measured.forecast(runs=5).at_bounds == (), "it was measured"


def test_one_result_is_not_many():
    one = dataclasses.replace(lb.forecast(SPEC, PRIOR, sd=SD, runs=5), results=Range(1, 1, 1))
    assert one.sentence.startswith("About 1 result should end the study")


def test_a_study_under_way_needs_no_prior_and_is_left_alone(under_way):
    before, events = under_way.policy, under_way.seq
    found = under_way.forecast(runs=40, price=0.5)
    assert found.measured == 200
    assert found.results.median > 0
    assert found.cost.median > 0
    assert found.winners["base"] > 0.5
    assert not any(row.setting == "delta" for row in found.relax), "delta may not change after looking"
    assert 0 <= found.within <= 1, "there is a budget"
    assert under_way.policy == before
    assert under_way.seq == events


def test_of_a_large_study_fewer_and_shorter_futures_are_played(under_way, monkeypatch):
    """A legal study of 100 arms on 20 objectives would otherwise take days."""
    if not forecasting._jit.INSTALLED:
        pytest.skip("nothing is compiled, so every study is large")
    each = len(under_way.arms) * len(under_way.objectives)
    monkeypatch.setattr(forecasting, "MOST_WORK", each * forecasting.MOST)
    monkeypatch.setattr(forecasting, "SECONDS_OF_LARGE", 0.0)
    whole = under_way.forecast(runs=20)
    assert (whole.runs, whole.most, bool(whole.relax)) == (20, forecasting.MOST, True)
    monkeypatch.setattr(forecasting, "MOST_WORK", each * forecasting.MOST - 1)
    some = under_way.forecast(runs=20)
    assert (some.runs, some.asked, some.most, some.relax) == (1, 20, forecasting.MOST - 1, ())
    assert some.ends[0] in whole.ends
    assert some.lines[1] == "Only 1 of 20 futures were played: all would take too long."


def test_a_new_study_needs_a_prior_and_an_ended_one_nothing(ended):
    fresh = lb.create_study("fresh", **{"seed": 0, **SPEC})
    with pytest.raises(ValueError, match="too few results"):
        fresh.forecast()
    assert fresh.forecast(PRIOR, sd=SD, runs=10).results.median > 0
    found = ended.forecast(runs=10)
    assert found.results == (0, 0, 0)
    assert found.winners["base"] == 1.0
    assert str(found) == found.sentence == "No more results are needed."


def test_losses_so_far_are_expected_to_go_on():
    study = stage.create("losing", max_failures=1000)
    stage.play(study, 400, fails=lambda trial: trial.number % 5 < 2)
    twin = stage.create("sound")
    stage.play(twin, 400)
    assert study.forecast(runs=40).results.median > 1.4 * twin.forecast(runs=40).results.median


@pytest.mark.interpreted
def test_a_toml_file_can_be_forecast(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(
        '[study]\nname = "t"\narms = ["a", "b"]\n[[objectives]]\nname = "x"\nmargin = 1\nnoise = "gaussian"\n'
    )
    found = lb.forecast(path, {"a": {"x": 0.0}, "b": {"x": 2.0}}, sd=1.0, runs=10)
    assert found.winners["b"] == 1.0
    assert found.ends == ENDS, "compiled and interpreted agree"


def test_200_futures_of_10_000_results_take_two_cores_at_most_5_seconds():
    arms = {"small": (0.80, 500), "large": (0.86, 900), "cot": (0.87, 1500)}
    means = {arm: {"correct": correct, "latency": latency} for arm, (correct, latency) in arms.items()}
    latency = lb.Objective("latency", "minimize", margin=160, noise=("bounded", 0, 10_000))
    spec = {
        "arms": list(arms),
        "objectives": [lb.Objective("correct", margin=0.04, noise="bernoulli"), latency],
    }
    lb.forecast(spec, means, sd={"latency": 300}, runs=2)
    start = time.process_time()
    found = lb.forecast(spec, means, sd={"latency": 300}, runs=200)
    taken = time.process_time() - start
    assert found.results.median > 4000
    assert taken < 10.0 * found.results.median / 10_000, "of both cores together"


EXACT = {
    "arms": ["a", "b", "c"],
    "objectives": [
        lb.Objective("correct", margin=0.04, noise="bernoulli"),
        lb.Objective("price", "minimize", margin=0.01, noise="exact"),
    ],
}


@pytest.mark.parametrize("told", [6, 8, 30, 31, 100])
@pytest.mark.parametrize("prices", [(0.1, 0.3, 0.7), (1.1, 2.2, 3.3), (1e-3, 0.15, 1 / 3), (1, 2, 3)])
def test_exact_values_are_forecast_as_they_were_measured(prices, told):
    """A sum of equal values over their number need not be that value."""
    study, price = lb.create_study("exact", **{"seed": 0, **EXACT}), dict(zip("abc", prices, strict=True))
    for trial in study.ask_many(told):
        study.tell(trial, {"correct": trial.number % 2, "price": price[trial.arm]})
    prior = {arm: {"correct": 0.5, "price": 5.0} for arm in "abc"}
    assert study.forecast(prior, runs=5, most=1000).results.low > 0
    assert study.policy.means[:, 1].tolist() == [-p for p in prices]


def test_an_exact_value_whose_pass_is_not_over_is_known():
    policy = lb.LexElimTol(2, 2, delta=0.05, tolerance=[0.02, 0.01], noise=["bernoulli", "exact"])
    policy.tell(0, [1, 0.3])
    policy.tell(0, [1, 0.3], item=3)
    found = lb.forecast(policy, [[0.8, 0.7], [0.8, 0.1]], runs=5, most=1000)
    assert sum(found.winners.values()) == 1.0


def test_an_exact_limit_that_is_just_met_is_met_after_any_number_of_results():
    policy = lb.LexElimTol(
        2,
        2,
        delta=0.05,
        tolerance=[0, 0.02],
        resolution=[0, 0.02],
        at_least=[0.1, None],
        noise=["exact", "gaussian"],
    )
    rng = np.random.default_rng(0)
    for _ in range(7):
        for arm in range(2):
            policy.tell(arm, [0.1 if arm else 0.2, arm + rng.standard_normal()])
    assert policy.means[:, 0].tolist() == [0.2, 0.1]
    assert policy.recommendation == 1


def test_values_drawn_from_a_prior_stay_in_their_bounds():
    noise = ("bounded", -3.0, -0.92)  # −3 + (−0.92 + 3) is above −0.92
    spec = {"arms": ["a", "b"], "objectives": [lb.Objective("x", margin=0.2, noise=noise)]}
    prior = {"a": {"x": -1.96}, "b": {"x": -1.1}}
    assert lb.forecast(spec, prior, sd={"x": 1.04}, runs=20, most=2000).results.low > 0


def test_a_prior_spread_of_next_to_nothing_loses_no_values():
    (kind,) = kinds_of(lb.LexElimTol(2, 1, delta=0.1, tolerance=0.1, noise=("bounded", 0, 1)))
    for sd in (1e-300, 1e-12, 1e-9, 1e-6, 1e-3):
        assert np.abs(table_of(kind, 0.3, sd) - 0.3).max() <= 4 * sd


def test_futures_that_are_all_given_up_are_not_all_played():
    policy = lb.LexElimTol(2, 1, delta=1e-9, tolerance=0.1)
    few = lb.forecast(policy, [[0.0], [0.0]], sd=1.0, runs=100, most=40)
    assert (few.runs, few.asked, few.more_than, few.results) == (ENOUGH, 100, 1.0, Range(40, 40, 40))
    assert f"The first {ENOUGH} futures all need more than 40: no others were played." in few.lines
    policy = lb.LexElimTol(2, 1, delta=0.05, tolerance=1.0)
    every = lb.forecast(policy, [[0.0], [0.0]], sd=1.0, runs=100)
    least = every.ends[0]
    some = lb.forecast(policy, [[0.0], [0.0]], sd=1.0, runs=100, most=least + 1)
    assert (some.runs, some.asked) == (100, 100), "one of them ended before"
    assert 0.0 < some.more_than < 1.0
