"""The benchmark for practitioners: pulls and broken promises on their studies, beside common practice."""

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import lexbandits
from experiments.drawing import SMALL, WIDE, Axes, Figure, house_style, legend, mark, new_figure, save
from experiments.practice.common_practice import COMMON_PRACTICE, Choice
from experiments.practice.common_random_numbers import CommonRandomNumbers, play
from experiments.practice.studies import Study, studies
from lexbandits._files import beside
from lexbandits.simulation.promise import Tolerances
from lexbandits.simulation.results import clopper_pearson, mean_and_error
from lexbandits.simulation.workers import bar, on_threads

REPLICATIONS = 300
QUICK_REPLICATIONS = 20
HORIZON = 10**7  # nobody comes near it
TOGETHER = 20  # replications that are measured and kept together
LIMIT: dict[str, Any] = {"color": "#555555", "lw": 1.2}  # the look of its line


class Method(NamedTuple):
    """A way to choose, with its looks."""

    name: str
    choose: Callable[[Study, CommonRandomNumbers], Choice]
    colour: str
    marker: str


def _ours(stop_when: str, *, bounded_sd: bool = False) -> Callable[[Study, CommonRandomNumbers], Choice]:
    def choose(study: Study, draws: CommonRandomNumbers) -> Choice:
        run = play(study.policy(stop_when, bounded_sd=bounded_sd), draws, HORIZON)
        if not run.finished:
            raise RuntimeError(f"{study.name}: no answer after {run.rounds} results")
        return Choice(run.recommendation, run.rounds, {e.arm: e.objective for e in run.eliminations})

    return choose


def _common(name: str) -> Callable[[Study, CommonRandomNumbers], Choice]:
    return lambda study, draws: COMMON_PRACTICE[name](draws.first, study.aim)


METHODS = (
    Method("LexElim-Tol", _ours("answer"), "#009E73", "o"),
    Method('LexElim-Tol, stop_when="all"', _ours("all"), "#56B4E9", "o"),
    Method("LexElim-Tol, σ from a bound", _ours("answer", bounded_sd=True), "#0072B2", "o"),
    Method("planned t-tests", _common("planned t-tests"), "#000000", "s"),
    Method("peeking at t-tests", _common("peeking at t-tests"), "#D55E00", "D"),
    Method("comparing means", _common("comparing means"), "#CC79A7", "^"),
    Method("successive halving", _common("successive halving"), "#E69F00", "v"),
)


class Row(NamedTuple):
    """One replication."""

    replication: int
    pulls: int
    answer: int
    kept: int


def practice(
    *,
    only: Sequence[str] | None = None,
    replications: int = REPLICATIONS,
    seed: int = 0,
    n_jobs: int = 1,
    out: str | Path | None = None,
    progress: bool = False,
) -> pd.DataFrame:
    """Every method on every study (`only`: on those named), one row each.

    Columns: study, title, method, pulls (mean), standard_error, broken (the share of replications whose
    answer is not acceptable), low, high (its exact 95 % interval), replications, delta, limit (the least
    mean pulls of any method that keeps the promise, where they are known). All methods see the same results:
    those of an arm in a pass depend on the seed and the replication alone. With `out`, what is measured
    is kept there, and the same call goes on from it.
    """
    chosen = _named(only)
    cells = [_Cell(study, method, seed, out) for study in chosen for method in METHODS]
    batches = [batch for cell in cells for batch in cell.missing(replications)]
    with bar(sum(len(those) for _, those in batches), progress) as advance:
        for cell, rows in on_threads(_measured, batches, n_jobs):
            cell.add(rows)
            advance(len(rows), sum(row.pulls for row in rows))
    limits = {study.name: study.limit() for study in chosen}
    found = []
    for cell in cells:
        time = limits[cell.study.name]
        limit = math.nan if time is None else time.least_pulls(cell.study.delta)
        found.append({**cell.summary(replications), "limit": limit})
    return pd.DataFrame(found)


def _named(only: Sequence[str] | None) -> list[Study]:
    known = {study.name: study for study in studies()}
    if unknown := [name for name in only or () if name not in known]:
        raise ValueError(f"unknown study {unknown[0]!r}; known: {', '.join(known)}")
    return [known[name] for name in only or known]


