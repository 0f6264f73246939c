"""No view contradicts itself: rules that hold of every study and every verdict, whatever was measured."""

import re
import sys

import pytest

import lexbandits as lb
from judging.test_shown import drawn
from lexbandits.outcomes import ArmOutcome, BaselineDecision, ClaimVerdict
from lexbandits.views import arms_table, drawing
from lexbandits.views.learning_cost import LearningCost
from lexbandits.views.study_view import StudyView
from lexbandits.views.verdict_view import VerdictView
from lexbandits.views.view_parts import BASES, LABELS, MEANINGS, Basis, legend_of
from report.test_outcomes import played
from support import lives, stage

NEVER = (
    r"of 10 parts|, 0 % of the evidence|100 % of the evidence|gave up|given up \d|\bnan\b|\binf\b|"
    r"by the means|told apart|ruled out|behind the answer|misses the limit \(|better and [\d,.]+ better|"
    r"gives up at most|somewhere between|the proof has it|best of those|in what matters|"
    r"nothing is shown to be better|\bout:|\bOut\b|second statement|certain\b"
)
UNDER_WAY = r"may still win|being settled|candidate|so far|\bopen\b|\d of \d arms|still in|% of the evidence"


def texts(view):
    """Every sentence of a view."""
    yield from (view.headline, view.badge, view.marks, view.note)
    for row in view.objectives:
        yield from (row.message, row.rule, row.matters)
    for arm in view.arms:
        yield arm.label
        for cell in arm.objectives.values():
            yield from (cell.shown, cell.range, cell.why)
    yield from (found.sentence for found in view.explanations)
    yield from map(str, view.claims)
    yield from (row.shown for found in view.comparisons for row in found.rows)
    if isinstance(view, VerdictView):
        yield str(view.verdict)
        yield view.verdict.as_markdown()
    elif view.cost is not None:
        yield view.cost.sentence


def check_outcomes(view):
    """One winner if certified and none otherwise; one label for each outcome, each explained in the key."""
    winners = [arm for arm in view.arms if arm.decision.outcome == ArmOutcome.WINNER]
    assert [arm.name for arm in winners] == ([view.answer.arm] if view.answer.certified else [])
    assert all(arm.leads and arm.decision.objective is None for arm in winners), "a winner is not excluded"
    for arm in view.arms:
        if getattr(view.answer, "gate", None) is None:
            assert arm.label == LABELS[arm.decision.outcome]
        known = dict(legend_of(view.objectives))
        assert arm.decision.outcome not in MEANINGS or LABELS[arm.decision.outcome] in known
        for name, cell in arm.objectives.items():
            decides = arm.decision.is_out and arm.decision.objective == name
            assert decides <= bool(cell.why), "what excludes an arm is said where it does"
    assert len(MEANINGS) == 5


def check_means(view):
    """An arm that is excluded has the worse mean, or it says on how many common items it is worse."""
    cells = {arm.name: arm.objectives for arm in view.arms}
    for row in view.objectives:
        sign = 1 if row.direction == "maximize" else -1
        for arm in view.arms:
            decision = arm.decision
            if not (decision.is_out and decision.objective == row.name and row.limit is None):
                continue
            mine, rival = cells[arm.name][row.name], cells.get(decision.rival, {}).get(row.name)
            if rival is not None and sign * (mine.mean - rival.mean) >= 0:
                assert "common" in mine.why, mine


def check_intervals(view):
    """An estimate lies in its interval; what is certified lies on the side that the outcome names."""
    for row in view.objectives:
        for arm in view.arms:
            cell = arm.objectives[row.name]
            if cell.low is not None and cell.mean is not None:
                assert cell.low <= cell.mean <= cell.high
            assert cell.meets is None or row.limit is not None
    for found in view.comparisons:
        (row,) = (row for row in view.objectives if row.name == found.objective)
        for each in found.rows:
            if each.low is not None:
                assert each.low <= each.mean <= each.high
            ends = each.proven_low, each.proven_high
            match each.verdict:
                case ClaimVerdict.WORSE:
                    assert ends[0] is None
                    assert ends[1] <= -row.tie + 1e-9
                case ClaimVerdict.TIED:
                    assert ends == (-row.margin, row.margin)
                case ClaimVerdict.NOT_BETTER:
                    assert ends in ((None, row.margin), (None, None))
                case _:
                    assert ends == (None, None)


