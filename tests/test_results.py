"""What a sweep found, read back in every form: tables, regret curves, identification rounds, error rates."""

import numpy as np
import pytest
from scipy.stats import binom

import lexbandits as lb
from lexbandits.simulation.replicate import Runs, recording_rounds
from lexbandits.simulation.results import CellInfo
from support.cells import PAPER, cells


def test_the_frame(reference):
    frame = reference.frame()
    about = ["stopped", "rounds", "recommendation", "correct", "lex_optimal"]
    assert list(frame.columns) == ["cell", "replication", *about]
    assert [str(kind) for kind in frame.dtypes[1:]] == ["int64", "bool", "int64", "int64", "bool", "bool"]
    assert len(frame) == 600
    assert frame.cell.unique().tolist() == ["in", "out", "ege", "ucb"]
    assert frame[frame.cell == "ucb"].rounds.eq(3000).all()
    assert not frame[frame.cell == "ucb"].stopped.any()
    assert frame[frame.cell == "in"].correct.mean() > 0.8


@pytest.mark.parametrize("kind", ["general", "priority"])
@pytest.mark.parametrize("cell", [0, 1])
def test_regret_rebuilt_from_eliminations_is_that_of_the_arms_played(reference, cell, kind):
    name, policy, instance, horizon = cells()[cell]
    for replication in range(5):
        run = lb.simulate(policy, instance, horizon=horizon, seed=4, replication=replication)
        played = np.vstack((np.zeros((1, 3)), run.regret(instance, kind)))
        rounds = np.arange(run.rounds + 1)
        rebuilt = reference.regret(name, rounds[::-1], kind)[replication, ::-1]
        assert np.allclose(rebuilt, played, rtol=0, atol=1e-8)
        after = reference.regret(name, [run.rounds, run.rounds + 1000], kind)[replication]
        once_more = lb.Instance(instance.means).gaps[run.recommendation]
        if kind == "general":
            assert np.allclose(after[1] - after[0], 1000 * once_more)


def test_round_robin_ends_anywhere_in_a_sweep():
    """Arms leave in the middle of sweeps; so do horizons."""
    rng = np.random.default_rng(0)
    for seed in range(40):
        instance = lb.Instance(rng.integers(0, 3, (7, 2)) / 2, noise_sd=0.5)
        policy = lb.LexElimIn(7, 2, delta=0.5, tradeoff=0.5, noise_sd=0.05)
        horizon = int(rng.integers(1, 300))
        run = lb.simulate(policy, instance, horizon=horizon, seed=seed)
        results = lb.sweep([lb.simulation.Cell("a", policy, instance, horizon)], replications=1, seed=seed)
        rebuilt = results.regret("a", np.arange(1, run.rounds + 1))[0]
        assert np.allclose(rebuilt, run.regret(instance), rtol=0, atol=1e-9)


def test_policies_that_are_not_round_robin_are_recorded(reference):
    run = lb.simulate(cells()[3].policy, PAPER, horizon=3000, seed=4, replication=2)
    recorded = reference.cells["ucb"].recording
    assert recorded[0] == 1
    assert recorded[-1] == 3000
    played = run.regret(PAPER)
    assert np.allclose(reference.regret("ucb", recorded)[2], played[recorded - 1])
    before, after = recorded[-3:-1]
    middle = int(before + after) // 2
    between = reference.regret("ucb", [0, middle])[2]
    share = (middle - before) / (after - before)
    assert np.allclose(between[0], 0)
    assert np.allclose(between[1], (1 - share) * played[before - 1] + share * played[after - 1])


def test_recording_rounds_reach_the_longest_horizon():
    rounds = recording_rounds(lb.UCB1(2, 1), 2**62)
    assert rounds[:12].tolist() == [*range(1, 13)]
    assert np.all(np.diff(rounds) > 0)
    assert 0.9 * 2**62 < rounds[-1] <= 2**62


