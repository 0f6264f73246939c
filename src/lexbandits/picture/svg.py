"""Figures of the report as SVG: percent for x, pixels for y, so that they stretch without a script."""

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise
from typing import Any

from lexbandits.picture.view import View
from lexbandits.study.words import count, value

TICK = '<path d="M2 6.4 4.8 9.2 10 3.4" fill="none" stroke="currentColor" stroke-width="1.8"/>'
WARN = (
    '<path d="M6 1 11.3 10.6H.7z" fill="none" stroke="currentColor" stroke-width="1.2"/>'
    '<path d="M6 4.4v3M6 8.5v.9" stroke="currentColor" stroke-width="1.2"/>'
)
EMPTY = ("line", "circle", "rect", "path", "col")
ROW = 28


class Axis:
    """From values to percent of the width."""

    def __init__(self, low: float, high: float) -> None:
        room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
        self.low, self.high = low - room, high + room

    def __call__(self, number: float) -> str:
        """Where a value lies; beyond the ends, at the end."""
        share = (number - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.2f}%"

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers inside."""
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span / most))
        step = next(step * k for k in (1, 2, 5, 10, 20) if span / (step * k) <= most)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


def element(tag: str, inner: str = "", **attributes: Any) -> str:
    """An element; `kind` is its class, and an underscore in a name is a hyphen."""
    names = {"kind": "class"}
    shown = "".join(f' {names.get(k, k).replace("_", "-")}="{v}"' for k, v in attributes.items() if v != "")
    return f"<{tag}{shown}/>" if tag in EMPTY else f"<{tag}{shown}>{inner}</{tag}>"


def line(x1: str, x2: str, y1: float, y2: float, kind: str, **more: Any) -> str:
    """A line."""
    return element("line", x1=x1, x2=x2, y1=f"{y1:g}", y2=f"{y2:g}", kind=kind, **more)


def across(y: float, kind: str) -> str:
    """A line over the whole width."""
    return line("0", "100%", y, y, kind)


def upright(x: str, y1: float, y2: float, kind: str, **more: Any) -> str:
    """A vertical line."""
    return line(x, x, y1, y2, kind, **more)


def words(x: str, y: float, inner: str, **more: Any) -> str:
    """Text."""
    return element("text", inner, x=x, y=f"{y:g}", **more)


def picture(inner: str, height: float, **more: Any) -> str:
    """A drawing as wide as its place."""
    return element("svg", inner, kind="w", height=f"{height:g}", **more)


def icon(shape: str, size: int = 12) -> str:
    """A small sign in the text's colour."""
    how = {"width": size, "height": size, "viewBox": "0 0 12 12", "aria_hidden": "true"}
    return element("svg", shape, kind="ic", style="display:inline", **how)


def label(name: str, most: int = 16) -> str:
    """A name that fits."""
    return escape(name if len(name) <= most else f"{name[: most - 1]}…")


def interval(
    axis: Axis, y: float, mean: float, low: float, high: float, *, inside: bool, halo: bool = False
) -> str:
    """A dot with its interval; an end that is not known reaches the edge, without a cap."""
    stroke, dot = ("in", "ind") if inside else ("ou", "oud")
    parts = [line(axis(low), axis(high), y, y, stroke)]
    parts += [upright(axis(e), y - 3.5, y + 3.5, stroke) for e in (low, high) if axis.low < e < axis.high]
    parts.append(element("circle", cx=axis(mean), cy=f"{y:g}", r=4, kind=dot))
    if halo:
        parts.append(element("circle", cx=axis(mean), cy=f"{y:g}", r=7, kind="halo"))
    return "".join(parts)


def names_column(names: Sequence[tuple[str, bool]], height: float, first: float) -> str:
    """The arms' names beside a figure; bold or muted."""
    rows = []
    for k, (name, strong) in enumerate(names):
        how = {"kind": "tb"} if strong else {"kind": "t", "style": "fill:var(--muted)"}
        rows.append(words("0", first + k * ROW + 4, f"<title>{escape(name)}</title>{label(name, 12)}", **how))
    return picture("".join(rows), height)


