"""A finished table: one row per arm, item and repeat, from a frame or a file, put into cells and checked."""

import decimal
import hashlib
import math
import numbers
import reprlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from lexbandits import read
from lexbandits._arrays import Vector
from lexbandits._code import Code
from lexbandits._validation import BEST, LARGEST, SMALLEST, is_missing_in_pandas, known_names, whole
from lexbandits.evidence.kinds import Dependence, Missing, NoiseKind
from lexbandits.study.errors import StudyError, ValueOutOfRange
from lexbandits.study.items import unique
from lexbandits.study.number_format import many
from lexbandits.study.objective import Objective
from lexbandits.study.spec import arm_index
from lexbandits.study.table_files import ALIASES, Columns, Role, TableNotice, Texts, numbers_in

FOLDS = {"fold", "folds", "cv_fold", "fold_id", "split"}
PLAIN_KINDS = frozenset("biuf")  # of NumPy's types: numbers, and nothing that only looks like one
PLAIN_TYPES = {float, int, bool}
BURN_IN = 5  # items, clusters, or rows of each arm, at most, whose values set a cap and do not count


class Statistic(Code):
    """By what a column is judged: its kind of noise, or what is known of its values besides."""

    QUANTILE = "quantile"  # of which nothing is assumed
    BINARY = "binary"  # 0/1 in every cell
    BOUNDED = "bounded"
    SUB_GAUSSIAN = "sub_gaussian"
    GAUSSIAN = "gaussian"
    FINITE_VARIANCE = "finite_variance"
    SYMMETRIC = "symmetric"
    EXACT = "exact"

    @property
    def is_normal(self) -> bool:
        """Whether means are taken to be normal, exactly or nearly."""
        return self in (Statistic.GAUSSIAN, Statistic.FINITE_VARIANCE)


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
    kinds: tuple[Statistic, ...]  # of a QUANTILE `seen` is as `_around` says
    items: tuple[Any, ...]
    is_paired: bool
    clusters: NDArray[np.int64] | None = None  # (n,) of the items
    largest_cluster: int | None = None  # as stated
    missing: int = 0  # cells
    dropped: int = 0  # of these, cells in which a value is left out
    repeats: tuple[int, int] = (1, 1)  # the fewest and the most of a cell
    notices: tuple[dict[str, Any], ...] = ()  # a code and its fields each

    @property
    def n_units(self) -> int:
        """Items, or clusters of them."""
        return len(self.seen) if self.clusters is None else int(self.clusters.max()) + 1


# --- columns


