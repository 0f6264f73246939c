"""What a study means: forecast, course, report and so on. Slow, so each is made once per state."""

import math
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from fastapi.responses import FileResponse
from starlette.background import BackgroundTask

from lexbandits.server import answers
from lexbandits.server.answers import problems
from lexbandits.server.api import rooms_of, router
from lexbandits.server.bodies import StudyName
from lexbandits.server.replies import Reply
from lexbandits.server.rooms import Room
from lexbandits.server.summary import when
from lexbandits.server.tally import Tally
from lexbandits.study.errors import ConflictError, StorageError, UnknownStudyError
from lexbandits.study.study import Study

think = router("read")

Figure = Literal["intervals", "race", "evidence", "forecast", "pulls", "workers"]
Runs = Annotated[int, Query(ge=10, le=200)]
Format = Annotated[Literal["html", "md"], Query()]
Exported = Annotated[Literal["csv", "jsonl"], Query()]

REPORT = {  # a page of its own: styles, no scripts
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; img-src data:; sandbox",
    "Cache-Control": "private, no-store",
}


def _made(room: Room, what: str, make: Callable[[Study], Any]) -> Any:
    """What `make` gives for the study as it stands; too little measured for it is a conflict."""
    with room.thinking() as (study, known):
        seq = study.seq
        if known.get(what, (-1, None))[0] != seq:
            try:
                known[what] = seq, make(study)
            except (StorageError, UnknownStudyError):
                raise
            except ValueError as error:
                raise ConflictError(str(error)) from error
        return known[what][1]


def finite(words: Any) -> Any:
    """As JSON can say it: nan and infinity are null."""
    if isinstance(words, dict):
        return {str(key): finite(value) for key, value in words.items()}
    if isinstance(words, (list, tuple)):
        return [finite(value) for value in words]
    return None if isinstance(words, float) and not math.isfinite(words) else words


@think.get("/{study}/explanation", responses={200: {"model": dict[str, Any]}, **problems(404, 409)})
def explanation(request: Request, study: StudyName) -> Response:
    """Why each arm left or stays, what the answer may give up, what strained it: numbers and sentences."""

    def explained(reader: Study) -> Any:
        return finite(reader.explain().as_json())  # type: ignore[union-attr]

    return Reply(_made(rooms_of(request)[study], "explanation", explained))


@think.get("/{study}/forecast", responses={200: {"model": dict[str, Any]}, **problems(404, 409)})
def forecast(request: Request, study: StudyName, runs: Runs = 100) -> Response:
    """How many results are still needed, who is likely to win, what a wider tolerance would save."""

    def played(reader: Study) -> Any:
        return finite(reader.forecast(runs=runs).as_json())

    return Reply(_made(rooms_of(request)[study], f"forecast {runs}", played))


@think.get("/{study}/course", responses={200: {"model": answers.Course}, **problems(404, 409)})
def course(request: Request, study: StudyName) -> Response:
    """Which objective was being settled when."""
    from lexbandits.insight.svg import phases
    from lexbandits.insight.view import View

    def followed(reader: Study) -> Any:
        view = View.of(reader)
        tally = Tally(view.fold.ledger)
        return [
            {
                "objective": view.objectives[view.columns[position]].name,
                "since": first,
                "until": end,
                "at": when(tally.reached(first + 1)),
            }
            for position, first, end in phases(view)
        ]

    return Reply({"phases": _made(rooms_of(request)[study], "course", followed)})


@think.get("/{study}/verification", responses={200: {"model": answers.Verified}, **problems(404)})
def verification(request: Request, study: StudyName) -> Response:
    """Replay the journal from nothing and compare it with what was recorded."""

    def verified(reader: Study) -> Any:
        found = reader.verify()
        return {**asdict(found), "ok": found.ok, "problems": list(found.problems)}

    return Reply(_made(rooms_of(request)[study], "verification", verified))


@think.get(
    "/{study}/export",
    responses={200: {"content": {"text/csv": {}, "application/jsonl": {}}}, **problems(404)},
    response_class=Response,
)
def export(request: Request, study: StudyName, format: Exported = "csv") -> Response:
    """All trials as CSV, or all events as lines of JSON."""
    folder = TemporaryDirectory()
    try:
        with rooms_of(request)[study].thinking() as (reader, _):
            path = reader.export(Path(folder.name) / f"study.{format}")
    except BaseException:
        folder.cleanup()
        raise
    media = {"csv": "text/csv", "jsonl": "application/jsonl"}[format]
    headers = {"Content-Disposition": f'attachment; filename="study.{format}"'}
    return FileResponse(path, headers=headers, media_type=media, background=BackgroundTask(folder.cleanup))


@think.get("/{study}/figures/{name}", responses={200: {"model": dict[str, Any]}, **problems(404, 409)})
def figure(request: Request, study: StudyName, name: Figure) -> Response:
    """A figure for plotly.js: SVG traces only."""
    from lexbandits.insight import plot

    def drawn(reader: Study) -> Any:
        return getattr(plot, name)(reader).to_json()

    return Response(_made(rooms_of(request)[study], f"figure {name}", drawn), media_type="application/json")


@think.get(
    "/{study}/report",
    responses={200: {"content": {"text/html": {}, "text/markdown": {}}}, **problems(404, 409)},
    response_class=Response,
)
def report(request: Request, study: StudyName, format: Format = "html") -> Response:
    """One file that a stranger can check the answer from."""
    from lexbandits.insight.report import Contents

    def written(reader: Study) -> str:
        contents = Contents.of(reader)
        return contents.html() if format == "html" else contents.markdown()

    text = _made(rooms_of(request)[study], f"report {format}", written)
    media = "text/html" if format == "html" else "text/markdown"
    headers = {**REPORT, "Content-Disposition": f'attachment; filename="report.{format}"'}
    return Response(text, headers=headers, media_type=media)
