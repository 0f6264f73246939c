"""Figures of curves as SVG, for light and dark screens: panels side by side, one legend below them."""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from markupsafe import Markup

from lexbandits._arrays import Vector
from lexbandits._files import beside
from lexbandits._html import Part, join, round_step, tag
from lexbandits._printable import printable

WIDTH, LEFT, TOP, BOTTOM = 230, 58, 26, 40  # pixels: of a panel, and around it
LINE, LETTER, SWATCH = 18, 6.2, 30  # pixels: a row of the legend, a letter in it, the line before a name
EDGE = 10.0  # symlog: linear between −EDGE and EDGE
LIGHT = (
    "#1f77b4", "#e06c00", "#2a942a", "#d62728", "#8558b0",
    "#8c564b", "#d45fb0", "#6f6f6f", "#8f9018", "#1298a8",
)  # fmt: skip
DARK = (
    "#79aefc", "#ffb066", "#84d67b", "#ff8a8b", "#c3a8ec",
    "#d0a195", "#f5a6da", "#b9bec6", "#d3d46c", "#78d6e4",
)  # fmt: skip
DASHES = ("", "6 3", "1.5 3", "7 3 1.5 3")
BOUND = -1  # the look of a bound: the colour of text, dashed
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


class Curve(NamedTuple):
    """A line with its name, a `look` (a colour, then a dash), and perhaps a band around it."""

    name: str  # "": not in the legend
    x: Vector
    y: Vector
    look: int = 0
    band: tuple[Vector, Vector] | None = None
    thin: bool = False
    dots: bool = False


class Panel(NamedTuple):
    """Curves on common axes, which are "linear", "log" or "symlog"; `level` is a grey line across."""

    curves: Sequence[Curve]
    title: str = ""
    x_label: str = ""
    y_label: str = ""
    x_scale: str = "linear"
    y_scale: str = "linear"
    level: float | None = None


class Drawn:
    """What a notebook shows as SVG and `save` writes."""

    title: str

    @property
    def alternative(self) -> str:
        """What is drawn, in words."""
        raise NotImplementedError

    def _repr_svg_(self) -> str:
        raise NotImplementedError

    def _svg(self, size: tuple[float, float], kind: str, style: str, *parts: Part) -> str:
        drawn = tag(
            "svg",
            tag("title", self.title),
            tag("desc", self.alternative),
            tag("style", Markup(style)),
            tag("rect", kind="paper", width="100%", height="100%"),
            parts,
            xmlns="http://www.w3.org/2000/svg",
            kind=kind,
            viewBox="0 0 {:g} {:g}".format(*size),
            width=f"{size[0]:g}",
            height=f"{size[1]:g}",
            role="img",
        )
        return printable(drawn, lines=True)  # XML has no words for other signs

    def _html(self) -> str:
        look = "svg{max-width:100%;height:auto}:root{color-scheme:light dark}"
        head = [tag("meta", charset="utf-8"), tag("title", self.title), tag("style", Markup(look))]
        drawn = Markup(self._repr_svg_()), tag("p", self.alternative)
        return f"<!doctype html>\n{tag('html', tag('head', head), tag('body', drawn), lang='en')}"

    def save(self, path: str | Path) -> Path:
        """Write a file.svg or file.html, which needs no other; the same figure gives the same bytes."""
        path = Path(path)
        made = {".svg": self._repr_svg_, ".html": self._html}.get(path.suffix.lower())
        if made is None:
            raise ValueError(f"a figure is written as SVG or HTML: {path.name!r} must end in .svg or .html")
        with beside(path) as new:
            new.write_text(made() + "\n", "utf-8", "backslashreplace")
        return path


@dataclass(frozen=True)
class Figure(Drawn):
    """Panels side by side. A notebook shows it; `save` writes it."""

    panels: tuple[Panel, ...]
    title: str
    height: float = 170  # pixels of a panel

    def _repr_svg_(self) -> str:
        names = {curve.name: curve for panel in self.panels for curve in panel.curves if curve.name}
        width = len(self.panels) * (WIDTH + LEFT) + 24
        below = TOP + self.height + BOTTOM
        entries, rows = _legend(list(names.values()), width, below)
        size = width, below + LINE * rows + 8
        panels = [_panel(panel, k, self.height) for k, panel in enumerate(self.panels)]
        return self._svg(size, "curves", _style(), panels, entries)

    @property
    def alternative(self) -> str:
        """What is drawn, in words: where each line starts and ends."""
        return " ".join(_in_words(panel) for panel in self.panels)


