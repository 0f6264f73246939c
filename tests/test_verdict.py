"""Verdicts follow the numbers: each claim holds and fails on tables made for it."""

import math

import numpy as np
import pandas as pd
import pytest

from experiments.paper import acceleration, samples, sensitivity, theorems
from experiments.paper.experiment import PAPER_WIDTHS, PAPERS, SINGLE
from experiments.paper.tables import Mean
from experiments.paper.verdict import FAILS, HOLDS


def samples_table(pulls):
    """A table of samples in which `pulls(width, algorithm, n_arms)` says how many, without errors."""
    rows = []
    for labels, _ in samples.entries():
        value = pulls(labels["width"], labels["algorithm"], labels["n_arms"])
        measured = {"samples": value, "samples_se": 0.0, "pulls": value, "pulls_se": 0.0}
        answers = {"replications": 100, "unstopped": 0, "wrong": 0}
        objectives = (1,) if labels["algorithm"] in SINGLE else (1, 2, 3)
        rows += [{**labels, "objective": i, **measured, **answers} for i in objectives]
    return {"samples": pd.DataFrame(rows)}


def test_in_beats_out_only_where_it_needs_fewer_pulls():
    slow = {("LexElim-In", 10): 500.0}
    tables = samples_table(lambda w, a, k: slow.get((a, k), 300.0 if a == "LexElim-In" else 400.0))
    assert samples.inner_beats_outer.judge(tables).outcome == "holds only with K = 20 or K = 30"


def test_more_arms_need_more_samples():
    assert samples.more_arms_more_samples.judge(samples_table(lambda w, a, k: k * 1.0)).outcome == HOLDS
    shrinking = samples_table(lambda w, a, k: k * (-1.0 if (w, a) == ("tenth", "UCB-α") else 1.0))
    assert "× 0.1" not in samples.more_arms_more_samples.judge(shrinking).outcome


def test_errors_above_delta_speak_against_a_width_setting():
    tables = samples_table(lambda w, a, k: k * 1.0)
    assert samples.error_at_most_delta.judge(tables).outcome == HOLDS
    table = tables["samples"]
    many_wrong = (table["width"] == "tenth") & (table["algorithm"] == "LexElim-Out")
    tables = {"samples": table.assign(wrong=np.where(many_wrong, 5, 0))}
    assert samples.error_at_most_delta.judge(tables).outcome == "holds only with σ = 1 as printed or σ = √0.1"


def test_both_algorithms_are_held_against_both_baselines():
    pulls = {"LexElim-Out": 300.0, "LexElim-In": 200.0, "UCB-α": 250.0, "EGE": 400.0}
    told = samples.both_need_fewer_samples.judge(samples_table(lambda w, a, k: pulls.get(a, 1.0)))
    assert told.outcome.startswith("holds only with")
    assert "UCB-α" not in told.outcome  # LexElim-Out needs more
    slower = pulls | {"UCB-α": 301.0}
    judged = samples.both_need_fewer_samples.judge(samples_table(lambda w, a, k: slower.get(a, 1.0)))
    assert judged.outcome == HOLDS


def advantage(baseline, ratios, error):
    """LexElim-In needs 100 pulls, `baseline` these times as many, with this error; the other ever more."""

    def pulls(width, algorithm, n_arms):
        if algorithm == "LexElim-In":
            return 100.0
        return 100.0 * (ratios[n_arms] if algorithm == baseline else n_arms)

    table = samples_table(pulls)["samples"]
    return {"samples": table.assign(samples_se=np.where(table["algorithm"] == baseline, error, 0.0))}


@pytest.mark.parametrize("baseline", ["UCB-α", "EGE"])
def test_an_advantage_grows_only_by_two_standard_errors(baseline):
    judge = samples.fewer_samples_than_baselines.judge
    assert judge(advantage(baseline, {10: 2.0, 20: 2.5, 30: 3.0}, error=10.0)).outcome == HOLDS
    for ratios, error in (
        ({10: 2.0, 20: 2.0, 30: 2.1}, 10.0),  # grows, but by less than its error
        ({10: 2.0, 20: 1.5, 30: 3.0}, 10.0),  # falls on the way
        ({10: 0.5, 20: 2.0, 30: 3.0}, 10.0),  # no advantage at K = 10
    ):
        outcome = judge(advantage(baseline, ratios, error)).outcome
        assert outcome.startswith("holds only with")
        assert baseline not in outcome


