"""Forecasts of a study about a list: never more than is left, and 8 of 10 hold what it takes."""

import numpy as np
import pytest

import lexbandits as lb

N, ARMS = 300, "abc"


def begun(seed, results):
    """A list that arms share the luck of, measured for a while; and how to go on."""
    rng = np.random.default_rng(seed)
    hard, rates = rng.random(N), rng.uniform(0.6, 0.95, 3)
    table = {
        arm: np.where(rng.random(N) < 0.6, hard, rng.random(N)) < rate
        for arm, rate in zip(ARMS, rates, strict=True)
    }
    study = lb.create_study(
        "s", arms=list(ARMS), items=range(N), seed=seed, delta=0.1,
        objectives=[lb.Objective("correct", margin=0.1, noise="bernoulli")],
    )  # fmt: skip

    def go_on(most):
        for told in range(most):
            if not (trials := study.ask_many(1)):
                return told
            study.tell(trials[0], {"correct": int(table[trials[0].arm][trials[0].item])})
        return most

    go_on(results)
    return study, go_on


def count_held(seeds):
    """How many forecasts held what it took, and of how many."""
    held = asked = 0
    for seed in seeds:
        study, go_on = begun(seed, 90)
        if study.status.state != "measuring":
            continue
        coming = study.forecast(runs=60)
        assert coming.results.high <= study.status.at_most
        assert coming.within is None, "a list always ends"
        needed = go_on(10**6)
        asked += 1
        held += coming.results.low <= needed <= coming.results.high
    return held, asked


def test_a_forecast_of_a_list_ends_with_it():
    held, asked = count_held(range(8))
    assert asked >= 3
    assert held >= asked / 2


@pytest.mark.slow
def test_eight_of_ten_forecasts_of_a_list_hold_its_end():
    held, asked = count_held(range(100, 400))
    assert 0.7 <= held / asked <= 0.9
