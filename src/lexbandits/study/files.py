"""Tables in files, as dicts of columns: .csv (texts), .jsonl, .parquet."""

import csv
import json
from pathlib import Path
from typing import Any

from lexbandits.extras import need
from lexbandits.study.errors import StudyError

Columns = dict[str, list[Any]]
NOTHING = {"", "na", "n/a", "#n/a", "#na", "<na>", "nan", "null", "none"}  # of a number, in lower case
TRUTH = {"true": 1.0, "false": 0.0}


def read_columns(path: Path, who: str) -> Columns:
    """The columns of a file, for `who` reads it; those of .csv are texts as they stand there."""
    readers = {".csv": _read_csv, ".jsonl": _read_jsonl, ".parquet": _read_parquet}
    if path.suffix not in readers:
        raise StudyError(f"{who} reads .csv, .jsonl or .parquet, got {path.name!r}")
    try:
        return readers[path.suffix](path)
    except UnicodeDecodeError as error:
        raise StudyError(f"{path.name} is no UTF-8: {error}") from None


def rows_of_jsonl(path: Path) -> list[Any]:
    """What stands in each line that is not empty."""
    rows = []
    with path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    rows.append(json.loads(line))
                except ValueError as error:
                    raise StudyError(f"{path}, line {number}: {error}") from None
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
    for name in head:
        if name and head.count(name) > 1:
            raise StudyError(f"{path.name} has two columns {name!r}")
    return dict(zip(head, columns, strict=True))


def _read_jsonl(path: Path) -> Columns:
    rows = rows_of_jsonl(path)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise StudyError(f"{path.name}, row {number}: a table of names and values is needed, got {row!r}")
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _read_parquet(path: Path) -> Columns:
    need("pyarrow", "reading .parquet")
    import pyarrow.parquet

    columns: Columns = pyarrow.parquet.read_table(path).to_pydict()
    return columns
