"""The paper's experiments as data: every cell is what its name and its width setting say."""

import numpy as np
import pytest

from experiments.paper import acceleration, regret, samples
from experiments.paper import sections as paper
from experiments.paper.experiment import ALGORITHMS, ARMS, PAPERS, TRADEOFF, WIDTHS, named_paper_instance
from experiments.paper.tables import rows_of
from experiments.paper.verdict import FAILS, HOLDS

ALL = tuple(paper.SECTIONS.values())


def test_every_cell_is_there_once_and_plays_the_instance_it_names():
    instances = {entry.case.name: entry.case.instance for section in ALL for _, entry in section.entries()}
    cells = paper.cells(ALL)
    assert len({cell.name for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.instance == instances[cell.name.split(",")[0]]
        assert cell.policy.n_arms == cell.instance.n_arms


def test_sections_share_the_cells_they_have_in_common():
    pair = paper.chosen_sections(["samples", "theorems"])
    apart = [{cell.name for cell in paper.cells([section])} for section in pair]
    assert {cell.name for cell in paper.cells(pair)} == apart[0] | apart[1]
    assert len(apart[0] & apart[1]) == 12  # two algorithms, two widths, three K


def test_an_unknown_section_is_named():
    with pytest.raises(ValueError, match="regrets"):
        paper.chosen_sections(["regrets"])


def test_the_instances_are_what_the_text_says():
    for n_arms in ARMS:
        known = named_paper_instance(n_arms).instance
        assert known.optimal_set(0) == tuple(n_arms * p // 10 - 1 for p in (3, 6, 9))
        assert known.optimal_set_sizes == (3, 2, 1)
        assert known.lex_optimal_arm == 6 * n_arms // 10 - 1
        assert known.tradeoff == TRADEOFF
    conflict_free, conflict, _ = (case.instance for case in acceleration.INSTANCES)
    assert (conflict_free.tradeoff, conflict.tradeoff) == (0.0, 1.0)
    assert conflict_free.lex_optimal_arm == conflict.lex_optimal_arm == 0
    assert conflict.gaps[-1, 1] < 0


def test_each_algorithm_is_told_what_its_width_setting_says():
    for labels, entry in regret.entries():
        if entry.algorithm != "round-robin":
            told, width = entry.cell().policy.settings, WIDTHS[labels["width"]].noise_sd
            assert told.get("noise_sd", told.get("noise")) in (width, ["sub_gaussian", width, "independent"])
    published = next(e for labels, e in samples.entries() if labels["algorithm"] == "EGE")
    assert published.cell().policy.settings["noise_sd"] == 0.5
    assert published.cell().policy.settings["target_size"] == 3


@pytest.fixture(scope="module")
def measured():
    return paper.measure([regret], replications=3)


def test_as_printed_nothing_is_eliminated_and_regret_is_that_of_round_robin(measured):
    ends = measured["regret_end"]
    for algorithm in (*PAPERS, "round-robin"):
        rows = rows_of(ends, width="printed", algorithm=algorithm)
        assert [row["regret"] for row in rows] == pytest.approx([800, 1000, 3000])
        assert rows[0]["arms_eliminated"] == 0


def test_curves_start_at_zero_and_end_where_the_ends_say(measured):
    curves, ends = measured["regret"], measured["regret_end"]
    assert (curves[curves["t"] == 0]["regret"] == 0).all()
    last = curves[curves["t"] == regret.ROUNDS].reset_index(drop=True)
    np.testing.assert_array_equal(last["regret"], ends["regret"])


def test_regret_verdicts_follow_the_numbers(measured):
    table = paper.verdicts(measured, [regret], "python -m experiments paper")
    outcome = dict(zip(table["claim"], table["verdict"], strict=True))
    assert "as printed" not in outcome["sublinear-regret"]
    assert table["command"].tolist() == [
        f"python -m experiments paper --claim {name}" for name in table["claim"]
    ]

    bent = {**measured, "regret_end": measured["regret_end"].assign(bend=-1.0, bend_se=0.0)}
    assert regret.sublinear_regret.judge(bent).outcome == HOLDS
    straight = {**measured, "regret_end": measured["regret_end"].assign(bend=1.0, bend_se=0.0)}
    assert regret.sublinear_regret.judge(straight).outcome == FAILS
    assert regret.ucb_learns_the_first_objective_only.judge(straight).outcome == FAILS


def test_claims_have_their_own_names():
    names = [claim.name for section in ALL for claim in section.CLAIMS]
    assert len(set(names)) == len(names)
    assert all(section.CLAIMS for section in ALL)


def test_every_algorithm_can_be_told_apart():
    drawn = {entry.algorithm for section in ALL for _, entry in section.entries()}
    assert drawn == set(ALGORITHMS)
    colours = {look.colour for name, look in ALGORITHMS.items() if name != "EGE/3900"}
    assert len(colours) == len(ALGORITHMS) - 1


def test_settings_name_what_the_paper_leaves_open():
    told = paper.settings(100).set_index("setting")["value"]
    assert told["δ"].startswith("0.01")
    assert told["λ"].startswith("2,")
    assert "3" in told["α of UCB-α"]