class _Cell:
    """A method on a study, its finished replications, and the CSV file that holds them, if any.

    The file's name has a digest of everything that the numbers depend on but the code.
    """

    def __init__(self, study: Study, method: Method, seed: int, folder: str | Path | None) -> None:
        self.study, self.method, self.seed = study, method, seed
        self.known: dict[int, Row] = {}
        self.path: Path | None = None
        if folder is not None:
            settings = study.policy("answer").settings
            told = [lexbandits.__version__, seed, method.name, settings, study.bounds, study.trials.settings]
            digest = hashlib.blake2b(json.dumps(told, sort_keys=True).encode(), digest_size=4).hexdigest()
            words = "".join(c if c.isalnum() else " " for c in method.name).split()
            self.path = Path(folder) / f"{study.name}-{'-'.join(words)}-{digest}.csv"
            if self.path.exists():
                _, *lines = self.path.read_text().splitlines()
                self._note(Row(*map(int, line.split(","))) for line in lines)

    def missing(self, replications: int) -> Iterator[tuple["_Cell", range]]:
        """The groups of replications that are not all there."""
        for first in range(0, replications, TOGETHER):
            those = range(first, min(first + TOGETHER, replications))
            if not self.known.keys() >= set(those):
                yield self, those

    def add(self, rows: list[Row]) -> None:
        """Keep more replications."""
        self._note(rows)
        if self.path is not None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            lines = [",".join(Row._fields), *(",".join(map(str, self.known[r])) for r in sorted(self.known))]
            with beside(self.path) as new:
                new.write_text("\n".join(lines) + "\n", "utf-8")

    def _note(self, rows: Iterable[Row]) -> None:
        self.known.update({row.replication: row for row in rows})

    def summary(self, replications: int) -> dict[str, Any]:
        """What so many replications say."""
        rows, study = [self.known[r] for r in range(replications)], self.study
        pulls, error = mean_and_error(np.array([row.pulls for row in rows], np.float64))
        broken = sum(not row.kept for row in rows)
        low, high = clopper_pearson(broken, len(rows))
        return {
            "study": study.name,
            "title": study.title,
            "method": self.method.name,
            "pulls": float(pulls),
            "standard_error": float(error),
            "broken": broken / len(rows),
            "low": low,
            "high": high,
            "replications": len(rows),
            "delta": study.delta,
        }


def _measured(batch: tuple[_Cell, range], cancelled: Callable[[], bool]) -> tuple[_Cell, list[Row]]:
    cell, those = batch
    rows, study = [], cell.study
    promise = Tolerances(study.policy("answer").settings, study.trials.instance())
    for replication in those:
        if cancelled():
            raise InterruptedError("the benchmark was cancelled")
        answer, pulls, dropped = cell.method.choose(
            study, CommonRandomNumbers(study.trials, cell.seed, replication)
        )
        rows.append(Row(replication, pulls, answer, int(promise.kept(answer, dropped))))
    return cell, rows


