"""One study as people are shown it: facts with codes and fields, in their names, units and directions.

JSON, page, reports and terminal show this and derive nothing of their own.
"""

import math
from functools import cached_property
from typing import Any

from lexbandits.picture import exits
from lexbandits.picture.claims import Claim, claims_of
from lexbandits.picture.exits import Way, way_of
from lexbandits.picture.items import ByItem
from lexbandits.picture.learning import LearningCost, learning_costs
from lexbandits.picture.reasons import AT
from lexbandits.picture.shown import Against, Arm, Cell, Comparison, Exit, Rung, Story
from lexbandits.picture.stories import headline, standing_of, story_of, why
from lexbandits.picture.strains import Assumption, assumptions_of
from lexbandits.picture.tally import tally_of
from lexbandits.picture.view import View
from lexbandits.printable import plain
from lexbandits.study.objective import Objective
from lexbandits.study.record.answers import Answer, certificate_of
from lexbandits.study.record.fold import Fold
from lexbandits.study.record.said import flags_said
from lexbandits.study.record.trials import EXPIRED, FAILED, LATE, OPEN
from lexbandits.study.study import Study
from lexbandits.study.words import amount, between, estimand, evidence, is_nothing, many, value


class Picture:
    """One state of a study. Parts are made when first asked for, by who holds the journal."""

    at = AT  # which intervals hold
    marks = "mean and interval, valid at all times"
    note = (
        "Arms are compared by their differences on the same items: an arm can be out although its interval "
        "here still touches the band. Measured are all results; means rest on those that count."
    )

    def __init__(self, view: View) -> None:
        self.view = view

    @classmethod
    def of(cls, study: Study) -> "Picture":
        """The picture of a study as it stands."""
        return cls.of_fold(study._settled(), study)

    @classmethod
    def of_fold(cls, fold: Fold, study: Study) -> "Picture":
        """The same, made once per state of the journal."""
        seq, picture = fold.memory.get("picture", (-1, None))
        if seq != fold.ledger.seq:
            picture = cls(View(fold, study.events))
            fold.memory["picture"] = fold.ledger.seq, picture
        found: Picture = picture
        return found

    @property
    def name(self) -> str:
        """The study's name."""
        return self.view.name

    @property
    def state(self) -> str:
        """measuring, finished, paused, budget spent or items spent."""
        return self.view.state

    @property
    def results(self) -> int:
        """Told in all."""
        return self.view.results

    @cached_property
    def unmet(self) -> frozenset[str]:
        """Limits that nobody meets."""
        return frozenset(self.view.objectives[column].name for column in self.view.infeasible)

    @cached_property
    def answer(self) -> Answer:
        """The answer, or the best guess."""
        return self.view.answer

    @cached_property
    def headline(self) -> str:
        """Who, is it certain, what is being settled."""
        return headline(self.view)

    @cached_property
    def said(self) -> tuple[str, ...]:
        """What must be known of the answer besides, in sentences; of an end by hand its reason first."""
        by_hand = self.view.fold.ledger.end is not None and not self.view.policy.finished
        return (*((self.answer.reason,) if by_hand else ()), *flags_said(self.answer))

    @property
    def pill(self) -> str:
        """The state in few words."""
        if self.answer.certified:
            return "Certified, with flags" if self.answer.flags else "Certified"
        return "Ended, no certificate" if self.state == "finished" else self.state.capitalize()

    # --- objectives

    @cached_property
    def objectives(self) -> tuple[Rung, ...]:
        """By priority."""
        return tuple(self._rung(position) for position in range(len(self.view.columns)))

    def _rung(self, position: int) -> Rung:
        view = self.view
        objective = view.objectives[view.columns[position]]
        bounds = [plain(end) for end in objective.bounds]
        return Rung(
            name=objective.name,
            direction=objective.direction,
            unit=objective.unit_of_mean,
            margin=0.0 if objective.is_relative else objective.margin_in_unit,  # a share has no band
            tie=0.0 if objective.is_relative else objective.tie_in_unit,
            limit=objective.limit,
            slack=objective.slack_in_unit,
            noise=objective.noise if isinstance(objective.noise, str) else list(objective.noise),
            bounds=None if None in bounds else bounds,
            state=view.stage(position),
            said=_stage_said(view, position),
            rule=_rule(objective),
            matters=_matters(objective),
            entered=tuple(view.arms[arm] for arm in view.entered(position)),
        )

    # --- arms

    @cached_property
    def ways(self) -> tuple[Way, ...]:
        """Where the way of each arm ends, by index."""
        return tuple(way_of(self.view, arm) for arm in range(len(self.view.arms)))

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """As a report lists them: the answer, candidates, those behind last, then who left last."""
        return tuple(self._arm(arm, rank) for rank, arm in enumerate(self.view.by_standing))

    @cached_property
    def _tally(self) -> list[list[int]]:
        return tally_of(self.view.fold).by_arm.tolist()

    def _arm(self, arm: int, rank: int) -> Arm:
        view, ledger = self.view, self.view.fold.ledger
        way, tally = self.ways[arm], self._tally[arm]
        words = {key: word for key, word in ledger.arms[arm].items() if key != "name"}
        return Arm(
            name=view.arms[arm],
            words=words,
            state={"answer": "answer", "candidate": "candidate", "left": "left"}.get(
                view.standing(arm), "withdrawn"
            ),
            standing=standing_of(view, arm, way),
            exit=self._exit(arm, way),
            rank=rank,
            results=view.measured[arm],
            counted=view.counted(arm),
            open=tally[OPEN],
            failed=tally[FAILED],
            expired=tally[EXPIRED],
            late=tally[LATE],
            objectives={
                view.objectives[column].name: self._cell(arm, way, position)
                for position, column in enumerate(view.columns)
            },
            withdrawn=ledger.withdrawn.get(view.arms[arm]),
        )

    def _exit(self, arm: int, way: Way) -> Exit:
        view = self.view
        if way.code in (exits.ANSWER, exits.OPEN, exits.TIES, exits.NOT_TOLD_APART, *exits.GONE):
            return Exit(way.code)
        column = view.columns[way.position]
        left = view.eliminations.get(arm)
        bound = None
        if way.code in exits.BY_LIMIT:
            low, high = view.target_bounds(arm, column)
            bound = plain(low if view.objectives[column].at_most is not None else high)
        elif way.code != exits.BY_THE_MEANS:
            objective = view.objectives[column]  # what was proven without an interval
            proven = -math.inf if objective.is_relative else objective.tie_in_unit
            bound = plain(max(view.lead(way.rival, arm, column).low, proven))
        return Exit(
            code=way.code,
            objective=view.objectives[column].name,
            rival=view.arms[way.rival] if way.rival >= 0 else None,
            bound=bound,
            after=None if left is None else int(left.round),
        )

    def behind(self, arm: Arm) -> dict[str, Any]:
        """Where the difference lies of an arm to who put it out, as measured (arm − rival)."""
        view, exit = self.view, arm.exit
        if exit.rival is None or exit.objective is None:
            return {}
        column = view.spec.column(exit.objective)
        lead = view.lead(view.index(arm.name), view.index(exit.rival), column)
        low, high = sorted(
            (view.objectives[column].sign * lead.low, view.objectives[column].sign * lead.high)
        )
        return {"low": plain(low), "high": plain(high)}

    def _cell(self, arm: int, way: Way, position: int) -> Cell:
        view, column = self.view, self.view.columns[position]
        objective, results = view.objectives[column], int(view.counts[arm, column])
        mean, (low, high) = view.mean(arm, column), view.interval(arm, column)
        counts = way.code not in exits.GONE and not (view.stops(arm) and view.position_left(arm) < position)
        return Cell(
            results=results,
            mean=plain(mean),
            low=plain(low),
            high=plain(high),
            shown=value(objective, mean),
            range=between(objective, low, high) if results and counts else "",
            counts=counts,
            why=why(view, arm, way) if position == way.position else "",
        )

    # --- what was seen

    @cached_property
    def certificate(self) -> tuple[dict[str, Any], ...]:
        """The best guess against each rival, objective by objective until one decides; `said`: how far."""
        rows = certificate_of(self.view.fold, self.view.rows)
        return tuple(
            {**row, "said": evidence(row["parts"]) if row["verdict"] == "open" else "settled"} for row in rows
        )

    def is_limit(self, objective: str) -> bool:
        """Whether it is met or not; False once nobody can meet it."""
        return self.view.is_target(self.view.spec.column(objective))

    def meets(self, arm: str, objective: str) -> bool:
        """Whether it was seen that an arm is within a limit."""
        return self.view.meets(self.view.index(arm), self.view.spec.column(objective))

    def open_by(self, arm: str, objective: str) -> str:
        """Of what is open: how much of the evidence is there."""
        key = arm, objective, "open"
        rows = [row for row in self.certificate if (row["rival"], row["objective"], row["verdict"]) == key]
        return ": ".join(["open", *(row["said"] for row in rows if row["parts"] is not None)])

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Of each objective on which pairs were compared."""
        view = self.view
        return tuple(
            self._comparison(position)
            for position, column in enumerate(view.columns)
            if not view.is_target(column)
            and not view.objectives[column].is_relative  # intervals of differences do not decide there
            and view.stage(position) in ("settled", "enough", "settling", "not settled")
            and len(view.entered(position)) > 1
            and view.counts[view.entered(position), column].min() > 0
        )

    def _comparison(self, position: int) -> Comparison:
        view, column = self.view, self.view.columns[position]
        best, entered = view.reference(position), view.entered(position)
        rows = tuple(
            self._against(arm, best, column) for arm in view.by_standing if arm in entered and arm != best
        )
        deciding = (exits.LEFT, exits.BEHIND, exits.BY_THE_MEANS, *exits.BY_LIMIT)
        told = any(self.ways[a].position == position and self.ways[a].code in deciding for a in entered)
        decided = told or view.stage(position) == "settling"
        return Comparison(view.objectives[column].name, view.arms[best], decided, rows)

    def _against(self, arm: int, best: int, column: int) -> Against:
        view, found = self.view, self.view.lead(arm, best, column)
        objective, left = view.objectives[column], view.eliminations.get(arm)
        by, verdict = None, "open"
        if left is not None and left.objective == column:
            verdict = "out"
            by = None if left.rival in (best, -1) else view.arms[left.rival]
        elif view.behind.get(arm) == column:
            verdict = "behind"
        elif view.close(arm, best, column):
            verdict = "ties"
        elif view.not_worse(best, arm, column):
            verdict = "not better"
        shown = f"{'+' if found.mean > 0 else ''}{value(objective, found.mean)}"
        ends = plain(found.mean), plain(found.low), plain(found.high)
        return Against(view.arms[arm], found.results, *ends, shown, verdict, by)

    # --- sentences

    @cached_property
    def stories(self) -> tuple[Story, ...]:
        """Each arm in a sentence, in the order of `arms`."""
        return tuple(story_of(self.view, arm) for arm in self.view.by_standing)

    def story(self, arm: str) -> Story:
        """Of one arm."""
        return story_of(self.view, self.view.index(arm))

    @cached_property
    def claims(self) -> tuple[Claim, ...]:
        """What the answer may give up, per objective."""
        return claims_of(self.view)

    @cached_property
    def costs(self) -> tuple[LearningCost, ...]:
        """What learning cost, per objective."""
        return learning_costs(self.view)

    @cached_property
    def strains(self) -> tuple[Assumption, ...]:
        """What was assumed, and what happened; takes a while."""
        return assumptions_of(self.view)

    @cached_property
    def by_item(self) -> ByItem | None:
        """What each arm gave on each item; None without items."""
        return ByItem.of(self.view)

    @cached_property
    def open(self) -> str:
        """The rival that most is missing against, in a sentence; empty when there is none."""
        return _most_open(self)


# --- the words of an objective


def _rule(objective: Objective) -> str:
    direction = "higher is better" if objective.sign > 0 else "lower is better"
    asked = ["limit"] if objective.limit is not None else [objective.unit_of_mean, direction]
    return ", ".join(filter(None, [estimand(objective), *asked]))


def _matters(objective: Objective) -> str:
    if objective.limit is not None:
        word = "at most" if objective.at_most is not None else "at least"
        return f"{word} {amount(objective, objective.limit)}"
    margin = objective.margin_in_unit
    return f"margin {amount(objective, margin)}" if margin else "every difference matters"


def _stage_said(view: View, position: int) -> str:
    """Where an objective stands."""
    stage, entered = view.stage(position), view.entered(position)
    out = [a for a in entered if a in view.eliminations and view.position_left(a) == position]
    behind = sum(view.behind.get(arm) == view.columns[position] for arm in entered)
    stay = f"{len(entered)} → {many(len(entered) - len(out), 'arm')}" if out else many(len(entered), "arm")
    nobody = "Nobody meets it" if view.columns[position] in view.infeasible else ""
    match stage:
        case "settled":
            return f"{nobody or 'Settled'}: {stay}{'' if out else ' stay'}"
        case "enough":
            words = [f"{len(out)} out"] * bool(out) + [f"{behind} behind"] * bool(behind)
            enough = f"Enough for the {'answer' if view.answer.certified else 'best guess'}"
            return f"{nobody or enough}{': ' if words else ''}{', '.join(words)}"
        case "settling" if view.state == "measuring":
            return f"{nobody or 'Being settled'}: {stay}{' so far' if out else ''}"
        case "settling" | "not settled":
            return f"{nobody or 'Not settled'}: {stay}"
        case "later":
            return "Later, among those that stay"
        case "not reached":
            return "Not reached"
    return "Not needed: one arm left"


def _most_open(picture: Picture) -> str:
    view = picture.view
    if view.settling is None:
        return ""
    objective = view.objectives[view.settling]
    rows = [
        row for row in picture.certificate if row["objective"] == objective.name and row["verdict"] == "open"
    ]
    if view.is_target(view.settling):
        names = [row["rival"] for row in rows]
        return (
            f"Open on {objective.name}: {', '.join(names[:4])}{' and more' if names[4:] else ''}."
            if names
            else ""
        )
    rows = [row for row in rows if row["difference"] is not None]
    if not rows:
        return ""
    far = {None: ""}  # of those that are as far, the closest
    row = min(rows, key=lambda row: (far.get(row["parts"], row["said"]), abs(row["difference"])))
    leader, ahead = view.arms[view.policy.recommendation], objective.sign * row["difference"] > 0
    by = value(objective, abs(row["difference"]), unit=True)
    apart = f"is {by} {'worse' if ahead else 'better'} than {leader} on {objective.name}"
    if is_nothing(objective, row["difference"]):
        apart = f"is as good as {leader} on {objective.name} in the mean"
    return f"Most open: {row['rival']} {apart}, and {_matters(objective)}: {row['said']}."
