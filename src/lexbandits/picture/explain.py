"""Why each arm left or stays, what the answer may give up, and what learning cost: one sentence each."""

from dataclasses import asdict, dataclass
from typing import Any

from lexbandits.picture import exits as fates
from lexbandits.picture.claims import Claim, claims_of
from lexbandits.picture.exits import Fate, fate_of, is_tied
from lexbandits.picture.learning import LearningCost, learning_costs
from lexbandits.picture.reasons import AT, Reason, against_limit, compared, reason_of
from lexbandits.picture.strains import Assumption, assumptions_of
from lexbandits.picture.view import NOT_MEASURED, View
from lexbandits.study.record.answers import flags_said, nobody_meets
from lexbandits.study.study import Study
from lexbandits.study.words import amount, beyond, capital, count, listed, many, percent, value


@dataclass(frozen=True)
class Story:
    """One arm: where it stands, since when, and why.

    standing: "answer", "candidate", "left", "withdrawn" or "could not be measured". `fate` says more of a
    candidate: "behind" a proven answer, "by the means", "ties" or "undecided".
    """

    arm: str
    standing: str
    fate: str
    after: int | None  # results after which it left
    reasons: tuple[Reason, ...]
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
    strains: tuple[Assumption, ...]

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
        strains=assumptions_of(view),
    )


# --- the study


def headline(view: View) -> str:
    """Who, is it certain, what is being settled."""
    answer = view.answer
    if answer.certified:
        text = f"{answer.arm} is the answer, certain with probability at least {percent(1 - answer.delta)}"
        return f"{text}, but {'; '.join(said)}." if (said := flags_said(answer)) else f"{text}."
    if view.state == "finished":
        return f"{answer.arm} is the answer, without a certificate: {why_not_certain(view)}."
    text = f"{answer.arm} is the answer so far, not certain"
    if view.settling is not None:
        name, left = view.objectives[view.settling].name, len(answer.candidates)
        text += f": {name} is being settled among {left} of {many(len(view.arms), 'arm')}"
    text = f"{text}." if view.state == "measuring" else f"{text} ({view.state})."
    for column in view.infeasible:
        text += f" {capital(nobody_meets(view.unmet(column)))}: how close they come counts instead."
    return text


def why_not_certain(view: View) -> str:
    """Why an answer on record has no certificate."""
    why = [] if view.policy.finished else [view.answer.reason]
    return "; ".join([*why, *flags_said(view.answer)]) or view.answer.reason


# --- one arm


def story_of(view: View, arm: int) -> Story:
    """Where an arm stands, and why."""
    fate, left = fate_of(view, arm), view.eliminations.get(arm)
    reasons = tuple(reason_of(view, arm, position) for position in range(len(view.columns)))
    after = left.round if left is not None else None
    told = _sentence(view, arm, fate, reasons)
    return Story(view.arms[arm], view.standing(arm), fate.kind, after, reasons, told)


def deciding(view: View, arm: int, fate: Fate) -> Reason:
    """The reason on the objective that decides, against who decides it."""
    column = view.columns[fate.position]
    if fate.kind == fates.BY_THE_MEANS and fate.rival < 0:
        return against_limit(view, arm, column)
    if fate.kind == fates.BY_THE_MEANS:
        return compared(view, arm, fate.rival, column, so="")
    return reason_of(view, arm, fate.position)


def _sentence(view: View, arm: int, fate: Fate, reasons: tuple[Reason, ...]) -> str:
    name = view.arms[arm]
    if fate.kind == fates.ANSWER:
        return _of_answer(view, arm)
    if fate.kind == fates.GONE:
        why = view.fold.ledger.withdrawn[name]
        text = f"{NOT_MEASURED if view.standing(arm) == NOT_MEASURED else 'was withdrawn'}: {why}"
        return f"{name} {text} ({many(view.measured[arm], 'result')})."
    if fate.kind == fates.LEFT:
        after = many(view.eliminations[arm].round, "result")
        return f"{name} left after {after}: {reasons[fate.position].sentence}{_later(view, arm, fate)}"
    if view.state != "finished":
        now = 0 if view.settling is None else view.columns.index(view.settling)
        may = "may still win" if view.state in ("measuring", "paused") else "is not ruled out"
        return f"{name} {may}: {reasons[now].sentence}"
    return f"{name} {_at_the_end(view, arm, fate)}"


