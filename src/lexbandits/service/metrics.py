"""`/metrics`: what the service has done since its start, as Prometheus reads it."""

import re
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lexbandits.service.registry import StudyRegistry
from lexbandits.service.requests import Lines, looking
from lexbandits.service.write_queue import Queues

BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds
ASK = re.compile(r"/api/studies/[^/]+/(trials|assign)$|/ofrep/v1/evaluate/flags/[^/]+$")
TELL = re.compile(r"/api/studies/[^/]+/(results|trials/[^/]+/result)$")

look = APIRouter(route_class=looking("read"))


class Metrics:
    """Counts requests on their way; `events` is told what was recorded."""

    def __init__(self, app: ASGIApp, registry: StudyRegistry, queues: Queues, lines: Lines) -> None:
        self._app, self._registry, self._queues, self._readers = app, registry, queues, lines
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._events: Counter[str] = Counter()
        self._within = {"ask": [0] * (len(BOUNDS) + 1), "tell": [0] * (len(BOUNDS) + 1)}
        self._seconds = {"ask": 0.0, "tell": 0.0}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, counted when its answer is there."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self._app(scope, receive, noted)
        finally:
            self._count(_kind(scope["method"], scope["path"]), status, time.perf_counter() - begin)

    def _count(self, kind: str, status: int, seconds: float) -> None:
        with self._lock:
            self._requests[kind, status] += 1
            if kind in self._within:
                self._within[kind][bisect_left(BOUNDS, seconds)] += 1
                self._seconds[kind] += seconds

    def recorded(self, kinds: Iterable[str]) -> None:
        """Events that are safe now."""
        with self._lock:
            self._events.update(kinds)

    def text(self) -> str:
        """Everything, a line each."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield from _family("requests_total", "counter", "Requests answered.")
        for (kind, status), count in sorted(self._requests.items()):
            yield _line("requests_total", count, kind=kind, status=status)
        yield from _family("events_total", "counter", "Events recorded; results are those of kind told.")
        for event, count in sorted(self._events.items()):
            yield _line("events_total", count, kind=event)
        yield from _family(
            "request_seconds",
            "histogram",
            "Until asks and results were answered, with what an ask waited for results of others.",
        )
        for kind, counts in self._within.items():
            sums = [sum(counts[: i + 1]) for i in range(len(counts))]
            for bound, count in zip((*BOUNDS, "+Inf"), sums, strict=True):
                yield _line("request_seconds_bucket", count, kind=kind, le=bound)
            yield _line("request_seconds_sum", round(self._seconds[kind], 6), kind=kind)
            yield _line("request_seconds_count", sums[-1], kind=kind)
        states, trials = self._registry.counts()
        yield from _family("studies", "gauge", "Studies in use, by state.")
        for state, count in sorted(states.items()):
            yield _line("studies", count, state=state)
        yield from _family("open_trials", "gauge", "Trials under way in the studies in use.")
        yield _line("open_trials", trials)
        yield from _family("waiting_requests", "gauge", "Asks that wait for results of others.")
        yield _line("waiting_requests", self._queues.held)
        yield from _family("waiting_readers", "gauge", "Requests that wait for their turn to read a study.")
        yield _line("waiting_readers", self._readers.waiting)


def _kind(method: str, path: str) -> str:
    if method == "POST" and ASK.match(path):
        return "ask"
    if method in ("PUT", "POST") and TELL.match(path):
        return "tell"
    return "look" if method in ("GET", "HEAD") else "other"


def _family(name: str, kind: str, text: str) -> tuple[str, str]:
    return f"# HELP lexbandits_{name} {text}", f"# TYPE lexbandits_{name} {kind}"


def _line(name: str, value: float, **labels: Any) -> str:
    said = ",".join(f'{key}="{label}"' for key, label in labels.items())
    return f"lexbandits_{name}{{{said}}} {value}" if said else f"lexbandits_{name} {value}"


@look.get("/metrics", include_in_schema=False)
def metrics(request: Request) -> Response:
    """For Prometheus."""
    counted: Metrics = request.app.state.metrics
    return Response(counted.text(), media_type="text/plain; version=0.0.4; charset=utf-8")
