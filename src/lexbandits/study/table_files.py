"""Read tables from files as columns: .csv and .tsv (texts), .jsonl, .json, .parquet, .xlsx.

A file is read as programs and spreadsheets write it: commas, semicolons or tabs, decimal points or commas.
Where two readings would give different numbers the file is refused, with what to write instead.
"""

import codecs
import csv
import io
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from lexbandits._code import Code
from lexbandits._extras import need
from lexbandits.study.errors import StudyError

JSON_LINES = ".jsonl"
MOST_BYTES = 1_000_000_000  # of a file of text
MOST_CELLS = 50_000_000  # rows × columns of a table: some gigabytes
MOST_PARTS = 20_000_000  # lists, tables and values of one text of JSON: the same
MOST_ROWS = 1 << 20  # of a sheet, as spreadsheets have
MOST_RATIO = 200  # how many times its size a packed table may have unpacked, above FEW_UNPACKED
FEW_UNPACKED = 20_000_000
NOTHING = {"", "na", "n/a", "#n/a", "#na", "#nv", "<na>", "nan", "null", "none"}  # of a number, in lower case
TRUTH = {  # as spreadsheets and people write it
    **dict.fromkeys(("true", "yes", "wahr", "ja", "vrai", "oui", "verdadero", "sí", "si"), 1.0),
    **dict.fromkeys(("false", "no", "falsch", "nein", "faux", "non", "falso"), 0.0),
    **dict.fromkeys(("vero", "sì", "verdadeiro", "sim", "waar"), 1.0),
    **dict.fromkeys(("não", "onwaar", "nee"), 0.0),
    **dict.fromkeys(("t", "y", "pass", "passed"), 1.0),
    **dict.fromkeys(("f", "n", "fail", "failed"), 0.0),
}
DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs"}
WITH_COMMA = re.compile(r"[-+]?\d*,\d+(e[-+]?\d+)?|[-+]?[1-9]\d{0,2}(\.\d{3})+,\d+", re.IGNORECASE)
WITH_POINT = re.compile(r"[-+]?(\d+\.\d*|\.\d+)(e[-+]?\d+)?|[-+]?[1-9]\d{0,2}(,\d{3})+\.\d+", re.IGNORECASE)
# 1,234: a fraction, or a little more than a thousand
IN_GROUPS = re.compile(r"[-+]?[1-9]\d{0,2}([.,]\d{3})+")


class Role(Code):
    """What a column of a table is; all others hold values."""

    ARM = "arm"
    ITEM = "item"
    REPEAT = "repeat"
    CLUSTER = "cluster"
    RUN = "run"
    TASK = "task"


# What people call the columns, in lower case; a repeat's are looked for where rows need one.
ALIASES: dict[Role, tuple[str, ...]] = {
    Role.ARM: (
        *("model", "variant", "system", "method", "algorithm", "treatment", "config", "provider", "prompt"),
    ),
    Role.ITEM: (
        *("id", "item_id", "doc_id", "task_id"),
        *("question", "sample", "case", "example", "instance", "user", "image"),
        *("question_id", "sample_id", "case_id", "example_id", "instance_id", "user_id", "image_id"),
    ),
    Role.REPEAT: ("epoch", "repeat", "seed", "trial", "replicate", "repetition", "iteration"),
}


class TableNotice(Code):
    """What was decided about a table while it was read; its fields are beside the code."""

    COLUMNS_CHOSEN = "columns_chosen"  # role -> the column that has another name
    DUPLICATES_DROPPED = "duplicates_dropped"  # rows, and the item and arm of the first
    ITEMS_UNPAIRED = "items_unpaired"  # the item column, whose items have one arm each
    FOLDS = "folds"  # the column of folds, which share training data
    FAILED_LOGS = "failed_logs"  # failed, of, and the names of some
    BURN_IN = "burn_in"  # units and rows that set a cap and do not count
    TASKS_LEFT_OUT = "tasks_left_out"  # tasks, and the objectives that they do not measure
    MARGIN_ABOVE_VALUES = "margin_above_values"  # objectives whose margin exceeds every value


class Columns(dict[str, list[Any]]):
    """Columns of a table, and what its reader knows of them: which are items and repeats, and more."""

    item: str | None = Role.ITEM.value  # None: nothing pairs the rows
    repeat: str | None = None
    notices: tuple[dict[str, Any], ...] = ()
    measured: Mapping[str, frozenset[str]] = {}  # task -> the columns that some result of it has
    empty: Mapping[str, str] = {}  # a column that may have no values -> what would give it some
    timed: frozenset[str] = frozenset()  # columns of times, whose values a burn-in cuts unless a kind is said
    has_runs: bool = False  # several, not named: they may be arms, or repeats


