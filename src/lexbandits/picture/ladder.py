"""The order of objectives as the head of the arms' table: a row stops where its arm left, with the reason."""

import math
from html import escape

from lexbandits.picture import exits as fates
from lexbandits.picture.exits import Fate, fate_of, is_tied
from lexbandits.picture.explain import deciding, story_of
from lexbandits.picture.reasons import Reason
from lexbandits.picture.svg import (
    TICK,
    Axis,
    across,
    box,
    element,
    icon,
    interval,
    line,
    picture,
    tick_text,
    upright,
    words,
)
from lexbandits.picture.view import View
from lexbandits.study.objective import Objective
from lexbandits.study.words import amount, beyond, count, many, value

CLASSES = {"settled": "done", "being settled": "now", "later": "later", "not needed": "skip2"}


def ladder(view: View) -> str:
    """The table."""
    places = range(len(view.columns))
    axes = [_axis(view, position) for position in places]
    columns = f'<colgroup><col class="a">{"<col>" * len(places)}<col class="n"></colgroup>'
    answer = escape(view.answer.arm if view.state == "finished" else f"{view.answer.arm}?")
    all_arms = element("span", many(len(view.arms), "arm"), kind="rt wide", style="right:8px")
    who = element(
        "span", f'<b style="color:var(--accent-ink)">{answer}</b>', kind="rt wide", style="left:10px"
    )
    head = [
        element("th", f"{all_arms}Arm", scope="col"),
        *(_head(view, position) for position in places),
        element("th", f"{who}Measured", scope="col", kind="num"),
    ]
    rows = "".join(_row(view, arm, axes) for arm in view.by_standing)
    foot = element("tr", f"<td></td>{''.join(map(_scale, axes))}<td></td>")
    parts = [
        columns,
        element("thead", element("tr", "".join(head))),
        element("tbody", rows),
        element("tfoot", foot, kind="wide"),
    ]
    return element("div", element("table", "".join(parts), kind="lad") + _legend(), kind="panel")


def _legend() -> str:
    axis = Axis(0, 1)
    known = interval(axis, 7, 0.5, 0.0, 1.0, inside=True)
    gone = interval(axis, 7, 0.5, 0.0, 1.0, inside=False)
    sunk = element("rect", width=22, height=14, style="fill:var(--sunk);stroke:var(--line)")
    signs = (
        (34, known, "mean and interval, valid at all times"),
        (
            22,
            element("rect", width=22, height=14, kind="b"),
            "what does not matter, from the best; or the limit",
        ),
        (34, gone, "out, behind, or not deciding"),
        (22, sunk, "no longer counts"),
    )
    spans = [
        element("span", element("svg", sign, width=width, height=14, aria_hidden="true") + text)
        for width, sign, text in signs
    ]
    note = (
        "Arms are compared by their differences on the same items: an arm can be out although its interval "
        "here still touches the band. Measured are all results; means rest on those that count."
    )
    return element("div", f"{''.join(spans)}<p>{note}</p>", kind="foot")


# --- the head


def rule(objective: Objective) -> tuple[str, str]:
    """What kind of objective it is and what does not matter, in few words."""
    if objective.target is not None:
        word = "at most" if objective.at_most is not None else "at least"
        return "limit", f"{word} {amount(objective, objective.target)}"
    direction = "higher is better" if objective.sign > 0 else "lower is better"
    kind = f"{objective.unit}, {direction}" if objective.unit else direction
    slack = objective.tolerance_in_unit
    return kind, f"{amount(objective, slack)} does not matter" if slack else "every difference matters"


def stage_words(view: View, position: int) -> str:
    """Where an objective stands."""
    stage, ended = view.stage(position), view.state == "finished"
    entered = view.entered(position)
    out = [a for a in entered if a in view.eliminations and view.position_left(a) == position]
    stay = f"{len(entered)} → {many(len(entered) - len(out), 'arm')}"
    nobody = "Nobody meets it" if view.columns[position] in view.infeasible else ""
    if stage == "settled" and view.settled_by_rule(position):
        return f"{nobody or 'Settled'}: {stay}"
    if stage == "settled":
        behind = sum(view.behind.get(arm) == view.columns[position] for arm in entered)
        words = [f"{len(out)} out"] * bool(out) + [f"{behind} behind"] * bool(behind)
        return f"{nobody or 'Enough for the answer'}{': ' if words else ''}{', '.join(words)}"
    if stage == "being settled":
        return (
            f"{nobody or ('Not settled' if ended else 'Being settled')}: {stay}{'' if ended else ' so far'}"
        )
    if stage == "later":
        return "Not reached" if ended else "Later, among those that stay"
    return "Not needed: one arm left"