def _of_answer(view: View, arm: int) -> str:
    name, counted = view.arms[arm], view.counted(arm)
    sure = "is the answer so far, not certain"
    if view.state == "finished":
        sure = "is the answer" if view.answer.certified else "is the answer, without a certificate"
    if not counted:
        waits = view.measured[arm]
        tail = f" ({many(waits, 'result')} told)" if waits else ""
        return f"{name} {sure}: nothing of it counts yet{tail}."
    parts = []
    for column in view.columns:
        objective, mean, of = view.objectives[column], view.mean(arm, column), view.counts[arm, column]
        shown = value(objective, mean, unit=True) if of else "not measured"
        fewer = f" (over {count(of)})" if 0 < of < counted else ""
        parts.append(f"{objective.name} {shown}{fewer}")
    return f"{name} {sure}: {', '.join(parts)}, over {many(counted, 'result')}."


def _at_the_end(view: View, arm: int, fate: Fate) -> str:
    """Of a candidate that is not the answer of a study that has ended."""
    answer = view.answer.arm
    if fate.kind == fates.BEHIND:
        return f"is behind the answer: {deciding(view, arm, fate).sentence}{_later(view, arm, fate)}"
    if view.policy.contradiction:
        return f"is not told apart from {answer}: what was measured refutes every arm."
    if not view.is_proven:
        if fate.kind == fates.BY_THE_MEANS:
            return f"is not ruled out, but behind by the means: {deciding(view, arm, fate).sentence}"
        return f"is not ruled out{_tie_broken(view, arm, fate)}."
    if is_tied(view, arm):
        return f"ties with {answer} on every objective{_tie_broken(view, arm, fate)}."
    if fate.kind == fates.BY_THE_MEANS:
        text = f"is behind the answer by the means: {deciding(view, arm, fate).sentence}"
    else:
        text = f"is not told apart from {answer}{_tie_broken(view, arm, fate)}."
    of = sum(map(view.is_target, view.columns))
    limits = f"keeps to the limit{'s' if of > 1 else ''} and " if of else ""
    other = "no other" if limits else "no"
    sure = f"{answer} {limits}is worse than {view.arms[arm]} on {other} objective"
    return f"{text} {capital(AT)} {sure} by more than tolerance + resolution."


def _tie_broken(view: View, arm: int, fate: Fate) -> str:
    """Why the answer and not an arm that nothing certain tells from it."""
    if fate.kind == fates.UNDECIDED:
        return ""
    column, answer = view.columns[fate.position], view.answer.arm
    objective = view.objectives[column]
    if fate.rival < 0:
        mean, limit = value(objective, view.mean(arm, column)), amount(objective, objective.target or 0.0)
        return f"; in the mean it has {objective.name} of {mean}, and the limit is {limit}, which decides"
    lead = view.lead(fate.rival, arm, column)
    if lead.results and lead.mean > 0:
        by = beyond(objective, lead.mean, 0.0, rounded="down", unit=True)
        return f"; in the mean {view.arms[fate.rival]} is better on {objective.name} by {by}, which decides"
    if lead.results and lead.mean == 0 and view.leader < arm:
        return f"; their means on {objective.name} are equal, and {answer} is listed first"
    return f"; the means on {objective.name} of all arms left decide"


def _later(view: View, arm: int, fate: Fate) -> str:
    """What the arm is better at, if that comes later in the order."""
    better = []
    for column in view.columns[fate.position + 1 :]:
        lead = view.lead(arm, view.leader, column)
        objective = view.objectives[column]
        if lead.results >= 5 and lead.low > objective.tolerance_in_unit:
            better.append(f"{objective.name} ({value(objective, view.mean(arm, column), unit=True)})")
    if not better:
        return ""
    come = "comes" if len(better) == 1 else "come"
    return f" It is better than {view.answer.arm} on {listed(better)}, which {come} later in the order."
