"""The order of objectives as the head of the arms' table: a row stops where its arm left, with the reason."""

import math
from html import escape

from lexbandits.insight.explain import Reason, story_of
from lexbandits.insight.svg import TICK, Axis, icon, interval, tick_text
from lexbandits.insight.view import NOT_MEASURED, View
from lexbandits.insight.words import amount, count, value
from lexbandits.study.objective import Objective

CLASSES = {"settled": "done", "being settled": "now", "later": "later", "not needed": "skip2"}


def ladder(view: View) -> str:
    """The table."""
    axes = [_axis(view, position) for position in range(len(view.columns))]
    head = "".join(_head(view, position) for position in range(len(view.columns)))
    rows = "".join(_row(view, arm, axes) for arm in view.by_standing)
    columns = "<col>" * len(view.columns)
    answer = view.answer.arm if view.state == "finished" else f"{view.answer.arm}?"
    return (
        f'<div class="panel"><table class="lad"><colgroup><col class="a">{columns}<col class="n"></colgroup>'
        f'<thead><tr><th scope="col"><span class="rt wide" style="right:8px">{len(view.arms)} arms</span>Arm</th>{head}'
        f'<th scope="col" class="num"><span class="rt wide" style="left:10px"><b style="color:var(--accent-ink)">'
        f"{escape(answer)}</b></span>Measured</th></tr></thead><tbody>{rows}</tbody>"
        f'<tfoot class="wide"><tr><td></td>{"".join(map(_scale, axes))}<td></td></tr></tfoot></table>'
        f"{LEGEND}</div>"
    )


LEGEND = (
    '<div class="foot"><span><svg width="34" height="14" aria-hidden="true"><line x1="2" x2="32" y1="7" y2="7" class="in"/>'
    '<line x1="2" x2="2" y1="4" y2="10" class="in"/><line x1="32" x2="32" y1="4" y2="10" class="in"/>'
    '<circle cx="17" cy="7" r="4" class="ind"/></svg>mean and interval, valid at all times</span>'
    '<span><svg width="22" height="14" aria-hidden="true"><rect width="22" height="14" class="b"/></svg>'
    "what does not matter, from the best; or the limit</span>"
    '<span><svg width="34" height="14" aria-hidden="true"><line x1="2" x2="32" y1="7" y2="7" class="ou"/>'
    '<circle cx="17" cy="7" r="4" class="oud"/></svg>out, or not deciding</span>'
    '<span><svg width="22" height="14" aria-hidden="true"><rect width="22" height="14" '
    'style="fill:var(--sunk);stroke:var(--line)"/></svg>no longer counts</span>'
    "<p>Arms are compared by their differences on the same items: an arm can be out although its interval here "
    "still touches the band.</p></div>"
)


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
    stage = view.stage(position)
    before, after = len(view.entered(position)), len(view.entered(position + 1))
    if stage == "settled":
        return f"Settled: {before} → {after} arm{'s' if after != 1 else ''}"
    if stage == "being settled":
        return f"Being settled: {before} → {after} so far"
    return "Not needed: one arm left" if stage == "not needed" else "Later, among those that stay"


def _head(view: View, position: int) -> str:
    objective, stage = view.objectives[view.columns[position]], view.stage(position)
    last = " last" if position == len(view.columns) - 1 else ""
    kind, matters = rule(objective)
    mark = icon(TICK) if stage == "settled" else ""
    return (
        f'<th scope="col" class="st {CLASSES[stage]}{last}"><div class="rail" aria-hidden="true">{_rail(view, position, stage)}</div>'
        f'<span class="nm">{escape(objective.name)}</span><span class="rule">{escape(kind)}<br>{escape(matters)}</span>'
        f'<span class="stt">{mark}{stage_words(view, position)}</span></th>'
    )


def _rail(view: View, position: int, stage: str) -> str:
    """A strand per arm that got here, ending where it left; and the number of the rung."""
    entered = sorted(view.entered(position), key=view.by_standing.index)
    gap = min(4.0, 24 / max(len(entered), 1))
    strands = []
    for k, arm in enumerate(entered):
        y = 10 + gap * k
        if arm in view.eliminations and view.position_left(arm) == position:
            strands.append(f'<line x1="0" x2="62%" y1="{y:.1f}" y2="{y:.1f}" class="ou"/>')
            strands.append(f'<line x1="62%" x2="62%" y1="{y - 2.5:.1f}" y2="{y + 2.5:.1f}" class="ou"/>')
        else:
            dash = " dash" if stage in ("later", "not needed") else ""
            strands.append(
                f'<line x1="0" x2="100%" y1="{y:.1f}" y2="{y:.1f}" class="in{dash}" style="stroke-width:1.5"/>'
            )
    filled = stage == "settled"
    fill, stroke, text = ("--accent", "--accent", "--inv") if filled else ("--panel", "--line2", "--muted")
    if stage == "being settled":
        stroke, text = "--accent", "--accent-ink"

    def rung(x: int, y: int) -> str:
        return (
            f'<circle cx="{x}" cy="{y}" r="10.5" style="fill:var({fill});stroke:var({stroke});stroke-width:1.5"/>'
            f'<text x="{x}" y="{y + 4}" text-anchor="middle" style="fill:var({text});font-weight:600;font-size:11.5px">{position + 1}</text>'
        )

    more = position < len(view.columns) - 1
    down = (
        '<line x1="11" x2="11" y1="20" y2="100%" style="stroke:var(--line2);stroke-width:2"/>' if more else ""
    )
    return (
        f'<svg class="h w" height="40">{"".join(strands)}{rung(23, 20)}</svg>'
        f'<svg class="v" style="display:none;position:absolute;top:9px;left:0" width="22" height="100%">{down}{rung(11, 11)}</svg>'
    )


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
    if objective.target is not None:
        low, high = (
            (axis.low, objective.target) if objective.at_most is not None else (objective.target, axis.high)
        )
        edge = f'<line x1="{axis(objective.target)}" x2="{axis(objective.target)}" y1="-12" y2="128" class="bl" stroke-width="1.5"/>'
    else:
        best = max(entered, key=lambda a: objective.sign * view.mean(a, column))
        ends = sorted(
            (view.mean(best, column), view.mean(best, column) - objective.sign * objective.tolerance_in_unit)
        )
        low, high, edge = ends[0], ends[1], ""
    width = float(axis(high)[:-1]) - float(axis(low)[:-1])
    return f'<rect x="{axis(low)}" width="{max(width, 0.4):.2f}%" y="-12" height="140" class="b"/>{edge}'


