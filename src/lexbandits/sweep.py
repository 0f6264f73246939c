"""Many runs of many cells, on threads or on a cluster; with a folder, they survive a kill."""

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import joblib

from lexbandits.instance import Instance
from lexbandits.policies.base import Policy
from lexbandits.policies.checks import whole
from lexbandits.results import CellInfo, Results, description
from lexbandits.runs import Runs, engine, noise_stream, recording_rounds, replicate
from lexbandits.simulate import check_match
from lexbandits.store import Store, block_size

__all__ = ["Cell", "Results", "sweep"]


class Cell(NamedTuple):
    """One entry of a sweep: a policy against an instance, for at most `horizon` pulls."""

    name: str
    policy: Policy
    instance: Instance
    horizon: int


class Task(NamedTuple):
    """Replications first .. end − 1 of a cell: all of a block, or what it lacks."""

    cell: Cell
    first: int
    end: int


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


# --- who does the work: each runner yields (task, runs) as they come

Runner = Callable[[list[Task], int], Iterator[tuple[Task, Runs]]]


def _runner(backend: str | None, n_jobs: int) -> Runner:
    if backend is not None and not isinstance(backend, str):
        raise TypeError(f"backend must be None or a string, got {backend!r}")
    if backend in (None, "threads"):
        jobs = whole("n_jobs", n_jobs, least=-1)
        if jobs == 0:
            raise ValueError("n_jobs must be positive, or -1 for one thread per core, got 0")
        return lambda tasks, seed: _on_threads(tasks, seed, jobs)
    if backend == "dask" or (backend or "").startswith("dask:"):
        address = (backend or "").partition(":")[2]
        return lambda tasks, seed: _on_dask(tasks, seed, address)
    if backend == "ray":
        return _on_ray
    raise ValueError(
        f'backend must be None, "threads", "dask", "dask:tcp://host:port" or "ray", got {backend!r}'
    )


def _on_threads(tasks: list[Task], seed: int, n_jobs: int) -> Iterator[tuple[Task, Runs]]:
    for task in tasks:
        engine(task.cell.policy, task.cell.instance)  # made once, so that threads do not compile it twice
    cancel = threading.Event()
    parallel = joblib.Parallel(n_jobs, backend="threading", batch_size=1, return_as="generator_unordered")
    try:
        yield from parallel(joblib.delayed(_work)(task, seed, cancel.is_set) for task in tasks)
    finally:
        cancel.set()  # after Ctrl-C the threads stop at their next call


def _on_dask(tasks: list[Task], seed: int, address: str) -> Iterator[tuple[Task, Runs]]:
    from distributed import Client, get_client

    with ExitStack() as stack:
        client = stack.enter_context(Client(address)) if address else get_client()  # type: ignore[no-untyped-call]
        stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        parallel = joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
        yield from parallel(joblib.delayed(_work)(task, seed) for task in tasks)


def _on_ray(tasks: list[Task], seed: int) -> Iterator[tuple[Task, Runs]]:
    import ray
    from ray.util.joblib import register_ray

    register_ray()  # type: ignore[no-untyped-call]
    if not ray.is_initialized():
        raise ValueError('backend="ray" uses the running Ray: call ray.init() first')
    # Ray's joblib backend hands back whole lists: waves let finished blocks reach the disk meanwhile
    cluster: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    wave = 4 * max(1, int(cluster.get("CPU", 1)))
    with joblib.parallel_config(backend="ray"), joblib.Parallel(n_jobs=-1, batch_size=1) as parallel:
        for start in range(0, len(tasks), wave):
            yield from parallel(joblib.delayed(_work)(task, seed) for task in tasks[start : start + wave])


def _work(task: Task, seed: int, cancelled: Callable[[], bool] = lambda: False) -> tuple[Task, Runs]:
    cell, first, end = task
    runs = replicate(
        cell.policy,
        cell.instance,
        horizon=cell.horizon,
        seed=seed,
        first=first,
        count=end - first,
        cancelled=cancelled,
    )
    return task, runs


def _bar(shown: bool, replications: int) -> AbstractContextManager[Callable[[int, int], None]]:
    """A progress bar as a context that gives advance(replications, rounds)."""
    if not shown:
        return nullcontext(lambda replications, rounds: None)
    from lexbandits.progress import bar

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
