"""Figures draw without eval, say what is seen, and print in 80 columns."""

import io

import pytest
import stage
from rich.console import Console

import lexbandits as lb
from lexbandits.insight import terminal

NAMES = ["intervals", "race", "evidence", "forecast", "pulls", "workers"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("which", ["ended", "under_way"])
def test_a_figure_has_svg_traces_and_a_title(name, which, request):
    figure = getattr(lb.plot, name)(request.getfixturevalue(which))
    assert figure.data
    assert {trace.type for trace in figure.data} <= {"scatter", "bar"}
    lines = figure.layout.title.text.split("<br>")
    assert sum(map(len, lines)) > 15
    assert max(map(len, lines)) <= 46, "it fits 360 pixels"
    figure.to_json()


def test_the_intervals_show_the_values_of_the_table(ended):
    figure = lb.plot.intervals(ended)
    table = ended.results().set_index(["arm", "objective"])["mean"]
    shown = {(arm, x) for trace in figure.data for arm, x in zip(trace.y, trace.x, strict=True)}
    assert ("base", table["base", "latency"]) in shown
    assert ("tiny", table["tiny", "refusals"]) in shown
    assert ("tiny", table["tiny", "latency"]) not in shown, (
        "an arm that left is not shown where it no longer counts"
    )


def test_the_race_ends_where_arms_left(ended):
    ends = {trace.y[0]: trace.x[-1] for trace in lb.plot.race(ended).data}
    stories = ended.explain()
    assert ends["tiny"] == stories["tiny"].after
    assert ends["small"] == stories["small"].after
    assert ends["base"] == max(ends.values())


def test_the_evidence_ends_at_what_the_policy_knows(ended):
    figure = lb.plot.evidence(ended)
    names = [objective.name for objective in ended.objectives]
    i = names.index(figure.layout.title.text.split()[0])
    low, high = (trace for trace in figure.data if trace.hovertemplate.startswith("large"))
    arms = list(ended.arms)
    known = ended.policy.differences[arms.index("large"), arms.index("base"), i]
    assert [low.y[-1], high.y[-1]] == known.tolist()
    band, *edges = figure.layout.shapes
    slack, fine = ended.objectives[i].tolerance_in_unit, ended.objectives[i].resolution_in_unit
    assert (band.y0, band.y1) == (-slack, slack)
    assert [edge.y0 for edge in edges] == [-slack - fine, slack + fine]


@pytest.mark.parametrize("name", ["intervals", "race", "evidence", "pulls", "workers"])
def test_a_new_study_can_be_drawn(name):
    getattr(lb.plot, name)(stage.create("new")).to_json()


@pytest.mark.parametrize("which", ["ended", "under_way"])
def test_the_terminal_is_80_columns_wide(which, request):
    study = request.getfixturevalue(which)
    out = io.StringIO()
    console = Console(file=out, width=80)
    terminal.print_forecast(study, console=console, runs=10)
    terminal.print_explanation(study, console=console)
    terminal.print_explanation(study, "tiny", console=console)
    lines = out.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    text = " ".join(" ".join(lines).split())
    assert "tiny left after" in text
    assert "What learning cost" in text
