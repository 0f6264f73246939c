"""`lexbandits judge`: exit codes for a gate in CI, JSON, Markdown, and how an objective is written."""

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import lexbandits as lb
from lexbandits.commands.judge import objective_of
from lexbandits.judging import verdict
from support.command import invoked

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
    assert first.startswith("fast_er is certified: the best choice at 95 % confidence.")
    assert "80 items · 2 arms · looked at once" in first + second
    assert judge(results, "--baseline", "slow|er").exit_code == 0
    assert judge(results, "--baseline", "fast_er").stdout.startswith("Keep fast_er: it is as good as any.")
    few = judge(results, "--delta", "1e-200")
    assert few.exit_code == 1
    assert few.stdout.startswith("No certificate: fast_er is the best guess.")
    assert judge(results, "--delta", "1e-200", "--baseline", "slow|er").exit_code == 1
    assert judge(results, "--named", "slow|er").exit_code == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("results.csv", "correct up 0.1 bernoulli"), "an objective is NAME max|min MARGIN"),
        (("nowhere.csv", *OBJECTIVES), "nowhere.csv"),
        (("nowhere.csv", "latency min 0.3 bounded 0"), "bounded takes 2 numbers"),
        (("nowhere.csv", "latency min x bounded 0 1"), "margin must be a number or a percentage"),
        (("nowhere.csv", *OBJECTIVES, "--looks", "twice"), "looks must be one of once, any"),
    ],
)
def test_a_mistake_in_the_question_is_2(words, message, tmp_path):
    done = invoked("judge", *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert json.loads(invoked("judge", *words, "--json").stdout)["error"]


def test_no_objective_at_all_is_2(results):
    assert invoked("judge", results).exit_code == 2


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
    assert text.startswith("### fast\\_er is certified: the best choice at 95 % confidence.")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len({len(re.split(r"(?<!\\)\|", row)) for row in rows[:4]}) == 1
    assert "<details><summary>Certificate</summary>" in text


def test_a_report_and_a_study_to_follow_it_up(results, tmp_path):
    page, words = tmp_path / "v.html", tmp_path / "next.toml"
    done = judge(results, "--delta", "1e-200", "--html", page, "--follow-up", words)
    assert done.exit_code == 1
    assert f"--follow-up {words}" not in done.stdout
    assert "No certificate" in page.read_text("utf-8")
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


def test_rows_without_items(results):
    assert judge(results, "--item", "").exit_code in (0, 1)


def test_an_objective_as_it_is_written():
    assert objective_of("time to answer min 0.3 s bounded 0 10 tie=0.2") == lb.Objective(
        "time to answer", "minimize", margin=0.3, tie=0.2, unit="s", noise=("bounded", 0, 10)
    )
    assert objective_of("refusals min - bernoulli at_most=0.1") == lb.Objective(
        "refusals", "minimize", noise="bernoulli", at_most=0.1
    )
    assert objective_of("latency min - bernoulli above=2 at_most=0.05").above == 2.0
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
    way = ("--arm", "way", "--item", "data", "--repeat", "repeat", "--about", "items")
    done = invoked(
        "judge",
        made / "pytest-benchmark.json",
        "seconds min 1e-5 bounded 0 1",
        "--from",
        "pytest_benchmark",
        *way,
    )
    assert done.exit_code == 0
    assert done.stdout.startswith("On these 2 items, as measured, builtin is the best choice.")
    assert invoked("judge", made, "seconds min 1 exact", "--from", "nothing").exit_code == 2
