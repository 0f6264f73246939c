"""The command line: `lexbandits simulate SPEC.toml`."""

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
