"""What every policy must do. A new one adds one line to `EXAMPLES` of support/cells.py."""

import ast
import copy
import json
import os
import pickle
import subprocess
import sys
from enum import EnumType, IntEnum
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lexbandits as lb
from lexbandits import policies
from lexbandits._jit import INTERPRETED, fused
from lexbandits.forecasting import scenarios
from lexbandits.policies import algorithms, pool_passes
from lexbandits.policies.base import add_reward
from lexbandits.policies.tolerance import state, stopping
from lexbandits.policies.tolerance.finite import finite_state
from support.cells import EXAMPLES

K, M = 4, 2

RANDOMISED = ("MTLO", "PFLex", "ThompsonSampling")
ENDLESS = {"IMED", "KLUCB", "LexDMED", "LexIMED", "MOSSAnytime", "MTLO", "PFLex", "RoundRobin"}
ENDLESS |= {"ThompsonSampling", "UCB1"}


def make(name, n_arms=K, n_objectives=M, **changes):
    given = {**EXAMPLES[name], **changes}
    return lb.policies.BY_NAME[name](n_arms, n_objectives, **given)


def test_every_policy_has_an_example():
    assert set(EXAMPLES) == set(lb.policies.BY_NAME)


def test_nothing_beside_it_imports_an_algorithm():
    homes = {policy.__module__ for policy in lb.policies.BY_NAME.values()}
    sources = set(Path(policies.__file__).parent.glob("[!_]*.py"))
    for source in sources - {Path(algorithms.__file__)}:
        for line in ast.walk(ast.parse(source.read_text("utf-8"))):
            if isinstance(line, (ast.Import, ast.ImportFrom)):
                home = getattr(line, "module", None)
                named = {f"{home}.{name.name}" if home else name.name for name in line.names}
                assert not homes & {home, *named}, f"{source.name}, line {line.lineno}"


@pytest.fixture(params=sorted(EXAMPLES))
def name(request):
    return request.param


values = st.integers(-8, 8).map(lambda k: k / 8) | st.floats(-2, 2, width=32)
# larger means for later arms, so that eliminations do happen within a short history
histories = st.lists(st.tuples(st.integers(0, K - 1), st.tuples(*[values] * M)), max_size=60)


def biased(arm, reward):
    return [reward[0] + 3.0 * (arm >= K - 2), reward[1] + 3.0 * (arm == K - 1)]


def drive(policy, rng, rounds):
    """A history of a run by ask and tell."""
    history = []
    for _ in range(rounds):
        if policy.finished:
            break
        arm = policy.ask()
        reward = biased(arm, rng.normal(0, 0.3, M))
        policy.tell(arm, reward)
        history.append((arm, reward))
    return history


def observable(policy):
    means = policy.means
    return (
        policy.finished,
        policy.candidates,
        policy.recommendation,
        policy.rounds,
        policy.pulls.tolist(),
        np.where(np.isnan(means), None, means).tolist(),
        policy.eliminations,
        policy.ask(),
    )


@pytest.mark.interpreted
def test_ask_changes_nothing(name):
    policy = make(name)
    drive(policy, np.random.default_rng(1), 25)
    before = pickle.dumps(policy)
    answers = {policy.ask() for _ in range(3)} | {policy.ask(pending=[])}
    policy.ask(pending=[0, 1, 1])
    assert len(answers) == 1
    assert pickle.dumps(policy) == before


@given(history=histories)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_two_policies_told_the_same_history_are_in_the_same_state(name, history):
    """Also for histories no `ask` suggested: rewards come late, out of order, for arms that left."""
    one, two = make(name), make(name)
    history = [(arm, biased(arm, reward)) for arm, reward in history]
    for arm, reward in history:
        one.tell(arm, reward)
        one.ask()
    two.tell_many([arm for arm, _ in history], [reward for _, reward in history])
    assert one == two
    assert observable(one) == observable(two)
    assert one.rounds == len(history) == one.pulls.sum()


