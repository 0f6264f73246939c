"""Regret of every policy on the paper's instances: over time, misspecified, more arms, until certified."""

import math
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

import lexbandits as lb
from experiments.baselines import TopTwo, TrackAndStop
from experiments.drawing import Figure, house_style, new_figure
from lexbandits.simulation.oracle_settings import with_oracle_settings
from lexbandits.simulation.output import as_latex, as_markdown
from lexbandits.simulation.results import mean_and_error
from lexbandits.theory.regret import regret_constants

SD = math.sqrt(0.1)  # of the paper's instances
HORIZON = 10_000
LONG = 1_000_000
SEED = 0
SLOW = 25  # policies that are simulated pull by pull have that many times fewer runs
HIGH = 200.0  # regret on objective 1 that is called high

Make = Callable[[lb.Instance, int], lb.Policy]


class Row(NamedTuple):
    """A policy in a table.

    Args:
        name: as it is printed.
        make: (instance, horizon) -> the policy, told what it knows.
        fast: whether runs are cheap.
    """

    name: str
    make: Make
    fast: bool = True


def told(cls: type[lb.Policy], **settings: object) -> Make:
    """A policy that is told the truth but for `settings`."""
    return lambda instance, horizon: with_oracle_settings(cls, instance, **settings)


def dmed(**settings: object) -> Make:
    """LexDMED with these settings."""
    return told(lb.LexDMED, **settings)


OURS = [
    Row("LexElim-Pool (δ = 0.01), then LexDMED", told(lb.LexElimPool, delta=0.01, then="regret")),
    Row("**LexDMED** (caution ½, slack 1.1)", dmed()),
    Row("LexDMED, slack 1", dmed(tradeoff_slack=1)),
    Row("LexDMED, caution 1, slack 1", dmed(caution=1, tradeoff_slack=1)),
    Row("LexDMED, caution 1, slack 1, loglog 1", dmed(caution=1, tradeoff_slack=1, loglog=1)),
    Row("**LexIMED** (slack 1.1)", told(lb.LexIMED)),
    Row("LexIMED, slack 1", told(lb.LexIMED, tradeoff_slack=1)),
]
OTHERS = [
    Row("LexElim-In (δ = 0.01)", told(lb.LexElimIn, delta=0.01)),
    Row("LexElim-Out (δ = 0.01)", told(lb.LexElimOut, delta=0.01)),
    Row("UCB_α (α = 2)", told(lb.UCBAlpha, delta=0.01, alpha=2), fast=False),
    Row(
        "PF-LEX (ε = T^(−1/3))",
        lambda instance, T: with_oracle_settings(lb.PFLex, instance, delta=0.01, epsilon=T ** (-1 / 3)),
        fast=False,
    ),
    Row(
        "MTLO (δ = 0.01)",
        lambda instance, T: with_oracle_settings(lb.MTLO, instance, delta=0.01, horizon=T),
        fast=False,
    ),
    Row("UCB1 on objective 1", told(lb.UCB1), fast=False),
    Row("KL-UCB on objective 1", told(lb.KLUCB), fast=False),
    Row("IMED on objective 1", told(lb.IMED), fast=False),
    Row("MOSS on objective 1", told(lb.MOSSAnytime), fast=False),
    Row("Thompson on objective 1", told(lb.ThompsonSampling), fast=False),
    Row("LexElim-Phase, then commit (δ = 0.01)", told(lb.LexElimPhase, delta=0.01)),
    Row("LexElim-Pool, then commit (δ = 0.01)", told(lb.LexElimPool, delta=0.01)),
    Row(
        "LexElim-Pool, then commit (δ = 1/T)",
        lambda instance, T: with_oracle_settings(lb.LexElimPool, instance, delta=1 / T),
    ),
]
CURVES = (  # of the figure
    *("LexElim-In (δ = 0.01)", "UCB_α (α = 2)", "PF-LEX (ε = T^(−1/3))", "Thompson on objective 1"),
    *("LexElim-Pool, then commit (δ = 0.01)", "LexElim-Pool (δ = 0.01), then LexDMED"),
    *("LexDMED, caution 1, slack 1", "**LexDMED** (caution ½, slack 1.1)", "**LexIMED** (slack 1.1)"),
)


