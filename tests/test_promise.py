"""Answers are judged by the promise of their policy: against a naive judge in whole hundredths."""

from types import SimpleNamespace

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.policies.tolerance.acceptable import acceptable_arms
from lexbandits.simulation.promise import Tolerances, kept
from lexbandits.simulation.replicate import Runs
from lexbandits.simulation.results import CellInfo

MODELS = lb.Instance([[0.71, -0.4], [0.83, -0.9], [0.85, -2.1], [0.86, -2.6]])


def settings(**given):
    return {"tolerance": 0.03, "resolution": None, "at_least": None, "order": None, "offered": None, **given}


def runs(recommendation, left, candidates=None):
    """One row per recommendation; left: {arm: objective} of each."""
    shape = (len(recommendation), 4)
    exits = np.zeros((*shape, 3), np.int64)
    for r, gone in enumerate(left):
        for arm, objective in gone.items():
            exits[r, arm] = 10, objective, 3
    active = exits[:, :, 0] == 0
    n = np.arange(shape[0])
    return Runs(n, n + 40, n >= 0, np.array(recommendation), active, exits, n, n)


# --- the naive judge: every number is an integer; on a limit a value counts up to the target


def counted(case, arm, i):
    return case.means[arm][i] if case.targets[i] is None else min(case.means[arm][i], case.targets[i])


def stops_there(case, group, i):
    """Whether a policy that stops where nobody is at the floor, target − resolution, may stop here."""
    if not case.stops or case.targets[i] is None:
        return False
    return all(case.means[arm][i] < case.targets[i] - case.resolution[i] for arm in group)


def naive_answer(case, x):
    group = list(case.offered)
    if x not in group:
        return False
    for i in case.order:
        if stops_there(case, group, i):
            return True
        values = {arm: counted(case, arm, i) for arm in group}
        best = max(values.values())
        reach = case.resolution[i] + (case.tolerance[i] if case.targets[i] is None else 0)
        if values[x] < best - reach:
            return False
        line = values[x] if case.targets[i] is not None else best - case.tolerance[i]
        group = [arm for arm in group if arm == x or values[arm] >= line]
    return True


def naive_course(case, x, left):
    group = set(case.offered)
    for i in case.order:
        if stops_there(case, group, i):
            return x in group
        out = {arm for arm in group if left.get(arm) == i}
        best = max(counted(case, arm, i) for arm in group)
        tie = case.tolerance[i] if case.targets[i] is None else 0
        if any(counted(case, arm, i) >= best - tie for arm in out):
            return False
        if any(counted(case, arm, i) < best - tie - case.resolution[i] for arm in group - out):
            return False
        group -= out
    return x in group


def random_case(rng):
    K, m = int(rng.integers(2, 6)), int(rng.integers(1, 4))
    offered = list(range(K)) if rng.random() < 0.7 else sorted({0, *rng.integers(0, K, 3).tolist()})
    return SimpleNamespace(
        means=rng.integers(60, 72, (K, m)).tolist(),
        tolerance=rng.integers(0, 6, m).tolist(),
        resolution=rng.integers(1, 6, m).tolist(),
        targets=[int(t) if rng.random() < 0.4 else None for t in rng.integers(58, 76, m)],
        order=rng.permutation(m).tolist(),
        offered=offered,
        stops=bool(rng.random() < 0.3),
    )


def promise_of(case):
    hundredth = lambda values: [None if v is None else v / 100 for v in values]  # noqa: E731
    told = settings(
        tolerance=hundredth(case.tolerance),
        resolution=hundredth(case.resolution),
        at_least=hundredth(case.targets),
        order=case.order,
        offered=case.offered,
        if_infeasible="stop" if case.stops else "continue",
    )
    return Tolerances(told, lb.Instance([hundredth(row) for row in case.means]))


def test_acceptable_answers_are_those_of_a_naive_judge():
    rng = np.random.default_rng(3)
    verdicts = []
    for _ in range(1500):
        case = random_case(rng)
        promise = promise_of(case)
        for x in range(len(case.means)):
            verdicts.append(naive_answer(case, x))
            assert promise.accepts(x) == verdicts[-1], (case, x)
    assert 0.2 < np.mean(verdicts) < 0.8


def test_estimates_know_who_is_acceptable_as_the_judge_does():
    rng = np.random.default_rng(5)
    for _ in range(400):
        case = random_case(rng)
        hundredth = lambda values: [None if v is None else v / 100 for v in values]  # noqa: E731
        words = {"tolerance": hundredth(case.tolerance), "resolution": hundredth(case.resolution)}
        words |= {"at_least": hundredth(case.targets), "order": case.order, "offered": case.offered}
        words["if_infeasible"] = "stop" if case.stops else "continue"
        K, m = len(case.means), len(case.order)
        policy = lb.LexElimTol(K, m, delta=0.1, noise=("sub_gaussian", 1.0), **words)
        found = acceptable_arms(policy.state, np.array(case.means) / 100)
        assert found.tolist() == [naive_answer(case, x) for x in range(K)], case


def test_estimates_know_who_is_acceptable_by_percentages_of_a_mean():
    words = {"delta": 0.1, "tolerance": 0.1, "resolution": 0.1, "noise": "gaussian"}
    means = np.array([[5.0], [4.1], [3.9], [3.0]])
    of_best = lb.LexElimTol(4, 1, reference="best", **words)
    of_last = lb.LexElimTol(4, 1, reference=3, **words)
    assert acceptable_arms(of_best.state, means).tolist() == [True, True, False, False]
    assert acceptable_arms(of_last.state, means).tolist() == [True, False, False, False]


