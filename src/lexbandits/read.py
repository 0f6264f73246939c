"""Read results that other tools have written, as columns, which `judge` and every frame take.

A column has the name that the tool gives it; `arm`, `item` and `repeat` say what is compared, on what, and
how often, and `run` which file, log or named run it comes from. Every reader takes a file, a folder, several,
or a dict of runs: {"before": "a.json", "after": "b.json"} compares the runs. What ended in an error has no
values, no time either.
"""

import json
import sys
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lexbandits._extras import MissingExtra, need
from lexbandits.study.errors import StudyError
from lexbandits.study.table_files import (
    ALIASES,
    JSON_LINES,
    Columns,
    Role,
    TableNotice,
    Texts,
    check_size,
    columns_of_rows,
    parsed,
    read_columns,
    rows_of_jsonl,
)

Row = dict[str, Any]
Where = str | Path | Iterable[str | Path]
Runs = Where | Mapping[str, Where]
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # of inspect_ai: correct, partial, incorrect, no answer
TIMED = frozenset({"seconds"})  # of benchmarks: times of different size are skewed differently
ROLES = frozenset(Role) - {Role.CLUSTER}  # columns that readers make; all others hold values
NO_PRICES = "the logs have no prices of these models; inspect_ai takes them as --model-cost-config"
MOST_UNPACKED = 500_000_000  # bytes of one part of an archive
FEW_UNPACKED, MOST_RATIO = 20_000_000, 200  # above so many bytes, what unpacks to more is no log but a bomb
ENCRYPTED, ZSTD = 0x1, 93  # in the directory of a zip
ERROR = 2  # promptfoo's reason of a failure that is no failed assertion


@dataclass
class Reading:
    """What a reader has found so far."""

    rows: list[Row] = field(default_factory=list)
    notices: list[dict[str, Any]] = field(default_factory=list)


def _read(
    tool: str,
    rows_of: Callable[[Any, Reading], None],
    where: Any,
    none: str,
    item: str | None = "item",
    timed: frozenset[str] = frozenset(),
) -> Columns:
    """Read a run, or several by name; say so if a file is not what its tool writes."""
    reading, is_named = Reading(), isinstance(where, Mapping)
    try:
        for name, part in where.items() if is_named else [(None, where)]:
            first = len(reading.rows)
            rows_of(part, reading)
            for row in reading.rows[first:] if is_named else ():
                row["run"] = str(name)
    except (StudyError, OSError):
        raise
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        text = f"{type(error).__name__}: {str(error)[:80]}"
        raise StudyError(f"{where}: {tool} writes nothing like this ({text})") from error
    if not reading.rows:
        raise StudyError(f"no {none}")
    if is_named:
        item = _compare_runs(reading.rows, item)
    columns = columns_of_rows("the table", reading.rows)
    columns.item, columns.notices = item, tuple(reading.notices)
    columns.repeat = "repeat" if "repeat" in columns else None
    columns.timed = timed
    columns.has_runs = not is_named and len(set(columns["run"])) > 1
    columns.measured = _measured(reading.rows)
    return columns


def _compare_runs(rows: list[Row], item: str | None) -> str | None:
    """Make the runs the arms: of one model by themselves, of several with its name; return the item column.

    Runs of several benchmarks are paired by the benchmark.
    """
    arms: dict[str, set[str]] = {}
    for row in rows:
        arms.setdefault(row["run"], set()).add(row["arm"])
    are_single = all(len(names) == 1 for names in arms.values())
    for row in rows:
        if item is None and not are_single:
            row["item"] = row["arm"]
        label = row["run"] if are_single or item is None else f"{row['run']} · {row['arm']}"
        row["arm"] = label
    return "item" if item is None and not are_single else item


def _measured(rows: list[Row]) -> dict[str, frozenset[str]]:
    """Task -> the columns that some result of it has."""
    found: dict[str, set[str]] = {}
    for row in rows if "task" in rows[0] else ():
        names = (key for key, value in row.items() if value is not None and not key.startswith("args."))
        found.setdefault(row["task"], set()).update(names)
    return {task: frozenset(names) - ROLES for task, names in found.items()}


