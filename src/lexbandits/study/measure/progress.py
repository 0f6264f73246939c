"""The progress bar of a run: results, candidates, what is being settled, how many more."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lexbandits.jit import Compiling, refusing_to_wait
from lexbandits.study.words import about

if TYPE_CHECKING:
    from lexbandits.study.record.answers import Status
    from lexbandits.study.study import Study

OFTEN = 0.2  # seconds between two looks
FUTURES = 20  # of a forecast: enough for "about 1,200 more"
SHARE = 20  # a forecast may take one part in so many of the time
LONG = 30.0  # seconds: a run that takes longer has what forecasts need compiled, beside it


class Outlook:
    """How many more results it will take, looked at now and then."""

    def __init__(self, study: "Study", first: float = 3.0) -> None:
        self._study, self._words, self._began = study, "", time.monotonic()
        self._next = self._began + first

    def words(self) -> str:
        """Such as "about 1,200 more"; nothing while nobody can know."""
        start = time.monotonic()
        if start >= self._next:
            try:
                with refusing_to_wait(begin=start > self._began + LONG):
                    needed = self._study.forecast(runs=FUTURES).results
            except (Compiling, ValueError):  # or too little was measured, or it is measured elsewhere
                self._words = ""
            else:
                self._words = f" · about {about(needed.median)} more" if needed.high else ""
            took = time.monotonic() - start
            self._next = start + took + max(SHARE * took, 5.0)
        return self._words


def _news(status: "Status", arms: int, more: str, note: str) -> tuple[int | None, str]:
    """How many results there will be at most, and what to say beside the bar."""
    settling = f" · settling {status.objective}" if status.objective else ""
    if status.at_most is None:
        left = f"{len(status.candidates)} candidates{settling}{more}"
        return status.budget, f"{status.results:,} results · {note or left}"
    most = status.results + status.at_most
    total = most if status.budget is None else min(most, status.budget)
    left = f"{more.removeprefix(' · ')}{' · ' * bool(more)}{len(status.candidates)} of {arms} left{settling}"
    return total, f"{status.results:,} of at most {total:,} · {note or left}"


@contextmanager
def bar(study: "Study", wanted: bool) -> Iterator[Callable[..., None]]:
    """A function that shows how far the study is; after Ctrl-C it says how to go on."""
    if not wanted:
        yield lambda **_: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[news]}", markup=False),
        TimeElapsedColumn(),
    )
    outlook, arms = Outlook(study), len(study.arms)
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(study.name, total=None, news="")
        shown, said = -OFTEN, ""

        def show(at_once: bool = False, note: str = "") -> None:
            nonlocal shown, said
            if note not in ("", said) and not display.console.is_terminal:  # a log has no bar
                display.console.print(f"{study.name}: {note}", markup=False, soft_wrap=True)
            said = note
            if not at_once and not note and time.monotonic() - shown < OFTEN:
                return
            status = study.status
            total, news = _news(status, arms, outlook.words() if status.objective else "", note)
            display.update(task, total=total, completed=status.results, news=news)
            shown = time.monotonic()

        try:
            show()
            yield show
            show(at_once=True)
        except KeyboardInterrupt as stopped:
            became = "".join(f" {note}." for note in getattr(stopped, "__notes__", ()))
            text = f"stopped.{became} Open study {study.name!r} and call run again to go on"
            display.console.print(text, markup=False)
            raise
