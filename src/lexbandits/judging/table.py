"""A finished table: one row per arm, item and repeat, from a frame or a file, put into cells and checked."""

import decimal
import hashlib
import math
import numbers
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lexbandits.arrays import Vector
from lexbandits.checks import LARGEST, SMALLEST, known_names, whole
from lexbandits.study.errors import StudyError, ValueOutOfRange
from lexbandits.study.files import number_in, read_columns
from lexbandits.study.items import unique
from lexbandits.study.objective import Objective

PLAIN_KINDS = frozenset("biuf")  # of NumPy's types: numbers, and nothing that only looks like one
PLAIN_TYPES = {float, int, bool}


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
    kinds: tuple[str, ...]  # "binary": 0/1 in every cell; "quantile": `seen` is as `_around` says
    items: tuple[Any, ...]
    is_paired: bool
    clusters: NDArray[np.int64] | None = None  # (n,) of the items
    largest_cluster: int | None = None  # as stated
    missing: int = 0  # cells
    dropped: int = 0  # of these, cells in which a value is left out
    repeats: tuple[int, int] = (1, 1)  # the fewest and the most of a cell

    @property
    def n_units(self) -> int:
        """Items, or clusters of them."""
        return len(self.seen) if self.clusters is None else int(self.clusters.max()) + 1


# --- columns


def columns_of(table: Any, wanted: Sequence[str]) -> dict[str, Any]:
    """The wanted columns of a frame, of a dict of columns or of a file."""
    if isinstance(table, (str, Path)):
        table = read_columns(Path(table), "judge")
    if isinstance(table, Mapping):
        names, column = list(table), table.__getitem__
    else:
        import narwhals as nw

        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError:
            raise StudyError(
                "a table is a frame (pandas, polars, pyarrow; collect a lazy one first), a dict of columns "
                f"or the path of a .csv, .jsonl or .parquet, got {type(table).__name__!r}"
            ) from None
        names, column = frame.columns, lambda name: frame[name].to_list()
    for name in wanted:
        if name not in names:
            hint = known_names(name, names, "there are")
            raise StudyError(f"the table has no column {name!r}; {hint}")
    found = {name: column(name) for name in wanted}
    if len({len(values) for values in found.values()}) > 1:
        raise StudyError("the columns of a table must be equally long")
    return found


