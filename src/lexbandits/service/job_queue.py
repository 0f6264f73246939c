"""What takes seconds, such as forecasts and reports: by few threads, each once for all who wait for it."""

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

import anyio
import anyio.to_thread
from starlette.exceptions import HTTPException

MOST_AT_WORK = 2  # threads; more would take the processor from those who measure
MOST_WAITING = 16  # things
LONGEST_WAIT = 30.0  # seconds for one; it goes on to be made, for the next request

Thing = tuple[str, object]  # of which study, and what of it


class _QueuedJob(NamedTuple):
    make: Callable[[], Any]
    done: "asyncio.Future[Any]"


class JobQueue:
    """A queue of things to be made. It lives in the event loop: who waits holds no thread.

    Who asks for what waits already shares it: it is made from the study as it stands then. What is being made
    may be of an older state, so it waits once more.
    """

    def __init__(self) -> None:
        self._waiting: dict[Thing, _QueuedJob] = {}
        self._studies: set[str] = set()  # at work on; one thread each, as they would wait for each other
        self._tasks: set[asyncio.Task[None]] = set()

    async def get(self, study: str, what: object, make: Callable[[], Any]) -> Any:
        """What `make` gives, in its turn; refused when too much waits."""
        thing = study, what
        job = self._waiting.get(thing)
        if job is None:
            if len(self._waiting) >= MOST_WAITING:
                raise HTTPException(
                    503,
                    f"{MOST_WAITING} forecasts, reports and the like wait to be made: try again later",
                    {"Retry-After": f"{LONGEST_WAIT:.0f}"},
                )
            job = self._waiting[thing] = _QueuedJob(make, asyncio.get_running_loop().create_future())
            self._begin()
        try:
            return await asyncio.wait_for(asyncio.shield(job.done), LONGEST_WAIT)  # others may wait too
        except TimeoutError:
            text = f"this was not made within {LONGEST_WAIT:g} s: try again later"
            raise HTTPException(503, text) from None

    def _begin(self) -> None:
        for thing in list(self._waiting):
            if len(self._studies) < MOST_AT_WORK and thing[0] not in self._studies:
                self._studies.add(thing[0])
                task = asyncio.create_task(self._make(thing[0], self._waiting.pop(thing)))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _make(self, study: str, job: _QueuedJob) -> None:
        try:  # with a limiter of its own: those who look have the threads of the default one
            made = await anyio.to_thread.run_sync(job.make, limiter=anyio.CapacityLimiter(1))
        except Exception as error:
            job.done.set_exception(error)
            job.done.exception()  # seen, though nobody may wait any more
        else:
            job.done.set_result(made)
        finally:
            self._studies.discard(study)
            self._begin()
