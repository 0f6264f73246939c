"""Files that lie: bombs, broken, encrypted or oddly packed archives, deep JSON. One clear line each."""

import json
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
from lexbandits.study import files

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
    judged = lambda path: lb.judge(path, [lb.Objective("x", margin=2)])  # noqa: E731
    assert "line 2: the JSON is nested too deeply" in refused(judged, tmp_path / "a.jsonl")


def test_a_small_file_of_a_huge_table_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "MOST_CELLS", 10_000)
    monkeypatch.setattr(files, "MOST_BYTES", 10_000)
    wide = tmp_path / "wide.jsonl"
    wide.write_text("".join(f'{{"k{n}": 1}}\n' for n in range(200)))
    judged = lambda path: lb.judge(path, [lb.Objective("x", margin=2)])  # noqa: E731
    assert "200 rows and 200 columns" in refused(judged, wide)
    long = tmp_path / "long.csv"
    long.write_text("arm,item,x\n" + "a,1,1\n" * 3_000)
    assert "more than the 0 MB that are read" in refused(judged, long)
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    bomb = tmp_path / "bomb.parquet"
    parquet.write_table(pyarrow.table({"arm": ["a"] * 20_000}), bomb)
    assert bomb.stat().st_size < 2_000
    assert "20,000 rows and 1 columns" in refused(judged, bomb)
    for cut in (4, 50, bomb.stat().st_size - 5):
        bomb.write_bytes(bomb.read_bytes()[:cut])
        assert "no .parquet that can be read" in refused(judged, bomb)


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
