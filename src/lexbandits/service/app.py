"""The application: endpoints, page, health, and its description."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio.to_thread
from fastapi import FastAPI, Response
from fastapi.staticfiles import StaticFiles
from pydantic import TypeAdapter
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.types import Receive, Scope, Send

from lexbandits import __version__, views
from lexbandits.service import analysis, endpoints, fragments, metrics, openfeature, problems
from lexbandits.service.api_docs import manual_of
from lexbandits.service.auth import Tokens
from lexbandits.service.job_queue import JobQueue
from lexbandits.service.registry import StudyRegistry
from lexbandits.service.replies import Health, Problem, Reply, describe_refusals
from lexbandits.service.requests import Lines, Shortcut
from lexbandits.service.security import SecurityMiddleware
from lexbandits.service.webhook import Webhook
from lexbandits.service.write_queue import Queues

MOST_LOOKING = 64  # requests that look at studies at once; more wait
OURS = (
    "/api/",
    "/ofrep/",
    "/healthz",
    "/openapi.json",
    "/metrics",
    "/docs",
)  # what is not a file of the page
STATIC = Path(__file__).parent / "static"
STYLE = Path(views.__file__).parent / "style.css"


def make_app(
    registry: StudyRegistry,
    tokens: Tokens,
    hosts: Iterable[str] = (),
    numbers: bool = False,
    webhook: Webhook | None = None,
) -> SecurityMiddleware:
    """The service over a storage. `hosts` are names it answers to; `numbers`: any address too."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        anyio.to_thread.current_default_thread_limiter().total_tokens = MOST_LOOKING
        telling = None if webhook is None else asyncio.create_task(webhook.run())
        yield
        app.state.queues.stop()
        if telling is not None:
            telling.cancel()
            with suppress(asyncio.CancelledError):
                await telling
        registry.close()

    app = FastAPI(
        title="lexbandits",
        version=__version__,
        description="Live studies: which option is best when several noisy measures matter in strict order?",
        docs_url=None,
        redoc_url=None,
        lifespan=life,
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.registry, app.state.tokens, app.state.jobs = registry, tokens, JobQueue()
    app.state.queues, app.state.lines = Queues(registry, tokens, webhook), Lines()
    problems.install(app)
    for router in (
        endpoints.measure,
        endpoints.look,
        fragments.look,
        fragments.beside,
        analysis.analyse,
        metrics.look,
        openfeature.one,
        openfeature.many,
        endpoints.make,
        endpoints.decide,
    ):
        app.include_router(router)

    @app.get("/healthz", responses={200: {"model": Health}, **describe_refusals(421, 503)})
    def healthz() -> Response:
        """Whether the service and its storage answer."""
        registry.reads.find("")
        return Reply(Health("ok", __version__))

    @app.get("/docs", include_in_schema=False)
    def docs() -> Response:
        """The API for people."""
        return Response(manual_of(app.openapi()), media_type="text/html")

    _describe(app)
    page = Starlette(routes=[Mount("/", Files(directory=STATIC, html=True))])
    problems.install(page)

    shortcut = Shortcut(app, (endpoints.measure, endpoints.decide, openfeature.one))

    async def front(scope: Scope, receive: Receive, send: Send) -> None:
        chosen = page if scope["type"] == "http" and not scope["path"].startswith(OURS) else shortcut
        await chosen(scope, receive, send)

    queues = app.state.queues
    app.state.metrics = queues.metrics = metrics.Metrics(front, registry, queues, app.state.lines)
    return SecurityMiddleware(app.state.metrics, hosts, numbers, queues.stop)


class Files(StaticFiles):
    """The page's, and the style sheet that it shares with reports."""

    def lookup_path(self, path: str) -> tuple[str, os.stat_result | None]:
        """Where a file is."""
        if path == STYLE.name:
            return str(STYLE), STYLE.stat()
        return super().lookup_path(path)


def _describe(app: FastAPI) -> None:
    """Every refusal in the document is a Problem."""
    plain = app.openapi

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = plain()
            schemas = schema.setdefault("components", {}).setdefault("schemas", {})
            schemas["Problem"] = TypeAdapter(Problem).json_schema()
            for unused in ("HTTPValidationError", "ValidationError"):
                schemas.pop(unused, None)
            app.openapi_schema = schema
        return app.openapi_schema

    app.openapi = described  # type: ignore[method-assign]
