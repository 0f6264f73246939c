"""Figures of a study, a verdict or a forecast as SVG, in the words and marks of page and report."""

import math
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import chain, pairwise
from textwrap import wrap
from typing import Any

import numpy as np
from markupsafe import Markup

from lexbandits.curves import Drawn
from lexbandits.forecasting.forecast import Forecast
from lexbandits.forecasting.forecast import forecast as played_on
from lexbandits.judging.verdict import Verdict
from lexbandits.outcomes import ClaimVerdict
from lexbandits.report.html_page import page_of, style
from lexbandits.study.number_format import about, count, many, percent
from lexbandits.study.states import TrialState
from lexbandits.study.study import Study
from lexbandits.views import drawing
from lexbandits.views.arms_table import AnyView, losses
from lexbandits.views.drawing import MIDDLE, bar
from lexbandits.views.history import Moment, history_of
from lexbandits.views.study_view import StudyView
from lexbandits.views.svg import (
    ROW,
    Axis,
    Chart,
    Part,
    Row,
    across,
    box,
    join,
    shortened,
    tag,
    upright,
    words,
)
from lexbandits.views.verdict_view import VerdictView

__all__ = ["evidence", "forecast", "intervals", "pulls", "race", "workers"]

WIDTH, PAD = 480, 14  # pixels
LETTERS = (WIDTH - 2 * PAD) / 6.2  # of 11 pixels, in a line
TALL = 104  # pixels: a row of curves
MOST_TRIALS = 2000  # drawn of `workers`
UNITS = (("seconds", 1, 120), ("minutes", 60, 7200), ("hours", 3600, 172_800), ("days", 86_400, math.inf))
LOOKS = {  # how trials are drawn: what lasts long is broad and lies below what was told meanwhile
    TrialState.LATE: ("lost late", 20.0),
    TrialState.EXPIRED: ("lost", 20.0),
    TrialState.OPEN: ("band", 20.0),
    TrialState.FAILED: ("lost", 10.0),
    TrialState.TOLD: ("fillbar", 10.0),
}
OWN = [  # rules of the style sheet of a figure, before those it has of `style.css`
    (".paper", "fill: var(--panel)"),
    ("text", "font: 11px -apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif"),
    (".title", "fill: var(--text); font-size: 14px; font-weight: 600"),
    (".caption", "fill: var(--text); font-weight: 600"),
    (".name,.v", "fill: var(--text)"),
    (".first", "font-weight: 600"),
    (".gone", "fill: var(--muted)"),
]


@dataclass(frozen=True)
class Figure(Drawn):
    """Charts below one another. A notebook shows it; `save` writes it to .svg, or to .html with tables."""

    title: str
    hint: str
    charts: tuple[Chart, ...]
    units: tuple[str, ...] = field(default=(), repr=False)

    @property
    def alternative(self) -> str:
        """What is drawn, in words."""
        said = ([chart.caption, *(row.label for row in chart.rows)] for chart in self.charts)
        return ". ".join(filter(None, [*chain.from_iterable(said), self.hint]))

    def _repr_svg_(self) -> str:
        parts: list[Part] = []
        y = 8.0
        for text in wrap(self.title, 60):
            y += 18
            parts.append(words(f"{PAD}", y, text, kind="title"))
        for chart in self.charts:
            drawn, height = _below(chart, y + 10)
            y += 10 + height
            parts.append(drawn)
        for text in wrap(self.hint, 80):
            y += 15
            parts.append(words(f"{PAD}", y, text))
        return self._svg((WIDTH, y + 12), "rows", _look(), parts)

    def _html(self) -> str:
        tables = [(chart.caption and tag("h3", chart.caption), chart.table()) for chart in self.charts]
        head = tag("header", tag("h1", self.title), kind="title")
        return page_of(self.title, join([head, tables, tag("p", self.hint, kind="hint")]), self.units)


