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
from lexbandits.picture.tally import tally_of
from lexbandits.picture.view import View
from lexbandits.study.record.ledger import EXPIRED, FAILED, LATE
from lexbandits.study.study import Study
from lexbandits.study.words import count

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BROAD, NARROW = 0.84, 0.5  # heights of the bars of `workers`
FEW = 200  # trials


def race(study: Study) -> "Figure":
    """Who left when, over the results counted."""
    figure, view = blank(), View.of(study)
    spans = phases(view)
    total = max([1, *(end for *_, end in spans)])
    rows = [arm for arm in view.by_standing if view.measured[arm]][::-1]
    for arm in rows:
        _add_lane(figure, view, arm, total)
    order = [view.objectives[column].name for column in view.columns]
    for k, (name, first, end) in enumerate(spans):
        patch(figure, (first, end), ENTIRE, TINT if k % 2 else SUNK, yref="paper")
        if (end - first) > 0.15 * total:
            font = {"size": 11, "color": MUTED}
            label(figure, f"{order.index(name) + 1} {name}", font=font, x=first, yref="paper")
    figure.layout.xaxis = {"title": {"text": "results counted"}, "range": [0, 1.06 * total], "nticks": 4}
    gone, what = len(view.eliminations), standing_words(view)
    return finish(figure, f"{gone} of {len(view.arms)} arms have left; {what}", 120 + 28 * len(rows))


def pulls(study: Study) -> "Figure":
    """How often each arm was measured, and what was lost."""
    figure, view = blank(), View.of(study)
    rows = view.by_standing[::-1]
    names = [view.arms[arm] for arm in rows]
    lost = [int(tally_of(view.fold).by_arm[arm, [FAILED, EXPIRED, LATE]].sum()) for arm in rows]
    stays = [arm not in view.eliminations and view.standing(arm) in ("answer", "candidate") for arm in rows]
    figure.add_bar(
        x=[view.measured[arm] for arm in rows],
        y=names,
        orientation="h",
        name="results",
        marker={"color": [IN if s else OUT for s in stays]},
        text=[count(view.measured[arm]) for arm in rows],
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
    return finish(
        figure, f"{count(view.results)} results, grey for arms that left{tail}", 110 + 28 * len(rows)
    )


def workers(study: Study) -> "Figure":
    """What each worker measured and when: from handing out to the result."""
    figure, view = blank(), View.of(study)
    frame = study.trials()
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
    figure = finish(figure, f"{view.name}: {text}", 140 + 28 * max(named, 1))
    figure.layout.legend = {"orientation": "h", "y": -0.3}
    figure.layout.showlegend = True
    return figure


def _add_lane(figure: Any, view: View, arm: int, total: int) -> None:
    left = view.eliminations.get(arm)
    end = left.round if left is not None else total
    stays = left is None and view.standing(arm) in ("answer", "candidate")
    on = "" if left is None else f" on {view.objectives[left.objective].name}"
    figure.add_scatter(
        x=[0, end],
        y=[view.arms[arm]] * 2,
        mode="lines+markers",
        line={"color": IN if stays else OUT, "width": 2.5 if stays else 2},
        marker={
            "symbol": ["line-ns", "circle" if stays else "line-ns"],
            "size": [0, 10],
            "line": {"width": 2, "color": IN if stays else OUT},
        },
        hovertemplate=f"{view.arms[arm]}: {count(end)} results{on}<extra></extra>",
    )
