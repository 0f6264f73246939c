"""`baseline=` of a study: the current arm answers unless another is better in something that matters."""

import random

import pytest

import lexbandits as lb
from lexbandits.study.storage.memory import MemoryStorage

pytestmark = pytest.mark.interpreted
OBJECTIVES = [
    lb.Objective("correct", margin=0.4, noise="bernoulli"),
    lb.Objective("latency", "minimize", margin=4, noise=("bounded", 0, 10)),
]


def played(settings, **levels):
    study = lb.create_study(
        "s", MemoryStorage(), arms=list(levels), objectives=OBJECTIVES, seed=1, **settings
    )

    def measure(arm, item):
        luck, (correct, latency) = random.Random(f"{arm}/{item}"), levels[arm]
        return {"correct": luck.random() < correct, "latency": latency + luck.random()}

    study.run(measure, progress=False)
    assert study.verify().ok
    return study


def asked(settings, **levels):
    return played(settings, **levels).answer


@pytest.mark.parametrize("settings", [{}, {"items": list(range(400))}, {"preregistered": False}])
def test_it_is_kept_unless_another_is_better(settings):
    tied = {"new": (0.95, 4.0), "current": (0.9, 5.0), "bad": (0.1, 1.0)}
    without, kept = asked(settings, **tied), asked({"baseline": "current", **settings}, **tied)
    assert (without.arm, without.decision, "decision" in without.as_json()) == ("new", None, False)
    assert (kept.arm, kept.certified, kept.decision) == ("current", True, "keep")
    assert kept.as_json()["decision"] == "keep"
    assert "the current arm stays" in kept.reason
    on_first = asked({"baseline": "bad", **settings}, **tied)
    assert (on_first.arm, on_first.decision) == ("new", "switch")
    on_last = asked({"baseline": "current", **settings}, new=(0.9, 1.0), current=(0.9, 8.0))
    assert (on_last.arm, on_last.decision) == ("new", "switch")
    assert "it is better than the current arm" in on_last.reason


def test_a_certified_answer_may_not_be_shown_to_be_better():
    """z beats the current arm and falls on latency to the answer, which ties with the current arm."""
    three = {"z": (1.0, 9.0), "answer": (0.75, 1.0), "current": (0.65, 1.0)}
    found = asked({"baseline": "current"}, **three)
    assert (found.arm, found.certified) == ("answer", True)
    assert [(row["verdict"], row["by"]) for row in found.certificate if row["rival"] == "current"] == [
        ("beaten", "z")
    ]
    assert found.decision == "keep_for_now"


def test_what_is_not_certified_is_no_reason_to_switch():
    words = {"arms": ["new", "current"], "objectives": OBJECTIVES, "baseline": "current"}
    rows = {"arm": ["new", "current"] * 300, "correct": [1, 0] * 300, "latency": [1, 8] * 300}
    for fair, decision in ((True, "switch"), (False, "keep_for_now")):
        study = lb.create_study("s", MemoryStorage(), **{"seed": 0, **words})
        study.import_results(rows, fair=fair)
        answer = study.answer
        assert (answer.arm, answer.certified, answer.decision) == ("new", fair, decision)
        assert {row["verdict"] for row in answer.certificate} == {"better"}


def test_nothing_is_decided_before_the_end_nor_by_hand_nor_without_it():
    arms = ["new", "current"]
    study = lb.create_study(
        "s", MemoryStorage(), arms=arms, objectives=OBJECTIVES, baseline="current", seed=0
    )
    assert (study.answer.arm, study.answer.decision) == ("current", "keep_for_now")
    study.end("enough")
    assert study.answer.decision == "keep_for_now"
    study.reopen("more")
    study.withdraw("current", "it is gone")
    assert (study.answer.arm, study.answer.decision) == ("new", None)
    with pytest.raises(lb.StudyError, match="baseline must be one of the arms"):
        lb.create_study("t", MemoryStorage(), arms=arms, objectives=OBJECTIVES, baseline="old", seed=0)


def test_what_to_do_comes_first_wherever_an_answer_is_shown(tmp_path):
    two = {"new": (0.9, 1.0), "current": (0.9, 8.0)}
    for baseline, first in (("current", "Switch from current to new. "), ("new", "Keep new. ")):
        study = played({"baseline": baseline}, **two)
        assert study.explain().sentence.startswith(f"{first}new wins: certified")
        assert f"**{first}new wins" in study.report(tmp_path / "report.md").read_text()
        assert f"{first}<b>new</b> wins" in study.report(tmp_path / "report.html").read_text()
    open_still = lb.create_study(
        "s", MemoryStorage(), arms=["new", "current"], objectives=OBJECTIVES, baseline="current", seed=0
    )
    assert open_still.explain().sentence.startswith(
        "Keep current for now: nothing is certified better by more than the margin. No results"
    )
    open_still.pause("lunch")
    assert (
        "Keep current for now: nothing is certified better by more than the margin. Paused: lunch"
        in open_still.explain().sentence
    )
    unproven = played(
        {"baseline": "current"}, z=(1.0, 9.0), answer=(0.75, 1.0), current=(0.65, 1.0)
    ).explain()
    assert unproven.sentence.startswith(
        "Keep current for now: nothing is certified better by more than the margin. answer wins"
    )
