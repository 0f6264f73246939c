"""The question: what it may say, what is refused and in which words, and what the policy is told of it."""

import json
from datetime import timedelta

import numpy as np
import pytest

import lexbandits as lb
from lexbandits._validation import difference
from lexbandits.study.spec import FORMAT, Spec, duration, in_drawn_order, seconds
from lexbandits.study.storage.memory import MemoryStorage
from support.questions import create, question


def spec(*objectives, **changes):
    words = {"name": "x", "arms": ["a", "b"], "objectives": objectives or question()["objectives"]}
    return Spec.from_json({**words, **changes})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, "needs a margin"),
        ({"tolerance": 0.02}, r"no tolerance=: say margin=.*tolerance \+ resolution.*tie="),
        ({"resolution": 0.2}, r"no resolution=: say margin="),
        ({"resolution": 0.1, "at_least": 3}, "of a limit slack="),
        ({"margin": 1, "at_least": 3}, "margin= does not go with a limit.*two objectives"),
        ({"tie": 1, "at_least": 3}, "tie= does not go with a limit"),
        ({"reference": "best", "at_least": 3}, "a limit is a number"),
        ({"margin": 1, "slack": 0.1}, "slack= goes with a limit"),
        ({"at_least": 3, "slack": 0}, "needs a positive slack"),
        ({"at_least": 3, "slack": -1}, "slack must not be negative"),
        (
            {"at_least": 0.9, "slack": 0.2, "noise": "bernoulli"},
            r"inside at_least=0.9 by slack=0.2: say.*0\.1$",
        ),
        ({"at_least": 1, "noise": "bernoulli"}, "no mean of values in .* can be shown to meet at_least=1"),
        ({"at_most": 0, "direction": "minimize", "noise": ("bounded", 0, 9)}, "meet at_most=0: move.*above"),
        ({"margin": "120%"}, "below 100 %, got '120%'"),
        ({"margin": "10%", "noise": ("bounded", -1, 1)}, "values that are not negative"),
        ({"margin": "10%", "if_failed": -1}, r"must be in \[0, "),
        ({"margin": "10%", "tie": 0.1}, "tie of 'best' is a percentage such as \"5%\""),
        ({"margin": "10%", "reference": "z"}, "reference must be \"best\", one of the arms 'a'"),
        ({"margin": "ten"}, "percentage"),
        ({"margin": -1}, "negative"),
        ({"margin": 0}, "margin must be positive"),
        ({"margin": 1, "tie": 2}, "below the margin 1.0, got 2.0"),
        ({"margin": 1, "tie": 1}, "half of 1.0, got tie=1.0"),
        ({"margin": 1, "tie": 0.5, "noise": "exact"}, "leave tie= out"),
        (
            {"margin": 1, "direction": "up"},
            r'"maximize" \(max, higher\) or "minimize" \(min, lower\), got \'up\'',
        ),
        ({"margin": 2, "noise": "poisson"}, "noise must be"),
        ({"margin": 1, "noise": ("bounded", 1, 0)}, "below the upper"),
        ({"margin": 1, "noise": ("bounded", 0)}, "noise must be"),
        ({"at_most": 3}, 'goes with direction="minimize"'),
        ({"direction": "minimize", "at_least": 3}, 'goes with direction="maximize"'),
        ({"at_least": 0}, "a limit of 0 needs slack="),
        ({"margin": 0.2, "noise": "bernoulli", "if_failed": 2}, r"\[0, 1\]"),
        ({"margin": 1, "colour": "red"}, "no 'colour'"),
        (
            {"margin": 2, "noise": "bernoulli"},
            "a margin of 2 would accept any arm, .* such as 0.02 for two points",
        ),
        ({"margin": 1, "noise": "bernoulli"}, "differ by at most 1: say a smaller one"),
        ({"margin": 5, "noise": ("bounded", -1, 3)}, "differ by at most 4"),
        ({"margin": 2, "direction": "minimize", "cap": 2}, "differ by at most 2"),
        ({"margin": 1, "above": 3}, "differ by at most 1"),
        ({"margin": "300%", "reference": 1, "noise": "bernoulli"}, "a margin of 3 would accept any arm"),
    ],
)
def test_objectives_that_are_refused(words, sentence):
    with pytest.raises(lb.StudyError, match=sentence):
        spec({"name": "score", **words})


@pytest.mark.parametrize("name", ["", "x" * 201, "tab\there", "state", "number"])
def test_names_that_are_refused(name):
    with pytest.raises(lb.StudyError, match=r"printable|column"):
        lb.Objective(name, margin=2, noise="gaussian")