class Texts(list[str]):
    """A column of a file of text, which knows the others: they may say what a decimal comma is."""

    beside: Sequence[Sequence[str]] = ()
    by_spreadsheet: bool = False  # which writes numbers as the country does, programs with a point

    def like(self, cells: Iterable[str]) -> "Texts":
        """Return other cells of the same file."""
        found = Texts(cells)
        found.beside, found.by_spreadsheet = self.beside, self.by_spreadsheet
        return found


def read_columns(path: Path, command: str) -> Columns:
    """The columns of a file that `command` reads; those of .csv and .tsv are texts as they stand there."""
    readers = {
        ".csv": _read_csv,
        ".tsv": _read_csv,
        JSON_LINES: _read_jsonl,
        ".json": _read_json,
        ".parquet": _read_parquet,
        ".xlsx": _read_xlsx,
    }
    suffix = path.suffix.lower()
    if suffix not in readers:
        raise StudyError(f"{command} reads {', '.join(readers)}; got {path.name!r}")
    check_size(path)
    try:
        return readers[suffix](path)
    except UnicodeDecodeError as error:
        raise StudyError(f"{path.name} is no UTF-8 ({error}): save it as UTF-8") from None


def check_size(path: Path) -> None:
    """Refuse a file that would fill the memory; that there is none is said by whoever opens it."""
    size = path.stat().st_size if path.exists() else 0
    if size > MOST_BYTES:
        raise StudyError(
            f"{path.name} has {size / 1e6:,.0f} MB, more than the {MOST_BYTES / 1e6:,.0f} MB that are read: "
            "keep the columns and rows that matter, or split it"
        )


def check_cells(name: str, cells: int) -> None:
    """Refuse a table that would fill the memory, however small its file is."""
    if cells > MOST_CELLS:
        raise StudyError(
            f"{name} has {cells:,} cells, more than the {MOST_CELLS:,} that are read: keep the columns and "
            "rows that matter"
        )


def parsed(name: str, text: str | bytes) -> Any:
    """The JSON in a text; what is none, is nested too deeply, or would fill the memory is refused."""
    signs: Any = ",[{" if isinstance(text, str) else (b",", b"[", b"{")
    if len(text) > MOST_PARTS and sum(map(text.count, signs)) > MOST_PARTS:
        raise StudyError(f"{name}: the JSON has more than the {MOST_PARTS:,} parts that are read")
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
    with path.open("rb") as lines:  # what is no UTF-8 is named by its line
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


def numbers_in(name: str, column: Sequence[Any]) -> list[Any]:
    """Return what the cells of a column say; a decimal comma is read where no other reading is possible.

    >>> numbers_in("seconds", ["0,5", "1,234", "ja", ""])
    [0.5, 1.234, 1.0, None]
    """
    texts = [cell if isinstance(cell, str) else "" for cell in column]
    if _has_decimal_commas(name, column, texts):
        texts = [text.replace(",", ".") if WITH_COMMA.fullmatch(text.strip()) else text for text in texts]
    return [
        number_in(text) if isinstance(cell, str) else cell for cell, text in zip(column, texts, strict=True)
    ]


def _has_decimal_commas(name: str, column: Sequence[Any], texts: list[str]) -> bool:
    """Whether its commas are decimal; an error if that would be a guess and the numbers depend on it."""
    commas, points = ([text for text in texts if mark in text] for mark in ",.")
    if not commas and not points:
        return False
    comma, point = _first_sure(commas, WITH_COMMA), _first_sure(points, WITH_POINT)
    if comma and point:
        raise StudyError(f"{name!r} has {comma!r} and {point!r}: write all of its decimals with a point")
    doubtful = {
        mark: next(filter(_is_grouped, cells), None) for mark, cells in ((",", commas), (".", points))
    }
    if not any(doubtful.values()):
        return comma is not None
    if not (comma or point):
        others = getattr(column, "beside", ())
        comma, point = (
            next(filter(None, (_first_sure(other, pattern) for other in others)), None)
            for pattern in (WITH_COMMA, WITH_POINT)
        )
        if comma and point:
            comma = point = None
        elif not (comma or point or commas) and not getattr(column, "by_spreadsheet", False):
            return False
    decimal = "," if comma else "." if point else None
    for mark, cell in doubtful.items():
        if cell is not None and mark != decimal:
            whole, fraction = re.sub("[.,]", "", cell).strip(), cell.replace(",", ".").strip()
            raise StudyError(
                f"{name!r} has {cell.strip()!r}, which may be {whole} or {fraction}: write numbers without "
                "thousands separators and decimals with a point, with commas or tabs between the cells"
            )
    return decimal == ","


