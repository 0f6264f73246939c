"""With the real tools, in an environment of their own (`make .venv-tools/.ready`) that sees ours too."""

import os
import subprocess
from pathlib import Path

import pytest

from support.consoles import in_console

ROOT = Path(__file__).parents[2]


@pytest.fixture
def tools():
    """A Python that has them."""
    own = ROOT / ".venv-tools" / "bin" / "python"
    found = str(own) if own.exists() else os.environ.get("LEXBANDITS_TOOLS")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no tools here: make .venv-tools/.ready")
        pytest.skip("no tools here: make .venv-tools/.ready")
    return found


def said_by(tools, folder, *words):
    paths = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests" / "read" / "made")))
    done = subprocess.run(
        [tools, *map(str, words)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


LOGS = """
import os, subprocess, sys
import lexbandits as lb
from quiz import LOGS

packed = lb.read.inspect(".")
os.makedirs("plain")
for log in LOGS:
    words = ["log", "convert", "--to", "json", "--output-dir", "plain", log.location]
    subprocess.run([sys.executable, "-m", "inspect_ai", *words], check=True, capture_output=True)

def rows(columns):
    # Logs of one second sort by the random part of their names: the order of the rows is left to chance.
    names = sorted(set(columns) - {"run"})
    return names, sorted(zip(*(columns[name] for name in names), strict=True), key=repr)

assert rows(lb.read.inspect(LOGS)) == rows(packed) == rows(lb.read.inspect("plain"))
assert len(packed["arm"]) == 24 == len(set(zip(packed["arm"], packed["item"], packed["repeat"])))
"""


@pytest.mark.slow
def test_logs_of_inspect_say_the_same_in_every_form(tools, tmp_path):
    said_by(tools, tmp_path, "-c", LOGS)


OPTUNA = """
import pickle, random
import lexbandits as lb, optuna

optuna.logging.disable_default_handler()

def score(trial, seed):
    x, kind = trial.suggest_float("x", -1, 1), trial.suggest_categorical("kind", ["plain", None])
    hard, luck = random.Random(seed).gauss(0, 0.3), random.Random(str((seed, x))).gauss(0, 0.02)
    return 1 - x * x - (kind is None) + hard + luck

by_chance = optuna.samplers.RandomSampler(seed=1)
tuned = optuna.create_study(direction="maximize", study_name="tuned", sampler=by_chance)
tuned.optimize(lambda trial: score(trial, trial.number), n_trials=60)
tuned.enqueue_trial(tuned.best_params)
tuned.optimize(lambda trial: score(trial, -trial.number), n_trials=1)
objectives = [lb.Objective("score", margin=0.2)]
study, measure = lb.from_optuna(tuned, score, objectives, top=5)
best = sorted(tuned.trials, key=lambda trial: -trial.value)
assert list(study.arms)[0] == f"trial {best[0].number}"
assert len({(arm["x"], arm.get("kind")) for arm in study.arms.values()}) == 5
assert study.status.results == 0
assert measure == pickle.loads(pickle.dumps(measure))
answer = study.run(measure, progress=False)
assert answer.certified
true = {name: 1 - arm["x"] ** 2 - ("kind" not in arm) for name, arm in study.arms.items()}
assert true[answer.arm] > max(true.values()) - 0.2
assert study.results()["mean"].max() < tuned.best_value - 0.2  # what was chosen for it

def two(trial):
    x = trial.suggest_float("x", 0, 1)
    return x, x * x + trial.number

by_chance = optuna.samplers.RandomSampler(seed=1)
pareto = optuna.create_study(directions=["maximize", "minimize"], study_name="pareto", sampler=by_chance)
pareto.optimize(two, n_trials=9)
objectives.append(lb.Objective("b", "minimize", margin=0.2))
study, measure = lb.from_optuna(pareto, two, objectives)
front = sorted(pareto.best_trials, key=lambda trial: -trial.values[0])
assert list(study.arms) == [f"trial {trial.number}" for trial in front[:8]]
x = front[0].params["x"]
assert measure(f"trial {front[0].number}", 3) == {"score": x, "b": x * x + 3}
try:
    lb.from_optuna(tuned, score, objectives, top=1)
except lb.StudyError as error:
    assert "at least 2" in str(error)
else:
    raise AssertionError
"""


def test_the_best_trials_of_optuna_are_measured_again(tools, tmp_path):
    said_by(tools, tmp_path, "-W", "ignore::FutureWarning", "-c", OPTUNA)


@pytest.mark.slow
def test_inspect_measures_for_a_study(tools, tmp_path):
    [(command, shown)] = in_console(ROOT / "examples" / "inspect" / "README.md")
    assert command == "python examples/inspect/choose.py"
    assert said_by(tools, tmp_path, ROOT / "examples" / "inspect" / "choose.py") == shown
