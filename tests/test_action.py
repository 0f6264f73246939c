"""action.yml: its steps, run in a shell against a stub of the runner's files and of `gh`."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

ROOT = Path(__file__).parent.parent
ACTION = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
ASKED = {"baseline": "old one", "candidate": "$(new)", "objectives": "right max 0.1 bernoulli\n\n"}
GH = """#!/usr/bin/env bash
printf '%s\\n' "$*" >> "$RECORD"
for word in "$@"; do case "$word" in body=@*) cat "${word#body=@}" > "$RECORD.body" ;; esac; done
filter="" last=""
for word in "$@"; do [ "$last" != --jq ] || filter="$word"; last="$word"; done
case "$*" in
  *graphql*) echo "action[bot]" ;;
  *--paginate*) [ -z "$KNOWN" ] || printf '%s' "$KNOWN" | jq -r "$filter" ;;
esac
[ -z "$FORBIDDEN" ]
"""


class Runner:
    """A folder with what a runner offers, and commands that record how they are called."""

    def __init__(self, folder, rates=(0.8, 0.8)):
        self.folder, self.outputs = folder, {}
        commands = folder / "bin"
        commands.mkdir()
        source = ROOT / "src"
        own = f'#!/usr/bin/env bash\nPYTHONPATH="{source}" exec "{sys.executable}" -m lexbandits "$@"\n'
        pip = (
            f'#!/usr/bin/env bash\n[ "$1" = -m ] && echo "$*" >> "$RECORD" || exec "{sys.executable}" "$@"\n'
        )
        for name, script in {"lexbandits": own, "gh": GH, "python": pip}.items():
            (commands / name).write_text(script, "utf-8")
            (commands / name).chmod(0o755)
        (folder / "event.json").write_text(json.dumps({"pull_request": {"number": 7}}))
        self.environment = os.environ | {
            "PATH": f"{commands}:{os.environ['PATH']}",
            "GITHUB_STEP_SUMMARY": str(folder / "summary.md"),
            "GITHUB_OUTPUT": str(folder / "output"),
            "GITHUB_EVENT_PATH": str(folder / "event.json"),
            "GITHUB_REPOSITORY": "us/it",
            "GITHUB_ACTION_PATH": "/the action",
            "RUNNER_TEMP": str(folder),
            "RECORD": str(folder / "record"),
            "KNOWN": "",
            "FORBIDDEN": "",
        }
        luck = np.random.default_rng(0).random(300)
        rows = [
            f"{arm},{n},{int(luck[n] < rate)}"
            for arm, rate in zip(("old one", "$(new)"), rates, strict=True)
            for n in range(300)
        ]
        (folder / "it's results.csv").write_text("\n".join(["arm,item,right", *rows]))

    def run(self, name, inputs=(), **environment):
        """Run a step with its environment filled in."""
        defaults = {key: str(each.get("default", "")) for key, each in ACTION["inputs"].items()}
        inputs = {**defaults, **ASKED, "files": "it's results.csv", **dict(inputs)}

        def filled(match):
            word = match[1]
            if word.startswith("inputs."):
                return inputs[word.removeprefix("inputs.")]
            assert word.startswith("steps.judge.outputs."), word
            return self.outputs[word.removeprefix("steps.judge.outputs.")]

        step = STEPS[name]
        words = {
            key: re.sub(r"\$\{\{ ([\w.-]+) \}\}", filled, value) for key, value in step.get("env", {}).items()
        }
        assert "${{" not in step["run"], "what people write never becomes a script"
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
            env=self.environment | words | environment, cwd=self.folder, capture_output=True, text=True,
        )  # fmt: skip
        if name == "Judge":
            lines = (self.folder / "output").read_text("utf-8").splitlines()
            self.outputs = dict(line.split("=", 1) for line in lines)
        return done

    def read(self, name):
        return (self.folder / name).read_text("utf-8")


@pytest.mark.parametrize(
    ("rates", "code", "outcome", "head"),
    [
        ((0.8, 0.8), 0, "ship", "### Ship"),
        ((0.8, 0.71), 1, "not_shown", "### Not shown yet"),
        ((0.8, 0.5), 7, "regression", "### Regression"),
    ],
)
def test_each_outcome_is_told_and_returned(rates, code, outcome, head, tmp_path):
    runner = Runner(tmp_path, rates)
    done = runner.run("Judge")
    assert done.returncode == 0, done.stderr
    assert (runner.outputs["outcome"], runner.outputs["exit-code"]) == (outcome, str(code))
    assert runner.read("summary.md") == Path(runner.outputs["report"]).read_text("utf-8")
    first = runner.read("summary.md").splitlines()[0]
    assert first.startswith(head)
    assert "(new)" in first
    assert runner.run("Result").returncode == code


def test_a_mistake_in_the_question_is_an_error_that_is_shown(tmp_path):
    runner = Runner(tmp_path)
    runner.run("Judge", {"objectives": "wrong max 0.1 bernoulli"})
    assert (runner.outputs["outcome"], runner.outputs["exit-code"]) == ("error", "2")
    assert "'wrong'" in runner.read("summary.md")
    assert runner.run("Result").returncode == 2


ODD_NAMES = [
    "$(touch pwned)", "`touch pwned`", "a'; touch pwned; '", 'a"; touch pwned; "', "${IFS}", "--html=pwned",
    "-", "--", "a=b", "a\\nb", "::set-output name=outcome::ship", "##[set-output name=outcome]ship",
    "@org/team", "%0Aoutcome=ship",
]  # fmt: skip


@pytest.mark.parametrize("name", [*ODD_NAMES, "two\noutcome=ship"])
def test_a_name_is_a_name_and_nothing_more(tmp_path, name):
    """Of an arm, in the table and in the inputs: no command of a shell, of the runner or of GitHub."""
    runner = Runner(tmp_path, (0.8, 0.5))
    table = tmp_path / "it's results.csv"
    lines = (line.split(",") for line in table.read_text("utf-8").splitlines())
    with table.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([name if cell == "$(new)" else cell for cell in line] for line in lines)
    before = {path.name for path in tmp_path.iterdir()}
    done = runner.run("Judge", {"candidate": name})
    assert runner.outputs.keys() == {"outcome", "exit-code", "report"}, "no line of its own"
    assert runner.outputs["outcome"] == "regression", done.stderr
    assert runner.run("Comment").returncode == 0
    made = {path.name for path in tmp_path.iterdir()} - before
    assert {file for file in made if not file.startswith("gate.")} <= {
        "output",
        "summary.md",
        "record",
        "record.body",
    }
    for shown in (runner.read("summary.md"), runner.read("record.body")):
        assert "@org" not in shown
    runner.run("Judge", {"candidate": name, "objectives": f"{name} max 0.1 bernoulli"})
    assert runner.outputs["outcome"] == "error"


def test_the_runner_obeys_no_message(tmp_path):
    runner = Runner(tmp_path)
    done = runner.run("Judge", {"objectives": "::error::x max 0.1 bernoulli"})
    first, *told, last = done.stderr.splitlines()
    quote = first.removeprefix("::stop-commands::")
    assert quote.isdecimal()
    assert last == f"::{quote}::"
    assert any("::error::x" in line for line in told)


def test_options_and_runs_are_words_of_their_own(tmp_path):
    runner = Runner(tmp_path)
    for name in ("old one", "$(new)"):
        lines = runner.read("it's results.csv").splitlines()
        (tmp_path / f"{name}.csv").write_text(
            "\n".join([lines[0], *(x for x in lines if x.startswith(name))])
        )
    runs = "old one=old one.csv\n$(new)=$(new).csv\n"
    done = runner.run("Judge", {"files": "", "runs": runs, "options": "--scope\nitems\n"})
    assert runner.outputs["outcome"] == "ship", done.stderr
    assert "on these items it is" in runner.read("summary.md")


def test_one_comment_is_kept_up_to_date(tmp_path):
    runner = Runner(tmp_path)
    runner.run("Judge")
    assert runner.run("Comment").returncode == 0
    assert "--method POST repos/us/it/issues/7/comments" in runner.read("record")
    marker, head = runner.read("record.body").splitlines()[:2]
    assert re.fullmatch("<!-- lexbandits gate [0-9a-f]{16} -->", marker)
    assert marker in runner.read("record"), "by which it is found"
    assert head.startswith("### Ship")
    assert "--method PATCH" not in runner.read("record")
    runner.run("Comment", {"candidate": "another"})
    assert runner.read("record.body").splitlines()[0] != marker
    assert "pull_request" in STEPS["Comment"]["if"]


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq, as `gh` has it inside")
def test_only_comments_of_its_own_are_edited(tmp_path):
    """Anybody may begin a comment with the marker, and a token with write access could edit it."""
    runner = Runner(tmp_path)
    runner.run("Judge")
    runner.run("Comment")
    body = runner.read("record.body")
    comments = [
        {"id": 40, "user": None, "body": body},
        {"id": 41, "user": {"login": "somebody"}, "body": body},
        {"id": 42, "user": {"login": "action[bot]"}, "body": f"as said: {body}"},
        {"id": 43, "user": {"login": "action[bot]"}, "body": body},
    ]
    runner.run("Comment", KNOWN=json.dumps(comments[:3]))
    assert "--method PATCH" not in runner.read("record")
    runner.run("Comment", KNOWN=json.dumps(comments))
    edited = [line.split()[3] for line in runner.read("record").splitlines() if "--method PATCH" in line]
    assert edited == ["repos/us/it/issues/comments/43"]


def test_a_comment_that_is_forbidden_is_a_warning(tmp_path):
    runner = Runner(tmp_path)
    runner.run("Judge")
    done = runner.run("Comment", FORBIDDEN="1")
    assert done.returncode == 0
    assert "::warning::" in done.stdout


def test_it_installs_itself_or_a_version(tmp_path):
    runner = Runner(tmp_path)
    assert runner.run("Install").returncode == 0
    assert runner.run("Install", {"version": "1.2.3"}).returncode == 0
    assert runner.read("record").splitlines() == [
        "-m pip install --quiet /the action",
        "-m pip install --quiet lexbandits==1.2.3",
    ]


def test_the_result_comes_last_and_outputs_are_those_of_the_step():
    assert list(STEPS) == ["Install", "Judge", "Comment", "Result"]
    assert all(step["shell"] == "bash" for step in STEPS.values())
    assert set(ACTION["outputs"]) == {"outcome", "exit-code", "report"}