@dataclass(frozen=True)
class Source:
    """A table as it was given: the names of its columns, a way to get each, and what its reader knows."""

    names: list[str]
    column: Callable[[str], Any]
    known: Columns

    @classmethod
    def of(cls, table: Any) -> Self:
        """Take a frame, a dict of columns or a file."""
        if isinstance(table, (str, Path)):
            table = read.table(table)
        if isinstance(table, Mapping):
            known = table if isinstance(table, Columns) else Columns()
            return cls(list(table), table.__getitem__, known)
        import narwhals as nw

        try:
            frame = nw.from_native(table, eager_only=True)
        except TypeError:
            raise StudyError(
                "a table is a frame (pandas, polars, pyarrow; collect a lazy one first), a dict of columns "
                f"or the path of a file, got {type(table).__name__!r}"
            ) from None
        return cls(frame.columns, lambda name: frame[name].to_list(), Columns())

    def columns(self, wanted: Sequence[str]) -> dict[str, Any]:
        """The wanted columns, equally long."""
        for name in wanted:
            if name not in self.names:
                hint = known_names(name, self.names, "there are")
                raise StudyError(f"the table has no column {name!r}; {hint}")
        found = {name: self.column(name) for name in wanted}
        if len({len(values) for values in found.values()}) > 1:
            raise StudyError("the columns of a table must be equally long")
        return found

    def measuring(self, objectives: Sequence[str]) -> tuple[Self, list[dict[str, Any]]]:
        """Leave out tasks that do not measure an objective, unless all do not; and a notice of it."""
        measured = self.known.measured
        lacks = {task: set(objectives) - names for task, names in measured.items()}
        left = [task for task, names in measured.items() if lacks[task] and names]
        if not left or len(left) == len(measured) or not set(objectives) <= set(self.names):
            return self, []
        kept = [row for row, task in enumerate(self.column("task")) if task not in left]
        lacking = [name for name in objectives if any(name in lacks[task] for task in left)]
        notice = {"code": TableNotice.TASKS_LEFT_OUT, "tasks": left, "objectives": lacking}
        return self._at(np.array(kept)), [notice]

    def only(self, arm: str, arms: Sequence[str] | None) -> tuple[Self, Sequence[int]]:
        """The rows of some arms, or all, and their numbers."""
        (column,) = self.columns([arm]).values()
        if arms is None:
            return self, range(1, len(column) + 1)
        codes, names = _codes("the arm", column)
        wanted = np.array([arm_index([str(name) for name in names], name) for name in arms])
        rows = np.flatnonzero(np.isin(codes, wanted))

        return self._at(rows), (rows + 1).tolist()

    def _at(self, rows: NDArray[np.int64]) -> Self:
        """Some of the rows; a column of texts still knows what stands beside it."""

        def picked(name: str) -> Any:
            values = self.column(name)
            if isinstance(values, np.ndarray):
                return values[rows]
            plain = list(values)
            some = [plain[row] for row in rows]
            return values.like(some) if isinstance(values, Texts) else some

        return replace(self, column=picked)

    def alias(self, role: Role) -> str | None:
        """The one column that has another usual name of a role; an error if two part the rows differently."""
        found = [name for name in self.names if name.lower() == role] or [
            name for name in self.names if name.lower() in ALIASES[role]
        ]
        if len(found) > 1:
            ways = {self._partition(name): name for name in reversed(found)}  # of equal ones the first
            found = [name for way, name in ways.items() if any(way)][::-1] or found[:1]
        if len(found) > 1:
            raise StudyError(
                f"the table has no column {role!r}, and {' or '.join(map(repr, found))} may be it: "
                f'say which, such as {role}="{found[0]}"'
            )
        return found[0] if found else None

    def _partition(self, name: str) -> tuple[int, ...]:
        """The same number for equal cells, in the order in which they come; all 0 if there is one value."""
        known: dict[str, int] = {}
        return tuple(known.setdefault(str(cell), len(known)) for cell in self.column(name))

    def roles(self, arm: str, item: str | None) -> tuple[str, str | None]:
        """The columns of arms and items: as asked, or, where nothing was asked, what is there instead."""
        if arm == Role.ARM and arm not in self.names:
            arm = self.alias(Role.ARM) or arm
        if item == Role.ITEM and item not in self.names:
            item = None if self.known.item is None else self.alias(Role.ITEM) or item
        hint = known_names(arm if arm not in self.names else item, self.names, "there are")
        if arm not in self.names:
            raise StudyError(f"the table has no column {arm!r}, which names the arms; {hint}. Say arm=")
        if item is not None and item not in self.names:
            raise StudyError(
                f"the table has no column {item!r}, which says what rows of two arms have in common; {hint}. "
                "Say item=, or item=None if nothing pairs the rows"
            )
        return arm, item