def _codes(what: str, column: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for every name, in the order in which they come, and the names."""
    plain = column.tolist() if hasattr(column, "tolist") else column
    known: dict[Any, int] = {}
    try:
        codes = np.fromiter((known.setdefault(name, len(known)) for name in plain), np.int64, len(plain))
    except TypeError:
        row, name = next((n, name) for n, name in enumerate(plain, 1) if name.__hash__ is None)
        raise StudyError(f"row {row}: {what} must be text or a number, got {reprlib.repr(name)}") from None
    if {bool} < set(map(type, plain)):
        _check_alike(what, plain)
    for name, code in known.items():
        if isinstance(name, (bytes, complex, tuple, frozenset)):
            row = int(np.argmax(codes == code)) + 1
            raise StudyError(f"row {row}: {what} must be text or a number, got {reprlib.repr(name)}")
        if name is None or name == "" or name != name or type(name).__name__ in ("NAType", "NaTType"):
            raise StudyError(f"row {int(np.argmax(codes == code)) + 1}: {what} is missing")
    return codes, list(known)


def _check_alike(what: str, names: Any) -> None:
    """Refuse names that Python takes for one and people for two, such as 1 and True."""
    known: dict[Any, tuple[int, Any]] = {}
    for row, name in enumerate(names, 1):
        first, other = known.setdefault(name, (row, name))
        if (type(name) is bool) != (type(other) is bool):
            raise StudyError(
                f"{what} is {other!r} in row {first} and {name!r} in row {row}, which Python takes for the "
                "same: write both as text"
            )


def _numbers(objective: Objective, column: Any) -> Vector:
    """The values of an objective's column, nan where there is none: as measured, but cut as it says."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    is_plain = kind in PLAIN_KINDS if kind else PLAIN_TYPES.issuperset(map(type, column))
    try:
        if not is_plain:
            raise TypeError
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        values = np.array([_number(objective, row, value) for row, value in enumerate(column, 1)])
    return np.asarray(objective.cut(values))


def _number(objective: Objective, row: int, value: Any) -> float:
    if type(value) in (float, int, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    number = number_in(value) if isinstance(value, str) else value
    if number is None or type(number).__name__ in ("NAType", "NaTType"):
        return math.nan
    if isinstance(number, (numbers.Real, decimal.Decimal, np.bool_)):
        return float(number)
    raise ValueOutOfRange(
        f"row {row}: {objective} must be a number, or None where it is missing, "
        f"got {reprlib.repr(value)} ({type(value).__name__})"
    )


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
    for objective in objectives if repeat is not None or cluster is not None else ():
        if objective.quantile is not None:
            raise StudyError(
                f"{objective}: quantile= is about single values, so repeat= and cluster= do not go with it"
            )
    if max_cluster is not None and cluster is None:
        raise StudyError("max_cluster= goes with cluster=")
    keys = [name for name in (arm, item, repeat, cluster) if name is not None]
    columns = columns_of(table, [*keys, *(objective.name for objective in objectives)])
    arms, names = _codes("the arm", columns[arm])
    if not names:
        raise StudyError("the table has no rows")
    unique("names of arms", [str(name) for name in names])
    values = np.stack([_numbers(objective, columns[objective.name]) for objective in objectives], axis=1)
    for i, objective in enumerate(objectives):
        _check_values(objective, values[:, i], arms, names, None if item is None else columns[item])
    agreed = [math.nan if o.if_failed is None else float(o.cut(o.if_failed)) for o in objectives]
    values = np.where(np.isnan(values), agreed, values)
    if item is None:
        rows = _drawn_together(arms, names, values)
        items: list[Any] = []
    else:
        rows, items = _codes("the item", columns[item])
    K = len(names)
    cell = rows * K + arms
    counts = np.bincount(cell, minlength=(int(rows.max()) + 1) * K).reshape(-1, K)
    if item is not None and counts.max() > 1:
        _check_repeats(columns, cell, arm, item, repeat)
    kinds = tuple(_kind(o, values[:, i], repeat is not None) for i, o in enumerate(objectives))
    seen = _averaged(values, cell, counts)
    asked = (counts > 0) | (item is not None)
    some_gone = _averaged(np.isnan(values).astype(np.float64), cell, counts) > 0
    lost = asked[:, :, None] & (np.isnan(seen) | some_gone) & (np.array(kinds) != "exact")
    signs = np.array([objective.sign for objective in objectives], dtype=np.float64)
    low = high = seen = seen * signs + 0.0
    ways = np.array(["worst" if objective.if_missing else missing for objective in objectives])
    at_worst = lost.any(axis=(0, 1)) & (ways == "worst")
    if at_worst.any():
        ends = []
        for side in (0, 1):
            bounds = [objective.bounds[side] for objective in objectives]
            end = _averaged(np.where(np.isnan(values), bounds, values), cell, counts)
            end[asked & (counts == 0)] = bounds
            ends.append(end)
        low, high = (
            np.where(at_worst, np.where(signs > 0, *order) * signs, seen)
            for order in ((ends[0], ends[1]), (ends[1], ends[0]))
        )
    seen = seen.copy() if "quantile" in kinds else seen
    for i, objective in enumerate(objectives):
        if objective.quantile is not None:
            for column in range(K):
                seen[:, column, i] = _around(seen[:, column, i], objective)
    result = Table(
        arms=tuple(str(name) for name in names),
        objectives=tuple(objectives),
        seen=seen,
        low=low,
        high=high,
        kinds=kinds,
        items=tuple(items),
        is_paired=item is not None,
        clusters=None if cluster is None else _clusters(rows, columns[cluster], items),
        largest_cluster=None if max_cluster is None else whole("max_cluster", max_cluster, least=1),
        missing=int(lost.any(axis=2).sum()),
        dropped=int(lost[:, :, ways == "drop"].any(axis=2).sum()),
        repeats=(int(counts[counts > 0].min()), int(counts.max())),
    )
    for i in range(len(objectives)):
        _check_gaps(result, i, int(lost[:, :, i].sum()), str(ways[i]))
    if result.clusters is not None:
        _check_clusters(result, int(np.bincount(result.clusters).max()))
    return result


def _averaged(values: Vector, cell: NDArray[np.int64], counts: NDArray[np.int64]) -> Vector:
    """(n, K, m) means over the rows of a cell that have a value."""
    columns = []
    for column in values.T:
        there = ~np.isnan(column)
        sums, sizes = (np.bincount(cell[there], w, counts.size) for w in (column[there], None))
        columns.append(np.divide(sums, sizes, out=np.full(counts.size, math.nan), where=sizes > 0))
    return np.stack(columns, axis=1).reshape(*counts.shape, -1)


def _around(values: Vector, objective: Objective) -> Vector:
    """Values whose mean is the quantile of the given ones, and that vary as much as its estimate does.

    Each is the quantile and what that value does to it, by the slope of the values around it: for what is
    seen and forecast alone. Claims are about the values as they are.
    """
    share = objective.quantile or 0.0
    known = np.sort(objective.sign * values[~np.isnan(values)])
    off = 2 * math.sqrt(share * (1 - share) / known.size)
    places = [
        min(max(math.ceil(known.size * q - 1e-9), 1), known.size) for q in (share - off, share, share + off)
    ]
    low, quantile, high = known[np.array(places) - 1]
    slope = (high - low) * known.size / max(1, places[2] - places[0])
    effects = np.where(np.isnan(values), math.nan, slope * (objective.sign * values > quantile))
    return np.asarray(objective.sign * (effects - np.nanmean(effects) + quantile))


def _drawn_together(arms: NDArray[np.int64], names: list[Any], values: Vector) -> NDArray[np.int64]:
    """Rows without items: the place of each in an order drawn per arm, from a digest of all values.

    Files are sorted by value: the k-th rows of two arms would seem to differ less, or more, than they do.
    Neither the order of the file nor, unless two arms have the same values, their names play a part. One
    draw for all tables would pair the same ranks in each of them. docs/proofs.md, "Rows that nothing pairs".
    """
    values = np.where(np.isnan(values), math.nan, values + 0.0)  # one way to write nan, and 0
    own = [np.flatnonzero(arms == code) for code in range(len(names))]
    own = [rows[np.lexsort(values[rows].T)] for rows in own]
    digests = [hashlib.sha256(values[rows].astype("<f8").tobytes()).digest() for rows in own]
    order = sorted(range(len(names)), key=lambda code: (digests[code], str(names[code])))
    drawn_from = hashlib.sha256(b"".join(digests[code] for code in order)).digest()
    rng, places = np.random.default_rng(list(drawn_from)), np.empty(arms.size, np.int64)
    for code in order:
        places[own[code]] = rng.permutation(own[code].size)
    return places


def _kind(objective: Objective, values: Vector, is_averaged: bool) -> str:
    word = objective.noise if isinstance(objective.noise, str) else str(objective.noise[0])
    if objective.quantile is not None:
        return "quantile"
    if word != "bernoulli":
        return word
    if objective.is_relative:
        return "bounded"
    return "bounded" if is_averaged or not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all() else "binary"


def _clusters(rows: NDArray[np.int64], column: Any, items: list[Any]) -> NDArray[np.int64]:
    codes, _ = _codes("the cluster", column)
    of_item = np.zeros(len(items), np.int64)
    of_item[rows] = codes
    split = of_item[rows] != codes
    if split.any():
        raise StudyError(f"item {items[rows[np.argmax(split)]]!r} is in two clusters")
    return of_item


# --- checks


def _check_values(objective: Objective, values: Vector, arms: Any, names: list[Any], items: Any) -> None:
    low, high = (max(min(end, LARGEST), -LARGEST) for end in objective.bounds)
    if objective.is_relative and math.isinf(objective.bounds[0]):
        low = 0.0
    wrong = ~((values >= low) & (values <= high)) & ~np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f"row {row + 1}" if items is None else f"row {row + 1}, item {items[row]!r}"
        said = "finite" if math.isinf(objective.bounds[1]) else f"in [{low:g}, {high:g}]"
        raise ValueOutOfRange(f"{where}: {objective} must be {said}, got {values[row]:g}")
    largest = float(np.max(np.abs(values), where=~np.isnan(values), initial=0.0))
    if 0.0 < largest < SMALLEST and objective.noise != "exact":
        raise ValueOutOfRange(
            f"{objective}: no value is larger than {largest:g}, too small for floating point: say them in a "
            f"smaller unit, so that some are at least {SMALLEST:g}"
        )
    if objective.is_relative and (min(low, np.nanmin(values)) < 0 or np.nanmax(values) == 0):
        raise StudyError(
            f"{objective}: shares of {objective.reference} need values that are not negative, nor all 0"
        )
    if objective.is_relative and objective.reference not in ("best", *map(str, names)):
        raise StudyError(
            f'{objective}: reference must be "best", an arm or a number, got {objective.reference!r}; '
            f"there are {', '.join(map(repr, names))}"
        )
    for code, name in enumerate(names):
        own = values[(arms == code) & ~np.isnan(values)]
        if not own.size and objective.if_failed is None:
            raise StudyError(f"{name!r} has no value of {objective.name!r}")
        if objective.noise == "exact" and own.size and own.min() < own.max():
            raise StudyError(f"{objective} is exact, but arm {name!r} has two different values")


def _check_repeats(
    columns: dict[str, Any], cell: NDArray[np.int64], arm: str, item: str, repeat: str | None
) -> None:
    keys, more = cell, ": say repeat=, the column that tells them apart"
    if repeat is not None:
        codes, names = _codes("the repeat", columns[repeat])
        keys, more = cell * len(names) + codes, f" with one {repeat!r}"
    _, first, twice = np.unique(keys, return_index=True, return_counts=True)
    if twice.max() > 1:
        at = int(np.argmax(twice > 1))
        row = int(first[at])
        raise StudyError(f"item {columns[item][row]!r} has {twice[at]} rows of {columns[arm][row]!r}{more}")


def _check_gaps(table: Table, i: int, holes: int, missing: str) -> None:
    objective, there = table.objectives[i], (~np.isnan(table.low[:, :, i])).astype(np.float64)
    if holes and missing == "error":
        raise StudyError(
            f"{holes} of {there.size} values of {objective.name!r} are missing: {_ways_out(objective)}"
        )
    if holes and missing == "worst" and not objective.is_bounded:
        raise StudyError(
            f'{objective}: missing="worst" needs values that have a worst: '
            f'noise="bernoulli" or ("bounded", low, high), got {objective.noise!r}'
        )
    apart = np.argwhere(there.T @ there == 0)
    if apart.size and table.kinds[i] != "exact":
        a, b = (table.arms[arm] for arm in apart[0])
        raise StudyError(f"{a!r} and {b!r} have no item in common with values of {objective.name!r}")
    if table.is_paired and isinstance(objective.noise, tuple) and "independent" in objective.noise:
        raise StudyError(
            f"{objective}: arms measured on common items share what an item has in common, so their "
            'noise is not independent: leave "independent" out, or say item=None'
        )


def _ways_out(objective: Objective) -> str:
    """What can be said of missing values of this noise."""
    drop = 'missing="drop" (you vouch that it is not missing because of what it was)'
    agreed = "if_failed= of the objective, what a missing value is worth"
    if objective.is_bounded:
        return f'say missing="worst" (it counts as the worst it could have been), {drop}, or {agreed}'
    if objective.quantile is not None:
        return f"say {drop}, or {agreed}"
    return f'say {drop}, or noise=("bounded", low, high), which takes missing="worst" and if_failed='


def _check_clusters(table: Table, largest: int) -> None:
    if table.largest_cluster is not None and largest > table.largest_cluster:
        raise StudyError(f"a cluster has {largest} items, more than max_cluster={table.largest_cluster}")
    for objective in table.objectives:
        if objective.noise[0] == "sub_gaussian":
            raise StudyError(
                f'{objective}: nobody knows the scale of a cluster of "sub_gaussian" values: '
                'say "gaussian" or ("bounded", low, high)'
            )