def _head(view: View, position: int) -> str:
    objective, stage = view.objectives[view.columns[position]], view.stage(position)
    last = " last" if position == len(view.columns) - 1 else ""
    kind, matters = rule(objective)
    mark = icon(TICK) if stage == "settled" else ""
    parts = [
        element("div", _rail(view, position, stage), kind="rail", aria_hidden="true"),
        element("span", escape(objective.name), kind="nm"),
        element("span", f"{escape(kind)}<br>{escape(matters)}", kind="rule"),
        element("span", f"{mark}{stage_words(view, position)}", kind="stt"),
    ]
    return element("th", "".join(parts), scope="col", kind=f"st {CLASSES[stage]}{last}")


def _rail(view: View, position: int, stage: str) -> str:
    """A strand per arm that got here, ending where it left; and the number of the rung."""
    entered = sorted(view.entered(position), key=view.by_standing.index)
    gap = min(4.0, 24 / max(len(entered), 1))
    strands = []
    for k, arm in enumerate(entered):
        y = round(10 + gap * k, 1)
        if view.stops(arm) and view.position_left(arm) == position:
            strands += [line("0", "62%", y, y, "ou"), upright("62%", y - 2.5, y + 2.5, "ou")]
        else:
            dash = " dash" if stage in ("later", "not needed") else ""
            strands.append(line("0", "100%", y, y, f"in{dash}", style="stroke-width:1.5"))
    more = position < len(view.columns) - 1
    down = upright("11", 20, 2000, "", style="stroke:var(--line2);stroke-width:2") if more else ""
    wide = element("svg", "".join(strands) + _rung(position, stage, 23, 20), kind="h w", height=40)
    how = "display:none;position:absolute;top:9px;left:0;overflow:hidden"
    return wide + element(
        "svg", down + _rung(position, stage, 11, 11), kind="v", style=how, width=22, height="100%"
    )


def _rung(position: int, stage: str, x: int, y: int) -> str:
    fill, stroke, ink = "--panel", "--line2", "--muted"
    if stage == "settled":
        fill, stroke, ink = "--accent", "--accent", "--inv"
    elif stage == "being settled":
        stroke, ink = "--accent", "--accent-ink"
    look = f"fill:var({fill});stroke:var({stroke});stroke-width:1.5"
    type_ = f"fill:var({ink});font-weight:600;font-size:11.5px"
    disc = element("circle", cx=x, cy=y, r="10.5", style=look)
    return disc + words(str(x), y + 4, str(position + 1), text_anchor="middle", style=type_)


# --- the rows


def _axis(view: View, position: int) -> Axis:
    column = view.columns[position]
    entered = [a for a in view.entered(position) if view.counts[a, column]]
    ends = [e for a in entered for e in (*view.interval(a, column), view.mean(a, column)) if math.isfinite(e)]
    target = view.objectives[column].target
    if target is not None:
        ends.append(target)
    return Axis(min(ends), max(ends)) if ends else Axis(0.0, 1.0)


def _band(view: View, position: int, axis: Axis) -> str:
    """What does not matter, from the best; or the limit."""
    column = view.columns[position]
    objective = view.objectives[column]
    entered = [a for a in view.entered(position) if view.counts[a, column]]
    if view.stage(position) in ("later", "not needed") or not entered:
        return ""
    target = objective.target
    if target is not None:
        low, high = (axis.low, target) if objective.at_most is not None else (target, axis.high)
        return box(axis, low, high, -12, 128, kind="b") + upright(
            axis(target), -12, 128, "bl", stroke_width=1.5
        )
    best = max(objective.sign * view.mean(a, column) for a in entered)
    low, high = sorted((objective.sign * best, objective.sign * (best - objective.tolerance_in_unit)))
    return box(axis, low, high, -12, 128, kind="b")


