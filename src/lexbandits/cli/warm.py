"""`lexbandits warm`: compile before anybody waits for it. `jit` runs it as a process of its own."""

import multiprocessing
import os
import sys
import threading
from concurrent.futures import ProcessPoolExecutor, as_completed
from importlib.util import find_spec
from typing import Any

GIVEN = {  # settings without a default, by name
    "delta": 0.3,
    "tolerance": 0.5,
    "tradeoff": 1.0,
    "optimal_set_sizes": [2, 1],
    "alpha": 1.5,
    "epsilon": 0.5,
    "horizon": 100,
}


def live() -> None:
    """What studies run: one policy, through every entry that it has."""
    from lexbandits.policies import LexElimTol

    policy = LexElimTol(
        3, 2, delta=0.3, tolerance=0.1, noise=[("bounded", 0, 1), "gaussian"], at_least=[0.5, None]
    )
    policy.tell_many([0, 1], [[0.5, 1.0], [0.4, 2.0]])
    policy.tell(2, [0.5, 1.0], item=1)  # it waits
    policy.tell(2, [0.5, 3.0])
    policy.best_guess(), policy.intervals, policy.target_bounds, policy.certificate


def lists() -> None:
    """What studies about a list of items run."""
    from lexbandits.policies import LexElimTol

    noise = [("bounded", 0, 1), "gaussian"]
    policy = LexElimTol(2, 2, delta=0.3, tolerance=0.1, noise=noise, at_least=[0.5, None], n_items=3)
    policy.tell_many([0, 1], [[0.5, 1.0], [0.4, 2.0]])
    policy.tell(*policy.ask_place()[:1], [0.5, 3.0])
    policy.best_guess(), policy.intervals, policy.target_bounds, policy.certificate, policy.exact


def forecast() -> None:
    """What their forecasts play on."""
    from lexbandits.forecasting.forecast import forecast
    from lexbandits.policies import LexElimTol

    forecast(LexElimTol(2, 1, delta=0.3, tolerance=0.5), [[0.0], [3.0]], sd=1.0, runs=1, most=10)


def list_forecast() -> None:
    """The same of lists."""
    from lexbandits.forecasting.forecast import forecast
    from lexbandits.policies import LexElimTol

    forecast(LexElimTol(2, 1, delta=0.3, tolerance=0.5, n_items=3), [[0.0], [3.0]], sd=1.0, runs=1)


STUDIES = {
    "studies": live,
    "forecasts": forecast,
    "studies of lists": lists,
    "forecasts of lists": list_forecast,
}


def compile_for(names: list[str]) -> int:
    """Compile `STUDIES`, or what policies run: live, and with `research` simulated and their bounds."""
    import lexbandits as lb
    from lexbandits import _compiled, _jit

    _jit.MODE = "1"
    _compiled.announced.append(True)  # here everything is compiled, and a bar shows how far it is
    for name in names:
        if name in STUDIES:
            STUDIES[name]()
            continue
        made = _example(lb.policies.BY_NAME[name])
        made.tell(made.ask(), [0.0, 0.0])
        made.tell_many([0, 1], [[0.5, 0.5], [1.0, 1.0]])
        if find_spec("joblib") is not None:  # and with it the rest of the extra `research`
            instance = lb.Instance([[0.0, 1.0], [1.0, 0.5], [1.0, 2.0]], noise_sd=0.3)
            lb.simulate(made, instance, horizon=10, seed=0)
            lb.sweep([lb.simulation.Cell(made.name, made, instance, 10)], replications=1, n_jobs=1)
            lb.characteristic_time(instance)
    return len(names)


def warm() -> None:
    """Compile everything, for images: nobody waits for it later. Kept in NUMBA_CACHE_DIR, or ~/.cache."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    import lexbandits as lb
    from lexbandits import _compiled
    from lexbandits._extras import MissingExtra

    if find_spec("numba") is None:
        raise MissingExtra("numba", "compiling")
    began = time.perf_counter()
    if not _compiled.can_keep():
        raise ValueError(
            f"nothing can be written to {_compiled.folder() or '~/.cache'}: say where with NUMBA_CACHE_DIR"
        )
    first = [*STUDIES, lb.LexElimTol.__name__]  # half of all, and of the same kernels: one process
    parts = [first, *([name] for name in lb.policies.BY_NAME if name not in first)]
    processes = min(os.cpu_count() or 1, 4)
    with (
        Progress(TextColumn("compiling {task.description}"), BarColumn(), TimeElapsedColumn(),
                 console=Console(stderr=True)) as display,
        ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool,
    ):  # fmt: skip
        task = display.add_task("everything", total=sum(map(len, parts)))
        for done in as_completed([pool.submit(compile_for, part) for part in parts]):
            display.advance(task, done.result())
    print(f"compiled in {time.perf_counter() - began:.0f} s, kept in {_compiled.folder()}")


def _example(policy: Any) -> Any:
    import inspect

    wanted = inspect.signature(policy.__init__).parameters.values()
    given = {
        each.name: GIVEN[each.name]
        for each in wanted
        if each.kind is each.KEYWORD_ONLY and each.default is each.empty
    }
    return policy(3, 2, **given)


def _end_with_who_began_it() -> None:
    """Nobody waits any more for what a process compiles whose parent has ended, by whatever signal."""
    sys.stdin.buffer.read()
    os._exit(1)


if __name__ == "__main__":
    threading.Thread(target=_end_with_who_began_it, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(1)  # others are measuring, but it must come to its end beside them
    for step in STUDIES.values():
        step()
