"""A finished table: one row per arm, item and repeat, from a frame or a file, put into cells and checked."""

import csv
import difflib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Vector
from lexbandits.checks import LARGEST, whole
from lexbandits.study.errors import StudyError, ValueOutOfRange
from lexbandits.study.objective import Objective

NOTHING = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none"}  # in a file, lower case
TRUTH = {"true": 1.0, "false": 0.0}
WAYS_OUT = (
    'say missing="worst" (it counts as the worst it could have been), missing="drop" (you vouch that it is '
    "not missing because of what it was), or if_failed= of the objective, what a missing value is worth"
)


@dataclass(frozen=True)
class Table:
    """Values are of the kind "more is better"; the mean over repeats stands in each cell (item, arm).

    `low` and `high` are the least and the most that a cell can be: they differ where values are missing
    and count at their worst. What nobody asked for is nan in all three.
    """

    arms: tuple[str, ...]
    objectives: tuple[Objective, ...]
    seen: Vector  # (n, K, m)
    low: Vector
    high: Vector
    kinds: tuple[str, ...]  # "binary": 0/1 in every cell
    is_paired: bool
    clusters: NDArray[np.int64] | None = None  # (n,) of the items
    largest_cluster: int | None = None  # as stated
    missing: int = 0  # cells
    repeats: tuple[int, int] = (1, 1)  # the fewest and the most of a cell

    @property
    def n_units(self) -> int:
        """Items, or clusters of them."""
        return len(self.seen) if self.clusters is None else int(self.clusters.max()) + 1


# --- columns


def columns_of(table: Any, wanted: Sequence[str]) -> dict[str, Any]:
    """The wanted columns of a frame, of a dict of columns or of a file."""
    if isinstance(table, (str, Path)):
        table = _read(Path(table))
    if isinstance(table, Mapping):
        names, column = list(table), table.__getitem__
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError:
            raise StudyError(
                "a table is a frame (pandas, polars, pyarrow; a lazy one: collect it first), a dict of columns "
                f"or the path of a .csv, .jsonl or .parquet, got {type(table).__name__!r}"
            ) from None
        names, column = frame.columns, lambda name: frame[name].to_list()
    for name in wanted:
        if name not in names:
            near = difflib.get_close_matches(str(name), map(str, names), 1)
            hint = f"did you mean {near[0]!r}? There" if near else "there"
            raise StudyError(f"the table has no column {name!r}; {hint} are {', '.join(map(str, names))}")
    found = {name: column(name) for name in wanted}
    if len({len(values) for values in found.values()}) > 1:
        raise StudyError("the columns of a table must be equally long")
    return found


def _read(path: Path) -> Any:
    if path.suffix == ".csv":
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = csv.reader(file)
            head = next(rows, [])
            columns = list(zip(*(row for row in rows if row), strict=True)) or [()] * len(head)
        return dict(zip(head, columns, strict=True))
    if path.suffix == ".jsonl":
        with path.open(encoding="utf-8") as lines:
            documents = [json.loads(line) for line in lines if line.strip()]
        return {name: [row.get(name) for row in documents] for row in documents[:1] for name in row}
    if path.suffix == ".parquet":
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise StudyError("reading .parquet needs pyarrow: pip install 'lexbandits[parquet]'") from error
        return pyarrow.parquet.read_table(path)
    raise StudyError(f"judge reads .csv, .jsonl or .parquet, got {path.name!r}")


def _codes(what: str, column: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for every name, in the order in which they come, and the names."""
    plain = column.tolist() if hasattr(column, "tolist") else column
    known: dict[Any, int] = {}
    codes = np.fromiter((known.setdefault(name, len(known)) for name in plain), np.int64, len(plain))
    for name, code in known.items():
        if name is None or name == "" or name != name or type(name).__name__ in ("NAType", "NaTType"):
            raise StudyError(f"row {int(np.argmax(codes == code)) + 1}: {what} is missing")
    return codes, list(known)


def _numbers(objective: Objective, column: Any) -> Vector:
    """The values of an objective's column, nan where there is none; as measured."""
    try:
        return np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError):
        return np.array([_number(objective, row, value) for row, value in enumerate(column, 1)])


def _number(objective: Objective, row: int, value: Any) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if word in NOTHING or word in TRUTH:
            return TRUTH.get(word, math.nan)
        try:
            value = float(value)
        except ValueError:
            raise ValueOutOfRange(f"row {row}: {objective} must be a number, got {value!r}") from None
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return math.nan
    return float(value)


