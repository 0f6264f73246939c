"""Figures of a study for notebooks and pages: plotly with SVG traces only, which draw without eval."""

import math
from typing import TYPE_CHECKING, Any

from lexbandits.insight.forecast import Forecast
from lexbandits.insight.forecast import forecast as played_on
from lexbandits.insight.svg import phases
from lexbandits.insight.view import View
from lexbandits.insight.words import about, count, percent, value
from lexbandits.study.study import Study

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

IN, OUT, BAND, EDGE, TINT, SUNK, TEXT, MUTED, WARN = (
    "#1d5fc4", "#7d838c", "#cfe1fa", "#8fb6ec", "#eef4fd", "#f4f4f2", "#191b1f", "#5b616a", "#9a4a00",
)  # fmt: skip
MOST_PAIRS = 6  # lines of `evidence`
CONFIG = {"displayModeBar": False, "responsive": True}


def intervals(study: Study) -> "Figure":
    """Where each arm's mean lies on each objective, by priority, with the band of what does not matter."""
    go, view = _plotly(), View.of(study)
    figure = go.Figure()
    for position, column in enumerate(view.columns):
        objective = view.objectives[column]
        entered = [arm for arm in view.entered(position) if view.counts[arm, column]]
        rows = [arm for arm in view.by_standing[::-1] if arm in entered]
        x, y = _row(figure, position, len(view.columns))
        for inside in (True, False):
            arms = [arm for arm in rows if _stays(view, arm, position) is inside]
            figure.add_scatter(**_dots(view, arms, column, inside), xaxis=x, yaxis=y)
        figure.layout[y.replace("y", "yaxis")].update(
            type="category", categoryorder="array", categoryarray=[view.arms[arm] for arm in rows]
        )
        unit = f", {objective.unit}" if objective.unit else ""
        _caption(figure, f"{position + 1} {objective.name}{unit}", y)
        _band(figure, view, column, entered, x, y)
    leads = "is the answer" if view.state == "finished" else "leads"
    title = f"{view.answer.arm} {leads}; shaded is what does not matter, from the best"
    return _finish(figure, title, 60 + len(view.columns) * (56 + 24 * len(view.arms)))


def race(study: Study) -> "Figure":
    """Who left when, over the results counted."""
    go, view = _plotly(), View.of(study)
    figure, spans = go.Figure(), phases(view)
    total = max([1, *(end for *_, end in spans)])
    rows = [arm for arm in view.by_standing if view.measured[arm]][::-1]
    for arm in rows:
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
    for k, (position, first, end) in enumerate(spans):
        figure.add_shape(
            type="rect",
            x0=first,
            x1=end,
            y0=0,
            y1=1,
            yref="paper",
            layer="below",
            line={"width": 0},
            fillcolor=TINT if k % 2 else SUNK,
        )
        if (end - first) > 0.15 * total:
            name = view.objectives[view.columns[position]].name
            figure.add_annotation(
                x=first,
                y=1,
                yref="paper",
                xanchor="left",
                yanchor="bottom",
                text=f"{position + 1} {name}",
                showarrow=False,
                font={"size": 11, "color": MUTED},
            )
    figure.layout.xaxis = {"title": {"text": "results counted"}, "range": [0, 1.06 * total], "nticks": 4}
    gone, answer = len(view.eliminations), view.answer.arm
    what = f"{answer} is the answer" if view.state == "finished" else f"{answer} leads"
    return _finish(figure, f"{gone} of {len(view.arms)} arms have left; {what}", 120 + 28 * len(rows))


