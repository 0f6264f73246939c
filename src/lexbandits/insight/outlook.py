"""What is to come, drawn: when a study is likely to end, and who is likely to win."""

from typing import TYPE_CHECKING

from lexbandits.forecasting.forecast import Forecast
from lexbandits.forecasting.forecast import forecast as played_on
from lexbandits.insight.canvas import BAND, ENTIRE, IN, blank, finish, line, patch
from lexbandits.study.study import Study
from lexbandits.study.words import about, percent

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROOM = 0.62  # of the height, for the upper half


def forecast(study: Study, found: Forecast | None = None) -> "Figure":
    """When the study is likely to end, and who is likely to win; `found` is a forecast made before."""
    figure = blank()
    coming = played_on(study) if found is None else found
    ends = list(coming.ends)
    figure.add_scatter(
        x=ends,
        y=[(k + 1) / len(ends) for k in range(len(ends))],
        mode="lines",
        line={"color": IN, "width": 2, "shape": "hv"},
        xaxis="x",
        yaxis="y",
        hovertemplate="%{y:.0%} of the futures end within %{x:,} results<extra></extra>",
    )
    low, median, high = coming.results
    patch(figure, (low, high), ENTIRE, BAND, xref="x", yref="y")
    line(figure, (median, median), ENTIRE, {"color": IN, "width": 1.5, "dash": "dot"}, xref="x", yref="y")
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
    needed, ended = {"text": "results still needed"}, {"text": "ended"}
    figure.layout.xaxis = {"title": needed, "anchor": "y", "nticks": 4, "rangemode": "tozero"}
    figure.layout.yaxis = {"title": ended, "domain": [1 - ROOM + 0.1, 1], "tickformat": ".0%", "nticks": 4}
    figure.layout.xaxis2 = {"domain": [0, 0.86], "anchor": "y2", "visible": False, "range": [0, 1]}
    figure.layout.yaxis2 = {"domain": [0, 1 - ROOM - 0.12], "anchor": "x2", "type": "category"}
    likely = f"{about(low)} to {about(high)} in 8 of 10 futures"
    title = f"About {about(median)} results to go ({likely}); below, who wins"
    return finish(figure, title if high else coming.sentence, 320 + 26 * len(winners))
