"""`lexbandits judge`: exit codes for a gate in CI, JSON, Markdown, and how an objective is written."""

import json
import os
import random
import re
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.cli.judge import objective_of
from lexbandits.judging import verdict
from support.command import invoked, process

OBJECTIVES = ("correct max 0.1 bernoulli", "latency min 0.3 s bounded 0 4")


@pytest.fixture
def results(tmp_path):
    rng, n, path = np.random.default_rng(0), 80, tmp_path / "results.csv"
    luck = rng.random(n)
    table = {
        "model": np.repeat(["slow|er", "fast_er"], n),
        "id": [*range(n)] * 2,
        "correct": np.tile(luck < 0.8, 2).astype(int),
        "latency": np.r_[rng.uniform(1, 3, n), rng.uniform(0, 1, n)],
    }
    pd.DataFrame(table).to_csv(path, index=False)
    return path


def judge(results, *words, objectives=OBJECTIVES):
    return invoked("judge", results, *objectives, "--arm", "model", "--item", "id", *words)


def test_exit_codes(results):
    done = judge(results)
    assert done.exit_code == 0
    first, second = done.stdout.splitlines()[:2]
    assert first.startswith("fast_er wins: certified at 95 % confidence.")
    assert "2 arms, 80 items" in first + second
    assert judge(results, "--baseline", "slow|er").exit_code == 0
    kept = judge(results, "--baseline", "fast_er")
    assert kept.exit_code == 1
    assert kept.stdout.startswith("Keep fast_er: certified as good a choice as any, at 95 % confidence.")
    few = judge(results, "--delta", "1e-200")
    assert few.exit_code == 1
    assert few.stdout.startswith("Not decided yet: fast_er is ahead")
    assert judge(results, "--delta", "1e-200", "--baseline", "slow|er").exit_code == 1
    assert judge(results, "--candidate", "slow|er").exit_code == 1
    assert judge(results, "--candidate", "fast_er").exit_code == 0


def gate(results, old, new, *words):
    return judge(results, "--baseline", old, "--candidate", new, *words)


