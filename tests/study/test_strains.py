"""What strains an assumption: each finding where it is so, and where it is not."""

from types import SimpleNamespace

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.study.record.strains import _counts_when_lost, _drift, strains_of
from support.journals import fold_of
from support.worlds import create

COIN = lb.Objective("x", margin=0.002, noise="bernoulli")


def of(study, *objectives, **words):
    return lb.create_study(study, arms=["a", "b"], objectives=objectives, **{"seed": 0, **words})


def found(study, code):
    """The strains of this code, as they are now."""
    return [strain for strain in strains_of(fold_of(study)) if strain.code == code]


def tell(study, values_of, results=80):
    for trial in study.ask_many(results):
        values = values_of(trial)
        study.fail(trial) if values is None else study.tell(trial, values)
    return study


def failing(study, arm="a", failures=12):
    """One arm fails, never twice in a row."""
    return tell(
        study, lambda t: None if t.arm == arm and t.number % 4 < 2 and t.number < 4 * failures else {"x": 1}
    )


def test_they_are_those_of_now():
    study = of("s", COIN)
    assert found(study, "losses")[0].level == "none"
    assert found(failing(study), "losses")[0].level == "strained"


@pytest.mark.parametrize(
    ("words", "failed", "expired"),
    [({}, False, False), ({"if_failed": 0}, True, False), ({"if_expired": 0}, False, True),
     ({"if_missing": "worst"}, True, True)],
)  # fmt: skip
def test_what_is_lost_counts_as_was_agreed_for_how_it_was_lost(words, failed, expired):
    objective = lb.Objective("x", margin=0.2, noise="bernoulli", **words)
    assert [_counts_when_lost(objective, how) for how in ("failed", "expired", "late")] == [
        failed, expired, expired]  # fmt: skip


def test_holes_of_a_list_count_at_their_worst_only_where_there_is_a_worst():
    bounded = failing(of("bounded", COIN, items=range(100)))
    assert found(bounded, "losses")[0].level == "slight"
    gaussian = lb.Objective("x", margin=0.002, noise="gaussian")
    normal = of("normal", gaussian, items=range(100))
    rng = np.random.default_rng(1)
    tell(normal, lambda t: None if t.arm == "a" and t.number % 4 < 2 else {"x": rng.standard_normal()})
    assert found(normal, "losses")[0].level == "strained"


@pytest.mark.parametrize(
    ("missing", "level"), [(("worst", None), "strained"), (("worst", "worst"), "slight")]
)
def test_rows_lost_before_an_import_count_unless_every_objective_has_its_worst(missing, level):
    objectives = [
        lb.Objective(name, margin=0.002, noise="bernoulli", **({"if_missing": word} if word else {}))
        for name, word in zip("xy", missing, strict=True)
    ]
    study = of("s", *objectives)
    lost = [None if k % 2 and k < 40 else 1 for k in range(80)]
    arms = ["a"] * 40 + ["b"] * 40
    study.import_results({"arm": arms, "x": lost, "y": lost}, fair=True)
    assert found(study, "losses")[0].level == level


def test_who_was_given_up_for_failing_has_a_flag_instead_and_who_was_withdrawn_has_not():
    arms = ["a", "b", "c"]
    study = lb.create_study("by hand", arms=arms, objectives=[COIN], seed=0)
    failing(study)
    study.withdraw("a", "it fails so often")
    assert found(study, "losses")[0].level == "strained"
    study = lb.create_study("given up", arms=arms, objectives=[COIN], max_failures=5, seed=0)
    tell(study, lambda t: None if t.arm == "a" else {"x": 1}, 30)
    assert study.answer.flags == ("arm given up",)
    assert found(study, "losses")[0].level == "slight"


def test_places_that_were_asked_again_are_counted_by_arm():
    study = of("s", COIN, items=range(100))
    failing(study)
    (before,) = found(study, "retried")
    assert before.level == "none"
    study.retry()
    tell(study, lambda t: {"x": 1}, 20)
    (after,) = found(study, "retried")
    assert after.level == "strained"
    assert set(after.fields["again"]) == {"a"}


def test_drift_is_tested_for_every_arm_and_objective():
    """The p-value is that of the arm that differs most, times how many were tested."""
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(3)
    values = rng.standard_normal((3, 80))
    in_step = np.ones((3, 80), bool)
    in_step[0, 40:] = False
    values[0, 40:] += 0.6
    ledger = SimpleNamespace(spec=SimpleNamespace(objectives=[COIN]), arm_names=["a", "b", "c"])
    strain = _drift(SimpleNamespace(ledger=ledger), 0, values, in_step, ~in_step, tests=2)
    apart = values[0] - values[1]
    assert strain.p == pytest.approx(2 * 3 * mannwhitneyu(apart[:40], apart[40:]).pvalue)
    assert strain.fields["worst"] == "a"


def test_a_spread_larger_than_declared_is_noticed():
    rng = np.random.default_rng(2)
    for spread, level in ((0.1, "none"), (0.2, "strained")):
        study = of("s", lb.Objective("x", margin=0.002, noise=("sub_gaussian", 0.1)))
        tell(study, lambda t, spread=spread: {"x": spread * rng.standard_normal()})
        (strain,) = found(study, "noise")
        assert strain.level == level
        assert strain.p < 1e-6 or level == "none"


GAUSSIAN = lb.Objective("x", margin=0.002, noise="gaussian")


@pytest.mark.filterwarnings("ignore:study 's'. arm .* more than once")
@pytest.mark.parametrize(
    ("value", "level", "finding"),
    [
        (lambda rng, k: rng.standard_normal(), "none", "looks it"),
        (lambda rng, k: rng.standard_normal() * (1 if k < 40 else 6), "strained", "spread changed"),
        (lambda rng, k: rng.exponential() ** 3, "strained", "does not look it"),
        (lambda rng, k: float(rng.integers(2)), "strained", "repeats"),
    ],
)
def test_values_that_are_not_gaussian_are_noticed(value, level, finding):
    rng, study = np.random.default_rng(5), of("s", GAUSSIAN)
    tell(study, lambda t: {"x": value(rng, t.number)})
    (strain,) = found(study, "noise")
    assert (strain.level, strain.fields["finding"]) == (level, finding)


def test_an_exact_objective_has_no_gaps():
    """Its one value may be told once; of another that is missing one knows nothing."""
    exact = lb.Objective("size", "minimize", noise="exact")
    study = create(objectives=[COIN, exact])
    for trial in study.ask_many(30):
        study.tell(trial, {"x": 1} if trial.number >= 3 else {"x": 1, "size": 1})
    assert found(study, "gaps") == []
