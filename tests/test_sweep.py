"""Sweeps: a replication is a simulation, whatever the rewards and whoever wrote the policy."""

import inspect
from functools import partial

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.environments.noise import reward_model, stream
from lexbandits.policies.base import Rules, add_reward, untried
from lexbandits.policies.policy import Policy
from lexbandits.simulation import replicate as replicate_module
from lexbandits.simulation.oracle_settings import with_oracle_settings
from lexbandits.simulation.replicate import SUMS, renewal, replicate
from lexbandits.simulation.sums import PullCounts, count_batch, draw_sum
from support.cells import PAPER, cells, lexelim_in, same


@pytest.mark.parametrize("cell", [0, 1, 3])
def test_a_replication_is_a_simulation(reference, cell):
    name, policy, instance, horizon = cells()[cell]
    for replication in (0, 1, 70):
        run = lb.simulate(policy, instance, horizon=horizon, seed=4, replication=replication)
        runs = reference.runs[name].rows(slice(replication, replication + 1))
        assert runs.rounds[0] == run.rounds
        assert runs.stopped[0] == run.finished
        assert runs.recommendation[0] == run.recommendation
        assert tuple(np.flatnonzero(runs.active[0])) == run.candidates
        assert reference.eliminations(name, replication) == run.eliminations
        assert np.array_equal(runs.pulls[0], np.bincount(run.arms, minlength=10))


def test_common_random_numbers_and_order():
    both = lb.sweep(cells()[:2], replications=3, seed=9)
    alone = lb.sweep(cells()[1::-1], replications=3, seed=9)
    assert both.runs["out"].rounds.tolist() == alone.runs["out"].rounds.tolist()
    assert (
        lb.sweep(cells()[:1], replications=3, seed=8).runs["in"].rounds.tolist()
        != both.runs["in"].rounds.tolist()
    )


class Diary(lb.ThompsonSampling):
    """Holds something that no array can be put back into."""

    def __init__(self, n_arms, n_objectives, **settings):
        super().__init__(n_arms, n_objectives, **settings)
        self.pages = []

    def start_run(self, seed, replication):
        super().start_run(seed, replication)
        self.pages.append(replication)
        assert self.pages == [replication]


class ScreenedDiary(lb.LexElimIn):
    """As the diary, and fast enough to be screened."""

    def __init__(self, n_arms, n_objectives, **settings):
        super().__init__(n_arms, n_objectives, **settings)
        self.pages = []

    def start_run(self, seed, replication):
        self.pages.append(replication)
        assert self.pages == [replication]


class Stone(lb.UCB1):
    """Holds an array that cannot be written."""

    def __init__(self, n_arms, n_objectives, **settings):
        super().__init__(n_arms, n_objectives, **settings)
        self.words = np.broadcast_to(1.0, (n_arms,))


@pytest.mark.parametrize("policy_class", [lb.ThompsonSampling, lb.LexElimPool, Diary, Stone])
def test_a_policy_is_as_new_in_every_run(policy_class):
    told = {"delta": 0.1, "tradeoff": 2.0, "noise_sd": 0.1} if policy_class is lb.LexElimPool else {}
    policy = policy_class(10, 3, **told)
    anew = renewal(policy)
    run = anew()
    run.tell_many([0, 1, 2] * 50, np.arange(450.0).reshape(150, 3))
    run.state, run.leftover = None, 1
    assert anew() == policy.fresh()
    assert vars(anew()).keys() == vars(policy).keys()
    results = lb.sweep([lb.simulation.Cell("a", policy, PAPER, 2000)], replications=4, seed=3)
    for replication in range(4):
        run = lb.simulate(policy, PAPER, horizon=2000, seed=3, replication=replication)
        assert results.runs["a"].pulls[replication].tolist() == np.bincount(run.arms, minlength=10).tolist()


