"""A judged table as people are shown it: the codes and fields of a verdict in sentences, made last."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lexbandits._cached import cached_property
from lexbandits.evidence.kinds import Missing, NoiseKind
from lexbandits.judging.gate import GateFinding, GateOutcome
from lexbandits.judging.verdict import Verdict, is_tied
from lexbandits.outcomes import (
    ArmOutcome,
    BaselineDecision,
    ClaimVerdict,
    DecidedBy,
    Decision,
    Flag,
    ObjectiveStage,
    Scope,
)
from lexbandits.study.number_format import (
    about,
    amount,
    between,
    beyond_limit,
    bound,
    capital,
    count,
    is_nothing,
    limit_of,
    listed,
    many,
    percent,
    value,
)
from lexbandits.study.objective import Objective, written
from lexbandits.study.states import StudyState
from lexbandits.views import gate_text
from lexbandits.views.view_parts import (
    LABELS,
    Against,
    Arm,
    ArmExplanation,
    Cell,
    Comparison,
    ObjectiveRow,
    compared_on,
    matters,
    objective_row,
)

DECIDING = (ClaimVerdict.WORSE, ClaimVerdict.BEATEN, ClaimVerdict.OPEN)
MOST_NAMED = 3  # arms that could still win, in a headline
OF_CANDIDATE = {GateFinding.BETTER: ClaimVerdict.BETTER, GateFinding.NOT_WORSE: ClaimVerdict.NOT_WORSE}
UNMET = {Flag.INFEASIBLE: "no arm meets it", Flag.NOT_CLEARLY_FEASIBLE: "no arm is inside it by the slack"}


@dataclass(frozen=True)
class VerdictView:
    """The view of a verdict, of the same parts as that of a study."""

    verdict: Verdict
    state = StudyState.FINISHED
    always: str | None = None

    @property
    def answer(self) -> Verdict:
        """It has the arm, and whether it is certified."""
        return self.verdict

    @property
    def marks(self) -> str:
        """What a dot and its whisker are."""
        if self.verdict.scope == Scope.ITEMS:
            return "mean, as measured"
        return "mean and an ordinary 95 % interval: a picture, not the guarantee"

    @property
    def note(self) -> str:
        """How to read the table."""
        if self.verdict.scope == Scope.ITEMS:
            return "About these items alone, as they were measured."
        return compared_on(self.common)

    @property
    def common(self) -> str:
        """What pairs of arms have in common."""
        if self.verdict.unit == "rows per arm":
            return "their own rows"
        return "the same items" if self.verdict.clusters is None else "the same clusters"

    @property
    def results(self) -> int:
        """Values of an arm."""
        return self.verdict.items

    @cached_property
    def unmet(self) -> frozenset[str]:
        """Limits that the answer is not shown to meet: nobody does, or nobody clearly."""
        return frozenset(name for flag in UNMET for name in self._flagged(flag))

    def _flagged(self, flag: Flag) -> list[str]:
        return list(self.verdict.details.get(flag, {}).get("objectives", ()))

    def is_limit(self, objective: str) -> bool:
        """Whether it is met or not."""
        return _objective(self.verdict, objective).limit is not None and objective not in self.unmet

    def meets(self, arm: str, objective: str) -> bool:
        """Whether it was shown that an arm is within a limit."""
        return objective not in self.unmet and any(
            (row["rival"], row["objective"], row["verdict"]) == (arm, objective, ClaimVerdict.MEETS_LIMIT)
            for row in self.verdict.certificate
        )

    def open_by(self, arm: str, objective: str) -> str:
        """Of what is open."""
        return LABELS[ArmOutcome.UNDECIDED]

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return headline(self.verdict)

    @property
    def badge(self) -> str:
        """The same in few words."""
        verdict = self.verdict
        if verdict.gate is not None:
            return gate_text.BADGES[verdict.gate.outcome]
        if verdict.scope == Scope.ITEMS and verdict.certified:
            return "As measured"
        if not verdict.certified or verdict.decision == BaselineDecision.KEEP_FOR_NOW:
            return "No certificate"
        return "Certified, with flags" if verdict.flags else "Certified"

    # --- objectives

    def _left(self, arm: str) -> int | None:
        """The position of the objective on which an arm is excluded."""
        decision = self.verdict.outcomes[arm]
        if not decision.is_out or decision.objective is None:
            return None
        return [asked.name for asked in self.verdict.objectives].index(decision.objective)

    def entered(self, position: int) -> tuple[str, ...]:
        """The arms that an objective counts for."""
        return tuple(
            arm for arm in self.verdict.means if (left := self._left(arm)) is None or left >= position
        )

    @cached_property
    def objectives(self) -> tuple[ObjectiveRow, ...]:
        """By priority."""
        return tuple(self._objective_row(k, asked) for k, asked in enumerate(self.verdict.objectives))

    def _objective_row(self, position: int, asked: Objective) -> ObjectiveRow:
        margin, tie = (self._in_unit(asked, size) for size in (asked.margin_in_unit, asked.tie_in_unit))
        entered = self.entered(position)
        return objective_row(asked, margin, tie, *self._stage(position, asked, entered), entered)

    def _in_unit(self, asked: Objective, margin: float) -> float:
        """Return a margin in the unit of an objective; of a share by the means, which proves nothing."""
        if not asked.is_relative:
            return margin
        means = {arm: seen[asked.name]["mean"] for arm, seen in self.verdict.means.items()}
        best = max if asked.sign > 0 else min
        whole = best(means.values()) if asked.is_of_best else means.get(str(asked.reference), 0.0)
        return float(margin * abs(whole))

    def _stage(self, position: int, asked: Objective, entered: tuple[str, ...]) -> tuple[ObjectiveStage, str]:
        outcomes = self.verdict.outcomes
        still = [arm for arm in outcomes if self._is_open(arm, asked.name)]
        if still:
            return ObjectiveStage.NOT_SETTLED, f"Undecided: {many(len(still), 'arm')}"
        if any(self._is_open(arm, o.name) for arm in outcomes for o in self.verdict.objectives[:position]):
            return ObjectiveStage.NOT_REACHED, "Waits for the objective before it"
        gone = sum(self._left(arm) == position for arm in entered)
        words = [word for flag, word in UNMET.items() if asked.name in self._flagged(flag)]
        words += [f"{gone} excluded"] * bool(gone)
        if len(entered) == 1 and len(outcomes) > 1 and asked.limit is None:
            return ObjectiveStage.NOT_NEEDED, "Not needed: one arm left"
        return ObjectiveStage.ENOUGH, capital(", ".join(words)) or "Enough for the answer"

    def _is_open(self, arm: str, objective: str) -> bool:
        """Whether the answer was not proven against an arm, or a limit, there."""
        return any(
            (row["rival"], row["objective"], row["verdict"]) == (arm, objective, ClaimVerdict.OPEN)
            for row in self.verdict.certificate
        )

    # --- arms

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The answer first; those that are out last, the best of them first."""
        outcomes, objectives = self.verdict.outcomes, self.verdict.objectives

        def key(arm: str) -> tuple[bool, bool, bool, bool, int, float]:
            by, is_open, left = outcomes[arm].by, outcomes[arm].is_open, self._left(arm)
            place = len(objectives) if left is None else left
            asked = objectives[min(place, len(objectives) - 1)]
            mean = 0.0 if left is None else asked.sign * self.verdict.means[arm][asked.name]["mean"]
            order = arm != self.verdict.arm, by == DecidedBy.ELIMINATION, by == DecidedBy.PROOF, is_open
            return *order, -place, -mean

        return tuple(self._arm(name, rank) for rank, name in enumerate(sorted(outcomes, key=key)))

    def _leads(self, arm: str) -> bool:
        """Whether an arm is the answer, or the best guess, and nothing speaks against it."""
        decision = self.verdict.outcomes[arm]
        return arm == self.verdict.arm and decision.by is None and not decision.is_open

    def _arm(self, name: str, rank: int) -> Arm:
        seen = self.verdict.means[name]
        results = max(cell["results"] for cell in seen.values())
        return Arm(
            name=name,
            fields={},
            leads=self._leads(name),
            label=self._label(name),
            decision=self.verdict.outcomes[name],
            rank=rank,
            results=results,
            counted=results,
            open=0,
            failed=0,
            expired=0,
            late=0,
            withdrawn=None,
            objectives={
                asked.name: self._cell(name, position, asked)
                for position, asked in enumerate(self.verdict.objectives)
            },
        )

    def _label(self, arm: str) -> str:
        """Return where an arm stands, in few words."""
        if self.verdict.gate is not None:
            return "candidate" if arm == self.verdict.gate.candidate else "baseline"
        return LABELS[self.verdict.outcomes[arm].outcome]

    def _cell(self, arm: str, position: int, asked: Objective) -> Cell:
        seen = self.verdict.means[arm][asked.name]
        mean, ends = seen["mean"], (seen["low"], seen["high"])
        left = self._left(arm)
        counts = left is None or left >= position
        decides = self.verdict.outcomes[arm].objective == asked.name
        shown_range = between(asked, *ends) if counts and None not in ends else ""
        return Cell(
            results=seen["results"],
            mean=mean,
            low=ends[0],
            high=ends[1],
            shown=value(asked, mean),
            range=shown_range,
            counts=counts,
            why=capital(why(self.verdict, arm)) if decides else "",
            meets=self._meets(arm, asked),
        )

    def _meets(self, arm: str, asked: Objective) -> bool | None:
        decision = self.verdict.outcomes[arm]
        if decision.limit == ClaimVerdict.VIOLATES_LIMIT and decision.objective == asked.name:
            return False
        return True if self.meets(arm, asked.name) else None

    @cached_property
    def explanations(self) -> tuple[ArmExplanation, ...]:
        """Each arm in a sentence."""
        return tuple(
            ArmExplanation(arm.name, arm.leads, arm.decision, (), self._sentence(arm)) for arm in self.arms
        )

    def _sentence(self, arm: Arm) -> str:
        """Return one sentence about an arm."""
        verdict, name, decision = self.verdict, arm.name, arm.decision
        if verdict.gate is not None:
            return gate_text.explanation(verdict, verdict.gate, name)
        if arm.leads:
            seen = verdict.means[name]
            shown = [f"{o.name} {value(o, seen[o.name]['mean'], unit=True)}" for o in verdict.objectives]
            is_kept = verdict.decision == BaselineDecision.KEEP_FOR_NOW
            stands = "is kept for now" if is_kept else "is the candidate" if verdict.candidate else "is ahead"
            return f"{name} {'wins' if verdict.certified else stands}: {listed(shown)}."
        if _is_no_better(decision):
            return f"{name} is {_no_better(decision)}."
        asked = _objective(verdict, decision.objective or "")
        _, _, rest = why(verdict, name).partition(": ")
        if decision.by is not None:
            tail = matters(asked) if asked.limit is None else f"the limit is {limit_of(asked)}"
            return f"{name} is {LABELS[decision.outcome]} on {asked.name}: {rest} ({tail})."
        return f"{name} is {LABELS[decision.outcome]} on {asked.name}: it {rest}."

    @cached_property
    def comparisons(self) -> tuple[Comparison, ...]:
        """Of each objective that more than one arm reached: against the answer. Takes a while."""
        found = []
        for position, asked in enumerate(self.verdict.objectives):
            rivals = [arm.name for arm in self.arms if arm.name in self.entered(position)]
            rivals = [name for name in rivals if name != self.verdict.arm]
            rows = tuple(
                row
                for name in rivals
                if not self.is_limit(asked.name)
                if (row := self._against(name, asked)) is not None
            )
            if rows:
                decided = any(row.verdict in DECIDING for row in rows)
                found.append(Comparison(asked.name, self.verdict.arm, decided, rows))
        return tuple(found)

    def _against(self, arm: str, asked: Objective) -> Against | None:
        found = self.verdict.difference(asked.name, arm, self.verdict.arm)
        decision = self.verdict.outcomes[arm]
        if not found:
            return None
        gate, verdict, by, low, high = self.verdict.gate, ClaimVerdict.NOT_BETTER, None, None, None
        margin, tie = (self._in_unit(asked, size) for size in (asked.margin_in_unit, asked.tie_in_unit))
        if decision.objective == asked.name and decision.by is not None:
            is_third = decision.by == DecidedBy.ELIMINATION and decision.rival != self.verdict.arm
            by = decision.rival if is_third else None
            verdict = ClaimVerdict.BEATEN if is_third else ClaimVerdict.WORSE
            if not is_third and asked.limit is None:
                high = -max(tie, 0.0 if asked.is_relative else decision.bound or 0.0) + 0.0
        elif decision.objective == asked.name:
            verdict = ClaimVerdict.OPEN
        elif gate is not None and arm == gate.candidate and gate.findings[asked.name] in OF_CANDIDATE:
            verdict = OF_CANDIDATE[gate.findings[asked.name]]
            low = tie if verdict is ClaimVerdict.BETTER else -margin
        elif is_tied(self.verdict, asked.name, arm, self.verdict.arm):
            verdict, low, high = ClaimVerdict.TIED, -margin, margin
        elif self._is_open(arm, asked.name):
            verdict = ClaimVerdict.OPEN
        elif self.verdict.certified:
            high = margin
        shown = f"{'+' if found['mean'] > 0 else ''}{value(asked, found['mean'])}"
        return Against(
            arm=arm,
            results=found["results"],
            mean=found["mean"],
            low=found["low"],
            high=found["high"],
            shown=shown,
            verdict=verdict,
            by=by,
            proven_low=low,
            proven_high=high,
        )

    # --- what is claimed

    @cached_property
    def claims(self) -> tuple[str, ...]:
        """What the answer may give up, by the certificate."""
        verdict = self.verdict
        if verdict.gate is not None:
            return gate_text.guarantee(verdict, verdict.gate)
        has_limit = any(asked.limit is not None for asked in verdict.objectives)
        if (
            not verdict.certified
            or verdict.scope == Scope.ITEMS
            or (len(verdict.means) == 1 and not has_limit)
        ):
            return ()
        said: list[str] = []
        met: list[str] = []
        before: list[str] = []
        for asked in verdict.objectives:
            rows = [row for row in verdict.certificate if row["objective"] == asked.name]
            among = f" of the arms tied on {listed(before)}" if before else ""
            before.append(asked.name)
            if asked.limit is not None:
                met += [] if asked.name in self.unmet else [f"{asked.name} is {limit_of(asked)}"]
            elif any(row["verdict"] == ClaimVerdict.NOT_WORSE for row in rows):
                said.append(f"at most {_short(asked)} the best on {asked.name}{among}")
            else:
                said.append(f"the best on {asked.name}{among}")
        unmet = [
            closest(_objective(verdict, name), verdict.arm, flag)
            for flag in UNMET
            for name in self._flagged(flag)
        ]
        within = [f"{verdict.arm}: {listed(met)}, as required."] if met else []
        lines = [*([f"{verdict.arm} is {', and '.join(said)}."] if said else []), *within, *unmet]
        sure = percent(1 - verdict.delta)
        two = f"Which arms are tied or excluded is a separate claim, also at {sure} confidence."
        return (*([f"Guarantee: {lines[0]}", *lines[1:]] if lines else []), two)

    def word(self, arm: str, objective: str) -> str:
        """What an arm comes to on an objective, for a line of text; empty where nothing is said."""
        gate = self.verdict.gate
        if gate is not None:
            return gate_text.found_on(self.verdict, gate, objective) if arm == gate.candidate else ""
        position = [asked.name for asked in self.verdict.objectives].index(objective)
        cell = next(found for found in self.arms if found.name == arm).objectives[objective]
        decision, is_last = self.verdict.outcomes[arm], position == len(self.verdict.objectives) - 1
        if decision.is_open and decision.objective == objective:
            return LABELS[decision.outcome]
        if cell.why or not cell.counts:
            text = cell.why and f"{cell.why[0].lower()}{cell.why[1:]}"
            return text.replace(f" than {self.verdict.arm} by", " by")
        if self.is_limit(objective) and self.meets(arm, objective):
            return "within the limit"
        if decision.outcome == ArmOutcome.WINNER:
            return self._word_of_winner(arm, objective)
        if is_last:
            return "" if arm == self.verdict.arm or decision.is_open else LABELS[decision.outcome]
        if not self.verdict.certified or arm == self.verdict.arm:
            return ""
        is_close = is_tied(self.verdict, objective, arm, self.verdict.arm)
        return LABELS[ArmOutcome.TIED] if is_close else "not excluded"

    def _word_of_winner(self, arm: str, objective: str) -> str:
        """The winner has the best mean of the arms that count, or is within the margin of it."""
        row = next(row for row in self.objectives if row.name == objective)
        sign = _objective(self.verdict, objective).sign
        seen = {each: sign * self.verdict.means[each][objective]["mean"] for each in row.entered}
        is_best, limited = seen[arm] >= max(seen.values()), row.limit is not None  # of an unmet limit
        if limited:
            return "closest to the limit" if is_best else "within the slack of the closest"
        return "best" if is_best else "within the margin of the best"


