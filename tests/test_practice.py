"""Realistic studies: results have the law they claim, common practice is as described, runs resume."""

import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

import lexbandits as lb
from experiments.__main__ import app
from experiments.practice import benchmark
from experiments.practice.changes import changes
from experiments.practice.common_practice import (
    Aim,
    Sample,
    comparing_means,
    found_worse,
    halving,
    peeking,
    planned_size,
    planned_tests,
    settled,
)
from experiments.practice.common_random_numbers import BLOCK, CommonRandomNumbers, play
from experiments.practice.studies import studies
from experiments.practice.trials import Measure, Trials
from lexbandits.simulation.promise import Tolerances
from support import command

invoked = partial(command.invoked, app=app)
STUDIES = {study.name: study for study in studies()}


# --- results


@pytest.mark.parametrize("name", ["models", "items", "judge", "throughput"])
def test_passes_have_the_law_of_single_results(name):
    trials = STUDIES[name].trials
    rng = np.random.default_rng(5)
    passes = trials.passes(rng, 4000)
    plain = np.array([[trials(rng, arm) for arm in range(passes.shape[1])] for _ in range(700)])
    for arm in range(passes.shape[1]):
        for i, measure in enumerate(trials.measures):
            ours, theirs = passes[:, arm, i], plain[:, arm, i]
            if measure.kind == "bernoulli":
                table = [[v.sum(), v.size - v.sum()] for v in (ours, theirs)]
                assert stats.fisher_exact(table).pvalue > 1e-4
            else:
                assert stats.ks_2samp(ours, theirs).pvalue > 1e-4


@pytest.mark.parametrize("study", studies(), ids=lambda study: study.name)
def test_means_and_deviations_are_those_declared(study):
    passes = study.trials.passes(np.random.default_rng(6), 40_000)
    truth = np.array([[float(mean) for mean in measure.means] for measure in study.trials.measures]).T
    assert np.array_equal(study.trials.instance().means, truth)
    assert np.all(np.abs(passes.mean(axis=0) - truth) < 4.5 * study.trials.sds / 200)
    assert np.allclose(passes.std(axis=0), study.trials.sds, rtol=0.1)
    for i, kind in enumerate(study.noise):  # far inside, so that no run ever meets a bound
        if isinstance(kind, tuple) and study.trials.measures[i].kind != "beta":
            assert passes[:, :, i].min() > 0.98 * kind[1]


def test_arms_share_the_luck_of_their_item():
    measures = [Measure("bernoulli", (0.3, 0.6)), Measure("gaussian", (0.0, 5.0), (1.0, 3.0))]
    passes = Trials(measures, shared=1.0).passes(np.random.default_rng(1), 500)
    assert np.all(passes[:, 0, 0] <= passes[:, 1, 0])
    assert np.allclose(3 * passes[:, 0, 1] + 5, passes[:, 1, 1])
    some = Trials(measures, shared=0.7).passes(np.random.default_rng(2), 20_000)
    assert abs(np.corrcoef(some[:, 0, 1], some[:, 1, 1])[0, 1] - 0.49) < 0.03  # both take it: 0.7²
    none = Trials(measures).passes(np.random.default_rng(3), 20_000)
    assert abs(np.corrcoef(none[:, 0, 1], none[:, 1, 1])[0, 1]) < 0.03


def test_bad_trials_are_refused():
    coin = Measure("bernoulli", (0.3, 0.6))
    with pytest.raises(ValueError, match="shared must be a probability, got 2"):
        Trials([coin], shared=2)
    with pytest.raises(ValueError, match="got 'poisson'"):
        Trials([Measure("poisson", (1.0,))])
    with pytest.raises(ValueError, match="different numbers"):
        Trials([coin, Measure("gamma", (1.0,), 4.0)])
    with pytest.raises(ValueError, match="no luck to share"):
        Trials([Measure("beta", (0.3, 0.6), 0.1)], shared=0.5)


# --- common random numbers


def test_a_tape_is_a_function_of_seed_replication_and_pass():
    trials = STUDIES["items"].trials
    draws = CommonRandomNumbers(trials, 3, 8)
    blocks = draws.blocks()
    drawn = np.concatenate([next(blocks), next(blocks)])
    assert np.array_equal(draws.first(10), drawn[:10])
    assert np.array_equal(draws.first(BLOCK + 7), drawn[: BLOCK + 7])
    assert np.array_equal(CommonRandomNumbers(trials, 3, 8).first(BLOCK + 7), drawn[: BLOCK + 7])
    assert not np.array_equal(CommonRandomNumbers(trials, 3, 9).first(5), drawn[:5])
    assert not np.array_equal(CommonRandomNumbers(trials, 4, 8).first(5), drawn[:5])


