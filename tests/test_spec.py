"""Files of cells, and the command that runs them."""

import csv
from pathlib import Path

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.simulation import output, sweep_spec
from lexbandits.simulation.oracle_settings import with_oracle_settings
from support.command import invoked

PAGE = Path(__file__).parent.parent / "docs" / "simulation.md"

SMALL = """
seed = 3
replications = 4
horizon = 3000

[instances.mine]
means = [[0.8, 0.5], [0.8, 0.7], ["2/3", 0.9]]
noise_sd = 0.2

[instances.paper]
paper = 10

[instances.drawn]
random = { n_arms = 4, n_objectives = 2, seed = 1 }

[policies.In]
policy = "LexElimIn"
delta = 0.05
tradeoff = "instance"
noise_sd = "instance"

[policies.Out]
policy = "LexElimOut"
delta = 0.05
optimal_set_sizes = "instance"
horizon = 500
instances = ["mine"]
"""


def written(tmp_path, text):
    path = tmp_path / "cells.toml"
    path.write_text(text)
    return path


def test_a_file_becomes_cells(tmp_path):
    loaded = sweep_spec.load(written(tmp_path, SMALL))
    assert (loaded.seed, loaded.replications) == (3, 4)
    names = ["In on mine", "In on paper", "In on drawn", "Out on mine"]
    assert [cell.name for cell in loaded.cells] == names
    inside, paper, drawn, out = loaded.cells
    assert inside.instance == lb.Instance([[0.8, 0.5], [0.8, 0.7], ["2/3", 0.9]], noise_sd=0.2)
    assert inside.policy.settings["tradeoff"] == inside.instance.tradeoff > 0
    assert inside.policy.settings["noise_sd"] == 0.2
    assert paper.instance == lb.paper_instance(10)
    assert drawn.instance == lb.random_instance(4, 2, seed=1)
    assert out.policy.settings["optimal_set_sizes"] == [2, 1]
    assert (inside.horizon, out.horizon) == (3000, 500)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("replications", "replicatons", "'replicatons' in the file; did you mean 'replications'"),
        ("noise_sd = 0.2", "noise_std = 0.2", r"instances\.mine; did you mean 'noise_sd'"),
        ("n_arms = 4", "narms = 4", r"instances\.drawn\.random; did you mean 'n_arms'"),
        ("tradeoff =", "trade_off =", r"policies\.In; did you mean 'tradeoff'"),
        ('"LexElimIn"', '"LexElim"', r"policies\.In\.policy; did you mean 'LexElim"),
        ('["mine"]', '["mein"]', r"policies\.Out\.instances; did you mean 'mine'"),
        ('["mine"]', '"mine"', "list of names"),
        ("delta = 0.05\ntradeoff", 'delta = "instance"\ntradeoff', "delta cannot be"),
        ("delta = 0.05\ntradeoff", "delta = 5\ntradeoff", r"policies\.In: delta must be"),
        ("delta = 0.05\ntradeoff", "tradeoff", r"policies\.In: missing .*'delta'"),
        ('policy = "LexElimIn"\n', "", r"policies\.In needs a policy"),
        ("horizon = 3000", "", r"policies\.In needs a horizon"),
        ("horizon = 3000", "horizon = -1", "horizon must be"),
        ("horizon = 3000", "horizon = 1.5", "horizon must be an integer"),
        ("replications = 4", "replications = 0", "replications must be"),
        ("paper = 10", "paper = 7", "multiple of 10"),
        ("paper = 10", "paper = 10\nnoise_sd = 1", r"'noise_sd' in instances\.paper"),
        ("paper = 10", "", r"instances\.paper: missing"),
        ("seed = 3", "seed = ", "is not TOML"),
        (
            '"LexElimIn"',
            '"no_such_module:Mine"',
            r"policies\.In\.policy: cannot find 'no_such_module:Mine': No module",
        ),
        ('"LexElimIn"', '"lexbandits:Nobody"', r"policies\.In\.policy: cannot find 'lexbandits:Nobody'"),
        ('"LexElimIn"', '"lexbandits:Instance"', "must be a class derived from lexbandits.Policy"),
        ('"LexElimIn"', '":LexElimIn"', "cannot find ':LexElimIn'"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, before, after, says):
    assert before in SMALL
    with pytest.raises(ValueError, match=says):
        sweep_spec.load(written(tmp_path, SMALL.replace(before, after, 1)))


def test_a_file_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "cells.toml"
    path.write_bytes(SMALL.encode("utf-16"))
    with pytest.raises(ValueError, match=r"cells\.toml is not UTF-8 \(line 1\): save it as UTF-8"):
        sweep_spec.load(path)


