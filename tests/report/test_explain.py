"""Every number of an explanation can be computed again from the trials."""

import json
import math
import re

import numpy as np
import pytest
from scipy.stats import fisher_exact

import lexbandits as lb
from lexbandits.evidence import ordinary
from lexbandits.study.core.diagnostics import unequal
from lexbandits.views.estimates import Estimates
from lexbandits.views.reasons import against
from support import stage


def by_pass(study, objective):
    """Values by item and arm."""
    frame = study.trials()
    return frame[frame["state"] == "told"].pivot(index="item", columns="arm", values=objective)


def test_one_sentence_per_arm_with_its_numbers(ended):
    found = ended.explain()
    assert next(story.arm for story in found.arms) == "base" == ended.answer.arm
    small = found["small"]
    assert small.decision.by == "elimination"
    assert small.decision.after > 0
    reason = next(r for r in small.reasons if r.objective == "correct")
    table = by_pass(ended, "correct")
    common = (table[reason.rival] - table["small"]).dropna()
    assert reason.verdict == "worse"
    assert reason.results == len(common)
    assert reason.difference == pytest.approx(common.mean())
    assert reason.tie < reason.low < reason.difference < reason.high
    least = np.floor(reason.low * 1000) / 1000
    apart = table[reason.rival].mean() - table["small"].mean()  # over each arm's own results
    over = "" if abs(apart - reason.difference) < 0.0005 else f" over {len(common)} common results"
    assert small.sentence == (
        f"small was excluded after {small.decision.after:,} trials: on correct it is worse than "
        f"{reason.rival} by {reason.difference:.3f}{over}, certified worse by at least {least:.3f}. "
        "It is better than base on latency ("
        f"{by_pass(ended, 'latency')['small'].mean():.0f} ms) and cost "
        f"({by_pass(ended, 'cost')['small'].mean():.2f} USD), which come later in the order."
    )


def test_worse_means_more_where_less_is_better(ended):
    reason = next(r for r in ended.explain("large").reasons if r.objective == "latency")
    table = by_pass(ended, "latency")
    assert reason.verdict == "worse"
    assert reason.rival == "base"
    assert reason.difference == pytest.approx((table["large"] - table["base"]).dropna().mean())
    assert reason.low > 150
    assert "certified worse by at least" in reason.sentence


def test_an_arm_beyond_a_limit(ended):
    story = ended.explain("tiny")
    reason = story.reasons[0]
    assert reason.verdict == "not_clearly_within"
    assert reason.rival == ended.answer.arm
    assert reason.difference == pytest.approx(by_pass(ended, "refusals")["tiny"].mean())
    assert "not inside the limit of 0.2 by the slack of 0.1" in story.sentence
    assert {r.verdict for r in story.reasons[1:]} == {"not_counted"}


def share_of_delta(half_width, n, scale):
    """How often a sub-Gaussian interval of this width misses, at any time: Lemma N1, solved."""
    level = (half_width * n / scale) ** 2 / (2 * (n + 30)) - 0.5 * math.log1p(n / 30)
    return math.exp(-level)


@pytest.mark.parametrize("arms", [2, 4])
def test_all_that_is_shown_beside_a_target_is_paid_for(arms):
    """The ends of all arms' intervals and those of all pairs together miss in at most δ of the studies."""
    limit = lb.Objective("y", at_least=-0.2, slack=0.2, noise=("sub_gaussian", 1.0))
    names = list("abcd"[:arms])
    study = lb.create_study(f"paid {arms}", arms=names, objectives=[limit], delta=0.1, seed=0)
    for number in range(40):
        trials = study.ask_many(arms)
        study.tell_many([(trial, {"y": 0.1 * (-1) ** number}) for trial in trials])
    spent = 0.0
    estimates = Estimates.of(study)
    for a in range(arms):
        reason = against(estimates, a, 0, None)
        assert reason.verdict == "open"
        spent += share_of_delta((reason.high - reason.low) / 2, reason.results, 1.0)
        for b in range(a):
            found = estimates.lead(a, b, 0)
            spent += share_of_delta((found.high - found.low) / 2, found.results, 2.0)
    assert spent == pytest.approx(0.1, rel=1e-6)


def test_the_worst_that_the_answer_may_give_up(ended):
    claims = {claim.objective: claim for claim in ended.explain().claims}
    assert ended.answer.certified
    assert 0 <= claims["correct"].worst <= 0.16 + 1e-9, "the margin"
    assert claims["latency"].worst == 0.0
    assert claims["refusals"].worst <= 0.2, "the limit"
    assert claims["cost"].worst is None
    assert "Nothing is claimed" in claims["cost"].sentence
    true = stage.TRUTH
    assert true["large"][1] - true["base"][1] <= claims["correct"].worst


