"""Files that lie: bombs, broken, encrypted or oddly packed archives, deep JSON. One clear line each."""

import io
import json
import math
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import lexbandits as lb
from lexbandits.study import table_files

MADE = Path(__file__).parent / "made"
HEADER = {"eval": {"model": "m", "task": "t"}}
SAMPLES = [{"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}}]


def archive(path, header=None, samples=None, packed=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(path, "w", packed) as parts:
        parts.writestr("header.json", json.dumps(HEADER) if header is None else header)
        parts.writestr("summaries.json", json.dumps(SAMPLES) if samples is None else samples)
    return path


def refused(reader, path):
    """The one line."""
    with pytest.raises(lb.StudyError) as said:
        reader(path)
    assert len(str(said.value)) < 400
    assert "\n" not in str(said.value)
    return str(said.value)


def test_a_whole_archive_is_read(tmp_path):
    assert lb.read.inspect(archive(tmp_path / "a.eval"))["s"] == [1]


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    bomb = archive(tmp_path / "bomb.eval", samples=b"[" + b" " * 200_000_000 + b"]")
    assert bomb.stat().st_size < 300_000
    code = (
        "import resource, sys, lexbandits as lb\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try:\n lb.read.inspect(sys.argv[1])\n"
        "except lb.StudyError as error: print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(bomb)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "bomb.eval: summaries.json unpacks to 200 MB" in done[0]
    assert int(done[1]) < 100_000, "kB"


def test_a_size_that_lies_does_not_unpack_more(tmp_path):
    bomb = archive(tmp_path / "bomb.eval", samples=b"[" + b" " * 30_000_000 + b"]")
    content = bomb.read_bytes()
    size = struct.pack("<I", 30_000_002)
    assert content.count(size) >= 2
    bomb.write_bytes(content.replace(size, struct.pack("<I", 1000)))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert "is no .eval log" in refused(lb.read.inspect, bomb)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000, "kB"


def test_odd_archives_are_named(tmp_path):
    path = tmp_path / "a.eval"
    for packed, number in ((zipfile.ZIP_BZIP2, 12), (zipfile.ZIP_LZMA, 14)):
        assert f"packed in a way that inspect_ai never uses ({number})" in refused(
            lb.read.inspect, archive(path, packed=packed)
        )
    content = bytearray(archive(path).read_bytes())
    at = content.index(b"PK\x01\x02")
    content[at + 8] |= 1
    path.write_bytes(content)
    assert "encrypted" in refused(lb.read.inspect, path)
    content[at + 8] &= ~1
    content[at + 10] = 77
    path.write_bytes(content)
    assert "never uses (77)" in refused(lb.read.inspect, path)
    with pytest.warns(UserWarning, match="Duplicate name"), zipfile.ZipFile(archive(path), "a") as parts:
        parts.writestr("header.json", "{}")
    assert "two parts header.json" in refused(lb.read.inspect, path)


@pytest.mark.parametrize("deep", ["[" * 200_000, '{"a":' * 200_000, "[" * 5_000 + "]" * 5_000])
def test_deep_json_is_one_line(tmp_path, deep):
    assert "nested too deeply" in refused(lb.read.inspect, archive(tmp_path / "a.eval", samples=deep))
    for reader in (lb.read.promptfoo, lb.read.hyperfine, lb.read.pytest_benchmark, lb.read.inspect):
        (tmp_path / "a.json").write_text(deep)
        assert "nested too deeply" in refused(reader, tmp_path / "a.json")
    (tmp_path / "a.jsonl").write_text(f'{{"arm": "a"}}\n{deep}\n')
    judged = lambda path: lb.judge(path, [lb.Objective("x", margin=2, noise="gaussian")])  # noqa: E731
    assert "line 2: the JSON is nested too deeply" in refused(judged, tmp_path / "a.jsonl")


def test_what_is_no_utf8_is_refused_in_a_line(tmp_path):
    for name in ("samples_x_1.jsonl", "a.jsonl"):
        (tmp_path / name).write_bytes(b'{"arm": "\xff"}\n')
        assert "is no UTF-8" in refused(lb.read.table, tmp_path / name)


def test_a_small_file_of_a_huge_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_CELLS", 10_000)
    monkeypatch.setattr(table_files, "MOST_BYTES", 10_000)
    wide = tmp_path / "wide.jsonl"
    wide.write_text("".join(f'{{"k{n}": 1}}\n' for n in range(200)))
    judged = lambda path: lb.judge(path, [lb.Objective("x", margin=2, noise="gaussian")])  # noqa: E731
    assert "40,000 cells" in refused(judged, wide)
    long = tmp_path / "long.csv"
    long.write_text("arm,item,x\n" + "a,1,1\n" * 3_000)
    assert "more than the 0 MB that are read" in refused(judged, long)
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    bomb = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"arm": ["a"] * 20_000}), bomb)
    assert bomb.stat().st_size < 2_000
    assert "20,000 cells" in refused(judged, bomb)
    for cut in (4, 50, bomb.stat().st_size - 5):
        bomb.write_bytes(bomb.read_bytes()[:cut])
        assert "no .parquet that can be read" in refused(judged, bomb)


@pytest.mark.parametrize("large", [False, True])
def test_a_text_that_returns_is_kept_once(tmp_path, large):
    """A small .parquet says a long text a thousand times; lists of it are left out."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    kind, said, n = pyarrow.large_string() if large else pyarrow.string(), "x" * 100_000, 1000
    columns = {
        "arm": pyarrow.array(["a", "b", None, "a"] * (n // 4), kind),
        "x": [0.5, None, 1.0, 2.0] * (n // 4),
        "note": pyarrow.array([said] * n, kind),
        "lists": pyarrow.array([[said]] * n, pyarrow.list_(kind)),
        "bytes": [b"a"] * n,
    }
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet", row_group_size=300)
    assert (tmp_path / "a.parquet").stat().st_size < 100_000
    read = lb.read.table(tmp_path / "a.parquet")
    assert list(read) == ["arm", "x", "note", "bytes"]
    assert (read["arm"], read["x"]) == (columns["arm"].to_pylist(), columns["x"])
    assert set(read["note"]) == {said}
    assert len(set(map(id, read["note"]))) <= 4, "once in each group of rows"


def test_a_list_that_goes_on_and_on_is_no_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(table_files, "MOST_CELLS", 10_000)
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"arm": ["a"], "x": [[0.0] * 20_000]}), tmp_path / "a.parquet")
    assert "20,001 cells" in refused(lb.read.table, tmp_path / "a.parquet")


@pytest.mark.parametrize("part", ["[],", "0,", '{"a":[0]},'])
def test_json_that_unfolds_is_refused_before_it_is_parsed(tmp_path, monkeypatch, part):
    monkeypatch.setattr(table_files, "MOST_PARTS", 1_000)
    monkeypatch.setattr(table_files.json, "loads", None)  # nobody gets that far
    text = f"[{part * 1000}0]"
    (tmp_path / "a.json").write_text(text)
    (tmp_path / "a.jsonl").write_text(text)
    for path in tmp_path.iterdir():
        assert "more than the 1,000 parts that are read" in refused(lb.read.table, path)


NS = '<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main">'
HEAD = "".join(
    f'<c r="{cell}1" t="inlineStr"><is><t>{name}</t></is></c>'
    for cell, name in zip("ABC", ("arm", "item", "x"), strict=True)
)
ROWS = (
    '<row r="2"><c r="A2" t="str"><f>"a"</f><v>a</v></c><c r="B2"><v>1</v></c>'
    '<c r="C2"><f>1+1</f><v>2</v></c></row>'
)


def spreadsheet(path, rows=ROWS, before="", dimension=""):
    """A book with these rows under a head, and a link to another book."""
    openpyxl = pytest.importorskip("openpyxl")
    made, content = openpyxl.Workbook(), io.BytesIO()
    made.save(content)
    sheet = f'{before}{NS}{dimension}<sheetData><row r="1">{HEAD}</row>{rows}</sheetData></worksheet>'
    with zipfile.ZipFile(content) as parts, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for name in parts.namelist():
            out.writestr(name, sheet if name == "xl/worksheets/sheet1.xml" else parts.read(name))
    return path


@pytest.mark.parametrize(
    "dimension", ["", '<dimension ref="A1:XFD1048576"/>', '<dimension ref="A1:A1"/>', '<dimension ref="B2"/>']
)
def test_a_sheet_is_what_its_cells_are_whatever_it_says_of_itself(tmp_path, dimension):
    """Formulas count as they were last computed."""
    columns = lb.read.table(spreadsheet(tmp_path / "a.xlsx", dimension=dimension))
    assert dict(columns) == {"arm": ["a"], "item": [1], "x": [2]}


LAUGHS = "".join(
    f'<!ENTITY {name} "{f"&{of};" * 10}">' for of, name in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize(
    ("rows", "before"),
    [
        ('<row r="999999999"><c r="A999999999"><v>1</v></c></row>', ""),
        ("".join(f'<row r="{n}"><c r="XFD{n}"><v>1</v></c></row>' for n in range(2, 9000)), ""),
        (ROWS.replace(">a<", ">&j;<"), f'<!DOCTYPE l [<!ENTITY a "aaaaaaaaaa">{LAUGHS}]>'),
        (ROWS.replace(">a<", ">&j;<"), '<!DOCTYPE l [<!ENTITY j SYSTEM "file:///etc/passwd">]>'),
        ("<row>" * 100_000, ""),
    ],
)
def test_a_small_spreadsheet_does_not_unfold(tmp_path, monkeypatch, rows, before):
    monkeypatch.setattr(table_files, "MOST_CELLS", 10**6)
    line = refused(lb.read.table, spreadsheet(tmp_path / "a.xlsx", rows, before))
    assert "beyond the" in line or "no .xlsx that can be read" in line


@pytest.mark.parametrize(
    ("suffix", "content"), [(".csv", "," * 200), (".csv", "\n1" * 200), (".tsv", "a\tb\n" + "\t" * 200)]
)
def test_a_text_of_too_many_cells_is_refused_before_it_is_cut(tmp_path, monkeypatch, suffix, content):
    monkeypatch.setattr(table_files, "MOST_CELLS", 100)
    monkeypatch.setattr(table_files.csv, "reader", None)  # nobody gets that far
    path = tmp_path / f"a{suffix}"
    path.write_text(content)
    assert "more than the 100 that are read" in refused(lb.read.table, path)


def test_pipes_in_a_folder_of_results_are_not_waited_for(tmp_path):
    for name in ("a.json", "b.eval", "samples_x_1.jsonl"):
        os.mkfifo(tmp_path / name)
    (tmp_path / "c.json").mkdir()
    assert "there are no results" in refused(lb.read.table, tmp_path)
    assert "there is no" in refused(lb.read.promptfoo, tmp_path)
    shutil.copy(MADE / "promptfoo.json", tmp_path / "d.json")
    assert lb.read.table(tmp_path)["arm"]


READERS = {
    "quiz-1.eval": lb.read.inspect,
    "promptfoo.json": lb.read.promptfoo,
    "hyperfine.json": lb.read.hyperfine,
    "pytest-benchmark.json": lb.read.pytest_benchmark,
}


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_refused_in_a_line_or_read(tmp_path, name):
    """Bytes changed, cut, doubled: never another error, never a table without rows."""
    luck, reader, whole = random.Random(name), READERS[name], (MADE / name).read_bytes()
    copy, said, lines = tmp_path / name, 0, []
    for _ in range(80):
        content = bytearray(whole)
        for _ in range(luck.choice([1, 3, 20])):
            at = luck.randrange(len(content))
            match luck.randrange(4):
                case 0:
                    content[at] ^= 1 << luck.randrange(8)
                case 1:
                    del content[at : at + luck.randrange(1, 200)]
                case 2:
                    content[at:at] = content[at : at + 50]
                case _:
                    content[at : at + 4] = luck.randbytes(4)
            content = content or bytearray(b"{")
        copy.write_bytes(content)
        try:
            columns = reader(copy)
        except lb.StudyError as error:
            said += 1
            lines.append(str(error))
        except ImportError:  # what it seems to be packed with is not installed
            said += 1
        else:
            assert len({len(column) for column in columns.values()}) == 1
    assert said > 20
    assert not any("\n" in line for line in lines)
    shutil.copy(MADE / name, copy)
    assert reader(copy)


ODD = [
    None,
    True,
    -1,
    0,
    10**400,
    1e308,
    math.nan,
    math.inf,
    "",
    "x" * 300,
    "a\nb\x1b[31m",
    "\ud800",
    [],
    [[]],
    {},
    {"": {}},
]


def replaced(words, path, new):
    """The same JSON with another part at a path."""
    if not path:
        return new
    words = [*words] if isinstance(words, list) else dict(words)
    words[path[0]] = replaced(words[path[0]], path[1:], new)
    return words


def paths(words, at=()):
    yield at
    for key in words if isinstance(words, dict) else range(len(words)) if isinstance(words, list) else ():
        yield from paths(words[key], (*at, key))


@pytest.mark.parametrize(
    "name", ["promptfoo.json", "hyperfine.json", "pytest-benchmark.json", "sums.jsonl", "lm_eval"]
)
def test_any_other_json_is_refused_in_a_line_or_judged(tmp_path, name):
    """A part replaced by another kind of thing, wherever it is: read, and judged as runs of that name."""
    is_eval, luck = name == "lm_eval", random.Random(name)
    whole = next((MADE / name).rglob("samples_sums*")) if is_eval else MADE / name
    copy = tmp_path / (whole.name if is_eval else name)
    lines = [json.loads(line) for line in whole.read_text().splitlines()] if copy.suffix == ".jsonl" else None
    told = json.loads(whole.read_text()) if lines is None else lines
    every, lengths = list(paths(told)), []
    for _ in range(120):
        new = replaced(told, luck.choice(every), luck.choice(ODD))
        rows = new if lines is not None and isinstance(new, list) else [new]
        copy.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
        try:
            columns = lb.read.table({"old": whole, "new\x1b[31m": copy})
            assert len({len(column) for column in columns.values()}) == 1
            lb.judge(
                columns, [lb.Objective("seconds", "minimize", margin=1), lb.Objective("acc", margin=0.5)]
            )
        except lb.StudyError as error:
            lengths.append(len(str(error)))
    assert max(lengths) < 2000
