"""Tables in files, as dicts of columns: .csv (texts), .jsonl, .parquet; their size is checked first."""

import csv
import json
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lexbandits.extras import need
from lexbandits.study.errors import StudyError

Columns = dict[str, list[Any]]
MOST_BYTES = 1_000_000_000  # of a file of text
MOST_CELLS = 50_000_000  # rows × columns of a table: some gigabytes
NOTHING = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none"}  # of a number, in lower case
TRUTH = {"true": 1.0, "false": 0.0}


def read_columns(path: Path, who: str) -> Columns:
    """The columns of a file, for `who` reads it; those of .csv are texts as they stand there."""
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise StudyError(f"{who} reads .csv, .jsonl or .parquet, got {path.name!r}")
    check_size(path)
    try:
        return readers[path.suffix](path)
    except UnicodeDecodeError as error:
        raise StudyError(f"{path.name} is no UTF-8: {error}") from None


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """Give a path to write to; what was written takes the place of the file at the end, or not at all."""
    target = path.resolve()
    if target.exists() and not target.is_file():  # such as /dev/stdout
        yield target
        return
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}{target.suffix}")
    try:
        yield new
        if target.exists():
            shutil.copymode(target, new)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)


def check_size(path: Path) -> None:
    """Refuse a file that would fill the memory; that there is none is said by whoever opens it."""
    size = path.stat().st_size if path.exists() else 0
    if size > MOST_BYTES:
        raise StudyError(
            f"{path.name} has {size / 1e6:,.0f} MB, more than the {MOST_BYTES / 1e6:,.0f} MB that are read: "
            "keep the columns and rows that matter, or split it"
        )


def check_cells(name: str, rows: int, columns: int) -> None:
    """Refuse a table that would fill the memory, however small its file is."""
    if rows * columns > MOST_CELLS:
        raise StudyError(
            f"{name} has {rows:,} rows and {columns:,} columns, more than the {MOST_CELLS:,} cells that are "
            "read: keep the columns and rows that matter"
        )


def parsed(name: str, text: str | bytes) -> Any:
    """The JSON in a text; what is none, or is nested too deeply, is refused."""
    try:
        return json.loads(text)
    except RecursionError:
        raise StudyError(f"{name}: the JSON is nested too deeply") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{name} is no UTF-8: {error}") from None
    except ValueError as error:
        raise StudyError(f"{name}: {error}") from None


def rows_of_jsonl(path: Path) -> list[Any]:
    """What stands in each line that is not empty."""
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                rows.append(parsed(f"{path}, line {number}", line))
    return rows


def number_in(text: str) -> float | str | None:
    """The number that a cell says, None if it says that there is none; the text if it says something else."""
    word = text.strip().lower()
    if word in NOTHING:
        return None
    try:
        return TRUTH[word] if word in TRUTH else float(word.replace("_", "x"))  # 1_000 is a name
    except ValueError:
        return text


def _read_csv(path: Path) -> Columns:
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            head, *rows = [row for row in csv.reader(file) if row] or [[]]
        except csv.Error as error:
            raise StudyError(f"{path.name} is no table: {error}") from None
    for number, row in enumerate(rows, 1):
        if len(row) != len(head):
            raise StudyError(f"{path.name}, row {number}: {len(row)} cells where the head has {len(head)}")
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in head]
    for name, times in Counter(head).items():
        if name and times > 1:
            raise StudyError(f"{path.name} has two columns {name!r}")
    return dict(zip(head, columns, strict=True))


def _read_jsonl(path: Path) -> Columns:
    rows = rows_of_jsonl(path)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise StudyError(f"{path.name}, row {number}: a table of names and values is needed, got {row!r}")
    return columns_of_rows(path.name, rows)


def columns_of_rows(name: str, rows: list[dict[str, Any]]) -> Columns:
    """Rows as columns: None where a row has no such key."""
    names = dict.fromkeys(key for row in rows for key in row)
    check_cells(name, len(rows), len(names))
    return {key: [row.get(key) for row in rows] for key in names}


def _read_parquet(path: Path) -> Columns:
    need("pyarrow", "reading .parquet")
    import pyarrow.parquet

    try:
        file = pyarrow.parquet.ParquetFile(path)
        size = sum(file.metadata.row_group(i).total_byte_size for i in range(file.metadata.num_row_groups))
        check_cells(path.name, file.metadata.num_rows, file.metadata.num_columns)
        if size > MOST_BYTES:
            raise StudyError(f"{path.name} unpacks to {size / 1e6:,.0f} MB: keep the columns that matter")
        columns: Columns = file.read().to_pydict()
    except (StudyError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (pyarrow.ArrowException, OSError, ValueError) as error:
        raise StudyError(f"{path.name} is no .parquet that can be read: {error}") from None
    return columns