# --- sentences


def headline(verdict: Verdict) -> str:
    """The answer in one sentence."""
    arm, sure = verdict.arm, percent(1 - verdict.delta)
    if verdict.gate is not None:
        return gate_text.headline(verdict, verdict.gate, _but(verdict))
    if verdict.decision == BaselineDecision.KEEP_FOR_NOW:
        return f"Keep {arm} for now: nothing is certified better by more than the margin."
    if verdict.decision == BaselineDecision.KEEP:
        return f"Keep {arm}: certified as good a choice as any, at {sure} confidence{_but(verdict)}."
    if verdict.decision == BaselineDecision.SWITCH:
        return f"Switch to {arm}: {_why_switch(verdict)}{_but(verdict)}."
    if len(verdict.means) == 1 and verdict.certified:
        return f"{arm} is the only arm{_but(verdict)}."
    if verdict.certified and verdict.scope == Scope.ITEMS:
        chance = "" if verdict.details else " No sampling error is involved."
        return f"{arm} wins on these {many(verdict.items, 'item')}, as measured{_but(verdict)}.{chance}"
    if verdict.certified:
        return f"{arm} wins: certified at {sure} confidence{_but(verdict)}."
    if verdict.candidate:
        return f"No certificate: {arm} is not shown to be acceptable{_but(verdict)}."
    rivals = [name for name, decision in verdict.outcomes.items() if decision.is_open and name != arm]
    if not rivals or len(rivals) > MOST_NAMED or verdict.flags:
        return f"No certificate: {arm} is ahead{_but(verdict)}."
    return f"Not decided yet: {arm} is ahead, {listed(rivals)} could still win."


