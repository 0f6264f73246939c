"""The gate: Theorem G against a transcription and by enumeration, and what people are told."""

import itertools
import json
import re

import numpy as np
import pytest

import lexbandits as lb
from lexbandits.judging import gate as gating
from lexbandits.judging.gate import GateFinding, GateOutcome, GateRule, OpenReason, decide
from support import judge_oracle as naive
from support.claimed import ALPHA, FACTS, Asked, Placed, TrueMeans, cost, drawn_means

RULES = [*GateRule]
OLD, NEW = 0, 1
BOTH = {"baseline": "old", "candidate": "new"}


# --- Theorem G


def test_it_is_decided_as_transcribed():
    rng, seen = np.random.default_rng(0), []
    facts = (*FACTS, "clearly_better", "not_beaten")
    for _ in range(4000):
        m = int(rng.integers(1, 5))
        p = {fact: 10.0 ** -rng.uniform(0, 4, (m, 2, 2)) for fact in facts}
        for fact in ("not_worse", "meets_limit", "not_beaten"):
            p[fact] = np.where(rng.random((m, 2, 2)) < 0.6, 1e-5, p[fact])
        p["violates_limit"], p["clearly_better"] = (
            np.where(rng.random((m, 2, 2)) < 0.7, 1.0, p[fact])
            for fact in ("violates_limit", "clearly_better")
        )
        noisy, limits = ([bool(rng.random() < chance) for _ in range(m)] for chance in (0.7, 0.35))
        for rule in RULES:
            found = decide(Placed(p, noisy, limits), NEW, OLD, 0.05, rule).outcome
            assert found == naive.gate_outcome(p, m, 0.05, noisy, limits, NEW, OLD, rule)
            seen.append((found, rule))
    assert min(seen.count(way) for way in itertools.product(GateOutcome, RULES)) > 200


def told(world):
    """What the oracle is told: ties, margins, and limits as written."""
    ties, margins = zip(*[(o.low, o.low + o.width) for o in world.asked], strict=True)
    return world.means, ties, margins, [o.low if o.is_limit else None for o in world.asked], NEW, OLD


def check_ship(world, rule):
    """Who ships wrongly needs false claims that cost alpha at most; False: it may ship."""
    truth = naive.gate_truth(*told(world))
    if truth == "better" or (truth == "not worse" and rule is GateRule.NOT_WORSE):
        return False
    if missed := world.below(NEW):
        W = {(("meets_limit", i, NEW, None), ALPHA) for i in missed[:1] if world.noisy[i]}
    elif rule is GateRule.NOT_WORSE:
        route = gating.ways_to_ship(world, NEW, OLD, ALPHA, rule)[0]
        ways = next(w for _, _, w in route if not any(world.is_true(*claim) for (claim,), _ in w))
        W = world.refusing(ways)
    else:
        W = set()
        for route in gating.ways_to_ship(world, NEW, OLD, ALPHA, rule):
            false = [ways for _, _, ways in route if not any(world.is_true(*claim) for (claim,), _ in ways)]
            assert false, "a way that is true"
            W |= world.refusing(false[0])
    assert cost(W) <= 1 + 1e-9, (world.means, W)
    assert not is_made(world.but(W), gating.ways_to_ship(world, NEW, OLD, ALPHA, rule))
    return True


def is_made(world, routes):
    """Whether all claims of a route are made, whatever else is shown."""
    return any(
        all(any(world.says(*claim, level) for (claim,), level in ways) for _, _, ways in route)
        for route in routes
    )


def check_regression(world):
    """Who is called a regression wrongly needs false claims that cost alpha at most; False: it is one."""
    if naive.gate_truth(*told(world)) == "regression":
        return False
    W = set()
    for route in gating.ways_to_regress(world, NEW, OLD, ALPHA):
        false = [ways for _, _, ways in route if not any(world.is_true(*claim) for (claim,), _ in ways)]
        assert false, "a way that is true"
        W |= world.refusing(false[0])  # the first: with it all later ways are refused at once
    assert cost(W) <= 1 + 1e-9, (world.means, W)
    assert not is_made(world.but(W), gating.ways_to_regress(world, NEW, OLD, ALPHA))
    return True