def _is_grouped(text: str) -> bool:
    """Whether it may be a fraction, or a whole number in groups of three digits."""
    return IN_GROUPS.fullmatch(text.strip()) is not None


def _first_sure(texts: Iterable[str], pattern: re.Pattern[str]) -> str | None:
    """The first that can be read in one way only."""
    for text in texts:
        if ("," in text or "." in text) and pattern.fullmatch(text.strip()) and not _is_grouped(text):
            return text.strip()
    return None


def _read_csv(path: Path) -> Columns:
    content = path.read_bytes()
    is_unicode_text = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))  # of a spreadsheet
    text = _decoded(content, "utf-16" if is_unicode_text else "utf-8-sig").lstrip("\r\n")
    said = re.match(r"sep=(.)\r?\n", text)  # a spreadsheet's own line
    delimiter, head, rows = _cells(path, text[said.end() :] if said else text, said[1] if said else None)
    columns = [Texts(column) for column in zip(*rows, strict=True)] or [Texts() for _ in head]
    for column in columns:
        column.beside = columns
        column.by_spreadsheet = is_unicode_text or delimiter == ";"
    return _named(path, head, columns)


def _decoded(content: bytes, encoding: str) -> str:
    """A text; what spreadsheets write in Western languages may have their old encoding."""
    try:
        return content.decode(encoding)
    except UnicodeDecodeError:
        if 0 in content:
            raise
        with suppress(UnicodeDecodeError):
            return content.decode("cp1252")
        raise


def _cells(path: Path, text: str, delimiter: str | None) -> tuple[str, list[str], list[list[str]]]:
    """The head and the rows, by the one delimiter that cuts them all into equally many cells."""
    is_by_tabs = path.suffix.lower() == ".tsv" and "\t" in text.split("\n", 1)[0]
    wanted = [delimiter] if delimiter else ["\t"] if is_by_tabs else list(DELIMITERS)
    found = {}
    for mark in wanted:
        if len(wanted) > 1 and mark not in text.split("\n", 1)[0] and mark != ",":
            continue
        check_cells(path.name, max(text.count(mark), text.count("\n")))
        try:
            head, *rows = [
                row for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark) if any(row)
            ] or [[]]
        except csv.Error as error:
            raise StudyError(f"{path.name} is no table: {error}") from None
        wrong = next((n for n, row in enumerate(rows, 1) if len(row) != len(head)), None)
        found[mark] = (head, rows, wrong)
    fits = [mark for mark, (head, _, wrong) in found.items() if wrong is None and len(head) > 1]
    if len(fits) > 1:
        said = " or ".join(f"{DELIMITERS[mark]} ({len(found[mark][0])} columns)" for mark in fits)
        raise StudyError(f"{path.name} can be cut at {said}: save it as .tsv, with tabs between the cells")
    mark = fits[0] if fits else max(found, key=lambda mark: len(found[mark][0]))
    head, rows, wrong = found[mark]
    if wrong is not None:
        raise StudyError(
            f"{path.name}, row {wrong}: {len(rows[wrong - 1])} cells where the head has {len(head)}, "
            f"cut at {DELIMITERS.get(mark, mark)}"
        )
    return mark, [name.strip() for name in head], rows


def _named(path: Path, head: Sequence[str], columns: Iterable[list[Any]]) -> Columns:
    for name, times in Counter(head).items():
        if name and times > 1:
            raise StudyError(f"{path.name} has two columns {name!r}")
    return Columns(zip(head, columns, strict=True))