def test_a_study_under_way_says_what_is_open(under_way):
    found = under_way.explain()
    assert "Not decided yet" in found.sentence
    assert any(story.decision.is_candidate and not story.leads for story in found.arms)
    for story in found.arms:
        assert len(story.reasons) == 4
        assert all(reason.sentence.endswith(".") for reason in story.reasons)
    text = str(found)
    assert "nan" not in text
    assert "inf" not in text
    json.dumps(found.as_json(), allow_nan=False)


def test_what_learning_cost_is_counted(ended):
    cost = ended.explain().cost
    told = ended.trials().query("state == 'told'")["arm"].value_counts().to_dict()
    assert cost.results == told
    assert cost.equal == 4 * max(told.values()) > sum(told.values())
    assert f"{sum(told.values())} results in all: " in cost.sentence
    assert all(f"{arm} {n}" in cost.sentence for arm, n in told.items())
    assert f"would have taken {cost.equal}." in cost.sentence


def test_an_estimate_says_how_many_results_came_of_arms_worse_than_may_be_given_up():
    """As many, split evenly, are a share of all; Thompson sampling is near the simulation one by one."""
    rates, rng = {"old": 0.3, "new": 0.6, "bad": 0.2}, np.random.default_rng(1)
    study = lb.create_study(
        "s", arms=list(rates), seed=0, objectives=[lb.Objective("bought", margin=0.1, noise="bernoulli")]
    )
    assert study.explain().cost is None
    while asked := study.ask_many(30, wait=0):
        study.tell_many([(trial, {"bought": float(rng.random() < rates[trial.arm])}) for trial in asked])
        if study.status.results == 30:
            assert study.explain().cost.worse.keys() <= {"old", "new", "bad"}
    cost = study.explain().cost
    assert cost.worse == {arm: cost.results[arm] for arm in ("old", "bad")}
    total = sum(cost.results.values())
    assert cost.split == pytest.approx(2 / 3 * total)
    ones = {arm: float(study.trials().query("arm == @arm").bought.mean()) for arm in rates}
    shown = []
    for _ in range(100):
        pulls, wins = dict.fromkeys(rates, 0), dict.fromkeys(rates, 0)
        for _ in range(total):
            arm = max(rates, key=lambda arm: rng.beta(1 + wins[arm], 1 + pulls[arm] - wins[arm]))
            pulls[arm] += 1
            wins[arm] += rng.random() < ones[arm]
        shown.append(pulls["old"] + pulls["bad"])
    assert 0.5 * np.mean(shown) < cost.thompson < 2 * np.mean(shown) < cost.split
    assert "came of arms worse than may be given up (old and bad)" in cost.sentence


def test_withdrawn_and_not_measurable_arms():
    study = stage.create("losses", max_failures=4)
    stage.play(study, 60, fails=lambda trial: trial.arm == "large")
    study.withdraw("small", "too small for production")
    stories = study.explain()
    assert stories["large"].decision.outcome == "failed"
    assert stories["large"].sentence.startswith(
        "large could not be measured: failed 4 times in a row, the last: "
    )
    assert stories["small"].decision.outcome == "withdrawn"
    assert "small was withdrawn: too small for production" in stories["small"].sentence


def test_an_unknown_arm_is_named(ended):
    with pytest.raises(lb.UnknownArmError, match="'huge'"):
        ended.explain("huge")


def test_a_new_study_can_be_explained():
    found = stage.create("new").explain()
    assert found.cost is None
    assert found.sentence == "No results yet: refusals is settled first, among 4 arms."
    assert "nan" not in str(found)


# --- limits that nobody keeps, ends without an answer, counts


def noisy(refusals, seed=0):
    rng = np.random.default_rng(seed)
    return lambda arm: {"refusals": float(rng.random() < refusals[arm]), "q": float(rng.normal())}


def unmet(name, **how):
    """A study that ends because no arm has refusals of at most 0.1."""
    limit = lb.Objective("refusals", "minimize", at_most=0.3, slack=0.2, noise="bernoulli")
    study = lb.create_study(
        name,
        arms=["a", "b"],
        objectives=[limit, lb.Objective("q", margin=4, noise="gaussian")],
        **{"seed": 0, **how},
    )
    measure = noisy({"a": 0.5, "b": 0.6})
    while trials := study.ask_many(2):
        study.tell_many([(trial, measure(trial.arm)) for trial in trials])
    return study