def check(world):
    """(must not ship, must not switch, is no regression); and true claims alone find the truth."""
    truth = naive.gate_truth(*told(world))
    found = [decide(world, NEW, OLD, ALPHA, rule).outcome for rule in RULES]
    expected = {
        "regression": ["regression", "regression"],
        "better": ["ship", "ship"],
        "not worse": ["ship", "not_shown"],
    }[truth]
    assert found == expected, (world.asked, world.means, truth)
    return np.array([*(check_ship(world, rule) for rule in RULES), check_regression(world)])


def pair(rng):
    world = drawn_means(rng)
    means = [rng.integers(1, 9, len(world.asked)).tolist() for _ in range(2)]
    return TrueMeans(world.asked, means)


def test_worlds_drawn_at_random():
    rng = np.random.default_rng(0)
    assert min(sum(check(pair(rng)) for _ in range(3000))) > 800


@pytest.mark.slow
@pytest.mark.parametrize("order", [*itertools.product([True, False], repeat=3)])
@pytest.mark.parametrize("exact", [None, 0, 1, 2])
def test_every_world_of_three_objectives_and_five_values(order, exact):
    asked = [
        Asked(is_limit, i != exact, 4, 2) if is_limit else Asked(False, i != exact, 1, 1)
        for i, is_limit in enumerate(order)
    ]
    arms = [*itertools.product(*(range(3, 8) if is_limit else range(5) for is_limit in order))]
    assert sum(check(TrueMeans(asked, means)) for means in itertools.product(arms, repeat=2)).max() > 5000


TO_SHIP, TO_REGRESS = gating.ways_to_ship, gating.ways_to_regress


def at_most(routes, change):
    """The same routes, with each level changed."""
    return [
        [(y, i, [(way, change(way[0], level)) for way, level in ways]) for y, i, ways in route]
        for route in routes
    ]


PLANTED = {
    "halves that are wholes": (
        "ways_to_ship",
        lambda *asked: at_most(TO_SHIP(*asked), lambda claim, level: min(ALPHA, 2 * level)),
    ),
    "no share for what was better before": (
        "ways_to_ship",
        lambda *asked: at_most(
            TO_SHIP(*asked), lambda claim, level: ALPHA if claim[0] == "not_worse" else level
        ),
    ),
    "all of alpha on every objective": (
        "ways_to_regress",
        lambda *asked: at_most(TO_REGRESS(*asked), lambda claim, level: ALPHA),
    ),
    "limits that take no share": (
        "ways_to_regress",
        lambda claims, *asked: at_most(
            TO_REGRESS(claims, *asked),
            lambda claim, level: ALPHA if claim[0] == "violates_limit" else level,
        ),
    ),
    "no excuse is looked for": (
        "ways_to_regress",
        lambda *asked: [route[-1:] for route in TO_REGRESS(*asked)],
    ),
    "a baseline outside its limit is no excuse": (
        "ways_to_regress",
        lambda *asked: [
            [need for need in route if need[2][0][0][0][0] != "meets_limit"] for route in TO_REGRESS(*asked)
        ],
    ),
    "limits are not looked at": (
        "ways_to_ship",
        lambda *asked: [
            [need for need in route if need[2][0][0][0][0] != "meets_limit"] for route in TO_SHIP(*asked)
        ],
    ),
}


@pytest.mark.parametrize("error", PLANTED)
def test_an_error_in_the_levels_is_found(error, monkeypatch):
    name, planted = PLANTED[error]
    rng = np.random.default_rng(3)
    worlds = [pair(rng) for _ in range(400)]
    monkeypatch.setattr(gating, name, planted)
    with pytest.raises(AssertionError):
        [check(world) for world in worlds]


# --- tables

RIGHT = lb.Objective("right", margin=0.02, noise="bernoulli")
COST = lb.Objective("cost", "minimize", margin=0.1, unit="$", noise=("bounded", 0, 4))
REFUSED = lb.Objective("refused", "minimize", at_most=0.1, slack=0.02, noise="bernoulli")