# --- cells


def table_of(
    table: Any,
    objectives: Sequence[Objective],
    *,
    arm: str,
    item: str | None,
    repeat: str | None,
    cluster: str | None,
    max_cluster: int | None,
    missing: str,
) -> Table:
    """Read, check and average over repeats."""
    if item is None and (repeat is not None or cluster is not None):
        raise StudyError("repeat= and cluster= need item=: they are about rows of one item, or about items")
    if max_cluster is not None and cluster is None:
        raise StudyError("max_cluster= goes with cluster=")
    keys = [name for name in (arm, item, repeat, cluster) if name is not None]
    columns = columns_of(table, [*keys, *(objective.name for objective in objectives)])
    arm_codes, names = _codes("the arm", columns[arm])
    if not names:
        raise StudyError("the table has no rows")
    values = np.stack([_numbers(objective, columns[objective.name]) for objective in objectives], axis=1)
    _check_range(values, objectives, columns[item] if item is not None else None)
    agreed = [math.nan if o.if_failed is None else o.if_failed for o in objectives]
    values = np.where(np.isnan(values), agreed, values)
    if item is None:
        rows = _drawn_together(arm_codes, names, values)
    else:
        rows, items = _codes("the item", columns[item])
    n, K = int(rows.max()) + 1, len(names)
    cell = rows * K + arm_codes
    counts = np.bincount(cell, minlength=n * K)
    if item is not None and counts.max() > 1:
        _check_repeats(columns, cell, counts, arm, item, repeat)
    signs = np.array([objective.sign for objective in objectives], dtype=np.float64)
    mean = lambda filled: _averaged(filled, cell, counts, (n, K))  # noqa: E731
    seen = mean(values) * signs + 0.0
    gaps = np.isnan(values)
    asked = counts.reshape(n, K) > 0 if item is None else np.ones((n, K), np.bool_)
    kinds = tuple(_kind(o, values[:, i], repeat is not None) for i, o in enumerate(objectives))
    lost = asked[:, :, None] & (np.isnan(seen) | (mean(gaps.astype(np.float64)) > 0))
    lost[:, :, [kind == "exact" for kind in kinds]] = False
    low = high = seen
    if lost.any() and missing == "worst":
        worst = [np.where(gaps, [o.bounds[side] for o in objectives], values) for side in (0, 1)]
        ends = [mean(filled) for filled in worst]
        empty = asked & (counts.reshape(n, K) == 0)
        for side, end in enumerate(ends):
            end[empty] = [o.bounds[side] for o in objectives]
        low = np.where(signs > 0, ends[0], -ends[1]) + 0.0
        high = np.where(signs > 0, ends[1], -ends[0]) + 0.0
    result = Table(
        arms=tuple(str(name) for name in names),
        objectives=tuple(objectives),
        seen=seen,
        low=low,
        high=high,
        kinds=kinds,
        is_paired=item is not None,
        clusters=None if cluster is None else _clusters(rows, columns[cluster], items),
        largest_cluster=None if max_cluster is None else whole("max_cluster", max_cluster, least=1),
        missing=int(lost.any(axis=2).sum()),
        repeats=(int(counts[counts > 0].min()), int(counts.max())),
    )
    _check_gaps(result, lost, missing)
    _check_clusters(result)
    return result


def _averaged(values: Vector, cell: NDArray[np.int64], counts: Vector, shape: tuple[int, int]) -> Vector:
    """(n, K, m) means of the values that are there."""
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        columns = [
            np.bincount(cell[there[:, i]], values[there[:, i], i], counts.size)
            / np.bincount(cell[there[:, i]], minlength=counts.size)
            for i in range(values.shape[1])
        ]
    return np.stack(columns, axis=1).reshape(*shape, -1)


def _drawn_together(arms: NDArray[np.int64], names: list[Any], values: Vector) -> NDArray[np.int64]:
    """Rows without items: the place of each in an order drawn per arm, whatever the order of the file."""
    rng, places = np.random.default_rng(0), np.empty(arms.size, np.int64)
    for code in sorted(range(len(names)), key=lambda code: str(names[code])):
        own = np.flatnonzero(arms == code)
        places[own[np.lexsort(values[own].T)]] = rng.permutation(own.size)
    return places


