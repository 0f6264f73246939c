"""`python -m experiments paper`: experiments by name. A command imports what it needs when it runs."""

from pathlib import Path
from typing import Annotated

import typer

from lexbandits.cli import terminal
from lexbandits.cli.terminal import print_table

app = typer.Typer(
    cls=terminal.Commands, no_args_is_help=True, pretty_exceptions_enable=False, add_completion=False
)
command = terminal.command(app)

Jobs = Annotated[int, typer.Option(help="Threads; -1 for one per core.")]
Out = Annotated[Path, typer.Option(help="Where everything goes; started again, it goes on where it was.")]
Runs = Annotated[int, typer.Option(help="Runs of every cell.", min=2)]


@app.callback()
def experiments() -> None:
    """The experiments of the paper, and those that the pages in docs/ report."""


@command
def paper(
    out: Out = Path("results/paper"),
    replications: Annotated[
        int | None, typer.Option(help="Runs of every cell. [100, or 5 with --quick]", min=2)
    ] = None,
    jobs: Jobs = -1,
    only: Annotated[
        list[str] | None,
        typer.Option(help="acceleration, regret, samples, theorems or sensitivity; can be repeated."),
    ] = None,
    claim: Annotated[
        str | None, typer.Option(help="Judge one claim alone, by its name in the report; no figures.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: 5 runs of every cell.")] = False,
) -> None:
    """Run the paper's experiments again: figures, CSV, and a report with a verdict on every claim."""
    from experiments.paper import report
    from experiments.paper import sections as experiments

    runs = replications or (experiments.QUICK_REPLICATIONS if quick else experiments.REPLICATIONS)
    again = f"python -m experiments paper --out {out}"
    if runs != experiments.REPLICATIONS:
        again += f" --replications {runs}"
    named = [experiments.section_of(claim).NAME] if claim else only or experiments.SECTIONS
    sections = experiments.chosen_sections(named)
    tables = experiments.measure(sections, replications=runs, n_jobs=jobs, out=out / "runs", progress=True)
    verdicts = experiments.verdicts(tables, sections, again)
    if claim:
        row = verdicts.set_index("claim").loc[claim]
        numbers = "\n".join(f"- {line}" for line in row["numbers"].split("\n"))
        typer.echo(f"{row['statement']} ({row['source']})\n\n{row['verdict']}\n\n{numbers}")
        return
    typer.echo("drawing the figures")
    page = report.write(
        out,
        sections,
        tables=tables,
        verdicts=verdicts,
        settings=experiments.settings(runs),
        command=again + "".join(f" --only {name}" for name in only or ()),
    )
    print_table({name: verdicts[name] for name in ("claim", "verdict")})
    typer.echo(f"{page}: open it in a browser; {out}/figures and {out}/data beside it")


@command
def headline(
    out: Out = Path("results/headline"),
    replications: Runs = 1000,
    arms: Annotated[
        list[int] | None, typer.Option(help="Arms of the paper's instance; can be repeated. [10 20 30]")
    ] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="Algorithms, as LexElim-Pool; can be repeated. [all]")
    ] = None,
    jobs: Jobs = -1,
) -> None:
    """The table of docs/choosing.md: pulls and errors on the paper's instances, beside the lower bound."""
    from experiments import headline as tables
    from experiments.paper.experiment import ARMS

    table = tables.headline(
        arms=arms or ARMS, only=only, replications=replications, n_jobs=jobs, out=out / "runs", progress=True
    )
    table.to_csv(out / "headline.csv", index=False)
    typer.echo(tables.headline_markdown(table))


@command
def misspecification(
    out: Out = Path("results/misspecification"), replications: Runs = 1000, jobs: Jobs = -1
) -> None:
    """What it costs not to know λ, the noise or its correlation, and what tolerances cost."""
    from experiments import misspecification as tables
    from experiments.drawing import save

    table = tables.misspecification(replications=replications, n_jobs=jobs, out=out / "runs", progress=True)
    table.to_csv(out / "misspecification.csv", index=False)
    save(tables.misspecification_figure(table), out / "misspecification.svg")
    typer.echo(tables.misspecification_markdown(table))
    typer.echo(f"\n{out}: misspecification.csv, misspecification.svg")