# --- what decided an objective


def reference(view: View, position: int) -> int:
    """The arm that others are compared with: who removed most, else a proven answer, else the best mean."""
    column = view.columns[position]
    entered = view.entered(position)
    if view.is_proven and not view.settled_by_rule(position):
        return view.leader
    rivals = [e.rival for e in view.eliminations.values() if e.objective == column and e.rival >= 0]
    if rivals:
        return max(entered, key=lambda arm: (rivals.count(arm), -arm))
    sign = view.objectives[column].sign
    return max(entered, key=lambda arm: (sign * view.mean(arm, column), -arm))


def differences(view: View, position: int) -> str:
    """Every arm that reached an objective against its reference, with what does not matter shaded."""
    column = view.columns[position]
    objective, best = view.objectives[column], reference(view, position)
    others = [arm for arm in view.by_standing if arm in view.entered(position) and arm != best]
    found = {arm: view.lead(arm, best, column) for arm in others}
    slack = objective.tolerance_in_unit
    reach = slack + objective.resolution_in_unit
    ends = [e for d in found.values() for e in (d.low, d.high, d.mean) if math.isfinite(e)]
    axis = Axis(min([-1.2 * reach, *ends]), max([1.2 * reach, *ends]))
    top, rows = 34, [best, *others]
    bottom = top + ROW * len(rows)
    parts = [
        box(axis, -slack, slack, top, bottom, kind="b"),
        *(upright(axis(x), top, bottom, "bl", stroke_dasharray="3 3") for x in (-reach, reach)),
        upright(axis(0), top, bottom, "", style="stroke:var(--out)"),
        words(axis(0), 26, "does not matter", text_anchor="middle", kind="ta"),
        words("0", 11, f"← worse than {label(view.arms[best])}", kind="wide"),
        words("100%", 11, "better →", text_anchor="end", kind="wide"),
    ]
    verdicts = []
    for k, arm in enumerate(rows):
        y = top + ROW * k + ROW / 2
        parts.append(across(y, "gr"))
        if arm == best:
            middle = {"transform": "translate(-4.5 0)", "style": "fill:var(--text)"}
            parts.append(element("rect", x=axis(0), y=f"{y - 4.5:g}", width="9", height="9", **middle))
            verdicts.append(words("12", y + 4, "the reference"))
            continue
        d, (word, out) = found[arm], _verdict(view, arm, best, column)
        if d.results:
            parts.append(interval(axis, y, d.mean, d.low, d.high, inside=not out))
        shown = f"{'+' if d.mean > 0 else ''}{value(objective, d.mean)}"
        verdicts += [words("12", y + 4, shown, kind="t"), words("64", y + 4, word)]
    parts.append(_scale(axis, bottom))
    names = names_column([(view.arms[arm], arm == view.leader) for arm in rows], bottom + 24, top + ROW / 2)
    title = f"Differences in {objective.name} to {view.arms[best]}, with intervals"
    drawn = picture("".join(parts), bottom + 24, role="img", aria_label=escape(title))
    return element("div", f"{names}{drawn}{picture(''.join(verdicts), bottom + 24)}", kind="fig d3")


def _verdict(view: View, arm: int, best: int, column: int) -> tuple[str, bool]:
    """A word, and whether the arm is out."""
    left = view.eliminations.get(arm)
    if left is not None and left.objective == column:
        return "out" if left.rival in (best, -1) else f"out by {label(view.arms[left.rival], 8)}", True
    if view.behind.get(arm) == column:
        return "behind", True
    if view.close(arm, best, column):
        return "ties", False
    return "not better" if view.not_worse(best, arm, column) else "open", False


def box(axis: Axis, low: float, high: float, top: float, bottom: float, **how: Any) -> str:
    """A rectangle over a range of values."""
    width = max(float(axis(high)[:-1]) - float(axis(low)[:-1]), 0.4)
    return element(
        "rect", x=axis(low), width=f"{width:.2f}%", y=f"{top:g}", height=f"{bottom - top:g}", **how
    )


