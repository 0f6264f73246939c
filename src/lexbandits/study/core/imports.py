"""Results from elsewhere into a study before its first ask, and a study's record out of it."""

import csv
import difflib
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lexbandits._extras import need
from lexbandits._files import beside
from lexbandits.study.core.events import EventKind
from lexbandits.study.core.journal import UnitOfWork
from lexbandits.study.core.lifecycle import conclude
from lexbandits.study.core.trial_columns import EXPIRED, FAILED, LATE, RELEASED, STATES
from lexbandits.study.errors import ConflictError, StudyError
from lexbandits.study.spec import Spec, arm_index, in_drawn_order
from lexbandits.study.table_files import JSON_LINES, Texts, numbers_in, read_columns
from lexbandits.study.trial import TRIAL_COLUMNS, in_time_column, moment

if TYPE_CHECKING:
    from lexbandits.study.study import Study

Row = dict[str, float | None]
Columns = dict[str, list[Any]]
UNNAMED = re.compile(r"|Unnamed: \d+")  # a column without a name, as pandas too writes an index
FORMULA = re.compile(r"'*[=+\-@\t\r\n]")  # the start of a text that a spreadsheet would compute


# --- in


def take(
    unit: UnitOfWork, frame: Any, arm: str, fair: bool | None, again: bool, ignore: Iterable[str]
) -> int:
    """Append one event with all rows, each at its place; how many of them have a value."""
    projection, spec = unit.projection, unit.projection.spec
    if fair is None and spec.is_list:
        fair = True
    if not isinstance(fair, bool):
        raise TypeError(f"fair must be True or False, got {fair!r}")
    if spec.is_list and projection.end is not None:
        raise ConflictError(f"study {spec.name!r} has ended: reopen it to import results")
    if not spec.is_list and (projection.handed_out or projection.counts[RELEASED]):
        raise ConflictError(
            "results are imported before the first ask: later they would be chosen by looking"
        )
    if spec.serve:
        raise ConflictError(
            f"study {spec.name!r} serves visitors: the arm that leads is measured twice in a pass, which "
            "imported rows are not; import them into a study without serve=True"
        )
    _check_columns(frame, arm, spec.names, [ignore] if isinstance(ignore, str) else list(ignore))
    columns, rows = _count_as_agreed(_table(frame), spec)
    arms = [str(name) for name in columns[arm]]
    for name in set(arms):
        arm_index(projection.arm_names, name)
        if name in projection.withdrawn:
            raise ConflictError(f"arm {name!r} was withdrawn: restore it first, or leave its rows out")
    items = [_check_item(item) for item in columns["item"]] if "item" in columns else None
    if spec.is_list:
        return _fill_places(unit, arms, items, rows)
    digest = _hash_rows(arms, items, rows, spec.names)
    passes, order = _draw_passes(unit, items, arms, [_as_they_count(spec, row) for row in rows])
    by_place = dict(zip(zip(arms, passes, strict=True), rows, strict=True))
    if len(by_place) < len(rows):
        raise StudyError("an arm has two rows of the same item: each item is measured once per arm")
    if digest in projection.imports and not again:
        raise ConflictError(
            "the same results were imported before, and would count twice: say again=True (--again) "
            "if they were measured a second time"
        )
    _check_exact(unit, arms, rows)
    offered = [projection.arm_names[index] for index in projection.offered]
    full = [(name, pass_) for pass_ in sorted(set(passes)) for name in offered]
    unit.append(
        EventKind.IMPORTED,
        {
            "fair": fair,
            "digest": digest,
            "arms": [name for name, _ in full],
            "passes": [pass_ for _, pass_ in full],
            "items": order,
            **({"skipped": skipped} if (skipped := _skipped(unit, order or [])) else {}),
            **({"lost": lost} if (lost := _lost(arms, rows)) else {}),
            "values": {name: [by_place.get(place, {}).get(name) for place in full] for name in spec.names},
        },
    )
    conclude(unit)
    return sum(any(value is not None for value in row.values()) for row in rows)


