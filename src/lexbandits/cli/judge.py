"""`lexbandits judge results.csv "correct max 0.03 bernoulli" …`: the verdict of a table."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lexbandits.cli.terminal import REGRESSION, UNCERTIFIED, AsJson, print_json, say_line
from lexbandits.evidence.kinds import NoiseKind
from lexbandits.outcomes import BaselineDecision
from lexbandits.study.errors import StudyError
from lexbandits.study.objective import AUTO, DIRECTIONS, Objective, near_kind

Source = Literal["inspect", "lm_eval", "promptfoo", "pytest_benchmark", "hyperfine", "table"]  # of read.py
NUMBERS_OF: dict[str, int] = {AUTO: 0, **{kind: kind.traits.n_numbers for kind in NoiseKind}}
SHAPE = "NAME max|min [MARGIN [UNIT]] [KIND [LOW HIGH]] [key=value …]"
LONG = 5.0  # seconds that a table may take without a word before
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


def objective_of(text: str) -> Objective:
    """An objective as it is written on the command line.

    >>> objective_of("latency min 0.2 s bounded 0 10").noise
    ('bounded', 0.0, 10.0)
    >>> objective_of("latency min 0.2 s").noise
    'symmetric'
    >>> objective_of("refusals min bernoulli at_most=0.1").at_most
    0.1
    """
    words = text.split()
    start = next((at for at, word in enumerate(words) if word in DIRECTIONS and at > 0), 0)
    keys = [word.partition("=") for word in words if "=" in word]
    rest = [word for word in words[start + 1 :] if "=" not in word]
    if start and (not rest or rest[0] in NUMBERS_OF):  # a limit has no margin, and what is exact needs none
        rest = ["-", *rest]
    kind = next((at for at, word in enumerate(rest) if word in NUMBERS_OF), -1)
    odd = rest[1:kind] if kind > 0 else rest[1:]  # a unit, at most: never a misspelt kind
    near = next(((word, known) for word in odd if (known := near_kind(word))), None)
    if start and near:
        raise StudyError(f"there is no kind of noise {near[0]!r} in {text!r}: did you mean {near[1]!r}?")
    if kind < 0 and len(rest) in (1, 2):  # it is left out, and the column says
        rest, kind = [*rest, AUTO], len(rest)
    if not start or kind not in (1, 2):
        raise StudyError(f"an objective is {SHAPE}, such as 'latency min 0.2 s bounded 0 10'; got {text!r}")
    numbers = rest[kind + 1 :]
    if len(numbers) != NUMBERS_OF[rest[kind]]:
        raise StudyError(f"{rest[kind]} takes {NUMBERS_OF[rest[kind]]} numbers, got {text!r}")
    said: dict[str, Any] = {key: _number(word) for key, _, word in keys}
    if rest[0] != "-":
        said["margin"] = _number(rest[0])
    if kind == 2:
        said["unit"] = rest[1]
    noise = (rest[kind], *map(_number, numbers)) if numbers else rest[kind]
    return Objective.from_json(
        {"name": " ".join(words[:start]), "direction": DIRECTIONS[words[start]], "noise": noise, **said}
    )


SETTING = re.compile(
    r'\b(arm|item|repeat|cluster|max_cluster|scope|missing|baseline|candidate|gate)=("?)([^"\s,:;]*)\2'
)
BOUNDS = re.compile(r'noise=\("bounded", ([\d.]+), ([\d.]+)\)')
IN_OPTIONS = {  # what errors name in Python's words -> on the command line
    '{"before": …, "after": …}': "--run before=… --run after=…",
    "item=None": '--item ""',
    "if_failed= of the objective, what a missing value is worth": (
        "end the objective with if_failed=VALUE, what a missing value is worth"
    ),
    "sequential=True": "--sequential",
    "tool=": "--from",
    'noise=("bounded", low, high)': "bounded LOW HIGH",
    'noise="gaussian"': "gaussian",
    '("bounded", low, high)': "bounded LOW HIGH",
}


def _in_options(text: str) -> str:
    """Name settings as the command line does.

    >>> _in_options('say missing="drop", repeat= or item=None')
    'say --missing drop, --repeat or --item ""'
    >>> _in_options('say noise=("bounded", 0, 10), with the largest')
    'say bounded 0 10, with the largest'
    """
    for name, words in IN_OPTIONS.items():
        text = text.replace(name, words)
    text = BOUNDS.sub(r"bounded \1 \2", text)
    return SETTING.sub(lambda found: f"--{found[1].replace('_', '-')} {found[3]}".strip(), text)


def _number(word: str) -> Any:
    return float(word) if NUMBER.fullmatch(word) else word


def _say_work(comparisons: int, seconds: float) -> None:
    if seconds >= LONG:  # how long it takes depends on the values, by a factor of ten
        time = "up to a minute" if seconds <= 60 else "minutes"
        say_line(f"{comparisons:,} comparisons, which may take {time}", err=True)


def _where(runs: list[str], words: list[str]) -> tuple[Any, list[str]]:
    """Tell files from objectives: the first word is a file unless runs are named, and others that exist."""
    if runs:
        named: dict[str, list[str]] = {}
        for text in runs:
            name, mark, path = text.partition("=")
            if not (name and mark and path):
                raise StudyError(f"--run is NAME=PATH, such as --run before=results.json, got {text!r}")
            named.setdefault(name, []).append(path)
        if len(named) < 2:
            raise StudyError(f"{next(iter(named))!r} is the only run: name a second one to compare it with")
        return named, words
    count = next((at for at, word in enumerate(words[1:], 1) if not Path(word).exists()), len(words))
    return (words[0] if count == 1 else words[:count]), words[count:]


def judge(
    table: Annotated[
        str,
        typer.Argument(help="A table (one row per arm and item) or results of a tool; more may follow."),
    ],
    objectives: Annotated[
        list[str] | None, typer.Argument(help=f"In order of priority: '{SHAPE}'.", show_default=False)
    ] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="Results of a run, in place of TABLE: the runs are compared."),
    ] = None,
    arm: Annotated[str, typer.Option(help="The column of arms.")] = "arm",
    item: Annotated[str, typer.Option(help='The column of items; "" if nothing pairs the rows.')] = "item",
    repeat: Annotated[str | None, typer.Option(help="The column that tells repeats of a cell apart.")] = None,
    cluster: Annotated[str | None, typer.Option(help="The column of what items belong to together.")] = None,
    max_cluster: Annotated[int | None, typer.Option(help="Items that a cluster can have at most.")] = None,
    delta: Annotated[float, typer.Option(help="Probability of a wrong certificate.")] = 0.05,
    sequential: Annotated[
        bool, typer.Option("--sequential", help="The table was judged before, while it grew.")
    ] = False,
    scope: Annotated[str, typer.Option(help='"population", or "items": these alone.')] = "population",
    missing: Annotated[str, typer.Option(help='"error", "worst" or "drop".')] = "error",
    baseline: Annotated[str | None, typer.Option(help="The current arm: is a switch worth it?")] = None,
    candidate: Annotated[
        str | None,
        typer.Option(help="The arm asked about, fixed before looking; with --baseline: may it ship?"),
    ] = None,
    gate: Annotated[
        Literal["not-worse", "switch"],
        typer.Option(help="What lets a candidate ship: not worse than the baseline, or better."),
    ] = "not-worse",
    source: Annotated[
        Source | None, typer.Option("--from", help="The tool that wrote the files, if they leave it open.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file, too.")] = None,
    follow_up: Annotated[
        Path | None, typer.Option(help="Write a study of the candidates on new items to this .toml, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Judge a finished table: which arm is the best choice, and is that certified?

    With --baseline and --candidate it is a gate: may the candidate take the baseline's place?

    Exit codes: 0 the answer is certified (with --baseline: switch; with --candidate too: it may ship). 1 not
    shown (with --baseline: keep). 2 a mistake in the question or the table. 7 the candidate is a regression.
    70 an internal error.
    """
    from lexbandits import read
    from lexbandits.judging import verdict as judging
    from lexbandits.judging.gate import GateOutcome, GateRule
    from lexbandits.study.measure.progress import Stages

    rule = GateRule(gate.replace("-", "_"))
    if rule is GateRule.SWITCH and (baseline is None or candidate is None):
        raise StudyError("--gate switch needs --baseline and --candidate: the arm in use, and the new one")
    try:
        where, questions = _where(run or [], [table, *(objectives or [])])
        asked = [objective_of(text) for text in questions]
        with Stages(_say_work).watching():
            found = judging.judge(
                where if isinstance(where, str) and not source else read.table(where, source), asked,
                arm=arm, item=item or None, repeat=repeat, cluster=cluster, max_cluster=max_cluster,
                delta=delta, sequential=sequential, scope=scope, missing=missing,
                baseline=baseline, candidate=candidate, gate=rule,
            )  # fmt: skip
        is_regression = found.gate is not None and found.gate.outcome is GateOutcome.REGRESSION
        if follow_up is not None and (found.certified or is_regression):
            say_line("nothing is open, so no study follows", err=True)
        elif follow_up is not None:  # before the report: a refusal writes nothing at all
            from lexbandits._files import beside
            from lexbandits.report.study_report import toml
            from lexbandits.study.study import create_from_fields

            words = found.follow_up(follow_up.stem)
            create_from_fields(words, "memory", load_if_exists=False)  # refuses what `study create` would
            with beside(follow_up) as new:
                new.write_text(f"{toml(words)}\n", encoding="utf-8")
        if html is not None:
            found.report(html, format="html")
    except StudyError as error:
        error.args = (_in_options(str(error)),)
        raise
    except TypeError as error:
        raise StudyError(_in_options(str(error))) from error
    if as_json:
        print_json(found.as_json())
    else:
        say_line(found.as_markdown() if markdown else str(found), lines=True)
    if is_regression:
        raise typer.Exit(REGRESSION)
    if not found.certified or found.decision not in (None, BaselineDecision.SWITCH):
        raise typer.Exit(UNCERTIFIED)
