"""Results that other tools have written, as a table: a dict of columns, which `judge` and every frame take.

A column has the name that the tool gives it; `arm`, `item` and `repeat` say what is compared, on what, and
how often. What ended in an error has no values, no time either.
"""

import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

from lexbandits.extras import MissingExtra, need
from lexbandits.study.errors import StudyError
from lexbandits.study.files import check_size, columns_of_rows, parsed, rows_of_jsonl

Columns = dict[str, list[Any]]
Row = dict[str, Any]
Where = str | Path | Iterable[str | Path]
GRADES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}  # of inspect_ai: correct, partial, incorrect, no answer
MOST_UNPACKED = 500_000_000  # bytes of one part of an archive
FEW_UNPACKED, MOST_RATIO = 20_000_000, 200  # above so many bytes, what unpacks to more is no log but a bomb
ENCRYPTED, ZSTD = 0x1, 93  # in the directory of a zip
ERROR = 2  # promptfoo's reason of a failure that is no failed assertion


def _made_by(tool: str) -> Callable[[Callable[[Any], Columns]], Callable[[Any], Columns]]:
    """A reader that says so if a file is not what its tool writes."""

    def made(read: Callable[[Any], Columns]) -> Callable[[Any], Columns]:
        @wraps(read)
        def reads(where: Any) -> Columns:
            try:
                return read(where)
            except (StudyError, OSError):
                raise
            except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
                words = f"{type(error).__name__}: {str(error)[:80]}"
                raise StudyError(f"{where}: {tool} writes nothing like this ({words})") from error

        return reads

    return made


@_made_by("inspect_ai")
def inspect(logs: Any) -> Columns:
    """inspect_ai: .eval or .json logs, their folder, or what its `eval` returned.

    Arms are models, items samples, repeats epochs. Every score is a column of its scorer's name ("C" is 1,
    "P" 0.5, "I" and "N" 0); `working_time`, `total_time`, tokens; `args.NAME` are arguments of the task.
    """
    rows: list[Row] = []
    for name, log in _inspect_logs(logs):
        asked = log["eval"]
        for sample in log["samples"]:
            known = {"arm": asked["model"], "item": sample["id"], "repeat": sample["epoch"]}
            known |= {"task": asked["task"], "log": name}
            known |= {f"args.{key}": value for key, value in (asked.get("task_args") or {}).items()}
            values = {} if sample.get("error") else _inspect_values(sample)
            rows.append({**values, **known})
    return _columns(_items_by_task(rows), "samples")


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
    return values | {
        key: sum(used.get(key) or 0 for used in usage)
        for key in ("input_tokens", "output_tokens", "total_tokens")
    }


@_made_by("lm_eval")
def lm_eval(folder: Where) -> Columns:
    """lm-evaluation-harness with --log_samples: the folder of its output, with one folder per model.

    Arms are these folders, items documents, repeats the times of runs. A metric of a filter other than "none"
    is "metric,filter", as in its tables.
    """
    rows: dict[tuple[str, ...], Row] = {}
    for path in _files(folder, "samples_*.jsonl"):
        task, _, when = path.stem.removeprefix("samples_").rpartition("_")
        check_size(path)
        for told in rows_of_jsonl(path):
            row = rows.setdefault((path.parent.name, task, when, str(told["doc_id"])), {})
            row |= {"arm": path.parent.name, "item": told["doc_id"], "repeat": when, "task": task}
            by = "" if told.get("filter", "none") == "none" else f",{told['filter']}"
            row |= {
                metric + by: told[metric]
                for metric in told["metrics"]
                if isinstance(told[metric], (int, float))
            }
    return _columns(_items_by_task(list(rows.values())), "samples: say --log_samples to lm_eval")


@_made_by("promptfoo")
def promptfoo(file: Where) -> Columns:
    """promptfoo: the .json of `promptfoo eval -o results.json`.

    Arms are providers, or prompts where there is one provider, or both; items are tests. `score`, `success`,
    `latencyMs`, `cost`, `tokens`, and every named metric.
    """
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
            known = {"provider": provider, "prompt": prompt, "item": test, "repeat": repeat}
            values = {} if result.get("failureReason") == ERROR else _promptfoo_values(result)
            rows.append({**values, **known})
    kinds = [key for key in ("provider", "prompt") if len({row[key] for row in rows}) > 1] or ["provider"]
    return _columns([{**row, "arm": " · ".join(row[key] for key in kinds)} for row in rows], "results")


def _promptfoo_values(result: Row) -> Row:
    values = {key: result.get(key) for key in ("score", "success", "latencyMs", "cost")}
    return {
        **(result.get("namedScores") or {}),
        **values,
        "tokens": (result.get("tokenUsage") or {}).get("total"),
    }


@_made_by("pytest-benchmark")
def pytest_benchmark(file: Where) -> Columns:
    """pytest-benchmark: the .json of --benchmark-json; one row per round, `seconds` of a call.

    `arm` is the test, and parameters are columns: for `test_sort[way-data]` say arm="way", item="data",
    repeat="repeat"; or item=None if rounds are all there is. `commit` and `file` tell several files apart.
    """
    rows = []
    for path in _files(file, "*.json"):
        told = _json(path)
        for test in told["benchmarks"]:
            if "data" not in test["stats"]:
                raise StudyError(
                    f"{path.name} has no single rounds: say --benchmark-save-data, or --benchmark-json"
                )
            known = {**(test["params"] or {}), "arm": test["name"], "group": test["group"], "file": path.stem}
            known["commit"] = told["commit_info"]["id"]
            rows += [{**known, "repeat": n, "seconds": data} for n, data in enumerate(test["stats"]["data"])]
    return _columns(rows, "benchmarks")


@_made_by("hyperfine")
def hyperfine(file: Where) -> Columns:
    """hyperfine: the .json of --export-json; one row per run. Nothing pairs the runs: say item=None.

    `arm` is the command or its name, and parameters are columns. A run that failed has no `seconds`.
    """
    rows = []
    for path in _files(file, "*.json"):
        for command in _json(path)["results"]:
            known = {**command.get("parameters", {}), "arm": command["command"], "file": path.stem}
            for n, (seconds, code) in enumerate(zip(command["times"], command["exit_codes"], strict=True)):
                rows.append({**known, "repeat": n, "exit_code": code, "seconds": None if code else seconds})
    return _columns(rows, "runs")


# --- what the readers share


def _files(where: Where, *patterns: str) -> list[Path]:
    """A file, several, or all of a folder."""
    paths = [Path(where)] if isinstance(where, (str, Path)) else [Path(path) for path in where]
    found = []
    for path in paths:
        found += [file for like in patterns for file in sorted(path.rglob(like))] if path.is_dir() else [path]
    if not found:
        raise StudyError(f"there is no {' or '.join(patterns)} in {', '.join(map(str, paths))}")
    return found


def _items_by_task(rows: list[Row]) -> list[Row]:
    """Numbers of items that several tasks have are no names."""
    if len({row["task"] for row in rows}) > 1:
        return [{**row, "item": f"{row['task']}/{row['item']}"} for row in rows]
    return rows


def _columns(rows: list[Row], what: str) -> Columns:
    if not rows:
        raise StudyError(f"no {what}")
    return columns_of_rows("the table", rows)
