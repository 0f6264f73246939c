"""How often a gate ships and names a regression (experiments/gate.py): what is drawn, and the targets."""

import numpy as np
import pytest

from experiments import gate


def test_a_table_is_drawn_as_it_says():
    drawn = gate.table("3 points worse, 30 % cheaper", 0, 0, cases=200_000)
    right, cost = (np.asarray(drawn[name]).reshape(2, -1) for name in ("accuracy", "cost"))
    assert right.mean(axis=1) == pytest.approx([0.85, 0.82], abs=0.005)
    assert cost.mean(axis=1) == pytest.approx([1.0, 0.7], abs=0.01)
    assert 0.045 < (right[0] != right[1]).mean() < 0.105


def test_a_row_counts_its_tables():
    found = gate.outcomes("3 points better, 30 % dearer", 4, 0, cases=3000)
    assert list(found) == ["ship", "not_shown", "regression"]
    assert sum(found.values()) == 4
    assert found["regression"] == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "outcome", "least", "most"),
    [
        ("equal, 30 % cheaper", "ship", 90, 100),
        ("3 points worse, 30 % cheaper", "ship", 0, 5),
        ("3 points worse, 30 % cheaper", "regression", 60, 100),
        ("1.9 points worse, 30 % cheaper", "regression", 0, 5),
    ],
)
def test_of_100_tables(change, outcome, least, most):
    assert least <= gate.outcomes(change, 100, seed=0)[outcome] <= most
