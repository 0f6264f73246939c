"""What a change of the rules costs: the same runs with rules that are kept, open, or changed half-way."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from experiments.practice.common_random_numbers import BLOCK, CommonRandomNumbers, play_block
from experiments.practice.studies import Study, studies
from lexbandits._jit import entry
from lexbandits.policies.tolerance.lexelim_tol import LexElimTol
from lexbandits.simulation.results import mean_and_error
from lexbandits.simulation.workers import bar, on_threads

REPLICATIONS = 150
STUDIES = ("models", "judge", "conversion", "throughput")
WIDER = 1.25  # times the tolerance
CASES = ("kept", "changed", "declared, wider", "open", "open, wider")


def changes(
    *,
    only: Sequence[str] | None = None,
    replications: int = REPLICATIONS,
    seed: int = 0,
    n_jobs: int = 1,
    progress: bool = False,
) -> pd.DataFrame:
    """Mean results and standard error (columns) per study and case (rows).

    Cases: declared rules that are kept; open rules; declared rules, changed half-way to what they were;
    tolerances a quarter wider from half-way on, under declared and under open rules. Half-way is after half
    the passes that the same run takes without a change.
    """
    known = {study.name: study for study in studies() if study.name in STUDIES}
    if unknown := [name for name in only or () if name not in known]:
        raise ValueError(f"changes are not measured on {unknown[0]!r}; known: {', '.join(known)}")
    runs = [(known[name], replication) for name in only or STUDIES for replication in range(replications)]
    found: dict[str, list[list[int]]] = {name: [] for name in only or STUDIES}
    with bar(len(runs), progress) as advance:
        for name, results in on_threads(partial(_measured, seed), runs, n_jobs):
            found[name].append(results)
            advance(1, sum(results))
    rows = []
    for name, table in found.items():
        measured = zip(CASES, *mean_and_error(np.array(table, np.float64)), strict=True)
        rows += [(name, known[name].title, *each) for each in measured]
    return pd.DataFrame(rows, columns=["study", "title", "rules", "results", "standard_error"])


def _measured(seed: int, run: tuple[Study, int], cancelled: Callable[[], bool]) -> tuple[str, list[int]]:
    study, replication = run
    if cancelled():
        raise InterruptedError("the benchmark was cancelled")
    declared, draws = study.policy("answer"), CommonRandomNumbers(study.trials, seed, replication)
    wider = [WIDER * tolerance for tolerance in study.tolerance]
    return study.name, [
        ended.rounds
        for preregistered, tolerances in ((True, (None, study.tolerance, wider)), (False, (None, wider)))
        for ended in _ends(
            LexElimTol(**{**declared.settings, "preregistered": preregistered}), draws, tolerances
        )
    ]


def _ends(policy: LexElimTol, draws: CommonRandomNumbers, tolerances: Sequence[Any]) -> Iterator[LexElimTol]:
    """The policy after its run, and with each further tolerance from half of that run on."""
    kept = _play_on(policy.fresh(), draws)
    for tolerance in tolerances:
        if tolerance is None:
            yield kept
        else:
            half = _play_on(policy.fresh(), draws, kept.folded // 2)
            yield _play_on(half.amended(tolerance=tolerance), draws)


def _play_on(run: LexElimTol, draws: CommonRandomNumbers, until: int | None = None) -> LexElimTol:
    end = until or run.folded
    while not run.finished and (until is None or run.folded < until):
        end = end if until else end + BLOCK
        entry(play_block, bulk=True)(run.state, draws.first(end), 0)
    return run


def changes_markdown(table: pd.DataFrame) -> str:
    """One row per study, mean results ± standard error."""
    lines = [
        "| study | declared and kept | changed half-way to what they were | ties a quarter and margins an "
        "eighth wider from half-way on | open and kept | open, as wide from half-way on |",
        "| --- |" + " ---: |" * len(CASES),
    ]
    for _, group in table.groupby("study", sort=False):
        cells = [f"{r.results:,.0f} ± {r.standard_error:,.0f}" for r in group.itertuples()]
        by_case = dict(zip(group["rules"], cells, strict=True))
        lines.append(f"| {group['title'].iloc[0]} | " + " | ".join(by_case[case] for case in CASES) + " |")
    return "\n".join(lines)
