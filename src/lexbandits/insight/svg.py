"""Figures of the report as SVG: percent for x, pixels for y, so that they stretch without a script."""

import math
from collections.abc import Sequence
from html import escape

from lexbandits.insight.view import View
from lexbandits.insight.words import count, value

TICK = '<path d="M2 6.4 4.8 9.2 10 3.4" fill="none" stroke="currentColor" stroke-width="1.8"/>'
ROW = 28


class Axis:
    """From values to percent of the width."""

    def __init__(self, low: float, high: float) -> None:
        room = 0.06 * (high - low) or 0.5 * abs(high) or 1.0
        self.low, self.high = low - room, high + room

    def __call__(self, number: float) -> str:
        share = (number - self.low) / (self.high - self.low)
        return f"{100 * min(max(share, 0.0), 1.0):.2f}%"

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers inside."""
        span = self.high - self.low
        step = 10.0 ** math.floor(math.log10(span / most))
        step = next(step * k for k in (1, 2, 5, 10, 20) if span / (step * k) <= most)
        first = math.ceil(self.low / step)
        return [k * step for k in range(first, math.floor(self.high / step) + 1)]


def icon(shape: str, size: int = 12) -> str:
    """A small sign in the text's colour."""
    return f'<svg class="ic" style="display:inline" width="{size}" height="{size}" viewBox="0 0 12 12" aria-hidden="true">{shape}</svg>'


WARN = (
    '<path d="M6 1 11.3 10.6H.7z" fill="none" stroke="currentColor" stroke-width="1.2" stroke-linejoin="round"/>'
    '<path d="M6 4.4v3M6 8.5v.9" stroke="currentColor" stroke-width="1.2"/>'
)


def label(name: str, most: int = 16) -> str:
    """A name that fits."""
    return escape(name if len(name) <= most else f"{name[: most - 1]}…")


def interval(
    axis: Axis, y: float, mean: float, low: float, high: float, *, inside: bool, halo: bool = False
) -> str:
    """A dot with its interval; an end that is not known reaches the edge, without a cap."""
    line, dot = ("in", "ind") if inside else ("ou", "oud")
    parts = [f'<line x1="{axis(low)}" x2="{axis(high)}" y1="{y}" y2="{y}" class="{line}"/>']
    for end in (low, high):
        if axis.low < end < axis.high:
            parts.append(
                f'<line x1="{axis(end)}" x2="{axis(end)}" y1="{y - 3.5}" y2="{y + 3.5}" class="{line}"/>'
            )
    parts.append(f'<circle cx="{axis(mean)}" cy="{y}" r="4" class="{dot}"/>')
    if halo:
        parts.append(f'<circle cx="{axis(mean)}" cy="{y}" r="7" class="halo"/>')
    return "".join(parts)


def names_column(names: Sequence[tuple[str, bool]], height: int, first: float) -> str:
    """The arms' names beside a figure; bold or muted."""
    rows = []
    for k, (name, strong) in enumerate(names):
        kind = 'class="tb"' if strong else 'class="t" style="fill:var(--muted)"'
        rows.append(
            f'<text x="0" y="{first + k * ROW + 4}" {kind}><title>{escape(name)}</title>{label(name, 12)}</text>'
        )
    return f'<svg class="w" height="{height}">{"".join(rows)}</svg>'


# --- what decided an objective


def reference(view: View, position: int) -> int:
    """The arm that others are compared with on an objective: who removed most, else the best by its mean."""
    column = view.columns[position]
    entered = view.entered(position)
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
    rows, top = [best, *others], 34
    bottom = top + ROW * len(rows)
    parts = [
        f'<rect x="{axis(-slack)}" width="{_width(axis, -slack, slack)}" y="{top}" height="{bottom - top}" class="b"/>',
        *(
            f'<line x1="{axis(x)}" x2="{axis(x)}" y1="{top}" y2="{bottom}" class="bl" stroke-dasharray="3 3"/>'
            for x in (-reach, reach)
        ),
        f'<line x1="{axis(0)}" x2="{axis(0)}" y1="{top}" y2="{bottom}" style="stroke:var(--out)"/>',
        f'<text x="{axis(0)}" y="26" text-anchor="middle" class="ta">does not matter</text>',
        f'<text x="0" y="11" class="wide">← worse than {label(view.arms[best])}</text>',
        '<text x="100%" y="11" text-anchor="end" class="wide">better →</text>',
    ]
    verdicts = []
    for k, arm in enumerate(rows):
        y = top + ROW * k + ROW / 2
        parts.append(f'<line x1="0" x2="100%" y1="{y}" y2="{y}" class="gr"/>')
        if arm == best:
            parts.append(
                f'<rect x="{axis(0)}" y="{y - 4.5}" width="9" height="9" transform="translate(-4.5 0)" style="fill:var(--text)"/>'
            )
            verdicts.append(f'<text x="12" y="{y + 4}">the reference</text>')
            continue
        d = found[arm]
        left = view.eliminations.get(arm)
        out = left is not None and left.objective == column
        if d.results:
            parts.append(interval(axis, y, d.mean, d.low, d.high, inside=not out))
        word = "out" if out else "ties" if view.close(arm, best, column) else "open"
        if left is not None and out and left.rival not in (best, -1):
            word = f"out by {label(view.arms[left.rival], 8)}"
        sign = "+" if d.mean > 0 else ""
        shown = f"{sign}{value(objective, d.mean)}"
        verdicts.append(
            f'<text x="12" y="{y + 4}" class="t">{shown}</text><text x="64" y="{y + 4}">{word}</text>'
        )
    parts.append(_scale(axis, bottom))
    names = [(view.arms[arm], arm == view.leader) for arm in rows]
    height = bottom + 24
    title = f"Differences in {objective.name} to {view.arms[best]}, with intervals"
    return (
        f'<div class="fig d3">{names_column(names, height, top + ROW / 2)}'
        f'<svg class="w" height="{height}" role="img" aria-label="{escape(title)}">{"".join(parts)}</svg>'
        f'<svg class="w" height="{height}">{"".join(verdicts)}</svg></div>'
    )


