"""What is said of an arm at the end is what the certificate has: over many small studies, all verdicts."""

import functools
import math
import re

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.evidence import ordinary

SEEDS = [*range(60), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(60, 120))]
NUMBER = r"−?[\d,]+(?:\.\d+)?"
LAST = re.compile(r"better|beaten|violates_limit|not_clearly_within")


def question(rng):
    """Two or three objectives; the first is a limit now and then."""
    objectives, spread = [], []
    for k in range(rng.integers(1, 4)):
        name, margin = f"o{k}", 2 * float(rng.choice([0.4, 0.6, 1.0]))
        how = rng.choice(["gaussian", "minimized", "limit"], p=[0.5, 0.3, 0.2] if k < 2 else [0.6, 0.4, 0.0])
        if how == "limit":
            objectives.append(lb.Objective(name, at_least=0.15, slack=0.6, noise="gaussian"))
        elif how == "minimized":
            objectives.append(lb.Objective(name, "minimize", unit="ms", margin=margin, noise="gaussian"))
        else:
            objectives.append(lb.Objective(name, margin=0.75 * margin, tie=margin / 2, noise="gaussian"))
        spread.append(float(rng.choice([0.3, 1.0])))
    return objectives, spread


@functools.cache
def played(seed):
    """A study that has ended, measured one by one: whatever was told counts."""
    rng = np.random.default_rng(seed)
    arms = [f"arm{k}" for k in range(rng.integers(2, 5))]
    objectives, spread = question(rng)
    means = {arm: rng.choice([-0.3, 0.0, 0.3, 0.9, 1.6], len(objectives)) for arm in arms}
    study = lb.create_study(
        f"s{seed}", arms=arms, objectives=objectives, delta=0.2, preregistered=seed % 2 == 0, seed=0
    )
    while trials := study.ask_many(1):
        values = {
            o.name: float(rng.normal(m, s))
            for o, m, s in zip(objectives, means[trials[0].arm], spread, strict=True)
        }
        study.tell(trials[0], values)
    return study


def table(study, objective):
    """Values by pass and arm, more is better."""
    frame = study.trials().pivot(index="item", columns="arm", values=objective.name)
    return frame if objective.direction == "maximize" else -frame


def lead(study, objective, arm, other):
    """The mean difference in common passes."""
    values = table(study, objective)
    return float((values[arm] - values[other]).mean())


def chain(study, arm):
    return [row for row in study.answer.certificate if row["rival"] == arm]


def by_the_means(study, arm):
    """Where and by whom an arm is dropped if today's means are the truth, written naively; None: nowhere."""
    objectives, kept = list(study.objectives), set(study.answer.candidates)
    for objective in objectives[study.policy.objective :]:
        before, middle = set(kept), (objective.tie_in_unit + objective.margin_in_unit) / 2
        near = set()
        if objective.limit is not None:
            middle = objective.slack_in_unit / 2
            near = {a for a in before if table(study, objective)[a].mean() >= objective.limit + middle}
        if near:
            kept, rivals = near, {a: [None] for a in before - near}
        else:
            rivals = {a: [b for b in before - {a} if lead(study, objective, b, a) > middle] for a in before}
            kept = {a for a in before if not rivals[a]}
        if not kept:
            kept = before
        elif arm in before - kept:
            return objective, rivals[arm]
    return None


def number(text):
    return float(text.replace(",", "").replace("−", "-"))


def said_numbers(sentence):
    """The objective, worse or better, than whom, by how much, and the interval in that direction."""
    found = re.search(
        rf"on (\S+) it is (worse|better) than (\S+) by ({NUMBER})(?: ms)?(?: over [\d,]+ common results?)?"
        rf"(?: \(95 % interval ({NUMBER}) to ({NUMBER})\))?"
        rf"(?:, certified (?:worse|better) by at least ({NUMBER}))?",
        sentence,
    )
    return None if found is None else found.groups()


