"""One queue per study: what waits together is checked by one look at the tokens and committed together."""

import asyncio
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from lexbandits.server.rooms import Room, Rooms
from lexbandits.server.tokens import Tokens, check_role
from lexbandits.study.record.journal import Journal, Turn

if TYPE_CHECKING:
    from lexbandits.server.metrics import Metrics
    from lexbandits.server.webhook import Webhook

MOST_STUDIES_AT_WORK = 32  # at once, a thread each
MOST_JOBS_IN_A_COMMIT = 256

Work = Callable[[Turn], Any]


class _SpoiledError(Exception):
    """A job failed after it had changed the fold: nothing of this commit can be kept."""


class Job:
    """A request that waits for its turn, and what came of it."""

    done: "asyncio.Future[None]"

    def __init__(self, authorization: str | None, role: str, read: Callable[[], Work | str]) -> None:
        """`read` gives what to do in the turn, or the name of a worker that is alive."""
        self.authorization, self._role, self._read = authorization, role, read
        self.work: Work | str = ""
        self.result: Any = None
        self.error: BaseException | None = None

    def prepare(self, role: str | None) -> None:
        """Who sends it is known now: refuse it, or read what was sent."""
        try:
            check_role(role, self._role, self.authorization)
            self.work = self._read()
        except Exception as error:
            self.error = error

    def attempt(self, turn: Turn) -> None:
        """Do it among others: a refusal is for this job alone."""
        assert callable(self.work)
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


def commit(journal: Journal, jobs: Sequence[Job]) -> list[str]:
    """All in one transaction; each in its own if one of them failed halfway. What kinds of events it made."""

    def attempt_all(turn: Turn) -> list[str]:
        for job in jobs:
            job.attempt(turn)
        return [event.kind for event in turn.events]

    try:
        return journal.transact(attempt_all)
    except _SpoiledError:
        return [kind for job in jobs for kind in _commit_alone(journal, job)]
    except Exception as error:  # nothing was committed: nobody's work is done
        _fail(jobs, error)
        return []


def _commit_alone(journal: Journal, job: Job) -> list[str]:
    def attempt(turn: Turn) -> tuple[Any, list[str]]:
        assert callable(job.work)
        return job.work(turn), [event.kind for event in turn.events]

    job.result = job.error = None
    try:
        job.result, kinds = journal.transact(attempt)
    except Exception as error:
        job.error = error
        return []
    return kinds


def _fail(jobs: Sequence[Job], error: Exception) -> None:
    for job in jobs:
        job.error = error


class Queues:
    """Of all studies. Each has one thread while something waits: however many wait, they hold no other."""

    def __init__(self, rooms: Rooms, tokens: Tokens, webhook: "Webhook | None" = None) -> None:
        self.rooms, self.tokens, self.webhook = rooms, tokens, webhook
        self.metrics: Metrics | None = None
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Job]] = {}  # by study, of those that a thread is at work on
        self._limiter: anyio.CapacityLimiter | None = None  # made inside the loop
        self._tasks: set[asyncio.Task[None]] = set()

    async def do(self, study: str, job: Job) -> Any:
        """What came of a job, once it is safe."""
        job.done = asyncio.get_running_loop().create_future()
        self._put(study, job)
        await job.done
        return job.outcome()

    def _put(self, study: str, job: Job) -> None:
        with self._lock:
            if study in self._waiting:
                self._waiting[study].append(job)
                return
            self._waiting[study] = [job]
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(MOST_STUDIES_AT_WORK)
        work = partial(self._work, study, asyncio.get_running_loop())
        task = asyncio.create_task(anyio.to_thread.run_sync(work, limiter=self._limiter))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _work(self, study: str, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            with self._lock:
                waiting = self._waiting.pop(study)
                if not waiting:
                    return
                batch, rest = waiting[:MOST_JOBS_IN_A_COMMIT], waiting[MOST_JOBS_IN_A_COMMIT:]
                self._waiting[study] = rest
            try:
                self._do_all(study, batch)
            except Exception as error:
                _fail([job for job in batch if job.error is None], error)
            loop.call_soon_threadsafe(_deliver, batch)

    def _do_all(self, study: str, batch: Sequence[Job]) -> None:
        roles = self.tokens.roles_of([job.authorization for job in batch])
        for job, role in zip(batch, roles, strict=True):
            job.prepare(role)
        ready = [job for job in batch if job.error is None]
        room = self.rooms.find(study) if ready else None
        if room is None:
            return
        alive = [job for job in ready if isinstance(job.work, str)]
        if alive:
            _extend(room, alive)
        changes = [job for job in ready if callable(job.work)]
        if changes:
            kinds = commit(room.writer, changes)
            if self.metrics is not None:
                self.metrics.recorded(kinds)
            if self.webhook is not None:
                self.webhook.committed(room.row, kinds)


def _extend(room: Room, alive: Sequence[Job]) -> None:
    """The leases of all who are alive, at once."""
    try:
        room.extend(*{str(job.work) for job in alive})
    except Exception as error:
        _fail(alive, error)


def _deliver(batch: Sequence[Job]) -> None:
    for job in batch:
        if not job.done.done():
            job.done.set_result(None)
