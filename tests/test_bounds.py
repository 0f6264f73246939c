"""The table of `lexbandits bounds` says what the functions behind it say."""

from itertools import product

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.theory.all_bounds import overview


@pytest.fixture(scope="module")
def table():
    return overview(lb.paper_instance(10), 0.01)


def test_columns_are_the_theorems_and_the_lemmas(table):
    instance = lb.paper_instance(10)
    told = {"noise_sd": instance.noise_sd}
    for kind, frame in {
        "regret": table.objectives,
        "samples": table.objectives,
        "pulls": table.leaving,
    }.items():
        for algorithm, constants in product(("out", "in"), ("printed", "proved")):
            function = getattr(lb.theory, f"lexelim_{algorithm}_{kind}")
            expected = function(instance, 0.01, **told, constants=constants)
            assert np.array_equal(frame[f"{algorithm}_{kind}_{constants}"], expected)
    assert list(table.objectives["tied"]) == [3, 2, 1]


def test_the_lower_bound_is_below_the_proved_bounds_and_its_pulls_add_up(table):
    assert table.lower == lb.sample_lower_bound(table.time.low, 0.01)
    assert table.lower < table.objectives["in_samples_proved"].max()
    assert table.lower < table.objectives["out_samples_proved"].max()
    assert table.arms["share"].sum() == pytest.approx(1.0)
    assert table.arms["pulls"].sum() == pytest.approx(table.lower)


def test_arms_have_their_gaps_and_margins(table):
    instance = lb.paper_instance(10)
    gaps = np.stack([table.arms[f"gap {i}"] for i in range(3)], axis=1)
    np.testing.assert_array_equal(gaps, instance.gaps)
    assert np.all(table.arms["cone_margin"] >= table.arms["effective_gap"] - 1e-12)