def check_numbers(study, arm, sentence):
    """What a sentence says of a difference is what the trials give, what is certified is the policy's."""
    name, word, rival, by, low, high, least = said_numbers(sentence)
    names, arms = [o.name for o in study.objectives], list(study.arms)
    objective = study.objectives[names.index(name)]
    sign = 1 if word == "worse" else -1
    mean = sign * lead(study, objective, rival, arm)
    assert mean > 0
    step = 10.0 ** -len(by.partition(".")[2])
    assert number(by) == pytest.approx(mean, abs=0.51 * step)
    ends = sign * study.policy.differences[arms.index(rival), arms.index(arm), names.index(name)]
    if low is not None:
        values = table(study, objective)
        picture = sign * np.array(ordinary.of_mean((values[rival] - values[arm]).dropna().to_numpy()))
        assert number(low) <= min(picture) <= number(low) + 1.01 * step
        assert number(high) - 1.01 * step <= max(picture) <= number(high)
    if least is not None:
        assert objective.tie_in_unit < number(least) <= min(ends)


def kind_of(sentence):
    """What a sentence claims."""
    kinds = {
        "left": r" was (excluded|outside the limit) after ",
        "behind": r" is (excluded|outside the limit): ",
        "by the means": " is undecided, and worse on average: ",
        "ties": " is tied: ",
        "not told apart": " is undecided[;.]",
    }
    (found,) = [kind for kind, words in kinds.items() if re.search(words, sentence)]
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_sentence_says_what_the_certificate_has(seed):
    study = played(seed)
    answer = study.answer.arm
    limited = [o.name for o in study.objectives if o.limit is not None]
    for story in study.explain().arms[1:]:
        rows, kind = chain(study, story.arm), kind_of(story.sentence)
        verdicts = [row["verdict"] for row in rows]
        named = re.search(r"on (\S+) it ", story.sentence)
        if kind == "left":
            assert story.arm not in study.answer.candidates
            ends = [row for row in rows if re.match("beaten|violates|not_clearly", row["verdict"])]
            for row in ends:
                assert named[1] == row["objective"]
                assert f"than {row['by']} by" in story.sentence or row["objective"] in limited
        elif kind == "behind":
            assert named[1] == rows[-1]["objective"]
            words = {
                "better": f"than {answer} by",
                "beaten": f"than {rows[-1]['by']} by",
                "violates_limit": "certified less than 0.15, the limit",
                "not_clearly_within": "certified not inside the limit of 0.15 by the slack",
            }
            assert words[verdicts[-1]] in story.sentence
        elif kind == "ties":
            assert set(verdicts) <= {"tied", "meets_limit"}
            assert len(verdicts) == len(study.objectives)
        else:
            assert not any(LAST.match(verdict) for verdict in verdicts)
            assert not set(verdicts) <= {"tied", "meets_limit"}
            assert (
                f"{answer} keeps to the limit and is worse" in story.sentence
                or not limited
                or study.policy.infeasible
            )
            assert f"is worse than {story.arm} on no" in story.sentence
            assert set(verdicts) <= {"tied", "not_worse", "meets_limit", "open"}
            assert {row["objective"] for row in rows if row["verdict"] == "open"} <= set(limited)
        if kind in ("by the means", "ties", "not told apart"):
            dropped = by_the_means(study, story.arm)
            assert (dropped is None) is (kind == "not told apart") or kind == "ties"
            if kind == "by the means":
                objective, rivals = dropped
                assert named[1] == objective.name
                said = (said_numbers(story.sentence) or [None] * 3)[2]
                assert said in rivals or (said is None and objective.limit is not None)
            elif dropped is not None:
                assert f"on {dropped[0].name} by" in story.sentence or dropped[0].name in limited
            else:
                assert f"on {study.objectives[-1].name}" in story.sentence
        if said_numbers(story.sentence):
            check_numbers(study, story.arm, story.sentence)


AT_A_LIMIT = ("violates_limit", "meets_limit", "not_clearly_within")