def delta_table(pulls, error):
    rows = [
        {"parameter": "delta", "width": width, "algorithm": algorithm, "value": value}
        | {"pulls": pulls(value), "pulls_se": error}
        for width in PAPER_WIDTHS
        for algorithm in PAPERS
        for value in (0.1, 0.01, 0.0001)
    ]
    return {"sensitivity": pd.DataFrame(rows)}


@pytest.mark.parametrize(
    ("growth", "error", "outcome"),
    [
        (lambda delta: 1000 + 50 * math.log(1 / delta), 1.0, HOLDS),
        (lambda delta: 1000 + 5 * math.log(1 / delta) ** 2, 1.0, FAILS),  # × 1.4 in all
        (lambda delta: 1000 + 5 * math.log(1 / delta) ** 2, 100.0, HOLDS),  # within the errors
    ],
)
def test_samples_that_outgrow_the_logarithm_are_seen(growth, error, outcome):
    assert sensitivity.logarithmic_in_delta.judge(delta_table(growth, error)).outcome == outcome


def test_less_regret_than_a_learner_of_the_first_objective_can_have():
    rows = [
        {**labels, "regret_1": 30.0, "regret_1_se": 2.0, "regret_lower_bound": 47.0}
        | {"wrong": 0, "replications": 100, "unstopped": 0}
        for labels, _ in acceleration.entries()
    ]
    table = pd.DataFrame(rows)
    judge = acceleration.beyond_the_regret_bound.judge
    assert judge({"acceleration_stopping": table}).outcome == HOLDS
    assert judge({"acceleration_stopping": table.assign(regret_1=44.0)}).outcome == FAILS


def test_the_lower_bound_of_regret_is_the_price_of_the_pulls_that_tell_an_arm_apart():
    """Two arms, σ² = 0.1, a gap of 0.03: kl(δ, 1 − δ)·2σ²/Δ."""
    divergence = 0.98 * math.log(0.99 / 0.01)
    bound = acceleration.lower_bounds(acceleration.INSTANCES[-1].instance)["regret_lower_bound"]
    assert bound == pytest.approx(divergence * 2 * 0.1 / 0.03)


def theorem_row(**changes):
    row = {
        "source": "Theorem 2",
        "instance": "K=10",
        "width": "printed",
        "objective": 1,
        "arm": math.nan,
        "printed": 100.0,
        "proved": 300.0,
        "measured": 50.0,
        "measured_se": 1.0,
        "largest": 60.0,
        "above_printed": 0,
        "above_proved": 0,
        "replications": 100,
    }
    return row | changes


@pytest.mark.parametrize(
    ("worst", "outcome"),
    [
        ({}, HOLDS),
        ({"above_printed": 3}, HOLDS),  # δ = 0.01 allows some
        ({"above_printed": 90}, "holds only with the repaired bound"),
        ({"above_printed": 90, "above_proved": 50}, FAILS),
    ],
)
def test_a_bound_holds_unless_more_runs_exceed_it_than_delta_allows(worst, outcome):
    table = pd.DataFrame([theorem_row(), theorem_row(instance="waiting", largest=400.0, **worst)])
    assert theorems.within_the_bound("Theorem 2", "").judge({"theorems": table}).outcome == outcome


def test_lemma_2_fails_by_its_own_numbers():
    assert theorems.lemma_2.judge({}).outcome == "holds only with the true threshold"


def test_two_means_differ_when_two_standard_errors_apart():
    assert Mean(1.0, 0.3).below(Mean(2.0, 0.3))
    assert not Mean(1.0, 0.4).below(Mean(2.0, 0.4))
    assert Mean(1.0, math.nan).below(Mean(2.0, 0.0))