def write(table: pd.DataFrame, folder: Path) -> None:
    """Table and figure as files: practice.csv, practice.md, practice.svg, practice.png."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "practice.csv", index=False)
    (folder / "practice.md").write_text(practice_markdown(table) + "\n")
    figure = practice_figure(table)
    save(figure, folder / "practice.svg")
    save(figure, folder / "practice.png", dpi=200)


def practice_markdown(table: pd.DataFrame) -> str:
    """One row per study: its limit, and for each method mean pulls ± standard error and promises broken."""
    methods = list(dict.fromkeys(table["method"]))
    lines = ["| study | limit | " + " | ".join(methods) + " |", "| --- | ---: |" + " ---: |" * len(methods)]
    for _, group in table.groupby("study", sort=False):
        rows = group.set_index("method").to_dict("index")
        title = rows[methods[0]]["title"].replace("\n", " ")
        limit = rows[methods[0]]["limit"]
        known = "–" if math.isnan(limit) else f"{limit:,.0f}"
        lines.append(f"| {title} | {known} | " + " | ".join(_text(rows[name]) for name in methods) + " |")
    return "\n".join(lines)


def _text(row: dict[Any, Any]) -> str:
    error = f" ± {row['standard_error']:,.0f}" if row["standard_error"] > 0 else ""
    share = f"{100 * row['broken']:.1f} %"
    return f"{row['pulls']:,.0f}{error}, {f'**{share}**' if _cheats(row) else share}"


def _cheats(row: Any) -> bool:
    """Whether it surely breaks the promise more often than it may."""
    return bool(row["low"] > row["delta"])


def practice_figure(table: pd.DataFrame) -> Figure:
    """Pulls on the left, broken promises on the right; hollow where they are surely more than δ.

    Lines on the left are limits: who needs less than that on average cannot keep the promise everywhere.
    """
    with house_style():
        titles = list(dict.fromkeys(table["title"]))
        figure = new_figure(WIDE, 0.7 + 0.8 * len(titles))
        left, right = figure.subplots(1, 2, sharey=True, width_ratios=(1.25, 1))
        for axes in (left, right):
            _bands(axes, len(titles))
        step = 0.8 / len(METHODS)
        for row in table.to_dict("records"):
            order = [method.name for method in METHODS].index(row["method"])
            y = titles.index(row["title"]) - 0.4 + step * (order + 0.5)
            _mark(left, right, METHODS[order], row, y)
        for place, delta in enumerate(table.groupby("study", sort=False)["delta"].first()):
            right.plot([delta] * 2, [place - 0.45, place + 0.45], color="#777777", lw=0.8, ls=(0, (3, 2)))
        for place, limit in enumerate(table.groupby("study", sort=False)["limit"].first()):
            left.plot([limit] * 2, [place - 0.45, place + 0.45], **LIMIT)
        right.text(float(table["delta"].iloc[0]), -0.52, "δ", color="#555555", fontsize=SMALL, ha="center")
        _finish(left, right, titles)
        looks = {method.name: mark(method.marker, method.colour, markersize=4) for method in METHODS}
        looks["hollow: broken more often than δ"] = mark(mfc="white", markersize=4)
        looks["limit, variances known"] = mark("|", LIMIT["color"], mew=LIMIT["lw"], markersize=9)
        legend(figure, looks, loc="upper center", ncol=4, columnspacing=1.2, handletextpad=0.2)
        figure.subplots_adjust(
            left=0.15, right=0.97, top=1 - 0.6 / figure.get_figheight(), bottom=0.075, wspace=0.06
        )
    return figure


def _mark(left: Axes, right: Axes, method: Method, row: dict[Any, Any], y: float) -> None:
    face = "white" if _cheats(row) else method.colour
    look = mark(method.marker, method.colour, mfc=face, markersize=4)
    left.errorbar(row["pulls"], y, xerr=2 * row["standard_error"], elinewidth=0.8, **look)
    right.plot([row["low"], row["high"]], [y, y], color=method.colour, lw=0.9)
    right.plot(row["broken"], y, clip_on=False, zorder=5, **look)


def _bands(axes: Axes, count: int) -> None:
    for place in range(0, count, 2):
        axes.axhspan(place - 0.5, place + 0.5, color="#f4f4f4", lw=0, zorder=0)
    axes.grid(visible=False, axis="y")


def _finish(left: Axes, right: Axes, titles: list[str]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    left.set_xscale("log")
    left.xaxis.set_major_formatter(FuncFormatter(lambda pulls, _: f"{pulls:,.0f}"))
    left.xaxis.set_minor_formatter(NullFormatter())
    left.set_xlabel("pulls until the answer (± 2 s.e.)")
    left.set_yticks(range(len(titles)), titles)
    left.set_ylim(len(titles) - 0.5, -0.5)
    left.tick_params(axis="y", length=0)
    right.tick_params(axis="y", length=0)
    # a square root leaves room for what is rare and shows 0
    right.set_xscale("function", functions=(lambda x: abs(x) ** 0.5, lambda x: x**2))
    right.set_xlim(0, 1)
    right.set_xticks([0, 0.01, 0.05, 0.2, 0.5, 1], ["0", "1 %", "5 %", "20 %", "50 %", "100 %"])
    right.set_xlabel("promises broken (exact 95 % intervals)")