def _below(chart: Chart, top: float) -> tuple[Part, float]:
    """A chart from `top` on, and how high it is: names and what is said of them above their drawings."""
    parts: list[Part] = []
    inside = {"x": PAD, "width": WIDTH - 2 * PAD}
    y = top
    if chart.caption:
        y += 16
        parts.append(words(f"{PAD}", y - 3, shortened(chart.caption, LETTERS), kind="caption"))
    if chart.signs is not None:
        parts.append(tag("svg", chart.signs, **inside, y=f"{y:g}", height=18))
        y += 18
    each = 18 + chart.height
    rows = each * len(chart.rows)
    parts.append(tag("svg", chart.ground(rows), **inside, y=f"{y:g}", height=f"{rows:g}"))
    for row in chart.rows:
        beside = shortened(f"{row.value} {row.more}".strip(), 0.7 * LETTERS)
        value, more = beside[: len(row.value)], beside[len(row.value) :]
        name = shortened(row.name, LETTERS - len(beside) - 3)
        parts += [
            words(f"{PAD}", y + 13, name, kind=f"name {row.look}".strip()),
            words(f"{WIDTH - PAD}", y + 13, [tag("tspan", value, kind="v"), more], text_anchor="end"),
            tag("svg", row.drawn, **inside, y=f"{y + 18:g}", height=f"{chart.height:g}"),
        ]
        y += each
    parts.append(tag("svg", chart.scale, **inside, y=f"{y:g}", height=22))
    return parts, y + (22 if chart.scale else 4) - top


@cache
def _look() -> str:
    """The marks of the style sheet with their colours, for light and for dark screens."""
    sheet = style()
    light, dark = (
        dict(re.findall(r"(--\w[\w-]*): ([^;]+);", sheet.split(":root {")[k].split("}")[0])) for k in (1, 2)
    )
    marks = sheet.partition("/* marks */")[2].partition("/* ")[0]
    rules = OWN + re.findall(r"^(?:svg )?([^{]+) \{ (.*) \}$", marks, re.MULTILINE)

    def of(colours: dict[str, str], only: str) -> str:
        return "".join(
            f"{','.join(f'.rows {one.strip()}' for one in names.split(','))}"
            f"{{{re.sub(r'var[(](--[a-z0-9-]+)[)]', lambda found: colours[found[1]], rule)}}}"
            for names, rule in rules
            if only in rule
        )

    return f"{of(light, '')}@media screen and (prefers-color-scheme:dark){{{of(dark, 'var(')}}}"


# --- what is known of the arms


def intervals(study: Study | Verdict) -> Figure:
    """Where each arm's mean lies on each objective, by priority, with the band of what ties with the best."""
    view: AnyView = VerdictView(study) if isinstance(study, Verdict) else StudyView.of(study)
    charts = [
        drawing.means(view, objective, f"{k + 1} {objective.name}: {objective.rule}, {objective.matters}")
        for k, objective in enumerate(view.objectives)
    ]
    hint = f"Dot and line: {view.marks}. Shaded: ties with the best, or within the limit."
    return _figure(view, view.headline, hint, *filter(None, charts))


def evidence(study: Study) -> Figure:
    """How the interval of each difference shrank, over the results counted.

    Of the objective being settled, or on an ended study of the last one on which pairs were compared.
    """
    view = StudyView.of(study)
    estimates, position = view.estimates, view.compared_last
    column, found = estimates.columns[position], view.comparison(position)
    best, unit = estimates.index(found.reference), view.objectives[position].unit
    pairs = {row.arm: (estimates.index(row.arm), best, column) for row in found.rows}
    moments = history_of(estimates.replay, pairs.values())
    axis = Axis((0, max(1, estimates.folded)), before=0.0, after=0.03)
    rows = []
    for row in found.rows:
        known = [m for m in moments if all(map(math.isfinite, m.differences[pairs[row.arm]]))]
        out = row.verdict in (ClaimVerdict.WORSE, ClaimVerdict.BEATEN)
        more = drawing.verdict_text(view, row, found) if known else "too few for an interval"
        drawn = _narrowing(axis, known, pairs[row.arm], estimates.margin(column), estimates.tie(column), out)
        label = f"{row.arm} against {found.reference}: {row.shown}, {more}"
        rows.append(Row(row.arm, "gone" if out else "", label, drawn, row.shown if known else "", more))
    hint = (
        "Over the results counted, each difference as it was known; its interval holds at all times. "
        "Above the line through 0 the arm is better. Shaded: arms this close tie. Dashed: the margin."
    )
    title = (
        f"{found.objective}{unit and f' ({unit})'}: how much better each arm may be than {found.reference}"
    )
    return _figure(view, title, hint, Chart(rows, axis.scale(), "What is known", height=TALL))