def table(n=3000, worse=0.0, cheaper=0.3, refused=0.02, apart=0.06, seed=0):
    """A new arm that differs from the old one on a share of the items."""
    rng = np.random.default_rng(seed)
    luck, old = rng.random(n), rng.random(n) < 0.8
    lost, won = (apart + worse) / 2 / 0.8, (apart - worse) / 2 / 0.2
    right = np.r_[old, np.where(old, luck >= lost, luck < won)].astype(int)
    costs = np.r_[rng.gamma(16, 1 / 16, n), rng.gamma(16, (1 - cheaper) / 16, n)]
    return {
        "arm": ["old"] * n + ["new"] * n,
        "item": [*range(n)] * 2,
        "right": right.tolist(),
        "cost": np.minimum(costs, 4).tolist(),
        "refused": np.r_[rng.random(n) < 0.02, rng.random(n) < refused].astype(int).tolist(),
    }


def gate(worse=0.0, objectives=(RIGHT, COST), rule="not_worse", how=(), **changes):
    return lb.judge(table(worse=worse, **changes), objectives, gate=rule, **BOTH, **dict(how))


def test_an_equal_and_cheaper_change_ships():
    verdict = gate()
    assert verdict.gate.outcome is GateOutcome.SHIP
    assert (verdict.certified, verdict.arm, verdict.acceptable) == (True, "new", ("new",))
    assert verdict.gate.findings == {"right": GateFinding.NOT_WORSE, "cost": GateFinding.BETTER}
    head = str(verdict).splitlines()[0]
    assert head.startswith(
        "Ship new: certified not worse than old on right (margin 2 points) and better on cost"
    )
    assert "by at least 0." in head
    assert "regression in at most 5 %" in str(verdict)


def test_a_regression_is_named_with_a_bound_that_holds():
    verdict = gate(worse=0.06)
    assert verdict.gate.outcome is GateOutcome.REGRESSION
    assert (verdict.certified, verdict.arm, verdict.acceptable) == (False, "old", ())
    assert verdict.gate.objective == "right"
    assert 0.02 < verdict.gate.bound < 0.06
    by = f"{100 * verdict.gate.bound:.2g} points on right (margin 2 points)"
    assert str(verdict).splitlines()[0] == f"Regression: new is worse than old by at least {by}."
    assert verdict.missing_items is None
    assert "stop_when" not in str(verdict)


def test_what_lies_between_is_not_shown_and_says_what_it_takes():
    verdict = gate(worse=0.012)
    assert verdict.gate.outcome is GateOutcome.NOT_SHOWN
    assert (verdict.certified, verdict.arm) == (False, "old")
    assert (verdict.gate.objective, verdict.gate.reason) == ("right", OpenReason.MAY_BE_WORSE)
    assert verdict.gate.bound >= 0.02
    head = str(verdict).splitlines()[0]
    assert head.startswith("Not shown yet: new may be worse than old by up to")
    assert head.endswith("new items should settle it.")
    assert verdict.missing_items > 1000


def test_a_bound_beyond_what_values_can_differ_by_is_not_said():
    verdict = gate(n=6)
    assert (verdict.gate.reason, verdict.gate.bound) == (OpenReason.MAY_BE_WORSE, None)
    head = "Not shown yet: new may be worse than old by more than 2 points on right (margin 2 points)"
    assert str(verdict).startswith(head)
    assert "new is the candidate. It may be worse than old on right" in str(verdict)


def test_a_number_of_items_lies_where_it_may_lie():
    share = [True] * 799 + [False] * 201
    rows = {"arm": ["old"] * 1000 + ["new"] * 1000, "item": [*range(1000)] * 2, "right": share * 2}
    verdict = lb.judge(rows, [lb.Objective("right", at_least=0.8, noise="bernoulli")], **BOTH)
    low, high = verdict.missing_range
    assert low <= verdict.missing_items
    assert high is None or verdict.missing_items <= high


