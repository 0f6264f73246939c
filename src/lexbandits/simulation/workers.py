"""Who does the work of a sweep: threads here, Dask or Ray elsewhere."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

import joblib
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lexbandits.checks import whole
from lexbandits.policies.policy import Policy
from lexbandits.simulation.replicate import Runs, engine, replicate
from lexbandits.world.instance import Instance


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


@contextmanager
def bar(replications: int) -> Iterator[Callable[[int, int], None]]:
    """Show a bar and give advance(replications, rounds)."""
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("replications · {task.fields[rate]} rounds/s ·"),
        TimeRemainingColumn(),
        TextColumn("left"),
    )
    with Progress(*columns) as display:
        task = display.add_task("", total=replications, rate="–")
        start, total = time.monotonic(), 0

        def advance(replications: int, rounds: int) -> None:
            nonlocal total
            total += rounds
            rate = total / max(time.monotonic() - start, 1e-9)
            display.update(task, advance=replications, rate=_short(rate))

        yield advance


def _short(rate: float) -> str:
    """
    >>> _short(81_234_567.0)
    '81.2M'
    """
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rate >= limit:
            return f"{rate / limit:.1f}{unit}"
    return f"{rate:.0f}"