@given(history=histories)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_recommendation_is_a_candidate_and_candidates_only_leave(name, history):
    policy = make(name)
    candidates = set(policy.candidates)
    assert candidates == set(range(K))
    for arm, reward in history:
        was_finished = policy.finished
        policy.tell(arm, biased(arm, reward))
        now = policy.candidates
        assert now
        assert list(now) == sorted(now)
        assert set(now) <= candidates
        assert policy.recommendation in now
        assert policy.finished or not was_finished
        if was_finished:
            assert set(now) == candidates
            assert policy.ask() == policy.recommendation
        candidates = set(now)
    out = [e.arm for e in policy.eliminations]
    assert len(set(out)) == len(out)
    assert not set(out) & candidates
    assert all(e.round >= 1 for e in policy.eliminations)
    assert all(e.rival != e.arm and 0 <= e.objective < M for e in policy.eliminations)


def test_means_are_the_averages_of_what_was_told(name):
    policy = make(name)
    history = drive(policy, np.random.default_rng(2), 30)
    for arm in range(K):
        rewards = [reward for a, reward in history if a == arm]
        assert policy.pulls[arm] == len(rewards)
        if rewards:
            np.testing.assert_allclose(policy.means[arm], np.mean(rewards, axis=0), rtol=1e-12)
        else:
            assert np.isnan(policy.means[arm]).all()


def test_pulls_in_flight_are_spread_over_the_arms(name):
    """With nothing told, a full hand of pending pulls must not all be for one arm."""
    policy = make(name)
    pending = []
    for _ in range(2 * K):
        arm = policy.ask(pending)
        assert 0 <= arm < K
        pending.append(arm)
    if lb.policies.BY_NAME[name].round_robin:
        assert pending == list(range(K)) * 2


@pytest.mark.interpreted
def test_rewards_in_any_order_within_a_pass_are_accepted(name):
    policy = make(name)
    rng = np.random.default_rng(3)
    for _ in range(20):
        pending = []
        for _ in range(K):
            pending.append(policy.ask(pending))
        for arm in rng.permutation(pending):
            policy.tell(int(arm), biased(arm, rng.normal(0, 0.3, M)))
    assert policy.rounds == 20 * K


@pytest.mark.parametrize("name", sorted(EXAMPLES.keys() - ENDLESS))
def test_a_reward_after_the_end_updates_counts_and_sums_only(name):
    policy = make(name)
    drive(policy, np.random.default_rng(4), 20_000)
    assert policy.finished
    before = policy.candidates, policy.recommendation, policy.eliminations
    pulls = policy.pulls
    for arm in range(K):
        policy.tell(arm, [100.0 * arm, -100.0])
    assert policy.finished
    assert (policy.candidates, policy.recommendation, policy.eliminations) == before
    assert (policy.pulls == pulls + 1).all()
    assert policy.ask() == policy.recommendation


def test_copies_are_independent(name):
    policy = make(name)
    drive(policy, np.random.default_rng(5), 15)
    seen = observable(policy)
    for clone in (copy.copy(policy), copy.deepcopy(policy), pickle.loads(pickle.dumps(policy))):
        assert clone == policy
        assert observable(clone) == seen
        clone.tell(0, [0.5, 0.5])
        assert clone != policy
        assert observable(policy) == seen


def test_settings_go_through_json_and_make_an_equal_policy(name):
    policy = make(name)
    again = lb.policies.BY_NAME[policy.name](**json.loads(json.dumps(policy.settings)))
    assert policy.name == name
    assert again == policy
    assert again.settings == policy.settings
    policy.settings["n_arms"] = 99
    assert policy.n_arms == K


def test_results_handed_out_are_copies(name):
    policy = make(name)
    drive(policy, np.random.default_rng(7), 10)
    before = pickle.dumps(policy)
    policy.pulls[:] = 99
    policy.means[:] = 99
    assert pickle.dumps(policy) == before


