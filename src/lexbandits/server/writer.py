"""Many requests, few commits: what waits while a commit is under way goes into the next one together."""

import threading
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any, TypeVar

from lexbandits.study.record.fold import Fold
from lexbandits.study.record.journal import Journal, Turn
from lexbandits.study.storage.contract import Storage, StudyRow
from lexbandits.study.study import Study

T = TypeVar("T")
MOST = 256  # pieces of work in one commit


class _SpoiledError(Exception):
    """A piece of work failed after it had changed the fold: nothing of this commit can be kept."""


class Work:
    """What one thread wants done, and what came of it."""

    def __init__(self, work: Callable[[Turn], Any]) -> None:
        self.work = work
        self.awake = threading.Event()
        self.done = False
        self.result: Any = None
        self.error: BaseException | None = None

    def attempt(self, turn: Turn) -> None:
        """Do it among others: a refusal is for this thread alone."""
        before = len(turn.events)
        self.result = self.error = None
        try:
            self.result = self.work(turn)
        except Exception as error:
            if len(turn.events) != before:
                raise _SpoiledError from error
            self.error = error

    def outcome(self) -> Any:
        """Its result, or its error."""
        if self.error is not None:
            raise self.error
        return self.result


class GatheringJournal(Journal):
    """A journal shared by threads. Who comes first commits for all who wait, then the next of them does."""

    def __init__(self, storage: Storage, row: StudyRow, read_only: bool = False) -> None:
        super().__init__(storage, row, read_only)
        self._queue: deque[Work] = deque()
        self._door = threading.Lock()

    def transact(self, work: Callable[[Turn], T]) -> T:
        """Do the work in a commit, which it may share with others; it is safe when this returns."""
        mine = Work(work)
        self.do_all([mine])
        result: T = mine.outcome()
        return result

    def do_all(self, works: Sequence[Work]) -> None:
        """Several pieces of work of one thread, in as few commits as can be."""
        with self._door:
            idle = not self._queue
            self._queue.extend(works)
            if idle and works:
                works[0].awake.set()
        for each in works:
            if each.done:
                continue
            each.awake.wait()
            if not each.done:
                self._lead()

    def _lead(self) -> None:
        """Commit for all who wait."""
        with self._door:
            batch = list(islice(self._queue, MOST))
        try:
            self._commit(batch)
        finally:
            self._hand_over(batch)

    def _hand_over(self, batch: Sequence[Work]) -> None:
        with self._door:
            for each in batch:
                self._queue.popleft()
                each.done = True
                each.awake.set()
            if self._queue:
                self._queue[0].awake.set()

    def _commit(self, batch: Sequence[Work]) -> None:
        def attempt_all(turn: Turn) -> None:
            for each in batch:
                each.attempt(turn)

        try:
            super().transact(attempt_all)
        except _SpoiledError:
            for each in batch:
                self._alone(each)
        except BaseException as error:  # nothing was committed: nobody's work is done
            for each in batch:
                each.error = error
            if not isinstance(error, Exception):
                raise

    def _alone(self, each: Work) -> None:
        try:
            each.error, each.result = None, super().transact(each.work)
        except Exception as error:
            each.error = error


class StudyInTurn(Study):
    """A study whose calls are pieces of the commit under way."""

    def __init__(self, journal: Journal, turn: Turn) -> None:
        self._journal = _JournalInTurn(journal, turn)


class _JournalInTurn(Journal):
    def __init__(self, journal: Journal, turn: Turn) -> None:
        self.storage, self.row, self.read_only = journal.storage, journal.row, False
        self._turn = turn

    def transact(self, work: Callable[[Turn], T]) -> T:
        return work(self._turn)

    def fold(self) -> Fold:
        return self._turn.fold
