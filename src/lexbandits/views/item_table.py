"""What each arm gave on each item: one table for page, report and CSV, and where arms differ."""

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from lexbandits._arrays import Vector
from lexbandits.study.core.imports import escape
from lexbandits.study.core.trial_columns import IMPORTED, TOLD
from lexbandits.study.number_format import count, many, value
from lexbandits.study.objective import Objective
from lexbandits.views.estimates import Estimates
from lexbandits.views.svg import tag

MOST_SHOWN = 300  # rows; all are in the CSV
DIFFER = "where they differ"


@dataclass(frozen=True)
class ByItem:
    """Items that were measured, in the order given: (items, arms, objectives) values as told.

    `differ`: whether two arms that were measured on an item differ there, on the first objective that is
    not exact, by more than the tie.
    """

    estimates: Estimates
    items: list[Any]
    values: Vector
    differ: np.ndarray[Any, Any]

    @classmethod
    def of(cls, estimates: Estimates) -> "ByItem | None":
        """Of a study that has items; None of others."""
        projection = estimates.replay.projection
        if projection.spec.items is None:
            return None
        kept = np.flatnonzero(np.isin(projection.column("state"), (TOLD, IMPORTED)))
        arms, passes = projection.column("arm")[kept], projection.column("pass_of")[kept]
        names = {position: projection.item_id(position) for position in np.unique(passes).tolist()}
        rank = {name: k for k, name in enumerate(projection.item_names())}  # never that of the drawn order
        rows = sorted(names, key=lambda position: rank[names[position]])
        row_of = {position: k for k, position in enumerate(rows)}
        values = np.full((len(rows), len(estimates.arms), len(estimates.objectives)), math.nan)
        places = [row_of[position] for position in passes.tolist()], arms
        values[places] = projection.spec.cut(projection.column("values")[kept])
        first = _first(estimates)
        slack, column = estimates.tie(first), values[:, :, first]
        most = np.where(np.isnan(column), -math.inf, column).max(axis=1)
        differ = most - np.where(np.isnan(column), math.inf, column).min(axis=1) > slack * (1 + 1e-9)
        return cls(estimates, [names[position] for position in rows], values, differ)

    @property
    def summary(self) -> str:
        """How many, and on how many arms differ."""
        differing, items = int(self.differ.sum()), many(len(self.items), "item")
        name = self.estimates.objectives[_first(self.estimates)].name
        return f"{items} measured; on {count(differing)} of them arms differ on {name} by more than the tie."

    def csv(self, differ: bool = False) -> str:
        """One row per item, one column per arm and objective; a spreadsheet computes nothing of it."""
        file = io.StringIO()
        lines = csv.writer(file, lineterminator="\n")
        order = self.estimates.columns
        heads = [f"{arm}: {self.estimates.objectives[i].name}" for arm in self.estimates.arms for i in order]
        lines.writerow(["item", *map(escape, heads), "differ"])
        for item, row, differs in zip(self.items, self.values, self.differ.tolist(), strict=True):
            if differs or not differ:
                cells = ["" if math.isnan(v) else repr(v) for v in row[:, order].ravel().tolist()]
                lines.writerow([escape(item), *cells, int(differs)])
        return file.getvalue()

    def table(self) -> Markup:
        """As HTML: those on which arms differ first in what is shown, with a switch for them alone."""
        shown = [*np.flatnonzero(self.differ).tolist(), *np.flatnonzero(~self.differ).tolist()][:MOST_SHOWN]
        order, objectives = self.estimates.columns, self.estimates.objectives
        rows = [
            tag(
                "tr",
                tag("th", str(self.items[k]), scope="row"),
                [
                    tag("td", " · ".join(_shown(objectives[i], self.values[k, arm, i]) for i in order))
                    for arm in range(len(self.estimates.arms))
                ],
                kind=None if self.differ[k] else "same",
            )
            for k in sorted(shown)
        ]
        heads = [tag("th", head, scope="col") for head in ("Item", *self.estimates.arms)]
        switch = tag("label", Markup('<input type="checkbox">'), f" only {DIFFER}")
        cut = len(self.items) - len(shown)
        note = f"Each cell: {' · '.join(objectives[i].name for i in order)}."
        note += f" {many(cut, 'more item')} in the CSV." if cut else ""
        region = {"tabindex": 0, "role": "region", "aria_label": "Items and arms, scrolls"}
        table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), kind="mini")
        return tag("div", tag("p", self.summary), switch, tag("div", table, kind="scroll", **region),
                   tag("p", note, kind="hint"), kind="byitem")  # fmt: skip


def _shown(objective: Objective, number: float) -> str:
    """A single value, such as 1 for right, which no digits of a mean follow."""
    return f"{number:g}" if number in (0, 1) else value(objective, number)


def _first(estimates: Estimates) -> int:
    """The column of the first objective that may have another value on each item."""
    return next((i for i in estimates.columns if not estimates.objectives[i].is_exact), estimates.columns[0])