@pytest.mark.interpreted
def test_ask_and_tell_and_simulate_play_the_same_arms(name):
    instance = lb.Instance([[0.2, 0.1], [0.9, 0.5], [0.3, 0.9], [0.9, 0.8]], noise_sd=0.2)
    policy = make(name)
    trajectory = lb.simulate(policy, instance, horizon=600, seed=11, replication=3)
    assert policy == make(name)  # untouched
    again = lb.simulate(policy, instance, horizon=600, seed=11, replication=3)
    assert (trajectory.arms == again.arms).all()
    rng = np.random.Generator(np.random.SFC64(np.random.SeedSequence(11, spawn_key=(3,))))
    played = []
    policy.start_run(11, 3)
    while not policy.finished and len(played) < 600:
        arm = policy.ask()
        policy.tell(arm, instance.means[arm] + 0.2 * rng.standard_normal(M))
        played.append(arm)
    assert played == trajectory.arms.tolist()
    assert trajectory.finished == policy.finished
    assert trajectory.candidates == policy.candidates
    assert trajectory.recommendation == policy.recommendation
    assert trajectory.eliminations == policy.eliminations


BAD_TELLS = [
    ((0, [np.nan, 0.0]), ValueError),
    ((0, [np.inf, 0.0]), ValueError),
    ((0, [1.0]), ValueError),
    ((0, [1.0, 2.0, 3.0]), ValueError),
    ((0, 1.0), ValueError),
    ((0, [[1.0, 2.0]]), ValueError),
    ((K, [0.0, 0.0]), ValueError),
    ((-1, [0.0, 0.0]), ValueError),
    ((0.5, [0.0, 0.0]), TypeError),
    (("0", [0.0, 0.0]), TypeError),
    ((True, [0.0, 0.0]), TypeError),
    ((0, [10**400, 0]), ValueError),
    ((0, [1e308, 0.0]), ValueError),  # finite, but its sums need not be
    ((0, np.array([1e200, 0.0], dtype=">f8")), ValueError),
    ((0, ["a", "b"]), TypeError),
    ((0, ["1.0", "2.0"]), TypeError),
    ((0, [1j, 0.0]), TypeError),
]


@pytest.mark.parametrize(("call", "error"), BAD_TELLS)
def test_a_bad_reward_is_refused_before_anything_changes(name, call, error):
    policy = make(name)
    drive(policy, np.random.default_rng(8), 9)
    before = pickle.dumps(policy)
    if policy.accepts_missing and call[1] is BAD_TELLS[0][0][1]:
        return  # nan: not measured
    with pytest.raises(error):
        policy.tell(*call)
    with pytest.raises(error):
        policy.tell_many([1, call[0]] if call[0] is not True else [True, False], [[0.0, 0.0], call[1]])
    assert pickle.dumps(policy) == before


def test_a_missing_value_is_accepted_only_where_the_class_says_so(name):
    policy = make(name)
    if policy.accepts_missing:
        policy.tell(0, [None, 1.0])
        policy.tell_many([1, 2], [[0.5, None], [1.0, np.nan]])
        assert policy.rounds == 3
    else:
        before = pickle.dumps(policy)
        with pytest.raises(ValueError, match="measured"):
            policy.tell(0, [None, 1.0])
        with pytest.raises(ValueError, match="measured"):
            policy.tell_many([0, 1], [[1.0, 1.0], [None, 1.0]])
        assert pickle.dumps(policy) == before


def test_a_masked_value_is_not_measured(name):
    policy = make(name)
    hidden = np.ma.masked_array([[7.0, 1.0], [0.5, 0.5]], mask=[[True, False], [False, False]])
    for call in (
        lambda: policy.tell(0, hidden[0]),
        lambda: policy.tell(0, [np.ma.masked, 1.0]),
        lambda: policy.tell_many([0, 1], hidden),
        lambda: policy.tell_many([0, 1], list(hidden)),
    ):
        if policy.accepts_missing:
            call()
            assert np.isnan(policy.means[0, 0])
        else:
            before = pickle.dumps(policy)
            with pytest.raises(ValueError, match="measured"):
                call()
            assert pickle.dumps(policy) == before
    policy.tell(1, hidden[1])
    assert policy.pulls[1] >= 1