def test_as_many_items_as_are_asked_for_mostly_settle_it():
    settled = []
    for seed in range(12):
        verdict = gate(worse=0.0, n=250, seed=seed)
        if verdict.gate.outcome is GateOutcome.NOT_SHOWN and verdict.missing_items:
            again = gate(worse=0.0, n=verdict.missing_items, seed=100 + seed)
            settled.append(again.gate.outcome is not GateOutcome.NOT_SHOWN)
    assert len(settled) >= 5
    assert np.mean(settled) >= 0.6


def test_to_switch_it_must_be_better():
    assert gate(rule="switch").gate.outcome is GateOutcome.SHIP
    assert gate(rule="switch").gate.objective == "cost"
    equal = gate(rule="switch", cheaper=0.0)
    assert (equal.gate.outcome, equal.gate.reason) == (GateOutcome.NOT_SHOWN, OpenReason.NOT_BETTER)
    assert str(equal).startswith("Not shown yet: new is not shown to be better than old on any objective")
    assert gate(cheaper=0.0).gate.outcome is GateOutcome.SHIP
    assert gate(rule="switch", worse=0.06).gate.outcome is GateOutcome.REGRESSION


def test_who_is_better_first_may_be_worse_later():
    verdict = gate(worse=-0.05, cheaper=-0.5)
    assert verdict.gate.outcome is GateOutcome.SHIP
    assert verdict.gate.findings == {"right": GateFinding.BETTER, "cost": GateFinding.NOT_NEEDED}
    assert verdict.gate.objective == "right"
    assert gate(worse=0.0, cheaper=-0.5).gate.outcome is GateOutcome.REGRESSION


def test_a_limit_counts_wherever_it_stands():
    for objectives in itertools.permutations((RIGHT, COST, REFUSED)):
        assert gate(objectives=objectives).gate.outcome is GateOutcome.SHIP
        beyond = gate(objectives=objectives, refused=0.2, worse=-0.05)
        assert (beyond.gate.outcome, beyond.gate.objective) == (GateOutcome.REGRESSION, "refused")
        assert str(beyond).startswith("Regression: new violates the limit on refused (at most 0.1), seen 0.")
        near = gate(objectives=objectives, refused=0.1)
        assert (near.gate.outcome, near.gate.reason) == (GateOutcome.NOT_SHOWN, OpenReason.MAY_VIOLATE_LIMIT)
        assert str(near).startswith("Not shown yet: new may violate the limit on refused (at most 0.1), seen")


def test_of_two_regressions_the_first_is_named():
    for objectives, first in (((RIGHT, REFUSED), "right"), ((REFUSED, RIGHT), "refused")):
        assert gate(worse=0.06, refused=0.3, objectives=objectives).gate.objective == first


def test_who_meets_a_limit_that_the_baseline_violates_is_better():
    rows = table(worse=0.06)
    rows["refused"][:3000] = (np.random.default_rng(1).random(3000) < 0.3).astype(int).tolist()
    first, last = (
        lb.judge(rows, objectives, **BOTH, gate="switch").gate
        for objectives in ((REFUSED, RIGHT), (RIGHT, REFUSED))
    )
    assert (first.outcome, first.objective) == (GateOutcome.SHIP, "refused")
    assert (last.outcome, last.objective) == (GateOutcome.REGRESSION, "right")


def test_other_arms_are_ignored():
    rows, alone = table(), gate()
    more = {"arm": ["third"] * 4, "item": [7, 7, 8, 9], "right": [0, 1, None, 1]}
    more |= {"cost": [1e9, None, 1.0, 2.0], "refused": [1] * 4}
    mixed = {name: more[name][:2] + column + more[name][2:] for name, column in rows.items()}
    assert lb.judge(mixed, [RIGHT, COST], **BOTH).as_json() == alone.as_json()
    mixed["cost"][4] = -5.0  # of the old arm
    with pytest.raises(lb.ValueOutOfRange, match="row 5, item 2"):
        lb.judge(mixed, [RIGHT, COST], **BOTH)
    arrays = {name: np.array(column, dtype=object) for name, column in rows.items()}
    assert lb.judge(arrays, [RIGHT, COST], **BOTH).as_json() == alone.as_json()


