"""What has happened, drawn: who left when, how often each arm was measured, who measured."""

from typing import TYPE_CHECKING, Any

from lexbandits.insight.canvas import (
    EDGE,
    ENTIRE,
    IN,
    MUTED,
    OUT,
    SUNK,
    TINT,
    WARN,
    blank,
    finish,
    label,
    patch,
    standing_words,
)
from lexbandits.picture.draw import phases
from lexbandits.picture.exits import GONE
from lexbandits.picture.ladder import ENDS
from lexbandits.picture.picture import Picture
from lexbandits.picture.shown import Arm
from lexbandits.study.study import Study
from lexbandits.study.words import count

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BROAD, NARROW = 0.84, 0.5  # heights of the bars of `workers`
FEW = 200  # trials


def race(study: Study) -> "Figure":
    """Who left when, over the results counted."""
    figure, picture = blank(), Picture.of(study)
    spans = phases(picture.view)
    total = max([1, *(end for *_, end in spans)])
    rows = [arm for arm in picture.arms if arm.results][::-1]
    for arm in rows:
        _add_lane(figure, arm, total)
    order = [rung.name for rung in picture.objectives]
    for k, (name, first, end) in enumerate(spans):
        patch(figure, (first, end), ENTIRE, TINT if k % 2 else SUNK, yref="paper")
        if (end - first) > 0.15 * total:
            font = {"size": 11, "color": MUTED}
            label(figure, f"{order.index(name) + 1} {name}", font=font, x=first, yref="paper")
    figure.layout.xaxis = {"title": {"text": "results counted"}, "range": [0, 1.06 * total], "nticks": 4}
    gone = sum(arm.exit.after is not None for arm in picture.arms)
    title = f"{gone} of {len(picture.arms)} arms have left; {standing_words(picture)}"
    return finish(figure, title, 120 + 28 * len(rows))


def pulls(study: Study) -> "Figure":
    """How often each arm was measured, and what was lost."""
    figure, picture = blank(), Picture.of(study)
    arms = picture.arms[::-1]
    names, lost = [arm.name for arm in arms], [arm.failed + arm.expired + arm.late for arm in arms]
    figure.add_bar(
        x=[arm.results for arm in arms],
        y=names,
        orientation="h",
        name="results",
        marker={"color": [IN if arm.state in ("answer", "candidate") else OUT for arm in arms]},
        text=[count(arm.results) for arm in arms],
        textposition="outside",
        textangle=0,
        cliponaxis=False,
        hovertemplate="%{y}: %{x:,} results<extra></extra>",
    )
    figure.add_bar(
        x=lost,
        y=names,
        orientation="h",
        name="failed, expired or late",
        marker={"color": WARN, "pattern": {"shape": "/"}},
        hovertemplate="%{y}: %{x:,} lost<extra></extra>",
    )
    figure.layout.barmode = "stack"
    figure.layout.xaxis = {"title": {"text": "trials"}, "nticks": 4}
    tail = f"; hatched, {count(sum(lost))} lost" if sum(lost) else ""
    results = count(sum(arm.results for arm in arms))
    return finish(figure, f"{results} results, grey for arms that left{tail}", 110 + 28 * len(arms))


def workers(study: Study) -> "Figure":
    """What each worker measured and when: from handing out to the result."""
    figure, frame = blank(), study.trials()
    frame = frame[frame["state"] != "imported"].tail(2000)
    frame = frame.assign(worker=frame["worker"].fillna("unnamed"))
    kinds = {  # what lasts long is broad and lies below: what was told meanwhile stays in sight
        "late": (OUT, "\\", BROAD),
        "expired": (WARN, "x", BROAD),
        "open": (EDGE, "", BROAD),
        "failed": (WARN, "/", NARROW),
        "told": (IN, "", NARROW),
    }
    edge = 0.5 if len(frame) <= FEW else 0  # many bars are too thin to have one
    now = max(frame["resolved"].max(), frame["asked"].max()) if len(frame) else None
    for state, (colour, pattern, width) in kinds.items():
        rows = frame[frame["state"] == state]
        if rows.empty:
            continue
        taken = (rows["resolved"].fillna(now) - rows["asked"]).dt.total_seconds() * 1000
        figure.add_bar(
            base=rows["asked"].dt.tz_localize(None),
            x=taken.clip(lower=1).tolist(),
            y=rows["worker"].tolist(),
            orientation="h",
            name=state,
            width=width,
            marker={
                "color": colour,
                "line": {"width": edge, "color": "white"},
                "pattern": {"shape": pattern},
            },
            customdata=rows["arm"].tolist(),
            hovertemplate="%{y}: %{customdata}, " + state + "<extra></extra>",
        )
    figure.layout.barmode = "overlay"
    figure.layout.xaxis = {"type": "date", "nticks": 4}
    figure.layout.yaxis = {"type": "category"}
    figure.layout.showlegend = True
    named = frame["worker"].nunique()
    text = f"{named} worker{'s' if named != 1 else ''} and the last {count(len(frame))} trials"
    figure = finish(figure, f"{study.name}: {text}", 180 + 28 * max(named, 1))
    figure.layout.margin.b = 76  # for two lines of dates, and the legend below them
    figure.layout.legend = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom"}
    figure.layout.showlegend = True
    return figure


def _add_lane(figure: Any, arm: Arm, total: int) -> None:
    stays = arm.exit.code not in (*ENDS, *GONE)
    end, look = arm.exit.after or total, {"width": 2, "color": IN if stays else OUT}
    on = "" if arm.exit.after is None else f" on {arm.exit.objective}"
    figure.add_scatter(
        x=[0, end],
        y=[arm.name] * 2,
        mode="lines+markers",
        line={**look, "width": 2.5 if stays else 2},
        marker={"symbol": ["line-ns", "circle" if stays else "line-ns"], "size": [0, 10], "line": look},
        hovertemplate=f"{arm.name}: {count(end)} results{on}<extra></extra>",
    )
