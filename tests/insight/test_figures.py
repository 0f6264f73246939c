"""Figures draw without eval, say what is seen, and print in 80 columns."""

import io
import time

import pytest
from rich.console import Console

import lexbandits as lb
from lexbandits.insight import terminal
from support import stage

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
    assert "large: behind" in figure.layout.annotations[0].text, "as everybody else says it"
    band, *edges = figure.layout.shapes
    tie, margin = ended.objectives[i].tie_in_unit, ended.objectives[i].margin_in_unit
    assert (band.y0, band.y1) == (-tie, tie)
    assert [edge.y0 for edge in edges] == [-margin, margin]


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


def few_results(name, **changes):
    """A study that has seen too little to tell arms apart."""
    latency = lb.Objective("latency", "minimize", unit="ms", margin=300, noise=("bounded", 0, 5000))
    study = stage.create(name, objectives=[latency], **changes)
    for trial in study.ask_many(60):
        study.tell(trial, {"latency": stage.measure(trial.arm, trial.item)["latency"]})
    return study


@pytest.mark.parametrize("which", ["ended", "under_way", "few"])
def test_the_last_interval_of_the_evidence_is_in_sight(which, request):
    study = few_results("wide") if which == "few" else request.getfixturevalue(which)
    figure = lb.plot.evidence(study)
    for trace in figure.data:
        low, high = figure.layout[trace.yaxis.replace("y", "yaxis")].range
        assert low < trace.y[-1] < high, "else it is a rectangle without ends"


def test_where_no_interval_is_known_none_is_drawn():
    study = lb.create_study("few", arms=["a", "b"], objectives=[lb.Objective("x", margin=2)], seed=0)
    for k, trial in enumerate(study.ask_many(4)):
        study.tell(trial, {"x": k**0.5})
    figure = lb.plot.evidence(study)
    assert not figure.data
    assert "too few for an interval" in figure.layout.annotations[0].text


def test_a_guess_is_not_named_the_answer(ended):
    study = few_results("guess")
    assert "leads" in lb.plot.race(study).layout.title.text
    study.end("enough")
    for name in ("race", "intervals"):
        title = getattr(lb.plot, name)(study).layout.title.text.replace("<br>", " ")
        assert "is the best guess" in title
        assert "base is the answer" in getattr(lb.plot, name)(ended).layout.title.text.replace("<br>", " ")


def test_what_came_late_does_not_hide_what_was_told():
    study = stage.create("late")
    late = study.ask_many(2, worker="w", lease="10ms")
    time.sleep(0.02)
    for trial in study.ask_many(20, worker="w"):
        study.tell(trial, stage.measure(trial.arm, trial.item))
    for trial in late:
        assert study.tell(trial, stage.measure(trial.arm, trial.item)) == "late"
    below, above = lb.plot.workers(study).data
    assert (below.name, above.name) == ("late", "told"), "what is drawn last is seen"
    assert above.width < below.width, "and the other beside it"
