"""The two tables that the command prints, on a few runs."""

import numpy as np

import lexbandits as lb
from lexbandits.reproduction.headline import headline, headline_markdown
from lexbandits.reproduction.ignorance import ignorance, ignorance_figure, questions


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