def _kind(objective: Objective, values: Vector, averaged: bool) -> str:
    word = objective.noise if isinstance(objective.noise, str) else str(objective.noise[0])
    if word != "bernoulli":
        return word
    return "bounded" if averaged or not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all() else "binary"


def _clusters(rows: NDArray[np.int64], column: Any, items: list[Any]) -> NDArray[np.int64]:
    codes, _ = _codes("the cluster", column)
    of_item = np.zeros(len(items), np.int64)
    of_item[rows] = codes
    if (of_item[rows] != codes).any():
        split = items[int(rows[np.argmax(of_item[rows] != codes)])]
        raise StudyError(f"item {split!r} is in two clusters")
    return of_item


# --- checks


def _check_range(values: Vector, objectives: Sequence[Objective], items: Any) -> None:
    for i, objective in enumerate(objectives):
        low, high = (max(min(end, LARGEST), -LARGEST) for end in objective.bounds)
        wrong = ~((values[:, i] >= low) & (values[:, i] <= high)) & ~np.isnan(values[:, i])
        if wrong.any():
            row = int(np.argmax(wrong))
            where = f"row {row + 1}" if items is None else f"row {row + 1}, item {items[row]!r}"
            said = "finite" if math.isinf(objective.bounds[1]) else f"in [{low:g}, {high:g}]"
            raise ValueOutOfRange(f"{where}: {objective} must be {said}, got {values[row, i]:g}")


def _check_repeats(columns: Any, cell: Any, counts: Any, arm: str, item: str, repeat: str | None) -> None:
    if repeat is None:
        keys, more = cell, "say repeat=, the column that tells them apart"
    else:
        codes, names = _codes("the repeat", columns[repeat])
        keys, more = cell * len(names) + codes, f"of one {repeat}"
    _, first, twice = np.unique(keys, return_index=True, return_counts=True)
    if twice.max() > 1:
        row = int(first[np.argmax(twice > 1)])
        named = f"item {columns[item][row]!r} has {twice.max()} rows of {str(columns[arm][row])!r}"
        raise StudyError(f"{named}: {more}" if repeat is None else f"{named} {more}")


def _check_gaps(table: Table, lost: NDArray[np.bool_], missing: str) -> None:
    for i, objective in enumerate(table.objectives):
        empty = np.isnan(table.seen[:, :, i]).all(axis=0)
        if empty.any():
            raise StudyError(f"{table.arms[int(np.argmax(empty))]!r} has no value of {objective.name!r}")
        if table.kinds[i] == "exact":
            values = table.seen[:, :, i]
            differ = np.nanmax(values, axis=0) != np.nanmin(values, axis=0)
            if differ.any():
                name = table.arms[int(np.argmax(differ))]
                raise StudyError(f"{objective} is exact, but arm {name!r} has two different values")
        holes = int(lost[:, :, i].sum())
        if holes and missing == "error":
            raise StudyError(
                f"{holes} of {lost[:, :, i].size} values of {objective.name!r} are missing: {WAYS_OUT}"
            )
        if holes and missing == "worst" and not objective.is_bounded:
            raise StudyError(
                f'{objective}: missing="worst" needs values that have a worst: '
                f'noise="bernoulli" or ("bounded", low, high), got {objective.noise!r}'
            )
        there = ~np.isnan(table.low[:, :, i])
        if table.kinds[i] != "exact" and (there.T.astype(float) @ there == 0).any():
            a, b = np.argwhere(there.T.astype(float) @ there == 0)[0]
            raise StudyError(
                f"{table.arms[a]!r} and {table.arms[b]!r} have no item of {objective.name!r} in common"
            )
        if not table.is_paired or objective.noise[2:] != ("independent",) or isinstance(objective.noise, str):
            continue
        raise StudyError(
            f"{objective}: arms measured on common items share what an item has in common, so their "
            'noise is not independent: leave "independent" out, or say item=None'
        )


def _check_clusters(table: Table) -> None:
    if table.clusters is None:
        return
    largest = int(np.bincount(table.clusters).max())
    if table.largest_cluster is not None and largest > table.largest_cluster:
        raise StudyError(f"a cluster has {largest} items, more than max_cluster={table.largest_cluster}")
    for objective, kind in zip(table.objectives, table.kinds, strict=True):
        if kind == "sub_gaussian":
            raise StudyError(
                f'{objective}: clusters of "sub_gaussian" values have no known scale: say '
                '"gaussian" or ("bounded", low, high)'
            )
