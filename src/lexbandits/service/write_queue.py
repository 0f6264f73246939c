"""One queue per study: what waits together is checked by one look at the tokens and committed together."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import anyio
import anyio.to_thread

from lexbandits.service.auth import Tokens, check_role
from lexbandits.service.registry import OpenStudy, StudyRegistry
from lexbandits.study.core.journal import FIRST_LOOK, LONGEST_PAUSE, Journal, UnitOfWork

if TYPE_CHECKING:
    from lexbandits.service.metrics import Metrics
    from lexbandits.service.webhook import Webhook

MOST_STUDIES_AT_WORK = 32  # at once, a thread each
MOST_JOBS_IN_A_COMMIT = 256
MOST_HELD = 1000  # requests that wait for results of others; more are answered at once
MOST_LOOKING = 4  # threads that see whether those may go on

Work = Callable[[UnitOfWork], Any]


class NothingToAsk(NamedTuple):
    """There is nothing to hand out before a result of somebody else comes."""

    answer: Any  # if it does not come
    again: Work  # what to do once it has
    seconds: float  # for how long at most


async def _never() -> None:
    await asyncio.Event().wait()


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

    def anew(self, work: Work) -> "Job":
        """Another job of the same request."""
        return Job(self.authorization, self._role, lambda: work)

    def prepare(self, role: str | None) -> None:
        """Who sends it is known now: refuse it, or read what was sent."""
        try:
            check_role(role, self._role, self.authorization)
            self.work = self._read()
        except Exception as error:
            self.error = error

    def attempt(self, unit: UnitOfWork) -> None:
        """Do it among others: a refusal is for this job alone."""
        assert callable(self.work)
        before = len(unit.events)
        self.result = self.error = None
        try:
            self.result = self.work(unit)
        except Exception as error:
            if len(unit.events) != before:
                raise _SpoiledError from error
            self.error = error

    def outcome(self) -> Any:
        """Its result, or its error."""
        if self.error is not None:
            raise self.error
        return self.result


def commit(journal: Journal, jobs: Sequence[Job]) -> list[str]:
    """All in one transaction; each in its own if one of them failed halfway. What kinds of events it made."""

    def attempt_all(unit: UnitOfWork) -> list[str]:
        for job in jobs:
            job.attempt(unit)
        return [event.kind for event in unit.events]

    try:
        return journal.transact(attempt_all)
    except _SpoiledError:
        return [kind for job in jobs for kind in _commit_alone(journal, job)]
    except Exception as error:  # nothing was committed: nobody's work is done
        _fail(jobs, error)
        return []


def _commit_alone(journal: Journal, job: Job) -> list[str]:
    def attempt(unit: UnitOfWork) -> tuple[Any, list[str]]:
        assert callable(job.work)
        return job.work(unit), [event.kind for event in unit.events]

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

    def __init__(self, registry: StudyRegistry, tokens: Tokens, webhook: "Webhook | None" = None) -> None:
        self.registry, self.tokens, self.webhook = registry, tokens, webhook
        self.metrics: Metrics | None = None
        self._lock = threading.Lock()
        self._waiting: dict[str, list[Job]] = {}  # by study, of those that a thread is at work on
        self._limiter: anyio.CapacityLimiter | None = None  # made inside the loop
        self._looking: anyio.CapacityLimiter | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._watches: dict[str, _Watch] = {}  # by study, of those where a request is held
        self.held = 0  # requests that wait for results of others
        self._stopping = False

    async def do(self, study: str, job: Job, gone: Callable[[], Awaitable[Any]] = _never) -> Any:
        """What came of a job, once it is safe. `gone` returns when nobody waits for it any more."""
        answer = await self._in_turn(study, job)
        return await self._hold(study, job, answer, gone) if isinstance(answer, NothingToAsk) else answer

    async def _hold(self, study: str, job: Job, held: Any, gone: Callable[[], Awaitable[Any]]) -> Any:
        """Try again whenever the study has something to hand out. No thread and no queue is held meanwhile.

        A client that has left is given nothing: it would be missed until its lease runs out.
        """
        clock = asyncio.get_running_loop().time
        until, left = clock() + held.seconds, asyncio.ensure_future(gone())
        self.held += 1
        try:
            while isinstance(held, NothingToAsk) and clock() < until and not self._stopping:
                if self.held > MOST_HELD or not await self._is_woken(study, left, until - clock()):
                    break
                held = await self._in_turn(study, job.anew(held.again))
        finally:
            self.held -= 1
            left.cancel()
        return held.answer if isinstance(held, NothingToAsk) else held

    async def _is_woken(self, study: str, left: "asyncio.Future[Any]", seconds: float) -> bool:
        """Whether the study may have something to hand out, before that long and before they have left."""
        watch = self._watches.get(study)
        if watch is None:
            watch = self._watches[study] = _Watch()
            self._start(self._look_after(study, watch))
        watch.held += 1
        await asyncio.wait({watch.woken, left}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        watch.held -= 1
        return watch.woken.done() and not left.done()

    async def _look_after(self, study: str, watch: "_Watch") -> None:
        """Look once for all that are held: after each commit here, and now and then for others."""
        pause = FIRST_LOOK
        self._looking = self._looking or anyio.CapacityLimiter(MOST_LOOKING)
        while watch.held and not self._stopping:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await watch.news.wait()
            pause = FIRST_LOOK if watch.news.is_set() else min(1.5 * pause, LONGEST_PAUSE)
            watch.news.clear()
            if await anyio.to_thread.run_sync(self._has_work, study, limiter=self._looking):
                break
        del self._watches[study]
        watch.woken.set_result(None)

    def _has_work(self, study: str) -> bool:
        try:
            return self.registry.find(study).writer.has_work()
        except Exception:  # who asks again is told
            return True

    def stop(self) -> None:
        """Answer all who are held, now and from now on."""
        self._stopping = True
        for watch in self._watches.values():
            watch.news.set()

    async def _in_turn(self, study: str, job: Job) -> Any:
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
        self._start(anyio.to_thread.run_sync(work, limiter=self._limiter))

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
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
            kinds: list[str] = []
            try:
                kinds = self._do_all(study, batch)
            except Exception as error:
                _fail([job for job in batch if job.error is None], error)
            loop.call_soon_threadsafe(self._deliver, study, batch, kinds)

    def _do_all(self, study: str, batch: Sequence[Job]) -> list[str]:
        """What kinds of events it made."""
        roles = self.tokens.roles_of([job.authorization for job in batch])
        for job, role in zip(batch, roles, strict=True):
            job.prepare(role)
        ready = [job for job in batch if job.error is None]
        opened = self.registry.find(study) if ready else None
        if opened is None:
            return []
        alive = [job for job in ready if isinstance(job.work, str)]
        if alive:
            _extend(opened, alive)
        changes = [job for job in ready if callable(job.work)]
        if not changes:
            return []
        kinds = commit(opened.writer, changes)
        if self.metrics is not None:
            self.metrics.recorded(kinds)
        if self.webhook is not None:
            self.webhook.committed(opened.row, kinds)
        return kinds

    def _deliver(self, study: str, batch: Sequence[Job], kinds: Sequence[str]) -> None:
        for job in batch:
            if not job.done.done():
                job.done.set_result(None)
        if kinds and study in self._watches:
            self._watches[study].news.set()


class _Watch:
    """Who is held in a study: `news` is set when something was committed, `woken` done if they may go on."""

    def __init__(self) -> None:
        self.held = 0
        self.news = asyncio.Event()
        self.woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()


def _extend(opened: OpenStudy, alive: Sequence[Job]) -> None:
    """The leases of all who are alive, at once."""
    try:
        opened.extend(*{str(job.work) for job in alive})
    except Exception as error:
        _fail(alive, error)