def test_a_mark_before_the_text_is_read_over(tmp_path):
    marked = tmp_path / "marked.toml"
    marked.write_bytes(SMALL.encode("utf-8-sig"))
    assert [cell.name for cell in sweep_spec.load(marked).cells] == [
        cell.name for cell in sweep_spec.load(written(tmp_path, SMALL)).cells
    ]


def test_a_policy_is_informed_of_what_it_takes_and_was_not_given():
    instance = lb.paper_instance(10)
    out = with_oracle_settings(lb.LexElimOut, instance, delta=0.1)
    told = {"delta": 0.1, "optimal_set_sizes": [3, 2, 1], "noise_sd": instance.noise_sd}
    assert out.settings == {"n_arms": 10, "n_objectives": 3, **told}
    assert with_oracle_settings(lb.LexElimIn, instance, delta=0.1, noise_sd=1.0).settings["noise_sd"] == 1.0
    assert with_oracle_settings(lb.LexElimIn, instance, delta=0.1).settings["tradeoff"] == 2.0
    assert with_oracle_settings(lb.UCBAlpha, instance, delta=0.1, alpha=3.0).settings["target_size"] == 3
    tol = with_oracle_settings(lb.LexElimTol, instance, delta=0.1)
    assert tol.settings["tolerance"] == 0.0
    np.testing.assert_allclose(tol.settings["resolution"], [0.1, 0.2, 0.2])
    tied = lb.Instance([[1, 1], [1, 0]])
    assert with_oracle_settings(lb.LexElimTol, tied, delta=0.1).settings["resolution"] == [1.0, 1.0]


def test_coins_tell_the_scale_that_keeps_promises(tmp_path):
    text = SMALL.replace("noise_sd = 0.2", 'noise = "bernoulli"')
    cell = sweep_spec.load(written(tmp_path, text)).cells[0]
    assert cell.policy.settings["noise_sd"] == cell.instance.sub_gaussian_sds.tolist()
    assert cell.policy.settings["noise_sd"][1] == 0.5


@pytest.mark.parametrize("means", [[[1, 0.5], [1, 0.2], [0, 0.9]], [[1, 1], [1, 0], [0, 1]]])
@pytest.mark.parametrize("cls", [lb.LexElimOut, lb.LexElimIn, lb.LexElimPool, lb.LexElimPhase, lb.LexElimTol])
def test_coins_that_never_vary_are_told_the_scale_of_all_coins(cls, means):
    instance = lb.Instance(means, noise="bernoulli")
    assert instance.sub_gaussian_sds[0] == 0
    policy = with_oracle_settings(cls, instance, delta=0.1)
    scales = policy.settings.get("noise_sd", [kind[1] for kind in policy.settings.get("noise", [])])
    assert scales == [0.5, 0.5]
    frame = lb.sweep([lb.simulation.Cell("coins", policy, instance, 100_000)], replications=3).frame()
    assert frame["stopped"].all()
    assert frame["correct"].all()


OWN = """
from typing import NamedTuple
import lexbandits as lb
from lexbandits.policies.base import choose_fewest, never, observe_only

class TurnsState(NamedTuple):
    arms: lb.policies.Arms

class Turns(lb.Policy):
    rules = lb.policies.Rules(choose_fewest, observe_only, never)

    def __init__(self, n_arms, n_objectives, *, tradeoff, period=3):
        super().__init__(n_arms, n_objectives, tradeoff=tradeoff, period=period)
        self.state = TurnsState(lb.policies.untried(n_arms, n_objectives))
"""


def test_a_policy_of_your_own_lies_beside_the_file(tmp_path):
    (tmp_path / "beside_the_file.py").write_text(OWN)
    own = (
        '[policies.Own]\npolicy = "beside_the_file:Turns"\ntradeoff = "instance"\nperiod = 4\nhorizon = 20\n'
    )
    loaded = sweep_spec.load(written(tmp_path, SMALL.split("[policies.In]")[0] + own))
    settings = [cell.policy.settings for cell in loaded.cells]
    assert [told["period"] for told in settings] == [4, 4, 4]
    assert settings[0]["tradeoff"] == loaded.cells[0].instance.tradeoff
    assert lb.sweep(loaded.cells, replications=2).frame()["rounds"].tolist() == [20] * 6
    with pytest.raises(ValueError, match=r"unknown 'perod' in policies\.Own; did you mean 'period'"):
        sweep_spec.load(written(tmp_path, SMALL + own.replace("period", "perod")))


def test_nothing_to_run(tmp_path):
    with pytest.raises(ValueError, match=r"\[instances\.NAME\]"):
        sweep_spec.load(written(tmp_path, "horizon = 3"))