def test_of_all_items_the_truth_is_told():
    how = {"scope": "items"}
    for worse, outcome in ((0.0, "ship"), (0.03, "regression"), (0.06, "regression")):
        verdict = gate(worse=worse, how=how, seed=2)
        assert verdict.gate.outcome == outcome
        assert verdict.delta == 0.0
    said = r"Ship new: on these items it is not worse than old on right .* and better on cost by 0\.\d+ \$\."
    assert re.match(said, str(gate(how=how)))
    seen = verdict.means["old"]["right"]["mean"] - verdict.means["new"]["right"]["mean"]
    assert verdict.gate.bound == pytest.approx(seen)


def test_a_flag_takes_an_outcome_away():
    rng = np.random.default_rng(0)
    rows = {"arm": ["old"] * 400 + ["new"] * 400, "item": [*range(400)] * 2}
    for gap, outcome in ((0.0, "would pass"), (3.0, "may be worse")):
        rows["x"] = (rng.normal(size=800) - gap * (np.arange(800) >= 400)).tolist()
        verdict = lb.judge(rows, [lb.Objective("x", margin=1, noise="finite_variance")], **BOTH)
        assert verdict.gate.outcome is GateOutcome.NOT_SHOWN
        assert outcome in str(verdict)
        assert lb.judge(rows, [lb.Objective("x", margin=1)], **BOTH).gate.outcome is not GateOutcome.NOT_SHOWN
    assert "is approximate" in str(
        lb.judge(rows, [lb.Objective("x", margin=9, noise="finite_variance")], **BOTH)
    )


def test_a_margin_in_percent():
    dearer = lb.Objective("cost", "minimize", margin="10%", noise=("bounded", 0, 4))
    of_old = lb.Objective("cost", "minimize", margin="10%", reference="old", noise=("bounded", 0, 4))
    for asked in (dearer, of_old):
        assert gate(objectives=[asked], cheaper=0.3).gate.outcome is GateOutcome.SHIP
        verdict = gate(objectives=[asked], cheaper=-0.3)
        assert verdict.gate.outcome is GateOutcome.REGRESSION
        assert "worse than old by more than 10 % of" in str(verdict)


def test_it_may_be_looked_at_as_it_grows():
    rows, outcomes = table(n=6000, worse=0.05), []
    for n in (50, 1000, 6000):
        part = {name: column[:n] + column[6000 : 6000 + n] for name, column in rows.items()}
        outcomes.append(lb.judge(part, [RIGHT, COST], sequential=True, **BOTH).gate.outcome)
    assert outcomes[0] is GateOutcome.NOT_SHOWN
    assert outcomes[-1] is GateOutcome.REGRESSION


def test_it_is_told_everywhere():
    for worse in (0.0, 0.012, 0.06):
        verdict = gate(worse=worse)
        head = str(verdict).splitlines()[0].partition("  ")[0]  # what was judged stands to its right
        document = json.loads(json.dumps(verdict.as_json()))
        assert document["gate"]["outcome"] == verdict.gate.outcome
        assert set(document["gate"]["findings"]) == {"right", "cost"}
        assert verdict.as_markdown().startswith(f"### {head}")
        shown = re.sub("<[^>]*>", "", verdict._repr_html_())
        assert head.partition(":")[0] in shown


def test_a_report_has_the_outcome(tmp_path):
    for worse, badge in ((0.0, "May ship"), (0.012, "Not shown"), (0.06, "Regression")):
        path = gate(worse=worse).report(tmp_path / "gate.html")
        assert badge in path.read_text("utf-8")


def test_a_report_compares_a_candidate_that_does_not_ship_with_the_baseline(tmp_path):
    for cheaper, words in ((0.3, "better by more than the tie"), (0.0, "not worse by more than the margin")):
        path = gate(worse=0.012, cheaper=cheaper).report(tmp_path / "gate.html")
        assert words in path.read_text("utf-8")