def _but(verdict: Verdict) -> str:
    said = [SAID[flag](verdict.details[flag]) for flag in verdict.flags if flag in SAID]
    return f", but {'; '.join(said)}" if said else ""


SAID: dict[Flag, Callable[[Mapping[str, Any]], str]] = {
    Flag.ASYMPTOTIC: lambda f: f"what is said of {listed(f['objectives'])} is approximate",
    Flag.SKEWED: lambda f: (
        f"values of {listed(f['objectives'])} are too skewed for so few items: give cap= and bounded noise"
    ),
    Flag.REPEATED_VALUES: lambda f: (
        f"one value of {listed(f['objectives'])} is repeated too often for this kind of noise: give bounds"
    ),
    Flag.COPIED_VALUES: lambda f: (
        f"{listed(f['objectives'])} of {listed(f['arms'])} seems to be one measurement copied to many rows: "
        "say cluster=, the column of what was measured at once, "
        'or noise="exact" if values are known without error'
    ),
    Flag.CLUSTER_SIZE: lambda _: "the largest possible size of a cluster is not given (max_cluster=)",
    Flag.FEW_CLUSTERS: lambda f: f"there are only {f['clusters']} clusters",
    Flag.FEW_FOR_QUANTILE: lambda f: (
        f"the quantile of {listed(f['objectives'])} needs at least {count(f['needed'])} items"
    ),
    Flag.DROPPED_MISSING: lambda f: f"{many(f['cells'], 'missing result')} were left out",
    Flag.INFEASIBLE: lambda f: f"no arm meets the limit on {listed(f['objectives'])}",
    Flag.NOT_CLEARLY_FEASIBLE: lambda f: (
        f"no arm is inside the limit on {listed(f['objectives'])} by the slack"
    ),
}