def _row(view: View, arm: int, axes: list[Axis]) -> str:
    standing, story, fate = view.standing(arm), story_of(view, arm), fate_of(view, arm)
    said = {
        "answer": view.called,
        "candidate": _candidate(view, arm, fate),
        "left": f"out after {count(story.after or 0)}",
    }.get(standing, standing)
    emphasis = {"kind": "is"} if standing == "answer" else {}
    name = element("b", escape(view.arms[arm])) + element("span", said, **emphasis)
    cells = [_cell(view, arm, p, axes[p], fate) for p in range(len(axes))]
    counted = view.counted(arm)
    more = [f"{count(counted)} counted"] if counted < view.measured[arm] else []
    more += [f"{view.open_of(arm)} open"] if view.open_of(arm) else []
    more += [f"{n} {word}" for word, n in view.losses(arm).items() if n]
    tail = element("span", ", ".join(more), kind="s") if more else ""
    kind = "ans" if standing == "answer" else "" if standing == "candidate" else "out"
    parts = [
        element("th", name, scope="row", kind="arm"),
        *cells,
        element("td", f"{count(view.measured[arm])}{tail}", kind="num"),
    ]
    return element("tr", "".join(parts), kind=kind)


def _candidate(view: View, arm: int, fate: Fate) -> str:
    """How a candidate stands to the answer."""
    if view.state != "finished":
        return "candidate"
    if fate.kind == fates.BEHIND:
        return "behind the answer"
    if not view.is_proven:
        return "not ruled out"
    if is_tied(view, arm):
        return "ties with the answer"
    return "behind by the means" if fate.kind == fates.BY_THE_MEANS else "not told apart"


def _cell(view: View, arm: int, position: int, axis: Axis, fate: Fate) -> str:
    column = view.columns[position]
    objective, stage = view.objectives[column], view.stage(position)
    how = {"data_l": escape(objective.name)}
    mean = view.mean(arm, column)
    shown = element("span", value(objective, mean), kind="m")
    gone = fate.kind == fates.GONE or (view.stops(arm) and view.position_left(arm) < position)
    if not view.counts[arm, column]:
        return element("td", element("div", shown, kind="cell"), **how)
    if gone:
        return element("td", element("div", shown, kind="cell"), **how, kind="past")
    low, high = view.interval(arm, column)
    out = view.stops(arm) and view.position_left(arm) == position
    inside = not out and stage in ("settled", "being settled")
    drawn = interval(axis, 13, mean, low, high, inside=inside, halo=arm == view.leader and inside)
    drawing = picture(f"{_band(view, position, axis)}{across(13, 'gr')}{drawn}", 26, aria_hidden="true")
    ends = f"{value(objective, low)} – {value(objective, high)}" if math.isfinite(high - low) else "too few"
    why = _why(view, arm, position, fate)
    cell = element("div", f"{shown}{element('span', ends, kind='r')}{drawing}", kind="cell")
    return element("td", cell + why, **how, kind="now" if stage == "being settled" else "")


def _why(view: View, arm: int, position: int, fate: Fate) -> str:
    """What decides on an arm, below its interval on the objective that does."""
    words = {fates.LEFT: "Out", fates.BEHIND: "Behind", fates.BY_THE_MEANS: "By the means"}
    if position != fate.position or fate.kind not in words:
        return ""
    if fate.kind == fates.BY_THE_MEANS and view.state != "finished":
        return ""
    short = _short(deciding(view, arm, fate), view.objectives[view.columns[position]])
    return element("p", f"<b>{words[fate.kind]}:</b> {escape(short)}", kind="why")


def _short(reason: Reason, objective: Objective) -> str:
    above = objective.at_most is not None
    if reason.verdict == "beyond the limit":
        bound, line = reason.low if above else reason.high, objective.target or 0.0
        word, how = ("at least", "down") if above else ("at most", "up")
        shown = beyond(objective, math.nan if bound is None else bound, line, rounded=how)
        return f"certainly {'above' if above else 'below'} the limit, {word} {shown}"
    if reason.rival is None:
        return f"{value(objective, reason.difference or 0.0)}, not known to be within the limit"
    text = f"worse than {reason.rival} by {value(objective, reason.difference or 0.0)}"
    if reason.verdict != "worse" or reason.low is None or reason.low == reason.high:
        return text
    if reason.low <= objective.tolerance_in_unit:  # a step of the proof takes less evidence than an interval
        return text
    return f"{text}, at least {beyond(objective, reason.low, objective.tolerance_in_unit, rounded='down')}"


def _scale(axis: Axis) -> str:
    parts = [across(3, "ax")]
    for tick in axis.ticks(3):
        parts.append(upright(axis(tick), 3, 7, "ax"))
        how = {"text_anchor": "middle", "style": "font-size:10.5px"}
        parts.append(words(axis(tick), 18, tick_text(tick, axis), **how))
    return element("td", element("div", f"<span></span>{picture(''.join(parts), 30)}", kind="cell"))
