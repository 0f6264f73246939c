"""What figures of a study are drawn with; percent for x and pixels for y, so drawings stretch."""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from markupsafe import Markup, escape

from lexbandits._html import Part as Part
from lexbandits._html import join as join
from lexbandits._html import round_step
from lexbandits._html import tag as tag

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


def shortened(text: str, letters: float) -> str:
    """At most so many letters of it.

    >>> shortened("latency", 5), shortened("cost", 5)
    ('late…', 'cost')
    """
    return text if len(text) <= letters else f"{text[: max(int(letters) - 1, 1)]}…"


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
    always: tuple[float | None, float | None] = (None, None),
) -> Part:
    """A mean with its interval, if it has one, and a thin line for one that holds at all times.

    An end that is not known has no cap.
    """
    if mean is None:
        return None
    thin = None not in always and line(axis(always[0] or 0.0), axis(always[1] or 0.0), y, y, f"always {look}")
    if low is None and high is None:
        return [thin, dot(axis(mean), y, look, ringed)]
    ends = -math.inf if low is None else low, math.inf if high is None else high
    caps = [upright(axis(e), y - 4, y + 4, f"mark {look}") for e in ends if axis.low <= e <= axis.high]
    drawn = line(axis(ends[0]), axis(ends[1]), y, y, f"mark {look}")
    return [thin, drawn, caps, dot(axis(mean), y, look, ringed)]


def bracket(axis: Axis, y: float, end: float | None, inward: int) -> Part:
    """A bracket at a proven bound; `inward` is 1 where the truth lies to its right, −1 to its left."""
    if end is None or not math.isfinite(end):
        return None
    path = f"M{5 * inward} {y - 9:g}H0V{y + 9:g}H{5 * inward}"
    return tag("svg", tag("path", kind="proof", d=path), x=axis(end), overflow="visible", width=1, height=1)


# --- rows on a common axis


class Row(NamedTuple):
    """A name, what is drawn of it (`label` says it in words), and what stands beside it."""

    name: str
    look: str  # "", "first" or "gone"
    label: str
    drawn: Part
    value: str = ""
    more: str = ""

    @property
    def beside(self) -> Part:
        """The value set off, and what follows it."""
        return [self.value and tag("span", self.value, kind="v"), " " if self.value else "", self.more]


@dataclass(frozen=True)
class Chart:
    """Rows on a common axis: a table whose middle column is drawn, or part of a figure that is one SVG."""

    rows: Sequence[Row]
    scale: Markup
    said: str  # what stands beside the drawings
    heads: Part = None  # above them, in HTML
    signs: Part = None  # the same in SVG
    ground: Callable[[float], Part] = lambda height: None  # behind all rows, as high as they are
    height: float = ROW  # of a row
    caption: str = ""

    def table(self) -> Markup:
        """As a table."""
        body = [
            tag(
                "tr",
                tag("th", tag("span", row.name), scope="row", role="rowheader", title=row.name),
                tag("td", self._drawn(row), role="cell"),
                tag("td", tag("span", row.beside), role="cell", kind="reading"),
                role="row",
                kind=row.look,
                data_key=row.name,
            )
            for row in self.rows
        ]
        unseen = [tag("span", text, kind="unseen") for text in ("Arm", self.said)]
        ends = [
            tag("th", text, scope="col", role="columnheader") for text in (unseen[0], self.heads, unseen[1])
        ]
        cells = [tag("td", inner, role="cell") for inner in (None, self.scale, None)]
        longest = max((len(row.name) for row in self.rows), default=0)
        look = "fig longer" if longest > LONGER else "fig long" if longest > LONG else "fig"
        width = f"width:{min(max(96, 7 * longest + 16), 200)}px"
        return tag(
            "table",
            tag("colgroup", tag("col", kind="arm", style=width), tag("col"), tag("col", kind="reading")),
            tag("thead", tag("tr", ends, role="row"), role="rowgroup"),
            tag("tbody", body, role="rowgroup"),
            tag("tfoot", tag("tr", cells, role="row"), role="rowgroup", aria_hidden="true"),
            kind=look,
            role="table",
        )

    def _drawn(self, row: Row) -> Markup:
        inside = self.ground(self.height), row.drawn
        return drawing(self.height, inside, role="img", aria_label=row.label)
