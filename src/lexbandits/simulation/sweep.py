"""Many runs of many cells, on threads or on a cluster; with a folder, they survive a kill."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from lexbandits.checks import whole
from lexbandits.policies.policy import Policy
from lexbandits.simulation.replicate import Runs, noise_stream, recording_rounds
from lexbandits.simulation.results import CellInfo, Results, description
from lexbandits.simulation.store import Store, block_size
from lexbandits.simulation.trajectory import check_match
from lexbandits.simulation.workers import Cell, Task, _runner
from lexbandits.world.instance import Instance

__all__ = ["Cell", "Results", "sweep"]


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
    """Run every cell `replications` times: replication r is `simulate(…, seed=seed, replication=r)`.

    The numbers depend on (seed, replication) alone, and cells with the same instance see the same
    Gaussian noise (`Results.streams` names the exceptions). `backend` is None or "threads" (`n_jobs`
    of them, −1: one for each core), "dask" (the active Client), "dask:tcp://host:port" or "ray": there
    the cluster's size counts, not `n_jobs`. With `out`, finished blocks are kept in that folder; the
    same call, or one with more replications or cells, goes on from them.
    """
    checked = _checked_cells(cells)
    replications = whole("replications", replications, least=1)
    seed = whole("seed", seed, least=0)
    run = _runner(backend, n_jobs)
    info = {cell.name: _info(cell) for cell in checked}
    store = None
    if out is not None:
        store = Store.prepared(out, seed, {name: description(told) for name, told in info.items()})
    blocks = {cell.name: store.read(cell.name) if store else {} for cell in checked}
    tasks = [task for cell in checked for task in _missing(cell, replications, blocks[cell.name])]
    with _bar(progress and bool(tasks), sum(task.end - task.first for task in tasks)) as advance:
        for task, runs in run(tasks, seed):
            start = task.first - task.first % block_size(task.cell.horizon)
            known = blocks[task.cell.name]
            known[start] = Runs.joined([known[start], runs]) if start in known else runs
            if store:
                store.write(task.cell.name, known[start])
            advance(task.end - task.first, int(runs.rounds.sum()))
    joined = {name: Runs.joined(list(known.values())) for name, known in blocks.items()}
    asked = {name: runs.rows(runs.replication < replications) for name, runs in joined.items()}
    return Results(seed, info, asked)


def _missing(cell: Cell, replications: int, blocks: dict[int, Runs]) -> Iterator[Task]:
    """What is not there yet. Bounds of blocks depend on the cell alone."""
    size = block_size(cell.horizon)
    for start in range(0, replications, size):
        first = start + (blocks[start].replication.size if start in blocks else 0)
        end = min(start + size, replications)
        if first < end:
            yield Task(cell, first, end)


def _info(cell: Cell) -> CellInfo:
    policy, instance = cell.policy, cell.instance
    recording = None if policy.round_robin else recording_rounds(policy, cell.horizon)
    stream = noise_stream(policy, instance)
    return CellInfo(policy.name, policy.settings, instance, cell.horizon, stream, recording)


def _bar(shown: bool, replications: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """A progress bar as a context that gives advance(replications, rounds)."""
    if not shown:
        return nullcontext(lambda replications, rounds: None)
    from lexbandits.simulation.workers import bar

    return bar(replications)


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
        if not isinstance(policy, Policy):
            raise TypeError(f"cell {name!r}: policy must be a Policy, got {policy!r}")
        if not isinstance(instance, Instance):
            raise TypeError(f"cell {name!r}: instance must be an Instance, got {instance!r}")
        if name in checked:
            raise ValueError(f"cell names must differ, got {name!r} twice")
        check_match(policy, instance)
        checked[name] = Cell(name, policy, instance, whole(f"horizon of cell {name!r}", horizon, least=0))
    return list(checked.values())
