"""What each arm gave on each item: one table for page, report and CSV, and where arms differ."""

import csv
import io
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from lexbandits.arrays import Vector
from lexbandits.picture.svg import tag
from lexbandits.picture.view import View
from lexbandits.study.record.imports import escape
from lexbandits.study.record.trials import IMPORTED, TOLD
from lexbandits.study.words import count, many, value

MOST_SHOWN = 300  # rows; all are in the CSV
DIFFER = "where they differ"


@dataclass(frozen=True)
class ByItem:
    """Items that were measured, in the order given: (items, arms, objectives) values as told.

    `differ`: whether two arms that were measured on an item are apart there, on the first objective that is
    not exact, by more than the tie.
    """

    view: View
    items: list[Any]
    values: Vector
    differ: np.ndarray[Any, Any]

    @classmethod
    def of(cls, view: View) -> "ByItem | None":
        """Of a study that has items; None of others."""
        ledger = view.fold.ledger
        if ledger.spec.items is None:
            return None
        kept = np.flatnonzero(np.isin(ledger.column("state"), (TOLD, IMPORTED)))
        arms, passes = ledger.column("arm")[kept], ledger.column("pass_of")[kept]
        names = {position: ledger.item_id(position) for position in np.unique(passes).tolist()}
        rank = {name: k for k, name in enumerate(ledger.item_names())}  # never that of the drawn order
        rows = sorted(names, key=lambda position: rank[names[position]])
        row_of = {position: k for k, position in enumerate(rows)}
        values = np.full((len(rows), len(view.arms), len(view.objectives)), math.nan)
        places = [row_of[position] for position in passes.tolist()], arms
        values[places] = ledger.spec.cut(ledger.column("values")[kept])
        first = _first(view)
        slack, column = view.tie(first), values[:, :, first]
        most = np.where(np.isnan(column), -math.inf, column).max(axis=1)
        differ = most - np.where(np.isnan(column), math.inf, column).min(axis=1) > slack * (1 + 1e-9)
        return cls(view, [names[position] for position in rows], values, differ)

    @property
    def summary(self) -> str:
        """How many, and on how many arms differ."""
        apart, items = int(self.differ.sum()), many(len(self.items), "item")
        name = self.view.objectives[_first(self.view)].name
        return f"{items} measured; on {count(apart)} of them arms differ on {name} by more than the tie."

    def csv(self, differ: bool = False) -> str:
        """One row per item, one column per arm and objective; a spreadsheet computes nothing of it."""
        file = io.StringIO()
        lines = csv.writer(file, lineterminator="\n")
        order = self.view.columns
        heads = [f"{arm}: {self.view.objectives[i].name}" for arm in self.view.arms for i in order]
        lines.writerow(["item", *map(escape, heads), "differ"])
        for item, row, apart in zip(self.items, self.values, self.differ.tolist(), strict=True):
            if apart or not differ:
                cells = ["" if math.isnan(v) else repr(v) for v in row[:, order].ravel().tolist()]
                lines.writerow([escape(item), *cells, int(apart)])
        return file.getvalue()

    def table(self) -> Markup:
        """As HTML: those on which arms differ first in what is shown, with a switch for them alone."""
        shown = [*np.flatnonzero(self.differ).tolist(), *np.flatnonzero(~self.differ).tolist()][:MOST_SHOWN]
        order, objectives = self.view.columns, self.view.objectives
        rows = [
            tag(
                "tr",
                tag("th", str(self.items[k]), scope="row"),
                [
                    tag("td", " · ".join(value(objectives[i], self.values[k, arm, i]) for i in order))
                    for arm in range(len(self.view.arms))
                ],
                kind=None if self.differ[k] else "same",
            )
            for k in sorted(shown)
        ]
        heads = [tag("th", head, scope="col") for head in ("Item", *self.view.arms)]
        switch = tag("label", Markup('<input type="checkbox">'), f" only {DIFFER}")
        cut = len(self.items) - len(shown)
        note = f"Each cell: {' · '.join(objectives[i].name for i in order)}."
        note += f" {many(cut, 'more item')} in the CSV." if cut else ""
        region = {"tabindex": 0, "role": "region", "aria_label": "Items and arms, scrolls"}
        table = tag("table", tag("thead", tag("tr", heads)), tag("tbody", rows), kind="mini")
        return tag("div", tag("p", self.summary), switch, tag("div", table, kind="scroll", **region),
                   tag("p", note, kind="hint"), kind="byitem")  # fmt: skip


def _first(view: View) -> int:
    """The column of the first objective that may have another value on each item."""
    return next((i for i in view.columns if view.objectives[i].noise != "exact"), view.columns[0])