def _fill_places(unit: UnitOfWork, arms: list[str], items: list[Hashable] | None, rows: list[Row]) -> int:
    """Rows of a list: each at the place of its item, wherever the drawn order has it. Holes are filled."""
    projection, names = unit.projection, unit.projection.spec.names
    if items is None:
        raise StudyError("the study has items: say in a column `item` on which each row was measured")
    where, taken = projection.positions(), projection.places_taken()
    kept = []
    for arm, item, row in zip(arms, items, rows, strict=True):
        if item not in where:
            known = ' (each is measured several times: say "q17#2")' if projection.spec.repeats > 1 else ""
            raise StudyError(f"the study has no item {item!r}{known}")
        place = arm_index(projection.arm_names, arm), where[item]
        if place in taken:
            raise ConflictError(f"item {item!r} of arm {arm!r} has a result, or is being measured")
        taken.add(place)
        if any(value is not None for value in row.values()):
            kept.append((arm, item, row))
    _check_exact(unit, [arm for arm, _, _ in kept], [row for _, _, row in kept])
    if kept:
        values = {name: [row.get(name) for _, _, row in kept] for name in names}
        of, on = [arm for arm, _, _ in kept], [item for _, item, _ in kept]
        digest = _hash_rows(of, on, [row for _, _, row in kept], names)
        fields = {"fair": True, "digest": digest, "arms": of, "items": on, "values": values}
        unit.append(EventKind.IMPORTED, fields)
        conclude(unit)
    return len(kept)


def columns_of(frame: Any, arm: str, spec: Spec, ignore: Iterable[str]) -> tuple[Columns, int]:
    """What matters of a table, as JSON can say it; and how many rows have a value."""
    _check_columns(frame, arm, spec.names, [ignore] if isinstance(ignore, str) else list(ignore))
    table, rows = _count_as_agreed(_table(frame), spec)
    columns: Columns = {arm: [str(name) for name in table[arm]]}
    if "item" in table:
        columns["item"] = [_check_item(item) for item in table["item"]]
    columns |= {name: [row.get(name) for row in rows] for name in spec.names if name in table}
    return columns, sum(any(value is not None for value in row.values()) for row in rows)


def _table(frame: Any) -> Columns:
    names = _names(frame) or []
    for name, times in Counter(map(str, names)).items():
        if times > 1:
            raise StudyError(f"there are {times} columns {name!r}")
    table = {str(name): list(frame[name]) for name in names}
    if len({len(column) for column in table.values()}) > 1:
        raise StudyError("the columns of a table must be equally long")
    return table


def _names(frame: Any) -> list[Any] | None:
    columns = frame if isinstance(frame, dict) else getattr(frame, "columns", None)
    return None if columns is None else list(columns)


def _check_columns(frame: Any, arm: str, names: Sequence[str], ignore: Sequence[str]) -> None:
    columns = _names(frame)
    shown = repr(type(frame).__name__) if columns is None else ", ".join(map(str, columns))
    if columns is None or arm not in columns:
        raise StudyError(f"a frame with a column {arm!r} of arms is needed, got {shown}")
    if not set(names) & set(columns):
        raise StudyError(f"no column is an objective ({', '.join(names)}), got {shown}")
    known = [arm, *names, *TRIAL_COLUMNS, in_time_column(names)]
    for column in map(str, columns):
        if column not in known and column not in ignore and not UNNAMED.fullmatch(column):
            near = difflib.get_close_matches(column, known, 1)
            meant = f"did you mean {near[0]!r}? If not," if near else f"there are {', '.join(names)};"
            way_out = f"ignore=[{column!r}] (--ignore) leaves it out"
            raise StudyError(f"the column {column!r} is no objective: {meant} {way_out}")