def table(where: Runs, tool: str | None = None) -> Columns:
    """Read results of any tool, or a plain table: the files say which.

    Args:
        where: a file, a folder, several, or a dict of runs by name.
        tool: who wrote them: a name of this module, or "table" for .csv and the like; the files say, if None.

    >>> for name in ("old", "new"):
    ...     _ = Path(f"{name}.csv").write_text("id;score\\n1;0,5\\n")
    >>> table({"old": "old.csv", "new": "new.csv"})["arm"]
    ['old', 'new']
    """
    parts = list(where.values()) if isinstance(where, Mapping) else [where]
    tools = {tool or tool_of(part) for part in parts}
    if len(tools) > 1:
        raise StudyError(f"{' and '.join(sorted(tools))} wrote these files: compare results of one tool")
    [name] = tools
    return _plain_tables(where) if name == "table" else READERS[name](where)


def tool_of(where: Where) -> str:
    """Return who wrote a file, a folder or several: a name of this module, or "table"."""
    paths = [Path(where)] if isinstance(where, (str, Path)) else [Path(path) for path in where]
    found = {}
    for path in paths:
        for file in _results_in(path) if path.is_dir() else [path]:
            found[_tool_of_file(file)] = file.name
    if not found:
        raise StudyError(f"there are no results in {', '.join(map(str, paths))}")
    if len(found) > 1:
        said = ", ".join(f"{name} by {tool}" for tool, name in found.items())
        raise StudyError(
            f"several tools wrote these files ({said}): name the files of one, or say which (tool=)"
        )
    return next(iter(found))


def _results_in(folder: Path) -> list[Path]:
    """One file of each kind that a folder has."""
    firsts = [_inside(folder, like)[:1] for like in ("*.eval", "samples_*.jsonl")]
    return [path for found in firsts for path in found] or _inside(folder, "*.json")[:1]


def _inside(folder: Path, like: str) -> list[Path]:
    """The files of a folder; a pipe would be waited for."""
    return [path for path in sorted(folder.rglob(like)) if path.is_file()]


def _tool_of_file(path: Path) -> str:
    if path.suffix == ".eval":
        return "inspect"
    if path.suffix == JSON_LINES and path.name.startswith("samples_"):
        check_size(path)
        with path.open("rb") as lines:  # what is no UTF-8 is named by its line
            first = next((parsed(path.name, line) for line in lines if line.strip()), None)
        return "lm_eval" if isinstance(first, dict) and {"doc_id", "metrics"} <= set(first) else "table"
    if path.suffix != ".json":
        return "table"
    told = _json(path)
    results = told.get("results") if isinstance(told, dict) else None
    match told, results:
        case {"eval": {"model": _, "task": _}}, _:
            return "inspect"
        case {"benchmarks": list(), "machine_info": _}, _:
            return "pytest_benchmark"
        case _, {"results": list()}:
            return "promptfoo"
        case _, [{"command": _, "times": _}, *_]:
            return "hyperfine"
        case list(), _:
            return "table"
        case {"configs": _, "n-shot": _}, _:
            raise StudyError(f"{path.name} has no single samples: say --log_samples to lm_eval")
    raise StudyError(f"{path.name} is neither a list of rows nor of {', '.join(READERS)}")


