"""What a section of the report is; each has a file of its own, which ends in a `SECTION`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from lexbandits.reproduction.experiment import Entry
from lexbandits.reproduction.tables import Row, Tables
from lexbandits.reproduction.verdict import Claim
from lexbandits.simulation.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Section(NamedTuple):
    """One experiment: what is run, what is tabulated, drawn and claimed.

    `entries` gives every cell with the columns that name it in the tables; `tables` takes the results of
    all cells and, by name of the cell, how its answers came out (`experiment.answers`); `shown` says which
    tables stand under the figure, with what heading. Figures and claims read the tables alone.
    """

    name: str
    title: str
    caption: str
    entries: Callable[[], list[tuple[Row, Entry]]]
    tables: Callable[[Results, Mapping[str, Row]], Mapping[str, list[Row]]]
    shown: Mapping[str, str]
    draw: Callable[[Tables], "Figure"]
    claims: tuple[Claim, ...]
