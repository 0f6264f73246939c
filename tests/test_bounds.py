"""The table of `lexbandits bounds` says what the functions behind it say."""

from itertools import product

import numpy as np
import pytest
from typer.testing import CliRunner

import lexbandits as lb
from lexbandits.cli import app
from lexbandits.theory.overview import overview


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
    assert table.objectives["tied"].tolist() == [3, 2, 1]


def test_the_lower_bound_is_below_the_proved_bounds_and_its_pulls_add_up(table):
    assert table.lower == lb.sample_lower_bound(table.time.low, 0.01)
    assert table.lower < table.objectives["in_samples_proved"].max()
    assert table.lower < table.objectives["out_samples_proved"].max()
    assert table.arms["share"].sum() == pytest.approx(1.0)
    assert table.arms["pulls"].sum() == pytest.approx(table.lower)


def test_arms_have_their_gaps_and_margins(table):
    instance = lb.paper_instance(10)
    np.testing.assert_array_equal(table.arms[["gap 0", "gap 1", "gap 2"]].to_numpy(), instance.gaps)
    assert np.all(table.arms["cone_margin"] >= table.arms["effective_gap"] - 1e-12)


def run(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_the_command_prints_the_bounds_of_the_papers_instance():
    done = run("bounds", "--paper", 10)
    assert done.exit_code == 0
    assert "any δ-correct algorithm needs 581 pulls" in done.output
    assert "out samples printed" in done.output


def test_the_command_reads_an_instance_from_a_file(tmp_path):
    file = tmp_path / "instance.toml"
    file.write_text("means = [[1, 0.5], [1, 1], [0, 2]]\nnoise_sd = 0.5\n")
    done = run("bounds", file, "--delta", 0.1)
    assert done.exit_code == 0
    assert "lex-optimal arm 1, λ = 1, δ = 0.1" in done.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "name one instance"),
        (("--paper", 15), "multiple of 10"),
        (("--paper", 10, "--tradeoff", 1), "tradeoff"),
        (("--paper", 10, "--delta", 2), "delta"),
    ],
)
def test_the_command_says_what_was_wrong(arguments, said):
    done = run("bounds", *arguments)
    assert done.exit_code == 2
    assert said in done.output


def test_a_misspelt_key_of_an_instance_is_named(tmp_path):
    file = tmp_path / "instance.toml"
    file.write_text("means = [[1, 0.5], [1, 1]]\nnoise_ds = 0.5\n")
    done = run("bounds", file)
    assert done.exit_code == 2
    assert "did you mean 'noise_sd'?" in done.output


def test_headline_and_ignorance_write_their_tables(tmp_path):
    done = run(
        "headline", "--out", tmp_path / "h", "--arms", 10, "--replications", 2, "--only", "LexElim-Pool"
    )
    assert done.exit_code == 0
    assert "LexElim-Pool |" in done.output
    assert (tmp_path / "h" / "headline.csv").exists()
    unknown = run("headline", "--out", tmp_path / "h", "--only", "LexElim-Pol")
    assert unknown.exit_code == 2
    assert "unknown algorithm 'LexElim-Pol'" in unknown.output
    done = run("ignorance", "--out", tmp_path / "i", "--replications", 2)
    assert done.exit_code == 0
    assert {file.name for file in (tmp_path / "i").glob("ignorance.*")} == {
        f"ignorance.{ending}" for ending in ("csv", "png", "pdf")
    }
