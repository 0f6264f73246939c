"""The order of objectives as the head of the arms' table: a row stops where its arm left, with the reason."""

import math
from html import escape

from lexbandits.picture import exits
from lexbandits.picture.picture import Arm, Picture
from lexbandits.picture.svg import (
    TICK,
    Axis,
    across,
    box,
    element,
    icon,
    interval,
    line,
    tick_text,
    upright,
    words,
)
from lexbandits.picture.svg import picture as picture_of
from lexbandits.picture.view import View
from lexbandits.picture.words import count, many

CLASSES = {
    "settled": "done",
    "enough": "done",
    "settling": "now",
    "not settled": "now",
    "later": "later",
    "not reached": "later",
    "not needed": "skip2",
}
DONE, SHOWN = ("settled", "enough"), ("settled", "enough", "settling", "not settled")


def ladder(picture: Picture) -> str:
    """The table."""
    view = picture.view
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
        *(_head(picture, position) for position in places),
        element("th", f"{who}Measured", scope="col", kind="num"),
    ]
    rows = "".join(_row(picture, arm, axes) for arm in picture.arms)
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


def _head(picture: Picture, position: int) -> str:
    view, objective = picture.view, picture.objectives[position]
    stage = objective.state
    last = " last" if position == len(view.columns) - 1 else ""
    mark = icon(TICK) if stage in DONE else ""
    parts = [
        element("div", _rail(view, position, stage), kind="rail", aria_hidden="true"),
        element("span", escape(objective.name), kind="nm"),
        element("span", f"{escape(objective.rule)}<br>{escape(objective.matters)}", kind="rule"),
        element("span", f"{mark}{objective.said}", kind="stt"),
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
            dash = " dash" if stage not in SHOWN else ""
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
    if stage in DONE:
        fill, stroke, ink = "--accent", "--accent", "--inv"
    elif stage in ("settling", "not settled"):
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
    if view.stage(position) not in SHOWN or not entered:
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


def _row(picture: Picture, arm: Arm, axes: list[Axis]) -> str:
    is_answer = arm.exit.code == exits.ANSWER
    name = element("b", escape(arm.name))
    name += element("span", arm.standing, kind=f"standing{' is' if is_answer else ''}")
    cells = [_cell(picture, arm, p, axes[p]) for p in range(len(axes))]
    more = [f"{count(arm.counted)} counted"] if arm.counted < arm.results else []
    lost = {"open": arm.open, "failed": arm.failed, "expired": arm.expired, "late": arm.late}
    more += [f"{count(n)} {word}" for word, n in lost.items() if n]
    tail = element("span", ", ".join(more), kind="s") if more else ""
    parts = [
        element("th", name, scope="row", kind="arm"),
        *cells,
        element("td", f"{count(arm.results)}{tail}", kind="num"),
    ]
    kind = "ans" if is_answer else "" if arm.state == "candidate" else "out"
    return element("tr", "".join(parts), kind=kind, data_arm=escape(arm.name), data_exit=arm.exit.code)


def _cell(picture: Picture, arm: Arm, position: int, axis: Axis) -> str:
    view, objective = picture.view, picture.objectives[position]
    cell = arm.objectives[objective.name]
    how = {"data_l": escape(objective.name), "data_objective": escape(objective.name)}
    shown = element("span", cell.shown, kind="m")
    if not cell.counts or not cell.results:
        return element("td", element("div", shown, kind="cell"), **how, kind="" if cell.counts else "past")
    inside = objective.name != arm.exit.objective and objective.state in SHOWN
    low = -math.inf if cell.low is None else cell.low
    high = math.inf if cell.high is None else cell.high
    halo = arm.exit.code == exits.ANSWER and inside
    drawn = interval(axis, 13, cell.mean or 0.0, low, high, inside=inside, halo=halo)
    band = _band(view, position, axis)
    drawing = picture_of(f"{band}{across(13, 'gr')}{drawn}", 26, aria_hidden="true")
    said = element("div", f"{shown}{element('span', cell.range, kind='r')}{drawing}", kind="cell")
    if cell.why:
        said += element("p", _strong(cell.why), kind="why")
    return element("td", said, **how, kind="now" if objective.state == "settling" else "")


def _strong(why: str) -> str:
    word, colon, rest = why.partition(":")
    return f"<b>{word}{colon}</b>{escape(rest)}"


def _scale(axis: Axis) -> str:
    parts = [across(3, "ax")]
    for tick in axis.ticks(3):
        parts.append(upright(axis(tick), 3, 7, "ax"))
        how = {"text_anchor": "middle", "style": "font-size:10.5px"}
        parts.append(words(axis(tick), 18, tick_text(tick, axis), **how))
    return element("td", element("div", f"<span></span>{picture_of(''.join(parts), 30)}", kind="cell"))
