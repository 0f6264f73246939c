"""Sweeps: the same numbers whatever ran them, kept through a kill, and read back in every form."""

import json
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from scipy.stats import binom

import lexbandits as lb
from lexbandits.policies.base import record, untried
from lexbandits.policies.policy import Policy
from lexbandits.simulation.replicate import SUMS
from lexbandits.simulation.store import block_size
from lexbandits.simulation.sums import draw_sum
from lexbandits.world.noise import stream, world

PAPER = lb.paper_instance(10)


def lexelim_in(noise_sd=0.1):
    return lb.LexElimIn(10, 3, delta=0.1, tradeoff=2, noise_sd=noise_sd)


def lexelim_out(noise_sd=0.1):
    return lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1), noise_sd=noise_sd)


def cells(horizon=10**6):
    ege = lb.ExponentialGapElimination(10, 3, delta=0.1, noise_sd=0.3, target_size=3)
    return [
        lb.Cell("in", lexelim_in(), PAPER, horizon),
        lb.Cell("out", lexelim_out(), PAPER, horizon),
        lb.Cell("ege", ege, PAPER, 10**8),
        lb.Cell("ucb", lb.UCB1(10, 3, noise_sd=0.3), PAPER, 3000),
    ]


def same(left, right):
    """All that two results hold, to the bit."""
    return left.runs.keys() == right.runs.keys() and all(
        a.dtype == b.dtype and a.tobytes() == b.tobytes()
        for name in left.runs
        for a, b in zip(left.runs[name], right.runs[name], strict=True)
    )


@pytest.fixture(scope="module")
def reference():
    return lb.sweep(cells(), replications=150, seed=4)


# --- what comes back


def test_the_frame(reference):
    frame = reference.frame()
    assert list(frame.columns) == [
        "cell",
        "replication",
        "stopped",
        "rounds",
        "recommendation",
        "correct",
        "lex_optimal",
    ]
    assert [str(kind) for kind in frame.dtypes[1:]] == ["int64", "bool", "int64", "int64", "bool", "bool"]
    assert len(frame) == 600
    assert frame.cell.unique().tolist() == ["in", "out", "ege", "ucb"]
    assert frame[frame.cell == "ucb"].rounds.eq(3000).all()
    assert not frame[frame.cell == "ucb"].stopped.any()
    assert frame[frame.cell == "in"].correct.mean() > 0.8


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
        results = lb.sweep([lb.Cell("a", policy, instance, horizon)], replications=1, seed=seed)
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


def test_sums_of_pulls_are_said_and_cut_at_the_horizon(reference):
    assert reference.streams == {"in": "per pull", "out": "per pull", "ege": SUMS, "ucb": "per pull"}
    assert reference.frame().query("cell == 'ege'").correct.mean() > 0.9
    ege = cells()[2].policy
    full = reference.runs["ege"]
    short = lb.sweep([lb.Cell("short", ege, PAPER, 1001)], replications=3, seed=4)
    assert short.runs["short"].rounds.tolist() == [1001] * 3
    assert not short.runs["short"].stopped.any()
    assert short.runs["short"].pulls.sum(axis=1).tolist() == [1001] * 3
    exact = int(full.rounds[0])
    whole = lb.sweep(
        [lb.Cell("a", ege, PAPER, exact), lb.Cell("b", ege, PAPER, exact - 1)], replications=1, seed=4
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
        lb.Cell("sums", lb.ExponentialGapElimination(3, 2, **settings), instance, 10**6),
        lb.Cell("pulls", PullByPull(3, 2, **settings), instance, 10**6),
    ]
    frame = lb.sweep(pair, replications=600, seed=1).frame()
    groups = frame.groupby("cell").rounds
    error = np.sqrt((groups.var() / 600).sum())
    assert abs(groups.mean()["sums"] - groups.mean()["pulls"]) < 5 * error