@pytest.mark.parametrize("name", sorted(lb.policies.BY_NAME))
def test_every_policy_can_be_run_again_with_a_scale_per_objective(name):
    instance = lb.Instance([[0.9, 0.5], [0.9, 0.2], [0.3, 0.9]], noise_sd=[0.3, 0.2])
    takes = inspect.signature(lb.policies.BY_NAME[name]).parameters
    chosen = {"delta": 0.1, "alpha": 2.0, "epsilon": 0.5, "horizon": 400}
    policy = with_oracle_settings(
        lb.policies.BY_NAME[name], instance, **{key: chosen[key] for key in chosen.keys() & takes.keys()}
    )
    runs = lb.sweep([lb.simulation.Cell("again", policy, instance, 400)], replications=3).runs["again"]
    for replication in range(3):
        alone = replicate(policy, instance, horizon=400, seed=0, first=replication, count=1)
        for together, apart in zip(runs.rows([replication]), alone, strict=True):
            assert together.tobytes() == apart.tobytes()


def test_runs_on_a_screen_are_the_same_however_they_are_cut(monkeypatch):
    policy, how = lexelim_in(), {"horizon": 2000, "seed": 3, "first": 5, "count": 6}
    together = replicate(policy, PAPER, **how)
    assert 0 < together.stopped.sum() < 6, "some end, some are cut at the horizon"
    diary = replicate(ScreenedDiary(**policy.settings), PAPER, **how)
    monkeypatch.setattr(replicate_module, "CALL", 97)  # rounds a call, in the middle of runs
    in_parts = replicate(policy, PAPER, **how)
    monkeypatch.setattr(replicate_module, "KEPT", 1)  # one run a block
    apart = replicate(policy, PAPER, **how)
    for other in (diary, in_parts, apart):
        for one, another in zip(together, other, strict=True):
            assert one.tobytes() == another.tobytes()


class Uncompiled(lb.LexElimOut):
    rules = Rules(*(rule and partial(rule) for rule in lb.LexElimOut.rules))  # no kernels


def test_rules_that_are_not_compiled_are_screened_too():
    told = {"delta": 0.3, "optimal_set_sizes": PAPER.optimal_set_sizes, "noise_sd": 0.05}
    how = {"horizon": 1000, "seed": 1, "first": 0, "count": 2}
    plain = replicate(Uncompiled(10, 3, **told), PAPER, **how)
    compiled = replicate(lb.LexElimOut(10, 3, **told), PAPER, **how)
    assert plain.stopped.all()
    for one, another in zip(plain, compiled, strict=True):
        assert one.tobytes() == another.tobytes()


def test_runs_on_a_screen_can_be_cancelled_between_two_calls(monkeypatch):
    monkeypatch.setattr(replicate_module, "CALL", 97)
    asked = iter([False, False, True])
    with pytest.raises(InterruptedError):
        replicate(lexelim_in(), PAPER, horizon=2000, seed=3, first=0, count=6, cancelled=lambda: next(asked))


# --- sums of pulls


def test_sums_of_pulls_are_said_and_cut_at_the_horizon(reference):
    assert reference.streams == {"in": "per pull", "out": "per pull", "ege": SUMS, "ucb": "per pull"}
    assert reference.frame().query("cell == 'ege'").correct.mean() > 0.9
    ege = cells()[2].policy
    full = reference.runs["ege"]
    short = lb.sweep([lb.simulation.Cell("short", ege, PAPER, 1001)], replications=3, seed=4)
    assert short.runs["short"].rounds.tolist() == [1001] * 3
    assert not short.runs["short"].stopped.any()
    assert short.runs["short"].pulls.sum(axis=1).tolist() == [1001] * 3
    exact = int(full.rounds[0])
    whole = lb.sweep(
        [lb.simulation.Cell("a", ege, PAPER, exact), lb.simulation.Cell("b", ege, PAPER, exact - 1)],
        replications=1,
        seed=4,
    )
    assert whole.frame().stopped.tolist() == [True, False]
    assert np.allclose(whole.regret("a", [exact])[0], reference.regret("ege", [exact])[0])