@pytest.mark.parametrize("infeasible", ["continue", "stop"])
def test_a_limit_that_nobody_keeps_is_named_everywhere(infeasible, tmp_path):
    study = unmet(infeasible, if_infeasible=infeasible)
    found = study.explain()
    assert study.policy.infeasible
    assert "no arm has refusals of at most 0.3" in found.sentence
    claims = {claim.objective: claim.sentence for claim in found.claims}
    known = claims["refusals"].removeprefix("No arm has refusals of at most 0.3: each has ")
    assert known.startswith("more than 0.3.")
    assert all("no arm meets the limit of 0.3" in story.reasons[0].sentence for story in found.arms)
    text = str(found)
    assert "in the end" not in text
    assert "yet" not in text, "it has ended"
    page = study.report(tmp_path / "r.html").read_text("utf-8")
    assert "No arm has refusals of at most 0.3" in page
    assert "Nobody meets it" in page
    if infeasible == "stop":
        assert claims["q"] == "Nothing is claimed about q: the study ended before it."
        assert "Not reached" in page
        assert "Settled" not in page
        assert all(story.decision.is_candidate for story in found.arms)
        other = next(story for story in found.arms if not story.leads)
        assert " is undecided" in other.sentence


def test_a_limit_that_nobody_keeps_is_named_while_it_goes_on():
    limit = lb.Objective("refusals", "minimize", at_most=0.12, slack=0.02, noise="bernoulli")
    study = lb.create_study(
        "goes on", arms=["a", "b"], objectives=[limit, lb.Objective("q", margin=4, noise="gaussian")], seed=0
    )
    measure = noisy({"a": 0.5, "b": 0.5})
    while not study.policy.infeasible:
        study.tell_many([(trial, measure(trial.arm)) for trial in study.ask_many(2)])
    assert study.status.state == "measuring"
    assert (
        "No arm has refusals of at most 0.12: how close they come counts instead." in study.explain().sentence
    )


def test_a_study_ended_by_hand_settles_nothing_afterwards(tmp_path):
    study = stage.create("by hand")
    stage.play(study, 60)
    study.end("the budget was cut")
    found = study.explain()
    assert found.sentence.endswith("is the best guess, ended by hand: the budget was cut.")
    others = [story for story in found.arms if story.decision.is_candidate and not story.leads]
    assert others
    assert all(" is undecided" in story.sentence for story in others)
    page = study.report(tmp_path / "r.html").read_text("utf-8")
    assert "Settled" not in page
    assert "Not settled: " in page
    assert '"standing">tied' not in page
    assert "in the end" not in str(found)


def test_a_contradiction_is_reported():
    """Each arm is better than the next, in passes that lack the third; then that begins to matter."""
    x = lb.Objective("x", margin=1.06, tie=1.05, noise=("sub_gaussian", 0.5))
    study = lb.create_study("ring", arms=["a", "b", "c"], objectives=[x], preregistered=False, seed=0)
    ring = {"a": 0, "b": 1, "c": 2}
    while study.policy.differences[[0, 1, 2], [1, 2, 0], 0, 0].min() < 0.1 and study.status.results < 2000:
        for trial in study.ask_many(3):
            place = (ring[trial.arm] - trial.item) % 3  # 0 is missing
            study.tell(trial, {"x": None if place == 0 else 2.0 - place})
    study.amend("x", margin=0.02, tie=0.01)
    found = study.explain()
    assert study.answer.flags == ("contradiction", "rules_changed", "assumption_warning"), (
        "a third is missing"
    )
    assert "what was measured refutes every arm" in found.sentence
    others = [story for story in found.arms if story.decision.is_candidate and not story.leads]
    assert len(others) == 2
    assert all("refutes every arm" in story.sentence for story in others)
    assert [claim.worst for claim in found.claims] == [None]


def test_means_rest_on_results_that_count():
    study = stage.create("ahead")
    while trials := study.ask_many(120):
        study.tell_many([(trial, stage.measure(trial.arm, trial.item)) for trial in trials])
    frame = study.results().set_index(["arm", "objective"])["results"]
    counted = frame[study.answer.arm, "correct"]
    told = (study.trials()["arm"] == study.answer.arm).sum()
    assert counted < told, "some came after the end"
    assert study.explain(study.answer.arm).sentence.endswith(f"over {counted} results.")


def test_one_is_not_many():
    objectives = [lb.Objective("err", "minimize", margin=2, noise=("bounded", 0, 10))]
    study = lb.create_study("one", arms=["a", "b"], objectives=objectives, max_failures=9, seed=0)
    study.tell(study.ask(), {"err": 1})
    found = study.explain("a")
    assert found.reasons[0].sentence == "err has 1 result that does not count yet: its pass is not complete."
    assert "nothing of it counts yet (1 result told)" in found.sentence
    study.tell(study.ask(), {"err": 2})
    study.fail(study.ask(), "timeout")
    text = f"{study.explain()} {diagnostic(study, 'lost').observed} {diagnostic(study, 'Each pass').observed}"
    assert "1 failed (a 1)" in text
    assert not re.search(r"\b1 (results|arms|passes|values|common results)\b", text), text
    assert "over 1 result." in text


