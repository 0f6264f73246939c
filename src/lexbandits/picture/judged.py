"""A judged table as people are shown it: the codes and fields of a verdict in sentences, made last."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from lexbandits.judging.verdict import Verdict
from lexbandits.picture import exits
from lexbandits.picture.shown import Against, Arm, Cell, Comparison, Exit, Rung, Story
from lexbandits.printable import plain
from lexbandits.study.objective import Objective, written
from lexbandits.study.words import (
    about,
    amount,
    between,
    bound,
    capital,
    count,
    estimand,
    is_nothing,
    listed,
    many,
    percent,
    value,
)

CODES = {  # of a fate -> where an arm's way ends
    "answer": exits.ANSWER,
    "out": exits.LEFT,
    "behind": exits.BEHIND,
    "as good": exits.NOT_TOLD_APART,
    "open": exits.OPEN,
}
ORDER = ("answer", "as good", "open", "behind", "out")
UNMET = {"infeasible": "no arm meets it", "not_clearly_feasible": "no arm is inside it by the slack"}


@dataclass(frozen=True)
class Judged:
    """The picture of a verdict, of the same parts as that of a study."""

    verdict: Verdict
    state = "finished"

    @property
    def answer(self) -> Verdict:
        """It has the arm, and whether it is certified."""
        return self.verdict

    @property
    def at(self) -> str:
        """Which intervals hold."""
        if self.verdict.about == "items":
            return "of no width: they are as measured"
        return "at the confidence at which all of them hold"

    @property
    def marks(self) -> str:
        """What a dot and its whisker are."""
        if self.verdict.about == "items":
            return "mean, as measured"
        return "mean, and two standard errors to either side: a picture, no claim"

    @property
    def note(self) -> str:
        """How to read the table."""
        if self.verdict.about == "items":
            return "About these items alone, as they were measured."
        return (
            "Arms are compared by their differences on the same items: an arm can be out although its line "
            "here still touches the band."
        )

    @property
    def results(self) -> int:
        """Values of an arm."""
        return self.verdict.items

    @cached_property
    def unmet(self) -> frozenset[str]:
        """Limits that the answer is not shown to meet: nobody does, or nobody clearly."""
        return frozenset(name for flag in UNMET for name in self._flagged(flag))

    def _flagged(self, flag: str) -> list[str]:
        return list(self.verdict.details.get(flag, {}).get("objectives", ()))

    def is_limit(self, objective: str) -> bool:
        """Whether it is met or not."""
        return self._asked(objective).limit is not None and objective not in self.unmet

    def meets(self, arm: str, objective: str) -> bool:
        """Whether it was shown that an arm is within a limit."""
        return objective not in self.unmet and any(
            (row["rival"], row["objective"], row["verdict"]) == (arm, objective, "meets the target")
            for row in self.verdict.certificate
        )

    def open_by(self, arm: str, objective: str) -> str:
        """Of what is open."""
        return "open"

    def _asked(self, objective: str) -> Objective:
        return next(asked for asked in self.verdict.objectives if asked.name == objective)

    @property
    def headline(self) -> str:
        """The answer in one sentence."""
        return headline(self.verdict)

    @property
    def pill(self) -> str:
        """The same in few words."""
        verdict = self.verdict
        if verdict.about == "items" and verdict.certified:
            return "As measured"
        if not verdict.certified or verdict.decision == "keep for now":
            return "No certificate"
        return "Certified, with flags" if verdict.flags else "Certified"

    # --- objectives

    def _left(self, arm: str) -> int | None:
        """The position of the objective on which an arm is out or behind."""
        fate = self.verdict.fates[arm]
        if fate["code"] not in ("out", "behind") or fate["objective"] is None:
            return None
        return [asked.name for asked in self.verdict.objectives].index(fate["objective"])

    def entered(self, position: int) -> tuple[str, ...]:
        """The arms that an objective counts for."""
        return tuple(
            arm for arm in self.verdict.means if (left := self._left(arm)) is None or left >= position
        )

    @cached_property
    def objectives(self) -> tuple[Rung, ...]:
        """By priority."""
        return tuple(self._rung(k, asked) for k, asked in enumerate(self.verdict.objectives))

    def _rung(self, position: int, asked: Objective) -> Rung:
        bounds, entered = [plain(end) for end in asked.bounds], self.entered(position)
        state, said = self._stage(position, asked, entered)
        kind = question(asked)
        return Rung(
            name=asked.name,
            direction=asked.direction,
            unit=asked.unit_of_mean,
            margin=0.0 if asked.is_relative else asked.margin_in_unit,  # a share has no band
            tie=0.0 if asked.is_relative else asked.tie_in_unit,
            limit=asked.limit,
            slack=asked.slack_in_unit,
            noise=asked.noise if isinstance(asked.noise, str) else list(asked.noise),
            bounds=None if None in bounds else bounds,
            state=state,
            said=said,
            rule=f"{asked.unit_of_mean}, {kind}" if asked.unit_of_mean and asked.limit is None else kind,
            matters=matters(asked) if asked.limit is None else "",
            entered=entered,
        )

    def _stage(self, position: int, asked: Objective, entered: tuple[str, ...]) -> tuple[str, str]:
        fates = self.verdict.fates
        still = [arm for arm in fates if self._is_open(arm, asked.name)]
        if still:
            return "not settled", f"Open: {many(len(still), 'arm')}"
        ends = [fates[arm]["code"] for arm in entered if self._left(arm) == position]
        words = [f"{ends.count(code)} {code}" for code in ("out", "behind") if code in ends]
        words = [
            *(word for flag, word in UNMET.items() if asked.name in self._flagged(flag)),
            *words,
        ]
        if len(entered) == 1 and len(fates) > 1 and asked.limit is None:
            return "not needed", "Not needed: one arm left"
        return "enough", capital(", ".join(words)) or "Enough for the answer"

    def _is_open(self, arm: str, objective: str) -> bool:
        """Whether the answer was not proven against an arm, or a limit, there."""
        return any(
            (row["rival"], row["objective"], row["verdict"]) == (arm, objective, "open")
            for row in self.verdict.certificate
        )

    # --- arms

    @cached_property
    def arms(self) -> tuple[Arm, ...]:
        """The answer first, who is out last."""
        fates = self.verdict.fates
        names = sorted(fates, key=lambda arm: (arm != self.verdict.arm, ORDER.index(fates[arm]["code"])))
        return tuple(self._arm(name, rank) for rank, name in enumerate(names))

    def _arm(self, name: str, rank: int) -> Arm:
        fate, seen = self.verdict.fates[name], self.verdict.means[name]
        code = CODES[fate["code"]]
        if "limit" in fate:
            code = fate["limit"].upper()
        states = {"answer": "answer", "out": "left"}
        results = max(cell["results"] for cell in seen.values())
        return Arm(
            name=name,
            words={},
            state=states.get(fate["code"], "candidate"),
            standing=self._standing(name),
            exit=Exit(code, fate["objective"], fate["rival"]),
            rank=rank,
            results=results,
            counted=results,
            open=0,
            failed=0,
            expired=0,
            late=0,
            objectives={
                asked.name: self._cell(name, position, asked)
                for position, asked in enumerate(self.verdict.objectives)
            },
            withdrawn=None,
        )

    def _standing(self, arm: str) -> str:
        """Where an arm stands, in few words."""
        code = self.verdict.fates[arm]["code"]
        if code == "answer":
            return "the answer" if self.verdict.certified else "best guess"
        return {"as good": "no better", "behind": "behind the answer"}.get(code, str(code))

    def _cell(self, arm: str, position: int, asked: Objective) -> Cell:
        seen, fate = self.verdict.means[arm][asked.name], self.verdict.fates[arm]
        mean, ends = seen["mean"], (seen["mean"], seen["mean"])
        if self.verdict.about != "items":
            low, high = asked.bounds
            ends = max(low, mean - 2 * seen["se"]), min(high, mean + 2 * seen["se"])
        left = self._left(arm)
        counts = left is None or left >= position
        decides = fate["objective"] == asked.name and fate["code"] != "answer"
        shown_range = between(asked, *ends) if counts and self.verdict.about != "items" else ""
        return Cell(
            results=seen["results"],
            mean=mean,
            low=ends[0],
            high=ends[1],
            shown=value(asked, mean),
            range=shown_range,
            counts=counts,
            why=capital(why(self.verdict, arm)) if decides else "",
        )

    @cached_property
    def stories(self) -> tuple[Story, ...]:
        """Each arm in a sentence."""
        return tuple(
            Story(
                arm.name,
                arm.state,
                self.verdict.fates[arm.name]["code"],
                None,
                (),
                story(self.verdict, arm.name),
            )
            for arm in self.arms
        )

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
                if not asked.is_relative and not self.is_limit(asked.name)
                if (row := self._against(name, asked)) is not None
            )
            if rows:
                decided = any(row.verdict in ("out", "behind", "open") for row in rows)
                found.append(Comparison(asked.name, self.verdict.arm, decided, rows))
        return tuple(found)

    def _against(self, arm: str, asked: Objective) -> Against | None:
        found, fate = self.verdict.difference(asked.name, arm, self.verdict.arm), self.verdict.fates[arm]
        if not found:
            return None
        margin = asked.margin_in_unit if asked.limit is None else asked.slack_in_unit
        low, high = (
            found[end] if found[end] is not None else math.copysign(math.inf, sign)
            for end, sign in (("low", -1), ("high", 1))
        )
        verdict, by = "open" if self._is_open(arm, asked.name) else "not better", None
        if fate["objective"] == asked.name:
            verdict = {"as good": "not better"}.get(fate["code"], fate["code"])
            by = fate["rival"] if fate["code"] == "out" and fate["rival"] != self.verdict.arm else None
        elif low >= -margin and high <= margin:
            verdict = "ties"
        shown = f"{'+' if found['mean'] > 0 else ''}{value(asked, found['mean'])}"
        return Against(arm, found["results"], found["mean"], found["low"], found["high"], shown, verdict, by)

    # --- what is claimed

    @cached_property
    def claims(self) -> tuple[str, ...]:
        """What the answer may give up, by the certificate."""
        verdict = self.verdict
        has_limit = any(asked.limit is not None for asked in verdict.objectives)
        if not verdict.certified or verdict.about == "items" or (len(verdict.means) == 1 and not has_limit):
            return ()
        said, met = [], []
        for asked in verdict.objectives:
            rows = [row for row in verdict.certificate if row["objective"] == asked.name]
            if asked.limit is not None:
                met += [] if asked.name in self.unmet else [f"{asked.name} is {_limit(asked)}"]
            elif any(row["verdict"] in ("not worse", "close") for row in rows):
                said.append(f"is at most {_short(asked)} the best on {asked.name} (margin {_margin(asked)})")
            else:
                said.append(f"gives up nothing on {asked.name}")
        unmet = [
            closest(_objective(verdict, name), verdict.arm, flag)
            for flag in UNMET
            for name in self._flagged(flag)
        ]
        two = f"Where the arms stand is a second statement, at {percent(1 - verdict.delta)} too."
        within = [f"{verdict.arm}: {listed(met)}, as required."] if met else []
        return (*([f"{verdict.arm} {listed(said)}."] if said else []), *within, *unmet, two)

    def word(self, arm: str, objective: str) -> str:
        """What an arm comes to on an objective, for a line of text; empty where nothing is said."""
        position = [asked.name for asked in self.verdict.objectives].index(objective)
        cell = next(found for found in self.arms if found.name == arm).objectives[objective]
        fate = self.verdict.fates[arm]
        if cell.why or not cell.counts:
            return "open" if fate["code"] == "open" else cell.why and f"{cell.why[0].lower()}{cell.why[1:]}"
        if fate["code"] == "as good" and position == len(self.verdict.objectives) - 1:
            return f"no better than {fate['rival']} in what matters"
        stay = [name for name in self.entered(position) if self._left(name) != position]
        names = [asked.name for asked in self.verdict.objectives]
        settled = self.verdict.settled or names.index(self.verdict.unsettled or names[0]) > position
        if not settled or self.is_limit(objective):
            return "within the limit" if self.meets(arm, objective) else ""
        return (
            "tied for best" if len(stay) > 1 else "best of those" if len(self.entered(position)) > 1 else ""
        )


# --- sentences


def headline(verdict: Verdict) -> str:
    """The answer in one sentence."""
    arm, sure = verdict.arm, percent(1 - verdict.delta)
    if verdict.decision == "keep for now":
        return f"Keep {arm} for now: no switch is proven."
    if verdict.decision == "keep":
        return f"Keep {arm}: it is as good as any{_but(verdict)}."
    if verdict.decision == "switch":
        return f"Switch to {arm}: {_why_switch(verdict)}{_but(verdict)}."
    if len(verdict.means) == 1 and verdict.certified:
        return f"{arm} is the only arm{_but(verdict)}."
    if verdict.certified and verdict.about == "items":
        chance = "" if verdict.details else " No chance is involved."
        where = f"On these {many(verdict.items, 'item')}, as measured"
        return f"{where}, {arm} is the best choice{_but(verdict)}.{chance}"
    if verdict.certified:
        return f"{arm} is certified{_but(verdict)}: the best choice at {sure} confidence."
    guess = f"{arm} is not proven acceptable" if verdict.named else f"{arm} is the best guess"
    return f"No certificate: {guess}{_but(verdict)}."


def _but(verdict: Verdict) -> str:
    said = [SAID[flag](verdict.details[flag]) for flag in verdict.flags if flag in SAID]
    return f", but {'; '.join(said)}" if said else ""


SAID: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "large-sample": lambda f: f"what is said of {listed(f['objectives'])} is approximate",
    "skewed": lambda f: (
        f"values of {listed(f['objectives'])} are too skewed for so few: say cap= and bounded"
    ),
    "repeated values": lambda f: (
        f"one value of {listed(f['objectives'])} comes again and again: it is not Gaussian"
    ),
    "copied values": lambda f: (
        f"{listed(f['objectives'])} of {listed(f['arms'])} seems to be one measurement copied to many rows: "
        "say cluster=, the column of what was measured at once, "
        'or noise="exact" if values are known without error'
    ),
    "cluster size": lambda _: "nobody said how large a cluster can be (max_cluster=)",
    "few clusters": lambda f: f"there are only {f['clusters']} clusters",
    "few for a quantile": lambda f: (
        f"the quantile of {listed(f['objectives'])} needs at least {count(f['needed'])} items"
    ),
    "dropped missing": lambda f: f"{many(f['cells'], 'missing result')} were left out",
    "infeasible": lambda f: f"no arm meets the limit on {listed(f['objectives'])}",
    "not_clearly_feasible": lambda f: f"no arm is inside the limit on {listed(f['objectives'])} by the slack",
}


def _why_switch(verdict: Verdict) -> str:
    """The last row says on what it is better; on what comes before it is not worse."""
    row, names = verdict.certificate[-1], [objective.name for objective in verdict.objectives]
    before = names[: names.index(row["objective"])]
    objective = _objective(verdict, row["objective"])
    if objective.limit is not None:
        fate = verdict.fates[row["rival"]]
        is_shown = fate["objective"] == objective.name and fate.get("limit") == "violates_limit"
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
    if verdict.clusters is not None:
        units += f" in {many(verdict.clusters, 'cluster')}"
    looked = {"once": "looked at once", "any": "looked at any time"}[verdict.looks]
    return " · ".join(
        [units, many(len(verdict.means), "arm"), *([looked] if verdict.about != "items" else [])]
    )


def why(verdict: Verdict, arm: str) -> str:
    """What decides on an arm, on the objective that does."""
    fate = verdict.fates[arm]
    code, rival, asked = fate["code"], fate["rival"], _objective(verdict, fate["objective"])
    seen = value(asked, verdict.means[arm][asked.name]["mean"], unit=True)
    if rival is None:
        return f"open: may miss the limit, seen {seen}"
    if asked.limit is not None and code == "open":
        less = f"may be closer to the limit than {rival} by more than {_margin(asked)}, or inside it"
        return f"open: {less}, seen {seen}"
    if "limit" in fate:
        is_shown = fate["limit"] == "violates_limit"
        return f"{code}: {'violates the limit' if is_shown else _beyond(asked, rival)}, seen {seen}"
    if code == "open":
        return f"open: may be better than {rival} by more than {_margin(asked)}{_seen(asked, fate)}"
    if verdict.about == "items" and not verdict.details:
        return f"{code}: worse than {rival} by {value(asked, abs(fate['difference']), unit=True)}"
    return f"{code}: worse than {rival} by {_least(asked, fate)}"


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


def closest(asked: Objective, arm: str, flag: str) -> str:
    """What is known of a limit that an answer is not shown to meet."""
    slack, by = _margin(asked), "" if asked.noise == "exact" else f" by the slack of {_margin(asked)}"
    nobody = f"No arm {'meets' if flag == 'infeasible' else 'is inside'} the limit on {asked.name}"
    near = (
        f"{arm} is at most {slack} short of the closest" if asked.slack_in_unit else f"{arm} is the closest"
    )
    if flag == "infeasible":
        return f"{nobody}; {near}."
    return f"{nobody}{by}; {near}. That it meets the limit is not shown."


def _least(asked: Objective, fate: Mapping[str, Any]) -> str:
    """By how much a rival was proven to be better."""
    end = fate.get("low" if asked.sign > 0 else "high")
    least, tie = 0.0 if end is None else asked.sign * end, asked.tie_in_unit
    if least <= tie:
        return f"more than {amount(asked, tie)}"
    return f"at least {bound(asked, least, 'down', beyond=tie, unit=True)}"


def _seen(asked: Objective, fate: Mapping[str, Any]) -> str:
    """How much better the arm seems than its rival, and how much that may be."""
    if fate.get("difference") is None:
        return ""
    better = [None if fate[end] is None else -asked.sign * fate[end] for end in ("difference", "low", "high")]
    mean, ends = better[0] or 0.0, sorted(end for end in better[1:] if end is not None)
    text = f": seen {_apart(asked, mean, value(asked, abs(mean)))}"
    if len(ends) < 2:
        return text
    sides = [
        _apart(asked, end, bound(asked, abs(end), "up" if out else "down"))
        for end, out in ((ends[0], ends[0] < 0), (ends[1], ends[1] > 0))
    ]
    return f"{text}, between {sides[0]} and {sides[1]}"


def _apart(asked: Objective, better: float, size: str) -> str:
    unit = f" {asked.unit_of_mean}" if asked.unit_of_mean else ""
    if not asked.is_relative and is_nothing(asked, better):
        return "equal"
    return f"{size}{unit} {'better' if better > 0 else 'worse'}"


def story(verdict: Verdict, arm: str) -> str:
    """One sentence about an arm."""
    fate = verdict.fates[arm]
    code, rival = fate["code"], fate["rival"]
    if code == "answer":
        seen = verdict.means[arm]
        shown = listed([f"{o.name} {value(o, seen[o.name]['mean'], unit=True)}" for o in verdict.objectives])
        word = "answer" if verdict.certified else "best guess"
        return f"{arm} is the {word}: {shown}."
    if code == "as good":
        return f"{arm} is no better than {rival} in what matters."
    if fate["objective"] is None:
        return f"{arm} is {'not told apart from ' + verdict.arm if code == 'open' else code}."
    asked, (_, _, rest) = _objective(verdict, fate["objective"]), why(verdict, arm).partition(": ")
    if code == "open":
        return (
            f"{arm} {rest.replace(' by more than', f' on {asked.name} by more than', 1)}."
            if rival
            else (f"{arm} may miss the limit on {asked.name}, {_limit(asked)}: {rest.partition(', ')[2]}.")
        )
    tail = f" ({matters(asked) if asked.limit is None else f'the limit is {_limit(asked)}'})"
    return f"{arm} is {code} on {asked.name}: {rest}{tail}."


def outlook(verdict: Verdict) -> str:
    """What would settle it."""
    if verdict.certified or verdict.about == "items" or verdict.looks == "any":
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
        f"About {about(number, up=True)} {new} should settle it{between}. {own}: "
        "to add rows and judge again would be a second look."
    )


def _no_number(verdict: Verdict, least: int | None) -> str:
    """Why no number of items is told."""
    reason, unit = verdict.missing_reason, verdict.unit
    if reason == "edge" and least:
        return (
            f"More {unit} may not settle it: it would take at least about {about(least)} new ones, "
            "and differences may lie on the edge of what matters."
        )
    if reason == "edge":
        return f"By what is seen no number of {unit} would do: differences lie on the edge of what matters."
    if reason == "copied values":
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
        if row["verdict"] != "open" or beyond <= 0 or asked.is_relative:
            continue
        if row["arm"] is None:
            seen = value(asked, row["difference"], unit=True)
            return f": its {asked.name} is {seen}, not {_limit(asked)}"
        seen = value(asked, abs(row["difference"]), unit=True)
        return f": {row['rival']} is better on {asked.name} by {seen}, more than {_margin(asked)}"
    return ""


def _lasts(verdict: Verdict) -> str:
    """What a flag that no number of items lifts asks for."""
    if verdict.missing_reason == "cluster size":
        return "say how many items a cluster can have (max_cluster=)"
    if verdict.missing_reason == "repeated values":
        return "values that repeat themselves are not Gaussian, say what they are, such as bounded"
    if any(asked.noise == "finite_variance" for asked in verdict.objectives):
        return "finite_variance is an approximation, say bounds, or cap="
    return "clusters or repeats of unequal size make it an approximation"


def assumed(verdict: Verdict) -> str:
    """What the verdict rests on besides the table."""
    if verdict.about == "items":
        said = ["nothing, as it is about these items as they were measured"]
    else:
        unit = "items" if verdict.clusters is None else "clusters"
        said = [f"{unit} are a random sample of those to come"]
        if verdict.looks == "once":
            said.append("how many was decided without looking at values")
        said += [f"{objective.name} {kind}" for objective in verdict.objectives if (kind := _kind(objective))]
        if "dropped missing" in verdict.flags:
            said.append("nothing is missing because of what it was")
    agreed = [objective.name for objective in verdict.objectives if objective.if_missing]
    if agreed or verdict.missing == "worst":
        of = f" of {listed(agreed)}" if verdict.missing != "worst" else ""
        said.append(f"what is missing{of} counts as the worst it could have been")
    return f"Assumed: {'; '.join(said)}."


def _kind(objective: Objective) -> str:
    if objective.quantile is not None:
        return ""
    if objective.noise == "bernoulli":
        return "is 0 or 1, or a mean of such"
    if objective.noise == "exact":
        return "has no noise"
    if objective.is_bounded:
        low, high = objective.bounds
        return f"is between {low:g} and {written(high, objective.unit_of_mean)}"
    if objective.noise == "finite_variance":
        return "has few enough extremes for its number (approximate)"
    word = objective.noise if isinstance(objective.noise, str) else objective.noise[0]
    return f"varies as a {'normal' if word == 'gaussian' else 'sub-Gaussian'} value"


def _limit(objective: Objective) -> str:
    word = "at most" if objective.at_most is not None else "at least"
    return f"{word} {amount(objective, objective.limit or 0.0)}"


def question(objective: Objective) -> str:
    """What an objective asks for, but for its margin."""
    asked = _limit(objective)
    if objective.limit is None:
        asked = f"{'higher' if objective.sign > 0 else 'lower'} is better"
    of = estimand(objective)
    return f"{of}, {asked}" if of else asked


def asked_for(objective: Objective) -> str:
    """All that an objective asks for."""
    return question(objective) + (f", {matters(objective)}" if objective.limit is None else "")


def matters(objective: Objective) -> str:
    """What does not."""
    margin = objective.margin_in_unit
    return f"margin {amount(objective, margin)}" if margin else "every difference matters"


def _objective(verdict: Verdict, name: str) -> Objective:
    return next(objective for objective in verdict.objectives if objective.name == name)