def test_sums_have_the_law_of_pulls():
    """The same policy with and without sums: average pulls agree within five standard errors."""
    instance = lb.Instance([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], noise_sd=0.5)
    settings = {"delta": 0.2, "noise_sd": 0.5, "scale": 200.0}

    class PullByPull(lb.ExponentialGapElimination):
        rules = lb.ExponentialGapElimination.rules._replace(batch=None, observe_sum=None)

    pair = [
        lb.simulation.Cell("sums", lb.ExponentialGapElimination(3, 2, **settings), instance, 10**6),
        lb.simulation.Cell("pulls", PullByPull(3, 2, **settings), instance, 10**6),
    ]
    frame = lb.sweep(pair, replications=600, seed=1).frame()
    groups = frame.groupby("cell").rounds
    error = np.sqrt((groups.var() / 600).sum())
    assert abs(groups.mean()["sums"] - groups.mean()["pulls"]) < 5 * error


@pytest.mark.parametrize("correlation", [None, [[1, 0.7], [0.7, 1]]])
def test_a_sum_of_pulls_has_their_mean_and_covariance(correlation):
    instance = lb.Instance([[1.0, -2.0], [0.0, 1.0]], noise_sd=[0.5, 2.0], correlation=correlation)
    drawn, rng, sums = reward_model(instance), stream(0, 0), np.empty((20_000, 2))
    for row in sums:
        draw_sum(drawn, rng, 0, 50, row)
    assert np.allclose(sums.mean(axis=0), [50.0, -100.0], rtol=0, atol=5 * 2.0 * np.sqrt(50 / 20_000))
    expected = 50 * np.outer([0.5, 2.0], [0.5, 2.0]) * (np.eye(2) if correlation is None else correlation)
    assert np.allclose(np.cov(sums.T), expected, rtol=0.05, atol=2.0)


def test_sums_of_pulls_are_cut_and_counted_as_pulls_are():
    """EGE's arms take turns in a stage, by sums as pull by pull, and the horizon cuts both alike."""
    instance = lb.paper_instance(10)
    policy = lb.ExponentialGapElimination(10, 3, delta=0.01, noise_sd=instance.noise_sd)
    results = lb.sweep([lb.simulation.Cell("EGE", policy, instance, 1003)], replications=20)
    run = lb.simulate(policy, instance, horizon=1003, seed=0)
    checkpoints = [1, 7, 100, 990, 1003]
    expected = run.regret(instance)[np.array(checkpoints) - 1]
    np.testing.assert_allclose(results.regret("EGE", checkpoints)[0], expected, atol=1e-9)
    assert results.runs["EGE"].pulls[0].tolist() == np.bincount(run.arms, minlength=10).tolist()
    assert set(results.frame()["recommendation"]) <= {1, 2, 4, 5, 8}  # near the top of objective 0, by data


def test_a_checkpoint_at_the_end_of_a_batch_is_kept():
    tally = PullCounts(np.array([4, 10, 11]), np.zeros(3, np.int64), np.zeros((3, 3), np.int64))
    count_batch(np.array([5, 0, 5]), 0, 10, tally)
    count_batch(np.array([0, 4, 4]), 10, 8, tally)
    assert tally.pulls_at.tolist() == [[2, 0, 2], [5, 0, 5], [5, 1, 5]]
    assert tally.pulls.tolist() == [5, 4, 9]


# --- other rewards, other people's policies


def coin(rng, arm):
    return rng.integers(0, 2, size=2) * (arm + 1.0)


@pytest.mark.parametrize(
    "instance",
    [
        lb.Instance([[0.2, 0.5], [0.9, 0.4]], noise="bernoulli"),
        lb.Instance([[0.2, 0.5], [0.9, 0.4]], noise="beta", noise_sd=0.1),
        lb.Instance([[0.2, 0.5], [0.9, 0.4]], correlation=[[1, 0.8], [0.8, 1]]),
        lb.Instance([[0.5, 0.5], [1.0, 1.0]], noise=coin),
    ],
    ids=["bernoulli", "beta", "correlated", "sampler"],
)
def test_other_rewards(instance, tmp_path):
    policy = lb.LexElimIn(2, 2, delta=0.1, tradeoff=1.0, noise_sd=0.5)
    cell = lb.simulation.Cell("a", policy, instance, 3000)
    results = lb.sweep([cell], replications=3, seed=2, out=tmp_path)
    for replication in range(3):
        run = lb.simulate(policy, instance, horizon=3000, seed=2, replication=replication)
        assert results.runs["a"].rounds[replication] == run.rounds
        assert results.eliminations("a", replication) == run.eliminations
    again = lb.simulation.Results.load(tmp_path)
    assert same(again, results)
    assert again.cells["a"].instance.means.tolist() == instance.means.tolist()