@command
def practice(
    out: Out = Path("results/practice"),
    replications: Annotated[
        int | None, typer.Option(help="Runs of every cell. [300, or 20 with --quick]", min=2)
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Studies by name; can be repeated. [all]")] = None,
    jobs: Jobs = -1,
    quick: Annotated[bool, typer.Option("--quick", help="A first look: 20 runs of every cell.")] = False,
    changes: Annotated[
        bool, typer.Option("--changes", help="Measure instead what a change of the rules costs (150 runs).")
    ] = False,
) -> None:
    """LexElim-Tol beside what people do today, on realistic studies: pulls and broken promises."""
    from experiments.practice import benchmark
    from experiments.practice import changes as rules

    if changes:
        runs = replications or (benchmark.QUICK_REPLICATIONS if quick else rules.REPLICATIONS)
        typer.echo(
            rules.changes_markdown(rules.changes(only=only, replications=runs, n_jobs=jobs, progress=True))
        )
        return
    runs = replications or (benchmark.QUICK_REPLICATIONS if quick else benchmark.REPLICATIONS)
    table = benchmark.practice(only=only, replications=runs, n_jobs=jobs, out=out / "runs", progress=True)
    benchmark.write(table, out)
    typer.echo((out / "practice.md").read_text())
    typer.echo(f"{out}: practice.csv, practice.md, practice.svg, practice.png")


@command
def regret(
    runs: Annotated[int, typer.Option(help="Runs of the fast policies; slow ones have fewer.", min=2)] = 5000,
    out: Out = Path("results/regret"),
    page: Annotated[
        Path | None, typer.Option(help="A page whose tables, between marks, are made anew.")
    ] = None,
    jobs: Jobs = -1,
    only: Annotated[list[str] | None, typer.Option(help="Some of the sections; can be repeated.")] = None,
) -> None:
    """Regret of every policy: the tables and the figure of docs/regret.md."""
    from experiments import regret as tables

    tables.main(runs, out, page, jobs, only)


@command
def margins(
    runs: Annotated[int, typer.Option(help="Studies per scenario and margin.", min=2)] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    jobs: Jobs = -1,
) -> None:
    """What a smaller margin costs: the table of docs/planning.md."""
    from experiments import margins as tables

    typer.echo(tables.margins_markdown(runs, seed, jobs))


@command
def noise(
    runs: Annotated[int, typer.Option(help="Studies per scenario and kind.", min=2)] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
) -> None:
    """How many results a kind of noise takes: the table of docs/noise.md."""
    from experiments import noise_kinds

    typer.echo(noise_kinds.markdown(runs, seed))


@command
def serving(
    runs: Annotated[int, typer.Option(help="Studies per scenario.", min=2)] = 200,
    seed: Annotated[int, typer.Option(help="The same seed gives the same tables.")] = 0,
) -> None:
    """What serving visitors costs them: the tables of docs/serving.md."""
    from experiments import serving as experiment

    typer.echo(experiment.markdown(runs, seed))


@command
def gate(
    tables: Annotated[int, typer.Option(help="Tables per change.", min=2)] = 100,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
) -> None:
    """How often a gate ships a change, and names a regression: the table of docs/gate.md."""
    from experiments import gate as tables_of

    typer.echo(tables_of.gate_markdown(tables, seed))


@command
def zone(
    path: Annotated[Path, typer.Argument(help="A file.svg.")] = Path("docs/zone.svg"),
) -> None:
    """The figure of docs/planning.md: which leads cost most results."""
    from experiments.zone import draw

    typer.echo(draw(path))


@command
def screenshots(
    folder: Annotated[Path, typer.Argument(help="Where the pictures go.")] = Path("docs/images"),
    chromium: Annotated[str, typer.Option(help="The browser.")] = "chromium",
) -> None:
    """Pictures of a study's page and of a table's report, as the README shows them."""
    import shutil

    from experiments.screenshots import screenshots as taken

    program = shutil.which(chromium)
    if program is None:
        raise typer.BadParameter(f"there is no {chromium} here: make browser installs it")
    typer.echo("\n".join(map(str, taken(folder, program))))


@command
def folds(
    tables: Annotated[int, typer.Option(help="Cross-validations that are drawn.", min=2)] = 2000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 1,
) -> None:
    """How often cross-validation calls one of two equal learners better: docs/cross-validation.md."""
    from experiments.folds import folds_markdown

    typer.echo(folds_markdown(tables, seed))


if __name__ == "__main__":
    app(prog_name="python -m experiments")