def _plain_tables(where: Runs) -> Columns:
    """Tables of files, one after the other; where runs are named, they are the arms."""
    if isinstance(where, (str, Path)):
        return read_columns(Path(where), "judge")
    is_named = isinstance(where, Mapping)
    parts = where.items() if isinstance(where, Mapping) else [(Path(path).stem, path) for path in where]
    files = [
        (str(name), read_columns(path, "judge"))
        for name, part in parts
        for path in ([Path(part)] if isinstance(part, (str, Path)) else map(Path, part))
    ]
    lengths = [len(next(iter(columns.values()), [])) for _, columns in files]
    names = dict.fromkeys(name for _, columns in files for name in columns)
    merged = Columns()
    for name in names:
        cells = [columns.get(name, [None] * n) for (_, columns), n in zip(files, lengths, strict=True)]
        merged[name] = [cell for column in cells for cell in column]
        if all(isinstance(column, Texts) for column in cells):
            merged[name] = texts = Texts(merged[name])
            texts.by_spreadsheet = any(getattr(column, "by_spreadsheet", False) for column in cells)
            texts.beside = [column for column in merged.values() if isinstance(column, Texts)]
    runs = [name for (name, _), n in zip(files, lengths, strict=True) for _ in range(n)]
    if "run" in merged and is_named:
        raise StudyError("the tables have a column 'run' already: leave it out, or call it arm")
    if is_named:
        found = [name for name in merged if name.lower() in (Role.ARM, *ALIASES[Role.ARM])]
        arms = merged[found[0]] if len(found) == 1 else runs
        rows = [{"run": run, "arm": str(arm)} for run, arm in zip(runs, arms, strict=True)]
        _compare_runs(rows, "item")
        merged["arm"] = [row["arm"] for row in rows]
    merged.setdefault("run", runs)
    merged.has_runs = not is_named and len(files) > 1
    return merged


def inspect(logs: Any) -> Columns:
    """Read inspect_ai: .eval or .json logs, their folder, what its `eval` returned, or runs of these by name.

    Arms are models, items samples, repeats epochs. Every score is a column of its scorer's name ("C" is 1,
    "P" 0.5, "I" and "N" 0). So are `working_time`, `total_time`, tokens, `total_cost` (of logs with prices).
    `args.NAME` are arguments of the task.
    """
    columns = _read("inspect_ai", _inspect_rows, logs, "samples")
    columns.empty = {"total_cost": NO_PRICES}
    return columns


def _inspect_rows(logs: Any, reading: Reading) -> None:
    rows: list[Row] = []
    failed, count = [], 0
    for name, log in _inspect_logs(logs):
        asked, count = log["eval"], count + 1
        if log.get("status") not in ("success", None):
            failed.append(name)
        for sample in log.get("samples") or ():
            known = {"arm": asked["model"], "item": sample["id"], "repeat": sample["epoch"]}
            known |= {"task": asked["task"], "run": Path(name).stem}
            known |= {f"args.{key}": value for key, value in (asked.get("task_args") or {}).items()}
            values = {} if sample.get("error") else _inspect_values(sample)
            rows.append({**values, **known})
    if failed and not rows:
        raise StudyError(
            f"{len(failed)} of {count} logs ended in an error and have no samples: {', '.join(failed[:3])}"
        )
    if failed:
        fields = {"failed": len(failed), "of": count, "names": failed[:3]}
        reading.notices.append({"code": TableNotice.FAILED_LOGS, **fields})
    reading.rows += _items_by_task(rows)


def _inspect_logs(logs: Any) -> Iterator[tuple[str, Row]]:
    if isinstance(logs, (str, Path)) or hasattr(logs, "model_dump"):
        logs = [logs]
    for log in logs:
        if hasattr(log, "model_dump"):
            yield Path(log.location).name, log.model_dump(mode="json")
            continue
        for path in _files(log, "*.eval", "*.json"):
            yield path.name, _json(path) if path.suffix == ".json" else _unpacked(path)


def _unpacked(path: Path) -> Row:
    """What matters of an .eval log: a zip of JSON, packed as only Python 3.14 unpacks it by itself."""
    try:
        with zipfile.ZipFile(path) as parts:
            names = parts.namelist()
            if "header.json" not in names:
                raise StudyError(f"{path.name} was never finished")
            wanted = [parts.getinfo(name) for name in ("header.json", "summaries.json")]
            for part in wanted:
                _check_part(path, part, names)
            header, samples = (parsed(f"{path.name}, {part.filename}", parts.read(part)) for part in wanted)
            return {**header, "samples": samples}
    except (StudyError, MissingExtra, FileNotFoundError, PermissionError):
        raise
    except Exception as error:  # every way of packing has errors of its own
        raise StudyError(f"{path.name} is no .eval log: {error}") from error


