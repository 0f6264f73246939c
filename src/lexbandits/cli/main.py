"""The command line. A command is a function under `@command`, which imports what it needs when it runs."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lexbandits import __version__
from lexbandits.cli import judge, run, serve, study_reports, terminal, warm
from lexbandits.cli.terminal import print_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from lexbandits.environments.instance import Instance
    from lexbandits.theory.regret import RegretConstants

app = typer.Typer(cls=terminal.Commands, no_args_is_help=True, pretty_exceptions_enable=False)

app.add_typer(study_reports.app, name="study")  # all of `study`, and what `study_reports` adds to it
app.add_typer(serve.token, name="token")
command = terminal.command(app)
command(judge.judge)
command(run.run)
command(serve.serve)
command(warm.warm)

Jobs = Annotated[int, typer.Option(help="Threads; -1 for one per core.")]


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lexbandits {__version__}")
        raise typer.Exit


@app.callback()
def lexbandits(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Lexicographic bandits: several noisy measures in strict order of priority."""


@command
def simulate(
    spec: Annotated[Path, typer.Argument(help="A TOML file: instances, policies, horizon, replications.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Where results go; started again, it goes on. [SPEC's name in results/]"),
    ] = None,
    jobs: Jobs = -1,
    backend: Annotated[
        str | None, typer.Option(help='"dask:tcp://host:port", or "ray" for a cluster that is running.')
    ] = None,
) -> None:
    """Run every policy of a file against every instance of it; table, CSV and figure out."""
    from lexbandits.simulation import output
    from lexbandits.simulation.sweep import sweep
    from lexbandits.simulation.sweep_spec import load
    from lexbandits.simulation.workers import Backend, runner

    asked = load(spec)
    if backend == Backend.DASK:
        raise ValueError("--backend dask needs the address of a scheduler: --backend dask:tcp://host:port")
    if backend == Backend.RAY:
        runner(backend, jobs)  # says how to install it
        import ray

        ray.init(address="auto")
    folder = out or Path("results") / spec.stem
    results = sweep(
        asked.cells,
        replications=asked.replications,
        seed=asked.seed,
        n_jobs=jobs,
        backend=backend,
        out=folder / "blocks",
        progress=True,
    )
    output.write(results, folder)
    shown = [
        {
            "cell": row["cell"],
            "pulls": f"{row['pulls']:,.0f} ± {row['standard error']:,.0f}",
            "stopped": f"{row['stopped']} of {row['replications']}",
            "wrong": row["wrong"],
            "error rate, 95 %": f"{row['error rate low']:.3g} – {row['error rate high']:.3g}"
            if row["stopped"]
            else "no answers",
        }
        for row in output.table(results)
    ]
    print_table(shown)
    typer.echo(f"{folder}: runs.csv, summary.csv, regret.svg; blocks/ to go on from")


@command
def bounds(
    instance: Annotated[
        Path | None, typer.Argument(help="A TOML file with means, noise_sd, …; or use --paper.")
    ] = None,
    paper: Annotated[
        list[int] | None, typer.Option(help="The paper's instance with this many arms; can be repeated.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Probability of a wrong answer.")] = 0.01,
    tradeoff: Annotated[float | None, typer.Option(help="λ. [the instance's least]")] = None,
    horizon: Annotated[float, typer.Option(help="T of the regret lower bound c·log T.", min=1)] = 10_000,
    figure: Annotated[
        Path | None, typer.Option(help="A file.svg: the lower bound against λ, and who deserves the pulls.")
    ] = None,
    tolerance: Annotated[
        list[float] | None,
        typer.Option(help="What does not matter, per objective: repeat it. The bound is then LexElim-Tol's."),
    ] = None,
    resolution: Annotated[
        list[float] | None, typer.Option(help="Beside --tolerance, per objective. [the tolerances]")
    ] = None,
) -> None:
    """Print what theory says about an instance: the paper's bounds, and lower bounds of pulls and regret."""
    from lexbandits.environments.examples import paper_instance
    from lexbandits.simulation.sweep_spec import load_instance
    from lexbandits.theory.all_bounds import lower_bound_figure

    if (instance is None) == (not paper):
        raise ValueError("name one instance: a TOML file, or --paper K")
    chosen = {f"K = {n_arms}": paper_instance(n_arms) for n_arms in paper or ()}
    if instance is not None:
        chosen[instance.stem] = load_instance(instance)
    if tolerance and (tradeoff is not None or figure is not None):
        raise ValueError("--tolerance asks another question: leave --tradeoff and --figure out")
    if resolution and not tolerance:
        raise ValueError("--resolution goes with --tolerance: give both, or --tradeoff")
    for each in chosen.values():
        if tolerance:
            _print_limit(each, delta, horizon, tolerance, resolution)
        else:
            _print_bounds(each, delta, tradeoff, horizon)
    if figure is not None:
        lower_bound_figure(chosen).save(figure)


