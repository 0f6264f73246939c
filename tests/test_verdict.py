"""Verdicts follow the numbers: each claim holds and fails on tables made for it."""

import math

import numpy as np
import pandas as pd
import pytest

from lexbandits.reproduction import samples, theorems
from lexbandits.reproduction.experiment import SINGLE
from lexbandits.reproduction.tables import Mean
from lexbandits.reproduction.verdict import FAILS, HOLDS


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
