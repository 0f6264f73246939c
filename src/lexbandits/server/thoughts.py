"""What a study means: forecast, course, report and so on. Slow, so each is made once per state."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import anyio.to_thread
from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from lexbandits.jit import Compiling, refusing_to_wait
from lexbandits.printable import plain
from lexbandits.server import schemas
from lexbandits.server.api import rooms_of, router
from lexbandits.server.bodies import StudyName
from lexbandits.server.replies import Reply, describe, refuse
from lexbandits.server.rooms import Room
from lexbandits.server.routes import looking
from lexbandits.study.errors import ConflictError, StorageError, UnknownStudyError
from lexbandits.study.study import Study

think = router(looking("read"))

Figure = Literal["intervals", "race", "evidence", "forecast", "pulls", "workers"]
Runs = Annotated[int, Query(ge=10, le=200)]
Format = Annotated[Literal["html", "md"], Query()]
Shown = Annotated[Literal["html", "csv"], Query()]
Digest = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")]
Exported = Annotated[Literal["csv", "jsonl"], Query()]

REPORT = {  # a page of its own: styles, no scripts
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
    "Cache-Control": "private, no-store",
}


def _made(room: Room, what: str, make: Callable[[Study], Any]) -> Any:
    """What `make` gives for the study as it stands; too little measured for it is a conflict.

    No thread waits for what is being compiled: who asks is told when to ask again.
    """
    study, known = room.thinker, room.thoughts
    ledger = study._journal.fold().ledger
    state = ledger.seq, ledger.at  # seq alone would not do: a backup may have been restored
    if known.get(what, (None, None))[0] != state:
        try:
            with refusing_to_wait():
                known[what] = state, make(study)
        except Compiling as error:
            raise HTTPException(503, str(error), {"Retry-After": str(error.seconds)}) from None
        except (StorageError, UnknownStudyError):
            raise
        except ValueError as error:
            raise ConflictError(str(error)) from error
    return known[what][1]


async def _thought(request: Request, study: str, what: str, make: Callable[[Study], Any]) -> Any:
    """The same in its turn, shared by all who ask for it."""
    room = await _find(request, study)
    return await request.app.state.thinking.get(room.row.nonce, what, lambda: _made(room, what, make))


async def _find(request: Request, study: str) -> Room:
    """By its nonce: a study of the same name that was deleted may still be thought about."""
    return await anyio.to_thread.run_sync(rooms_of(request).find, study)


@think.get("/{study}/explanation", responses=describe(200, dict[str, Any], 404, 409))
async def explanation(request: Request, study: StudyName) -> Response:
    """Why each arm left or stays, what the answer may give up, what strained it: numbers and sentences."""

    def explained(reader: Study) -> Any:
        return plain(reader.explain().as_json())  # type: ignore[union-attr]

    return Reply(await _thought(request, study, "explanation", explained))


@think.get("/{study}/forecast", responses=describe(200, dict[str, Any], 404, 409))
async def forecast(request: Request, study: StudyName, runs: Runs = 100) -> Response:
    """How many results are still needed, who is likely to win, what a wider margin would save."""

    found = await _thought(request, study, f"forecast {runs}", lambda reader: reader.forecast(runs=runs))
    return Reply(plain(found.as_json()))


@think.get("/{study}/course", responses=describe(200, schemas.Course, 404, 409))
async def course(request: Request, study: StudyName) -> Response:
    """Which objective was being settled when."""
    from lexbandits.server.fragments import course_of

    found = await _thought(request, study, "course", course_of)
    return Reply(schemas.Course(phases=[schemas.Phase(**p._asdict(), at=at) for p, at in found.phases]))


@think.get("/{study}/verification", responses=describe(200, schemas.Verified, 404))
async def verification(request: Request, study: StudyName, record: Digest = None) -> Response:
    """Replay the journal from nothing; compare it with its digests and ends, and with `record`, if given."""

    def verified(reader: Study) -> Any:
        found = reader.verify(record)
        return schemas.Verified(**{**vars(found), "ok": found.ok, "problems": list(found.problems)})

    room = await _find(request, study)
    what = f"verification {record}"  # never kept: an edit from outside leaves the state as it was
    found = await request.app.state.thinking.get(room.row.nonce, what, lambda: verified(room.thinker))
    return Reply(found)


@think.get(
    "/{study}/export",
    responses={200: {"content": {"text/csv": {}, "application/jsonl": {}}}, **refuse(404)},
    response_class=Response,
)
async def export(request: Request, study: StudyName, format: Exported = "csv") -> Response:
    """All trials as CSV, or all events as lines of JSON."""
    room, folder = await _find(request, study), TemporaryDirectory()

    def written() -> Path:
        return room.thinker.export(Path(folder.name) / f"study.{format}")

    try:  # a file of its own for each
        path = await request.app.state.thinking.get(room.row.nonce, folder, written)
    except BaseException:
        folder.cleanup()
        raise
    media = {"csv": "text/csv", "jsonl": "application/jsonl"}[format]
    headers = {"Content-Disposition": f'attachment; filename="study.{format}"'}
    return FileResponse(path, headers=headers, media_type=media, background=BackgroundTask(folder.cleanup))


@think.get(
    "/{study}/items",
    responses={200: {"content": {"application/json": {}, "text/csv": {}}}, **refuse(404, 409)},
    response_class=Response,
)
async def items(request: Request, study: StudyName, format: Shown = "html", differ: bool = False) -> Response:
    """What each arm gave on each item: a table of some, or all as CSV."""
    from lexbandits.picture.picture import Picture

    def written(reader: Study) -> str:
        table = Picture.of(reader).by_item
        if table is None:
            raise ConflictError(f"study {reader.name!r} has no items")
        return str(table.table()) if format == "html" else table.csv(differ)

    text = await _thought(request, study, f"items {format} {differ}", written)
    if format == "html":
        return Reply({"html": text})
    headers = {"Content-Disposition": 'attachment; filename="items.csv"'}
    return Response(text.encode("utf-8", "backslashreplace"), headers=headers, media_type="text/csv")


@think.get("/{study}/figures/{name}", responses=describe(200, dict[str, Any], 404, 409))
async def figure(request: Request, study: StudyName, name: Figure) -> Response:
    """A figure for plotly.js: SVG traces only."""
    from lexbandits.insight import plot

    def drawn(reader: Study) -> Any:
        return getattr(plot, name)(reader).to_json()

    return Response(await _thought(request, study, f"figure {name}", drawn), media_type="application/json")


@think.get(
    "/{study}/report",
    responses={200: {"content": {"text/html": {}, "text/markdown": {}}}, **refuse(404, 409)},
    response_class=Response,
)
async def report(request: Request, study: StudyName, format: Format = "html") -> Response:
    """One file that a stranger can check the answer from."""
    from lexbandits.insight.report import Contents

    def written(reader: Study) -> str:
        contents = Contents.of(reader)
        return contents.html() if format == "html" else contents.markdown()

    text = await _thought(request, study, f"report {format}", written)
    media = "text/html" if format == "html" else "text/markdown"
    headers = {**REPORT, "Content-Disposition": f'attachment; filename="report.{format}"'}
    return Response(text.encode("utf-8", "backslashreplace"), headers=headers, media_type=media)
