"""Who does the work of a sweep: threads here, Dask or Ray elsewhere."""

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from importlib.util import find_spec
from typing import NamedTuple, TypeVar

from lexbandits._code import Code
from lexbandits._extras import MissingExtra, need
from lexbandits._validation import whole
from lexbandits.environments.instance import Instance
from lexbandits.policies.policy import Policy
from lexbandits.simulation.replicate import Runs, engine, replicate

T = TypeVar("T")
Found = TypeVar("Found")


class Task(NamedTuple):
    """Replications first .. end − 1 of a cell: all of a block, or what it lacks."""

    cell: str
    policy: Policy
    instance: Instance
    horizon: int
    seed: int
    first: int
    end: int


Runner = Callable[[list[Task]], Iterator[tuple[Task, Runs]]]  # each with its runs, as they are finished


class Backend(Code):
    """Who runs a sweep; that of Dask may be followed by an address."""

    THREADS = "threads"
    DASK = "dask"
    RAY = "ray"


def runner(backend: str | None, n_jobs: int) -> Runner:
    """Who does the work; what is wrong with the choice is said at once."""
    if backend is None or backend == Backend.THREADS:
        jobs = whole("n_jobs", n_jobs, least=-1)
        if jobs == 0:
            raise ValueError("n_jobs must be positive, or -1 for one thread per core, got 0")
        need("joblib", "a sweep")
        return partial(_on_threads, n_jobs=jobs)
    kind, _, address = str(backend).partition(":")
    modules: dict[str, str] = {Backend.DASK: "distributed", Backend.RAY: "ray"}
    if kind not in modules or (address and kind == Backend.RAY):
        choices = '"threads", "dask", "dask:tcp://host:port" or "ray"'
        wrong = ValueError if isinstance(backend, str) else TypeError
        raise wrong(f"backend must be None, {choices}, got {backend!r}")
    if find_spec(modules[kind]) is None:
        raise MissingExtra(modules[kind], f'backend="{kind}"')
    return _on_ray if kind == Backend.RAY else partial(_on_dask, address=address)


def _on_threads(tasks: list[Task], n_jobs: int) -> Iterator[tuple[Task, Runs]]:
    for task in tasks:
        engine(task.policy, task.instance)  # made once, so that threads do not compile it twice
    yield from on_threads(_work, tasks, n_jobs)


def on_threads(
    work: Callable[[T, Callable[[], bool]], Found], tasks: Iterable[T], n_jobs: int
) -> Iterator[Found]:
    """What work(task, cancelled) gives for each task, as they are finished."""
    joblib, cancel = need("joblib", "a sweep"), threading.Event()
    parallel = joblib.Parallel(n_jobs, backend="threading", batch_size=1, return_as="generator_unordered")
    try:
        yield from parallel(joblib.delayed(work)(task, cancel.is_set) for task in tasks)
    finally:
        cancel.set()  # after Ctrl-C the threads stop at their next call


def _on_dask(tasks: list[Task], address: str) -> Iterator[tuple[Task, Runs]]:
    import joblib
    from distributed import Client, get_client

    with ExitStack() as stack:
        try:
            client = stack.enter_context(Client(address)) if address else get_client()  # type: ignore[no-untyped-call]
        except (OSError, ValueError) as error:
            how = f"found nobody at {address!r}" if address else "needs an active Client"
            raise ValueError(f'backend="dask" {how}: give an address, "dask:tcp://host:port"') from error
        stack.enter_context(joblib.parallel_config(backend="dask", client=client))
        parallel = joblib.Parallel(n_jobs=-1, batch_size=1, return_as="generator_unordered")
        yield from parallel(joblib.delayed(_work)(task) for task in tasks)


def _on_ray(tasks: list[Task]) -> Iterator[tuple[Task, Runs]]:
    import joblib
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
            yield from parallel(joblib.delayed(_work)(task) for task in tasks[start : start + wave])


def _work(task: Task, cancelled: Callable[[], bool] = lambda: False) -> tuple[Task, Runs]:
    _, policy, instance, horizon, seed, first, end = task
    return task, replicate(
        policy, instance, horizon=horizon, seed=seed, first=first, count=end - first, cancelled=cancelled
    )


@contextmanager
def bar(replications: int, shown: bool) -> Iterator[Callable[[int, int], None]]:
    """Give advance(replications, rounds), and show a bar if asked to."""
    if not shown or replications == 0:
        yield lambda replications, rounds: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    news = TextColumn("replications · {task.fields[rate]:.2f} million rounds/s ·")
    columns = (BarColumn(), MofNCompleteColumn(), news, TimeRemainingColumn(), TextColumn("left"))
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task("", total=replications, rate=0.0)
        start, total = time.monotonic(), 0

        def advance(replications: int, rounds: int) -> None:
            nonlocal total
            total += rounds
            seconds = max(time.monotonic() - start, 1e-9)
            display.update(task, advance=replications, rate=total / seconds / 1e6)

        yield advance
