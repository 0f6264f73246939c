"""The figures: every text escaped, every tick true, at least two of them."""

import math
import random
import re

import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.views import drawing
from lexbandits.views.arms_table import arms_table
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import Axis, tag
from support import stage


def test_text_and_attributes_are_escaped():
    assert tag("p", '<b>&"', title='"<') == '<p title="&#34;&lt;">&lt;b&gt;&amp;&#34;</p>'
    assert tag("p", tag("b", "x"), [None, False, ["y"]]) == "<p><b>x</b>y</p>"
    assert tag("line", x1=0, kind="a") == '<line x1="0" class="a"/>'


def test_an_axis_has_two_ticks_or_more_and_they_are_true():
    rng = random.Random(0)
    for _ in range(2000):
        low = rng.uniform(-1, 1) * 10 ** rng.randint(-6, 6)
        axis = Axis((low, low + 10 ** rng.uniform(-5, 5)), most=rng.choice([3, 4]))
        assert 2 <= len(axis.ticks) <= 4
        for tick in axis.ticks:
            shown = float(axis.text(tick).replace(",", "").replace("−", "-"))
            assert math.isclose(shown, tick, rel_tol=1e-9, abs_tol=1e-9 * axis.step)
            assert axis.low <= tick <= axis.high


@pytest.mark.parametrize("ends", [(), (3.0,), (math.nan, math.inf), (0.0, 0.0)])
def test_an_axis_of_little_is_an_axis(ends):
    axis = Axis(ends)
    assert axis.low < axis.high
    assert len(axis.ticks) >= 2


def test_nothing_measured_has_no_scale():
    drawn = arms_table(StudyView.of(stage.create()))
    assert 'class="ax"' not in drawn
    assert drawn.count("data-outcome=") == 4


def test_many_arms_are_one_ribbon():
    arms = [f"arm {k}" for k in range(12)]
    study = lb.create_study(
        "many", arms=arms, objectives=[lb.Objective("x", margin=0.2, noise="gaussian")], seed=0
    )
    drawn = arms_table(StudyView.of(study))
    assert drawn.count('class="ribbon') == 1
    assert 'class="strand' not in drawn.replace("strand thick", "")


def test_a_limit_that_nobody_meets_has_no_tick():
    limit = lb.Objective("broken", "minimize", at_most=0.1, slack=0.05, noise="bernoulli")
    study = lb.create_study(
        "limit", arms=["a", "b"], objectives=[limit], if_infeasible="stop", delta=0.2, seed=0
    )
    while trials := study.ask_many(20):
        study.tell_many([(trial, {"broken": 1}) for trial in trials])
    (head,) = re.findall(r'<span class="(stt[^"]*)">Nobody meets it', arms_table(StudyView.of(study)))
    assert "tick" not in head


def test_what_is_open_says_how_far_it_is():
    objective = lb.Objective("correct", margin=0.1, noise="bernoulli")
    study = lb.create_study("open", arms=["a", "b"], objectives=[objective], seed=0)
    for number, trial in enumerate(study.ask_many(24)):
        study.tell(trial, {"correct": number % 3 > 0})
    view = StudyView.of(study)
    (row,) = view.certificate
    assert row["verdict"] == "open"
    assert row["parts"] is not None
    assert row["message"] in drawing.deciding(view, view.objectives[0]).body


@pytest.mark.parametrize(("letters", "look"), [(8, "fig"), (30, "fig long"), (60, "fig longer")])
def test_long_names_have_a_line_of_their_own(letters, look):
    study = lb.create_study(
        "long",
        arms=["a", "b" * letters],
        objectives=[lb.Objective("x", margin=0.2, noise="gaussian")],
        seed=0,
    )
    view = StudyView.of(study)
    assert f'<table class="{look}"' in drawing.course(view, drawing.phases(view.estimates)).body


@pytest.mark.parametrize("most", [20, 36, 52, 96, 300])
def test_the_number_of_now_has_room(most):
    study = stage.create()
    stage.play(study, most)
    view = StudyView.of(study)
    body = drawing.course(view, drawing.phases(view.estimates)).body
    ticks = [(float(x), now) for x, now in re.findall(r'<text x="([\d.]+)%"[^>]*>[\d,]+(<tspan)?', body)]
    (now,) = [x for x, is_now in ticks if is_now]
    assert len(ticks) >= 2
    assert all(abs(x - now) > 20 for x, is_now in ticks if not is_now)


def test_who_is_proven_behind_is_not_said_to_win():
    objective = lb.Objective("correct", margin=0.06, noise="bernoulli")
    study = lb.create_study("behind", arms=["a", "b", "c"], objectives=[objective], seed=0)
    luck, shares, seen = random.Random(0), {"a": 0.9, "b": 0.9, "c": 0.3}, 0
    for _ in range(10):
        study.tell_many([(t, {"correct": luck.random() < shares[t.arm]}) for t in study.ask_many(20)])
        view = StudyView.of(study)
        assert view.state == "measuring"
        for story in view.explanations:
            proven = story.reasons[0].verdict == "worse"
            still = not story.leads and story.decision.outcome == "undecided"
            assert ("may still win" in story.sentence) == (still and not proven)
            assert ("is worse, and not excluded yet" in story.sentence) == (still and proven)
            seen += "not excluded yet" in story.sentence
    assert seen


def test_why_an_arm_was_withdrawn_stands_where_there_is_room():
    study = stage.create()
    study.withdraw("tiny", "the vendor stops it")
    (cell,) = re.findall(
        r"<td[^>]*>(?:(?!</td>).)*the vendor stops it.*?</td>", arms_table(StudyView.of(study))
    )
    assert 'data-objective="refusals"' in cell


def test_a_forecast_is_drawn_on_the_course():
    study = stage.create()
    stage.play(study, 400)
    view, coming = StudyView.of(study), study.forecast(runs=20)
    plain, ahead = (drawing.course(view, drawing.phases(view.estimates), found) for found in (None, coming))
    assert "likely end" in ahead.body
    assert "likely end" not in plain.body
    assert "Forecast" in drawing.outlook(coming).title
    assert sum(row.shows for row in coming.relax) == drawing.outlook(coming).body.count("→")


@pytest.mark.parametrize("fair", [True, False])
def test_only_what_can_be_certified_has_ticks(fair):
    objective = lb.Objective("correct", margin=0.2, noise="bernoulli")
    study = lb.create_study("ticks", arms=["a", "b"], objectives=[objective], seed=0)
    rows = [{"arm": arm, "item": k, "correct": int(arm == "a")} for k in range(60) for arm in "ab"]
    study.import_results(pd.DataFrame(rows), fair=fair)
    assert study.status.state == "finished"
    assert study.answer.certified == fair
    assert ("stt tick" in arms_table(StudyView.of(study))) == fair
    assert study.explain().cost is None, "what was imported had been paid before"


def test_the_most_open_is_the_closest():
    rng = random.Random(1)
    study = lb.create_study(
        "close", arms=list("abcd"), objectives=[lb.Objective("x", margin=8, noise="gaussian")], seed=0
    )
    for trial in study.ask_many(40):
        study.tell(trial, {"x": rng.gauss({"a": 50, "b": 49}.get(trial.arm, 40), 20)})
    view = StudyView.of(study)
    rows = [row for row in view.certificate if row["verdict"] == "open"]
    least = min(row["message"] for row in rows)
    closest = min((row for row in rows if row["message"] == least), key=lambda row: abs(row["difference"]))
    assert view.open.startswith(f"Most open: {closest['rival']} ")