def evidence(study: Study) -> "Figure":
    """What is known of each pair, over the results counted: how the interval of its difference shrank.

    Of the objective being settled, or on an ended study of the last one on which pairs were compared.
    """
    go, view = _plotly(), View.of(study)
    figure, moments = go.Figure(), view.history()
    column = _compared_last(view)
    objective, best = view.objectives[column], view.leader
    rivals = [arm for arm in view.entered(view.columns.index(column)) if arm != best][:MOST_PAIRS]
    slack = objective.tolerance_in_unit
    reach = slack + objective.resolution_in_unit
    x_values = [moment.results for moment in moments]
    for k, arm in enumerate(rivals):
        x, y = _row(figure, k, len(rivals))
        ends = [moment.differences[arm, best, column].tolist() for moment in moments]
        colour = OUT if arm in view.eliminations else IN
        for side, word in enumerate(("at least", "at most")):
            figure.add_scatter(
                x=x_values,
                y=[min(max(end[side], -9 * reach), 9 * reach) for end in ends],
                mode="lines",
                line={"shape": "hv", "width": 1.6, "color": colour},
                fill="tonexty" if side else None,
                fillcolor="rgba(125,131,140,.16)" if colour == OUT else "rgba(29,95,196,.14)",
                hovertemplate=f"{view.arms[arm]}: {word} %{{y:.4g}} better<extra></extra>",
                xaxis=x,
                yaxis=y,
            )
        figure.layout[y.replace("y", "yaxis")].update(range=[-4 * reach, 4 * reach], nticks=3)
        figure.layout[x.replace("x", "xaxis")].update(range=[0, max([1, *x_values])], nticks=4)
        band = {
            "type": "rect",
            "xref": f"{x} domain",
            "yref": y,
            "x0": 0,
            "x1": 1,
            "layer": "below",
            "line": {"width": 0},
        }
        figure.add_shape(**band, y0=-slack, y1=slack, fillcolor=BAND)
        for at in (-reach, reach):
            figure.add_shape(
                type="line",
                xref=f"{x} domain",
                yref=y,
                x0=0,
                x1=1,
                y0=at,
                y1=at,
                line={"color": EDGE, "dash": "dash", "width": 1},
            )
        left = view.eliminations.get(arm)
        word = (
            "out"
            if left and left.objective == column
            else "ties"
            if view.close(arm, best, column)
            else "open"
        )
        _caption(figure, f"{view.arms[arm]}: {word}", y)
    unit = f" ({objective.unit})" if objective.unit else ""
    over = f"how much better each arm may be than {view.arms[best]}, over the results counted"
    title = f"{objective.name}{unit}: {over}"
    return _finish(figure, title, 50 + 128 * max(len(rivals), 1))


def forecast(study: Study, found: Forecast | None = None) -> "Figure":
    """When the study is likely to end, and who is likely to win; `found` is a forecast made before."""
    go = _plotly()
    coming = played_on(study) if found is None else found
    figure = go.Figure()
    ends = list(coming.ends)
    shares = [(k + 1) / len(ends) for k in range(len(ends))]
    figure.add_scatter(
        x=ends,
        y=shares,
        mode="lines",
        line={"color": IN, "width": 2, "shape": "hv"},
        xaxis="x",
        yaxis="y",
        hovertemplate="%{y:.0%} of the futures end within %{x:,} results<extra></extra>",
    )
    low, median, high = coming.results
    figure.add_shape(
        type="rect",
        x0=low,
        x1=high,
        y0=0,
        y1=1,
        xref="x",
        yref="y",
        fillcolor=BAND,
        line={"width": 0},
        layer="below",
    )
    figure.add_shape(
        type="line",
        x0=median,
        x1=median,
        y0=0,
        y1=1,
        xref="x",
        yref="y",
        line={"color": IN, "width": 1.5, "dash": "dot"},
    )
    winners = sorted((row for row in coming.winners.items() if row[1] > 0), key=lambda row: row[1])
    figure.add_bar(
        x=[share for _, share in winners],
        y=[arm for arm, _ in winners],
        orientation="h",
        xaxis="x2",
        yaxis="y2",
        marker={"color": IN},
        text=[percent(share) for _, share in winners],
        textposition="outside",
        cliponaxis=False,
        hovertemplate="%{y} wins %{text}<extra></extra>",
    )
    room = 0.62
    figure.layout.xaxis = {
        "title": {"text": "results still needed"},
        "anchor": "y",
        "nticks": 4,
        "rangemode": "tozero",
    }
    figure.layout.yaxis = {
        "domain": [1 - room + 0.1, 1],
        "tickformat": ".0%",
        "title": {"text": "ended"},
        "nticks": 4,
    }
    figure.layout.xaxis2 = {"domain": [0, 0.86], "anchor": "y2", "visible": False, "range": [0, 1]}
    figure.layout.yaxis2 = {"domain": [0, 1 - room - 0.12], "anchor": "x2", "type": "category"}
    likely = f"{about(low)} to {about(high)} in 8 of 10 futures"
    title = f"About {about(median)} results to go ({likely}); below, who wins"
    title = title if high else coming.sentence
    return _finish(figure, title, 320 + 26 * len(winners))


def pulls(study: Study) -> "Figure":
    """How often each arm was measured, and what was lost."""
    go, view = _plotly(), View.of(study)
    rows = view.by_standing[::-1]
    names = [view.arms[arm] for arm in rows]
    lost = [sum(view.losses(arm).values()) for arm in rows]
    figure = go.Figure()
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
    return _finish(
        figure, f"{count(view.results)} results, grey for arms that left{tail}", 110 + 28 * len(rows)
    )


