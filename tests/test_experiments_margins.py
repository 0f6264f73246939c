"""What a smaller margin costs (experiments/margins.py): asked as a study asks, of the README's scenario."""

import re

import numpy as np
import pytest

import lexbandits as lb
from experiments import margins, noise_kinds
from experiments.practice.common_random_numbers import CommonRandomNumbers, play


@pytest.mark.parametrize("share", margins.SHARES.values())
def test_the_policy_is_that_of_a_study(share):
    objectives = margins.question(share)
    study = lb.create_study(
        "models", arms=["small", "medium", "large", "huge"], objectives=objectives, seed=0
    )
    mine, its = margins.policy_of(objectives, 4).settings, study.policy.settings
    for name in ("delta", "tolerance", "resolution", "preregistered", "stop_when"):
        assert mine[name] == its[name], name
    assert [list(kind) for kind in mine["noise"][1:]] == [list(kind) for kind in its["noise"][1:]]


def test_the_world_is_that_of_the_readme():
    trials = margins.scenario(margins.ACCURACIES["*medium* is 0.02 below the best"])
    means = trials.passes(np.random.default_rng(0), 20_000).mean(axis=0)
    truth = [(0.71, -0.4, -0.1), (0.84, -0.9, -0.4), (0.85, -2.1, -1.9), (0.86, -2.6, -2.4)]
    assert np.allclose(means, truth, atol=0.02)


def test_a_row_has_the_mean_of_its_runs(monkeypatch):
    monkeypatch.setattr(margins, "SHARES", {"as in the README": 1.0})
    row = margins.margins_markdown(3, 0, 1).splitlines()[-1]
    policy = margins.policy_of(margins.question(1.0), 4)
    for said, accuracies in zip(row.split("|")[2:4], margins.ACCURACIES.values(), strict=True):
        runs = [
            play(policy, CommonRandomNumbers(margins.scenario(accuracies), 0, run), margins.MOST).rounds
            for run in range(3)
        ]
        assert re.match(rf" {np.mean(runs):,.0f} ± [\d,]+ \(100%\) ", said), (said, runs)


def test_kinds_of_noise_are_compared_on_the_same_draws():
    """The slow arm never answers, and a cap is dearer than symmetry."""
    scenario = "one of two 8 times slower"
    found = {
        kind: [noise_kinds.results(scenario, kind, 0, run) for run in range(3)] for kind in noise_kinds.KINDS
    }
    assert all(answer == 0 for ends in found.values() for _, answer in ends)
    assert found == {
        k: [noise_kinds.results(scenario, k, 0, run) for run in range(3)] for k in noise_kinds.KINDS
    }
    assert max(found["symmetric"]) < min(found["cap"]) < (100, 0)