def test_the_command(tmp_path):
    path = written(tmp_path, SMALL)
    arguments = ["simulate", str(path), "--out", str(tmp_path / "out"), "--jobs", "2"]
    first = invoked(*arguments)
    assert first.exit_code == 0, first.output
    assert "In on mine" in first.output
    loaded = sweep_spec.load(path)
    results = lb.sweep(loaded.cells, replications=4, seed=3)
    with (tmp_path / "out" / "runs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [int(row["rounds"]) for row in rows] == results.frame().rounds.tolist()
    assert (tmp_path / "out" / "summary.csv").read_text().count("\n") == 5
    figure = (tmp_path / "out" / "regret.svg").read_bytes()
    assert figure.startswith(b"<svg")
    assert (tmp_path / "out" / "regret.md").read_text().count("\n") == 2 + 4
    assert r"\bottomrule" in (tmp_path / "out" / "regret.tex").read_text()
    again = invoked(*arguments)
    assert again.exit_code == 0
    assert (tmp_path / "out" / "regret.svg").read_bytes() == figure


def test_the_command_says_what_is_wrong(tmp_path):
    for path in (written(tmp_path, "horizn = 3"), tmp_path / "missing.toml"):
        result = invoked("simulate", str(path))
        assert result.exit_code == 2
        assert path.name in result.output
        assert "Traceback" not in result.output


def test_the_summary_and_the_figure():
    instance = lb.paper_instance(10)
    policy = lb.LexElimIn(10, 3, delta=0.1, tradeoff=2, noise_sd=0.1)
    results = lb.sweep(
        [lb.simulation.Cell("a", policy, instance, 10**5), lb.simulation.Cell("b", policy, instance, 20)],
        replications=9,
    )
    table = output.table(results)
    assert [row["stopped"] for row in table] == [9, 0]
    assert [row["pulls"] for row in table] == [results.runs["a"].rounds.mean(), 20.0]
    figure = output.regret_figure(results)
    assert figure.panels[1].y_scale == "symlog", "else the long cell hides the short one"
    line = figure.panels[1].curves[0]
    assert np.allclose(line.y[-1], results.regret("a", [10**5])[:, 0, 1].mean())


def test_regret_as_tables_and_with_its_bound():
    world = lb.Instance([[0.9, 0.4], [0.9, 0.2], [0.1, 1.0]], noise_sd=0.2)
    cells = [
        lb.simulation.Cell("50 % a|b_c", lb.RoundRobin(3, 2), world, 100),
        lb.simulation.Cell("λ", lb.LexDMED(3, 2, tradeoff=1, noise_sd=0.2), world, 300),
    ]
    results = lb.sweep(cells, replications=7)
    table = results.regret_table()
    assert table["round"].tolist() == [100, 100, 300, 300]
    ends = results.regret("λ", [300])[:, 0]
    row = table.iloc[3]
    assert row["mean"] == ends[:, 1].mean()
    assert row["standard error"] == pytest.approx(ends[:, 1].std(ddof=1) / 7**0.5)
    assert row["95 % quantile"] == np.quantile(ends[:, 1], 0.95)
    assert row["largest"] == ends[:, 1].max()
    assert results.regret_table([10, 60])["round"].tolist() == [10, 10, 60, 60] * 2
    markdown = results.regret_table(form="markdown").splitlines()
    mean = results.regret("50 % a|b_c", [100])[0, 0]  # turns: the same in every run
    assert markdown[2] == (
        rf"| 50 % a\|b_c | 100 | {mean[0]:.1f} / {mean[1]:.1f} | 0.0 / 0.0 | {mean[0]:.0f} / {mean[1]:.0f} "
        f"| {mean[0]:.0f} | 7 |"
    )
    latex = results.regret_table(form="latex")
    assert r"50 \% a|b\_c & 100" in latex
    assert r"$\lambda$ & 300" in latex
    with pytest.raises(ValueError, match="form must be one of frame, markdown, latex"):
        results.regret_table(form="html")
    figure = results.regret_figure(quantile=0.95, bounds={"lower bound": (2.0, 3.0)})
    drawn = {line.name: line for line in figure.panels[1].curves}
    assert drawn["lower bound"].y[-1] == pytest.approx(3.0 * np.log(300))
    assert figure.panels[1].curves[3].y[-1] == pytest.approx(np.quantile(ends[:, 1], 0.95))
    low, high = drawn["λ"].band
    assert (low[-1] + high[-1]) / 2 == pytest.approx(ends[:, 1].mean())
    assert (high[-1] - low[-1]) / 4 == pytest.approx(row["standard error"])
    assert "50 % a|b_c" in figure._repr_svg_()
    with pytest.raises(ValueError, match="quantile"):
        results.regret_figure(quantile=95)


def test_the_example_of_the_page_runs(tmp_path):
    text = PAGE.read_text().split("```toml\n")[1].split("```")[0]
    loaded = sweep_spec.load(written(tmp_path, text))
    assert len(loaded.cells) >= 3
    lb.sweep(loaded.cells, replications=1)
