"""Counts that are only ever brought up to date are those of who counts everything anew."""

import random

import numpy as np
import pytest

from lexbandits.picture.tally import tally_of
from lexbandits.study.record.trials import EXPIRED, OPEN, STATES
from lexbandits.study.storage.memory import MemoryStorage
from support.journals import fold_of
from support.worlds import create, measure


def plainly(ledger):
    """By arm and state; by worker how many were resolved, and when it was last heard of."""
    by_arm = np.zeros((len(ledger.arms), len(STATES)), int)
    resolved, heard = [0] * len(ledger.workers), [-np.inf] * len(ledger.workers)
    for number in range(len(ledger)):
        state, worker = ledger.state[number], ledger.worker[number]
        by_arm[ledger.arm[number], state] += 1
        if worker >= 0:
            heard[worker] = max(heard[worker], ledger.asked[number])
            if state not in (OPEN, EXPIRED):
                resolved[worker] += 1
                heard[worker] = max(heard[worker], ledger.resolved[number])
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
            fold = fold_of(study)
            tally, (by_arm, resolved, heard) = tally_of(fold), plainly(fold.ledger)
            assert tally.by_arm.tolist() == by_arm.tolist()
            assert tally.resolved.tolist() == resolved
            assert tally.heard.tolist() == heard
            looks += 1
    assert looks > 40
    counts = by_arm.sum(axis=0)
    assert all(counts[STATES.index(state)] for state in STATES if state != "imported"), counts
    assert len(tally._moving) == counts[OPEN] + counts[EXPIRED]


def test_another_ledger_is_counted_anew():
    folds = []
    for arms in (["a", "b"], ["a", "b", "c"]):
        study = create("memory", arms=arms)
        study.ask_many(3, worker="w")
        folds.append(fold_of(study))
        folds[-1].memory |= folds[0].memory
        assert tally_of(folds[-1]).by_arm.shape[0] == len(arms)
        assert tally_of(folds[-1]).by_arm.sum() == 3