def _check_part(path: Path, part: zipfile.ZipInfo, names: list[str]) -> None:
    """Refuse a part that unpacks to more than its reader can hold, or that nobody can unpack."""
    ratio = part.file_size / max(1, part.compress_size)
    if part.file_size > MOST_UNPACKED or (part.file_size > FEW_UNPACKED and ratio > MOST_RATIO):
        raise StudyError(
            f"{path.name}: {part.filename} unpacks to {part.file_size / 1e6:,.0f} MB, {ratio:,.0f} times its "
            f"size; at most {MOST_UNPACKED / 1e6:,.0f} MB and {MOST_RATIO} times are read"
        )
    if part.flag_bits & ENCRYPTED:
        raise StudyError(f"{path.name} is encrypted: unpack it first")
    if names.count(part.filename) > 1:
        raise StudyError(f"{path.name} is no .eval log: it has two parts {part.filename}")
    if part.compress_type == ZSTD and sys.version_info < (3, 14):
        need("zipfile_zstd", f"{path.name}, packed with zstd, before Python 3.14")  # teaches zipfile how
    elif part.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, ZSTD):
        raise StudyError(f"{path.name} is packed in a way that inspect_ai never uses ({part.compress_type})")


def _json(path: Path) -> Any:
    check_size(path)
    return parsed(path.name, path.read_bytes())


def _inspect_values(sample: Row) -> Row:
    values: Row = {}
    for scorer, score in (sample.get("scores") or {}).items():
        parts = score["value"] if isinstance(score["value"], dict) else {None: score["value"]}
        for key, part in parts.items():
            grade = GRADES.get(part, part) if isinstance(part, str) else part
            values[scorer if key is None else f"{scorer}.{key}"] = grade
    values |= {key: sample.get(key) for key in ("working_time", "total_time")}
    usage = (sample.get("model_usage") or {}).values()
    prices = [used.get("total_cost") for used in usage]
    values["total_cost"] = None if None in prices or not prices else sum(prices)
    return values | {
        key: sum(used.get(key) or 0 for used in usage)
        for key in ("input_tokens", "output_tokens", "total_tokens")
    }


def lm_eval(folder: Runs) -> Columns:
    """Read lm-evaluation-harness with --log_samples: the folder of its output, with one folder per model.

    Arms are these folders, items documents, runs the times of runs. A metric of a filter other than "none" is
    "metric,filter", as in its tables.
    """
    return _read("lm_eval", _lm_eval_rows, folder, "samples: say --log_samples to lm_eval")


def _lm_eval_rows(folder: Where, reading: Reading) -> None:
    rows: dict[tuple[str, ...], Row] = {}
    for path in _files(folder, "samples_*.jsonl"):
        task, _, when = path.stem.removeprefix("samples_").rpartition("_")
        check_size(path)
        for told in rows_of_jsonl(path):
            row = rows.setdefault((path.parent.name, task, when, str(told["doc_id"])), {})
            row |= {"arm": path.parent.name, "item": told["doc_id"], "run": when, "task": task}
            by = "" if told.get("filter", "none") == "none" else f",{told['filter']}"
            row |= {
                metric + by: told[metric]
                for metric in told["metrics"]
                if isinstance(told[metric], (int, float))
            }
    reading.rows += _items_by_task(list(rows.values()))


def promptfoo(file: Runs) -> Columns:
    """Read promptfoo: the .json of `promptfoo eval -o results.json`.

    Arms are providers, or prompts where there is one provider, or both; items are tests. `score`, `success`,
    `latencyMs`, `cost`, `tokens`, and every named metric.
    """
    return _read("promptfoo", _promptfoo_rows, file, "results")


