"""A verdict in words: for a terminal, and as Markdown for a pull request. Made last, and read by nobody."""

import math
from collections.abc import Callable, Mapping
from typing import Any

from lexbandits.judging.verdict import Verdict
from lexbandits.printable import printable, unmarked
from lexbandits.study.objective import Objective
from lexbandits.study.words import about, listed, many, percent
from lexbandits.study.words import amount as in_unit
from lexbandits.study.words import bound as as_proven
from lexbandits.study.words import value as as_precise

BAR = 25  # characters


def headline(verdict: Verdict) -> str:
    """The answer in one sentence."""
    arm, sure = verdict.arm, percent(1 - verdict.delta)
    if verdict.decision == "keep for now":
        return f"Keep {arm} for now: nothing is proven."
    if verdict.decision == "keep":
        return f"Keep {arm}: it is as good as any{_but(verdict)}."
    if verdict.decision == "switch":
        return f"Switch to {arm}: {_why_switch(verdict)}{_but(verdict)}."
    if len(verdict.means) == 1:
        return f"{arm} is the only arm."
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
    "cluster size": lambda _: "nobody said how large a cluster can be (max_cluster=)",
    "few clusters": lambda f: f"there are only {f['clusters']} clusters",
    "dropped missing": lambda f: f"{many(f['cells'], 'missing result')} were left out",
    "closest to the target": lambda f: f"nobody meets the limit on {listed(f['objectives'])}",
}


def _why_switch(verdict: Verdict) -> str:
    """The last row says on what it is better; on what comes before it is not worse."""
    row, names = verdict.certificate[-1], [objective.name for objective in verdict.objectives]
    before = names[: names.index(row["objective"])]
    if row["verdict"] == "misses the target":
        better = f"{row['rival']} misses the limit on {row['objective']}"
    else:
        objective = _objective(verdict, row["objective"])
        least = amount(objective, objective.tolerance_in_unit)
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


def standing(verdict: Verdict, arm: str) -> str:
    """Where an arm stands, without its name."""
    fate = verdict.fates[arm]
    code, rival = fate["code"], fate["rival"]
    if code == "answer":
        return "the answer" if verdict.certified else "the best guess"
    if code == "as good":
        return f"no better than {rival} in what matters"
    if fate["objective"] is None:
        return str(code)
    objective = _objective(verdict, fate["objective"])
    if rival is None:
        limit = f"the limit on {objective.name}, {_limit(objective)}"
        seen = value(objective, verdict.means[arm][objective.name]["mean"], unit=True)
        return f"{'open: may miss' if code == 'open' else 'out: misses'} {limit}: seen {seen}"
    if code == "open":
        return _open(objective, arm, fate)
    end = fate["low"] if objective.sign > 0 else fate["high"]
    least = 0.0 if end is None else objective.sign * end
    tolerance = objective.tolerance_in_unit
    by = f"at least {as_proven(objective, least, 'down', beyond=tolerance, unit=True)}"
    by = by if least > tolerance else f"more than {amount(objective, tolerance)}"
    out = "out: " if code == "out" else ""
    return f"{out}worse than {rival} on {objective.name} by {by}"


def _open(objective: Objective, arm: str, fate: Mapping[str, Any]) -> str:
    reach = amount(objective, objective.tolerance_in_unit + objective.resolution_in_unit)
    seen = value(objective, fate["difference"])
    ends = [
        "?" if fate[end] is None else _bound(objective, fate[end], rounded)
        for end, rounded in (("low", "down"), ("high", "up"))
    ]
    between = f"seen {seen}, between {ends[0]} and {ends[1]} {objective.unit}".rstrip()
    may = f"open: may be better than {fate['rival']} on {objective.name} by more than {reach}"
    return f"{may}; {fate['rival']} − {arm}: {between}"


def outlook(verdict: Verdict) -> str:
    """What would settle it."""
    if verdict.certified or verdict.about == "items" or verdict.looks == "any":
        return ""
    if verdict.missing_range is None or verdict.missing_items is None:
        return "By what is seen no number of items would do: differences lie on the edge of what matters."
    low, high = verdict.missing_range
    unit = "items" if verdict.clusters is None else "clusters"
    ends = (
        f"{about(low or verdict.missing_items)} to {about(high)}"
        if high
        else f"at least {about(verdict.missing_items)}"
    )
    return (
        f"About {ends} new {unit} should settle it. Judge them alone, or measure them as a study: "
        "to add rows and judge again would be a second look."
    )


def assumed(verdict: Verdict) -> str:
    """What the verdict rests on besides the table."""
    if verdict.about == "items":
        said = ["nothing: it is about these items, as they were measured"]
    else:
        unit = "items" if verdict.clusters is None else "clusters"
        said = [f"{unit} are a random sample of those to come"]
        if verdict.looks == "once":
            said.append("how many was decided without looking at values")
        said += [f"{objective.name} {kind}" for objective in verdict.objectives if (kind := _kind(objective))]
        if "dropped missing" in verdict.flags:
            said.append("nothing is missing because of what it was")
    if verdict.missing == "worst":
        said.append("what is missing counts as the worst it could have been")
    return f"Assumed: {'; '.join(said)}."


def _kind(objective: Objective) -> str:
    if objective.noise == "bernoulli":
        return "is 0 or 1, or a mean of such"
    if objective.noise == "exact":
        return "has no noise"
    if objective.is_bounded:
        low, high = objective.bounds
        return f"is between {low:g} and {in_unit(objective, high)}"
    if objective.noise == "finite_variance":
        return "has few enough extremes for its number (approximate)"
    word = objective.noise if isinstance(objective.noise, str) else objective.noise[0]
    return f"varies as a {'normal' if word == 'gaussian' else 'sub-Gaussian'} value"