def _width(axis: Axis, low: float, high: float) -> str:
    return f"{float(axis(high)[:-1]) - float(axis(low)[:-1]):.2f}%"


def tick_text(tick: float, axis: Axis, *, signed: bool = False) -> str:
    """A number on an axis, with no more digits than its neighbours need."""
    if abs(tick) < 1e-9 * (axis.high - axis.low):
        return "0"
    places = max(0, 1 - math.floor(math.log10(axis.high - axis.low)))
    text = f"{tick:{'+' if signed else ''},.{places}f}"
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text.replace("-", "−")


def _scale(axis: Axis, y: float) -> str:
    parts = [f'<line x1="0" x2="100%" y1="{y}" y2="{y}" class="ax"/>']
    for k, tick in enumerate(axis.ticks()):
        text = tick_text(tick, axis, signed=True)
        parts.append(f'<line x1="{axis(tick)}" x2="{axis(tick)}" y1="{y}" y2="{y + 4}" class="ax"/>')
        few = ' class="nr"' if k % 2 else ""
        parts.append(f'<text x="{axis(tick)}" y="{y + 17}" text-anchor="middle"{few}>{text}</text>')
    return "".join(parts)


# --- who left when


def phases(view: View) -> list[tuple[int, int, int]]:
    """(position, from, to) in results: which objective was being settled when."""
    found: list[tuple[int, int, int]] = []
    moments = view.history()
    for before, after in zip(moments, moments[1:], strict=False):
        last = len(view.columns) - 1
        position = last if before.objective == len(view.columns) else view.columns.index(before.objective)
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
    rows, top = [a for a in view.by_standing if view.measured[a]], 24
    bottom = top + ROW * len(rows)
    parts = []
    for k, (position, first, end) in enumerate(spans):
        fill = "--tint" if k % 2 else "--sunk"
        parts.append(
            f'<rect x="{axis(first)}" width="{_width(axis, first, end)}" y="{top - 2}" height="{bottom - top + 2}" style="fill:var({fill})"/>'
        )
        if (end - first) / axis.high > 0.1:
            name = view.objectives[view.columns[position]].name
            parts.append(f'<text x="{axis(first)}" dx="2" y="14">{position + 1} {label(name, 12)}</text>')
    for k, arm in enumerate(rows):
        y = top + ROW * k + ROW / 2
        left = view.eliminations.get(arm)
        end = left.round if left is not None else total
        line = "in" if left is None and view.standing(arm) in ("answer", "candidate") else "ou"
        parts.append(f'<line x1="0" x2="{axis(end)}" y1="{y}" y2="{y}" class="{line}"/>')
        if left is not None:
            on = view.objectives[left.objective].name
            parts.append(
                f'<line x1="{axis(end)}" x2="{axis(end)}" y1="{y - 5}" y2="{y + 5}" class="ou" style="stroke-width:2"/>'
            )
            more = f'<tspan class="nr"> on {label(on, 12)}</tspan>'
            text = f'<tspan style="fill:var(--text)">{count(end)}</tspan>{more}'
            parts.append(f'<text x="{axis(end)}" dx="8" y="{y + 4}">{text}</text>')
            continue
        parts.append(f'<circle cx="{axis(end)}" cy="{y}" r="4" class="{"ind" if line == "in" else "oud"}"/>')
        if arm == view.leader:
            said = "the answer" if view.state == "finished" else "so far"
            parts.append(f'<circle cx="{axis(end)}" cy="{y}" r="7" class="halo"/>')
            parts.append(f'<text x="{axis(end)}" dx="13" y="{y + 4}" class="ta">{said}</text>')
        elif line == "ou":
            parts.append(f'<text x="{axis(end)}" dx="13" y="{y + 4}">withdrawn</text>')
    parts.append(f'<line x1="0" x2="100%" y1="{bottom}" y2="{bottom}" class="ax"/>')
    for number, anchor in ((0, "start"), (total, "middle")):
        parts.append(
            f'<line x1="{axis(number)}" x2="{axis(number)}" y1="{bottom}" y2="{bottom + 4}" class="ax"/>'
        )
        parts.append(
            f'<text x="{axis(number)}" y="{bottom + 17}" text-anchor="{anchor}">{count(number)}</text>'
        )
    names = [(view.arms[arm], arm == view.leader) for arm in rows]
    height = bottom + 24
    return (
        f'<div class="fig d2">{names_column(names, height, top + ROW / 2)}'
        f'<svg class="w" height="{height}" role="img" aria-label="Who left when, over results">{"".join(parts)}</svg></div>'
    )
