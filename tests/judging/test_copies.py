"""One measurement copied to many rows is seen; scores, grades and rounded values are left alone."""

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.judging.copies import copied_arms
from lexbandits.judging.verdict import proven_lead

GRADES = np.array([1, 1.3, 1.7, 2, 2.3, 2.7, 3, 3.3, 3.7, 4, 5])
F1 = np.array([0, 0.4, 0.5, 0.571, 0.667, 0.8, 0.857, 0.909, 1])
INFINITE = (-np.inf, np.inf)

# Values of one item each, by what the item and the arm do to them (z), and their ends.
NATURAL = {
    "Likert 1 to 5": (lambda z: np.clip(np.round(3 + z), 1, 5), 1, 5),
    "Likert, mostly two of them": (lambda z: np.clip(np.round(3.5 + 0.5 * z), 1, 5), 1, 5),
    "Likert 1 to 7": (lambda z: np.clip(np.round(4 + 1.4 * z), 1, 7), 1, 7),
    "0 to 10": (lambda z: np.clip(np.round(7 + 2 * z), 0, 10), 0, 10),
    "grades": (lambda z: GRADES[np.clip(np.round(5 + 2 * z), 0, 10).astype(int)], 1, 5),
    "percent": (lambda z: np.clip(np.round(70 + 15 * z), 0, 100), 0, 100),
    "quarters": (lambda z: np.clip(np.round(2 + z), 0, 4) / 4, 0, 1),
    "F1": (lambda z: F1[np.clip(np.round(4 + 2.5 * z), 0, 8).astype(int)], 0, 1),
    "milliseconds": (lambda z: np.round(200 * np.exp(0.3 * z)), 0, 5000),
    "seconds in tenths": (lambda z: np.round(2 * np.exp(0.3 * z), 1), 0, 60),
    "0 and 1": (lambda z: (z > -1).astype(float), 0, 1),
    "integers": (lambda z: np.round(300 + 10 * z), *INFINITE),
    "normal": (lambda z: z, *INFINITE),
}


def natural(name, n, rng):
    """Arms that have more or less in common, and are better or worse than each other."""
    shape, low, high = NATURAL[name]
    K, rho = int(rng.choice([2, 3, 6])), rng.choice([0, 0.5, 0.8, 0.95, 0.99])
    z = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, K))
    return shape(z + rng.normal(0, rng.choice([0.2, 0.8, 2]), K)), low, high


def alarms(name, n, tables):
    rngs = (np.random.default_rng([seed, n, len(name)]) for seed in range(tables))
    return sum(copied_arms(*natural(name, n, rng), True).any() for rng in rngs)


@pytest.mark.parametrize("name", NATURAL)
def test_values_that_are_often_equal_are_no_copies(name):
    for n in (8, 20, 60, 400):
        assert alarms(name, n, 40) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", NATURAL)
def test_of_many_tables_hardly_any_is_suspected(name):
    for n in (8, 20, 60, 200, 1000):
        assert alarms(name, n, 1000) <= 2


