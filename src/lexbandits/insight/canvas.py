"""What the figures share: plotly when needed, colours, rows of axes, patches and lines, the house style."""

from typing import TYPE_CHECKING, Any

from lexbandits.extras import MissingExtra

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from lexbandits.picture.picture import Picture

IN, OUT, BAND, EDGE, TINT, SUNK, TEXT, MUTED, WARN = (
    "#1d5fc4", "#7d838c", "#cfe1fa", "#8fb6ec", "#eef4fd", "#f4f4f2", "#191b1f", "#5b616a", "#9a4a00",
)  # fmt: skip
ENTIRE = (0, 1)  # of an axis' domain


def blank() -> Any:
    """An empty figure."""
    try:
        import plotly.graph_objects as go
    except ModuleNotFoundError:
        raise MissingExtra("plotly", "a figure") from None
    return go.Figure()


def row(figure: Any, k: int, rows: int) -> tuple[str, str]:
    """Axes for the k-th of some rows, from the top: their names."""
    tail, gap = "" if k == 0 else str(k + 1), 0.34 / max(rows, 1)
    height = (1 - gap * (rows - 1)) / max(rows, 1)
    top = 1 - k * (height + gap)
    figure.layout[f"xaxis{tail}"] = {"anchor": f"y{tail}", "nticks": 4}
    figure.layout[f"yaxis{tail}"] = {"anchor": f"x{tail}", "domain": [max(top - height, 0.0), top]}
    return f"x{tail}", f"y{tail}"


def caption(figure: Any, text: str, axis: str) -> None:
    """Above a row."""
    font = {"size": 12, "color": TEXT}
    label(figure, f"<b>{text}</b>", font=font, x=0, xref="paper", yref=f"{axis} domain")


def label(figure: Any, text: str, **where: Any) -> None:
    """Text that stands on the upper edge of what `yref` says, from x on to the right."""
    figure.add_annotation(text=text, y=1, xanchor="left", yanchor="bottom", showarrow=False, **where)


def standing_words(picture: "Picture") -> str:
    """Who leads, and how sure that is."""
    sure = "is the best guess" if picture.state == "finished" else "leads"
    return f"{picture.answer.arm} {'is the answer' if picture.answer.certified else sure}"


def patch(
    figure: Any, x: tuple[float, float], y: tuple[float, float], colour: str, **references: str
) -> None:
    """A coloured rectangle below everything."""
    ends = {"x0": x[0], "x1": x[1], "y0": y[0], "y1": y[1]}
    figure.add_shape(type="rect", **ends, fillcolor=colour, line={"width": 0}, layer="below", **references)


def line(
    figure: Any, x: tuple[float, float], y: tuple[float, float], style: dict[str, Any], **references: str
) -> None:
    """A straight line."""
    figure.add_shape(type="line", x0=x[0], x1=x[1], y0=y[0], y1=y[1], line=style, **references)


def finish(figure: Any, title: str, height: int) -> "Figure":
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
    axes = {"gridcolor": "#e4e4e0", "zeroline": False, "linecolor": "#cfcfca"}
    figure.update_xaxes(automargin=True, fixedrange=True, **axes)
    figure.update_yaxes(automargin=True, fixedrange=True, **axes)
    return figure
