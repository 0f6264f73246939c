"""`Study.run`: measure on threads, processes or any executor until there is an answer."""

import inspect
import math
import os
import pickle
import secrets
import signal
import socket
import threading
import time
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
from enum import Enum, auto
from functools import cache
from typing import TYPE_CHECKING, Any

from lexbandits._code import Code
from lexbandits.study.core.queries import Answer
from lexbandits.study.errors import (
    ConflictError,
    StorageError,
    StudyError,
    StudyFinished,
    StudyPaused,
    StudyWaiting,
)
from lexbandits.study.measure.programs import Program, Stopped
from lexbandits.study.measure.progress import bar
from lexbandits.study.spec import seconds
from lexbandits.study.states import StudyState, TrialState
from lexbandits.study.trial import Trial

if TYPE_CHECKING:
    from lexbandits.study.study import Study

Measure = Callable[..., Mapping[str, Any]]
SAY_SO = 0.2  # seconds after which a run that waits for others says so
LOOK_AGAIN = 2.0  # seconds after which a run that waits looks for signals, and asks again if it has room


def worker_name() -> str:
    """A name that no other worker has."""
    return f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(2)}"


class ItemArgument(Enum):
    """How a measurement wants the item beside the arm."""

    NOT_AT_ALL = auto()
    SECOND = auto()
    BY_NAME = auto()


class ExecutorKind(Code):
    """On what `run` measures, unless an executor is given."""

    THREADS = "threads"
    PROCESSES = "processes"


def arguments_of(measure: Measure) -> tuple[ItemArgument, bool]:
    """How it wants the item.

    And whether it wants to know which measurement of its item it is.
    """
    try:
        parameters = inspect.signature(measure).parameters
    except (TypeError, ValueError):
        return ItemArgument.NOT_AT_ALL, False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    ordered = [p for p in parameters.values() if p.kind in kinds]
    is_fixed = "item" in getattr(measure, "keywords", ())  # by functools.partial
    by_name = "item" in list(parameters)[1:] and not is_fixed
    item = ItemArgument.BY_NAME if by_name else ItemArgument.NOT_AT_ALL
    if len(ordered) < 2 and any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters.values()):
        item = ItemArgument.SECOND
    if len(ordered) >= 2 and (ordered[1].name == "item" or ordered[1].default is inspect.Parameter.empty):
        item = ItemArgument.SECOND
    return item, "repeat" in parameters


# --- objects of arms in worker processes: sent once to each, not with every trial

_sent: dict[str, bytes] = {}  # in a worker process


def _receive(pickled: dict[str, bytes]) -> None:
    _sent.update(pickled)


@cache
def _object(arm: str) -> Any:
    return pickle.loads(_sent[arm])


def _measure_there(measure: Measure, arm: str, *words: Any, **more: Any) -> Mapping[str, Any]:
    return measure(_object(arm), *words, **more)


