"""Many runs of many cells, on threads or on a cluster; with a folder, they survive a kill."""

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

from lexbandits._validation import whole
from lexbandits.environments.instance import Instance
from lexbandits.policies.policy import Policy
from lexbandits.simulation.code import code_of
from lexbandits.simulation.replicate import Runs, noise_stream, recording_rounds
from lexbandits.simulation.results import CellInfo, Results, description
from lexbandits.simulation.store import Store, block_size
from lexbandits.simulation.trajectory import LONGEST, check_match
from lexbandits.simulation.workers import Task, bar, runner

MOST = 10**7  # replications of a cell


class Cell(NamedTuple):
    """One entry of a sweep: a policy against an instance.

    Args:
        name: by which its results are asked for.
        policy: in any state; fresh copies run.
        instance: what is true.
        horizon: the most pulls of a run.

    >>> from lexbandits import Instance, RoundRobin
    >>> Cell("turns", RoundRobin(2, 1), Instance([[1.0], [0.5]]), horizon=10).name
    'turns'
    """

    name: str
    policy: Policy
    instance: Instance
    horizon: int


def sweep(
    cells: Iterable[Cell],
    *,
    replications: int,
    seed: int = 0,
    n_jobs: int = 1,
    backend: str | None = None,
    out: str | Path | None = None,
    progress: bool = False,
) -> Results:
    """Run every cell many times: replication r is `simulate(…, seed=seed, replication=r)`.

    The numbers depend on (seed, replication) alone, and cells with the same instance see the same
    Gaussian noise (`Results.streams` names the exceptions).

    Args:
        cells: policies against instances.
        replications: runs of each.
        seed: of all of them.
        n_jobs: threads; −1: one for each core. Elsewhere the cluster's size counts.
        backend: None or "threads", "dask" (the active Client), "dask:tcp://host:port" or "ray".
        out: a folder in which finished blocks are kept; the same call, or one with more replications or
            cells, goes on from them.
        progress: show a bar.
    """
    checked = _checked_cells(cells)
    replications = whole("replications", replications, least=1, most=MOST)
    seed = whole("seed", seed, least=0)
    run = runner(backend, n_jobs)
    info = {cell.name: _info(cell) for cell in checked}
    told = {name: description(cell) for name, cell in info.items()}
    with nullcontext() if out is None else Store.prepared(out, seed, told) as store:
        blocks = {cell.name: store.read(cell.name) if store else {} for cell in checked}
        tasks = [task for cell in checked for task in _missing(cell, seed, replications, blocks[cell.name])]
        with bar(sum(task.end - task.first for task in tasks), progress) as advance:
            for task, runs in run(tasks):
                start = task.first - task.first % block_size(task.horizon)
                known = blocks[task.cell]
                known[start] = Runs.joined([known[start], runs]) if start in known else runs
                if store:
                    store.write(task.cell, known[start])
                advance(task.end - task.first, int(runs.rounds.sum()))
    joined = {name: Runs.joined(list(known.values())) for name, known in blocks.items()}
    asked = {name: runs.rows(runs.replication < replications) for name, runs in joined.items()}
    return Results(seed, info, asked)


def _missing(cell: Cell, seed: int, replications: int, blocks: dict[int, Runs]) -> Iterator[Task]:
    """What is not there yet. Bounds of blocks depend on the cell alone."""
    size = block_size(cell.horizon)
    for start in range(0, replications, size):
        first = start + (blocks[start].replication.size if start in blocks else 0)
        end = min(start + size, replications)
        if first < end:
            yield Task(*cell, seed, first, end)


def _info(cell: Cell) -> CellInfo:
    _, policy, instance, horizon = cell
    return CellInfo(
        policy.name,
        policy.settings,
        instance,
        horizon,
        noise_stream(policy, instance),
        None if policy.round_robin else recording_rounds(policy, horizon),
        {"policy": code_of(type(policy)), "noise": code_of(instance.noise)},
    )


def _checked_cells(cells: Iterable[Cell]) -> list[Cell]:
    try:
        given: list[Any] = list(cells)
    except TypeError:
        raise TypeError(f"cells must be a list of Cell, got {cells!r}") from None
    if not given:
        raise ValueError("a sweep needs at least one cell")
    checked: dict[str, Cell] = {}
    for cell in given:
        if not isinstance(cell, tuple) or len(cell) != 4:
            raise TypeError(f"a cell is Cell(name, policy, instance, horizon), got {cell!r}")
        name, policy, instance, horizon = cell
        if not isinstance(name, str):
            raise TypeError(f"a cell's name must be a string, got {name!r}")
        if name in checked:
            raise ValueError(f"cell names must differ, got {name!r} twice")
        try:
            check_match(policy, instance)
        except (TypeError, ValueError) as error:
            raise type(error)(f"cell {name!r}: {error}") from None
        horizon = whole(f"horizon of cell {name!r}", horizon, least=0, most=LONGEST)
        checked[name] = Cell(name, policy, instance, horizon)
    return list(checked.values())
