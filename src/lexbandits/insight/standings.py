"""What is known of the arms, drawn: where each mean lies, and how far apart the arms may be."""

import math
from typing import TYPE_CHECKING, Any

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
from lexbandits.picture.view import View
from lexbandits.study.study import Study
from lexbandits.study.words import value

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_PAIRS = 6  # lines of `evidence`


def intervals(study: Study) -> "Figure":
    """Where each arm's mean lies on each objective, by priority, with the band of what does not matter."""
    figure, view = blank(), View.of(study)
    for position, column in enumerate(view.columns):
        objective = view.objectives[column]
        entered = [arm for arm in view.entered(position) if view.counts[arm, column]]
        rows = [arm for arm in view.by_standing[::-1] if arm in entered]
        x, y = row(figure, position, len(view.columns))
        for inside in (True, False):
            arms = [arm for arm in rows if _stays(view, arm, position) is inside]
            figure.add_scatter(**_dots(view, arms, column, inside), xaxis=x, yaxis=y)
        figure.layout[y.replace("y", "yaxis")].update(
            type="category", categoryorder="array", categoryarray=[view.arms[arm] for arm in rows]
        )
        unit = f", {objective.unit}" if objective.unit else ""
        caption(figure, f"{position + 1} {objective.name}{unit}", y)
        _add_target_or_band(figure, view, column, entered, x, y)
    title = f"{standing_words(view)}; shaded is what does not matter, from the best"
    return finish(figure, title, 60 + len(view.columns) * (56 + 24 * len(view.arms)))


def evidence(study: Study) -> "Figure":
    """What is known of each pair, over the results counted: how the interval of its difference shrank.

    Of the objective being settled, or on an ended study of the last one on which pairs were compared.
    """
    figure, view = blank(), View.of(study)
    column, best, moments = _compared_last(view), view.leader, history_of(view.fold)
    rivals = [arm for arm in view.entered(view.columns.index(column)) if arm != best][:MOST_PAIRS]
    for k, arm in enumerate(rivals):
        x, y = row(figure, k, len(rivals))
        _add_difference(figure, view, moments, (arm, best, column), x, y)
        left = view.eliminations.get(arm)
        word = (
            "out"
            if left and left.objective == column
            else "ties"
            if view.close(arm, best, column)
            else "open"
        )
        caption(figure, f"{view.arms[arm]}: {word}", y)
    objective = view.objectives[column]
    unit = f" ({objective.unit})" if objective.unit else ""
    over = f"how much better each arm may be than {view.arms[best]}, over the results counted"
    title = f"{objective.name}{unit}: {over}"
    return finish(figure, title, 50 + 128 * max(len(rivals), 1))


def _stays(view: View, arm: int, position: int) -> bool:
    left = view.eliminations.get(arm)
    return (left is None or view.position_left(arm) != position) and view.stage(position) in (
        "settled",
        "enough",
        "settling",
        "not settled",
    )


def _dots(view: View, arms: list[int], column: int, inside: bool) -> dict[str, Any]:
    objective, colour = view.objectives[column], IN if inside else OUT
    means = [view.mean(arm, column) for arm in arms]
    ends = [view.interval(arm, column) for arm in arms]
    finite = [math.isfinite(high - low) for low, high in ends]
    return {
        "x": means,
        "y": [view.arms[arm] for arm in arms],
        "mode": "markers",
        "marker": {
            "color": colour if inside else "white",
            "size": 9,
            "line": {"color": colour, "width": 1.5},
        },
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [
                high - mean if ok else 0 for (_, high), mean, ok in zip(ends, means, finite, strict=True)
            ],
            "arrayminus": [
                mean - low if ok else 0 for (low, _), mean, ok in zip(ends, means, finite, strict=True)
            ],
            "color": colour,
            "thickness": 1.6,
            "width": 4,
        },
        "hovertemplate": [
            f"{view.arms[arm]}: {value(objective, mean, unit=True)} "
            f"({value(objective, low)} to {value(objective, high)})<extra></extra>"
            for arm, mean, (low, high) in zip(arms, means, ends, strict=True)
        ],
    }


def _add_target_or_band(figure: Any, view: View, column: int, entered: list[int], x: str, y: str) -> None:
    objective, axes = view.objectives[column], {"xref": x, "yref": f"{y} domain"}
    if objective.target is not None:
        line(figure, (objective.target, objective.target), ENTIRE, {"color": EDGE, "width": 2}, **axes)
    elif len(entered) > 1:
        best = max(objective.sign * view.mean(arm, column) for arm in entered)
        low, high = sorted((objective.sign * best, objective.sign * (best - objective.tolerance_in_unit)))
        patch(figure, (low, high), ENTIRE, BAND, **axes)


def _add_difference(
    figure: Any, view: View, moments: list[Moment], pair: tuple[int, int, int], x: str, y: str
) -> None:
    """The interval of the difference of (an arm, another, on an objective) against what matters."""
    arm, _, column = pair
    slack = view.objectives[column].tolerance_in_unit
    reach = slack + view.objectives[column].resolution_in_unit
    results = [moment.results for moment in moments]
    ends = [moment.differences[pair].tolist() for moment in moments]
    low, high = ends[-1] if ends else (-math.inf, math.inf)  # the last interval is in sight as a whole
    below = max(4 * reach, -1.25 * low if math.isfinite(low) else 0.0)
    above = max(4 * reach, 1.25 * high if math.isfinite(high) else 0.0)
    colour = OUT if arm in view.eliminations else IN
    for side, word in enumerate(("at least", "at most")):
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
    figure.layout[x.replace("x", "xaxis")].update(range=[0, max([1, *results])], nticks=4)
    axes = {"xref": f"{x} domain", "yref": y}
    patch(figure, ENTIRE, (-slack, slack), BAND, **axes)
    for at in (-reach, reach):
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