def test_the_course_of_a_run_is_judged_as_by_a_naive_judge():
    rng = np.random.default_rng(4)
    verdicts = []
    for _ in range(3000):
        case = random_case(rng)
        K, m = len(case.means), len(case.order)
        x = int(rng.choice(case.offered))
        left = {a: int(rng.integers(m)) for a in range(K) if a != x and rng.random() < 0.7}
        verdicts.append(naive_course(case, x, left))
        assert promise_of(case).accepts_course(x, left) == verdicts[-1], (case, x, left)
    assert 0.05 < np.mean(verdicts) < 0.95


# --- by hand


@pytest.mark.parametrize(
    ("told", "accepted"),
    [
        (settings(tolerance=[0.03, 0.2], resolution=[0.01, 0.2]), {1}),  # 0.86 − 0.83 is 0.03, not more
        (settings(tolerance=[0.02, 0.2], resolution=[0.005, 0.3]), {2, 3}),  # 2.6 − 2.1 is 0.5
        (settings(tolerance=[0.02, 0.2], resolution=[0.005, 0.3 - 1e-12]), {2}),
        (settings(tolerance=[0.02, 0.2], resolution=[0.01, 0.1]), {1, 2}),  # in between either may happen
        (settings(tolerance=[0.02, 0.2], resolution=[0.01 - 1e-12, 0.1]), {2}),
        (settings(tolerance=[0.03, 0.2], order=[1, 0]), {0}),
        (settings(tolerance=[0.03, 0.2], offered=[2, 3]), {2}),
        (settings(tolerance=[0.03, 0.2], at_least=[0.83, None]), {1}),
        (settings(tolerance=[0.03, 0.2], at_least=[0.84, None], resolution=[0.005, 0.2]), {2}),
        (settings(tolerance=[0.03, 0.2], at_least=[0.84, None], resolution=[0.01, 0.2]), {1, 2}),  # 1 is at L
        (settings(tolerance=[0.03, 0.2], at_least=[0.9, None], resolution=[0.005, 0.2]), {3}),  # nobody
        (settings(tolerance=[0.03, 0.2], at_least=[0.9, None], resolution=[0.01, 0.6]), {2, 3}),
        (settings(tolerance=[0.03, 0.2], at_least=[None, -0.9]), {1}),
        (settings(tolerance=[0.03, 0.2], at_least=[None, -0.5], resolution=[0.03, 0.1]), {1}),
    ],
)
def test_what_is_acceptable_among_four_models(told, accepted):
    promise = Tolerances(told, MODELS)
    assert {arm for arm in range(4) if promise.accepts(arm)} == accepted


def test_a_run_may_be_right_by_its_own_course():
    # Arm 2, in between on the first objective, stays and beats 1 on the second; 0 is then best on the third.
    instance = lb.Instance([[0.85, 0.45, 1.0], [0.9, 0.38, 5.0], [0.85, 0.5, 0.0], [0.2, 0.0, 0.0]])
    told = settings(tolerance=[0.04, 0.1, 0.1], resolution=[0.02, 0.05, 0.05])
    assert not Tolerances(told, instance).accepts(0)
    right, wrong = {3: 0, 1: 1, 2: 2}, {3: 0, 2: 0, 1: 1}
    judged = kept("LexElimTol", told, instance, runs([0, 0, 1], [right, wrong, {}]))
    assert judged.tolist() == [True, False, True]


def test_who_settles_everything_must_be_right_about_every_arm():
    # 1 is the answer either way; but 2 is within the tolerance of the best, 3, and 0 is not within the reach
    told = settings(tolerance=[0.03, 0.2], resolution=[0.01, 0.2])
    right, dropped, spared = {0: 0, 2: 1, 3: 1}, {0: 0, 2: 0, 3: 1}, {2: 1, 3: 1}
    made = runs([1, 1, 1, 1], [right, dropped, spared, dropped])
    made = made._replace(stopped=np.array([True, True, True, False]))
    assert kept("LexElimTol", {**told, "stop_when": "answer"}, MODELS, made).all()
    assert kept("LexElimTol", {**told, "stop_when": "all"}, MODELS, made).tolist() == [
        True,
        False,
        False,
        True,
    ]


def test_results_judge_a_policy_by_its_own_promise():
    told = settings(tolerance=[0.03, 0.2])
    made = runs([1, 3, 0], [{0: 0, 2: 1, 3: 1}, {0: 0, 1: 0, 2: 0}, {}])
    cells = {
        name: CellInfo(name, told, MODELS, 100, "per pull", None, {}) for name in ("LexElimTol", "LexElimIn")
    }
    results = lb.simulation.Results(0, cells, dict.fromkeys(cells, made))
    frame = results.frame().set_index("cell")
    assert frame.loc["LexElimTol"].correct.tolist() == [True, False, False]
    assert frame.loc["LexElimIn"].correct.tolist() == [False, True, False]
    assert frame.lex_optimal.tolist() == [False, True, False] * 2
    assert results.error_rates().wrong.tolist() == [2, 2]


def test_tied_arms_may_not_be_dropped_even_without_a_tolerance():
    instance = lb.Instance([[1.0, 0.0], [1.0, 1.0], [0.5, 0.0], [0.0, 0.0]])
    told = settings(tolerance=0.0, resolution=0.1)
    promise = Tolerances(told, instance)
    assert not promise.accepts_course(0, {1: 0, 2: 0, 3: 0})
    assert promise.accepts_course(1, {2: 0, 3: 0, 0: 1})