@pytest.mark.parametrize("kind", [">f8", "<f8", ">f4", "float16", "longdouble", ">i4", object])
def test_numbers_of_any_make_are_the_same_numbers(name, kind):
    one, other = make(name), make(name)
    rewards = np.array([[0.0, 1.0], [2.0, 3.0]])
    one.tell(0, rewards[1])
    one.tell_many([1, 2], rewards)
    other.tell(0, rewards[1].astype(kind))
    other.tell_many([1, 2], rewards.astype(kind))
    assert one == other


@pytest.mark.parametrize(
    ("rewards", "says"),
    [
        ([[1.0, 2.0], [3.0, "four"]], r"numbers, got \[3\.0, 'four'\] in row 1"),
        ([[1.0, 2.0], [3.0, None]], r"measured, got \[3\.0, None\] in row 1"),
        ([[1.0, 2.0], [3.0, np.inf]], r"finite .* got \[3\.0, inf\] in row 1"),
        ([[1.0, 2.0]], r"shape \(2, 2\), one row per pull, got \(1, 2\)"),
    ],
)
def test_an_error_in_a_history_names_its_row(rewards, says):
    with pytest.raises((TypeError, ValueError), match=says):
        make("UCB1").tell_many([0, 1], rewards)
    with pytest.raises(ValueError, match="got 9 in row 1"):
        make("UCB1").tell_many([0, 9], [[0.0, 0.0]] * 2)


def test_many_asks_at_once_are_as_many_asks(name):
    policy = make(name)
    drive(policy, np.random.default_rng(6), 13)
    before, flying = pickle.dumps(policy), [2, 0, 2]
    expected = []
    for _ in range(9):
        expected.append(policy.ask([*flying, *expected]))
    assert policy.ask_many(9, pending=flying) == expected
    assert policy.ask_many(0) == []
    assert pickle.dumps(policy) == before
    with pytest.raises(ValueError, match="count"):
        policy.ask_many(-1)


@pytest.mark.parametrize("pending", [[K], [-1], [0, 99]])
def test_pending_arms_are_checked(name, pending):
    with pytest.raises(ValueError, match="arm"):
        make(name).ask(pending)


def test_pending_must_be_arms(name):
    policy = make(name)
    assert policy.ask(pending=iter([0])) == policy.ask(pending=[0]) == policy.ask(pending=np.array([0]))
    assert policy.ask(pending=np.array([], int)) == policy.ask()
    for pending in (None, 5):
        with pytest.raises(TypeError, match="pending"):
            policy.ask(pending)


def test_no_history_is_fine(name):
    policy = make(name)
    policy.tell_many([], [])
    assert policy.rounds == 0
    assert policy == make(name)


@pytest.mark.parametrize("change", [{"n_arms": 0}, {"n_arms": -3}, {"n_objectives": 0}])
def test_shapes_must_be_positive(name, change):
    with pytest.raises(ValueError, match="n_"):
        lb.policies.BY_NAME[name](**{"n_arms": K, "n_objectives": M, **EXAMPLES[name], **change})


def test_settings_are_checked(name):
    if "delta" in EXAMPLES[name]:
        for delta in (0, 1, -0.1, 1.5, float("nan")):
            with pytest.raises(ValueError, match="delta"):
                make(name, delta=delta)
        with pytest.raises(TypeError, match="delta"):
            make(name, delta="0.1")
    if "noise_sd" in EXAMPLES[name]:
        for noise_sd in (0, -1.0, float("inf"), [1.0, 0.0], [1.0, 1.0, 1.0]):
            with pytest.raises(ValueError, match="noise_sd"):
                make(name, noise_sd=noise_sd)
    if "tradeoff" in EXAMPLES[name]:
        for tradeoff in (-1.0, float("inf"), float("nan")):
            with pytest.raises(ValueError, match="tradeoff"):
                make(name, tradeoff=tradeoff)
    if "optimal_set_sizes" in EXAMPLES[name]:
        for sizes in ([1, 2], [K + 1, 1], [2, 2], [1], [2, 1, 1], [0, 1]):
            with pytest.raises(ValueError, match="optimal_set_sizes"):
                make(name, optimal_set_sizes=sizes)
        make(name, optimal_set_sizes=[1, 1])
        make(name, optimal_set_sizes=(K, 1))