def tick_text(tick: float, axis: Axis, *, signed: bool = False) -> str:
    """A number on an axis, with no more digits than its neighbours need."""
    if abs(tick) < 1e-9 * (axis.high - axis.low):
        return "0"
    places = max(0, 1 - math.floor(math.log10(axis.high - axis.low)))
    text = f"{tick:{'+' if signed else ''},.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def _scale(axis: Axis, y: float) -> str:
    parts = [across(y, "ax")]
    for k, tick in enumerate(axis.ticks()):
        few = {"kind": "nr"} if k % 2 else {}
        parts.append(upright(axis(tick), y, y + 4, "ax"))
        parts.append(
            words(axis(tick), y + 17, tick_text(tick, axis, signed=True), text_anchor="middle", **few)
        )
    return "".join(parts)


# --- who left when


def phases(view: View) -> list[tuple[int, int, int]]:
    """(position, from, to) in results: which objective was being settled when."""
    found: list[tuple[int, int, int]] = []
    last = len(view.columns) - 1
    for before, after in pairwise(view.history()):
        position = last if before.objective > last else view.columns.index(before.objective)
        if found and found[-1][0] == position:
            found[-1] = position, found[-1][1], after.results
        elif after.results > before.results:
            found.append((position, before.results, after.results))
    return found


def race(view: View) -> str:
    """A line per arm over the results counted, until it left, on the phases of the study."""
    spans = phases(view)
    total = max([1, *(end for *_, end in spans)])
    axis = Axis(0.0, 1.3 * total)
    axis.low = 0.0
    top, rows = 24, [a for a in view.by_standing if view.measured[a]]
    bottom = top + ROW * len(rows)
    parts = []
    for k, (position, first, end) in enumerate(spans):
        parts.append(
            box(axis, first, end, top - 2, bottom, style=f"fill:var({'--tint' if k % 2 else '--sunk'})")
        )
        if (end - first) / axis.high > 0.1:
            name = view.objectives[view.columns[position]].name
            parts.append(words(axis(first), 14, f"{position + 1} {label(name, 12)}", dx=2))
    for k, arm in enumerate(rows):
        parts.append(_course(view, arm, axis, top + ROW * k + ROW / 2, total))
    parts.append(across(bottom, "ax"))
    for number, anchor in ((0, "start"), (total, "middle")):
        parts.append(upright(axis(number), bottom, bottom + 4, "ax"))
        parts.append(words(axis(number), bottom + 17, count(number), text_anchor=anchor))
    names = names_column([(view.arms[arm], arm == view.leader) for arm in rows], bottom + 24, top + ROW / 2)
    drawn = picture("".join(parts), bottom + 24, role="img", aria_label="Who left when, over results")
    return element("div", f"{names}{drawn}", kind="fig d2")


def _course(view: View, arm: int, axis: Axis, y: float, total: int) -> str:
    """One arm's line and how it ends."""
    left = view.eliminations.get(arm)
    if left is not None:
        more = f" on {label(view.objectives[left.objective].name, 12)}"
        said = element("tspan", count(left.round), style="fill:var(--text)") + element(
            "tspan", more, kind="nr"
        )
        end = axis(left.round)
        bar = upright(end, y - 5, y + 5, "ou", style="stroke-width:2")
        return f"{line('0', end, y, y, 'ou')}{bar}{words(end, y + 4, said, dx=8)}"
    end, stays = axis(total), view.standing(arm) in ("answer", "candidate")
    dot = element("circle", cx=end, cy=f"{y:g}", r=4, kind="ind" if stays else "oud")
    parts = [line("0", end, y, y, "in" if stays else "ou"), dot]
    if arm == view.leader:
        parts.append(element("circle", cx=end, cy=f"{y:g}", r=7, kind="halo"))
        parts.append(words(end, y + 4, view.called, dx=13, kind="ta"))
    elif arm in view.behind:
        on = element("tspan", f" on {label(view.objectives[view.behind[arm]].name, 12)}", kind="nr")
        parts.append(words(end, y + 4, f"behind{on}", dx=13))
    elif not stays:
        parts.append(words(end, y + 4, "withdrawn", dx=13))
    return "".join(parts)
