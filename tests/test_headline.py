"""The two tables that the command prints, on a few runs."""

from pathlib import Path

import numpy as np

import lexbandits as lb
from experiments.headline import KNOWS, headline, headline_markdown
from experiments.misspecification import misspecification, misspecification_figure, questions

PAGE = Path(__file__).parent.parent / "docs" / "choosing.md"


def test_the_headline_has_a_row_for_every_algorithm_and_its_own_runs():
    table = headline(arms=(10,), replications=3, seed=4)
    assert list(table["algorithm"]) == list(KNOWS)
    assert (table["stopped"] == 3).all()
    assert (table["ratio"] > 1).all()
    pool = lb.LexElimPool(10, 3, delta=0.01, tradeoff=2.0, noise_sd=lb.paper_instance(10).noise_sd)
    runs = [lb.simulate(pool, lb.paper_instance(10), horizon=10**6, seed=4, replication=r) for r in range(3)]
    row = table[table["algorithm"] == "LexElim-Pool"].iloc[0]
    assert row["pulls"] == np.mean([run.rounds for run in runs])


def test_the_page_shows_what_the_command_prints():
    """All of it takes a minute: here the head, and the two columns of K = 10 that are quick to run."""
    page = PAGE.read_text(encoding="utf-8").splitlines()
    head = headline_markdown(headline(arms=(10,), replications=2)).splitlines()[:2]
    shown = page[page.index(head[0]) :]
    assert shown[1] == head[1]
    names = [cell.strip() for cell in shown[0].split("|")]
    row = [cell.strip() for cell in shown[2].split("|")]
    quick = ["LexElim-Phase", "LexElim-Pool"]
    printed = headline_markdown(headline(arms=(10,), only=quick, n_jobs=2)).splitlines()[2]
    assert printed == f"| 10 | 581 | {' | '.join(row[names.index(name)] for name in quick)} |"


def test_misspecification_asks_about_everything_a_person_may_not_know():
    table = misspecification(replications=3, horizon=20_000)
    assert set(table["topic"]) == {"tradeoff", "correlation", "noise", "tolerance"}
    assert len(table) == len(list(questions()))
    pulls = table[table["topic"] == "noise"].set_index("value")["pulls"]
    assert pulls[2.0] > pulls[1.0] > pulls[0.5]
    figure = misspecification_figure(table)
    assert len(figure.axes) == 8