def test_one_arm_needs_no_pull_where_the_policy_stops(name):
    changes = {"optimal_set_sizes": [1, 1]} if "optimal_set_sizes" in EXAMPLES[name] else {}
    if "target_size" in EXAMPLES[name]:
        changes["target_size"] = 1
    policy = make(name, n_arms=1, **changes)
    assert policy.candidates == (0,)
    assert policy.recommendation == 0
    assert policy.ask() == 0
    policy.tell(0, [1.0, 2.0])


class GreedyState(NamedTuple):
    arms: lb.policies.Arms


def greedy_choose(state, pending):
    untried = np.flatnonzero(state.arms.pulls + pending == 0)
    return int(untried[0]) if untried.size else int(np.argmax(state.arms.means[:, 0]))


def greedy_observe(state, arm, reward):
    add_reward(state.arms, arm, reward)


class Greedy(lb.Policy):
    """A policy written outside the package, of plain functions that are not compiled."""

    rules = lb.policies.Rules(greedy_choose, greedy_observe, lambda state: False)

    def __init__(self, n_arms, n_objectives):
        super().__init__(n_arms, n_objectives)
        self.state = GreedyState(lb.policies.untried(n_arms, n_objectives))


class GreedyCompiled(Greedy):
    """The same of kernels."""

    rules = lb.policies.Rules(
        lb.policies.kernel(greedy_choose),
        lb.policies.kernel(greedy_observe),
        lb.policies.kernel(lambda state: False),
    )


@pytest.mark.parametrize("outside", [Greedy, GreedyCompiled])
def test_a_policy_outside_the_package_works_like_a_built_in_one(outside):
    instance = lb.random_instance(K, M, seed=1)
    trajectory = lb.simulate(outside(K, M), instance, horizon=50, seed=0)
    assert trajectory.rounds == 50
    assert not trajectory.finished
    results = lb.sweep([lb.simulation.Cell("greedy", outside(K, M), instance, 50)], replications=2)
    assert results.frame()["rounds"].tolist() == [50, 50]
    policy = outside(K, M)
    policy.tell_many([0, 1], [[1.0, 1.0], [2.0, 2.0]])
    assert policy.ask() == 2


# --- compiled code on disk

FIRST_STEPS = """
import lexbandits as lb
policy = lb.RoundRobin(3, 2)
policy.tell(policy.ask(), [1.0, 2.0])
policy.tell_many([1, 2], [[0.0, 0.0], [1.0, 1.0]])
print(policy.pulls.tolist(), policy.finished)
"""


@pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
def test_compilation_is_announced_once_and_the_next_process_needs_none(tmp_path):
    environment = {
        **os.environ,
        "XDG_CACHE_HOME": str(tmp_path),
        "NUMBA_CACHE_DIR": "",
        "LEXBANDITS_JIT": "1",
    }
    runs = [
        subprocess.run([sys.executable, "-c", FIRST_STEPS], env=environment, capture_output=True, text=True)
        for _ in range(2)
    ]
    assert [run.stdout for run in runs] == ["[1, 1, 1] False\n"] * 2
    assert [run.stderr.count("compiling") for run in runs] == [1, 0]


def test_a_loop_over_kernels_that_close_over_something_is_never_taken_for_another():
    def raised(n):
        def add(x):
            return x + n

        add = lb.policies.kernel(add)

        def loop(x):
            return add(add(x))

        return fused(loop, add)

    assert [raised(n)(3) for n in (1, 2, 1)] == [5, 7, 5]


@pytest.mark.parametrize("module", [scenarios, pool_passes, state, stopping, finite_state])
def test_integers_that_kernels_use_are_the_members_of_their_enums(module):
    kinds = [each for each in vars(module).values() if isinstance(each, EnumType)]
    enums = [each for each in kinds if issubclass(each, IntEnum) and each is not IntEnum]
    members = [member for each in enums for member in each if member.name != "VIOLATES"]
    assert len(members) >= 4
    for member in members:
        constant = vars(module)[member.name]
        assert type(constant) is int
        assert constant == member
