"""Progress bars: of a run (results, candidates, how many more), and of a computation in stages."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Protocol, TypeVar

from lexbandits._jit import Compiling, refusing_to_wait
from lexbandits.study.number_format import about
from lexbandits.study.states import StudyState

if TYPE_CHECKING:
    from rich.console import Console

    from lexbandits.study.core.queries import Status
    from lexbandits.study.study import Study

OFTEN = 0.2  # seconds between two looks
FUTURES = 20  # of a forecast: enough for "about 1,200 more"
SHARE = 20  # a forecast may take one part in so many of the time
LONG = 30.0  # seconds: a run that takes longer has what forecasts need compiled, beside it
PATIENCE = 2.0  # seconds before a computation shows a bar

T = TypeVar("T")


class Outlook:
    """How many more results it will take, looked at now and then."""

    def __init__(self, study: "Study", first: float = 3.0) -> None:
        self._study, self._text, self._began = study, "", time.monotonic()
        self._next = self._began + first

    def text(self) -> str:
        """Such as "about 1,200 more"; nothing while nobody can know."""
        start = time.monotonic()
        if start >= self._next:
            try:
                with refusing_to_wait(begin=start > self._began + LONG):
                    needed = self._study.forecast(runs=FUTURES).results
            except (Compiling, ValueError):  # or too little was measured, or it is measured elsewhere
                self._text = ""
            else:
                self._text = f" · about {about(needed.median)} more" if needed.high else ""
            took = time.monotonic() - start
            self._next = start + took + max(SHARE * took, 5.0)
        return self._text


def _news(status: "Status", arms: int, more: str, note: str) -> tuple[int | None, str]:
    """How many results there will be at most, and what to say beside the bar."""
    if status.state == StudyState.FINISHED:
        return status.results, f"{status.results:,} results · {note or 'finished'}"
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
            total, news = _news(status, arms, outlook.text() if status.objective else "", note)
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


# --- a computation in stages


class ProgressListener(Protocol):
    """Whoever wants to know how far a computation is."""

    def expect(self, comparisons: int, seconds: float) -> None:
        """Hear what it will take, before it begins."""

    def reach(self, stage: str, done: int, total: int) -> None:
        """Hear which part of a stage is done."""


WATCHER: ContextVar[ProgressListener | None] = ContextVar("WATCHER", default=None)


def watched(stage: str, things: Sequence[T]) -> Iterator[T]:
    """Yield `things`, and tell the watcher, if there is one, how many of them are done."""
    watcher = WATCHER.get()
    for done, thing in enumerate(things):
        if watcher is not None:
            watcher.reach(stage, done, len(things))
        yield thing


class Stages:
    """A bar on a terminal, once a computation has taken two seconds; elsewhere nothing."""

    def __init__(
        self,
        say: Callable[[int, float], None],
        console: "Console | None" = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        shown = TextColumn("{task.description}", markup=False)
        console = console or Console(stderr=True)
        self._display = Progress(shown, BarColumn(), TimeElapsedColumn(), console=console, transient=True)
        self._say, self._clock, self._began = say, clock, clock()
        self._last = -OFTEN
        self._wanted, self._task = console.is_terminal, self._display.add_task("", total=None)

    def expect(self, comparisons: int, seconds: float) -> None:
        """Say what it will take."""
        self._say(comparisons, seconds)

    def reach(self, stage: str, done: int, total: int) -> None:
        """Show how far it is, now and then."""
        now = self._clock()
        if self._wanted and now - self._began >= PATIENCE and now - self._last >= OFTEN:
            self._last = now
            self._display.start()
            self._display.update(self._task, description=stage, completed=done, total=total)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch what is computed inside."""
        token = WATCHER.set(self)
        try:
            yield
        finally:
            WATCHER.reset(token)
            if self._display.live.is_started:  # otherwise it would end a line that nobody began
                self._display.stop()