def test_playing_a_tape_is_asking_for_places_and_telling_their_results():
    study = STUDIES["judge"]
    policy = study.policy("answer")
    draws = CommonRandomNumbers(study.trials, 0, 1)
    run = play(policy, draws, 10**6)
    assert run.finished
    by_hand = policy.fresh()
    while not by_hand.finished:
        arm, number = by_hand.ask_place()
        by_hand.tell(arm, draws.first(number + 1)[number, arm], item=number)
    assert by_hand.state.clock.tolist() == run.state.clock.tolist()
    assert np.array_equal(by_hand.state.pairs, run.state.pairs)
    assert by_hand.eliminations == run.eliminations
    assert by_hand.folded > BLOCK


def test_a_tape_gives_as_many_pulls_as_the_plain_way():
    study = STUDIES["throughput"]
    policy = study.policy("all")
    fast = np.array([play(policy, CommonRandomNumbers(study.trials, 1, r), 10**6).rounds for r in range(60)])
    instance = study.trials.instance()
    plain = np.array(
        [lb.simulate(policy, instance, horizon=10**6, seed=2, replication=r).rounds for r in range(20)]
    )
    assert stats.ks_2samp(fast, plain).pvalue > 1e-3


def test_the_certain_answer_comes_earlier_than_everything_settled():
    for name in ("throughput", "judge"):
        study = STUDIES[name]
        promise = Tolerances(study.policy("all").settings, study.trials.instance())
        pulls = {}
        for stop_when in ("answer", "all"):
            runs = [
                play(study.policy(stop_when), CommonRandomNumbers(study.trials, 0, r), 10**6)
                for r in range(25)
            ]
            assert all(promise.accepts(run.recommendation) for run in runs)
            pulls[stop_when] = np.mean([run.rounds for run in runs])
        assert pulls["answer"] < pulls["all"]


# --- common practice


def aim(n_arms=2, **given):
    told = {
        "delta": 0.05,
        "tolerance": [0.1],
        "resolution": [0.2],
        "at_least": [None],
        "noise": [2.0],
        **given,
    }
    return Aim(n_arms, told["delta"], *map(np.array, (told["tolerance"], told["resolution"])),
                told["at_least"], np.array(told["noise"]))  # fmt: skip


def steady(means, sd=0.01):
    """Results close around their means, for any number of passes."""
    noise = np.random.default_rng(0).normal(0, sd, (100_000, *np.shape(means)))
    return lambda n: np.asarray(means) + noise[:n]


def test_intervals_are_welchs():
    results = np.random.default_rng(2).normal(
        [[0.0, 1.0], [0.5, 1.0], [2.0, 0.0]], [[1.0], [3.0], [0.5]], (40, 3, 2)
    )
    sample = Sample.of(results[:15]).joined(Sample.of(results[15:]))
    for i in range(2):
        low, high = sample.leads(i, 0.1)
        for a, b in ((0, 1), (1, 0), (2, 1)):
            test = stats.ttest_ind(results[:, a, i], results[:, b, i], equal_var=False).confidence_interval(
                0.9
            )
            assert np.allclose((low[a, b], high[a, b]), test)
        alone = [stats.ttest_1samp(results[:, a, i], 0).confidence_interval(0.9) for a in range(3)]
        assert np.allclose(np.transpose(sample.place(i, 0.1)), alone)


def test_without_variation_a_test_says_nothing():
    sample = Sample.of(np.zeros((50, 2, 1)))
    assert found_worse(sample, [0, 1], 0, aim(), 0.05) == []
    assert not settled(sample, [0, 1], 0, aim(tolerance=[5.0], resolution=[5.0]), 0.05)


def test_a_plan_has_the_size_of_the_textbook_and_its_power():
    one = aim(resolution=[0.2], noise=[2.0])
    reach = stats.norm.isf(0.05 / 4) + stats.norm.isf(0.05 / 2)
    assert planned_size(one) == math.ceil(reach**2 * 2 / 0.04)
    missed = 0
    for r in range(400):
        results = np.random.default_rng(r).normal([[0.0], [0.3]], 1.0, (planned_size(one), 2, 1))
        missed += planned_tests(lambda n, drawn=results: drawn[:n], one).answer == 0
    assert stats.binom.sf(missed - 1, 400, 0.025) > 1e-3


def test_peeking_looks_at_every_hundred_results():
    looks = []
    results = np.random.default_rng(4).normal([[0.0], [0.25]], 1.0, (50_000, 2, 1))
    choice = peeking(lambda n: looks.append(n) or results[:n], aim())
    assert looks == [50 * k for k in range(1, len(looks) + 1)]
    assert choice.pulls == 2 * looks[-1]
    apart = peeking(steady([[0.0], [1.0]]), aim())
    assert apart == (1, 100, {0: 0})


def test_halving_sees_the_first_objective_alone_and_spends_a_tenth():
    told = aim(4, tolerance=[0.1, 0.1], resolution=[0.2, 0.2], at_least=[None, None], noise=[2.0, 2.0])
    choice = halving(steady([[0.3, 9.0], [0.4, 0.0], [0.1, 0.0], [0.2, 0.0]]), told)
    assert (choice.answer, choice.dropped) == (1, {2: 0, 3: 0, 0: 0})
    assert abs(choice.pulls - 4 * planned_size(told) / 10) < 8


