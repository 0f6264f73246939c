"""What a study means: forecast, course, report and so on. Slow, so each is made once per state."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import anyio.to_thread
from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException

from lexbandits._jit import AGAIN, Compiling, refusing_to_wait
from lexbandits._printable import plain
from lexbandits.report.html_page import Format
from lexbandits.service import schemas
from lexbandits.service.bodies import StudyName
from lexbandits.service.endpoints import registry_of, router
from lexbandits.service.job_queue import JobQueue
from lexbandits.service.registry import Analysis, OpenStudy, state_of
from lexbandits.service.replies import Reply, describe, refuse
from lexbandits.service.requests import looking
from lexbandits.service.summary import when
from lexbandits.study.errors import ConflictError, StorageError, UnknownStudyError
from lexbandits.study.study import Study
from lexbandits.views import drawing
from lexbandits.views.study_view import StudyView
from lexbandits.views.trial_counts import tally_of

if TYPE_CHECKING:
    from lexbandits.forecasting.forecast import Forecast

analyse = router(looking("read"))

Figure = Literal["intervals", "race", "evidence", "forecast", "pulls", "workers"]
Runs = Annotated[int, Query(ge=10, le=200)]
ReportFormat = Annotated[Format, Query()]
ItemFormat = Annotated[Literal["html", "csv"], Query()]
Digest = Annotated[str | None, Query(pattern="^[0-9a-f]{64}$")]
Exported = Annotated[Literal["csv", "jsonl"], Query()]

REPORT = {  # a page of its own: styles, no scripts
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
    "Cache-Control": "private, no-store",
}


FORETOLD_RUNS = 100  # of the forecast that the page shows
Make = Callable[..., Any]  # of a study, and of how it is wanted


def _made(opened: OpenStudy, make: Make, *how: Any) -> Any:
    """What `make` gives for the study as it stands; too little measured for it is a conflict.

    No thread waits for what is being compiled: who asks is told when to ask again.
    """
    study = opened.analyst()
    state, known = state_of(study), opened.analyses.get((make, *how))
    if known is not None and known.state == state:
        return known.found
    try:
        with refusing_to_wait():
            found = make(study, *how)
    except Compiling:
        words = f"compiling, once per version: try again in {AGAIN} s"
        raise HTTPException(503, words, {"Retry-After": str(AGAIN)}) from None
    except (StorageError, UnknownStudyError):
        raise
    except ValueError as error:
        raise ConflictError(str(error)) from error
    opened.analyses[make, *how] = Analysis(state, found)
    return found


async def _analysed(request: Request, study: str, make: Make, *how: Any) -> Any:
    """The same in its turn, shared by all who ask for it."""
    opened = await _find(request, study)
    jobs: JobQueue = request.app.state.jobs
    return await jobs.get(opened.row.nonce, (make, *how), lambda: _made(opened, make, *how))


async def _find(request: Request, study: str) -> OpenStudy:
    """By its nonce: a study of the same name that was deleted may still be analysed."""
    return await anyio.to_thread.run_sync(registry_of(request).find, study)


@analyse.get("/{study}/explanation", responses=describe(200, dict[str, Any], 404, 409))
async def explanation(request: Request, study: StudyName) -> Response:
    """Why each arm left or stays, what the answer may give up, its diagnostics: numbers and sentences."""
    return Reply(await _analysed(request, study, explained))


def explained(study: Study) -> Any:
    """Return the explanation of a study as JSON."""
    return plain(study.explain().as_json())  # type: ignore[union-attr]


@analyse.get("/{study}/forecast", responses=describe(200, dict[str, Any], 404, 409))
async def forecast(request: Request, study: StudyName, runs: Runs = FORETOLD_RUNS) -> Response:
    """How many results are still needed, who is likely to win, what a wider margin would save."""
    found = await _analysed(request, study, foretold, runs)
    return Reply(plain(found.as_json()))


def foretold(study: Study, runs: int) -> "Forecast":
    """Return the forecast of a study."""
    return study.forecast(runs=runs)


@analyse.get("/{study}/course", responses=describe(200, schemas.Course, 404, 409))
async def course(request: Request, study: StudyName) -> Response:
    """Which objective was being settled when."""
    found = await _analysed(request, study, course_of)
    return Reply(schemas.Course(phases=[schemas.Phase(**p._asdict(), at=at) for p, at in found.phases]))


class Course(NamedTuple):
    """What was being settled when, each with the time of its first result; `key` says of which state."""

    key: str
    phases: list[tuple[drawing.Phase, str | None]]


def course_of(study: Study) -> Course:
    """Return the course of a study. It takes a replay."""
    view = StudyView.of(study)
    tally = tally_of(view.estimates.replay)
    spans = [(phase, when(tally.reached(phase.since + 1))) for phase in drawing.phases(view.estimates)]
    return Course(course_key(view), spans)


def course_key(view: StudyView) -> str:
    """What the course of a study depends on."""
    stages = [objective.stage for objective in view.objectives]
    return repr((view.state, stages, [arm.decision for arm in view.arms]))


def analyses_shown(opened: OpenStudy) -> tuple[Analysis | None, Analysis | None]:
    """The last forecast and the last course of those that the page shows, if there are any."""
    return opened.analyses.get((foretold, FORETOLD_RUNS)), opened.analyses.get((course_of,))


@analyse.get("/{study}/verification", responses=describe(200, schemas.Verified, 404))
async def verification(request: Request, study: StudyName, digest: Digest = None) -> Response:
    """Replay the journal from nothing; compare it with its digests and ends, and with `digest`, if given."""

    opened = await _find(request, study)

    def verified() -> Any:
        found = opened.analyst().verify(digest)
        return schemas.Verified(**{**vars(found), "ok": found.ok, "problems": list(found.problems)})

    # never kept: an edit from outside leaves the state as it was
    return Reply(await request.app.state.jobs.get(opened.row.nonce, (verification, digest), verified))


@analyse.get(
    "/{study}/export",
    responses={200: {"content": {"text/csv": {}, "application/jsonl": {}}}, **refuse(404)},
    response_class=Response,
)
async def export(request: Request, study: StudyName, format: Exported = "csv") -> Response:
    """All trials as CSV, or all events as lines of JSON."""
    opened, folder = await _find(request, study), TemporaryDirectory()

    def written() -> Path:
        return opened.analyst().export(Path(folder.name) / f"study.{format}")

    try:  # a file of its own for each
        path = await request.app.state.jobs.get(opened.row.nonce, folder, written)
    except BaseException:
        folder.cleanup()
        raise
    media = {"csv": "text/csv", "jsonl": "application/jsonl"}[format]
    headers = {"Content-Disposition": f'attachment; filename="study.{format}"'}
    return FileResponse(path, headers=headers, media_type=media, background=BackgroundTask(folder.cleanup))


@analyse.get(
    "/{study}/items",
    responses={200: {"content": {"application/json": {}, "text/csv": {}}}, **refuse(404, 409)},
    response_class=Response,
)
async def items(
    request: Request, study: StudyName, format: ItemFormat = "html", differ: bool = False
) -> Response:
    """What each arm gave on each item: a table of some, or all as CSV."""
    text = await _analysed(request, study, itemized, format, differ)
    if format == "html":
        return Reply({"html": text})
    headers = {"Content-Disposition": 'attachment; filename="items.csv"'}
    return Response(text.encode("utf-8", "backslashreplace"), headers=headers, media_type="text/csv")


def itemized(study: Study, form: str, differ: bool) -> str:
    """Return what was measured on each item of a list."""
    table = StudyView.of(study).by_item
    if table is None:
        raise ConflictError(f"study {study.name!r} has no items")
    return str(table.table()) if form == "html" else table.csv(differ)


@analyse.get(
    "/{study}/figures/{name}",
    responses={200: {"content": {"image/svg+xml": {}}}, **refuse(404, 409)},
    response_class=Response,
)
async def figure(request: Request, study: StudyName, name: Figure) -> Response:
    """Return a figure as SVG, without scripts."""
    text = await _analysed(request, study, drawn, name)
    return Response(text.encode("utf-8", "backslashreplace"), headers=REPORT, media_type="image/svg+xml")


def drawn(study: Study, figure: str) -> str:
    """Return a figure of a study as SVG."""
    from lexbandits.report import plot

    text: str = getattr(plot, figure)(study)._repr_svg_()
    return text


@analyse.get(
    "/{study}/report",
    responses={200: {"content": {"text/html": {}, "text/markdown": {}}}, **refuse(404, 409)},
    response_class=Response,
)
async def report(request: Request, study: StudyName, format: ReportFormat = Format.HTML) -> Response:
    """One file that a stranger can check the answer from."""
    text = await _analysed(request, study, reported, format)
    media = "text/html" if format is Format.HTML else "text/markdown"
    headers = {**REPORT, "Content-Disposition": f'attachment; filename="report.{format}"'}
    return Response(text.encode("utf-8", "backslashreplace"), headers=headers, media_type=media)


def reported(study: Study, form: Format) -> str:
    """Return the report of a study."""
    from lexbandits.report.study_report import Contents

    return Contents.of(study).written(form)
