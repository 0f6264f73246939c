"""What a section of the report is: a module that says what is run, tabulated, drawn and claimed."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from experiments.drawing import Figure
from experiments.paper.experiment import Entry
from experiments.paper.tables import Row, Tables
from experiments.paper.verdict import Claim
from lexbandits.simulation.results import Results


class Section(Protocol):
    """One experiment. Its figure and its claims read the tables alone."""

    NAME: str
    TITLE: str
    CAPTION: str
    SHOWN: Mapping[str, str]  # the tables that stand under the figure, and their headings
    CLAIMS: Sequence[Claim]

    def entries(self) -> list[tuple[Row, Entry]]:
        """Every cell, with the columns that name it in the tables."""

    def tables(self, results: Results, answers: Mapping[str, Row], /) -> dict[str, list[Row]]:
        """From the results of all cells and, by name of the cell, how its answers came out."""

    def draw(self, tables: Tables) -> Figure:
        """The figure."""
