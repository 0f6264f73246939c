"""Diagnostics: each finding where it is so, and where it is not."""

from types import SimpleNamespace

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.study.core.diagnostics import _counts_when_lost, _drift, diagnostics_of, jarque_bera, levene
from support.journals import replay_of
from support.questions import create

COIN = lb.Objective("x", margin=0.002, noise="bernoulli")


def of(study, *objectives, **words):
    return lb.create_study(study, arms=["a", "b"], objectives=objectives, **{"seed": 0, **words})


def found(study, code):
    """The diagnostics of this code, as they are now."""
    return [diagnostic for diagnostic in diagnostics_of(replay_of(study)) if diagnostic.code == code]


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
    assert found(study, "losses")[0].severity == "ok"
    assert found(failing(study), "losses")[0].severity == "warning"


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
    assert found(bounded, "losses")[0].severity == "notice"
    gaussian = lb.Objective("x", margin=0.002, noise="gaussian")
    normal = of("normal", gaussian, items=range(100))
    rng = np.random.default_rng(1)
    tell(normal, lambda t: None if t.arm == "a" and t.number % 4 < 2 else {"x": rng.standard_normal()})
    assert found(normal, "losses")[0].severity == "warning"


@pytest.mark.parametrize(("missing", "level"), [(("worst", None), "warning"), (("worst", "worst"), "notice")])
def test_rows_lost_before_an_import_count_unless_every_objective_has_its_worst(missing, level):
    objectives = [
        lb.Objective(name, margin=0.002, noise="bernoulli", **({"if_missing": word} if word else {}))
        for name, word in zip("xy", missing, strict=True)
    ]
    study = of("s", *objectives)
    lost = [None if k % 2 and k < 40 else 1 for k in range(80)]
    arms = ["a"] * 40 + ["b"] * 40
    study.import_results({"arm": arms, "x": lost, "y": lost}, fair=True)
    assert found(study, "losses")[0].severity == level


def test_who_was_given_up_for_failing_has_a_flag_instead_and_who_was_withdrawn_has_not():
    arms = ["a", "b", "c"]
    study = lb.create_study("by hand", arms=arms, objectives=[COIN], seed=0)
    failing(study)
    study.withdraw("a", "it fails so often")
    assert found(study, "losses")[0].severity == "warning"
    study = lb.create_study("given up", arms=arms, objectives=[COIN], max_failures=5, seed=0)
    tell(study, lambda t: None if t.arm == "a" else {"x": 1}, 30)
    assert study.answer.flags == ("arm_excluded",)
    assert found(study, "losses")[0].severity == "notice"


def test_places_that_were_asked_again_are_counted_by_arm():
    study = of("s", COIN, items=range(100))
    failing(study)
    (before,) = found(study, "retried")
    assert before.severity == "ok"
    study.retry()
    tell(study, lambda t: {"x": 1}, 20)
    (after,) = found(study, "retried")
    assert after.severity == "warning"
    assert set(after.fields["again"]) == {"a"}


def test_drift_is_tested_for_every_arm_and_objective():
    """The p-value is that of the arm that differs most, times how many were tested."""
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(3)
    values = rng.standard_normal((3, 80))
    in_step = np.ones((3, 80), bool)
    in_step[0, 40:] = False
    values[0, 40:] += 0.6
    projection = SimpleNamespace(spec=SimpleNamespace(objectives=[COIN]), arm_names=["a", "b", "c"])
    diagnostic = _drift(SimpleNamespace(projection=projection), 0, values, in_step, ~in_step, tests=2)
    apart = values[0] - values[1]
    assert diagnostic.p == pytest.approx(2 * 3 * mannwhitneyu(apart[:40], apart[40:]).pvalue)
    assert diagnostic.fields["worst"] == "a"


@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("n", [30, 31, 1000])
def test_the_tests_of_normality_are_those_of_scipy(n, power):
    from scipy import stats

    values = np.random.default_rng(n).normal(2.0, 3.0, n) ** power
    half = n // 2
    assert jarque_bera(values) == pytest.approx(stats.jarque_bera(values).pvalue, rel=1e-9)
    assert levene(values[:half], values[half:]) == pytest.approx(
        stats.levene(values[:half], values[half:]).pvalue, rel=1e-9
    )


def test_a_spread_larger_than_declared_is_noticed():
    rng = np.random.default_rng(2)
    for spread, level in ((0.1, "ok"), (0.2, "warning")):
        study = of("s", lb.Objective("x", margin=0.002, noise=("sub_gaussian", 0.1)))
        tell(study, lambda t, spread=spread: {"x": spread * rng.standard_normal()})
        (diagnostic,) = found(study, "noise")
        assert diagnostic.severity == level
        assert diagnostic.p < 1e-6 or level == "ok"


GAUSSIAN = lb.Objective("x", margin=0.002, noise="gaussian")


@pytest.mark.filterwarnings("ignore:study 's'. arm .* more than once")
@pytest.mark.parametrize(
    ("value", "level", "finding"),
    [
        (lambda rng, k: rng.standard_normal(), "ok", "consistent"),
        (lambda rng, k: rng.standard_normal() * (1 if k < 40 else 6), "warning", "spread_changed"),
        (lambda rng, k: rng.exponential() ** 3, "warning", "inconsistent"),
        (lambda rng, k: float(rng.integers(2)), "warning", "repeats"),
    ],
)
def test_values_that_are_not_gaussian_are_noticed(value, level, finding):
    rng, study = np.random.default_rng(5), of("s", GAUSSIAN)
    tell(study, lambda t: {"x": value(rng, t.number)})
    (diagnostic,) = found(study, "noise")
    assert (diagnostic.severity, diagnostic.fields["finding"]) == (level, finding)


def test_an_exact_objective_has_no_gaps():
    """Its one value may be told once; of another that is missing one knows nothing."""
    exact = lb.Objective("size", "minimize", noise="exact")
    study = create(objectives=[COIN, exact])
    for trial in study.ask_many(30):
        study.tell(trial, {"x": 1} if trial.number >= 3 else {"x": 1, "size": 1})
    assert found(study, "gaps") == []


def test_the_symmetry_of_imported_rows_is_looked_at():
    n = 400
    rng = np.random.default_rng(0)
    frame = {"arm": np.repeat(["a", "b"], n), "item": [*range(n)] * 2}
    frame["score"] = np.r_[rng.normal(0.0, 0.01, n), 1.0 + rng.standard_exponential(n)]
    study = lb.create_study("skew", arms=["a", "b"], objectives=[lb.Objective("score", margin=0.5)], seed=0)
    study.import_results(frame, fair=True)
    (diagnostic,) = found(study, "noise")
    assert diagnostic.fields["finding"] == "asymmetric"