def check_bases(view):
    """A bound beside an interval that holds at all times and does not show it says what it was proven by."""
    always = view.always is not None
    for found in view.comparisons:
        (row,) = (row for row in view.objectives if row.name == found.objective)
        texts = dict.fromkeys(drawing.verdict_text(view, each, found) for each in found.rows)
        hint = drawing.compared(view, found).hint
        for each in found.rows:
            text, low, high = drawing.verdict_text(view, each, found), each.proven_low, each.proven_high
            below = low is not None and (each.always_low is None or each.always_low < low)
            above = high is not None and (each.always_high is None or each.always_high > high)
            assert (each.basis != Basis.ALWAYS) == (always and (below or above)), each
            said = BASES[each.basis].removeprefix("proven ").rstrip(":")
            assert each.basis == Basis.ALWAYS or (said in text and said in hint.lower()), texts
            assert each.verdict != ClaimVerdict.OPEN or "evidence" not in text or each.arm != view.answer.arm
            if found.reference != view.answer.arm:
                assert "% of the evidence" not in text, "evidence is of the answer, whom nothing here shows"
        if always and getattr(view, "common", "") != "the same items":
            assert "same items" not in hint + view.note
    for arm in view.arms:
        for row in view.objectives:
            cell = arm.objectives[row.name]
            if always and row.limit is not None and cell.meets is not None and view.is_limit(row.name):
                at_most = (row.direction == "minimize") == cell.meets
                ends = (cell.always_low, cell.always_high)
                shown = ends[1] is not None and ends[1] <= row.limit
                shown = shown if at_most else ends[0] is not None and ends[0] >= row.limit
                assert (cell.basis == Basis.ALWAYS) == shown, cell


def check_pictures(view):
    """An ordinary interval that seems to decide what is undecided is said to be no guarantee."""
    for found in view.explanations:
        interval = re.search(
            r"it is (?:worse|better) [^(]*\(ordinary 95 % interval (−?)[\d,.]+ to", found.sentence
        )
        if found.decision.is_candidate and interval and not interval[1]:
            low = re.search(r"interval ([\d,.]+) to", found.sentence)[1]
            assert float(low.replace(",", "")) == 0 or "not the guarantee" in found.sentence, found.sentence


def check_bands(view, objectives):
    """A margin in percent is drawn like any other."""
    for row, asked in zip(view.objectives, objectives, strict=True):
        means = [arm.objectives[row.name].mean for arm in view.arms]
        if asked.is_relative and asked.is_of_best and all(means):
            assert 0 < row.tie <= row.margin
            assert arms_table.band_of(view, row) is not None


def check(view, objectives):
    """All of it."""
    check_outcomes(view)
    check_intervals(view)
    check_means(view)
    check_bands(view, objectives)
    check_bases(view)
    check_pictures(view)
    for text in texts(view):
        assert not re.search(NEVER, text), text
        if view.state == "finished":
            assert not re.search(UNDER_WAY, re.sub("(a|the|any other) candidate", "", text)), text
    if getattr(view.answer, "decision", None) == BaselineDecision.KEEP_FOR_NOW:
        assert "by more than the margin" in view.headline


def check_study(study):
    view = StudyView.of(study)
    check(view, [study.objectives[column] for column in view.estimates.columns])
    if view.answer.certified:
        assert not re.search("not decided|best guess|No certificate", view.headline)
        limits = {row.name: row.limit for row in view.objectives if row.limit is not None}
        for claim in view.claims:
            if claim.worst is not None and claim.objective in limits and claim.objective not in view.unmet:
                assert claim.worst == limits[claim.objective], "a limit is met as written"
        lines = str(view.answer).splitlines()
        for arm in view.arms:
            told = any(line.split()[0] == arm.name for line in lines[1:])
            assert told or arm.leads or arm.decision.is_gone, (arm.name, lines)
        winner = next(found for found in view.explanations if found.leads)
        for reason in winner.reasons:
            assert len(re.findall(r"at (?:most|least) \d", reason.sentence)) <= 1, reason


@pytest.mark.parametrize("seed", range(40))
def test_no_study_contradicts_itself(seed):
    actions = lives.ACTIONS if seed % 2 else lives.ON_A_LIST
    changes = {} if seed % 2 else {"items": [f"i{k}" for k in range(30)], "scope": "items"}
    check_study(lives.in_memory(**changes).play(lives.script_of(seed, 300, actions)))


