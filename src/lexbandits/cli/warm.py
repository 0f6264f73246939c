"""`lexbandits warm`: compile before anybody waits for it. `jit` runs it as a process of its own."""

import os
import sys
import threading
from collections.abc import Iterator
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


def steps_to_everything() -> Iterator[str]:
    """Compile what studies run, every policy live and, with `research`, simulated, and the lower bounds."""
    import lexbandits as lb

    for name, step in STUDIES.items():
        yield name
        step()
    instance = lb.Instance([[0.0, 1.0], [1.0, 0.5], [1.0, 2.0]], noise_sd=0.3)
    for name, policy in lb.policies.BY_NAME.items():
        yield name
        made = _example(policy)
        made.tell(made.ask(), [0.0, 0.0])
        made.tell_many([0, 1], [[0.5, 0.5], [1.0, 1.0]])
        if find_spec("joblib") is not None:  # and with it the rest of the extra `research`
            lb.simulate(made, instance, horizon=10, seed=0)
            lb.sweep([lb.simulation.Cell(made.name, made, instance, 10)], replications=1, n_jobs=1)
            lb.characteristic_time(instance)


def warm() -> None:
    """Compile everything, for images: nobody waits for it later. Kept in NUMBA_CACHE_DIR, or ~/.cache."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    import lexbandits as lb
    from lexbandits import _compiled, _jit
    from lexbandits._extras import MissingExtra

    if find_spec("numba") is None:
        raise MissingExtra("numba", "compiling")
    began = time.perf_counter()
    _jit.MODE = "1"
    if not _compiled.can_keep():
        raise ValueError(
            f"nothing can be written to {_compiled.folder() or '~/.cache'}: say where with NUMBA_CACHE_DIR"
        )
    _compiled.announced.append(True)  # here everything is compiled, and a bar shows how far it is
    names = len(STUDIES) + len(lb.policies.BY_NAME)
    with Progress(TextColumn("compiling {task.description}"), BarColumn(), TimeElapsedColumn(),
                  console=Console(stderr=True)) as display:  # fmt: skip
        task = display.add_task("", total=names)
        for step, name in enumerate(steps_to_everything()):
            display.update(task, description=name, completed=step)
        display.update(task, description="everything", completed=names)
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