@pytest.mark.parametrize("correlation", [None, [[1, 0.7], [0.7, 1]]])
def test_a_sum_of_pulls_has_their_mean_and_covariance(correlation):
    instance = lb.Instance([[1.0, -2.0], [0.0, 1.0]], noise_sd=[0.5, 2.0], correlation=correlation)
    drawn, rng, sums = world(instance), stream(0, 0), np.empty((20_000, 2))
    for row in sums:
        draw_sum(drawn, rng, 0, 50, row)
    assert np.allclose(sums.mean(axis=0), [50.0, -100.0], rtol=0, atol=5 * 2.0 * np.sqrt(50 / 20_000))
    expected = 50 * np.outer([0.5, 2.0], [0.5, 2.0]) * (np.eye(2) if correlation is None else correlation)
    assert np.allclose(np.cov(sums.T), expected, rtol=0.05, atol=2.0)


def test_identification_rounds():
    instance = lb.Instance([[1, 0.0], [1, 1.0], [0, 2.0]], noise_sd=0.1)
    policy = lb.LexElimIn(3, 2, delta=0.1, tradeoff=1.0, noise_sd=0.1)
    results = lb.sweep([lb.Cell("a", policy, instance, 10**5)], replications=4)
    prefix, objective = (results.identification_rounds("a", kind) for kind in ("prefix", "objective"))
    for replication in range(4):
        left = {e.arm: e.round for e in results.eliminations("a", replication)}
        assert left.keys() == {0, 2}
        assert prefix[replication].tolist() == [left[2], max(left.values())]
        assert objective[replication].tolist() == [left[2], left[0]]
    unfinished = lb.sweep([lb.Cell("a", policy, instance, 2)], replications=1)
    assert np.isnan(unfinished.identification_rounds("a")).all()
    alone = lb.sweep(
        [lb.Cell("a", lb.LexElimIn(1, 2, delta=0.1, tradeoff=1.0), lb.Instance([[1, 2]]), 5)], replications=1
    )
    assert alone.identification_rounds("a").tolist() == [[0.0, 0.0]]
    assert alone.frame().rounds.tolist() == [0]


def test_error_rates_are_exact():
    wrong = lb.LexElimOut(3, 1, delta=0.5, optimal_set_sizes=(1,), noise_sd=0.01)  # far too sure
    cell = lb.Cell("a", wrong, lb.Instance([[0.1], [0.0], [0.0]]), 10**4)
    results = lb.sweep([cell, lb.Cell("b", wrong, cell.instance, 2)], replications=50)
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


def test_common_random_numbers_and_order():
    both = lb.sweep(cells()[:2], replications=3, seed=9)
    alone = lb.sweep(cells()[1::-1], replications=3, seed=9)
    assert both.runs["out"].rounds.tolist() == alone.runs["out"].rounds.tolist()
    assert (
        lb.sweep(cells()[:1], replications=3, seed=8).runs["in"].rounds.tolist()
        != both.runs["in"].rounds.tolist()
    )


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
    cell = lb.Cell("a", policy, instance, 3000)
    results = lb.sweep([cell], replications=3, seed=2, out=tmp_path)
    for replication in range(3):
        run = lb.simulate(policy, instance, horizon=3000, seed=2, replication=replication)
        assert results.runs["a"].rounds[replication] == run.rounds
        assert results.eliminations("a", replication) == run.eliminations
    again = lb.Results.load(tmp_path)
    assert same(again, results)
    assert again.cells["a"].instance.means.tolist() == instance.means.tolist()


def choose_any(state, pending):
    return int(state[0].told[0] % 3)


def observe_any(state, arm, reward):
    record(state[0], arm, reward)


def never(state):
    return False


class Cycle(Policy):
    """Written outside the package, not compiled, a bare tuple of arrays."""

    rules = lb.Rules(choose_any, observe_any, never)

    def __init__(self, n_arms, n_objectives):
        super().__init__(n_arms, n_objectives)
        self.state = State(untried(n_arms, n_objectives))


class State(tuple):
    def __new__(cls, arms):
        return super().__new__(cls, (arms,))

    @property
    def arms(self):
        return self[0]