def _why_switch(verdict: Verdict) -> str:
    """The last row says on what it is better; on what comes before it is not worse."""
    row, names = verdict.certificate[-1], [objective.name for objective in verdict.objectives]
    before = names[: names.index(row["objective"])]
    objective = _objective(verdict, row["objective"])
    if objective.limit is not None:
        decision = verdict.outcomes[row["rival"]]
        is_shown = decision.outcome == ArmOutcome.OUTSIDE_LIMIT and decision.objective == objective.name
        better = f"{row['rival']} is {_beyond(objective, verdict.arm)}"
        better = f"{row['rival']} violates the limit" if is_shown else better
        better += f" on {objective.name}"
    else:
        least = amount(objective, objective.tie_in_unit)
        better = f"it is better than {row['rival']} on {row['objective']} by more than {least}"
    return f"{better} and not worse on {listed(before)}" if before else better


def context(verdict: Verdict) -> str:
    """What was judged."""
    units = many(verdict.items, "item")
    if verdict.unit == "rows per arm":
        counts = [max(cell["results"] for cell in cells.values()) for cells in verdict.means.values()]
        units = f"{' to '.join(f'{end:,}' for end in sorted({min(counts), max(counts)}))} rows per arm"
    if verdict.clusters is not None:
        units += f" in {many(verdict.clusters, 'cluster')}"
    looked = ", judged as it grows" if verdict.sequential else ""
    return f"{many(len(verdict.means), 'arm')}, {units}{looked}"