def _count_as_agreed(table: Columns, spec: Spec) -> tuple[Columns, list[Row]]:
    """The rows that count, and what as: a failed or expired trial of an exported study as was agreed."""
    blank = [""] * max(map(len, table.values()))
    states = [state if isinstance(state, str) else "" for state in table.get("state", blank)]
    unknown = sorted(set(states) - {*STATES, ""})
    if unknown and not set(STATES).isdisjoint(states):
        raise StudyError(
            f"{unknown[0]!r} is no state of a trial, as others are in this column: rename it if it is another"
        )
    if unknown:  # a column that says something else
        states = blank
    counts = [state != STATES[RELEASED] for state in states]
    table = {name: list(compress(column, counts)) for name, column in table.items()}
    states = list(compress(states, counts))
    agreed: dict[str, Row] = {
        STATES[FAILED]: {objective.name: objective.if_failed for objective in spec.objectives}
    }
    expired = {objective.name: objective.if_expired for objective in spec.objectives}
    agreed |= {STATES[EXPIRED]: expired, STATES[LATE]: expired}
    columns = [name for name in spec.names if name in table]
    told = zip(*(table[name] for name in columns), strict=True)
    in_time = in_time_column(spec.names)
    rows = []
    for state, values, kept in zip(states, told, table.get(in_time, [""] * len(states)), strict=True):
        row = spec.checked(dict(zip(columns, values, strict=True)))
        if state in agreed:  # what was told of it in part counts; what came late does not
            part = spec.names if state != STATES[LATE] else _names_in(in_time, kept)
            row = {**agreed[state], **{name: v for name, v in row.items() if v is not None and name in part}}
        rows.append(row)
    return table, rows


def _names_in(column: str, cell: Any) -> list[Any]:
    """Of a trial that came late: the objectives told in time, as an export says it."""
    if not isinstance(cell, str) or not cell:
        return []
    try:
        names = json.loads(cell)
    except (ValueError, RecursionError):
        names = None
    if not isinstance(names, list):
        raise StudyError(f"{column} is a list of objectives in JSON, or empty, got {cell[:50]!r}")
    return names


def _draw_passes(
    unit: UnitOfWork, items: list[Hashable] | None, arms: list[str], rows: list[Row]
) -> tuple[list[int], list[Hashable] | None]:
    """The pass of each row, and the items of the new passes if the rows have items.

    The order is drawn from the seed and a digest of the rows. It is not the frame's, which may be sorted by
    value: pairs of rows that share their rank would show a difference that is not there, or hide one. Nor
    is it one for all frames of a size: that would pair the same ranks in each of them.
    """
    projection, first, seed = unit.projection, unit.projection.highest + 1, unit.projection.spec.seed or 0
    known = None if projection.spec.items is None else set(projection.spec.ids)
    if items is None:
        if known is not None:
            raise StudyError("the study has items: say in a column `item` on which each row was measured")
        passes, names = [0] * len(arms), unit.projection.spec.names
        digest = _hash_rows(arms, None, rows, names)
        sizes = [[-math.inf if (value := row.get(name)) is None else value for name in names] for row in rows]
        for arm, size in Counter(arms).items():
            own = sorted((at for at, name in enumerate(arms) if name == arm), key=sizes.__getitem__)
            order = in_drawn_order(range(first, first + size), seed, arm, digest)
            for at, pass_ in zip(own, order, strict=True):
                passes[at] = pass_
        return passes, None
    distinct = set(items)
    for item in distinct:
        if known is not None and item not in known:
            raise StudyError(f"the study has no item {item!r}")
        if item in projection.imported_items:
            raise ConflictError(f"item {item!r} was imported before")
    if known is None and first > len(projection.imported_items):
        raise ConflictError("rows without items were imported before: rows with items cannot follow")
    order = in_drawn_order(distinct, seed, _hash_rows(arms, items, rows, projection.spec.names))
    pass_of = {item: pass_ for pass_, item in enumerate(order, first)}
    return [pass_of[item] for item in items], order


def _as_they_count(spec: Spec, row: Row) -> Row:
    """The values of a row, cut where they are."""
    cuts = {objective.name: objective.cut for objective in spec.objectives if objective.is_cut}
    return {name: float(cuts[name](v)) if name in cuts and v is not None else v for name, v in row.items()}


def _skipped(unit: UnitOfWork, order: list[Hashable]) -> int:
    """How many numbers later passes leave out as their items, so that nothing is measured on one twice."""
    items = [*unit.projection.imported_items, *order]
    numbers = [math.floor(item) + 1 for item in items if isinstance(item, (int, float))]
    return max(0, max(numbers, default=0) - len(items)) if unit.projection.spec.items is None else 0


