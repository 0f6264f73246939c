"""Results from elsewhere into a study before its first ask, and a study's record out of it."""

import json
import math
from collections.abc import Hashable
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexbandits.study.errors import ConflictError, StudyError
from lexbandits.study.journal import Turn
from lexbandits.study.ledger import IMPORTED, STATES, TOLD
from lexbandits.study.spec import arm_index, in_drawn_order

if TYPE_CHECKING:
    import pandas as pd

    from lexbandits.study.study import Study


def take(turn: Turn, frame: "pd.DataFrame", arm: str, fair: bool) -> int:
    """Append one event with all rows, each at its place."""
    ledger = turn.ledger
    if not isinstance(fair, bool):
        raise TypeError(f"fair must be True or False, got {fair!r}")
    if ledger.handed_out or ledger.open or ledger.counts[5]:
        raise ConflictError(
            "results are imported before the first ask: later they would be chosen by looking"
        )
    if arm not in getattr(frame, "columns", ()):
        raise StudyError(f"a frame with a column {arm!r} of arms is needed, got {_columns(frame)}")
    names = ledger.spec.names
    if not set(names) & set(frame.columns):
        raise StudyError(f"no column is an objective ({', '.join(names)}), got {_columns(frame)}")
    frame = _measured(frame)
    arms = [str(name) for name in frame[arm]]
    for name in set(arms):
        arm_index(ledger.arm_names, name)
        if name in ledger.withdrawn:
            raise ConflictError(f"arm {name!r} was withdrawn: restore it first, or leave its rows out")
    columns = [name for name in names if name in frame.columns]
    rows = [
        ledger.spec.checked(dict(zip(columns, row, strict=True)))
        for row in frame[columns].astype(object).itertuples(index=False, name=None)
    ]
    places, items = _places(turn, frame, arms)
    by_place = dict(zip(zip(arms, places, strict=True), rows, strict=True))
    if len(by_place) < len(rows):
        raise StudyError("an arm has two rows of the same item: each item is measured once per arm")
    _check_exact(turn, arms, rows)
    offered = [ledger.arm_names[index] for index in ledger.offered]
    full = [(name, place) for place in sorted(set(places)) for name in offered]
    turn.append(
        "imported",
        {
            "fair": fair,
            "arms": [name for name, _ in full],
            "passes": [place for _, place in full],
            "items": items,
            "values": {name: [by_place.get(place, {}).get(name) for place in full] for name in names},
        },
    )
    turn.settle()
    return len(rows)


def _measured(frame: "pd.DataFrame") -> "pd.DataFrame":
    """The rows that have a result, if these are the trials of a study: its column `state` says so."""
    if "state" not in frame.columns or not frame["state"].isin([*STATES, "void"]).all():
        return frame
    return frame[frame["state"].isin([STATES[TOLD], STATES[IMPORTED]])]


def _columns(frame: Any) -> str:
    columns = getattr(frame, "columns", None)
    return repr(type(frame).__name__) if columns is None else ", ".join(map(str, columns))


def _places(turn: Turn, frame: "pd.DataFrame", arms: list[str]) -> tuple[list[int], list[Any] | None]:
    """The pass of each row, and the items of the new passes if the rows have items."""
    ledger, first = turn.ledger, turn.ledger.highest + 1
    if "item" not in frame.columns:
        if ledger.spec.items is not None:
            raise StudyError("the study has items: say in a column `item` on which each row was measured")
        following = {name: count(first) for name in set(arms)}
        return [next(following[name]) for name in arms], None
    given = [_item(item) for item in frame["item"]]
    distinct = set(given)
    known = ledger.spec.items
    for item in distinct:
        if known is not None and item not in known:
            raise StudyError(f"the study has no item {item!r}")
        if item in ledger.imported_items:
            raise ConflictError(f"item {item!r} was imported before")
    if known is None and first > len(ledger.imported_items):
        raise ConflictError("rows without items were imported before: rows with items cannot follow")
    order = in_drawn_order(distinct, ledger.spec.seed)  # not the frame's, which may be sorted by value
    place_of = {item: place for place, item in enumerate(order, first)}
    return [place_of[item] for item in given], order


def _item(item: Any) -> Hashable:
    plain: Any = item.item() if hasattr(item, "item") else item
    if not isinstance(plain, (str, int, float)) or (isinstance(plain, float) and not math.isfinite(plain)):
        raise StudyError(f"an item must be text or a number, got {item!r}")
    return plain


def _check_exact(turn: Turn, arms: list[str], rows: list[dict[str, float | None]]) -> None:
    for column in turn.ledger.exact_columns:
        objective, known = turn.ledger.spec.objectives[column], {}
        for (arm, at), value in turn.ledger.exact.items():
            if at == column:
                known[turn.ledger.arm_names[arm]] = value
        for arm_name, row in zip(arms, rows, strict=True):
            value = row.get(objective.name)  # type: ignore[assignment]
            if value is not None and known.setdefault(arm_name, value) != value:
                raise ConflictError(f"{objective} is exact, but arm {arm_name!r} has two different values")


def export(study: "Study", path: Path) -> Path:
    """The trials as .csv or .parquet, the events as .jsonl."""
    if path.suffix == ".jsonl":
        with path.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(event._asdict()) + "\n" for event in study.events())
    elif path.suffix == ".csv":
        study.trials().to_csv(path, index=False)
    elif path.suffix == ".parquet":
        frame = study.trials()
        if frame["item"].map(type).nunique() > 1:
            frame["item"] = frame["item"].astype(str)
        try:
            frame.to_parquet(path, index=False)
        except ImportError as error:
            raise StudyError("writing .parquet needs pyarrow: pip install 'lexbandits[parquet]'") from error
    else:
        raise StudyError(f"export writes .csv, .parquet or .jsonl, got {path.name!r}")
    return path
