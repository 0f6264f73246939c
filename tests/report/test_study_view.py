"""What a picture says of single cases: exact values, differences of nothing, what is open, ends by hand."""

import random

import pytest

import lexbandits as lb
from lexbandits.study.number_format import evidence
from lexbandits.views.study_view import StudyView
from support import stage


def measure_all(study, values, passes=1):
    for _ in range(passes):
        for trial in study.ask_many(len(study.arms)):
            study.tell(trial, values(trial))


def test_exact_values_are_shown_as_they_were_given():
    """0.3 MB and three times 0.1 MB are one size, whatever binary fractions make of them."""
    size = lb.Objective("size", "minimize", unit="MB", margin=5, noise="exact")
    quality = lb.Objective("quality", margin=0.04, noise="bernoulli")
    study = lb.create_study("sizes", arms=["a", "b"], objectives=[size, quality], seed=0)
    sizes = {"a": 0.3, "b": 3 * 0.1}
    measure_all(study, lambda trial: {"size": sizes[trial.arm], "quality": 1})
    view = StudyView.of(study)
    assert {arm.objectives["size"].shown for arm in view.arms} == {"0.3"}
    assert {arm.objectives["size"].range for arm in view.arms} == {"exact"}
    text = str(study.explain())
    assert "as good as" in text
    assert "e−" not in text


def test_what_is_most_open_has_the_least_evidence():
    share = {"a": 0.6, "near": 0.58, "far": 0.2}
    objective = lb.Objective("correct", margin=0.1, noise="bernoulli")
    study = lb.create_study("open", arms=list(share), objectives=[objective], seed=0)
    rng = random.Random(1)
    measure_all(study, lambda trial: {"correct": int(rng.random() < share[trial.arm])}, 15)
    view = StudyView.of(study)
    rows = {row["rival"]: row for row in view.certificate if row["verdict"] == "open"}
    assert set(rows) == {"near", "far"}
    assert rows["near"]["parts"] < rows["far"]["parts"]
    assert view.open.startswith("Most open: near is ")
    for name, row in rows.items():
        tenths = int(10 * row["parts"])
        said = f"undecided, {10 * tenths} % of the evidence" if tenths else "undecided"
        assert row["message"] == said
        reason = study.explain(name).reasons[0]
        assert reason.parts == row["parts"]
        assert said in reason.sentence


@pytest.mark.parametrize("parts", [0.9, 0.9999, 1.0])
def test_what_is_open_never_has_all_of_the_evidence(parts):
    assert evidence(parts) == "undecided, 90 % of the evidence"


def test_an_end_by_hand_settles_nothing():
    study = stage.create("by hand")
    stage.play(study, 100)
    study.end("enough")
    view = StudyView.of(study)
    assert [objective.stage for objective in view.objectives] == ["not_settled", *["not_reached"] * 3]
    assert view.badge == "Ended, no certificate"
    assert {arm.label for arm in view.arms} <= {"undecided"}
    assert "is the best guess, ended by hand: enough" in view.headline


def test_a_pause_is_no_end():
    study = stage.create("paused")
    stage.play(study, 40)
    study.pause("lunch")
    view = StudyView.of(study)
    assert view.badge == "Paused"
    assert {arm.decision.outcome for arm in view.arms} == {"undecided"}
    assert {arm.label for arm in view.arms} == {"undecided"}


def test_a_reason_that_sounds_like_a_failure_is_a_withdrawal():
    study = stage.create("withdrawn", max_failures=3)
    study.withdraw("small", "could not be measured well enough")
    stage.play(study, 40, fails=lambda trial: trial.arm == "large")
    codes = {arm.name: (arm.decision.outcome, arm.label) for arm in StudyView.of(study).arms}
    assert codes["small"] == ("withdrawn", "withdrawn")
    assert codes["large"] == ("failed", "could not be measured")


def test_a_picture_is_made_once_per_state():
    study = stage.create("once")
    stage.play(study, 20)
    first = StudyView.of(study)
    assert StudyView.of(study) is first
    stage.play(study, 1)
    assert StudyView.of(study) is not first
