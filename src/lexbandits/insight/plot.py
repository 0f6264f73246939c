"""Figures of a study for notebooks and pages: plotly with SVG traces only, which draw without eval."""

from lexbandits.insight.course import pulls, race, workers
from lexbandits.insight.outlook import forecast
from lexbandits.insight.standings import evidence, intervals

__all__ = ["evidence", "forecast", "intervals", "pulls", "race", "workers"]