@pytest.mark.parametrize("seed", range(30))
def test_no_finished_study_contradicts_itself(seed):
    check_study(played(seed))


@pytest.mark.parametrize("seed", range(48))
def test_no_verdict_contradicts_itself(seed):
    verdict = drawn(seed)
    check(VerdictView(verdict), verdict.objectives)
    assert ("Guarantee:" in str(verdict)) <= verdict.certified


@pytest.mark.parametrize("rate", [0.0125, 0.01])
def test_a_limit_that_is_met_has_no_bound_beyond_it(rate):
    """Errors of at most 0.063, and the limit is 0.05: of a certified answer."""
    limit = lb.Objective("errors", "minimize", at_most=0.05, slack=0.03, noise="bernoulli")
    study = lb.create_study("errors", arms=["a", "b"], objectives=[limit], delta=0.2, seed=0)
    number = 0
    while trials := study.ask_many(20):
        for trial in trials:
            number += 1
            study.tell(trial, {"errors": int(trial.arm == "b" or number % round(1 / rate) == 0)})
    assert study.answer.certified
    check_study(study)
    assert "0.05" in str(StudyView.of(study).claims[0])
    assert StudyView.of(study).arms[0].objectives["errors"].meets is True


def test_a_certified_winner_is_not_out_by_the_other_statement():
    """A current arm may be kept, though another is better by more than a tie and less than the margin."""
    n = 4000
    table = {
        "arm": ["old"] * n + ["new"] * n,
        "item": [*range(n)] * 2,
        "right": [int(k % 100 < 80) for k in range(n)] + [int(k % 100 < 84) for k in range(n)],
    }
    right = lb.Objective("right", margin=0.06, tie=0.01, noise="bernoulli")
    verdict = lb.judge(table, [right], baseline="old")
    assert (verdict.arm, verdict.certified, verdict.decision) == ("old", True, "keep")
    assert verdict.candidates == ("new",), "by the other statement the new one is better"
    view = VerdictView(verdict)
    check(view, verdict.objectives)
    assert {arm.name: arm.label for arm in view.arms} == {"old": "winner", "new": "tied"}


def test_what_is_seen_and_not_certified_is_called_so():
    """An ordinary interval beyond the margin is no reason to say that an arm may be better by that much."""
    cents = lb.Objective("cents", "minimize", margin=500, noise=("bounded", 0, 100_000))
    values = [2000 + 40 * (k % 7) for k in range(60)]
    table = {
        "arm": ["a"] * 60 + ["b"] * 60,
        "item": [*range(60)] * 2,
        "cents": values + [value + 1000 + 30 * (k % 5) for k, value in enumerate(values)],
    }
    verdict = lb.judge(table, [cents], baseline="b")
    assert verdict.decision == "keep_for_now"
    text = str(verdict)
    assert "seems better than b by more than 500, not certified: seen 1,060 better" in text
    check(VerdictView(verdict), verdict.objectives)


def test_what_seems_worse_is_not_said_to_be_ahead():
    """Few values certify nothing, and yet an arm that is five times slower is not said to be ahead."""
    seconds = lb.Objective("seconds", "minimize", margin=1, noise=("bounded", 0, 100))
    rows = {"arm": ["a"] * 5 + ["b"] * 5, "item": [*range(5)] * 2}
    rows["seconds"] = [2.0, 2.1, 2.2, 2.1, 2.0, 10.1, 10.2, 10.0, 10.1, 10.3]
    verdict = lb.judge(rows, [seconds])
    assert not verdict.certified
    assert "b is undecided on seconds: it seems worse than a, not certified: seen 8.0" in str(verdict)
    check(VerdictView(verdict), verdict.objectives)


def test_means_over_own_items_say_on_what_arms_are_compared():
    """b has the harder half of the items: its mean is that of a, and it wins where both were measured."""
    rows = {"arm": [], "item": [], "right": []}
    for k in range(400):
        shares = {"a": 9, "b": None} if k < 200 else {"a": 3, "b": 6}
        for arm, share in shares.items():
            rows["arm"].append(arm)
            rows["item"].append(k)
            rows["right"].append(None if share is None else int(k % 10 < share))
    verdict = lb.judge(rows, [lb.Objective("right", margin=0.1, noise="bernoulli")], missing="drop")
    assert [cells["right"]["mean"] for cells in verdict.means.values()] == [0.6, 0.6]
    view = VerdictView(verdict)
    check(view, verdict.objectives)
    assert "(0.300 on 200 common items)" in view.arms[1].objectives["right"].why