class Bench:
    """What sections share: how many runs, where blocks are kept, and on how many threads."""

    def __init__(self, runs: int, out: Path, jobs: int) -> None:
        self.runs, self.out, self.jobs = runs, out, jobs

    def run(
        self, section: str, rows: list[Row], instance: lb.Instance, horizon: int
    ) -> lb.simulation.Results:
        """Simulate all rows; blocks that are on disk are not run again."""
        found: dict[str, lb.simulation.Results] = {}
        for fast in (True, False):
            chosen = [row for row in rows if row.fast == fast]
            if not chosen:
                continue
            cells = [
                lb.simulation.Cell(row.name, row.make(instance, horizon), instance, horizon) for row in chosen
            ]
            runs = self.runs if fast else max(2, self.runs // SLOW)
            folder = self.out / "blocks" / f"{section}-{'fast' if fast else 'slow'}"
            swept = lb.sweep(cells, replications=runs, seed=SEED, n_jobs=self.jobs, out=folder, progress=True)
            found.update({row.name: swept for row in chosen})
        infos = {row.name: found[row.name].cells[row.name] for row in rows}
        return lb.simulation.Results(SEED, infos, {row.name: found[row.name].runs[row.name] for row in rows})


# --- tables, as lines of cells


def regret_cells(results: lb.simulation.Results, name: str, horizon: int) -> list[str]:
    """Mean and error per objective, quantiles, and the tail of one cell."""
    regret = results.regret(name, [horizon])[:, 0]
    mean, error = mean_and_error(regret)
    instance, runs = results.cells[name].instance, results.runs[name]
    # after it has stopped, a policy plays its answer on
    pulls = runs.pulls.copy()
    pulls[np.arange(len(pulls)), runs.recommendation] += horizon - runs.rounds
    wrong = int((pulls.argmax(axis=1) != instance.lex_optimal_arm).sum())
    high = int((regret[:, 0] > HIGH).sum())
    return [
        beside(mean),
        beside(error, up=True),
        beside(np.quantile(regret, 0.95, axis=0)),
        f"{regret[:, 0].max():,.0f}",
        f"{high:,}; {wrong:,}",
        f"{len(regret):,}",
    ]


def beside(values: np.ndarray, up: bool = False) -> str:
    """Numbers of all objectives; errors are rounded up to one decimal."""
    if up:
        values = np.ceil(np.round(values * 10, 9)) / 10
    return " / ".join(f"{value + 0.0:,.1f}".replace("-", "−") for value in values)


HEAD = [
    "policy", "regret on objectives 1 / 2 / 3", "± s.e.", "95 % quantile", "largest on 1",
    "runs above 200 on 1; on a wrong arm most", "runs",
]  # fmt: skip


def bound(instance: lb.Instance) -> np.ndarray:
    """Constants of the lower bound per nat of log T."""
    return regret_constants(instance).low


def bound_line(instance: lb.Instance, horizon: int, blank: int) -> list[str]:
    """c·log T as a line of a table."""
    return ["lower bound c·log T, asymptotic", beside(bound(instance) * math.log(horizon)), *[""] * blank]


def figure_2(bench: Bench) -> dict[str, list[list[str]]]:
    """The setting of Figure 2: K = 10, T = 10,000, all policies."""
    instance = lb.paper_instance(10)
    results = bench.run("figure2", [*OTHERS, *OURS], instance, HORIZON)
    lines = [[row.name, *regret_cells(results, row.name, HORIZON)] for row in (*OTHERS, *OURS)]
    return {"figure2": [HEAD, *lines, bound_line(instance, HORIZON, 5)]}


def long(bench: Bench) -> dict[str, list[list[str]]]:
    """The same to T = 1,000,000, and the figure."""
    instance, short = lb.paper_instance(10), Bench(max(2, bench.runs // 5), bench.out, bench.jobs)
    rows = [row for row in (*OTHERS, *OURS) if row.name in CURVES]
    results = short.run("long", rows, instance, LONG)
    rounds = [10**power for power in range(3, 7)]
    head = ["objective 1 after", *(f"{t:,}" for t in rounds), "slope per log T", "runs"]
    lines = []
    for row in rows:
        regret = results.regret(row.name, rounds)
        mean, error = mean_and_error(regret)
        slope = (mean[-1] - mean[-2]) / math.log(10)
        shown = [
            f"{m:,.0f} ± {math.ceil(round(e * 10, 6)) / 10:,.1f}"
            for m, e in zip(mean[:, 0], error[:, 0], strict=True)
        ]
        lines.append([row.name, *shown, beside(slope), f"{len(regret):,}"])
    constants = bound(instance)
    for name, low in (
        ("lower bound c·log T", constants),
        (
            "lower bound for 1.1·λ, which slack 1.1 asks for",
            regret_constants(instance, 1.1 * instance.tradeoff).low,
        ),
    ):
        lines.append([name, *(f"{low[0] * math.log(t):,.0f}" for t in rounds), beside(low), ""])
    draw(results, constants, bench.out / "regret.svg")
    return {"long": [head, *lines]}


def curves(results: lb.simulation.Results, bounds: Mapping[str, list[float]]) -> Figure:
    """Mean regret with two standard errors and the 95 % quantile, a panel per objective, a line per cell."""
    figure = new_figure(9.0, 4.2, layout="constrained")
    panels = figure.subplots(1, len(next(iter(bounds.values()))))
    rounds = np.unique(np.rint(np.geomspace(1, LONG, 200)).astype(np.int64))
    for place, name in enumerate(results.cells):
        regret = results.regret(name, rounds)
        mean, error = mean_and_error(regret)
        for i, panel in enumerate(panels):
            colour = f"C{place % 10}"
            panel.plot(rounds, mean[:, i], color=colour, label=name)
            low, high = mean[:, i] - 2 * error[:, i], mean[:, i] + 2 * error[:, i]
            panel.fill_between(rounds, low, high, color=colour, alpha=0.2, linewidth=0)
            panel.plot(rounds, np.quantile(regret[:, :, i], 0.95, axis=0), color=colour, lw=0.5)
    times = np.geomspace(1, LONG, 200)
    for name, constants in bounds.items():
        for constant, panel in zip(constants, panels, strict=True):
            panel.plot(times, constant * np.log(times), "k--", lw=0.9, label=name)
    for panel in panels:
        panel.set(xlabel="round", xscale="log")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def draw(results: lb.simulation.Results, constants: np.ndarray, path: Path) -> None:
    """Curves with bands of two standard errors, thin lines at the 95 % quantile, and the lower bound.

    Panels end a little above the 95 % quantile of the policies that know λ; the others leave them.
    """
    plain = {name: name.replace("*", "") for name in results.cells}
    shown = lb.simulation.Results(
        SEED,
        {plain[name]: cell for name, cell in results.cells.items()},
        {plain[name]: runs for name, runs in results.runs.items()},
    )
    bounds = {"lower bound c·log T": constants.tolist()}
    with house_style():
        figure = curves(shown, bounds)
        known = [results.regret(name, [LONG])[:, 0] for name in CURVES[4:]]
        tops = np.max([np.quantile(regret, 0.95, axis=0) for regret in known], axis=0)
        for i, axes in enumerate(figure.axes[:3]):
            axes.set_title(f"objective {i + 1}")
            axes.set_xlim(10, LONG)
            axes.set_ylim(-0.15 * tops[i] if i == 1 else 0, 1.35 * tops[i])
        figure.axes[0].set_ylabel("regret")
        figure.savefig(path, metadata={"Date": None})
    # a tenth of a point is finer than any screen, and a third of the file is further decimals of curves
    drawn = path.read_text("utf-8")
    path.write_text(re.sub(r"(?m)^([ML] -?\d+\.\d)\d* (-?\d+\.\d)\d* $", r"\1 \2", drawn), "utf-8")


def misspecified(bench: Bench) -> dict[str, list[list[str]]]:
    """λ, σ and the law of the noise are not what the policy is told."""
    instance, some = lb.paper_instance(10), Bench(max(2, bench.runs // 5), bench.out, bench.jobs)
    rows = [Row(f"LexDMED, λ told {x:g} (true 2)", dmed(tradeoff=x)) for x in (3.0, 4.0, 8.0)]
    rows += [Row(f"LexIMED, λ told {x:g} (true 2)", told(lb.LexIMED, tradeoff=x)) for x in (3.0, 4.0, 8.0)]
    rows += [
        Row("LexDMED, σ estimated", dmed(noise_sd=None)),
        Row("LexDMED, caution 1, slack 1, σ estimated", dmed(noise_sd=None, caution=1, tradeoff_slack=1)),
        Row("LexIMED, σ estimated", told(lb.LexIMED, noise_sd=None)),
        Row("LexDMED, σ told × 0.7", dmed(noise_sd=0.7 * SD)),
        Row("LexDMED, σ told × 1.4", dmed(noise_sd=1.4 * SD)),
    ]
    results = some.run("misspecified", rows, instance, HORIZON)
    lines = [[row.name, *regret_cells(results, row.name, HORIZON)] for row in rows]
    coins = lb.Instance((0.2 + 0.6 * instance.means).tolist(), noise="bernoulli", tie_tolerance=1e-9)
    tosses = [
        Row("LexDMED, Bernoulli, σ told ½", dmed(noise_sd=0.5, tradeoff=2)),
        Row("LexDMED, Bernoulli, σ estimated", dmed(noise_sd=None, tradeoff=2)),
        Row("LexIMED, Bernoulli, σ told ½", told(lb.LexIMED, noise_sd=0.5, tradeoff=2)),
        Row("LexIMED, Bernoulli, σ estimated", told(lb.LexIMED, noise_sd=None, tradeoff=2)),
    ]
    results = some.run("bernoulli", tosses, coins, 2 * HORIZON)
    lines += [[row.name, *regret_cells(results, row.name, 2 * HORIZON)] for row in tosses]
    return {"misspecified": [HEAD, *lines]}


def more_arms(bench: Bench) -> dict[str, list[list[str]]]:
    """K = 20 and 30."""
    some = Bench(max(2, bench.runs // 25), bench.out, bench.jobs)
    names = {
        "LexElim-Pool, then commit (δ = 0.01)",
        *(row.name for row in OURS[1:6] if "slack 1, l" not in row.name),
    }
    rows = [row for row in (*OTHERS, *OURS) if row.name in names]
    lines = []
    for n_arms in (20, 30):
        instance = lb.paper_instance(n_arms)
        results = some.run(f"arms{n_arms}", rows, instance, HORIZON)
        for row in rows:
            lines.append([f"K = {n_arms}: {row.name}", *regret_cells(results, row.name, HORIZON)])
        name, *rest = bound_line(instance, HORIZON, 5)
        lines.append([f"K = {n_arms}: {name}", *rest])
    return {"arms": [HEAD, *lines]}


def certified(bench: Bench) -> dict[str, list[list[str]]]:
    """Samples and regret until LexElim-Pool has its certificate, and what playing on costs."""
    instance, horizon = lb.paper_instance(10), 100_000
    some = Bench(max(2, bench.runs // 5), bench.out, bench.jobs)
    head = [
        "δ", "samples", "wrong answers", "regret at the certificate", "then commit, T = 100,000",
        "then LexDMED, T = 100,000", "± s.e.",
    ]  # fmt: skip
    lines = []
    for delta in (0.1, 0.01, 1e-4):
        rows = [
            Row("commit", told(lb.LexElimPool, delta=delta)),
            Row("play", told(lb.LexElimPool, delta=delta, then="regret")),
        ]
        results = some.run(f"certified{delta:g}", rows, instance, horizon)
        runs = results.runs["commit"]
        samples, error = mean_and_error(runs.rounds)
        at_stop = (runs.pulls @ instance.gaps).mean(axis=0)
        ends = {name: mean_and_error(results.regret(name, [horizon])[:, 0]) for name in ("commit", "play")}
        wrong = int((runs.recommendation != instance.lex_optimal_arm).sum())
        lines.append(
            [
                f"{delta:g}",
                f"{samples:,.0f} ± {math.ceil(error):,}",
                f"{wrong} of {runs.rounds.size:,}",
                beside(at_stop),
                beside(ends["commit"][0]),
                beside(ends["play"][0]),
                f"{beside(ends['commit'][1], up=True)}; {beside(ends['play'][1], up=True)}",
            ]
        )
    return {"certified": [head, *lines]}


def frontier(bench: Bench) -> dict[str, list[list[str]]]:
    """Samples against regret on objective 1 until certified: what is possible, and what policies pay.

    A pull costs 1 − x, and x times its gap: T* with these prices bounds every mixture of the two.
    """
    instance, delta, horizon = lb.paper_instance(10), 0.01, 100_000
    gaps, nats = instance.gaps[:, 0], lb.sample_lower_bound(1.0, delta)
    lines = []
    for x in (0.0, 0.8, 0.95, 0.99, 0.999):
        prices = 1 - x + x * gaps
        bound = lb.characteristic_time(instance, relative_gap=0.002, prices=prices)
        pulls = nats * bound.low / (prices @ bound.weights) * bound.weights
        lines.append([f"bound, x = {x:g}", f"{pulls.sum():,.0f}", f"{pulls @ gaps:,.1f}", "", ""])
    least = nats * regret_constants(instance).low[0]
    lines.append(["bound, regret alone", "∞", f"{least:,.1f}", "", ""])
    rows = [
        Row("LexElim-Pool", told(lb.LexElimPool, delta=delta)),
        Row("LexElim-Phase", told(lb.LexElimPhase, delta=delta)),
        Row("Track-and-Stop", told(TrackAndStop, delta=delta), fast=False),
        Row("Top-Two", told(TopTwo, delta=delta), fast=False),
        Row("LexElim-In", told(lb.LexElimIn, delta=delta)),
    ]
    results = Bench(max(2, bench.runs // 5), bench.out, bench.jobs).run("frontier", rows, instance, horizon)
    for row in rows:
        runs = results.runs[row.name]
        found = [mean_and_error(runs.rounds), mean_and_error(runs.pulls @ gaps)]
        wrong = int((runs.recommendation != instance.lex_optimal_arm).sum())
        shown = [f"{mean:,.0f} ± {math.ceil(error):,}" for mean, error in found]
        lines.append([row.name, *shown, str(wrong), f"{runs.rounds.size:,}"])
    return {"frontier": [["", "samples", "regret on objective 1", "wrong answers", "runs"], *lines]}


SECTIONS: Mapping[str, Callable[[Bench], dict[str, list[list[str]]]]] = {
    "figure2": figure_2,
    "long": long,
    "misspecified": misspecified,
    "arms": more_arms,
    "certified": certified,
    "frontier": frontier,
}


def main(runs: int, out: Path, page: Path | None, jobs: int, only: list[str] | None) -> None:
    """Run the sections; write their tables as Markdown and LaTeX, the figure, and the page."""
    unknown = [name for name in only or () if name not in SECTIONS]
    if unknown:
        raise ValueError(f"--only must be one of {', '.join(SECTIONS)}, got {unknown[0]!r}")
    out.mkdir(parents=True, exist_ok=True)
    bench = Bench(runs, out, jobs)
    tables: dict[str, list[list[str]]] = {}
    for name in only or SECTIONS:
        tables.update(SECTIONS[name](bench))
    for name, lines in tables.items():
        (out / f"{name}.md").write_text(as_markdown(lines), "utf-8")
        (out / f"{name}.tex").write_text(as_latex(lines), "utf-8")
        print(f"{name}\n{as_markdown(lines)}")
    if page is not None:
        page.write_text(filled(page.read_text("utf-8"), tables), "utf-8")


def filled(text: str, tables: Mapping[str, list[list[str]]]) -> str:
    """The page with every table between its marks, `<!-- NAME -->` and `<!-- end -->`, made anew."""
    for name, lines in tables.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        if not mark:
            raise ValueError(f"the page has no mark <!-- {name} --> for the table {name}")
        text = before + mark + as_markdown(lines) + rest[rest.index("<!-- end -->") :]
    return text