def test_names_may_have_spaces():
    assert lb.Objective("time to first byte", margin=2, noise="gaussian").name == "time to first byte"
    assert create(name="my study", arms=["an arm", "another arm"]).ask().arm == "an arm"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"arms": ["a", "a"]}, "twice"),
        ({"arms": []}, "at least one arm"),
        ({"arms": "ab"}, "list"),
        ({"arms": [3]}, "name"),
        ({"delta": 0}, "delta"),
        ({"delta": 1.5}, "delta"),
        ({"max_arms": 1}, "max_arms"),
        ({"budget": 0}, "budget"),
        ({"lease": "soon"}, "duration"),
        ({"lease": 0}, "lease"),
        ({"items": []}, "items"),
        ({"items": ["q", "q"]}, "twice"),
        ({"items": "abc"}, "list"),
        ({"if_infeasible": "panic"}, "continue"),
        ({"seed": -1}, "seed"),
        ({"max_failures": 0}, "max_failures"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_studies_that_are_refused(changes, sentence, tmp_path):
    with pytest.raises((lb.StudyError, ValueError, TypeError), match=sentence):
        create(tmp_path / "s.db", **changes)
    assert not (tmp_path / "s.db").exists(), "before anything is written"


def test_margins_in_units():
    cost = lb.Objective("cost", "minimize", unit="USD", margin="20%", reference=0.02, noise="gaussian")
    assert (cost.margin_in_unit, cost.tie_in_unit) == (0.004, 0.002), "as written, in decimals"
    assert lb.Objective("x", margin=0.5, tie=0, noise="gaussian").tie_in_unit == 0
    assert lb.Objective("size", noise="exact").margin_in_unit == 0


@pytest.mark.parametrize(
    ("words", "policy"),
    [
        ({"margin": 0.06}, (0.03, 0.03, None)),
        ({"margin": 0.3, "tie": 0.1}, (0.1, 0.2, None)),
        ({"margin": "4%"}, (0.02, 0.02, None)),
        ({"margin": "4%", "reference": -300}, (6.0, 6.0, None)),
        ({"margin": 5, "noise": "exact"}, (5.0, 0.0, None)),
        ({"at_least": 0.4, "slack": 0.3}, (0.0, 0.3, 0.7)),
        ({"at_least": 80}, (0.0, 8.0, 88.0)),
        ({"at_least": 0.95, "noise": "bernoulli"}, (0.0, 0.025, 0.975)),
        ({"at_most": 0.05, "direction": "minimize", "noise": "bernoulli"}, (0.0, 0.005, -0.045)),
        ({"at_most": 0.1, "direction": "minimize", "slack": 0.1, "noise": "bernoulli"}, (0.0, 0.1, 0.0)),
        ({"at_most": 4, "direction": "minimize", "noise": "exact"}, (0.0, 0.0, -4.0)),
    ],
)
def test_one_translation_to_the_words_of_a_policy(words, policy):
    """Margins are split in decimals as written; a limit is inside by its slack."""
    assert lb.Objective("x", **words).tolerance_settings == policy


def test_the_policy_sees_larger_is_better():
    settings = spec(
        lb.Objective("refusals", "minimize", at_most=0.015, slack=0.005, noise="bernoulli"),
        lb.Objective("correct", margin=0.04, noise="bernoulli"),
        lb.Objective("latency", "minimize", margin=160, noise=("bounded", 0, 10_000)),
        lb.Objective("cost", "minimize", margin=2, noise=("sub_gaussian", 2.0)),
    ).policy_settings()
    assert settings["noise"] == [
        ["bounded", -1.0, 0.0],
        "bernoulli",
        ["bounded", -10_000.0, 0.0],
        ["sub_gaussian", 2.0],
    ]
    assert settings["at_least"] == [-0.01, None, None, None]
    lb.LexElimTol(**json.loads(json.dumps(settings)))
    with_items = spec(
        lb.Objective("cost", margin=2, noise=("sub_gaussian", 2.0)), items=[1, 2], scope="population"
    )
    assert with_items.policy_settings()["noise"] == [["sub_gaussian", 2.0]]
    apart = lb.Objective("cost", margin=2, noise=("sub_gaussian", 2.0, "independent"))
    assert spec(apart).policy_settings()["noise"] == [["sub_gaussian", 2.0, "independent"]]
    with pytest.raises(lb.StudyError, match=r'common items.*not independent: leave "independent" out'):
        spec(apart, items=[1, 2], scope="population").policy_settings()


def test_a_study_of_another_format_is_not_guessed_at():
    words = {
        "spec": spec(lb.Objective("o", margin=2, noise="gaussian"), seed=0).as_json(),
        "policy": "LexElimTol",
    }
    for written, who in (({"format": FORMAT + 1}, "a newer"), ({"format": 2}, "an older"), ({}, "an older")):
        storage = MemoryStorage()
        storage.create("x", "id", {**words, **written, "version": "0.2.0"})
        with pytest.raises(
            lb.StorageVersionError, match=rf"by {who} lexbandits \(0.2.0\): open it with that"
        ):
            _ = lb.open_study("x", storage).status


@pytest.mark.parametrize("noise", ["gaussian", "finite_variance", ("sub_gaussian", 1.0), "exact"])
def test_only_values_with_bounds_have_a_worst(noise):
    with pytest.raises(lb.StudyError, match=r'a worst: noise="bernoulli" or \("bounded", low, high\)'):
        lb.Objective("x", margin=2, noise=noise, if_missing="worst")
    with pytest.raises(lb.StudyError, match='must be "worst", or left out'):
        lb.Objective("x", margin=0.2, noise="bernoulli", if_missing="zero")


def test_missing_values_count_as_the_worst_they_could_have_been():
    objectives = [
        lb.Objective("hit", margin=0.2, noise="bernoulli", if_missing="worst"),
        lb.Objective("wait", "minimize", margin=2, noise=("bounded", 0, 10), if_missing="worst"),
        lb.Objective("cost", "minimize", margin=2, noise=("bounded", 0, 10)),
    ]
    settings = spec(*objectives).policy_settings()
    assert settings["noise"] == [
        ["bernoulli", "worst"],
        ["bounded", -10.0, 0.0, "worst"],
        ["bounded", -10.0, 0.0],
    ]
    assert Spec.from_json(spec(*objectives).as_json()) == spec(*objectives)
    study = lb.create_study("worst", arms=["a", "b"], objectives=objectives, seed=0)
    results = [
        {"hit": 1, "wait": 4, "cost": 4},
        {"hit": 1, "cost": 4},
        None,
        {"hit": 0, "wait": 1, "cost": 1},
    ]
    for trial, values in zip(study.ask_many(4), results, strict=True):
        study.fail(trial, "so") if values is None else study.tell(trial, values)
    state, pair = study.policy.state, 0
    assert state.pairs[pair, :, 0].tolist() == [1.0, 0.0, 1.0], "passes in which both were measured"
    assert state.completed[pair, :2, :, 0].tolist() == [[2.0, 2.0], [2.0, 2.0]]
    told = (2 * state.completed[pair, :2, :, 1] - 1) * np.array([[1.0], [10.0]])
    # hit: (1 − 1), then the failed one is 0 or 1 against 0; wait, negated: −4 against −10…0, −10…0 against −1
    np.testing.assert_allclose(told, [[0.0, 0.5], [(-4 - 9) / 2, (6 + 1) / 2]])
    assert study.policy.means[0].tolist() == [1.0, -4.0, -4.0], "of measured values"


def test_signs():
    turned = spec().signed(np.array([[1.0, 0.0]]))
    assert turned.tolist() == [[1.0, 0.0]]
    assert not np.signbit(turned).any(), "no negative zeros"


@pytest.mark.parametrize(
    ("given", "expected"),
    [("2s", 2.0), ("10m", 600.0), ("30d", 2_592_000.0), ("1.5h", 5400.0), ("250ms", 0.25), (7, 7.0)],
)
def test_durations(given, expected):
    assert seconds("lease", given) == expected
    assert seconds("lease", duration(expected)) == expected
    assert seconds("lease", timedelta(seconds=expected)) == expected


def test_a_spec_in_words_is_the_same_spec():
    whole = spec(
        lb.Objective("refusals", "minimize", at_most=0.015, slack=0.005, noise="bernoulli", if_expired=1),
        lb.Objective("latency", "minimize", unit="ms", margin="10%", reference=80, noise=("bounded", 0, 9)),
        arms=["a", {"name": "b", "level": 3}],
        items=["x", 2],
        lease="90s",
        max_arms=5,
    )
    words = json.loads(json.dumps(whole.as_json()))
    assert Spec.from_json(words) == whole
    assert difference(words, words) is None
    assert difference(words, {**words, "delta": 0.1}) == "delta is 0.05 there and 0.1 here"


def test_items_are_drawn_once_for_all():
    """Never change this order: journals rest on it."""
    assert in_drawn_order(["a", "b", "c", "d", 1, 2.5], 0) == in_drawn_order([2.5, 1, "d", "c", "b", "a"], 0)
    assert in_drawn_order(range(8), 0) == [7, 0, 6, 1, 2, 5, 3, 4]