def test_a_policy_from_outside(tmp_path):
    cell = lb.Cell("mine", Cycle(3, 2), lb.Instance([[1, 0], [0, 1], [0, 0]]), 100)
    results = lb.sweep([cell], replications=2, out=tmp_path)
    assert results.runs["mine"].pulls.tolist() == [[34, 33, 33]] * 2
    assert same(lb.Results.load(tmp_path), results)


# --- other workers


def test_threads(reference):
    assert same(lb.sweep(cells(), replications=150, seed=4, n_jobs=2), reference)
    assert same(lb.sweep(cells(), replications=150, seed=4, n_jobs=-1, backend="threads"), reference)


def few():
    return [lb.Cell("in", lexelim_in(), PAPER, 10**6), lb.Cell("long", lexelim_in(), PAPER, 10**8)]


@pytest.mark.filterwarnings("ignore::DeprecationWarning:distributed", "ignore::DeprecationWarning:dask")
def test_a_dask_cluster(tmp_path):
    from distributed import Client, LocalCluster

    alone = lb.sweep(few(), replications=70, seed=4)
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        with Client(cluster):
            active = lb.sweep(few(), replications=70, seed=4, backend="dask", out=tmp_path)
        address = f"dask:{cluster.scheduler_address}"
        connected = lb.sweep(few(), replications=70, seed=4, backend=address)
    assert same(active, alone)
    assert same(lb.Results.load(tmp_path), alone)
    assert same(connected, alone)


