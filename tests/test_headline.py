"""The two tables that the command prints, on a few runs."""

import numpy as np

import lexbandits as lb
from lexbandits.reproduction.headline import headline, headline_markdown
from lexbandits.reproduction.ignorance import ignorance, ignorance_figure, out_of_tolerance, questions


def test_the_headline_has_a_row_for_every_algorithm_and_its_own_runs():
    table = headline(arms=(10,), replications=3, seed=4)
    assert list(table["algorithm"])[:4] == ["LexElim-Out", "LexElim-Phase", "LexElim-In", "LexElim-Cone"]
    assert (table["stopped"] == 3).all()
    assert (table["ratio"] > 1).all()
    cone = lb.LexElimCone(10, 3, delta=0.01, tradeoff=2.0, noise_sd=lb.paper_instance(10).noise_sd)
    runs = [lb.simulate(cone, lb.paper_instance(10), horizon=10**6, seed=4, replication=r) for r in range(3)]
    row = table[table["algorithm"] == "LexElim-Cone"].iloc[0]
    assert row["pulls"] == np.mean([run.rounds for run in runs])
    text = headline_markdown(table)
    assert "| 10 | 581 |" in text
    assert text.count("\n") == 2


def test_ignorance_asks_about_everything_a_person_may_not_know():
    table = ignorance(replications=3, horizon=20_000)
    assert set(table["topic"]) == {"tradeoff", "correlation", "noise", "tolerance"}
    assert len(table) == len(list(questions()))
    pulls = table[table["topic"] == "noise"].set_index("value")["pulls"]
    assert pulls[2.0] > pulls[1.0] > pulls[0.5]
    figure = ignorance_figure(table)
    assert len(figure.axes) == 8


def test_a_broken_promise_of_tol_is_seen():
    question = next(q for q in questions() if q.topic == "tolerance" and q.value == 0.05)
    behind = [lb.Elimination(arm, 10, 0, 5) for arm in range(10) if arm not in (2, 5, 8)]
    lost = [lb.Elimination(2, 20, 1, 5)]
    assert not out_of_tolerance(question, 5, [*behind, *lost, lb.Elimination(8, 30, 2, 5)])
    assert out_of_tolerance(question, 2, behind)  # 0.4 behind on the second objective
    assert out_of_tolerance(question, 8, [*behind, lb.Elimination(5, 20, 1, 8)])  # it ties with the best
