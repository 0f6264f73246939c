"""The experiment on regret: its rows, its page, and that it goes on from what is on disk."""

from pathlib import Path

import numpy as np
import pytest

import lexbandits as lb
from experiments import regret

PAGE = Path(__file__).parent.parent / "docs" / "regret.md"


def test_every_row_makes_a_policy_and_names_differ():
    rows = [*regret.OTHERS, *regret.OURS]
    assert len({row.name for row in rows}) == len(rows)
    assert set(regret.CURVES) <= {row.name for row in rows}
    world = lb.paper_instance(10)
    for row in rows:
        policy = row.make(world, 1_000)
        assert (policy.n_arms, policy.n_objectives) == (10, 3)
        assert policy.settings.get("tradeoff", 2.0) == 2.0


def test_a_cell_counts_runs_and_is_not_run_twice(tmp_path, monkeypatch):
    world = lb.Instance([[0.9, 0.4], [0.9, 0.2], [0.1, 1.0]], noise_sd=0.5)
    rows = [
        regret.Row("stops", lambda instance, T: lb.LexElimPool(3, 2, delta=0.4, tradeoff=1, noise_sd=0.1)),
        regret.Row("turns", lambda instance, T: lb.RoundRobin(3, 2), fast=False),
    ]
    bench = regret.Bench(50, tmp_path, 1)
    results = bench.run("small", rows, world, 2_000)
    assert results.runs["turns"].rounds.size == 2
    regrets = results.regret("stops", [2_000])[:, 0]
    cells = regret.regret_cells(results, "stops", 2_000)
    wrong = int((results.runs["stops"].recommendation != 0).sum())
    assert 0 < wrong < 50
    high = int((regrets[:, 0] > 200).sum())
    assert cells[3:] == [f"{regrets[:, 0].max():,.0f}", f"{high:,}; {wrong:,}", "50"]
    assert cells[0] == " / ".join(f"{value:,.1f}".replace("-", "−") for value in regrets.mean(axis=0))
    monkeypatch.setattr("lexbandits.simulation.workers.replicate", None)  # nothing is left to do
    again = bench.run("small", rows, world, 2_000)
    assert (again.runs["stops"].pulls == results.runs["stops"].pulls).all()


def test_errors_are_rounded_up_and_signs_are_typeset():
    assert regret.beside(np.array([0.01, 0.1, 2.0]), up=True) == "0.1 / 0.1 / 2.0"
    assert regret.beside(np.array([-3.21, -0.0])) == "−3.2 / 0.0"


def test_the_page_is_filled_between_its_marks():
    text = PAGE.read_text("utf-8")
    filled = regret.filled(text, {"long": [["head", "x"], ["row", "1"]]})
    assert "<!-- long -->\n| head | x |\n| --- | ---: |\n| row | 1 |\n<!-- end -->" in filled
    assert filled.split("<!-- long -->")[0] == text.split("<!-- long -->")[0]
    with pytest.raises(ValueError, match="no mark <!-- nothing -->"):
        regret.filled(text, {"nothing": [["head"]]})


def test_the_tables_of_the_page_have_every_policy():
    """They were made by the command as it is."""
    table = PAGE.read_text("utf-8").split("<!-- figure2 -->")[1].split("<!-- end -->")[0]
    names = [line.split(" | ")[0].removeprefix("| ") for line in table.strip().splitlines()[2:]]
    assert names == [*(row.name for row in (*regret.OTHERS, *regret.OURS)), "lower bound c·log T, asymptotic"]