def _read_xlsx(path: Path) -> Columns:
    """The one sheet that has cells: values as they were last computed."""
    openpyxl = need("openpyxl", "reading .xlsx")
    try:
        with zipfile.ZipFile(path) as parts:
            size, packed = (
                sum(getattr(part, key) for part in parts.infolist()) for key in ("file_size", "compress_size")
            )
        if size > MOST_BYTES or (size > FEW_UNPACKED and size > MOST_RATIO * packed):
            raise StudyError(
                f"{path.name} unpacks to {size / 1e6:,.0f} MB: save the table that matters as .csv"
            )
        with path.open("rb") as file:
            book = openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False)
            sheets = {sheet.title: _rows_of(path.name, sheet) for sheet in book.worksheets}
            book.close()
    except (StudyError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except Exception as error:  # openpyxl raises whatever the XML brings about
        raise StudyError(f"{path.name} is no .xlsx that can be read: {error}") from None
    full = {title: rows for title, rows in sheets.items() if rows}
    if len(full) != 1:
        raise StudyError(
            f"{path.name} has {len(full)} sheets with cells ({', '.join(full)}): keep the one that matters"
            if full
            else f"{path.name} has no cells"
        )
    [found] = full.values()
    width = max(map(len, found))
    head, *rows = [(*row, *[None] * (width - len(row))) for row in found]
    check_cells(path.name, len(rows) * len(head))
    kept = [k for k, name in enumerate(head) if name is not None or any(row[k] is not None for row in rows)]
    names = ["" if head[k] is None else str(head[k]).strip() for k in kept]
    return _named(path, names, ([row[k] for row in rows] for k in kept))


def _rows_of(name: str, sheet: Any) -> list[tuple[Any, ...]]:
    """The rows that have cells, counted as they come: what a file leaves out before a cell is filled up."""
    sheet.reset_dimensions()  # what the file says of them may be anything
    found, cells = [], 0
    for number, row in enumerate(sheet.values, 1):
        cells += len(row)
        if number > MOST_ROWS or cells > MOST_CELLS:
            raise StudyError(
                f"{name} has cells beyond the {MOST_ROWS:,} rows or {MOST_CELLS:,} cells that are read: keep "
                "the rows and columns that matter"
            )
        if any(cell is not None for cell in row):
            found.append(row)
    return found


def _read_jsonl(path: Path) -> Columns:
    rows = rows_of_jsonl(path)
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise StudyError(f"{path.name}, row {number}: a table of names and values is needed, got {row!r}")
    return columns_of_rows(path.name, rows)


def _read_json(path: Path) -> Columns:
    rows = parsed(path.name, path.read_bytes())
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise StudyError(f"{path.name}: a .json table is a list of rows, each with names and values")
    return columns_of_rows(path.name, rows)


def columns_of_rows(name: str, rows: list[dict[str, Any]]) -> Columns:
    """Rows as columns: None where a row has no such key."""
    names = dict.fromkeys(key for row in rows for key in row)
    check_cells(name, len(rows) * len(names))
    return Columns((key, [row.get(key) for row in rows]) for key in names)


def _read_parquet(path: Path) -> Columns:
    """Its columns but for those of lists and tables, which hold neither names nor numbers."""
    need("pyarrow", "reading .parquet")
    from pyarrow import ArrowException, types
    from pyarrow.parquet import ParquetFile

    try:
        with ParquetFile(path) as file:
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            flat = [field.name for field in file.schema_arrow if not types.is_nested(field.type)]
        parts = [group.column(k) for group in groups for k in range(group.num_columns)]
        check_cells(path.name, sum(part.num_values for part in parts))
        size = sum(part.total_uncompressed_size for part in parts)
        if size > MOST_BYTES:
            raise StudyError(f"{path.name} unpacks to {size / 1e6:,.0f} MB: keep the columns that matter")
        texts = {part.path_in_schema for part in parts if part.physical_type == "BYTE_ARRAY"}
        with ParquetFile(path, read_dictionary=texts) as file:
            table = file.read(flat)
        return Columns((name, _plain_cells(table[name])) for name in table.column_names)
    except (StudyError, FileNotFoundError, PermissionError, IsADirectoryError):
        raise
    except (ArrowException, OSError, ValueError, LookupError) as error:
        raise StudyError(f"{path.name} is no .parquet that can be read: {error}") from None


def _plain_cells(column: Any) -> list[Any]:
    """The cells of a column; a text that returns, which the file has once, is kept once."""
    cells: list[Any] = []
    for chunk in column.chunks:
        if not hasattr(chunk, "dictionary"):
            cells += chunk.to_pylist()
            continue
        texts = chunk.dictionary.to_pylist()
        cells += [None if at is None else texts[at] for at in chunk.indices.to_pylist()]
    return cells
