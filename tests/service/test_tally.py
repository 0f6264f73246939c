"""Counts that are only ever brought up to date are those of who counts everything anew."""

import random

import numpy as np
import pytest

from lexbandits.study.core.trial_columns import EXPIRED, OPEN, STATES
from lexbandits.study.storage.memory import MemoryStorage
from lexbandits.views.trial_counts import tally_of
from support.journals import replay_of
from support.questions import create, measure


def plainly(projection):
    """By arm and state; by worker how many were resolved, and when it was last heard of."""
    by_arm = np.zeros((len(projection.arms), len(STATES)), int)
    resolved, heard = [0] * len(projection.workers), [-np.inf] * len(projection.workers)
    for number in range(len(projection)):
        state, worker = projection.state[number], projection.worker[number]
        by_arm[projection.arm[number], state] += 1
        if worker >= 0:
            heard[worker] = max(heard[worker], projection.asked[number])
            if state not in (OPEN, EXPIRED):
                resolved[worker] += 1
                heard[worker] = max(heard[worker], projection.resolved[number])
    return by_arm, resolved, heard


@pytest.mark.parametrize("seed", range(5))
def test_the_same_as_counting_anew(seed):
    rng, storage = random.Random(seed), MemoryStorage()
    now = [1e9]
    storage.time = lambda: now[0]
    study = create(storage, max_arms=5, lease="10s", max_failures=10**6)
    trials, looks = [], 0
    for step in range(400):
        now[0] += rng.expovariate(1)
        if rng.random() < 0.5 or not trials:
            trials += study.ask_many(rng.randint(1, 3), worker=rng.choice([None, "ann", "bob", f"w{step}"]))
        else:
            trial = trials.pop(rng.randrange(len(trials)))
            act = rng.choice([study.tell, study.tell, study.fail, study.release])
            act(trial, measure(trial.arm, trial.item)) if act == study.tell else act(trial)
        if step in (100, 200):
            study.add_arm(f"arm {step}")
        if rng.random() < 0.2:
            replay = replay_of(study)
            tally, (by_arm, resolved, heard) = tally_of(replay), plainly(replay.projection)
            assert tally.by_arm.tolist() == by_arm.tolist()
            assert tally.resolved.tolist() == resolved
            assert tally.heard.tolist() == heard
            looks += 1
    assert looks > 40
    counts = by_arm.sum(axis=0)
    assert all(counts[STATES.index(state)] for state in STATES if state != "imported"), counts
    assert len(tally._moving) == counts[OPEN] + counts[EXPIRED]


def test_copies_of_a_fold_are_counted_on():
    """And one that another fold was copied from is counted anew."""
    tallies = []
    for arms in (["a", "b"], ["a", "b", "c"]):
        study = create("memory", arms=arms)
        for asked in (3, 6):
            study.ask_many(3, worker="w")
            tallies.append(tally_of(replay_of(study).frozen()))
            assert tallies[-1].by_arm.shape[0] == len(arms)
            assert tallies[-1].by_arm.sum() == asked
    assert tallies[0] is tallies[1] is not tallies[2]