def why(verdict: Verdict, arm: str) -> str:
    """What decides on an arm, on the objective that does."""
    decision = verdict.outcomes[arm]
    if verdict.gate is not None:
        return gate_text.found_on(verdict, verdict.gate, decision.objective or "")
    rival, asked = decision.rival, _objective(verdict, decision.objective or "")
    seen = value(asked, verdict.means[arm][asked.name]["mean"], unit=True)
    word = LABELS[decision.outcome]
    if rival is None:
        return f"{word}: may miss the limit, {limit_of(asked)}, seen {seen}"
    if asked.limit is not None and decision.by is None:
        less = f"may be closer to the limit than {rival} by more than {_margin(asked)}, or inside it"
        return f"{word}: {less}, seen {seen}"
    if decision.by is None:
        return f"{word}: {_seen(asked, decision, rival)}"
    if decision.limit is not None:
        is_shown = decision.limit == ClaimVerdict.VIOLATES_LIMIT
        beyond = f"certified {beyond_limit(asked)}" if is_shown else _beyond(asked, rival)
        return f"{word}: {beyond}, seen {seen}"
    if verdict.scope == Scope.ITEMS and not verdict.details:
        return f"{word}: worse than {rival} by {value(asked, abs(decision.difference or 0.0), unit=True)}"
    return f"{word}: worse than {rival} by {_least(asked, decision)}{_on_common(verdict, asked, arm, rival)}"