def _codes(what: str, column: Any, at: Sequence[int] | None = None) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for every name, in the order in which they come, and the names; `at` has numbers of rows."""
    at = range(1, len(column) + 1) if at is None else at
    plain = column.tolist() if hasattr(column, "tolist") else column
    known: dict[Any, int] = {}
    try:
        codes = np.fromiter((known.setdefault(name, len(known)) for name in plain), np.int64, len(plain))
    except TypeError:
        row, name = next((row, name) for row, name in zip(at, plain, strict=True) if name.__hash__ is None)
        raise StudyError(f"row {row}: {what} must be text or a number, got {reprlib.repr(name)}") from None
    if {bool} < set(map(type, plain)):
        _check_alike(what, plain, at)
    for name, code in known.items():
        if isinstance(name, (bytes, complex, tuple, frozenset)):
            row = at[int(np.argmax(codes == code))]
            raise StudyError(f"row {row}: {what} must be text or a number, got {reprlib.repr(name)}")
        if name is None or name == "" or name != name or is_missing_in_pandas(name):
            raise StudyError(f"row {at[int(np.argmax(codes == code))]}: {what} is missing")
    return codes, list(known)


def _check_alike(what: str, names: Any, at: Sequence[int]) -> None:
    """Refuse names that Python takes for one and people for two, such as 1 and True."""
    known: dict[Any, tuple[int, Any]] = {}
    for row, name in zip(at, names, strict=True):
        first, other = known.setdefault(name, (row, name))
        if (type(name) is bool) != (type(other) is bool):
            raise StudyError(
                f"{what} is {other!r} in row {first} and {name!r} in row {row}, which Python takes for the "
                "same: write both as text"
            )


def _numbers(objective: Objective, column: Any, at: Sequence[int]) -> Vector:
    """The values of an objective's column, nan where there is none: as measured, but cut as it says."""
    kind = getattr(getattr(column, "dtype", None), "kind", None)
    is_plain = kind in PLAIN_KINDS if kind else PLAIN_TYPES.issuperset(map(type, column))
    try:
        if not is_plain:
            raise TypeError
        values = np.asarray(column, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        read = numbers_in(objective.name, column)
        values = np.array([_number(objective, row, value) for row, value in zip(at, read, strict=True)])
    return np.asarray(objective.cut(values))


def _number(objective: Objective, row: int, value: Any) -> float:
    if type(value) in (float, int, bool):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if value is None or is_missing_in_pandas(value):
        return math.nan
    if isinstance(value, (numbers.Real, decimal.Decimal, np.bool_)):
        return float(value)
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
    sequential: bool = False,
    as_list: bool = False,
    only: Sequence[str] | None = None,
) -> Table:
    """Read, check and average over repeats; `only` names the arms whose rows count."""
    source = Source.of(table)
    asked_for = {"arm": arm, "item": item, "repeat": repeat, "cluster": cluster}
    source, notices = source.measuring([objective.name for objective in objectives])
    arm, item = source.roles(arm, item)
    if item is None and (repeat is not None or cluster is not None):
        raise StudyError("repeat= and cluster= need item=: they are about rows of one item, or about items")
    if max_cluster is not None and cluster is None:
        raise StudyError("max_cluster= goes with cluster=")
    keys = [name for name in (arm, item, repeat, cluster) if name is not None]
    source, at = source.only(arm, only)
    columns = source.columns([*keys, *(objective.name for objective in objectives)])
    arms, names = _codes("the arm", columns[arm], at)
    if not names:
        raise StudyError("the table has no rows")
    unique("names of arms", [str(name) for name in names])
    values = np.stack([_numbers(objective, columns[objective.name], at) for objective in objectives], axis=1)
    otherwise = NoiseKind.GAUSSIAN if sequential and item is None else None
    timed = () if sequential or as_list else source.known.timed
    objectives = [
        o.with_default_cap() if o.name in timed else _by_type(o, values[:, i], otherwise)
        for i, o in enumerate(objectives)
    ]
    for i, objective in enumerate(objectives):
        if objective.name in source.known.empty and np.isnan(values[:, i]).all():
            raise StudyError(f"{objective} has no values: {source.known.empty[objective.name]}")
        _check_values(objective, values[:, i], arms, names, None if item is None else columns[item], at)
    agreed = [math.nan if o.if_failed is None else float(o.cut(o.if_failed)) for o in objectives]
    values = np.where(np.isnan(values), agreed, values)
    K, notices = len(names), [*source.known.notices, *notices]
    if source.known.has_runs and "run" not in (arm, repeat):
        _check_runs(source, arms, names, None if item is None else columns[item])
    if item is None:
        rows = _drawn_together(arms, names, values)
        items: list[Any] = []
    else:
        rows, items = _codes("the item", columns[item], at)
        kept = _first_of_copies(source, rows * K + arms)
        if not kept.all():
            copy = int(np.argmin(kept))
            first = {"item": columns[item][copy], "arm": str(columns[arm][copy])}
            notices.append({"code": TableNotice.DUPLICATES_DROPPED, "rows": int((~kept).sum()), **first})
            columns = {name: [column[k] for k in np.flatnonzero(kept)] for name, column in columns.items()}
            rows, arms, values = rows[kept], arms[kept], values[kept]
        if repeat is None and np.bincount(rows * K + arms).max() > 1:
            repeat = source.known.repeat or source.alias(Role.REPEAT)
            if repeat is not None:
                columns[repeat] = [source.column(repeat)[k] for k in np.flatnonzero(kept)]
    cell = rows * K + arms
    if item is not None and np.bincount(cell).max() > 1:
        _check_repeats(columns, cell, arm, item, repeat)
    for objective in objectives if repeat is not None or cluster is not None else ():
        if objective.quantile is not None:
            raise StudyError(
                f"{objective}: quantile= is about single values, so repeat= and cluster= do not go with it"
            )
    is_paired = item is not None and (K == 1 or cluster is not None or not _are_apart(rows, arms))
    if item is not None and not is_paired:  # an A/B test: each item is one unit of its arm
        notices.append({"code": TableNotice.ITEMS_UNPAIRED, "item": item})
        _, first_rows = np.unique(rows, return_index=True)
        means = _averaged(values, rows, np.bincount(rows)[:, None])[:, 0]
        rows, items = _drawn_together(arms[first_rows], names, means)[rows], []
        cell = rows * K + arms
    waiting = [i for i, objective in enumerate(objectives) if objective.awaits_cap]
    if waiting:
        units = rows if cluster is None else _codes("the cluster", columns[cluster])[0]
        size = min(BURN_IN, max(1, np.unique(units).size // 4))
        drawn = _drawn(units, arms, names, values) if is_paired else np.unique(units)
        has_values = np.isin(drawn, units[~np.isnan(values[:, waiting]).all(axis=1)])
        # A unit without values sets no cap, but is left out as well: which units are left must not depend on
        # who has values, or what is left would be no sample of the other objectives.
        burnt = np.isin(units, drawn[: int(np.searchsorted(has_values.cumsum(), size)) + 1])
        for i in waiting:
            runs = {str(name): values[burnt & (arms == code), i].tolist() for code, name in enumerate(names)}
            objectives[i] = objectives[i].capped_by(runs)
        values = np.stack([o.cut(column) for o, column in zip(objectives, values.T, strict=True)], axis=1)
        measured = _has_values(arms, K, values)
        units_drawn = {"units": int(np.unique(units[burnt]).size)} if is_paired else {}
        notices.append({"code": TableNotice.BURN_IN, "rows": int(burnt.sum()), **units_drawn})
        columns = {name: [column[k] for k in np.flatnonzero(~burnt)] for name, column in columns.items()}
        left, rows = np.unique(rows[~burnt], return_inverse=True)
        arms, values, items = arms[~burnt], values[~burnt], [items[k] for k in left] if items else []
        _check_left(measured, _has_values(arms, K, values), left.size, size)
        cell = rows * K + arms
    counts = np.bincount(cell, minlength=(int(rows.max()) + 1) * K).reshape(-1, K)
    roles = {"arm": arm, "item": item, "repeat": repeat, "cluster": cluster}
    notices += _notices_of_columns(asked_for, roles, source.known)
    largest = np.nanmax(np.abs(values), axis=0)
    vain = [o.name for i, o in enumerate(objectives) if _decides_nothing(o, float(largest[i]))]
    notices += [{"code": TableNotice.MARGIN_ABOVE_VALUES, "objectives": vain}] if vain else []
    kinds = tuple(_statistic(o, values[:, i], repeat is not None) for i, o in enumerate(objectives))
    seen = _averaged(values, cell, counts)
    asked = (counts > 0) | is_paired
    some_gone = _averaged(np.isnan(values).astype(np.float64), cell, counts) > 0
    noisy = np.array([kind is not Statistic.EXACT for kind in kinds])
    lost = asked[:, :, None] & (np.isnan(seen) | some_gone) & noisy
    signs = np.array([objective.sign for objective in objectives], dtype=np.float64)
    low = high = seen = seen * signs + 0.0
    ways = np.array([Missing.WORST if objective.if_missing else missing for objective in objectives])
    at_worst = lost.any(axis=(0, 1)) & (ways == Missing.WORST)
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
    seen = seen.copy() if Statistic.QUANTILE in kinds else seen
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
        is_paired=is_paired,
        clusters=None if cluster is None else _clusters(rows, columns[cluster], items),
        largest_cluster=None if max_cluster is None else whole("max_cluster", max_cluster, least=1),
        missing=int(lost.any(axis=2).sum()),
        dropped=int(lost[:, :, ways == "drop"].any(axis=2).sum()),
        repeats=(int(counts[counts > 0].min()), int(counts.max())),
        notices=tuple(notices),
    )
    for i in range(len(objectives)):
        _check_gaps(result, i, int(lost[:, :, i].sum()), str(ways[i]))
    if result.clusters is not None:
        _check_clusters(result, int(np.bincount(result.clusters).max()))
    return result


def _first_of_copies(source: Source, cell: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each row is the first of those of its item and arm that are equal in every column."""
    kept = np.ones(cell.size, np.bool_)
    several = np.flatnonzero(np.bincount(cell)[cell] > 1)
    if several.size:
        columns, seen = source.columns(source.names).values(), set()
        for row in several.tolist():
            key = repr([column[row] for column in columns])
            kept[row] = key not in seen
            seen.add(key)
    return kept


def _are_apart(rows: NDArray[np.int64], arms: NDArray[np.int64]) -> bool:
    """Whether every item has rows of one arm only."""
    arm_of = np.zeros(int(rows.max()) + 1, np.int64)
    arm_of[rows] = arms
    return bool((arm_of[rows] == arms).all())


def _notices_of_columns(
    asked: dict[str, str | None], found: dict[str, str | None], known: Columns
) -> list[dict[str, Any]]:
    """Notices of columns that nobody asked for, but for a reader's own, and of folds."""
    chosen = {role: name for role, name in found.items() if name not in (asked[role], None, known.repeat)}
    notices: list[dict[str, Any]] = [{"code": TableNotice.COLUMNS_CHOSEN, **chosen}] if chosen else []
    folds = [name for role, name in found.items() if role != Role.ARM and name and name.lower() in FOLDS]
    return notices + [{"code": TableNotice.FOLDS, "column": name} for name in folds]


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


def _drawn(
    units: NDArray[np.int64], arms: NDArray[np.int64], names: list[Any], values: Vector
) -> NDArray[np.int64]:
    """Return items, or clusters, in an order that is drawn from a digest of all values.

    What items are called plays no part, nor does the order of the file: who names items cannot choose.
    """
    order = np.lexsort((arms, units))
    ends = np.flatnonzero(np.diff(units[order], append=-1)) + 1
    digests = []
    for rows in np.split(order, ends[:-1]):
        told = sorted((str(names[arms[k]]), (values[k] + 0.0).astype("<f8").tobytes()) for k in rows)
        digests.append((hashlib.sha256(repr(told).encode()).digest(), int(units[rows[0]])))
    digests.sort()
    seed = hashlib.sha256(b"".join(digest for digest, _ in digests)).digest()
    drawn = np.random.default_rng(list(seed)).permutation(len(digests))
    return np.array([digests[k][1] for k in drawn])


def _check_left(measured: NDArray[np.bool_], left: NDArray[np.bool_], units: int, size: int) -> None:
    if units < 2 or (measured & ~left).any():
        raise StudyError(
            f'cap="auto" takes {many(size, "item")} for a burn-in, which leaves too few: measure more, or '
            "say cap= as a number"
        )


def _has_values(arms: NDArray[np.int64], n_arms: int, values: Vector) -> NDArray[np.bool_]:
    """Return of which objectives an arm has values, (arms, objectives)."""
    return np.array([(~np.isnan(values[arms == code])).any(axis=0) for code in range(n_arms)])


def _by_type(objective: Objective, values: Vector, otherwise: str | None) -> Objective:
    """Return an objective whose noise was left out with that of its column: 0/1, or the default."""
    if objective.quantile is None and np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        if objective.if_failed not in (None, 0.0, 1.0):
            return objective
        try:
            return objective.with_default_noise(NoiseKind.BERNOULLI)
        except StudyError as error:
            most = math.ceil(10.0 * max(1.0, objective.margin_in_unit))
            raise StudyError(
                f"{error}. Every value in the table is 0 or 1, so it was taken as no or yes. If it is a "
                f'count, say noise=("bounded", 0, {most}), with the largest count possible in place of {most}'
            ) from None
    return objective if otherwise is None else objective.with_default_noise(otherwise)


def _decides_nothing(objective: Objective, largest: float) -> bool:
    """Whether its margin is larger than every value, as where units are mistaken."""
    if objective.is_relative or objective.kind is NoiseKind.BERNOULLI:
        return False
    return objective.limit is None and largest < objective.margin_in_unit


def _statistic(objective: Objective, values: Vector, is_averaged: bool) -> Statistic:
    if objective.quantile is not None:
        return Statistic.QUANTILE
    if objective.kind is not NoiseKind.BERNOULLI:
        return Statistic(objective.kind)
    if objective.is_relative or is_averaged or not np.isin(values[~np.isnan(values)], (0.0, 1.0)).all():
        return Statistic.BOUNDED
    return Statistic.BINARY


def _clusters(rows: NDArray[np.int64], column: Any, items: list[Any]) -> NDArray[np.int64]:
    codes, _ = _codes("the cluster", column)
    of_item = np.zeros(len(items), np.int64)
    of_item[rows] = codes
    split = of_item[rows] != codes
    if split.any():
        raise StudyError(f"item {items[rows[np.argmax(split)]]!r} is in two clusters")
    return of_item


# --- checks


def _check_values(
    objective: Objective, values: Vector, arms: Any, names: list[Any], items: Any, at: Sequence[int]
) -> None:
    low, high = (max(min(end, LARGEST), -LARGEST) for end in objective.bounds)
    if objective.is_relative and math.isinf(objective.bounds[0]):
        low = 0.0
    wrong = ~((values >= low) & (values <= high)) & ~np.isnan(values)
    if wrong.any():
        row = int(np.argmax(wrong))
        where = f"row {at[row]}" if items is None else f"row {at[row]}, item {items[row]!r}"
        said = "finite" if math.isinf(objective.bounds[1]) else f"in [{low:g}, {high:g}]"
        raise ValueOutOfRange(f"{where}: {objective} must be {said}, got {values[row]:g}")
    largest = float(np.max(np.abs(values), where=~np.isnan(values), initial=0.0))
    if 0.0 < largest < SMALLEST and not objective.is_exact:
        raise ValueOutOfRange(
            f"{objective}: no value is larger than {largest:g}, too small for floating point: say them in a "
            f"smaller unit, so that some are at least {SMALLEST:g}"
        )
    if objective.is_relative and (min(low, np.nanmin(values)) < 0 or np.nanmax(values) == 0):
        raise StudyError(
            f"{objective}: shares of {objective.reference} need values that are not negative, nor all 0"
        )
    if objective.is_relative and objective.reference not in (BEST, *map(str, names)):
        raise StudyError(
            f'{objective}: reference must be "best", an arm or a number, got {objective.reference!r}; '
            f"there are {', '.join(map(repr, names))}"
        )
    for code, name in enumerate(names):
        own = values[(arms == code) & ~np.isnan(values)]
        if not own.size and objective.if_failed is None:
            raise StudyError(
                f"arm {name!r} has no value of {objective.name!r}, only missing ones: leave its rows out, or "
                "say what a missing value is worth (if_failed=)"
            )
        if objective.is_exact and own.size and own.min() < own.max():
            raise StudyError(f"{objective} is exact, but arm {name!r} has two different values")


def _check_repeats(
    columns: dict[str, Any], cell: NDArray[np.int64], arm: str, item: str, repeat: str | None
) -> None:
    keys, more = cell, ": say repeat=, the column that tells them disjoint"
    if repeat is not None:
        codes, names = _codes("the repeat", columns[repeat])
        keys, more = cell * len(names) + codes, f" with one {repeat!r}"
    _, first, twice = np.unique(keys, return_index=True, return_counts=True)
    if twice.max() > 1:
        at = int(np.argmax(twice > 1))
        row = int(first[at])
        raise StudyError(f"item {columns[item][row]!r} has {twice[at]} rows of {columns[arm][row]!r}{more}")


def _check_runs(source: Source, arms: NDArray[np.int64], names: list[Any], items: Any) -> None:
    """Refuse an arm that several runs have measured on one item: they may be before and after, or repeats."""
    runs, known = _codes("the run", source.column("run"))
    cell = arms if items is None else _codes("the item", items)[0] * len(names) + arms
    pairs = np.unique(np.stack([cell, runs]), axis=1)
    twice = np.flatnonzero(np.bincount(pairs[0]) > 1)
    if twice.size:
        first, second = (known[run] for run in pairs[1][pairs[0] == twice[0]][:2])
        name = names[twice[0] % len(names)]
        raise StudyError(
            f"{name!r} is in two runs, {first} and {second}: to compare runs name them, "
            '{"before": …, "after": …}, or say arm="run"; if they are repeats '
            'of the same, say repeat="run"'
        )


def _check_gaps(table: Table, i: int, holes: int, missing: str) -> None:
    objective, there = table.objectives[i], (~np.isnan(table.low[:, :, i])).astype(np.float64)
    if holes and missing == "error":
        verb = "is" if holes == 1 else "are"
        raise StudyError(
            f"{holes:,} of {there.size:,} values of {objective.name!r} {verb} missing: {_ways_out(objective)}"
        )
    if holes and missing == Missing.WORST and not objective.is_bounded:
        raise StudyError(
            f'{objective}: missing="worst" needs values that have a worst: '
            f'noise="bernoulli" or ("bounded", low, high), got {objective.noise!r}'
        )
    disjoint = np.argwhere(there.T @ there == 0)
    if disjoint.size and table.kinds[i] is not Statistic.EXACT:
        a, b = (table.arms[arm] for arm in disjoint[0])
        raise StudyError(f"{a!r} and {b!r} have no item in common with values of {objective.name!r}")
    if table.is_paired and isinstance(objective.noise, tuple) and Dependence.INDEPENDENT in objective.noise:
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
        if objective.kind.traits.scaled:
            raise StudyError(
                f'{objective}: nobody knows the scale of a cluster of "{objective.kind}" values: '
                'say "gaussian" or ("bounded", low, high)'
            )