def test_exit_codes_of_a_gate(results, tmp_path):
    shipped = gate(results, "slow|er", "fast_er")
    assert shipped.exit_code == 0
    assert shipped.stdout.startswith(
        "Ship fast_er: certified not worse than slow|er on correct (margin 10 points)"
    )
    assert gate(results, "slow|er", "fast_er", "--gate", "switch").exit_code == 0
    later = tmp_path / "later.toml"
    worse = gate(results, "fast_er", "slow|er", "--json", "--follow-up", later)
    assert worse.exit_code == 7
    assert json.loads(worse.stdout)["gate"]["outcome"] == "regression"
    assert not later.exists(), "nothing is open"
    unclear = gate(results, "slow|er", "fast_er", "--delta", "1e-200", "--follow-up", later)
    assert unclear.exit_code == 1
    assert unclear.stdout.startswith("Not shown yet: ")
    assert 'baseline = "slow|er"' in later.read_text("utf-8")
    for words in (("--gate", "best"), ("--missing", "so")):
        assert gate(results, "slow|er", "fast_er", *words).exit_code == 2
    alone = judge(results, "--baseline", "fast_er", "--gate", "switch")
    assert alone.exit_code == 2
    assert "--gate switch needs --baseline and --candidate" in alone.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("results.csv", "correct up 0.1 bernoulli"), "an objective is NAME max|min [MARGIN"),
        (("nowhere.csv", *OBJECTIVES), "nowhere.csv"),
        (("nowhere.csv", "latency min 0.3 bounded 0"), "bounded takes 2 numbers"),
        (("nowhere.csv", "latency min x bounded 0 1"), "margin must be a number or a percentage"),
        (("nowhere.csv", *OBJECTIVES, "--scope", "twice"), "scope must be one of items, population"),
        (("nowhere.csv", "correct max bernoulli"), "margin"),
    ],
)
def test_a_mistake_in_the_question_is_2(words, message, tmp_path):
    done = invoked("judge", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(invoked("judge", *words, "--json").stdout)["error"]


@pytest.mark.parametrize(
    ("head", "words", "message"),
    [
        ("who,item,x\na,1,1\nb,1,2\n", (), "which names the arms; there are who, item, x. Say --arm\n"),
        ("arm,x\na,1\nb,2\n", (), 'Say --item, or --item "" if nothing pairs the rows\n'),
        ("arm,item,x\na,1,1\nb,1,\nb,2,3\n", (), "say --missing drop (you vouch"),
        ("arm,item,x\na,1,1\nb,1,\nb,2,3\n", (), "or bounded LOW HIGH, which takes --missing worst"),
        ("arm,item,x\na,1,1\na,1,2\n", (), "2 rows of 'a': say --repeat, the column"),
        ("model,prompt,item,x\na,c,1,1\na,d,1,2\nb,c,1,3\n", (), "say which, such as --arm model\n"),
        ("arm,item,x\n", ("y max 5% symmetric",), "say gaussian or bounded LOW HIGH, or give the margin"),
        ("arm,item,x\na,1,1\nb,1,2\n", ("--max-cluster", "3"), "--max-cluster goes with --cluster\n"),
    ],
)
def test_a_mistake_is_said_in_the_words_of_the_command_line(head, words, message, tmp_path):
    (tmp_path / "table.csv").write_text(head)
    done = invoked("judge", tmp_path / "table.csv", "x max 1", *words)
    assert done.exit_code == 2
    assert message in done.stderr


def test_no_objective_at_all_is_2(results):
    assert invoked("judge", results).exit_code == 2


def test_a_reader_that_has_gone_changes_no_exit_code(results):
    """`lexbandits judge … | head` in a shell with pipefail."""
    words = ["judge", results, *OBJECTIVES, "--baseline", "fast_er", "--candidate", "slow|er"]
    for more in ([], ["--json"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = process(*words, *more, capture_output=False, stdout=writer, stderr=subprocess.PIPE)
        os.close(writer)
        assert (done.returncode, done.stderr) == (7, "")


def test_an_error_of_ours_is_70(results, monkeypatch):
    def fails(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr(verdict, "judge", fails)
    done = judge(results)
    assert done.exit_code == 70
    assert "ZeroDivisionError" in done.stderr


def test_json_and_markdown(results):
    document = json.loads(judge(results, "--json").stdout)
    assert (document["arm"], document["certified"]) == ("fast_er", True)
    assert document["objectives"][1]["unit"] == "s"
    text = judge(results, "--markdown").stdout
    assert text.startswith("### fast\\_er wins: certified at 95 % confidence.")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.split(r"(?<!\\)\|", row)) for row in rows[:4]}) == 1
    assert "<details><summary>Certificate</summary>" in text


def test_a_report_and_a_study_to_follow_it_up(results, tmp_path):
    page, words = tmp_path / "v.html", tmp_path / "next.toml"
    done = judge(results, "--delta", "1e-200", "--html", page, "--follow-up", words)
    assert done.exit_code == 1
    assert f"--follow-up {words}" not in done.stdout
    assert "Not decided yet" in page.read_text("utf-8")
    made = invoked("study", "create", words, "--storage", tmp_path / "s.db")
    assert made.exit_code == 0, made.output
    study = lb.open_study("next", f"sqlite:///{tmp_path / 's.db'}")
    assert [objective.name for objective in study.objectives] == ["correct", "latency"]
    assert (study.status.candidates, study.spec["delta"]) == (("slow|er", "fast_er"), 1e-200)
    certain = judge(results, "--follow-up", tmp_path / "none.toml")
    assert certain.exit_code == 0
    assert "nothing is open" in certain.stderr
    assert not (tmp_path / "none.toml").exists()


def test_what_a_study_that_follows_keeps_and_refuses(results, tmp_path):
    words = tmp_path / "next.toml"
    way = ("--delta", "1e-200", "--follow-up", words)
    done = judge(results, *way, "--baseline", "fast_er", "--missing", "worst")
    assert done.exit_code == 1
    made = invoked("study", "create", words, "--storage", tmp_path / "s.db")
    assert made.exit_code == 0, made.output
    study = lb.open_study("next", f"sqlite:///{tmp_path / 's.db'}")
    assert study.spec["baseline"] == "fast_er"
    assert study.objectives[0].if_missing == "worst"
    words.unlink()
    refused = judge(results, *way, "--cluster", "id", "--max-cluster", "1")
    assert refused.exit_code == 2
    assert "knows no clusters" in refused.stderr
    assert not words.exists()


@pytest.mark.parametrize(
    ("name", "objectives", "words", "sentence"),
    [
        ("x" * 201, OBJECTIVES, (), "the name of a study must be 1 to 200 printable characters"),
        ("a\tb", OBJECTIVES, (), "the name of a study must be 1 to 200 printable characters"),
        ("next", ("latency min 0.3 s gaussian quantile=0.9",), (), "a study takes no quantile"),
        ("next", OBJECTIVES, ("--cluster", "id", "--max-cluster", "1"), "knows no clusters"),
        ("next", ("tried max 0 bernoulli",), ("--scope", "items", "--missing", "worst"), "margin"),
    ],
)
def test_what_create_would_refuse_is_refused_before_anything_is_written(
    results, tmp_path, name, objectives, words, sentence
):
    table = pd.read_csv(results)
    table["tried"] = table.correct.where(table.index % 80 > 5)
    table.to_csv(results, index=False)
    kept, page = tmp_path / f"{name}.toml", tmp_path / "v.html"
    if len(kept.name) < 200:
        kept.write_text("as it was")
    there = {path.name for path in tmp_path.iterdir()}
    way = ("--delta", "1e-200", "--html", page, "--follow-up", kept)
    done = judge(results, *way, *words, objectives=objectives)
    assert done.exit_code == 2, done.output
    assert sentence in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == there
    assert len(kept.name) >= 200 or kept.read_text() == "as it was"


ODD_NAMES = ("a b", 'say "hi"', "it's", "back\\slash", "ünï", "日本", "#", "[x]", "=", "1", "true", "nan")
ODD_NAMES += (
    "{arm}",
    "<b>",
    "$HOME",
    "a.b",
    "a,b",
    " a",
    "🙂",
    "x" * 200,
    "x" * 201,
    "\t",
    "a\u202eb",
    "\x7f",
)
ODD_QUESTIONS = (
    "{} max 0.1 bernoulli",
    "{} max 1e-9 bernoulli tie=0",
    "{} max 5% bernoulli reference=best",
    "{} max 5% gaussian reference=2",
    "{} max 0.1 kg/m² bounded -5 1e99",
    "{} max 0.1 ° sub_gaussian 3",
    "{} max 0.1 finite_variance",
    "{} max - bernoulli at_least=0.8 slack=0.05",
    "{} max 0.1 bernoulli if_missing=worst",
    "{} max 0.1 bernoulli if_failed=0",
)


def test_whatever_is_written_makes_a_study_of_the_same_question(tmp_path):
    """Of odd names, units and numbers: `study create` takes the file, or there is none."""
    luck, made, refused = random.Random(4), 0, 0
    for number in range(60):
        arms, column = luck.sample(ODD_NAMES, 2), luck.choice(ODD_NAMES[:6])
        question = luck.choice(ODD_QUESTIONS).format(column)
        values = [luck.randint(0, 1) for _ in range(40)]
        table, words = tmp_path / f"{number}.jsonl", tmp_path / f"{number}.toml"
        rows = [
            {"arm": arm, "item": at // 2, column: value}
            for at, (arm, value) in enumerate(zip(arms * 20, values, strict=True))
        ]
        table.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        done = invoked("judge", table, question, "--delta", "1e-9", "--follow-up", words)
        assert "Traceback" not in done.stderr
        assert words.exists() == (done.exit_code == 1), (question, arms, done.output)
        if done.exit_code != 1:
            refused += 1
            continue
        created = invoked("study", "create", words, "--storage", tmp_path / f"{number}.db")
        assert created.exit_code == 0, (question, arms, created.output)
        study = lb.open_study(str(number), f"sqlite:///{tmp_path / f'{number}.db'}")
        assert (study.spec["delta"], set(study.arms)) == (1e-9, set(arms))
        expected = objective_of(question)
        if expected.reference != "best":
            assert study.objectives == (expected,)
        study.close()
        made += 1
    assert min(made, refused) >= 10, (made, refused)


def test_rows_without_items(results):
    assert judge(results, "--item", "").exit_code in (0, 1)


def test_an_objective_as_it_is_written():
    assert objective_of("time to answer min 0.3 s bounded 0 10 tie=0.2") == lb.Objective(
        "time to answer", "minimize", margin=0.3, tie=0.2, unit="s", noise=("bounded", 0, 10)
    )
    assert objective_of("refusals min - bernoulli at_most=0.1") == lb.Objective(
        "refusals", "minimize", noise="bernoulli", at_most=0.1
    )
    assert objective_of("latency min above=2 at_most=0.05 bernoulli").above == 2.0
    assert objective_of("correct max at_least=0.9").at_least == 0.9
    assert objective_of("size min exact").margin_in_unit == 0.0
    assert objective_of("x max 5% gaussian reference=2").margin_in_unit == pytest.approx(0.1)
    with pytest.raises(lb.StudyError, match="an objective has no 'atmost'"):
        objective_of("x max 5 gaussian atmost=2")


def test_what_other_tools_wrote():
    made = Path(__file__).parents[1] / "read" / "made"
    done = invoked(
        "judge", made / "quiz-1.eval", "match max 0.1 bernoulli", "--from", "inspect", "--repeat", "repeat"
    )
    assert done.exit_code == 0
    assert done.stdout.startswith("mockllm/large is the only arm.")
    way = ("--arm", "way", "--item", "data", "--repeat", "repeat", "--scope", "items")
    done = invoked(
        "judge",
        made / "pytest-benchmark.json",
        "seconds min 1e-5 bounded 0 1",
        "--from",
        "pytest_benchmark",
        *way,
    )
    assert done.exit_code == 0
    assert done.stdout.startswith("builtin wins on these 2 items, as measured.")
    assert invoked("judge", made, "seconds min 1 exact", "--from", "nothing").exit_code == 2