def _on_common(verdict: Verdict, asked: Objective, arm: str, rival: str) -> str:
    """The difference on common items, where that of the two means, each over its own items, is another."""
    found, means = verdict.difference(asked.name, arm, rival), (verdict.means[arm], verdict.means[rival])
    mine, yours = (mean[asked.name]["mean"] for mean in means)
    if not found or is_nothing(asked, asked.sign * (mine - yours) - found["mean"]):
        return ""
    return f" ({value(asked, abs(found['mean']))} on {many(found['results'], 'common item')})"


def _margin(asked: Objective) -> str:
    return amount(asked, asked.margin_in_unit if asked.limit is None else asked.slack_in_unit)


def _short(asked: Objective) -> str:
    most = _margin(asked).removesuffix(" of the best")
    return f"{most} {_worse(asked)}"


def _worse(asked: Objective) -> str:
    return "below" if asked.sign > 0 else "above"


def _beyond(asked: Objective, rival: str) -> str:
    """Of an arm that a limit excludes, though it may meet it."""
    inner = amount(asked, asked.inner_limit or 0.0)
    return f"{_worse(asked)} the inner line {inner}, and {_worse(asked)} {rival} on it"


def closest(asked: Objective, arm: str, flag: Flag) -> str:
    """What is known of a limit that an answer is not shown to meet."""
    slack, by = _margin(asked), "" if asked.is_exact else f" by the slack of {_margin(asked)}"
    nobody = f"No arm {'meets' if flag == Flag.INFEASIBLE else 'is inside'} the limit on {asked.name}"
    near = (
        f"{arm} is at most {slack} short of the closest" if asked.slack_in_unit else f"{arm} is the closest"
    )
    if flag == Flag.INFEASIBLE:
        return f"{nobody}; {near}."
    return f"{nobody}{by}; {near}. That it meets the limit is not shown."


