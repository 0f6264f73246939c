"""`lexbandits judge results.csv "correct max 0.03 bernoulli" …`: the verdict of a table."""

import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from lexbandits.commands.terminal import UNCERTIFIED, AsJson, print_json, say_line
from lexbandits.study.errors import StudyError
from lexbandits.study.objective import Objective
from lexbandits.study.words import span

Source = Literal["inspect", "lm_eval", "promptfoo", "pytest_benchmark", "hyperfine"]  # names of read.py
DIRECTIONS = {"max": "maximize", "maximize": "maximize", "min": "minimize", "minimize": "minimize"}
KINDS = {"gaussian": 0, "bernoulli": 0, "bounded": 2, "sub_gaussian": 1, "finite_variance": 0, "exact": 0}
SHAPE = "NAME max|min MARGIN [UNIT] KIND [LOW HIGH] [key=value …]"
LONG = 5.0  # seconds that a table may take without a word before
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


def objective_of(text: str) -> Objective:
    """An objective as it is written on the command line.

    >>> objective_of("latency min 0.2 s bounded 0 10").noise
    ('bounded', 0.0, 10.0)
    >>> objective_of("refusals min - bernoulli at_most=0.1").at_most
    0.1
    """
    words = text.split()
    start = next((at for at, word in enumerate(words) if word in DIRECTIONS and at > 0), 0)
    keys = [word.partition("=") for word in words if "=" in word]
    rest = [word for word in words[start + 1 :] if "=" not in word]
    kind = next((at for at, word in enumerate(rest) if word in KINDS), -1)
    if not start or kind not in (1, 2):
        raise StudyError(f"an objective is {SHAPE}, such as 'latency min 0.2 s bounded 0 10'; got {text!r}")
    numbers = rest[kind + 1 :]
    if len(numbers) != KINDS[rest[kind]]:
        raise StudyError(f"{rest[kind]} takes {KINDS[rest[kind]]} numbers, got {text!r}")
    said: dict[str, Any] = {key: _number(word) for key, _, word in keys}
    if rest[0] != "-":
        said["margin"] = _number(rest[0])
    if kind == 2:
        said["unit"] = rest[1]
    noise = (rest[kind], *map(_number, numbers)) if numbers else rest[kind]
    return Objective.from_json(
        {"name": " ".join(words[:start]), "direction": DIRECTIONS[words[start]], "noise": noise, **said}
    )


def _number(word: str) -> Any:
    return float(word) if NUMBER.fullmatch(word) else word


def _say_work(comparisons: int, seconds: float) -> None:
    if seconds >= LONG:
        say_line(f"{comparisons:,} comparisons, about {span(seconds)}", err=True)


def judge(
    table: Annotated[
        Path, typer.Argument(help="A .csv, .jsonl or .parquet: one row per arm and item; or see --from.")
    ],
    objectives: Annotated[list[str], typer.Argument(help=f"In order of priority: '{SHAPE}'.")],
    arm: Annotated[str, typer.Option(help="The column of arms.")] = "arm",
    item: Annotated[str, typer.Option(help='The column of items; "" if nothing pairs the rows.')] = "item",
    repeat: Annotated[str | None, typer.Option(help="The column that tells repeats of a cell apart.")] = None,
    cluster: Annotated[str | None, typer.Option(help="The column of what items belong to together.")] = None,
    max_cluster: Annotated[int | None, typer.Option(help="Items that a cluster can have at most.")] = None,
    delta: Annotated[float, typer.Option(help="Probability of a wrong certificate.")] = 0.05,
    looks: Annotated[
        str, typer.Option(help='"once", or "any" if the table was looked at as it grew.')
    ] = "once",
    about: Annotated[str, typer.Option(help='"population", or "items": these alone.')] = "population",
    missing: Annotated[str, typer.Option(help='"error", "worst" or "drop".')] = "error",
    baseline: Annotated[str | None, typer.Option(help="The current arm: is a switch worth it?")] = None,
    named: Annotated[str | None, typer.Option(help="The arm asked about, fixed before looking.")] = None,
    source: Annotated[
        Source | None, typer.Option("--from", help="The tool that wrote it: its file, or the folder of them.")
    ] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="For a pull request.")] = False,
    html: Annotated[Path | None, typer.Option(help="Write a report to this file, too.")] = None,
    follow_up: Annotated[
        Path | None, typer.Option(help="Write a study of the candidates on new items to this .toml, too.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Which arm of a finished table is the best choice, and is that certain?

    Exit code 0 if the answer is certified (with --baseline: switch or keep), 1 if not, 2 for a mistake in the
    question or the table, 70 for an error of ours.
    """
    from lexbandits import read
    from lexbandits.judging import verdict as judging
    from lexbandits.study.measure.progress import Stages

    try:
        asked = [objective_of(text) for text in objectives]
        with Stages(_say_work).watching():
            found = judging.judge(
                getattr(read, source)(table) if source else table, asked,
                arm=arm, item=item or None, repeat=repeat, cluster=cluster, max_cluster=max_cluster,
                delta=delta, looks=looks, about=about, missing=missing, baseline=baseline, named=named,
            )  # fmt: skip
        if follow_up is not None and found.certified:
            say_line("nothing is open, so no study follows", err=True)
        elif follow_up is not None:  # before the report: a refusal writes nothing at all
            from lexbandits.insight.report import toml
            from lexbandits.study.files import beside
            from lexbandits.study.study import create_from_words

            words = found.follow_up(follow_up.stem)
            create_from_words(words, "memory", load_if_exists=False)  # refuses what `study create` would
            with beside(follow_up) as new:
                new.write_text(f"{toml(words)}\n", encoding="utf-8")
        if html is not None:
            found.report(html, format="html")
    except TypeError as error:
        raise StudyError(str(error)) from error
    if as_json:
        print_json(found.as_json())
    else:
        say_line(found.as_markdown() if markdown else str(found), lines=True)
    if not found.certified or found.decision == "keep for now":
        raise typer.Exit(UNCERTIFIED)