def _lost(arms: list[str], rows: list[Row]) -> dict[str, list[int]]:
    """Arm -> its rows without any value and all of them, if there are such: their values may be why."""
    empty = Counter(arm for arm, row in zip(arms, rows, strict=True) if set(row.values()) <= {None})
    return {arm: [empty[arm], size] for arm, size in Counter(arms).items()} if empty else {}


def _check_item(item: Any) -> Hashable:
    plain: Any = item.item() if hasattr(item, "item") else item
    if not isinstance(plain, (str, int, float)) or (isinstance(plain, float) and not math.isfinite(plain)):
        raise StudyError(f"an item must be text or a number, got {item!r}")
    return plain


def _hash_rows(arms: list[str], items: list[Hashable] | None, rows: list[Row], names: Sequence[str]) -> str:
    """Of the rows, whatever their order."""
    on = items or [None] * len(arms)
    lines = [json.dumps([*key, *map(row.get, names)]) for *key, row in zip(arms, on, rows, strict=True)]
    return hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()


def _check_exact(unit: UnitOfWork, arms: list[str], rows: list[Row]) -> None:
    for column in unit.projection.exact_columns:
        objective, names = unit.projection.spec.objectives[column], unit.projection.arm_names
        known = {names[arm]: value for (arm, at), value in unit.projection.exact.items() if at == column}
        for arm_name, row in zip(arms, rows, strict=True):
            value = row.get(objective.name)
            if value is not None and known.setdefault(arm_name, value) != value:
                raise ConflictError(f"{objective} is exact, but arm {arm_name!r} has two different values")


def read(path: Path, spec: Spec) -> Columns:
    """A file's columns; names are texts, whatever else "0.10" or "None" might be."""
    found = read_columns(path, "import")
    texts = [column for column in found.values() if isinstance(column, Texts)]
    if not texts:
        return found
    for column in texts:
        column[:] = [_unescape(cell) for cell in column]
    columns: Columns = {_unescape(name): column for name, column in found.items()}
    for name in set(spec.names) & set(columns):
        columns[name] = numbers_in(name, columns[name])
    if "item" in columns:
        are_texts = all(isinstance(item, str) for item in spec.ids or [0])
        items = columns["item"] if are_texts else _numbers_if_all(columns["item"])
        columns["item"] = [None if item == "" else item for item in items]
    return columns


def _numbers_if_all(texts: list[str]) -> list[Any]:
    for kind in (int, float) if not any("_" in text for text in texts) else ():
        try:
            return [kind(text) for text in texts]
        except ValueError:
            continue
    return texts


# --- out


def export(study: "Study", path: Path) -> Path:
    """Write the trials as .csv or .parquet, the events as .jsonl: a whole file, or none."""
    if path.suffix not in (".csv", ".parquet", JSON_LINES):
        raise StudyError(f"export writes .csv, .parquet or .jsonl, got {path.name!r}")
    with beside(path) as new:
        _export(study, new)
    return path


def _export(study: "Study", path: Path) -> None:
    if path.suffix == JSON_LINES:
        with path.open("w", encoding="utf-8") as file:
            file.writelines(study._journal.exported())
    elif path.suffix == ".csv":
        columns = study._trials()
        for name in ("asked", "resolved"):
            columns[name] = ["" if math.isnan(at) else moment(at) for at in columns[name].tolist()]
        with path.open("w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file, lineterminator="\n")
            rows.writerow(map(escape, columns))
            rows.writerows(map(_written, row) for row in zip(*columns.values(), strict=True))
    else:
        need("pyarrow", "writing .parquet")
        frame = study.trials()
        if frame["item"].map(type).nunique() > 1:
            frame["item"] = frame["item"].astype(str)
        frame.to_parquet(path, index=False)


def _written(value: Any) -> Any:
    """A cell of a file: nothing where there is no value."""
    return "" if value is None or (isinstance(value, float) and math.isnan(value)) else escape(value)


def escape(text: Any) -> Any:
    """As a spreadsheet shows it: one that opens the file must compute nothing."""
    return f"'{text}" if isinstance(text, str) and FORMULA.match(text) else text


def _unescape(text: Any) -> Any:
    return text[1:] if isinstance(text, str) and text[:1] == "'" and FORMULA.match(text) else text