def _least(asked: Objective, decision: Decision) -> str:
    """By how much a rival was proven to be better."""
    least, tie = decision.bound or 0.0, asked.tie_in_unit
    if least <= tie:
        return f"more than {amount(asked, tie)}"
    return f"at least {bound(asked, least, 'down', beyond=tie, unit=True)}"


def _seen(asked: Objective, decision: Decision, rival: str) -> str:
    """How much better an undecided arm seems than its rival; the interval is a picture."""
    margin = _margin(asked)
    if decision.difference is None:
        return f"may be better than {rival} by more than {margin}"
    numbers = decision.difference, decision.low, decision.high
    better = [None if number is None else -asked.sign * number for number in numbers]
    mean, ends = better[0] or 0.0, sorted(end for end in better[1:] if end is not None)
    claim = f"may be better than {rival} by more than {margin}"
    if not asked.is_relative and len(ends) == 2 and ends[0] > asked.margin_in_unit:
        claim = f"seems better than {rival} by more than {margin}, not certified"
    elif len(ends) == 2 and ends[1] < 0:
        claim = f"seems worse than {rival}, not certified"
    text = f"{claim}: seen {_apart(asked, mean, value(asked, abs(mean)))}"
    if len(ends) < 2:
        return text
    sides = [
        _apart(asked, end, bound(asked, abs(end), "up" if out else "down"))
        for end, out in ((ends[0], ends[0] < 0), (ends[1], ends[1] > 0))
    ]
    return f"{text}, 95 % interval {sides[0]} to {sides[1]}"


def _apart(asked: Objective, better: float, size: str) -> str:
    unit = f" {asked.unit_of_mean}" if asked.unit_of_mean else ""
    if not asked.is_relative and is_nothing(asked, better):
        return "equal"
    return f"{size}{unit} {'better' if better > 0 else 'worse'}"


def _no_better(decision: Decision) -> str:
    """The outcome of an arm that nothing tells from the answer, with what is shown."""
    if decision.outcome == ArmOutcome.TIED:
        return f"{LABELS[decision.outcome]}: shown to be as good a choice as {decision.rival}"
    return f"{LABELS[decision.outcome]}: not better than {decision.rival} by more than the margin"


def _is_no_better(decision: Decision) -> bool:
    """Return whether an arm is not better than the answer on any objective, by more than the margin."""
    return decision.by is None and decision.objective is None and decision.rival is not None


def outlook(verdict: Verdict) -> str:
    """What would settle it."""
    if verdict.certified or verdict.scope == Scope.ITEMS or verdict.sequential:
        return ""
    if verdict.gate is not None and verdict.gate.outcome is not GateOutcome.NOT_SHOWN:
        return ""
    unit, (low, high) = verdict.unit, verdict.missing_range or (None, None)
    if verdict.missing_items is None:
        return _no_number(verdict, low)
    new, number = unit.replace("rows", "new rows") if " " in unit else f"new {unit}", verdict.missing_items
    ends = [about(end) for end in (low, high) if end]
    between = f" ({' to '.join(ends)} by what is seen)" if len(set(ends)) > 1 else ""
    if high is None and ends:
        between = f" (at least {ends[0]} by what is seen)"
    if verdict.missing_reason is not None:
        between += f", but never give a certificate: {_lasts(verdict)}"
    own = "Judge them alone"
    if verdict.clusters is None and not any(asked.quantile for asked in verdict.objectives):
        own += ", or measure them as a study (--follow-up, follow_up())"
    return (
        f"About {about(number, up=True)} {new} should settle it{between}. {own}. "
        "Adding rows and judging again counts as a second look."
    )


