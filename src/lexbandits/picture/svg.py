"""What figures of a study are drawn with; percent for x and pixels for y, so drawings stretch."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from markupsafe import Markup, escape

from lexbandits.elements import Part as Part
from lexbandits.elements import join as join
from lexbandits.elements import round_step
from lexbandits.elements import tag as tag

ROW = 32  # pixels
LONG, LONGER = 24, 52  # letters of a name: it has a line of its own on a phone, or everywhere


def kept_together(markup: Markup, units: Iterable[str]) -> Markup:
    """No line ends between a number and its unit; attributes stay as they are.

    >>> str(kept_together(tag("b", "3 ms", title="3 ms"), ["ms"])) == '<b title="3 ms">3\\xa0ms</b>'
    True
    """
    signs = "|".join(re.escape(escape(unit)) for unit in {*units, "%"} if unit)
    return Markup(re.sub(rf"(?<=\d) (?=(?:{signs})(?!\w)[^<>]*<)", "\xa0", markup))


# --- axes


class Axis:
    """From values to percent of the width, with a few round ticks; at least two."""

    def __init__(
        self, ends: Iterable[float | None], most: int = 4, before: float = 0.06, after: float | None = None
    ) -> None:
        known = [end for end in ends if end is not None and math.isfinite(end)] or [0.0, 1.0]
        low, high = min(known), max(known)
        if not high > low:
            low, high = low - (0.5 * abs(low) or 1.0), high + (0.5 * abs(high) or 1.0)
        width = high - low
        self.low, self.high = low - before * width, high + (before if after is None else after) * width
        self.step, self.places = round_step(self.low, self.high, most)

    @property
    def ticks(self) -> list[float]:
        """Round numbers inside."""
        first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
        return [k * self.step for k in range(first, last + 1)]

    def share(self, number: float) -> float:
        """Percent of the width; beyond the ends, at the end."""
        return 100 * min(max((number - self.low) / (self.high - self.low), 0.0), 1.0)

    def __call__(self, number: float) -> str:
        """The same as an attribute."""
        return f"{self.share(number):.2f}%"

    def text(self, tick: float, signed: bool = False) -> str:
        """What stands at a tick: no digit fewer than its step has."""
        shown = f"{tick + 0.0:{'+' if signed and round(tick, self.places) else ''},.{self.places}f}"
        return shown.replace("-", "−")

    def scale(
        self,
        signed: bool = False,
        text: Callable[[float], Part] | None = None,
        ticks: Sequence[float] | None = None,
        kept: float | None = None,
    ) -> Markup:
        """The axis with its ticks, 22 pixels high; on a phone every other one but `kept` has no number."""
        shown = self.ticks if ticks is None else ticks
        marks = [
            (
                upright(self(tick), 0, 4, "ax"),
                words(
                    self(tick),
                    16,
                    text(tick) if text else self.text(tick, signed),
                    text_anchor="middle",
                    kind="nr" if k % 2 and len(shown) > 2 and tick != kept else None,
                ),
            )
            for k, tick in enumerate(shown)
        ]
        return drawing(22, across(0.5, "ax"), marks, aria_hidden="true")


# --- shapes


def drawing(height: float, *parts: Part, **more: Any) -> Markup:
    """A drawing as wide as its place."""
    return tag("svg", *parts, kind="w", height=f"{height:g}", **more)


def line(x1: str, x2: str, y1: float, y2: float, kind: str) -> Markup:
    """A line."""
    return tag("line", kind=kind, x1=x1, x2=x2, y1=f"{y1:g}", y2=f"{y2:g}")


def across(y: float, kind: str) -> Markup:
    """A line over the whole width."""
    return line("0", "100%", y, y, kind)


def upright(x: str, y1: float, y2: float, kind: str) -> Markup:
    """A vertical line."""
    return line(x, x, y1, y2, kind)


def words(x: str, y: float, text: Part, **more: Any) -> Markup:
    """Text."""
    return tag("text", text, x=x, y=f"{y:g}", **more)


def box(axis: Axis, low: float, high: float, top: float, height: float, kind: str) -> Markup:
    """A rectangle over a range of values; what lies beyond the axis is cut."""
    width = max(axis.share(high) - axis.share(low), 0.4)
    return tag("rect", kind=kind, x=axis(low), width=f"{width:.2f}%", y=f"{top:g}", height=f"{height:g}")


def dot(x: str, y: float, look: str, ringed: bool = False) -> Part:
    """A mark, with a ring around that of the answer."""
    return [
        tag("circle", kind=f"dot {look}", cx=x, cy=f"{y:g}", r=4),
        ringed and tag("circle", kind="halo", cx=x, cy=f"{y:g}", r=7),
    ]


def whisker(
    axis: Axis,
    y: float,
    look: str,
    mean: float | None,
    low: float | None,
    high: float | None,
    ringed: bool = False,
) -> Part:
    """A mean with its interval; an end that is not known reaches the edge, without a cap."""
    if mean is None:
        return None
    ends = -math.inf if low is None else low, math.inf if high is None else high
    caps = [upright(axis(e), y - 4, y + 4, f"mark {look}") for e in ends if axis.low <= e <= axis.high]
    return [line(axis(ends[0]), axis(ends[1]), y, y, f"mark {look}"), caps, dot(axis(mean), y, look, ringed)]


def table_of(
    heads: Part, rows: Sequence[tuple[str, str, str, Part, Part]], scale: Markup, said: str
) -> Markup:
    """A table whose middle column is a drawing on a common axis; rows: name, look, label, drawing, words."""
    body = [
        tag(
            "tr",
            tag("th", tag("span", name), scope="row", role="rowheader", title=name),
            tag("td", drawing(ROW, drawn, role="img", aria_label=label), role="cell"),
            tag("td", tag("span", words_), role="cell", kind="said"),
            role="row",
            kind=look,
            data_key=name,
        )
        for name, look, label, drawn, words_ in rows
    ]
    unseen = [tag("span", text, kind="unseen") for text in ("Arm", said)]
    ends = [tag("th", text, scope="col", role="columnheader") for text in (unseen[0], heads, unseen[1])]
    cells = [tag("td", inner, role="cell") for inner in (None, scale, None)]
    longest = max(len(name) for name, *_ in rows)
    look = "fig longer" if longest > LONGER else "fig long" if longest > LONG else "fig"
    width = f"width:{min(max(96, 7 * longest + 16), 200)}px"
    return tag(
        "table",
        tag("colgroup", tag("col", kind="who", style=width), tag("col"), tag("col", kind="said")),
        tag("thead", tag("tr", ends, role="row"), role="rowgroup"),
        tag("tbody", body, role="rowgroup"),
        tag("tfoot", tag("tr", cells, role="row"), role="rowgroup", aria_hidden="true"),
        kind=look,
        role="table",
    )