def _narrowing(
    axis: Axis, moments: list[Moment], pair: tuple[int, int, int], margin: float, tie: float, out: bool
) -> Part:
    """The interval of a difference as it shrank; of the last one all is in sight."""
    ends = [moment.differences[pair] for moment in moments]
    low, high = ends[-1] if ends else (-1.0, 1.0)
    below, above = max(4 * margin, -1.25 * low, 0.01 * high), max(4 * margin, 1.25 * high, -0.01 * low)

    def y(number: float) -> float:
        return TALL * (above - min(max(number, -2 * below), 2 * above)) / (above + below)

    look, at = "out" if out else "in", [axis.share(moment.results) for moment in moments]
    lower, upper = (_stairs([(x, y(end[side])) for x, end in zip(at, ends, strict=True)]) for side in (0, 1))
    curves = [_path(lower + upper[::-1], kind=f"known {look}")] if ends else []
    curves += [_path(points, kind=f"mark {look}", fill="none") for points in (lower, upper) if ends]
    marks = [(y(m), 11 if m < 0 else -4, f"{m:+.4g}".replace("-", "−")) for m in (margin, -margin) if m]
    return [
        tag("rect", kind="band", width="100%", y=f"{y(tie):.2f}", height=f"{y(-tie) - y(tie):.2f}"),
        _stretched(curves),
        [across(round(height, 2), "limit dash") for height, *_ in marks],
        across(round(y(0.0), 2), "zero"),
        [words("100%", height + beside, text, text_anchor="end") for height, beside, text in marks],
    ]