def _row(view: View, arm: int, axes: list[Axis]) -> str:
    standing, story = view.standing(arm), story_of(view, arm)
    words = {
        "answer": "the answer" if view.state == "finished" else "answer so far",
        "candidate": "candidate" if view.state != "finished" else "ties with the answer",
        "withdrawn": "withdrawn",
        NOT_MEASURED: NOT_MEASURED,
    }
    said = f"out after {count(story.after or 0)}" if standing == "left" else words[standing]
    kind = "ans" if standing == "answer" else "" if standing == "candidate" else "out"
    emphasis = ' class="is"' if standing == "answer" else ""
    cells = "".join(_cell(view, arm, p, story.reasons[p], axes[p], standing) for p in range(len(axes)))
    losses = {k: n for k, n in view.losses(arm).items() if n}
    more = [f"{view.open_of(arm)} open"] if view.open_of(arm) else []
    more += [f"{n} {word}" for word, n in losses.items()]
    tail = f'<span class="s">{", ".join(more)}</span>' if more else ""
    return (
        f'<tr class="{kind}"><th scope="row" class="arm"><b>{escape(view.arms[arm])}</b><span{emphasis}>{said}</span></th>'
        f'{cells}<td class="num">{count(view.measured[arm])}{tail}</td></tr>'
    )


def _cell(view: View, arm: int, position: int, reason: Reason, axis: Axis, standing: str) -> str:
    column = view.columns[position]
    objective, stage = view.objectives[column], view.stage(position)
    name = escape(objective.name, quote=True)
    if not view.counts[arm, column]:
        return f'<td data-l="{name}"><div class="cell"><span class="m">–</span></div></td>'
    mean = view.mean(arm, column)
    shown = value(objective, mean)
    gone = arm in view.eliminations and view.position_left(arm) < position
    if gone or standing in ("withdrawn", NOT_MEASURED):
        return f'<td data-l="{name}" class="past"><div class="cell"><span class="m">{shown}</span></div></td>'
    low, high = view.interval(arm, column)
    out = arm in view.eliminations and view.position_left(arm) == position
    inside = not out and stage in ("settled", "being settled")
    drawn = interval(axis, 13, mean, low, high, inside=inside, halo=arm == view.leader and inside)
    grid = '<line x1="0" x2="100%" y1="13" y2="13" class="gr"/>'
    picture = (
        f'<svg class="w" height="26" aria-hidden="true">{_band(view, position, axis)}{grid}{drawn}</svg>'
    )
    ends = f"{value(objective, low)} – {value(objective, high)}" if math.isfinite(high - low) else "too few"
    why = f'<p class="why"><b>Out:</b> {escape(_short(view, reason, objective))}</p>' if out else ""
    tint = ' class="now"' if stage == "being settled" else ""
    return f'<td data-l="{name}"{tint}><div class="cell"><span class="m">{shown}</span><span class="r">{ends}</span>{picture}</div>{why}</td>'


def _short(view: View, reason: Reason, objective: Objective) -> str:
    if reason.verdict == "beyond the limit":
        above = objective.at_most is not None
        bound = reason.low if above else reason.high
        word, how = ("at least", "down") if above else ("at most", "up")
        shown = value(objective, bound if bound is not None else math.nan, rounded=how)
        return f"certainly {'above' if above else 'below'} the limit, {word} {shown}"
    by = value(objective, reason.difference or 0.0)
    return (
        f"worse than {reason.rival} by {by}, at least {value(objective, reason.low or 0.0, rounded='down')}"
    )


def _scale(axis: Axis) -> str:
    parts = ['<line x1="0" x2="100%" y1="3" y2="3" class="ax"/>']
    for tick in axis.ticks(3):
        parts.append(f'<line x1="{axis(tick)}" x2="{axis(tick)}" y1="3" y2="7" class="ax"/>')
        parts.append(
            f'<text x="{axis(tick)}" y="18" text-anchor="middle" style="font-size:10.5px">{tick_text(tick, axis)}</text>'
        )
    return f'<td><div class="cell"><span></span><svg class="w" height="30" aria-hidden="true">{"".join(parts)}</svg></div></td>'