def _promptfoo_rows(file: Where, reading: Reading) -> None:
    rows = []
    for path in _files(file, "*.json"):
        told = _json(path)["results"]["results"]
        seen: dict[tuple[Any, ...], int] = {}
        for result in sorted(told, key=lambda result: result["testIdx"]):  # they come as they were done
            provider = result["provider"].get("label") or result["provider"]["id"]
            prompt = result["prompt"].get("label") or result["prompt"]["raw"]
            test = json.dumps(result["vars"], sort_keys=True)
            place = provider, prompt, test
            repeat = seen[place] = seen.get(place, -1) + 1
            known = {"provider": provider, "prompt": prompt, "item": test, "repeat": repeat, "run": path.stem}
            values = {} if result.get("failureReason") == ERROR else _promptfoo_values(result)
            rows.append({**values, **known})
    kinds = [key for key in ("provider", "prompt") if len({row[key] for row in rows}) > 1] or ["provider"]
    reading.rows += [{**row, "arm": " · ".join(row[key] for key in kinds)} for row in rows]


def _promptfoo_values(result: Row) -> Row:
    values = {key: result.get(key) for key in ("score", "success", "latencyMs", "cost")}
    return {
        **(result.get("namedScores") or {}),
        **values,
        "tokens": (result.get("tokenUsage") or {}).get("total"),
    }


def pytest_benchmark(file: Runs) -> Columns:
    """Read pytest-benchmark: the .json of --benchmark-json; one row per round, `seconds` of a call.

    `arm` is the test, and parameters are columns: for `test_sort[way-data]` say arm="way", item="data".
    Nothing pairs the rounds, unless runs are named: then tests do. `judge` takes `seconds` with cap="auto",
    unless the objective has a kind of noise or a cap of its own.
    """
    return _read("pytest-benchmark", _pytest_benchmark_rows, file, "benchmarks", item=None, timed=TIMED)


def _pytest_benchmark_rows(file: Where, reading: Reading) -> None:
    for path in _files(file, "*.json"):
        told = _json(path)
        for test in told["benchmarks"]:
            if "data" not in test["stats"]:
                raise StudyError(
                    f"{path.name} has no single rounds: say --benchmark-save-data, or --benchmark-json"
                )
            known = {**(test["params"] or {}), "arm": test["name"], "group": test["group"], "run": path.stem}
            known["commit"] = told["commit_info"]["id"]
            for n, seconds in enumerate(test["stats"]["data"]):
                reading.rows.append({**known, "repeat": n, "seconds": seconds})


def hyperfine(file: Runs) -> Columns:
    """Read hyperfine: the .json of --export-json; one row per run of a command. Nothing pairs them.

    `arm` is the command or its name, and parameters are columns. A command that failed has no `seconds`.
    `judge` takes `seconds` with cap="auto", unless the objective has a kind of noise or a cap of its own.
    """
    return _read("hyperfine", _hyperfine_rows, file, "runs", item=None, timed=TIMED)


def _hyperfine_rows(file: Where, reading: Reading) -> None:
    for path in _files(file, "*.json"):
        counts: Counter[str] = Counter()  # a command without the parameter is there once per value of it
        for command in _json(path)["results"]:
            known = {**command.get("parameters", {}), "arm": command["command"], "run": path.stem}
            for seconds, code in zip(command["times"], command["exit_codes"], strict=True):
                values = {"exit_code": code, "seconds": None if code else seconds}
                reading.rows.append({**known, "repeat": counts[known["arm"]], **values})
                counts[known["arm"]] += 1


READERS: dict[str, Callable[[Any], Columns]] = {
    "inspect": inspect,
    "lm_eval": lm_eval,
    "promptfoo": promptfoo,
    "pytest_benchmark": pytest_benchmark,
    "hyperfine": hyperfine,
}


# --- what the readers share


def _files(where: Where, *patterns: str) -> list[Path]:
    """A file, several, or all of a folder."""
    paths = [Path(where)] if isinstance(where, (str, Path)) else [Path(path) for path in where]
    found = []
    for path in paths:
        found += [file for like in patterns for file in _inside(path, like)] if path.is_dir() else [path]
    if not found:
        raise StudyError(f"there is no {' or '.join(patterns)} in {', '.join(map(str, paths))}")
    return found


def _items_by_task(rows: list[Row]) -> list[Row]:
    """Numbers of items that several tasks have are no names."""
    if len({row["task"] for row in rows}) > 1:
        return [{**row, "item": f"{row['task']}/{row['item']}"} for row in rows]
    return rows