def test_a_ray_cluster(tmp_path):
    alone = lb.sweep(few(), replications=70, seed=4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray's own, on import and start
        import ray

        ray.init(num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False)
        try:
            results = lb.sweep(few(), replications=70, seed=4, backend="ray", out=tmp_path)
        finally:
            ray.shutdown()
    assert same(results, alone)
    assert same(lb.Results.load(tmp_path), alone)
    with pytest.raises(ValueError, match=r"ray\.init"):
        lb.sweep(few(), replications=1, backend="ray")


# --- a folder that survives


LONG = """
import sys, lexbandits as lb
policy = lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1))
cells = [lb.Cell(name, policy, lb.paper_instance(10), 10**8) for name in ("a", "b")]
lb.sweep(cells, replications=4000, seed=1, n_jobs=int(sys.argv[2]), out=sys.argv[1])
"""


def long_cells():
    policy = lb.LexElimOut(10, 3, delta=0.1, optimal_set_sizes=(3, 2, 1))
    return [lb.Cell(name, policy, PAPER, 10**8) for name in ("a", "b")]


def interrupted(folder, how, n_jobs="1"):
    """Start a long sweep in another process and stop it when a few blocks are there."""
    process = subprocess.Popen([sys.executable, "-c", LONG, str(folder), n_jobs], stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while len(list(folder.glob("*/*.npz"))) < 12:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(how)
    _, errors = process.communicate(timeout=30)
    assert process.returncode != 0
    return errors.decode()


def test_a_killed_sweep_goes_on(tmp_path):
    interrupted(tmp_path, signal.SIGKILL)
    done = len(list(tmp_path.glob("*/*.npz")))
    assert 12 <= done < 4000
    partial = lb.Results.load(tmp_path)
    whole = lb.sweep(long_cells(), replications=done + 5, seed=1)
    assert same(
        lb.sweep(long_cells(), replications=done + 2, seed=1, out=tmp_path),
        lb.sweep(long_cells(), replications=done + 2, seed=1),
    )
    assert same(lb.sweep(long_cells(), replications=done + 5, seed=1, out=tmp_path, n_jobs=2), whole)
    known = partial.runs["a"].replication
    assert np.array_equal(partial.runs["a"].rounds, whole.runs["a"].rounds[known])


def test_ctrl_c_leaves_a_usable_folder(tmp_path):
    errors = interrupted(tmp_path, signal.SIGINT, n_jobs="2")
    assert "KeyboardInterrupt" in errors
    assert same(
        lb.sweep(long_cells(), replications=20, seed=1, out=tmp_path),
        lb.sweep(long_cells(), replications=20, seed=1),
    )


def test_more_replications_and_cells_reuse_blocks(tmp_path, monkeypatch):
    first = lb.sweep(cells()[:1], replications=70, seed=4, out=tmp_path)
    assert block_size(10**6) == 64
    files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("in-*/*.npz")}
    assert len(files) == 2
    more = lb.sweep(cells()[:2], replications=100, seed=4, out=tmp_path)
    assert same(more, lb.sweep(cells()[:2], replications=100, seed=4))
    unchanged = [path for path, stamp in files.items() if path.stat().st_mtime_ns == stamp]
    assert [path.name for path in unchanged] == ["00000000.npz"]

    def no_work(*args, **kwargs):
        raise AssertionError("nothing is left to do")

    monkeypatch.setattr(sys.modules["lexbandits.sweep"], "replicate", no_work)
    assert same(lb.sweep(cells()[:1], replications=70, seed=4, out=tmp_path), first)
    assert len(lb.Results.load(tmp_path).frame()) == 200


@pytest.mark.parametrize("damage", ["truncated", "empty", "flipped", "foreign", "renamed"])
def test_a_bad_block_is_named_and_computed_again(tmp_path, damage):
    whole = lb.sweep(cells()[1:2], replications=150, seed=4, out=tmp_path / "a")
    (block,) = (tmp_path / "a").glob("out-*/00000064.npz")
    content = block.read_bytes()
    if damage == "truncated":
        block.write_bytes(content[: len(content) // 2])
    elif damage == "empty":
        block.write_bytes(b"")
    elif damage == "flipped":
        middle = len(content) // 2
        block.write_bytes(content[:middle] + bytes([content[middle] ^ 255]) + content[middle + 1 :])
    elif damage == "foreign":
        lb.sweep(cells()[1:2], replications=150, seed=5, out=tmp_path / "b")
        (foreign,) = (tmp_path / "b").glob("out-*/00000064.npz")
        block.write_bytes(foreign.read_bytes())
    else:
        block.write_bytes(block.with_name("00000000.npz").read_bytes())
    with pytest.warns(UserWarning, match=r"out-.*00000064\.npz.*computed again"):
        again = lb.sweep(cells()[1:2], replications=150, seed=4, out=tmp_path / "a")
    assert same(again, whole)
    assert same(lb.sweep(cells()[1:2], replications=150, seed=4, out=tmp_path / "a"), whole)


def test_another_sweeps_folder_is_refused(tmp_path):
    lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    with pytest.raises(ValueError, match="seed is 4 there and 5 here"):
        lb.sweep(cells()[:1], replications=1, seed=5, out=tmp_path)
    with pytest.raises(ValueError, match=r"cell 'in': horizon is 1000000 there and 10 here"):
        lb.sweep(cells(10)[:1], replications=1, seed=4, out=tmp_path)
    other = lb.Cell("in", lb.LexElimIn(10, 3, delta=0.2, tradeoff=2, noise_sd=0.1), PAPER, 10**6)
    with pytest.raises(ValueError, match=r"settings\.delta is 0\.1 there and 0\.2 here"):
        lb.sweep([other], replications=1, seed=4, out=tmp_path)
    with pytest.raises(ValueError, match="policy is "):
        lb.sweep([lb.Cell("in", lexelim_out(), PAPER, 10**6)], replications=1, seed=4, out=tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps({**manifest, "version": "0.0.1"}))
    with pytest.raises(ValueError, match=r'version is "0\.0\.1" there'):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    (tmp_path / "manifest.json").write_text("{")
    with pytest.raises(ValueError, match="not the manifest"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    (tmp_path / "manifest.json").unlink()
    with pytest.raises(ValueError, match="not empty"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path)
    with pytest.raises(ValueError, match="holds no sweep"):
        lb.Results.load(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="is a file"):
        lb.sweep(cells()[:1], replications=1, seed=4, out=tmp_path / "file")


def test_save_and_load(reference, tmp_path):
    reference.save(tmp_path / "kept")
    kept = lb.Results.load(tmp_path / "kept")
    assert same(kept, reference)
    assert kept.frame().equals(reference.frame())
    assert np.array_equal(kept.regret("ucb", [7, 2999]), reference.regret("ucb", [7, 2999]))
    assert kept.streams == reference.streams
    assert kept.cells["in"].instance == PAPER
    assert same(lb.sweep(cells(), replications=150, seed=4, out=tmp_path / "kept"), reference)


def test_a_folder_without_blocks_is_an_empty_table(reference, tmp_path):
    lb.sweep(cells()[:1], replications=1, out=tmp_path)
    for block in tmp_path.glob("*/*.npz"):
        block.unlink()
    frame = lb.Results.load(tmp_path).frame()
    assert frame.empty
    assert list(frame.columns) == list(reference.frame().columns)


def test_progress_is_shown(capsys):
    lb.sweep(cells()[:1], replications=3, progress=True)
    assert "3/3 replications" in capsys.readouterr().out


# --- bad input, before anything runs


@pytest.mark.parametrize(
    ("error", "match", "arguments"),
    [
        (ValueError, "replications", {"replications": 0}),
        (TypeError, "replications", {"replications": 2.5}),
        (ValueError, "seed", {"seed": -1}),
        (ValueError, "at least one cell", {"cells": []}),
        (TypeError, "list of Cell", {"cells": 3}),
        (TypeError, "Cell", {"cells": ["a"]}),
        (ValueError, "'a' twice", {"cells": [lb.Cell("a", lexelim_in(), PAPER, 9)] * 2}),
        (ValueError, "horizon of cell 'a'", {"cells": [lb.Cell("a", lexelim_in(), PAPER, -1)]}),
        (TypeError, "horizon of cell 'a'", {"cells": [lb.Cell("a", lexelim_in(), PAPER, 1.5)]}),
        (TypeError, "policy must be", {"cells": [lb.Cell("a", lb.LexElimIn, PAPER, 9)]}),
        (TypeError, "instance must be", {"cells": [lb.Cell("a", lexelim_in(), PAPER.means, 9)]}),
        (TypeError, "name must be", {"cells": [lb.Cell(1, lexelim_in(), PAPER, 9)]}),
        (ValueError, "same shape", {"cells": [lb.Cell("a", lexelim_in(), lb.paper_instance(20), 9)]}),
        (ValueError, "backend", {"backend": "slurm"}),
        (TypeError, "backend", {"backend": 3}),
        (ValueError, "n_jobs", {"n_jobs": 0}),
    ],
)
def test_bad_input(tmp_path, error, match, arguments):
    with pytest.raises(error, match=match):
        lb.sweep(**{"cells": cells(), "replications": 1, "out": tmp_path / "new", **arguments})
    assert not (tmp_path / "new").exists()


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


def test_sums_of_pulls_are_cut_and_counted_as_pulls_are():
    """EGE's arms take turns in a stage, by sums as pull by pull, and the horizon cuts both alike."""
    instance = lb.paper_instance(10)
    policy = lb.ExponentialGapElimination(10, 3, delta=0.01, noise_sd=instance.noise_sd)
    results = lb.sweep([lb.Cell("EGE", policy, instance, 1003)], replications=20)
    run = lb.simulate(policy, instance, horizon=1003, seed=0)
    checkpoints = [1, 7, 100, 990, 1003]
    expected = run.regret(instance)[np.array(checkpoints) - 1]
    np.testing.assert_allclose(results.regret("EGE", checkpoints)[0], expected, atol=1e-9)
    assert results.runs["EGE"].pulls[0].tolist() == np.bincount(run.arms, minlength=10).tolist()
    assert set(results.frame()["recommendation"]) <= {1, 2, 4, 5, 8}  # near the top of objective 0, by data