def test_rows_without_items_are_counted_per_arm():
    rows = table(n=300)
    assert "2 arms, 300 rows per arm" in str(lb.judge(rows, [RIGHT], item=None, **BOTH))
    fewer = {name: column[:500] for name, column in rows.items()}
    assert "2 arms, 200 to 300 rows per arm" in str(lb.judge(fewer, [RIGHT], item=None, **BOTH))


@pytest.mark.parametrize(("margin", "noise"), [(100, "symmetric"), (100, ("bounded", 0, 500)), (9, "exact")])
def test_a_margin_above_every_value_is_remarked(margin, noise):
    """Seconds where the margin was meant as milliseconds: a change that is 10 times slower ships."""
    n, rng = 40, np.random.default_rng(0)
    times = [0.2, 0.2, 2.0, 2.0] if noise == "exact" else [*rng.uniform(0.1, 0.3, n), *rng.uniform(1, 3, n)]
    arms = ["old"] * (len(times) // 2) + ["new"] * (len(times) // 2)
    table = {"arm": arms, "item": [*range(len(times) // 2)] * 2, "latency": times}
    asked = lb.Objective("latency", "minimize", margin=margin, unit="ms", noise=noise)
    verdict = lb.judge(table, [asked], baseline="old", candidate="new")
    assert verdict.gate.outcome == "ship"
    assert verdict.notices[-1] == {"code": "margin_above_values", "objectives": ["latency"]}
    assert "Every value of latency is below the margin, which decides nothing" in str(verdict)
    asked = lb.Objective("latency", "minimize", margin=0.1, unit="s", noise=noise)
    assert not lb.judge(table, [asked], baseline="old", candidate="new").notices


def test_what_cannot_be_asked():
    rows = table(n=20)
    for how, message in (
        ({"baseline": "old", "gate": "switch"}, "needs baseline= and candidate="),
        ({"candidate": "new", "gate": "switch"}, "needs baseline= and candidate="),
        ({"baseline": "old", "candidate": "old"}, "must be two arms"),
        ({"baseline": "old", "candidate": "knew"}, "new"),
        ({**BOTH, "gate": "best"}, "not_worse"),
    ):
        with pytest.raises(lb.StudyError, match=message):
            lb.judge(rows, [RIGHT], **how)
    third = lb.Objective("cost", "minimize", margin="10%", reference="third", noise=("bounded", 0, 4))
    with pytest.raises(lb.StudyError, match="say reference='old'"):
        lb.judge(rows, [third], **BOTH)


def test_a_study_can_follow():
    verdict = gate(worse=0.012)
    words = verdict.follow_up()
    assert (words["arms"], words["baseline"]) == (["old", "new"], "old")


@pytest.mark.parametrize("seed", range(6))
def test_a_bound_that_is_shown_is_claimed_at_the_level_of_the_regression(seed):
    verdict = gate(worse=0.06, seed=seed)
    claims, steps = verdict._claims, verdict.certificate
    assert [(row["verdict"], row["level"]) for row in steps] == [
        ("not_beaten", 0.05),
        ("clearly_better", 0.025),
    ]
    sample, grid = claims.sample("clearly_better", 0, OLD, NEW), 0.02 + gating.BEYOND * 0.01
    nearest = int(np.argmin(np.abs(grid - verdict.gate.bound)))
    assert grid[nearest] == pytest.approx(verdict.gate.bound, abs=1e-12)
    assert claims.exceeds(0, sample, grid[nearest], 0.025)
    assert not claims.exceeds(0, sample, grid[nearest + 1], 0.025)


@pytest.mark.parametrize(
    ("apart", "said"), [(0.1004, "0.10"), (0.1032, "0.10"), (0.2004, "0.2004"), (0.3, "0.30")]
)
def test_what_was_measured_on_a_list_is_rounded_to_the_nearest(apart, said):
    """Rounded up it would say more than there is: 0.1004 was 0.11."""
    frame = {"arm": ["old", "new"], "item": [1, 1], "score": [0.5, 0.5 + apart]}
    asked = lb.Objective("score", margin=0.2, tie=0.1, noise=("bounded", 0, 1))
    verdict = lb.judge(frame, [asked], scope="items", **BOTH)
    assert f"better than old on score by {said}." in str(verdict)