def test_means_are_compared_at_the_middle_of_what_is_left_open():
    told = aim(4, tolerance=[0.1, 0.1], resolution=[0.2, 0.2], at_least=[None, None], noise=[2.0, 2.0])
    choice = comparing_means(steady([[1.0, 0.0], [0.82, 1.0], [0.78, 5.0], [0.9, 0.5]]), told)
    assert (choice.answer, choice.dropped) == (1, {2: 0, 0: 1, 3: 1})
    aimed = told._replace(at_least=[0.95, None])
    choice = comparing_means(steady([[1.0, 0.0], [0.87, 1.0], [0.83, 5.0], [0.9, 0.5]]), aimed)
    assert (choice.answer, choice.dropped) == (1, {2: 0, 0: 1, 3: 1})


def test_tests_know_targets():
    told = aim(3, at_least=[0.5], tolerance=[0.1], resolution=[0.1])
    sample = Sample.of(steady([[0.55], [0.43], [0.2]])(40))
    assert found_worse(sample, [0, 1, 2], 0, told, 0.05) == [1, 2]
    assert found_worse(sample, [1, 2], 0, told, 0.05) == [2]  # nobody meets it: as without a target
    assert settled(sample, [0], 0, told, 0.05)
    assert not settled(sample, [0, 1], 0, told, 0.05) or sample.place(0, 0.05)[0][1] >= 0.4


# --- the benchmark


def test_the_benchmark_goes_on_from_what_is_there(tmp_path, monkeypatch):
    first = benchmark.practice(only=["throughput"], replications=3, out=tmp_path)
    monkeypatch.setattr(
        benchmark,
        "METHODS",
        tuple(m._replace(choose=lambda study, draws: pytest.fail("again")) for m in benchmark.METHODS),
    )
    again = benchmark.practice(only=["throughput"], replications=3, out=tmp_path)
    assert again.equals(first)
    assert first.method.tolist() == [method.name for method in benchmark.METHODS]
    pulls = first.set_index("method").pulls
    assert pulls["LexElim-Tol"] < pulls['LexElim-Tol, stop_when="all"'] < pulls["LexElim-Tol, σ from a bound"]
    with pytest.raises(ValueError, match="unknown study 'nothing'; known: models, items"):
        benchmark.practice(only=["nothing"])


def test_cheating_is_shown(tmp_path):
    table = benchmark.practice(only=["throughput", "paper10"], replications=4, seed=1)
    text = benchmark.practice_markdown(table)
    assert text.count("\n") == 3
    assert "**100.0 %**" in text  # halving looks at throughput alone
    benchmark.write(table, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {
        f"practice.{end}" for end in ("csv", "md", "svg", "png")
    }
    left, right = benchmark.practice_figure(table).axes
    hollow = [line for line in right.lines if line.get_markerfacecolor() == "white"]
    assert len(hollow) == sum(table.low > table.delta) > 0
    assert left.get_xscale() == "log"
    drawn = {
        line.get_xdata()[0]
        for line in left.lines
        if len(set(line.get_xdata())) == 1 and len(line.get_xdata()) == 2
    }
    assert set(table.limit) <= drawn


def test_a_limit_is_known_where_noise_is_independent_and_there_is_no_target():
    limits = {name: study.limit() for name, study in STUDIES.items()}
    assert {name for name, limit in limits.items() if limit is None} == {"items", "guardrail"}
    table = benchmark.practice(only=["throughput", "guardrail"], replications=2)
    assert table[table.study == "throughput"].limit.unique() == limits["throughput"].least_pulls(0.05)
    assert table[table.study == "guardrail"].limit.isna().all()
    rows = benchmark.practice_markdown(table).splitlines()
    assert rows[2].startswith("| throughput | 571 |")
    assert rows[3].startswith("| failures at most 1.5 % | – |")


def test_the_command(tmp_path):
    told = ["practice", "--only", "throughput", "--replications", "2", "--out", str(tmp_path), "--jobs", "1"]
    done = invoked(*told)
    assert done.exit_code == 0, done.output
    assert "| throughput |" in done.output
    assert invoked("practice", "--only", "x", "--out", str(tmp_path)).exit_code == 2


def test_a_change_of_rules_is_measured_against_the_same_runs_without_it():
    found = invoked("practice", "--changes", "--only", "throughput", "--replications", "3")
    assert found.exit_code == 0, found.output
    *_, row = found.output.strip().splitlines()
    kept, changed, _, opened, _ = (
        float(cell.split("±")[0].replace(",", "")) for cell in row.split("|")[2:-1]
    )
    plain = benchmark.practice(only=["throughput"], replications=3).set_index("method")["pulls"]
    assert kept == pytest.approx(plain["LexElim-Tol"], abs=0.5)
    assert kept < opened < changed
    with pytest.raises(ValueError, match="not measured on 'guardrail'"):
        changes(only=["guardrail"])