def copies(how, n, digits, rng):
    """Times of a model, of its folds or of days, beside every item."""
    K, groups = int(rng.choice([2, 3, 6])), {"model": 1, "day": 7, "two": 2, "fold": 10, "user": n // 4}[how]
    group = rng.integers(groups, size=n) if how == "user" else np.arange(n) % groups
    times = rng.uniform(2, 10, K) * np.exp(rng.normal(0, 0.15, (groups, 1)))
    times = times * np.exp(rng.normal(0, rng.choice([0.02, 0.1, 0.3]), (groups, K)))
    return np.round(times, digits)[group]


@pytest.mark.parametrize("how", ["model", "fold", "day", "two", "user"])
@pytest.mark.parametrize("digits", [2, 6])
def test_copies_are_seen(how, digits):
    for n in (20, 60, 200):
        rngs = [np.random.default_rng([seed, n]) for seed in range(30)]
        for low, high in ((0, 60), INFINITE):
            found = sum(copied_arms(copies(how, n, digits, rng), low, high, True).all() for rng in rngs)
            assert found >= (30 if digits > 2 or how == "model" else 12 if n < 30 else 22), (n, found)


def test_what_is_one_value_and_what_is_none():
    def seen(*columns, low=0.0, high=60.0, is_paired=True):
        return copied_arms(np.array(columns, dtype=float).T, low, high, is_paired).tolist()

    rng = np.random.default_rng(0)
    times = rng.uniform(2, 9, 60)
    assert seen([3.14] * 60, times) == [True, False]
    assert seen([3.14] * 60, times, is_paired=False) == [True, False]
    assert seen([3.14] * 4, times[:4]) == [False, False], "too few"
    assert seen([3.14] * 5, times[:5]) == [True, False]
    assert seen([0.0] * 60, times) == seen([60.0] * 60, times) == [False, False], "an end may come often"
    assert seen([0.0] * 60, times, low=-5) == [False, False], "a difference from itself"
    assert seen([*[np.nan] * 30, *[3.14] * 30], times) == [True, False]
    scores = rng.integers(1, 6, 60)
    assert seen([4] * 49, scores[:49], low=1, high=5) == [False, False]
    assert seen([4] * 50, scores[:50], low=1, high=5) == [True, False], "no scale gives that"
    folds = np.repeat([3.14, 4.22, 2.71, 5.3, 3.9, 6.01], 10)
    other = np.repeat([7.07, 3.3, 5.16, 4.47, 8.1, 2.9], 10)
    assert seen(folds, other) == [True, True]
    assert seen(folds, other, times) == [True, True, False]
    assert seen(folds, other, is_paired=False) == [False, False], "what belongs together is not known"
    assert seen(folds, folds) == seen(folds, 2 * folds) == [False, False], "the same work, or its price"
    assert seen(folds, rng.permutation(other)) == [False, False]
    graded = rng.choice([1, 2, 3, 5], 60)
    assert seen(graded, np.where(graded < 5, graded + 1, 5), low=1, high=5) == [False, False], (
        "a kinder judge"
    )
    few = np.r_[folds[:15], times[15:]]
    assert seen(few, np.r_[other[:15], times[15:] * 2]) == [False, False], "most are items of their own"


TIME = lb.Objective("time", "minimize", margin=1, noise=("bounded", 0, 20))


def table_of_copies(rng, n=200, groups=10):
    group = np.arange(n) % groups
    times = np.concatenate([rng.uniform(5, 15, groups)[group] for _ in range(2)])
    columns = {"item": [*range(n)] * 2, "fold": [*group] * 2, "time": times, "right": rng.random(2 * n) < 0.5}
    return pd.DataFrame({"arm": np.repeat(["m0", "m1"], n), **columns}).astype({"right": float})


@pytest.mark.parametrize("noise", [("bounded", 0, 20), "gaussian", ("sub_gaussian", 4.0)])
@pytest.mark.parametrize("groups", [1, 10, 40])
@pytest.mark.parametrize("sequential", [False, True])
def test_nothing_is_claimed_of_copies(noise, groups, sequential):
    table = table_of_copies(np.random.default_rng(3), groups=groups)
    time = lb.Objective("time", "minimize", margin=1, noise=noise)
    verdict = lb.judge(table, [time], sequential=sequential)
    assert (verdict.flags, verdict.acceptable) == (("copied_values",), ())
    assert verdict.details["copied_values"] == {"objectives": ["time"], "arms": ["m0", "m1"]}
    assert verdict.candidates == ("m0", "m1")
    assert proven_lead(verdict, "time", "m0", "m1") is None
    assert "time of m0 and m1 seems to be one measurement copied to many rows: say cluster=" in str(verdict)
    assert verdict.missing_items is None
    assert "should settle it" not in str(verdict)
    limit = lb.Objective("time", "minimize", at_most=19, slack=1, noise=noise)
    assert lb.judge(table, [limit], sequential=sequential).flags == ("copied_values",)


def test_what_does_not_rest_on_copies_is_certified():
    table = table_of_copies(np.random.default_rng(0))
    table["right"] = np.where(table.arm == "m0", 1.0, 0.0)
    right = lb.Objective("right", margin=0.2, noise="bernoulli")
    verdict = lb.judge(table, [right, TIME])
    assert (verdict.arm, verdict.certified, verdict.flags) == ("m0", True, ())
    assert lb.judge(table, [TIME, right]).flags == ("copied_values",)
    assert lb.judge(table, [TIME], scope="items").certified
    table["time"] = np.where(table.arm == "m0", 3.0, 4.0)
    assert lb.judge(table, [lb.Objective("time", "minimize", noise="exact", margin=0.1)]).certified


def test_clusters_of_copies_are_units():
    rng = np.random.default_rng(0)
    table = table_of_copies(rng, groups=100)
    assert lb.judge(table, [TIME]).flags == ("copied_values",)
    assert lb.judge(table, [TIME], cluster="fold", max_cluster=2).flags == ()
    table["time"] = np.where(table.arm == "m0", 7.7, rng.random(len(table)) + 9)
    assert lb.judge(table, [TIME], cluster="fold", max_cluster=2).details["copied_values"]["arms"] == ["m0"]
    sizes = table.item.map(lambda item: min(item // 3, 40) if item % 2 else item)
    table["time"] = np.where(table.arm == "m0", 0.1, rng.random(len(table)) + 9)
    unequal = lb.judge(table.assign(fold=sizes), [TIME], cluster="fold", max_cluster=200)
    assert unequal.details["copied_values"]["arms"] == ["m0"], "a mean of equal values is that value"
