"""`Study.run`: measure on threads, processes or any executor until there is an answer."""

import inspect
import os
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

from lexbandits.study.answers import Answer
from lexbandits.study.errors import ConflictError, StorageError, StudyError, StudyPaused
from lexbandits.study.progress import bar
from lexbandits.study.spec import seconds
from lexbandits.study.trial import Trial

if TYPE_CHECKING:
    from lexbandits.study.study import Study

Measure = Callable[..., Mapping[str, Any]]


def worker_name() -> str:
    """A name that no other worker has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


def item_passed(measure: Measure) -> str:
    """How it wants the item beside the arm: as its "second" argument, by "name", or "" for not at all."""
    try:
        parameters = list(inspect.signature(measure).parameters.values())
    except (TypeError, ValueError):
        return ""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ordered = [p for p in parameters if p.kind in kinds]
    if len(ordered) < 2 and any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return "second"
    if len(ordered) >= 2 and (ordered[1].name == "item" or ordered[1].default is inspect.Parameter.empty):
        return "second"
    is_fixed = "item" in getattr(measure, "keywords", ())  # by functools.partial
    return "name" if any(p.name == "item" for p in parameters[1:]) and not is_fixed else ""


class Run:
    """One call of `run`: keeps its executor busy, tells what comes, releases what it cannot finish."""

    def __init__(
        self,
        study: "Study",
        measure: Measure,
        workers: int,
        executor: str | Executor,
        lease: Any,
        progress: bool,
    ) -> None:
        if not callable(measure):
            raise TypeError(f"measure must be a function of an arm, got {measure!r}")
        if not isinstance(executor, Executor) and executor not in ("threads", "processes"):
            raise StudyError(
                f'executor must be "threads", "processes" or a concurrent.futures executor, got {executor!r}'
            )
        self.study, self.measure, self.workers, self.executor = study, measure, workers, executor
        self.name = worker_name()
        self.lease = seconds("lease", study.spec["lease"] if lease is None else lease)
        self.progress = progress
        self._item = item_passed(measure)
        self._busy: dict[Future[Any], Trial] = {}
        self._failure = ""  # the last one
        self._asking = False  # there may be trials of ours that are not in `_busy` yet

    def go(self) -> Answer:
        """Until there is nothing more to measure."""
        with ExitStack() as stack:
            show = stack.enter_context(bar(self.study, self.progress))
            stack.enter_context(self._heartbeats())
            pool = self.executor if isinstance(self.executor, Executor) else stack.enter_context(self._pool())
            try:
                self._go_on(pool, set())
                while self._busy:
                    done, _ = wait(self._busy, return_when=FIRST_COMPLETED)
                    self._go_on(pool, done)
                    show()
            except BaseException:
                self._give_up()
                raise
        status = self.study.status
        if status.state == "paused":
            failure = f"; the last failure was {self._failure}" if self._failure else ""
            raise StudyPaused(
                f"study {status.name!r} is paused: {status.reason}{failure}; resume it to go on"
            )
        return self.study.answer

    def _pool(self) -> Executor:
        kind = ThreadPoolExecutor if self.executor == "threads" else ProcessPoolExecutor
        return kind(self.workers)

    def _go_on(self, pool: Executor, done: set[Future[Any]]) -> None:
        """Record what is done, take as much new work in the same transaction, and begin it."""
        results = self._measured(done)
        wanted = self.workers - len(self._busy) + len(done)
        self._asking = True
        trials = self._told(results, wanted)
        for future in done:
            del self._busy[future]
        for trial in trials:
            self._busy[self._submitted(pool, trial)] = trial
        self._asking = False

    def _submitted(self, pool: Executor, trial: Trial) -> Future[Any]:
        if self._item == "second":
            return pool.submit(self.measure, trial.arm, trial.item)
        if self._item == "name":
            return pool.submit(self.measure, trial.arm, item=trial.item)
        return pool.submit(self.measure, trial.arm)

    def _measured(self, done: set[Future[Any]]) -> list[tuple[Trial, Any]]:
        """The results of what is done; what failed is recorded."""
        results = []
        for future in done:
            trial, error = self._busy[future], future.exception()
            if error is None:
                results.append((trial, future.result()))
            elif self._failed(error):
                self._fail(trial, error)
            else:
                raise error
        return results

    def _failed(self, error: BaseException) -> bool:
        """Whether a measurement failed; which of several has broken their pool, nobody can know."""
        if isinstance(error, BrokenExecutor):
            return len(self._busy) == 1 and not isinstance(self.executor, Executor)
        return isinstance(error, Exception)

    def _fail(self, trial: Trial, error: BaseException) -> None:
        self._failure = f"{type(error).__name__}: {error}"[:500]
        with self._unless_released(trial):
            self.study.fail(trial, self._failure)

    def _told(self, results: list[tuple[Trial, Any]], wanted: int) -> list[Trial]:
        how: dict[str, Any] = {"lease": self.lease, "worker": self.name}
        try:
            return self.study.tell_ask(results, wanted, **how)[1]
        except ConflictError:
            for trial, values in results:
                with self._unless_released(trial):
                    self.study.tell(trial, values)
            return self.study.ask_many(wanted, **how)

    @contextmanager
    def _unless_released(self, trial: Trial) -> Iterator[None]:
        """What somebody has released meanwhile is nothing to us any more."""
        try:
            yield
        except ConflictError:
            trials = self.study.trials()
            if not (trials["state"][trials["id"] == trial.id] == "released").any():
                raise

    def _give_up(self) -> None:
        """Record what is done, one by one as a value may have been refused; give back the rest."""
        try:
            for future, trial in self._busy.items():
                self._part_with(future, trial)
            if self._asking:
                self._release_orphans()
        except StudyError:
            return  # the leases run out by themselves

    def _part_with(self, future: Future[Any], trial: Trial) -> None:
        try:
            if future.cancel() or not future.done():
                self.study.release(trial)
            elif (error := future.exception()) is None:
                self.study.tell(trial, future.result())
            elif self._failed(error):
                self._fail(trial, error)
            else:
                self.study.release(trial)
        except StorageError:
            raise
        except StudyError:
            return  # it was told just before, or its value was refused: it stays open

    def _release_orphans(self) -> None:
        """Give back what was handed out to us and never begun."""
        begun = {trial.id for trial in self._busy.values()}
        trials = self.study.trials()
        for trial in trials["id"][(trials["worker"] == self.name) & (trials["state"] == "open")]:
            if trial not in begun:
                self.study.release(trial)

    @contextmanager
    def _heartbeats(self) -> Iterator[None]:
        stop = threading.Event()

        def beat() -> None:
            while not stop.wait(self.lease / 3):
                try:
                    self.study.heartbeat(self.name)
                except StorageError:
                    continue  # the next call of the main thread says it better

        thread = threading.Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
