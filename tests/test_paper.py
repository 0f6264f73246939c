"""The paper's experiments as data, and verdicts that follow the numbers."""

import math

import numpy as np
import pandas as pd
import pytest

from lexbandits.reproduction import claims, figures, paper


def test_every_cell_is_there_once_and_plays_the_instance_it_names():
    cells = paper.cells()
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.instance is paper.instance(cell.name.split(",")[0])
        assert cell.policy.n_arms == cell.instance.n_arms


def test_sections_share_the_cells_they_have_in_common():
    both = {cell.name for cell in paper.cells(["samples", "bounds"])}
    apart = [{cell.name for cell in paper.cells([section])} for section in ("samples", "bounds")]
    assert both == apart[0] | apart[1]
    assert len(apart[0] & apart[1]) == 12  # two algorithms, two widths, three K


def test_an_unknown_section_is_named():
    with pytest.raises(ValueError, match="regrets"):
        paper.cells(["regrets"])


def test_the_instances_are_what_the_text_says():
    for n_arms in paper.ARMS:
        told = paper.instance(f"K={n_arms}")
        assert told.optimal_set(0) == tuple(n_arms * p // 10 - 1 for p in (3, 6, 9))
        assert told.optimal_set_sizes == (3, 2, 1)
        assert told.lex_optimal_arm == 6 * n_arms // 10 - 1
        assert told.tradeoff == paper.TRADEOFF
    conflict_free, conflict = (paper.instance(case) for case in paper.FIGURE_1)
    assert (conflict_free.tradeoff, conflict.tradeoff) == (0.0, 1.0)
    assert conflict_free.lex_optimal_arm == conflict.lex_optimal_arm == paper.STAR
    assert conflict.gaps[paper.RED, 1] < 0


def test_each_algorithm_is_told_what_its_width_setting_says():
    for width, entries in paper.regret_entries().items():
        for entry in entries:
            if entry.algorithm != "round-robin":
                assert entry.policy().settings["noise_sd"] == paper.WIDTHS[width].noise_sd
    published = [e for e in paper.samples_entries()["printed", 10] if e.algorithm == "EGE"]
    assert published[0].policy().settings["noise_sd"] == 0.5
    assert published[0].policy().settings["target_size"] == 3


@pytest.fixture(scope="module")
def regret():
    return paper.measure(["regret"], replications=3)


def test_as_printed_nothing_is_eliminated_and_regret_is_that_of_round_robin(regret):
    ends = regret["regret_end"]
    for algorithm in (*paper.PAPERS, "round-robin"):
        rows = claims.many(ends, width="printed", algorithm=algorithm)
        assert [row["regret"] for row in rows] == pytest.approx([800, 1000, 3000])
        assert rows[0]["arms_eliminated"] == 0


def test_curves_start_at_zero_and_end_where_the_ends_say(regret):
    curves, ends = regret["regret"], regret["regret_end"]
    assert (curves[curves["t"] == 0]["regret"] == 0).all()
    last = curves[curves["t"] == paper.ROUNDS].reset_index(drop=True)
    np.testing.assert_array_equal(last["regret"], ends["regret"])


def test_regret_verdicts_follow_the_numbers(regret):
    table = claims.verdicts(regret, ["regret"], "lexbandits paper")
    outcome = dict(zip(table["claim"], table["verdict"], strict=True))
    assert "as printed" not in outcome["sublinear-regret"]
    assert table["command"].tolist() == [f"lexbandits paper --claim {name}" for name in table["claim"]]

    bent = {**regret, "regret_end": regret["regret_end"].assign(bend=-1.0, bend_se=0.0)}
    assert claims.sublinear_regret(bent).outcome == claims.HOLDS
    straight = {**regret, "regret_end": regret["regret_end"].assign(bend=1.0, bend_se=0.0)}
    assert claims.sublinear_regret(straight).outcome == claims.FAILS
    assert claims.ucb_learns_the_first_objective_only(straight).outcome == claims.FAILS


def samples_table(pulls):
    """A table of samples in which `pulls(width, algorithm, n_arms)` says how many, without errors."""
    rows = []
    for (width, n_arms), entries in paper.samples_entries().items():
        for entry in entries:
            value = pulls(width, entry.algorithm, n_arms)
            rows += [
                {
                    "width": width,
                    "n_arms": n_arms,
                    "algorithm": entry.algorithm,
                    "objective": i,
                    "samples": value,
                    "samples_se": 0.0,
                    "pulls": value,
                    "pulls_se": 0.0,
                    "replications": 100,
                    "unstopped": 0,
                    "wrong": 0,
                }
                for i in ((1,) if entry.algorithm in paper.SINGLE else (1, 2, 3))
            ]
    return {"samples": pd.DataFrame(rows)}


def test_in_beats_out_only_where_it_needs_fewer_pulls():
    slow = {("LexElim-In", 10): 500.0}
    tables = samples_table(lambda w, a, k: slow.get((a, k), 300.0 if a == "LexElim-In" else 400.0))
    assert claims.inner_beats_outer(tables).outcome == "holds only with K = 20 or K = 30"


def test_more_arms_need_more_samples():
    assert claims.more_arms_more_samples(samples_table(lambda w, a, k: k * 1.0)).outcome == claims.HOLDS
    shrinking = samples_table(lambda w, a, k: k * (-1.0 if (w, a) == ("tenth", "UCB-α") else 1.0))
    assert "× 0.1" not in claims.more_arms_more_samples(shrinking).outcome


def test_errors_above_delta_speak_against_a_width_setting():
    tables = samples_table(lambda w, a, k: k * 1.0)
    assert claims.error_at_most_delta(tables).outcome == claims.HOLDS
    table = tables["samples"]
    many_wrong = (table["width"] == "tenth") & (table["algorithm"] == "LexElim-Out")
    tables = {"samples": table.assign(wrong=np.where(many_wrong, 5, 0))}
    assert claims.error_at_most_delta(tables).outcome == "holds only with σ = 1 as printed or σ = √0.1"


def bounds_row(**changes):
    row = {
        "source": "Theorem 2",
        "instance": "K=10",
        "width": "printed",
        "objective": 1,
        "arm": math.nan,
        "printed": 100.0,
        "proved": 300.0,
        "measured": 50.0,
        "measured_se": 1.0,
        "largest": 60.0,
        "above_printed": 0,
        "above_proved": 0,
        "replications": 100,
    }
    return row | changes


@pytest.mark.parametrize(
    ("worst", "outcome"),
    [
        ({}, claims.HOLDS),
        ({"above_printed": 3}, claims.HOLDS),  # δ = 0.01 allows some
        ({"above_printed": 90}, "holds only with the repaired bound"),
        ({"above_printed": 90, "above_proved": 50}, claims.FAILS),
    ],
)
def test_a_bound_holds_unless_more_runs_exceed_it_than_delta_allows(worst, outcome):
    table = pd.DataFrame([bounds_row(), bounds_row(instance="waiting", largest=400.0, **worst)])
    assert claims.within_the_bound("Theorem 2")({"bounds": table}).outcome == outcome


def test_lemma_2_fails_by_its_own_numbers():
    assert claims.lemma_2({}).outcome == "holds only with the true threshold"


def test_two_means_differ_when_two_standard_errors_apart():
    assert claims.below((1.0, 0.3), (2.0, 0.3))
    assert not claims.below((1.0, 0.4), (2.0, 0.4))
    assert claims.below((1.0, math.nan), (2.0, 0.0))


def test_claims_have_their_own_names_and_known_sections():
    assert len({claim.name for claim in claims.CLAIMS}) == len(claims.CLAIMS)
    assert {claim.section for claim in claims.CLAIMS} == set(paper.SECTIONS) == set(figures.FIGURES)


def test_every_algorithm_and_width_has_a_look():
    drawn = {cell.name.split(", ")[1] for cell in paper.cells()}
    assert drawn == set(figures.LOOKS)
    assert set(figures.WIDTHS) == set(paper.WIDTHS)
    colours = {look.colour for name, look in figures.LOOKS.items() if name != "EGE/3900"}
    assert len(colours) == len(figures.LOOKS) - 1


def test_settings_name_what_the_paper_leaves_open():
    told = paper.settings(100).set_index("setting")["value"]
    assert told["δ"].startswith("0.01")
    assert told["λ"].startswith("2,")
    assert "3" in told["α of UCB-α"]
