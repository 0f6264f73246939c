"""The command line: `lexbandits paper | simulate | bounds | headline | ignorance | practice`."""

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


@app.callback()
def lexbandits() -> None:
    """Lexicographic bandits: several noisy measures in strict order of priority."""


@app.command()
def simulate(
    spec: Annotated[Path, typer.Argument(help="A TOML file: instances, policies, horizon, replications.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Where results go; started again, it goes on. [SPEC's name in results/]"),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = -1,
    backend: Annotated[
        str | None, typer.Option(help='"dask:tcp://host:port", or "ray" for a cluster that is running.')
    ] = None,
) -> None:
    """Run every policy of a file against every instance of it; table, CSV and figure out."""
    from lexbandits.simulation import summary
    from lexbandits.simulation.spec import load
    from lexbandits.simulation.sweep import sweep

    folder = out or Path("results") / spec.stem
    try:
        asked = load(spec)
        if backend == "ray":
            import ray

            ray.init(address="auto")
        results = sweep(
            asked.cells,
            replications=asked.replications,
            seed=asked.seed,
            n_jobs=jobs,
            backend=backend,
            out=folder / "blocks",
            progress=True,
        )
    except (OSError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    summary.write(results, folder)
    _show(summary.table(results))
    typer.echo(f"{folder}: runs.csv, summary.csv, regret.svg; blocks/ to go on from")


@app.command()
def paper(
    out: Annotated[
        Path, typer.Option(help="Where everything goes; started again, it goes on where it was.")
    ] = Path("results/paper"),
    replications: Annotated[
        int | None, typer.Option(help="Runs of every cell. [100, or 5 with --quick]", min=2)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = -1,
    only: Annotated[
        list[str] | None,
        typer.Option(help="acceleration, regret, samples, bounds or sensitivity; can be repeated."),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="Judge one claim alone, by its name in the report; no figures.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: 5 runs of every cell.")] = False,
) -> None:
    """Run the paper's experiments again: figures, CSV, and a report with a verdict on every claim."""
    from lexbandits.reproduction import claims, report
    from lexbandits.reproduction import paper as experiments

    runs = replications or (experiments.QUICK_REPLICATIONS if quick else experiments.REPLICATIONS)
    command = f"lexbandits paper --out {out}"
    if runs != experiments.REPLICATIONS:
        command += f" --replications {runs}"
    try:
        chosen = [claims.named(claim).section] if claim else only
        sections = experiments.checked_sections(chosen or experiments.SECTIONS)
        tables = experiments.measure(
            sections, replications=runs, n_jobs=jobs, out=out / "runs", progress=True
        )
    except (OSError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    verdicts = claims.verdicts(tables, sections, command)
    if claim:
        row = verdicts.set_index("claim").loc[claim]
        typer.echo(f"{row['statement']} ({row['source']})\n\n{row['verdict']}\n")
        for line in row["numbers"].split("\n"):
            typer.echo(f"- {line}")
        return
    typer.echo("drawing the figures")
    page = report.write(
        out,
        tables=tables,
        verdicts=verdicts,
        settings=experiments.settings(runs),
        command=command + "".join(f" --only {section}" for section in only or ()),
    )
    _show_verdicts(verdicts)
    typer.echo(f"{page}: open it in a browser; {out}/figures and {out}/data beside it")


@app.command()
def bounds(
    instance: Annotated[
        Path | None, typer.Argument(help="A TOML file with means, noise_sd, …; or use --paper.")
    ] = None,
    paper: Annotated[int | None, typer.Option(help="The paper's instance with this many arms.")] = None,
    delta: Annotated[float, typer.Option(help="Probability of a wrong answer.")] = 0.01,
    tradeoff: Annotated[float | None, typer.Option(help="λ. [the instance's least]")] = None,
) -> None:
    """What the theory says about an instance: the bounds as printed and as proved, and the lower bound."""
    from lexbandits.simulation.spec import load_instance
    from lexbandits.theory.overview import bounds as everything
    from lexbandits.world.examples import paper_instance

    try:
        if (instance is None) == (paper is None):
            raise ValueError("name one instance: a TOML file, or --paper K")
        chosen = load_instance(instance) if instance is not None else paper_instance(paper or 0)
        told = everything(chosen, delta, tradeoff=tradeoff)
    except (OSError, TypeError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    certified = "certified" if told.time.certified else "its upper end not certified"
    typer.echo(
        f"{chosen.n_arms} arms, {chosen.n_objectives} objectives, lex-optimal arm {chosen.lex_optimal_arm}, "
        f"λ = {told.tradeoff:g}, δ = {delta:g}, widths that match the noise\n"
        f"characteristic time in [{told.time.low:,.2f}, {told.time.high:,.2f}] ({certified}): "
        f"any δ-correct algorithm needs {told.lower:,.0f} pulls on average\n"
    )
    per_objective = told.objectives.set_index("objective").T.reset_index(names="objective")
    leaving = [name for name in told.arms.columns if name.startswith(("out", "in"))]
    _print_frame("per objective: arms that tie so far, and the bounds of Theorems 1-4", per_objective)
    _print_frame(
        "per arm: gaps, margins over the noise, share of the lower bound's pulls",
        told.arms.drop(columns=leaving),
    )
    _print_frame("per arm: most pulls before it leaves (Lemmas 5 and 7)", told.arms[["arm", *leaving]])


@app.command()
def headline(
    out: Annotated[Path, typer.Option(help="Where it goes; started again, it goes on.")] = Path(
        "results/headline"
    ),
    replications: Annotated[int, typer.Option(help="Runs of every cell.", min=2)] = 1000,
    arms: Annotated[
        list[int] | None, typer.Option(help="Arms of the paper's instance; can be repeated. [10 20 30]")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Algorithms, as LexElim-Cone; can be repeated. [all]")
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = -1,
) -> None:
    """Pulls and errors of the elimination policies on the paper's instances, beside the lower bound."""
    from lexbandits.reproduction import headline as tables

    try:
        table = tables.headline(
            arms=arms or tables.ARMS,
            only=only,
            replications=replications,
            n_jobs=jobs,
            out=out / "runs",
            progress=True,
        )
    except (OSError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    table.to_csv(out / "headline.csv", index=False)
    typer.echo(tables.headline_markdown(table))


@app.command()
def ignorance(
    out: Annotated[Path, typer.Option(help="Where it goes; started again, it goes on.")] = Path(
        "results/ignorance"
    ),
    replications: Annotated[int, typer.Option(help="Runs of every cell.", min=2)] = 1000,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = -1,
) -> None:
    """What it costs not to know λ, the noise or its correlation, and what tolerances cost."""
    from lexbandits.reproduction import ignorance as tables

    table = tables.ignorance(replications=replications, n_jobs=jobs, out=out / "runs", progress=True)
    table.to_csv(out / "ignorance.csv", index=False)
    figure = tables.ignorance_figure(table)
    figure.savefig(out / "ignorance.png", dpi=150)
    figure.savefig(out / "ignorance.pdf")
    pulls = [
        f"{mean:,.0f} ± {error:,.0f}" for mean, error in zip(table.pulls, table.standard_error, strict=True)
    ]
    shown = table.assign(pulls=pulls)[["topic", "told", "value", "pulls", "stopped", "wrong", "broken"]]
    _print_frame(f"what it costs not to know: {replications} runs each, δ = {table.delta.iloc[0]:g}", shown)
    typer.echo(f"{out}: ignorance.csv, ignorance.png, ignorance.pdf")


@app.command()
def practice(
    out: Annotated[Path, typer.Option(help="Where it goes; started again, it goes on.")] = Path(
        "results/practice"
    ),
    replications: Annotated[
        int | None, typer.Option(help="Runs of every cell. [300, or 20 with --quick]", min=2)
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Studies by name; can be repeated. [all]")] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = -1,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: 20 runs of every cell.")] = False,
) -> None:
    """LexElim-Tol beside what people do today, on realistic studies: pulls and broken promises."""
    from lexbandits.reproduction import practice as benchmark

    runs = replications or (benchmark.QUICK_REPLICATIONS if quick else benchmark.REPLICATIONS)
    try:
        table = benchmark.practice(only=only, replications=runs, n_jobs=jobs, out=out / "runs", progress=True)
    except (OSError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    benchmark.write(table, out)
    typer.echo((out / "practice.md").read_text())
    typer.echo(f"{out}: practice.csv, practice.md, practice.svg, practice.png")


def _print_frame(title: str, frame: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table(*(str(name).replace("_", " ") for name in frame.columns), title=title, title_justify="left")
    for row in frame.itertuples(index=False):
        shown.add_row(*map(_number, row))
    Console().print(shown)


def _number(value: Any) -> str:
    if not isinstance(value, float):
        return str(value).replace("_", " ")
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _show_verdicts(verdicts: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table("claim", "verdict")
    for row in verdicts.to_dict("records"):
        shown.add_row(row["claim"], row["verdict"])
    Console().print(shown)


def _show(summary: Any) -> None:
    """Print the summary of a sweep; where nothing stopped there is no error rate to show."""
    from rich.console import Console
    from rich.table import Table

    shown = Table("cell", "pulls", "stopped", "wrong", "error rate, 95 %")
    for row in summary.to_dict("records"):
        interval = f"{row['error rate low']:.3g} – {row['error rate high']:.3g}"
        shown.add_row(
            row["cell"],
            f"{row['pulls']:,.0f} ± {row['standard error']:,.0f}",
            f"{row['stopped']} of {row['replications']}",
            str(row["wrong"]),
            interval if row["stopped"] else "no answers",
        )
    Console().print(shown)


if __name__ == "__main__":
    app()