def choose_any(state, pending):
    return int(state[0].told[0] % 3)


def observe_any(state, arm, reward):
    add_reward(state[0], arm, reward)


def never(state):
    return False


class State(tuple):
    def __new__(cls, arms):
        return super().__new__(cls, (arms,))

    @property
    def arms(self):
        return self[0]


class Cycle(Policy):
    """Written outside the package, not compiled, a bare tuple of arrays."""

    rules = lb.policies.Rules(choose_any, observe_any, never)

    def __init__(self, n_arms, n_objectives):
        super().__init__(n_arms, n_objectives)
        self.state = State(untried(n_arms, n_objectives))


def test_a_policy_from_outside(tmp_path):
    cell = lb.simulation.Cell("mine", Cycle(3, 2), lb.Instance([[1, 0], [0, 1], [0, 0]]), 100)
    results = lb.sweep([cell], replications=2, out=tmp_path)
    assert results.runs["mine"].pulls.tolist() == [[34, 33, 33]] * 2
    assert same(lb.simulation.Results.load(tmp_path), results)


# --- bad input, before anything runs


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ValueError, "replications", {"replications": 0}),
        (TypeError, "replications", {"replications": 2.5}),
        (ValueError, "replications must be in", {"replications": 10**9}),
        (ValueError, "seed", {"seed": -1}),
        (ValueError, "at least one cell", {"cells": []}),
        (TypeError, "list of Cell", {"cells": 3}),
        (TypeError, "Cell", {"cells": ["a"]}),
        (ValueError, "'a' twice", {"cells": [lb.simulation.Cell("a", lexelim_in(), PAPER, 9)] * 2}),
        (ValueError, "horizon of cell 'a'", {"cells": [lb.simulation.Cell("a", lexelim_in(), PAPER, -1)]}),
        (TypeError, "horizon of cell 'a'", {"cells": [lb.simulation.Cell("a", lexelim_in(), PAPER, 1.5)]}),
        (
            ValueError,
            "horizon of cell 'a'",
            {"cells": [lb.simulation.Cell("a", lexelim_in(), PAPER, 2**62 + 1)]},
        ),
        (
            TypeError,
            "cell 'a': the policy must be",
            {"cells": [lb.simulation.Cell("a", lb.LexElimIn, PAPER, 9)]},
        ),
        (
            TypeError,
            "cell 'a': the instance must be",
            {"cells": [lb.simulation.Cell("a", lexelim_in(), PAPER.means, 9)]},
        ),
        (TypeError, "name must be", {"cells": [lb.simulation.Cell(1, lexelim_in(), PAPER, 9)]}),
        (
            ValueError,
            "cell 'a': .*same shape",
            {"cells": [lb.simulation.Cell("a", lexelim_in(), lb.paper_instance(20), 9)]},
        ),
        (ValueError, "backend", {"backend": "slurm"}),
        (TypeError, "backend", {"backend": 3}),
        (ValueError, "n_jobs", {"n_jobs": 0}),
    ],
)
def test_bad_input(tmp_path, error, match, arguments):
    with pytest.raises(error, match=match):
        lb.sweep(**{"cells": cells(), "replications": 1, "out": tmp_path / "new", **arguments})
    assert not (tmp_path / "new").exists()


def test_a_horizon_beyond_counting_is_refused_at_once():
    with pytest.raises(ValueError, match="horizon must be in"):
        lb.simulate(lexelim_in(), PAPER, horizon=2**62 + 1, seed=0)