def _print_bounds(instance: "Instance", delta: float, tradeoff: float | None, horizon: float) -> None:
    from rich.console import Console

    from lexbandits.theory.all_bounds import overview

    with Console(stderr=True).status(f"bounds of {instance.n_arms} arms"):
        told = overview(instance, delta, tradeoff=tradeoff, horizon=horizon)
    certified = "certified" if told.time.certified else "its upper end not certified"
    typer.echo(
        f"{instance.n_arms} arms, {instance.n_objectives} objectives, "
        f"lex-optimal arm {instance.lex_optimal_arm}, "
        f"λ = {told.tradeoff:g}, δ = {delta:g}, widths that match the noise\n"
        f"characteristic time in [{told.time.low:,.2f}, {told.time.high:,.2f}] ({certified}): "
        f"any δ-correct algorithm needs {told.lower:,.0f} pulls on average\n"
    )
    objectives, *bounds = told.objectives.items()
    per_objective = [
        {"objective": name, **dict(zip(map(str, objectives[1]), values, strict=True))}
        for name, values in bounds
    ]
    print_table(per_objective, "per objective: arms that tie so far, and the bounds of Theorems 1-4")
    towards: dict[str, Callable[[float], int]] = {
        "high": math.ceil,
        "separable": round,
    }  # a formula, no end
    safe = {
        name: values if name == "objective" else [_rounded(x, towards.get(name, math.floor)) for x in values]
        for name, values in told.regret.items()
    }
    print_table(safe, "regret per nat: what any policy pays that is consistent whatever the means are")
    typer.echo(_regret_notes(told.constants))
    print_table(told.arms, "per arm: gaps, margins over the noise, share of the lower bound's pulls")
    print_table(told.leaving, "per arm: most pulls before it leaves (Lemmas 5 and 7)")


def _rounded(value: float, towards: "Callable[[float], int]") -> str:
    return f"{towards(value * 1000) / 1000:,.3f}" if math.isfinite(value) else str(value)


def _whole(value: float) -> str:
    return f"{math.floor(value):,}" if math.isfinite(value) else str(value)


def _regret_notes(constants: "RegretConstants") -> str:
    certified = "certified" if constants.certified else "`high` not certified"
    notes = [
        f"{certified}; objective 0: at least {_rounded(constants.alone, math.floor)} if one arm moves alone, "
        f"{_rounded(constants.first_objective, round)} without the other objectives"
    ]
    if not constants.attained:
        notes.append("nan: more pulls of arms that tie lower the regret on the objective before for ever")
    return "\n".join(notes) + "\n"


def _print_limit(
    instance: "Instance",
    delta: float,
    horizon: float,
    tolerance: list[float],
    resolution: list[float] | None,
) -> None:
    from rich.console import Console

    from lexbandits.environments.instance import Distribution
    from lexbandits.theory.all_bounds import tolerance_overview

    slack, fine = (given if len(given) > 1 else given[0] for given in (tolerance, resolution or tolerance))
    with Console(stderr=True).status(f"bounds of {instance.n_arms} arms"):
        time, regret, arms = tolerance_overview(instance, delta, slack, fine)
    noise = "" if instance.noise == Distribution.GAUSSIAN else ", for Gaussian noise with these variances"
    typer.echo(
        f"{instance.n_arms} arms, {instance.n_objectives} objectives, "
        f"tolerance {slack}, resolution {fine}, δ = {delta:g}\n"
        f"characteristic time in [{time.low:,.2f}, {time.high:,.2f}]{noise}: any δ-correct algorithm needs "
        f"{time.least_pulls(delta):,.0f} pulls on average until an acceptable arm is certified\n"
        f"over T = {horizon:,.0f} pulls: unacceptable arms get at least "
        f"{_rounded(regret.low, math.floor)}·log T = {_whole(regret.low * math.log(horizon))} of them\n"
    )
    print_table(arms, "per arm: whether it is acceptable and what that takes, share of the bound's pulls")
