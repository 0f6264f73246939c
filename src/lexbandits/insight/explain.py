"""Why each arm left or stays, what the answer may give up, and what learning cost: one sentence each."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from lexbandits.insight.learning import LearningCost, learning_costs
from lexbandits.insight.strains import Strain, strains_of
from lexbandits.insight.view import NOT_MEASURED, Difference, View
from lexbandits.insight.words import amount, count, listed, percent, value
from lexbandits.study.study import Study

AT = "at the study's confidence"


@dataclass(frozen=True)
class Reason:
    """What is known of one arm on one objective, against `rival`.

    `difference` is how much worse the arm is, in the objective's unit; the truth lies in [low, high].
    Against a limit they are the arm's own mean and its bounds. verdict: "worse", "beyond the limit",
    "within the limit", "ties", "better", "open", "no longer counts", "not measured".
    """

    arm: str
    objective: str
    verdict: str
    rival: str | None
    difference: float | None
    low: float | None
    high: float | None
    tolerance: float
    resolution: float
    results: int
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Story:
    """One arm: where it stands, since when, and why."""

    arm: str
    standing: str
    after: int | None  # results after which it left
    reasons: tuple[Reason, ...]
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Claim:
    """The most that the answer may give up on one objective, in its unit; None where nothing is claimed."""

    objective: str
    worst: float | None
    sentence: str

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Explanation:
    """Everything that can be said of a study in sentences; printable."""

    study: str
    sentence: str
    arms: tuple[Story, ...]
    claims: tuple[Claim, ...]
    costs: tuple[LearningCost, ...]
    strains: tuple[Strain, ...]

    def __getitem__(self, arm: str) -> Story:
        """The story of one arm."""
        for story in self.arms:
            if story.arm == arm:
                return story
        raise KeyError(arm)

    def __str__(self) -> str:
        strained = [s for s in self.strains if s.level in ("strained", "slight")]
        blocks = [
            ("", [self.sentence]),
            ("Arms", [story.sentence for story in self.arms]),
            ("What the answer may give up", [claim.sentence for claim in self.claims]),
            ("What learning cost", [cost.sentence for cost in self.costs]),
            ("Strained", [f"{s.sentence} ({s.level})" for s in strained]),
        ]
        return "\n\n".join("\n".join([title, *lines] if title else lines) for title, lines in blocks if lines)

    def as_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return asdict(self)


def explain(study: Study, arm: str | None = None) -> Explanation | Story:
    """The explanation of a study, or the story of one of its arms."""
    view = View.of(study)
    if arm is not None:
        return story_of(view, view.index(arm))
    return explanation_of(view)


def explanation_of(view: View) -> Explanation:
    """All of it."""
    return Explanation(
        study=view.name,
        sentence=headline(view),
        arms=tuple(story_of(view, arm) for arm in view.by_standing),
        claims=claims_of(view),
        costs=learning_costs(view),
        strains=strains_of(view),
    )


def headline(view: View) -> str:
    """Who, is it certain, what is being settled."""
    answer = view.answer
    if answer.certified:
        return f"{answer.arm} is the answer, certain with probability at least {percent(1 - answer.delta)}."
    if view.state == "finished":
        return f"{answer.arm} is the answer, without a certificate: {answer.reason}."
    text = f"{answer.arm} is the answer so far, not certain"
    if view.settling is not None:
        name, left = view.objectives[view.settling].name, len(answer.candidates)
        text += f": {name} is being settled among {left} of {len(view.arms)} arms"
    return f"{text}." if view.state == "measuring" else f"{text} ({view.state})."


# --- one arm


def story_of(view: View, arm: int) -> Story:
    """Where an arm stands, and why."""
    standing = view.standing(arm)
    left = view.eliminations.get(arm)
    reasons = tuple(_reason(view, arm, position) for position in range(len(view.columns)))
    after = left.round if left is not None else None
    return Story(view.arms[arm], standing, after, reasons, _sentence(view, arm, standing, reasons))


def _sentence(view: View, arm: int, standing: str, reasons: tuple[Reason, ...]) -> str:
    name, results = view.arms[arm], count(view.measured[arm])
    if standing in ("withdrawn", NOT_MEASURED):
        why = view.fold.ledger.withdrawn[name]
        text = why if standing == NOT_MEASURED else f"was withdrawn: {why}"
        return f"{name} {text} ({results} results)."
    if standing == "answer":
        sure = "is the answer" if view.state == "finished" else "is the answer so far, not certain"
        return f"{name} {sure}: {_means(view, arm)}, over {results} results."
    if standing == "left":
        left = view.eliminations[arm]
        reason = reasons[view.position_left(arm)]
        return f"{name} left after {count(left.round)} results: {reason.sentence}{_later(view, arm)}"
    decisive = next((r for r in reasons if r.verdict == "worse"), None)
    if view.state == "finished" and decisive is not None:
        return f"{name} is not the answer: {decisive.sentence}"
    if view.state == "finished":
        ties = listed([r.objective for r in reasons if r.verdict in ("ties", "within the limit", "better")])
        tail = "; by the means, or as the one listed first, the answer is preferred" if ties else ""
        return f"{name} is not told apart from {view.answer.arm}{f' on {ties}' if ties else ''}{tail}."
    now = 0 if view.settling is None else view.columns.index(view.settling)
    return f"{name} may still win: {reasons[now].sentence}"


def _means(view: View, arm: int) -> str:
    parts = []
    for column in view.columns:
        objective, mean = view.objectives[column], view.mean(arm, column)
        shown = value(objective, mean, unit=True) if not math.isnan(mean) else "not measured"
        parts.append(f"{objective.name} {shown}")
    return ", ".join(parts)


def _later(view: View, arm: int) -> str:
    """What the arm is better at, if that comes later in the order."""
    better = []
    for column in view.columns[view.position_left(arm) + 1 :]:
        lead = view.lead(arm, view.leader, column)
        objective = view.objectives[column]
        if lead.results >= 5 and lead.low > objective.tolerance_in_unit:
            better.append(f"{objective.name} ({value(objective, view.mean(arm, column), unit=True)})")
    if not better:
        return ""
    return f" It is better than {view.answer.arm} on {listed(better)}, which comes later in the order."


# --- one arm on one objective


def _reason(view: View, arm: int, position: int) -> Reason:
    column = view.columns[position]
    left = view.eliminations.get(arm)
    if left is not None and view.position_left(arm) < position:
        return _past(view, arm, column)
    if view.counts[arm, column] == 0:
        objective = view.objectives[column]
        return _made(view, arm, column, "not measured", None, None, f"{objective.name} was never measured.")
    if view.is_target(column) or (left is not None and left.objective == column and left.rival < 0):
        return _against_limit(view, arm, column)
    if left is not None and left.objective == column:
        return _worse(view, arm, left.rival, column)
    if arm == view.leader:
        return _of_leader(view, arm, column)
    return _compared(view, arm, view.leader, column)


def _made(
    view: View,
    arm: int,
    column: int,
    verdict: str,
    rival: int | None,
    found: Difference | None,
    sentence: str,
) -> Reason:
    objective = view.objectives[column]
    return Reason(
        arm=view.arms[arm],
        objective=objective.name,
        verdict=verdict,
        rival=None if rival is None else view.arms[rival],
        difference=None if found is None else _plain(found.mean),
        low=None if found is None else _plain(found.low),
        high=None if found is None else _plain(found.high),
        tolerance=objective.tolerance_in_unit,
        resolution=objective.resolution_in_unit,
        results=int(view.counts[arm, column]) if found is None else found.results,
        sentence=sentence,
    )


def _plain(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _past(view: View, arm: int, column: int) -> Reason:
    objective, mean = view.objectives[column], view.mean(arm, column)
    shown = "not measured" if math.isnan(mean) else value(objective, mean, unit=True)
    return _made(
        view,
        arm,
        column,
        "no longer counts",
        None,
        None,
        f"{objective.name} {shown}, which no longer counts.",
    )


def _worse(view: View, arm: int, rival: int, column: int) -> Reason:
    """The arm is beaten."""
    objective, found = view.objectives[column], view.lead(rival, arm, column)
    by = value(objective, found.mean, unit=True)
    least = value(objective, found.low, rounded="down")
    slack = objective.tolerance_in_unit
    matter = f"and {amount(objective, slack)} does not matter" if slack else "and every difference matters"
    text = f"on {objective.name} it is worse than {view.arms[rival]} by {by}, by at least {least} {AT}"
    return _made(view, arm, column, "worse", rival, found, f"{text}, {matter}.")


def _against_limit(view: View, arm: int, column: int) -> Reason:
    objective, mean = view.objectives[column], view.mean(arm, column)
    target = objective.target
    assert target is not None
    low, high = view.target_bounds(arm, column)
    found = Difference(int(view.counts[arm, column]), mean, low, high)
    shown, limit = value(objective, mean, unit=True), amount(objective, target)
    above = objective.at_most is not None
    if view.misses(arm, column):
        bound = (
            f"at least {value(objective, low, rounded='down')}"
            if above
            else f"at most {value(objective, high, rounded='up')}"
        )
        text = f"on {objective.name} it has {shown}, {bound} {AT}, and the limit is {limit}."
        return _made(view, arm, column, "beyond the limit", None, found, text)
    bound = (
        f"at most {value(objective, high, rounded='up')}"
        if above
        else f"at least {value(objective, low, rounded='down')}"
    )
    if view.meets(arm, column):
        text = (
            f"on {objective.name} it has {shown}, {bound} {AT}: within the limit of {limit} and resolution."
        )
        return _made(view, arm, column, "within the limit", None, found, text)
    return _made(
        view,
        arm,
        column,
        "open",
        None,
        found,
        f"on {objective.name} it has {shown}, {bound}; the limit is {limit}.",
    )


def _of_leader(view: View, arm: int, column: int) -> Reason:
    objective = view.objectives[column]
    mean = value(objective, view.mean(arm, column), unit=True)
    worst = _given_up(view, column)
    if worst is None:
        return _made(
            view, arm, column, "open", None, None, f"on {objective.name} it has {mean}; nothing is claimed."
        )
    if math.isinf(worst):
        text = f"on {objective.name} it has {mean}; how much better others may be is open."
        return _made(view, arm, column, "open", None, None, text)
    most = f" by more than {value(objective, worst, unit=True, rounded='up')}" if worst else ""
    better = f"no arm that counts there is better{most}"
    return _made(view, arm, column, "ties", None, None, f"on {objective.name} it has {mean}; {better} {AT}.")


def _compared(view: View, arm: int, rival: int, column: int) -> Reason:
    """An arm that is not out here, against the leader."""
    objective, name = view.objectives[column], view.arms[rival]
    found = view.lead(rival, arm, column)
    if view.beats(rival, arm, column):
        return _worse(view, arm, rival, column)
    if not found.results:
        text = f"on {objective.name} it has no result in common with {name}."
        return _made(view, arm, column, "open", rival, found, text)
    by = value(objective, abs(found.mean), unit=True)
    how = f"on {objective.name} it is {'worse' if found.mean > 0 else 'better'} than {name} by {by}"
    if view.close(rival, arm, column):
        reach = objective.tolerance_in_unit + objective.resolution_in_unit
        text = f"{how}, certainly by less than {amount(objective, reach)}: they tie."
        return _made(view, arm, column, "ties", rival, found, text)
    if view.beats(arm, rival, column):
        least = value(objective, -found.high, rounded="down")
        return _made(view, arm, column, "better", rival, found, f"{how}, by at least {least} {AT}.")
    if math.isinf(found.low) or math.isinf(found.high):
        text = f"{how} over {count(found.results)} common results, too few for an interval."
    else:
        low, high = value(objective, found.low, rounded="down"), value(objective, found.high, rounded="up")
        text = f"{how}, somewhere between {low} and {high} {AT}, over {count(found.results)} common results."
    return _made(view, arm, column, "open", rival, found, text)


# --- what the answer may give up


def _given_up(view: View, column: int) -> float | None:
    """The most by which somebody who counts there may be better than the answer; None: nothing is claimed."""
    rows = [
        row
        for row in view.policy.certificate
        if row.objective == column and not row.verdict.startswith(("beaten", "misses"))
    ]
    if not rows:
        return None
    return max(0.0, max(-row.low for row in rows))


def claims_of(view: View) -> tuple[Claim, ...]:
    """Per objective, by priority, what the certificate says; before the end what is known so far."""
    return tuple(_claim(view, position) for position in range(len(view.columns)))


def _claim(view: View, position: int) -> Claim:
    column = view.columns[position]
    objective, name = view.objectives[column], view.answer.arm
    if view.stage(position) == "not needed":
        return Claim(
            objective.name, None, f"Nothing is claimed about {objective.name}: one arm was left before it."
        )
    if view.is_target(column):
        low, high = view.target_bounds(view.leader, column)
        bound = high if objective.at_most is not None else low
        if not math.isfinite(bound):
            return Claim(objective.name, None, f"Nothing is known about {objective.name} yet.")
        word, how = ("at most", "up") if objective.at_most is not None else ("at least", "down")
        target = amount(objective, objective.target or 0.0)
        shown = value(objective, bound, unit=True, rounded=how)
        text = f"{name} has {objective.name} of {word} {shown}; the limit is {target}."
        return Claim(objective.name, bound, text)
    worst = _given_up(view, column)
    if worst is None:
        return Claim(
            objective.name, None, f"Nothing is claimed about {objective.name}: no rival got that far."
        )
    if math.isinf(worst):
        return Claim(objective.name, None, f"Nothing is known about {objective.name} yet.")
    if worst == 0:
        return Claim(objective.name, 0.0, f"No arm that counts on {objective.name} is better than {name}.")
    reach = objective.tolerance_in_unit + objective.resolution_in_unit
    text = f"No arm that counts on {objective.name} is better than {name} by more than "
    text += value(objective, worst, unit=True, rounded="up")
    promised = "allowed are" if worst <= reach * (1 + 1e-9) else "in the end it will be at most"
    return Claim(objective.name, worst, f"{text} ({promised} {amount(objective, reach)}).")
