"""The table of the theory says what the functions behind it say."""

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.theory.lower_bound import sample_lower_bound
from lexbandits.theory.overview import bounds


@pytest.fixture(scope="module")
def table():
    return bounds(lb.paper_instance(10), 0.01)


def test_columns_per_objective_are_the_theorems(table):
    instance = lb.paper_instance(10)
    for algorithm, kind, constants in [
        (a, k, c) for a in ("out", "in") for k in ("regret", "samples") for c in ("printed", "proved")
    ]:
        function = getattr(lb.theory, f"lexelim_{algorithm}_{kind}")
        expected = function(instance, 0.01, noise_sd=instance.noise_sd, constants=constants)
        np.testing.assert_allclose(table.objectives[f"{algorithm}_{kind}_{constants}"], expected)
    assert table.objectives["tied"].tolist() == [3, 2, 1]


def test_the_lower_bound_is_below_the_proved_bounds_and_its_pulls_add_up(table):
    assert table.lower == sample_lower_bound(table.time.low, 0.01)
    assert table.lower < table.objectives["in_samples_proved"].max()
    assert table.lower < table.objectives["out_samples_proved"].max()
    assert table.arms["share"].sum() == pytest.approx(1.0)
    assert table.arms["pulls"].sum() == pytest.approx(table.lower)


def test_arms_have_their_gaps_and_margins(table):
    instance = lb.paper_instance(10)
    np.testing.assert_array_equal(table.arms[["gap 0", "gap 1", "gap 2"]].to_numpy(), instance.gaps)
    assert np.all(table.arms["cone_margin"] >= table.arms["effective_gap"] - 1e-12)