def _style() -> str:
    def colours(paper: str, text: str, muted: str, grid: str, palette: Iterable[str]) -> str:
        rules = {
            ".paper": f"fill:{paper}",
            "text,.bound": f"fill:{text};color:{text}",
            ".axis": f"stroke:{muted}",
        }
        rules |= {".number": f"fill:{muted}", ".grid": f"stroke:{grid}"}
        rules |= {f".c{k}": f"color:{colour}" for k, colour in enumerate(palette)}
        return "".join(
            f"{','.join(f'.curves {part}' for part in names.split(','))}{{{rule}}}"
            for names, rule in rules.items()
        )

    light = colours("#fff", "#191b1f", "#5b616a", "#e4e4e0", LIGHT)
    dark = colours("#16181b", "#e7e9ec", "#a2a9b3", "#2c3036", DARK)
    font = ".curves text{font:11px -apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
    return f"{font}{light}@media (prefers-color-scheme:dark){{{dark}}}"


# --- a panel


def _in_words(panel: Panel) -> str:
    ends = [
        f"{curve.name} from {curve.y[0]:.4g} to {curve.y[-1]:.4g}"
        for curve in panel.curves
        if curve.name and len(curve.y)
    ]
    axes = " over ".join(filter(None, (panel.y_label, panel.x_label)))
    return f"{': '.join(filter(None, (panel.title, axes)))}: {', '.join(ends)}."


def _panel(panel: Panel, place: int, height: float) -> Markup:
    left, bottom = LEFT + place * (WIDTH + LEFT), TOP + height
    x = _Scale(panel.x_scale, (curve.x for curve in panel.curves), (left, left + WIDTH), room=0.0)
    heights = [curve.y for curve in panel.curves] + [np.array([] if panel.level is None else [panel.level])]
    heights += [end for curve in panel.curves if curve.band for end in curve.band]
    y = _Scale(panel.y_scale, heights, (bottom, TOP))
    middle, (wide, high) = left + WIDTH / 2, (WIDTH + 2, height + 4)
    inside = {
        "x": left,
        "y": TOP - 2,
        "width": wide,
        "height": high,
        "viewBox": f"{left} {TOP - 2} {wide} {high}",
    }
    across = [_axis(left, left + WIDTH, at, at, "grid") for _, at in y.ticks]
    upright = [_axis(at, at, TOP, bottom, "grid") for _, at in x.ticks]
    level = None if panel.level is None else _axis(left, left + WIDTH, y(panel.level), y(panel.level), "axis")
    frame = [_axis(left, left + WIDTH, bottom, bottom, "axis"), _axis(left, left, TOP, bottom, "axis")]
    numbers = [_text(at, bottom + 14, text, "middle", "number") for text, at in x.ticks]
    numbers += [_text(left - 5, at + 4, text, "end", "number") for text, at in y.ticks]
    turned = f"rotate(-90 {left - LEFT + 11:g} {TOP + height / 2:g})"
    return tag(
        "g",
        [across, upright],
        tag(
            "svg", level, [_drawn(curve, x, y) for curve in panel.curves], **inside
        ),  # cuts off what is beyond
        frame,
        numbers,
        _text(middle, TOP - 10, panel.title, "middle"),
        _text(middle, bottom + 31, panel.x_label, "middle"),
        panel.y_label
        and _text(left - LEFT + 11, TOP + height / 2, panel.y_label, "middle", transform=turned),
    )


def _drawn(curve: Curve, x: "_Scale", y: "_Scale") -> Part:
    places = x.of(curve.x)
    band, parts = curve.band, [tag("path", d=_path(places, y.of(curve.y)), **_pen(curve))]
    if band is not None:
        around = np.concatenate([places, places[::-1]]), np.concatenate([y.of(band[0]), y.of(band[1])[::-1]])
        parts.insert(
            0, tag("path", kind=_kind(curve), d=_path(*around), fill="currentColor", fill_opacity=0.2)
        )
    if curve.dots:
        marks = zip(places.tolist(), y.of(curve.y).tolist(), strict=True)
        parts += [
            tag("circle", kind=_kind(curve), cx=f"{a:.1f}", cy=f"{b:.1f}", r=2, fill="currentColor")
            for a, b in marks
        ]
    return parts


def _kind(curve: Curve) -> str:
    return "bound" if curve.look == BOUND else f"c{curve.look % len(LIGHT)}"