def test_identification_rounds():
    instance = lb.Instance([[1, 0.0], [1, 1.0], [0, 2.0]], noise_sd=0.1)
    policy = lb.LexElimIn(3, 2, delta=0.1, tradeoff=1.0, noise_sd=0.1)
    results = lb.sweep([lb.simulation.Cell("a", policy, instance, 10**5)], replications=4)
    prefix, objective = (results.identification_rounds("a", kind) for kind in ("prefix", "objective"))
    for replication in range(4):
        left = {e.arm: e.round for e in results.eliminations("a", replication)}
        assert left.keys() == {0, 2}
        assert prefix[replication].tolist() == [left[2], max(left.values())]
        assert objective[replication].tolist() == [left[2], left[0]]
    unfinished = lb.sweep([lb.simulation.Cell("a", policy, instance, 2)], replications=1)
    assert np.isnan(unfinished.identification_rounds("a")).all()
    alone = lb.sweep(
        [lb.simulation.Cell("a", lb.LexElimIn(1, 2, delta=0.1, tradeoff=1.0), lb.Instance([[1, 2]]), 5)],
        replications=1,
    )
    assert alone.identification_rounds("a").tolist() == [[0.0, 0.0]]
    assert alone.frame().rounds.tolist() == [0]


def test_who_leaves_without_an_elimination_leaves_at_the_end_of_their_own_run():
    instance = lb.Instance([[1.0], [0.0]])
    nobody, ends = np.zeros((2, 2, 3), np.int64), np.array([10, 20])
    pulls = np.array([[5, 5], [10, 10]])
    runs = Runs(
        np.arange(2),
        ends,
        np.ones(2, np.bool_),
        np.zeros(2, np.int64),
        np.array([[True, False]] * 2),
        nobody,
        pulls,
        np.empty((2, 0, 2), np.int64),
    )
    told = CellInfo("mine", {}, instance, 100, "per pull", None, {"policy": None, "noise": None})
    assert lb.simulation.Results(0, {"a": told}, {"a": runs}).identification_rounds("a").tolist() == [
        [10.0],
        [20.0],
    ]


def test_error_rates_are_exact():
    wrong = lb.LexElimOut(3, 1, delta=0.5, optimal_set_sizes=(1,), noise_sd=0.01)  # far too sure
    cell = lb.simulation.Cell("a", wrong, lb.Instance([[0.1], [0.0], [0.0]]), 10**4)
    results = lb.sweep([cell, lb.simulation.Cell("b", wrong, cell.instance, 2)], replications=50)
    row, other = results.error_rates(0.9).itertuples()
    assert 0 < row.wrong < 50
    assert row.wrong == (~results.frame().query("cell == 'a'").correct).sum()
    assert np.isclose(binom.sf(row.wrong - 1, 50, row.low), 0.05)
    assert np.isclose(binom.cdf(row.wrong, 50, row.high), 0.05)
    assert (other.unstopped, other.wrong, other.low) == (50, 0, 0.0)  # no answer is not a wrong one
    assert np.isclose((1 - other.high) ** 50, 0.05)
    with pytest.raises(ValueError, match="confidence"):
        results.error_rates(1.5)


def test_a_target_of_several_arms_is_correct_as_a_set():
    results = lb.sweep(cells()[2:3], replications=4, seed=4)
    assert results.frame().correct.all()
    runs = results.runs["ege"]
    assert {tuple(np.flatnonzero(row)) for row in runs.active} == {(2, 5, 8)}
    runs.active[0, 2], runs.active[1, 0] = False, True
    runs.active[2, 8], runs.active[2, 0] = False, True
    assert results.frame().correct.tolist() == [False, False, False, True]


def test_bad_questions(reference):
    with pytest.raises(ValueError, match="no cell 'inn'"):
        reference.regret("inn", [1])
    with pytest.raises(ValueError, match=r"0\.\.3000"):
        reference.regret("ucb", [3001])
    with pytest.raises(TypeError, match="integers"):
        reference.regret("ucb", [0.5])
    with pytest.raises(ValueError, match="kind"):
        reference.regret("ucb", [1], kind="total")
    with pytest.raises(ValueError, match="kind"):
        reference.identification_rounds("ucb", kind="arm")
    with pytest.raises(ValueError, match="replication"):
        reference.eliminations("in", 150)