def test_a_bracket_within_a_line_is_proven_for_the_answer():
    """The tests of the answer take less evidence than intervals that hold at all times."""
    study = stage.create(preregistered=True)
    stage.play(study)
    check_study(study)
    view = StudyView.of(study)
    rows = {row.arm: row for found in view.comparisons for row in found.rows if found.objective == "correct"}
    small = rows["small"]
    assert (small.verdict, small.basis) == (ClaimVerdict.WORSE, Basis.ANSWER)
    assert small.proven_high < 0 < small.always_high
    story = view.explanation("small").sentence
    assert "proven for the answer: worse by more than 0.08" in story
    assert "certified worse" not in story
    assert "proven for the answer: worse" in view.arms[2].objectives["correct"].why


def test_what_a_limit_leaves_open_is_open_of_everybody():
    """The sentence under the headline names every arm that the figure calls undecided."""
    study = stage.create(preregistered=True)
    stage.play(study, 150)
    view = StudyView.of(study)
    named = view.open.removeprefix("Undecided on refusals: ").rstrip(".").split(", ")
    assert named == [arm.name for arm in view.arms if arm.objectives["refusals"].meets is None]
    assert "tiny" in named
    assert "not the guarantee" in view.explanation("tiny").sentence, "its interval is beyond the limit"


def test_a_limit_that_nobody_clearly_keeps_has_no_tick():
    limit = lb.Objective("errors", "minimize", at_most=0.05, slack=0.045, noise="bernoulli")
    study = lb.create_study("near", arms=["a", "b"], objectives=[limit], delta=0.3, seed=0)
    number = 0
    while trials := study.ask_many(20):
        for trial in trials:
            number += 1
            study.tell(trial, {"errors": int(number % 20 == 0)})
    assert study.answer.flags == ("not_clearly_feasible",)
    view = StudyView.of(study)
    assert view.unmet == {"errors"}
    assert "Nobody is inside it by the slack" in view.objectives[0].message


def test_learning_is_counted_in_results():
    cost = LearningCost({"a": 3, "b": 1}, 6, {}, None, None, "4 results in all: a 3 and b 1.")
    assert str(cost) == cost.sentence


def test_missing_values_at_their_worst_leave_the_mean_inside():
    x = lb.Objective("x", margin=0.3, noise="bernoulli", if_missing="worst")
    study = lb.create_study("gaps", arms=["a", "b"], objectives=[x], seed=0)
    for k in range(40):
        trial = study.ask()
        study.tell(trial, {"x": None if k % 8 < 2 else int(trial.arm == "a" or k % 3 == 0)})
    check_study(study)
    rows = {"arm": ["a"] * 40 + ["b"] * 40, "item": [*range(40)] * 2}
    rows["x"] = [None if k % 5 == 0 else k % 2 for k in range(80)]
    verdict = lb.judge(rows, [lb.Objective("x", margin=0.3, noise="bernoulli")], missing="worst")
    check(VerdictView(verdict), verdict.objectives)


@pytest.mark.parametrize("which", ["study", "verdict"])
def test_drawing_computes_no_statistic(which):
    """All that is drawn is in the view before the first line is."""
    view = VerdictView(drawn(1)) if which == "verdict" else None
    if view is None:
        study = stage.create()
        stage.play(study, 200)
        view = StudyView.of(study)
    for name in ("objectives", "arms", "explanations", "comparisons", "claims", "headline", "certificate"):
        getattr(view, name, None)
    seen = []

    def profile(frame, event, _):
        if event == "call" and re.search(
            r"lexbandits/(evidence|policies|judging/claims)", frame.f_code.co_filename
        ):
            seen.append(frame.f_code.co_qualname)

    sys.setprofile(profile)
    try:
        arms_table.arms_table(view)
        drawing.stories(view)
        for row in view.objectives:
            drawing.deciding(view, row)
        for found in view.comparisons:
            drawing.compared(view, found)
    finally:
        sys.setprofile(None)
    assert not seen, set(seen)
