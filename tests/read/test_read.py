"""Readers, on files that the real tools made (README.md beside this says how)."""

from pathlib import Path

import pandas as pd
import pytest

import lexbandits as lb

MADE = Path(__file__).parent / "made"
RIGHT = lb.Objective("match", margin=0.2, noise="bernoulli", if_failed=0.0)


def test_inspect():
    columns = lb.read.inspect(sorted(MADE.glob("*.eval")))
    read = pd.DataFrame(columns).set_index(["arm", "item", "repeat"])
    assert len(read) == 2 * 6 * 2
    wrong = read.index[read["match"] == 0].droplevel("repeat").unique().tolist()
    assert wrong == [("mockllm/large", "q5"), ("mockllm/small", "q1"), ("mockllm/small", "q3")]
    assert (read["match"].dropna() == read["includes"].dropna()).all()
    failed = [("mockllm/small", "q4", 1), ("mockllm/small", "q4", 2)]  # no time either: failing is no speed
    for name in ("match", "includes", "working_time", "total_time", "total_tokens"):
        assert read.index[read[name].isna()].tolist() == failed
    assert (
        read["output_tokens"].xs("q3", level="item").tolist() == [len("It is 6.")] * 2 + [len("no idea")] * 2
    )
    verdict = lb.judge(columns, [RIGHT], repeat="repeat", scope="items")
    assert verdict.arm == "mockllm/large"
    with pytest.raises(lb.StudyError, match="1 of 12 values of 'match' is missing"):
        lb.judge(columns, [lb.Objective("match", margin=0.2, noise="bernoulli")], repeat="repeat")


def test_lm_eval():
    columns = lb.read.lm_eval(MADE / "lm_eval")
    read = pd.DataFrame(columns)
    assert read.groupby(["arm", "task"]).size().to_dict() == {
        (arm, task): 6 for arm in ("quiz__one", "quiz__two") for task in ("copies", "sums")
    }
    sums = read[read["task"] == "sums"]
    assert sums["item"].tolist()[:6] == [f"sums/{i}" for i in range(6)]
    assert sums["acc"].isin([0.0, 1.0]).all()
    assert sums[["exact_match,first", "exact_match,word"]].isna().all(axis=None)
    assert (read[read["task"] == "copies"][["exact_match,first", "exact_match,word"]] == 0.0).all(axis=None)
    told = sums.set_index(["arm", "item"])["acc"]
    lines = (MADE / "lm_eval" / "quiz__one").glob("samples_sums_*.jsonl")
    for line in pd.read_json(next(lines), lines=True).itertuples():
        assert told["quiz__one", f"sums/{line.doc_id}"] == line.acc


def test_pytest_benchmark():
    columns = lb.read.pytest_benchmark(MADE / "pytest-benchmark.json")
    read = pd.DataFrame(columns)
    assert read.groupby(["way", "data"]).size().to_dict() == {
        (way, data): 5 for way in ("builtin", "heap") for data in ("mixed", "sorted")
    }
    seconds = lb.Objective("seconds", "minimize", margin=0.00002, noise=("bounded", 0, 1))
    verdict = lb.judge(columns, [seconds], arm="way", item="data", repeat="repeat", scope="items")
    assert verdict.arm == "builtin"
    assert lb.judge(columns, [seconds], item=None, scope="items").arm.startswith("test_sort[builtin-")


def test_hyperfine():
    read = pd.DataFrame(lb.read.hyperfine(str(MADE / "hyperfine.json")))
    assert read["arm"].value_counts().to_dict() == {
        "false": 10,
        "gzip -1 -c quiz.py": 5,
        "gzip -9 -c quiz.py": 5,
    }
    assert read["seconds"].isna().tolist() == (read["arm"] == "false").tolist()
    assert set(read["exit_code"][read["arm"] == "false"]) == {1}
    zipped = read[read["arm"] != "false"]
    seconds = lb.Objective("seconds", "minimize", margin=0.5, noise=("bounded", 0, 1))
    assert lb.judge(zipped, [seconds], arm="level", item=None, scope="items").arm in ("1", "9")


def test_promptfoo():
    columns = lb.read.promptfoo(MADE / "promptfoo.json")
    read = pd.DataFrame(columns)
    assert read.groupby(["arm", "item"]).size().tolist() == [2] * 6
    assert read.groupby("repeat").size().tolist() == [6, 6]
    failed = (read["arm"] == "small") & read["item"].str.contains("3 [+] 3")
    for name in ("score", "latencyMs", "right", "short"):
        assert read[name].isna().tolist() == failed.tolist()
    right = read.groupby("arm")["right"].mean()
    assert right["large"] == 1
    assert right["small"] == 0.5
    assert read.groupby("arm")["short"].mean().to_dict() == {"large": 1, "small": 0}


def test_what_cannot_be_read_is_reported(tmp_path):
    for reader, words in (
        (lb.read.inspect, "there is no *.eval"),
        (lb.read.lm_eval, "there is no samples_"),
        (lb.read.hyperfine, "there is no *.json"),
    ):
        with pytest.raises(lb.StudyError, match=words.replace("*", r"\*")):
            reader(tmp_path)
    broken = tmp_path / "broken.eval"
    broken.write_bytes((MADE / "quiz-1.eval").read_bytes()[:9000])
    with pytest.raises(lb.StudyError, match=r"broken\.eval is no \.eval log"):
        lb.read.inspect(broken)
    for reader in (lb.read.hyperfine, lb.read.promptfoo, lb.read.pytest_benchmark):
        with pytest.raises(lb.StudyError, match="writes nothing like this"):
            reader(MADE / ("hyperfine.json" if reader is not lb.read.hyperfine else "pytest-benchmark.json"))
