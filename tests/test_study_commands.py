"""Commands about one study have one shape; the budget can be changed."""

import json

import pytest
from typer.main import get_command

import lexbandits as lb
from lexbandits.cli.main import app
from lexbandits.cli.storage import shorten
from support.command import run

NOT_OF_ONE = ("create", "list")
OWN = ("delete", "forecast")  # a study, or what is none yet or no more: they open it themselves


@pytest.fixture
def budgeted(tmp_path):
    place = str(tmp_path / "s.db")
    study = lb.create_study(
        "s",
        place,
        arms=["a", "b"],
        objectives=[lb.Objective("x", margin=2, noise="gaussian")],
        budget=2,
        seed=0,
    )
    for trial in study.ask_many(2):
        study.tell(trial, {"x": float(len(trial.arm))})
    return place


def test_every_command_of_a_study_takes_its_name_a_storage_and_json():
    commands = get_command(app).commands["study"].commands
    assert len(commands) > 20
    for word, command in commands.items():
        takes = [parameter.name for parameter in command.params]
        assert {"storage", "as_json"} <= set(takes), word
        assert word in NOT_OF_ONE or takes[0] == "name", word
        if word not in (*NOT_OF_ONE, *OWN):
            assert takes[-2:] == ["storage", "as_json"], word
        assert command.help, word


def test_a_spent_study_goes_on_with_another_budget(budgeted):
    where = ("--storage", budgeted)
    run("study", "ask", "s", *where, code=3)
    assert run("study", "budget", "s", "3", *where).stdout == "budget: 3\n"
    assert "budget: 2 of 3 trials handed out" in run("study", "status", "s", *where).stdout
    run("study", "ask", "s", *where)
    run("study", "ask", "s", *where, code=3)
    assert json.loads(run("study", "budget", "s", "none", *where, "--json").stdout)["budget"] is None
    run("study", "ask", "s", *where)


@pytest.mark.parametrize("wrong", ["0", "many", "2.5", "None"])
def test_a_budget_is_a_number_of_trials_or_none(budgeted, wrong):
    done = run("study", "budget", "s", wrong, "--storage", budgeted, code=2)
    assert done.stderr.startswith("Error: ")
    assert wrong in done.stderr
    assert lb.open_study("s", budgeted).status.budget == 2


def test_a_storage_is_named_as_somebody_in_this_folder_would(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert shorten(str(tmp_path / "results" / "demo.db")) == "results/demo.db"
    assert shorten(str(tmp_path.parent / "demo.db")) == str(tmp_path.parent / "demo.db")
    assert shorten("postgresql://host/base") == "postgresql://host/base"
