"""What counts of a study, told apart pass by pass: its means are the policy's, its intervals are ordinary."""

import math

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.evidence import ordinary
from lexbandits.views.cells import Cells
from lexbandits.views.estimates import Estimates
from support import lives
from support.questions import create, go_on, measure


def naive(study):
    """arm, column -> pass -> value, from the trials that count: told in time, in passes that are complete."""
    found = {}
    replay = study._settled()
    until = replay.policy.until
    for trial in study.trials().to_dict("records"):
        arm = list(replay.projection.arm_names).index(trial["arm"])
        number = replay.projection.pass_of[trial["number"]]
        if trial["state"] in ("told", "imported") and number < until[arm]:
            for column, objective in enumerate(replay.projection.spec.objectives):
                value = trial[objective.name]
                if value is not None and not math.isnan(value):
                    found.setdefault((arm, column), {})[number] = value
    return found


@pytest.mark.parametrize("seed", range(40))
def test_means_are_those_of_the_policy_in_every_life(seed):
    changes = {} if seed % 2 else {"items": [f"i{k}" for k in range(30)], "scope": "items"}
    actions = lives.ACTIONS if seed % 2 else lives.ON_A_LIST
    study = lives.in_memory(**changes).play(lives.script_of(seed, 400, actions))
    estimates, events = Estimates.of(study), [event.kind for event in study.events()]
    if "finished" in events and "told_late" in events[events.index("finished") :]:
        return  # a hole that was filled after the end is in the table, but not in the answer's means
    cells = Cells(estimates.replay)
    for arm in range(len(estimates.arms)):
        for column in range(len(estimates.objectives)):
            mean, n = estimates.mean(arm, column), int(estimates.counts[arm, column])
            found = cells.arm(arm, column, mean)
            assert found.results == n
            if n:
                values = cells._table[1][:, arm, column]
                assert np.nanmean(values) == pytest.approx(mean, abs=1e-12)
            if found.low is not None:
                assert found.low <= mean <= found.high
            for other in range(len(estimates.arms)):
                lead = estimates.lead(arm, other, column)
                if arm != other and lead.results:
                    apart = cells.difference(arm, other, column, lead.mean)
                    assert apart.results == lead.results or seed % 2 == 0  # a list has its own count
                    if apart.low is not None:
                        assert apart.low <= lead.mean <= apart.high


def test_intervals_are_the_ordinary_ones_of_common_passes():
    study = create()
    go_on(study, 100)
    estimates, known = Estimates.of(study), naive(study)
    cells = Cells(estimates.replay)
    for column, objective in enumerate(estimates.objectives):
        for arm in range(3):
            values = np.array(list(known[arm, column].values()))
            expected = ordinary.of_mean(values)
            if objective.noise == "bernoulli":
                expected = ordinary.of_share(int(values.sum()), values.size)
            found = cells.arm(arm, column, estimates.mean(arm, column))
            assert (found.low, found.high) == pytest.approx(expected.within(*objective.bounds))
        mine, yours = known[1, column], known[2, column]
        common = sorted(mine.keys() & yours.keys())
        pairs = [objective.sign * (mine[k] - yours[k]) for k in common]
        found = cells.difference(1, 2, column, float(np.mean(pairs)))
        expected = ordinary.of_mean(np.array(pairs))
        if objective.noise == "bernoulli":
            of = [(mine[k], yours[k]) for k in common]
            expected = ordinary.of_paired_shares(*(of.count(c) for c in ((1, 1), (1, 0), (0, 1), (0, 0))))
        assert (found.low, found.high) == pytest.approx(expected)
        assert found.results == len(common)


def test_a_complete_list_has_no_interval_and_an_incomplete_one_a_narrower():
    items = [f"i{k}" for k in range(12)]
    x = lb.Objective("x", margin=0.001, noise=("bounded", 0, 100))
    arms = ["small", "large"]
    study = lb.create_study("list", arms=arms, objectives=[x], items=items, scope="items", seed=0)
    widths = []
    while True:
        try:
            trial = study.ask(wait=0)
        except lb.StudyFinished:
            break
        study.tell(trial, {"x": measure(trial.arm, trial.item)["latency"]})
        estimates = Estimates.of(study)
        found = Cells(estimates.replay).arm(0, 0, estimates.mean(0, 0))
        values = list(naive(study).get((0, 0), {}).values())
        if 3 <= len(values) < 12:
            plain = ordinary.of_mean(np.array(values)).within(0, 100)
            assert plain.low <= found.low < found.high <= plain.high
            widths.append((found.high - found.low) / (plain.high - plain.low))
    assert found.low is None
    assert found.results == 12
    assert widths[0] > widths[-1]
    assert widths[-1] < 0.35


def test_missing_values_at_their_worst_widen_it():
    x = lb.Objective("x", margin=0.3, noise="bernoulli", if_missing="worst")
    study = lb.create_study("gaps", arms=["a", "b"], objectives=[x], seed=0)
    for k in range(40):
        trial = study.ask()
        study.tell(trial, {"x": None if k % 8 < 2 else int(trial.arm == "a" or k % 3 == 0)})
    estimates = Estimates.of(study)
    cells = Cells(estimates.replay)
    filled = int(cells._table[0][:, 0].sum())
    values = cells._table[1][:, 0, 0]
    ones, seen = int(np.nansum(values)), int((~np.isnan(values)).sum())
    assert 3 < seen < filled
    found = cells.arm(0, 0, estimates.mean(0, 0))
    assert found.low == ordinary.of_share(ones, filled).low
    assert found.high == ordinary.of_share(ones + filled - seen, filled).high
    assert found.low <= found.mean <= found.high