def _stairs(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """The points with what holds between them."""
    corners = [corner for a, b in pairwise(points) for corner in (a, (b[0], a[1]))]
    return [*corners, *points[-1:]]


def _path(points: list[tuple[float, float]], **more: Any) -> Part:
    through = " L".join(f"{x:.2f} {y:.2f}" for x, y in points)
    return tag("path", d=f"M{through}", vector_effect="non-scaling-stroke", **more)


def _stretched(curves: Part) -> Part:
    """Paths in percent of the width and in pixels."""
    scaled = {"viewBox": f"0 0 100 {TALL}", "preserveAspectRatio": "none"}
    return tag("svg", curves, kind="cut", width="100%", height=TALL, **scaled)


# --- what has happened


def race(study: Study) -> Figure:
    """Who left when, over the results counted."""
    view = StudyView.of(study)
    found = drawing.course(view, drawing.phases(view.estimates))
    return _figure(view, view.headline, found.hint, *found.charts)


def pulls(study: Study) -> Figure:
    """How often each arm was measured, and what was lost."""
    view = StudyView.of(study)
    lost = {arm.name: arm.failed + arm.expired + arm.late for arm in view.arms}
    axis = Axis((0, *(arm.results + lost[arm.name] for arm in view.arms)), before=0.0, after=0.03)
    rows = []
    for arm in view.arms:
        is_out = arm.decision.is_out or arm.decision.is_gone
        ends = arm.results, arm.results + lost[arm.name]
        drawn: Part = [
            arm.results > 0
            and box(axis, 0, ends[0], MIDDLE - 6, 12, "fillbar gone" if is_out else "fillbar"),
            lost[arm.name] > 0 and box(axis, *ends, MIDDLE - 6, 12, "lost"),
        ]
        look = "first" if arm.leads else "gone" if is_out else ""
        more = (said := losses(arm)) and f"({said})"
        label = f"{arm.name}: {many(arm.results, 'result')}{more and f' {more}'}"
        rows.append(Row(arm.name, look, label, drawn, count(arm.results), more))
    hint = "Results; grey for arms that are excluded or withdrawn"
    hint += f". Outlined: {count(sum(lost.values()))} failed, expired or late." if any(lost.values()) else "."
    title = f"{many(sum(arm.results for arm in view.arms), 'result')} of {many(len(rows), 'arm')}"
    return _figure(view, title, hint, Chart(rows, axis.scale(), "Measured"))


def workers(study: Study) -> Figure:
    """What each worker measured and when: from handing out to the result."""
    columns = study._trials()
    kept = np.flatnonzero(columns["state"] != TrialState.IMPORTED)[-MOST_TRIALS:]
    asked, resolved = columns["asked"][kept], columns["resolved"][kept]
    states, names = columns["state"][kept], [name or "unnamed" for name in columns["worker"][kept]]
    start, now = (float(asked.min()), float(np.nanmax([asked, resolved]))) if kept.size else (0.0, 1.0)
    unit, size, _ = next(row for row in UNITS if now - start <= row[2])
    ends = np.where(np.isnan(resolved), now, resolved)
    axis = Axis((0, (now - start) / size), before=0.0, after=0.03)
    rows = []
    for worker in sorted(set(names)):
        mine = np.array([name == worker for name in names])
        drawn, said = [], []
        for state, (kind, height) in LOOKS.items():
            here = np.flatnonzero(mine & (states == state))
            said += [f"{count(here.size)} {state}"] * bool(here.size)
            for k in here:
                times = (asked[k] - start) / size, (ends[k] - start) / size
                drawn.append(box(axis, *times, (ROW - height) / 2, height, kind))
        label = f"{worker}: {', '.join(said)}"
        rows.append(Row(worker, "", label, drawn, more=", ".join(said)))
    since = f"{datetime.fromtimestamp(start, UTC):%d %B %Y %H:%M:%S} UTC" if kept.size else "the start"
    hint = (
        f"In {unit} since {since}. Narrow: filled if told, outlined if failed. "
        "Broad: filled if still open, outlined if expired, dashed if told too late."
    )
    title = f"{study.name}: {many(len(rows), 'worker')} and the last {many(kept.size, 'trial')}"
    return Figure(title, hint, (Chart(rows, axis.scale(), "Trials"),))


# --- what is to come


def forecast(study: Study, found: Forecast | None = None) -> Figure:
    """When the study is likely to end, and who is likely to win; `found` is a forecast made before."""
    coming = played_on(study) if found is None else found
    low, median, high = coming.results
    axis = Axis((0, max(coming.ends, default=0), high), before=0.0, after=0.03)
    steps = [(axis.share(end), TALL * (1 - k / len(coming.ends))) for k, end in enumerate(coming.ends)]
    drawn = [
        box(axis, low, high, 0, TALL, "band"),
        upright(axis(median), 0, TALL, "limit"),
        [across(y, "grid") for y in (0, TALL / 2, TALL)],
        _stretched(_path([(0.0, TALL), *_stairs(steps), (100.0, 0.0)], kind="mark in", fill="none")),
    ]
    within, name = f"{about(low)} to {about(high)}", "Futures that have ended"
    rows = [Row(name, "", f"8 of 10 futures end within {within}", drawn, within, "in 8 of 10")]
    winners = sorted(((share, arm) for arm, share in coming.winners.items() if share), reverse=True)
    shares = [
        Row(arm, "", f"{arm} wins {percent(share)}", bar(share), "< 1 %" if share < 0.01 else percent(share))
        for share, arm in winners
    ]
    charts = (
        Chart(rows, axis.scale(), "When", height=TALL, caption="Results still needed"),
        Chart(shares, Markup(""), "Share", height=12, caption="Who is likely to win"),
    )
    hint = f"From {count(coming.runs)} runs of the rest of the study, drawn from what was measured."
    return Figure(coming.sentence, hint, charts if high else charts[1:])


def _figure(view: AnyView, title: str, hint: str, *charts: Chart) -> Figure:
    return Figure(title, hint, charts, tuple(objective.unit for objective in view.objectives))