def _no_number(verdict: Verdict, least: int | None) -> str:
    """Why no number of items is told."""
    reason, unit = verdict.missing_reason, verdict.unit
    if reason == "edge" and least:
        return (
            f"More {unit} may not settle it: it would take at least about {about(least)} new ones, "
            "and differences may lie on the edge of what matters."
        )
    if reason == "edge" and verdict.gate is not None:
        return f"By what is seen no number of {unit} would settle it."
    if reason == "edge":
        return f"By what is seen no number of {unit} would do: differences lie on the edge of what matters."
    if reason == Flag.COPIED_VALUES:
        return "More rows of the same measurements would not do."
    if reason != "beyond":
        return f"More {unit} would not give a certificate: {_lasts(verdict)}."
    if verdict.baseline is not None:
        return f"By what is seen no number of {unit} would prove a switch, or that {verdict.arm} may be kept."
    return f"By what is seen no number of {unit} would certify {verdict.arm}{_since(verdict)}."


def _since(verdict: Verdict) -> str:
    """The first claim that the means contradict."""
    for row in verdict.certificate:
        asked = _objective(verdict, row["objective"])
        beyond = asked.sign * (row["limit"] - row["difference"])
        if row["verdict"] != ClaimVerdict.OPEN or beyond <= 0 or asked.is_relative:
            continue
        if row["arm"] is None:
            seen = value(asked, row["difference"], unit=True)
            return f": its {asked.name} is {seen}, not {limit_of(asked)}"
        seen = value(asked, abs(row["difference"]), unit=True)
        return f": {row['rival']} is better on {asked.name} by {seen}, more than {_margin(asked)}"
    return ""


def _lasts(verdict: Verdict) -> str:
    """What a flag that no number of items lifts asks for."""
    if verdict.missing_reason == Flag.CLUSTER_SIZE:
        return "say how many items a cluster can have (max_cluster=)"
    if verdict.missing_reason == Flag.REPEATED_VALUES:
        return "values that repeat themselves are of another kind, say which, such as bounded"
    if any(asked.kind.traits.approximate for asked in verdict.objectives):
        return "finite_variance is an approximation, say bounds, or cap="
    return "clusters or repeats of unequal size make it an approximation"


def assumed(verdict: Verdict) -> str:
    """What the verdict rests on besides the table."""
    if verdict.scope == Scope.ITEMS:
        said = ["nothing, since it is about these items as they were measured"]
    else:
        unit = verdict.unit.split()[0] if verdict.clusters is None else "clusters"
        said = [f"{unit} are a random sample of those to come"]
        if not verdict.sequential:
            said.append("the sample size was fixed before anyone saw results")
        said += [f"{objective.name} {kind}" for objective in verdict.objectives if (kind := _kind(objective))]
        if Flag.DROPPED_MISSING in verdict.flags:
            said.append("whether a result is missing does not depend on its value")
    agreed = [objective.name for objective in verdict.objectives if objective.if_missing]
    if agreed or verdict.missing == Missing.WORST:
        of = f" of {listed(agreed)}" if verdict.missing != Missing.WORST else ""
        said.append(f"missing results{of} count as the worst they could have been")
    return f"Assumes: {'; '.join(said)}."


def _kind(objective: Objective) -> str:
    if objective.quantile is not None:
        return ""
    match objective.kind:
        case NoiseKind.BERNOULLI:
            return "is 0 or 1, or a mean of 0/1 values"
        case NoiseKind.EXACT:
            return "has no noise"
        case NoiseKind.BOUNDED:
            low, high = objective.bounds
            return f"is between {low:g} and {written(high, objective.unit_of_mean)}"
        case NoiseKind.FINITE_VARIANCE:
            return "has few extreme values (approximate)"
        case NoiseKind.SYMMETRIC:
            return "differs between two arms symmetrically about the mean difference"
        case NoiseKind.GAUSSIAN:
            return "is normally distributed"
        case NoiseKind.SUB_GAUSSIAN:
            return "is sub-Gaussian"


def _objective(verdict: Verdict, name: str) -> Objective:
    return next(objective for objective in verdict.objectives if objective.name == name)
