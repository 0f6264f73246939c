"""What is known of the arms, drawn: where each mean lies, and how far apart the arms may be."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from lexbandits.insight.canvas import (
    BAND,
    EDGE,
    ENTIRE,
    IN,
    OUT,
    blank,
    caption,
    finish,
    line,
    patch,
    row,
    standing_words,
)
from lexbandits.picture.history import Moment, history_of
from lexbandits.picture.ladder import band_of, ends_at, stays
from lexbandits.picture.picture import Picture
from lexbandits.picture.shown import Arm, Rung
from lexbandits.picture.view import View
from lexbandits.study.study import Study

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_PAIRS = 6  # lines of `evidence`


def intervals(study: Study) -> "Figure":
    """Where each arm's mean lies on each objective, by priority, with the band of what ties with the best."""
    figure, picture = blank(), Picture.of(study)
    for position, rung in enumerate(picture.objectives):
        arms = [
            arm
            for arm in picture.arms[::-1]
            if arm.name in rung.entered and arm.objectives[rung.name].results
        ]
        x, y = row(figure, position, len(picture.objectives))
        for inside in (True, False):
            stay = [arm for arm in arms if stays(arm, rung) is inside]
            figure.add_scatter(**_dots(stay, rung, inside), xaxis=x, yaxis=y)
        figure.layout[y.replace("y", "yaxis")].update(
            type="category", categoryorder="array", categoryarray=[arm.name for arm in arms]
        )
        caption(figure, f"{position + 1} {rung.name}{f', {rung.unit}' if rung.unit else ''}", y)
        axes = {"xref": x, "yref": f"{y} domain"}
        if rung.limit is not None:
            line(figure, (rung.limit, rung.limit), ENTIRE, {"color": EDGE, "width": 2}, **axes)
        elif len(arms) > 1 and (band := band_of(picture, rung)):
            patch(figure, band, ENTIRE, BAND, **axes)
    title = f"{standing_words(picture)}; shaded: ties with the best"
    return finish(figure, title, 60 + len(picture.objectives) * (56 + 24 * len(picture.arms)))


def _dots(arms: list[Arm], rung: Rung, inside: bool) -> dict[str, Any]:
    colour, cells = IN if inside else OUT, [arm.objectives[rung.name] for arm in arms]
    means = [cell.mean or 0.0 for cell in cells]
    known = [(cell.low, cell.high) for cell in cells]
    ends = [(m if None in e else e[0], m if None in e else e[1]) for m, e in zip(means, known, strict=True)]
    return {
        "x": means,
        "y": [arm.name for arm in arms],
        "mode": "markers",
        "marker": {
            "color": colour if inside else "white",
            "size": 9,
            "line": {"color": colour, "width": 1.5},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [(high or 0.0) - mean for (_, high), mean in zip(ends, means, strict=True)],
            "arrayminus": [mean - (low or 0.0) for (low, _), mean in zip(ends, means, strict=True)],
            "color": colour,
            "thickness": 1.6,
            "width": 4,
        },
        "hovertemplate": [
            f"{arm.name}: {cell.in_short}<extra></extra>" for arm, cell in zip(arms, cells, strict=True)
        ],
    }


def evidence(study: Study) -> "Figure":
    """What is known of each pair, over the results counted: how the interval of its difference shrank.

    Of the objective being settled, or on an ended study of the last one on which pairs were compared.
    """
    figure, picture = blank(), Picture.of(study)
    view, moments = picture.view, history_of(picture.view.fold)
    column, best = _compared_last(view), view.leader
    rung, arms = picture.objectives[view.columns.index(column)], {arm.name: arm for arm in picture.arms}
    rivals = [view.index(name) for name in rung.entered if name != view.arms[best]][:MOST_PAIRS]
    for k, arm in enumerate(rivals):
        x, y = row(figure, k, len(rivals))
        known = [moment for moment in moments if np.isfinite(moment.differences[arm, best, column]).all()]
        _add_difference(figure, view, known, (arm, best, column), x, y)
        word = "ties" if view.close(arm, best, column) else "open"
        if word == "open" and view.not_worse(best, arm, column):
            word = "not better"
        if ends_at(arms[view.arms[arm]], rung):
            word = "out" if arm in view.eliminations else "behind"
        caption(figure, f"{view.arms[arm]}: {word}{'' if known else ', too few for an interval'}", y)
    objective = view.objectives[column]
    unit = f" ({objective.unit_of_mean})" if objective.unit_of_mean else ""
    over = f"how much better each arm may be than {view.arms[best]}, over the results counted"
    title = f"{objective.name}{unit}: {over}"
    return finish(figure, title, 50 + 128 * max(len(rivals), 1))


def _add_difference(
    figure: Any, view: View, moments: list[Moment], pair: tuple[int, int, int], x: str, y: str
) -> None:
    """The interval of the difference of (an arm, another, on an objective) against tie and margin."""
    arm, _, column = pair
    tie, margin = view.tie(column), view.margin(column)
    results = [moment.results for moment in moments]
    ends = [moment.differences[pair].tolist() for moment in moments]
    low, high = ends[-1] if ends else (-math.inf, math.inf)  # the last interval is in sight as a whole
    below = max(4 * margin, -1.25 * low if math.isfinite(low) else 0.0)
    above = max(4 * margin, 1.25 * high if math.isfinite(high) else 0.0)
    colour = OUT if arm in view.eliminations or arm in view.behind else IN
    for side, word in enumerate(("at least", "at most") if ends else ()):
        figure.add_scatter(
            x=results,
            y=[min(max(end[side], -2 * below), 2 * above) for end in ends],
            mode="lines",
            line={"shape": "hv", "width": 1.6, "color": colour},
            fill="tonexty" if side else None,
            fillcolor="rgba(125,131,140,.16)" if colour == OUT else "rgba(29,95,196,.14)",
            hovertemplate=f"{view.arms[arm]}: {word} %{{y:.4g}} better<extra></extra>",
            xaxis=x,
            yaxis=y,
        )
    figure.layout[y.replace("y", "yaxis")].update(range=[-below, above], nticks=3)
    figure.layout[x.replace("x", "xaxis")].update(range=[0, max(1, view.folded)], nticks=4)
    axes = {"xref": f"{x} domain", "yref": y}
    patch(figure, ENTIRE, (-tie, tie), BAND, **axes)
    for at in (-margin, margin):
        line(figure, ENTIRE, (at, at), {"color": EDGE, "dash": "dash", "width": 1}, **axes)


def _compared_last(view: View) -> int:
    if view.settling is not None and not view.is_target(view.settling):
        return view.settling
    columns = [
        c
        for p, c in enumerate(view.columns)
        if not view.is_target(c) and view.stage(p) in ("settled", "enough")
    ]
    others = [c for c in view.columns if not view.is_target(c)]
    return columns[-1] if columns else (others or list(view.columns))[0]
