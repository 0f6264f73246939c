"""The command line: `lexbandits paper`, `lexbandits simulate SPEC.toml`."""

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
    from lexbandits import summary
    from lexbandits.spec import load
    from lexbandits.sweep import sweep

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
        int | None, typer.Option(help="Runs of every cell. [100, or 10 with --quick]", min=2)
    ] = None,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for one per core.")] = -1,
    only: Annotated[
        list[str] | None,
        typer.Option(help="acceleration, regret, samples, bounds or sensitivity; can be repeated."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: 10 runs of every cell.")] = False,
) -> None:
    """Run the paper's experiments again: figures, CSV, and a report with a verdict on every claim."""
    from lexbandits import claims, report
    from lexbandits import paper as experiments

    runs = replications or (experiments.QUICK_REPLICATIONS if quick else experiments.REPLICATIONS)
    command = f"lexbandits paper --out {out}"
    if runs != experiments.REPLICATIONS:
        command += f" --replications {runs}"
    try:
        sections = experiments.checked_sections(only or experiments.SECTIONS)
        tables = experiments.measure(
            sections, replications=runs, n_jobs=jobs, out=out / "runs", progress=True
        )
    except (OSError, ValueError) as error:
        typer.echo(f"Error: {error}", err=True)
        raise typer.Exit(2) from None
    verdicts = claims.verdicts(tables, sections, command)
    typer.echo("drawing the figures")
    page = report.write(
        out, tables=tables, verdicts=verdicts, settings=experiments.settings(runs), command=command
    )
    _show_verdicts(verdicts)
    typer.echo(f"{page}: open it in a browser; {out}/figures and {out}/data beside it")


def _show_verdicts(verdicts: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    shown = Table("claim", "verdict")
    for row in verdicts.to_dict("records"):
        shown.add_row(row["source"], row["verdict"])
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