def _pen(curve: Curve) -> dict[str, object]:
    dash = "4 3" if curve.look == BOUND else DASHES[curve.look // len(LIGHT) % len(DASHES)]
    width = 0.7 if curve.thin else 1.5
    return {
        "kind": _kind(curve), "fill": "none", "stroke": "currentColor", "stroke_width": width,
        "stroke_dasharray": dash, "stroke_linejoin": "round",
    }  # fmt: skip


def _path(xs: Vector, ys: Vector) -> str:
    """Straight pieces; what is no number is left out."""
    known = np.isfinite(xs) & np.isfinite(ys)
    points = zip(xs[known].tolist(), ys[known].tolist(), strict=True)
    return " ".join(f"{'L' if k else 'M'}{a:.1f} {b:.1f}" for k, (a, b) in enumerate(points))


def _axis(x1: float, x2: float, y1: float, y2: float, kind: str) -> Markup:
    ends = {"x1": x1, "x2": x2, "y1": y1, "y2": y2}
    return tag("line", kind=kind, **{name: f"{end:.1f}" for name, end in ends.items()})


def _text(x: float, y: float, text: str, anchor: str, kind: str | None = None, **more: object) -> Markup:
    return tag("text", text, x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, kind=kind, **more)


def _legend(curves: Sequence[Curve], width: float, top: float) -> tuple[Part, int]:
    """Names with their lines, as many in a row as there is room for."""
    column = SWATCH + LETTER * max((len(curve.name) for curve in curves), default=0) + 14
    beside = max(1, min(len(curves), int((width - 16) // column)))
    shown: list[Markup] = []
    for k, curve in enumerate(curves):
        x, y = 12 + k % beside * column, top + LINE * (k // beside) + 10
        shown += [
            tag("path", d=f"M{x:.1f} {y - 4:.1f} h{SWATCH - 8}", **_pen(curve)),
            _text(x + SWATCH - 2, y, curve.name, "start"),
        ]
    return join(shown), -(-len(curves) // beside)


# --- scales


class _Scale:
    """From values to pixels, with a few ticks: what stands there, and where that is."""

    def __init__(
        self, kind: str, values: Iterable[Vector], pixels: tuple[float, float], room: float = 0.05
    ) -> None:
        self._forward: Callable[[Vector], Vector] = {"linear": _same, "log": _log, "symlog": _symlog}[kind]
        self._pixels = pixels
        known = self._forward(np.concatenate([np.empty(0), *values]))
        known = known[np.isfinite(known)]
        low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
        if not high > low:
            low, high = low - 0.5, high + 0.5
        self._low, self._high = low - room * (high - low), high + room * (high - low)
        made = {"linear": self._linear, "log": self._decades, "symlog": self._both_ways}[kind]
        self.ticks = [(text, self(value)) for text, value in made()]

    def of(self, values: Vector) -> Vector:
        """Many values."""
        start, stop = self._pixels
        return start + (self._forward(values) - self._low) / (self._high - self._low) * (stop - start)

    def __call__(self, value: float) -> float:
        return float(self.of(np.array([value]))[0])

    def _linear(self) -> Iterator[tuple[str, float]]:
        step, places = round_step(self._low, self._high, 6)
        for k in range(math.ceil(self._low / step - 1e-9), math.floor(self._high / step + 1e-9) + 1):
            yield f"{k * step + 0.0:,.{places}f}".replace("-", "−"), k * step

    def _decades(self) -> Iterator[tuple[str, float]]:
        """Powers of ten; where these are too few, multiples of them too."""
        powers = [10.0**k for k in range(math.floor(self._low), math.ceil(self._high) + 1)]
        for factors in ((1,), (1, 3), (1, 2, 5)):
            every = (factor * power for power in powers for factor in factors)
            inside = [value for value in every if self._low <= math.log10(value) <= self._high]
            if len(inside) >= 3:
                break
        for value in inside[:: 1 + (len(inside) - 1) // 7]:
            yield _number(value), value

    def _both_ways(self) -> Iterator[tuple[str, float]]:
        powers = [EDGE * 10.0**k for k in range(max(1, math.floor(max(-self._low, self._high))))]
        powers = powers[:: 1 + (len(powers) - 1) // 5]
        for value in [-power for power in reversed(powers)] + [0.0, *powers]:
            if self._low <= float(_symlog(np.array([value]))[0]) <= self._high:
                yield _number(value), value


def _same(values: Vector) -> Vector:
    return np.asarray(values, np.float64)


def _log(values: Vector) -> Vector:
    known = np.where(np.asarray(values) > 0, values, math.nan)
    return np.asarray(np.log10(known), np.float64)


def _symlog(values: Vector) -> Vector:
    size = np.abs(values)
    return np.sign(values) * (np.minimum(size, EDGE) / EDGE + np.log10(np.maximum(size, EDGE) / EDGE))


def _number(value: float) -> str:
    """A tick of a logarithmic axis.

    >>> [_number(value) for value in (-200, 0, 0.05, 1e6)]
    ['−200', '0', '0.05', '10⁶']
    """
    power = math.log10(abs(value)) if value else 0.0
    if abs(power) >= 5 and power == round(power):
        return f"{'−' if value < 0 else ''}10{f'{power:.0f}'.translate(SUPERSCRIPTS)}"
    return f"{value:,.10g}".replace("-", "−")
