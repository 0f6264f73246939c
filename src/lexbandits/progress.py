"""A progress bar for sweeps: replications done, rounds per second, the time left."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


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
