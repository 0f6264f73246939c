"""What arms are measured on: checked, and read from a file, a table or a folder."""

import csv
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from lexbandits.study.errors import StudyError
from lexbandits.study.table_files import JSON_LINES, check_size, rows_of_jsonl

KINDS = ".jsonl, .csv, .txt or a pattern such as images/*.png"


def unique(what: str, names: Sequence[Any]) -> None:
    """Refuse what is there twice."""
    seen = set()
    for name in names:
        if name in seen:
            raise StudyError(f"{what} must differ, {name!r} is there twice")
        seen.add(name)


def id_of(item: Any) -> Any:
    """What an item is called in tables: itself, or the `id` of one with further keys."""
    return item["id"] if isinstance(item, dict) else item


def checked_items(items: Any) -> tuple[Any, ...] | None:
    """Texts, numbers, or tables with an `id` and further keys; none twice."""
    if items is None:
        return None
    if isinstance(items, (str, bytes, Mapping)) or not isinstance(items, Iterable):
        raise TypeError(f"items must be a list, got {items!r}")
    plain = tuple(item if type(item) is str else _checked_item(item) for item in items)
    if not plain:
        raise StudyError("items must not be empty")
    unique("items", [id_of(item) for item in plain])
    return plain


def _checked_item(item: Any) -> Any:
    if isinstance(item, Mapping):
        if "id" not in item:
            raise StudyError(f"an item with further keys needs an id, got {item!r}")
        try:
            table: dict[str, Any] = json.loads(json.dumps({**item, "id": 0}, allow_nan=False))
        except (TypeError, ValueError) as error:
            raise StudyError(f"an item must be what JSON can hold: {error}, got {item!r}") from None
        return {**table, "id": _checked_item(item["id"])} if len(table) > 1 else _checked_item(item["id"])
    plain = item.item() if isinstance(item, np.generic) else item
    if isinstance(plain, bool) or not isinstance(plain, (str, int, float)):
        raise TypeError(f"an item must be text or a number, or a table with an id, got {item!r}")
    if isinstance(plain, float) and not math.isfinite(plain):
        raise StudyError(f"an item must be finite, got {item!r}")
    return plain


def items_of_file(name: str, folder: Path = Path()) -> dict[str, Any]:
    """`items` and `source` of a spec: from a file, beside which no word is said, or a folder's files.

    Lines of .jsonl and rows of .csv are tables; where none has an `id` their number from 1 is it.
    """
    if any(sign in name for sign in "*?["):
        found = sorted(folder.glob(name) if not Path(name).is_absolute() else Path("/").glob(name[1:]))
        paths = [path for path in found if path.is_file()]
        items: list[Any] = [str(path) for path in paths]
    else:
        paths = [folder / name]
        items = _read(paths[0])
    if not items:
        raise StudyError(f"{folder / name} has no items")
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.read_bytes() if len(paths) == 1 else hashlib.sha256(path.read_bytes()).digest())
    return {"items": items, "source": {"file": name, "sha256": digest.hexdigest()}}


def _read(path: Path) -> list[Any]:
    readers = {JSON_LINES: rows_of_jsonl, ".csv": _read_csv, ".txt": _read_txt}
    if path.suffix not in readers:
        raise StudyError(f"items are read from {KINDS}, got {str(path)!r}")
    try:
        check_size(path)
        return _numbered(readers[path.suffix](path))
    except OSError as error:
        raise StudyError(f"the items cannot be read: {error}") from None
    except UnicodeDecodeError as error:
        raise StudyError(f"{path} is no UTF-8: {error}") from None


def _read_csv(path: Path) -> list[Any]:
    with path.open(encoding="utf-8-sig", newline="") as file:
        return [{k: v for k, v in row.items() if k is not None} for row in csv.DictReader(file)]


def _read_txt(path: Path) -> list[Any]:
    return [line for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


def _numbered(rows: list[Any]) -> list[Any]:
    if any(not isinstance(row, dict) or "id" in row for row in rows):
        return rows
    return [{"id": number, **row} for number, row in enumerate(rows, 1)]
