"""The command line: what each command prints and writes, and how it says what is wrong."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import lexbandits as lb
from lexbandits.cli.main import app
from support.command import invoked

CELLS = """
horizon = 20
replications = 2
instances.mine.means = [[1, 0], [0, 1]]
policies.all.policy = "RoundRobin"
"""


def refused(said, *arguments):
    """One line that says what is wrong, and no traceback."""
    done = invoked(*arguments)
    assert (done.exit_code, type(done.exception)) == (2, SystemExit), done.output
    assert said in done.output
    assert done.output.count("Error: ") == 1


@pytest.fixture
def cells(tmp_path):
    path = tmp_path / "cells.toml"
    path.write_text(CELLS)
    return path


def test_python_m_is_the_command_and_says_the_version():
    done = subprocess.run(
        [sys.executable, "-m", "lexbandits", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"lexbandits {lb.__version__}\n"


@pytest.mark.parametrize(("backend", "module"), [("ray", "ray"), ("dask:tcp://localhost:1", "distributed")])
def test_a_backend_that_is_not_installed_names_its_extra(backend, module, cells, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    extra = f"lexbandits[{backend.partition(':')[0]}]"
    refused(extra, "simulate", cells, "--out", tmp_path / "out", "--backend", backend)


def test_dask_on_the_command_line_needs_an_address(cells):
    refused("dask:tcp://host:port", "simulate", cells, "--backend", "dask")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("bounds",), "name one instance"),
        (("bounds", "--paper", 15), "multiple of 10"),
        (("bounds", "--paper", 10, "--tradeoff", 1), "tradeoff"),
        (("bounds", "--paper", 10, "--delta", 2), "delta"),
        (
            ("bounds", "--paper", 10, "--tolerance", 0.1, "--tradeoff", 2),
            "leave --tradeoff and --figure out",
        ),
        (("bounds", "--paper", 10, "--resolution", 0.1), "--resolution goes with --tolerance"),
        (("bounds", "--paper", 10, "--tolerance", 0.1, "--tolerance", 0.2), "one number or 3"),
        (("bounds", "missing.toml"), "missing.toml"),
        (("simulate", "missing.toml"), "missing.toml"),
    ],
)
def test_what_is_wrong_is_reported(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    refused(said, *arguments)
    assert not list(tmp_path.iterdir())


def test_bounds_of_the_papers_instances(tmp_path):
    done = invoked("bounds", "--paper", 10, "--figure", tmp_path / "times.svg")
    assert done.exit_code == 0
    assert "any δ-correct algorithm needs 581 pulls" in done.output
    assert "out samples printed" in done.output
    assert (tmp_path / "times.svg").read_text().startswith("<svg")


def test_bounds_of_an_instance_in_a_file(tmp_path):
    file = tmp_path / "instance.toml"
    file.write_text("means = [[1, 0.5], [1, 1], [0, 2]]\nnoise_sd = 0.5\n")
    done = invoked("bounds", file, "--delta", 0.1)
    assert done.exit_code == 0
    assert "lex-optimal arm 1, λ = 1, δ = 0.1" in done.output
    file.write_text("means = [[1, 0.5], [1, 1]]\nnoise_ds = 0.5\n")
    refused("did you mean 'noise_sd'?", "bounds", file)


def test_bounds_with_tolerances_are_those_of_an_acceptable_arm(tmp_path):
    file = tmp_path / "coins.toml"
    file.write_text('means = [[0.71, 0.1], [0.84, 0.9], [0.86, 0.4]]\nnoise = "bernoulli"\n')
    done = invoked("bounds", file, "--tolerance", 0.03, "--tolerance", 0.1, "--delta", 0.05)
    assert done.exit_code == 0
    told = " ".join(done.output.split())
    assert "tolerance [0.03, 0.1], resolution [0.03, 0.1], δ = 0.05" in told
    time = lb.tolerance_time(
        lb.Instance([[0.71, 0.1], [0.84, 0.9], [0.86, 0.4]], noise="bernoulli"), [0.03, 0.1]
    )
    assert f"in [{time.low:,.2f}, {time.high:,.2f}], for Gaussian noise with these variances" in told
    assert f"needs {time.least_pulls(0.05):,.0f} pulls on average" in told
    assert len([line for line in done.output.splitlines() if "True" in line]) == 1
    regret = lb.tolerance_regret(
        lb.Instance([[0.71, 0.1], [0.84, 0.9], [0.86, 0.4]], noise="bernoulli"), [0.03, 0.1]
    )
    assert f"·log T = {int(regret.low * math.log(10_000)):,} of them" in told


def test_bounds_of_regret_are_rounded_towards_safety(tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    constants = lb.regret_constants(lb.paper_instance(10))
    done = invoked("bounds", "--paper", 10, "--horizon", 1000)
    assert done.exit_code == 0
    assert "low·log 1,000" in done.output
    told = done.output.split("regret per nat")[1].split("per arm")[0]
    rows = [[float(cell) for cell in line.split("│")[1:-1]] for line in told.splitlines() if "│" in line]
    for i, (objective, low, high, over, until, separable) in enumerate(rows):
        assert objective == i
        assert constants.low[i] - 0.001 < low <= constants.low[i]
        assert constants.high[i] <= high < constants.high[i] + 0.001
        assert constants.over(1000)[i] - 0.001 < over <= constants.over(1000)[i]
        assert constants.until_certified(0.01)[i] - 0.001 < until <= constants.until_certified(0.01)[i]
        assert separable == pytest.approx(constants.separable[i], abs=0.00051)
    assert len(rows) == 3
    assert "nan" not in told
    file = tmp_path / "tied.toml"
    file.write_text("means = [[0, 0, 0], [0, -1, 2], [-0.2, -2.3, -2.3]]\n")
    assert "nan: more pulls of arms that tie" in invoked("bounds", file).output


def commands(group, *words):
    """(words, command) of all commands."""
    for name, each in group.commands.items():
        if hasattr(each, "commands"):
            yield from commands(each, *words, name)
        else:
            yield (*words, name), each


def test_help_shows_the_brackets_of_every_command(monkeypatch):
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TERMINAL_WIDTH", "400")
    bracketed = 0
    for words, each in commands(typer.main.get_command(app)):
        shown = invoked(*words, "--help").stdout
        told = [each.help, *(getattr(parameter, "help", None) for parameter in each.params)]
        for text in filter(None, told):
            for bracket in re.findall(r"\[+[^\[\]]+\]+", text.replace("\\", "")):
                bracketed += 1
                assert bracket in shown, (words, bracket)
        assert "\\" not in shown, words
    assert bracketed >= 10
    shown = invoked("run", "--help").stdout
    assert "A TOML file: [study], [[objectives]], [[arms]]." in shown
    assert "an exit code other than 0 is a failed trial. Exit code 0 if" in shown, "lines are joined"


def test_completion_is_installed_and_completes(tmp_path):
    bin = Path(sys.executable).parent
    env = {**os.environ, "HOME": str(tmp_path), "PATH": f"{bin}:{os.environ['PATH']}"}
    env["_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION"] = "1"
    said = {"capture_output": True, "text": True, "env": env}
    done = subprocess.run([bin / "lexbandits", "--install-completion", "bash"], **said)
    assert done.returncode == 0, done.stderr
    pressed = "COMP_WORDS=(lexbandits study co) COMP_CWORD=2; _lexbandits_completion lexbandits"
    done = subprocess.run(
        ["bash", "-c", f"source ~/.bash_completions/lexbandits.sh; {pressed}; echo ${{COMPREPLY[@]}}"], **said
    )
    assert done.stdout.split() == ["correct"], done.stderr


BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.mark.parametrize("name", sorted(path.stem for path in BENCHMARKS.glob("*.py")))
def test_a_benchmark_explains_itself_instead_of_starting(name):
    script = BENCHMARKS / f"{name}.py"
    done = subprocess.run(
        [sys.executable, script, "--help"],
        capture_output=True,
        text=True,
        timeout=240,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, done.stderr
    first = script.read_text().splitlines()[0].strip('"')
    assert first in done.stdout