def workers(study: Study) -> "Figure":
    """What each worker measured and when: from handing out to the result."""
    go, view = _plotly(), View.of(study)
    frame = study.trials()
    frame = frame[frame["state"] != "imported"].tail(2000)
    frame = frame.assign(worker=frame["worker"].fillna("unnamed"))
    figure = go.Figure()
    kinds = {
        "told": (IN, ""),
        "open": (EDGE, ""),
        "failed": (WARN, "/"),
        "expired": (WARN, "x"),
        "late": (OUT, "\\"),
    }
    now = max(frame["resolved"].max(), frame["asked"].max()) if len(frame) else None
    for state, (colour, pattern) in kinds.items():
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
            marker={"color": colour, "line": {"width": 0.5, "color": "white"}, "pattern": {"shape": pattern}},
            customdata=rows["arm"].tolist(),
            hovertemplate="%{y}: %{customdata}, " + state + "<extra></extra>",
        )
    figure.layout.barmode = "overlay"
    figure.layout.xaxis = {"type": "date", "nticks": 4}
    figure.layout.yaxis = {"type": "category"}
    figure.layout.showlegend = True
    named = frame["worker"].nunique()
    text = f"{named} worker{'s' if named != 1 else ''} and the last {count(len(frame))} trials"
    figure = _finish(figure, f"{view.name}: {text}", 140 + 28 * max(named, 1))
    figure.layout.legend = {"orientation": "h", "y": -0.3}
    figure.layout.showlegend = True
    return figure


# --- parts


def _plotly() -> Any:
    try:
        import plotly.graph_objects as go
    except ImportError as error:
        raise ImportError("figures need plotly: pip install 'lexbandits[plot]'") from error
    return go


def _row(figure: Any, k: int, rows: int) -> tuple[str, str]:
    """Axes for the k-th of some rows, from the top: their names."""
    tail, gap = "" if k == 0 else str(k + 1), 0.34 / max(rows, 1)
    height = (1 - gap * (rows - 1)) / max(rows, 1)
    top = 1 - k * (height + gap)
    figure.layout[f"xaxis{tail}"] = {"anchor": f"y{tail}", "nticks": 4}
    figure.layout[f"yaxis{tail}"] = {"anchor": f"x{tail}", "domain": [max(top - height, 0.0), top]}
    return f"x{tail}", f"y{tail}"


def _caption(figure: Any, text: str, axis: str) -> None:
    figure.add_annotation(
        x=0,
        xref="paper",
        y=1,
        yref=f"{axis} domain",
        xanchor="left",
        yanchor="bottom",
        text=f"<b>{text}</b>",
        showarrow=False,
        font={"size": 12, "color": TEXT},
    )


def _stays(view: View, arm: int, position: int) -> bool:
    left = view.eliminations.get(arm)
    return (left is None or view.position_left(arm) != position) and view.stage(position) in (
        "settled",
        "being settled",
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


def _band(figure: Any, view: View, column: int, entered: list[int], x: str, y: str) -> None:
    objective = view.objectives[column]
    shape = {
        "type": "rect",
        "xref": x,
        "yref": f"{y} domain",
        "y0": 0,
        "y1": 1,
        "layer": "below",
        "line": {"width": 0},
    }
    if objective.target is not None:
        figure.add_shape(
            type="line",
            xref=x,
            yref=f"{y} domain",
            x0=objective.target,
            x1=objective.target,
            y0=0,
            y1=1,
            line={"color": EDGE, "width": 2},
        )
    elif len(entered) > 1:
        best = max(objective.sign * view.mean(arm, column) for arm in entered)
        ends = (objective.sign * best, objective.sign * (best - objective.tolerance_in_unit))
        figure.add_shape(**shape, x0=min(ends), x1=max(ends), fillcolor=BAND)


def _compared_last(view: View) -> int:
    if view.settling is not None and not view.is_target(view.settling):
        return view.settling
    columns = [c for p, c in enumerate(view.columns) if not view.is_target(c) and view.stage(p) == "settled"]
    others = [c for c in view.columns if not view.is_target(c)]
    return columns[-1] if columns else (others or list(view.columns))[0]


def _finish(figure: Any, title: str, height: int) -> "Figure":
    """The house style: nothing that is not needed, and room for 360 pixels."""
    words, lines = title.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 46:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    figure.update_layout(
        title={
            "text": "<br>".join(lines),
            "x": 0,
            "xanchor": "left",
            "xref": "container",
            "pad": {"l": 12, "t": 12},
            "font": {"size": 14, "color": TEXT},
            "y": 1,
            "yref": "container",
            "yanchor": "top",
        },
        font={"family": "system-ui, sans-serif", "size": 11, "color": MUTED},
        height=height + 18 * len(lines),
        margin={"l": 12, "r": 16, "t": 46 + 18 * len(lines), "b": 12},
        paper_bgcolor="white",
        plot_bgcolor="white",
        showlegend=False,
        dragmode=False,
        hoverlabel={"font": {"size": 12}},
    )
    figure.update_xaxes(
        automargin=True, gridcolor="#e4e4e0", zeroline=False, linecolor="#cfcfca", fixedrange=True
    )
    figure.update_yaxes(
        automargin=True, gridcolor="#e4e4e0", zeroline=False, linecolor="#cfcfca", fixedrange=True
    )
    return figure
