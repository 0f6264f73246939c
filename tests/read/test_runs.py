"""Which tool wrote a file, and runs of one model, compared: before and after."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

import lexbandits as lb
from lexbandits.cli.judge import objective_of
from lexbandits.read import READERS, tool_of
from support.command import invoked

MADE = Path(__file__).parent / "made"
WHERE = {
    "inspect": [MADE / "quiz-1.eval", MADE / "quiz-2.eval"],
    "lm_eval": MADE / "lm_eval",
    "promptfoo": MADE / "promptfoo.json",
    "pytest_benchmark": MADE / "pytest-benchmark.json",
    "hyperfine": MADE / "hyperfine.json",
}
QUESTION = {
    "inspect": "match max 0.2 bernoulli if_failed=0",
    "lm_eval": "acc max 0.2 bernoulli",
    "promptfoo": "score max 0.2 bernoulli if_failed=0",
    "pytest_benchmark": "seconds min 0.1 s bounded 0 1",
    "hyperfine": "seconds min 0.1 s bounded 0 1 if_failed=1",
}


@pytest.mark.parametrize("tool", READERS)
def test_a_file_says_who_wrote_it(tool):
    assert tool_of(WHERE[tool]) == tool
    assert lb.read.table(WHERE[tool]) == READERS[tool](WHERE[tool])


def test_a_folder_says_who_wrote_it(tmp_path):
    with pytest.raises(lb.StudyError, match="there are no results in"):
        tool_of(tmp_path)
    shutil.copy(MADE / "promptfoo.json", tmp_path)
    assert tool_of(tmp_path) == "promptfoo"
    shutil.copy(MADE / "quiz-1.eval", tmp_path)
    assert tool_of(tmp_path) == "inspect"
    shutil.copytree(MADE / "lm_eval", tmp_path / "lm_eval")
    with pytest.raises(lb.StudyError, match="several tools wrote these files"):
        tool_of(tmp_path)
    (tmp_path / "odd.json").write_text('{"results": 1}')
    with pytest.raises(lb.StudyError, match=r"odd\.json is neither a list of rows nor of inspect, lm_eval"):
        tool_of(tmp_path / "odd.json")
    (tmp_path / "results_1.json").write_text(
        '{"results": {"quiz": {"acc,none": 1}}, "configs": {}, "n-shot": {}}'
    )
    with pytest.raises(
        lb.StudyError, match=r"results_1\.json has no single samples: say --log_samples to lm_eval"
    ):
        tool_of(tmp_path / "results_1.json")
    (tmp_path / "rows.json").write_text('[{"arm": "a", "item": 1, "x": 2}]')
    assert lb.read.table(tmp_path / "rows.json") == {"arm": ["a"], "item": [1], "x": [2]}


@pytest.mark.parametrize("tool", READERS)
def test_real_files_are_judged_without_a_flag(tool):
    where = WHERE[tool] if isinstance(WHERE[tool], list) else [WHERE[tool]]
    done = invoked("judge", *where, QUESTION[tool], "--json")
    assert done.exit_code in (0, 1), done.output
    assert len(json.loads(done.stdout)["means"]) > 1
    assert invoked("judge", *where, QUESTION[tool], "--json", "--from", tool).stdout == done.stdout


@pytest.mark.parametrize("tool", READERS)
def test_runs_of_one_model_are_compared(tool):
    """The same files twice are two equal runs, and never one with twice the data."""
    one = {"inspect": MADE / "quiz-1.eval", "lm_eval": MADE / "lm_eval" / "quiz__one"}.get(tool, WHERE[tool])
    columns = lb.read.table({"before": one, "after": one})
    assert set(columns["run"]) == {"before", "after"}
    done = invoked("judge", "--run", f"before={one}", "--run", f"after={one}", QUESTION[tool], "--json")
    assert done.exit_code in (0, 1), done.output
    means = json.loads(done.stdout)["means"]
    if tool == "promptfoo":  # it has two models
        assert set(means) == {f"{run} · {arm}" for run in ("before", "after") for arm in ("small", "large")}
    else:
        assert set(means) == {"before", "after"}
        assert means["before"] == means["after"]
    with pytest.raises(lb.StudyError, match=r"is in two runs, .*\"before\": …, \"after\": …\}, or say arm"):
        lb.judge(doubled(tool, one), [objective_of(QUESTION[tool])])


def doubled(tool, one):
    """Two files of one model that nobody has named."""
    columns = lb.read.table({"first": one, "second": one})
    again = READERS[tool](one)
    for name in again:
        columns[name] = again[name] * 2
    columns["run"] = ["first"] * len(again["run"]) + ["second"] * len(again["run"])
    columns.item, columns.has_runs = again.item, True
    return columns


def test_unnamed_runs_can_be_arms_or_repeats(tmp_path):
    for name in ("a", "b"):
        shutil.copy(MADE / "promptfoo.json", tmp_path / f"{name}.json")
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    asked = [lb.Objective("score", margin=0.2, noise="bernoulli", if_failed=0)]
    with pytest.raises(lb.StudyError, match=r"'small' is in two runs, a and b: .* repeat=\"run\""):
        lb.judge(lb.read.promptfoo(files), asked)
    told = lb.read.promptfoo(files)
    first = [row for row, repeat in enumerate(told["repeat"]) if repeat == 0]
    once = {name: [column[row] for row in first] for name, column in told.items()}
    found = lb.judge(once, asked, repeat="run")
    assert found.means == lb.judge(lb.read.promptfoo(files[0]), asked).means
    of_one = [row for row in first if told["provider"][row] == "large"]
    table = {name: [column[row] for row in of_one] for name, column in told.items()}
    assert set(lb.judge(table, asked, arm="run").means) == {"a", "b"}


def test_benchmarks_of_two_runs_are_paired_by_test():
    columns = lb.read.pytest_benchmark(
        {"before": WHERE["pytest_benchmark"], "after": WHERE["pytest_benchmark"]}
    )
    assert columns.item == "item"
    assert set(columns["item"]) == {
        f"test_sort[{way}-{data}]" for way in ("builtin", "heap") for data in ("mixed", "sorted")
    }
    found = lb.judge(
        columns, [lb.Objective("seconds", "min", margin=0.1, noise=("bounded", 0, 1))], scope="items"
    )
    assert (set(found.means), found.items) == ({"before", "after"}, 4)


def test_plain_tables_are_runs_too(tmp_path):
    head = "id;score\n"
    (tmp_path / "old.csv").write_text(head + "".join(f"{k};0,{k}5\n" for k in range(9)))
    (tmp_path / "new.csv").write_text(head + "".join(f"{k};1,{k}5\n" for k in range(9)))
    words = [f"--run={name}={tmp_path / name}.csv" for name in ("old", "new")]
    done = invoked("judge", *words, "score max 0.1 bounded 0 2", "--scope", "items", "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert (found["arm"], list(found["means"])) == ("new", ["old", "new"])
    assert found["means"]["old"]["score"]["mean"] == pytest.approx(0.45)
    (tmp_path / "two.csv").write_text("model;id;score\n" + "a;1;0,5\nb;1;0,7\n")
    both = lb.read.table({"old": tmp_path / "two.csv", "new": tmp_path / "two.csv"})
    assert both["arm"] == ["old · a", "old · b", "new · a", "new · b"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--run", "a"), "--run is NAME=PATH"),
        (("--run", "a=x.json"), "'a' is the only run"),
        (
            ("--run", f"a={MADE / 'hyperfine.json'}", "--run", f"b={MADE / 'promptfoo.json'}"),
            "results of one tool",
        ),
        (("--run", "a=no.json", "--run", "b=no.json"), "no.json"),
    ],
)
def test_runs_that_are_none_are_refused(words, sentence):
    done = invoked("judge", "seconds min 1 exact", *words)
    assert done.exit_code == 2
    assert sentence in done.stderr


# --- what a log says of itself


RIGHT = ({"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}},)


def log(path, status="success", samples=RIGHT, **words):
    header = {"eval": {"model": "m", "task": "t", **words}, "status": status}
    with zipfile.ZipFile(path, "w") as parts:
        parts.writestr("header.json", json.dumps(header))
        parts.writestr("summaries.json", json.dumps(samples))
    return path


def test_failed_logs_are_named(tmp_path):
    logs = [log(tmp_path / f"{k}.eval", "error", ()) for k in range(3)]
    with pytest.raises(lb.StudyError, match=r"3 of 3 logs ended in an error and have no samples: 0\."):
        lb.read.inspect(logs)
    some = [log(tmp_path / "0.eval", "error", model="a"), log(tmp_path / "1.eval", model="b")]
    columns = lb.read.inspect(some)
    assert columns.notices == ({"code": "failed_logs", "failed": 1, "of": 2, "names": ["0.eval"]},)
    asked = [lb.Objective("s", margin=0.2, noise="bernoulli")]
    assert "1 of 2 logs ended in an error: 0.eval." in str(lb.judge(columns, asked, scope="items"))


def test_costs_are_summed_where_prices_were_set(tmp_path):
    def sample(*costs):
        usage = {str(k): {"total_tokens": 1, "total_cost": cost} for k, cost in enumerate(costs)}
        return [{"id": 1, "epoch": 1, "scores": {"s": {"value": 1}}, "model_usage": usage}]

    paths = [
        log(tmp_path / f"{k}.eval", samples=sample(*c)) for k, c in enumerate([(0.25, 0.5), (0.25, None), ()])
    ]
    assert lb.read.inspect(paths)["total_cost"] == [0.75, None, None]
    cost = [lb.Objective("total_cost", "min", margin=0.1, noise=("bounded", 0, 1))]
    with pytest.raises(lb.StudyError, match="has no values: the logs have no prices"):
        lb.judge(lb.read.inspect(WHERE["inspect"]), cost)


def test_grades_are_numbers(tmp_path):
    grades = [*"CPIN", 0.25, {"a": "P", "b": 3}]
    samples = [{"id": k, "epoch": 1, "scores": {"s": {"value": grade}}} for k, grade in enumerate(grades)]
    columns = lb.read.inspect(log(tmp_path / "0.eval", samples=samples))
    assert columns["s"] == [1.0, 0.5, 0.0, 0.0, 0.25, None]
    assert (columns["s.a"][-1], columns["s.b"][-1]) == (0.5, 3)


def test_tasks_that_do_not_measure_an_objective_are_left_out():
    found = lb.judge(MADE / "lm_eval", [lb.Objective("acc", margin=0.2, noise="bernoulli")])
    assert found.items == 6
    assert found.notices == ({"code": "tasks_left_out", "tasks": ["copies"], "objectives": ["acc"]},)
    assert "Left out, as they do not measure acc: copies." in str(found)
    both = [lb.Objective(name, margin=0.2, noise="bernoulli") for name in ("acc", "exact_match,word")]
    with pytest.raises(lb.StudyError, match="12 of 24 values of 'acc' are missing"):
        lb.judge(MADE / "lm_eval", both)


def test_a_task_that_failed_everywhere_is_not_left_out(tmp_path):
    wrong = [{"id": 1, "epoch": 1, "error": "out of tokens"}]
    paths = [
        log(tmp_path / f"{m}{t}.eval", model=m, task=t, **({"samples": wrong} if t == "u" else {}))
        for m in "ab"
        for t in "tu"
    ]
    columns = lb.read.inspect(paths)
    with pytest.raises(lb.StudyError, match="2 of 4 values of 's' are missing"):
        lb.judge(columns, [lb.Objective("s", margin=0.2, noise="bernoulli")])