def _pickled(what: str, value: Any) -> bytes:
    try:
        return pickle.dumps(value)
    except Exception as error:  # whatever a class of somebody else raises
        raise StudyError(
            f"{what} cannot be sent to another process ({type(error).__name__}: {error}): "
            'run with executor="threads", or use what pickle can copy, such as a function of a module or '
            "a path"
        ) from error


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """SIGTERM and SIGHUP end a run as Ctrl-C does, where nobody else has said what they do."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
        for number in numbers:
            if signal.getsignal(number) is signal.SIG_DFL:
                before[number] = signal.signal(number, _end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: Any) -> None:
    raise SystemExit(128 + number)


class Run:
    """One call of `run`: keeps its executor busy and tells what comes.

    Stopped, it gives back what was not begun. What was begun has failed, as interrupted: whoever could stop a
    run that hangs and have the same places measured again would choose by value.
    """

    def __init__(
        self,
        study: "Study",
        measure: Measure,
        workers: int,
        executor: str | Executor,
        lease: Any,
        progress: bool,
        time_limit: Any = None,
    ) -> None:
        if not callable(measure):
            raise TypeError(f"measure must be a function of an arm, got {measure!r}")
        if not isinstance(executor, Executor) and executor not in [*ExecutorKind]:
            raise StudyError(
                f'executor must be "threads", "processes" or a concurrent.futures executor, got {executor!r}'
            )
        self.study, self.measure, self.workers, self.executor = study, measure, workers, executor
        self.name = worker_name()
        self.lease = seconds("lease", study.spec["lease"] if lease is None else lease)
        self.progress = progress
        limit = math.inf if time_limit is None else seconds("time_limit", time_limit)
        self._asks_until = time.monotonic() + limit
        self._item, self._repeat = arguments_of(measure)
        self._hands_objects = not isinstance(measure, Program) and study._hands_objects()
        self._copies = executor == ExecutorKind.PROCESSES or isinstance(executor, ProcessPoolExecutor)
        self._pickled: dict[str, bytes] = {}
        if self._copies:
            _pickled("measure", measure)
            objects = (study._objects or {}) if self._hands_objects else {}
            self._pickled = {arm: _pickled(f"the object of arm {arm!r}", it) for arm, it in objects.items()}
        self._busy: dict[Future[Any], Trial] = {}
        self._failure = ""  # the last one
        self._beginning: Trial | None = None  # a signal may come when it runs and is not in `_busy` yet
        self._asking = False  # there may be trials of this run that are not in `_busy` yet
        self.interrupted = self.released = 0  # when it was stopped

    def go(self) -> Answer:
        """Until there is nothing more to measure."""
        with ExitStack() as stack:
            show = stack.enter_context(bar(self.study, self.progress))
            stack.enter_context(_ended_by_signals())
            stack.enter_context(self._heartbeats())
            pool = self.executor if isinstance(self.executor, Executor) else stack.enter_context(self._pool())
            try:
                self._go_on(pool, set())
                while self._busy or self._wait_for_others(pool, show):
                    idle = self.workers > len(self._busy)
                    # never without a limit: a signal that comes just before would wait as long
                    done, _ = wait(self._busy, LOOK_AGAIN, FIRST_COMPLETED)
                    if done or idle:
                        self._go_on(pool, done)
                        show()
            except BaseException as error:
                if isinstance(error, Stopped):
                    wait(self._busy)  # all programs were asked to end: how each did is its result
                self._give_up()
                if self.interrupted or self.released:
                    error.add_note(self._say_what_became())
                raise
        status = self.study.status
        if status.state == StudyState.PAUSED:
            failure = f"; the last failure was {self._failure}" if self._failure else ""
            raise StudyPaused(
                f"study {status.name!r} is paused: {status.reason}{failure}; resume it to go on"
            )
        return self.study.answer

    @property
    def is_late(self) -> bool:
        """Whether the time is up in which it asks for more."""
        return time.monotonic() >= self._asks_until

    def _pool(self) -> Executor:
        if self.executor == ExecutorKind.THREADS:
            return ThreadPoolExecutor(self.workers)
        return ProcessPoolExecutor(self.workers, initializer=_receive, initargs=(self._pickled,))

    def _go_on(self, pool: Executor, done: set[Future[Any]]) -> None:
        """Record what is done, take as much new work in the same transaction, and begin it."""
        results = self._collect(done)
        wanted = 0 if self.is_late else self.workers - len(self._busy) + len(done)
        self._asking = True
        trials = self._tell_and_ask(results, wanted)
        for future in done:
            del self._busy[future]
        for trial in trials:
            self._begin(pool, trial)
        self._asking = False

    def _wait_for_others(self, pool: Executor, show: Callable[..., None]) -> bool:
        """Wait for the trials of others, as long as the study does; False if there is nothing to wait for."""
        patience = SAY_SO
        while not self.is_late:
            self._asking = True
            try:
                left = min(patience, max(self._asks_until - time.monotonic(), 0.0))
                trial = self.study.ask(lease=self.lease, worker=self.name, wait=left)
            except StudyWaiting as waiting:
                self._asking, patience = False, LOOK_AGAIN
                show(note=str(waiting).partition(": ")[2])
            except (StudyFinished, StudyPaused):
                self._asking = False
                return False
            else:
                self._begin(pool, trial)
                self._asking = False
                return True
        return False

    def _begin(self, pool: Executor, trial: Trial) -> None:
        self._beginning = trial
        try:
            future = self._submit(pool, trial)
        except Exception:  # by the pool: it was not begun
            self._beginning = None
            raise
        self._busy[future], self._beginning = trial, None

    def _submit(self, pool: Executor, trial: Trial) -> Future[Any]:
        how = {"repeat": trial.repeat} if self._repeat and trial.repeat else {}
        if self._item is ItemArgument.BY_NAME:
            how["item"] = trial.item
        words = [trial.item] if self._item is ItemArgument.SECOND else []
        if not self._hands_objects:
            return pool.submit(self.measure, trial.arm, *words, **how)
        if self.executor == ExecutorKind.PROCESSES and trial.arm in self._pickled:
            return pool.submit(_measure_there, self.measure, trial.arm, *words, **how)
        if self._copies and trial.arm not in self._pickled:  # it was added meanwhile
            _pickled(f"the object of arm {trial.arm!r}", trial.object)
        return pool.submit(self.measure, trial.object, *words, **how)

    def _collect(self, done: set[Future[Any]]) -> list[tuple[Trial, Any]]:
        """The results of what is done; what failed is recorded."""
        results = []
        for future in done:
            trial, error = self._busy[future], future.exception()
            if error is None:
                results.append((trial, future.result()))
            elif self._is_failure(error):
                self._fail(trial, error)
            else:
                raise error
        return results

    def _is_failure(self, error: BaseException) -> bool:
        """Whether a measurement failed; which of several has broken their pool, nobody can know."""
        if isinstance(error, BrokenExecutor):
            return len(self._busy) == 1 and not isinstance(self.executor, Executor)
        return isinstance(error, Exception)

    def _fail(self, trial: Trial, error: BaseException) -> None:
        self._failure = f"{type(error).__name__}: {error}"[:500]
        with self._unless_released(trial):
            self.study.fail(trial, self._failure)

    def _tell_and_ask(self, results: list[tuple[Trial, Any]], wanted: int) -> list[Trial]:
        how: dict[str, Any] = {"lease": self.lease, "worker": self.name, "wait": 0}
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
            trials = self.study._trials()
            if trials["state"][trials["id"].index(trial.id)] != TrialState.RELEASED:
                raise

    def _give_up(self) -> None:
        """Record what is done, one by one as a value may have been refused; part with the rest."""
        try:
            for future, trial in self._busy.items():
                self._part_with(future, trial)
            if self._beginning is not None and self._beginning not in self._busy.values():
                self._interrupt(self._beginning)
            if self._asking:
                self._release_orphans()
        except StudyError:
            return  # the leases run out by themselves

    def _part_with(self, future: Future[Any], trial: Trial) -> None:
        try:
            if future.cancel():
                self._release(trial.id)
            elif not future.done():
                self._interrupt(trial)
            elif (error := future.exception()) is None:
                self.study.tell(trial, future.result())
            elif self._is_failure(error):
                self._fail(trial, error)
            elif getattr(error, "begun", True):
                self._interrupt(trial)
            else:
                self._release(trial.id)
        except StorageError:
            raise
        except StudyError:
            return  # it was told just before, or its value was refused: it stays open

    def _interrupt(self, trial: Trial) -> None:
        self.study.fail(trial, "interrupted", interrupted=True)
        self.interrupted += 1

    def _release(self, identity: str | None) -> None:
        self.study.release(str(identity))
        self.released += 1

    def _say_what_became(self) -> str:
        """What became of the trials under way."""
        broken = f"{self.interrupted} measurement{'s were' if self.interrupted != 1 else ' was'} under way"
        back = f"{self.released} not begun {'were' if self.released != 1 else 'was'} given back"
        values = {o["name"]: o["if_failed"] for o in self.study.spec["objectives"] if "if_failed" in o}
        worth = ", ".join(f"{name} {value:g}" for name, value in values.items())
        by = f" ({worth}, by if_failed)" if worth else ""
        return f"{broken} and count{'s' if self.interrupted == 1 else ''} as failed{by}; {back}"

    def _release_orphans(self) -> None:
        """Give back what was handed out to us and never begun."""
        begun = {trial.id for trial in self._busy.values()}
        trials = self.study._trials()
        for trial, worker, state in zip(trials["id"], trials["worker"], trials["state"], strict=True):
            if worker == self.name and state == TrialState.OPEN and trial not in begun:
                self._release(trial)

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