@pytest.mark.parametrize("seed", SEEDS)
def test_each_reason_is_the_row_of_the_certificate(seed):
    study = played(seed)
    said = {
        "better": {"worse"},
        "beaten": {"worse"},
        "tied": {"tied"},
        "not": {"not_better", "better", "not_clearly_within"},
        "open": {"open", "violates_limit", "meets_limit"},
        "violates": {"violates_limit"},
        "meets": {"meets_limit"},
    }
    for row in study.answer.certificate:
        story = study.explain(row["rival"])
        reason = next(r for r in story.reasons if r.objective == row["objective"])
        if reason.verdict == "not_counted":
            assert story.decision.by == "elimination", "the rule was quicker than the proof"
            continue
        objective = next(o for o in study.objectives if o.name == row["objective"])
        if reason.rival == study.answer.arm:
            assert reason.verdict in said[row["verdict"].split("_")[0]]
            if reason.verdict in AT_A_LIMIT:  # it is about the arm's own mean
                assert reason.difference == pytest.approx(table(study, objective)[row["rival"]].mean())
                continue
            assert reason.difference == pytest.approx(objective.sign * row["difference"])
            ends = [math.nan if row[end] is None else objective.sign * row[end] for end in ("low", "high")]
            assert [math.nan if end is None else end for end in (reason.low, reason.high)] == pytest.approx(
                sorted(ends), nan_ok=True
            )
            assert reason.results == row["results"]
        for found in (reason.difference, reason.low, reason.high):
            assert found is None or math.copysign(1, found) == 1 or found != 0, "no − 0"
        if reason.verdict in ("worse", "better", "not_better", "tied") and said_numbers(reason.sentence):
            check_numbers(study, row["rival"], reason.sentence)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_candidate_has_not_left_on_any_page(seed, tmp_path):
    study = played(seed)
    candidates = set(study.answer.candidates)
    stories = study.explain().arms
    assert {s.arm for s in stories if s.decision.is_candidate} == candidates
    frame = study.results()
    assert set(frame[frame["state"] == "candidate"]["arm"]) == candidates == set(study.status.candidates)
    page = study.report(tmp_path / "r.html").read_text("utf-8")
    gone = sum(s.decision.outcome in ("excluded", "outside_limit") for s in stories)
    assert len(re.findall("<b>(?:Excluded|Outside the limit):</b>", page)) == gone
    assert len(re.findall('"standing">(?:excluded|outside the limit)<', page)) == gone
    assert page.count('"standing">tied<') == sum(s.decision.outcome == "tied" for s in stories)
    for story in stories:
        assert (
            bool(re.search(r" was (excluded|outside the limit) after", story.sentence))
            is (story.arm not in candidates)
            is (story.decision.after is not None)
        )
    plain = study.report(tmp_path / "r.md").read_text("utf-8")
    assert len(re.findall("; (?:Excluded|Outside the limit): ", plain)) == gone
    unmet = "Nobody (?:meets it|is inside it by the slack)"
    settled = len(re.findall(rf"\| (?:Settled|{unmet}): \d+ (?:→|arm)", plain)) + plain.count("| Settled")
    assert (settled > 0) is (study.policy.objective > 0)


@pytest.mark.slow
def test_the_studies_show_every_kind_of_end():
    stories = [story for seed in range(120) for story in played(seed).explain().arms[1:]]
    kinds = [kind_of(story.sentence) for story in stories]
    assert min(map(kinds.count, ("left", "behind", "by the means", "ties", "not told apart"))) >= 3, kinds
    rows = [row for seed in range(120) for row in played(seed).answer.certificate]
    verdicts = {row["verdict"] for row in rows}
    limits = {"violates_limit", "not_clearly_within"}
    assert all(
        (row["verdict"] == "beaten") is (row["by"] is not None) or row["verdict"] in limits for row in rows
    )
    assert verdicts == {"better", "beaten", "tied", "not_worse", "open", "meets_limit", *limits}