def test_a_difference_is_said_in_its_direction():
    """Better by 0.08, interval −0.2 to 0.4: not the interval of how much worse it is."""
    objectives = [lb.Objective(name, margin=0.02, noise=("bounded", 0, 1)) for name in ("x", "y")]
    study = lb.create_study("direction", arms=["a", "b"], objectives=objectives, seed=0)
    for number in range(20):
        for trial in study.ask_many(2):
            wave = 0.4 + 0.35 * (number % 2)
            study.tell(trial, {"x": 0.5, "y": wave} if trial.arm == "a" else {"x": wave, "y": 0.5})
    assert study.answer.arm == "b"
    words = [reason.sentence for reason in study.explain("a").reasons]
    waves = np.array([0.4 + 0.35 * (number % 2) for number in range(20)])
    ahead = ordinary.of_mean(waves - 0.5)  # of a on y, and of b on x
    for text, word, ends in zip(words, ("worse", "better"), (ahead, ahead), strict=True):
        pattern = rf"it is {word} than b by 0.07\d* \(ordinary 95 % interval (\S+) to (\S+)\), over"
        shown = [float(end.replace("−", "-")) for end in re.search(pattern, text).groups()]
        assert shown == pytest.approx(sorted(ends), abs=0.001)
        assert shown[0] <= min(ends)
        assert max(ends) <= shown[1]


# --- diagnostics


def diagnostic(study, word):
    return next(s for s in study.explain().diagnostics if word in s.assumption)


def test_the_test_of_equal_losses_is_exact():
    table = [[9, 91], [2, 98]]
    ours = unequal([9, 2], [100, 100])
    assert ours == pytest.approx(fisher_exact(table).pvalue, abs=0.015)
    rng = np.random.default_rng(0)
    levels = [unequal(rng.binomial([60, 40, 20], 0.1).tolist(), [60, 40, 20]) for _ in range(150)]
    assert np.mean(np.array(levels) <= 0.1) < 0.2, "at 10 % it speaks up about once in ten"


def test_one_sided_losses_warn_and_even_ones_do_not():
    one_sided = stage.create("one-sided", max_failures=1000)
    stage.play(one_sided, 600, fails=lambda t: t.arm == "large" and t.number % 5 == 0)
    found = diagnostic(one_sided, "lost")
    assert found.severity == "warning"
    assert found.p < 0.01
    assert "most of all large" in found.observed
    even = stage.create("even", max_failures=1000)
    stage.play(even, 600, fails=lambda t: t.number % 37 == 0)
    assert diagnostic(even, "lost").severity == "notice"
    assert diagnostic(stage.create("none"), "lost").severity == "ok"


def test_values_that_contradict_their_noise():
    objectives = [
        lb.Objective("x", margin=0.2, noise="gaussian"),
        lb.Objective("y", margin=0.2, noise=("sub_gaussian", 0.5)),
    ]
    study = lb.create_study("noise", arms=["a", "b"], objectives=objectives, seed=0)
    rng = np.random.default_rng(0)
    for _ in range(150):
        trial = study.ask()
        study.tell(trial, {"x": float(rng.lognormal(0, 1.2)), "y": float(rng.normal(0, 2.0))})
    levels = {s.assumption.split()[0]: s for s in study.explain().diagnostics}
    assert levels["x"].severity == "warning"
    assert "heavy-tailed" in levels["x"].observed
    assert levels["y"].p < 0.001


def test_gaussian_values_are_not_accused():
    accused = 0
    for seed in range(20):
        study = lb.create_study(
            f"s{seed}", arms=["a", "b"], objectives=[lb.Objective("x", margin=0.1, noise="gaussian")], seed=0
        )
        rng = np.random.default_rng(seed)
        for _ in range(5):
            trials = study.ask_many(40)
            study.tell_many([(t, {"x": float(rng.normal(1 if t.arm == "a" else 1.02, 3))}) for t in trials])
        accused += diagnostic(study, "Gaussian").severity not in ("ok", "not_needed")
    assert accused == 0, "p < 0.001 happens once in a thousand"


def test_changes_and_imports_are_listed():
    study = stage.create("changed")
    stage.play(study, 100)
    study.amend("correct", margin=0.2)
    study.reorder(["refusals", "latency", "correct", "cost"])
    found = diagnostic(study, "Rules")
    assert "margin or a tie was changed" in found.observed
    assert "order" in found.observed
    assert found.severity == "ok", "that keeps the confidence"