def _limit(objective: Objective) -> str:
    word = "at most" if objective.at_most is not None else "at least"
    return f"{word} {amount(objective, objective.target or 0.0)}"


def question(objective: Objective) -> str:
    """What an objective asks for."""
    if objective.above is not None:
        return f"how often it is above {objective.above:g}, {_asked(objective)}"
    cut = [
        f"{word} {in_unit(objective, end)}"
        for word, end in (("down to", objective.floor), ("up to", objective.cap))
        if end is not None
    ]
    return f"the mean of values {' and '.join(cut)}, {_asked(objective)}" if cut else _asked(objective)


def _asked(objective: Objective) -> str:
    if objective.target is not None:
        return _limit(objective)
    better = "higher" if objective.sign > 0 else "lower"
    matters = objective.tolerance_in_unit
    return f"{better} is better" + (f", {amount(objective, matters)} does not matter" if matters else "")


def amount(objective: Objective, number: float) -> str:
    """What does not matter, or a limit."""
    return f"{percent(number)} of the best" if objective.is_relative else in_unit(objective, number)


def value(objective: Objective, number: float, **how: Any) -> str:
    """A value of the objective; of what is relative nobody said how precise it is."""
    return (
        in_unit(objective, float(f"{number:.4g}"))
        if objective.is_relative
        else as_precise(objective, number, **how)
    )


def _bound(objective: Objective, number: float, rounded: str) -> str:
    """The same of an end, rounded outwards."""
    if not objective.is_relative or not math.isfinite(number) or number == 0:
        return as_proven(objective, number, rounded)
    step = 10.0 ** (math.floor(math.log10(abs(number))) - 3)
    return in_unit(objective, (math.floor if rounded == "down" else math.ceil)(number / step) * step)


def _objective(verdict: Verdict, name: str) -> Objective:
    return next(objective for objective in verdict.objectives if objective.name == name)


def _bar(seen: Mapping[str, Any], low: float, high: float) -> str:
    """The mean and two standard errors to either side of it, on a scale from low to high."""
    ends = [seen["mean"] + k * seen["se"] for k in (-2, 0, 2)]
    first, at, last = (round((x - low) / ((high - low) or 1.0) * (BAR - 1)) for x in ends)
    line = "".join("─" if first <= k <= last else " " for k in range(BAR))
    return f"{line[:at]}●{line[at + 1 :]}"


def in_text(verdict: Verdict) -> str:
    """For a terminal."""
    arms = list(verdict.means)
    wide = max(map(len, arms))
    lines = [f"{headline(verdict)}", f"{context(verdict)}", ""]
    for number, objective in enumerate(verdict.objectives, 1):
        lines.append(f"  {number} {objective.name}: {question(objective)}")
        seen = {arm: verdict.means[arm][objective.name] for arm in arms}
        low = min(s["mean"] - 2 * s["se"] for s in seen.values())
        high = max(s["mean"] + 2 * s["se"] for s in seen.values())
        shown = {arm: value(objective, s["mean"], unit=True) for arm, s in seen.items()}
        for arm in arms:
            text = shown[arm].rjust(max(map(len, shown.values())))
            lines.append(f"    {arm:<{wide}}  {text}  {_bar(seen[arm], low, high)}".rstrip())
        lines.append("")
    lines += [f"  {arm:<{wide}}  {standing(verdict, arm)}" for arm in arms]
    lines += ["", *_footer(verdict)]
    return printable("\n".join(lines), lines=True)


def _footer(verdict: Verdict) -> list[str]:
    two = ""
    if verdict.about != "items" and verdict.certified and len(verdict.means) > 1:
        sure = percent(1 - verdict.delta)
        two = f"The certificate, and where the arms stand, are two statements, each at {sure}."
    return [line for line in (outlook(verdict), assumed(verdict), two) if line]


def in_markdown(verdict: Verdict) -> str:
    """For a pull request: a heading, one table, two lines, and the certificate folded away."""
    heads = ["arm", *(f"{o.name} ({question(o)})" for o in verdict.objectives), "verdict"]
    rows = []
    for arm, seen in verdict.means.items():
        cells = [
            f"{value(o, seen[o.name]['mean'], unit=True)} ± {_bound(o, 2 * seen[o.name]['se'], 'up')}"
            for o in verdict.objectives
        ]
        rows.append([arm, *cells, standing(verdict, arm)])
    names = ("rival", "objective", "verdict", "by", "difference", "limit", "se", "results", "level")
    proof = [[_plain(row[name]) for name in names] for row in verdict.certificate]
    return "\n".join([
        f"### {unmarked(headline(verdict))}",
        "",
        unmarked(context(verdict)),
        "",
        *_pipes(heads, rows),
        "",
        *(unmarked(line) + "\n" for line in _footer(verdict)),
        "<details><summary>Certificate</summary>",
        "",
        *_pipes(list(names), proof),
        "",
        "</details>",
    ])  # fmt: skip


def _plain(cell: Any) -> str:
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def _pipes(heads: list[str], rows: list[list[str]]) -> list[str]:
    table = [heads, ["---"] * len(heads), *rows]
    return [f"| {' | '.join(cell if cell == '---' else unmarked(cell) for cell in row)} |" for row in table]
